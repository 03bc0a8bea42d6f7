"""lexent train: a lexicon of your own, for any encoder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Annotated, Literal

import typer

from lexent.cli import options
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.failures import INTERRUPTED, error_line
from lexent.cli.fields import help_of
from lexent.cli.progress import Meter
from lexent.errors import InputError

_FILE = "coders/training.py"
Level = Literal["tokens", "pooled"]
Architecture = Literal["topk", "batchtopk"]


def _setting(flag: str, field: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(
        flag, help=help_of(_FILE, "TrainConfig", field, default=True), show_default=False
    )
    return found


def train(
    texts: Annotated[
        list[Path], typer.Argument(metavar="TEXTS", help="Files or folders to learn from, of any kind `index` reads.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the new lexicon.")],
    encoder: options.EncoderName = None,
    latents: Annotated[int | None, _setting("--latents", "d_sae")] = None,
    k: Annotated[int | None, _setting("--k", "k")] = None,
    passes: Annotated[int, typer.Option("--passes", help="How often every text is seen.")] = 3,
    sentences: Annotated[
        int, typer.Option("--sentences", help="Learn from up to this many sentences of each text, too.")
    ] = 4,
    batch: Annotated[int | None, _setting("--batch", "batch")] = None,
    lr: Annotated[float | None, _setting("--lr", "lr")] = None,
    seed: Annotated[int | None, _setting("--seed", "seed")] = None,
    level: Annotated[Level, typer.Option("--level", help="Learn from a state per token, or one per text.")] = "tokens",
    bits: Annotated[int, typer.Option("--bits", help="Precision of the stored matrices: 32, or 8 for a quarter.")] = 32,
    sample: Annotated[
        int | None,
        typer.Option("--sample", help="Learn from this many texts only, drawn evenly; all where not given."),
    ] = None,
    architecture: Annotated[
        Architecture | None,
        typer.Option(
            "--architecture",
            help="topk: k concepts for each state. batchtopk: k on average, as many as a state needs. By default "
            "topk for tokens and batchtopk for pooled states.",
            show_default=False,
        ),
    ] = None,
    tied: Annotated[
        bool | None,
        typer.Option(
            "--tied/--no-tied",
            help="One matrix for both directions, half the size, or one for each. By default tied for tokens only.",
            show_default=False,
        ),
    ] = None,
    text: options.TextColumn = None,
    title: options.TitleColumn = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Train a lexicon: learn concepts from an encoder's states on your texts, and name them.

    A run that was interrupted goes on where it was when the same command is typed again.
    """
    from lexent.corpus import texts as read_texts

    if bits not in (8, 32):
        raise InputError(f"bits is {bits}; allowed: 8, 32")
    start = perf_counter()
    given = read_texts(texts, text=text, title=title)
    count = given.count()
    held = sampled(given, sample, count=count) if sample is not None else list(given)
    of = f" of {count:,}" if count and count != len(held) else ""
    say(f"found    {len(held):,}{of} texts")

    from lexent.coders.training import TrainConfig
    from lexent.encoders import DEFAULT
    from lexent.lexicon.train import train as run

    settings: dict[str, object] = {"d_sae": latents, "k": k, "batch": batch, "lr": lr, "seed": seed}
    settings |= {"tied": tied, "architecture": architecture}
    config = TrainConfig.for_level(level, **{name: value for name, value in settings.items() if value is not None})
    try:
        with Meter("") as meter:
            lexicon = run(
                held,
                out=out,
                encoder=encoder or DEFAULT,
                level=level,
                config=config,
                passes=passes,
                sentences=sentences,
                bits=8 if bits == 8 else 32,
                overwrite=overwrite,
                progress=lambda stage, done, detail: meter.update(stage, done, 1.0, detail),
            )
    except KeyboardInterrupt:
        error_line("interrupted; type the same command again to go on from the last checkpoint")
        raise typer.Exit(INTERRUPTED) from None
    seconds = perf_counter() - start
    if json:
        facts = {"path": str(out), "name": lexicon.name, "concepts": lexicon.size, "hash": lexicon.hash}
        show_json({**facts, "training": lexicon.info.training, "seconds": round(seconds, 3)})
        return
    show(f"trained  {lexicon.size:,} named concepts for {lexicon.encoder_id}, {seconds:,.0f} s -> {out}")
    with_encoder = ["--encoder", encoder] if encoder else []
    say_next(
        command("lexent", "concepts", "list", "--lexicon", out),
        command("lexent", "index", texts[0], *with_encoder, "--lexicon", out),
    )


def sampled(texts: Iterable[str], size: int, *, count: int | None) -> list[str]:
    """`size` texts, drawn evenly from beginning to end: the same ones each time, so that a run can go on."""
    if size < 1:
        raise InputError(f"sample is {size}; allowed: 1 or more")
    held = list(texts) if count is None else texts
    total = len(held) if isinstance(held, list) else (count or 0)
    if total <= size:
        return list(held)
    return [text for place, text in enumerate(held) if place * size // total != (place - 1) * size // total]
