"""The retriever for LangChain, by the released library."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("langchain_core", reason='pip install "lexent[langchain]"')

from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnablePassthrough

import retrieved
from lexent.engine import Index
from lexent.errors import InputError, NotFoundError
from lexent.integrations.langchain import LexentRetriever
from lexent.integrations.retrieval import EXPLAINED
from retrieved import QUERY


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return retrieved.build(tmp_path_factory.mktemp("langchain"))


def ids(documents: list[Document]) -> list[str | None]:
    return [one.id for one in documents]


def test_documents_have_places_and_reasons(index: Index) -> None:
    found = LexentRetriever(index=index, k=30).invoke(QUERY)
    hits = index.search(QUERY, k=30, unit="passage")
    assert [one.page_content for one in found] == [hit.text for hit in hits]
    assert [one.metadata["score"] for one in found] == [hit.score for hit in hits]
    for one in found:
        assert set(EXPLAINED) <= set(one.metadata)
        retrieved.check(
            index, id=str(one.id), text=one.page_content, score=one.metadata["score"], metadata=one.metadata
        )
    assert len(set(ids(found))) == len(found)
    parts = [one.metadata for one in found if one.metadata["document_id"] == "long"]
    assert len(parts) > 1
    assert {part["own_score"] for part in parts} == {"own"}
    assert {part["source"] for part in parts} == {"a.txt"}


def test_a_long_explanation_ends_in_a_sum(index: Index) -> None:
    (whole,) = LexentRetriever(index=index, k=1, lines=100).invoke(QUERY)
    (short,) = LexentRetriever(index=index, k=1, lines=1).invoke(QUERY)
    lines = short.metadata["explanation"]
    assert lines[1]["label"] == f"{len(whole.metadata['explanation']) - 1} more"
    assert sum(line["value"] for line in lines) == pytest.approx(short.metadata["score"], abs=1e-5)


def test_documents_can_be_whole(index: Index) -> None:
    found = LexentRetriever(index=index, unit="document", k=30).invoke(QUERY)
    assert ids(found) == [hit.id for hit in index.search(QUERY, k=30)]
    long = next(one for one in found if one.id == "long")
    assert long.page_content == index.document("long").text
    assert (long.metadata["start"], long.metadata["stop"]) == (0, len(long.page_content))


def test_settings_hold_for_all_calls_or_for_one(index: Index) -> None:
    plain = LexentRetriever(index=index, k=5)
    concept = index.search(QUERY).concepts[0].id
    steered = LexentRetriever(index=index, k=5, steer={concept: 0})
    assert [one.metadata["score"] for one in plain.invoke(QUERY, steer={f"#{concept}": 0})] == [
        one.metadata["score"] for one in steered.invoke(QUERY)
    ]
    assert ids(plain.invoke(QUERY, k=2)) == ids(plain.invoke(QUERY))[:2]
    assert {one.metadata["n"] for one in plain.invoke(QUERY, filter={"n": {"lt": 4}})} <= {0, 1, 2, 3}
    least = plain.invoke(QUERY)[2].metadata["strength"]
    assert all(one.metadata["strength"] >= least for one in plain.invoke(QUERY, min_strength=least))
    assert LexentRetriever(index=index, min_strength=1.0).invoke(QUERY) == []


def test_async_gives_the_same(index: Index) -> None:
    retriever = LexentRetriever(index=index, k=5)

    async def several() -> list[list[Document]]:
        return await asyncio.gather(*(retriever.ainvoke(QUERY, k=k) for k in (1, 3, 5)))

    assert asyncio.run(several()) == [retriever.invoke(QUERY, k=k) for k in (1, 3, 5)]
    assert asyncio.run(retriever.abatch([QUERY, "pawn"])) == retriever.batch([QUERY, "pawn"])


def test_it_is_a_part_of_chains(index: Index) -> None:
    retriever = LexentRetriever(index=index, k=2)

    def quoted(documents: list[Document]) -> str:
        return "\n".join(f"[{one.id}] {one.page_content}" for one in documents)

    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    chain = {"context": retriever | quoted, "question": RunnablePassthrough()} | prompt
    text = chain.invoke(QUERY).to_messages()[0].content
    assert text == f"{quoted(retriever.invoke(QUERY))}\n{QUERY}"
    wide = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert len(wide.invoke(QUERY, config={"configurable": {"k": 4}})) == 4


def test_it_is_saved_as_settings(index: Index) -> None:
    retriever = LexentRetriever(index=index, k=3, steer={5: 2}, filter={"n": {"lt": 50}}, min_strength=0.0)
    again = loads(dumps(retriever), allowed_objects=[LexentRetriever], valid_namespaces=["lexent"])
    assert isinstance(again, LexentRetriever)
    assert again.invoke(QUERY) == retriever.invoke(QUERY)
    values = LexentRetriever.model_validate_json(retriever.model_dump_json())
    assert values.invoke(QUERY) == retriever.invoke(QUERY)
    assert values.model_dump()["index"] == str(index.path)


def test_mistakes_are_told(index: Index, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no index at"):
        LexentRetriever(index=tmp_path / "none")
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        LexentRetriever(index=index, k=0)
    with pytest.raises(InputError, match="k is 0"):
        LexentRetriever(index=index).invoke(QUERY, k=0)
    with pytest.raises(NotFoundError, match='no concept named "nonsense"'):
        LexentRetriever(index=index, steer={"nonsense": 2}).invoke(QUERY)
