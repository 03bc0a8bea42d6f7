"""Folders are written whole or not at all, and what stood there before is never lost."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lexent import array_files, artifact
from lexent.errors import ArtifactError, InputError, NotFoundError, WriteError


def write(path: Path, text: str, *, overwrite: bool = False, format: int = artifact.FORMAT_VERSION) -> None:
    with artifact.new_folder(path, kind="index", overwrite=overwrite) as folder:
        artifact.write_bytes(folder / "text", text.encode())
        artifact.write_json(folder / artifact.MANIFEST, {"kind": "index", "format": format, "lexent": "9.9.9"})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "a.lexent"
    write(target, "one")
    assert (target / "text").read_text() == "one"
    assert names(target.parent) == ["a.lexent"]


def test_an_old_folder_is_replaced_only_when_asked(tmp_path: Path) -> None:
    target = tmp_path / "a"
    write(target, "one")
    with pytest.raises(InputError, match="--overwrite"):
        write(target, "two")
    assert (target / "text").read_text() == "one"
    write(target, "two", overwrite=True)
    assert (target / "text").read_text() == "two"
    assert names(tmp_path) == ["a"]


def test_the_kind_of_a_folder_whose_replacement_was_interrupted(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    (tmp_path / "a").rename(tmp_path / ".a.1-abcdef.old")
    assert artifact.is_kind(tmp_path / "a", "index")
    assert names(tmp_path) == ["a"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    write(tmp_path / "a", "one")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    write(tmp_path / "link", "two", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a" / "text").read_text() == "two"
    assert names(tmp_path) == ["a", "link"]


def test_a_failed_write_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "a"
    write(target, "one")

    def interrupted() -> None:
        with artifact.new_folder(target, kind="index", overwrite=True) as folder:
            artifact.write_bytes(folder / "text", b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (target / "text").read_text() == "one"
    assert names(tmp_path) == ["a"]


KILLED = """
import os, signal, sys
from pathlib import Path
from lexent import artifact

target = Path(sys.argv[1])
if sys.argv[2] == "between":  # the two renames of the swap
    rename = Path.rename
    def killed(self, to):
        if self.name.endswith(".new"):
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(self, to)
    Path.rename = killed
with artifact.new_folder(target, kind="index", overwrite=True) as folder:
    artifact.write_bytes(folder / "text", b"two")
    artifact.write_json(folder / artifact.MANIFEST, {"kind": "index", "format": 1})
    if sys.argv[2] == "inside":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("moment", ["inside", "between"])
def test_a_killed_run_loses_nothing_and_is_cleaned_up(tmp_path: Path, moment: str) -> None:
    target = tmp_path / "a"
    write(target, "one")
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), moment], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) > 1 or not target.exists()
    artifact.read_manifest(target, kind="index")
    assert (target / "text").read_text() == "one"
    write(target, "three", overwrite=True)
    assert (target / "text").read_text() == "three"
    assert names(tmp_path) == ["a"]


def test_what_a_living_run_is_writing_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "a"

    def slower() -> None:
        with artifact.new_folder(target, kind="index") as folder:
            write(target, "quicker")
            assert folder.exists()

    with pytest.raises(InputError, match="already holds"):
        slower()
    assert (target / "text").read_text() == "quicker"
    assert names(tmp_path) == ["a"]


def test_folders_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    write(tmp_path / "index", "one")
    (tmp_path / "empty").mkdir()
    for overwrite in (False, True):
        with pytest.raises(InputError, match="not a lexent artefact; give another folder"):
            write(tmp_path / "home", "x", overwrite=overwrite)
        with pytest.raises(InputError, match="it is a file"):
            write(tmp_path / "file", "x", overwrite=overwrite)
        with (
            pytest.raises(InputError, match="a lexent index"),
            artifact.new_folder(tmp_path / "index", kind="lexicon", overwrite=overwrite),
        ):
            pass
    write(tmp_path / "empty", "one")
    assert (tmp_path / "home" / "thesis.txt").read_text() == "precious"


def test_reading_what_is_not_there_or_not_ours(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="lexent index CORPUS --out"):
        artifact.read_manifest(tmp_path / "nothing", kind="index")
    with pytest.raises(ArtifactError, match="not a lexent index"):
        artifact.read_manifest(tmp_path, kind="index")
    (tmp_path / artifact.MANIFEST).write_text("{ broken")
    with pytest.raises(ArtifactError, match="not a lexent index"):
        artifact.read_manifest(tmp_path, kind="index")
    write(tmp_path / "index", "one")
    with pytest.raises(ArtifactError, match="is a lexent index; a lexent lexicon is wanted"):
        artifact.read_manifest(tmp_path / "index", kind="lexicon")


def test_a_newer_format_says_what_to_do(tmp_path: Path) -> None:
    write(tmp_path / "a", "one", format=artifact.FORMAT_VERSION + 1)
    newer, newest = artifact.FORMAT_VERSION + 1, artifact.FORMAT_VERSION
    says = rf"lexent 9\.9\.9, format {newer}; .* up to {newest}; upgrade: pip install -U lexent"
    with pytest.raises(ArtifactError, match=says):
        artifact.read_manifest(tmp_path / "a", kind="index")


def test_files_are_checked_by_size_and_by_hash(tmp_path: Path) -> None:
    array_files.write_array(tmp_path / "a.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    array_files.write_array(tmp_path / "none.npy", np.empty(0, np.int32))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), [[0, 1, 2], [3, 4, 5]])
    assert np.load(tmp_path / "none.npy").shape == (0,)
    files = artifact.describe_files(tmp_path)
    sizes = {name: file["size"] for name, file in files.items()}
    hashes = {name: file["sha256"] for name, file in files.items()}
    artifact.check_sizes(tmp_path, sizes, remedy="")
    artifact.check_hashes(tmp_path, hashes, remedy="")

    data = bytearray((tmp_path / "a.npy").read_bytes())
    data[-1] ^= 1
    (tmp_path / "a.npy").write_bytes(data)
    artifact.check_sizes(tmp_path, sizes, remedy="")
    with pytest.raises(ArtifactError, match=r"a\.npy changed since it was written; do this"):
        artifact.check_hashes(tmp_path, hashes, remedy="do this")
    (tmp_path / "a.npy").write_bytes(data[:-1])
    with pytest.raises(ArtifactError, match=r"a\.npy has 151 bytes, the manifest says 152"):
        artifact.check_sizes(tmp_path, sizes, remedy="")
    (tmp_path / "a.npy").unlink()
    with pytest.raises(ArtifactError, match=r"a\.npy is missing"):
        artifact.check_sizes(tmp_path, sizes, remedy="")


def test_a_target_below_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match=r"cannot write .*give another folder"):
        write(tmp_path / "file" / "index", "one")


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder that may be read but not written, also where the tests run as root."""
    folder = Path(tempfile.mkdtemp())
    user = os.geteuid()
    folder.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(user)
    folder.chmod(0o755)
    folder.rmdir()


def test_no_permission(locked: Path) -> None:
    with pytest.raises(WriteError, match=r"no permission to write .*give another folder, for example ~/index"):
        write(locked / "index", "one")
    with pytest.raises(WriteError, match="no permission to write"):
        write(locked, "one")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a folder that others may not see into")
def test_a_folder_that_may_not_be_seen(tmp_path: Path, locked: Path) -> None:
    with pytest.raises(WriteError, match="no permission to write"):
        write(tmp_path / "index", "one")  # pytest's folders are closed to others
    with pytest.raises(NotFoundError, match="no index at"):
        artifact.read_manifest(tmp_path / "index", kind="index")


@pytest.mark.parametrize(
    ("code", "message"),
    [(errno.ENOSPC, "no space left"), (errno.EACCES, "no permission"), (errno.EROFS, "read-only disk")],
)
def test_what_the_disk_says_is_told(tmp_path: Path, code: int, message: str) -> None:
    inside = tmp_path / ".papers.1-abcdef.new" / "postings" / "weights.npy"
    error = artifact.write_error(inside, code, os.strerror(code))
    assert message in str(error)
    assert f'"{tmp_path / "papers"}"' in str(error)
    assert "~/papers" in str(error)


def test_a_file_that_grows_too_large_is_told_as_no_space(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path; import numpy as np; from lexent import array_files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "array_files.write_array(Path(sys.argv[1]), np.zeros(100_000))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.npy")], capture_output=True, text=True, check=False
    )
    assert "WriteError: no space left to write" in done.stderr


def test_json_is_readable(tmp_path: Path) -> None:
    artifact.write_json(tmp_path / "a.json", {"label": "naïve · café"})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"label": "naïve · café"}
    assert "naïve" in (tmp_path / "a.json").read_text(encoding="utf-8")
