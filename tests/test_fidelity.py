"""Fidelity: states rebuilt from codes, and what retrieval with them keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lexent.encoders import Encoder, TinyEncoder
from lexent.encoders.encoder import encode
from lexent.errors import InputError, MismatchError
from lexent.evaluation import baselines
from lexent.evaluation.collections import Collection
from lexent.evaluation.pooling import pooling_of
from lexent.evaluation.vector_search import nearest, spearman
from lexent.lexicon import Lexicon
from lexent.lexicon.concepts import Concept, Concepts
from lexent.lexicon.lexicon import LexiconInfo
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.sae.config import SAEConfig
from lexent.studies.fidelity import fidelity
from lexent.studies.state_reconstruction import Tally
from lexent.types import Level, RowCodes
from small import TOPICS, documents


def collection(n: int = 40) -> Collection:
    docs = documents(n)
    queries = {f"q{topic}": f"{topic} {' '.join(words.split()[:3])}" for topic, words in TOPICS.items()}
    qrels = {
        query: {doc.id: 1 for at, doc in enumerate(docs) if list(TOPICS)[at % 4] == query[1:]} for query in queries
    }
    return Collection("topics", docs, queries, qrels)


def perfect(level: Level, *, unit: bool = False) -> Lexicon:
    """Each coordinate and its negative are latents: with k = d_in nothing is lost."""
    d = TinyEncoder.dim
    rows = np.concatenate([np.eye(d), -np.eye(d)]).astype(np.float32)
    config = SAEConfig(d, 2 * d, d, tied=True, unit_states=unit, mean_length=3.0 if unit else 0.0)
    sae = SparseAutoencoder(
        config, encoder=rows, decoder=None, b_enc=np.zeros(2 * d, np.float32), b_dec=np.zeros(d, np.float32)
    )
    concepts = Concepts([Concept(latent, f"concept {latent}") for latent in range(2 * d)])
    return Lexicon(sae, concepts, LexiconInfo("perfect", "tiny", TinyEncoder.fingerprint, level))


@pytest.mark.parametrize("level", ["pooled", "tokens"])
@pytest.mark.parametrize("unit", [False, True])
def test_a_code_that_loses_nothing(level: Level, unit: bool) -> None:
    report = fidelity(collection(), lexicon=perfect(level, unit=unit), encoder=TinyEncoder(), k=[4, 32])
    few, all_ = report.rows
    assert (few.k, all_.k) == (4, 32)
    assert all_.documents["nmse"] == pytest.approx(0, abs=1e-9)
    assert all_.documents["cosine"] == pytest.approx(1, abs=1e-6)
    assert all_.spearman == pytest.approx(1, abs=1e-3)
    assert all_.kept["nDCG@10"] == pytest.approx(1)
    assert all_.p_values["nDCG@10"] == 1
    assert 0.1 < few.documents["nmse"] < 1
    assert few.documents["cosine"] < 0.99
    assert few.spearman is not None
    assert few.spearman < 0.999
    assert few.documents["active"] == {"mean": 4.0, "p5": 4, "p25": 4, "p50": 4, "p75": 4, "p95": 4}


def test_nmse_is_one_for_the_mean_and_the_obvious_sum_otherwise() -> None:
    random = np.random.default_rng(0)
    states = random.standard_normal((50, 8)).astype(np.float32) + 2
    codes = RowCodes(np.zeros((50, 1), np.int32), np.zeros((50, 1), np.float32), np.arange(51))
    guess = Tally(4)
    guess.add(states[:20], np.tile(states.mean(axis=0), (20, 1)), codes)
    guess.add(states[20:], np.tile(states.mean(axis=0), (30, 1)), codes)
    assert guess.nmse == pytest.approx(1, rel=1e-5)
    made = states + 0.1 * random.standard_normal(states.shape).astype(np.float32)
    other = Tally(4)
    other.add(states, made, codes)
    spread = np.square(states - states.mean(axis=0)).sum()
    assert other.nmse == pytest.approx(np.square(states - made).sum() / spread, rel=1e-4)


def test_the_spread_of_active_latents_and_the_live_ones() -> None:
    ids = np.tile(np.arange(4, dtype=np.int32), (10, 1))
    values = (np.arange(4) < np.arange(10)[:, None] % 3 + 1).astype(np.float32)  # 1, 2 or 3 of them
    tally = Tally(9)
    states = np.eye(10, 5, dtype=np.float32)
    tally.add(states, states, RowCodes(ids, values, np.arange(11)))
    found = tally.to_dict()
    assert found["active"]["mean"] == pytest.approx(values.sum() / 10)
    assert (found["active"]["p5"], found["active"]["p50"], found["active"]["p95"]) == (1, 2, 3)
    assert found["live"] == 3


def test_nearest_in_blocks_is_nearest_at_once() -> None:
    random = np.random.default_rng(1)
    queries, rows = (random.integers(-3, 4, (n, 6)).astype(np.float32) for n in (7, 90))  # many ties
    whole = nearest(queries, [rows], k=20)
    parts = nearest(queries, [rows[:13], rows[13:14], rows[14:]], k=20)
    assert np.array_equal(whole[1], parts[1])
    expected = np.sort(queries @ rows.T, axis=1)[:, ::-1][:, :20]
    assert np.array_equal(whole[1], expected)
    few = nearest(queries, [rows[:3]], k=20)
    assert few[0].shape == (7, 3)


def test_spearman_is_scipys() -> None:
    from scipy.stats import spearmanr

    random = np.random.default_rng(2)
    queries, rows = random.standard_normal((3, 5)), random.standard_normal((40, 5))
    noisy = rows + 0.5 * random.standard_normal(rows.shape)
    found = spearman((queries, queries), (rows, noisy))
    for row in range(3):
        assert found[row] == pytest.approx(spearmanr(rows @ queries[row], noisy @ queries[row]).statistic)


def test_pooling_is_found_by_looking() -> None:
    texts = [doc.content for doc in documents(6)]
    assert pooling_of(TinyEncoder(), texts, kind="document") == "mean"

    class First(TinyEncoder):
        def batches(self, texts, *, kind, level="tokens", specials=True):  # type: ignore[no-untyped-def]
            for positions, states in super().batches(texts, kind=kind, specials=specials):
                if level == "pooled":
                    from lexent.types import States

                    states = States(states.values[states.offsets[:-1]] * 3, np.arange(len(positions) + 1))
                yield positions, states

    class Odd(First):
        def batches(self, texts, *, kind, level="tokens", specials=True):  # type: ignore[no-untyped-def]
            for positions, states in super().batches(texts, kind=kind, level=level, specials=specials):
                if level == "pooled":
                    states.values[:, ::2] *= -1
                yield positions, states

    assert pooling_of(First(), texts, kind="document") == "first"
    assert pooling_of(Odd(), texts, kind="document") is None
    report = fidelity(collection(), lexicon=perfect("tokens"), encoder=Odd(), k=[4])
    assert report.rows[0].measures == {}
    assert "not known" in report.notes[0]


def test_a_sample_keeps_what_is_judged() -> None:
    whole = collection(40)
    assert whole.sampled(documents=40, seed=0) is whole
    part = whole.sampled(documents=30, seed=0, queries=2)
    assert len(part.queries) == 2
    assert len(part.documents) == 30
    kept = {doc.id for doc in part.documents}
    assert {id for judged in part.qrels.values() for id in judged} <= kept
    report = fidelity(whole, lexicon=perfect("tokens"), encoder=TinyEncoder(), k=[8], sample=20)
    assert "of 40 documents" in report.notes[0]
    assert report.documents == 40


def test_pooled_states_are_as_the_encoder_gives_them() -> None:
    texts = [doc.content for doc in documents(5)]
    states = baselines.pooled_states(TinyEncoder(), texts, kind="document")
    assert np.allclose(states, encode(TinyEncoder(), texts, kind="document", level="pooled").numpy())
    assert not np.allclose(np.linalg.norm(states, axis=1), 1)
    assert np.allclose(np.linalg.norm(baselines.pooled(TinyEncoder(), texts, kind="document"), axis=1), 1)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="k is 0"):
        fidelity(collection(), lexicon=perfect("pooled"), encoder=TinyEncoder(), k=[0])
    with pytest.raises(InputError, match="sample is 0"):
        fidelity(collection(), lexicon=perfect("pooled"), encoder=TinyEncoder(), sample=0)
    with pytest.raises(InputError, match="no shipped lexicon"):
        fidelity(collection(), encoder=TinyEncoder())
    other = Lexicon(perfect("pooled").sae, perfect("pooled").concepts, LexiconInfo("x", "y", "z", "pooled"))
    with pytest.raises(MismatchError):
        fidelity(collection(), lexicon=other, encoder=TinyEncoder())


@pytest.mark.data
def test_pooled_states_of_the_default_encoder(data_dir: Path, shared_encoder: Encoder) -> None:
    from lexent.evaluation import load

    whole = load(data_dir / "limit-small")
    few_queries = dict(list(whole.queries.items())[:50])
    whole = replace(whole, queries=few_queries, qrels={query: whole.qrels[query] for query in few_queries})
    lexicon = Lexicon.random(shared_encoder, size=1024, k=64, level="pooled")
    report = fidelity(whole, lexicon=lexicon, encoder=shared_encoder, k=[8, 64])
    few, many = report.rows
    assert few.documents["cosine"] < many.documents["cosine"]
    assert few.documents["active"]["mean"] == 8
