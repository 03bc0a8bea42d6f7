"""What the benchmark of counting runs on: passages, titles as queries, the passage that answers each, and their codes.

A passage is the first 90 words of a text: abstracts, and summaries of articles that only stand among them. Queries are
titles, as in the benchmark of MaxSim: from every 64th line of the abstracts, which no lexicon is trained on, and none
that its own passage repeats.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.maxsim_data import FILES, HELD_OUT, WORDS, is_question

if TYPE_CHECKING:
    from lexent.types import Kind, SparseVectors

OTHERS = ("wikipedia-summaries",)
LONGEST = WORDS.stop - 1
"""Words of a passage."""
SHARD = 4096
"""Texts whose codes stand in one file."""


def passages(texts: Path, limit: int) -> tuple[list[str], list[str], list[int]]:
    """Passages in an order that is always the same, of which the limit takes the first; queries; each one's passage."""
    found = list(_rows(texts))
    chosen: list[str] = []
    queries: list[str] = []
    answers: list[int] = []
    for number in np.random.default_rng(0).permutation(len(found))[:limit]:
        title, passage, held_out = found[number]
        if held_out and is_question(title, [passage]):
            queries.append(title)
            answers.append(len(chosen))
        chosen.append(passage)
    return chosen, queries, answers


def _rows(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Title, passage and whether the line is held out; a passage that stood before is left out, as is a mere scrap."""
    seen: set[str] = set()
    for name in (*FILES, *OTHERS):
        path = folder / f"{name}.jsonl.gz"
        if not path.is_file():
            raise SystemExit(f'no "{path.name}" in "{folder}"; make bench-uhd TEXTS=folder-of-texts')
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row, line in enumerate(lines):
                given = json.loads(line)
                words = given["text"].split()[:LONGEST]
                passage = " ".join(words)
                if len(words) in WORDS and passage not in seen:
                    seen.add(passage)
                    held_out = name in FILES and row % HELD_OUT == HELD_OUT - 1
                    yield given["title"].strip(), passage, held_out


# --- codes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Coded:
    """The latents of some texts in order, with the codes of their values; text i owns offsets[i] to offsets[i + 1]."""

    ids: NDArray[np.int32]  # ascending within a text
    codes: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    values: NDArray[np.float32]
    """The values themselves where they were kept, else those that the codes stand for."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def below(self, latents: int) -> Coded:
        """Only the first latents: those of one bucket."""
        kept = self.ids < latents
        ends = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
        return Coded(self.ids[kept], self.codes[kept], ends[self.offsets], self.values[kept])

    def first(self, n: int) -> Coded:
        end = int(self.offsets[n])
        return Coded(self.ids[:end], self.codes[:end], self.offsets[: n + 1], self.values[:end])


def shards(
    texts: Sequence[str], folder: Path, *, kind: Kind, code: Callable[[list[str]], SparseVectors]
) -> Iterator[Coded]:
    """The codes of texts, SHARD texts at a time: from the folder, or made by `code`, and kept there."""
    from lexent.indexing.postings import quantisation

    name = "passages" if kind == "document" else "queries"
    total = -(-len(texts) // SHARD)
    for number in range(total):
        part = texts[number * SHARD : (number + 1) * SHARD]
        path = folder / f"{name}-{number:03d}.npz"
        if not path.is_file():
            print(f"coding {name}, part {number + 1} of {total}", file=sys.stderr, flush=True)
            made = code(list(part))
            own = {"values": made.values} if kind == "query" else {}  # a query is cut to its largest ones
            _write(path, ids=made.ids, codes=quantisation.encode(made.values), offsets=made.offsets, **own)
        with np.load(path) as held:
            found = {key: held[key] for key in held.files}
        values = found.get("values", quantisation.CODE_VALUES[found["codes"]]).astype(np.float32)
        coded = Coded(found["ids"], found["codes"], found["offsets"], values)
        if len(coded) < len(part):
            raise SystemExit(f'"{path}" has {len(coded)} texts, not {len(part)}; remove it, to have it made again')
        yield coded.first(len(part))


def _write(path: Path, **arrays: NDArray[Any]) -> None:
    """Beside, then renamed: what is there is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(beside, **arrays)
    os.replace(beside, path)


def synthetic(n: int, *, size: int, latents: int, queries: int) -> tuple[Coded, Coded, list[int]]:
    """Made-up codes, for trials without a lexicon: Zipf-like, in topics; a query has 60 latents of its document."""
    random = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, size + 1) ** 0.75
    low, high = 0.0, float(latents)
    for _ in range(60):  # what they are multiplied by, for so many latents a text
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(0.3, middle * shares).sum() < latents else (low, middle)
    shares, names, topic = np.minimum(0.3, low * shares), random.permutation(size), random.integers(0, 64, n)
    members = [np.flatnonzero(topic == one) for one in range(64)]
    owners, own = [], []
    for place, share in enumerate(shares):
        drawn = random.choice(64, random.binomial(n, share), p=random.dirichlet(np.full(64, 0.3)))
        counts = Counter(drawn.tolist())
        found = np.unique(np.concatenate([drawn[:0], *(random.choice(members[one], counts[one]) for one in counts)]))
        owners.append(found.astype(np.int32))
        own.append(np.full(len(found), names[place], np.int32))
    passages = _coded(np.concatenate(owners), np.concatenate(own), n, random)
    answers = random.permutation(n)[:queries]
    rows = []
    for answer in answers:
        its = passages.ids[passages.offsets[answer] : passages.offsets[answer + 1]]
        noise = names[random.choice(size, 40, p=shares / shares.sum())]
        rows.append(np.union1d(random.permutation(its)[:60], noise))
    query_codes = _coded(
        np.repeat(np.arange(queries), [len(row) for row in rows]), np.concatenate(rows), queries, random
    )
    return passages, query_codes, answers.tolist()


def _coded(owners: NDArray[Any], ids: NDArray[Any], n: int, random: np.random.Generator) -> Coded:
    order = np.lexsort((ids, owners))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n), dtype=np.int64)])
    codes = random.integers(70, 90, len(ids), dtype=np.uint8)
    return Coded(ids[order].astype(np.int32), codes, offsets, np.float32(2.0) ** (codes.astype(np.float32) / 16 - 8))
