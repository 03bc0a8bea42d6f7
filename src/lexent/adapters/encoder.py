"""An encoder with an adapter behind it: adapted vectors of whole texts, for any recipe of pooled states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import Adapter, centred, unit
from lexent.adapters.modulation import Rows
from lexent.encoders import Encoder
from lexent.errors import InputError
from lexent.types import Kind, Level, States, Tokens


class AdaptedEncoder:
    """Documents as the projector leaves them, and queries as they weigh such documents.

    Vectors are turned back into the encoder's own space by the isometry that moves them least: products stay what they
    are between projected vectors, and a lexicon of the encoder still reads them. What an index cannot know is left out:
    the feedback of a first search, and the lengths that a query gives to documents.
    """

    def __init__(self, base: Encoder, adapter: Adapter, *, id: str) -> None:
        adapter.check(base)
        self.base, self.adapter = base, adapter
        self.id, self.dim = id, base.dim
        self.fingerprint = f"{base.fingerprint}-{adapter.hash}"
        self.lexicon_fingerprint = base.fingerprint
        """Lexicons that were trained for this one read the states."""
        left, values, right = np.linalg.svd(adapter.tensors["projector"].astype(np.float64), full_matrices=False)
        self._document = ((right.T * values) @ right).astype(np.float32)  # (P'P)^(1/2)
        self._back = (right.T @ left.T).astype(np.float32)  # [dim, width], its columns unit and orthogonal

    @property
    def device(self) -> str:
        """Where the encoder computes."""
        return str(getattr(self.base, "device", ""))

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that the encoder reads at most."""
        return int(getattr(self.base, "max_tokens", 512))

    @property
    def text_tokens(self) -> int | None:
        """Tokens of a document that the base encoder reads at most; None where it cannot tell."""
        return getattr(self.base, "text_tokens", None)

    def token_starts(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Where each token of texts begins, for the base encoder."""
        found: list[NDArray[np.int64]] = getattr(self.base, "token_starts")(texts)  # noqa: B009
        return found

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens texts have, for the base encoder."""
        found: list[int] = getattr(self.base, "token_counts")(texts)  # noqa: B009
        return found

    def batches(
        self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States]]:
        """Adapted pooled states of texts, a batch at a time; see `Encoder.batches`."""
        if level != "pooled":
            raise InputError(
                f'the adapter "{self.id}" changes vectors of whole texts and has no token states; take a recipe of '
                "pooled states: --recipe clsr"
            )
        for rows, states in self.base.batches(texts, kind=kind, level="pooled", specials=specials):
            made = States(self.adapt(states.numpy(), kind=kind), states.offsets)
            # What torch made is coded by torch: queries and documents each stay with their engine.
            yield rows, made if isinstance(states.values, np.ndarray) else States(made.tensor(), made.offsets)

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens of texts, as the base encoder has them."""
        return self.base.tokenize(texts, kind=kind, specials=specials)

    def adapt(self, rows: Rows, *, kind: Kind) -> Rows:
        """float32[n, dim], unit: documents projected, queries as what they weigh those with; both turned back."""
        if kind == "document":
            return unit(rows @ self._document)
        adapter = self.adapter
        found = np.empty_like(rows)
        for at, projected in enumerate(adapter.project(unit(rows))):
            vector = adapter.upon_query(np.empty((0, adapter.config.width), np.float32)).apply(projected[None])
            vector = centred(vector) if adapter.config.layer_norm else vector
            found[at] = self._back @ adapter.upon_documents(projected).transposed(vector[0])
        return unit(found)
