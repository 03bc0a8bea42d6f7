"""Judges that need no language model: how alike are a name and a text?

The embedding judge uses an encoder's pooled vectors. Where that is the encoder whose states the concepts were learned
from, it judges its own features: a high result says that names and texts agree in its own eyes. The words judge knows
nothing of the encoder, only words; but names made from words meet it half-way. They are to be read together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.encoders import Encoder
from lexent.evaluation.progress import counter
from lexent.function_words import FUNCTION_WORDS
from lexent.studies.naming.grades import Scores
from lexent.studies.naming.questions import Question

_WORD = re.compile(r"[^\W_]+")
_ENDINGS = (
    *("ations", "ation", "ments", "ment", "ities", "ity", "ings", "ing", "ions", "ion", "ies", "ied", "ers", "er"),
    *("ical", "ally", "als", "al", "ive", "ic", "ed", "es", "ly", "s", "y", "e"),
)


class _LikenessJudge:
    """Answers by how alike texts and names are."""

    name: str

    def alike(self, left: Sequence[str], right: Sequence[str]) -> Scores:
        """float64[n_left, n_right]: cosines."""
        raise NotImplementedError

    def prepare(self, texts: Sequence[str]) -> None:
        """Told all texts before the first question."""

    def judge(self, questions: Sequence[Question]) -> list[Scores | None]:
        """Scores of the options of each question."""
        self.prepare([text for question in questions for text in _texts(question)])
        advance, found = counter(self.name, total=len(questions)), list[Scores | None]()
        for question in questions:
            found.append(_scores(question, self.alike))
            advance(1)
        return found


class WordsJudge(_LikenessJudge):
    """TF-IDF: alike are texts that share rare words. Independent of every encoder."""

    name = "words"

    def __init__(self, background: Sequence[str]) -> None:
        """background: texts that tell which words are rare."""
        self._df = Counter(word for text in background for word in set(terms(text)))
        self._n = len(background)
        self._known: dict[str, dict[str, float]] = {}

    def alike(self, left: Sequence[str], right: Sequence[str]) -> Scores:
        """float64[n_left, n_right]: cosines."""
        from scipy.sparse import csr_matrix

        numbers: dict[str, int] = {}
        rows = [self._weights(text) for text in (*left, *right)]
        columns = [numbers.setdefault(word, len(numbers)) for row in rows for word in row]
        values = [weight for row in rows for weight in row.values()]
        matrix = csr_matrix(
            (values, columns, np.cumsum([0, *map(len, rows)])),
            shape=(len(rows), max(1, len(numbers))),
            dtype=np.float64,
        )
        found: Scores = (matrix[: len(left)] @ matrix[len(left) :].T).toarray()
        return found

    def _weights(self, text: str) -> dict[str, float]:
        """The words of a text by their weights, of length 1; texts come back in many questions."""
        if text not in self._known:
            counts = Counter(terms(text))
            found = {word: (1 + log(count)) * log1p(self._n / (self._df[word] + 0.5)) for word, count in counts.items()}
            length = sqrt(sum(weight * weight for weight in found.values())) or 1.0
            self._known[text] = {word: weight / length for word, weight in found.items()}
        return self._known[text]


class EmbeddingJudge(_LikenessJudge):
    """The cosine of pooled vectors."""

    def __init__(self, encoder: Encoder, *, name: str = "embedding") -> None:
        self.name = name
        self._encoder = encoder
        self._rows: dict[str, NDArray[np.float32]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode what is not known yet, all at once."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._rows]
        for positions, states in self._encoder.batches(fresh, kind="document", level="pooled"):
            for position, row in zip(positions, unit(states.numpy()), strict=True):
                self._rows[fresh[position]] = row

    def alike(self, left: Sequence[str], right: Sequence[str]) -> Scores:
        """float64[n_left, n_right]: cosines."""
        self.prepare([*left, *right])
        ours, theirs = (np.stack([self._rows[text] for text in side]) for side in (left, right))
        return (ours @ theirs.T).astype(np.float64)


def _texts(question: Question) -> list[str]:
    own = [question.query, *(concept.name for concept in question.concepts)]
    for option in question.options:
        own += [option.text, *(concept.name for concept in option.concepts)]
    return [text for text in own if text]


def _scores(question: Question, alike: Callable[[Sequence[str], Sequence[str]], Scores]) -> Scores:
    """A score for each option, from likeness alone."""
    texts = [option.text for option in question.options]
    scores: Scores = np.zeros(len(texts))
    if question.task == "intrusion":  # the one least like the others
        among = alike(texts, texts)
        np.fill_diagonal(among, 0.0)
        scores -= among.sum(axis=1)
    elif question.task == "simulation":  # the query's words count as much as all of its concepts
        names = [question.query, *(concept.name for concept in question.concepts)]
        total = sum(concept.weight for concept in question.concepts) or 1.0
        shares = np.array([1.0, *(concept.weight / total for concept in question.concepts)])
        for place, option in enumerate(question.options):
            if option.concepts:
                near = shares @ alike(names, [concept.name for concept in option.concepts])
                scores[place] = float(near @ np.array([concept.weight for concept in option.concepts]))
    elif question.concepts:
        weights = np.array([concept.weight for concept in question.concepts])
        scores += weights @ alike([concept.name for concept in question.concepts], texts)
        if question.task == "named-intrusion":
            scores *= -1
    return scores


def terms(text: str) -> list[str]:
    """Stems of the words that say something."""
    words = (word for word in _WORD.findall(text.lower()) if word not in FUNCTION_WORDS and len(word) > 1)
    return [_stem(word) for word in words]


def _stem(word: str) -> str:
    """A word without one common ending: enough to meet its other forms."""
    endings = (ending for ending in _ENDINGS if word.endswith(ending) and len(word) - len(ending) >= 3)
    return word.removesuffix(next(endings, ""))
