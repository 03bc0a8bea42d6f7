"""Do names tell which held-out texts have their concepts? The lexicon's names beside those from other documents.

The names come from one part of the documents, and the texts from the other. A judge ranks texts with and without a
concept by how near they are to its name. The control has the name of another concept that is about as frequent. What
the judge tells by texts of the first part with and without the concept, in the place of a name, says how much there is
to tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from lexent.engine import Index
from lexent.errors import InputError
from lexent.evaluation.progress import counter
from lexent.lexicon import Lexicon
from lexent.lexicon.evidence import Side as ExampleSide
from lexent.lexicon.evidence import Spread, gather, is_held_out
from lexent.nan_safe import mean
from lexent.pipeline import Pipeline
from lexent.studies.naming import exam
from lexent.studies.naming.grades import Judge, Likeness, auc, credit, interval, paired
from lexent.studies.naming.questions import Pair, Question
from lexent.studies.readability.coded_activations import CodedTokens, activations
from lexent.types import Document

CONCEPTS_BY_EXAMPLES = 50
"""Concepts that the judge is also shown examples of: it reads forty for each."""


@dataclass(frozen=True, slots=True)
class Detection:
    """How well a judge tells texts with a concept from texts without it, by its name. AUCs, means over concepts."""

    auc: float
    """Over concepts of topics."""
    low: float
    """Of its 95 % interval."""
    high: float
    wrong_names: float
    """The same with names of other concepts."""
    concepts: int
    with_form: float
    """Over these and the concepts of form."""
    form_concepts: int
    """How many those are."""


@dataclass(frozen=True, slots=True)
class Detections:
    """Of the lexicon's names and of the documents' names, for the same concepts and texts."""

    before: Detection
    after: Detection
    p: float | None
    """Of the difference, by a paired t-test over concepts of topics."""
    by_examples: float
    """The mean AUC where texts with and without the concept stand in the place of its name; over some of the topics."""


class NameJudge(Judge, Likeness, Protocol):
    """Answers questions, and says how alike texts are."""

    def prepare(self, texts: Sequence[str]) -> None:
        """Told texts before they are compared."""


def detections(
    documents: Sequence[Document], pipeline: Pipeline, judge: NameJudge, *, concepts: int, seed: int
) -> dict[Spread, Detections]:
    """Test the names of some concepts, by texts from the whole range of their activation and from its top.

    An InputError where there are too few texts for that.
    """
    texts = [document.content for document in documents]
    naming = [document for document in documents if not is_held_out(document.content, seed=seed)]
    if not naming:
        raise InputError(f"all of the {len(texts):,} documents are held out; give more documents")
    seen = activations(pipeline, texts)
    named = names_of(naming, pipeline)
    encoder = CodedTokens(pipeline.encoder, specials=pipeline.recipe.specials)
    found: dict[Spread, Detections] = {}
    for spread in get_args(Spread):
        plan = exam.Plan(tasks=("detection",), concepts=concepts, spread=spread, seed=seed)
        before, after = (
            exam.prepare(texts, plan, lexicon=lexicon, encoder=encoder, seen=seen).pairs
            for lexicon in (pipeline.lexicon, named)
        )
        tested = [int(pair.question.subject) for pair in after]
        evidence = gather(
            seen,
            texts,
            concepts=tested,
            encoder=encoder,
            level=pipeline.recipe.level,
            active=plan.examples,
            silent=plan.examples,
            spread=spread,
            seed=seed,
        )
        form = np.array([bool(named.concept(concept).form) for concept in tested], np.bool_)
        found[spread] = graded(before, after, [one.naming for one in evidence], judge, form=form)
    return found


def graded(
    before: Sequence[Pair],
    after: Sequence[Pair],
    examples: Sequence[ExampleSide],
    judge: NameJudge,
    *,
    form: NDArray[np.bool_],
) -> Detections:
    """Questions about the same concepts under both names, answered; and by examples in the place of names.

    form: which concepts are of form.
    """
    asked = [question for pair in (*before, *after) for question in (pair.question, pair.control)]
    answers = judge.judge(asked)
    credits = np.array([credit(question, answer) for question, answer in zip(asked, answers, strict=True)])
    old, new = credits.reshape(2, len(before), 2)
    p = paired(new[~form, 0], old[~form, 0])
    topics = [place for place, is_form in enumerate(form.tolist()) if not is_form][:CONCEPTS_BY_EXAMPLES]
    judge.prepare([one.text for place in topics for one in (*examples[place].active, *examples[place].silent)])
    by_examples = [_by_examples(after[place].question, examples[place], judge) for place in topics]
    return Detections(_detection(old, form), _detection(new, form), p, mean(by_examples))


def _by_examples(question: Question, examples: ExampleSide, judge: Likeness) -> float:
    """The AUC of being more alike to texts with the concept than to texts without it."""
    options = [option.text for option in question.options]
    near = judge.alike([one.text for one in examples.active], options).mean(axis=0)
    far = judge.alike([one.text for one in examples.silent], options).mean(axis=0)
    return auc(near - far, question.right)


def _detection(credits: NDArray[np.float64], form: NDArray[np.bool_]) -> Detection:
    """credits: float64[n_concepts, 2], the AUC with the concept's name and with a wrong one."""
    topics, wrong = credits[~form].T
    low, high = interval(topics, of_shares=False)
    with_form = mean(credits[:, 0])
    return Detection(mean(topics), low, high, mean(wrong), len(topics), with_form, int(form.sum()))


def names_of(documents: Sequence[Document], pipeline: Pipeline) -> Lexicon:
    """The lexicon with the names that an index of some documents gives to its concepts."""
    with TemporaryDirectory() as folder:
        index = Index.build(
            documents,
            out=Path(folder) / "names.lexent",
            encoder=pipeline.encoder,
            lexicon=pipeline.lexicon,
            recipe=pipeline.recipe,
            progress=counter("names from half of the documents", total=len(documents)),
        )
        with index:
            return index.lexicon
