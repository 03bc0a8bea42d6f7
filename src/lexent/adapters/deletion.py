"""Do the named directions matter? Take them out of a query's change, score again, and see what is lost.

The change is that of the effective query: the direction in the encoder's space with which documents are compared.
Lengths and biases of modulated documents stay as they are, so with nothing taken away the scores are the adapter's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.changes import change_of
from lexent.adapters.corpus import AdaptedCorpus, best
from lexent.adapters.directions import Directions
from lexent.adapters.modulation import Rows
from lexent.adapters.schedule import p_value
from lexent.adapters.validation import CUTOFF, Quality
from lexent.nan_safe import mean, plain, ratio

CONDITIONS = ("whole", "named", "random", "shrunk", "none")
RIVAL_DOCUMENTS = 10


@dataclass(frozen=True, slots=True)
class Deletion:
    """Means over queries under each condition.

    whole: nothing is taken away. named: the directions that the explanation names. random: as many others of the same
    table. shrunk: the change in its own direction, shortened to the length that named leaves. none: no change at all.
    """

    table: str
    queries: int
    directions: int
    explained: float
    """The share of the change's squared length along the named ones."""
    explained_random: float
    margin: dict[str, float]
    """The best relevant document's score, less the mean of the ten best others of the base. Over queries for which
    there are others; NaN, as what follows from it, where all documents are relevant to every query."""
    ndcg: dict[str, float]
    lost: dict[str, float]
    """Of what the change gains in margin over none, the share that each condition loses; NaN where it gains none."""
    p_random: float
    """Paired one-sided t-test over queries: taking the named away costs more margin than random ones."""
    p_shrunk: float
    """The same against a change shortened as much."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps; None where a measure is not defined."""
        found: dict[str, Any] = plain(asdict(self))
        return found


def deletion(
    corpus: AdaptedCorpus,
    queries: Rows,
    grades: Sequence[Mapping[int, int]],
    *,
    directions: Directions,
    n: int = 8,
    draws: int = 5,
    seed: int = 0,
) -> Deletion:
    """queries: float32[n, dim], unit. grades: of each, document position to grade, above 0."""
    random = np.random.default_rng(seed)
    margins: list[dict[str, float]] = []
    values: list[dict[str, float]] = []
    shares: list[tuple[float, float]] = []
    for vector, judged in zip(queries, grades, strict=True):
        scorer = _Scorer(corpus, vector)
        chosen = directions.places(scorer.change, n=n)
        named = _without(scorer.change, directions.rows[chosen])
        left = float(np.linalg.norm(named) / max(float(np.linalg.norm(scorer.change)), 1e-12))
        drawn = [
            _without(scorer.change, directions.rows[_others(random, len(directions), chosen)]) for _ in range(draws)
        ]
        states = {"whole": [scorer.change], "named": [named], "random": drawn}
        states |= {"shrunk": [scorer.change * np.float32(left)], "none": [np.zeros_like(scorer.change)]}
        seen = {name: [scorer.look(change, judged) for change in changes] for name, changes in states.items()}
        margins.append({name: float(np.mean([margin for margin, _ in each])) for name, each in seen.items()})
        values.append({name: float(np.mean([ndcg for _, ndcg in each])) for name, each in seen.items()})
        kept = [float(change @ change) for change in drawn]
        total = max(float(scorer.change @ scorer.change), 1e-12)
        shares.append((1 - left**2, 1 - float(np.mean(kept)) / total))
    with_others = [row for row in margins if not np.isnan(row["whole"])]
    column = {name: np.array([row[name] for row in with_others]) for name in CONDITIONS}
    means = {name: mean(each) for name, each in column.items()}
    gained = means["whole"] - means["none"]
    return Deletion(
        table=directions.table,
        queries=len(margins),
        directions=n,
        explained=mean(named for named, _ in shares),
        explained_random=mean(other for _, other in shares),
        margin=means,
        ndcg={name: mean(row[name] for row in values) for name in CONDITIONS},
        lost={name: ratio(means["whole"] - means[name], gained) for name in CONDITIONS},
        p_random=p_value(column["random"], column["named"]),
        p_shrunk=p_value(column["shrunk"], column["named"]),
    )


class _Scorer:
    """One query, whose change can be replaced by another."""

    def __init__(self, corpus: AdaptedCorpus, vector: Rows) -> None:
        adapter = corpus.adapter
        query = corpus.query(vector)
        self.base = query.base
        self.change = change_of(adapter, query)
        self._documents = corpus.base
        scores = corpus.scores_of(query)
        base = corpus.base @ query.base
        self._rivals = best(base, RIVAL_DOCUMENTS + 20).positions
        # score = (e.d g + c) / length: g and length are the document's, so g / length follows from the score itself.
        effective = adapter.effective(query)
        self._size = np.float32(np.linalg.norm(effective))
        projected = np.linalg.norm(corpus.base @ adapter.tensors["projector"].T, axis=1)
        constant = float(query.upon.bias @ adapter.compared(query))
        numerator = corpus.base @ effective / np.maximum(projected, 1e-12) + np.float32(constant)
        self._length = np.where(np.abs(scores) > 1e-9, numerator / np.where(np.abs(scores) > 1e-9, scores, 1), 1)
        self._projected, self._constant = np.maximum(projected, 1e-12), np.float32(constant)

    def look(self, change: Rows, judged: Mapping[int, int]) -> tuple[float, float]:
        """The margin and the nDCG@10 with another change in place of the adapter's. No margin without rivals."""
        numerator = self._documents @ ((self.base + change) * self._size) / self._projected + self._constant
        scores = (numerator / self._length).astype(np.float32)
        relevant = max(float(scores[place]) for place in judged)
        rivals = [float(scores[place]) for place in self._rivals if place not in judged][:RIVAL_DOCUMENTS]
        ranking = best(scores, CUTOFF).positions
        return relevant - mean(rivals), float(Quality.of(ranking[None], [judged]).ndcg[0])


def _without(change: Rows, rows: Rows) -> Rows:
    """The change less its part in the space of some directions."""
    if not len(rows):
        return change
    basis, _ = np.linalg.qr(rows.T.astype(np.float64))
    found: Rows = (change - basis @ (basis.T @ change)).astype(np.float32)
    return found


def _others(random: np.random.Generator, n: int, chosen: list[int]) -> NDArray[np.int64]:
    """As many other directions, drawn evenly."""
    drawn = random.permutation(n)[: 2 * len(chosen)]
    return drawn[~np.isin(drawn, chosen)][: len(chosen)]
