"""A retriever for Haystack. Needs the extra: pip install "lexent[haystack]"."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lexent.engine import Index
from lexent.errors import InputError, MissingExtraError
from lexent.integrations.retrieval import named_factors, opened, path_of, retrieve
from lexent.search.groups import SHOWN_GROUPS
from lexent.search.modes import Unit

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise MissingExtraError("haystack-ai", extra="haystack", purpose="the retriever for Haystack") from error

OPERATORS = {"==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "in": "in", "not in": "nin"}
"""Comparisons of Haystack, and what they are called here."""


@component
class LexentRetriever:
    """Passages of an index for a query, as documents of Haystack with their scores.

    Metadata of a document are those of the indexed one, its place (`document_id`, `start`, `stop`), its `score` and
    `strength`, and its `explanation`: named lines whose values sum to the score.
    """

    def __init__(
        self,
        index: Index | str | Path,
        *,
        top_k: int = 10,
        steer: dict[str | int, float] | None = None,
        filters: dict[str, Any] | None = None,
        min_strength: float | None = None,
        unit: Unit = "passage",
        lines: int = SHOWN_GROUPS,
    ) -> None:
        self.index = index
        """An index, or the path of one, which is opened by `warm_up`. Saved as its path."""
        self.top_k = top_k
        """Passages to give, at most."""
        self.steer = steer
        """Factors by concept: 0 removes it, 2 doubles it."""
        self.filters = filters
        """Only documents whose metadata match: as Haystack writes it, or {"year": {"gte": 2019}}."""
        self.min_strength = min_strength
        """Leave out what is weaker: from 0 to 1, the same for every query."""
        self.unit: Unit = unit
        """Give passages, or whole documents by their best passage."""
        self.lines = lines
        """Lines of an explanation; the others are summed in one more."""

    def warm_up(self) -> None:
        """Open the index and load its encoder."""
        self.index = opened(self.index)
        _ = self.index.encoder

    def to_dict(self) -> dict[str, Any]:
        """The settings, with the path of the index."""
        return default_to_dict(
            self,
            index=path_of(self.index),
            top_k=self.top_k,
            steer=named_factors(self.steer),
            filters=self.filters,
            min_strength=self.min_strength,
            unit=self.unit,
            lines=self.lines,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LexentRetriever:
        """The retriever of the settings that `to_dict` gave."""
        made: LexentRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        steer: dict[str | int, float] | None = None,
        min_strength: float | None = None,
    ) -> dict[str, list[Document]]:
        """The best passages for a query. What is given here takes the place of the retriever's own value."""
        self.index = opened(self.index)
        chosen = self.filters if filters is None else filters
        found = retrieve(
            self.index,
            query,
            k=self.top_k if top_k is None else top_k,
            steer=self.steer if steer is None else steer,
            filter=None if chosen is None else filter_of(chosen),
            min_strength=self.min_strength if min_strength is None else min_strength,
            unit=self.unit,
            lines=self.lines,
        )
        documents = [Document(id=one.id, content=one.text, meta=one.metadata, score=one.score) for one in found]
        return {"documents": documents}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        steer: dict[str | int, float] | None = None,
        min_strength: float | None = None,
    ) -> dict[str, list[Document]]:
        """The same, in a thread."""
        return await to_thread(self.run, query, filters, top_k, steer, min_strength)


def filter_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """A filter of Haystack as one of an index; one of an index as it is."""
    operator = given.get("operator")
    if "conditions" in given and operator is not None:
        parts = [filter_of(part) for part in given["conditions"]]
        if operator not in ("AND", "OR", "NOT"):
            raise InputError(f'operator is "{operator}"; allowed: AND, OR, NOT')
        return {"not": {"and": parts}} if operator == "NOT" else {operator.lower(): parts}
    if "field" not in given or operator is None:
        return dict(given)
    if operator not in OPERATORS:
        raise InputError(f'operator of "{given["field"]}" is "{operator}"; allowed: {", ".join(OPERATORS)}')
    name, value = str(given["field"]).removeprefix("meta."), given.get("value")
    if value is None and operator in ("==", "!="):
        return {name: {"exists": operator == "!="}}
    return {name: {OPERATORS[operator]: value}}
