"""Lists of files: which strings of a list name files to read, and which are texts.

A pathlib.Path is always a file or folder. A string names a file where such a file exists and its suffix is one that
Lexent reads, or where a folder of that name exists. A list whose items all name files or folders is read as files. A
list of which only some items name files is refused, and so is a string that reads as a file name (no blank, a known
suffix that is not of source code: "node.js" is a word) where no such file exists. A document as a dict is never a file:
{"text": "notes.txt"}.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lexent.corpus import formats
from lexent.corpus.formats import source_code
from lexent.corpus.lines import unpacked_name
from lexent.corpus.readers import READERS
from lexent.errors import InputError, NotFoundError

SUFFIXES = (*READERS, *formats.SUFFIXES)
_NO_WORDS = tuple(suffix for suffix in SUFFIXES if suffix not in source_code.SUFFIXES)
_LONGEST_NAME = 4096
"""Characters of a path, on Linux."""


def files_of(items: Sequence[Any], name: str) -> list[Path] | None:
    """The files and folders that all items name; None where the items are texts or documents.

    name: what messages call the list.
    """
    files = [place for place, item in enumerate(items) if names_file(item)]
    missing = [place for place, item in enumerate(items) if isinstance(item, str) and _reads_as_file_name(item)]
    if missing:
        item = items[missing[0]]
        raise NotFoundError(
            f'{name}, item {missing[0] + 1}: no such file: "{item}"; check the path; '
            f'to index the string itself, give {{"text": "{item}"}}'
        )
    if not files:
        folders = bool(items) and all(isinstance(item, str) and _is_folder(item) for item in items)
        return [Path(item) for item in items] if folders else None
    for place, item in enumerate(items):
        if names_file(item) or (isinstance(item, str) and _is_folder(item)):
            continue
        raise InputError(
            f'{name} mixes files and other items: item {files[0] + 1} names the file "{items[files[0]]}", item '
            f"{place + 1} is {_short(item)}; give files alone, or give a text that is no file as "
            '{"text": "..."}'
        )
    return [Path(item) for item in items]


def names_file(item: object) -> bool:
    """Whether an item is a path, or a string that names an existing file of a known suffix."""
    if isinstance(item, os.PathLike):
        return True
    return isinstance(item, str) and _has_suffix(item) and _is_file(item)


def _reads_as_file_name(item: str) -> bool:
    return _has_suffix(item, _NO_WORDS) and not any(sign.isspace() for sign in item) and not _is_file(item)


def _has_suffix(item: str, suffixes: tuple[str, ...] = SUFFIXES) -> bool:
    return len(item) <= _LONGEST_NAME and unpacked_name(item[-16:]).lower().endswith(suffixes)


def _is_file(item: str) -> bool:
    return "\0" not in item and os.path.isfile(item)


def _is_folder(item: str) -> bool:
    return bool(item) and len(item) <= _LONGEST_NAME and "\0" not in item and os.path.isdir(item)


def _short(item: object) -> str:
    shown = repr(item)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
