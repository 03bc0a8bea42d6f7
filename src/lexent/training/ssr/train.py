"""From texts and pairs to a lexicon for MaxSim on disk: train its codes for retrieval, name them, save all."""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lexent.artifact import check_target, disk_errors
from lexent.encoders.encoder import DEFAULT, Encoder
from lexent.errors import InputError
from lexent.lexicon.lexicon import Lexicon, LexiconInfo
from lexent.lexicon.naming import named_lexicon
from lexent.models import load_encoder
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.training.pairs import Pairs
from lexent.training.reconstruction.train import (
    Report,
    naming_counter,
    naming_texts,
    reporter,
    saved,
    training_folder,
    with_sources,
)
from lexent.training.reconstruction.trainer import TrainConfig, Trainer
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.ssr.trainer import PairTrainer
from lexent.training.stream import StateStream
from lexent.types import Level


def train_ssr(
    texts: Iterable[str],
    pairs: Pairs,
    *,
    out: str | Path,
    encoder: Any = DEFAULT,
    config: RetrievalConfig | None = None,
    start: Lexicon | None = None,
    sentences: int = 4,
    quotable: Container[str] | None = None,
    bits: Literal[8, 32] = 32,
    name: str | None = None,
    overwrite: bool = False,
    progress: Report | None = None,
) -> Lexicon:
    """Train a lexicon for MaxSim and save it to the folder `out`.

    First its autoencoders learn to rebuild the states of the texts, then to tell a query's documents from others. A run
    that is stopped goes on from its last checkpoint, in the folder `out` + ".training", when the same call is made
    again. start: a lexicon of the encoder to begin with, in place of the passes over texts. quotable: the texts that
    examples of concepts may be quoted from; all where not given. An encoder that is trained
    too is saved as a sentence-transformers model in the folder `out` + "-encoder".
    """
    out, config = Path(out), config or RetrievalConfig()
    check_target(out, kind="lexicon", overwrite=overwrite)
    beside = out.with_name(out.name + "-encoder")
    if not config.freeze and beside.exists() and not overwrite:
        raise InputError(f'the encoder would be saved to "{beside}", which exists; replace it with --overwrite')
    held = [text for text in texts if text.strip()]
    if not held:
        raise InputError("there is no text to train on; give files with prose: lexent train TEXTS --out DIR")
    model = load_encoder(encoder, engine="torch")
    if start is not None:
        start.check(model, level="tokens")
    lessons, sources = with_sources(held, sentences, seed=config.seed)
    made = fit(
        model,
        [*lessons, *dict.fromkeys(pairs.queries)],  # queries must be known as well as texts
        pairs,
        config=config,
        start=start.sae if start is not None else None,
        start_whole=start.whole if start is not None else None,
        folder=training_folder(out),
        bits=bits,
        progress=progress,
    )
    trained = model if made.learner is None else _saved(made.learner, beside)
    facts: dict[str, Any] = {"texts": len(held), "sentences": len(lessons) - len(held), "pairs": len(pairs)}
    facts |= {"negatives_a_query": round(float((pairs.negatives >= 0).sum(axis=1).mean()), 1)}
    facts |= {"start": start.hash} if start is not None else {}
    facts |= {**asdict(config), "d_sae": made.tokens.config.d_sae, **made.facts}
    info = LexiconInfo(name or out.name, trained.id, trained.fingerprint, "tokens", facts, "maxsim")
    named_on, whole_texts = naming_texts(held, seed=config.seed), naming_texts(lessons, seed=config.seed)
    total = len(named_on) + (len(whole_texts) if made.whole is not None else 0)
    if quotable is not None:
        quotable = {text for text, source in zip(lessons, sources, strict=True) if held[source] in quotable}
    lexicon = named_lexicon(
        made.tokens,
        named_on,
        encoder=trained,
        info=info,
        whole=made.whole,
        whole_texts=whole_texts,  # short texts say best what the concepts of whole texts are about
        quotable=quotable,
        progress=naming_counter(progress, total),
    )
    return saved(lexicon, out, overwrite=overwrite)


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


def _saved(learner: Any, folder: Path) -> Encoder:
    """The trained encoder, written beside its folder, renamed, and opened again as a search would."""
    beside = folder.with_name(f".{folder.name}.new")
    with disk_errors(folder):
        shutil.rmtree(beside, ignore_errors=True)
        learner.save_pretrained(str(beside))
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)
    return load_encoder(str(folder), engine="torch")
