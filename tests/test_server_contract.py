"""The API held to its OpenAPI document, by requests that nobody thought of: none ends in a 5xx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import small
from lexent import recipes
from serving import serving

schemathesis = pytest.importorskip("schemathesis", reason="no schemathesis: pip install schemathesis")

NAMES_OF_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
schemathesis.checks.load_all_checks()
CHECKS = schemathesis.checks.CHECKS.get_by_names(NAMES_OF_CHECKS)
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]


@schemathesis.serializer("application/x-ndjson")
def rows_of_json(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("contract")
    documents = [
        small.Document(one.id, one.text, one.title, {"n": place, "lang": "en", "tags": ["a", "b"], "deep": {"x": 1.5}})
        for place, one in enumerate(small.documents(24))
    ]
    small.build(folder / "docs.lexent", documents, extras=["dense", "lexical"]).close()
    with serving([folder / "docs.lexent"]) as found:
        yield found


@pytest.fixture(scope="module")
def schema(client: httpx.Client) -> Any:
    return schemathesis.openapi.from_url(f"{client.base_url}/openapi.json")


OPERATIONS = [
    *("GET /health", "GET /ready", "GET /metrics", "GET /v1/indexes", "GET /v1/indexes/{index}"),
    *(f"POST /v1/indexes/{{index}}/{verb}" for verb in ("search", "explain", "words", "compare")),
    *(
        f"GET /v1/indexes/{{index}}/{noun}"
        for noun in ("lexicon", "fields", "concepts", "concepts/{concept}", "documents")
    ),
    "GET /v1/indexes/{index}/concepts/{concept}/examples",
    *(f"{method} /v1/indexes/{{index}}/concepts/{{concept}}/label" for method in ("PUT", "DELETE")),
    *(f"{method} /v1/indexes/{{index}}/documents" for method in ("POST", "DELETE")),
    "POST /v1/indexes/{index}/documents/bulk",
]


def test_every_operation_is_tried(schema: Any) -> None:
    found = {result.ok().label for result in schema.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_breaks_the_server(schema: Any, name: str) -> None:
    operations = (result.ok() for result in schema.get_all_operations())
    operation = next(one for one in operations if one.label == name)

    @given(case=operation.as_strategy())
    @settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
    def holds(case: Any) -> None:
        if "index" in case.path_parameters:
            case.path_parameters["index"] = "docs"  # any other is a 404, which says nothing about the rest
        case.validate_response(case.call(), checks=CHECKS)

    holds()


# --- steer and filter bodies -------------------------------------------------------------------------------------

NAMES = st.one_of(
    st.sampled_from(["#3", "#95", "#96", "concept 5", "concept", "12", "", "#", "##1", "😀", "concept\u0000"]),
    st.text(max_size=20),
)
FACTORS = st.one_of(st.sampled_from([0, 1, 2, 4, 1000, 1e-300, -1, 1001]), st.floats(0, 1000), st.booleans(), st.none())
FIELDS = st.sampled_from(
    ["n", "lang", "tags", "deep.x", "deep", "none", "and", "or", "not", "eq", "in", "gte", "lt", "exists", ""]
)
VALUES: Any = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(FIELDS, inner, max_size=3)),
    max_leaves=6,
)
FILTERS = st.dictionaries(FIELDS, VALUES, max_size=3)


def sent(client: httpx.Client, body: Any) -> httpx.Response:
    try:
        raw = json.dumps(body).encode()
    except UnicodeEncodeError:
        raw = json.dumps(body, ensure_ascii=True).encode()
    return client.post("/v1/indexes/docs/search", content=raw, headers={"content-type": "application/json"})


def is_answered(reply: httpx.Response) -> bool:
    """Hits whose parts sum to their scores, or a problem that says what to do."""
    if reply.status_code != 200:
        assert reply.status_code in (404, 422), reply.text
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json()["detail"]
        return False
    for hit in reply.json()["hits"]:
        total = sum(part["value"] for part in hit["contributions"]) + hit["rest"]
        assert total == pytest.approx(hit["score"], rel=1e-5, abs=1e-5)
        assert sum(group["value"] for group in hit["groups"]) == pytest.approx(hit["score"], rel=1e-5, abs=1e-5)
    return True


@given(steer=st.dictionaries(NAMES, FACTORS, max_size=5), k=st.integers(-1, 30))
@settings(max_examples=80, deadline=None, suppress_health_check=QUIET)
def test_any_steering_is_answered(client: httpx.Client, steer: dict[str, Any], k: int) -> None:
    is_answered(sent(client, {"query": "yeast dough", "steer": steer, "k": k}))


@given(numbers=st.dictionaries(st.integers(0, 95), st.floats(0, 1000), max_size=6))
@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
def test_known_concepts_can_be_steered_anywhere(client: httpx.Client, numbers: dict[int, float]) -> None:
    steer = {f"#{number}": factor for number, factor in numbers.items()}
    reply = sent(client, {"query": "yeast dough", "steer": steer, "k": 24})
    assert is_answered(reply)
    weights = {one["id"]: one["weight"] for one in reply.json()["concepts"]}
    for number, factor in numbers.items():
        if factor == 0:
            assert number not in weights  # off is off


@given(where=FILTERS, subset=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=QUIET)
def test_any_filter_is_answered(client: httpx.Client, where: dict[str, Any], subset: bool) -> None:
    is_answered(sent(client, {"query": "yeast dough", "filter": where, "idf_of_subset": subset}))


@given(low=st.integers(-5, 30), high=st.integers(-5, 30), text=st.sampled_from(["en", "de"]))
@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
def test_a_good_filter_lets_through_what_it_says(client: httpx.Client, low: int, high: int, text: str) -> None:
    reply = sent(
        client, {"query": "yeast dough light king", "k": 24, "filter": {"n": {"gte": low, "lt": high}, "lang": text}}
    )
    assert is_answered(reply)
    for hit in reply.json()["hits"]:
        assert low <= hit["metadata"]["n"] < high
        assert hit["metadata"]["lang"] == text


LINES = st.one_of(
    st.binary(max_size=30).filter(lambda line: b"\n" not in line),
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.builds(
        lambda id, text: json.dumps({"id": id, "text": text}).encode(), st.text(max_size=5), st.text(max_size=20)
    ),
)


@given(lines=st.lists(LINES, max_size=4), upsert=st.booleans())
@example(lines=[b'{"id": "twice", "text": "!"}'] * 2, upsert=True)
@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
def test_any_rows_are_answered_row_by_row(client: httpx.Client, lines: list[bytes], upsert: bool) -> None:
    path = f"/v1/indexes/docs/documents/bulk?upsert={str(upsert).lower()}"
    before = client.get("/v1/indexes/docs").json()["documents"]
    content = b"\n".join(lines)
    reply = client.post(path, content=content, headers={"content-type": "application/x-ndjson"})
    assert reply.status_code == 200
    told = [json.loads(line) for line in reply.text.splitlines()]
    last = told[-1]
    assert last["done"] is True
    assert last["lines"] == content.count(b"\n") + bool(content.rpartition(b"\n")[2])  # a last line end begins no row
    assert last["failed"] == sum("line" in one for one in told)
    assert last["added"] + last["failed"] <= len(lines)
    assert client.get("/v1/indexes/docs").json()["documents"] == before + last["added"] - (
        last["replaced"] if upsert else 0
    )


def test_the_openapi_document_loads_nothing_from_elsewhere_and_names_every_route(client: httpx.Client) -> None:
    found = client.get("/openapi.json").json()
    assert {path.removeprefix("/v1/indexes/{index}") for path in found["paths"]} == {
        *("/health", "/ready", "/metrics", "/v1/indexes", ""),
        *("/search", "/explain", "/words", "/compare", "/fields", "/lexicon"),
        *("/concepts", "/concepts/{concept}", "/concepts/{concept}/examples", "/concepts/{concept}/label"),
        *("/documents", "/documents/bulk"),
    }
    page = (Path(__file__).parents[1] / "docs" / "serve.md").read_text()
    for path in found["paths"]:  # a route that docs/serve.md does not name fails here
        tail = path.removeprefix("/v1/indexes/{index}").replace("{concept}", "812") or "/v1/indexes/NAME"
        assert tail in page, path
    for path in ("/docs", "/redoc"):
        assert client.get(path).status_code == 404


def test_the_replies_say_what_groups_and_words_are(client: httpx.Client) -> None:
    found = client.get("/openapi.json").json()["components"]["schemas"]
    assert {"label", "weight", "concepts", "form"} == set(found["ConceptGroup"]["properties"])
    assert {"label", "value", "concepts", "form"} == set(found["Line"]["properties"])
    assert {"word", "value", "found", "rest", "kind"} == set(found["WordMatch"]["properties"])
    for reply in ("Hit", "ExplainReply"):
        assert {"groups", "words"} <= set(found[reply]["properties"])
    assert {"raised_here", "raised_by", "former", "plain", "form"} <= set(found["ConceptReply"]["properties"])


def test_recipe_settings_are_those_that_the_recipe_declares(client: httpx.Client) -> None:
    found = client.get("/openapi.json").json()["components"]["schemas"]["RecipeSettings"]["properties"]
    assert set(found) == set(recipes.TUNABLE)
    assert all(one["description"] for one in found.values())
    for own, status in (({"k1": 2, "predicted": False, "buckets": []}, 200), ({"k1": True}, 422), ({"b": "1"}, 422)):
        assert sent(client, {"query": "yeast dough", "settings": own}).status_code == status
    assert "what can:" in sent(client, {"query": "yeast", "settings": {"level": "pooled"}}).json()["detail"]
