"""Training for retrieval: the loop, exact resume, the command, and the real encoder on real pairs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import lexent.training.ssr.maxsim as maxsims
from commands import data, good, run
from lexent import recipes
from lexent.encoders import Encoder, TinyEncoder
from lexent.encoders.encoder import encode
from lexent.errors import InputError, MismatchError
from lexent.lexicon import Concept, Concepts, Lexicon, load
from lexent.lexicon.lexicon import LexiconInfo
from lexent.models import load_encoder
from lexent.pipeline import Pipeline
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.training import sparse_products
from lexent.training.hard_negatives import bm25_negatives
from lexent.training.loop import CHECKPOINT, METRICS
from lexent.training.pair_sources import collection_pairs
from lexent.training.pairs import Pairs
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.ssr.model import unit
from lexent.training.ssr.train import fit, train_ssr
from lexent.training.ssr.trainer import PairTrainer
from lexent.training.stream import StateStream
from paired import ALL, NONE, SMALL, collection, measured, slow_maxsim, toy


@pytest.fixture(scope="module")
def starts() -> tuple[SparseAutoencoder, SparseAutoencoder]:
    """Autoencoders of tokens and of whole texts, trained on the toy's texts without its pairs."""
    made = fit(TinyEncoder(), toy().documents, toy(), config=replace(SMALL, steps=1, gamma=0.0, lr=1e-9))
    assert made.whole is not None
    return made.tokens, made.whole


def trainer(starts: tuple[SparseAutoencoder, SparseAutoencoder], **settings: Any) -> PairTrainer:
    folder = settings.pop("folder", None)
    config = replace(SMALL, **settings)
    return PairTrainer(TinyEncoder(), toy(), config, tokens=starts[0], whole=starts[1], folder=folder)


def test_training_on_pairs_is_worth_more_than_reconstruction_alone(
    starts: tuple[SparseAutoencoder, SparseAutoencoder],
) -> None:
    settings = {"steps": 120, "gamma": 0.5, "hard": 3, "batch": 20, "temperature": 0.3}
    before = measured(trainer(starts, **settings))
    run = trainer(starts, **settings)
    run.run()
    after = measured(run)
    tokens, whole = run.result()
    assert after["tokens"] > before["tokens"]
    assert after["whole"] > before["whole"]
    assert whole is not None
    again = measured(trainer((tokens, whole), **settings))  # what was saved is what was trained
    assert again == pytest.approx(after, abs=0.02)


def test_without_gamma_the_pairs_teach_nothing(starts: tuple[SparseAutoencoder, SparseAutoencoder]) -> None:
    settings = {"alpha": 0.0, "beta": 0.0, "wide": 0.0, "gamma": 0.0, "rebuilt": 4096}
    run = trainer(starts, **settings)
    run._step()
    gradient = run.tokens.model.W_dec.grad
    other = trainer(starts, **settings)
    batch = other.batches.at(0)
    sides = [side(places) for side, places in zip(other.sources, (batch.queries, batch.documents), strict=True)]
    rows = other.tokens.prepared(torch.cat([side.rows for side in sides]))
    only = replace(ALL, wide=0.0, alpha=0.0, beta=0.0)
    other.tokens.model.unsupervised(rows, k=4, dead=NONE, weights=only, autocast=False).total.backward()
    other.tokens.model.remove_parallel_gradient()
    torch.nn.utils.clip_grad_norm_(other.tokens.model.parameters(), SMALL.clip)
    torch.testing.assert_close(gradient, other.tokens.model.W_dec.grad, rtol=1e-4, atol=1e-6)


def test_the_counters_of_dead_latents_advance_once_a_step(
    starts: tuple[SparseAutoencoder, SparseAutoencoder],
) -> None:
    """In the released code the second selection, of four times k, advances them again."""
    run = trainer(starts, dead_after=5, steps=40)
    with torch.no_grad():
        run.tokens.model.b_enc[:3] = -100.0  # these never fire
    for _ in range(10):
        found, _ = run._step()
    fired = torch.unique(found["tokens"].ids[found["tokens"].values > 0])
    assert (run.tokens.last_fired[fired] == 10).all()
    assert int(run.tokens.last_fired.max()) == 10
    assert (run.tokens.last_fired[:3] == 0).all()
    assert set(run.tokens.dead.tolist()) == set(torch.nonzero(run.tokens.last_fired < 5).flatten().tolist())
    assert {0, 1, 2} <= set(run.tokens.dead.tolist())


def test_decoder_rows_stay_at_unit_length(starts: tuple[SparseAutoencoder, SparseAutoencoder]) -> None:
    run = trainer(starts, lr=0.1)
    run._step()
    run._step()
    for coder in run.coders.values():
        torch.testing.assert_close(coder.model.W_dec.norm(dim=1), torch.ones(len(coder.last_fired)))


OURS = {"idf": 0.5, "idf_every": 4, "idf_documents": 20, "gains": True, "function_words": 0.5, "emphasis": 0.5}


@pytest.mark.parametrize("more", [{}, {**OURS, "balance": 0.5}])
def test_a_resumed_run_equals_an_uninterrupted_one(
    tmp_path: Path, starts: tuple[SparseAutoencoder, SparseAutoencoder], more: dict[str, Any]
) -> None:
    more = {**more, "k_from": 8}
    whole = trainer(starts, folder=tmp_path / "whole", **more)
    whole.run()
    stopped = trainer(starts, folder=tmp_path / "stopped", **more)
    for _ in range(7):
        stopped._step()
    stopped.write_checkpoint()
    for _ in range(3):
        stopped._step()  # lost by the stop
    resumed = trainer(starts, folder=tmp_path / "stopped", **more)
    assert resumed.step == 7
    resumed.run()
    one, two = whole.result(), resumed.result()
    assert one[0].hash() == two[0].hash()
    assert one[1] is not None
    assert two[1] is not None
    assert one[1].hash() == two[1].hash()
    assert (tmp_path / "stopped" / METRICS).exists()
    with pytest.raises(MismatchError, match=r"of another run: gamma 0\.05 \(now 0\.1\)"):
        trainer(starts, folder=tmp_path / "stopped", **more, gamma=0.1)


def test_two_runs_are_equal(starts: tuple[SparseAutoencoder, SparseAutoencoder]) -> None:
    hashes = set()
    for _ in range(2):
        run = trainer(starts)
        run.run()
        hashes.add(run.result(bits=8)[0].hash())
    assert len(hashes) == 1
    assert starts[0].hash() not in hashes


def test_a_whole_training_goes_on_where_it_was(tmp_path: Path) -> None:
    stages: list[str] = []
    made = fit(
        TinyEncoder(), toy().documents, toy(), config=SMALL, folder=tmp_path, bits=8,
        progress=lambda stage, done, detail: stages.append(stage),
    )  # fmt: skip
    assert list(dict.fromkeys(stages)) == ["tokens", "whole texts", "pairs"]
    assert made.tokens.config.d_sae == 64
    assert made.tokens.config.bits == 8
    assert made.whole is not None
    assert made.whole.config.k == 4
    assert 0 <= made.facts["accuracy"] <= 1
    assert {path.name for path in tmp_path.iterdir()} == {"tokens", "pooled", "pairs"}
    assert all((tmp_path / name / CHECKPOINT).exists() for name in ("tokens", "pooled", "pairs"))
    again = fit(TinyEncoder(), toy().documents, toy(), config=SMALL, folder=tmp_path, bits=8)
    assert again.tokens.hash() == made.tokens.hash()


def test_the_second_autoencoder_can_be_left_out() -> None:
    made = fit(TinyEncoder(), toy().documents, toy(), config=replace(SMALL, whole=False, steps=2))
    assert made.whole is None
    assert "whole_accuracy" not in made.facts


def jsonl(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def titled(tmp_path: Path) -> Path:
    """Texts whose titles are words of theirs."""
    pairs = toy(80)
    rows = zip(pairs.query, pairs.positive, strict=True)
    return jsonl(tmp_path / "t.jsonl", [{"title": pairs.queries[a], "text": pairs.documents[b]} for a, b in rows])


FLAGS = ("--recipe", "ssr", "--encoder", "tiny", "--latents", 64, "--sae-k", 4, "--whole-latents", 32, "--whole-k", 4)


def test_the_command_trains_names_saves_and_tells(titled: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    small = ("--steps", 6, "--batch", 8, "--sentences", 0, "--passes", 4)
    found = data("train", titled, "--out", out, *FLAGS, *small)
    lexicon = load(out)
    assert found["hash"] == lexicon.hash
    assert found["concepts"] == lexicon.size == len(lexicon.concepts) > lexicon.token_size
    assert lexicon.info.match == "maxsim"
    assert found["training"]["pairs"] == 80
    assert found["training"]["negatives_a_query"] > 0
    assert (found["training"]["gamma"], found["training"]["step"]) == (1.0, 6)
    assert lexicon.sae.query_gain is not None
    labels = [concept.label for concept in lexicon.concepts]
    assert all(label.startswith("about ") for label in labels[lexicon.token_size :])
    card = (out / "README.md").read_text()
    assert "of whole texts, from a second autoencoder with k = 4" in card
    assert "Trained on pairs" in card
    assert "| gamma | 1.0 |" in card
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "t.jsonl"}
    index = tmp_path / "index"
    good("index", titled, "--out", index, "--encoder", "tiny", "--lexicon", out, "--recipe", "ssr-cls")
    assert data("search", index, "dough oven")["hits"]


def test_pairs_are_prepared_for_another_machine(titled: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.npz"
    good(
        "train", titled, "--out", file, "--recipe", "ssr", "--encoder", "tiny", "--negatives", "bm25,dense", "--prepare"
    )
    pairs = Pairs.load(file)
    assert len(pairs) == 80
    assert pairs.negatives.shape[1] > 30
    assert ((pairs.negatives >= 0).sum(axis=1) > 0).all()
    for query, answers in enumerate(pairs.answers()):
        assert not set(pairs.negatives[query].tolist()) & set(answers.tolist())
    start = Lexicon.random(TinyEncoder(), size=64, k=4, whole=32).save(tmp_path / "start")
    out = tmp_path / "mine"
    more = ("--pairs", file, "--start", start, "--steps", 2, "--batch", 8, "--sentences", 0, "--paper", "--freeze")
    more = (*more, "--beta", 0.2)
    found = data("train", titled, "--out", out, *FLAGS, *more)
    assert found["training"]["start"] == load(start).hash
    assert (found["training"]["gamma"], found["training"]["beta"], found["training"]["gains"]) == (0.05, 0.2, False)
    assert load(out).sae.query_gain is None


def test_files_of_text_are_balanced(titled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = jsonl(tmp_path / "few.jsonl", [{"title": f"salt {n}", "text": f"salt water and soda {n}"} for n in range(8)])
    drawn: list[NDArray[np.float64]] = []

    class Watched(StateStream):
        def __init__(self, texts: Sequence[str], encoder: Encoder, **more: Any) -> None:
            super().__init__(texts, encoder, **more)
            assert self.weights is not None
            drawn.append(self.weights * np.array([len(text) for text in texts]))

    monkeypatch.setattr("lexent.training.ssr.train.StateStream", Watched)
    small = ("--steps", 2, "--batch", 8, "--sentences", 0, "--passes", 2, "--balance", 0)
    found = data("train", titled, few, "--out", tmp_path / "mine", *FLAGS, *small)
    assert (found["training"]["text_balance"], found["training"]["domains"]) == (0, 2)
    assert len(drawn) == 2  # of tokens and of whole texts
    for chars in drawn:
        assert chars[:80].sum() == pytest.approx(chars[80:88].sum())


def test_the_command_says_what_does_not_fit(titled: Path, tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        result = run("train", titled, "--out", tmp_path / "x", "--encoder", "tiny", *arguments)
        assert result.exit_code == 2
        return " ".join(result.stderr.split())

    assert "--gamma was given, but it is of learning from pairs token by token" in refused("--gamma", 1)
    assert "balance is 2.0; allowed: from 0" in refused("--recipe", "ssr", "--balance", 2)
    assert "--k-from was given, but --recipe uhd has no use for it" in refused("--recipe", "uhd", "--k-from", 8)
    assert "--level was given, but --recipe ssr decides it" in refused("--recipe", "ssr", "--level", "pooled")
    assert "reads pooled states" in refused("--recipe", "clsr", "--level", "tokens")
    assert "allowed: bm25, dense" in refused("--recipe", "ssr", "--negatives", "tfidf")
    assert "end it with .npz" in refused("--recipe", "ssr", "--prepare")
    folder = collection(tmp_path / "some")
    assert "is a test split" in refused("--recipe", "ssr", "--pairs", folder, "--split", "test")


def test_a_query_weighs_in_training_what_it_weighs_in_a_search(
    starts: tuple[SparseAutoencoder, SparseAutoencoder],
) -> None:
    """Function words, lengths of states, gains and idf, against the pipeline of a search and a count by hand."""
    run = trainer(starts, **OURS)
    model = run.tokens.model
    assert model.liking is not None
    with torch.no_grad():
        model.liking.copy_(torch.randn(64, generator=torch.Generator().manual_seed(0)))
    texts = ["the dough of bread", "a comet"]
    pairs = Pairs.of([(texts[0], "flour and dough"), (texts[1], "a galaxy")])
    run = PairTrainer(TinyEncoder(), pairs, run.config, tokens=run.result()[0], whole=starts[1])
    gain = run.tokens.start.query_gain
    assert gain is not None
    batch = run.batches.at(0)
    queries = run.sources[0](batch.queries)
    ids, values = run.tokens.model.code(run.tokens.prepared(queries.rows), 4, autocast=False)
    run.weights.count(run._document_codes)
    found = run.weights.of(ids, queries, batch, gain=run.tokens.model.query_gain()).detach().numpy()

    documents = encode(TinyEncoder(), list(pairs.documents), kind="document")
    codes = run.tokens.start.encode(documents)
    df = np.zeros(64)
    for place in range(2):
        own = slice(documents.offsets[place], documents.offsets[place + 1])
        df[np.unique(codes.ids[own][codes.values[own] > 0])] += 1
    idf = np.log1p((2 - df + 0.5) / (df + 0.5))
    idf = (idf / idf.mean()) ** 0.5
    recipe = recipes.get("ssr").changed(function_words=0.5, emphasis=0.5, k=4, adaptive_k=False)
    info = LexiconInfo("x", "tiny", TinyEncoder.fingerprint)
    lexicon = Lexicon(run.tokens.start, Concepts([Concept(at, str(at)) for at in range(64)]), info)
    asked = [pairs.queries[place] for place in batch.queries]
    states = encode(TinyEncoder(), asked, kind="query")
    wanted = Pipeline(TinyEncoder(), lexicon, recipe).code(asked, states, kind="query")
    mine = found * unit(values).detach().numpy() / idf[ids.numpy()]
    np.testing.assert_array_equal(wanted.ids, ids.numpy())
    np.testing.assert_allclose(mine, wanted.values, rtol=1e-4, atol=1e-6)


def test_a_step_in_16_bits_is_close_to_one_in_32(
    starts: tuple[SparseAutoencoder, SparseAutoencoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a GPU, taken on a CPU: autocast, dense products."""
    exact = trainer(starts, **OURS)
    wanted, _ = exact._step()
    monkeypatch.setattr(sparse_products, "_spread", sparse_products._spread_densely)
    monkeypatch.setattr(maxsims, "_nearest_sparsely", maxsims._nearest_densely)
    coarse = trainer(starts, **OURS)
    coarse.autocast = True
    found, _ = coarse._step()
    for name in ("tokens", "whole"):
        assert float(found[name].supervised) == pytest.approx(float(wanted[name].supervised), rel=0.02)
        assert float(found[name].unsupervised.fvu) == pytest.approx(float(wanted[name].unsupervised.fvu), rel=0.02)
        one, two = (run.coders[name].model.W_dec.grad for run in (exact, coarse))
        assert one is not None
        assert two is not None
        cosine = torch.nn.functional.cosine_similarity(one.flatten(), two.flatten(), dim=0)
        assert float(cosine) > 0.95


def test_gains_are_learned_and_saved(starts: tuple[SparseAutoencoder, SparseAutoencoder]) -> None:
    run = trainer(starts, **OURS, gamma=1.0, gain_lr=0.05)
    run.run()
    gain = run.result(bits=8)[0].query_gain
    assert gain is not None
    assert gain.std() > 0.01
    assert 0 < gain.min() < 1 < gain.max() < 2
    again = PairTrainer(TinyEncoder(), toy(), run.config, tokens=run.result()[0], whole=starts[1])
    np.testing.assert_allclose(again.tokens.model.query_gain().detach().numpy(), gain, rtol=1e-4)  # type: ignore[union-attr]
    assert trainer(starts).result()[0].query_gain is None


def test_codes_learn_the_ranking_of_the_encoder_from_a_teacher(
    starts: tuple[SparseAutoencoder, SparseAutoencoder],
) -> None:
    run = trainer(starts, teacher=1.0, gamma=1.0, steps=60, lr=1e-2)
    distance = [run.advance()(1.0).supervised for _ in range(60)]
    assert np.mean(distance[-10:]) < 0.9 * np.mean(distance[:10])
    half = trainer(starts, teacher=0.5, steps=1)
    apart = [trainer(starts, teacher=share, steps=1) for share in (0.0, 1.0)]
    first = [one.run().supervised for one in (half, *apart)]
    assert first[0] == pytest.approx((first[1] + first[2]) / 2, rel=1e-4)


def test_wrong_settings_are_refused() -> None:
    for wrong in (
        {"k": 0},
        {"batch": 1},
        {"gamma": -1.0},
        {"temperature": 0.0},
        {"steps": 0},
        {"k_from": 65},
        {"teacher": 1.1},
    ):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} is .*allowed: "):
            replace(SMALL, **wrong)
    with pytest.raises(InputError, match='the encoder "tiny" cannot be trained'):
        fit(TinyEncoder(), toy().documents, toy(), config=replace(SMALL, freeze=False))
    with pytest.raises(InputError, match="leave --teacher out, or add --freeze"):
        replace(SMALL, freeze=False, teacher=0.5)


def test_scores_of_the_trainer_are_those_of_saved_codes(starts: tuple[SparseAutoencoder, SparseAutoencoder]) -> None:
    """What is trained is what is searched: unit codes of the saved autoencoder, by equation 4."""
    run = trainer(starts)
    batch = run.batches.at(0)
    with torch.no_grad():
        sides = [side(places) for side, places in zip(run.sources, (batch.queries, batch.documents), strict=True)]
        found = run._outcome("tokens", sides[0], sides[1], batch).scores

    def dense(texts: list[str], kind: Any) -> list[NDArray[Any]]:
        states = encode(TinyEncoder(), texts, kind=kind)
        codes = starts[0].encode(states)
        rows = np.zeros((len(codes.ids), 64))
        np.put_along_axis(rows, codes.ids.astype(np.int64), codes.values, axis=1)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return np.split(rows, states.offsets[1:-1])

    queries = dense([run.pairs.queries[at] for at in batch.queries], "query")
    documents = dense([run.pairs.documents[at] for at in batch.documents], "document")
    np.testing.assert_allclose(found.numpy(), slow_maxsim(queries, documents), rtol=1e-4, atol=1e-5)


BLOCKED = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "pydantic", "orjson", "ir_measures", "bm25s", "typer", "rich"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Block())
from pathlib import Path
from lexent.training.hard_negatives import dense_negatives
from lexent.training.pairs import Pairs
from lexent.training.ssr.config import RetrievalConfig
from lexent.encoders import Encoder, TinyEncoder
from lexent.models import load_encoder
from lexent.training.ssr.train import train_ssr

pairs = Pairs.of([(f"word{i} thing{i % 7}", f"text about word{i} and thing{i % 7}") for i in range(60)])
pairs = pairs.with_negatives(dense_negatives(pairs, TinyEncoder()))
small = RetrievalConfig(d_sae=64, k=4, whole_d_sae=32, whole_k=4, batch=8, steps=3)
print(train_ssr(pairs.documents, pairs, out=Path(sys.argv[1]), encoder="tiny", config=small).size)
"""


def test_training_needs_no_search_engine(tmp_path: Path) -> None:
    """A machine with a GPU may have PyTorch and little else."""
    command = [sys.executable, "-c", BLOCKED, str(tmp_path / "mine")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == load(tmp_path / "mine").size


# --- the real encoder on real data -------------------------------------------------------------------------------


def cut(pairs: Pairs, n: int, *, letters: int) -> Pairs:
    """The first n pairs with two hard negatives each and no other documents, all cut short to save time."""
    asked = [pairs.queries[query] for query in pairs.query[:n]]
    few = Pairs.of([(asked[at], pairs.documents[pairs.positive[at]]) for at in range(n)], documents=pairs.documents)
    mined_for = bm25_negatives(few, depth=4)
    short = [text[:letters] for text in few.documents]
    used = np.unique(mined_for[mined_for >= 0])
    answers = [(few.queries[query], short[positive]) for query, positive in zip(few.query, few.positive, strict=True)]
    made = Pairs.of(answers, documents=[short[place] for place in used])
    places = {text: place for place, text in enumerate(made.documents)}
    rows = [[places[short[at]] for at in row if at >= 0] for row in mined_for]
    return made.with_negatives(np.array([[*row, -1, -1][:2] for row in rows]))


@pytest.mark.data
def test_pairs_of_scifact_teach_what_reconstruction_does_not(data_dir: Path, shared_encoder: Encoder) -> None:
    found = collection_pairs(data_dir / "scifact")
    assert (len(found.queries), len(found.documents)) == (805, 5183)  # 809, of which the test split asks 4 again
    pairs = cut(found, 32, letters=250)
    config = RetrievalConfig(
        d_sae=1024, k=16, whole_d_sae=256, whole_k=16, pretrain=1, pretrain_batch=256, batch=16, steps=14, lr=2e-3,
        rebuilt=512, contrasted=64, gamma=0.5, temperature=0.5, document_tokens=64,
    )  # fmt: skip
    start = fit(shared_encoder, pairs.documents, pairs, config=replace(config, steps=1, lr=1e-9))
    assert start.whole is not None
    run = PairTrainer(shared_encoder, pairs, config, tokens=start.tokens, whole=start.whole)
    before = measured(run)
    run.run()
    after = measured(run)
    assert before["tokens"] > 0.3  # far above chance already
    assert after["tokens"] > before["tokens"] + 0.03
    assert after["whole"] > before["whole"] + 0.03


@pytest.mark.data
def test_an_encoder_is_trained_with_its_lexicon_and_saved_beside_it(
    tmp_path: Path, data_dir: Path, shared_encoder: Encoder
) -> None:
    pairs = cut(collection_pairs(data_dir / "scifact"), 8, letters=200)
    config = RetrievalConfig(
        d_sae=256, k=8, whole_d_sae=64, whole_k=8, pretrain=1, pretrain_batch=64, batch=4, steps=2, freeze=False,
        encoder_lr=1e-3, rebuilt=64, contrasted=16,
    )  # fmt: skip
    out = tmp_path / "mine"
    made = train_ssr(pairs.documents, pairs, out=out, encoder=shared_encoder, config=config, sentences=0)
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "mine-encoder"}
    assert made.encoder_id == str(tmp_path / "mine-encoder")
    assert made.encoder_fingerprint != shared_encoder.fingerprint
    own = load_encoder(made.encoder_id)
    load(out).check(own, level="tokens")
    shutil.rmtree(out)
    with pytest.raises(InputError, match=r"mine-encoder.*--overwrite"):
        train_ssr(pairs.documents, pairs, out=out, encoder=shared_encoder, config=config)
