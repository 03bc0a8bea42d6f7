"""Pairs to train on: batches, files, negatives, held states, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lexent.encoders import TinyEncoder
from lexent.encoders.encoder import encode
from lexent.errors import ArtifactError, InputError, NotFoundError
from lexent.training.hard_negatives import bm25_negatives, dense_negatives, joined
from lexent.training.pair_sources import collection_pairs, title_pairs
from lexent.training.pair_states import HeldStates, Side, fresh_states
from lexent.training.pairs import PairBatches, Pairs
from paired import collection, toy


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
        with pytest.raises(InputError, match=r"is a test split|use irds:beir/scifact/train"):
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
            encode(TinyEncoder(), texts, kind="document", level="pooled").tensor(), dim=1
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
    one = HeldStates(TinyEncoder(), side, device=cpu).of(places)
    two = fresh_states(TinyEncoder(), side, places, device=cpu)
    np.testing.assert_array_equal(one.counts, two.counts)
    assert one.counts.max() == 5  # cut to the limit
    torch.testing.assert_close(one.rows, two.rows)
    assert one.pooled is not None
    assert two.pooled is not None
    torch.testing.assert_close(one.pooled, two.pooled)
