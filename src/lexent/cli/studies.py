"""What the verbs that study a test collection share: their arguments, and how they write numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from lexent.errors import InputError

CollectionName = Annotated[
    str,
    typer.Argument(
        metavar="COLLECTION", help="A BEIR folder (corpus.jsonl, queries.jsonl, qrels/), or an ir_datasets id."
    ),
]
Split = Annotated[str, typer.Option("--split", help="The judgements to use, such as test, dev or train.")]


def numbers_of(given: str, flag: str) -> list[int]:
    """Whole numbers with commas between them."""
    try:
        return [int(part) for part in given.split(",") if part.strip()]
    except ValueError:
        raise InputError(f'{flag} "{given}" is not whole numbers with commas; write {flag} 32,64,128') from None


def p_value(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"
