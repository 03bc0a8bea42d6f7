"""Test collections: documents, queries and judgements, from a BEIR folder or from ir_datasets."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from lexent.artifact import disk_errors
from lexent.corpus import read
from lexent.corpus.lines import lines
from lexent.corpus.readers import json_lines
from lexent.errors import InputError, MissingExtraError, NotFoundError
from lexent.evaluation import splits
from lexent.types import Document

Qrels = dict[str, dict[str, int]]
"""Judgements: query id to document id to grade."""


@dataclass(frozen=True, slots=True)
class Collection:
    """What a search engine is tested on. Only queries that have judgements are kept, in the order of their file."""

    name: str
    documents: list[Document]
    queries: dict[str, str]
    qrels: Qrels
    split: str = "test"

    @property
    def texts(self) -> list[str]:
        """What every system ranks: title and text of each document."""
        return [document.content for document in self.documents]

    @property
    def query_texts(self) -> list[str]:
        """The queries in their order."""
        return list(self.queries.values())

    @property
    def positions(self) -> dict[str, int]:
        """Document id to its place among the documents."""
        return {document.id: place for place, document in enumerate(self.documents)}

    @property
    def relevant(self) -> list[dict[int, int]]:
        """For each query, in their order: position to grade of the relevant documents that the collection holds."""
        places = self.positions
        judged = (self.qrels.get(query, {}) for query in self.queries)
        return [{places[id]: grade for id, grade in each.items() if grade > 0 and id in places} for each in judged]

    @property
    def missing(self) -> int:
        """How many judged documents are not among the documents, and so cannot be found by any system."""
        return len({id for judged in self.qrels.values() for id in judged} - self.positions.keys())

    def having(self, queries: Container[str]) -> Collection:
        """The same documents with some of the queries."""
        kept = {id: text for id, text in self.queries.items() if id in queries}
        return replace(self, queries=kept, qrels={id: self.qrels[id] for id in kept})

    def with_queries(self, most: int | None) -> Collection:
        """The same documents with at most so many queries, drawn evenly from beginning to end."""
        ids = list(self.queries)
        if most is not None and most < 1:
            raise InputError(f"queries is {most}; allowed: 1 or more")
        if most is None or len(ids) <= most:
            return self
        return self.having({ids[place * len(ids) // most] for place in range(most)})

    def sampled(self, *, documents: int, seed: int, queries: int = 1000) -> Collection:
        """At most so many queries and documents: those judged relevant first, then any; itself where it is small."""
        if len(self.documents) <= documents:
            return self
        random = np.random.default_rng(seed)
        ids = list(self.queries)
        kept = ids if len(ids) <= queries else [ids[at] for at in np.sort(random.permutation(len(ids))[:queries])]
        part = self.having(kept)
        first = sorted({place for relevant in part.relevant for place in relevant})
        others = random.permutation(np.setdiff1d(np.arange(len(self.documents)), first))
        chosen = np.sort(np.concatenate([first, others[: max(documents - len(first), 0)]]).astype(np.int64))
        return replace(part, documents=[self.documents[at] for at in chosen])


def folded(text: str) -> str:
    """A text without case and with single blanks: what is equal so is the same query."""
    return " ".join(text.split()).casefold()


def load(source: str | Path | Collection, *, split: str | None = None) -> Collection:
    """A collection from a BEIR folder, or by its ir_datasets id, such as irds:beir/scifact/test.

    split: of a folder, the name of its qrels file, test where none is given. An id that names its split is read as that
    and refused as another; a split is appended to an id that has parts.
    """
    if isinstance(source, Collection):
        return source
    id = id_of(source)
    return _from_folder(Path(source), split or "test") if id is None else _from_ir_datasets(id, split)


def id_of(source: str | Path) -> str | None:
    """The ir_datasets id that is meant, with or without irds:; None of a folder. What is neither is refused."""
    name = str(source)
    if name.startswith("irds:"):
        return name.removeprefix("irds:")
    if Path(source).is_dir():
        return None
    if name in splits.registered():
        return name
    raise NotFoundError(
        f'no collection "{name}": neither a folder nor an ir_datasets id{_near(name)}; give a BEIR folder '
        f"(corpus.jsonl, queries.jsonl, qrels/test.tsv) or an id, such as irds:beir/scifact/test"
    )


def is_collection(source: str | Path) -> bool:
    """Whether it is an ir_datasets id, or a folder with judgements."""
    name = str(source)
    return name.startswith("irds:") or (Path(source) / "qrels").is_dir() or name in splits.registered()


def tested_queries(source: str | Path) -> dict[str, str]:
    """The judged queries of all test splits of a collection; documents are not read."""
    id = id_of(source)
    if id is None:
        judged = {
            query
            for path in _judgement_files(Path(source))
            if splits.role(path.name.split(".")[0]) == "test"
            for _, query, _, _ in _read_judgements(path)
        }
        return {query: text for query, text in _read_queries(Path(source)).items() if query in judged} if judged else {}
    other = splits.beside(id, "test")
    if other is None:
        return {}
    dataset = _dataset(other)
    if not (dataset.has_queries() and dataset.has_qrels()):
        return {}
    with _reading(other):
        judged = {judgement.query_id for judgement in dataset.qrels_iter()}
        return {query.query_id: _query_text(query) for query in dataset.queries_iter() if query.query_id in judged}


def write(collection: Collection, folder: str | Path) -> Path:
    """A BEIR folder, which appears when all is written; one that is there already is not touched."""
    place = Path(folder)
    if place.exists():
        raise InputError(f'"{place}" is there already; give another folder, or remove it first')
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    documents = ({"_id": each.id, "title": each.title, "text": each.text} for each in collection.documents)
    queries = ({"_id": id, "text": text} for id, text in collection.queries.items())
    judged = [
        f"{query}\t{document}\t{grade}\n"
        for query, found in collection.qrels.items()
        for document, grade in found.items()
    ]
    with disk_errors(place):
        try:
            (beside / "qrels").mkdir(parents=True)
            for name, rows in (("corpus", documents), ("queries", queries)):
                with (beside / f"{name}.jsonl").open("w", encoding="utf-8") as file:
                    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            content = "".join(["query-id\tcorpus-id\tscore\n", *judged])
            (beside / "qrels" / f"{collection.split}.tsv").write_text(content, encoding="utf-8")
            os.replace(beside, place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return place


def _from_folder(folder: Path, split: str) -> Collection:
    for name in ("corpus", "queries"):
        if _file(folder, f"{name}.jsonl") is None:
            raise NotFoundError(
                f"{folder} has no {name}.jsonl or {name}.jsonl.gz; a BEIR folder holds corpus.jsonl, queries.jsonl "
                f"and qrels/{split}.tsv"
            )
    judgements = _file(folder, f"qrels/{split}.tsv")
    if judgements is None:
        known = [path.name.split(".")[0] for path in _judgement_files(folder)]
        hint = f"splits: {', '.join(known)}; choose one: --split {known[0]}" if known else "it has no qrels/*.tsv"
        if known and splits.role(split) in splits.LEARNABLE and not any(map(splits.learnable, known)):
            hint = f"splits: {', '.join(known)}; there is none to learn from, so nothing can be trained or tuned on it"
        raise NotFoundError(f'{folder} has no split "{split}"; {hint}')
    texts = _read_queries(folder)
    qrels: Qrels = {}
    for line, query, document, grade in _read_judgements(judgements):
        if query not in texts:
            raise InputError(
                f'{judgements}, line {line}: judges the query "{query}", which queries.jsonl does not have; '
                f"add the query or remove the line"
            )
        qrels.setdefault(query, {})[document] = grade
    queries = {id: text for id, text in texts.items() if id in qrels}
    return _checked(Collection(folder.resolve().name, list(read(folder)), queries, qrels, split), str(judgements))


def _judgement_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("qrels/*.tsv"), *folder.glob("qrels/*.tsv.gz")])


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _read_queries(folder: Path) -> dict[str, str]:
    path = _file(folder, "queries.jsonl")
    assert path
    found: dict[str, str] = {}
    for number, row in json_lines(path):
        id = str(row.get("_id", row.get("id", "")))
        text = row.get("text")
        if not id.strip() or not isinstance(text, str) or not text.strip():
            raise InputError(f'{path}, line {number}: a query needs both, as in {{"_id": "q1", "text": "..."}}')
        if id in found:
            raise InputError(f'{path}, line {number}: the query id "{id}" stands there twice; remove one')
        found[id] = text
    return found


def _read_judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Line number, query id, document id and grade; the header line, where there is one, is passed over."""
    for number, line in lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if not line.strip() or (number == 1 and len(cells) == 3 and not _is_grade(cells[2])):
            continue
        if len(cells) != 3 or not _is_grade(cells[2]):
            raise InputError(
                f"{path}, line {number}: {line.strip()[:60]!r} is no judgement; "
                f"a line reads: query id, tab, document id, tab, grade (a whole number)"
            )
        yield number, cells[0], cells[1], int(cells[2])


def _is_grade(cell: str) -> bool:
    return cell.strip().removeprefix("-").isdecimal()


def _from_ir_datasets(id: str, split: str | None) -> Collection:
    name = _judged_id(id, split)
    dataset = _dataset(name)
    missing = [part for part in ("docs", "queries", "qrels") if not getattr(dataset, f"has_{part}")()]
    if missing:
        parts = [known for known in splits.registered() if known.startswith(f"{name}/")]
        hint = f"; parts of it: {', '.join(parts[:8])}" if parts else ""
        raise NotFoundError(f'the ir_datasets id "{name}" has no {" and no ".join(missing)}{hint}')
    with _reading(name):
        qrels: Qrels = {}
        for judgement in dataset.qrels_iter():
            qrels.setdefault(judgement.query_id, {})[judgement.doc_id] = int(judgement.relevance)
        texts = {query.query_id: _query_text(query) for query in dataset.queries_iter()}
        documents = [_ir_document(document) for document in dataset.docs_iter()]
    queries = {id: text for id, text in texts.items() if id in qrels}
    # Judgements without a split of their own are for tests, unless those of a train part are among them.
    own = splits.named_in(name) or ("all" if splits.part(name, "train") else "test")
    return _checked(Collection(name, documents, queries, qrels, own), name)


def _judged_id(id: str, split: str | None) -> str:
    """The id whose judgements are meant: the id itself, or its part of that split. Another split's is refused."""
    own = splits.named_in(id)
    if own is None:
        part = splits.part(id, split or "test")
        if part is not None and _dataset(part).has_qrels():
            return part
        if split in (None, "all") or not _dataset(id).has_qrels() or splits.role(split) == "test":
            return id
    elif split is None or splits.agree(own, split):
        return id
    _dataset(id)  # an unknown id is refused as such
    other = splits.beside(id, split)
    what = f'is of the split "{own}"' if own is not None else "is a test split"
    if other is None:
        raise NotFoundError(f'the ir_datasets id "{id}" {what}, and the collection has no split "{split}"')
    raise InputError(f'the ir_datasets id "{id}" {what}, not "{split}"; use irds:{other}')


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Failures of the network, the licence or the disk, said by name."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        causes = re.search(r"(Failed to resolve[^\"']*['\"][^'\"]*['\"]|\[Errno[^)]*)", str(error))
        lines = str(error).strip().splitlines()
        reason = causes[0].replace("\\", "") if causes else (lines[0][:200] if lines else type(error).__name__)
        raise NotFoundError(
            f'cannot get "{name}" by ir_datasets: {reason}; check the connection, or give a BEIR folder'
        ) from error


def _dataset(name: str) -> Any:
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtraError("ir_datasets", extra="eval", purpose=f"the collection irds:{name}") from error
    try:
        return ir_datasets.load(name)
    except KeyError as error:
        raise NotFoundError(
            f'ir_datasets has no "{name}"{_near(name)}; list them: python -m ir_datasets list'
        ) from error


def _near(name: str) -> str:
    near = get_close_matches(name, splits.registered(), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def _query_text(query: Any) -> str:
    return str(query.text if hasattr(query, "text") else query.default_text())


def _ir_document(document: Any) -> Document:
    title = str(getattr(document, "title", "") or "")
    body = next((str(getattr(document, name)) for name in ("text", "abstract", "body") if hasattr(document, name)), "")
    if not title and not body:
        body = str(document.default_text())
    return Document(id=document.doc_id, text=body, title=title)


def _checked(collection: Collection, judgements: str) -> Collection:
    """A collection that can be scored."""
    if not collection.queries:
        raise InputError(
            f"{judgements}: judges none of the queries of {collection.name}; choose another split: --split"
        )
    judged = dict.fromkeys(id for found in collection.qrels.values() for id in found)
    if collection.missing == len(judged):
        example = next(iter(judged))
        raise InputError(
            f'{judgements}: judges only unknown documents, such as "{example}"; the corpus of {collection.name} has '
            f'ids such as "{collection.documents[0].id}"; check that both belong together'
        )
    unknown = [id for id in collection.qrels if id not in collection.queries]
    if unknown:
        raise InputError(f'{judgements}: judges the query "{unknown[0]}", which {collection.name} does not have')
    return collection
