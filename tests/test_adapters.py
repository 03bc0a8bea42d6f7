"""Adapters on arrays: what they compute, what they learn, what they refuse, and what they say of themselves."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lexent.adapters import Adapter, AdapterConfig, AdapterInfo, TrainSettings, load, save
from lexent.adapters.adapter import WEIGHTS, centred, shapes, unit
from lexent.adapters.baselines import Hypencoder, HypencoderSearch, ResidualSearch, SearchAdaptor
from lexent.adapters.changes import Structure, change_of, explain_query, lift
from lexent.adapters.corpus import AdaptedCorpus, best
from lexent.adapters.deletion import deletion
from lexent.adapters.dime import Dime
from lexent.adapters.directions import Directions, telling_words
from lexent.adapters.examples import Examples
from lexent.adapters.network import Network, first_projector, train
from lexent.adapters.schedule import follow
from lexent.adapters.validation import Quality
from lexent.errors import ArtifactError, InputError, MismatchError

DIM = 12
INFO = AdapterInfo("test", "tiny", "tiny-1")
FORMS: list[dict[str, Any]] = [
    {"mode": mode, "feedback": feedback, "layer_norm": norm}
    for mode in ("diag", "lowrank", "full")
    for feedback in ("top", "corpus", "none")
    for norm in (False, True)
]


def rows(n: int, seed: int = 0, dim: int = DIM) -> np.ndarray:
    return unit(np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32))


def config(**form: Any) -> AdapterConfig:
    return AdapterConfig(**{"dim": DIM, "width": DIM, "hidden": 6, "rank": 2, "feedback_depth": 3, **form})


def network(form: AdapterConfig, documents: np.ndarray, *, noise: float = 0.0, seed: int = 0) -> Network:
    torch.manual_seed(seed)
    made = Network(form, TrainSettings(), first_projector(form, documents))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    return made.eval()


def adapter(form: AdapterConfig, documents: np.ndarray, *, noise: float = 0.3, seed: int = 0) -> Adapter:
    return Adapter(form, network(form, documents, noise=noise, seed=seed).tensors(documents), INFO)


# --- what is computed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_an_untrained_adapter_is_the_base_retriever(form: dict[str, Any]) -> None:
    documents, queries = rows(30), rows(4, 1)
    corpus = AdaptedCorpus(adapter(config(**form), documents, noise=0), documents)
    wanted = unit(centred(queries)) @ unit(centred(documents)).T if form["layer_norm"] else queries @ documents.T
    for query, expected in zip(queries, wanted, strict=True):
        assert corpus.scores(query) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("width", [DIM, 8])
def test_use_and_training_compute_the_same(form: dict[str, Any], width: int) -> None:
    documents, queries = rows(25), rows(3, 1)
    chosen = config(**form, width=width, start="identity" if width == DIM else "pca")
    learner = network(chosen, documents, noise=0.3)
    corpus = AdaptedCorpus(Adapter(chosen, learner.tensors(documents), INFO), documents)
    for query in queries:
        places = {
            "top": best(documents @ query, chosen.feedback_depth).positions,
            "corpus": np.arange(len(documents)),
            "none": np.empty(0, np.int64),
        }[chosen.feedback]
        with torch.no_grad():
            wanted = learner.scores(
                torch.from_numpy(query)[None], torch.from_numpy(documents), torch.from_numpy(documents[places])[None]
            )[0].numpy()
        assert corpus.scores(query) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_pass_over_all_documents_equals_its_slow_twin(form: dict[str, Any], seed: int) -> None:
    documents = rows(43, seed)
    documents[7] = 0  # a text of which nothing is known
    corpus = AdaptedCorpus(adapter(config(**form), documents, seed=seed), documents)
    query = corpus.query(rows(1, seed + 50)[0])
    assert corpus.scores_of(query) == pytest.approx(corpus.adapter.score(query, corpus.projected), abs=1e-5)


def test_search_and_rerank_order_documents_alike() -> None:
    documents = rows(60)
    corpus = AdaptedCorpus(adapter(config(), documents), documents)
    query = rows(1, 9)[0]
    whole, again = corpus.search(query, 60), corpus.rerank(query, 60)
    assert whole.positions.tolist() == again.positions.tolist()
    assert whole.scores == pytest.approx(again.scores, abs=1e-5)
    few = corpus.rerank(query, 10).positions
    assert set(few.tolist()) == set(best(documents @ query, 10).positions.tolist())
    assert len(corpus.search(query, 3).positions) == 3


def test_the_effective_query_orders_the_numerators() -> None:
    documents = rows(30)
    for form in FORMS:
        made = adapter(config(**form), documents)
        corpus = AdaptedCorpus(made, documents)
        query = corpus.query(rows(1, 5)[0])
        vector = centred(query.vector[None])[0] if made.config.layer_norm else query.vector
        lengths = np.linalg.norm(documents @ made.tensors["projector"].T, axis=1)
        wanted = query.upon.apply(corpus.projected) @ vector
        found = documents @ made.effective(query) / lengths + query.upon.bias @ vector
        assert found == pytest.approx(wanted, abs=1e-4)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="cannot start as the identity"):
        AdapterConfig(DIM, 6)
    with pytest.raises(InputError, match="at most 12"):
        AdapterConfig(DIM, 20, start="pca")
    with pytest.raises(InputError, match="allowed: diag, lowrank, full"):
        config(mode="tensor")
    with pytest.raises(InputError, match="allowed: infonce, improvement, hinge"):
        TrainSettings(loss="mse")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"reads \[n, 12\]"):
        adapter(config(), rows(5)).project(rows(2, dim=5))
    with pytest.raises(InputError, match="no documents"):
        AdaptedCorpus(adapter(config(), rows(5)), rows(5)[:0])


def test_another_encoder_is_refused() -> None:
    from lexent.encoders import TinyEncoder

    encoder = TinyEncoder()
    adapter(config(), rows(5)).check(encoder)
    encoder.fingerprint = "other"
    with pytest.raises(MismatchError, match="train one for it"):
        adapter(config(), rows(5)).check(encoder)


# --- on disk -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS[::2], ids=str)
def test_what_is_saved_and_opened_gives_the_same_scores(form: dict[str, Any], tmp_path: Path) -> None:
    documents, query = rows(20), rows(1, 3)[0]
    made = adapter(config(**form), documents)
    save(made, tmp_path / "a")
    again = load(tmp_path / "a")
    assert (again.config, again.info, again.hash) == (made.config, made.info, made.hash)
    assert (AdaptedCorpus(again, documents).scores(query) == AdaptedCorpus(made, documents).scores(query)).all()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [WEIGHTS, "manifest.json"]
    with pytest.raises(InputError, match="--overwrite"):
        save(made, tmp_path / "a")
    save(replace_info(made, name="new"), tmp_path / "a", overwrite=True)
    assert load(tmp_path / "a").name == "new"


def replace_info(made: Adapter, **facts: Any) -> Adapter:
    return Adapter(made.config, made.tensors, replace(made.info, **facts))


def rewritten(folder: Path, **changes: Any) -> None:
    """The manifest with other values, its file described as it now is."""
    from lexent.artifact import describe_files

    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.update({"files": describe_files(folder), **changes})
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_hostile_and_damaged_files_are_refused(tmp_path: Path) -> None:
    import pickle

    from safetensors.numpy import save as packed

    made = adapter(config(), rows(5))
    good = asdict(made.config)
    folder = save(made, tmp_path / "a")
    weights = folder / WEIGHTS
    whole = weights.read_bytes()

    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ArtifactError, match="changed since it was written"):
        load(folder)
    weights.write_bytes(whole[:-4])
    with pytest.raises(ArtifactError, match="the manifest says"):
        load(folder)
    weights.write_bytes(pickle.dumps({"projector": np.eye(3)}))
    rewritten(folder)
    with pytest.raises(ArtifactError, match="damaged"):
        load(folder)
    for name, tensor in (
        ("projector", np.eye(5, dtype=np.float32)),
        ("query.b2", np.full_like(made.tensors["query.b2"], np.nan)),
        ("query.w1", made.tensors["query.w1"].astype(np.float64)),
        ("more", np.zeros(3, np.float32)),
    ):
        weights.write_bytes(packed({**made.tensors, name: tensor}))
        rewritten(folder)
        with pytest.raises(ArtifactError, match=name):
            load(folder)
    weights.write_bytes(packed({name: tensor for name, tensor in made.tensors.items() if name != "document.w2"}))
    rewritten(folder)
    with pytest.raises(ArtifactError, match=r"document.w2"):
        load(folder)
    weights.write_bytes(whole)
    for bad in (
        {"config": {**good, "width": "12"}},
        {"config": {**good, "width": True}},
        {"config": {**good, "mode": "exec"}},
        {"config": {**good, "more": 1}},
        {"config": {name: value for name, value in good.items() if name != "hidden"}},
        {"config": {**good, "hidden": 10**12}},
        {"config": []},
        {"files": {}},
        {"files": {"../../etc/passwd": {"size": 1, "sha256": ""}}},
        {"name": 7},
        {"training": None},
    ):
        rewritten(folder, **bad)
        with pytest.raises(ArtifactError, match="damaged"):
            load(folder)
        rewritten(folder, config=good, name="test", training={})
    assert load(folder).hash == made.hash
    rewritten(folder, kind="lexicon")
    with pytest.raises(ArtifactError, match="a lexent adapter is wanted"):
        load(folder)


# --- training ----------------------------------------------------------------------------------------------------


def lesson(n: int = 120, *, shuffled: bool = False, seed: int = 0) -> Examples:
    """Queries say half of what their documents say and much else besides: only the first dimensions count."""
    random = np.random.default_rng(seed)
    documents = random.standard_normal((n * 2, DIM)).astype(np.float32)
    queries = documents[:n].copy()
    queries[:, DIM // 2 :] = 1.5 * random.standard_normal((n, DIM - DIM // 2))
    answers = random.permutation(2 * n)[:n] if shuffled else np.arange(n)
    return Examples.of(
        unit(queries), unit(documents), [{int(place): 1} for place in answers], candidates=20, n_negatives=8
    )


FAST = TrainSettings(lr=0.02, epochs=8, patience=2, folds=3, batch=16, candidates=20, n_negatives=8)


@pytest.mark.parametrize(
    ("form", "settings"),
    [
        ({}, {"loss": "improvement"}),
        ({}, {"loss": "infonce"}),
        ({}, {"loss": "hinge"}),
        ({"feedback": "none"}, {"negatives": "corpus"}),
        ({"feedback": "corpus", "layer_norm": True}, {}),
        ({"mode": "lowrank", "feedback": "none"}, {}),
        ({"mode": "full", "width": 8, "start": "pca"}, {"lr": 0.01}),
    ],
    ids=str,
)
def test_training_learns_what_there_is_to_learn(form: dict[str, Any], settings: dict[str, Any]) -> None:
    examples = lesson()
    found = train(examples, config(**form), replace(FAST, **settings), info=INFO)
    assert not found.adapter.info.kept_base
    assert found.schedule.adapted["nDCG@10"] > found.schedule.base["nDCG@10"] + 0.05
    assert found.schedule.p_value < 0.05
    assert found.schedule.held_out == len(examples)
    fresh = lesson(seed=1)
    ours = AdaptedCorpus(found.adapter, fresh.documents)
    rankings = np.stack([ours.search(query, 10).positions for query in fresh.queries])
    assert Quality.of(rankings, fresh.grades).value > Quality.of(fresh.candidates, fresh.grades).value + 0.03


def test_where_nothing_can_be_learned_the_base_is_kept() -> None:
    examples = lesson(60, shuffled=True)
    found = train(examples, config(), replace(FAST, epochs=4), info=INFO)
    assert found.adapter.info.kept_base
    assert found.schedule.epochs == 0
    query = rows(1, 4)[0]
    assert AdaptedCorpus(found.adapter, examples.documents).scores(query) == pytest.approx(
        examples.documents @ query, abs=1e-6
    )


def test_training_again_gives_the_same_adapter() -> None:
    one, two = (train(lesson(60), config(), replace(FAST, epochs=3), info=INFO) for _ in range(2))
    assert one.schedule.curve == two.schedule.curve
    assert one.adapter.hash == two.adapter.hash


def test_folds_keep_queries_of_a_document_together() -> None:
    grades = [{0: 1}, {0: 1, 1: 1}, {1: 1}, {2: 1}, {3: 1}, {4: 2}]
    examples = Examples.of(rows(6), rows(9, 1), grades, candidates=4, n_negatives=2)
    groups = examples.groups()
    assert groups[0] == groups[1] == groups[2]
    assert len(set(groups.tolist())) == 4
    parts = examples.folds(3, seed=0, by="document")
    assert parts[0] == parts[1] == parts[2]
    assert set(parts.tolist()) == {0, 1, 2}
    with pytest.raises(InputError, match="folds are wanted"):
        examples.folds(5, seed=0, by="document")
    assert len(set(examples.folds(6, seed=0, by="query").tolist())) == 6


def test_the_whole_corpus_can_be_a_steps_negatives(monkeypatch: pytest.MonkeyPatch) -> None:
    from lexent.adapters import schedule
    from lexent.adapters.network import Network

    examples, settings = lesson(), replace(FAST, negatives="corpus")
    made = lambda: Network(config(), settings, np.eye(DIM, dtype=np.float32))  # noqa: E731
    batch = schedule.Run(made, examples, settings, np.arange(120))._batch(np.arange(16))
    assert len(batch.pool) == 240
    assert torch.equal(batch.pool, torch.from_numpy(examples.documents))
    assert (batch.positive.sum(dim=1) == 1).all()
    monkeypatch.setattr(schedule, "MAX_POOL_DOCUMENTS", 50)
    drawn = schedule.Run(made, examples, settings, np.arange(120))._batch(np.arange(16))
    assert 50 <= len(drawn.pool) < 240
    assert (drawn.positive.sum(dim=1) == 1).all()


def test_negatives_are_hard_and_never_relevant() -> None:
    queries, documents = rows(5), rows(30, 1)
    nearest = np.argsort(-(queries @ documents.T), axis=1)
    grades = [{int(nearest[row, 0]): 1, int(nearest[row, 2]): 1} for row in range(5)]
    examples = Examples.of(queries, documents, grades, candidates=6, n_negatives=3, own={0: int(nearest[0, 1])})
    for row in range(1, 5):
        assert examples.negatives[row].tolist() == nearest[row, [1, 3, 4]].tolist()
    assert examples.negatives[0].tolist() == nearest[0, [3, 4, 5]].tolist()
    assert nearest[0, 1] not in examples.candidates[0]
    words = np.array([[int(nearest[row, 0]), 9, 8, -1] for row in range(5)])
    named = Examples.of(
        queries, documents, [{int(nearest[row, 0]): 1} for row in range(5)], candidates=6, n_negatives=3, ranked=words
    )
    assert named.negatives[1].tolist() == [9, 8, -1]
    with pytest.raises(InputError, match="no relevant document"):
        Examples.of(queries, documents, [{}, *grades[1:]], candidates=6, n_negatives=3)


def test_quality_is_that_of_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    random = np.random.default_rng(0)
    rankings = np.stack([random.permutation(40)[:15] for _ in range(30)])
    grades = [{int(place): int(random.integers(1, 4)) for place in random.permutation(40)[:6]} for _ in range(30)]
    found = Quality.of(rankings, grades)
    run = {str(row): {str(place): 15.0 - at for at, place in enumerate(each)} for row, each in enumerate(rankings)}
    qrels = {str(row): {str(place): grade for place, grade in each.items()} for row, each in enumerate(grades)}
    names = ("nDCG@10", "RR@10", "R@10")
    wanted = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in names], qrels, run)
    assert found.means() == pytest.approx({str(measure): value for measure, value in wanted.items()}, abs=1e-9)


# --- the other methods -------------------------------------------------------------------------------------------


def test_dime_removes_the_dimensions_that_feedback_agrees_with_least() -> None:
    documents, query = rows(30), rows(1, 1)[0]
    assert Dime(documents, 0).scores(query) == pytest.approx(documents @ query, abs=1e-6)
    masked = Dime(documents, 0.25, feedback=2).query(query)
    assert np.count_nonzero(masked) == 9  # a quarter of 12 is gone
    agree = query * documents[best(documents @ query, 2).positions].mean(axis=0)
    assert set(np.flatnonzero(masked)) == set(np.argsort(-agree)[:9])
    with pytest.raises(InputError, match="0 to below 1"):
        Dime(documents, 1.0)


@pytest.mark.parametrize("layers", [0, 2, 5])
def test_learned_methods_start_as_the_base_and_learn(layers: int) -> None:
    def make() -> Any:
        return Hypencoder(DIM, layers=layers, width=8, hidden=16) if layers else SearchAdaptor(DIM, hidden=16)

    examples, query = lesson(240), rows(1, 2)[0]
    search = HypencoderSearch.of if layers else ResidualSearch.of
    torch.manual_seed(0)
    start = search(make().eval(), examples.documents)
    assert start.scores(query) == pytest.approx(examples.documents @ query, abs=1e-5)
    found = follow(make, examples, replace(FAST, lr=0.01))
    assert found.adapted["nDCG@10"] > found.base["nDCG@10"] + 0.02
    after = search(found.learner, examples.documents)
    assert np.abs(after.scores(query) - start.scores(query)).max() > 1e-3
    assert len(after.search(query, 3).positions) == 3


# --- explanations ------------------------------------------------------------------------------------------------


def named_directions(n: int = 40) -> Directions:
    return Directions("concepts", tuple(f"c{at}" for at in range(n)), tuple(range(n)), rows(n, 77))


def test_a_change_is_read_as_what_it_was_made_of() -> None:
    table = named_directions(20)
    change = (0.5 * table.rows[3] - 0.3 * table.rows[11]).astype(np.float32)
    found = table.read(change, n=2)
    assert [each.name for each in found.towards] == ["c3"]
    assert [each.name for each in found.away] == ["c11"]
    assert found.named[0].value == pytest.approx(0.5, abs=1e-4)
    assert found.named[1].value == pytest.approx(-0.3, abs=1e-4)
    assert found.explained == pytest.approx(1, abs=1e-4)
    assert table.read(np.zeros(DIM, np.float32)).named == ()


def test_structure_and_attribution() -> None:
    documents, query = rows(30), rows(1, 1)[0]
    still = AdaptedCorpus(adapter(config(), documents, noise=0), documents)
    assert Structure.of(still.adapter).projector_distance == 0
    assert Structure.of(still.adapter).effective_rank == pytest.approx(DIM)
    nothing = explain_query(still, query)
    assert nothing.length == pytest.approx(0, abs=1e-5)
    assert all(abs(each.change) < 1e-5 and each.base_rank == each.rank for each in nothing.documents)

    corpus = AdaptedCorpus(adapter(config(), documents), documents)
    found = explain_query(corpus, query, k=4, others=(17,))
    scores = corpus.scores(query)
    assert [each.position for each in found.documents][:4] == best(scores, 4).positions.tolist()
    assert any(each.position == 17 for each in found.documents)
    for each in found.documents:
        assert each.score == pytest.approx(float(scores[each.position]), abs=1e-5)
        assert each.base_score == pytest.approx(float(documents[each.position] @ query), abs=1e-5)
        assert each.rank == 1 + int((scores > scores[each.position]).sum())
    assert found.length > 0.1
    json.dumps(found.to_json())


def test_the_papers_view_lifts_by_the_pseudoinverse() -> None:
    documents = rows(30)
    made = adapter(config(width=8, start="pca"), documents)
    assert made.tensors["projector"] @ lift(made) == pytest.approx(np.eye(8), abs=1e-4)
    query = AdaptedCorpus(made, documents).query(rows(1, 3)[0])
    moved = change_of(made, query, "modulation")
    assert made.tensors["projector"] @ moved == pytest.approx(unit(query.vector[None])[0] - query.projected, abs=1e-4)


def test_deletion_finds_that_named_directions_matter() -> None:
    examples = lesson()
    made = train(examples, config(), FAST, info=INFO).adapter
    corpus = AdaptedCorpus(made, examples.documents)
    found = deletion(corpus, examples.queries, examples.grades, directions=named_directions(), n=3)
    rankings = np.stack([corpus.search(query, 10).positions for query in examples.queries])
    assert found.ndcg["whole"] == pytest.approx(Quality.of(rankings, examples.grades).ndcg.mean(), abs=1e-6)
    assert found.explained > found.explained_random
    assert found.lost["whole"] == 0
    assert found.lost["none"] == pytest.approx(1)
    assert found.lost["named"] > found.lost["random"]
    assert found.p_random < 0.05
    assert found.queries == len(examples)


def test_words_that_tell_texts_apart() -> None:
    texts = [f"the {word} of the common thing" for word in ("yeast", "comet", "bishop", "dream", "pawn")]
    found = telling_words(texts)
    assert "yeast" in found
    assert not {"the", "of", "common", "thing"} & set(found)
    with pytest.raises(InputError, match="tell them apart"):
        telling_words(["the of"])


def test_tensors_are_named_by_the_form() -> None:
    assert shapes(config(mode="full"))["query.w2"] == (DIM * DIM + DIM, 6)
    assert shapes(config(feedback="corpus"))["corpus.scale"] == (DIM,)
    assert "corpus.bias" not in shapes(config())
