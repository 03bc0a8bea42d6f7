"""Sections about training winners: how many units a bucket needs, and buckets trained together, apart, or as one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent import recipes
from lexent.encoders.buckets import BucketEncoder, BucketParts
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import counter
from lexent.evaluation.runs import from_top
from lexent.lexicon import Concept, Concepts, Lexicon
from lexent.lexicon.lexicon import LexiconInfo
from lexent.pipeline import Pipeline
from lexent.search.document_scorer import DocumentScorer
from lexent.studies.analyses.table import Table, chance
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.held import held
from lexent.studies.reproduction.losses import lessons
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study
from lexent.studies.sampling import sampled
from lexent.training.uhd.config import WinnerConfig
from lexent.training.uhd.train import joined
from lexent.weighting import as_query, pool, unit

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon
    from lexent.training.pairs import Pairs
    from lexent.training.uhd.config import WinnerConfig
    from lexent.types import SparseVectors

TRAINED_K = 16
"""Winners a token has in the lexicons that are trained here: they are small."""
SHARES = (0.25, 0.5, 1.0, 2.0)
"""Of the usual number of units."""
CHANGE_RANK = 4
"""Of the change of the encoder where buckets are compared: what they share or have for themselves."""
LIGHT: dict[str, Any] = {
    "batch": 16, "hard": 0, "balance": None, "document_tokens": 48, "dead_after": 50, "revive_every": 25,
    "lr": 1e-3, "encoder_lr": 3e-4,
}  # fmt: skip
RECIPES = ("uhd", "uhd-real")


# --- small lexicons ------------------------------------------------------------------------------------------------


def _config(study: Study, *, units: int, k: int, **settings: Any) -> WinnerConfig:
    given = {"d_sae": units, "k": min(k, units), "groups": min(16, units), "steps": study.sizes.steps}
    return WinnerConfig(**{**LIGHT, **given, **settings})


def _trained(study: Study, pairs: Pairs, configs: list[WinnerConfig]) -> tuple[Lexicon, Encoder, Any]:
    """A lexicon whose buckets are trained one run after the other, its encoder, and where the last run ended.

    An encoder that was not changed and whose last layer is read is the study's own.
    """
    from lexent.training.uhd.trainer import WinnerTrainer

    base: Any = study.encoder
    units, copies, last = [], [], None
    report = study.progress
    steps = study.sizes.steps
    for config in configs:
        trainer = WinnerTrainer(base, pairs, config)
        last = trainer.run(progress=None if report is None else lambda now: report("training", now.step, steps))
        found, copy = trainer.result()
        units.append(found)
        copies.append(copy)
    whole = joined(units)
    own: Any = base
    if any(config.rank != 0 for config in configs):
        parts = BucketParts(base.id, base.fingerprint, tuple(copies))
        own = BucketEncoder.of(parts, id="small", base=base)
    size = whole.config.d_sae
    info = LexiconInfo(f"small-{size}", own.id, own.fingerprint, "tokens")
    concepts = Concepts([Concept(latent, f"concept {latent}") for latent in range(size)])
    return Lexicon(whole, concepts, info), own, last


def _pooled(study: Study, lexicon: Lexicon, encoder: Encoder, part: Collection) -> tuple[SparseVectors, SparseVectors]:
    """Documents and queries, pooled; the states of documents are held where the encoder is the study's."""
    recipe = _recipe("uhd", lexicon)
    pipeline = Pipeline(encoder, lexicon, recipe)
    if encoder is study.encoder:
        codes = held(study).codes(lexicon, recipe.k, progress=study.progress)[0]
        documents = pool(codes, size=lexicon.size, how=recipe.pool)
    else:
        advance = counter(study.progress, lexicon.name, kind="document", total=len(part.documents))
        documents = pipeline.represent(part.texts, kind="document", progress=advance)
    return documents, pipeline.represent(list(part.queries.values()), kind="query")


def _recipe(name: str, lexicon: Lexicon, **settings: Any) -> Any:
    return recipes.get(name).having(k=lexicon.sae.config.k, query_k=None, **settings)


def _measured(
    study: Study, lexicon: Lexicon, vectors: tuple[SparseVectors, SparseVectors], part: Collection, **settings: Any
) -> dict[str, scoring.Scores]:
    """What each recipe finds with a lexicon. settings: of the recipes."""
    wanted = scoring.parse(list(study.measures))
    depth = max(measure.params.get("cutoff") or 1000 for measure in wanted)
    found = {}
    for name in RECIPES:
        recipe = _recipe(name, lexicon, **settings)
        documents, queries = (unit(one, buckets=lexicon.buckets) if recipe.unit else one for one in vectors)
        asked = as_query(queries, recipe, buckets=lexicon.buckets)
        top = DocumentScorer.from_vectors(documents, recipe).top(asked, depth + 1)
        run = from_top(part, top.positions, scores=top.scores, depth=depth)
        found[name] = scoring.score(part.qrels, run, wanted)
    return found


def _row(name: str, scores: dict[str, scoring.Scores], vectors: tuple[SparseVectors, ...], last: Any) -> Result:
    active = [float(np.diff(one.offsets).mean()) if len(one) else 0.0 for one in vectors]
    return {
        "name": name,
        "values": {recipe: each.means for recipe, each in scores.items()},
        "active": active,
        "used": float(np.mean(np.bincount(vectors[0].ids, minlength=vectors[0].size) > 0)),
        "accuracy": None if last is None else last.binary_accuracy,
    }


# --- how many units ------------------------------------------------------------------------------------------------


def _units(study: Study) -> Result:
    pairs, where = lessons(study)
    part, rows = held(study).collection, []
    for share in SHARES:
        n = max(round(share * study.sizes.latents), TRAINED_K)
        lexicon, encoder, last = _trained(study, pairs, [_config(study, units=n, k=TRAINED_K, rank=0)])
        vectors = _pooled(study, lexicon, encoder, part)
        row = _row(f"{n:,}", _measured(study, lexicon, vectors, part), vectors, last)
        rows.append({**row, "units": n})
    return {"rows": rows, **_setting(study, pairs, where, part)}


# --- joint, separate, single ---------------------------------------------------------------------------------------


def _joint(study: Study) -> Result:
    from lexent.training.uhd.trainer import resolved

    encoder: Any = study.encoder
    last = resolved(encoder, (-1,))[0]
    layers = (max(last // 2, 1), last) if last > 1 else (0, last)
    n, k = max(study.sizes.latents, 2 * TRAINED_K), TRAINED_K
    pairs, where = lessons(study)
    part = sampled(study.collection, documents=study.sizes.tokens, seed=0)
    half: Any = {"units": n // 2, "k": k // 2, "rank": CHANGE_RANK}
    runs = {
        f"one bucket, layer {last}": [_config(study, units=n, k=k, rank=CHANGE_RANK)],
        "two, trained together": [_config(study, **half, layers=layers)],
        "two, trained apart": [_config(study, **half, layers=(layer,)) for layer in layers],
    }
    rows: list[Result] = []
    first: Any = None
    for name, configs in runs.items():
        lexicon, own, ended = _trained(study, pairs, configs)
        vectors = _pooled(study, lexicon, own, part)
        scores = _measured(study, lexicon, vectors, part)
        first = first or scores
        rows.append({**_row(name, scores, vectors, ended), "p": None if scores is first else _p(scores, first)})
    for place, layer in enumerate(layers):  # of those that were trained apart, each by itself
        alone = tuple(float(at == place) for at in range(len(layers)))
        scores = _measured(study, lexicon, vectors, part, buckets=alone)
        own_part = tuple(_bucket(one, place, len(layers)) for one in vectors)
        rows.append({**_row(f"of those, layer {layer} alone", scores, own_part, None), "p": _p(scores, first)})
    return {"rows": rows, "units": n, "k": k, **_setting(study, pairs, where, part)}


def _bucket(vectors: SparseVectors, place: int, buckets: int) -> SparseVectors:
    """What vectors have in one bucket, numbered from 0."""
    size = vectors.size // buckets
    kept = vectors.ids // size == place
    owner = np.repeat(np.arange(len(vectors)), np.diff(vectors.offsets))
    counts = np.bincount(owner[kept], minlength=len(vectors))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(
        vectors, ids=vectors.ids[kept] - size * place, values=vectors.values[kept], offsets=offsets, size=size
    )


def _p(scores: dict[str, scoring.Scores], other: dict[str, scoring.Scores]) -> dict[str, float]:
    """Of the first measure, by recipe."""
    found = {}
    for name, each in scores.items():
        first = next(iter(each.means))
        found[name] = scoring.p_value(each.per_query[first], other[name].per_query[first])
    return found


def _setting(study: Study, pairs: Pairs, where: str, part: Collection) -> Result:
    return {
        "pairs": len(pairs),
        "where": where,
        "steps": study.sizes.steps,
        "documents": len(part.documents),
        "queries": len(part.queries),
    }


def _tables(result: Result, *, title: str, first: str) -> list[Table]:
    measures = list(next(iter(result["rows"][0]["values"].values())))
    tested = "p" in result["rows"][0]
    rows = []
    for row in result["rows"]:
        cells: list[Any] = [row["name"]]
        for recipe, means in row["values"].items():
            cells += means.values()
            if tested:
                cells.append("" if row["p"] is None else chance(row["p"][recipe]))
        accuracy = "" if row["accuracy"] is None else f"{row['accuracy']:.0%}"
        rows.append((*cells, *(f"{active:,.0f}" for active in row["active"]), f"{row['used']:.0%}", accuracy))
    heads = [
        cell
        for recipe in RECIPES
        for cell in (*(f"{recipe}, {measure}" for measure in measures), *(("p",) if tested else ()))
    ]
    head = (first, *heads, "active, documents", "queries", "units in use", "accuracy")
    same = (
        f"{result['units']:,} units and {result['k']} winners a token in all; "
        if tested
        else f"{TRAINED_K} winners a token; "
    )
    note = (
        f"{same}trained here, {result['steps']} steps on {result['pairs']:,} pairs from {result['where']}; measured on "
        f"{result['documents']:,} documents and {result['queries']:,} queries; accuracy: of the last batch, by counts"
        f"{f'; p: of {measures[0]}, against the first row' if tested else ''}"
    )
    return [Table(title, head, tuple(rows), note)]


def _unit_figures(result: Result) -> list[Figure]:
    measure = next(iter(result["rows"][0]["values"]["uhd"]))
    found = {name: [(row["units"], row["values"][name][measure]) for row in result["rows"]] for name in RECIPES}
    draw = partial(plots.lines, found, x_label="units of a bucket", y_label=measure)
    return [Figure(draw, f"{measure} against the number of units, at the same k")]


def _joint_figures(result: Result) -> list[Figure]:
    measure = next(iter(result["rows"][0]["values"]["uhd"]))
    names = [row["name"] for row in result["rows"]]
    values = {name: [row["values"][name][measure] for row in result["rows"]] for name in RECIPES}
    return [Figure(partial(plots.groups, names, values, label=measure), f"{measure} of buckets")]


SMALL = (
    "Small lexicons, trained in minutes on this machine: their order is to be read, not their height. A real one has "
    "80 times the units and is trained on far more pairs."
)
SECTIONS = (
    Section(
        "units",
        "How many units",
        "How does quality change with the number of units, at the same k?",
        _units,
        partial(_tables, title="buckets of other sizes", first="units"),
        _unit_figures,
        reading=f"{SMALL} The encoder stays as it is, and its last layer is read.",
        papers=("uhd",),
        trains=True,
        sizes=("tokens", "latents", "steps", "lessons"),
    ),
    Section(
        "joint",
        "Buckets trained together, apart, or as one",
        "Are several buckets better than a large one, and do they need encoders of their own?",
        _joint,
        partial(_tables, title="one bucket and two", first="buckets"),
        _joint_figures,
        reading=f"{SMALL} The encoder learns by a change of rank {CHANGE_RANK}: one for each bucket where they are "
        "trained apart, one for both together. The paper has six buckets and trains all of BERT; one run of each kind "
        "says little about differences that are small.",
        papers=("uhd",),
        trains=True,
        sizes=("tokens", "latents", "steps", "lessons"),
    ),
)
