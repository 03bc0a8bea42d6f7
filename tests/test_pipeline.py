"""Texts to concept vectors in one stream: the same as text by text, in the order of the texts."""

from __future__ import annotations

import numpy as np
import pytest

from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.encoders.encoder import encode
from lexent.errors import MismatchError
from lexent.function_words import token_weights
from lexent.lexicon import Lexicon, load
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.types import SparseVectors
from small import documents
from small import lexicon as small_lexicon

RECIPE = Recipe("test", k=6)
TEXTS = [document.content for document in documents(150)]  # more than one batch of the tiny encoder


class Backwards(TinyEncoder):
    """Gives its batches in another order than the texts have, as encoders may."""

    def batches(self, texts, **settings):  # type: ignore[no-untyped-def]
        yield from reversed(list(super().batches(texts, **settings)))


def dense(vectors: SparseVectors) -> np.ndarray:
    return np.asarray(vectors.to_scipy().todense())


@pytest.mark.parametrize("how", ["sum", "max"])
@pytest.mark.parametrize("encoder", [TinyEncoder(), Backwards()], ids=["in order", "backwards"])
def test_all_at_once_is_text_by_text(encoder: TinyEncoder, how: str) -> None:
    lexicon = small_lexicon()
    recipe = RECIPE.changed(pool=how)
    together = Pipeline(encoder, lexicon, recipe).represent(TEXTS, kind="document")
    assert len(together) == len(TEXTS)
    assert together.size == lexicon.size
    for place, text in enumerate(TEXTS):
        codes = lexicon.codes(encode(encoder, [text], kind="document"), k=6)
        wanted = np.zeros(lexicon.size)
        for ids, values in zip(codes.ids, codes.values, strict=True):
            for latent, value in zip(ids, values, strict=True):
                wanted[latent] = wanted[latent] + value if how == "sum" else max(wanted[latent], value)
        ids, values = together.of(place)
        np.testing.assert_array_equal(ids, np.flatnonzero(wanted))
        np.testing.assert_allclose(values, wanted[ids], rtol=1e-5)
        alone = Pipeline(encoder, lexicon, recipe).represent([text], kind="document")
        np.testing.assert_array_equal(alone.of(0)[0], ids)
        np.testing.assert_allclose(alone.of(0)[1], values, rtol=1e-5)


def test_texts_without_words_have_no_concepts() -> None:
    pipeline = Pipeline(TinyEncoder(), small_lexicon(), RECIPE)
    vectors = pipeline.represent(["bread", "", "oven"], kind="document")
    assert np.diff(vectors.offsets)[1] == 0
    assert (np.diff(vectors.offsets)[[0, 2]] > 0).all()
    assert len(pipeline.represent([], kind="document")) == 0
    assert len(pipeline.represent(["", ""], kind="document")) == 2


def test_progress_counts_every_text() -> None:
    done: list[int] = []
    Pipeline(TinyEncoder(), small_lexicon(), RECIPE).represent(TEXTS, kind="query", progress=done.append)
    assert sum(done) == len(TEXTS)
    assert len(done) > 1


def test_fewer_latents_a_state_are_a_part_of_more() -> None:
    lexicon = small_lexicon()
    few, many = (Pipeline(TinyEncoder(), lexicon, RECIPE.changed(k=k)).represent(TEXTS, kind="query") for k in (2, 12))
    assert len(few.ids) < len(many.ids)
    assert (dense(few) <= dense(many) + 1e-5).all()


def test_another_encoder_is_refused(shared_encoder: Encoder) -> None:
    with pytest.raises(MismatchError):
        Pipeline(shared_encoder, small_lexicon(), RECIPE).represent(["bread"], kind="query")


def test_the_default_pipeline_keeps_the_order_of_texts_of_many_lengths(shared_encoder: Encoder) -> None:
    texts = [
        "Statins lower cholesterol.",
        "A galaxy is a system of stars, dust and dark matter bound together by gravity. " * 6,
        "chess",
        "",
        "The bishop moves along the diagonals of the board, any number of squares.",
        "bread",
    ]
    lexicon, recipe = load(), recipes.get("latent-terms")
    pipeline = Pipeline(shared_encoder, lexicon, recipe)
    together = dense(pipeline.represent(texts, kind="document"))
    alone = np.concatenate([dense(pipeline.represent([text], kind="document")) for text in texts])
    assert (np.linalg.norm(together, axis=1) > 0).tolist() == [bool(text) for text in texts]
    assert (np.linalg.norm(alone, axis=1) > 0).tolist() == [bool(text) for text in texts]
    full = [row for row, text in enumerate(texts) if text]
    together, alone = (each[full] / np.linalg.norm(each[full], axis=1, keepdims=True) for each in (together, alone))
    cosine = together @ alone.T
    assert np.diag(cosine).min() > 0.97  # half precision may swap a weak latent for another
    assert (cosine.argmax(axis=1) == np.arange(len(full))).all()


def test_function_words_of_a_query_count_for_less() -> None:
    encoder = TinyEncoder()
    lexicon = Lexicon.random(encoder, size=64, seed=3)
    recipe = recipes.get("latent-terms").changed(k=4, punctuation=True, function_words=0.5, emphasis=0.5)
    text = "the river, of gold"
    (tokens,) = encoder.tokenize([text], kind="query")
    weights = token_weights(tokens, recipe.function_words)
    assert weights.tolist() == [0.5, 1.0, 0.5, 0.5, 1.0]  # the, river, comma, of, gold
    plain = lexicon.codes(encode(encoder, [text], kind="query"), k=4)
    expected = np.zeros(64)
    np.add.at(expected, plain.ids, plain.values * weights[:, None])
    for kind, wanted in (("query", expected), ("document", None)):
        vector = Pipeline(encoder, lexicon, recipe).represent([text], kind=kind).to_scipy().toarray()[0]
        if wanted is None:
            wanted = np.zeros(64)
            np.add.at(wanted, plain.ids, plain.values)
        np.testing.assert_allclose(vector, wanted, rtol=1e-5)
