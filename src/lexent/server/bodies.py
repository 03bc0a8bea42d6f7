"""What a request may hold. Limits that the server's settings give are checked where the request is answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from lexent.arguments import HIGHEST_WEIGHT

Name = Annotated[str, Field(min_length=1, max_length=200)]
Factor = Annotated[float, Field(ge=0, le=HIGHEST_WEIGHT, allow_inf_nan=False)]
Steer = Annotated[
    dict[Name, Factor],
    Field(
        default_factory=dict,
        max_length=100,
        description='Factors by concept: a label, words of it or "#812". 0 removes it, 1 leaves it, 2 doubles it; '
        "a concept that the query lacks is added.",
        examples=[{"#812": 2.0, "mouse": 0}],
    ),
]
Settings = Annotated[
    dict[str, StrictInt | StrictFloat | StrictStr | None],
    Field(
        default_factory=dict,
        max_length=20,
        description="Recipe settings to search by instead of the index's own, for example k1 and b.",
        examples=[{"k1": 3, "b": 0.4}],
    ),
]
Ids = Annotated[list[str], Field(default_factory=list, max_length=100)]


class Body(BaseModel):
    """A name that is not known is refused: a misspelt option must not pass in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class QueryBody(Body):
    """A query, and how it is weighed."""

    query: Annotated[str, Field(min_length=1, description="What to search for, in plain words.")]
    steer: Steer
    settings: Settings
    feedback: Annotated[
        int | None, Field(ge=0, le=1000, description="Search twice, learning from this many of the first hits.")
    ] = None
    like: Annotated[Ids, Field(description="Ids of documents to learn from.")]
    unlike: Annotated[Ids, Field(description="Ids of documents to learn against.")]


class SearchBody(QueryBody):
    """The body of a search."""

    k: Annotated[int, Field(ge=1, le=1_000_000_000, description="How many documents to give.")] = 10
    filter: Annotated[
        dict[str, Any] | None,
        Field(description="Only documents whose metadata match.", examples=[{"year": {"gte": 2019}, "lang": "en"}]),
    ] = None
    idf_of_subset: Annotated[
        bool, Field(description="With a filter: concepts count by how rare they are among the documents left.")
    ] = False
    mode: Annotated[
        Literal["exact", "fast"] | None,
        Field(description="For recipes that match tokens: exact, or fast and approximate; as the recipe says if null."),
    ] = None
    explain: Annotated[bool, Field(description="Give each hit's contributions; without, hits have none.")] = True
    contributions: Annotated[
        int | None, Field(ge=0, le=100_000, description="At most so many a hit; the others are summed in its rest.")
    ] = None


class ExplainBody(QueryBody):
    """The body of an explanation of one document."""

    document: Annotated[str, Field(min_length=1, description="The document's id.")]
    tokens: Annotated[int, Field(ge=0, le=50, description="Concepts whose words are given; 0 encodes nothing.")] = 5


class WordsBody(QueryBody):
    """The body of a request for the words behind concepts."""

    documents: Annotated[list[str], Field(max_length=50, description="Ids of documents, as a search gave them.")]


class CompareBody(Body):
    """The body of a comparison of systems."""

    query: Annotated[str, Field(min_length=1)]
    k: Annotated[int, Field(ge=1, le=100)] = 10


class LabelBody(Body):
    """The body of a new label for a concept."""

    label: Annotated[str, Field(min_length=1, max_length=100, description="Your name for the concept.")]


class DocumentBody(Body):
    """A document to add."""

    id: Annotated[str, Field(min_length=1, max_length=1000)]
    text: str
    title: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)


class AddBody(Body):
    """The body of an add."""

    documents: Annotated[list[DocumentBody], Field(min_length=1)]
    upsert: Annotated[bool, Field(description="Documents whose id is there take the place of the older ones.")] = False
