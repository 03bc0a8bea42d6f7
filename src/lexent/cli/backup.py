"""lexent backup and restore: an index to one file while others write to it, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli import options
from lexent.cli.console import Output, command, is_verbose, say
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.indexing.manifest import Manifest

STREAM = "-"
"""The name that means stdout or stdin."""


def backup(
    path: options.IndexPath,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file to write: a tar archive, compressed if it ends in .gz or .tgz; - for stdout."
        ),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there, once the new one is whole.")
    ] = False,
) -> Output | None:
    """Write an index to one file, while others may write to the index.

    The file holds one state of the index, with every change that ended before. It appears when it is whole, and every
    file of the index was compared with its checksum. It does not hold the encoder and the lexicon.
    """
    from lexent.indexing.backup import backup

    if str(file) == STREAM:
        if sys.stdout.isatty():
            raise InputError(f"a backup is no text for a terminal; send it on: lexent backup {path} - > FILE")
        manifest = backup(path, sys.stdout.buffer, progress=is_verbose())
        say(_line("backed up", path, STREAM, manifest))
        return None
    manifest = backup(path, file, overwrite=overwrite, progress=is_verbose())
    size = file.stat().st_size
    facts = {**_facts(path, file, manifest), "bytes": size, "encoder": manifest.encoder.source}
    line = f"{_line('backed up', path, file, manifest)}, {size / 1e6:,.1f} MB"
    return Output(
        {**facts, "lexicon": manifest.lexicon.source},
        [line],
        [command("lexent", "restore", file, "NEW_DIR")],
        notes=[f"not in the file, keep a copy: {source}" for source in _folders(manifest)],
    )


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `lexent backup` wrote; - for stdin.")],
    path: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the index to make.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an index that is there, once the new one is whole.")
    ] = False,
) -> Output:
    """Make an index of a backup.

    The folder appears when every file in it has its checksum. A file that was cut or changed is refused, and leaves
    nothing behind.
    """
    from lexent.indexing.backup import restore

    source: Path | IO[bytes] = sys.stdin.buffer if str(file) == STREAM else file
    manifest = restore(source, path, overwrite=overwrite, progress=is_verbose())
    size = sum(part.size for part in manifest.files.values())
    line = f"{_line('restored', file, path, manifest)}, {size / 1e6:,.1f} MB, every file as it was backed up"
    facts = {**_facts(path, file, manifest), "bytes": size, "verified": True}
    return Output(facts, [line], [command("lexent", "search", path, "your question")])


def _facts(path: Path, file: Path, manifest: Manifest) -> dict[str, Any]:
    counts = manifest.counts
    return {
        "path": str(path),
        "file": str(file),
        "documents": counts.documents,
        "passages": counts.passages,
        "generation": manifest.generation,
        "files": len(manifest.files),
    }


def _line(what: str, source: object, target: object, manifest: Manifest) -> str:
    counts = manifest.counts
    return f"{what:<10} {source} -> {target}: {counts.documents:,} documents, generation {manifest.generation}"


def _folders(manifest: Manifest) -> list[str]:
    """The folders that the index names and does not hold."""
    parts = {"encoder": manifest.encoder.source, "lexicon": manifest.lexicon.source}
    return [f"the {name} in {source}" for name, source in parts.items() if Path(source).is_absolute()]
