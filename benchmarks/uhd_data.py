"""What the benchmark of counting runs on: passages, titles as queries, and the one passage that answers each.

A passage is the first 90 words of a text: abstracts, and summaries of articles that only stand among them. Queries are
titles, as in the benchmark of MaxSim: from every 64th line of the abstracts, which no lexicon is trained on, and none
that its own passage repeats.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.maxsim_data import FILES, HELD_OUT, WORDS, is_question

OTHERS = ("wikipedia-summaries",)
LONGEST = WORDS.stop - 1
"""Words of a passage."""


def passages(texts: Path, limit: int) -> tuple[list[str], list[str], list[int]]:
    """Passages in an order that is always the same, of which the limit takes the first; queries; each one's passage."""
    found = list(_rows(texts))
    chosen: list[str] = []
    queries: list[str] = []
    answers: list[int] = []
    for number in np.random.default_rng(0).permutation(len(found))[:limit]:
        title, passage, held_out = found[number]
        if held_out and is_question(title, [passage]):
            queries.append(title)
            answers.append(len(chosen))
        chosen.append(passage)
    return chosen, queries, answers


def _rows(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Title, passage and whether the line is held out; a passage that stood before is left out, as is a mere scrap."""
    seen: set[str] = set()
    for name in (*FILES, *OTHERS):
        path = folder / f"{name}.jsonl.gz"
        if not path.is_file():
            raise SystemExit(f'no "{path.name}" in "{folder}"; make bench-uhd TEXTS=folder-of-texts')
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row, line in enumerate(lines):
                given = json.loads(line)
                words = given["text"].split()[:LONGEST]
                passage = " ".join(words)
                if len(words) in WORDS and passage not in seen:
                    seen.add(passage)
                    held_out = name in FILES and row % HELD_OUT == HELD_OUT - 1
                    yield given["title"].strip(), passage, held_out
