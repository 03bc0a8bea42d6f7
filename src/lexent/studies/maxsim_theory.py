"""How far products of codes are from products of states, beside what theory promises (appendix A of the SSR paper).

With x' = D z + b for the state that a code z stands for, e for the largest |x - x'|, R for the largest |x - b|, and d
for the largest norm of (D D^T - 1) on the active latents of two tokens:

    |<x, y> - <z_x, z_y>|  <=  (2 R e + e^2)  +  d |z_x| |z_y|

The first part is what rebuilding loses, the second what directions that are not at right angles add. MaxSim is a sum
over the query's tokens of largest products, so it is off by at most that, times the number of tokens. All of it is
about states less the decoder's bias b, which codes do not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexent.adapters.adapter import unit
from lexent.encoders import Encoder
from lexent.encoders.encoder import encode
from lexent.evaluation.collections import Collection
from lexent.evaluation.progress import counter
from lexent.evaluation.vector_search import correlation, rank_correlation
from lexent.lexicon import Lexicon
from lexent.nan_safe import mean, shown
from lexent.studies.analyses.table import Table
from lexent.studies.state_reconstruction import coefficients
from lexent.types import Kind, RowCodes, States

TEXTS = {"query": 30, "document": 60}
"""Texts whose tokens are compared."""
TOKEN_PAIRS = 2000
"""Pairs of tokens: half at random, half of a query's token and the most like it in a document."""
PAIRS_PER_STEP = 128
"""Pairs whose directions are held at a time."""

Spread = dict[str, float]
"""mean, p50, p95 and largest."""


@dataclass(frozen=True, slots=True)
class Theory:
    """The bound and what was observed, for codes of k latents."""

    lexicon: str
    k: int
    queries: int
    documents: int
    tokens: int
    pairs: int
    length: float
    """R: the largest length of a state, less the bias."""
    error: Spread
    """Of states: how far the rebuilt ones are from them."""
    coherence: Spread
    """|<d_u, d_v>| of different latents, u active in one token of a pair and v in the other."""
    delta: Spread
    """Of pairs: the norm of D D^T - 1 on their active latents."""
    distortion: Spread
    """Of pairs, observed: |<x, y> - <z_x, z_y>|."""
    rebuilding: Spread
    """The part of it that rebuilding makes: |<x, y> - <x', y'>|."""
    overlap: Spread
    """The part that directions make: |<x', y'> - <z_x, z_y>|."""
    bound: float
    """With the largest e, R, d and |z|: it holds for every pair."""
    bound_parts: tuple[float, float]
    own_bound: Spread
    """Of pairs: the same with the two tokens' own lengths and errors, and their own d."""
    within: float
    """The share of pairs within the bound; less than 1 would be an error of ours."""
    within_own: float
    correlation: float
    """Of <x, y> and <z_x, z_y>, over pairs."""
    maxsim: dict[str, Any]
    """Of queries and documents: pairs, tokens (of a query), distortion, bound (mean), within, scores (the standard
    deviation of a query's dense scores) and spearman of a query's documents by the two."""

    def reading(self) -> str:
        """What the figures say, in a sentence."""
        seen, most = self.distortion["mean"], self.distortion["largest"]
        if most <= 1e-4:
            return "products of codes are those of states: nothing is lost"
        scores, bound = self.maxsim["scores"], self.maxsim["bound"]
        order = "it holds, and says nothing about their order" if bound > 2 * scores else "it says something of order"
        larger = "directions" if self.overlap["mean"] > self.rebuilding["mean"] else "rebuilding"
        return (
            f"the bound is {self.bound / seen:,.1f} times the mean distortion of a pair, {self.bound / most:,.1f} "
            f"times the largest; for MaxSim it is {bound:.1f}, where the scores of a query's documents spread by "
            f"{scores:.2f}: {order}; more of the distortion is of {larger}"
        )


def tables(found: Sequence[Theory]) -> list[Table]:
    """The parts of the bound, and what was observed, as they are read."""
    if not found:
        return []
    parts, seen = [], []
    for one in found:
        name, maxsim = (one.lexicon, one.k), one.maxsim
        errors = one.error["p50"], one.error["largest"]
        directions = one.coherence["p95"], one.coherence["largest"], one.delta["p50"], one.delta["largest"]
        parts.append((*name, one.length, *errors, *directions, *one.bound_parts))
        for what, observed, bound, within, alike in (
            ("two tokens", one.distortion, one.bound, one.within, one.correlation),
            ("two tokens, own bound", one.distortion, one.own_bound["mean"], one.within_own, None),
            ("MaxSim", maxsim["distortion"], maxsim["bound"], maxsim["within"], maxsim["spearman"]),
        ):
            cells = observed["mean"], observed["p95"], observed["largest"], bound, f"{within:.1%}"
            seen.append((*name, what, *cells, shown(alike, ".3f")))
    first = found[0]
    drawn = f"{first.tokens:,} tokens of {first.queries} queries and {first.documents} documents, {first.pairs:,} pairs"
    return [
        Table(
            "what the bound is made of",
            ("lexicon", "k", "R", "e, median", "e", "|<d,d>| 95 %", "largest", "d, median", "d", "2Re+e²", "d|z||z|"),
            tuple(parts),
            f"{drawn}, half of them best matches; R: length of a state; e: error of a rebuilt one; |<d,d>|: between "
            "directions of active latents; d: norm of what is not at right angles; states less the decoder's bias",
        ),
        Table(
            "products of codes against products of states",
            ("lexicon", "k", "of", "off by, mean", "95 %", "largest", "bound", "within", "alike"),
            tuple(seen),
            "; ".join(
                (
                    "own bound: of each pair's own lengths, errors and d",
                    "MaxSim: the bound times a query's tokens, with the d of the pairs that were drawn",
                    "alike: correlation of products, Spearman's of a query's documents",
                    *(f"k {one.k}: {one.reading()}" for one in found),
                )
            ),
        ),
    ]


def theory(
    collection: Collection,
    lexicon: Lexicon,
    encoder: Encoder,
    *,
    ks: Sequence[int],
    pairs: int = TOKEN_PAIRS,
    seed: int = 0,
) -> list[Theory]:
    """The bound and what is observed, for each k, on tokens of some queries and of documents (judged ones first)."""
    few = collection.sampled(documents=TEXTS["document"], queries=TEXTS["query"], seed=seed)
    queries = _encoded(encoder, few.query_texts[: TEXTS["query"]], kind="query")
    documents = _encoded(encoder, few.texts[: TEXTS["document"]], kind="document")
    if not len(queries.values) or not len(documents.values):  # nothing but empty texts
        return []
    coded = [lexicon.codes(states, k=max(ks)) for states in (queries, documents)]
    found = []
    for k in ks:
        own = [RowCodes(one.ids[:, :k], one.values[:, :k], one.offsets) for one in coded]
        found.append(check(lexicon, (queries, documents), (own[0], own[1]), k=k, pairs=pairs, seed=seed))
    return found


def check(
    lexicon: Lexicon,
    states: tuple[States, States],
    codes: tuple[RowCodes, RowCodes],
    *,
    k: int,
    pairs: int = TOKEN_PAIRS,
    seed: int = 0,
) -> Theory:
    """Of given states of queries and of documents and their codes."""
    ours, theirs = (_Side.of(lexicon, one, code) for one, code in zip(states, codes, strict=True))
    dense, sparse = ours.centred @ theirs.centred.T, np.asarray((ours.sparse() @ theirs.sparse().T).todense())
    rows, columns = _drawn(dense, theirs.offsets, pairs=pairs, seed=seed)
    delta, coherence = _directions(lexicon, ours, theirs, rows, columns)
    products, rebuilt = (
        np.einsum("nd,nd->n", left[rows].astype(np.float64), right[columns].astype(np.float64))
        for left, right in ((ours.centred, theirs.centred), (ours.made, theirs.made))
    )
    coded = sparse[rows, columns].astype(np.float64)
    seen = np.abs(products - coded)
    # e and R are over all tokens, so that the bound holds for MaxSim too, as far as d does.
    errors = np.concatenate([ours.errors, theirs.errors])
    lengths = np.concatenate([ours.lengths, theirs.lengths])
    e, r, d = float(errors.max()), float(lengths.max()), float(delta.max())
    parts = (2 * r * e + e * e, d * float(ours.norms.max() * theirs.norms.max()))
    bound = sum(parts)
    e_x, e_y = ours.errors[rows], theirs.errors[columns]
    own = ours.lengths[rows] * e_y + theirs.lengths[columns] * e_x + e_x * e_y
    own = own + delta * ours.norms[rows] * theirs.norms[columns]
    slack = 1e-4 * max(r * r, 1e-12)  # states are in 32 bits
    return Theory(
        lexicon=lexicon.name,
        k=k,
        queries=len(ours.offsets) - 1,
        documents=len(theirs.offsets) - 1,
        tokens=len(ours.centred) + len(theirs.centred),
        pairs=len(rows),
        length=r,
        error=_spread(errors),
        coherence=_spread(coherence),
        delta=_spread(delta),
        distortion=_spread(seen),
        rebuilding=_spread(np.abs(products - rebuilt)),
        overlap=_spread(np.abs(rebuilt - coded)),
        bound=bound,
        bound_parts=parts,
        own_bound=_spread(own),
        within=float((seen <= bound + slack).mean()),
        within_own=float((seen <= own + slack).mean()),
        correlation=correlation(products, coded),
        maxsim=_maxsim(ours, theirs, dense, sparse, bound=bound, slack=slack),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """Tokens of one side, as the lexicon reads them, less the bias."""

    centred: NDArray[np.float32]  # [n, d_in]
    made: NDArray[np.float32]  # [n, d_in]
    ids: NDArray[np.int32]  # [n, k]
    values: NDArray[np.float32]  # [n, k]: z, such that z D is `made`
    offsets: NDArray[np.int64]
    size: int
    errors: NDArray[np.float64]  # [n]: |x - x'|
    lengths: NDArray[np.float64]  # [n]: |x|
    norms: NDArray[np.float64]  # [n]: |z|

    @staticmethod
    def of(lexicon: Lexicon, states: States, codes: RowCodes) -> _Side:
        rows = states.numpy()
        lengths = np.linalg.norm(rows, axis=1).astype(np.float32)
        read = unit(rows) if lexicon.sae.config.unit_states else rows
        made = lexicon.sae.decode(codes, lengths=lengths) - lexicon.sae.b_dec
        values = coefficients(lexicon, codes, lengths)
        centred = read - lexicon.sae.b_dec
        norms = (np.linalg.norm(each.astype(np.float64), axis=1) for each in (centred - made, centred, values))
        return _Side(centred, made, codes.ids, values, codes.offsets, lexicon.token_size, *norms)

    def sparse(self) -> Any:
        from scipy.sparse import csr_matrix

        n, k = self.ids.shape
        return csr_matrix((self.values.ravel(), self.ids.ravel(), np.arange(0, n * k + 1, k)), shape=(n, self.size))


def _encoded(encoder: Encoder, texts: Sequence[str], *, kind: Kind) -> States:
    found = encode(encoder, texts, kind=kind, progress=counter("pairs of tokens", kind=kind, total=len(texts)))
    return States(found.values, np.unique(found.offsets))  # texts without tokens have no pairs


def _drawn(
    dense: NDArray[np.float32], offsets: NDArray[np.int64], *, pairs: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens of queries and of documents: half at random, half each with the best of a random document."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, dense.shape[0], pairs)
    columns = random.integers(0, dense.shape[1], pairs)
    full = np.flatnonzero(np.diff(offsets) > 0)
    for place in range(pairs // 2):
        start, stop = offsets[(document := int(random.choice(full)))], offsets[document + 1]
        columns[place] = start + int(dense[rows[place], start:stop].argmax())
    return rows, columns


def _directions(
    lexicon: Lexicon, ours: _Side, theirs: _Side, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """For each pair the norm of D D^T - 1 on its active latents; and all |<d_u, d_v>| of different ones."""
    directions = lexicon.sae.decoder_rows
    delta, coherence = np.zeros(len(rows)), []
    for start in range(0, len(rows), PAIRS_PER_STEP):
        part = slice(start, start + PAIRS_PER_STEP)
        left, right = ours.ids[rows[part]], theirs.ids[columns[part]]
        gram = np.matmul(directions[left], directions[right].transpose(0, 2, 1))
        active = (ours.values[rows[part]] > 0)[:, :, None] & (theirs.values[columns[part]] > 0)[:, None, :]
        same = left[:, :, None] == right[:, None, :]
        gram = np.where(active, gram - same, 0)
        delta[part] = np.linalg.norm(gram, ord=2, axis=(1, 2))
        coherence.append(np.abs(gram[active & ~same]).astype(np.float32))
    return delta, np.concatenate(coherence)


def _maxsim(
    ours: _Side, theirs: _Side, dense: NDArray[Any], sparse: NDArray[Any], *, bound: float, slack: float
) -> dict[str, Any]:
    counts = np.diff(ours.offsets)
    by_states, by_codes = (_summed(one, ours.offsets, theirs.offsets) for one in (dense, sparse))
    off = np.abs(by_states - by_codes)
    bounds = np.repeat((bound * counts)[:, None], off.shape[1], axis=1)
    return {
        "pairs": int(off.size),
        "tokens": float(counts.mean()),
        "distortion": _spread(off.ravel()),
        "bound": float(bounds.mean()),
        "within": float((off <= bounds + slack * counts[:, None]).mean()),
        "scores": float(by_states.std(axis=1).mean()),
        "spearman": mean(rank_correlation(*rows) for rows in zip(by_states, by_codes, strict=True)),
    }


def _summed(products: NDArray[Any], ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[n_queries, n_documents]: MaxSim from the products of all tokens."""
    best = np.maximum.reduceat(products, theirs[:-1], axis=1).astype(np.float64)
    return np.add.reduceat(best, ours[:-1], axis=0)


def _spread(values: NDArray[Any]) -> Spread:
    if not len(values):
        return {"mean": 0.0, "p50": 0.0, "p95": 0.0, "largest": 0.0}
    middle, high = np.quantile(values, [0.5, 0.95])
    return {"mean": float(values.mean()), "p50": float(middle), "p95": float(high), "largest": float(values.max())}
