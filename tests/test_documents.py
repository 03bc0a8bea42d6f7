"""The store of documents: what is written is read, copied and found again, from any thread."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexent.errors import ArtifactError, InputError, NotFoundError
from lexent.indexing.document_store import CHECKSUMS_FILE, FILE, Documents, DocumentWriter
from lexent.indexing.filters import Filter
from lexent.types import Document

DOCUMENTS = [
    Document("a", "first", "A", {"year": 2001, "author": {"name": "Ada"}, "tags": ["x", "y"]}),
    Document("b", "second", "", {"year": 2001.0, "none": None, "deep": [{"k": 1}, {"k": 2}]}),
    Document("ü", "third \U0001f600", "", {"year": "2001", "ok": True, "empty": {}, "list": []}),
    Document("d", "fourth"),
]
FILTERS = [
    {"year": 2001},
    {"year": "2001"},
    {"author.name": "Ada"},
    {"tags": "y"},
    {"deep.k": {"gt": 1}},
    {"ok": True},
    {"year": {"exists": False}},
]


def written(folder: Path, documents: list[Document]) -> Documents:
    folder.mkdir(parents=True, exist_ok=True)
    with DocumentWriter(folder) as writer:
        writer.add(documents)
    return Documents(folder)


def many(n: int) -> list[Document]:
    return [Document(f"d{number}", f"text {number}", metadata={"n": number, "m": number % 7}) for number in range(n)]


@pytest.fixture
def store(tmp_path: Path) -> Documents:
    return written(tmp_path / "store", DOCUMENTS)


def test_what_is_written_is_read(store: Documents) -> None:
    assert len(store) == 4
    assert store.at([2, 0]) == [DOCUMENTS[2], DOCUMENTS[0]]
    assert store.ids([3, 0]) == ["d", "a"]
    assert store.some_ids(2) == ["a", "b"]
    assert store.field_names() == ["author.name", "deep.k", "ok", "tags", "year"]
    assert store.field_kinds("year") == {"number", "text"}
    assert store.field_kinds("ok") == {"boolean"}
    assert store.field_kinds("none") == set()


def test_ids_are_found_or_not(store: Documents) -> None:
    assert store.positions(["b"]) == {"b": 1}
    assert store.positions(["e"]) == {}
    assert store.positions(["d", "nobody", "a", "a", "\ud800"]) == {"a": 0, "d": 3}
    assert store.positions([]) == {}
    with pytest.raises(NotFoundError, match="no document"):
        store.at([4])


def test_many_ids_at_once(tmp_path: Path) -> None:
    store = written(tmp_path, many(3000))
    asked = [f"d{number}" for number in range(1, 6000, 2)]
    assert store.positions(asked) == {f"d{number}": number for number in range(1, 3000, 2)}


def test_an_empty_store(tmp_path: Path) -> None:
    store = written(tmp_path, [])
    assert len(store) == 0
    assert store.matching(Filter.of({"a": 1})).shape == (0,)
    assert store.field_names() == store.some_ids() == []
    assert store.positions(["a"]) == {}


def test_documents_in_several_calls(tmp_path: Path) -> None:
    with DocumentWriter(tmp_path) as writer:
        for document in DOCUMENTS:
            writer.add([document])
        assert writer.count == 4
        with pytest.raises(InputError, match='documents 2 and 6 have the same id "b"'):
            writer.add([Document("e", "fifth", metadata={"year": 7}), Document("b", "again", metadata={"year": 7})])
        writer.add([Document("f", "sixth", metadata={"year": 8})])
    store = Documents(tmp_path)
    assert store.ids(range(5)) == ["a", "b", "ü", "d", "f"]
    assert not store.matching(Filter.of({"year": 7})).any()
    assert store.matching(Filter.of({"year": 8})).tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, object(), {1: 2}, "\ud800", {"\ud800": 1}])
def test_metadata_that_json_cannot_keep_is_refused(tmp_path: Path, value: Any) -> None:
    with DocumentWriter(tmp_path) as writer, pytest.raises(InputError, match='document 1, id "a": its metadata'):
        writer.add([Document("a", "text", metadata={"v": value})])


# --- masks -------------------------------------------------------------------------------------------------------


def test_masks_are_remembered_and_cannot_be_changed(store: Documents) -> None:
    first = store.matching(Filter.of({"year": 2001, "tags": "x"}))
    assert store.matching(Filter.of({"tags": ["x"], "year": {"eq": 2001.0}})) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = False


def test_only_the_last_masks_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexent.indexing.field_index.MASK_BYTES", 0)
    store = written(tmp_path, many(50))
    first = store.matching(Filter.of({"n": 0}))
    for number in range(50):
        assert np.flatnonzero(store.matching(Filter.of({"n": number}))).tolist() == [number]
    again = store.matching(Filter.of({"n": 0}))
    assert again is not first
    np.testing.assert_array_equal(again, first)
    assert len(store._masks) == 4


def test_many_threads_read_and_filter(tmp_path: Path) -> None:
    store = written(tmp_path, many(2000))

    def work(seed: int) -> bool:
        chooser = np.random.default_rng(seed)
        for _ in range(40):
            low, rest = int(chooser.integers(2000)), int(chooser.integers(7))
            found = store.matching(Filter.of({"n": {"gte": low}, "m": rest}))
            expected = [number for number in range(low, 2000) if number % 7 == rest]
            if np.flatnonzero(found).tolist() != expected or store.at([low])[0].id != f"d{low}":
                return False
            if store.positions([f"d{low}", "x"]) != {f"d{low}": low}:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


# --- copies ------------------------------------------------------------------------------------------------------


def test_a_copy_keeps_everything(tmp_path: Path, store: Documents) -> None:
    (tmp_path / "copy").mkdir()
    with DocumentWriter(tmp_path / "copy") as writer:
        writer.copy(store, np.arange(4))
    copy = Documents(tmp_path / "copy")
    assert copy.at(range(4)) == DOCUMENTS
    assert copy.field_names() == store.field_names()
    for where in FILTERS:
        np.testing.assert_array_equal(copy.matching(Filter.of(where)), store.matching(Filter.of(where)))


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_a_merge_is_what_writing_all_would_be(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any positions in any order of several stores, with documents added before, between and after."""
    folder = tmp_path_factory.mktemp("merge")
    expected: list[Document] = []
    (folder / "merged").mkdir()
    with DocumentWriter(folder / "merged") as writer:
        for part in range(data.draw(st.integers(1, 3))):
            documents = [
                Document(f"{part}-{document.id}", document.text, "", document.metadata)
                for document in DOCUMENTS + many(300)
            ]
            kept = data.draw(
                st.one_of(st.permutations(range(20)), st.lists(st.integers(0, 303), unique=True, max_size=400))
            )
            source = written(folder / str(part), documents)
            writer.copy(source, np.array(kept, dtype=np.int64))
            source.close()
            expected += [documents[place] for place in kept]
            beside = Document(f"{part}-beside", "", metadata={"n": 5, "tags": ["y"]})
            writer.add([beside])
            expected.append(beside)
        assert writer.count == len(expected)
    merged, whole = Documents(folder / "merged"), written(folder / "whole", expected)
    assert merged.at(range(len(expected))) == expected
    assert merged.field_names() == whole.field_names()
    for where in [*FILTERS, {"n": {"gte": 100}}, {"m": [3, 5]}, {"n": 5}]:
        np.testing.assert_array_equal(merged.matching(Filter.of(where)), whole.matching(Filter.of(where)))


def test_a_copy_of_nothing(tmp_path: Path, store: Documents) -> None:
    (tmp_path / "copy").mkdir()
    with DocumentWriter(tmp_path / "copy") as writer:
        writer.copy(store, np.array([], dtype=np.int64))
    assert len(Documents(tmp_path / "copy")) == 0


def test_doubled_ids_of_a_copy_are_refused(tmp_path: Path, store: Documents) -> None:
    (tmp_path / "copy").mkdir()
    with DocumentWriter(tmp_path / "copy") as writer:
        writer.add([Document("new", "text"), DOCUMENTS[1]])
        with pytest.raises(InputError, match='documents 2 and 4 have the same id "b"'):
            writer.copy(store, np.arange(4))
        with pytest.raises(InputError, match='documents 3 and 5 have the same id "d"'):
            writer.copy(store, np.array([3, 2, 3]))
        writer.copy(store, np.array([3, 2]))
    assert Documents(tmp_path / "copy").ids(range(4)) == ["new", "b", "d", "ü"]


# --- damage and the disk -----------------------------------------------------------------------------------------


def test_a_damaged_store_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "store", many(2000)).close()
    path = tmp_path / "store" / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(ArtifactError, match=r"is damaged: .* build the index again"):
        Documents(tmp_path / "store").matching(Filter.of({"n": {"gte": 0}}))
    path.write_bytes(b"no database, but long enough to be looked at" * 100)
    with pytest.raises(ArtifactError, match="is damaged"):
        Documents(tmp_path / "store")


def flip(folder: Path, content: bytes) -> None:
    """Changes the last byte of some content of the file of a store, which stays a good database."""
    path = folder / FILE
    whole = bytearray(path.read_bytes())
    whole[whole.index(content) + len(content) - 1] ^= 1
    path.write_bytes(whole)


@pytest.mark.parametrize("content", [b"fourth", b"of a title", b'{"k":2'])
def test_a_document_that_changed_is_refused_when_it_is_read(tmp_path: Path, content: bytes) -> None:
    written(tmp_path / "store", [*DOCUMENTS, Document("e", "fifth", "of a title")]).close()
    flip(tmp_path / "store", content)
    store = Documents(tmp_path / "store")
    with DocumentWriter(made(tmp_path / "copy")) as writer:
        writer.copy(store, np.array([4, 3, 1, 0]))
    for place, found in ((tmp_path / "store", store), (tmp_path / "copy", Documents(tmp_path / "copy"))):
        with pytest.raises(ArtifactError, match=f"{place}.* is damaged: .* changed since it was written"):
            found.at(range(len(found)))
        assert found.at([found.positions(["a"])["a"]]) == DOCUMENTS[:1]


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_documents_of_an_older_version_have_no_checksums(tmp_path: Path) -> None:
    written(tmp_path / "store", DOCUMENTS).close()
    (tmp_path / "store" / CHECKSUMS_FILE).unlink()
    older = Documents(tmp_path / "store")
    assert older.at(range(4)) == DOCUMENTS
    with DocumentWriter(made(tmp_path / "copy")) as writer:
        writer.copy(older, np.arange(1, 3))
        writer.add([Document("e", "fifth")])
    assert Documents(tmp_path / "copy").at([0, 1, 2]) == [*DOCUMENTS[1:3], Document("e", "fifth")]
    flip(tmp_path / "copy", b"fifth")
    copy = Documents(tmp_path / "copy")
    assert copy.at([0]) == DOCUMENTS[1:2]
    with pytest.raises(ArtifactError, match="changed since it was written"):
        copy.at([2])


def test_checksums_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "store", DOCUMENTS).close()
    for wrong in (np.zeros(3, np.uint32), np.zeros(4, np.int64), np.zeros((4, 1), np.uint32)):
        np.save(tmp_path / "store" / CHECKSUMS_FILE, wrong)
        with pytest.raises(ArtifactError, match="document-checksums"):
            Documents(tmp_path / "store")


def test_a_damaged_source_is_not_copied(tmp_path: Path) -> None:
    written(tmp_path / "store", many(2000)).close()
    source = Documents(tmp_path / "store")
    path = tmp_path / "store" / FILE
    path.write_bytes(path.read_bytes()[:8192] + b"\xff" * (path.stat().st_size - 8192))
    (tmp_path / "copy").mkdir()
    with DocumentWriter(tmp_path / "copy") as writer, pytest.raises(ArtifactError, match=r"store.* is damaged"):
        writer.copy(source, np.arange(2000))


def test_a_store_without_fields_says_so(tmp_path: Path) -> None:
    written(tmp_path, DOCUMENTS).close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("DROP TABLE fields")
    with pytest.raises(ArtifactError, match="build the index again"):
        Documents(tmp_path).matching(Filter.of({"year": 1}))


@pytest.mark.parametrize("how", ["add", "copy"])
def test_a_full_disk_is_a_write_error(tmp_path: Path, how: str) -> None:
    written(tmp_path / "store", many(5000)).close()
    program = f"""
        import resource, signal, sys
        from pathlib import Path
        import numpy as np
        from lexent.errors import WriteError
        from lexent.indexing.document_store import Documents, DocumentWriter
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        source = Documents(Path("store"))
        Path("new").mkdir()
        try:
            with DocumentWriter(Path("new")) as writer:
                if {how!r} == "add":
                    writer.add(source.at(range(5000)))
                else:
                    writer.copy(source, np.arange(5000))
        except WriteError as error:
            sys.exit(0 if "no space left" in str(error) else str(error))
        sys.exit("nothing was refused")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
