"""lexent concepts label: names by a language model."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from lexent.cli import models, options
from lexent.cli.concepts.lexicon_source import lexicon_and_encoder
from lexent.cli.console import Output, command
from lexent.cli.failures import INTERRUPTED, error_line
from lexent.cli.option_groups import option_group
from lexent.cli.progress import Meter
from lexent.cli.train.app import texts_of
from lexent.errors import InputError


@option_group
class EvidenceOptions:
    """Which concepts are named, and from how many examples."""

    limit: Annotated[int | None, typer.Option("-n", min=1)] = None
    """Name this many concepts, drawn at random. [default: all]"""
    examples: Annotated[int, typer.Option(min=1)] = 20
    """Active texts that the model is shown of a concept."""
    least: Annotated[int, typer.Option(min=1)] = 5
    """Active texts a concept must have in each half of the texts."""
    sample: options.Texts = 20_000
    seed: options.Seed = 0


def label(
    source: Annotated[
        str, typer.Argument(metavar="LEXICON_OR_INDEX", help="A lexicon's folder, a shipped one's name, or an index.")
    ],
    texts: Annotated[
        list[Path], typer.Argument(metavar="TEXTS", help="Files or folders to take examples from, as `index` reads.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the lexicon with new names.")],
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="The model, as it calls it.", rich_help_panel=models.PANEL)
    ],
    endpoint: models.EndpointOptions,
    evidence: EvidenceOptions,
    reading: options.TextReading,
    encoder: options.EncoderName = None,
    overwrite: options.Overwrite = False,
) -> Output:
    """Name concepts by a language model, from examples over the whole range of activation.

    One half of the texts is never shown to the model, so that `lexent concepts score` can test the names on it. Answers
    are kept in OUT.replies.jsonl: a run that was stopped goes on where it was when the same command is typed again.
    """
    import numpy as np

    from lexent.artifact import check_target
    from lexent.lexicon import labelling
    from lexent.lexicon.activations import observe
    from lexent.lexicon.answer_cache import Replies
    from lexent.lexicon.evidence import eligible, gather, is_held_out
    from lexent.training.reconstruction.train import card

    start = perf_counter()
    check_target(out, kind="lexicon", overwrite=overwrite)
    reached, seed, least = endpoint.of(model), evidence.seed, evidence.least
    lexicon, coder = lexicon_and_encoder(source, encoder=encoder)
    held = texts_of(texts, reading, sample=evidence.sample, distinct=True)
    with Meter() as meter:
        seen = observe(held, encoder=coder, lexicon=lexicon, progress=meter.counter("coding", len(held)))
    parts = np.array([is_held_out(one, seed=seed) for one in held], dtype=bool)
    chosen = eligible(seen, parts, least=least, limit=evidence.limit, seed=seed)
    if not chosen:
        raise InputError(f"no concept is active in {least} texts of each half; give more texts, or --least 1")
    found = gather(
        seen,
        held,
        concepts=chosen,
        encoder=coder,
        level=lexicon.info.level,
        active=evidence.examples,
        silent=labelling.SILENT_EXAMPLES,
        seed=seed,
    )
    with Replies(out.with_name(f"{out.name}.replies.jsonl")) as replies:
        prompts = [labelling.prompt(one) for one in found]
        cost = labelling.estimate(prompts, model=model, replies=replies, **endpoint.prices())
        models.agree(cost, model=model, yes=endpoint.yes)
        try:
            with Meter("labels") as meter:
                done = labelling.label(
                    lexicon,
                    found,
                    endpoint=reached,
                    replies=replies,
                    concurrency=endpoint.concurrency,
                    progress=meter.counter("naming", len(found)),
                )
        except KeyboardInterrupt:
            error_line("interrupted; what was answered is kept: type the same command again to go on")
            raise typer.Exit(INTERRUPTED) from None
    page = f"{card(done.lexicon)}\n{done.labels:,} of the names were given by the language model `{model}`.\n"
    done.lexicon.save(out, card=page, overwrite=overwrite)
    seconds = perf_counter() - start
    facts = {"path": str(out), "hash": done.lexicon.hash, "concepts": done.lexicon.size, "asked": len(found)}
    names = ("labels", "unread", "unanswered", "prompt_tokens", "completion_tokens")
    counts = {name: getattr(done, name) for name in names}
    kept = f"; {done.unread:,} answers held no name and {done.unanswered:,} did not come: those keep their old ones"
    line = f"named    {done.labels:,} of {done.lexicon.size:,} concepts by {model}, {seconds:,.0f} s -> {out}"
    first = next((concept for concept in done.lexicon.concepts if concept.source), None)
    return Output(
        {**facts, **counts, "seconds": round(seconds, 3)},
        [line + (kept if done.unread or done.unanswered else "")],
        [
            command("lexent", "concepts", "score", *texts, "--lexicon", out),
            command("lexent", "concepts", "show", first.id if first else 0, "--lexicon", out),
        ],
        [f"such as  #{first.id} {first.label} (was: {first.plain})"] if first is not None else (),
    )
