"""docs/get-started.md: its file is indexed, its commands, request and Python are run, and print what the page shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import markdown
from commands import good
from markdown import ROOT

PAGE = ROOT / "docs" / "get-started.md"
BLOCKS = markdown.split(PAGE.read_text())[0]
SHOWN = [block.text for block in BLOCKS if block.language == "text"]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder that the reader works in, and what each of the page's commands prints there."""
    folder = tmp_path_factory.mktemp("start")
    (notes,) = [block.text for block in BLOCKS if block.language == "csv"]
    (folder / "notes.csv").write_text(notes)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in markdown.commands(PAGE, "lexent"):
            if command.whole and command.words[0] != "serve":
                found[shlex.join(command.words)] = good(*command.words).stdout
    return folder, found


def lines(text: str) -> list[tuple[str, float]]:
    """Hits and concepts in their order, each with its number: a score, or what the concept adds."""
    found = re.findall(r"^ +\d+ +([\d.]+)  strength [\d.]+  (n\d) ", text, re.MULTILINE)
    hits = [(key, float(score)) for score, key in found]
    concepts = re.findall(r"█ +([+-]?[\d.]+)  (#\d+|[a-z]+)", text)
    return hits + [(key, float(value)) for value, key in concepts]


def test_every_command_runs(printed: tuple[Path, dict[str, str]]) -> None:
    _, found = printed
    assert [line.split()[0] for line in found] == [
        "doctor",
        "index",
        "search",
        "search",
        "search",
        "explain",
        "search",
        "concepts",
    ]
    assert "dementia" in next(text for line, text in found.items() if line.startswith("concepts"))


def test_commands_print_what_the_page_shows(printed: tuple[Path, dict[str, str]]) -> None:
    """The same hits and concepts; numbers may differ a little, since some processors compute in bfloat16."""
    _, found = printed
    commands = [line for line in found if line.endswith("-k 2") or line.startswith("explain") or "--boost" in line]
    assert len(commands) == len(SHOWN) == 3
    for line, shown in zip(commands, SHOWN, strict=True):
        wanted, given = (dict(reversed(lines(text))) for text in (shown, found[line]))  # the first of each name
        assert len(wanted) > 1
        assert wanted.keys() <= given.keys(), line
        assert [key for key in given if key in wanted and re.match(r"n\d", key)] == [
            key for key in wanted if re.match(r"n\d", key)
        ]
        for key, value in wanted.items():
            assert given[key] == pytest.approx(value, rel=0.1, abs=0.1), f"{line}: {key}"


def test_the_request_and_the_python_answer_alike(
    printed: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from serving import serving

    folder, _ = printed
    monkeypatch.chdir(folder)
    (request,) = markdown.commands(PAGE, "curl")
    path = next(word for word in request.words if word.startswith("localhost")).removeprefix("localhost:7777")
    body = json.loads(request.words[-1])
    with serving([folder / "notes.lexent"], encoder=None, lexicon=None) as client:
        reply = client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    (code,) = markdown.python(PAGE)
    found: dict[str, Any] = {}
    exec(code, found)
    ids = [hit.id for hit in found["hits"]]
    assert ids == ["n1", "n2"] == [hit["id"] for hit in reply.json()["hits"]]
    assert "1 n1" in capsys.readouterr().out
