"""Prose files as documents: a folder of .txt and .md files, or one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from lexent.corpus.lines import lines
from lexent.corpus.table import Row, Table
from lexent.errors import InputError
from lexent.types import Document

SUFFIXES = (".txt", ".md")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*\s*")


def folder_table(folder: Path) -> Table:
    """Every .txt and .md file below the folder, by path; hidden files and folders are left out."""
    paths = prose_paths(folder)
    if not paths:
        others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        shown = ", ".join(others[:8]) + (", …" if len(others) > 8 else "")
        raise InputError(
            f"{folder} holds no corpus.jsonl, no .txt and no .md file" + (f"; it holds: {shown}" if others else "")
            + "; give a folder that does, or one file: .jsonl, .csv, .tsv, .parquet"
        )  # fmt: skip

    def rows() -> Iterator[tuple[int, Row]]:
        for number, path in enumerate(paths, 1):
            yield number, prose_document(path, id=path.relative_to(folder).as_posix())

    return Table(name=str(folder), unit="file", rows=rows, count=lambda: len(paths))


def file_table(path: Path) -> Table:
    """One .txt or .md file as one document."""

    def rows() -> Iterator[tuple[int, Row]]:
        yield 1, prose_document(path, id=path.name)

    return Table(name=str(path), unit="file", rows=rows, count=lambda: 1)


def prose_paths(folder: Path) -> list[Path]:
    """The .txt and .md files below a folder, sorted; hidden folders are left out."""
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(root, name) for name in names if name.lower().endswith(SUFFIXES) and not name.startswith(".")]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def prose_document(path: Path, *, id: str) -> Document:
    """The file's text. The title is the first Markdown heading, else the file's name without its ending."""
    text = "".join(line for _, line in lines(path)).replace("\r\n", "\n").strip()
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    title = name.stem
    if name.suffix.lower() == ".md":
        fenced = False
        for place, line in enumerate(text.split("\n")):
            if line.startswith(("```", "~~~")):
                fenced = not fenced
            heading = None if fenced else _HEADING.fullmatch(line)
            if heading and heading.group(1):
                title = heading.group(1)
                if place == 0:  # the title is encoded with the text: do not count the heading twice
                    text = text[len(line) :].strip()
                break
    return Document(id=id, text=text, title=title)
