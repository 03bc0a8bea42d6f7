"""How codes are trained for retrieval (SSR): every setting in one value."""

from __future__ import annotations

from dataclasses import dataclass

from lexent.errors import InputError


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """How a lexicon is trained for MaxSim. Weights and temperatures are the paper's where it gives them."""

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
    """Passes over the texts that train reconstruction alone, before the pairs."""
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
    weight_decay: float = 0.01
    """AdamW's weight decay."""
    warm_up: float = 0.05
    """Share of the steps with a rising learning rate."""
    clip: float = 1.0
    """Largest norm of each autoencoder's gradient."""
    wide: float = 1 / 8
    """Weight of the reconstruction by four times as many latents."""
    alpha: float = 1 / 32
    """Weight of the auxiliary loss that revives dead latents."""
    beta: float = 0.1
    """Weight of the contrast between the tokens of a batch."""
    gamma: float = 0.05
    """Weight of the contrast between the documents of a query: what retrieval training adds."""
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
    hard: int = 2
    """Mined negatives of each pair that take part in a step, drawn anew each time."""
    by_source: bool = True
    """Fill a batch from one source of pairs: its documents are alike, so they are harder to tell apart."""
    query_tokens: int = 32
    """Tokens of a query that are compared."""
    document_tokens: int = 180
    """Tokens of a document that are compared."""
    specials: bool = True
    """Compare the states of special tokens such as [CLS] and [SEP] too."""
    rebuilt: int = 8192
    """Tokens of a batch that are rebuilt, drawn at random."""
    contrasted: int = 1024
    """Of those, tokens that are set against each other."""
    freeze: bool = True
    """Leave the encoder as it is; False trains it with the autoencoders."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, k, most in (("k", self.k, self.d_sae), ("whole_k", self.whole_k, self.whole_d_sae)):
            _check(1 <= k <= most, name, k, f"from 1 to the number of latents, {most}")
        _check(self.k_from is None or 1 <= self.k_from <= self.d_sae, "k_from", self.k_from, f"from 1 to {self.d_sae}")
        for name in ("batch", "rebuilt", "contrasted"):
            _check(getattr(self, name) >= 2, name, getattr(self, name), "2 or more")
        for name in ("k_aux", "dead_after", "query_tokens", "document_tokens"):
            _check(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("lr", "temperature", "whole_temperature", "contrast_temperature", "epochs", "clip"):
            _check(getattr(self, name) > 0, name, getattr(self, name), "above 0")
        for name in ("wide", "alpha", "beta", "gamma", "hard", "pretrain", "weight_decay", "encoder_lr", "seed"):
            _check(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        _check(self.steps is None or self.steps >= 1, "steps", self.steps, "1 or more, or none")
        _check(0 < self.warm_up < 1, "warm_up", self.warm_up, "between 0 and 1")

    def k_at(self, share: float) -> int:
        """Latents a token may use at that share of the steps."""
        if self.k_from is None or share >= 0.7:
            return self.k
        return round(self.k_from + (self.k - self.k_from) * share / 0.7)


def _check(good: bool, name: str, given: object, allowed: str) -> None:
    if not good:
        raise InputError(f"{name} is {given}; allowed: {allowed}")
