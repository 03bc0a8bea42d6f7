"""Analyses of retrieval, against obvious computations."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import data, furnished, good, run, tiny
from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import Collection, cache, cached_vectors, collections, load, measures
from lexent.evaluation.lexical import WordIndex, words
from lexent.evaluation.systems import Bench, Dense, Latent, Lexical
from lexent.indexing.postings import quantisation
from lexent.lexicon import Concept, Concepts, Lexicon
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.studies import analyses
from lexent.studies.analyses import settings, usage
from lexent.studies.analyses.mismatch import missed_queries
from lexent.studies.analyses.table import Table, shown
from lexent.studies.analyses.vocabulary import curve
from small import TOPICS, documents, lexicon

POOLED = Recipe("pooled", level="pooled", k=8, power=1.0, query_power=None, document_cap=6)
ENCODER = TinyEncoder()


def given() -> Collection:
    """Each topic as a query in its own words, one in words that no document has."""
    docs = documents(40)
    queries = {topic: f"{words.split()[0]} {words.split()[4]}" for topic, words in TOPICS.items()}
    qrels = {topic: {doc.id: 1 for doc in docs if doc.text.split()[0] in TOPICS[topic]} for topic in TOPICS}
    queries["away"], qrels["away"] = "nothing of this stands anywhere", {"d0": 1}
    return Collection("small", docs, queries, qrels)


def system(recipe: Recipe | str = "latent-terms") -> Latent:
    chosen = recipes.get(recipe)
    names = lexicon() if chosen.level == "tokens" else Lexicon.random(ENCODER, size=96, level="pooled")
    return Latent(chosen, names, ENCODER)


def strongest(row: np.ndarray, kind: str) -> np.ndarray:
    """Latents by value, lower ones first among equals; an index compares what it keeps of a value: its code."""
    values = np.where(row > 0, quantisation.encode(np.maximum(row, 1e-30)), 0) if kind == "document" else row
    return np.argsort(-values.astype(np.float64), kind="stable")


def dense_rows(found: Latent) -> tuple[np.ndarray, np.ndarray]:
    """bool[n_documents, size], bool[n_queries, size]: what is active, capped as the recipe says."""
    place, sides = given(), []
    for kind, texts, cap in [
        ("document", place.texts, found.recipe.document_cap),
        ("query", list(place.queries.values()), found.recipe.query_cap),
    ]:
        rows = found.pooled(texts, kind=kind).to_scipy().toarray()
        if cap is not None:
            for row in rows:
                row[strongest(row, kind)[cap:]] = 0
        sides.append(rows > 0)
    return sides[0], sides[1]


# --- usage and costs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", [recipes.get("latent-terms"), POOLED, replace(POOLED, query_cap=3)])
def test_usage_of_concepts_is_counted_by_hand(recipe: Recipe) -> None:
    found = system(recipe)
    scorer, queries = found.scorer(given()), found.queries(given())
    used = usage.of_concepts(scorer, queries)
    docs, asked = dense_rows(found)
    asked = asked & (scorer.factors > 0)  # concepts without idf are not searched for
    assert used.flops == pytest.approx(float((asked.mean(0) * docs.mean(0)).sum()))
    pairs = (asked.astype(int) @ docs.astype(int).T).mean()
    assert used.flops == pytest.approx(pairs), "the mean number of concepts that a query and a document share"
    assert used.document_length == pytest.approx(docs.sum(1).mean())
    assert used.query_length == pytest.approx(asked.sum(1).mean())
    assert used.vocabulary == int(docs.any(0).sum())
    assert used.bytes == scorer.segments[0].bytes


def test_usage_of_words_is_counted_by_hand() -> None:
    place = given()
    index, queries = WordIndex.of(place.texts), words(list(place.queries.values()))
    used = usage.of_words(index, queries)
    docs = [set(text) for text in words(place.texts)]
    known = set().union(*docs)
    assert used.vocabulary == len(known)
    assert used.flops == pytest.approx(np.mean([len(set(query) & doc) for query in queries for doc in docs]))
    assert used.document_length == pytest.approx(np.mean([len(doc) for doc in docs]))
    assert used.query_length == pytest.approx(np.mean([len(set(query) & known) for query in queries]))
    assert used.bytes >= 8 * sum(map(len, docs)), "an id and a score for each word of each document"


def test_costs_hold_the_systems_own_measures() -> None:
    place = given()
    systems = [system(), system(POOLED), Dense(ENCODER), Lexical()]
    found = analyses.costs(place, systems, measures="nDCG@10,R@5")
    assert [row.system for row in found.rows] == ["latent-terms", "pooled", "dense", "bm25"]
    for row, each in zip(found.rows, systems, strict=True):
        expected = measures.score(place.qrels, each.run(place, depth=1000), measures.parse("nDCG@10,R@5"))
        assert row.values == pytest.approx(expected.means)
    assert found.rows[2].usage == usage.Usage(ENCODER.dim, ENCODER.dim, ENCODER.dim, 4 * ENCODER.dim * 40, ENCODER.dim)
    json.dumps(found.to_json())


def test_words_are_searched_by_bm25() -> None:
    place = given()
    texts, queries = words(place.texts), words(list(place.queries.values()))
    positions, scores = WordIndex.of(place.texts).top(queries, 40)
    mean = np.mean([len(text) for text in texts])
    for row, query in enumerate(queries):
        for position, score in zip(positions[row], scores[row], strict=True):
            text, expected = texts[position], 0.0
            for word in query if position >= 0 else []:
                df, tf = sum(word in other for other in texts), text.count(word)
                idf = np.log(1 + (40 - df + 0.5) / (df + 0.5))
                expected += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(text) / mean))
            assert score == pytest.approx(expected, rel=1e-4)
    silent = WordIndex.of(["of the", "!"])
    assert silent.bytes == 0
    assert (silent.top([["of"]], 2)[0] == -1).all()


# --- mismatch sets ---------------------------------------------------------------------------------------------------


def test_missed_queries() -> None:
    qrels = {"a": {"x": 1}, "b": {"y": 1, "z": 0}, "c": {"z": 2}, "d": {"x": 0}}
    run = {"a": {"x": 3.0}, "b": {"z": 2.0, "x": 1.0, "y": 0.5}, "c": {"x": 1.0}}
    assert missed_queries(qrels, run, 1) == ["b", "c"], "z is judged and not relevant; d has nothing to miss"
    assert missed_queries(qrels, run, 3) == ["c"]


def test_mismatch_sets_and_drops() -> None:
    place = given()
    systems = [system(), Dense(ENCODER), Lexical()]
    found = analyses.mismatch(place, systems, measures="nDCG@10", depths=(1, 1000))
    deep = found.sets[1]
    assert deep.queries == ("away",)
    assert deep.values["bm25"]["nDCG@10"] == 0
    for each in systems:
        scores = measures.score(place.qrels, each.run(place, depth=1000), measures.parse("nDCG@10"))
        whole, part = scores.means["nDCG@10"], scores.per_query["nDCG@10"]["away"]
        assert found.values[each.name]["nDCG@10"] == pytest.approx(whole)
        assert deep.values[each.name]["nDCG@10"] == pytest.approx(part)
        assert found.drop(each.name, "nDCG@10", 1000) == pytest.approx((whole - part, (whole - part) / whole))
    assert found.to_json()["sets"][1]["size"] == 1
    assert found.tables()[0].head[-2] == "missed@1000 (1)"


def test_mismatch_without_any_missed_query() -> None:
    place = given()
    kept = {id: text for id, text in place.queries.items() if id != "away"}
    place = replace(place, queries=kept, qrels={id: place.qrels[id] for id in kept})
    found = analyses.mismatch(place, [system(), Lexical()], measures="R@5", depths=(1000,))
    assert found.sets[0].queries == ()
    assert found.drop("bm25", "R@5", 1000) is None
    assert found.tables()[0].rows[0][2:] == (None, None)


# --- sweeps ----------------------------------------------------------------------------------------------------------


def swept(settings: analyses.Settings, found: Latent) -> analyses.Sweep:
    return analyses.sweep(given(), found, settings, measures="nDCG@10")


def alone(found: Latent, recipe: Recipe) -> float:
    run = replace(found, recipe=recipe).run(given(), depth=10)
    return measures.score(given().qrels, run, measures.parse("nDCG@10")).means["nDCG@10"]


@pytest.mark.parametrize("start", [recipes.get("latent-terms"), POOLED])
def test_caps(start: Recipe) -> None:
    found = swept(analyses.caps(system(start), (2, 5, None)), system(start))
    assert [row.label for row in found.rows] == ["at most 2", "at most 5", "all"]
    active = system(start).pooled(given().texts, kind="document")
    counts = np.diff(active.offsets)
    for row, cap in zip(found.rows, (2, 5, None), strict=True):
        assert row.recipe.document_cap == cap
        assert row.usage.document_length == pytest.approx(np.minimum(counts, cap or 10**6).mean())
        assert row.values["nDCG@10"] == pytest.approx(alone(system(start), start.having(document_cap=cap)))
    assert found.reference == "all"
    assert found.rows[-1].p_value is None
    assert 0 <= (found.rows[0].p_value or 0) <= 1


def test_weightings() -> None:
    own = POOLED.having(idf="clsr", k2=0.5)
    found = swept(analyses.weightings(system(own)), system(own))
    labels = [row.label for row in found.rows]
    assert labels == [
        *(f"bm25, idf {mode}" for mode in ("lucene", "root", "okapi", "okapi-floor0", "clsr", "none")),
        *("dot, idf clsr", "dot, idf none", "count, idf clsr", "count, idf none"),
    ]
    assert found.reference == "bm25, idf clsr"
    rows = {row.label: row for row in found.rows}
    assert rows["dot, idf none"].recipe.weighting.k2 is None
    assert rows["bm25, idf clsr"].recipe == own
    # The plain product, by hand: dense codes of documents and queries.
    docs, asked = (
        transform_of(system(own), kind, texts)
        for kind, texts in (("document", given().texts), ("query", list(given().queries.values())))
    )
    scores = asked @ docs.T
    place = given()
    by_hand = {
        query: {doc.id: float(score) for doc, score in zip(place.documents, scores[row], strict=True) if score > 0}
        for row, query in enumerate(place.queries)
    }
    expected = measures.score(place.qrels, by_hand, measures.parse("nDCG@10")).means["nDCG@10"]
    # the index holds values on a scale of 2.2 %, which may swap neighbours
    assert rows["dot, idf none"].values["nDCG@10"] == pytest.approx(expected, abs=0.03)


def test_weightings_of_a_recipe_without_idf() -> None:
    found = swept(analyses.weightings(system(POOLED.having(idf="none"))), system(POOLED))
    assert [row.label for row in found.rows][6:8] == ["dot, idf clsr", "dot, idf none"]
    assert found.reference == "bm25, idf none"


def transform_of(found: Latent, kind: str, texts: list[str]) -> np.ndarray:
    rows = found.pooled(texts, kind=kind).to_scipy().toarray()  # type: ignore[arg-type]
    if kind == "document" and found.recipe.document_cap:
        for row in rows:
            row[strongest(row, kind)[found.recipe.document_cap :]] = 0
    return rows


def test_pruning() -> None:
    found = swept(analyses.pruning(system(), (0.0, 0.1, 0.5)), system())
    assert [row.label for row in found.rows] == ["all", "without 10.0%", "without 50.0%"]
    for row in found.rows:
        assert row.values["nDCG@10"] == pytest.approx(alone(system(), row.recipe))
    scorer = system().scorer(given())
    kept = np.argsort(-scorer.df, kind="stable")[int(0.5 * np.count_nonzero(scorer.df)) :]
    _, asked = dense_rows(system())
    assert found.rows[2].usage.query_length == pytest.approx(asked[:, kept].sum(1).mean())
    assert found.rows[2].usage.flops < found.rows[0].usage.flops


def test_the_papers_settings() -> None:
    paper = settings.paper_settings(recipes.get("latent-terms"))
    formula = paper.weighting
    assert (formula.k1, formula.b, formula.idf, paper.power, paper.query_power) == (8.0, 0.7, "okapi", 0.5, 0.5)
    assert (paper.function_words, paper.emphasis) == (1.0, 0.0)
    for k, expected in [(128, (0.2, 3.0, 0.5, 65)), (32, (0.6, 1.75, 2.5, 24)), (30, (0.6, 1.75, 2.5, 24))]:
        clsr = settings.paper_settings(replace(POOLED, k=k))
        assert (clsr.weighting.k1, clsr.weighting.b, clsr.weighting.k2, clsr.document_cap) == expected
        assert (clsr.weighting.idf, clsr.power, clsr.k) == ("clsr", 1.0, k)


def test_untuned_and_tuned() -> None:
    place = given()
    without = analyses.published(system())
    assert list(without.recipes)[-1] == "ours, dot, no idf"
    assert "no train split" in without.note
    train = replace(place, split="train", name="other")
    found = swept(analyses.published(system(), train), system())
    rows = {row.label: row for row in found.rows}
    assert rows["tuned"].values["nDCG@10"] >= rows["ours"].values["nDCG@10"], "the same queries, so tuning cannot lose"
    assert rows["ours"].recipe == recipes.get("latent-terms")
    assert "tuned on other (train)" in found.note
    with pytest.raises(InputError, match="refused"):
        analyses.published(system(), place)


@pytest.mark.parametrize("start", [recipes.get("latent-terms"), POOLED])
def test_k_sweep_encodes_once(start: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path))
    seen: list[int] = []
    original = TinyEncoder.batches

    def counted(self: TinyEncoder, texts: list[str], **options: object) -> object:
        seen.append(len(texts))
        return original(self, texts, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(TinyEncoder, "batches", counted)
    found = swept(analyses.ks(system(start), [2, 4, 8]), system(start))
    assert seen == [40, 5]
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path / "other"))
    for row, k in zip(found.rows, (2, 4, 8), strict=True):
        recipe = start.having(k=k, query_k=None, document_cap=None)
        vectors = replace(system(start), recipe=recipe).pooled(given().texts, kind="document")
        assert row.usage.document_length == pytest.approx(np.diff(vectors.offsets).mean())
        assert row.usage.vocabulary == len(np.unique(vectors.ids))
        assert row.values["nDCG@10"] == pytest.approx(alone(system(start), recipe))
    assert found.reference == (None if start.k == 16 else "k 8")


@pytest.mark.parametrize("start", [recipes.get("latent-terms"), POOLED])
def test_prepared_vectors_are_those_of_the_pipeline(
    start: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path / "a"))
    found = system(start)
    texts = [*given().texts, ""]
    both = [found.recipe.having(k=3), found.recipe.having(k=9, emphasis=0.0)]
    asking = replace(given(), queries=dict(zip(map(str, range(len(texts))), texts, strict=True)))
    cached_vectors.prepare(asking, found.pipeline, both)
    ways = [Pipeline(ENCODER, found.lexicon, each) for each in both]
    assert all(cache.has(cached_vectors._key(texts, each, kind="query")) for each in ways)
    made = [cached_vectors.represent(texts, each, kind="query") for each in ways]
    for one, each in zip(made, ways, strict=True):
        fresh = each.represent(texts, kind="query")
        assert (one.to_scipy() != fresh.to_scipy()).nnz == 0


# --- rank and frequency, categories ----------------------------------------------------------------------------------


def test_a_curve_of_zipf_has_his_slope() -> None:
    ranks = np.arange(1, 2001)
    found = curve("words", np.random.default_rng(0).permutation((10**6 / ranks).astype(np.int64)), 10**6)
    assert found.slope == pytest.approx(-1, abs=0.01)
    assert found.terms == 2000
    assert found.frequencies[0] == 10**6
    assert list(found.frequencies) == [int(10**6 / rank) for rank in found.ranks]
    assert found.common == 1 / 2000
    flat = curve("flat", np.array([3, 3, 0, 3, 1]), 5)
    assert (flat.terms, flat.common, flat.lone) == (4, 0.75, 0.25)
    assert curve("none", np.zeros(3, np.int64), 5).terms == 0


def test_zipf_counts_documents() -> None:
    place = given()
    texts = [f"The {doc.text} of a" if at % 2 else f"the {doc.text}" for at, doc in enumerate(place.documents)]
    headed = replace(
        place, documents=[replace(doc, text=text) for doc, text in zip(place.documents, texts, strict=True)]
    )
    plain = analyses.zipf(headed, []).curves[0]
    counts = Counter(word for doc in headed.documents for word in {*doc.content.lower().split()})
    assert (counts["the"], counts["a"]) == (40, 20)
    assert plain.frequencies[0] == 40, "stop words are the head of the curve"
    assert (plain.terms, plain.common) == (len(counts), 1 / len(counts))

    found = analyses.zipf(given(), [system(), system(POOLED)])
    counts = Counter(word for text in words(given().texts) for word in set(text))
    assert found.curves[0].frequencies[0] == max(counts.values())
    assert found.curves[0].terms == len(counts)
    assert found.curves[0].lone == pytest.approx(np.mean([count == 1 for count in counts.values()]))
    docs, _ = dense_rows(system(POOLED))
    df = np.sort(docs.sum(0))[::-1]
    mine = found.curves[2]
    assert [df[rank - 1] for rank in mine.ranks] == list(mine.frequencies)
    assert mine.common == pytest.approx(float((df[df > 0] > 20).mean()))


def test_categories_are_weighed_by_use() -> None:
    plain = system()
    kinds = ["lexical", "narrow", "broad", "broad"]
    named = Concepts([Concept(id, f"c{id}", kinds[id % 4]) for id in range(96)])  # type: ignore[arg-type]
    found = replace(plain, lexicon=Lexicon(plain.lexicon.sae, named, plain.lexicon.info))
    made = analyses.categories(given(), found)
    assert made.lexicon == {"lexical": 0.25, "narrow": 0.25, "broad": 0.5, "unknown": 0.0}
    docs, asked = dense_rows(found)
    for counts, shares in [(docs.sum(0), made.documents), (asked.sum(0), made.queries), (docs.any(0), made.live)]:
        by_hand = [float(counts[np.arange(96) % 4 == place].sum() / counts.sum()) for place in range(4)]
        assert shares["lexical"] == pytest.approx(by_hand[0])
        assert shares["broad"] == pytest.approx(by_hand[2] + by_hand[3])
        assert sum(shares.values()) == pytest.approx(1)


# --- all together ----------------------------------------------------------------------------------------------------


def test_cells_as_they_are_read() -> None:
    assert [shown(cell) for cell in ("a", 12345, 0.5, None)] == ["a", "12,345", "0.5000", ""]
    assert Table("t", ("a",), ((1,),)).text() == [["1"]]


def test_names_of_analyses() -> None:
    with pytest.raises(NotFoundError, match='did you mean "caps"'):
        analyses.analyse(given(), what=["cap"])
    with pytest.raises(InputError, match="analyses: mismatch, cost"):
        analyses.analyse(given(), what=[])
    assert set(analyses.QUICK) < set(analyses.ANALYSES)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = furnished(tmp_path_factory.mktemp("analyses"))
    collections.write(given(), folder / "beir")
    Lexicon.random(ENCODER, size=96, level="pooled").save(folder / "pooled")
    return folder


def test_analyse_prints_tables_and_json(place: Path) -> None:
    found = data("analyse", place / "beir", *tiny(place), "--what", "all", "--measures", "nDCG@10")
    assert list(found)[4:] == list(analyses.ANALYSES)
    text = good("analyse", place / "beir", *tiny(place), "--what", "cost,zipf", "--measures", "nDCG@10").stdout
    assert "small" not in text.splitlines()[0].split(":")[1]
    value = found["cost"][0]["systems"][0]["values"]["nDCG@10"]
    assert f"{value:.4f}" in text
    assert "rank and frequency over 40 documents" in text
    refused = run("analyse", place / "beir", "--what", "kaps")
    assert (refused.exit_code, "did you mean" in refused.stderr) == (3, True)


def test_analyse_takes_pooled_recipes(place: Path) -> None:
    found = analyses.analyse(
        place / "beir", what=["caps", "cost"], recipe=[POOLED], lexicon=place / "pooled", encoder="tiny", baselines=[]
    )
    assert found.parts["cost"][0].to_json()["systems"][0]["system"] == "pooled"
    assert found.parts["caps"][0].to_json()["system"] == "pooled"


@pytest.mark.data
def test_on_real_data(data_dir: Path, shared_encoder: Encoder) -> None:
    whole = load(data_dir / "cranfield")
    docs = whole.documents[:160]
    inside = {doc.id for doc in docs}
    judged = {id: {doc: grade for doc, grade in found.items() if doc in inside} for id, found in whole.qrels.items()}
    judged = {id: found for id, found in judged.items() if any(grade > 0 for grade in found.values())}
    part = Collection("part", docs, {id: whole.queries[id] for id in judged}, judged)
    bench = Bench(encoder=shared_encoder)
    pooled = Latent(POOLED, Lexicon.random(shared_encoder, size=512, level="pooled"), shared_encoder)
    few_texts = part.texts[:20]
    coded = pooled.pooled(few_texts, kind="document")
    fresh = Pipeline(shared_encoder, pooled.lexicon, POOLED).represent(few_texts, kind="document")
    # States from the cache are those of the encoder. They are coded in other batches, so values differ by rounding.
    np.testing.assert_array_equal(coded.ids, fresh.ids)
    np.testing.assert_allclose(coded.values, fresh.values, rtol=1e-5)
    mine = bench.latent("latent-terms")
    missed = analyses.mismatch(part, [mine, bench.system("bm25")], measures="nDCG@10", depths=(10,))
    assert missed.sets[0].queries
    lost = missed.drop("latent-terms", "nDCG@10", 10)
    assert lost is not None
    assert lost[1] < 1, "concepts find some of what words miss"
    caps = analyses.sweep(part, mine, analyses.caps(mine, (4, 64, None)), measures="nDCG@10")
    few, some, every = (row.values["nDCG@10"] for row in caps.rows)
    assert few < some <= every + 0.02
    assert caps.rows[0].usage.bytes < caps.rows[1].usage.bytes < caps.rows[2].usage.bytes
    curves = analyses.zipf(part, [mine]).curves
    assert all(-2 < each.slope < -0.2 for each in curves)
