"""Metrics of the gateway for Prometheus. Needs the extra `metrics`.

Every label comes from the route file or is limited in number: requests for models that do not exist
create no series.
"""

from __future__ import annotations

import os
from collections import Counter as Counts
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from streamlib.gateway.watch.observer import AccessRefusal, Exchange, Observer
from streamlib_parsers.errors import ErrorInfo

MODELS: Final = 100
"""Limit of models named by clients that have a label of their own; others share `OTHER`."""

OTHER: Final = "other"

SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of prometheus-client: folder where several workers write their metrics."""

LABELS: Final = ("route", "model", "client")

FIRST_TOKEN_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 40, 80)
"""Upper bounds in seconds; reasoning models need tens of seconds."""

GAP_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds in seconds; a stream has 20 to 200 reads a second."""


class Metrics(Observer):
    """Counts requests in a Prometheus registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        """Contains only the metrics of the gateway; an application may combine it with its own."""
        self._models: set[str] = set()
        """Models that clients chose by name and that have responded with output."""
        self._open: dict[str, Gauge] = {}
        """Request id -> the gauge that counts it while it is open."""
        self._gaps: dict[str, Histogram] = {}
        """Request id -> the histogram of its gaps, so that it is not looked up for each read."""
        self._requests = Counter(
            "streamlib_gateway_requests",
            "Requests that ended, by operation, HTTP status and kind of error.",
            (*LABELS, "operation", "status", "error"),
            registry=self.registry,
        )
        self._tokens = Counter(
            "streamlib_gateway_tokens",
            "Tokens as providers report them: input (cached ones included), cached, output. The "
            "output of a response that ended early is estimated.",
            (*LABELS, "kind"),
            registry=self.registry,
        )
        self._first_token = Histogram(
            "streamlib_gateway_first_token_seconds",
            "Seconds from the arrival of a request to the first output of a model.",
            LABELS,
            buckets=FIRST_TOKEN_BUCKETS,
            registry=self.registry,
        )
        self._gap = Histogram(
            "streamlib_gateway_gap_seconds",
            "Seconds between two reads with output.",
            LABELS,
            buckets=GAP_BUCKETS,
            registry=self.registry,
        )
        self._upstream_errors = Counter(
            "streamlib_gateway_upstream_errors",
            "Failures of targets by kind, including those that a fallback made up for.",
            (*LABELS, "kind"),
            registry=self.registry,
        )
        self._changes = Counter(
            "streamlib_gateway_report_changes",
            "Changes and losses between the two wires, by action.",
            (*LABELS, "action"),
            registry=self.registry,
        )
        self._refusals = Counter(
            "streamlib_gateway_access_refused",
            "Requests that access control refused, by reason and kind of error.",
            ("reason", "error"),
            registry=self.registry,
        )
        self._open_streams = Gauge(
            "streamlib_gateway_open_streams",
            "Responses in progress: streams and complete bodies.",
            LABELS,
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        if SHARED_FOLDER not in os.environ:
            ProcessCollector(registry=self.registry)

    # --- methods of observers ---

    def target_tried(self, exchange: Exchange) -> None:
        """Counts an open stream, or moves it to its next target."""
        if exchange.operation == "count":
            return  # no response is streamed
        self._close(exchange)
        gauge = self._open_streams.labels(*self._labels(exchange))
        gauge.inc()
        self._open[exchange.request_id] = gauge

    def upstream_failed(self, exchange: Exchange, error: ErrorInfo) -> None:
        """Counts a failure of a target."""
        self._upstream_errors.labels(*self._labels(exchange), error.kind).inc()

    def first_token(self, exchange: Exchange) -> None:
        """Records the wait for the first output; from now on the model is known to exist."""
        if _is_chosen_by_client(exchange) and len(self._models) < MODELS:
            self._models.add(exchange.target)
        labels = self._labels(exchange)
        self._gaps[exchange.request_id] = self._gap.labels(*labels)
        if exchange.first_token is not None:
            self._first_token.labels(*labels).observe(exchange.first_token)

    def gap(self, exchange: Exchange, seconds: float) -> None:
        """Records the wait for further output."""
        self._gaps[exchange.request_id].observe(seconds)

    def ended(self, exchange: Exchange) -> None:
        """Counts the request, its tokens, and changes in its report."""
        self._close(exchange)
        self._gaps.pop(exchange.request_id, None)
        labels = self._labels(exchange)
        error = exchange.error.kind if exchange.error else ""
        status = str(exchange.status or "")
        self._requests.labels(*labels, exchange.operation, status, error).inc()
        usage = exchange.usage
        if usage is not None:
            counts = {
                "input": usage.input_tokens,
                "cached": usage.cache_read_input_tokens,
                "output": usage.output_tokens,
            }
            for kind, count in counts.items():
                if count:
                    self._tokens.labels(*labels, kind).inc(count)
        for action, count in Counts(change.action for change in exchange.report).items():
            self._changes.labels(*labels, action).inc(count)

    def access_refused(self, refusal: AccessRefusal) -> None:
        """Counts a request that access control refused."""
        self._refusals.labels(refusal.reason, refusal.error.kind).inc()

    def _close(self, exchange: Exchange) -> None:
        gauge = self._open.pop(exchange.request_id, None)
        if gauge is not None:
            gauge.dec()

    def _labels(self, exchange: Exchange) -> tuple[str, str, str]:
        model = exchange.target
        if model and _is_chosen_by_client(exchange) and model not in self._models:
            model = OTHER
        return exchange.route or "", model, exchange.client or ""

    # --- output for Prometheus ---

    def render(self) -> tuple[bytes, str]:
        """The metrics as text, and its content type; with a shared folder, those of all workers."""
        return generate_latest(self.shared_registry()), CONTENT_TYPE_LATEST

    def shared_registry(self) -> CollectorRegistry:
        """The registry to render; with a shared folder, that of all workers."""
        if SHARED_FOLDER not in os.environ:
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # it has no annotations
        return registry


def _is_chosen_by_client(exchange: Exchange) -> bool:
    """Whether the client named the target's model: a wildcard route to `provider:*`."""
    is_pattern = any(char in (exchange.route or "") for char in "*?[")
    return is_pattern and exchange.requested in exchange.target
