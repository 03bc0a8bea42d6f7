"""A collection as a BEIR folder: corpus.jsonl, queries.jsonl and qrels/."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lexent.artifact import disk_errors
from lexent.errors import InputError
from lexent.evaluation.collections import Collection


def write(collection: Collection, folder: str | Path) -> Path:
    """The folder appears when all is written; one that is there already is not touched."""
    place = Path(folder)
    if place.exists():
        raise InputError(f'"{place}" is there already; give another folder, or remove it first')
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    documents = ({"_id": each.id, "title": each.title, "text": each.text} for each in collection.documents)
    queries = ({"_id": id, "text": text} for id, text in collection.queries.items())
    judged = (
        f"{query}\t{document}\t{grade}\n"
        for query, found in collection.qrels.items()
        for document, grade in found.items()
    )
    with disk_errors(place):
        try:
            (beside / "qrels").mkdir(parents=True)
            _write(beside / "corpus.jsonl", documents)
            _write(beside / "queries.jsonl", queries)
            head = "query-id\tcorpus-id\tscore\n"
            (beside / "qrels" / f"{collection.split}.tsv").write_text(head + "".join(judged), encoding="utf-8")
            os.replace(beside, place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return place


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
