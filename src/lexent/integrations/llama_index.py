"""A retriever for LlamaIndex. Needs the extra: pip install "lexent[llama-index]"."""

from __future__ import annotations

from asyncio import to_thread
from pathlib import Path

from lexent.engine import Index
from lexent.errors import MissingExtraError
from lexent.integrations.retrieval import EXPLAINED, Retrieved, opened, retrieve
from lexent.search.groups import SHOWN_GROUPS
from lexent.search.modes import Unit
from lexent.search.searcher import Where
from lexent.search.steering import Steer

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.callbacks.base import CallbackManager
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
except ImportError as error:
    raise MissingExtraError("llama-index-core", extra="llama-index", purpose="the retriever for LlamaIndex") from error

HIDDEN = [name for name in EXPLAINED if name not in ("title", "headings")]
"""Metadata that a node does not show to language models and encoders."""


class LexentRetriever(BaseRetriever):
    """Passages of an index for a query, as nodes of LlamaIndex with their scores.

    Metadata of a node are those of the document, its place (`document_id`, `start`, `stop`), its `score` and
    `strength`, and its `explanation`: named lines whose values sum to the score.
    """

    def __init__(
        self,
        index: Index | str | Path,
        *,
        k: int = 10,
        steer: Steer | None = None,
        filter: Where | None = None,
        min_strength: float | None = None,
        unit: Unit = "passage",
        lines: int = SHOWN_GROUPS,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.index = opened(index)
        self.k = k
        """Passages to give, at most."""
        self.steer = steer
        """Factors by concept: 0 removes it, 2 doubles it."""
        self.filter = filter
        """Only documents whose metadata match, for example {"year": {"gte": 2019}}."""
        self.min_strength = min_strength
        """Leave out what is weaker: from 0 to 1, the same for every query."""
        self.unit: Unit = unit
        """Give passages, or whole documents by their best passage."""
        self.lines = lines
        """Lines of an explanation; the others are summed in one more."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = retrieve(
            self.index,
            query_bundle.query_str,
            k=self.k,
            steer=self.steer,
            filter=self.filter,
            min_strength=self.min_strength,
            unit=self.unit,
            lines=self.lines,
        )
        return [NodeWithScore(node=_node(one), score=one.score) for one in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await to_thread(self._retrieve, query_bundle)


def _node(found: Retrieved) -> TextNode:
    return TextNode(
        id_=found.id,
        text=found.text,
        start_char_idx=found.metadata["start"],
        end_char_idx=found.metadata["stop"],
        metadata=found.metadata,
        excluded_llm_metadata_keys=HIDDEN,
        excluded_embed_metadata_keys=HIDDEN,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=found.metadata["document_id"])},
    )
