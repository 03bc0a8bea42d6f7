"""For RAG engineers: context for a prompt, with the reason why each passage is in it.

    python examples/rag_context.py papers.jsonl "do statins prevent dementia?"

Passages whose score is below half of the best are left out. The reasons are the named concepts that the score is the
sum of; keep them beside the answer, as the audit trail of what the language model was given.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import lexent

MIN_RELATIVE_SCORE = 0.5
"""Passages below this share of the best score are left out."""


def main(source: str, question: str) -> None:
    """Index the source, and print the passages of a prompt with their reasons."""
    with tempfile.TemporaryDirectory() as folder:
        index = lexent.index(source, out=str(Path(folder) / "rag.lexent"))
        hits = index.search(question, k=5)
        for hit in hits:
            if hit.score < MIN_RELATIVE_SCORE * hits[0].score:
                break
            reasons = ", ".join(f"{part.label} {part.value:.2f}" for part in hit.explain(3).contributions)
            print(f"[{hit.id}] {hit.title}\n{hit.text}\n  because: {reasons}\n")
        index.close()


if __name__ == "__main__":
    main(*sys.argv[1:3])
