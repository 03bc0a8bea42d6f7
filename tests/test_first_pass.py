"""Integer products in the first pass of coding: exact on every processor, whatever torch's 8-bit product does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from lexent.encoders import encoder as encoders
from lexent.lexicon.lexicon import shipped
from lexent.models import load_encoder
from lexent.sae import integer_products
from lexent.sae.autoencoder import SparseAutoencoder, _encode_plainly
from lexent.sae.first_pass import FirstPass
from lexent.sae.integer_products import (
    LANES,
    LatentTiles,
    gather,
    int_mm_is_exact,
    limits,
    multiply_tile,
    padded,
    transposed,
)

VNNI = "+avx512vnni"
TEXTS = [
    "Aspirin lowers the risk of a second stroke in patients over sixty.",
    "We prove that the bound is tight up to a logarithmic factor (Theorem 3).",
    "Preheat the oven to 220 degrees, knead the dough and let it rise for an hour.",
]


def products(states: np.ndarray, rows: np.ndarray, live: np.ndarray | None = None) -> np.ndarray:
    """All products by the kernel, int32[n, m]."""
    tiles = LatentTiles(rows, live)
    count = padded(len(states))
    gathered = np.zeros(count * tiles.pairs, np.int32)
    by_input = transposed(states.astype(np.int16), count)
    out, part = np.zeros((len(states), len(rows)), np.int32), np.empty(count * LANES, np.int32)
    for tile, (group, start, own) in enumerate(zip(tiles.groups, tiles.starts, tiles.counts, strict=True)):
        gather(by_input, tiles.live[group], gathered)
        multiply_tile(gathered, count, tiles.packed, tile, part)
        out[:, start : start + own] = part.reshape(count, LANES)[: len(states), :own]
    return out


def saturating(states: torch.Tensor, latents: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """torch's 8-bit product as it is with vpmaddubsw: states as bytes from 0 on, pairs of products added in 16 bits."""
    x, w = states.int() + 128, latents.int().t()
    if x.shape[1] % 2:
        x, w = torch.nn.functional.pad(x, (0, 1)), torch.nn.functional.pad(w, (0, 1))
    pairs = (x[:, None, 0::2] * w[None, :, 0::2] + x[:, None, 1::2] * w[None, :, 1::2]).clamp(-32768, 32767)
    found = (pairs.sum(dim=2) - 128 * w.sum(dim=1)).int()
    return found if out is None else out.copy_(found)


@pytest.fixture(params=["torch", "own"])
def product(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which product dense lexicons are coded by."""
    known = integer_products.CPU_FEATURES
    features = known | {VNNI} if request.param == "torch" else known - {VNNI}
    monkeypatch.setattr(integer_products, "CPU_FEATURES", features)
    if request.param == "torch" and not int_mm_is_exact(384):
        pytest.skip("torch's 8-bit product is not exact here")
    return str(request.param)


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What is known of torch's product counts for one test."""
    int_mm_is_exact.cache_clear()
    yield
    int_mm_is_exact.cache_clear()


# --- products ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 3, 115, 384, 516, 517, 768, 4096])
@pytest.mark.parametrize("eight_bits", [True, False])
def test_products_at_the_limits_do_not_overflow(width: int, eight_bits: bool) -> None:
    most, most_of_rows = limits(width, latents=127 if eight_bits else None)
    states = np.full((7, width), most)
    states[1::2] *= -1
    rows = np.full((35, width), most_of_rows)
    rows[1::2] *= -1
    wanted = states.astype(np.int64) @ rows.astype(np.int64).T
    assert 2**29 < abs(wanted).max() < 2**31 or width < 516  # the limits leave little room unused
    np.testing.assert_array_equal(products(states, rows), wanted)


@pytest.mark.parametrize(("m", "groups"), [(1, 1), (16, 1), (17, 1), (100, 3), (70, 8), (5, 4)])
def test_products_read_the_inputs_of_each_group(m: int, groups: int) -> None:
    """Groups of unequal length, and groups without latents, as `groups_of` makes them."""
    rng = np.random.default_rng(m)
    live = np.stack([np.sort(rng.permutation(20)[:7]) for _ in range(groups)])
    rows = np.zeros((m, 20), np.int64)
    for row in range(m):
        own = live[row // -(-m // groups)]
        rows[row, own] = rng.integers(-127, 128, len(own))
    states = rng.integers(-9000, 9000, (13, 20))
    np.testing.assert_array_equal(products(states, rows, live), states @ rows.T)


@pytest.mark.parametrize("features", ["", "+avx2"])
def test_products_on_other_processors(features: str) -> None:
    """Without vector instructions for pairs, and with those of AVX2 alone."""
    if features and features not in integer_products.CPU_FEATURES:
        pytest.skip("this processor has no AVX2")
    code = (
        "import numpy as np; from test_first_pass import products;"
        "x = np.random.default_rng(0).integers(-32767, 32768, (9, 384)); x[0] = 32767;"
        "w = np.random.default_rng(1).integers(-127, 128, (40, 384)); w[0] = 127;"
        "assert np.array_equal(products(x, w), x @ w.T)"
    )
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=Path(__file__).parent, timeout=300)


# --- torch's product -----------------------------------------------------------------------------------------------


def test_a_saturating_product_is_noticed_and_not_used(monkeypatch: pytest.MonkeyPatch, forgotten: None) -> None:
    """All inputs at 127, as in the worst case: a product that saturates would take another latent for the best."""
    monkeypatch.setattr(torch, "_int_mm", saturating)
    monkeypatch.setattr(integer_products, "CPU_FEATURES", integer_products.CPU_FEATURES | {VNNI})
    ones = torch.full((1, 384), 127, dtype=torch.int8)
    assert int(saturating(ones, ones.t())) < 127 * 127 * 384  # 6,193,536
    assert not int_mm_is_exact(384)
    rows = np.full((4200, 384), 60, np.int8)
    rows[4000] = 127
    zeros, scale = np.zeros(len(rows), np.float32), np.ones(len(rows), np.float32)
    made = FirstPass(rows, scale=scale, b_enc=zeros, b_dec=np.zeros(384, np.float32))
    ids, values = made.encode(torch.full((3, 384), 127.0), 2)
    assert ids.tolist() == [[4000, 0]] * 3
    assert values[0].tolist() == [127 * 127 * 384, 127 * 60 * 384]


def test_the_check_is_made_once_a_process(monkeypatch: pytest.MonkeyPatch, forgotten: None) -> None:
    calls = []
    real = torch._int_mm
    monkeypatch.setattr(torch, "_int_mm", lambda one, other: calls.append(1) or real(one, other))
    assert int_mm_is_exact(48) == int_mm_is_exact(48)
    assert len(calls) == 1


# --- codes ---------------------------------------------------------------------------------------------------------


def check_codes(sae: SparseAutoencoder, states: torch.Tensor, k: int) -> int:
    """The codes are those of the full product in float32, but for ties; how many latents were compared."""
    close = 2e-6 * float(states.norm(dim=1).max()) * float(np.linalg.norm(sae.encoder_rows, axis=1).max())
    made = FirstPass(sae.stored_rows, scale=sae.scale, b_enc=sae.b_enc, b_dec=sae.b_dec, live=sae.live)
    ids, values = made.encode(states, k)
    plain_ids, plain_values = _encode_plainly(sae, states, k)
    np.testing.assert_allclose(values, plain_values, rtol=0, atol=close)
    for row in range(len(ids)):
        gap = plain_values[row, k - 1] + 2 * close  # latents clearly above the last one are in both
        for one, other in ((ids, values), (plain_ids, plain_values)):
            clear = set(one[row][other[row] > gap].tolist())
            assert clear <= set(ids[row].tolist()) & set(plain_ids[row].tolist())
    return int(ids.size)


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "all-MiniLM-L6-v2-ssr", "all-MiniLM-L6-v2-uhd"])
def test_shipped_lexicons_code_real_states_as_in_float32(name: str, product: str) -> None:
    sae = SparseAutoencoder.load(shipped()[name])
    encoder = load_encoder(name if name.endswith("uhd") else encoders.DEFAULT, device="cpu", engine="torch")
    states = encoders.encode(encoder, TEXTS, kind="document").values.float()
    if sae.config.unit_states:
        states = states / states.norm(dim=1, keepdim=True)
    width = sae.config.width
    parts = [sae] if sae.config.buckets == 1 else [sae.bucket(place) for place in range(sae.config.buckets)]
    for place, part in enumerate(parts):
        own = states[:, place * width : (place + 1) * width].contiguous()
        assert check_codes(part, own, sae.config.k) > 500


def test_shipped_lexicons_where_torch_has_avx2_alone() -> None:
    """In a process of its own, where torch's library may not use VNNI."""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    words = [
        sys.executable,
        "-m",
        "pytest",
        __file__,
        "-q",
        "-k",
        "test_shipped_lexicons_code_real_states_as_in_float32",
    ]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout
