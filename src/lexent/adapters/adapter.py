"""An adapter: a projector and two small networks that change how a frozen retriever compares a query and documents.

q, d      unit vectors of the encoder
q', d'    projected by P and brought to unit length
d''       W d' + b, made by the query adapter from q'
q''       W q' + b, made by the document adapter: the mean over the feedback documents
score     cosine of q'' and d''
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lexent import arguments, artifact
from lexent.adapters.config import AdapterConfig
from lexent.adapters.modulation import Diagonal, Full, Modulation, Rows, of_outputs
from lexent.encoders import Encoder
from lexent.errors import ArtifactError, InputError, MismatchError

T = TypeVar("T")

SIDES = ("query", "document")
WEIGHTS = "adapter.safetensors"
DOCUMENTS_PER_STEP = 8192
"""Documents that are projected at a time."""


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """What an adapter says of itself."""

    name: str
    encoder_id: str
    encoder_fingerprint: str
    kept_base: bool = False
    """Validation found nothing better than the base retriever: this adapter changes nothing."""
    training: dict[str, Any] = field(default_factory=dict)
    """Where it was trained, how, and what was measured; free form."""


@dataclass(frozen=True, slots=True)
class AdaptedQuery:
    """A query as the adapter sees it."""

    base: Rows  # [dim], unit
    projected: Rows  # [width], unit
    vector: Rows  # [width], after the document adapter; of any length
    by: Modulation
    """What the feedback documents put upon the query."""
    upon: Modulation
    """What the query puts upon documents."""


class Adapter:
    """The networks as they are used: NumPy alone."""

    def __init__(self, config: AdapterConfig, tensors: Mapping[str, NDArray[np.float32]], info: AdapterInfo) -> None:
        """tensors: as `shapes` names them, float32."""
        wanted = shapes(config)
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if found != wanted:
            name = next(name for name in sorted({*found, *wanted}) if found.get(name) != wanted.get(name))
            raise ArtifactError(
                f"the tensor {name} of an adapter {config.dim} to {config.width} ({config.mode}) has the shape "
                f"{wanted.get(name, 'none: it does not belong there')}; given: {found.get(name, 'none')}"
            )
        for name, tensor in tensors.items():
            if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
                raise ArtifactError(f"the tensor {name} holds what is no finite float32 number")
        self.config = config
        self.info = info
        self.tensors = dict(tensors)

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.info.name

    @property
    def hash(self) -> str:
        """Changes when any score would."""
        digest = hashlib.sha256(json.dumps(asdict(self.config), sort_keys=True).encode())
        for name in sorted(self.tensors):
            digest.update(name.encode() + self.tensors[name].tobytes())
        return digest.hexdigest()[:16]

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        return sum(tensor.size for name, tensor in self.tensors.items() if not name.startswith("corpus."))

    def check(self, encoder: Encoder) -> None:
        """Refuse an encoder that this adapter was not trained for."""
        if encoder.fingerprint != self.info.encoder_fingerprint:
            raise MismatchError(
                f'the adapter "{self.name}" was trained for the encoder "{self.info.encoder_id}" '
                f'({self.info.encoder_fingerprint}), not for "{encoder.id}" ({encoder.fingerprint}); train one for it: '
                f"lexent adapt train COLLECTION --encoder {encoder.id} --out DIR"
            )

    # --- the parts of a score --------------------------------------------------------------------------------------

    def project(self, rows: Rows) -> Rows:
        """float32[n, width]: rows of the encoder, projected and at unit length.

        An adapter that kept the base gives them as they are.
        """
        if rows.ndim != 2 or rows.shape[1] != self.config.dim:
            raise InputError(f"vectors of the shape {rows.shape} were given; this adapter reads [n, {self.config.dim}]")
        found = np.empty((len(rows), self.config.width), np.float32)
        for start in range(0, len(rows), DOCUMENTS_PER_STEP):
            part = slice(start, start + DOCUMENTS_PER_STEP)
            found[part] = unit(rows[part] @ self.tensors["projector"].T)
        return found

    def upon_documents(self, projected: Rows) -> Modulation:
        """What one projected query [width] puts upon documents."""
        return self._modulation("query", projected[None])

    def upon_query(self, feedback: Rows) -> Modulation:
        """What projected feedback documents [n, width] put upon a query: the mean of theirs."""
        if self.config.feedback == "corpus":
            bias = self.tensors["corpus.bias"]
            if self.config.mode == "diag":
                return Diagonal(self.tensors["corpus.scale"], bias)
            return Full(self.tensors["corpus.matrix"], bias)
        if self.config.feedback == "none" or not len(feedback):
            return Diagonal(np.ones(self.config.width, np.float32), np.zeros(self.config.width, np.float32))
        return self._modulation("document", feedback)

    def query(self, vector: Rows, feedback: Rows) -> AdaptedQuery:
        """One query [dim] and the projected documents [n, width] that modulate it."""
        base = unit(np.asarray(vector, np.float32)[None])
        projected = self.project(base)[0]
        by = self.upon_query(feedback)
        return AdaptedQuery(base[0], projected, by.apply(projected[None])[0], by, self.upon_documents(projected))

    def score(self, query: AdaptedQuery, projected: Rows) -> Rows:
        """float32[n]: the cosine of the query and of each projected document, modulated. The obvious way."""
        rows = query.upon.apply(projected)
        rows = centred(rows) if self.config.layer_norm else rows
        found: Rows = unit(rows) @ unit(self.compared(query)[None])[0]
        return found

    def compared(self, query: AdaptedQuery) -> Rows:
        """float32[width]: the modulated query as documents are compared with it."""
        return centred(query.vector[None])[0] if self.config.layer_norm else query.vector

    def effective(self, query: AdaptedQuery) -> Rows:
        """float32[dim]: the direction in the encoder's own space whose products with documents order them.

        score = (e.d + c) / lengths, where e is this and c the part of the bias, the same for all documents.
        """
        found: Rows = self.tensors["projector"].T @ query.upon.transposed(self.compared(query))
        return found

    def _modulation(self, side: str, rows: Rows) -> Modulation:
        """The mean of what the network of one side gives for projected rows."""
        part = {name: self.tensors[f"{side}.{name}"] for name in ("w1", "b1", "gain", "shift", "w2", "b2")}
        inner = rows @ part["w1"].T + part["b1"]
        inner = inner - inner.mean(axis=1, keepdims=True)
        inner /= np.sqrt(inner.var(axis=1, keepdims=True) + np.float32(1e-5))
        inner = np.maximum(inner * part["gain"] + part["shift"], 0)
        outputs = inner @ part["w2"].T + part["b2"]
        return of_outputs(outputs, mode=self.config.mode, width=self.config.width, rank=self.config.rank)

    def described(self) -> dict[str, Any]:
        """For a manifest and for --json."""
        return {"config": asdict(self.config), **asdict(self.info)}


def shapes(config: AdapterConfig) -> dict[str, tuple[int, ...]]:
    """The tensors of an adapter by name."""
    m = config.width
    found: dict[str, tuple[int, ...]] = {"projector": (m, config.dim)}
    for side in SIDES:
        found |= {
            f"{side}.w1": (config.hidden, m),
            f"{side}.b1": (config.hidden,),
            f"{side}.gain": (config.hidden,),
            f"{side}.shift": (config.hidden,),
            f"{side}.w2": (config.outputs, config.hidden),
            f"{side}.b2": (config.outputs,),
        }
    if config.feedback == "corpus":
        # The mean over all documents of the training corpus: the same for every query.
        matrix = {"corpus.scale": (m,)} if config.mode == "diag" else {"corpus.matrix": (m, m)}
        found |= {**matrix, "corpus.bias": (m,)}
    return found


def save(adapter: Adapter, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write beside and rename: the folder holds the old adapter or the new one, never a part."""
    from safetensors.numpy import save as packed

    with artifact.new_folder(Path(out), kind="adapter", overwrite=overwrite) as folder:
        artifact.write_bytes(folder / WEIGHTS, packed(adapter.tensors))
        artifact.write_manifest(folder, kind="adapter", facts=adapter.described())
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


def unit(rows: Rows) -> Rows:
    """The rows at length 1; rows of nothing stay so."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, np.where(lengths > 0, lengths, 1), dtype=np.float32)


def centred(rows: Rows) -> Rows:
    """The rows less their mean: what a layer norm leaves of them for a cosine, which lengths do not touch."""
    found: Rows = rows - rows.mean(axis=1, keepdims=True)
    return found
