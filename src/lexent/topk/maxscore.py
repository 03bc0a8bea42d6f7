"""Top-k of one chunk by MaxScore: accumulate the essential posting lists, then probe the others for the survivors.

Lists are accumulated whole, those with the highest upper bound for their length first, until the upper bounds of the
rest sum to a share of the threshold. Documents that can still reach the threshold are probed in the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexent.indexing.postings.descriptor import ENTRIES
from lexent.jit import njit
from lexent.topk import upper_bounds
from lexent.topk.posting_lists import accumulate, collect_candidates, score_candidates
from lexent.topk.workspace import DAMAGED, THRESHOLD, Chunk, QueryTerms, Workspace

RESIDUAL_SHARE = 0.5
"""Stop accumulating once the rest could add this share of the threshold. A higher share reads less and probes more."""
MAX_CANDIDATES = 400
"""With more candidates than this, and than 4 k, more lists are accumulated."""


@njit(cache=True, nogil=True)
def search(
    chunk: Chunk,
    terms: QueryTerms,
    live: NDArray[np.bool_],
    k: int,
    state: NDArray[np.int64],
    workspace: Workspace,
) -> int:
    """Finds the documents of a chunk that may be among the k best; returns how many, or DAMAGED.

    Documents and exact scores are left in the workspace's candidates. Raises the threshold in the state.
    """
    n = len(terms.upper_bounds)
    done = 0
    share = RESIDUAL_SHARE
    n_candidates = np.int64(0)
    n_documents = chunk.n_documents
    order = np.argsort(-terms.upper_bounds / terms.descriptors[:, ENTRIES])
    residual = suffix_sums(terms.upper_bounds[order])
    n_read, next_check = 0, 2 * n_documents
    while True:
        while done < n and not (state[THRESHOLD] > 1 and residual[done] <= share * state[THRESHOLD]):
            descriptor = terms.descriptors[order[done]]
            if accumulate(chunk, descriptor, terms.weights[order[done]], workspace) == DAMAGED:
                workspace.accumulators[:] = 0
                return DAMAGED
            n_read += descriptor[ENTRIES]
            done += 1
            if len(live) == 0 and n_read >= next_check:
                next_check = n_read + n_read // 2
                state[THRESHOLD] = max(state[THRESHOLD], _reached_threshold(n_documents, k, workspace))
        n_candidates = collect_candidates(max(state[THRESHOLD] - residual[done], 1), n_documents, live, workspace)
        if n_candidates <= max(MAX_CANDIDATES, 4 * k) or done == n:
            break
        share /= 2
    workspace.accumulators[:] = 0
    rest = order[done:]
    rest[:] = rest[np.argsort(-terms.upper_bounds[rest])]
    required = max(state[THRESHOLD], 1) - suffix_sums(terms.upper_bounds[rest])[1:]
    return score_candidates(
        chunk, terms, rest, np.full(len(rest), -1), required, upper_bounds.no_bounds(), n_candidates, workspace
    )


@njit(cache=True, nogil=True)
def suffix_sums(upper_bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n + 1]: the sum of the upper bounds from each place on."""
    sums = np.zeros(len(upper_bounds) + 1, np.int64)
    for place in range(len(upper_bounds) - 1, -1, -1):
        sums[place] = sums[place + 1] + upper_bounds[place]
    return sums


@njit(cache=True, nogil=True)
def _reached_threshold(n_documents: int, k: int, workspace: Workspace) -> int:
    """A score that k documents have reached already: the k-th highest of the maxima of each 8 neighbours."""
    n_blocks = (n_documents + 7) // 8
    if n_blocks < k:
        return 0
    maxima = np.empty(n_blocks, np.int32)
    for block in range(n_blocks):
        score = workspace.accumulators[8 * block]
        for document in range(8 * block + 1, 8 * block + 8):
            score = max(score, workspace.accumulators[document])
        maxima[block] = score
    return np.partition(maxima, n_blocks - k)[n_blocks - k]
