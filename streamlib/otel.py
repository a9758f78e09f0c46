"""OpenTelemetry's GenAI conventions: attributes as a pure function, and a span around a stream (extra `otel`).

The conventions are in Development: names move. They stand in two tables here and in `Usage.as_otel`, as of semantic-conventions-genai
in 2026-10. Metrics are left to OpenTelemetry's own GenAI utilities.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from streamlib.request.prompt import Prompt
from streamlib_parsers.accumulate import Response

if TYPE_CHECKING:
    from streamlib.client.stream import ResponseStream
    from streamlib.request.build import Request

PROVIDER_NAMES: Final = {
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "xai": "x_ai",
    "moonshot": "moonshot_ai",
    "mistral": "mistral_ai",
}
"""Ours -> theirs; every other provider has the same name in both."""

REQUEST_ATTRIBUTES: Final = {
    "max_output_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
}


def request_attributes(prompt: Prompt, request: Request) -> dict[str, Any]:
    """What is known when the request is sent."""
    provider = request.origin.provider or "custom"
    asked = {attribute: getattr(prompt, field) for field, attribute in REQUEST_ATTRIBUTES.items()}
    effort = prompt.thinking.effort if prompt.thinking else None
    known: dict[str, Any] = {
        "gen_ai.operation.name": "generate_content" if request.wire_api == "gemini" else "chat",
        "gen_ai.provider.name": PROVIDER_NAMES.get(provider, provider),
        "gen_ai.request.model": request.model,
        "gen_ai.request.stream": True,
        "gen_ai.request.reasoning.level": effort,
        "gen_ai.request.stop_sequences": list(prompt.stop) or None,
        "gen_ai.conversation.id": prompt.conversation_id,
        **asked,
    }
    return {name: value for name, value in known.items() if value is not None}


def span_attributes(response: Response) -> dict[str, Any]:
    """What is known of a response, whole or cut: one that did not end by its terminal reports the finish reason `error`."""
    finished = [
        choice.native_stop_reason or choice.stop_reason or "other" for choice in response.choices
    ]
    timing = response.timing
    known: dict[str, Any] = {
        "gen_ai.response.id": response.response_id,
        "gen_ai.response.model": response.model,
        "gen_ai.response.finish_reasons": ["error"] if response.error else finished or None,
        "gen_ai.response.time_to_first_chunk": timing.first_byte if timing else None,
        "error.type": response.error.kind if response.error else None,
        **(response.usage.as_otel() if response.usage else {}),
    }
    return {name: value for name, value in known.items() if value is not None}


@asynccontextmanager
async def traced(
    stream: ResponseStream, prompt: Prompt, tracer: Any = None
) -> AsyncGenerator[ResponseStream]:
    """`async with traced(client.stream(prompt, …), prompt) as stream:` is the stream inside a client span.

    tracer: yours, else the global provider's. Needs the extra `otel`.
    """
    from opentelemetry import trace  # an extra: only those who trace have it

    tracer = tracer or trace.get_tracer("streamlib")
    request = stream.request
    with tracer.start_as_current_span(
        f"chat {request.model}",
        kind=trace.SpanKind.CLIENT,
        attributes=request_attributes(prompt, request),
    ) as span:
        try:
            async with stream:
                yield stream
        finally:
            span.set_attributes(span_attributes(stream.response))
            if stream.response.error is not None:
                span.set_status(trace.StatusCode.ERROR, stream.response.error.kind)
