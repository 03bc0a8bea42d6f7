"""A language model as the judge: it reads the question as a person would, and answers with numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from lexent.lexicon.endpoint import Completion, Endpoint
from lexent.lexicon.replies import Prompt, Replies, ask
from lexent.studies.naming.grades import Scores
from lexent.studies.naming.questions import Named, Option, Question

AT_ONCE = 10
"""Texts that are shown in one prompt; detection with more is asked in parts."""
SHOWN_WORDS = 60
"""Words of a text that are shown."""
MAX_ANSWER_TOKENS = 32

_SYSTEM = "You answer a question about short texts. Answer with numbers only, no words."


class ModelJudge:
    """Asks an endpoint; answers are kept, so that nothing is asked twice."""

    def __init__(self, endpoint: Endpoint, *, replies: Replies, concurrency: int = 4) -> None:
        self._endpoint, self._replies, self._concurrency = endpoint, replies, concurrency

    @property
    def name(self) -> str:
        """The name of the judge in reports."""
        return self._endpoint.model

    def judge(
        self, questions: Sequence[Question], *, progress: Callable[[int], None] | None = None
    ) -> list[Scores | None]:
        """Scores of the choices of each question; None where it was not answered."""
        asked = [prompts(question) for question in questions]
        flat = [prompt for parts in asked for prompt in parts]
        answers = iter(
            ask(
                flat,
                endpoint=self._endpoint,
                replies=self._replies,
                concurrency=self._concurrency,
                progress=progress,
            )
        )
        return [
            scores(question, [next(answers) for _ in parts]) for question, parts in zip(questions, asked, strict=True)
        ]


def prompts(question: Question) -> list[Prompt]:
    """What the model is asked: one prompt, or several where there are many texts to look through."""
    options = question.options
    parts = [options[at : at + AT_ONCE] for at in range(0, len(options), AT_ONCE)] if _many(question) else [options]
    return [_prompt(_text(question, part)) for part in parts]


def scores(question: Question, answers: Sequence[Completion | None]) -> Scores | None:
    """1 for the options that were named; None where the answer holds no number that can be meant."""
    found = np.zeros(len(question.options))
    for part, answer in enumerate(answers):
        if answer is None:
            return None
        first = part * AT_ONCE if _many(question) else 0
        shown = min(AT_ONCE, len(question.options) - first) if _many(question) else len(question.options)
        text = re.sub(r"<think>.*?(</think>|$)", "", answer.text, flags=re.DOTALL)
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        chosen = [number for number in numbers if 1 <= number <= shown]
        if _many(question):
            if not chosen and not re.search(r"\b(none|0|no)\b", text.lower()):
                return None
        elif not chosen:
            return None
        else:
            chosen = chosen[:1]
        found[[first + number - 1 for number in chosen]] = 1.0
    return found


def _many(question: Question) -> bool:
    """Several options may be right."""
    return question.task == "detection"


def _prompt(text: str) -> Prompt:
    return Prompt(
        ({"role": "system", "content": _SYSTEM}, {"role": "user", "content": text}), max_tokens=MAX_ANSWER_TOKENS
    )


def _text(question: Question, options: Sequence[Option]) -> str:
    """The texts stand first: a control shows the same ones, and servers need not read the same beginning again."""
    texts = "\n".join(f"{number}. {_cut(option.text)}" for number, option in enumerate(options, 1))
    named = f'"{question.concepts[0].name}"' if question.concepts else ""
    if question.task == "intrusion":
        return f"{texts}\n\nNine of these ten texts have something in common. Which one does not belong? Its number:"
    if question.task == "named-intrusion":
        return f"{texts}\n\nAll but one of these texts have to do with {named}. Which one does not? Its number:"
    if question.task == "detection":
        return (
            f"{texts}\n\nWhich of these texts have to do with {named}? "
            "Their numbers, with commas, or 0 where it is none:"
        )
    if question.task == "identification":
        return (
            f"{texts}\n\nOne of these texts is described by these concepts, strongest first: "
            f"{_list(question.concepts)}.\nWhich is it? Its number:"
        )
    described = "\n".join(f"{number}. {_list(option.concepts)}" for number, option in enumerate(options, 1))
    asked = f"Concepts of the query, strongest first: {_list(question.concepts)}.\n" if question.concepts else ""
    return (
        f'A search engine was asked: "{question.query}"\n{asked}'
        "Two texts are described by their concepts, strongest first:\n\n"
        f"{described}\n\nWhich does it rank higher, 1 or 2? Its number:"
    )


def _list(concepts: Sequence[Named]) -> str:
    return "; ".join(f"{concept.name} ({concept.weight:.1f})" for concept in concepts)


def _cut(text: str) -> str:
    words = text.split()
    return " ".join(words[:SHOWN_WORDS]) + (" …" if len(words) > SHOWN_WORDS else "")
