"""How winner-take-all codes are trained (UHD): every setting in one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from lexent import arguments
from lexent.training.settings import Difference, PairSettings, check

Start = Literal["states", "random"]
Loss = Literal["contrast", "hinge"]


@dataclass(frozen=True, slots=True)
class WinnerConfig(PairSettings):
    """How the units of one or more buckets are trained. The defaults follow trials on held-out queries."""

    d_sae: int = 81_920
    """Units of each bucket."""
    k: int = 80
    """Winners of each token in each bucket."""
    query_k: int | None = None
    """The same for the tokens of a query; k where it is none."""
    specials: bool = True
    """Code the states of special tokens such as [CLS] and [SEP] too."""
    layers: tuple[int, ...] = (-1,)
    """The encoder's layers that buckets read, one each; 1 is the first, -1 the last."""
    shallow: bool = False
    """A bucket of a layer below the last has a copy of the encoder with so many layers: those in the middle are left
    out, and the last is still the last. Otherwise it reads the states that the whole encoder has at that layer."""
    mask: float = 0.7
    """Share of a unit's inputs that are fixed at 0; units of a group have the same live inputs."""
    groups: int = 64
    """Groups of units, each with live inputs of its own; as many as units for inputs of its own for each."""
    unit_rows: bool = True
    """Keep the weights of each unit at length 1, so that none wins by its length."""
    start: Start = "states"
    """Where units start: states at the states of random tokens, random at random directions."""
    rank: int | None = 16
    """Rank of the change of each of the encoder's matrices; 0 leaves the encoder as it is, None trains all of it."""
    loss: Loss = "contrast"
    """contrast: a query's own document among those of the batch. hinge: each other one at least a margin behind."""
    margin: float = 1.0
    """How far behind, for hinge."""
    temperature: float = 0.05
    """Cosines are divided by this, for contrast."""
    binary: float = 0.5
    """Share of the loss that is measured on which units are active alone, as in a search by counts."""
    query_cap: int | None = 100
    """In training a query has at most so many active units in a bucket."""
    document_cap: int | None = 400
    """In training a document has at most so many active units in a bucket."""
    batch: int = 32
    """Pairs a step."""
    epochs: float = 1.0
    """How often every pair is seen."""
    steps: int | None = None
    """Steps, in place of epochs."""
    lr: float = 1e-4
    """Peak learning rate of the units: linear warm-up, then linear decay."""
    encoder_lr: float = 1e-4
    """Peak learning rate of the encoder."""
    weight_decay: float = 0.01
    """AdamW's weight decay."""
    warm_up: float = 0.05
    """Share of the steps with a rising learning rate."""
    warm_up_steps: int | None = None
    """Steps with a rising learning rate, in place of the share; at most half of the run."""
    clip: float | None = 1.0
    """Largest norm of the gradient; none leaves it as it is."""
    hard: int = 1
    """Mined negatives of each pair that take part in a step, drawn anew each time."""
    balance: float | None = 0.3
    """Each batch is of one source, whose documents are alike; a source is drawn by its size to this power."""
    query_tokens: int = 32
    """Tokens of a query, at most."""
    document_tokens: int = 180
    """Tokens of a document, at most."""
    dead_after: int = 200
    """Steps without winning after which a unit counts as dead."""
    revive_every: int = 100
    """Steps between two revivals: dead units begin anew at the states of tokens; 0 never revives any."""
    boost: float = 0.003
    """How fast units that win more than their share are held back, and others helped: a share of a winner's value."""
    seed: int = 0

    def __post_init__(self) -> None:
        check(1 <= self.k <= self.d_sae, "k", self.k, f"from 1 to the number of units, {self.d_sae}")
        check(len(self.layers) > 0, "layers", self.layers, "one or more")
        check(1 <= self.groups <= self.d_sae, "groups", self.groups, f"from 1 to {self.d_sae}")
        arguments.choice("start", self.start, get_args(Start))
        arguments.choice("loss", self.loss, get_args(Loss))
        self.check_ranges(
            {
                "2 or more": ("batch",),
                "1 or more": ("query_tokens", "document_tokens", "dead_after"),
                "above 0": ("lr", "temperature", "epochs", "margin"),
                "0 or more": ("hard", "revive_every", "weight_decay", "encoder_lr", "boost", "seed"),
                "from 0 to 1": ("binary",),
                "from 0 to below 1": ("mask",),
                "between 0 and 1": ("warm_up",),
                "1 or more, or none": ("query_k", "query_cap", "document_cap", "steps", "warm_up_steps"),
                "0 or more, or none": ("balance", "rank"),
                "above 0, or none": ("clip",),
            }
        )

    @staticmethod
    def paper(**settings: Any) -> WinnerConfig:
        """The settings of the paper, where it gives them; `DIFFERS` lists what is otherwise all the same.

        All of the encoder learns, slowly, by a hinge over the documents of the batch; each unit has its own mask.
        """
        units = settings.get("d_sae", WinnerConfig.__dataclass_fields__["d_sae"].default)
        return WinnerConfig(**{**PAPER, "groups": units, **settings})


PAPER: dict[str, Any] = {
    "start": "random", "rank": None, "loss": "hinge", "binary": 0.0, "query_cap": None, "document_cap": None,
    "boost": 0.0, "lr": 5e-6, "encoder_lr": 5e-6, "hard": 0, "balance": None, "revive_every": 0, "unit_rows": False,
    "clip": None, "warm_up_steps": 2000,
}  # fmt: skip
"""The paper's settings that are not our defaults; also as many groups as units."""

DIFFERS = (
    Difference(
        "encoder",
        "BERT-base, 12 layers, 768 wide",
        "the one that --encoder names, 6 layers and 384 wide by default",
    ),
    Difference(
        "pairs",
        "a quarter of the 39.8 million small triples of MS MARCO, 311,000 steps",
        "one pass over those that --pairs names (--steps 311000 for as many steps)",
    ),
    Difference("buckets", "layers 2, 4, 6, 8, 10 and 12", "the last layer; with 12 layers give --layers 2,4,6,8,10,12"),
    Difference("warm-up", "2,000 steps", "2,000 steps, at most half of the run"),
    Difference("start of the units", "not given", "normal, with a variance of 2 over a unit's live inputs"),
    Difference("values below 0", "not mentioned", "count as 0 before the maximum over tokens is taken"),
    Difference("dropout", "not mentioned", "off, so that a run can be repeated"),
    Difference(
        "search",
        "80 winners a token, a query's 100 strongest",
        "the recipe uhd has 20 and 16 winners; index with --sae-k 80 --query-k 80 --query-cap 100",
    ),
)
"""What --paper does otherwise than the paper."""
