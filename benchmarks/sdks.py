"""The official SDKs of Anthropic, OpenAI, Google, Cohere and AWS."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from benchmarks.contestants import Contestant, Outcome, local, parsed_arguments, peer
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

    return anthropic.AsyncAnthropic(api_key="none", http_client=http)


MESSAGES_REQUEST: Final[dict[str, Any]] = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "x"}],
}


async def _anthropic_raw(client: Any) -> AsyncIterator[Any]:
    return aiter(await client.messages.create(**MESSAGES_REQUEST, stream=True))


def _anthropic_outcome(events: list[Any]) -> Outcome:
    deltas = [event for event in events if event.type == "content_block_delta"]
    text = "".join([event.delta.text for event in deltas if event.delta.type == "text_delta"])
    calls = [event for event in deltas if event.delta.type == "input_json_delta"]
    return Outcome(text, parsed_arguments((call.index, call.delta.partial_json) for call in calls))


# --- openai ---


def openai_http() -> str:
    """The SDK's HTTP library: httpx2 since version 3, httpx before."""
    import openai

    return _library_of(openai.DefaultAsyncHttpxClient)


def _openai(http: Any) -> Any:
    import openai

    return openai.AsyncOpenAI(api_key="none", http_client=http)


CHAT_REQUEST: Final[dict[str, Any]] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


async def _openai_chat(client: Any) -> AsyncIterator[Any]:
    return aiter(await client.chat.completions.create(**CHAT_REQUEST, stream=True))


def _chat_outcome(events: list[Any]) -> Outcome:
    first = [choice for event in events for choice in event.choices if not choice.index]
    deltas = [choice.delta for choice in first if choice.delta]
    text = "".join(delta.content or "" for delta in deltas)
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    fragments = ((call.index, call.function.arguments or "") for call in calls)
    return Outcome(text, parsed_arguments(fragments))


async def _openai_responses(client: Any) -> AsyncIterator[Any]:
    return aiter(await client.responses.create(model="m", input="x", stream=True))


def _responses_outcome(events: list[Any]) -> Outcome:
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    calls = (event for event in events if event.type == "response.function_call_arguments.delta")
    return Outcome(text, parsed_arguments((event.output_index, event.delta) for event in calls))


# --- cohere ---


def _cohere(http: Any) -> Any:
    import cohere

    return cohere.AsyncClientV2(api_key="none", httpx_client=http)


async def _cohere_chat(client: Any) -> AsyncIterator[Any]:
    return aiter(client.chat_stream(model="m", messages=CHAT_REQUEST["messages"]))


def _cohere_outcome(events: list[Any]) -> Outcome:
    texts: list[str] = []
    fragments: list[tuple[Any, str]] = []
    for event in events:
        if event.type == "content-delta":
            texts.append(event.delta.message.content.text or "")
        elif event.type == "tool-plan-delta":
            texts.append(event.delta.message.tool_plan)
        elif event.type == "tool-call-delta":
            function = event.delta.message.tool_calls.function
            fragments.append((event.index, function.arguments))
    return Outcome("".join(texts), parsed_arguments(fragments))


# --- google-genai, botocore ---


def _google(http: Any) -> Any:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(httpx_async_client=http, api_version="v1beta")
    return genai.Client(api_key="none", http_options=options).aio


async def _google_contents(client: Any) -> AsyncIterator[Any]:
    return aiter(await client.models.generate_content_stream(model="m", contents="x"))


def _google_outcome(events: list[Any]) -> Outcome:
    parts = [part for event in events for part in event.candidates[0].content.parts]
    text = "".join(part.text or "" for part in parts if not part.thought)
    return Outcome(text, [part.function_call.args for part in parts if part.function_call])


async def _google_interactions(client: Any) -> AsyncIterator[Any]:
    return aiter(await client.interactions.create(model="m", input="x", stream=True))


def _interactions_outcome(events: list[Any]) -> Outcome:
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


def sdk(
    name: str,
    wire: str,
    client_of: Callable[[Any], Any],
    open_stream: Callable[[Any], Awaitable[AsyncIterator[Any]]],
    outcome: Callable[[list[Any]], Outcome],
    library: Callable[[], str] = lambda: "httpx2",
) -> tuple[Contestant, Contestant]:
    """An SDK's stream without and with making its request, as `peer`."""
    key = (name, name, wire, client_of, open_stream, outcome, library)
    return peer(*key), peer(*key, with_request=True)


PEERS: Final[tuple[Contestant, ...]] = (
    *sdk("anthropic", "messages", _anthropic, _anthropic_raw, _anthropic_outcome, anthropic_http),
    *sdk("openai", "chat", _openai, _openai_chat, _chat_outcome, openai_http),
    *sdk("openai", "responses", _openai, _openai_responses, _responses_outcome, openai_http),
    *sdk("google-genai", "gemini", _google, _google_contents, _google_outcome),
    *sdk("google-genai", "interactions", _google, _google_interactions, _interactions_outcome),
    *sdk("cohere", "cohere", _cohere, _cohere_chat, _cohere_outcome, lambda: "httpx"),
    local(
        "botocore",
        "botocore",
        "converse",
        lambda chunks: iter(_botocore_events("ConverseStream", chunks)),
        _converse_outcome,
    ),
    local("botocore + json", "botocore", "invoke", _invoke_events, JOINED["messages"]),
)
"""Streams of the SDKs. Their events are joined by hand, only to compare what was read."""
