"""Training winner-take-all codes (UHD): units and encoder together, on pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from lexent.encoders import fine_tuning
from lexent.encoders.buckets import Copy
from lexent.encoders.sentence import SentenceEncoder, half_precision
from lexent.errors import InputError
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.training.loop import PairRun, model_tensors
from lexent.training.pair_states import checked_counts, tokenised
from lexent.training.pairs import PairBatch, Pairs
from lexent.training.ssr.trainer import accuracy
from lexent.training.uhd.config import WinnerConfig
from lexent.training.uhd.model import Bucket, Scores, active, capped, exported, joined, loss_of, max_pooled
from lexent.types import Kind


@dataclass(frozen=True, slots=True)
class WinnerProgress:
    """Where a run is."""

    done: float  # share of the run, 0 to 1
    step: int
    pairs: int
    loss: float
    accuracy: float  # share of the queries whose own document has the highest score of the batch
    binary_accuracy: float  # the same by counts of shared units
    dead: float
    rate: float  # pairs a second since the run began or went on

    def __str__(self) -> str:
        both = f"accuracy {self.accuracy:.1%}, by counts {self.binary_accuracy:.1%}"
        return f"{both}, dead {self.dead:.1%}, {self.rate:,.0f} pairs/s"


class Pooled(NamedTuple):
    """The texts of one side after max-pooling, in one bucket."""

    values: torch.Tensor  # float[n_texts, d_sae]
    ids: torch.Tensor  # int64[n_tokens, k], the winners
    states: torch.Tensor  # float[n_tokens, d_in], detached


class WinnerTrainer(PairRun[WinnerProgress]):
    """A run over pairs that trains the units of one or more buckets."""

    encoder: SentenceEncoder
    config: WinnerConfig

    def __init__(
        self, encoder: SentenceEncoder, pairs: Pairs, config: WinnerConfig, *, folder: Path | None = None
    ) -> None:
        """folder: where checkpoints and metrics go; an existing checkpoint of the same run is continued."""
        super().__init__(encoder, pairs, config, progress=WinnerProgress, folder=folder)
        self.autocast = half_precision(self.device) is not None
        self.layers = resolved(encoder, config.layers)
        if config.shallow and len(self.layers) > 1:
            raise InputError("a shallow copy of the encoder has one bucket; leave --shallow or --joint out")
        depth, top = resolved(encoder, (-1,))[0], max(self.layers)
        self.without = fine_tuning.middle(depth, top) if config.shallow else ()
        self.learner = fine_tuning.learner(
            encoder.model, rank=config.rank, seed=config.seed, device=self.device, last=top, without=self.without
        )
        width = int(self.learner[0].auto_model.config.hidden_size)
        self.buckets = [Bucket(width, config, seed=config.seed + place) for place in range(len(self.layers))]
        self.model = torch.nn.ModuleList(self.buckets).to(self.device)
        self.last_won = torch.zeros(len(self.layers), config.d_sae, dtype=torch.long, device=self.device)  # the step
        groups = [(list(self.model.parameters()), config.lr, config.weight_decay)]
        if own := fine_tuning.trained_parameters(self.learner):
            groups.append((own, config.encoder_lr, config.weight_decay))
        self.optimizer = self.adamw(groups)
        if not self.resume() and config.start == "states":
            self._begin_at_states()

    def weights_by_name(self) -> dict[str, torch.Tensor]:
        """The tensors that are trained."""
        learned = {f"encoder.{name}": one for name, one in self.learner.named_parameters() if one.requires_grad}
        return model_tensors(self.model, "buckets") | learned

    def attributes(self) -> dict[str, tuple[object, str]]:
        """When each unit won last."""
        return {"last_won": (self, "last_won")}

    def advance(self) -> Callable[[float], WinnerProgress]:
        """One step; the result reports progress for a given share of the run."""
        return partial(self._progress, *self._step())

    def _step(self) -> tuple[torch.Tensor, Scores, PairBatch]:
        config, share = self.config, self.step / self.steps
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * linear(share, warm_up=config.warm_up_of(self.steps))
        batch = self.batches.at(self.step)
        queries = self.pooled(self.pairs.queries, batch.queries, "query")
        documents = self.pooled(self.pairs.documents, batch.documents, "document")
        scores = self.scores(queries, documents)
        loss = loss_of(scores, batch, config)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if config.clip is not None:
            for group in self.optimizer.param_groups:
                torch.nn.utils.clip_grad_norm_(group["params"], config.clip)
        self.optimizer.step()
        self.step += 1
        for place, bucket in enumerate(self.buckets):
            bucket.restrain()
            won = torch.cat([queries[place].ids.flatten(), documents[place].ids.flatten()])
            self.last_won[place, won] = self.step
            if config.boost:
                wins = torch.bincount(won, minlength=config.d_sae)
                typical = documents[place].values.detach().amax(dim=1).mean()
                bucket.boost(wins, step=config.boost * typical)
        if config.revive_every and self.step % config.revive_every == 0 and share < 0.8:
            self._revive([side.states for side in documents])
        return loss.detach(), Scores(scores.real.detach(), scores.binary.detach()), batch

    def pooled(self, texts: Any, places: NDArray[np.int64], kind: Kind) -> list[Pooled]:
        """Texts by number through the encoder and every bucket."""
        states, owners = self._states([texts[place] for place in places], kind)
        found = []
        size = self.config.d_sae
        k = self.config.k if kind == "document" else min(self.config.query_k or self.config.k, self.config.k)
        for bucket, rows in zip(self.buckets, states, strict=True):
            ids, values = bucket(rows, k=k, half=self.autocast)
            found.append(Pooled(max_pooled(ids, values, owners, texts=len(places), size=size), ids, rows.detach()))
        return found

    def _states(self, texts: list[str], kind: Kind) -> tuple[list[torch.Tensor], torch.Tensor]:
        """The states of all tokens in each layer, and which text each is of."""
        limit = self.config.query_tokens if kind == "query" else self.config.document_tokens
        prompted = [self.encoder.prompts[kind] + text for text in texts]
        most = min(limit, self.encoder.max_tokens)
        given: dict[str, Any] = {"limit": most, "specials": self.config.specials, "device": self.device}
        inputs, kept = tokenised(self.learner.tokenizer, prompted, **given)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            layers = self.learner[0].auto_model(**inputs, output_hidden_states=True).hidden_states
        found = [layers[layer].float()[kept] for layer in self.layers]
        checked_counts(found, kept, texts, encoder=self.encoder.id)
        return found, torch.arange(len(texts), device=self.device).repeat_interleave(kept.sum(dim=1))

    def scores(self, queries: list[Pooled], documents: list[Pooled]) -> Scores:
        """Cosines of queries and documents, and cosines of which units are active: the mean over the buckets."""
        real, binary = [], []
        for ours, theirs in zip(queries, documents, strict=True):
            q = capped(ours.values, self.config.query_cap)
            d = capped(theirs.values, self.config.document_cap)
            real.append(F.normalize(q, dim=1) @ F.normalize(d, dim=1).t())
            on_q, on_d = active(q), active(d)
            lengths = on_q.detach().sum(dim=1)[:, None] * on_d.detach().sum(dim=1)[None, :]
            binary.append(on_q @ on_d.t() / lengths.clamp_min(1).sqrt())
        return Scores(torch.stack(real).mean(dim=0), torch.stack(binary).mean(dim=0))

    @torch.no_grad()
    def _begin_at_states(self) -> None:
        """Every unit at the state of a token of a document, drawn at random."""
        draw = np.random.default_rng([self.config.seed, 5])
        order = draw.permutation(len(self.pairs.documents))
        wanted, have = self.config.d_sae, 0
        parts: list[list[torch.Tensor]] = [[] for _ in self.layers]
        for start in range(0, len(order), 256):
            states, _ = self._states([self.pairs.documents[place] for place in order[start : start + 256]], "document")
            for held, rows in zip(parts, states, strict=True):
                held.append(rows)
            have += len(states[0])
            if have >= 2 * wanted:
                break
        for bucket, held in zip(self.buckets, parts, strict=True):
            rows = torch.cat(held)
            chosen = torch.from_numpy(draw.integers(0, len(rows), wanted)).to(self.device)
            bucket.begin_at(rows[chosen], torch.arange(wanted, device=self.device), centre=rows.mean(dim=0))

    @torch.no_grad()
    def _revive(self, states: list[torch.Tensor]) -> None:
        """Units that have not won for long begin anew at the states of tokens, and the optimiser forgets them."""
        for place, (bucket, rows) in enumerate(zip(self.buckets, states, strict=True)):
            dead = torch.nonzero(self.last_won[place] < self.step - self.config.dead_after).flatten()
            if not len(dead):
                continue
            draw = np.random.default_rng([self.config.seed, 6, self.step, place])
            chosen = torch.from_numpy(draw.integers(0, len(rows), len(dead))).to(self.device)
            bucket.begin_at(rows[chosen], dead, centre=rows.mean(dim=0))
            self.last_won[place, dead] = self.step
            for parameter in bucket.parameters():
                for name in ("exp_avg", "exp_avg_sq"):
                    if name in self.optimizer.state.get(parameter, {}):
                        self.optimizer.state[parameter][name][dead] = 0

    def _progress(self, loss: torch.Tensor, scores: Scores, batch: PairBatch, rate: float) -> WinnerProgress:
        dead = self.last_won < self.step - self.config.dead_after
        return WinnerProgress(
            done=self.step / self.steps,
            step=self.step,
            pairs=self.step * self.batches.batch,
            loss=float(loss),
            accuracy=accuracy(scores.real, batch),
            binary_accuracy=accuracy(scores.binary, batch),
            dead=float(dead.float().mean()),
            rate=rate,
        )

    def result(self, *, bits: int = 32) -> tuple[SparseAutoencoder, Copy]:
        """The units of all buckets, and the copy of the encoder that they read."""
        units = joined([exported(bucket, self.config) for bucket in self.buckets])
        changes = fine_tuning.changes(self.learner) if self.config.rank != 0 else {}
        found = {name: tensor.numpy() for name, tensor in changes.items()}
        return units.quantised() if bits == 8 else units, Copy(self.layers, found, self.without)


def resolved(encoder: SentenceEncoder, layers: tuple[int, ...]) -> tuple[int, ...]:
    """Layers counted from the first; negative ones are counted from the last."""
    if not hasattr(encoder, "model") or not hasattr(encoder.model[0], "auto_model"):
        raise InputError(f'the encoder "{encoder.id}" has no layers to read; give a sentence-transformers model')
    last = int(encoder.model[0].auto_model.config.num_hidden_layers)
    found = tuple(layer if layer >= 0 else last + 1 + layer for layer in layers)
    if any(not 0 <= layer <= last for layer in found) or len(set(found)) < len(found):
        raise InputError(f'layers of "{encoder.id}" are {list(layers)}; allowed: different ones from 0 to {last}')
    return found


def linear(share: float, *, warm_up: float) -> float:
    """The learning rate's share of its peak: linear warm-up, then linear decay to 0."""
    return max(share, 1e-4) / warm_up if share < warm_up else (1 - share) / (1 - warm_up)
