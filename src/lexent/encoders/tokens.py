"""Places of tokens in their text, as all encoders give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def leave_spaces(text: str, spans: NDArray[np.int64]) -> None:
    """Some tokenizers count the space before a word to its first token: move the spans to the first letter."""
    for place, (start, stop) in enumerate(spans.tolist()):
        if stop > start and text[start].isspace():
            piece = text[start:stop]
            if not piece.isspace():
                spans[place, 0] = stop - len(piece.lstrip())
