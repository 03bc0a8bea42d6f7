"""Groups of a query's concepts: concepts that say the same are one line of an explanation and one slider.

Concepts say the same when the same words raise them, in the documents and in the query, and when their directions are
alike. Groups are joined, the most alike first, until what is left apart differs and a few of them hold nearly all of
the query's weight. Groups are those of the query as it was typed: steering moves their weights and not their members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent import cpu
from lexent.function_words import FUNCTION_WORDS
from lexent.lexicon import Lexicon
from lexent.lexicon.concepts import SEPARATOR, Concepts, Evidence
from lexent.lexicon.names import same_word
from lexent.lexicon.words import WORD
from lexent.search.coded_text import WHOLE_TEXT, CodedText

SHOWN_GROUPS = 6
"""Lines that should say why a document is a hit."""
WANTED_SHARE = 0.97
"""Share of a query's weight that the shown groups should hold."""
ALIKE = 0.5
"""Groups at least so alike are one."""
NEGLIGIBLE_SHARE = 0.004
"""Concepts with less of the query's weight join a group and never make one."""
MAX_CACHED_WORDS = 65_536
"""Words of which it is kept whether they can name anything."""
WORDS_OF_NEGLIGIBLE = 3
"""Words of such a concept that say which group it joins."""
NAME_WORDS = 3
"""Words in the name of a group."""
MIN_NAME_SHARE = 0.12
"""A word of a name has at least this share of what the first one has."""
MIN_LINE_SHARE = 0.2
"""A word of the document in the name of a line has at least this share of what the first one has."""
QUERY_WORD_SHARE = 0.2
"""What a word of the query counts in a name although no document has it, per share of the concept that it raised."""
QUERY_WORD_BOOST = 2.0
"""How much more a word counts in a name when it also stands in the query."""
FORM = "form"
"""The name of the group of concepts of form; see `lexent.lexicon.forms`."""
ALIKENESS = {"documents": 0.4, "query": 0.35, "direction": 0.25}
"""How much the parts of the likeness of two concepts count: words that raise them, and the lexicon's directions."""


@dataclass(frozen=True, slots=True)
class ConceptGroup:
    """Concepts of a query that say the same."""

    label: str
    weight: float
    """The sum of the weights of its concepts, after idf and steering."""
    concepts: tuple[int, ...]
    """Strongest first."""
    form: bool = False
    """Whether it holds the concepts of form, which are no topic."""

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return {**asdict(self), "concepts": list(self.concepts)}

    @property
    def head(self) -> str:
        """The first word of the name: no other group of the query has it."""
        return self.label.split(SEPARATOR)[0]


@dataclass(frozen=True, slots=True)
class Line:
    """A group of concepts in a document: one line of why it is a hit."""

    label: str
    value: float
    concepts: tuple[int, ...]
    """Strongest first."""
    form: bool


@dataclass(frozen=True, slots=True)
class QueryGroups:
    """The groups of a query, strongest first, those of form last."""

    groups: tuple[ConceptGroup, ...]
    words: Mapping[int, Mapping[str, float]]
    """For each concept, the words that may name it, in lower case, and how much each counts."""

    def place_of(self) -> dict[int, int]:
        """The place of each concept's group."""
        return {concept: place for place, group in enumerate(self.groups) for concept in group.concepts}

    def weighed(
        self, ids: Sequence[int], weights: Sequence[float], *, lexicon: Lexicon, words: Mapping[int, str] | None = None
    ) -> QueryGroups:
        """The same groups with other weights of their concepts; concepts that are in none make groups of their own.

        words: the names of those of the ids that are words of the index.
        """
        now = dict(zip(ids, weights, strict=True))
        kept = [
            replace(group, weight=float(sum(now.get(concept, 0.0) for concept in group.concepts)))
            for group in self.groups
            if any(concept in now for concept in group.concepts)
        ]
        known = self.place_of()
        new = [concept for concept in ids if concept not in known]
        own = [now[concept] for concept in new]
        added = group_concepts(new, own, lexicon=lexicon, query=None, taken=self.heads, words=words)
        return QueryGroups((*kept, *added.groups), {**self.words, **added.words})

    def lines(self, values: Mapping[int, float], text: TextWords) -> list[Line]:
        """The groups in a document, strongest first, those of form last. values: what each concept gave to the score.

        A group is called by its first word, and by words of the document that raise its concepts.
        """
        found = []
        for group in self.groups:
            own = [concept for concept in group.concepts if concept in values]
            if own:
                own.sort(key=lambda concept: (-abs(values[concept]), concept))
                label = group.label if group.form else self._label(group, own, values, text)
                found.append(Line(label, sum(values[concept] for concept in own), tuple(own), group.form))
        return sorted(found, key=lambda line: (line.form, -abs(line.value), line.label))

    def _label(self, group: ConceptGroup, concepts: Sequence[int], values: Mapping[int, float], text: TextWords) -> str:
        counts: dict[str, float] = {}
        for concept in concepts:
            for word, share in self.words.get(concept, {}).items():
                counts[word] = counts.get(word, 0.0) + abs(values[concept]) * share
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        strong, least = list[str](), 0.0
        for word in ranked:
            if counts[word] < least:
                break
            form = text.form(word)
            if form:
                least = least or MIN_LINE_SHARE * counts[word]
                strong.append(form)
        return SEPARATOR.join(_different([group.head, *strong]) or [group.label])

    @property
    def heads(self) -> list[str]:
        """The first words of the names."""
        return [group.head for group in self.groups]

    def named(self, name: str) -> tuple[int, ...]:
        """The concepts of the group of that name or first word; none where no group has it."""
        wanted = name.strip().casefold()
        for group in self.groups:
            if wanted in (group.label.casefold(), group.head.casefold()):
                return group.concepts
        return ()


def group_concepts(
    ids: Sequence[int],
    weights: Sequence[float],
    *,
    lexicon: Lexicon,
    query: CodedText | None,
    taken: Iterable[str] = (),
    words: Mapping[int, str] | None = None,
) -> QueryGroups:
    """The groups of a query's concepts. query: with the words that raised them, where its recipe codes tokens.

    taken: first words that no name may have. words: the names of those of the ids that are words of the index: such a
    word is as a concept that it alone raises, so it joins the concepts that it raised in the query.
    """
    if not len(ids):
        return QueryGroups((), {})
    mass = np.abs(np.asarray(weights, np.float64))
    words, vocabulary = words or {}, _Vocabulary()
    ids = [int(one) for one in ids]
    concepts = iter(lexicon.concepts.of([one for one in ids if one not in words]))
    known = [None if one in words else next(concepts) for one in ids]
    labels = [words[one] if concept is None else concept.label for one, concept in zip(ids, known, strict=True)]
    small = mass < NEGLIGIBLE_SHARE * float(mass.sum())
    documents, queries = _profiles(lexicon.concepts, np.asarray(ids, np.int32), small, query, vocabulary, words)
    naming = documents * (1 + QUERY_WORD_BOOST * queries) + QUERY_WORD_SHARE * queries
    of_form = np.array([concept is not None and concept.form != "" for concept in known], np.bool_)
    forms, topics = np.flatnonzero(of_form).tolist(), np.flatnonzero(~of_form)
    directions = _directions(lexicon, np.asarray(ids, np.int64), words)
    parts = [mass[topics, None] * _unit(side[topics]) for side in (documents, queries, directions)]
    with cpu.one_blas_thread():  # small products, which would only wait for a second thread
        clusters = [topics[cluster] for cluster in _clustered(parts, mass[topics], naming[topics])]
    found: list[ConceptGroup] = []
    held = list(taken)
    for cluster in sorted(clusters, key=lambda cluster: -float(mass[cluster].sum())):
        ranked = mass[cluster] @ naming[cluster]
        names = leading(((vocabulary.words[at], ranked[at]) for at in np.argsort(-ranked, kind="stable")), held)
        strongest = cluster[np.argmax(mass[cluster])]
        found.append(_group(SEPARATOR.join(names) or labels[strongest], cluster.tolist(), ids, weights))
        held.append(found[-1].head)
    if forms:
        found.append(_group(FORM, forms, ids, weights, form=True))
    return QueryGroups(tuple(found), dict(zip(ids, _by_row(naming, vocabulary.words), strict=True)))


class TextWords:
    """The words of a text, found by any of their forms."""

    def __init__(self, text: str) -> None:
        self._words = {word.lower() for word in WORD.findall(text)}
        self._near: dict[str, list[str]] = {}
        for word in sorted(self._words):
            self._near.setdefault(word[:3], []).append(word)

    def form(self, word: str) -> str:
        """The form of a word that stands in the text; "" where none does."""
        if word in self._words:
            return word
        return next((near for near in self._near.get(word[:3], ()) if same_word(word, near)), "")


def _different(words: Iterable[str]) -> list[str]:
    """The first words, one of each word's forms."""
    found: list[str] = []
    for word in words:
        if not any(same_word(word, other) for other in found):
            found.append(word)
            if len(found) == NAME_WORDS:
                break
    return found


def leading(ranked: Iterable[tuple[str, float]], taken: Iterable[str] = ()) -> list[str]:
    """The words of a name, best first, one of each word's forms. The first is not a form of a word that is taken."""
    held, names = list(taken), list[str]()
    best = 0.0
    for word, value in ranked:
        if value <= max(0.0, MIN_NAME_SHARE * best) or len(names) == NAME_WORDS:
            break
        if any(same_word(word, other) for other in names):
            continue
        if not names and any(same_word(word, other) for other in held):
            continue
        best = best or value
        names.append(word)
    return names


def _group(
    label: str, places: Sequence[int], ids: Sequence[int], weights: Sequence[float], *, form: bool = False
) -> ConceptGroup:
    order = sorted(places, key=lambda place: (-abs(float(weights[place])), int(ids[place])))
    total = float(sum(weights[place] for place in order))
    return ConceptGroup(label, total, tuple(int(ids[place]) for place in order), form)


class _Vocabulary:
    """Words, the forms of one word as one."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._places: dict[str, int] = {}
        self._near: dict[str, list[int]] = {}

    def places(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The column of each word; a new one where no form of it is known; -1 for a word that names nothing."""
        places, known = self._places, self.words
        for word in dict.fromkeys(words):
            if word in places:
                continue
            if not _names_something(word):
                places[word] = -1
                continue
            near = self._near.setdefault(word[:3], [])  # forms of one word share their first three letters
            for place in near:
                if same_word(known[place], word):
                    places[word] = place
                    break
            else:
                places[word] = len(known)
                near.append(len(known))
                known.append(word)
        return np.fromiter(map(places.__getitem__, words), np.int64, len(words))


def _profiles(
    concepts: Concepts,
    ids: NDArray[np.int32],
    small: NDArray[np.bool_],
    query: CodedText | None,
    vocabulary: _Vocabulary,
    labels: Mapping[int, str],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float64[n_concepts, n_words] twice: how much words raise each concept in documents, and in the query.

    Of the small ones, only the words that raise them most.
    """
    typed, shares = np.zeros(0, np.int64), np.zeros((0, len(ids)))
    if query is not None:
        names, shares = query.shares_by_word(ids)
        typed = vocabulary.places(names)
    evidence = [_evidence(concepts, concept, labels) for concept in ids.tolist()]
    kept = [own[:WORDS_OF_NEGLIGIBLE] if few else own for own, few in zip(evidence, small.tolist(), strict=True)]
    rows = np.repeat(np.arange(len(ids)), [len(own) for own in kept])
    places = vocabulary.places([word for own in kept for word, _, _ in own])
    shape = len(ids), len(vocabulary.words)
    named = places >= 0
    counts = np.array([share for own in kept for _, share, _ in own], np.float64)[named]
    documents, queries = np.zeros(shape), np.zeros(shape)
    np.add.at(documents.reshape(-1), rows[named] * shape[1] + places[named], counts)
    named = typed >= 0
    np.add.at(queries.T, typed[named], shares[named])
    for row, concept in enumerate(ids.tolist()):
        if concept in labels:  # who has the word has it as it was typed: so the parts of an identifier are one group
            documents[row] += queries[row]
    return documents, queries


def _evidence(concepts: Concepts, concept: int, labels: Mapping[int, str]) -> Evidence:
    """The words that raise a concept in documents, with their shares; a word of the index raises itself."""
    return ((labels[concept].lower(), 1.0, 0),) if concept in labels else concepts.evidence(concept)


def _directions(lexicon: Lexicon, ids: NDArray[np.int64], labels: Mapping[int, str]) -> NDArray[np.float64]:
    """The lexicon's directions of some concepts; words of the index have none."""
    own = np.array([int(one) not in labels for one in ids], np.bool_)
    known = lexicon.directions(ids[own]).astype(np.float64)
    found = np.zeros((len(ids), known.shape[1]))
    found[own] = known
    return found


@lru_cache(MAX_CACHED_WORDS)
def _names_something(word: str) -> bool:
    return word not in FUNCTION_WORDS and word != WHOLE_TEXT and len(word) > 1 and any(map(str.isalpha, word))


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return found


def _clustered(
    parts: Sequence[NDArray[np.float64]], mass: NDArray[np.float64], naming: NDArray[np.float64]
) -> list[list[int]]:
    """Rows joined, the most alike first. parts: rows by each kind of likeness, as long as their mass."""
    total = float(mass.sum()) or 1.0
    order = np.argsort(-mass, kind="stable")
    large = [int(row) for row in order if mass[row] >= NEGLIGIBLE_SHARE * total] or order[:1].tolist()
    if not large:
        return []
    clusters = _joined(_by_head(large, naming), parts, mass)
    held = {row for cluster in clusters for row in cluster}
    small = [int(row) for row in order if int(row) not in held]
    if small:
        sums = [_sums(side, clusters) for side in parts]
        sides = zip(ALIKENESS.values(), parts, sums, strict=True)
        alike = np.asarray(sum(share * (_unit(side[small]) @ _unit(sum_).T) for share, side, sum_ in sides))
        for row, nearest in zip(small, alike.argmax(axis=1).tolist(), strict=True):
            clusters[nearest].append(row)
    return clusters


def _joined(
    clusters: list[list[int]], parts: Sequence[NDArray[np.float64]], mass: NDArray[np.float64]
) -> list[list[int]]:
    """Clusters after joining. Products of their sums are kept up to date, so that a join costs one row."""
    weights = np.array([mass[cluster].sum() for cluster in clusters])
    total = float(weights.sum())
    products = []
    for side in parts:
        sums = _sums(side, clusters)
        products.append(sums @ sums.T)
    lengths = [np.sqrt(np.maximum(product.diagonal(), 1e-24)) for product in products]
    sides = list(zip(ALIKENESS.values(), products, lengths, strict=True))
    alike = np.asarray(sum(share * product / np.outer(length, length) for share, product, length in sides))
    np.fill_diagonal(alike, -np.inf)
    left = len(clusters)
    while left > 1:
        one, other = divmod(int(np.argmax(alike)), len(clusters))
        if alike[one, other] < ALIKE:  # only small ones, into what they are most like
            large = np.argsort(-weights, kind="stable")[:SHOWN_GROUPS]
            if float(weights[large].sum()) >= WANTED_SHARE * total:
                break
            small = alike.copy()
            small[large] = -np.inf
            other, one = divmod(int(np.argmax(small)), len(clusters))
        clusters[one] += clusters[other]
        clusters[other] = []
        weights[one] += weights[other]
        weights[other] = 0.0
        row = np.zeros(len(clusters))
        for share, product, length in sides:
            product[one] += product[other]
            product[:, one] += product[:, other]
            length[one] = np.sqrt(max(float(product[one, one]), 1e-24))
            row += share * product[one] / (length[one] * length)
        gone = [one, *(place for place, cluster in enumerate(clusters) if not cluster)]
        row[gone] = -np.inf
        alike[one], alike[:, one] = row, row
        alike[other], alike[:, other] = -np.inf, -np.inf
        left -= 1
    return [cluster for cluster in clusters if cluster]


def _by_row(table: NDArray[np.float64], names: Sequence[str]) -> list[dict[str, float]]:
    """The values of each row that are not 0, by the names of their columns."""
    rows, places = np.nonzero(table)
    values, columns = table[rows, places].tolist(), [names[place] for place in places.tolist()]
    ends = np.bincount(rows, minlength=len(table)).cumsum().tolist()
    parts = [slice(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]
    return [dict(zip(columns[part], values[part], strict=True)) for part in parts]


def _sums(rows: NDArray[np.float64], clusters: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """The sum of each cluster's rows."""
    starts = np.cumsum([0, *(len(cluster) for cluster in clusters[:-1])])
    found: NDArray[np.float64] = np.add.reduceat(rows[np.concatenate(clusters)], starts, axis=0)
    return found


def _by_head(rows: Sequence[int], naming: NDArray[np.float64]) -> list[list[int]]:
    """Rows whose best word is the same are together."""
    if not naming.shape[1]:
        return [[row] for row in rows]
    found: dict[int, list[int]] = {}
    own = naming[rows]
    for row, head, value in zip(rows, own.argmax(axis=1).tolist(), own.max(axis=1).tolist(), strict=True):
        found.setdefault(head if value > 0 else -1 - row, []).append(row)
    return list(found.values())
