"""What other libraries are asked in `benchmarks.start`: two short scripts each, one that indexes and one that searches.

Each is used as its own first page shows, without a network: models are made or found on this machine first.
"""

from __future__ import annotations

from dataclasses import dataclass

READ = "import json, sys; texts = [json.loads(line)['text'] for line in open(sys.argv[1])]\n"


@dataclass(frozen=True, slots=True)
class Peer:
    """A library: what is installed, and its two scripts. Both get the texts, a folder, the query and MODEL."""

    name: str
    packages: tuple[str, ...]
    index: str
    """Empty where it cannot run without a download; `note` says which."""
    search: str
    note: str
    distils: bool = False
    """Whether its model is made once from MiniLM, by the library itself in an environment of its own."""


PEERS = (
    Peer(
        "bm25s",
        ("bm25s",),
        READ + "import bm25s; index = bm25s.BM25(corpus=texts)\n"
        "index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)\n"
        "index.save(sys.argv[2], corpus=texts)",
        "import sys, bm25s; index = bm25s.BM25.load(sys.argv[2], load_corpus=True)\n"
        "found = index.retrieve(bm25s.tokenize(sys.argv[3], show_progress=False), k=5, show_progress=False)\n"
        "print(found.documents[0])",
        "words; no model",
    ),
    Peer(
        "model2vec",
        ("model2vec",),
        READ + "import numpy as np; from model2vec import StaticModel\n"
        "model = StaticModel.from_pretrained(sys.argv[4])\n"
        "np.save(sys.argv[2] + '/vectors.npy', model.encode(texts))\n"
        "json.dump(texts, open(sys.argv[2] + '/texts', 'w'))",
        "import sys, json, numpy as np; from model2vec import StaticModel\n"
        "model = StaticModel.from_pretrained(sys.argv[4]); vectors = np.load(sys.argv[2] + '/vectors.npy')\n"
        "texts = json.load(open(sys.argv[2] + '/texts')); best = np.argsort(-vectors @ model.encode(sys.argv[3]))[:5]\n"
        "print([texts[place] for place in best])",
        "static vectors, dense; distilled from MiniLM beforehand, which is not counted",
        distils=True,
    ),
    Peer(
        "txtai",
        ("txtai",),
        READ + "from txtai import Embeddings; index = Embeddings(path=sys.argv[4], content=True)\n"
        "index.index(texts); index.save(sys.argv[2])",
        "import sys; from txtai import Embeddings; index = Embeddings(); index.load(sys.argv[2])\n"
        "print(index.search(sys.argv[3], 5))",
        "MiniLM, dense; the model lies on the disk beforehand",
    ),
    Peer(
        "fastembed and qdrant",
        ("fastembed", "qdrant-client"),
        "",
        "",
        "not run: fastembed downloads its models from a hub when it is first used",
    ),
)
DISTIL = (
    "import sys; from model2vec.distill import distill\n"
    "distill(model_name=sys.argv[1], pca_dims=256).save_pretrained(sys.argv[2])"
)
