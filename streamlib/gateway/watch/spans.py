"""OpenTelemetry spans of the gateway, with the GenAI conventions. Needs the extra `otel`.

    SERVER  chat claude-sonnet-4-5            what the client asked for, as a child of its own span
      CLIENT  chat x-ai/grok-code-fast-1      each target that was tried

They contain no content. The application exports them, or `opentelemetry-instrument` does.
"""

from __future__ import annotations

from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Tracer
from opentelemetry.util.types import AttributeValue

from streamlib.client.otel.attributes import operation_name, provider_name, span_attributes
from streamlib.client.otel.telemetry import mark_failed
from streamlib.gateway.log_text import log_name
from streamlib.gateway.watch.observer import Exchange, Observer
from streamlib_parsers.accumulate import Choice, Response, Timing
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi


class Spans(Observer):
    """A span for each request, and inside it one for each target.

    Args:
        tracer: None: the tracer of the global tracer provider.
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("streamlib.gateway")
        self._open: dict[str, Span] = {}
        """Request id -> the span of the request."""
        self._targets: dict[str, Span] = {}
        """Request id -> the span of the target that was tried last."""

    def started(self, exchange: Exchange) -> None:
        """Opens the span of a request."""
        operation = _operation(exchange, exchange.wire_api)
        requested = log_name(exchange.requested)
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": operation,
            "gen_ai.request.model": requested,
            "gen_ai.request.stream": exchange.is_stream,
            "streamlib.request_id": exchange.request_id,
            "streamlib.wire_api": exchange.wire_api,
        }
        if exchange.route is not None:
            attributes["streamlib.route"] = exchange.route
        if exchange.client is not None:
            attributes["streamlib.client"] = exchange.client
        self._open[exchange.request_id] = self._tracer.start_span(
            f"{operation} {requested}",
            context=propagate.extract(exchange.trace_headers),
            kind=SpanKind.SERVER,
            attributes=attributes,
        )

    def target_tried(self, exchange: Exchange) -> None:
        """Opens the span of a target."""
        self._end_target(exchange)
        provider, _, model = exchange.target.partition(":")
        operation = _operation(exchange, exchange.target_wire)
        self._targets[exchange.request_id] = self._tracer.start_span(
            f"{operation} {log_name(model)}",
            context=trace.set_span_in_context(self._open[exchange.request_id]),
            kind=SpanKind.CLIENT,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": provider_name(provider),
                "gen_ai.request.model": log_name(model),
                "gen_ai.request.stream": exchange.operation != "count",
            },
        )

    def upstream_failed(self, exchange: Exchange, error: ErrorInfo) -> None:
        """Marks the target as failed."""
        span = self._targets.get(exchange.request_id)
        if span is not None:
            mark_failed(span, error.kind)

    def ended(self, exchange: Exchange) -> None:
        """Closes both spans."""
        self._end_target(exchange)
        span = self._open.pop(exchange.request_id)
        span.set_attributes(_response_attributes(exchange))
        if exchange.status is not None:
            span.set_attribute("http.response.status_code", exchange.status)
        if exchange.error is not None:
            mark_failed(span, exchange.error.kind)
        span.end()

    def _end_target(self, exchange: Exchange) -> None:
        span = self._targets.pop(exchange.request_id, None)
        if span is not None:
            span.set_attributes(_response_attributes(exchange))
            span.end()


def has_sdk() -> bool:
    """Whether the SDK is installed: the API alone drops spans."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _operation(exchange: Exchange, wire_api: WireApi | None) -> str:
    # The conventions have no name for a count.
    if exchange.operation == "count":
        return "count_tokens"
    return operation_name(wire_api)


def _response_attributes(exchange: Exchange) -> dict[str, Any]:
    choices: tuple[Choice, ...] = ()
    if exchange.stop_reason is not None:
        choices = (Choice(0, native_stop_reason=exchange.stop_reason),)
    timing = Timing(first_token=exchange.first_token)
    return span_attributes(Response(choices=choices, usage=exchange.usage, timing=timing))
