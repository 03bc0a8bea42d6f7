"""What a latent means."""

from lexent.lexicon.concepts import Category, Concept, Concepts
from lexent.lexicon.lexicon import Lexicon, LexiconInfo, load, shipped

__all__ = ["Category", "Concept", "Concepts", "Lexicon", "LexiconInfo", "load", "shipped"]
