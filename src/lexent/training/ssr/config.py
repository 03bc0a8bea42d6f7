"""How codes are trained for retrieval (SSR): every setting in one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lexent import arguments
from lexent.errors import InputError
from lexent.training.settings import Difference, PairSettings, check, k_between


@dataclass(frozen=True, slots=True)
class RetrievalConfig(PairSettings):
    """How a lexicon is trained for MaxSim. The defaults follow trials on held-out queries; `paper` has others."""

    d_sae: int = 16_384
    """Number of latents of tokens."""
    k: int = 32
    """Latents a token may use."""
    whole: bool = True
    """Train a second autoencoder for the vectors of whole texts."""
    whole_d_sae: int = 4096
    """Number of latents of whole texts."""
    whole_k: int = 32
    """Latents a whole text may use."""
    tied: bool = True
    """One matrix for both directions in each autoencoder."""
    pretrain: int = 2
    """Passes over the texts that train reconstruction alone, before the pairs; with 0 pairs begin at random codes."""
    pretrain_batch: int = 4096
    """States a step of these passes; fewer where there are few texts."""
    pretrain_lr: float = 1e-3
    """Peak learning rate of these passes."""
    batch: int = 64
    """Pairs a step."""
    epochs: float = 2.0
    """How often every pair is seen."""
    steps: int | None = None
    """Steps over the pairs, in place of epochs."""
    lr: float = 1e-3
    """Peak learning rate over the pairs: linear warm-up, then a cosine to 0."""
    encoder_lr: float = 2e-5
    """Peak learning rate of the encoder, where it is trained."""
    weight_decay: float = 0.0
    """AdamW's weight decay."""
    warm_up: float = 0.05
    """Share of the steps with a rising learning rate."""
    warm_up_steps: int | None = None
    """Steps with a rising learning rate, in place of the share; at most half of the run."""
    clip: float = 1.0
    """Largest norm of each autoencoder's gradient."""
    wide: float = 1 / 8
    """Weight of the reconstruction by four times as many latents."""
    alpha: float = 1 / 32
    """Weight of the auxiliary loss that revives dead latents."""
    beta: float = 0.1
    """Weight of the contrast between the tokens of a batch."""
    gamma: float = 1.0
    """Weight of the contrast between the documents of a query: what retrieval training adds."""
    teacher: float = 0.0
    """Share of that weight that asks for the encoder's own ranking of these documents, in place of the pairs: codes
    then stay good on texts unlike those of the pairs, and learn less from the pairs."""
    teacher_temperature: float = 0.05
    """Cosines of the encoder are divided by this."""
    temperature: float = 1.0
    """MaxSim scores are divided by this."""
    whole_temperature: float = 0.05
    """Cosines of whole texts are divided by this."""
    contrast_temperature: float = 1.0
    """Products of token codes are divided by this."""
    k_aux: int = 2048
    """Dead latents that may explain the residual of a state."""
    dead_after: int = 30
    """Steps without firing after which a latent counts as dead."""
    k_from: int | None = None
    """Latents a state may use at the start; over the first 70 % of the steps it becomes k. None: k all along."""
    gains: bool = True
    """Learn how much each latent of a query counts."""
    gain_lr: float = 5e-3
    """Peak learning rate of these gains."""
    idf: float = 0.5
    """Latents of a query count by their idf among the documents of its source, to this power; 0 makes them equal."""
    idf_documents: int = 1000
    """Documents of each source that idf is counted in."""
    idf_every: int = 500
    """Steps after which it is counted again, as the codes change."""
    function_words: float = 0.5
    """Weight of function words and punctuation in a query."""
    emphasis: float = 0.5
    """Tokens of a query count by the length of their state over the mean, to this power."""
    hard: int = 4
    """Mined negatives of each pair that take part in a step, drawn anew each time."""
    balance: float | None = 0.3
    """Each batch is of one source, whose documents are alike; a source is drawn by its size to this power."""
    query_tokens: int = 40
    """Tokens of a query that are compared."""
    document_tokens: int = 180
    """Tokens of a document that are compared."""
    specials: bool = True
    """Compare the states of special tokens such as [CLS] and [SEP] too."""
    rebuilt: int = 4096
    """Tokens of a batch that are rebuilt, drawn at random."""
    contrasted: int = 1024
    """Of those, tokens that are set against each other."""
    freeze: bool = True
    """Leave the encoder as it is; False trains it with the autoencoders."""
    seed: int = 0

    def __post_init__(self) -> None:
        arguments.fields_of(self)
        for name, k, most in (("k", self.k, self.d_sae), ("whole_k", self.whole_k, self.whole_d_sae)):
            check(1 <= k <= most, name, k, f"from 1 to the number of latents, {most}")
        check(self.k_from is None or 1 <= self.k_from <= self.d_sae, "k_from", self.k_from, f"from 1 to {self.d_sae}")
        temperatures = ("temperature", "teacher_temperature", "whole_temperature", "contrast_temperature")
        weights = ("wide", "alpha", "beta", "gamma", "idf", "emphasis", "weight_decay")
        self.check_ranges(
            {
                "2 or more": ("batch", "rebuilt", "contrasted"),
                "1 or more": ("k_aux", "dead_after", "query_tokens", "document_tokens", "idf_documents", "idf_every"),
                "above 0": ("lr", *temperatures, "epochs", "clip"),
                "0 or more": (*weights, "hard", "pretrain", "encoder_lr", "gain_lr", "seed"),
                "from 0 to 1": ("function_words", "teacher"),
                "0 or more, or none": ("balance",),
                "1 or more, or none": ("steps", "warm_up_steps"),
                "between 0 and 1": ("warm_up",),
            }
        )
        if self.teacher and not self.freeze:
            raise InputError("an encoder that is trained cannot teach its codes; leave --teacher out, or add --freeze")

    @staticmethod
    def paper(**settings: Any) -> RetrievalConfig:
        """The settings of the paper, where it gives them; `DIFFERS` lists what is otherwise all the same."""
        return RetrievalConfig(**{**PAPER, **settings})

    def k_at(self, share: float) -> int:
        """Latents a token may use at that share of the steps."""
        return k_between(self.k_from, self.k, share, end=0.7)


PAPER: dict[str, Any] = {
    "gamma": 0.05, "gains": False, "idf": 0.0, "function_words": 1.0, "emphasis": 0.0, "balance": None, "hard": 1,
    "query_tokens": 32, "rebuilt": 65_536, "weight_decay": 0.01, "pretrain": 0, "freeze": False,
    "warm_up_steps": 20_000, "whole_d_sae": 16_384, "whole_temperature": 1.0,
}  # fmt: skip
"""The paper's settings that are not our defaults. 65,536 tokens are more than a batch has: all are rebuilt."""

DIFFERS = (
    Difference("encoder", "bert-base-uncased, 768 wide", "the one that --encoder names, 384 wide by default"),
    Difference("pairs", "MS MARCO passages", "those that --pairs names"),
    Difference("warm-up", "20,000 steps", "20,000 steps, at most half of the run"),
    Difference("learning rate of the encoder", "not given; 2e-5 in the released code", "2e-5 (--encoder-lr)"),
    Difference("learning rate after the warm-up", "not given", "a cosine to 0"),
    Difference("gradient", "no clipping given", "clipped to a norm of 1 for each autoencoder and the encoder"),
    Difference("dropout", "on in the released code", "off, so that a run can be repeated"),
    Difference("reconstruction", "squared error", "squared error over the variance of the batch"),
    Difference("contrast of tokens", "all tokens of a batch", "1,024 of them, at random: all would take gigabytes"),
    Difference("tokens", "[CLS] left to its own autoencoder", "[CLS] and [SEP] are tokens as any other"),
    Difference("whole texts", "the state of [CLS]", "the encoder's own vector, for many the mean of its states"),
    Difference(
        "search",
        "tokens and latents count alike",
        "the recipe ssr weighs them; index with --idf none --function-words 1 --emphasis 0",
    ),
)
"""What --paper does otherwise than the paper."""
