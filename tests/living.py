"""What tests of a changing index share: its whole state to compare, a model of it, and child processes that are quick.

Run as a program it waits for tasks and forks a child for each, with all that is slow to load already there.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import small
from lexent import recipes
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.recipes import Recipe
from lexent.search.results import Hit
from lexent.types import Document

QUERIES = ["yeast dough", "night light", "king and queen of the board", "comet"]
WORDS = sorted({word for words in small.TOPICS.values() for word in words.split()})


def opened(path: Path, **settings: Any) -> Index:
    return Index.open(path, encoder=TinyEncoder(), lexicon=small.lexicon(), **settings)


def ids(index: Index) -> list[str]:
    """The ids of all documents, in the order of the index."""
    view = index.documents
    pairs = zip(view.runs, view.tombstones, strict=True)
    gone = [np.zeros(runs.starts[-1], bool) if one is None else one.mask for runs, one in pairs]
    return list(dict.fromkeys(view.ids(np.flatnonzero(~np.concatenate([np.zeros(0, bool), *gone])).tolist())))


def state(index: Index) -> dict[str, Any]:
    """All that can be seen of an index but how its documents are spread over segments."""
    there = ids(index)
    found = [*index.search_many(QUERIES, k=5), index.search(QUERIES[0], k=1000)]
    if there:
        found += index.search_many(QUERIES, k=3, filter={"n": {"gte": 10}})
        found += index.search_many(QUERIES, k=3, filter={"n": {"gte": 10}}, idf_of_subset=True)
    scorer = index.searcher.document_scorer
    return {
        "documents": [index.document(id) for id in there],
        # Without their names, which change only when the index is compacted; words without their numbers.
        "concepts": [
            in_order((concept.label if concept.word else concept.id, concept.weight) for concept in results.concepts)
            for results in found
        ],
        "hits": [
            [(hit.rank, hit.id, hit.score, hit.title, hit.text, hit.metadata, reasons(hit)) for hit in results]
            for results in found
        ],
        "counts": index.manifest.counts.model_dump() if not index._settings else None,
        "statistics": (len(index), scorer.n_documents, scorer.average_length, scorer.df[: scorer.concepts].tolist()),
        "words": words(index),
        "recipe": index.recipe,
    }


def reasons(hit: Hit) -> list[tuple[Any, ...]]:
    """What the score of a hit is the sum of, without the names of concepts and the numbers of words."""
    parts = hit.explain().contributions
    return in_order(
        (part.label if part.word else part.concept, part.query, part.document, part.value) for part in parts
    )


def in_order(parts: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Terms, strongest first: their order does not depend on the numbers of words."""
    return sorted(parts, key=lambda part: (-abs(part[-1]), isinstance(part[0], str), part[0]))


def words(index: Index) -> dict[str, int]:
    """The words that documents have, and how many have each."""
    scorer, vocabulary = index.searcher.document_scorer, index.documents.vocabulary
    counts = scorer.df[scorer.concepts :].tolist()
    return {vocabulary.label(number): count for number, count in enumerate(counts) if count}


def files(path: Path) -> set[str]:
    """What lies in the folder of an index, but its lock."""
    found = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}
    folders = {
        file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_dir() and not any(file.iterdir())
    }
    return found - {"write.lock"} | folders - {"segments"}


def named(index: Index) -> set[str]:
    """What should lie there."""
    return {"manifest.json", *index.manifest.files}


@dataclass
class Model:
    """What an index should hold: its documents in order and its recipe."""

    documents: dict[str, Document] = field(default_factory=dict)
    recipe: Recipe = field(default_factory=lambda: recipes.get("latent-terms"))

    @staticmethod
    def of(documents: list[Document]) -> Model:
        return Model({document.id: document for document in documents})

    def then(self, change: list[Any]) -> Model:
        """The model after a change: its name and its argument."""
        name, given = change
        documents, recipe = dict(self.documents), self.recipe
        if name in ("add", "upsert"):
            for document in map(as_document, given):
                documents.pop(document.id, None)
                documents[document.id] = document
        elif name == "delete":
            for id in given:
                del documents[id]
        elif name == "retune":
            recipe = recipe.changed(**given)
        return Model(documents, recipe)

    def fresh(self, folder: Path) -> dict[str, Any]:
        """The state of an index that is built anew."""
        if self.documents:
            with small.build(folder, list(self.documents.values()), recipe=self.recipe, overwrite=True) as index:
                return state(index)
        with small.build(folder, small.documents(1), recipe=self.recipe, overwrite=True) as index:
            index.delete(["d0"])
            found = state(index)
            assert found["documents"] == []
            assert not any(found["hits"])
            assert index.manifest.segments == ()
            return found


def as_document(values: dict[str, Any]) -> Document:
    return Document(**values)


def apply(index: Index, change: list[Any]) -> None:
    name, given = change
    if name in ("add", "upsert"):
        getattr(index, name)([as_document(values) for values in given])
    elif name == "delete":
        index.delete(given)
    elif name == "retune":
        index.retune(**given)
    else:
        index.compact()


def some_document(chance: random.Random, id: str) -> dict[str, Any]:
    size = chance.randrange(12) if chance.random() < 0.8 else 200 + chance.randrange(600)  # then of several passages
    text = " ".join(chance.choices([*WORDS, "king."], k=size))
    return {"id": id, "text": text, "title": chance.choice(["", "stars"]), "metadata": {"n": chance.randrange(30)}}


def some_change(chance: random.Random, model: Model, kinds: tuple[str, ...] = ()) -> list[Any]:
    """A change that is possible, drawn at random; the same for the same chance and model."""
    kind = chance.choice(kinds or ("add", "add", "upsert", "delete", "delete", "compact", "retune"))
    there = list(model.documents)
    absent = [id for id in (f"é{number}" for number in range(60)) if id not in model.documents]
    if kind == "add" and absent:
        return [
            "add",
            [some_document(chance, id) for id in chance.sample(absent, min(len(absent), 1 + chance.randrange(4)))],
        ]
    if kind == "upsert":
        wanted = chance.sample(there, min(len(there), chance.randrange(4))) + absent[:1]
        return ["upsert", [some_document(chance, id) for id in wanted]]
    if kind == "delete" and there:
        return ["delete", chance.sample(there, min(len(there), 1 + chance.randrange(8)))]
    if kind == "retune":
        settings: list[tuple[str, tuple[Any, ...]]]
        settings = [("k1", (0.5, 1.2, 3.0)), ("b", (0.1, 0.5, 0.9)), ("power", (0.5, 0.8, 1.0))]
        if model.recipe.match == "maxsim":
            settings = [("idf", ("none", "lucene")), ("function_words", (0.2, 1.0)), ("adaptive_k", (True, False))]
        name, values = chance.choice(settings)
        return ["retune", {name: chance.choice(values)}]
    return ["compact", None]


# --- child processes ---------------------------------------------------------------------------------------------


def change_forever(path: str, seed: int, known: dict[str, Any]) -> None:
    """Makes changes one after the other; says each before it begins and after it returned."""
    chance = random.Random(seed)
    model = Model(
        {id: as_document(values) for id, values in known["documents"].items()}, Recipe.from_dict(known["recipe"])
    )
    index = opened(Path(path))
    while True:
        change = some_change(chance, model)
        say("begin", change)
        apply(index, change)
        say("done", None)
        model = model.then(change)


def change(path: str, change: list[Any]) -> None:
    apply(opened(Path(path)), change)


def say(word: str, value: Any) -> None:
    os.write(1, json.dumps([word, value]).encode() + b"\n")


@dataclass
class Child:
    """A child process of the forking one."""

    server: Server
    pid: int
    log: Path

    def said(self) -> list[list[Any]]:
        """What it wrote, line by line; a line that was cut off is left out."""
        text = self.log.read_text() if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def until(self, word: str, *, seconds: float = 30) -> None:
        """Waits until it says a word."""
        end = time.monotonic() + seconds
        while not any(line[0] == word for line in self.said()):
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.002)

    def end(self) -> int:
        """Waits for its end; gives its exit status, or the signal that ended it as a negative number."""
        return int(self.server.ask(["wait", self.pid]))


class Server:
    """Forks children that run a function of a test module."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        command = [sys.executable, str(Path(__file__))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, request: list[Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, module: str, task: str, *given: Any) -> Child:
        """Runs `task` of a test module in a new child."""
        self._count += 1
        log = self._folder / f"child-{self._count}.log"
        return Child(self, int(self.ask(["start", str(log), module, task, *given])), log)


_shared: list[Server] = []


def shared_server(folder: Path) -> Server:
    """One for all test modules, as it takes seconds to start; the folder is where it writes what its children say."""
    if not _shared:
        _shared.append(Server(folder))
        atexit.register(_shared[0].close)
    return _shared[0]


def _serve() -> None:
    import tempfile

    import torch

    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    with tempfile.TemporaryDirectory() as folder:  # warm up
        chance = random.Random(0)
        with small.build(Path(folder) / "warm") as index:
            for kind in ("add", "delete", "upsert", "retune", "compact"):
                model = Model.of([index.document(id) for id in ids(index)])
                apply(index, some_change(chance, model, (kind,)))
                state(index)
            index.retune(power=1.5, document_cap=9)
            state(opened(Path(folder) / "warm", retune={"power": 0.3}))
    for line in sys.stdin:
        kind, *given = json.loads(line)
        if kind == "wait":
            print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(given[0], 0)[1])), flush=True)
            continue
        log, module, task, *arguments = given
        child = os.fork()
        if not child:
            _run(log, module, task, arguments)
        print(json.dumps(child), flush=True)


def _run(log: str, module: str, task: str, arguments: list[Any]) -> None:
    code = 1
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        getattr(importlib.import_module(module), task)(*arguments)
        code = 0
    except BaseException as error:
        say("error", [type(error).__name__, str(error), traceback.format_exc()])
    finally:
        os._exit(code)


def lines(child: Child, word: str) -> Iterator[Any]:
    return (value for said, value in child.said() if said == word)


if __name__ == "__main__":
    sys.modules["living"] = sys.modules["__main__"]
    _serve()
