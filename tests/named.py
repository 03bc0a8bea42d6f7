"""A lexicon whose names are known to be true: on the tiny encoder, a latent for each of some words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lexent.encoders import TinyEncoder
from lexent.encoders.encoder import encode
from lexent.lexicon import Concept, Concepts, Lexicon, LexiconInfo
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.sae.config import SAEConfig
from lexent.types import Level
from small import TOPICS

WORDS = list(dict.fromkeys(" ".join(TOPICS.values()).split()))


def lexicon(*, level: Level = "tokens", k: int = 3, **changes: Any) -> Lexicon:
    """Its concept i fires on WORDS[i], and is called so."""
    encoder = TinyEncoder()
    rows = encode(encoder, WORDS, kind="document", level="pooled").numpy()
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    size = len(WORDS)
    sae = SparseAutoencoder(
        SAEConfig(encoder.dim, size, k, tied=True),
        encoder=rows.astype(np.float32),
        decoder=None,
        b_enc=np.full(size, -4.2 if level == "tokens" else -0.5, np.float32),  # quiet where the word is not
        b_dec=np.zeros(encoder.dim, np.float32),
    )
    kinds = ("lexical", "narrow")
    concepts = [Concept(place, word, kinds[place % 2], 0.1) for place, word in enumerate(WORDS)]
    info = LexiconInfo("planted", encoder.id, encoder.fingerprint, level)
    return Lexicon(sae, Concepts(concepts), replace(info, **changes))


def texts(n: int = 300, *, length: int = 8, seed: int = 0) -> list[str]:
    """Texts of a few words of one topic, with filling between them, all different."""
    draw = np.random.default_rng(seed)
    made = []
    for number in range(n):
        words = draw.permutation(TOPICS[list(TOPICS)[number % len(TOPICS)]].split())[:length]
        made.append(" ".join(f"{word} w{draw.integers(500)}" for word in words) + f" t{number}")
    return made
