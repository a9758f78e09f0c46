"""A scripted provider that is not ours, asked through the whole client: one script, six wires.

What it answers stands in `aimock.json`, in chunks of seven UTF-16 units, so that emoji are cut in
half. It knows no model, so its usage is zeros, and Gemini's finish reasons are its own.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any, Final

import anyio
import httpx
import pytest

from streamlib import (
    Completed,
    Failed,
    FunctionCall,
    FunctionCallOutput,
    Message,
    OutputTextDelta,
    Prompt,
    ReasoningContentDelta,
    Response,
    StreamError,
    Text,
    ToolSpec,
    user,
)
from streamlib.client.retry import RetryPolicy
from streamlib.recording import Recorder
from tests.real.asking import PATHS, WEATHER, client, every
from tests.support.loops import asyncio_alone
from tests.support.partitions import byte_by_byte, every_single_split
from tests.support.wires import events_of

pytestmark = pytest.mark.real

MODEL: Final = "custom:scripted"
SCRIPT: Final[dict[str, Any]] = {"tools": [WEATHER]}
GREETING: Final = "Grüße, 世界! 👋🏽 How are 👩‍👩‍👧‍👦 and 𠮷野家 today?"
PARIS: Final = ("get_weather", {"city": "Paris", "days": 3})
TOKYO: Final = ("get_weather", {"city": "東京", "days": 1})

each_wire = pytest.mark.parametrize("wire", PATHS)


async def answer(wire: str, address: str, said: str, **options: Any) -> Response:
    """What comes of one message, however it ends."""
    async with client(wire, address, errors="event", **options) as asking:
        return await asking.respond(Prompt(said, **SCRIPT), MODEL)


def calls(response: Response) -> list[Any]:
    return [(call.name, call.parsed()) for call in response.calls if isinstance(call, FunctionCall)]


# --- what comes ---


@each_wire
async def test_text_arrives_in_deltas_that_are_all_valid_unicode(aimock: str, wire: str) -> None:
    async with client(wire, aimock) as asking:
        stream = asking.stream("hello", MODEL)
        events = await every(stream)
    deltas = [event.delta for event in events if type(event) is OutputTextDelta]
    assert isinstance(events[-1], Completed)
    assert (stream.response.text, stream.response.stop_reason) == (GREETING, "stop")
    assert "".join(deltas).encode() == GREETING.encode()
    assert len(deltas) > 5


@each_wire
async def test_reasoning_is_not_part_of_the_text(aimock: str, wire: str) -> None:
    async with client(wire, aimock) as asking:
        stream = asking.stream("think about it", MODEL)
        events = await every(stream)
    assert (stream.response.reasoning, stream.response.text) == ("Six by seven, or 🤔?", "42")
    order = [
        type(event) for event in events if type(event) in {ReasoningContentDelta, OutputTextDelta}
    ]
    assert order == sorted(order, key=[ReasoningContentDelta, OutputTextDelta].index)


@each_wire
async def test_a_call_arrives_complete_and_can_be_answered(aimock: str, wire: str) -> None:
    async with client(wire, aimock) as asking:
        first = await asking.respond(Prompt("weather?", **SCRIPT), MODEL)
        assert (calls(first), first.stop_reason, first.text) == ([PARIS], "tool_calls", "")
        history = (user("weather?"), *first.items, *(call.output("sunny") for call in first.calls))
        second = await asking.respond(Prompt(history, **SCRIPT), MODEL)
    assert (second.text, second.stop_reason, calls(second)) == (
        "Sunny, all three days.",
        "stop",
        [],
    )


@each_wire
async def test_parallel_calls_keep_their_arguments_apart(aimock: str, wire: str) -> None:
    response = await answer(wire, aimock, "compare")
    assert (calls(response), response.text, response.stop_reason) == (
        [PARIS, TOKYO],
        "Both at once.",
        "tool_calls",
    )
    assert len({call.call_id for call in response.calls}) == 2


@asyncio_alone
@pytest.mark.parametrize("wire", ["messages", "responses", "chat", "ollama"])
@pytest.mark.parametrize("said", ["hello", "think about it", "weather?", "compare"])
async def test_a_body_that_does_not_stream_has_the_same_content(
    aimock: str, wire: str, said: str
) -> None:
    """On the wires whose request says in its body whether to stream."""
    async with client(wire, aimock) as asking:
        whole = await asking.respond(Prompt(said, **SCRIPT, stream=False), MODEL)
        streamed = await asking.respond(Prompt(said, **SCRIPT), MODEL)
    assert facts(whole) == facts(streamed)


def facts(response: Response) -> Any:
    return response.status, response.text, response.reasoning, calls(response), response.stop_reason


# --- what goes ---

SETTINGS: Final[dict[str, Any]] = {
    "instructions": "Be brief.",
    "temperature": 0.5,
    "max_output_tokens": 99,
}
CONVERSATION: Final = (
    user("What is the weather in Paris and Tokyo?"),
    Message("assistant", [Text("I look.")]),
    FunctionCall("call1", "get_weather", '{"city": "Paris", "days": 3}'),
    FunctionCall("call2", "get_weather", '{"city": "東京", "days": 1}'),
    FunctionCallOutput("call1", "sunny"),
    FunctionCallOutput("call2", "rain 🌧"),
)
UNDERSTOOD: Final = [
    ("system", "Be brief."),
    ("user", "What is the weather in Paris and Tokyo?"),
    ("assistant", "I look."),
    PARIS,
    TOKYO,
    ("tool", "sunny"),
    ("tool", "rain 🌧"),
]


@asyncio_alone
@each_wire
async def test_a_conversation_is_understood_alike_on_every_wire(aimock: str, wire: str) -> None:
    """The provider translates every wire into its own form and keeps that in a journal: a reader of
    our requests that is not ours."""
    async with client(wire, aimock) as asking, httpx.AsyncClient() as http:
        stream = asking.stream(Prompt(CONVERSATION, **SCRIPT, **SETTINGS), MODEL)
        await every(stream)
        body = (await http.get(f"{aimock}/__aimock/journal")).json()[-1]["body"]
    assert stream.request is not None
    assert stream.request.report == []
    assert [one for message in body["messages"] for one in said(message)] == UNDERSTOOD
    assert [tool["function"]["name"] for tool in body["tools"]] == [WEATHER.name]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("scripted", 0.5, 99)


def said(message: Any) -> list[Any]:
    """One message of the journal: its text, then its calls. Gemini's results are objects; ours is
    their `output`."""
    text = message.get("content")
    if message["role"] == "tool" and text.startswith("{"):
        text = json.loads(text)["output"]
    named = [call["function"] for call in message.get("tool_calls", ())]
    return [
        *([(message["role"], text)] if text else []),
        *((call["name"], json.loads(call["arguments"])) for call in named),
    ]


@asyncio_alone
@each_wire
async def test_a_tool_with_a_rejected_name_keeps_its_original_name(aimock: str, wire: str) -> None:
    """The script is told to call what was sent."""
    odd = ToolSpec("wetter.für/morgen 🌦", "Weather", {"type": "object", "properties": {}})
    async with client(wire, aimock) as asking, httpx.AsyncClient() as http:
        stream = asking.stream(Prompt(f"tomorrow on {wire}", tools=[odd]), MODEL)
        assert stream.request is not None
        sent = next(iter(stream.request.names), odd.name)
        called = {
            "match": {"userMessage": f"tomorrow on {wire}"},
            "response": {"toolCalls": [{"name": sent, "arguments": {}}]},
        }
        (
            await http.post(f"{aimock}/__aimock/fixtures", json={"fixtures": [called]})
        ).raise_for_status()
        await every(stream)
    assert calls(stream.response) == [(odd.name, {})]
    assert sent.isascii()


# --- what goes wrong ---


@asyncio_alone
@each_wire
@pytest.mark.parametrize(
    ("said", "kind", "status", "retryable", "retry_after"),
    [
        ("nothing in the script", "not_found", 404, False, None),
        ("too many", "rate_limited", 429, True, 7.0),
        ("busy", "overloaded", 529, True, None),
    ],
)
async def test_an_error_has_its_kind(
    aimock: str,
    wire: str,
    said: str,
    kind: str,
    status: int,
    retryable: bool,
    retry_after: float | None,
) -> None:
    async with client(wire, aimock) as asking:
        with pytest.raises(StreamError) as raised:
            await asking.respond(Prompt(said, **SCRIPT), MODEL)
    info = raised.value.info
    assert (info.kind, info.status, info.retryable, info.retry_after) == (
        kind,
        status,
        retryable,
        retry_after,
    )
    assert info.message


@each_wire
async def test_what_fails_once_is_asked_again(aimock: str, wire: str) -> None:
    async with (
        client(wire, aimock, retry=RetryPolicy(retries=1, base=0.01)) as asking,
        httpx.AsyncClient() as http,
    ):
        await http.post(
            f"{aimock}/__aimock/error", json={"status": 503, "body": {"message": "Back soon."}}
        )
        stream = asking.stream("hello", MODEL)
        await every(stream)
    assert stream.response.text == GREETING
    assert [(failure.status, failure.retryable) for failure in stream.retried] == [(503, True)]


@each_wire
@pytest.mark.parametrize("said", ["cut", "half a call"])
async def test_truncated_response_is_an_error_with_what_arrived(
    aimock: str, wire: str, said: str
) -> None:
    """The server closes the connection after some chunks. On Gemini and Ollama a call is one chunk,
    whole before the cut."""
    async with client(wire, aimock, errors="event") as asking:
        stream = asking.stream(Prompt(said, **SCRIPT), MODEL)
        events = await every(stream)
    if said == "half a call" and wire in {"gemini", "ollama"}:
        assert [
            call.parsed()["days"]
            for call in stream.response.calls
            if isinstance(call, FunctionCall)
        ] == [3]
        return
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.error.kind == "truncated"
    assert stream.response.status == "failed"
    assert stream.response.items
    assert stream.response.items[-1].status == "incomplete"
    assert not stream.response.calls
    assert "This answer is cut off long before it comes to its end.".startswith(
        stream.response.text
    )


@each_wire
async def test_leaving_a_stream_does_not_wait_for_its_end(aimock: str, wire: str) -> None:
    """Seven characters a quarter of a second: the rest of the answer would take more than three."""
    async with client(wire, aimock, connections=1) as asking:
        stream = asking.stream("slowly", MODEL)
        async with stream:
            async for event in stream:
                if type(event) is OutputTextDelta:
                    left = anyio.current_time()
                    break
        assert (await asking.respond("hello", MODEL)).text == GREETING
        assert anyio.current_time() - left < 2.5
    assert stream.response.status == "cancelled"
    assert stream.response.text == "One wor"


# --- the bytes ---


@asyncio_alone
@each_wire
@pytest.mark.parametrize("said", ["hello", "think about it", "compare"])
async def test_response_is_the_same_for_any_split_of_its_bytes(
    aimock: str, wire: Any, said: str
) -> None:
    async with aclosing(Recorder()) as recorder, client(wire, aimock, http=recorder) as asking:
        await every(asking.stream(Prompt(said, **SCRIPT), MODEL))
    body = recorder.recordings[0].body
    whole = events_of(wire, body)
    for chunks in (byte_by_byte(body), *every_single_split(body, 150)):
        assert events_of(wire, *chunks) == whole
