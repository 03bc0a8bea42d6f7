"""The docstrings of Python's own standard library as documents: read from its sources, nothing is imported or run."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from lexent.errors import NotFoundError
from lexent.types import Document

MIN_CHARS = 40
"""A docstring of fewer characters says too little to be found."""
MAX_CHARS = 300
"""Characters that are kept: the first paragraphs say what a thing is for."""
MAX_ENTRIES = 2200
"""Entries that are kept, so that indexing them takes less than half a minute on two cores."""

SKIPPED = {"antigravity", "distutils", "encodings", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tests",
           "this", "turtledemo"}  # fmt: skip
TWINS = {"_collections_abc": "collections.abc", "_pydatetime": "datetime", "_pydecimal": "decimal", "_pyio": "io"}
"""Sources whose own name is private, by the name they are imported by."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def collect(folder: Path | None = None, *, limit: int = MAX_ENTRIES) -> list[Document]:
    """Modules, classes, functions and methods that are public and documented, at most `limit`, in the order of names.

    Where there are more, the outermost are kept: modules, their classes and functions, then of each class the first
    methods.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    found: dict[str, tuple[int, Document]] = {}
    for module, path in _sources(folder):
        for place, document in _documents(module, path):
            found.setdefault(document.id, (place, document))
    if not found:
        raise NotFoundError(
            f"no Python sources in {folder}, the place of the standard library; search a file of your own instead: "
            "lexent index FILE"
        )
    texts: dict[str, int] = {}  # a method that only repeats another's docstring adds nothing
    ranked = sorted(found.values(), key=lambda entry: (entry[0], entry[1].id))
    single = [entry for entry in ranked if texts.setdefault(entry[1].text, id(entry)) == id(entry)]
    return sorted((document for _, document in single[:limit]), key=lambda document: document.id)


def _sources(folder: Path) -> Iterator[tuple[str, Path]]:
    """Module names and files of the standard library, private ones and those of no interest left out."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        names = parts[:-1] if parts[-1] == "__init__" else parts
        if not names or names[0] not in sys.stdlib_module_names:
            continue
        twin = TWINS.get(".".join(names))
        if twin is None and any(name.startswith("_") or name in SKIPPED for name in names):
            continue
        yield twin or ".".join(names), path


def _documents(module: str, path: Path) -> Iterator[tuple[int, Document]]:
    """The entries of a source, each with its place: 0 a module, 1 what it defines, from 2 on the methods of a class."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old sources hold escapes that Python now warns of
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # a source of another Python version, or a template
        return
    exported = _exported(tree)
    yield from _entry(0, module, "", tree)
    for node in tree.body:
        if not isinstance(node, Definition) or node.name.startswith("_") or (exported and node.name not in exported):
            continue
        yield from _entry(1, f"{module}.{node.name}", _signature(node), node)
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            public = (method for method in methods if not method.name.startswith("_"))
            for place, method in enumerate(public, 2):
                name = f"{module}.{node.name}.{method.name}"
                yield from _entry(place, name, _signature(method, bound=True), method)


def _entry(place: int, name: str, signature: str, node: ast.Module | Definition) -> Iterator[tuple[int, Document]]:
    text = _opening(ast.get_docstring(node, clean=True) or "")
    if len(text) >= MIN_CHARS:
        yield place, Document(id=name, title=f"{name}{signature}", text=text)


def _exported(tree: ast.Module) -> set[str]:
    """The names in __all__ where it is one plain list; empty where there is none, or it is made in several steps."""
    mentions = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "__all__"]
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(mentions) == 1 and mentions[0] in node.targets:
            constants = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            return {value for value in constants if isinstance(value, str)}
    return set()


def _signature(node: Definition, *, bound: bool = False) -> str:
    """The parameters as they are written, without types and defaults; none for a class."""
    if isinstance(node, ast.ClassDef):
        return ""
    arguments = node.args
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in node.decorator_list)
    plain = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][bound and not static :]
    starred = [f"*{arguments.vararg.arg}"] if arguments.vararg else (["*"] if arguments.kwonlyargs else [])
    named = [argument.arg for argument in arguments.kwonlyargs]
    double = [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return f"({', '.join([*plain, *starred, *named, *double])})"


def _opening(docstring: str) -> str:
    """The first paragraphs as running text, cut at a sentence or a word."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    text = ""
    for paragraph in paragraphs:
        if text and len(text) + len(paragraph) > MAX_CHARS:
            break
        text = f"{text} {' '.join(paragraph.split())}".strip()
    if len(text) <= MAX_CHARS:
        return text
    cut = text[:MAX_CHARS]
    end = max(cut.rfind(". "), cut.rfind("; "))
    return cut[: end + 1] if end >= MIN_CHARS else cut.rsplit(" ", 1)[0] + " …"
