"""The reference of the Python API: which names are public and where each is defined. mkdocstrings writes the rest."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import lexent

HEAD = """# Python

The public names of `lexent`. This page is generated from the docstrings and annotations of the code.

"""
OPTIONS = """    options:
      heading: "{heading}"
      toc_label: "{label}"
"""


def page() -> str:
    """The page: functions first, then classes, each under the name that it is imported by."""
    found = {name: getattr(lexent, name) for name in lexent.__all__}
    functions = sorted(name for name, value in found.items() if inspect.isroutine(value))
    classes = sorted(name for name, value in found.items() if inspect.isclass(value))
    parts = ["## Functions\n", *_entries(functions), "## Classes\n", *_entries(classes)]
    return HEAD + "\n".join(parts)


def _entries(names: list[str]) -> Iterator[str]:
    for name in names:
        value = getattr(lexent, name)
        options = OPTIONS.format(heading=f"lexent.{name}", label=name)
        yield f"::: {value.__module__}.{value.__qualname__}\n{options}"
