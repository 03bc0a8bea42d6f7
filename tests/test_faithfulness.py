"""Faithfulness: concepts taken away in the order of the explanation, and what the retrievers then see."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lexent import recipes
from lexent.encoders import TinyEncoder
from lexent.encoders.encoder import encode
from lexent.errors import InputError
from lexent.evaluation import baselines, load
from lexent.evaluation.systems import Bench
from lexent.lexicon import Lexicon
from lexent.studies.explained_pairs import Pairs, placed
from lexent.studies.faithfulness import SHARES, Trial, faithfulness
from lexent.types import Level
from test_fidelity import collection, perfect

CLSR = recipes.get("clsr-efficient").changed(k=16, b=0.5)


def pairs(level: Level, lexicon: Lexicon | None = None, target: str = "top") -> Pairs:
    whole = collection()
    recipe = CLSR if level == "pooled" else recipes.get("latent-terms")
    system = Bench(encoder=TinyEncoder(), lexicon=lexicon or perfect(level)).latent(recipe)
    dense = (
        baselines.pooled_states(system.encoder, whole.texts, kind="document"),
        baselines.pooled_states(system.encoder, list(whole.queries.values()), kind="query"),
    )
    return Pairs(whole, system, dense=dense, target=target)


def ones(pairs: Pairs, row: int, kind: str) -> np.ndarray:
    pair = pairs.at(row)
    assert pair is not None
    return np.ones((1, pair.sizes[kind]), bool)  # type: ignore[index]


@pytest.mark.parametrize("level", ["pooled", "tokens"])
@pytest.mark.parametrize("kind", ["query", "document"])
def test_a_whole_text_scores_as_it_does_in_a_search(level: Level, kind: str) -> None:
    made = pairs(level)
    found = made.document_scorer.top_weighted(made.queries, 1)
    documents, queries = made.states["document"], made.states["query"]
    for row in range(len(made)):
        pair = made.at(row)
        assert pair is not None
        seen = pair.sides[kind]["index"].without(ones(made, row, kind))  # type: ignore[index]
        assert seen.scores[0] == pytest.approx(found.scores[row, 0], rel=1e-5)
        assert seen.places[0] == 1
        cosines = (documents @ queries[row]) / np.linalg.norm(documents, axis=1) / np.linalg.norm(queries[row])
        seen = pair.sides[kind]["dense"].without(ones(made, row, kind))  # type: ignore[index]
        target = int(found.positions[row, 0])
        assert seen.scores[0] == pytest.approx(cosines[target], abs=1e-5)
        assert 1 / seen.places[0] == pytest.approx(1 + (cosines > cosines[target] + 1e-7).sum())


@pytest.mark.parametrize("unit", [False, True])
def test_taking_a_concept_from_token_states_is_taking_it_from_the_vector(unit: bool) -> None:
    """The shortcut over sums equals changing every token's state and pooling anew."""
    lexicon = perfect("tokens", unit=unit)
    made = pairs("tokens", lexicon)
    ids, _ = made.queries.of(1)
    text = made.texts["query"][1]
    states = encode(TinyEncoder(), [text], kind="query")
    rows, codes = states.numpy().copy(), lexicon.codes(states, k=16)
    concept = int(ids[3])
    z = np.where(codes.ids == concept, codes.values, 0).sum(axis=1)
    if unit:
        z = z / (np.linalg.norm(rows, axis=1) / 3.0) * np.linalg.norm(rows, axis=1)
    changed = (rows - z[:, None] * lexicon.sae.decoder_rows[concept]).mean(axis=0)
    found = made._dense_text("query", 1, ids)
    masks = np.ones((1, len(ids)), bool)
    masks[0, 3] = False
    assert np.allclose(found.without(masks)[0], changed / np.linalg.norm(changed), atol=1e-5)
    everything = (rows).mean(axis=0)
    assert np.allclose(found.vector, everything, atol=1e-5)


def test_concepts_alone_rebuild_a_perfect_code() -> None:
    made = pairs("pooled", perfect("pooled"))
    ids = np.arange(64, dtype=np.int32)
    found = made._dense_text("document", 2, ids)
    states = made.states["document"][2]
    strongest = np.argsort(-np.abs(states))[:16]  # k is 16
    expected = np.zeros_like(states)
    expected[strongest] = states[strongest]
    assert np.allclose(found.alone(np.ones((1, 64), bool))[0], expected / np.linalg.norm(expected), atol=1e-5)


def test_places_count_what_is_above_and_earlier_equals() -> None:
    scores = np.array([[3.0, 2.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    assert placed(scores, 2).places.tolist() == [1 / 2, 1 / 3]
    assert placed(scores, 2, found_above=0).places.tolist() == [1 / 2, 0]
    assert placed(scores, 3).places.tolist() == [1 / 4, 1 / 4]


def by_name(found: tuple[Trial, ...]) -> dict[tuple[str, str, str], Trial]:
    return {(trial.watched, trial.side, trial.way): trial for trial in found}


@pytest.mark.parametrize("recipe", ["latent-terms", "clsr"])
def test_curves(recipe: str) -> None:
    chosen = recipes.get(recipe) if recipe == "latent-terms" else CLSR
    level: Level = "tokens" if recipe == "latent-terms" else "pooled"
    report = faithfulness(collection(), recipe=chosen, lexicon=perfect(level), encoder=TinyEncoder(), draws=3)
    found = report.recipes[0]
    assert found.pairs == 4
    tests = by_name(found.trials)
    assert len(tests) == 8
    for (watched, side, way), test in tests.items():
        curves = test.curves
        assert set(curves) == {"explained", "random", "weakest", "any"}
        explained = curves["explained"]
        assert len(explained.score) == len(SHARES)
        if watched == "index":
            start, end = (1.0, 0.0) if way == "deletion" else (0.0, 1.0)
            assert explained.score[0] == pytest.approx(start, abs=1e-6)
            assert explained.score[-1] == pytest.approx(end, abs=1e-5)
            better = explained.score_area < curves["random"].score_area < curves["weakest"].score_area
            assert better == (way == "deletion"), (side, way)
        sums = np.trapezoid(explained.score, SHARES)
        assert explained.score_area == pytest.approx(sums)
    # The reverse of a deletion is an insertion: on the document's side nothing else is there to differ.
    taken, put = (tests["index", "document", way].curves for way in ("deletion", "insertion"))
    assert taken["explained"].score_area + put["explained"].score_area == pytest.approx(1, abs=1e-5)
    json.dumps(report.to_json())


def test_the_same_seed_gives_the_same_report() -> None:
    settings = {"recipe": CLSR, "lexicon": perfect("pooled"), "encoder": TinyEncoder(), "queries": 3}
    first, again, other = (faithfulness(collection(), seed=seed, **settings) for seed in (1, 1, 2))  # type: ignore[arg-type]
    assert first == again
    assert first != other


def test_gold_targets_are_relevant() -> None:
    made = pairs("pooled", target="gold")
    for row, query in enumerate(made.ids):
        target = made._target(row)
        assert target is not None
        assert made.collection.documents[target].id in made.collection.qrels[query]


def test_in_a_large_collection_ranks_are_among_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    from lexent.studies import explained_pairs as module

    everywhere = pairs("pooled")
    whole = [everywhere.at(row) for row in range(len(everywhere))]
    monkeypatch.setattr(module, "MAX_RANKED_DOCUMENTS", 10)
    monkeypatch.setattr(module, "BEST_DOCUMENTS", 12)
    few = pairs("pooled")
    for row in range(len(few)):
        left, right = whole[row], few.at(row)
        assert left is not None
        assert right is not None
        for kind in ("query", "document"):
            for watched in ("index", "dense"):
                masks = np.ones((1, left.sizes[kind]), bool)  # type: ignore[index]
                one, two = (each.sides[kind][watched].without(masks) for each in (left, right))  # type: ignore[index]
                assert one.scores[0] == pytest.approx(two.scores[0], rel=1e-5)
                if one.places[0] > 1 / 12:
                    assert one.places[0] == two.places[0]


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match='target is "best"'):
        faithfulness(collection(), target="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="draws is 0"):
        faithfulness(collection(), draws=0)


@pytest.mark.data
def test_explanations_of_latent_terms_are_faithful_to_the_dense_retriever(
    data_dir: Path, shared_encoder: object
) -> None:
    whole = load(data_dir / "cranfield")
    documents = whole.documents[:60]
    ids = {document.id for document in documents}
    qrels = {query: judged for query, judged in whole.qrels.items() if len(ids & judged.keys()) > 0}
    part = replace(whole, documents=documents, qrels=qrels, queries={query: whole.queries[query] for query in qrels})
    report = faithfulness(part, recipe="latent-terms", encoder=shared_encoder, queries=20, draws=3)
    trials = by_name(report.recipes[0].trials)
    for side in ("query", "document"):
        taken = trials["dense", side, "deletion"]
        assert taken.curves["explained"].score_area < taken.curves["random"].score_area
        assert taken.p_values["random"]["score"] < 0.01
