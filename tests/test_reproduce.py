"""The report: sections kept and made again, failures in place, and a page that needs nothing else."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from commands import good, run
from lexent.encoders import TinyEncoder
from lexent.errors import LexentError, MissingExtraError, NotFoundError
from lexent.evaluation.collections import Collection
from lexent.studies.reproduction import PAPERS, Sizes, Study, reproduce
from lexent.studies.reproduction.page import Part, page
from lexent.studies.reproduction.plots import INK, SERIES, inline
from lexent.studies.reproduction.reproduce import chosen, every_section
from lexent.studies.reproduction.section import Section
from test_fidelity import collection, perfect

pytest.importorskip("matplotlib")

SIZES = Sizes(queries=4, draws=2, texts=40, concepts=10, questions=5, limit=60)
VOID = {"meta", "link", "br", "img", "use", "path"}


def study(paper: str = "clsr", whole: Collection | None = None, **settings: Any) -> Study:
    level = "pooled" if paper == "clsr" else "tokens"
    given = {"encoder": TinyEncoder(), "lexicon": perfect(level), "sizes": SIZES, **settings}
    return Study.of(paper, whole or collection(), **given)  # type: ignore[arg-type]


class Balanced(HTMLParser):
    """Notes tags that are not closed, ids that stand twice, and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        self.links += [str(given[name]) for name in ("href", "src", "xlink:href") if given.get(name)]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("report")
    found = reproduce(study(), folder / "topics.html", command="lexent reproduce clsr topics")
    assert found.failed == {}
    return found.page, json.loads(found.data.read_text())


def test_every_section_is_there_with_its_tables(report: tuple[Path, Any]) -> None:
    text, data = report[0].read_text(), report[1]
    assert list(data["sections"]) == [section.name for section in every_section("clsr")]
    for name, section in data["sections"].items():
        assert section["error"] is None
        assert section["result"], name
        assert f'<section id="{name}">' in text
        assert f'href="#{name}"' in text
    assert text.count("<table>") > 20
    assert text.count("<svg") >= 10
    assert data["collection"] == "topics"
    assert "lexent reproduce clsr topics" in text


def test_the_page_is_whole_and_needs_nothing_else(report: tuple[Path, Any]) -> None:
    text = report[0].read_text()
    parser = Balanced()
    parser.feed(text)
    assert parser.wrong == []
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    assert all(link.startswith("#") for link in parser.links)
    assert {link[1:] for link in parser.links} <= set(parser.ids)
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    assert "prefers-color-scheme: dark" in text
    assert not any(stand_in in text for stand_in in (INK, *SERIES))


def test_the_papers_figures_stand_beside_ours(report: tuple[Path, Any]) -> None:
    text = report[0].read_text()
    assert "What the paper reports" in text
    assert "0.1903" in text
    assert "0.368" in text
    for paper in PAPERS.values():
        assert set(paper.tables) <= {section.name for section in every_section(paper.name)}
        for tables in paper.tables.values():
            for table in tables:
                assert all(len(row) == len(table.head) for row in table.rows)


def test_quality_is_what_evaluate_finds(report: tuple[Path, Any]) -> None:
    from lexent.evaluation import evaluate

    found = evaluate(collection(), recipe=["clsr"], lexicon=perfect("pooled"), encoder=TinyEncoder())
    values = report[1]["sections"]["quality"]["result"]["values"]
    for name in ("clsr", "dense", "bm25"):
        assert values[name] == pytest.approx(found.systems[name])


def test_what_is_done_is_kept_and_a_change_makes_it_again(tmp_path: Path) -> None:
    only = ["quality", "zipf"]
    first = reproduce(study(), tmp_path / "r", only=only)
    assert first.page == tmp_path / "r.html"
    assert first.kept == ()
    (tmp_path / "r.work" / "zipf.json").write_text('{"key": "half a file')
    again = reproduce(study(), tmp_path / "r", only=only)
    assert again.kept == ("quality",)
    assert reproduce(study(), tmp_path / "r", only=only).kept == ("quality", "zipf")
    assert reproduce(study(whole=collection(36)), tmp_path / "r", only=only).kept == ()
    assert reproduce(study(measures=("RR@10",)), tmp_path / "r", only=["quality"]).kept == ()


def test_sizes_count_only_where_they_are_used() -> None:
    few, many = study(), study(sizes=Sizes(queries=9, draws=2, texts=40, concepts=10, questions=5, limit=60))
    same = {
        section.name: few.key(section.name, version=1, sizes=section.sizes)
        == many.key(section.name, version=1, sizes=section.sizes)
        for section in every_section("latent-terms")
    }
    assert [name for name, kept in same.items() if not kept] == ["faithfulness"]


def test_other_recipes_count_only_where_they_are_measured() -> None:
    from dataclasses import replace

    alone = study()
    beside = replace(alone, others=(alone.systems[0],))
    changed = [
        section.name
        for section in every_section("clsr")
        if alone.key(section.name, version=1, every=section.every)
        != beside.key(section.name, version=1, every=section.every)
    ]
    assert changed == ["quality", "mismatch", "cost"]


def test_a_killed_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sections = {section.name: section for section in every_section("clsr")}

    def killed(study: Study) -> dict[str, Any]:
        raise KeyboardInterrupt

    def some(*_: Any, **__: Any) -> tuple[Section, ...]:
        return sections["quality"], Section("zipf", "Rank", "Why?", killed)

    monkeypatch.setattr(sys.modules["lexent.studies.reproduction.reproduce"], "chosen", some)
    with pytest.raises(KeyboardInterrupt):
        reproduce(study(), tmp_path / "r")
    assert not (tmp_path / "r.html").exists()
    monkeypatch.undo()
    assert reproduce(study(), tmp_path / "r", only=["quality", "zipf"]).kept == ("quality",)


def test_a_section_that_fails_stands_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sections = {section.name: section for section in every_section("clsr")}

    def broken(study: Study) -> dict[str, Any]:
        raise ValueError("a <b>bad</b> day")

    def some(*_: Any, **__: Any) -> tuple[Section, ...]:
        return Section("k", "Concepts", "How many?", broken), sections["quality"]

    monkeypatch.setattr(sys.modules["lexent.studies.reproduction.reproduce"], "chosen", some)
    found = reproduce(study(), tmp_path / "r")
    assert found.failed == {"k": "ValueError: a <b>bad</b> day"}
    text = found.page.read_text()
    assert "ValueError: a &lt;b&gt;bad&lt;/b&gt; day" in text
    assert '<section id="quality">' in text
    assert json.loads(found.data.read_text())["sections"]["k"]["error"] == found.failed["k"]


def test_latent_terms(tmp_path: Path) -> None:
    names = ["quality", "limit", "fidelity", "prune", "categories"]
    found = reproduce(study("latent-terms"), tmp_path / "r.html", only=names)
    assert found.failed == {}
    data = json.loads(found.data.read_text())
    limit = data["sections"]["limit"]["result"]
    assert limit["documents"] == 60
    assert limit["queries"] == 1035
    assert "33%" in found.page.read_text()


def test_sections_are_chosen_by_name() -> None:
    assert [section.name for section in chosen("clsr", only=["zipf", "quality"])] == ["quality", "zipf"]
    assert "names" not in [section.name for section in chosen("clsr", skip=["names"])]
    with pytest.raises(NotFoundError, match='did you mean "quality"'):
        chosen("clsr", only=["qualty"])
    with pytest.raises(NotFoundError, match='no section "limit"'):
        chosen("clsr", only=["limit"])
    with pytest.raises(NotFoundError, match="papers: clsr, latent-terms"):
        chosen("bert")
    with pytest.raises(LexentError, match="no section is left"):
        chosen("clsr", only=["zipf"], skip=["zipf"])


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "lexent\[report\]"'):
        reproduce(study(), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_words_of_the_page_are_escaped() -> None:
    head = {**study().head(), "collection": "<script>"}
    text = page(head, [Part("a", "A & B", "<i>?")], command="x < y", date="2026-01-01", version="1")
    assert "<script>" not in text
    assert "A &amp; B" in text
    assert "x &lt; y" in text


def test_two_plots_share_no_ids() -> None:
    one, two = (
        inline(f'<svg width="1pt" height="1pt" viewBox="0 0 1 1"><g id="a"/><use xlink:href="#a" x="{x}"/></svg>', "p")
        for x in (1, 2)
    )
    first, second = (re.search(r'id="([^"]+)"', each)[1] for each in (one, two))  # type: ignore[index]
    assert first != second
    assert f'href="#{first}"' in one


def test_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "topics"
    (folder / "qrels").mkdir(parents=True)
    whole = collection()
    rows = [json.dumps({"_id": doc.id, "title": doc.title, "text": doc.text}) for doc in whole.documents]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    queries = [json.dumps({"_id": id, "text": text}) for id, text in whole.queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n")
    judged = [f"{query}\t{doc}\t{grade}" for query, docs in whole.qrels.items() for doc, grade in docs.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    perfect("pooled").save(tmp_path / "lexicon")
    tiny = ["--encoder", "tiny", "--lexicon", tmp_path / "lexicon"]
    out = tmp_path / "report.html"
    result = good("reproduce", "clsr", folder, "--out", out, "--only", "quality,cost", *tiny)
    assert f"{out}: 2 sections" in result.stdout
    assert f"--out {out} --only quality,cost --encoder tiny --lexicon {tmp_path / 'lexicon'}</code>" in out.read_text()
    found = json.loads(
        good("reproduce", "clsr", folder, "--out", out, "--only", "quality,cost", *tiny, "--json").stdout
    )
    assert found["kept"] == ["quality", "cost"]
    assert run("reproduce", "clsr", folder, "--out", out, "--only", "nothing", *tiny).exit_code == 3
    few = run("reproduce", "clsr", folder, "--out", out, "--only", "names,quality", *tiny, "--texts", 8)
    assert few.exit_code == 1
    assert "failed   names:" in few.stderr

    fidelity = json.loads(good("fidelity", folder, "--sae-k", "4,32", *tiny, "--json").stdout)
    assert [row["k"] for row in fidelity["rows"]] == [4, 32]
    shown = good("fidelity", folder, "--sae-k", "4,32", *tiny).stdout
    assert "Spearman" in shown
    assert "perfect" in shown
    assert run("fidelity", folder, "--sae-k", "four", *tiny).exit_code == 2
    words = ["faithfulness", folder, "--recipe", "clsr,clsr-efficient", "--draws", 2, *tiny]
    trials = json.loads(good(*words, "--json").stdout)
    assert [recipe["recipe"] for recipe in trials["recipes"]] == ["clsr", "clsr-efficient"]
    assert "explained" in good(*words).stdout
