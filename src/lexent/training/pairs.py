"""Queries with documents that answer them: what retrieval training learns from, and its batches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from lexent.artifact import disk_errors
from lexent.errors import ArtifactError, InputError, NotFoundError
from lexent.training.stream import text_digest

_NUMBERS = ("query", "positive", "source", "negatives")


@dataclass(frozen=True)
class Pairs:
    """Pair i says that documents[positive[i]] answers queries[query[i]]."""

    queries: Sequence[str]
    documents: Sequence[str]
    query: NDArray[np.int64]  # [n]
    positive: NDArray[np.int64]  # [n]
    source: NDArray[np.int64]  # [n], where the pair is from, numbered from 0
    negatives: NDArray[np.int64]  # [n_queries, m], documents that look right and are not, -1 where there are fewer

    def __post_init__(self) -> None:
        n = len(self.query)
        if not n:
            raise InputError("there are no pairs to learn from; give a collection with a train split, or titled texts")
        if len(self.positive) != n or len(self.source) != n:
            raise InputError(f"{n} queries, {len(self.positive)} positives and {len(self.source)} sources do not pair")
        if self.negatives.ndim != 2 or len(self.negatives) != len(self.queries):
            raise InputError(
                f"negatives are {self.negatives.shape}; wanted: a row for each of the {len(self.queries)} queries"
            )
        for name, numbers, end in (
            ("query", self.query, len(self.queries)),
            ("positive", self.positive, len(self.documents)),
            ("negatives", self.negatives, len(self.documents)),
        ):
            least = -1 if name == "negatives" else 0
            if numbers.size and not (least <= numbers.min() and numbers.max() < end):
                raise InputError(f"{name} goes from {numbers.min()} to {numbers.max()}; allowed: {least} to {end - 1}")

    @staticmethod
    def of(pairs: Sequence[tuple[str, str]], *, documents: Sequence[str] = ()) -> Pairs:
        """From texts. Equal texts are one query or one document. documents: others to draw negatives from."""
        queries = {text: place for place, text in enumerate(dict.fromkeys(query for query, _ in pairs))}
        held = {text: place for place, text in enumerate(dict.fromkeys([*(text for _, text in pairs), *documents]))}
        return Pairs(
            list(queries),
            list(held),
            np.array([queries[query] for query, _ in pairs], np.int64),
            np.array([held[text] for _, text in pairs], np.int64),
            np.zeros(len(pairs), np.int64),
            np.empty((len(queries), 0), np.int64),
        )

    @staticmethod
    def join(parts: Sequence[Pairs]) -> Pairs:
        """All of them; each keeps its own documents and sources."""
        sizes = [(len(part.queries), len(part.documents), int(part.source.max()) + 1) for part in parts]
        firsts = np.cumsum([(0, 0, 0), *sizes[:-1]], axis=0)
        width = max(part.negatives.shape[1] for part in parts)
        numbers = [
            (
                part.query + query,
                part.positive + document,
                part.source + source,
                np.pad(
                    np.where(part.negatives >= 0, part.negatives + document, -1),
                    ((0, 0), (0, width - part.negatives.shape[1])),
                    constant_values=-1,
                ),
            )
            for part, (query, document, source) in zip(parts, firsts, strict=True)
        ]
        return Pairs(
            [text for part in parts for text in part.queries],
            [text for part in parts for text in part.documents],
            *(np.concatenate(column) for column in zip(*numbers, strict=True)),
        )

    def __len__(self) -> int:
        return len(self.query)

    def with_negatives(self, negatives: NDArray[Any]) -> Pairs:
        """The same with mined negatives int[n_queries, m]."""
        return replace(self, negatives=np.asarray(negatives, np.int64))

    def answers(self) -> list[NDArray[np.int64]]:
        """For each query all documents that are known to answer it: none of them is a negative."""
        order = np.argsort(self.query, kind="stable")
        ends = np.searchsorted(self.query[order], np.arange(len(self.queries) + 1))
        return [self.positive[order[start:stop]] for start, stop in pairwise(ends)]

    @cached_property
    def digest(self) -> str:
        """Changes when any text, pair or negative does."""
        found = hashlib.sha256(f"{text_digest(self.queries)} {text_digest(self.documents)}".encode())
        for numbers in (self.query, self.positive, self.source, self.negatives):
            found.update(np.ascontiguousarray(numbers, np.int64).tobytes())
        return found.hexdigest()[:16]

    def save(self, path: Path) -> None:
        """One .npz file, texts and numbers, that needs nothing but NumPy to be read."""
        arrays: dict[str, Any] = {name: getattr(self, name).astype(np.int32) for name in _NUMBERS}
        arrays |= {**_packed("queries", self.queries), **_packed("documents", self.documents)}
        with disk_errors(path), path.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @staticmethod
    def load(path: Path) -> Pairs:
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                queries, documents = (_unpacked(name, file) for name in ("queries", "documents"))
                query, positive, source, negatives = (file[name].astype(np.int64) for name in _NUMBERS)
                return Pairs(queries, documents, query, positive, source, negatives)
        except FileNotFoundError as error:
            raise NotFoundError(
                f'no file of pairs at "{path}"; make one: lexent train TEXTS --recipe ssr --prepare --out {path}'
            ) from error
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise ArtifactError(
                f"{path} is no file of pairs ({error}); "
                f"make it again: lexent train TEXTS --recipe ssr --prepare --out {path}"
            ) from error


@dataclass(frozen=True, slots=True)
class PairBatch:
    """What one step compares: each query with all documents of the batch."""

    queries: NDArray[np.int64]  # [n]
    documents: NDArray[np.int64]  # [n_documents], each once
    target: NDArray[np.int64]  # [n], the column of the query's own document
    excluded: NDArray[np.bool_]  # [n, n_documents], other documents that answer the query: neither right nor wrong
    source: NDArray[np.int64]  # [n], where each query is from


class PairBatches:
    """Batches by number: each depends on nothing but the seed and its number, so that a run goes on from any step."""

    def __init__(self, pairs: Pairs, *, batch: int, hard: int, balance: float | None, seed: int) -> None:
        """balance: draw each batch from one source, and a source by its number of pairs to this power; None: mix."""
        self.pairs, self.hard, self.seed, self.batch = pairs, hard, seed, min(batch, len(pairs))
        self._sources = [np.flatnonzero(pairs.source == source) for source in np.unique(pairs.source)]
        self._shares: NDArray[np.float64] | None = None
        if balance is not None:
            shares = np.array([float(len(found)) for found in self._sources]) ** balance
            self._shares = shares / shares.sum()
        self._answers = pairs.answers()
        self._epoch, self._order = -1, np.empty(0, np.int64)

    @property
    def an_epoch(self) -> int:
        """Batches that hold as many pairs as there are; what does not fill a batch is left for another epoch."""
        return len(self.pairs) // self.batch

    def at(self, step: int) -> PairBatch:
        """The batch of a step."""
        chosen = self._chosen(step)
        queries, positive = self.pairs.query[chosen], self.pairs.positive[chosen]
        drawn = self._negatives(queries, step)
        documents = np.unique(np.concatenate([positive, drawn]))
        excluded = np.zeros((len(queries), len(documents)), bool)
        for row, query in enumerate(queries):
            excluded[row] = np.isin(documents, self._answers[query])
        target = np.searchsorted(documents, positive)
        excluded[np.arange(len(queries)), target] = False
        return PairBatch(queries, documents, target, excluded, self.pairs.source[chosen])

    def _chosen(self, step: int) -> NDArray[np.int64]:
        """int64[batch]: pairs of one source, drawn anew each time; or of all, each once an epoch."""
        if self._shares is not None:
            draw = np.random.default_rng([self.seed, 4, step])
            own = self._sources[int(draw.choice(len(self._sources), p=self._shares))]
            return draw.choice(own, min(self.batch, len(own)), replace=False)
        epoch, place = divmod(step, self.an_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, np.random.default_rng([self.seed, epoch]).permutation(len(self.pairs))
        return self._order[place * self.batch : (place + 1) * self.batch]

    def _negatives(self, queries: NDArray[np.int64], step: int) -> NDArray[np.int64]:
        mined = self.pairs.negatives[queries]
        if not self.hard or not mined.shape[1]:
            return np.empty(0, np.int64)
        keys = np.where(mined >= 0, np.random.default_rng([self.seed, 1, step]).random(mined.shape), 2.0)
        drawn = np.take_along_axis(mined, np.argsort(keys, axis=1)[:, : self.hard], axis=1).ravel()
        return drawn[drawn >= 0]


def _packed(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    coded = [text.encode(errors="surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in coded], dtype=np.int64)
    return {name: np.frombuffer(b"".join(coded), np.uint8), f"{name}_ends": ends}


def _unpacked(name: str, file: Mapping[str, NDArray[Any]]) -> list[str]:
    data, ends = file[name].tobytes(), file[f"{name}_ends"].tolist()
    return [data[start:stop].decode(errors="surrogatepass") for start, stop in pairwise([0, *ends])]
