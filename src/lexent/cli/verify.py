"""lexent verify: is an index, a lexicon or an adapter as it was written?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lexent.cli import options
from lexent.cli.console import show, show_json


def verify(
    path: Annotated[
        Path, typer.Argument(metavar="DIR", help="An index, a lexicon or an adapter: its folder, or a shipped lexicon.")
    ],
    json: options.Json = False,
) -> None:
    """Read every file of an index, a lexicon or an adapter and compare it with its checksum.

    Damage is an error that names the files.
    """
    from lexent import artifact
    from lexent.cli.info import read_artefact

    folder, kind, manifest = read_artefact(path)
    make = {"lexicon": "lexent train TEXTS", "adapter": "lexent adapt train COLLECTION"}.get(
        kind, "lexent index CORPUS"
    )
    remedy = f"make it again: {make} --out {folder} --overwrite"
    files = manifest["files"]
    artifact.check_sizes(folder, {name: file["size"] for name, file in files.items()}, remedy=remedy)
    artifact.check_hashes(folder, {name: file["sha256"] for name, file in files.items()}, remedy=remedy)
    size = sum(file["size"] for file in files.values())
    if json:
        show_json({"path": str(folder), "kind": kind, "files": len(files), "bytes": size, "verified": True})
        return
    show(f"verified  {folder}: {len(files)} files, {size / 1e6:,.1f} MB, all as they were written")
