"""The index as a caller sees it: build, open, search, change."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from lexent import arguments, forks, recipes
from lexent.errors import InputError, ResourceError
from lexent.explain.explainer import EXPLAINER
from lexent.explain.ranking import RankExplanation, why
from lexent.indexing import acceptance, backup, builder
from lexent.indexing.filters import Filter
from lexent.indexing.index_models import IndexModels
from lexent.indexing.manifest import Manifest, verify
from lexent.indexing.reader import IndexReader
from lexent.indexing.writer import EncodedDocuments, Writer
from lexent.models import EncoderLike, LexiconLike
from lexent.pipeline import Pipeline
from lexent.progress import Report, counting
from lexent.recipes import Recipe
from lexent.search import fused, steering
from lexent.search.feedback import Feedback, Learning
from lexent.search.fused import FusedResults
from lexent.search.fusion import Method
from lexent.search.modes import Mode, Unit
from lexent.search.query import Query
from lexent.search.results import DenseHit, QueryConcept, Results
from lexent.search.searcher import Searcher, Settings, Where
from lexent.types import Document

if TYPE_CHECKING:
    from lexent.corpus.sources import Source
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon


class Index:
    """Documents that can be searched by concepts, added to and deleted from. Made by `Index.build` or `Index.open`.

    An open index is a view of one moment: changes made by other processes show after `refresh`, its own at once.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        retune: Settings | None = None,
        wait: float = 0.0,
        trust_encoder: bool = False,
    ) -> None:
        self.wait = arguments.seconds("wait", wait)
        """How long a change waits for another writer to end."""
        self.path = arguments.path("path", path, allowed="the folder of an index: a string or a pathlib.Path")
        settings = {} if retune is None else retune
        self._settings = dict(arguments.mapping("retune", settings, allowed='settings, such as {"k1": 3, "b": 0.4}'))
        self._refreshing = threading.RLock()
        forks.renew_lock(self, "_refreshing")
        reader = IndexReader.open(self.path)
        self._models = IndexModels(
            self.path, reader.manifest, encoder, lexicon, trust_encoder=arguments.flag("trust_encoder", trust_encoder)
        )
        self.searcher = Searcher(reader, self._models, explainer=EXPLAINER, settings=self._settings)
        """What answers queries over the generation that is open."""

    @staticmethod
    def build(
        documents: Source,
        *,
        out: str | Path,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        recipe: Recipe | str = recipes.DEFAULT,
        extras: str | Sequence[str] = (),
        memory: int | None = None,
        progress: Report = None,
        overwrite: bool = False,
        resume: bool = True,
    ) -> Index:
        """Indexes documents, or what `lexent.index` reads, into the folder `out` and opens it.

        The folder appears when all is written; an index that stood there stays until then, also when this is killed.
        What was interrupted goes on where it stopped when the same is called again; resume=False begins anew.
        extras: what to keep for comparison with other ways to search: "dense", the encoder's own vectors; "lexical",
        words in the posting lists, which `words` of the recipe weighs.
        memory: bytes that packing the documents stays within, beside the encoder's. progress: True for a bar, or a
        function that is called with the number of documents that were just finished.
        """
        out = arguments.path("out", out)
        arguments.flag("overwrite", overwrite)
        given, chosen = acceptance.documents_of(documents), recipes.get(recipe)
        names, budget = arguments.names("extras", extras), arguments.whole_or_none("memory", memory, least=1)
        with counting(arguments.progress(progress), "indexing", acceptance.count_of(given)) as count:
            used = builder.build(
                acceptance.fitting(given),
                out,
                encoder=encoder,
                lexicon=lexicon,
                recipe=chosen,
                extras=names,
                memory=budget,
                progress=count,
                overwrite=overwrite,
                resume=arguments.flag("resume", resume),
            )
        return Index(out, encoder=used.encoder, lexicon=used.lexicon)

    @staticmethod
    def open(
        path: str | Path,
        *,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        retune: Settings | None = None,
        wait: float = 0.0,
        trust_encoder: bool = False,
    ) -> Index:
        """Opens the index at `path`. Its encoder and lexicon are found by the names it carries unless given here.

        Both are loaded when first needed; a MismatchError says so when they are not those it was built with.
        retune: settings to search by instead of the index's own, for example {"k1": 3, "b": 0.4}; nothing is written.
        wait: for how many seconds a change waits while another process writes to the index.
        trust_encoder: let the encoder that the index names be downloaded, and run code. Without it, one that you do not
        give here must be on this machine, as plain settings and safetensors.
        """
        return Index(path, encoder=encoder, lexicon=lexicon, retune=retune, wait=wait, trust_encoder=trust_encoder)

    @staticmethod
    def restore(
        file: str | Path | IO[bytes], *, out: str | Path, overwrite: bool = False, progress: Report = None
    ) -> Index:
        """Makes an index in the folder `out` of a backup, and opens it.

        file: the path of what `backup` wrote, or an open binary stream. The folder appears when each of its files has
        the checksum that the backup gives. Names, links and sizes that `backup` does not write are refused. progress:
        True for a bar, or a function that is called with numbers of bytes.
        """
        out = arguments.path("out", out)
        place = _place_of(file, "read")
        overwrite = arguments.flag("overwrite", overwrite)
        backup.restore(place, out, overwrite=overwrite, progress=arguments.progress(progress))
        return Index(out)

    # --- read --------------------------------------------------------------------------------------------------

    @property
    def encoder(self) -> Encoder:
        """The encoder of the index."""
        return self._models.encoder

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon of the index, with the labels that users gave."""
        return self._models.lexicon

    @property
    def manifest(self) -> Manifest:
        """The manifest of the generation that is open."""
        return self.searcher.manifest

    @property
    def recipe(self) -> Recipe:
        """The recipe that queries are weighted by."""
        return self.searcher.recipe

    @property
    def documents(self) -> IndexReader:
        """The reader of the generation that is open."""
        return self.searcher.reader

    def __len__(self) -> int:
        return len(self.searcher)

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
        like: str | Sequence[str] = (),
        unlike: str | Sequence[str] = (),
        unit: Unit = "document",
        min_score: float | None = None,
        min_strength: float | None = None,
    ) -> Results:
        """The k best documents for a query, or all that share a concept with it where those are fewer.

        A document has the score of its best passage. unit: "passage" gives passages, of which several may be of one.
        steer: factors by concept; see `lexent.search.steering`. filter: only documents whose metadata match, for
        example {"year": {"gte": 2019}, "lang": "en"}. idf_of_subset: concepts count by how rare they are among those.
        mode: for recipes that match tokens (ssr), "exact", or "fast": candidates first, approximate (a `Fast` has its
        settings); as the recipe says where it is not given. feedback: search twice, the second time also by concepts of
        the first hits: how many of those, or a Feedback. like, unlike: ids of documents to learn from and against, one
        or several; what changed is in `Results.added`. min_score, min_strength: leave out documents below it; a
        strength means the same for every query. What steering moved is in `Results.steered`.
        """
        learning = Learning.of(feedback, like=like, unlike=unlike)
        return self.searcher.search_many(
            [query],
            k=k,
            steer=steer,
            where=filter,
            idf_of_subset=idf_of_subset,
            mode=mode,
            learning=learning,
            unit=unit,
            min_score=min_score,
            min_strength=min_strength,
        )[0]

    def search_fused(
        self,
        query: str,
        *,
        k: int = 10,
        fuse: str | Sequence[str] | Mapping[str, float | None] = "bm25",
        fusion: Method = "sum",
        steer: steering.Steer | None = None,
        filter: Where | None = None,
        idf_of_subset: bool = False,
        feedback: Feedback | int | None = None,
        like: str | Sequence[str] = (),
        unlike: str | Sequence[str] = (),
    ) -> FusedResults:
        """The k best documents by concepts and by words or vectors together; every hit says what each of them gave.

        fuse: what to fuse the concepts with: "bm25", BM25 over words, and "dense", the cosine of the encoder's own
        vectors, where the index was built with extras=["dense"]; a mapping gives weights. An index that was built
        with extras=["lexical"] or by the recipe hybrid holds its words; those of another are counted in memory when
        first needed, which takes seconds for some thousands of documents.
        fusion: by calibrated scores or by reciprocal ranks, see `lexent.search.fusion`. The others: as for `search`.
        """
        learning = Learning.of(feedback, like=like, unlike=unlike)
        sides = dict(fuse) if isinstance(fuse, Mapping) else dict.fromkeys(arguments.names("fuse", fuse))
        searcher = self.searcher
        prepared = searcher.prepared([query], steer=steer, where=filter, idf_of_subset=idf_of_subset, learning=learning)
        return fused.search(searcher, prepared, k=k, sides=sides, method=fusion)

    def search_many(
        self,
        queries: Sequence[str],
        *,
        k: int = 10,
        filter: Where | None = None,
        idf_of_subset: bool = False,
        mode: Mode = None,
        feedback: Feedback | int | None = None,
        unit: Unit = "document",
    ) -> list[Results]:
        """The results of several queries, encoded together and searched on all cores."""
        queries = arguments.texts("queries", queries, remedy="for one query call index.search(query)")
        learning = Learning.of(feedback)
        return self.searcher.search_many(
            queries, k=k, where=filter, idf_of_subset=idf_of_subset, mode=mode, learning=learning, unit=unit
        )

    def dense_search(self, query: str, *, k: int = 10) -> list[DenseHit]:
        """The k documents of highest cosine with a query, by the encoder's own vectors, for comparison.

        The index must have been built with extras=["dense"].
        """
        return self.searcher.dense_search(query, k=k)

    def query(
        self,
        text: str,
        *,
        steer: steering.Steer | None = None,
        feedback: Feedback | int | None = None,
        like: str | Sequence[str] = (),
        unlike: str | Sequence[str] = (),
    ) -> Query:
        """A query with its final weights, as `search` has them."""
        return self.searcher.query(text, steer=steer, learning=Learning.of(feedback, like=like, unlike=unlike))

    def explain(
        self,
        query: str,
        id: str,
        *,
        steer: steering.Steer | None = None,
        feedback: Feedback | int | None = None,
        like: str | Sequence[str] = (),
        unlike: str | Sequence[str] = (),
    ) -> RankExplanation:
        """Where a document stands for a query, and why not higher: as `lexent explain` shows it."""
        arguments.text("id", id)
        return why(self, query, id, steer=steer, feedback=feedback, like=like, unlike=unlike)

    def concepts(self, query: Query) -> list[QueryConcept]:
        """The concepts of a query, strongest first."""
        arguments.instance("query", query, Query, allowed="a Query: index.query(TEXT)")
        return self.searcher.concepts(query)

    def document(self, id: str) -> Document:
        """The document of that id."""
        arguments.text("id", id)
        return self.searcher.reader.get(id)

    def info(self) -> dict[str, Any]:
        """What the index holds and what it was made with."""
        manifest = self.manifest
        size = sum(file.size for file in manifest.files.values())
        return {
            "path": str(self.path),
            **manifest.counts.model_dump(),
            "concepts": manifest.lexicon.size,
            "words": manifest.words,
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

    def backup(self, file: str | Path | IO[bytes], *, overwrite: bool = False, progress: Report = None) -> Manifest:
        """Writes the newest generation of the index to one file, a tar archive; gives its manifest.

        Writers go on meanwhile. The file holds all that was acknowledged before the call, and no half of a change. It
        does not hold the encoder and the lexicon. file: a path, of a compressed file where it ends in .gz or .tgz, or
        an open binary stream. progress: True for a bar, or a function that is called with numbers of bytes.
        """
        place = _place_of(file, "write")
        overwrite = arguments.flag("overwrite", overwrite)
        return backup.backup(self.path, place, overwrite=overwrite, progress=arguments.progress(progress))

    def refresh(self) -> bool:
        """Shows what was changed since this was opened; says whether anything was."""
        with self._refreshing:  # a slow thread must not put an older generation in the place of a newer one
            if Manifest.read(self.path) == self.manifest:
                return False
            reader = IndexReader.open(self.path)
            self._models.check(reader.manifest)
            self._models = self._models.of_generation(reader.manifest)
            self.searcher = Searcher(reader, self._models, explainer=EXPLAINER, settings=self._settings)
            return True

    def close(self) -> None:
        """Close the files of the index."""
        self.searcher.reader.close()

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
        progress: Report = None,
    ) -> int:
        """Adds documents, all of them or none; gives how many. They are on the disk when this returns.

        source: documents, dicts or strings, or a file or folder, as for `lexent.index`. upsert: documents whose id is
        already there take the place of those; without it, such an id is an InputError. Rows without ids get numbers
        that no document of the index has, and cannot be upserted.
        """
        replaced: list[int] = []
        arguments.flag("upsert", upsert)
        arguments.progress(progress)
        documents = acceptance.documents_of(source)
        with self._writer(memory) as writer, counting(progress, "adding", acceptance.count_of(documents)) as count_done:
            self._models.check(writer.reader.manifest)

            def material(chunk: list[Document]) -> EncodedDocuments:
                pipeline = Pipeline(self.encoder, self.lexicon, writer.recipe)
                manifest = writer.reader.manifest
                kept: Any = {"extras": manifest.extras, "words": manifest.words}
                return builder.material_of(chunk, pipeline, **kept, progress=count_done)

            numbered = acceptance.Numbered(documents, writer.reader, upsert=upsert)
            with writer.new_segment() as segment:
                for chunk in builder.in_chunks(numbered.on(acceptance.fitting(documents, writer.field_kinds()))):
                    there = writer.reader.positions([document.id for document in chunk])
                    if there and not upsert:
                        chunk = acceptance.not_in_index(chunk, there, documents)
                        there = {}
                    replaced += chain.from_iterable(map(writer.reader.run, there.values()))
                    if chunk:
                        segment.add(chunk, partial(material, chunk))
            count = segment.documents.count
            if count:
                writer.append(segment.part(), replaced=replaced)
                writer.tidy()
            else:
                segment.discard()
        self._show_change()
        return count

    def upsert(self, source: Source, *, memory: int | None = None, progress: Report = None) -> int:
        """Adds documents; those whose id is already there take the place of the older ones. All of them or none."""
        return self.add(source, upsert=True, memory=memory, progress=progress)

    def delete(
        self, ids: str | Iterable[str] | None = None, *, filter: Where | None = None, missing: bool = False
    ) -> int:
        """Deletes documents by id, or those that match a filter; all of them or none. Gives how many.

        ids: one or several; a single string is one id. An id that is not there is a NotFoundError, unless missing is
        true. filter: as for `search`, for example {"year": {"lt": 2000}}.
        """
        arguments.flag("missing", missing)
        if (ids is None) == (filter is None):
            given = "neither ids nor a filter" if ids is None else "ids and a filter"
            raise InputError(
                f'delete was given {given}; allowed: one of them, such as delete("7"), delete(filter={{...}})'
            )
        if filter is not None and not arguments.mapping("filter", filter, allowed="a mapping of fields"):
            raise InputError("the filter is empty and would delete every document; name a field, or build a new index")
        names = [] if ids is None else arguments.names("ids", ids, allowed="the id of a document, or a list of ids")
        wanted = list(dict.fromkeys(names))
        with self._writer() as writer:
            there = writer.reader.positions(wanted)
            if len(there) < len(wanted) and not missing:
                writer.reader.position(next(id for id in wanted if id not in there))  # which says what is missing
            passages = list(chain.from_iterable(map(writer.reader.run, there.values())))
            if filter is not None:
                passages = writer.matching(Filter.of(filter)).tolist()
            count = len(set(writer.reader.owners[passages].tolist()))
            if count:
                writer.delete(passages)
                writer.tidy()
        self._show_change()
        return count

    def _show_change(self) -> None:
        """Shows what this process has just changed."""
        try:
            self.refresh()
        except ResourceError as error:
            raise ResourceError(
                f"the change is on the disk, but it cannot be shown here: {error}; then call index.refresh()"
            ) from error

    def _writer(self, memory: int | None = None) -> Writer:
        return Writer(self.path, memory=arguments.whole_or_none("memory", memory, least=1), wait=self.wait)

    def compact(self, *, memory: int | None = None, progress: Report = None) -> None:
        """Writes all documents into one segment, without what was deleted. Searches give the same, quicker."""
        arguments.progress(progress)
        with self._writer(memory) as writer:
            before = writer.reader.manifest
            with counting(progress, "compacting", before.counts.passages, "passages") as count:
                writer.compact(progress=count)
            if writer.reader.manifest != before or before.names is None:
                writer.name_concepts(self._models.unnamed_lexicon)
        self._show_change()

    def name_concepts(self) -> int:
        """Names the concepts anew from the words of the documents as they are now; gives how many names changed.

        Names change only here and at compaction. Former names still find their concepts; a name that `rename` gave
        stays.
        """
        before = [concept.label for concept in self.lexicon.concepts]
        with self._writer() as writer:
            self._models.check(writer.reader.manifest)
            writer.name_concepts(self._models.unnamed_lexicon)
        self._show_change()
        return sum(old != new.label for old, new in zip(before, self.lexicon.concepts, strict=True))

    def retune(self, **settings: Any) -> None:
        """Changes settings of the index for good, without encoding anything: k1, b, idf, power, caps and others.

        Scores then equal those of an index that was built with them.
        """
        with self._writer() as writer:
            recipe = recipes.retuned(writer.recipe, settings)
            if recipe != writer.recipe:
                writer.retune(recipe)
        self._show_change()

    def rename(self, concept: str | int, label: str | None) -> None:
        """Gives a concept a name of your own, for everyone who opens this index; None gives it back its own."""
        self._models.rename(self.lexicon.resolve(concept).id, arguments.text_or_none("label", label))


def _place_of(file: str | Path | IO[bytes], use: str) -> Path | IO[bytes]:
    """A path, or a stream as it is."""
    if hasattr(file, use) and not arguments.is_path(file):
        return cast("IO[bytes]", file)
    return arguments.path("file", file, allowed="a path, or an open binary stream")
