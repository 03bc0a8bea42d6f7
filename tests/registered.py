"""Collections registered with ir_datasets from local files, in the formats that its public collections have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import ir_datasets


def register(name: str, folder: Path, parts: Mapping[str, str], *, own: str = "") -> str:
    """Register a BEIR folder as NAME (documents and queries) and NAME/PART (with judgements); return NAME.

    parts: the split of the folder whose judgements NAME/PART has. own: the split whose judgements NAME itself has.
    """
    files = folder / "ir"
    files.mkdir(exist_ok=True)
    for kind in ("corpus", "queries"):
        rows = [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text().splitlines()]
        lines = [f"{row['_id']}\t{row.get('title', '')} {row['text']}".replace("\t ", "\t") for row in rows]
        (files / f"{kind}.tsv").write_text("\n".join(lines) + "\n")
    common = {"docs_tsv": str(files / "corpus.tsv"), "queries_tsv": str(files / "queries.tsv")}
    for part, split in parts.items():
        _add(f"{name}/{part}", ir_datasets.create_dataset(**common, qrels_trec=_judgements(folder, split)))
    judged = {"qrels_trec": _judgements(folder, own)} if own else {}
    _add(name, ir_datasets.create_dataset(**common, **judged))
    return name


def _judgements(folder: Path, split: str) -> str:
    """The judgements of a split as a TREC file."""
    lines = []
    for line in (folder / "qrels" / f"{split}.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        lines.append(f"{query} 0 {document} {grade}\n")
    path = folder / "ir" / f"{split}.qrels"
    path.write_text("".join(lines))
    return str(path)


def _add(name: str, dataset: ir_datasets.Dataset) -> None:
    if name in set(ir_datasets.registry):
        raise ValueError(f"{name} is registered already; each test needs a name of its own")
    ir_datasets.registry.register(name, dataset)
