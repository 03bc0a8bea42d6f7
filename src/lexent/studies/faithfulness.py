"""Are explanations faithful? Take the concepts that the explanation ranks first, and watch the document fall.

Deletion takes them away one after the other; insertion starts with none and adds them. Each is held against the same
concepts in random order, from the weakest to the strongest, and against random ones of all that the text has. In the
index the fall of the score is arithmetic, since a score is the sum of its parts; only ranks can surprise. So the dense
retriever is watched too, which knows nothing of concepts: a concept is taken from the text's own vector through the
lexicon's decoder, all that no concept explains stays, and the cosine is the retriever's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.evaluation import baselines
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.progress import Progress, report, reporting
from lexent.evaluation.systems import Bench, EncoderLike, Latent, LexiconLike
from lexent.nan_safe import mean, paired_p, plain
from lexent.recipes import Recipe
from lexent.studies.explained_pairs import MAX_RANKED_DOCUMENTS, Pair, Pairs, Seen
from lexent.types import Kind

Target = Literal["top", "gold"]
Order = Literal["explained", "random", "weakest", "any"]
Way = Literal["deletion", "insertion"]
Watched = Literal["index", "dense"]

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Of the explanation's concepts, how many are taken away or added: the points of a curve."""
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True, slots=True)
class Curve:
    """Means over queries, with the concepts in one order."""

    score: tuple[float, ...]
    """At each of SHARES. Of the index: the share of the whole score. Of the dense retriever: the cosine."""
    place: tuple[float, ...]
    """The same for one over the rank of the document; 0 where it is not found."""
    score_area: float
    """Under the curve over SHARES: low is faithful for deletion, high for insertion."""
    place_area: float


@dataclass(frozen=True, slots=True)
class Trial:
    """One retriever watched, one text of the pair changed, in one way."""

    watched: Watched
    side: Kind
    way: Way
    curves: dict[str, Curve]
    """By order: explained, random, weakest, any."""
    p_values: dict[str, dict[str, float]]
    """Order to "score" and "place": paired t-test of the areas under explained and under that order, over queries."""


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """What one recipe's explanations are worth on one collection."""

    recipe: str
    lexicon: str
    pairs: int
    """Queries that were looked at, each with one document."""
    concepts: float
    """Mean number of concepts of an explanation."""
    trials: tuple[Trial, ...]
    note: str = ""
    """What was left out, and why."""


@dataclass(frozen=True, slots=True)
class FaithfulnessReport:
    """Whether documents fall when the concepts that explain them are taken away."""

    collection: str
    split: str
    encoder: str
    target: Target
    rivals: int
    """Documents among which ranks are counted: all, or the best ones of each query where there are many."""
    draws: int
    shares: tuple[float, ...]
    recipes: tuple[Faithfulness, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps; None where a measure is not defined."""
        found: dict[str, Any] = plain(asdict(self))
        return found


@reporting
def faithfulness(
    collection: str | Path | Collection,
    *,
    recipe: str | Recipe | Sequence[str | Recipe] = "latent-terms",
    lexicon: LexiconLike = None,
    encoder: EncoderLike = None,
    split: str | None = None,
    target: Target = "top",
    queries: int = 200,
    draws: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> FaithfulnessReport:
    """Deletion and insertion curves of a recipe's explanations, on both sides, in the index and in dense retrieval.

    target: the document that is explained: the top hit of a query, or the relevant one that ranks highest (queries
    without any in the first 1,000 are left out). queries: how many are drawn; draws: random orders a query.
    """
    if target not in get_args(Target):
        raise InputError(f'target is "{target}"; allowed: {", ".join(get_args(Target))}')
    if queries < 1 or draws < 1:
        raise InputError(f"queries is {queries} and draws is {draws}; allowed: 1 or more")
    whole = load(collection, split=split)
    bench = Bench(encoder=encoder, lexicon=lexicon)
    systems = [bench.concepts_alone(each) for each in ([recipe] if isinstance(recipe, str | Recipe) else recipe)]
    documents = baselines.pooled_states(bench.encoder, whole.texts, kind="document")
    dense = documents, baselines.pooled_states(bench.encoder, whole.query_texts, kind="query")
    found = []
    for system in systems:
        pairs = Pairs(whole, system, dense=dense, target=target)
        found.append(_study(pairs, system, queries=queries, draws=draws, seed=seed))
    return FaithfulnessReport(
        collection=whole.name,
        split=whole.split,
        encoder=bench.encoder.id,
        target=target,
        rivals=min(len(whole.documents), MAX_RANKED_DOCUMENTS),
        draws=draws,
        shares=SHARES,
        recipes=tuple(found),
    )


def _study(pairs: Pairs, system: Latent, *, queries: int, draws: int, seed: int) -> Faithfulness:
    """Every test on every pair."""
    random = np.random.default_rng(seed)
    seen: dict[tuple[Watched, Kind, Way], dict[Order, list[NDArray[np.float64]]]] = {}
    sizes: list[int] = []
    chosen = random.permutation(len(pairs))[:queries]
    for done, row in enumerate(np.sort(chosen), start=1):
        pair = pairs.at(int(row))
        if pair is not None:
            sizes.append(len(pair.explained))
            for key, order, found in _tested(pair, random, draws):
                seen.setdefault(key, {}).setdefault(order, []).append(found)
        report(f"{system.name}, explanations", done, len(chosen))
    return Faithfulness(
        recipe=system.name,
        lexicon=system.lexicon.name,
        pairs=len(sizes),
        concepts=mean(sizes),
        trials=tuple(_trial(key, found) for key, found in seen.items()),
        note=pairs.note,
    )


def _tested(
    pair: Pair, random: np.random.Generator, draws: int
) -> Iterator[tuple[tuple[Watched, Kind, Way], Order, NDArray[np.float64]]]:
    """Score and place [2, n_points] of each order, by each retriever on each side; random orders are averaged."""
    kinds: tuple[Kind, ...] = ("query", "document")
    for kind in kinds:
        columns, n = pair.columns[kind], pair.sizes[kind]
        orders: dict[Order, list[NDArray[np.int64]]] = {
            "explained": [columns],
            "random": [random.permutation(columns) for _ in range(draws)],
            "weakest": [columns[::-1]],
            "any": [random.permutation(n)[: len(columns)] for _ in range(draws)],
        }
        for order, several in orders.items():
            touched = np.concatenate([_touched(each, n) for each in several])
            for watched, side in pair.sides[kind].items():
                changed: dict[Way, Seen] = {"deletion": side.without(~touched), "insertion": side.alone(touched)}
                for way, seen in changed.items():
                    yield (watched, kind, way), order, np.stack(seen).reshape(2, len(several), -1).mean(axis=1)


def _touched(order: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """bool[len(SHARES), n]: the first of the order, as many as each point has."""
    masks = np.zeros((len(SHARES), n), np.bool_)
    for row, share in enumerate(SHARES):
        masks[row, order[: int(np.ceil(share * len(order) - 1e-9))]] = True
    return masks


def _trial(key: tuple[Watched, Kind, Way], found: dict[Order, list[NDArray[np.float64]]]) -> Trial:
    watched, side, way = key
    values = {order: np.stack(seen) for order, seen in found.items()}  # [n_queries, score and place, n_points]
    if watched == "index":  # scores of queries differ in size: a share of the whole is comparable
        whole = values["explained"][:, 0, [0 if way == "deletion" else -1]]
        for each in values.values():
            each[:, 0] /= np.where(whole != 0, whole, 1)
    areas = {order: np.asarray(np.trapezoid(each, SHARES, axis=2)) for order, each in values.items()}
    curves: dict[str, Curve] = {}
    for order, each in values.items():
        score, place = (tuple(row) for row in each.mean(axis=0).tolist())
        curves[order] = Curve(score, place, *areas[order].mean(axis=0).tolist())
    p_values: dict[str, dict[str, float]] = {
        order: {
            name: paired_p(explained, other, alternative="two-sided")
            for name, explained, other in zip(("score", "place"), areas["explained"].T, areas[order].T, strict=True)
        }
        for order in found
        if order != "explained"
    }
    return Trial(watched, side, way, curves, p_values)
