"""For IR researchers: recipes beside dense search and BM25 on a test collection, with paired tests.

    python examples/compare_recipes.py path/to/a/BEIR/folder latent-terms clsr

The collection is a BEIR folder or an ir_datasets id. Texts are encoded once and kept in a cache.
"""

from __future__ import annotations

import sys

import lexent

MEASURES = ("nDCG@10", "R@100")


def main(collection: str, *recipes: str) -> None:
    """Evaluate the recipes, and print a table."""
    report = lexent.evaluate(collection, recipe=list(recipes) or ["latent-terms"], measures=list(MEASURES))
    print(f"{report.collection} ({report.split}): {report.documents:,} documents, {report.queries:,} queries")
    for system, values in report.systems.items():
        p = report.p_values.get(system, {}).get(MEASURES[0])
        tested = f"p {p:.3f} against {report.compared_with}" if p is not None else ""
        print(f"{system:16}", *(f"{name} {value:.4f}" for name, value in values.items()), tested)


if __name__ == "__main__":
    main(*sys.argv[1:])
