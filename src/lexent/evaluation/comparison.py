"""An adapter beside the base retriever and other methods: identical candidates, paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lexent.adapters import Adapter, TrainSettings
from lexent.adapters import load as opened
from lexent.errors import NotFoundError
from lexent.evaluation import measures as scoring
from lexent.evaluation.adapting import learned, train_collection
from lexent.evaluation.collections import Collection, load
from lexent.evaluation.overlap import Part, parts_of, train_groups
from lexent.evaluation.progress import Progress, reporting
from lexent.evaluation.systems import Bench, EncoderLike, base, dime, imrnn
from lexent.nan_safe import plain

DIME = ("prf-dime-20", "prf-dime-40", "prf-dime-60", "prf-dime-80")
"""DIME by pseudo-relevance feedback, named as in the papers by the share of the dimensions that is removed, in %."""
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
    parts: dict[str, Part]
    """By what the train split has seen of a query: new ones first, whose figures are the headline, all of them last.
    Nothing where no train split is known."""
    per_query: dict[str, scoring.PerQuery]
    example: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        found: dict[str, Any] = plain(asdict(replace(self, per_query={}, example=())))
        return {name: value for name, value in found.items() if name not in ("per_query", "example")}


@reporting
def compare(
    collection: str | Path | Collection,
    adapter: str | Path | Adapter,
    *,
    split: str | None = None,
    candidates: int | None = None,
    beside: Sequence[str] = (),
    train_split: str | None = None,
    measures: str | Sequence[str] = ("nDCG@10", "R@10", "RR@10"),
    encoder: EncoderLike = None,
    settings: TrainSettings | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Base, adapter and other methods on a split. Those that learn are trained on `train_split`, never on a test split.

    train_split: the one that the adapter was trained on where it is not given, and else train.
    settings: of their training; the adapter's own where they are not given.
    """
    wanted = scoring.parse(measures)
    names = list(dict.fromkeys(name for each in beside for name in ((*DIME, *LEARNED) if each == "all" else (each,))))
    for name in names:
        if name not in (*DIME, *LEARNED, *(f"hypencoder-{n}" for n in range(2, 9))):
            raise NotFoundError(
                f'no method "{name}"; methods: {", ".join((*DIME, *LEARNED))}, all; prf-dime-20 removes 20 % of the '
                "dimensions"
            )
    chosen = opened(adapter)
    bench = Bench(encoder=chosen.info.encoder_id if encoder is None else encoder)
    loaded = load(collection, split=split)
    taught = train_split or str(chosen.info.training.get("split", "train"))
    shares = [int(name.removeprefix("prf-dime-")) / 100 for name in names if name in DIME]
    systems = [base(bench.encoder, candidates=candidates), imrnn(chosen, bench.encoder, candidates=candidates)]
    systems += [dime(bench.encoder, removed, candidates=candidates) for removed in shares]
    learning = [name for name in names if name not in DIME]
    if learning:
        known = chosen.info.training.get("settings")
        given = settings or (TrainSettings(**known) if known else TrainSettings())
        train = train_collection(collection, taught, measured=loaded)
        systems += learned(train, bench.encoder, learning, settings=given, candidates=candidates)
    runs = {each.name: each.run(loaded, depth=scoring.depth(wanted)) for each in systems}
    scores = {name: scoring.score(loaded.qrels, run, wanted) for name, run in runs.items()}
    return Comparison(
        collection=loaded.name,
        split=loaded.split,
        documents=len(loaded.documents),
        queries=len(loaded.queries),
        candidates=candidates,
        kept_base=chosen.info.kept_base,
        values={name: score.means for name, score in scores.items()},
        p_values=scoring.p_values(scores, "base"),
        parts=parts_of(train_groups(collection, loaded, taught), scores, "base"),
        per_query={name: score.per_query for name, score in scores.items()},
        example=tuple(list(loaded.queries.values())[:1]),
    )
