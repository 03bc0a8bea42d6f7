"""What a command says of the files that it reads: what was found, what no reader is for, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lexent.cli.console import say, stderr

if TYPE_CHECKING:
    from lexent.corpus import Corpus, Problem


def say_found(corpus: Corpus) -> None:
    """What a source holds, before it is read."""
    say(f"found    {corpus.description}")
    if corpus.unread:
        say(f"not read {corpus.unread}")


def say_problems(problems: Sequence[Problem]) -> None:
    """The rows and files that were left out: the first ones in full, the others counted. Also where hints are off."""
    from lexent.corpus.problems import SHOWN_PROBLEMS, by_reason, summary

    if not problems:
        return
    for problem in problems[:SHOWN_PROBLEMS]:
        stderr().print(f"skipped  {' '.join(problem.message.split())}")
    more = problems[SHOWN_PROBLEMS:]
    if more:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in by_reason(more).items())
        stderr().print(f"skipped  {len(more):,} more: {reasons}")
    stderr().print(f"skipped  in all: {summary(problems)}")


def facts_of(corpus: Corpus) -> dict[str, Any]:
    """The same for programs."""
    from lexent.corpus.problems import by_reason

    return {
        "unread": dict(corpus.unread.counts),
        "skipped": by_reason(corpus.problems),
        "problems": [{"where": one.where, "reason": one.reason, "message": one.message} for one in corpus.problems],
    }
