"""Names made without a language model: forms merged, pieces completed, no latent that fires without a name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexent.encoders import ArrayEncoder, Encoder, TinyEncoder
from lexent.encoders.encoder import encode
from lexent.errors import InputError
from lexent.lexicon import LexiconInfo
from lexent.lexicon.concepts import Concept
from lexent.lexicon.names import WORD, grouped, name_all, same_word
from lexent.lexicon.names import Word as NamedWord
from lexent.lexicon.naming import named_lexicon
from lexent.lexicon.statistics import Shares, Statistics, collect
from lexent.lexicon.words import words_of
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.sae.config import SAEConfig
from lexent.types import Tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("statin", "statins"),
        ("plan", "planned"),
        ("study", "studies"),
        ("bake", "baking"),
        ("cluster", "clustering"),
        ("normalise", "normalisation"),
        ("normalize", "normalized"),
        ("clinical", "clinically"),
        ("patient", "patient's"),
        ("run", "running"),
        ("of", "of"),
    ],
)
def test_forms_of_one_word(one: str, other: str) -> None:
    assert same_word(one, other)
    assert same_word(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("in", "ink"),
        ("as", "asks"),
        ("new", "newton"),
        ("statin", "status"),
        ("cholesterol", "cholera"),
        ("car", "carbon"),
        ("protein", "protest"),
        ("", "s"),
        ("is", "its"),
    ],
)
def test_different_words(one: str, other: str) -> None:
    assert not same_word(one, other)
    assert not same_word(other, one)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abest", min_size=0, max_size=9), max_size=40))
def test_grouping_is_joining_the_first_group_that_fits(texts: list[str]) -> None:
    words = [NamedWord(text, 0.1, 0.1) for text in texts]
    slow: list[list[NamedWord]] = []
    for word in words:
        fits = [group for group in slow if same_word(group[0].text, word.text)]
        if fits:
            fits[0].append(word)
        else:
            slow.append([word])
    assert grouped(words) == slow


@settings(max_examples=200, deadline=None)
@given(st.text("ab. -'_é实", max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_the_pattern_of_a_word_does_not_look_around(text: str, start: int, length: int) -> None:
    """Naming counts the words of a part of a text with `WORD.findall(text, start, stop)`, without a copy."""
    assert WORD.findall(text, start, start + length) == WORD.findall(text[start : start + length])


# --- from tokens to words ----------------------------------------------------------------------------------------


def tokens_of(*found: tuple[str, int, int], special: tuple[int, ...] = ()) -> Tokens:
    flags = np.array([place in special for place in range(len(found))])
    return Tokens([string for string, _, _ in found], np.array([span[1:] for span in found]), flags)


def test_pieces_are_read_as_the_words_they_stand_in() -> None:
    text = "Statins, hyper-cholesterol!"
    tokens = tokens_of(
        ("[CLS]", 0, 0), ("stat", 0, 4), ("##ins", 4, 7), (",", 7, 8), ("hyper", 9, 14), ("-", 14, 15),
        ("chol", 15, 19), ("##esterol", 19, 26), ("!", 26, 27), ("[SEP]", 0, 0), special=(0, 9),
    )  # fmt: skip
    whole = "hyper-cholesterol"
    assert words_of(text, tokens) == ["[CLS]", "statins", "statins", ",", whole, whole, whole, whole, "!", "[SEP]"]


def test_a_prompt_is_no_word_of_the_text() -> None:
    tokens = tokens_of(("passage", 0, 0), (":", 0, 0), ("bread", 0, 5))
    assert words_of("bread", tokens) == ["passage", ":", "bread"]


def test_marks_of_other_tokenizers_are_not_words() -> None:
    text = "a – b 😀"
    tokens = tokens_of(
        ("<s>", 0, 0), ("a", 0, 1), ("ĠâĢĵ", 2, 3), ("Ġb", 4, 5), ("Ġ", 5, 6), ("[UNK]", 6, 7), special=(0,)
    )
    assert words_of(text, tokens) == ["<s>", "a", "–", "b", "space", "😀"]


def test_a_text_without_words() -> None:
    tokens = tokens_of(("[CLS]", 0, 0), ("!", 0, 1), special=(0,))
    assert words_of("!", tokens) == ["[CLS]", "!"]


def test_words_of_the_real_tokenizer(shared_encoder: Encoder) -> None:
    text = "Hypercholesterolaemia isn't rare."
    words = words_of(text, shared_encoder.tokenize([text], kind="document")[0])
    assert set(words) == {"[CLS]", "hypercholesterolaemia", "isn't", "rare", ".", "[SEP]"}
    assert words.count("hypercholesterolaemia") > 2


# --- names from counts -------------------------------------------------------------------------------------------


def named(
    fires_on: list[dict[str, float]],
    *,
    texts: list[str] | None = None,
    pieces: list[dict[str, float]] | None = None,
    places: list[list[tuple[int, int, int]]] | None = None,
) -> list[Concept]:
    """Concepts of latents that fire on words with given strengths; places: text and span of where they fired."""
    texts = texts or ["nothing to see here"]
    words = sorted({word for found in fires_on for word in found})
    parts = pieces or fires_on
    names = sorted({piece for found in parts for piece in found})
    places = places or [[] for _ in fires_on]
    contexts = np.full((len(fires_on), 24, 2), -1, np.int64)
    spans: dict[int, list[tuple[int, int]]] = {}
    for latent, found in enumerate(places):
        for slot, (text, start, stop) in enumerate(found):
            contexts[latent, slot] = text, len(spans.setdefault(text, []))
            spans[text].append((start, stop))
    statistics = Statistics(
        frequency=np.full(len(fires_on), 0.25, np.float32),
        words=words,
        word_rate=np.full(len(words), 1e-3),
        pieces=names,
        latent_words=shares(fires_on, words),
        latent_pieces=shares(parts, names),
        contexts=contexts,
        quotes=contexts,
    )
    return name_all(statistics, texts, {text: np.array(found) for text, found in spans.items()})


def shares(fires_on: list[dict[str, float]], names: list[str]) -> Shares:
    items, parts, counts = [], [], []
    for found in fires_on:
        total = sum(found.values())
        ranked = sorted(found, key=lambda name: -found[name])
        items += [names.index(name) for name in ranked]
        parts += [found[name] / total for name in ranked]
        counts.append(len(ranked))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Shares(offsets, np.array(items, np.int64), np.array(parts, np.float32))


def test_variants_of_one_word_are_one() -> None:
    concept = named([{"statins": 5.0, "statin": 4.0, "Statin's".lower(): 1.0}])[0]
    assert concept.label == "statin"
    assert concept.category == "lexical"
    assert concept.frequency == 0.25


def test_a_few_related_words_in_order() -> None:
    concept = named([{"statin": 4.0, "ldl": 3.0, "cholesterol": 3.0, "lipid": 0.1}])[0]
    assert concept.words == ("statin", "ldl", "cholesterol")  # the list stops where the share falls off
    assert concept.category == "narrow"


def test_many_words_are_broad() -> None:
    concept = named([{f"{chr(97 + n)}{chr(98 + n)}{n}word": 1.0 for n in range(24)}])[0]
    assert concept.category == "broad"
    assert 1 <= len(concept.words) <= 4


def test_endings_and_beginnings_are_said_to_be_so() -> None:
    ending = dict.fromkeys(("unique", "boutique", "technique", "antique", "oblique"), 1.0)
    beginning = dict.fromkeys(("cerium", "cerate", "cerulean", "ceramics", "cerotic"), 1.0)
    inside = dict.fromkeys(("osteocyte", "lactate", "glutenous", "pasteur", "hosted"), 1.0)
    found = named([ending, beginning, inside], pieces=[{"##ique": 5.0}, {"cer": 5.0}, {"##te": 5.0}])
    assert [one.label for one in found] == ["words ending in -ique", "words beginning with cer-", "words with -te-"]
    assert [one.form for one in found] == [one.label for one in found]


@pytest.mark.parametrize(
    ("token", "spoken"),
    [
        (",", "punctuation"),
        ("§", "punctuation"),
        ("[", "punctuation"),
        ("[CLS]", "whole text"),
        ("<s>", "whole text"),
        ("the", "function words"),
    ],
)
def test_a_form_is_named_for_what_it_is(token: str, spoken: str) -> None:
    found = named([{token: 3.0, "statin": 1.0}])[0]
    assert (found.label, found.form) == (spoken, spoken)


@pytest.mark.parametrize("token", ["space", "42", "statin"])
def test_what_is_no_form_has_its_own_name(token: str) -> None:
    found = named([{token: 1.0}])[0]
    assert (found.label, found.form) == (token, "")


def test_a_concept_keeps_the_words_that_raise_it() -> None:
    found = named([{"statin": 6.0, "ldl": 3.0, "lipid": 1.0}])[0]
    assert found.raised_by == (("statin", 0.6), ("ldl", 0.3), ("lipid", 0.1))


def test_a_suffix_that_many_words_share_is_a_form() -> None:
    running = dict.fromkeys(("running", "walking", "coding", "singing", "thinking", "dancing"), 1.0)
    assert named([running])[0].form == "words ending in -ing"
    assert named([{**running, "walking": 9.0}])[0].form == ""  # one word has most of it


def test_a_place_in_the_text_is_a_form() -> None:
    starts = dict.fromkeys(("however", "apple", "Berlin".lower(), "seven", "music"), 1.0)
    places = [[(text, 0, 5) for text in range(5)]]
    assert named([starts], texts=["words of a text"] * 5, places=places)[0].form == "first word of a text"


def test_latents_that_share_a_name_are_told_apart() -> None:
    texts = ["river bank water flood"] * 4 + ["money bank loan credit"] * 4 + ["other words all round"] * 40
    places = [[(place, 6, 10) for place in range(4)], [(place, 6, 10) for place in range(4, 8)], []]
    found = named([{"bank": 1.0}, {"bank": 1.0}, {"bank": 1.0}], texts=texts, places=places)
    labels = [concept.label for concept in found]
    assert len(set(labels)) == 3
    assert all(label.startswith("bank") for label in labels)
    assert "river" in labels[0] or "flood" in labels[0] or "water" in labels[0]
    assert "money" in labels[1] or "loan" in labels[1] or "credit" in labels[1]


def test_numbers_come_last_and_never_collide() -> None:
    labels = [concept.label for concept in named([{"bank": 1.0}] * 4)]
    assert labels == ["bank", "bank #2", "bank #3", "bank #4"]


def test_latents_that_never_fired_have_no_name() -> None:
    found = named([{"bread": 1.0}, {}])
    assert [concept.label for concept in found] == ["bread", ""]
    assert found[1].category == "unknown"


def test_examples_show_the_whole_word_in_brackets() -> None:
    text = "in this trial the hypercholesterolaemia group had fewer events than placebo"
    start = text.index("hyper")
    concept = named([{"x": 1.0}], texts=[text], places=[[(0, start + 5, start + 9)]])[0]
    assert concept.examples == ("trial the [hypercholesterolaemia] group had",)
    special = named([{"[CLS]": 1.0}], texts=[text], places=[[(0, 0, 0)]])[0]
    assert special.examples == ("in this trial the hypercholesterolaemia group …",)


# --- from texts to names -----------------------------------------------------------------------------------------

TEXTS = [
    "bread and salt in the oven",
    "the pawn takes the bishop",
    "salt bread, salt bread!",
    "a galaxy of dust",
    "the bishop in the galaxy",
] * 6


def word_sae(words: list[str]) -> SparseAutoencoder:
    """One latent a word, in the directions of the tiny encoder."""
    rows = encode(TinyEncoder(), words, kind="document").numpy()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    threshold = np.full(len(words), -4, np.float32)
    config = SAEConfig(32, len(words), 3, tied=True)
    return SparseAutoencoder(config, encoder=rows, decoder=None, b_enc=threshold, b_dec=np.zeros(32, np.float32))


def test_counts_of_a_pass() -> None:
    words = ["bread", "bishop", "galaxy", "unseen"]
    statistics = collect(TEXTS, encoder=TinyEncoder(), sae=word_sae(words), contexts=8)
    np.testing.assert_allclose(statistics.frequency, [0.4, 0.4, 0.4, 0.0], atol=1e-6)
    assert statistics.word_rate.sum() == pytest.approx(1)
    for latent, word in enumerate(words[:3]):
        items, parts = statistics.latent_words.of(latent)
        assert statistics.words[items[0]] == word
        assert parts[0] > 0.9
        assert parts.sum() == pytest.approx(1, abs=1e-5)
        spots = statistics.contexts[latent]
        assert (spots >= 0).all()
        assert len({tuple(spot) for spot in spots.tolist()}) == 8  # drawn without putting back
        for text, token in spots:
            assert word in TEXTS[text]
            assert TinyEncoder().tokenize([TEXTS[text]], kind="document")[0].strings[token] == word
    assert (statistics.contexts[3] == -1).all()


def test_the_same_pass_gives_the_same_counts() -> None:
    one, other = (collect(TEXTS, encoder=TinyEncoder(), sae=word_sae(["bread", "the"])) for _ in range(2))
    np.testing.assert_array_equal(one.contexts, other.contexts)
    np.testing.assert_array_equal(one.latent_words.shares, other.latent_words.shares)


def test_contexts_come_from_all_the_texts() -> None:
    """Drawn over the whole stream, not from its first batch."""
    texts = [f"bread number {place}" for place in range(400)]
    statistics = collect(texts, encoder=TinyEncoder(), sae=word_sae(["bread"]), contexts=24)
    seen = statistics.contexts[0, :, 0]
    assert seen.min() < 130
    assert seen.max() >= 270


def test_texts_without_tokens_do_no_harm() -> None:
    statistics = collect(["", "bread", "  "], encoder=TinyEncoder(), sae=word_sae(["bread"]))
    assert statistics.frequency[0] == pytest.approx(1 / 3)


def test_names_and_live_latents() -> None:
    info = LexiconInfo("words", "tiny", "tiny-1")
    done: list[int] = []
    sae = word_sae(["bread", "unseen", "bishop", "galaxy"])
    lexicon = named_lexicon(sae, TEXTS, encoder=TinyEncoder(), info=info, progress=done.append)
    assert [concept.label for concept in lexicon.concepts] == ["bread", "bishop", "galaxy"]
    assert [concept.id for concept in lexicon.concepts] == [0, 1, 2]
    np.testing.assert_array_equal(lexicon.sae.encoder_rows, sae.encoder_rows[[0, 2, 3]])
    assert sum(done) == len(TEXTS)
    assert all("[bread]" in example for example in lexicon.concepts[0].examples)
    with pytest.raises(InputError, match="no latent fires"):
        named_lexicon(word_sae(["unseen"]), TEXTS, encoder=TinyEncoder(), info=info)


def identity_sae() -> SparseAutoencoder:
    """Two latents, one for each of two numbers."""
    return SparseAutoencoder(
        SAEConfig(2, 2, 1, tied=True),
        encoder=np.eye(2, dtype=np.float32),
        decoder=None,
        b_enc=np.zeros(2, np.float32),
        b_dec=np.zeros(2, np.float32),
    )


def test_latents_of_pooled_states_are_named_by_the_words_of_their_texts() -> None:
    topics = {"bread": np.array([1.0, 0.0]), "chess": np.array([0.0, 1.0])}
    words = {"bread": "flour yeast dough oven", "chess": "pawn bishop rook king"}
    texts = {f"{words[topic]} number{place}": topics[topic] for topic in topics for place in range(12)}
    sae = identity_sae()
    encoder = ArrayEncoder(texts)
    info = LexiconInfo("pooled", encoder.id, encoder.fingerprint, "pooled")
    lexicon = named_lexicon(sae, list(texts), encoder=encoder, info=info)
    for concept, topic in zip(lexicon.concepts, topics, strict=True):
        assert set(concept.words) <= set(words[topic].split())
        assert concept.frequency == pytest.approx(0.5)
        assert len(concept.examples) == 3  # a strong, a middling and a weaker text
        assert all(example in texts for example in concept.examples)
        assert concept.category == "lexical"


def test_concepts_without_a_quotable_example_get_one_from_more_texts() -> None:
    rows = {f"flour yeast {place}": np.array([1.0, 0.0]) for place in range(12)}
    rows |= {f"pawn bishop {place}": np.array([0.0, 1.0]) for place in range(12)}
    named_on, more = [text for text in rows if text[-1] != "1"], ["pawn bishop 1", "flour yeast 1"]
    sae = identity_sae()
    encoder = ArrayEncoder(rows)
    info = LexiconInfo("pooled", encoder.id, encoder.fingerprint, "pooled")
    quotable = {text for text in rows if text.startswith("flour")}
    done: list[int] = []
    named = named_lexicon(
        sae, named_on, encoder=encoder, info=info, quotable=quotable, quotes=more, progress=done.append
    )
    assert sum(done) == len(named_on) + len(more)
    assert len(named.concepts[0].examples) == 3
    assert "flour yeast 1" not in named.concepts[0].examples
    assert named.concepts[1].examples == ("pawn bishop 1",)
    assert not named_lexicon(sae, named_on, encoder=encoder, info=info, quotable=quotable).concepts[1].examples


def test_examples_of_pooled_latents_begin_near_their_words() -> None:
    from lexent.lexicon.topics import _snippet

    text = " ".join(["word"] * 30 + ["statins,"] + ["after"] * 30)
    shown = _snippet(text, {"statins"})
    assert shown.startswith("… word word word statins, after")
    assert shown.endswith(" …")
    assert _snippet("short text", {"none"}) == "short text"
    assert _snippet("", {"none"}) == ""
    assert len(_snippet("長" * 500, {"none"})) < 100


def test_a_pooled_latent_that_knows_a_few_texts_by_heart_is_dropped() -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"word{letter}" for letter in "abcdefghij"])
    rows = {f"{' '.join(rng.choice(words, 4))} {place}": np.array([1.0, 0.0]) for place in range(10_000)}
    rows |= {f"rare {place}": np.array([0.0, 1.0]) for place in range(9)}
    encoder = ArrayEncoder(rows)
    sae = identity_sae()
    info = LexiconInfo("pooled", encoder.id, encoder.fingerprint, "pooled")
    assert named_lexicon(sae, list(rows), encoder=encoder, info=info).size == 1
    few = list(rows)[-50:]
    assert named_lexicon(sae, few, encoder=encoder, info=info).size == 2
