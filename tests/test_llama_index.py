"""The retriever for LlamaIndex, by the released library."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("llama_index.core", reason='pip install "lexent[llama-index]"')

from llama_index.core.llms.mock import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

import retrieved
from lexent.engine import Index
from lexent.errors import NotFoundError
from lexent.integrations.llama_index import HIDDEN, LexentRetriever
from retrieved import QUERY


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return retrieved.build(tmp_path_factory.mktemp("llama"))


def test_nodes_have_places_and_reasons(index: Index) -> None:
    found = LexentRetriever(index, k=30).retrieve(QUERY)
    hits = index.search(QUERY, k=30, unit="passage")
    assert [one.text for one in found] == [hit.text for hit in hits]
    assert [one.score for one in found] == [hit.score for hit in hits]
    for one in found:
        node = one.node
        assert isinstance(node, TextNode)
        retrieved.check(index, id=one.node_id, text=one.text, score=float(one.score or 0), metadata=one.metadata)
        assert node.get_node_info() == {"start": one.metadata["start"], "end": one.metadata["stop"]}
        assert node.ref_doc_id == one.metadata["document_id"]
    assert "All topics" in next(one for one in found if one.node.ref_doc_id == "long").get_content(MetadataMode.LLM)


def test_reasons_are_not_shown_to_models(index: Index) -> None:
    (one,) = LexentRetriever(index, k=1).retrieve(QUERY)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert not any(f"{name}:" in one.node.get_content(mode) for name in HIDDEN)
    assert "explanation:" in one.node.get_content(MetadataMode.ALL)


def test_settings_hold(index: Index) -> None:
    concept = index.search(QUERY).concepts[0].id
    plain = LexentRetriever(index.path, k=5).retrieve(QueryBundle(QUERY))
    steered = LexentRetriever(index, k=5, steer={concept: 0}).retrieve(QUERY)
    assert [one.score for one in plain] != [one.score for one in steered]
    filtered = LexentRetriever(index, filter={"n": {"lt": 4}}).retrieve(QUERY)
    assert {one.metadata["n"] for one in filtered} <= {0, 1, 2, 3}
    assert LexentRetriever(index, min_strength=1.0).retrieve(QUERY) == []
    whole = LexentRetriever(index, unit="document", k=30).retrieve(QUERY)
    assert [one.node_id for one in whole] == [hit.id for hit in index.search(QUERY, k=30)]


def test_async_gives_the_same(index: Index) -> None:
    retriever = LexentRetriever(index, k=3)

    async def several() -> list[list[NodeWithScore]]:
        return await asyncio.gather(*(retriever.aretrieve(query) for query in (QUERY, "pawn", "galaxy")))

    assert asyncio.run(several()) == [retriever.retrieve(query) for query in (QUERY, "pawn", "galaxy")]


def test_it_is_a_part_of_query_engines(index: Index) -> None:
    least = SimilarityPostprocessor(similarity_cutoff=0.1)
    retriever = LexentRetriever(index, k=2)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), node_postprocessors=[least])
    answer = engine.query(QUERY)
    assert [one.node_id for one in answer.source_nodes] == [one.node_id for one in retriever.retrieve(QUERY)]
    assert answer.source_nodes[0].text in str(answer)


def test_mistakes_are_told(index: Index) -> None:
    with pytest.raises(NotFoundError, match='no concept named "nonsense"'):
        LexentRetriever(index, steer={"nonsense": 2}).retrieve(QUERY)
