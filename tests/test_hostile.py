"""An index is data, never authority: what a stranger's folder can say, no file elsewhere is changed by it."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import re
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import small
from lexent import adapters, array_files, artifact
from lexent.adapters import Adapter, AdapterConfig, AdapterInfo
from lexent.adapters.adapter import shapes
from lexent.cli.app import app
from lexent.encoders.sentence import SentenceEncoder, embedded_model
from lexent.engine import Index
from lexent.errors import ArtifactError, InputError, LexentError, NotFoundError, WriteError
from lexent.indexing.document_store import CHECKSUMS_FILE
from lexent.indexing.field_index import StoreConnection
from lexent.indexing.lock import check_free, writing
from lexent.indexing.manifest import stamped, verify
from lexent.lexicon import Lexicon
from lexent.lexicon.collection_names import CollectionNames
from lexent.lexicon.concept_words import ConceptWords
from lexent.lexicon.concepts import FILE, Concepts
from lexent.models import load_encoder, load_lexicon
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.types import Document
from living import opened


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments with words, tombstones and a user's name; not to be written to."""
    path = tmp_path_factory.mktemp("whole") / "a"
    docs = small.documents(12)
    with small.build(path, docs[:8], extras=("dense", "lexical")) as index:
        index.add(docs[8:])
        index.delete(["d1", "d9"])
        index.rename(3, "My name")
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(whole, tmp_path / "a")
    return tmp_path / "a"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of somebody else."""
    folder = tmp_path / "home"
    (folder / "letters").mkdir(parents=True)
    (folder / "letters" / "one.txt").write_text("precious")
    (folder / "000009").mkdir()
    (folder / "000009" / "deleted-1.npy").write_text("precious")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(path: Path) -> None:
    with opened(path) as index:
        index.add([Document("new", "king dough", metadata={"n": 4})])
        index.delete(["d3"])
        index.compact()


def link_segments(path: Path, outside: Path) -> None:
    shutil.copytree(path / "segments", outside, dirs_exist_ok=True)
    shutil.rmtree(path / "segments")
    (path / "segments").symlink_to(outside)


def link_one_segment(path: Path, outside: Path) -> None:
    segment = path / "segments" / "000001"
    shutil.copytree(segment, outside, dirs_exist_ok=True)
    shutil.rmtree(segment)
    segment.symlink_to(outside)


def link_file(name: str, path: Path, outside: Path) -> None:
    there = outside / "letters" / "one.txt"
    if (path / name).exists():
        (path / name).rename(there)
    (path / name).symlink_to(there)


LINKS: dict[str, Callable[[Path, Path], None]] = {
    "segments": link_segments,
    "segment": link_one_segment,
    **{
        name: partial(link_file, name)
        for name in (
            "write.lock",
            "labels.json",
            "labels.json.new",
            "manifest.json",
            "manifest.json.new",
            "names-9.npz",
            "segments/000001/codes.npy",
            "segments/000001/deleted-9.npy",
            "segments/000009",
        )
    },
}


@pytest.mark.parametrize("name", LINKS)
def test_links_are_refused_and_never_followed(path: Path, outside: Path, name: str) -> None:
    LINKS[name](path, outside)
    before = contents(outside)
    uses: list[Callable[[], object]] = [
        partial(verify, path),
        partial(opened, path),
        partial(change, path),
        lambda: small.build(path, small.documents(3), overwrite=True).close(),
    ]
    for use in uses[:3]:
        with pytest.raises(ArtifactError, match=r"is a link, and Lexent reads and writes only files"):
            use()
        assert contents(outside) == before
    try:
        uses[3]()
    except LexentError:
        assert name == "write.lock"
    assert contents(outside) == before
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code in (0, ArtifactError.exit_code), done.output


def test_an_index_may_itself_be_behind_a_link(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    change(tmp_path / "link")
    verify(tmp_path / "link")


def test_files_are_written_anew_and_not_through_links(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    for name, write in {
        "a.json.new": lambda: artifact.replace_file(tmp_path / "a.json", b"{}"),
        "a.npy": lambda: array_files.ArrayWriter(tmp_path / "a.npy", np.dtype(np.int64)).close(),
    }.items():
        (tmp_path / name).symlink_to(tmp_path / "target")
        write()
    (tmp_path / "write.lock").symlink_to(tmp_path / "target")
    with pytest.raises(WriteError), writing(tmp_path):
        pass
    with pytest.raises(WriteError):
        check_free(tmp_path)
    assert (tmp_path / "target").read_text() == "precious"


def test_a_lock_that_is_a_file_elsewhere_too_keeps_its_content(path: Path, outside: Path) -> None:
    (path / "write.lock").unlink()
    os.link(outside / "letters" / "one.txt", path / "write.lock")
    change(path)
    assert (outside / "letters" / "one.txt").read_text() == "precious"


def test_pipes_do_not_hang_a_reader(path: Path) -> None:
    for name in ("labels.json", "manifest.json", "segments/000001/codes.npy", "write.lock"):
        (path / name).rename(path.parent / "kept")
        os.mkfifo(path / name)
        for use in (verify, opened, change):
            with pytest.raises(LexentError):
                use(path)
        (path / name).unlink()
        (path.parent / "kept").rename(path / name)
    verify(path)


def renamed_segment(name: str, values: dict[str, Any]) -> None:
    values["segments"][0]["name"] = name
    values["files"] = {
        file.replace("segments/000001/", f"segments/{name}/"): facts for file, facts in values["files"].items()
    }


def with_tombstones(field: str, name: str, values: dict[str, Any]) -> None:
    deleted = values["segments"][0]["deleted"]
    values["files"][f"segments/000001/{name}"] = values["files"].pop(f"segments/000001/{deleted[field]}")
    deleted[field] = name


def with_names(name: str, values: dict[str, Any]) -> None:
    values["files"][name] = values["files"].pop(values["names"])
    values["names"] = name


def with_value(keys: tuple[Any, ...], value: Any, values: dict[str, Any]) -> None:
    for key in keys[:-1]:
        values = values[key]
    values[keys[-1]] = value


MANIFESTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "segment above": partial(renamed_segment, "../../b/segments/000001"),
    "segment by its whole path": partial(renamed_segment, "/tmp"),
    "segment here": partial(renamed_segment, "."),
    "segment with a line end": partial(renamed_segment, "000001\n"),
    "one segment twice": lambda values: values["segments"].append(values["segments"][0]),
    "mask above": partial(with_tombstones, "mask", "../../../b/segments/000001/deleted-3.npy"),
    "df above": partial(with_tombstones, "df", "../000001/deleted-3-df.npy"),
    "names above": partial(with_names, "../b/names-1.npz"),
    "names as the manifest": partial(with_names, "manifest.json"),
    "a file above": lambda values: values["files"].update({"../../etc/passwd": {"size": 1, "sha256": ""}}),
    "a file of no segment": lambda values: values["files"].update({"segments/000007/a.npy": {"size": 1, "sha256": ""}}),
    "a file without a size": lambda values: values["files"].pop("segments/000001/codes.npy"),
    "names without a size": lambda values: values["files"].pop(values["names"]),
    "endless lexicon": partial(with_value, ("lexicon", "size"), 2**60),
    "negative size": partial(with_value, ("segments", 0, "passages"), -1),
    "endless length": partial(with_value, ("segments", 0, "length_units"), 10**300),
    "endless counts": partial(with_value, ("counts", "documents"), 10**300),
    "half a character": partial(with_value, ("lexent",), "\ud800"),
    "no segments": lambda values: values.pop("segments"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_that_name_what_is_not_theirs(path: Path, name: str) -> None:
    shutil.copytree(path, path.with_name("b"))
    before = contents(path.with_name("b"))
    values = json.loads((path / "manifest.json").read_text())
    MANIFESTS[name](values)
    text = json.dumps(values) if name == "half a character" else json.dumps(stamped(values))
    (path / "manifest.json").write_text(text)
    for use in (verify, opened, change):
        with pytest.raises(ArtifactError):
            use(path)
    assert contents(path.with_name("b")) == before


@pytest.mark.parametrize("files", [None, [], {"cfg.json": 3}, {"../secret": {"size": 6, "sha256": ""}}])
def test_lexicons_that_name_what_is_not_theirs(tmp_path: Path, files: Any) -> None:
    small.lexicon().save(tmp_path / "lexicon")
    (tmp_path / "secret").write_text("secret")
    values = json.loads((tmp_path / "lexicon" / "manifest.json").read_text())
    (tmp_path / "lexicon" / "manifest.json").write_text(json.dumps({**values, "files": files}))
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "lexicon")])
    assert done.exit_code == ArtifactError.exit_code, done.output
    if files != []:
        with pytest.raises(ArtifactError):
            load_lexicon(tmp_path / "lexicon")


@pytest.mark.parametrize("name", ["d_in", "d_sae", "k", "buckets"])
def test_lexicons_of_endless_or_no_size(tmp_path: Path, name: str) -> None:
    small.lexicon().save(tmp_path / "lexicon")
    file = tmp_path / "lexicon" / "cfg.json"
    good = json.loads(file.read_text())
    for value in (0, -1, 2**62, 1.5, "8", None):
        file.write_text(json.dumps({**good, "architecture": "winners", "groups": 4, name: value}))
        with pytest.raises(ArtifactError, match=f"{name} is"):
            SparseAutoencoder.load(tmp_path / "lexicon")


def test_names_that_unpack_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MAX_UNPACKED_BYTES", 100_000)
    small.lexicon().save(tmp_path / "lexicon")
    bomb = gzip.compress(b" " * 1_000_000)
    (tmp_path / "lexicon" / FILE).write_bytes(bomb)
    with pytest.raises(ArtifactError, match="too many bytes"):
        Concepts.load(tmp_path / "lexicon", size=96)
    file = io.BytesIO()
    np.savez_compressed(file, words=np.zeros(1_000_000, np.uint8))
    for read in (CollectionNames.from_bytes, partial(ConceptWords.from_bytes, size=96)):
        with pytest.raises(ArtifactError, match="too many bytes"):
            read(file.getvalue())


def test_json_that_is_nested_without_end(path: Path) -> None:
    for name in ("manifest.json", "labels.json"):
        good = (path / name).read_bytes()
        (path / name).write_bytes(b"[" * 200_000)
        with pytest.raises(LexentError):
            opened(path).search("king", k=1)[0].explain()
        (path / name).write_bytes(good)


def test_only_files_of_the_index_are_removed(path: Path) -> None:
    for folder in (path, path / "segments", path / "segments" / "000001"):
        (folder / "notes.txt").write_text("mine")
        (folder / "mine").mkdir()
        (folder / "mine" / "more.txt").write_text("mine")
    with opened(path) as index:
        index.delete(["d3"])
    for folder in (path, path / "segments", path / "segments" / "000001"):
        assert (folder / "notes.txt").exists()
        assert (folder / "mine" / "more.txt").exists()
    verify(path)


def test_what_an_interrupted_run_left_is_not_sought_behind_links(path: Path, tmp_path: Path) -> None:
    before = contents(path)
    (tmp_path / ".b.1-aaaaaa.new").symlink_to(path)
    (tmp_path / ".c.1-aaaaaa.old").symlink_to(path)
    small.build(tmp_path / "b", small.documents(5), extras=("dense", "lexical")).close()
    assert contents(path) == before
    artifact.recover(tmp_path / "c")
    assert not (tmp_path / "c").exists()


# --- files with any content --------------------------------------------------------------------------------------

NASTY = [0, -1, 1, 7, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, float("inf"), float("nan"), True, None, "", "x"]
NASTY += ["../../x", "/etc/passwd", "\x00", "\ud800", [], [1], {}, {"x": 1}, "0" * 1000]
HEADERS = ["(9999999999999,)", "(-1,)", "(2, -3)", "(0,)", "()", "(1, 1, 1)", "(4611686018427387904, 8)", "(True,)"]
TYPES = ["'|O'", "'>i8'", "'<f8'", "'|S0'", "'<U9'", "'|V8'", "'<i1'", "[('a', '<i8')]"]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with all that an index may keep; each example mends what it damaged."""
    path = tmp_path_factory.mktemp("fuzzed") / "a"
    long = Document(
        "long", " ".join(["yeast dough comet king"] * 150), title="All", metadata={"n": 3, "tag": ["a", "b"]}
    )
    with small.build(path, [*small.documents(8), long], extras=("dense", "lexical")) as index:
        index.add([Document("more", "night yeast", metadata={"n": 5, "day": "2019-05-31"})])
        index.delete(["d1"])
        index.rename(3, "My name")
    return path


@st.composite
def mutations(draw: st.DrawFn, good: bytes, others: list[bytes]) -> bytes:
    """Other content for a file: flipped, cut, spliced with another one, or with another head."""
    data = bytearray(good)
    place = st.integers(0, max(0, len(data) - 1))
    for _ in range(draw(st.integers(1, 3))):
        way = draw(st.sampled_from(["flip", "flip", "cut", "fill", "splice", "insert", "head"]))
        start, length = draw(place), draw(st.integers(1, 64))
        if way == "flip" and start < len(data):
            data[start] ^= 1 << draw(st.integers(0, 7))
        elif way == "cut":
            del data[start:]
        elif way == "fill":
            data[start : start + length] = bytes([draw(st.sampled_from([0, 1, 127, 128, 255]))]) * length
        elif way == "splice":
            other = draw(st.sampled_from(others))
            data[start:] = other[start:]
        elif way == "insert":
            data[start:start] = draw(st.binary(max_size=16))
        elif data.startswith(b"\x93NUMPY"):
            text = re.sub(r"\([^)]*\)", draw(st.sampled_from(HEADERS)), data[10:128].decode("latin-1"), count=1)
            if draw(st.booleans()):
                text = re.sub(r"'[|<>][a-zA-Z]\d*'", draw(st.sampled_from(TYPES)), text, count=1)
            data[10:128] = text.rstrip().ljust(117)[:117].encode("latin-1") + b"\n"
    return bytes(data)


def altered(values: Any, draw: st.DrawFn) -> Any:
    """A manifest with another value somewhere."""
    keys = list(values) if isinstance(values, dict) else list(range(len(values))) if isinstance(values, list) else []
    if not keys or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(NASTY))
    key = draw(st.sampled_from(keys))
    changed = values.copy()
    changed[key] = altered(values[key], draw)
    return changed


def survives(path: Path, data: st.DataObject, *, with_changes: bool = False) -> None:
    """Damages one file as an author could, its checksum right, and uses the index: answers and LexentErrors alone."""
    manifest = (path / "manifest.json").read_bytes()
    names = sorted(json.loads(manifest)["files"])
    name = data.draw(st.sampled_from([*names, "labels.json", "manifest.json", "manifest.json", "manifest.json"]))
    good = (path / name).read_bytes()
    try:
        if name == "manifest.json" and data.draw(st.booleans()):
            values = altered(json.loads(good), data.draw)
            with contextlib.suppress(AttributeError, UnicodeEncodeError):
                values = stamped(values)
            (path / name).write_text(json.dumps(values))
        else:
            others = [(path / other).read_bytes() for other in names]
            (path / name).write_bytes(data.draw(mutations(good, others)))
        if name in names:
            values = json.loads(manifest)
            values["files"][name] = artifact.describe_file(path / name)
            (path / "manifest.json").write_text(json.dumps(stamped(values)))
        with contextlib.suppress(LexentError):
            verify(path)
        with contextlib.suppress(LexentError):
            use(path)
        if with_changes:
            shutil.copytree(path, path.with_name("copy"))
            with contextlib.suppress(LexentError):
                change(path.with_name("copy"))
    finally:
        (path / name).write_bytes(good)
        (path / "manifest.json").write_bytes(manifest)
        shutil.rmtree(path.with_name("copy"), ignore_errors=True)


def use(path: Path) -> None:
    """Searches and explains; what fails does not keep the rest from being tried."""
    with opened(path) as index:
        attempts: list[Callable[[], object]] = [
            lambda: [hit.explain() for hit in index.search("yeast dough", k=3)],
            lambda: index.search("king", k=3, filter={"n": {"gte": 2}}),
            lambda: index.search("comet", k=3, mode="dense"),
            lambda: index.document("d3"),
            lambda: index.lexicon.concept(3).label,
        ]
        for attempt in attempts:
            with contextlib.suppress(LexentError):
                attempt()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_content_gives_an_answer_or_an_error(fuzzed: Path, data: st.DataObject) -> None:
    survives(fuzzed, data)


@pytest.mark.slow
def test_much_content_gives_an_answer_or_an_error(fuzzed: Path, record_property: Callable[[str, object], None]) -> None:
    examples, count = int(os.environ.get("LEXENT_FUZZ_EXAMPLES", "3000")), 0

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def holds(data: st.DataObject) -> None:
        nonlocal count
        count += 1
        survives(fuzzed, data, with_changes=True)

    holds()
    record_property("files", count)


@pytest.mark.parametrize("shape", ["(1,)", "(0,)", "(9999999999,)", "(-1,)", "(0, 4611686018427387904)"])
@pytest.mark.parametrize("dtype", ["|S0", "|V0", "<U0", "|O", "<i8"])
def test_heads_of_arrays(tmp_path: Path, dtype: str, shape: str) -> None:
    """Also those at which NumPy itself ends the process, or takes memory for numbers that are not there."""
    head = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    for data in (b"", b"\0" * 8, b"\0" * 80):
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + head + data)
        if (dtype, shape, len(data)) in (("<i8", "(1,)", 8), ("<i8", "(0,)", 0)):
            assert array_files.map_array(tmp_path / "a.npy").tolist() == [0] * (len(data) // 8)
        else:
            with pytest.raises(ArtifactError, match=r"a\.npy is not a readable array"):
                array_files.map_array(tmp_path / "a.npy")


@pytest.mark.parametrize("kind", [[], {}, None, 1, "another"])
def test_a_manifest_of_no_kind(path: Path, kind: Any) -> None:
    values = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(stamped({**values, "kind": kind})))
    with pytest.raises(ArtifactError, match="is not a lexent index"):
        verify(path)


def test_words_that_are_the_same(fuzzed: Path, tmp_path: Path) -> None:
    shutil.copytree(fuzzed, path := tmp_path / "a")
    name = "segments/000001/words-term-ends.npy"
    ends = np.array(np.load(path / name))
    ends[:-1] = 0
    np.save(path / name, ends)
    values = json.loads((path / "manifest.json").read_text())
    values["files"][name] = artifact.describe_file(path / name)
    (path / "manifest.json").write_text(json.dumps(stamped(values)))
    with opened(path) as index, pytest.raises(ArtifactError, match="two of its words are the same"):
        index.add([Document("new", "king dough zebra")])
    verify(path)


# --- documents.sqlite --------------------------------------------------------------------------------------------


def with_sql(path: Path, script: str) -> None:
    """Changes the documents of the first segment by SQL, with the right checksum, and takes out those of documents."""
    name, checksums = "segments/000001/documents.sqlite", f"segments/000001/{CHECKSUMS_FILE}"
    with contextlib.closing(sqlite3.connect(path / name)) as connection:
        connection.executescript(script)
    array_files.write_array(path / checksums, np.zeros_like(np.load(path / checksums)))
    values = json.loads((path / "manifest.json").read_text())
    values["files"] |= {each: artifact.describe_file(path / each) for each in (name, checksums)}
    (path / "manifest.json").write_text(json.dumps(stamped(values)))


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
PROGRAMS = {
    "endless view": f"ALTER TABLE documents RENAME TO kept; CREATE VIEW documents AS {ENDLESS} "
    "SELECT i AS position, 'd' AS id, 't' AS title, 't' AS text, '{}' AS metadata FROM n;",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON documents BEGIN DELETE FROM names; END;",
    "more tables": "CREATE TABLE more (x);",
    "another index": "CREATE INDEX more ON documents (text COLLATE NOCASE);",
    "virtual table": "DROP TABLE names; CREATE VIRTUAL TABLE names USING fts5(field, name);",
    "generated column": "ALTER TABLE documents ADD COLUMN x AS (zeroblob(1000000000));",
    "another type": "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'id TEXT', 'id BLOB');",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_tables_that_are_not_ours_are_refused(path: Path, name: str) -> None:
    with_sql(path, PROGRAMS[name])
    with pytest.raises(ArtifactError, match="its tables are not those of an index"):
        opened(path)


VALUES = {
    "bytes as an id": "UPDATE documents SET id = CAST('d0' AS BLOB) WHERE position = 0",
    "bytes as a text": "UPDATE documents SET text = x'ff00' WHERE position = 0",
    "no text": "UPDATE documents SET text = CAST(x'ff' AS TEXT) WHERE position = 0",
    "bytes as metadata": "UPDATE documents SET metadata = x'7b7d' WHERE position = 0",
    "a list as metadata": "UPDATE documents SET metadata = '[1]' WHERE position = 0",
    "deep metadata": "UPDATE documents SET metadata = '{\"a\":' || printf('%.*c', 5000, '[') WHERE position = 0",
    "text as positions": "UPDATE fields SET positions = 'abcd'",
    "far positions": "UPDATE fields SET positions = x'ffffffff'",
    "odd positions": "UPDATE fields SET positions = x'000000' WHERE value = 0",
    "bytes as a name": "UPDATE names SET name = x'6e'",
    "negative position": "UPDATE documents SET position = -5 WHERE position = 0",
    "a gap": "DELETE FROM documents WHERE position = 0",
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_another_kind_are_refused(path: Path, name: str) -> None:
    with_sql(path, VALUES[name])
    uses: list[Callable[[Any], object]] = [
        lambda index: [(hit.title, hit.explain()) for hit in index.search("flour dough yeast oven", k=20)],
        lambda index: index.search("flour", k=20, filter={"n": {"gte": 0}}),
        lambda index: index.document("d0"),
        lambda index: index.delete(["d0"]),
        lambda index: index.compact(),
    ]
    refused = 0
    for each in uses:
        try:
            with opened(path) as index:
                each(index)
        except LexentError:
            refused += 1
    assert refused


def test_a_query_ends(tmp_path: Path) -> None:
    """Also where pages of the file point to each other, so that there are rows without end: here SQL makes them."""
    with contextlib.closing(sqlite3.connect(tmp_path / "documents.sqlite")) as connection:
        connection.execute("CREATE TABLE documents (x)")
    store = StoreConnection(tmp_path / "documents.sqlite")
    for query, said in (
        ("SELECT count(*) FROM n", "interrupted"),
        ("SELECT printf('%.*c', 1000, 'x') FROM n", "more than it holds"),
        ("SELECT zeroblob(2000000)", "too big"),
    ):
        with pytest.raises(ArtifactError, match=said):
            store.read(f"{ENDLESS} {query}")
    store.close()


# --- the encoder that an index names -----------------------------------------------------------------------------


def naming(path: Path, source: str) -> Path:
    """An index that names another encoder."""
    values = json.loads((path / "manifest.json").read_text())
    values["encoder"] |= {"id": source, "source": source}
    (path / "manifest.json").write_text(json.dumps(stamped(values)))
    return path


def searched(path: Path, **options: Any) -> int:
    with Index.open(path, lexicon=small.lexicon(), **options) as index:
        return len(index.search("king", k=3))


def adapter_of(name: str, folder: Path) -> str:
    form = AdapterConfig(dim=4, width=4, hidden=2)
    tensors = {each: np.zeros(shape, np.float32) for each, shape in shapes(form).items()}
    adapters.save(Adapter(form, tensors, AdapterInfo("test", name, "0")), folder)
    return str(folder)


@pytest.mark.parametrize("engine", ["auto", "light", "torch"])
def test_nothing_is_downloaded_because_an_index_says_so(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    import huggingface_hub

    asked: list[bool] = []

    def snapshot_download(*_: Any, local_files_only: bool = False, **__: Any) -> str:
        asked.append(local_files_only)
        raise OSError("not there")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(SentenceEncoder, "open", lambda *_, **__: asked.append(False))
    monkeypatch.setenv("LEXENT_ENGINE", engine)
    for source in ("somebody/model", adapter_of("somebody/model", tmp_path / "adapter")):
        with pytest.raises(NotFoundError, match=r"somebody/model.*downloaded where you trust it: --trust-encoder"):
            searched(naming(path, source))
    done = CliRunner().invoke(app, ["search", str(naming(path, "somebody/model")), "king"])
    assert done.exit_code == NotFoundError.exit_code
    assert asked
    assert all(asked)
    if engine == "light":  # which leaves downloads to torch, where that is installed
        return
    for options in ({"trust_encoder": True}, {"encoder": "somebody/model"}):
        asked.clear()
        with contextlib.suppress(LexentError, AttributeError, TypeError):
            searched(path, **options)
        assert not all(asked), options
    asked.clear()
    monkeypatch.setenv("LEXENT_TRUST_ENCODER", "1")
    with contextlib.suppress(LexentError, AttributeError, TypeError):
        searched(path)
    assert not all(asked)


def test_an_encoder_on_this_machine_is_loaded_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(embedded_model(), tmp_path / "model")
    encoder = load_encoder(tmp_path / "model")
    lexicon = Lexicon.random(encoder, size=96, seed=0)
    lexicon.save(tmp_path / "lexicon")
    small.build(tmp_path / "a", small.documents(3), encoder=encoder, lexicon=tmp_path / "lexicon").close()
    for engine in ("auto", "light", "torch"):
        monkeypatch.setenv("LEXENT_ENGINE", engine)
        with Index.open(tmp_path / "a") as index:
            index.search("bread")


def with_pickles(model: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(model / "sprung"),)

    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))


def with_own_module(model: Path) -> None:
    modules = json.loads((model / "modules.json").read_text())
    (model / "modules.json").write_text(json.dumps([{**modules[0], "type": "own_module.Module"}, *modules[1:]]))
    (model / "own_module.py").write_text(f"import os\nos.mkdir({str(model / 'sprung')!r})\n")


def with_base_elsewhere(model: Path) -> None:
    (model / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "somebody/model"}))


def with_arguments(model: Path) -> None:
    (model / "sentence_bert_config.json").write_text(json.dumps({"model_args": {"trust_remote_code": True}}))


@pytest.mark.parametrize("change", [with_pickles, with_own_module, with_base_elsewhere, with_arguments])
@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_no_code_of_an_encoder_is_run_because_an_index_says_so(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], engine: str
) -> None:
    model = tmp_path / "model"
    shutil.copytree(embedded_model(), model)
    change(model)
    monkeypatch.setenv("LEXENT_ENGINE", engine)
    monkeypatch.syspath_prepend(str(model))
    with pytest.raises(InputError, match="--trust-encoder"):
        searched(naming(path, str(model)))
    assert not (model / "sprung").exists()


def test_remote_code_is_never_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    shutil.copytree(embedded_model(), model)
    config = json.loads((model / "config.json").read_text())
    auto = {"AutoConfig": "own.Config", "AutoModel": "own.Model"}
    (model / "config.json").write_text(json.dumps({**config, "model_type": "own", "auto_map": auto}))
    (model / "own.py").write_text(f"import os\nos.mkdir({str(model / 'sprung')!r})\n")
    monkeypatch.setenv("LEXENT_ENGINE", "torch")
    with pytest.raises(LexentError):
        searched(naming(path, str(model)))
    with pytest.raises(LexentError):
        searched(path, trust_encoder=True)
    assert not (model / "sprung").exists()


# --- files that are cut short ------------------------------------------------------------------------------------


def test_a_file_that_was_cut_short_is_named_when_an_index_is_refreshed(fuzzed: Path, tmp_path: Path) -> None:
    """Every file that is mapped is among them: a segment may hold no file without a size in the manifest."""
    path = tmp_path / "a"
    shutil.copytree(fuzzed, path)
    with opened(path) as index:
        for name in sorted(index.manifest.files):
            good = (path / name).read_bytes()
            os.truncate(path / name, len(good) - 1)
            for use in (index.refresh, partial(opened, path)):
                with pytest.raises(ArtifactError, match=re.escape(name)):
                    use()
            (path / name).write_bytes(good)
        assert index.refresh() is False
