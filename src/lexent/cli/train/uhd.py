"""lexent train --recipe uhd: its options, and its run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.option_groups import Settings, options_of, settings_group
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.cli.progress import Meter
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.training.pairs import Pairs
    from lexent.training.uhd.config import WinnerConfig

PANEL = "With --recipe uhd: winners in buckets"
_FILE = "training/uhd/config.py"


def _option(flag: str, help: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(flag, help=help, rich_help_panel=PANEL, show_default=False)
    return found


Layers = Annotated[
    str | None,
    _option(
        "--layers",
        "The encoder's layers that buckets read, one each, with commas between; 1 is the first, -1 the last. Default: "
        "-1, a single bucket.",
    ),
]
Joint = Annotated[
    bool,
    _option("--joint", "Train all buckets at once on one copy of the encoder, not one after the other on one each."),
]
Rank = Annotated[
    int | None,
    _option(
        "--rank",
        "Rank of the change of each of the encoder's matrices; 0 leaves it as it is, -1 trains all of it. Default: 16.",
    ),
]


def _layers(given: str) -> tuple[int, ...]:
    try:
        return tuple(int(name) for name in options.names_of(given))
    except ValueError as error:
        raise InputError(f'layers are "{given}"; allowed: integers with commas between: 4,6') from error


SETTINGS = settings_group(
    _FILE, "WinnerConfig", ("shallow", "mask", "boost", "loss", "binary"), panel=PANEL
) + options_of(
    layers=Layers,
    rank=Rank,
    joint=Joint,
    convert={"layers": _layers, "rank": lambda rank: None if rank < 0 else rank},
)
"""Settings of winners in buckets."""


def settings_of(given: Settings, *, paper: bool) -> WinnerConfig:
    """The settings that were given, the others ours or the paper's."""
    from lexent.training.uhd.config import WinnerConfig

    return WinnerConfig.paper(**given) if paper else WinnerConfig(**given)


def run(
    held: Sequence[str],
    pairs: Pairs,
    *,
    out: Path,
    encoder: Encoder,
    config: WinnerConfig,
    joint: bool,
    bits: int,
    overwrite: bool,
    meter: Meter,
) -> Lexicon:
    """Train with these settings and show progress."""
    from lexent.training.uhd.train import train_uhd

    return train_uhd(
        held,
        pairs,
        out=out,
        encoder=encoder,
        config=config,
        joint=joint,
        bits=8 if bits == 8 else 32,
        overwrite=overwrite,
        progress=lambda stage, done, detail: meter.update(stage, done, 1.0, detail),
    )
