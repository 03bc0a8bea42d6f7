"""Which words of a document its score came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lexent.explain.alignment import AlignedText
from lexent.types import TokenShare

if TYPE_CHECKING:
    from lexent.search.results import Hit


def highlights(hits: Sequence[Hit]) -> list[tuple[TokenShare, ...]]:
    """For each hit the words of its passage, strongest first, with places in the document and shares of the score.

    A contribution is shared out in proportion to the activations of the words that raised its concept, so the shares
    sum to the score (see `lexent.explain.Attribution`). The documents are encoded again, together. Where a recipe
    matches tokens, a word has what the query's tokens found in it, and nothing is encoded. Recipes that encode a text
    as one vector have no words to show.
    """
    if not hits:
        return []
    index = hits[0].index
    if index.recipe.level != "tokens":
        return [() for _ in hits]
    positions = [hit.position for hit in hits]
    passages = index.reader.passages(positions)
    if index.recipe.match == "maxsim":
        pairs = zip(hits, passages, strict=True)
        return [passage.in_content(AlignedText.of(index, hit.query, hit.position).shares()) for hit, passage in pairs]
    found = []
    for hit, passage, text in zip(hits, passages, index.coded_documents(positions), strict=True):
        shares = text.shared_out({part.concept: part.value for part in hit.explain().contributions})
        found.append(passage.in_content(shares))
    return found
