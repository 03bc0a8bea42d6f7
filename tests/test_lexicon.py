"""Lexicons: trained end to end, saved, loaded, searched by name; and the one that comes with Lexent."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexent.artifact import MANIFEST, check_hashes, read_manifest
from lexent.encoders import DEFAULT, ArrayEncoder, Encoder, TinyEncoder
from lexent.encoders.encoder import encode
from lexent.errors import ArtifactError, InputError, MismatchError, NotFoundError, TrainingWarning
from lexent.lexicon import Concept, Concepts, Lexicon, load, shipped
from lexent.lexicon.concepts import FILE
from lexent.lexicon.naming import named_lexicon
from lexent.training.loop import CHECKPOINT
from lexent.training.reconstruction.train import train, with_sentences
from lexent.training.reconstruction.trainer import METRICS, TrainConfig
from small import TOPICS, documents
from small import lexicon as small_lexicon

CONFIG = TrainConfig(d_sae=64, k=4, batch=32, lr=5e-3, dead_after=5000, k_aux=16)
TEXTS = [document.content for document in documents(120)]


@pytest.fixture(scope="module")
def default() -> Lexicon:
    """The lexicon that comes with Lexent."""
    return load()


def trained(out: Path, **settings: Any) -> Lexicon:
    return train(TEXTS, **{"out": out, "encoder": "tiny", "config": CONFIG, "passes": 4, **settings})


# --- training end to end -----------------------------------------------------------------------------------------


def test_from_texts_to_a_named_lexicon(tmp_path: Path) -> None:
    stages: list[tuple[str, float, str]] = []
    made = trained(tmp_path / "mine", progress=lambda *report: stages.append(report))
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}  # nothing of the run is left
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {
        "README.md", "cfg.json", "concepts.json.gz", MANIFEST, "sae_weights.safetensors",
    }  # fmt: skip
    back = load(tmp_path / "mine")
    assert list(back.concepts) == list(made.concepts)
    assert back.hash == made.hash
    assert back.info == made.info
    assert (back.name, back.encoder_id, back.info.level) == ("mine", "tiny", "tokens")
    back.check(TinyEncoder())
    labels = [concept.label for concept in back.concepts]
    assert all(labels)
    assert len(set(labels)) == len(labels) == back.size <= 64
    words = set(" ".join(TEXTS).split())
    assert {word for concept in back.concepts for word in concept.words[:1]} & words
    assert all(concept.examples and concept.frequency > 0 for concept in back.concepts)
    assert {concept.category for concept in back.concepts} <= {"lexical", "narrow", "broad"}
    assert [stage for stage, _, _ in stages][-1] == "name"
    for stage in ("train", "name"):
        shares = [share for name, share, _ in stages if name == stage]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
    text = (tmp_path / "mine" / "README.md").read_text()
    facts = back.info.training
    assert f"{back.size:,} named concepts" in text
    assert f"| fvu | {facts['fvu']} |" in text
    assert "| d_sae | 64 |" in text
    assert facts["texts"] == 120
    assert facts["states"] > 0
    assert 0 < facts["fvu"] < 0.6  # of the end of the run, not of its first step
    assert facts["states_per_second"] > 0


def test_every_state_of_the_training_texts_has_names(tmp_path: Path) -> None:
    made = trained(tmp_path / "mine")
    codes = made.codes(encode(TinyEncoder(), TEXTS, kind="document"), k=4)
    active = codes.ids[codes.values > 0]
    assert len(active) > 1000
    assert all(made.label(int(latent)) for latent in np.unique(active))


def test_sentences_are_learned_from_too(tmp_path: Path) -> None:
    long = "The first sentence is here. The second one is longer! Is the third a question? No. A fourth one follows."
    found = with_sentences(["one sentence of no great length", long], 2)
    assert found[:2] == ["one sentence of no great length", long]
    assert len(found) == 4
    assert all(part in long and 20 < len(part) < 40 for part in found[2:])
    assert found == with_sentences(found[:2], 2)
    assert with_sentences([long] * 20, 2, seed=1) != with_sentences([long] * 20, 2)
    assert len(with_sentences([long], 9)) == 5  # "No." is no sentence to learn from
    texts = [f"{one}. Then {other}." for one, other in zip(TEXTS[::2], TEXTS[1::2], strict=True)]
    settings = {"encoder": "tiny", "config": CONFIG, "passes": 4}
    with_them, without = (
        train(texts, out=tmp_path / f"{each}", sentences=each, **settings).info.training for each in (4, 0)
    )
    assert with_them["sentences"] >= 100
    assert without["sentences"] == 0
    assert with_them["states"] > 1.5 * without["states"]


def test_eight_bits(tmp_path: Path) -> None:
    full, small = trained(tmp_path / "full"), trained(tmp_path / "small", bits=8)
    assert load(tmp_path / "small").sae.config.bits == 8
    assert "8-bit weights" in (tmp_path / "small" / "README.md").read_text()
    size = {name: (tmp_path / name / "sae_weights.safetensors").stat().st_size for name in ("full", "small")}
    assert size["small"] < 0.5 * size["full"]
    cosine = (small.sae.decoder_rows @ full.sae.decoder_rows.T).max(axis=1)
    assert cosine.min() > 0.999
    assert abs(small.size - full.size) <= 2


def test_pooled_states(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = dict(zip(TOPICS, np.eye(4, 12), strict=True))
    texts = {f"{TOPICS[topic]} {n}": centres[topic] + rng.normal(0, 0.02, 12) for topic in TOPICS for n in range(20)}
    made = train(
        list(texts), out=tmp_path / "pooled", encoder=ArrayEncoder(texts), level="pooled", passes=30,
        config=replace(CONFIG, d_sae=16, k=1, batch=16),
    )  # fmt: skip
    assert load(tmp_path / "pooled").info.level == "pooled"
    for topic in TOPICS:
        codes = made.codes(encode(ArrayEncoder(texts), [f"{TOPICS[topic]} 0"], kind="query", level="pooled"), k=1)
        assert set(made.concept(int(codes.ids[0, 0])).words) & set(TOPICS[topic].split())


def test_what_stands_there_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    first = trained(tmp_path / "mine")
    with pytest.raises(InputError, match="--overwrite"):
        trained(tmp_path / "mine", config=replace(CONFIG, seed=1))
    assert load(tmp_path / "mine").hash == first.hash
    assert not (tmp_path / "mine.training").exists()  # refused before any work
    second = trained(tmp_path / "mine", config=replace(CONFIG, seed=1), overwrite=True)
    assert load(tmp_path / "mine").hash == second.hash != first.hash
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        trained(tmp_path / "other", overwrite=True)
    assert (tmp_path / "other" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"passes": 0}, "passes is 0"),
        ({"sentences": -1}, "sentences is -1"),
        ({"bits": 4}, "bits is 4; allowed: 8, 32"),
        ({"encoder": 7}, "given: int"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, settings: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        trained(tmp_path / "mine", **settings)
    assert list(tmp_path.iterdir()) == []


def test_no_text_to_train_on(tmp_path: Path) -> None:
    for texts in ([], ["", "  \n"]):
        with pytest.raises(InputError, match="no text to train on"):
            train(texts, out=tmp_path / "mine", encoder="tiny", config=CONFIG)


class Stop(Exception):
    pass


def test_a_run_stopped_while_naming_goes_on_from_there(tmp_path: Path) -> None:
    def stop(stage: str, share: float, detail: str) -> None:
        if stage == "name":
            raise Stop

    with pytest.raises(Stop):
        trained(tmp_path / "mine", progress=stop)
    assert not (tmp_path / "mine").exists()
    left = tmp_path / "mine.training"
    assert {path.name for path in left.iterdir()} == {CHECKPOINT, METRICS}
    before = (left / CHECKPOINT).stat().st_mtime_ns
    with pytest.raises(MismatchError, match=r"lr 0.005 \(now 0.01\)"):
        trained(tmp_path / "mine", config=replace(CONFIG, lr=1e-2))
    assert (left / CHECKPOINT).stat().st_mtime_ns == before
    stages: list[float] = []
    made = trained(
        tmp_path / "mine", progress=lambda stage, share, _: stages.append(share) if stage == "train" else None
    )
    assert stages == [1.0]  # it was trained already
    straight = trained(tmp_path / "straight")
    assert made.hash == straight.hash
    assert list(made.concepts) == list(straight.concepts)
    assert made.info.training["fvu"] == straight.info.training["fvu"]
    assert not left.exists()


KILLED = """
import os, signal, sys
import test_lexicon as shared

def kill(stage, share, detail):
    if stage == "name":
        os.kill(os.getpid(), signal.SIGKILL)

shared.trained(shared.Path(sys.argv[1]), progress=kill, overwrite=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_run_leaves_the_old_lexicon_and_goes_on(tmp_path: Path) -> None:
    old = trained(tmp_path / "mine", config=replace(CONFIG, seed=5))
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "mine")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert load(tmp_path / "mine").hash == old.hash
    assert (tmp_path / "mine.training" / CHECKPOINT).exists()
    made = trained(tmp_path / "mine", overwrite=True)
    assert load(tmp_path / "mine").hash == made.hash != old.hash
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}


# --- on disk -----------------------------------------------------------------------------------------------------


def test_there_and_back(tmp_path: Path) -> None:
    lexicon = small_lexicon()
    lexicon.save(tmp_path / "one", card="# a card\n")
    back = load(tmp_path / "one")
    assert back.hash == lexicon.hash
    assert list(back.concepts) == list(lexicon.concepts)
    assert (tmp_path / "one" / "README.md").read_text() == "# a card\n"
    manifest = read_manifest(tmp_path / "one", kind="lexicon")
    check_hashes(tmp_path / "one", {name: facts["sha256"] for name, facts in manifest["files"].items()}, remedy="")
    assert load(back) is back
    assert len(set(back.concepts)) == 96  # loaded concepts are values too


def test_names_do_not_change_the_hash(tmp_path: Path) -> None:
    lexicon = small_lexicon()
    renamed = Lexicon(lexicon.sae, Concepts([Concept(n, f"name {n}") for n in range(96)]), lexicon.info)
    assert renamed.hash == lexicon.hash
    assert small_lexicon(seed=1).hash != lexicon.hash


def test_a_second_coder_for_whole_texts_is_saved_and_opened_with_the_first(tmp_path: Path) -> None:
    lexicon = Lexicon.random(TinyEncoder(), size=96, whole=40)
    assert (lexicon.token_size, lexicon.size, len(lexicon.concepts)) == (96, 136, 136)
    assert lexicon.sae.hash() == small_lexicon().hash  # the first is what it would be alone
    assert lexicon.hash != small_lexicon().hash
    assert Lexicon(lexicon.sae, Concepts(lexicon.concepts[:96]), lexicon.info).hash == small_lexicon().hash
    folder = lexicon.save(tmp_path / "both")
    back = load(folder)
    assert (back.hash, back.size, list(back.concepts)) == (lexicon.hash, 136, list(lexicon.concepts))
    assert back.whole is not None
    assert lexicon.whole is not None
    assert back.whole.hash() == lexicon.whole.hash()
    states = encode(TinyEncoder(), TEXTS[:5], kind="document", level="pooled")
    mine, own = back.whole_codes(states, k=4), lexicon.whole.encode(states, k=4)
    np.testing.assert_array_equal(mine.ids, own.ids + 96)
    np.testing.assert_array_equal(mine.values, own.values)
    assert back.whole_codes(states).ids.shape == (5, lexicon.whole.config.k)
    manifest = read_manifest(folder, kind="lexicon")
    assert {"whole/cfg.json", "whole/sae_weights.safetensors"} <= set(manifest["files"])
    renamed = back.renamed(Concepts([replace(concept, label=f"c{concept.id}") for concept in back.concepts]))
    assert renamed.hash == back.hash
    near = back.neighbours(100, limit=3)  # among its own kind
    assert all(concept.id >= 96 for concept, _ in near)
    (folder / "whole" / "cfg.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"whole/cfg\.json has 2 bytes"):
        load(folder)


def test_a_lexicon_without_concepts_of_whole_texts_says_so() -> None:
    states = encode(TinyEncoder(), TEXTS[:1], kind="document", level="pooled")
    with pytest.raises(MismatchError, match=r"no concepts for whole texts.*--recipe ssr --whole"):
        small_lexicon().whole_codes(states)
    with pytest.raises(ArtifactError, match="95 names were given for the 96 latents"):
        Lexicon(small_lexicon().sae, Concepts(small_lexicon().concepts[:95]), small_lexicon().info)


def test_names_cover_both_coders() -> None:
    both = Lexicon.random(TinyEncoder(), size=96, whole=40)
    named = named_lexicon(both.sae, TEXTS, encoder=TinyEncoder(), info=both.info, whole=both.whole)
    labels = [concept.label for concept in named.concepts]
    assert len(set(labels)) == len(labels) == named.size
    assert [concept.id for concept in named.concepts] == list(range(named.size))
    assert all(label.startswith("about ") for label in labels[named.token_size :])
    assert any("dough" in label or "galaxy" in label for label in labels[named.token_size :])


def test_what_a_lexicon_was_trained_for_is_kept(tmp_path: Path) -> None:
    lexicon = small_lexicon()
    folder = lexicon.save(tmp_path / "plain")
    assert "match" not in read_manifest(folder, kind="lexicon")
    info = replace(lexicon.info, match="maxsim")
    folder = lexicon.renamed(lexicon.concepts, info).save(tmp_path / "ssr")
    assert load(folder).info.match == "maxsim"


def test_a_lexicon_without_names_is_called_by_numbers(tmp_path: Path) -> None:
    assert [concept.label for concept in Concepts.load(tmp_path, size=2)] == ["concept 0", "concept 1"]


def test_another_encoder_is_refused(shared_encoder: Encoder) -> None:
    with pytest.raises(MismatchError, match=r'for the encoder "tiny".*lexent train TEXTS --encoder all-MiniLM-L6-v2'):
        small_lexicon().check(shared_encoder)


def cut_names(folder: Path) -> None:
    data = bytearray((folder / FILE).read_bytes())
    data[len(data) // 2 : len(data) // 2 + 8] = b"\0" * 8
    (folder / FILE).write_bytes(bytes(data))


def other_names(folder: Path, table: Any) -> None:
    (folder / FILE).write_bytes(gzip.compress(json.dumps(table).encode()))


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        (cut_names, "damaged"),
        (lambda folder: (folder / FILE).write_bytes(b"not gzip"), "damaged"),
        (lambda folder: other_names(folder, [1]), "damaged"),
        (lambda folder: other_names(folder, {"label": ["a"], "colour": ["red"]}), "damaged"),
        (lambda folder: other_names(folder, {"label": ["a"], "examples": [[]]}), "names 1 concepts .* has 96"),
    ],
)
def test_damaged_names_are_refused(tmp_path: Path, harm: Any, what: str) -> None:
    small_lexicon().concepts.save(tmp_path)
    harm(tmp_path)
    with pytest.raises(ArtifactError, match=what):
        Concepts.load(tmp_path, size=96)


def test_a_damaged_folder_is_refused_by_name(tmp_path: Path) -> None:
    folder = small_lexicon().save(tmp_path / "one")
    (folder / "cfg.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"cfg\.json has 2 bytes.*lexent train"):
        load(folder)
    (folder / "cfg.json").unlink()
    with pytest.raises(ArtifactError, match=r"cfg\.json is missing"):
        load(folder)
    (folder / MANIFEST).write_text('{"kind": "lexicon", "format": 1, "name": "x"}')
    with pytest.raises(ArtifactError, match="encoder_id"):
        load(folder)
    (folder / MANIFEST).unlink()
    with pytest.raises(ArtifactError, match="not a lexent lexicon"):
        load(folder)


def test_an_unknown_lexicon_says_what_there_is() -> None:
    with pytest.raises(NotFoundError, match=r'no lexicon "nope".*all-MiniLM-L6-v2.*lexent train TEXTS --out nope'):
        load("nope")


def test_a_folder_of_the_default_name_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default: Lexicon
) -> None:
    """Someone may keep the encoder of that name in the working directory."""
    (tmp_path / DEFAULT).mkdir()
    monkeypatch.chdir(tmp_path)
    assert load().hash == default.hash


# --- by name -----------------------------------------------------------------------------------------------------


def concepts() -> Concepts:
    rows = [
        ("cholesterol · statin", 0.1), ("statin · ldl · cholesterol", 0.2), ("well-being", 0.3),
        ("trial (randomized)", 0.01), ("trials", 0.5), ("cholesterol · bile", 0.3),
        ("3d · image", 0.1), ("words in -ique · unique", 0.1),
    ]  # fmt: skip
    return Concepts([Concept(place, label, "narrow", share) for place, (label, share) in enumerate(rows)])


def test_find_ranks_by_place_words_and_frequency() -> None:
    assert [concept.id for concept in concepts().find("cholesterol")] == [5, 0, 1]
    assert [concept.id for concept in concepts().find("statin cholesterol")][:1] == [0]
    assert [concept.id for concept in concepts().find("CHOLESTEROL", limit=1)] == [5]
    assert [concept.id for concept in concepts().find("chol")] == [5, 1, 0]  # a beginning of a word will do
    assert [concept.id for concept in concepts().find("well-being")] == [2]
    assert concepts().find("") == []
    assert concepts().find("xyz") == []
    assert concepts().find("ch") == []


def test_resolve_by_number_label_and_words() -> None:
    found = concepts()
    for name in (1, "1", "#1", " #1 ", "statin · ldl · cholesterol", "ldl", "LDL statin"):
        assert found.resolve(name).id == 1
    assert found.resolve("trial randomized").id == 3
    assert found.resolve("words in -ique · unique").id == 7
    for name in (8, "#8", "800", -1):
        with pytest.raises(NotFoundError, match="numbered 0 to 7"):
            found.resolve(name)


@pytest.mark.parametrize("name", ["", "  ", "²", "cholesterol mouse", "chol", "·", "#"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(NotFoundError, match="no concept named"):
        concepts().resolve(name)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(NotFoundError, match=r'did you mean #5 "cholesterol · bile".*lexent concepts find cholesterol$'):
        concepts().resolve("colesterol")


def test_concepts_are_a_sequence() -> None:
    found = concepts()
    assert len(found) == 8
    assert found[-1].id == 7
    assert [concept.id for concept in found[2:4]] == [2, 3]
    assert found[0].words == ("cholesterol", "statin")
    assert found[0] in found


def test_neighbours_are_the_nearest_others() -> None:
    lexicon = small_lexicon()
    rows = lexicon.sae.decoder_rows
    found = lexicon.neighbours(5, limit=4)
    cosine = rows @ rows[5]
    wanted = [place for place in np.argsort(-cosine, kind="stable") if place != 5][:4]
    assert [concept.id for concept, _ in found] == wanted
    assert [value for _, value in found] == pytest.approx(cosine[wanted].tolist())
    assert len(lexicon.neighbours(5, limit=1000)) == 95


# --- the shipped one ---------------------------------------------------------------------------------------------


def test_the_shipped_lexicon_is_small_and_whole(default: Lexicon) -> None:
    folder = shipped()[DEFAULT]
    assert sum(path.stat().st_size for path in folder.rglob("*")) <= 16_000_000
    manifest = read_manifest(folder, kind="lexicon")
    assert set(manifest["files"]) == {path.name for path in folder.iterdir()} - {MANIFEST}
    check_hashes(folder, {name: facts["sha256"] for name, facts in manifest["files"].items()}, remedy="")
    assert default.sae.config.bits == 8
    card = (folder / "README.md").read_text()
    assert f"{default.size:,} named concepts" in card
    assert default.encoder_fingerprint in card
    np.testing.assert_allclose(np.linalg.norm(default.sae.decoder_rows[::97], axis=1), 1, rtol=1e-5)


def test_the_shipped_lexicon_fits_the_default_encoder(default: Lexicon, shared_encoder: Encoder) -> None:
    assert default.encoder_fingerprint == shared_encoder.fingerprint
    default.check(shared_encoder)
    assert default.sae.config.d_in == shared_encoder.dim


def test_every_shipped_concept_has_a_name_a_category_and_a_frequency(default: Lexicon) -> None:
    assert len(default.concepts) == default.size
    labels = [concept.label for concept in default.concepts]
    assert len(set(labels)) == len(labels)
    for place, concept in enumerate(default.concepts):
        assert concept.id == place
        assert concept.label == concept.label.strip() != ""
        assert any(letter.isalnum() for letter in concept.label)
        assert not any(mark in concept.label for mark in ("##", "[CLS]", "[SEP]", "[UNK]"))
        assert concept.category in ("lexical", "narrow", "broad")
        assert all(concept.examples)
        assert 0 < concept.frequency <= 1


def test_shipped_concepts_without_examples_are_few(default: Lexicon) -> None:
    """Those that fire only in texts that may not be quoted; words that raise them are there all the same."""
    without = [concept for concept in default.concepts if not concept.examples]
    assert len(without) <= 0.015 * default.size
    assert all(concept.raised_by for concept in without)


def test_shipped_concepts_are_found_by_their_names(default: Lexicon) -> None:
    for word in ("dementia", "cholesterol", "translation", "football", "galaxy"):
        assert word in default.resolve(word).label
        assert all(word in concept.label for concept in default.find(word, limit=5))
    with pytest.raises(NotFoundError, match=r"did you mean .*cholesterol"):
        default.resolve("colesterol")
    with pytest.raises(NotFoundError, match="no concept named"):
        default.resolve("zzzzqqq")


def test_shipped_concepts_fire_on_what_they_are_named_for(default: Lexicon, shared_encoder: Encoder) -> None:
    words = ["dementia", "cholesterol", "football", "earthquake", "violin", "bacteria", "parliament", "chess"]
    states = encode(shared_encoder, [f"{word}" for word in words], kind="document", specials=False)
    codes = default.codes(states, k=8)
    named = 0
    for text, word in enumerate(words):
        rows = slice(codes.offsets[text], codes.offsets[text + 1])
        labels = " ".join(default.label(int(latent)) for latent in codes.ids[rows].ravel())
        named += word[:5] in labels
    assert named >= 6


def test_shipped_codes_explain_most_of_a_state(default: Lexicon, shared_encoder: Encoder) -> None:
    texts = ["Statins lower LDL cholesterol in most patients.", "The orchestra played a symphony by Brahms in Vienna."]
    states = encode(shared_encoder, texts, kind="document")
    lengths = np.linalg.norm(states.numpy(), axis=1)
    wanted = states.numpy() / lengths[:, None]
    rebuilt = default.sae.decode(default.sae.encode(states), lengths=lengths)
    assert np.square(wanted - rebuilt).sum() / np.square(wanted - wanted.mean(axis=0)).sum() < 0.4


def test_neighbours_of_a_shipped_concept(default: Lexicon) -> None:
    concept = default.find("translation")[0]
    found = default.neighbours(concept.id, limit=8)
    values = [value for _, value in found]
    assert values == sorted(values, reverse=True)
    assert concept.id not in {other.id for other, _ in found}
    assert 0.15 < values[0] < 0.99


def test_a_misspelled_name_suggests_the_nearest_concepts_alone() -> None:
    """Not those that share a short word, or begin alike: the whole name decides."""
    labels = ["of · the", "cholesterol · bile", "the · a", "chol · music", "sleep · dream", "chess · king"]
    concepts = Concepts([Concept(number, label) for number, label in enumerate(labels)])
    for text, wanted in (
        ("the cholestrol", '#1 "cholesterol · bile"'),
        ("of the chess knig", '#5 "chess · king"'),
        ("slep", '#4 "sleep · dream"'),
    ):
        with pytest.raises(NotFoundError) as caught:
            concepts.resolve(text)
        assert f'no concept named "{text}"; did you mean {wanted}? search them: lexent concepts' in str(caught.value)
        assert not str(caught.value).endswith(("find the", "find of"))
    with pytest.raises(NotFoundError) as caught:
        concepts.resolve("the xylophone quartet")
    assert "did you mean" not in str(caught.value)


def test_training_on_too_little_text_warns_once(tmp_path: Path) -> None:
    few = ["flour and yeast", "dough in the oven", "a king and a rook", "pawn and bishop", "dream at night"]
    with pytest.warns(TrainingWarning) as told:
        train(few, out=tmp_path / "few", encoder="tiny", config=replace(CONFIG, d_sae=512), passes=2)
    [note] = [str(one.message) for one in told if issubclass(one.category, TrainingWarning)]
    assert re.search(r"\d+ states a pass for 512 latents, and \d+ of these \(\d+ %\) do not fire", note)
    assert re.search(r"give more text, or fewer latents: --latents \d+$", note)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingWarning)
        train(TEXTS, out=tmp_path / "enough", encoder="tiny", config=CONFIG, passes=4)
