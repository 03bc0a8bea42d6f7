"""The command line: what each verb prints, for people and for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from commands import data, furnished, good, program, run, tiny
from lexent.cli import app
from lexent.encoders import TinyEncoder
from lexent.lexicon import Lexicon


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("cli"))


# --- help --------------------------------------------------------------------------------------------------------


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for inner, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{name} {inner}")


COMMANDS = dict(commands(typer.main.get_command(app), "lexent"))


def test_verbs() -> None:
    verbs = {name.removeprefix("lexent ") for name in COMMANDS} - {"lexent"}
    assert verbs == {
        *("demo", "train", "index", "add", "delete", "compact", "retune"),
        *("search", "explain", "eval", "fuse", "tune", "analyse", "make", "make limit", "info", "verify", "doctor"),
        *("backup", "restore"),
        "warm",
        *("serve", "mcp"),
        *("fidelity", "faithfulness", "readability", "reproduce"),
        *("adapt", "adapt train", "adapt eval", "adapt explain", "adapt deletion"),
        *("concepts", "concepts list", "concepts show", "concepts find"),
        *("concepts label", "concepts name", "concepts score"),
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_verb_option_and_argument_has_help(name: str) -> None:
    command = COMMANDS[name]
    assert command.help, f"{name} has no help"
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{name}: {parameter.name} has no help"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_prints(name: str) -> None:
    result = good(*name.split()[1:], "--help")
    assert "Usage: lexent" in result.stdout


def test_nothing_given_is_help() -> None:
    assert "search" in good().stdout
    assert "find" in good("concepts").stdout


def test_version() -> None:
    from lexent import __version__

    assert good("--version").stdout.strip() == f"lexent {__version__}"


def test_recipe_settings_take_their_help_from_the_recipe() -> None:
    from lexent.cli.fields import fields_of

    settings = {option.name: option.help for option in COMMANDS["lexent eval"].params}
    assert settings["k1"] == fields_of("recipes.py", "BM25")["k1"].help
    assert settings["k1"].startswith("How soon a concept")
    assert "okapi-floor0" in settings["idf"]
    assert not settings["power"].startswith("Pool:")
    training = {option.name: option.help for option in COMMANDS["lexent train"].params}
    assert training["batch"].endswith("[default: 4096]")


# --- index -------------------------------------------------------------------------------------------------------


def test_index_says_what_it_found_and_what_to_type_next(place: Path, tmp_path: Path) -> None:
    result = good("index", place / "docs.jsonl", "--out", tmp_path / "a.lexent", *tiny(place))
    assert '40 rows; id = "_id", title = "title", text = "text"' in result.stderr
    assert "40 documents, " in result.stdout
    assert "live concepts" in result.stdout
    assert f'next  lexent search {tmp_path}/a.lexent "your question"' in result.stderr


def test_index_default_out_and_json(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = data("index", place / "docs.jsonl", *tiny(place), "--k1", 3, "--document-cap", 20)
    assert found["path"] == "docs.lexent"
    assert found["documents"] == 40
    assert found["recipe"]["weighting"]["k1"] == 3
    assert found["recipe"]["document_cap"] == 20
    assert found["seconds"] > 0
    assert (tmp_path / "docs.lexent" / "manifest.json").exists()


def test_index_columns_can_be_named(tmp_path: Path, place: Path) -> None:
    (tmp_path / "table.csv").write_text("key,head,words\na,one,flour yeast\nb,two,stars dust\n")
    out = tmp_path / "table.lexent"
    names = ("--id", "key", "--title", "head", "--text", "words")
    good("index", tmp_path / "table.csv", "--out", out, *tiny(place), *names)
    hit = data("search", out, "flour yeast")["hits"][0]
    assert (hit["id"], hit["title"], hit["text"]) == ("a", "one", "flour yeast")


def test_index_of_a_folder_of_texts(tmp_path: Path, place: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bread.md").write_text("# Bread\nflour and yeast\n")
    (tmp_path / "notes" / "sky.txt").write_text("stars and planets\n")
    found = data("index", tmp_path / "notes", "--out", tmp_path / "notes.lexent", *tiny(place))
    assert found["documents"] == 2


# --- search ------------------------------------------------------------------------------------------------------


def test_search_json_has_the_agreed_form(place: Path) -> None:
    found = data("search", place / "docs.lexent", "dough in the oven", "-k", 3)
    assert list(found) == ["query", "approximate", "groups", "concepts", "added", "steered", "hits"]
    assert found["query"] == "dough in the oven"
    assert all(set(concept) == {"id", "label", "weight", "word"} for concept in found["concepts"])
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    for hit in found["hits"]:
        shown = ["rank", "id", "score", "title", "text", "metadata", "strength", "passages"]
        shown += ["groups", "contributions", "rest"]
        assert list(hit) == shown
        assert sum(group["value"] for group in hit["groups"]) == pytest.approx(hit["score"], abs=1e-5)
        for part in hit["contributions"]:
            assert set(part) == {"concept", "label", "query", "document", "value", "word"}
            assert part["value"] == pytest.approx(part["query"] * part["document"])
        total = sum(part["value"] for part in hit["contributions"]) + hit["rest"]
        assert total == pytest.approx(hit["score"], abs=1e-5)


def test_search_json_with_few_contributions_still_sums_to_the_score(place: Path) -> None:
    hit = data("search", place / "docs.lexent", "dough in the oven", "--contributions", 2)["hits"][0]
    assert len(hit["contributions"]) == 2
    assert sum(part["value"] for part in hit["contributions"]) + hit["rest"] == pytest.approx(hit["score"], abs=1e-5)


def test_search_json_talks_to_nobody(place: Path) -> None:
    assert good("search", place / "docs.lexent", "dough", "--json").stderr == ""


def test_search_for_people(place: Path) -> None:
    result = good("search", place / "docs.lexent", "dough in the oven", "-k", 2)
    assert "query  dough in the oven" in result.stdout
    assert "█" in result.stdout
    assert "strength" in result.stdout
    assert "next  lexent explain" in result.stderr
    assert "\x1b" not in result.stdout, "no colours in a pipe"
    full = good("search", place / "docs.lexent", "dough in the oven", "-k", 2, "--explain").stdout
    assert "by words (in the query ↔ in the document)" in full
    assert "oven" in full.split("by words")[1].split("by concepts")[0]
    assert " x document " in full


def test_search_is_steered(place: Path) -> None:
    index = place / "docs.lexent"
    plain = data("search", index, "dough in the oven", "-k", 40)
    first, second = (concept["id"] for concept in plain["concepts"][:2])
    steered = data("search", index, "dough in the oven", "--boost", f"#{first}=2", "--drop", f"#{second}", "-k", 40)
    weights = {concept["id"]: concept["weight"] for concept in steered["concepts"]}
    assert weights[first] == pytest.approx(2 * plain["concepts"][0]["weight"])
    assert second not in weights
    by_name = data("search", index, "dough in the oven", "--boost", f"concept {first}=2", "-k", 1)
    assert by_name["concepts"][0]["weight"] == pytest.approx(weights[first])


@pytest.mark.parametrize(("k", "hits"), [(1, 1), (1000, 40)])
def test_k_gives_what_exists(place: Path, k: int, hits: int) -> None:
    assert len(data("search", place / "docs.lexent", "dough in the oven of stars", "-k", k)["hits"]) == hits


def test_words_of_a_hit_are_highlighted_and_share_its_score(place: Path) -> None:
    from lexent.engine import Index
    from lexent.explain.highlight import highlights

    with Index.open(place / "docs.lexent") as index:
        hits = index.search("dough in the oven", k=5).hits
        for hit, words in zip(hits, highlights(hits), strict=True):
            assert sum(word.share for word in words) == pytest.approx(hit.score, rel=1e-5)
            content = index.document(hit.id).content
            assert all(content[word.start : word.stop] == word.token for word in words)
        assert highlights([]) == []


def test_snippet_is_cut_around_the_strongest_words() -> None:
    from lexent.cli.snippet import snippet
    from lexent.search.results import RankedDocument
    from lexent.types import TokenShare

    text = "filler word " * 100 + "the needle is here " + "filler word " * 100
    hit: Any = RankedDocument(1, "d", 1.0, "A title", text, {})
    start = len("A title ") + text.index("needle")
    shown = snippet(hit, (TokenShare("needle", start, start + 6, 1.0),), 50)
    assert "the needle is here" in shown.plain
    assert shown.plain.startswith("… ")
    assert shown.plain.endswith(" …")
    assert len(shown.plain) <= 104
    assert [shown.plain[span.start : span.end] for span in shown.spans] == ["needle"]
    assert snippet(hit, (), 50).plain.startswith("filler word")


# --- explain, concepts, info, doctor -----------------------------------------------------------------------------


def test_explain(place: Path) -> None:
    found = data("explain", place / "docs.lexent", "dough in the oven", "d5")
    assert found["rank"] > 1
    assert sum(part["value"] for part in found["contributions"]) + found["rest"] == pytest.approx(found["score"])
    assert found["best"]["rank"] == 1
    assert len(found["tokens"]) == 5
    for part, contribution in zip(found["tokens"], found["contributions"], strict=False):
        assert part["concept"] == contribution["concept"]
        for side in ("query", "document"):
            total = sum(token["share"] for token in part[side]["tokens"])
            assert total == pytest.approx(part[side]["pooled"])
            assert total > 0
    shown = good("explain", place / "docs.lexent", "dough in the oven", "d5")
    for piece in ("rank ", "its score is the sum of", "words that raised them", "above it"):
        assert piece in shown.stdout
    assert "next  lexent explain" in shown.stderr


def test_explain_can_be_steered(place: Path) -> None:
    plain = data("explain", place / "docs.lexent", "dough", "d8")
    first = plain["contributions"][0]["concept"]
    steered = data("explain", place / "docs.lexent", "dough", "d8", "--drop", f"#{first}")
    assert steered["score"] == pytest.approx(plain["score"] - plain["contributions"][0]["value"], abs=1e-5)


def test_concepts_list_pages_and_sorts(place: Path) -> None:
    page = data("concepts", "list", "--lexicon", place / "lexicon", "--sort", "id", "-n", 10, "--page", 2)
    assert page["total"] == 96
    assert [concept["id"] for concept in page["concepts"]] == list(range(10, 20))
    by_count = data("concepts", "list", "--index", place / "docs.lexent")["concepts"]
    counts = [concept["documents"] for concept in by_count]
    assert counts == sorted(counts, reverse=True)
    assert data("concepts", "list", "--lexicon", place / "lexicon", "--category", "broad")["concepts"] == []
    shown = good("concepts", "list", "--lexicon", place / "lexicon", "-n", 5)
    assert "page 1 of 20" in shown.stdout
    assert "--page 2" in shown.stderr


def test_concepts_find_and_show(place: Path) -> None:
    found = data("concepts", "find", "concept", "7", "--lexicon", place / "lexicon")
    assert found["concepts"][0]["label"] == "concept 7"
    shown = data("concepts", "show", "concept 7", "--index", place / "docs.lexent", "-n", 3)
    assert shown["id"] == 7
    assert {"label", "category", "frequency", "examples", "neighbours", "documents", "top_documents"} <= set(shown)
    weights = [row["weight"] for row in shown["top_documents"]]
    assert weights == sorted(weights, reverse=True)
    assert len(weights) == len(shown["neighbours"]) == 3
    text = good("concepts", "show", "7", "--index", place / "docs.lexent")
    assert "neighbours" in text.stdout
    assert '--boost "#7=2"' in text.stderr
    assert "no concept" in good("concepts", "find", "zork", "--lexicon", place / "lexicon").stdout
    assert 'did you mean "concept"?' in good("concepts", "find", "concpt", "--lexicon", place / "lexicon").stdout


def test_info_of_index_and_lexicon(place: Path) -> None:
    index = data("info", place / "docs.lexent")
    assert index["kind"] == "index"
    assert index["counts"]["documents"] == 40
    lexicon = data("info", place / "lexicon")
    assert lexicon["kind"] == "lexicon"
    assert lexicon["autoencoder"]["d_sae"] == 96
    text = good("info", place / "docs.lexent").stdout
    for piece in ("live concepts", "fingerprint", "k1", "sha256"):
        assert piece in text


def test_verify(place: Path) -> None:
    for name, kind in (("docs.lexent", "index"), ("lexicon", "lexicon")):
        assert data("verify", place / name)["kind"] == kind
        assert "all as they were written" in good("verify", place / name).stdout


def test_an_index_lives(place: Path, tmp_path: Path) -> None:
    index, more = tmp_path / "a.lexent", tmp_path / "more.jsonl"
    good("index", place / "docs.jsonl", "--out", index, "--memory", "50MB", *tiny(place))
    rows = [{"_id": f"new{number}", "text": "rye bread dough", "year": 2020 + number} for number in range(3)]
    more.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert data("add", index, more)["documents"] == 43
    assert data("add", index, more, "--upsert")["replaced"] == 3
    assert "1 documents; " in good("delete", index, "new0").stdout
    found = data("search", index, "rye bread", "-k", "50", "--filter", "year>=2021", "--filter", "year<2022")
    assert [hit["id"] for hit in found["hits"]] == ["new1"]
    within = data("search", index, "rye bread", "-k", "50", "--filter", "year>2000", "--subset-idf")
    assert {hit["id"] for hit in within["hits"]} == {"new1", "new2"}
    before = data("search", index, "rye bread", "-k", "50")
    assert data("compact", index)["segments"] == 1
    compacted = data("search", index, "rye bread", "-k", "50")  # names of concepts may change, scores may not
    assert [(hit["id"], hit["score"]) for hit in compacted["hits"]] == [
        (hit["id"], hit["score"]) for hit in before["hits"]
    ]
    assert data("retune", index, "--k1", "3", "--b", "0.4", "--power", "0.8")["recipe"]["weighting"]["k1"] == 3
    after = data("search", index, "rye bread", "-k", "50")
    assert [hit["score"] for hit in after["hits"]] != [hit["score"] for hit in before["hits"]]
    good("verify", index)


def test_doctor(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    report = data("doctor", *tiny(place))
    assert report["ok"] is True
    names = [check["name"] for check in report["checks"]]
    assert {
        "packages",
        "encoder",
        "lexicon",
        "engines",
        "bfloat16",
        "threads",
        "kernels",
        "cache",
        "current folder",
    } <= set(names)
    assert "ok" in good("doctor", *tiny(place)).stdout


def test_doctor_finds_a_problem(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEXENT_CACHE", str(tmp_path / "file"))
    result = run("doctor", "--encoder", "tiny", "--lexicon", "nonesuch")
    assert result.exit_code == 1
    assert "problem  lexicon" in result.stdout
    assert "problem  cache" in result.stdout
    assert "remedy: name another folder: export LEXENT_CACHE" in result.stdout


# --- eval and train ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory, place: Path) -> Path:
    folder = tmp_path_factory.mktemp("beir") / "small"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text((place / "docs.jsonl").read_text())
    queries = {"q1": "dough in the oven", "q2": "planet and galaxy"}
    lines = (json.dumps({"_id": name, "text": text}) for name, text in queries.items())
    (folder / "queries.jsonl").write_text("\n".join(lines))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td0\t1\nq1\td8\t1\nq2\td1\t1\nq2\td5\t1\n"
    )
    return folder


def test_eval_json_has_the_agreed_form(place: Path, collection: Path, tmp_path: Path) -> None:
    options = ("--measures", "nDCG@10,R@100", "--baselines", "dense,bm25", "--run-dir", tmp_path, *tiny(place))
    found = data("eval", collection, "--recipe", "latent-terms", *options, "--k1", 3)
    assert found["collection"] == "small"
    assert set(found["systems"]) == {"latent-terms", "dense", "bm25"}
    for values in found["systems"].values():
        assert set(values) == {"nDCG@10", "R@100"}
        assert all(0 <= value <= 1 for value in values.values())
    assert found["recipe"]["weighting"]["k1"] == 3
    run_file = tmp_path / "small-test-dense.run"
    again = data("eval", collection, "--baselines", "", "--run", run_file, *tiny(place))
    assert again["systems"]["small-test-dense"]["nDCG@10"] == found["systems"]["dense"]["nDCG@10"]


def test_eval_table(place: Path, collection: Path) -> None:
    result = good("eval", collection, *tiny(place))
    assert "small (test): 40 documents, 2 queries" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["system", "nDCG@10", "p", "R@100", "p", "seconds"] in rows
    assert {"hybrid", "dense", "bm25"} <= {row[0] for row in rows if row}
    assert "next  lexent index" in result.stderr


def test_train_then_use_it(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "lexicon"
    settings = ("--encoder", "tiny", "--latents", 64, "--sae-k", 4, "--batch", 32, "--passes", 2, "--seed", 1)
    found = data("train", place / "docs.jsonl", "--out", out, *settings)
    assert found["path"] == str(out)
    assert 0 < found["concepts"] <= 64
    assert found["training"]["passes"] == 2
    index = data("index", place / "docs.jsonl", "--out", tmp_path / "i", "--encoder", "tiny", "--lexicon", out)
    assert index["concepts"] == found["concepts"]
    refused = run("train", place / "docs.jsonl", "--out", out, *settings)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr


def test_train_sample_is_even_and_repeatable() -> None:
    from lexent.cli.train.app import sampled

    texts = [str(number) for number in range(103)]
    some = sampled(texts, 10, count=103)
    assert len(some) == 10
    assert some == sampled(iter(texts), 10, count=None)
    assert max(map(int, some)) > 80
    assert sampled(texts, 500, count=103) == texts


# --- as a program ------------------------------------------------------------------------------------------------


def test_program_prints_json_on_stdout_and_talk_on_stderr(place: Path) -> None:
    done = program("search", place / "docs.lexent", "dough", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["query"] == "dough"
    done = program("search", place / "docs.lexent", "dough")
    assert "next" not in done.stdout
    assert "next  lexent" in done.stderr


def test_talk_can_be_silenced(place: Path, tmp_path: Path) -> None:
    quiet = {**os.environ, "LEXENT_PROGRESS": "0"}
    done = program("index", place / "docs.jsonl", "--out", tmp_path / "a", *tiny(place), env=quiet)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "40 documents" in done.stdout


def test_output_that_is_not_utf8_is_no_crash(place: Path) -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = program("search", place / "docs.lexent", "dough", env=ascii_only)
    assert done.returncode == 0, done.stderr
    done = program("search", place / "docs.lexent", "naïve dough", "--json", env=ascii_only)
    assert json.loads(done.stdout)["query"] == "naïve dough"


def test_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    Lexicon.random(TinyEncoder(), size=4000).save(tmp_path / "big")
    words = [sys.executable, "-m", "lexent", "concepts", "list", "--lexicon", str(tmp_path / "big"), "-n", "4000"]
    for extra in ([], ["--json"]):
        process = subprocess.Popen([*words, *extra], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        assert "rror" not in process.stderr.read()
        process.stderr.close()
        process.wait(60)


def test_no_hit_under_a_filter_is_not_blamed_on_the_query(place: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"id": "a", "text": "dough in the oven", "year": 2001}\n')
    good("index", tmp_path / "notes.jsonl", "--out", tmp_path / "notes.lexent", *tiny(place))
    said = good("search", tmp_path / "notes.lexent", "dough", "--filter", "year=1900")
    assert "no document that passes the filter shares a concept with the query" in said.stdout
