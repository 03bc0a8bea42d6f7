"""Sections about winners as they are searched: quality, buckets, winners a token, and caps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.errors import InputError
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.systems import Latent
from lexent.evaluation.training_split import training_split_beside
from lexent.evaluation.trials import Trials
from lexent.studies.analyses import caps, ks
from lexent.studies.analyses.settings import TUNED_ON
from lexent.studies.analyses.sweep import Sweep, sweep
from lexent.studies.analyses.table import Table, chance
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.retrieval import score_bars, score_systems, score_tables, swept
from lexent.studies.reproduction.section import Figure, Result, Section, analysed
from lexent.studies.reproduction.study import Study
from lexent.studies.sampling import sampled

if TYPE_CHECKING:
    from lexent.lexicon import Lexicon

KS = (4, 8, 20, 40, 80, 160, 400)
"""Winners a token: the paper trains with 400 and goes down to 4."""
QUERY_KS = (4, 8, 16, 32, 80)
QUERY_CAPS: tuple[int | None, ...] = (50, 100, 200, 300, 400, None)
"""The paper's, of its Table 4."""
DOCUMENT_CAPS: tuple[int | None, ...] = (100, 200, 400, 800, 1600, None)


# --- quality, and real against binary ------------------------------------------------------------------------------


def _quality(study: Study) -> Result:
    systems = [*study.systems, *(study.bench.system(name) for name in ("dense", "bm25"))]
    found = score_systems(study, study.collection, study.measures, systems)
    own = {system.name: trials_of(study, system).scores(system.recipe).per_query for system in study.systems}
    binary, real = own["uhd"], own["uhd-real"]
    found["binary_p"] = {name: scoring.p_value(binary[name], real[name]) for name in binary}
    return found


def _quality_tables(result: Result) -> list[Table]:
    binary, real = result["values"]["uhd"], result["values"]["uhd-real"]
    rows = tuple(
        (name, real[name], binary[name], f"{binary[name] - real[name]:+.4f}", chance(p))
        for name, p in result["binary_p"].items()
    )
    note = "binary: units that a query and a document share are counted; real: the cosine of their values; p: paired"
    compared = Table("real values and counts", ("measure", "real", "binary", "difference", "p"), rows, note)
    return [*score_tables(result), compared]


def trials_of(study: Study, system: Latent, collection: Collection | None = None) -> Trials:
    """Trials of a system on the study's collection."""
    return Trials(system, collection or study.collection, measures=study.measures, progress=study.progress)


# --- buckets -------------------------------------------------------------------------------------------------------


def _buckets(study: Study) -> Result:
    n = study.systems[0].lexicon.buckets
    train = train_split(study) if n > 1 else None
    return {"parts": [_weighed(study, system, train) for system in study.systems], "buckets": n}


def train_split(study: Study) -> Collection | None:
    """Queries to learn weights from, never those that are measured; None where the collection has no train split."""
    found = training_split_beside(study.source, study.collection)
    if found is None:
        return None
    names = list(found.queries)
    kept = {names[place * len(names) // TUNED_ON] for place in range(TUNED_ON)} if len(names) > TUNED_ON else {*names}
    queries = {name: text for name, text in found.queries.items() if name in kept}
    return replace(found, queries=queries, qrels={name: found.qrels[name] for name in queries})


def _weighed(study: Study, system: Latent, train: Collection | None) -> Result:
    """A recipe with its buckets alike, alone, by the oracle, and weighed as train queries taught."""
    trials, recipe, lexicon = trials_of(study, system), system.recipe, system.lexicon
    n = lexicon.buckets
    alike = trials.scores(recipe.having(buckets=(), predicted=False))
    found = {"all alike" if n > 1 else layers_of(lexicon)[0]: alike}
    note = "one bucket: there is nothing to weigh"
    if n > 1:
        alone = [
            trials.scores(recipe.having(buckets=tuple(float(at == place) for at in range(n)), predicted=False))
            for place in range(n)
        ]
        found |= {f"{name} alone": scores for name, scores in zip(layers_of(lexicon), alone, strict=True)}
        found["oracle: each query's best bucket"] = _oracle(alone)
        more, note = _learned(study, system, trials, train)
        found |= more
    return {
        "system": system.name,
        "note": note,
        "rows": [
            {"label": label, "values": scores.means, "p": None if scores is alike else _p(scores, alike)}
            for label, scores in found.items()
        ],
    }


def _learned(
    study: Study, system: Latent, trials: Trials, train: Collection | None
) -> tuple[dict[str, scoring.Scores], str]:
    from lexent.evaluation.bucket_training import learn

    if train is None:
        return {}, "no train split to learn weights from"
    try:
        taught = learn([(system, train)], progress=study.progress)
    except InputError as error:  # too few queries
        return {}, str(error)
    fixed = ", ".join(f"{weight:g}" for weight in taught.fixed)
    found = {f"fixed: {fixed}": trials.scores(system.recipe.having(buckets=taught.fixed, predicted=False))}
    note = f"fixed and predicted weights are learned from {len(train.queries):,} train queries"
    if taught.predictor is None:
        return found, f"{note}, where predicting them for each query gained nothing"
    able = replace(system, lexicon=system.lexicon.weighing(taught.predictor))
    recipe = system.recipe.having(buckets=(), predicted=True)
    return {**found, "predicted for each query": trials_of(study, able).scores(recipe)}, note


def _oracle(alone: Sequence[scoring.Scores]) -> scoring.Scores:
    """For each query and measure the best of several."""
    each = {
        measure: {
            query: max(scores.per_query[measure].get(query, 0.0) for scores in alone)
            for query in dict.fromkeys(query for scores in alone for query in scores.per_query[measure])
        }
        for measure in alone[0].per_query
    }
    means = {measure: float(np.mean(list(values.values()))) for measure, values in each.items()}
    return scoring.Scores(means=means, per_query=each)


def _p(scores: scoring.Scores, other: scoring.Scores) -> float:
    first = next(iter(scores.means))
    return scoring.p_value(scores.per_query[first], other.per_query[first])


def layers_of(lexicon: Lexicon) -> list[str]:
    """What each bucket reads."""
    own = lexicon.own_encoder
    layers = [layer for copy in own.copies for layer in copy.layers] if own is not None else []
    if len(layers) != lexicon.buckets:
        return [f"bucket {place}" for place in range(lexicon.buckets)]
    names = [f"layer {layer}" for layer in layers]
    alike = [names[:place].count(name) for place, name in enumerate(names)]
    return [name if not before else f"{name}, copy {before + 1}" for name, before in zip(names, alike, strict=True)]


def _bucket_tables(result: Result) -> list[Table]:
    tables = []
    for part in result["parts"]:
        measures = tuple(part["rows"][0]["values"])
        rows = tuple((row["label"], *row["values"].values(), chance(row["p"])) for row in part["rows"])
        note = f"{part['note']}; p: of {measures[0]}, against all alike" if len(rows) > 1 else part["note"]
        tables.append(Table(f"{part['system']}: buckets", ("weights", *measures, "p"), rows, note))
    return tables


def _bucket_figures(result: Result) -> list[Figure]:
    if result["buckets"] < 2:
        return []
    part = result["parts"][0]
    measure = next(iter(part["rows"][0]["values"]))
    values = {row["label"]: row["values"][measure] for row in part["rows"]}
    return [Figure(partial(plots.bars, values, label=measure), f"{measure} of {part['system']} by weights of buckets")]


# --- k and caps ----------------------------------------------------------------------------------------------------


def _ks(study: Study) -> Result:
    part = sampled(study.collection, documents=study.sizes.tokens, seed=0)
    first = study.systems[0]
    most = first.lexicon.size // first.lexicon.buckets
    chosen = sorted({k for k in KS if k <= most} | {min(first.recipe.k, most)})
    common: Any = {"measures": study.measures, "progress": study.progress}
    found = [ks(part, system, ks=chosen, **common) for system in study.systems]
    found.append(_query_ks(study, first, part, most=min(first.recipe.k, most)))
    return {**analysed(found), "documents": len(part.documents), "queries": len(part.queries)}


def _query_ks(study: Study, system: Latent, part: Collection, *, most: int) -> Sweep:
    """Documents as they are; the tokens of queries with fewer winners."""
    trials = trials_of(study, replace(system, label=f"{system.name}, queries alone"), part)
    named = {f"k {k}": system.recipe.having(query_k=k) for k in sorted({k for k in QUERY_KS if k <= most} | {most})}
    own = f"k {system.recipe.k_for('query')}"
    title = f"winners of a query's token; those of documents have {system.recipe.k}"
    return sweep(trials, named, title=title, reference=own if own in named else None, progress=study.progress)


def _caps(study: Study) -> Result:
    parts = []
    for system in study.systems:
        for k in dict.fromkeys((system.recipe.k, system.recipe.k_for("query"))):
            trials = trials_of(study, replace(system, label=f"{system.name}, {k} a token"))
            named = {
                "all" if cap is None else f"at most {cap}": system.recipe.having(query_cap=cap, query_k=k)
                for cap in QUERY_CAPS
            }
            parts.append(sweep(trials, named, title="units a query keeps", reference="all", progress=study.progress))
    documents = caps(
        study.collection, study.systems[0], caps=DOCUMENT_CAPS, measures=study.measures, progress=study.progress
    )
    return {"documents": len(study.collection.documents), **analysed([*parts, documents])}


def _cap_figures(result: Result) -> list[Figure]:
    *queries, documents = result["parts"]
    return [
        *swept({"parts": queries}, "units a query keeps"),
        *swept({"parts": [documents]}, "units a document keeps"),
    ]


SECTIONS = (
    Section(
        "quality",
        "Retrieval quality",
        "How good are winners, counted or compared by the cosine, beside one vector a text and words?",
        _quality,
        _quality_tables,
        score_bars,
        reading="The encoder here is already trained to compare texts, the paper's was not; collections differ too. "
        "What can be compared is the order, and how near counts are to real values. Dense is the encoder as it was "
        "before it was trained with the lexicon.",
        papers=("uhd",),
        version=2,
    ),
    Section(
        "buckets",
        "Buckets, alone and together",
        "What does each bucket find, all together, and the best one for each query?",
        _buckets,
        _bucket_tables,
        _bucket_figures,
        reading="The oracle looks at the judgements: it is what choosing could gain, not a system. Weights are learned "
        "from a train split only, by real values and by counts apart, whose scores differ in scale.",
        papers=("uhd",),
        version=2,
    ),
    Section(
        "k",
        "Winners a token has",
        "How does quality change with k, for one lexicon?",
        _ks,
        figures=partial(swept, x_label="k, winners a token"),
        reading="One lexicon used with several k on both sides, queries not capped; then documents as the recipe has "
        "them, and queries with fewer. Documents are a sample, those that answer a query first.",
        papers=("uhd",),
        sizes=("tokens",),
    ),
    Section(
        "caps",
        "Units that queries and documents keep",
        "How many of its strongest units does a query need, by real values and by counts?",
        _caps,
        figures=_cap_figures,
        reading="The largest real values are kept, and then binarised. The paper's queries have as many winners a "
        "token as documents; our recipes give them fewer, which is a cap of another kind.",
        papers=("uhd",),
    ),
)
