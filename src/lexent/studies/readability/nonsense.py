"""Queries that no document answers: gibberish of three kinds, made from a seed, and queries about something else."""

from __future__ import annotations

import random
import string
from importlib import resources
from pathlib import Path

from lexent.errors import InputError, NotFoundError

PER_KIND = 20
"""Queries of each kind of gibberish."""
MAX_WORDS = 5
"""Words of the longest query of random letters or of made-up words; a salad has one more."""
_ONSETS = "b bl br c cl cr d dr f fl fr g gl gr h j k l m n p pl pr r s sk sl sn sp st str t tr v w z"
_VOWELS = "a e i o u ai ea oo ou"
_ENDS = "n r l m s t k nd rt sk mp x"


def gibberish(seed: int = 0) -> dict[str, list[str]]:
    """Queries by kind: random letters, made-up words that can be pronounced, and salads of everyday words."""
    draw = random.Random(seed)
    words = everyday_words()
    lengths = [1 + number % MAX_WORDS for number in range(PER_KIND)]
    return {
        "letters": [" ".join(_letters(draw) for _ in range(length)) for length in lengths],
        "made-up words": [" ".join(_made_up(draw, words) for _ in range(length)) for length in lengths],
        "word salad": [" ".join(draw.sample(sorted(words), 1 + length)) for length in lengths],
    }


def off_topic(file: str | Path | None = None) -> list[str]:
    """The queries of a file, one a line; those that come with the package where none is given."""
    if file is None:
        return _lines(_packaged("off_topic.txt"))
    try:
        found = _lines(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotFoundError(f'cannot read "{file}": {error}; give a text file with one query a line') from error
    except UnicodeDecodeError as error:
        raise InputError(f'"{file}" is not UTF-8: {error}; give a text file with one query a line') from error
    if not found:
        raise InputError(f'"{file}" holds no query; write one a line')
    return found


def everyday_words() -> frozenset[str]:
    """Words for salads."""
    return frozenset(_packaged("everyday_words.txt").split())


def _letters(draw: random.Random) -> str:
    return "".join(draw.choice(string.ascii_lowercase) for _ in range(draw.randint(3, 10)))


def _made_up(draw: random.Random, real: frozenset[str]) -> str:
    onsets, vowels, ends = _ONSETS.split(), _VOWELS.split(), ["", "", *_ENDS.split()]
    while True:
        parts = [draw.choice(onsets) + draw.choice(vowels) for _ in range(draw.randint(2, 3))]
        word = "".join(parts) + draw.choice(ends)
        if word not in real:
            return word


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _packaged(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
