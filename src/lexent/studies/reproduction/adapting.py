"""Sections about adapters: how much better, by which form, at what cost, and whether the explanation matters."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from lexent.adapters import AdapterConfig, TrainSettings
from lexent.adapters.adapter import shapes
from lexent.bounded_cache import BoundedCache
from lexent.evaluation.adapting import train_adapter, train_collection
from lexent.evaluation.comparison import compare
from lexent.nan_safe import p_text, shown
from lexent.studies.adapter_explanations import Explainer
from lexent.studies.analyses.table import Column, Table, at, measured
from lexent.studies.reproduction.retrieval import bars_of, part_table, score_table
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study

if TYPE_CHECKING:
    from lexent.evaluation.adapting import Training

CANDIDATES = 100
"""The base retriever's best, which every method ranks again: the paper's form of a test."""
BESIDE = (
    *("prf-dime-20", "prf-dime-40", "prf-dime-60", "prf-dime-80"),
    *("search-adaptor", "hypencoder-2", "hypencoder-8"),
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


_trained: BoundedCache[tuple[str, str, str], Training] = BoundedCache(16)
"""By the study's texts, its encoder and the form: sections of one report share what was trained."""


def _adapter(study: Study, settings: dict[str, Any] | None = None, **form: Any) -> Training:
    key = (study.content, study.encoder.fingerprint, repr((settings, form)))
    chosen = TrainSettings(**{**SETTINGS, **(settings or {})})

    def train() -> Training:
        source = train_collection(study.source, measured=study.collection)
        return train_adapter(source, encoder=study.encoder, settings=chosen, **form)

    return _trained.get_or_make(key, train)


def _compared(study: Study, training: Training, **options: Any) -> Result:
    common: Any = {"split": study.collection.split, "encoder": study.encoder}
    return compare(study.source, training.adapter, **common, **options).to_json()


def _quality(study: Study) -> Result:
    training = _adapter(study)
    measures = ("nDCG@10", "R@10", "RR@10")
    return {
        "training": training.to_json(),
        "candidates": _compared(study, training, measures=measures, candidates=CANDIDATES, beside=BESIDE),
        "whole": _compared(study, training, measures=measures),
    }


def _show_quality(result: Result) -> list[Table | Figure]:
    tables = []
    ranked = f"the base's best {CANDIDATES} ranked again"
    note = "p: paired t-test against the base, over queries; every row ranks the same documents"
    for name, title in (("candidates", ranked), ("whole", "all documents ranked")):
        found = result[name]
        part, first = next(iter(found["parts"].items()), ("", found))
        which = f"{first['queries']:,} {part} queries" if part else f"{first['queries']:,} queries"
        tables.append(score_table(f"{title}, {which}", first, note=note))
        tables += [part_table(found["parts"])] if part else []
    training = result["training"]
    new = training["new_documents"]
    note = (
        f"p {p_text(training['p_value'])}, one-sided, over queries that chose nothing; {training['epochs']} passes; of "
        f"{new['queries']:.0f} queries whose documents were no training query's answer nDCG@10 goes from "
        f"{new['base']:.4f} to {new['adapted']:.4f}"
    )
    held_out = [{"name": name, "values": training[name]} for name in ("base", "adapted")]
    columns = [("held-out train queries", "name"), *measured(training["base"])]
    tables.append(Table.of(f"what validation saw, {training['held_out']:,} queries", held_out, columns, note))
    return [*tables, bars_of(result["candidates"], "every method", of=f", {ranked}", ours={"imrnn"})]


def _forms(study: Study) -> Result:
    rows, dim = [], study.encoder.dim
    for name, (given, settings) in FORMS.items():
        form = {**given, "width": min(given["width"], dim)} if "width" in given else given
        training = _adapter(study, settings, **form)
        found = _compared(study, training, candidates=CANDIDATES)
        part = next(iter(found["parts"]), "all")
        first = found["parts"].get(part, found)
        config = AdapterConfig(**{"dim": dim, "width": dim, **form})
        learned = (shape for name, shape in shapes(config).items() if not name.startswith("corpus."))
        rows.append(
            {
                "form": name,
                "parameters": sum(map(prod, learned)),
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


def _show_forms(result: Result) -> list[Table]:
    columns: list[Column] = [
        ("form", "form"),
        ("numbers", "parameters"),
        ("passes", "passes"),
        ("held out, base", at("held_out", 0)),
        ("adapted", at("held_out", 1)),
        ("nDCG@10, {part}, {queries:,}".format_map(result["rows"][0]), at("values", "first", "nDCG@10")),
        ("p", at("p", "first", "nDCG@10", then=p_text)),
        ("all", at("values", "all", "nDCG@10")),
        ("p", at("p", "all", "nDCG@10", then=p_text)),
        ("base kept", at("kept_base", then=lambda kept: "yes" if kept else "no")),
    ]
    note = "passes: until patience ran out on every fold; the base is kept where held-out queries gain nothing certain"
    return [Table.of("other forms", result["rows"], columns, note)]


def _deletion(study: Study) -> Result:
    adapter = _adapter(study).adapter
    explainer = Explainer(study.collection, adapter, encoder=study.encoder, lexicon=study.bench.given)
    tables = [explainer.deletion(by=name, queries=study.sizes.queries).to_json() for name in ("concepts", "words")]
    texts = list(study.collection.queries.values())[:3]
    return {"tables": tables, "examples": [explainer.explain(text, k=1).to_json() for text in texts]}


def _show_deletion(result: Result) -> list[Table]:
    tables = []
    for found in result["tables"]:
        p_values = {"random": found["p_random"], "shrunk": found["p_shrunk"]}
        rows = tuple(
            (name, margin, shown(found["lost"][name], ".0%"), found["ndcg"][name], p_text(p_values.get(name)))
            for name, margin in found["margin"].items()
        )
        note = (
            f"{shown(found['explained'], '.0%')} of the change is along the named, "
            f"{shown(found['explained_random'], '.0%')} along random ones; "
            "shrunk: the whole change, as short as named leaves it; p: the named cost more margin, one-sided"
        )
        title = f"{found['directions']} {found['table']} taken out of each query's change, {found['queries']} queries"
        tables.append(Table(title, ("taken away", "margin", "of the gain lost", "nDCG@10", "p"), rows, note))

    def moved(sign: int) -> Any:
        return lambda example: ", ".join(
            each["name"] for each in example["readings"]["concepts"]["named"] if sign * each["value"] > 0
        )

    columns = [("query", "query"), ("towards", moved(1)), ("away from", moved(-1))]
    return [*tables, Table.of("what the adapter moved queries towards", result["examples"], columns)]


SECTIONS = (
    Section(
        "adapted",
        "How much better?",
        "What does an adapter gain over its frozen base, beside other methods on the same candidates?",
        _quality,
        _show_quality,
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
        _show_forms,
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
        _show_deletion,
        reading="The change of a query is read as a few signed concepts. Taking them out should cost more than taking "
        "out as many random ones, and, harder, more than shortening the change as much.",
        papers=("imrnns",),
        sizes=("queries",),
        version=2,
    ),
)
