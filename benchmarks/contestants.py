"""The contestants: this library, and the peers that are installed, each over the same chunks.

A contestant is timed while it reads; making its client and request is not counted. `read` is the
same reading with its outcome. Outcomes are compared before anything is timed, so that nobody wins
by reading less.
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
"""What it returns: events; events and the complete response; frames and untyped JSON."""


class Outcome(NamedTuple):
    """What a response contains: its text, and the parsed arguments of its calls."""

    text: str
    arguments: list[Any]


class Contestant(NamedTuple):
    """One reader.

    Attributes:
        name: shown in tables.
        distribution: on the package index.
        wire: what it reads.
        kind: what it returns.
        seconds: CPU seconds to read these chunks.
        read: the outcome of reading these chunks.
    """

    name: str
    distribution: str
    wire: str
    kind: Kind
    seconds: Callable[[list[bytes]], float]
    read: Callable[[list[bytes]], Outcome]

    @property
    def installed(self) -> bool:
        """Whether its distribution is installed."""
        try:
            return bool(version(self.distribution))
        except importlib.metadata.PackageNotFoundError:
            return False


# --- ours ---


def outcome_of(response: Response) -> Outcome:
    """The outcome of a response of this library."""
    calls = [call for call in response.calls if isinstance(call, FunctionCall)]
    return Outcome(response.text, [json.loads(call.arguments or "{}") for call in calls])


def _events(wire: Any, chunks: Iterable[bytes]) -> list[Any]:
    parse = parser(wire)
    events: list[Any] = []
    for chunk in chunks:
        events += parse.feed(chunk)
    return events + parse.close()


def _feed_seconds(wire: Any) -> Callable[[list[bytes]], float]:
    def run(chunks: list[bytes]) -> float:
        start = time.process_time()
        parse = parser(wire)
        for chunk in chunks:
            parse.feed(chunk)
        parse.close()
        return time.process_time() - start

    return run


def _accumulated_seconds(wire: Any) -> Callable[[list[bytes]], float]:
    def run(chunks: list[bytes]) -> float:
        start = time.process_time()
        parse, accumulator = parser(wire), Accumulator()
        for chunk in chunks:
            for event in parse.feed(chunk):
                accumulator.feed(event)
        for event in parse.close():
            accumulator.feed(event)
        assert accumulator.response.status == "completed"
        return time.process_time() - start

    return run


def ours(wire: str, kind: Kind = "raw") -> Contestant:
    """The parser with its complete state machine; `accumulated`: and the response."""
    seconds = _accumulated_seconds(wire)
    if kind == "raw":
        seconds = _feed_seconds(wire)

    def read(chunks: list[bytes]) -> Outcome:
        return outcome_of(accumulate(_events(wire, chunks)))

    return Contestant(OURS, "streamlib", wire, kind, seconds, read)


# --- peers over a mock transport ---

OpenStream = tuple[AsyncIterator[Any], Callable[[], Any] | None]
"""An open stream, and the function that returns the complete response once it was read."""


def mock(chunks: list[bytes], library: str) -> Any:
    """A client of httpx's kind that responds to everything with these chunks."""
    http: Any = importlib.import_module(library)

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    def respond(request: Any) -> Any:
        # A library that finds no `network_stream` (ours) adds read timeouts of its own: with it,
        # the transport is taken for a socket that has them. Nothing times out here.
        return http.Response(
            200,
            headers={"content-type": "text/event-stream"},
            content=body(),
            extensions={"network_stream": None},
        )

    return http.AsyncClient(transport=http.MockTransport(respond))


def peer(
    name: str,
    distribution: str,
    wire: str,
    kind: Kind,
    open_stream: Callable[[Any], Awaitable[OpenStream]],
    outcome: Callable[[list[Any], Any], Outcome],
    library: Callable[[], str] = lambda: "httpx2",
) -> Contestant:
    """A library that streams through a client of an HTTP library.

    Args:
        name: shown in tables.
        distribution: on the package index.
        wire: what it reads.
        kind: what it returns.
        open_stream: opens its stream with an HTTP client.
        outcome: made from its events and its complete response (None where it has none).
        library: name of the HTTP library; called when the contestant takes part.
    """

    async def timed(chunks: list[bytes]) -> float:
        async with mock(chunks, library()) as http:
            stream, response_of = await open_stream(http)
            start = time.process_time()
            async for _ in stream:
                pass
            await _final_response(response_of)
            return time.process_time() - start

    async def read(chunks: list[bytes]) -> Outcome:
        async with mock(chunks, library()) as http:
            stream, response_of = await open_stream(http)
            events = [event async for event in stream]
            return outcome(events, await _final_response(response_of))

    return Contestant(
        name,
        distribution,
        wire,
        kind,
        lambda chunks: asyncio.run(timed(chunks)),
        lambda chunks: asyncio.run(read(chunks)),
    )


async def _final_response(response_of: Callable[[], Any] | None) -> Any:
    """The complete response: some libraries have it at once, others are awaited."""
    if response_of is None:
        return None
    response = response_of()
    if hasattr(response, "__await__"):
        response = await response
    return response


def parsed_arguments(deltas: Iterable[tuple[Any, str]]) -> list[Any]:
    """Arguments of calls from their deltas: (what identifies the call, JSON text)."""
    calls: dict[Any, str] = {}
    for key, text in deltas:
        calls[key] = calls.get(key, "") + text
    return [json.loads(arguments or "{}") for arguments in calls.values()]


def _library_of(client: type) -> str:
    for base in client.__mro__:
        if base.__module__.startswith("httpx"):
            return base.__module__.partition(".")[0]
    raise TypeError(f"{client} is no client of httpx")


# --- anthropic ---


def anthropic_http() -> str:
    """httpx2 since version 2, httpx before."""
    import anthropic

    return _library_of(anthropic.DefaultAsyncHttpxClient)


def _anthropic(http: Any) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(api_key="none", http_client=http).messages


MESSAGES_REQUEST: Final[dict[str, Any]] = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "x"}],
}


async def _anthropic_raw(http: Any) -> OpenStream:
    return aiter(await _anthropic(http).create(**MESSAGES_REQUEST, stream=True)), None


async def _anthropic_stream(http: Any) -> OpenStream:
    stream = await _anthropic(http).stream(**MESSAGES_REQUEST).__aenter__()
    return aiter(stream), stream.get_final_message


def _anthropic_outcome(events: list[Any], response: Any) -> Outcome:
    deltas = [event for event in events if event.type == "content_block_delta"]
    text = "".join(event.delta.text for event in deltas if event.delta.type == "text_delta")
    calls = [event for event in deltas if event.delta.type == "input_json_delta"]
    return Outcome(text, parsed_arguments((call.index, call.delta.partial_json) for call in calls))


def _anthropic_final_outcome(events: list[Any], response: Any) -> Outcome:
    text = "".join(block.text for block in response.content if block.type == "text")
    return Outcome(text, [block.input for block in response.content if block.type == "tool_use"])


# --- openai ---


def openai_http() -> str:
    """httpx2 since version 3, httpx before."""
    import openai

    return _library_of(openai.DefaultAsyncHttpxClient)


def openai_client(http: Any) -> Any:
    import openai

    return openai.AsyncOpenAI(api_key="none", http_client=http)


CHAT_REQUEST: Final[dict[str, Any]] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


async def _openai_chat(http: Any) -> OpenStream:
    return aiter(
        await openai_client(http).chat.completions.create(**CHAT_REQUEST, stream=True)
    ), None


async def _openai_chat_stream(http: Any) -> OpenStream:
    stream = await openai_client(http).chat.completions.stream(**CHAT_REQUEST).__aenter__()
    return aiter(stream), stream.get_final_completion


def chat_outcome(events: list[Any], response: Any) -> Outcome:
    deltas = [choice.delta for event in events for choice in event.choices]
    text = "".join(delta.content or "" for delta in deltas)
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    fragments = ((call.index, call.function.arguments or "") for call in calls)
    return Outcome(text, parsed_arguments(fragments))


def _chat_final_outcome(events: list[Any], response: Any) -> Outcome:
    message = response.choices[0].message
    calls = message.tool_calls or ()
    arguments = [json.loads(call.function.arguments) for call in calls]
    return Outcome(message.content or "", arguments)


async def _openai_responses(http: Any) -> OpenStream:
    return aiter(
        await openai_client(http).responses.create(model="m", input="x", stream=True)
    ), None


async def _openai_responses_stream(http: Any) -> OpenStream:
    stream = await openai_client(http).responses.stream(model="m", input="x").__aenter__()
    return aiter(stream), stream.get_final_response


def _responses_outcome(events: list[Any], response: Any) -> Outcome:
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    calls = (event for event in events if event.type == "response.function_call_arguments.delta")
    return Outcome(text, parsed_arguments((event.output_index, event.delta) for event in calls))


def _responses_final_outcome(events: list[Any], response: Any) -> Outcome:
    calls = [item for item in response.output if item.type == "function_call"]
    return Outcome(response.output_text, [json.loads(call.arguments) for call in calls])


# --- google-genai, botocore, httpx-sse ---


async def _google(http: Any) -> OpenStream:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(httpx_async_client=http, api_version="v1beta")
    models = genai.Client(api_key="none", http_options=options).aio.models
    return aiter(await models.generate_content_stream(model="m", contents="x")), None


def _google_outcome(events: list[Any], response: Any) -> Outcome:
    parts = [part for event in events for part in event.candidates[0].content.parts]
    text = "".join(part.text or "" for part in parts if not part.thought)
    return Outcome(text, [part.function_call.args for part in parts if part.function_call])


async def _interactions(http: Any) -> OpenStream:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(httpx_async_client=http, api_version="v1beta")
    interactions = genai.Client(api_key="none", http_options=options).aio.interactions
    return aiter(await interactions.create(model="m", input="x", stream=True)), None


def _interactions_outcome(events: list[Any], response: Any) -> Outcome:
    text = ""
    arguments: dict[int, str] = {}
    for event in events:
        if event.event_type != "step.delta":
            continue
        if event.delta.type == "text":
            text += event.delta.text
        elif event.delta.type == "arguments_delta":
            arguments[event.index] = arguments.get(event.index, "") + event.delta.arguments
    return Outcome(text, [json.loads(call) for call in arguments.values()])


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
            """There is nothing to close."""

    return EventStream(Raw(), shape, EventStreamJSONParser(), "ConverseStream")


def _botocore_seconds(chunks: list[bytes]) -> float:
    events = _botocore_events(chunks)
    start = time.process_time()
    for _ in events:
        pass
    return time.process_time() - start


def _botocore_read(chunks: list[bytes]) -> Outcome:
    text = ""
    fragments: list[tuple[int, str]] = []
    for event in _botocore_events(chunks):
        block = event.get("contentBlockDelta")
        if block is None:
            continue
        text += block["delta"].get("text", "")
        if "toolUse" in block["delta"]:
            fragments.append((block["contentBlockIndex"], block["delta"]["toolUse"]["input"]))
    return Outcome(text, parsed_arguments(fragments))


async def _httpx_sse(http: Any) -> OpenStream:
    from httpx_sse import EventSource

    response = await http.send(http.build_request("POST", "http://x"), stream=True)

    async def decoded() -> AsyncIterator[Any]:
        async for event in EventSource(response).aiter_sse():
            yield json.loads(event.data)

    return decoded(), None


def _json_outcome(events: list[Any], response: Any) -> Outcome:
    deltas = [event for event in events if event["type"] == "content_block_delta"]
    text = "".join(event["delta"].get("text", "") for event in deltas)
    calls = [event for event in deltas if "partial_json" in event["delta"]]
    fragments = ((event["index"], event["delta"]["partial_json"]) for event in calls)
    return Outcome(text, parsed_arguments(fragments))


PEERS: Final[tuple[Contestant, ...]] = (
    peer(
        "anthropic",
        "anthropic",
        "messages",
        "raw",
        _anthropic_raw,
        _anthropic_outcome,
        anthropic_http,
    ),
    peer(
        "anthropic.stream",
        "anthropic",
        "messages",
        "accumulated",
        _anthropic_stream,
        _anthropic_final_outcome,
        anthropic_http,
    ),
    peer(
        "httpx-sse + json",
        "httpx-sse",
        "messages",
        "framing",
        _httpx_sse,
        _json_outcome,
        lambda: "httpx",
    ),
    peer("openai", "openai", "chat", "raw", _openai_chat, chat_outcome, openai_http),
    peer(
        "openai.stream",
        "openai",
        "chat",
        "accumulated",
        _openai_chat_stream,
        _chat_final_outcome,
        openai_http,
    ),
    peer(
        "openai", "openai", "responses", "raw", _openai_responses, _responses_outcome, openai_http
    ),
    peer(
        "openai.stream",
        "openai",
        "responses",
        "accumulated",
        _openai_responses_stream,
        _responses_final_outcome,
        openai_http,
    ),
    peer("google-genai", "google-genai", "gemini", "raw", _google, _google_outcome),
    peer(
        "google-genai",
        "google-genai",
        "interactions",
        "raw",
        _interactions,
        _interactions_outcome,
    ),
    Contestant("botocore", "botocore", "converse", "raw", _botocore_seconds, _botocore_read),
)
"""The official SDKs, and a framing; `frameworks.py` has what is built on the SDKs."""
