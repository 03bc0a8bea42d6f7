"""Changes to an index: segments that are added, documents that are deleted, segments that are merged.

Every change is one commit: new files are written and synced beside the old ones, then the manifest is replaced. A
process that is killed leaves the index as it was before, or as it is after; the next writer removes what it left.
"""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lexent import array_files, artifact
from lexent.errors import ArtifactError, FieldWarning, LexentError, LockedError, ResourceError, SyncError, WriteError
from lexent.indexing.codes import Codes
from lexent.indexing.document_store import DocumentWriter
from lexent.indexing.field_kinds import FieldKinds
from lexent.indexing.filters import Filter
from lexent.indexing.forward.passages import PassageStore
from lexent.indexing.forward.stores import ForwardIndex, ForwardStoreWriter
from lexent.indexing.lock import writing
from lexent.indexing.manifest import (
    NAMES_FILE,
    SEGMENT_FILE,
    SEGMENT_NAME,
    SEGMENTS,
    TOMBSTONES,
    Counts,
    DeletedPart,
    FilePart,
    Manifest,
    SegmentPart,
)
from lexent.indexing.postings.layout import REMEDY
from lexent.indexing.reader import IndexReader, open_segments, store_kinds
from lexent.indexing.segment import Packer, Tombstones
from lexent.indexing.statistics import Statistics
from lexent.lexicon import collection_names, concept_words
from lexent.lexicon.collection_names import CollectionNames
from lexent.lexicon.concept_words import ConceptWords, WordCounter
from lexent.lexicon.lexicon import Lexicon
from lexent.recipes import Recipe
from lexent.types import Document
from lexent.vocabulary import NewWords, WrittenTerm

MERGE_FANOUT = 8
"""So many neighbouring segments of about one size are merged into one."""


@dataclass(frozen=True, slots=True)
class EncodedDocuments:
    """Documents as a segment keeps them, apart from their texts."""

    codes: Codes
    """For the posting lists."""
    passages: PassageStore
    """Their passages, which the codes and the forward index are of."""
    forward: ForwardIndex
    words: WordCounter
    """Which words raised each concept."""
    terms: Sequence[Sequence[WrittenTerm]] = ()
    """The words of each passage, where the index keeps them."""


class SegmentWriter:
    """Writes documents and their codes to the folder of a new segment. Use as a context."""

    def __init__(
        self,
        folder: Path,
        *,
        size: int,
        recipe: Recipe,
        extras: Sequence[str] = (),
        memory: int | None = None,
        kinds: FieldKinds | None = None,
        words: NewWords | None = None,
    ) -> None:
        """Begin a segment.

        extras: what is kept beside what the recipe needs; see `forward.stores`. kinds: those of the fields of the index
        that the segment is for. words: what numbers the words of the documents; None where the index keeps none.
        """
        with artifact.disk_errors(folder):
            folder.mkdir(parents=True)
            self._words_file = artifact.new_file(folder / concept_words.FILE)
        self.folder = folder
        self.documents = DocumentWriter(folder)
        self.new_words = words
        concepts = None if words is None else size
        self.packer = Packer(size=size, recipe=recipe, folder=folder, memory=memory, concepts=concepts)
        self.stores = {kind.name: ForwardStoreWriter(folder, kind) for kind in store_kinds(recipe, extras)}
        self._passages: ForwardStoreWriter | None = None
        """Begun with the first document of several passages; before it every passage is a document."""
        self.size = size
        self.words = WordCounter(size)
        self.kinds = kinds or FieldKinds()

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.documents.close()
                self.raise_size()
                self.packer.close()
                if self.new_words:
                    self.new_words.table().write(self.folder)
                for store in self._all_stores().values():
                    store.close()
                with artifact.disk_errors(self.folder):
                    self._words_file.write(self.words.result().to_bytes())
                    self._words_file.close()
                    artifact.sync(self.folder)
                    artifact.sync_folder(self.folder.parent)
                for note in self.kinds.notes():
                    warnings.warn(note, FieldWarning, stacklevel=3)
        except BaseException:
            self._abandon()
            raise
        if kind is not None:
            self._abandon()

    def add(self, documents: Sequence[Document], material: Callable[[], EncodedDocuments]) -> None:
        """Adds documents, and then the codes of their passages: coding is expensive, so a bad one is found first."""
        self.documents.add(self.kinds.fitted(documents))
        made = material()
        self.append_passages(made.passages)
        codes = made.codes
        if self.new_words is not None:
            codes = codes.with_words(self.new_words.counts(made.terms).above(self.size))
            self.raise_size()
        self.packer.add(codes)
        self.words.absorb(made.words)
        for name, store in self.stores.items():
            assert len(made.forward[name]) == len(made.codes)
            store.append(made.forward[name])

    def append_passages(self, passages: PassageStore) -> None:
        """Appends passages, before their codes are. Nothing is written while every document has one passage."""
        if self._passages is None and not passages.is_single:
            self._passages = ForwardStoreWriter(self.folder, PassageStore)
            self._passages.append(PassageStore.single(self.packer.n_added))
        if self._passages is not None:
            self._passages.append(passages)

    def raise_size(self) -> None:
        """Makes room for the words that came since."""
        if self.new_words is not None:
            self.packer.size = self.size + self.new_words.size

    def _abandon(self) -> None:
        with suppress(OSError):  # what it still holds may not fit the disk
            self._words_file.close()
        self.documents.__exit__(BaseException)
        self.packer.abandon()
        for store in self._all_stores().values():
            store.abandon()
        self.discard()

    def discard(self) -> None:
        """Remove the folder of the segment."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def part(self) -> SegmentPart:
        """What the manifest says of it, once the block has ended."""
        return SegmentPart(
            name=self.folder.name,
            documents=self.documents.count,
            passages=self.packer.n_documents,
            length_units=self.packer.length_units,
            words=len(self.new_words or ()),
            stores={name: store.rows for name, store in self._all_stores().items()},
        )

    def _all_stores(self) -> dict[str, ForwardStoreWriter]:
        return self.stores if self._passages is None else {**self.stores, PassageStore.name: self._passages}


class Writer:
    """The one writer of an index: holds its lock while the block lasts. `reader` reads its newest generation."""

    def __init__(self, path: Path, *, memory: int | None = None, wait: float = 0.0) -> None:
        """wait: seconds to wait for another writer to end."""
        self.path = path.resolve()
        self.memory = memory
        self.wait = wait
        self._stack = ExitStack()
        self._confirmed = True
        """Whether the disk confirmed the last commit: else both generations are needed after a power failure."""

    def __enter__(self) -> Writer:
        Manifest.read(self.path)  # before the lock file is made: this must be an index
        self._held = self._stack.enter_context(writing(self.path, wait=self.wait))
        try:
            self.reader = IndexReader.open(self.path)
            self._clean()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.reader.close()
        with self._stack:
            if kind is not None:
                self._clean()

    @property
    def recipe(self) -> Recipe:
        """The recipe of the index."""
        return Recipe.from_dict(self.reader.manifest.recipe)

    def matching(self, where: Filter) -> NDArray[np.int64]:
        """Positions of all passages of the documents that match a filter."""
        masks = zip(self.reader.matching(where), self.reader.tombstones, strict=True)
        live = [mask if gone is None else mask & ~gone.mask for mask, gone in masks]
        return np.flatnonzero(np.concatenate([np.empty(0, np.bool_), *live]))

    def new_segment(self, recipe: Recipe | None = None, *, words: NewWords | None = None) -> SegmentWriter:
        """A writer of a new segment, under the recipe of the index or another.

        words: those that the segment takes over from others; where none are given, it adds to those of the index.
        """
        manifest = self.reader.manifest
        if words is None and manifest.words is not None:
            numbers = self.reader.vocabulary.numbers()
            if len(numbers) < len(self.reader.vocabulary):
                raise ArtifactError(f'"{self.path}" is damaged: two of its words are the same; {REMEDY}')
            words = NewWords(numbers)
        folder = self.path / SEGMENTS / f"{manifest.generation + 1:06d}"
        shutil.rmtree(folder, ignore_errors=True)  # of a commit that failed
        return SegmentWriter(
            folder,
            size=manifest.lexicon.size,
            recipe=recipe or self.recipe,
            extras=manifest.extras,
            memory=self.memory,
            kinds=self.field_kinds(),
            words=words,
        )

    def field_kinds(self) -> FieldKinds:
        """The kinds of the fields of the index, for documents that are to be added."""
        return FieldKinds(self.reader.field_kinds, self.reader.has_other_text)

    def append(self, part: SegmentPart, *, replaced: Iterable[int] = ()) -> None:
        """Commits a new segment, and the deletion of the positions that it replaces."""
        self._commit(_needed([*self._without(replaced), part]))

    def delete(self, positions: Iterable[int]) -> None:
        """Commits the deletion of the passages at these positions: all those of some documents."""
        self._commit(_needed(self._without(positions)))

    def retune(self, recipe: Recipe) -> None:
        """Commits other settings. The transform and the cap change what is stored, so all segments are written anew."""
        old = self.recipe
        self.reader.manifest.check_words(recipe)
        if (recipe.power, recipe.document_cap) == (old.power, old.document_cap):
            self._commit(list(self.reader.manifest.segments), recipe=recipe)
        else:
            self._merge(0, len(self.reader.segments), recipe=recipe)

    def compact(self, *, progress: Callable[[int], None] | None = None) -> None:
        """Commits one segment in the place of all, without what was deleted."""
        segments = self.reader.manifest.segments
        if len(segments) != 1 or segments[0].deleted is not None:
            self._merge(0, len(segments), progress=progress)

    def name_concepts(self, lexicon: Lexicon) -> None:
        """Commits names of the concepts that come from the words of the documents as they are now."""
        reader, size = self.reader, self.reader.manifest.lexicon.size
        if reader.manifest.segments:
            words = ConceptWords.merged(reader.concept_words(), size=size)
            names = collection_names.name_concepts(words, lexicon, before=reader.names())
            self._commit(list(reader.manifest.segments), names=write_names(self.path, names, self.reader.manifest))

    def tidy(self) -> None:
        """Merges neighbours of about one size, and what is mostly deleted: so the number of segments stays small."""
        try:
            while (due := due_for_merging(self.reader.manifest.segments)) is not None:
                self._merge(*due)
        except (WriteError, ResourceError):  # for want of space or files: what was committed stands until the next try
            self._clean()

    # --- how ---------------------------------------------------------------------------------------------------

    def _without(self, positions: Iterable[int]) -> list[SegmentPart]:
        """The segments, with these positions deleted: writes new masks beside the old ones."""
        reader, wanted = self.reader, np.fromiter(positions, np.int64)
        parts = list(reader.manifest.segments)
        for place, segment in enumerate(reader.segments):
            base = int(reader.bases[place])
            local = wanted[(wanted >= base) & (wanted < base + segment.n_documents)] - base
            if not len(local):
                continue
            before = reader.tombstones[place]
            mask = np.zeros(segment.n_documents, np.bool_) if before is None else before.mask.copy()
            mask[local] = True
            gone = Tombstones.of(segment, mask, before)
            folder, stem = self.path / SEGMENTS / parts[place].name, f"{TOMBSTONES}{reader.manifest.generation + 1}"
            mask_file, df_file = f"{stem}.npy", f"{stem}-df.npy"
            array_files.write_array(folder / mask_file, np.packbits(gone.mask))
            array_files.write_array(folder / df_file, gone.df)
            with artifact.disk_errors(folder):
                artifact.sync_folder(folder)
            documents = int(np.count_nonzero(gone.mask[reader.runs[place].starts[:-1]]))
            deleted = DeletedPart(
                documents=documents, passages=len(gone), length_units=gone.length_units, mask=mask_file, df=df_file
            )
            parts[place] = parts[place].model_copy(update={"deleted": deleted})
        return parts

    def _merge(
        self, start: int, stop: int, *, recipe: Recipe | None = None, progress: Callable[[int], None] | None = None
    ) -> None:
        recipe, reader = recipe or self.recipe, self.reader
        words, numbers = self._merged_words(start, stop)
        with self.new_segment(recipe, words=words) as writer:
            writer.raise_size()
            for place in range(start, stop):
                segment, gone = reader.segments[place], reader.tombstones[place]
                keep = None if gone is None else ~gone.mask
                kept = np.arange(segment.n_documents) if keep is None else np.flatnonzero(keep)
                passages = reader.passage_stores[place]
                writer.append_passages(PassageStore.single(len(kept)) if passages is None else passages.take(kept))
                for codes in segment.unpack(keep):
                    codes = codes if numbers is None else codes.renumbered(numbers)
                    writer.packer.add(codes.capped(recipe.document_cap, concepts=writer.packer.concepts))
                    if progress:
                        progress(len(codes))
                starts = reader.runs[place].starts[:-1]
                documents = np.flatnonzero(np.ones(len(starts), np.bool_) if keep is None else keep[starts])
                writer.documents.copy(reader.document_stores[place], documents)
                writer.words.merge(reader.concept_words_of(place, documents if gone is not None else None))
                for name, store in writer.stores.items():
                    store.copy(reader.forward[place][name], kept)
        parts = reader.manifest.segments
        self._commit(_needed([*parts[:start], writer.part(), *parts[stop:]]), recipe=recipe)

    def _merged_words(self, start: int, stop: int) -> tuple[NewWords | None, NDArray[np.int32] | None]:
        """The words that some segments brought, for the one that takes their place; None where the index keeps none.

        Where all segments are merged, words that no document has are left out: the new numbers of what stays.
        """
        reader, concepts = self.reader, self.reader.manifest.lexicon.size
        if reader.manifest.words is None:
            return None, None
        words = NewWords({}, first=reader.vocabulary.starts[start])
        kept = [pair for table in reader.vocabulary.tables[start:stop] for pair in table.pairs()]
        if stop - start < len(reader.segments):
            words.keep(kept)
            return words, None
        live = Statistics.of(reader.segments, reader.tombstones, size=reader.size).df > 0
        live[:concepts] = True
        words.keep(pair for pair, stays in zip(kept, live[concepts:].tolist(), strict=True) if stays)
        return words, (np.cumsum(live) - 1).astype(np.int32)

    def _commit(self, parts: Sequence[SegmentPart], *, recipe: Recipe | None = None, names: str | None = None) -> None:
        if not self._held():
            raise LockedError(
                f'"{self.path}" was replaced or removed by another process meanwhile; nothing was changed; try again'
            )
        before = self.reader.manifest
        manifest = committed(self.path, parts, before=before, recipe=recipe or self.recipe, names=names or before.names)
        reader = IndexReader.of(self.path, manifest)  # before it is committed: what cannot be opened must not be
        try:
            manifest.write(self.path)
        except BaseException as error:
            reader.close()
            self._confirmed = not isinstance(error, SyncError)
            raise
        self.reader.close()
        self.reader = reader
        self._clean()

    def _clean(self) -> None:
        """Removes what the manifest does not name: what was merged, and what a killed or failed writer left."""
        if not self._confirmed:
            return
        with suppress(OSError, LexentError):  # what stays now is removed by the next writer
            artifact.sync_folder(self.path)  # a killed writer may have left a manifest that is not on the disk yet
            manifest = Manifest.read(self.path)
            named = {str(self.path / name) for name in manifest.files}
            kept = {part.name for part in manifest.segments}
            for path in self.path.iterdir():
                own = NAMES_FILE.fullmatch(path.name.removesuffix(".new")) or path.name == f"{artifact.MANIFEST}.new"
                if own and str(path) not in named:
                    path.unlink(missing_ok=True)
            for folder in (self.path / SEGMENTS).iterdir():
                if not SEGMENT_NAME.fullmatch(folder.name):
                    continue
                if folder.name not in kept:
                    shutil.rmtree(folder, ignore_errors=True)
                    continue
                for path in folder.iterdir():
                    if SEGMENT_FILE.fullmatch(path.name) and str(path) not in named:
                        path.unlink(missing_ok=True)


def _needed(parts: Sequence[SegmentPart]) -> list[SegmentPart]:
    """The segments that have documents, or words that a later one has too."""
    live = [part.documents - (part.deleted.documents if part.deleted else 0) for part in parts]
    last = max((place for place, count in enumerate(live) if count), default=-1)
    return [part for place, part in enumerate(parts) if live[place] or (part.words and place < last)]


def due_for_merging(parts: Sequence[SegmentPart]) -> tuple[int, int] | None:
    """The segments to merge next, if any: one that is mostly deleted, or the newest MERGE_FANOUT of about one size."""
    live = [part.documents - (part.deleted.documents if part.deleted else 0) for part in parts]
    for place, part in enumerate(parts):
        if 2 * live[place] < part.documents:
            return place, place + 1
    sizes = [int(math.log(max(count, 1), MERGE_FANOUT)) for count in live]
    start = len(parts)
    while start > 0 and sizes[start - 1] <= sizes[-1]:
        start -= 1
    return (start, len(parts)) if len(parts) - start >= MERGE_FANOUT else None


def write_names(path: Path, names: CollectionNames, before: Manifest) -> str:
    """Writes the names of concepts beside those of before; gives the name of the file."""
    file = f"names-{before.generation + 1}.npz"
    artifact.replace_file(path / file, names.to_bytes())
    return file


def committed(
    path: Path, parts: Sequence[SegmentPart], *, before: Manifest, recipe: Recipe, names: str | None = None
) -> Manifest:
    """The manifest of these segments, whose files are all there: those not yet listed are hashed now."""
    files = {}
    if names is not None:
        files[names] = before.files.get(names) or FilePart(**artifact.describe_file(path / names))
    for part in parts:
        folder = path / SEGMENTS / part.name
        there = (file.name for file in folder.iterdir())
        own = sorted(name for name in there if SEGMENT_FILE.fullmatch(name) and not name.startswith(TOMBSTONES))
        for name in [*own, *([part.deleted.mask, part.deleted.df] if part.deleted else [])]:
            key = f"{SEGMENTS}/{part.name}/{name}"
            files[key] = before.files.get(key) or FilePart(**artifact.describe_file(folder / name))
    after, concepts = before.model_copy(update={"segments": tuple(parts)}), before.lexicon.size
    found = Statistics.of(*open_segments(path, after, recipe), size=after.size)
    if (found.df < 0).any():
        raise ArtifactError(f'"{path}" is damaged: more documents were deleted of a latent than have it; {REMEDY}')
    if found.average_length < 0:
        raise ArtifactError(
            f'"{path}" is damaged: the deleted documents of a segment are longer than all of it; {REMEDY}'
        )
    return before.changed(
        recipe=recipe.to_dict(),
        names=names,
        segments=tuple(parts),
        files=files,
        counts=Counts(
            documents=sum(part.documents - (part.deleted.documents if part.deleted else 0) for part in parts),
            passages=found.n_documents,
            postings=int(found.df.sum()),
            live_concepts=int(np.count_nonzero(found.df[:concepts])),
            live_words=int(np.count_nonzero(found.df[concepts:])),
            average_length=found.average_length,
        ),
    )
