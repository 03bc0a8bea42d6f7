"""HTML: what a reader of the page sees, with headings, paragraphs, lists, tables and code as blocks.

Where a page says what its main content is (main), only that is read. Left out are navigation (nav), scripts, styles,
form controls and what is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lexent.corpus.encodings import MARK_BYTES, decoded, marked
from lexent.corpus.formats.parts import Part, SourceFile, escaped, fenced, heading, joined
from lexent.corpus.problems import RowError
from lexent.errors import MissingExtraError

_LEFT_OUT = frozenset((
    "script", "style", "noscript", "template", "svg", "nav", "iframe", "object", "embed", "select", "textarea",
    "button", "canvas", "audio", "video", "title",
))  # fmt: skip
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "menu", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
))  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_MAKES_LAYOUT = (*_HEADINGS, "p", "ul", "ol", "table", "pre", "div")
"""A table row with one of these in a cell is no row of data."""
_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]+encoding\s*=\s*["']([A-Za-z0-9_.-]+)""")
_DECLARED_WITHIN = 2048
"""Bytes in which a page declares its encoding."""
_BREAK = "\x00"
_ANCHORS = "¶§#🔗\u200b "
"""What a heading shows as a link to itself."""
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def read_html(file: SourceFile) -> Iterator[Part]:
    """A page."""
    content = file.content()
    yield page(decoded(content, file.path, file.encoding or declared(content)), str(file.path))


def page(text: str, name: str) -> Part:
    """The text of a page. name: what messages call it."""
    root = _parsed(text, name)
    if root is None:
        return Part("")
    reader = _Reader()
    for main in [one for one in root.iter("main") if not _is_hidden(one)][:1]:
        reader.walk(main)
    if not reader.blocks:
        reader = _Reader()
        reader.walk(root)
    titles = (" ".join("".join(found.itertext()).split()) for found in root.iter("title"))
    return Part(joined(reader.blocks), title=_title(next(filter(None, titles), ""), reader.headings))


def _title(named: str, headings: Sequence[tuple[int, str]]) -> str:
    """The title of a page. named: by <title>, in which the name of the site often stands after the page's.

    It is the heading that <title> begins with, else the one heading of the first level, else <title>.
    """
    within = [text for _, text in headings if named.casefold().startswith(text.casefold())]
    first = [text for level, text in headings if level == 1]
    if within:
        return max(within, key=len)
    return first[0] if len(first) == 1 else named


def _parsed(text: str, name: str) -> Any:
    """The root of the page; None where it is empty."""
    try:
        from lxml import etree
    except ImportError as error:
        raise MissingExtraError("lxml", extra="files", purpose=f"reading {name}") from error
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True, remove_comments=True, remove_pis=True)
    root = etree.fromstring(text.replace("\0", "").encode(), parser) if text.strip() else None
    for entry in parser.error_log:
        if entry.level == etree.ErrorLevels.FATAL:  # elements are nested too deeply: the rest of the page is lost
            raise RowError(
                f"{name}: not a readable HTML file ({entry.message}); leave it out: --on-error skip",
                where=name,
                reason="damaged file",
            )
    return root


def declared(content: bytes) -> str | None:
    """The encoding that a page names, where Python knows it."""
    start = content[:_DECLARED_WITHIN]
    if marked(start[:MARK_BYTES]):
        return None
    found = _XML_ENCODING.search(start) or _CHARSET.search(start)
    name = found[1].decode("ascii") if found else ""
    # Browsers read these as Windows-1252, of which they are parts, and UTF-16 cannot be what such a line is written in.
    name = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252"}.get(name.lower(), name)
    if not name or name.lower().startswith("utf-16"):
        return None
    try:
        b"a".decode(name)
    except (LookupError, UnicodeDecodeError):
        return None
    return name


class _Reader:
    """Walks over the elements of a page and gathers its blocks."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.headings: list[tuple[int, str]] = []
        """The level and the text of each heading."""
        self._inline: list[str] = []
        self._prefix = ""
        self._kind = ""
        """Of the last block: lines of lists and of tables follow each other without a blank line."""
        self._level = 0
        """Of the heading that is read."""
        self._code = 0
        self._rows: list[bool] = []
        """For each table row that is open: whether it is one of data."""

    def walk(self, root: Any) -> None:
        from lxml import etree

        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            name = element.tag if isinstance(element.tag, str) else ""
            if event == "start":
                if not name or name in _LEFT_OUT or _is_hidden(element):
                    walker.skip_subtree()
                else:
                    self._start(name, element)
                    self._inline.append(element.text or "")
            else:
                if name and name not in _LEFT_OUT and not _is_hidden(element):
                    self._end(name)
                self._inline.append("" if element is root else element.tail or "")
        self._flush()

    def _start(self, name: str, element: Any) -> None:
        if name == "br":
            self._inline.append(_BREAK)
        elif name == "img":
            self._inline.append(f" {element.get('alt') or ''} ")
        elif self._in_data_row() and name in ("td", "th"):
            self._inline.append("\x01")
        elif name in _HEADINGS:
            self._flush()
            self._level = _HEADINGS[name]
        elif name in _BLOCKS:
            self._flush()
            if name == "li":
                self._prefix = "- "
            elif name == "pre":
                self._code += 1
            elif name == "tr":
                self._rows.append(not any(True for _ in element.iter(*_MAKES_LAYOUT)))

    def _end(self, name: str) -> None:
        if self._in_data_row() and name in ("td", "th"):
            return
        if name in _HEADINGS or name in _BLOCKS:
            self._flush("row" if name == "tr" and self._in_data_row() else "")
        if name in _HEADINGS:
            self._level = 0
        elif name == "pre":
            self._code = max(0, self._code - 1)
        elif name == "tr" and self._rows:
            self._rows.pop()
        elif name == "li":
            self._prefix = ""

    def _in_data_row(self) -> bool:
        return bool(self._rows) and self._rows[-1]

    def _flush(self, kind: str = "") -> None:
        """Makes a block of the text since the last one."""
        raw, self._inline = "".join(self._inline), []
        if self._code and not self._level:
            text = raw.replace(_BREAK, "\n").replace("\x01", "").strip("\n").rstrip()
            if text.strip():
                self._add(fenced(text), "code")
            return
        if kind == "row":
            cells = [" ".join(cell.replace(_BREAK, " ").split()) for cell in raw.split("\x01")]
            text = " | ".join(cell for cell in cells if cell)
        else:
            parts = raw.replace("\x01", " ").split(_BREAK)
            text = "\n".join(line for line in (" ".join(part.split()) for part in parts) if line)
        if not text:
            return
        if self._level:
            text = " ".join(text.split()).strip(_ANCHORS)
            if text:
                self.headings.append((self._level, text))
                self._add(heading(self._level, text), "heading")
        elif self._prefix:
            self._add(self._prefix + text, "item")
            self._prefix = ""
        else:
            self._add(escaped(text), kind)

    def _add(self, block: str, kind: str) -> None:
        if kind and kind == self._kind and kind in ("item", "row"):
            self.blocks[-1] += f"\n{block}"
        else:
            self.blocks.append(block)
        self._kind = kind


def _is_hidden(element: Any) -> bool:
    return (
        element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or _HIDDEN.search(element.get("style") or "") is not None
    )
