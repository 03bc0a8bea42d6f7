"""What an adapter changes: its parameters (structure), and the vectors and scores of one query (attribution)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from lexent.adapters.adapter import AdaptedQuery, Adapter, unit
from lexent.adapters.corpus import AdaptedCorpus, best
from lexent.adapters.modulation import Diagonal, Modulation, Rows

View = Literal["effective", "own", "modulation"]
"""Which change of a query is meant: of the direction that its documents are compared with, all parts together; the same
less what other queries of the collection get too; or of the projected query by its feedback documents alone, lifted by
the projector's pseudoinverse, as in the paper."""


@dataclass(frozen=True, slots=True)
class ModulationFacts:
    """One modulation in numbers."""

    distance: float
    """The Frobenius length of W - I."""
    bias: float
    """The length of b; vectors have length 1."""
    raised: tuple[tuple[int, float], ...]
    """diag: the dimensions of the largest factors."""
    lowered: tuple[tuple[int, float], ...]
    """diag: those of the smallest."""

    @staticmethod
    def of(modulation: Modulation, few: int = 5) -> ModulationFacts:
        """The facts of a modulation, with its `few` most raised and lowered dimensions."""
        raised: tuple[tuple[int, float], ...] = ()
        lowered: tuple[tuple[int, float], ...] = ()
        if isinstance(modulation, Diagonal):
            order = np.argsort(-modulation.scale, kind="stable")
            raised = tuple((int(at), float(modulation.scale[at])) for at in order[:few])
            lowered = tuple((int(at), float(modulation.scale[at])) for at in order[::-1][:few])
        return ModulationFacts(modulation.distance, float(np.linalg.norm(modulation.bias)), raised, lowered)


@dataclass(frozen=True, slots=True)
class Structure:
    """The parameters of an adapter, before any query."""

    mode: str
    parameters: int
    width: int
    projector_distance: float
    """The Frobenius length of P - I, where both widths are equal; of P's rows from unit, orthogonal ones elsewhere."""
    singular_values: tuple[float, float, float]
    """Of the projector: the largest, the middle and the smallest."""
    effective_rank: float
    """How many directions the projector keeps: the exponential of the entropy of its squared singular values."""
    kept_base: bool

    @staticmethod
    def of(adapter: Adapter) -> Structure:
        """The structure of an adapter, from its parameters alone."""
        matrix = adapter.tensors["projector"].astype(np.float64)
        values = np.linalg.svd(matrix, compute_uv=False)
        share = values**2 / (values**2).sum()
        square = matrix.shape[0] == matrix.shape[1]
        away = matrix - np.eye(len(matrix)) if square else matrix @ matrix.T - np.eye(len(matrix))
        return Structure(
            mode=adapter.config.mode,
            parameters=adapter.parameters,
            width=adapter.config.width,
            projector_distance=float(np.linalg.norm(away)),
            singular_values=(float(values[0]), float(np.median(values)), float(values[-1])),
            effective_rank=float(np.exp(-(share * np.log(np.maximum(share, 1e-300))).sum())),
            kept_base=adapter.info.kept_base,
        )


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """What became of one document for one query."""

    position: int
    base_rank: int
    rank: int
    base_score: float
    score: float
    moved: float
    """The length of the change of its unit vector, by the query's modulation."""

    @property
    def change(self) -> float:
        """Of its similarity."""
        return self.score - self.base_score


@dataclass(frozen=True, slots=True)
class QueryChange:
    """What an adapter does to one query and its documents."""

    by: ModulationFacts
    """What the feedback documents put upon the query."""
    upon: ModulationFacts
    """What the query puts upon documents."""
    length: float
    """Of the change of the unit query, in the encoder's own space."""
    cosine: float
    """Of the query before and after, there."""
    documents: tuple[DocumentChange, ...]

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        found = asdict(self)
        for row, document in zip(found["documents"], self.documents, strict=True):
            row["change"] = document.change
        return found


def change_of(adapter: Adapter, query: AdaptedQuery, view: Literal["effective", "modulation"] = "effective") -> Rows:
    """float32[dim]: the change of a query in the encoder's own space, unit vectors both before and after."""
    if view == "effective":
        found: Rows = unit(adapter.effective(query)[None])[0] - query.base
        return found
    moved = unit(query.vector[None])[0] - query.projected
    lifted: Rows = lift(adapter) @ moved
    return lifted


def lift(adapter: Adapter) -> Rows:
    """float32[dim, width]: the pseudoinverse of the projector, by its singular values."""
    found: Rows = np.linalg.pinv(adapter.tensors["projector"].astype(np.float64)).astype(np.float32)
    return found


def explain_query(corpus: AdaptedCorpus, vector: Rows, *, k: int = 5, others: tuple[int, ...] = ()) -> QueryChange:
    """Structure and attribution of one unit query: of the k best documents of the adapter, and of some others."""
    adapter, query = corpus.adapter, corpus.query(vector)
    base, scores = corpus.base @ query.base, corpus.scores_of(query)
    chosen = list(dict.fromkeys([*best(scores, k).positions.tolist(), *others]))
    rows = corpus.projected[chosen]
    moved = np.linalg.norm(unit(query.upon.apply(rows)) - rows, axis=1)
    documents = tuple(
        DocumentChange(
            position=place,
            base_rank=1 + int((base > base[place]).sum()),
            rank=1 + int((scores > scores[place]).sum()),
            base_score=float(base[place]),
            score=float(scores[place]),
            moved=float(distance),
        )
        for place, distance in zip(chosen, moved, strict=True)
    )
    change = change_of(adapter, query)
    after = query.base + change
    return QueryChange(
        by=ModulationFacts.of(query.by),
        upon=ModulationFacts.of(query.upon),
        length=float(np.linalg.norm(change)),
        cosine=float(after @ query.base / max(float(np.linalg.norm(after)), 1e-12)),
        documents=documents,
    )
