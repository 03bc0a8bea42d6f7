"""Sections about adapters: how much better, by which form, at what cost, and whether the explanation matters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lexent.evaluation.analyses.table import Table, chance
from lexent.evaluation.reproduction import plots
from lexent.evaluation.reproduction.section import Figure, Result, Section
from lexent.evaluation.reproduction.study import Study

if TYPE_CHECKING:
    from lexent.evaluation.adapting import Training

CANDIDATES = 100
"""The base retriever's best, which every method ranks again: the paper's form of a test."""
BESIDE = ("dime-20", "dime-40", "dime-60", "dime-80", "search-adaptor", "hypencoder-2", "hypencoder-8")
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "paper: full, hinge 0.3, BM25 negatives, corpus mean, layer norm": (
        {"mode": "full", "width": 64, "start": "pca", "feedback": "corpus", "layer_norm": True, "hidden": 32},
        {"loss": "hinge", "negatives": "bm25", "n_negatives": 1, "lr": 1e-4},
    ),
    "lowrank": ({"mode": "lowrank"}, {}),
    "diag without feedback": ({"feedback": "none"}, {}),
}
"""Beside the default form: what is trained, and how."""
SETTINGS: dict[str, Any] = {}
"""Of all training: what is not as usual."""
SHORT: dict[str, Any] = {"epochs": 6, "folds": 2}
"""Of the forms that are tried beside the default one."""


_trained: dict[tuple[str, str, str], Training] = {}
"""By the study's texts, its encoder and the form: sections of one report share what was trained."""


def _adapter(study: Study, settings: dict[str, Any] | None = None, **form: Any) -> Training:
    from lexent.adapters import TrainSettings
    from lexent.evaluation.adapting import train_adapter

    key = (study.content, study.encoder.fingerprint, repr((settings, form)))
    if key not in _trained:
        _trained[key] = train_adapter(
            study.source,
            split="train",
            encoder=study.encoder,
            settings=TrainSettings(**{**SETTINGS, **(settings or {})}),
            progress=study.progress,
            **form,
        )
    return _trained[key]


def _quality(study: Study) -> Result:
    from lexent.evaluation.comparison import compare

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
        rows = []
        for system, values in found["values"].items():
            row: list[Any] = [system]
            for measure, value in values.items():
                row += [value, chance(found["p_values"].get(system, {}).get(measure))]
            rows.append(tuple(row))
        head = ("system", *(cell for measure in found["values"]["base"] for cell in (measure, "p")))
        note = "p: paired t-test against the base, over queries; every row ranks the same documents"
        tables.append(Table(f"{title}, {found['queries']:,} queries", head, tuple(rows), note))
    training = result["training"]
    held = [
        (name, *(training[key][measure] for measure in training["base"]))
        for name, key in (("base", "base"), ("adapted", "adapted"))
    ]
    new = training["new_documents"]
    note = (
        f"p {chance(training['p_value'])}, one-sided; {training['epochs']} passes; of {new['queries']:.0f} queries "
        f"whose documents were no training query's answer nDCG@10 goes from {new['base']:.4f} to {new['adapted']:.4f}"
    )
    head = ("held-out train queries", *training["base"])
    tables.append(Table(f"what validation saw, {training['held_out']:,} queries", head, tuple(held), note))
    parts = result["whole"]["parts"]
    if parts:
        rows = [
            (title, part["queries"], part["values"]["base"], part["values"]["imrnn"]) for title, part in parts.items()
        ]
        measure = next(iter(parts.values()))["measure"]
        tables.append(
            Table(
                "memory and the rest",
                ("queries", "how many", f"{measure}, base", "imrnn"),
                tuple(rows),
                "an adapter remembers the documents that train queries asked for; only the second row is of others",
            )
        )
    return tables


def _bars(result: Result) -> list[Figure]:
    values = {name: means["nDCG@10"] for name, means in result["candidates"]["values"].items()}
    draw = partial(plots.bars, values, label="nDCG@10", ours={"imrnn"})
    return [Figure(draw, f"nDCG@10 of every method, the base's best {CANDIDATES} ranked again")]


def _forms(study: Study) -> Result:
    from lexent.evaluation.comparison import compare

    rows = []
    for name, (form, settings) in FORMS.items():
        narrow = {"width": min(form["width"], study.encoder.dim)} if "width" in form else {}
        training = _adapter(study, {**SHORT, **settings}, **{**form, **narrow})
        found = compare(
            study.source,
            training.adapter,
            split=study.collection.split,
            candidates=CANDIDATES,
            encoder=study.encoder,
            progress=study.progress,
        )
        rows.append(
            {
                "form": name,
                "parameters": training.adapter.parameters,
                "kept_base": training.adapter.info.kept_base,
                "held_out": (training.base["nDCG@10"], training.adapted["nDCG@10"]),
                "values": found.values["imrnn"],
                "p": found.p_values["imrnn"],
            }
        )
    return {"rows": rows}


def _forms_tables(result: Result) -> list[Table]:
    rows = tuple(
        (
            row["form"],
            row["parameters"],
            *row["held_out"],
            row["values"]["nDCG@10"],
            chance(row["p"]["nDCG@10"]),
            "yes" if row["kept_base"] else "no",
        )
        for row in result["rows"]
    )
    head = ("form", "numbers", "held out, base", "adapted", "test nDCG@10", "p", "base kept")
    note = f"two folds, at most {SHORT['epochs']} passes; the base is kept where held-out queries gain nothing certain"
    return [Table("other forms", head, rows, note)]


def _deletion(study: Study) -> Result:
    from lexent.evaluation.explained import Explainer

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
            (name, found["margin"][name], f"{found['lost'][name]:.0%}", found["ndcg"][name], chance(p_values.get(name)))
            for name in found["margin"]
        )
        note = (
            f"{found['explained']:.0%} of the change is along the named, {found['explained_random']:.0%} along random "
            "ones; shrunk: the whole change, as short as named leaves it; p: the named cost more margin, one-sided"
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
        reading="The adapter and the methods that learn are trained on the train split alone; their passes and "
        "learning rates are chosen on train queries that are held out. The paper's own figures are of another "
        "protocol: its code injects relevant documents, stops early on test queries, or tests on some of them.",
        papers=("imrnns",),
    ),
    Section(
        "forms",
        "Which form?",
        "What do the paper's own operator and loss give, and what the other modes?",
        _forms,
        _forms_tables,
        reading="The paper's form has a full matrix for each query, a hinge of 0.3 with one BM25 negative, the mean "
        "over the whole corpus and a layer norm; here at width 64, so that it trains on a CPU.",
        papers=("imrnns",),
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
    ),
)
