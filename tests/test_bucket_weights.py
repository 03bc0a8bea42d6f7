"""Weights of buckets: fixed ones by a grid, ones that depend on the query, and what is kept of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import data, run
from lexent import recipes
from lexent.errors import ArtifactError, InputError, MismatchError
from lexent.evaluation import Collection, bucket_training, tuning
from lexent.evaluation.bucket_training import TRAINING_DEPTH, Lessons, learn, lessons_of
from lexent.evaluation.systems import Bench, Latent
from lexent.evaluation.trials import Trials
from lexent.lexicon import load
from lexent.lexicon.bucket_weights import FILE, BucketWeights, features
from lexent.models import load_encoder
from lexent.training.uhd.train import train_uhd
from small import documents
from test_encoders import small_model
from test_tuning import collection
from test_uhd import SMALL, pairs

RECIPE = replace(recipes.get("uhd"), k=6, query_k=4)


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lexicon of two buckets for a small transformer."""
    folder = tmp_path_factory.mktemp("buckets")
    small_model(folder, "bert").save_pretrained(str(folder / "model"))
    texts = [one.content for one in documents()]
    config = replace(SMALL, layers=(1, 2), steps=2)
    train_uhd(texts, pairs(), out=folder / "winners", encoder=str(folder / "model"), config=config)
    return folder / "winners"


def system(lexicon: Path) -> Latent:
    return Latent(RECIPE, load(lexicon), load_encoder(str(lexicon)))


def told_apart(n: int = 200, *, seed: int = 0) -> Lessons:
    """Queries whose first number says which of two buckets is right about them; the other one is wrong."""
    draw = np.random.default_rng(seed)
    sign = np.where(draw.random(n) < 0.5, 1.0, -1.0)
    given = np.stack([sign, draw.standard_normal(n)], axis=1).astype(np.float32)
    scores = draw.random((n, 12, 2)).astype(np.float32) * 0.5
    gains = np.zeros((n, 12), np.float32)
    gains[:, 0] = 1
    right = (sign < 0).astype(int)
    scores[np.arange(n), 0, right] = 0.6
    scores[np.arange(n), 0, 1 - right] = 0.0
    return Lessons(given, scores, gains, np.ones(n))


def test_what_a_query_is_about_decides_where_that_pays() -> None:
    lessons, others = told_apart(seed=1), told_apart(seed=2)
    fixed = bucket_training._grid(lessons)
    found = bucket_training._fit(lessons, fixed, penalty=0.003)
    by_fixed = bucket_training._ndcg(others, np.broadcast_to(fixed, (200, 2))).mean()
    predicted = bucket_training._ndcg(others, found.of(others.features)).mean()
    assert predicted > by_fixed + 0.2
    strict = bucket_training._fit(lessons, fixed, penalty=1e6)
    assert np.abs(strict.rows).max() < 1e-2  # nothing but the fixed weights is left


def noise(n: int = 40, *, seed: int = 0) -> Lessons:
    """Queries whose features say nothing about their documents."""
    draw = np.random.default_rng(seed)
    scores, gains = draw.random((n, 12, 2)).astype(np.float32), np.zeros((n, 12), np.float32)
    scores[:, 0] += 0.25
    gains[:, 0] = 1
    return Lessons(draw.standard_normal((n, 8)).astype(np.float32), scores, gains, np.ones(n))


def test_the_penalty_is_not_chosen_by_what_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_training, "WEIGHT_STEPS", 10)
    reported, best = [], []
    for seed in range(3):
        lessons, fold = noise(seed=seed), np.arange(40) % bucket_training.FOLDS
        alone = []
        for penalty in (0.0, 0.3):
            monkeypatch.setattr(bucket_training, "PENALTIES", (penalty,))
            alone.append(bucket_training._learned(lessons, fold, 2).values["predicted"])
        monkeypatch.setattr(bucket_training, "PENALTIES", (0.0, 0.3))
        reported.append(bucket_training._learned(lessons, fold, 2).values["predicted"])
        best.append(max(alone))
    assert np.mean(reported) < np.mean(best)  # where the reported queries choose, both are the same


def test_weights_of_a_fold_do_not_depend_on_its_own_judgements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_training, "WEIGHT_STEPS", 10)
    monkeypatch.setattr(bucket_training, "PENALTIES", (0.0, 0.3))
    lessons, fold = told_apart(60), np.arange(60) % bucket_training.FOLDS
    other = lessons.gains.copy()
    other[fold == 0] = np.roll(other[fold == 0], 1, axis=1)
    before = bucket_training._held_out(lessons, fold)
    after = bucket_training._held_out(replace(lessons, gains=other), fold)
    for one, two in zip(before, after, strict=True):
        assert (one[fold == 0] == two[fold == 0]).all()
    assert not (before[1][fold == 1] == after[1][fold == 1]).all()


def test_judgements_that_no_candidate_meets_teach_nothing() -> None:
    lessons = replace(noise(), gains=np.zeros((40, 12), np.float32))
    found = bucket_training._learned(lessons, np.arange(40) % bucket_training.FOLDS, 2)
    assert found.predictor is None
    assert set(found.values.values()) == {0.0}


def test_the_grid_finds_the_weights_that_were_right() -> None:
    draw = np.random.default_rng(0)
    scores = draw.random((50, 20, 3)).astype(np.float32)
    gains = np.zeros((50, 20), np.float32)
    gains[np.arange(50), scores[:, :, 1].argmax(axis=1)] = 1
    lessons = Lessons(np.zeros((50, 1), np.float32), scores, gains, np.ones(50))
    best = bucket_training._grid(lessons)
    assert best[1] == 1
    assert best[0] < 1
    assert bucket_training._ndcg(lessons, np.broadcast_to([0, 1, 0], (50, 3))).mean() == 1


def test_equal_weights_give_what_the_engine_gives(lexicon: Path) -> None:
    given, used = collection(), system(lexicon)
    assert len(given.documents) <= TRAINING_DEPTH
    lessons = lessons_of(used, given)
    trials = Trials(used, given, measures="nDCG@10")
    for weights in ((1.0, 1.0), (0.33, 1.0), (1.0, 0.0)):
        recipe = RECIPE.having(buckets=weights)
        totals = np.sort(lessons.scores @ np.array(weights, np.float32), axis=1)[:, ::-1]
        by_engine = trials.scorer(recipe).top(trials.queries(recipe), len(given.documents))
        for ours, theirs, places in zip(totals, by_engine.scores, by_engine.positions, strict=True):
            known = theirs[places >= 0]
            assert np.allclose(ours[: len(known)] / ours[0], known / known[0], atol=1e-5)
            assert (ours[len(known) :] == 0).all()  # the engine gives what shares a concept, and no other


def test_learning_reports_what_was_not_learned_from(lexicon: Path) -> None:
    found = learn([(system(lexicon), collection())])
    assert set(found.values) == {"equal", "fixed", "predicted", "oracle", "bucket 0", "bucket 1"}
    assert found.values["oracle"] >= max(found.values["bucket 0"], found.values["bucket 1"])
    assert max(found.fixed) == 1
    assert (found.predictor is None) == (found.values["predicted"] <= found.values["fixed"])
    few = replace(collection(), queries=dict(list(collection().queries.items())[:3]))
    with pytest.raises(InputError, match="there are 3 queries"):
        learn([(system(lexicon), few)])


def test_weights_are_bounded_and_saved(lexicon: Path, tmp_path: Path) -> None:
    whole = load(lexicon)
    rows = np.random.default_rng(0).standard_normal((66, 2)).astype(np.float32) * 9
    weights = BucketWeights(rows, np.zeros(2, np.float32), {"queries": 3})
    vectors = system(lexicon).pooled(["dough oven", "rook", ""], kind="query")
    told = features(vectors, whole.sae)
    assert told.shape == (3, 66)
    assert np.allclose(np.linalg.norm(told[:2, :32], axis=1), 1, atol=1e-5)
    found = weights.of(told)
    assert (found.max(axis=1) == 1).all()
    assert found.min() >= 1 / 20 - 1e-6
    saved = whole.weighing(weights).save(tmp_path / "weighed")
    opened = load(saved)
    assert opened.hash == whole.hash  # an index stays good
    assert opened.bucket_weights is not None
    assert (opened.bucket_weights.rows == rows).all()
    assert opened.bucket_weights.facts == {"queries": 3}
    BucketWeights(rows[:5], np.zeros(2, np.float32)).save(saved)
    with pytest.raises(ArtifactError, match="for 2 buckets of width 32"):
        BucketWeights.load(saved, width=32, buckets=2)
    (saved / FILE).write_bytes(b"nothing")
    with pytest.raises(ArtifactError, match="is damaged"):
        BucketWeights.load(saved, width=32, buckets=2)


def test_a_search_with_predicted_weights_sums_up(lexicon: Path, tmp_path: Path) -> None:
    from lexent.engine import Index

    rows = np.random.default_rng(1).standard_normal((66, 2)).astype(np.float32)
    folder = load(lexicon).weighing(BucketWeights(rows, np.zeros(2, np.float32))).save(tmp_path / "weighed")
    index = Index.build(documents(), out=tmp_path / "x", lexicon=folder, recipe=replace(RECIPE, predicted=True))
    hits = index.search("dough oven crust", k=5).hits
    for hit in hits:
        assert hit.score == pytest.approx(sum(part.value for part in hit.explain().contributions), rel=1e-5)
    assert len({part.query for hit in hits for part in hit.explain().contributions}) == 2  # a weight a bucket
    plain = Index.build(documents(), out=tmp_path / "y", lexicon=lexicon, recipe=replace(RECIPE, predicted=True))
    with pytest.raises(MismatchError, match="--predict"):
        plain.search("dough")


def test_buckets_are_tuned_on_train_queries_only(lexicon: Path) -> None:
    found = tuning.tune(collection(), recipe=RECIPE, over=["buckets"], lexicon=load(lexicon), search="grid")
    assert len(found.trials) == 8  # 4 x 4 weights with a 1 among them, and none given
    assert found.value >= found.before
    with pytest.raises(InputError, match="is refused"):
        tuning.predict_buckets([collection("test")], recipe=RECIPE, lexicon=load(lexicon))
    with pytest.raises(InputError, match="a lexicon that has several"):
        tuning.tune(collection(), recipe="latent-terms", over=["buckets"])


def test_a_bench_keeps_an_encoder_of_a_lexicon_apart(lexicon: Path) -> None:
    bench = Bench(lexicon=load(lexicon))
    dense, winners = bench.system("dense"), bench.system("uhd")
    given = collection()
    assert dense.run(given, depth=3)
    assert isinstance(winners, Latent)
    assert winners.encoder.id == str(lexicon)
    assert bench.encoder.id != str(lexicon)


def test_from_the_command_line(lexicon: Path, tmp_path: Path) -> None:
    folder = beir(tmp_path / "c", collection())
    recipe = tmp_path / "small.json"
    recipe.write_text(json.dumps(RECIPE.to_dict()))
    words: list[Any] = ["--recipe", recipe, "--lexicon", lexicon]
    found = data("tune", folder, *words, "--predict", tmp_path / "weighed")
    assert set(found["values"]) >= {"fixed", "predicted", "oracle"}
    assert (found["lexicon"] is None) == (not (tmp_path / "weighed").exists())
    shown = run("tune", folder, *words, "--over", "buckets", "--search", "grid")
    assert shown.exit_code == 0, shown.stderr
    assert "buckets" in shown.stdout
    report = data("eval", folder, "--split", "train", *words, "--buckets", "0.5,1", "--baselines", "dense")
    assert len(report["systems"]) == 2
    wrong = run("eval", folder, "--split", "train", *words, "--buckets", "1,2,3")
    assert wrong.exit_code != 0
    assert "the lexicon has 2" in " ".join(wrong.stderr.split())


def beir(folder: Path, given: Collection) -> Path:
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": one.id, "title": one.title, "text": one.text} for one in given.documents]
    asked = [{"_id": id, "text": text} for id, text in given.queries.items()]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    judged = [f"{query}\t{id}\t{grade}" for query, found in given.qrels.items() for id, grade in found.items()]
    (folder / "qrels" / "train.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    return folder
