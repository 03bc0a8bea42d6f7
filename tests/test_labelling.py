"""What a concept is shown by, and names by a language model: evidence, prompts, answers, and the verb `label`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import named
from commands import data, good, run
from http_server import Answer, said, server
from lexent.encoders import TinyEncoder
from lexent.encoders.encoder import encode
from lexent.lexicon import Concept, Concepts, Lexicon, load
from lexent.lexicon.activations import Activations, observe
from lexent.lexicon.answer_cache import Replies
from lexent.lexicon.endpoint import Endpoint
from lexent.lexicon.evidence import QUANTILES, Evidence, eligible, gather, is_held_out
from lexent.lexicon.labelling import MARKER, estimate, label, parse, prompt, renamed
from lexent.pipeline import Pipeline
from lexent.recipes import Recipe
from lexent.types import Level
from model_server import INSTALL, serving, small_model

ENCODER = TinyEncoder()
TEXTS = named.texts(300)


def seen(level: Level = "tokens") -> tuple[Lexicon, Activations]:
    lexicon = named.lexicon(level=level)
    return lexicon, observe(TEXTS, encoder=ENCODER, lexicon=lexicon)


def evidence(level: Level = "tokens", **settings: Any) -> list[Evidence]:
    _, activations = seen(level)
    chosen = eligible(activations, held(), least=5)
    return gather(activations, TEXTS, concepts=chosen, encoder=ENCODER, level=level, **settings)


def held(seed: int = 0) -> np.ndarray:
    return np.array([is_held_out(text, seed=seed) for text in TEXTS])


# --- activations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["tokens", "pooled"])
def test_activations_are_what_the_pipeline_pools(level: Level) -> None:
    lexicon = replace_level(Lexicon.random(ENCODER, size=64, k=5), level)
    found = observe(TEXTS[:50], encoder=ENCODER, lexicon=lexicon)
    for how, values in (("sum", found.totals), ("max", found.peaks)):
        recipe = Recipe("test", level=level, k=5, pool=how)
        expected = Pipeline(ENCODER, lexicon, recipe).represent(TEXTS[:50], kind="document")
        dense = np.zeros((50, 64), np.float32)
        concept = np.repeat(np.arange(64), found.counts)
        dense[found.texts, concept] = values
        np.testing.assert_allclose(dense, expected.to_scipy().toarray(), rtol=1e-5)


def replace_level(lexicon: Lexicon, level: Level) -> Lexicon:
    return Lexicon(lexicon.sae, lexicon.concepts, replace(lexicon.info, level=level))


def test_the_place_of_the_peak_is_the_token_that_fired_strongest() -> None:
    lexicon, activations = seen()
    for concept in (0, 11, 25):
        own = activations.of(concept)
        for text, place in zip(activations.texts[own][:5], activations.places[own][:5], strict=True):
            tokens = ENCODER.tokenize([TEXTS[text]], kind="document")[0]
            codes = lexicon.sae.encode(encode(ENCODER, [TEXTS[text]], kind="document", level="tokens"))
            values = np.where(codes.ids == concept, codes.values, 0).max(axis=1)
            assert values[place] == values.max() > 0
            assert len(tokens) == len(values)


def test_concepts_of_texts() -> None:
    _, activations = seen()
    found = activations.concepts_of([7, 3])
    assert list(found) == [7, 3]
    for text, (concepts, totals) in found.items():
        mine = [concept for concept in range(len(named.WORDS)) if text in activations.texts[activations.of(concept)]]
        assert concepts.tolist() == mine
        assert (totals > 0).all()


# --- evidence ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["tokens", "pooled"])
def test_evidence_is_active_or_silent_as_it_says_and_the_parts_share_no_text(level: Level) -> None:
    _, activations = seen(level)
    found = evidence(level, active=12, silent=12)
    assert len(found) > 12
    parts = held()
    for one in found:
        own = set(activations.texts[activations.of(one.concept)].tolist())
        assert one.active_texts == len(own)
        for side, expected in ((one.naming, False), (one.held_out, True)):
            assert {example.place for example in side.active} <= own
            assert not {example.place for example in side.silent} & own
            assert all(parts[example.place] == expected for example in (*side.active, *side.silent))
            assert len(side.active) == len({example.place for example in side.active})
            strengths = [example.activation for example in side.active]
            assert strengths == sorted(strengths, reverse=True)
            assert min(strengths) > 0
            assert all(example.activation == 0 and example.quantile == -1 for example in side.silent)


def test_the_word_that_fired_is_marked_and_examples_are_of_one_length() -> None:
    exact = total = 0
    for one in evidence():
        for example in one.naming.active:
            word = example.text[example.start : example.stop]
            total += 1
            exact += word == named.WORDS[one.concept]
            assert f"[[{word}]]" in example.marked
            assert example.text in TEXTS[example.place]
    assert exact / total > 0.9
    long = [" ".join(f"{word} filler{number}" for number in range(60)) for word in ("dough", "comet") for _ in range(2)]
    lexicon = named.lexicon()
    activations = observe(long, encoder=ENCODER, lexicon=lexicon)
    concept = named.WORDS.index("dough")
    found = gather(activations, long, concepts=[concept], encoder=ENCODER, level="tokens")[0]
    lengths = {len(e.text.split()) for side in (found.naming, found.held_out) for e in (*side.active, *side.silent)}
    assert lengths == {33}


def test_examples_are_drawn_over_all_quantiles_and_the_top_is_the_top() -> None:
    spread = evidence(active=QUANTILES, silent=0)
    often = [one for one in spread if one.active_texts > 4 * QUANTILES]
    assert often
    assert all({example.quantile for example in one.naming.active} == set(range(QUANTILES)) for one in often)
    _, activations = seen()
    for one in evidence(active=5, silent=0, spread="top"):
        own = activations.of(one.concept)
        mine = ~held()[activations.texts[own]]
        strongest = np.sort(activations.peaks[own][mine])[::-1][:5]
        assert [example.activation for example in one.naming.active] == pytest.approx(strongest.tolist())


def test_evidence_is_the_same_each_time_and_other_with_another_seed() -> None:
    assert evidence(active=5) == evidence(active=5)
    assert evidence(active=5) != evidence(active=5, seed=1)
    assert (held(0) != held(1)).any()
    assert 0.4 < held().mean() < 0.6


def test_eligible_concepts_have_enough_of_both_kinds_in_both_parts() -> None:
    _, activations = seen()
    parts = held()
    chosen = eligible(activations, parts, least=20)
    for concept in range(len(named.WORDS)):
        own = activations.texts[activations.of(concept)]
        least = min(parts[own].sum(), (~parts[own]).sum(), parts.sum() - parts[own].sum())
        assert (concept in chosen) == (min(least, (~parts).sum() - (~parts[own]).sum()) >= 20)
    some = eligible(activations, parts, least=20, limit=5)
    assert len(some) == 5
    assert set(some) <= set(chosen)


# --- prompts and answers -----------------------------------------------------------------------------------------


def test_a_prompt_shows_the_naming_part_only() -> None:
    for level in ("tokens", "pooled"):
        for one in evidence(level, active=8, silent=3)[:10]:
            shown = prompt(one).messages[1]["content"]
            assert all(example.marked in shown for example in one.naming.active)
            assert not any(f"t{example.place}" in shown.split() for example in one.held_out.active)
            assert ("[[" in shown) == (level == "tokens")
            assert MARKER in shown
            grades = [int(line[1 : line.index(")")]) for line in shown.splitlines() if line.startswith("(")]
            assert grades[0] == 10
            assert grades == sorted(grades, reverse=True)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("[interpretation]: statins and cholesterol", "statins and cholesterol"),
        ("Well.\n\n[Interpretation]:  **Zip archives**.\n", "Zip archives"),
        ("**[interpretation]:** 'sleep'", "sleep"),
        ("interpretation: deep sea", "deep sea"),
        ("[interpretation]: first\nmore talk [interpretation]: second thoughts", "second thoughts"),
        ("<think>maybe fish? [interpretation]: fish</think>\n[interpretation]: birds", "birds"),
        ("Fruits", "Fruits"),
        ("[stem cells]", "stem cells"),
        ('"The concept stands for **cell division**."', "cell division"),
        ("[interpretation]: the [[bread]] oven", "the bread oven"),
        ("I think that this is about bread.\nBut I cannot be sure.", None),
        ("[interpretation]: " + "word " * 13, None),
        ("[interpretation]: ", None),
        ("[interpretation]: none", None),
        ("<think>never ends", None),
        ("...", None),
        ("", None),
    ],
)
def test_answers_are_read(answer: str, expected: str | None) -> None:
    assert parse(answer) == expected


def test_new_names_are_kept_apart_and_the_old_ones_stay() -> None:
    old = Concepts([Concept(0, "zip · archive"), Concept(1, "tar · ball"), Concept(2, "gz"), Concept(3, "Files")])
    found = renamed(old, {0: "files", 1: "files", 2: "archives"}, source="small")
    assert [concept.label for concept in found] == ["files (zip, archive)", "files (tar, ball)", "archives", "Files"]
    assert [concept.plain for concept in found] == ["zip · archive", "tar · ball", "gz", ""]
    assert [concept.source for concept in found] == ["small", "small", "small", ""]
    again = renamed(found, {0: "zipped", 2: "files (tar, ball)"}, source="large")
    assert [concept.label for concept in again][:3] == ["zipped", "files (tar, ball)", "files (tar, ball) (gz)"]
    assert again[0].plain == "zip · archive"
    same = renamed(Concepts([Concept(0, "a"), Concept(1, "b")]), {0: "a b", 1: "a b"}, source="x")
    assert sorted(concept.label for concept in same) == ["a b", "a b #2"]


def test_labels_are_saved_and_old_files_still_load(tmp_path: Path) -> None:
    lexicon = named.lexicon()
    lexicon.save(tmp_path / "old")
    size = (tmp_path / "old" / "concepts.json.gz").stat().st_size
    done = Lexicon(lexicon.sae, renamed(lexicon.concepts, {3: "ovens"}, source="small"), lexicon.info)
    done.save(tmp_path / "new")
    found = load(tmp_path / "new")
    assert list(found.concepts) == list(done.concepts)
    assert found.hash == lexicon.hash == load(tmp_path / "old").hash
    assert list(load(tmp_path / "old").concepts) == list(lexicon.concepts)
    import gzip

    assert b"source" not in gzip.decompress((tmp_path / "old" / "concepts.json.gz").read_bytes())
    assert size < 1000


# --- label -------------------------------------------------------------------------------------------------------


def word_of(posted: dict[str, Any], number: int = 0) -> Answer:
    """Answers as a good model would: the word that stands in brackets most often."""
    import re

    words = re.findall(r"\[\[(\w+)\]\]", posted["messages"][1]["content"])
    return said(f"{MARKER} {max(set(words), key=words.count)} things")


def test_label_names_what_can_be_named() -> None:
    lexicon = named.lexicon()
    found = evidence(active=6, silent=2)[:10]
    odd = [one.concept for one in found][4]

    def behave(posted: dict[str, Any], number: int) -> Answer:
        return said("I do not know.\nReally.") if f"[[{named.WORDS[odd]}]]" in str(posted) else word_of(posted)

    with server(behave) as running, Replies() as replies:
        done = label(lexicon, found, endpoint=Endpoint(running.url, "small"), replies=replies)
    assert (done.labels, done.unread, done.unanswered) == (9, 1, 0)
    assert (done.prompt_tokens, done.completion_tokens) == (70, 30)
    assert done.lexicon.hash == lexicon.hash
    for one in found:
        concept = done.lexicon.concept(one.concept)
        if one.concept == odd:
            assert concept == lexicon.concept(odd)
        else:
            assert concept.label == f"{named.WORDS[one.concept]} things"
            assert (concept.source, concept.plain) == ("small", named.WORDS[one.concept])
    assert done.lexicon.info.training["labels"]["labels"] == 9


def test_the_estimate_leaves_out_what_is_known(tmp_path: Path) -> None:
    found = evidence(active=6)[:6]
    asked = [prompt(one) for one in found]
    with server(word_of) as running, Replies() as replies:
        label(named.lexicon(), found[:2], endpoint=Endpoint(running.url, "small"), replies=replies)
        cost = estimate(asked, model="small", replies=replies, price_in=2.0, price_out=8.0)
    assert (cost.requests, cost.answered) == (4, 2)
    letters = sum(len(message["content"]) for one in asked[2:] for message in one.messages)
    assert cost.prompt_tokens == pytest.approx(letters / 4, rel=0.1)
    assert cost.cost == pytest.approx((cost.prompt_tokens * 2 + cost.completion_tokens * 8) / 1e6)
    assert estimate(asked, model="small", replies=replies, price_in=None, price_out=None).cost is None


@pytest.fixture
def place(tmp_path: Path) -> Path:
    named.lexicon().save(tmp_path / "lexicon")
    rows = [json.dumps({"_id": f"d{number}", "text": text}) for number, text in enumerate(TEXTS)]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows))
    return tmp_path


def words(place: Path, url: str, *more: object) -> list[object]:
    names = ["concepts", "label", place / "lexicon", place / "texts.jsonl", "--out", place / "named"]
    return [*names, "--model", "small", "--base-url", url, *more]


def test_label_asks_first_and_without_a_terminal_it_asks_for_yes(place: Path) -> None:
    with server(word_of) as running:
        result = run(*words(place, running.url, "--price-in", 1, "--price-out", 2))
        assert result.exit_code == 2
        assert "--yes" in result.stderr
        assert "requests, about" in result.stderr
        assert "at the given prices" in result.stderr
        assert running.posted == []
    assert not (place / "named").exists()


def test_label_writes_a_lexicon_and_says_what_it_did(place: Path) -> None:
    with server(word_of) as running:
        found = data(*words(place, running.url, "-n", 12, "--yes", "--examples", 5))
        assert found["labels"] == found["asked"] == len(running.posted) == 12
        refused = run(*words(place, running.url, "--yes"))
        assert "--overwrite" in refused.stderr
        again = data(*words(place, running.url, "-n", 12, "--yes", "--examples", 5, "--overwrite"))
        assert again["labels"] == 12
        assert len(running.posted) == 12  # all were known
    before, after = load(place / "lexicon"), load(place / "named")
    assert found["hash"] == after.hash == before.hash
    assert sum(concept.source == "small" for concept in after.concepts) == 12
    assert "`small`" in (place / "named" / "README.md").read_text()
    shown = good("concepts", "find", "things", "--lexicon", place / "named").stdout
    assert "things" in shown


def test_label_of_an_index_and_use_with_it(place: Path) -> None:
    good(
        "index",
        place / "texts.jsonl",
        "--out",
        place / "docs.lexent",
        "--encoder",
        "tiny",
        "--lexicon",
        place / "lexicon",
    )
    with server(word_of) as running:
        names = ["concepts", "label", place / "docs.lexent", place / "texts.jsonl", "--out", place / "named"]
        data(*names, "--model", "small", "--base-url", running.url, "--yes")
    found = data("search", place / "docs.lexent", "dough", "--lexicon", place / "named")
    assert any(part["label"] == "dough things" for part in found["hits"][0]["contributions"])


def test_the_key_is_taken_from_the_environment_and_never_shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    monkeypatch.setenv("MY_KEY", "sk-right-secret")
    with server(lambda posted, number: Answer(401, b"no such key: sk-right-secret")) as running:
        result = run("--debug", *words(place, running.url, "--yes", "--key-env", "MY_KEY"))
        assert running.headers[0]["Authorization"] == "Bearer sk-right-secret"
    assert result.exit_code == 9
    assert "no such key: ***" in result.stderr
    assert "sk-right-secret" not in result.stdout + result.stderr
    assert run(*words(place, running.url, "--yes", "--key-env", "NO_SUCH")).exit_code == 2


def test_a_killed_run_goes_on_where_it_was(place: Path) -> None:
    def slow(posted: dict[str, Any], number: int) -> Answer:
        answer = word_of(posted)
        answer.wait = 0.3
        return answer

    kept = place / "named.replies.jsonl"
    with server(slow) as running:
        command = [sys.executable, "-m", "lexent", *words(place, running.url, "--yes", "--concurrency", 2)]
        with subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL) as process:
            until = time.monotonic() + 90
            while time.monotonic() < until and (not kept.exists() or kept.read_bytes().count(b"\n") < 4):
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
        before = kept.read_bytes().count(b"\n")
        assert before >= 4
        assert not (place / "named").exists()
        asked = len(running.posted)
        running.behave = word_of
        found = data(*words(place, running.url, "--yes"))
        assert found["labels"] > before
        assert len(running.posted) - asked == found["labels"] - before


# --- a real model ------------------------------------------------------------------------------------------------


def test_a_real_model_on_loopback(place: Path) -> None:
    """SmolLM2-135M is too small to be right; what it says comes over the real protocol and is read, or counted."""
    model = small_model()
    if model is None:
        pytest.skip(f"no small model here: {INSTALL}")
    with serving(model, context=1024, parallel=1) as url:
        settings = ("-n", 2, "--examples", 3, "--yes", "--concurrency", 1)
        found = data(*words(place, url, *settings))
        assert found["labels"] + found["unread"] == found["asked"] == 2
        assert found["unanswered"] == 0
        assert found["prompt_tokens"] > 200
        rows = [json.loads(line) for line in (place / "named.replies.jsonl").read_text().splitlines()]
        assert all(row["text"].strip() for row in rows)
    again = data(*words(place, url, *settings, "--overwrite"))  # the server is gone, the answers are not
    assert again["labels"] == found["labels"]
