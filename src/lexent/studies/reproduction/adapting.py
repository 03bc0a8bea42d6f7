"""Sections about adapters: how much better, by which form, at what cost, and whether the explanation matters."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from lexent.adapters import AdapterConfig, TrainSettings
from lexent.adapters.adapter import shapes
from lexent.evaluation.adapting import train_adapter, train_collection
from lexent.evaluation.comparison import compare
from lexent.studies.adapter_explanations import Explainer
from lexent.studies.analyses.table import Table, chance
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study
from lexent.studies.reproduction.trained import headline, part_table
from lexent.undefined import shown

if TYPE_CHECKING:
    from lexent.adapters import AdapterConfig
    from lexent.evaluation.adapting import Training

CANDIDATES = 100
"""The base retriever's best, which every method ranks again: the paper's form of a test."""
BESIDE = (
    "prf-dime-20",
    "prf-dime-40",
    "prf-dime-60",
    "prf-dime-80",
    "search-adaptor",
    "hypencoder-2",
    "hypencoder-8",
)
PAPER = "paper: full, hinge 0.3, BM25 negatives, corpus mean, layer norm"
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    PAPER: (
        {"mode": "full", "width": 256, "start": "pca", "feedback": "corpus", "layer_norm": True, "hidden": 128},
        {"loss": "hinge", "negatives": "bm25", "n_negatives": 1, "lr": 1e-4, "epochs": 20, "patience": 5},
    ),
    "lowrank": ({"mode": "lowrank"}, {}),
    "diag without feedback": ({"feedback": "none"}, {}),
}
"""Beside the default form: what is trained, and how. The paper has a width of 256, two layers, 10 to 20 passes with a
patience of 5, batches of 32, a learning rate of 1e-4 and a weight decay of 1e-5. It does not state the width of the
hidden layer: 128 is that of its code."""
SETTINGS: dict[str, Any] = {}
"""Of all training: what is not as usual."""


_trained: dict[tuple[str, str, str], Training] = {}
"""By the study's texts, its encoder and the form: sections of one report share what was trained."""


def _adapter(study: Study, settings: dict[str, Any] | None = None, **form: Any) -> Training:
    key = (study.content, study.encoder.fingerprint, repr((settings, form)))
    if key not in _trained:
        _trained[key] = train_adapter(
            train_collection(study.source, measured=study.collection),
            encoder=study.encoder,
            settings=TrainSettings(**{**SETTINGS, **(settings or {})}),
            progress=study.progress,
            **form,
        )
    return _trained[key]


def _quality(study: Study) -> Result:
    training = _adapter(study)
    common: dict[str, Any] = {
        "split": study.collection.split,
        "encoder": study.encoder,
        "measures": ("nDCG@10", "R@10", "RR@10"),
        "progress": study.progress,
    }
    found = compare(study.source, training.adapter, candidates=CANDIDATES, beside=BESIDE, **common)
    whole = compare(study.source, training.adapter, **common)
    return {"training": training.to_json(), "candidates": found.to_json(), "whole": whole.to_json()}


def _quality_tables(result: Result) -> list[Table]:
    tables = []
    for name, title in (
        ("candidates", f"the base's best {CANDIDATES} ranked again"),
        ("whole", "all documents ranked"),
    ):
        found = result[name]
        if found["parts"]:
            part, first = next(iter(found["parts"].items()))
            tables.append(_values(f"{title}, {first['queries']:,} {part} queries", first))
            tables.append(part_table(found["parts"]))
        else:
            tables.append(_values(f"{title}, {found['queries']:,} queries", found))
    training = result["training"]
    held = [
        (name, *(training[key][measure] for measure in training["base"]))
        for name, key in (("base", "base"), ("adapted", "adapted"))
    ]
    new = training["new_documents"]
    note = (
        f"p {chance(training['p_value'])}, one-sided, over queries that chose nothing; {training['epochs']} passes; of "
        f"{new['queries']:.0f} queries whose documents were no training query's answer nDCG@10 goes from "
        f"{new['base']:.4f} to {new['adapted']:.4f}"
    )
    head = ("held-out train queries", *training["base"])
    tables.append(Table(f"what validation saw, {training['held_out']:,} queries", head, tuple(held), note))
    return tables


def _values(title: str, found: Result) -> Table:
    """All systems and measures over some queries."""
    rows = []
    for system, values in found["values"].items():
        row: list[Any] = [system]
        for measure, value in values.items():
            row += [value, chance(found["p_values"].get(system, {}).get(measure))]
        rows.append(tuple(row))
    head = ("system", *(cell for measure in found["values"]["base"] for cell in (measure, "p")))
    note = "p: paired t-test against the base, over queries; every row ranks the same documents"
    return Table(title, head, tuple(rows), note)


def _bars(result: Result) -> list[Figure]:
    part, shown = headline(result["candidates"])
    values = {name: means["nDCG@10"] for name, means in shown.items()}
    draw = partial(plots.bars, values, label="nDCG@10", ours={"imrnn"})
    of = f", {part} queries" if part else ""
    return [Figure(draw, f"nDCG@10 of every method{of}, the base's best {CANDIDATES} ranked again")]


def _forms(study: Study) -> Result:
    rows, dim = [], study.encoder.dim
    for name, (form, settings) in FORMS.items():
        narrow = {"width": min(form["width"], dim)} if "width" in form else {}
        training = _adapter(study, settings, **{**form, **narrow})
        found = compare(
            study.source,
            training.adapter,
            split=study.collection.split,
            candidates=CANDIDATES,
            encoder=study.encoder,
            progress=study.progress,
        ).to_json()
        part = next(iter(found["parts"]), "all")
        first = found["parts"].get(part, found)
        rows.append(
            {
                "form": name,
                "parameters": _size(AdapterConfig(**{"dim": dim, "width": dim, **form, **narrow})),
                "kept_base": training.adapter.info.kept_base,
                "passes": len(training.curve) - 1,
                "held_out": (training.base["nDCG@10"], training.adapted["nDCG@10"]),
                "part": part,
                "queries": first["queries"],
                "values": {"first": first["values"]["imrnn"], "all": found["values"]["imrnn"]},
                "p": {"first": first["p_values"]["imrnn"], "all": found["p_values"]["imrnn"]},
            }
        )
    return {"rows": rows}


def _size(config: AdapterConfig) -> int:
    """Numbers that a form learns."""
    return sum(prod(shape) for name, shape in shapes(config).items() if not name.startswith("corpus."))


def _forms_tables(result: Result) -> list[Table]:
    rows = tuple(
        (
            row["form"],
            row["parameters"],
            row["passes"],
            *row["held_out"],
            *(
                cell
                for of in ("first", "all")
                for cell in (row["values"][of]["nDCG@10"], chance(row["p"][of]["nDCG@10"]))
            ),
            "yes" if row["kept_base"] else "no",
        )
        for row in result["rows"]
    )
    part = f"{result['rows'][0]['part']}, {result['rows'][0]['queries']:,}"
    head = ("form", "numbers", "passes", "held out, base", "adapted", f"nDCG@10, {part}", "p", "all", "p", "base kept")
    note = "passes: until patience ran out on every fold; the base is kept where held-out queries gain nothing certain"
    return [Table("other forms", head, rows, note)]


def _deletion(study: Study) -> Result:
    adapter = _adapter(study).adapter
    explainer = Explainer(
        study.collection, adapter, encoder=study.encoder, lexicon=study.bench.given, progress=study.progress
    )
    tables = [explainer.deletion(by=name, queries=study.sizes.queries).to_json() for name in ("concepts", "words")]
    texts = list(study.collection.queries.values())[:3]
    return {"tables": tables, "examples": [explainer.explain(text, k=1).to_json() for text in texts]}


def _deletion_tables(result: Result) -> list[Table]:
    tables = []
    for found in result["tables"]:
        p_values = {"random": found["p_random"], "shrunk": found["p_shrunk"]}
        rows = tuple(
            (name, margin, shown(found["lost"][name], ".0%"), found["ndcg"][name], chance(p_values.get(name)))
            for name, margin in found["margin"].items()
        )
        note = (
            f"{shown(found['explained'], '.0%')} of the change is along the named, "
            f"{shown(found['explained_random'], '.0%')} along random ones; "
            "shrunk: the whole change, as short as named leaves it; p: the named cost more margin, one-sided"
        )
        title = f"{found['directions']} {found['table']} taken out of each query's change, {found['queries']} queries"
        tables.append(Table(title, ("taken away", "margin", "of the gain lost", "nDCG@10", "p"), rows, note))
    moved = []
    for example in result["examples"]:
        named = example["readings"]["concepts"]["named"]
        towards = ", ".join(each["name"] for each in named if each["value"] > 0)
        away = ", ".join(each["name"] for each in named if each["value"] < 0)
        moved.append((example["query"], towards, away))
    tables.append(Table("what the adapter moved queries towards", ("query", "towards", "away from"), tuple(moved)))
    return tables


SECTIONS = (
    Section(
        "adapted",
        "How much better?",
        "What does an adapter gain over its frozen base, beside other methods on the same candidates?",
        _quality,
        _quality_tables,
        _bars,
        reading="The first figures are of new queries: an adapter remembers documents that train queries ask for. The "
        "adapter and the methods that learn are trained on the train split alone; their passes and learning rates are "
        "chosen on train queries that are held out, and tested on others. prf-dime-20 is DIME by pseudo-relevance "
        "feedback without 20 % of the dimensions. The paper's own figures are of another "
        "protocol: its code injects relevant documents, stops early on test queries, or tests on some of them.",
        papers=("imrnns",),
        version=2,
    ),
    Section(
        "forms",
        "Which form?",
        "What do the paper's own operator and loss give, and what the other modes?",
        _forms,
        _forms_tables,
        reading="The paper's form has a full matrix of width 256 for each query, a hinge of 0.3 with one BM25 "
        "negative, the mean over the whole corpus (256 documents, drawn for each step, stand for it in training) and a "
        "layer norm. It is trained as in the paper: at most 20 passes, a patience of 5, batches of 32, Adam at 1e-4. "
        "The first figures are of new queries.",
        papers=("imrnns",),
        version=2,
    ),
    Section(
        "deletion",
        "Do the named directions matter?",
        "Is the gain lost when the concepts that explain a query's change are taken out of it?",
        _deletion,
        _deletion_tables,
        reading="The change of a query is read as a few signed concepts. Taking them out should cost more than taking "
        "out as many random ones, and, harder, more than shortening the change as much.",
        papers=("imrnns",),
        sizes=("queries",),
        version=2,
    ),
)
