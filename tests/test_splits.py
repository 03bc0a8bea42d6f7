"""Splits of collections: which are for learning and which for measuring, by id and by folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commands import data, good, run, tiny
from lexent.encoders import TinyEncoder
from lexent.errors import InputError, LexentError, NotFoundError
from lexent.evaluation import collections, load, tuning
from lexent.evaluation.adapting import train_collection
from lexent.evaluation.bucket_training import learn
from lexent.evaluation.comparison import compare
from lexent.evaluation.overlap import train_groups
from lexent.evaluation.systems import Latent
from lexent.lexicon import Lexicon
from lexent.studies import analyses
from lexent.studies.reproduction.binary_retrieval import train_split
from lexent.studies.reproduction.losses import lessons
from lexent.studies.reproduction.retrieval import analysis
from lexent.studies.reproduction.study import Study
from lexent.training.pair_sources import collection_pairs
from registered import register
from test_adapt_cli import QUICK, TINY, write

pytest.importorskip("ir_measures")
pytest.importorskip("bm25s")
pytest.importorskip("ir_datasets")

PARTS = {"train": "train", "test": "test", "dev": "dev", "dev/small": "dev", "trec-dl-2019": "test"}
TEST_IDS = ("irds:lexent-split/test", "lexent-split/test", "irds:lexent-split/trec-dl-2019", "irds:lexent-alone")
TRAIN_IDS = ("irds:lexent-split/train", "lexent-split/train", "irds:lexent-split", "lexent-split")
K1 = ("--over", "k1", "--values", "k1=1,8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 test queries ask for d30 to d69; train queries ask for d0 to d59."""
    folder = tmp_path_factory.mktemp("splits")
    splits = {"train": range(60), "test": range(120, 160), "dev": range(160, 180), "all": range(180)}
    whole = write(folder / "whole", splits=splits)
    register("lexent-split", whole, PARTS)
    register("lexent-union", whole, {"train": "train", "test": "test"}, own="all")
    register("lexent-alone", whole, {}, own="test")
    Lexicon.random(TinyEncoder(), size=96).save(folder / "lexicon")
    return folder


def refused(result: object, *parts: str) -> None:
    assert result.exit_code in (2, 3), result.stdout  # type: ignore[attr-defined]
    for part in parts:
        assert part in result.stderr  # type: ignore[attr-defined]


# --- what split a collection is --------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["irds:", ""])
def test_the_split_of_a_collection_is_true(place: Path, prefix: str) -> None:
    for id, split, queries in [
        ("lexent-split/train", "train", 60), ("lexent-split/test", "test", 40), ("lexent-split", "test", 40),
        ("lexent-split/dev/small", "dev", 20), ("lexent-split/trec-dl-2019", "test", 40),
        ("lexent-union", "test", 40), ("lexent-union/train", "train", 60), ("lexent-alone", "test", 40),
    ]:  # fmt: skip
        found = load(f"{prefix}{id}")
        assert (found.split, len(found.queries)) == (split, queries), id
    assert load(f"{prefix}lexent-split", split="train").name == "lexent-split/train"
    assert load(f"{prefix}lexent-union", split="train").name == "lexent-union/train"
    assert load(f"{prefix}lexent-split/dev/small", split="dev").name == "lexent-split/dev/small"
    assert load(place / "whole").split == "test"


@pytest.mark.parametrize("prefix", ["irds:", ""])
def test_an_id_is_not_read_as_another_split(place: Path, prefix: str) -> None:
    for id, split, other in [
        ("lexent-split/test", "train", "irds:lexent-split/train"),
        ("lexent-split/test", "dev", "irds:lexent-split/dev"),
        ("lexent-split/train", "test", "irds:lexent-split/test"),
        ("lexent-split/trec-dl-2019", "train", "irds:lexent-split/train"),
    ]:  # fmt: skip
        with pytest.raises(LexentError, match=other):
            load(f"{prefix}{id}", split=split)
    with pytest.raises(NotFoundError, match='has no split "train"'):
        load(f"{prefix}lexent-alone", split="train")


def test_eval_says_which_split_it_measured(place: Path) -> None:
    settings = (*tiny(place), "--baselines", "")
    assert data("eval", "irds:lexent-split/train", *settings)["split"] == "train"
    assert data("eval", "lexent-split/dev/small", *settings)["split"] == "dev"
    assert data("eval", "irds:lexent-split", "--split", "train", *settings)["collection"] == "lexent-split/train"
    refused(run("eval", "irds:lexent-split/test", "--split", "train", *settings), "irds:lexent-split/train")


# --- what learns refuses a test split --------------------------------------------------------------------------------


@pytest.mark.parametrize("id", TEST_IDS)
def test_tuning_refuses_a_test_id(place: Path, id: str) -> None:
    refused(run("tune", id, *tiny(place), *K1), "test split")
    assert run("tune", id, "--split", "train", *tiny(place), *K1).exit_code != 0


@pytest.mark.parametrize("id", TRAIN_IDS)
def test_tuning_accepts_a_train_id(place: Path, id: str) -> None:
    found = data("tune", id, *tiny(place), *K1)
    assert list(found["collections"]) == ["lexent-split/train (train)"]


def test_tuning_accepts_a_dev_id_and_says_so(place: Path) -> None:
    found = data("tune", "irds:lexent-split/dev/small", *tiny(place), *K1)
    assert list(found["collections"]) == ["lexent-split/dev/small (dev)"]
    shown = good("tune", "irds:lexent-split/train", *tiny(place), *K1)
    assert "lexent eval irds:lexent-split/test" in shown.stdout + shown.stderr


def test_a_folder_is_judged_by_the_name_of_its_qrels_file(place: Path) -> None:
    for split in ("test", "all"):
        refused(run("tune", place / "whole", "--split", split, *tiny(place), *K1), "--split train")
        refused(run("adapt", "train", place / "whole", "--split", split, "--out", place / "no", *TINY), "--split train")
        with pytest.raises(InputError, match="--split train"):
            collection_pairs(place / "whole", split=split)
    assert data("tune", place / "whole", "--split", "dev", *tiny(place), *K1)["collections"].keys() == {"whole (dev)"}


def test_all_that_learns_refuses_a_collection_of_a_test_split(place: Path) -> None:
    test = load("irds:lexent-split/test")
    words = Lexicon.random(TinyEncoder(), size=96)
    system = Latent(
        Study.of("latent-terms", test, encoder="tiny", lexicon=words).systems[0].recipe, words, TinyEncoder()
    )
    for learner in (
        lambda: tuning.tune(test, encoder="tiny", lexicon=words),
        lambda: tuning.predict_buckets([test], encoder="tiny", lexicon=words),
        lambda: train_collection(test, "train"),
        lambda: learn([(system, test)]),
        lambda: analyses.analyse(test, what=["tuned"], train=test, encoder="tiny", lexicon=words),
    ):
        with pytest.raises(InputError, match="test split"):
            learner()


@pytest.mark.parametrize("id", TEST_IDS)
def test_adapters_and_pairs_refuse_a_test_id(place: Path, id: str) -> None:
    refused(run("adapt", "train", id, "--out", place / "no", *TINY, *QUICK), "test split")
    with pytest.raises(LexentError, match="test split"):
        collection_pairs(id)
    recipe = ("--recipe", "ssr", "--prepare", "--negatives", "none", "--out", place / "no.npz", *TINY)
    refused(run("train", place / "whole" / "corpus.jsonl", "--pairs", id, *recipe), "test split")
    assert not (place / "no.npz").exists()


@pytest.mark.parametrize("id", TRAIN_IDS)
def test_pairs_of_a_train_id(place: Path, id: str) -> None:
    out = place / f"{id.replace('/', '-').replace(':', '-')}.npz"
    texts = place / "whole" / "corpus.jsonl"
    how = ("--recipe", "ssr", "--prepare", "--negatives", "none", *TINY)
    shown = good("train", texts, "--pairs", id, "--out", out, *how)
    assert "found    60 pairs" in shown.stderr + shown.stdout


# --- the training split of what is measured --------------------------------------------------------------------------


@pytest.mark.parametrize("id", TEST_IDS[1:3])
def test_analyses_tune_on_the_train_split_of_a_test_id(place: Path, id: str) -> None:
    shown = good("analyse", id, "--what", "tuned", *tiny(place)).stdout
    assert "tuned on lexent-split/train (train): " in shown
    assert shown.splitlines()[0].startswith(f"{load(id).name} (test): 90 documents, 40 queries")


def test_analyses_without_a_train_split_tune_nothing_and_never_on_test(place: Path) -> None:
    for id, shown in (("irds:lexent-alone", "(test)"), ("irds:lexent-split/train", "(train)")):
        found = good("analyse", id, "--what", "tuned", *tiny(place)).stdout
        assert shown in found.splitlines()[0]
        assert "no train split to tune on" in found
    result = run("analyse", place / "whole", "--what", "tuned", "--split", "dev", "--train", "test", *tiny(place))
    refused(result, "test split")


@pytest.mark.parametrize("id", TEST_IDS[:3])
def test_reproductions_learn_from_the_train_split_of_a_test_id(place: Path, id: str) -> None:
    words = Lexicon.random(TinyEncoder(), size=96)
    study = Study.of("latent-terms", id, encoder="tiny", lexicon=words)
    assert study.collection.split == "test"
    taught = train_split(study)
    assert taught is not None
    assert (taught.name, taught.split, len(taught.queries)) == ("lexent-split/train", "train", 60)
    pairs, where = lessons(study)
    assert where == "the train split"
    assert not set(pairs.queries) & set(study.collection.queries.values())


def test_reproductions_without_a_train_split_learn_from_no_judgement(place: Path) -> None:
    study = Study.of(
        "latent-terms", "irds:lexent-split/test", encoder="tiny", lexicon=Lexicon.random(TinyEncoder(), size=96)
    )
    assert "tuned on lexent-split/train (train)" in analysis("tuned", study)["tables"][0]["note"]
    for id in ("irds:lexent-alone", "irds:lexent-split/train"):
        bare = replace(study, source=id, collection=load(id))
        assert train_split(bare) is None
        with pytest.raises(InputError, match="no pairs"):  # these documents have no titles, and judgements are not used
            lessons(bare)


def test_an_adapter_of_a_train_id_and_its_comparison(place: Path) -> None:
    out = place / "adapter"
    found = data("adapt", "train", "irds:lexent-split/train", "--out", out, *TINY, *QUICK)
    assert (found["collection"], found["split"], found["queries"]) == ("lexent-split/train", "train", 60)
    for id in ("irds:lexent-split/test", "lexent-split/test", "irds:lexent-split", place / "whole"):
        parts = data("adapt", "eval", id, out, *TINY)["parts"]
        counts = {name: part["queries"] for name, part in parts.items()}
        assert counts["all"] == 40
        assert 0 < counts["new"] <= 10, "30 of the 40 ask for documents that training asked for"
        assert counts["document seen"] + counts["query seen"] + counts["new"] == 40
    assert data("adapt", "eval", "irds:lexent-split/train", out, *TINY)["parts"] == {}
    beside = compare("irds:lexent-split/test", out, encoder="tiny", beside=["search-adaptor"])
    assert "search-adaptor" in beside.values


def test_a_folder_without_a_split_to_learn_from_says_so(tmp_path: Path) -> None:
    folder = write(tmp_path / "beir", splits={"train": range(30), "test": range(30, 60)})
    for path in (folder / "qrels").iterdir():
        if not path.name.startswith("test"):
            path.unlink()
    said = run("tune", folder, "--recipe", "latent-terms").stderr
    assert "there is none to learn from" in said
    assert "--split" not in said


def test_a_train_split_that_cannot_be_read_leaves_the_measured_one_alone(tmp_path: Path) -> None:
    folder = write(tmp_path / "beir", splits={"train": range(30), "test": range(30, 60)})
    tested = load(folder)
    assert train_groups(folder, tested)
    (folder / "qrels" / "train.tsv").write_text("")
    assert train_groups(folder, tested) == {}
    (folder / "qrels" / "test.tsv.bak").write_text("junk")
    assert collections.tested_queries(folder)
