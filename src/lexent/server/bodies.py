"""What a request may hold. Fields that set the library come from the dataclasses that declare them.

Limits that the server's settings give are checked where the request is answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, TypeAdapter, create_model

from lexent.arguments import HIGHEST_WEIGHT
from lexent.errors import InputError
from lexent.recipes import BM25, TUNABLE, Recipe
from lexent.search.feedback import Feedback, Learning
from lexent.search.modes import ModeName, Unit
from lexent.types import Document

if TYPE_CHECKING:
    from lexent.search.query import Query
    from lexent.search.searcher import Searcher
    from lexent.server.served import ServedIndex

Name = Annotated[str, Field(min_length=1, max_length=200)]
Factor = Annotated[float, Field(ge=0, le=HIGHEST_WEIGHT, allow_inf_nan=False)]
Ids = Annotated[list[str], Field(default_factory=list, max_length=100)]
_DESCRIBED = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _descriptions(kind: type) -> dict[str, str]:
    """The doc lines of a dataclass's fields."""
    schema = TypeAdapter(list[kind], config=ConfigDict(use_attribute_docstrings=True)).json_schema()  # type: ignore[valid-type]
    fields = schema["$defs"][kind.__name__]["properties"]
    return {name: field.get("description", "") for name, field in fields.items()}


def _recipe_settings() -> type[BaseModel]:
    """Recipe settings that can change without encoding documents again: their types and doc lines are the recipe's.

    Names and values are checked by the recipe, whose messages say what is allowed.
    """
    fields: dict[str, Any] = {}
    for kind in (BM25, Recipe):
        types, descriptions = get_type_hints(kind), _descriptions(kind)
        for name in (name for name in types if name in TUNABLE):
            field = Field(default=None, description=descriptions[name])
            fields[name] = (Annotated[types[name] | None, SkipValidation], field)
    config = ConfigDict(extra="allow", frozen=True)
    return create_model("RecipeSettings", __config__=config, __doc__="Settings of a recipe, by name.", **fields)


if TYPE_CHECKING:
    RecipeSettings = BaseModel
else:
    RecipeSettings = _recipe_settings()


class Body(BaseModel):
    """A name that is not known is refused: a misspelt option must not pass in silence."""

    model_config = _DESCRIBED


class TextBody(Body):
    """A body with a query."""

    query: Annotated[str, Field(min_length=1)]
    """What to search for, in plain words."""

    def recipe_settings(self) -> dict[str, Any]:
        """Recipe settings to search by instead of the index's own."""
        return {}

    def searcher(self, served: ServedIndex) -> Searcher:
        """The searcher of an index that answers it; a query that is too long is refused."""
        if len(self.query) > served.limits.query:
            raise InputError(f"the query has {len(self.query):,} characters; allowed: at most {served.limits.query:,}")
        return served.searcher(self.recipe_settings())


class QueryBody(TextBody):
    """A query, and how it is weighed."""

    steer: Annotated[
        dict[Name, Factor], Field(default_factory=dict, max_length=1000, examples=[{"#812": 2.0, "mouse": 0}])
    ]
    """Factors by concept: a label, words of it or "#812"; or by group of the query: its label or the first word of its
    label, for all its concepts. 0 removes it, 1 leaves it, 2 doubles it; a concept that the query lacks is added."""
    settings: Annotated[RecipeSettings, Field(default_factory=RecipeSettings, examples=[{"k1": 3, "b": 0.4}])]
    """Recipe settings to search by instead of the index's own, for example k1 and b."""
    feedback: Annotated[int | None, Field(ge=0, le=1000, description=_descriptions(Feedback)["documents"])] = None
    like: Ids
    """Ids of documents to learn from."""
    unlike: Ids
    """Ids of documents to learn against."""

    def recipe_settings(self) -> dict[str, Any]:
        """Those that the body gives; a recipe has tuples where JSON has lists."""
        given = {name: getattr(self.settings, name) for name in self.settings.model_fields_set}
        return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}

    @property
    def weighing(self) -> dict[str, Any]:
        """Steering and relevance feedback, as a searcher takes them."""
        learning = Learning.of(self.feedback, like=self.like, unlike=self.unlike)
        return {"steer": self.steer, "learning": learning}

    def weighed(self, searcher: Searcher) -> Query:
        """The query with its final weights."""
        return searcher.query(self.query, **self.weighing)


class FilteredBody(QueryBody):
    """A query, how it is weighed, and among which documents."""

    filter: Annotated[dict[str, Any] | None, Field(examples=[{"year": {"gte": 2019}, "lang": "en"}])] = None
    """Only documents whose metadata match."""


class SearchBody(FilteredBody):
    """The body of a search."""

    k: Annotated[int, Field(ge=1, le=1_000_000_000)] = 10
    """How many documents to give."""
    unit: Unit = "document"
    """What hits are: documents, each by its best passage, or passages, of which several may be of one document."""
    min_score: Annotated[float | None, Field(allow_inf_nan=False)] = None
    """Leave out hits of a lower score."""
    min_strength: Annotated[float | None, Field(ge=0, le=1)] = None
    """Leave out hits of less strength, which means the same for every query."""
    idf_of_subset: bool = False
    """With a filter: concepts count by how rare they are among the documents left."""
    mode: ModeName | None = None
    """For recipes that match tokens: exact, or fast and approximate; as the recipe says if null."""
    explain: bool = True
    """Give each hit's groups and contributions; without, hits have none."""
    contributions: Annotated[int | None, Field(ge=0, le=100_000)] = None
    """At most so many a hit; the others are summed in its rest."""
    words: bool = False
    """Give each hit's score by pairs of words. Encodes the hits again."""


class ExplainBody(FilteredBody):
    """The body of an explanation of one document."""

    document: Annotated[str, Field(min_length=1)]
    """The document's id."""
    tokens: Annotated[int, Field(ge=0, le=50)] = 5
    """Concepts whose words are given."""
    words: bool = True
    """Give the score by pairs of words. Without, and with 0 tokens, nothing is encoded again."""


class WordsBody(QueryBody):
    """The body of a request for the words behind concepts."""

    documents: Annotated[list[str], Field(max_length=50)]
    """Ids of documents, as a search gave them."""


class CompareBody(FilteredBody):
    """The body of a comparison of systems."""

    k: Annotated[int, Field(ge=1, le=100)] = 10
    """How many documents to give."""


class LabelBody(Body):
    """The body of a new label for a concept."""

    label: Annotated[str, Field(min_length=1, max_length=100)]
    """Your name for the concept."""


@dataclass(frozen=True, slots=True)
class DocumentBody(Document):
    """A document to add."""

    __pydantic_config__ = _DESCRIBED

    id: Annotated[str, Field(min_length=1, max_length=1000)]

    def __post_init__(self) -> None:
        Document.__post_init__(self)
        if not self.id.strip():
            raise InputError("the id is blank; every document needs an id of its own")
        if not self.content.strip():
            raise InputError(f'the document "{self.id}" has neither text nor title; give it some words')


class AddBody(Body):
    """The body of an add."""

    documents: Annotated[list[DocumentBody], Field(min_length=1)]
    upsert: bool = False
    """Documents whose id is there take the place of the older ones."""
