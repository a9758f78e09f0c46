"""OpenTelemetry's GenAI conventions: attributes as pure functions, and a span around a stream.

The conventions are in status Development, so their names change. They are in two tables here and in
`Usage.as_otel`, as of semantic-conventions-genai in 2026-10. Metrics are left to OpenTelemetry's
own GenAI utilities.
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
"""Provider name here -> name in the conventions, where the two differ."""

REQUEST_ATTRIBUTES: Final = {
    "max_output_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
}
"""Field of `Prompt` -> attribute."""


def request_attributes(prompt: Prompt, request: Request) -> dict[str, Any]:
    """Attributes that are known when the request is sent."""
    operation = "chat"
    if request.wire_api in ("gemini", "interactions"):
        operation = "generate_content"
    provider = request.origin.provider or "custom"
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": PROVIDER_NAMES.get(provider, provider),
        "gen_ai.request.model": request.model,
        "gen_ai.request.stream": True,
        "gen_ai.request.stop_sequences": list(prompt.stop) or None,
        "gen_ai.conversation.id": prompt.conversation_id,
    }
    if prompt.thinking:
        attributes["gen_ai.request.reasoning.level"] = prompt.thinking.effort
    for field, attribute in REQUEST_ATTRIBUTES.items():
        attributes[attribute] = getattr(prompt, field)
    return _known(attributes)


def span_attributes(response: Response) -> dict[str, Any]:
    """Attributes of a response, complete or not.

    One without a terminal event has the finish reason `error`.
    """
    finish_reasons = [
        choice.native_stop_reason or choice.stop_reason or "other" for choice in response.choices
    ]
    attributes: dict[str, Any] = {
        "gen_ai.response.id": response.response_id,
        "gen_ai.response.model": response.model,
        "gen_ai.response.finish_reasons": finish_reasons or None,
    }
    if response.error:
        attributes["gen_ai.response.finish_reasons"] = ["error"]
        attributes["error.type"] = response.error.kind
    if response.timing:
        attributes["gen_ai.response.time_to_first_chunk"] = response.timing.first_byte
    if response.usage:
        attributes.update(response.usage.as_otel())
    return _known(attributes)


def _known(attributes: dict[str, Any]) -> dict[str, Any]:
    """Without those that are None: an unknown attribute is not set."""
    return {name: value for name, value in attributes.items() if value is not None}


@asynccontextmanager
async def traced(
    stream: ResponseStream, prompt: Prompt, tracer: Any = None
) -> AsyncGenerator[ResponseStream]:
    """``async with traced(client.stream(prompt, …), prompt) as stream:`` reads the stream inside a
    client span.

    Args:
        stream: not entered yet.
        prompt: the one of the stream.
        tracer: None: that of the global tracer provider. Needs the extra `otel`.
    """
    from opentelemetry import trace  # an extra: only those who trace have it installed

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
