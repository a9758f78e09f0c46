"""OpenTelemetry in memory: what a client recorded, and what the conventions say of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from streamlib.client.otel import Telemetry

PATH = Path(__file__).parents[1] / "streamlib" / "client" / "otel" / "conventions.json"
CONVENTIONS: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
"""Facts of the conventions' model files; the file says at which commits."""


class Recorded:
    """A telemetry, and what it has recorded.

    Args:
        **options: of `Telemetry`.
    """

    def __init__(self, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._metrics = InMemoryMetricReader()
        new_exporter: Callable[[], InMemoryLogRecordExporter] = InMemoryLogRecordExporter
        self._logs = new_exporter()  # its constructor has no types
        logger_provider = LoggerProvider()
        logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        self.telemetry = Telemetry(
            tracer_provider=self.tracer_provider,
            meter_provider=MeterProvider([self._metrics]),
            logger_provider=logger_provider,
            **options,
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended."""
        return list(self._spans.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The only span whose name begins so."""
        [span] = [span for span in self.spans if span.name.startswith(name)]
        return span

    def attributes(self, name: str) -> dict[str, Any]:
        """Its attributes."""
        return dict(self.span(name).attributes or {})

    @property
    def events(self) -> list[ReadableLogRecord]:
        """The events."""
        return list(self._logs.get_finished_logs())

    @property
    def metrics(self) -> dict[str, Any]:
        """Name -> the metric, of all that have a value."""
        data = self._metrics.get_metrics_data()
        found: dict[str, Any] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                found.update({metric.name: metric for metric in scope.metrics})
        return found
