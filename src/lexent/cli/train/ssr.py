"""lexent train --recipe ssr: its options, and the pairs that they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli.console import say
from lexent.cli.option_groups import Settings, options_of, settings_group
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.cli.progress import Meter
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.training.pairs import Pairs
    from lexent.training.ssr.config import RetrievalConfig

PANEL = "With --recipe ssr or uhd: learning from pairs"
_FILE = "training/ssr/config.py"


def _option(flag: str, help: str, **more: Any) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(flag, help=help, rich_help_panel=PANEL, show_default=False, **more)
    return found


PairSources = Annotated[
    list[str] | None,
    _option(
        "--pairs",
        "Queries with documents that answer them: a collection (its train split), files whose texts have titles (title "
        "and text make a pair), or a file of --prepare. Can be given several times. Default: the titles of TEXTS.",
        metavar="COLLECTION_OR_FILE",
    ),
]
Split = Annotated[
    str | None,
    _option(
        "--split",
        "The judgements of collections to learn from; a test split is refused. Default: those that an ir_datasets id "
        "names, else train.",
    ),
]
Asking = Annotated[
    int | None,
    _option("--asking", "Sentences of each titled text that ask for the rest of it, beside its title. Default: 0."),
]
Negatives = Annotated[
    str | None,
    _option(
        "--negatives",
        "How documents that only look right are found: bm25 (by words), dense (by the encoder's vectors), both with a "
        "comma between, or none. Default: bm25.",
    ),
]
Prepare = Annotated[
    bool,
    _option(
        "--prepare",
        "Only write the pairs with their negatives, to the .npz file that --out names: another machine can train on it "
        "(--pairs FILE.npz), and needs no search engine for that.",
    ),
]
Start = Annotated[
    str | None,
    _option(
        "--start",
        "Begin with this lexicon, in place of passes over the texts.",
        metavar="NAME_OR_DIR",
    ),
]
Unfreeze = Annotated[
    bool | None,
    _option(
        "--unfreeze/--freeze",
        "Train the encoder too, and save it beside the lexicon, in the folder DIR-encoder. Default: --freeze, and "
        "--unfreeze with --paper.",
    ),
]
Paper = Annotated[
    bool,
    _option(
        "--paper",
        "Take the settings of the recipe's paper, where it gives them and others are not given. The run begins with a "
        "list of what differs all the same; it is also in docs/train.md.",
    ),
]

PAIRS = options_of(
    pairs=PairSources, split=Split, asking=Asking, negatives=Negatives, prepare=Prepare, paper=Paper
) + settings_group(_FILE, "RetrievalConfig", ("steps", "epochs", "hard", "encoder_lr", "temperature"), panel=PANEL)
"""Where pairs come from, and settings of all training on pairs."""
SETTINGS = settings_group(
    _FILE,
    "RetrievalConfig",
    (
        "whole", "whole_d_sae", "whole_k", "k_from", "gains", "idf", "function_words", "emphasis", "wide", "alpha",
        "beta", "gamma", "teacher", "whole_temperature",
    ),
    panel=PANEL,
    flags={"whole_d_sae": "--whole-latents"},
) + options_of(start=Start, freeze=Unfreeze, convert={"freeze": lambda unfreeze: not unfreeze})  # fmt: skip
"""Settings of codes that are compared token by token."""
OF_RUN = ("pairs", "split", "asking", "negatives", "prepare", "paper")
"""Options of PAIRS that are no settings of the training itself."""


def read_pairs(sources: Sequence[str], *, split: str | None, asking: int, seed: int) -> list[Pairs]:
    """The pairs of each source."""
    from lexent.evaluation.collections import is_collection
    from lexent.training.pair_sources import collection_pairs, title_pairs
    from lexent.training.pairs import Pairs

    found = []
    for source in sources:
        path = Path(source)
        if path.suffix == ".npz":
            pairs = Pairs.load(path)
        elif is_collection(source):
            pairs = collection_pairs(source, split=split)
        else:
            pairs = title_pairs(source, sentences=asking, seed=seed)
        say(f"found    {len(pairs):,} pairs in {source}")
        found.append(pairs)
    return found


def miners(given: str) -> list[str]:
    """The ways to find negatives that a comma-separated list names."""
    return [] if given.strip() == "none" else [part.strip() for part in given.split(",") if part.strip()]


def with_negatives(parts: Sequence[Pairs], given: str, *, encoder: Encoder, meter: Meter, keep: Path | None) -> Pairs:
    """One set of pairs, each source with negatives of its own documents.

    keep: a folder in which they are found again, so that a run that goes on need not look for them once more.
    """
    from lexent.artifact import disk_errors
    from lexent.training.hard_negatives import mined
    from lexent.training.pairs import Pairs

    names = miners(given)
    before = Pairs.join(parts)
    path = keep / f"pairs-{before.digest}-{'-'.join(names) or 'none'}.npz" if keep is not None else None
    if path is not None and path.exists():
        return Pairs.load(path)

    def report(place: int, share: float) -> None:
        meter.update("negatives", (place + share) / len(parts), 1.0)

    found = Pairs.join(
        [
            mined(pairs, names, encoder=encoder, progress=lambda share, at=place: report(at, share))  # type: ignore[misc]
            for place, pairs in enumerate(parts)
        ]
    )
    if path is not None:
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        found.save(path)
    return found


def settings_of(given: Settings, *, paper: bool) -> RetrievalConfig:
    """The settings that were given, the others ours or the paper's."""
    from lexent.training.ssr.config import RetrievalConfig

    return RetrievalConfig.paper(**given) if paper else RetrievalConfig(**given)


def gathered(
    texts: Sequence[Path],
    *,
    out: Path,
    encoder: str | None,
    pairs: Settings,
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
    parts = read_pairs(sources, split=pairs.get("split"), asking=pairs.get("asking", 0), seed=seed)
    model = load_encoder(encoder)
    keep = None if prepare else out.with_name(out.name + ".training")
    found = with_negatives(parts, pairs.get("negatives", "bm25"), encoder=model, meter=meter, keep=keep)
    if not prepare:
        return model, found
    found.save(out)
    of = float((found.negatives >= 0).sum(axis=1).mean())
    say(f"written  {len(found):,} pairs, {of:.1f} negatives a query -> {out}")
    return None


def run(
    held: Sequence[str],
    pairs: Pairs,
    *,
    out: Path,
    encoder: Encoder,
    config: RetrievalConfig,
    start: str | None,
    sentences: int,
    bits: int,
    overwrite: bool,
    meter: Meter,
) -> Lexicon:
    """Train with these settings and show progress."""
    from lexent.lexicon import load as load_lexicon
    from lexent.training.ssr.train import train_ssr

    return train_ssr(
        held,
        pairs,
        out=out,
        encoder=encoder,
        config=config,
        start=load_lexicon(start) if start is not None else None,
        sentences=sentences,
        bits=8 if bits == 8 else 32,
        overwrite=overwrite,
        progress=lambda stage, done, detail: meter.update(stage, done, 1.0, detail),
    )
