"""Named directions of the encoder's space: what a change is put into words with.

Three tables: the encoder's own input embeddings (the paper's), words of the corpus encoded as texts, and the concepts
of a lexicon of pooled states.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lexent.adapters.adapter import unit
from lexent.adapters.modulation import Rows
from lexent.errors import InputError
from lexent.function_words import FUNCTION_WORDS

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

Table = Literal["concepts", "words", "tokens"]

WORD = re.compile(r"[^\W\d_][\w-]{2,}")
MAX_DOCUMENT_SHARE = 0.2
"""Words that stand in a greater share of the texts say little."""
MAX_WORDS = 5000
"""Words of a corpus that are encoded."""


@dataclass(frozen=True, slots=True)
class Named:
    """A direction and how much of a change lies along it: above 0 towards it, below 0 away from it."""

    name: str
    id: int
    value: float
    """How much of it is in the change, beside the other directions that are named."""
    cosine: float
    """Of the whole change and the direction."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A change in words."""

    named: tuple[Named, ...]
    explained: float
    """The share of the change's squared length that lies along them."""

    @property
    def towards(self) -> list[Named]:
        """The directions that the change goes towards."""
        return [each for each in self.named if each.value > 0]

    @property
    def away(self) -> list[Named]:
        """The directions that the change goes away from."""
        return [each for each in self.named if each.value < 0]


@dataclass(frozen=True, slots=True)
class Directions:
    """Unit rows, and a name for each."""

    table: Table
    names: tuple[str, ...]
    ids: tuple[int, ...]
    rows: Rows  # [n, dim], unit

    def __len__(self) -> int:
        return len(self.names)

    def read(self, change: Rows, *, n: int = 8) -> Reading:
        """The n directions that make up most of a change, and how much each: above 0 towards it, below 0 away."""
        total = float(change @ change)
        chosen = self.places(change, n=n)
        if not chosen:
            return Reading((), 0.0)
        rows = self.rows[chosen].astype(np.float64)
        weights, *_ = np.linalg.lstsq(rows.T, change.astype(np.float64), rcond=None)
        rest = change - weights @ rows
        named = tuple(
            Named(self.names[at], self.ids[at], float(weight), float(self.rows[at] @ change) / total**0.5)
            for at, weight in zip(chosen, weights, strict=True)
        )
        return Reading(tuple(sorted(named, key=lambda each: -abs(each.value))), 1 - float(rest @ rest) / total)

    def places(self, change: Rows, *, n: int) -> list[int]:
        """Matching pursuit: the direction along which most of the change lies, then of what is left, and so on.

        The nearest directions alone would be many names for the same part.
        """
        rest = np.array(change, np.float32)
        chosen: list[int] = []
        while len(chosen) < min(n, len(self)) and float(rest @ rest) > 1e-12:
            along = self.rows @ rest
            along[chosen] = 0
            at = int(np.argmax(np.abs(along)))
            chosen.append(at)
            basis, _ = np.linalg.qr(self.rows[chosen].T)
            rest = (change - basis @ (basis.T @ change)).astype(np.float32)
        return chosen

    @staticmethod
    def of_concepts(lexicon: Lexicon) -> Directions:
        """The decoder rows of a lexicon of pooled states: what each concept adds to a vector."""
        if lexicon.info.level != "pooled":
            raise InputError(
                f'the lexicon "{lexicon.name}" reads {lexicon.info.level} states; changes of whole texts are read with '
                "one of pooled states, such as the shipped all-MiniLM-L6-v2-pooled-k32"
            )
        kept = [concept.id for concept in lexicon.concepts if concept.label]
        rows = unit(lexicon.sae.decoder_rows[kept])
        return Directions("concepts", tuple(lexicon.label(each) for each in kept), tuple(kept), rows)

    @staticmethod
    def of_words(words: Sequence[str], rows: Rows) -> Directions:
        """Words and their vectors, each encoded as a text: the space that documents and queries are in.

        Their mean is taken away, so that a direction says what sets a word apart.
        """
        return Directions("words", tuple(words), tuple(range(len(words))), unit(rows - rows.mean(axis=0)))

    @staticmethod
    def of_tokens(encoder: Encoder) -> Directions:
        """The encoder's input embeddings, as in the paper: whole words; no special tokens, pieces or stop words."""
        model = getattr(encoder, "model", None)
        transformer = getattr(model[0], "auto_model", None) if model is not None else None
        if transformer is None:
            raise InputError(
                f'the encoder "{encoder.id}" shows no table of input embeddings; read the change with --by concepts or '
                "--by words"
            )
        table: Rows = transformer.get_input_embeddings().weight.detach().float().cpu().numpy()
        if table.shape[1] != encoder.dim:
            raise InputError(
                f"the input embeddings are {table.shape[1]} wide and the vectors {encoder.dim}: they share no space; "
                "read the change with --by concepts or --by words"
            )
        tokenizer = model.tokenizer  # type: ignore[union-attr]
        special = set(tokenizer.all_special_tokens)
        kept = [
            (at, text)
            for text, at in tokenizer.get_vocab().items()
            if text not in special and WORD.fullmatch(text) and text.lower() not in FUNCTION_WORDS
        ]
        kept.sort()
        rows = table[[at for at, _ in kept]]
        names = tuple(text for _, text in kept)
        return Directions("tokens", names, tuple(at for at, _ in kept), unit(rows - rows.mean(axis=0)))


def telling_words(texts: Sequence[str], *, most: int = MAX_WORDS) -> list[str]:
    """The words of a corpus that tell its texts apart: in two or more, in no great share, and no function words."""
    seen: Counter[str] = Counter()
    for text in texts:
        seen.update({word.lower() for word in WORD.findall(text)})
    least = 2 if len(texts) > 100 else 1
    limit = max(MAX_DOCUMENT_SHARE * len(texts), least)
    good = [word for word, count in seen.most_common() if least <= count <= limit and word not in FUNCTION_WORDS]
    if not good:
        raise InputError("the texts hold no words that tell them apart; give more texts")
    return sorted(good[:most])  # the same words, encoded, have the same cache entry
