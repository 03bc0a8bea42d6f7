"""The bound on products of codes: toys whose numbers are known, and what a real lexicon gives."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lexent.encoders import TinyEncoder
from lexent.lexicon import Lexicon
from lexent.lexicon.concepts import Concept, Concepts
from lexent.lexicon.lexicon import LexiconInfo
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.sae.config import SAEConfig
from lexent.studies.fidelity import fidelity
from lexent.studies.maxsim_theory import Theory, check, tables, theory
from lexent.types import States
from test_fidelity import collection


def lexicon(
    rows: NDArray[np.float32], *, k: int, bias: NDArray[np.float32] | None = None, unit: bool = False
) -> Lexicon:
    size, d = rows.shape
    config = SAEConfig(d, size, k, tied=True, unit_states=unit, mean_length=2.0 if unit else 0.0)
    bias = np.zeros(d, np.float32) if bias is None else bias
    sae = SparseAutoencoder(config, encoder=rows, decoder=None, b_enc=np.zeros(size, np.float32), b_dec=bias)
    concepts = Concepts([Concept(latent, f"concept {latent}") for latent in range(size)])
    return Lexicon(sae, concepts, LexiconInfo("toy", "tiny", TinyEncoder.fingerprint, "tokens", match="maxsim"))


def states(rows: NDArray[np.float32], *texts: int) -> States:
    return States(torch.from_numpy(rows), np.cumsum([0, *texts]).astype(np.int64))


def checked(toy: Lexicon, queries: States, documents: States, *, k: int, pairs: int = 200) -> Theory:
    codes = toy.codes(queries, k=k), toy.codes(documents, k=k)
    return check(toy, (queries, documents), codes, k=k, pairs=pairs)


@pytest.mark.parametrize("unit", [False, True])
def test_an_orthonormal_dictionary_loses_nothing(unit: bool) -> None:
    random = np.random.default_rng(0)
    rows = random.random((60, 8)).astype(np.float32) * (random.random((60, 8)) < 0.4) + np.eye(60, 8, dtype=np.float32)
    rows[:, 0] += 0.1  # none is empty
    bias = np.zeros(8, np.float32) if unit else np.linspace(-1, 1, 8, dtype=np.float32)
    toy = lexicon(np.eye(8, dtype=np.float32), k=8, bias=bias, unit=unit)
    found = checked(toy, states(rows[:20] + bias, 5, 15), states(rows[20:] + bias, 10, 10, 20), k=8)
    assert found.error["largest"] == pytest.approx(0, abs=1e-5)
    assert found.delta["largest"] == 0
    assert found.coherence["largest"] == 0
    assert found.distortion["largest"] == pytest.approx(0, abs=1e-5)
    assert found.bound == pytest.approx(0, abs=1e-4)
    assert found.within == found.within_own == found.maxsim["within"] == 1
    assert found.correlation == pytest.approx(1)
    assert found.maxsim["spearman"] == pytest.approx(1)
    assert found.maxsim["pairs"] == 6
    assert "nothing is lost" in found.reading()


def test_what_is_left_out_is_the_error_and_the_bound_is_the_formula() -> None:
    """Of (3, 4) the code keeps 4: e is 3, R is 5, and the product of two such is 16 for 25."""
    rows = np.tile(np.array([[3.0, 4.0]], np.float32), (4, 1))
    found = checked(lexicon(np.eye(2, dtype=np.float32), k=1), states(rows[:2], 2), states(rows[2:], 1, 1), k=1)
    assert found.length == pytest.approx(5)
    assert found.error["mean"] == pytest.approx(3)
    assert found.distortion["mean"] == pytest.approx(9)
    assert found.rebuilding["mean"] == pytest.approx(9)
    assert found.overlap["mean"] == pytest.approx(0)
    assert found.bound == pytest.approx(2 * 5 * 3 + 9)
    assert found.own_bound["largest"] == pytest.approx(5 * 3 + 5 * 3 + 9)
    assert found.maxsim["distortion"]["mean"] == pytest.approx(18)
    assert found.maxsim["bound"] == pytest.approx(2 * 39)


def test_directions_that_are_not_at_right_angles_are_the_other_part() -> None:
    """Two directions 60 degrees apart, each a state's only latent: their product is a half, and that of codes is 0."""
    rows = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]], np.float32)
    found = checked(lexicon(rows, k=1), states(rows[:1], 1), states(rows[1:], 1), k=1)
    assert found.error["largest"] == pytest.approx(0, abs=1e-6)
    assert found.coherence["largest"] == pytest.approx(0.5)
    assert found.delta["largest"] == pytest.approx(0.5)
    assert found.distortion["mean"] == pytest.approx(0.5)
    assert found.overlap["mean"] == pytest.approx(0.5)
    assert found.bound == pytest.approx(0.5, abs=1e-5)  # as tight as can be
    assert found.within == 1


def test_the_norm_counts_all_directions_of_a_pair_not_only_the_nearest() -> None:
    """Many small products add up: the bound with the largest |<d, d>| in place of the norm does not hold."""
    random = np.random.default_rng(2)
    rows = random.standard_normal((64, 12)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    given = random.standard_normal((80, 12)).astype(np.float32) + 2
    found = checked(lexicon(rows, k=24), states(given[:30], 30), states(given[30:], 25, 25), k=24, pairs=500)
    assert found.within == found.within_own == found.maxsim["within"] == 1
    assert found.delta["p50"] > found.coherence["largest"]
    assert found.bound > found.own_bound["mean"] > found.distortion["mean"] > 0
    assert "times the mean distortion" in found.reading()


def test_fidelity_checks_it_for_lexicons_of_maxsim_alone(tmp_path: Path) -> None:
    made = Lexicon.random(TinyEncoder(), size=96, k=8)
    plain = fidelity(collection(), lexicon=made, encoder=TinyEncoder(), k=[4])
    assert plain.rows[0].theory is None
    for_maxsim = made.renamed(made.concepts, replace(made.info, match="maxsim"))
    report = fidelity(collection(), lexicon=for_maxsim, encoder=TinyEncoder(), k=[4, 8])
    found = [row.theory for row in report.rows]
    assert [one.k for one in found if one is not None] == [4, 8]
    assert found[0] is not None
    assert found[0].within == 1
    assert found[0] == theory(collection(), for_maxsim, TinyEncoder(), ks=[4])[0]
    assert json.loads(json.dumps(report.to_json()))["rows"][0]["theory"]["k"] == 4
    assert [table.title for table in tables([found[0]])][1] == "products of codes against products of states"
    assert asdict(found[0])["maxsim"]["pairs"] == 4 * 40
