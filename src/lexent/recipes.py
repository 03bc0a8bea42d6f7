"""A recipe names one choice for each stage of the pipeline. The papers are recipes, not code paths."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal, get_args

from lexent.errors import InputError, NotFoundError
from lexent.types import Kind, Level

IdfMode = Literal["lucene", "okapi", "okapi-floor0", "clsr", "none"]
Pool = Literal["sum", "max"]
Formula = Literal["bm25", "dot", "count"]


@dataclass(frozen=True, slots=True)
class BM25:
    """BM25 over latent terms, with query weights."""

    k1: float = 1.0
    """How soon a concept that a document repeats stops adding to the score; higher is later."""
    b: float = 0.4
    """How much long documents are held back; 0 not at all, 1 fully."""
    idf: IdfMode = "lucene"
    """How rare concepts count for more than common ones."""
    formula: Formula = "bm25"
    """What a document's concept weighs: saturated and set against the document's length, as it is, or 1."""
    k2: float | None = None
    """How soon a concept that the query repeats stops adding to the score; not at all where it is left out."""


WEIGHTING = ("k1", "b", "idf", "formula", "k2")
"""The settings that stand in a recipe's weighting."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One choice for each stage: encode, code, pool, weigh, match."""

    name: str
    level: Level = "tokens"
    """encode: a state per token, or one per text."""
    specials: bool = True
    """encode: keep the states of special tokens such as [CLS] and [SEP]."""
    k: int = 16
    """code: how many latents a state may have; at most what the lexicon was trained for is usual, not required."""
    query_k: int | None = None
    """code: the same for the states of a query, where each latent costs time; at most k, and k where it is left out."""
    pool: Pool = "sum"
    """pool: how the codes of a text's tokens become one vector."""
    function_words: float = 0.5
    """pool: weight of function words and punctuation in a query; 1 makes them count as any other word."""
    emphasis: float = 0.5
    """pool: tokens of a query count by the length of their state over the mean, to this power; 0 makes them equal."""
    power: float = 0.5
    """pool: the exponent of the transform after pooling; 0.5 is the square root, 1 the identity."""
    query_power: float | None = 0.7
    """pool: the same for queries, whose strongest concepts should stand out; the other exponent where it is none."""
    weighting: BM25 = field(default_factory=BM25)
    """weigh: the scoring formula."""
    document_cap: int | None = None
    """weigh: keep at most this many of a document's strongest latents."""
    query_cap: int | None = None
    """weigh: keep at most this many of a query's strongest latents."""
    prune: float = 0.0
    """weigh: share of the latents, the most frequent ones of the collection, that queries ignore."""

    def __post_init__(self) -> None:
        _check(self.k >= 1, "k", self.k, "1 or more")
        _check(self.query_k is None or self.query_k >= 1, "query_k", self.query_k, "1 or more, or none")
        _check(0 <= self.function_words <= 1, "function_words", self.function_words, "from 0 to 1")
        _check(0 <= self.emphasis <= 4, "emphasis", self.emphasis, "from 0 to 4")
        _check(0 < self.power <= 2, "power", self.power, "above 0, at most 2")
        other = self.query_power
        _check(other is None or 0 < other <= 2, "query_power", other, "above 0, at most 2, or none")
        _check(self.weighting.k1 >= 0, "k1", self.weighting.k1, "0 or more")
        _check(0 <= self.weighting.b <= 4, "b", self.weighting.b, "from 0 to 4")
        _check(self.weighting.k2 is None or self.weighting.k2 > 0, "k2", self.weighting.k2, "above 0, or none")
        _check(
            self.weighting.formula in get_args(Formula), "formula", self.weighting.formula, ", ".join(get_args(Formula))
        )
        _check(self.weighting.idf in get_args(IdfMode), "idf", self.weighting.idf, ", ".join(get_args(IdfMode)))
        _check(self.pool in get_args(Pool), "pool", self.pool, ", ".join(get_args(Pool)))
        _check(0 <= self.prune < 1, "prune", self.prune, "from 0 to below 1")
        for name, cap in (("document_cap", self.document_cap), ("query_cap", self.query_cap)):
            _check(cap is None or cap >= 1, name, cap, "1 or more, or none")

    def k_for(self, kind: Kind) -> int:
        """How many latents a state of a query or of a document may have."""
        return min(self.query_k or self.k, self.k) if kind == "query" else self.k

    def power_for(self, kind: Kind) -> float:
        """The exponent of the transform for a query or for a document."""
        return self.power if kind == "document" or self.query_power is None else self.query_power

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Recipe:
        return Recipe(**{**values, "weighting": BM25(**values["weighting"])})

    def changed(self, **settings: Any) -> Recipe:
        """This recipe with other settings; those that are None stay. k1, b, idf and others reach into the weighting."""
        return self.having(**{name: value for name, value in settings.items() if value is not None})

    def having(self, **settings: Any) -> Recipe:
        """As `changed`, but None is a value as any other: it takes a cap away."""
        formula = {name: settings.pop(name) for name in WEIGHTING if name in settings}
        return replace(self, weighting=replace(self.weighting, **formula), **settings)

    def setting(self, name: str) -> Any:
        """The value of a setting, wherever it stands."""
        return getattr(self.weighting if name in WEIGHTING else self, name)


def _check(good: bool, name: str, given: object, allowed: str) -> None:
    if not good:
        raise InputError(f"{name} is {given}; allowed: {allowed}")


TUNABLE = (
    *("k1", "b", "idf", "formula", "k2", "power", "query_power", "function_words", "emphasis", "query_k"),
    *("document_cap", "query_cap", "prune"),
)
"""Settings that can change without encoding the documents again."""


def retuned(recipe: Recipe, settings: dict[str, Any]) -> Recipe:
    """The recipe of an existing index with other settings; those that need its documents encoded again are refused."""
    for name in settings:
        if name not in TUNABLE:
            raise InputError(
                f'"{name}" cannot change on an existing index; what can: {", ".join(TUNABLE)}; for others build it '
                "again: lexent index CORPUS --out DIR --overwrite"
            )
    changed = recipe.changed(**settings)
    old, new = recipe.document_cap, changed.document_cap
    if old is not None and (new is None or new > old):
        raise InputError(
            f"document_cap is {new}, but the index keeps only {old} concepts a document; allowed: at most {old}; "
            "for more build it again: lexent index CORPUS --out DIR --overwrite"
        )
    return changed


def _clsr(name: str, *, k: int, cap: int, weighting: BM25) -> Recipe:
    """Concept-level sparse retrieval: the latents of one pooled state, weighed as they are."""
    return Recipe(name, level="pooled", k=k, power=1.0, query_power=None, weighting=weighting, document_cap=cap)


_ALL = (
    Recipe("latent-terms"),
    _clsr("clsr", k=128, cap=128, weighting=BM25(k1=2.0, b=1.0, idf="none")),
    _clsr("clsr-efficient", k=32, cap=40, weighting=BM25(k1=1.0, b=1.0, idf="clsr", k2=5.0)),
)
RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _ALL}


def get(recipe: str | Recipe) -> Recipe:
    """The recipe of that name, or of that JSON file; a recipe is returned as it is."""
    if isinstance(recipe, Recipe):
        return recipe
    if recipe in RECIPES:
        return RECIPES[recipe]
    if recipe.endswith(".json"):
        from lexent import recipe_files

        return recipe_files.read(recipe)
    near = get_close_matches(recipe, RECIPES, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    raise NotFoundError(f'no recipe named "{recipe}"{hint} recipes: {", ".join(RECIPES)}')
