"""The call chains of CONTRIBUTING.md are true: each step exists, and a real run calls them in that order."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from collections.abc import Collection as Names
from contextlib import contextmanager
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import lexent
import small
from lexent.encoders import TinyEncoder
from lexent.evaluation.collections import Collection
from lexent.types import Document

GUIDE = Path(__file__).parent.parent / "CONTRIBUTING.md"
SOURCE = str(Path(lexent.__file__).parent)


class Step(NamedTuple):
    name: str
    """As `module.function` below `lexent`."""
    inside: str
    """The step that it runs inside; empty for the first."""


@cache
def chains() -> dict[str, list[Step]]:
    """The steps of each chain by its heading."""
    section = GUIDE.read_text(encoding="utf-8").split("\n## Call chains\n")[1].split("\n## ")[0]
    found = re.findall(r"### `([^`]+)`\n\n```\n(.*?)\n```", section, re.DOTALL)
    return {heading: list(steps_of(block)) for heading, block in found}


def steps_of(block: str) -> Iterator[Step]:
    trail: list[str] = []
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name = line.split()[0]
        assert depth <= len(trail), f"{name} is indented too far"
        trail[depth:] = [name]
        yield Step(name, trail[depth - 1] if depth else "")


def thing(name: str) -> Any:
    """What a step names; an error where there is no such thing."""
    parts = name.split(".")
    for stop in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(["lexent", *parts[:stop]]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[stop:], module)
    raise AssertionError(f"there is no {name}")


@contextmanager
def calls(names: Names[str]) -> Iterator[dict[str, set[str]]]:
    """Which of these functions are called, in the order of their first calls, and what they run inside.

    In this thread and in all that start meanwhile.
    """
    found: dict[str, set[str]] = {}

    def seen(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := name_of(frame)) in names:
            outer = found.setdefault(name, set())
            above = frame.f_back
            while above is not None:
                outer.add(name_of(above))
                above = above.f_back

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def name_of(frame: FrameType) -> str:
    code = frame.f_code
    if not code.co_filename.startswith(SOURCE):
        return ""
    module = code.co_filename[len(SOURCE) + 1 :].removesuffix(".py").replace(os.sep, ".")
    return f"{module}.{code.co_qualname}"


def is_followed(heading: str, run: Callable[[], object]) -> None:
    # A compiled kernel is no Python function, so only that it exists is checked.
    steps = [step for step in chains()[heading] if not hasattr(thing(step.name), "py_func")]
    with calls({step.name for step in steps}) as called:
        run()
    assert [step.name for step in steps if step.name not in called] == []
    assert [step.name for step in steps] == list(called)
    assert [step for step in steps if step.inside and step.inside not in called[step.name]] == []


def test_every_step_exists() -> None:
    assert len(chains()) == 7
    for heading, steps in chains().items():
        assert len(steps) > 4, heading
        for step in steps:
            assert callable(thing(step.name)), step


def test_index_search_explain_and_add(tmp_path: Path) -> None:
    files = tmp_path / "documents.jsonl"
    lines = [{"id": one.id, "title": one.title, "text": one.text} for one in small.documents()]
    files.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    out, lexicon = tmp_path / "a.lexent", small.lexicon()
    is_followed("lexent.index(files, out=...)", lambda: lexent.index(files, out=out, encoder="tiny", lexicon=lexicon))
    with lexent.open(out, encoder="tiny", lexicon=lexicon) as index:
        is_followed("index.search(query)", lambda: index.search("yeast dough", k=3))
        hit = index.search("yeast dough", k=3)[0]
        is_followed("hit.explain()", hit.explain)
        is_followed("index.add(documents)", lambda: index.add([Document("new", "yeast bread loaf")]))


def test_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ir_measures")
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path / "cache"))
    documents = [
        Document("d1", "cats purr and sleep"),
        Document("d2", "dogs bark at cats"),
        Document("d3", "fish swim"),
    ]
    pets = Collection("pets", documents, {"q": "purring cats"}, {"q": {"d1": 1}})
    is_followed(
        "lexent.evaluate(collection)",
        lambda: lexent.evaluate(
            pets, recipe="latent-terms", lexicon=small.lexicon(), encoder=TinyEncoder(), baselines=()
        ),
    )


def test_train(tmp_path: Path) -> None:
    from lexent.training.reconstruction.trainer import TrainConfig

    texts = [document.content for document in small.documents(120)]
    config = TrainConfig(d_sae=64, k=4, batch=64, k_aux=16)
    is_followed(
        "lexent.train(texts, out=...)",
        lambda: lexent.train(texts, out=tmp_path / "lexicon", encoder="tiny", passes=1, config=config),
    )


def test_search_over_http(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from serving import serving

    small.build(tmp_path / "a.lexent").close()
    steps = [step.name for step in chains()["POST /v1/indexes/{index}/search"]]
    with calls(steps) as called, serving([tmp_path / "a.lexent"]) as client:
        assert client.post("/v1/indexes/a/search", json={"query": "yeast dough", "k": 3}).status_code == 200
    assert [step for step in steps if step not in called] == []  # in several threads: the order is not checked
