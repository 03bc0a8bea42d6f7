"""lexent info and verify: what an index, a lexicon or an adapter says about itself, and whether it is undamaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from lexent.cli.console import Output, command

ArtefactPath = Annotated[
    Path,
    typer.Argument(metavar="PATH", help="An index, a lexicon or an adapter: its folder, or a shipped lexicon's name."),
]


def info(path: ArtefactPath) -> Output:
    """Show what an index, a lexicon or an adapter holds, what it was made with and by which settings."""
    folder, kind, manifest = read_artefact(path)
    files = manifest.pop("files", {})
    size = sum(file["size"] for file in files.values())
    found: dict[str, Any] = {"path": str(folder), **manifest, "bytes": size, "files": files}
    following = {
        "index": command("lexent", "search", path, "your question"),
        "lexicon": command("lexent", "concepts", "list", "--lexicon", path),
    }
    return Output(found, _lines(found), [following.get(kind, command("lexent", "adapt", "eval", "COLLECTION", path))])


def verify(path: ArtefactPath) -> Output:
    """Read every file of an index, a lexicon or an adapter and compare it with its checksum.

    Damage is an error that names the files.
    """
    folder, kind, manifest = read_artefact(path)
    makers = {"lexicon": "lexent train TEXTS", "adapter": "lexent adapt train COLLECTION"}
    remedy = f"make it again: {makers.get(kind, 'lexent index CORPUS')} --out {folder} --overwrite"
    files = manifest["files"]
    size = checked_size(folder, files, remedy=remedy)
    return Output(
        {"path": str(folder), "kind": kind, "files": len(files), "bytes": size, "verified": True},
        [f"verified  {folder}: {len(files)} files, {size / 1e6:,.1f} MB, all as they were written"],
    )


def checked_size(folder: Path, files: dict[str, Any], *, remedy: str) -> int:
    """The bytes of an artefact's files, all of which must be as its manifest has them."""
    from lexent import artifact

    sizes = {name: file["size"] for name, file in files.items()}
    artifact.check_sizes(folder, sizes, remedy=remedy)
    artifact.check_hashes(folder, {name: file["sha256"] for name, file in files.items()}, remedy=remedy)
    return sum(sizes.values())


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
        _check_files(path, manifest)
        return path, "lexicon", {**manifest, "autoencoder": read_json(path / "cfg.json")}
    if _kind(path) == "adapter":
        manifest = artifact.read_manifest(path, kind="adapter")
        _check_files(path, manifest)
        return path, "adapter", manifest
    found = Manifest.read(path)
    facts = found.model_dump()
    return path, "index", {**facts, "stores": found.store_sizes(), "files": facts["files"]}


def _check_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse a manifest that does not say how large its files are, and what their checksums are."""
    from pydantic import TypeAdapter, ValidationError

    from lexent.errors import ArtifactError
    from lexent.indexing.manifest import FilePart

    try:
        TypeAdapter(dict[str, FilePart]).validate_python(manifest.get("files"), strict=True)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ArtifactError(f'"{folder}" is damaged: its manifest.json has no good list of files ({reason})') from error


def _kind(folder: Path) -> str:
    """What a folder says it is; "index" where it says nothing, so that reading it as one gives the reason."""
    from lexent.artifact import MANIFEST

    return str(read_json(folder / MANIFEST).get("kind", "index"))


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one where there is none."""
    from lexent import artifact

    try:
        found = artifact.read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """A line a fact, nested ones indented below their name."""
    for name, value in found.items():
        if name == "files":
            yield "files"
            for file, facts in value.items():
                yield f"  {file:<28} {facts['size']:>14,} bytes  sha256 {facts['sha256'][:16]}"
        elif name == "bytes":
            yield f"{'size':<22} {value / 1e6:,.1f} MB"
        else:
            yield from _fact(name, value, margin="")


def _fact(name: str, value: Any, *, margin: str) -> Iterator[str]:
    name = name.replace("_", " ")
    if isinstance(value, dict) and value:
        yield f"{margin}{name}"
        for inner, part in value.items():
            yield from _fact(inner, part, margin=f"{margin}  ")
        return
    if isinstance(value, tuple) and value and all(isinstance(one, dict) for one in value):
        yield f"{margin}{name}"
        for one in value:
            yield f"{margin}  {', '.join(f'{key} {part}' for key, part in one.items() if part not in (None, {}))}"
        return
    shown = "none" if value in (None, "", {}, [], ()) else value
    if isinstance(value, int) and not isinstance(value, bool) and name != "format":
        shown = f"{value:,}"
    elif isinstance(value, tuple) and value and all(isinstance(one, str) for one in value):
        shown = ", ".join(value)
    yield f"{margin}{name:<{22 - len(margin)}} {shown}"
