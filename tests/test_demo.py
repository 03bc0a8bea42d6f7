"""The demo: what it collects, and the whole of it on the tiny encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lexent.cli import app
from lexent.demo import QUESTIONS, ask, collect, docstrings, open_library
from lexent.encoders import TinyEncoder
from lexent.errors import NotFoundError
from lexent.lexicon import Lexicon, shipped
from lexent.types import Document


@pytest.fixture(scope="module")
def entries() -> list[Document]:
    return collect()


def test_collects_the_library(entries: list[Document]) -> None:
    ids = [document.id for document in entries]
    assert 2000 <= len(ids) <= 3000
    assert ids == sorted(set(ids))
    known = {"difflib.get_close_matches", "statistics.median", "gzip.open", "shutil.rmtree", "os.walk", "json.dumps"}
    assert known <= set(ids)


def test_entries_are_public_and_of_readable_length(entries: list[Document]) -> None:
    for document in entries:
        assert not any(part.startswith("_") for part in document.id.split("."))
        assert docstrings.MIN_CHARS <= len(document.text) <= docstrings.MAX_CHARS + 2
        assert document.title.startswith(document.id)
        assert "\n" not in document.text
    assert not {"test", "idlelib", "lib2to3", "turtledemo"} & {document.id.split(".")[0] for document in entries}


def test_titles_have_signatures(entries: list[Document]) -> None:
    titles = {document.id: document.title for document in entries}
    assert titles["difflib.get_close_matches"] == "difflib.get_close_matches(word, possibilities, n, cutoff)"
    assert titles["json.dumps"].startswith("json.dumps(obj, *, skipkeys")


def test_selection_is_the_same_each_time_and_keeps_the_outermost(entries: list[Document]) -> None:
    few = collect(limit=50)
    assert few == collect(limit=50)
    assert not any("(" in document.title for document in few)  # modules come first
    assert {document.id for document in few} <= {document.id for document in entries}


def test_sources_that_do_not_parse_and_repeated_texts_are_left_out(tmp_path: Path) -> None:
    text = "A docstring that is long enough to be kept, said twice."
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").write_text(f'"""{text}"""\ndef _hidden(): "{text} Or thrice."\n')
    (tmp_path / "csv.py").write_text(f'"""{text}"""\n__all__ = ["a"]\ndef a(x, *y, z=1, **w): "{text} But not here."\n')
    (tmp_path / "ast.py").write_text("def broken(:\n")
    (tmp_path / "mine.py").write_text(f'"""{text} This is no module of the library."""\n')
    assert [document.title for document in collect(tmp_path)] == ["csv", "csv.a(x, *y, z, **w)"]


def test_no_sources_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no Python sources"):
        collect(tmp_path)


@pytest.fixture(scope="module")
def tiny_lexicon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Lexicon.random(TinyEncoder(), size=512).save(tmp_path_factory.mktemp("lexicon") / "tiny")


def demo(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["demo", *words])
    return result.exit_code, result.stdout, result.stderr


def test_whole_demo_on_the_tiny_encoder(tiny_lexicon: Path, cache_folder: Path) -> None:
    options = ("--encoder", "tiny", "--lexicon", str(tiny_lexicon), "--entries", "300")
    code, out, err = demo(*options)
    assert code == 0, err
    for question in QUESTIONS:
        assert question.text in out
    assert "█" in out
    assert "again, with --boost" in out
    assert "the ranking" in out
    path = next((cache_folder / "demo").glob("python-*.lexent"))
    assert f"next  lexent search {path}" in err
    assert "docstrings of Python" in err

    code, out, err = demo(*options, "--query", "dates and times", "-k", "2", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["index"] == str(path)
    assert found["documents"] == 300
    assert [answer["query"] for answer in found["answers"]] == ["dates and times"]
    assert len(found["answers"][0]["hits"]) == 2
    assert "indexed already" in err


def test_index_that_cannot_be_kept_goes_to_a_temporary_folder(
    tiny_lexicon: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lexent.lexicon import load

    (tmp_path / "file").touch()
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said: list[str] = []
    library = open_library(encoder=TinyEncoder(), lexicon=load(tiny_lexicon), say=said.append, limit=20)
    assert len(library.index) == 20
    assert library.index.path.is_relative_to(tmp_path)
    assert any("using" in line for line in said)


def test_steering_moves_the_ranking(tiny_lexicon: Path) -> None:
    from lexent.lexicon import load

    library = open_library(encoder=TinyEncoder(), lexicon=load(tiny_lexicon), say=lambda _: None, limit=300)
    plain, steered = ask(library.index, QUESTIONS[-1], k=20)
    assert not plain.steer
    assert steered.steer
    assert [hit.id for hit in plain.results] != [hit.id for hit in steered.results]


@pytest.mark.skipif(not shipped(), reason="no shipped lexicon yet")
def test_real_demo_answers_well() -> None:
    code, out, err = demo("--json")
    assert code == 0, err
    found = json.loads(out)
    best = [[hit["id"] for hit in answer["hits"]] for answer in found["answers"]]
    assert "difflib.get_close_matches" in best[0]
    assert best[1][0].startswith("statistics.median")
    assert best[2] != best[3], "steering changes the ranking"
    assert any("zip" in hit for hit in best[3])
    for answer in found["answers"]:
        for hit in answer["hits"]:
            parts = sum(part["value"] for part in hit["contributions"])
            assert parts + hit["rest"] == pytest.approx(hit["score"], abs=1e-5)
