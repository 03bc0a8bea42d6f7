"""What messages tell people to type: every command exists, with its options, and does what the message says."""

from __future__ import annotations

import ast
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

import lexent
from commands import good, run
from lexent.cli import app
from lexent.cli.train.app import interrupted
from lexent.corpus import read
from lexent.encoders import TinyEncoder
from lexent.errors import InputError, NotFoundError
from lexent.lexicon import Concept, Concepts, Lexicon, LexiconInfo, load
from lexent.training.loop import CHECKPOINT
from lexent.training.reconstruction.trainer import TrainConfig

SOURCE = Path(lexent.__file__).parent
ANY = "X"
"""What stands for a value that is filled in at run time."""


# --- every command inside a message parses -----------------------------------------------------------------------


def texts(tree: ast.AST) -> Iterator[str]:
    """All strings of a file; what an f-string fills in becomes ANY."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else ANY for part in node.values]
            yield "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "command":
            words = [part.value if isinstance(part, ast.Constant) else ANY for part in node.args]
            yield " ".join(str(word) or '""' for word in words)


@cache
def commands() -> list[tuple[str, str]]:
    """Each `lexent VERB ...` of a message, with the file that it stands in."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for text in texts(ast.parse(path.read_text())):
            for match in re.finditer(r"(?<![\w/.\"])lexent (?P<line>[a-z][a-z-]*(?![\w:])[^;`\n]*)", text):
                told = text[: match.start()].rstrip().endswith((":", "`", "with")) or match.start() == 0
                if told and not text.startswith(f"lexent {match['line'].split()[0]}:"):
                    found.append((path.relative_to(SOURCE).as_posix(), match["line"]))
    return found


def parsed(line: str) -> tuple[Any, list[str]]:
    """The command that a line calls, and the options that it is given."""
    command: Any = typer.main.get_command(app)
    words = [word.strip("\"'`,.;:)(") for word in line.split()]
    place = 0
    while place < len(words) and hasattr(command, "commands"):
        assert words[place] in command.commands, f'no verb "{words[place]}"'
        command = command.commands[words[place]]
        place += 1
    return command, [word for word in words[place:] if re.fullmatch(r"--?[a-z][a-z0-9-]*", word)]


def test_messages_hold_commands() -> None:
    assert len(commands()) > 40, "they are found"
    assert {line.split()[0] for _, line in commands()} > {"index", "train", "concepts", "search", "adapt", "tune"}


@pytest.mark.parametrize(("file", "line"), sorted(set(commands())))
def test_every_command_of_a_message_parses(file: str, line: str) -> None:
    command, options = parsed(line)
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert set(options) <= known, f"{file}: lexent {line}"


def test_a_command_that_is_not_there_is_found_out() -> None:
    with pytest.raises(AssertionError, match='no verb "serch"'):
        parsed("serch DIR")
    command, options = parsed("index FILE --overwrit")
    assert not {option for option in options if any(option in one.opts for one in command.params)}


# --- commands that are run ---------------------------------------------------------------------------------------


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", command], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", ["bad.md", "two words.txt", "it's.html"])
def test_the_hint_for_a_file_that_is_not_utf8_reads_its_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "good.md").write_text("flour and yeast")
    (folder / name).write_bytes("caf\xe9 au lait".encode("cp1252"))
    with pytest.raises(InputError, match="--encoding cp1252") as error:
        list(read(folder))
    found = read(folder, encoding=named_encoding(error))
    assert {one.id: one.text for one in found} == {name: "caf\xe9 au lait", "good.md": "flour and yeast"}


@pytest.mark.parametrize("name", ["u.csv", "u.jsonl", "u.md", "u.txt"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "idna", "punycode", "base64"])
def test_an_encoding_that_a_file_has_not(tmp_path: Path, name: str, encoding: str) -> None:
    (tmp_path / name).write_bytes(b"id,text\n1,bread\n# A\n\nbread rises\n")
    for on_error in ("stop", "skip"):
        with pytest.raises(InputError) as caught:
            list(read(tmp_path / name, encoding=encoding, on_error=on_error))
        if encoding in ("utf-16", "utf-32"):
            assert f"--encoding {encoding}-le" in str(caught.value)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le", "utf-16-be"])
def test_the_hint_for_a_table_that_is_not_utf8(tmp_path: Path, packed: bool, encoding: str) -> None:
    import gzip

    path = tmp_path / ("x.csv.gz" if packed else "x.csv")
    content = "id,text\n1,caf\xe9\n".encode(encoding)
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError) as error:
        list(read(path))
    assert [one.text for one in read(path, encoding=named_encoding(error))] == ["caf\xe9"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_hint_for_queries_that_are_not_utf8_mends_them(tmp_path: Path, encoding: str) -> None:
    """Files that have no option for their encoding are converted."""
    from lexent.corpus.lines import lines

    path = tmp_path / "it's.tsv"
    path.write_bytes("q1\tcaf\xe9\n".encode(encoding))
    with pytest.raises(InputError) as error:
        list(lines(path))
    done = shell(str(error.value).partition("beside: ")[2], tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(lines(path)) == [(1, "q1\tcaf\xe9\n")]


def named_encoding(error: pytest.ExceptionInfo[InputError]) -> str:
    return str(error.value).partition('(in Python encoding="')[2].partition('"')[0]


def named(folder: Path) -> Lexicon:
    """A lexicon with names in words."""
    words = ["cholesterol · bile", "zip · archive", *(f"concept {number}" for number in range(94))]
    plain = Lexicon.random(TinyEncoder(), size=96)
    concepts = Concepts([Concept(number, label) for number, label in enumerate(words)])
    lexicon = plain.renamed(concepts, LexiconInfo("named", "tiny", TinyEncoder.fingerprint))
    lexicon.save(folder)
    return lexicon


def hinted(message: str) -> list[str]:
    """The words of the `lexent ...` command that a message ends with."""
    return shlex.split(message[message.rindex("lexent ") :])[1:]


@pytest.mark.parametrize(("name", "finds"), [("cholestrol", "cholesterol"), ("zip folder", "zip"), ("qqqq", "")])
def test_the_hint_for_an_unknown_concept_finds_some(tmp_path: Path, name: str, finds: str) -> None:
    named(tmp_path / "my lexicon")
    with pytest.raises(NotFoundError) as error:
        load(tmp_path / "my lexicon").resolve(name)
    words = hinted(str(error.value))
    assert words[:2] == (["concepts", "find"] if finds else ["concepts", "list"])
    shown = json.loads(good(*words, "--json").stdout)
    assert shown["concepts"], "the command finds concepts"
    assert shown["lexicon"] == "named", "of the lexicon that was asked"
    assert finds in shown["concepts"][0]["label"]


def test_the_hint_of_an_index_names_the_index(tmp_path: Path) -> None:
    named(tmp_path / "lexicon")
    rows = [{"id": "1", "text": "yeast"}]
    lexent.index(rows, out=tmp_path / "i", encoder="tiny", lexicon=tmp_path / "lexicon").close()
    failed = run("search", tmp_path / "i", "yeast", "--boost", "cholestrol=2")
    assert failed.exit_code == 3
    words = hinted(failed.stderr.strip())
    assert words == ["concepts", "find", "cholesterol", "--index", str(tmp_path / "i")]
    assert json.loads(good(*words, "--json").stdout)["concepts"][0]["label"] == "cholesterol · bile"


# --- Ctrl-C ------------------------------------------------------------------------------------------------------


def texts_file(folder: Path) -> Path:
    words = [
        "flour",
        "yeast",
        "dough",
        "oven",
        "crust",
        "bake",
        "loaf",
        "knead",
        "rise",
        "salt",
        "king",
        "queen",
        "rook",
        "pawn",
    ]
    path = folder / "texts.jsonl"
    lines = [" ".join(words[place % 12 : place % 12 + 5] + words[: place % 9]) for place in range(300)]
    path.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    return path


def training(folder: Path) -> subprocess.Popen[str]:
    """A long training run as a program, interrupted by nobody yet, that has begun to train."""
    words = [
        "train",
        texts_file(folder),
        "--out",
        folder / "out",
        "--encoder",
        "tiny",
        "--latents",
        "64",
        "--sae-k",
        "4",
    ]
    words += ["--batch", "64", "--passes", "100000"]
    started = subprocess.Popen(
        [sys.executable, "-m", "lexent", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(1200):
        if (folder / "out.training" / "metrics.jsonl").exists() or started.poll() is not None:
            break
        time.sleep(0.1)
    return started


def test_one_interrupt_of_training_says_what_is_kept(tmp_path: Path) -> None:
    started = training(tmp_path)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=120)
    assert started.returncode == 130, said
    assert "Traceback" not in said
    assert not list(tmp_path.rglob(CHECKPOINT))
    assert "interrupted before the first checkpoint, so no training is kept" in said


def test_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    started = training(tmp_path)
    for _ in range(20):
        if started.poll() is None:
            started.send_signal(signal.SIGINT)
            time.sleep(0.005)
    _, said = started.communicate(timeout=120)
    assert started.returncode == 130, said
    assert "Traceback" not in said


def test_a_checkpoint_that_is_there_is_said_and_used(tmp_path: Path) -> None:
    """Interrupted while concepts are named: the training is done and kept."""
    settings: dict[str, Any] = {"encoder": TinyEncoder(), "config": TrainConfig(d_sae=16, k=2, batch=64), "passes": 2}
    stages: list[str] = []

    def stop(stage: str, done: float, detail: str) -> None:
        stages.append(stage)
        if stage == "name":
            raise KeyboardInterrupt

    lessons = [json.loads(line)["text"] for line in texts_file(tmp_path).read_text().splitlines()]
    with pytest.raises(KeyboardInterrupt):
        lexent.train(lessons, out=tmp_path / "out", progress=stop, **settings)
    assert "go on from the last checkpoint" in interrupted(tmp_path / "out")
    steps: list[str] = []
    lexent.train(lessons, out=tmp_path / "out", progress=lambda stage, *_: steps.append(stage), **settings)
    assert steps.count("train") == 1, "no step was trained again: only the end is told"
    assert not (tmp_path / "out.training").exists()
