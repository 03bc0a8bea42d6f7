"""Validation of adapters: which passes and learning rates may be chosen, and what the p-value is computed on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from lexent.adapters import AdapterConfig, TrainSettings
from lexent.adapters.examples import Examples
from lexent.adapters.network import Network
from lexent.adapters.schedule import Batch, Learner, Run, follow
from lexent.errors import InputError, TrainingWarning


class Counter(Learner):
    """One weight that grows by the learning rate with each step."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def loss(self, batch: Batch) -> torch.Tensor:
        return -self.weight


class Boost(Counter):
    """Adds to the score of documents whose last number is 1: 1,000 times the weight."""

    def scores(self, queries: torch.Tensor, pool: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
        products = torch.einsum("nd,npd->np", queries, pool) if pool.dim() == 3 else queries @ pool.T
        return products + 1000 * self.weight * pool[..., -1]


class Noise(Counter):
    """Another random order after each pass."""

    def scores(self, queries: torch.Tensor, pool: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
        both = queries[:, None, :1] * 12.9898 + (pool if pool.dim() == 3 else pool[None])[..., :1] * 78.233
        return torch.frac(torch.sin(both[..., 0] + 1e3 * self.weight) * 43758.5453).abs()


def remembered() -> Examples:
    """30 queries ask for two documents that many ask for, 10 for one of their own. A small boost of the two ranks
    10 queries better and harms none. A large one ranks all 30 better, and the 10 others worse."""
    easy, hard, own = 10, 20, 10
    total = easy + hard + own
    documents = np.zeros((2 + total, total + 1), np.float32)  # [document, query]: the base's score, and the flag
    documents[:2, -1] = 1
    grades, candidates = [], []
    for query in range(total):
        popular, other = query % 2, 2 + query
        asks_popular = query < easy + hard
        documents[other, query] = 1
        documents[popular, query] = 0.99 if query < easy else 0.3 if asks_popular else 0.5
        grades.append({popular if asks_popular else other: 1})
        candidates.append([other, popular])
    places = np.array(candidates, np.int64)
    queries = np.eye(total, total + 1, dtype=np.float32)
    return Examples(queries, documents, tuple(grades), places, places[:, 1:])


def test_the_learning_rate_is_chosen_by_passes_that_harm_no_new_document() -> None:
    from lexent.evaluation.adapting import chosen

    settings = TrainSettings(epochs=3, patience=3, folds=5, batch=64)
    found = chosen("boost", Boost, remembered(), settings)
    assert found.epochs >= 1
    assert found.learner.weight.item() == pytest.approx(1e-4 * found.epochs, rel=1e-3)
    assert found.new_documents["adapted"] == found.new_documents["base"] == 1


def coins(seed: int) -> Examples:
    """60 queries with two candidates each, the relevant one first or second by chance."""
    random = np.random.default_rng(seed)
    documents = random.random((120, 2)).astype(np.float32)
    candidates = np.arange(120).reshape(60, 2)
    grades = tuple({int(row[random.integers(2)]): 1} for row in candidates)
    return Examples(random.random((60, 2)).astype(np.float32), documents, grades, candidates, candidates)


def test_p_is_computed_on_queries_that_chose_nothing() -> None:
    """Random orders gain nothing, so 1 in 20 adapters of noise may be kept. The best of 20 passes gains by chance."""
    settings = TrainSettings(epochs=20, patience=20, folds=3, batch=64, lr=0.1)
    kept = [not follow(Noise, coins(seed), settings).kept_base for seed in range(30)]
    assert sum(kept) <= 4


def test_passes_are_chosen_without_the_tested_fold() -> None:
    found = follow(Boost, remembered(), TrainSettings(epochs=3, patience=3, folds=5, batch=64, lr=1e-4))
    assert len(found.nested) == 5
    assert all(1 <= passes <= 3 for passes in found.nested)
    assert found.held_out == 40
    assert found.adapted["RR@10"] == pytest.approx((10 + 20 * 0.5 + 10) / 40)
    with pytest.raises(InputError, match="folds is 2; allowed: 3 or more"):
        TrainSettings(folds=2)


def test_many_queries_are_held_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexent.adapters.validation.SINGLE_RUN_QUERIES", 40)
    found = follow(Boost, remembered(), TrainSettings(epochs=2, patience=2, folds=5, batch=64, lr=1e-4))
    assert len(found.nested) == 1
    assert found.held_out == 8  # the second fold of 8 chose the passes


def test_weight_decay_leaves_the_projector_alone() -> None:
    random = np.random.default_rng(0)
    rows = random.standard_normal((20, 6)).astype(np.float32)
    grades = [{row: 1} for row in range(10)]
    examples = Examples.of(rows[:10] + 0.1, rows, grades, candidates=5, n_negatives=3)
    settings = TrainSettings(lr=0.01, batch=16)
    form = AdapterConfig(6, 6, hidden=4)
    after = []
    for decay in (0.0, 10.0):
        chosen = replace(settings, weight_decay=decay)
        run = Run(lambda own=chosen: Network(form, own, np.eye(6, dtype=np.float32)), examples, chosen, np.arange(10))
        run.epoch()  # one step: the loss has the same gradient in both
        after.append(run.learner)
    still, decayed = after
    assert torch.equal(still.projector, decayed.projector)
    assert not torch.equal(still.projector, torch.eye(6))
    assert not torch.equal(still.query_side.first.weight, decayed.query_side.first.weight)


class Bursting(Boost):
    """As Boost, but its loss is no number once the weight is above a bound: large rates diverge."""

    bound = 0.05

    def loss(self, batch: Batch) -> torch.Tensor:
        return -self.weight if self.weight.item() < self.bound else self.weight * torch.nan


def test_a_rate_that_diverges_is_skipped_and_the_others_go_on() -> None:
    settings = TrainSettings(epochs=3, patience=3, folds=5, batch=64)
    alone = follow(Boost, remembered(), settings, rates=(1e-4,))
    with pytest.warns(TrainingWarning, match=r"the learning rate 0\.1 is skipped: .*the training diverged") as told:
        found = follow(Bursting, remembered(), settings, rates=(1e-4, 0.1))
    assert len(told) == 1
    assert (found.lr, found.epochs, found.curve) == (1e-4, alone.epochs, alone.curve)


def test_a_rate_whose_scores_are_no_numbers_is_skipped() -> None:
    class Overflowing(Boost):
        def scores(self, queries: torch.Tensor, pool: torch.Tensor, feedback: torch.Tensor) -> torch.Tensor:
            return super().scores(queries, pool, feedback) * (torch.nan if self.weight.item() > 0.05 else 1.0)

    settings = TrainSettings(epochs=1, patience=3, folds=5, batch=64)
    with pytest.warns(TrainingWarning, match=r"the learning rate 0\.1 is skipped: the scores are not finite"):
        assert follow(Overflowing, remembered(), settings, rates=(0.1, 1e-4)).lr == 1e-4


def test_training_fails_where_every_rate_diverges() -> None:
    settings = TrainSettings(epochs=3, patience=3, folds=5, batch=64)
    every = r"diverged at every learning rate \(0\.5, 0\.1\); give a lower one: --lr 0\.01"
    with pytest.warns(TrainingWarning), pytest.raises(InputError, match=every):
        follow(Bursting, remembered(), settings, rates=(0.5, 0.1))
    with pytest.raises(InputError, match=r"the training diverged; give a lower learning rate than 0\.1: --lr 0\.01"):
        follow(Bursting, remembered(), replace(settings, lr=0.1))
