"""CL-SR: a coder that lets k latents through on average, its threshold and scale, and scores by the formula."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lexent import recipes
from lexent.encoders import ArrayEncoder
from lexent.errors import ArtifactError, InputError
from lexent.indexing.postings import quantisation
from lexent.lexicon import load, shipped
from lexent.recipes import Recipe
from lexent.sae.autoencoder import CONFIG, SparseAutoencoder
from lexent.sae.calibration import calibrated, rungs
from lexent.sae.config import SAEConfig
from lexent.sae.top_latents import top_of_batch
from lexent.search.document_scorer import DocumentScorer
from lexent.training.reconstruction.model import BatchTopKModel, TopKModel
from lexent.training.reconstruction.train import split
from lexent.training.reconstruction.trainer import TrainConfig, Trainer
from lexent.training.stream import StateStream
from lexent.types import SparseVectors, States
from lexent.weighting import idf, pool, transform

NONE = torch.empty(0, dtype=torch.long)
SMALL = TrainConfig.for_level("pooled", d_sae=64, k=4, batch=50, lr=5e-3, k_aux=8, dead_after=1000)


def states_of(values: np.ndarray) -> States:
    return States(torch.from_numpy(np.asarray(values, np.float32)), np.arange(len(values) + 1))


def topical(n: int = 1500, *, d: int = 16, size: float = 1.0, seed: int = 0) -> np.ndarray:
    """Pooled states: sums of a few of 40 directions, some states of more than others."""
    rng = np.random.default_rng(seed)
    rows = np.random.default_rng(99).normal(size=(40, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    codes = np.zeros((n, 40))
    for row in codes:
        row[rng.choice(40, rng.integers(2, 8), replace=False)] = 1.0
    return (size * (codes @ rows + 0.05 * rng.normal(size=(n, d)))).astype(np.float32)


def pooled_stream(values: np.ndarray, *, passes: int = 6, **settings: Any) -> StateStream:
    parts = {f"text {place}": row for place, row in enumerate(values)}
    return StateStream(list(parts), ArrayEncoder(parts), level="pooled", passes=passes, block_texts=200, **settings)


def run(
    config: TrainConfig = SMALL, *, size: float = 1.0, folder: Path | None = None, bits: Any = 32, passes: int = 6
) -> tuple[SparseAutoencoder, Trainer]:
    """Train on 1,200 states and set the thresholds on 300 others."""
    values = topical(size=size)
    stream = pooled_stream(values, passes=passes)
    held = stream.texts[1200:]
    stream = replace(stream, texts=stream.texts[:1200])
    trainer = Trainer(stream, config, folder=folder, held_out=held)
    return trainer.run(bits=bits, checkpoint_every=0.0), trainer


@pytest.fixture(scope="module")
def trained() -> SparseAutoencoder:
    return run()[0]


# --- the model -----------------------------------------------------------------------------------------------------


def test_the_largest_of_a_batch() -> None:
    pre = torch.randn(9, 30, generator=torch.Generator().manual_seed(0))
    found = top_of_batch(pre, 25)
    assert len(set(found.tolist())) == 25
    assert set(found.tolist()) == set(pre.flatten().argsort(descending=True)[:25].tolist())
    assert len(top_of_batch(pre, 1000)) == 270


@pytest.mark.parametrize("tied", [True, False])
def test_the_loss_keeps_n_times_k_of_the_batch(tied: bool) -> None:
    model = BatchTopKModel(12, 40, tied=tied, seed=3)
    x = torch.randn(7, 12, generator=torch.Generator().manual_seed(1)) * torch.linspace(0.1, 3, 7)[:, None]
    found = model.loss(x, k=5, dead=NONE, k_aux=8, aux_weight=1.0, autocast=False)
    pre = (x - model.b_dec) @ model.encoder_rows().T + model.b_enc
    bar = pre.flatten().sort(descending=True).values[34]
    z = torch.where(pre >= bar, pre, 0.0).clamp_min(0)
    by_hand = (x - (z @ model.W_dec + model.b_dec)).square().sum() / (x - x.mean(dim=0)).square().sum()
    torch.testing.assert_close(found.total, by_hand, rtol=1e-5, atol=1e-6)
    assert float(found.active) == pytest.approx(5.0)
    per_row = (z > 0).sum(dim=1)
    assert per_row.max() > 5 > per_row[0]  # loud states take from quiet ones: k is a mean
    found.total.backward()
    mine = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}  # type: ignore[union-attr]
    model.zero_grad()
    by_hand.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(mine[name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_auxk_of_a_batch_moves_the_dead_alone_and_has_no_bias() -> None:
    model = BatchTopKModel(12, 40, tied=False, seed=3)
    x = torch.randn(30, 12, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        model.b_dec.copy_(torch.linspace(-1, 1, 12))
    dead = torch.tensor([2, 7, 30])
    found = model.loss(x, k=3, dead=dead, k_aux=3, aux_weight=1.0, autocast=False)
    centred = x - model.b_dec
    pre = centred @ model.encoder_rows().T
    bar = pre.flatten().sort(descending=True).values[89]
    residual = centred - torch.where(pre >= bar, pre, 0.0).clamp_min(0) @ model.W_dec
    guess = pre[:, dead].clamp_min(0) @ model.W_dec[dead]
    by_hand = (residual - guess).square().sum() / (x - x.mean(dim=0)).square().sum()
    torch.testing.assert_close(found.auxiliary, by_hand.detach(), rtol=1e-5, atol=1e-6)
    gradients = []
    for aux_weight in (0.0, 1.0):
        model.zero_grad()
        model.loss(x, k=3, dead=dead, k_aux=3, aux_weight=aux_weight, autocast=False).total.backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})  # type: ignore[union-attr]
    living = torch.ones(40, dtype=torch.bool)
    living[dead] = False
    torch.testing.assert_close(gradients[0]["b_dec"], gradients[1]["b_dec"], rtol=1e-5, atol=1e-7)
    for name in ("W_dec", "W_enc"):
        torch.testing.assert_close(gradients[0][name][living], gradients[1][name][living], rtol=1e-5, atol=1e-7)
        assert not torch.allclose(gradients[0][name][dead], gradients[1][name][dead])


def test_unit_rows_are_latents_after_a_step_and_selected_is_not_firing() -> None:
    _, trainer = run(replace(SMALL, d_sae=128), passes=1)
    rows = trainer.model.W_dec.detach()
    assert rows.shape == (128, 16)
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(128), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(rows.norm(dim=0), torch.ones(16), atol=0.1)
    with torch.no_grad():
        trainer.model.b_enc.fill_(-100.0)
        trainer.model.b_enc[:2] = 100.0
    before = trainer.last_fired.clone()
    trainer._step(torch.randn(50, 16), 0.5)
    assert torch.nonzero(trainer.last_fired != before).flatten().tolist() == [0, 1]


def test_k_moves_over_the_first_half() -> None:
    config = replace(SMALL, k=32, k_from=8)
    assert [config.k_at(share) for share in (0.0, 0.25, 0.5, 1.0)] == [8, 20, 32, 32]
    assert SMALL.k_at(0.1) == 4
    with pytest.raises(InputError, match="k_from is 0; allowed"):
        replace(SMALL, k_from=0)
    with pytest.raises(InputError, match='architecture is "gated"; allowed: topk, batchtopk'):
        replace(SMALL, architecture="gated")  # type: ignore[arg-type]


def test_what_suits_a_level() -> None:
    assert TrainConfig.for_level("tokens") == TrainConfig()
    assert TrainConfig.for_level("pooled").architecture == "batchtopk"
    assert TrainConfig.for_level("pooled", architecture="topk", k=3).architecture == "topk"


# --- the threshold -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 8])
def test_the_mean_number_of_active_latents_is_k_on_texts_not_seen(bits: int) -> None:
    sae, _ = run(bits=bits)
    assert sae.config.architecture == "jumprelu"
    assert sae.config.bits == bits
    fresh = topical(2000, seed=5)
    for k in (1, 2, 3, 4, 5, 7, 8):
        active = (sae.encode(states_of(fresh), k=k).values > 0).sum(axis=1)
        assert active.mean() == pytest.approx(k, rel=0.05 if k in (4, 8) else 0.12)
    assert active.std() > 0.5  # as many as a state needs, not k for each
    assert sae.encode(states_of(fresh)).values.shape[1] == (sae.encode(states_of(fresh)).values > 0).sum(axis=1).max()


def test_the_trained_k_has_its_own_threshold(trained: SparseAutoencoder) -> None:
    config = trained.config
    assert config.threshold_for(config.k) == config.threshold
    thresholds = [config.threshold_for(k) for k in range(1, 9)]
    assert (np.diff(thresholds) < 0).all()
    assert config.threshold_for(5) == pytest.approx(
        np.interp(np.log(5), np.log([4, 6]), [thresholds[3], thresholds[5]])
    )
    with pytest.raises(InputError, match="k is 9; this lexicon has thresholds for 1 to 8"):
        trained.encode(states_of(topical(3)), k=9)


def test_rungs() -> None:
    assert rungs(32, most=6144) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    assert rungs(5, most=8)[-1] == 8
    assert 128 in rungs(64, most=10**6)


def test_every_latent_above_the_threshold_and_no_other(trained: SparseAutoencoder) -> None:
    x = topical(40, seed=3)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    pre = (unit - trained.b_dec) @ trained.encoder_rows.T + trained.b_enc
    codes = trained.encode(states_of(x))
    dense = np.zeros_like(pre)
    for row in range(len(x)):
        active = codes.values[row] > 0
        assert (np.diff(codes.values[row]) <= 0).all()
        dense[row, codes.ids[row][active]] = codes.values[row][active]
    wanted = np.where(pre > trained.config.threshold, pre, 0) * trained.config.activation_scale
    np.testing.assert_allclose(dense, wanted, atol=1e-4)
    rebuilt = wanted / trained.config.activation_scale @ trained.decoder_rows + trained.b_dec
    np.testing.assert_allclose(trained.decode(codes), rebuilt, atol=1e-4)
    assert np.square(unit - rebuilt).sum() < 0.5 * np.square(unit - unit.mean(axis=0)).sum()


def test_states_with_none_and_no_states(trained: SparseAutoencoder) -> None:
    high = trained.configured(threshold=50.0)
    assert (high.encode(states_of(topical(5))).values == 0).all()
    assert high.encode(states_of(topical(5))).ids.shape == (5, 1)
    assert len(trained.encode(states_of(np.empty((0, 16)))).ids) == 0
    below = trained.configured(threshold=-1.0)  # an activation is never negative
    assert (below.encode(states_of(topical(5))).values >= 0).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_codes_are_the_same_on_a_gpu(trained: SparseAutoencoder) -> None:
    x = topical(200, seed=3)
    one = trained.encode(states_of(x))
    other = trained.encode(States(torch.from_numpy(x).cuda(), np.arange(201)))
    np.testing.assert_allclose(one.values, other.values, atol=1e-4)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("bits", [8, 32])
def test_the_threshold_survives_the_disk(tmp_path: Path, tied: bool, bits: int) -> None:
    sae, _ = run(replace(SMALL, tied=tied), bits=bits, passes=1)
    sae.save(tmp_path)
    back = SparseAutoencoder.load(tmp_path)
    assert back.config == sae.config
    assert back.hash() == sae.hash()
    x = states_of(topical(50, seed=7))
    for k in (None, 3):
        np.testing.assert_array_equal(back.encode(x, k=k).values, sae.encode(x, k=k).values)
    np.testing.assert_array_equal(back.decode(back.encode(x)), sae.decode(sae.encode(x)))
    assert sae.configured(threshold=sae.config.threshold * 1.01).hash() != sae.hash()
    values = json.loads((tmp_path / CONFIG).read_text())
    assert values["architecture"] == "jumprelu"
    for name in ("threshold", "ladder"):
        (tmp_path / CONFIG).write_text(json.dumps({key: value for key, value in values.items() if key != name}))
        with pytest.raises(ArtifactError, match=f"needs its {name}"):
            SparseAutoencoder.load(tmp_path)
    for wrong in ("high", None, float("nan")):
        (tmp_path / CONFIG).write_text(json.dumps({**values, "threshold": wrong}))
        with pytest.raises(ArtifactError, match=r"cfg\.json"):
            SparseAutoencoder.load(tmp_path)


def test_eight_bits_for_both_matrices(tmp_path: Path) -> None:
    whole, _ = run(passes=2)
    small = whole.quantised()
    assert {name: tensor.dtype for name, tensor in small.tensors().items()}["W_dec"] == np.int8
    assert (small.decoder_rows * whole.decoder_rows).sum(axis=1).min() > 0.999
    np.testing.assert_allclose(np.linalg.norm(small.decoder_rows, axis=1), 1, rtol=1e-5)
    part = small.kept(np.array([5, 2]))
    np.testing.assert_allclose(part.decoder_rows, small.decoder_rows[[5, 2]], rtol=1e-6)


def test_a_partial_batch_is_trained_on_with_the_next() -> None:
    _, trainer = run(replace(SMALL, batch=70), passes=2)
    assert trainer.states + len(trainer.rest) == 2400
    assert 0 < len(trainer.rest) < 70


def test_held_out_texts_are_not_trained_on() -> None:
    texts = [f"text {number % 3000}" for number in range(6000)]
    learned, back = split(texts)
    assert len(back) == 512  # 2 % would be 60
    assert not set(learned) & set(back)
    assert set(learned) | set(back) == set(texts)
    assert len(learned) == 2 * (3000 - 512)  # both copies of a text are held back
    assert len(split([f"text {number}" for number in range(100_000)])[1]) == 2000
    assert len(split([f"text {number}" for number in range(50)])[1]) == 10
    assert split(texts) == (learned, back)
    with pytest.raises(InputError, match="4 different texts; allowed: 5 or more"):
        split(["a", "b", "c", "d"])
    with pytest.raises(InputError, match="held-out texts, and there are none"):
        Trainer(pooled_stream(topical(100)), SMALL)
    with pytest.raises(InputError, match="no held-out states"):
        calibrated(run(passes=1)[0], torch.empty(0, 16))


# --- the scale -----------------------------------------------------------------------------------------------------


def test_the_mean_activation_is_one(trained: SparseAutoencoder) -> None:
    values = trained.encode(states_of(topical()[1200:])).values
    assert values[values > 0].mean() == pytest.approx(1.0, rel=1e-3)
    fresh = trained.encode(states_of(topical(2000, seed=5))).values
    assert fresh[fresh > 0].mean() == pytest.approx(1.0, rel=0.05)


def ranking(sae: SparseAutoencoder, *, size: float = 1.0) -> np.ndarray:
    recipe = recipes.get("clsr-efficient")

    def vectors(n: int, seed: int) -> SparseVectors:
        return pool(sae.encode(states_of(topical(n, size=size, seed=seed))), size=sae.config.d_sae, how="sum")

    found = DocumentScorer.from_vectors(vectors(300, 1), recipe).top(vectors(20, 2), 10)
    return found.positions


@pytest.mark.parametrize("unit", [True, False])
def test_lexicons_of_states_of_another_scale_give_the_same_codes(unit: bool) -> None:
    config = replace(SMALL, unit_states=unit)
    one, other = run(config, passes=2)[0], run(config, size=5.0, passes=2)[0]
    x = topical(100, seed=4)
    mine, theirs = one.encode(states_of(x)), other.encode(states_of(x * 5))
    assert mine.values.shape == theirs.values.shape
    np.testing.assert_allclose(mine.values, theirs.values, atol=5e-3)
    assert (ranking(one) == ranking(other, size=5.0)).mean() > 0.98


def test_louder_states_rank_the_same(trained: SparseAutoencoder) -> None:
    np.testing.assert_array_equal(ranking(trained), ranking(trained, size=5.0))


# --- going on ------------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


def test_a_stopped_run_goes_on_exactly(tmp_path: Path) -> None:
    config = replace(SMALL, d_sae=400, k=1, k_from=3, dead_after=300)
    whole, straight = run(config, folder=tmp_path / "straight")
    assert len(straight.dead) > 0
    values = topical()
    stream = pooled_stream(values)
    held, stream = stream.texts[1200:], replace(stream, texts=stream.texts[:1200])
    first = Trainer(stream, config, folder=tmp_path / "stopped", held_out=held)
    step = first._step

    def stopping(batch: torch.Tensor, share: float) -> Any:
        if first.step == 70:
            raise Stop
        return step(batch, share)

    first._step = stopping  # type: ignore[method-assign]
    with pytest.raises(Stop):
        first.run(checkpoint_every=0.0)
    second = Trainer(stream, config, folder=tmp_path / "stopped", held_out=held)
    assert 0 < second.step < 70
    assert second.run().hash() == whole.hash()
    assert torch.equal(second.last_fired, straight.last_fired)
    assert torch.equal(second.dead, straight.dead)


# --- scores --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [1.75, 3.0, 4.0])
def test_b_above_one_gives_clamped_weights(b: float) -> None:
    """Short documents' divisors would be negative: they are held at the least divisor of the index's scale."""
    recipe = recipes.get("clsr").changed(k1=0.5, b=b)
    lengths = np.array([0.01, 1, 5, 20, 60, 100, 400])
    average = 60.0
    curve, shifts = (
        quantisation.impact_curve(recipe),
        quantisation.shifts(quantisation.encode_lengths(lengths), average, recipe),
    )
    divisor = 1 - b + b * lengths / average
    assert (divisor[:3] < 0).all()
    for value in (0.2, 1.0, 3.0):
        code = int(quantisation.encode(np.array([value], np.float32))[0])
        weights = curve[2 * code + shifts.astype(np.int64)].astype(np.float64)
        assert np.isfinite(weights).all()
        assert (weights > 0).all()
        clamped = np.maximum(divisor, quantisation.MIN_DIVISOR)
        exact = quantisation.CODE_VALUES[code] * 1.5 / (quantisation.CODE_VALUES[code] + 0.5 * clamped)
        np.testing.assert_allclose(weights, exact, rtol=0.02)
        assert (weights <= 1.5).all()


@pytest.mark.parametrize("mode", ["clsr", "lucene", "root", "okapi-floor0", "none"])
def test_idf_is_never_negative_and_next_to_nothing_for_latents_of_all_documents(mode: Any) -> None:
    df = np.array([0, 1, 10, 500, 999, 1000])
    found = idf(df, 1000, mode)
    assert (found >= 0).all()
    assert (np.diff(found) <= 0).all()
    if mode != "none":
        assert found[-1] ** (2 if mode == "root" else 1) < 0.001
    if mode == "clsr":
        np.testing.assert_allclose(found[:-2], np.log(1000 / (1 + df[:-2])))


def test_scores_are_the_formula() -> None:
    """Of the strongest latents of each document, with values as an index keeps them."""
    rng = np.random.default_rng(0)
    recipe = Recipe("x", level="pooled", k=4, power=1.0, query_power=None, document_cap=3).changed(
        k1=0.6, b=0.9, k2=2.5, idf="clsr"
    )
    values = np.array(
        [rng.permutation(quantisation.CODE_VALUES[90:150])[:30] for _ in range(60)]
    )  # no two alike in a document
    dense = np.where(rng.random((60, 30)) < 0.2, values, 0)
    queries = np.where(rng.random((5, 30)) < 0.3, rng.uniform(0.2, 3, (5, 30)), 0)

    def vectors(matrix: np.ndarray) -> SparseVectors:
        row, column = np.nonzero(matrix)
        ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(matrix)))])
        return SparseVectors(column.astype(np.int32), matrix[row, column].astype(np.float32), ends, 30)

    found = DocumentScorer.from_vectors(vectors(dense), recipe).top(transform(vectors(queries), power=1.0), 60)
    kept = np.where(dense >= -np.sort(-dense, axis=1)[:, 2:3], dense, 0)
    length = kept.sum(axis=1)
    divisor = 1 - 0.9 + 0.9 * length / length.mean()
    rarity = np.maximum(np.log(60 / (1 + (kept > 0).sum(axis=0))), 0)
    fd = kept * 1.6 / (kept + 0.6 * divisor[:, None])
    wanted = (queries * 3.5 / (queries + 2.5) * rarity) @ fd.T
    for row in range(5):
        places, scores = found.positions[row], found.scores[row]
        good = places >= 0
        np.testing.assert_allclose(scores[good], wanted[row][places[good]], rtol=0.02, atol=0.01)


# --- what is shipped -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("recipe", "k"), [("clsr", 128), ("clsr-efficient", 32)])
def test_recipes_find_their_lexicon(recipe: str, k: int) -> None:
    lexicon = load(None, recipe=recipes.get(recipe))
    assert lexicon.info.level == "pooled"
    assert lexicon.sae.config.k == k == recipes.get(recipe).k
    assert lexicon.sae.config.architecture == "jumprelu"
    named = [concept for concept in lexicon.concepts if not concept.label.startswith("concept ")]
    assert len(named) > 0.98 * lexicon.size
    assert len({concept.label for concept in lexicon.concepts}) == lexicon.size
    without = [concept for concept in lexicon.concepts if not concept.examples]  # of texts that may not be quoted
    assert len(without) <= 0.015 * lexicon.size


def test_the_shipped_pooled_lexicons_are_small() -> None:
    folders = [folder for name, folder in shipped().items() if "pooled" in name]
    assert len(folders) == 2
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) < 12e6


def test_the_shipped_codes_have_k_latents_on_average(shared_encoder: Any, data_dir: Path) -> None:
    from lexent.evaluation import collections

    texts = collections.load(data_dir / "scifact").texts[:40]
    batches = [states for _, states in shared_encoder.batches(texts, kind="document", level="pooled")]
    for recipe in ("clsr", "clsr-efficient"):
        lexicon = load(None, recipe=recipes.get(recipe))
        k = lexicon.sae.config.k
        active = np.concatenate([(lexicon.codes(states, k=k).values > 0).sum(axis=1) for states in batches])
        assert 0.8 * k < active.mean() < 1.4 * k
        values = np.concatenate([codes.values[codes.values > 0] for codes in (lexicon.codes(s, k=k) for s in batches)])
        assert 0.7 < values.mean() < 1.3


def test_topk_stays_as_it_was() -> None:
    config = SAEConfig(4, 6, 2)
    assert config.architecture == "topk"
    model = TopKModel(4, 6, tied=True, seed=0)
    found = model.loss(torch.randn(5, 4), k=2, dead=NONE, k_aux=2, aux_weight=0.0, autocast=False)
    assert found.ids.shape == (5, 2)
