"""The server for agents: a real process, asked over stdio by the client of the released SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason='pip install "lexent[mcp]"')

import jsonschema
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult, TextContent

import commands
import retrieved
from lexent.engine import Index
from lexent.types import Document
from retrieved import QUERY

HOSTILE = "yeast \x1b[31mdough\x07 bake\x9b\x00"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mcp")
    with retrieved.build(made) as index:
        index.add([Document("hostile\x1b", HOSTILE, "A \x1b]0;title\x07", {"n": 7, "by\x1b": ["x\x07"]})])
    return made


@asynccontextmanager
async def started(*words: object) -> AsyncIterator[Client]:
    """A client of `lexent mcp` with these arguments."""
    given = ["-m", "lexent", "mcp", *map(str, words)]
    async with Client(StdioServerParameters(command=sys.executable, args=given, env=dict(os.environ))) as client:
        yield client


def asked(work: Callable[[Client], Awaitable[None]], *words: object) -> None:
    async def run() -> None:
        async with started(*words) as client:
            await work(client)

    asyncio.run(run())


async def good(client: Client, tool: str, **given: Any) -> dict[str, Any]:
    """The structured reply of a tool, which fits the schema that the server gave of it."""
    reply = await client.call_tool(tool, given)
    assert isinstance(reply, CallToolResult)
    assert not reply.is_error, reply.content
    found: dict[str, Any] = reply.structured_content or {}
    schema = next(one for one in (await client.list_tools()).tools if one.name == tool).output_schema
    assert schema is not None
    jsonschema.validate(found, schema)
    (text,) = reply.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == found
    return found


async def failed(client: Client, tool: str, **given: Any) -> str:
    """The message of a tool that fails."""
    reply = await client.call_tool(tool, given)
    assert isinstance(reply, CallToolResult)
    assert reply.is_error
    (text,) = reply.content
    assert isinstance(text, TextContent)
    return text.text


def test_tools_tell_what_they_are_for(folder: Path) -> None:
    async def work(client: Client) -> None:
        tools = {one.name: one for one in (await client.list_tools()).tools}
        assert set(tools) == {"search", "explain", "find_concepts", "steer"}
        for tool in tools.values():
            assert len(tool.description or "") > 60
            assert tool.output_schema is not None
            properties = tool.input_schema["properties"]
            assert "self" not in properties
            assert all("description" in one for name, one in properties.items() if name != "limit")
        assert tools["search"].annotations is not None
        assert tools["search"].annotations.read_only_hint
        assert client.server_info is not None
        assert client.server_info.name == "lexent"
        assert '"small"' in (client.instructions or "")

    asked(work, folder / "small.lexent")


def test_search_gives_what_the_index_gives(folder: Path) -> None:
    async def work(client: Client) -> None:
        with Index.open(folder / "small.lexent") as index:
            found = await good(client, "search", query=QUERY, k=30)
            hits = index.search(QUERY, k=30, unit="passage")
            assert [hit["score"] for hit in found["hits"]] == [hit.score for hit in hits]
            for hit in found["hits"]:
                assert sum(line["value"] for line in hit["explanation"]) == pytest.approx(hit["score"], abs=1e-5)
                if hit["document_id"].startswith("hostile"):
                    continue
                text = index.document(hit["document_id"]).text
                assert text[hit["start"] : hit["stop"]] == hit["text"]
            filtered = await good(client, "search", query=QUERY, filter={"n": {"lt": 4}})
            assert {hit["metadata"]["n"] for hit in filtered["hits"]} <= {0, 1, 2, 3}
            assert (await good(client, "search", query=QUERY, min_strength=1.0))["hits"] == []

    asked(work, folder / "small.lexent")


def test_control_characters_are_pictures(folder: Path) -> None:
    async def work(client: Client) -> None:
        found = await good(client, "search", query="yeast \x1b dough", k=100)
        hit = next(hit for hit in found["hits"] if hit["document_id"].startswith("hostile"))
        assert hit["text"] == "yeast ␛[31mdough␇ bake\ufffd␀"
        assert (hit["start"], hit["stop"]) == (0, len(HOSTILE))
        assert hit["title"] == "A ␛]0;title␇"
        assert hit["metadata"] == {"n": 7, "by␛": ["x␇"]}
        shown = json.dumps(found, ensure_ascii=False)
        assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in shown)
        assert 'no document "␛" among' in await failed(client, "explain", query=QUERY, document_id="\x1b")

    asked(work, folder / "small.lexent")


def test_ranks_are_explained(folder: Path) -> None:
    async def work(client: Client) -> None:
        with Index.open(folder / "small.lexent") as index:
            last = index.search(QUERY, k=3)[2]
            found = await good(client, "explain", query=QUERY, document_id=last.id)
            assert (found["rank"], found["score"]) == (3, last.score)
            assert sum(line["value"] for line in found["explanation"]) == pytest.approx(last.score, abs=1e-5)
            assert found["above"]["rank"] == 2
            first = await good(client, "explain", query=QUERY, document_id=index.search(QUERY)[0].id)
            assert first["above"] is None

    asked(work, folder / "small.lexent")


def test_steering_is_for_a_search_or_for_all(folder: Path) -> None:
    async def work(client: Client) -> None:
        with Index.open(folder / "small.lexent") as index:
            concept = index.search(QUERY).concepts[0]
            listed = await good(client, "find_concepts", text=concept.label, limit=3)
            row = next(row for row in listed["concepts"] if row["id"] == f"#{concept.id}")
            assert row["documents"] > 0
            plain = await good(client, "search", query=QUERY)
            one = await good(client, "search", query=QUERY, steer={row["id"]: 0})
            assert [moved["id"] for moved in one["steered"]] == [row["id"]]
            assert one["hits"] != plain["hits"]
            held = await good(client, "steer", factors={row["id"]: 0})
            assert held["factors"] == {row["id"]: 0}
            assert held["concepts"] == [{"label": concept.label, "value": 0}]
            assert (await good(client, "search", query=QUERY))["hits"] == one["hits"]
            assert (await good(client, "search", query=QUERY, steer={row["id"]: 1}))["hits"] == plain["hits"]
            assert (await good(client, "steer"))["factors"] == {row["id"]: 0}
            assert (await good(client, "steer", factors={row["id"]: 1}))["factors"] == {}
            assert (await good(client, "search", query=QUERY)) == plain
            await good(client, "steer", factors={row["id"]: 3})
            assert (await good(client, "steer", clear=True))["concepts"] == []
            assert "no concept named" in await failed(client, "steer", factors={"nonsense": 2})
            assert "allowed: from 0" in await failed(client, "steer", factors={row["id"]: -1})
            assert (await good(client, "steer"))["factors"] == {}

    asked(work, folder / "small.lexent")


def test_mistakes_are_errors_of_the_tool(folder: Path) -> None:
    async def work(client: Client) -> None:
        assert 'no index "other" is served here; indexes: "small"' in await failed(
            client, "search", query=QUERY, index="other"
        )
        assert "less than or equal to 100" in await failed(client, "search", query=QUERY, k=1000)
        assert 'no concept named "nonsense"' in await failed(client, "search", query=QUERY, steer={"nonsense": 2})
        assert 'no operator "above"' in await failed(client, "search", query=QUERY, filter={"n": {"above": 3}})
        assert "no document" in await failed(client, "explain", query=QUERY, document_id="none")
        assert "Unknown tool" in await failed(client, "add", documents=[{"id": "x", "text": "y"}])
        assert (await good(client, "search", query=QUERY))["hits"]

    asked(work, folder / "small.lexent")


def test_writes_need_permission_and_show_at_once(tmp_path: Path) -> None:
    with retrieved.build(tmp_path) as index:

        async def work(client: Client) -> None:
            new = {"id": "new", "text": "sourdough rye loaf", "metadata": {"n": 500}}
            assert await good(client, "add", documents=[new]) == {"index": "small", "added": 1, "documents": 22}
            found = await good(client, "search", query="sourdough rye", filter={"n": 500})
            assert [hit["document_id"] for hit in found["hits"]] == ["new"]
            assert 'already has a document "new"' in await failed(client, "add", documents=[new])
            changed = {**new, "text": "sourdough spelt loaf"}
            assert (await good(client, "add", documents=[changed], upsert=True))["documents"] == 22
            index.refresh()
            assert index.document("new").text == "sourdough spelt loaf"
            index.add([Document("other", "sourdough rye", metadata={"n": 501})])  # another process
            found = await good(client, "search", query="sourdough rye", filter={"n": 501})
            assert [hit["document_id"] for hit in found["hits"]] == ["other"]

        asked(work, index.path, "--allow-writes", "--wait", 5)


def test_several_indexes_are_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        retrieved.build(tmp_path / name).close()

    async def work(client: Client) -> None:
        first, second = await asyncio.gather(
            *(good(client, "search", query=QUERY, index=name) for name in ("small", "small-2"))
        )
        assert (first["index"], second["index"]) == ("small", "small-2")
        assert first["hits"] == second["hits"]

    asked(work, tmp_path / "one" / "small.lexent", tmp_path / "two" / "small.lexent")


def test_a_folder_that_is_no_index_is_refused_at_once(tmp_path: Path) -> None:
    found = commands.program("mcp", tmp_path / "none.lexent")
    assert found.returncode == 3
    assert "no index at" in found.stderr
    assert found.stdout == ""


def test_it_ends_when_the_agent_does(folder: Path) -> None:
    command = [sys.executable, "-m", "lexent", "mcp", str(folder / "small.lexent")]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
