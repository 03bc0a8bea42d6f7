"""Lexent and its peers behind one interface. A peer is imported when it is built, so any of them may be missing."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.exhaustive import add_all, strongest
from benchmarks.vectors import RECIPE, SIZE, Baked, Query, squared
from lexent.types import SparseVectors

Search = Callable[[int], Any]
"""Answers a query by its number, in whatever form the system gives its answers."""


class System(ABC):
    """One search engine. What is timed is `build`, and the calls of what `searching` gives."""

    name: str
    package: str | None = None
    exact = True
    judged_by_recall = False
    note = ""
    unit_queries = False
    """Whether its queries have no weights: it is then checked with weights of 1."""

    @abstractmethod
    def build(self, baked: Baked, folder: Path) -> None:
        """Makes the index, in an empty folder where it has files."""

    @abstractmethod
    def searching(self, queries: list[Query], k: int) -> Search:
        """Queries in the form that the system takes, and how to ask them."""

    @abstractmethod
    def ids(self, answer: Any) -> NDArray[np.int64]:
        """The documents of an answer."""

    @abstractmethod
    def bytes(self) -> int:
        """The size of the index, on disk where it has files."""

    def stored(self, baked: Baked) -> Any:
        """The documents' weights as the system keeps them, by document."""
        return baked.rows


class Lexent(System):
    name = "Lexent"

    def __init__(self, documents: SparseVectors) -> None:
        self.pooled = squared(documents)

    def build(self, baked: Baked, folder: Path) -> None:
        from lexent.indexing.codes import Codes
        from lexent.indexing.segment import Packer

        packer = Packer(size=SIZE, recipe=RECIPE, folder=folder)
        packer.add(Codes.of(self.pooled, RECIPE))
        packer.close()
        self.folder, self.n_documents, self.length_units = folder, packer.n_documents, packer.length_units

    def open(self) -> None:
        from lexent.indexing.segment import Segment
        from lexent.search.document_scorer import DocumentScorer

        segment = Segment.open(self.folder, size=SIZE, n_documents=self.n_documents, length_units=self.length_units)
        self.document_scorer = DocumentScorer([segment], RECIPE, size=SIZE)

    def searching(self, queries: list[Query], k: int) -> Search:
        vectors, top = [query.vectors for query in queries], self.document_scorer.top
        return lambda number: top(vectors[number], k, threads=1)

    def ids(self, answer: Any) -> NDArray[np.int64]:
        return np.asarray(answer.positions[0])

    def bytes(self) -> int:
        return _size(self.folder)

    @property
    def mapped(self) -> int:
        """All that a query can read, with what is made at the first search."""
        return sum(segment.bytes + 2 * segment.n_documents for segment in self.document_scorer.segments)

    def stored(self, baked: Baked) -> Any:
        """The weights that its files stand for, by the slow twin; idf stands on the side of the queries."""
        from scipy.sparse import csr_matrix

        from lexent.indexing.codes import Codes
        from lexent.topk import reference

        codes = Codes.concatenate(list(self.document_scorer.segments[0].unpack()))
        return csr_matrix((reference.weights(codes, RECIPE), codes.ids, codes.offsets), shape=(len(codes), SIZE))


class NumbaScan(System):
    name = "exhaustive scan in Numba, float32"
    note = "term at a time, a heap for the best"

    def build(self, baked: Baked, folder: Path) -> None:
        columns = baked.columns
        self.arrays = columns.indptr.astype(np.int64), columns.indices, columns.data
        self.scores = np.zeros(baked.n_documents, np.float32)

    def searching(self, queries: list[Query], k: int) -> Search:
        def search(number: int) -> NDArray[np.int64]:
            add_all(*self.arrays, queries[number].ids, queries[number].values, self.scores)
            return strongest(self.scores, k)

        return search

    def ids(self, answer: Any) -> NDArray[np.int64]:
        return np.asarray(answer)

    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


class ScipyProduct(System):
    name, package = "SciPy sparse product", "scipy"

    def build(self, baked: Baked, folder: Path) -> None:
        from scipy.sparse import csr_matrix

        columns = baked.columns
        self.transposed = csr_matrix((columns.data, columns.indices, columns.indptr), shape=columns.shape[::-1])

    def searching(self, queries: list[Query], k: int) -> Search:
        from scipy.sparse import csr_matrix

        rows = [csr_matrix((q.values, q.ids, np.array([0, len(q.ids)], np.int32)), shape=(1, SIZE)) for q in queries]

        def search(number: int) -> NDArray[np.int64]:
            scores = (rows[number] @ self.transposed).toarray().ravel()
            return np.argpartition(scores, -k)[-k:]

        return search

    def ids(self, answer: Any) -> NDArray[np.int64]:
        return np.asarray(answer)

    def bytes(self) -> int:
        matrix = self.transposed
        return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)


class Sindi(System):
    name, package = "VSAG SINDI", "pyvsag"
    note = "no pruning, so exact"

    def build(self, baked: Baked, folder: Path) -> None:
        import pyvsag

        pyvsag.set_logger_off()
        settings = {
            "use_reorder": False,
            "term_id_limit": SIZE,
            "doc_prune_ratio": 0.0,
            "doc_retain_ratio": 1.0,
            "window_size": 60_000,
            "avg_doc_term_length": 250,
        }
        kind = {"dtype": "sparse", "dim": 1024, "metric_type": "ip", "index_param": settings}
        rows, self.file = baked.rows, folder / "sindi"
        self.index = pyvsag.Index("sindi", json.dumps(kind))
        numbers = np.arange(baked.n_documents, dtype=np.int64)
        self.index.build(rows.indptr.astype(np.uint32), rows.indices.astype(np.uint32), rows.data, numbers)
        self.index.save(str(self.file))

    def searching(self, queries: list[Query], k: int) -> Search:
        settings = json.dumps({"sindi": {"query_prune_ratio": 0.0, "term_prune_ratio": 0.0, "n_candidate": 0}})
        encoded_queries = [(np.array([0, len(q.ids)], np.uint32), q.ids.astype(np.uint32), q.values) for q in queries]
        return lambda number: self.index.knn_search(*encoded_queries[number], k, settings)

    def ids(self, answer: Any) -> NDArray[np.int64]:
        return np.asarray(answer[0]).ravel()

    def bytes(self) -> int:
        return _size(self.file)


class QdrantEdge(System):
    name, package = "qdrant-edge", "qdrant_edge"

    def build(self, baked: Baked, folder: Path) -> None:
        import qdrant_edge as qe

        self.folder, rows = folder, baked.rows
        config = qe.EdgeConfig(sparse_vectors={"s": qe.EdgeSparseVectorParams()})
        self.shard = qe.EdgeShard.create(str(folder), config)

        def point(number: int) -> Any:
            part = slice(rows.indptr[number], rows.indptr[number + 1])
            vector = qe.SparseVector(indices=rows.indices[part].tolist(), values=rows.data[part].tolist())
            return qe.Point(id=number, vector={"s": vector}, payload={})

        for start in range(0, baked.n_documents, 1000):
            points = [point(number) for number in range(start, min(start + 1000, baked.n_documents))]
            self.shard.update(qe.UpdateOperation.upsert_points(points))
        self.shard.optimize()

    def searching(self, queries: list[Query], k: int) -> Search:
        import qdrant_edge as qe

        vectors = [qe.SparseVector(indices=q.ids.tolist(), values=q.values.tolist()) for q in queries]

        def search(number: int) -> Any:
            nearest = qe.Query.Nearest(vectors[number], using="s")
            request = qe.SearchRequest(query=nearest, limit=k, offset=0, with_payload=False, with_vector=False)
            return self.shard.search(request)

        return search

    def ids(self, answer: Any) -> NDArray[np.int64]:
        return np.array([point.id for point in answer], np.int64)

    def bytes(self) -> int:
        return _size(self.folder)


class Bm25s(System):
    name, package = "bm25s", "bm25s"
    note = "Numba backend; its queries have no weights, so each latent of a query counts 1"
    unit_queries = True

    def build(self, baked: Baked, folder: Path) -> None:
        import bm25s

        columns = baked.columns
        self.index = bm25s.BM25(method="lucene", backend="numba")
        self.index.scores = {
            "data": columns.data,
            "indices": columns.indices,
            "indptr": columns.indptr,
            "num_docs": baked.n_documents,
        }
        self.index.vocab_dict = {str(latent): latent for latent in range(SIZE)}
        self.index.unique_token_ids_set = set(range(SIZE))
        self.index.corpus = self.index.nonoccurrence_array = None
        self.arrays = columns.data, columns.indices, columns.indptr

    def searching(self, queries: list[Query], k: int) -> Search:
        encoded_queries = [[query.ids.tolist()] for query in queries]

        def search(number: int) -> Any:
            return self.index.retrieve(
                encoded_queries[number], k=k, show_progress=False, n_threads=0, return_as="documents"
            )

        return search

    def ids(self, answer: Any) -> NDArray[np.int64]:
        return np.asarray(answer[0]).astype(np.int64)

    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


class Bmp(System):
    name, package = "BMP", "bmp"
    judged_by_recall = True
    note = "blocks of 32, alpha = beta = 1; weights of 8 bits and sums of 16: right is its recall over those weights"

    def build(self, baked: Baked, folder: Path) -> None:
        import bmp

        self.file, rows = folder / "bmp", baked.rows
        indexer = bmp.Indexer(str(self.file), bsize=32, compress_range=False)
        names, weights = [str(latent) for latent in range(SIZE)], self._quantised(baked)
        for number in range(baked.n_documents):
            part = slice(rows.indptr[number], rows.indptr[number + 1])
            latents = [names[latent] for latent in rows.indices[part].tolist()]
            indexer.add_document(str(number), dict(zip(latents, weights[part].tolist(), strict=True)))
        indexer.finish()
        self.searcher = bmp.Searcher(str(self.file))

    def searching(self, queries: list[Query], k: int) -> Search:
        encoded_queries = [{str(i): float(v) for i, v in zip(q.ids, q.values, strict=True)} for q in queries]
        return lambda number: self.searcher.search(encoded_queries[number], k=k, alpha=1.0, beta=1.0)

    def ids(self, answer: Any) -> NDArray[np.int64]:
        return np.array([int(name) for name in answer[0]], np.int64)

    def bytes(self) -> int:
        return _size(self.file)

    def stored(self, baked: Baked) -> Any:
        from scipy.sparse import csr_matrix

        rows = baked.rows
        return csr_matrix((self._quantised(baked).astype(np.float32), rows.indices, rows.indptr), shape=rows.shape)

    @staticmethod
    def _quantised(baked: Baked) -> NDArray[np.int64]:
        data: NDArray[np.float32] = baked.rows.data
        quantised: NDArray[np.int64] = np.maximum(1, np.ceil(data * np.float32(255 / data.max()))).astype(np.int64)
        return quantised


class Seismic(System):
    name, package = "Seismic (approximate)", "seismic"
    exact, judged_by_recall = False, True
    note = "40 postings a list, to keep building short; summary energy 0.4, query cut 100, heap factor 0.8"

    def build(self, baked: Baked, folder: Path) -> None:
        import seismic

        rows, kind = baked.rows, seismic.get_seismic_string()
        self.names, self.file = np.array([str(latent) for latent in range(SIZE)], dtype=kind), folder / "seismic"
        dataset = seismic.SeismicDataset()
        for number in range(baked.n_documents):
            part = slice(rows.indptr[number], rows.indptr[number + 1])
            dataset.add_document(str(number), self.names[rows.indices[part]], rows.data[part])
        self.index = seismic.SeismicIndex.build_from_dataset(dataset, n_postings=40, summary_energy=0.4, num_threads=1)
        self.index.save(str(self.file))

    def searching(self, queries: list[Query], k: int) -> Search:
        encoded_queries = [(str(number), self.names[q.ids], q.values) for number, q in enumerate(queries)]

        def search(number: int) -> Any:
            return self.index.search(
                *encoded_queries[number], k=k, query_cut=100, heap_factor=0.8, n_knn=0, sorted=True
            )

        return search

    def ids(self, answer: Any) -> NDArray[np.int64]:
        return np.array([int(hit[2]) for hit in answer], np.int64)

    def bytes(self) -> int:
        return _size(self.file.parent)


PEERS: dict[str, type[System]] = {
    "numba": NumbaScan,
    "sindi": Sindi,
    "qdrant": QdrantEdge,
    "bm25s": Bm25s,
    "bmp": Bmp,
    "scipy": ScipyProduct,
    "seismic": Seismic,
}


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(path) for name in names)
