"""Bad input at the command line: one line that says what to type next, an exit code, nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import data, furnished, good, program, run, tiny
from lexent.encoders import TinyEncoder
from lexent.lexicon import Lexicon


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("failures"))


def fails(*words: object, code: int, says: str) -> str:
    """The one line of an error."""
    result = run(*words)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert says in lines[0], lines[0]
    assert "Traceback" not in result.stderr
    return lines[0]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(place: Path, tmp_path: Path, source: Path, *, code: int, says: str) -> None:
    """Indexing fails and leaves nothing."""
    out = tmp_path / "out" / "x.lexent"
    fails("index", source, "--out", out, *tiny(place), code=code, says=says)
    assert not out.exists()
    assert not out.parent.exists() or not list(out.parent.iterdir())


# --- corpora -----------------------------------------------------------------------------------------------------


def test_broken_json(place: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", '{"text": "fine words"}\n{"text": broken\n')
    refused(place, tmp_path, source, code=2, says="a.jsonl, line 2")


def test_missing_text_column_lists_the_columns(place: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "key,words\n1,flour and yeast\n")
    out = tmp_path / "x"
    line = fails("index", source, "--text", "body", "--out", out, *tiny(place), code=3, says='no column "body"')
    assert 'words ("flour and yeast")' in line
    assert "--text COLUMN" in line


def test_doubled_id(place: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", '{"id": "a", "text": "one"}\n{"id": "a", "text": "two"}\n')
    refused(place, tmp_path, source, code=2, says='the id "a"')


def test_empty_id(place: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", '{"id": "a", "text": "one"}\n{"id": "", "text": "two"}\n')
    refused(place, tmp_path, source, code=2, says="is empty")


def test_bytes_that_are_not_utf8(place: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", b'{"text": "fine"}\n{"text": "caf\xe9"}\n')
    refused(place, tmp_path, source, code=2, says="line 2")


def test_empty_corpus(place: Path, tmp_path: Path) -> None:
    refused(place, tmp_path, write(tmp_path / "a.jsonl", ""), code=2, says="no documents")
    (tmp_path / "folder").mkdir()
    result = run("index", tmp_path / "folder", "--out", tmp_path / "x", *tiny(place))
    assert result.exit_code in (2, 3)
    assert result.stderr.startswith("error: ")


def test_no_such_file(place: Path, tmp_path: Path) -> None:
    refused(place, tmp_path, tmp_path / "none.jsonl", code=3, says="no such file or folder")


def test_a_document_of_a_megabyte(place: Path, tmp_path: Path) -> None:
    big = {"id": "big", "text": "flour yeast dough " * 60_000}
    source = write(tmp_path / "a.jsonl", json.dumps(big) + "\n")
    good("index", source, "--out", tmp_path / "a.lexent", *tiny(place))
    assert data("search", tmp_path / "a.lexent", "yeast")["hits"][0]["id"] == "big"
    assert good("search", tmp_path / "a.lexent", "yeast").stdout.count("\n") < 20


# --- queries -----------------------------------------------------------------------------------------------------


def test_empty_query(place: Path) -> None:
    fails("search", place / "docs.lexent", "  ", code=2, says="the query is empty; type some words")


def test_query_that_is_not_utf8(place: Path) -> None:
    done = program("search", place / "docs.lexent", b"caf\xe9")
    assert done.returncode == 2
    assert "not UTF-8" in done.stderr


def test_unknown_concept_suggests_the_nearest(place: Path) -> None:
    index = place / "docs.lexent"
    line = fails("search", index, "dough", "--boost", "telescpe=2", code=3, says='no concept named "telescpe"')
    assert "did you mean #" in line
    assert "lexent concepts find" in line
    fails("search", index, "dough", "--drop", "#5000", code=3, says="no concept #5000")
    fails("concepts", "show", "concpt", "--lexicon", place / "lexicon", code=3, says="did you mean")


@pytest.mark.parametrize("boost", ["concept 3", "=2", "concept 3=much", "concept 3=-1", "concept 3=nan"])
def test_bad_boost(place: Path, boost: str) -> None:
    fails("search", place / "docs.lexent", "dough", "--boost", boost, code=2, says="2")


def test_negative_k(place: Path) -> None:
    fails("search", place / "docs.lexent", "dough", "-k", "-1", code=2, says="k is -1; allowed: 1 or more")
    fails("search", place / "docs.lexent", "dough", "-k", "0", code=2, says="k is 0; allowed: 1 or more")


def test_unknown_document(place: Path) -> None:
    fails("explain", place / "docs.lexent", "dough", "nobody", code=3, says='no document "nobody"')


# --- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (["--k1", "-1"], "k1 is -1.0; allowed: from 0 to 1,000"),
        (["--idf", "best"], "allowed: lucene"),
        (["--recipe", "latent-term"], 'did you mean "latent-terms"?'),
        (["--prune", "2"], "prune is 2.0"),
        (["--k1", "inf"], "k1 is inf; allowed: from 0 to 1,000"),
        (["--k2", "nan"], "k2 is nan; allowed: above 0, at most 1,000, or none"),
        (["--query-k", f"1{'0' * 30}"], "allowed: from 1 to 1,000,000, or none"),
    ],
)
def test_bad_recipe_settings(place: Path, tmp_path: Path, setting: list[str], says: str) -> None:
    words = ("index", place / "docs.jsonl", "--out", tmp_path / "x", *tiny(place), *setting)
    fails(*words, code=3 if "--recipe" in setting else 2, says=says)


def test_words_that_are_not_understood() -> None:
    fails("search", "x", "y", "--bost", "z=2", code=2, says="see: lexent search --help")
    fails("serch", code=2, says="see: lexent --help")
    fails("search", code=2, says="see: lexent search --help")
    fails("search", "x", "y", "-k", "many", code=2, says="see: lexent search --help")


def test_bad_measure_baseline_and_collection(place: Path, tmp_path: Path) -> None:
    fails("eval", place, "--measures", "nDGC@10", *tiny(place), code=2, says="did you mean")
    fails("eval", place, "--baselines", "splade", *tiny(place), code=3, says="baselines: dense, bm25")
    fails("eval", tmp_path / "nothing", *tiny(place), code=3, says="no collection")


def test_bad_training_settings(place: Path, tmp_path: Path) -> None:
    words = ("train", place / "docs.jsonl", "--out", tmp_path / "x", "--encoder", "tiny")
    fails(*words, "--bits", "7", code=2, says="allowed: 8, 32")
    fails(*words, "--sample", "0", code=2, says="sample is 0")
    fails(*words, "--latents", "4", "--sae-k", "9", code=2, says="k is 9")


# --- artefacts ---------------------------------------------------------------------------------------------------


def test_no_index_there(tmp_path: Path) -> None:
    fails("search", tmp_path / "none", "dough", code=3, says="make one: lexent index")
    fails("info", tmp_path / "none", code=3, says="no index or lexicon")
    (tmp_path / "other").mkdir()
    fails("search", tmp_path / "other", "dough", code=4, says="is not a lexent index")


@pytest.fixture
def copy(place: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(place / "docs.lexent", tmp_path / "copy.lexent"))


def test_artefact_of_a_newer_version(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    fails("search", copy, "dough", code=4, says="upgrade: pip install -U lexent")


def test_damaged_artefact(copy: Path) -> None:
    file = copy / "segments" / "000001" / "codes.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    fails("verify", copy, code=4, says="segments/000001/codes.npy changed")
    file.write_bytes(content[:-10])
    fails("search", copy, "dough", code=4, says="damaged")


def test_index_with_another_encoder_or_lexicon(place: Path, tmp_path: Path) -> None:
    Lexicon.random(TinyEncoder(), size=96, seed=5).save(tmp_path / "other")
    index = place / "docs.lexent"
    fails("search", index, "dough", "--lexicon", tmp_path / "other", code=5, says="was built with the lexicon")
    fails("search", index, "dough", "--lexicon", tmp_path / "gone", code=3, says="no lexicon")


def test_index_is_not_overwritten_unasked(place: Path, copy: Path) -> None:
    fails("index", place / "docs.jsonl", "--out", copy, *tiny(place), code=2, says="--overwrite")
    good("index", place / "docs.jsonl", "--out", copy, *tiny(place), "--overwrite")
    (copy.parent / "notes").mkdir()
    write(copy.parent / "notes" / "mine.txt", "precious")
    words = ("index", place / "docs.jsonl", "--out", copy.parent / "notes", *tiny(place), "--overwrite")
    fails(*words, code=2, says="give another folder")


# --- the machine -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="no folder that refuses everyone")
def test_no_permission_to_write(place: Path) -> None:
    words = ("index", place / "docs.jsonl", "--out", "/sys/kernel/x.lexent", *tiny(place))
    fails(*words, code=6, says='"/sys/kernel/x.lexent"')


@pytest.mark.skipif(sys.platform == "win32", reason="no file size limits")
def test_full_disk_leaves_the_old_index(place: Path, tmp_path: Path) -> None:
    import resource

    out = tmp_path / "a.lexent"
    good("index", place / "docs.jsonl", "--out", out, *tiny(place))
    rows = ({"id": str(number), "text": f"flour {number} " * 300} for number in range(1000))
    source = write(tmp_path / "big.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    done = program("index", source, "--out", out, *tiny(place), "--overwrite", preexec_fn=small_files)
    assert done.returncode == 6, done.stderr
    assert "error: no space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(data("search", out, "dough")["hits"]) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.lexent", "big.jsonl"]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process")
def test_interrupted_index_leaves_the_old_one(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.lexent"
    good("index", place / "docs.jsonl", "--out", out, *tiny(place))
    source = write(tmp_path / "big.jsonl", "".join(f'{{"text": "{"flour yeast " * 100}{n}"}}\n' for n in range(40_000)))
    words = ["index", str(source), "--out", str(out), *tiny(place), "--overwrite"]
    # A test run in the background ignores Ctrl-C and would hand that on.
    process = subprocess.Popen(
        [sys.executable, "-m", "lexent", *words],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(lambda: any(path.name.endswith(".new") for path in tmp_path.iterdir()))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    # Where the signal struck inside an exec(), as of imports, Python ends itself by it in the end: 130 to any shell.
    assert process.returncode in (130, -signal.SIGINT), said
    assert "error: interrupted; nothing was written" in said
    assert "Traceback" not in said
    assert len(data("search", out, "dough")["hits"]) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.lexent", "big.jsonl"]


def wait_for(happened: Callable[[], bool], *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_training_interrupted_early_says_that_nothing_is_kept(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lexent.training.reconstruction.train.train", interrupted)
    words = ("train", place / "docs.jsonl", "--out", tmp_path / "x", "--encoder", "tiny")
    fails(*words, code=130, says="the same command starts from the beginning")


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (PermissionError(13, "Permission denied", "docs.jsonl"), 6, 'no permission for "docs.jsonl"'),
        (OSError(28, "No space left on device"), 6, "no space left"),
        (OSError(5, "Input/output error", "docs.jsonl"), 6, "Input/output error"),
        (MemoryError(), 70, "not enough memory"),
        (ZeroDivisionError("a bug\nof two lines"), 70, "run again with --debug for the traceback"),
    ],
)
def test_what_nobody_foresaw(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: int,
    says: str,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("lexent.engine.Index.search", broken)
    fails("search", place / "docs.lexent", "dough", code=code, says=says)


@pytest.mark.parametrize("words", [["--debug", "search", "none", "dough"], ["search", "none", "dough", "--debug"]])
def test_debug_shows_the_traceback(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 3
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: no index at")


def test_no_traceback_as_a_program() -> None:
    done = program("search", "none", "dough", cwd=os.sep)
    assert done.returncode == 3
    assert done.stderr == 'error: no index at "none"; make one: lexent index CORPUS --out none\n'


def test_changes_that_cannot_be(copy: Path, place: Path) -> None:
    fails("add", copy, place / "docs.jsonl", code=2, says='already has a document "d0"; replace it with --upsert')
    fails("delete", copy, "d0", "nonesuch", code=3, says='no document "nonesuch" among 40')
    fails("delete", copy.parent / "gone", "d0", code=3, says="no index at")
    fails("retune", copy, code=2, says="nothing to change; give a setting")
    fails("retune", copy, "--b", "9", code=2, says="b is 9.0; allowed: from 0 to 4")
    fails("index", place / "docs.jsonl", "--out", copy.parent / "x", "--memory", "lots", code=2, says="write it as 2GB")
    fails("search", copy, "dough", "--filter", "yaer>3", code=2, says='did you mean "year"?')
    fails("search", copy, "dough", "--filter", "year=abc", code=2, says='"year" holds number values, not text ones')


@pytest.mark.parametrize("words", [("search", "x", "q"), ("index", "x"), ("train", "x", "--out", "y")])
def test_an_option_that_was_renamed_says_what_to_write(words: tuple[str, ...]) -> None:
    fails(*words, "--k", "5", code=2, says="write -k for the number of hits, --sae-k for the latents of a state")


# --- control characters ----------------------------------------------------------------------------------------------

COMMANDS = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\x7f"


def test_documents_do_not_command_the_terminal(tmp_path: Path) -> None:
    furnished(tmp_path)
    rows = [
        {
            "id": f"{name}{COMMANDS}",
            "title": f"bread{COMMANDS}",
            "text": f"flour {COMMANDS} bread",
            "from": f"x{COMMANDS}",
        }
        for name in "ab"
    ]
    corpus, place = tmp_path / "rows.jsonl", tmp_path / "rows.lexent"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]))
    failed = run("index", corpus, "--out", place, *tiny(tmp_path))
    printed = [failed.stderr, good("index", corpus, "--out", place, "--on-error", "skip", *tiny(tmp_path)).output]
    document = rows[0]["id"]
    for words in (
        ["search", place, "bread"],
        ["search", place, "bread", "--explain"],
        ["search", place, "bread", "--json"],
        ["explain", place, "bread", document],
        ["explain", place, "bread", document, "--json"],
        ["info", place],
    ):
        printed.append(good(*words).output)
    printed.append(run("search", place, "bread", "--filter", json.dumps({"from": {"gt": 3}})).output)
    printed.append(run("delete", place, f"gone{COMMANDS}").output)
    for text in printed:
        assert not set(text) & set("\x1b\x07\x08\x7f\x9b"), text
    assert any("␛[2J" in text for text in printed)
    assert json.loads(printed[4])["hits"][0]["id"] in [row["id"] for row in rows]
