"""The encoder and the lexicon of a server: loaded once, called from any thread, run in the micro-batching thread.

Queries that arrive together are encoded and coded in one batch. There is one thread for all of it because the
tokenizers of Hugging Face are not safe to use from several threads at once, and because torch keeps memory and worker
threads for every thread that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.bounded_cache import BoundedCache
from lexent.encoders.encoder import batches_with_whole
from lexent.lexicon.lexicon import Lexicon
from lexent.server.micro_batching import MicroBatcher
from lexent.types import Kind, Level, RowCodes, States, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders import Encoder
    from lexent.lexicon.concepts import Concepts
    from lexent.lexicon.lexicon import LexiconInfo

DOCUMENTS_PER_BATCH = 8
"""Documents of a batch: queries that arrive wait for at most one such batch."""
MAX_CACHED_QUERIES = 512
"""Queries whose states are cached."""
MAX_QUERY_STATES = 512
"""At most so many states count as a query's and are coded at high priority."""

Observe = Callable[[int, float], None]


class SharedEncoder:
    """An encoder that may be called from any thread."""

    def __init__(self, encoder: Encoder, batcher: MicroBatcher, *, observe: Observe | None = None) -> None:
        """observe: called with the size of each batch of queries and the seconds it took."""
        self.encoder, self.batcher = encoder, batcher
        self.id, self.fingerprint, self.dim = encoder.id, encoder.fingerprint, encoder.dim
        self.prompts: dict[str, str] = dict(getattr(encoder, "prompts", {}))
        self._observe = observe
        self._known: BoundedCache[Any, Any] = BoundedCache(MAX_CACHED_QUERIES)

    def batches(
        self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States]]:
        """States of texts; single queries that arrive together share a batch."""
        if kind == "query" and len(texts) == 1:
            yield np.zeros(1, np.int64), self._query(texts[0], level, specials)
            return
        for rows in _micro_batches(texts):
            own = [texts[row] for row in rows]
            yield rows, self.batcher.call(partial(self._joined_states, own, kind, level, specials))

    def batches_with_whole(
        self, texts: Sequence[str], *, kind: Kind, specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States, States]]:
        """As `batches` for tokens, with the pooled state of each text beside."""
        for rows in _micro_batches(texts):
            found = batches_with_whole(self.encoder, [texts[row] for row in rows], kind=kind, specials=specials)
            parts: list[tuple[NDArray[np.int64], States, States]]
            parts = self.batcher.call(partial(list, found), urgent=kind == "query")  # encoded in that thread
            for places, states, whole in parts:
                yield rows[places], states, whole

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens of texts with their places."""
        work = partial(self.encoder.tokenize, texts, kind=kind, specials=specials)
        return self.batcher.call(work, urgent=kind == "query")

    def _query(self, text: str, level: Level, specials: bool) -> States:
        def work(given: list[Any]) -> list[Any]:
            once = list(dict.fromkeys(given))  # duplicate queries in a batch are encoded once
            found = dict(zip(once, self._states(once, "query", level, specials), strict=True))
            return [found[one] for one in given]

        def make() -> Any:
            return self.batcher.run(text, work, group=(id(self), level, specials), urgent=True)

        known = self._known.get_or_make((text, level, specials), make)
        return States(known, np.array([0, len(known)], np.int64))

    def _joined_states(self, texts: Sequence[str], kind: Kind, level: Level, specials: bool) -> States:
        return States.joined(self._states(texts, kind, level, specials))

    def _states(self, texts: Sequence[str], kind: Kind, level: Level, specials: bool) -> list[Any]:
        """The states of each text, as tensors or arrays of their own."""
        start = perf_counter()
        parts: list[Any] = [None] * len(texts)
        for rows, states in self.encoder.batches(texts, kind=kind, level=level, specials=specials):
            for place, row in enumerate(rows.tolist()):
                # A copy: a slice would keep the whole batch in memory as long as it is cached.
                parts[row] = deepcopy(states.rows(place))
        if self._observe is not None and kind == "query":
            self._observe(len(texts), perf_counter() - start)
        return parts


class SharedLexicon(Lexicon):
    """A lexicon that codes states in the micro-batching thread; queries that arrive together form one batch."""

    def __init__(self, lexicon: Lexicon, batcher: MicroBatcher) -> None:
        parts: Any = {"own_encoder": lexicon.own_encoder, "bucket_weights": lexicon.bucket_weights}
        super().__init__(lexicon.sae, lexicon.concepts, lexicon.info, whole=lexicon.whole, **parts)
        self._plain, self._batcher = lexicon, batcher

    def codes(self, states: States, *, k: int) -> RowCodes:
        """The k strongest latents of each state, coded in the micro-batching thread."""

        def work(given: list[Any]) -> list[Any]:
            codes = self._plain.codes(States.joined([one.values for one in given]), k=k)
            ends = codes.offsets
            rows = [slice(int(ends[place]), int(ends[place + 1])) for place in range(len(given))]
            pairs = zip(given, rows, strict=True)
            return [RowCodes(codes.ids[part], codes.values[part], one.offsets) for one, part in pairs]

        few = len(states.values) <= MAX_QUERY_STATES
        found: RowCodes = self._batcher.run(
            states, work, group=(id(self.sae), k, type(states.values)) if few else None, urgent=few
        )
        return found

    def whole_codes(self, states: States, *, k: int | None = None) -> RowCodes:
        """The codes of the vectors of whole texts."""
        return self._batcher.call(lambda: self._plain.whole_codes(states, k=k))

    def renamed(self, concepts: Concepts, info: LexiconInfo | None = None) -> Lexicon:
        """The same lexicon with other labels."""
        return SharedLexicon(self._plain.renamed(concepts, info), self._batcher)


def _micro_batches(texts: Sequence[str]) -> Iterator[NDArray[np.int64]]:
    """Positions of the texts of each batch, sorted by length so that little is padded."""
    order = np.argsort([len(text) for text in texts], kind="stable").astype(np.int64)
    for start in range(0, len(texts), DOCUMENTS_PER_BATCH):
        yield order[start : start + DOCUMENTS_PER_BATCH]
