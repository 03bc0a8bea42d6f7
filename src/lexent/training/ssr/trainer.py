"""Training codes for retrieval (SSR): the loop over pairs, after reconstruction was learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from lexent.encoders import Encoder
from lexent.errors import InputError
from lexent.sae.autoencoder import SparseAutoencoder
from lexent.training.loop import PairRun, model_tensors
from lexent.training.pair_states import Side, StateSource, TextStates, source, trainable
from lexent.training.pairs import PairBatch, Pairs
from lexent.training.reconstruction.trainer import schedule
from lexent.training.ssr.config import RetrievalConfig
from lexent.training.ssr.maxsim import TextCodes, maxsim
from lexent.training.ssr.model import RetrievalModel, Unsupervised, divergence, document_contrast, teacher_scores, unit
from lexent.training.ssr.query_weights import QueryWeights


@dataclass(frozen=True, slots=True)
class PairProgress:
    """Where a run over pairs is."""

    done: float  # share of the run, 0 to 1
    step: int
    pairs: int
    loss: float  # of tokens, all terms
    supervised: float  # cross-entropy of a query's own document among those of the batch; with a teacher, its share too
    accuracy: float  # share of the queries whose own document has the highest score of the batch
    fvu: float
    dead: float
    whole_supervised: float
    whole_accuracy: float
    whole_fvu: float
    rate: float  # pairs a second since the run began or went on

    def __str__(self) -> str:
        both = f" and {self.whole_accuracy:.1%}" if self.whole_fvu else ""
        fit = f"accuracy {self.accuracy:.1%}{both}, FVU {self.fvu:.3f}"
        return f"{fit}, dead {self.dead:.1%}, {self.rate:,.0f} pairs/s"


class Coder:
    """One autoencoder of a run: of tokens, or of whole texts."""

    def __init__(self, start: SparseAutoencoder, *, k: int, gains: bool, device: torch.device) -> None:
        config = start.config
        if config.architecture != "topk":
            raise InputError(f"retrieval training starts from a topk autoencoder; given: {config.architecture}")
        self.start, self.k, self.scale = start, k, config.activation_scale
        self.model = RetrievalModel(config.d_in, config.d_sae, tied=config.tied, seed=0, gains=gains)
        self.model.take(start)
        if self.model.liking is not None and start.query_gain is not None:
            known = torch.from_numpy(start.query_gain).clamp(1e-3, 2 - 1e-3)
            self.model.liking.data.copy_(torch.atanh(known - 1))
        self.model.to(device)
        self.last_fired = torch.zeros(config.d_sae, dtype=torch.long, device=device)  # the step
        self.dead = torch.empty(0, dtype=torch.long, device=device)

    def prepared(self, rows: torch.Tensor) -> torch.Tensor:
        """States as the autoencoder was trained on them."""
        if self.start.config.unit_states:
            rows = torch.nn.functional.normalize(rows, dim=1)
        return rows * self.scale

    def count(self, ids: torch.Tensor, values: torch.Tensor, *, step: int, dead_after: int) -> None:
        """Note what fired: once a step, at k."""
        now = (values > 0).long() * step
        self.last_fired.scatter_reduce_(0, ids.flatten(), now.flatten(), "amax")
        if step % 10 == 0:  # finding the dead waits for the GPU, so not at every step
            self.dead = torch.nonzero(self.last_fired < step - dead_after).flatten()

    def exported(self, bits: int) -> SparseAutoencoder:
        """The autoencoder as it is saved."""
        config = self.start.config
        sae = self.model.exported(
            k=self.k,
            scale=self.scale,
            unit_states=config.unit_states,
            mean_length=config.mean_length,
            query_gain=self.model.query_gain(),
        )
        return sae.quantised() if bits == 8 else sae


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step made of one autoencoder."""

    total: torch.Tensor
    supervised: torch.Tensor
    scores: torch.Tensor
    unsupervised: Unsupervised
    ids: torch.Tensor
    values: torch.Tensor


class PairTrainer(PairRun[PairProgress]):
    """A run over pairs that trains autoencoders for MaxSim."""

    config: RetrievalConfig

    def __init__(
        self,
        encoder: Encoder,
        pairs: Pairs,
        config: RetrievalConfig,
        *,
        tokens: SparseAutoencoder,
        whole: SparseAutoencoder | None = None,
        folder: Path | None = None,
    ) -> None:
        """Set up the run, or continue it from its checkpoint.

        tokens, whole: where the autoencoders start. folder: where checkpoints and metrics go; an existing checkpoint of
        the same run is continued.
        """
        super().__init__(encoder, pairs, config, progress=PairProgress, folder=folder)
        self.tokens = Coder(tokens, k=config.k, gains=config.gains, device=self.device)
        self.whole = Coder(whole, k=config.whole_k, gains=False, device=self.device) if whole is not None else None
        self.coders = {"tokens": self.tokens, **({"whole": self.whole} if self.whole is not None else {})}
        self.learner = None if config.freeze else trainable(encoder, device=self.device)
        self.weights = QueryWeights(
            encoder, pairs, config, size=tokens.config.d_sae, mean_length=tokens.config.mean_length
        )
        groups = [(coder.model.autoencoder(), config.lr, config.weight_decay) for coder in self.coders.values()]
        if self.tokens.model.liking is not None:
            groups.append(([self.tokens.model.liking], config.gain_lr, 0.0))
        if self.learner is not None:
            groups.append((list(self.learner.parameters()), config.encoder_lr, config.weight_decay))
        self.optimizer = self.adamw(groups)
        self.resume()

    # --- what a checkpoint holds ---------------------------------------------------------------------------------

    def identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued."""
        return super().identity() | {f"start_{name}": coder.start.hash() for name, coder in self.coders.items()}

    def weights_by_name(self) -> dict[str, torch.Tensor]:
        """The tensors that are trained."""
        models = {name: coder.model for name, coder in self.coders.items()}
        models |= {"encoder": self.learner} if self.learner is not None else {}
        return {key: tensor for name, model in models.items() for key, tensor in model_tensors(model, name).items()}

    def attributes(self) -> dict[str, tuple[object, str]]:
        """When each latent fired last, the dead ones, and idf."""
        coders = self.coders.items()
        found = {f"{name}.{place}": (coder, name) for place, coder in coders for name in ("last_fired", "dead")}
        return {**found, "idf": (self.weights, "idf")}

    # --- the loop ------------------------------------------------------------------------------------------------

    def advance(self) -> Callable[[float], PairProgress]:
        """One step; the result reports progress for a given share of the run."""
        return partial(self._progress, *self._step())

    def _step(self) -> tuple[dict[str, Outcome], PairBatch]:
        config, share = self.config, self.step / self.steps
        if config.idf and self.step % config.idf_every == 0:
            self.weights.count(self._document_codes)
        batch = self.batches.at(self.step)
        queries, documents = self._states(batch)
        found = {name: self._outcome(name, queries, documents, batch) for name in self.coders}
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * schedule(share, warm_up=config.warm_up_of(self.steps))
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(torch.stack([outcome.total for outcome in found.values()]).sum())
        for coder in self.coders.values():
            coder.model.remove_parallel_gradient()
            torch.nn.utils.clip_grad_norm_(coder.model.autoencoder(), config.clip)
        if self.learner is not None:
            torch.nn.utils.clip_grad_norm_(self.learner.parameters(), config.clip)
        self.optimizer.step()
        self.step += 1
        for name, coder in self.coders.items():
            coder.model.normalise_decoder()  # after the step: AdamW moves the rows off the sphere again
            coder.count(found[name].ids, found[name].values.detach(), step=self.step, dead_after=config.dead_after)
        return found, batch

    def _outcome(self, name: str, queries: TextStates, documents: TextStates, batch: PairBatch) -> Outcome:
        """All losses of one autoencoder on one batch."""
        config, coder = self.config, self.coders[name]
        of_tokens = name == "tokens"
        autocast = self.autocast and of_tokens  # whole texts are few: exact ones cost nothing
        k = config.k_at(self.step / self.steps) if of_tokens else coder.k
        rows = [side.rows if of_tokens else side.whole for side in (queries, documents)]
        x = coder.prepared(torch.cat(rows))
        if of_tokens and config.idf and not len(self.weights.idf):
            self.weights.count(self._document_codes)
        with torch.set_grad_enabled(torch.is_grad_enabled() and config.gamma > 0):
            ids, values = coder.model.code(x, k, autocast=autocast)
            compared = unit(values)
            if of_tokens:
                n = int(queries.counts.sum())
                weights = self.weights.of(ids[:n], queries, batch, gain=coder.model.query_gain())
                compared = torch.cat([compared[:n] * weights, compared[n:]])
            scores = self._scores(coder, ids, compared, queries, documents)
            target = torch.from_numpy(batch.target).to(self.device)
            excluded = torch.from_numpy(batch.excluded).to(self.device)
            temperature = config.temperature if of_tokens else config.whole_temperature
            supervised = document_contrast(scores / temperature, target, excluded)
            if of_tokens and config.teacher:
                teacher = teacher_scores(queries, documents, self.weights.of_tokens(queries, batch))
                followed = divergence(scores / temperature, teacher / config.teacher_temperature, excluded)
                supervised = (1 - config.teacher) * supervised + config.teacher * followed
        drawn = np.random.default_rng([config.seed, 2, self.step]).permutation(len(x))[: config.rebuilt]
        # An encoder that is trained is trained by the pairs: the autoencoder follows it, not it the autoencoder.
        sample = x.detach()[torch.from_numpy(drawn).to(self.device)]
        unsupervised = coder.model.unsupervised(sample, k=k, dead=coder.dead, weights=config, autocast=autocast)
        total = unsupervised.total + config.gamma * supervised
        return Outcome(total, supervised.detach(), scores.detach(), unsupervised, ids, values)

    def _scores(
        self, coder: Coder, ids: torch.Tensor, values: torch.Tensor, queries: TextStates, documents: TextStates
    ) -> torch.Tensor:
        """float[n_queries, n_documents]: MaxSim of tokens, or the cosine of whole texts."""
        if coder is not self.tokens:
            dense, n = coder.model.dense(ids, values), len(queries.counts)
            return dense[:n] @ dense[n:].t()
        n = int(queries.counts.sum())
        ours, theirs = (
            TextCodes.of(ids[rows], values[rows], counts=torch.from_numpy(side.counts).to(self.device))
            for rows, side in ((slice(0, n), queries), (slice(n, None), documents))
        )
        return maxsim(ours, theirs, size=len(coder.model.b_enc))

    @torch.no_grad()
    def _document_codes(self, places: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor, NDArray[np.int64]]:
        """The latents and activations of documents' tokens, and how many tokens each has."""
        states = self.sources[1](places)
        rows = self.tokens.prepared(states.rows)
        return *self.tokens.model.code(rows, self.config.k, autocast=self.autocast), states.counts

    @cached_property
    def sources(self) -> tuple[StateSource, StateSource]:
        """Of the states of queries and of documents."""
        config, whole = self.config, self.whole is not None or self.config.teacher > 0
        queries = Side(self.pairs.queries, "query", config.query_tokens, config.specials, whole)
        documents = Side(self.pairs.documents, "document", config.document_tokens, config.specials, whole)
        given: dict[str, Any] = {"learner": self.learner, "device": self.device, "autocast": self.autocast}
        return source(self.encoder, queries, **given), source(self.encoder, documents, **given)

    def _states(self, batch: PairBatch) -> tuple[TextStates, TextStates]:
        queries, documents = self.sources
        return queries(batch.queries), documents(batch.documents)

    def _progress(self, found: dict[str, Outcome], batch: PairBatch, rate: float) -> PairProgress:
        tokens, whole = found["tokens"], found.get("whole")
        return PairProgress(
            done=self.step / self.steps,
            step=self.step,
            pairs=self.step * self.batches.batch,
            loss=float(tokens.total.detach()),
            supervised=float(tokens.supervised),
            accuracy=accuracy(tokens.scores, batch),
            fvu=float(tokens.unsupervised.fvu),
            dead=len(self.tokens.dead) / len(self.tokens.last_fired),
            whole_supervised=float(whole.supervised) if whole else 0.0,
            whole_accuracy=accuracy(whole.scores, batch) if whole else 0.0,
            whole_fvu=float(whole.unsupervised.fvu) if whole else 0.0,
            rate=rate,
        )

    def result(self, *, bits: Literal[8, 32] = 32) -> tuple[SparseAutoencoder, SparseAutoencoder | None]:
        """The autoencoders of tokens and of whole texts, in the units of the encoder."""
        return self.tokens.exported(bits), self.whole.exported(bits) if self.whole is not None else None


def accuracy(scores: torch.Tensor, batch: PairBatch) -> float:
    """The share of the queries whose own document has the highest score of the batch; ties are lost."""
    excluded = torch.from_numpy(batch.excluded).to(scores.device)
    target = torch.from_numpy(batch.target).to(scores.device)[:, None]
    own = scores.gather(1, target)
    others = scores.masked_fill(excluded, -torch.inf).scatter(1, target, -torch.inf)
    return float((others.max(dim=1).values < own[:, 0]).float().mean())
