"""Explanations: contributions sum to the score, differences to the gap, token shares to the pooled value."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import small
from lexent import recipes
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import InputError, NotFoundError
from lexent.explain import attribute, why
from lexent.explain.contributions import Contribution, Explanation, GroupContribution
from lexent.pipeline import Pipeline
from lexent.search.coded_text import places, words
from lexent.types import Tokens

QUERIES = st.sampled_from(["yeast dough", "night light", "king queen board mate", "gravity", "nothing of this"])
STEER = st.dictionaries(st.integers(0, 95), st.floats(0, 5), max_size=4)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return small.build(tmp_path_factory.mktemp("index") / "a.lexent")


@pytest.fixture(scope="module")
def negative(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """With an idf that may fall below 0."""
    recipe = recipes.get("latent-terms").changed(idf="okapi")
    return small.build(tmp_path_factory.mktemp("index") / "b.lexent", recipe=recipe)


@settings(deadline=None, max_examples=60)
@given(query=QUERIES, steer=STEER, k=st.integers(1, 50), top=st.none() | st.integers(0, 20))
@pytest.mark.parametrize("which", ["index", "negative"])
def test_contributions_and_rest_sum_to_the_score(
    request: pytest.FixtureRequest, which: str, query: str, steer: dict[int, float], k: int, top: int | None
) -> None:
    index = request.getfixturevalue(which)
    results = index.search(query, k=k, steer=dict(steer))
    weights = {concept.id: concept.weight for concept in results.concepts}
    for hit in results:
        explanation = hit.explain(top)
        total = sum(part.value for part in explanation.contributions) + explanation.rest
        assert abs(total - hit.score) <= 1e-5
        assert top is None or len(explanation.contributions) <= top
        for part in explanation.contributions:
            assert part.value == pytest.approx(part.query * part.document, rel=1e-6, abs=1e-6)
            assert part.query == weights[part.concept]
        sizes = [abs(part.value) for part in explanation.contributions]
        assert sizes == sorted(sizes, reverse=True)


def test_an_explanation_reads_well(index: Index) -> None:
    hit = index.search("yeast dough", k=1)[0]
    text = str(hit.explain(3))
    strongest = hit.explain().groups[0]
    assert text.splitlines()[0] == f"{hit.id}  {hit.score:.3f}"
    assert "█" * 24 in text.splitlines()[1]
    assert strongest.label in text.splitlines()[1]
    assert len(text.splitlines()) == 1 + len(hit.explain().groups)
    assert json.loads(json.dumps(hit.explain().to_dict()))["score"] == hit.score


# --- rank --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(query=QUERIES, steer=STEER, number=st.integers(0, 39))
@pytest.mark.parametrize("which", ["index", "negative"])
def test_why_gives_the_exact_rank_and_differences_that_sum_to_the_gap(
    request: pytest.FixtureRequest, which: str, query: str, steer: dict[int, float], number: int
) -> None:
    index = request.getfixturevalue(which)
    ranking = index.search(query, k=100, steer=dict(steer))
    found = why(index, query, f"d{number}", steer=dict(steer))
    ranks = {hit.id: hit.rank for hit in ranking}
    assert found.rank == ranks.get(f"d{number}")
    assert found.found == len(ranking)
    assert abs(sum(part.value for part in found.explanation.contributions) - found.score) <= 1e-5
    for other in (found.above, found.best):
        if other is not None:
            assert abs(sum(part.value for part in other.differences) - other.gap) <= 1e-5
            assert abs(other.score - found.score - other.gap) <= 1e-9
            assert ranks[other.id] == other.rank
            assert other.gap >= 0 or found.rank is None
    if found.rank == 1:
        assert found.above is found.best is None
    elif found.rank is not None:
        assert found.above is not None
        assert found.best is not None
        assert (found.above.rank, found.best.rank) == (found.rank - 1, 1)
    held = {part.concept for part in found.explanation.contributions}
    missing = {concept.id for concept in found.missing}
    assert held | missing == {concept.id for concept in ranking.concepts}
    assert not held & missing
    json.dumps(found.to_dict())
    assert str(found).startswith(f'"{query}": ')


def test_an_index_explains_as_the_command_line_does(index: Index) -> None:
    hit = index.search("yeast dough", k=3, steer={5: 2.0})[2]
    found = index.explain("yeast dough", hit.id, steer={5: 2.0})
    assert found == why(index, "yeast dough", hit.id, steer={5: 2.0})
    assert found.rank == 3


def test_results_print_as_a_ranked_list(index: Index) -> None:
    found = index.search("yeast dough", k=3)
    assert repr(found) == "Results('yeast dough', 3 hits)"
    assert repr(index.search("yeast dough", k=1)) == "Results('yeast dough', 1 hit)"
    lines = str(found).splitlines()
    assert lines[0] == '"yeast dough": 3 hits'
    assert len(lines) == 7, "a line for each hit, and one for its strongest concepts"
    for hit, line, reasons in zip(found, lines[1::2], lines[2::2], strict=True):
        assert line.split()[:3] == [str(hit.rank), f"{hit.score:.3f}", hit.id]
        assert reasons.strip().startswith(hit.explain().groups[0].label)
    fused = index.search_fused("yeast dough", k=2)
    assert repr(fused) == "FusedResults('yeast dough', 2 hits)"
    assert [line.split()[2] for line in str(fused).splitlines()[1:]] == [hit.id for hit in fused]


def test_why_of_a_document_that_shares_nothing(index: Index) -> None:
    concepts = index.search("pawn bishop").concepts
    document = index.searcher.document_scorer
    alone = concepts[0].id
    lacking = next(
        position
        for position in range(len(index))
        if document.document_weights(position, np.array([alone], np.int32))[0] == 0
    )
    steer = {concept.id: 0.0 for concept in concepts[1:]}
    found = why(index, "pawn bishop", f"d{lacking}", steer=steer)
    assert found.rank is None
    assert found.score == 0
    assert [concept.id for concept in found.missing] == [alone]
    assert found.best is not None
    assert "not found: no shared concept" in str(found)


def test_why_of_an_unknown_document(index: Index) -> None:
    with pytest.raises(NotFoundError, match='no document "x"'):
        why(index, "pawn", "x")


# --- tokens ------------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.sampled_from(["pawn", "Rook", "dough", "light,", "night-time", "é"]), min_size=1, max_size=12)


@settings(deadline=None, max_examples=40)
@given(words=TEXTS, pool=st.sampled_from(["sum", "max"]))
def test_token_shares_sum_to_the_pooled_value(words: list[str], pool: str) -> None:
    text = " ".join(words)
    recipe = recipes.get("latent-terms").changed(pool=pool)
    encoder, lexicon = TinyEncoder(), small.lexicon()
    ids, values = Pipeline(encoder, lexicon, recipe).represent([text], kind="document").of(0)
    for id, value in list(zip(ids.tolist(), values.tolist(), strict=True))[:6]:
        found = attribute(text, id, kind="document", pipeline=Pipeline(encoder, lexicon, recipe))
        assert found.pooled == pytest.approx(value, rel=1e-5)
        assert sum(share.share for share in found.shares) == pytest.approx(found.pooled, rel=1e-9)
        assert sum(share.share for share in found.scaled(7.0)) == pytest.approx(7.0)
        assert all(text[share.start : share.stop] == share.token for share in found.shares)
        assert pool == "sum" or len(found.shares) == 1


def test_the_tokens_behind_a_hit(index: Index) -> None:
    hit = index.search("pawn bishop", k=1)[0]
    strongest = hit.explain().contributions[0]
    for name in (strongest.concept, f"#{strongest.concept}", strongest.label):
        tokens = hit.tokens(name)
        assert tokens.query.concept == tokens.document.concept == strongest.concept
        assert {share.token for share in tokens.query.shares} <= {"pawn", "bishop"}
        assert tokens.document.shares
        assert str(tokens).startswith("query     #")
        json.dumps(tokens.to_dict())


def test_a_concept_without_tokens(index: Index) -> None:
    hit = index.search("pawn bishop", k=1)[0]
    plain = {concept.id for concept in index.search("pawn bishop").concepts}
    absent = next(latent for latent in range(96) if latent not in plain)
    assert hit.tokens(absent).query.shares == ()
    assert hit.tokens(absent).query.scaled(1.0) == ()


def test_word_pieces_become_whole_words() -> None:
    text = "Hypercholesterolaemia, treated"
    pieces = Tokens(
        strings=["[CLS]", "hyper", "##chol", "##esterol", "##aemia", ",", "treated", "[SEP]"],
        spans=np.array([[0, 0], [0, 5], [5, 9], [9, 16], [16, 21], [21, 22], [22, 30], [0, 0]]),  # a space in the last
        special=np.array([True, *[False] * 6, True]),
    )
    found = words(places(text, pieces, 8), np.array([0.5, 1.0, 0.0, 2.0, 0.25, 0.0, 1.0, 0.25]))
    assert [(share.token, share.start, share.stop, share.share) for share in found] == [
        ("Hypercholesterolaemia", 0, 21, 3.25),
        ("treated", 23, 30, 1.0),
        ("[CLS]", 0, 0, 0.5),
        ("[SEP]", 0, 0, 0.25),
    ]


def test_pooled_recipes_have_no_tokens() -> None:
    recipe = recipes.Recipe(name="pooled", level="pooled")
    with pytest.raises(InputError, match="one pooled vector"):
        attribute("pawn", 1, kind="query", pipeline=Pipeline(TinyEncoder(), small.lexicon(), recipe))


def test_no_shown_line_is_smaller_than_one_that_is_left_out() -> None:
    """Lines of form come last, and are shown all the same where they are large."""
    values = [9.0, 5.0, 1.0, -0.5, 7.0]
    groups = tuple(GroupContribution(f"g{place}", value, (), place == 4) for place, value in enumerate(values))
    shown, others = Explanation("d", sum(values), (), groups=groups).largest_groups(3)
    assert [group.label for group in shown] == ["g0", "g1", "g4"]
    assert [group.label for group in others] == ["g2", "g3"]


def test_the_factors_of_a_line_are_shown_where_its_name_is_long() -> None:
    from lexent.cli import views

    part = Contribution(7, "a very long name " * 20, 2.25, 0.5, 1.125, False)
    explanation = Explanation("d", 1.125, (part,), groups=(GroupContribution("name", 1.125, (part,), False),))
    for line in (
        list(views.groups(explanation, opened=True))[1],
        next(views.contributions(explanation, products=True)),
    ):
        assert len(line.plain) <= 120
        assert line.plain.endswith("…  query 2.25 x document 0.50")
