"""Sections about retrieval: quality, what BM25 misses, cost, and what each setting does."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.overlap import RULE, parts_of, train_groups
from lexent.evaluation.passages import Runner
from lexent.evaluation.systems import learns
from lexent.evaluation.training_split import training_split_beside
from lexent.nan_safe import p_text
from lexent.studies.analyses.analyse import ANALYSES, Subject
from lexent.studies.analyses.table import Cell, Table
from lexent.studies.limit import limit
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.section import Figure, Result, Section, analysed, kept_tables
from lexent.studies.reproduction.study import Study

LIMIT_MEASURES = {"latent-terms": ("R@10", "R@2", "R@20", "R@100"), "ssr": ("R@5", "R@10", "R@100")}
"""The papers'."""


# --- systems and their measures --------------------------------------------------------------------------------------


def score_systems(study: Study, collection: Collection, measures: tuple[str, ...]) -> Result:
    """The measures of every system, with tests against dense retrieval."""
    wanted, ranked = scoring.parse(measures), study.every
    runner, found = Runner(collection, ranked), {}
    for system in ranked:
        run = runner.run(system, depth=1000)
        found[system.name] = scoring.score(collection.qrels, run, wanted)
    trained = [system.name for system in ranked if learns(system)]
    groups = train_groups(study.source, collection) if trained and collection is study.collection else {}
    return {
        "collection": collection.name,
        "documents": len(collection.documents),
        "queries": len(collection.queries),
        "ours": [system.name for system in study.own],
        **values_and_p(found, "dense"),
        "trained": trained,
        "parts": {name: asdict(part) for name, part in parts_of(groups, found, "dense").items()},
    }


def values_and_p(found: dict[str, scoring.Scores], reference: str) -> Result:
    """The means of each system, and the p-values of all systems but the reference against it."""
    values = {name: scores.means for name, scores in found.items()}
    return {"values": values, "p_values": scoring.p_values(found, reference)}


def score_table(title: str, found: Result, *, note: str, share_of: str = "") -> Table:
    """A row for each system: each measure with its p-value, and its share of another system's value."""
    whole = found["values"].get(share_of, {})
    rows = []
    for system, values in found["values"].items():
        row: list[Cell] = [system]
        for measure, value in values.items():
            share = [f"{value / whole[measure] if whole[measure] else 0.0:.3f}"] if whole else []
            row += [value, *share, p_text(found["p_values"].get(system, {}).get(measure))]
        rows.append(tuple(row))
    head = [cell for measure in values for cell in (measure, *([f"of {share_of}"] if whole else []), "p")]
    return Table(title, ("system", *head), tuple(rows), note)


def part_table(parts: dict[str, Any], note: str = "") -> Table:
    """All systems by what training has seen of a query: the first measure."""
    first = next(iter(parts.values()))["values"]
    measure = next(iter(next(iter(first.values()))))
    rows = []
    for system in first:
        row: list[Cell] = [system]
        for part in parts.values():
            row += [part["values"][system][measure], p_text(part["p_values"].get(system, {}).get(measure))]
        rows.append(tuple(row))
    head = (cell for name, part in parts.items() for cell in (f"{name}, {part['queries']:,}", "p"))
    rule = f"{RULE}; p: paired t-test, over the queries of the column"
    title = "queries by what training has seen"
    return Table(title, (measure, *head), tuple(rows), f"{note}; {rule}" if note else rule)


def bars_of(result: Result, caption: str, *, of: str = "", **options: Any) -> Figure:
    """A bar of the first measure for each system. Where training has seen some queries, those that are new count."""
    part, values = "", result["values"]
    if result.get("parts"):
        part, first = next(iter(result["parts"].items()))
        values, part = first["values"], f", {part} queries"
    measure = next(iter(next(iter(values.values()))))
    bars = plots.bars({name: means[measure] for name, means in values.items()}, label=measure, **options)
    return Figure(bars, f"{measure} of {caption}{part}{of}")


def show_scores(result: Result) -> list[Table | Figure]:
    """Where a system learned from queries, those that are new to it come first."""
    note = "of dense: the share of its value; p: paired t-test against dense, over queries"
    table = partial(score_table, note=note, share_of="dense")
    size = f"{result['documents']:,} documents, {result['queries']:,} queries"
    shown = [table(f"every system on {result['collection']}: {size}", result)]
    if result.get("parts"):
        name, first = next(iter(result["parts"].items()))
        title = f"every system on {result['collection']}: the {first['queries']:,} queries that are {name}"
        learned = f"learned from queries: {', '.join(result['trained'])}"
        shown = [table(title, first), part_table(result["parts"], learned), *shown]
    return [*shown, bars_of(result, "every system", ours=set(result.get("ours", ())))]


# --- analyses, as `lexent analyse` makes them ------------------------------------------------------------------------


def analysis(name: str, study: Study) -> Result:
    """An analysis of `lexent analyse` on the systems of the study."""
    train = training_split_beside(study.source, study.collection) if name == "tuned" else None
    # Units that are counted and units that are weighed are the same.
    systems = study.systems[:1] if name == "zipf" and study.paper.name == "uhd" else study.systems
    beside = tuple(study.every[len(study.systems) :])
    subject = Subject(study.collection, train, systems, beside, study.measures)
    return analysed(ANALYSES[name](subject))


def _show_missed(result: Result) -> list[Table | Figure]:
    found = result["parts"][0]
    measure = next(iter(next(iter(found["values"].values()))))
    sets = [each for each in found["sets"] if each["size"]]
    if not sets:
        return [*kept_tables(result)]
    names = ["all queries", *(f"missed@{each['depth']} ({each['size']})" for each in sets)]
    values = {
        system: [means[measure], *(each["values"][system][measure] for each in sets)]
        for system, means in found["values"].items()
    }
    caption = f"{measure} on all queries, and on those of which BM25 finds no relevant document"
    return [*kept_tables(result), Figure(plots.groups(names, values, label=measure), caption)]


def _show_costs(result: Result) -> list[Table | Figure]:
    rows = result["parts"][0]["systems"]
    measure = next(iter(rows[0]["values"]))
    points = {row["system"]: (row["flops"], row["values"][measure]) for row in rows}
    drawn = plots.scatter(points, x_label="FLOPs: terms shared by a query and a document", y_label=measure)
    return [*kept_tables(result), Figure(drawn, f"{measure} against the work of a query; further left is cheaper")]


def sweep_figure(parts: list[Any], x_label: str, *, log: bool = True) -> Figure:
    """Lines over the number in each row's label; a row without one, where all are kept, is a level."""
    lines: dict[str, list[tuple[float, float]]] = {}
    levels: dict[str, float] = {}
    measure = next(iter(parts[0]["rows"][0]["values"]))
    for part in parts:
        for row in part["rows"]:
            number, value = row["label"].split()[-1].rstrip("%"), row["values"][measure]
            try:
                lines.setdefault(part["system"], []).append((float(number), value))
            except ValueError:
                levels[part["system"]] = value
    drawn = plots.lines(lines, x_label=x_label, y_label=measure, levels=levels, log="x" if log else "")
    return Figure(drawn, f"{measure} against {x_label}; dotted: all are kept" if levels else f"{measure}, {x_label}")


def show_sweep(result: Result, x_label: str, *, log: bool = True) -> list[Table | Figure]:
    """The tables of sweeps, and their lines."""
    return [*kept_tables(result), sweep_figure(result["parts"], x_label, log=log)]


def _show_zipf(result: Result) -> list[Table | Figure]:
    curves = {curve["name"]: curve["points"] for curve in result["parts"][0]["curves"]}
    drawn = plots.lines(curves, x_label="rank of the term", y_label="documents that have it", log="xy", form="plain")
    return [*kept_tables(result), Figure(drawn, "Document frequency by rank, both logarithmic")]


def _show_kinds(result: Result) -> list[Table | Figure]:
    rows = {
        f"{part['system']}: {column}": part[column]
        for part in result["parts"]
        for column in ("lexicon", "live", "documents", "queries")
    }
    return [*kept_tables(result), Figure(plots.shares(rows), "Kinds of concepts: in the lexicon, live, and by use")]


SECTIONS = (
    Section(
        "quality",
        "Retrieval quality",
        "How good are the rankings, beside dense retrieval and BM25?",
        lambda study: score_systems(study, study.collection, study.measures),
        show_scores,
        reading="The encoder, the lexicon and the collection differ from the paper's, so its values are not to be "
        "compared with ours; the shares of dense retrieval are, and the order.",
        papers=("clsr", "latent-terms", "ssr"),
        every=True,
        version=2,
    ),
    Section(
        "limit",
        "LIMIT: what one vector cannot express",
        "Can every pair of a few documents be the answer to some query?",
        lambda study: score_systems(study, limit(study.sizes.limit), LIMIT_MEASURES[study.paper.name]),
        show_scores,
        reading="A collection of our own in the form of LIMIT, made anew from a seed, and smaller than the paper's: "
        "recall at a depth is easier here. It does not depend on the collection of this report.",
        papers=("latent-terms", "ssr"),
        sizes=("limit",),
        every=True,
    ),
    Section(
        "mismatch",
        "Queries that BM25 misses",
        "What is lost on the queries whose relevant documents share few words with them?",
        partial(analysis, "mismatch"),
        _show_missed,
        reading="The sets are chosen by BM25's failure, so it has 0 there by construction, up to their depth. Small "
        "sets say little: their sizes stand in brackets.",
        every=True,
    ),
    Section(
        "cost",
        "Quality and cost",
        "What does a query cost, and how large is the index?",
        partial(analysis, "cost"),
        _show_costs,
        reading="Sizes are of this collection: of Lexent's packed lists, of bm25s's arrays, and of float32 vectors.",
        every=True,
    ),
    Section(
        "caps",
        "Concepts a document keeps",
        "How many concepts a document are enough?",
        partial(analysis, "caps"),
        partial(show_sweep, x_label="concepts a document keeps"),
    ),
    Section(
        "idf",
        "idf against the dot product",
        "Does it matter that rare concepts count for more, and that strong ones saturate?",
        partial(analysis, "idf"),
    ),
    Section(
        "k",
        "Concepts a state is coded with",
        "How does quality change with k, for one lexicon?",
        partial(analysis, "k"),
        partial(show_sweep, x_label="k, concepts a state"),
        reading="One lexicon used with several k; the papers train a lexicon for each.",
    ),
    Section(
        "tuned",
        "Untuned and tuned, BM25 and dot product",
        "What do the paper's settings give here, and what does tuning on a train split add?",
        partial(analysis, "tuned"),
        reading="Tuned only on a train split, never on the split that is reported.",
        version=2,
    ),
    Section(
        "prune",
        "Without the most frequent concepts",
        "Can queries ignore the most frequent concepts?",
        partial(analysis, "prune"),
        partial(show_sweep, x_label="percent of the concepts left out", log=False),
        papers=("clsr", "latent-terms", "uhd"),
    ),
    Section(
        "zipf",
        "Rank and frequency",
        "Are concepts spread over documents as words are?",
        partial(analysis, "zipf"),
        _show_zipf,
        reading="Words are all words of the texts, stop words too: they are the head of the curve.",
        papers=("clsr", "latent-terms", "uhd"),
        version=2,
    ),
    Section(
        "categories",
        "Kinds of concepts",
        "How many concepts are words, narrow meanings and broad topics?",
        partial(analysis, "categories"),
        _show_kinds,
        reading="Kinds are told apart by counting which words activate a concept, not by a language model.",
    ),
)
