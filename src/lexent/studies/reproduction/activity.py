"""Sections about winners as they are: how many units a text has, and how much their values differ."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexent.studies.analyses.table import Table
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study

if TYPE_CHECKING:
    from lexent.evaluation.systems import Latent
    from lexent.types import Kind, SparseVectors

LENGTH_GROUPS = 8
"""Texts are put together by their lengths in so many groups, of equal sizes."""
SAMPLED_DOCUMENTS = 100
"""Documents whose tokens are looked at one by one."""
STEP, HIGHEST = 0.05, 3.0
"""Of the histogram: values over the mean of their text."""


# --- density against length ----------------------------------------------------------------------------------------


def _density(study: Study) -> Result:
    system = study.systems[0]
    sides: list[tuple[str, Kind, int]] = [("documents", "document", system.recipe.k)]
    sides += [
        (f"queries, {k} a token", "query", k) for k in dict.fromkeys((system.recipe.k, system.recipe.k_for("query")))
    ]
    parts = []
    for name, kind, k in sides:
        vectors = _pooled(study, system, kind, k)
        tokens = system.encoder.tokenize(_texts(study, kind), kind=kind, specials=system.recipe.specials)
        lengths = np.array([len(found) for found in tokens], np.int64)
        rows = _by_length(lengths, np.diff(vectors.offsets))
        growth = _growth(lengths, np.diff(vectors.offsets))
        parts.append({"name": name, "k": k * system.lexicon.buckets, "rows": rows, "growth": growth})
    return {"parts": parts, "size": system.lexicon.size, "limit": getattr(system.encoder, "max_tokens", None)}


def _pooled(study: Study, system: Latent, kind: Kind, k: int) -> SparseVectors:
    """Pooled vectors of one side before they are binarised, the tokens of queries with so many winners."""
    recipe = system.recipe if kind == "document" else system.recipe.having(query_k=k)
    return replace(system, recipe=recipe).pooled(_texts(study, kind), kind=kind, progress=study.progress)


def _texts(study: Study, kind: Kind) -> list[str]:
    return study.collection.texts if kind == "document" else list(study.collection.queries.values())


def _by_length(lengths: NDArray[np.int64], active: NDArray[np.int64]) -> list[Result]:
    """Groups of texts of like length: how many there are, and the means of their tokens and of their active units."""
    order = np.argsort(lengths, kind="stable")
    groups = [group for group in np.array_split(order, LENGTH_GROUPS) if len(group)]
    return [
        {"texts": len(group), "tokens": float(lengths[group].mean()), "active": float(active[group].mean())}
        for group in groups
    ]


def _growth(lengths: NDArray[np.int64], active: NDArray[np.int64]) -> float | None:
    """The power of the length that active units grow by; None where all texts are of one length."""
    kept = (lengths > 0) & (active > 0)
    x, y = np.log(lengths[kept]), np.log(active[kept])
    return float(np.polyfit(x, y, 1)[0]) if len(np.unique(x)) > 1 else None


def _density_tables(result: Result) -> list[Table]:
    rows = tuple(
        (
            part["name"],
            row["texts"],
            f"{row['tokens']:,.1f}",
            f"{row['active']:,.0f}",
            f"{row['active'] / max(row['tokens'], 1):.1f}",
            f"{row['active'] / max(row['tokens'] * part['k'], 1):.0%}",
            f"{row['active'] / result['size']:.2%}",
        )
        for part in result["parts"]
        for row in part["rows"]
    )
    head = ("texts", "number", "tokens", "active units", "a token", "of its winners", "of all units")
    note = (
        "texts in groups by length; of its winners: units that are new, where tokens win the same ones the share falls"
    )
    return [Table("active units by the length of texts", head, rows, note)]


def _density_figures(result: Result) -> list[Figure]:
    found = {part["name"]: [(row["tokens"], row["active"]) for row in part["rows"]] for part in result["parts"]}
    draw = partial(plots.trends, found, x_label="tokens of a text", y_label="active units")
    return [Figure(draw, "Active units against the length of texts, both logarithmic")]


# --- values before they are binarised ------------------------------------------------------------------------------


def _values(study: Study) -> Result:
    system = study.systems[0]
    found = {"winners of a token": _of_tokens(study, system)}
    sides: dict[str, Kind] = {"documents": "document", "queries": "query"}
    for name, kind in sides.items():
        vectors = _pooled(study, system, kind, system.recipe.k_for(kind))
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
    shares, edges = np.histogram(np.minimum(relative, HIGHEST), bins=np.arange(0, HIGHEST + STEP, STEP))
    low, high = np.quantile(relative, [0.05, 0.95]) if len(relative) else (0.0, 0.0)
    return {
        "values": len(values),
        "mean": float(values.mean()) if len(values) else 0.0,
        "sd": float(values.std()) if len(values) else 0.0,
        "relative_sd": float(relative.std()) if len(values) else 0.0,
        "low": float(low),
        "high": float(high),
        "unit_mean": float(unit.mean()) if len(values) else 0.0,
        "unit_sd": float(unit.std()) if len(values) else 0.0,
        "histogram": [
            [float(edge), float(share)] for edge, share in zip(edges, shares / max(len(values), 1), strict=False)
        ],
    }


def _value_tables(result: Result) -> list[Table]:
    rows = tuple(
        (
            name,
            part["values"],
            part["mean"],
            part["sd"],
            f"{part['relative_sd']:.3f}",
            f"{part['low']:.2f} to {part['high']:.2f}",
            f"{part['unit_mean']:.5f}",
            f"{part['unit_sd']:.5f}",
        )
        for name, part in result["parts"].items()
    )
    head = ("values of", "number", "mean", "sd", "sd, relative", "5 to 95 %", "mean at length 1", "sd at length 1")
    note = (
        f"relative: each value over the mean of its text, or of its token; all k = {result['k']} winners of a token "
        f"alike would have {result['k'] ** -0.5:.5f} at length 1; tokens of {result['sample']} documents; queries with "
        "as many winners as the recipe gives them"
    )
    return [Table("values of winners before they are binarised", head, rows, note)]


def _value_figures(result: Result) -> list[Figure]:
    found = {name: [tuple(point) for point in part["histogram"]] for name, part in result["parts"].items()}
    draw = partial(plots.histogram, found, x_label="value over the mean of its text", y_label="share of the values")
    return [Figure(draw, f"How much values differ; those above {HIGHEST:g} are in the last bar")]


SECTIONS = (
    Section(
        "density",
        "Active units and the length of texts",
        "Do long texts have more active units, or do they saturate?",
        _density,
        _density_tables,
        _density_figures,
        reading="A power of 1 is growth with the length; the further below it, the more they saturate.",
        papers=("uhd",),
    ),
    Section(
        "values",
        "Values before they are binarised",
        "Are the values of winners nearly the same, so that counting loses nothing?",
        _values,
        _value_tables,
        _value_figures,
        reading="In the paper the relative spread is 0.016: counts are the cosine but for a factor. A wider spread "
        "here means that binarising changes the scores; what it does to rankings stands under quality.",
        papers=("uhd",),
    ),
)
