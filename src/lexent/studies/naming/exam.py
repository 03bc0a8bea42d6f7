"""All questions about one lexicon's names, from texts that were held out when names were given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import numpy as np

from lexent import arguments
from lexent.encoders import Encoder
from lexent.errors import InputError
from lexent.evaluation import cache
from lexent.evaluation.baselines import pooled_states
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import Progress, reporting
from lexent.lexicon.activations import Activations, observe
from lexent.lexicon.concepts import Concepts
from lexent.lexicon.evidence import Spread, eligible, gather, is_held_out
from lexent.lexicon.lexicon import Lexicon
from lexent.studies.naming.grades import Judge, Likeness, Outcome, Uniqueness, grade, uniqueness
from lexent.studies.naming.questions import TASKS, Pair, Task
from lexent.studies.naming.tasks import (
    RETRIEVED_DEPTH,
    SHOWN_CONCEPTS,
    TEXTS_WITH_CONCEPT,
    Nearness,
    Weigher,
    about_concepts,
    exchanged,
    identifications,
    simulations,
)
from lexent.types import States


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked, and how much."""

    tasks: tuple[Task, ...] = TASKS
    concepts: int = 200
    """Concepts that intrusion and detection ask about."""
    questions: int = 100
    """Questions of identification, and of each setting of simulation."""
    examples: int = 20
    """Held-out texts of a concept, and as many without it."""
    spread: Spread = "quantiles"
    """Texts of a concept from its whole range of activation, or the top."""
    shown: int = SHOWN_CONCEPTS
    """Concepts of a passage that are shown."""
    distractors: Nearness = "random"
    """The nine other passages of identification: any, or those most alike."""
    top: int = RETRIEVED_DEPTH
    """Depth of the ranking in simulation: documents that count as retrieved."""
    labelled: bool = False
    """Only concepts that a language model named; their old names are scored beside them."""
    k: int | None = None
    """Concepts a state is coded with; as many as the lexicon was trained for where it is left out."""
    seed: int = 0
    """Another number draws other texts and examples."""

    def __post_init__(self) -> None:
        arguments.choice("spread", self.spread, get_args(Spread))
        arguments.choice("distractors", self.distractors, get_args(Nearness))
        unknown = [task for task in self.tasks if task not in TASKS]
        if unknown or not self.tasks:
            raise InputError(f'no task "{", ".join(unknown)}"; tasks: {", ".join(TASKS)}')
        if self.examples < TEXTS_WITH_CONCEPT:
            raise InputError(
                f"examples is {self.examples}; allowed: {TEXTS_WITH_CONCEPT} or more, since a question has "
                f"{TEXTS_WITH_CONCEPT}"
            )


@dataclass(frozen=True, slots=True)
class Exam:
    """The questions about a lexicon."""

    lexicon: Lexicon
    pairs: tuple[Pair, ...]
    k: int
    texts: int
    concepts: int
    """How many intrusion and detection ask about."""
    active: int
    """How many were active in enough texts to be asked about."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one lexicon."""

    lexicon: str
    level: str
    k: int
    texts: int
    concepts: int
    active: int
    outcomes: tuple[Outcome, ...]
    uniqueness: Uniqueness

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)


def prepare(
    texts: Sequence[str],
    plan: Plan,
    *,
    lexicon: Lexicon,
    encoder: Encoder,
    collection: Collection | None = None,
    seen: Activations | None = None,
) -> Exam:
    """Code the texts and make the questions; simulation is asked where there is a collection with judgements.

    seen: what `observed` gave for these texts, where it is known already.
    """
    seen = seen or observed(texts, encoder=encoder, lexicon=lexicon, k=plan.k)
    held = np.array([is_held_out(text, seed=plan.seed) for text in texts], dtype=bool)
    found = eligible(seen, held, least=TEXTS_WITH_CONCEPT)
    if plan.labelled:
        found = [concept for concept in found if lexicon.concept(concept).source]
    draw = np.random.default_rng(plan.seed)
    chosen = sorted(draw.permutation(found)[: plan.concepts].tolist())
    controls = exchanged([concept.label for concept in lexicon.concepts], seen.counts, seed=plan.seed)
    pairs: list[Pair] = []
    asks_concepts = not {"intrusion", "named-intrusion", "detection"}.isdisjoint(plan.tasks)
    if asks_concepts:
        if len(chosen) < 2:
            raise InputError(
                f'{len(chosen)} concepts of "{lexicon.name}" are active in {TEXTS_WITH_CONCEPT} texts of each half of '
                f"the {len(texts):,} texts; give more texts"
            )
        many = {"active": plan.examples, "silent": plan.examples, "seed": plan.seed}
        evidence = gather(
            seen, texts, concepts=chosen, encoder=encoder, level=lexicon.info.level, spread=plan.spread, **many
        )
        made = about_concepts(evidence, lexicon, controls, seed=plan.seed)
        pairs += [pair for task in TASKS for pair in made if pair.question.task == task and task in plan.tasks]
    weigher = Weigher.of(lexicon, seen)
    many = {"n": plan.questions, "shown": plan.shown, "seed": plan.seed}
    if "identification" in plan.tasks:
        near = plan.distractors
        pairs += identifications(seen, texts, held, controls, weigher=weigher, distractors=near, **many)
    if "simulation" in plan.tasks and collection is not None:
        pairs += simulations(collection, controls, weigher=weigher, encoder=encoder, top=plan.top, k=plan.k, **many)
    k = plan.k or lexicon.sae.config.k
    return Exam(lexicon, tuple(pairs), k, len(texts), len(chosen) if asks_concepts else 0, len(found))


def observed(
    texts: Sequence[str],
    *,
    encoder: Encoder,
    lexicon: Lexicon,
    k: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Activations:
    """What `observe` gives, from the cache where it is: other tasks, judges and seeds need no coding again."""
    coding = {"lexicon": lexicon.hash, "level": lexicon.info.level, "k": k or lexicon.sae.config.k}
    names = ("texts", "peaks", "totals", "places", "offsets")

    def make() -> cache.Arrays:
        states = None
        if lexicon.info.level == "pooled":  # dense search keeps the same vectors
            import torch

            vectors = pooled_states(encoder, texts, kind="document")
            states = States(torch.from_numpy(vectors), np.arange(len(texts) + 1))
        seen = observe(texts, encoder=encoder, lexicon=lexicon, k=k, states=states, progress=progress)
        return {name: getattr(seen, name) for name in names}

    key = cache.key_for(encoder, texts, what="activations", **coding)
    return Activations(**cache.arrays(key, frozenset(names), make), n_texts=len(texts))


@reporting
def report(
    exam: Exam, judges: Sequence[Judge], *, likeness: Sequence[Likeness] = (), progress: Progress | None = None
) -> Report:
    """Let every judge answer all questions. likeness: the judges that also say how near names are to each other."""
    outcomes = [outcome for judge in judges for outcome in grade(exam.pairs, judge)]
    lexicon = exam.lexicon
    distinct = uniqueness([concept.label for concept in lexicon.concepts], likeness)
    counts = exam.k, exam.texts, exam.concepts, exam.active
    return Report(lexicon.name, lexicon.info.level, *counts, tuple(outcomes), distinct)


def before_labelling(lexicon: Lexicon) -> Lexicon:
    """The same lexicon with the names that its concepts had before a language model named them."""
    old = [replace(concept, label=concept.plain or concept.label) for concept in lexicon.concepts]
    return lexicon.renamed(Concepts(old), replace(lexicon.info, name=f"{lexicon.name}, as it was"))
