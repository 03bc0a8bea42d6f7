"""lexent mcp: tools for agents, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lexent.cli import options


def mcp(
    paths: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Indexes, folders that `lexent index` made.")],
    models: options.IndexModels,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Let the agent add documents, and replace those of the same id.")
    ] = False,
    wait: options.Wait = 0.0,
) -> None:
    """Let an agent search indexes, by the Model Context Protocol.

    The agent's program starts this command and speaks with it over stdin and stdout. It can search, explain ranks, find
    concepts and steer; and add documents, with --allow-writes.
    """
    from lexent.integrations.mcp import IndexTools, serve

    serve(IndexTools(paths, wait=wait, **vars(models)), allow_writes=allow_writes)
