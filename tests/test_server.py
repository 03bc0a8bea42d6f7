"""The HTTP API: the same answers as the Python API gives, errors in one shape, changes that last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest

import small
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.explain import why
from lexent.lexicon import Lexicon, user_labels
from lexent.server.word_attribution import DOCUMENTS_PER_BATCH, FOUND_WORDS
from lexent.types import Document, Level
from serving import is_problem, serving

QUERY = "yeast dough light"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    small.build(folder / "docs.lexent").close()
    small.build(folder / "more.lexent", small.documents(8)).close()
    return folder


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[httpx.Client]:
    with serving([place / "docs.lexent", place / "more.lexent"]) as found:
        yield found


@pytest.fixture(scope="module")
def index(place: Path) -> Iterator[Index]:
    with Index.open(place / "docs.lexent", encoder=TinyEncoder(), lexicon=small.lexicon()) as found:
        yield found


@pytest.fixture
def living(tmp_path: Path) -> Iterator[httpx.Client]:
    """A server whose index may be changed."""
    small.build(tmp_path / "own.lexent").close()
    with serving([tmp_path / "own.lexent"]) as found:
        yield found


def ask(client: httpx.Client, verb: str, index: str = "docs", **body: Any) -> Any:
    reply = client.post(f"/v1/indexes/{index}/{verb}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def rounded(value: Any) -> Any:
    """JSON carries float32 weights as they print."""
    return json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 6))


# --- search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, {}),
        ({"k": 3}, {"k": 3}),
        ({"steer": {"#3": 0, "#5": 4.0}}, {"steer": {"#3": 0, "#5": 4.0}}),
        ({"filter": {"n": {"gte": 20}}}, {"filter": {"n": {"gte": 20}}}),
        ({"filter": {"n": {"lt": 9}}, "idf_of_subset": True}, {"filter": {"n": {"lt": 9}}, "idf_of_subset": True}),
        ({"feedback": 3}, {"feedback": 3}),
        ({"like": ["d1"], "unlike": ["d2"]}, {"like": ["d1"], "unlike": ["d2"]}),
    ],
)
def test_a_search_gives_what_the_library_gives(
    client: httpx.Client, index: Index, given: dict[str, Any], meant: dict[str, Any]
) -> None:
    found = ask(client, "search", query=QUERY, **given)
    wanted = index.search(QUERY, **meant).to_dict()
    assert rounded(without(found, "generation", "took_ms", "read")) == rounded(wanted)
    assert found["generation"] == index.manifest.generation
    assert found["read"] == len(QUERY)
    assert found["hits"]


def test_contributions_and_rest_sum_to_the_score(client: httpx.Client) -> None:
    for most in (None, 0, 2):
        for hit in ask(client, "search", query=QUERY, contributions=most)["hits"]:
            total = sum(part["value"] for part in hit["contributions"]) + hit["rest"]
            assert total == pytest.approx(hit["score"], abs=1e-5)
            assert most is None or len(hit["contributions"]) <= most


@pytest.mark.parametrize("recipe", ["latent-terms", "ssr", "ssr-cls", "uhd", "clsr"])
def test_groups_and_words_sum_to_the_score(tmp_path: Path, recipe: str) -> None:
    level: Level = "pooled" if recipe == "clsr" else "tokens"
    lexicon = Lexicon.random(TinyEncoder(), size=96, level=level, whole=40 if recipe == "ssr-cls" else 0)
    with small.build(tmp_path / "one.lexent", recipe=recipe, lexicon=lexicon) as own:
        words = {hit.id: hit.words() for hit in own.search(QUERY)} if level == "tokens" else {}
    with serving([tmp_path / "one.lexent"], lexicon=lexicon) as client:
        for steer in ({}, {"#3": 3, "#95": 2}):
            found = ask(client, "search", index="one", query=QUERY, words=True, contributions=3, steer=steer)
            for hit in found["hits"]:
                assert sum(group["value"] for group in hit["groups"]) == pytest.approx(hit["score"], abs=1e-5)
                concepts = [concept for group in hit["groups"] for concept in group["concepts"]]
                assert len(concepts) == len(set(concepts))
                heads = [group["label"].split(" · ")[0] for group in hit["groups"]]
                assert len(heads) == len(set(heads))
                if not words:
                    assert hit["words"] is None
                    continue
                assert sum(match["value"] for match in hit["words"]) == pytest.approx(hit["score"], abs=1e-5)
                for match in hit["words"]:
                    total = sum(one["value"] for one in match["found"]) + match["rest"]
                    assert total == pytest.approx(match["value"], abs=1e-5)
                    assert len(match["found"]) <= FOUND_WORDS
                if not steer:
                    wanted = words[hit["id"]].matches
                    assert [match["word"] for match in hit["words"]] == [match.word for match in wanted]
                    assert hit["words"][0]["found"][0]["word"] == wanted[0].found[0].word


def test_many_hits_have_their_words(client: httpx.Client, index: Index) -> None:
    found = ask(client, "search", query=QUERY, words=True, k=40)["hits"]
    assert len(found) > DOCUMENTS_PER_BATCH  # more than are encoded together
    for hit, own in zip(found, index.search(QUERY, k=40), strict=True):
        for match, wanted in zip(hit["words"], own.words().matches, strict=True):
            assert (match["word"], match["kind"]) == (wanted.word, wanted.kind)
            assert match["value"] == pytest.approx(wanted.value, rel=1e-5)


def test_a_groups_name_steers_all_its_concepts(client: httpx.Client) -> None:
    groups = ask(client, "search", query=QUERY)["groups"]
    group = max(groups, key=lambda one: len(one["concepts"]))
    assert len(group["concepts"]) > 1
    for name in (group["label"], group["label"].split(" · ")[0].upper()):
        for factor in (0, 3):
            found = ask(client, "search", query=QUERY, steer={name: factor})
            wanted = ask(client, "search", query=QUERY, steer={f"#{one}": factor for one in group["concepts"]})
            assert without(found, "took_ms") == without(wanted, "took_ms")
            weights = {one["concepts"]: one["weight"] for one in map(frozen, found["groups"])}
            for one in map(frozen, groups):
                wanted_weight = one["weight"] * (factor if one["concepts"] == tuple(group["concepts"]) else 1)
                assert weights.get(one["concepts"], 0.0) == pytest.approx(wanted_weight, rel=1e-5)


def test_every_concept_of_a_long_query_can_be_steered(client: httpx.Client) -> None:
    steer = {f"#{one}": 2 for one in range(96)} | {str(one): 0.5 for one in range(96)}  # more than a hundred names
    hits = ask(client, "search", query=QUERY, steer=steer)["hits"]
    assert all(len(hit["groups"]) > 0 for hit in hits)
    is_problem(
        client.post("/v1/indexes/docs/search", json={"query": "a", "steer": dict.fromkeys(map(str, range(1001)), 1)}),
        422,
    )


def frozen(group: dict[str, Any]) -> dict[str, Any]:
    return {**group, "concepts": tuple(group["concepts"])}


def test_a_search_without_explanation_has_none(client: httpx.Client) -> None:
    hit = ask(client, "search", query=QUERY, explain=False)["hits"][0]
    assert set(hit) == {"rank", "id", "score", "strength", "title", "text", "metadata", "passages"}
    assert 0 < hit["strength"] <= 1
    assert hit["metadata"]["n"] >= 0


def test_settings_are_those_of_a_retuned_index(client: httpx.Client, place: Path) -> None:
    for settings in ({"k1": 3, "b": 0.9}, {"power": 1.0}, {"idf": "none"}):
        other = Index.open(place / "docs.lexent", encoder=TinyEncoder(), lexicon=small.lexicon(), retune=dict(settings))
        wanted = [(hit.id, round(hit.score, 6)) for hit in other.search(QUERY)]
        for _ in range(2):  # made, then remembered
            found = ask(client, "search", query=QUERY, settings=settings)["hits"]
            assert [(hit["id"], round(hit["score"], 6)) for hit in found] == wanted
    is_problem(client.post("/v1/indexes/docs/search", json={"query": "a", "settings": {"k": 3}}), 422)
    is_problem(client.post("/v1/indexes/docs/search", json={"query": "a", "settings": {"k1": "many"}}), 422)
    deep = b'{"query": "a", "settings": {"zz": ' + b"[" * 900 + b"]" * 900 + b"}}"
    headers = {"content-type": "application/json"}
    is_problem(client.post("/v1/indexes/docs/search", content=deep, headers=headers), 422)


@pytest.mark.parametrize(
    ("settings", "given", "allowed"),
    [
        ({"k1": "many"}, 'k1 is "many"', "a number"),
        ({"k1": -1}, "k1 is -1", "from 0 to 1,000"),
        ({"idf": "rare"}, 'idf is "rare"', "lucene, root"),
        ({"predicted": 1}, "predicted is 1", "True or False"),
        ({"buckets": [1, "x"]}, "buckets is tuple (1, 'x')", "a tuple of numbers"),
        ({"level": "pooled"}, '"level" cannot change', "what can: k1, b"),
    ],
)
def test_wrong_settings_are_told_what_is_allowed_and_what_to_write(
    client: httpx.Client, settings: dict[str, Any], given: str, allowed: str
) -> None:
    reply = client.post("/v1/indexes/docs/search", json={"query": "a", "settings": settings})
    is_problem(reply, 422)
    detail = reply.json()["detail"]
    assert detail.startswith(f"settings: {given}")
    assert allowed in detail
    assert detail.endswith('write for example "settings": {"k1": 3, "b": 0.4}')


def test_explain_is_the_librarys(client: httpx.Client, index: Index) -> None:
    for document in ("d0", "d21", "d2"):
        found = ask(client, "explain", query=QUERY, document=document, steer={"#5": 2})
        wanted = why(index, QUERY, document, steer={"#5": 2})
        added = ("tokens", "words", "groups", "strength")
        assert rounded(without(found, *added)) == rounded(without(wanted.to_dict(), *added))
        assert rounded(found["groups"]) == rounded([group.to_dict() for group in wanted.explanation.groups])
    hit = index.search(QUERY)[0]
    found = ask(client, "explain", query=QUERY, document=hit.id, tokens=3)
    assert found["strength"] == pytest.approx(hit.strength)
    assert [(one["word"], one["kind"]) for one in found["words"]] == [
        (match.word, match.kind) for match in hit.words().matches
    ]
    assert "words" not in ask(client, "explain", query=QUERY, document=hit.id, words=False)
    assert len(found["tokens"]) == 3
    for part in found["tokens"]:
        tokens = hit.tokens(part["concept"]).to_dict()
        for side in ("query", "document"):
            assert rounded(part[side]["tokens"]) == rounded(tokens[side]["tokens"])
            assert part[side]["pooled"] == pytest.approx(tokens[side]["pooled"])


def test_words_are_those_that_raised_the_concepts(client: httpx.Client, index: Index) -> None:
    hits = index.search(QUERY, k=4)
    found = ask(client, "words", query=QUERY, documents=[hit.id for hit in hits])
    assert [one["id"] for one in found["documents"]] == [hit.id for hit in hits]
    for hit, one in zip(hits, found["documents"], strict=True):
        content = index.document(hit.id).content
        strongest = hit.explain().contributions[0].concept
        assert one["concepts"][0]["concept"] == strongest
        wanted = hit.tokens(strongest).document
        for given, own in zip(one["concepts"][0]["tokens"], wanted.to_dict()["tokens"], strict=True):
            assert without(given, "share") == without(own, "share")
            assert given["share"] == pytest.approx(own["share"], rel=1e-5)
        for token in one["concepts"][0]["tokens"]:
            assert content[token["start"] : token["stop"]] == token["token"]
    assert found["query"][0]["tokens"]
    by_search = ask(client, "search", query=QUERY, words=True, k=4)["hits"]
    assert [one["words"] for one in found["documents"]] == [hit["words"] for hit in by_search]


def test_an_index_that_matches_tokens_is_aligned(tmp_path: Path) -> None:
    with small.build(tmp_path / "tokens.lexent", recipe="ssr") as own, serving([tmp_path / "tokens.lexent"]) as client:
        found = ask(client, "search", index="tokens", query=QUERY, k=4)
        wanted = own.search(QUERY, k=4).to_dict()
        assert rounded(without(found, "generation", "took_ms", "read")) == rounded(wanted)
        for hit in found["hits"]:
            assert sum(token["value"] for token in hit["alignment"]) == pytest.approx(hit["score"], abs=1e-5)
        ids = [hit["id"] for hit in found["hits"]]
        words = ask(client, "words", index="tokens", query=QUERY, documents=ids)
        for hit, one in zip(found["hits"], words["documents"], strict=True):
            parts = {part["concept"]: part["value"] for part in hit["contributions"]}
            for concept in one["concepts"]:
                assert concept["pooled"] == pytest.approx(parts[concept["concept"]], abs=1e-5)
        reason = ask(client, "explain", index="tokens", query=QUERY, document=ids[1])
        assert len(reason["alignment"]) == 3
        assert ask(client, "search", index="tokens", query=QUERY, mode="fast")["approximate"] is True
    refused = {"query": QUERY, "feedback": 2}
    with serving([tmp_path / "tokens.lexent"]) as client:
        is_problem(client.post("/v1/indexes/tokens/search", json=refused), 422)


def test_compare_ranks_by_dense_vectors_where_they_are_kept(tmp_path: Path) -> None:
    with small.build(tmp_path / "all.lexent", extras=["dense", "lexical"]) as own:
        wanted = [(hit.id, hit.rank) for hit in own.dense_search("yeast dough oven", k=5)]
    with serving([tmp_path / "all.lexent"]) as client:
        found = {
            one["name"]: one for one in ask(client, "compare", index="all", query="yeast dough oven", k=5)["systems"]
        }
        assert [(hit["id"], hit["rank"]) for hit in found["dense"]["hits"]] == wanted
        new = {"documents": [{"id": "new", "text": "yeast dough oven"}]}
        assert client.post("/v1/indexes/all/documents", json=new).status_code == 200  # its vector is kept too
        found = {
            one["name"]: one for one in ask(client, "compare", index="all", query="yeast dough oven", k=5)["systems"]
        }
        assert {found[name]["hits"][0]["id"] for name in ("dense", "bm25")} == {"new"}


def test_fields_are_counted_without_deleted_documents(tmp_path: Path) -> None:
    facts: list[dict[str, Any]] = [
        {"year": 2019, "lang": "en", "day": "2019-05-01", "open": True, "tags": ["a", "b"]},
        {"year": 2021, "lang": "en", "day": "2020-05-01", "open": False, "tags": ["b"]},
        {"year": 2021, "lang": "de", "day": "2020-06-01", "open": True, "huge": 2**63},
        {"year": 1900, "lang": "fr", "day": "1900-06-01", "open": True},
    ]
    documents = [Document(id=str(row), text=f"yeast {row}", metadata=one) for row, one in enumerate(facts)]
    small.build(tmp_path / "facts.lexent", documents).close()
    with serving([tmp_path / "facts.lexent"]) as client:
        address = "/v1/indexes/facts/documents"
        assert client.get("/v1/indexes/facts/fields").json()["fields"][-1]["distinct"] == 3
        assert client.delete(address, params={"id": "3"}).status_code == 200
        found = {one["name"]: one for one in client.get("/v1/indexes/facts/fields").json()["fields"]}
        kinds = {"year": "number", "lang": "text", "day": "date", "open": "boolean", "tags": "text"}
        assert {name: found[name]["kind"] for name in found} == kinds | {"huge": "number"}
        counts = {name: {one["value"]: one["documents"] for one in found[name]["values"]} for name in found}
        assert counts["lang"] == {"en": 2, "de": 1}
        assert counts["year"] == {2021: 2, 2019: 1}
        assert counts["tags"] == {"b": 2, "a": 1}
        assert counts["open"] == {True: 2, False: 1}
        assert counts["huge"] == {2**63: 1}
        assert [one["documents"] for one in found["year"]["histogram"]] == [1, 2]
        assert found["year"]["histogram"][0]["low"] == 2019
        assert found["day"]["histogram"] == [
            {"low": "2019", "high": "2019", "documents": 1},
            {"low": "2020", "high": "2020", "documents": 2},
        ]


def test_a_search_says_how_much_of_the_query_was_read(client: httpx.Client) -> None:
    assert client.get("/v1/indexes").json()["max_query"] == 2_000
    assert ask(client, "search", query=QUERY)["read"] == len(QUERY)
    assert ask(client, "search", query="yeast " * 200)["read"] == len("yeast " * 200)
    words = " ".join(["yeast"] * 300)
    assert ask(client, "search", query=words)["read"] == len(" ".join(["yeast"] * TinyEncoder.max_tokens))


def test_compare_and_explain_take_steering_and_filters(tmp_path: Path) -> None:
    small.build(tmp_path / "all.lexent", extras=["dense", "lexical"]).close()
    with serving([tmp_path / "all.lexent"]) as client:
        how: dict[str, Any] = {"query": QUERY, "steer": {"#5": 4}, "filter": {"n": {"gte": 20}}}
        systems = ask(client, "compare", index="all", k=10, **how)["systems"]
        hits = ask(client, "search", index="all", k=10, **how)["hits"]
        assert [hit["id"] for hit in systems[0]["hits"]] == [hit["id"] for hit in hits]
        assert all(hit["metadata"]["n"] >= 20 for system in systems for hit in system["hits"])
        assert {system["name"] for system in systems if system["hits"]} == {"latent-terms", "dense", "bm25"}
        assert systems[0]["hits"][0]["text"] == hits[0]["text"]
        for hit in hits[:3]:
            found = ask(client, "explain", index="all", document=hit["id"], **how)
            assert (found["rank"], found["score"]) == (hit["rank"], pytest.approx(hit["score"]))
        outside = ask(client, "search", index="all", k=40, query=QUERY, filter={"n": {"lt": 20}})["hits"][0]
        found = ask(client, "explain", index="all", document=outside["id"], **how)
        assert found["rank"] is None
        assert found["score"] > 0


def test_compare_has_words_and_says_what_is_missing(client: httpx.Client) -> None:
    found = {one["name"]: one for one in ask(client, "compare", query="yeast dough oven", k=5)["systems"]}
    assert list(found) == ["latent-terms", "dense", "bm25"]
    assert found["latent-terms"]["hits"][0]["rank"] == 1
    assert found["bm25"]["missing"] is None
    assert len(found["bm25"]["hits"]) == 5
    assert "--with dense" in found["dense"]["missing"]
    assert found["dense"]["hits"] == []


# --- concepts and documents --------------------------------------------------------------------------------------


def test_concepts_are_listed_found_and_shown(client: httpx.Client, index: Index) -> None:
    base = "/v1/indexes/docs/concepts"
    listed = client.get(base, params={"limit": 7}).json()
    counts = [one["documents"] for one in listed["concepts"]]
    assert listed["total"] == 96
    assert counts == sorted(counts, reverse=True)
    assert [one["id"] for one in client.get(base, params={"sort": "id", "limit": 3, "page": 2}).json()["concepts"]] == [
        *(3, 4, 5)
    ]
    assert client.get(base, params={"find": index.lexicon.label(12)}).json()["concepts"][0]["id"] == 12
    assert client.get(base, params={"category": "broad"}).json()["total"] == 0
    live = client.get(base, params={"live": True, "limit": 500}).json()["concepts"]
    assert len(live) == index.manifest.counts.live_concepts
    shown = client.get(f"{base}/{listed['concepts'][0]['id']}").json()
    assert sum(shown["histogram"]["counts"]) == shown["documents"] == counts[0]
    weights = [one["weight"] for one in shown["top_documents"]]
    assert weights == sorted(weights, reverse=True)
    own = index.lexicon.concept(shown["id"])
    assert [(one["word"], one["count"]) for one in shown["raised_here"]] == [
        (word, count) for word, _, count in index.lexicon.concepts.raised_here(own.id)
    ]
    assert shown["raised_here"][0]["count"] > 0
    assert (shown["label"], shown["source"], shown["plain"]) == (own.label, "documents", f"concept {own.id}")
    assert client.get(f"{base}/{shown['plain']}").json()["id"] == own.id  # by the lexicon's name, too
    assert shown["neighbours"][0]["id"] == index.lexicon.neighbours(shown["id"])[0][0].id
    assert all(one["lift"] > 1 and one["id"] != shown["id"] for one in shown["together"])
    lexicon = client.get("/v1/indexes/docs/lexicon").json()
    assert lexicon["concepts"] == 96
    assert lexicon["documents"][0] == counts[0]


def test_examples_go_from_the_strongest_to_the_weakest(client: httpx.Client) -> None:
    common = client.get("/v1/indexes/docs/concepts", params={"limit": 1}).json()["concepts"][0]["id"]
    found = client.get(f"/v1/indexes/docs/concepts/{common}/examples").json()["examples"]
    assert found[0]["quantile"] == "top"
    assert found[-1]["quantile"] == "bottom"
    weights = [one["weight"] for one in found]
    assert weights == sorted(weights, reverse=True)
    for one in found:
        assert one["tokens"], "every document of a concept has a word that raised it"
        for token in one["tokens"]:
            assert one["text"][token["start"] : token["stop"]] == token["token"]


def test_a_document_has_its_concepts_and_words(client: httpx.Client, index: Index) -> None:
    found = client.get("/v1/indexes/docs/documents", params={"id": "d5", "tokens": True}).json()
    document = index.document("d5")
    assert (found["title"], found["text"], found["metadata"]) == (document.title, document.text, {"n": 5})
    ids, _ = index.searcher.document_scorer.documents([index.documents.position("d5")]).of(0)
    assert sorted(one["id"] for one in found["concepts"]) == sorted(ids.tolist())
    assert [document.content[one["start"] : one["stop"]] for one in found["tokens"]] == document.content.split()
    assert client.get("/v1/indexes/docs/documents", params={"id": "d5"}).json()["tokens"] is None


def test_several_indexes(client: httpx.Client) -> None:
    found = client.get("/v1/indexes").json()
    assert [(one["name"], one["documents"]) for one in found["indexes"]] == [("docs", 40), ("more", 8)]
    assert found["default"] == "docs"
    assert len(ask(client, "search", index="more", query=QUERY, k=50)["hits"]) <= 8
    stats = client.get("/v1/indexes/more").json()
    assert (stats["name"], stats["path"], stats["documents"]) == ("more", "more.lexent", 8)
    assert '"docs", "more"' in is_problem(client.get("/v1/indexes/other"), 404)["detail"]


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/v1/nothing", None, 404, "/openapi.json"),
        ("PATCH", "/v1/indexes", None, 405, "PATCH"),
        ("GET", "/v1/indexes/docs/documents?id=none", None, 404, "ids look like"),
        ("GET", "/v1/indexes/docs/documents", None, 422, "query.id"),
        ("GET", "/v1/indexes/docs/concepts/9999", None, 404, "0 to 95"),
        ("POST", "/v1/indexes/docs/search", b"{", 422, "JSON"),
        ("POST", "/v1/indexes/docs/search", {"query": "a", "kk": 1}, 422, "body.kk"),
        ("POST", "/v1/indexes/docs/search", {"query": "  "}, 422, "type some words"),
        ("POST", "/v1/indexes/docs/search", {"query": "a", "steer": {"nothing like it": 2}}, 404, "no concept named"),
        ("POST", "/v1/indexes/docs/search", {"query": "a", "steer": {"#1": -1}}, 422, "body.steer"),
        (
            "POST",
            "/v1/indexes/docs/search",
            {"query": "a", "filter": {"year": 1}},
            422,
            'no document has the field "ye',
        ),
        ("POST", "/v1/indexes/docs/search", b'{"query": "\\ud800"}', 422, "JSON"),
        ("POST", "/v1/indexes/docs/search", b'{"query": "a", "steer": {"#1": NaN}}', 422, "JSON"),
        ("POST", "/v1/indexes/docs/documents", {"documents": [{"id": "d1", "text": "a"}]}, 422, "upsert"),
        ("POST", "/v1/indexes/docs/documents", {"documents": [{"id": "x", "text": " "}]}, 422, "some words"),
        ("DELETE", "/v1/indexes/docs/documents?id=none", None, 404, "none"),
        ("PUT", "/v1/indexes/docs/concepts/1/label", {"label": " 12 "}, 422, "number"),
        ("POST", "/v1/indexes/docs/documents/bulk", {}, 415, "x-ndjson"),
    ],
)
def test_errors_have_one_shape_and_say_what_to_do(
    client: httpx.Client, method: str, path: str, body: Any, status: int, words: str
) -> None:
    raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    headers = {} if raw is None else {"content-type": "application/json"}
    reply = client.request(method, path, content=raw, headers=headers)
    assert words in is_problem(reply, status)["detail"]


def test_a_name_that_is_taken_is_refused(client: httpx.Client) -> None:
    base = "/v1/indexes/docs/concepts"
    taken = client.get(f"{base}/2").json()["label"]
    reply = client.put(f"{base}/1/label", json={"label": taken.upper()})
    assert f'already called "{taken}"' in is_problem(reply, 422)["detail"]


# --- changes -----------------------------------------------------------------------------------------------------


def test_added_documents_are_found_and_deleted_ones_are_not(living: httpx.Client) -> None:
    new = {"id": "new/one", "text": "zebra zebra stripes", "title": "Zebra", "metadata": {"n": 99}}
    reply = living.post("/v1/indexes/own/documents", json={"documents": [new]})
    assert reply.json() == {"added": 1, "replaced": 0, "deleted": 0, "documents": 41, "generation": 2}
    hit = ask(living, "search", index="own", query="zebra stripes")["hits"][0]
    assert (hit["id"], hit["title"], hit["metadata"]) == ("new/one", "Zebra", {"n": 99})
    changed = {"documents": [{**new, "text": "giraffe giraffe"}], "upsert": True}
    assert living.post("/v1/indexes/own/documents", json=changed).json()["replaced"] == 1
    assert living.get("/v1/indexes/own/documents", params={"id": "new/one"}).json()["text"] == "giraffe giraffe"
    reply = living.delete("/v1/indexes/own/documents", params={"id": ["new/one", "d3"]})
    assert (reply.json()["deleted"], reply.json()["documents"]) == (2, 39)
    is_problem(living.get("/v1/indexes/own/documents", params={"id": "new/one"}), 404)


def test_a_bulk_add_tells_of_each_bad_row_and_keeps_the_good_ones(living: httpx.Client) -> None:
    rows = [
        '{"id": "a", "text": "zebra"}',
        '{"id": "b", "text": }',
        '{"id": "a", "text": "again"}',
        "",
        '{"id": "c"}',
        '{"id": "d1", "text": "is there already"}',
        '{"id": "e", "text": "giraffe", "metadata": {"n": 1}}',
    ]

    def body() -> Iterator[bytes]:
        whole = "\n".join(rows).encode()
        for start in range(0, len(whole), 7):
            yield whole[start : start + 7]

    headers = {"content-type": "application/x-ndjson"}
    reply = living.post("/v1/indexes/own/documents/bulk", content=body(), headers=headers)
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert {line["line"] for line in lines if "line" in line} == {2, 3, 5, 6}
    assert [line for line in lines if "committed" in line] == [{"committed": 2, "through": 7}]
    assert lines[-1] == {"done": True, "lines": 7, "added": 2, "replaced": 0, "failed": 4}
    assert living.get("/v1/indexes/own/documents", params={"id": "e"}).json()["text"] == "giraffe"
    reply = living.post("/v1/indexes/own/documents/bulk?upsert=true", content=rows[5].encode(), headers=headers)
    assert json.loads(reply.text.splitlines()[-1]) == {"done": True, "lines": 1, "added": 1, "replaced": 1, "failed": 0}


def test_a_name_of_ones_own_lasts_and_can_be_taken_back(living: httpx.Client, tmp_path: Path) -> None:
    base = "/v1/indexes/own/concepts/5"
    before = living.get(base).json()
    assert before["source"] == "documents"
    reply = living.put(f"{base}/label", json={"label": " Rising   dough "})
    assert (reply.json()["label"], reply.json()["source"], reply.json()["plain"]) == (
        "Rising dough",
        "user",
        "concept 5",
    )
    assert living.get(base).json()["label"] == "Rising dough"
    assert ask(living, "search", index="own", query="king", steer={"rising dough": 4})["concepts"]
    with Index.open(tmp_path / "own.lexent", encoder=TinyEncoder(), lexicon=small.lexicon()) as other:
        assert other.lexicon.label(5) == "Rising dough"
        assert other.lexicon.hash == small.lexicon().hash
        other.verify()
    assert living.delete(f"{base}/label").json() == before
    assert user_labels.read(tmp_path / "own.lexent", small.lexicon()) == {}


def test_what_another_process_changes_shows_without_a_restart(living: httpx.Client, tmp_path: Path) -> None:
    with Index.open(tmp_path / "own.lexent", encoder=TinyEncoder(), lexicon=small.lexicon()) as other:
        other.add([Document(id="elsewhere", text="zebra zebra stripes")])
    end = monotonic() + 10
    while monotonic() < end:
        found = ask(living, "search", index="own", query="zebra stripes", k=1)
        if found["hits"][0]["id"] == "elsewhere":
            break
        sleep(0.05)
    assert found["hits"][0]["id"] == "elsewhere"
    assert 'lexent_refreshes_total{index="own"} 1.0' in living.get("/metrics").text


def test_names_that_another_process_makes_anew_show_without_a_restart(living: httpx.Client, tmp_path: Path) -> None:
    base = "/v1/indexes/own/concepts"
    before = {one["id"]: one["label"] for one in living.get(base, params={"limit": 500}).json()["concepts"]}
    with Index.open(tmp_path / "own.lexent", encoder=TinyEncoder(), lexicon=small.lexicon()) as other:
        other.add([Document(id=f"w{place}", text="zebra zebra stripes yeast") for place in range(30)])
        assert other.name_concepts() > 0
        concept = next(one for one in other.lexicon.concepts if one.label != before[one.id])
        words = [(word, count) for word, _, count in other.lexicon.concepts.raised_here(concept.id)]
    end = monotonic() + 10
    while living.get(f"{base}/{concept.id}").json()["label"] != concept.label:
        assert monotonic() < end
        sleep(0.05)
    shown = living.get(f"{base}/{concept.id}").json()
    assert before[concept.id] in (*shown["former"], shown["plain"])
    assert [(one["word"], one["count"]) for one in shown["raised_here"]] == words


def test_reads_go_on_while_documents_are_added(living: httpx.Client) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def add(number: int) -> int:
        document = {"id": f"x{number}", "text": f"zebra number {number}"}
        return living.post("/v1/indexes/own/documents", json={"documents": [document]}).status_code

    def search(number: int) -> int:
        body = {"query": f"zebra {number}", "k": 5}
        return living.post("/v1/indexes/own/search", json=body).status_code

    with ThreadPoolExecutor(12) as pool:
        added = [pool.submit(add, number) for number in range(15)]
        found = [pool.submit(search, number) for number in range(150)]
        assert {one.result() for one in found} == {200}
        statuses = [one.result() for one in added]
    assert statuses.count(200) == 15
    assert living.get("/v1/indexes/own").json()["documents"] == 55


def test_metrics_count_by_route(client: httpx.Client) -> None:
    ask(client, "search", query="counted")
    text = client.get("/metrics").text
    assert 'lexent_requests_total{method="POST",route="/v1/indexes/{index}/search",status="200"}' in text
    assert 'lexent_documents{index="docs"} 40.0' in text
    assert "lexent_encoded_queries_bucket" in text
