"""Hits to reasons: named contributions that sum to the score, the words behind a concept, the rank of a document."""

from lexent.explain.alignment import AlignedToken, Alignment, align
from lexent.explain.attribution import Attribution, ConceptTokens, attribute
from lexent.explain.contributions import Explanation, explain
from lexent.explain.ranking import Comparison, Difference, RankExplanation, why
from lexent.explain.word_pairs import FoundWord, WordExplanation, WordMatch, explain_words

__all__ = [
    "AlignedToken",
    "Alignment",
    "Attribution",
    "Comparison",
    "ConceptTokens",
    "Difference",
    "Explanation",
    "FoundWord",
    "RankExplanation",
    "WordExplanation",
    "WordMatch",
    "align",
    "attribute",
    "explain",
    "explain_words",
    "why",
]
