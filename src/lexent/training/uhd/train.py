"""From pairs to a lexicon of winners on disk (UHD): train its units with their encoder, name them, save all."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from lexent.artifact import check_target
from lexent.encoders.buckets import BucketEncoder, BucketParts, Copy
from lexent.encoders.encoder import DEFAULT
from lexent.errors import InputError
from lexent.lexicon.lexicon import Lexicon, LexiconInfo
from lexent.lexicon.naming import named_lexicon
from lexent.models import load_encoder
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.training.pairs import Pairs
from lexent.training.reconstruction.train import Report, naming_counter, naming_texts, reporter, saved, training_folder
from lexent.training.uhd.config import WinnerConfig
from lexent.training.uhd.model import joined
from lexent.training.uhd.trainer import WinnerTrainer

NAMED_BY = 8
"""Winners of a token that it gives its word to: the last of eighty have little to do with it."""


def train_uhd(
    texts: Iterable[str],
    pairs: Pairs,
    *,
    out: str | Path,
    encoder: Any = DEFAULT,
    config: WinnerConfig | None = None,
    joint: bool = False,
    quotable: Container[str] | None = None,
    bits: Literal[8, 32] = 32,
    name: str | None = None,
    overwrite: bool = False,
    progress: Report | None = None,
) -> Lexicon:
    """Train a lexicon of winners and save it, with what was changed in its encoder, to the folder `out`.

    Every layer of the settings becomes a bucket. Buckets are trained one after the other, each with a copy of the
    encoder of its own; joint: all at once, with one copy for all. texts: what units are named on, beside the queries.
    quotable: those of them that examples of concepts may be quoted from; all where not given. A run that is stopped
    goes on from its last checkpoint when the same call is made again.
    """
    out, config = Path(out), config or WinnerConfig()
    check_target(out, kind="lexicon", overwrite=overwrite)
    held = [text for text in texts if text.strip()]
    if not held:
        raise InputError("there is no text to name concepts on; give files with prose: lexent train TEXTS --out DIR")
    model: Any = load_encoder(encoder, engine="torch")
    runs = [config]
    if not joint:  # each draws for itself, so that they err apart
        runs = [replace(config, layers=(layer,), seed=config.seed + n) for n, layer in enumerate(config.layers)]
    units: list[SparseAutoencoder] = []
    copies: list[Copy] = []
    measured: dict[str, Any] = {}
    for place, settings in enumerate(runs):
        trainer = WinnerTrainer(model, pairs, settings, folder=training_folder(out) / f"bucket-{place}")
        last = trainer.run(progress=reporter(progress, "pairs", part=place, parts=len(runs)))
        found, copy = trainer.result(bits=bits)
        units.append(found)
        copies.append(copy)
        measured |= {f"{name}_{place}": round(getattr(last, name), 4) for name in ("accuracy", "binary_accuracy")}
    parts = BucketParts(model.id, model.fingerprint, tuple(copies))
    own = BucketEncoder.of(parts, id=str(out), base=model)
    facts = {"texts": len(held), "pairs": len(pairs), "joint": joint, **asdict(config), **measured}
    info = LexiconInfo(name or out.name, own.id, own.fingerprint, "tokens", facts)
    named_on = list(dict.fromkeys([*naming_texts(held, seed=config.seed), *pairs.queries]))
    whole, counter = joined(units), naming_counter(progress, len(named_on))
    strongest = whole.configured(k=min(NAMED_BY, whole.config.k))
    named = named_lexicon(strongest, named_on, encoder=own, info=info, quotable=quotable, progress=counter)
    return saved(Lexicon(whole, named.concepts, info, own_encoder=parts), out, overwrite=overwrite)
