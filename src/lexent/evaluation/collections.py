"""Test collections: documents, queries and judgements, from a BEIR folder or from ir_datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lexent.corpus import read
from lexent.corpus.lines import lines
from lexent.corpus.readers import json_lines
from lexent.errors import InputError, MissingExtraError, NotFoundError
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
    def missing(self) -> int:
        """How many judged documents are not among the documents, and so cannot be found by any system."""
        known = {document.id for document in self.documents}
        return len({id for judged in self.qrels.values() for id in judged} - known)


def load(source: str | Path | Collection, *, split: str = "test") -> Collection:
    """A collection from a BEIR folder, or by its ir_datasets id, such as irds:beir/scifact/test."""
    if isinstance(source, Collection):
        return source
    name = str(source)
    if name.startswith("irds:"):
        return _from_ir_datasets(name.removeprefix("irds:"), split)
    if Path(source).is_dir():
        return _from_folder(Path(source), split)
    if _is_known(name):
        return _from_ir_datasets(name, split)
    raise NotFoundError(
        f'no collection "{name}": neither a folder nor an ir_datasets id{_near(name)}; give a BEIR folder '
        f"(corpus.jsonl, queries.jsonl, qrels/test.tsv) or an id, such as irds:beir/scifact/test"
    )


def _from_folder(folder: Path, split: str) -> Collection:
    for name in ("corpus", "queries"):
        if _file(folder, f"{name}.jsonl") is None:
            raise NotFoundError(
                f"{folder} has no {name}.jsonl or {name}.jsonl.gz; a BEIR folder holds corpus.jsonl, queries.jsonl "
                f"and qrels/{split}.tsv"
            )
    judgements = _file(folder, f"qrels/{split}.tsv")
    if judgements is None:
        splits = sorted(path.name.split(".")[0] for path in folder.glob("qrels/*.tsv*"))
        hint = f"splits: {', '.join(splits)}; choose one: --split {splits[0]}" if splits else "it has no qrels/*.tsv"
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


def _from_ir_datasets(name: str, split: str) -> Collection:
    dataset = _dataset(name)
    if not dataset.has_qrels() and _is_known(f"{name}/{split}"):
        name, dataset = f"{name}/{split}", _dataset(f"{name}/{split}")
    missing = [part for part in ("docs", "queries", "qrels") if not getattr(dataset, f"has_{part}")()]
    if missing:
        from ir_datasets import registry

        parts = [known for known in registry if known.startswith(f"{name}/")]
        hint = f"; parts of it: {', '.join(parts[:8])}" if parts else ""
        raise NotFoundError(f'the ir_datasets id "{name}" has no {" and no ".join(missing)}{hint}')
    try:
        qrels: Qrels = {}
        for judgement in dataset.qrels_iter():
            qrels.setdefault(judgement.query_id, {})[judgement.doc_id] = int(judgement.relevance)
        texts = {query.query_id: _query_text(query) for query in dataset.queries_iter()}
        documents = [_ir_document(document) for document in dataset.docs_iter()]
    except (OSError, RuntimeError) as error:  # the network, the licence or the disk
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise NotFoundError(
            f'cannot get "{name}" by ir_datasets: {reason[:200]}; check the connection, or give a BEIR folder'
        ) from error
    queries = {id: text for id, text in texts.items() if id in qrels}
    return _checked(Collection(name, documents, queries, qrels, split), name)


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


def _is_known(name: str) -> bool:
    try:
        from ir_datasets import registry
    except ImportError:
        return False
    return name in set(registry)


def _near(name: str) -> str:
    try:
        from ir_datasets import registry
    except ImportError:
        return ""
    near = get_close_matches(name, list(registry), n=1)
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
    judged: Mapping[str, object] = {id: None for found in collection.qrels.values() for id in found}
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
