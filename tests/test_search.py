"""Search and steering."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import small
from lexent.engine import Index
from lexent.errors import InputError, NotFoundError
from lexent.search.steering import has_words, targets


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return small.build(tmp_path_factory.mktemp("index") / "a.lexent")


def test_a_document_is_found_by_its_own_words(index: Index) -> None:
    hits = index.search("pawn bishop rook", k=5)
    assert hits[0].title in ("", "chess")
    assert "pawn" in hits[0].text
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
    assert all(first.score >= second.score for first, second in pairwise(hits))
    assert hits[0].metadata == {"n": int(hits[0].id[1:])}


def test_k_of_nothing_and_beyond_the_corpus(index: Index) -> None:
    with pytest.raises(InputError, match="k is 0; allowed: 1 or more"):
        index.search("pawn", k=0)
    everything = index.search("pawn bishop", k=10_000)
    assert 0 < len(everything) <= len(index)
    with pytest.raises(InputError, match="k is -1; allowed: 1 or more"):
        index.search("pawn", k=-1)


@pytest.mark.parametrize("query", ["", " \n\t"])
def test_an_empty_query_is_refused(index: Index, query: str) -> None:
    with pytest.raises(InputError, match="the query is empty; type some words"):
        index.search(query)
    with pytest.raises(InputError, match="number 2 of 2"):
        index.search_many(["pawn", query])


def test_many_queries_equal_one_at_a_time(index: Index) -> None:
    queries = ["pawn bishop", "night light", "flour"]
    for together, query in zip(index.search_many(queries, k=4), queries, strict=True):
        alone = index.search(query, k=4)
        assert together.query == alone.query
        assert [hit.id for hit in together] == [hit.id for hit in alone]
        # Encoded together, sums may be made in another order.
        assert [hit.score for hit in together] == pytest.approx([hit.score for hit in alone], rel=1e-5)
    assert index.search_many([], k=4) == []


def test_the_json_form(index: Index) -> None:
    found = index.search("pawn bishop", k=2).to_dict(contributions=3)
    assert json.loads(json.dumps(found)) == found
    assert list(found) == ["query", "approximate", "groups", "concepts", "added", "steered", "hits"]
    assert list(found["groups"][0]) == ["label", "weight", "concepts", "form"]
    assert list(found["concepts"][0]) == ["id", "label", "weight", "word"]
    shown = ["rank", "id", "score", "title", "text", "metadata", "strength", "passages"]
    shown += ["groups", "contributions", "rest"]
    assert list(found["hits"][0]) == shown
    assert list(found["hits"][0]["groups"][0]) == ["label", "value", "concepts", "form"]
    assert list(found["hits"][0]["contributions"][0]) == ["concept", "label", "query", "document", "value", "word"]
    assert len(found["hits"][0]["contributions"]) == 3
    weights = [abs(concept["weight"]) for concept in found["concepts"]]
    assert weights == sorted(weights, reverse=True)


# --- steering ----------------------------------------------------------------------------------------------------


def weights(index: Index, steer: dict[str | int, float] | None = None) -> dict[int, float]:
    return {concept.id: concept.weight for concept in index.search("pawn bishop", steer=steer).concepts}


def test_zero_removes_one_leaves_two_doubles(index: Index) -> None:
    plain = weights(index)
    first, second, third = list(plain)[:3]
    steered = weights(index, {first: 0.0, f"#{second}": 1.0, third: 2.0})
    assert first not in steered
    assert steered[second] == pytest.approx(plain[second])
    assert steered[third] == pytest.approx(2 * plain[third])
    assert {id: steered[id] for id in list(plain)[3:]} == pytest.approx({id: plain[id] for id in list(plain)[3:]})


def test_a_removed_concept_no_longer_counts(index: Index) -> None:
    first = index.search("pawn bishop").concepts[0]
    for hit in index.search("pawn bishop", steer={first.id: 0.0}, k=40):
        assert first.id not in [part.concept for part in hit.explain().contributions]


def test_a_concept_that_the_query_lacks_is_added_with_typical_strength(index: Index) -> None:
    plain = weights(index)
    absent = next(concept.id for concept in index.search("nebula comet").concepts if concept.id not in plain)
    added = weights(index, {absent: 3.0})
    factors = index.searcher.document_scorer.factors
    base = sum(weight / factors[id] for id, weight in plain.items()) / len(plain)
    assert added[absent] == pytest.approx(3 * base * factors[absent], rel=1e-5)
    assert weights(index, {absent: 0.0}) == pytest.approx(plain)


def test_a_label_steers_its_concept(index: Index) -> None:
    first = index.search("pawn bishop").concepts[0]
    assert first.id not in weights(index, {first.label: 0.0})


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf")])
def test_other_factors_are_refused(index: Index, factor: float) -> None:
    with pytest.raises(InputError, match="allowed: from 0"):
        index.search("pawn", steer={3: factor})


def test_an_unknown_concept_is_told(index: Index) -> None:
    with pytest.raises(NotFoundError, match="no concept"):
        index.search("pawn", steer={"xyzzyplugh": 2.0})


@settings(deadline=None, max_examples=30)
@given(factors=st.dictionaries(st.integers(0, 95), st.floats(0, 4), max_size=4))
def test_steering_is_linear_in_what_the_query_has(index: Index, factors: dict[int, float]) -> None:
    plain, steered = weights(index), weights(index, dict(factors))
    for id, weight in plain.items():
        assert steered.get(id, 0.0) == pytest.approx(weight * factors.get(id, 1.0), rel=1e-5, abs=1e-7)


@dataclass(frozen=True)
class Named:
    id: int
    label: str


class Names:
    """Labels, and a closest match by first letters: enough of a lexicon to resolve names with."""

    labels = ("mouse · rat", "computer mouse", "cat", "mousetrap", "catalogue", "randomised · trial")

    @property
    def concepts(self) -> Names:
        return self

    def exact(self, label: str) -> Named | None:
        return next((Named(id, one) for id, one in enumerate(self.labels) if one == label.strip().casefold()), None)

    def label(self, latent: int) -> str:
        return self.labels[latent]

    def resolve(self, name: str | int) -> Named:
        if isinstance(name, int) or name.startswith("#"):
            number = int(str(name).lstrip("#"))
            return Named(number, self.labels[number])
        ranked = [Named(id, label) for id, label in enumerate(self.labels) if label.startswith(name.lower())]
        if not ranked:
            raise NotFoundError(f'no concept named "{name}"')
        return min(ranked, key=lambda concept: len(concept.label))


@pytest.mark.parametrize(
    ("name", "active", "meant"),
    [
        ("mouse", [0, 1, 3], [0, 1]),  # every active concept with that whole word
        ("mouse", [1, 2], [1]),
        ("mouse", [2], [3]),  # none is active: the lexicon's closest
        ("cat", [2, 4], [2]),  # an exact label
        ("Cat", [4], [2]),
        ("#4", [0], [4]),
        (4, [0], [4]),
        ("randomised trial", [0, 5], [5]),  # words side by side
    ],
)
def test_what_a_name_means(name: str | int, active: list[int], meant: list[int]) -> None:
    assert targets(name, active, lexicon=Names()) == meant  # type: ignore[arg-type]


def test_words_of_a_label() -> None:
    assert has_words("computer mouse · pointer", "Mouse")
    assert has_words("computer mouse · pointer", "mouse pointer")
    assert not has_words("computer mouse", "computer science")
    assert not has_words("computer mouse", "mous")
    assert not has_words("computer mouse", " · ")


def test_an_index_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="lexent index CORPUS --out"):
        Index.open(tmp_path / "nothing")
