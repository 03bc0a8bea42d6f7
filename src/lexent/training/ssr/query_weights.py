"""What the tokens and latents of a query count in training: the same as in a search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from lexent.encoders import Encoder
from lexent.function_words import token_weights
from lexent.training.pair_states import TextStates
from lexent.training.pairs import PairBatch, Pairs
from lexent.training.ssr.config import RetrievalConfig

DOCUMENTS_PER_STEP = 100
"""Documents that are coded at a time."""

Code = Callable[["NDArray[np.int64]"], tuple[torch.Tensor, torch.Tensor, "NDArray[np.int64]"]]
"""Gives the latents and activations [n_tokens, k] of some documents, and how many tokens each has."""


class QueryWeights:
    """Weights by function words, by the length of a token's state, by learned gains and by idf."""

    def __init__(
        self, encoder: Encoder, pairs: Pairs, config: RetrievalConfig, *, size: int, mean_length: float
    ) -> None:
        """size: number of latents. mean_length: of token states; 0 where lengths say nothing."""
        self.encoder, self.pairs, self.config, self.size, self.mean_length = encoder, pairs, config, size, mean_length
        self.idf = torch.empty(0)
        """float[n_sources, d_sae] to the configured power, once it is counted; part of a checkpoint."""
        self._by_query: dict[int, NDArray[np.float32]] = {}

    def of(
        self, ids: torch.Tensor, queries: TextStates, batch: PairBatch, *, gain: torch.Tensor | None
    ) -> torch.Tensor:
        """float[n_tokens, k]: what each latent of each token of a batch's queries counts."""
        config, device = self.config, ids.device
        found = self.of_tokens(queries, batch)[:, None]
        if gain is not None:
            found = found * F.embedding(ids, gain[:, None]).squeeze(-1)
        if config.idf:
            source = torch.from_numpy(np.repeat(batch.source, queries.counts)).to(device)
            found = found * self.idf[source[:, None], ids]
        return found.expand(ids.shape)

    def of_tokens(self, queries: TextStates, batch: PairBatch) -> torch.Tensor:
        """float[n_tokens]: what each token counts, whatever its latents."""
        config, device = self.config, queries.rows.device
        found = torch.ones(len(queries.rows), device=device)
        if config.function_words != 1:
            sides = zip(batch.queries.tolist(), queries.counts.tolist(), strict=True)
            parts = [self._function_word_weights(place, count) for place, count in sides]
            found = found * torch.from_numpy(np.concatenate(parts)).to(device)
        if config.emphasis and self.mean_length > 0:
            found = found * (queries.rows.detach().norm(dim=1) / self.mean_length) ** config.emphasis
        return found

    def _function_word_weights(self, place: int, count: int) -> NDArray[np.float32]:
        """float32[count]: the weights of a query's first tokens by whether they are function words."""
        if place not in self._by_query:
            text = self.pairs.queries[place]
            tokens = self.encoder.tokenize([text], kind="query", specials=self.config.specials)[0]
            self._by_query[place] = token_weights(tokens, self.config.function_words)
        found = self._by_query[place][:count]
        return np.pad(found, (0, count - len(found)), constant_values=1.0)

    def count(self, code: Code) -> None:
        """Count idf among some documents of each source, with the codes as they are now. Its mean becomes 1."""
        config, found = self.config, []
        for number in range(int(self.pairs.source.max()) + 1):
            own = np.unique(self.pairs.positive[self.pairs.source == number])
            own = np.random.default_rng([config.seed, 3, number]).permutation(own)[: config.idf_documents]
            found.append(self._idf(own, code))
        self.idf = torch.stack(found)

    def _idf(self, places: NDArray[np.int64], code: Code) -> torch.Tensor:
        df = torch.zeros(self.size)
        for start in range(0, len(places), DOCUMENTS_PER_STEP):
            ids, values, counts = code(places[start : start + DOCUMENTS_PER_STEP])
            text = torch.from_numpy(np.repeat(np.arange(len(counts)), counts)).to(ids.device)
            pairs = torch.unique((text[:, None] * self.size + ids)[values > 0])
            df = df.to(ids.device) + torch.bincount(pairs % self.size, minlength=self.size)
        idf = torch.log1p((len(places) - df + 0.5) / (df + 0.5))
        return (idf / idf.mean()) ** self.config.idf
