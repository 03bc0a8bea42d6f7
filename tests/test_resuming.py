"""Indexing that was interrupted goes on where it stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import living
import small
from lexent.encoders import TinyEncoder
from lexent.errors import InputError
from lexent.indexing import builder, resuming
from lexent.types import Document

DOCUMENTS = small.documents(40)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of four documents, with a checkpoint after each."""
    monkeypatch.setattr(builder, "DOCUMENTS_PER_CHUNK", 4)
    monkeypatch.setattr(resuming, "CHECKPOINT_SECONDS", 0.0)


class Counting(TinyEncoder):
    """Counts the documents that are encoded."""

    def __init__(self) -> None:
        self.encoded = 0

    def batches(self, texts: Any, **how: Any) -> Any:
        self.encoded += len(texts)
        return super().batches(texts, **how)


def failing(documents: list[Document], after: int) -> Iterator[Document]:
    for number, document in enumerate(documents):
        if number == after:
            raise KeyboardInterrupt
        yield document


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith((".new", ".old")))


def test_what_was_encoded_is_not_encoded_again(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    with pytest.raises(KeyboardInterrupt):
        small.build(tmp_path / "a", failing(DOCUMENTS, 30), encoder=first)
    assert not (tmp_path / "a").exists()
    assert len(left(tmp_path)) == 1
    done: list[int] = []
    with small.build(tmp_path / "a", iter(DOCUMENTS), encoder=second, progress=done.append) as index:
        assert (first.encoded, second.encoded) == (28, 12)
        assert sum(done) == 40
        assert living.state(index) == living.state(small.build(tmp_path / "b", DOCUMENTS))
        assert len(index.manifest.segments) == 1
        index.verify()
    assert not left(tmp_path)


def test_a_killed_process_leaves_its_checkpoints(tmp_path: Path) -> None:
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import small
from pathlib import Path
from lexent.indexing import builder, resuming
builder.DOCUMENTS_PER_CHUNK, resuming.CHECKPOINT_SECONDS = 4, 0.0
def documents():
    for number, document in enumerate(small.documents(40)):
        if number == 21:
            os.kill(os.getpid(), signal.SIGKILL)
        yield document
small.build(Path({str(tmp_path / "a")!r}), documents())
"""
    killed = subprocess.run([sys.executable, "-c", program], check=False, env={**os.environ})
    assert killed.returncode == -signal.SIGKILL
    counting = Counting()
    with small.build(tmp_path / "a", DOCUMENTS, encoder=counting) as index:
        assert counting.encoded == 20
        assert living.state(index) == living.state(small.build(tmp_path / "b", DOCUMENTS))


@pytest.mark.parametrize(
    "documents",
    [
        [*DOCUMENTS[:10], Document("d10", "something else"), *DOCUMENTS[11:]],
        DOCUMENTS[1:],
        DOCUMENTS[:6],
        [*DOCUMENTS[:9], Document("d9", DOCUMENTS[9].text, DOCUMENTS[9].title, {"n": 99}), *DOCUMENTS[10:]],
        DOCUMENTS[::-1],
    ],
    ids=["one changed", "first gone", "last gone", "metadata changed", "other order"],
)
def test_documents_that_changed_meanwhile_are_indexed_anew(tmp_path: Path, documents: list[Document]) -> None:
    with pytest.raises(KeyboardInterrupt):
        small.build(tmp_path / "a", failing(DOCUMENTS, 30))
    with small.build(tmp_path / "a", iter(documents)) as index:
        assert living.state(index) == living.state(small.build(tmp_path / "b", documents))


@pytest.mark.parametrize("first", [4, "n/a"])
def test_fields_of_documents_that_are_gone_have_no_kind(tmp_path: Path, first: object) -> None:
    """A field holds numbers after an interrupted run that had texts in it, and the other way round."""
    second = "n/a" if first == 4 else 4
    before, after = (
        [
            Document(one.id, one.text, one.title, {**one.metadata, **({"year": year} if place > 2 else {})})
            for place, one in enumerate(DOCUMENTS)
        ]
        for year in (first, second)
    )
    with pytest.raises(KeyboardInterrupt):
        small.build(tmp_path / "a", failing(before, 30))
    with small.build(tmp_path / "a", iter(after)) as index:
        assert index.search("pawn", k=1, filter={"year": second})[0].metadata["year"] == second
        assert living.state(index) == living.state(small.build(tmp_path / "b", after))


def test_a_killed_process_that_is_not_yet_reaped_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt, match="the same command goes on from there"):
        small.build(tmp_path / "a", failing(DOCUMENTS, 30))
    (folder,) = left(tmp_path)
    killed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (tmp_path / folder).rename(tmp_path / f".a.{killed.pid}-abcdef.new")
        counting = Counting()
        small.build(tmp_path / "a", DOCUMENTS, encoder=counting).close()
    finally:
        killed.kill()
        killed.wait()
    assert counting.encoded == 12
    assert not left(tmp_path)


def test_a_folder_that_another_process_works_on_is_left_to_it(tmp_path: Path) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import small
from pathlib import Path
from lexent.indexing import builder, resuming
builder.DOCUMENTS_PER_CHUNK, resuming.CHECKPOINT_SECONDS = 4, 0.0
def documents():
    for number, document in enumerate(small.documents(40)):
        if number == 21:
            print("ready", flush=True)
            input()
        yield document
small.build(Path({str(tmp_path / "a")!r}), documents())
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    counting = Counting()
    small.build(tmp_path / "a", DOCUMENTS, encoder=counting).close()
    assert counting.encoded == 40
    assert len(left(tmp_path)) == 1
    other.communicate("go\n")
    assert other.returncode != 0  # the index is there now
    small.build(tmp_path / "a", DOCUMENTS, overwrite=True).close()
    assert not left(tmp_path)


def test_other_settings_begin_anew(tmp_path: Path) -> None:
    for settings in ({"recipe": "ssr"}, {"lexicon": small.lexicon(1)}, {"resume": False}):
        with pytest.raises(KeyboardInterrupt):
            small.build(tmp_path / "a", failing(DOCUMENTS, 30), overwrite=True)
        counting = Counting()
        small.build(tmp_path / "a", DOCUMENTS, **{"encoder": counting, **settings}, overwrite=True).close()
        assert counting.encoded == 40
        assert not left(tmp_path)


def test_an_interruption_before_a_checkpoint_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "CHECKPOINT_SECONDS", 60.0)
    with pytest.raises(KeyboardInterrupt):
        small.build(tmp_path / "a", failing(DOCUMENTS, 30))
    assert not left(tmp_path)


def test_ids_are_unique_over_all_steps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='two documents have the id "d3"'):
        small.build(tmp_path / "a", [*DOCUMENTS, Document("d3", "again")])


def test_an_interrupted_build_leaves_the_old_index(tmp_path: Path) -> None:
    small.build(tmp_path / "a", DOCUMENTS[:5]).close()
    with pytest.raises(KeyboardInterrupt):
        small.build(tmp_path / "a", failing(DOCUMENTS, 30), overwrite=True)
    with living.opened(tmp_path / "a") as index:
        assert len(index) == 5


def test_chunks_grow_while_the_work_on_them_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [Document(str(n), "word " * 20) for n in range(63)]
    monkeypatch.setattr(builder, "DOCUMENTS_PER_CHUNK", 4096)
    monkeypatch.setattr(builder, "FIRST_CHUNK_CHARS", 400)
    assert [len(chunk) for chunk in builder.in_chunks(documents)] == [4, 8, 16, 32, 3]
    monkeypatch.setattr(builder, "SHORT_CHUNK_SECONDS", 0.0)
    assert {len(chunk) for chunk in builder.in_chunks(documents[:60])} == {4}


def test_long_documents_make_short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "CHARS_PER_CHUNK", 100)
    documents = [Document(str(n), "word " * n) for n in (1, 30, 2, 3, 50)]
    assert [len(chunk) for chunk in builder.in_chunks(documents)] == [2, 3]
