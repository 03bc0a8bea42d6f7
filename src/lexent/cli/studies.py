"""What the verbs that study a test collection share: their arguments, and how they write numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from lexent import undefined
from lexent.errors import InputError

CollectionName = Annotated[
    str,
    typer.Argument(
        metavar="COLLECTION", help="A BEIR folder (corpus.jsonl, queries.jsonl, qrels/), or an ir_datasets id."
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        help="The judgements to use, such as test, dev or train. Default: those that an ir_datasets id names, else "
        "test.",
        show_default=False,
    ),
]
TrainSplit = Annotated[
    str | None,
    typer.Option(
        "--split",
        help="The judgements to learn from, such as train or dev; a test split is refused. Default: those that an "
        "ir_datasets id names, else train.",
        show_default=False,
    ),
]


def numbers_of(given: str, flag: str) -> list[int]:
    """Whole numbers with commas between them."""
    try:
        return [int(part) for part in given.split(",") if part.strip()]
    except ValueError:
        raise InputError(f'{flag} "{given}" is not integers with commas; write {flag} 32,64,128') from None


def p_value(value: float | None) -> str:
    """A p-value as it is read; nothing where there is none."""
    return "<0.001" if value is not None and value < 0.001 else undefined.shown(value, ".3f")
