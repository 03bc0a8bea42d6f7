"""What README and docs/ show is run: commands, Python, requests to a server, and the files of real indexes."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import markdown
from lexent.types import Document
from markdown import ROOT

PAGES = markdown.pages()


def topic(number: int) -> tuple[str, str]:
    titles = ["Statins and dementia", "A mouse model", "Bridges in wind", "Zip archives", "Email habits"]
    texts = [
        "In a cohort, statins did not prevent dementia. A randomized trial of cholesterol lowering agreed.",
        "In mice, lovastatin lowered cholesterol and slowed the loss of memory.",
        "How suspension bridges carry wind load, and why some of them fell.",
        "Unpack a zip archive, list its members, and compress a folder.",
        "People who read email at night sleep less and answer more slowly.",
    ]
    return f"{titles[number % 5]} {number}", f"{texts[number % 5]} Study number {number}."


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the docs name."""
    folder = tmp_path_factory.mktemp("docs")
    papers = [
        {"id": f"d{number}", "title": topic(number)[0], "text": topic(number)[1], "year": 2012 + number}
        for number in range(10)
    ]
    for name in ("papers.jsonl", "titled.jsonl"):
        (folder / name).write_text("".join(json.dumps(paper) + "\n" for paper in papers))
    rows = [f'n{number},"{topic(number)[0]}","{topic(number)[1]}",{2012 + number},en\n' for number in range(15)]
    (folder / "notes.csv").write_text("id,title,text,year,lang\n" + "".join(rows[:10]))
    (folder / "more.csv").write_text("id,title,text,year,lang\n" + "".join(rows[10:]))
    (folder / "tickets.jsonl").write_text('{"id": "t1", "text": "the proxy fails with ERR_CONN_RESET-42"}\n')
    collection = folder / "scifact"
    (collection / "qrels").mkdir(parents=True)
    corpus = [{"_id": paper["id"], "title": paper["title"], "text": paper["text"]} for paper in papers]
    (collection / "corpus.jsonl").write_text("".join(json.dumps(paper) + "\n" for paper in corpus))
    asked = [
        "do statins prevent dementia?",
        "mice and cholesterol",
        "wind on bridges",
        "zip a folder",
        "email and sleep",
    ]
    queries = {f"{split}{number}": text for split in ("train", "test") for number, text in enumerate(asked)}
    (collection / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": key, "text": f"{text} {key}"}) + "\n" for key, text in queries.items())
    )
    for split in ("train", "test"):
        judged = "".join(f"{split}{number}\td{number}\t1\n" for number in range(5))
        (collection / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    for name in ("a", "b", "splade"):
        ranks = [
            f"test{number} Q0 d{(number + rank) % 10} {rank + 1} {9 - rank} {name}\n"
            for number in range(5)
            for rank in range(5)
        ]
        (folder / f"{name}.run").write_text("".join(ranks))
    return folder


STAND_INS = {"COLLECTION": "scifact", "C": "scifact", "TEXTS": "papers.jsonl", "DOC_ID": "n3", "OTHER_ID": "n4"}
"""What stands for the placeholders of the docs."""
RUN = (
    *("index", "search", "explain", "concepts find", "info", "add", "delete", "retune", "compact", "verify", "fuse"),
    *("backup", "restore"),
)
"""Verbs that are quick on a few documents. Others are run by tests of their own."""


def run_blocks(page: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Runs the commands of a page's blocks in their order, and gives what each printed."""
    from commands import good

    monkeypatch.chdir(desk)
    printed = {}
    for command in markdown.commands(ROOT / page, "lexent"):
        line = " ".join(command.words)
        quick = (
            line.startswith(RUN) or "--prepare" in command.words or line.startswith("eval COLLECTION --fuse dense=1")
        )
        if command.whole and quick and "--encoder" not in command.words:
            printed[line] = good(*(STAND_INS.get(word, word) for word in command.words)).stdout
    return printed


def test_commands_of_the_how_to_page_run(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = run_blocks("docs/how-to.md", desk, monkeypatch)
    assert {line.split()[0] for line in printed} == {verb.split()[0] for verb in RUN} - {"fuse"}
    explained = printed["search notes.lexent your question -k 5 --explain"]
    assert re.search(r"^ +[\d.]+ +#\d+ \w+|█ +[\d.]+ +#\d+ ", explained, re.MULTILINE), explained
    found = printed["search notes.lexent your question --filter year>=2019 --filter lang=en"]
    assert "Statins" in found or "Bridges" in found or "Email" in found or "Zip" in found


def test_commands_of_the_search_page_run(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lexent

    lexent.index(str(desk / "papers.jsonl"), out=str(desk / "python.lexent"))
    printed = run_blocks("docs/search.md", desk, monkeypatch)
    assert len(printed) > 5
    quoted = next(
        block.text for block in markdown.split((ROOT / "docs/search.md").read_text())[0] if "raised" in block.text
    )
    shape = re.compile(r"^(added|raised) +[+-][\d.]+ +#\d+ .+ from \w", re.MULTILINE)
    assert shape.search(quoted)
    assert shape.search(printed["search python.lexent unpack a zip archive --feedback 5"])


def test_commands_that_prepare_pairs_run(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = run_blocks("docs/train.md", desk, monkeypatch)
    assert len(printed) == 1
    assert (desk / "pairs.npz").is_file()


def test_python_of_the_readme_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = markdown.python(ROOT / "README.md")
    exec(code, {})
    blocks, _ = markdown.split((ROOT / "README.md").read_text())
    shown = next(block.text for block in blocks if block.text.startswith("Lovastatin"))
    assert capsys.readouterr().out.strip() == shown.strip()


def test_python_of_the_how_to_page_runs(
    tmp_path: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "papers.jsonl").write_text((desk / "papers.jsonl").read_text())
    monkeypatch.chdir(tmp_path)
    *_, code = markdown.python(ROOT / "docs/how-to.md")  # test_preforking.py runs the others
    found: dict[str, Any] = {}
    exec(code.replace("path/to/a/BEIR/folder", str(desk / "scifact")), found)
    hits = found["hits"]
    assert hits[0].id in ("d0", "d5")
    assert sum(part.value for part in hits[0].explain().contributions) == pytest.approx(hits[0].score, abs=1e-5)
    assert found["report"].systems["hybrid"]["nDCG@10"] > 0.5
    assert "Statins and dementia" in capsys.readouterr().out


def test_python_of_the_search_page_runs(tmp_path: Path, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import lexent

    tokens = lexent.index(str(desk / "papers.jsonl"), out=str(tmp_path / "ssr.lexent"), recipe="ssr")
    whole = lexent.index(str(desk / "papers.jsonl"), out=str(tmp_path / "papers.lexent"))
    matching, fusing, learning, using = markdown.python(ROOT / "docs/search.md")
    found: dict[str, Any] = {"lexent": lexent, "index": tokens}
    exec(matching, found)
    assert found["results"].approximate
    exec(fusing, {"lexent": lexent, "index": whole})
    found = {"lexent": lexent, "index": whole}
    exec(learning, found)
    assert found["results"].added
    assert re.search(r"^(added|raised) .+ \([-+]?[\d.]+\) from d\d", capsys.readouterr().out, re.MULTILINE)
    found = {"lexent": lexent, "index": whole}
    exec(using, found)
    assert found["table"]
    assert re.search(r"^\d+ .*dementia.* 2(\.0)? [\d.]+ [\d.]+$", capsys.readouterr().out, re.MULTILINE)


def test_python_of_the_passages_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import lexent

    monkeypatch.chdir(tmp_path)
    text = "# Travel\n\n" + "\n\n".join(f"## Part {n}\n\nThe head of unit {n} approves travel. " * 8 for n in range(9))
    lexent.index([{"id": "handbook", "text": text}], out="handbook.lexent")
    for code in markdown.python(ROOT / "docs/passages.md"):
        exec(f"import lexent\nindex = lexent.open('handbook.lexent')\n{code}", {})
    shown = capsys.readouterr().out
    assert "handbook" in shown
    assert "approves travel" in shown


def test_python_of_the_hybrid_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": "t1", "text": "The proxy stops with ERR_CONN_RESET-42."}, {"id": "t2", "text": "A slow page."}]
    (tmp_path / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (code,) = markdown.python(ROOT / "docs/recipe-hybrid.md")
    exec(f"import lexent\n{code}", {})
    assert re.search(r'^True "?ERR_CONN_RESET-42', capsys.readouterr().out, re.MULTILINE)


def test_python_of_the_analyses_page_runs(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    (code,) = markdown.python(ROOT / "docs/analyses.md")
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["found"].rows


def test_python_of_the_training_page_runs(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (desk / "pairs.npz").is_file():
        run_blocks("docs/train.md", desk, monkeypatch)
    monkeypatch.chdir(desk)
    (code,) = markdown.python(ROOT / "docs/train.md")
    small = "RetrievalConfig(steps=2, d_sae=256, k=8, whole_d_sae=64, whole_k=8, pretrain_batch=64, batch=4, k_aux=16)"
    assert "RetrievalConfig(steps=2000)" in code
    texts = [json.loads(line)["text"] for line in (desk / "papers.jsonl").read_text().splitlines()]
    found: dict[str, Any] = {"texts": texts, "Path": Path}
    exec(code.replace("RetrievalConfig(steps=2000)", small), found)
    assert 64 < found["lexicon"].size <= 256 + 64
    assert (desk / "my.lexicon").is_dir()


@pytest.mark.parametrize("package", ["langchain_core", "llama_index.core", "haystack"])
def test_python_of_the_rag_page_runs(
    tmp_path: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], package: str
) -> None:
    import lexent

    pytest.importorskip(package)
    lexent.index(str(desk / "papers.jsonl"), out=str(tmp_path / "papers.lexent")).close()
    monkeypatch.chdir(tmp_path)
    (code,) = (code for code in markdown.python(ROOT / "docs/rag.md") if f".{package.split('_')[0]}" in code)
    exec(code, {})
    assert re.search(r"d[05] |statins did not prevent", capsys.readouterr().out)


def test_python_of_the_agents_page_runs(tmp_path: Path, desk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import lexent

    pytest.importorskip("mcp")
    path = str(tmp_path / "papers.lexent")
    lexent.index(str(desk / "papers.jsonl"), out=path).close()
    (code,) = markdown.python(ROOT / "docs/agents.md")
    written = 'command="lexent", args=["mcp", "papers.lexent"]'
    assert written in code
    here = f"command={sys.executable!r}, args={['-m', 'lexent', 'mcp', path]!r}, env=dict(os.environ)"
    exec(code.replace(written, here), {"os": os})
    assert re.search(r"^d[05] 0 \d+ 0\.\d+$", capfd.readouterr().out, re.MULTILINE)


def test_the_agents_page_lists_the_tools_and_their_arguments(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    import asyncio

    import small
    from lexent.integrations.mcp import IndexTools, make

    small.build(tmp_path / "a.lexent").close()
    tools = asyncio.run(make(IndexTools([tmp_path / "a.lexent"]), allow_writes=True).list_tools())
    _, prose = markdown.split((ROOT / "docs/agents.md").read_text())
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", prose, re.MULTILINE)
    listed = {tool: re.findall(r"`(\w+)`", arguments) for tool, arguments in rows}
    assert listed == {tool.name: list(tool.input_schema["properties"]) for tool in tools}
    (sentence,) = re.findall(r"Only (.*) must be given", prose)
    needed = {name for tool in tools for name in tool.input_schema.get("required", [])}
    assert set(re.findall(r"`(\w+)`", sentence)) == needed


def test_the_rag_page_lists_the_metadata_and_the_parameters() -> None:
    import inspect

    from lexent.integrations.retrieval import EXPLAINED, retrieve

    _, prose = markdown.split((ROOT / "docs/rag.md").read_text())
    metadata, parameters = (part for part in prose.split("## ") if part.startswith(("What is in", "Parameters")))
    rows = re.findall(r"^\| (`.*?) \|", metadata, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(EXPLAINED)
    names = re.findall(r"^\| `(\w+)`", parameters, re.MULTILINE)
    assert names == [name for name in inspect.signature(retrieve).parameters if name not in ("index", "query")]


def test_every_block_of_python_is_run_above() -> None:
    """A page that gets Python gets a test here, or in test_get_started.py."""
    blocks = {markdown.name(page): len(markdown.python(page)) for page in PAGES if markdown.python(page)}
    assert blocks == {
        "README.md": 1,
        "docs/how-to.md": 4,
        "docs/get-started.md": 1,  # run by test_get_started.py
        "docs/files.md": 2,
        "docs/search.md": 4,
        "docs/passages.md": 3,
        "docs/recipe-hybrid.md": 1,
        "docs/analyses.md": 1,
        "docs/train.md": 1,
        "docs/rag.md": 3,
        "docs/agents.md": 1,
    }


# --- the server ------------------------------------------------------------------------------------------------------


SERVE = ROOT / "docs" / "serve.md"


def test_requests_of_the_serving_page_are_answered(tmp_path: Path, desk: Path) -> None:
    import argparse

    import lexent
    from lexent.server.settings import Settings
    from serving import serving

    lexent.index(str(desk / "papers.jsonl"), out=str(tmp_path / "papers.lexent"))
    log = tmp_path / "audit.jsonl"
    rows = [json.dumps({"id": f"r{number}", "text": topic(number)[1]}) for number in range(20)]
    rows[16] = '{"id": "r16", "text": broken'
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    curl = argparse.ArgumentParser()
    for option in ("-T", "-X", "-d"):
        curl.add_argument(option, default="")
    curl.add_argument("-s", action="store_true")
    curl.add_argument("-H", action="append", default=[])
    curl.add_argument("url")
    asked = markdown.commands(SERVE, "curl")
    assert len(asked) == 2
    quoted = [json.loads(line) for line in SERVE.read_text().splitlines() if line.startswith('{"')]
    audited = [line for line in quoted if "event" in line]
    with serving([tmp_path / "papers.lexent"], Settings(audit_log=str(log)), encoder=None, lexicon=None) as client:
        for command in asked:
            given = curl.parse_args(list(command.words))
            body = (tmp_path / given.T).read_bytes() if given.T else given.d.encode()
            reply = client.request(
                given.X or ("POST" if body else "GET"),
                given.url.removeprefix("localhost:7777"),
                content=body,
                headers=dict(header.split(": ", 1) for header in given.H),
            )
            assert reply.status_code == 200, reply.text
            if given.T:
                shapes = {tuple(json.loads(line)) for line in reply.text.splitlines()}
                assert shapes == {tuple(line) for line in quoted if line not in audited}
                assert json.loads(reply.text.splitlines()[-1])["failed"] == 1
            else:
                found = reply.json()
                assert found["hits"]
                assert all(hit["metadata"]["year"] >= 2015 for hit in found["hits"] if "metadata" in hit)
        change = {"documents": [{"id": "7", "text": "a comet"}, {"id": "8", "text": "a star"}], "upsert": True}
        assert client.post("/v1/indexes/papers/documents", json=change).status_code == 200
        assert [list(json.loads(line)) for line in log.read_text().splitlines()[-2:]] == [list(one) for one in audited]
        schema = client.get("/openapi.json").json()
    check_routes(schema)
    inline = next(span for span in markdown.spans(SERVE) if "import make" in span)
    found = {}
    exec(inline.replace("papers.lexent", str(tmp_path / "papers.lexent")), found)
    assert callable(found["app"])


def check_routes(schema: dict[str, Any]) -> None:
    """The table of the API: each method and path, and the parameters of the query."""
    _, prose = markdown.split(SERVE.read_text())
    rows = re.findall(r"^\| (`.*?) \| .* \|$", prose, re.MULTILINE)
    assert len(rows) > 10
    for row in rows:
        methods, used = [], False
        for words in (span.split() for span in re.findall(r"`([^`]+)`", row)):
            named = [word.lower() for word in words if word.isupper()]
            if named:
                methods, used = [*([] if used else methods), *named], False
            for path in (word for word in words if word.startswith(("/", "..."))):
                used = True
                for method in methods:
                    check_route(schema, method, path.replace("...", "/v1/indexes/papers", 1))


def check_route(schema: dict[str, Any], method: str, url: str) -> None:
    path, _, query = url.partition("?")
    found = [
        item[method]
        for pattern, item in schema["paths"].items()
        if method in item and re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", pattern), path)
    ]
    assert found, f"{method} {path} is not in the API"
    names = {parameter["name"] for operation in found for parameter in operation.get("parameters", [])}
    asked = {part.split("=")[0] for part in query.split("&") if part}
    assert asked <= names, f"{method} {path}: {asked}; allowed: {names}"


# --- the index on disk -----------------------------------------------------------------------------------------------


def test_the_page_of_the_index_lists_its_files(tmp_path: Path) -> None:
    import small
    from lexent.lexicon import user_labels

    real: set[str] = set()
    for recipe, extras in (("latent-terms", ("dense", "lexical")), ("ssr", ()), ("uhd", ())):
        folder = tmp_path / f"{recipe}.lexent"
        long = Document("long", "word " * 600)
        index = small.build(folder, [*small.documents(), long], recipe=recipe, extras=extras)
        index.delete(["d1"])
        user_labels.write(folder, index.lexicon, {3: "a name"})
        real |= {path.name for path in folder.rglob("*") if path.is_file()}
    text = (ROOT / "docs/index.md").read_text()
    tree = next(block.text for block in markdown.split(text)[0] if "manifest.json" in block.text)
    listed = set(re.findall(r"(?<![\w/])([\w*-]+\.(?:json|lock|sqlite|npy|npz))", tree))
    arrays = re.findall(r"^\| (`[a-z`, ]+) \| .*\| [\d (].*\|$", text, re.MULTILINE)
    of_tokens = {name for row in arrays for name in re.findall(r"`(\w+)`", row)}
    listed = listed - {"tokens-*.npy"} | {f"tokens-{name}.npy" for name in of_tokens}
    for pattern in ("words-*.npy", "passages-*.npy"):
        assert pattern in listed
        found = {name for name in real if name.startswith(pattern.removesuffix("*.npy"))}
        assert found
        listed = listed - {pattern} | found

    def numbered(names: set[str]) -> set[str]:
        return {re.sub(r"-\d+", "-N", name) for name in names}

    assert numbered(listed) == numbered(real)


def test_commands_and_python_of_the_files_page_run(
    tmp_path: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (desk / "notes.csv").read_text()
    (tmp_path / "papers.csv").write_text(f"{rows}n1,again,again,2012,en\n")
    (tmp_path / "old.csv").write_bytes(f"{rows}x,Caf\xe9,Bread in a caf\xe9.,2012,en\n".encode("cp1252"))
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "travel.md").write_text("# Travel\n\nThe head of a team approves travel.")
    printed = run_blocks("docs/files.md", tmp_path, monkeypatch)
    assert len(printed) == 3
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for code in markdown.python(ROOT / "docs/files.md"):
        exec(code, found)
    assert "papers.csv, line 12 duplicate id" in capsys.readouterr().out
    assert len(found["index"]) == 2
