"""The addresses of the API. Each takes a request apart, has a thread answer it, and writes the answer as JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from lexent.artifact import lexent_version
from lexent.lexicon.concepts import Category
from lexent.server import concepts, documents, fields, metrics, problems, replies, searching, word_attribution
from lexent.server.bodies import AddBody, CompareBody, ExplainBody, LabelBody, SearchBody, WordsBody
from lexent.server.problems import ServerError
from lexent.server.registry import IndexRegistry
from lexent.server.replies import IndexesReply, StateReply
from lexent.server.served import ServedIndex
from lexent.server.settings import Settings
from lexent.server.workers import Workers

IndexName = Annotated[str, Path(description="The name of an index; GET /v1/indexes lists them.", max_length=200)]
ConceptName = Annotated[str, Path(description='A concept: "812", or a name or words of it.', max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500)]
NDJSON = "application/x-ndjson"

PROBLEM: dict[str, Any] = {
    "model": replies.Problem,
    "content": {problems.MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
STATUSES = {
    400: "The body cannot be read.",
    401: "A key is needed.",
    403: "The key, or the server, does not allow it.",
    404: "No such index, document or concept.",
    408: "The body took too long to arrive.",
    409: "The settings do not fit the index, or it was built anew with other parts.",
    413: "The body is too large.",
    422: "Something of the request cannot be used.",
    429: "Too much at once; Retry-After says when to try again.",
    503: "The server is still starting.",
    504: "It took too long.",
}
WRITE_STATUSES = {
    423: "Another process is writing.",
    503: "The server is still starting, or its audit log cannot be written.",
    507: "The disk is full.",
}


def _errors(statuses: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {status: {**PROBLEM, "description": text} for status, text in statuses.items()}


class StrictRequest(Request):
    """Reads JSON as the standard has it: no NaN, no half surrogate pairs."""

    async def json(self) -> Any:
        """The body, parsed by orjson."""
        return orjson.loads(await self.body())


class StrictRoute(APIRoute):
    """A route whose bodies are parsed strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a strict request."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict


class Json(Response):
    """Written by orjson as it is: answers are made by us, and tests hold them to the OpenAPI document."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The content as JSON bytes."""
        return orjson.dumps(content)


class Stream(Response):
    """Lines that are written while the request is still being read.

    Starlette's own streaming response listens for the client's leaving, and so takes pieces of the body for itself.
    """

    media_type = NDJSON

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__()
        self._lines = lines
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the parts as they come."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        with suppress(ClientDisconnect):  # what was committed stays
            async for line in self._lines:
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def state_router(registry: IndexRegistry, counts: metrics.Metrics) -> APIRouter:
    """Whether the server is alive and ready, and what it counts."""
    routes = APIRouter(tags=["server"])

    @routes.get("/health", response_model=StateReply)
    async def health() -> Response:
        """Whether the process answers, and whether it is ready too."""
        return Json(StateReply("ok", lexent_version(), registry.ready))

    @routes.get("/ready", response_model=StateReply, responses={503: {**PROBLEM, "description": "Not yet."}})
    async def ready() -> Response:
        """Whether models are loaded and kernels compiled; 503 until then."""
        if not registry.ready:
            raise problems.starting()
        return Json(StateReply("ready", lexent_version(), ready=True))

    @routes.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics_text() -> Response:
        """Counts and times, for Prometheus."""
        return Response(counts.text(), media_type=metrics.CONTENT_TYPE)

    return routes


def api_router(registry: IndexRegistry, settings: Settings, workers: Workers) -> APIRouter:
    """The routes under /v1."""
    routes = APIRouter(prefix="/v1", route_class=StrictRoute, responses=_errors(STATUSES))
    write_errors = _errors({**STATUSES, **WRITE_STATUSES})

    async def read(index: str, work: Callable[..., Any], *given: Any, **named: Any) -> Response:
        served = registry.get(index)
        return await workers.run(lambda: Json(work(served, *given, **named)))

    async def write(request: Request, index: str, work: Callable[..., Any], *given: Any, **named: Any) -> Response:
        served, by = registry.get(index), request.state.caller
        return await served.writers.run(lambda: Json(work(served, *given, **named, by=by)))

    @routes.get("/indexes", response_model=IndexesReply, tags=["indexes"])
    async def indexes() -> Response:
        """The indexes that are served here."""
        rows = [registry.get(name).summary() for name in registry.paths]
        return Json(
            IndexesReply(rows, registry.default, writable=not settings.read_only, max_query=settings.limits.query)
        )

    @routes.get("/indexes/{index}", tags=["indexes"])
    async def stats(index: IndexName) -> Response:
        """What an index holds and what it was made with."""
        return await read(index, ServedIndex.stats)

    @routes.post("/indexes/{index}/search", response_model=replies.SearchReply, tags=["search"])
    async def search(index: IndexName, body: SearchBody) -> Response:
        """The best documents for a query, each with the named contributions that its score is the sum of."""
        return await read(index, searching.search, body)

    @routes.post("/indexes/{index}/explain", response_model=replies.ExplainReply, tags=["search"])
    async def explain(index: IndexName, body: ExplainBody) -> Response:
        """Where a document stands for a query, and why not higher."""
        return await read(index, searching.explain, body)

    @routes.post("/indexes/{index}/words", response_model=replies.WordsReply, tags=["search"])
    async def words_of(index: IndexName, body: WordsBody) -> Response:
        """Which words of the query and of some hits raised each concept. Encodes the documents again."""
        return await read(index, word_attribution.of_hits, body)

    @routes.post("/indexes/{index}/compare", response_model=replies.CompareReply, tags=["search"])
    async def compared(index: IndexName, body: CompareBody) -> Response:
        """The same query by concepts, by dense vectors and by words."""
        return await read(index, searching.compare, body)

    @routes.get("/indexes/{index}/fields", response_model=replies.FieldsReply, tags=["indexes"])
    async def field_values(index: IndexName) -> Response:
        """The fields of the metadata, with counts of values and with histograms: what a filter can ask for."""
        return await read(index, fields.fields)

    @routes.get("/indexes/{index}/lexicon", response_model=replies.LexiconReply, tags=["concepts"])
    async def lexicon(index: IndexName) -> Response:
        """The lexicon as this index uses it, with the curve of ranks and frequencies."""
        return await read(index, concepts.lexicon)

    @routes.get("/indexes/{index}/concepts", response_model=replies.ConceptsReply, tags=["concepts"])
    async def listed(
        index: IndexName,
        find: Annotated[str, Query(max_length=200, description="Words to look for in names, best match first.")] = "",
        category: Annotated[Category | None, Query(description="Only one kind.")] = None,
        sort: concepts.Sort = "documents",
        live: Annotated[bool, Query(description="Only concepts that a document has.")] = False,
        limit: Limit = 50,
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response:
        """Concepts, a page at a time."""
        how = {"find": find, "category": category, "sort": sort, "live": live, "limit": limit, "page": page}
        return await read(index, concepts.listed, **how)

    @routes.get("/indexes/{index}/concepts/{concept}", response_model=replies.ConceptReply, tags=["concepts"])
    async def concept_of(index: IndexName, concept: ConceptName, limit: Limit = 10) -> Response:
        """A concept: name, kind, histogram, neighbours, what stands beside it, and the documents with most of it."""
        return await read(index, concepts.shown, concept, limit=limit)

    @routes.get(
        "/indexes/{index}/concepts/{concept}/examples", response_model=replies.QuantilesReply, tags=["concepts"]
    )
    async def examples(index: IndexName, concept: ConceptName) -> Response:
        """Documents from the strongest to the weakest, with the words that raised the concept. Encodes them again."""
        return await read(index, concepts.quantiles, concept)

    label: dict[str, Any] = {
        "path": "/indexes/{index}/concepts/{concept}/label",
        "response_model": replies.ConceptReply,
        "responses": write_errors,
        "tags": ["concepts"],
    }

    @routes.put(**label)
    async def rename(request: Request, index: IndexName, concept: ConceptName, body: LabelBody) -> Response:
        """Gives a concept your name for it, kept beside the index."""
        return await write(request, index, concepts.renamed, concept, body.label)

    @routes.delete(**label)
    async def unname(request: Request, index: IndexName, concept: ConceptName) -> Response:
        """Gives a concept back the lexicon's own name."""
        return await write(request, index, concepts.renamed, concept, None)

    change: dict[str, Any] = {
        "path": "/indexes/{index}/documents",
        "response_model": replies.ChangeReply,
        "responses": write_errors,
        "tags": ["documents"],
    }

    @routes.get("/indexes/{index}/documents", response_model=replies.DocumentReply, tags=["documents"])
    async def document(
        index: IndexName,
        id: Annotated[str, Query(min_length=1, description="The document's id.")],
        tokens: Annotated[bool, Query(description="Also its words with their concepts: encodes it again.")] = False,
    ) -> Response:
        """A document with its concepts."""
        return await read(index, documents.got, id, tokens=tokens)

    @routes.post(**change)
    async def add(request: Request, index: IndexName, body: AddBody) -> Response:
        """Adds documents, all of them or none. They are on the disk when this is answered."""
        return await write(request, index, documents.added, body.documents, upsert=body.upsert)

    @routes.delete(**change)
    async def delete(
        request: Request,
        index: IndexName,
        id: Annotated[list[str] | None, Query(description="Ids of documents.")] = None,
        filter: Annotated[
            str | None, Query(description='In place of ids: a filter as JSON, such as {"year": {"lt": 2000}}.')
        ] = None,
    ) -> Response:
        """Deletes documents by id, or those that match a filter; all of them or none."""
        return await write(request, index, documents.deleted, id or [], filter=filter)

    @routes.post(
        "/indexes/{index}/documents/bulk",
        tags=["documents"],
        response_class=Response,
        responses={200: {"content": {NDJSON: {}}, "description": "A line for each commit and each bad row."}},
        openapi_extra={"requestBody": {"required": True, "content": {NDJSON: {"schema": {"type": "string"}}}}},
    )
    async def bulk(index: IndexName, request: Request, upsert: bool = False) -> Response:
        """Adds a stream of rows of JSON, each {"id", "text", "title", "metadata"}.

        The answer is a stream too: a line for each bad row, one for each commit, which says through which row all is on
        the disk, and a last one with the counts. A bad row does not stop the others.
        """
        served = registry.get(index)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (NDJSON, "application/ndjson", "application/jsonl"):
            raise ServerError(f"rows come as {NDJSON}; given: {kind or 'no content type'}", status=415, slug="media")
        return Stream(documents.Bulk(served, upsert=upsert, by=request.state.caller).run(request.stream()))

    return routes
