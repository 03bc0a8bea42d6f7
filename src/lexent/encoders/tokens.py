"""Places of tokens in their text, as all encoders give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders.encoder import Encoder

BLOCK_CHARS = 100_000
"""About so many characters are tokenised at a time, so that a text of megabytes takes little memory."""


def leave_spaces(text: str, spans: NDArray[np.int64]) -> None:
    """Some tokenizers count the space before a word to its first token: move the spans to the first letter."""
    for place, (start, stop) in enumerate(spans.tolist()):
        if stop > start and text[start].isspace():
            piece = text[start:stop]
            if not piece.isspace():
                spans[place, 0] = stop - len(piece.lstrip())


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
