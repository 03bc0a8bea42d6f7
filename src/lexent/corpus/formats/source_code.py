"""Source code: what it says in words.

Comments and docstrings stand below the name of the function or class that they are of; names without a comment follow
at the end. The code itself is left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lexent.corpus.formats.parts import Part, SourceFile, heading, joined
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
_ENDS = re.compile(r"[ \t]*(?:\*+/|\*\)|-\}|-->|\]\]|\"\"\"|''')[ \t]*$")
_DECLARES = {
    **dict.fromkeys(("func", "function", "fn", "def", "fun"), "function"),
    **dict.fromkeys(("class", "interface", "type", "struct", "enum", "trait"), "class"),
}
"""Words before a name, for languages whose other names read alike."""
_RULER = re.compile(r"[\W_]*")
_STRING = re.compile(r"[a-zA-Z]{0,2}(\"\"\"|'''|\"|')(.*)\1", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_NOT_WORDS = re.compile(
    r"-\*-.*-\*-|(?:vim?|ex):\s*set? |noqa\b|type: ignore|pylint:|eslint-disable|fmt: (?:on|off|skip)"
)


@dataclass(slots=True)
class _Comment:
    text: str
    first: int
    """Line."""
    last: int
    within: bool
    """Whether it is a docstring or stands after code on its line: it is of the name before it."""


@dataclass(frozen=True, slots=True)
class _Name:
    name: str
    line: int
    is_class: bool


def read_source_code(file: SourceFile) -> Iterator[Part]:
    """A file of code; it is called by its name."""
    text = file.text()
    comments, names = _found(_lexer(file, text), text)
    yield Part(joined(_blocks(comments, names)), title=unpacked_name(file.path.name))


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


def _found(lexer: Any, text: str) -> tuple[list[_Comment], list[_Name]]:
    """The comments, and the names that are defined, in the order of the file."""
    comments: list[_Comment] = []
    names: list[_Name] = []
    line, place = 1, 0
    for start, kind, value in _pieces(lexer, text):
        line, place = line + text.count("\n", place, start), start
        if kind == "comment":
            is_code_before = bool(text[text.rfind("\n", 0, start) + 1 : start].strip())
            _add(comments, value, line, is_code_before=is_code_before)
        else:
            names.append(_Name(value.strip(), line, kind == "class"))
    return [comment for comment in comments if not _RULER.fullmatch(comment.text)], names


def _pieces(lexer: Any, text: str) -> Iterator[tuple[int, str, str]]:
    """Comments, and names of functions and classes, each with the place where it begins."""
    from pygments.token import Comment, Keyword, Name, String

    words = (Comment, Comment.Single, Comment.Multiline, Comment.Special, Comment.Doc, String.Doc)
    begin, held = 0, ""
    declared, depth = "", 0
    for start, kind, value in lexer.get_tokens_unprocessed(text):
        if kind in words and held and start == begin + len(held):  # one comment in several tokens
            held += value
            continue
        if held.strip():
            yield begin, "comment", held
        begin, held = (start, value) if kind in words else (0, "")
        if held or not value.strip():
            continue
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


def _add(comments: list[_Comment], value: str, line: int, *, is_code_before: bool) -> None:
    """Adds a comment; one on the line after another goes on with it."""
    last = line + value.rstrip("\n").count("\n")
    docstring = _STRING.fullmatch(value.strip())
    text = inspect.cleandoc(docstring[2]) if docstring else _words_of(value)
    within = docstring is not None or is_code_before
    previous = comments[-1] if comments else None
    if previous and not within and not previous.within and line == previous.last + 1:
        previous.text, previous.last = f"{previous.text}\n{text}", last
    else:
        comments.append(_Comment(text, line, last, within))


def _words_of(comment: str) -> str:
    """A comment without its marks, and without what only programs read."""
    lines = []
    for line in comment.strip().split("\n"):
        if line.startswith("#!"):
            continue
        bare = _MARKS.sub("", _ENDS.sub("", line)).rstrip()
        lines.append("" if _RULER.fullmatch(bare) or _NOT_WORDS.match(bare.strip()) else bare)
    return inspect.cleandoc("\n".join(lines)).strip()


def _blocks(comments: list[_Comment], names: list[_Name]) -> Iterator[str]:
    """Headings and comments, and the names that have none."""
    described: set[int] = set()
    for comment in comments:
        of = _owner(comment, names)
        level = 0
        if of is not None:
            level = 1 if names[of].is_class else 2
            if of not in described:
                yield heading(level, names[of].name)
            described.add(of)
        yield _lowered(comment.text, level)
    yield ", ".join(dict.fromkeys(one.name for place, one in enumerate(names) if place not in described))


def _lowered(text: str, level: int) -> str:
    """A comment whose own headings are below the name that it is of."""
    lines: list[str] = []
    in_code = False
    for line in text.split("\n"):
        in_code ^= line.lstrip().startswith("```")
        found = None if in_code else _HEADING.fullmatch(line)
        lines += ["", heading(len(found[1]) + level, found[2]), ""] if found else [line]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _owner(comment: _Comment, names: list[_Name]) -> int | None:
    """The name that a comment is of: the one after it, or the one that it stands within."""
    before = [place for place, one in enumerate(names) if one.line <= comment.first]
    after = next((place for place, one in enumerate(names) if one.line > comment.last), None)
    if not comment.within and after is not None and names[after].line <= comment.last + 2:
        return after
    return before[-1] if before and (comment.within or comment.first > names[before[-1]].line) else None
