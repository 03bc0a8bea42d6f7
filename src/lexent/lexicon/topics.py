"""Names for the latents of pooled states: words that stand in the texts a latent fires on far more than in others.

A pooled state belongs to a whole text, so no word raised a latent: each word of the text is a witness. What counts is
the share of a latent's squared activation in texts that hold a word, against the share of all texts that do: squared,
since a weak activation is often about something else.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lexent.function_words import FUNCTION_WORDS
from lexent.lexicon.activations import Activations, reduced
from lexent.lexicon.concepts import SEPARATOR, Category, Concept
from lexent.lexicon.names import Word, distinct, grouped, leading_words, merged_word, presence, shortened, strongest
from lexent.lexicon.words import WORD
from lexent.types import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from lexent.encoders import Encoder
    from lexent.sae.autoencoder import SparseAutoencoder

LATENTS_PER_STEP = 512
"""Latents that are named at a time."""
CANDIDATE_WORDS = 24
LEAST_GAIN = 0.005
MIN_TEXTS = 10
"""Texts of ten thousand and more that a latent must fire on: fewer, and it has learned those texts by heart."""
SNIPPET_WORDS = 10
"""Words of an example."""
LONGEST_SNIPPET = 90
"""Letters of an example: scripts without spaces make one word of a sentence."""
QUANTILES = (0.0, 0.2, 0.5)
"""Where examples are taken among a latent's texts, from strongest to weakest: the strongest alone promise too much."""


def name_topics(
    texts: Sequence[str],
    *,
    encoder: Encoder,
    sae: SparseAutoencoder,
    quotable: Container[str] | None = None,
    progress: Progress = None,
) -> list[Concept]:
    """A concept for each latent; those that fire on no text, or on too few, get the label "" and must be dropped.

    quotable: the texts that examples may be quoted from; all where not given.
    """
    from scipy.sparse import csr_matrix

    n_latents = sae.config.d_sae
    batches = encoder.batches(texts, kind="document", level="pooled")
    active = reduced(batches, sae, n_texts=len(texts), n_concepts=n_latents, progress=progress)
    of_latent = csr_matrix((active.peaks, active.texts, active.offsets), shape=(n_latents, len(texts)))
    words_of_texts, words = _presence(texts)
    rate = np.asarray(words_of_texts.sum(axis=0)).ravel() / max(1, len(texts))
    found: list[list[Word]] = []
    for start in range(0, n_latents, LATENTS_PER_STEP):
        found += _witnesses(of_latent[start : start + LATENTS_PER_STEP], words_of_texts, words, rate)
    labels = distinct(
        [shortened(SEPARATOR.join(leading_words(best)) if best else "") for best in found],
        [[word.text for word in best] for best in found],
    )
    least = MIN_TEXTS if len(texts) >= 1000 * MIN_TEXTS else 1
    for latent, count in enumerate(active.counts):
        labels[latent] = "" if count < least else labels[latent] or f"concept {latent}"
    frequency = [round(float(count / max(1, len(texts))), 6) for count in active.counts]
    quoted = np.array([quotable is None or text in quotable for text in texts], bool)
    examples = [
        _examples(active, latent, texts, [word.text for word in best], quoted) for latent, best in enumerate(found)
    ]
    rows = zip(labels, map(_category, found), frequency, examples, strict=True)
    return [Concept(latent, *row, raised_by=strongest(found[latent])) for latent, row in enumerate(rows)]


def with_examples(
    concepts: Sequence[Concept],
    texts: Sequence[str],
    *,
    encoder: Encoder,
    sae: SparseAutoencoder,
    progress: Progress = None,
) -> list[Concept]:
    """The concepts, those without examples with some from these texts."""
    batches = encoder.batches(texts, kind="document", level="pooled")
    active = reduced(batches, sae, n_texts=len(texts), n_concepts=sae.config.d_sae, progress=progress)
    quoted = np.ones(len(texts), np.bool_)
    return [
        concept
        if concept.examples or not concept.label
        else replace(
            concept,
            examples=_examples(active, concept.id, texts, [word for word, _ in concept.raised_by], quoted),
        )
        for concept in concepts
    ]


def _presence(texts: Sequence[str]) -> tuple[csr_matrix, list[str]]:
    """bool[n_texts, n_words]: which content words stand in each text; rare words are left out."""
    lowered = (map(str.lower, WORD.findall(text)) for text in texts)
    found, listed = presence(sorted(set(filter(_is_content, words))) for words in lowered)
    count = np.bincount(found.indices, minlength=len(listed))
    kept = np.flatnonzero(count >= (5 if len(texts) > 10_000 else 2 if len(texts) > 100 else 1))
    return found[:, kept], [listed[word] for word in kept]


def _is_content(word: str) -> bool:
    return len(word) > 2 and word not in FUNCTION_WORDS and any(letter.isalpha() for letter in word)


def _witnesses(
    codes: csr_matrix, presence: csr_matrix, words: list[str], rate: NDArray[np.float64]
) -> list[list[Word]]:
    """For each latent (row of codes) the words of highest gain, forms of one word merged, best first."""
    codes = codes.power(2)
    mass, texts = codes @ presence, codes.astype(bool).astype(np.float32) @ presence
    mass.sort_indices()
    texts.sort_indices()  # as all values are above 0, both products have the same entries
    total = np.asarray(codes.sum(axis=1)).ravel()
    found = []
    for latent in range(codes.shape[0]):
        part = slice(mass.indptr[latent], mass.indptr[latent + 1])
        items, share = mass.indices[part], mass.data[part] / max(total[latent], 1e-12)
        fired = int(codes.indptr[latent + 1] - codes.indptr[latent])
        gain = share * np.log(np.maximum(share, 1e-12) / rate[items])
        held = texts.data[part] >= min(3, fired)  # a word of one or two texts says nothing, where there are others
        if (gain[held] > LEAST_GAIN).any():
            gain[~held] = 0.0
        best = np.argsort(-gain, kind="stable")[:CANDIDATE_WORDS]
        near = [Word(words[items[at]], float(share[at]), float(gain[at])) for at in best if gain[at] > LEAST_GAIN]
        # Forms of one word stand in the same texts: their shares do not add up, so the strongest form speaks for all.
        found.append([Word(merged_word(group).text, group[0].share, group[0].gain) for group in grouped(near)])
    return found


def _category(words: list[Word]) -> Category:
    """By the word that most of the activation goes with: over half of it, over a fifth, or less."""
    if not words:
        return "unknown"
    top = max(word.share for word in words)
    return "lexical" if top >= 0.5 else "narrow" if top >= 0.2 else "broad"


def _examples(
    active: Activations, latent: int, texts: Sequence[str], words: Sequence[str], quoted: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Quotable texts of strong, middling and weak activation, each cut to where the latent's words stand."""
    own = active.of(latent)
    order = active.texts[own][np.argsort(-active.peaks[own], kind="stable")]
    order = order[quoted[order]]
    places = dict.fromkeys(int(share * (len(order) - 1)) for share in QUANTILES) if len(order) else {}
    return tuple(_snippet(texts[order[place]], set(words[:8])) for place in places)


def _snippet(text: str, words: set[str]) -> str:
    """A few words of a text, from a little before the first that names the latent."""
    parts = text.split()
    named = [place for place, part in enumerate(parts) if part.strip(".,;:()[]\"'?!").lower() in words]
    start = max(0, min(named[0] - 3, len(parts) - SNIPPET_WORDS)) if named else 0
    shown = " ".join(parts[start : start + SNIPPET_WORDS])[:LONGEST_SNIPPET]
    return f"{'… ' if start else ''}{shown}{' …' if start + SNIPPET_WORDS < len(parts) else ''}"
