"""Stage 0: files to documents."""

from lexent.corpus.corpus import Corpus
from lexent.corpus.file_lists import files_of
from lexent.corpus.problems import Problem
from lexent.corpus.sources import read
from lexent.corpus.texts import Texts, texts

__all__ = ["Corpus", "Problem", "Texts", "files_of", "read", "texts"]
