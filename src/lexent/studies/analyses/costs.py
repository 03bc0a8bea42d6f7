"""The cost table: quality beside FLOPs, lengths, index size and vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lexent.errors import InputError
from lexent.evaluation import measures as scoring
from lexent.evaluation.collections import Collection
from lexent.evaluation.lexical import WordIndex, words
from lexent.evaluation.progress import Progress
from lexent.evaluation.systems import Dense, Latent, Lexical, System
from lexent.studies.analyses import usage
from lexent.studies.analyses.table import Table
from lexent.studies.analyses.usage import Usage

RANKING_DEPTH = 1000


@dataclass(frozen=True, slots=True)
class Cost:
    """One system: what it finds and what it takes."""

    system: str
    values: dict[str, float]
    """Measure to its mean over all queries."""
    usage: Usage

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        return {"system": self.system, "values": self.values, **asdict(self.usage)}


@dataclass(frozen=True, slots=True)
class Costs:
    """Systems side by side on one collection."""

    collection: str
    split: str
    documents: int
    rows: tuple[Cost, ...]

    def to_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        head = {"collection": self.collection, "split": self.split, "documents": self.documents}
        return {**head, "systems": [row.to_json() for row in self.rows]}

    def tables(self) -> list[Table]:
        """The results as tables."""
        measures = list(self.rows[0].values) if self.rows else []
        head = ("system", *measures, *usage.HEAD)
        rows = tuple((row.system, *row.values.values(), *row.usage.cells) for row in self.rows)
        note = "FLOPs: terms that a query and a document are expected to share; a term is a concept, word or dimension"
        return [Table("quality and cost", head, rows, note)]


def costs(
    collection: Collection,
    systems: Sequence[System],
    *,
    measures: str | Sequence[str] = ("nDCG@10", "R@100"),
    depth: int = RANKING_DEPTH,
    progress: Progress | None = None,
) -> Costs:
    """What each system finds, and what its index and its queries take."""
    wanted = scoring.parse(measures)
    rows = []
    for system in systems:
        if isinstance(system, Latent):
            scorer = system.scorer(collection, progress=progress)
            used = usage.of_concepts(scorer, system.queries(collection, progress=progress))
        elif isinstance(system, Lexical):
            used = usage.of_words(WordIndex.of(collection.texts), words(list(collection.queries.values())))
        elif isinstance(system, Dense):
            used = usage.of_dense(len(collection.documents), system.encoder.dim)
        else:
            raise InputError(f'the cost of "{system.name}" is not known; systems: dense, bm25, and recipes')
        run = system.run(collection, depth=depth, progress=progress)
        rows.append(Cost(system.name, scoring.score(collection.qrels, run, wanted).means, used))
    return Costs(collection.name, collection.split, len(collection.documents), tuple(rows))
