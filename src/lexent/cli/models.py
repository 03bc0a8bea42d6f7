"""Options that choose a language model, and the estimate that is shown before it costs anything."""

from __future__ import annotations

import os
import sys
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
OPENAI = "https://api.openai.com/v1"


@option_group
class EndpointOptions:
    """Where a language model is reached, and what its answers cost."""

    PANEL = PANEL
    SETTINGS = ("lexicon/endpoint.py", "Endpoint")
    base_url: Annotated[str, typer.Option(metavar="URL", envvar="OPENAI_BASE_URL")] = OPENAI
    """The endpoint, up to /chat/completions, such as http://127.0.0.1:8080/v1."""
    key_env: Annotated[str, typer.Option(metavar="NAME")] = KEY
    """The environment variable with the key."""
    price_in: Annotated[float | None, typer.Option(min=0)] = None
    """Price of a million tokens sent, for the estimate."""
    price_out: Annotated[float | None, typer.Option(min=0)] = None
    """Price of a million tokens answered."""
    concurrency: Annotated[int, typer.Option(min=1)] = 4
    """Requests under way at a time."""
    timeout: Annotated[float, typer.Option(min=1)] = 120.0
    retries: Annotated[int, typer.Option(min=0)] = 6
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Go on without asking once the cost is shown.")] = False

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
    """Show what a run will cost, and continue only when the user agrees."""
    kept = f", {estimate.answered:,} already answered" if estimate.answered else ""
    price = "" if estimate.cost is None else f", at most {estimate.cost:,.2f} at the given prices"
    say(
        f"asks     {model}: {estimate.requests:,} requests{kept}, about {estimate.prompt_tokens:,} tokens sent and up "
        f"to {estimate.completion_tokens:,} answered{price}"
    )
    if yes or not estimate.requests:
        return
    if not sys.stdin.isatty():
        raise InputError(
            f"{estimate.requests:,} requests to {model} were not agreed to, and there is no terminal to ask on; "
            "type the same command with --yes"
        )
    typer.confirm("go on?", abort=True, err=True)
