"""Every kernel of the index returns what its slow twin returns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexent.errors import ArtifactError, InputError
from lexent.indexing import reference
from lexent.indexing.postings import Postings
from lexent.recipes import BM25, Recipe
from lexent.search.searcher import CHUNK, Searcher
from lexent.types import SparseVectors

SIZE = 8
WEIGHTS = st.sampled_from([0.5, 1.0, 1.5, 2.0])
FACTORS = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0, 3.0])


def csr(rows: list[dict[int, float]], size: int = SIZE) -> SparseVectors:
    ids = [latent for row in rows for latent in sorted(row)]
    values = [row[latent] for row in rows for latent in sorted(row)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return SparseVectors(np.array(ids, np.int32), np.array(values, np.float32), offsets.astype(np.int64), size)


documents = st.lists(st.dictionaries(st.integers(0, SIZE - 1), WEIGHTS), min_size=1, max_size=20).map(csr)
# Latents up to 3 beyond those of the index: a query may hold some that it does not know.
queries = st.lists(st.dictionaries(st.integers(0, SIZE + 2), FACTORS), max_size=4).map(
    lambda rows: csr(rows, size=SIZE + 3)
)


@settings(deadline=None)
@given(vectors=documents)
def test_invert(vectors: SparseVectors) -> None:
    postings = Postings.of(vectors)
    for found, expected in zip(
        (postings.offsets, postings.documents, postings.weights), reference.invert(vectors), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert postings.df.sum() == len(postings) == len(vectors.ids)


@settings(max_examples=300, deadline=None)
@given(vectors=documents, asked=queries, k=st.integers(0, 25))
def test_top(vectors: SparseVectors, asked: SparseVectors, k: int) -> None:
    searcher = Searcher(Postings.of(vectors), Recipe(name="test"))
    found = searcher.top_weighted(asked, k)
    assert found.positions.shape == (len(asked), min(k, len(vectors)))
    for row in range(len(asked)):
        positions, scores = reference.top(vectors, *asked.of(row), k=k)
        count = len(positions)
        np.testing.assert_array_equal(found.positions[row, :count], positions)
        np.testing.assert_array_equal(found.scores[row, :count], scores)
        assert (found.positions[row, count:] == -1).all()


@settings(deadline=None)
@given(vectors=documents, asked=queries)
def test_scores(vectors: SparseVectors, asked: SparseVectors) -> None:
    searcher = Searcher(Postings.of(vectors), Recipe(name="test"))
    for row in range(len(asked)):
        for found, expected in zip(
            searcher.scores(*asked.of(row)), reference.scores(vectors, *asked.of(row)), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


@settings(deadline=None)
@given(vectors=documents, latents=st.lists(st.integers(0, SIZE + 2), max_size=6))
def test_lookup(vectors: SparseVectors, latents: list[int]) -> None:
    searcher = Searcher(Postings.of(vectors), Recipe(name="test"))
    wanted = np.array(latents, np.int32)
    for position in range(len(vectors)):
        np.testing.assert_array_equal(
            searcher.document_weights(position, wanted), reference.lookup(vectors, position, wanted)
        )


def test_many_queries_on_several_threads_equal_one_after_the_other() -> None:
    random = np.random.default_rng(0)
    rows = [dict(zip(random.permutation(SIZE)[:4].tolist(), random.random(4) + 0.1, strict=True)) for _ in range(300)]
    searcher = Searcher.from_vectors(csr(rows), Recipe(name="test"))
    asked = csr(rows[: 3 * CHUNK + 5])
    together, alone = searcher.top(asked, 10, threads=4), searcher.top(asked, 10, threads=1)
    np.testing.assert_array_equal(together.positions, alone.positions)
    np.testing.assert_array_equal(together.scores, alone.scores)


def test_a_matching_document_counts_also_with_a_negative_score() -> None:
    # Latent 0 is in all documents but one: under okapi its idf is negative.
    rows = [{0: 1.0}, {0: 1.0}, {0: 1.0}, {1: 1.0}]
    searcher = Searcher.from_vectors(csr(rows), Recipe(name="test", weighting=BM25(idf="okapi")))
    found = searcher.top(csr([{0: 1.0}]), 10)
    assert found.positions[0].tolist() == [0, 1, 2, -1]
    assert (found.scores[0, :3] < 0).all()


def test_pruned_latents_match_nothing() -> None:
    rows = [{0: 1.0}, {0: 1.0, 1: 1.0}]
    searcher = Searcher.from_vectors(csr(rows), Recipe(name="test", prune=0.5))
    assert searcher.top(csr([{0: 1.0}]), 5).positions.tolist() == [[-1, -1]]
    assert searcher.top(csr([{0: 1.0, 1: 1.0}]), 5).positions.tolist() == [[1, -1]]


def test_a_negative_k_is_refused() -> None:
    searcher = Searcher.from_vectors(csr([{0: 1.0}]), Recipe(name="test"))
    with pytest.raises(InputError, match="k is -1"):
        searcher.top(csr([{0: 1.0}]), -1)


def test_a_document_out_of_range_is_refused_not_written_to() -> None:
    postings = Postings.of(csr([{0: 1.0}, {0: 1.0}]))
    hostile = Postings(postings.offsets, np.array([0, 2**30], np.int32), postings.weights, n_documents=2)
    searcher = Searcher(hostile, Recipe(name="test"))
    with pytest.raises(ArtifactError, match="build it again: lexent index"):
        searcher.top_weighted(csr([{0: 1.0}]), 2)
    with pytest.raises(ArtifactError, match="damaged"):
        searcher.scores(np.array([0], np.int32), np.array([1.0], np.float32))
