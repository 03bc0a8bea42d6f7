"""Stage 1: text to states."""

from lexent.encoders.arrays import ArrayEncoder
from lexent.encoders.encoder import DEFAULT, Encoder
from lexent.encoders.sentence import SentenceEncoder
from lexent.encoders.tiny import TinyEncoder

__all__ = ["DEFAULT", "ArrayEncoder", "Encoder", "SentenceEncoder", "TinyEncoder"]
