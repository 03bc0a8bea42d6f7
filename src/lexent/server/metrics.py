"""What is counted and timed, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from lexent.server.shelf import Shelf

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
TIMES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32)


class Metrics:
    """One registry a server, so that two servers in one process do not share their counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "lexent_requests", "Requests answered.", ["route", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "lexent_request_seconds", "Time to answer.", ["route"], buckets=TIMES, registry=self.registry
        )
        self.running = Gauge("lexent_requests_running", "Requests that are being answered.", registry=self.registry)
        self._batches = Histogram(
            "lexent_encoded_queries", "Queries that were encoded together.", buckets=SIZES, registry=self.registry
        )
        self._encoding = Histogram(
            "lexent_encoding_seconds", "Time to encode a batch of queries.", buckets=TIMES, registry=self.registry
        )
        self.refreshes = Counter(
            "lexent_refreshes",
            "Times that another process's change was taken up.",
            ["index"],
            registry=self.registry,
        )

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def encoded(self, queries: int, seconds: float) -> None:
        self._batches.observe(queries)
        self._encoding.observe(seconds)

    def watch(self, shelf: Shelf) -> None:
        self.registry.register(_Indexes(shelf))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Indexes(Collector):
    """The sizes of the indexes, read when they are asked for."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def collect(self) -> Iterable[Metric]:
        documents = GaugeMetricFamily("lexent_documents", "Documents of an index.", labels=["index"])
        size = GaugeMetricFamily("lexent_index_bytes", "Bytes of an index on disk.", labels=["index"])
        generation = GaugeMetricFamily("lexent_generation", "Changes to an index so far.", labels=["index"])
        for served in self._shelf.served():
            facts = served.index.info()
            documents.add_metric([served.name], facts["documents"])
            size.add_metric([served.name], facts["bytes"])
            generation.add_metric([served.name], facts["generation"])
        return [documents, size, generation]
