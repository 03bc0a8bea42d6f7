"""Backups: one state of an index whatever writers do meanwhile, and archives that are data and not authority."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import lexent
import living
import small
from commands import data, furnished, good, run
from faulty import Disk
from lexent import artifact
from lexent.errors import ArtifactError, InputError, LexentError, NotFoundError, SyncError, WriteError
from lexent.indexing import archive, backup
from lexent.indexing.lock import writing
from lexent.indexing.manifest import stamped, verify
from lexent.types import Document
from living import Model, opened, state


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with three segments, words, vectors, passages, tombstones and a user's name; not to be written to."""
    path = tmp_path_factory.mktemp("whole") / "a"
    docs = small.documents(36)
    with small.build(path, docs[:20], extras=("dense", "lexical")) as index:
        index.add([*docs[20:30], Document("long", "king queen. " * 300, metadata={"n": 3})])
        index.delete(["d1", "d7", "d25"])
        index.add(docs[30:])
        index.rename(3, "My name")
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(whole, tmp_path / "a")
    return tmp_path / "a"


@pytest.fixture(scope="module")
def tar(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A backup of it."""
    file = tmp_path_factory.mktemp("tar") / "a.tar"
    backup.backup(whole, file)
    return file.read_bytes()


def seen(path: Path) -> dict[str, Any]:
    """All that an index holds, with the name that a user gave."""
    with opened(path) as index:
        return {**state(index), "name": index.lexicon.concepts[3].label}


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def restored(file: Path | io.BytesIO, out: Path) -> Path:
    backup.restore(file, out)
    verify(out)
    return out


def refused(file: Path | io.BytesIO, folder: Path, match: str = "is ") -> str:
    """What is said of a file that is no good backup; nothing is left of it."""
    before = contents(folder)
    with pytest.raises(ArtifactError, match=match) as error:
        backup.restore(file, folder / "out")
    assert contents(folder) == before
    assert not (folder / "out").exists()
    assert not list(folder.glob(".*"))
    return str(error.value)


# --- there and back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tgz", "b"])
def test_a_restored_index_is_the_same(whole: Path, tmp_path: Path, name: str) -> None:
    with opened(whole) as index:
        assert index.backup(str(tmp_path / name)) == index.manifest
        with lexent.restore(tmp_path / name, out=tmp_path / "out") as made:
            assert made.manifest == index.manifest
    assert contents(tmp_path / "out") == contents(whole)
    assert seen(tmp_path / "out") == seen(whole)
    packed = (tmp_path / name).read_bytes().startswith(b"\x1f\x8b")
    assert packed == name.endswith(("gz", "tgz"))
    with opened(tmp_path / "out") as index:
        assert index.add([Document("new", "king", metadata={"n": 1})]) == 1


def test_streams(whole: Path, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with opened(whole) as index:
        index.backup(stream)
        for content in (stream.getvalue(), gzip.compress(stream.getvalue())):
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
            lexent.restore(io.BytesIO(content), out=tmp_path / "out").close()
            assert contents(tmp_path / "out") == contents(whole)
        with pytest.raises(InputError, match="a path, or an open binary stream"):
            index.backup(7)  # type: ignore[arg-type]


def test_a_backup_is_a_tar_file_of_the_index(whole: Path, tar: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(tar)) as found:
        members = {member.name: found.extractfile(member).read() for member in found}  # type: ignore[union-attr]
        assert all(member.isreg() and member.mode == 0o644 for member in found)
    listing = json.loads(members.pop("backup.json"))
    assert members == contents(whole)
    assert list(listing["files"]) == list(members)
    for name, content in members.items():
        assert listing["files"][name] == {"size": len(content), "sha256": archive.checksum(content)}


def test_an_index_without_documents(path: Path, tmp_path: Path) -> None:
    with opened(path) as index:
        index.delete(living.ids(index))
        index.backup(tmp_path / "b.tar")
    assert len(opened(restored(tmp_path / "b.tar", tmp_path / "out"))) == 0


def test_an_older_format_stays_as_it_is(path: Path, tmp_path: Path) -> None:
    small.build(path, small.documents(5), overwrite=True).close()
    values = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_bytes(artifact.json_bytes(stamped({**values, "format": 9})))
    backup.backup(path, tmp_path / "b.tar")
    restored(tmp_path / "b.tar", tmp_path / "out")
    assert contents(path) == contents(tmp_path / "out")


def test_progress_counts_bytes(whole: Path, tmp_path: Path) -> None:
    done: list[int] = []
    backup.backup(whole, tmp_path / "b.tar", progress=done.append)
    assert sum(done) == sum(map(len, contents(whole).values()))
    done.clear()
    manifest = backup.restore(tmp_path / "b.tar", tmp_path / "out", progress=done.append)
    assert sum(done) == sum(part.size for part in manifest.files.values())


def test_no_file_stays_open(path: Path, tmp_path: Path) -> None:
    def count() -> int:
        return sum(str(path) in os.readlink(f"/proc/self/fd/{one}") for one in handles() if alive(one))

    def handles() -> list[str]:
        return os.listdir("/proc/self/fd")

    def alive(one: str) -> bool:
        return os.path.lexists(f"/proc/self/fd/{one}")

    backup.backup(path, tmp_path / "b.tar")
    assert count() == 0
    (path / "segments/000001/codes.npy").write_bytes(b"\0" * (path / "segments/000001/codes.npy").stat().st_size)
    with pytest.raises(ArtifactError):
        backup.backup(path, tmp_path / "c.tar")
    assert count() == 0


# --- what stands there -------------------------------------------------------------------------------------------


def test_a_file_is_replaced_only_when_asked(whole: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    file.write_text("precious")
    with opened(whole) as index:
        with pytest.raises(InputError, match="already there; replace it with --overwrite"):
            index.backup(file)
        assert file.read_text() == "precious"
        index.backup(file, overwrite=True)
    restored(file, tmp_path / "out")
    with pytest.raises(InputError, match="already holds a lexent index"):
        backup.restore(file, tmp_path / "out")
    backup.restore(file, tmp_path / "out", overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter").write_text("precious")
    with pytest.raises(InputError, match="not a lexent artefact"):
        backup.restore(file, tmp_path / "other", overwrite=True)


def test_places_that_are_no_files(whole: Path, path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(InputError, match="is not a file"):
            backup.backup(whole, place, overwrite=True)
    for name in ("manifest.json", "b.tar"):
        with pytest.raises(InputError, match="in the folder of the index itself"):
            backup.backup(path, path / name, overwrite=True)
    assert contents(path) == contents(whole)
    with pytest.raises(NotFoundError, match="no file"):
        backup.restore(tmp_path / "none", tmp_path / "out")
    with pytest.raises(InputError, match="is a folder"):
        backup.restore(path, tmp_path / "out")
    with pytest.raises(NotFoundError, match="no index at"):
        backup.backup(tmp_path / "none", tmp_path / "b.tar")
    assert not (tmp_path / "b.tar").exists()


def test_a_link_stays_a_link(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_text("old")
    (tmp_path / "link").symlink_to("b.tar")
    backup.backup(whole, tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    restored(tmp_path / "b.tar", tmp_path / "out")


def test_a_damaged_index_is_not_backed_up(path: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_text("the backup before")
    name = "segments/000002/documents.sqlite"
    content = bytearray((path / name).read_bytes())
    content[-1] ^= 1
    (path / name).write_bytes(content)
    for file in ("b.tar", "c.tar", "d.tar.gz"):
        with pytest.raises(ArtifactError, match=f"{name} changed since it was written; no backup was written"):
            backup.backup(path, tmp_path / file, overwrite=True)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b.tar"]
    assert (tmp_path / "b.tar").read_text() == "the backup before"


def test_an_index_that_is_written_to_is_not_replaced(path: Path, tar: bytes) -> None:
    with writing(path), pytest.raises(LexentError, match="being written to by process"):
        backup.restore(io.BytesIO(tar), path, overwrite=True)


# --- writers that go on ------------------------------------------------------------------------------------------


def changed_number(path: Path) -> None:
    """Builds the index anew: its files have the names and sizes of those before, and one has other content."""
    place = path.parent / "anew"
    documents = [Document(f"d{n}", "king queen", metadata={"n": n}) for n in (1, 2, 4)]
    with small.build(place, documents) as index:
        before = index.manifest
    old = {name: part.size for name, part in opened(path).manifest.files.items()}
    assert {name: part.size for name, part in before.files.items()} == old
    path.rename(path.parent / "old")
    place.rename(path)
    shutil.rmtree(path.parent / "old")


BESIDE: dict[str, Callable[[Path], object]] = {
    "compact": lambda path: opened(path).compact(),
    "delete": lambda path: opened(path).delete(["d4", "d22", "d33"]),
    "upsert and rename": lambda path: (opened(path).upsert([Document("d4", "night")]), opened(path).rename(3, "Other")),
    "retune": lambda path: opened(path).retune(power=1.0),
}


def hooked(monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], object]) -> list[int]:
    """Acts before a backup opens the file of that number; gives a list that grows with each file."""
    real, count = backup._opened, list[int]()

    def instead(*given: Any) -> Any:
        count.append(len(count))
        if len(count) - 1 == step:
            act()
        return real(*given)

    monkeypatch.setattr(backup, "_opened", instead)
    return count


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", BESIDE)
def test_a_change_while_files_are_opened(
    whole: Path, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, share: float
) -> None:
    """The backup then has the state before or after it, and no part of each."""
    with opened(whole) as index:
        step = int(share * (len(index.manifest.files) - 1))
    before = seen(path)
    count = hooked(monkeypatch, step, lambda: BESIDE[name](path))
    backup.backup(path, tmp_path / "b.tar")
    assert len(count) > step
    after = seen(path)
    assert after != before or name == "compact"
    found = seen(restored(tmp_path / "b.tar", tmp_path / "out"))
    assert found["name"] in (before["name"], after["name"])
    assert {**found, "name": ""} in ({**before, "name": ""}, {**after, "name": ""})


@pytest.mark.parametrize("step", [0, 1, 5, 9])
def test_an_index_that_is_built_anew_while_files_are_opened(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    documents = [Document(f"d{n}", "king queen", metadata={"n": n}) for n in (1, 2, 3)]
    small.build(path, documents, overwrite=True).close()
    hooked(monkeypatch, step, lambda: changed_number(path))
    backup.backup(path, tmp_path / "b.tar")
    with opened(restored(tmp_path / "b.tar", tmp_path / "out")) as index:
        assert [index.document(f"d{n}").metadata["n"] for n in (1, 2, 4)] == [1, 2, 4]


def test_changes_while_files_are_copied(path: Path, tmp_path: Path) -> None:
    """All files of the state before are removed meanwhile, and no writer waits."""
    before, acts = contents(path), list(BESIDE.values())

    def progress(_: int) -> None:
        if acts:
            acts.pop(0)(path)

    backup.backup(path, tmp_path / "b.tar", progress=progress)
    assert not acts
    kept = {name for name in contents(path) if name.startswith("segments/")}
    assert not kept & before.keys()
    restored(tmp_path / "b.tar", tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_a_backup_takes_no_lock(path: Path, tmp_path: Path) -> None:
    with writing(path), writing(path, file="labels.lock"):
        backup.backup(path, tmp_path / "b.tar")
    for file in path.glob("*.lock"):
        file.unlink()
    backup.backup(path, tmp_path / "c.tar")
    assert not list(path.glob("*.lock"))


def test_files_that_were_opened_are_kept_for_the_next_attempt(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup gets ahead of quick writers: it opens again only what they changed."""
    real, calls, changes = backup._opened, list[str](), iter(["d9", "d8", "d6", "d5"])

    def instead(file: Path, size: int) -> Any:
        calls.append(file.relative_to(path).as_posix())
        if file.name.startswith("deleted-") and (id := next(changes, None)):
            opened(path).delete([id])
        return real(file, size)

    monkeypatch.setattr(backup, "_opened", instead)
    backup.backup(path, tmp_path / "b.tar")
    assert len(opened(restored(tmp_path / "b.tar", tmp_path / "out"))) == 34 - 4
    assert calls.count("segments/000001/codes.npy") == 1
    assert len([name for name in calls if name.startswith("segments/000001/deleted-")]) > 4


def test_an_index_that_always_changes_is_given_up(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def instead(file: Path, size: int) -> Any:
        raise FileNotFoundError(file)

    monkeypatch.setattr(backup, "_opened", instead)
    with pytest.raises(ArtifactError, match="changed 20 times while it was opened; try again"):
        backup.backup(path, tmp_path / "b.tar")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("seed", [1, 2])
def test_beside_a_process_that_writes(server: living.Server, tmp_path: Path, seed: int) -> None:
    """A backup holds each change that was acknowledged before it began, and none that began after its end."""
    path, model = tmp_path / "a", Model.of(small.documents(12))
    small.build(path, small.documents(12)).close()
    known = {"documents": {id: asdict(one) for id, one in model.documents.items()}, "recipe": model.recipe.to_dict()}
    child = server.start("living", "change_forever", str(path), seed, known)
    spans = []
    try:
        child.until("done")
        for number in range(6):
            done = len(list(living.lines(child, "done")))
            backup.backup(path, tmp_path / f"{number}.tar")
            spans.append((done, len(list(living.lines(child, "begin")))))
    finally:
        os.kill(child.pid, signal.SIGKILL)
        assert child.end() == -signal.SIGKILL, child.log.read_text()
    models = [model]
    for change in living.lines(child, "begin"):
        models.append(models[-1].then(change))
    for number, (first, last) in enumerate(spans):
        with opened(restored(tmp_path / f"{number}.tar", tmp_path / f"out{number}")) as index:
            there = [index.document(id) for id in living.ids(index)]
            allowed = models[first : last + 1]
            assert any(there == list(one.documents.values()) and index.recipe == one.recipe for one in allowed)


def test_beside_a_running_server(tmp_path: Path) -> None:
    from test_server_life import started

    place = furnished(tmp_path)
    path, acknowledged, stop = place / "docs.lexent", list[str](), threading.Event()
    with started(path, "--port", 0) as (_, client):

        def write() -> None:
            while not stop.is_set():
                id = f"new{len(acknowledged)}"
                body = {"documents": [{"id": id, "text": f"zebra number {id}"}]}
                assert client.post("/v1/indexes/docs/documents", json=body).status_code == 200
                acknowledged.append(id)

        thread = threading.Thread(target=write)
        thread.start()
        before = []
        try:
            for number in range(3):
                while len(acknowledged) < 5 * (number + 1):
                    assert thread.is_alive()
                before.append(len(acknowledged))
                good("backup", path, place / f"{number}.tar")
        finally:
            stop.set()
            thread.join()
    for number, count in enumerate(before):
        found = data("restore", place / f"{number}.tar", place / f"out{number}")
        assert found["verified"]
        with opened(place / f"out{number}") as index:
            there = [id for id in living.ids(index) if id.startswith("new")]
            assert there == [f"new{one}" for one in range(len(there))]
            assert count <= len(there) == found["documents"] - 40


# --- hostile archives --------------------------------------------------------------------------------------------


class Made:
    """An archive that somebody else made, member by member."""

    def __init__(self, tar: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(tar)) as found:
            self.members = [(one, found.extractfile(one).read()) for one in found]  # type: ignore[union-attr]
        self.end = archive.END

    def values(self, name: str = "backup.json") -> Any:
        return json.loads(next(content for one, content in self.members if one.name == name))

    def put(self, name: str, content: bytes) -> None:
        """Other content for a file, with its right size."""
        for place, (one, _) in enumerate(self.members):
            if one.name == name:
                one.size = len(content)
                self.members[place] = (one, content)

    def list(self, change: Callable[[Any], object]) -> None:
        """Another listing, with its right hash."""
        values = self.values()
        change(values)
        self.put("backup.json", artifact.json_bytes(stamped(values)))

    def with_file(self, name: str, content: bytes) -> None:
        """Other content, which the listing and the manifest agree with."""
        part = {"size": len(content), "sha256": archive.checksum(content)}
        self.put(name, content)
        if name.startswith("segments/"):
            manifest = self.values("manifest.json")
            manifest["files"][name] = part
            self.with_file("manifest.json", artifact.json_bytes(stamped(manifest)))
        self.list(lambda values: values["files"].update({name: part}))

    def add(self, name: str, content: bytes = b"precious", *, place: int | None = None, **facts: Any) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        for fact, value in facts.items():
            setattr(info, fact, value)
        self.members.insert(len(self.members) if place is None else place, (info, content))

    def bytes(self) -> bytes:
        parts = (one.tobuf(tarfile.GNU_FORMAT) + data + archive.padding(len(data)) for one, data in self.members)
        return b"".join(parts) + self.end


def renamed(old: str, new: str) -> Callable[[Made], None]:
    """A file under another name, in the archive and the listing."""

    def change(made: Made) -> None:
        for one, _ in made.members:
            if one.name == old:
                one.name = new
        made.list(lambda values: values.update(files={new if k == old else k: v for k, v in values["files"].items()}))

    return change


def typed(kind: bytes, target: str = "") -> Callable[[Made], None]:
    def change(made: Made) -> None:
        one, _ = made.members[5]
        one.type, one.linkname, one.size = kind, target, 0
        made.members[5] = (one, b"")

    return change


def sized(name: str, size: int) -> Callable[[Made], None]:
    def change(made: Made) -> None:
        for one, _ in made.members:
            if one.name == name:
                one.size = size
        if name != "backup.json":
            made.list(lambda values: values["files"][name].update(size=size))

    return change


def nested(made: Made) -> None:
    made.put("backup.json", b"[" * 100_000)


def later(name: str) -> Callable[[Made], None]:
    def change(made: Made) -> None:
        if name == "backup.json":
            made.list(lambda values: values.update(format=99))
        else:
            made.with_file(name, artifact.json_bytes(stamped({**made.values(name), "format": 99})))

    return change


def segment_renamed(made: Made) -> None:
    manifest = made.values("manifest.json")
    manifest["segments"][0]["name"] = "../../x"
    made.with_file("manifest.json", artifact.json_bytes(stamped(manifest)))


CODES, DOCUMENTS = "segments/000001/codes.npy", "segments/000001/documents.sqlite"
HOSTILE: dict[str, tuple[Callable[[Made], object], str]] = {
    "symbolic link": (typed(tarfile.SYMTYPE, "/etc"), "header of"),
    "hard link": (typed(tarfile.LNKTYPE, "manifest.json"), "header of"),
    "device": (typed(tarfile.CHRTYPE), "header of"),
    "pipe": (typed(tarfile.FIFOTYPE), "header of"),
    "folder": (typed(tarfile.DIRTYPE), "header of|where"),
    "long name": (typed(tarfile.GNUTYPE_LONGNAME), "header of"),
    "extended header": (typed(tarfile.XHDTYPE), "header of"),
    "sparse file": (typed(tarfile.GNUTYPE_SPARSE), "header of"),
    "a link more": (lambda made: made.add("x", b"", type=tarfile.SYMTYPE, linkname="/etc"), "end is missing"),
    "a link before": (lambda made: made.add("segments", b"", place=3, type=tarfile.SYMTYPE, linkname="/"), "where"),
    "a file more": (lambda made: made.add("segments/000001/x.npy"), "end is missing"),
    "a file twice": (lambda made: made.members.append(made.members[-1]), "end is missing"),
    "a file less": (lambda made: made.members.pop(), "header of"),
    "another order": (lambda made: made.members.reverse(), "not a backup"),
    "another order of files": (lambda made: made.members.append(made.members.pop(5)), "where"),
    "absolute": (renamed(CODES, "/x.npy"), "no file of an index"),
    "above": (renamed(CODES, "../x.npy"), "no file of an index"),
    "above within": (renamed(CODES, "segments/000001/../../../x.npy"), "no file of an index"),
    "hidden": (renamed(CODES, "segments/000001/.npy"), "no file of an index"),
    "line end": (renamed(CODES, f"{CODES}\n"), "no file of an index"),
    "lock": (renamed("names-1.npz", "write.lock"), "no file of an index"),
    "of no segment": (renamed(CODES, "segments/000009/codes.npy"), "do not name the same files"),
    "segment above": (segment_renamed, "manifest.json cannot be read"),
    "larger than it is": (sized(CODES, 10**6), "do not name the same files"),
    "endless": (sized(CODES, 2**50), "do not name the same files"),
    "endless manifest": (sized("manifest.json", 2**40), "more than"),
    "endless listing": (sized("backup.json", 2**40), "more than"),
    "negative": (sized(CODES, -1), "cannot be read"),
    "nested listing": (nested, "cannot be read"),
    "listing of a newer version": (later("backup.json"), "this version reads up to 1; upgrade"),
    "manifest of a newer version": (later("manifest.json"), r"format 99; this version reads up to \d+; upgrade"),
    "no manifest": (lambda made: made.list(lambda values: values["files"].pop("manifest.json")), "does not begin with"),
    "listing of something else": (lambda made: made.list(lambda values: values.update(kind="x")), "cannot be read"),
    "listing that is none": (lambda made: made.put("backup.json", b"7\n"), "cannot be read"),
    "manifest of a lexicon": (
        lambda made: made.with_file("manifest.json", b'{"kind": "lexicon", "format": 1}'),
        "is not that of an index",
    ),
    "arrays that are none": (lambda made: made.with_file(CODES, b"nothing"), "not a readable array"),
    "documents that are none": (lambda made: made.with_file(DOCUMENTS, b"x" * 5000), "damaged"),
    "something behind its end": (lambda made: setattr(made, "end", archive.END + b"x"), "something follows"),
    "no end": (lambda made: setattr(made, "end", archive.END[:-1]), "end is missing"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives(tar: bytes, tmp_path: Path, name: str, packed: bool) -> None:
    change, match = HOSTILE[name]
    made = Made(tar)
    change(made)
    content = made.bytes()
    file = tmp_path / "b.tar"
    file.write_bytes(gzip.compress(content, 1) if packed else content)
    assert "b.tar" in refused(file, tmp_path, match)


def test_an_archive_that_says_what_is_true_is_restored(tar: bytes, tmp_path: Path) -> None:
    """The same hands make a good one, so that what is refused is refused for its fault."""
    made = Made(tar)
    assert made.bytes() == tar
    made.with_file("labels.json", b'{"lexicon": "x", "labels": {}}')
    (tmp_path / "b.tar").write_bytes(made.bytes())
    restored(tmp_path / "b.tar", tmp_path / "out")


def test_a_small_packed_file_does_not_fill_the_memory(tmp_path: Path) -> None:
    import resource

    info = tarfile.TarInfo("backup.json")
    info.size = 10**12
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(200):
            file.write(bytes(10**6))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(io.BytesIO(packed.getvalue()), tmp_path, "more than")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 600, bytes(600), b"\x1f\x8b", gzip.compress(b""), bytes(2000)])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    refused(io.BytesIO(content), tmp_path, "not a backup of an index|not a whole gzip file")


def test_every_cut_is_noticed(tar: bytes, tmp_path: Path) -> None:
    chance = random.Random(5)
    packed = gzip.compress(tar, 1, mtime=0)
    ends = {len(tar) - 1, len(tar) - 512, len(tar) - 1024, len(tar) - 1025, 512, 511, 513}
    for cut in sorted({*ends, *chance.sample(range(len(tar)), 40)}):
        refused(io.BytesIO(tar[:cut]), tmp_path)
    for cut in sorted({len(packed) - 1, len(packed) - 8, *chance.sample(range(len(packed)), 20)}):
        refused(io.BytesIO(packed[:cut]), tmp_path)


def test_every_changed_byte_is_noticed(tar: bytes, tmp_path: Path) -> None:
    chance = random.Random(6)
    headers = [place for place in range(0, len(tar), 512) if tar[place + 257 : place + 262] == b"ustar"]
    inside = [chance.choice(headers) + chance.randrange(512) for _ in range(80)]
    for place in [*range(40), *inside, *(chance.randrange(len(tar)) for _ in range(80)), len(tar) - 1]:
        changed = bytearray(tar)
        changed[place] ^= 1 << chance.randrange(8)
        refused(io.BytesIO(bytes(changed)), tmp_path)


def test_what_is_changed_is_named(tar: bytes, tmp_path: Path) -> None:
    changed = bytearray(tar)
    changed[tar.index(b"king queen")] ^= 1
    refused(io.BytesIO(bytes(changed)), tmp_path, "segments/000001/documents.sqlite changed since it was written")


# --- disks and kills ---------------------------------------------------------------------------------------------


def take(folder: Path) -> None:
    backup.backup(folder / "a", folder / "b.tar", overwrite=True)


def bring(folder: Path) -> None:
    backup.restore(folder / "b.tar", folder / "out", overwrite=True)


USES: dict[str, Callable[[Path], None]] = {"backup": take, "restore": bring}


def desk(folder: Path, whole: Path, tar: bytes) -> Path:
    """A folder with an index, a backup of it, and an index to replace."""
    folder.mkdir()
    shutil.copytree(whole, folder / "a")
    shutil.copytree(whole, folder / "out")
    (folder / "out" / "labels.json").unlink()
    (folder / "b.tar").write_bytes(tar)
    return folder


def check_desk(folder: Path, whole: Path, tar: bytes, use: str) -> bool:
    """All is as it was before, or as it is after; says whether it is after."""
    assert contents(folder / "a") == contents(whole)
    after = {name: content for name, content in contents(whole).items() if name != "labels.json"}
    artifact.recover(folder / "out")
    found = contents(folder / "out")
    if use == "restore":
        assert (folder / "b.tar").read_bytes() == tar
        assert found in (after, contents(whole))
        return found == contents(whole)
    assert found == after
    backup.restore(folder / "b.tar", folder / "check")
    assert contents(folder / "check") == contents(whole)
    shutil.rmtree(folder / "check")
    return True


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize("use", USES)
def test_some_system_calls_that_fail(
    whole: Path, tar: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the faults are made here, and need no disk
    first = desk(tmp_path / "first", whole, tar)
    with Disk(first).used() as disk:
        USES[use](first)
    total, chance = len(disk.calls), random.Random(use)
    assert {"open", "create", "write", "fsync"} <= set(disk.calls)
    for number in sorted({*chance.sample(range(total), 20), *range(total - 8, total)}):
        folder = desk(tmp_path / f"{number}", whole, tar)
        turn, error = chance.randrange(3), None
        faulty = Disk(folder, fail=number, turn=turn)
        with faulty.used():
            try:
                USES[use](folder)
            except LexentError as found:
                error = found
        context = (number, faulty.calls[number], error)
        assert faulty.failed
        done = check_desk(folder, whole, tar, use)
        assert done or error is not None, context
        assert not done or error is None or isinstance(error, SyncError) or use == "backup", context
        USES[use](folder)
        assert check_desk(folder, whole, tar, use)
        assert names(folder) == ["a", "b.tar", "out"], context
        shutil.rmtree(folder)


class Killer(Disk):
    """Kills this process at the call of that number."""

    def step(self, kind: str, path: object = None) -> bool:
        if path is None or str(path).startswith(self.folder):
            if len(self.calls) == self.fail:
                os.kill(os.getpid(), signal.SIGKILL)
            self.calls.append(kind)
        return False


def die_at(folder: str, use: str, number: int) -> None:
    """In a child process: backs up or restores, and is killed at a system call; without, says how many there are."""
    os.fsync = lambda handle: None  # what is killed here is no disk
    with Killer(Path(folder), fail=number).used() as disk:
        USES[use](Path(folder))
    living.say("calls", len(disk.calls))


@pytest.mark.parametrize("use", USES)
def test_killed_at_a_system_call(server: living.Server, whole: Path, tar: bytes, tmp_path: Path, use: str) -> None:
    child = server.start("test_backup", "die_at", str(desk(tmp_path / "first", whole, tar)), use, -1)
    assert child.end() == 0, child.log.read_text()
    total = next(living.lines(child, "calls"))
    for number in sorted({*random.Random(use).sample(range(total), 6), *range(total - 5, total)}):
        folder = desk(tmp_path / f"{number}", whole, tar)
        child = server.start("test_backup", "die_at", str(folder), use, number)
        assert child.end() == -signal.SIGKILL, child.log.read_text()
        check_desk(folder, whole, tar, use)
        USES[use](folder)  # which removes what the killed one left
        assert names(folder) == ["a", "b.tar", "out"], number
        assert check_desk(folder, whole, tar, use)
        shutil.rmtree(folder)


def test_no_room_for_what_a_backup_holds(tar: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(WriteError, match=r"no space left to write .*and 1,000 are free"):
        backup.restore(io.BytesIO(tar), tmp_path / "out")
    assert not names(tmp_path)


def test_what_another_process_is_writing_is_left_alone(whole: Path, tmp_path: Path) -> None:
    """Two backups to one file at once: neither removes what the other one writes."""
    file, left = tmp_path / "b.tar", tmp_path / ".b.tar.999999999-abcdef.new"
    left.write_bytes(b"left by a process that was killed")
    command = f"""
import sys
from pathlib import Path
from lexent import artifact
with artifact.whole_file(Path({str(file)!r}), overwrite=True) as out:
    out.write(b"x")
    out.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"writing\n"
        backup.backup(whole, file)
        assert not left.exists()
        assert len(names(tmp_path)) == 2
        other.communicate(timeout=30)
        assert other.returncode == 0
    assert file.read_bytes() == b"x"
    assert names(tmp_path) == ["b.tar"]


# --- the command line --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("cli"))


def test_the_verbs(place: Path, tmp_path: Path) -> None:
    index, file, out = place / "docs.lexent", tmp_path / "b.tar", tmp_path / "out"
    result = good("backup", index, file)
    assert result.stdout.startswith("backed up ")
    assert "40 documents" in result.stdout
    assert f"keep a copy: the lexicon in {place / 'lexicon'}" in result.stderr.replace("\n", "")
    assert f"lexent restore {file} NEW_DIR" in result.stderr.replace("\n", "")
    assert "every file as it was backed up" in good("restore", file, out).stdout
    assert contents(out) == contents(index)
    good("verify", out)
    assert data("search", out, "yeast")["hits"]
    facts = data("backup", index, file, "--overwrite")
    assert facts["bytes"] == file.stat().st_size
    assert facts["documents"] == 40
    assert facts["lexicon"] == str(place / "lexicon")
    assert data("restore", file, out, "--overwrite")["verified"] is True
    for words, code in (
        (["backup", index, file], 2),
        (["backup", tmp_path / "none", tmp_path / "c.tar"], 3),
        (["restore", file, out], 2),
        (["restore", tmp_path / "none", tmp_path / "new"], 3),
        (["restore", index / "manifest.json", tmp_path / "new"], 4),
    ):
        result = run(*words)
        assert result.exit_code == code, words
        assert result.stderr.startswith("error: ")
    assert names(tmp_path) == ["b.tar", "out"]


def test_through_a_pipe(place: Path, tmp_path: Path) -> None:
    """stdout holds the archive and nothing else, also with --json."""
    lexent, index = [sys.executable, "-m", "lexent"], place / "docs.lexent"
    first = subprocess.run([*lexent, "backup", str(index), "-", "--json"], capture_output=True, timeout=60, check=True)
    assert b"backed up" in first.stderr
    again = subprocess.run(
        [*lexent, "restore", "-", str(tmp_path / "out"), "--json"],
        input=first.stdout, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(again.stdout)["verified"] is True
    assert contents(tmp_path / "out") == contents(index)
    with subprocess.Popen([*lexent, "backup", str(index), "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as cut:
        assert cut.stdout is not None
        assert cut.stderr is not None
        cut.stdout.read(100)
        cut.stdout.close()
        assert b"error" not in cut.stderr.read()


def test_an_interrupted_restore_says_that_nothing_was_written(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good("backup", place / "docs.lexent", tmp_path / "b.tar")
    steps: Iterator[int] = iter(range(100))

    def interrupted(*_: Any) -> None:
        if next(steps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(backup, "_advance", interrupted)
    result = run("restore", tmp_path / "b.tar", tmp_path / "out")
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    assert names(tmp_path) == ["b.tar"]
