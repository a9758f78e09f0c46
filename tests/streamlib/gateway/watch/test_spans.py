"""Spans of the gateway: part of the client's trace, one a target, without content."""

from __future__ import annotations

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from streamlib.client.retry import NO_RETRY
from streamlib.gateway import RouteRule
from streamlib.gateway.targets.routes import RouteTo
from streamlib.gateway.watch.spans import Spans, has_sdk
from streamlib_parsers.errors import ErrorInfo
from tests.support.gateways import (
    ProviderResponse,
    Upstream,
    error_response,
    rule,
    send,
    serving,
    weather_prompt,
    weather_response,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"


class Exported:
    """A tracer, and the spans that it has ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.observer = Spans(provider.get_tracer("test"))

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())


async def test_request_and_target_have_spans_in_the_trace() -> None:
    exported = Exported()
    upstream = Upstream(weather_response("gemini"))
    async with serving(upstream, rule("gemini"), observers=[exported.observer]) as client:
        await send(client, "chat", weather_prompt(), traceparent=TRACEPARENT)
    target, request = exported.spans
    assert (request.name, request.kind) == ("chat client-model", SpanKind.SERVER)
    assert (target.name, target.kind) == ("generate_content model-1", SpanKind.CLIENT)
    assert f"{request.context.trace_id:032x}" == f"{target.context.trace_id:032x}" == TRACE
    assert target.parent is not None
    assert target.parent.span_id == request.context.span_id
    assert request.attributes is not None
    assert target.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["streamlib.route"] == "*"
    assert target.attributes["gen_ai.provider.name"] == "custom"
    assert target.attributes["gen_ai.usage.input_tokens"] == 12
    assert target.attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert "traceparent" not in upstream.requests[0].headers
    assert "Riga" not in request.to_json() + target.to_json()


async def test_count_is_no_stream_in_its_span() -> None:
    exported = Exported()
    counted = ProviderResponse(200, {}, [b'{"input_tokens":42}'])
    upstream = Upstream(counted, weather_response("messages"))
    route = RouteRule("*", "anthropic:claude-opus-4-5")
    options = {"client": {"api_key": "k"}, "observers": [exported.observer]}
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    async with serving(upstream, route, **options) as client:
        await client.post("/v1/messages/count_tokens", json=body)
        await send(client, "messages", weather_prompt())
    streams: list[object] = []
    for span in exported.spans:
        if span.kind == SpanKind.CLIENT and span.attributes is not None:
            streams.append(span.attributes["gen_ai.request.stream"])
    assert streams == [False, True]


async def test_failed_target_is_marked_and_the_request_is_not() -> None:
    exported = Exported()
    busy = error_response("chat", 529, ErrorInfo("overloaded", "busy with Ann's letter"))
    targets = (
        RouteTo("custom:a", base_url="http://a", wire_api="chat"),
        RouteTo("custom:b", base_url="http://b", wire_api="chat"),
    )
    upstream = Upstream(busy, weather_response("chat"))
    options = {"client": {"retry": NO_RETRY}, "observers": [exported.observer]}
    async with serving(upstream, RouteRule("*", targets), **options) as client:
        await send(client, "chat", weather_prompt())
        await client.post("/v1/nothing")
    first, second, request, refused = exported.spans
    assert [span.name for span in (first, second)] == ["chat a", "chat b"]
    failed = [span.status.is_ok for span in (first, second, request, refused)]
    assert failed == [False, True, True, False]
    assert first.status.description == "overloaded"
    assert "Ann" not in first.to_json()
    assert exported.observer._open == exported.observer._targets == {}


def test_spans_without_an_sdk_are_noticed() -> None:
    assert not has_sdk()
