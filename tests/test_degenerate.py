"""Degenerate inputs: one document, equal and empty documents, one query, states that are zero or not finite."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from commands import good
from lexent import recipes
from lexent.adapters import TrainSettings
from lexent.adapters.corpus import AdaptedCorpus
from lexent.adapters.deletion import deletion
from lexent.adapters.examples import Examples
from lexent.adapters.schedule import Run
from lexent.encoders import ArrayEncoder, Encoder, TinyEncoder
from lexent.encoders.encoder import encode
from lexent.encoders.sentence import SentenceEncoder
from lexent.engine import Index
from lexent.errors import InputError
from lexent.evaluation import baselines, evaluate
from lexent.evaluation.collections import Collection
from lexent.evaluation.measures import p_value
from lexent.evaluation.runs import from_top
from lexent.evaluation.vector_search import spearman
from lexent.indexing.forward.dense import DenseStore
from lexent.lexicon import Lexicon
from lexent.lexicon import load as load_lexicon
from lexent.nan_safe import plain, shown
from lexent.pipeline import Pipeline
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.sae.config import SAEConfig
from lexent.studies.analyses import analyse
from lexent.studies.faithfulness import faithfulness
from lexent.studies.fidelity import fidelity
from lexent.studies.state_reconstruction import Tally
from lexent.training.reconstruction.trainer import TrainConfig, Trainer
from lexent.training.ssr.train import fit
from lexent.training.ssr.trainer import PairTrainer
from lexent.training.stream import StateStream
from lexent.training.uhd.config import WinnerConfig
from lexent.training.uhd.trainer import WinnerTrainer
from lexent.types import Document, Kind, Level, RowCodes, States
from lexent.weighting import idf
from paired import SMALL, toy
from test_adapters import adapter, config, named_directions, network, rows
from test_encoders import small_model

NAN, INF = math.nan, math.inf


class Broken(TinyEncoder):
    """Gives a state that is not finite for every text with the word "bad"."""

    fingerprint = "broken"

    def __init__(self, value: float) -> None:
        self.value = value

    def batches(
        self, texts: Sequence[str], *, kind: Kind, level: Level = "tokens", specials: bool = True
    ) -> Iterator[tuple[NDArray[np.int64], States]]:
        for positions, states in super().batches(texts, kind=kind, level=level, specials=specials):
            for place, position in enumerate(positions):
                if "bad" in texts[position].split():
                    states.values[int(states.offsets[place + 1]) - 1, 3] = self.value
            yield positions, states


def lexicon_for(recipe: str) -> Lexicon:
    level: Level = recipes.get(recipe).level
    return Lexicon.random(TinyEncoder(), size=96, level=level, whole=40 if recipe == "ssr-cls" else 0)


def built(out: Path, recipe: str, texts: Sequence[str], **settings: Any) -> Index:
    docs = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    return Index.build(docs, out=out, encoder=TinyEncoder(), lexicon=lexicon_for(recipe), recipe=recipe, **settings)


def finite_json(value: Any) -> None:
    json.dumps(value, allow_nan=False)


# --- idf -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 10, 5000])
def test_idf_of_clsr_is_the_papers_where_that_is_above_0_and_above_0_elsewhere(n: int) -> None:
    df = np.arange(n + 1)
    found = idf(df, n, "clsr")
    paper = np.log(n / (1 + df))
    assert (found > 0).all()
    assert (np.diff(found) < 0).all()
    np.testing.assert_array_equal(found[paper > 0], paper[paper > 0])
    assert found[-1] < 1 / n


@pytest.mark.parametrize("recipe", list(recipes.RECIPES))
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("same", [True, False])
def test_every_recipe_finds_what_there_is(tmp_path: Path, recipe: str, n: int, same: bool) -> None:
    """One to three documents, all equal or all different: a document is found by its own text."""
    texts = ["yeast dough oven"] * n if same else ["yeast dough oven", "pawn bishop rook", "comet orbit dust"][:n]
    with built(tmp_path / "a", recipe, texts, extras=["dense"]) as index:
        hits = index.search(texts[0], k=10).hits
        assert hits[0].id == "d0"
        assert len(hits) >= (n if same else 1)
        assert all(math.isfinite(hit.score) and hit.score > 0 for hit in hits)
        why = hits[0].explain()
        assert sum(part.value for part in why.contributions) + why.rest == pytest.approx(hits[0].score, rel=1e-4)
        fused = index.search_fused(texts[0], k=10).hits
        assert fused[0].id == "d0"
        assert all(math.isfinite(hit.score) for hit in fused)
        assert index.dense_search(texts[0], k=10)[0].id == "d0"


@pytest.mark.parametrize("n", [3, 5, 9, 31])
def test_equal_vectors_have_equal_cosines(n: int) -> None:
    """In float32 the last digit of a matrix product depends on the place of a row."""
    random = np.random.default_rng(n)
    for width in (8, 24, 384):
        store = DenseStore.of(np.tile(random.standard_normal(width), (n, 1)))
        found = store.cosines(random.standard_normal(width).astype(np.float32))
        np.testing.assert_array_equal(found, found[0])


@pytest.mark.parametrize("recipe", list(recipes.RECIPES))
def test_empty_texts_have_no_concepts_and_hide_nothing(tmp_path: Path, recipe: str) -> None:
    texts = ["", " \n\t", "yeast dough oven", "of the and"]
    with built(tmp_path / "a", recipe, texts, extras=["dense"]) as index:
        assert index.search("yeast dough oven", k=4).hits[0].id == "d2"
        assert not {"d0", "d1"} & {hit.id for hit in index.search("yeast dough oven of the and", k=100).hits}
        assert index.search("of the and", k=100).hits[0].id == "d3"
        for empty in ("", " \n"):
            with pytest.raises(InputError, match="the query is empty"):
                index.search(empty, k=3)
        assert all(math.isfinite(hit.score) for hit in index.dense_search("yeast", k=9))


def test_empty_texts_have_no_concepts_with_an_encoder_of_special_tokens(shared_encoder: Encoder) -> None:
    """[CLS] and [SEP] have states in an empty text too."""
    for recipe in ("latent-terms", "clsr-efficient", "ssr-cls"):
        chosen = recipes.get(recipe)
        texts = ["", "yeast dough", " \n"]
        pipeline = Pipeline(shared_encoder, load_lexicon(None, recipe=chosen), chosen)
        found = pipeline.represent(texts, kind="document")
        assert (np.diff(found.offsets) > 0).tolist() == [False, True, False]


# --- zero states -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["topk", "jumprelu", "winners"])
@pytest.mark.parametrize("unit_states", [True, False])
@pytest.mark.parametrize("d_sae", [64, 4096])
def test_a_state_of_length_0_has_no_latents(architecture: str, unit_states: bool, d_sae: int) -> None:
    draw = np.random.default_rng(0)
    settings: Any = {"unit_states": unit_states, "architecture": architecture, "threshold": 0.01}
    sae = SparseAutoencoder(
        SAEConfig(8, d_sae, 4, tied=True, **settings),
        encoder=draw.standard_normal((d_sae, 8)).astype(np.float32),
        decoder=None,
        b_enc=np.full(d_sae, 0.5, np.float32),
        b_dec=draw.standard_normal(8).astype(np.float32),
    )
    states = torch.zeros(3, 8)
    states[1, 2] = 1.0
    codes = sae.encode(States(states, np.arange(4)), k=4)
    assert (codes.values[[0, 2]] == 0).all()
    assert (codes.values[1] > 0).any()


def test_a_pooled_vector_of_nothing_gets_no_concepts(tmp_path: Path) -> None:
    """Arrays whose vector is 0: as an empty text, it is found by nothing."""
    vectors = {"a": np.zeros(4, np.float32), "b": np.eye(4, dtype=np.float32)[0], "c": np.eye(4, dtype=np.float32)[1]}
    encoder = ArrayEncoder(vectors)
    lexicon = Lexicon.random(encoder, size=16, k=4, level="pooled")
    lexicon.sae.b_enc[:] = 0.5
    docs = [Document(text, text) for text in vectors]
    with Index.build(docs, out=tmp_path / "a", encoder=encoder, lexicon=lexicon, recipe="clsr-efficient") as index:
        assert "a" not in {hit.id for hit in index.search("b", k=9).hits}
        assert not index.search("a", k=9).hits


# --- states that are not finite --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [NAN, INF, -INF, 1e30])
def test_arrays_that_are_not_finite_are_refused_by_their_text(value: float) -> None:
    good, bad = np.ones((2, 4), np.float32), np.ones((2, 4), np.float32)
    bad[1, 2] = value
    with pytest.raises(InputError, match="'second text' are not finite in row 1"):
        ArrayEncoder({"first": good, "second text": bad})


@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize("level", ["tokens", "pooled"])
def test_training_refuses_states_that_are_not_finite(value: float, level: Level) -> None:
    texts = [f"yeast dough {number}" for number in range(40)] + ["a bad text"]
    stream = StateStream(texts, Broken(value), level=level, passes=1)
    trainer = Trainer(stream, TrainConfig(d_sae=16, k=2, batch=8))
    with pytest.raises(InputError, match="'a bad text'"):
        trainer.run()
    with pytest.raises(InputError, match="'a bad text'"):
        encode(Broken(value), texts, kind="document", level=level)


def test_retrieval_training_refuses_states_that_are_not_finite() -> None:
    pairs = toy(24)
    made = fit(TinyEncoder(), pairs.documents, pairs, config=replace(SMALL, steps=1))
    broken = replace(pairs, documents=[*pairs.documents[:-1], "a bad text"])
    with pytest.raises(InputError, match="'a bad text'"):
        PairTrainer(Broken(NAN), broken, SMALL, tokens=made.tokens, whole=made.whole).run()


def test_a_loss_that_is_no_number_stops_training(tmp_path: Path) -> None:
    """Whatever made it so; no checkpoint is written of weights that are lost."""
    stream = StateStream([f"yeast dough {number}" for number in range(80)], TinyEncoder(), passes=1, block_texts=20)
    trainer = Trainer(stream, TrainConfig(d_sae=16, k=2, batch=8), folder=tmp_path / "a")
    trainer.model.b_enc.data[3] = NAN
    with pytest.raises(InputError, match=r"diverged.*--lr"):
        trainer.run(checkpoint_every=0.0)
    assert not list((tmp_path / "a").glob("*.safetensors"))
    with pytest.raises(InputError, match="diverged"):
        trainer.result()
    pairs = toy(24)
    made = fit(TinyEncoder(), pairs.documents, pairs, config=replace(SMALL, steps=1))
    run = PairTrainer(TinyEncoder(), pairs, SMALL, tokens=made.tokens, whole=made.whole, folder=tmp_path / "b")
    run.tokens.model.b_enc.data[3] = INF
    with pytest.raises(InputError, match=r"diverged.*--lr"):
        run.run(checkpoint_every=0.0)
    assert not list((tmp_path / "b").glob("*.safetensors"))


def test_winner_training_refuses_states_that_are_not_finite(tmp_path: Path) -> None:
    small_model(tmp_path, "bert").save_pretrained(str(tmp_path / "model"))
    encoder = SentenceEncoder.open(str(tmp_path / "model"))
    settings = WinnerConfig(d_sae=64, k=6, groups=4, batch=4, steps=2, start="random")
    run = WinnerTrainer(encoder, toy(24), settings)
    with torch.no_grad():
        next(run.learner.parameters()).fill_(NAN)
    with pytest.raises(InputError, match="a state that is not finite for the text"):
        run.run()


def test_an_adapter_whose_loss_is_no_number_is_not_trained_on() -> None:
    documents = rows(6)
    examples = Examples.of(rows(2, seed=1), documents, [{0: 1}, {1: 1}], candidates=3, n_negatives=2)
    run = Run(lambda: network(config(), documents), examples, TrainSettings(), np.arange(2))
    with torch.no_grad():
        next(run.learner.parameters()).fill_(NAN)
    with pytest.raises(InputError, match=r"the loss is nan.*--lr"):
        run.epoch()


def test_adapters_refuse_vectors_that_are_not_finite() -> None:
    documents = rows(5)
    documents[3, 0] = NAN
    with pytest.raises(InputError, match="document 3 of 5"):
        Examples.of(rows(2, seed=1), documents, [{0: 1}, {1: 1}], candidates=3, n_negatives=2)
    queries = rows(2, seed=1)
    queries[1, 0] = INF
    with pytest.raises(InputError, match="query 1 of 2"):
        Examples.of(queries, rows(5), [{0: 1}, {1: 1}], candidates=3, n_negatives=2)


def test_dense_retrieval_never_ranks_what_is_no_number(tmp_path: Path) -> None:
    docs = [Document("a", "yeast dough"), Document("b", "a bad text"), Document("c", "pawn rook")]
    collection = Collection("x", docs, {"q": "yeast"}, {"q": {"a": 1}})
    with pytest.raises(InputError, match="'a bad text'"):
        baselines.dense(collection, Broken(NAN), k=3)
    with pytest.raises(InputError, match='document "b" has the score nan for the query "q"'):
        from_top(collection, np.array([[1, 0]]), scores=np.array([[NAN, 0.5]]), depth=2)
    with pytest.raises(InputError, match="document 1 of 2"):
        DenseStore.of(np.array([[1.0, 0.0], [NAN, 1.0]]))
    lexicon = Lexicon.random(Broken(NAN), size=96)
    with pytest.raises(InputError, match="'a bad text'"):
        Index.build(docs, out=tmp_path / "a", encoder=Broken(NAN), lexicon=lexicon, extras=["dense"])
    good = [docs[0], docs[2]]
    index = Index.build(good, out=tmp_path / "b", encoder=Broken(NAN), lexicon=lexicon, extras=["dense"])
    with index, pytest.raises(InputError, match="'bad'"):
        index.dense_search("bad", k=2)


# --- measures that are not defined -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("length", [1.0, 1e4])
def test_nmse_of_one_state_or_of_equal_ones_is_undefined(n: int, length: float) -> None:
    state = length * np.random.default_rng(0).standard_normal(300).astype(np.float32)
    tally = Tally(4)
    codes = RowCodes(np.zeros((n, 1), np.int32), np.zeros((n, 1), np.float32), np.arange(n + 1))
    tally.add(np.tile(state, (n, 1)), np.zeros((n, 300), np.float32), codes)
    assert math.isnan(tally.nmse)
    finite_json(plain(tally.to_dict()))
    assert math.isnan(Tally(4).to_dict()["cosine"])


def test_rank_correlations_and_tests_without_spread_are_undefined() -> None:
    one = np.ones((1, 3), np.float32)
    assert math.isnan(spearman((one, one), (one, one))[0])
    assert math.isnan(p_value({"q": 0.5}, {"q": 0.2}))
    assert math.isnan(p_value({}, {}))
    assert math.isnan(p_value({"a": 0.5, "b": 0.4}, {"a": 0.3, "b": 0.2}))  # the same difference: nothing to divide by
    assert p_value({"a": 0.5, "b": 0.4}, {"a": 0.5, "b": 0.4}) == 1
    assert 0 < p_value({"a": 0.5, "b": 0.4}, {"a": 0.3, "b": 0.1}) < 1


def test_what_is_undefined_is_null_in_json_and_said_in_tables() -> None:
    assert plain({"a": [NAN, 1.5, INF], "b": (None, "x", 3)}) == {"a": [None, 1.5, None], "b": [None, "x", 3]}
    assert (shown(NAN, ".3f"), shown(None, ".3f"), shown(0.5, ".3f")) == ("undefined", "", "0.500")


def test_deletion_without_other_documents_has_no_margin() -> None:
    """One document, relevant to the only query: there is nothing that it could be ahead of."""
    documents = rows(1)
    corpus = AdaptedCorpus(adapter(config(feedback="none"), documents), documents)
    found = deletion(corpus, rows(1, seed=1), [{0: 1}], directions=named_directions(), n=3)
    assert all(math.isnan(value) for value in found.margin.values())
    assert all(math.isnan(value) for value in found.lost.values())
    assert math.isnan(found.p_random)
    assert found.ndcg["whole"] == 1
    finite_json(found.to_json())
    assert found.to_json()["margin"]["whole"] is None
    more = rows(4)
    corpus = AdaptedCorpus(adapter(config(feedback="none"), more), more)
    two = deletion(corpus, rows(2, seed=1), [{0: 1, 1: 1, 2: 1, 3: 1}, {0: 1}], directions=named_directions(), n=3)
    assert all(math.isfinite(value) for value in two.margin.values())  # of the query that has others


# --- studies ---------------------------------------------------------------------------------------------------------


def collections() -> dict[str, Collection]:
    """Collections that have too little of something."""
    yeast, pawn, empty = Document("a", "yeast dough oven"), Document("b", "pawn bishop rook"), Document("b", "")
    one, both = {"q": "yeast oven"}, {"q": "yeast", "r": "rook"}
    first, each = {"q": {"a": 1}}, {"q": {"a": 1}, "r": {"b": 1}}
    return {
        "one document": Collection("x", [yeast], one, first),
        "equal documents": Collection("x", [replace(yeast, id=name) for name in "abc"], one, {"q": {"b": 1}}),
        "one query": Collection("x", [yeast, pawn], one, first),
        "an empty text": Collection("x", [yeast, empty], both, each),
        "function words": Collection("x", [yeast, Document("b", "of the and")], {"q": "of", "r": "the"}, each),
        "nothing relevant": Collection("x", [yeast, pawn], both, {"q": {"a": 0}, "r": {"b": 0}}),
        "a query of nothing": Collection("x", [yeast, pawn], {"q": " ", "r": "rook"}, each),
    }


@pytest.mark.parametrize("name", list(collections()))
def test_studies_of_small_collections_have_no_nan_in_their_json(name: str) -> None:
    given = collections()[name]
    common: dict[str, Any] = {"encoder": TinyEncoder()}
    for recipe in ("latent-terms", "clsr-efficient", "ssr", "ssr-cls", "ssr++", "uhd", "uhd-real"):
        found = evaluate(given, recipe=recipe, lexicon=lexicon_for(recipe), depth=1000, **common)
        finite_json(found.to_json(per_query=True))
        for system in found.systems:
            assert all(math.isfinite(value) for value in found.systems[system].values())
    for recipe in ("latent-terms", "clsr-efficient"):
        chosen = lexicon_for(recipe)
        finite_json(fidelity(given, lexicon=chosen, k=[4, 8], **common).to_json())
        finite_json(faithfulness(given, recipe=recipe, lexicon=chosen, draws=2, **common).to_json())
        finite_json(analyse(given, recipe=recipe, lexicon=chosen, **common).to_json())
    tokens = lexicon_for("ssr")
    maxsim = Lexicon(tokens.sae, tokens.concepts, replace(tokens.info, match="maxsim"))
    finite_json(fidelity(given, lexicon=maxsim, k=[4], **common).to_json())


def test_a_study_of_one_query_says_that_its_tests_are_undefined() -> None:
    given = collections()["one query"]
    report = evaluate(given, recipe="latent-terms", lexicon=lexicon_for("latent-terms"), encoder=TinyEncoder())
    assert report.to_json()["p_values"]["latent-terms"]["nDCG@10"] is None
    single = collections()["one document"]
    row = fidelity(single, lexicon=lexicon_for("clsr"), k=[4], encoder=TinyEncoder()).to_json()["rows"][0]
    assert row["documents"]["nmse"] is None
    assert row["spearman"] is None


def test_the_commands_say_undefined_and_write_null(tmp_path: Path) -> None:
    """One document, one query: NMSE, rank correlation and tests are not defined."""
    folder, lexicon = tmp_path / "one", tmp_path / "lexicon"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text": "yeast dough oven"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "yeast oven"}\n')
    (folder / "qrels" / "test.tsv").write_text("q\ta\t1\n")
    lexicon_for("latent-terms").save(lexicon)
    chosen = (folder, "--encoder", "tiny", "--lexicon", lexicon)
    for verb in ("fidelity", "eval", "faithfulness", "analyse"):
        assert "nan" not in good(verb, *chosen).stdout
        json.loads(good(verb, *chosen, "--json").stdout, parse_constant=pytest.fail)
    assert good("fidelity", *chosen).stdout.count("undefined") >= 2
    row = json.loads(good("fidelity", *chosen, "--json").stdout)["rows"][0]
    assert (row["queries"]["states"] > 1, row["spearman"]) == (True, None)
    assert "undefined" in good("eval", *chosen).stdout
