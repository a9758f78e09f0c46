"""A stream for each item: in order, at once, where the stream fails or ends early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from streamlib.pipeline import pipe
from streamlib.pipeline.item_streams import ItemStream, items
from streamlib_parsers.events import (
    Completed,
    Created,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
)
from streamlib_parsers.items import FunctionCall, Message, Text
from streamlib_parsers.stream_error import StreamError
from tests.streamlib.pipeline.test_starts import BUSY, Scripted

pytestmark = pytest.mark.anyio

MESSAGE, CALL = Message("assistant", (Text("Hi"),)), FunctionCall("c", "f", "{}")
TEXT: list[ResponseEvent] = [
    OutputItemAdded(0, Message("assistant", ())),
    OutputTextDelta(0, 0, "H"),
    OutputTextDelta(0, 0, "i"),
    OutputItemDone(0, MESSAGE),
]
ARGUMENTS: list[ResponseEvent] = [
    OutputItemAdded(1, FunctionCall("c", "f", "")),
    FunctionCallArgumentsDelta(1, "{"),
    FunctionCallArgumentsDelta(1, "}"),
    OutputItemDone(1, CALL),
]
OVERLAPPING: list[ResponseEvent] = [
    event for pair in zip(TEXT, ARGUMENTS, strict=True) for event in pair
]
ENDS: tuple[ResponseEvent, ResponseEvent] = (Created("r", "m"), Completed("r", "m", "stop"))


@pytest.mark.parametrize("events", [TEXT + ARGUMENTS, OVERLAPPING], ids=["in turn", "overlapping"])
async def test_items_come_in_the_order_of_their_beginnings(events: list[ResponseEvent]) -> None:
    seen: list[tuple[int, list[ResponseEvent], Any]] = []
    async for item in items(Scripted(ENDS[0], *events, ENDS[1])):
        own = [event async for event in item]
        seen.append((item.index, own, item.item))
    assert seen == [(0, TEXT, MESSAGE), (1, ARGUMENTS, CALL)]


async def test_item_has_its_text() -> None:
    texts = [
        [text async for text in item.text()] async for item in items(Scripted(*TEXT, *ARGUMENTS))
    ]
    assert texts == [["H", "i"], ["{", "}"]]


async def test_items_are_read_at_once() -> None:
    seen: dict[int, list[ResponseEvent]] = {}

    async def read(item: ItemStream) -> None:
        seen[item.index] = [event async for event in item]

    async with anyio.create_task_group() as group:
        async for item in items(Scripted(*OVERLAPPING)):
            group.start_soon(read, item)
    assert seen == {0: TEXT, 1: ARGUMENTS}


async def test_item_that_is_not_read_hides_no_other() -> None:
    found = [item async for item in items(Scripted(*OVERLAPPING))]
    assert [event async for event in found[1]] == ARGUMENTS


async def test_failure_is_raised_behind_the_events_before_it() -> None:
    stream = items(Scripted(*TEXT[:2], StreamError(BUSY)))
    item = await anext(stream)
    assert [await anext(item), await anext(item)] == TEXT[:2]
    with pytest.raises(StreamError, match="busy"):
        await anext(item)
    with pytest.raises(StreamError, match="busy"):
        await anext(stream)


def test_failure_is_raised_for_every_sync_item() -> None:
    """The second one seemed complete, and so did the stream."""

    def events() -> Iterator[ResponseEvent]:
        yield from OVERLAPPING[:4]
        raise StreamError(BUSY)

    with pipe(events()) as piped:
        stream = piped.items()
        readers: list[Iterator[Any]] = [next(stream), next(stream), stream]
        for reader in readers:
            with pytest.raises(StreamError, match="busy"):
                list(reader)


async def test_item_ends_with_a_stream_that_ends_early() -> None:
    [item] = [item async for item in items(Scripted(*TEXT[:2]))]
    assert [event async for event in item] == TEXT[:2]


async def test_pipeline_has_items() -> None:
    async with pipe(Scripted(ENDS[0], *TEXT, ENDS[1])) as stream:
        assert [item.index async for item in stream.items()] == [0]
        assert stream.response.text == "Hi"


@pytest.mark.parametrize("events", [TEXT + ARGUMENTS, OVERLAPPING], ids=["in turn", "overlapping"])
def test_sync_stream_has_items(events: list[ResponseEvent]) -> None:
    with pipe([ENDS[0], *events, ENDS[1]]) as stream:
        seen = [(item.index, list(item), item.item) for item in stream.items()]
    assert seen == [(0, TEXT, MESSAGE), (1, ARGUMENTS, CALL)]


def test_sync_item_has_its_text() -> None:
    with pipe(OVERLAPPING) as stream:
        assert [list(item.text()) for item in stream.items()] == [["H", "i"], ["{", "}"]]
