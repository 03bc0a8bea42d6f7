"""Sections about winners as they are searched: quality, buckets, winners a token, caps, and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent.errors import InputError
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.systems import Latent
from lexent.evaluation.training_split import training_split_beside
from lexent.evaluation.trials import Trials
from lexent.nan_safe import p_text
from lexent.studies.analyses.settings import TUNED_ON, Settings, capped, caps, ks, sweep
from lexent.studies.analyses.table import Table, at, measured
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.retrieval import score_systems, show_scores, show_sweep, sweep_figure
from lexent.studies.reproduction.section import Figure, Result, Section, analysed, first_measure, kept_tables
from lexent.studies.reproduction.study import Study

if TYPE_CHECKING:
    from lexent.lexicon import Lexicon
    from lexent.types import Kind

KS = (4, 8, 20, 40, 80, 160, 400)
"""Winners a token: the paper trains with 400 and goes down to 4."""
QUERY_KS = (4, 8, 16, 32, 80)
QUERY_CAPS: tuple[int | None, ...] = (50, 100, 200, 300, 400, None)
"""The paper's, of its Table 4."""
DOCUMENT_CAPS: tuple[int | None, ...] = (100, 200, 400, 800, 1600, None)
SAMPLED_DOCUMENTS = 100
"""Documents whose tokens are coded one by one."""
BIN_WIDTH, HIGHEST = 0.05, 3.0
"""Of the histogram: values over the mean of their text."""


# --- quality, and real against binary ------------------------------------------------------------------------------


def _quality(study: Study) -> Result:
    found = score_systems(study, study.collection, study.measures)
    own = {system.name: trials_of(study, system).scores(system.recipe) for system in study.systems}
    return {**found, "binary_p": own["uhd"].p_values(own["uhd-real"])}


def _show_quality(result: Result) -> list[Table | Figure]:
    binary, real = result["values"]["uhd"], result["values"]["uhd-real"]
    rows = tuple(
        (name, real[name], binary[name], f"{binary[name] - real[name]:+.4f}", p_text(p))
        for name, p in result["binary_p"].items()
    )
    note = "binary: units that a query and a document share are counted; real: the cosine of their values; p: paired"
    compared = Table("real values and counts", ("measure", "real", "binary", "difference", "p"), rows, note)
    return [*show_scores(result), compared]


def trials_of(study: Study, system: Latent) -> Trials:
    """Trials of a system on the study's collection."""
    return Trials(system, study.collection, measures=study.measures)


# --- buckets -------------------------------------------------------------------------------------------------------


def _buckets(study: Study) -> Result:
    n = study.systems[0].lexicon.buckets
    train = train_split(study) if n > 1 else None
    return {"parts": [_weighed(study, system, train) for system in study.systems], "buckets": n}


def train_split(study: Study) -> Collection | None:
    """Queries to learn weights from, never those that are measured; None where the collection has no train split."""
    found = training_split_beside(study.source, study.collection)
    return found and found.with_queries(TUNED_ON)


def _weighed(study: Study, system: Latent, train: Collection | None) -> Result:
    """A recipe with its buckets alike, alone, by the oracle, and with weights learned from train queries."""
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
            {"label": label, "values": scores.means, "p": None if scores is alike else scores.first_p(alike)}
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
        learned = learn([(system, train)])
    except InputError as error:  # too few queries
        return {}, str(error)
    fixed = ", ".join(f"{weight:g}" for weight in learned.fixed)
    found = {f"fixed: {fixed}": trials.scores(system.recipe.having(buckets=learned.fixed, predicted=False))}
    note = f"fixed and predicted weights are learned from {len(train.queries):,} train queries"
    if learned.predictor is None:
        return found, f"{note}, where predicting them for each query gained nothing"
    able = replace(system, lexicon=system.lexicon.weighing(learned.predictor))
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
    return scoring.Scores.of(each)


def layers_of(lexicon: Lexicon) -> list[str]:
    """What each bucket reads."""
    own = lexicon.own_encoder
    layers = [layer for copy in own.copies for layer in copy.layers] if own is not None else []
    if len(layers) != lexicon.buckets:
        return [f"bucket {place}" for place in range(lexicon.buckets)]
    names = [f"layer {layer}" for layer in layers]
    alike = [names[:place].count(name) for place, name in enumerate(names)]
    return [name if not before else f"{name}, copy {before + 1}" for name, before in zip(names, alike, strict=True)]


def _show_buckets(result: Result) -> list[Table | Figure]:
    found: list[Table | Figure] = []
    for part in result["parts"]:
        measure = first_measure(part)
        note = f"{part['note']}; p: of {measure}, against all alike" if len(part["rows"]) > 1 else part["note"]
        columns = [("weights", "label"), *measured(part["rows"][0]["values"]), ("p", at("p", then=p_text))]
        found.append(Table.of(f"{part['system']}: buckets", part["rows"], columns, note))
    if result["buckets"] > 1:
        part = result["parts"][0]
        values = {row["label"]: row["values"][measure] for row in part["rows"]}
        caption = f"{measure} of {part['system']} by weights of buckets"
        found.append(Figure(plots.bars(values, label=measure), caption))
    return found


# --- k and caps ----------------------------------------------------------------------------------------------------


def _ks(study: Study) -> Result:
    part = study.collection.sampled(documents=study.sizes.tokens, seed=0)
    first = study.systems[0]
    most = first.lexicon.size // first.lexicon.buckets
    own = min(first.recipe.k, most)
    chosen = sorted({k for k in KS if k <= most} | {own})
    common: Any = {"measures": study.measures}
    found = [sweep(part, system, ks(system, chosen), **common) for system in study.systems]
    # Documents as they are; the tokens of queries with fewer winners.
    few = sorted({k for k in QUERY_KS if k <= own} | {own})
    title = f"winners of a query's token; those of documents have {first.recipe.k}"
    named = {f"k {k}": first.recipe.having(query_k=k) for k in few}
    queries_alone = Settings(title, named, f"k {first.recipe.k_for('query')}")
    found.append(sweep(part, replace(first, label=f"{first.name}, queries alone"), queries_alone, **common))
    return {**analysed(found), "documents": len(part.documents), "queries": len(part.queries)}


def _caps(study: Study) -> Result:
    parts = []
    common: Any = {"measures": study.measures}
    for system in study.systems:
        for k in dict.fromkeys((system.recipe.k, system.recipe.k_for("query"))):
            settings = capped(system.recipe.having(query_k=k), "query_cap", QUERY_CAPS, title="units a query keeps")
            called = replace(system, label=f"{system.name}, {k} a token")
            parts.append(sweep(study.collection, called, settings, **common))
    first = study.systems[0]
    parts.append(sweep(study.collection, first, caps(first, DOCUMENT_CAPS), **common))
    return {"documents": len(study.collection.documents), **analysed(parts)}


def _show_caps(result: Result) -> list[Table | Figure]:
    *queries, documents = result["parts"]
    figures = sweep_figure(queries, "units a query keeps"), sweep_figure([documents], "units a document keeps")
    return [*kept_tables(result), *figures]


# --- values before they are binarised ------------------------------------------------------------------------------


def _values(study: Study) -> Result:
    system = study.systems[0]
    found = {"winners of a token": _of_tokens(study, system)}
    sides: dict[str, Kind] = {"documents": "document", "queries": "query"}
    for name, kind in sides.items():
        texts = study.collection.texts if kind == "document" else list(study.collection.queries.values())
        vectors = system.pooled(texts, kind=kind)
        owner = np.repeat(np.arange(len(vectors)), np.diff(vectors.offsets)) * system.lexicon.buckets
        found[name] = _spread(vectors.values, owner + vectors.ids // (vectors.size // system.lexicon.buckets))
    return {"parts": found, "k": system.recipe.k, "sample": min(SAMPLED_DOCUMENTS, len(study.collection.documents))}


def _of_tokens(study: Study, system: Latent) -> Result:
    """The winners of single tokens, each bucket's by themselves."""
    texts, n = study.collection.texts[:SAMPLED_DOCUMENTS], system.lexicon.buckets
    parts = []
    for _, states in system.encoder.batches(texts, kind="document", specials=system.recipe.specials):
        codes = system.lexicon.codes(states, k=system.recipe.k)
        parts.append(codes.values.reshape(len(codes.values) * n, -1))
    values = np.concatenate(parts)
    owner = np.repeat(np.arange(len(values)), values.shape[1])
    kept = values.ravel() > 0
    return _spread(values.ravel()[kept], owner[kept])


def _spread(values: NDArray[np.float32], owner: NDArray[Any]) -> Result:
    """How values differ, as they are, and within the code that they are of: against its mean, and at length 1."""
    _, code = np.unique(owner, return_inverse=True)
    counts = np.maximum(np.bincount(code), 1)
    relative = values / (np.bincount(code, values) / counts)[code]
    unit = values / np.sqrt(np.bincount(code, np.square(values, dtype=np.float64)))[code]
    shares, edges = np.histogram(np.minimum(relative, HIGHEST), bins=np.arange(0, HIGHEST + BIN_WIDTH, BIN_WIDTH))
    low, high = np.quantile(relative, [0.05, 0.95]) if len(relative) else (0.0, 0.0)
    moments: dict[str, Any] = {"mean": values.mean, "sd": values.std, "relative_sd": relative.std}
    moments |= {"unit_mean": unit.mean, "unit_sd": unit.std}
    return {
        "values": len(values),
        **{name: float(moment()) if len(values) else 0.0 for name, moment in moments.items()},
        "low": float(low),
        "high": float(high),
        "histogram": np.stack([edges[:-1], shares / max(len(values), 1)], axis=1).tolist(),
    }


def _show_values(result: Result) -> list[Table | Figure]:
    columns = [
        ("values of", "name"),
        ("number", "values"),
        ("mean", "mean"),
        ("sd", "sd"),
        ("sd, relative", "{relative_sd:.3f}"),
        ("5 to 95 %", "{low:.2f} to {high:.2f}"),
        ("mean at length 1", "{unit_mean:.5f}"),
        ("sd at length 1", "{unit_sd:.5f}"),
    ]
    rows = [{"name": name, **part} for name, part in result["parts"].items()]
    note = (
        f"relative: each value over the mean of its text, or of its token; all k = {result['k']} winners of a token "
        f"alike would have {result['k'] ** -0.5:.5f} at length 1; tokens of {result['sample']} documents; queries with "
        "as many winners as the recipe gives them"
    )
    found = {row["name"]: row["histogram"] for row in rows}
    caption = f"How much values differ; those above {HIGHEST:g} are in the last bar"
    drawn = plots.lines(
        found, x_label="value over the mean of its text", y_label="share of the values", log="", form="steps"
    )
    table = Table.of("values of winners before they are binarised", rows, columns, note)
    return [table, Figure(drawn, caption)]


SECTIONS = (
    Section(
        "quality",
        "Retrieval quality",
        "How good are winners, counted or compared by the cosine, beside one vector a text and words?",
        _quality,
        _show_quality,
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
        _show_buckets,
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
        partial(show_sweep, x_label="k, winners a token"),
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
        _show_caps,
        reading="The largest real values are kept, and then binarised. The paper's queries have as many winners a "
        "token as documents; our recipes give them fewer, which is a cap of another kind.",
        papers=("uhd",),
    ),
    Section(
        "values",
        "Values before they are binarised",
        "Are the values of winners nearly the same, so that counting loses nothing?",
        _values,
        _show_values,
        reading="In the paper the relative spread is 0.016: counts are the cosine but for a factor. A wider spread "
        "here means that binarising changes the scores; what it does to rankings stands under quality.",
        papers=("uhd",),
    ),
)
