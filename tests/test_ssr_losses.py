"""Training for retrieval: products, codes and each loss against an obvious formula."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import lexent.training.ssr.maxsim as maxsims
from lexent.training import sparse_products
from lexent.training.pair_states import TextStates
from lexent.training.sparse_products import selected_products, weighted_rows
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.ssr.maxsim import TextCodes, maxsim
from lexent.training.ssr.model import (
    WHOLE_TEXT_WEIGHT,
    RetrievalModel,
    divergence,
    document_contrast,
    teacher_scores,
    token_contrast,
    unit,
)
from lexent.types import States
from paired import ALL, NONE, SMALL, disturbed, slow_maxsim


def model(*, tied: bool = True, d: int = 12, m: int = 40) -> tuple[RetrievalModel, torch.Tensor]:
    made = RetrievalModel(d, m, tied=tied, seed=3)
    return made, torch.randn(30, d, generator=disturbed(made))


def weights(made: RetrievalModel) -> tuple[NDArray[Any], ...]:
    found = (made.encoder_rows(), made.W_dec, made.b_enc, made.b_dec)
    return tuple(tensor.detach().numpy().astype(np.float64) for tensor in found)


def slow_codes(made: RetrievalModel, x: torch.Tensor, k: int) -> NDArray[np.float64]:
    """float64[n, m]: the k largest pre-activations of each row, where they are above 0."""
    encoder, _, b_enc, b_dec = weights(made)
    pre = (x.numpy() - b_dec) @ encoder.T + b_enc
    codes = np.zeros_like(pre)
    for row, values in enumerate(pre):
        for latent in sorted(range(len(values)), key=lambda at: -values[at])[:k]:
            codes[row, latent] = max(values[latent], 0)
    return codes


def test_products_with_selected_rows_and_their_gradients_are_those_of_the_dense_formula() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(20, 6, generator=draw, dtype=torch.float64, requires_grad=True)
    rows = torch.randn(9, 6, generator=draw, dtype=torch.float64, requires_grad=True)
    mix = torch.rand(20, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    ids = torch.stack([torch.randperm(9, generator=draw)[:3] for _ in range(20)])
    pull = torch.randn(20, 3, generator=draw, dtype=torch.float64)
    pull_rows = torch.randn(20, 6, generator=draw, dtype=torch.float64)
    (selected_products(x, rows, ids) * pull).sum().backward()
    (weighted_rows(mix, ids, rows) * pull_rows).sum().backward()
    mine = [tensor.grad.clone() for tensor in (x, rows, mix)]  # type: ignore[union-attr]
    for tensor in (x, rows, mix):
        tensor.grad = None
    ((x @ rows.T).gather(1, ids) * pull).sum().backward()
    dense = torch.zeros(20, 9, dtype=torch.float64).scatter(1, ids, mix)
    ((dense @ rows) * pull_rows).sum().backward()
    for found, tensor in zip(mine, (x, rows, mix), strict=True):
        torch.testing.assert_close(found, tensor.grad)


def test_what_runs_on_a_gpu_gives_what_runs_on_a_cpu_within_16_bits() -> None:
    made, x = model()
    ids, values = (tensor.detach() for tensor in made.code(x, 5, autocast=False))
    one, two = (spread(values, ids, x, 40) for spread in (sparse_products._spread, sparse_products._spread_densely))
    torch.testing.assert_close(one, two, rtol=0.02, atol=0.02 * float(one.abs().max()))
    sides = ids[:8], unit(values)[:8], ids[8:], unit(values)[8:]
    one, two = (near(*sides, 40) for near in (maxsims._nearest_sparsely, maxsims._nearest_densely))
    torch.testing.assert_close(one, two.float(), rtol=0.02, atol=0.01)


@pytest.mark.parametrize("tied", [True, False])
def test_codes_are_the_k_strongest_and_what_the_saved_autoencoder_gives(tied: bool) -> None:
    made, x = model(tied=tied)
    ids, values = made.code(x, 5, autocast=False)
    np.testing.assert_allclose(made.dense(ids, values).detach().numpy(), slow_codes(made, x, 5), atol=1e-5)
    assert (values[:, :-1] >= values[:, 1:]).all()
    sae = made.exported(k=5, scale=2.0, unit_states=False, mean_length=0.0)
    codes = sae.encode(States(x / 2.0, np.arange(len(x) + 1)))
    np.testing.assert_array_equal(codes.ids, ids.numpy())
    np.testing.assert_allclose(codes.values, values.detach().numpy(), rtol=1e-4, atol=1e-5)
    again = RetrievalModel(12, 40, tied=tied, seed=9)
    again.take(sae)
    for name, tensor in made.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor)


# --- losses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
def test_the_unsupervised_losses_are_those_of_the_formulas(tied: bool) -> None:
    made, x = model(tied=tied)
    dead = torch.tensor([1, 5, 8, 13])
    found = made.unsupervised(x, k=3, dead=dead, weights=ALL, autocast=False)
    encoder, decoder, b_enc, b_dec = weights(made)
    states = x.numpy().astype(np.float64)
    variance = np.square(states - states.mean(axis=0)).sum()

    def rebuilt(k: int) -> NDArray[np.float64]:
        return slow_codes(made, x, k) @ decoder + b_dec

    fvu, wide = (np.square(states - rebuilt(k)).sum() / variance for k in (3, 12))
    some = dead.numpy()
    guess = np.maximum((states - b_dec) @ encoder[some].T + b_enc[some], 0) @ decoder[some]
    auxiliary = np.square(states - rebuilt(3) - guess).sum() / variance
    codes = slow_codes(made, x, 3)[:10]
    contrast = 0.0
    for i in range(10):
        others = sum(np.exp(codes[i] @ codes[j]) for j in range(10) if j != i)
        contrast -= np.log(np.exp(codes[i] @ codes[i]) / (np.exp(codes[i] @ codes[i]) + others)) / 10
    assert float(found.fvu) == pytest.approx(fvu, rel=1e-4)
    assert float(found.wide) == pytest.approx(wide, rel=1e-4)
    assert wide != pytest.approx(fvu, rel=0.1)
    assert float(found.auxiliary) == pytest.approx(auxiliary, rel=1e-4)
    assert float(found.contrast) == pytest.approx(contrast, rel=1e-4)
    # 4 of the 8 latents that may help are dead, so AuxK counts half
    total = fvu + wide / 8 + 4 / 8 / 32 * auxiliary + 0.1 * contrast
    assert float(found.total.detach()) == pytest.approx(total, rel=1e-4)


def test_the_reconstruction_by_four_times_k_counts() -> None:
    """The released code computes that term and drops it."""
    made, x = model()
    gradients = []
    for share in (0.0, 1 / 8):
        made.zero_grad()
        only = replace(ALL, wide=share, alpha=0.0, beta=0.0)
        made.unsupervised(x, k=3, dead=NONE, weights=only, autocast=False).total.backward()
        assert made.W_dec.grad is not None
        gradients.append(made.W_dec.grad.clone())
    ids, _ = made.code(x, 12, autocast=False)
    later = sorted(set(ids[:, 3:].flatten().tolist()) - set(ids[:, :3].flatten().tolist()))
    assert later
    assert not gradients[0][later].any()
    assert gradients[1][later].abs().sum() > 0


@pytest.mark.parametrize("off", ["wide", "alpha", "beta"])
def test_each_loss_can_be_left_out(off: str) -> None:
    made, x = model()
    dead = torch.tensor([1, 5, 8, 13])
    with_all = made.unsupervised(x, k=3, dead=dead, weights=ALL, autocast=False)
    without = made.unsupervised(x, k=3, dead=dead, weights=replace(ALL, **{off: 0.0}), autocast=False)
    left = {"wide": "wide", "alpha": "auxiliary", "beta": "contrast"}[off]
    assert float(getattr(without, left)) == 0
    assert float(without.total.detach()) < float(with_all.total.detach())


def test_the_settings_of_the_paper_are_there_and_the_supervised_loss_is_always_on() -> None:
    """The released commands have no supervised loss at all, and another weight for AuxK."""
    config = RetrievalConfig.paper()
    assert (config.wide, config.alpha, config.beta, config.gamma) == (1 / 8, 1 / 32, 0.1, 0.05)
    assert (config.k_aux, config.dead_after, config.d_sae, config.k) == (2048, 30, 16_384, 32)
    assert (config.batch, config.lr, config.epochs) == (64, 1e-3, 2.0)
    assert (config.query_tokens, config.document_tokens) == (32, 180)
    assert (config.gains, config.idf, config.function_words, config.emphasis) == (False, 0.0, 1.0, 0.0)
    ours = RetrievalConfig()
    assert (ours.wide, ours.alpha, ours.beta) == (config.wide, config.alpha, config.beta)
    assert ours.gamma >= config.gamma > 0


def test_the_contrast_of_tokens_has_a_temperature() -> None:
    codes = torch.rand(6, 9, generator=torch.Generator().manual_seed(0))
    products = (codes @ codes.T / 0.5).numpy()
    wanted = -np.mean([np.log(np.exp(products[i, i]) / np.exp(products[i]).sum()) for i in range(6)])
    assert float(token_contrast(codes, temperature=0.5, autocast=False)) == pytest.approx(wanted, rel=1e-5)


def test_the_contrast_of_documents_leaves_out_what_is_neither_right_nor_wrong() -> None:
    scores = torch.tensor([[2.0, 1.0, 5.0], [0.5, 0.0, 0.25]])
    excluded = torch.tensor([[False, False, True], [False, False, False]])
    found = document_contrast(scores, torch.tensor([0, 2]), excluded)
    first = -np.log(np.exp(2) / (np.exp(2) + np.exp(1)))
    second = -np.log(np.exp(0.25) / (np.exp(0.5) + np.exp(0) + np.exp(0.25)))
    assert float(found) == pytest.approx((first + second) / 2, rel=1e-6)


def test_maxsim_is_equation_4_by_brute_force() -> None:
    draw = np.random.default_rng(0)
    m, k = 30, 4

    def texts(counts: list[int]) -> tuple[list[NDArray[Any]], TextCodes]:
        dense, ids, values = [], [], []
        for count in counts:
            rows = np.zeros((count, m))
            for row in rows:
                chosen = draw.choice(m, k, replace=False)
                row[chosen] = np.maximum(draw.normal(0.5, 1, k), 0)
                ids.append(chosen)
                values.append(row[chosen])
            dense.append(rows)
        made = (torch.from_numpy(np.array(ids)), torch.from_numpy(np.array(values)).float())
        return dense, TextCodes.of(*made, counts=torch.tensor(counts))

    slow_queries, queries = texts([3, 1, 5])
    slow_documents, documents = texts([7, 2, 9, 1, *[4] * 30])
    found = maxsim(queries, documents, size=m)
    np.testing.assert_allclose(found.numpy(), slow_maxsim(slow_queries, slow_documents), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_maxsim_is_that_of_the_dense_formula() -> None:
    made, x = model()
    counts = [2, 3, 10, 15]
    ids, values = made.code(x, 5, autocast=False)
    found = maxsim(
        TextCodes.of(ids[:5], unit(values)[:5], counts=torch.tensor(counts[:2])),
        TextCodes.of(ids[5:], unit(values)[5:], counts=torch.tensor(counts[2:])),
        size=40,
    )
    pull = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    (found * pull).sum().backward()
    mine = {name: parameter.grad.clone() for name, parameter in made.named_parameters() if parameter.grad is not None}
    made.zero_grad()
    pre = (x - made.b_dec) @ made.encoder_rows().T + made.b_enc
    best = pre.topk(5, dim=1)
    z = torch.zeros_like(pre).scatter(1, best.indices, best.values.clamp_min(0))
    z = z / z.norm(dim=1, keepdim=True)
    parts = torch.split(z, counts)
    slow = torch.stack(
        [torch.stack([(query @ text.T).max(dim=1).values.sum() for text in parts[2:]]) for query in parts[:2]]
    )
    torch.testing.assert_close(found, slow)
    (slow * pull).sum().backward()
    for name, gradient in mine.items():
        torch.testing.assert_close(gradient, dict(made.named_parameters())[name].grad, rtol=1e-4, atol=1e-6)
    selected = torch.zeros(40, dtype=torch.bool)
    selected[ids.flatten()] = True
    assert not selected.all()
    for name in ("W_dec", "gain", "b_enc"):  # the gradient reaches only latents that some token selected
        assert not mine[name][~selected].any()
        assert mine[name][selected].any()


def test_codes_are_compared_at_unit_length() -> None:
    values = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    torch.testing.assert_close(unit(values), torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_annealing_goes_from_more_latents_to_k() -> None:
    config = replace(SMALL, k_from=8)
    assert [config.k_at(share) for share in (0.0, 0.35, 0.7, 1.0)] == [8, 6, 4, 4]
    assert SMALL.k_at(0.0) == 4


def test_the_teacher_has_the_scores_of_the_encoders_own_states() -> None:
    draw = np.random.default_rng(4)

    def side(counts: list[int]) -> TextStates:
        made = [draw.normal(size=(sum(counts), 5)), draw.normal(size=(len(counts), 5))]
        return TextStates(torch.from_numpy(made[0]), np.array(counts), torch.from_numpy(made[1]))

    queries, documents = side([2, 1, 3]), side([1, 4, 2, 3])
    weights = draw.random(6)
    found = teacher_scores(queries, documents, torch.from_numpy(weights)).numpy()

    def cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    for row in range(3):
        own = range(sum(queries.counts[:row]), sum(queries.counts[: row + 1]))
        for column in range(4):
            theirs = range(sum(documents.counts[:column]), sum(documents.counts[: column + 1]))
            best = [max(cosine(queries.rows[i].numpy(), documents.rows[j].numpy()) for j in theirs) for i in own]
            tokens = np.average(best, weights=weights[list(own)])
            assert queries.pooled is not None
            assert documents.pooled is not None
            whole = cosine(queries.pooled[row].numpy(), documents.pooled[column].numpy())
            assert found[row, column] == pytest.approx(tokens + WHOLE_TEXT_WEIGHT * whole)


def test_the_divergence_is_that_of_the_chances_and_0_where_scores_differ_by_a_constant() -> None:
    draw = np.random.default_rng(5)
    ours, theirs = draw.normal(size=(2, 3, 4))
    excluded = np.zeros((3, 4), bool)
    excluded[1, 2] = True
    found = divergence(*(torch.from_numpy(one) for one in (ours, theirs, excluded)))
    total = 0.0
    for row in range(3):
        kept = ~excluded[row]
        p, q = (np.exp(one[row][kept]) / np.exp(one[row][kept]).sum() for one in (theirs, ours))
        total += float((p * np.log(p / q)).sum())
    assert float(found) == pytest.approx(total / 3)
    none = torch.zeros(3, 4, dtype=torch.bool)
    assert float(divergence(torch.from_numpy(ours), torch.from_numpy(ours + 7), none)) == pytest.approx(0, abs=1e-9)
