"""From a trained autoencoder and texts to a lexicon in which every latent that can fire has a name."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lexent.errors import InputError
from lexent.lexicon.concepts import Concept, Concepts
from lexent.lexicon.lexicon import Lexicon, LexiconInfo
from lexent.lexicon.names import Spans, name_all
from lexent.lexicon.statistics import TEXTS_PER_CHUNK, Statistics, collect
from lexent.lexicon.topics import name_topics, with_examples
from lexent.types import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.encoders import Encoder
    from lexent.sae.autoencoder import SparseAutoencoder


ABOUT = "about "
"""Before the names of concepts of whole texts, in a lexicon that has concepts of tokens too: "about statins"."""


def named_lexicon(
    sae: SparseAutoencoder,
    texts: Sequence[str],
    *,
    encoder: Encoder,
    info: LexiconInfo,
    whole: SparseAutoencoder | None = None,
    whole_texts: Sequence[str] | None = None,
    quotable: Container[str] | None = None,
    quotes: Sequence[str] = (),
    progress: Progress = None,
) -> Lexicon:
    """Name the latents by what they fire on in the texts; latents that never fire are dropped.

    Winners are named by the words that they win for, and none is dropped: they stand in buckets and groups. whole: a
    second autoencoder, for the vectors of whole texts; whole_texts: what it is named on, where not the same.
    quotable: the texts that examples of concepts may be quoted from; all where not given. quotes: more of these, read
    for concepts of whole texts that have no example otherwise. progress counts all texts.
    """
    if info.level == "pooled":
        concepts = name_topics(texts, encoder=encoder, sae=sae, quotable=quotable, progress=progress)
        if quotes:
            concepts = with_examples(concepts, quotes, encoder=encoder, sae=sae, progress=progress)
    else:
        statistics = collect(texts, encoder=encoder, sae=sae, quotable=quotable, progress=progress)
        concepts = name_all(statistics, texts, _spans(statistics, texts, encoder))
    if sae.config.architecture == "winners":
        labelled = [replace(concept, label=concept.label or f"concept {concept.id}") for concept in concepts]
        return Lexicon(sae, Concepts(labelled), info)
    sae, named = _alive(sae, concepts)
    if whole is None:
        return Lexicon(sae, Concepts(named), info)
    if whole_texts is None:
        whole_texts = texts
    found = name_topics(whole_texts, encoder=encoder, sae=whole, quotable=quotable, progress=progress)
    whole, topics = _alive(whole, found)
    about = [replace(topic, id=len(named) + topic.id, label=ABOUT + topic.label) for topic in topics]
    return Lexicon(sae, Concepts([*named, *about]), info, whole=whole)


def _alive(sae: SparseAutoencoder, concepts: Sequence[Concept]) -> tuple[SparseAutoencoder, list[Concept]]:
    """Only the latents that have a name, renumbered."""
    live = np.array([concept.id for concept in concepts if concept.label], dtype=np.int64)
    if not len(live):
        raise InputError("no latent fires on the texts given for naming; give more text")
    return sae.kept(live), [replace(concepts[latent], id=place) for place, latent in enumerate(live)]


def _spans(statistics: Statistics, texts: Sequence[str], encoder: Encoder) -> Spans:
    wanted = np.unique(np.concatenate([found[:, :, 0].ravel() for found in (statistics.contexts, statistics.quotes)]))
    wanted = wanted[wanted >= 0].tolist()
    spans: dict[int, NDArray[np.int64]] = {}
    for start in range(0, len(wanted), TEXTS_PER_CHUNK):
        part = wanted[start : start + TEXTS_PER_CHUNK]
        found = encoder.tokenize([texts[text] for text in part], kind="document")
        spans |= {text: tokens.spans for text, tokens in zip(part, found, strict=True)}
    return spans
