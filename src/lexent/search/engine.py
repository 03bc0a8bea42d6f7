"""The index as a caller sees it: build, open, search, change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from lexent import recipes
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.indexing.filters import Filter
from lexent.indexing.manifest import Manifest, verify
from lexent.indexing.segment import Deleted, repacked
from lexent.indexing.snapshot import Snapshot
from lexent.indexing.writer import Writer
from lexent.recipes import Recipe
from lexent.search import builder, steering
from lexent.search.parts import EncoderLike, LexiconLike, load_encoder, load_lexicon
from lexent.search.query import Query
from lexent.search.results import Hit, QueryConcept, Results
from lexent.search.searcher import Masks, Searcher
from lexent.types import Document, SparseVectors
from lexent.weighting import bm25, transform

if TYPE_CHECKING:
    from lexent.corpus.corpus import Source
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

T = TypeVar("T")
Where = dict[str, Any]
"""A filter on metadata, for example {"year": {"gte": 2019}, "lang": "en"}; see `lexent.indexing.filters`."""
Settings = dict[str, Any]
"""Recipe settings by name, for example {"k1": 3, "b": 0.4}."""


class View:
    """An index as it was at one moment: what a search and its explanations read. It never changes."""

    def __init__(self, snapshot: Snapshot, parts: Parts, *, settings: Settings | None = None) -> None:
        self.path = snapshot.path
        self.manifest = snapshot.manifest
        self.documents = snapshot
        self.parts = parts
        stored = Recipe.from_dict(self.manifest.recipe)
        self.recipe = recipes.retuned(stored, settings or {})
        segments, deleted = snapshot.segments, snapshot.deleted
        if (self.recipe.power, self.recipe.document_cap) != (stored.power, stored.document_cap):
            segments = tuple(repacked(segment, self.recipe) for segment in segments)
            pairs = zip(segments, deleted, strict=True)
            deleted = tuple(None if gone is None else Deleted.of(segment, gone.mask) for segment, gone in pairs)
        self.searcher = Searcher(segments, self.recipe, size=self.manifest.lexicon.size, deleted=deleted)

    @property
    def encoder(self) -> Encoder:
        return self.parts.encoder

    @property
    def lexicon(self) -> Lexicon:
        return self.parts.lexicon

    def __len__(self) -> int:
        return self.manifest.counts.documents

    def search_many(
        self,
        queries: Sequence[str],
        *,
        k: int,
        steer: steering.Steer | None = None,
        where: Where | None = None,
        idf_of_subset: bool = False,
    ) -> list[Results]:
        if k < 0:
            raise InputError(f"k is {k}; allowed: 0 or more")
        vectors = self._represent(queries, steer)
        allowed = None if not where else self.documents.matching(Filter.of(where))
        weights = self.searcher.query_weights(vectors)
        if allowed is not None and idf_of_subset:
            weights = self._weighed_within(vectors, allowed)
        made = [Query.of(text, weights.take(np.array([row]))) for row, text in enumerate(queries)]
        return self._results(made, k, allowed)

    def query(self, text: str, *, steer: steering.Steer | None = None) -> Query:
        """A query with its final weights."""
        return Query.of(text, self.searcher.query_weights(self._represent([text], steer)))

    def concepts(self, query: Query) -> list[QueryConcept]:
        """The concepts of a query, strongest first."""
        found = [
            QueryConcept(concept, self.lexicon.label(concept), weight)
            for concept, weight in zip(query.ids.tolist(), query.weights.tolist(), strict=True)
        ]
        return sorted(found, key=lambda concept: (-abs(concept.weight), concept.id))

    def _represent(self, queries: Sequence[str], steer: steering.Steer | None = None) -> SparseVectors:
        from lexent.pipeline import represent

        for place, query in enumerate(queries):
            if not query.strip():
                which = f" (number {place + 1} of {len(queries)})" if len(queries) > 1 else ""
                raise InputError(f'the query{which} is empty; type some words, for example "sort a list"')
        recipe = self.recipe
        pooled = represent(queries, kind="query", encoder=self.encoder, lexicon=self.lexicon, recipe=recipe)
        vectors = transform(pooled, power=recipe.power_for("query"), cap=recipe.query_cap)
        return steering.steered(vectors, steer, lexicon=self.lexicon) if steer else vectors

    def _weighed_within(self, vectors: SparseVectors, allowed: Masks) -> SparseVectors:
        """The queries' weights with the idf that the allowed documents alone would give."""
        ids = np.unique(vectors.ids)
        df = np.zeros_like(self.searcher.df)
        df[ids] = self.searcher.df_within(ids, allowed)
        n_allowed = self.searcher.n_allowed(allowed)
        factors = bm25.query_factors(df, n_allowed, self.recipe.weighting, prune=0)
        factors[self.searcher.factors == 0] = 0  # what the recipe prunes stays out
        return self.searcher.query_weights(vectors, factors=factors)

    def _results(self, queries: Sequence[Query], k: int, allowed: Masks | None) -> list[Results]:
        size = self.manifest.lexicon.size
        vectors = SparseVectors.concatenate([query.vectors(size) for query in queries], size=size)
        found = self.searcher.top_weighted(vectors, k, allowed=allowed)
        return [
            Results(
                query=query.text,
                concepts=tuple(self.concepts(query)),
                hits=tuple(self._hits(query, found.positions[row], found.scores[row])),
            )
            for row, query in enumerate(queries)
        ]

    def _hits(self, query: Query, positions: np.ndarray, scores: np.ndarray) -> list[Hit]:
        places = positions[positions >= 0].tolist()
        return [
            Hit(
                rank=rank,
                id=document.id,
                score=score,
                title=document.title,
                text=document.text,
                metadata=document.metadata,
                position=position,
                query=query,
                index=self,
            )
            for rank, (document, position, score) in enumerate(
                zip(self.documents.at(places), places, scores.tolist(), strict=False), start=1
            )
        ]


class Index:
    """Documents that can be searched by concepts, added to and deleted from. Made by `Index.build` or `Index.open`.

    An open index is a view of one moment: changes made by other processes show after `refresh`, its own at once.
    """

    def __init__(
        self,
        path: Path,
        *,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        retune: Settings | None = None,
    ) -> None:
        self.path = path
        self._settings = dict(retune or {})
        snapshot = Snapshot.open(path)
        self._parts = Parts(path, snapshot.manifest, encoder, lexicon)
        self.view = View(snapshot, self._parts, settings=self._settings)

    @staticmethod
    def build(
        documents: Iterable[Document],
        *,
        out: str | Path,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        recipe: Recipe | str = "latent-terms",
        memory: int | None = None,
        progress: builder.Progress | None = None,
        overwrite: bool = False,
    ) -> Index:
        """Indexes documents into the folder `out` and opens it.

        The folder appears when all is written; an index that stood there stays until then, also when this is killed.
        memory: bytes that packing the documents stays within, beside the encoder's.
        """
        out = Path(out)
        used = builder.build(
            documents,
            out,
            encoder=encoder,
            lexicon=lexicon,
            recipe=recipes.get(recipe),
            memory=memory,
            progress=progress,
            overwrite=overwrite,
        )
        return Index(out, encoder=used[0], lexicon=used[1])

    @staticmethod
    def open(
        path: str | Path,
        *,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        retune: Settings | None = None,
    ) -> Index:
        """Opens the index at `path`. Its encoder and lexicon are found by the names it carries unless given here.

        Both are loaded when first needed; a MismatchError says so when they are not those it was built with.
        retune: settings to search by instead of the index's own, for example {"k1": 3, "b": 0.4}; nothing is written.
        """
        return Index(Path(path), encoder=encoder, lexicon=lexicon, retune=retune)

    # --- read --------------------------------------------------------------------------------------------------

    @property
    def encoder(self) -> Encoder:
        return self._parts.encoder

    @property
    def lexicon(self) -> Lexicon:
        return self._parts.lexicon

    @property
    def manifest(self) -> Manifest:
        return self.view.manifest

    @property
    def recipe(self) -> Recipe:
        return self.view.recipe

    @property
    def searcher(self) -> Searcher:
        return self.view.searcher

    @property
    def documents(self) -> Snapshot:
        return self.view.documents

    def __len__(self) -> int:
        return len(self.view)

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}, {len(self):,} documents)"

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        steer: steering.Steer | None = None,
        filter: Where | None = None,
        idf_of_subset: bool = False,
    ) -> Results:
        """The k best documents for a query, or all that share a concept with it where those are fewer.

        steer: factors by concept; see `lexent.search.steering`. filter: only documents whose metadata match, for
        example {"year": {"gte": 2019}, "lang": "en"}. idf_of_subset: concepts count by how rare they are among those.
        """
        return self.view.search_many([query], k=k, steer=steer, where=filter, idf_of_subset=idf_of_subset)[0]

    def search_many(
        self, queries: Sequence[str], *, k: int = 10, filter: Where | None = None, idf_of_subset: bool = False
    ) -> list[Results]:
        """The results of several queries, encoded together and searched on all cores."""
        return self.view.search_many(queries, k=k, where=filter, idf_of_subset=idf_of_subset)

    def query(self, text: str, *, steer: steering.Steer | None = None) -> Query:
        """A query with its final weights."""
        return self.view.query(text, steer=steer)

    def concepts(self, query: Query) -> list[QueryConcept]:
        """The concepts of a query, strongest first."""
        return self.view.concepts(query)

    def document(self, id: str) -> Document:
        """The document of that id."""
        return self.view.documents.get(id)

    def info(self) -> dict[str, Any]:
        """What the index holds and what it was made with."""
        manifest = self.manifest
        size = sum(file.size for file in manifest.files.values())
        return {
            "path": str(self.path),
            **manifest.counts.model_dump(),
            "concepts": manifest.lexicon.size,
            "bytes": size,
            "segments": len(manifest.segments),
            "deleted": sum(part.deleted.documents for part in manifest.segments if part.deleted),
            "generation": manifest.generation,
            "encoder": manifest.encoder.model_dump(),
            "lexicon": {"name": manifest.lexicon.name, "hash": manifest.lexicon.hash},
            "recipe": manifest.recipe,
            "created": manifest.created,
            "updated": manifest.updated,
            "lexent": manifest.lexent,
            "format": manifest.format,
        }

    def verify(self) -> None:
        """Reads every file and compares it with its hash; an ArtifactError names those that changed."""
        verify(self.path)

    def refresh(self) -> bool:
        """Shows what was changed since this was opened; says whether anything was."""
        if Manifest.read(self.path) == self.manifest:
            return False
        snapshot = Snapshot.open(self.path)
        self._parts.check(snapshot.manifest)
        self.view = View(snapshot, self._parts, settings=self._settings)
        return True

    def close(self) -> None:
        self.view.documents.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- change ------------------------------------------------------------------------------------------------

    def add(
        self,
        source: Source,
        *,
        upsert: bool = False,
        memory: int | None = None,
        progress: builder.Progress | None = None,
    ) -> int:
        """Adds documents, all of them or none; gives how many. They are on the disk when this returns.

        source: documents, dicts or strings, or a file or folder, as for `lexent.index`. upsert: documents whose id is
        already there take the place of those; without it, such an id is an InputError.
        """
        replaced: list[int] = []
        with Writer(self.path, memory=memory) as writer:
            self._parts.check(writer.snapshot.manifest)
            with writer.new_segment() as segment:
                for chunk in builder.in_chunks(_documents(source)):
                    there = writer.snapshot.positions([document.id for document in chunk])
                    if there and not upsert:
                        raise InputError(
                            f'the index already has a document "{next(iter(there))}"; replace it with --upsert '
                            "(index.upsert), or give it another id"
                        )
                    replaced += there.values()
                    segment.add(chunk, partial(self._codes, chunk, writer.recipe, progress))
            count = segment.packer.n_documents
            if count:
                writer.append(segment.part(), replaced=replaced)
                writer.tidy()
            else:
                segment.discard()
        self.refresh()
        return count

    def upsert(self, source: Source, *, memory: int | None = None, progress: builder.Progress | None = None) -> int:
        """Adds documents; those whose id is already there take the place of the older ones. All of them or none."""
        return self.add(source, upsert=True, memory=memory, progress=progress)

    def delete(self, ids: Iterable[str], *, missing: bool = False) -> int:
        """Deletes documents by id, all of them or none; gives how many.

        An id that is not there is a NotFoundError, unless missing is true.
        """
        wanted = list(dict.fromkeys(ids))
        with Writer(self.path) as writer:
            there = writer.snapshot.positions(wanted)
            if len(there) < len(wanted) and not missing:
                writer.snapshot.position(next(id for id in wanted if id not in there))  # which says what is missing
            if there:
                writer.delete(there.values())
                writer.tidy()
        self.refresh()
        return len(there)

    def compact(self, *, memory: int | None = None, progress: builder.Progress | None = None) -> None:
        """Writes all documents into one segment, without what was deleted. Searches give the same, quicker."""
        with Writer(self.path, memory=memory) as writer:
            writer.compact(progress=progress)
        self.refresh()

    def retune(self, **settings: Any) -> None:
        """Changes settings of the index for good, without encoding anything: k1, b, idf, power, caps and others.

        Scores then equal those of an index that was built with them.
        """
        with Writer(self.path) as writer:
            recipe = recipes.retuned(writer.recipe, settings)
            if recipe != writer.recipe:
                writer.retune(recipe)
        self.refresh()

    def _codes(self, documents: list[Document], recipe: Recipe, progress: builder.Progress | None) -> Any:
        return builder.codes_of(documents, self.encoder, self.lexicon, recipe, progress)


def _documents(source: Source) -> Iterable[Document]:
    from lexent.corpus import read

    if isinstance(source, str | Path):
        return read(source)
    items = iter(source)
    first = next(items, None)
    if first is None:
        return ()
    whole = chain([first], items)
    return cast("Iterable[Document]", whole) if isinstance(first, Document) else read(whole)


class Parts:
    """The encoder and the lexicon of an index, loaded when first needed and checked against its manifest."""

    def __init__(self, path: Path, manifest: Manifest, encoder: EncoderLike, lexicon: LexiconLike) -> None:
        self.path, self.manifest = path, manifest
        self._given = (encoder, lexicon)
        self._encoder: Encoder | None = None
        self._lexicon: Lexicon | None = None
        self._loading = threading.RLock()
        # What is already at hand is checked now; what must be loaded, when it is first needed.
        if encoder is not None and not isinstance(encoder, str | Path):
            _ = self.encoder
        if lexicon is not None and not isinstance(lexicon, str | Path):
            _ = self.lexicon

    @property
    def encoder(self) -> Encoder:
        with self._loading:
            if self._encoder is None:
                loaded = self._load("encoder", self._given[0], self.manifest.encoder.source, load=load_encoder)
                self._check("encoder", loaded.id, loaded.fingerprint)
                self._encoder = loaded
            return self._encoder

    @property
    def lexicon(self) -> Lexicon:
        with self._loading:
            if self._lexicon is None:
                loaded = self._load("lexicon", self._given[1], self.manifest.lexicon.source, load=load_lexicon)
                self._check("lexicon", loaded.name, loaded.hash)
                self._lexicon = loaded
            return self._lexicon

    def check(self, manifest: Manifest) -> None:
        """Refuses a newer generation that was built anew with other parts."""
        old, new = self.manifest, manifest
        if (old.encoder.fingerprint, old.lexicon.hash) != (new.encoder.fingerprint, new.lexicon.hash):
            raise MismatchError(
                f'"{self.path}" was built anew with another encoder or lexicon; open it again: Index.open(path)'
            )

    def _load(self, part: str, given: Any, source: str, *, load: Callable[[Any], T]) -> T:
        if given is not None:
            return load(given)
        try:
            return load(source)
        except NotFoundError as error:
            raise NotFoundError(
                f'"{self.path}" was built with the {part} "{source}", which is not found here ({error}); '
                f"say where it is now: --{part} NAME_OR_FOLDER ({part}=...)"
            ) from error

    def _check(self, part: str, name: str, mark: str) -> None:
        if part == "encoder":
            built, built_mark = self.manifest.encoder.id, self.manifest.encoder.fingerprint
        else:
            built, built_mark = self.manifest.lexicon.name, self.manifest.lexicon.hash
        if mark != built_mark:
            raise MismatchError(
                f'"{self.path}" was built with the {part} "{built}" ({built_mark[:12]}); given: "{name}" '
                f"({mark[:12]}); open it with the {part} it was built with, or build it again: "
                f"lexent index CORPUS --out {self.path} --overwrite"
            )
