"""Imports of lexent point one way: from a higher layer to a lower one, never back, and in no cycle."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import lexent

SOURCE = Path(lexent.__file__).parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "forks"),
    ("arguments", "terminal"),
    ("artifact", "bounded_cache", "cpu", "cpu_features", "extras", "jit", "nan_safe", "progress", "types"),
    ("array_files", "compiled", "function_words", "recipes"),
    ("corpus", "encoders", "sae", "vocabulary", "weighting"),
    ("adapters", "lexicon"),
    ("models", "pipeline"),
    ("indexing.forward.token_kernels", "indexing.postings"),
    ("topk",),
    ("indexing",),
    ("kernel_groups",),
    ("search",),
    ("explain",),
    ("engine",),
    ("build",),
    ("evaluation",),
    ("training",),
    ("demo", "integrations", "server", "studies"),
    ("cli",),
    ("__init__", "__main__"),
)
"""Packages and modules, lowest layer first. One may import what stands in a lower layer, and itself; not its
neighbours. Of a package that is listed in parts, each part has its own place, and the rest has the package's.
"""


class Import(NamedTuple):
    module: str
    """Without the leading `lexent.`; a package's own code is `package.__init__`."""
    line: int
    target: str


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


@cache
def modules() -> dict[str, ast.Module]:
    return {module_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, except those that only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other
                yield from at_run_time(other)
            continue
        yield child
        yield from at_run_time(child)


def imported(module: str, node: ast.AST) -> Iterator[str]:
    """The modules that a statement imports, with the packages around them, whose code runs first."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        start = f"lexent.{module}".split(".")[: -node.level] if node.level else []
        base = ".".join([*start, *([node.module] if node.module else [])])
        names = [f"{base}.{alias.name}" for alias in node.names]
    else:
        return
    for name in names:
        parts = name.split(".")
        if parts[0] != "lexent":
            continue
        for stop in range(2, len(parts) + 1):
            inner = ".".join(parts[1:stop])
            for found in (inner, f"{inner}.__init__"):
                if found in modules():
                    yield found


@cache
def imports() -> tuple[Import, ...]:
    """All imports at run time, at the top of a module and inside functions alike.

    A package whose own code imports nothing is left out: passing through it runs nothing of it.
    """
    found = {
        Import(module, getattr(node, "lineno", 0), target)
        for module, tree in modules().items()
        for node in at_run_time(tree)
        for target in imported(module, node)
        if target != module
    }
    passive = {module for module in modules() if module.endswith("__init__")} - {one.module for one in found}
    return tuple(sorted(one for one in found if one.target not in passive))


def unit_of(module: str) -> str:
    """The entry of `LAYERS` that a module belongs to: the longest that fits."""
    known = {unit for layer in LAYERS for unit in layer}
    parts = module.split(".")
    return next((unit for stop in range(len(parts), 0, -1) if (unit := ".".join(parts[:stop])) in known), "")


def layer_of(unit: str) -> int:
    return next(height for height, layer in enumerate(LAYERS) if unit in layer)


def cycle_in(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """A cycle, as names that each lead to the next; empty where there is none."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return []
        for other in edges.get(name, ()):
            if found := visit(other, [*trail, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(edges) if (found := visit(name, []))), [])


def test_every_module_has_a_layer_and_every_entry_a_module() -> None:
    units = {module: unit_of(module) for module in modules()}
    assert [module for module, unit in units.items() if not unit] == []
    listed = [unit for layer in LAYERS for unit in layer]
    assert len(listed) == len(set(listed))
    assert set(listed) - set(units.values()) == set()


def test_no_import_points_to_a_higher_layer_or_to_a_neighbour() -> None:
    back = [
        f"{one.module}:{one.line} imports {one.target}"
        for one in imports()
        if unit_of(one.module) != unit_of(one.target) and layer_of(unit_of(one.target)) >= layer_of(unit_of(one.module))
    ]
    assert back == []


def test_no_modules_import_each_other_in_a_cycle() -> None:
    """Not within a package either. `from package import name` inside that package goes to its modules alone."""
    edges: dict[str, set[str]] = {}
    for one in imports():
        within = one.target.endswith("__init__") and one.module.startswith(one.target.removesuffix("__init__"))
        if not within:
            edges.setdefault(one.module, set()).add(one.target)
    assert cycle_in(edges) == []


def test_only_the_package_itself_imports_by_a_text() -> None:
    """What is imported by `import_module` is not seen above."""
    found = [
        module
        for module, tree in modules().items()
        for node in at_run_time(tree)
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith(("import_module", "__import__"))
    ]
    assert set(found) == {"__init__"}


def test_the_reader_of_imports_sees_back_edges() -> None:
    """Of the kinds there are: at the top, inside a function, relative, and not those for a type checker."""
    code = (
        "from typing import TYPE_CHECKING\nfrom lexent.search import searcher\ndef f():\n    import lexent.engine\n"
        "from ..cli import app\nif TYPE_CHECKING:\n    from lexent.build import index\n"
    )
    seen = {target for node in at_run_time(ast.parse(code)) for target in imported("topk.heap", node)}
    assert {"search.searcher", "engine", "cli.app"} <= seen
    assert "build" not in seen
    assert layer_of(unit_of("search.searcher")) > layer_of(unit_of("topk.heap"))
    assert unit_of("indexing.postings.simd") == "indexing.postings"
    assert unit_of("indexing.forward.stores") == "indexing"
    assert cycle_in({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]


def test_the_guide_has_the_same_order() -> None:
    guide = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = guide.split("lowest first:\n\n```\n")[1].split("```")[0]
    written = [{name.strip() for name in layer.split(",")} for layer in " ".join(block.split()).split(" < ")]
    assert written == [set(layer) for layer in LAYERS[:-1]]
