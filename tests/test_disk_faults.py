"""Disks that fail: every system call of a change in turn, and what a power failure leaves."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import living
import small
from faulty import Disk
from lexent import artifact
from lexent.errors import LexentError, SyncError
from lexent.indexing.manifest import verify
from lexent.lexicon import user_labels
from living import opened, state
from test_faults import CHANGES


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments, one of them with deleted documents; not to be written to."""
    path = tmp_path_factory.mktemp("whole") / "a"
    docs = small.documents(36)
    with small.build(path, docs[:30]) as index:
        index.delete(["d1", "d7", "d25"])
        index.add(docs[30:])
    return path


# --- fsync -------------------------------------------------------------------------------------------------------


def failing_fsync(monkeypatch: pytest.MonkeyPatch, code: int, *, folders: bool) -> None:
    real = os.fsync

    def fsync(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").resolve().is_dir() == folders:
            raise OSError(code, os.strerror(code))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("folders", [False, True])
def test_a_failed_fsync_is_an_error(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: bool
) -> None:
    path = tmp_path / "a"
    shutil.copytree(whole, path)
    with opened(path) as index, monkeypatch.context() as patch:
        before = state(index)
        failing_fsync(patch, errno.EIO, folders=folders)
        for change in (*CHANGES.values(), ["rename", 3]):
            with pytest.raises(SyncError, match=r"the disk did not confirm .* the change is not acknowledged"):
                applied(index, change)
        with pytest.raises(SyncError):
            small.build(tmp_path / "b")
        if not folders:  # else the manifest was replaced: the change shows, and is not acknowledged
            assert state(opened(path)) == before
    verify(path)


def test_file_systems_that_do_not_sync_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_fsync(monkeypatch, errno.EINVAL, folders=True)
    with small.build(tmp_path / "a") as index:
        assert index.delete(["d1"]) == 1
    failing_fsync(monkeypatch, errno.EINVAL, folders=False)
    with opened(tmp_path / "a") as index, pytest.raises(SyncError):
        index.delete(["d2"])


def test_both_generations_stay_where_the_disk_does_not_confirm_the_manifest(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    shutil.copytree(whole, path)
    index, real = opened(path), artifact.sync_folder

    def sync_folder(folder: Path) -> None:
        if folder == path:
            raise SyncError("no answer")
        real(folder)

    with monkeypatch.context() as patch:
        patch.setattr(artifact, "sync_folder", sync_folder)
        with pytest.raises(SyncError):
            index.compact()
        opened(path).delete([], missing=True)  # this writer finds a manifest that may not be on the disk
        assert all((path / name).exists() for name in opened(whole).manifest.files)
    index.delete([], missing=True)
    assert living.files(path) == living.named(index)
    assert state(index) == state(opened(whole)) | {"words": state(index)["words"]}


def applied(index: Any, change: list[Any]) -> None:
    if change[0] == "rename":
        index.rename(change[1], "a name of its own")
    else:
        living.apply(index, change)


# --- every system call -------------------------------------------------------------------------------------------

RENAME: list[Any] = ["rename", 3]
BUILD: list[Any] = ["build", None]
ALL = {**CHANGES, "rename": RENAME, "build": BUILD}


def seen(path: Path) -> dict[str, Any]:
    """All that an index holds, with the name that a user gave."""
    with opened(path) as index:
        concept = index.lexicon.concepts[3]
        return {**state(index), "name": concept.label if concept.source == user_labels.SOURCE else None}


def make(path: Path, change: list[Any]) -> None:
    """Makes a change to the index at a path, as a process does that was just started."""
    if change == BUILD:
        small.build(path, small.documents(7), overwrite=True).close()
        return
    with opened(path) as index:
        applied(index, change)


def fail_each(whole: Path, folder: Path, change: list[Any], choose: Callable[[int], list[int]]) -> int:
    """Lets one system call after the other fail; the index holds what was acknowledged, and a retry works.

    Gives the number of faults.
    """
    shutil.copytree(whole, folder / "a")
    before = seen(folder / "a")
    with Disk(folder / "a" if change != BUILD else folder).used() as disk:
        make(folder / "a", change)
    after = seen(folder / "a")
    assert len(disk.calls) > 3
    shutil.rmtree(folder / "a")
    chosen = choose(len(disk.calls))
    for number in chosen:
        for turn in range(3):
            path = folder / f"step-{number}-{turn}" / "a"
            shutil.copytree(whole, path)
            faulty = Disk(path if change != BUILD else path.parent, fail=number, turn=turn)
            error: LexentError | None = None
            with faulty.used():
                try:
                    make(path, change)
                except LexentError as found:
                    error = found
            assert faulty.failed
            context = (number, turn, faulty.calls[number], error)
            verify(path)
            found = seen(path)
            assert found in (before, after), context
            assert error is not None or found == after, context
            if found == before:
                make(path, change)
            assert seen(path) == after, context
            with opened(path) as index:
                index.delete([], missing=True)  # a writer that changes nothing still cleans up
                assert living.files(path) - {"labels.json", "labels.lock"} == living.named(index), context
            shutil.rmtree(path.parent)
    return 3 * len(chosen)


@pytest.mark.parametrize("name", ALL)
def test_some_system_calls_that_fail(whole: Path, tmp_path: Path, name: str) -> None:
    def some(total: int) -> list[int]:
        return sorted(random.Random(name).sample(range(total), 2))

    fail_each(whole, tmp_path, ALL[name], some)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_system_call_that_fails(
    whole: Path, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("faults", fail_each(whole, tmp_path, ALL[name], lambda total: list(range(total))))
