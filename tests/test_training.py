"""Training: the loss and its parts against hand computations, dead latents, exact resume, what a run leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lexent.encoders import ArrayEncoder, TinyEncoder
from lexent.errors import ArtifactError, InputError, MismatchError
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.training.loop import CHECKPOINT
from lexent.training.reconstruction.model import TopKModel
from lexent.training.reconstruction.trainer import METRICS, Progress, TrainConfig, Trainer, schedule
from lexent.training.stream import StateStream
from lexent.types import States
from paired import disturbed

SMALL = TrainConfig(d_sae=96, k=4, batch=64, lr=3e-3, k_aux=16, dead_after=2000)
NONE = torch.empty(0, dtype=torch.long)


def texts(n: int = 240, *, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    words = np.array([f"word{number}" for number in range(60)])
    return [" ".join(rng.choice(words, rng.integers(5, 12))) for _ in range(n)]


def stream(n: int = 240, **settings: Any) -> StateStream:
    return StateStream(texts(n), TinyEncoder(), **{"passes": 2, "block_texts": 40, **settings})


def sparse_states(n: int = 6000, *, d: int = 16, directions: int = 32, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """States that are sums of three of the directions, and the directions."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(directions, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    codes = np.zeros((n, directions))
    for row in codes:
        row[rng.choice(directions, 3, replace=False)] = rng.uniform(0.5, 1.5, 3)
    return (codes @ rows).astype(np.float32), rows.astype(np.float32)


def synthetic(
    values: np.ndarray, *, passes: int, a_text: int = 100, block_texts: int = 10, seed: int = 0
) -> StateStream:
    parts = {f"text {place}": values[place * a_text : (place + 1) * a_text] for place in range(len(values) // a_text)}
    return StateStream(list(parts), ArrayEncoder(parts), passes=passes, block_texts=block_texts, seed=seed)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def same_model(one: SparseAutoencoder, other: SparseAutoencoder) -> bool:
    return one.hash() == other.hash()


# --- the loss ----------------------------------------------------------------------------------------------------


def make(*, tied: bool, d: int = 12, m: int = 40) -> tuple[TopKModel, torch.Tensor]:
    model = TopKModel(d, m, tied=tied, seed=3)
    return model, torch.randn(50, d, generator=disturbed(model))


@pytest.mark.parametrize("tied", [True, False])
def test_the_loss_is_the_unexplained_share_of_the_variance(tied: bool) -> None:
    model, x = make(tied=tied)
    found = model.loss(x, k=5, dead=NONE, k_aux=8, aux_weight=1.0, autocast=False)
    pre = (x - model.b_dec) @ model.encoder_rows().T + model.b_enc
    best = pre.topk(5, dim=1)
    z = torch.zeros_like(pre).scatter(1, best.indices, best.values.clamp_min(0))
    error = (x - (z @ model.W_dec + model.b_dec)).square().sum()
    by_hand = error / (x - x.mean(dim=0)).square().sum()
    torch.testing.assert_close(found.fvu, by_hand.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.total.detach(), by_hand.detach(), rtol=1e-5, atol=1e-6)
    assert float(found.active) == pytest.approx(float((z > 0).sum(dim=1).float().mean()))
    assert float(found.auxiliary) == 0


@pytest.mark.parametrize("tied", [True, False])
def test_the_gradient_is_that_of_the_dense_formula(tied: bool) -> None:
    model, x = make(tied=tied)
    model.loss(x, k=5, dead=NONE, k_aux=8, aux_weight=1.0, autocast=False).total.backward()
    mine = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad()
    pre = (x - model.b_dec) @ model.encoder_rows().T + model.b_enc
    best = pre.topk(5, dim=1)
    z = torch.zeros_like(pre).scatter(1, best.indices, best.values.clamp_min(0))
    error = (x - (z @ model.W_dec + model.b_dec)).square().sum()
    (error / (x - x.mean(dim=0)).square().sum()).backward()
    theirs = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert mine.keys() == theirs.keys()
    for name in mine:
        torch.testing.assert_close(mine[name], theirs[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("tied", [True, False])
def test_auxk_predicts_the_residual_without_the_bias(tied: bool) -> None:
    model, x = make(tied=tied)
    dead = torch.tensor([1, 5, 8, 13, 21, 34])
    found = model.loss(x, k=5, dead=dead, k_aux=12, aux_weight=1 / 32, autocast=False)
    centred = x - model.b_dec
    pre = centred @ model.encoder_rows().T + model.b_enc
    best = pre.topk(5, dim=1)
    z = torch.zeros_like(pre).scatter(1, best.indices, best.values.clamp_min(0))
    residual = centred - z @ model.W_dec  # both biases of decode() cancel
    guess = pre[:, dead].clamp_min(0) @ model.W_dec[dead]
    variance = (x - x.mean(dim=0)).square().sum()
    by_hand = ((residual - guess).square().sum() / variance).detach()
    torch.testing.assert_close(found.auxiliary, by_hand, rtol=1e-5, atol=1e-6)
    # Fewer dead latents than k_aux count for less; both terms are shares of the same variance.
    torch.testing.assert_close(found.total.detach(), found.fvu + 6 / 12 / 32 * by_hand, rtol=1e-5, atol=1e-6)


def test_auxk_keeps_the_k_aux_best_of_the_dead() -> None:
    model, x = make(tied=True)
    dead = torch.arange(20)
    found = model.loss(x, k=5, dead=dead, k_aux=3, aux_weight=1.0, autocast=False)
    centred = x - model.b_dec
    pre = centred @ model.encoder_rows().T + model.b_enc
    main = pre.topk(5, dim=1)
    z = torch.zeros_like(pre).scatter(1, main.indices, main.values.clamp_min(0))
    best = pre[:, dead].clamp_min(0).topk(3, dim=1)
    guess = torch.zeros(len(x), 20).scatter(1, best.indices, best.values) @ model.W_dec[dead]
    by_hand = (centred - z @ model.W_dec - guess).square().sum() / (x - x.mean(dim=0)).square().sum()
    torch.testing.assert_close(found.auxiliary, by_hand.detach(), rtol=1e-5, atol=1e-6)
    assert float(found.total.detach() - found.fvu) == pytest.approx(by_hand.item(), rel=1e-4)  # the weight is at most 1


@pytest.mark.parametrize("tied", [True, False])
def test_auxk_moves_the_dead_alone(tied: bool) -> None:
    """The residual is detached: no gradient reaches b_dec or a living latent through it."""
    model, x = make(tied=tied)
    dead = torch.tensor([1, 5, 8, 13, 21, 34])
    gradients = []
    for aux_weight in (0.0, 1.0):
        model.zero_grad()
        model.loss(x, k=5, dead=dead, k_aux=6, aux_weight=aux_weight, autocast=False).total.backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})  # type: ignore[union-attr]
    living = torch.ones(40, dtype=torch.bool)
    living[dead] = False
    torch.testing.assert_close(gradients[0]["b_dec"], gradients[1]["b_dec"], rtol=1e-5, atol=1e-7)
    for name in gradients[0].keys() - {"b_dec"}:
        torch.testing.assert_close(gradients[0][name][living], gradients[1][name][living], rtol=1e-5, atol=1e-7)
        assert not torch.allclose(gradients[0][name][dead], gradients[1][name][dead])


def test_states_without_variance_give_a_finite_loss() -> None:
    model, _ = make(tied=True)
    found = model.loss(torch.ones(8, 12), k=3, dead=NONE, k_aux=8, aux_weight=1.0, autocast=False)
    found.total.backward()
    assert torch.isfinite(found.total)
    assert torch.isfinite(model.W_dec.grad).all()  # type: ignore[arg-type]


def test_selected_but_not_above_zero_is_not_firing() -> None:
    model, x = make(tied=True)
    with torch.no_grad():
        model.b_enc.fill_(-100.0)
        model.b_enc[:2] = 100.0
    found = model.loss(x, k=5, dead=NONE, k_aux=8, aux_weight=1.0, autocast=False)
    assert float(found.active) == 2
    assert set(found.ids[found.fired].tolist()) == {0, 1}
    trainer = Trainer(stream(), replace(SMALL, dead_after=0))
    with torch.no_grad():
        trainer.model.b_enc.fill_(-100.0)
        trainer.model.b_enc[:2] = 100.0
    trainer._step(torch.randn(64, 32), 0.5)
    assert torch.nonzero(trainer.last_fired).flatten().tolist() == [0, 1]


# --- a step ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
def test_decoder_rows_are_unit_after_every_step(tied: bool) -> None:
    trainer = Trainer(stream(), replace(SMALL, tied=tied, lr=0.1))
    x = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    for _ in range(5):
        before = trainer.model.W_dec.detach().clone()
        trainer._step(x, 0.1)
        after = trainer.model.W_dec.detach()
        assert not torch.allclose(before, after, atol=1e-3)  # so it is the step that the norm comes after
        torch.testing.assert_close(after.norm(dim=1), torch.ones(96), rtol=1e-5, atol=1e-5)


def test_the_gradient_along_a_row_is_removed() -> None:
    model, x = make(tied=True)
    model.loss(x, k=5, dead=NONE, k_aux=8, aux_weight=1.0, autocast=False).total.backward()
    grad = model.W_dec.grad
    assert grad is not None
    along = (grad * model.W_dec).sum(dim=1).abs().max()
    across = grad - (grad * model.W_dec).sum(dim=1, keepdim=True) * model.W_dec
    wanted = across.detach().clone()
    assert along > 1e-4
    model.remove_parallel_gradient()
    assert (grad * model.W_dec).sum(dim=1).abs().max() < 1e-6
    torch.testing.assert_close(grad, wanted)
    trainer = Trainer(stream(), SMALL)
    before = trainer.model.W_dec.detach().clone()
    trainer._step(torch.randn(64, 32, generator=torch.Generator().manual_seed(0)), 0.5)
    used = trainer.model.W_dec.grad
    assert used is not None
    assert used.abs().max() > 1e-4
    assert (used * before).sum(dim=1).abs().max() < 1e-6


def test_the_gradient_is_clipped() -> None:
    trainer = Trainer(stream(), replace(SMALL, clip=1e-3))
    trainer._step(torch.randn(64, 32) * 100, 0.5)
    norm = torch.cat([parameter.grad.flatten() for parameter in trainer.model.parameters()]).norm()  # type: ignore[union-attr]
    assert float(norm) <= 1e-3 * 1.001


def test_the_learning_rate_warms_up_and_follows_a_cosine() -> None:
    shares = np.linspace(0, 1, 201)
    rates = np.array([schedule(share) for share in shares])
    assert rates[0] < 0.01
    assert rates[10] == pytest.approx(1.0)  # 5 %
    assert (np.diff(rates[:11]) > 0).all()
    assert (np.diff(rates[10:]) < 0).all()
    assert schedule(0.025) == pytest.approx(0.5)
    assert schedule(0.525) == pytest.approx(0.5)
    assert schedule(1.0) == pytest.approx(0, abs=1e-9)
    trainer = Trainer(stream(), SMALL)
    trainer._step(torch.randn(64, 32), 0.525)
    assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(SMALL.lr / 2)


def test_dead_latents_come_back() -> None:
    values, _ = sparse_states(4000, d=24, directions=96)  # more directions than latents: all are wanted
    config = TrainConfig(d_sae=64, k=3, unit_states=False, batch=50, lr=5e-3, k_aux=24, dead_after=1000)

    def trained(aux_weight: float) -> tuple[int, float]:
        trainer = Trainer(synthetic(values, passes=8), replace(config, aux_weight=aux_weight))
        with torch.no_grad():
            trainer.model.b_enc[:40] = -0.6  # too low to be among the three best
        trainer.run()
        assert trainer.latest is not None
        return int((trainer.last_fired < trainer.states - 4000).sum()), trainer.latest.fvu

    (silent, fvu), (revived, better) = trained(0.0), trained(1 / 32)
    assert silent >= 25
    assert revived <= 10
    assert better < fvu


# --- whole runs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tied", "unit"), [(True, False), (False, False), (True, True)])
def test_training_finds_the_directions(tied: bool, unit: bool) -> None:
    values, directions = sparse_states()
    config = TrainConfig(d_sae=64, k=3, unit_states=unit, tied=tied, batch=100, lr=1e-2, dead_after=3000, k_aux=8)
    seen: list[Progress] = []
    trainer = Trainer(synthetic(values, passes=20), config)
    first = trainer.model.loss(
        torch.from_numpy(values[:500]), k=3, dead=NONE, k_aux=8, aux_weight=0.0, autocast=False
    ).fvu
    sae = trainer.run(progress=seen.append)
    assert seen[-1].done == 1.0
    assert seen[-1].fvu < 0.15 < float(first)
    cosine = directions @ sae.decoder_rows.T
    assert cosine.max(axis=1).mean() > 0.9
    states = States(torch.from_numpy(values), np.array([0, len(values)]))
    wanted = values / np.linalg.norm(values, axis=1, keepdims=True) if unit else values
    lengths = np.linalg.norm(values, axis=1)

    def error(model: SparseAutoencoder) -> float:
        rebuilt = model.decode(model.encode(states), lengths=lengths)
        return float(np.square(wanted - rebuilt).sum() / np.square(wanted - wanted.mean(axis=0)).sum())

    assert error(sae) < 0.15
    assert error(sae.quantised()) < error(sae) + 0.01


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_the_input_scale_is_folded(tied: bool, unit: bool) -> None:
    """The saved model does to states in the encoder's units what the trained one does to scaled states."""
    values, _ = sparse_states(1000)
    values = values * 37 + 5
    config = TrainConfig(d_sae=64, k=5, unit_states=unit, tied=tied, batch=100, lr=1e-2)
    trainer = Trainer(synthetic(values, passes=2), config)
    sae = trainer.run()
    lengths = np.linalg.norm(values, axis=1)
    if unit:
        assert sae.config.mean_length == pytest.approx(lengths.mean(), rel=0.05)
        weights = lengths[:200, None] / sae.config.mean_length
    else:
        assert trainer.scale == pytest.approx(1 / lengths.mean(), rel=0.05)
        assert sae.config.mean_length == 0
        weights = np.ones((200, 1))
    x = torch.from_numpy(values[:200])
    x = torch.nn.functional.normalize(x, dim=1) if unit else x
    with torch.no_grad():
        centred = x * trainer.scale - trainer.model.b_dec
        ids = trainer.model.select(centred, 5)
        activations, directions = trainer.model.values(centred, ids)
        rebuilt = (torch.einsum("nk,nkd->nd", activations, directions) + trainer.model.b_dec) / trainer.scale
    codes = sae.encode(States(torch.from_numpy(values[:200]), np.array([0, 200])))
    # Activations are indexed in the scale of the training, so that the weighting's k1 means the same for any encoder.
    np.testing.assert_allclose(codes.values, activations.numpy() * weights, rtol=2e-3, atol=2e-4)
    back = sae.decode(codes, lengths=lengths[:200])
    np.testing.assert_allclose(back, rebuilt.numpy(), rtol=2e-3, atol=2e-3 * float(rebuilt.abs().max()))


def test_a_gain_cannot_turn_a_latent_around() -> None:
    trainer = Trainer(stream(), replace(SMALL, tied=True))
    assert trainer.model.gain is not None
    trainer.scale = 1.0
    with torch.no_grad():
        trainer.model.gain[3] = -0.5
    trainer._step(torch.randn(64, 32), 0.5)
    sae = trainer.result()
    np.testing.assert_allclose(sae.decoder_rows, trainer.model.W_dec.detach().numpy(), atol=1e-4)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    one, again, other = (Trainer(stream(seed=seed), replace(SMALL, seed=seed)).run() for seed in (0, 0, 1))
    assert same_model(one, again)
    assert not same_model(one, other)


def test_blocks_hold_every_state_once_a_pass() -> None:
    source = stream(95, passes=3)
    assert source.blocks == 9
    whole = torch.cat([states.tensor() for _, states in TinyEncoder().batches(source.texts, kind="document")])
    wanted = torch.sort(whole.sum(dim=1)).values
    for number in range(3):
        rows = torch.cat([source.block(number * 3 + place) for place in range(3)])
        torch.testing.assert_close(torch.sort(rows.sum(dim=1)).values, wanted)
    assert not torch.equal(source.block(0), source.block(3))  # passes differ in their order
    assert torch.equal(source.block(4), stream(95, passes=3).block(4))
    assert [number for number, _ in source.from_block(6)] == [6, 7, 8]


def test_the_log_has_what_is_asked_for(tmp_path: Path) -> None:
    Trainer(stream(), SMALL, folder=tmp_path / "run").run()
    rows = [json.loads(line) for line in (tmp_path / "run" / METRICS).read_text().splitlines()]
    assert len(rows) == 12
    assert {"done", "step", "states", "fvu", "dead", "active", "rate"} <= rows[0].keys()
    assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})
    assert all(0 < row["active"] <= 4 and 0 <= row["dead"] <= 1 and row["rate"] > 0 for row in rows)
    assert rows[-1]["done"] == 1.0
    assert rows[-1]["fvu"] < rows[0]["fvu"]
    assert rows[-1]["states"] == rows[-1]["step"] * 64


def test_the_dead_share_is_measured(tmp_path: Path) -> None:
    config = replace(SMALL, d_sae=512, k=1, dead_after=500, aux_weight=0.0)
    seen: list[Progress] = []
    trainer = Trainer(stream(960, passes=1), config)
    trainer.run(progress=seen.append)
    silent = int((trainer.last_fired == 0).sum())
    assert silent > 0
    assert seen[-1].dead >= 0.9 * silent / 512


def test_texts_too_few_for_a_batch() -> None:
    with pytest.raises(InputError, match=r"fewer than one batch of 4096.*smaller --batch"):
        Trainer(stream(10, passes=1), TrainConfig(d_sae=64)).run()


@pytest.mark.parametrize(
    "wrong", [{"k": 0}, {"k": 97}, {"batch": 1}, {"lr": 0.0}, {"k_aux": 0}, {"seed": -1}], ids=lambda wrong: str(wrong)
)
def test_settings_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))}.*allowed"):
        replace(SMALL, **wrong)


# --- stop and go on ----------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


@pytest.mark.parametrize("tied", [True, False])
def test_a_stopped_run_goes_on_exactly(tmp_path: Path, tied: bool) -> None:
    config = replace(SMALL, tied=tied, batch=16, dead_after=200, d_sae=200, k=1)
    straight = Trainer(stream(), config, folder=tmp_path / "straight")
    whole = straight.run()
    assert len(straight.dead) > 0  # so that AuxK took part
    first = Trainer(stream(), config, folder=tmp_path / "stopped")
    steps: list[int] = []

    def stop(trainer: Trainer) -> None:
        """What a kill in the middle of a block leaves: the checkpoint of the block before."""
        step = trainer._step

        def counted(batch: torch.Tensor, share: float) -> Any:
            steps.append(trainer.step)
            if len(steps) == 150:
                raise Stop
            return step(batch, share)

        trainer._step = counted  # type: ignore[method-assign]

    stop(first)
    with pytest.raises(Stop):
        first.run(checkpoint_every=0.0)
    second = Trainer(stream(), config, folder=tmp_path / "stopped")
    assert 0 < second.step < 150
    assert second.next_block > 0
    assert len(second.dead) > 0
    rest = second.run(checkpoint_every=0.0)
    assert equal(weights(second), weights(straight))
    assert same_model(rest, whole)
    assert second.states == straight.states
    assert torch.equal(second.last_fired, straight.last_fired)

    def log(name: str) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in (tmp_path / name / METRICS).read_text().splitlines()]
        return [{key: value for key, value in row.items() if key != "rate"} for row in rows]

    assert log("stopped") == log("straight")
    assert not list((tmp_path / "stopped").glob("*.new"))


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    whole = Trainer(stream(), SMALL, folder=tmp_path).run()
    again = Trainer(stream(), SMALL, folder=tmp_path)
    assert again.next_block == again.stream.blocks
    seen: list[Progress] = []
    assert same_model(again.run(progress=seen.append), whole)
    assert seen[-1].done == 1.0
    assert len((tmp_path / METRICS).read_text().splitlines()) == 12


def test_a_log_without_a_checkpoint_begins_anew(tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text('{"step": 5}\n{"step": 9')
    Trainer(stream(), SMALL, folder=tmp_path).run()
    rows = [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert len(rows) == 12


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda: (stream(), replace(SMALL, lr=1e-2)), r"lr 0.003 \(now 0.01\)"),
        (lambda: (stream(), replace(SMALL, tied=False)), r"tied True \(now False\)"),
        (lambda: (stream(passes=3), SMALL), r"passes 2 \(now 3\)"),
        (lambda: (stream(239), SMALL), r"texts 240 \(now 239\)"),
        (lambda: (StateStream(texts(seed=4), TinyEncoder(), passes=2, block_texts=40), SMALL), "content"),
        (lambda: (stream(seed=3), SMALL), "order"),
        (lambda: (stream(level="pooled"), SMALL), "level tokens"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path, other: Any, what: str) -> None:
    Trainer(stream(), SMALL, folder=tmp_path).write_checkpoint()
    source, config = other()
    with pytest.raises(MismatchError, match=what) as caught:
        Trainer(source, config, folder=tmp_path)
    assert f"delete {tmp_path}" in str(caught.value)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    Trainer(stream(), SMALL, folder=tmp_path).write_checkpoint()
    path = tmp_path / CHECKPOINT
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ArtifactError, match=f"{CHECKPOINT} is damaged.*delete"):
        Trainer(stream(), SMALL, folder=tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
import test_training as shared
from lexent.training.reconstruction import trainer as training

trainer = training.Trainer(shared.stream(), shared.SMALL, folder=Path(sys.argv[1]))
step = trainer._step

def killed(batch, share):
    if trainer.next_block == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(batch, share)

trainer._step = killed
trainer.run(checkpoint_every=0.0)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_process_goes_on_exactly(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "killed")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    rest = Trainer(stream(), SMALL, folder=tmp_path / "killed")
    assert rest.next_block == 4
    assert same_model(rest.run(), Trainer(stream(), SMALL).run())
