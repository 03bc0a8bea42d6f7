"""What a file format gives: texts whose headings are lines of Markdown, each with what the file says of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lexent.corpus.encodings import decoded
from lexent.corpus.lines import whole
from lexent.corpus.passages import without_closing
from lexent.corpus.problems import RowError

HIGHEST_LEVEL = 6
"""Levels of headings that Markdown has."""
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_UNDERLINE = re.compile(r"(?<=\S)[ \t]*\n((?:=+|-{3,})[ \t]*)$", re.MULTILINE)
_READS_AS_HEADING = re.compile(r"^(#{1,6}\s)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """A text of a file; most files have one."""

    text: str
    """Headings are lines that begin with # to ######, with a blank line before and after them."""
    title: str = ""
    """As the file names it; empty where only a heading or the file's name can."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    problem: RowError | None = None
    """What is reported beside the text, of which nothing or only a piece could be read."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that is read, and the encoding that was named for text files."""

    path: Path
    encoding: str | None = None

    def content(self) -> bytes:
        """All bytes, unpacked."""
        return whole(self.path)

    def text(self) -> str:
        """All text, with line ends as on Linux."""
        return decoded(self.content(), self.path, self.encoding).replace("\r\n", "\n")

    def damaged(self, kind: str, error: object) -> RowError:
        """The error for a file that is not what its suffix says."""
        why = shortened(str(error) or type(error).__name__)
        return RowError(
            f"{self.path}: not a readable {kind} file ({why}); fetch it again, or leave it out: --on-error skip",
            where=str(self.path),
            reason="damaged file",
        )

    def damaged_in_part(self, kind: str, error: object) -> RowError:
        """The error for a file of which a piece could be read, which is kept."""
        return RowError(
            f"{self.path}: a damaged {kind} file, of which only a part can be read ({shortened(str(error))}); fetch it "
            "again, or keep that part: --on-error skip",
            where=str(self.path),
            reason="damaged file",
        )


def heading(level: int, text: str) -> str:
    """A heading as Markdown writes it."""
    return f"{'#' * max(1, min(level, HIGHEST_LEVEL))} {' '.join(text.split())}"


def escaped(text: str) -> str:
    """Text of which no line reads as a heading, as one that begins with # or has a line of = or - below it does."""
    return _UNDERLINE.sub(r"\n\n\1", _READS_AS_HEADING.sub(r"\\\1", text))


def fenced(text: str) -> str:
    """Text whose lines are kept as they are: code."""
    return f"```\n{text}\n```"


def joined(blocks: Iterable[str]) -> str:
    """Blocks with a blank line between them, without those that are empty."""
    return "\n\n".join(block for block in blocks if block.strip())


def without_title(text: str, title: str) -> tuple[str, str]:
    """A text and its title: the one that is given, or the first heading; empty where there is neither.

    A heading at the start that is the title is left out of the text: the title is encoded with the text.
    """
    in_code = False
    for place, line in enumerate(text.split("\n")):
        if line.startswith(("```", "~~~")):
            in_code = not in_code
        found = None if in_code else _HEADING.fullmatch(line)
        name = without_closing(found[1]) if found else ""
        if name:
            title = title or name
            if place == 0 and name == title:
                text = text[len(line) :].strip()
            break
    return text, title


def shortened(text: str, width: int = 80) -> str:
    """The text in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
