"""Promises 1, 2 and 8 in their long form: a stream may end or be split at every byte."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator
from itertools import cycle, pairwise
from typing import Any, Final

import anyio
import pytest

from streamlib.client.stream import ResponseStream
from streamlib_parsers import Completed, Failed, FunctionCall, OutputItemDone, parser
from streamlib_parsers.json_text import is_json
from tests.proof.streams import Stream, content_of, own, read, short, up_to
from tests.support.metrics import figure
from tests.support.partitions import split_at
from tests.support.response_bodies import (
    CALL,
    CREATED,
    DONE,
    LAST,
    arguments,
    calls,
    converse,
    finish,
    named,
    part,
    response_end,
    stop,
)

pytestmark = [pytest.mark.slow]

END: Final[dict[str, bytes]] = {
    "messages": rb"message_stop",
    "responses": rb"response\.(completed|incomplete)",
    "chat": rb'"finish_reason"\s*:\s*"|\[DONE\]',
    "gemini": rb"inish_?[rR]eason|lock_?[rR]eason",
    "converse": rb"messageStop",
    "ollama": rb'"done"\s*:\s*true',
    "invoke": rb'"bytes"',
}
"""What the bytes of a complete response must contain, checked without the parser.

Invoke hides it in base64.
"""


def is_false_completion(stream: Stream, body: bytes, events: list[Any]) -> bool:
    """Whether a truncated stream is reported as complete."""
    if not isinstance(events[-1], Completed):
        return False
    if re.search(END[stream.wire], body) is None:
        return True
    # Gemini has no terminator: what follows the last finishReason may be missing unnoticed.
    return stream.wire != "gemini" and content_of(events) != content_of(stream.events)


def terminal_count(events: list[Any]) -> int:
    """How many terminal events a stream has."""
    return sum(isinstance(event, (Completed, Failed)) for event in events)


def test_1_a_stream_truncated_at_any_byte_never_completes() -> None:
    wrong: list[str] = []
    for stream in up_to(180_000):
        for offset in range(len(stream.body)):
            body = stream.body[:offset]
            events = read(stream.wire, body)
            if terminal_count(events) != 1 or is_false_completion(stream, body, events):
                wrong.append(f"{stream.name} truncated at {offset}")
        figure("truncations", len(stream.body))
    figure("false completions", len(wrong))
    assert not wrong


async def reset_after(body: bytes) -> AsyncIterator[bytes]:
    """A connection that is reset after these bytes."""
    yield body
    raise ConnectionResetError


async def test_1_a_connection_reset_at_any_byte_never_completes() -> None:
    """Through the client's stream: the events and the response that the user sees."""
    wrong: list[str] = []
    for recorded in own():
        for offset in range(1, len(recorded.body), 3):
            body = recorded.body[:offset]
            async with ResponseStream.from_chunks(
                reset_after(body), parser(recorded.wire), errors="event"
            ) as stream:
                events = [event async for event in stream]
            if (
                terminal_count(events) != 1
                or is_false_completion(recorded, body, events)
                or (stream.response.status == "failed") != isinstance(events[-1], Failed)
            ):
                wrong.append(f"{recorded.name} reset at {offset}")
        figure("truncations", len(recorded.body) // 3)
    figure("false completions", len(wrong))
    assert not wrong


def test_2_events_are_the_same_for_a_million_partitions() -> None:
    """Every split in two of every recording of ours; then short responses of every wire in three
    chunks, at random offsets, until there are a million."""
    different: list[str] = []
    runs, rng = 0, random.Random(2)
    for stream in own():
        for offset in range(len(stream.body) + 1):
            if read(stream.wire, stream.body[:offset], stream.body[offset:]) != stream.events:
                different.append(f"{stream.name} at {offset}")
        runs += len(stream.body) + 1
    for stream in cycle(short()):
        pair = [rng.randint(0, len(stream.body)) for _ in range(2)]
        if read(stream.wire, *split_at(stream.body, pair)) != stream.events:
            different.append(f"{stream.name} at {pair}")
        runs += 1
        if runs >= 1_000_000:
            break
    figure("partitions", runs)
    figure("differences", len(different))
    assert not different


VALUES: Final = [
    {"city": "Paris", "days": 3},
    {"a": {"b": [1, 2.5, None, True], "c": 'é😀\n"quoted"'}, "d": []},
    {"path": "src/app.py", "content": "def f():\n    return {'x': [1, 2]}\n" * 6},
]


def call_streams(text: str, rng: random.Random) -> dict[str, tuple[bytes, bytes, bytes]]:
    """A call with these arguments in small fragments, on each wire that streams them.

    Per wire: what opens the call, the fragments, what ends it.
    """
    offsets = sorted(rng.randint(0, len(text)) for _ in range(6))
    fragments = [text[start:end] for start, end in pairwise([0, *offsets, len(text)])]
    first = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    item = {
        "type": "function_call",
        "id": "fc",
        "call_id": "c",
        "name": "f",
        "arguments": "",
        "status": "in_progress",
    }
    added = CREATED + named("response.output_item.added", output_index=0, item=item)
    done = named(
        "response.output_item.done",
        output_index=0,
        item={**item, "arguments": text, "status": "completed"},
    )
    opened = converse(
        "contentBlockStart", contentBlockIndex=0, start={"toolUse": {"toolUseId": "c", "name": "f"}}
    )
    deltas = [
        named(
            "response.function_call_arguments.delta", item_id="fc", output_index=0, delta=fragment
        )
        for fragment in fragments
    ]
    bedrock = [
        converse("contentBlockDelta", contentBlockIndex=0, delta={"toolUse": {"input": fragment}})
        for fragment in fragments
    ]
    closed = converse("contentBlockStop", contentBlockIndex=0) + converse(
        "messageStop", stopReason="tool_use"
    )
    chunks = [calls({"index": 0, "function": {"arguments": fragment}}) for fragment in fragments]
    return {
        "messages": (CALL, b"".join(map(arguments, fragments)), stop() + finish("tool_use") + LAST),
        "chat": (calls(first), b"".join(chunks), part(finish_reason="tool_calls") + DONE),
        "responses": (added, b"".join(deltas), done + response_end("completed")),
        "converse": (
            converse("messageStart", role="assistant") + opened,
            b"".join(bedrock),
            closed,
        ),
    }


LENGTH: Final[dict[str, bytes]] = {
    "messages": stop() + finish("max_tokens") + LAST,
    "chat": part(finish_reason="length") + DONE,
    "responses": response_end("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "converse": converse("contentBlockStop", contentBlockIndex=0)
    + converse("messageStop", stopReason="max_tokens"),
}
"""How each wire reports that the output limit was reached within a call."""


def incomplete_calls(events: list[Any]) -> int:
    """How many calls are reported as completed without complete arguments."""
    items = [
        event.item
        for event in events
        if isinstance(event, OutputItemDone) and isinstance(event.item, FunctionCall)
    ]
    return sum(item.status == "completed" and not is_json(item.arguments) for item in items)


def test_8_a_call_truncated_at_any_byte_is_never_completed() -> None:
    """By the end of the bytes, and by the output limit between two fragments."""
    rng, truncations, wrong = random.Random(8), 0, 0
    while truncations < 105_000:
        for value in VALUES:
            streams = call_streams(json.dumps(value, ensure_ascii=False), rng)
            for wire, (opening, deltas, ending) in streams.items():
                body = opening + deltas + ending
                for offset in range(len(opening), len(body)):
                    events = read(wire, body[:offset])
                    wrong += incomplete_calls(events) or terminal_count(events) != 1
                truncations += len(body) - len(opening)
                if wire == "converse":  # its binary frames have no such separator
                    continue
                for end in re.finditer(rb"\n\n", deltas):
                    body = opening + deltas[: end.end()] + LENGTH[wire]
                    wrong += incomplete_calls(read(wire, body))
                    truncations += 1
    figure("truncations", truncations)
    figure("incomplete calls", wrong)
    assert wrong == 0


def test_1_the_streams_complete_when_not_truncated() -> None:
    """Otherwise the truncations above would prove nothing."""
    assert all(isinstance(stream.events[-1], Completed) for stream in own())
    assert anyio.run(reset_at_the_end, own()[0]) == "completed"


async def reset_at_the_end(recorded: Stream) -> str:
    """The status of a response whose connection is reset after its end."""
    chunks = reset_after(recorded.body)
    async with ResponseStream.from_chunks(chunks, parser(recorded.wire)) as stream:
        async for _ in stream:
            pass
    return stream.response.status
