"""The files of a folder: which are read, and which are not."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lexent.artifact import MANIFEST
from lexent.corpus import formats
from lexent.corpus.formats import source_code
from lexent.corpus.problems import RowError
from lexent.corpus.readers import READERS
from lexent.corpus.unread import Unread
from lexent.errors import InputError

TABLE_SUFFIXES = tuple(suffix for suffix in READERS if suffix != ".json")
"""Tables that are read in a folder. Most .json files there are settings of programs."""
INDEX_SUFFIX = ".lexent"
"""Of the folder that `lexent index` makes."""
HIDDEN, LINKED, NO_SUFFIX, NO_FILE = "hidden", "linked folders", "without a suffix", "broken links or devices"
EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """What stands below a folder, sorted by path."""

    folder: Path
    paths: tuple[Path, ...]
    """The files that are read: tables, and files that are documents."""
    unread: Unread
    errors: tuple[RowError, ...]
    """Folders that may not be read."""

    def id_of(self, path: Path) -> str:
        """The path below the folder."""
        return path.relative_to(self.folder).as_posix()

    @property
    def tables(self) -> list[Path]:
        """The files whose rows are documents."""
        return [path for path in self.paths if is_table(path)]

    def counts(self) -> dict[str, int]:
        """How many files are read, by suffix, the most frequent first."""
        return dict(Counter(formats.suffix_of(path) for path in self.paths).most_common())


def is_table(path: Path) -> bool:
    """Whether each row of the file is a document."""
    return formats.suffix_of(path) in READERS


def files_below(folder: Path) -> FolderFiles:
    """The files below a folder. Hidden files and folders, and links to folders, are counted and left out."""
    found: list[Path] = []
    unread: Counter[str] = Counter()
    errors: list[RowError] = []

    def refused(error: OSError) -> None:
        where = str(error.filename)
        errors.append(
            RowError(
                f"{where}: the folder cannot be read ({error.strerror}); allow it: chmod u+rx {where}",
                where=where,
                reason="no permission",
            )
        )

    for root, folders, names in os.walk(folder, onerror=refused):
        unread[HIDDEN] += sum(name.startswith(".") for name in (*folders, *names))
        indexes = [name for name in folders if name.endswith(INDEX_SUFFIX) and Path(root, name, MANIFEST).is_file()]
        unread["indexes of Lexent"] += len(indexes)
        folders[:] = [name for name in folders if not name.startswith(".") and name not in indexes]
        unread[LINKED] += sum(os.path.islink(os.path.join(root, name)) for name in folders)
        for name in names:
            path = Path(root, name)
            if name.startswith("."):
                continue
            suffix = formats.suffix_of(path)
            if not path.is_file():  # opening a named pipe would wait for ever
                unread[NO_FILE] += 1
            elif suffix in TABLE_SUFFIXES or suffix in source_code.SUFFIXES:
                found.append(path)
            elif formats.format_of(path):
                if path.stat().st_size:
                    found.append(path)
                else:
                    unread[EMPTY] += 1
            else:
                unread[suffix or NO_SUFFIX] += 1
    found.sort(key=lambda path: path.relative_to(folder).as_posix())
    return FolderFiles(folder, tuple(found), Unread({kind: n for kind, n in unread.items() if n}), tuple(errors))


def check_not_empty(files: FolderFiles) -> None:
    """An InputError for a folder without a file that is read; it says what there is."""
    if files.paths:
        return
    for error in files.errors:
        raise error
    others = f"; not read: {files.unread}" if files.unread else ""
    raise InputError(
        f"{files.folder} holds no corpus.jsonl and no file that is read{others}; "
        f"give a folder that does ({', '.join((*formats.SUFFIXES[:13], '...'))}), or one file"
    )
