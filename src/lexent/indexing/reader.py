"""One generation of an index, opened. It stays as it is whatever a writer does meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import artifact
from lexent.errors import ArtifactError, InputError, NotFoundError
from lexent.indexing import stores as side_stores
from lexent.indexing.documents import Documents
from lexent.indexing.filters import Filter
from lexent.indexing.manifest import SEGMENTS, Manifest, SegmentPart
from lexent.indexing.segment import REMEDY, Deleted, Segment
from lexent.indexing.stores import Stores
from lexent.recipes import Recipe
from lexent.types import Document

ATTEMPTS = 20


@dataclass(frozen=True)
class Snapshot:
    """The segments of an index, in the order of their documents; a position counts through all of them."""

    path: Path
    manifest: Manifest
    segments: tuple[Segment, ...]
    deleted: tuple[Deleted | None, ...]
    stores: tuple[Documents, ...]
    sides: tuple[Stores, ...]
    """What each segment keeps beside its lists and documents."""

    @staticmethod
    def open(path: Path) -> Snapshot:
        """The newest generation. A writer may take files away between two steps of this: it then begins again."""
        for _ in range(ATTEMPTS):
            manifest = Manifest.read(path)
            try:
                return _opened(path, manifest)
            except (FileNotFoundError, ArtifactError) as error:
                if Manifest.read(path) == manifest:
                    if isinstance(error, ArtifactError):
                        raise
                    raise ArtifactError(f'"{path}" is damaged: {error}; {REMEDY}') from error
        raise ArtifactError(f'"{path}" changed {ATTEMPTS} times while it was opened; try again')

    @property
    def bases(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(segment.n_documents for segment in self.segments)])

    def __len__(self) -> int:
        return self.manifest.counts.documents

    def close(self) -> None:
        for store in self.stores:
            store.close()

    # --- documents by position and by id -----------------------------------------------------------------------

    def at(self, positions: Sequence[int]) -> list[Document]:
        """The documents at these positions, in that order."""
        return [self.stores[place].at([local])[0] for place, local in map(self._locate, positions)]

    def ids(self, positions: Sequence[int]) -> list[str]:
        """The ids at these positions, without their texts."""
        return [self.stores[place].ids([local])[0] for place, local in map(self._locate, positions)]

    def get(self, id: str) -> Document:
        return self.at([self.position(id)])[0]

    def position(self, id: str) -> int:
        """Where the document of that id stands."""
        found = self.positions([id])
        if id not in found:
            some = [f'"{one}"' for store in self.stores[:1] for one in store.some_ids(3)]
            look = f"; ids look like {', '.join(some)}" if some else ""
            raise NotFoundError(f'no document "{id}" among {len(self)}{look}')
        return found[id]

    def positions(self, ids: Sequence[str]) -> dict[str, int]:
        """Where those of the ids stand that there are."""
        found = {}
        for place, store in enumerate(self.stores):
            gone, base = self.deleted[place], int(self.bases[place])
            for id, local in store.positions(ids).items():
                if gone is None or not gone.mask[local]:
                    found[id] = base + local
        return found

    def matching(self, where: Filter) -> list[NDArray[np.bool_]]:
        """For each segment, which of its documents match."""
        known = {name for store in self.stores for name in store.field_names()}
        unknown = sorted(set(where.names) - known)
        if unknown:
            raise InputError(
                f'no document has the field "{unknown[0]}"; fields: {", ".join(sorted(known)) or "none"}; '
                "fields come from the columns and metadata that were indexed"
            )
        for name, asked in where.kinds.items():
            there = {kind for store in self.stores for kind in store.field_kinds(name)}
            if asked and there and not asked & there:
                raise InputError(
                    f'the field "{name}" holds {" and ".join(sorted(there))} values, not {" or ".join(sorted(asked))} '
                    f'ones; quote a text, as in {{"{name}": "2019"}}, and leave a number bare'
                )
        return [store.matching(where) for store in self.stores]

    def _locate(self, position: int) -> tuple[int, int]:
        place = int(np.searchsorted(self.bases, position, side="right")) - 1
        return place, int(position) - int(self.bases[place])


def _opened(path: Path, manifest: Manifest) -> Snapshot:
    size = manifest.lexicon.size
    segments, deleted, stores, sides = [], [], [], []
    recipe = Recipe.from_dict(manifest.recipe)
    kinds = side_stores.kinds(recipe, manifest.extras)
    for part in manifest.segments:
        folder = path / SEGMENTS / part.name
        own: Any = {"n_documents": part.documents, "length_units": part.length_units, "binary": recipe.binary}
        segments.append(Segment.open(folder, size=size, **own))
        deleted.append(load_deleted(folder, part, size=size))
        sides.append(side_stores.opened(folder, kinds, size=size, n_documents=part.documents))
        stores.append(Documents(folder))
        if len(stores[-1]) != part.documents:
            raise ArtifactError(
                f'"{path}" is damaged: {part.name} has {len(stores[-1])} documents, not {part.documents}; {REMEDY}'
            )
    return Snapshot(path, manifest, tuple(segments), tuple(deleted), tuple(stores), tuple(sides))


def _sound(df: NDArray[np.int64], size: int, n_deleted: int) -> bool:
    return not len(df) or bool((df >= 0).all() and (df[:, 0] < size).all() and (df[:, 1] <= n_deleted).all())


def load_deleted(folder: Path, part: SegmentPart, *, size: int) -> Deleted | None:
    if part.deleted is None:
        return None
    bits, df = artifact.map_array(folder / part.deleted.mask), artifact.map_array(folder / part.deleted.df)
    good = bits.dtype == np.uint8 and bits.shape == ((part.documents + 7) // 8,)
    good = good and df.dtype == np.int64 and df.ndim == 2 and df.shape[1] == 2
    mask = np.unpackbits(bits, count=part.documents).astype(bool) if good else np.empty(0, bool)
    if not good or int(mask.sum()) != part.deleted.documents or not _sound(df, size, part.deleted.documents):
        raise ArtifactError(f'"{folder}" is damaged: {part.deleted.mask} does not fit its segment; {REMEDY}')
    return Deleted(mask, df, part.deleted.length_units)
