"""What can go wrong with a binary index: killed processes and damaged files."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import damage
import living
import small
from lexent.errors import ArtifactError
from lexent.indexing.manifest import verify
from living import Model, opened
from test_binary import RECIPE
from test_faults import flipped, kill_and_look, killed_at_steps, names

CHANGES: dict[str, list[Any]] = {
    "add": ["add", [{"id": "x", "text": "king queen", "title": "", "metadata": {"n": 12}}]],
    "upsert": ["upsert", [{"id": "d3", "text": "night", "title": "", "metadata": {"n": 12}}]],
    "delete": ["delete", ["d2", "d21"]],
    "compact": ["compact", None],
    "retune": ["retune", {"idf": "lucene"}],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two segments, one with deleted documents."""
    path = tmp_path_factory.mktemp("whole") / "a"
    docs = small.documents(36)
    with small.build(path, docs[:26], recipe=RECIPE) as index:
        index.add(docs[26:])
        index.delete(["d1", "d7"])
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "a")
    return tmp_path / "a"


def test_a_killed_writer_leaves_what_it_acknowledged(server: living.Server, tmp_path: Path) -> None:
    path, chance, model = tmp_path / "a", random.Random(5), Model.of(small.documents(12))
    model.recipe = RECIPE
    small.build(path, small.documents(12), recipe=RECIPE).close()
    for _ in range(4):
        model = kill_and_look(server, path, model, chance, tmp_path)


@pytest.mark.parametrize("name", CHANGES)
def test_killed_at_a_step_of_a_change(server: living.Server, path: Path, tmp_path: Path, name: str) -> None:
    def some(total: int) -> list[int]:
        return sorted({random.Random(name).randrange(total - 2), total - 2})

    killed_at_steps(server, path, CHANGES[name], tmp_path, some)


def test_verify_and_opening_name_what_is_damaged(path: Path) -> None:
    chance = random.Random(0)
    for name in names(path):
        good = (path / name).read_bytes()
        (path / name).write_bytes(flipped(good, chance))
        with pytest.raises(ArtifactError, match=name):
            verify(path)
        (path / name).write_bytes(good[:-1])
        with pytest.raises(ArtifactError, match=name):
            opened(path)
        (path / name).write_bytes(good)
    verify(path)


def use(path: Path) -> None:
    """Does with an index what can be done."""
    with opened(path) as index:
        query = damage.asked_all(index)
        index.search("dough king", k=5, steer={int(query.ids[0]): 2.0}, filter={"n": {"gte": 3}})
        index.search("dough king", k=5, feedback=3)
    opened(path, retune={"power": 0.5, "idf": "lucene"}).search("dough", k=3)


def damaged(path: str, seed: int, rounds: int) -> None:
    """In a child process."""
    damage.damage(path, [name for name in names(Path(path)) if name.endswith(".npy")], use, seed=seed, rounds=rounds)


@pytest.mark.parametrize(("seed", "rounds"), [(0, 3), pytest.param(1, 12, marks=pytest.mark.slow)])
def test_no_flipped_byte_crashes(server: living.Server, path: Path, seed: int, rounds: int) -> None:
    damage.check(server.start("test_binary_faults", "damaged", str(path), seed, rounds))
