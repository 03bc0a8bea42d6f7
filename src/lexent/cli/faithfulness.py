"""lexent faithfulness: whether a document falls when the concepts that explain it are taken away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lexent.cli import options
from lexent.cli.console import Output
from lexent.cli.option_groups import option_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.studies.faithfulness import FaithfulnessReport


@option_group
class Trials:
    """Which explanations are tested, and how often."""

    recipe: str = "latent-terms"
    """The recipe whose explanations are tested; several with commas."""
    target: str = "top"
    """The document that is explained: top (the first hit), or gold (the best relevant one)."""
    queries: int = 200
    """How many queries are drawn."""
    draws: int = 5
    """Random orders a query, to compare with."""
    seed: int = 0
    """Of the queries and orders that are drawn."""
    split: options.Split = None


def faithfulness(collection: options.CollectionName, trials: Trials, models: options.Models) -> Output:
    """Take away the concepts that explain a hit, strongest first, and watch its score and rank fall.

    Deletion takes concepts from the query or from the document; insertion starts with none and adds them. Beside the
    index, whose scores are sums, the dense retriever itself is watched: a concept is taken from its vector.
    """
    from lexent.studies.faithfulness import faithfulness as measure

    given = {**vars(trials), "recipe": options.names_of(trials.recipe), **vars(models)}
    with Meter() as meter:
        report = measure(collection, **given, progress=meter.update)
    return Output(report, _lines(report))


def _lines(report: FaithfulnessReport) -> Iterator[Line]:
    from lexent.cli.views import table
    from lexent.nan_safe import p_text, shown

    orders = ("explained", "random", "any", "weakest")
    head = ["watched", "side", "way", "area of score: explained", *orders[1:], "p"]
    head += ["of 1/rank: explained", *orders[1:], "p"]
    for found in report.recipes:
        size = f"{found.pairs:,} queries, {shown(found.concepts, '.1f')} concepts an explanation"
        yield from (f"{found.recipe} on {report.collection} ({report.split}): {size}", "")
        rows = []
        for trial in found.trials:
            row: list[str] = [trial.watched, trial.side, trial.way]
            for name in ("score", "place"):
                areas = [getattr(trial.curves[order], f"{name}_area") for order in orders]
                row += [*(f"{area:.3f}" for area in areas), p_text(trial.p_values["random"][name])]
            rows.append(row)
        yield from table(head, rows, left=3)
        yield from (found.note, "") if found.note else ("",)
    yield "areas under deletion curves are low, and under insertion curves high, where explanations are faithful"
    yield "any: concepts of the text at random, in the explanation or not; p: explained against random, paired t-test"
