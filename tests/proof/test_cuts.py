"""Promises 1, 2 and 8 in their long form: every byte is a place to end, and a place to cut."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator
from itertools import cycle
from typing import Any, Final

import anyio
import pytest

from streamlib.client.stream import ResponseStream
from streamlib_parsers import Completed, Failed, FunctionCall, OutputItemDone, parser
from streamlib_parsers.json_text import is_json
from tests.proof.streams import Stream, own, read, said, short, up_to
from tests.support.metrics import figure
from tests.support.partitions import cut_at
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
"""What must stand in bytes that pass for a whole answer, found by other means than the parser (invoke hides it in base64)."""


def false_end(one: Stream, body: bytes, events: list[Any]) -> bool:
    """Whether a part of a stream passes for all of it."""
    if not isinstance(events[-1], Completed):
        return False
    ended = re.search(END[one.wire], body) is not None
    return not ended or (one.wire != "gemini" and said(events) != said(one.events))


def ends(events: list[Any]) -> int:
    """How many terminals a stream has."""
    return sum(isinstance(event, (Completed, Failed)) for event in events)


def test_1_a_stream_truncated_at_any_byte_never_completes() -> None:
    false: list[str] = []
    for one in up_to(180_000):
        for place in range(len(one.body)):
            body = one.body[:place]
            events = read(one.wire, body)
            if ends(events) != 1 or false_end(one, body, events):
                false.append(f"{one.name} cut at {place}")
        figure("cuts", len(one.body))
    figure("false ends", len(false))
    assert not false


async def broken(body: bytes) -> AsyncIterator[bytes]:
    """A connection that is reset after these bytes."""
    yield body
    raise ConnectionResetError


async def test_1_a_connection_reset_at_any_byte_never_completes() -> None:
    """Through the client's stream: the events and the response that the user sees."""
    false: list[str] = []
    for one in own():
        for place in range(1, len(one.body), 3):
            body = one.body[:place]
            async with ResponseStream.from_chunks(
                broken(body), parser(one.wire), errors="event"
            ) as stream:
                events = [event async for event in stream]
            if (
                ends(events) != 1
                or false_end(one, body, events)
                or (stream.response.status == "failed") != isinstance(events[-1], Failed)
            ):
                false.append(f"{one.name} reset at {place}")
        figure("cuts", len(one.body) // 3)
    figure("false ends", len(false))
    assert not false


def test_2_events_are_the_same_for_a_million_partitions() -> None:
    """Every single cut of every recording of ours; then short answers of every wire in three pieces, at random, until it is a million."""
    different: list[str] = []
    runs, rng = 0, random.Random(2)
    for one in own():
        places = range(len(one.body) + 1)
        different += [
            f"{one.name} at {at}"
            for at in places
            if read(one.wire, one.body[:at], one.body[at:]) != one.events
        ]
        runs += len(one.body) + 1
    for one in cycle(short()):
        pair = [rng.randint(0, len(one.body)) for _ in range(2)]
        if read(one.wire, *cut_at(one.body, pair)) != one.events:
            different.append(f"{one.name} at {pair}")
        runs += 1
        if runs >= 1_000_000:
            break
    figure("split runs", runs)
    figure("differences", len(different))
    assert not different


VALUES: Final = [
    {"city": "Paris", "days": 3},
    {"a": {"b": [1, 2.5, None, True], "c": 'é😀\n"quoted"'}, "d": []},
    {"path": "src/app.py", "content": "def f():\n    return {'x': [1, 2]}\n" * 6},
]


def call_streams(text: str, rng: random.Random) -> dict[str, tuple[bytes, bytes, bytes]]:
    """A call with these arguments in small pieces on each wire that drips them: what opens it, the pieces, what ends it."""
    cuts = sorted(rng.randint(0, len(text)) for _ in range(6))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
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
    dripped = [
        named("response.function_call_arguments.delta", item_id="fc", output_index=0, delta=piece)
        for piece in pieces
    ]
    bedrock = [
        converse("contentBlockDelta", contentBlockIndex=0, delta={"toolUse": {"input": piece}})
        for piece in pieces
    ]
    closed = converse("contentBlockStop", contentBlockIndex=0) + converse(
        "messageStop", stopReason="tool_use"
    )
    chunks = [calls({"index": 0, "function": {"arguments": piece}}) for piece in pieces]
    return {
        "messages": (CALL, b"".join(map(arguments, pieces)), stop() + finish("tool_use") + LAST),
        "chat": (calls(first), b"".join(chunks), part(finish_reason="tool_calls") + DONE),
        "responses": (added, b"".join(dripped), done + response_end("completed")),
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
"""How each wire says that the model was stopped in mid-call."""


def broken_calls(events: list[Any]) -> int:
    """Calls that were given as whole and are not."""
    items = [
        event.item
        for event in events
        if isinstance(event, OutputItemDone) and isinstance(event.item, FunctionCall)
    ]
    return sum(item.status == "completed" and not is_json(item.arguments) for item in items)


def test_8_a_call_truncated_at_any_byte_is_never_completed() -> None:
    """By the end of the bytes, and by a model that ran out of tokens between two pieces."""
    rng, cut, wrong = random.Random(8), 0, 0
    while cut < 105_000:
        for value in VALUES:
            for wire, (opening, pieces, ending) in call_streams(
                json.dumps(value, ensure_ascii=False), rng
            ).items():
                body = opening + pieces + ending
                for place in range(len(opening), len(body)):
                    events = read(wire, body[:place])
                    wrong += broken_calls(events) or ends(events) != 1
                for end in re.finditer(rb"\n\n", pieces) if wire != "converse" else ():
                    wrong += broken_calls(read(wire, opening + pieces[: end.end()] + LENGTH[wire]))
                    cut += 1
                cut += len(body) - len(opening)
    figure("cuts", cut)
    figure("broken calls", wrong)
    assert wrong == 0


def test_1_the_streams_complete_when_not_truncated() -> None:
    """Otherwise the cuts above would show nothing."""
    assert all(isinstance(one.events[-1], Completed) for one in own())
    assert anyio.run(reset_at_the_end, own()[0]) == "completed"


async def reset_at_the_end(one: Stream) -> str:
    """A reset after the whole answer does not spoil it."""
    async with ResponseStream.from_chunks(broken(one.body), parser(one.wire)) as stream:
        async for _ in stream:
            pass
    return stream.response.status
