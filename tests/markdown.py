"""What a page of documentation holds: its code blocks, code spans, commands and links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHELL = ("", "sh", "bash", "console")
"""The languages that a fenced block of commands may name."""
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PYTHON = re.compile(r"^(from|import) \S+|^[\w., ]+ = \w|^for .*:$|^print\(|^[a-z]\w*\.\w+\(", re.MULTILINE)


def pages() -> list[Path]:
    """Everything that a user reads: README, docs/, the guides for contributors and releases, the lexicons' cards."""
    cards = sorted((ROOT / "src/lexent/lexicon/shipped").glob("*/README.md"))
    guides = [ROOT / "CONTRIBUTING.md", ROOT / "RELEASING.md"]
    return [ROOT / "README.md", *guides, *sorted((ROOT / "docs").glob("*.md")), *cards]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix().removeprefix("src/lexent/lexicon/shipped/")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: the language that its fence names, "" for none and for indented blocks."""

    language: str
    text: str


def split(text: str) -> tuple[list[Block], str]:
    """The code blocks of a page, fenced or indented, and the prose between them."""
    blocks: list[Block] = []
    prose: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("```"):
            end = next(number for number in range(at + 1, len(lines)) if lines[number].startswith("```"))
            blocks.append(Block(line[3:].strip(), "\n".join(lines[at + 1 : end]) + "\n"))
            at = end + 1
        elif line.startswith("    ") and (at == 0 or not lines[at - 1].strip()) and not _in_list(prose):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            blocks.append(Block("", "\n".join(row[4:] for row in lines[at:end]).rstrip() + "\n"))
            at = end
        else:
            prose.append(line)
            at += 1
    return blocks, "\n".join(prose)


def _in_list(prose: list[str]) -> bool:
    """Whether an indented line goes on with an item of a list."""
    last = next((line for line in reversed(prose) if line.strip()), "")
    return bool(re.match(r"\s*([-*]|\d+\.) ", last))


def python(page: Path) -> list[str]:
    """The blocks of Python, fenced as such or indented and looking like it."""
    blocks, _ = split(page.read_text())
    return [
        block.text
        for block in blocks
        if block.language == "python" or (not block.language and _looks_like_python(block.text))
    ]


def _looks_like_python(text: str) -> bool:
    try:
        compile(text, "block", "exec")
    except SyntaxError:
        return False
    return bool(_PYTHON.search(text))


def json_blocks(page: Path) -> list[str]:
    blocks, _ = split(page.read_text())
    return [block.text for block in blocks if block.language == "json"]


def spans(page: Path) -> list[str]:
    """The code spans of the prose; one that goes over two lines is joined."""
    _, prose = split(page.read_text())
    paragraphs = re.split(r"\n\s*\n", prose)
    return [" ".join(span.split()) for paragraph in paragraphs for span in _SPAN.findall(paragraph)]


@dataclass(frozen=True, slots=True)
class Command:
    """The words of a command without the program's name. One in the prose may be a part of a command."""

    page: str
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(' '.join(self.words).split())}"


def commands(page: Path, program: str) -> list[Command]:
    """Every command of a program: in blocks, in code spans, and after "- command:"."""
    text = page.read_text()
    blocks, prose = split(text)
    shell = [line for block in blocks if block.language in SHELL for line in _logical(block.text)]
    shell += re.findall(r"^- command: (?!`)(.+)$", prose, re.MULTILINE)
    lines = [(line, True) for line in shell] + [(span, False) for span in spans(page)]
    found = [(words, whole) for line, whole in lines for words in _parts(line)]
    return [Command(name(page), tuple(words[1:]), whole) for words, whole in found if words[:1] == [program]]


def _logical(text: str) -> Iterator[str]:
    """The lines of a block, with those joined that end in a backslash, or in an open quote."""
    whole = ""
    for line in text.splitlines():
        whole += line.removeprefix("$ ")
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        if _words(whole) is None and whole.startswith(("curl ", "lexent ")):
            whole += "\n"
            continue
        yield whole
        whole = ""
    if whole:
        yield whole


def _parts(line: str) -> Iterator[list[str]]:
    """The commands that a line has, parted by && and |."""
    words = _words(line) or []
    part: list[str] = []
    for word in words:
        if word in ("&&", "|"):
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _words(line: str) -> list[str] | None:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return None


def links(page: Path) -> list[str]:
    """Where links and images point to."""
    _, prose = split(page.read_text())
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    _, prose = split(page.read_text())
    heads = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower().replace("`", "")).replace(" ", "-") for head in heads}
