"""lexent train --recipe uhd: its options, and its run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexent.cli import options
from lexent.cli.fields import help_of
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.cli.progress import Meter
    from lexent.coders.pairs import Pairs
    from lexent.coders.winner_config import WinnerConfig
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

PANEL = "With --recipe uhd: winners in buckets"
_FILE = "coders/winner_config.py"


def _option(flag: str, help: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(flag, help=help, rich_help_panel=PANEL, show_default=False)
    return found


def _setting(flag: str, field: str) -> typer.models.OptionInfo:
    return _option(flag, help_of(_FILE, "WinnerConfig", field, default=True))


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
Shallow = Annotated[bool | None, _setting("--shallow", "shallow")]
Rank = Annotated[
    int | None,
    _option(
        "--rank",
        "Rank of the change of each of the encoder's matrices; 0 leaves it as it is, -1 trains all of it. Default: 16.",
    ),
]
Mask = Annotated[float | None, _setting("--mask", "mask")]
Boost = Annotated[float | None, _setting("--boost", "boost")]
Loss = Annotated[str | None, _setting("--loss", "loss")]
Binary = Annotated[float | None, _setting("--binary", "binary")]


def settings_of(given: dict[str, Any], *, layers: str | None, rank: int | None, paper: bool) -> WinnerConfig:
    """The settings that were given, the others ours or the paper's."""
    from lexent.coders.winner_config import WinnerConfig

    found = {name: value for name, value in given.items() if value is not None}
    if layers is not None:
        try:
            found["layers"] = tuple(int(name) for name in options.names_of(layers))
        except ValueError as error:
            raise InputError(f'layers are "{layers}"; allowed: whole numbers with commas between: 4,6') from error
    if rank is not None:
        found["rank"] = None if rank < 0 else rank
    return WinnerConfig.paper(**found) if paper else WinnerConfig(**found)


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
    from lexent.lexicon.uhd import train_uhd

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
