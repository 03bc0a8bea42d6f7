"""Tuning: the search over settings, what it refuses, and the recipe files that it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from commands import data, furnished, good, run, tiny
from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.errors import InputError, NotFoundError
from lexent.evaluation import Collection, evaluate, load, measures, tuning
from lexent.evaluation.systems import Bench, Latent
from lexent.evaluation.trials import Trials
from lexent.lexicon import Lexicon
from lexent.recipes import Recipe
from small import TOPICS, documents, lexicon

POOLED = Recipe("pooled", level="pooled", k=8, power=1.0, query_power=None)


def collection(split: str = "train") -> Collection:
    """Two words of a topic as the query; documents that hold the first of them are relevant."""
    docs = documents(40)
    queries, qrels = {}, {}
    for topic, words in TOPICS.items():
        for number, word in enumerate(words.split()):
            judged = {doc.id: 1 for doc in docs if word in doc.text.split()}
            if judged:
                queries[f"{topic}{number}"] = f"{word} {topic}"
                qrels[f"{topic}{number}"] = judged
    return Collection("small", docs, queries, qrels, split)


def latent(recipe: Recipe | str = "latent-terms") -> Latent:
    chosen = recipes.get(recipe)
    words = lexicon() if chosen.level == "tokens" else Lexicon.random(TinyEncoder(), size=96, level="pooled")
    return Latent(chosen, words, TinyEncoder())


# --- trials ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [recipes.get("latent-terms"), POOLED])
def test_a_trial_gives_what_the_system_gives(start: Recipe) -> None:
    system, given = latent(start), collection()
    trials = Trials(system, given, measures="nDCG@10")
    for settings in [
        {}, {"k1": 3.0, "b": 0.9}, {"power": 0.8, "idf": "clsr"}, {"document_cap": 4}, {"document_cap": None},
        {"k2": 0.5}, {"k": 4}, {"query_cap": 3, "prune": 0.05}, {"formula": "dot"},
        {"function_words": 1.0, "emphasis": 0.0}, {},
    ]:  # fmt: skip
        recipe = start.having(**settings)
        expected = replace(system, recipe=recipe).run(given, depth=10)
        assert trials.run(recipe) == expected, settings


def test_documents_are_packed_again_only_when_they_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from lexent.indexing.segment import Segment

    packed = []
    original = Segment.pack
    monkeypatch.setattr(Segment, "pack", lambda *args, **settings: packed.append(1) or original(*args, **settings))
    start = recipes.get("latent-terms")
    trials = Trials(latent(), collection(), measures="nDCG@10")
    for settings in [{"k1": 2.0}, {"b": 0.0}, {"idf": "none"}, {"k2": 1.0}, {"query_power": 0.4}, {"formula": "dot"}]:
        trials.scores(start.having(**settings))
    assert len(packed) == 1
    trials.scores(start.having(power=0.9))
    trials.scores(start.having(document_cap=3))
    trials.scores(start)
    assert len(packed) == 3


def test_depth_is_what_the_measures_look_at() -> None:
    assert Trials(latent(), collection(), measures="nDCG@7,R@25").depth == 25
    assert Trials(latent(), collection(), measures="RR").depth == 1000


# --- the search ------------------------------------------------------------------------------------------------------


def test_a_grid_finds_the_best_of_all_combinations() -> None:
    grid = {"k1": [0.2, 5.0], "b": [0.0, 1.0], "power": [0.5, 1.0]}
    found = tuning.tune(collection(), search="grid", grid=grid, encoder=TinyEncoder(), lexicon=lexicon())
    start = recipes.get("latent-terms")
    system, expected = latent(), {}
    for k1, b, power in product([0.2, 5.0, 1.0], [0.0, 1.0, 0.4], [0.5, 1.0]):
        recipe = start.having(k1=k1, b=b, power=power)
        given = collection()
        scores = measures.score(
            given.qrels, replace(system, recipe=recipe).run(given, depth=10), measures.parse("nDCG@10")
        )
        expected[recipe] = scores.means["nDCG@10"]
    assert len(found.trials) == len(expected) == 18
    assert found.value == pytest.approx(max(expected.values()))
    assert expected[found.recipe] == pytest.approx(found.value)
    assert found.before == pytest.approx(expected[start])
    assert [trial.value for trial in found.trials] == pytest.approx(sorted(expected.values(), reverse=True))


def test_coordinates_end_where_no_single_setting_gains() -> None:
    found = tuning.tune(collection(), over=["k1", "b", "query_power"], encoder=TinyEncoder(), lexicon=lexicon())
    trials = Trials(latent(), collection(), measures="nDCG@10")
    assert found.value >= found.before
    for name in found.over:
        for value in tuning.GRID[name]:
            other = trials.scores(found.recipe.having(**{name: value})).means["nDCG@10"]
            assert other <= found.value + tuning.MIN_GAIN
    assert set(found.settings) <= {"k1", "b", "query_power"}
    assert found.start.having(**found.settings) == found.recipe


def test_several_collections_count_by_their_mean() -> None:
    whole = collection()
    half = replace(whole, name="half", queries=dict(list(whole.queries.items())[:9]))
    half = replace(half, qrels={id: whole.qrels[id] for id in half.queries})
    settings = {"grid": {"k1": [0.1, 8.0]}, "encoder": TinyEncoder(), "lexicon": lexicon()}
    found = tuning.tune([whole, half], **settings)
    alone = [tuning.tune(each, **settings) for each in (whole, half)]
    assert found.before == pytest.approx(sum(each.before for each in alone) / 2)
    assert list(found.collections) == ["small (train)", "half (train)"]
    assert found.value == pytest.approx(sum(after for _, after in found.collections.values()) / 2)
    assert 0 <= found.p_value <= 1


def test_fewer_queries_are_drawn_evenly() -> None:
    given = collection()
    part = given.with_queries(5)
    ids = list(given.queries)
    assert list(part.queries) == [ids[place * len(ids) // 5] for place in range(5)]
    assert part.qrels.keys() == part.queries.keys()


def test_pooled_recipes_tune_k2() -> None:
    system = latent(POOLED)
    found = tuning.tune(collection(), recipe=POOLED, over=["k2"], encoder=TinyEncoder(), lexicon=system.lexicon)
    assert {trial.settings["k2"] for trial in found.trials} == {*tuning.GRID["k2"], None}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"over": ["k7"]}, 'cannot tune "k7"; what can be tuned: k1, b'),
        ({"grid": {"k1": [-1]}}, "k1 is -1; allowed: from 0 to 1,000"),
        ({"measure": "nDCG@10,R@5"}, "one measure"),
        ({"over": ["k1", "b", "k2", "idf"], "search": "grid"}, "combinations; allowed: at most 5,000"),
        ({"search": "random"}, "allowed: coordinate, grid"),
        ({"queries": 0}, "queries is 0"),
    ],
)
def test_what_cannot_be_tuned(given: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tuning.tune(collection(), encoder=TinyEncoder(), lexicon=lexicon(), **given)


def test_a_test_split_is_refused(data_dir: Path) -> None:
    for source, split in [
        (collection("test"), "train"),
        (data_dir / "scifact", "test"),
        ("irds:beir/scifact/test", "train"),
    ]:
        with pytest.raises(InputError, match=r"test split|use irds:beir/scifact/train"):
            tuning.tune(source, split=split)


# --- recipe files ----------------------------------------------------------------------------------------------------


def test_a_recipe_file_reads_as_it_was_written(tmp_path: Path) -> None:
    recipe = recipes.get("clsr").having(k1=0.7, document_cap=None, idf="lucene")
    path = recipes.write(recipe, tmp_path / "mine.json")
    assert recipes.get(str(path)) == replace(recipe, name="mine")
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.json"]
    with pytest.raises(InputError, match=r"\.json"):
        recipes.write(recipe, tmp_path / "mine.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"), ("[]", "holds no recipe"), ('{"pwer": 1}', 'did you mean "power"'),
        ('{"weighting": {"k1": "high"}}', "k1 is 'high'; allowed: a number"), ('{"weighting": 3}', "weighting is 3"),
        ('{"level": "words"}', "level is 'words'; allowed: tokens, pooled"), ('{"k": 1.5}', "a whole number"),
        ('{"weighting": {"idf": "bold"}}', 'idf is "bold"; allowed: lucene'), ('{"power": 3}', "power is 3"),
        ('{"specials": 1}', "true, false"), ('{"query_k": "a"}', "or null"), ('{"name": 7}', "a text"),
        ('{"k": true}', "a whole number"),
    ],
)  # fmt: skip
def test_a_bad_recipe_file_is_refused_by_name(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        recipes.get(str(path))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_recipe_file() -> None:
    with pytest.raises(NotFoundError, match=r"no recipe file \"none.json\"; write one: lexent tune"):
        recipes.get("none.json")


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = furnished(tmp_path_factory.mktemp("tuning"))
    given = collection()
    (folder / "beir" / "qrels").mkdir(parents=True)
    rows = [{"_id": doc.id, "title": doc.title, "text": doc.text} for doc in given.documents]
    (folder / "beir" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"_id": id, "text": text} for id, text in given.queries.items()]
    (folder / "beir" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    names = list(given.qrels)
    for split, queries in (("train", names[:-5]), ("test", names[-5:])):
        lines = [f"{query}\t{doc}\t{grade}\n" for query in queries for doc, grade in given.qrels[query].items()]
        (folder / "beir" / "qrels" / f"{split}.tsv").write_text("".join(lines))
    return folder


def test_tune_prints_what_to_type(place: Path, tmp_path: Path) -> None:
    words = ("tune", place / "beir", *tiny(place), "--over", "k1,b", "--values", "k1=0.2,5", "--values", "b=0,1")
    found = data(*words, "--out", tmp_path / "mine.json", "--search", "grid")
    shown = good(*words, "--search", "grid")
    assert f"{found['value']:.4f}" in shown.stdout
    assert "9 settings tried; gain" in shown.stdout
    for name, value in found["settings"].items():
        assert f"--{name} {value:g}" in shown.stderr
    assert len(found["trials"]) == 9
    settings = ("--recipe", tmp_path / "mine.json", "--baselines", "", "--split", "train")
    used = data("eval", place / "beir", *tiny(place), *settings)
    assert used["systems"]["mine"]["nDCG@10"] == pytest.approx(found["value"])
    built = data(
        "index", place / "docs.jsonl", "--out", tmp_path / "m", *tiny(place), "--recipe", tmp_path / "mine.json"
    )
    assert built["recipe"]["weighting"]["k1"] == found["recipe"]["weighting"]["k1"]


def test_tune_refuses_a_test_split_and_bad_values(place: Path) -> None:
    refused = run("tune", place / "beir", *tiny(place), "--split", "test")
    assert refused.exit_code == 2
    assert "--split train" in refused.stderr
    assert 'write --values "k1=1,2,4"' in run("tune", place / "beir", "--values", "k1").stderr
    assert ".json" in run("tune", place / "beir", "--out", "x.txt").stderr


def test_k2_and_formula_are_options_of_index_eval_and_retune(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.lexent"
    built = data("index", place / "docs.jsonl", "--out", out, *tiny(place), "--k2", 0.5, "--formula", "dot")
    assert (built["recipe"]["weighting"]["k2"], built["recipe"]["weighting"]["formula"]) == (0.5, "dot")
    changed = data("retune", out, "--k2", 2, "--formula", "bm25")
    assert (changed["recipe"]["weighting"]["k2"], changed["recipe"]["weighting"]["formula"]) == (2.0, "bm25")
    found = data("eval", place / "beir", *tiny(place), "--k2", 0.5, "--formula", "count", "--baselines", "")
    assert found["recipe"]["weighting"]["formula"] == "count"
    assert "allowed: bm25, dot, count" in run("retune", out, "--formula", "cosine").stderr


# --- on real data ----------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_tuning_on_real_judgements_agrees_with_evaluation(data_dir: Path, shared_encoder: Encoder) -> None:
    whole = load(data_dir / "scifact", split="train")
    kept = dict(list(whole.queries.items())[:40])
    judged = {id: whole.qrels[id] for id in kept}
    gold = {id for found in judged.values() for id in found}
    docs = [doc for place, doc in enumerate(whole.documents) if doc.id in gold or place % 40 == 0]
    given = Collection("part", docs, kept, judged, "train")
    found = tuning.tune(given, grid={"k1": [0.3, 30.0], "b": [0.4, 3.0]}, search="grid", encoder=shared_encoder)
    bench = Bench(encoder=shared_encoder)
    report = evaluate(
        given, recipe=found.recipe, encoder=bench.encoder, baselines=[], measures="nDCG@10", split="train"
    )
    assert report.systems[found.recipe.name]["nDCG@10"] == pytest.approx(found.value)
    assert found.value > 0.6
    worst = found.trials[-1]
    assert worst.value < found.value - 0.02, "settings far off cost something"
