"""lexent analyse, fidelity, faithfulness and make limit: studies on a test collection, and how they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli import options
from lexent.cli.console import Output, command
from lexent.cli.option_groups import option_group
from lexent.cli.progress import Meter

if TYPE_CHECKING:
    from lexent.cli.console import Line
    from lexent.evaluation.overlap import Part
    from lexent.studies.analyses import Analyses as Found
    from lexent.studies.analyses.table import Table
    from lexent.studies.faithfulness import FaithfulnessReport
    from lexent.studies.fidelity import FidelityReport


@option_group
class Analyses:
    """What is analysed, and beside which systems."""

    what: Annotated[str, typer.Option(metavar="NAMES")] = "mismatch,cost,caps,idf,prune,zipf,categories"
    """Analyses with commas: mismatch, cost, caps, idf, prune, tuned, k, zipf, categories; or all. tuned needs a train
    split, and k encodes the texts again."""
    recipe: str = "latent-terms"
    """Recipes to analyse, with commas."""
    baselines: str = "dense,bm25"
    """Systems beside them in mismatch and cost: dense, bm25, both or none."""
    measures: str = "nDCG@10,R@100"
    """Names of ir_measures with commas; tests are made with the first."""
    split: options.Split = None
    train: str = "train"
    """The split that tuned tunes on, if there is one; a test split is refused."""


def analyse(collection: options.CollectionName, chosen: Analyses, models: options.Models) -> Output:
    """Analyse recipes on a test collection: what they miss, what they cost, and what each setting does."""
    from lexent.studies import analyses

    lists = {name: options.names_of(getattr(chosen, name)) for name in ("what", "recipe", "baselines")}
    with Meter("") as meter:
        found = analyses.analyse(collection, **{**vars(chosen), **lists, **vars(models)}, progress=meter.update)
    return Output(found, _analyse_lines(found))


def _analyse_lines(found: Found) -> Iterator[Line]:
    yield f"{found.collection} ({found.split}): {found.documents:,} documents, {found.queries:,} queries"
    yield from table_lines(each for parts in found.parts.values() for part in parts for each in part.tables())


@option_group
class Rebuilding:
    """What is rebuilt, and how it is measured."""

    lexicon: options.Name = None
    """Lexicons, by folder or shipped name; several with commas. [default: all shipped ones]"""
    k: Annotated[str, typer.Option("--sae-k")] = ""
    """Concepts a state is coded with, several with commas. [default: a quarter, a half and all of what each lexicon
    was trained with]"""
    measures: str = "nDCG@10,R@100"
    """Names of ir_measures with commas, such as nDCG@10,R@100."""
    split: options.Split = None
    sample: int = 1000
    """Documents whose token states are rebuilt; those judged relevant first."""
    encoder: options.EncoderName = None


def fidelity(collection: options.CollectionName, chosen: Rebuilding) -> Output:
    """Rebuild the encoder's states from their concepts, and see how much is kept.

    NMSE is the squared error over that of a guess that knows only the mean: 0 is perfect, 1 is no better than the mean.
    Retrieval is by the cosine of rebuilt vectors on both sides. For a lexicon for MaxSim a second table holds the
    products of codes against those of states, beside the bound that theory gives.
    """
    from lexent.studies.fidelity import fidelity as measure

    lexicons = options.names_of(chosen.lexicon) if chosen.lexicon else None
    sizes = options.numbers_of(int, "--sae-k", "32,64,128", chosen.k)
    with Meter() as meter:
        given = {**vars(chosen), "lexicon": lexicons, "k": sizes}
        report = measure(collection, **given, progress=meter.update)
    return Output(report, _fidelity_lines(report))


def _fidelity_lines(report: FidelityReport) -> Iterator[Line]:
    from lexent.cli.views import table
    from lexent.nan_safe import p_text, shown
    from lexent.studies.maxsim_theory import tables

    yield from (f"{report.collection} ({report.split}): {report.documents:,} documents, {report.queries:,} queries", "")
    head = ["lexicon", "k", "NMSE", "queries", "cosine", "active", "5 to 95 %", "live"]
    head += [cell for measure in report.dense for cell in (measure, "kept", "p")]
    rows = []
    for row in report.rows:
        active, live = row.documents["active"], row.documents["live"] / row.size
        errors = [shown(side["nmse"], ".4f") for side in (row.documents, row.queries)]
        cells = [row.lexicon, str(row.k), *errors, shown(row.documents["cosine"], ".3f")]
        cells += [shown(active["mean"], ".1f"), f"{active['p5']} to {active['p95']}", f"{live:.0%}"]
        for measure in report.dense:
            if measure in row.measures:
                kept = shown(row.kept[measure], ".3f")
                cells += [f"{row.measures[measure]:.4f}", kept, p_text(row.p_values[measure])]
            else:
                cells += ["", "", ""]
        rows.append([*cells, shown(row.spearman, ".3f")])
    yield from table([*head, "Spearman"], rows)
    dense = ", ".join(f"{name} {value:.4f}" for name, value in report.dense.items())
    yield from ("", f"dense retrieval: {dense}; kept: the share of it; p: paired t-test against it, over queries")
    yield "Spearman: rank correlation of whole rankings with dense retrieval's; live: concepts that any document has"
    yield from report.notes
    yield from table_lines(tables([row.theory for row in report.rows if row.theory is not None]))


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
    return Output(report, _faithfulness_lines(report))


def _faithfulness_lines(report: FaithfulnessReport) -> Iterator[Line]:
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


def limit(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The BEIR folder to write.")],
    documents: Annotated[int, typer.Option("--documents", help="How many documents, from 46 to 89,100.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed makes another collection.")] = 0,
) -> Output:
    """Make a LIMIT collection: 46 people, a query for each pair of them, and others who like nothing that is asked for.

    A larger collection of the same seed holds all documents of a smaller one, and has the same queries.
    """
    from lexent.evaluation.collections import write
    from lexent.studies.limit import limit as generate

    made = generate(documents, seed=seed)
    write(made, out)
    return Output(
        {"path": str(out), "documents": len(made.documents), "queries": len(made.queries), "seed": seed},
        [f"made     {len(made.documents):,} documents, {len(made.queries):,} queries -> {out}"],
        [command("lexent", "eval", out, "--measures", "R@2,R@10,R@100")],
    )


def table_lines(tables: Iterable[Table]) -> Iterator[Line]:
    """Tables, each below its title and above its note."""
    from lexent.cli.views import table

    for each in tables:
        yield from ("", each.title)
        yield from table(each.head, each.text())
        if each.note:
            yield each.note


def system_table(
    title: str, part: Part, *, p: bool = True, seconds: Mapping[str, float] | None = None
) -> Iterator[Line]:
    """All systems by measures, and by the seconds that they took where those are given."""
    measures = list(next(iter(part.values.values())))
    return _table(title, [(measure, part, measure) for measure in measures], p=p, seconds=seconds)


def part_tables(parts: Mapping[str, Part], *, p: bool = True) -> Iterator[Line]:
    """Trained systems: on new queries first, then the first measure by part and the rule that tells the parts apart."""
    from lexent.evaluation.overlap import RULE

    name, first = next(iter(parts.items()))
    yield from system_table(f"{name} queries, {first.queries:,}", first, p=p)
    yield ""
    measure = next(iter(next(iter(first.values.values()))))
    yield from _table(measure, [(f"{name}, {part.queries:,}", part, measure) for name, part in parts.items()], p=p)
    yield from ("", RULE)


def _table(
    title: str, columns: Sequence[tuple[str, Part, str]], *, p: bool, seconds: Mapping[str, float] | None = None
) -> Iterator[Line]:
    """A row a system; each column is a name, the queries that are measured and the measure."""
    from lexent.cli.views import table
    from lexent.nan_safe import p_text

    head = [title, *(cell for name, _, _ in columns for cell in ([name, "p"] if p else [name]))]
    rows = []
    for system in columns[0][1].values:
        row = [system]
        for _, part, measure in columns:
            row.append(f"{part.values[system][measure]:.4f}")
            if p:
                row.append(p_text(part.p_values.get(system, {}).get(measure)))
        if seconds is not None:
            row.append(f"{seconds[system]:.1f}" if system in seconds else "")
        rows.append(row)
    return table(head if seconds is None else [*head, "seconds"], rows)
