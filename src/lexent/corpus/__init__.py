"""Stage 0: files to documents."""

from lexent.corpus.corpus import Corpus, read
from lexent.corpus.texts import Texts, texts

__all__ = ["Corpus", "Texts", "read", "texts"]
