"""A retriever for LangChain. Needs the extra: pip install "lexent[langchain]"."""

from __future__ import annotations

from asyncio import to_thread
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator

from lexent.engine import Index
from lexent.errors import MissingExtraError
from lexent.integrations.retrieval import named_factors, opened, path_of, retrieve
from lexent.search.groups import SHOWN_GROUPS
from lexent.search.modes import Unit

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise MissingExtraError("langchain-core", extra="langchain", purpose="the retriever for LangChain") from error


class LexentRetriever(BaseRetriever):
    """Passages of an index for a query, as documents of LangChain.

    Metadata of a document are those of the indexed one, its place (`document_id`, `start`, `stop`), its `score` and
    `strength`, and its `explanation`: named lines whose values sum to the score. Other values than the retriever's can
    be given for one call: `retriever.invoke(query, k=3, steer={"zip": 2})`.
    """

    index: Annotated[Index | str | Path, PlainValidator(opened), PlainSerializer(path_of, return_type=str)]
    """An open index, or the path of one, which is opened. Saved as its path."""
    k: int = Field(default=10, ge=1)
    """Passages to give, at most."""
    steer: dict[str | int, float] | None = None
    """Factors by concept: 0 removes it, 2 doubles it."""
    filter: dict[str, Any] | None = None
    """Only documents whose metadata match, for example {"year": {"gte": 2019}}."""
    min_strength: float | None = None
    """Leave out what is weaker: from 0 to 1, the same for every query."""
    unit: Unit = "passage"
    """Give passages, or whole documents by their best passage."""
    lines: int = Field(default=SHOWN_GROUPS, ge=1)
    """Lines of an explanation; the others are summed in one more."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """It is: its settings are plain values, and the index is named by its path."""
        return True

    @property
    def lc_attributes(self) -> dict[str, Any]:
        """What is saved in another form than the field has."""
        return {"index": path_of(self.index), "steer": named_factors(self.steer)}

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
        steer: dict[str | int, float] | None = None,
        filter: dict[str, Any] | None = None,
        min_strength: float | None = None,
    ) -> list[Document]:
        found = retrieve(
            opened(self.index),
            query,
            k=self.k if k is None else k,
            steer=self.steer if steer is None else steer,
            filter=self.filter if filter is None else filter,
            min_strength=self.min_strength if min_strength is None else min_strength,
            unit=self.unit,
            lines=self.lines,
        )
        return [Document(id=one.id, page_content=one.text, metadata=one.metadata) for one in found]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
        steer: dict[str | int, float] | None = None,
        filter: dict[str, Any] | None = None,
        min_strength: float | None = None,
    ) -> list[Document]:
        chosen: dict[str, Any] = {"k": k, "steer": steer, "filter": filter, "min_strength": min_strength}
        return await to_thread(self._get_relevant_documents, query, **chosen)
