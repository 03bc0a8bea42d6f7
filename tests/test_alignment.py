"""A MaxSim score token by token: parts that sum to it, in Python, in JSON and on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small
from commands import data, good, run
from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.engine import Index
from lexent.errors import InputError
from lexent.evaluation.collections import load
from lexent.explain import AlignedToken, why
from lexent.explain.highlight import highlights
from lexent.lexicon import Lexicon
from lexent.search import Hit

QUERIES = ["night light queen", "the king and the board", "comet", "dough"]


@pytest.fixture(scope="module", params=["ssr", "ssr-cls"])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("alignment")
    chosen = Lexicon.random(TinyEncoder(), size=96, whole=40)
    chosen.save(folder / "lexicon")
    even = recipes.get(request.param).changed(function_words=1.0, idf="none")
    return small.build(folder / "index", recipe=even, lexicon=str(folder / "lexicon"))


def check(hit: Hit) -> None:
    """All that holds of any alignment."""
    found, explanation = hit.align(), hit.explain()
    assert sum(token.value for token in found.tokens) == pytest.approx(hit.score, abs=1e-9)
    for token in (*found.tokens, *found.top(2).tokens):
        assert sum(part.value for part in token.concepts) + token.rest == pytest.approx(token.value, abs=1e-9)
        assert (token.document is None) == (token.value == 0)
        for part in token.concepts:
            assert part.value == pytest.approx(part.query * part.document, rel=0.02, abs=1e-3)
    by_concept: dict[int, float] = {}
    for token in found.tokens:
        for part in token.concepts:
            by_concept[part.concept] = by_concept.get(part.concept, 0.0) + part.value
    assert {part.concept: part.value for part in explanation.contributions} == pytest.approx(by_concept)
    assert sum(part.value for part in explanation.contributions) + explanation.rest == pytest.approx(
        hit.score, abs=1e-5
    )
    for part in explanation.contributions:
        assert part.value == pytest.approx(part.query * part.document, rel=1e-5)


@pytest.mark.parametrize("steer", [None, {"#3": 2.0, "#17": 0.0, "#60": 3.0, "#61": 1.0}])
def test_the_parts_sum_to_the_score(index: Index, steer: Any) -> None:
    for text in QUERIES:
        for hit in index.search(text, k=40, steer=steer):
            check(hit)


def test_tokens_are_named_and_placed(index: Index) -> None:
    hit = index.search("night light queen", k=1)[0]
    content = index.document(hit.id).content
    tokens = [token for token in hit.align().tokens if token.kind == "token"]
    assert [token.query.token for token in tokens] == ["night", "light", "queen"]
    assert [(token.query.start, token.query.stop) for token in tokens] == [(0, 5), (6, 11), (12, 17)]
    assert [token.weight for token in tokens] == pytest.approx([1, 1, 1])
    for token in tokens:
        assert token.document is not None
        assert content[token.document.start : token.document.stop] == token.document.token == token.document.word
    assert [token.document.token for token in tokens[:2] if token.document] == ["night", "light"]
    whole = [token for token in hit.align().tokens if token.kind == "whole"]
    assert len(whole) == (1 if index.recipe.whole else 0)
    for token in whole:
        assert token.query.token == "whole text"
        assert token.document is not None
        assert token.document.token == "whole text"


def test_the_best_token_is_best(index: Index) -> None:
    """Against products of the codes of all tokens, from the encoder anew."""

    def dense(text: str, kind: Any) -> Any:
        codes = next(index.searcher.pipeline.coded([text], kind=kind)).codes
        rows = np.zeros((len(codes.ids), index.lexicon.size))
        np.put_along_axis(rows, codes.ids.astype(np.int64), codes.values, axis=1)
        return rows

    for text in QUERIES:
        asked = dense(text, "query")
        for hit in index.search(text, k=5):
            products = asked @ dense(index.document(hit.id).content, "document").T
            np.testing.assert_allclose([token.value for token in hit.align().tokens], products.max(axis=1), atol=0.02)


def test_an_added_concept_is_a_row_of_its_own(index: Index) -> None:
    own = {concept.id for concept in index.concepts(index.query("comet"))}
    new = next(concept for concept in range(96) if concept not in own)
    hit = index.search("comet", k=1, steer={new: 50.0})[0]
    added = [token for token in hit.align().tokens if token.kind == "added"]
    assert [token.query.token for token in added] == [index.lexicon.label(new)]
    assert [part.concept for part in added[0].concepts] == [new]
    assert added[0].value == max(token.value for token in hit.align().tokens)
    check(hit)


def test_words_have_what_was_found_in_them(index: Index) -> None:
    hits = index.search("night light queen", k=5).hits
    for hit, words in zip(hits, highlights(hits), strict=True):
        assert sum(word.share for word in words) == pytest.approx(hit.score)
        found: dict[str, float] = {}
        for token in hit.align().tokens:
            assert token.document is not None
            found[token.document.word] = found.get(token.document.word, 0.0) + token.value
        shares: dict[str, float] = {}
        for word in words:
            shares[word.token] = shares.get(word.token, 0.0) + word.share
        assert shares == pytest.approx(found)
    for side in (hits[0].tokens(hits[0].explain().contributions[0].concept),):
        assert side.query.shares
        assert side.document.shares
        assert len(side.document.shares) == 1


def test_why_a_document_stands_where_it_does(index: Index) -> None:
    found = why(index, "night light queen", "d5")
    every = index.search("night light queen", k=100)
    assert found.rank == [hit.id for hit in every].index("d5") + 1
    assert found.found == len(every)
    assert found.alignment is not None
    assert sum(token.value for token in found.alignment.tokens) == pytest.approx(found.score)
    assert found.best is not None
    assert sum(part.value for part in found.best.differences) == pytest.approx(found.best.gap)
    assert json.loads(json.dumps(found.to_dict()))["alignment"][0]["query"]["token"] == "night"
    assert "token by token:" in str(found)


def test_recipes_that_compare_documents_have_no_alignment(tmp_path: Path) -> None:
    hit = small.build(tmp_path / "a").search("night", k=1)[0]
    with pytest.raises(InputError, match="compares whole documents, not tokens"):
        hit.align()
    assert "alignment" not in hit.to_dict()


def test_the_readable_form(index: Index) -> None:
    lines = str(index.search("night light queen", k=1)[0].align()).splitlines()
    assert lines[1].split()[:3] == ["night", ">", "night"]
    assert "more" in lines[1]


def test_on_the_terminal(index: Index) -> None:
    text = "night light queen"
    out = good("search", str(index.path), text, "-k", "2", "--explain").stdout
    assert "token by token" in out
    assert "night > night" in out
    assert "approximate" not in out
    fast = good(
        "search", str(index.path), text, "-k", "2", "--mode", "fast", "--coarse", "8", "--candidates", "9"
    ).stdout
    assert "fast mode, approximate" in fast
    out = good("explain", str(index.path), text, "d5").stdout
    assert "light > light" in out
    assert "token by token" in out
    found = data("search", str(index.path), text, "--contributions", "2")
    assert found["approximate"] is False
    tokens = found["hits"][0]["alignment"]
    assert sum(token["value"] for token in tokens) == pytest.approx(found["hits"][0]["score"])
    assert all(len(token["concepts"]) <= 2 for token in tokens)
    assert data("explain", str(index.path), text, "d5")["alignment"][1]["document"]["token"] == "light"
    for wrong in (["--mode", "quick"], ["--candidates", "5"], ["--mode", "fast", "--fuse", "bm25"]):
        assert run("search", str(index.path), text, *wrong).exit_code == 2


@pytest.mark.data
def test_an_alignment_of_the_embedded_encoder(tmp_path: Path, data_dir: Path, shared_encoder: Encoder) -> None:
    """Pieces of words, special tokens and the text as a whole; scores equal to brute force."""
    docs = load(data_dir / "cranfield").documents[:25]
    chosen = Lexicon.random(shared_encoder, size=2048, k=32, whole=512)
    index = Index.build(docs, out=tmp_path / "a", encoder=shared_encoder, lexicon=chosen, recipe="ssr-cls")
    from test_maxsim import reference_of

    text = "aeroelastic models of heated high-speed aircraft"
    found = index.search(text, k=60)
    assert [(hit.id, hit.score) for hit in found] == reference_of(index, text)
    for hit in found[:10]:
        check(hit)
    tokens = found[0].align().tokens
    assert tokens[0].query.token == "[CLS]"
    assert tokens[-1].kind == "whole"
    pieces: list[AlignedToken] = [token for token in tokens if token.query.token.startswith("##")]
    assert pieces
    assert all(text[token.query.start : token.query.stop] in token.query.word for token in pieces)
    assert {token.query.word for token in pieces} <= set(text.replace("-", " ").split())
