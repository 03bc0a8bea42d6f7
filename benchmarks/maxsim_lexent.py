"""Lexent's side of the MaxSim benchmark: an index of the given token states, built and asked as users do."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.maxsim_data import Collection, TokenStates
from lexent.search.modes import Fast, Mode
from lexent.types import Document, Kind, Level, States, Tokens

CHUNK = 256
"""Texts whose states are read at a time."""


class Mapped:
    """Stands for the encoder that made the states: gives them back from the file, so that encoding costs nothing."""

    def __init__(self, encoder: Any, texts: dict[Kind, Sequence[str]], states: dict[Kind, TokenStates]) -> None:
        self.encoder, self.states = encoder, states
        self.places = {kind: {text: place for place, text in enumerate(found)} for kind, found in texts.items()}
        self.id, self.dim, self.fingerprint = encoder.id, encoder.dim, encoder.fingerprint
        self.prompts = encoder.prompts

    def batches(
        self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States]]:
        import torch

        assert (level, specials) == ("tokens", True), "only states of all tokens were kept"
        found, places = self.states[kind], self.places[kind]
        for start in range(0, len(texts), CHUNK):
            part = [places[text] for text in texts[start : start + CHUNK]]
            rows = [found.of(place) for place in part]
            lengths = np.concatenate([found.lengths[found.offsets[place] : found.offsets[place + 1]] for place in part])
            values = torch.from_numpy(np.concatenate(rows).astype(np.float32)) * torch.from_numpy(lengths)[:, None]
            offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
            yield start + np.arange(len(part)), States(values, offsets)

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        found: list[Tokens] = self.encoder.tokenize(texts, kind=kind, specials=specials)
        return found


def is_default(settings: dict[str, int] | None) -> bool:
    """Whether these are what the fast mode has where a user gives none."""
    return settings is not None and Fast(**settings) == Fast()


class Lexent:
    """One index, asked in exact mode and with several settings of the fast mode."""

    def __init__(
        self, collection: Collection, passages: TokenStates, queries: TokenStates, lexicon: str | None
    ) -> None:
        from lexent import recipes
        from lexent.errors import NotFoundError
        from lexent.lexicon import load as load_lexicon
        from lexent.models import load_encoder

        self.recipe, self.texts, self.queries = (
            recipes.get("ssr"),
            collection.passages[: len(passages)],
            collection.queries,
        )
        self.stand_in = False
        try:
            self.lexicon = load_lexicon(lexicon, recipe=self.recipe)
        except NotFoundError:
            if lexicon is not None:
                raise
            self.lexicon, self.stand_in = load_lexicon(), True
        sides: dict[Kind, Sequence[str]] = {"document": self.texts, "query": self.queries}
        self.encoder = Mapped(load_encoder(), sides, {"document": passages, "query": queries})

    def build(self, folder: Path) -> dict[str, Any]:
        """Codes the states of all passages and writes the index. One that stood there goes."""
        from lexent.engine import Index

        documents = [Document(str(number), text) for number, text in enumerate(self.texts)]
        Index.build(
            documents[:64], out=folder, encoder=self.encoder, lexicon=self.lexicon, recipe=self.recipe, overwrite=True
        )
        began, cpu = time.perf_counter(), time.process_time()
        self.index = Index.build(
            documents, out=folder, encoder=self.encoder, lexicon=self.lexicon, recipe=self.recipe, overwrite=True
        )
        found = {"build_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
        self._opened()
        sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
        texts = sum(size for path, size in sizes.items() if "documents" in str(path.relative_to(folder)))
        return {**found, "bytes": sum(sizes.values()) - texts, "text_bytes": texts}

    def _opened(self) -> None:
        searcher = self.index.searcher
        self.scorer: Any = searcher.maxsim
        self.coded_queries = [self.coded(number) for number in range(len(self.queries))]

    def coded(self, number: int) -> Any:
        """A query with its final weights, from its states."""
        from lexent.pipeline import Pipeline
        from lexent.search import token_rows

        rows = token_rows.represent([self.queries[number]], Pipeline(self.encoder, self.lexicon, self.recipe))
        return rows[0].query(self.queries[number], self.scorer.document_scorer)

    def searching(self, settings: dict[str, int] | None, k: int) -> Any:
        """A search by the number of a query: with some settings of the fast mode, or exact."""
        mode: Mode = "exact" if settings is None else Fast(**settings)
        return lambda number: self.scorer.top([self.coded_queries[number]], k, mode=mode, threads=1)

    def ids(self, answer: Any) -> list[int]:
        return [int(place) for place in answer.positions[0] if place >= 0]

    def brute(self, number: int, k: int) -> tuple[list[int], list[float]]:
        """The best of all passages, each scored: equation 4, ties in the order of the passages."""
        scores, hits = self.scorer.scores(self.coded_queries[number])
        places = np.flatnonzero(hits)
        best = places[np.lexsort((places, -scores[places]))][:k]
        return best.tolist(), scores[best].tolist()

    def agrees(self, number: int, places: Sequence[int]) -> bool:
        """Whether the slow twin of the kernels gives some passages the same scores."""
        from lexent.indexing.postings import quantisation
        from lexent.topk import maxsim_reference as reference

        query = self.coded_queries[number]
        rows = query.rows
        factor = quantisation.row_scale(rows.weights, rows.offsets)
        weights = quantisation.quantise_weights(rows.weights, factor)
        scores, _ = self.scorer.scores(query)
        bases, store = self.scorer.document_scorer.bases, self.scorer.stores[0]
        assert len(bases) == 2, "one segment"
        slow = [
            reference.score(reference.similarities(store, place, rows.ids, weights, rows.offsets)) for place in places
        ]
        return bool(np.array_equal(np.array(slow) / (factor * quantisation.LINEAR_STEPS), scores[np.array(places)]))
