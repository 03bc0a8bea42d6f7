"""Weights of buckets, learned on train queries: fixed ones from a grid, and ones that depend on the query.

Both are measured by nested cross-validation: queries of an outer fold are weighed by what all others taught, the
penalty included, which inner folds of these others choose. Beside them stands the oracle that takes each query's best
bucket. Weights that depend on the query are kept only where they gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.schedule import one_thread
from lexent.errors import InputError
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import report
from lexent.evaluation.systems import Latent
from lexent.evaluation.training_split import training_split
from lexent.lexicon.bucket_weights import BucketWeights, features
from lexent.nan_safe import paired_p
from lexent.weighting import as_query

LEVELS = (0.0, 0.33, 0.66, 1.0)
"""Weights of a bucket that are tried: the paper's."""
TRAINING_DEPTH = 100
"""Documents of each bucket, and of all, that a query is learned on."""
FOLDS = 5
INNER_FOLDS = 3
PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3)
"""Weight of the squared parameters, against the loss of a query; inner folds choose one."""
WEIGHT_STEPS = 100


@dataclass(frozen=True, slots=True)
class Lessons:
    """Queries with candidates and what each bucket says of them."""

    features: NDArray[np.float32]  # [n, n_features]
    scores: NDArray[np.float32]  # [n, candidates, buckets]
    gains: NDArray[np.float32]  # [n, candidates]: 1 where relevant
    ideal: NDArray[np.float64]  # [n]: the best DCG@10 there could be


@dataclass(frozen=True, slots=True)
class Learned:
    """nDCG@10 on queries that nothing was learned from, and what was learned from all of them."""

    fixed: tuple[float, ...]
    """The best weights of the grid, on all queries."""
    predictor: BucketWeights | None
    """None where it gains nothing."""
    values: dict[str, float]
    """equal, fixed, predicted and oracle; and each bucket alone."""
    p_value: float
    """Paired t-test of predicted against fixed."""
    queries: int


def learn(systems: Sequence[tuple[Latent, Collection]], *, seed: int = 0) -> Learned:
    """From train queries of one or more collections. All systems have the same lexicon and recipe."""
    systems = [(system, training_split(collection)) for system, collection in systems]
    lexicon = systems[0][0].lexicon
    if lexicon.buckets < 2:
        raise InputError(f'the lexicon "{lexicon.name}" has one bucket; weights of buckets are for those with several')
    lessons = _joined([lessons_of(system, collection) for system, collection in systems])
    n = len(lessons.features)
    if n < 2 * FOLDS:
        raise InputError(f"there are {n} queries to learn from; allowed: {2 * FOLDS} or more")
    fold = np.random.default_rng(seed).permutation(n) % FOLDS
    with one_thread():
        return _learned(lessons, fold, lexicon.buckets)


def _learned(lessons: Lessons, fold: NDArray[np.int64], buckets: int) -> Learned:
    n = len(lessons.features)
    ones = np.ones((n, buckets), np.float32)
    fixed, predicted = _held_out(lessons, fold)
    alone = [_ndcg(lessons, ones * (np.arange(buckets) == place)) for place in range(buckets)]
    ours, theirs = _ndcg(lessons, predicted), _ndcg(lessons, fixed)
    per_query = {"equal": _ndcg(lessons, ones), "fixed": theirs, "predicted": ours, "oracle": np.max(alone, axis=0)}
    per_query |= {f"bucket {place}": each for place, each in enumerate(alone)}
    values = {name: float(each.mean()) for name, each in per_query.items()}
    final = _grid(lessons)
    predictor = None
    if values["predicted"] > values["fixed"]:
        chosen = _penalty(lessons)
        facts = {"queries": n, "penalty": chosen, "fixed": final.tolist(), "values": values}
        predictor = replace(_fit(lessons, final, penalty=chosen), facts=facts)
    p = paired_p(ours, theirs, alternative="two-sided")
    return Learned(tuple(final.tolist()), predictor, values, p, n)


def _held_out(lessons: Lessons, fold: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Fixed and predicted weights of each query, all learned and chosen on queries of other folds."""
    fixed = np.empty((len(fold), lessons.scores.shape[2]), np.float32)
    predicted = np.empty_like(fixed)
    for number in range(FOLDS):
        inside, outside = _taken(lessons, fold != number), fold == number
        fixed[outside] = best = _grid(inside)
        predicted[outside] = _fit(inside, best, penalty=_penalty(inside)).of(lessons.features[outside])
        report("weights of buckets", number + 1, FOLDS)
    return fixed, predicted


def _penalty(lessons: Lessons) -> float:
    """The penalty whose predictions are best on inner folds."""
    if len(PENALTIES) == 1:
        return PENALTIES[0]
    n = len(lessons.features)
    fold = np.random.default_rng(n).permutation(n) % INNER_FOLDS
    weights = {penalty: np.empty((n, lessons.scores.shape[2]), np.float32) for penalty in PENALTIES}
    for number in range(INNER_FOLDS):
        inside, outside = _taken(lessons, fold != number), fold == number
        best = _grid(inside)
        for penalty in PENALTIES:
            weights[penalty][outside] = _fit(inside, best, penalty=penalty).of(lessons.features[outside])
    return max(PENALTIES, key=lambda penalty: float(_ndcg(lessons, weights[penalty]).mean()))


def lessons_of(system: Latent, collection: Collection) -> Lessons:
    """What the buckets say of the documents that any of them, or all together, put first."""
    recipe, lexicon = replace(system.recipe, buckets=(), predicted=False), system.lexicon
    buckets, size = lexicon.buckets, lexicon.size // lexicon.buckets
    pooled = system.pooled(collection.query_texts, kind="query")
    queries = as_query(pooled, recipe, buckets=buckets).to_scipy().tocsc()
    documents = system.pooled(collection.texts, kind="document").to_scipy().tocsc()
    if recipe.binary:
        documents.data[:] = 1
    parts = [slice(place * size, (place + 1) * size) for place in range(buckets)]
    ours, theirs = ([whole[:, part].tocsr() for part in parts] for whole in (queries, documents))
    top = min(TRAINING_DEPTH, len(collection.documents))
    width = top * (buckets + 1)
    scores = np.zeros((len(pooled), width, buckets), np.float32)
    gains, ideal = np.zeros((len(pooled), width), np.float32), np.zeros(len(pooled))
    for row, relevant in enumerate(collection.relevant):
        each = np.stack(
            [np.asarray((one @ query[row].T).todense()).ravel() for one, query in zip(theirs, ours, strict=True)], 1
        )
        lists = [*each.T, each.sum(axis=1)]
        found = np.unique(np.concatenate([np.argsort(-one, kind="stable")[:top] for one in lists]))
        scores[row, : len(found)] = each[found]
        gains[row, : len(found)] = np.isin(found, sorted(relevant))
        ideal[row] = _DISCOUNTS[: len(relevant)].sum()
    scores /= np.maximum(scores.sum(axis=2).max(axis=1), 1e-9)[:, None, None]  # queries of all lengths alike
    return Lessons(features(pooled, lexicon.sae), scores, gains, ideal)


_DISCOUNTS: NDArray[np.float64] = 1 / np.log2(np.arange(10) + 2)


def _ndcg(lessons: Lessons, weights: NDArray[Any]) -> NDArray[np.float64]:
    """float64[n]: nDCG@10 of each query under weights [n, buckets]."""
    total = np.einsum("ncb,nb->nc", lessons.scores, weights.astype(np.float32))
    best = np.argsort(-total, axis=1, kind="stable")[:, :10]
    found = np.take_along_axis(lessons.gains, best, axis=1) @ _DISCOUNTS[: best.shape[1]]
    values: NDArray[np.float64] = found / np.maximum(lessons.ideal, 1e-9)
    return values


def _grid(lessons: Lessons) -> NDArray[np.float32]:
    """The weights of the grid with the highest mean; of equal ones, those nearest to all alike."""
    buckets = lessons.scores.shape[2]
    tried = [np.array(one, np.float32) for one in product(LEVELS, repeat=buckets) if max(one) == 1]
    tried.sort(key=lambda one: float(np.square(1 - one).sum()))
    n = len(lessons.features)
    values = [float(_ndcg(lessons, np.broadcast_to(one, (n, buckets))).mean()) for one in tried]
    return tried[int(np.argmax(values))]


def _fit(lessons: Lessons, fixed: NDArray[np.float32], *, penalty: float) -> BucketWeights:
    """Weights that put a query's documents first among its candidates; where nothing is known, the fixed ones."""
    import torch

    given, scores, gains = (torch.from_numpy(part) for part in (lessons.features, lessons.scores, lessons.gains))
    kept = gains.sum(dim=1) > 0
    start = np.log(np.maximum(fixed, 0.05)).astype(np.float32)
    if not kept.any():  # no candidate of any query is relevant: there is nothing to learn from
        return BucketWeights(np.zeros((given.shape[1], scores.shape[2]), np.float32), start)
    given, scores, gains = given[kept], scores[kept], gains[kept]
    base = torch.from_numpy(start)
    rows = torch.zeros(given.shape[1], scores.shape[2], requires_grad=True)
    bias = torch.zeros(scores.shape[2], requires_grad=True)
    sharp = torch.tensor(3.0, requires_grad=True)  # the logarithm of what scores are multiplied by
    absent = scores.sum(dim=2) == 0
    optimizer = torch.optim.Adam([rows, bias, sharp], lr=0.04)
    for _ in range(WEIGHT_STEPS):
        weights = torch.softmax(base + bias + given @ rows, dim=1)
        logits = (sharp.exp() * torch.einsum("ncb,nb->nc", scores, weights)).masked_fill(absent, -1e4)
        chance = torch.log_softmax(logits, dim=1)
        loss = -(chance * gains).sum(dim=1).div(gains.sum(dim=1)).mean()
        total = loss + penalty * (rows.square().sum() + bias.square().sum())
        optimizer.zero_grad()
        torch.autograd.backward(total)
        optimizer.step()
    return BucketWeights(rows.detach().numpy(), (base + bias).detach().numpy())


def _taken(lessons: Lessons, which: NDArray[np.bool_]) -> Lessons:
    return Lessons(*(getattr(lessons, each.name)[which] for each in fields(Lessons)))


def _joined(parts: Sequence[Lessons]) -> Lessons:
    """All of them, with as many candidates as the widest has."""
    width = max(part.gains.shape[1] for part in parts)
    missing = [(0, width - part.gains.shape[1]) for part in parts]
    wide = [
        replace(part, scores=np.pad(part.scores, [(0, 0), more, (0, 0)]), gains=np.pad(part.gains, [(0, 0), more]))
        for part, more in zip(parts, missing, strict=True)
    ]
    return Lessons(*(np.concatenate([getattr(part, each.name) for part in wide]) for each in fields(Lessons)))
