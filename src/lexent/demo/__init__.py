"""A first search over text that every machine already has: the docstrings of Python's own standard library."""

from lexent.demo.docstrings import collect
from lexent.demo.library import Library, open_library
from lexent.demo.questions import QUESTIONS, Answer, Question, ask

__all__ = ["QUESTIONS", "Answer", "Library", "Question", "ask", "collect", "open_library"]
