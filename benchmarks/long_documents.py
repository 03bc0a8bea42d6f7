"""Documents longer than an encoder reads: chapters of textbooks, found by sections and by sentences near their ends.

    python -m benchmarks.long_documents TEXTBOOKS.jsonl.gz ... [--documents 250] [--half test]

A file has lines {"title": "chapter: section", "text": ...}. The sections of a chapter make a document under its title,
without their headings; the headings are the queries, and so is a sentence from the last tenth of each document.
Half of the chapters are for choices (--half train), the other half for figures.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from lexent import recipes
from lexent.evaluation import evaluate
from lexent.evaluation.collections import Collection
from lexent.evaluation.measures import parse, score
from lexent.evaluation.passages import CutCollection
from lexent.evaluation.runs import Run, ranked
from lexent.evaluation.systems import Bench
from lexent.types import Document

LEAST_WORDS = 1200
"""A document is long: four to five times what the encoder reads."""
LAST_SHARE = 0.1
"""Sentences are taken from this share of a document, at its end."""
SENTENCE_WORDS = range(10, 40)
MEASURES = ["nDCG@10", "Success@1"]
Combination = Callable[[list[float]], float]
COMBINATIONS: dict[str, Combination] = {
    "best": lambda scores: scores[0],
    "best + 1/4 of the second": lambda scores: scores[0] + 0.25 * sum(scores[1:2]),
    "best + 1/2 of the second": lambda scores: scores[0] + 0.5 * sum(scores[1:2]),
    "mean of three": lambda scores: sum(scores[:3]) / 3,
    "sum of all": sum,
}
"""Ways to make a document's score of those of its passages, best first."""


def chapters(files: list[Path], half: str, most: int) -> list[tuple[str, list[tuple[str, str]]]]:
    """Chapters of one half, drawn at random: their titles, and the headings and texts of their sections."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                title, _, section = row["title"].partition(": ")
                found[title].append((section, row["text"]))
    long = sorted(title for title, own in found.items() if sum(len(text.split()) for _, text in own) >= LEAST_WORDS)
    random.Random(0).shuffle(long)
    chosen = long[len(long) // 2 :] if half == "train" else long[: len(long) // 2]
    return [(title, found[title]) for title in chosen[:most]]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text that have some words."""
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        if len(sentence.split()) in SENTENCE_WORDS:
            yield sentence


def collections(parts: list[tuple[str, list[tuple[str, str]]]]) -> tuple[Collection, Collection]:
    """The same documents with their sections' headings as queries, and with sentences from their ends."""
    documents, headings, ends = [], {}, {}
    counts = Counter(heading.casefold() for _, own in parts for heading, _ in own)
    for number, (title, own) in enumerate(parts):
        text = "\n\n".join(text for _, text in own)
        documents.append(Document(f"d{number}", text, title))
        for heading, _ in own:
            if len(heading.split()) >= 2 and counts[heading.casefold()] == 1:  # not "Section Summary"
                headings[f"d{number}#{len(headings)}"] = heading
        last = list(sentences(text[int(len(text) * (1 - LAST_SHARE)) :]))
        if last:
            ends[f"d{number}#end"] = random.Random(number).choice(last)

    def of(name: str, queries: dict[str, str]) -> Collection:
        return Collection(name, documents, queries, {query: {query.partition("#")[0]: 1} for query in queries})

    return of("sections", headings), of("sentences of the last tenth", ends)


def combined(run: Run, cut: CutCollection, combination: Combination) -> Run:
    """Documents by a combination of the scores of their passages."""
    found: Run = {}
    for query, results in run.items():
        scores: dict[str, list[float]] = defaultdict(list)
        for number, value in ranked(results):
            scores[cut.owners[int(number)]].append(value)
        found[query] = {document: combination(own) for document, own in scores.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--documents", type=int, default=250)
    parser.add_argument("--half", choices=("train", "test"), default="test")
    given = parser.parse_args()
    parts = chapters(given.files, given.half, given.documents)
    hybrid, concepts = recipes.get("hybrid"), recipes.get("latent-terms")
    for collection in collections(parts):
        words = sum(len(document.text.split()) for document in collection.documents)
        print(f"\n{collection.name}: {len(parts)} documents, {words:,} words, {len(collection.queries):,} queries")
        if given.half == "train":
            combinations(collection)
            break
        whole = replace(hybrid, name="hybrid, first 256 tokens", whole_texts=True)
        report = evaluate(collection, recipe=[hybrid, concepts, whole], measures=MEASURES, depth=100)
        for name, values in report.systems.items():
            print(f"  {name:32}", *(f"{measure} {value:.4f}" for measure, value in values.items()), flush=True)


def combinations(collection: Collection) -> None:
    """Prints how good documents are ranked by other combinations of the scores of their passages."""
    recipe = recipes.get("hybrid")
    system = Bench().recipe(recipe)
    cut = CutCollection.of(collection, system.encoder, recipe)
    run = system.run(cut.passages, depth=1000)
    print(f"scores of documents from those of their passages ({len(cut.owners):,})")
    for name, combination in COMBINATIONS.items():
        means = score(collection.qrels, combined(run, cut, combination), parse(MEASURES)).means
        print(f"  {name:32}", *(f"{measure} {value:.4f}" for measure, value in means.items()), flush=True)


if __name__ == "__main__":
    main()
