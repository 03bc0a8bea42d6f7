"""The index as a caller sees it: build, open, search, change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lexent import recipes
from lexent.errors import InputError
from lexent.indexing.manifest import Manifest, verify
from lexent.indexing.snapshot import Snapshot
from lexent.indexing.stores import Material
from lexent.indexing.writer import Writer
from lexent.recipes import Recipe
from lexent.search import builder, fused, steering
from lexent.search.feedback import Feedback, Learning
from lexent.search.fused import FusedResults
from lexent.search.fusion import Method
from lexent.search.matching import Mode
from lexent.search.parts import EncoderLike, LexiconLike, Parts
from lexent.search.query import Query
from lexent.search.results import DenseHit, QueryConcept, Results
from lexent.search.searcher import Searcher
from lexent.search.view import Settings, View, Where
from lexent.types import Document

if TYPE_CHECKING:
    from lexent.corpus.corpus import Source
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon


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
        extras: Sequence[str] = (),
        memory: int | None = None,
        progress: builder.Progress | None = None,
        overwrite: bool = False,
    ) -> Index:
        """Indexes documents into the folder `out` and opens it.

        The folder appears when all is written; an index that stood there stays until then, also when this is killed.
        extras: what to keep for comparison with other ways to search: "dense", the encoder's own vectors, "lexical".
        memory: bytes that packing the documents stays within, beside the encoder's.
        """
        out = Path(out)
        used = builder.build(
            documents,
            out,
            encoder=encoder,
            lexicon=lexicon,
            recipe=recipes.get(recipe),
            extras=extras,
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
        mode: Mode = None,
        feedback: Feedback | int | None = None,
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
    ) -> Results:
        """The k best documents for a query, or all that share a concept with it where those are fewer.

        steer: factors by concept; see `lexent.search.steering`. filter: only documents whose metadata match, for
        example {"year": {"gte": 2019}, "lang": "en"}. idf_of_subset: concepts count by how rare they are among those.
        mode: for recipes that match tokens (ssr), "exact", or "fast": candidates first, approximate (a `Fast` has its
        settings); as the recipe says where it is not given. feedback: search twice, the second time also by concepts of
        the first hits: how many of those, or a Feedback. like, unlike: ids of documents to learn from and against; what
        changed is in `Results.added`.
        """
        learning = Learning.of(feedback, like=like, unlike=unlike)
        return self.view.search_many(
            [query], k=k, steer=steer, where=filter, idf_of_subset=idf_of_subset, mode=mode, learning=learning
        )[0]

    def search_fused(
        self,
        query: str,
        *,
        k: int = 10,
        fuse: Sequence[str] | Mapping[str, float | None] = ("bm25",),
        fusion: Method = "sum",
        steer: steering.Steer | None = None,
        filter: Where | None = None,
        idf_of_subset: bool = False,
        feedback: Feedback | int | None = None,
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
    ) -> FusedResults:
        """The k best documents by concepts and by words together; every hit says what each of the two gave.

        fuse: what to fuse the concepts with: "bm25", BM25 over the words of the stored texts; a mapping gives weights.
        The words are counted in memory when first needed, which takes seconds for some thousands of documents.
        fusion: by calibrated scores or by reciprocal ranks, see `lexent.search.fusion`. The others: as for `search`.
        """
        learning = Learning.of(feedback, like=like, unlike=unlike)
        sides = dict(fuse) if isinstance(fuse, Mapping) else dict.fromkeys(fuse)
        view = self.view
        prepared = view.prepared([query], steer=steer, where=filter, idf_of_subset=idf_of_subset, learning=learning)
        return fused.search(view, prepared, k=k, sides=sides, method=fusion)

    def search_many(
        self,
        queries: Sequence[str],
        *,
        k: int = 10,
        filter: Where | None = None,
        idf_of_subset: bool = False,
        mode: Mode = None,
        feedback: Feedback | int | None = None,
    ) -> list[Results]:
        """The results of several queries, encoded together and searched on all cores."""
        learning = Learning.of(feedback)
        return self.view.search_many(
            queries, k=k, where=filter, idf_of_subset=idf_of_subset, mode=mode, learning=learning
        )

    def dense_search(self, query: str, *, k: int = 10) -> list[DenseHit]:
        """The k documents of highest cosine with a query, by the encoder's own vectors, for comparison.

        The index must have been built with extras=["dense"].
        """
        return self.view.dense_search(query, k=k)

    def query(
        self,
        text: str,
        *,
        steer: steering.Steer | None = None,
        feedback: Feedback | int | None = None,
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
    ) -> Query:
        """A query with its final weights, as `search` has them."""
        return self.view.query(text, steer=steer, learning=Learning.of(feedback, like=like, unlike=unlike))

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
            "stores": manifest.store_sizes(),
            "extras": list(manifest.extras),
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
                    segment.add(chunk, partial(self._material, chunk, writer, progress))
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

    def rename(self, concept: str | int, label: str | None) -> None:
        """Gives a concept a name of your own, for everyone who opens this index; None gives it back its own."""
        self._parts.rename(self.lexicon.resolve(concept).id, label)

    def _material(self, documents: list[Document], writer: Writer, progress: builder.Progress | None) -> Material:
        return builder.material_of(
            documents,
            encoder=self.encoder,
            lexicon=self.lexicon,
            recipe=writer.recipe,
            extras=writer.snapshot.manifest.extras,
            progress=progress,
        )


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
