"""Measures, baselines and whole evaluations, against hand-written and rival implementations."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.evaluation import Collection, baselines, evaluate, load, measures, runs, vector_search
from lexent.types import Document, Kind

PETS = Collection(
    name="pets",
    documents=[
        Document("d1", "cats purr and sleep"),
        Document("d2", "dogs bark at cats", "dogs"),
        Document("d3", "fish swim"),
        Document("d4", ""),
    ],
    queries={"q1": "purring cats", "q2": "the swim", "q3": "of the"},
    qrels={"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}, "q3": {"d3": 1}},
)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a place for files beside it."""
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path / "own"))
    return tmp_path


# --- measures --------------------------------------------------------------------------------------------------------


def plain_ndcg(judged: dict[str, int], results: dict[str, float], k: int) -> float:
    order = sorted(results, key=lambda document: (results[document], document), reverse=True)
    gains = [judged.get(document, 0) / math.log2(rank + 2) for rank, document in enumerate(order[:k])]
    ideal = [grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(judged.values(), reverse=True)[:k])]
    return sum(gains) / sum(ideal)


def test_values_are_those_of_plain_formulas() -> None:
    random = np.random.default_rng(0)
    qrels = {
        f"q{i}": {f"d{j}": int(random.integers(1, 4)) for j in random.choice(30, 5, replace=False)} for i in range(9)
    }
    run = {query: {f"d{j}": float(random.integers(8)) for j in random.choice(30, 20, replace=False)} for query in qrels}
    del run["q8"]  # a query without results counts as 0
    found = measures.score(qrels, run, measures.parse("nDCG@10, R@5,RR@10"))
    expected = {query: plain_ndcg(qrels[query], run.get(query, {}), 10) for query in qrels}
    assert found.per_query["nDCG@10"] == pytest.approx(expected)
    assert found.means["nDCG@10"] == pytest.approx(np.mean(list(expected.values())))
    order = {query: [document for document, _ in runs.ranked(results)] for query, results in run.items()}
    recall = {query: len(set(order.get(query, [])[:5]) & set(qrels[query])) / 5 for query in qrels}
    assert found.per_query["R@5"] == pytest.approx(recall)
    first = {query: [d in qrels[query] for d in order.get(query, [])[:10]] for query in qrels}
    reciprocal = {query: 1 / (hits.index(True) + 1) if True in hits else 0 for query, hits in first.items()}
    assert found.per_query["RR@10"] == pytest.approx(reciprocal), "another provider, the same order of ties"


def test_names() -> None:
    assert [str(measure) for measure in measures.parse(["nDCG@10", "R@100,nDCG@10"])] == ["nDCG@10", "R@100"]
    assert [str(measure) for measure in measures.parse("AP(rel=2)@100 P@5")] == ["AP(rel=2)@100", "P@5"]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("nDGC@10", 'did you mean "nDCG@10"?'), ("ndcg@20", 'did you mean "nDCG@20"?'),
        ("recal@100", 'did you mean "Recall@100"?'), ("nDCG@", 'did you mean "nDCG@10"?'),
        ("@10", "such as: nDCG@10, R@100"),
        ("nDCG@ten", 'did you mean "nDCG@10"?'), ("zzzz", "such as: nDCG@10, R@100"), ("", "no measure was given"),
        ("P_IA@10", "such as: nDCG@10, R@100"),
    ],
)  # fmt: skip
def test_typos(given: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        measures.parse(given)
    assert hint in str(caught.value)


def test_p_values() -> None:
    first = {"a": 0.1, "b": 0.5, "c": 0.9, "d": 0.2}
    assert measures.p_value(first, first) == 1.0
    second = {"a": 0.2, "b": 0.7, "c": 0.8, "d": 0.6}
    gaps = np.array([first[query] - second[query] for query in first])
    t = gaps.mean() / (gaps.std(ddof=1) / 2)  # the t distribution with 3 degrees of freedom has a closed form
    x = abs(t) / math.sqrt(3)
    tail = 0.5 - (x / (1 + x * x) + math.atan(x)) / math.pi
    assert measures.p_value(first, second) == pytest.approx(2 * tail)
    assert math.isnan(measures.p_value({"a": 1.0}, {"a": 0.0}))


# --- baselines -------------------------------------------------------------------------------------------------------


def test_bm25_gives_only_documents_that_share_a_word() -> None:
    found = baselines.bm25(PETS, k=10)
    assert set(found["q1"]) == {"d1", "d2"}
    assert found["q2"] == {"d3": pytest.approx(found["q2"]["d3"])}
    assert found["q3"] == {}
    assert len(baselines.bm25(PETS, k=1)["q1"]) == 1


def test_bm25_without_words() -> None:
    silent = Collection("silent", [Document("a", "of the"), Document("b", "!")], {"q": "of"}, {"q": {"a": 1}})
    assert baselines.bm25(silent, k=3) == {"q": {}}


def test_dense_is_cosine_for_any_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TinyEncoder()
    found = baselines.dense(PETS, encoder, k=10)
    assert all(len(results) == 4 for results in found.values())
    monkeypatch.setattr(vector_search, "SCORES_PER_CHUNK", 1)
    small = baselines.dense(PETS, encoder, k=10)
    assert all(small[query] == pytest.approx(found[query], abs=1e-6) for query in found)
    assert found["q1"]["d4"] == 0.0, "an empty text has no direction"
    assert list(baselines.dense(PETS, encoder, k=1)["q1"]) == list(found["q1"])[:1]


@pytest.mark.data
def test_dense_is_what_sentence_transformers_gives(data_dir: Path, shared_encoder: Encoder) -> None:
    import torch
    from sentence_transformers import SentenceTransformer, util

    from lexent.encoders.sentence import embedded_model

    whole = load(data_dir / "limit-small")
    queries = dict(list(whole.queries.items())[:100])
    collection = Collection("limit", whole.documents, queries, {query: whole.qrels[query] for query in queries})
    found = baselines.dense(collection, shared_encoder, k=46)
    rival = SentenceTransformer(str(embedded_model()), device="cpu", local_files_only=True).to(torch.float32)
    cosines = util.cos_sim(rival.encode(list(queries.values())), rival.encode(collection.texts)).numpy()
    ours = np.array([[found[query][document.id] for document in collection.documents] for query in queries])
    assert np.abs(ours - cosines).max() < 0.02  # bfloat16 where the machine has it
    theirs = {
        query: {document.id: float(cosine) for document, cosine in zip(collection.documents, row, strict=True)}
        for query, row in zip(queries, cosines, strict=True)
    }
    wanted = measures.parse("nDCG@10")
    scores = [measures.score(collection.qrels, run, wanted).means["nDCG@10"] for run in (found, theirs)]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)


# --- whole evaluations -----------------------------------------------------------------------------------------------


def test_baselines_and_run_files(tmp_path: Path, own_cache: Path) -> None:
    said: list[tuple[str, int, int]] = []
    options = {"recipe": None, "encoder": TinyEncoder(), "measures": ["nDCG@10", "R@1"]}
    first = evaluate(PETS, **options, run_dir=tmp_path / "runs", progress=lambda *step: said.append(step))  # type: ignore[arg-type]
    assert said == [("dense, documents", 4, 4), ("dense, queries", 3, 3)]
    assert list(first.systems) == ["dense", "bm25"]
    assert first.systems["bm25"]["R@1"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert first.per_query["bm25"]["R@1"] == {"q1": 0.5, "q2": 1.0, "q3": 0.0}
    assert (first.compared_with, list(first.p_values)) == ("dense", ["bm25"])
    written = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert written == ["pets-test-bm25.run", "pets-test-dense.run"]

    again = evaluate(PETS, recipe=None, baselines=["bm25"], runs=[tmp_path / "runs" / name for name in written])
    assert again.systems["pets-test-bm25"] == again.systems["bm25"]
    assert again.systems["pets-test-dense"]["nDCG@10"] == pytest.approx(first.systems["dense"]["nDCG@10"])
    assert again.p_values["pets-test-bm25"]["nDCG@10"] == 1.0

    report = json.loads(json.dumps(first.to_json()))
    assert report["collection"] == "pets"
    assert report["systems"] == first.systems
    assert report["encoder"] == "tiny"
    assert "per_query" not in report
    assert first.to_json(per_query=True)["per_query"] == first.per_query


def test_a_recipe_ranks_as_plain_bm25_over_its_vectors(own_cache: Path) -> None:
    """Every score against the formula written out over dense NumPy arrays."""
    from lexent.lexicon import Lexicon
    from lexent.pipeline import Pipeline

    encoder = TinyEncoder()
    lexicon = Lexicon.random(encoder)
    recipe = recipes.get("latent-terms").changed(k=4, k1=1.2, b=0.6)
    report = evaluate(PETS, recipe=recipe, lexicon=lexicon, encoder=encoder, run_dir=own_cache, depth=10)
    assert list(report.systems) == ["latent-terms", "dense", "bm25"]
    assert report.setting["recipe"]["weighting"]["k1"] == 1.2
    assert report.setting["lexicon"] == lexicon.hash

    def plain(texts: list[str], kind: Kind) -> np.ndarray:
        vectors = Pipeline(encoder, lexicon, recipe).represent(texts, kind=kind)
        found = vectors.to_scipy().toarray()
        return np.sqrt(found) if kind == "document" else np.power(found, 0.7)

    documents, queries = plain(PETS.texts, "document"), plain(list(PETS.queries.values()), "query")
    df, n = (documents > 0).sum(axis=0), len(documents)
    idf = np.log(1 + (n - df + 0.5) / (df + 0.5))
    lengths = documents.sum(axis=1, keepdims=True)
    weights = documents * 2.2 / (documents + 1.2 * (0.4 + 0.6 * lengths / lengths.mean()))
    expected = queries @ (weights * idf).T
    run = runs.read(own_cache / "pets-test-latent-terms.run")
    for row, query in enumerate(PETS.queries):
        for column, document in enumerate(PETS.documents):
            if ((queries[row] > 0) & (documents[column] > 0)).any():
                assert run[query][document.id] == pytest.approx(expected[row, column], rel=0.03)  # codes of 8 bits
            else:
                assert document.id not in run.get(query, {})


def test_codes_are_cached_and_weights_are_not(own_cache: Path) -> None:
    from lexent.lexicon import Lexicon

    encoder = TinyEncoder()
    said: list[str] = []

    def run(**settings: float | str) -> None:
        evaluate(
            PETS,
            recipe=recipes.get("latent-terms").changed(**settings),
            lexicon=Lexicon.random(encoder, level="pooled" if settings.get("level") == "pooled" else "tokens"),
            encoder=encoder,
            baselines=[],
            progress=lambda what, done, total: said.append(what),
        )

    run()
    assert said == ["latent-terms, documents", "latent-terms, queries"]
    for settings in (
        {"k1": 0.9},
        {"b": 0.1},
        {"idf": "okapi"},
        {"power": 1.0},
        {"query_power": 1.0},
        {"document_cap": 3},
        {"prune": 0.1},
    ):
        run(**settings)
    assert len(said) == 2, "nothing is encoded again"
    for settings in ({"k": 3}, {"pool": "max"}, {"specials": True}, {"level": "pooled"}):
        run(**settings)
    assert len(said) == 10


def test_a_lexicon_of_another_encoder(shared_encoder: Encoder) -> None:
    from lexent.lexicon import Lexicon

    with pytest.raises(MismatchError, match="lexent train TEXTS --encoder"):
        evaluate(PETS, lexicon=Lexicon.random(TinyEncoder()), encoder=shared_encoder)


def test_wrong_requests(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match='no baseline "splade"; baselines: dense, bm25'):
        evaluate(PETS, recipe=None, baselines=["splade"])
    with pytest.raises(NotFoundError, match='no baseline "splade"; baselines: dense, bm25'):
        evaluate(PETS, recipe=None, baselines="splade")
    with pytest.raises(NotFoundError, match='no recipe named "latent-term"'):
        evaluate(PETS, recipe="latent-term")
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate(PETS, recipe=None, baselines=[])
    with pytest.raises(InputError, match="depth is 0; allowed: 1 or more"):
        evaluate(PETS, recipe=None, depth=0)
    (tmp_path / "other.run").write_text("77 Q0 d1 1 1.0 t\n")
    with pytest.raises(InputError, match=r'other.run: none of its queries, such as "77", is judged in pets \(test\)'):
        evaluate(PETS, recipe=None, baselines=[], runs=[tmp_path / "other.run"])


@pytest.mark.data
def test_limit_small(data_dir: Path, shared_encoder: Encoder, own_cache: Path) -> None:
    """The figures that are known for this collection: dense 0.31; a word search finds almost all."""
    report = evaluate(data_dir / "limit-small", recipe=None, encoder=shared_encoder)
    assert (report.documents, report.queries) == (46, 1000)
    assert report.systems["dense"]["nDCG@10"] == pytest.approx(0.31, abs=0.01)
    assert report.systems["bm25"]["nDCG@10"] > 0.9
    again = evaluate(data_dir / "limit-small", recipe=None, encoder=shared_encoder)
    assert again.systems == report.systems
    assert again.seconds["dense"] < report.seconds["dense"]
