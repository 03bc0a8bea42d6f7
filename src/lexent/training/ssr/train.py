"""From texts and pairs to a lexicon for MaxSim on disk: train its codes for retrieval, name them, save all."""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

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
from lexent.training.stream import StateStream, balanced, check_balance, fits_on_gpu
from lexent.types import Level

if TYPE_CHECKING:
    from numpy.typing import NDArray


def train_ssr(
    texts: Iterable[str],
    pairs: Pairs,
    *,
    out: str | Path,
    encoder: Any = DEFAULT,
    config: RetrievalConfig | None = None,
    start: Lexicon | None = None,
    sentences: int = 4,
    balance: float = 1.0,
    domains: Sequence[int] | None = None,
    quotable: Container[str] | None = None,
    bits: Literal[8, 32] = 32,
    name: str | None = None,
    overwrite: bool = False,
    progress: Report | None = None,
) -> Lexicon:
    """Train a lexicon for MaxSim and save it to the folder `out`.

    First its autoencoders learn to rebuild the states of the texts, then to tell a query's documents from others. A run
    that is stopped goes on from its last checkpoint, in the folder `out` + ".training", when the same call is made
    again. start: a lexicon of the encoder to begin with, in place of the passes over texts. balance, domains, quotable:
    as in `lexent.train`. An encoder that is trained too is saved as a sentence-transformers model in the folder
    `out` + "-encoder".
    """
    out, config = Path(out), config or RetrievalConfig()
    check_balance(balance)
    check_target(out, kind="lexicon", overwrite=overwrite)
    beside = out.with_name(out.name + "-encoder")
    if not config.freeze and beside.exists() and not overwrite:
        raise InputError(f'the encoder would be saved to "{beside}", which exists; replace it with --overwrite')
    given = list(texts)
    of_domain = [0] * len(given) if domains is None else domains
    kept = [(text, domain) for text, domain in zip(given, of_domain, strict=True) if text.strip()]
    if not kept:
        raise InputError("there is no text to train on; give files with prose: lexent train TEXTS --out DIR")
    held = [text for text, _ in kept]
    model = load_encoder(encoder, engine="torch")
    if start is not None:
        start.check(model, level="tokens")
    lessons, sources = with_sources(held, sentences, seed=config.seed)
    queries = list(dict.fromkeys(pairs.queries))  # they must be known as well as texts
    weights = None
    if balance < 1:
        weights = balanced(lessons, [kept[source][1] for source in sources], power=balance)
    made = fit(
        model,
        [*lessons, *queries],
        pairs,
        weights=None if weights is None else np.concatenate([weights, np.ones(len(queries))]),
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
    facts |= {"text_balance": balance, "domains": len(set(of_domain))} if balance < 1 else {}
    facts |= {**asdict(config), "d_sae": made.tokens.config.d_sae, **made.facts}
    info = LexiconInfo(name or out.name, trained.id, trained.fingerprint, "tokens", facts, "maxsim")
    named_on = naming_texts(held, None if weights is None else weights[: len(held)], seed=config.seed)
    whole_texts = naming_texts(lessons, weights, seed=config.seed)
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
    weights: NDArray[np.float64] | None = None,
    start: SparseAutoencoder | None = None,
    start_whole: SparseAutoencoder | None = None,
    folder: Path | None = None,
    bits: Literal[8, 32] = 32,
    progress: Report | None = None,
) -> Fitted:
    """Train codes for an encoder on unlabelled texts and on pairs with their negatives.

    weights: how often a pass over the texts has each of them. start, start_whole: autoencoders to begin with, in place
    of these passes. folder: where the checkpoints of each stage go; a run that was stopped goes on there.
    """
    config = config or RetrievalConfig()

    def pretrained(level: Level) -> SparseAutoencoder:
        keep = config.pretrain > 1 and fits_on_gpu(texts, encoder, level=level)
        passes = max(config.pretrain, 1)
        stream = StateStream(texts, encoder, level=level, passes=passes, seed=config.seed, weights=weights, keep=keep)
        return _pretrained(stream, config, folder=folder, progress=progress)

    tokens = start or pretrained("tokens")
    whole = None
    if config.whole:
        whole = start_whole or pretrained("pooled")
    trainer = PairTrainer(
        encoder, pairs, config, tokens=tokens, whole=whole, folder=folder / "pairs" if folder is not None else None
    )
    last = trainer.run(progress=reporter(progress, "pairs"))
    found, found_whole = trainer.result(bits=bits)
    names = ("step", "supervised", "accuracy", "fvu", "dead", *(("whole_accuracy", "whole_fvu") if whole else ()))
    facts = {name: round(getattr(last, name), 4) for name in names}
    return Fitted(found, found_whole, trainer.learner, facts)


def _pretrained(
    stream: StateStream, config: RetrievalConfig, *, folder: Path | None, progress: Report | None
) -> SparseAutoencoder:
    """An autoencoder that rebuilds the states of the texts; a random one where no pass over them is wanted."""
    of_tokens, texts = stream.level == "tokens", len(stream.texts)
    few = texts * 2 if of_tokens else texts // 16  # a handful of texts must fill batches too
    settings = TrainConfig(
        d_sae=config.d_sae if of_tokens else config.whole_d_sae,
        k=config.k if of_tokens else config.whole_k,
        tied=config.tied,
        batch=min(config.pretrain_batch, max(16, few)),
        lr=config.pretrain_lr,
        dead_after=1_000_000 if of_tokens else 300_000,
        seed=config.seed,
    )
    if not config.pretrain:
        return Trainer(stream, settings).untrained()
    trainer = Trainer(stream, settings, folder=folder / stream.level if folder is not None else None)
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
