"""Train adapters, and the learned methods that they are held against, on the train split of a collection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexent.adapters import Adapter, AdapterConfig, AdapterInfo, TrainSettings
from lexent.adapters.examples import Examples
from lexent.adapters.modulation import Rows
from lexent.encoders import Encoder
from lexent.errors import InputError, NotFoundError
from lexent.evaluation.baselines import pooled_sides
from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import WordIndex, words
from lexent.evaluation.progress import Progress, report, reporting
from lexent.evaluation.runs import self_matches
from lexent.evaluation.systems import Adapted, Bench, EncoderLike
from lexent.evaluation.training_split import training_split, training_split_beside

if TYPE_CHECKING:
    from lexent.adapters.schedule import Learner, Schedule
    from lexent.adapters.schedule import Progress as ScheduleProgress

MIN_TRAIN_QUERIES = 20
"""Train queries below which nothing is learned."""
_WITHOUT = (
    "; an adapter learns from judged queries beside the test queries, and is of use only for the collection that it "
    "was trained on; without them the base retriever is what there is"
)
RATES = (1e-4, 1e-3)
"""Learning rates that the other methods may choose from, each by its own held-out queries."""


@dataclass(frozen=True, slots=True)
class Training:
    """An adapter, and what training measured: of train queries that were held out, and of no others."""

    adapter: Adapter
    collection: str
    split: str
    queries: int
    held_out: int
    epochs: int
    """Passes over all queries; 0 where the base was kept."""
    curve: tuple[float, ...]
    """After each pass, from none on: the mean of nDCG, RR and R at 10."""
    nested: tuple[int, ...]
    """Passes that were chosen for each tested fold, without its queries."""
    base: dict[str, float]
    adapted: dict[str, float]
    """Of tested queries, after the passes that others chose. Both rank the same candidates, the base retriever's."""
    p_value: float
    new_documents: dict[str, float]
    """Of the queries whose documents were no training query's answer: how many, base and adapted nDCG@10."""

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "adapter"}
        return {**found, "kept_base": self.adapter.info.kept_base, "parameters": self.adapter.parameters}


@reporting
def train_adapter(
    collection: str | Path | Collection,
    *,
    split: str | None = None,
    encoder: EncoderLike = None,
    settings: TrainSettings | None = None,
    progress: Progress | None = None,
    name: str = "",
    **form: Any,
) -> Training:
    """Train an adapter on the queries of a train split. A test split is refused, and so are queries of one.

    form: fields of AdapterConfig, such as mode, width and feedback.
    """
    from lexent.adapters.network import train

    chosen = settings or TrainSettings()
    model = Bench(encoder=encoder).encoder
    config = AdapterConfig(model.dim, **{"width": model.dim, **form})
    train_split = train_collection(collection, split)
    examples = examples_of(train_split, model, chosen)
    info = AdapterInfo(name or f"{train_split.name}-{config.mode}", model.id, model.fingerprint)
    found = train(examples, config, chosen, info=info, progress=_stages("training"))
    same = ("held_out", "epochs", "nested", "base", "adapted", "p_value", "new_documents")
    training = Training(
        adapter=found.adapter,
        collection=train_split.name,
        split=train_split.split,
        queries=len(examples),
        curve=tuple(round(value, 5) for value in found.schedule.curve),
        **{name: getattr(found.schedule, name) for name in same},
    )
    facts = {**training.to_json(), "settings": asdict(chosen)}
    found.adapter.info = replace(found.adapter.info, training=facts)
    return training


def train_collection(
    source: str | Path | Collection, split: str | None = None, *, measured: Collection | None = None
) -> Collection:
    """The split that an adapter learns from; a test split is refused.

    measured: the collection that the adapter is measured on, whose training split is then taken.
    """
    try:
        found = training_split(source, split) if measured is None else training_split_beside(source, measured, split)
    except NotFoundError as error:
        raise NotFoundError(f"{error}{_WITHOUT}") from error
    if found is None:
        raise NotFoundError(f'{source} has no split "{split or "train"}" beside the measured one{_WITHOUT}')
    if len(found.queries) < MIN_TRAIN_QUERIES:
        raise InputError(
            f"{found.name} ({found.split}) has {len(found.queries)} queries; "
            f"an adapter needs {MIN_TRAIN_QUERIES} or more"
        )
    return found


def examples_of(collection: Collection, encoder: Encoder, settings: TrainSettings) -> Examples:
    """The vectors of a collection, its judgements by position, the base's candidates and hard negatives."""
    documents, queries = pooled_sides(encoder, collection)
    place, grades = collection.positions, collection.relevant
    kept = [row for row, judged in enumerate(grades) if judged]
    if len(kept) < MIN_TRAIN_QUERIES:
        raise InputError(
            f"{collection.name} ({collection.split}) has {len(kept)} queries with a relevant document; needed: "
            f"{MIN_TRAIN_QUERIES} or more"
        )
    own = self_matches(collection)
    names, ranked = list(collection.queries), None
    if settings.negatives == "bm25":
        most = max(len(collection.qrels[query]) for query in collection.queries)
        texts = collection.query_texts
        ranked = WordIndex.of(collection.texts).top(
            words([texts[row] for row in kept]), settings.n_negatives + most + 1
        )[0]
    return Examples.of(
        queries[kept],
        documents,
        [grades[row] for row in kept],
        candidates=settings.candidates,
        n_negatives=settings.n_negatives,
        ranked=ranked,
        own={at: place[own[names[row]]] for at, row in enumerate(kept) if names[row] in own},
    )


def learned(
    train: Collection, encoder: Encoder, names: Sequence[str], *, settings: TrainSettings, candidates: int | None = None
) -> list[Adapted]:
    """Search-Adaptor and Hypencoder scorers, trained on the same queries and negatives, by the same schedule."""
    from lexent.adapters.baselines import Hypencoder, HypencoderSearch, ResidualSearch, SearchAdaptor

    examples = examples_of(train, encoder, settings)
    found = []
    for name in names:
        if name == "search-adaptor":
            kind: Callable[[], Learner] = partial(SearchAdaptor, encoder.dim)
            search: Callable[..., Any] = ResidualSearch.of
        elif name.startswith("hypencoder-") and name.removeprefix("hypencoder-").isdecimal():
            kind = partial(Hypencoder, encoder.dim, layers=int(name.removeprefix("hypencoder-")))
            search = HypencoderSearch.of
        else:
            raise NotFoundError(f'no method "{name}"; methods that learn: search-adaptor, hypencoder-2 to hypencoder-8')
        rank = partial(search, chosen(name, kind, examples, settings).learner)

        def scorer(documents: Rows, rank: Any = rank) -> Callable[[Rows], Rows]:
            scores: Callable[[Rows], Rows] = rank(documents).scores
            return scores

        found.append(Adapted(name, encoder, scorer, candidates))
    return found


def chosen(name: str, make: Callable[[], Learner], examples: Examples, settings: TrainSettings) -> Schedule[Any]:
    """Trained at the learning rate that is best on held-out queries, after passes that harm no new document."""
    from lexent.adapters.schedule import follow

    return follow(make, examples, settings, rates=RATES, progress=_stages(name))


def _stages(what: str) -> ScheduleProgress:
    return lambda stage, done, total: report(f"{what}, {stage}", done, total)
