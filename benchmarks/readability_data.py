"""Collections for `lexent readability`: docstrings with questions, and passages of a text file with titles as queries.

    python -m benchmarks.readability_data docstrings OUT
    python -m benchmarks.readability_data titles TEXTS.jsonl.gz OUT [--documents 2000] [--queries 300]

OUT is a BEIR folder. The questions about docstrings stand in docstring_questions.tsv. A text file has lines
{"title", "text"}; a query is a title of two words or more that no other passage has. Its answer is the passage under
it. Passages are indexed without their titles.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from pathlib import Path

QUESTIONS = Path(__file__).with_name("docstring_questions.tsv")
SEED = 0


def write(
    folder: Path, documents: dict[str, tuple[str, str]], queries: dict[str, str], answers: dict[str, str]
) -> None:
    """A BEIR folder. documents: titles and texts by id; answers: a document id for each query id."""
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": id, "title": title, "text": text} for id, (title, text) in documents.items()]
    asked = [{"_id": id, "text": text} for id, text in queries.items()]
    for name, found in (("corpus.jsonl", rows), ("queries.jsonl", asked)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{document}\t1" for query, document in answers.items())]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def docstrings(folder: Path) -> None:
    """Docstrings of Python's standard library, as the demo reads them."""
    from lexent.demo.docstrings import collect

    documents = {one.id: (one.title, one.text) for one in collect()}
    pairs = [line.split("\t") for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    answered = [pair for pair in pairs if pair[0] in documents]  # another Python lacks some of them
    queries = {f"q{number}": question for number, (_, question) in enumerate(answered)}
    answers = {f"q{number}": document for number, (document, _) in enumerate(answered)}
    write(folder, documents, queries, answers)


def titles(texts: Path, folder: Path, *, n_documents: int, n_queries: int) -> None:
    """Passages drawn at random, without their titles, and some of the titles."""
    with gzip.open(texts, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    counts = Counter(row["title"] for row in rows)
    drawn = sorted(random.Random(SEED).sample(range(len(rows)), min(n_documents, len(rows))))
    headed = [at for at in drawn if len(rows[at]["title"].split()) > 1 and counts[rows[at]["title"]] == 1]
    chosen = random.Random(SEED).sample(headed, min(n_queries, len(headed)))
    documents = {f"p{at}": ("", rows[at]["text"]) for at in drawn}
    write(folder, documents, {f"q{at}": rows[at]["title"] for at in chosen}, {f"q{at}": f"p{at}" for at in chosen})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("docstrings").add_argument("out", type=Path)
    of_titles = kinds.add_parser("titles")
    of_titles.add_argument("texts", type=Path)
    of_titles.add_argument("out", type=Path)
    of_titles.add_argument("--documents", type=int, default=2000)
    of_titles.add_argument("--queries", type=int, default=300)
    given = parser.parse_args()
    if given.kind == "docstrings":
        docstrings(given.out)
    else:
        titles(given.texts, given.out, n_documents=given.documents, n_queries=given.queries)


if __name__ == "__main__":
    main()
