"""An index is data, never authority: what a stranger's folder can say, no file elsewhere is changed by it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import small
from lexent import artifact
from lexent.cli.app import app
from lexent.errors import ArtifactError, LexentError, WriteError
from lexent.indexing.lock import check_free, writing
from lexent.indexing.manifest import stamped, verify
from lexent.models import load_lexicon
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
        "a.npy": lambda: artifact.ArrayWriter(tmp_path / "a.npy", np.dtype(np.int64)).close(),
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
