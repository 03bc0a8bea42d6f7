"""The words of texts and of an index: how texts are split into words, and the numbers that an index gives them."""

from lexent.vocabulary.splitting import Occurrence, WordSplitter, splitter_of
from lexent.vocabulary.vocabulary import Vocabulary
from lexent.vocabulary.word_counts import word_counts
from lexent.vocabulary.word_table import NewWords, WordTable, WrittenTerm

__all__ = [
    "NewWords",
    "Occurrence",
    "Vocabulary",
    "WordSplitter",
    "WordTable",
    "WrittenTerm",
    "splitter_of",
    "word_counts",
]
