"""Source code: what it says in words.

Comments and docstrings stand below the name of the function or class that they are of; names without a comment follow
at the end. The code itself is left out.
"""

from __future__ import annotations

import inspect
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lexent.corpus.formats.parts import Part, SourceFile, escaped, heading, joined
from lexent.corpus.lines import unpacked_name
from lexent.errors import MissingExtraError

SUFFIXES = (
    ".py", ".pyi", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".cs", ".java", ".kt", ".scala", ".swift", ".go",
    ".rs", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".php", ".rb", ".pl", ".pm", ".lua", ".r", ".jl", ".hs", ".ml",
    ".ex", ".exs", ".erl", ".clj", ".sh", ".bash", ".zsh", ".ps1", ".sql", ".zig", ".dart", ".f90",
)  # fmt: skip
_LEXERS = {".jsx": "javascript", ".tsx": "typescript", ".mjs": "javascript", ".cjs": "javascript", ".h": "cpp"}
"""Where the suffix alone does not tell, or tells a language that reads less."""
_MARKS = re.compile(
    r"^[ \t]*(?:/\*+!?|//+!?|#+!?(?=\s|$)|--+\[*|;+|%+|\(\*+|\{-\|?|<!--|\*+(?!/)(?=\s|$)|\"\"\"|''')[ \t]?"
)
_ENDS = re.compile(r"(?<![ \t])[ \t]*(?:\*+/|\*\)|-\}|-->|\]\]|\"\"\"|''')[ \t]*$")
_DECLARES = {
    **dict.fromkeys(("func", "function", "fn", "def", "fun"), "function"),
    **dict.fromkeys(("class", "interface", "type", "struct", "enum", "trait"), "class"),
}
"""Words before a name, for languages whose other names read alike."""
_RULER = re.compile(r"[\W_]*")
_RULE_AFTER_WORDS = re.compile(r"(?<=\S)[ \t]+([#=*~/-])\1{3,}$")
_STRING = re.compile(r"[a-zA-Z]{0,2}(\"\"\"|'''|\"|')(.*)\1", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_PROMPT = ">>>"
"""What a line of an example of Python begins with."""
LONGEST_LINE = 2000
"""Characters. What reads code may take the square of the length of a line, and longer lines are for machines anyway."""
_NO_CODE = frozenset(")]}{")
"""Signs at the start of a line that is part of what stands before it, however little it is indented."""
_LABEL = re.compile(r"(?:public|private|protected|internal|signals)\b[\w \t]*:")
"""A label within a class of C++, which may stand as far left as the class."""
_NOT_WORDS = re.compile(
    r"-\*-.*-\*-|(?:vim?|ex):\s*set? |noqa\b|type: ignore|pylint:|eslint-disable|fmt: (?:on|off|skip)"
)


@dataclass(slots=True)
class _Comment:
    first: int
    """Line."""
    last: int
    indent: int
    """Of its line."""
    scope: int | None
    """The name that it stands within."""
    within: bool
    """Whether it is a docstring or stands after code on its line: it is not of the name after it."""
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class _Name:
    name: str
    line: int
    indent: int
    """Of its line."""
    parent: int | None
    """The name that it is declared within."""
    level: int
    """1 for names of the whole file."""
    is_class: bool


def read_source_code(file: SourceFile) -> Iterator[Part]:
    """A file of code; it is called by its name."""
    text, title = file.text(), unpacked_name(file.path.name)
    if max(map(len, text.split("\n"))) > LONGEST_LINE:
        yield Part(escaped(text.strip()), title=title)
        return
    found = _Found(text)
    found.read(_pieces(_lexer(file, text), text))
    yield Part(joined(_blocks(found.comments, found.names)), title=title)


def _lexer(file: SourceFile, text: str) -> Any:
    try:
        from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
        from pygments.util import ClassNotFound
    except ImportError as error:
        raise MissingExtraError("pygments", extra="files", purpose=f"reading {file.path}") from error
    name = unpacked_name(file.path.name)
    suffix = name[name.rfind(".") :].lower()
    try:
        return get_lexer_by_name(_LEXERS[suffix]) if suffix in _LEXERS else get_lexer_for_filename(name.lower(), text)
    except ClassNotFound as error:
        raise file.damaged(f"{suffix} source", error) from error


class _Found:
    """The comments, and the names that are defined, in the order of the file.

    A name is open, and what is indented more is within it, until a line of code is indented as little as its own.
    """

    def __init__(self, text: str) -> None:
        self.comments: list[_Comment] = []
        self.names: list[_Name] = []
        self._text = text
        self._open: list[int] = []
        """Places of names, the outermost first."""

    def read(self, pieces: Iterator[tuple[int, str, str]]) -> None:
        line, place = 1, 0
        for start, kind, value in pieces:
            line, place = line + self._text.count("\n", place, start), start
            indent, is_code_before = self._before(start)
            if kind == "comment":
                self._add_comment(value, line, indent, is_code_before=is_code_before)
            elif kind == "code":
                self._close(indent)
            else:
                self._add_name(value.strip(), line, indent, is_class=kind == "class")
        self.comments = [one for one in self.comments if not _RULER.fullmatch(one.text)]

    def _before(self, start: int) -> tuple[int, bool]:
        """How far the line of a piece is indented, and whether anything stands before the piece there."""
        line = self._text[self._text.rfind("\n", 0, start) + 1 : start].expandtabs(8)
        bare = line.lstrip()
        return len(line) - len(bare), bool(bare)

    def _close(self, indent: int) -> None:
        while self._open and self.names[self._open[-1]].indent >= indent:
            self._open.pop()

    def _add_name(self, name: str, line: int, indent: int, *, is_class: bool) -> None:
        around = self._scope(line, indent)
        if is_class or around is None or self.names[around].line != line:
            self._close(indent)
        while self._open and self.names[self._open[-1]].line == line and not self.names[self._open[-1]].is_class:
            self._open.pop()
        parent = self._open[-1] if self._open else None
        level = 1 if parent is None else self.names[parent].level + 1
        self._open.append(len(self.names))
        self.names.append(_Name(name, line, indent, parent, level, is_class))

    def _scope(self, line: int, indent: int) -> int | None:
        """The innermost open name that a line is within, or that is declared on it."""
        within = (
            one for one in reversed(self._open) if self.names[one].indent < indent or self.names[one].line == line
        )
        return next(within, None)

    def _add_comment(self, value: str, line: int, indent: int, *, is_code_before: bool) -> None:
        """Adds a comment; one on the line after another goes on with it."""
        last = line + value.rstrip("\n").count("\n")
        docstring = _STRING.fullmatch(value.strip())
        text = _without_rulers(inspect.cleandoc(docstring[2])) if docstring else _words_of(value)
        within = docstring is not None or is_code_before
        before = self.comments[-1] if self.comments else None
        if before and not within and not before.within and line == before.last + 1 and indent == before.indent:
            before.texts.append(text)
            before.last = last
        else:
            self.comments.append(_Comment(line, last, indent, self._scope(line, indent), within, [text]))


def _pieces(lexer: Any, text: str) -> Iterator[tuple[int, str, str]]:
    """Comments, names of functions and classes, and lines of code, each with the place where it begins."""
    from pygments.token import Comment, Keyword, Name, String

    words = (Comment, Comment.Single, Comment.Multiline, Comment.Special, Comment.Doc, String.Doc)
    begin, held = 0, ""
    declared, depth = "", 0
    line_end = -1
    for start, kind, value in lexer.get_tokens_unprocessed(text):
        if kind in words and held and start == begin + len(held):  # one comment in several tokens
            held += value
            continue
        if held.strip():
            yield begin, "comment", held
        begin, held = (start, value) if kind in words else (0, "")
        if held or not value.strip():
            continue
        first = start + len(value) - len(value.lstrip())
        if first > line_end:
            line_end = text.find("\n", first)
            line_end = len(text) if line_end < 0 else line_end
            if kind not in Comment and kind not in String and _is_code(text, first):
                yield first, "code", value
        if kind in (Name.Function, Name.Class) or (kind is Name.Function.Magic and value.startswith("__")):
            yield start, "class" if kind is Name.Class else "function", value
            declared = ""
        elif kind in Keyword and value in _DECLARES:
            declared, depth = _DECLARES[value], 0
        elif declared and value in "()":
            depth += 1 if value == "(" else -1
        elif declared and depth == 0:  # not within the receiver of a method of Go
            if kind is Name.Other:
                yield start, declared, value
            declared = ""
    if held.strip():
        yield begin, "comment", held


def _is_code(text: str, first: int) -> bool:
    """Whether the code that begins a line there may end what stands before it."""
    return text[first] not in _NO_CODE and not _LABEL.match(text, first)


def _words_of(comment: str) -> str:
    """A comment without its marks, and without what only programs read."""
    lines = []
    for line in comment.strip().split("\n"):
        if line.startswith("#!"):
            continue
        bare = _MARKS.sub("", _ENDS.sub("", line)).rstrip()
        bare = _RULE_AFTER_WORDS.sub("", bare)
        lines.append("" if _RULER.fullmatch(bare) or _NOT_WORDS.match(bare.strip()) else bare)
    return inspect.cleandoc("\n".join(lines)).strip()


def _without_rulers(text: str) -> str:
    """A docstring without lines that are only punctuation, except in code that is fenced."""
    lines: list[str] = []
    in_code = False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith("```")
        in_code ^= is_fence
        lines.append("" if not in_code and not is_fence and _RULER.fullmatch(line) else line)
    return "\n".join(lines)


def _blocks(comments: Sequence[_Comment], names: Sequence[_Name]) -> Iterator[str]:
    """The comments of the whole file, then each name with its own, then the names that have none."""
    lines = [name.line for name in names]
    texts: dict[int | None, list[str]] = {}
    for comment in comments:
        texts.setdefault(_owner(comment, names, lines), []).append(comment.text)
    headed: set[int] = set()
    for owner in texts:
        place = owner
        while place is not None and place not in headed:  # a class without a comment has methods with one
            headed.add(place)
            place = names[place].parent
    yield from (_lowered(text, 0) for text in texts.get(None, ()))
    for place in sorted(headed):
        yield heading(names[place].level, names[place].name)
        yield from (_lowered(text, names[place].level) for text in texts.get(place, ()))
    yield ", ".join(dict.fromkeys(one.name for place, one in enumerate(names) if place not in headed))


def _lowered(text: str, level: int) -> str:
    """A comment whose own headings are below the name that it is of. Other lines do not read as headings."""
    lines, given = [""], text.split("\n")
    above_code = _above_code(given)
    in_code = False
    for place, line in enumerate(given):
        in_code ^= line.lstrip().startswith("```")
        found = None if in_code else _HEADING.fullmatch(line)
        if found and not lines[-1].strip() and not above_code[place]:
            lines += ["", heading(len(found[1]) + level, found[2]), ""]
        else:
            lines.append(line if in_code else escaped(line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _above_code(lines: Sequence[str]) -> list[bool]:
    """For each line, whether code of an example follows it, with lines that begin with # between or none."""
    found = [False] * (len(lines) + 1)
    for place in range(len(lines) - 1, 0, -1):
        line = lines[place].lstrip()
        found[place - 1] = line.startswith(_PROMPT) or (line.startswith("#") and found[place])
    return found


def _owner(comment: _Comment, names: Sequence[_Name], lines: Sequence[int]) -> int | None:
    """The name that a comment is of: the one after it, or the one that it stands within; None: the whole file."""
    after = bisect_right(lines, comment.last)
    if comment.within or after == len(names) or names[after].line > comment.last + 2:
        return comment.scope
    return after if comment.indent <= names[after].indent else comment.scope
