"""Stage 1: text to states."""

from lexent.encoders.arrays import ArrayEncoder
from lexent.encoders.encoder import DEFAULT, Encoder
from lexent.encoders.light import LightEncoder
from lexent.encoders.sentence import SentenceEncoder
from lexent.encoders.tiny import TinyEncoder

__all__ = ["DEFAULT", "ArrayEncoder", "Encoder", "LightEncoder", "SentenceEncoder", "TinyEncoder"]
