"""The examples run, and print what they promise."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

import markdown
from markdown import ROOT
from test_docs_run import topic

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *words: str) -> None:
    runpy.run_path(str(EXAMPLES / name))["main"](*words)


def collection(folder: Path) -> Path:
    """A BEIR folder of three documents and two queries."""
    texts = {"a": "Statins did not prevent dementia.", "b": "Wind load on bridges.", "c": "Unpack a zip archive."}
    queries = {"1": "do statins prevent dementia?", "2": "wind on bridges"}
    (folder / "qrels").mkdir()
    for name, rows in (("corpus", texts), ("queries", queries)):
        lines = [json.dumps({"_id": id, "text": text}) + "\n" for id, text in rows.items()]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n")
    return folder


def test_every_example_has_a_test() -> None:
    text = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.glob("*.py") if f'run("{path.name}"' not in text] == []


def test_rag_context_gives_passages_with_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = tmp_path / "notes.csv"
    notes.write_text(
        "id,title,text\n"
        "a,Statins and dementia,In a cohort statins did not prevent dementia.\n"
        "b,Wind,How suspension bridges carry wind load.\n"
    )
    run("rag_context.py", str(notes), "do statins prevent dementia?")
    printed = capsys.readouterr().out
    assert printed.startswith("[a] Statins and dementia")
    assert re.search(r"because: .+ \d\.\d\d, .+ \d\.\d\d", printed)
    assert "[b]" not in printed


def test_rag_citations_prints_what_the_docs_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_core", reason='pip install "lexent[langchain]"')
    rows = [{"id": f"d{n}", "title": topic(n)[0], "text": topic(n)[1], "year": 2012 + n} for n in range(10)]
    (tmp_path / "papers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    run("rag_citations.py", "papers.jsonl", "do statins prevent dementia?")
    blocks, _ = markdown.split((ROOT / "docs/rag.md").read_text())
    (shown,) = (block.text for block in blocks if block.language == "text")
    assert capsys.readouterr().out == shown
    run("rag_citations.py", "papers.jsonl", "who won the football match?")
    assert capsys.readouterr().out == "nothing in papers.jsonl is about this\n"


def test_recipes_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = collection(tmp_path)
    run("compare_recipes.py", str(folder), "latent-terms")
    printed = capsys.readouterr().out
    assert re.search(r"^latent-terms +nDCG@10 [01]\.\d{4} R@100 [01]\.\d{4}", printed, re.MULTILINE)
    assert re.search(r"^bm25 ", printed, re.MULTILINE)


def test_a_concept_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    run("read_a_concept.py", "memory", "Lovastatin slowed memory loss in mice.")
    printed = capsys.readouterr().out
    assert printed.count("    near  ") == 9
    assert "raised by 'memory'" in printed
