"""The sparse autoencoder as it is used: exact codes, on disk and back."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lexent.errors import ArtifactError, InputError
from lexent.sae.autoencoder import CONFIG, WEIGHTS, SparseAutoencoder
from lexent.sae.config import SAEConfig
from lexent.sae.first_pass import FirstPass
from lexent.sae.top_latents import top_latents
from lexent.types import States


def states_of(values: np.ndarray) -> States:
    return States(torch.from_numpy(np.asarray(values, np.float32)), np.array([0, len(values)]))


def random_sae(
    d_in: int = 24, d_sae: int = 200, *, tied: bool = False, unit: bool = False, seed: int = 0
) -> SparseAutoencoder:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(d_sae, d_in)).astype(np.float32)
    unit_rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return SparseAutoencoder(
        SAEConfig(d_in, d_sae, 6, activation_scale=0.5, unit_states=unit, tied=tied),
        encoder=unit_rows * rng.uniform(0.5, 1.5, (d_sae, 1)).astype(np.float32),
        decoder=None if tied else unit_rows,
        b_enc=rng.normal(0, 0.1, d_sae).astype(np.float32),
        b_dec=rng.normal(0, 0.1, d_in).astype(np.float32),
    )


# --- the 8-bit first pass ----------------------------------------------------------------------------------------


def check_first_pass(rows: np.ndarray, scale: Any, b_enc: np.ndarray, b_dec: np.ndarray, x: np.ndarray, k: int) -> None:
    """What the first pass finds is what the plain product finds, up to float32 rounding."""
    ids, values = FirstPass(rows, scale=scale, b_enc=b_enc, b_dec=b_dec).encode(torch.from_numpy(x), k)
    dense = rows.astype(np.float64) * (1.0 if scale is None else scale[:, None].astype(np.float64))
    centred = (x - b_dec).astype(np.float64)
    pre = centred @ dense.T + b_enc
    norms = np.linalg.norm(dense, axis=1).max() * np.linalg.norm(centred, axis=1)
    best = np.maximum(-np.sort(-pre, axis=1)[:, :k], 0)
    for row in range(len(x)):
        close = 1e-5 * (norms[row] + np.abs(b_enc).max()) + 1e-30
        np.testing.assert_allclose(values[row], best[row], rtol=0, atol=close)
        active = values[row] > 0
        assert len(set(ids[row][active].tolist())) == active.sum()
        assert ids[row].max(initial=0) < len(rows)
        np.testing.assert_allclose(values[row][active], pre[row][ids[row][active]], rtol=0, atol=close)
        assert (np.diff(values[row]) <= 0).all()
        clear = best[row] > close
        assert active[clear].all()  # none that is clearly above 0 is missing


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 150),
    m=st.sampled_from([1, 5, 63, 64, 65, 128, 200, 700]),
    d=st.sampled_from([2, 3, 8, 31, 64, 384]),
    k=st.integers(1, 20),
    size=st.sampled_from([1e-9, 1e-3, 1.0, 1e4, 1e9]),
    eight_bits=st.booleans(),
    odd=st.sampled_from(["none", "zero", "constant", "one loud column", "mean"]),
)
@example(seed=0, n=129, m=65, d=3, k=20, size=1.0, eight_bits=True, odd="constant")
@example(seed=1, n=2, m=700, d=64, k=16, size=1e9, eight_bits=False, odd="one loud column")
def test_first_pass_is_the_plain_product(
    seed: int, n: int, m: int, d: int, k: int, size: float, eight_bits: bool, odd: str
) -> None:
    rng = np.random.default_rng(seed)
    k = min(k, m)
    rows = rng.normal(size=(m, d)).astype(np.float32) * rng.choice([0.01, 1, 3], (m, 1)).astype(np.float32)
    b_dec = (rng.normal(size=d) * size * 0.3).astype(np.float32)
    x = (rng.normal(size=(n, d)) * size).astype(np.float32)
    if odd == "zero":
        x[:: max(1, n // 2)] = 0
        rows[:: max(1, m // 3)] = 0
    elif odd == "constant":
        x[:] = np.float32(size)
        rows[: m // 2] = rows[0]
    elif odd == "one loud column":
        x[:, 0] *= 1000
    elif odd == "mean":
        x[0] = b_dec
    b_enc = (rng.normal(size=m) * rng.choice([0.0, 0.1 * size])).astype(np.float32)
    scale = None
    if eight_bits:
        scale = (np.maximum(np.abs(rows).max(axis=1), 1e-12) / 127).astype(np.float32)
        rows = np.round(rows / scale[:, None]).astype(np.int8)
    check_first_pass(rows, scale, b_enc, b_dec, x, k)


def test_first_pass_where_rounding_turns_the_order_around() -> None:
    """The state's second column is rounded away: one latent looks half a step too strong, the better one too weak."""
    rows = np.array([[13, -127], [12, 127]], np.int8)
    scale = np.array([1.0, 1.03], np.float32)
    x = np.array([[1.0, 0.499 / 127]], np.float32)
    zeros = np.zeros(2, np.float32)
    ids, values = FirstPass(rows, scale=scale, b_enc=zeros, b_dec=zeros).encode(torch.from_numpy(x), 1)
    assert ids.tolist() == [[1]]
    assert values[0, 0] == pytest.approx((12 + 0.499) * 1.03, rel=1e-5)
    check_first_pass(rows, scale, zeros, zeros, x, 1)
    check_first_pass(rows, scale, zeros, zeros, x, 2)


@pytest.mark.parametrize("eight_bits", [False, True])
def test_first_pass_equals_the_plain_way_of_the_autoencoder(eight_bits: bool) -> None:
    from lexent.sae.autoencoder import _encode_plainly

    sae = random_sae(48, 5000, tied=True)
    sae = sae.quantised() if eight_bits else sae
    x = np.random.default_rng(3).normal(size=(300, 48)).astype(np.float32)
    fast = sae.encode(states_of(x), k=12)
    ids, values = _encode_plainly(sae, torch.from_numpy(x), 12)
    np.testing.assert_allclose(fast.values, values * sae.config.activation_scale, atol=1e-5)
    assert (fast.ids == ids).mean() > 0.999  # only ties to the last bit may change places


def test_states_of_one_column() -> None:
    sae = random_sae(1, 4096)
    pre = (np.full((1, 1), 2.0, np.float32) - sae.b_dec) @ sae.encoder_rows.T + sae.b_enc
    codes = sae.encode(states_of(np.full((1, 1), 2.0)), k=3)
    np.testing.assert_allclose(codes.values[0], 0.5 * -np.sort(-pre[0])[:3], rtol=1e-5)


def test_states_in_half_precision_are_read_as_what_they_are() -> None:
    sae = random_sae(16, 4096)
    half = torch.randn(20, 16, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    offsets = np.array([0, 20])
    one, other = sae.encode(States(half, offsets)), sae.encode(States(half.float(), offsets))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.ids, other.ids)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.sampled_from([1, 30, 100, 2048, 2112, 4096]), k=st.integers(1, 40))
def test_top_latents_is_topk(seed: int, m: int, k: int) -> None:
    pre = torch.randn(7, m, generator=torch.Generator().manual_seed(seed))
    if seed % 3 == 0:
        pre = pre.round()  # many equal values
    found = top_latents(pre, k)
    wanted = pre.topk(min(k, m), dim=1)
    assert torch.equal(pre.gather(1, found), wanted.values)
    assert all(len(set(row.tolist())) == min(k, m) for row in found)
    if seed % 3:
        assert torch.equal(found, wanted.indices)


# --- codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_sae", [300, 4200])
def test_fewer_latents_are_the_first_of_more(d_sae: int) -> None:
    sae = random_sae(32, d_sae)
    states = states_of(np.random.default_rng(1).normal(size=(50, 32)))
    few, many = sae.encode(states, k=4), sae.encode(states, k=16)
    np.testing.assert_array_equal(few.ids, many.ids[:, :4])
    np.testing.assert_array_equal(few.values, many.values[:, :4])
    assert sae.encode(states).ids.shape == (50, sae.config.k)


def test_more_latents_than_there_are_is_all_of_them() -> None:
    codes = random_sae(8, 10).encode(states_of(np.ones((3, 8))), k=50)
    assert codes.ids.shape == (3, 10)
    assert (codes.values >= 0).all()


def test_codes_follow_the_formula() -> None:
    sae = random_sae(8, 40)
    x = np.random.default_rng(5).normal(size=(4, 8)).astype(np.float32)
    codes = sae.encode(states_of(x), k=40)
    pre = (x - sae.b_dec) @ sae.encoder_rows.T + sae.b_enc
    dense = np.zeros((4, 40))
    np.put_along_axis(dense, codes.ids.astype(np.int64), codes.values, axis=1)
    np.testing.assert_allclose(dense, 0.5 * np.maximum(pre, 0), atol=1e-5)
    np.testing.assert_allclose(sae.decode(codes), np.maximum(pre, 0) @ sae.decoder_rows + sae.b_dec, atol=1e-4)


@pytest.mark.parametrize("d_sae", [100, 4096])
def test_unit_states_forget_the_length(d_sae: int) -> None:
    sae = random_sae(8, d_sae, unit=True)
    x = np.random.default_rng(5).normal(size=(6, 8))
    np.testing.assert_allclose(sae.encode(states_of(x)).values, sae.encode(states_of(x * 40)).values, atol=1e-5)
    assert np.isfinite(sae.encode(states_of(np.zeros((2, 8)))).values).all()


@pytest.mark.parametrize("d_sae", [100, 4096])
def test_lengths_become_weights(d_sae: int) -> None:
    """The direction of a state says which latents it has, its length how much they count."""
    plain = random_sae(8, d_sae, unit=True)
    settings = replace(plain.config, mean_length=4.0)
    sae = SparseAutoencoder(
        settings, encoder=plain.encoder_rows, decoder=plain.decoder_rows, b_enc=plain.b_enc, b_dec=plain.b_dec
    )
    x = np.random.default_rng(5).normal(size=(6, 8))
    lengths = np.linalg.norm(x, axis=1).astype(np.float32)
    bare, weighed, louder = plain.encode(states_of(x)), sae.encode(states_of(x)), sae.encode(states_of(x * 40))
    np.testing.assert_array_equal(weighed.ids, bare.ids)
    np.testing.assert_allclose(weighed.values, bare.values * lengths[:, None] / 4, rtol=1e-5)
    np.testing.assert_allclose(louder.values, weighed.values * 40, rtol=1e-4)
    np.testing.assert_allclose(sae.decode(weighed, lengths=lengths), plain.decode(bare), atol=1e-5)
    with pytest.raises(InputError, match="give lengths"):
        sae.decode(weighed)
    assert (sae.encode(states_of(np.zeros((2, 8)))).values == 0).all()
    assert sae.hash() != plain.hash()


def test_no_states_give_no_codes() -> None:
    for d_sae in (64, 4096):
        assert random_sae(8, d_sae).encode(states_of(np.empty((0, 8)))).ids.shape == (0, 6)


@pytest.mark.parametrize("d_sae", [100, 4096])
def test_states_that_cannot_be_coded_are_refused(d_sae: int) -> None:
    sae = random_sae(8, d_sae)
    with pytest.raises(InputError, match=r"9 wide .* reads 8: .*another encoder"):
        sae.encode(states_of(np.ones((2, 9))))
    with pytest.raises(InputError, match="k is 0; allowed: 1 or more"):
        sae.encode(states_of(np.ones((2, 8))), k=0)
    for bad in (np.nan, np.inf, 1e38):
        x = np.ones((3, 8))
        x[1] = bad
        with pytest.raises(InputError, match="row 1 is not finite"):
            sae.encode(states_of(x))


# --- eight bits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
def test_eight_bits_stay_close(tied: bool) -> None:
    sae = random_sae(64, 500, tied=tied)
    small = sae.quantised()
    assert small.config.bits == 8
    step = np.abs(sae.encoder_rows).max(axis=1, keepdims=True) / 127
    assert (np.abs(small.encoder_rows - sae.encoder_rows) <= 0.51 * step).all()
    assert (small.decoder_rows * sae.decoder_rows).sum(axis=1).min() > 0.9995
    x = states_of(np.random.default_rng(2).normal(size=(200, 64)))
    one, other = sae.encode(x), small.encode(x)
    assert np.abs(one.values - other.values).max() < 0.02 * one.values.max()
    shared = [len(set(a) & set(b)) / 6 for a, b in zip(one.ids.tolist(), other.ids.tolist(), strict=True)]
    assert np.mean(shared) > 0.95


def test_eight_bits_twice_is_eight_bits_once() -> None:
    once = random_sae(tied=True).quantised()
    np.testing.assert_allclose(once.quantised().encoder_rows, once.encoder_rows, rtol=1e-5)


# --- disk --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("bits", [8, 32])
def test_there_and_back(tmp_path: Path, tied: bool, bits: int) -> None:
    sae = random_sae(tied=tied, unit=True)
    sae = sae.quantised() if bits == 8 else sae
    sae.save(tmp_path)
    back = SparseAutoencoder.load(tmp_path)
    assert back.config == sae.config
    assert back.config.bits == bits
    assert back.hash() == sae.hash()
    np.testing.assert_array_equal(back.encoder_rows, sae.encoder_rows)
    np.testing.assert_array_equal(back.decoder_rows, sae.decoder_rows)
    x = states_of(np.random.default_rng(2).normal(size=(9, 24)))
    np.testing.assert_array_equal(back.encode(x).values, sae.encode(x).values)
    np.testing.assert_array_equal(back.decode(back.encode(x)), sae.decode(sae.encode(x)))
    assert (tmp_path / WEIGHTS).stat().st_mode & 0o044 == 0o044  # others may read it


def test_tensors_have_the_names_and_shapes_of_saelens(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    sae = random_sae(24, 200)
    sae.save(tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    assert shapes == {"W_enc": (24, 200), "W_dec": (200, 24), "b_enc": (200,), "b_dec": (24,)}
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(tensors["W_enc"].T, sae.encoder_rows)
    np.testing.assert_allclose(np.linalg.norm(tensors["W_dec"], axis=1), 1, rtol=1e-5)
    settings = json.loads((tmp_path / CONFIG).read_text())
    assert (settings["architecture"], settings["d_in"], settings["d_sae"], settings["k"]) == ("topk", 24, 200, 6)
    random_sae(24, 200, tied=True).quantised().save(tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    assert "W_dec" not in tensors
    assert tensors["W_enc"].dtype == np.int8
    assert tensors["W_enc_scale"].shape == (200,)


def test_a_transposed_matrix_is_refused() -> None:
    config = SAEConfig(4, 6, 2)
    good: dict[str, Any] = {"b_enc": np.zeros(6, np.float32), "b_dec": np.zeros(4, np.float32)}
    rows = np.ones((6, 4), np.float32)
    SparseAutoencoder(config, encoder=rows, decoder=rows, **good)
    for encoder, decoder in ((rows.T, rows), (rows, rows.T), (rows.T, None)):
        with pytest.raises(ArtifactError, match=r"\[latents, width\] \(6, 4\); given: .*\(4, 6\)"):
            SparseAutoencoder(config, encoder=encoder, decoder=decoder, **good)
    with pytest.raises(ArtifactError, match="b_enc"):
        SparseAutoencoder(config, encoder=rows, decoder=rows, b_enc=good["b_dec"], b_dec=good["b_enc"])
    with pytest.raises(ArtifactError, match="8-bit rows need a scale"):
        SparseAutoencoder(config, encoder=rows.astype(np.int8), decoder=rows, **good)


def damage_weights(folder: Path) -> None:
    whole = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(whole[: len(whole) // 2])


def drop_tensor(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    tensors = load_file(folder / WEIGHTS)
    save_file({name: tensor for name, tensor in tensors.items() if name != "b_enc"}, folder / WEIGHTS)


def drop_setting(folder: Path) -> None:
    values = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({name: value for name, value in values.items() if name != "d_sae"}))


def other_architecture(folder: Path) -> None:
    values = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**values, "architecture": "gated"}))


def other_width(folder: Path) -> None:
    values = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**values, "d_sae": 199}))


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        (lambda folder: (folder / CONFIG).unlink(), "cfg.json is missing"),
        (lambda folder: (folder / WEIGHTS).unlink(), "sae_weights.safetensors is missing"),
        (lambda folder: (folder / CONFIG).write_text("{"), "damaged"),
        (lambda folder: (folder / CONFIG).write_bytes(b"\xff\xfe\x00"), "damaged"),
        (lambda folder: (folder / CONFIG).write_text("[1]"), "cfg.json"),
        (damage_weights, "damaged"),
        (drop_tensor, "has no b_enc"),
        (drop_setting, "d_sae"),
        (other_architecture, '"gated".*allowed: topk, jumprelu'),
        (other_width, r"\(199, 24\)"),
    ],
)
def test_a_damaged_folder_is_refused_by_name(tmp_path: Path, harm: Any, what: str) -> None:
    random_sae().save(tmp_path)
    harm(tmp_path)
    with pytest.raises(ArtifactError, match=what):
        SparseAutoencoder.load(tmp_path)


def test_settings_of_others_are_ignored(tmp_path: Path) -> None:
    sae = random_sae()
    sae.save(tmp_path)
    (tmp_path / CONFIG).write_text(json.dumps({**asdict(sae.config), "metadata": {"sae_lens_version": "6"}}))
    assert SparseAutoencoder.load(tmp_path).config == sae.config


def test_the_hash_follows_weights_and_settings() -> None:
    hashes = {
        random_sae().hash(),
        random_sae(seed=1).hash(),
        random_sae(unit=True).hash(),
        random_sae(tied=True).hash(),
        random_sae().quantised().hash(),
    }
    assert len(hashes) == 5
    assert random_sae().hash() in hashes


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("bits", [8, 32])
def test_kept_latents_are_renumbered(tied: bool, bits: int) -> None:
    sae = random_sae(tied=tied)
    sae = sae.quantised() if bits == 8 else sae
    chosen = np.array([7, 150, 3, 42, 199])
    part = sae.kept(chosen)
    assert part.config.d_sae == 5
    np.testing.assert_array_equal(part.encoder_rows, sae.encoder_rows[chosen])
    np.testing.assert_allclose(part.decoder_rows, sae.decoder_rows[chosen], rtol=1e-6)
    x = states_of(np.random.default_rng(2).normal(size=(9, 24)))
    every, few = sae.encode(x, k=200), part.encode(x, k=5)
    for row in range(9):
        whole = dict(zip(every.ids[row].tolist(), every.values[row].tolist(), strict=True))
        for latent, value in zip(few.ids[row].tolist(), few.values[row].tolist(), strict=True):
            assert value == pytest.approx(whole[int(chosen[latent])], abs=1e-5)
