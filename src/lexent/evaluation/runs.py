"""Runs: what a system found for each query, in memory and as TREC run files."""

from __future__ import annotations

import gzip
import math
import os
import re
import secrets
from collections.abc import Container, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lexent.artifact import disk_errors
from lexent.corpus.lines import decoded, raw_lines
from lexent.errors import InputError
from lexent.evaluation.collections import Collection, folded
from lexent.search.fusion import Fusion
from lexent.search.fusion import scores as fused_scores

Run = dict[str, dict[str, float]]
"""Query id to document id to score."""

_BLANK = re.compile(r"[ \t\n\r\v\f%]")
_ESCAPED = re.compile(r"%(20|09|0A|0D|0B|0C|25)")


def ranked(results: Mapping[str, float]) -> list[tuple[str, float]]:
    """Documents from best to worst. Equal scores: the later document id first, as trec_eval orders them.

    Scores are compared in float32, as trec_eval holds them.
    """
    # trec_eval compares the ids' bytes; in UTF-8 they have the order of their characters.
    with np.errstate(over="ignore"):
        keys = np.fromiter(results.values(), np.float64, len(results)).astype(np.float32).tolist()
    order = sorted(zip(keys, results, strict=True), reverse=True)
    return [(document, results[document]) for _, document in order]


def from_top(collection: Collection, positions: NDArray[np.int64], *, scores: NDArray[np.floating], depth: int) -> Run:
    """A run from document positions [n_queries, k] (-1: none) and their scores: the last step of every system.

    A document that is the query itself is left out (ArguAna's queries stand in its corpus), so systems should give
    one more than `depth`. It is one when it has the query's id and its text: an id alone says little, since many
    collections number queries and documents alike.
    """
    ids = [document.id for document in collection.documents]
    wrong = np.argwhere((positions >= 0) & ~np.isfinite(scores))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise InputError(
            f'the document "{ids[positions[row, column]]}" has the score {scores[row, column]} for the query '
            f'"{list(collection.queries)[row]}"; a ranking needs finite scores: see what the encoder gives for both'
        )
    own = self_matches(collection)
    run: Run = {}
    for row, query in enumerate(collection.queries):
        found = {
            ids[position]: float(score)
            for position, score in zip(positions[row], scores[row], strict=True)
            if position >= 0 and ids[position] != own.get(query)
        }
        run[query] = dict(list(found.items())[:depth])
    return run


def self_matches(collection: Collection) -> dict[str, str]:
    """Queries that are documents themselves: query id to document id, which are equal."""
    shared = [document for document in collection.documents if document.id in collection.queries]
    return {
        document.id: document.id
        for document in shared
        if folded(collection.queries[document.id]) in (folded(document.text), folded(document.content))
    }


def fused(runs: Mapping[str, Run], fusion: Fusion, *, depth: int) -> Run:
    """One run from several by name. A query that only some runs have is fused from those."""
    return {
        query: fused_scores(
            {name: ranked(run[query]) for name, run in runs.items() if query in run}, fusion, depth=depth
        )
        for query in dict.fromkeys(query for run in runs.values() for query in run)
    }


def write(run: Run, path: str | Path, *, tag: str = "lexent") -> None:
    """A TREC run file: query id, Q0, document id, rank, score, tag; gzipped when the name ends in .gz.

    Blanks in ids are written as %20 (and % as %25), since blanks part the columns. Scores read back exactly.
    """
    path = Path(path)
    rows = []
    for query, results in run.items():
        for rank, (document, score) in enumerate(ranked(results), 1):
            if not math.isfinite(score) or not document or not query:
                raise InputError(f'cannot write to {path}: query "{query}", document "{document}" with score {score}')
            rows.append(f"{escape(query)} Q0 {escape(document)} {rank} {score!r} {escape(tag)}\n")
    content = "".join(rows).encode()
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with disk_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)


def read(path: str | Path, *, known: Container[str] = ()) -> Run:
    """A TREC run file. Escaped ids are turned back, except those that are `known` as they stand (such as addresses)."""
    path = Path(path)
    run: Run = {}
    for number, line in raw_lines(path):
        cells = [cell.decode() for cell in decoded(line, path, number).encode().split()]  # at ASCII blanks only
        if not cells:
            continue
        if len(cells) != 6:
            raise InputError(
                f"{path}, line {number}: {len(cells)} columns; a TREC run has 6: query Q0 document rank score tag"
            )
        query, document = (cell if cell in known else unescape(cell) for cell in (cells[0], cells[2]))
        results = run.setdefault(query, {})
        if document in results:
            raise InputError(f'{path}, line {number}: the document "{document}" twice for the query "{query}"')
        try:
            results[document] = float(cells[4])
        except ValueError:
            results[document] = math.nan
        if not math.isfinite(results[document]):
            raise InputError(f'{path}, line {number}: the score is "{cells[4]}"; column 5 must be a number')
    if not run:
        raise InputError(f"{path}: an empty run; a line reads: query Q0 document rank score tag")
    return run


def escape(id: str) -> str:
    """The id without blanks."""
    return _BLANK.sub(lambda match: f"%{ord(match.group()):02X}", id)


def unescape(id: str) -> str:
    """The id as it was before `escape`."""
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), id)
