"""A whole training for retrieval: reconstruction of tokens, then of whole texts, then the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lexent.training.reconstruction.train import Report, reporter
from lexent.training.reconstruction.trainer import TrainConfig, Trainer
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.ssr.trainer import PairTrainer
from lexent.training.stream import StateStream

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.sae.autoencoder import SparseAutoencoder
    from lexent.training.pairs import Pairs
    from lexent.types import Level


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a training gave."""

    tokens: SparseAutoencoder
    whole: SparseAutoencoder | None
    learner: Any  # the SentenceTransformer that was trained, None where the encoder was left as it is
    facts: dict[str, Any]
    """What was measured last, for the card."""


def fit(
    encoder: Encoder,
    texts: Sequence[str],
    pairs: Pairs,
    *,
    config: RetrievalConfig | None = None,
    start: SparseAutoencoder | None = None,
    start_whole: SparseAutoencoder | None = None,
    folder: Path | None = None,
    bits: Literal[8, 32] = 32,
    progress: Report | None = None,
) -> Fitted:
    """Train codes for an encoder on unlabelled texts and on pairs with their negatives.

    start, start_whole: autoencoders to begin with, in place of passes over the texts. folder: where the checkpoints of
    each stage go; a run that was stopped goes on there.
    """
    config = config or RetrievalConfig()
    tokens = start or _pretrained(encoder, texts, config, level="tokens", folder=folder, progress=progress)
    whole = None
    if config.whole:
        whole = start_whole or _pretrained(encoder, texts, config, level="pooled", folder=folder, progress=progress)
    trainer = PairTrainer(
        encoder, pairs, config, tokens=tokens, whole=whole, folder=folder / "pairs" if folder is not None else None
    )
    last = trainer.run(progress=reporter(progress, "pairs"))
    found, found_whole = trainer.result(bits=bits)
    names = ("step", "supervised", "accuracy", "fvu", "dead", *(("whole_accuracy", "whole_fvu") if whole else ()))
    facts = {name: round(getattr(last, name), 4) for name in names}
    return Fitted(found, found_whole, trainer.learner, facts)


def _pretrained(
    encoder: Encoder,
    texts: Sequence[str],
    config: RetrievalConfig,
    *,
    level: Level,
    folder: Path | None,
    progress: Report | None,
) -> SparseAutoencoder:
    """An autoencoder that rebuilds the states of the texts; a random one where no pass over them is wanted."""
    of_tokens = level == "tokens"
    few = len(texts) * 2 if of_tokens else len(texts) // 16  # a handful of texts must fill batches too
    settings = TrainConfig(
        d_sae=config.d_sae if of_tokens else config.whole_d_sae,
        k=config.k if of_tokens else config.whole_k,
        tied=config.tied,
        batch=min(config.pretrain_batch, max(16, few)),
        lr=config.pretrain_lr,
        dead_after=1_000_000 if of_tokens else 300_000,
        seed=config.seed,
    )
    stream = StateStream(texts, encoder, level=level, passes=max(config.pretrain, 1), seed=config.seed)
    if not config.pretrain:
        return Trainer(stream, settings).untrained()
    trainer = Trainer(stream, settings, folder=folder / level if folder is not None else None)
    return trainer.run(progress=reporter(progress, "tokens" if of_tokens else "whole texts"))
