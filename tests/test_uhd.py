"""Winner-take-all codes: units and masks, losses, the loop, buckets, changed encoders, and a search by them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import data, good, run
from lexent import recipes
from lexent.encoders import TinyEncoder, fine_tuning
from lexent.encoders.buckets import BucketEncoder, BucketParts
from lexent.encoders.encoder import encode
from lexent.encoders.sentence import SentenceEncoder
from lexent.engine import Index
from lexent.errors import ArtifactError, InputError, MismatchError
from lexent.evaluation.collections import load as load_collection
from lexent.lexicon import Lexicon, load
from lexent.models import load_encoder
from lexent.recipes import Recipe
from lexent.sae.autoencoder import CONFIG, WEIGHTS, SparseAutoencoder
from lexent.sae.config import groups_of
from lexent.studies.reproduction.binary_retrieval import layers_of
from lexent.training.pairs import Pairs
from lexent.training.uhd.config import WinnerConfig
from lexent.training.uhd.model import Bucket, Scores, active, capped, hinge, joined, live_inputs, loss_of, max_pooled
from lexent.training.uhd.train import train_uhd
from lexent.training.uhd.trainer import WinnerTrainer, linear
from lexent.types import SparseVectors, States
from lexent.weighting import as_query, unit
from small import TOPICS, documents
from test_encoders import small_model

SMALL = WinnerConfig(
    d_sae=64, k=6, groups=4, batch=4, steps=6, rank=2, hard=0, balance=None, lr=1e-2, encoder_lr=1e-2,
    query_cap=16, document_cap=24, dead_after=2, revive_every=3,
)  # fmt: skip
UHD = replace(recipes.get("uhd"), k=6, query_k=4)


def pairs() -> Pairs:
    """The first words of a document ask for the document."""
    return Pairs.of([(" ".join(one.content.split()[:2]) + f" {one.id}", one.content) for one in documents(24)])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small transformer with random weights."""
    folder = tmp_path_factory.mktemp("base")
    small_model(folder, "bert").save_pretrained(str(folder / "model"))
    return str(folder / "model")


@pytest.fixture(scope="module")
def encoder(base: str) -> SentenceEncoder:
    return SentenceEncoder.open(base)


@pytest.fixture(scope="module")
def trained(base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lexicon of two buckets, each with a copy of the encoder."""
    out = tmp_path_factory.mktemp("trained") / "winners"
    texts = [one.content for one in documents()]
    train_uhd(texts, pairs(), out=out, encoder=base, config=replace(SMALL, layers=(1, 2)), bits=8)
    return out


# --- units -------------------------------------------------------------------------------------------------------


def test_units_read_the_share_of_inputs_that_the_mask_leaves() -> None:
    live = live_inputs(40, groups=5, mask=0.7, seed=3)
    assert live.shape == (5, 12)
    assert all(len(set(row)) == 12 and sorted(row) == list(row) for row in live.tolist())
    assert (live == live_inputs(40, groups=5, mask=0.7, seed=3)).all()
    assert len({tuple(row) for row in live.tolist()}) > 1


def test_masked_weights_are_zero_after_training_and_rows_are_of_length_1(encoder: SentenceEncoder) -> None:
    trainer = WinnerTrainer(encoder, pairs(), SMALL)
    before = trainer.buckets[0].W.detach().clone()
    trainer.run()
    bucket = trainer.buckets[0]
    assert not torch.equal(before, bucket.W)
    assert (bucket.W[(bucket.keep[bucket.group] == 0)] == 0).all()  # type: ignore[index]
    assert torch.allclose(bucket.W.norm(dim=1), torch.ones(64), atol=1e-5)


def test_only_winners_have_a_gradient() -> None:
    bucket = Bucket(16, replace(SMALL, mask=0.0), seed=1)
    x = torch.randn(5, 16, requires_grad=True)
    ids, values = bucket(x, k=3, half=False)
    pre = x @ bucket.W.t() + bucket.b
    assert (ids == pre.topk(3, dim=1).indices).all()
    assert torch.allclose(values, torch.relu(pre.gather(1, ids)), atol=1e-6)
    values.sum().backward()
    assert bucket.W.grad is not None
    assert x.grad is not None
    won = torch.unique(ids[values > 0])
    lost = [unit for unit in range(64) if unit not in won.tolist()]
    assert (bucket.W.grad[lost] == 0).all()
    assert (bucket.W.grad[won].norm(dim=1) > 0).all()
    wanted = torch.zeros(5, 64).scatter(1, ids, (values > 0).float()) @ bucket.W
    assert torch.allclose(x.grad, wanted, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_max_pooling_by_scatter_is_the_maximum_over_the_tokens_of_a_text(draw: st.DataObject) -> None:
    texts, size = draw.draw(st.integers(1, 4)), draw.draw(st.integers(2, 9))
    k = draw.draw(st.integers(1, size))
    counts = draw.draw(st.lists(st.integers(0, 4), min_size=texts, max_size=texts))
    numbers = np.random.default_rng(draw.draw(st.integers(0, 999)))
    ids = (
        np.stack([numbers.permutation(size)[:k] for _ in range(sum(counts))]) if sum(counts) else np.empty((0, k), int)
    )
    values = numbers.integers(0, 5, ids.shape).astype(np.float32)
    owners = np.repeat(np.arange(texts), counts)
    found = max_pooled(*(torch.from_numpy(part) for part in (ids, values, owners)), texts=texts, size=size)
    wanted = np.zeros((texts, size), np.float32)
    for token, owner in enumerate(owners):
        for place, unit_ in enumerate(ids[token]):
            wanted[owner, unit_] = max(wanted[owner, unit_], values[token, place])
    assert (found.numpy() == wanted).all()


def test_a_cap_keeps_the_largest_and_activity_is_1_with_a_gradient() -> None:
    pooled = torch.tensor([[0.0, 3.0, 1.0, 2.0], [5.0, 0.0, 0.0, 0.0]], requires_grad=True)
    kept = capped(pooled, 2)
    assert kept.tolist() == [[0, 3, 0, 2], [5, 0, 0, 0]]
    assert capped(pooled, None) is pooled
    on = active(kept)
    assert on.tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    on.sum().backward()
    assert pooled.grad is not None
    assert torch.allclose(pooled.grad, torch.tensor([[0, 0.4, 0, 0.4], [0.2, 0, 0, 0]]))


def test_units_that_win_too_often_are_held_back() -> None:
    bucket = Bucket(16, SMALL, seed=1)
    wins = torch.zeros(64, dtype=torch.long)
    wins[3], wins[5] = 40, 24
    bucket.boost(wins, step=torch.tensor(0.1))
    assert torch.allclose(bucket.b[[3, 5, 0]], torch.tensor([-0.2, -0.2, 0.1]))  # 40 and 24 times the share, cut at 2


def test_dead_units_begin_anew_at_states_and_the_optimiser_forgets_them(encoder: SentenceEncoder) -> None:
    trainer = WinnerTrainer(encoder, pairs(), replace(SMALL, revive_every=0, boost=0.0))
    trainer.run()
    trainer.last_won[0, :10] = -100
    states, _ = trainer._states([one.content for one in documents(8)], "document")
    before = trainer.buckets[0].W.detach().clone()
    trainer._revive([states[0].detach()])
    changed = (before != trainer.buckets[0].W).any(dim=1)
    assert changed[:10].all()
    assert not changed[10:].any()
    assert (trainer.optimizer.state[trainer.buckets[0].W]["exp_avg"][:10] == 0).all()


# --- losses ------------------------------------------------------------------------------------------------------


def test_hinge_is_the_sum_over_the_documents_that_are_not_the_querys_own() -> None:
    scores = torch.tensor([[0.9, 0.3, 0.8], [0.1, 0.2, 0.7]])
    excluded = torch.tensor([[False, False, False], [True, False, False]])
    found = hinge(scores, torch.tensor([0, 1]), excluded, margin=1.0)
    wanted = ((1 - 0.9 + 0.3) + (1 - 0.9 + 0.8) + (1 - 0.2 + 0.7)) / 2
    assert float(found) == pytest.approx(wanted)


def test_the_share_of_binary_scores_in_the_loss() -> None:
    class Batch:
        target, excluded = np.array([0]), np.zeros((1, 2), bool)

    scores = Scores(torch.tensor([[0.5, 0.1]]), torch.tensor([[0.1, 0.5]]))
    real, binary, half = (
        float(loss_of(scores, Batch(), replace(SMALL, binary=share, temperature=1.0)))  # type: ignore[arg-type]
        for share in (0.0, 1.0, 0.5)
    )
    assert real == pytest.approx(np.log1p(np.exp(-0.4)))
    assert binary == pytest.approx(np.log1p(np.exp(0.4)))
    assert half == pytest.approx((real + binary) / 2)


def test_the_learning_rate_rises_and_falls_linearly() -> None:
    assert linear(0.05, warm_up=0.1) == pytest.approx(0.5)
    assert linear(0.1, warm_up=0.1) == pytest.approx(1.0)
    assert linear(0.55, warm_up=0.1) == pytest.approx(0.5)


# --- the loop ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["contrast", "hinge"])
def test_training_tells_a_querys_document_from_others(encoder: SentenceEncoder, loss: Any) -> None:
    settings_ = replace(SMALL, steps=40, batch=8, loss=loss, temperature=0.2, binary=0.5)
    trainer = WinnerTrainer(encoder, pairs(), settings_)
    first = trainer._step()[0]
    last = trainer.run()
    assert last.loss < float(first)
    assert last.dead < 0.5


def test_a_run_that_was_stopped_goes_on_exactly(encoder: SentenceEncoder, tmp_path: Path) -> None:
    whole = WinnerTrainer(encoder, pairs(), SMALL)
    whole.run()
    part = WinnerTrainer(encoder, pairs(), SMALL, folder=tmp_path)
    for _ in range(4):
        part._step()
    part.write_checkpoint()
    again = WinnerTrainer(encoder, pairs(), SMALL, folder=tmp_path)
    assert again.step == 4
    again.run()
    assert torch.equal(again.buckets[0].W, whole.buckets[0].W)
    ours, theirs = (fine_tuning.changes(one.learner) for one in (again, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    with pytest.raises(MismatchError, match="of another run"):
        WinnerTrainer(encoder, pairs(), replace(SMALL, k=5), folder=tmp_path)


def test_settings_that_cannot_be_are_refused(encoder: SentenceEncoder) -> None:
    for wrong in ({"k": 65}, {"mask": 1.0}, {"layers": ()}, {"rank": -1}, {"loss": "other"}, {"binary": 2.0}):
        with pytest.raises(InputError, match="allowed"):
            replace(SMALL, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="allowed: different ones from 0 to 2"):
        WinnerTrainer(encoder, pairs(), replace(SMALL, layers=(7,)))
    with pytest.raises(InputError, match="no layers to read"):
        WinnerTrainer(TinyEncoder(), pairs(), SMALL)  # type: ignore[arg-type]
    paper = WinnerConfig.paper()
    assert (paper.loss, paper.rank, paper.lr, paper.query_cap, paper.mask) == ("hinge", None, 5e-6, None, 0.7)


# --- encoders that were changed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 2, None])
def test_changes_turn_the_base_into_what_was_trained(encoder: SentenceEncoder, rank: int | None) -> None:
    trainer = WinnerTrainer(encoder, pairs(), replace(SMALL, rank=rank, layers=(1, 2)))
    texts = [one.content for one in documents(5)]
    with torch.no_grad():
        before = trainer._states(texts, "document")[0]
    trainer.run()
    with torch.no_grad():
        after = trainer._states(texts, "document")[0]
    units, copy = trainer.result()
    assert copy.layers == (1, 2)
    made = BucketEncoder.of(BucketParts(encoder.id, encoder.fingerprint, (copy,)), id="x", base=encoder)
    found = encode(made, texts, kind="document").values.float()
    assert (torch.cosine_similarity(found, torch.cat(after, dim=1)) > 0.9995).all()  # bfloat16 where hardware has it
    assert torch.allclose(torch.cat(before, dim=1), torch.cat(after, dim=1), atol=1e-6) == (rank == 0)
    assert (made.fingerprint == encoder.fingerprint) is False
    codes = units.encode(encode(made, texts, kind="document"))
    assert codes.ids.shape[1] == 12
    assert codes.ids[:, :6].max() < 64 <= codes.ids[:, 6:].min()


def test_a_shallow_copy_goes_without_the_layers_in_the_middle(encoder: SentenceEncoder, tmp_path: Path) -> None:
    assert [fine_tuning.middle(6, kept) for kept in (6, 5, 4, 1)] == [(), (3,), (3, 4), (1, 2, 3, 4, 5)]
    trainer = WinnerTrainer(encoder, pairs(), replace(SMALL, rank=0, layers=(1,), shallow=True))
    texts = [one.content for one in documents(5)]
    with torch.no_grad():
        states = trainer._states(texts, "document")[0][0]
        model = encoder.model[0].auto_model.float()
        tokens = encoder.model.tokenizer(texts, padding=True, return_tensors="pt", truncation=True, max_length=64)
        below = model(**tokens, output_hidden_states=True).hidden_states[0]
        # Hidden from each other: padding, by the mask that the whole model makes of it.
        hidden = (1.0 - tokens["attention_mask"][:, None, None, :].float()) * torch.finfo(torch.float32).min
        last = model.encoder.layer[-1](below, hidden)
        last = last[0] if isinstance(last, tuple) else last
    kept = tokens["attention_mask"].bool()
    assert (torch.cosine_similarity(states, last[kept]) > 0.999).all()
    trainer.run()
    copy = trainer.result()[1]
    assert (copy.layers, copy.without) == ((1,), (1,))
    parts = BucketParts(encoder.id, encoder.fingerprint, (copy,))
    parts.save(tmp_path / "encoder")
    again = BucketParts.load(tmp_path / "encoder")
    assert again.fingerprint == parts.fingerprint != replace(parts, copies=(replace(copy, without=()),)).fingerprint
    found = encode(BucketEncoder.of(again, id="x", base=encoder), texts, kind="document").values.float()
    assert (torch.cosine_similarity(found, states) > 0.999).all()
    with pytest.raises(InputError, match="has one bucket"):
        WinnerTrainer(encoder, pairs(), replace(SMALL, layers=(1, 2), shallow=True))
    with pytest.raises(InputError, match="cannot be taken out"):
        WinnerTrainer(encoder, pairs(), replace(SMALL, layers=(0,), shallow=True))


def test_a_change_of_an_unknown_parameter_is_refused(encoder: SentenceEncoder) -> None:
    from copy import deepcopy

    with pytest.raises(ArtifactError, match="which it does not have"):
        fine_tuning.apply(deepcopy(encoder.model), {"nothing.weight": torch.zeros(1)})


def test_an_encoder_of_other_weights_under_the_same_name_is_refused(trained: Path) -> None:
    parts = BucketParts.load(trained / "encoder")
    with pytest.raises(MismatchError, match="has other weights"):
        BucketEncoder.of(replace(parts, base_fingerprint="0"), id="x")


def test_buckets_have_states_of_their_own_layers(trained: Path, encoder: SentenceEncoder) -> None:
    own = load_encoder(str(trained))
    texts = [one.content for one in documents(6)]
    states = encode(own, texts, kind="query")
    assert own.dim == 64 == states.values.shape[1]
    assert len(states.values) == sum(len(tokens) for tokens in own.tokenize(texts, kind="query"))
    with pytest.raises(InputError, match="has no pooled ones"):
        encode(own, texts, kind="query", level="pooled")


# --- the lexicon -------------------------------------------------------------------------------------------------


def test_a_lexicon_of_winners_is_saved_small_and_opened_the_same(trained: Path, tmp_path: Path) -> None:
    lexicon = load(trained)
    assert lexicon.buckets == 2
    assert lexicon.size == 128 == len(lexicon.concepts)
    stored = json.loads((trained / CONFIG).read_text())
    assert (stored["architecture"], stored["buckets"], stored["groups"]) == ("winners", 2, 4)
    again = lexicon.save(tmp_path / "again")
    assert load(again).hash == lexicon.hash
    assert load(again).encoder_fingerprint == load_encoder(str(again)).fingerprint
    assert {one.id for one, _ in lexicon.neighbours(100, limit=200)} == set(range(64, 128)) - {100}
    words = {word for words in TOPICS.values() for word in words.split()}
    assert sum(any(word in one.label for word in words) for one in lexicon.concepts) > 20


def test_each_bucket_codes_as_it_would_alone(trained: Path) -> None:
    sae = load(trained).sae
    states = encode(load_encoder(str(trained)), ["dough oven", "rook castle check"], kind="document")
    codes = sae.encode(states, k=5)
    for place in range(2):
        alone = sae.bucket(place).encode(States(states.values[:, 32 * place : 32 * place + 32], states.offsets), k=5)
        assert (codes.ids[:, 5 * place : 5 * place + 5] == alone.ids + 64 * place).all()
        assert (codes.values[:, 5 * place : 5 * place + 5] == alone.values).all()
    rows = sae.encoder_rows.reshape(-1, 32)
    assert ((rows != 0).sum(axis=1) <= 10).all()
    assert sae.live is not None
    for latent, group in enumerate(groups_of(sae.config)):
        assert set(np.flatnonzero(rows[latent])) <= set(sae.live[group])


def test_winners_rebuild_nothing_and_stay_together(trained: Path) -> None:
    sae = load(trained).sae
    states = encode(load_encoder(str(trained)), ["dough"], kind="document")
    with pytest.raises(MismatchError, match="no decoder"):
        sae.decode(sae.encode(states))
    with pytest.raises(MismatchError, match="buckets and groups"):
        sae.kept(np.arange(3))
    with pytest.raises(InputError, match="buckets must be alike"):
        joined([sae.bucket(0), sae.bucket(1).configured(k=3)])


def test_damaged_winners_are_refused(trained: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(trained, tmp_path / "damaged")
    tensors = load_file(folder / WEIGHTS)
    for name, broken in (("live_inputs", tensors["live_inputs"] + np.uint16(90)), ("W_live", tensors["W_live"][:9])):
        save_file({**tensors, name: np.ascontiguousarray(broken)}, folder / WEIGHTS)
        with pytest.raises(ArtifactError, match="do not fit together"):
            SparseAutoencoder.load(folder)
    save_file({name: one for name, one in tensors.items() if name != "live_inputs"}, folder / WEIGHTS)
    with pytest.raises(ArtifactError, match="has no live_inputs"):
        SparseAutoencoder.load(folder)
    (folder / "encoder" / "encoder.json").write_text("{}")
    with pytest.raises(ArtifactError, match="is damaged"):
        BucketParts.load(folder / "encoder")


# --- weighing ----------------------------------------------------------------------------------------------------


def vectors(*rows: dict[int, float], size: int) -> SparseVectors:
    counts = [len(row) for row in rows]
    ids = [latent for row in rows for latent in sorted(row)]
    values = [row[latent] for row in rows for latent in sorted(row)]
    return SparseVectors(
        np.array(ids, np.int32), np.array(values, np.float32), np.concatenate([[0], np.cumsum(counts)]), size
    )


def as_rows(found: SparseVectors) -> list[dict[int, float]]:
    return [dict(zip(*(part.tolist() for part in found.of(row)), strict=True)) for row in range(len(found))]


def test_each_bucket_of_a_query_is_capped_by_itself_and_weighed() -> None:
    given_ = vectors({0: 9.0, 1: 8.0, 2: 7.0, 4: 0.3, 5: 0.2, 7: 0.1}, {6: 1.0}, {}, size=8)
    recipe = replace(UHD, query_cap=2, buckets=(1.0, 0.5))
    assert as_rows(as_query(given_, recipe, buckets=2)) == [{0: 1, 1: 1, 4: 0.5, 5: 0.5}, {6: 0.5}, {}]
    alone = replace(recipe, buckets=(0.0, 1.0))
    assert as_rows(as_query(given_, alone, buckets=2)) == [{4: 1, 5: 1}, {6: 1}, {}]
    with pytest.raises(MismatchError, match="the lexicon has 1"):
        as_query(given_, recipe)
    with pytest.raises(InputError, match="not all of them 0"):
        replace(UHD, buckets=(0.0, 0.0))


def test_vectors_are_of_length_1_in_each_bucket() -> None:
    found = unit(vectors({0: 3.0, 1: 4.0, 5: 2.0}, {}, {7: 5.0}, size=8), buckets=2)
    assert as_rows(found) == [{0: pytest.approx(0.6), 1: pytest.approx(0.8), 5: 1.0}, {}, {7: 1.0}]


def test_a_recipe_with_buckets_goes_to_json_and_back() -> None:
    recipe = replace(UHD, buckets=(0.66, 0.0, 1.0))
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    assert recipes.retuned(UHD, {"buckets": (1.0, 2.0)}).buckets == (1.0, 2.0)


# --- a search by them --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["uhd", "uhd-real"])
def test_an_index_by_winners(trained: Path, tmp_path: Path, name: str) -> None:
    recipe = replace(recipes.get(name), k=6, query_k=4)
    index = Index.build(documents(), out=tmp_path / "x", lexicon=trained, recipe=recipe)
    assert index.encoder.id == str(trained)  # it was not asked for
    hits = index.search("dough oven crust", k=5).hits
    for hit in hits:
        assert hit.score == pytest.approx(sum(part.value for part in hit.explain().contributions), rel=1e-5)
    opened = Index.open(tmp_path / "x")
    assert [(hit.id, hit.score) for hit in opened.search("dough oven crust", k=5).hits] == [
        (hit.id, hit.score) for hit in hits
    ]
    if name == "uhd":
        assert all(hit.score == int(hit.score) for hit in hits)


def test_a_lexicon_with_an_encoder_of_its_own_refuses_another(trained: Path, tmp_path: Path, base: str) -> None:
    with pytest.raises(MismatchError, match="leave --encoder out"):
        Index.build(documents(), out=tmp_path / "x", lexicon=trained, recipe=UHD, encoder=base)


def test_the_shipped_lexicon_counts_on_real_text(data_dir: Path, tmp_path: Path) -> None:
    texts = load_collection(data_dir / "scifact").documents[:24]
    index = Index.build(texts, out=tmp_path / "x", recipe="uhd")
    assert index.lexicon.buckets == 2
    assert index.encoder.id == index.lexicon.name == "all-MiniLM-L6-v2-uhd"
    for document in texts[:4]:
        best = index.search(document.text.split(". ")[1], k=3).hits[0]
        assert best.id == document.id
        explained = best.explain().contributions
        assert best.score == pytest.approx(sum(part.value for part in explained), rel=1e-5)
        assert all(part.label for part in explained)
        assert best.score == int(best.score)
    predicted = Index.build(texts[:3], out=tmp_path / "y", recipe=replace(recipes.get("uhd"), predicted=True))
    with pytest.raises(MismatchError, match="learn it: lexent tune COLLECTION"):
        predicted.search("cells")


def test_buckets_can_be_trained_together_on_one_encoder(base: str, tmp_path: Path) -> None:
    texts = [one.content for one in documents()]
    told: list[float] = []
    made = train_uhd(
        texts,
        pairs(),
        out=tmp_path / "joint",
        encoder=base,
        config=replace(SMALL, layers=(1, -1)),
        joint=True,
        progress=lambda stage, done, detail: told.append(done),
    )
    assert isinstance(made, Lexicon)
    assert made.own_encoder is not None
    assert [one.layers for one in made.own_encoder.copies] == [(1, 2)]
    assert made.info.training["joint"] is True
    assert max(told) == 1.0
    assert not (tmp_path / "joint.training").exists()


def test_two_buckets_of_one_layer_differ_and_have_names_of_their_own(base: str, tmp_path: Path) -> None:
    texts = [one.content for one in documents(12)]
    made = train_uhd(texts, pairs(), out=tmp_path / "twice", encoder=base, config=replace(SMALL, layers=(2, 2)))
    assert layers_of(made) == ["layer 2", "layer 2, copy 2"]
    assert not np.array_equal(made.sae.encoder_rows[:64], made.sae.encoder_rows[64:])


def test_train_from_the_command_line(base: str, tmp_path: Path) -> None:
    lines = [{"_id": one.id, "title": f"{one.content[:9]} {one.id}", "text": one.content} for one in documents()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    words = ["train", tmp_path / "corpus.jsonl", "--recipe", "uhd", "--encoder", base, "--latents", 64, "--sae-k", 6]
    words += ["--steps", 3, "--batch", 4, "--layers", "1,2", "--rank", 2, "--bits", 8, "--shallow"]
    found = data(*words, "--out", tmp_path / "lex")
    assert found["concepts"] == 128
    assert found["training"]["layers"] == [1, 2]
    assert [one.without for one in BucketParts.load(tmp_path / "lex" / "encoder").copies] == [(1,), ()]
    index = ["index", tmp_path / "corpus.jsonl", "--recipe", "uhd", "--lexicon", tmp_path / "lex"]
    good(*index, "--out", tmp_path / "x")
    answer = data("search", tmp_path / "x", "dough oven", "--hits", 2)
    assert len(answer["hits"]) == 2
    for wrong, why in (
        (["--recipe", "uhd", "--gamma", 1], "add --recipe ssr"),
        (["--layers", "1"], "add --recipe uhd"),
        (["--recipe", "uhd", "--layers", "one"], "integers with commas"),
        (["--recipe", "uhd", "--level", "pooled"], "decides it"),
        (["--recipe", "uhd", "--passes", 2], "no use for it"),
        (["--steps", 3], "ssr or uhd"),
    ):
        result = run("train", tmp_path / "corpus.jsonl", "--out", tmp_path / "no", *wrong)
        assert result.exit_code != 0
        assert why in " ".join(result.stderr.split())
