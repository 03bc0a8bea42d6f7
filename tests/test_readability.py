"""Readability: lines of hits before and after, and what the document, a judge and held-out texts say of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import data, good, run
from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.errors import InputError, MismatchError, NotFoundError
from lexent.evaluation.collections import Collection, write
from lexent.lexicon.activations import observe
from lexent.lexicon.evidence import Example, Side
from lexent.lexicon.forms import FIRST_WORD, FUNCTION, PUNCTUATION, WHOLE_TEXT
from lexent.pipeline import Pipeline
from lexent.search.coded_text import WHOLE_TEXT as WHOLE_TEXT_WORD
from lexent.search.coded_text import CodedText
from lexent.search.groups import SHOWN_GROUPS
from lexent.studies.naming.grades import Scores
from lexent.studies.naming.judges import WordsJudge
from lexent.studies.naming.questions import Named, Option, Pair, Question
from lexent.studies.readability import Plan, readability
from lexent.studies.readability.coded_activations import CodedTokens, activations
from lexent.studies.readability.name_detection import graded
from lexent.studies.readability.nonsense import PER_KIND, everyday_words, gibberish, off_topic
from lexent.studies.readability.raising_words import RaisingWords, is_of_form
from lexent.studies.readability.separation import separation
from lexent.studies.readability.shown_lines import ShownHit, ShownLine, parts
from lexent.studies.readability.support import Closeness, misnamed, supported, supported_share
from lexent.types import Document, Tokens
from small import build, documents, lexicon
from test_fidelity import collection, perfect


def hit(*lines: ShownLine, score: float = 10.0, query: str = "q") -> ShownHit:
    return ShownHit(query, "d", "", score, lines)


# --- lines ---------------------------------------------------------------------------------------------------------


def test_shares_of_a_score_by_lines() -> None:
    found = hit(*(ShownLine(f"name{value}", value) for value in (4.0, 2.0, 1.0, 0.5, 0.5, 0.5, 0.5, 1.0)))
    assert len(found.shown) == SHOWN_GROUPS == 6
    assert found.shown_share == pytest.approx(0.85)
    assert found.share_of_first(1) == pytest.approx(0.4)
    assert found.share_of_first(20) == pytest.approx(1.0)


def test_heads_that_repeat_are_counted_in_any_form_and_among_shown_lines() -> None:
    names = ["compression · size", "zip", "compressed", "Zip.ZipFile", "file", "size · compression", "files"]
    assert hit(*(ShownLine(name, 1.0) for name in names)).repeated_heads == pytest.approx(4 / 6)
    assert hit(*(ShownLine(name, 1.0) for name in ("zip", "file · zip"))).repeated_heads == 0
    assert np.isnan(hit().repeated_heads)


def test_form_is_a_share_of_what_is_shown() -> None:
    lines = [ShownLine("file", 6.0), ShownLine("form", 2.0, of_form=True)]
    assert hit(*lines).form_share == pytest.approx(0.25)


def test_identifiers_part_at_dots_and_underscores() -> None:
    assert parts("os.path.getsize · zip_file · well-known") == ["os", "path", "getsize", "zip", "file", "well", "known"]


# --- the words that raised a line ----------------------------------------------------------------------------------


def coded() -> CodedText:
    """ "Zip the files." with concepts 1 and 2, and concept 3 raised by the text as a whole."""
    tokens = Tokens(["zip", "the", "files", "."], np.array([[0, 3], [4, 7], [8, 13], [13, 14]]), np.zeros(4, np.bool_))
    ids = np.array([[1, 2], [1, 0], [1, 2], [2, 0], [3, 0]], np.int32)
    values = np.array([[6.0, 1.0], [1.0, 0.0], [3.0, 1.0], [2.0, 0.0], [5.0, 0.0]], np.float32)
    return CodedText("Zip the files.", tokens, ids, values, summed=True, whole=True)


def test_words_that_raised_a_line_by_hand() -> None:
    words = RaisingWords.of(coded(), [1, 2, 3, 9])
    assert words.first == "zip"
    assert words.of_line({1: 5.0}) == pytest.approx({"zip": 0.6, "files": 0.3, "the": 0.1})
    # Concept 2 is raised by zip, files and the full stop with shares 1/4, 1/4 and 1/2.
    mixed = words.of_line({1: 3.0, 2: 1.0})
    assert mixed == pytest.approx({"zip": 2.05 / 4, "files": 1.15 / 4, ".": 0.5 / 4, "the": 0.3 / 4})
    assert list(mixed) == ["zip", "files", ".", "the"]
    assert words.of_line({3: 1.0}) == {WHOLE_TEXT_WORD: 1.0}
    assert words.of_line({9: 1.0}) == {}


def test_the_share_of_a_form_by_hand() -> None:
    words = RaisingWords.of(coded(), [1, 2, 3])
    assert words.share_of_form({2: 1.0}, {2: PUNCTUATION}) == pytest.approx(0.5)
    assert words.share_of_form({1: 1.0}, {1: FUNCTION}) == pytest.approx(0.1)
    assert words.share_of_form({1: 1.0}, {1: FIRST_WORD}) == pytest.approx(0.6)
    assert words.share_of_form({1: 3.0, 3: 1.0}, {1: FUNCTION, 3: WHOLE_TEXT}) == pytest.approx((0.3 + 1.0) / 4)


@pytest.mark.parametrize(
    ("word", "form", "found"),
    [
        ("running", "words ending in -ing", True),
        ("runner", "words ending in -ing", False),
        ("coroutine", "words beginning with co-", True),
        ("zip", "words beginning with co-", False),
        ("coroutine", "words with -rout-", True),
        ("the", FUNCTION, True),
        ("zip", FUNCTION, False),
        (";", PUNCTUATION, True),
        (WHOLE_TEXT_WORD, PUNCTUATION, False),
        (WHOLE_TEXT_WORD, WHOLE_TEXT, True),
        ("[cls]", WHOLE_TEXT, True),
    ],
)
def test_words_of_a_form(word: str, form: str, found: bool) -> None:
    assert is_of_form(word, form, first="first") == found


# --- support -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (ShownLine("compression · gzip", 1.0, ("compressed", "file")), True),
        (ShownLine("shutil.rmtree", 1.0, ("rmtree",)), True),
        (ShownLine("path", 1.0, ("os_path",)), True),
        (ShownLine("congress · parliament", 1.0, ("directory",)), False),
        (ShownLine("full stop · open", 1.0, (".",)), True),
        (ShownLine("stop · bus", 1.0, (".",)), False),
        (ShownLine("whole text · although", 1.0, (WHOLE_TEXT_WORD,)), True),
        (ShownLine("removal", 1.0, ()), False),
        (ShownLine("form", 1.0, ("of",), of_form=True, form_share=0.5), True),
        (ShownLine("form", 1.0, ("form",), of_form=True, form_share=0.4), False),
    ],
)
def test_support_by_words(line: ShownLine, found: bool) -> None:
    assert supported(line) == found


class FirstLetters:
    """Words are as alike as their first letters are near in the alphabet."""

    name = "first letters"

    def alike(self, left: Sequence[str], right: Sequence[str]) -> Scores:
        ours, theirs = (np.array([ord(word[0]) for word in side], np.float64) for side in (left, right))
        return 1.0 - np.abs(ours[:, None] - theirs[None, :]) / 25


def test_a_judge_supports_close_words_alone() -> None:
    closeness = Closeness(FirstLetters(), 0.95)
    line = ShownLine("folder · size", 1.0, ("directory", "everything"))
    assert not supported(line)
    assert supported(line, closeness)  # folder and everything
    assert not supported(replace(line, raised_by=("directory",)), closeness)
    assert not supported(replace(line, name="from"), closeness)  # a function word is close to none
    assert not supported(replace(line, raised_by=("f",)), closeness)  # nor is a letter
    assert not supported(replace(line, of_form=True), closeness)


def test_the_threshold_is_a_quantile_over_pairs_of_different_words_that_several_texts_have() -> None:
    words = [f"{letter}{letter}word" for letter in "abcdefghijklmnopqrstuvwxyz"]
    texts = [" ".join(words), f"{' '.join(words)} of the anchor", "aaword"]
    found = Closeness.of(FirstLetters(), texts)
    # Of 25 * 26 ordered pairs 50 are neighbours, who have 1 - 1/25, and none is closer: anchor stands in one text.
    assert found.threshold == pytest.approx(1 - 1 / 25)
    assert Closeness.of(FirstLetters(), ["one"]).threshold == 1.0


def test_the_supported_share_is_of_what_is_shown() -> None:
    lines = [
        ShownLine("zip", 6.0, ("zip",)),
        ShownLine("folder", 3.0, ("directory",)),
        *(ShownLine("other", 0.25, ("words",)) for _ in range(4)),
        ShownLine("late", 5.0, ("late",)),
    ]
    assert supported_share(hit(*lines)) == pytest.approx(0.6)
    assert supported_share(hit(*lines), Closeness(FirstLetters(), 0.9)) == pytest.approx(0.9)


def test_wrong_names_come_from_other_queries() -> None:
    first = hit(ShownLine("zip", 4.0, ("zip",)), ShownLine("form", 1.0, ("a",), of_form=True, form_share=1.0))
    second = hit(ShownLine("bread", 2.0, ("bread",)), query="r")
    found = misnamed([[first, first], [second]])
    assert [line.name for line in found[0][0].lines] == ["bread", "form"]
    assert [line.name for line in found[1][0].lines] == ["zip"]
    assert supported_share(found[0][0]) == pytest.approx(0.2)
    assert supported_share(found[1][0]) == 0
    assert [[len(one.lines) for one in hits] for hits in found] == [[2, 2], [1]]
    assert misnamed([[first]]) == [[first]]  # there is no other


# --- nonsense ------------------------------------------------------------------------------------------------------


def test_separation_by_hand() -> None:
    real = [float(number) for number in range(1, 101)]
    found = separation({"real": real[::-1], "letters": [0.0, 5.9, 6.0, 90.0], "off topic": [1.0, 2.0]})
    assert found.threshold == 6.0  # 5 of 100 real ones are below
    assert found.kinds == {"letters": 0.5, "off topic": 1.0}
    assert found.below == pytest.approx(4 / 6)
    assert found.low < found.below < found.high
    assert found.medians == {"real": 50.5, "letters": pytest.approx(5.95), "off topic": 1.5}
    assert separation({"real": [3.0], "letters": [3.0, 2.0]}).below == 0.5


def test_gibberish_comes_from_the_seed() -> None:
    made = gibberish(3)
    assert made == gibberish(3)
    assert made != gibberish(4)
    assert {kind: len(texts) for kind, texts in made.items()} == dict.fromkeys(
        ("letters", "made-up words", "word salad"), PER_KIND
    )
    assert all(set(text.split()) <= everyday_words() for text in made["word salad"])
    assert not any(set(text.split()) & everyday_words() for text in made["made-up words"])
    assert {len(text.split()) for text in made["letters"]} == {1, 2, 3, 4, 5}


def test_queries_off_topic_come_from_the_package_or_a_file(tmp_path: Path) -> None:
    own = off_topic()
    assert len(own) == len(set(own)) == 60
    file = tmp_path / "queries.txt"
    file.write_text("one query\n\n  another  \n")
    assert off_topic(file) == ["one query", "another"]
    file.write_text("\n")
    with pytest.raises(InputError, match="holds no query; write one a line"):
        off_topic(file)
    file.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match="is not UTF-8"):
        off_topic(file)
    with pytest.raises(NotFoundError, match="one query a line"):
        off_topic(tmp_path / "none.txt")


# --- names on held-out texts ---------------------------------------------------------------------------------------


def pipeline(**settings: object) -> Pipeline:
    return Pipeline(TinyEncoder(), lexicon(), recipes.get("latent-terms").having(**settings))


def test_activations_are_those_of_the_lexicon_where_the_recipe_codes_all_states() -> None:
    texts = [document.content for document in documents(30)] + ["flour, yeast."]
    whole = pipeline(specials=True, punctuation=True)
    found, expected = (
        activations(whole, texts),
        observe(texts, encoder=TinyEncoder(), lexicon=lexicon(), k=whole.recipe.k),
    )
    for name in ("texts", "peaks", "totals", "places", "offsets"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6)
    without = activations(pipeline(punctuation=False), texts)
    assert not np.isin(without.places[without.texts == 30], [1, 3]).any()  # the comma and the full stop
    assert np.isin(found.places[found.texts == 30], [1, 3]).any()


def test_tokens_agree_with_a_recipe_without_special_ones(shared_encoder: Encoder) -> None:
    (found,) = CodedTokens(shared_encoder, specials=False).tokenize(["zip files"], kind="document")
    assert found.strings == ["zip", "files"]
    (found,) = CodedTokens(shared_encoder, specials=True).tokenize(["zip files"], kind="document")
    assert found.strings == ["[CLS]", "zip", "files", "[SEP]"]


def test_detection_by_hand() -> None:
    """Of three concepts one is of form. The judge counts words that names and texts share."""
    options = tuple(Option(text) for text in ("bread oven", "bread yeast", "chess pawn", "star comet"))

    def pair(name: str, wrong: str, right: tuple[int, ...]) -> Pair:
        question = Question("detection", options, right, concepts=(Named(name),))
        return Pair(question, replace(question, concepts=(Named(wrong),)))

    def side(active: str, silent: str) -> Side:
        return Side((Example(0, active),), (Example(1, silent),))

    before = [pair("sleep", "dream", (0, 1)), pair("chess", "bread", (2, 3)), pair("bread", "chess", (2, 3))]
    after = [pair("bread", "chess", (0, 1)), pair("chess comet", "bread", (2, 3)), pair("bread", "chess", (2, 3))]
    judge = WordsJudge([option.text for option in options])
    examples = [side("bread", "chess"), side("star", "chess"), side("bread", "chess")]
    found = graded(before, after, examples, judge, form=np.array([False, False, True]))
    # By bread and not chess both texts on bread are first; by star and not chess, star is first and chess is last.
    assert found.by_examples == pytest.approx((1.0 + 0.5) / 2)
    assert found.before.auc == pytest.approx((0.5 + 0.75) / 2)
    assert found.after.auc == pytest.approx(1.0)
    assert found.after.wrong_names == pytest.approx((0.25 + 0.0) / 2)
    assert (found.after.concepts, found.after.form_concepts) == (2, 1)
    assert found.after.with_form == pytest.approx(2 / 3)


# --- the whole study -----------------------------------------------------------------------------------------------


def test_the_study_is_about_the_hits_of_an_index(tmp_path: Path) -> None:
    whole = collection()
    report = readability(whole, lexicon=lexicon(), encoder=TinyEncoder(), plan=Plan(hits=2, show=4))
    assert (report.documents, report.queries, report.hits) == (40, 4, 8)
    index = build(tmp_path / "index", list(whole.documents))
    own = index.searcher.models.unnamed_lexicon
    shares: dict[str, list[float]] = {"before": [], "after": []}
    for text in whole.query_texts:
        for found in index.search(text, k=2):
            explanation = found.explain()
            parts = {"before": explanation.contributions, "after": explanation.groups}
            for side, values in parts.items():
                shares[side].append(sum(one.value for one in values[:6]) / found.score)
    assert report.before.shown_share.value == pytest.approx(np.mean(shares["before"]), abs=1e-4)
    assert report.after.shown_share.value == pytest.approx(np.mean(shares["after"]), abs=1e-4)
    assert report.before.by_lines[5] == pytest.approx(report.before.shown_share.value)
    for before, after in report.examples:
        first = index.search(before.query, k=1)[0]
        assert (before.id, after.id) == (first.id, first.id)
        assert [line.name for line in before.lines] == [
            own.label(one.concept) for one in first.explain().contributions[:6]
        ]
        assert [line.name for line in after.lines] == [one.label for one in first.explain().groups[:6]]
    assert {len(example[0].lines) <= 6 for example in report.examples} == {True}
    # A lexicon without names has no word that a document supports, and the documents' own words do.
    assert report.before.supported is not None
    assert report.after.supported is not None
    assert report.before.supported.share.value == 0
    assert report.after.supported.share.value > 0.9 > report.after.supported.wrong_names
    assert report.before.repeated_heads.value == 1  # "concept 12"
    assert report.after.repeated_heads.value == 0
    assert report.judge is report.close is report.after.supported_by_judge is None
    assert report.detections == {}
    assert any("--judge" in note for note in report.notes)


def test_a_judge_tests_names_and_says_what_is_close(shared_encoder: Encoder) -> None:
    whole = collection(60)
    report = readability(
        whole, lexicon=lexicon(), encoder=TinyEncoder(), judge=shared_encoder, plan=Plan(hits=1, concepts=10)
    )
    assert report.judge == "all-MiniLM-L6-v2"
    assert report.close is not None
    assert 0.1 < report.close < 1
    for side in (report.before, report.after):
        assert side.supported is not None
        assert side.supported_by_judge is not None
        assert side.supported_by_judge.share.value >= side.supported.share.value
    assert set(report.detections) == {"quantiles", "top"}
    for found in report.detections.values():
        assert found.before.concepts + found.before.form_concepts == 10
        assert found.after.auc > found.before.auc  # "concept 12" describes nothing
        assert found.after.auc > found.after.wrong_names
    assert report.notes == ()


def test_too_few_texts_leave_names_untested(shared_encoder: Encoder) -> None:
    report = readability(collection(8), lexicon=lexicon(), encoder=TinyEncoder(), judge=shared_encoder)
    assert report.detections == {}
    assert any(note.startswith("names are not tested: ") for note in report.notes)


def test_a_recipe_of_whole_texts_has_no_support(shared_encoder: Encoder) -> None:
    recipe = recipes.get("clsr-efficient").changed(k=16)
    given = {"recipe": recipe, "lexicon": perfect("pooled"), "encoder": TinyEncoder(), "judge": shared_encoder}
    report = readability(collection(), **given)  # type: ignore[arg-type]
    assert report.after.supported is report.after.supported_by_judge is report.close is None
    assert any(note.startswith("support is not measured") for note in report.notes)
    assert 0 < report.after.shown_share.value <= 1 + 1e-6


def test_larger_collections_are_sampled_and_a_seed_draws_the_same() -> None:
    settings = {"lexicon": lexicon(), "encoder": TinyEncoder()}
    plans = [Plan(documents=44, queries=2, seed=seed) for seed in (1, 1, 2)]
    first, again, other = (readability(collection(60), plan=plan, **settings) for plan in plans)  # type: ignore[arg-type]
    assert (first.documents, first.queries) == (44, 2)
    assert first == again
    assert first != other


def test_nothing_undefined_is_a_number_in_json() -> None:
    one = Collection("x", [Document("a", "yeast dough oven")], {"q": "yeast oven"}, {"q": {"a": 1}})
    report = readability(one, lexicon=lexicon(), encoder=TinyEncoder())
    json.dumps(report.to_json(), allow_nan=False)


def test_what_is_refused(shared_encoder: Encoder) -> None:
    given = {"lexicon": lexicon(), "encoder": TinyEncoder()}
    with pytest.raises(InputError, match='the judge "tiny" is the encoder that the concepts come from'):
        readability(collection(), judge="tiny", **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="queries is 0"):
        Plan(queries=0)
    with pytest.raises(InputError, match="concepts is 1"):
        Plan(concepts=1)
    with pytest.raises(MismatchError, match="matches tokens"):
        readability(collection(), recipe="ssr", **given)  # type: ignore[arg-type]
    nothing = Collection("x", documents(4), {"q": " "}, {"q": {"d0": 1}})
    with pytest.raises(InputError, match=r"query is empty|found a document"):
        readability(nothing, **given)  # type: ignore[arg-type]


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readability")
    write(collection(), folder / "topics")
    lexicon().save(folder / "lexicon")
    return folder


def test_the_command_prints_a_table_and_examples(place: Path) -> None:
    tiny = ("--encoder", "tiny", "--lexicon", place / "lexicon")
    result = good("readability", place / "topics", *tiny, "--show", 2, "--hits", 1)
    assert "40 documents, 4 queries, 4 hits explained" in result.stdout
    assert "score in the first 6 lines" in result.stdout
    assert result.stdout.count("  before ") == 3  # the head of the table, and two hits
    assert "no judge" in result.stderr


def test_the_command_gives_json_and_writes_a_page(place: Path, tmp_path: Path) -> None:
    tiny = ("--encoder", "tiny", "--lexicon", place / "lexicon")
    file = tmp_path / "other.txt"
    file.write_text("something else\n")
    words = (*tiny, "--queries", 3, "--seed", 1, "--off-topic", file, "--out", tmp_path / "report.html")
    found = data("readability", place / "topics", *words)
    assert found["queries"] == 3
    assert set(found["before"]["separation"]["kinds"]) == {"letters", "made-up words", "word salad", "off topic"}
    assert len(found["after"]["separation"]["values"]["off topic"]) == 1
    assert found["after"]["shown_share"]["value"] > found["before"]["shown_share"]["value"]
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["after"] == found["after"]
    assert "--seed 1" in written["command"]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "score in the first 6 lines" in page


def test_the_command_refuses_the_encoder_of_the_index_as_judge(place: Path) -> None:
    result = run(
        "readability", place / "topics", "--encoder", "tiny", "--lexicon", place / "lexicon", "--judge", "tiny"
    )
    assert result.exit_code == 2
    assert "name another one: --judge NAME_OR_DIR" in result.stderr
