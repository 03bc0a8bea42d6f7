"""An adapter on disk: one safetensors file and a manifest, whole or not at all, refused when damaged."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from lexent import arguments, artifact
from lexent.adapters.adapter import Adapter, AdapterInfo
from lexent.adapters.config import AdapterConfig
from lexent.errors import ArtifactError, InputError

T = TypeVar("T")

WEIGHTS = "adapter.safetensors"


def save(adapter: Adapter, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write beside and rename: the folder holds the old adapter or the new one, never a part."""
    from safetensors.numpy import save as packed

    with artifact.new_folder(Path(out), kind="adapter", overwrite=overwrite) as folder:
        artifact.write_bytes(folder / WEIGHTS, packed(adapter.tensors))
        head = {"kind": "adapter", "format": artifact.FORMAT_VERSION, "lexent": artifact.lexent_version()}
        files = artifact.describe_files(folder)
        artifact.write_json(folder / artifact.MANIFEST, {**head, **adapter.described(), "files": files})
    return Path(out)


def load(source: str | Path | Adapter) -> Adapter:
    """The adapter of a folder; one that is given itself is returned as it is."""
    if isinstance(source, Adapter):
        return source
    from safetensors import SafetensorError
    from safetensors.numpy import load as unpacked

    folder = Path(source)
    remedy = f"train it again: lexent adapt train COLLECTION --out {folder}"
    manifest = artifact.read_manifest(folder, kind="adapter")
    try:
        facts = manifest["files"][WEIGHTS]
        size, sha256 = int(facts["size"]), str(facts["sha256"])
        config = _read(AdapterConfig, manifest["config"])
        info = _read(AdapterInfo, {each.name: manifest[each.name] for each in fields(AdapterInfo)})
        if not isinstance(info.training, dict):
            raise ValueError(f"training: {info.training!r}")
    except (KeyError, TypeError, ValueError, AttributeError, InputError) as error:
        raise ArtifactError(f'"{folder}" is damaged: its {artifact.MANIFEST} has no good {error}; {remedy}') from error
    artifact.check_sizes(folder, {WEIGHTS: size}, remedy=remedy)
    artifact.check_hashes(folder, {WEIGHTS: sha256}, remedy=remedy)
    try:
        tensors = unpacked((folder / WEIGHTS).read_bytes())
        return Adapter(config, tensors, info)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f'"{folder}" is damaged: {WEIGHTS}: {error}; {remedy}') from error
    except ArtifactError as error:
        raise ArtifactError(f'"{folder}" is damaged: {error}; {remedy}') from error


def _read(kind: type[T], values: dict[str, Any]) -> T:
    """A dataclass from JSON: all of its fields and no others, each of the type that it is declared with."""
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    if values.keys() != known:
        raise ValueError(f"fields: {', '.join(sorted(set(values) ^ known))}")
    found = kind(**values)
    arguments.fields_of(found)
    return found
