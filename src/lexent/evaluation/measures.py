"""Measures by their ir_measures names, such as nDCG@10 and R@100: parsed, computed and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from lexent.errors import InputError, MissingExtraError
from lexent.evaluation.runs import Run, ranked
from lexent.nan_safe import paired_p

EXAMPLES = "nDCG@10, R@100, RR@10, AP@100, P@5, Success@1"

WHOLE_DEPTH = 1000
"""Rank up to which measures without a cut-off look."""

PerQuery = dict[str, dict[str, float]]
"""Measure to query id to value."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The values of one system."""

    means: dict[str, float]
    """Measure to its value over all judged queries; a query without results counts as 0."""
    per_query: PerQuery

    @staticmethod
    def of(per_query: PerQuery) -> Scores:
        """The means over the queries that have a value."""
        means = {measure: float(np.mean(list(values.values()))) for measure, values in per_query.items()}
        return Scores(means, per_query)

    def among(self, queries: Sequence[str]) -> Scores:
        """The same over some queries; one without a value counts as 0."""
        return Scores.of({name: {id: values.get(id, 0.0) for id in queries} for name, values in self.per_query.items()})

    def p_values(self, other: Scores) -> dict[str, float]:
        """Measure to the paired t-test against another system."""
        return {measure: p_value(values, other.per_query[measure]) for measure, values in self.per_query.items()}

    def first_p(self, other: Scores) -> float:
        """The paired t-test of the first measure against another system."""
        first = next(iter(self.per_query))
        return p_value(self.per_query[first], other.per_query[first])


def parse(names: str | Sequence[str]) -> list[Any]:
    """ir_measures' measures from their names, given as a list or separated by commas."""
    # At commas and blanks, but not within brackets: AP(rel=2)@100, judged(a=1, b=2).
    several = [names] if isinstance(names, str) else names
    given = [name for each in several for name in re.split(r"[,\s]+(?![^(]*\))", each) if name]
    if not given:
        raise InputError(f"no measure was given; such as: {EXAMPLES}")
    return list(dict.fromkeys(_parse(name) for name in given))


def score(qrels: Mapping[str, Mapping[str, int]], run: Run, measures: Sequence[Any]) -> Scores:
    """The values of a run, as ir_measures computes them.

    Its providers break ties each in their own way, so they are given ranks for scores, in the order of `ranked`, which
    is that of trec_eval: one run has one order for all measures.
    """
    ir_measures = _library()
    ordered = {
        query: {document: -float(rank) for rank, (document, _) in enumerate(ranked(results))}
        for query, results in run.items()
        if query in qrels
    }
    try:
        found = ir_measures.calc(measures, {query: dict(judged) for query, judged in qrels.items()}, ordered)
    except (RuntimeError, ValueError, KeyError) as error:
        shown = ", ".join(str(measure) for measure in measures)
        raise InputError(f"cannot compute {shown}: {error}; measures that always work: {EXAMPLES}") from error
    per_query: PerQuery = {str(measure): {} for measure in measures}
    for value in found.per_query:
        per_query[str(value.measure)][value.query_id] = float(value.value)
    return Scores({str(measure): float(found.aggregated[measure]) for measure in measures}, per_query)


def depth(measures: Sequence[Any]) -> int:
    """The deepest rank that any of the measures looks at; 1,000 for those without a cut-off."""
    return max(int(measure.params.get("cutoff") or WHOLE_DEPTH) for measure in measures)


def p_value(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Two-sided paired t-test over the queries of two systems: how likely a difference like theirs is by chance.

    1 where no query differs. Undefined over one query, and where all queries differ by the same.
    """
    queries = sorted(first.keys() & second.keys())
    left, right = (np.array([values[query] for query in queries]) for values in (first, second))
    return paired_p(left, right, alternative="two-sided")


def p_values(scores: Mapping[str, Scores], reference: str | None) -> dict[str, dict[str, float]]:
    """System to measure to the paired t-test against the reference; nothing where there is no reference."""
    return {
        name: found.p_values(scores[reference])
        for name, found in scores.items()
        if reference is not None and name != reference
    }


def _parse(name: str) -> Any:
    ir_measures = _library()
    try:
        measure = ir_measures.parse_measure(name)
    except (NameError, ValueError) as error:
        raise InputError(f'no measure "{name}"{_near(name)}; such as: {EXAMPLES}') from error
    try:
        supported = ir_measures.DefaultPipeline.supports(measure)
    except (ValueError, AttributeError, TypeError):
        supported = False
    if not supported:
        raise InputError(f'the measure "{name}" is not available here; such as: {EXAMPLES}')
    return measure


def _near(name: str) -> str:
    """The nearest measure, with the cut-off that was given."""
    known = {each.lower(): each for each in reversed(list(_library().measures.registry))}
    base = re.split(r"\W", name, maxsplit=1)[0]
    cutoff = name[len(base) :]
    near = get_close_matches(base.lower(), known, n=1, cutoff=0.5)
    if not near:
        return ""
    good = re.fullmatch(r"(\(.*\))?@\d+", cutoff)
    return f'; did you mean "{known[near[0]]}{cutoff if good else "@10"}"?'


def _library() -> Any:
    try:
        import ir_measures
    except ImportError as error:
        raise MissingExtraError("ir_measures", extra="eval", purpose="evaluation") from error
    return ir_measures
