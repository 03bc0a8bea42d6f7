"""Deleting by a filter, writers that wait, least scores, what steering moved: in Python, as commands and over HTTP."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import small
from commands import data, furnished, good, run, tiny
from lexent.engine import Index
from lexent.errors import InputError, LockedError
from lexent.indexing.lock import writing
from lexent.types import Document
from serving import serving


def built(folder: Path, **settings: Any) -> Index:
    docs = [Document(one.id, one.text, one.title, {"n": place}) for place, one in enumerate(small.documents(20))]
    return small.build(folder / "i", docs, **settings)


# --- delete by a filter --------------------------------------------------------------------------------------------


def test_documents_that_match_a_filter_are_deleted(tmp_path: Path) -> None:
    index = built(tmp_path)
    assert index.delete(filter={"n": {"lt": 5}}) == 5
    assert index.delete(filter={"n": {"lt": 5}}) == 0, "what is deleted does not match again"
    assert index.delete(filter={"n": {"lt": 7}}) == 2
    assert len(index) == 13
    assert {hit.metadata["n"] for hit in index.search("yeast light dream pawn", k=50)} <= set(range(7, 20))
    assert index.delete("d7") == 1
    assert len(Index.open(tmp_path / "i", encoder=index.encoder, lexicon=index.lexicon)) == 12


def test_all_passages_of_a_document_are_deleted(tmp_path: Path) -> None:
    docs = [Document(f"d{n}", "Flour and yeast make dough. " * 30, "", {"n": n}) for n in range(4)]
    index = small.build(tmp_path / "i", docs, recipe=small_passages())
    assert index.info()["passages"] > 4
    assert index.delete(filter={"n": {"gte": 2}}) == 2
    assert {hit.id for hit in index.search("yeast", k=9, unit="passage")} == {"d0", "d1"}


def small_passages() -> Any:
    from lexent import recipes

    return recipes.get("latent-terms").changed(passage_tokens=40)


def test_a_deletion_names_ids_or_a_filter(tmp_path: Path) -> None:
    index = built(tmp_path)
    with pytest.raises(InputError, match="neither ids nor a filter"):
        index.delete()
    with pytest.raises(InputError, match="ids and a filter"):
        index.delete("d1", filter={"n": 1})
    with pytest.raises(InputError, match="would delete every document"):
        index.delete(filter={})
    with pytest.raises(InputError, match='no document has the field "m"'):
        index.delete(filter={"m": 1})
    assert len(index) == 20
    assert index.delete([]) == 0


def test_lexent_delete_takes_a_filter(tmp_path: Path) -> None:
    place = furnished(tmp_path) / "docs.lexent"
    rows = "".join(f'{{"id": "n{n}", "text": "yeast {n}", "year": {n}}}\n' for n in range(4))
    (tmp_path / "more.jsonl").write_text(rows)
    good("add", place, tmp_path / "more.jsonl", *tiny(tmp_path))
    assert data("delete", place, "--filter", "year<2")["removed"] == 2
    assert data("delete", place, "--filter", "year>=2", "--filter", "year<3")["removed"] == 1
    for words, says in ((("n3", "--filter", "year=3"), "ids and a filter"), ((), "nothing")):
        failed = run("delete", place, *words)
        assert failed.exit_code == 2
        assert f"delete was given {says}" in failed.stderr


# --- writers that wait ---------------------------------------------------------------------------------------------


def test_a_writer_waits_for_another(tmp_path: Path) -> None:
    built(tmp_path).close()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with writing(tmp_path / "i"):
            held.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    try:
        waiting = Index.open(tmp_path / "i", wait=0.3)
        start = time.monotonic()
        with pytest.raises(LockedError, match=r"after 0\.3 s of waiting; .*--wait SECONDS"):
            waiting.delete("d1")
        assert time.monotonic() - start >= 0.3
        with pytest.raises(LockedError, match="try again when that has ended, or wait for it: --wait"):
            Index.open(tmp_path / "i").delete("d1")
        assert run("delete", tmp_path / "i", "d1", "--wait", "0.1").exit_code == LockedError.exit_code
        threading.Timer(0.3, done.set).start()
        assert Index.open(tmp_path / "i", wait=20).delete("d1") == 1
    finally:
        done.set()
        thread.join()
    assert data("delete", tmp_path / "i", "d2", "--wait", "5")["removed"] == 1
    with pytest.raises(InputError, match="wait is -1; allowed: a number of seconds"):
        Index.open(tmp_path / "i", wait=-1)


# --- least scores --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["document", "passage"])
def test_hits_below_a_least_score_or_strength_are_left_out(tmp_path: Path, unit: Any) -> None:
    index = built(tmp_path)
    every = index.search("yeast dough light", k=20, unit=unit)
    assert len(every) > 4
    third = every[2]
    bounded = index.search("yeast dough light", k=20, unit=unit, min_score=third.score)
    assert [hit.id for hit in bounded] == [hit.id for hit in every if hit.score >= third.score]
    strong = index.search("yeast dough light", k=20, unit=unit, min_strength=third.strength)
    assert [hit.id for hit in strong] == [hit.id for hit in every if hit.strength >= third.strength]
    assert not index.search("yeast dough light", k=20, unit=unit, min_score=every[0].score + 1)
    assert index.search("yeast dough light", k=20, unit=unit, min_score=-1, min_strength=0) == every
    with pytest.raises(InputError, match="min_strength is 2; allowed: from 0 to 1"):
        index.search("yeast", min_strength=2)
    with pytest.raises(InputError, match='min_score is "much"; allowed'):
        index.search("yeast", min_score="much")  # type: ignore[arg-type]


def test_least_scores_on_the_command_line(tmp_path: Path) -> None:
    place = furnished(tmp_path) / "docs.lexent"
    models = tiny(tmp_path)
    every = data("search", place, "yeast dough", "-k", 20, *models)["hits"]
    bounded = data("search", place, "yeast dough", "-k", 20, "--min-score", every[1]["score"], *models)["hits"]
    assert [hit["id"] for hit in bounded] == [hit["id"] for hit in every if hit["score"] >= every[1]["score"]]
    assert "no document reaches the least" in good("search", place, "yeast", "--min-score", 99999, *models).stdout
    strong = data("search", place, "yeast dough", "-k", 20, "--min-strength", every[1]["strength"], *models)["hits"]
    assert [hit["id"] for hit in strong] == [hit["id"] for hit in every if hit["strength"] >= every[1]["strength"]]
    failed = run("search", place, "yeast", "--fuse", "bm25", "--min-strength", "0.5", *models)
    assert "leave out --fuse" in failed.stderr


# --- what steering moved -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", ["latent-terms", "ssr"])
def test_results_say_what_steering_moved(tmp_path: Path, recipe: str) -> None:
    index = built(tmp_path, recipe=recipe)
    plain = index.search("yeast dough")
    assert plain.steered == ()
    first, second = plain.concepts[0], plain.concepts[1]
    other = next(one for one in range(96) if one not in {concept.id for concept in plain.concepts})
    found = index.search("yeast dough", steer={first.id: 2, second.id: 0, f"#{other}": 3})
    moved = {one.id: one for one in found.steered}
    assert set(moved) == {first.id, second.id, other}
    assert (moved[first.id].label, moved[first.id].factor) == (first.label, 2)
    assert moved[first.id].before == pytest.approx(first.weight)
    assert moved[first.id].after == pytest.approx(2 * first.weight, rel=1e-5)
    assert (moved[second.id].after, moved[second.id].before) == (0, pytest.approx(second.weight))
    assert moved[other].before == 0
    after = {concept.id: concept.weight for concept in found.concepts}
    assert {one.id: one.after for one in found.steered} == {one: after.get(one, 0.0) for one in moved}
    sizes = [abs(one.after - one.before) for one in found.steered]
    assert sizes == sorted(sizes, reverse=True)
    assert found.to_dict()["steered"] == [one.to_dict() for one in found.steered]
    assert str(moved[second.id]).endswith(f"× 0: {second.weight:.2f} to 0.00")


def test_a_word_that_steering_moved_is_said_to_be_one(tmp_path: Path) -> None:
    index = built(tmp_path, recipe="hybrid")
    own = {concept.id: concept for concept in index.search("yeast dough").concepts if concept.word}
    found = index.search("yeast dough", steer={"yeast": 2})
    (word,) = [one for one in found.steered if one.word]
    assert word.id in own
    assert (word.label, word.before) == (own[word.id].label, pytest.approx(own[word.id].weight))
    assert word.after == pytest.approx(2 * word.before, rel=1e-5)


def test_steering_is_echoed_with_fusion_and_on_the_command_line(tmp_path: Path) -> None:
    place = furnished(tmp_path) / "docs.lexent"
    models = tiny(tmp_path)
    first = data("search", place, "yeast dough", *models)["concepts"][0]
    steer = ["--boost", f"#{first['id']}=2", *models]
    for more in ([], ["--fuse", "bm25"]):
        shown = good("search", place, "yeast dough", *steer, *more).stdout
        line = next(line for line in shown.splitlines() if line.startswith("steered"))
        assert f"#{first['id']}" in line
        assert f"{first['weight']:.2f} to {2 * first['weight']:.2f}" in line
    (moved,) = data("search", place, "yeast dough", *steer)["steered"]
    assert (moved["id"], moved["factor"], moved["before"]) == (first["id"], 2, pytest.approx(first["weight"]))


def test_over_http(tmp_path: Path) -> None:
    index = built(tmp_path)
    first = index.search("yeast dough").concepts[0]
    every = index.search("yeast dough", k=20)
    index.close()
    with serving([tmp_path / "i"]) as client:
        body = {"query": "yeast dough", "k": 20, "min_score": every[1].score, "steer": {}}
        reply = client.post("/v1/indexes/i/search", json=body).json()
        assert [hit["id"] for hit in reply["hits"]] == [hit.id for hit in every if hit.score >= every[1].score]
        body = {"query": "yeast dough", "k": 20, "min_strength": every[1].strength}
        reply = client.post("/v1/indexes/i/search", json=body).json()
        assert [hit["id"] for hit in reply["hits"]] == [hit.id for hit in every if hit.strength >= every[1].strength]
        assert client.post("/v1/indexes/i/search", json={"query": "x", "min_strength": 2}).status_code == 422
        body = {"query": "yeast dough", "steer": {f"#{first.id}": 2}}
        (moved,) = client.post("/v1/indexes/i/search", json=body).json()["steered"]
        assert (moved["id"], moved["factor"], moved["before"]) == (first.id, 2, pytest.approx(first.weight))
        path = "/v1/indexes/i/documents"
        reply = client.delete(path, params={"filter": json.dumps({"n": {"lt": 5}})})
        assert (reply.status_code, reply.json()["deleted"], reply.json()["documents"]) == (200, 5, 15)
        assert client.delete(path, params={"id": ["d5", "d6"]}).json()["deleted"] == 2
        for params in ({}, {"filter": "{"}, {"filter": "[]"}, {"filter": "{}"}, {"id": "d7", "filter": '{"n": 7}'}):
            reply = client.delete(path, params=params)
            assert reply.status_code == 422, params
        assert client.get("/v1/indexes/i").json()["documents"] == 13
