"""Stage 0: files to documents."""

from lexent.corpus.corpus import Corpus, read
from lexent.corpus.file_lists import files_of
from lexent.corpus.texts import Texts, texts

__all__ = ["Corpus", "Texts", "files_of", "read", "texts"]
