"""Prometheus metrics of a server."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from lexent.server.registry import IndexRegistry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
BATCH_SIZE_BUCKETS = (1, 2, 4, 8, 16, 32)


class Metrics:
    """The counters of one server; two servers in a process do not share them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        count, time = partial(Counter, registry=self.registry), partial(Histogram, registry=self.registry)
        self._requests = count("lexent_requests", "Requests answered.", ["route", "method", "status"])
        self._seconds = time("lexent_request_seconds", "Time to answer.", ["route"], buckets=SECONDS_BUCKETS)
        self.running = Gauge("lexent_requests_running", "Requests that are being answered.", registry=self.registry)
        self._batches = time("lexent_encoded_queries", "Queries encoded together.", buckets=BATCH_SIZE_BUCKETS)
        self._encoding = time("lexent_encoding_seconds", "Time to encode queries.", buckets=SECONDS_BUCKETS)
        self.refreshes = count("lexent_refreshes", "Times that another process's change was taken up.", ["index"])

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count and time a request."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def encoded(self, queries: int, seconds: float) -> None:
        """Count and time a batch of queries."""
        self._batches.observe(queries)
        self._encoding.observe(seconds)

    def watch(self, indexes: IndexRegistry) -> None:
        """Report the sizes of these indexes too."""
        self.registry.register(_Indexes(indexes))

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class _Indexes(Collector):
    """Sizes of the indexes, read when metrics are scraped."""

    def __init__(self, indexes: IndexRegistry) -> None:
        self._indexes = indexes

    def collect(self) -> Iterable[Metric]:
        gauges = {
            "documents": GaugeMetricFamily("lexent_documents", "Documents of an index.", labels=["index"]),
            "bytes": GaugeMetricFamily("lexent_index_bytes", "Bytes of an index on disk.", labels=["index"]),
            "generation": GaugeMetricFamily("lexent_generation", "Changes to an index so far.", labels=["index"]),
        }
        for served in self._indexes.served():
            facts = served.index.info()
            for name, gauge in gauges.items():
                gauge.add_metric([served.name], facts[name])
        return gauges.values()
