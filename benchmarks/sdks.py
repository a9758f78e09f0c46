"""The official SDKs of Anthropic, OpenAI, Google and AWS."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from benchmarks.contestants import (
    Contestant,
    Depth,
    OpenStream,
    Outcome,
    local,
    parsed_arguments,
    peer,
)
from benchmarks.joined import JOINED


def _library_of(client: type) -> str:
    for base in client.__mro__:
        if base.__module__.startswith("httpx"):
            return base.__module__.partition(".")[0]
    raise TypeError(f"{client} is not a client of httpx")


# --- anthropic ---


def anthropic_http() -> str:
    """The SDK's HTTP library: httpx2 since version 2, httpx before."""
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
    return OpenStream(aiter(await _anthropic(http).create(**MESSAGES_REQUEST, stream=True)))


async def _anthropic_stream(http: Any) -> OpenStream:
    stream = await _anthropic(http).stream(**MESSAGES_REQUEST).__aenter__()
    return OpenStream(
        aiter(stream), stream.get_final_message, lambda _: stream.current_message_snapshot
    )


def _anthropic_outcome(events: list[Any], response: Any) -> Outcome:
    deltas = [event for event in events if event.type == "content_block_delta"]
    text = "".join([event.delta.text for event in deltas if event.delta.type == "text_delta"])
    calls = [event for event in deltas if event.delta.type == "input_json_delta"]
    return Outcome(text, parsed_arguments((call.index, call.delta.partial_json) for call in calls))


def _anthropic_final_outcome(events: list[Any], response: Any) -> Outcome:
    text = "".join(block.text for block in response.content if block.type == "text")
    return Outcome(text, [block.input for block in response.content if block.type == "tool_use"])


# --- openai ---


def openai_http() -> str:
    """The SDK's HTTP library: httpx2 since version 3, httpx before."""
    import openai

    return _library_of(openai.DefaultAsyncHttpxClient)


def openai_client(http: Any) -> Any:
    import openai

    return openai.AsyncOpenAI(api_key="none", http_client=http)


CHAT_REQUEST: Final[dict[str, Any]] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


async def _openai_chat(http: Any) -> OpenStream:
    completions = openai_client(http).chat.completions
    return OpenStream(aiter(await completions.create(**CHAT_REQUEST, stream=True)))


async def _openai_chat_stream(http: Any) -> OpenStream:
    stream = await openai_client(http).chat.completions.stream(**CHAT_REQUEST).__aenter__()
    return OpenStream(
        aiter(stream), stream.get_final_completion, lambda _: stream.current_completion_snapshot
    )


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
    responses = openai_client(http).responses
    return OpenStream(aiter(await responses.create(model="m", input="x", stream=True)))


async def _openai_responses_stream(http: Any) -> OpenStream:
    stream = await openai_client(http).responses.stream(model="m", input="x").__aenter__()
    # Its events have the text or arguments so far; its snapshot of the response is private.
    return OpenStream(
        aiter(stream), stream.get_final_response, lambda event: getattr(event, "snapshot", None)
    )


def _responses_outcome(events: list[Any], response: Any) -> Outcome:
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    calls = (event for event in events if event.type == "response.function_call_arguments.delta")
    return Outcome(text, parsed_arguments((event.output_index, event.delta) for event in calls))


def _responses_final_outcome(events: list[Any], response: Any) -> Outcome:
    calls = [item for item in response.output if item.type == "function_call"]
    return Outcome(response.output_text, [json.loads(call.arguments) for call in calls])


# --- google-genai, botocore ---


async def _google(http: Any) -> OpenStream:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(httpx_async_client=http, api_version="v1beta")
    models = genai.Client(api_key="none", http_options=options).aio.models
    return OpenStream(aiter(await models.generate_content_stream(model="m", contents="x")))


def _google_outcome(events: list[Any], response: Any) -> Outcome:
    parts = [part for event in events for part in event.candidates[0].content.parts]
    text = "".join(part.text or "" for part in parts if not part.thought)
    return Outcome(text, [part.function_call.args for part in parts if part.function_call])


async def _interactions(http: Any) -> OpenStream:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(httpx_async_client=http, api_version="v1beta")
    interactions = genai.Client(api_key="none", http_options=options).aio.interactions
    return OpenStream(aiter(await interactions.create(model="m", input="x", stream=True)))


def _interactions_outcome(events: list[Any], response: Any) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for event in events:
        if event.event_type != "step.delta":
            continue
        if event.delta.type == "text":
            texts.append(event.delta.text)
        elif event.delta.type == "arguments_delta":
            fragments.append((event.index, event.delta.arguments))
    return Outcome("".join(texts), parsed_arguments(fragments))


@cache
def _botocore_shape(operation: str) -> Any:
    import botocore.session

    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    members = model.operation_model(operation).output_shape.members
    return members.get("stream") or members["body"]


def _botocore_events(operation: str, chunks: list[bytes]) -> Any:
    from botocore.eventstream import EventStream
    from botocore.parsers import EventStreamJSONParser

    class Raw:
        def stream(self) -> Any:
            return iter(chunks)

        def close(self) -> None:
            """Does nothing: there is no connection."""

    return EventStream(Raw(), _botocore_shape(operation), EventStreamJSONParser(), operation)


def _converse_outcome(events: Iterable[Any]) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[int, str]] = []
    for event in events:
        block = event.get("contentBlockDelta")
        if block is None:
            continue
        texts.append(block["delta"].get("text", ""))
        if "toolUse" in block["delta"]:
            fragments.append((block["contentBlockIndex"], block["delta"]["toolUse"]["input"]))
    return Outcome("".join(texts), parsed_arguments(fragments))


def _invoke_events(chunks: list[bytes]) -> Iterator[Any]:
    for event in _botocore_events("InvokeModelWithResponseStream", chunks):
        yield json.loads(event["chunk"]["bytes"])


def _botocore(depth: Depth) -> tuple[Contestant, ...]:
    return (
        local(
            "botocore",
            "botocore",
            "converse",
            depth,
            lambda chunks: iter(_botocore_events("ConverseStream", chunks)),
            _converse_outcome,
        ),
        local("botocore + json", "botocore", "invoke", depth, _invoke_events, JOINED["messages"]),
    )


def sdk(
    name: str,
    wire: str,
    open_stream: Callable[[Any], Awaitable[OpenStream]],
    outcome: Callable[[list[Any], Any], Outcome],
    library: Callable[[], str] = lambda: "httpx2",
    *,
    distribution: str = "",
    depths: tuple[Depth, ...] = ("events", "response"),
) -> tuple[Contestant, ...]:
    """An SDK's stream as a contestant of each depth that it has.

    Args:
        name: name in tables; also the distribution, unless that is given.
        wire: wire that it reads.
        open_stream: see `peer`.
        outcome: see `peer`.
        library: see `peer`.
        distribution: name on the package index.
        depths: depths to make; for `response` without a response of the SDK, events are joined by
            hand.
    """
    made: list[Contestant] = []
    for depth in depths:
        made.append(peer(name, distribution or name, wire, depth, open_stream, outcome, library))
    return tuple(made)


_KEEPS_SNAPSHOTS: Final[tuple[Depth, ...]] = ("snapshots", "response")

PEERS: Final[tuple[Contestant, ...]] = (
    *sdk("anthropic", "messages", _anthropic_raw, _anthropic_outcome, anthropic_http),
    *sdk(
        "anthropic.stream",
        "messages",
        _anthropic_stream,
        _anthropic_final_outcome,
        anthropic_http,
        distribution="anthropic",
        depths=_KEEPS_SNAPSHOTS,
    ),
    *sdk("openai", "chat", _openai_chat, chat_outcome, openai_http),
    *sdk(
        "openai.stream",
        "chat",
        _openai_chat_stream,
        _chat_final_outcome,
        openai_http,
        distribution="openai",
        depths=_KEEPS_SNAPSHOTS,
    ),
    *sdk("openai", "responses", _openai_responses, _responses_outcome, openai_http),
    *sdk(
        "openai.stream",
        "responses",
        _openai_responses_stream,
        _responses_final_outcome,
        openai_http,
        distribution="openai",
        depths=_KEEPS_SNAPSHOTS,
    ),
    *sdk("google-genai", "gemini", _google, _google_outcome),
    *sdk("google-genai", "interactions", _interactions, _interactions_outcome),
    *_botocore("events"),
    *_botocore("response"),
)
"""Streams of the SDKs. If an SDK has no complete response, its events are joined by hand."""
