"""lexent train: a lexicon of your own, for any encoder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import typer

from lexent.cli import options
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.failures import INTERRUPTED, error_line
from lexent.cli.option_groups import OptionGroup, Settings, option_group, settings_group, with_option_groups
from lexent.cli.progress import Meter
from lexent.cli.train import ssr, uhd
from lexent.errors import InputError

_FILE = "training/reconstruction/trainer.py"
Level = Literal["tokens", "pooled"]

SETTINGS = settings_group(
    _FILE,
    "TrainConfig",
    ("d_sae", "k", "batch", "lr", "seed", "tied", "architecture"),
    flags={"d_sae": "--latents", "k": "--sae-k"},
    more_help={
        "d_sae": "With --recipe ssr: 16,384; uhd: 81,920 in each bucket.",
        "k": "With --recipe ssr: 32; uhd: 80.",
        "batch": "With --recipe ssr or uhd: pairs a step, 64 and 32.",
        "tied": "For pooled states: no.",
        "architecture": "For pooled states: batchtopk.",
    },
)


@option_group
@dataclass(frozen=True, slots=True)
class Reading:
    """Which texts are learned from, how often, and in which form."""

    passes: Annotated[
        int | None,
        typer.Option(
            "--passes",
            help="How often every text is seen. Default: 3, and 2 before the pairs of ssr, or none with --paper.",
        ),
    ] = None
    sentences: Annotated[
        int, typer.Option("--sentences", help="Learn from up to this many sentences of each text, too.")
    ] = 4
    level: Annotated[
        Level | None,
        typer.Option(
            "--level", help="Learn from a state per token, or one per text. Default: tokens.", show_default=False
        ),
    ] = None
    sample: Annotated[
        int | None,
        typer.Option("--sample", help="Learn from this many texts only, drawn evenly; all where not given."),
    ] = None
    bits: Annotated[int, typer.Option("--bits", help="Precision of the stored matrices: 32, or 8 for a quarter.")] = 32


@with_option_groups
def train(
    *,
    texts: Annotated[
        list[Path], typer.Argument(metavar="TEXTS", help="Files or folders to learn from, of any kind `index` reads.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the new lexicon.")],
    encoder: options.EncoderName = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            help="The recipe to train for. ssr and uhd learn from pairs of queries and documents; of others the "
            "level is taken.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[Settings, SETTINGS],
    reading: Reading,
    pairs: Annotated[Settings, ssr.PAIRS],
    ssr_settings: Annotated[Settings, ssr.SETTINGS],
    uhd_settings: Annotated[Settings, uhd.SETTINGS],
    columns: options.TextColumns,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Train a lexicon: learn concepts from an encoder's states on your texts, and name them.

    With --recipe ssr its codes also learn from pairs of queries and documents, to be compared token by token; with
    --recipe uhd they learn from pairs alone, together with the encoder. A run that was interrupted goes on where it
    was when the same command is typed again.
    """
    from lexent import recipes
    from lexent.corpus import texts as read_texts

    if reading.bits not in (8, 32):
        raise InputError(f"bits is {reading.bits}; allowed: 8, 32")
    chosen = recipes.get(recipe) if recipe is not None else None
    with_ssr = chosen is not None and chosen.match == "maxsim"
    with_uhd = chosen is not None and chosen.winners
    if with_ssr or with_uhd:
        _refuse_of_states(settings, reading, recipe, passes=with_ssr)
    else:
        _refuse(pairs, ssr.PAIRS, "it is of learning from pairs: add --recipe ssr or uhd")
    if not with_ssr:
        _refuse(ssr_settings, ssr.SETTINGS, "it is of learning from pairs token by token: add --recipe ssr")
    if not with_uhd:
        _refuse(uhd_settings, uhd.SETTINGS, "it is of winners in buckets: add --recipe uhd")
    level = reading.level
    if chosen is not None and not (with_ssr or with_uhd):
        if level not in (None, chosen.level):
            raise InputError(f"--recipe {recipe} reads {chosen.level} states; leave --level {level} out")
        level = chosen.level
    begin = perf_counter()
    given = read_texts(texts, text=columns.text, title=columns.title)
    count = given.count()
    held = sampled(given, reading.sample, count=count) if reading.sample is not None else list(given)
    of = f" of {count:,}" if count and count != len(held) else ""
    say(f"found    {len(held):,}{of} texts")

    from lexent.encoders import DEFAULT
    from lexent.training.reconstruction.train import train as run
    from lexent.training.reconstruction.trainer import TrainConfig

    try:
        with Meter("") as meter:
            if with_ssr or with_uhd:
                paper = pairs.get("paper", False)
                learned = {**settings, **{name: pairs[name] for name in pairs if name not in ssr.OF_RUN}}
                config: Any
                if with_ssr:
                    first = {} if reading.passes is None else {"pretrain": reading.passes}
                    own = {name: value for name, value in ssr_settings.items() if name != "start"}
                    config = ssr.settings_of({**learned, **first, **own}, paper=paper)
                else:
                    own = {name: value for name, value in uhd_settings.items() if name != "joint"}
                    config = uhd.settings_of({**learned, **own}, paper=paper)
                if paper:
                    from lexent.training.ssr import config as ssr_config
                    from lexent.training.uhd import config as uhd_config

                    differs = ssr_config.DIFFERS if with_ssr else uhd_config.DIFFERS
                    say("paper    what differs from it:")
                    for each in differs:
                        say(f"         {each}")
                gathered = ssr.gathered(
                    texts, out=out, encoder=encoder, pairs=pairs, seed=config.seed, overwrite=overwrite, meter=meter
                )
                if gathered is None:
                    return
                model, known = gathered
                common: dict[str, Any] = {"out": out, "encoder": model, "config": config, "bits": reading.bits}
                common |= {"overwrite": overwrite, "meter": meter}
                if with_ssr:
                    lexicon = ssr.run(
                        held, known, start=ssr_settings.get("start"), sentences=reading.sentences, **common
                    )
                else:
                    lexicon = uhd.run(held, known, joint=uhd_settings.get("joint", False), **common)
            else:
                lexicon = run(
                    held,
                    out=out,
                    encoder=encoder or DEFAULT,
                    level=level or "tokens",
                    config=TrainConfig.for_level(level or "tokens", **settings),
                    passes=3 if reading.passes is None else reading.passes,
                    sentences=reading.sentences,
                    bits=8 if reading.bits == 8 else 32,
                    overwrite=overwrite,
                    progress=lambda stage, done, detail: meter.update(stage, done, 1.0, detail),
                )
    except KeyboardInterrupt:
        error_line(interrupted(out))
        raise typer.Exit(INTERRUPTED) from None
    seconds = perf_counter() - begin
    if json:
        facts = {"path": str(out), "name": lexicon.name, "concepts": lexicon.size, "hash": lexicon.hash}
        show_json({**facts, "training": lexicon.info.training, "seconds": round(seconds, 3)})
        return
    show(f"trained  {lexicon.size:,} named concepts for {lexicon.encoder_id}, {seconds:,.0f} s -> {out}")
    changed = with_ssr and not config.freeze
    used = lexicon.encoder_id if changed else None if with_uhd else encoder
    more = [*(["--encoder", used] if used else []), *(["--recipe", recipe] if recipe is not None else [])]
    say_next(
        command("lexent", "concepts", "list", "--lexicon", out),
        command("lexent", "index", texts[0], *more, "--lexicon", out),
    )


def interrupted(out: Path) -> str:
    """What is left of a run that was interrupted. A checkpoint is written every two minutes, and at the end."""
    from lexent.training.checkpoint import CHECKPOINT

    kept = [path for path in out.with_name(f"{out.name}.training").rglob(CHECKPOINT) if path.is_file()]
    if kept:
        return "interrupted; type the same command again to go on from the last checkpoint"
    return "interrupted before the first checkpoint, so no training is kept; the same command starts from the beginning"


def _refuse_of_states(settings: Settings, reading: Reading, recipe: str | None, *, passes: bool) -> None:
    """Refuse options of training on states alone, where pairs are learned from; passes: it passes over texts too."""
    if reading.level is not None:
        raise InputError(f"--level was given, but --recipe {recipe} decides it")
    _refuse(_some(settings, "architecture"), SETTINGS, f"--recipe {recipe} decides it")
    if passes:
        return
    if reading.passes is not None:
        raise InputError(f"--passes was given, but --recipe {recipe} has no use for it")
    _refuse(_some(settings, "tied"), SETTINGS, f"--recipe {recipe} has no use for it")


def _refuse(given: Settings, group: OptionGroup, why: str) -> None:
    """Refuse options that the kind of training has no use for."""
    for name in given:
        raise InputError(f"{group.flags[name]} was given, but {why}")


def _some(given: Settings, *names: str) -> Settings:
    return {name: given[name] for name in names if name in given}


def sampled(texts: Iterable[str], size: int, *, count: int | None) -> list[str]:
    """`size` texts, drawn evenly from beginning to end: the same ones each time, so that a run can go on."""
    if size < 1:
        raise InputError(f"sample is {size}; allowed: 1 or more")
    held = list(texts) if count is None else texts
    total = len(held) if isinstance(held, list) else (count or 0)
    if total <= size:
        return list(held)
    return [text for place, text in enumerate(held) if place * size // total != (place - 1) * size // total]
