"""Shared by the tests of the gateway: a provider in memory, a client of any wire, and the
conversation between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import anyio
import httpx
import msgspec
import pytest

from streamlib import (
    Image,
    Message,
    Prompt,
    Reasoning,
    Request,
    Response,
    ResponseEvent,
    ToolSpec,
    accumulate,
    build,
    parse_body,
    parser,
)
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from streamlib.wires.encoders import encoder, error_body
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import FunctionCall, Origin, WireApi, user
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.usage import Usage
from tests.support.cases import each_case
from tests.support.clients import MemoryResponse

CLIENTS: Final[tuple[WireApi, ...]] = (
    "messages",
    "chat",
    "responses",
    "gemini",
    "interactions",
    "cohere",
)
MODELS: Final[tuple[WireApi, ...]] = (*CLIENTS, "converse", "ollama")
SIGNED: Final = "c2lnbmVkIGJ5IHRoZSBtb2RlbA=="
WEATHER: Final = ToolSpec(
    "weather",
    "Weather of a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
PIXEL: Final = Image("iVBORw0KGgo=", media_type="image/png")

each_client = pytest.mark.parametrize("wire", CLIENTS)
stream_or_body = each_case("stream", [True, False])

Chunks: TypeAlias = Sequence[bytes | float]
"""Bytes, and seconds between them."""


class ProviderResponse(NamedTuple):
    """What `Upstream` returns to one request."""

    status: int
    headers: Mapping[str, str]
    chunks: Chunks


class ProviderRequest(NamedTuple):
    """What the gateway sent to `Upstream`."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Upstream:
    """A provider in memory: returns its responses in turn, the last one again and again."""

    def __init__(self, *responses: ProviderResponse) -> None:
        self.requests: list[ProviderRequest] = []
        self.open = 0
        """Responses that are being read."""
        self._responses = responses

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Any
    ) -> MemoryResponse:
        response = self._responses[min(len(self.requests), len(self._responses) - 1)]
        self.requests.append(ProviderRequest(url, dict(headers), body))
        return MemoryResponse(self._read(response.chunks), response.status, response.headers)

    async def _read(self, chunks: Chunks) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            for chunk in chunks:
                if isinstance(chunk, bytes):
                    yield chunk
                else:
                    await anyio.sleep(chunk)
        finally:
            self.open -= 1

    async def aclose(self) -> None:
        """Does nothing: a transport in memory holds no connection."""

    def body(self, index: int = -1) -> Any:
        """The body of a request, the last one by default."""
        return msgspec.json.decode(self.requests[index].body)


def header_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Keyword arguments as headers."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def error_response(
    wire: WireApi, status: int, error: ErrorInfo, **headers: str
) -> ProviderResponse:
    """An HTTP error."""
    body = msgspec.json.encode(error_body(wire, error))
    all_headers = {"content-type": "application/json", **header_names(headers)}
    return ProviderResponse(status, all_headers, [body])


def stream_response(wire: WireApi, *chunks: bytes | float, **headers: str) -> ProviderResponse:
    """A stream."""
    all_headers = {"content-type": encoder(wire).media_type, **header_names(headers)}
    return ProviderResponse(200, all_headers, chunks)


def weather_response(wire: WireApi) -> ProviderResponse:
    """The usual response, as a stream."""
    return stream_response(wire, *weather_chunks(wire))


def rule(wire: WireApi, **options: Any) -> RouteRule:
    """A route for all models to one server of this wire, whose provider is unknown."""
    return RouteRule("*", "custom:model-1", wire_api=wire, base_url="http://upstream", **options)


@asynccontextmanager
async def serving(
    upstream: Any, *rules: RouteRule, token: str | None = None, **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway in this process."""
    client_options = {"http": upstream, **options.pop("client", {})}
    async with Gateway(RouteTable(rules), client=client_options, **options) as running:
        transport = httpx.ASGITransport(gateway(running, token=token), raise_app_exceptions=True)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8900"
        ) as client:
            yield client


def client_request(wire: WireApi, prompt: Prompt, model: str = "client-model") -> Request:
    """The HTTP request of a client of this wire."""
    return build(prompt, model, provider="custom", wire_api=wire, base_url="http://127.0.0.1:8900")


async def send(
    client: httpx.AsyncClient,
    wire: WireApi,
    prompt: Prompt,
    *,
    stream: bool = True,
    **headers: str,
) -> httpx.Response:
    """Sends a client's request, for a stream or for one body."""
    request = client_request(wire, prompt)
    url, body = urlsplit(request.url), request.body
    path = url.path
    if url.query:
        path += f"?{url.query}"
    if wire != "gemini":
        body = msgspec.json.encode({**msgspec.json.decode(body), "stream": stream})
    elif not stream:
        path = url.path.replace("streamGenerateContent", "generateContent")
    if wire == "gemini" and not path.startswith("/v1"):
        path = f"/v1beta{path}"
    all_headers = {"content-type": "application/json", **header_names(headers)}
    return await client.post(path, content=body, headers=all_headers)


def read(wire: WireApi, response: httpx.Response, *, stream: bool = True) -> Response:
    """The response, as the client parses it."""
    if stream:
        return parse_stream(wire, response.content)
    events = parse_body(
        wire, response.content, status=response.status_code, headers=dict(response.headers)
    )
    return accumulate(events)


def parse_stream(wire: WireApi, *chunks: bytes, origin: Origin | None = None) -> Response:
    """The response in a stream."""
    events: list[ResponseEvent] = []
    stream_parser = parser(wire, origin=origin)
    for chunk in chunks:
        events += stream_parser.feed(chunk)
    return accumulate([*events, *stream_parser.close()])


def weather_events(wire: WireApi) -> list[ResponseEvent]:
    """The usual response: signed reasoning, text, two parallel calls, and usage."""
    assembler = EventAssembler(LIMITS, Origin(wire), lambda n: f"call_{n}")
    assembler.identify("resp_1", "model-1")
    assembler.usage(Usage(input_tokens=12, output_tokens=0))
    reasoning = assembler.open(Reasoning())
    for delta in ("Two ", "places, ", "so two calls."):
        assembler.reasoning(reasoning, delta)
    reasoning.fields["signature"] = SIGNED
    assembler.close(reasoning)
    message = assembler.open(Message("assistant"))
    assembler.text(message, "I ask ")
    assembler.text(message, "for both.")
    assembler.close(message)
    for number, city in enumerate(("Riga", "Köln")):
        call = assembler.open(FunctionCall(f"call_{number}", "weather"))
        for delta in ('{"pla', 'ce":"', city, '"}'):
            assembler.arguments(call, delta)
        assembler.close(call)
    assembler.usage(Usage(input_tokens=12, output_tokens=34))
    assembler.complete("tool_calls")
    return assembler.take()


def weather_chunks(wire: WireApi) -> list[bytes]:
    """The usual response as a stream, one chunk an event."""
    encode = encoder(wire, model="model-1")
    chunks = [encode.feed(event) for event in weather_events(wire)]
    chunks.append(encode.close())
    return [chunk for chunk in chunks if chunk]


def weather_prompt(**options: Any) -> Prompt:
    """The usual prompt."""
    usual = {
        "input": [user("Weather in both?", PIXEL)],
        "tools": [WEATHER],
        "max_output_tokens": 4000,
        "reasoning": "low",
    }
    return Prompt(**{**usual, **options})


def next_prompt(prompt: Prompt, response: Response) -> Prompt:
    """The prompt of the next turn: with the response, and the outputs of its calls."""
    outputs = [call.output(f"sunny in {call.name}") for call in response.calls]
    return msgspec.structs.replace(prompt, input=(*prompt.items, *response.items, *outputs))


def common_fields(response: Response) -> dict[str, Any]:
    """The part of a response that every wire can represent."""
    calls = []
    for call in response.calls:
        if isinstance(call, FunctionCall):
            calls.append((call.name, call.parsed()))
    fields: dict[str, Any] = {
        "text": response.text,
        "reasoning": response.reasoning,
        "calls": calls,
        "usage": None,
        "stop_reason": response.stop_reason,
        "error": response.error and response.error.kind,
    }
    if response.usage is not None:
        fields["usage"] = (response.usage.input_tokens, response.usage.output_tokens)
    return fields
