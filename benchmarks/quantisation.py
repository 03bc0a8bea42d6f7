"""What 8-bit codes cost: a recipe's nDCG@10 on a collection by the index's codes, and by float weights.

    python -m benchmarks.quantisation COLLECTION [--split test]

Both sides use the same vectors, idf and queries; the float side is the BM25 formula over SciPy matrices.
"""

from __future__ import annotations

import argparse

import numpy as np

from lexent import recipes
from lexent.evaluation import cached_vectors, collections, measures
from lexent.evaluation.runs import Run, from_top
from lexent.models import load_encoder, load_lexicon
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.search.document_scorer import DocumentScorer
from lexent.types import SparseVectors
from lexent.weighting import bm25, transform


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection")
    parser.add_argument("--split", default="test")
    parser.add_argument("--recipe", default="latent-terms")
    given = parser.parse_args()
    collection = collections.load(given.collection, split=given.split)
    recipe = recipes.get(given.recipe)
    pipeline = Pipeline(load_encoder(None), load_lexicon(None), recipe)
    documents = cached_vectors.represent(collection.texts, pipeline, kind="document")
    queries = cached_vectors.represent(list(collection.queries.values()), pipeline, kind="query")
    queries = transform(queries, power=recipe.power_for("query"), cap=recipe.query_cap)
    scorer = DocumentScorer.from_vectors(documents, recipe)
    found = scorer.top(queries, 100)
    plain = by_formula(documents, queries, recipe)
    order = np.argsort(-plain, axis=1, kind="stable")[:, :100]
    runs: dict[str, Run] = {
        "8-bit codes": from_top(collection, found.positions, scores=found.scores, depth=100),
        "float": from_top(collection, order, scores=np.take_along_axis(plain, order, axis=1), depth=100),
    }
    wanted = measures.parse("nDCG@10")
    values = {name: measures.score(collection.qrels, run, wanted).means["nDCG@10"] for name, run in runs.items()}
    for name, value in values.items():
        print(f"{name:12} nDCG@10 {value:.4f}")
    print(f"{'difference':12} {values['8-bit codes'] - values['float']:+.4f}")


def by_formula(documents: SparseVectors, queries: SparseVectors, recipe: Recipe) -> np.ndarray:
    """float64[n_queries, n_documents]: BM25 written out, on float values."""
    formula = recipe.weighting
    d, q = (side.to_scipy().astype(np.float64) for side in (documents, queries))
    d.data **= recipe.power
    lengths = np.asarray(d.sum(axis=1)).ravel()
    divisor = 1 - formula.b + formula.b * lengths / lengths.mean()
    ratio = d.data / np.repeat(divisor, np.diff(d.indptr))
    d.data = ratio * (formula.k1 + 1) / (ratio + formula.k1)
    df = np.bincount(documents.ids, minlength=documents.size)
    factors = bm25.query_factors(df, len(documents), formula, prune=recipe.prune)
    return np.asarray((q.multiply(factors) @ d.T).todense())


if __name__ == "__main__":
    main()
