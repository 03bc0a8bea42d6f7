"""The reader of an index: one generation of it, immutable whatever a writer does meanwhile.

Posting lists hold passages: a document that an encoder reads whole is one passage, a longer one is a run of several. A
position is the number of a passage, counted through all segments, those of deleted documents included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import arguments, array_files, artifact
from lexent.corpus.passages import WHOLE
from lexent.errors import ArtifactError, InputError, NotFoundError
from lexent.indexing.document_store import Documents
from lexent.indexing.filters import FieldKind, Filter, Stored
from lexent.indexing.forward.dense import DenseStore
from lexent.indexing.forward.passages import PassageRuns, PassageStore
from lexent.indexing.forward.stores import ForwardIndex, ForwardStore
from lexent.indexing.forward.tokens import TokenStore
from lexent.indexing.manifest import SEGMENTS, Manifest, SegmentPart, check_directories
from lexent.indexing.passages import PassageText
from lexent.indexing.postings.layout import REMEDY
from lexent.indexing.segment import Segment, Tombstones
from lexent.lexicon import concept_words
from lexent.lexicon.collection_names import CollectionNames
from lexent.lexicon.concept_words import ConceptWords
from lexent.lexicon.words import WORD
from lexent.recipes import Recipe
from lexent.types import Document
from lexent.vocabulary import Vocabulary, WordTable

OPEN_ATTEMPTS = 20
READ_BATCH_DOCUMENTS = 1024
"""Documents that are read at a time."""

_CONDITION_EXAMPLES: dict[FieldKind, str] = {
    "boolean": "write {name}=true or {name}=false",
    "number": "write a number, as in {name}>=2019, and one condition for each --filter",
    "text": 'quote a text, as in {{"{name}": "2019"}}',
}
"""Example of a condition on a field of each kind."""
_DATE = re.compile(
    r"[0-9]{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ][0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)
"""What a date field can be compared with: a date in the form of ISO 8601, or its start from the year on."""


@dataclass(frozen=True)
class IndexReader:
    """Opened segments of an index: posting lists, tombstones, document stores and forward index."""

    path: Path
    manifest: Manifest
    segments: tuple[Segment, ...]
    tombstones: tuple[Tombstones | None, ...]
    document_stores: tuple[Documents, ...]
    forward: tuple[ForwardIndex, ...]
    passage_stores: tuple[PassageStore | None, ...]
    """Where passages stand in their documents; None for a segment whose documents have one each."""
    runs: tuple[PassageRuns, ...]
    """Which passages each document of a segment has."""
    vocabulary: Vocabulary
    """The words of the index; none where its posting lists hold concepts alone."""

    @staticmethod
    def open(path: Path) -> IndexReader:
        """Opens the newest generation; starts again where a writer removes files meanwhile."""
        for _ in range(OPEN_ATTEMPTS):
            manifest = Manifest.read(path)
            try:
                check_directories(path, manifest)
                return IndexReader.of(path, manifest)
            except (FileNotFoundError, ArtifactError) as error:
                if Manifest.read(path) == manifest:
                    if isinstance(error, ArtifactError):
                        raise
                    raise ArtifactError(f'"{path}" is damaged: {error}; {REMEDY}') from error
        raise ArtifactError(f'"{path}" changed {OPEN_ATTEMPTS} times while it was opened; try again')

    @staticmethod
    def of(path: Path, manifest: Manifest) -> IndexReader:
        """Opens the generation of a manifest."""
        return _open_generation(path, manifest)

    def concept_words(self) -> list[ConceptWords]:
        """Which words raise each concept, of every segment."""
        return [self.concept_words_of(place) for place in range(len(self.manifest.segments))]

    def concept_words_of(self, place: int, kept: NDArray[np.int64] | None = None) -> ConceptWords:
        """Which words raise each concept in a segment. kept: only words that these documents of it have, by number."""
        size = self.manifest.lexicon.size
        path = self.path / SEGMENTS / self.manifest.segments[place].name / concept_words.FILE
        if not path.exists():  # of an older version
            return ConceptWords.empty(size)
        found = ConceptWords.from_bytes(artifact.read_bytes(path), size=size)
        if kept is None:
            return found
        store, present = self.document_stores[place], set[str]()
        for start in range(0, len(kept), READ_BATCH_DOCUMENTS):
            for document in store.at(kept[start : start + READ_BATCH_DOCUMENTS].tolist()):
                present |= {word.lower()[: concept_words.MAX_WORD_CHARS] for word in WORD.findall(document.content)}
        return found.only(present | {word for word in found.words if not any(map(str.isalnum, word))})

    def names(self) -> CollectionNames | None:
        """The names that the collection gives to concepts; None where an older version wrote the index."""
        name = self.manifest.names
        return None if name is None else CollectionNames.from_bytes(artifact.read_bytes(self.path / name))

    @property
    def size(self) -> int:
        """Number of concepts and words: a word's number follows those of all concepts."""
        return self.manifest.size

    @cached_property
    def bases(self) -> NDArray[np.int64]:
        """int64[n_segments + 1]: position of the first passage of each segment, and the end."""
        return np.cumsum([0, *(segment.n_documents for segment in self.segments)])

    def __len__(self) -> int:
        return self.manifest.counts.documents

    def check_open(self) -> None:
        """Refuses to go on once the index is closed."""
        for store in self.document_stores:
            store.check_open()

    def close(self) -> None:
        """Closes the document stores."""
        for store in self.document_stores:
            store.close()

    # --- passages by position ----------------------------------------------------------------------------------

    def at(self, positions: Sequence[int]) -> list[Document]:
        """The documents of the passages at some positions, in that order."""
        return [self.document_stores[place].at([number])[0] for place, number in map(self._document, positions)]

    def ids(self, positions: Sequence[int]) -> list[str]:
        """Ids of the documents of the passages at some positions, in that order; texts are not read."""
        return [self.document_stores[place].ids([number])[0] for place, number in map(self._document, positions)]

    def passages(self, positions: Sequence[int]) -> list[PassageText]:
        """The passages at some positions, in that order, with their documents."""
        known: dict[tuple[int, int], Document] = {}
        found = []
        for position in positions:
            place, local = self._locate(position)
            number = self.runs[place].document(local)
            if (place, number) not in known:
                known[place, number] = self.document_stores[place].at([number])[0]
            document, run = known[place, number], self.runs[place].passages(number)
            store = self.passage_stores[place]
            pieces = WHOLE if store is None else store.pieces(local)
            found.append(PassageText(document, local - run.start, len(run), pieces))
        return found

    def contents(self, positions: Sequence[int]) -> list[str]:
        """What was encoded of the passages at some positions, in that order."""
        return [passage.content for passage in self.passages(positions)]

    def run(self, position: int) -> range:
        """The positions of all passages of the document that has the passage at a position."""
        place, number = self._document(position)
        base, run = int(self.bases[place]), self.runs[place].passages(number)
        return range(base + run.start, base + run.stop)

    @cached_property
    def has_long_documents(self) -> bool:
        """Whether any document has more than one passage."""
        return sum(runs.n_documents for runs in self.runs) < int(self.bases[-1])

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """int64[n_passages]: the number of the document of each passage, counted through all segments."""
        parts, base = [np.empty(0, np.int64)], 0
        for runs in self.runs:
            parts.append(base + np.repeat(np.arange(runs.n_documents), np.diff(runs.starts)))
            base += runs.n_documents
        return np.concatenate(parts)

    # --- documents by id ---------------------------------------------------------------------------------------

    def get(self, id: str) -> Document:
        """The document of an id."""
        return self.at([self.position(id)])[0]

    def position(self, id: str) -> int:
        """Position of the first passage of the document of an id."""
        found = self.positions([id])
        if id not in found:
            some = [f'"{one}"' for store in self.document_stores[:1] for one in store.some_ids(3)]
            look = f"; ids look like {', '.join(some)}" if some else ""
            raise NotFoundError(f'no document "{id}" among {len(self)}{look}')
        return found[id]

    def positions(self, ids: Sequence[str]) -> dict[str, int]:
        """Positions of the first passages of those of the ids that the index has."""
        found = {}
        for place, store in enumerate(self.document_stores):
            deleted, base = self.tombstones[place], int(self.bases[place])
            for id, number in store.positions(ids).items():
                local = int(self.runs[place].starts[number])
                if deleted is None or not deleted.mask[local]:
                    found[id] = base + local
        return found

    def matching(self, where: Filter) -> list[NDArray[np.bool_]]:
        """Which passages of each segment are of documents that match a filter."""
        known = set(self.field_names())
        unknown = sorted(set(where.names) - known)
        if unknown:
            name = unknown[0]
            near = get_close_matches(name.casefold(), [one.casefold() for one in known], n=1)
            meant = next((f'; did you mean "{one}"?' for one in known if near == [one.casefold()]), "")
            raise InputError(
                f'no document has the field "{name}"; fields: {", ".join(sorted(known)) or "none"}{meant}; '
                "fields come from the columns and metadata that were indexed, and not from ids"
            )
        for name in where.kinds:
            present = self.field_kinds(name)
            if present == {"text"} and not self.has_other_text(name):
                _check_dates(name, where.texts(name))
                where = where.on_dates(name)
            requested = where.kinds[name]
            if requested and present and not requested & present:
                held, given = " and ".join(sorted(present)), " or ".join(sorted(requested))
                example = _CONDITION_EXAMPLES[min(present)].format(name=name)
                held = held if held != "text" or self.has_other_text(name) else "date"
                raise InputError(f'the field "{name}" holds {held} values, not {given} ones; {example}')
        pairs = zip(self.runs, self.document_stores, strict=True)
        return [runs.by_passage(store.matching(where)) for runs, store in pairs]

    def field_kinds(self, name: str) -> frozenset[FieldKind]:
        """Kinds of value of a field; empty where no document has it."""
        return frozenset(kind for store in self.document_stores for kind in store.field_kinds(name))

    def field_names(self) -> list[str]:
        """The fields that any document has, in order of their names."""
        return sorted({name for store in self.document_stores for name in store.field_names()})

    def value_counts(self, name: str) -> dict[Stored, int]:
        """How many documents have each value of a field, without the deleted ones."""
        found: dict[Stored, int] = {}
        for store, runs, deleted in zip(self.document_stores, self.runs, self.tombstones, strict=True):
            starts = runs.starts[: len(store)]
            live = np.ones(len(store), np.bool_) if deleted is None else ~deleted.mask[starts]
            for value, count in store.value_counts(name, live).items():
                found[value] = found.get(value, 0) + count
        return found

    def has_other_text(self, name: str) -> bool:
        """Whether a field has texts that are no dates; empty ones do not count."""
        return any(store.has_other_text(name) for store in self.document_stores)

    def _locate(self, position: int) -> tuple[int, int]:
        """The segment of a passage, and its number there."""
        place = int(np.searchsorted(self.bases, position, side="right")) - 1
        return place, int(position) - int(self.bases[place])

    def _document(self, position: int) -> tuple[int, int]:
        """The segment of a passage, and the number of its document there."""
        place, local = self._locate(position)
        return place, self.runs[place].document(local)


def _check_dates(name: str, texts: Iterable[str]) -> None:
    """Refuse texts that a date field cannot be compared with: their order would mean nothing."""
    for text in sorted(texts):
        if text and not _DATE.fullmatch(text):
            raise InputError(
                f'the field "{name}" holds dates, and the filter compares it with {arguments.shown(text)}; allowed: a '
                f"date, its start or a date with a time, such as 2019-05-31, 2019-05 or 2019-05-31T10:30:00; "
                f"write {name}>=2019-05-31"
            )


def store_kinds(recipe: Recipe, extras: Sequence[str]) -> list[type[ForwardStore]]:
    """The forward stores of the segments of an index: those that its recipe needs, and the extras it was built with."""
    found: list[type[ForwardStore]] = [TokenStore] if recipe.match == "maxsim" else []
    return [*found, DenseStore] if "dense" in extras else found


def _open_generation(path: Path, manifest: Manifest) -> IndexReader:
    recipe, size = Recipe.from_dict(manifest.recipe), manifest.lexicon.size
    kinds = store_kinds(recipe, manifest.extras)
    segments, tombstones = open_segments(path, manifest, recipe)
    document_stores, forward, runs, tables = [], [], [], []
    passages: list[PassageStore | None] = []
    for part in manifest.segments:
        folder = path / SEGMENTS / part.name
        tables.append(WordTable.open(folder, n_words=part.words, remedy=REMEDY))
        forward.append({kind.name: kind.open(folder, size=size, n_documents=part.passages) for kind in kinds})
        if PassageStore.name in part.stores:
            store = PassageStore.open(folder, size=size, n_documents=part.passages)
            passages.append(store)
            runs.append(store.runs)
        else:
            passages.append(None)
            runs.append(PassageRuns.single(part.passages))
        document_stores.append(Documents(folder))
        for found in (len(document_stores[-1]), runs[-1].n_documents):
            if found != part.documents:
                raise ArtifactError(
                    f'"{path}" is damaged: {part.name} has {found} documents, not {part.documents}; {REMEDY}'
                )
    parts = (tuple(document_stores), tuple(forward), tuple(passages), tuple(runs))
    return IndexReader(path, manifest, segments, tombstones, *parts, Vocabulary(tables))


def open_segments(
    path: Path, manifest: Manifest, recipe: Recipe
) -> tuple[tuple[Segment, ...], tuple[Tombstones | None, ...]]:
    """Posting lists and tombstones of the segments of an index."""
    segments, tombstones = [], []
    for part, size in zip(manifest.segments, manifest.sizes, strict=True):
        folder = path / SEGMENTS / part.name
        sizes: Any = {"n_documents": part.passages, "length_units": part.length_units, "binary": recipe.binary}
        segments.append(Segment.open(folder, size=size, **sizes))
        tombstones.append(_load_tombstones(folder, part, size=size))
    return tuple(segments), tuple(tombstones)


def _load_tombstones(folder: Path, part: SegmentPart, *, size: int) -> Tombstones | None:
    if part.deleted is None:
        return None
    bits, df = array_files.map_array(folder / part.deleted.mask), array_files.map_array(folder / part.deleted.df)
    fits = bits.dtype == np.uint8 and bits.shape == ((part.passages + 7) // 8,)
    fits = fits and df.dtype == np.int64 and df.ndim == 2 and df.shape[1] == 2
    fits = fits and bool((df >= 0).all() and (df <= [size - 1, part.deleted.passages]).all())
    mask = np.unpackbits(bits, count=part.passages).astype(bool) if fits else np.empty(0, bool)
    if not fits or int(mask.sum()) != part.deleted.passages:
        raise ArtifactError(f'"{folder}" is damaged: {part.deleted.mask} does not fit its segment; {REMEDY}')
    return Tombstones(mask, df, part.deleted.length_units)
