"""lexent train --recipe ssr: its options, and the pairs that they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli.console import say
from lexent.cli.fields import help_of
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.cli.progress import Meter
    from lexent.coders.pairs import Pairs
    from lexent.coders.retrieval_config import RetrievalConfig
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

PANEL = "With --recipe ssr or uhd: learning from pairs"
_FILE = "coders/retrieval_config.py"


def _option(flag: str, help: str, **more: Any) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(flag, help=help, rich_help_panel=PANEL, show_default=False, **more)
    return found


def _setting(flag: str, field: str) -> typer.models.OptionInfo:
    return _option(flag, help_of(_FILE, "RetrievalConfig", field, default=True))


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
    str, _option("--split", "The judgements of collections to learn from; a test split is refused. Default: train.")
]
Asking = Annotated[
    int, _option("--asking", "Sentences of each titled text that ask for the rest of it, beside its title. Default: 0.")
]
Negatives = Annotated[
    str,
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
Whole = Annotated[bool | None, _setting("--whole/--no-whole", "whole")]
WholeLatents = Annotated[int | None, _setting("--whole-latents", "whole_d_sae")]
WholeK = Annotated[int | None, _setting("--whole-k", "whole_k")]
Unfreeze = Annotated[
    bool,
    _option("--unfreeze", "Train the encoder too, and save it beside the lexicon, in the folder DIR-encoder."),
]
EncoderLr = Annotated[float | None, _setting("--encoder-lr", "encoder_lr")]
Steps = Annotated[int | None, _setting("--steps", "steps")]
Epochs = Annotated[float | None, _setting("--epochs", "epochs")]
Hard = Annotated[int | None, _setting("--hard", "hard")]
KFrom = Annotated[int | None, _setting("--k-from", "k_from")]
Paper = Annotated[
    bool,
    _option(
        "--paper",
        "Take the settings of the paper: tokens and latents of a query count alike, gamma 0.05, one hard negative.",
    ),
]
Gains = Annotated[bool | None, _setting("--gains/--no-gains", "gains")]
Idf = Annotated[float | None, _setting("--idf", "idf")]
FunctionWords = Annotated[float | None, _setting("--function-words", "function_words")]
Emphasis = Annotated[float | None, _setting("--emphasis", "emphasis")]
Wide = Annotated[float | None, _setting("--wide", "wide")]
Alpha = Annotated[float | None, _setting("--alpha", "alpha")]
Beta = Annotated[float | None, _setting("--beta", "beta")]
Gamma = Annotated[float | None, _setting("--gamma", "gamma")]
Teacher = Annotated[float | None, _setting("--teacher", "teacher")]
Temperature = Annotated[float | None, _setting("--temperature", "temperature")]
WholeTemperature = Annotated[float | None, _setting("--whole-temperature", "whole_temperature")]


def read_pairs(sources: Sequence[str], *, split: str, asking: int, seed: int) -> list[Pairs]:
    """The pairs of each source."""
    from lexent.coders.pairs import Pairs
    from lexent.corpus.pairs import collection_pairs, title_pairs

    found = []
    for source in sources:
        path = Path(source)
        if path.suffix == ".npz":
            pairs = Pairs.load(path)
        elif source.startswith("irds:") or (path / "qrels").is_dir():
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
    from lexent.coders.pairs import Pairs
    from lexent.search.negatives import mined

    names = miners(given)
    before = Pairs.join(parts)
    path = keep / f"pairs-{before.digest}-{'-'.join(names) or 'none'}.npz" if keep is not None else None
    if path is not None and path.exists():
        return Pairs.load(path)

    def told(place: int, share: float) -> None:
        meter.update("negatives", (place + share) / len(parts), 1.0)

    found = Pairs.join(
        [
            mined(pairs, names, encoder=encoder, progress=lambda share, at=place: told(at, share))  # type: ignore[misc]
            for place, pairs in enumerate(parts)
        ]
    )
    if path is not None:
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        found.save(path)
    return found


def settings_of(given: dict[str, Any], *, paper: bool) -> RetrievalConfig:
    """The settings that were given, the others ours or the paper's."""
    from lexent.coders.retrieval_config import RetrievalConfig

    kept = {name: value for name, value in given.items() if value is not None}
    return RetrievalConfig.paper(**kept) if paper else RetrievalConfig(**kept)


def gathered(
    texts: Sequence[Path],
    *,
    out: Path,
    encoder: str | None,
    sources: Sequence[str],
    split: str,
    asking: int,
    negatives: str,
    prepare: bool,
    seed: int,
    overwrite: bool,
    meter: Meter,
) -> tuple[Encoder, Pairs] | None:
    """The encoder and the pairs with their negatives; None where they were only to be written to a file."""
    from lexent.artifact import check_target
    from lexent.encoders import DEFAULT, load

    if not prepare:
        check_target(out, kind="lexicon", overwrite=overwrite)  # before hours of work
    elif out.suffix != ".npz":
        raise InputError(f'"{out}" is no name for a file of pairs; end it with .npz: --prepare --out pairs.npz')
    elif out.exists() and not overwrite:
        raise InputError(f'"{out}" exists; replace it with --overwrite, or give another name')
    parts = read_pairs(sources or [str(path) for path in texts], split=split, asking=asking, seed=seed)
    model = load(encoder or DEFAULT)
    keep = None if prepare else out.with_name(out.name + ".training")
    pairs = with_negatives(parts, negatives, encoder=model, meter=meter, keep=keep)
    if not prepare:
        return model, pairs
    pairs.save(out)
    of = float((pairs.negatives >= 0).sum(axis=1).mean())
    say(f"written  {len(pairs):,} pairs, {of:.1f} negatives a query -> {out}")
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
    from lexent.lexicon import load as load_lexicon
    from lexent.lexicon.ssr import train_ssr

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
