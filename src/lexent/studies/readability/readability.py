"""Can a reader see from a few lines why a document is a hit? Explanations before and after, on a collection.

Before: a line a concept, with the lexicon's own names. After: a line for concepts that say the same, with names from
the words of the documents. Both are of the same hits of the same index, which is built for this and removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from lexent import arguments
from lexent.engine import Index
from lexent.errors import InputError
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.progress import Progress, counter, report, reporting
from lexent.evaluation.systems import Bench, EncoderLike, Latent, LexiconLike
from lexent.lexicon.evidence import Spread
from lexent.models import load_encoder
from lexent.nan_safe import mean, plain
from lexent.recipes import Recipe
from lexent.search.coded_text import CodedText
from lexent.search.results import Hit, Results
from lexent.studies.naming.grades import interval
from lexent.studies.naming.judges import EmbeddingJudge
from lexent.studies.readability import nonsense, shown_lines
from lexent.studies.readability.name_detection import Detections, detections
from lexent.studies.readability.separation import REAL, Separation, separation
from lexent.studies.readability.shown_lines import ShownHit, parts
from lexent.studies.readability.support import Closeness, misnamed, supported_share

OFF_TOPIC = "off topic"
"""The kind of the queries that come from a list."""
MAX_LINES = 12
"""Lines of the curve of the share that the first ones hold."""
NO_JUDGE = (
    "no judge: whether names have words that are close to the document's, and whether they describe held-out texts, is "
    "not measured; name another encoder: --judge NAME_OR_DIR"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and on how much."""

    documents: int = 5_000
    """Documents that are indexed, where the collection has more; those judged relevant first."""
    queries: int = 100
    """Queries that are drawn."""
    hits: int = 3
    """Hits of each query that are explained."""
    concepts: int = 100
    """Concepts whose names are tested."""
    show: int = 0
    """Queries whose first hit is printed, before and after."""
    seed: int = 0
    """Of what is drawn, and of the gibberish."""

    def __post_init__(self) -> None:
        for name, least in (("documents", 1), ("queries", 1), ("hits", 1), ("concepts", 2), ("show", 0), ("seed", 0)):
            arguments.whole(name, getattr(self, name), least=least)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over queries with its 95 % interval; the hits of a query count as one."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Support:
    """Of what the first lines hold, the share in lines whose name the document supports."""

    share: Mean
    wrong_names: float
    """The same where lines have names from other queries: what chance supports."""


@dataclass(frozen=True, slots=True)
class Side:
    """What explanations are worth, one way of making them."""

    shown_share: Mean
    """The share of a hit's score in the first lines."""
    supported: Support | None
    """By words of the name that raised the line in this hit."""
    supported_by_judge: Support | None
    """The same, with words of the name that are close to such words."""
    repeated_heads: Mean
    """The share of the first lines whose first word another of them has."""
    form: Mean
    """Of what the first lines hold, the share in lines of form."""
    lines: float
    """Mean number of lines of a hit, shown or not."""
    by_lines: tuple[float, ...]
    """The mean share of a hit's score in its first line, its first two, and so on."""
    separation: Separation
    """Whether a number of the first hit tells nonsense from real queries: before the score, after the strength."""


@dataclass(frozen=True, slots=True)
class ReadabilityReport:
    """Explanations of one collection's hits."""

    collection: str
    split: str
    recipe: str
    lexicon: str
    encoder: str
    judge: str | None
    close: float | None
    """The judge's cosine from which words are close."""
    documents: int
    queries: int
    """Real ones that found something."""
    hits: int
    """How many were explained."""
    before: Side
    after: Side
    detections: dict[Spread, Detections]
    """Whether names describe held-out texts: from the whole range of a concept's activation, and from its top."""
    examples: tuple[tuple[ShownHit, ShownHit], ...]
    """The first hits of the first queries that were drawn, before and after, with their first lines."""
    notes: tuple[str, ...]
    """What was left out, and why."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps; None where a measure is not defined."""
        found: dict[str, Any] = plain(asdict(self))
        return found


@dataclass(frozen=True, slots=True)
class Explained:
    """The hits of each query, with their lines before and after, and what tells them from hits of nonsense."""

    before: list[list[ShownHit]]
    after: list[list[ShownHit]]
    scores: Mapping[str, list[float]]
    """By kind of query: of each query's first hit; 0 where it found nothing."""
    strengths: Mapping[str, list[float]]


@reporting
def readability(
    collection: str | Path | Collection,
    *,
    plan: Plan | None = None,
    recipe: str | Recipe = "latent-terms",
    lexicon: LexiconLike = None,
    encoder: EncoderLike = None,
    judge: EncoderLike = None,
    split: str | None = None,
    off_topic: str | Path | None = None,
    progress: Progress | None = None,
) -> ReadabilityReport:
    """Explanations of the first hits of a collection's queries, before and after.

    judge: another encoder, which says which words are close and which texts a name describes; without one neither is
    measured. off_topic: a file of queries, one a line, about nothing that the collection holds.
    """
    plan = plan or Plan()
    kinds = {**nonsense.gibberish(plan.seed), OFF_TOPIC: nonsense.off_topic(off_topic)}
    system = Bench(encoder=encoder, lexicon=lexicon).concepts_alone(recipe)
    judging = None if judge is None else _judge(judge, system)  # refused before the long work
    whole = load(collection, split=split).sampled(documents=plan.documents, seed=plan.seed, queries=plan.queries)
    order = np.random.default_rng(plan.seed).permutation(len(whole.queries))[: plan.queries]
    found = _explained(whole, [whole.query_texts[place] for place in order.tolist()], system, kinds, plan)
    if not found.before:
        raise InputError(f"none of the {len(order):,} queries found a document of {whole.name}; give other queries")
    notes = [] if judging is not None else [NO_JUDGE]
    closeness: Closeness | None = None
    tested: dict[Spread, Detections] = {}
    has_words = system.recipe.level == "tokens"
    if not has_words:
        notes.append(f"support is not measured: {system.name} codes whole texts, so that no words raise its concepts")
    if judging is not None:
        closeness = _closeness(found, judging, whole, plan) if has_words else None
        try:
            tested = detections(
                whole.documents,
                system.pipeline,
                judging,
                concepts=plan.concepts,
                seed=plan.seed,
            )
        except InputError as error:
            notes.append(f"names are not tested: {error}")
    return ReadabilityReport(
        collection=whole.name,
        split=whole.split,
        recipe=system.recipe.name,
        lexicon=system.lexicon.name,
        encoder=system.encoder.id,
        judge=None if judging is None else judging.name,
        close=None if closeness is None else closeness.threshold,
        documents=len(whole.documents),
        queries=len(found.before),
        hits=sum(map(len, found.before)),
        before=_side(found.before, found.scores, closeness, has_words=has_words, seed=plan.seed),
        after=_side(found.after, found.strengths, closeness, has_words=has_words, seed=plan.seed),
        detections=tested,
        examples=tuple(
            (_cut(before[0]), _cut(after[0]))
            for before, after in list(zip(found.before, found.after, strict=True))[: plan.show]
        ),
        notes=tuple(notes),
    )


def _judge(judge: EncoderLike, system: Latent) -> EmbeddingJudge:
    loaded = load_encoder(judge)
    if loaded.fingerprint in (system.encoder.fingerprint, system.lexicon.encoder_fingerprint):
        raise InputError(
            f'the judge "{loaded.id}" is the encoder that the concepts come from, which would judge itself; name '
            "another one: --judge NAME_OR_DIR"
        )
    return EmbeddingJudge(loaded, name=Path(loaded.id).name)


def _explained(
    whole: Collection, queries: Sequence[str], system: Latent, kinds: Mapping[str, Sequence[str]], plan: Plan
) -> Explained:
    """The hits of an index of the collection, which is removed at the end."""
    before: list[list[ShownHit]] = []
    after: list[list[ShownHit]] = []
    with TemporaryDirectory() as folder:
        index = Index.build(
            whole.documents,
            out=Path(folder) / "readability.lexent",
            encoder=system.encoder,
            lexicon=system.lexicon,
            recipe=system.recipe,
            progress=counter(system.name, kind="document", total=len(whole.documents)),
        )
        with index:
            found = index.search_many(queries, k=plan.hits)
            for done, results in enumerate(found, start=1):
                if results.hits:
                    pairs = list(_lines(index, results))
                    before.append([one for one, _ in pairs])
                    after.append([other for _, other in pairs])
                report("hits explained", done, len(found))
            firsts = {REAL: found, **{kind: index.search_many(texts, k=1) for kind, texts in kinds.items()}}
            scores = {kind: _of_first(results, lambda hit: hit.score) for kind, results in firsts.items()}
            strengths = {kind: _of_first(results, lambda hit: hit.strength) for kind, results in firsts.items()}
    return Explained(before, after, scores, strengths)


def _lines(index: Index, results: Results) -> list[tuple[ShownHit, ShownHit]]:
    searcher = index.searcher
    texts: list[CodedText] | list[None] = [None] * len(results.hits)
    if searcher.recipe.level == "tokens":
        texts = searcher.coded_documents([hit.position for hit in results.hits])
    return [
        (
            shown_lines.before(hit, searcher.models.unnamed_lexicon, text),
            shown_lines.after(hit, index.lexicon, text),
        )
        for hit, text in zip(results.hits, texts, strict=True)
    ]


def _of_first(found: Sequence[Results], number: Callable[[Hit], float]) -> list[float]:
    return [number(results.hits[0]) if results.hits else 0.0 for results in found]


def _closeness(found: Explained, judge: EmbeddingJudge, whole: Collection, plan: Plan) -> Closeness:
    lines = [line for side in (found.before, found.after) for hits in side for hit in hits for line in hit.shown]
    words = {word for line in lines for word in (*line.words, *(part for one in line.raised_by for part in parts(one)))}
    judge.prepare(sorted(words))  # all at once: one after the other takes longer
    return Closeness.of(judge, whole.texts, seed=plan.seed)


def _side(
    queries: Sequence[Sequence[ShownHit]],
    numbers: Mapping[str, Sequence[float]],
    closeness: Closeness | None,
    *,
    has_words: bool,
    seed: int,
) -> Side:
    def over(measure: Callable[[ShownHit], float]) -> Mean:
        return _mean(queries, measure)

    def support(closeness: Closeness | None) -> Support:
        measure = partial(supported_share, closeness=closeness)
        return Support(over(measure), _mean(wrong, measure).value)

    wrong = misnamed(queries, seed=seed)
    return Side(
        shown_share=over(lambda hit: hit.shown_share),
        supported=support(None) if has_words else None,
        supported_by_judge=None if closeness is None else support(closeness),
        repeated_heads=over(lambda hit: hit.repeated_heads),
        form=over(lambda hit: hit.form_share),
        lines=mean(len(hit.lines) for hits in queries for hit in hits),
        by_lines=tuple(over(partial(ShownHit.share_of_first, n=n)).value for n in range(1, MAX_LINES + 1)),
        separation=separation(numbers),
    )


def _mean(queries: Sequence[Sequence[ShownHit]], measure: Callable[[ShownHit], float]) -> Mean:
    values = np.array([mean(map(measure, hits)) for hits in queries])
    defined = values[~np.isnan(values)]
    return Mean(mean(defined), *interval(defined, of_shares=False))


def _cut(hit: ShownHit) -> ShownHit:
    return replace(hit, lines=hit.shown)
