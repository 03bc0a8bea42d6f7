"""lexent warm: compile the kernels ahead, for images and machines that many processes start on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from lexent.cli.console import Output, say


def warm() -> Output:
    """Compile the kernels now, once on a machine (about a minute).

    Nothing needs this: small work is done by NumPy, and larger work compiles in the background. It is for images and
    for machines on which many processes start. LEXENT_KERNELS=compiled then lets every step take the kernels.
    """
    seconds: dict[str, float] = {}
    for name, compile_group in _steps():
        start = perf_counter()
        compile_group()
        seconds[name] = round(perf_counter() - start, 2)
        say(f"{name:<10}{seconds[name]:6.1f} s")
    from lexent.kernel_groups import GROUPS

    kept = all(group.is_compiled() for group in GROUPS)
    remedy = "" if kept else "; they are not kept: name a folder that can be written: export NUMBA_CACHE_DIR=FOLDER"
    line = f"warm     {len(seconds)} groups of kernels, {sum(seconds.values()):.1f} s{remedy}"
    return Output({"seconds": seconds, "kept": kept}, [line], ["lexent doctor"], failed=not kept)


def _steps() -> Iterator[tuple[str, Callable[[], object]]]:
    from lexent.kernel_groups import GROUPS

    for group in GROUPS:
        yield group.name, group.compile
    yield "tokens", _tokens


def _tokens() -> None:
    """Kernels of token stores and of MaxSim: an index of a few words, searched once."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from lexent import compiled
    from lexent.encoders import TinyEncoder
    from lexent.engine import Index
    from lexent.lexicon import Lexicon
    from lexent.types import Document

    encoder = TinyEncoder()
    documents = [Document(id=str(number), text=text) for number, text in enumerate(("bread and salt", "stars", "salt"))]
    with TemporaryDirectory() as folder, compiled.forced("compiled"):
        place = Path(folder) / "warm.lexent"
        with Index.build(
            documents, out=place, recipe="ssr", encoder=encoder, lexicon=Lexicon.random(encoder, size=96)
        ) as index:
            for mode in ("exact", "fast"):
                index.search("salt", mode=mode)
