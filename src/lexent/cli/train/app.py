"""lexent train: a lexicon of your own, for any encoder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, TypeVar

import typer

from lexent.cli import options
from lexent.cli.console import Output, command, say
from lexent.cli.failures import INTERRUPTED, error_line
from lexent.cli.option_groups import OptionGroup, Settings, option_group, settings_group
from lexent.cli.progress import Meter
from lexent.cli.reading_report import say_problems
from lexent.cli.train import from_pairs
from lexent.errors import InputError

Level = Literal["tokens", "pooled"]
T = TypeVar("T")

SETTINGS = settings_group(
    "training/reconstruction/trainer.py",
    "TrainConfig",
    ("d_sae", "k", "k_from", "nested_k", "batch", "lr", "seed", "tied", "architecture"),
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
class Run:
    """What is trained, on which texts, how often, and in which form it is stored."""

    out: Annotated[Path, typer.Option("-o", metavar="DIR")]
    """The folder of the new lexicon."""
    encoder: options.EncoderName = None
    recipe: str | None = None
    """The recipe to train for. ssr and uhd learn from pairs of queries and documents; of others the level is taken."""
    passes: int | None = None
    """How often every text is seen. [default: 3; 2 before the pairs of ssr, none with --paper]"""
    sentences: int = 4
    """Learn from up to this many sentences of each text, too."""
    balance: float | None = None
    """Draw each of several TEXTS by this power of its size, none of them more than a fifth: 0 alike, 1 as they are."""
    quote: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    """Quote examples of concepts from these of TEXTS only, because of their licences. Can be given several times.
    [default: from all]"""
    level: Level | None = None
    """Learn from a state per token, or one per text. [default: tokens]"""
    sample: int | None = None
    """Learn from this many texts only, drawn evenly. [default: all]"""
    bits: int = 32
    """Precision of the stored matrices: 32, or 8 for a quarter."""
    overwrite: options.Overwrite = False


def train(
    texts: Annotated[
        list[Path], typer.Argument(metavar="TEXTS", help="Files or folders to learn from, of any kind `index` reads.")
    ],
    run: Run,
    settings: Annotated[Settings, SETTINGS],
    pairs: Annotated[Settings, from_pairs.PAIRS],
    ssr: Annotated[Settings, from_pairs.SSR],
    uhd: Annotated[Settings, from_pairs.UHD],
    reading: options.TextReading,
) -> Output | None:
    """Train a lexicon: learn concepts from an encoder's states on your texts, and name them.

    With --recipe ssr its codes also learn from pairs of queries and documents, to be compared token by token; with
    --recipe uhd they learn from pairs alone, together with the encoder. A run that was interrupted goes on where it
    was when the same command is typed again.
    """
    from lexent import recipes

    out, recipe = run.out, run.recipe
    if run.bits not in (8, 32):
        raise InputError(f"bits is {run.bits}; allowed: 8, 32")
    chosen = recipes.get(recipe) if recipe is not None else None
    with_ssr = chosen is not None and chosen.match == "maxsim"
    with_uhd = chosen is not None and chosen.winners
    _refuse_others(run, settings, pairs, ssr, uhd, with_ssr=with_ssr, with_uhd=with_uhd)
    level = run.level
    if chosen is not None and not (with_ssr or with_uhd):
        if level not in (None, chosen.level):
            raise InputError(f"--recipe {recipe} reads {chosen.level} states; leave --level {level} out")
        level = chosen.level
    balance = 1.0 if run.balance is None else run.balance
    begin = perf_counter()
    unknown = [path for path in run.quote or () if path not in texts]
    if unknown:
        raise InputError(f"--quote {unknown[0]} is none of TEXTS; give one of them as it is written there")
    held, domains = texts_by_domain(texts, reading, sample=run.sample)
    may_quote = {texts.index(path) for path in run.quote or ()}
    quotable = {text for text, domain in zip(held, domains, strict=True) if domain in may_quote} if may_quote else None
    try:
        with Meter("") as meter:
            given: dict[str, Any] = {
                "out": out,
                "bits": run.bits,
                "overwrite": run.overwrite,
                "quotable": quotable,
                "progress": lambda stage, done, detail: meter.update(stage, done, 1.0, detail),
            }
            if with_ssr or with_uhd:
                config = _pair_config({**settings, **pairs, **ssr, **uhd}, run.passes, with_ssr=with_ssr)
                found = from_pairs.gathered(
                    texts, pairs, out=out, encoder=run.encoder, seed=config.seed, overwrite=run.overwrite, meter=meter
                )
                if found is None:
                    return None
                given |= {"encoder": found[0], "pairs": found[1], "config": config}
            if with_ssr:
                from lexent.lexicon import load
                from lexent.training.ssr.train import train_ssr

                start = load(ssr["start"]) if "start" in ssr else None
                lexicon = train_ssr(
                    held, start=start, sentences=run.sentences, balance=balance, domains=domains, **given
                )
            elif with_uhd:
                from lexent.training.uhd.train import train_uhd

                lexicon = train_uhd(held, joint=uhd.get("joint", False), **given)
            else:
                from lexent.encoders import DEFAULT
                from lexent.training.reconstruction import train as reconstruction
                from lexent.training.reconstruction.trainer import TrainConfig

                lexicon = reconstruction.train(
                    held,
                    encoder=run.encoder or DEFAULT,
                    level=level or "tokens",
                    config=TrainConfig.for_level(level or "tokens", **settings),
                    passes=3 if run.passes is None else run.passes,
                    sentences=run.sentences,
                    balance=balance,
                    domains=domains,
                    **given,
                )
    except KeyboardInterrupt:
        error_line(interrupted(out))
        raise typer.Exit(INTERRUPTED) from None
    seconds = perf_counter() - begin
    facts = {"path": str(out), "name": lexicon.name, "concepts": lexicon.size, "hash": lexicon.hash}
    changed = with_ssr and not config.freeze
    used = lexicon.encoder_id if changed else None if with_uhd else run.encoder
    more = [*(["--encoder", used] if used else []), *(["--recipe", recipe] if recipe is not None else [])]
    return Output(
        {**facts, "training": lexicon.info.training, "seconds": round(seconds, 3)},
        [f"trained  {lexicon.size:,} named concepts for {lexicon.encoder_id}, {seconds:,.0f} s -> {out}"],
        [
            command("lexent", "concepts", "list", "--lexicon", out),
            command("lexent", "index", texts[0], *more, "--lexicon", out),
        ],
    )


def _pair_config(given: Settings, passes: int | None, *, with_ssr: bool) -> Any:
    """The settings of training on pairs: those that were given, the others ours or the paper's."""
    from lexent.training.ssr import config as ssr
    from lexent.training.uhd import config as uhd

    own = {name: value for name, value in given.items() if name not in from_pairs.RUN_OPTIONS}
    if with_ssr and passes is not None:
        own["pretrain"] = passes
    kind: Any = ssr.RetrievalConfig if with_ssr else uhd.WinnerConfig
    if not given.get("paper", False):
        return kind(**own)
    say("paper    what differs from it:")
    for each in ssr.DIFFERS if with_ssr else uhd.DIFFERS:
        say(f"         {each}")
    return kind.paper(**own)


def interrupted(out: Path) -> str:
    """What is left of a run that was interrupted. A checkpoint is written every two minutes, and at the end."""
    from lexent.training.loop import CHECKPOINT

    kept = [path for path in out.with_name(f"{out.name}.training").rglob(CHECKPOINT) if path.is_file()]
    if kept:
        return "interrupted; type the same command again to go on from the last checkpoint"
    return "interrupted before the first checkpoint, so no training is kept; the same command starts from the beginning"


def _refuse_others(
    run: Run, settings: Settings, pairs: Settings, ssr: Settings, uhd: Settings, *, with_ssr: bool, with_uhd: bool
) -> None:
    """Refuse options that this kind of training has no use for."""
    decides, useless = f"--recipe {run.recipe} decides it", f"--recipe {run.recipe} has no use for it"
    if with_ssr or with_uhd:
        if run.level is not None:
            raise InputError(f"--level was given, but {decides}")
        if run.balance is not None and not with_ssr:
            raise InputError(f"--balance was given, but {useless}")
        _refuse([name for name in settings if name == "architecture"], SETTINGS, decides)
        _refuse([name for name in settings if name == "nested_k"], SETTINGS, useless)
        if not with_ssr:
            if run.passes is not None:
                raise InputError(f"--passes was given, but {useless}")
            _refuse([name for name in settings if name in ("tied", "k_from")], SETTINGS, useless)
    else:
        _refuse(pairs, from_pairs.PAIRS, "it is of learning from pairs: add --recipe ssr or uhd")
    if not with_ssr:
        _refuse(ssr, from_pairs.SSR, "it is of learning from pairs token by token: add --recipe ssr")
    if not with_uhd:
        _refuse(uhd, from_pairs.UHD, "it is of winners in buckets: add --recipe uhd")


def _refuse(names: Iterable[str], group: OptionGroup, why: str) -> None:
    for name in names:
        raise InputError(f"{group.flags[name]} was given, but {why}")


def texts_of(
    paths: list[Path], reading: options.TextReading, *, sample: int | None, distinct: bool = False
) -> list[str]:
    """Texts from files or folders; `sample` of them where there are more. distinct: none of them twice or empty."""
    return texts_by_domain(paths, reading, sample=sample, distinct=distinct)[0]


def texts_by_domain(
    paths: list[Path], reading: options.TextReading, *, sample: int | None, distinct: bool = False
) -> tuple[list[str], list[int]]:
    """As `texts_of`, and the number of the file or folder that each text is from."""
    from lexent.corpus import texts as read

    given = read(paths, **vars(reading))
    count = given.count()
    held = list(given.by_source()) if sample is None else sampled(given.by_source(), sample, count=count)
    if distinct:
        held = [(source, text) for text, source in {text: source for source, text in held if text.strip()}.items()]
    of = f" of {count:,}" if count and count != len(held) else ""
    say(f"found    {len(held):,}{of} texts")
    for corpus in given.corpora:
        if corpus.unread:
            say(f"not read {corpus.unread}, in {corpus.name}")
        say_problems(corpus.problems)
    return [text for _, text in held], [source for source, _ in held]


def sampled(texts: Iterable[T], size: int, *, count: int | None) -> list[T]:
    """`size` texts, drawn evenly from beginning to end: the same ones each time, so that a run can go on."""
    if size < 1:
        raise InputError(f"sample is {size}; allowed: 1 or more")
    held = list(texts) if count is None else texts
    total = len(held) if isinstance(held, list) else (count or 0)
    if total <= size:
        return list(held)
    return [text for place, text in enumerate(held) if place * size // total != (place - 1) * size // total]
