"""lexent faithfulness: whether a document falls when the concepts that explain it are taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options, studies
from lexent.cli.console import show, show_json
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.studies.faithfulness import FaithfulnessReport


def faithfulness(
    collection: studies.CollectionName,
    recipe: Annotated[
        str, typer.Option("--recipe", help="The recipe whose explanations are tested; several with commas.")
    ] = "latent-terms",
    target: Annotated[
        str,
        typer.Option(
            "--target", help="The document that is explained: top (the first hit), or gold (the best relevant one)."
        ),
    ] = "top",
    queries: Annotated[int, typer.Option("--queries", help="How many queries are drawn.")] = 200,
    draws: Annotated[int, typer.Option("--draws", help="Random orders a query, to compare with.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Of the queries and orders that are drawn.")] = 0,
    split: studies.Split = None,
    encoder: options.EncoderName = None,
    lexicon: options.LexiconName = None,
    json: options.Json = False,
) -> None:
    """Take away the concepts that explain a hit, strongest first, and watch its score and rank fall.

    Deletion takes concepts from the query or from the document; insertion starts with none and adds them. Beside the
    index, whose scores are sums, the dense retriever itself is watched: a concept is taken from its vector.
    """
    from lexent.studies.faithfulness import faithfulness as measure

    with Meter() as meter:
        report = measure(
            collection,
            recipe=options.names_of(recipe),
            lexicon=lexicon,
            encoder=encoder,
            split=split,
            target=target,  # type: ignore[arg-type]  # refused there if it is none
            queries=queries,
            draws=draws,
            seed=seed,
            progress=meter.update,
        )
    if json:
        show_json(report.to_json())
        return
    _show(report)


def _show(report: FaithfulnessReport) -> None:
    from lexent.cli.studies import p_value
    from lexent.cli.views import table
    from lexent.undefined import shown

    for found in report.recipes:
        show(
            f"{found.recipe} on {report.collection} ({report.split}): {found.pairs:,} queries, "
            f"{shown(found.concepts, '.1f')} concepts an explanation",
            "",
        )
        head = ["watched", "side", "way", "area of score: explained", "random", "any", "weakest", "p"]
        head += ["of 1/rank: explained", "random", "any", "weakest", "p"]
        rows = []
        for trial in found.trials:
            row: list[str] = [trial.watched, trial.side, trial.way]
            for name in ("score", "place"):
                areas = [
                    getattr(trial.curves[order], f"{name}_area") for order in ("explained", "random", "any", "weakest")
                ]
                row += [*(f"{area:.3f}" for area in areas), p_value(trial.p_values["random"][name])]
            rows.append(row)
        show(*table(head, rows, left=3))
        if found.note:
            show(found.note)
        show("")
    show("areas under deletion curves are low, and under insertion curves high, where explanations are faithful")
    show("any: concepts of the text at random, in the explanation or not; p: explained against random, paired t-test")
