"""lexent concepts label: names by a language model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from lexent.cli import models, options, subjects
from lexent.cli.console import command, say, say_next, show, show_json
from lexent.cli.failures import INTERRUPTED, error_line
from lexent.cli.option_groups import option_group, with_option_groups
from lexent.cli.progress import Meter
from lexent.errors import InputError


@option_group
@dataclass(frozen=True, slots=True)
class EvidenceOptions:
    """Which concepts are named, and from how many examples."""

    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Name this many concepts, drawn at random; all where not given."),
    ] = None
    examples: Annotated[
        int, typer.Option("--examples", min=1, help="Active texts that the model is shown of a concept.")
    ] = 20
    least: Annotated[
        int, typer.Option("--least", min=1, help="Active texts a concept must have in each half of the texts.")
    ] = 5
    sample: subjects.Sample = 20_000
    seed: subjects.Seed = 0


@with_option_groups
def label(
    *,
    source: Annotated[
        str,
        typer.Argument(metavar="LEXICON_OR_INDEX", help="A lexicon's folder, a shipped one's name, or an index."),
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
    encoder: options.EncoderName = None,
    columns: options.TextColumns,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Name concepts by a language model, from examples over the whole range of activation.

    One half of the texts is never shown to the model, so that `lexent concepts score` can be asked on it. Answers are
    kept in OUT.replies.jsonl: a run that was stopped goes on where it was when the same command is typed again.
    """
    from lexent.artifact import check_target
    from lexent.lexicon import labelling
    from lexent.lexicon.activations import observe
    from lexent.lexicon.evidence import eligible, gather, is_held_out
    from lexent.lexicon.replies import Replies
    from lexent.training.reconstruction.train import card

    start = perf_counter()
    check_target(out, kind="lexicon", overwrite=overwrite)
    reached, seed, least = endpoint.of(model), evidence.seed, evidence.least
    subject = subjects.subject_of(source, encoder=encoder)
    held = subjects.texts_of(texts, columns, sample=evidence.sample)
    with Meter() as meter:
        seen = observe(
            held,
            encoder=subject.encoder,
            lexicon=subject.lexicon,
            progress=meter.counter("coding", len(held)),
        )
    import numpy as np

    parts = np.array([is_held_out(one, seed=seed) for one in held], dtype=bool)
    chosen = eligible(seen, parts, least=least, limit=evidence.limit, seed=seed)
    if not chosen:
        raise InputError(f"no concept is active in {least} texts of each half; give more texts, or --least 1")
    level = subject.lexicon.info.level
    found = gather(
        seen,
        held,
        concepts=chosen,
        encoder=subject.encoder,
        level=level,
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
                    subject.lexicon,
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
    if json:
        facts = {"path": str(out), "hash": done.lexicon.hash, "concepts": done.lexicon.size, "asked": len(found)}
        counts = {"labels": done.labels, "unread": done.unread, "unanswered": done.unanswered}
        spent = {"prompt_tokens": done.prompt_tokens, "completion_tokens": done.completion_tokens}
        show_json({**facts, **counts, **spent, "seconds": round(seconds, 3)})
        return
    kept = f"; {done.unread:,} answers held no name and {done.unanswered:,} did not come: those keep their old ones"
    show(
        f"named    {done.labels:,} of {done.lexicon.size:,} concepts by {model}, {seconds:,.0f} s -> {out}"
        + (kept if done.unread or done.unanswered else "")
    )
    first = next((concept for concept in done.lexicon.concepts if concept.source), None)
    if first is not None:
        say(f"such as  #{first.id} {first.label} (was: {first.plain})")
    say_next(
        command("lexent", "concepts", "score", *texts, "--lexicon", out),
        command("lexent", "concepts", "show", first.id if first else 0, "--lexicon", out),
    )
