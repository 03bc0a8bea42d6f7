"""What one marked document is worth: relevance feedback by `like`, measured on what is left to find.

For each query with two relevant documents or more, the best-ranked relevant one is marked; the ranking is judged on the
others, without the marked one, before and after. Run: python benchmarks/marked.py COLLECTION [--split train]
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from lexent.evaluation import load, measures
from lexent.evaluation.runs import Run
from lexent.evaluation.systems import Bench
from lexent.search.document_scorer import DocumentScorer
from lexent.search.feedback import Feedback, Marked, expansions
from lexent.types import SparseVectors

DEPTH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection")
    parser.add_argument("--split", default="test")
    parser.add_argument("--recipe", default="latent-terms")
    given = parser.parse_args()
    collection = load(given.collection, split=given.split)
    system = Bench().latent(given.recipe)
    scorer = system.scorer(collection)
    weights = scorer.query_weights(system.queries(collection))
    ids = [document.id for document in collection.documents]
    places = {id: place for place, id in enumerate(ids)}

    runs: dict[str, Run] = {"plain": {}, "rocchio": {}, "rm3": {}}
    left: dict[str, dict[str, int]] = {}
    for row, query in enumerate(collection.queries):
        relevant = {id: grade for id, grade in collection.qrels[query].items() if grade > 0 and id in places}
        if len(relevant) < 2:
            continue
        one = weights.take(np.array([row]))
        scores, _ = scorer.scores(*one.of(0))
        marked = max(relevant, key=lambda id: (scores[places[id]], -places[id]))
        left[query] = {id: grade for id, grade in relevant.items() if id != marked}
        runs["plain"][query] = ranking(scorer, one, ids, marked)
        for method in ("rocchio", "rm3"):
            learned = next(
                expansions(scorer, one, Feedback(method, documents=0), marked=Marked(like=(places[marked],)))
            )
            runs[method][query] = ranking(scorer, learned.query, ids, marked)

    wanted = measures.parse("nDCG@10,R@100")
    found = {name: measures.score(left, run, wanted) for name, run in runs.items()}
    plain = found["plain"].per_query
    report = {
        name: {
            measure: {"value": round(value, 4), "p": measures.p_value(one.per_query[measure], plain[measure])}
            for measure, value in one.means.items()
        }
        for name, one in found.items()
    }
    print(json.dumps({"collection": collection.name, "split": given.split, "queries": len(left), "systems": report}))


def ranking(scorer: DocumentScorer, query: SparseVectors, ids: list[str], marked: str) -> dict[str, float]:
    """The documents that a query finds, without the marked one."""
    best = scorer.top_weighted(query, DEPTH + 1)
    pairs = zip(best.positions[0].tolist(), best.scores[0].tolist(), strict=True)
    found = [(ids[place], score) for place, score in pairs if place >= 0 and ids[place] != marked]
    return dict(found[:DEPTH])


if __name__ == "__main__":
    main()
