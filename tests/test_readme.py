"""The README's commands exist and its Python runs, on the embedded encoder and lexicon."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer

from lexent.cli import app

README = Path(__file__).parent.parent / "README.md"


def blocks(kind: str) -> list[str]:
    """The fenced blocks of a kind; "" for those that name none."""
    fences = re.split(r"^```(\w*)\n", README.read_text(), flags=re.MULTILINE)
    # text, opening fence, block, closing fence, text, ...
    return [fences[at + 1] for at in range(1, len(fences) - 1, 4) if fences[at] == kind]


def commands() -> list[list[str]]:
    lines = [line for block in blocks("") for line in block.splitlines() if line.startswith("lexent ")]
    inline = re.findall(r"`(lexent [a-z]+ [^`]*)`", README.read_text())
    return [shlex.split(line, comments=True)[1:] for line in [*lines, *inline]]


def test_there_are_commands_to_check() -> None:
    assert len(commands()) > 6


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_command_is_one_that_exists(words: list[str]) -> None:
    node = typer.main.get_command(app)
    while words and hasattr(node, "commands") and words[0] in node.commands:
        node, words = node.commands[words[0]], words[1:]
    assert not hasattr(node, "commands"), f"no verb {words[:1]}"
    known = {option for parameter in node.params for option in parameter.opts}
    given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= known


def test_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    papers = [
        {
            "id": "a",
            "title": "Statins and dementia",
            "text": "In a cohort, statins did not prevent dementia.",
            "year": 2019,
        },
        {"id": "b", "title": "A mouse model", "text": "In mice, lovastatin lowered cholesterol.", "year": 2012},
        {"id": "c", "title": "Bridges", "text": "How suspension bridges carry wind load.", "year": 2020},
    ]
    (tmp_path / "papers.jsonl").write_text("".join(json.dumps(paper) + "\n" for paper in papers))
    folder = tmp_path / "collection"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": paper["id"], "title": paper["title"], "text": paper["text"]} for paper in papers]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "do statins prevent dementia?"}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    found: dict[str, object] = {}
    exec(code.replace("path/to/a/BEIR/folder", str(folder)), found)
    hits = found["hits"]
    assert hits[0].id == "a"  # type: ignore[index]
    assert sum(part.value for part in hits[0].explain().contributions) == pytest.approx(hits[0].score, abs=1e-5)  # type: ignore[index]
    assert found["report"].systems["latent-terms"]["nDCG@10"] == 1.0  # type: ignore[attr-defined]
    assert "Statins and dementia" in capsys.readouterr().out
