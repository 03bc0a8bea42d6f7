"""What the papers report, as data: tables that stand beside ours, with their sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lexent.studies.analyses.table import Table

PaperName = Literal["clsr", "latent-terms", "imrnns", "ssr", "uhd"]


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper: which recipes are its, on what it measured, and its tables by the section that they belong to."""

    name: PaperName
    title: str
    source: str
    recipes: tuple[str, ...]
    setting: str
    """The encoder and the data of the paper's figures."""
    tables: dict[str, tuple[Table, ...]]


CLSR = Paper(
    name="clsr",
    title="CL-SR: concept-level sparse retrieval",
    source="Decoding Dense Embeddings: Sparse Autoencoders for Interpreting and Discretizing Dense Retrieval, "
    "arXiv 2506.00041 (EMNLP 2025)",
    recipes=("clsr", "clsr-efficient"),
    setting="SimLM (768 dimensions), 24,576 latents trained on 8.8 million MS MARCO passages and 0.5 million queries; "
    "MS MARCO dev and TREC DL 2019 and 2020",
    tables={
        "quality": (
            Table(
                "MS MARCO passages, SimLM",
                ("system", "MRR@10 dev", "R@1000 dev", "nDCG@10 DL19", "nDCG@10 DL20"),
                (
                    ("SimLM (dense)", 0.411, 0.986, 0.714, 0.697),
                    ("CL-SR Max (k 128, 65 latents a document)", 0.368, 0.969, 0.686, 0.634),
                    ("CL-SR Efficient (k 32, 24 latents a document)", 0.343, 0.954, 0.643, 0.593),
                    ("SPLADEv2-max", 0.340, 0.965, 0.683, 0.671),
                    ("BM25", 0.183, None, None, None),
                ),
                "shares of dense MRR@10: Max 0.895, Efficient 0.835",
            ),
        ),
        "fidelity": (
            Table(
                "rebuilt embeddings, SimLM, MS MARCO",
                ("k", "NMSE", "MRR@10 dev", "share of dense", "R@1000 dev", "nDCG@10 DL19", "Spearman DL19"),
                (
                    ("32", 0.1903, 0.328, 0.798, 0.964, 0.589, 0.928),
                    ("48", 0.1643, 0.338, 0.822, 0.968, 0.624, 0.936),
                    ("64", 0.1458, 0.347, 0.844, 0.973, 0.640, 0.949),
                    ("128", 0.1069, 0.371, 0.903, 0.980, 0.664, 0.959),
                ),
                "a lexicon was trained for each k",
            ),
        ),
        "cost": (
            Table(
                "the paper's Table 4, MS MARCO",
                ("system", "MRR@10 dev", "FLOPs", "doc. length", "index GB", "vocabulary"),
                (
                    ("CL-SR Efficient", 0.343, "0.11", "22.95", "0.57", 11_709),
                    ("CL-SR Max", 0.368, "0.74", "64.73", "1.27", 18_679),
                ),
                "8.8 million passages; FLOPs and sizes grow with the collection and its texts",
            ),
        ),
        "idf": (
            Table(
                "with idf and without (dot product), MRR@10 dev",
                ("system", "with idf", "dot product", "lost"),
                (("CL-SR Efficient", 0.343, 0.274, "-20%"), ("CL-SR Max", 0.368, 0.316, "-14%")),
            ),
        ),
        "mismatch": (
            Table(
                "MRR@10 on the 988 dev queries that BM25 misses at 1000",
                ("system", "all queries", "missed@1000", "drop"),
                (
                    ("SimLM (dense)", 0.411, 0.185, "-55%"),
                    ("CL-SR Max", 0.368, 0.143, "-61%"),
                    ("CL-SR Efficient", 0.343, 0.124, "-64%"),
                    ("SPLADEv2-max", 0.340, 0.106, "-69%"),
                ),
            ),
        ),
        "names": (
            Table(
                "intrusion with a language model as judge (GPT-4.1-mini), by k",
                ("k", "accuracy"),
                (("32", 0.859), ("48", 0.829), ("64", 0.808), ("128", 0.764)),
                "chance is 0.1",
            ),
            Table(
                "people",
                ("task", "accuracy"),
                (
                    ("passage identification, 1 of 10", 0.943),
                    ("ranking simulation, R@P-R@P: two retrieved positives", 0.903),
                    ("ranking simulation, R@P-NR@P: a retrieved positive and one not retrieved", 0.938),
                    ("ranking simulation, R@N-NR@P: a retrieved negative and a positive not retrieved", 0.921),
                ),
                "chance is 0.1 for identification and 0.5 for simulation; retrieved: among the first 1,000",
            ),
        ),
    },
)

LATENT_TERMS = Paper(
    name="latent-terms",
    title="Latent Terms: BM25 over the latents of token states",
    source="Latent Terms, arXiv 2605.29384; the tables as far as public notes quote them",
    recipes=("latent-terms",),
    setting="Contriever, Nomic Embed and GTE-ModernColBERT, 32,768 latents trained on FineWeb-Edu; BEIR and LIMIT; "
    "BM25 settings tuned for each set",
    tables={
        "quality": (
            Table(
                "nDCG@10 on sets of BEIR",
                ("system", "SciFact", "NFCorpus", "FiQA", "TREC-COVID", "NQ", "HotpotQA", "FEVER"),
                (
                    ("BM25 (tuned)", 0.686, 0.319, 0.249, 0.680, 0.285, 0.569, 0.481),
                    ("SPLADE-v3", 0.710, 0.357, 0.374, 0.748, 0.586, 0.692, 0.796),
                    ("Contriever", 0.655, 0.313, 0.274, 0.448, 0.419, 0.542, 0.581),
                    ("Contriever + Latent Terms", 0.713, 0.340, 0.317, 0.709, 0.468, 0.627, 0.751),
                    ("Nomic", 0.703, 0.346, 0.377, 0.822, 0.598, 0.672, 0.813),
                    ("Nomic + Latent Terms", 0.749, 0.372, 0.382, 0.783, 0.577, 0.732, 0.885),
                ),
                "averages over 15 sets: Nomic 0.521, with Latent Terms 0.526",
            ),
        ),
        "limit": (
            Table(
                "LIMIT (50,000 documents), recall",
                ("system", "R@10", "R@20", "R@100", "R@1000"),
                (
                    ("BM25", 0.944, 0.949, 0.965, 0.995),
                    ("Contriever", 0.021, 0.027, 0.053, 0.125),
                    ("Contriever + Latent Terms", 0.414, 0.510, 0.730, 0.929),
                ),
            ),
        ),
        "categories": (
            Table(
                "kinds of latents",
                ("kind", "share"),
                (("lexical", "33%"), ("narrow semantic", "10%"), ("broad topical", "57%")),
                "named by a language model, 500 of them checked by people",
            ),
        ),
        "prune": (
            Table(
                "the most frequent latents",
                ("pruned", "what the paper says"),
                (("1 %", "costs nothing"), ("more", "hurts quickly")),
                "figures are not public",
            ),
        ),
        "tuned": (
            Table(
                "formulas",
                ("what", "what the paper says"),
                (
                    ("untuned", "k1 8, b 0.7, square root on both sides"),
                    ("dot product on these vectors", "much worse than BM25"),
                ),
                "figures are not public",
            ),
        ),
    },
)

IMRNNS = Paper(
    name="imrnns",
    title="IMRNNs: adapters that modulate queries and documents",
    source="IMRNNs, arXiv 2601.20084 (Findings of EACL 2026); figures of their package 0.2 on official test queries, "
    "where they have them",
    recipes=(),
    setting="e5, all-MiniLM-L6-v2 and BGE on seven sets; cut-off, split and candidates are not stated",
    tables={
        "adapted": (
            Table(
                "all-MiniLM-L6-v2, official test queries, re-ranked (the authors' package 0.2)",
                ("set", "nDCG@10 base", "IMRNN", "R@10 base", "IMRNN", "MRR@10 base", "IMRNN"),
                (
                    ("SciFact", 0.6451, 0.6917, 0.783, 0.843, 0.605, 0.648),
                    ("NFCorpus", 0.3173, 0.3199, None, None, 0.5077, 0.5075),
                    ("ArguAna (70/15/15)", 0.3770, 0.4093, None, None, None, None),
                ),
            ),
            Table(
                "nDCG of the paper, base and IMRNN; bases far above those of the official sets",
                ("set", "e5", "with IMRNN", "MiniLM", "with IMRNN", "BGE", "with IMRNN"),
                (
                    ("MS MARCO", 0.85, 0.88, 0.91, 0.93, 0.88, 0.93),
                    ("NQ", 0.72, 0.75, 0.89, 0.91, 0.73, 0.75),
                    ("HotpotQA", 0.54, 0.59, 0.61, 0.63, 0.61, 0.63),
                    ("SciFact", 0.72, 0.74, 0.79, 0.82, 0.67, 0.70),
                    ("TREC-COVID", 0.79, 0.85, 0.75, 0.78, 0.76, 0.80),
                    ("Touche", 0.60, 0.62, 0.59, 0.61, 0.56, 0.60),
                    ("FiQA", 0.20, 0.22, 0.22, 0.23, 0.23, 0.25),
                ),
            ),
            Table(
                "latency, ms a query",
                ("method", "ms"),
                (("IMRNN", "1.64"), ("Search-Adaptor", "1.02"), ("DIME", "0.96"), ("Hypencoder", "1.71")),
                "ours, at growing sizes: make bench-adapt",
            ),
        ),
    },
)

SSR = Paper(
    name="ssr",
    title="SSR and SSR++: MaxSim over sparse codes of tokens",
    source="SSR, arXiv 2605.30120 (ICML 2026)",
    recipes=("ssr", "ssr-cls", "ssr++"),
    setting="bert-base-uncased (768 dimensions), 16,384 latents, 32 a token, trained on MS MARCO passages; "
    "13 sets of BEIR, MS MARCO, LoTTE and LIMIT",
    tables={
        "quality": (
            Table(
                "nDCG@10, the mean of 13 sets of BEIR",
                ("system", "mean", "SciFact"),
                (
                    ("SSR, tokens", 0.529, None),
                    ("SSR-CLS", 0.534, 0.733),
                    ("SPLADE-v3", 0.512, None),
                    ("PLAID", 0.493, None),
                    ("ColBERTv2", 0.492, None),
                ),
            ),
        ),
        "limit": (Table("LIMIT, recall", ("system", "R@5", "R@10", "R@100"), (("SSR", 0.786, 0.873, 0.981),)),),
        "losses": (
            Table(
                "nDCG@10, the mean of BEIR",
                ("losses", "tokens", "CLS"),
                (
                    ("reconstruction", 0.464, 0.467),
                    ("+ aux", 0.475, 0.486),
                    ("+ contrast", 0.482, 0.495),
                    ("+ supervised", 0.529, 0.534),
                ),
            ),
        ),
        "k": (
            Table(
                "by domain and k; a lexicon was trained for each",
                ("domain", "8", "16", "32", "64", "128"),
                (
                    ("facts", 0.504, 0.659, 0.677, 0.682, 0.684),
                    ("several steps", 0.502, 0.586, 0.651, 0.665, 0.668),
                    ("science", 0.293, 0.396, 0.442, 0.448, 0.453),
                    ("opinions", 0.209, 0.333, 0.395, 0.403, 0.406),
                ),
            ),
        ),
        "modes": (
            Table(
                "MS MARCO",
                ("system", "candidates", "ms", "quality"),
                (("SSR", 54_278, "38.6", 0.453), ("SSR++", 3_196, "17.5", 0.452)),
                "on a GPU; on 96 CPU cores 49.1 ms",
            ),
        ),
        "index": (
            Table(
                "MS MARCO, 8.8 million passages",
                ("what", "value"),
                (
                    ("index on 96 CPU cores", "7.3 h"),
                    ("index size", "18.5 GB"),
                    ("peak memory", "34.6 GB"),
                ),
            ),
        ),
    },
)

UHD = Paper(
    name="uhd",
    title="UHD: winners of ultra-high-dimensional codes, binarised, in buckets",
    source="Ultra-High Dimensional Sparse Representations with Binarization for Efficient Text Retrieval, EMNLP 2021; "
    "an earlier version: arXiv 2104.07198",
    recipes=("uhd", "uhd-real"),
    setting="bert-base-uncased (768 dimensions), 81,920 units a bucket, 80 winners a token, buckets of layers 2 to 12, "
    "trained on a quarter of the MS MARCO triples; MS MARCO dev and TREC CAR",
    tables={
        "quality": (
            Table(
                "MS MARCO dev, all passages ranked",
                ("system", "MRR@10", "R@50", "R@200", "R@1000"),
                (
                    ("UHD, 6 buckets, binary, query cap 100", 0.3004, 0.7777, 0.8881, 0.9601),
                    ("docTTTTTquery", 0.277, None, None, None),
                    ("SparTerm", 0.2794, None, None, None),
                    ("RepBERT", 0.304, None, None, None),
                    ("ColBERT", 0.360, None, None, None),
                    ("BM25", 0.187, None, None, None),
                ),
                "binary 0.3003 and real 0.3004 where both rank all passages",
            ),
        ),
        "buckets": (
            Table(
                "MS MARCO dev, candidates ranked again, weights of layers 2, 4, 6, 8, 10, 12",
                ("weights", "MRR@10"),
                (
                    ("all alike", 0.2708),
                    ("from a grid: 0.66, 0, 0.33, 1, 0.33, 1", 0.2741),
                    ("oracle: each query's best layer", 0.3962),
                ),
                "6 buckets of 8,192 units, 80 winners a token each, trained apart on 3 % of the triples",
            ),
        ),
        "k": (
            Table(
                "winners a token",
                ("k", "what the paper says"),
                (("4 to 400", "trained once with 400, k may be another at use without loss"),),
            ),
        ),
        "caps": (
            Table(
                "MS MARCO dev, by the units a query keeps",
                ("at most", "MRR@10"),
                (
                    ("50", 0.2950),
                    ("100", 0.3004),
                    ("200", 0.2986),
                    ("300", 0.2964),
                    ("400", 0.2929),
                    ("all, about 1,200", 0.2899),
                ),
                "on TREC CAR 300 is best: MRR@10 0.3732",
            ),
        ),
        "units": (
            Table(
                "units of a bucket",
                ("units", "what the paper says"),
                (("8,192, 24,576, 49,152, 81,920", "quality rises with n at the same k"),),
            ),
        ),
        "joint": (
            Table(
                "MS MARCO dev, candidates ranked again",
                ("buckets", "units", "k", "MRR@10"),
                (
                    ("six, trained apart", "6 x 8,192", "6 x 80", 0.2708),
                    ("six, trained together", "6 x 8,192", "6 x 80", 0.2558),
                    ("one", "49,152", "480", 0.2618),
                ),
                "trained on 3 % of the triples",
            ),
        ),
        "speed": (
            Table(
                "MS MARCO, ms a query on 24 cores",
                ("system", "ms"),
                (("UHD, one bucket", "63"), ("BM25", "62")),
            ),
        ),
        "density": (
            Table(
                "length of texts",
                ("texts", "what the paper says"),
                (("queries", "active units keep growing with length"), ("passages", "they saturate")),
            ),
        ),
        "values": (
            Table(
                "values at length 1",
                ("mean", "sd", "sd, relative"),
                (("0.11169", "0.00182", "0.016"),),
                "80 winners that are all alike would have 0.11180",
            ),
        ),
    },
)

PAPERS: dict[str, Paper] = {paper.name: paper for paper in (CLSR, LATENT_TERMS, IMRNNS, SSR, UHD)}
