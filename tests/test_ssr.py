"""The shipped lexicon for MaxSim with the real encoder: what a user of recipe ssr gets without further ado."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lexent
from lexent import recipes
from lexent.lexicon import load

TEXTS = [
    "Statins lower cholesterol and the risk of heart attacks.",
    "A sourdough starter is flour and water with wild yeast.",
    "Transformers translate sentences by attending to all words at once.",
    "Aspirin thins the blood and may prevent a second stroke.",
    "The hull of a sailing boat is built of oak planks.",
    "Insulin lets cells take up sugar from the blood.",
]


@pytest.fixture(scope="module", params=["ssr", "ssr-cls"])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> lexent.Index:
    return lexent.index(TEXTS, out=tmp_path_factory.mktemp("ssr") / "index", recipe=request.param)


@pytest.mark.parametrize(
    ("query", "best"),
    [("drugs against high cholesterol", 0), ("bread yeast", 1), ("machine translation", 2), ("wooden ship", 4)],
)
def test_documents_are_found_and_explained(index: lexent.Index, query: str, best: int) -> None:
    found = index.search(query, k=3)
    assert found[0].text == TEXTS[best]
    alignment = found[0].align()
    assert sum(token.value for token in alignment.tokens) == pytest.approx(found[0].score, abs=1e-5)
    kinds = [token.kind for token in alignment.tokens]
    assert kinds.count("whole") == (1 if index.recipe.whole else 0)
    explanation = found[0].explain()
    assert sum(part.value for part in explanation.contributions) + explanation.rest == pytest.approx(found[0].score)
    assert all(part.label for part in explanation.contributions)


def test_the_whole_text_weighs_a_share_of_its_tokens(index: lexent.Index) -> None:
    asked = index.query("wooden ship").rows
    assert asked is not None
    if index.recipe.whole:
        assert asked.tokens[-1] == -1
        tokens = index.query("wooden ship").rows
        assert tokens is not None
        assert 0 < asked.strengths[-1] < 0.2 * asked.strengths[:-1].sum()


def test_the_lexicon_that_ships() -> None:
    for recipe in ("ssr", "ssr-cls", "ssr++"):
        assert load(recipe=recipes.get(recipe)).name == "all-MiniLM-L6-v2-ssr"
    lexicon = load("all-MiniLM-L6-v2-ssr")
    assert lexicon.info.match == "maxsim"
    assert lexicon.whole is not None
    gains = lexicon.sae.query_gain
    assert gains is not None
    assert np.isfinite(gains).all()
    assert gains.min() >= 0
    assert all(concept.label for concept in lexicon.concepts)
    size = sum(path.stat().st_size for path in _folder(lexicon.name).rglob("*") if path.is_file())
    assert size < 10_000_000


def test_other_recipes_keep_their_lexicons() -> None:
    names = {name: load(recipe=recipes.get(name)).name for name in ("latent-terms", "clsr", "clsr-efficient")}
    assert names == {
        "latent-terms": "all-MiniLM-L6-v2",
        "clsr": "all-MiniLM-L6-v2-pooled-k128",
        "clsr-efficient": "all-MiniLM-L6-v2-pooled-k32",
    }


def _folder(name: str) -> Path:
    from lexent.lexicon.lexicon import shipped

    return shipped()[name]
