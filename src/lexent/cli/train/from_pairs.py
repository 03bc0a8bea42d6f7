"""lexent train --recipe ssr or uhd: options of learning from pairs, and the pairs that they name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli.console import say
from lexent.cli.option_groups import Settings, changes_of, option_group, settings_group
from lexent.cli.options import names_of, numbers_of
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.cli.progress import Meter
    from lexent.encoders import Encoder
    from lexent.training.pairs import Pairs

_PAIRS_PANEL = "With --recipe ssr or uhd: learning from pairs"
_UHD_PANEL = "With --recipe uhd: winners in buckets"
_RETRIEVAL = ("training/ssr/config.py", "RetrievalConfig")


@option_group
class PairSources:
    """Where pairs come from."""

    PANEL = _PAIRS_PANEL
    pairs: Annotated[list[str] | None, typer.Option(metavar="COLLECTION_OR_FILE")] = None
    """Queries with documents that answer them: a collection (its train split), files whose texts have titles (title and
    text make a pair), or a file of --prepare. Can be given several times. [default: the titles of TEXTS]"""
    split: str | None = None
    """The judgements of collections to learn from; a test split is refused. [default: those that an ir_datasets id
    names, else train]"""
    asking: int | None = None
    """Sentences of each titled text that ask for the rest of it, beside its title. [default: 0]"""
    negatives: str | None = None
    """How documents that only look right are found: bm25 (by words), dense (by the encoder's vectors), both with a
    comma between, or none. [default: bm25]"""
    prepare: bool = False
    """Only write the pairs with their negatives, to the .npz file that --out names: another machine can train on it
    (--pairs FILE.npz), and needs no search engine for that."""
    paper: bool = False
    """Take the settings of the recipe's paper, where it gives them and others are not given. The run begins with a list
    of what differs all the same; it is also in docs/train.md."""


@option_group
class SsrRun:
    """What an ssr run begins with."""

    PANEL = _PAIRS_PANEL
    start: Annotated[str | None, typer.Option(metavar="NAME_OR_DIR")] = None
    """Begin with this lexicon, in place of passes over the texts."""


@option_group
class UhdRun:
    """How a uhd run goes over its buckets."""

    PANEL = _UHD_PANEL
    joint: bool = False
    """Train all buckets at once on one copy of the encoder, not one after the other on one each."""


PAIRS = changes_of(PairSources) + settings_group(
    *_RETRIEVAL, ("steps", "epochs", "hard", "encoder_lr", "temperature"), panel=_PAIRS_PANEL
)
"""Where pairs come from, and settings of all training on pairs."""
SSR = changes_of(SsrRun) + settings_group(
    *_RETRIEVAL,
    (
        "whole", "whole_d_sae", "whole_k", "gains", "idf", "function_words", "emphasis", "wide", "alpha", "beta",
        "gamma", "teacher", "whole_temperature", "freeze",
    ),
    panel=_PAIRS_PANEL,
    flags={"whole_d_sae": "--whole-latents", "freeze": "--unfreeze/--freeze"},
    help={
        "freeze": "Train the encoder with the autoencoders, and save it beside the lexicon, in the folder DIR-encoder. "
        "[default: freeze; with --paper: unfreeze]"
    },
    convert={"freeze": lambda unfreeze: not unfreeze},
)  # fmt: skip
"""Settings of codes that are compared token by token."""
UHD = changes_of(UhdRun) + settings_group(
    "training/uhd/config.py",
    "WinnerConfig",
    ("layers", "shallow", "mask", "boost", "loss", "binary", "rank"),
    panel=_UHD_PANEL,
    help={
        "rank": "Rank of the change of each of the encoder's matrices: 0 leaves the encoder as it is, -1 trains all of "
        "it. [default: 16]"
    },
    more_help={"layers": "Several with commas between."},
    convert={"layers": partial(numbers_of, int, "--layers", "4,6"), "rank": lambda rank: None if rank < 0 else rank},
)
"""Settings of winners in buckets."""
RUN_OPTIONS = {*changes_of(PairSources).flags, "start", "joint"}
"""Options that are no settings of the training itself."""


def gathered(
    texts: Sequence[Path],
    pairs: Settings,
    *,
    out: Path,
    encoder: str | None,
    seed: int,
    overwrite: bool,
    meter: Meter,
) -> tuple[Encoder, Pairs] | None:
    """The encoder and the pairs with their negatives; None where they were only to be written to a file."""
    from lexent.artifact import check_target
    from lexent.models import load_encoder

    prepare = pairs.get("prepare", False)
    if not prepare:
        check_target(out, kind="lexicon", overwrite=overwrite)  # before hours of work
    elif out.suffix != ".npz":
        raise InputError(f'"{out}" is no name for a file of pairs; end it with .npz: --prepare --out pairs.npz')
    elif out.exists() and not overwrite:
        raise InputError(f'"{out}" exists; replace it with --overwrite, or give another name')
    sources = pairs.get("pairs") or [str(path) for path in texts]
    parts = [_read(source, split=pairs.get("split"), sentences=pairs.get("asking", 0), seed=seed) for source in sources]
    model = load_encoder(encoder, engine="torch")
    keep = None if prepare else out.with_name(out.name + ".training")
    miners = names_of(pairs.get("negatives", "bm25"))
    found = _with_negatives(parts, [] if miners == ["none"] else miners, encoder=model, meter=meter, keep=keep)
    if not prepare:
        return model, found
    found.save(out)
    of = float((found.negatives >= 0).sum(axis=1).mean())
    say(f"written  {len(found):,} pairs, {of:.1f} negatives a query -> {out}")
    return None


def _read(source: str, *, split: str | None, sentences: int, seed: int) -> Pairs:
    """The pairs of a source."""
    from lexent.evaluation.collections import is_collection
    from lexent.training.pair_sources import collection_pairs, title_pairs
    from lexent.training.pairs import Pairs

    if Path(source).suffix == ".npz":
        pairs = Pairs.load(Path(source))
    elif is_collection(source):
        pairs = collection_pairs(source, split=split)
    else:
        pairs = title_pairs(source, sentences=sentences, seed=seed)
    say(f"found    {len(pairs):,} pairs in {source}")
    return pairs


def _with_negatives(
    parts: Sequence[Pairs], miners: Sequence[str], *, encoder: Encoder, meter: Meter, keep: Path | None
) -> Pairs:
    """One set of pairs, each source with negatives of its own documents.

    keep: a folder in which they are found again, so that a run that goes on need not look for them once more.
    """
    from lexent.artifact import disk_errors
    from lexent.training.hard_negatives import mined
    from lexent.training.pairs import Pairs

    digest = Pairs.join(parts).digest
    path = keep / f"pairs-{digest}-{'-'.join(miners) or 'none'}.npz" if keep is not None else None
    if path is not None and path.exists():
        return Pairs.load(path)

    def of_part(place: int) -> Pairs:
        def report(share: float) -> None:
            meter.update("negatives", (place + share) / len(parts), 1.0)

        return mined(parts[place], miners, encoder=encoder, progress=report)

    found = Pairs.join([of_part(place) for place in range(len(parts))])
    if path is not None:
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        found.save(path)
    return found
