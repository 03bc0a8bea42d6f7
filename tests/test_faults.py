"""What can go wrong with an index: killed processes, damaged files, full disks, two writers, no permission."""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import damage
import living
import small
from lexent import array_files, artifact
from lexent.errors import ArtifactError, LexentError, LockedError, NotFoundError, WriteError
from lexent.indexing import manifest
from lexent.indexing.lock import writing
from lexent.indexing.manifest import verify
from lexent.types import Document
from living import Model, opened, state


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of three segments, two of them with deleted documents; not to be written to."""
    path = tmp_path_factory.mktemp("whole") / "a"
    docs = small.documents(36)
    with small.build(path, docs[:20]) as index:
        index.add(docs[20:30])
        index.delete(["d1", "d7", "d25"])
        index.add(docs[30:])
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(whole, tmp_path / "a")
    return tmp_path / "a"


def names(path: Path) -> list[str]:
    return sorted(json.loads((path / "manifest.json").read_text())["files"])


def settled(path: Path, model: Model, folder: Path) -> None:
    """The index equals a fresh build, a writer can work on it, and nothing lies about."""
    verify(path)
    with opened(path) as index:
        assert state(index) == model.fresh(folder / "fresh")
        index.delete([], missing=True)  # a writer that changes nothing still cleans up
        assert living.files(path) == living.named(index)


# --- killed ------------------------------------------------------------------------------------------------------


def kill_and_look(server: living.Server, path: Path, model: Model, chance: random.Random, folder: Path) -> Model:
    """Kills a process that changes the index at some moment; gives what the index then holds."""
    known = {"documents": {id: asdict(one) for id, one in model.documents.items()}, "recipe": model.recipe.to_dict()}
    child = server.start("living", "change_forever", str(path), chance.randrange(2**30), known)
    child.until("begin")
    time.sleep(chance.choice([0.0, 0.01, 0.05, 0.2]) * chance.random())
    os.kill(child.pid, signal.SIGKILL)
    assert child.end() == -signal.SIGKILL, child.log.read_text()
    begun = list(living.lines(child, "begin"))
    done = len(list(living.lines(child, "done")))
    assert done <= len(begun) <= done + 1
    for change in begun[:done]:
        model = model.then(change)
    model = found_as(path, [model, *(model.then(change) for change in begun[done:])])
    settled(path, model, folder)
    return model


def found_as(path: Path, models: list[Model]) -> Model:
    """The one of the models that the index holds."""
    with opened(path) as index:
        there = [index.document(id) for id in living.ids(index)]
        for model in models:
            if there == list(model.documents.values()) and index.recipe == model.recipe:
                return model
    raise AssertionError(f"half a change is there: {there}, {index.recipe}; allowed: {models}")


def killed_often(server: living.Server, folder: Path, times: int) -> None:
    path, chance, model = folder / "a", random.Random(11), Model.of(small.documents(12))
    small.build(path, small.documents(12)).close()
    for _ in range(times):
        model = kill_and_look(server, path, model, chance, folder)


def test_a_killed_writer_leaves_what_it_acknowledged(server: living.Server, tmp_path: Path) -> None:
    killed_often(server, tmp_path, 20)


@pytest.mark.slow
def test_a_writer_killed_200_times(
    server: living.Server, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    killed_often(server, tmp_path, 200)
    record_property("kills", 200)


CHANGES: dict[str, list[Any]] = {
    "add": ["add", [{"id": "x", "text": "king queen", "title": "", "metadata": {"n": 12}}]],
    "upsert": ["upsert", [{"id": "d3", "text": "night", "title": "", "metadata": {"n": 12}}]],
    "delete": ["delete", ["d2", "d21", "d35"]],
    "compact": ["compact", None],
    "retune": ["retune", {"power": 1.0}],
    "retune lightly": ["retune", {"k1": 3.0}],
}


def die_at(path: str, change: list[Any], step: int) -> None:
    """In a child process: makes a change, and is killed at one of the steps that write; without, says how many."""
    count = 0

    def stepping(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def instead(*given: Any, **more: Any) -> Any:
            nonlocal count
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return None if name == "fsync" else real(*given, **more)  # what is killed here is no disk

        setattr(owner, name, instead)

    index = opened(Path(path))
    for owner, name in [
        *((os, name) for name in ("fsync", "replace", "unlink", "rmdir")),
        *((Path, name) for name in ("mkdir", "write_bytes", "unlink")),
        *((array_files.ArrayWriter, name) for name in ("append", "close")),
    ]:
        stepping(owner, name)
    living.apply(index, change)
    living.say("steps", count)


def killed_at_steps(
    server: living.Server, path: Path, change: list[Any], folder: Path, choose: Callable[[int], list[int]]
) -> int:
    """Kills a process at some steps that write; the index is as before or as after. Gives the number of kills."""
    with opened(path) as index:
        model = Model({id: index.document(id) for id in living.ids(index)}, index.recipe)
    shutil.copytree(path, folder / "counted")
    child = server.start("test_faults", "die_at", str(folder / "counted"), change, -1)
    assert child.end() == 0, child.log.read_text()
    total = next(living.lines(child, "steps"))
    assert total > 3
    before, after = model.fresh(folder / "fresh"), model.then(change).fresh(folder / "fresh")
    outcomes = []
    for step in choose(total):
        copy = folder / f"step-{step}"
        shutil.copytree(path, copy)
        child = server.start("test_faults", "die_at", str(copy), change, step)
        assert child.end() == -signal.SIGKILL, child.log.read_text()
        verify(copy)
        with opened(copy) as index:
            found = state(index)
            assert found in (before, after), step
            outcomes.append(found == after)
            index.delete([], missing=True)
            assert living.files(copy) == living.named(index)
            assert state(index) == found
            if found == before:
                living.apply(index, change)
            assert state(index) == after
        shutil.rmtree(copy)
    assert outcomes == sorted(outcomes), "what was there after a step is gone after a later one"
    return len(outcomes)


@pytest.mark.parametrize("name", CHANGES)
def test_killed_at_a_step_of_a_change(server: living.Server, path: Path, tmp_path: Path, name: str) -> None:
    def some(total: int) -> list[int]:
        return sorted({*random.Random(name).sample(range(total - 2), 2), total - 2})

    killed_at_steps(server, path, CHANGES[name], tmp_path, some)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_killed_at_every_step_of_a_change(
    server: living.Server, path: Path, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("kills", killed_at_steps(server, path, CHANGES[name], tmp_path, lambda total: list(range(total))))


# --- damage ------------------------------------------------------------------------------------------------------


def flipped(data: bytes, chance: random.Random, flips: int = 1) -> bytes:
    changed = bytearray(data)
    for _ in range(flips):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def test_verify_names_every_file_with_a_flipped_byte(path: Path) -> None:
    chance = random.Random(0)
    assert any("deleted-" in name for name in names(path))
    verify(path)
    for name in [*names(path), "manifest.json"]:
        whole = (path / name).read_bytes()
        for _ in range(3):
            (path / name).write_bytes(flipped(whole, chance))
            with pytest.raises(ArtifactError, match=r"manifest\.json|format" if name == "manifest.json" else name):
                verify(path)
        (path / name).write_bytes(whole)
    some = names(path)[::7]
    for name in some:
        (path / name).write_bytes(flipped((path / name).read_bytes(), chance))
    with pytest.raises(ArtifactError) as caught:
        verify(path)
    assert all(name in str(caught.value) for name in some)


def test_cut_and_missing_files_are_refused_by_name(path: Path) -> None:
    for name in [*names(path), "manifest.json"]:
        whole = (path / name).read_bytes()
        said = r"manifest\.json" if name == "manifest.json" else name
        for cut in (0, 1, len(whole) // 2, len(whole) - 2):
            (path / name).write_bytes(whole[:cut])
            for check in (partial(verify, path), partial(opened, path)):
                with pytest.raises(ArtifactError, match=said):
                    check()
        (path / name).write_bytes(whole + b"\0")
        with pytest.raises(ArtifactError, match=said):
            opened(path)
        (path / name).unlink()
        for check in (partial(verify, path), partial(opened, path)):
            with pytest.raises(ArtifactError, match=said):
                check()
        (path / name).write_bytes(whole)
    verify(path)


def use(path: Path) -> None:
    """Does with an index what can be done."""
    with opened(path) as index:
        damage.asked_all(index)
        index.search("dough king", k=5, filter={"n": {"gte": 3}}, idf_of_subset=True)
    opened(path, retune={"power": 1.0, "document_cap": 5}).search("dough", k=3)


def change_all(path: Path) -> None:
    """Changes an index in each way."""
    with opened(path) as index:
        index.upsert([Document("d3", "night", metadata={"n": 3}), Document("new", "king")])
        index.delete(["d5", "d22"], missing=True)
        index.retune(power=0.9, document_cap=8)
        index.compact()


def damage_all(path: str, seed: int, rounds: int, with_changes: bool) -> None:
    """In a child process: flips bytes of every file, uses the index, and says what came of it."""
    chance, folder = random.Random(seed), Path(path)
    os.fsync = lambda handle: None
    manifest.CHECKED_BYTES = 0  # as if the checksums had been changed as well
    for name in [*names(folder), "manifest.json"]:
        whole = (folder / name).read_bytes()
        for turn in range(rounds):
            data = flipped(whole, chance, 1 + 3 * (turn % 2))
            if turn % 3 == 1 and name.endswith(".npy") and len(whole) > 128:  # behind the header
                data = whole[:128] + flipped(whole[128:], chance, 2)
            if turn % 6 == 5 and len(whole) > 128:
                data = whole[:128] + chance.randbytes(len(whole) - 128)
            (folder / name).write_bytes(data)
            living.say("did", [name, damage.outcome(lambda: use(folder))])
            if with_changes:
                shutil.copytree(folder, f"{path}.copy")
                living.say("did", [name, damage.outcome(lambda: change_all(Path(f"{path}.copy")))])
                shutil.rmtree(f"{path}.copy")
        (folder / name).write_bytes(whole)
    living.say("did", ["", damage.outcome(lambda: use(folder))])


def damaged(server: living.Server, path: Path, seed: int, rounds: int, *, changes: bool = False) -> None:
    outcomes = damage.check(server.start("test_faults", "damage_all", str(path), seed, rounds, changes))
    assert {name for name, _ in outcomes} == {*names(path), "manifest.json", ""}


def test_no_flipped_byte_crashes_a_search(server: living.Server, path: Path) -> None:
    damaged(server, path, 0, 4)


def test_no_flipped_byte_crashes_a_change(server: living.Server, path: Path) -> None:
    damaged(server, path, 1, 1, changes=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_many_flipped_bytes(server: living.Server, path: Path, seed: int) -> None:
    damaged(server, path, seed, 6, changes=True)


def test_opening_compares_small_arrays_with_their_checksums(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest first, up to a limit; also bytes that no check of their values can find wrong."""
    sizes = {name: (path / name).stat().st_size for name in names(path) if name.endswith(".npy")}
    order = sorted(sizes, key=lambda name: (sizes[name], name))
    for name in order:
        good = (path / name).read_bytes()
        if len(good) > 128:
            (path / name).write_bytes(good_but(path / name))
            with pytest.raises(ArtifactError, match=f"{name} changed since it was written; build the index again"):
                opened(path)
        (path / name).write_bytes(good)
    changed = next(name for name in order if name.endswith("000001/codes.npy"))
    (path / changed).write_bytes(good_but(path / changed))
    upto = sum(sizes[name] for name in order[: order.index(changed) + 1])
    monkeypatch.setattr(manifest, "CHECKED_BYTES", upto - 1)
    opened(path).close()
    monkeypatch.setattr(manifest, "CHECKED_BYTES", upto)
    with pytest.raises(ArtifactError, match=changed):
        opened(path)


def good_but(file: Path) -> bytes:
    """The content of a file with another last byte."""
    content = file.read_bytes()
    return content[:-1] + bytes([content[-1] ^ 1])


def test_pickles_are_refused(path: Path) -> None:
    """Also where the sizes and the hashes are right, as in an index that somebody else made."""
    from lexent.indexing.manifest import stamped

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(path / "sprung"),)

    for name in names(path):
        if not name.endswith(".npy"):
            continue
        whole, manifest = (path / name).read_bytes(), (path / "manifest.json").read_bytes()
        np.save(path / name, np.array([Trap()], dtype=object), allow_pickle=True)
        values = json.loads(manifest)
        values["files"][name] = artifact.describe_file(path / name)
        (path / "manifest.json").write_text(json.dumps(stamped(values)))
        verify(path)
        with pytest.raises(ArtifactError, match=Path(name).name):
            opened(path)
        (path / name).write_bytes(whole)
        (path / "manifest.json").write_bytes(manifest)
    assert not (path / "sprung").exists()
    opened(path).close()


# --- a full disk -------------------------------------------------------------------------------------------------

MANY: list[Any] = ["add", [asdict(Document(f"x{n}", "king queen night", metadata={"n": n})) for n in range(200)]]
FULL = {**CHANGES, "add": MANY, "upsert": ["upsert", [{**one, "id": f"d{n}"} for n, one in enumerate(MANY[1])]]}


@pytest.fixture
def little(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def refused(change: Callable[[], None]) -> bool:
    """Whether a change was refused for want of space; any other error passes through."""
    try:
        change()
    except WriteError as error:
        if "no space left to write" in str(error) and "what was there before is untouched" in str(error):
            return True
        raise
    return False


@pytest.mark.parametrize("name", FULL)
def test_a_full_disk_leaves_the_index_as_it_was(whole: Path, little: Path, tmp_path: Path, name: str) -> None:
    path, change = little / "a", FULL[name]
    shutil.copytree(whole, path)
    with opened(path) as index:
        before = state(index)
        model = Model.of([index.document(id) for id in living.ids(index)])
        room, refusals = 0, 0
        while True:
            space = os.statvfs(little)
            (little / "filler").write_bytes(bytes(max(space.f_bavail * space.f_frsize - room, 0)))
            if not refused(partial(living.apply, index, change)):
                break
            refusals += 1
            assert state(index) == before
            assert living.files(path) == living.named(index)
            with opened(path) as again:
                assert again.manifest == index.manifest
            verify(path)
            (little / "filler").unlink()
            room += 8192 + room // 2 // 4096 * 4096
        assert refusals > 0
        (little / "filler").unlink()
        assert living.files(path) == living.named(index)
        assert state(index) == model.then(change).fresh(tmp_path / "fresh")


def limited(path: str, change: list[Any], limit: int) -> None:
    """In a child process: no file may grow beyond so many bytes."""
    index = opened(Path(path))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    living.say("refused", refused(partial(living.apply, index, change)))


@pytest.mark.parametrize("name", ["add", "compact"])
def test_a_limit_on_the_size_of_files(server: living.Server, path: Path, tmp_path: Path, name: str) -> None:
    with opened(path) as index:
        before, model = state(index), Model.of([index.document(id) for id in living.ids(index)])
    seen = []
    for limit in (100, 1000, 5000, 20_000, 10_000_000):
        child = server.start("test_faults", "limited", str(path), FULL[name], limit)
        assert child.end() == 0, child.log.read_text()
        seen += living.lines(child, "refused")
        if seen[-1]:
            verify(path)
            assert living.files(path) == living.named(opened(path))
            assert state(opened(path)) == before
    assert seen == [True] * 4 + [False]
    settled(path, model.then(FULL[name]), tmp_path)


def test_documents_are_in_even_where_there_is_no_room_to_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = small.build(tmp_path / "a", small.documents(1))
    for document in small.documents(7)[1:]:
        index.add([document])
    assert len(index.manifest.segments) == 7
    full = WriteError("no space left")

    def copy(*_: object) -> None:
        raise full

    with monkeypatch.context() as patch:
        patch.setattr("lexent.indexing.document_store.DocumentWriter.copy", copy)
        assert index.add(small.documents(8)[7:]) == 1
    assert len(index.manifest.segments) == 8
    assert living.files(tmp_path / "a") == living.named(index)
    index.add(small.documents(9)[8:])
    assert len(index.manifest.segments) < 8
    assert state(index) == Model.of(small.documents(9)).fresh(tmp_path / "fresh")


# --- too few open files ---------------------------------------------------------------------------------------------


def short_of_files(path: str, change: list[Any]) -> None:
    """In a child process: opens and changes an index with more and more open files, until both work."""
    left = 0
    while True:
        used = len(os.listdir("/proc/self/fd"))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + left, limits[1]))
        try:
            with opened(Path(path)) as index:
                index.search("king")
                living.say("opened", left)
                living.apply(index, change)
            return
        except LexentError as error:
            said = (type(error).__name__, str(error))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        gc.collect()
        living.say("refused", said)
        if "the change is on the disk" in said[1]:
            return
        assert left < 500
        left += 1


@pytest.mark.parametrize("name", ["add", "compact"])
def test_too_few_open_files_are_no_damage(server: living.Server, path: Path, tmp_path: Path, name: str) -> None:
    with opened(path) as index:
        model = Model.of([index.document(id) for id in living.ids(index)])
    child = server.start("test_faults", "short_of_files", str(path), CHANGES[name])
    assert child.end() == 0, child.log.read_text()
    refusals = list(living.lines(child, "refused"))
    assert {kind for kind, _ in refusals} == {"ResourceError", "WriteError"}
    assert all("too many open files; raise the limit: ulimit -n" in said for _, said in refusals), refusals
    settled(path, model.then(CHANGES[name]), tmp_path)


# --- two writers -------------------------------------------------------------------------------------------------


def hold(path: str) -> None:
    """In a child process: begins to add documents, and never ends."""

    def endless() -> Iterator[Document]:
        yield Document("x", "king")
        living.say("writing", None)
        time.sleep(600)

    sys.argv = ["/usr/bin/lexent", "add", path]
    opened(Path(path)).add(endless())


def test_a_second_writer_is_told_of_the_first(server: living.Server, path: Path, tmp_path: Path) -> None:
    with opened(path) as index:
        before = state(index)
        first = server.start("test_faults", "hold", str(path))
        first.until("writing")
        tries: list[Callable[[], Any]] = [
            lambda: index.add([Document("y", "queen")]),
            lambda: index.upsert([Document("y", "queen")]),
            lambda: index.delete(["d3"]),
            index.compact,
            lambda: index.retune(k1=2.0),
            lambda: small.build(path, small.documents(3), overwrite=True),
        ]
        for attempt in tries:
            with pytest.raises(LockedError, match=rf'being written to by process {first.pid} on .*"lexent add .*since'):
                attempt()
        assert state(index) == before == state(opened(path))
        os.kill(first.pid, signal.SIGKILL)
        assert first.end() == -signal.SIGKILL
        assert index.add([Document("y", "queen", metadata={"n": 1})]) == 1
        assert living.files(path) == living.named(index)
        with pytest.raises(NotFoundError):
            index.document("x")


def test_two_writers_of_one_process(path: Path) -> None:
    one, other = opened(path), opened(path)

    def documents() -> Iterator[Document]:
        yield Document("x", "king", metadata={"n": 1})
        with pytest.raises(LockedError, match=f"process {os.getpid()} "):
            other.delete(["d3"])

    assert one.add(documents()) == 1
    assert other.delete(["d3"]) == 1
    assert len(other) == 33


def test_an_index_replaced_under_its_writer_is_left_alone(path: Path, tmp_path: Path) -> None:
    """By hand, without regard to the lock."""
    small.build(tmp_path / "new", small.documents(5)).close()
    index = opened(path)

    def documents() -> Iterator[Document]:
        yield Document("x", "king", metadata={"n": 1})
        path.rename(tmp_path / "old")
        shutil.copytree(tmp_path / "new", path)
        (path / "write.lock").touch()

    with pytest.raises(LockedError, match="was replaced or removed by another process meanwhile"):
        index.add(documents())
    settled(path, Model.of(small.documents(5)), tmp_path)


def test_a_lock_file_that_says_nothing(path: Path) -> None:
    with writing(path):
        (path / "write.lock").write_bytes(b"\xff{")
        with pytest.raises(LockedError, match="being written to by another process"):
            opened(path).compact()
    opened(path).compact()


# --- permission, and folders that go ------------------------------------------------------------------------------


def without_permission(path: str) -> None:
    """In a child process, which gives up the rights of root: reads an index and tries to change it."""
    index = opened(Path(path))
    index.search("king")
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    living.say("found", len(opened(Path(path)).search("king")))
    verify(Path(path))
    for change in CHANGES.values():
        try:
            living.apply(index, change)
        except WriteError as error:
            living.say("refused", str(error))


def test_no_permission_to_write(server: living.Server, whole: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # one that others can reach
        Path(folder).chmod(0o755)
        path = Path(folder) / "a"
        shutil.copytree(whole, path)
        (path / "write.lock").unlink(missing_ok=True)
        for file in (path, *path.rglob("*")):
            file.chmod(0o555 if file.is_dir() else 0o444)
        before = living.files(path)
        child = server.start("test_faults", "without_permission", folder + "/a")
        assert child.end() == 0, child.log.read_text()
        assert next(living.lines(child, "found")) == 10
        said = list(living.lines(child, "refused"))
        assert len(said) == len(CHANGES)
        assert all("no permission to write" in one for one in said)
        assert living.files(path) == before
        for file in (path, *path.rglob("*")):
            file.chmod(0o755)


def test_an_index_deleted_under_its_reader(path: Path) -> None:
    with opened(path) as index:
        before = state(index)
        shutil.rmtree(path)
        assert state(index) == before
        attempts: list[Callable[[], Any]] = [
            index.refresh,
            index.verify,
            index.compact,
            lambda: index.add([Document("x", "king")]),
            lambda: index.delete(["d3"]),
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError, match="no index at"):
                attempt()
        assert not path.exists()


def test_an_index_deleted_under_its_writer(path: Path) -> None:
    index = opened(path)

    def documents() -> Iterator[Document]:
        yield Document("x", "king")
        shutil.rmtree(path)

    with pytest.raises(LockedError, match="was replaced or removed by another process meanwhile"):
        index.add(documents())
    assert not path.exists()
