"""The report on UHD: its sections, what they agree on, and weights of buckets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run
from lexent import recipes
from lexent.evaluation import bucket_training, cached_vectors, evaluate
from lexent.evaluation.collections import Collection
from lexent.evaluation.systems import Bench
from lexent.models import load_encoder
from lexent.pipeline import Pipeline
from lexent.search.document_scorer import DocumentScorer
from lexent.studies.reproduction import Sizes, Study, latency, reproduce
from lexent.studies.reproduction.binary_retrieval import _spread, layers_of, train_split
from lexent.studies.reproduction.latency import _raced
from lexent.studies.reproduction.losses import lessons
from lexent.studies.reproduction.reproduce import every_section
from lexent.training.uhd.train import train_uhd
from lexent.weighting import as_query, unit
from small import documents
from test_encoders import small_model
from test_fidelity import collection
from test_uhd import SMALL, pairs, vectors

pytest.importorskip("matplotlib")

SIZES = Sizes(tokens=60, latents=48, steps=4, lessons=40)
NAMES = ["quality", "buckets", "k", "caps", "prune", "zipf", "speed", "values"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("base")
    small_model(folder, "bert").save_pretrained(str(folder / "model"))
    return str(folder / "model")


@pytest.fixture(scope="module")
def trained(base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lexicon of two buckets, each with a copy of the encoder."""
    out = tmp_path_factory.mktemp("trained") / "winners"
    config = replace(SMALL, d_sae=256, layers=(1, 2))
    train_uhd([one.content for one in documents()], pairs(), out=out, encoder=base, config=config, bits=8)
    return out


def study(lexicon: Path, whole: Any = None, **settings: Any) -> Study:
    return Study.of("uhd", whole or collection(60), **{"lexicon": lexicon, "sizes": SIZES, **settings})


@pytest.fixture(scope="module")
def report(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    place = tmp_path_factory.mktemp("report") / "uhd.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "BACKENDS", ("numpy",))  # bm25s compiles the other for many seconds
        found = reproduce(study(trained), place, command="lexent reproduce uhd")
    assert found.failed == {}
    return found.page, json.loads(found.data.read_text())["sections"]


def test_every_section_is_made(report: tuple[Path, Any]) -> None:
    text, sections = report[0].read_text(), report[1]
    assert list(sections) == NAMES == [section.name for section in every_section("uhd")]
    for name in NAMES:
        assert sections[name]["result"], name
        assert f'<section id="{name}">' in text
    assert "0.11169" in text
    assert "0.3962" in text
    assert text.count("<svg") >= 9


def test_quality_is_what_evaluate_finds(report: tuple[Path, Any], trained: Path) -> None:
    result = report[1]["quality"]["result"]
    found = evaluate(collection(60), recipe=["uhd", "uhd-real"], lexicon=trained)
    assert set(result["values"]) == {"uhd", "uhd-real", "dense", "bm25"}
    for name, values in result["values"].items():
        assert values == pytest.approx(found.systems[name])
    assert set(result["binary_p"]) == {"nDCG@10", "R@100"}


def test_sections_agree_with_each_other(report: tuple[Path, Any]) -> None:
    """The same search by several ways to it."""
    results = {name: section["result"] for name, section in report[1].items()}
    for system in ("uhd", "uhd-real"):
        expected = pytest.approx(results["quality"]["values"][system])
        of_buckets = next(part for part in results["buckets"]["parts"] if part["system"] == system)
        assert of_buckets["rows"][0]["values"] == expected
        of_caps = next(part for part in results["caps"]["parts"] if part["system"] == f"{system}, 16 a token")
        assert of_caps["rows"][-1]["values"] == expected
        assert {row["name"]: row["values"] for row in results["speed"]["rows"]}[system] == expected
        of_prune = next(part for part in results["prune"]["parts"] if part["system"] == system)
        assert of_prune["rows"][0]["values"] == expected
    *_, alone = results["k"]["parts"]
    assert alone["system"] == "uhd, queries alone"
    expected = pytest.approx(results["quality"]["values"]["uhd"])
    assert {row["label"]: row["values"] for row in alone["rows"]}["k 16"] == expected
    assert [row["label"] for row in results["k"]["parts"][0]["rows"]] == ["k 4", "k 8", "k 20", "k 40", "k 80", "k 160"]


def test_a_cap_bounds_what_queries_and_documents_keep(report: tuple[Path, Any]) -> None:
    *queries, documents_ = report[1]["caps"]["result"]["parts"]
    assert [part["system"] for part in queries] == [
        f"{name}, {k} a token" for name in ("uhd", "uhd-real") for k in (20, 16)
    ]
    for part in queries:
        assert [row["label"] for row in part["rows"]][:2] == ["at most 50", "at most 100"]
        assert part["rows"][0]["query_length"] <= 2 * 50  # in each of two buckets
        assert part["rows"][-1]["query_length"] >= part["rows"][0]["query_length"]
    assert documents_["rows"][0]["document_length"] == 100


def test_buckets_alone_and_their_oracle(report: tuple[Path, Any], trained: Path) -> None:
    parts = report[1]["buckets"]["result"]["parts"]
    assert [row["label"] for row in parts[0]["rows"]] == [
        "all alike", "layer 1 alone", "layer 2 alone", "oracle: each query's best bucket",
    ]  # fmt: skip
    assert "no train split" in parts[0]["note"]
    for part in parts:
        _, first, second, oracle = (row["values"]["nDCG@10"] for row in part["rows"])
        assert oracle >= max(first, second)
        recipe = Bench(lexicon=trained).latent(part["system"]).recipe.having(buckets=(0.0, 1.0))
        found = evaluate(collection(60), recipe=replace(recipe, name="second"), lexicon=trained, baselines=[])
        assert second == pytest.approx(found.systems["second"]["nDCG@10"])


def test_counting_is_smaller_and_every_search_is_timed(report: tuple[Path, Any]) -> None:
    rows = {row["name"]: row for row in report[1]["speed"]["result"]["rows"]}
    assert set(rows) == {*("uhd", "uhd, query cap 100", "uhd-real", "uhd-real, query cap 100", "bm25s, numpy")}
    assert all(row["ms"] > 0 for row in rows.values())
    assert rows["uhd"]["bytes"] < rows["uhd-real"]["bytes"]
    assert rows["uhd"]["postings"] == rows["uhd-real"]["postings"]
    calls: list[tuple[str, int]] = []
    times = _raced([lambda row: calls.append(("a", row)), lambda row: calls.append(("b", row))], 2)
    assert times.shape == (2, 2)
    assert calls[2:6] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_spread_of_values() -> None:
    alike = _spread(np.full(160, 3.0, np.float32), np.repeat([0, 1], 80))
    assert alike["unit_mean"] == pytest.approx(80**-0.5)
    assert (alike["relative_sd"], alike["unit_sd"]) == pytest.approx((0, 0), abs=1e-6)
    loud = _spread(np.array([1, 3, 10, 30], np.float32), np.array([7, 7, 2, 2]))
    assert loud["relative_sd"] == pytest.approx(0.5)  # 0.5 and 1.5 of each mean
    assert sum(share for _, share in loud["histogram"]) == pytest.approx(1)
    assert {round(edge, 2): share for edge, share in loud["histogram"]}[0.5] == pytest.approx(0.5)


def test_winners_of_several_k_are_those_of_one_coding(base: str, tmp_path: Path) -> None:
    """A sweep over k codes once; what it keeps is what each k gives by itself."""
    config = replace(SMALL, d_sae=64, k=12, rank=2, layers=(1, 2), start="random")  # so that no two units are alike
    lexicon = train_uhd(
        [one.content for one in documents()], pairs(), out=tmp_path / "wide", encoder=base, config=config, joint=True
    )
    encoder = Bench(lexicon=lexicon).latent("uhd").encoder
    several = [Pipeline(encoder, lexicon, recipes.get("uhd").having(k=k, query_k=None)) for k in (3, 12, 7)]
    texts = [one.content for one in documents(9)]
    found = cached_vectors._represented(texts, several, kind="query")
    for each, one in zip(several, found, strict=True):
        (alone,) = cached_vectors._represented(texts, [each], kind="query")
        assert len(alone.ids) > 0
        assert (one.ids == alone.ids).all()
        assert (one.values == alone.values).all()
        assert (one.offsets == alone.offsets).all()


def test_pairs_are_first_sentences_where_there_is_no_title(trained: Path) -> None:
    docs = [
        replace(doc, title="", text=f"{doc.text} number {at} . {doc.text} once more")
        for at, doc in enumerate(documents(9))
    ]
    whole = replace(collection(9), documents=[*docs, replace(docs[0], id="short", text="too short. it is")])
    found, where = lessons(study(trained, whole))
    assert "first sentences" in where
    assert len(found) == 9
    assert not any("once more" in query for query in found.queries)


def test_real_scores_are_cosines_however_many_units_a_text_has() -> None:
    """Thousands of products of about 0.0001 add up, and are not rounded to whole steps."""
    draw, size = np.random.default_rng(0), 20_000
    rows = [
        {int(id): float(draw.uniform(3, 9)) for id in draw.permutation(size)[:n]} for n in (9000, 6000, 3000, 500, 2000)
    ]
    whole = unit(vectors(*rows, size=size))
    texts, queries = whole.take(np.arange(4)), whole.take(np.array([4]))
    recipe = recipes.get("uhd-real")
    found = DocumentScorer.from_vectors(texts, recipe).top(as_query(queries, recipe), 4)
    cosines = (texts.to_scipy() @ queries.to_scipy().T).toarray().ravel()
    assert found.positions[0].tolist() == np.argsort(-cosines).tolist()
    assert found.scores[0] == pytest.approx(np.sort(cosines)[::-1], rel=1e-2)


def folder_of(whole: Collection, place: Path, *, train: int) -> Path:
    """A BEIR folder; the first queries are its train split."""
    (place / "qrels").mkdir(parents=True)
    rows = [{"_id": doc.id, "title": doc.title, "text": doc.text} for doc in whole.documents]
    (place / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    queries = [{"_id": id, "text": text} for id, text in whole.queries.items()]
    (place / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)) + "\n")
    names = list(whole.queries)
    for split, chosen in (("train", names[:train]), ("test", names[train:])):
        judged = [f"{query}\t{doc}\t1" for query in chosen for doc in whole.qrels[query]]
        (place / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return place


def test_weights_are_learned_from_the_train_split_alone(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_training, "PENALTIES", (0.1,))
    monkeypatch.setattr(bucket_training, "WEIGHT_STEPS", 20)
    whole = collection(40)
    queries = {f"{query}-{at}": f"{text} {at}" for query, text in whole.queries.items() for at in range(6)}
    qrels = {name: whole.qrels[name.rsplit("-", 1)[0]] for name in queries}
    place = folder_of(replace(whole, queries=queries, qrels=qrels), tmp_path / "c", train=14)
    chosen = study(trained, place)
    taught = train_split(chosen)
    assert taught is not None
    assert set(taught.queries) == set(list(queries)[:14])
    assert not set(taught.queries) & set(chosen.collection.queries)
    found = reproduce(chosen, tmp_path / "r", only=["buckets"])
    assert found.failed == {}
    part = json.loads(found.data.read_text())["sections"]["buckets"]["result"]["parts"][0]
    assert "14 train queries" in part["note"]
    assert any(row["label"].startswith("fixed: ") for row in part["rows"])
    assert train_split(study(trained)) is None


def test_an_encoder_without_a_lexicon_for_it_is_refused(base: str, tmp_path: Path) -> None:
    place = folder_of(collection(40), tmp_path / "c", train=2)
    failed = run("reproduce", "uhd", place, "--encoder", base, "--out", tmp_path / "r.html", "--only", "quality")
    assert failed.exit_code != 0
    assert "leave --encoder out" in failed.stderr


def test_it_is_kept_until_the_lexicon_or_its_encoder_changes(trained: Path, base: str, tmp_path: Path) -> None:
    only = ["k", "values"]
    assert reproduce(study(trained), tmp_path / "r", only=only).kept == ()
    assert reproduce(study(trained), tmp_path / "r", only=only).kept == ("k", "values")
    assert reproduce(study(trained, sizes=replace(SIZES, tokens=50)), tmp_path / "r", only=only).kept == ("values",)
    chosen = study(trained)
    assert layers_of(chosen.systems[0].lexicon) == ["layer 1", "layer 2"]
    assert chosen.encoder.fingerprint == load_encoder(base).fingerprint  # dense is of the encoder before training
