"""The soak sees what is lost, half there and touched, and adds up what it saw."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/ is no part of the package

from benchmarks import reliability, soak
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.types import Document


@pytest.fixture
def run(tmp_path: Path) -> soak.Soak:
    """A soak whose index has a document of a writer."""
    made = soak.Soak(tmp_path, 60)
    documents = [Document("a-1", "night"), Document("steady0", "king")]
    Index.build(documents, out=made.path, encoder=TinyEncoder(), lexicon=made.lexicon).close()
    return made


def owner(**documents: str) -> soak.Owner:
    there = {name.replace("_", "-"): text for name, text in documents.items()}
    return soak.Owner("a", 3, random.Random(0), there)


def test_what_is_as_acknowledged_is_no_fault(run: soak.Soak) -> None:
    run.settle(owner(a_1="night"), {}, "", True)
    run.settle(owner(), {"a-1": "night"}, "", True)
    run.settle(owner(a_1="night"), {"a-1": "day"}, "", False)
    run.settle(owner(), {"a-1": "night"}, "", None)
    run.settle(owner(a_1="night"), {"a-1": None, "a-2": "day"}, "", None)
    assert not run.faults
    assert (run.counts["killed changes that were there"], run.counts["killed changes that were not"]) == (1, 1)


@pytest.mark.parametrize(
    ("before", "change", "label", "done"),
    [
        (owner(a_1="night", a_2="lost"), {}, "", True),
        (owner(), {}, "", True),  # what was deleted is there again
        (owner(a_1="night"), {"a-1": "day"}, "", True),
        (owner(), {"a-1": "night"}, "", False),  # what was refused is there
        (owner(), {"a-1": "night", "a-2": "night"}, "", None),  # half of what was killed
        (owner(a_1="night"), {}, "a name", True),
    ],
)
def test_what_is_not_as_acknowledged_is_lost(
    run: soak.Soak, before: soak.Owner, change: dict[str, str | None], label: str, done: bool | None
) -> None:
    run.settle(before, change, label, done)
    assert run.counts["lost"] == 1


def test_a_file_beside_the_index_that_changes_is_seen(run: soak.Soak) -> None:
    (run.root / "beside").write_text("one")
    before = soak.others(run.root)
    with Index.open(run.path, encoder=TinyEncoder(), lexicon=run.lexicon) as index:
        index.delete(["a-1"])
    assert soak.others(run.root) == before
    (run.root / "beside").write_text("two")
    assert soak.others(run.root) != before


def test_memory_is_compared_after_the_warm_up(run: soak.Soak) -> None:
    found = soak.reported(run, [50.0] * 20 + [100.0] * 70 + [104.0] * 10)
    assert found["growth"] == pytest.approx(0.04)
    assert "104.0 MB (+4.0%)" in soak.shown({**found, "command": "", "date": "", "machine": ""})


def test_the_page_has_what_was_recorded() -> None:
    docs = Path(__file__).parents[1] / "docs"
    page = (docs / "reliability.md").read_text()
    assert f"<!-- counts -->\n{reliability.shown(json.loads((docs / reliability.RECORD).read_text()))}\n" in page
    assert f"<!-- soak -->\n{soak.shown(json.loads((docs / soak.RECORD).read_text()))}\n" in page


def test_the_counts_name_tests_that_there_are() -> None:
    for check in reliability.CHECKS.values():
        text = (Path(__file__).parent / check.file).read_text()
        assert check.words in text
        assert f'record_property(\n        "{check.counted}"' in text or f'record_property("{check.counted}"' in text
