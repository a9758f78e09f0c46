"""Who reads: ours and the peers that are installed, each over the same chunks, each able to say what it read.

A contestant is timed while it reads; the making of its client and request is not counted. `read` is the same reading with its outcome
kept: outcomes are compared before anything is timed, so that nobody wins by reading less.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from importlib.metadata import version
from typing import Any, Final, Literal, NamedTuple

from streamlib.bench.records import OURS
from streamlib_parsers import FunctionCall, Response, accumulate, parser
from streamlib_parsers.accumulate import Accumulator

Kind = Literal["raw", "accumulated", "framing"]
"""What is given out: events as they come; the whole answer as well; frames and untyped JSON."""


class Outcome(NamedTuple):
    """What an answer says: its text, and the arguments of its calls."""

    text: str
    arguments: list[Any]


class Contestant(NamedTuple):
    """name, and the distribution it is in; the wire it reads; what it gives out; how long it reads (CPU seconds); what it read."""

    name: str
    distribution: str
    wire: str
    kind: Kind
    seconds: Callable[[list[bytes]], float]
    read: Callable[[list[bytes]], Outcome]

    @property
    def installed(self) -> bool:
        """Whether it can take part."""
        try:
            return bool(version(self.distribution))
        except importlib.metadata.PackageNotFoundError:
            return False


# --- ours ---


def outcome_of(response: Response) -> Outcome:
    """Of an answer of ours."""
    return Outcome(
        response.text,
        [
            json.loads(call.arguments or "{}")
            for call in response.calls
            if isinstance(call, FunctionCall)
        ],
    )


def _events(wire: Any, chunks: Iterable[bytes]) -> list[Any]:
    parse = parser(wire)
    return [*(event for chunk in chunks for event in parse.feed(chunk)), *parse.close()]


def _feed_seconds(wire: Any) -> Callable[[list[bytes]], float]:
    def run(chunks: list[bytes]) -> float:
        began = time.process_time()
        parse = parser(wire)
        for chunk in chunks:
            parse.feed(chunk)
        parse.close()
        return time.process_time() - began

    return run


def _accumulated_seconds(wire: Any) -> Callable[[list[bytes]], float]:
    def run(chunks: list[bytes]) -> float:
        began = time.process_time()
        parse, whole = parser(wire), Accumulator()
        for chunk in chunks:
            for event in parse.feed(chunk):
                whole.feed(event)
        for event in parse.close():
            whole.feed(event)
        assert whole.response.status == "completed"
        return time.process_time() - began

    return run


def ours(wire: str, kind: Kind = "raw") -> Contestant:
    """The parser with its whole state machine; accumulated: and the answer."""
    seconds = _feed_seconds(wire) if kind == "raw" else _accumulated_seconds(wire)
    return Contestant(
        OURS,
        "streamlib",
        wire,
        kind,
        seconds,
        lambda chunks: outcome_of(accumulate(_events(wire, chunks))),
    )


# --- peers over a mock transport ---

Opened = tuple[AsyncIterator[Any], Callable[[], Any] | None]
"""A stream that is open, and what gives the whole answer when it was read."""


def mock(chunks: list[bytes], library: str) -> Any:
    """A client of httpx's kind that answers everything with these chunks."""
    http: Any = importlib.import_module(library)

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    def answer(request: Any) -> Any:
        # As of a socket: whoever looks for it takes the transport to have read timeouts of its own. Nobody times anything out here.
        return http.Response(
            200,
            headers={"content-type": "text/event-stream"},
            content=body(),
            extensions={"network_stream": None},
        )

    return http.AsyncClient(transport=http.MockTransport(answer))


def peer(
    name: str,
    distribution: str,
    wire: str,
    kind: Kind,
    opened: Callable[[Any], Awaitable[Opened]],
    said: Callable[[list[Any], Any], Outcome],
    library: Callable[[], str] = lambda: "httpx2",
) -> Contestant:
    """A library that streams through a client of the HTTP `library`. `said` makes the outcome of its events and of its whole answer."""

    async def timed(chunks: list[bytes]) -> float:
        async with mock(chunks, library()) as http:
            stream, whole = await opened(http)
            began = time.process_time()
            async for _ in stream:
                pass
            if whole is not None:
                answer = whole()
                _ = await answer if hasattr(answer, "__await__") else answer
            return time.process_time() - began

    async def kept(chunks: list[bytes]) -> Outcome:
        async with mock(chunks, library()) as http:
            stream, whole = await opened(http)
            events = [event async for event in stream]
            answer = whole() if whole is not None else None
            return said(events, await answer if hasattr(answer, "__await__") else answer)

    return Contestant(
        name,
        distribution,
        wire,
        kind,
        lambda chunks: asyncio.run(timed(chunks)),
        lambda chunks: asyncio.run(kept(chunks)),
    )


def grouped(pieces: Iterable[tuple[Any, str]]) -> list[Any]:
    """Arguments from their pieces, by what tells calls apart."""
    calls: dict[Any, list[str]] = {}
    for key, piece in pieces:
        calls.setdefault(key, []).append(piece)
    return [json.loads("".join(call) or "{}") for call in calls.values()]


def _library_of(client: type) -> str:
    return next(
        base.__module__.partition(".")[0]
        for base in client.__mro__
        if base.__module__.startswith("httpx")
    )


# --- anthropic ---


def anthropics_http() -> str:
    """httpx2 since version 2, httpx before."""
    import anthropic

    return _library_of(anthropic.DefaultAsyncHttpxClient)


def _anthropic(http: Any) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(api_key="none", http_client=http).messages


ASK: Final[dict[str, Any]] = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "x"}],
}


async def _anthropic_raw(http: Any) -> Opened:
    return aiter(await _anthropic(http).create(**ASK, stream=True)), None


async def _anthropic_stream(http: Any) -> Opened:
    stream = await _anthropic(http).stream(**ASK).__aenter__()
    return aiter(stream), stream.get_final_message


def _anthropic_said(events: list[Any], whole: Any) -> Outcome:
    deltas = [event for event in events if event.type == "content_block_delta"]
    text = "".join(event.delta.text for event in deltas if event.delta.type == "text_delta")
    return Outcome(
        text,
        grouped(
            (event.index, event.delta.partial_json)
            for event in deltas
            if event.delta.type == "input_json_delta"
        ),
    )


def _anthropic_whole(events: list[Any], whole: Any) -> Outcome:
    text = "".join(block.text for block in whole.content if block.type == "text")
    return Outcome(text, [block.input for block in whole.content if block.type == "tool_use"])


# --- openai ---


def openais_http() -> str:
    """httpx2 since version 3, httpx before."""
    import openai

    return _library_of(openai.DefaultAsyncHttpxClient)


def _openai(http: Any) -> Any:
    import openai

    return openai.AsyncOpenAI(api_key="none", http_client=http)


CHAT: Final[dict[str, Any]] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


async def _openai_chat(http: Any) -> Opened:
    return aiter(await _openai(http).chat.completions.create(**CHAT, stream=True)), None


async def _openai_chat_stream(http: Any) -> Opened:
    stream = await _openai(http).chat.completions.stream(**CHAT).__aenter__()
    return aiter(stream), stream.get_final_completion


def _chat_said(events: list[Any], whole: Any) -> Outcome:
    deltas = [choice.delta for event in events for choice in event.choices]
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    return Outcome(
        "".join(delta.content or "" for delta in deltas),
        grouped((call.index, call.function.arguments or "") for call in calls),
    )


def _chat_whole(events: list[Any], whole: Any) -> Outcome:
    message = whole.choices[0].message
    return Outcome(
        message.content or "",
        [json.loads(call.function.arguments) for call in message.tool_calls or ()],
    )


async def _openai_responses(http: Any) -> Opened:
    return aiter(await _openai(http).responses.create(model="m", input="x", stream=True)), None


async def _openai_responses_stream(http: Any) -> Opened:
    stream = await _openai(http).responses.stream(model="m", input="x").__aenter__()
    return aiter(stream), stream.get_final_response


def _responses_said(events: list[Any], whole: Any) -> Outcome:
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    calls = (event for event in events if event.type == "response.function_call_arguments.delta")
    return Outcome(text, grouped((event.output_index, event.delta) for event in calls))


def _responses_whole(events: list[Any], whole: Any) -> Outcome:
    return Outcome(
        whole.output_text,
        [json.loads(item.arguments) for item in whole.output if item.type == "function_call"],
    )


# --- google-genai, botocore, httpx-sse ---


async def _google(http: Any) -> Opened:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(httpx_async_client=http, api_version="v1beta")
    models = genai.Client(api_key="none", http_options=options).aio.models
    return aiter(await models.generate_content_stream(model="m", contents="x")), None


def _google_said(events: list[Any], whole: Any) -> Outcome:
    parts = [part for event in events for part in event.candidates[0].content.parts]
    text = "".join(part.text or "" for part in parts if not part.thought)
    return Outcome(text, [part.function_call.args for part in parts if part.function_call])


def _botocore_events(chunks: list[bytes]) -> Any:
    import botocore.session
    from botocore.eventstream import EventStream
    from botocore.parsers import EventStreamJSONParser

    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model("ConverseStream").output_shape.members["stream"]

    class Raw:
        def stream(self) -> Any:
            return iter(chunks)

        def close(self) -> None:
            """Nothing is open."""

    return EventStream(Raw(), shape, EventStreamJSONParser(), "ConverseStream")


def _botocore_seconds(chunks: list[bytes]) -> float:
    events = _botocore_events(chunks)
    began = time.process_time()
    for _ in events:
        pass
    return time.process_time() - began


def _botocore_read(chunks: list[bytes]) -> Outcome:
    deltas = [
        event["contentBlockDelta"]
        for event in _botocore_events(chunks)
        if "contentBlockDelta" in event
    ]
    text = "".join(delta["delta"].get("text", "") for delta in deltas)
    return Outcome(
        text,
        grouped(
            (delta["contentBlockIndex"], delta["delta"]["toolUse"]["input"])
            for delta in deltas
            if "toolUse" in delta["delta"]
        ),
    )


async def _httpx_sse(http: Any) -> Opened:
    from httpx_sse import EventSource

    response = await http.send(http.build_request("POST", "http://x"), stream=True)

    async def decoded() -> AsyncIterator[Any]:
        async for event in EventSource(response).aiter_sse():
            yield json.loads(event.data)

    return decoded(), None


def _dicts_said(events: list[Any], whole: Any) -> Outcome:
    deltas = [event for event in events if event["type"] == "content_block_delta"]
    text = "".join(event["delta"].get("text", "") for event in deltas)
    return Outcome(
        text,
        grouped(
            (event["index"], event["delta"]["partial_json"])
            for event in deltas
            if "partial_json" in event["delta"]
        ),
    )


PEERS: Final[tuple[Contestant, ...]] = (
    peer(
        "anthropic",
        "anthropic",
        "messages",
        "raw",
        _anthropic_raw,
        _anthropic_said,
        anthropics_http,
    ),
    peer(
        "anthropic.stream",
        "anthropic",
        "messages",
        "accumulated",
        _anthropic_stream,
        _anthropic_whole,
        anthropics_http,
    ),
    peer(
        "httpx-sse + json",
        "httpx-sse",
        "messages",
        "framing",
        _httpx_sse,
        _dicts_said,
        lambda: "httpx",
    ),
    peer("openai", "openai", "chat", "raw", _openai_chat, _chat_said, openais_http),
    peer(
        "openai.stream",
        "openai",
        "chat",
        "accumulated",
        _openai_chat_stream,
        _chat_whole,
        openais_http,
    ),
    peer("openai", "openai", "responses", "raw", _openai_responses, _responses_said, openais_http),
    peer(
        "openai.stream",
        "openai",
        "responses",
        "accumulated",
        _openai_responses_stream,
        _responses_whole,
        openais_http,
    ),
    peer("google-genai", "google-genai", "gemini", "raw", _google, _google_said),
    Contestant("botocore", "botocore", "converse", "raw", _botocore_seconds, _botocore_read),
)
"""The official SDKs and a framing; `frameworks.py` adds what is built on them."""
