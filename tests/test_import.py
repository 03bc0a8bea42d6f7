"""`import lexent` is cheap, and its names are there when they are used."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

import pytest

import lexent

HEAVY = ("torch", "numba", "numpy", "scipy", "pydantic", "sentence_transformers", "transformers", "rich", "typer")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_nothing_heavy() -> None:
    found = python(f"import lexent, sys; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert found == "[]"


def test_import_is_quick() -> None:
    def seconds(code: str) -> float:
        start = perf_counter()
        python(code)
        return perf_counter() - start

    spent = min(seconds("import lexent") for _ in range(5)) - min(seconds("pass") for _ in range(5))
    assert spent < 0.3


def test_cli_help_loads_nothing_heavy() -> None:
    heavy = [name for name in HEAVY if name not in ("rich", "typer")]
    code = f"import lexent.cli, sys; print([name for name in {heavy!r} if name in sys.modules])"
    assert python(code) == "[]"


def test_every_public_name_can_be_had() -> None:
    for name in lexent.__all__:
        assert getattr(lexent, name) is not None
    assert set(lexent.__all__) <= set(dir(lexent))


def test_names_are_what_they_say() -> None:
    from lexent.engine import Index
    from lexent.models import load_encoder

    assert lexent.Index is Index
    assert lexent.open == Index.open
    assert lexent.load_encoder is load_encoder
    assert isinstance(lexent.__version__, str)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match=r'no attribute "serch"; it has: .*Index'):
        _ = lexent.serch


def test_index_function_reads_files(tmp_path) -> None:
    from small import lexicon

    source = tmp_path / "notes.csv"
    source.write_text("key,body\na,flour and yeast\nb,stars and planets\n")
    seen: list[int] = []
    with lexent.index(
        source, out=tmp_path / "notes.lexent", encoder="tiny", lexicon=lexicon(), id="key", progress=seen.append
    ) as index:
        assert {hit.id for hit in index.search("yeast")} >= {"a"}
    assert sum(seen) == 2
    again = lexent.open(tmp_path / "notes.lexent", lexicon=lexicon())
    assert len(again) == 2
