"""The encoder and the lexicon of a server: loaded once, used from any thread, worked in one.

Queries that come together are encoded and coded together. One thread, also because the tokenizers of Hugging Face may
not be used from several at once, and because torch keeps memory and helpers for every thread that uses it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.lexicon.lexicon import Lexicon
from lexent.server.turns import Turns
from lexent.types import Kind, Level, RowCodes, States, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders import Encoder
    from lexent.lexicon.concepts import Concepts
    from lexent.lexicon.lexicon import LexiconInfo

STEP = 8
"""Documents that are encoded before queries have their turn again."""
REMEMBERED = 512
"""Queries whose states are kept: what is asked again is not encoded again."""
FEW = 512
"""Rows of states that count as a query's, and are coded before all else."""

Observe = Callable[[int, float], None]


class SharedEncoder:
    """An encoder as others are, to be used from any thread."""

    def __init__(self, encoder: Encoder, turns: Turns, *, observe: Observe | None = None) -> None:
        """observe: told the size of each batch of queries, and the seconds that it took."""
        self.encoder, self.turns = encoder, turns
        self.id, self.fingerprint, self.dim = encoder.id, encoder.fingerprint, encoder.dim
        self.prompts: dict[str, str] = dict(getattr(encoder, "prompts", {}))
        self._observe = observe
        self._known: OrderedDict[Any, Any] = OrderedDict()
        self._lock = Lock()

    def batches(
        self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States]]:
        if kind == "query" and len(texts) == 1:
            yield np.zeros(1, np.int64), self._query(texts[0], level, specials)
            return
        for rows in _steps(texts):

            def work(given: list[Any]) -> list[Any]:
                return [_joined(self._states(own, kind, level, specials)) for own in given]

            yield rows, self.turns.ask([texts[row] for row in rows], work)

    def batches_with_whole(
        self, texts: Sequence[str], *, kind: Kind, specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States, States]]:
        """As `batches` for tokens, with the pooled state of each text beside."""
        from lexent.encoders.encoder import batches_with_whole

        def work(given: list[Any]) -> list[Any]:
            return [list(batches_with_whole(self.encoder, own, kind=kind, specials=specials)) for own in given]

        for rows in _steps(texts):
            for places, states, whole in self.turns.ask([texts[row] for row in rows], work, urgent=kind == "query"):
                yield rows[places], states, whole

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        def work(given: list[Any]) -> list[Any]:
            return [self.encoder.tokenize(own, kind=kind, specials=specials) for own in given]

        found: list[Tokens] = self.turns.ask(list(texts), work, urgent=kind == "query")
        return found

    def _query(self, text: str, level: Level, specials: bool) -> States:
        key = (text, level, specials)
        with self._lock:
            known = self._known.get(key)
        if known is None:

            def work(given: list[Any]) -> list[Any]:
                once = list(dict.fromkeys(given))  # a query that several ask for at once is encoded once
                found = dict(zip(once, self._states(once, "query", level, specials), strict=True))
                return [found[one] for one in given]

            known = self.turns.ask(text, work, group=(id(self), level, specials), urgent=True)
            with self._lock:
                self._known[key] = known
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return States(known, np.array([0, len(known)], np.int64))

    def _states(self, texts: Sequence[str], kind: Kind, level: Level, specials: bool) -> list[Any]:
        """The states of each text, as tensors of their own."""
        start = perf_counter()
        parts: list[Any] = [None] * len(texts)
        for rows, states in self.encoder.batches(texts, kind=kind, level=level, specials=specials):
            for place, row in enumerate(rows.tolist()):
                # A copy: a slice would keep the whole batch alive as long as it is remembered.
                parts[row] = states.values[int(states.offsets[place]) : int(states.offsets[place + 1])].clone()
        if self._observe is not None and kind == "query":
            self._observe(len(texts), perf_counter() - start)
        return parts


class SharedLexicon(Lexicon):
    """A lexicon whose codes are made in the same thread, those of queries that come together in one go."""

    def __init__(self, lexicon: Lexicon, turns: Turns) -> None:
        parts: Any = {"own_encoder": lexicon.own_encoder, "bucket_weights": lexicon.bucket_weights}
        super().__init__(lexicon.sae, lexicon.concepts, lexicon.info, whole=lexicon.whole, **parts)
        self._plain, self._turns = lexicon, turns

    def codes(self, states: States, *, k: int) -> RowCodes:
        def work(given: list[Any]) -> list[Any]:
            codes = self._plain.codes(_joined([one.values for one in given]), k=k)
            ends = codes.offsets
            rows = [slice(int(ends[place]), int(ends[place + 1])) for place in range(len(given))]
            pairs = zip(given, rows, strict=True)
            return [RowCodes(codes.ids[part], codes.values[part], one.offsets) for one, part in pairs]

        few = len(states.values) <= FEW
        found: RowCodes = self._turns.ask(states, work, group=(id(self.sae), k) if few else None, urgent=few)
        return found

    def whole_codes(self, states: States, *, k: int | None = None) -> RowCodes:
        found: RowCodes = self._turns.ask(states, lambda given: [self._plain.whole_codes(one, k=k) for one in given])
        return found

    def renamed(self, concepts: Concepts, info: LexiconInfo | None = None) -> Lexicon:
        return SharedLexicon(self._plain.renamed(concepts, info), self._turns)


def _joined(parts: Sequence[Any]) -> States:
    import torch

    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return States(torch.cat(list(parts)), offsets)


def _steps(texts: Sequence[str]) -> Iterator[NDArray[np.int64]]:
    """Positions of a few texts at a time; those of like length together, so that little is padded."""
    order = np.argsort([len(text) for text in texts], kind="stable").astype(np.int64)
    for start in range(0, len(texts), STEP):
        yield order[start : start + STEP]
