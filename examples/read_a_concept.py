"""For interpretability researchers: a concept of a lexicon, its neighbours, and the tokens that raise it in a text.

python examples/read_a_concept.py memory "Lovastatin slowed memory loss in mice."
"""

from __future__ import annotations

import sys

import lexent
from lexent.explain import attribute
from lexent.pipeline import Pipeline
from lexent.recipes import RECIPES


def main(word: str, text: str) -> None:
    """Print what the shipped lexicon knows of a word, and where it is active in a text."""
    lexicon, encoder = lexent.load_lexicon(), lexent.load_encoder()
    pipeline = Pipeline(encoder, lexicon, RECIPES["latent-terms"])
    for concept in lexicon.find(word, limit=3):
        print(f"#{concept.id} {concept.label} ({concept.category}, on {concept.frequency:.4%} of the states)")
        for neighbour, cosine in lexicon.neighbours(concept.id, limit=3):
            print(f"    near  {cosine:.2f}  #{neighbour.id} {neighbour.label}")
        for share in attribute(text, concept.id, kind="document", pipeline=pipeline).shares[:3]:
            print(f"    raised by {share.token!r}, {share.share:.0%} of it")


if __name__ == "__main__":
    main(*sys.argv[1:3])
