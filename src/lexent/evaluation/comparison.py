"""An adapter beside the base retriever and other methods: identical candidates, paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexent.errors import NotFoundError
from lexent.evaluation import adapted
from lexent.evaluation import measures as scoring
from lexent.evaluation.adapting import learned, train_collection
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.progress import Progress
from lexent.evaluation.systems import Bench, EncoderLike

if TYPE_CHECKING:
    from lexent.adapters import Adapter, TrainSettings

DIME = ("dime-20", "dime-40", "dime-60", "dime-80")
LEARNED = ("search-adaptor", "hypencoder-2", "hypencoder-4", "hypencoder-6", "hypencoder-8")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Values of every system on one collection."""

    collection: str
    split: str
    documents: int
    queries: int
    candidates: int | None
    """The base's best so many documents were ranked by all systems; all documents where it is none."""
    kept_base: bool
    values: dict[str, dict[str, float]]
    p_values: dict[str, dict[str, float]]
    """Against the base: paired t-test over queries."""
    parts: dict[str, dict[str, Any]]
    """Queries by whether a training query had one of their documents: base and adapted there."""
    per_query: dict[str, dict[str, dict[str, float]]]
    example: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("per_query", "example")
        }


def compare(
    collection: str | Path | Collection,
    adapter: str | Path | Adapter,
    *,
    split: str = "test",
    candidates: int | None = None,
    beside: Sequence[str] = (),
    train_split: str = "train",
    measures: str | Sequence[str] = ("nDCG@10", "R@10", "RR@10"),
    encoder: EncoderLike = None,
    settings: TrainSettings | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Base, adapter and other methods on a split. Those that learn are trained on `train_split`, never on a test split.

    settings: of their training; the adapter's own where they are not given.
    """
    from lexent.adapters import TrainSettings
    from lexent.adapters import load as opened

    wanted = scoring.parse(measures)
    names = list(dict.fromkeys(name for each in beside for name in ((*DIME, *LEARNED) if each == "all" else (each,))))
    for name in names:
        if name not in (*DIME, *LEARNED, *(f"hypencoder-{n}" for n in range(2, 9))):
            raise NotFoundError(f'no method "{name}"; methods: {", ".join((*DIME, *LEARNED))}, all')
    chosen = opened(adapter)
    bench = Bench(encoder=chosen.info.encoder_id if encoder is None else encoder)
    loaded = load(collection, split=split)
    systems = [adapted.base(bench.encoder, candidates=candidates)]
    systems.append(adapted.imrnn(chosen, bench.encoder, candidates=candidates))
    shares = [int(name.removeprefix("dime-")) / 100 for name in names if name in DIME]
    systems += [adapted.dime(bench.encoder, share, candidates=candidates) for share in shares]
    learning = [name for name in names if name not in DIME]
    if learning:
        known = chosen.info.training.get("settings")
        given = settings or (TrainSettings(**known) if known else TrainSettings())
        train = train_collection(collection, train_split)
        systems += learned(train, bench.encoder, learning, settings=given, candidates=candidates, progress=progress)
    depth = max((int(measure.params.get("cutoff") or 1000) for measure in wanted), default=10)
    scores = {
        system.name: scoring.score(loaded.qrels, system.run(loaded, depth=depth, progress=progress), wanted)
        for system in systems
    }
    reference = scores["base"].per_query
    return Comparison(
        collection=loaded.name,
        split=loaded.split,
        documents=len(loaded.documents),
        queries=len(loaded.queries),
        candidates=candidates,
        kept_base=chosen.info.kept_base,
        values={name: score.means for name, score in scores.items()},
        p_values={
            name: {measure: scoring.p_value(values, reference[measure]) for measure, values in score.per_query.items()}
            for name, score in scores.items()
            if name != "base"
        },
        parts=_parts(collection, loaded, train_split, scores, str(wanted[0])),
        per_query={name: score.per_query for name, score in scores.items()},
        example=tuple(list(loaded.queries.values())[:1]),
    )


def _parts(
    source: str | Path | Collection,
    tested: Collection,
    train_split: str,
    scores: dict[str, scoring.Scores],
    measure: str,
) -> dict[str, dict[str, Any]]:
    """Values where a training query had one of the same documents, and where none had: memory and the rest."""
    if isinstance(source, Collection) or tested.split == train_split:
        return {}
    try:
        train = load(source, split=train_split)
    except NotFoundError:
        return {}
    known = {id for judged in train.qrels.values() for id, grade in judged.items() if grade > 0}
    found: dict[str, dict[str, Any]] = {}
    for title, wanted in (("of a document that training asked for", True), ("of new documents", False)):
        kept = [
            query
            for query, judged in tested.qrels.items()
            if any(id in known for id, grade in judged.items() if grade > 0) == wanted
        ]
        if kept:
            values = {
                name: sum(score.per_query[measure].get(query, 0.0) for query in kept) / len(kept)
                for name, score in scores.items()
            }
            found[title] = {"queries": len(kept), "measure": measure, "values": values}
    return found
