"""Texts to sparse vectors: encode, code and pool in one stream that never holds more than a batch of states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from lexent.encoders.encoder import batches_with_whole, finite_batches
from lexent.errors import MismatchError
from lexent.function_words import is_punctuation, token_weights
from lexent.lexicon.bucket_weights import features
from lexent.types import Kind, Progress, RowCodes, SparseVectors, States, Tokens
from lexent.weighting import as_query, pool, unit

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.recipes import Recipe

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Coded:
    """A batch of texts after they were encoded and coded."""

    positions: NDArray[np.int64]  # [n_texts], among all texts
    codes: RowCodes
    tokens: list[Tokens]
    """The tokens of each text, whose states were coded; none for recipes that code one state a text."""
    whole: States | None
    """The encoder's own vector of each text, where it was requested."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """An encoder, a lexicon and a recipe: all that turns texts into sparse vectors."""

    encoder: Encoder
    lexicon: Lexicon
    recipe: Recipe

    def represent(self, texts: Sequence[str], *, kind: Kind, progress: Progress = None) -> SparseVectors:
        """The concepts of each text, pooled over its tokens and not yet transformed, in the order of the texts.

        progress is called with the number of texts done since its last call.
        """
        parts, order = self.collect(texts, lambda batch: self.pooled(batch.codes), kind=kind, progress=progress)
        return SparseVectors.concatenate(parts, size=self.lexicon.size).take(order)

    def collect(
        self,
        texts: Sequence[str],
        make: Callable[[Coded], T],
        *,
        kind: Kind,
        vectors: bool = False,
        progress: Progress = None,
    ) -> tuple[list[T], NDArray[np.int64]]:
        """What `make` gives for each batch, and the order that restores that of the texts.

        Batches come in any order. Where the results of all batches stand one after the other, text i is at order[i].
        """
        parts: list[T] = []
        positions = [np.empty(0, np.int64)]
        for batch in self.coded(texts, kind=kind, vectors=vectors, progress=progress):
            parts.append(make(batch))
            positions.append(batch.positions)
        return parts, np.argsort(np.concatenate(positions), kind="stable")

    def coded(
        self, texts: Sequence[str], *, kind: Kind, vectors: bool = False, progress: Progress = None
    ) -> Iterator[Coded]:
        """The codes of texts, a batch at a time, in any order. vectors: also the encoder's own vector of each text."""
        encoder, lexicon, recipe = self.encoder, self.lexicon, self.recipe
        lexicon.check(encoder, level=recipe.level)
        if recipe.whole and lexicon.whole is None:  # refused before anything is encoded
            raise MismatchError(
                f'the recipe "{recipe.name}" codes whole texts beside tokens, and the lexicon "{lexicon.name}" has no '
                "concepts for those; take another recipe, for example ssr, or a lexicon that has them"
            )
        parts: Iterator[tuple[NDArray[np.int64], States, States | None]]
        if recipe.level == "tokens" and (vectors or recipe.whole):
            parts = batches_with_whole(encoder, texts, kind=kind, specials=recipe.specials)
        else:
            found = finite_batches(encoder, texts, kind=kind, level=recipe.level, specials=recipe.specials)
            parts = ((rows, states, states if recipe.level == "pooled" else None) for rows, states in found)
        for rows, states, whole in parts:
            own = [texts[row] for row in rows]
            tokens = encoder.tokenize(own, kind=kind, specials=recipe.specials) if recipe.level == "tokens" else []
            codes = self.code(own, states, kind=kind, whole=whole, tokens=tokens)
            yield Coded(rows, codes, tokens, whole if vectors else None)
            if progress is not None:
                progress(len(rows))

    def code(
        self,
        texts: Sequence[str],
        states: States,
        *,
        kind: Kind,
        whole: States | None = None,
        tokens: Sequence[Tokens] | None = None,
    ) -> RowCodes:
        """The codes of the states of some texts, as they are pooled: some tokens of a query count for more than others.

        For MaxSim the code of every token has the length 1, before those weights. whole: the texts' own vectors; their
        codes come as a last row of each text where the recipe gives them a weight. tokens: those of the texts, where
        they are known. States of punctuation that the recipe leaves out have a row of zeros.
        """
        encoder, lexicon, recipe = self.encoder, self.lexicon, self.recipe
        light = kind == "query" and recipe.level == "tokens" and recipe.function_words != 1
        adaptive = kind == "query" and recipe.adaptive_k
        words_alone = recipe.level == "tokens" and not recipe.punctuation
        if tokens is None and (light or adaptive or words_alone):
            tokens = encoder.tokenize(texts, kind=kind, specials=recipe.specials)
        tokens = tokens or []
        kept = _words_alone(tokens, states.offsets) if words_alone else None
        if kept is None:
            codes = lexicon.codes(states, k=recipe.k_for(kind))
        else:
            codes = _spread(lexicon.codes(_selected(states, kept), k=recipe.k_for(kind)), kept, states.offsets)
        if adaptive:
            counts = [int(np.count_nonzero(~found.special)) for found in tokens]
            codes = _strongest(codes, [recipe.k_for(kind, tokens=count) for count in counts])
        if recipe.match == "maxsim":
            codes = _unit(codes)
        if kind == "query" and recipe.level == "tokens":
            weights = np.ones(len(codes.values), np.float32)
            if light:
                found = [token_weights(text, recipe.function_words) for text in tokens]
                weights *= np.concatenate([*found, weights[:0]])
            mean = lexicon.sae.config.mean_length
            if recipe.emphasis and mean > 0:
                weights *= (states.lengths() / mean) ** recipe.emphasis
            if kept is not None:
                weights *= kept
            codes = replace(codes, values=codes.values * weights[:, None])
            owners = np.repeat(np.arange(len(texts)), np.diff(codes.offsets))
            strengths = np.bincount(owners, weights, minlength=len(texts)).astype(np.float32)
            if lexicon.sae.query_gain is not None:
                codes = replace(codes, values=codes.values * lexicon.sae.query_gain[codes.ids])
        if recipe.whole:
            assert whole is not None
            extra = _unit(lexicon.whole_codes(whole, k=recipe.k))
            if kind == "query":  # a share of the sum of the tokens' weights: it counts alike in short and long queries
                extra = replace(extra, values=extra.values * (np.float32(recipe.whole) * strengths)[:, None])
            codes = _with_last(codes, extra)
        return _without_blank(codes, texts)

    def pooled(self, codes: RowCodes) -> SparseVectors:
        """One vector a text: its tokens pooled, and of length 1 in each bucket where the recipe says so."""
        vectors = pool(codes, size=self.lexicon.size, how=self.recipe.pool)
        return unit(vectors, buckets=self.lexicon.buckets) if self.recipe.unit else vectors

    def query_vectors(self, pooled: SparseVectors) -> SparseVectors:
        """Pooled queries as the recipe weighs them with the lexicon, before idf and steering."""
        lexicon, recipe = self.lexicon, self.recipe
        weights = None
        if recipe.predicted:
            if lexicon.bucket_weights is None:
                raise MismatchError(
                    f'the recipe "{recipe.name}" lets queries weigh buckets, and the lexicon "{lexicon.name}" has not '
                    "learned how; learn it: lexent tune COLLECTION --recipe uhd --lexicon DIR --predict NEW_DIR"
                )
            weights = lexicon.bucket_weights.of(features(pooled, lexicon.sae))
        return as_query(pooled, recipe, buckets=lexicon.buckets, weights=weights)


def _without_blank(codes: RowCodes, texts: Sequence[str]) -> RowCodes:
    """Texts without words have no concepts: the states of special tokens alone carry no meaning."""
    blank = np.array([not text.strip() for text in texts], np.bool_)
    if not blank.any():
        return codes
    rows = np.repeat(blank, np.diff(codes.offsets))
    return replace(codes, values=np.where(rows[:, None], np.float32(0), codes.values))


def _words_alone(tokens: Sequence[Tokens], offsets: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """bool[n_rows]: which states are not of punctuation; all states of a text that has nothing else. None for all."""
    kept = np.ones(int(offsets[-1]), np.bool_)
    for text, start in zip(tokens, offsets[:-1].tolist(), strict=True):
        marks = list(map(is_punctuation, text.strings))
        if not all(marks):
            kept[start : start + len(marks)] = ~np.array(marks, np.bool_)
    return None if kept.all() else kept


def _selected(states: States, kept: NDArray[np.bool_]) -> States:
    """Some rows of states."""
    offsets = np.concatenate([[0], np.cumsum(kept)])[states.offsets].astype(np.int64)
    if isinstance(states.values, np.ndarray):
        return States(states.values[kept], offsets)
    import torch

    return States(states.values[torch.from_numpy(np.flatnonzero(kept)).to(states.values.device)], offsets)


def _spread(codes: RowCodes, kept: NDArray[np.bool_], offsets: NDArray[np.int64]) -> RowCodes:
    """The codes of some rows among those of all, which are 0."""
    width = codes.ids.shape[1]
    found = RowCodes(np.zeros((len(kept), width), np.int32), np.zeros((len(kept), width), np.float32), offsets)
    found.ids[kept], found.values[kept] = codes.ids, codes.values
    return found


def _unit(codes: RowCodes) -> RowCodes:
    """The codes with every row of length 1; a row without latents stays as it is."""
    lengths = np.sqrt(np.square(codes.values).sum(axis=1, keepdims=True))
    lengths[lengths == 0] = 1
    return replace(codes, values=(codes.values / lengths).astype(np.float32, copy=False))


def _strongest(codes: RowCodes, ks: Sequence[int]) -> RowCodes:
    """At most the first ks[i] latents of each row of text i, which are its strongest."""
    rows = np.repeat(np.array(ks, np.int64), np.diff(codes.offsets))
    kept = np.arange(codes.values.shape[1])[None, :] < rows[:, None]
    return replace(codes, values=np.where(kept, codes.values, np.float32(0)))


def _with_last(codes: RowCodes, extra: RowCodes) -> RowCodes:
    """Every text's rows, and then its row of `extra`."""
    n_texts, width = len(extra.ids), max(codes.ids.shape[1], extra.ids.shape[1])
    offsets = codes.offsets + np.arange(n_texts + 1)
    last = np.zeros(int(offsets[-1]), np.bool_)
    last[offsets[1:] - 1] = True
    ids, values = np.zeros((len(last), width), np.int32), np.zeros((len(last), width), np.float32)
    for rows, part in ((~last, codes), (last, extra)):
        ids[rows, : part.ids.shape[1]], values[rows, : part.ids.shape[1]] = part.ids, part.values
    return RowCodes(ids, values, offsets)
