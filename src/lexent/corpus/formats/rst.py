"""reStructuredText: section titles become headings; marks of directives, roles and links are taken away.

Not the whole language: what a directive would fetch or make (include, toctree, autoclass) is not there.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from lexent.corpus.formats.parts import Part, SourceFile, escaped, fenced, heading, joined

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*")
_DIRECTIVE = re.compile(r"\.\.\s+(?:\|[^|]*\|\s+)?(?P<name>[\w:.+-]+?)::(?:\s+(?P<rest>.*))?")
_NO_TEXT = re.compile(r"\.\.(?:\s+(?:_.*:.*|\|.*)|\s*)")
"""Targets of links and substitutions."""
_NOTE = re.compile(r"\.\.\s+\[[^\]]+\]\s+(?P<rest>.*)")
_OPTION = re.compile(r"\s*:[\w-]+:(?:\s.*)?")
_CODE = frozenset(("code", "code-block", "sourcecode", "highlight", "doctest", "testcode", "parsed-literal", "math"))
_DROPPED = frozenset((
    "toctree", "raw", "index", "contents", "include", "literalinclude", "image", "only", "meta", "tabularcolumns",
    "currentmodule", "module", "automodule", "autoclass", "autofunction", "automethod", "autosummary", "plot", "role",
    "default-role",
))  # fmt: skip
_INLINE = (
    (re.compile(r":[\w:+.-]+:`([^`<]*?)\s*<[^`>]*>`"), r"\1"),  # :ref:`words <target>`
    (re.compile(r":[\w:+.-]+:`[~!]?([^`]*)`"), r"\1"),
    (re.compile(r"``(.+?)``"), r"\1"),
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),
    (re.compile(r"`([^`]+)`(?:__?)?"), r"\1"),
    (re.compile(r"\|(\w[^|\n]*)\|(?:__?)?"), r"\1"),
    (re.compile(r"\*\*(\S(?:[^*\n]*\S)?)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<=\w)__?(?=[\s.,;:!?)]|$)", re.MULTILINE), ""),
)


def read_rst(file: SourceFile) -> Iterator[Part]:
    """A text; its first section title is its title."""
    yield Part(joined(_Reader().blocks(file.text().expandtabs(8).split("\n"))))


class _Reader:
    """Reads lines to blocks. Levels of headings are numbered in the order in which their marks first occur."""

    def __init__(self) -> None:
        self._levels: dict[tuple[str, bool], int] = {}

    def blocks(self, lines: Sequence[str]) -> Iterator[str]:
        place = 0
        while place < len(lines):
            if not lines[place].strip():
                place += 1
            elif found := self._title(lines, place):
                block, place = found
                yield block
            elif lines[place].startswith(".."):
                stop = _indented_end(lines, place + 1)
                yield from self._marked(lines[place], lines[place + 1 : stop])
                place = stop
            elif _ADORNMENT.fullmatch(lines[place]):  # a line across the page
                place += 1
            else:
                stop = place
                while stop < len(lines) and lines[stop].strip() and (stop == place or not self._title(lines, stop)):
                    stop += 1
                paragraph = "\n".join(lines[place:stop]).strip("\n")
                place = stop
                if paragraph.rstrip().endswith("::"):
                    yield _inline(paragraph.rstrip()[:-2].rstrip() + ":").lstrip(":")
                    stop = _indented_end(lines, place)
                    yield _code(lines[place:stop])
                    place = stop
                else:
                    yield _inline(textwrap.dedent(paragraph))

    def _title(self, lines: Sequence[str], place: int) -> tuple[str, int] | None:
        """The heading that begins at a line, and where the text goes on."""
        line = lines[place]
        after = lines[place + 1] if place + 1 < len(lines) else ""
        last = lines[place + 2] if place + 2 < len(lines) else ""
        over = _ADORNMENT.fullmatch(line)
        if over and after.strip() and last.strip() == line.strip() and not _ADORNMENT.fullmatch(after):
            return self._heading(after, over[1], over=True), place + 3
        under = _ADORNMENT.fullmatch(after)
        if under and not over and not line.startswith((" ", "..")) and len(after.strip()) >= len(line.rstrip()):
            return self._heading(line, under[1], over=False), place + 2
        return None

    def _heading(self, text: str, sign: str, *, over: bool) -> str:
        return heading(self._levels.setdefault((sign, over), len(self._levels) + 1), _inline(text))

    def _marked(self, line: str, below: Sequence[str]) -> Iterator[str]:
        """What a directive, a footnote or a comment says."""
        directive, note = _DIRECTIVE.fullmatch(line.rstrip()), _NOTE.fullmatch(line.rstrip())
        if note:
            yield from self.blocks([note["rest"], *textwrap.dedent("\n".join(below)).split("\n")])
        if not directive or _NO_TEXT.fullmatch(line.rstrip()) or directive["name"] in _DROPPED:
            return
        body = list(below)
        while body and _OPTION.fullmatch(body[0]):
            body.pop(0)
        if directive["name"] in _CODE:
            yield _code(body)
            return
        inner = textwrap.dedent("\n".join(body)).split("\n")
        rest = directive["rest"] or ""
        if rest and directive["name"] != "figure":
            inner = [rest, *inner] if inner and inner[0].strip() else [rest, "", *inner]
        yield from self.blocks(inner)


def _indented_end(lines: Sequence[str], place: int) -> int:
    """Where an indented block ends: blank lines after it are none of it."""
    stop = place
    while place < len(lines) and (not lines[place].strip() or lines[place].startswith(" ")):
        place += 1
        if lines[place - 1].strip():
            stop = place
    return stop


def _code(lines: Sequence[str]) -> str:
    code = textwrap.dedent("\n".join(lines)).strip("\n").rstrip()
    return fenced(code) if code.strip() else ""


def _inline(text: str) -> str:
    """The text without the marks of roles, links and emphasis. No line of it reads as a heading."""
    for mark, plain in _INLINE:
        text = mark.sub(plain, text)
    return escaped(text)
