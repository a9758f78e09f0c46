"""What the tests of the gateway share: an upstream in memory, a client of any wire, and the conversation they have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import anyio
import httpx
import msgspec

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
from streamlib.wires.encoders import encode_all, encoder, error_body
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import FunctionCall, Origin, WireApi, user
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.usage import Usage
from tests.support.clients import MemoryResponse

CLIENTS: Final[tuple[WireApi, ...]] = ("messages", "chat", "responses", "gemini")
MODELS: Final[tuple[WireApi, ...]] = (*CLIENTS, "converse", "ollama")
SIGNED: Final = "c2lnbmVkIGJ5IHRoZSBtb2RlbA=="
WEATHER: Final = ToolSpec(
    "weather",
    "Weather of a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
PIXEL: Final = Image("iVBORw0KGgo=", media_type="image/png")


Chunks: TypeAlias = Sequence[bytes | float]
"""Bytes, and seconds between them."""


class Upstream:
    """A provider in memory: gives its answers in turn, and keeps what it was asked. Each answer is (status, headers, chunks)."""

    def __init__(self, *answers: tuple[int, Mapping[str, str], Chunks]) -> None:
        self.asked: list[tuple[str, Mapping[str, str], bytes]] = []
        self.open = 0
        self._answers = answers

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Any
    ) -> MemoryResponse:
        status, given, chunks = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append((url, dict(headers), body))
        return MemoryResponse(self._chunks(chunks), status, given)

    async def _chunks(self, chunks: Chunks) -> AsyncIterator[bytes]:
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
        """Nothing is kept."""

    def body(self, at: int = -1) -> Any:
        """What was asked."""
        return msgspec.json.decode(self.asked[at][2])


def refusing(
    wire: WireApi, status: int, error: ErrorInfo, **headers: str
) -> tuple[int, Mapping[str, str], Chunks]:
    """An HTTP error."""
    body = msgspec.json.encode(error_body(wire, error))
    return (
        status,
        {
            "content-type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        },
        [body],
    )


def streaming(
    wire: WireApi, *chunks: bytes | float, **headers: str
) -> tuple[int, Mapping[str, str], Chunks]:
    """An answer that streams."""
    return (
        200,
        {
            "content-type": encoder(wire).media_type,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        },
        chunks,
    )


def rule(wire: WireApi, **options: Any) -> RouteRule:
    """Everything to one server of this wire, which names nothing and refuses nothing."""
    return RouteRule("*", "custom:model-1", wire_api=wire, base_url="http://upstream", **options)


@asynccontextmanager
async def serving(
    upstream: Any, *rules: RouteRule, token: str | None = None, **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway in this process."""
    async with Gateway(
        RouteTable(rules), client={"http": upstream, **options.pop("client", {})}, **options
    ) as one:
        transport = httpx.ASGITransport(gateway(one, token=token), raise_app_exceptions=True)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8900"
        ) as client:
            yield client


def request(wire: WireApi, prompt: Prompt, model: str = "client-model") -> Request:
    """What a client of this wire sends."""
    return build(prompt, model, provider="custom", wire_api=wire, base_url="http://127.0.0.1:8900")


async def ask(
    client: httpx.AsyncClient, wire: WireApi, prompt: Prompt, *, whole: bool = False, **headers: str
) -> httpx.Response:
    """Sends it, for a stream or for a whole body."""
    made = request(wire, prompt)
    place, body = urlsplit(made.url), made.body
    path, query = place.path, place.query
    if wire == "gemini":
        path = path if path.startswith("/v1") else f"/v1beta{path}"
        path, query = (
            (path.replace("streamGenerateContent", "generateContent"), "")
            if whole
            else (path, query)
        )
    else:
        body = msgspec.json.encode({**msgspec.json.decode(body), "stream": not whole})
    sent = {
        "content-type": "application/json",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return await client.post(f"{path}?{query}" if query else path, content=body, headers=sent)


def read(wire: WireApi, answer: httpx.Response, *, whole: bool = False) -> Response:
    """What the client understood."""
    if whole:
        return accumulate(
            parse_body(
                wire, answer.content, status=answer.status_code, headers=dict(answer.headers)
            )
        )
    return said(wire, answer.content)


def said(wire: WireApi, *chunks: bytes, origin: Origin | None = None) -> Response:
    """What a stream says."""
    p = parser(wire, origin=origin)
    return accumulate([*(event for chunk in chunks for event in p.feed(chunk)), *p.close()])


def turn(wire: WireApi) -> list[ResponseEvent]:
    """The usual answer: a signed thought, words, two calls at once with arguments in pieces, and counts."""
    assembly = EventAssembler(LIMITS, Origin(wire), lambda n: f"call_{n}")
    assembly.identify("resp_1", "model-1")
    assembly.usage(Usage(input_tokens=12, output_tokens=0))
    thought = assembly.open(Reasoning())
    for word in ("Two ", "places, ", "so two calls."):
        assembly.reasoning(thought, word)
    thought.fields["signature"] = SIGNED
    assembly.close(thought)
    words = assembly.open(Message("assistant"))
    assembly.text(words, "I ask ")
    assembly.text(words, "for both.")
    assembly.close(words)
    for number, place in enumerate(("Riga", "Köln")):
        call = assembly.open(FunctionCall(f"call_{number}", "weather"))
        for piece in ('{"pla', 'ce":"', place, '"}'):
            assembly.arguments(call, piece)
        assembly.close(call)
    assembly.usage(Usage(input_tokens=12, output_tokens=34))
    assembly.complete("tool_calls")
    return assembly.take()


def turn_bytes(wire: WireApi) -> list[bytes]:
    """The same, one chunk an event."""
    encode = encoder(wire, model="model-1")
    return [
        piece for piece in (*(encode.feed(event) for event in turn(wire)), encode.close()) if piece
    ]


def answer_bytes(wire: WireApi, events: Sequence[ResponseEvent]) -> bytes:
    """Any answer."""
    return encode_all(wire, events, model="model-1")


def asking(**options: Any) -> Prompt:
    """The usual question."""
    usual = {
        "input": [user("Weather in both?", PIXEL)],
        "tools": [WEATHER],
        "max_output_tokens": 4000,
        "reasoning": "low",
    }
    return Prompt(**{**usual, **options})


def answered(prompt: Prompt, response: Response) -> Prompt:
    """The next turn: what was said, and the outputs of its calls."""
    outputs = [call.output(f"sunny in {call.name}") for call in response.calls]
    return msgspec.structs.replace(prompt, input=(*prompt.items, *response.items, *outputs))


def plain(response: Response) -> dict[str, Any]:
    """What every wire can say."""
    usage = response.usage
    return {
        "text": response.text,
        "reasoning": response.reasoning,
        "calls": [
            (call.name, call.parsed()) for call in response.calls if isinstance(call, FunctionCall)
        ],
        "usage": (usage.input_tokens, usage.output_tokens) if usage else None,
        "stop_reason": response.stop_reason,
        "error": response.error and response.error.kind,
    }
