"""What can go wrong with an index of token codes: killed processes, damaged files, an index of an older form."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import damage
import living
import small
from lexent import recipes
from lexent.errors import ArtifactError
from lexent.explain.highlight import highlights
from lexent.indexing.manifest import stamped, verify
from living import Model, opened
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
    """An index of two segments, one with deleted documents, and with dense vectors beside the codes of tokens."""
    path = tmp_path_factory.mktemp("whole") / "a"
    docs = small.documents(24)
    with small.build(path, docs[:16], recipe="ssr", extras=["dense"]) as index:
        index.add(docs[16:])
        index.delete(["d1", "d7"])
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "a")
    return tmp_path / "a"


def test_a_killed_writer_leaves_what_it_acknowledged(server: living.Server, tmp_path: Path) -> None:
    path, chance, model = tmp_path / "a", random.Random(5), Model.of(small.documents(12))
    model.recipe = recipes.get("ssr")
    small.build(path, small.documents(12), recipe="ssr").close()
    for _ in range(4):
        model = kill_and_look(server, path, model, chance, tmp_path)


@pytest.mark.parametrize("name", CHANGES)
def test_killed_at_a_step_of_a_change(server: living.Server, path: Path, tmp_path: Path, name: str) -> None:
    def some(total: int) -> list[int]:
        return sorted({random.Random(name).randrange(total - 2), total - 2})

    killed_at_steps(server, path, CHANGES[name], tmp_path, some)


def test_verify_and_opening_name_what_is_damaged(path: Path) -> None:
    chance = random.Random(0)
    stores = [name for name in names(path) if "/tokens-" in name or "/dense-" in name]
    assert len(stores) == 2 * 8
    for name in stores:
        good = (path / name).read_bytes()
        (path / name).write_bytes(flipped(good, chance))
        with pytest.raises(ArtifactError, match=name):
            verify(path)
        (path / name).write_bytes(good[:-1])
        with pytest.raises(ArtifactError, match=name):
            opened(path)
        (path / name).unlink()
        with pytest.raises(ArtifactError, match=name):
            opened(path)
        (path / name).write_bytes(good)
    verify(path)


def use(path: Path) -> None:
    """Does with an index what can be done."""
    with opened(path) as index:
        for where in (None, {"n": {"gte": 3, "lt": 50}}, {"n": 5}):
            for results in index.search_many(["yeast dough light", "king"], k=30, filter=where):
                for hit in results[:3]:
                    hit.to_dict()
                highlights(results[:3])
        index.search("dough king", k=5, mode="fast")
        index.dense_search("dough king", k=5)


def damaged(path: str, seed: int, rounds: int) -> None:
    """In a child process."""
    damage.damage(
        path,
        [name for name in names(Path(path)) if "/tokens-" in name or "/dense-" in name],
        use,
        seed=seed,
        rounds=rounds,
    )


@pytest.mark.parametrize(("seed", "rounds"), [(0, 2), pytest.param(1, 12, marks=pytest.mark.slow)])
def test_no_flipped_byte_crashes(server: living.Server, path: Path, seed: int, rounds: int) -> None:
    damage.check(server.start("test_maxsim_faults", "damaged", str(path), seed, rounds))


def test_an_index_of_the_form_before_is_refused_and_says_how_to_make_it_anew(tmp_path: Path) -> None:
    """Format 5 had other lists."""
    small.build(tmp_path / "a").close()
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    manifest["format"] = 5
    (tmp_path / "a" / "manifest.json").write_text(json.dumps(stamped(manifest)))
    with pytest.raises(ArtifactError, match=r"format 5; this version reads from 6 on; .*lexent index CORPUS --out"):
        opened(tmp_path / "a")
