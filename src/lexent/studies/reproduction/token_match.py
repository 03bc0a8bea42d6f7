"""Sections about MaxSim over codes: theory, concepts a token, long documents."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.encoders.encoder import encode
from lexent.evaluation import baselines
from lexent.evaluation import measures as scoring
from lexent.evaluation.baselines import maxsim
from lexent.evaluation.collections import Collection
from lexent.evaluation.runs import from_top
from lexent.studies.analyses.table import Column, Table, measured
from lexent.studies.maxsim_theory import tables, theory
from lexent.studies.reproduction import plots
from lexent.studies.reproduction.encoded_corpus import EncodedCorpus, encoded_corpus, joined, quality, scorer, speed
from lexent.studies.reproduction.retrieval import score_table, values_and_p
from lexent.studies.reproduction.section import Figure, Result, Section, first_measure
from lexent.studies.reproduction.study import Study
from lexent.types import Document, RowCodes, States

KS = (8, 16, 32, 64, 128)
"""Concepts a token: the paper's."""
LONG_DOCUMENT_TOKENS = 1000
"""Tokens of a long document."""
TIMED_HITS = 10
"""Hits of a search that is timed."""


def _theory(study: Study) -> Result:
    chosen = study.matches[0]
    own = chosen.recipe.k
    ks = sorted({max(own // 4, 1), max(own // 2, 1), own})
    found = theory(study.collection, chosen.lexicon, study.encoder, ks=ks)
    return {"rows": [asdict(one) for one in found], "tables": [asdict(table) for table in tables(found)]}


def _ks(study: Study) -> Result:
    chosen, documents, rows = study.matches[0], encoded_corpus(study), []
    n = len(documents.collection.documents)
    for k in sorted((k for k in KS if k <= chosen.lexicon.token_size), reverse=True):  # the widest is coded, once
        found, queries, scores = documents.searched(chosen.lexicon, chosen.recipe.having(k=k), study)
        size = found.stores[0].bytes / max(n, 1)
        rows.append({"k": k, "values": scores.means, **speed(found, queries, k=TIMED_HITS), "bytes": size})
    return {"rows": rows[::-1], "trained": chosen.lexicon.sae.config.k, "documents": n}


def _show_ks(result: Result) -> list[Table | Figure]:
    rows, measure = result["rows"], first_measure(result)
    columns: list[Column] = [
        ("k", "{k}"),
        *measured(rows[0]["values"]),
        ("ms", "{ms:.2f}"),
        ("scored", "{scored:,.0f}"),
        ("KB a document", lambda row: f"{row['bytes'] / 1024:.1f}"),
    ]
    note = (
        f"one lexicon, trained with {result['trained']}, used with others on both sides; {result['documents']:,} "
        f"documents; ms: the median search for {TIMED_HITS} hits on one thread, the query already coded; scored: "
        "documents; KB: of the store of tokens, a document"
    )
    points = [(row["k"], row["values"][measure]) for row in rows]
    drawn = plots.lines({"ssr": points}, x_label="concepts a token", y_label=measure)
    return [Table.of("concepts a token", rows, columns, note), Figure(drawn, f"{measure}, by k")]


def _long(study: Study) -> Result:
    chosen, documents = study.matches[0], encoded_corpus(study)
    groups = joined(documents.states.offsets, rows=LONG_DOCUMENT_TOKENS, seed=0)
    whole = _grouped(documents.collection, groups)
    rows, offsets = _regrouped(documents.states.offsets, groups)
    short = documents.codes(chosen.lexicon, chosen.recipe.k)
    codes = RowCodes(short.ids[rows], short.values[rows], offsets)
    found = scorer(codes, chosen.lexicon, chosen.recipe)
    queries = chosen.queries(whole, found.document_scorer)
    scores = {"ssr": quality(found, queries, whole, measures=study.measures)}
    scores |= _beside(study, documents, whole, groups)
    return {
        "collection": whole.name,
        "documents": len(groups),
        "queries": len(whole.queries),
        "parts": float(np.mean([len(group) for group in groups])),
        "tokens": float(np.diff(codes.offsets).mean()),
        "limit": getattr(study.encoder, "max_tokens", None),
        **values_and_p(scores, "dense, mean of parts"),
        "speed": speed(found, queries, k=TIMED_HITS),
        "fast": speed(found, queries, k=TIMED_HITS, mode="fast"),
    }


def _beside(
    study: Study, documents: EncodedCorpus, whole: Collection, groups: list[NDArray[np.int64]]
) -> dict[str, scoring.Scores]:
    """Others on the same long documents."""
    texts, wanted = list(whole.queries.values()), scoring.parse(list(study.measures))

    def scored(products: NDArray[np.float32]) -> scoring.Scores:
        order = np.argsort(-products, axis=1, kind="stable")[:, :1001]
        run = from_top(whole, order, scores=np.take_along_axis(products, order, axis=1), depth=1000)
        return scoring.score(whole.qrels, run, wanted)

    query_states = encode(study.encoder, texts, kind="query")
    by_states = maxsim(query_states, documents.states)
    rows, offsets = _regrouped(documents.states.offsets, groups)
    states = States(documents.states.values[rows], offsets)
    vectors = baselines.pooled(study.encoder, documents.collection.texts, kind="document")
    queries = baselines.pooled(study.encoder, texts, kind="query")
    means = unit(np.stack([vectors[group].mean(axis=0) for group in groups]))
    return {
        "dense-maxsim": scored(maxsim(query_states, states)),
        "dense-maxsim, best part": scored(np.stack([by_states[:, group].max(axis=1) for group in groups], axis=1)),
        "dense, mean of parts": scored(queries @ means.T),
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


def _regrouped(
    offsets: NDArray[np.int64], groups: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of the texts in the order of their groups, and the offsets of the groups."""
    rows = [np.arange(offsets[place], offsets[place + 1]) for group in groups for place in group.tolist()]
    sizes = [int(np.diff(offsets)[group].sum()) for group in groups]
    return np.concatenate(rows), np.cumsum([0, *sizes]).astype(np.int64)


def _show_long(result: Result) -> list[Table]:
    read = f"; the encoder reads {result['limit']:,} tokens at a time" if result["limit"] else ""
    note = (
        f"p: against dense, mean of parts; joined at random from {result['parts']:.1f} documents of the collection each"
        f"{read}, so each part is encoded by itself; ssr: exact search {result['speed']['ms']:.2f} ms, "
        f"{result['speed']['scored']:,.0f} documents scored; fast mode {result['fast']['ms']:.2f} ms"
    )
    title = f"{result['documents']:,} documents of {result['tokens']:,.0f} tokens, {result['queries']:,} queries"
    return [score_table(title, result, note=note)]


SECTIONS = (
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
        _show_ks,
        reading="One lexicon used with several k; the paper trains one for each.",
        papers=("ssr",),
        sizes=("tokens",),
    ),
    Section(
        "long",
        "Long documents",
        f"Does MaxSim hold on documents of {LONG_DOCUMENT_TOKENS:,} tokens and more?",
        _long,
        _show_long,
        reading="Real long documents have one subject; these have several, which is harder for one vector.",
        papers=("ssr",),
        sizes=("tokens",),
    ),
)
