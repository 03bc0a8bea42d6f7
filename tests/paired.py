"""Pairs and settings that tests of training share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lexent.training.pairs import Pairs
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.ssr.trainer import PairTrainer, accuracy
from small import TOPICS

NONE = torch.empty(0, dtype=torch.long)
ALL = RetrievalConfig(wide=1 / 8, alpha=1 / 32, beta=0.1, k_aux=8, contrasted=10, contrast_temperature=1.0)
SMALL = RetrievalConfig.paper(
    d_sae=64, k=4, whole_d_sae=32, whole_k=4, pretrain=2, pretrain_batch=64, batch=8, steps=20, lr=3e-3, k_aux=16,
    rebuilt=64, contrasted=16, hard=1, freeze=True, whole_temperature=0.05, warm_up_steps=None,
)  # fmt: skip


def disturbed(made: Any) -> torch.Generator:
    """Gives an autoencoder biases and gains, where it has them, so that each of them matters; what they came from."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        made.b_dec.copy_(torch.randn(len(made.b_dec), generator=generator) * 0.3)
        made.b_enc.copy_(torch.randn(len(made.b_enc), generator=generator) * 0.1)
        if made.gain is not None:
            made.gain.copy_(torch.rand(len(made.gain), generator=generator) + 0.5)
        if made.W_enc is not None:
            made.W_enc.mul_(1.3)
    return generator


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


@torch.no_grad()
def measured(run: PairTrainer) -> dict[str, float]:
    """In-batch accuracy of each autoencoder of a run as it is now, over the batches of an epoch; trains nothing."""
    found: dict[str, list[float]] = {name: [] for name in run.coders}
    for batch in map(run.batches.at, range(run.batches.an_epoch)):
        states = run._states(batch)
        for name, each in found.items():
            each.append(accuracy(run._outcome(name, *states, batch).scores, batch))
    return {name: float(np.mean(each)) for name, each in found.items()}


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


def collection(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{at}", "title": f"t{at}", "text": f"text {at}"} for at in range(4)]
    queries = [{"_id": "a", "text": "First?"}, {"_id": "b", "text": "second"}, {"_id": "c", "text": " first? "}]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels" / "train.tsv").write_text("a\td0\t1\na\td1\t0\nb\td2\t2\nb\td3\t1\n")
    return folder
