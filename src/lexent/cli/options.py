"""Options that several verbs share, each declared once. Recipe settings take their help from the recipe's fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from lexent.cli.option_groups import OptionGroup, Settings, option_group, settings_group
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.recipes import Recipe

Number = TypeVar("Number", int, float)
OnError = Literal["stop", "skip"]
RECIPE_PANEL = "Recipe settings (what is not given stays as it is)"
RecipeName = Annotated[
    str, typer.Option("--recipe", help="The recipe, which names a choice for each stage: a name, or a file of `tune`.")
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME_OR_DIR",
        help="A sentence-transformers id or a local folder. [default: the embedded all-MiniLM-L6-v2]",
    ),
]
IndexPath = Annotated[Path, typer.Argument(metavar="DIR", help="The index: a folder that `lexent index` made.")]
QueryText = Annotated[str, typer.Argument(metavar="QUERY", help="What to search for, in plain words.")]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Stay within this much memory while documents are packed, for example 2GB; the encoder's comes on top.",
    ),
]
Wait = Annotated[
    float,
    typer.Option(
        "--wait", metavar="SECONDS", min=0, help="While another process writes to the index: wait for it so long."
    ),
]
Hits = Annotated[int, typer.Option("-k", "--hits", help="How many documents to give.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what stands at --out once the new one is whole.")]
CollectionName = Annotated[
    str,
    typer.Argument(
        metavar="COLLECTION", help="A BEIR folder (corpus.jsonl, queries.jsonl, qrels/), or an ir_datasets id."
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        help="The judgements to use, such as test, dev or train. [default: those that an ir_datasets id names, else "
        "test]",
    ),
]
TrainSplit = Annotated[
    str | None,
    typer.Option(
        help="The judgements to learn from, such as train or dev; a test split is refused. [default: those that an "
        "ir_datasets id names, else train]",
    ),
]
Texts = Annotated[int, typer.Option("--sample", min=10, help="Look at this many texts at most, drawn evenly from all.")]
Seed = Annotated[int, typer.Option("--seed", help="Another number draws other texts and examples.")]
Column = Annotated[str | None, typer.Option(metavar="COLUMN")]
Name = Annotated[str | None, typer.Option(metavar="NAME_OR_DIR")]


@option_group
class TextReading:
    """How files are read: which columns hold the text and the title, the encoding, and what a bad row does."""

    text: Column = None
    """The column that holds the text; doc.body is a key within a column."""
    title: Column = None
    """The column that holds the title; "" for none."""
    encoding: Annotated[str | None, typer.Option(metavar="NAME")] = None
    """The encoding of text files, for example cp1252. [default: that of a byte order mark, else utf-8]"""
    on_error: Annotated[OnError, typer.Option("--on-error")] = "stop"
    """What a bad row or file does: stop ends the command, skip leaves it out and reports it."""


@option_group
class Reading(TextReading):
    """How files are read, and which column holds the id."""

    id: Column = None
    """The column that holds the id; "" numbers the rows."""


@option_group
class Models:
    """The encoder and the lexicon to use."""

    encoder: EncoderName = None
    lexicon: Name = None
    """A lexicon's folder, or the name of a shipped one. [default: the shipped one of the encoder]"""


@option_group
class IndexModels:
    """Where the encoder and the lexicon of an index are now."""

    encoder: Name = None
    """Where the index's encoder is now, if it moved; it must be the one it was built with."""
    lexicon: Name = None
    """Where the index's lexicon is now, if it moved; it must be the one it was built with."""
    trust_encoder: Annotated[bool, typer.Option("--trust-encoder")] = False
    """Let the encoder that the index names be downloaded, and run code."""


@option_group
class Steering:
    """Concepts of a query that are turned up, down or off."""

    boost: Annotated[list[str] | None, typer.Option(metavar="NAME=FACTOR")] = None
    """Multiply a concept of the query, or add one it lacks: 'zip=2' doubles, 'zip=0.5' halves. Repeatable."""
    drop: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    """Search without a concept: a name, a word of it, or #ID. Repeatable."""

    def factors(self) -> dict[str | int, float]:
        """Factors by concept, from --boost "name=2" and --drop "name"."""
        factors: dict[str | int, float] = {}
        for given in self.boost or []:
            name, equals, factor = given.rpartition("=")
            try:
                if not equals or not name.strip():
                    raise ValueError
                factors[name.strip()] = float(factor)
            except ValueError:
                raise InputError(
                    f'--boost "{given}" has no name and factor; write --boost "NAME=2" to double a concept, '
                    '"NAME=0.5" to halve it'
                ) from None
        for name in self.drop or []:
            if not name.strip():
                raise InputError('--drop "" names no concept; write --drop "NAME"')
            factors[name.strip()] = 0.0
        return factors


def numbers_of(kind: Callable[[str], Number], flag: str, example: str, given: str) -> tuple[Number, ...]:
    """Numbers with commas between them. kind: int or float; example: what the message says to write."""
    try:
        return tuple(kind(part) for part in names_of(given))
    except ValueError:
        what = "integers" if kind is int else "numbers"
        raise InputError(f'{flag} "{given}" is not {what} with commas between; write {flag} {example}') from None


def _recipe_group(name: str, *names: str) -> OptionGroup:
    convert = {"buckets": partial(numbers_of, float, "--buckets", "0.66,0,1")}
    flags = {"k": "--sae-k", "whole": "--whole-weight"}
    return settings_group(
        "recipes.py", name, names, panel=RECIPE_PANEL, flags=flags, convert=convert, with_defaults=False
    )


_WEIGHTING = _recipe_group("BM25", "k1", "b", "idf", "k2", "formula")
_RETUNABLE = (
    "query_k", "function_words", "emphasis", "power", "query_power", "document_cap", "query_cap", "prune", "adaptive_k",
    "whole", "buckets", "predicted", "fast", "words", "rarity",
)  # fmt: skip
RETUNABLE = _WEIGHTING + _recipe_group("Recipe", *_RETUNABLE)
"""Settings of a recipe that can change on an existing index."""
RECIPE = _WEIGHTING + _recipe_group("Recipe", "k", *_RETUNABLE, "language")
"""Settings of a recipe that can be given beside its name."""


@option_group
class Passages:
    """How long documents are cut."""

    PANEL = RECIPE_PANEL
    passages: Annotated[str | None, typer.Option(metavar="TOKENS[,OVERLAP]")] = None
    """Cut documents into passages of at most so many tokens, of which the last sentences, up to so many, stand again in
    the next one. [default: what the encoder reads, 32]"""
    whole_texts: Annotated[bool, typer.Option("--whole")] = False
    """Do not cut documents: the encoder reads the beginning of each."""

    def settings(self) -> Settings:
        """As settings of a recipe."""
        if self.passages is None:
            return {"whole_texts": True} if self.whole_texts else {}
        if self.whole_texts:
            raise InputError("--passages cuts documents and --whole does not; leave one of them out")
        numbers = numbers_of(int, "--passages", "200,32", self.passages)
        if not 1 <= len(numbers) <= 2:
            raise InputError(f'--passages "{self.passages}" has {len(numbers)} numbers; write --passages 200,32')
        return dict(zip(("passage_tokens", "passage_overlap"), numbers, strict=False))


def recipe_of(name: str, settings: Settings, passages: Passages | None = None) -> Recipe:
    """The recipe of that name, with the settings that were given."""
    from lexent import recipes

    return recipes.get(name).changed(**settings, **({} if passages is None else passages.settings()))


def names_of(given: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in given.split(",") if name.strip()]


def bytes_of(size: str | None) -> int | None:
    """Bytes from "2GB", "500 MB" or a bare number."""
    if size is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", size, re.IGNORECASE)
    amount = 0.0
    if found:
        power = " KMGT".index(found[2].upper() or " ")
        amount = float(found[1]) * (1024 if found[3] else 1000) ** power
    if amount < 1e7:
        raise InputError(f'--memory "{size}" is not a size of 10MB or more; write it as 2GB or 500MB')
    return int(amount)


def checked_query(query: str) -> str:
    """The query, refused where the terminal gave bytes that are no text."""
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the query holds bytes that are not UTF-8 (at character {error.start + 1}); set the terminal to UTF-8"
        ) from None
    return query
