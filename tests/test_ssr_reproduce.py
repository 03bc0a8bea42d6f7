"""The report on SSR: its systems, each section on a small collection, and what is kept of it."""

from __future__ import annotations

import gc
import json
import mmap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from commands import good
from lexent.encoders import TinyEncoder
from lexent.encoders.encoder import encode
from lexent.evaluation.baselines import DenseMaxSim, maxsim
from lexent.evaluation.collections import Collection
from lexent.lexicon import Lexicon
from lexent.studies.reproduction import Sizes, Study, reproduce
from lexent.studies.reproduction.encoded_corpus import EncodedCorpus, joined, quality, scorer, speed
from lexent.studies.reproduction.losses import lessons
from lexent.studies.reproduction.reproduce import every_section
from lexent.studies.reproduction.token_index import Memory
from lexent.types import States
from small import documents
from test_fidelity import collection

pytest.importorskip("matplotlib")

SIZES = Sizes(tokens=60, limit=60, latents=48, steps=4, lessons=40)


def lexicon(whole: int = 40) -> Lexicon:
    made = Lexicon.random(TinyEncoder(), size=96, whole=whole)
    return made.renamed(made.concepts, replace(made.info, match="maxsim"))


def study(whole: Collection | None = None, **settings: Any) -> Study:
    given = {"encoder": TinyEncoder(), "lexicon": lexicon(), "sizes": SIZES, **settings}
    return Study.of("ssr", whole or collection(60), **given)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    found = reproduce(study(), tmp_path_factory.mktemp("report") / "ssr.html", command="lexent reproduce ssr topics")
    assert found.failed == {}
    return found.page, json.loads(found.data.read_text())


def test_every_section_is_made(report: tuple[Path, Any]) -> None:
    text, data = report[0].read_text(), report[1]
    names = ["quality", "limit", "theory", "k", "long", "losses", "latents", "modes", "growth", "index"]
    assert list(data["sections"]) == names == [section.name for section in every_section("ssr")]
    for name in names:
        assert data["sections"][name]["result"], name
        assert f'<section id="{name}">' in text
    assert "What the paper reports" in text
    assert "54,278" in text
    assert set(data["recipes"]) == {"ssr", "ssr-cls", "ssr++"}


def test_quality_is_what_evaluate_finds(report: tuple[Path, Any]) -> None:
    from lexent.evaluation import evaluate

    values = report[1]["sections"]["quality"]["result"]["values"]
    assert set(values) == {"ssr", "ssr-cls", "ssr++", "dense-maxsim", "dense", "bm25"}
    found = evaluate(collection(60), recipe=["ssr", "ssr-cls"], lexicon=lexicon(), encoder=TinyEncoder())
    for name in ("ssr", "ssr-cls", "dense", "bm25"):
        assert values[name] == pytest.approx(found.systems[name])
    limit = report[1]["sections"]["limit"]["result"]
    assert (limit["documents"], limit["queries"]) == (60, 1035)
    assert set(limit["values"]["ssr"]) == {"R@5", "R@10", "R@100"}


def test_sections_agree_with_each_other(report: tuple[Path, Any]) -> None:
    """The same 60 documents by five ways of packing them: one exact search."""
    sections = {name: section["result"] for name, section in report[1]["sections"].items()}
    expected = pytest.approx(sections["quality"]["values"]["ssr"])
    assert sections["modes"]["rows"][0]["values"] == expected
    assert sections["growth"]["rows"][-1]["values"] == expected
    assert {row["k"]: row["values"] for row in sections["k"]["rows"]}[32] == expected
    assert [row["documents"] for row in sections["growth"]["rows"]] == sorted(
        {row["documents"] for row in sections["growth"]["rows"]}
    )


def test_losses_are_trained_from_one_start(report: tuple[Path, Any]) -> None:
    rows = report[1]["sections"]["losses"]["result"]["rows"]
    assert [row["name"][:1] for row in rows] == ["r", "+", "+", "+"]
    assert all(0 < row["fvu"] < 2 for row in rows)
    assert len({row["fvu"] for row in rows}) >= 2  # a loss changes something
    widths = report[1]["sections"]["latents"]["result"]["rows"]
    assert [row["latents"] for row in widths] == [16, 24, 48, 96]
    pairs, where = lessons(study())
    assert "no train split" in where
    assert len(pairs) == 30  # every second document has a title
    assert len(pairs.documents) <= SIZES.lessons
    assert pairs.negatives.shape[1] > 0


def test_a_train_split_is_learned_from_and_the_test_split_is_not(tmp_path: Path) -> None:
    whole = collection(40)
    (tmp_path / "qrels").mkdir()
    rows = [{"_id": doc.id, "title": doc.title, "text": doc.text} for doc in whole.documents]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    queries = [{"_id": id, "text": text} for id, text in whole.queries.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)) + "\n")
    for split, chosen in (("train", list(whole.queries)[:3]), ("test", list(whole.queries)[3:])):
        judged = [f"{query}\t{doc}\t1" for query in chosen for doc in whole.qrels[query]]
        (tmp_path / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    given: dict[str, Any] = {"encoder": TinyEncoder(), "lexicon": lexicon(), "sizes": SIZES}
    pairs, where = lessons(Study.of("ssr", tmp_path, **given))
    assert where == "the train split"
    assert set(pairs.queries) == set(list(whole.queries.values())[:3])

    lexicon().save(tmp_path / "lexicon")
    words = ["reproduce", "ssr", tmp_path, "--encoder", "tiny", "--lexicon", tmp_path / "lexicon"]
    words += ["--out", tmp_path / "r.html", "--only", "modes,latents", "--steps", 3, "--latents", 32, "--lessons", 20]
    shown = good(*words).stdout
    assert "exact search (ssr) and fast search (ssr++)" in shown
    assert "3 steps on 20 pairs from the train split" in shown
    assert "2 sections" in shown
    assert "--latents 32 --steps 3 --lessons 20" in (tmp_path / "r.html").read_text()


def test_it_is_kept_and_sizes_make_it_again(tmp_path: Path) -> None:
    only = ["k", "modes"]
    assert reproduce(study(), tmp_path / "r", only=only).kept == ()
    assert reproduce(study(), tmp_path / "r", only=only).kept == ("k", "modes")
    assert reproduce(study(sizes=replace(SIZES, tokens=30)), tmp_path / "r", only=only).kept == ("modes",)
    other = lexicon(whole=0)
    found = study(lexicon=other)
    assert [system.name for system in found.matches] == ["ssr", "ssr++"]
    assert reproduce(found, tmp_path / "r", only=only).kept == ()


def test_dense_maxsim_is_the_formula() -> None:
    texts, encoder = [doc.content for doc in documents(20)], TinyEncoder()
    queries, held = (encode(encoder, given, kind=kind) for given, kind in ((texts[:3], "query"), (texts, "document")))  # type: ignore[arg-type]
    found = maxsim(queries, held)
    for row in range(3):
        for column in range(20):
            ours, theirs = queries.of(row), held.of(column)
            ours, theirs = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (ours, theirs))
            assert found[row, column] == pytest.approx((ours @ theirs.T).max(axis=1).sum(), rel=1e-5)
    empty = States(torch.zeros(2, encoder.dim), np.array([0, 0, 2, 2], np.int64))
    assert maxsim(queries, empty).shape == (3, 3)
    assert not maxsim(queries, empty)[:, [0, 2]].any()
    run = DenseMaxSim(encoder).run(collection(20), depth=5)
    assert all(len(found) == 5 for found in run.values())


def test_documents_that_are_scored_are_counted() -> None:
    whole = collection(400)
    chosen = study(whole).matches[0]
    found = chosen.scorer(whole)
    asked = chosen.queries(whole, found.document_scorer)
    from lexent.search.modes import Fast

    for query in asked:
        exact = found.scored(query, 3)
        assert 3 <= exact <= 400
        assert found.scored(query, 3, mode=Fast(candidates=30)) == 30
        assert found.scored(query, 400) >= exact
    assert speed(found, asked, k=3, mode=Fast(candidates=30))["scored"] == 30


def test_held_states_are_coded_once_and_give_what_the_system_gives() -> None:
    whole, encoder = collection(30), TinyEncoder()
    held, chosen = EncodedCorpus.of(whole, encoder), study(whole).matches[0]
    wide = held.codes(chosen.lexicon, 64)
    narrow = held.codes(chosen.lexicon, chosen.recipe.k)
    np.testing.assert_array_equal(narrow.ids, wide.ids[:, : chosen.recipe.k])
    found = scorer(narrow, chosen.lexicon, chosen.recipe)
    expected = chosen.scorer(whole)
    asked = chosen.queries(whole, expected.document_scorer)
    ours = quality(found, chosen.queries(whole, found.document_scorer), whole, measures=["nDCG@10"])
    assert ours.means == pytest.approx(quality(expected, asked, whole, measures=["nDCG@10"]).means)


def test_long_documents_hold_every_text_once() -> None:
    offsets = np.cumsum([0, *([7, 3, 12, 5] * 10)])
    groups = joined(offsets, rows=20, seed=1)
    assert sorted(np.concatenate(groups).tolist()) == list(range(40))
    assert all(np.diff(offsets)[group].sum() >= 20 for group in groups)
    assert len(joined(offsets[:3], rows=20, seed=1)) == 1


def test_memory_is_watched() -> None:
    gc.collect()  # what other tests left must not be given back meanwhile
    with Memory() as memory, mmap.mmap(-1, 200 << 20) as held:  # pages of its own, not of what was freed before
        pages = np.frombuffer(held, np.uint8)
        for _ in range(20):
            pages += 1
        del pages
    if memory.peak is not None:
        assert memory.peak > 20
