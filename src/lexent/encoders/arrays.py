"""States that were made elsewhere, as an encoder: texts are looked up, not encoded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lexent.encoders.encoder import check
from lexent.errors import InputError, NotFoundError
from lexent.types import Batches, Kind, Level, States, Tokens


class ArrayEncoder:
    """Precomputed states by text: one vector [d] a text (pooled), or a matrix [n_tokens, d] a text (tokens)."""

    def __init__(self, states: Mapping[str, NDArray[np.floating]], *, id: str = "arrays") -> None:
        if not states:
            raise InputError("an ArrayEncoder needs at least one text with its states")
        ranks = {array.ndim for array in states.values()}
        widths = {array.shape[-1] for array in states.values()}
        if len(ranks) != 1 or len(widths) != 1 or not ranks <= {1, 2}:
            raise InputError(
                f"all states need one form, [d] or [n_tokens, d]; given ranks {sorted(ranks)}, widths {sorted(widths)}"
            )
        for text, array in states.items():
            with np.errstate(over="ignore"):
                lengths = np.linalg.norm(np.atleast_2d(array).astype(np.float32), axis=1)
            if not np.isfinite(lengths).all():
                row = int(np.flatnonzero(~np.isfinite(lengths))[0])
                raise InputError(
                    f"the states of the text {text[:60]!r} are not finite in row {row}; give finite numbers for it, or "
                    "leave the text out"
                )
        self._states = dict(states)
        self.level: Level = "pooled" if ranks == {1} else "tokens"
        self.id = id
        self.dim = int(widths.pop())
        digest = hashlib.sha256()
        for text in sorted(self._states):
            digest.update(text.encode() + np.ascontiguousarray(self._states[text], dtype=np.float32).tobytes())
        self.fingerprint = digest.hexdigest()[:16]

    def batches(self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> Batches:
        """States of texts, a batch at a time; see `Encoder.batches`."""
        check(texts, kind=kind, level=level, specials=specials)
        if level != self.level:
            raise InputError(f'these arrays are {self.level} states; the recipe asks for "{level}"')
        if not texts:
            return
        rows = [np.atleast_2d(self._of(text)).astype(np.float32) for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
        yield np.arange(len(texts)), States(np.concatenate(rows), offsets)

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens are unknown here: each row is called by its number."""
        check(texts, kind=kind, specials=specials)
        counts = [len(np.atleast_2d(self._of(text))) for text in texts]
        return [
            Tokens([f"row {row}" for row in range(n)], np.zeros((n, 2), np.int64), np.zeros(n, dtype=bool))
            for n in counts
        ]

    def _of(self, text: str) -> NDArray[np.floating]:
        try:
            return self._states[text]
        except KeyError:
            raise NotFoundError(
                f"no precomputed states for the text {text[:60]!r}; {len(self._states)} texts are known"
            ) from None
