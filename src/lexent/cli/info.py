"""lexent info: what an index, a lexicon or an adapter says about itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lexent.cli import options
from lexent.cli.console import command, say_next, show, show_json


def info(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="An index, a lexicon or an adapter: its folder, or a shipped lexicon's name."
        ),
    ],
    json: options.Json = False,
) -> None:
    """Show what an index, a lexicon or an adapter holds, what it was made with and by which settings."""
    folder, kind, manifest = read_artefact(path)
    files = manifest.get("files", {})
    found: dict[str, Any] = {
        "path": str(folder),
        **{name: value for name, value in manifest.items() if name != "files"},
        "bytes": sum(file["size"] for file in files.values()),
        "files": files,
    }
    if json:
        show_json(found)
        return
    _show(found)
    if kind == "index":
        say_next(command("lexent", "search", path, "your question"))
    elif kind == "lexicon":
        say_next(command("lexent", "concepts", "list", "--lexicon", path))
    else:
        say_next(command("lexent", "adapt", "eval", "COLLECTION", path))


def read_artefact(path: Path) -> tuple[Path, str, dict[str, Any]]:
    """The folder of an index, a lexicon or an adapter, which of them it is, and its manifest."""
    from lexent import artifact
    from lexent.errors import NotFoundError
    from lexent.indexing.manifest import Manifest
    from lexent.lexicon import shipped

    artifact.recover(path)
    if not path.exists():
        if str(path) not in shipped():
            names = ", ".join(shipped()) or "none"
            raise NotFoundError(
                f'no index or lexicon at "{path}"; shipped lexicons: {names}; make one: '
                f"lexent index CORPUS --out {path}"
            )
        path = shipped()[str(path)]
    if _kind(path) == "lexicon":
        manifest = artifact.read_manifest(path, kind="lexicon")
        return path, "lexicon", {**manifest, "autoencoder": _json(path / "cfg.json")}
    if _kind(path) == "adapter":
        return path, "adapter", artifact.read_manifest(path, kind="adapter")
    found = Manifest.read(path)
    facts = found.model_dump()
    return path, "index", {**facts, "stores": found.store_sizes(), "files": facts["files"]}


def _kind(folder: Path) -> str:
    """What a folder says it is; "index" where it says nothing, so that reading it as one gives the reason."""
    from lexent.artifact import MANIFEST

    return str(_json(folder / MANIFEST).get("kind", "index"))


def _json(path: Path) -> dict[str, Any]:
    from json import loads

    try:
        found = loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _show(found: dict[str, Any]) -> None:
    """A line a fact, nested ones indented below their name."""
    for name, value in found.items():
        if name == "files":
            show("files")
            for file, facts in value.items():
                show(f"  {file:<28} {facts['size']:>14,} bytes  sha256 {facts['sha256'][:16]}")
        elif name == "bytes":
            show(f"{'size':<22} {value / 1e6:,.1f} MB")
        else:
            _show_fact(name, value, depth=0)


def _show_fact(name: str, value: Any, *, depth: int) -> None:
    margin = "  " * depth
    if isinstance(value, dict) and value:
        show(f"{margin}{name.replace('_', ' ')}")
        for inner, part in value.items():
            _show_fact(inner, part, depth=depth + 1)
        return
    whole = isinstance(value, int) and not isinstance(value, bool) and name != "format"
    shown = f"{value:,}" if whole else ("none" if value in (None, "", {}, [], ()) else value)
    if isinstance(value, tuple) and value and all(isinstance(one, str) for one in value):
        shown = ", ".join(value)
    show(f"{margin}{name.replace('_', ' '):<{22 - len(margin)}} {shown}")
