"""What `make install` installs: one version of each package, each file by its hash, and packages that fit together."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from markdown import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
NOT_LOCKED = {"lexent", "pip", "torch"}
"""This folder, what installs, and what has builds of its own; with CUDA, torch brings more."""
BROUGHT_BY_TORCH = re.compile(r"(cuda|nvidia)-.+|triton")


def pinned(file: Path) -> dict[str, str]:
    """The version of each package in a list of requirements."""
    found = re.findall(r"^([\w.-]+)==([^ \n\\]+)", file.read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_the_lock_files_have_the_versions_of_the_constraints() -> None:
    wanted = pinned(ROOT / "constraints.txt")
    for file in LOCKS:
        assert {name: version for name, version in pinned(file).items() if wanted.get(name, version) != version} == {}


@pytest.mark.parametrize("name", ["dev.txt", "docs.txt", "model.txt"])
def test_each_locked_package_has_hashes(name: str) -> None:
    blocks = re.split(r"\n(?=\S)", (ROOT / "requirements" / name).read_text())
    packages = [block for block in blocks if not block.startswith("#")]
    assert len(packages) == len(pinned(ROOT / "requirements" / name)) > 0
    assert [block for block in packages if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)] == []


def test_what_is_installed_is_locked() -> None:
    if not (Path(sys.prefix) / ".installed").exists():
        pytest.skip("this environment was not made by make install")
    locked = {name: version for file in LOCKS for name, version in pinned(file).items()}
    for found in distributions(path=[path for path in sys.path if Path(path).is_relative_to(sys.prefix)]):
        name = re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()
        if name not in NOT_LOCKED and not BROUGHT_BY_TORCH.fullmatch(name):
            assert found.version == locked.get(name), name


def test_the_packages_fit_together() -> None:
    if not (Path(sys.prefix) / ".installed").exists():
        pytest.skip("this environment was not made by make install")
    command = [sys.executable, "-m", "pip", "check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
