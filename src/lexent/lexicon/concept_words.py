"""Which words of a collection raise each concept: counted while its documents are coded, in bounded memory.

A concept keeps the words that give it most; the totals beside them are exact. Counts of segments are merged by adding.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexent import array_files
from lexent.errors import ArtifactError
from lexent.function_words import FUNCTION_WORDS
from lexent.lexicon.activations import active
from lexent.lexicon.words import WORD, words_of
from lexent.types import RowCodes, Tokens

FILE = "concept-words.npz"
KEPT_WORDS = 16
"""Words that a concept keeps in a segment."""
LEAST_KEPT_SHARE = 0.005
COUNTED_WORDS = 48
"""Words that a concept keeps while documents are counted."""
MAX_WAITING = 3_000_000
"""Pairs of a concept and a word that wait before they are summed."""
MAX_WORDS = 500_000
"""Different words that are held while documents are counted."""
WHOLE_LATENTS = 32
"""Latents of a whole text that are counted, strongest first: a weak one is often about something else."""
MAX_WORD_CHARS = 40


_ARRAYS = dict.fromkeys(("word_tokens", "n_tokens", "concepts", "items", "counts", "size", "fired", "tokens"), "i")
_ARRAYS |= {"words": "u", "sums": "f", "totals": "f", "at_start": "f"}
"""The arrays of the archive, and the kinds of their numbers."""


@dataclass(frozen=True, slots=True)
class ConceptWords:
    """Words by concept. Entries are sorted by concept and by falling activation."""

    words: list[str]
    word_tokens: NDArray[np.int64]  # [n_words], tokens of each word in the documents
    n_tokens: int  # of all words
    concepts: NDArray[np.int32]  # [n_entries]
    items: NDArray[np.int32]  # [n_entries], places in words
    sums: NDArray[np.float32]  # [n_entries], activation of the concept by the word
    counts: NDArray[np.int32]  # [n_entries], tokens of the word that raised it
    totals: NDArray[np.float32]  # [m], activation by all words
    tokens: NDArray[np.int64]  # [m], tokens that raised the concept
    at_start: NDArray[np.float32]  # [m], activation by first words of texts

    @staticmethod
    def empty(size: int) -> ConceptWords:
        """No words, for `size` concepts."""
        none = np.empty(0, np.int32)
        zeros = np.zeros(size, np.float32)
        return ConceptWords(
            [],
            np.empty(0, np.int64),
            0,
            none,
            none,
            none.astype(np.float32),
            none,
            zeros,
            np.zeros(size, np.int64),
            zeros,
        )

    def offsets(self) -> NDArray[np.int64]:
        """int64[m + 1]: where the entries of each concept begin, and the end."""
        return np.searchsorted(self.concepts, np.arange(len(self.totals) + 1, dtype=np.int32)).astype(np.int64)

    def shares(self) -> NDArray[np.float32]:
        """float32[n_entries]: of all activation of the concept."""
        found: NDArray[np.float32] = (self.sums / np.maximum(self.totals[self.concepts], 1e-12)).astype(np.float32)
        return found

    def gains(self) -> NDArray[np.float32]:
        """float32[n_entries]: the share times the logarithm of how far above chance it is."""
        shares = self.shares().astype(np.float64)
        rates = np.maximum(self.word_tokens, 1) / max(self.n_tokens, 1)
        return (shares * np.log(np.maximum(shares, 1e-9) / rates[self.items])).astype(np.float32)

    def only(self, words: Collection[str]) -> ConceptWords:
        """The counts of these words alone: what deleted documents alone had is left out."""
        kept = np.array([word in words for word in self.words], np.bool_)
        return self._selected(kept[self.items])

    def kept(self, most: int) -> ConceptWords:
        """At most so many words of each concept."""
        first = np.searchsorted(self.concepts, self.concepts)
        place = np.arange(len(self.concepts)) - first
        return self._selected((place < most) & (self.shares() >= LEAST_KEPT_SHARE))

    def _selected(self, entries: NDArray[np.bool_]) -> ConceptWords:
        used, items = np.unique(self.items[entries], return_inverse=True)
        return ConceptWords(
            [self.words[word] for word in used.tolist()],
            self.word_tokens[used],
            self.n_tokens,
            self.concepts[entries],
            items.astype(np.int32),
            self.sums[entries],
            self.counts[entries],
            self.totals,
            self.tokens,
            self.at_start,
        )

    @staticmethod
    def merged(parts: Sequence[ConceptWords], *, size: int) -> ConceptWords:
        """The counts of several segments together."""
        counter = WordCounter(size)
        for part in parts:
            counter.merge(part)
        return counter.result(COUNTED_WORDS)

    def to_bytes(self) -> bytes:
        """As a compressed NumPy archive; the same counts give the same bytes."""
        fired = np.flatnonzero(self.tokens).astype(np.int32)
        text = np.frombuffer("\n".join(self.words).encode(), np.uint8)
        file = io.BytesIO()
        np.savez_compressed(
            file,
            words=text,
            word_tokens=self.word_tokens,
            n_tokens=np.array(self.n_tokens, np.int64),
            concepts=self.concepts,
            items=self.items,
            sums=self.sums,
            counts=self.counts,
            size=np.array(len(self.totals), np.int64),
            fired=fired,
            totals=self.totals[fired],
            tokens=self.tokens[fired],
            at_start=self.at_start[fired],
        )
        return file.getvalue()

    @staticmethod
    def from_bytes(data: bytes, *, size: int) -> ConceptWords:
        """What `to_bytes` gave, checked."""
        try:
            found = array_files.unpacked_arrays(data, _ARRAYS)
            words = found["words"].tobytes().decode().split("\n") if len(found["words"]) else []
            spread = {name: np.zeros(size, found[name].dtype) for name in ("totals", "tokens", "at_start")}
            for name, array in spread.items():
                array[found["fired"]] = found[name]
            made = ConceptWords(
                words,
                found["word_tokens"],
                int(found["n_tokens"]),
                *(found[name] for name in ("concepts", "items", "sums", "counts")),
                **spread,
            )
            entries = {len(made.concepts), len(made.items), len(made.sums), len(made.counts)}
            in_range = not len(made.items) or (
                0 <= made.items.min() <= made.items.max() < len(words)
                and 0 <= made.concepts.min() <= made.concepts.max() < size
            )
            if len(entries) != 1 or not in_range or len(words) != len(made.word_tokens) or found["size"] != size:
                raise ValueError("its arrays do not fit together")
        except Exception as error:  # a damaged archive fails in many ways
            raise ArtifactError(f"the counts of words by concept are damaged: {error}") from error
        return made


class WordCounter:
    """Sums activation by concept and word over batches of texts."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._numbers: dict[str, int] = {}
        self._tokens = np.zeros(1024, np.int64)
        self._n_tokens = 0
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]] = []
        self._n_waiting = 0
        self._totals, self._fired = np.zeros(size), np.zeros(size, np.int64)
        self._at_start = np.zeros(size)

    def add_tokens(self, texts: Sequence[str], tokens: Sequence[Tokens], codes: RowCodes) -> None:
        """Counts the words that the rows of tokens stand in; a last row, of the text as a whole, is not counted."""
        lengths = np.diff(codes.offsets)
        of_rows, starts = [], []
        for text, found, length in zip(texts, tokens, lengths.tolist(), strict=True):
            if len(found) and not found.spans.any():  # an encoder that does not know where its tokens stand
                return
            words = words_of(text, found)
            numbers = self._count(words)
            first = np.zeros(length, np.bool_)
            at = np.flatnonzero(~found.special)[:1]
            if len(at):
                first[: len(words)] = (found.spans[:, 0] == found.spans[at[0], 0]) & ~found.special
            of_rows.append(np.concatenate([numbers, np.full(length - len(numbers), -1)]))
            starts.append(first)
        if not of_rows:
            return
        row, _, _, concept, value = active(codes, np.arange(len(texts)))
        word = np.concatenate(of_rows)[row]
        held = word >= 0
        self._sum(concept[held], word[held], value[held].astype(np.float64))
        self._at_start += np.bincount(
            concept[held], value[held] * np.concatenate(starts)[row[held]], minlength=self.size
        )

    def add_whole(self, texts: Sequence[str], codes: RowCodes) -> None:
        """Counts every content word of a text for the latents of its one row. Rates and shares are of texts then."""
        for place, text in enumerate(texts):
            words = {word.lower() for word in WORD.findall(text)}
            numbers = self._count([word for word in sorted(words) if len(word) > 2 and word not in FUNCTION_WORDS])
            row = int(codes.offsets[place])
            values = codes.values[row, :WHOLE_LATENTS]
            held = values > 0
            concept, value = codes.ids[row, :WHOLE_LATENTS][held].astype(np.int64), values[held].astype(np.float64) ** 2
            more = len(numbers) - 1
            if more >= 0 and len(concept):
                n = len(numbers)
                self._sum(np.repeat(concept, n), np.tile(numbers, len(concept)), np.repeat(value, n))
                np.subtract.at(self._totals, concept, value * more)
                np.subtract.at(self._fired, concept, more)
                self._n_tokens -= more

    def absorb(self, other: WordCounter) -> None:
        """Adds what another counter has counted, in all its detail."""
        numbers = self._numbered(list(other._numbers))
        np.add.at(self._tokens, numbers, other._tokens[: len(numbers)])
        self._n_tokens += other._n_tokens
        if other._waiting:  # at once: words may be numbered anew after each part that waits
            keys, sums, counts = map(np.concatenate, zip(*other._waiting, strict=True))
            self._wait(keys >> 32 << 32 | numbers[keys & 0xFFFFFFFF], sums, counts)
        self._totals += other._totals
        self._fired += other._fired
        self._at_start += other._at_start

    def merge(self, other: ConceptWords) -> None:
        """Adds what was counted before."""
        numbers = self._numbered(other.words)
        np.add.at(self._tokens, numbers, other.word_tokens)
        self._n_tokens += other.n_tokens
        keys = (
            other.concepts.astype(np.int64) << 32 | numbers[other.items] if len(other.items) else np.empty(0, np.int64)
        )
        self._wait(keys, other.sums.astype(np.float64), other.counts.astype(np.int64))
        self._totals += other.totals
        self._fired += other.tokens
        self._at_start += other.at_start

    def result(self, most: int = KEPT_WORDS) -> ConceptWords:
        """What was counted, with at most so many words a concept."""
        keys, sums, counts = self._reduced()
        concept, item = keys >> 32, keys & 0xFFFFFFFF
        order = np.lexsort((item, -sums, concept))
        found = ConceptWords(
            list(self._numbers),
            self._tokens[: len(self._numbers)].copy(),
            self._n_tokens,
            concept[order].astype(np.int32),
            item[order].astype(np.int32),
            sums[order].astype(np.float32),
            counts[order].astype(np.int32),
            self._totals.astype(np.float32),
            self._fired.copy(),
            self._at_start.astype(np.float32),
        )
        return found.kept(most)

    def _numbered(self, words: Sequence[str]) -> NDArray[np.int64]:
        held = self._numbers
        found = np.array([held.setdefault(word[:MAX_WORD_CHARS], len(held)) for word in words], np.int64)
        if len(held) > len(self._tokens):
            self._tokens = np.concatenate([self._tokens, np.zeros(len(held), np.int64)])
        return found

    def _count(self, words: Sequence[str]) -> NDArray[np.int64]:
        numbers = self._numbered(words)
        np.add.at(self._tokens, numbers, 1)
        self._n_tokens += len(numbers)
        return numbers

    def _sum(self, concept: NDArray[np.int64], word: NDArray[np.int64], value: NDArray[np.float64]) -> None:
        self._totals += np.bincount(concept, value, minlength=self.size)
        self._fired += np.bincount(concept, minlength=self.size)
        self._wait(concept << 32 | word, value, np.ones(len(word), np.int64))

    def _wait(self, keys: NDArray[np.int64], sums: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        self._waiting.append((keys, sums, counts))
        self._n_waiting += len(keys)
        if self._n_waiting > MAX_WAITING:
            self._reduced()

    def _reduced(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """One entry for each pair; of a concept with too many words the strongest."""
        none = (np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
        keys, sums, counts = map(np.concatenate, zip(none, *self._waiting, strict=True))
        order = _order(keys, len(self._numbers))
        keys, sums, counts = keys[order], sums[order], counts[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        if len(first):
            keys, sums, counts = keys[first], np.add.reduceat(sums, first), np.add.reduceat(counts, first)
        if len(keys) > MAX_WAITING // 2:
            order = np.lexsort((-sums, keys >> 32))
            concept = keys[order] >> 32
            place = np.arange(len(order)) - np.searchsorted(concept, concept)
            kept = np.sort(order[place < COUNTED_WORDS])
            keys, sums, counts = keys[kept], sums[kept], counts[kept]
        if len(self._numbers) > MAX_WORDS:
            keys = self._forgotten(keys)
        self._waiting, self._n_waiting = [(keys, sums, counts)], 0
        return keys, sums, counts

    def _forgotten(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Drops words that no concept keeps; the keys with the new numbers of words."""
        used, items = np.unique(keys & 0xFFFFFFFF, return_inverse=True)
        words = list(self._numbers)
        self._numbers = {words[word]: place for place, word in enumerate(used.tolist())}
        self._tokens = np.concatenate([self._tokens[used], np.zeros(1024, np.int64)])
        renumbered: NDArray[np.int64] = keys >> 32 << 32 | items
        return renumbered


def _order(keys: NDArray[np.int64], n_words: int) -> NDArray[np.int64]:
    """The stable order of keys of a concept and a word. Sorting the keys with their places in them is far quicker."""
    bits = max(len(keys) - 1, 0).bit_length()
    dense = (keys >> 32) * n_words + (keys & 0xFFFFFFFF)
    if int(dense.max(initial=0)).bit_length() + bits > 62:
        return np.argsort(keys, kind="stable")
    return np.sort(dense << bits | np.arange(len(keys))) & ((1 << bits) - 1)
