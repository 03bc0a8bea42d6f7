"""--paper: the settings of SSR and UHD are the papers'; what differs all the same is declared, shown and documented."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from commands import good
from lexent.encoders import TinyEncoder
from lexent.encoders.sentence import SentenceEncoder
from lexent.training.settings import Difference
from lexent.training.ssr import config as ssr_config
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.ssr.train import fit
from lexent.training.ssr.trainer import PairTrainer
from lexent.training.uhd import config as uhd_config
from lexent.training.uhd.config import WinnerConfig
from lexent.training.uhd.model import Bucket
from lexent.training.uhd.trainer import WinnerTrainer, linear
from paired import SMALL, measured, toy
from test_encoders import small_model
from test_uhd import pairs

SSR = {
    "d_sae": 16_384, "k": 32, "whole_d_sae": 16_384, "whole_k": 32, "tied": True,
    "lr": 1e-3, "batch": 64, "epochs": 2.0, "warm_up_steps": 20_000, "pretrain": 0, "freeze": False, "teacher": 0.0,
    "wide": 1 / 8, "alpha": 1 / 32, "beta": 0.1, "gamma": 0.05, "k_aux": 2048, "dead_after": 30,
    "temperature": 1.0, "whole_temperature": 1.0, "contrast_temperature": 1.0,
    "query_tokens": 32, "document_tokens": 180,
    "gains": False, "idf": 0.0, "function_words": 1.0, "emphasis": 0.0,
}  # fmt: skip
"""Equations 7 to 10 and Table 6 of SSR: one loss over reconstruction and pairs from the first step on."""
UHD = {
    "d_sae": 81_920, "k": 80, "mask": 0.7, "groups": 81_920, "unit_rows": False, "rank": None, "start": "random",
    "loss": "hinge", "margin": 1.0, "binary": 0.0, "query_cap": None, "document_cap": None, "hard": 0,
    "lr": 5e-6, "encoder_lr": 5e-6, "weight_decay": 0.01, "warm_up_steps": 2000, "clip": None, "batch": 32,
    "query_tokens": 32, "document_tokens": 180, "boost": 0.0, "revive_every": 0,
}  # fmt: skip
"""UHD's encoder and training: a mask for each unit, no caps, no fixed lengths, a hinge over the batch."""


@pytest.mark.parametrize(("config", "wanted"), [(RetrievalConfig.paper(), SSR), (WinnerConfig.paper(), UHD)])
def test_paper_has_the_values_of_the_paper(config: Any, wanted: dict[str, Any]) -> None:
    assert {name: getattr(config, name) for name in wanted} == wanted


def test_what_is_given_comes_before_the_paper() -> None:
    assert RetrievalConfig.paper(freeze=True, pretrain=1).freeze
    assert WinnerConfig.paper(d_sae=64, k=4).groups == 64
    assert WinnerConfig.paper(d_sae=64, k=4, groups=8).groups == 8


@pytest.mark.parametrize("found", [ssr_config.DIFFERS, uhd_config.DIFFERS])
def test_what_differs_is_in_the_docs(found: tuple[Difference, ...]) -> None:
    page = (Path(__file__).parents[1] / "docs" / "train.md").read_text()
    for each in found:
        assert f"| {each.what} | {each.paper} | {each.here} |" in page


def test_all_tokens_of_a_batch_are_rebuilt() -> None:
    config = RetrievalConfig.paper()
    most = config.batch * config.query_tokens + config.batch * (1 + config.hard) * config.document_tokens
    assert config.rebuilt >= most


def test_a_warm_up_in_steps_is_at_most_half_of_the_run() -> None:
    assert WinnerConfig(warm_up=0.05).warm_up_of(100) == 0.05
    assert WinnerConfig(warm_up_steps=2000).warm_up_of(100_000) == 0.02
    assert WinnerConfig(warm_up_steps=2000).warm_up_of(100) == 0.5
    config = WinnerConfig.paper()
    assert linear(1000 / 311_000, warm_up=config.warm_up_of(311_000)) == pytest.approx(0.5)


def test_codes_can_begin_at_random_directions() -> None:
    """Without passes over the texts the autoencoder starts as it would have before the first pass, and learns."""
    start = fit(TinyEncoder(), toy().documents, toy(), config=replace(SMALL, pretrain=0, steps=1, lr=1e-9))
    config = start.tokens.config
    assert config.activation_scale > 0
    assert config.mean_length > 0
    assert np.abs(start.tokens.b_dec).max() > 0
    rows = start.tokens.encoder_rows
    assert np.abs(rows @ rows.T - np.eye(len(rows))).max() < 0.95  # no two alike: random, not learned
    settings = replace(SMALL, pretrain=0, steps=150, gamma=0.5, hard=3, batch=20, temperature=0.3)
    made = PairTrainer(TinyEncoder(), toy(), settings, tokens=start.tokens, whole=start.whole)
    before = measured(made)["tokens"]
    made.run()
    assert measured(made)["tokens"] > before


def test_units_without_unit_rows_keep_their_masks_alone() -> None:
    config = WinnerConfig.paper(d_sae=32, k=4)
    bucket = Bucket(20, config, seed=0)
    assert bucket.live.shape == (32, 6)
    assert len({tuple(row) for row in bucket.live.tolist()}) > 16  # inputs of its own for each unit
    with torch.no_grad():
        bucket.W.mul_(3).add_(0.1)
        before = bucket.mask(bucket.W).clone()
    bucket.restrain()
    torch.testing.assert_close(bucket.W.detach(), before)
    live = np.zeros((32, 20), bool)
    np.put_along_axis(live, bucket.live, True, axis=1)
    assert (bucket.W.detach().numpy()[~live] == 0).all()


def test_a_gradient_without_a_limit_is_not_clipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_model(tmp_path, "bert").save_pretrained(str(tmp_path / "model"))
    encoder = SentenceEncoder.open(str(tmp_path / "model"))
    clipped: list[float] = []
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda _, most: clipped.append(most))
    for clip in (None, 0.5):
        WinnerTrainer(encoder, pairs(), WinnerConfig.paper(d_sae=64, k=6, batch=4, steps=1, clip=clip)).run()
    assert set(clipped) == {0.5}


def test_the_command_begins_with_what_differs(tmp_path: Path) -> None:
    small_model(tmp_path, "bert").save_pretrained(str(tmp_path / "model"))
    text = tmp_path / "texts.jsonl"
    rows = [f'{{"id": "{at}", "title": "title {at}", "text": "text {at} of yeast and dough"}}\n' for at in range(24)]
    text.write_text("".join(rows))
    common = (
        "train",
        text,
        "--paper",
        "--encoder",
        tmp_path / "model",
        "--steps",
        1,
        "--batch",
        4,
        "--negatives",
        "none",
    )
    ssr = good(*common, "--recipe", "ssr", "--latents", 32, "--sae-k", 2, "--no-whole", "--out", tmp_path / "a")
    for each in ssr_config.DIFFERS:
        assert str(each) in " ".join(ssr.stderr.split())
    assert (tmp_path / "a-encoder").is_dir()  # the encoder learned, as in the paper
    assert str(tmp_path / "a-encoder") in ssr.stderr  # and the next command names it
    uhd = good(*common, "--recipe", "uhd", "--latents", 64, "--sae-k", 2, "--out", tmp_path / "b")
    for each in uhd_config.DIFFERS:
        assert str(each) in " ".join(uhd.stderr.split())
