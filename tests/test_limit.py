"""The LIMIT generator: its promises, and that it is as hard for one vector, and as easy for words, as it should be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from commands import data, good, run
from lexent.encoders import Encoder
from lexent.errors import InputError
from lexent.evaluation import collections, evaluate, load
from lexent.studies.limit import ENDINGS, FIRST_NAMES, LIKES_PER_PERSON, PAIRS, RELEVANT, STEMS, THINGS, limit


def likes(text: str) -> set[str]:
    """What a person likes, read from the text."""
    return set(text.partition(" likes ")[2].removesuffix(".").replace(" and ", ", ").split(", "))


def test_every_pair_of_the_relevant_documents_is_one_query() -> None:
    made = limit(200)
    assert len(made.queries) == len(made.qrels) == PAIRS == 1035
    assert all(len(judged) == 2 for judged in made.qrels.values())
    pairs = Counter(frozenset(judged) for judged in made.qrels.values())
    assert set(pairs.values()) == {1}
    assert len(pairs) == RELEVANT * (RELEVANT - 1) // 2
    assert len({id for judged in made.qrels.values() for id in judged}) == RELEVANT == 46


def test_the_judgements_are_what_the_texts_say() -> None:
    made = limit(300, seed=3)
    liked = {document.id: likes(document.text) for document in made.documents}
    assert all(len(found) == LIKES_PER_PERSON for found in liked.values())
    for query, text in made.queries.items():
        thing = text.removeprefix("Who likes ").removesuffix("?")
        assert {id for id, found in liked.items() if thing in found} == set(made.qrels[query])


def test_a_seed_makes_one_collection_and_a_larger_one_holds_it() -> None:
    small, again, large, other = limit(100), limit(100), limit(400), limit(100, seed=1)
    assert small == again
    assert large.documents[:100] == small.documents
    assert (large.queries, large.qrels) == (small.queries, small.qrels)
    assert other.documents != small.documents
    assert len({document.id for document in limit(5000).documents}) == 5000


def test_things_are_all_different() -> None:
    assert len(set(THINGS)) == len(THINGS) >= PAIRS + 10 * LIKES_PER_PERSON
    assert all(thing == thing.lower() for thing in THINGS)
    surnames = {f"{stem}{ending}".lower() for stem in STEMS for ending in ENDINGS}
    assert not {*surnames, *map(str.lower, FIRST_NAMES)} & set(THINGS), "a name would match a query"
    plain = Counter(thing.removesuffix("s") for thing in THINGS)
    assert [thing for thing, count in plain.items() if count > 1] == [], "one of a thing and many of it are the same"


@pytest.mark.parametrize("documents", [0, 45, 10**6])
def test_sizes_that_cannot_be(documents: int) -> None:
    with pytest.raises(InputError, match=r"allowed: 46 to 89,100"):
        limit(documents)


def test_it_is_written_as_a_folder_that_can_be_read(tmp_path: Path) -> None:
    made = limit(60)
    read = load(collections.write(made, tmp_path / "limit-60"))
    assert read == made
    with pytest.raises(InputError, match="is there already"):
        collections.write(made, tmp_path / "limit-60")
    assert [entry.name for entry in tmp_path.iterdir()] == ["limit-60"]


def test_make_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "l"
    assert data("make", "limit", "--documents", 80, "--out", out) == {
        "path": str(out), "documents": 80, "queries": 1035, "seed": 0,
    }  # fmt: skip
    assert load(out).documents == limit(80).documents
    assert "lexent eval m" in good("make", "limit", "--out", "m", "--documents", 50).stderr
    assert run("make", "limit", "--out", out).exit_code == 2
    found = data("eval", out, "--recipe", "", "--baselines", "bm25", "--measures", "R@2")
    assert found["systems"]["bm25"]["R@2"] == 1.0, "words find both"


@pytest.mark.data
def test_concepts_find_more_than_one_vector_can(shared_encoder: Encoder) -> None:
    made = limit(50)
    kept = dict(list(made.queries.items())[::8])
    part = type(made)(made.name, made.documents, kept, {id: made.qrels[id] for id in kept})
    found = evaluate(part, recipe="latent-terms", encoder=shared_encoder, baselines=["dense"], measures="R@2").systems
    assert found["latent-terms"]["R@2"] > 2 * found["dense"]["R@2"]
