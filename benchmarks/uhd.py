"""Counting search over a binary index, beside the same codes with weights and beside BM25 (bm25s), in one run.

    python -m benchmarks.uhd TEXTS --code [--passages 20000]
    python -m benchmarks.uhd TEXTS [--passages 20000] [--docs docs/uhd-speed.md] [--json]

By default with the recipe and the lexicon that ship. The first command makes the codes of passages and queries on all
cores and keeps them in the user's cache folder; what was made stays when this is broken off. In the second, all systems
are asked on one core with one thread, in rounds that alternate; each query's median over the rounds counts.
`--synthetic` runs on made-up codes and writes no page.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import uhd_data
from benchmarks.timing import Times, one_core, run_queries
from benchmarks.uhd_data import Coded

if TYPE_CHECKING:
    from lexent.evaluation.systems import Latent
    from lexent.recipes import Recipe
    from lexent.types import SparseVectors

K = 10
CHECKED = 50
"""Queries whose answers are held against an exhaustive count."""
TIMED = 30
"""Queries whose coding is timed."""

Search = Callable[[int], Any]


def main() -> None:
    given = arguments()
    if not given.code:
        one_core()
    from benchmarks import uhd_report
    from lexent.recipes import RECIPES

    passages, titles, answers = uhd_data.passages(given.texts, given.passages)
    queries, answers = titles[: given.queries], answers[: given.queries]
    found: dict[str, Any] = uhd_report.setting(passages, queries, cap=given.query_cap)
    parts: Iterator[Coded]
    chosen = RECIPES["uhd"]
    if given.synthetic:
        size = given.latents or 81_920
        made = uhd_data.synthetic(len(passages), size=size, latents=given.synthetic, queries=len(queries))
        parts, query_codes, own_answers = iter([made[0]]), made[1], made[2]
        found["lexicon"] = f"none: made-up codes, {given.synthetic} latents a passage"
    else:
        system = latent(given)
        size, own_answers = given.latents or system.lexicon.size, answers
        winners = [system.recipe.k_for(kind) for kind in ("document", "query")]
        folder = given.cache / "bench-uhd" / "-".join([system.lexicon.hash, *map(str, winners)])
        parts = coded(system, passages, folder, "document", size)
        if given.code:
            print(f"codes of {sum(len(part) for part in parts):,} passages", flush=True)
            joined(list(coded(system, titles, folder, "query", size)))
            return
        query_codes = joined(list(coded(system, titles, folder, "query", size))).first(len(queries))
        of_tokens = f"{winners[0]} winners a token, {winners[1]} of a query's"
        found["lexicon"] = f"{system.lexicon.name} ({size:,} latents, {of_tokens})"
        named = [f"--{name} {Path(path).name}" for name in ("lexicon", "recipe") if (path := getattr(given, name))]
        found["command"] += f' ARGS="{" ".join([f"--passages {given.passages}", *named])}"'
        found["coding_ms"] = coding(system, queries)
        chosen = system.recipe
    with tempfile.TemporaryDirectory() as place:
        ours = {
            name: Ours(name, recipe, size, Path(place) / name)
            for name, recipe in recipes(chosen, given.query_cap).items()
        }
        columns = pack(parts, ours, size)
        for one in ours.values():
            one.open(query_codes)
        words = [Words(backend, passages, queries) for backend in ("numba", "numpy")]
        race(found, [*ours.values(), *words], given.rounds, len(queries))
        for one in ours.values():
            found["systems"][one.name] |= one.report(own_answers)
        for other in words:
            found["systems"][other.name] |= other.report(answers)
        found["same"] = exhaustive(columns, ours["counts"], min(CHECKED, len(queries)))
    print(json.dumps(found) if given.json else uhd_report.text(found), flush=True)
    if given.docs and given.synthetic:
        print("made-up codes: no page is written", file=sys.stderr)
    elif given.docs:
        uhd_report.write(given.docs, found)


def arguments() -> argparse.Namespace:
    home = Path(os.environ.get("LEXENT_CACHE") or Path.home() / ".cache" / "lexent")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, help="folder of texts, as benchmarks/uhd_data.py describes it")
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--query-cap", type=int, help="most concepts of a query; as the recipe has it by default")
    parser.add_argument("--code", action="store_true", help="only make the codes, on all cores, and keep them")
    parser.add_argument("--recipe", default="uhd")
    parser.add_argument("--lexicon", help="name or folder; the shipped one of the recipe where it is left out")
    parser.add_argument("--latents", type=int, help="only the first so many: those of one bucket")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--synthetic", type=int, metavar="LATENTS", help="made-up codes, so many latents a passage")
    parser.add_argument("--cache", type=Path, default=home, help="where codes are kept")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--docs", type=Path, help="the page to write")
    return parser.parse_args()


def recipes(chosen: Recipe, cap: int | None) -> dict[str, Recipe]:
    """The chosen recipe, counted; and the same codes with their values. cap: of a query, else as the recipe has it."""
    from lexent.recipes import BM25

    common: Any = {"query_cap": cap or chosen.query_cap, "unit": False}
    return {
        "counts": replace(chosen, name="counts", weighting=BM25(idf="none", formula="count"), binary=True, **common),
        "weights": replace(chosen, name="weights", weighting=BM25(idf="none", formula="dot"), binary=False, **common),
    }


# --- codes ---------------------------------------------------------------------------------------------------------


def latent(given: argparse.Namespace) -> Latent:
    from lexent.errors import NotFoundError
    from lexent.evaluation.systems import Bench

    try:
        return Bench(lexicon=given.lexicon).latent(given.recipe)
    except NotFoundError as error:
        raise SystemExit(f'{error}; then: make bench-uhd ARGS="--lexicon DIR"') from error


def represented(system: Latent, texts: list[str], kind: Any) -> SparseVectors:
    return system.pipeline.represent(texts, kind=kind)


def coded(system: Latent, texts: list[str], folder: Path, kind: Any, size: int) -> Iterator[Coded]:
    for part in uhd_data.shards(texts, folder, kind=kind, code=lambda some: represented(system, some, kind)):
        yield part if size == system.lexicon.size else part.below(size)


def joined(parts: list[Coded]) -> Coded:
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    ids, codes = np.concatenate([part.ids for part in parts]), np.concatenate([part.codes for part in parts])
    return Coded(ids, codes, offsets, np.concatenate([part.values for part in parts]))


def coding(system: Latent, queries: list[str]) -> dict[str, float]:
    """What it takes to code a query alone."""
    represented(system, queries[:1], "query")
    taken = run_queries(lambda number: represented(system, [queries[number]], "query"), min(TIMED, len(queries)))
    return Times.of([taken]).as_dict()


def pack(parts: Iterator[Coded], ours: dict[str, Ours], size: int) -> Any:
    """Packs the passages for both; gives them by latent, for the exhaustive count."""
    from scipy.sparse import csr_matrix

    ids, counts = [], []
    for part in parts:
        for one in ours.values():
            one.add(part)
        ids.append(part.ids)
        counts.append(np.diff(part.offsets))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    every = np.concatenate(ids)
    return csr_matrix((np.ones(len(every), np.uint8), every, offsets), shape=(len(offsets) - 1, size)).tocsc()


# --- systems -------------------------------------------------------------------------------------------------------


class Ours:
    """Lexent on one recipe: written to disk, then mapped."""

    def __init__(self, name: str, recipe: Recipe, size: int, folder: Path) -> None:
        from lexent.indexing.segment import Packer

        folder.mkdir()
        self.name, self.recipe, self.size, self.folder, self.build_s = name, recipe, size, folder, 0.0
        self.packer = Packer(size=size, recipe=recipe, folder=folder)

    def add(self, part: Coded) -> None:
        from lexent.indexing.codes import Codes
        from lexent.indexing.postings import quantisation

        codes = np.full(len(part.codes), quantisation.CODE_OF_ONE, np.uint8) if self.recipe.binary else part.codes
        began = time.perf_counter()
        self.packer.add(Codes(part.ids, codes, part.offsets))
        self.build_s += time.perf_counter() - began

    def open(self, query_codes: Coded) -> None:
        from lexent.indexing.segment import Segment
        from lexent.search.document_scorer import DocumentScorer
        from lexent.types import SparseVectors
        from lexent.weighting import as_query

        began = time.perf_counter()
        self.packer.close()
        self.build_s += time.perf_counter() - began
        own: Any = {"n_documents": self.packer.n_documents, "length_units": self.packer.length_units}
        self.segment = Segment.open(self.folder, size=self.size, **own, binary=self.recipe.binary)
        self.document_scorer = DocumentScorer([self.segment], self.recipe, size=self.size)
        vectors = as_query(
            SparseVectors(query_codes.ids, query_codes.values, query_codes.offsets, self.size), self.recipe
        )
        weighed = self.document_scorer.query_weights(vectors)
        self.queries = [weighed.take(np.array([row])) for row in range(len(weighed))]

    def __call__(self, number: int) -> Any:
        return self.document_scorer.top_weighted(self.queries[number], K, threads=1)

    def ids(self, number: int) -> list[int]:
        return [int(place) for place in self(number).positions[0] if place >= 0]

    def report(self, answers: list[int]) -> dict[str, Any]:
        touched = [int(self.document_scorer.df[query.ids].sum()) for query in self.queries]
        return {
            **quality(self.ids, answers),
            "bytes": self.segment.bytes,
            "postings": self.segment.n_postings,
            "postings_a_query": float(np.mean(touched)),
            "latents_a_query": float(np.mean([len(query.ids) for query in self.queries])),
            "build_s": self.build_s,
        }


class Words:
    """bm25s over the words of the same texts."""

    def __init__(self, backend: str, passages: list[str], queries: list[str]) -> None:
        import bm25s

        self.name = f"bm25s, {backend}"
        split: Any = {"stopwords": "en", "show_progress": False}
        began = time.perf_counter()
        tokens = bm25s.tokenize(passages, **split)
        self.index = bm25s.BM25(method="lucene", backend=backend)
        self.index.index(tokens, show_progress=False)
        self.build_s = time.perf_counter() - began
        known = self.index.vocab_dict
        texts = [bm25s.tokenize(query, **split, return_ids=False)[0] for query in queries]
        self.tokenising = Times.of([run_queries(lambda number: bm25s.tokenize(queries[number], **split), len(queries))])
        self.queries = [[[known[word] for word in text if word in known]] for text in texts]

    def __call__(self, number: int) -> Any:
        return self.index.retrieve(self.queries[number], k=K, show_progress=False, n_threads=0, return_as="documents")

    def ids(self, number: int) -> list[int]:
        return [int(place) for place in self(number)[0]]

    def report(self, answers: list[int]) -> dict[str, Any]:
        arrays = [self.index.scores[name] for name in ("data", "indices", "indptr")]
        starts = np.asarray(arrays[2])
        touched = [sum(int(starts[word + 1] - starts[word]) for word in query[0]) for query in self.queries]
        return {
            **quality(self.ids, answers),
            "bytes": sum(array.nbytes for array in arrays),
            "postings": len(arrays[0]),
            "postings_a_query": float(np.mean(touched)),
            "latents_a_query": float(np.mean([len(query[0]) for query in self.queries])),
            "tokenising_ms": self.tokenising.as_dict(),
            "build_s": self.build_s,
        }


def quality(ids: Callable[[int], list[int]], answers: list[int]) -> dict[str, float]:
    """How well queries find their one passage."""
    ranks = [found.index(answer) if answer in (found := ids(row)) else None for row, answer in enumerate(answers)]
    gains = [0.0 if rank is None else 1 / np.log2(rank + 2) for rank in ranks]
    return {"nDCG@10": float(np.mean(gains)), "R@10": float(np.mean([rank is not None for rank in ranks]))}


def race(found: dict[str, Any], systems: list[Any], rounds: int, n: int) -> None:
    """Asks all in turn; each query's median over the rounds counts."""
    taken: dict[str, list[NDArray[np.float64]]] = {system.name: [] for system in systems}
    for system in systems:
        run_queries(system, min(n, 20))
    for number in range(rounds):
        for system in systems:
            taken[system.name].append(run_queries(system, n))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    found["systems"] = {name: Times.of(times).as_dict() for name, times in taken.items()}


def exhaustive(columns: Any, ours: Ours, n: int) -> float:
    """The share of queries whose passages, order and counts are those of counting everything."""
    same = 0
    for number in range(n):
        lists = [columns.indices[columns.indptr[one] : columns.indptr[one + 1]] for one in ours.queries[number].ids]
        counts = np.bincount(np.concatenate(lists), minlength=columns.shape[0])
        best = np.lexsort((np.arange(len(counts)), -counts))[:K]
        answer = ours(number)
        same += np.array_equal(answer.positions[0], best) and np.array_equal(answer.scores[0], counts[best])
    return same / n


if __name__ == "__main__":
    main()
