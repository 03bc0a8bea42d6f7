"""The licences of everything that an installation with all extras brings."""

from __future__ import annotations

import re
from importlib.metadata import PackageMetadata, distribution

from packaging.requirements import Requirement

PERMISSIVE = (
    "0BSD", "Apache", "BSD", "BSL-1.0", "CC0", "CNRI", "ISC", "MIT", "PSF", "Python Software Foundation", "Zlib",
    "MPL", "Mozilla Public License",
)  # fmt: skip
"""Starts of the names of licences that ask for their text beside copies, or (MPL) for changes of their own files."""


def licences() -> dict[str, list[str]]:
    """The licences of each package that is installed by `lexent[all]`."""
    found: dict[str, list[str]] = {}
    seen, waiting = set(), [("lexent", frozenset({"all"}))]
    while waiting:
        name, extras = waiting.pop()
        name = re.sub(r"[-_.]+", "-", name).lower()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        package = distribution(name)
        found[name] = named(package.metadata)
        for needed in map(Requirement, package.requires or []):
            wanted = [{"extra": extra} for extra in extras | {""}]
            if needed.marker is None or any(map(needed.marker.evaluate, wanted)):
                waiting.append((needed.name, frozenset(needed.extras)))
    return found


def named(facts: PackageMetadata) -> list[str]:
    """The licences that the facts of a package name."""
    classifiers = [one.split(" :: ")[-1] for one in facts.get_all("Classifier") or [] if one.startswith("License")]
    given = facts.get("License-Expression") or " AND ".join(classifiers) or facts.get("License") or ""
    return [one.strip("() ") for one in re.split(r" AND | OR | WITH ", given)]


def test_what_is_installed_may_be_used_by_anybody() -> None:
    found = licences()
    assert {"numpy", "numba", "torch", "fastapi", "pyarrow", "lxml", "matplotlib", "ir-measures"} <= set(found)
    others = {name: one for name, given in found.items() for one in given if not one.startswith(PERMISSIVE)}
    assert {name: one for name, one in others.items() if one != "LLVM-exception"} == {}
