"""Training on several domains of text: how often each is drawn, states that are kept, and codes that can be cut."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexent.encoders import TinyEncoder
from lexent.encoders.encoder import encode
from lexent.errors import InputError, MismatchError
from lexent.training.reconstruction.model import TopKModel
from lexent.training.reconstruction.train import train, with_sources
from lexent.training.reconstruction.trainer import TrainConfig, Trainer
from lexent.training.stream import MAX_DOMAIN_SHARE, KeptStates, StateStream, balanced

NONE = torch.empty(0, dtype=torch.long)
WORDS = [f"word{number}" for number in range(60)]


def texts(n: int, *, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(5, 12))) for _ in range(n)]


def domain_shares(given: list[str], domains: list[int], weights: np.ndarray) -> np.ndarray:
    """The share of the characters drawn that each domain has."""
    drawn = np.bincount(domains, weights=weights * [len(text) for text in given])
    return drawn / drawn.sum()


def test_a_domain_is_drawn_by_the_root_of_its_size() -> None:
    """Twenty domains, the last 16 times the first: with a power of 0.5 it has 4 times the share."""
    sizes = [1, 2, *range(3, 20), 16]
    domains = [domain for domain, size in enumerate(sizes) for _ in range(size)]
    given = ["x" * 50] * len(domains)
    shares = domain_shares(given, domains, balanced(given, domains, power=0.5))
    assert shares[-1] / shares[0] == pytest.approx(4)
    assert balanced(given, domains, power=0.5).sum() == pytest.approx(len(given))


def test_domains_can_be_drawn_alike_and_as_they_are() -> None:
    domains = [0] * 4 + [1] * 6 + [2] * 5 + [3] * 5 + [4] * 5 + [5] * 5
    given = ["y" * 30] * len(domains)
    assert domain_shares(given, domains, balanced(given, domains, power=0)) == pytest.approx(1 / 6)
    assert balanced(given, domains, power=1) == pytest.approx(1)


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
)
def test_no_domain_has_more_than_a_fifth(sizes: list[int], power: float) -> None:
    domains = [domain for domain, size in enumerate(sizes) for _ in range(size)]
    given = [f"{place:0{10 + place % 7}d}" for place in range(len(domains))]
    weights = balanced(given, domains, power=power)
    assert (weights > 0).all()
    shares = domain_shares(given, domains, weights)
    assert shares.max() <= max(MAX_DOMAIN_SHARE, 1 / len(sizes)) + 1e-9
    chars = np.bincount(domains, weights=[len(text) for text in given])
    assert (np.diff(shares[np.argsort(chars, kind="stable")]) >= -1e-9).all()  # a larger domain never has less


def test_a_pass_has_each_text_as_often_as_its_weight() -> None:
    weights = np.array([0.25, 2.5, 1.0, 0.25] * 10)
    stream = StateStream(texts(40), TinyEncoder(), weights=weights, passes=8, block_texts=16)
    counts = np.stack([np.bincount(stream._order(number), minlength=40) for number in range(8)])
    assert (counts.sum(axis=1) == 40).all()
    assert (counts >= np.floor(weights)).all()
    assert (counts <= np.ceil(weights)).all()
    assert len({tuple(row) for row in counts}) > 1  # each pass draws anew


def test_kept_states_are_those_that_are_encoded_anew() -> None:
    weights = np.linspace(0.2, 1.8, 60)
    common = {"passes": 2, "block_texts": 25, "weights": weights}
    anew, kept = (StateStream(texts(60), TinyEncoder(), keep=keep, **common) for keep in (False, True))
    for number in range(anew.blocks):
        one, other = anew.block(number), kept.block(number)
        assert len(one) == len(other)
        order = [torch.from_numpy(np.lexsort(rows.numpy().T)) for rows in (one, other)]
        assert torch.equal(one[order[0]], other[order[1]])


def test_kept_states_in_several_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, given = TinyEncoder(), texts(50)
    whole = KeptStates.of_batches(encoder.batches(given, kind="document"), len(given))
    monkeypatch.setattr("lexent.training.stream.ROWS_PER_TENSOR", 40)
    batches = [([row], encode(encoder, [given[row]], kind="document")) for row in reversed(range(len(given)))]
    parts = KeptStates.of_batches(((np.array(rows), states) for rows, states in batches), len(given))
    assert len(whole.parts) == 1
    assert len(parts.parts) > 5
    for chosen in (np.arange(50), np.array([7, 7, 0, 49, 3]), np.array([], np.int64)):
        assert torch.equal(parts.of(chosen), whole.of(chosen))


def test_the_nested_loss_is_the_mean_of_both() -> None:
    model = TopKModel(16, 64, tied=False, seed=0)
    x = torch.randn(200, 16, generator=torch.Generator().manual_seed(1))
    shared = {"dead": NONE, "k_aux": 4, "aux_weight": 0.0, "autocast": False}
    wide, narrow = (model.loss(x, k=k, **shared).total for k in (8, 3))
    both = model.loss(x, k=8, nested_k=3, **shared)
    assert both.total.item() == pytest.approx((wide + narrow).item() / 2, rel=1e-5)
    assert both.fvu.item() == pytest.approx(wide.item(), rel=1e-5)  # what is reported stays that of k


def test_nested_training_rebuilds_better_from_few_latents() -> None:
    def unexplained(nested_k: int | None) -> float:
        stream = StateStream(texts(400), TinyEncoder(), passes=6, block_texts=100)
        config = TrainConfig(d_sae=96, k=12, nested_k=nested_k, batch=64, lr=3e-3, k_aux=16, dead_after=2000)
        trainer = Trainer(stream, config)
        trainer.run()
        x = trainer._prepared(stream.states(texts(80, seed=5))) * trainer.scale
        loss = trainer.model.loss(x, k=2, dead=NONE, k_aux=1, aux_weight=0.0, autocast=False)
        return float(loss.fvu)

    assert unexplained(2) < unexplained(None)


@pytest.mark.parametrize("wrong", [{"nested_k": 0}, {"nested_k": 17}, {"nested_k": 4, "architecture": "batchtopk"}])
def test_nested_k_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="nested_k"):
        TrainConfig(**wrong)  # type: ignore[arg-type]


def test_sentences_know_their_text() -> None:
    long = "The first sentence is long enough. The second sentence is long enough too. A third one follows here."
    found, sources = with_sources(["a short text", long], 2)
    assert sources == [0, 1, 1, 1]
    assert all(sentence in long for sentence in found[2:])


def test_training_on_files_is_balanced(tmp_path: Path) -> None:
    for name, count in (("small", 12), ("large", 300)):
        rows = (json.dumps({"text": text}) for text in texts(count, seed=count))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    files = [tmp_path / "small.jsonl", tmp_path / "large.jsonl"]
    config = TrainConfig(d_sae=96, k=4, batch=64, lr=3e-3, k_aux=16, dead_after=2000)
    lexicon = train(files, out=tmp_path / "balanced", encoder="tiny", config=config, balance=0.5)
    assert lexicon.info.training["balance"] == 0.5
    assert lexicon.info.training["domains"] == 2
    plain = train(files, out=tmp_path / "plain", encoder="tiny", config=config)
    assert "balance" not in plain.info.training
    assert lexicon.hash != plain.hash


@pytest.mark.parametrize("balance", [-0.1, 1.5, "much"])
def test_a_balance_that_cannot_be(tmp_path: Path, balance: object) -> None:
    with pytest.raises(InputError, match="balance"):
        train(texts(20), out=tmp_path / "x", encoder="tiny", balance=balance)  # type: ignore[arg-type]


def test_domains_are_as_many_as_texts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 domains for 20 texts"):
        train(texts(20), out=tmp_path / "x", encoder="tiny", balance=0.5, domains=[0, 1, 2])


def test_a_text_in_two_files_counts_in_both(tmp_path: Path) -> None:
    """The small file's texts are all in the large one, too; its domain still has half of the states."""
    small, large = texts(20, seed=1), [*texts(20, seed=1), *texts(180, seed=2)]
    weights = balanced([*small, *large], [0] * 20 + [1] * 200, power=0)
    for name, rows in (("small", small), ("large", large)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in rows))
    drawn: list[np.ndarray] = []

    class Watched(Trainer):
        def __init__(self, stream: StateStream, config: TrainConfig, **more: object) -> None:
            drawn.append(stream.weights)  # type: ignore[arg-type]
            super().__init__(stream, config, **more)  # type: ignore[arg-type]

    config = TrainConfig(d_sae=96, k=4, batch=64, lr=3e-3, k_aux=16, dead_after=2000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lexent.training.reconstruction.trainer.Trainer", Watched)
        files = [tmp_path / "small.jsonl", tmp_path / "large.jsonl"]
        train(files, out=tmp_path / "x", encoder="tiny", config=config, balance=0, sentences=0)
    assert np.allclose(drawn[0], weights)
    assert weights[0] == pytest.approx(10 * weights[-1], rel=0.2)


def test_a_pass_has_as_many_characters_as_the_texts() -> None:
    """Three scraps of text are a domain: they are drawn often, and the pass does not shrink."""
    given = [*texts(100), "a", "b", "c"]
    weights = balanced(given, [0] * 100 + [1] * 3, power=0.5)
    lengths = np.array([len(text) for text in given])
    assert (weights * lengths).sum() == pytest.approx(lengths.sum())
    stream = StateStream(given, TinyEncoder(), weights=weights, passes=1, block_texts=64)
    assert stream.blocks == -(-round(weights.sum()) // 64)
    assert sum(len(stream.block(number)) for number in range(stream.blocks)) > 0


def test_a_balanced_run_does_not_go_on_as_a_plain_one(tmp_path: Path) -> None:
    config = TrainConfig(d_sae=96, k=4, batch=64, lr=3e-3, k_aux=16, dead_after=2000)
    given, common = texts(240), {"passes": 2, "block_texts": 40}
    weights = balanced(given, [0] * 40 + [1] * 200, power=0)
    Trainer(StateStream(given, TinyEncoder(), weights=weights, **common), config, folder=tmp_path).run()
    with pytest.raises(MismatchError, match="weights"):
        Trainer(StateStream(given, TinyEncoder(), **common), config, folder=tmp_path)
