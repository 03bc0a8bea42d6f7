"""Plain text and Markdown, as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from lexent.corpus.formats.parts import Part, SourceFile
from lexent.corpus.lines import unpacked_name

_FRONT_MATTER = re.compile(r"---[ \t]*\n((?:[\w-]+:|[ \t#-]).*?)\n---[ \t]*(?:\n|$)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)


def read_text(file: SourceFile) -> Iterator[Part]:
    """A text, called by the name of its file: a line that begins with # may be anything."""
    yield Part(file.text().strip(), title=PurePath(unpacked_name(file.path.name)).stem)


def read_markdown(file: SourceFile) -> Iterator[Part]:
    """A text in Markdown. Of the facts that may stand before it, between lines of ---, the title is taken."""
    text, title = file.text().strip(), ""
    facts = _FRONT_MATTER.match(text)
    if facts:
        named = _TITLE.search(facts[1])
        text, title = text[facts.end() :].strip(), named[1].strip("\"'") if named else ""
    yield Part(text, title=title)
