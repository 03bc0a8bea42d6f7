"""What the MaxSim benchmark runs on: passages, titles as queries, and the token states of both, encoded once.

Passages are three sentences of an abstract, of at most 90 words. Queries are titles; the passages of a title's own text
are its relevant ones, and none of them holds it. Queries come only from every 64th line of a file: a lexicon that is
trained on the titles of the other lines has not seen them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILES = "acl-abstracts", "pubmed-abstracts"
HELD_OUT = 64
"""Of so many lines the last one is for queries, and no lexicon is trained on its title."""
SENTENCES, WORDS = 3, range(5, 91)
CHUNK = 2048
"""Passages that are encoded between two notes of how far it went."""

_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9(\[\"“])")
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Collection:
    """Passages in order, queries, and for each query the positions of its relevant passages."""

    passages: list[str]
    queries: list[str]
    relevant: list[list[int]]

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for text in (*self.passages, *self.queries):
            digest.update(text.encode() + b"\n")
        return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TokenStates:
    """Unit states of the tokens of some texts: text i owns the rows offsets[i] to offsets[i + 1]."""

    values: NDArray[np.float16]  # [n_tokens, dim], each of length 1
    lengths: NDArray[np.float32]  # [n_tokens], of the states as the encoder gave them
    tokens: NDArray[np.int64]  # [n_tokens], the number of each token in the vocabulary
    offsets: NDArray[np.int64]  # [n_texts + 1]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def first(self, n: int) -> TokenStates:
        """Those of the first n texts."""
        end = int(self.offsets[n])
        return TokenStates(self.values[:end], self.lengths[:end], self.tokens[:end], self.offsets[: n + 1])

    def of(self, text: int) -> NDArray[np.float16]:
        found: NDArray[np.float16] = self.values[self.offsets[text] : self.offsets[text + 1]]
        return found


def collection(folder: Path, *, passages: int, queries: int) -> Collection:
    """Passages of texts that are spread evenly over the files, those of the queries among them."""
    texts = list(_texts(folder))
    asking = {number for number, text in enumerate(texts) if text.held_out and is_question(text.title, text.passages)}
    chosen = sorted(asking)
    chosen = [chosen[place] for place in np.linspace(0, len(chosen) - 1, queries).round().astype(int)]
    asking = set(chosen)
    others = [number for number in range(len(texts)) if number not in asking]
    order = np.random.default_rng(0).permutation(len(others))
    taken, count = set(asking), sum(len(texts[number].fit) for number in asking)
    for place in order:
        if count >= passages:
            break
        taken.add(others[place])
        count += len(texts[others[place]].fit)
    found = Collection([], [], [])
    for number in np.random.default_rng(1).permutation(sorted(taken)):
        text, start = texts[number], len(found.passages)
        found.passages.extend(text.fit)
        if number in asking and text.fit:
            found.queries.append(text.title)
            found.relevant.append(list(range(start, len(found.passages))))
    return found


@dataclass(frozen=True, slots=True)
class _Text:
    title: str
    passages: list[str]
    held_out: bool

    @property
    def fit(self) -> list[str]:
        """Without the passages that are hardly a text, and those that run on."""
        return [passage for passage in self.passages if len(passage.split()) in WORDS]


def _texts(folder: Path) -> Iterator[_Text]:
    for name in FILES:
        path = folder / f"{name}.jsonl.gz"
        if not path.is_file():
            raise SystemExit(f'no "{path.name}" in "{folder}"; make bench-maxsim TEXTS=folder-of-texts')
        seen: set[str] = set()
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row, line in enumerate(lines):
                given = json.loads(line)
                parts = [part.strip() for part in _passages(given["text"])]
                fresh = [part for part in parts if part not in seen]
                seen.update(fresh)
                if fresh:
                    yield _Text(given["title"].strip(), fresh, row % HELD_OUT == HELD_OUT - 1)


def _passages(text: str) -> list[str]:
    """Three sentences each; the last one of a text may have fewer."""
    sentences = _ENDS.split(text.strip())
    return [" ".join(sentences[start : start + SENTENCES]) for start in range(0, len(sentences), SENTENCES)]


def is_question(title: str, passages: Sequence[str]) -> bool:
    """A title that says something, and that its own passages do not repeat."""
    title = title.rstrip(".").lower()
    return len(_WORDS.findall(title)) >= 4 and not any(title in passage.lower() for passage in passages)


# --- states --------------------------------------------------------------------------------------------------------


def encoded(found: Collection, folder: Path, *, threads: int | None = None) -> tuple[TokenStates, TokenStates]:
    """The states of the passages and of the queries; encoded once, and gone on with where it was broken off."""
    from lexent.models import load_encoder

    if threads:
        import torch

        torch.set_num_threads(threads)
    sides: list[TokenStates] = []
    encoder: Any = None
    for kind, texts in (("document", found.passages), ("query", found.queries)):
        place = folder / f"{kind}-{found.fingerprint}"
        if not (place / "done.json").is_file() or json.loads((place / "done.json").read_text())["texts"] < len(texts):
            encoder = encoder or load_encoder()
            _encode(encoder, texts, kind, place)
        sides.append(opened(place))
    return sides[0], sides[1]


def opened(place: Path) -> TokenStates:
    """The states in a folder, mapped."""
    tokens, offsets = np.load(place / "tokens.npy"), np.load(place / "offsets.npy")
    values = np.load(place / "values.npy", mmap_mode="r")
    return TokenStates(values, np.load(place / "lengths.npy", mmap_mode="r"), tokens, offsets)


def _encode(encoder: Any, texts: Sequence[str], kind: Any, place: Path) -> None:

    place.mkdir(parents=True, exist_ok=True)
    note = place / "done.json"
    if not note.is_file():
        parts = [encoder.tokenize(texts[start : start + CHUNK], kind=kind) for start in range(0, len(texts), CHUNK)]
        strings = [tokens.strings for part in parts for tokens in part]
        vocabulary = {token: number for number, token in enumerate(sorted({token for one in strings for token in one}))}
        np.save(place / "tokens.npy", np.array([vocabulary[token] for one in strings for token in one], np.int64))
        np.save(place / "offsets.npy", np.concatenate([[0], np.cumsum([len(one) for one in strings])]).astype(np.int64))
        n = sum(map(len, strings))
        for name, shape, kept in (("values", (n, encoder.dim), np.float16), ("lengths", (n,), np.float32)):
            np.lib.format.open_memmap(place / f"{name}.npy", mode="w+", dtype=kept, shape=shape)
        note.write_text(json.dumps({"texts": 0, "of": len(texts)}))
    offsets = np.load(place / "offsets.npy")
    values, lengths = (np.load(place / f"{name}.npy", mmap_mode="r+") for name in ("values", "lengths"))
    began, first = time.perf_counter(), json.loads(note.read_text())["texts"]
    for start in range(first, len(texts), CHUNK):
        stop = min(start + CHUNK, len(texts))
        for rows, states in encoder.batches(texts[start:stop], kind=kind):
            vectors = states.numpy()
            norms = np.linalg.norm(vectors, axis=1)
            units = (vectors / norms[:, None]).astype(np.float16)
            for row, begin, end in zip(rows, states.offsets, states.offsets[1:], strict=False):
                target = slice(offsets[start + row], offsets[start + row + 1])
                values[target], lengths[target] = units[begin:end], norms[begin:end]
        values.flush()
        lengths.flush()
        _note(note, {"texts": stop, "of": len(texts)})
        left = (time.perf_counter() - began) / (stop - first) * (len(texts) - stop)
        print(f"encoded {stop:,} of {len(texts):,} ({kind}), {left:.0f} s to go", file=sys.stderr, flush=True)


def _note(path: Path, what: dict[str, int]) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(what))
    os.replace(beside, path)
