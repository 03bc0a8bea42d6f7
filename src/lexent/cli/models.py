"""Options that choose a language model, and what is said before it costs anything."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from lexent.cli.console import say
from lexent.cli.option_groups import option_group
from lexent.errors import InputError

if TYPE_CHECKING:
    from lexent.lexicon.endpoint import Endpoint
    from lexent.lexicon.labelling import Estimate

PANEL = "Language model (any OpenAI-compatible endpoint)"
KEY = "OPENAI_API_KEY"

BaseUrl = Annotated[
    str,
    typer.Option(
        "--base-url",
        metavar="URL",
        envvar="OPENAI_BASE_URL",
        help="The endpoint, up to /chat/completions, such as http://127.0.0.1:8080/v1.",
        rich_help_panel=PANEL,
    ),
]
KeyEnv = Annotated[
    str,
    typer.Option("--key-env", metavar="NAME", help="The environment variable with the key.", rich_help_panel=PANEL),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=1, help="Seconds that one request may take.", rich_help_panel=PANEL)
]
Retries = Annotated[
    int,
    typer.Option("--retries", min=0, help="Tries after a failure that may pass, longer apart.", rich_help_panel=PANEL),
]
Concurrency = Annotated[
    int, typer.Option("--concurrency", min=1, help="Requests under way at a time.", rich_help_panel=PANEL)
]
PriceIn = Annotated[
    float | None,
    typer.Option("--price-in", min=0, help="Price of a million tokens sent, for the estimate.", rich_help_panel=PANEL),
]
PriceOut = Annotated[
    float | None,
    typer.Option("--price-out", min=0, help="Price of a million tokens answered.", rich_help_panel=PANEL),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Go on without asking once the cost is told.")]

OPENAI = "https://api.openai.com/v1"


@option_group
@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Where a language model is reached, and what its answers cost."""

    base_url: BaseUrl = OPENAI
    key_env: KeyEnv = KEY
    price_in: PriceIn = None
    price_out: PriceOut = None
    concurrency: Concurrency = 4
    timeout: Timeout = 120.0
    retries: Retries = 6
    yes: Yes = False

    def of(self, model: str) -> Endpoint:
        """The endpoint for a model."""
        from lexent.lexicon.endpoint import Endpoint, is_local

        key = os.environ.get(self.key_env, "").strip() or None
        if key is None and self.key_env != KEY:
            raise InputError(
                f'the environment variable "{self.key_env}" is empty; set it to the key, or leave --key-env out'
            )
        if key is not None and self.base_url.startswith("http://") and not is_local(self.base_url):
            say(f"note     the key goes to {self.base_url} unencrypted; https would hide it")
        return Endpoint(self.base_url, model, key=key, timeout=self.timeout, retries=self.retries)

    def prices(self) -> dict[str, float | None]:
        """Prices of a million tokens, for an estimate."""
        return {"price_in": self.price_in, "price_out": self.price_out}


def agree(estimate: Estimate, *, model: str, yes: bool) -> None:
    """Tell what a run will take, and go on only when that is wanted."""
    say(describe(estimate, model))
    if yes or not estimate.requests:
        return
    if not sys.stdin.isatty():
        raise InputError(
            f"{estimate.requests:,} requests to {model} were not agreed to, and there is no terminal to ask on; "
            "type the same command with --yes"
        )
    typer.confirm("go on?", abort=True, err=True)


def describe(estimate: Estimate, model: str) -> str:
    """What a run will ask of a model, in one line."""
    kept = f", {estimate.answered:,} already answered" if estimate.answered else ""
    cost = "" if estimate.cost is None else f", at most {estimate.cost:,.2f} at the given prices"
    return (
        f"asks     {model}: {estimate.requests:,} requests{kept}, about {estimate.prompt_tokens:,} tokens sent and up "
        f"to {estimate.completion_tokens:,} answered{cost}"
    )
