"""Words: how texts are split, numbered and kept."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from lexent.errors import ArtifactError
from lexent.types import Language
from lexent.vocabulary import NewWords, Vocabulary, WordSplitter, WordTable, splitter_of
from lexent.vocabulary.splitting import MAX_WORD_CHARS

ENGLISH = splitter_of("english")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Retries and retry", "retri retri"),
        ("ERR_CONN_RESET-42", "err_conn_reset-42 err conn reset 42"),
        ("foo.bar", "foo.bar foo bar"),
        ("camelCase HTTPServer", "camelcas camel case httpserver http server"),
        ("v1.2.3", "v1.2.3 v1"),
        ("PN-4711/B", "pn-4711/b pn 4711"),
        ("IL-10 x2y", "il-10 il 10 x2y"),
        ("1,000 or 3.14", "1000 000 3.14 14"),
        ("C++, C# and vitamin C", "c++ c# vitamin c"),
        ("GPUs, GPU; APIs", "gpus gpu api"),
        ("the dog's bone", "dog bone"),
        ("state-of-the-art input/output", "state art input output"),
        ("e.g. with the", ""),
        ("naïve ＡＢＣ cafe\u0301", "naïv abc café"),
        ("東京タワー 2020年", "東京 京タ タワ ワー 2020 年"),
        ("", ""),
    ],
)
def test_texts_are_split_into_stems_identifiers_and_their_parts(text: str, terms: str) -> None:
    assert sorted({term for term, _ in ENGLISH.terms(text)}) == sorted(set(terms.split()))


@given(st.text(max_size=60))
def test_words_stand_where_their_places_say(text: str) -> None:
    for one in ENGLISH.occurrences(text):
        assert text[one.start : one.stop] == one.written
        assert one.term
        assert len(one.term) <= MAX_WORD_CHARS + 16
    assert [(one.term, one.written) for one in ENGLISH.occurrences(text)] == list(ENGLISH.terms(text))


def test_a_name_is_a_word_where_it_is_one() -> None:
    names = ("Retries", "ERR_CONN_RESET-42", " gzip ", "well-being", "heart attack", "the", "")
    expected = ["retri", "err_conn_reset-42", "gzip", None, None, None, None]
    assert [ENGLISH.only_term(name) for name in names] == expected


def test_long_words_are_told_apart() -> None:
    one, other = ("x" * 300 + end for end in "ab")
    assert len({term for term, _ in ENGLISH.terms(f"{one} {other} {one}")}) == 2


def test_languages_are_those_of_the_stemmer() -> None:
    assert set(get_args(Language)) - {"none"} <= set(Stemmer.algorithms())
    assert [term for term, _ in splitter_of("german").terms("Häuser")] == ["haus"]
    assert [term for term, _ in splitter_of("none").terms("Retries")] == ["retries"]


@given(st.lists(st.text("abcé", max_size=5), unique=True, max_size=12), st.integers(0, 12))
def test_a_vocabulary_finds_every_word(words: list[str], cut: int) -> None:
    tables = [WordTable.of((word, word.upper()) for word in part) for part in (words[:cut], words[cut:])]
    vocabulary = Vocabulary(tables)
    assert [vocabulary.number(word) for word in words] == list(range(len(words)))
    assert [vocabulary.label(number) for number in range(len(words))] == [word.upper() for word in words]
    assert vocabulary.numbers() == {word: number for number, word in enumerate(words)}
    assert vocabulary.number("abcd") == -1
    assert len(vocabulary) == len(words)


def test_new_words_follow_those_that_are_known(tmp_path: Path) -> None:
    new = NewWords({"yeast": 0, "dough": 1})
    counts = new.counts([[("yeast", "yeast", 2), ("oven", "Oven", 1)], [("oven", "oven", 3), ("salt", "salt", 1)]])
    assert (counts.ids.tolist(), counts.values.tolist()) == ([0, 2, 2, 3], [2, 1, 3, 1])
    assert (new.first, len(new), new.size, counts.size) == (2, 2, 4, 4)
    new.table().write(tmp_path)
    table = WordTable.open(tmp_path, n_words=2, remedy="build it again")
    assert list(table.pairs()) == [("oven", "oven"), ("salt", "salt")]
    with pytest.raises(ArtifactError, match="its words do not fit together; build it again"):
        WordTable.open(tmp_path, n_words=3, remedy="build it again")


def test_a_splitter_forgets_before_it_holds_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexent.vocabulary.splitting.MAX_REMEMBERED_WORDS", 3)
    splitter = WordSplitter("english")
    texts = ["one two three four", "five retries seven one"]
    assert [list(splitter.terms(text)) for text in texts] == [list(ENGLISH.terms(text)) for text in texts]
    assert len(splitter._remembered) <= 3
