"""The index as a caller sees it: build, open, search."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lexent import recipes
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.indexing.documents import Documents
from lexent.indexing.manifest import Manifest, verify
from lexent.indexing.postings import Postings
from lexent.recipes import Recipe
from lexent.search import builder, steering
from lexent.search.parts import EncoderLike, LexiconLike, load_encoder, load_lexicon
from lexent.search.query import Query
from lexent.search.results import Hit, QueryConcept, Results
from lexent.search.searcher import Searcher
from lexent.types import Document, SparseVectors
from lexent.weighting import transform

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

T = TypeVar("T")


class Index:
    """Documents that can be searched by concepts. Made by `Index.build` or `Index.open`."""

    def __init__(self, path: Path, *, encoder: EncoderLike = None, lexicon: LexiconLike = None) -> None:
        self.path = path
        self.manifest = Manifest.read(path)
        self.recipe = Recipe.from_dict(self.manifest.recipe)
        counts = self.manifest.counts
        postings = Postings.open(
            path,
            n_latents=self.manifest.lexicon.size,
            n_documents=counts.documents,
            n_postings=counts.postings,
        )
        self.searcher = Searcher(postings, self.recipe)
        self.documents = Documents(path)
        self._given = (encoder, lexicon)
        self._encoder: Encoder | None = None
        self._lexicon: Lexicon | None = None
        self._loading = threading.RLock()
        # What is already at hand is checked now; what must be loaded, when it is first needed.
        if encoder is not None and not isinstance(encoder, str | Path):
            _ = self.encoder
        if lexicon is not None and not isinstance(lexicon, str | Path):
            _ = self.lexicon

    @staticmethod
    def build(
        documents: Iterable[Document],
        *,
        out: str | Path,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        recipe: Recipe | str = "latent-terms",
        progress: builder.Progress | None = None,
        overwrite: bool = False,
    ) -> Index:
        """Indexes documents into the folder `out` and opens it.

        The folder appears when all is written; an index that stood there stays until then, also when this is killed.
        """
        out = Path(out)
        used = builder.build(
            documents,
            out,
            encoder=encoder,
            lexicon=lexicon,
            recipe=recipes.get(recipe),
            progress=progress,
            overwrite=overwrite,
        )
        return Index(out, encoder=used[0], lexicon=used[1])

    @staticmethod
    def open(path: str | Path, *, encoder: EncoderLike = None, lexicon: LexiconLike = None) -> Index:
        """Opens the index at `path`. Its encoder and lexicon are found by the names it carries unless given here.

        Both are loaded when first needed; a MismatchError says so when they are not those it was built with.
        """
        return Index(Path(path), encoder=encoder, lexicon=lexicon)

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

    def __len__(self) -> int:
        return self.manifest.counts.documents

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}, {len(self):,} documents)"

    def search(self, query: str, *, k: int = 10, steer: steering.Steer | None = None) -> Results:
        """The k best documents for a query, or all that share a concept with it where those are fewer.

        steer: factors by concept; see `lexent.search.steering`.
        """
        _check_k(k)
        return self._results([self.query(query, steer=steer)], k)[0]

    def search_many(self, queries: Sequence[str], *, k: int = 10) -> list[Results]:
        """The results of several queries, encoded together and searched on all cores."""
        _check_k(k)
        weights = self.searcher.query_weights(self._represent(queries))
        return self._results([Query.of(text, weights.take(np.array([row]))) for row, text in enumerate(queries)], k)

    def query(self, text: str, *, steer: steering.Steer | None = None) -> Query:
        """A query with its final weights."""
        vector = self._represent([text])
        if steer:
            vector = steering.steered(vector, steer, lexicon=self.lexicon)
        return Query.of(text, self.searcher.query_weights(vector))

    def concepts(self, query: Query) -> list[QueryConcept]:
        """The concepts of a query, strongest first."""
        found = [
            QueryConcept(concept, self.lexicon.label(concept), weight)
            for concept, weight in zip(query.ids.tolist(), query.weights.tolist(), strict=True)
        ]
        return sorted(found, key=lambda concept: (-abs(concept.weight), concept.id))

    def document(self, id: str) -> Document:
        """The document of that id."""
        return self.documents.get(id)

    def info(self) -> dict[str, Any]:
        """What the index holds and what it was made with."""
        manifest = self.manifest
        size = sum(file.size for file in manifest.files.values())
        return {
            "path": str(self.path),
            **manifest.counts.model_dump(),
            "concepts": manifest.lexicon.size,
            "bytes": size,
            "encoder": manifest.encoder.model_dump(),
            "lexicon": {"name": manifest.lexicon.name, "hash": manifest.lexicon.hash},
            "recipe": manifest.recipe,
            "created": manifest.created,
            "lexent": manifest.lexent,
            "format": manifest.format,
        }

    def verify(self) -> None:
        """Reads every file and compares it with its hash; an ArtifactError names those that changed."""
        verify(self.path)

    def close(self) -> None:
        self.documents.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _represent(self, queries: Sequence[str]) -> SparseVectors:
        from lexent.pipeline import represent

        for place, query in enumerate(queries):
            if not query.strip():
                which = f" (number {place + 1} of {len(queries)})" if len(queries) > 1 else ""
                raise InputError(f'the query{which} is empty; type some words, for example "sort a list"')
        recipe = self.recipe
        pooled = represent(queries, kind="query", encoder=self.encoder, lexicon=self.lexicon, recipe=recipe)
        return transform(pooled, power=recipe.power, cap=recipe.query_cap)

    def _results(self, queries: Sequence[Query], k: int) -> list[Results]:
        size = self.manifest.lexicon.size
        vectors = SparseVectors.concatenate([query.vectors(size) for query in queries], size=size)
        found = self.searcher.top_weighted(vectors, k)
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


def _check_k(k: int) -> None:
    if k < 0:
        raise InputError(f"k is {k}; allowed: 0 or more")
