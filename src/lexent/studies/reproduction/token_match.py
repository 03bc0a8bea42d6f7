"""Sections about MaxSim over codes: quality, LIMIT, theory, concepts a token, long documents."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.encoders.encoder import encode
from lexent.evaluation import baselines
from lexent.evaluation import measures as scoring
from lexent.evaluation.baselines import DenseMaxSim, maxsim
from lexent.evaluation.collections import Collection
from lexent.evaluation.pooling import unit
from lexent.evaluation.runs import from_top
from lexent.evaluation.systems import System
from lexent.studies.analyses.table import Table, chance
from lexent.studies.limit import limit
from lexent.studies.maxsim_theory import tables, theory
from lexent.studies.nearest import nearest
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.held import Held, held, joined, quality, scorer, speed
from lexent.studies.reproduction.retrieval import score_bars, score_systems, score_tables
from lexent.studies.reproduction.section import Figure, Result, Section
from lexent.studies.reproduction.study import Study
from lexent.types import Document, RowCodes, States

KS = (8, 16, 32, 64, 128)
"""Concepts a token: the paper's."""
LONG_DOCUMENT_TOKENS = 1000
"""Tokens of a long document."""


def systems(study: Study) -> list[System]:
    """The paper's recipes, exact MaxSim over states, one vector a text, and words."""
    return [*study.matches, DenseMaxSim(study.encoder), *(study.bench.system(name) for name in ("dense", "bm25"))]


def _quality(study: Study) -> Result:
    return score_systems(study, study.collection, study.measures, systems(study))


def _limit(study: Study) -> Result:
    return score_systems(study, limit(study.sizes.limit), ("R@5", "R@10", "R@100"), systems(study))


def _theory(study: Study) -> Result:
    chosen = study.matches[0]
    own = chosen.recipe.k
    ks = sorted({max(own // 4, 1), max(own // 2, 1), own})
    found = theory(study.collection, chosen.lexicon, study.encoder, ks=ks, progress=study.progress)
    return {"rows": [asdict(one) for one in found], "tables": [asdict(table) for table in tables(found)]}


def _ks(study: Study) -> Result:
    chosen, documents, rows = study.matches[0], held(study), []
    most = min(max(KS), chosen.lexicon.token_size)
    whole = documents.codes(chosen.lexicon, most, progress=study.progress)[0]
    for k in KS:
        if k > most:
            continue
        recipe = chosen.recipe.having(k=k)
        found = scorer(RowCodes(whole.ids[:, :k], whole.values[:, :k], whole.offsets), chosen.lexicon, recipe)
        asked = documents.queries(chosen.lexicon, recipe, found)
        scores = quality(found, asked, documents.collection, measures=study.measures)
        n = len(documents.collection.documents)
        rows.append(
            {"k": k, "values": scores.means, **speed(found, asked, k=10), "bytes": found.stores[0].bytes / max(n, 1)}
        )
    return {"rows": rows, "trained": chosen.lexicon.sae.config.k, "documents": len(documents.collection.documents)}


def _k_tables(result: Result) -> list[Table]:
    measures = tuple(result["rows"][0]["values"])
    rows = tuple(
        (
            str(row["k"]),
            *row["values"].values(),
            f"{row['ms']:.2f}",
            f"{row['scored']:,.0f}",
            f"{row['bytes'] / 1024:.1f}",
        )
        for row in result["rows"]
    )
    note = (
        f"one lexicon, trained with {result['trained']}, used with others on both sides; {result['documents']:,} "
        "documents; ms: the median search for 10 hits on one thread, the query already coded; scored: documents; KB: "
        "of the store of tokens, a document"
    )
    return [Table("concepts a token", ("k", *measures, "ms", "scored", "KB a document"), rows, note)]


def _k_figures(result: Result) -> list[Figure]:
    measure = next(iter(result["rows"][0]["values"]))
    points = [(row["k"], row["values"][measure]) for row in result["rows"]]
    return [
        Figure(partial(plots.lines, {"ssr": points}, x_label="concepts a token", y_label=measure), f"{measure}, by k")
    ]


def _long(study: Study) -> Result:
    chosen, documents = study.matches[0], held(study)
    groups = joined(documents.states.offsets, rows=LONG_DOCUMENT_TOKENS, seed=0)
    whole = _grouped(documents.collection, groups)
    order = np.concatenate(groups)
    ends = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    codes = _taken(documents.codes(chosen.lexicon, chosen.recipe.k, progress=study.progress)[0], order, ends)
    found = scorer(codes, chosen.lexicon, chosen.recipe)
    asked = chosen.queries(whole, found.document_scorer)
    values = {"ssr": quality(found, asked, whole, measures=study.measures)}
    values |= _beside(study, documents, whole, groups)
    dense = values["dense, mean of parts"].per_query
    limit = getattr(study.encoder, "max_tokens", None)
    return {
        "collection": whole.name,
        "documents": len(groups),
        "queries": len(whole.queries),
        "parts": float(np.mean([len(group) for group in groups])),
        "tokens": float(np.diff(codes.offsets).mean()),
        "limit": limit,
        "values": {name: scores.means for name, scores in values.items()},
        "p_values": {
            name: {measure: scoring.p_value(each, dense[measure]) for measure, each in scores.per_query.items()}
            for name, scores in values.items()
        },
        "speed": speed(found, asked, k=10),
        "fast": speed(found, asked, k=10, mode="fast"),
    }


def _beside(
    study: Study, documents: Held, whole: Collection, groups: list[NDArray[np.int64]]
) -> dict[str, scoring.Scores]:
    """Others on the same long documents."""
    texts, wanted = list(whole.queries.values()), scoring.parse(list(study.measures))

    def scored(products: NDArray[np.float32]) -> scoring.Scores:
        order = np.argsort(-products, axis=1, kind="stable")[:, :1001]
        run = from_top(whole, order, scores=np.take_along_axis(products, order, axis=1), depth=1000)
        return scoring.score(whole.qrels, run, wanted)

    asked = encode(study.encoder, texts, kind="query")
    by_states = maxsim(asked, documents.states)
    states = _joined_states(documents.states, groups)
    vectors = baselines.pooled(study.encoder, documents.collection.texts, kind="document", progress=study.progress)
    queries = baselines.pooled(study.encoder, texts, kind="query", progress=study.progress)
    means = unit(np.stack([vectors[group].mean(axis=0) for group in groups]))
    positions, best = nearest(queries, [means], k=1001)
    dense = from_top(whole, positions, scores=best, depth=1000)
    return {
        "dense-maxsim": scored(maxsim(asked, states)),
        "dense-maxsim, best part": scored(np.stack([by_states[:, group].max(axis=1) for group in groups], axis=1)),
        "dense, mean of parts": scoring.score(whole.qrels, dense, wanted),
        "dense, best part": scored(np.stack([(queries @ vectors[group].T).max(axis=1) for group in groups], axis=1)),
        "bm25": scoring.score(whole.qrels, baselines.bm25(whole, k=1000), wanted),
    }


def _grouped(collection: Collection, groups: list[NDArray[np.int64]]) -> Collection:
    """Each group as one document, relevant where one of its parts is."""
    owner = {
        collection.documents[place].id: f"long-{at}" for at, group in enumerate(groups) for place in group.tolist()
    }
    texts = collection.texts
    made = [
        Document(id=f"long-{at}", text=" ".join(texts[place] for place in group.tolist()))
        for at, group in enumerate(groups)
    ]
    qrels: dict[str, dict[str, int]] = {query: {} for query in collection.queries}
    for query, judged in qrels.items():
        for id, grade in collection.qrels[query].items():
            if id in owner:
                judged[owner[id]] = max(grade, judged.get(owner[id], grade))
    return Collection(f"{collection.name}, joined", made, collection.queries, qrels, collection.split)


def _rows(offsets: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.arange(offsets[place], offsets[place + 1]) for place in order.tolist()])


def _taken(codes: RowCodes, order: NDArray[np.int64], ends: NDArray[Any]) -> RowCodes:
    rows = _rows(codes.offsets, order)
    lengths = np.concatenate([[0], np.cumsum(np.diff(codes.offsets)[order])])
    return RowCodes(codes.ids[rows], codes.values[rows], lengths[ends].astype(np.int64))


def _joined_states(states: States, groups: list[NDArray[np.int64]]) -> States:
    import torch

    order = np.concatenate(groups)
    lengths = np.concatenate([[0], np.cumsum(np.diff(states.offsets)[order])])
    ends = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    rows = torch.from_numpy(_rows(states.offsets, order))
    return States(states.values[rows], lengths[ends].astype(np.int64))


def _long_tables(result: Result) -> list[Table]:
    measures = list(next(iter(result["values"].values())))
    rows = tuple(
        (name, *(cell for measure in measures for cell in (means[measure], chance(result["p_values"][name][measure]))))
        for name, means in result["values"].items()
    )
    read = f"; the encoder reads {result['limit']:,} tokens at a time" if result["limit"] else ""
    note = (
        f"p: against dense, mean of parts; joined at random from {result['parts']:.1f} documents of the collection each"
        f"{read}, so each part is encoded by itself; ssr: exact search {result['speed']['ms']:.2f} ms, "
        f"{result['speed']['scored']:,.0f} documents scored; fast mode {result['fast']['ms']:.2f} ms"
    )
    title = f"{result['documents']:,} documents of {result['tokens']:,.0f} tokens, {result['queries']:,} queries"
    return [Table(title, ("system", *(cell for each in measures for cell in (each, "p"))), rows, note)]


SECTIONS = (
    Section(
        "quality",
        "Retrieval quality",
        "How good is MaxSim over codes, beside MaxSim over states, one vector a text, and words?",
        _quality,
        score_tables,
        score_bars,
        reading="Encoder and collection are not the paper's; the shares of dense retrieval can be compared, and the "
        "order.",
        papers=("ssr",),
        version=2,
    ),
    Section(
        "limit",
        "LIMIT: what one vector cannot express",
        "Can every pair of a few documents be the answer to some query?",
        _limit,
        score_tables,
        score_bars,
        reading="A collection of our own in the form of LIMIT, made anew from a seed, and smaller than the paper's.",
        papers=("ssr",),
        sizes=("limit",),
    ),
    Section(
        "theory",
        "The bound and the distortion",
        "How far are products of codes from products of states, and does the bound of appendix A say so?",
        _theory,
        reading="The bound is a worst case over all tokens at once. It is loose: see how often it is above what is "
        "observed, and how it compares with the spread of scores.",
        papers=("ssr",),
    ),
    Section(
        "k",
        "Concepts a token is coded with",
        "How do quality and cost change with k, for one lexicon?",
        _ks,
        _k_tables,
        _k_figures,
        reading="One lexicon used with several k; the paper trains one for each.",
        papers=("ssr",),
        sizes=("tokens",),
    ),
    Section(
        "long",
        "Long documents",
        f"Does MaxSim hold on documents of {LONG_DOCUMENT_TOKENS:,} tokens and more?",
        _long,
        _long_tables,
        reading="Real long documents have one subject; these have several, which is harder for one vector.",
        papers=("ssr",),
        sizes=("tokens",),
    ),
)
