"""Places of tokens in their text, as all encoders give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.types import Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders.encoder import Encoder

BLOCK_CHARS = 100_000
"""About so many characters are tokenised at a time, so that a text of megabytes takes little memory."""


def leave_spaces(text: str, spans: NDArray[np.int64]) -> None:
    """Some tokenizers count the space before a word to its first token: move the spans to the first letter."""
    if not len(spans):
        return
    letters = np.frombuffer(f"{text} ".encode("utf-32-le", "surrogatepass"), np.uint32)[spans[:, 0]]
    for place in np.flatnonzero((spans[:, 1] > spans[:, 0]) & ((letters <= ord(" ")) | (letters >= 0x85))).tolist():
        piece = text[slice(*spans[place].tolist())]
        if piece[0].isspace() and not piece.isspace():
            spans[place, 0] = spans[place, 1] - len(piece.lstrip())


def encodings(tokenizer: Any, texts: Sequence[str]) -> list[Any]:
    """What a `tokenizers.Tokenizer` makes of texts. A batch of one would start threads."""
    return [tokenizer.encode(texts[0])] if len(texts) == 1 else list(tokenizer.encode_batch(list(texts)))


def tokens_of(
    encoded: Sequence[Any], texts: Sequence[str], string_of: Callable[[int], str], *, prompt: int, specials: bool
) -> list[Tokens]:
    """The tokens of encodings. string_of: a token by its number. prompt: characters that were put before each text."""
    found = []
    for text, one in zip(texts, encoded, strict=True):
        special = np.array(one.special_tokens_mask, np.bool_)
        spans = np.fromiter(chain.from_iterable(one.offsets), np.int64, 2 * len(special)).reshape(-1, 2)
        if prompt:
            np.maximum(spans - prompt, 0, out=spans)
        spans[special] = 0
        leave_spaces(text, spans)
        strings = list(map(string_of, one.ids))
        if not specials:
            kept = ~special
            strings = [string for string, keep in zip(strings, kept.tolist(), strict=True) if keep]
            spans, special = spans[kept], special[kept]
        found.append(Tokens(strings, spans, special))
    return found


def text_tokens(encoder: Encoder, max_tokens: int) -> int:
    """Tokens of a document that an encoder reads at most: its limit without special tokens and the prompt."""
    return max(1, max_tokens - len(encoder.tokenize([""], kind="document")[0]))


def token_starts(tokenizer: Any, text: str) -> NDArray[np.int64]:
    """int64[n_tokens]: where each token of a text begins, by a `tokenizers.Tokenizer` that does not truncate."""
    parts = [np.empty(0, np.int64)]
    start = 0
    while start < len(text):
        stop = start + BLOCK_CHARS
        if stop < len(text):  # at the end of a line, or else of a word
            stop = next((found for end in "\n ." if (found := text.rfind(end, start + 1, stop) + 1) > 0), stop)
        encoded = tokenizer.encode(text[start:stop], add_special_tokens=False)
        spans = np.array(encoded.offsets, np.int64).reshape(-1, 2)
        leave_spaces(text[start:stop], spans)
        parts.append(spans[:, 0] + start)
        start = stop
    return np.concatenate(parts)


def token_counts(tokenizer: Any, texts: Sequence[str]) -> list[int]:
    """How many tokens each text has, by a `tokenizers.Tokenizer` that does not truncate."""
    return [len(encoded) for encoded in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
