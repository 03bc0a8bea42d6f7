"""lexent fuse: several run files become one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lexent.cli import options
from lexent.cli.console import Output, command
from lexent.cli.option_groups import option_group
from lexent.errors import InputError

Fusions = Literal["rrf", "sum"]
FusionName = Annotated[
    Fusions, typer.Option("--fusion", help="How --fuse joins them: by reciprocal ranks, or by calibrated scores.")
]
Names = Annotated[str, typer.Option(metavar="NAMES")]


@option_group
class WordFusion:
    """Search by concepts, words and dense vectors, fused."""

    fuse: Names = ""
    """Also search by words (bm25) or by the encoder's own vectors (dense, where the index has them), with commas, and
    fuse the rankings; bm25=0.5 gives a weight."""
    fusion: FusionName = "sum"


@option_group
class SystemFusion:
    """Systems under test, fused."""

    fuse: Names = ""
    """Also fuse each recipe with these: baselines, recipes or run files by name, with commas; dense=0.5 gives a
    weight."""
    fusion: FusionName = "sum"


def fuse(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC run files, two or more.")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Where to write the fused run; .gz packs it.")],
    method: Annotated[
        Fusions, typer.Option("--method", help="Join them by reciprocal ranks, or by calibrated scores.")
    ] = "sum",
    weights: Annotated[
        str, typer.Option("--weights", help="A weight for each run, in their order, with commas. [default: 1 for each]")
    ] = "",
    depth: Annotated[int, typer.Option("--depth", help="How many documents to keep for a query.")] = 1000,
) -> Output:
    """Fuse TREC run files into one.

    Evaluate it with: lexent eval COLLECTION --recipe "" --run RUN
    """
    from lexent.evaluation import runs as trec
    from lexent.evaluation.runs import fused
    from lexent.search.fusion import Fusion

    if len(runs) < 2:
        raise InputError(f"fusion takes two run files or more; given: {len(runs)}")
    if depth < 1:
        raise InputError(f"depth is {depth}; allowed: 1 or more")
    names = [str(path) for path in runs]
    if len(set(names)) < len(names):
        raise InputError("the same run file is given twice; a weight of 2 counts it twice")
    given = options.names_of(weights)
    if given and len(given) != len(runs):
        raise InputError(f"--weights has {len(given)} numbers for {len(runs)} run files; write one for each")
    chosen = Fusion(method, {name: _number(weight, "--weights") for name, weight in zip(names, given, strict=False)})
    found = fused({name: trec.read(name) for name in names}, chosen, depth=depth)
    trec.write(found, out, tag=f"lexent-{method}")
    documents = sum(len(results) for results in found.values())
    return Output(
        {"out": str(out), "method": method, "runs": names, "queries": len(found), "documents": documents},
        [],
        [command("lexent", "eval", "COLLECTION", "--recipe", "", "--run", out)],
        notes=[f"{len(runs)} runs fused: {len(found):,} queries, {documents:,} documents in {out}"],
    )


def weights_of(given: str, *, flag: str) -> dict[str, float | None]:
    """Names with commas between them, each with its weight where it has one: "dense, bm25=0.5"."""
    found: dict[str, float | None] = {}
    for part in options.names_of(given):
        name, equals, weight = part.rpartition("=")
        found[name.strip() if equals else part] = _number(weight, flag) if equals else None
    return found


def _number(text: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f'{flag}: "{text}" is no weight; write a number, for example 0.5') from None
