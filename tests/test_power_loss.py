"""Power failures: after any of them an index opens and holds what was acknowledged, and the change in flight or not."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import living
import power
import small
from lexent import artifact
from lexent.errors import NotFoundError, SyncError
from lexent.indexing import backup, builder, resuming
from lexent.indexing.manifest import verify
from lexent.models import load_lexicon
from living import opened
from test_disk_faults import ALL, seen
from test_faults import CHANGES

PLACE = "shelf/new/a"
"""Where the index, or the lexicon, lies below the root; the folders above it are not there at first."""
DRAWS = int(os.environ.get("LEXENT_POWER_DRAWS", "2"))
"""Random states after each system call, in the slow tests."""
Property = Callable[[str, object], None]


# --- what is recorded --------------------------------------------------------------------------------------------


def step(path: Path, aside: Path, number: int, act: Callable[[], object]) -> None:
    """Makes a change between two marks, and keeps a copy of the index as it is then."""
    power.mark(f"begin {number}")
    act()
    power.mark(f"done {number}")
    (shutil.copytree if path.is_dir() else shutil.copy)(path, aside / str(number))


def session(root: str, aside: str, changes: str) -> None:
    """In a recorded process: builds an index and makes changes to it."""
    path = Path(root) / PLACE
    step(path, Path(aside), 0, lambda: small.build(path, small.documents(36)).close())
    with opened(path) as index:
        for number, change in enumerate(json.loads(changes), 1):
            step(path, Path(aside), number, lambda change=change: made(index, path, change))  # type: ignore[misc]


def made(index: Any, path: Path, change: list[Any]) -> None:
    if change[0] == "build":
        small.build(path, small.documents(change[1]), overwrite=True).close()
        index.refresh()
    elif change[0] == "rename":
        index.rename(3, change[1])
    else:
        living.apply(index, change)


def short_steps(set: Callable[[Any, str, Any], None] = setattr) -> None:
    """Builds commit a segment after every four documents."""
    set(builder, "DOCUMENTS_PER_CHUNK", 4)
    set(resuming, "CHECKPOINT_SECONDS", 0.0)


def in_steps(root: str, aside: str) -> None:
    """In a recorded process: builds an index in several steps, so that an interrupted run can go on."""
    short_steps()
    path = Path(root) / PLACE
    step(path, Path(aside), 0, lambda: small.build(path, small.documents(14)).close())


def unconfirmed(root: str, aside: str) -> None:
    """In a recorded process: a commit that the disk does not confirm, and then another writer."""
    path, real = Path(root) / PLACE, artifact.sync_folder
    step(path, Path(aside), 0, lambda: small.build(path, small.documents(14)).close())

    def sync_folder(folder: Path) -> None:
        if folder == path:
            raise SyncError("no answer")
        real(folder)

    power.mark("begin 1")
    with opened(path) as index, pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifact, "sync_folder", sync_folder)
        with pytest.raises(SyncError):
            index.retune(power=1.0)
    with opened(path) as index:
        index.delete([], missing=True)  # a writer that changes nothing still cleans up
    shutil.copytree(path, Path(aside) / "1")


def backups(root: str, aside: str) -> None:
    """In a recorded process: backs an index up to a new file, and another state of it in the place of that."""
    path = Path(root) / PLACE
    with small.build(Path(aside).parent / "source", small.documents(14)) as index:
        step(path, Path(aside), 0, lambda: index.backup(path))
        index.delete(["d1"])
        step(path, Path(aside), 1, lambda: index.backup(path, overwrite=True))


def restores(root: str, aside: str) -> None:
    """In a recorded process: restores an index to a new folder, and another one in the place of that."""
    path, folder = Path(root) / PLACE, Path(aside).parent
    for number in range(2):
        with small.build(folder / f"source-{number}", small.documents(14 + number)) as index:
            index.backup(folder / f"backup-{number}")
        file = folder / f"backup-{number}"
        step(path, Path(aside), number, lambda file=file: backup.restore(file, path, overwrite=True))  # type: ignore[misc]


def lexicons(root: str, aside: str) -> None:
    """In a recorded process: writes a lexicon to a new folder, and another in its place."""
    path = Path(root) / PLACE
    for seed in range(2):
        step(path, Path(aside), seed, lambda seed=seed: small.lexicon(seed).save(path, overwrite=True))  # type: ignore[misc]


def random_changes(seed: int, count: int) -> list[list[Any]]:
    """Changes drawn at random, with renames and builds among them."""
    chance, model, changes = random.Random(seed), living.Model.of(small.documents(36)), list[list[Any]]()
    for number in range(count):
        kind = chance.random()
        if kind < 0.1:
            changes.append(["build", size := 5 + chance.randrange(20)])
            model = living.Model.of(small.documents(size))
        elif kind < 0.2:
            changes.append(["rename", f"name {number}"])
        else:
            changes.append(living.some_change(chance, model))
            model = model.then(changes[-1])
    return changes


# --- replays -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = power.recorder(tmp_path_factory.mktemp("recorder"))
    if isinstance(made, str):
        pytest.skip(made)
    return made


def after_power_failure(path: Path) -> dict[str, Any] | None:
    """What an index holds, once it opened, verified and a writer was there; None where there is no index."""
    try:
        verify(path)
    except NotFoundError:
        return None
    found = seen(path)
    with opened(path) as index:
        index.delete([], missing=True)  # a writer that changes nothing still cleans up
        assert living.files(path) - {"labels.json", "labels.lock", "labels.json.new"} == living.named(index)
    assert seen(path) == found
    return found


class Recording:
    """What a session wrote, and what the index held after each of its changes."""

    def __init__(
        self, library: Path, folder: Path, task: str, *given: str, look: Callable[[Path], Any] = after_power_failure
    ) -> None:
        """look: what there is after a power failure, or None; it fails where there is a part of something."""
        self.root, self.aside, self.log = folder / "root", folder / "aside", folder / "log"
        self.folder, self.look = folder, look
        self.root.mkdir()
        self.aside.mkdir()
        power.record(library, self.root, self.log, "test_power_loss", task, str(self.root), str(self.aside), *given)
        self.events = power.events(self.log)
        assert power.Disk(self.events).after(power.Draw("all")) == power.held(self.root), "not all writes were recorded"
        copies = sorted(self.aside.iterdir(), key=lambda path: int(path.name))
        self.expected = [look(copy) for copy in copies]

    def check(self, state: power.State, *, retry: Callable[[Path], object] | None = None) -> None:
        """The index is there with all that was acknowledged, opens, verifies and can be changed."""
        done = sum(mark.startswith("done") for mark in state.marks)
        begun = sum(mark.startswith("begin") for mark in state.marks)
        allowed = [None, *self.expected][done : begun + 1]
        folder = self.folder / "replay"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        state.write(folder)
        try:
            found = self.look(folder / PLACE)
            assert found in allowed, "it holds something else"
            if retry is not None and found is None:
                retry(folder / PLACE)
                assert self.look(folder / PLACE) == self.expected[0], "it cannot be built again"
        except Exception as error:
            raise AssertionError(
                f"after event {state.event} ({self.events[state.event]}), {state.marks[-1]}, draw {state.draw}: "
                f"{error!r}\nmake this state again:\n"
                f"  python tests/power.py {self.log} {state.event} {state.draw} power-state"
            ) from error

    def states(self, *, draws: int, seed: int = 0) -> list[power.State]:
        return list(power.states(self.events, draws=draws, seed=seed))


def some(states: Sequence[power.State], count: int) -> list[power.State]:
    return random.Random(count).sample(states, min(count, len(states)))


EACH = [*CHANGES.values(), ["rename", "a name"], ["build", 7]]
assert len(EACH) == len(ALL)


@pytest.fixture(scope="module")
def each(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A build in a new folder, every change once, and a build in the place of the index."""
    return Recording(library, tmp_path_factory.mktemp("each"), "session", json.dumps(EACH))


@pytest.fixture(scope="module")
def steps(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A build in several steps."""
    return Recording(library, tmp_path_factory.mktemp("steps"), "in_steps")


def again(path: Path) -> None:
    """Builds once more what a power failure interrupted."""
    with pytest.MonkeyPatch.context() as patch:
        short_steps(patch.setattr)
        small.build(path, small.documents(14)).close()


def test_some_power_failures(each: Recording) -> None:
    for state in some(each.states(draws=1), 60):
        each.check(state)


def test_some_power_failures_of_a_build_in_steps(steps: Recording) -> None:
    for state in some(steps.states(draws=1), 10):
        steps.check(state, retry=again)


def test_power_failures_after_a_commit_that_was_not_confirmed(library: Path, tmp_path: Path) -> None:
    recording = Recording(library, tmp_path, "unconfirmed")
    states = recording.states(draws=2)
    for state in some([state for state in states if state.marks[-1] == "begin 1"], 20):
        recording.check(state)


def test_power_failures_while_a_lexicon_is_written(library: Path, tmp_path: Path) -> None:
    def look(path: Path) -> str | None:
        try:
            return load_lexicon(path).hash
        except NotFoundError:
            return None

    for state in (recording := Recording(library, tmp_path, "lexicons", look=look)).states(draws=2):
        recording.check(state)


def test_power_failures_while_a_backup_is_written(library: Path, tmp_path: Path) -> None:
    def look(path: Path) -> dict[str, Any] | None:
        folder = tmp_path / "restored"
        try:
            backup.restore(path, folder, overwrite=True)
        except NotFoundError:
            return None
        return seen(folder)

    recording = Recording(library, tmp_path, "backups", look=look)
    for state in some(recording.states(draws=1), 12):
        recording.check(state)


def test_power_failures_while_an_index_is_restored(library: Path, tmp_path: Path) -> None:
    recording = Recording(library, tmp_path, "restores")
    for state in some(recording.states(draws=1), 12):
        recording.check(state)


@pytest.mark.slow
def test_power_failures_after_every_system_call(each: Recording, record_property: Property) -> None:
    states = each.states(draws=DRAWS)
    for state in states:
        each.check(state)
    record_property("replays", len(states))


@pytest.mark.slow
def test_power_failures_after_every_system_call_of_a_build_in_steps(
    steps: Recording, record_property: Property
) -> None:
    states = steps.states(draws=DRAWS)
    for state in states:
        steps.check(state, retry=again)
    record_property("replays", len(states))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_power_failures_in_random_changes(library: Path, tmp_path: Path, seed: int, record_property: Property) -> None:
    """With merges: more than eight segments come together."""
    recording = Recording(library, tmp_path, "session", json.dumps(random_changes(seed, 40)))
    states = some(recording.states(draws=2, seed=seed), 100 * DRAWS)
    for state in states:
        recording.check(state)
    record_property("replays", len(states))
