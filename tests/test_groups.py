"""Lines of an explanation: groups of concepts, pairs of words and strengths, for every kind of recipe."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import named
import small
from lexent.encoders import Encoder, TinyEncoder
from lexent.engine import Index
from lexent.errors import InputError
from lexent.lexicon import Concepts, Lexicon
from lexent.lexicon.names import same_word
from lexent.search.coded_text import code_texts
from lexent.search.groups import FORM, SHOWN_GROUPS, TextWords, group_concepts

QUERIES = st.sampled_from(["yeast dough", "night light", "king queen board mate", "gravity", "bread, and stars!"])
STEER = st.dictionaries(st.integers(0, 95), st.floats(0, 5), max_size=4)
RECIPES = ("latent-terms", "hybrid", "ssr", "ssr-cls", "clsr", "uhd", "uhd-real")
WITH_WORDS = [name for name in RECIPES if name != "clsr"]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Index]:
    """The small collection under each recipe."""
    folder = tmp_path_factory.mktemp("indexes")
    found = {}
    for name in RECIPES:
        level = "pooled" if name == "clsr" else "tokens"
        lexicon = Lexicon.random(TinyEncoder(), size=96, level=level, whole=32 if name == "ssr-cls" else 0)
        found[name] = small.build(folder / name, recipe=name, lexicon=lexicon)
    return found


# --- sums ------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(query=QUERIES, steer=STEER, k=st.integers(1, 12))
@pytest.mark.parametrize("recipe", RECIPES)
def test_groups_sum_to_the_score(
    indexes: dict[str, Index], recipe: str, query: str, steer: dict[int, float], k: int
) -> None:
    for hit in indexes[recipe].search(query, k=k, steer=dict(steer)):
        explanation = hit.explain()
        assert abs(sum(group.value for group in explanation.groups) - hit.score) <= 1e-5
        members = [part.concept for group in explanation.groups for part in group.members]
        assert sorted(members) == sorted(part.concept for part in explanation.contributions)
        for group in explanation.groups:
            assert abs(sum(part.value for part in group.members) - group.value) <= 1e-6
        heads = [group.label.split(" · ")[0] for group in explanation.groups]
        assert len(set(heads)) == len(heads)


@settings(deadline=None, max_examples=30)
@given(query=QUERIES, steer=STEER, k=st.integers(1, 12))
@pytest.mark.parametrize("recipe", WITH_WORDS)
def test_pairs_of_words_sum_to_the_score(
    indexes: dict[str, Index], recipe: str, query: str, steer: dict[int, float], k: int
) -> None:
    for hit in indexes[recipe].search(query, k=k, steer=dict(steer)):
        found = hit.words()
        assert abs(sum(match.value for match in found.matches) - hit.score) <= 1e-5
        for match in found.matches:
            assert abs(sum(word.value for word in match.found) - match.value) <= 1e-6
        few = found.top(1, words=1)
        assert abs(sum(match.value for match in few.matches) + few.rest - hit.score) <= 1e-5
        for match in few.matches:
            assert abs(sum(word.value for word in match.found) + match.rest - match.value) <= 1e-6


def test_a_recipe_of_one_vector_a_text_has_no_words(indexes: dict[str, Index]) -> None:
    with pytest.raises(InputError, match="encodes a text as one pooled vector"):
        indexes["clsr"].search("yeast dough")[0].words()


def test_words_are_those_of_the_two_texts(indexes: dict[str, Index]) -> None:
    hit = indexes["latent-terms"].search("yeast dough", k=1)[0]
    words = hit.words()
    assert {match.word for match in words.matches} == {"yeast", "dough"}
    content = f"{hit.title} {hit.text}".lower().split()
    assert all(found.word in content for match in words.matches for found in match.found)
    assert "yeast" in str(words)
    assert json.loads(json.dumps(words.to_dict()))["score"] == hit.score


def test_a_concept_that_steering_added_stands_for_itself(indexes: dict[str, Index]) -> None:
    index = indexes["latent-terms"]
    own = set(index.query("yeast").ids.tolist())
    other = next(
        part.concept for hit in index.search("telescope galaxy orbit", k=40)
        for part in hit.explain().contributions if part.concept not in own
    )  # fmt: skip
    matches = [match for hit in index.search("yeast", k=40, steer={other: 3.0}) for match in hit.words().matches]
    kinds = {match.kind for match in matches if match.word == index.lexicon.label(other)}
    assert kinds == {"concept"}


# --- what is one group -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Concepts of which each is raised by one word alone."""
    out = tmp_path_factory.mktemp("planted") / "a"
    return Index.build(named.texts(200), out=out, encoder=TinyEncoder(), lexicon=named.lexicon())


def test_concepts_of_different_words_are_different_groups(planted: Index) -> None:
    groups = planted.search("telescope bishop yeast").groups
    assert {group.head for group in groups} >= {"telescope", "bishop", "yeast"}


def test_few_groups_hold_nearly_all_of_a_long_query(shared_encoder: Encoder, tmp_path: Path) -> None:
    texts = [
        "Remove a directory and every file in it.", "Delete a file; the folder stays.", "Compress a file with gzip.",
        "Send mail over an encrypted connection.", "Sort a list of numbers in place.", "Parse a date from a string.",
    ]  # fmt: skip
    index = Index.build(texts, out=tmp_path / "a", encoder=shared_encoder)
    query = "how do I delete an old folder with all the files and directories that are in it, safely and fast?"
    results = index.search(query, k=3)
    total = sum(group.weight for group in results.groups)
    topics = [group.weight for group in results.groups if not group.form]
    assert sum(sorted(topics, reverse=True)[:SHOWN_GROUPS]) > 0.9 * (
        total - sum(g.weight for g in results.groups if g.form)
    )
    first = results[0].explain()
    assert first.groups[0].label.split(" · ")[0] in ("delete", "folder", "directory", "file", "remove", "directories")
    heads = [group.label.split(" · ")[0] for group in first.groups]
    assert not any(same_word(one, other) for place, one in enumerate(heads) for other in heads[:place])


def test_groups_are_the_same_whatever_the_order_of_concepts(planted: Index) -> None:
    query = planted.query("telescope bishop yeast")
    coded = code_texts(planted.searcher.pipeline, [query.text], kind="query")[0]
    ids, weights = query.ids.tolist(), query.weights.tolist()
    settings = {"lexicon": planted.lexicon, "query": coded, "words": planted.searcher._word_labels(query.ids)}
    one = group_concepts(ids, weights, **settings)
    other = group_concepts(ids[::-1], weights[::-1], **settings)
    assert {frozenset(group.concepts) for group in one.groups} == {frozenset(group.concepts) for group in other.groups}
    assert group_concepts([], [], lexicon=planted.lexicon, query=coded).groups == ()


def test_lines_of_a_hit_are_steered_by_their_names(planted: Index) -> None:
    """A line has the first word of its group, and then words of the document."""
    for group in planted.search("telescope bishop yeast").groups:
        steered = planted.search("telescope bishop yeast", steer={f"{group.head} · elsewhere": 2.0}).steered
        assert {one.id for one in steered} == set(group.concepts)


def test_steering_moves_all_members_and_no_boundaries(planted: Index) -> None:
    plain = planted.search("telescope bishop yeast")
    group = plain.groups[0]
    steered = planted.search("telescope bishop yeast", steer={group.head: 2.0})
    before = {concept.id: concept.weight for concept in plain.concepts}
    after = {concept.id: concept.weight for concept in steered.concepts}
    for concept, weight in before.items():
        assert after[concept] == pytest.approx(weight * (2 if concept in group.concepts else 1), rel=1e-5)
    assert [one.concepts for one in steered.groups] == [one.concepts for one in plain.groups]
    off = planted.search("telescope bishop yeast", steer={group.label: 0})
    assert not {concept.id for concept in off.concepts} & set(group.concepts)


def test_a_group_that_is_off_does_not_come_back_by_feedback(indexes: dict[str, Index]) -> None:
    index = indexes["latent-terms"]
    group = max(index.search("yeast dough").groups, key=lambda group: len(group.concepts))
    assert len(group.concepts) > 1
    learned = index.search("yeast dough", steer={group.head: 0}, feedback=8)
    assert learned.added
    assert not {concept.id for concept in learned.concepts} & set(group.concepts)


def test_a_line_is_called_by_words_of_the_document(planted: Index) -> None:
    for hit in planted.search("telescope bishop yeast", k=20):
        text = TextWords(f"{hit.title} {hit.text}")
        for group in hit.explain().groups:
            _, *others = group.label.split(" · ")
            assert all(text.form(word) for word in others)


def test_words_are_found_by_their_forms() -> None:
    text = TextWords("Deleting directories of shutil.rmtree")
    assert text.form("delete") == "deleting"
    assert text.form("directory") == "directories"
    assert text.form("rmtree") == "rmtree"
    assert text.form("file") == ""


def test_concepts_of_form_are_one_line_shown_last(planted: Index) -> None:
    from dataclasses import replace

    lexicon = named.lexicon()
    first, *others = lexicon.concepts
    lexicon = lexicon.renamed(Concepts([replace(first, form="punctuation"), *others]))
    ids = np.arange(4)
    groups = group_concepts(ids.tolist(), [9.0, 1.0, 1.0, 1.0], lexicon=lexicon, query=None).groups
    assert groups[-1].label == FORM
    assert groups[-1].form
    assert groups[-1].concepts == (0,)


# --- strength --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
def test_strengths_are_between_0_and_1_and_order_the_hits_of_a_query(indexes: dict[str, Index], recipe: str) -> None:
    strengths = [hit.strength for hit in indexes[recipe].search("yeast dough oven", k=20)]
    assert all(0 <= strength <= 1 for strength in strengths)
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] > 0


def test_a_question_is_stronger_than_gibberish(shared_encoder: Encoder, tmp_path: Path) -> None:
    texts = [
        f"{' '.join(words)}."
        for topic in small.TOPICS.values()
        for words in zip(*[iter(topic.split())] * 2, strict=True)
    ]
    texts += ["Statins did not prevent dementia in older adults.", "Wind loads on bridges.", "Copy a file to a folder."]
    index = Index.build(texts, out=tmp_path / "a", encoder=shared_encoder)
    asked = [
        index.search(query)[0].strength
        for query in ("do statins prevent dementia?", "copy files", "bridges in the wind")
    ]
    thrown = [index.search(query)[0].strength for query in ("qzx vrtl pmw", "blorf snark wug", "invoice of the zebra")]
    assert min(asked) > max(thrown)


def test_steering_does_not_make_a_hit_stronger_than_1(indexes: dict[str, Index]) -> None:
    index = indexes["latent-terms"]
    concepts = [part.concept for part in index.search("yeast dough")[0].explain().contributions]
    assert 0 < index.search("yeast dough", steer=dict.fromkeys(concepts, 50.0))[0].strength <= 1
