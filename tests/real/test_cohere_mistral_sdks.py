"""The official SDKs of Cohere and Mistral: clients of the loopback provider and of the gateway, and
readers of what our encoders write. They are in the extra `real`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import anyio.to_thread
import pytest

from lab.fidelity.cohere import REQUEST
from lab.fidelity.shapes import Array, Choice, Struct
from streamlib import FunctionCall, Message, accumulate, encode_all, encode_body, parse_body
from streamlib.testing import Behaviour, running
from tests.streamlib.wires.test_cross_wire import CASES, conversation, request_of
from tests.support.invariants import events_of
from tests.support.loops import asyncio_alone
from tests.support.shared import BODIES, STREAMS, recordings

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

ABSENT: Final = "real counterpart is absent: it is in the extra `real`"

SCHEMA: Final = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
}
TOOL: Final = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
HELLO: Final = {"role": "user", "content": "Weather?"}


async def in_thread(function: Callable[..., Any], **fields: Any) -> Any:
    """The SDKs' clients are synchronous, and the server runs on this loop."""
    return await anyio.to_thread.run_sync(partial(function, **fields))


def cohere_sdk() -> Any:
    # Not at the top of the file, which the default tests read too.
    return pytest.importorskip("cohere", reason=ABSENT)


def mistral_sdk() -> Any:
    return pytest.importorskip("mistralai.client", reason=ABSENT)


# --- Cohere ---


def cohere_client(url: str) -> Any:
    return cohere_sdk().ClientV2(api_key="none", base_url=url, max_retries=0)


def ask_cohere(url: str, *, stream: bool, **fields: Any) -> Any:
    client = cohere_client(url)
    fields = {"model": "command-a-reasoning-08-2025", **fields}
    return list(client.chat_stream(**fields)) if stream else client.chat(**fields)


def read_by_cohere(events: list[Any]) -> tuple[str, str, list[tuple[str, str]], str]:
    """Text, thinking, calls, and the finish reason, as the SDK's events have them."""
    text = thinking = reason = ""
    calls: dict[int, list[str]] = {}
    for event in events:
        match event.type:
            case "content-delta":
                text += event.delta.message.content.text or ""
                thinking += event.delta.message.content.thinking or ""
            case "tool-plan-delta":
                text += event.delta.message.tool_plan
            case "tool-call-start":
                calls[event.index] = [event.delta.message.tool_calls.function.name, ""]
            case "tool-call-delta":
                calls[event.index][1] += event.delta.message.tool_calls.function.arguments
            case "message-end":
                reason = event.delta.finish_reason
            case _:
                pass
    return text, thinking, [(name, arguments) for name, arguments in calls.values()], reason


@asyncio_alone
async def test_cohere_streams_calls_and_sends_them_back(anyio_backend: str) -> None:
    async with running(Behaviour(strict=True)) as url:
        common = {"url": url, "tools": [TOOL]}
        events = await in_thread(ask_cohere, stream=True, messages=[HELLO], **common)
        _, _, calls, reason = read_by_cohere(events)
        assert (calls[0][0], reason) == ("weather", "TOOL_CALL")
        whole = await in_thread(ask_cohere, stream=False, messages=[HELLO], **common)
        assert whole.finish_reason == "TOOL_CALL"
        result = {
            "role": "tool",
            "tool_call_id": whole.message.tool_calls[0].id,
            "content": [{"type": "document", "document": {"data": {"text": "3 degrees"}}}],
        }
        history = [HELLO, whole.message.model_dump(exclude_none=True), result]
        answer = await in_thread(ask_cohere, stream=False, messages=history, **common)
        assert answer.message.content[0].text or answer.message.tool_calls


@asyncio_alone
async def test_cohere_reads_our_errors(anyio_backend: str) -> None:
    bad_request = cohere_sdk().BadRequestError
    async with running(Behaviour(strict=True)) as url:
        with pytest.raises(bad_request) as refused:
            await in_thread(ask_cohere, url=url, stream=False, messages=[HELLO], p=2.0)
    assert "p is out of range" in str(refused.value.body)


def sdk_events(body: bytes) -> list[Any]:
    """What the SDK makes of the bytes of a stream."""
    import httpx

    def respond(request: Any) -> Any:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    http = httpx.Client(transport=httpx.MockTransport(respond))
    client = cohere_sdk().ClientV2(api_key="none", httpx_client=http)
    return list(client.chat_stream(model="m", messages=[HELLO]))


def streams() -> Iterator[tuple[str, list[Any], Any]]:
    """Recordings of every wire: their events, and the response."""
    for folder, wire in (
        ("anthropic-messages", "messages"),
        ("openai-responses", "responses"),
        ("openai-chat", "chat"),
        ("gemini-generatecontent", "gemini"),
        ("cohere-chat", "cohere"),
    ):
        for recording in recordings(folder, STREAMS)[:40]:
            events = events_of(wire, [recording.path.read_bytes()])
            response = accumulate(events)
            if response.status == "completed" and len(response.choices) == 1:
                yield f"{folder}/{recording.path.name}", events, response


def test_cohere_reads_our_streams_of_every_wire() -> None:
    read = 0
    for name, events, response in streams():
        text, thinking, calls, reason = read_by_cohere(sdk_events(encode_all("cohere", events)))
        ours = [
            (call.name, call.arguments) for call in response.calls if isinstance(call, FunctionCall)
        ]
        texts = [item.text for item in response.items if isinstance(item, Message)]
        assert "".join(text.split()) == "".join("".join(texts).split()) or response.refusal, name
        assert "".join(thinking.split()) == "".join(response.reasoning.split()), name
        assert [call for call in calls if call[0] in dict(ours)] == ours, name
        assert reason, name
        read += 1
    assert read > 100


def test_cohere_reads_our_bodies() -> None:
    cohere_sdk()
    from cohere.v2.types.v2chat_response import V2ChatResponse

    read = 0
    for recording in recordings("cohere-chat", BODIES):
        response = accumulate(parse_body("cohere", recording.path.read_bytes()))
        if response.status != "completed":
            continue
        body = V2ChatResponse.model_validate_json(encode_body("cohere", response))
        assert body.id == response.response_id
        contents = body.message.content or []
        texts = [content.text for content in contents if content.type == "text"]
        assert "".join([*texts, body.message.tool_plan or ""]).strip() == response.text.strip()
        read += 1
    assert read > 10


def test_our_requests_are_of_cohere_s_types() -> None:
    cohere_sdk()
    from cohere.types.chat_message_v2 import ChatMessageV2
    from cohere.types.tool_v2 import ToolV2
    from pydantic import TypeAdapter

    messages = TypeAdapter(list[ChatMessageV2])
    for wire, made in CASES.values():
        if wire != "cohere":
            continue
        body = json.loads(request_of(conversation(made), wire).body)
        for parsed, sent in zip(
            messages.validate_python(body["messages"]), body["messages"], strict=True
        ):
            assert parsed.model_dump(exclude_none=True) == sent
        TypeAdapter(list[ToolV2]).validate_python(body["tools"])


def test_fields_of_the_fidelity_table_are_the_sdk_s() -> None:
    """Invariant 12 draws from a table, written by hand: here is what it was written from."""
    types = cohere_sdk().types
    from cohere.v2.client import V2Client

    parameters = set(inspect.signature(V2Client.chat_stream).parameters) - {"self"}
    assert set(REQUEST.fields) - {"stream"} == parameters - {"request_options"}
    structs: dict[str, Struct] = {}
    waiting: list[Any] = [REQUEST]
    while waiting:
        shape = waiting.pop()
        match shape:
            case Struct():
                structs[shape.name] = shape
                waiting += [field.shape for field in shape.fields.values()]
            case Choice():
                waiting += shape.options
            case Array():
                waiting.append(shape.item)
            case _:
                pass
    checked = 0
    for name, struct in structs.items():
        kind = getattr(types, name, None)
        if hasattr(kind, "model_fields"):
            assert set(struct.fields) == set(kind.model_fields), name
            checked += 1
    assert checked >= 8


# --- Mistral ---


def ask_mistral(url: str, *, stream: bool, **fields: Any) -> Any:
    client = mistral_sdk().Mistral(api_key="none", server_url=url)
    fields = {"model": "mistral-medium-latest", **fields}
    if stream:
        return [event.data for event in client.chat.stream(**fields)]
    return client.chat.complete(**fields)


@asyncio_alone
async def test_mistral_streams_calls_and_sends_them_back(anyio_backend: str) -> None:
    async with running() as url:
        common = {"url": url, "tools": [TOOL]}
        chunks = await in_thread(ask_mistral, stream=True, messages=[HELLO], **common)
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        calls = [call for delta in deltas for call in delta.tool_calls or ()]
        assert calls[0].function.name == "weather"
        whole = await in_thread(ask_mistral, stream=False, messages=[HELLO], **common)
        message = whole.choices[0].message
        assert whole.choices[0].finish_reason == "tool_calls"
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "3 degrees"}
        history = [HELLO, message.model_dump(exclude_none=True), result]
        answer = await in_thread(ask_mistral, stream=False, messages=history, **common)
        assert answer.choices[0].message.content or answer.choices[0].message.tool_calls


@asyncio_alone
async def test_mistral_s_own_fields_are_taken(anyio_backend: str) -> None:
    document = {"type": "document_url", "document_url": "https://o.test/a.pdf"}
    message = {"role": "user", "content": [{"type": "text", "text": "?"}, document]}
    async with running() as url:
        whole = await in_thread(
            ask_mistral,
            url=url,
            stream=False,
            messages=[message],
            guardrails=[{"block_on_error": True}],
            prompt_cache_key="c",
            service_tier="auto",
            reasoning_effort="high",
        )
    assert whole.choices[0].message.content


def test_mistral_reads_our_streams_of_its_recordings() -> None:
    """What it wrote, read and written again by us, says the same to its own reader."""
    import httpx

    def chunks_of(body: bytes) -> list[Any]:
        def respond(request: Any) -> Any:
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

        http = httpx.Client(transport=httpx.MockTransport(respond))
        client = mistral_sdk().Mistral(api_key="none", client=http)
        return [event.data for event in client.chat.stream(model="m", messages=[HELLO])]

    read = 0
    for recording in recordings("openai-chat", STREAMS):
        if "mistral" not in recording.path.name:
            continue
        body = recording.path.read_bytes()
        response = accumulate(events_of("chat", [body]))
        if response.status != "completed" or response.reasoning or len(response.choices) > 1:
            continue
        events = events_of("chat", [body])
        chunks = chunks_of(encode_all("chat", events, names_in_deltas=True))
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert "".join(delta.content or "" for delta in deltas) == response.text
        names = [call.function.name for delta in deltas for call in delta.tool_calls or ()]
        ours = [call.name for call in response.calls if isinstance(call, FunctionCall)]
        assert [name for name in names if name] == ours
        read += 1
    assert read > 3
