"""DOCX: the paragraphs, headings, lists, tables and notes of a Word document, with insertions that are being tracked.

Headers, footers, comments and deleted text are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lexent.corpus.formats.archives import archive, part
from lexent.corpus.formats.parts import Part, SourceFile, escaped, heading, joined

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)
_BODY_LEVEL = 9
"""The outline level of text that is no heading; those of headings count from 0."""
_LEFT_OUT = frozenset(("Fallback", "del", "moveFrom", "pPr", "rPr", "instrText", "txbxContent"))
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}


def read_docx(file: SourceFile) -> Iterator[Part]:
    """A document; a paragraph of the style Title, or the first heading, is its title."""
    with archive(file, "DOCX") as opened:
        levels: dict[str, int] = {}
        if "word/styles.xml" in opened.names:
            with opened.noted():
                levels = _levels(opened.xml("word/styles.xml"))
        blocks = _Blocks(levels)
        blocks.walk(opened.xml("word/document.xml"))
        for notes in ("word/footnotes.xml", "word/endnotes.xml"):
            if notes in opened.names:
                with opened.noted():
                    blocks.walk(opened.xml(notes))
    yield part(file, "DOCX", joined(blocks.found), blocks.title, opened.damage)


def _levels(styles: Any) -> dict[str, int]:
    """The level of each style that is one of headings, 0 for titles: of its own, or of the style it is based on."""
    found: dict[str, int] = {}
    bases: dict[str, str] = {}
    for style in styles.iter(f"{_WORD}style"):
        id, name = style.get(f"{_WORD}styleId", ""), _value(style, "name")
        number = _HEADING_STYLE.fullmatch(name)
        outline = style.find(f"{_WORD}pPr/{_WORD}outlineLvl")
        if name.lower() == "title":
            found[id] = 0
        elif number:
            found[id] = int(number[1])
        elif outline is not None:
            found[id] = _outline_level(outline)
        elif based := _value(style, "basedOn"):
            bases[id] = based
    for id in bases:
        based, steps = id, 0
        while based in bases and steps < len(bases):
            based, steps = bases[based], steps + 1
        if found.get(based, -1) > 0:  # a subtitle is based on the title, and is none
            found[id] = found[based]
    return found


class _Blocks:
    """Walks over a document and gathers its blocks."""

    def __init__(self, levels: Mapping[str, int]) -> None:
        self.found: list[str] = []
        self.title = ""
        self._levels = levels
        self._in_list = False

    def walk(self, element: Any) -> None:
        for child in element:
            name = _name(child)
            if name == "p":
                self._paragraph(child)
            elif name == "tbl":
                self._in_list = False
                self.found.append(escaped("\n".join(filter(None, map(_row, child.iter(f"{_WORD}tr"))))))
            elif name not in _LEFT_OUT:  # sections, content controls, insertions
                self.walk(child)

    def _paragraph(self, paragraph: Any) -> None:
        text = _text(paragraph).strip()
        boxes = [box for box in paragraph.iter(f"{_WORD}txbxContent") if not _in_fallback(box, paragraph)]
        if text:
            self._add(text, paragraph)
        for box in boxes:
            self.walk(box)

    def _add(self, text: str, paragraph: Any) -> None:
        settings = paragraph.find(f"{_WORD}pPr")
        level = self._level(settings)
        if level == 0 and not self.title:
            self.title = " ".join(text.split())
        if level is not None:
            self._in_list = False
            self.found.append(heading(level, text))
            return
        is_item = settings is not None and settings.find(f"{_WORD}numPr") is not None
        if is_item and self._in_list:
            self.found[-1] += f"\n- {text}"
        else:
            self.found.append(f"- {text}" if is_item else escaped(text))
        self._in_list = is_item

    def _level(self, settings: Any) -> int | None:
        """The level of a paragraph that is a heading; 0 for a title; None for others."""
        if settings is None:
            return None
        outline = settings.find(f"{_WORD}outlineLvl")
        if outline is not None:
            level = _outline_level(outline)
        else:
            level = self._levels.get(_value(settings, "pStyle"), _BODY_LEVEL + 1)
        return level if level <= _BODY_LEVEL else None


def _outline_level(outline: Any) -> int:
    given = outline.get(f"{_WORD}val", "")
    return (int(given) if given.isdigit() else _BODY_LEVEL) + 1


def _text(element: Any) -> str:
    """The text of a paragraph, without that of the text boxes in it."""
    parts = [element.text or ""] if _name(element) == "t" else [_SIGNS.get(_name(element), "")]
    parts += [_text(child) for child in element if _name(child) not in _LEFT_OUT]
    return "".join(parts)


def _row(row: Any) -> str:
    cells = [
        " ".join(" ".join(_text(paragraph) for paragraph in cell.iter(f"{_WORD}p")).split())
        for cell in row.iter(f"{_WORD}tc")
    ]
    return " | ".join(cell for cell in cells if cell)


def _in_fallback(element: Any, within: Any) -> bool:
    """Whether an element stands in the form for older programs, or in a box within another box."""
    above = element.getparent()
    while above is not None and above is not within:
        if _name(above) in ("Fallback", "txbxContent"):
            return True
        above = above.getparent()
    return False


def _value(element: Any, name: str) -> str:
    found = element.find(f"{_WORD}{name}")
    return "" if found is None else str(found.get(f"{_WORD}val", ""))


def _name(element: Any) -> str:
    """The name of an element without its namespace; "" for comments."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
