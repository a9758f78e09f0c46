"""A real model behind llama.cpp's server, asked through the whole client: one history, three wires.

Nothing here waits for a clock. What the model writes is its own business; what is asserted is that
the client gives it whole.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import cache
from typing import Any, Final, NamedTuple

import anyio
import httpx
import pytest

from streamlib import (
    Client,
    Completed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    OutputTextDelta,
    Prompt,
    RateLimits,
    Reasoning,
    ReasoningContentDelta,
    Response,
    ResponseStream,
    StreamError,
    Usage,
    accumulate,
)
from streamlib.recording import Recorder, Recording
from tests.real.asking import EXAMPLES, PATHS, THOUGHTFUL, WEATHER, client, every, question
from tests.support.loops import asyncio_alone
from tests.support.partitions import byte_by_byte, every_single_split, random_partitions
from tests.support.wires import events_of

pytestmark = pytest.mark.real

WIRES: Final = ("messages", "chat", "responses")
MODEL: Final = "custom:smollm2"
EXACT: Final[dict[str, Any]] = {"tools": [WEATHER], "temperature": 0, "max_output_tokens": 64}
SHORT: Final = Prompt("Name three colours.", temperature=0, max_output_tokens=32)
"""Answered in twelve tokens; to most questions so small a model would talk on and on."""
CALL: Final = Prompt((*EXAMPLES, question("Paris", 3)), **EXACT)
THOUGHT: Final = Prompt((*THOUGHTFUL, question("Paris", 3)), **EXACT)
PROMPTS: Final = {"text": SHORT, "call": CALL, "thought": THOUGHT}
ENDLESS: Final = Prompt(
    "Count from one to a thousand.",
    temperature=0,
    max_output_tokens=900,
    extra={"ignore_eos": True},
)

each_wire = pytest.mark.parametrize("wire", WIRES)
each_prompt = pytest.mark.parametrize("name", PROMPTS)


class Recorded(NamedTuple):
    """An answer: its bytes, the events that the client gave, and the stream they came from."""

    recording: Recording
    events: list[Any]
    stream: ResponseStream

    @property
    def response(self) -> Response:
        return self.stream.response


@pytest.fixture(scope="module")
def recorded(llama: str) -> Callable[[str, str], Recorded]:
    """The answer to a prompt on a wire; each is asked for once."""

    async def ask(wire: str, name: str) -> Recorded:
        async with aclosing(Recorder()) as recorder, client(wire, llama, http=recorder) as asking:
            stream = asking.stream(PROMPTS[name], MODEL)
            events = await every(stream)
        return Recorded(recorder.recordings[0], events, stream)

    return cache(lambda wire, name: anyio.run(ask, wire, name))


async def answer(wire: str, address: str, prompt: Prompt, **options: Any) -> Response:
    async with client(wire, address, **options) as asking:
        return await asking.respond(prompt, MODEL)


def deltas(events: list[Any], kind: Any) -> str:
    return "".join(event.delta for event in events if isinstance(event, kind))


# --- what comes ---


@each_wire
async def test_text_arrives_token_by_token_and_complete(llama: str, wire: str) -> None:
    async with client(wire, llama) as asking:
        stream = asking.stream(SHORT, MODEL)
        events = await every(stream)
    response = stream.response
    assert isinstance(events[-1], Completed)
    assert sum(type(event) is OutputTextDelta for event in events) > 10
    assert response.text == deltas(events, OutputTextDelta) != ""
    assert (response.status, response.model, len(response.items)) == ("completed", "smollm2", 1)


@each_wire
async def test_a_call_arrives_complete_and_can_be_answered(llama: str, wire: str) -> None:
    async with client(wire, llama) as asking:
        stream = asking.stream(CALL, MODEL)
        events = await every(stream)
        (call,) = stream.response.calls
        assert isinstance(call, FunctionCall)
        assert (call.name, call.parsed()) == ("get_weather", {"city": "Paris", "days": 3})
        assert (stream.response.stop_reason, stream.response.unfinished) == ("tool_calls", True)
        assert call.arguments == deltas(events, FunctionCallArgumentsDelta)
        after = await asking.respond(
            Prompt((*CALL.items, *stream.response.items, call.output("sunny")), **EXACT), MODEL
        )
    assert (after.stop_reason, len(after.calls)) == ("stop", 0)
    assert "sunny" in after.text


@each_wire
async def test_reasoning_comes_before_its_call_and_apart_from_it(llama: str, wire: str) -> None:
    async with client(wire, llama) as asking:
        stream = asking.stream(THOUGHT, MODEL)
        events = await every(stream)
    response = stream.response
    assert [type(item) for item in response.items] == [Reasoning, FunctionCall]
    assert response.reasoning == deltas(events, ReasoningContentDelta)
    assert "Paris" in response.reasoning
    assert response.text == ""


@asyncio_alone
@each_wire
async def test_a_body_that_does_not_stream_has_the_same_content(llama: str, wire: str) -> None:
    streamed = await answer(wire, llama, THOUGHT)
    whole = await answer(wire, llama, Prompt(THOUGHT.input, **EXACT, stream=False))
    assert facts(whole) == facts(streamed)
    assert whole.status == streamed.status == "completed"


def facts(response: Response) -> Any:
    """What two answers of one model to one prompt have in common: no ids, no spaces between
    arguments, no count of what was cached."""
    calls = [
        (call.name, call.parsed()) for call in response.calls if isinstance(call, FunctionCall)
    ]
    usage = response.usage or Usage()
    return (
        response.reasoning.strip(),
        response.text,
        calls,
        response.stop_reason,
        usage.input_tokens,
        usage.output_tokens,
    )


# --- one history, three wires ---


@asyncio_alone
@pytest.mark.parametrize("name", ["call", "thought"])
async def test_one_history_makes_the_same_call_on_three_wires(llama: str, name: str) -> None:
    """The model cannot tell the wires apart: what the second and third ask is in its cache to the
    last token but one."""
    answers = [await answer(wire, llama, PROMPTS[name]) for wire in WIRES]
    assert [facts(one) for one in answers[1:]] == [facts(answers[0])] * 2
    assert [
        call.arguments for one in answers for call in one.calls if isinstance(call, FunctionCall)
    ] == ['{"city": "Paris", "days": 3}'] * 3
    for usage in (one.usage or Usage() for one in answers[1:]):
        assert usage.cache_read_input_tokens == (usage.input_tokens or 0) - 1


@asyncio_alone
@pytest.mark.parametrize(
    ("first", "second", "third"), [WIRES, WIRES[1:] + WIRES[:1], WIRES[2:] + WIRES[:2]]
)
async def test_a_conversation_continues_on_another_wire(
    llama: str, first: str, second: str, third: str
) -> None:
    history = list(CALL.items)
    called = await answer(first, llama, Prompt(history, **EXACT))
    history += [*called.items, *(call.output("sunny") for call in called.calls)]
    told = await answer(second, llama, Prompt(history, **EXACT))
    assert "sunny" in told.text
    history += [*told.items, question("Lima", 6)]
    last = await answer(third, llama, Prompt(history, **EXACT))
    assert [call.parsed() for call in last.calls if isinstance(call, FunctionCall)] == [
        {"city": "Lima", "days": 6}
    ]


# --- what is counted and measured ---


@each_wire
@each_prompt
def test_usage_and_timing_are_there(recorded: Any, wire: str, name: str) -> None:
    usage, timing = recorded(wire, name).response.usage, recorded(wire, name).response.timing
    assert min(usage.input_tokens, usage.output_tokens) > 0
    assert 0 <= usage.cache_read_input_tokens < usage.input_tokens
    assert 0 < timing.first_byte <= timing.first_token < timing.last
    assert min(timing.tokens_per_second, timing.longest_gap) > 0


@each_prompt
def test_input_tokens_are_all_that_the_server_counts(llama: str, recorded: Any, name: str) -> None:
    """On Messages the wire leaves cached tokens out of `input_tokens`; the server's own counter
    knows nothing of caches."""
    asked = recorded("messages", name)
    counted = httpx.post(f"{llama}/v1/messages/count_tokens", content=asked.stream.request.body)
    assert asked.response.usage.input_tokens == counted.json()["input_tokens"]


@pytest.mark.parametrize("wire", ["messages", "chat"])
async def test_a_response_that_reached_its_limit_reports_it(llama: str, wire: str) -> None:
    """Not on Responses: there llama.cpp calls an answer complete that it cut."""
    response = await answer(
        wire,
        llama,
        Prompt(
            "Count to a hundred.", temperature=0, max_output_tokens=5, extra={"ignore_eos": True}
        ),
    )
    assert (response.stop_reason, response.status) == ("length", "incomplete")
    assert response.usage is not None
    assert response.usage.output_tokens == 5


@each_wire
async def test_a_prompt_that_is_too_long_has_its_own_error(llama: str, wire: str) -> None:
    with pytest.raises(StreamError) as raised:
        await answer(wire, llama, Prompt("word " * 1_500))
    assert (raised.value.kind, raised.value.status, raised.value.retryable) == (
        "context_window_exceeded",
        400,
        False,
    )


# --- going away ---


@each_wire
@pytest.mark.parametrize("how", ["break", "cancel"])
async def test_leaving_a_stream_frees_the_connection_and_the_model(
    llama: str, wire: str, how: str
) -> None:
    async with client(wire, llama, connections=1) as asking:
        stream = asking.stream(ENDLESS, MODEL)
        with anyio.CancelScope() as scope:
            async with stream:
                async for event in stream:
                    if type(event) is OutputTextDelta and how == "break":
                        break
                    if type(event) is OutputTextDelta:
                        scope.cancel()
        assert stream.response.status == "cancelled"
        assert stream.response.text
        assert await tokens_when_idle(llama, 900) < 500, "of more than nine hundred"
        assert (await asking.respond(SHORT, MODEL)).status == "completed"


async def tokens_when_idle(address: str, limit: int) -> int:
    """Waits until the server computes nothing; then how far it had come with an answer of that
    limit, question and all."""
    async with httpx.AsyncClient() as http:
        with anyio.fail_after(60):
            while True:
                slots = (await http.get(f"{address}/slots")).json()
                if not any(slot["is_processing"] for slot in slots):
                    return max(
                        int(slot["n_prompt_tokens"])
                        for slot in slots
                        if slot.get("params", {}).get("max_tokens") == limit
                    )
                await anyio.sleep(0.01)


async def test_streams_at_once_do_not_mix(llama: str) -> None:
    """The server answers two at a time and lets the third wait."""
    cities: dict[str, str] = {}

    async def ask(asking: Client, wire: Any, city: str) -> None:
        prompt = Prompt((*EXAMPLES, question(city, 3)), **EXACT)
        response = await asking.respond(prompt, MODEL, wire_api=wire, base_url=llama + PATHS[wire])
        cities[city] = next(
            call.parsed()["city"] for call in response.calls if isinstance(call, FunctionCall)
        )

    async with client("messages", llama) as asking, anyio.create_task_group() as group:
        for wire, city in zip(WIRES, ("Paris", "Lima", "Madrid"), strict=True):
            group.start_soon(ask, asking, wire, city)
    assert cities == {"Paris": "Paris", "Lima": "Lima", "Madrid": "Madrid"}


# --- the bytes ---


@each_wire
@each_prompt
def test_response_is_the_same_for_any_split_of_its_bytes(
    recorded: Any, wire: Any, name: str
) -> None:
    recording, events, stream = recorded(wire, name)
    body, origin = recording.body, stream.request.origin
    whole = events_of(wire, body, origin=origin)
    assert [event for event in events if type(event) is not RateLimits] == whole
    for chunks in (
        byte_by_byte(body),
        *every_single_split(body, 100),
        *random_partitions(body, 20),
    ):
        assert events_of(wire, *chunks, origin=origin) == whole


@each_wire
@each_prompt
def test_prefix_of_its_bytes_is_never_a_complete_response(
    recorded: Any, wire: Any, name: str
) -> None:
    body, whole = recorded(wire, name).recording.body, facts(recorded(wire, name).response)
    for end in range(0, len(body), 13):
        part = accumulate(events_of(wire, body[:end]))
        assert part.status == "failed" or facts(part)[:3] == whole[:3], end
