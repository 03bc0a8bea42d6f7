"""Damaged files: what comes of using an index whose bytes were flipped. In children, as a crash ends the process."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import living
from lexent.errors import ArtifactError
from lexent.indexing import manifest
from lexent.types import Document
from living import opened

HEADER = 128
"""Bytes of a .npy file before its numbers."""


def outcome(act: Callable[[], object]) -> str:
    """answer, error where the damage was said to be one, or whatever else went wrong."""
    try:
        act()
    except ArtifactError:
        return "error"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "answer"


def change(path: Path) -> None:
    """Changes an index in each way."""
    with opened(path) as index:
        index.upsert([Document("d3", "night", metadata={"n": 3}), Document("new", "king")])
        index.delete(["d5", "d22"], missing=True)
        index.compact()
        index.search("dough king", k=5)


def damage(path: str, chosen: Sequence[str], use: Callable[[Path], object], *, seed: int, rounds: int) -> None:
    """Flips bytes behind the headers of the chosen files, uses and changes the index, and says what came of it."""
    from test_faults import flipped

    chance, folder = random.Random(seed), Path(path)
    manifest.CHECKED_BYTES = 0  # as if the checksums had been changed as well
    os.fsync = lambda handle: None
    for name in chosen:
        good = (folder / name).read_bytes()
        if len(good) <= HEADER:
            continue
        for turn in range(rounds):
            data = good[:HEADER] + flipped(good[HEADER:], chance, 1 + 3 * (turn % 2))
            if turn % 3 == 2:
                data = good[:HEADER] + chance.randbytes(len(good) - HEADER)
            (folder / name).write_bytes(data)
            living.say("did", [name, outcome(lambda: use(folder))])
            if turn % 2:
                copy = Path(f"{path}.copy")
                shutil.copytree(folder, copy)
                living.say("did", [name, outcome(lambda copy=copy: change(copy))])  # type: ignore[misc]
                shutil.rmtree(copy)
        (folder / name).write_bytes(good)
    living.say("did", ["", outcome(lambda: use(folder))])


def check(child: living.Child) -> list[list[str]]:
    """What a child of `damage` said: answers and errors, nothing else, and an answer once all was whole again."""
    assert child.end() == 0, child.log.read_text()[-3000:]
    outcomes = list(living.lines(child, "did"))
    odd = [one for one in outcomes if one[1] not in ("answer", "error")]
    assert not odd, "\n".join(sorted({str(one) for one in odd}))
    assert outcomes[-1] == ["", "answer"]
    assert {found for _, found in outcomes} == {"answer", "error"}
    return outcomes


def asked_all(index: Any) -> Any:
    """Searches an index with filters, explains every hit and scores all documents; gives the last query."""
    for where in (None, {"n": {"gte": 3, "lt": 50}}, {"n": 5}):
        for results in index.search_many(["yeast dough light", "king"], k=30, filter=where):
            for hit in results:
                hit.explain()
    query = index.query("yeast dough light")
    index.searcher.document_scorer.scores(query.ids, -query.weights)
    return query
