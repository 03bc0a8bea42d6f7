"""The cache of compiled kernels: several processes may fill it at once."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar

import pytest
from numba.core.caching import IndexDataCacheFile

from lexent.jit import KeyedCacheFile, njit

SOURCE = Path(__file__).parents[1] / "src" / "lexent"


def test_no_signature_gets_the_code_of_another(tmp_path: Path) -> None:
    """One process reads the index, another one stores its signature, then the first one stores another signature."""

    def stored(kind: type[IndexDataCacheFile]) -> dict[str, str | None]:
        files = [kind(str(tmp_path), f"kernel-{kind.__name__}", "stamp") for _ in range(3)]
        files[1]._load_index = dict  # as it was before the first one stored
        files[0].save("int64", "code of int64")
        files[1].save("float64", "code of float64")
        files[0]._save_index({**files[0]._load_index(), **files[0].seen})  # the first one's index is written last
        return {key: files[2].load(key) for key in ("int64", "float64")}

    class Ours(KeyedCacheFile):
        seen: ClassVar[dict[str, str]] = {}

        def _save_index(self, overloads: dict[str, str]) -> None:
            type(self).seen.update(overloads)
            super()._save_index(overloads)

    class Numbas(IndexDataCacheFile):
        seen: ClassVar[dict[str, str]] = {}

        def _save_index(self, overloads: dict[str, str]) -> None:
            type(self).seen.update(overloads)
            super()._save_index(overloads)

    assert stored(Ours) == {"int64": "code of int64", "float64": "code of float64"}
    assert stored(Numbas)["int64"] == "code of float64"  # the defect that this is for; where it is gone, jit.py can go


def test_damaged_files_are_compiled_anew(tmp_path: Path) -> None:
    file = KeyedCacheFile(str(tmp_path), "kernel", "stamp")
    file.save("int64", "code")
    assert file.load("int64") == "code"
    for path in tmp_path.iterdir():
        whole = path.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2], b"not a pickle"):
            path.write_bytes(damaged)
            assert file.load("int64") is None
        path.write_bytes(whole)
    file.save("float64", "other code")
    assert [file.load(key) for key in ("int64", "float64")] == ["code", "other code"]


def test_code_of_other_sources_is_another_file(tmp_path: Path) -> None:
    """A process with new sources that dies before it writes the index leaves the old code as it was."""
    old, new = (KeyedCacheFile(str(tmp_path), "kernel", stamp) for stamp in ("old", "new"))
    old.save("int64", "old code")
    new._save_index = lambda overloads: None  # type: ignore[method-assign]
    new.save("int64", "new code")
    assert old.load("int64") == "old code"


def test_kernels_without_a_writable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, function: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("lexent.jit.ConcurrentCache.__init__", refuse)

    @njit(cache=True, nogil=True)
    def doubled(value: int) -> int:
        return 2 * value

    assert doubled(4) == 8


def test_processes_that_compile_at_once_share_a_cache(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(
        textwrap.dedent("""
        from lexent.jit import njit

        @njit(cache=True, nogil=True)
        def total(values):
            found = values[0]
            for value in values[1:]:
                found += value
            return found
        """)
    )
    script = textwrap.dedent("""
        import sys
        import numpy as np
        import kernels

        kinds = [np.int64, np.float64, np.int32, np.float32, np.uint8, np.int16]
        for step in range(len(kinds)):
            kind = kinds[(step + int(sys.argv[1])) % len(kinds)]
            assert kernels.total(np.array([1, 2, 4], kind)) == 7, kind
        """)
    runs = [[sys.executable, "-c", script, str(number)] for number in range(3)]
    for _ in range(2):  # the second time from the cache
        started = [subprocess.Popen(run, cwd=tmp_path) for run in runs]
        assert [process.wait(timeout=300) for process in started] == [0, 0, 0]
    assert list((tmp_path / "__pycache__").glob("kernels.total*.nbc"))


def test_every_kernel_uses_it() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.name == "jit.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            assert not (isinstance(node, ast.ImportFrom) and node.module == "numba" and "njit" in names), path
            assert not (isinstance(node, ast.Attribute) and node.attr == "njit"), path
