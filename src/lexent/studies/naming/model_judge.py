"""A language model as the judge: it reads the question as a person would, and answers with numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lexent.evaluation.progress import counter
from lexent.lexicon.answer_cache import Prompt, Replies, ask
from lexent.lexicon.endpoint import Completion, Endpoint
from lexent.studies.naming.grades import Scores
from lexent.studies.naming.questions import Named, Option, Question

AT_ONCE = 10
"""Texts that are shown in one prompt; detection with more is asked in parts."""
SHOWN_WORDS = 60
"""Words of a text that are shown."""
MAX_ANSWER_TOKENS = 32

_SYSTEM = "You answer a question about short texts. Answer with numbers only, no words."
_QUESTIONS = {
    "intrusion": "Nine of these ten texts have something in common. Which one does not belong? Its number:",
    "named-intrusion": "All but one of these texts have to do with {name}. Which one does not? Its number:",
    "detection": "Which of these texts have to do with {name}? Their numbers, with commas, or 0 where it is none:",
    "identification": "One of these texts is described by these concepts, strongest first: {concepts}.\n"
    "Which is it? Its number:",
}


class ModelJudge:
    """Asks an endpoint; answers are kept, so that nothing is asked twice."""

    def __init__(self, endpoint: Endpoint, *, replies: Replies, concurrency: int = 4) -> None:
        self._endpoint, self._replies, self._concurrency = endpoint, replies, concurrency

    @property
    def name(self) -> str:
        """The name of the judge in reports."""
        return self._endpoint.model

    def judge(self, questions: Sequence[Question]) -> list[Scores | None]:
        """Scores of the choices of each question; None where it was not answered."""
        every = [prompts(question) for question in questions]
        flat = [prompt for parts in every for prompt in parts]
        settings: dict[str, Any] = {"endpoint": self._endpoint, "replies": self._replies}
        advance = counter(self.name, total=len(flat))
        answers = iter(ask(flat, concurrency=self._concurrency, progress=advance, **settings))
        return [
            scores(question, [next(answers) for _ in parts]) for question, parts in zip(questions, every, strict=True)
        ]


def prompts(question: Question) -> list[Prompt]:
    """What the model is asked: one prompt, or several where there are many texts to look through."""
    texts = [_text(question, question.options[first : first + _step(question)]) for first in _starts(question)]
    system = {"role": "system", "content": _SYSTEM}
    return [Prompt((system, {"role": "user", "content": text}), max_tokens=MAX_ANSWER_TOKENS) for text in texts]


def scores(question: Question, answers: Sequence[Completion | None]) -> Scores | None:
    """1 for the options that were named; None where the answer holds no number that can be meant."""
    found = np.zeros(len(question.options))
    several = question.task == "detection"  # options may be right
    for first, answer in zip(_starts(question), answers, strict=True):
        if answer is None:
            return None
        shown = min(_step(question), len(question.options) - first)
        text = re.sub(r"<think>.*?(</think>|$)", "", answer.text, flags=re.DOTALL)
        chosen = [number for number in map(int, re.findall(r"\d+", text)) if 1 <= number <= shown]
        if not chosen and not (several and re.search(r"\b(none|0|no)\b", text.lower())):
            return None
        found[[first + number - 1 for number in (chosen if several else chosen[:1])]] = 1.0
    return found


def _step(question: Question) -> int:
    """Options that one prompt shows: all, but where several may be right, some."""
    return AT_ONCE if question.task == "detection" else len(question.options)


def _starts(question: Question) -> range:
    return range(0, len(question.options), _step(question))


def _text(question: Question, options: Sequence[Option]) -> str:
    """The texts stand first: a control shows the same ones, and servers need not read the same beginning again."""
    concepts = _list(question.concepts)
    if question.task == "simulation":
        described = "\n".join(f"{number}. {_list(option.concepts)}" for number, option in enumerate(options, 1))
        of_query = f"Concepts of the query, strongest first: {concepts}.\n" if question.concepts else ""
        return (
            f'A search engine was asked: "{question.query}"\n{of_query}'
            "Two texts are described by their concepts, strongest first:\n\n"
            f"{described}\n\nWhich does it rank higher, 1 or 2? Its number:"
        )
    texts = "\n".join(f"{number}. {_cut(option.text)}" for number, option in enumerate(options, 1))
    name = f'"{question.concepts[0].name}"' if question.concepts else ""
    return f"{texts}\n\n{_QUESTIONS[question.task].format(name=name, concepts=concepts)}"


def _list(concepts: Sequence[Named]) -> str:
    return "; ".join(f"{concept.name} ({concept.weight:.1f})" for concept in concepts)


def _cut(text: str) -> str:
    words = text.split()
    return " ".join(words[:SHOWN_WORDS]) + (" …" if len(words) > SHOWN_WORDS else "")
