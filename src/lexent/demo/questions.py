"""The questions that the demo asks, and how one of them is steered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lexent.errors import NotFoundError

if TYPE_CHECKING:
    from lexent.engine import Index
    from lexent.search import Results


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and names of concepts to turn up in a second search: the first that moves the ranking is taken."""

    text: str
    boost: tuple[str, ...] = ()
    factor: float = 5.0


QUESTIONS = (
    Question("find the closest match for a misspelled word"),
    Question("middle value of a list of numbers"),
    Question("read a compressed file", boost=("zip", "tar", "archive", "binary")),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits of one question."""

    results: Results
    steer: dict[str | int, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return {**self.results.to_dict(), "steer": self.steer}


def ask(index: Index, question: Question, *, k: int) -> list[Answer]:
    """The answer, and a second, steered one where the question says so."""
    plain = Answer(index.search(question.text, k=k))
    return [plain, _steered(index, question, plain.results, k)] if question.boost else [plain]


def _steered(index: Index, question: Question, plain: Results, k: int) -> Answer:
    """The boost that brings another document to the top; failing that, one that changes anything."""
    # A lexicon of another field may know none of the names: then a concept of the question itself is turned up.
    names = [*question.boost, *(f"#{concept.id}" for concept in plain.concepts[:3])]
    answers = []
    for name in names:
        try:
            steer: dict[str | int, float] = {name: question.factor}
            answers.append(Answer(index.search(question.text, k=k, steer=steer), steer))
        except NotFoundError:
            continue
        if _ids(answers[-1].results)[:1] != _ids(plain)[:1]:
            return answers[-1]
    moved = [answer for answer in answers if _ids(answer.results) != _ids(plain)]
    return next(iter([*moved, *answers]), Answer(plain))


def _ids(results: Results) -> list[str]:
    return [hit.id for hit in results]
