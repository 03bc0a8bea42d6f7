"""Names of concepts from the words of the documents at hand.

A lexicon's own names come from the text that it was trained on. In an index a concept is called by the words of the
collection that raise it; the lexicon's name serves where the collection says too little, and where a language model
gave it. Names are kept in a file of the index, so that they stay until they are made anew.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lexent import array_files
from lexent.errors import ArtifactError
from lexent.lexicon.concept_words import ConceptWords
from lexent.lexicon.concepts import DOCUMENTS, SEPARATOR, Concept, Concepts, Evidence, MadeConcepts
from lexent.lexicon.forms import form_of
from lexent.lexicon.lexicon import Lexicon
from lexent.lexicon.names import Word, distinct, grouped, leading_words, merged_word, shortened

MIN_TOKENS = 10
"""Tokens that must raise a concept before the collection names it."""
MIN_SHARE = 0.03
"""Share of a concept's activation that a word of its name has."""
EVIDENCE_WORDS = 10
"""Words that are kept with a concept, highest gain first."""
MAX_FORMER = 200_000
"""Former names that are kept, newest first."""


_ARRAYS = dict.fromkeys(("lexicon", "labels", "forms", "former", "words"), "u")
_ARRAYS |= dict.fromkeys(("concepts", "former_of", "offsets", "items", "counts"), "i") | {"shares": "f"}
"""The arrays of the archive, and the kinds of their numbers."""


@dataclass(frozen=True, slots=True)
class WordsHere:
    """Words of an index's documents that raise each concept, highest gain first."""

    words: list[str]
    offsets: NDArray[np.int64]  # [m + 1], the entries of each concept
    items: NDArray[np.int32]  # [n_entries], places in words
    shares: NDArray[np.float32]  # [n_entries], of the concept's activation
    counts: NDArray[np.int32]  # [n_entries], tokens of the word that raised it

    def of(self, concept: int) -> Evidence:
        """Words, shares and counts of a concept."""
        part = slice(self.offsets[concept], self.offsets[concept + 1])
        items, shares, counts = (side[part].tolist() for side in (self.items, self.shares, self.counts))
        return tuple((self.words[item], share, count) for item, share, count in zip(items, shares, counts, strict=True))

    @staticmethod
    def of_counts(words: ConceptWords) -> WordsHere:
        """The words far above chance that were counted, at most EVIDENCE_WORDS a concept."""
        gains = words.gains()
        order = np.lexsort((words.items, -gains, words.concepts))
        order = order[gains[order] > 0]
        concepts = words.concepts[order]
        order = order[np.arange(len(order)) - np.searchsorted(concepts, concepts) < EVIDENCE_WORDS]
        used, items = np.unique(words.items[order], return_inverse=True)
        ends = np.bincount(words.concepts[order], minlength=len(words.totals)).cumsum()
        return WordsHere(
            [words.words[word] for word in used.tolist()],
            np.concatenate([[0], ends]).astype(np.int64),
            items.astype(np.int32),
            words.shares()[order],
            words.counts[order],
        )


@dataclass(frozen=True, slots=True)
class CollectionNames:
    """The names of an index's concepts: label and form by concept, and former labels that still find them."""

    lexicon: str
    """Hash of the lexicon that the concepts are of."""
    labels: Mapping[int, tuple[str, str]]
    former: Mapping[str, int]
    words: WordsHere

    def to_bytes(self) -> bytes:
        """As a compressed NumPy archive; the same names give the same bytes."""
        order = sorted(self.labels)
        file = io.BytesIO()
        np.savez_compressed(
            file,
            lexicon=_text([self.lexicon]),
            concepts=np.array(order, np.int32),
            labels=_text([self.labels[concept][0] for concept in order]),
            forms=_text([self.labels[concept][1] for concept in order]),
            former=_text(list(self.former)),
            former_of=np.array(list(self.former.values()), np.int32),
            words=_text(self.words.words),
            offsets=self.words.offsets,
            items=self.words.items,
            shares=self.words.shares.astype(np.float16),
            counts=self.words.counts,
        )
        return file.getvalue()

    @staticmethod
    def from_bytes(data: bytes) -> CollectionNames:
        """What `to_bytes` gave, checked."""
        try:
            found = array_files.unpacked_arrays(data, _ARRAYS)
            text = {name: _lines(found[name]) for name in ("lexicon", "labels", "forms", "former", "words")}
            rows = zip(found["concepts"].tolist(), text["labels"], text["forms"], strict=True)
            labels = {concept: (label, form) for concept, label, form in rows}
            former = dict(zip(text["former"], found["former_of"].tolist(), strict=True))
            offsets, items = found["offsets"].astype(np.int64), found["items"].astype(np.int32)
            words = WordsHere(text["words"], offsets, items, found["shares"].astype(np.float32), found["counts"])
            lengths = {len(items), len(words.shares), len(words.counts), int(offsets[-1])}
            if len(lengths) != 1 or not array_files.ascends(offsets) or offsets[0] != 0:
                raise ValueError("its arrays do not fit together")
            if len(items) and not 0 <= items.min() <= items.max() < len(words.words):
                raise ValueError("a word is missing")
            return CollectionNames(text["lexicon"][0], labels, former, words)
        except Exception as error:  # a damaged archive fails in many ways
            raise ArtifactError(f"the names of the concepts are damaged: {error}") from error

    def applied(self, lexicon: Lexicon) -> Lexicon:
        """The lexicon with these names; its codes, and so its hash, stay as they are."""
        if self.lexicon != lexicon.hash or len(self.words.offsets) != lexicon.size + 1:
            return lexicon
        before, labels = lexicon.concepts, self.labels

        def named_here(concept: int) -> Concept:
            own = before[concept]
            label, form = labels.get(concept, (own.label, own.form))
            if own.source or (label, form) == (own.label, own.form):  # a language model's name stays
                return own
            return replace(own, label=label, form=form, source=DOCUMENTS, plain=own.label)

        named = Concepts(MadeConcepts(len(before), named_here), former=self.former, here=self.words.of)
        named.options = lexicon.concepts.options
        return lexicon.renamed(named)


def name_concepts(words: ConceptWords, lexicon: Lexicon, *, before: CollectionNames | None = None) -> CollectionNames:
    """A name for each concept that the collection raises. before: the names until now, which go on finding concepts."""
    own = lexicon.concepts
    labels, forms = [concept.label for concept in own], [concept.form for concept in own]
    around: list[list[str]] = [[word for word, _ in concept.raised_by] for concept in own]
    shares, gains, offsets = words.shares().tolist(), words.gains().tolist(), words.offsets().tolist()
    texts = [words.words[item] for item in words.items.tolist()]
    at_start = (words.at_start / np.maximum(words.totals, 1e-12)).tolist()
    named = set()
    for concept in np.flatnonzero(words.tokens >= MIN_TOKENS).tolist():
        if own[concept].source:  # a language model's or a person's
            continue
        entries = range(offsets[concept], offsets[concept + 1])
        found = ranked([Word(texts[entry], shares[entry], gains[entry]) for entry in entries])
        form = form_of([(word.text, word.share, word.gain) for word in found], at_start=at_start[concept])
        content = [word for word in found if word.is_content]
        chosen = [word for word in content if word.share >= MIN_SHARE and word.gain > 0] or content[:1]
        if form or chosen:
            labels[concept] = form or shortened(SEPARATOR.join(leading_words(chosen)))
            forms[concept] = form
            around[concept] = [word.text for word in content][:8] + around[concept]
            named.add(concept)
    told_apart = distinct(labels, around)
    changed = {
        concept: (told_apart[concept], forms[concept])
        for concept in range(len(labels))
        if concept in named or told_apart[concept] != own[concept].label
    }
    former = _former(before, told_apart) if before is not None and before.lexicon == lexicon.hash else {}
    return CollectionNames(lexicon.hash, changed, former, WordsHere.of_counts(words))


def ranked(words: list[Word]) -> list[Word]:
    """Words with the forms of one word merged, highest gain first."""
    return sorted((merged_word(group) for group in grouped(words)), key=lambda word: (-word.gain, word.text))


def _former(before: CollectionNames, labels: list[str]) -> dict[str, int]:
    """The names that find concepts although they are no longer theirs, newest first."""
    gone = {label: concept for concept, (label, _) in before.labels.items() if labels[concept] != label}
    found = {**gone, **{label: concept for label, concept in before.former.items() if label not in gone}}
    return dict(list(found.items())[:MAX_FORMER])


def _text(lines: list[str]) -> NDArray[np.uint8]:
    """Lines as bytes, each with its end."""
    return np.frombuffer("".join(f"{' '.join(line.splitlines())}\n" for line in lines).encode(), np.uint8)


def _lines(text: NDArray[np.uint8]) -> list[str]:
    return text.tobytes().decode().split("\n")[:-1]
