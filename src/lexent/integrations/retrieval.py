"""A search as retrievers give it: texts with the places they were taken from, and the reasons for their scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexent.engine import Index
from lexent.search.groups import SHOWN_GROUPS
from lexent.search.results import PassageHit

if TYPE_CHECKING:
    from lexent.search.modes import Unit
    from lexent.search.results import Hit
    from lexent.search.searcher import Where
    from lexent.search.steering import Steer

EXPLAINED = (
    *("document_id", "title", "start", "stop", "passage", "passages", "headings"),
    *("score", "strength", "explanation"),
)
"""The metadata that a search adds to those of the document."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A text that was found."""

    id: str
    """The document's id; with "#" and the passage's number where the document has several passages."""
    text: str
    score: float
    metadata: dict[str, Any]
    """Those of the document, and `EXPLAINED`. A field of the document of such a name is kept as `own_NAME`."""


def retrieve(
    index: Index,
    query: str,
    *,
    k: int,
    steer: Steer | None = None,
    filter: Where | None = None,
    min_strength: float | None = None,
    unit: Unit = "passage",
    lines: int = SHOWN_GROUPS,
) -> list[Retrieved]:
    """The k best passages or documents, as `Index.search` finds them. lines: of each explanation, at most."""
    hits = index.search(query, k=k, steer=steer, filter=filter, min_strength=min_strength, unit=unit)
    return retrieved(hits, lines=lines)


def retrieved(hits: Iterable[Hit], *, lines: int) -> list[Retrieved]:
    """What retrievers give of hits."""
    return [_retrieved(hit, lines) for hit in hits]


def _retrieved(hit: Hit, lines: int) -> Retrieved:
    place: dict[str, Any] = {"start": 0, "stop": len(hit.text), "passage": 0, "passages": 1, "headings": []}
    if isinstance(hit, PassageHit):
        place = {"start": hit.start, "stop": hit.stop, "passage": hit.number, "passages": hit.count}
        place["headings"] = list(hit.headings)
    found = {
        "document_id": hit.id,
        "title": hit.title,
        **place,
        "score": hit.score,
        "strength": hit.strength,
        "explanation": explanation_lines(hit, lines),
    }
    own = {f"own_{name}" if name in found else name: value for name, value in hit.metadata.items()}
    id = f"{hit.id}#{place['passage']}" if place["passages"] > 1 else hit.id
    return Retrieved(id, hit.text, hit.score, {**own, **found})


def explanation_lines(hit: Hit, most: int) -> list[dict[str, Any]]:
    """The named lines of a score, with their values, which sum to it; those beyond `most` as one line."""
    explanation = hit.explain()
    if not explanation.groups:
        shown = explanation.contributions[:most]
        others = explanation.contributions[most:]
        found = [{"label": part.label, "value": part.value} for part in shown]
        return found + _rest([part.value for part in others])
    largest, smaller = explanation.largest_groups(most)
    return [{"label": group.label, "value": group.value} for group in largest] + _rest([one.value for one in smaller])


def _rest(values: list[float]) -> list[dict[str, Any]]:
    return [{"label": f"{len(values)} more", "value": sum(values)}] if values else []


def opened(index: Index | str | Path) -> Index:
    """The index, opened where a path is given."""
    return index if isinstance(index, Index) else Index.open(index)


def path_of(index: Index | str | Path) -> str:
    """Where an index is, as settings that are saved name it."""
    return str(index.path if isinstance(index, Index) else index)


def named_factors(steer: Steer | None) -> dict[str, float] | None:
    """Factors by concept that JSON can hold: a number is written "#812"."""
    if steer is None:
        return None
    return {name if isinstance(name, str) else f"#{name}": float(factor) for name, factor in steer.items()}
