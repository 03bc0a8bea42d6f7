"""The explainer of hits that an index passes to its searches: contributions, words and alignments in one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lexent.explain.alignment import align
from lexent.explain.attribution import tokens
from lexent.explain.contributions import explain
from lexent.explain.word_pairs import explain_words

if TYPE_CHECKING:
    from lexent.search.results import Explainer


class HitExplainer:
    """Implements `lexent.search.results.Explainer`."""

    contributions = staticmethod(explain)
    tokens = staticmethod(tokens)
    words = staticmethod(explain_words)
    alignment = staticmethod(align)


EXPLAINER: Explainer = HitExplainer()
