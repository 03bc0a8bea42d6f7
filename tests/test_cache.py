"""Encoded texts are kept, found again, bounded in size, and made anew when damaged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from lexent.errors import InputError
from lexent.evaluation import cache
from lexent.types import SparseVectors

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
VECTORS = SparseVectors(np.array([1, 5], np.int32), np.array([0.5, 2.0], np.float32), np.array([0, 1, 1, 2]), 9)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path))
    monkeypatch.delenv("LEXENT_CACHE_GB", raising=False)
    return tmp_path / "vectors"


def never() -> np.ndarray:
    raise AssertionError("made again")


def test_made_once(own_cache: Path) -> None:
    assert np.array_equal(cache.matrix("a", lambda: ROWS), ROWS)
    found = cache.matrix("a", never)
    assert found.dtype == np.float32
    assert np.array_equal(found, ROWS)
    cache.vectors("b", lambda: VECTORS)
    kept = cache.vectors("b", never)  # type: ignore[arg-type]
    assert kept.size == 9
    assert all(np.array_equal(getattr(kept, name), getattr(VECTORS, name)) for name in ("ids", "values", "offsets"))
    assert sorted(path.name for path in own_cache.iterdir()) == ["a.npz", "b.npz"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other"])
def test_a_damaged_entry_is_made_again(own_cache: Path, damage: str) -> None:
    cache.matrix("a", lambda: ROWS)
    path = own_cache / "a.npz"
    content = path.read_bytes()
    place = content.index(ROWS.tobytes()) + 8
    path.write_bytes(
        {
            "cut": content[:-30],
            "flipped": content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
            "empty": b"",
            "other": b"not an archive",
        }[damage]
    )
    assert np.array_equal(cache.matrix("a", lambda: ROWS), ROWS)
    assert np.array_equal(cache.matrix("a", never), ROWS)


def test_an_entry_of_another_form_is_made_again() -> None:
    cache.matrix("a", lambda: ROWS)
    assert len(cache.vectors("a", lambda: VECTORS)) == 3


def test_the_oldest_entries_go(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big = np.zeros((1000, 100), np.float32)  # 0.4 MB
    for age, name in enumerate("abc"):
        cache.matrix(name, lambda: big)
        os.utime(own_cache / f"{name}.npz", (1e9 + age, 1e9 + age))
    cache.matrix("a", never)  # used: now the youngest
    monkeypatch.setenv("LEXENT_CACHE_GB", "0.001")
    cache.matrix("d", lambda: big)
    assert sorted(path.name for path in own_cache.iterdir()) == ["a.npz", "d.npz"]
    cache.matrix("huge", lambda: np.zeros((1000, 1000), np.float32))
    assert not (own_cache / "huge.npz").exists()


def test_off_and_wrong_settings(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEXENT_CACHE_GB", "0")
    cache.matrix("a", lambda: ROWS)
    assert not own_cache.exists()
    monkeypatch.setenv("LEXENT_CACHE_GB", "much")
    with pytest.raises(InputError, match='LEXENT_CACHE_GB is "much"; allowed: a number of gigabytes'):
        cache.matrix("a", lambda: ROWS)


def test_a_folder_that_cannot_be_written_only_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="export LEXENT_CACHE=FOLDER"):
        assert np.array_equal(cache.matrix("a", lambda: ROWS), ROWS)


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEXENT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "lexent" / "vectors"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache" / "lexent" / "vectors"


def test_keys_part_what_differs() -> None:
    keys = [
        cache.key({"k": 1}, ["ab", "c"]), cache.key({"k": 2}, ["ab", "c"]), cache.key({"k": 1}, ["a", "bc"]),
        cache.key({"k": 1}, ["ab", "c", ""]), cache.key({}, ["ab", "c"]),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert cache.key({"a": 1, "b": 2}, ["x"]) == cache.key({"b": 2, "a": 1}, ("x",))
