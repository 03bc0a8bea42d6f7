"""lexent train: a lexicon of your own, for any encoder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import typer

from lexent.cli import options
from lexent.cli import train_ssr as ssr
from lexent.cli import train_uhd as uhd
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.failures import INTERRUPTED, error_line
from lexent.cli.fields import help_of
from lexent.cli.progress import Meter
from lexent.errors import InputError

_FILE = "coders/training.py"
Level = Literal["tokens", "pooled"]
Architecture = Literal["topk", "batchtopk"]


def _setting(flag: str, field: str, more: str = "") -> typer.models.OptionInfo:
    told = f"{help_of(_FILE, 'TrainConfig', field, default=True)} {more}".strip()
    found: typer.models.OptionInfo = typer.Option(flag, help=told, show_default=False)
    return found


def train(
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
    latents: Annotated[
        int | None, _setting("--latents", "d_sae", "With --recipe ssr: 16,384; uhd: 81,920 in each bucket.")
    ] = None,
    k: Annotated[int | None, _setting("--k", "k", "With --recipe ssr: 32; uhd: 80.")] = None,
    passes: Annotated[
        int | None,
        typer.Option("--passes", help="How often every text is seen. Default: 3, and 2 before the pairs of ssr."),
    ] = None,
    sentences: Annotated[
        int, typer.Option("--sentences", help="Learn from up to this many sentences of each text, too.")
    ] = 4,
    batch: Annotated[
        int | None, _setting("--batch", "batch", "With --recipe ssr or uhd: pairs a step, 64 and 32.")
    ] = None,
    lr: Annotated[float | None, _setting("--lr", "lr")] = None,
    seed: Annotated[int | None, _setting("--seed", "seed")] = None,
    level: Annotated[
        Level | None,
        typer.Option(
            "--level", help="Learn from a state per token, or one per text. Default: tokens.", show_default=False
        ),
    ] = None,
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
    pairs: ssr.PairSources = None,
    split: ssr.Split = "train",
    asking: ssr.Asking = 0,
    negatives: ssr.Negatives = "bm25",
    prepare: ssr.Prepare = False,
    start: ssr.Start = None,
    steps: ssr.Steps = None,
    epochs: ssr.Epochs = None,
    hard: ssr.Hard = None,
    whole: ssr.Whole = None,
    whole_latents: ssr.WholeLatents = None,
    whole_k: ssr.WholeK = None,
    unfreeze: ssr.Unfreeze = False,
    encoder_lr: ssr.EncoderLr = None,
    k_from: ssr.KFrom = None,
    paper: ssr.Paper = False,
    gains: ssr.Gains = None,
    idf: ssr.Idf = None,
    function_words: ssr.FunctionWords = None,
    emphasis: ssr.Emphasis = None,
    wide: ssr.Wide = None,
    alpha: ssr.Alpha = None,
    beta: ssr.Beta = None,
    gamma: ssr.Gamma = None,
    teacher: ssr.Teacher = None,
    temperature: ssr.Temperature = None,
    whole_temperature: ssr.WholeTemperature = None,
    layers: uhd.Layers = None,
    joint: uhd.Joint = False,
    shallow: uhd.Shallow = None,
    rank: uhd.Rank = None,
    mask: uhd.Mask = None,
    boost: uhd.Boost = None,
    loss: uhd.Loss = None,
    binary: uhd.Binary = None,
    text: options.TextColumn = None,
    title: options.TitleColumn = None,
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

    if bits not in (8, 32):
        raise InputError(f"bits is {bits}; allowed: 8, 32")
    of_pairs: dict[str, Any] = {"pairs": pairs, "prepare": prepare or None, "steps": steps, "epochs": epochs}
    of_pairs |= {"hard": hard, "encoder-lr": encoder_lr, "paper": paper or None, "temperature": temperature}
    of_ssr: dict[str, Any] = {"start": start, "whole": whole, "whole-latents": whole_latents, "whole-k": whole_k}
    of_ssr |= {"unfreeze": unfreeze or None, "k-from": k_from, "wide": wide, "alpha": alpha, "beta": beta}
    of_ssr |= {"gamma": gamma, "whole-temperature": whole_temperature, "gains": gains, "idf": idf}
    of_ssr |= {"function-words": function_words, "emphasis": emphasis, "teacher": teacher}
    of_uhd: dict[str, Any] = {"layers": layers, "joint": joint or None, "rank": rank, "mask": mask, "boost": boost}
    of_uhd |= {"loss": loss, "binary": binary, "shallow": shallow}
    chosen = recipes.get(recipe) if recipe is not None else None
    with_ssr = chosen is not None and chosen.match == "maxsim"
    with_uhd = chosen is not None and chosen.winners
    if not (with_ssr or with_uhd):
        _refuse(of_pairs, "it is of learning from pairs: add --recipe ssr or uhd")
        if chosen is not None:
            if level not in (None, chosen.level):
                raise InputError(f"--recipe {recipe} reads {chosen.level} states; leave --level {level} out")
            level = chosen.level
    else:
        _refuse({"level": level, "architecture": architecture}, f"--recipe {recipe} decides it")
    if not with_ssr:
        _refuse(of_ssr, "it is of learning from pairs token by token: add --recipe ssr")
    if not with_uhd:
        _refuse(of_uhd, "it is of winners in buckets: add --recipe uhd")
    else:
        _refuse({"passes": passes, "tied": tied}, f"--recipe {recipe} has no use for it")
    begin = perf_counter()
    given = read_texts(texts, text=text, title=title)
    count = given.count()
    held = sampled(given, sample, count=count) if sample is not None else list(given)
    of = f" of {count:,}" if count and count != len(held) else ""
    say(f"found    {len(held):,}{of} texts")

    from lexent.coders.training import TrainConfig
    from lexent.encoders import DEFAULT
    from lexent.lexicon.train import train as run

    settings: dict[str, Any] = {"d_sae": latents, "k": k, "batch": batch, "lr": lr, "seed": seed, "tied": tied}
    try:
        with Meter("") as meter:
            if with_ssr or with_uhd:
                settings |= {"steps": steps, "epochs": epochs, "hard": hard, "encoder_lr": encoder_lr}
                settings["temperature"] = temperature
                config: Any
                if with_ssr:
                    settings |= {"pretrain": passes, "whole": whole, "whole_d_sae": whole_latents, "whole_k": whole_k}
                    settings |= {"freeze": not unfreeze, "k_from": k_from, "wide": wide, "alpha": alpha, "beta": beta}
                    settings |= {"gamma": gamma, "whole_temperature": whole_temperature, "gains": gains, "idf": idf}
                    settings |= {"function_words": function_words, "emphasis": emphasis, "teacher": teacher}
                    config = ssr.settings_of(settings, paper=paper)
                else:
                    del settings["tied"]
                    settings |= {"mask": mask, "boost": boost, "loss": loss, "binary": binary, "shallow": shallow}
                    config = uhd.settings_of(settings, layers=layers, rank=rank, paper=paper)
                gathered = ssr.gathered(
                    texts,
                    out=out,
                    encoder=encoder,
                    sources=pairs or [],
                    split=split,
                    asking=asking,
                    negatives=negatives,
                    prepare=prepare,
                    seed=config.seed,
                    overwrite=overwrite,
                    meter=meter,
                )
                if gathered is None:
                    return
                model, known = gathered
                common: dict[str, Any] = {"out": out, "encoder": model, "config": config, "bits": bits}
                common |= {"overwrite": overwrite, "meter": meter}
                if with_ssr:
                    lexicon = ssr.run(held, known, start=start, sentences=sentences, **common)
                else:
                    lexicon = uhd.run(held, known, joint=joint, **common)
            else:
                settings["architecture"] = architecture
                kept = {name: value for name, value in settings.items() if value is not None}
                lexicon = run(
                    held,
                    out=out,
                    encoder=encoder or DEFAULT,
                    level=level or "tokens",
                    config=TrainConfig.for_level(level or "tokens", **kept),
                    passes=3 if passes is None else passes,
                    sentences=sentences,
                    bits=8 if bits == 8 else 32,
                    overwrite=overwrite,
                    progress=lambda stage, done, detail: meter.update(stage, done, 1.0, detail),
                )
    except KeyboardInterrupt:
        error_line("interrupted; type the same command again to go on from the last checkpoint")
        raise typer.Exit(INTERRUPTED) from None
    seconds = perf_counter() - begin
    if json:
        facts = {"path": str(out), "name": lexicon.name, "concepts": lexicon.size, "hash": lexicon.hash}
        show_json({**facts, "training": lexicon.info.training, "seconds": round(seconds, 3)})
        return
    show(f"trained  {lexicon.size:,} named concepts for {lexicon.encoder_id}, {seconds:,.0f} s -> {out}")
    used = lexicon.encoder_id if unfreeze else None if with_uhd else encoder
    more = [*(["--encoder", used] if used else []), *(["--recipe", recipe] if recipe is not None else [])]
    say_next(
        command("lexent", "concepts", "list", "--lexicon", out),
        command("lexent", "index", texts[0], *more, "--lexicon", out),
    )


def _refuse(given: dict[str, Any], why: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name} was given, but {why}")


def sampled(texts: Iterable[str], size: int, *, count: int | None) -> list[str]:
    """`size` texts, drawn evenly from beginning to end: the same ones each time, so that a run can go on."""
    if size < 1:
        raise InputError(f"sample is {size}; allowed: 1 or more")
    held = list(texts) if count is None else texts
    total = len(held) if isinstance(held, list) else (count or 0)
    if total <= size:
        return list(held)
    return [text for place, text in enumerate(held) if place * size // total != (place - 1) * size // total]
