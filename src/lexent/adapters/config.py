"""What an adapter is, and how it is trained: two values, each field with its own doc string."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lexent import arguments
from lexent.errors import InputError

Mode = Literal["diag", "lowrank", "full"]
Start = Literal["identity", "pca"]
Feedback = Literal["top", "corpus", "none"]
Loss = Literal["infonce", "improvement", "hinge"]
Negatives = Literal["dense", "bm25", "corpus"]
HeldOut = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """The form of an adapter."""

    dim: int
    """Width of the encoder's vectors."""
    width: int
    """Width of the projected vectors; the encoder's own by default."""
    mode: Mode = "diag"
    """How a modulation changes a vector: a factor a dimension, a low-rank matrix beside the identity, or a matrix."""
    hidden: int = 128
    """Width of the hidden layer of both adapters."""
    rank: int = 4
    """Rank of a modulation in the mode lowrank."""
    start: Start = "identity"
    """The projector before training: the identity where widths are equal, or the documents' principal directions."""
    layer_norm: bool = False
    """Normalise modulated vectors by their mean and spread before the cosine, as in the paper."""
    feedback: Feedback = "top"
    """The documents that modulate a query: the base retriever's best, all of the corpus as in the paper, or none."""
    feedback_depth: int = 10
    """How many of the base retriever's best documents modulate a query."""

    def __post_init__(self) -> None:
        for name, allowed in (("mode", Mode), ("start", Start), ("feedback", Feedback)):
            arguments.choice(name, getattr(self, name), get_args(allowed))
        for name in ("dim", "width", "hidden", "rank", "feedback_depth"):
            arguments.whole(name, getattr(self, name), least=1)
        if self.width > self.dim:
            raise InputError(f"width is {self.width} and the encoder gives {self.dim}; allowed: at most {self.dim}")
        if self.start == "identity" and self.width != self.dim:
            raise InputError(
                f"a projector from {self.dim} to {self.width} cannot start as the identity; "
                f'let it start from principal directions: start "pca" (--start pca)'
            )

    @property
    def outputs(self) -> int:
        """Numbers that make one modulation."""
        m = self.width
        return {"diag": 2 * m, "lowrank": 2 * m * self.rank + m, "full": m * m + m}[self.mode]


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How an adapter is trained."""

    loss: Loss = "infonce"
    """What is minimised: infonce, the improvement of margins over the base's own, or the paper's hinge."""
    negatives: Negatives = "dense"
    """Where negatives come from: the base retriever's best documents, BM25's as in the paper, or the whole corpus, of
    which 16,384 documents are drawn for a step where it has more."""
    n_negatives: int = 15
    """Hard negatives a query."""
    margin: float | None = None
    """Of the losses improvement (0.1 where it is left out) and hinge (0.3)."""
    temperature: float = 0.05
    """Of the loss infonce: cosines are divided by it."""
    lr: float = 3e-5
    """Learning rate of Adam."""
    weight_decay: float = 1e-5
    """Of both adapters; the projector is held to its start by `anchor`."""
    anchor: float = 0.0
    """Weight of the squared distance of the projector from its start."""
    batch: int = 32
    """Queries a step; their candidates are shared as negatives."""
    epochs: int = 20
    """The most passes over the training queries."""
    patience: int = 4
    """Passes without a better validation value before training ends."""
    folds: int = 5
    """Folds of the train queries. Each run leaves out two, every pair in turn: one chooses the passes, the other tests
    the choice. Of 2,000 queries or more, one run is enough."""
    held_out: HeldOut = "query"
    """What is new in a fold that is left out: its queries, or also the documents that they ask for."""
    candidates: int = 100
    """Documents of the base retriever that both, base and adapted, rank in validation."""
    seed: int = 0
    """Of the folds, the batches and the first weights."""

    def __post_init__(self) -> None:
        for name, allowed in (("loss", Loss), ("negatives", Negatives), ("held_out", HeldOut)):
            arguments.choice(name, getattr(self, name), get_args(allowed))
        for name in ("n_negatives", "batch", "epochs", "patience", "candidates"):
            arguments.whole(name, getattr(self, name), least=1)
        arguments.whole("folds", self.folds, least=3)
        for name in ("temperature", "lr"):
            if not 0 < getattr(self, name) < 1e3:
                raise InputError(f"{name} is {getattr(self, name)}; allowed: above 0")
        for name in ("weight_decay", "anchor"):
            if not 0 <= getattr(self, name) < 1e6:
                raise InputError(f"{name} is {getattr(self, name)}; allowed: 0 or more")

    @property
    def gap(self) -> float:
        """The margin of the loss."""
        return self.margin if self.margin is not None else {"hinge": 0.3}.get(self.loss, 0.1)
