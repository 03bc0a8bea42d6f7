"""Test collections from BEIR folders and from ir_datasets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lexent.errors import InputError, LexentError, NotFoundError
from lexent.evaluation import load

CORPUS = [{"_id": "Geneva Durben", "title": "", "text": "likes quokkas"}, {"_id": "b", "title": "B", "text": "cats"}]
QUERIES = [{"_id": "q1", "text": "who likes quokkas?"}, {"_id": "q2", "text": "cats?"}, {"_id": "q3", "text": "x"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "people"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, CORPUS)).encode()))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, QUERIES)))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq2\tb\t2\nq1\tGeneva Durben\t1\n")
    (folder / "qrels" / "train.tsv").write_text("q3\tb\t1\nq3\tgone\t1\n")
    return folder


def refused(source: Path | str, kind: type[LexentError], split: str = "test") -> str:
    with pytest.raises(kind) as caught:
        load(source, split=split)
    return str(caught.value)


def test_a_beir_folder(folder: Path) -> None:
    found = load(folder)
    assert (found.name, found.split, found.missing) == ("people", "test", 0)
    assert found.queries == {"q1": "who likes quokkas?", "q2": "cats?"}, "only judged ones, as in their file"
    assert found.qrels == {"q2": {"b": 2}, "q1": {"Geneva Durben": 1}}
    assert found.texts == ["likes quokkas", "B cats"]
    assert load(found) is found
    train = load(str(folder), split="train")
    assert (list(train.queries), train.missing) == (["q3"], 1)


def test_missing_parts(folder: Path) -> None:
    message = refused(folder, NotFoundError, split="dev")
    assert f'{folder} has no split "dev"; splits: test, train; choose one: --split test' in message
    (folder / "queries.jsonl").rename(folder / "questions.jsonl")
    assert f"{folder} has no queries.jsonl or queries.jsonl.gz" in refused(folder, NotFoundError)
    message = refused("beir/scifactt/test", NotFoundError)
    assert 'did you mean "beir/scifact/test"?' in message
    assert "qrels/test.tsv" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1\tb\t1\nq9\tb\t1\n", 'line 2: judges the query "q9", which queries.jsonl does not have'),
        ("q1\tb\n", "line 1: 'q1\\tb' is no judgement; a line reads: query id, tab, document id, tab, grade"),
        ("q1\tb\t1\nq2\tb\thigh\n", "line 2"),
        ("q1\tx\t1\nq2\ty\t1\n", 'judges only unknown documents, such as "x"'),
        ("query-id\tcorpus-id\tscore\n", "judges none of the queries"),
    ],
)
def test_bad_judgements(folder: Path, content: str, message: str) -> None:
    path = folder / "qrels" / "test.tsv"
    path.write_text(content)
    found = refused(folder, InputError)
    assert found.startswith(str(path))
    assert message in found


def test_bad_queries(folder: Path) -> None:
    path = folder / "queries.jsonl"
    path.write_text('{"_id": "q1", "text": "a"}\n{"_id": "q1", "text": "b"}\n')
    assert f'{path}, line 2: the query id "q1" stands there twice' in refused(folder, InputError)
    path.write_text('{"_id": "q1", "text": " "}\n')
    assert f"{path}, line 1: a query needs both" in refused(folder, InputError)
    path.write_text('{"_id": "q1"\n')
    assert f"{path}, line 1: broken JSON" in refused(folder, InputError)


def test_ir_datasets(tmp_path: Path) -> None:
    ir_datasets = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("d1\tcats purr\nd2\tdogs bark\n")
    (tmp_path / "queries.tsv").write_text("q1\twhat purrs?\nq2\tunjudged\n")
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    files = {"docs_tsv": tmp_path / "docs.tsv", "queries_tsv": tmp_path / "queries.tsv"}
    whole = ir_datasets.create_dataset(**{name: str(path) for name, path in files.items()})
    judged = ir_datasets.create_dataset(
        **{name: str(path) for name, path in files.items()}, qrels_trec=str(tmp_path / "qrels")
    )
    if "lexent-pets" not in set(ir_datasets.registry):
        ir_datasets.registry.register("lexent-pets", whole)
        ir_datasets.registry.register("lexent-pets/test", judged)
    for name in ("irds:lexent-pets/test", "lexent-pets/test", "irds:lexent-pets"):
        found = load(name)
        assert (found.name, found.queries, found.qrels) == (
            "lexent-pets/test",
            {"q1": "what purrs?"},
            {"q1": {"d1": 1}},
        )
        assert found.texts == ["cats purr", "dogs bark"]
    message = refused("irds:lexent-pets", NotFoundError, split="dev")
    assert 'the ir_datasets id "lexent-pets" has no qrels; parts of it: lexent-pets/test' in message
    assert 'ir_datasets has no "lexent-petz"; did you mean "lexent-pets"?' in refused("irds:lexent-petz", NotFoundError)


def test_ir_datasets_that_cannot_be_had(tmp_path: Path) -> None:
    ir_datasets = pytest.importorskip("ir_datasets")
    broken = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "gone.tsv"), queries_tsv=str(tmp_path / "gone.tsv"), qrels_trec=str(tmp_path / "gone")
    )
    if "lexent-gone" not in set(ir_datasets.registry):
        ir_datasets.registry.register("lexent-gone", broken)
    assert 'cannot get "lexent-gone" by ir_datasets' in refused("irds:lexent-gone", NotFoundError)


@pytest.mark.data
def test_real_folders(data_dir: Path) -> None:
    found = load(data_dir / "limit-small")
    assert (len(found.documents), len(found.queries), found.missing) == (46, 1000, 0)
    assert found.documents[0].id == "Geneva Durben"
