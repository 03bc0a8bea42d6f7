"""Sections about retrieval: quality, what BM25 misses, cost, and what each setting does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.overlap import parts_of, to_json, train_groups
from lexent.evaluation.systems import System, learns
from lexent.evaluation.training_split import training_split_beside
from lexent.studies.analyses import caps, categories, costs, ks, mismatch, pruning, published, weightings, zipf
from lexent.studies.analyses.table import Table, chance
from lexent.studies.limit import limit
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.section import Figure, Result, Section, analysed
from lexent.studies.reproduction.study import Study
from lexent.studies.reproduction.trained import headline, part_table


def score_systems(
    study: Study, collection: Collection, measures: tuple[str, ...], systems: Sequence[System] | None = None
) -> Result:
    """Every system's values, with tests against dense retrieval. systems: all of the study where not given."""
    wanted = scoring.parse(measures)
    found = {}
    ranked = list(study.every if systems is None else systems)
    for system in ranked:
        run = system.run(collection, depth=1000, progress=study.progress)
        found[system.name] = scoring.score(collection.qrels, run, wanted)
    dense = found["dense"].per_query
    trained = [system.name for system in ranked if learns(system)]
    groups = train_groups(study.source, collection) if trained and collection is study.collection else {}
    return {
        "collection": collection.name,
        "documents": len(collection.documents),
        "queries": len(collection.queries),
        "ours": [system.name for system in study.own],
        "values": {name: scores.means for name, scores in found.items()},
        "p_values": {
            name: {measure: scoring.p_value(each, dense[measure]) for measure, each in scores.per_query.items()}
            for name, scores in found.items()
            if name != "dense"
        },
        "trained": trained,
        "parts": to_json(parts_of(groups, found, "dense")),
    }


def score_tables(result: Result) -> list[Table]:
    """Where a system learned from queries, those that are new to it come first."""
    size = f"{result['documents']:,} documents, {result['queries']:,} queries"
    whole = _score_table(f"every system on {result['collection']}: {size}", result)
    if not result.get("parts"):
        return [whole]
    name, first = next(iter(result["parts"].items()))
    title = f"every system on {result['collection']}: the {first['queries']:,} queries that are {name}"
    note = f"learned from queries: {', '.join(result['trained'])}"
    return [_score_table(title, first), part_table(result["parts"], note), whole]


def _score_table(title: str, values: Result) -> Table:
    dense = values["values"]["dense"]
    rows = []
    for name, means in values["values"].items():
        row: list[Any] = [name]
        for measure, value in means.items():
            share = value / dense[measure] if dense[measure] else 0.0
            row += [value, f"{share:.3f}", chance(values["p_values"].get(name, {}).get(measure))]
        rows.append(tuple(row))
    head = ("system", *(cell for measure in dense for cell in (measure, "of dense", "p")))
    note = "of dense: the share of its value; p: paired t-test against dense, over queries"
    return Table(title, head, tuple(rows), note)


def _quality(study: Study) -> Result:
    return score_systems(study, study.collection, study.measures)


def _limit(study: Study) -> Result:
    return score_systems(study, limit(study.sizes.limit), ("R@10", "R@2", "R@20", "R@100"))


def _each(analysis: Any, study: Study) -> Result:
    common = {"measures": study.measures, "progress": study.progress}
    return analysed(analysis(study.collection, system, **common) for system in study.systems)


def _together(analysis: Any, study: Study) -> Result:
    found = analysis(study.collection, study.every, measures=study.measures, progress=study.progress)
    return analysed([found])


def _tuned(study: Study) -> Result:
    train = training_split_beside(study.source, study.collection)
    common: dict[str, Any] = {"train": train, "measures": study.measures, "progress": study.progress}
    return analysed(published(study.collection, system, **common) for system in study.systems)


def _frequencies(study: Study) -> Result:
    # Units that are counted and units that are weighed are the same.
    systems = study.systems[:1] if study.paper.name == "uhd" else study.systems
    return analysed([zipf(study.collection, systems, progress=study.progress)])


def score_bars(result: Result) -> list[Figure]:
    """Bars of the quality of each system."""
    part, shown = headline(result)
    measure = next(iter(shown["dense"]))
    values = {name: means[measure] for name, means in shown.items()}
    ours = set(result.get("ours", ()))
    of = f", {part} queries" if part else ""
    return [Figure(partial(plots.bars, values, label=measure, ours=ours), f"{measure} of every system{of}")]


def _missed(result: Result) -> list[Figure]:
    found = result["parts"][0]
    measure = next(iter(next(iter(found["values"].values()))))
    sets = [each for each in found["sets"] if each["size"]]
    if not sets:
        return []
    names = ["all queries", *(f"missed@{each['depth']} ({each['size']})" for each in sets)]
    values = {
        system: [means[measure], *(each["values"][system][measure] for each in sets)]
        for system, means in found["values"].items()
    }
    draw = partial(plots.groups, names, values, label=measure)
    return [Figure(draw, f"{measure} on all queries, and on those of which BM25 finds no relevant document")]


def _costs(result: Result) -> list[Figure]:
    rows = result["parts"][0]["systems"]
    measure = next(iter(rows[0]["values"]))
    points = {row["system"]: (row["flops"], row["values"][measure]) for row in rows}
    draw = partial(plots.scatter, points, x_label="FLOPs: terms shared by a query and a document", y_label=measure)
    return [Figure(draw, f"{measure} against the work of a query; further left is cheaper")]


def swept(result: Result, x_label: str, *, log: bool = True) -> list[Figure]:
    """Lines over the number in each row's label; a row without one, where all are kept, is a level."""
    lines: dict[str, list[tuple[float, float]]] = {}
    levels: dict[str, float] = {}
    measure = ""
    for part in result["parts"]:
        measure = next(iter(part["rows"][0]["values"]))
        for row in part["rows"]:
            number = row["label"].split()[-1].rstrip("%")
            value = row["values"][measure]
            try:
                lines.setdefault(part["system"], []).append((float(number), value))
            except ValueError:
                levels[part["system"]] = value
    draw = partial(plots.lines, lines, x_label=x_label, y_label=measure, levels=levels, log=log)
    return [Figure(draw, f"{measure} against {x_label}; dotted: all are kept" if levels else f"{measure}, {x_label}")]


def _zipf(result: Result) -> list[Figure]:
    curves = {curve["name"]: [tuple(point) for point in curve["points"]] for curve in result["parts"][0]["curves"]}
    draw = partial(plots.rank_frequency, curves)
    return [Figure(draw, "Document frequency by rank, both logarithmic")]


def _kinds(result: Result) -> list[Figure]:
    rows = {}
    for part in result["parts"]:
        for column in ("lexicon", "live", "documents", "queries"):
            rows[f"{part['system']}: {column}"] = part[column]
    return [Figure(partial(plots.shares, rows), "Kinds of concepts: in the lexicon, live, and by use")]


SECTIONS = (
    Section(
        "quality",
        "Retrieval quality",
        "How good are the rankings, beside dense retrieval and BM25?",
        _quality,
        score_tables,
        score_bars,
        reading="The encoder, the lexicon and the collection differ from the paper's, so its values are not to be "
        "compared with ours; the shares of dense retrieval are.",
        every=True,
        version=2,
    ),
    Section(
        "limit",
        "LIMIT: what one vector cannot express",
        "Can every pair of a few documents be the answer to some query?",
        _limit,
        score_tables,
        score_bars,
        reading="A collection of our own in the form of LIMIT, made anew from a seed, and smaller than the paper's: "
        "recall at a depth is easier here. It does not depend on the collection of this report.",
        papers=("latent-terms",),
        sizes=("limit",),
        every=True,
    ),
    Section(
        "mismatch",
        "Queries that BM25 misses",
        "What is lost on the queries whose relevant documents share few words with them?",
        partial(_together, mismatch),
        figures=_missed,
        reading="The sets are chosen by BM25's failure, so it has 0 there by construction, up to their depth. Small "
        "sets say little: their sizes stand in brackets.",
        every=True,
    ),
    Section(
        "cost",
        "Quality and cost",
        "What does a query cost, and how large is the index?",
        partial(_together, costs),
        figures=_costs,
        reading="Sizes are of this collection: of Lexent's packed lists, of bm25s's arrays, and of float32 vectors.",
        every=True,
    ),
    Section(
        "caps",
        "Concepts a document keeps",
        "How many concepts a document are enough?",
        partial(_each, caps),
        figures=partial(swept, x_label="concepts a document keeps"),
    ),
    Section(
        "idf",
        "idf against the dot product",
        "Does it matter that rare concepts count for more, and that strong ones saturate?",
        partial(_each, weightings),
    ),
    Section(
        "k",
        "Concepts a state is coded with",
        "How does quality change with k, for one lexicon?",
        partial(_each, ks),
        figures=partial(swept, x_label="k, concepts a state"),
        reading="One lexicon used with several k; the papers train a lexicon for each.",
    ),
    Section(
        "tuned",
        "Untuned and tuned, BM25 and dot product",
        "What do the paper's settings give here, and what does tuning on a train split add?",
        _tuned,
        reading="Tuned only on a train split, never on the split that is reported.",
        version=2,
    ),
    Section(
        "prune",
        "Without the most frequent concepts",
        "Can queries ignore the most frequent concepts?",
        partial(_each, pruning),
        figures=partial(swept, x_label="percent of the concepts left out", log=False),
        papers=("clsr", "latent-terms", "uhd"),
    ),
    Section(
        "zipf",
        "Rank and frequency",
        "Are concepts spread over documents as words are?",
        _frequencies,
        figures=_zipf,
        reading="Words are all words of the texts, stop words too: they are the head of the curve.",
        papers=("clsr", "latent-terms", "uhd"),
        version=2,
    ),
    Section(
        "categories",
        "Kinds of concepts",
        "How many concepts are words, narrow meanings and broad topics?",
        lambda study: analysed(
            categories(study.collection, system, progress=study.progress) for system in study.systems
        ),
        figures=_kinds,
        reading="Kinds are told apart by counting which words activate a concept, not by a language model.",
    ),
)
