"""A recipe names one choice for each stage of the pipeline. The papers are recipes, not code paths."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

from lexent import arguments
from lexent.artifact import disk_errors, write_json
from lexent.errors import InputError, NotFoundError
from lexent.types import Kind, Language, Level, Match

IdfMode = Literal["lucene", "root", "okapi", "okapi-floor0", "clsr", "none"]
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

    def __post_init__(self) -> None:
        arguments.fields_of(self)


ADAPTIVE_K, LONG_K = ((3, 16), (7, 32)), 64
"""With adaptive_k: queries of at most so many tokens have so many latents a state; longer ones have the last."""
WEIGHTING = ("k1", "b", "idf", "formula", "k2")
"""The settings of a recipe that its weighting holds."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One choice for each stage: encode, code, pool, weigh, match."""

    name: str
    passage_tokens: int | None = None
    """cut: tokens of a passage at most; as many as the encoder reads where it is left out."""
    passage_overlap: int = 32
    """cut: tokens at the end of a passage that may stand again at the beginning of the next; whole sentences."""
    whole_texts: bool = False
    """cut: one passage a document, of which the encoder reads the beginning."""
    level: Level = "tokens"
    """encode: a state per token, or one per text."""
    specials: bool = True
    """encode: keep the states of special tokens such as [CLS] and [SEP]."""
    punctuation: bool = True
    """encode: keep the states of punctuation. Without them and special tokens, every concept is raised by a word."""
    k: int = 16
    """code: how many latents a state may have; at most what the lexicon was trained for is usual, not required."""
    query_k: int | None = None
    """code: latents that a state of a query is coded with, at most k; k where it is left out."""
    adaptive_k: bool = False
    """code: for maxsim, a query's states have 16 latents where it has up to 3 tokens, 32 up to 7, 64 where more."""
    pool: Pool = "sum"
    """pool: how the codes of a text's tokens become one vector."""
    function_words: float = 0.5
    """pool: weight of function words and punctuation in a query; 1 makes them count as any other word."""
    emphasis: float = 0.5
    """pool: tokens of a query count by the length of their state over the mean, to this power; 0 makes them equal."""
    power: float = 0.5
    """pool: the exponent of the transform after pooling; 0.5 is the square root, 1 the identity."""
    query_power: float | None = 0.7
    """pool: the exponent of queries; that of documents where it is left out."""
    unit: bool = False
    """pool: bring the vector of each text to the length 1, in each of the lexicon's buckets."""
    weighting: BM25 = field(default_factory=BM25)
    """weigh: the scoring formula."""
    document_cap: int | None = None
    """weigh: keep at most this many of a document's strongest latents."""
    query_cap: int | None = None
    """weigh: keep at most this many of a query's strongest latents."""
    binary: bool = False
    """weigh: keep only which concepts a document has: each that the query shares counts 1."""
    buckets: tuple[float, ...] = ()
    """weigh: how much each of the lexicon's buckets counts; all alike where it is left out."""
    predicted: bool = False
    """weigh: let each query decide how much buckets count, as the lexicon has learned (`lexent tune --predict`)."""
    words: float = 0.0
    """weigh: how much words count beside concepts; 0 leaves words out."""
    rarity: float = 2.5
    """weigh: how much rare words count for more than common ones, an exponent of idf; 1 is BM25's."""
    language: Language = "english"
    """index: the language whose stems words are kept by; none keeps words as they are written."""
    prune: float = 0.0
    """weigh: share of the latents, the most frequent ones of the collection, that queries ignore."""
    match: Match = "documents"
    """match: concepts of whole documents, or maxsim: each token of a query and the token of a document most like it."""
    whole: float = 0.0
    """match: for maxsim, weight of the concepts of the whole text, as a share of its tokens'; 0 leaves them out."""
    fast: bool = False
    """match: for maxsim, score only candidates, found by the four strongest concepts of each token: approximate."""

    def __post_init__(self) -> None:
        if not isinstance(self.weighting, BM25):
            raise arguments.refused("weighting", self.weighting, "a lexent.recipes.BM25")
        arguments.fields_of(self)
        arguments.choice("level", self.level, get_args(Level))
        counts = {"passage_tokens": 16, "passage_overlap": 0, "k": 1, "query_k": 1, "document_cap": 1, "query_cap": 1}
        for name, least in counts.items():
            given, none = getattr(self, name), ", or none" if name not in ("passage_overlap", "k") else ""
            allowed = f"from {least} to {arguments.HIGHEST_COUNT:,}{none}"
            _check(given is None or least <= given <= arguments.HIGHEST_COUNT, name, given, allowed)
        _check(0 <= self.function_words <= 1, "function_words", self.function_words, "from 0 to 1")
        _check(0 <= self.emphasis <= 4, "emphasis", self.emphasis, "from 0 to 4")
        _check(0.06 <= self.power <= 2, "power", self.power, "from 0.06 to 2")
        other = self.query_power
        _check(other is None or 0 < other <= 2, "query_power", other, "above 0, at most 2, or none")
        most, k2 = arguments.HIGHEST_WEIGHT, self.weighting.k2
        _check(0 <= self.weighting.k1 <= most, "k1", self.weighting.k1, f"from 0 to {most:,}")
        _check(0 <= self.weighting.b <= 4, "b", self.weighting.b, "from 0 to 4")
        _check(k2 is None or 0 < k2 <= most, "k2", k2, f"above 0, at most {most:,}, or none")
        for name, choices in (("formula", Formula), ("idf", IdfMode), ("pool", Pool), ("match", Match)):
            arguments.choice(name, self.setting(name), get_args(choices))
        arguments.choice("language", self.language, get_args(Language))
        _check(0 <= self.words <= 1000, "words", self.words, "from 0 to 1000")
        _check(0 <= self.rarity <= 8, "rarity", self.rarity, "from 0 to 8")
        if self.words:
            _check(self.holds_words, "words", self.words, "0, where match is maxsim or binary is true")
        _check(0 <= self.prune < 1, "prune", self.prune, "from 0 to below 1")
        good = all(0 <= weight <= 100 for weight in self.buckets) and (not self.buckets or any(self.buckets))
        _check(good, "buckets", list(self.buckets), "weights from 0 to 100, not all of them 0")
        _check(not (self.predicted and self.buckets), "buckets", list(self.buckets), "none, where predicted is true")
        if self.binary:
            _check(self.match == "documents", "match", self.match, "documents, where binary is true")
            formula = self.weighting.formula
            _check(formula == "count", "formula", formula, "count, where binary is true: documents have no values")
        self._check_match()

    def _check_match(self) -> None:
        """MaxSim compares codes of tokens as they are stored; nothing may be done to those afterwards."""
        if self.match == "documents":
            for name, off in (("whole", 0), ("adaptive_k", False), ("fast", False)):
                given = getattr(self, name)
                _check(given == off, name, given, f"{str(off).lower()}, unless match is maxsim")
            return
        needed = {"level": "tokens", "pool": "max", "power": 1, "formula": "dot", "document_cap": None}
        for name, value in needed.items():
            given = self.setting(name)
            _check(given == value, name, given, f"{str(value).lower()}, where match is maxsim")
        _check(0 <= self.whole <= 100, "whole", self.whole, "from 0 to 100")

    def k_for(self, kind: Kind, *, tokens: int | None = None) -> int:
        """How many latents a state of a query or of a document may have.

        tokens: how many the query has, without special ones; the most that any query gets where it is not given.
        """
        arguments.whole_or_none("tokens", tokens, least=0)
        if arguments.choice("kind", kind, get_args(Kind)) == "document":
            return self.k
        if not self.adaptive_k:
            return min(self.query_k or self.k, self.k)
        found = LONG_K if tokens is None else next((k for most, k in ADAPTIVE_K if tokens <= most), LONG_K)
        return min(found, self.query_k or found)

    def power_for(self, kind: Kind) -> float:
        """The exponent of the transform for a query or for a document."""
        arguments.choice("kind", kind, get_args(Kind))
        return self.power if kind == "document" or self.query_power is None else self.query_power

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Recipe:
        """The recipe that `to_dict` gave."""
        arguments.mapping("values", values, allowed="what Recipe.to_dict gave")
        try:
            buckets = tuple(values.get("buckets", ()))
            return Recipe(**{**values, "buckets": buckets, "weighting": BM25(**values["weighting"])})
        except (KeyError, TypeError) as error:
            raise InputError(f"values are no recipe ({error}); allowed: what Recipe.to_dict gave") from error

    @property
    def holds_words(self) -> bool:
        """Whether the posting lists of its indexes can hold words: by MaxSim they hold codes of tokens."""
        return self.match == "documents" and not self.binary

    @property
    def winners(self) -> bool:
        """Whether it is meant for a lexicon of winners (UHD)."""
        return self.binary or self.unit

    def changed(self, **settings: Any) -> Recipe:
        """This recipe with other settings; those that are None stay. k1, b, idf and others reach into the weighting."""
        return self.having(**{name: value for name, value in settings.items() if value is not None})

    def having(self, **settings: Any) -> Recipe:
        """As `changed`, but None is a value as any other: it takes a cap away."""
        for name in settings:
            self._known(name)
        formula = {name: settings.pop(name) for name in WEIGHTING if name in settings}
        return replace(self, weighting=replace(self.weighting, **formula), **settings)

    def setting(self, name: str) -> Any:
        """The value of a setting of the recipe or of its weighting."""
        self._known(name)
        return getattr(self.weighting if name in WEIGHTING else self, name)

    def _known(self, name: str) -> None:
        """Refuses a name that is no setting."""
        names = [*WEIGHTING, *(field.name for field in fields(self))]
        if arguments.text("the setting", name) not in names:
            raise _no_setting(name, names)


def _no_setting(name: str, names: list[str]) -> InputError:
    near = get_close_matches(name, names, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return InputError(f'no setting "{name}"; {hint}settings: {", ".join(names)}')


def _check(good: bool, name: str, given: object, allowed: str) -> None:
    if not good:
        raise InputError(f"{name} is {given}; allowed: {allowed}")


TUNABLE = (
    *("k1", "b", "idf", "formula", "k2", "power", "query_power", "function_words", "emphasis", "query_k"),
    *("document_cap", "query_cap", "buckets", "predicted", "words", "rarity", "prune", "adaptive_k", "whole", "fast"),
)
"""Settings that can change without encoding the documents again."""


def retuned(recipe: Recipe, settings: dict[str, Any]) -> Recipe:
    """The recipe of an existing index with other settings; those that need its documents encoded again are refused."""
    arguments.mapping("settings", settings, allowed='settings, such as {"k1": 3, "b": 0.4}')
    again = "build it again: lexent index CORPUS --out DIR --overwrite"
    for name in settings:
        if name not in TUNABLE:
            allowed = ", ".join(TUNABLE)
            raise InputError(f'"{name}" cannot change on an existing index; what can: {allowed}; for others {again}')
    for name in ("formula", "document_cap"):
        given, own = settings.get(name), recipe.setting(name)
        if recipe.binary and given is not None and given != own:
            raise InputError(
                f"{name} is {given}, but the index is binary: it keeps which concepts a document has and not how "
                f"strongly; allowed: {'none' if own is None else own}, as it was built; for another {again}"
            )
    changed = recipe.changed(**settings)
    old, new = recipe.document_cap, changed.document_cap
    if old is not None and (new is None or new > old):
        raise InputError(
            f"document_cap is {new}, but the index keeps only {old} concepts a document; allowed: at most {old}; "
            f"for more {again}"
        )
    if (recipe.whole > 0) != (changed.whole > 0):
        has, allowed = ("none", "0") if recipe.whole == 0 else ("them", "above 0")
        raise InputError(
            f"whole is {changed.whole:g}, the weight of concepts of whole texts, but the index was built with {has}; "
            f"allowed: {allowed}; for others {again}"
        )
    return changed


_UNCHANGED: dict[str, Any] = {"power": 1.0, "query_power": None}
"""Pooled values as they are, in documents and in queries."""


def _clsr(name: str, *, k: int, cap: int, weighting: BM25) -> Recipe:
    """Concept-level sparse retrieval: the latents of one pooled state, weighed as they are."""
    return Recipe(name, level="pooled", k=k, **_UNCHANGED, weighting=weighting, document_cap=cap)


def _ssr(name: str, *, whole: float = 0.0, fast: bool = False) -> Recipe:
    """Sparse codes of tokens, each of length 1, compared by MaxSim: the sum over a query's tokens of the best match."""
    weighting = BM25(idf="root", formula="dot")
    return Recipe(name, k=32, pool="max", **_UNCHANGED, weighting=weighting, match="maxsim", whole=whole, fast=fast)


def _uhd(name: str, *, binary: bool) -> Recipe:
    """Winners of ultra-high-dimensional codes, max-pooled: counted, or compared by the cosine."""
    alike = {**_UNCHANGED, "function_words": 1.0, "emphasis": 0.0}  # all tokens of a query
    weighting = BM25(idf="none", formula="count" if binary else "dot")
    return Recipe(name, k=20, query_k=16, pool="max", **alike, unit=not binary, weighting=weighting, binary=binary)


_LATENT_TERMS = Recipe("latent-terms", specials=False, punctuation=False, function_words=0.7, emphasis=0.3)
_ALL = (
    _LATENT_TERMS,
    replace(_LATENT_TERMS, name="hybrid", words=1.75),
    _clsr("clsr", k=128, cap=128, weighting=BM25(k1=2.0, b=1.0, idf="none")),
    _clsr("clsr-efficient", k=32, cap=40, weighting=BM25(k1=1.0, b=1.0, idf="clsr", k2=5.0)),
    _ssr("ssr"),
    _ssr("ssr-cls", whole=0.1),
    _ssr("ssr++", fast=True),
    _uhd("uhd", binary=True),
    _uhd("uhd-real", binary=False),
)
DEFAULT = "hybrid"
"""The recipe where none is given: above `latent-terms` on train queries of SciFact and BoolQ and on LIMIT."""
RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _ALL}


def get(recipe: str | Recipe) -> Recipe:
    """The recipe of that name, or of that JSON file; a recipe is returned as it is."""
    if isinstance(recipe, Recipe):
        return recipe
    arguments.text("recipe", recipe, remedy="a name, a .json file or a lexent.Recipe")
    if recipe in RECIPES:
        return RECIPES[recipe]
    if recipe.endswith(".json"):
        return read(recipe)
    near = get_close_matches(recipe, RECIPES, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    raise NotFoundError(f'no recipe named "{recipe}"{hint} recipes: {", ".join(RECIPES)}')


# --- recipes as JSON files: what `lexent tune --out` writes, and what `--recipe FILE` reads ---------------------------


def write(recipe: Recipe, path: str | Path) -> Path:
    """Beside, then renamed. The recipe takes the file's name, so that both can be compared in one evaluation."""
    place = Path(path)
    if place.suffix != ".json":
        raise InputError(f'a recipe is written to a .json file; given: "{place}"; write for example {place.stem}.json')
    with disk_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        write_json(beside, replace(recipe, name=place.stem).to_dict())
        os.replace(beside, place)
    return place


def read(path: str | Path) -> Recipe:
    """A recipe from its file; whatever is not a setting, or not a value that it may have, is refused by name."""
    place = Path(path)
    if not place.is_file():
        known = ", ".join(RECIPES)
        raise NotFoundError(f'no recipe file "{place}"; write one: lexent tune COLLECTION --out FILE; recipes: {known}')
    try:
        values = json.loads(place.read_bytes())
    except ValueError as error:
        raise InputError(f"{place} is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise InputError(f'{place} holds no recipe; it reads {{"name": "mine", "level": "tokens", "k": 16, ...}}')
    weighting = values.pop("weighting", {})
    if not isinstance(weighting, dict):
        raise InputError(f'{place}: weighting is {weighting!r}; it reads {{"k1": 1.0, "b": 0.4, ...}}')
    try:
        _check_json(values, Recipe)
        _check_json(weighting, BM25)
        return Recipe.from_dict({"name": place.stem, **values, "weighting": weighting})
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


_JSON_TYPES: dict[str, tuple[Any, str]] = {
    "bool": (bool, "true, false"),
    "int": (int, "a whole number"),
    "float": (int | float, "a number"),
    "tuple[float, ...]": (list, "numbers in brackets"),
}


def _check_json(values: dict[str, Any], kind: type[Recipe] | type[BM25]) -> None:
    """Refuses what is no setting of the class, and JSON values of another type; choices the recipe checks itself."""
    annotations = {field.name: str(field.type) for field in fields(kind)}
    for name, value in values.items():
        if name not in annotations:
            raise _no_setting(name, list(annotations))
        annotation, _, optional = annotations[name].partition(" | ")
        json_type, allowed = _JSON_TYPES.get(annotation, (str, "a text"))
        good = isinstance(value, json_type) and isinstance(value, bool) == (annotation == "bool")
        if isinstance(value, list):
            good = good and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)
        if annotation == "Level":
            good, allowed = value in get_args(Level), ", ".join(get_args(Level))
        if not good and not (value is None and optional):
            raise InputError(f"{name} is {value!r}; allowed: {allowed}{', or null' if optional else ''}")
