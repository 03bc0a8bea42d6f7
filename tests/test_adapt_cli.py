"""lexent adapt: train, eval, explain and deletion; what is refused; and adapters in eval, index and reproduce."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import data, good, run
from lexent.adapters import load
from lexent.adapters.encoder import AdaptedEncoder
from lexent.encoders import TinyEncoder
from lexent.errors import InputError
from lexent.evaluation.adapting import train_collection
from lexent.evaluation.collections import Collection
from lexent.evaluation.collections import load as read
from lexent.models import load_encoder
from lexent.types import Document
from test_fidelity import perfect

pytest.importorskip("ir_measures")
pytest.importorskip("bm25s")

TINY = ("--encoder", "tiny")
QUICK = ("--lr", "0.01", "--epochs", "6", "--folds", "3", "--n-negatives", "8", "--hidden", "16")
LIES = [f"noise{number}" for number in range(6)]


def write(folder: Path, *, splits: Mapping[str, Iterable[int]]) -> Path:
    """Documents of five words and one that lies; queries hold two of the words and three lies, to be unlearned."""
    random = np.random.default_rng(0)
    (folder / "qrels").mkdir(parents=True)
    words = [f"word{number}" for number in range(160)]
    documents = [" ".join(random.choice(words, 5, replace=False)) + f" {LIES[at % 6]}" for at in range(90)]
    rows = [json.dumps({"_id": f"d{at}", "title": "", "text": text}) for at, text in enumerate(documents)]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    queries = []
    for at in range(180):
        own = random.choice(documents[at % 90].split()[:5], 2, replace=False)
        lies = random.choice(LIES, 3, replace=False)
        queries.append({"_id": f"q{at}", "text": f"{' '.join(own)} {' '.join(lies)}"})
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    for split, part in splits.items():
        judged = "".join(f"q{at}\td{at % 90}\t1\n" for at in part)
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adapt")
    train = [at for at in range(150) if at % 90 < 75]  # 15 documents are new in the test split
    write(folder / "lies", splits={"train": train, "test": [at for at in range(180) if at not in train]})
    write(folder / "bare", splits={"test": range(40)})
    perfect("pooled").save(folder / "lexicon")
    return folder


@pytest.fixture(scope="module")
def trained(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = data("adapt", "train", place / "lies", "--out", place / "adapter", *TINY, *QUICK)
    return found


def test_train_says_what_held_out_queries_gained(place: Path, trained: dict[str, Any]) -> None:
    assert trained["kept_base"] is False
    assert trained["queries"] == trained["held_out"] == 135
    assert trained["adapted"]["nDCG@10"] > trained["base"]["nDCG@10"]
    assert trained["p_value"] < 0.05
    assert len(trained["curve"]) > trained["epochs"] >= 1
    assert 0 < trained["new_documents"]["queries"] < 135
    adapter = load(place / "adapter")
    assert adapter.info.training["collection"] == "lies"
    assert adapter.info.training["settings"]["lr"] == 0.01
    assert adapter.name == "adapter"
    again = run("adapt", "train", place / "lies", "--out", place / "adapter", *TINY, *QUICK)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr


def test_every_form_can_be_typed(place: Path, tmp_path: Path) -> None:
    form = ("--mode", "lowrank", "--rank", 2, "--width", 16, "--start", "pca", "--layer-norm", "--feedback", "corpus")
    how = ("--loss", "hinge", "--negatives", "bm25", "--margin", "0.2", "--held-out", "document", "--epochs", 2)
    result = good("adapt", "train", place / "lies", "--out", tmp_path / "a", *TINY, *form, *how, "--folds", 3)
    assert "held-out train queries" in result.stdout
    assert "trained  " in result.stdout
    info = good("info", tmp_path / "a").stdout
    assert "kept base" in info
    assert "verified" in good("verify", tmp_path / "a").stdout
    bad = run("adapt", "train", place / "lies", "--out", tmp_path / "b", *TINY, "--mode", "cubic")
    assert bad.exit_code == 2
    assert "allowed: diag, lowrank, full" in bad.stderr
    assert not (tmp_path / "b").exists()


def test_what_would_be_cheating_is_refused(place: Path, tmp_path: Path) -> None:
    result = run("adapt", "train", place / "lies", "--split", "test", "--out", tmp_path / "a", *TINY)
    assert result.exit_code == 2
    assert "is a test split: what learns from it has seen its answers" in result.stderr
    assert not (tmp_path / "a").exists()
    for split in ("TEST", "test-2020"):
        with pytest.raises(InputError, match="is a test split"):
            train_collection(place / "lies", split)
    with pytest.raises(InputError, match="use irds:beir/scifact/train"):
        train_collection("irds:beir/scifact/test", "train")
    with pytest.raises(InputError, match="is a test split"):
        train_collection(Collection("c", [Document("d", "t")], {"q": "t"}, {"q": {"d": 1}}, "test"), "train")
    copied = write(tmp_path / "copied", splits={"train": range(60), "test": range(50, 90)})
    with pytest.raises(InputError, match="10 of the 60 queries"):
        train_collection(copied, "train")


def test_questions_of_the_test_split_in_the_same_words_are_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "same", splits={"train": range(60), "test": range(60, 90)})
    lines = (folder / "queries.jsonl").read_text().splitlines()
    twin = json.loads(lines[70])["text"].upper()
    lines[3] = json.dumps({"_id": "q3", "text": f" {twin} "})
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    kept = train_collection(folder, "train")
    assert len(kept.queries) == 59
    assert "q3" not in kept.queries


def test_without_a_train_split_there_is_a_way_out(place: Path, tmp_path: Path) -> None:
    result = run("adapt", "train", place / "bare", "--out", tmp_path / "a", *TINY)
    assert result.exit_code == 3
    assert 'no split "train"' in result.stderr
    assert "the base retriever is what there is" in result.stderr


def test_eval_holds_all_methods_against_the_base(place: Path, trained: dict[str, Any]) -> None:
    words = ("adapt", "eval", place / "lies", place / "adapter", *TINY)
    found = data(*words, "--beside", "prf-dime-40,search-adaptor,hypencoder-3")
    assert list(found["values"]) == ["base", "imrnn", "prf-dime-40", "search-adaptor", "hypencoder-3"]
    assert found["values"]["imrnn"]["nDCG@10"] > found["values"]["base"]["nDCG@10"]
    assert set(found["p_values"]["imrnn"]) == {"nDCG@10", "R@10", "RR@10"}
    assert found["parts"]["all"]["queries"] == found["queries"] == 45
    assert sum(part["queries"] for part in found["parts"].values()) == 90  # each query in one part, and in all
    few = data(*words, "--candidates", 10)
    base = read(place / "lies", split="test")
    assert few["values"]["imrnn"]["R@10"] == few["values"]["base"]["R@10"]  # the same ten documents, in another order
    assert few["queries"] == len(base.queries)
    text = good(*words).stdout
    assert "p: paired t-test against the base" in text
    assert text.index("new queries, ") < text.index("all, 45")  # the headline is of new queries
    assert "is nearly the same (Jaccard index of content words 0.6 or more)" in text
    refused = run(*words, "--beside", "dime-40")
    assert refused.exit_code == 3
    assert "prf-dime-20 removes 20 % of the dimensions" in refused.stderr


def test_explain_at_three_levels(place: Path, trained: dict[str, Any]) -> None:
    lexicon = ("--lexicon", place / "lexicon")
    query = read(place / "lies", split="test").queries["q150"]
    words = ("adapt", "explain", place / "lies", place / "adapter", query, *TINY, *lexicon)
    found = data(*words, "--by", "concepts,words", "--document", "d60", "-k", 3)
    assert found["structure"]["mode"] == "diag"
    assert found["change"]["length"] > 0
    assert "d60" in [row["id"] for row in found["change"]["documents"]]
    assert set(found["readings"]) == {"concepts", "words"}
    named = found["readings"]["concepts"]["named"]
    assert all(each["name"].startswith("concept ") for each in named)
    assert 0 < found["readings"]["concepts"]["explained"] <= 1
    text = good(*words, "--view", "modulation").stdout
    assert "towards" in text
    assert "away from" in text
    own = data(*words, "--view", "own")
    assert 0 < own["common_share"] < 1
    assert own["readings"]["concepts"] != found["readings"]["concepts"]
    assert run(*words, "--by", "runes").exit_code == 3
    assert run(*words, "--document", "nothing").exit_code == 3
    tokens = run(*words, "--by", "tokens")
    assert tokens.exit_code == 2
    assert "no table of input embeddings" in tokens.stderr


def test_deletion(place: Path, trained: dict[str, Any]) -> None:
    lexicon = ("--lexicon", place / "lexicon")
    words = ("adapt", "deletion", place / "lies", place / "adapter", *TINY, *lexicon, "--names", 4)
    found = data(*words)["tables"][0]
    assert found["queries"] == 45
    assert found["explained"] > found["explained_random"]
    assert found["lost"]["none"] == pytest.approx(1)
    assert "random ones" in good(*words).stdout


def test_eval_lists_imrnn_among_the_systems(place: Path, trained: dict[str, Any]) -> None:
    lexicon = ("--lexicon", place / "lexicon")
    words = ("eval", place / "lies", "--recipe", "clsr", "--measures", "nDCG@10", *TINY, *lexicon)
    found = data(*words, "--adapter", place / "adapter", "--fuse", "imrnn")
    assert list(found["systems"]) == ["clsr", "imrnn", "dense", "bm25", "sum:clsr+imrnn"]
    same = data("adapt", "eval", place / "lies", place / "adapter", *TINY)
    assert found["systems"]["imrnn"]["nDCG@10"] == pytest.approx(same["values"]["imrnn"]["nDCG@10"])
    assert found["systems"]["dense"]["nDCG@10"] == pytest.approx(same["values"]["base"]["nDCG@10"])
    assert found["trained"] == ["imrnn", "sum:clsr+imrnn"]
    assert next(iter(found["parts"])) == "new"
    for name, part in same["parts"].items():
        assert found["parts"][name]["queries"] == part["queries"]
        ours = found["parts"][name]["values"]["imrnn"]["nDCG@10"]
        assert ours == pytest.approx(part["values"]["imrnn"]["nDCG@10"])
    text = good(*words, "--adapter", place / "adapter").stdout
    assert text.index("new queries, ") < text.index("all queries")
    assert "learned from queries and documents: imrnn" in text
    plain = data(*words)
    assert plain["trained"] == []
    assert plain["parts"] == {}


def test_an_adapter_feeds_clsr(place: Path, trained: dict[str, Any], tmp_path: Path) -> None:
    """Adapted vectors are coded, indexed, searched, explained and refused like any other encoder's."""
    encoder = load_encoder(place / "adapter")
    assert isinstance(encoder, AdaptedEncoder)
    plain = TinyEncoder()
    texts = ["word1 word2 noise3", "word4 noise5", ""]
    (rows, states), *_ = encoder.batches(texts, kind="document", level="pooled")
    (_, before), *_ = plain.batches(texts, kind="document", level="pooled")
    assert rows.tolist() == [0, 1, 2]
    projected = encoder.adapter.project(before.numpy())
    assert states.numpy() @ states.numpy().T == pytest.approx(projected @ projected.T, abs=1e-4)

    own = ("--encoder", place / "adapter", "--lexicon", place / "lexicon")
    out = tmp_path / "lies.lexent"
    good("index", place / "lies", "--out", out, "--recipe", "clsr", *own)
    hits = data("search", out, "word1 word2", "-k", 3)["hits"]
    assert hits
    for hit in hits:
        total = sum(part["value"] for part in hit["contributions"]) + hit["rest"]
        assert total == pytest.approx(hit["score"], abs=1e-5)
    other = run("search", out, "word1", "--encoder", "tiny")
    assert other.exit_code == 5
    tokens = run(
        "index",
        place / "lies",
        "--out",
        tmp_path / "t.lexent",
        "--recipe",
        "latent-terms",
        "--encoder",
        place / "adapter",
    )
    assert tokens.exit_code != 0

    measured = ("eval", place / "lies", "--recipe", "clsr", "--measures", "nDCG@10", "--lexicon", place / "lexicon")
    fed = data(*measured, "--encoder", place / "adapter")["systems"]
    raw = data(*measured, *TINY)["systems"]
    assert fed["clsr"]["nDCG@10"] > raw["clsr"]["nDCG@10"]
    assert fed["dense"]["nDCG@10"] > raw["dense"]["nDCG@10"]


def test_reproduce_prints_the_table_with_all_methods(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from lexent.studies.reproduction import adapting

    form, how = adapting.FORMS[adapting.PAPER]
    assert (form["mode"], form["width"], how["epochs"], how["patience"]) == ("full", 256, 20, 5)  # as in the paper
    monkeypatch.setattr(adapting, "SETTINGS", {"epochs": 3, "folds": 3, "lr": 0.01, "n_negatives": 4})
    monkeypatch.setattr(adapting, "BESIDE", ("prf-dime-20", "search-adaptor", "hypencoder-2"))
    short = {name: (form, {**how, "epochs": 1}) for name, (form, how) in adapting.FORMS.items()}
    monkeypatch.setattr(adapting, "FORMS", short)
    monkeypatch.chdir(tmp_path)
    words = ("reproduce", "imrnns", place / "lies", *TINY, "--lexicon", place / "lexicon", "--queries", 10)
    result = good(*words)
    for name in ("base", "imrnn", "prf-dime-20", "search-adaptor", "hypencoder-2"):
        assert name in result.stdout
    assert result.stdout.index(" new queries") < result.stdout.index("queries by what training has seen")
    assert "paper: full, hinge 0.3" in result.stdout
    assert "imrnns-lies.html: 3 sections" in result.stdout
    page = (tmp_path / "imrnns-lies.html").read_text()
    assert "0.6917" in page
    assert json.loads((tmp_path / "imrnns-lies.json").read_text())["sections"]["deletion"]["error"] is None
    bare = run("reproduce", "imrnns", place / "bare", *TINY, "--lexicon", place / "lexicon", "--only", "adapted")
    assert bare.exit_code == 1
    assert "the base retriever is what there is" in bare.stderr
