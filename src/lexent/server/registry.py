"""The registry of served indexes, by name: opened and warmed up at start, refreshed when other processes write."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lexent import kernel_groups
from lexent.engine import Index
from lexent.errors import InputError, LexentError, NotFoundError
from lexent.indexing.index_names import by_name
from lexent.indexing.manifest import Manifest
from lexent.models import EncoderLike, LexiconLike, load_encoder, load_lexicon
from lexent.server import problems
from lexent.server.audit_log import AuditLog
from lexent.server.encoding import SharedEncoder, SharedLexicon
from lexent.server.metrics import Metrics
from lexent.server.micro_batching import MicroBatcher
from lexent.server.served import ServedIndex
from lexent.server.settings import Limits

WARM_UP_QUERY = "a first query that compiles the kernels"
log = logging.getLogger("lexent.server")


class IndexRegistry:
    """The indexes that a server serves. An encoder or lexicon that several of them use is loaded once."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        limits: Limits,
        metrics: Metrics,
        encoder: EncoderLike = None,
        lexicon: LexiconLike = None,
        trust_encoder: bool = False,
        audit_log: AuditLog | None = None,
    ) -> None:
        if not paths:
            raise InputError("no index was given; name one or more: lexent serve DIR")
        self.paths = by_name(paths)
        for path in self.paths.values():
            Manifest.read(path)  # a folder that is no index is refused before any model is loaded
        self.limits, self.metrics = limits, metrics
        self.ready = False
        self.batcher = MicroBatcher()
        self._given = (encoder, lexicon)
        self._audit_log = audit_log
        self._trust_encoder = trust_encoder or encoder is not None
        self._encoders: dict[str, SharedEncoder] = {}
        self._lexicons: dict[str, SharedLexicon] = {}
        self._served: dict[str, ServedIndex] = {}
        self._refresh_errors: dict[str, str] = {}
        metrics.watch(self)

    @property
    def default(self) -> str:
        """The name of the first index."""
        return next(iter(self.paths))

    def served(self) -> list[ServedIndex]:
        """All indexes that are open."""
        return list(self._served.values())

    def get(self, name: str) -> ServedIndex:
        """The index of that name."""
        if name not in self.paths:
            known = ", ".join(f'"{one}"' for one in self.paths)
            raise NotFoundError(f'no index "{name}" is served here; indexes: {known}')
        if not self.ready:
            raise problems.starting()
        return self._served[name]

    def open(self) -> None:
        """Open and warm up all indexes: models are loaded when this returns."""
        for name, path in self.paths.items():
            log.info("opening %s", name)
            manifest = Manifest.read(path)
            index = Index.open(path, encoder=self._encoder(manifest), lexicon=self._lexicon(manifest))
            served = ServedIndex(name, index, self.batcher, self.limits, self._audit_log)
            log.info("warming up %s", name)
            self._warm(served)
            self._served[name] = served
        self.ready = True
        kinds = {served.searcher().recipe.binary for served in self.served()}
        kernel_groups.prepare(weighted=False in kinds, binary=True in kinds)  # NumPy answers until they are ready

    def refresh(self) -> None:
        """Show what other processes committed. An error is logged once; the last good generation stays in use."""
        for served in self.served():
            try:
                if served.refresh():
                    self.metrics.refreshes.labels(served.name).inc()
                self._refresh_errors.pop(served.name, None)
            except (LexentError, OSError) as error:
                if self._refresh_errors.get(served.name) != str(error):
                    self._refresh_errors[served.name] = str(error)
                    log.warning("%s cannot be refreshed: %s", served.name, error)

    def close(self) -> None:
        """Close all indexes, the micro-batching thread and the audit log."""
        for served in self.served():
            served.close()
        self.batcher.close()
        if self._audit_log is not None:
            self._audit_log.close()

    def _encoder(self, manifest: Manifest) -> SharedEncoder:
        source = self._given[0] or manifest.encoder.source
        if str(source) not in self._encoders:
            encoder = load_encoder(source, trusted=self._trust_encoder)
            self._encoders[str(source)] = SharedEncoder(encoder, self.batcher, observe=self.metrics.encoded)
        return self._encoders[str(source)]

    def _lexicon(self, manifest: Manifest) -> SharedLexicon:
        source = self._given[1] or manifest.lexicon.source
        if str(source) not in self._lexicons:
            self._lexicons[str(source)] = SharedLexicon(load_lexicon(source), self.batcher)
        return self._lexicons[str(source)]

    @staticmethod
    def _warm(served: ServedIndex) -> None:
        """Run once what a first request would otherwise wait for."""
        searcher = served.searcher()
        found = searcher.search_many([WARM_UP_QUERY], k=10)[0]
        for hit in found.hits[:1]:
            hit.explain()
            if searcher.recipe.level == "tokens":
                searcher.coded_documents([hit.position])
            searcher.document_scorer.documents([hit.position])
            searcher.document_scorer.scores(hit.query.ids, hit.query.weights)
        with suppress(NotFoundError):
            served.index.lexicon.find("warm")
