"""Training for retrieval: each loss against an obvious formula, the loop, exact resume, pairs and what they refuse."""

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

import lexent.coders.maxsim as maxsims
from commands import data, good, run
from lexent import recipes
from lexent.coders import sparse
from lexent.coders.checkpoint import CHECKPOINT, write_checkpoint
from lexent.coders.log import METRICS
from lexent.coders.maxsim import TextCodes, maxsim
from lexent.coders.negatives import dense_negatives, joined
from lexent.coders.pair_states import FreshStates, HeldStates, Side
from lexent.coders.pairs import PairBatches, Pairs
from lexent.coders.retrieval import PairTrainer
from lexent.coders.retrieval_config import RetrievalConfig
from lexent.coders.retrieval_model import RetrievalModel, Weights, document_contrast, token_contrast, unit
from lexent.coders.retrieval_run import fit
from lexent.coders.sae import SparseAutoencoder
from lexent.coders.sparse import selected_products, weighted_rows
from lexent.corpus.pairs import collection_pairs, title_pairs
from lexent.encoders import Encoder, TinyEncoder
from lexent.encoders import load as load_encoder
from lexent.encoders.encoder import encode
from lexent.errors import ArtifactError, InputError, MismatchError, NotFoundError
from lexent.lexicon import Concept, Concepts, Lexicon, load
from lexent.lexicon.lexicon import LexiconInfo
from lexent.lexicon.ssr import train_ssr
from lexent.pipeline import code
from lexent.search.negatives import bm25_negatives
from lexent.types import States
from small import TOPICS

NONE = torch.empty(0, dtype=torch.long)
ALL = Weights(wide=1 / 8, alpha=1 / 32, beta=0.1, k_aux=8, contrasted=10, temperature=1.0)
SMALL = RetrievalConfig.paper(
    d_sae=64, k=4, whole_d_sae=32, whole_k=4, pretrain=2, pretrain_batch=64, batch=8, steps=20, lr=3e-3, k_aux=16,
    rebuilt=64, contrasted=16, hard=1,
)  # fmt: skip


def model(*, tied: bool = True, d: int = 12, m: int = 40) -> tuple[RetrievalModel, torch.Tensor]:
    made = RetrievalModel(d, m, tied=tied, seed=3)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        made.b_dec.copy_(torch.randn(d, generator=generator) * 0.3)
        made.b_enc.copy_(torch.randn(m, generator=generator) * 0.1)
        if made.gain is not None:
            made.gain.copy_(torch.rand(m, generator=generator) + 0.5)
        if made.W_enc is not None:
            made.W_enc.mul_(1.3)
    return made, torch.randn(30, d, generator=generator)


def weights(made: RetrievalModel) -> tuple[NDArray[Any], ...]:
    found = (made.encoder_rows(), made.W_dec, made.b_enc, made.b_dec)
    return tuple(tensor.detach().numpy().astype(np.float64) for tensor in found)


def slow_codes(made: RetrievalModel, x: torch.Tensor, k: int) -> NDArray[np.float64]:
    """float64[n, m]: the k largest pre-activations of each row, where they are above 0."""
    encoder, _, b_enc, b_dec = weights(made)
    pre = (x.numpy() - b_dec) @ encoder.T + b_enc
    codes = np.zeros_like(pre)
    for row, values in enumerate(pre):
        for latent in sorted(range(len(values)), key=lambda at: -values[at])[:k]:
            codes[row, latent] = max(values[latent], 0)
    return codes


def slow_maxsim(queries: list[NDArray[Any]], documents: list[NDArray[Any]]) -> NDArray[np.float64]:
    """Equation 4, token by token and latent by latent."""
    scores = np.zeros((len(queries), len(documents)))
    for row, query in enumerate(queries):
        for column, document in enumerate(documents):
            for ours in query:
                scores[row, column] += max(
                    [sum(ours[u] * theirs[u] for u in np.flatnonzero((ours > 0) & (theirs > 0))) for theirs in document]
                )
    return scores


# --- products and codes ------------------------------------------------------------------------------------------


def test_products_with_selected_rows_and_their_gradients_are_those_of_the_dense_formula() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(20, 6, generator=draw, dtype=torch.float64, requires_grad=True)
    rows = torch.randn(9, 6, generator=draw, dtype=torch.float64, requires_grad=True)
    mix = torch.rand(20, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    ids = torch.stack([torch.randperm(9, generator=draw)[:3] for _ in range(20)])
    pull = torch.randn(20, 3, generator=draw, dtype=torch.float64)
    pull_rows = torch.randn(20, 6, generator=draw, dtype=torch.float64)
    (selected_products(x, rows, ids) * pull).sum().backward()
    (weighted_rows(mix, ids, rows) * pull_rows).sum().backward()
    mine = [tensor.grad.clone() for tensor in (x, rows, mix)]  # type: ignore[union-attr]
    for tensor in (x, rows, mix):
        tensor.grad = None
    ((x @ rows.T).gather(1, ids) * pull).sum().backward()
    dense = torch.zeros(20, 9, dtype=torch.float64).scatter(1, ids, mix)
    ((dense @ rows) * pull_rows).sum().backward()
    for found, tensor in zip(mine, (x, rows, mix), strict=True):
        torch.testing.assert_close(found, tensor.grad)


def test_what_runs_on_a_gpu_gives_what_runs_on_a_cpu_within_16_bits() -> None:
    made, x = model()
    ids, values = (tensor.detach() for tensor in made.code(x, 5, autocast=False))
    one, two = (spread(values, ids, x, 40) for spread in (sparse._spread, sparse._spread_densely))
    torch.testing.assert_close(one, two, rtol=0.02, atol=0.02 * float(one.abs().max()))
    sides = ids[:8], unit(values)[:8], ids[8:], unit(values)[8:]
    one, two = (near(*sides, 40) for near in (maxsims._nearest_sparsely, maxsims._nearest_densely))
    torch.testing.assert_close(one, two.float(), rtol=0.02, atol=0.01)


@pytest.mark.parametrize("tied", [True, False])
def test_codes_are_the_k_strongest_and_what_the_saved_autoencoder_gives(tied: bool) -> None:
    made, x = model(tied=tied)
    ids, values = made.code(x, 5, autocast=False)
    np.testing.assert_allclose(made.dense(ids, values).detach().numpy(), slow_codes(made, x, 5), atol=1e-5)
    assert (values[:, :-1] >= values[:, 1:]).all()
    sae = made.exported(k=5, scale=2.0, unit_states=False, mean_length=0.0)
    codes = sae.encode(States(x / 2.0, np.arange(len(x) + 1)))
    np.testing.assert_array_equal(codes.ids, ids.numpy())
    np.testing.assert_allclose(codes.values, values.detach().numpy(), rtol=1e-4, atol=1e-5)
    again = RetrievalModel(12, 40, tied=tied, seed=9)
    again.take(sae)
    for name, tensor in made.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor)


# --- losses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
def test_the_unsupervised_losses_are_those_of_the_formulas(tied: bool) -> None:
    made, x = model(tied=tied)
    dead = torch.tensor([1, 5, 8, 13])
    found = made.unsupervised(x, k=3, dead=dead, weights=ALL, autocast=False)
    encoder, decoder, b_enc, b_dec = weights(made)
    states = x.numpy().astype(np.float64)
    variance = np.square(states - states.mean(axis=0)).sum()

    def rebuilt(k: int) -> NDArray[np.float64]:
        return slow_codes(made, x, k) @ decoder + b_dec

    fvu, wide = (np.square(states - rebuilt(k)).sum() / variance for k in (3, 12))
    some = dead.numpy()
    guess = np.maximum((states - b_dec) @ encoder[some].T + b_enc[some], 0) @ decoder[some]
    auxiliary = np.square(states - rebuilt(3) - guess).sum() / variance
    codes = slow_codes(made, x, 3)[:10]
    contrast = 0.0
    for i in range(10):
        others = sum(np.exp(codes[i] @ codes[j]) for j in range(10) if j != i)
        contrast -= np.log(np.exp(codes[i] @ codes[i]) / (np.exp(codes[i] @ codes[i]) + others)) / 10
    assert float(found.fvu) == pytest.approx(fvu, rel=1e-4)
    assert float(found.wide) == pytest.approx(wide, rel=1e-4)
    assert wide != pytest.approx(fvu, rel=0.1)
    assert float(found.auxiliary) == pytest.approx(auxiliary, rel=1e-4)
    assert float(found.contrast) == pytest.approx(contrast, rel=1e-4)
    # 4 of the 8 latents that may help are dead, so AuxK counts half
    total = fvu + wide / 8 + 4 / 8 / 32 * auxiliary + 0.1 * contrast
    assert float(found.total.detach()) == pytest.approx(total, rel=1e-4)


def test_the_reconstruction_by_four_times_k_counts() -> None:
    """The released code computes that term and drops it."""
    made, x = model()
    gradients = []
    for share in (0.0, 1 / 8):
        made.zero_grad()
        only = replace(ALL, wide=share, alpha=0.0, beta=0.0)
        made.unsupervised(x, k=3, dead=NONE, weights=only, autocast=False).total.backward()
        assert made.W_dec.grad is not None
        gradients.append(made.W_dec.grad.clone())
    ids, _ = made.code(x, 12, autocast=False)
    later = sorted(set(ids[:, 3:].flatten().tolist()) - set(ids[:, :3].flatten().tolist()))
    assert later
    assert not gradients[0][later].any()
    assert gradients[1][later].abs().sum() > 0


@pytest.mark.parametrize("off", ["wide", "alpha", "beta"])
def test_each_loss_can_be_left_out(off: str) -> None:
    made, x = model()
    dead = torch.tensor([1, 5, 8, 13])
    with_all = made.unsupervised(x, k=3, dead=dead, weights=ALL, autocast=False)
    without = made.unsupervised(x, k=3, dead=dead, weights=replace(ALL, **{off: 0.0}), autocast=False)
    left = {"wide": "wide", "alpha": "auxiliary", "beta": "contrast"}[off]
    assert float(getattr(without, left)) == 0
    assert float(without.total.detach()) < float(with_all.total.detach())


def test_the_settings_of_the_paper_are_there_and_the_supervised_loss_is_always_on() -> None:
    """The released commands have no supervised loss at all, and another weight for AuxK."""
    config = RetrievalConfig.paper()
    assert (config.wide, config.alpha, config.beta, config.gamma) == (1 / 8, 1 / 32, 0.1, 0.05)
    assert (config.k_aux, config.dead_after, config.d_sae, config.k) == (2048, 30, 16_384, 32)
    assert (config.batch, config.lr, config.epochs) == (64, 1e-3, 2.0)
    assert (config.query_tokens, config.document_tokens) == (32, 180)
    assert (config.gains, config.idf, config.function_words, config.emphasis) == (False, 0.0, 1.0, 0.0)
    ours = RetrievalConfig()
    assert (ours.wide, ours.alpha, ours.beta) == (config.wide, config.alpha, config.beta)
    assert ours.gamma >= config.gamma > 0


def test_the_contrast_of_tokens_has_a_temperature() -> None:
    codes = torch.rand(6, 9, generator=torch.Generator().manual_seed(0))
    products = (codes @ codes.T / 0.5).numpy()
    wanted = -np.mean([np.log(np.exp(products[i, i]) / np.exp(products[i]).sum()) for i in range(6)])
    assert float(token_contrast(codes, temperature=0.5, autocast=False)) == pytest.approx(wanted, rel=1e-5)


def test_the_contrast_of_documents_leaves_out_what_is_neither_right_nor_wrong() -> None:
    scores = torch.tensor([[2.0, 1.0, 5.0], [0.5, 0.0, 0.25]])
    excluded = torch.tensor([[False, False, True], [False, False, False]])
    found = document_contrast(scores, torch.tensor([0, 2]), excluded)
    first = -np.log(np.exp(2) / (np.exp(2) + np.exp(1)))
    second = -np.log(np.exp(0.25) / (np.exp(0.5) + np.exp(0) + np.exp(0.25)))
    assert float(found) == pytest.approx((first + second) / 2, rel=1e-6)


def test_maxsim_is_equation_4_by_brute_force() -> None:
    draw = np.random.default_rng(0)
    m, k = 30, 4

    def texts(counts: list[int]) -> tuple[list[NDArray[Any]], TextCodes]:
        dense, ids, values = [], [], []
        for count in counts:
            rows = np.zeros((count, m))
            for row in rows:
                chosen = draw.choice(m, k, replace=False)
                row[chosen] = np.maximum(draw.normal(0.5, 1, k), 0)
                ids.append(chosen)
                values.append(row[chosen])
            dense.append(rows)
        made = (torch.from_numpy(np.array(ids)), torch.from_numpy(np.array(values)).float())
        return dense, TextCodes.of(*made, counts=torch.tensor(counts))

    slow_queries, queries = texts([3, 1, 5])
    slow_documents, documents = texts([7, 2, 9, 1, *[4] * 30])
    found = maxsim(queries, documents, size=m)
    np.testing.assert_allclose(found.numpy(), slow_maxsim(slow_queries, slow_documents), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_maxsim_is_that_of_the_dense_formula() -> None:
    made, x = model()
    counts = [2, 3, 10, 15]
    ids, values = made.code(x, 5, autocast=False)
    found = maxsim(
        TextCodes.of(ids[:5], unit(values)[:5], counts=torch.tensor(counts[:2])),
        TextCodes.of(ids[5:], unit(values)[5:], counts=torch.tensor(counts[2:])),
        size=40,
    )
    pull = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    (found * pull).sum().backward()
    mine = {name: parameter.grad.clone() for name, parameter in made.named_parameters() if parameter.grad is not None}
    made.zero_grad()
    pre = (x - made.b_dec) @ made.encoder_rows().T + made.b_enc
    best = pre.topk(5, dim=1)
    z = torch.zeros_like(pre).scatter(1, best.indices, best.values.clamp_min(0))
    z = z / z.norm(dim=1, keepdim=True)
    parts = torch.split(z, counts)
    slow = torch.stack(
        [torch.stack([(query @ text.T).max(dim=1).values.sum() for text in parts[2:]]) for query in parts[:2]]
    )
    torch.testing.assert_close(found, slow)
    (slow * pull).sum().backward()
    for name, gradient in mine.items():
        torch.testing.assert_close(gradient, dict(made.named_parameters())[name].grad, rtol=1e-4, atol=1e-6)
    selected = torch.zeros(40, dtype=torch.bool)
    selected[ids.flatten()] = True
    assert not selected.all()
    for name in ("W_dec", "gain", "b_enc"):  # the gradient reaches only latents that some token selected
        assert not mine[name][~selected].any()
        assert mine[name][selected].any()


def test_codes_are_compared_at_unit_length() -> None:
    values = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    torch.testing.assert_close(unit(values), torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_annealing_goes_from_more_latents_to_k() -> None:
    config = replace(SMALL, k_from=8)
    assert [config.k_at(share) for share in (0.0, 0.35, 0.7, 1.0)] == [8, 6, 4, 4]
    assert SMALL.k_at(0.0) == 4


# --- pairs -------------------------------------------------------------------------------------------------------


def toy(n: int = 60, *, seed: int = 0) -> Pairs:
    """A query is a few words of a text on one topic; other texts on that topic are its hard negatives."""
    draw = np.random.default_rng(seed)
    topics = [words.split() for words in TOPICS.values()]
    pairs, topic = [], []
    for number in range(n):
        words = topics[number % 4]
        text = draw.choice(words, 8)
        pairs.append((" ".join(draw.choice(text, 3)), " ".join([*text, f"text{number}"])))
        topic.append(number % 4)
    made = Pairs.of(pairs)
    of_topic = {at: [made.positive[place] for place in range(n) if topic[place] == at] for at in range(4)}
    negatives = np.full((len(made.queries), 3), -1)
    for place, query in enumerate(made.query):
        others = [document for document in of_topic[topic[place]] if document != made.positive[place]]
        negatives[query] = draw.choice(others, 3, replace=False)
    return made.with_negatives(negatives)


def test_pairs_of_equal_texts_are_merged_and_keep_their_answers() -> None:
    pairs = Pairs.of([("a", "x"), ("b", "y"), ("a", "y"), ("a", "x")], documents=["z", "x"])
    assert list(pairs.queries) == ["a", "b"]
    assert list(pairs.documents) == ["x", "y", "z"]
    assert [found.tolist() for found in pairs.answers()] == [[0, 1, 0], [1]]


def test_joined_pairs_keep_their_documents_negatives_and_sources() -> None:
    one = Pairs.of([("a", "x"), ("b", "y")]).with_negatives(np.array([[1], [0]]))
    two = Pairs.of([("c", "z")], documents=["w"]).with_negatives(np.array([[1, -1]]))
    both = Pairs.join([one, two])
    assert [both.documents[place] for place in both.positive] == ["x", "y", "z"]
    assert both.source.tolist() == [0, 0, 1]
    assert both.negatives.tolist() == [[1, -1], [0, -1], [3, -1]]
    assert both.digest != Pairs.join([two, one]).digest


def test_wrong_numbers_in_pairs_are_refused() -> None:
    pairs = Pairs.of([("a", "x"), ("b", "y")])
    with pytest.raises(InputError, match=r"negatives goes from 0 to 7; allowed: -1 to 1"):
        pairs.with_negatives(np.array([[0], [7]]))
    with pytest.raises(InputError, match="a row for each of the 2 queries"):
        pairs.with_negatives(np.array([[0]]))
    with pytest.raises(InputError, match="no pairs to learn from"):
        Pairs.of([])


def test_a_batch_shows_each_document_once_and_excludes_other_answers() -> None:
    texts = [("a", "x"), ("a", "y"), ("b", "x"), ("c", "z")]
    pairs = Pairs.of(texts, documents=["n"]).with_negatives(np.array([[3], [3], [-1]]))
    batch = PairBatches(pairs, batch=4, hard=1, balance=0.5, seed=0).at(0)
    assert batch.documents.tolist() == [0, 1, 2, 3]
    for row, query in enumerate(batch.queries):
        own = batch.documents[batch.target[row]]
        answers = pairs.answers()[query]
        assert own in answers
        assert batch.excluded[row].tolist() == [bool(at in answers and at != own) for at in batch.documents]


def test_batches_hold_one_source_or_every_pair_once() -> None:
    pairs = Pairs.join([toy(40), toy(24, seed=1)])
    batches = PairBatches(pairs, batch=8, hard=2, balance=0.0, seed=0)
    assert batches.an_epoch == 8
    seen = [batches.at(step) for step in range(200)]
    assert all(len(set(batch.source.tolist())) == 1 for batch in seen)
    assert 70 < sum(int(batch.source[0]) for batch in seen) < 130  # both sources alike, whatever their size
    assert {int(query) for batch in seen for query in batch.queries} == set(pairs.query.tolist())
    np.testing.assert_array_equal(batches.at(5).documents, seen[5].documents)
    mixed = PairBatches(pairs, batch=8, hard=2, balance=None, seed=0)
    epoch = [mixed.at(step) for step in range(8)]
    assert sorted(np.concatenate([batch.queries for batch in epoch])) == sorted(pairs.query)
    assert not np.array_equal(mixed.at(8 + 5).queries, epoch[5].queries)  # another epoch, another order
    np.testing.assert_array_equal(mixed.at(5).queries, epoch[5].queries)


def test_pairs_are_saved_and_opened(tmp_path: Path) -> None:
    pairs = Pairs.of([("où?", "là"), ("b", "y")]).with_negatives(np.array([[1], [-1]]))
    pairs.save(tmp_path / "pairs.npz")
    back = Pairs.load(tmp_path / "pairs.npz")
    assert back.digest == pairs.digest
    assert list(back.queries) == ["où?", "b"]
    with pytest.raises(NotFoundError, match="no file of pairs"):
        Pairs.load(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK not really")
    with pytest.raises(ArtifactError, match="is no file of pairs"):
        Pairs.load(tmp_path / "bad.npz")


def collection(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{at}", "title": f"t{at}", "text": f"text {at}"} for at in range(4)]
    queries = [{"_id": "a", "text": "First?"}, {"_id": "b", "text": "second"}, {"_id": "c", "text": " first? "}]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels" / "train.tsv").write_text("a\td0\t1\na\td1\t0\nb\td2\t2\nb\td3\t1\n")
    return folder


def test_pairs_of_a_train_split(tmp_path: Path) -> None:
    folder = collection(tmp_path / "some")
    pairs = collection_pairs(folder)
    texts = [
        (pairs.queries[query], pairs.documents[positive])
        for query, positive in zip(pairs.query, pairs.positive, strict=True)
    ]
    assert texts == [("First?", "t0 text 0"), ("second", "t2 text 2"), ("second", "t3 text 3")]
    assert sorted(pairs.documents) == [f"t{at} text {at}" for at in range(4)]
    (folder / "qrels" / "test.tsv").write_text("c\td1\t1\n")  # the same question as a
    assert list(collection_pairs(folder).queries) == ["second"]


def test_a_test_split_is_refused(tmp_path: Path) -> None:
    folder = collection(tmp_path / "some")
    (folder / "qrels" / "test.tsv").write_text("c\td1\t1\n")
    for source, split in ((folder, "test"), (folder, "Test-2"), ("irds:beir/scifact/test", "train")):
        with pytest.raises(InputError, match=r"for measuring: a lexicon trained on it would know the answers"):
            collection_pairs(source, split=split)


def test_titles_ask_and_texts_answer(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    sentences = [f"This is sentence number {at} of the text." for at in range(4)]
    rows = [
        {"title": "Bread", "text": " ".join(sentences)},
        {"title": "", "text": "no title"},
        {"title": "Stars", "text": "far"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = title_pairs(path)
    assert list(pairs.queries) == ["Bread", "Stars"]
    assert list(pairs.documents) == [" ".join(sentences), "far"]
    more = title_pairs([path], sentences=2)
    asked = [query for query in more.queries if query in sentences]
    assert len(asked) == 2
    for query, positive in zip(more.query, more.positive, strict=True):
        question, answer = more.queries[query], more.documents[positive]
        if question in sentences:
            assert answer == " ".join(part for part in sentences if part != question)
    (tmp_path / "plain.jsonl").write_text('{"text": "no title here"}\n')
    with pytest.raises(InputError, match="has no text with a title"):
        title_pairs(tmp_path / "plain.jsonl")


def test_negatives_by_words_are_what_bm25_ranks_high(tmp_path: Path) -> None:
    texts = [*("apple pie recipe", "apple tart", "apple crumble with pie crust", "car engine", "apple pie apple pie")]
    pairs = Pairs.of([("apple pie", texts[0]), ("engine", texts[3])], documents=texts)
    found = bm25_negatives(pairs, depth=3, skip=0)
    order = [pairs.documents[at] for at in found[0] if at >= 0]
    assert order == [texts[4], texts[2], texts[1]]
    assert (found[1] == -1).all()  # no other document has the word
    assert [pairs.documents[at] for at in bm25_negatives(pairs, depth=3, skip=1)[0]] == [texts[2], texts[1]]


def test_negatives_by_vectors_are_the_nearest_below_the_margin() -> None:
    pairs = toy()
    found = dense_negatives(pairs, TinyEncoder(), depth=6, skip=1, margin=1.0)
    queries, documents = (
        torch.nn.functional.normalize(
            encode(TinyEncoder(), texts, kind="document", level="pooled").values, dim=1
        ).numpy()
        for texts in (pairs.queries, pairs.documents)
    )
    answers = pairs.answers()
    for row in range(len(queries)):
        cosine = documents @ queries[row]
        bar = max(cosine[at] for at in answers[row])
        near = [at for at in np.argsort(-cosine, kind="stable") if at not in answers[row] and cosine[at] < bar][1:]
        kept = [at for at in found[row] if at >= 0]
        assert kept == near[: len(kept)]


def test_negatives_of_both_kinds_stand_side_by_side_once() -> None:
    one, two = np.array([[3, 1, -1], [5, -1, -1]]), np.array([[1, 2], [-1, -1]])
    assert [sorted(row[row >= 0].tolist()) for row in joined([one, two])] == [[1, 2, 3], [5]]


def test_held_states_are_the_fresh_ones() -> None:
    pairs = toy()
    side = Side(pairs.documents, "document", 5, False, True)
    cpu = torch.device("cpu")
    places = np.array([7, 3, 40, 3])
    one, two = (make(TinyEncoder(), side, device=cpu).of(places) for make in (HeldStates, FreshStates))
    np.testing.assert_array_equal(one.counts, two.counts)
    assert one.counts.max() == 5  # cut to the limit
    torch.testing.assert_close(one.rows, two.rows)
    assert one.pooled is not None
    assert two.pooled is not None
    torch.testing.assert_close(one.pooled, two.pooled)


# --- runs --------------------------------------------------------------------------------------------------------


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
    before = trainer(starts, **settings).measured()
    run = trainer(starts, **settings)
    run.run()
    after = run.measured()
    tokens, whole = run.result()
    assert after["tokens"] > before["tokens"]
    assert after["whole"] > before["whole"]
    assert whole is not None
    again = trainer((tokens, whole), **settings).measured()  # what was saved is what was trained
    assert again == pytest.approx(after, abs=0.02)


def test_without_gamma_the_pairs_teach_nothing(starts: tuple[SparseAutoencoder, SparseAutoencoder]) -> None:
    settings = {"alpha": 0.0, "beta": 0.0, "wide": 0.0, "gamma": 0.0, "rebuilt": 4096}
    run = trainer(starts, **settings)
    run._step()
    gradient = run.tokens.model.W_dec.grad
    other = trainer(starts, **settings)
    batch = other.batches.at(0)
    sides = [side.of(places) for side, places in zip(other.sources(), (batch.queries, batch.documents), strict=True)]
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
    write_checkpoint(stopped)
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


FLAGS = ("--recipe", "ssr", "--encoder", "tiny", "--latents", 64, "--k", 4, "--whole-latents", 32, "--whole-k", 4)


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
    more = ("--pairs", file, "--start", start, "--steps", 2, "--batch", 8, "--sentences", 0, "--paper", "--beta", 0.2)
    found = data("train", titled, "--out", out, *FLAGS, *more)
    assert found["training"]["start"] == load(start).hash
    assert (found["training"]["gamma"], found["training"]["beta"], found["training"]["gains"]) == (0.05, 0.2, False)
    assert load(out).sae.query_gain is None


def test_the_command_says_what_does_not_fit(titled: Path, tmp_path: Path) -> None:
    def refused(*arguments: object) -> str:
        result = run("train", titled, "--out", tmp_path / "x", "--encoder", "tiny", *arguments)
        assert result.exit_code == 2
        return " ".join(result.stderr.split())

    assert "--gamma was given, but it is of learning from pairs token by token" in refused("--gamma", 1)
    assert "--level was given, but --recipe ssr decides it" in refused("--recipe", "ssr", "--level", "pooled")
    assert "reads pooled states" in refused("--recipe", "clsr", "--level", "tokens")
    assert "allowed: bm25, dense" in refused("--recipe", "ssr", "--negatives", "tfidf")
    assert "end it with .npz" in refused("--recipe", "ssr", "--prepare")
    folder = collection(tmp_path / "some")
    assert "for measuring" in refused("--recipe", "ssr", "--pairs", folder, "--split", "test")


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
    queries = run.sources()[0].of(batch.queries)
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
    wanted = code(asked, states, kind="query", encoder=TinyEncoder(), lexicon=lexicon, recipe=recipe)
    mine = found * unit(values).detach().numpy() / idf[ids.numpy()]
    np.testing.assert_array_equal(wanted.ids, ids.numpy())
    np.testing.assert_allclose(mine, wanted.values, rtol=1e-4, atol=1e-6)


def test_a_step_in_16_bits_is_close_to_one_in_32(
    starts: tuple[SparseAutoencoder, SparseAutoencoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a GPU, taken on a CPU: autocast, dense products."""
    exact = trainer(starts, **OURS)
    wanted, _ = exact._step()
    monkeypatch.setattr(sparse, "_spread", sparse._spread_densely)
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


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"k": 0}, {"batch": 1}, {"gamma": -1.0}, {"temperature": 0.0}, {"steps": 0}, {"k_from": 65}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} is .*allowed: "):
            replace(SMALL, **wrong)
    with pytest.raises(InputError, match="pretrain is 0"):
        fit(TinyEncoder(), ["a"], toy(), config=replace(SMALL, pretrain=0))
    with pytest.raises(InputError, match='the encoder "tiny" cannot be trained'):
        fit(TinyEncoder(), toy().documents, toy(), config=replace(SMALL, freeze=False))


def test_scores_of_the_trainer_are_those_of_saved_codes(starts: tuple[SparseAutoencoder, SparseAutoencoder]) -> None:
    """What is trained is what is searched: unit codes of the saved autoencoder, by equation 4."""
    run = trainer(starts)
    batch = run.batches.at(0)
    with torch.no_grad():
        sides = [side.of(places) for side, places in zip(run.sources(), (batch.queries, batch.documents), strict=True)]
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
from lexent.coders.negatives import dense_negatives
from lexent.coders.pairs import Pairs
from lexent.coders.retrieval_config import RetrievalConfig
from lexent.encoders import Encoder, TinyEncoder
from lexent.encoders import load as load_encoder
from lexent.lexicon.ssr import train_ssr

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
    before = run.measured()
    run.run()
    after = run.measured()
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
