"""Documents longer than the encoder reads: how they are cut, and searches that find them by their best passage."""

from __future__ import annotations

import random
import re
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import commands
import small
from lexent.corpus.passages import PassageSize, Pieces, cut, place_in_content, text_of
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import InputError
from lexent.evaluation.collections import Collection
from lexent.evaluation.passages import Runner
from lexent.evaluation.systems import Latent
from lexent.indexing.passages import passages_of
from lexent.models import load_encoder
from lexent.recipes import RECIPES, Recipe
from lexent.types import Document

TINY = TinyEncoder()
WORDS = sorted({word for words in small.TOPICS.values() for word in words.split()})
SHORT = RECIPES["latent-terms"].changed(passage_tokens=16, passage_overlap=4)
"""The tiny encoder has a token a word."""


def pieces_of(text: str, *, title: str = "", tokens: int = 16, overlap: int = 4) -> tuple[Document, list[Pieces]]:
    document = Document("d", text, title)
    return document, cut(document, TINY.token_starts([document.content])[0], PassageSize(tokens, overlap))


def own_texts(text: str, **settings: Any) -> list[str]:
    document, passages = pieces_of(text, **settings)
    return [document.content[slice(*pieces[-1])] for pieces in passages]


# --- cutting ---------------------------------------------------------------------------------------------------------


def test_passages_end_where_sentences_do() -> None:
    sentences = [f"Sentence {number} has exactly six words." for number in "abcdefgh"]  # and a full stop
    found = own_texts(" ".join(sentences), overlap=0)
    assert found == [" ".join(sentences[at : at + 2]) for at in range(0, 8, 2)]


def test_the_last_sentences_stand_again_where_they_are_short() -> None:
    text = "One two three four five six seven eight. A short one. " * 3
    first, second, *_ = own_texts(text, overlap=4)
    assert first.endswith("A short one.")
    assert second.startswith("A short one.")
    assert not own_texts(text, overlap=3)[1].startswith("A short one.")


def test_sections_are_borders_and_their_headings_are_context() -> None:
    text = (
        "# Guide\n\nWelcome to this short guide of ours.\n\n## Install\n\nRun the command that we give you here.\n\n"
        "### On Windows\n\nUse the other command and wait until it ends, then restart.\n\n"
        "## Use\n\nOpen the program and type a word that you look for. It will show what it found."
    )
    document, passages = pieces_of(text, title="Manual", tokens=28)
    shown = [[document.content[slice(*span)] for span in pieces] for pieces in passages]
    assert [own[-1].split("\n")[0] for own in shown] == ["# Guide", "### On Windows", "## Use"]
    assert shown[0][:-1] == ["Manual"]
    assert shown[1][:-1] == ["Manual", "Guide", "Install"]
    assert shown[2][:-1] == ["Manual", "Guide"]
    assert [own[-1].split(".")[-2].split()[-1] for own in shown] == ["here", "restart", "found"]


SECTIONS = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["Guide", "Install", "Use", "More"])), min_size=1)


@given(sections=SECTIONS, title=st.sampled_from(["Guide", "Install", ""]))
@settings(max_examples=100, deadline=None)
def test_the_headings_of_a_passage_are_those_above_it(sections: list[tuple[int, str]], title: str) -> None:
    """Also where a heading repeats the title, which is not shown twice."""
    words = "One two three four five six seven eight. " * 12
    text = "\n\n".join(f"{'#' * level} {name}\n\n{words}" for level, name in sections)
    document, passages = pieces_of(text, title=title, tokens=40, overlap=0)
    places = [document.text_start + match.start() for match in re.finditer(r"^#", document.text, re.MULTILINE)]
    for pieces in passages:
        above: list[tuple[int, str]] = []
        start = pieces[-1][0]
        for place, (level, name) in zip(places, sections, strict=True):
            if place <= start:
                above = [one for one in above if one[0] < level] + ([(level, name)] if place < start else [])
        shown = [document.content[slice(*span)] for span in pieces[:-1]]
        assert shown == ([title] if title else []) + [name for _, name in above if name != title]


def test_a_title_without_a_text_is_cut_into_passages(tmp_path: Path) -> None:
    rows = [Document("a", "", "word " * 299 + "comet"), Document("b", "yeast"), Document("c", " \n", "dough " * 400)]
    index = small.build(tmp_path / "a", rows, recipe="hybrid")
    assert index.manifest.counts.passages > 3
    assert index.search("comet", k=1)[0].id == "a"
    assert index.search("dough", k=1)[0].id == "c"


def test_closing_marks_of_headings() -> None:
    names = {"# C#": "C#", "# One ##": "One", "# Two#": "Two#", "# Three  # ": "Three", f"# Far{' ' * 3000}end": None}
    for line, name in names.items():
        _, passages = pieces_of(f"{line}\n\n" + "More words follow here. " * 12, tokens=60)
        document, _ = pieces_of(f"{line}\n\n" + "More words follow here. " * 12, tokens=60)
        shown = [document.content[slice(*span)] for span in passages[-1][:-1]]
        assert shown == [line.removeprefix("# ") if name is None else name]


def test_a_comment_in_a_block_of_code_is_no_heading() -> None:
    text = "# Real\n\nSome words here.\n\n" + "```\n# not a heading\nls\n```\n" + "More words follow here. " * 12
    document, passages = pieces_of(text)
    context = {document.content[slice(*span)] for pieces in passages for span in pieces[:-1]}
    assert context == {"Real"}


@given(
    words=st.lists(
        st.sampled_from(["a", "word", "end.", "\n\n", "\n# Head\n", "\n## Some title\n", "longerword", "Why?", "。"])
    ),
    title=st.sampled_from(["", "Some title", "Head", "a " * 80]),
    tokens=st.integers(16, 60),
    overlap=st.integers(0, 60),
)
@settings(max_examples=150, deadline=None)
def test_passages_cover_the_text_and_fit(words: list[str], title: str, tokens: int, overlap: int) -> None:
    document = Document("d", " ".join(words), title)
    starts = TINY.token_starts([document.content])[0]
    if len(starts) <= tokens:
        return
    passages = cut(document, starts, PassageSize(tokens, overlap))
    seen = np.zeros(len(document.content), bool)
    for pieces in passages:
        content = text_of(document.content, pieces)
        assert len(TINY.token_starts([content])[0]) <= tokens
        seen[slice(*pieces[-1])] = True
        for place in {0, len(content) // 2, len(content) - 1}:
            if not content[place].isspace():
                assert document.content[place_in_content(pieces, place)] == content[place]
    first = passages[0][-1][0] if title.startswith("a ") else document.text_start  # too long for a context: it is text
    assert first == 0 or not title.startswith("a ") or len(title.split()) * 4 <= tokens
    unseen = {place for place in range(first, len(seen)) if not seen[place]}
    assert all(document.content[place].isspace() for place in unseen)
    ends = [pieces[-1][1] for pieces in passages]
    assert ends == sorted(set(ends))


def test_an_identifier_in_a_text_without_spaces_is_not_cut_in_two() -> None:
    codes = [f"XQ-{number}-ZK" for number in range(7000, 7200)]
    for text in (
        ",".join(f'{{"code":"{code}","m":"handler"}}' for code in codes),
        "&".join(f"code={code}" for code in codes),
        ";".join(codes),
    ):
        found = own_texts(text, tokens=40, overlap=0)
        assert len(found) > 10
        assert all(any(code in own for own in found) for code in codes)


def test_a_passage_of_a_long_title_has_an_empty_place_in_the_text(tmp_path: Path) -> None:
    document = Document("a", "The body speaks of gardens and roses. " * 4, "zip archive pawn " * 120)
    with small.build(tmp_path / "a", [document, Document("b", "other text")]) as index:
        passages = index.search("pawn", k=1)[0].passages
        assert len(passages) > 1
        for passage in passages:
            assert 0 <= passage.start <= passage.stop <= len(document.text)
            assert document.text[passage.start : passage.stop] == passage.text


def test_real_tokens_fit_the_encoder() -> None:
    """Nothing of a passage is beyond the tokens that the encoder reads, also in words without spaces and emoji."""
    encoder = load_encoder(None)
    chance = random.Random(0)
    kinds = ["word ", "antidisestablishmentarianism", "数据", "e.g. ", "x=1;", "🙂", "naïve. ", "\n\n", "# Top\n", "½"]
    for _ in range(20):
        text = "".join(chance.choices(kinds, k=1500))
        document = Document("d", text, chance.choice(["", "A title of words"]))
        (passages,) = passages_of([document], encoder, RECIPES["latent-terms"])
        assert len(passages) > 1
        for pieces in passages:
            content = text_of(document.content, pieces)
            last = encoder.tokenize([content], kind="document")[0].spans[:, 1].max()
            assert not content[last:].strip()


def test_short_documents_are_not_cut() -> None:
    documents = small.documents()
    assert {len(own) for own in passages_of(documents, TINY, RECIPES["latent-terms"])} == {1}
    assert len(passages_of([Document("d", "word " * 300)], TINY, SHORT)[0]) > 10
    whole = RECIPES["latent-terms"].changed(whole_texts=True)
    assert len(passages_of([Document("d", "word " * 300)], TINY, whole)[0]) == 1


def test_passages_longer_than_the_encoder_reads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="passage_tokens is 300; allowed: at most 256"):
        small.build(tmp_path / "a", recipe=RECIPES["latent-terms"].changed(passage_tokens=300))


# --- searching -------------------------------------------------------------------------------------------------------


def long_documents(n: int = 30, seed: int = 0) -> list[Document]:
    """Documents of one to some thirty passages."""
    chance = random.Random(seed)
    made = []
    for number in range(n):
        size = chance.choice([5, 12, 40, 150, 400])
        words = chance.choices([*WORDS, "dough.", "comet."], k=size)
        made.append(Document(f"d{number}", " ".join(words), "stars" if number % 3 == 0 else "", {"n": number}))
    return made


RECIPES_OF_TOKENS = {
    "latent-terms": SHORT,
    "ssr": RECIPES["ssr"].changed(k=8, passage_tokens=16, passage_overlap=4),
}


@cache
def built(folder: Path, name: str) -> Index:
    index = small.build(folder / name, long_documents(), recipe=RECIPES_OF_TOKENS[name], extras=["dense"])
    index.add(long_documents(10, seed=1), upsert=True)
    index.delete(["d3", "d12"])
    return index


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("long")


def slow_ranking(index: Index, query: str, *, n_from: int = 0) -> list[tuple[str, float]]:
    """Documents by the highest score of their passages, from the scores of all passages."""
    searcher = index.searcher
    scores, matched = searcher.scores(searcher.query(query))
    best: dict[str, tuple[float, int]] = {}
    for position in np.flatnonzero(matched).tolist():
        document = searcher.reader.at([position])[0]
        if document.metadata["n"] >= n_from and scores[position] > best.get(document.id, (-1.0, 0))[0]:
            best[document.id] = float(scores[position]), position
    order = sorted(best.items(), key=lambda item: (-item[1][0], item[1][1]))
    return [(id, score) for id, (score, _) in order]


@pytest.mark.parametrize("name", RECIPES_OF_TOKENS)
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    k=st.sampled_from([1, 3, 10, 100]),
    n=st.integers(0, 20),
)
@settings(max_examples=40, deadline=None)
def test_documents_are_ranked_by_their_best_passage(folder: Path, name: str, words: list[str], k: int, n: int) -> None:
    index, query = built(folder, name), " ".join(words)
    found = index.search(query, k=k, filter={"n": {"gte": n}})
    expected = slow_ranking(index, query, n_from=n)[:k]
    assert [hit.score for hit in found] == pytest.approx([score for _, score in expected], rel=1e-6)
    assert [hit.id for hit in found] == [id for id, _ in expected]


@pytest.mark.parametrize("name", RECIPES_OF_TOKENS)
def test_a_hit_explains_its_best_passage(folder: Path, name: str) -> None:
    index = built(folder, name)
    for hit in index.search("yeast dough king", k=20):
        best = hit.passages[0]
        assert best.score == hit.score
        assert best.text == hit.text[best.start : best.stop]
        parts = hit.explain()
        assert sum(part.value for part in parts.contributions) + parts.rest == pytest.approx(hit.score, abs=1e-5)
        assert hit.words().score == hit.score
        scores = [passage.score for passage in hit.passages]
        assert scores == sorted(scores, reverse=True)
        assert {passage.number for passage in hit.passages} <= set(range(best.count))
        for place, passage in zip(hit.to_dict()["passages"], hit.passages, strict=True):
            assert (place["start"], place["stop"]) == (passage.start, passage.stop)


@pytest.mark.parametrize("name", RECIPES_OF_TOKENS)
def test_words_of_a_passage_have_their_place_in_the_document(folder: Path, name: str) -> None:
    from lexent.explain.highlight import highlights

    index = built(folder, name)
    found = index.search("telescope galaxy bread", k=20)
    far = 0
    for hit, words in zip(found, highlights(found.hits), strict=True):
        content = index.document(hit.id).content
        for word in words:
            assert content[word.start : word.stop].lower() == word.token.lower()
        strongest = hit.tokens(hit.explain().contributions[0].concept).document.shares[0]
        assert content[strongest.start : strongest.stop].lower() == strongest.token.lower()
        far += strongest.start > 300
    assert far  # some were beyond the first passages


def test_passages_as_hits(folder: Path) -> None:
    index = built(folder, "latent-terms")
    found = index.search("yeast dough", k=12, unit="passage")
    scores, _ = index.searcher.scores(index.query("yeast dough"))
    assert [hit.score for hit in found] == pytest.approx(sorted(scores, reverse=True)[:12])
    for hit in found:
        document = index.document(hit.id)
        assert document.text[hit.start : hit.stop] == hit.text
        assert (hit.before is None) == (hit.number == 0)
        if hit.after is not None:
            assert hit.after.number == hit.number + 1
            assert hit.after.span[1] > hit.stop
    with pytest.raises(InputError, match="unit"):
        index.search("yeast", unit="page")  # type: ignore[arg-type]


def test_explanations_by_id_are_of_the_best_passage(folder: Path) -> None:
    index = built(folder, "latent-terms")
    ranking = slow_ranking(index, "yeast dough")
    for rank, (id, score) in enumerate(ranking, start=1):
        why = index.explain("yeast dough", id)
        assert (why.rank, why.found) == (rank, len(ranking))
        assert why.score == pytest.approx(score)


def test_dense_search_and_fusion_rank_documents_once(folder: Path) -> None:
    index = built(folder, "latent-terms")
    assert len({hit.id for hit in index.dense_search("yeast", k=30)}) == len(index) == 28
    fused = index.search_fused("yeast dough", k=30)
    assert len({hit.id for hit in fused}) == len(fused)
    for hit in fused:
        for part in hit.parts:
            assert sum(one.value for one in hit.reasons[part.name].contributions) == pytest.approx(part.score)


def test_words_at_the_end_of_a_long_document_find_it(tmp_path: Path) -> None:
    documents = [
        Document(f"d{n}", f"{'pawn bishop ' * 300} {word}") for n, word in enumerate(small.TOPICS["sleep"].split())
    ]
    with small.build(tmp_path / "a", documents) as index:
        assert index.info()["passages"] > len(documents)
        assert index.search("hormone", k=1)[0].id == "d6"
    whole = RECIPES["latent-terms"].changed(whole_texts=True)
    with small.build(tmp_path / "b", documents, recipe=whole) as index:
        assert index.info()["passages"] == len(documents)
        assert index.search("hormone", k=1)[0].explain().contributions[0].document == pytest.approx(
            index.search("hormone", k=2)[1].explain().contributions[0].document
        )  # the word was not read: all documents are alike


def test_deleted_documents_lose_all_passages(tmp_path: Path) -> None:
    with small.build(tmp_path / "a", long_documents(), recipe=SHORT) as index:
        n_passages = index.info()["passages"]
        count = len(index.documents.run(index.documents.position("d4")))
        index.delete("d4")
        assert index.info()["passages"] == n_passages - count
        assert index.info()["documents"] == 29
        index.compact()
        assert len(index.documents.owners) == n_passages - count


def test_an_index_without_long_documents_keeps_no_passages(tmp_path: Path) -> None:
    with small.build(tmp_path / "a") as index:
        assert not [name for name in index.manifest.files if "passages" in name]
        index.add([Document("long", "word " * 600)])
        index.compact()
        assert [name for name in index.manifest.files if "passages" in name]
        assert index.search("word", k=1)[0].passages[0].count == 3


def test_recipes_know_their_passages() -> None:
    assert Recipe.from_dict(SHORT.to_dict()) == SHORT
    with pytest.raises(InputError, match="passage_tokens is 3; allowed: from 16 to 1,000,000"):
        RECIPES["ssr"].changed(passage_tokens=3)


# --- command line, evaluation, server --------------------------------------------------------------------------------


def test_the_command_line_cuts_and_shows_passages(tmp_path: Path) -> None:
    text = (
        "# Bread\n\nFlour and water.\n\n"
        + "The dough has to rest. " * 60
        + "\n\n## Stars\n\nA comet passes the galaxy."
    )
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text(text)
    commands.furnished(tmp_path)
    place, given = tmp_path / "a", (tmp_path / "notes", *commands.tiny(tmp_path))
    shown = commands.good("index", *given, "--out", place, "--passages", "64,8").stdout
    count = int(re.findall(r"indexed  1 documents, (\d+) passages", shown)[0])
    found = commands.good("search", place, "comet galaxy").stdout
    assert f"passage {count} of {count}" in found
    assert "comet passes the galaxy" in found
    hit = commands.data("search", place, "comet galaxy", "--unit", "passage")["hits"][0]
    document = commands.data("search", place, "comet galaxy")["hits"][0]
    assert hit["text"] == document["text"][hit["passages"][0]["start"] : hit["passages"][0]["stop"]]
    assert document["passages"][0] == hit["passages"][0]
    assert hit["passages"][0]["number"] == count - 1
    whole = commands.good("index", *given, "--out", tmp_path / "b", "--whole").stdout
    assert "indexed  1 documents, " in whole
    assert "passages" not in whole
    for wrong in ("64 --whole", "1,2,3", "9", "long"):
        refused = commands.run("index", *given, "--out", tmp_path / "c", "--passages", *wrong.split())
        assert refused.exit_code != 0
        assert "--passages" in refused.stderr or "passage_tokens" in refused.stderr


def test_an_evaluation_reads_documents_to_their_ends() -> None:
    """A system ranks documents by their best passages, as an index of the same documents does."""
    documents = long_documents()
    collection = Collection("long", documents, {"q": "yeast dough", "p": "comet"}, {"q": {"d1": 1}, "p": {"d2": 1}})
    system = Latent(SHORT, small.lexicon(), TINY)
    run = Runner(collection, [system]).run(system, depth=12)
    with tempfile.TemporaryDirectory() as folder, small.build(Path(folder) / "a", documents, recipe=SHORT) as index:
        for query, results in run.items():
            assert results == pytest.approx(
                {hit.id: hit.score for hit in index.search(collection.queries[query], k=12)}
            )
    whole = replace(system, recipe=SHORT.changed(whole_texts=True))
    assert Runner(collection, [whole]).run(whole, depth=12) == whole.run(collection, depth=12) != run


def test_progress_counts_documents_also_as_a_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    documents = long_documents()
    small.build(tmp_path / "a", documents, recipe=SHORT, progress=done.append).close()
    assert sum(done) == len(documents)
    with small.build(tmp_path / "b", documents, progress=True) as index:
        index.add([Document("x", "word")], progress=True)
    assert capsys.readouterr().out == ""
    with pytest.raises(InputError, match="progress"):
        small.build(tmp_path / "c", documents, progress=3)
