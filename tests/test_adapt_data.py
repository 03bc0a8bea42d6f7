"""Adapters on real text: a slice of SciFact's train split, the embedded encoder, the shipped lexicons."""

from __future__ import annotations

from pathlib import Path

import pytest

from lexent.adapters import TrainSettings
from lexent.encoders import Encoder
from lexent.evaluation.adapting import Training, train_adapter
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.comparison import compare
from lexent.studies.adapter_explanations import Explainer

pytestmark = pytest.mark.data
pytest.importorskip("ir_measures")


@pytest.fixture(scope="module")
def part(data_dir: Path) -> Collection:
    """60 queries with their documents, and 90 documents besides."""
    if not (data_dir / "scifact").is_dir():
        pytest.skip(f"no SciFact in {data_dir}")
    whole = load(data_dir / "scifact", split="train")
    queries = dict(list(whole.queries.items())[:60])
    qrels = {query: whole.qrels[query] for query in queries}
    wanted = {id for judged in qrels.values() for id in judged}
    others = [document for document in whole.documents if document.id not in wanted][:90]
    kept = [document for document in whole.documents if document.id in wanted]
    return Collection("slice", [*kept, *others], queries, qrels, "train")


@pytest.fixture(scope="module")
def training(part: Collection, shared_encoder: Encoder) -> Training:
    settings = TrainSettings(epochs=4, folds=3, lr=1e-3, n_negatives=7, candidates=50)
    return train_adapter(part, encoder=shared_encoder, settings=settings)


def test_training_reports_base_and_adapted(part: Collection, training: Training, shared_encoder: Encoder) -> None:
    assert training.held_out == len(part.queries)
    assert 0 < training.base["nDCG@10"] <= 1
    found = compare(part, training.adapter, encoder=shared_encoder)
    if training.adapter.info.kept_base:
        assert found.values["imrnn"] == pytest.approx(found.values["base"], abs=1e-6)
    else:
        assert found.values["imrnn"]["nDCG@10"] > found.values["base"]["nDCG@10"]


def test_names_are_concepts_words_and_whole_tokens(
    part: Collection, training: Training, shared_encoder: Encoder
) -> None:
    explainer = Explainer(part, training.adapter, encoder=shared_encoder)
    table = explainer.table("tokens")
    assert len(table) > 10_000
    assert not any(name.startswith(("##", "[")) or name in ("the", "and") for name in table.names)
    concepts = explainer.table("concepts")
    moved = 0.4 * concepts.rows[100] - 0.2 * concepts.rows[2000]
    named = {each.name: each.value for each in concepts.read(moved, n=2).named}
    assert named[concepts.names[100]] == pytest.approx(0.4, abs=0.02)
    assert named[concepts.names[2000]] == pytest.approx(-0.2, abs=0.02)
    found = explainer.explain(next(iter(part.queries.values())), by=["concepts", "tokens"], k=2)
    assert set(found.readings) == {"concepts", "tokens"}
    assert len(found.change.documents) == 2
