"""The retriever for Haystack, by the released library."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("haystack", reason='pip install "lexent[haystack]"')

from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.telemetry import _telemetry
from haystack.utils.filters import document_matches_filter

import retrieved
from lexent.engine import Index
from lexent.errors import InputError, NotFoundError
from lexent.integrations.haystack import LexentRetriever, filter_of
from retrieved import QUERY


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return retrieved.build(tmp_path_factory.mktemp("haystack"))


def found(retriever: LexentRetriever, **given: Any) -> list[Document]:
    return retriever.run(QUERY, **given)["documents"]


def test_no_telemetry_is_sent() -> None:
    assert _telemetry.telemetry is None


def test_documents_have_places_and_reasons(index: Index) -> None:
    documents = found(LexentRetriever(index, top_k=30))
    hits = index.search(QUERY, k=30, unit="passage")
    assert [one.content for one in documents] == [hit.text for hit in hits]
    assert [one.score for one in documents] == [hit.score for hit in hits]
    for one in documents:
        retrieved.check(index, id=one.id, text=str(one.content), score=float(one.score or 0), metadata=one.meta)
        assert Document.from_dict(one.to_dict()) == one


def test_settings_hold_for_all_runs_or_for_one(index: Index) -> None:
    retriever = LexentRetriever(index, top_k=5)
    assert found(retriever, top_k=2) == found(retriever)[:2]
    concept = f"#{index.search(QUERY).concepts[0].id}"
    assert found(retriever, steer={concept: 0}) == found(LexentRetriever(index, top_k=5, steer={concept: 0}))
    assert found(retriever, min_strength=1.0) == []
    assert [one.id for one in found(LexentRetriever(index, unit="document", top_k=30))] == [
        hit.id for hit in index.search(QUERY, k=30)
    ]


FILTERS: list[dict[str, Any]] = [
    *({"field": "meta.n", "operator": operator, "value": 7} for operator in ("==", "!=", ">", ">=", "<", "<=")),
    {"field": "meta.n", "operator": "in", "value": [1, 2, 100]},
    {"field": "n", "operator": "not in", "value": [1, 2, 100]},
    {"field": "meta.source", "operator": "==", "value": None},
    {"field": "meta.source", "operator": "!=", "value": None},
    {"field": "meta.source", "operator": "!=", "value": "a.txt"},
    {
        "operator": "NOT",
        "conditions": [
            {"field": "meta.n", "operator": ">", "value": 3},
            {
                "operator": "OR",
                "conditions": [
                    {"field": "meta.n", "operator": "<", "value": 9},
                    {"field": "meta.source", "operator": "==", "value": "a.txt"},
                ],
            },
        ],
    },
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_mean_what_they_mean_in_haystack(index: Index, filters: dict[str, Any]) -> None:
    retriever = LexentRetriever(index, top_k=100)
    everything = found(retriever)
    kept = [one.id for one in everything if document_matches_filter(filters, one)]
    assert [one.id for one in found(retriever, filters=filters)] == kept
    assert [one.id for one in found(LexentRetriever(index, top_k=100, filters=filters))] == kept
    assert 0 < len(kept) < len(everything)


def test_filters_of_an_index_stay_as_they_are(index: Index) -> None:
    assert filter_of({"n": {"lt": 4}}) == {"n": {"lt": 4}}
    assert {one.meta["n"] for one in found(LexentRetriever(index), filters={"n": {"lt": 4}})} <= {0, 1, 2, 3}
    with pytest.raises(InputError, match='operator is "XOR"; allowed: AND, OR, NOT'):
        filter_of({"operator": "XOR", "conditions": []})
    with pytest.raises(InputError, match=r'operator of "meta\.n" is "~"; allowed: =='):
        filter_of({"field": "meta.n", "operator": "~", "value": 1})


def test_async_gives_the_same(index: Index) -> None:
    retriever = LexentRetriever(index)

    async def several() -> list[dict[str, list[Document]]]:
        return await asyncio.gather(*(retriever.run_async(QUERY, top_k=k) for k in (1, 2, 3)))

    assert asyncio.run(several()) == [retriever.run(QUERY, top_k=k) for k in (1, 2, 3)]


TEMPLATE = "{% for one in documents %}[{{ one.id }}] {{ one.content }}\n{% endfor %}{{ query }}"


def test_it_is_a_part_of_pipelines_that_are_saved(index: Index) -> None:
    pipeline = Pipeline()
    retriever = LexentRetriever(index.path, top_k=2, steer={"#5": 2.0}, filters={"n": {"lt": 50}})
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables="*"))
    pipeline.connect("retriever.documents", "prompt.documents")
    asked = {"retriever": {"query": QUERY}, "prompt": {"query": QUERY}}
    prompt = pipeline.run(asked)["prompt"]["prompt"]
    assert prompt == "".join(f"[{one.id}] {one.content}\n" for one in found(retriever)) + QUERY
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["lexent.integrations.haystack"])
    assert again.run(asked)["prompt"]["prompt"] == prompt
    assert again.to_dict() == pipeline.to_dict()
    assert asyncio.run(again.run_async(asked))["prompt"]["prompt"] == prompt


def test_mistakes_are_told(index: Index) -> None:
    with pytest.raises(NotFoundError, match="no index at"):
        LexentRetriever("none.lexent").warm_up()
    with pytest.raises(NotFoundError, match='no concept named "nonsense"'):
        found(LexentRetriever(index, steer={"nonsense": 2}))
