"""Running the command line in tests: within this process, or as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from lexent.cli import app
from lexent.encoders import TinyEncoder
from lexent.lexicon import Lexicon
from small import documents


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def good(*words: object) -> Result:
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return result


def data(*words: object) -> Any:
    """What a verb prints with --json: JSON and nothing else."""
    return json.loads(good(*words, "--json").stdout)


def program(*words: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lexent", *(word if isinstance(word, bytes) else str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **settings)


def tiny(place: Path) -> list[str]:
    """The options that choose the tiny encoder and its lexicon."""
    return ["--encoder", "tiny", "--lexicon", str(place / "lexicon")]


def furnished(folder: Path) -> Path:
    """A folder with a corpus, a lexicon and an index."""
    rows = [{"_id": doc.id, "title": doc.title, "text": doc.text, "year": 2000} for doc in documents(40)]
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Lexicon.random(TinyEncoder(), size=96).save(folder / "lexicon")
    good("index", folder / "docs.jsonl", "--out", folder / "docs.lexent", *tiny(folder))
    return folder
