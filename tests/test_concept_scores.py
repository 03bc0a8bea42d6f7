"""Are names true? The questions, the judges, the controls, the pages for people, and the verb `score`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import named
from commands import data, good, run
from http_server import Answer, said, server
from lexent.encoders import Encoder, TinyEncoder
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.evaluation.collections import Collection
from lexent.lexicon import Concepts, Lexicon
from lexent.lexicon.activations import observe
from lexent.lexicon.answer_cache import Replies
from lexent.lexicon.endpoint import Completion, Endpoint
from lexent.lexicon.evidence import is_held_out
from lexent.studies.naming import Named, Option, Outcome, Question, grade
from lexent.studies.naming.exam import Plan, prepare, report
from lexent.studies.naming.grades import auc, credit, interval, paired, uniqueness
from lexent.studies.naming.judges import EmbeddingJudge, WordsJudge, terms
from lexent.studies.naming.model_judge import ModelJudge, prompts, scores
from lexent.studies.naming.questions import SETTINGS
from lexent.studies.naming.tasks import CONCEPTS_PER_BLOCK, Weigher, exchanged, simulations
from lexent.studies.naming.worksheets import export, score
from lexent.types import Document, Level

ENCODER = TinyEncoder()
TEXTS = named.texts(400, length=4)


def exam(lexicon: Lexicon, **settings: Any) -> Any:
    tasks = settings.pop("tasks", ("intrusion", "named-intrusion", "detection", "identification"))
    plan = Plan(tasks=tasks, **{"concepts": 30, "questions": 40, "examples": 9, **settings})
    return prepare(TEXTS, plan, lexicon=lexicon, encoder=ENCODER)


def by_task(found: list[Outcome]) -> dict[str, Outcome]:
    return {one.task: one for one in found if one.group == "all"}


# --- grades ------------------------------------------------------------------------------------------------------


def test_auc_is_the_share_of_mann_and_whitney() -> None:
    from scipy.stats import mannwhitneyu

    draw = np.random.default_rng(0)
    for _ in range(20):
        values = draw.integers(0, 6, 30).astype(float)  # with ties
        right = np.flatnonzero(draw.random(30) < 0.4)
        truth = np.isin(np.arange(30), right)
        expected = mannwhitneyu(values[truth], values[~truth]).statistic / (truth.sum() * (~truth).sum())
        assert auc(values, right.tolist()) == pytest.approx(expected)


def test_intervals() -> None:
    from scipy.stats import binomtest

    for right, n in ((0, 10), (7, 10), (10, 10), (40, 200)):
        values = np.array([1.0] * right + [0.0] * (n - right))
        expected = binomtest(right, n).proportion_ci(method="wilson")
        assert interval(values, of_shares=True) == pytest.approx((expected.low, expected.high))
    values = np.random.default_rng(0).normal(0.7, 0.1, 400)
    low, high = interval(values, of_shares=False)
    assert high - low == pytest.approx(2 * 1.96 * 0.1 / 20, rel=0.1)
    assert paired(values, values) == 1.0
    assert paired(values, values - 0.1) is None
    assert paired(values[:1], values[:1]) is None


def question(task: Any = "intrusion", **settings: Any) -> Question:
    options = tuple(Option(f"text {number}") for number in range(settings.pop("n", 4)))
    return Question(task, settings.pop("options", options), settings.pop("right", (2,)), **settings)


def test_credit_is_shared_where_options_are_equally_good() -> None:
    one = question()
    assert one.chance == 0.25
    assert credit(one, np.array([0.0, 0.0, 1.0, 0.5])) == 1
    assert credit(one, np.array([2.0, 0.0, 1.0, 0.5])) == 0
    assert credit(one, np.array([0.0, 1.0, 1.0, 0.5])) == 0.5
    assert credit(one, np.zeros(4)) == 0.25
    assert credit(one, None) == 0
    assert credit(question("detection"), None) == 0.5


# --- controls ----------------------------------------------------------------------------------------------------


def test_wrong_names_come_from_concepts_of_like_frequency() -> None:
    counts = np.random.default_rng(0).permutation(600)
    names = [f"name {number}" for number in range(600)]
    found = exchanged(names, counts)
    assert len(found) == 599  # one is never active
    assert sorted(found.values()) == sorted(names[place] for place in np.flatnonzero(counts))  # each is used once
    for concept, name in found.items():
        other = int(name.split()[1])
        assert other != concept
        assert abs(counts[other] - counts[concept]) <= 2 * CONCEPTS_PER_BLOCK
    assert found == exchanged(names, counts)
    assert found != exchanged(names, counts, seed=1)
    assert set(exchanged(["same", "same"], np.array([3, 3])).values()) == {""}


# --- judges ------------------------------------------------------------------------------------------------------


def test_terms_meet_their_other_forms() -> None:
    assert terms("The statins") == terms("statin")
    assert terms("studied studies study") == ["stud"] * 3
    assert terms("of the and") == []


@pytest.mark.parametrize("judge", [WordsJudge(TEXTS), EmbeddingJudge(ENCODER)])
def test_judges_answer_what_can_only_be_answered_so(judge: Any) -> None:
    bread, stars = "dough oven yeast flour", "comet planet nebula orbit"
    three = (Option(bread), Option("dough loaf flour"), Option(stars), Option("yeast dough bake"))
    asked = [
        question(options=three),
        question("named-intrusion", options=three, concepts=(Named("dough flour"),)),
        question("identification", options=three, concepts=(Named("comet", 2.0), Named("dough", 0.5), Named("orbit"))),
        question(
            "simulation",
            options=tuple(Option(concepts=(Named(name), Named("comet"))) for name in ("oven", "orbit")),
            right=(1,),
            query="planet orbit",
        ),
        question("detection", options=three, right=(0, 1, 3), concepts=(Named("dough"),)),
    ]
    found = judge.judge(asked)
    assert [credit(one, answer) for one, answer in zip(asked, found, strict=True)] == [1.0] * 5


def test_likeness_is_a_cosine() -> None:
    for judge in (WordsJudge(TEXTS), EmbeddingJudge(ENCODER)):
        among = judge.alike(TEXTS[:5], TEXTS[:5])
        assert among.shape == (5, 5)
        np.testing.assert_allclose(np.diag(among), 1, atol=1e-5)
        assert judge.alike(["qqq"], TEXTS[:2]).shape == (1, 2)
    assert WordsJudge(TEXTS).alike(["", "the"], ["dough"]).tolist() == [[0.0], [0.0]]


def test_uniqueness() -> None:
    found = uniqueness(["bread oven", "Bread oven", "comet", "dough oven"], [WordsJudge(TEXTS)])
    assert found.distinct == 0.5
    assert found.names == found.looked_at == 4
    assert 0.5 < found.nearest["words"] < 0.8  # two are the same, one is near, one is alone


# --- names that are true, and names that are not -----------------------------------------------------------------


def test_true_names_beat_the_control_and_false_ones_do_not() -> None:
    lexicon = named.lexicon()
    ring = [replace(concept, label=named.WORDS[(concept.id + 15) % len(named.WORDS)]) for concept in lexicon.concepts]
    false = Lexicon(lexicon.sae, Concepts(ring), lexicon.info)
    judge = WordsJudge(TEXTS)
    true_found = by_task(grade(exam(lexicon).pairs, judge))
    false_found = by_task(grade(exam(false).pairs, judge))
    assert true_found["detection"].value > 0.97
    assert true_found["named-intrusion"].value > 0.9
    assert true_found["identification"].value > 0.9
    for task in ("detection", "named-intrusion", "identification"):
        one = true_found[task]
        assert one.low > one.control
        assert one.p < 0.001
        assert false_found[task].value < one.low - 0.2
        assert one.control == pytest.approx(one.chance, abs=0.2)
    assert true_found["intrusion"].value == false_found["intrusion"].value  # names play no part in it
    assert true_found["intrusion"].value > 0.5 > true_found["intrusion"].control


@pytest.mark.parametrize("level", ["tokens", "pooled"])
def test_questions_are_from_the_held_out_part_only(level: Level) -> None:
    made = exam(named.lexicon(level=level, k=3))
    assert made.concepts == len({pair.question.subject for pair in made.pairs if pair.question.task == "detection"})
    assert made.concepts <= made.active
    parts = {text.split()[-1]: is_held_out(text) for text in TEXTS}
    for pair in made.pairs:
        for one in (pair.question, pair.control):
            assert len(one.options) == (18 if one.task == "detection" else 10)
            for option in one.options:
                assert parts[option.text.split()[-1]]
        same = pair.question.options == pair.control.options
        assert same == (pair.question.task != "intrusion")
        assert pair.question.right == pair.control.right


def test_a_report_has_every_group_and_is_the_same_each_time() -> None:
    lexicon = named.lexicon()
    judges = [WordsJudge(TEXTS), EmbeddingJudge(ENCODER)]
    told: list[tuple[str, int, int]] = []
    found = report(exam(lexicon), judges, likeness=judges, progress=lambda *step: told.append(step))
    assert {one.group for one in found.outcomes} == {"all", "lexical", "narrow"}
    assert {one.judge for one in found.outcomes} == {"words", "embedding"}
    assert told[-1][1] == told[-1][2]
    whole = by_task([one for one in found.outcomes if one.judge == "words"])["detection"]
    parts = [o for o in found.outcomes if o.judge == "words" and o.task == "detection" and o.group != "all"]
    assert sum(part.n for part in parts) == whole.n
    assert sum(part.n * part.value for part in parts) / whole.n == pytest.approx(whole.value)
    assert json.loads(json.dumps(found.to_dict())) == json.loads(
        json.dumps(report(exam(lexicon), judges, likeness=judges).to_dict())
    )


def test_hard_distractors_share_concepts_with_the_passage() -> None:
    lexicon = named.lexicon()
    topic = {word: name for name, words in named.TOPICS.items() for word in words.split() if word != "light"}

    def alike(pairs: Any) -> float:
        same = []
        for pair in pairs:
            kinds = [{topic[word] for word in option.text.split() if word in topic} for option in pair.question.options]
            same.append(np.mean([bool(kind & kinds[pair.question.right[0]]) for kind in kinds]))
        return float(np.mean(same))

    easy = exam(lexicon, tasks=("identification",)).pairs
    hard = exam(lexicon, tasks=("identification",), distractors="near").pairs
    assert alike(hard) > 0.95 > 0.6 > alike(easy)


def test_plans_that_cannot_be() -> None:
    with pytest.raises(InputError, match='no task "intrusoin"'):
        Plan(tasks=("intrusoin",))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="9 or more"):
        Plan(examples=5)
    with pytest.raises(InputError, match="give more texts"):
        prepare(TEXTS[:20], Plan(), lexicon=named.lexicon(), encoder=ENCODER)


# --- simulation --------------------------------------------------------------------------------------------------


def collection() -> Collection:
    documents = [Document(f"d{number}", text) for number, text in enumerate(TEXTS[:200])]
    queries, qrels = {}, {}
    for number, (topic, words) in enumerate(named.TOPICS.items()):
        for at in range(5):
            name = f"q{number}-{at}"
            queries[name] = " ".join(words.split()[at : at + 3])
            mine = [document.id for document in documents if document.id.startswith("d") and topic][number::4]
            qrels[name] = dict.fromkeys(mine[at::5], 1)
    return Collection("small", documents, queries, qrels)


def test_simulation_asks_what_its_settings_say() -> None:
    from lexent.evaluation.baselines import pooled

    given, lexicon = collection(), named.lexicon()
    seen = observe(TEXTS, encoder=ENCODER, lexicon=lexicon)
    weigher = Weigher.of(lexicon, seen)
    controls = exchanged(named.WORDS, seen.counts)
    pairs = simulations(given, controls, weigher=weigher, encoder=ENCODER, n=8, top=20)
    groups = [pair.question.group for pair in pairs]
    assert set(groups) == {"R@P-R@P", "R@P-NR@P", "R@N-NR@P"}
    assert max(groups.count(group) for group in groups) <= 8
    documents = pooled(ENCODER, given.texts, kind="document")
    own = observe(given.texts, encoder=ENCODER, lexicon=lexicon).concepts_of(range(len(given.texts)))
    names = [{lexicon.label(concept) for concept, _ in weigher.strongest(*own[place])} for place in own]
    for pair in pairs:
        one = pair.question
        assert one.query == given.queries[one.subject]
        assert not any(option.text for option in one.options)
        scores = documents @ pooled(ENCODER, [one.query], kind="query")[0]
        rank = np.argsort(np.argsort(-scores, kind="stable"), kind="stable")
        shown = []
        for option in one.options:
            mine = {concept.name for concept in option.concepts}
            shown.append([place for place in own if names[place] == mine])
        relevant = {place for place, document in enumerate(given.documents) if document.id in given.qrels[one.subject]}
        fits = [
            (first, second)
            for first in shown[one.right[0]]
            for second in shown[1 - one.right[0]]
            if rank[first] < rank[second] and _setting(first, second, rank, relevant) == one.group
        ]
        assert fits, one
        asked = observe([one.query], encoder=ENCODER, lexicon=lexicon).concepts_of([0])[0]
        assert [each.name for each in one.concepts] == [lexicon.label(at) for at, _ in weigher.strongest(*asked)]
        assert [len(option.concepts) for option in pair.control.options] == [len(o.concepts) for o in one.options]
        assert len(pair.control.concepts) == len(one.concepts) > 0
        both = zip(pair.control.concepts, one.concepts, strict=True)
        assert all(wrong.name != true.name for wrong, true in both)
    outcome = by_task(grade(pairs, WordsJudge(TEXTS)))["simulation"]
    assert outcome.value > outcome.control


def _setting(higher: int, lower: int, rank: Any, relevant: set[int]) -> str:
    """R and NR: retrieved or not. P and N: positive or negative."""
    return "-".join(f"{'R' if rank[at] < 20 else 'NR'}@{'P' if at in relevant else 'N'}" for at in (higher, lower))


def test_simulation_counts_a_thousand_documents_as_retrieved() -> None:
    given, lexicon = collection(), named.lexicon()
    seen = observe(TEXTS, encoder=ENCODER, lexicon=lexicon)
    settings = {"weigher": Weigher.of(lexicon, seen), "encoder": ENCODER, "n": 8}
    controls = exchanged(named.WORDS, seen.counts)
    small = simulations(given, controls, **settings)
    assert {pair.question.group for pair in small} == {"R@P-R@P"}, "all 200 documents are retrieved"
    more = [Document(f"e{number}", text) for number, text in enumerate(named.texts(1300, length=4))]
    large = replace(given, documents=[*given.documents, *more])
    assert {pair.question.group for pair in simulations(large, controls, **settings)} == set(SETTINGS)


@pytest.mark.parametrize("judge", [WordsJudge(TEXTS), EmbeddingJudge(ENCODER)])
def test_judges_read_the_concepts_of_the_query(judge: Any) -> None:
    options = (Option(concepts=(Named("comet planet"),)), Option(concepts=(Named("dough flour"),)))
    for concepts, right in (((Named("dough oven flour"),), 1), ((Named("comet orbit planet"),), 0)):
        one = Question("simulation", options, (right,), "R@P-R@P", query="words that stand nowhere", concepts=concepts)
        (found,) = judge.judge([one])
        assert credit(one, found) == 1
    (prompt,) = prompts(one)
    assert "comet orbit planet" in prompt.messages[1]["content"]


# --- a language model as judge -----------------------------------------------------------------------------------


def test_prompts_hide_the_answer_and_show_the_rest() -> None:
    made = exam(named.lexicon(), examples=9)
    for pair in made.pairs:
        asked = prompts(pair.question)
        assert len(asked) == (2 if pair.question.task == "detection" else 1)
        shown = "\n".join(message["content"] for one in asked for message in one.messages)
        for option in pair.question.options:
            assert option.text in shown
        assert all(concept.name in shown for concept in pair.question.concepts)
        if pair.question.task == "intrusion":
            assert named.WORDS[int(pair.question.subject)] not in shown.split("\n\n")[-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", 2), (" Number 3.", 2), ("3 or 4", 2), ("<think>1</think>2", 1), ("none", None), ("77", None), ("", None)],
)
def test_answers_of_a_model(text: str, expected: int | None) -> None:
    found = scores(question(), [Completion(text)])
    assert (None if found is None else int(found.argmax())) == expected


def test_detection_answers_of_a_model_may_be_several_or_none() -> None:
    many = question("detection", n=12, concepts=(Named("x"),))
    found = scores(many, [Completion("1, 10"), Completion("2")])
    assert found is not None
    assert np.flatnonzero(found).tolist() == [0, 9, 11]
    assert scores(many, [Completion("none"), Completion("0")]).tolist() == [0.0] * 12  # type: ignore[union-attr]
    assert scores(many, [Completion("hm"), Completion("0")]) is None
    assert scores(many, [Completion("1"), None]) is None


def reader(posted: dict[str, Any], number: int) -> Answer:
    """A model that reads well: it looks for the named words in the numbered texts."""
    text = posted["messages"][1]["content"]
    lines = {int(line.split(".")[0]): set(line.split()) for line in text.splitlines() if re.match(r"\d+\. ", line)}
    wanted = set(re.findall(r'"([^"]+)"', text)) | set(re.findall(r"(\w+) \(\d", text.split("\n\n")[1]))
    hits = {number: len(words & wanted) for number, words in lines.items()}
    if "Which one does not" in text:
        return said(str(min(hits, key=lambda number: hits[number])))
    if "Their numbers" in text:
        return said(", ".join(str(number) for number, count in hits.items() if count) or "0")
    return said(str(max(hits, key=lambda number: hits[number])))


def test_a_model_that_reads_tells_true_names_from_wrong_ones(tmp_path: Path) -> None:
    made = exam(named.lexicon(), tasks=("named-intrusion", "detection", "identification"), concepts=8, questions=8)
    with server(reader) as running, Replies(tmp_path / "replies.jsonl") as replies:
        judge = ModelJudge(Endpoint(running.url, "reader"), replies=replies, concurrency=4)
        found = by_task(grade(made.pairs, judge))
        asked = len(running.posted)
        assert grade(made.pairs, judge)[0].judge == "reader"
        assert len(running.posted) == asked
    for one in found.values():
        assert one.value > 0.85
        assert one.control < one.value - 0.25
        assert one.unanswered == 0


def test_what_a_model_does_not_answer_is_wrong_and_counted() -> None:
    made = exam(named.lexicon(), tasks=("named-intrusion",), concepts=4)
    with server(lambda posted, number: said("I cannot say")) as running, Replies() as replies:
        found = by_task(grade(made.pairs, ModelJudge(Endpoint(running.url, "mute"), replies=replies)))
    assert (found["named-intrusion"].value, found["named-intrusion"].unanswered) == (0.0, 4)


# --- pages for people --------------------------------------------------------------------------------------------


def sheet(folder: Path) -> tuple[list[Question], Path, Path]:
    made = exam(named.lexicon(), tasks=("identification",), questions=6).pairs
    asked = [pair.question for pair in made]
    both = (Option(concepts=(Named("<b>oven</b>", 2.0), Named("loaf"))), Option(concepts=(Named("comet"),)))
    asked.append(Question("simulation", both, (1,), "R@P-NR@P", query="</script><script>alert(1)</script>"))
    asked.append(Question("simulation", both, (0,), "R@P-R@P", query="bread & butter"))
    page = folder / "sheet.html"
    return asked, page, export(asked, page)


def answered(folder: Path, answers: dict[int, int], name: str = "sheet.answers.json", **more: Any) -> Path:
    key = json.loads((folder / "sheet.key.json").read_text())
    path = folder / name
    given = {"worksheet": key["worksheet"], "page": "sheet", "person": "Ada", "answers": answers, **more}
    path.write_text(json.dumps(given))
    return path


def test_a_page_holds_no_answer_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    asked, page, key = sheet(tmp_path)
    text = page.read_text()
    assert '"right"' not in text
    assert "</script><script>alert" not in text
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", text)
    assert "https://" not in text
    assert [row["right"] for row in json.loads(key.read_text())["questions"]] == [list(one.right) for one in asked]


def test_answers_are_scored(tmp_path: Path) -> None:
    asked, _, _ = sheet(tmp_path)
    perfect = score(answered(tmp_path, {number: one.right[0] for number, one in enumerate(asked)}))
    assert {(one.task, one.group): (one.n, one.value, one.chance) for one in perfect} == {
        ("identification", "all"): (6, 1.0, pytest.approx(0.1)),
        ("simulation", "all"): (2, 1.0, 0.5),
        ("simulation", "R@P-NR@P"): (1, 1.0, 0.5),
        ("simulation", "R@P-R@P"): (1, 1.0, 0.5),
    }
    assert perfect[0].judge == "Ada"
    assert perfect[0].low < 0.7
    some = score(answered(tmp_path, {0: asked[0].right[0], 7: 1}))
    assert (some[0].value, some[0].unanswered) == (pytest.approx(1 / 6), 5)
    assert (some[1].value, some[1].unanswered) == (0.0, 1)


def test_answers_that_do_not_fit(tmp_path: Path) -> None:
    sheet(tmp_path)
    with pytest.raises(MismatchError, match="--key FILE"):
        score(answered(tmp_path, {}, worksheet="another"))
    with pytest.raises(NotFoundError, match="say where it is: --key FILE"):
        score(answered(tmp_path, {}, page="moved"))
    (tmp_path / "text.json").write_text("[1]")
    with pytest.raises(InputError, match="the file that the page saved"):
        score(tmp_path / "text.json")
    with pytest.raises(NotFoundError, match="no answers at"):
        score(tmp_path / "none.json")
    with pytest.raises(InputError, match="damaged"):
        score(answered(tmp_path, {"one": 1}))  # type: ignore[dict-item]


def test_a_page_can_be_filled_in_with_the_keyboard(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    chromium = Path("/usr/bin/chromium")
    if not chromium.exists():
        pytest.skip(f"no browser at {chromium}: apt install chromium")
    asked, page, _ = sheet(tmp_path)
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(chromium), args=flags)
        tab = browser.new_page(viewport={"width": 1100, "height": 900}, accept_downloads=True)
        errors: list[str] = []
        requests: list[str] = []
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(page.as_uri())
        tab.fill("#person", "Grace")
        tab.locator("h1").click()
        assert tab.locator("label").count() == 10
        assert asked[0].concepts[0].name in tab.locator("main .concepts").first.inner_text()
        for one in asked[:-1]:
            tab.keyboard.press(str((one.right[0] + 1) % 10))
            tab.keyboard.press("Enter")
        assert "Question 8 of 8" in tab.locator("#where").inner_text()
        assert tab.locator(".query").inner_text() == "bread & butter"
        tab.keyboard.press("ArrowLeft")
        assert "</script>" in tab.locator(".query").inner_text()
        assert "<b>oven</b>" in tab.locator("label").first.inner_text()
        assert tab.locator("label").nth(1).locator("input").is_checked()
        tab.keyboard.press("ArrowRight")
        tab.locator("label").nth(1).click()  # by mouse, and wrong
        assert "8 answered" in tab.locator("#count").inner_text()
        with tab.expect_download() as download:
            tab.keyboard.press("s")
        saved = tmp_path / download.value.suggested_filename
        download.value.save_as(saved)
        tab.reload()  # what was answered is still there
        assert "8 answered" in tab.locator("#count").inner_text()
        browser.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "blob:"))] == []
    found = {(one.task, one.group): one for one in score(saved)}
    assert found["identification", "all"].value == 1.0
    assert found["simulation", "all"].value == 0.5
    assert found["identification", "all"].judge == "Grace"


# --- the verb ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BEIR folder and two lexicons."""
    folder = tmp_path_factory.mktemp("scores")
    given = collection()
    beir = folder / "beir"
    (beir / "qrels").mkdir(parents=True)
    rows = [{"_id": f"d{number}", "text": text} for number, text in enumerate(TEXTS)]
    (beir / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{"_id": name, "text": text} for name, text in given.queries.items()]
    (beir / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    lines = [f"{query}\t{document}\t1\n" for query, judged in given.qrels.items() for document in judged]
    (beir / "qrels" / "test.tsv").write_text("".join(lines))
    named.lexicon().save(folder / "tokens")
    named.lexicon(level="pooled", name="pooled").save(folder / "pooled")
    return folder


def test_score_several_lexicons(place: Path) -> None:
    settings = ("--concepts", 12, "--questions", 10, "--examples", 9)
    both = ("--lexicon", place / "tokens", "--lexicon", place / "pooled")
    found = data("concepts", "score", place / "beir", *both, *settings)
    assert [one["lexicon"] for one in found["lexicons"]] == ["planted", "pooled"]
    assert [one["level"] for one in found["lexicons"]] == ["tokens", "pooled"]
    for one in found["lexicons"]:
        assert {row["task"] for row in one["outcomes"]} == {
            *("intrusion", "named-intrusion", "detection", "identification", "simulation")
        }
        assert {row["judge"] for row in one["outcomes"]} == {"words", "embedding (tiny)"}
        detection = next(row for row in one["outcomes"] if row["task"] == "detection" and row["group"] == "all")
        assert detection["value"] > detection["control"] + 0.2
        assert one["uniqueness"]["distinct"] == 1.0
    settings = ("--tasks", "simulation", "--judges", "words", "--questions", 5)
    result = good("concepts", "score", place / "beir", "--lexicon", place / "tokens", *settings)
    assert "no question of R@P-NR@P and R@N-NR@P" in result.stderr
    assert "all 400 documents are among the first 1,000; a smaller depth: --top 40" in result.stderr


def test_score_at_several_k(place: Path) -> None:
    words = ("concepts", "score", place / "beir", "--lexicon", place / "pooled", "--tasks", "detection")
    found = data(*words, "--sae-k", 2, "--sae-k", 3, "--judges", "words", "--examples", 9)["lexicons"]
    assert [one["k"] for one in found] == [2, 3]
    assert found[0]["active"] <= found[1]["active"]
    assert found[0]["outcomes"] != found[1]["outcomes"]


def test_score_for_people_to_read(place: Path) -> None:
    words = ("concepts", "score", place / "beir" / "corpus.jsonl", "--lexicon", place / "tokens")
    result = good(*words, "--concepts", 6, "--examples", 9, "--questions", 5, "--judges", "words")
    assert "simulation is left out" in result.stderr
    assert re.search(r"detection +words +all +6 +[01]\.\d+", result.stdout)
    assert "100.0% of 39 are distinct" in result.stdout
    assert "--export-html" in result.stderr


def test_score_by_a_model(place: Path, tmp_path: Path) -> None:
    words = ("concepts", "score", place / "beir", "--lexicon", place / "tokens", "--tasks", "named-intrusion")
    with server(reader) as running:
        model = ("--model", "reader", "--base-url", running.url, "--replies", tmp_path / "kept.jsonl", "--concepts", 5)
        refused = run(*words, *model, "--examples", 9)
        assert refused.exit_code == 2
        assert "10 requests" in refused.stderr
        assert running.posted == []
        found = data(*words, *model, "--examples", 9, "--judges", "model", "--yes")
    outcome = found["lexicons"][0]["outcomes"][0]
    assert (outcome["judge"], outcome["n"]) == ("reader", 5)
    assert outcome["value"] > outcome["control"]


def test_score_of_labels_beside_the_names_before(place: Path) -> None:
    from lexent.lexicon.labelling import renamed

    lexicon = named.lexicon()
    wrong = {number: f"x{number}" for number in range(0, len(named.WORDS), 2)}
    relabelled = Lexicon(lexicon.sae, renamed(lexicon.concepts, wrong, source="small"), lexicon.info)
    relabelled.save(place / "relabelled")
    words = ("concepts", "score", place / "beir", "--lexicon", place / "relabelled", "--labelled")
    found = data(*words, "--tasks", "detection", "--judges", "words", "--examples", 9)["lexicons"]
    assert [one["lexicon"] for one in found] == ["planted", "planted, as it was"]
    new, old = (one["outcomes"][0] for one in found)
    assert new["n"] == old["n"] <= len(wrong)
    assert new["value"] == 0.5
    assert old["value"] > 0.9


def test_score_pages_and_answers(place: Path, tmp_path: Path) -> None:
    words = ("concepts", "score", place / "beir", "--lexicon", place / "tokens", "--questions", 4, "--top", 20)
    result = good(*words, "--export-html", tmp_path / "sheet.html")
    key = json.loads((tmp_path / "sheet.key.json").read_text())
    tasks = [row["task"] for row in key["questions"]]
    assert set(tasks) == {"identification", "simulation"}
    assert f"{len(tasks)} questions" in result.stdout
    right = {number: row["right"][0] for number, row in enumerate(key["questions"])}
    found = data("concepts", "score", "--answers", answered(tmp_path, right))
    assert all(row["value"] == 1 for row in found["outcomes"])
    assert {row["group"] for row in found["outcomes"]} >= {"all", *SETTINGS}
    shown = good("concepts", "score", "--answers", tmp_path / "sheet.answers.json").stdout
    assert re.search(r"identification +Ada +all +4 +1\.000", shown)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["concepts", "score"], "no texts were given"),
        (["concepts", "score", "{corpus}", "--judges", "dice"], 'no judge "dice"; judges: words, embedding, model'),
        (["concepts", "score", "{corpus}", "--judges", "model"], "--model NAME"),
        (["concepts", "score", "{corpus}", "--tasks", "guess"], 'no task "guess"'),
        (["concepts", "score", "{corpus}", "--tasks", "detection", "--export-html", "x.html"], "and no page"),
    ],
)
def test_score_refuses_with_a_remedy(place: Path, words: list[str], said: str) -> None:
    given = [word.format(corpus=place / "beir" / "corpus.jsonl") for word in words]
    result = run(*given, *(["--lexicon", str(place / "tokens")] if len(words) > 2 else []))
    assert result.exit_code == 2
    assert said in result.stderr


# --- the shipped lexicon -----------------------------------------------------------------------------------------


@pytest.mark.data
def test_shipped_names_beat_the_control_on_claims_they_were_not_made_from(
    data_dir: Path, shared_encoder: Encoder
) -> None:
    from lexent.lexicon import load

    path = data_dir / "scifact" / "queries.jsonl"
    if not path.exists():
        pytest.skip(f"no {path}")
    claims = [json.loads(line)["text"] for line in path.read_text().splitlines()][:600]
    plan = Plan(tasks=("detection",), concepts=60, examples=9)
    made = prepare(claims, plan, lexicon=load(), encoder=shared_encoder)
    for judge in (WordsJudge(claims), EmbeddingJudge(shared_encoder)):
        found = grade(made.pairs, judge)[0]
        assert found.low > found.control
        assert found.p < 0.01
