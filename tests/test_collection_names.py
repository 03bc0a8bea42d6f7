"""Concepts of an index are called by the words of its documents that raise them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import named
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import ArtifactError
from lexent.lexicon import concept_words
from lexent.lexicon.collection_names import CollectionNames, name_concepts
from lexent.lexicon.concept_words import ConceptWords, WordCounter
from lexent.lexicon.concepts import Concept, Concepts
from lexent.lexicon.forms import form_of
from lexent.lexicon.words import WORD

WORDS = named.WORDS


def misnamed() -> named.Lexicon:
    """The planted lexicon, its concepts called by what they are not."""
    lexicon = named.lexicon()
    return lexicon.renamed(Concepts([Concept(place, f"wrong {place}") for place in range(lexicon.size)]))


def build(out: Path, texts: list[str]) -> Index:
    return Index.build(texts, out=out, encoder=TinyEncoder(), lexicon=misnamed())


def reopened(index: Index) -> Index:
    return Index.open(index.path, encoder=TinyEncoder(), lexicon=misnamed())


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return build(tmp_path_factory.mktemp("index") / "a", named.texts(200))


def test_names_come_from_the_words_of_the_documents(index: Index) -> None:
    right = sum(index.lexicon.label(place).split(" ")[0] == word for place, word in enumerate(WORDS))
    assert right == len(WORDS)
    place = WORDS.index("yeast")
    word, share, count = index.lexicon.concepts.raised_here(place)[0]
    assert (word, index.lexicon.concept(place).source, index.lexicon.concept(place).plain) == (
        "yeast",
        "documents",
        f"wrong {place}",
    )
    assert share > 0.5
    assert count == sum("yeast" in text.split() for text in named.texts(200))


def test_saved_names_are_those_of_the_index_that_was_built(index: Index) -> None:
    other = reopened(index)
    assert [concept.label for concept in other.lexicon.concepts] == [
        concept.label for concept in index.lexicon.concepts
    ]
    place = WORDS.index("yeast")
    assert other.lexicon.concepts.raised_here(place) == index.lexicon.concepts.raised_here(place)


def test_steering_finds_a_concept_by_its_name_here_and_in_the_lexicon(index: Index) -> None:
    place = WORDS.index("yeast")
    for name in (index.lexicon.label(place), f"wrong {place}", "yeast"):
        assert index.lexicon.resolve(name).id == place


def test_adding_keeps_names_and_compaction_makes_them_anew(tmp_path: Path) -> None:
    place = WORDS.index("yeast")
    index = build(tmp_path / "a", [text.replace("yeast", "flour") for text in named.texts(60)])
    before = index.lexicon.label(place)
    index.add([{"id": f"new{number}", "text": text} for number, text in enumerate(named.texts(200, seed=1))])
    assert index.lexicon.label(place) == before
    index.compact()
    assert index.lexicon.label(place).split(" ")[0] == "yeast"
    assert reopened(index).lexicon.label(place) == index.lexicon.label(place)
    assert index.lexicon.resolve(before).id == place
    index.verify()


def test_names_are_made_anew_on_request_and_a_users_name_wins(tmp_path: Path) -> None:
    place = WORDS.index("yeast")
    index = build(tmp_path / "a", [text.replace("yeast", "flour") for text in named.texts(60)])
    index.add([{"id": f"new{number}", "text": text} for number, text in enumerate(named.texts(200, seed=1))])
    index.rename(place, "rising agents")
    index.name_concepts()
    assert index.lexicon.label(place) == "rising agents"
    assert "rising" in index.search("yeast").groups[0].label
    index.rename(place, None)
    assert index.lexicon.label(place).split(" ")[0] == "yeast"
    assert index.name_concepts() == 0


def test_deleted_documents_leave_no_word_behind(tmp_path: Path) -> None:
    texts = ["secretword yeast dough", *named.texts(100)]
    index = build(tmp_path / "a", texts)
    index.delete("0" if index.documents.positions(["0"]) else index.search("secretword")[0].id)
    index.compact()
    stored = b"".join(path.read_bytes() for path in index.path.rglob("*") if path.is_file())
    words = [word for part in index.documents.concept_words() for word in part.words]
    assert "secretword" not in words
    assert b"secretword" not in stored


def test_damaged_names_are_refused(tmp_path: Path) -> None:
    index = build(tmp_path / "a", named.texts(40))
    names = next(index.path.glob("names-*"))
    whole = names.read_bytes()
    with pytest.raises(ArtifactError, match="damaged"):
        CollectionNames.from_bytes(whole[: len(whole) // 2])
    names.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ArtifactError):
        index.verify()


# --- counts ------------------------------------------------------------------------------------------------------


def counter_of(texts: list[str]) -> WordCounter:
    from lexent.pipeline import Pipeline
    from lexent.recipes import get

    pipeline = Pipeline(TinyEncoder(), named.lexicon(), get("latent-terms"))
    counter = WordCounter(pipeline.lexicon.size)
    for batch in pipeline.coded(texts, kind="document"):
        counter.add_tokens([texts[place] for place in batch.positions], batch.tokens, batch.codes)
    return counter


def counted(texts: list[str]) -> ConceptWords:
    return counter_of(texts).result(100)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=30), st.integers(1, 29))
def test_counts_of_segments_merge_to_those_of_the_whole(words: list[str], cut: int) -> None:
    cut = min(cut, len(words) - 1)
    texts = [" ".join(words[start : start + 5]) for start in range(0, len(words), 5)]
    cut = max(1, min(cut, len(texts) - 1))
    whole, parts = counted(texts), [counted(texts[:cut]), counted(texts[cut:])] if len(texts) > 1 else [counted(texts)]
    merged = ConceptWords.merged(parts, size=len(named.WORDS))
    # Activations are differences of float32 numbers near 4, whose last digits depend on the batch.
    np.testing.assert_allclose(merged.totals, whole.totals, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(merged.tokens, whole.tokens)
    assert merged.n_tokens == whole.n_tokens
    assert table(merged) == table(whole)


@given(st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 2**20)), max_size=60), st.sampled_from([0, 2**30]))
def test_keys_are_sorted_stably(pairs: list[tuple[int, int]], more: int) -> None:
    keys = np.array([(concept + more) << 32 | word for concept, word in pairs * 2], np.int64)
    order = concept_words._order(keys, 2**20 + 1 + more)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("most", [1, 500_000])
def test_counters_add_up(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """A segment's counter absorbs those of its chunks, which number words each for themselves."""
    monkeypatch.setattr(concept_words, "MAX_WAITING", 50)
    monkeypatch.setattr(concept_words, "MAX_WORDS", most)  # with 1, words that no concept keeps are forgotten each time
    texts = named.texts(30)
    whole, parts = counter_of(texts), [counter_of(texts[start : start + 7][::-1]) for start in range(0, 30, 7)]
    total = WordCounter(len(WORDS))
    for part in parts:
        total.absorb(part)
    one, other = whole.result(100), total.result(100)
    assert table(one) == table(other)
    assert one.n_tokens == other.n_tokens
    if most > 1:
        counts = [dict(zip(part.words, part.word_tokens.tolist(), strict=True)) for part in (one, other)]
        assert counts[0] == counts[1]
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_allclose(one.at_start, other.at_start, rtol=1e-5)


def table(words: ConceptWords) -> set[tuple[int, str, int]]:
    texts = [words.words[item] for item in words.items.tolist()]
    return set(zip(words.concepts.tolist(), texts, words.counts.tolist(), strict=True))


def test_counts_are_read_back_as_they_were_written() -> None:
    whole = counted(named.texts(40))
    again = ConceptWords.from_bytes(whole.to_bytes(), size=len(WORDS))
    assert table(again) == table(whole)
    np.testing.assert_array_equal(again.totals, whole.totals)
    with pytest.raises(ArtifactError):
        ConceptWords.from_bytes(whole.to_bytes()[:-40], size=len(WORDS))
    with pytest.raises(ArtifactError):
        ConceptWords.from_bytes(whole.to_bytes(), size=len(WORDS) + 1)


def test_a_concept_that_the_collection_does_not_raise_keeps_the_lexicons_name() -> None:
    names = name_concepts(counted(["yeast dough oven"] * 12), misnamed())
    lexicon = names.applied(misnamed())
    assert lexicon.label(WORDS.index("telescope")) == f"wrong {WORDS.index('telescope')}"
    assert lexicon.label(WORDS.index("yeast")) == "yeast"


# --- forms and words ---------------------------------------------------------------------------------------------


def test_a_topic_with_many_function_words_is_a_topic() -> None:
    def word(text: str, share: float, rate: float) -> tuple[str, float, float]:
        return text, share, share * float(np.log(share / rate))

    ordinary = [word("the", 0.3, 0.06), word("of", 0.2, 0.04), word("a", 0.1, 0.02)]
    assert form_of([*ordinary, word("flag", 0.2, 1e-4)]) == ""
    rare = [word("her", 0.5, 0.002), word("the", 0.3, 0.06), word("of", 0.1, 0.04)]
    assert form_of([*rare, word("woman", 0.02, 1e-3)]) == "function words"
    assert form_of([(".", 0.9, 2.0), ("flag", 0.01, 0.03)]) == "punctuation"


def test_parts_of_identifiers_are_words() -> None:
    found = WORD.findall("shutil.rmtree of dir_fd, well-known 3.5 don't")
    assert found == ["shutil", "rmtree", "of", "dir", "fd", "well-known", "3.5", "don't"]
