"""What the streams of a gateway hold together, and which end where that is too much."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec
import pytest

from streamlib.gateway.targets.memory import HeldBatches, StreamMemory, size_of
from streamlib_parsers.events import MediaDelta, OutputItemDone, OutputTextDelta, ResponseEvent
from streamlib_parsers.items import Message, Text, WireApi
from tests.support.gateways import (
    Upstream,
    common_fields,
    parse_stream,
    read,
    rule,
    send,
    serving,
    stream_or_body,
    stream_response,
    weather_chunks,
    weather_prompt,
    weather_response,
)
from tests.support.response_bodies import HELLO, START, text


@stream_or_body
async def test_endless_text_ends_and_others_go_on(stream: bool) -> None:
    endless = stream_response("messages", HELLO, *[text("word " * 2000)] * 200, 0.2, text("no end"))
    short = weather_response("messages")
    async with serving(Upstream(endless), rule("messages"), held_bytes=1 << 20) as client:
        response = await send(client, "chat", weather_prompt(), stream=stream)
        failed = read("chat", response, stream=stream)
        assert failed.error is not None
        assert "streams of this gateway hold more than 1 MiB" in failed.error.message
        assert len(response.content) < 3 << 20
    async with serving(Upstream(short), rule("messages"), held_bytes=1 << 20) as client:
        for _ in range(100):
            response = await send(client, "chat", weather_prompt())
            expected = common_fields(parse_stream("messages", *weather_chunks("messages")))
            assert common_fields(read("chat", response)) == expected


def frame(name: str, **fields: Any) -> bytes:
    data = msgspec.json.encode({"type": name, **fields}).decode()
    return f"event: {name}\ndata: {data}\n\n".encode()


def block_of(index: int, **fields: Any) -> bytes:
    start = frame("content_block_start", index=index, content_block=fields)
    return start + frame("content_block_stop", index=index)


def results() -> list[bytes]:
    """What a tool of the provider has found, again and again."""
    found = [{"type": "web_search_result", "encrypted_content": "x" * 20_000}]
    kind = "web_search_tool_result"
    return [block_of(n, type=kind, tool_use_id="t", content=found) for n in range(1, 200)]


def unknown_blocks() -> list[bytes]:
    return [block_of(n, type="future_block", data="x" * 20_000) for n in range(1, 200)]


def citations() -> list[bytes]:
    citation = {"type": "web_search_result_location", "cited_text": "x" * 500}
    delta = {"type": "citations_delta", "citation": citation}
    start = frame("content_block_start", index=0, content_block={"type": "text", "text": ""})
    return [start, *[frame("content_block_delta", index=0, delta=delta)] * 5000]


@pytest.mark.parametrize("wire", ["messages", "responses"])
@pytest.mark.parametrize("endless", [results, unknown_blocks, citations])
async def test_endless_output_of_any_kind_ends(wire: WireApi, endless: Any) -> None:
    response = stream_response("messages", START, *endless())
    async with serving(Upstream(response), rule("messages"), held_bytes=1 << 20) as client:
        sent = await send(client, wire, weather_prompt())
    error = parse_stream(wire, sent.content).error
    assert error is not None
    assert "streams of this gateway hold more than 1 MiB" in error.message
    assert len(sent.content) < 3 << 20


async def test_item_is_counted_once() -> None:
    """Its end adds nothing to its deltas."""
    item = Message("assistant", (Text("word " * 200),))
    deltas = [OutputTextDelta(0, 0, "word ") for _ in range(200)]

    used: list[int] = []

    async def batches() -> AsyncIterator[list[ResponseEvent]]:
        yield [*deltas]
        used.append(memory.used)
        yield [OutputItemDone(0, item)]
        used.append(memory.used)

    memory = StreamMemory()
    held = HeldBatches(batches(), memory)
    async for _ in held:
        pass
    assert used[0] == used[1] > 2000
    held.close()
    assert (memory.used, memory.streams) == (0, 0)
    deltas = deltas[:1]
    async for _ in HeldBatches(batches(), memory):
        pass
    # What its deltas did not have is counted at its end.
    assert used[3] == size_of(OutputItemDone(0, item))


async def test_stream_gives_back_what_it_held() -> None:
    chunks = weather_chunks("messages")
    slow = stream_response("messages", *chunks[:-1], 0.3, chunks[-1])
    async with serving(Upstream(slow), rule("messages"), held_bytes=10_000) as client:
        # Each is too small to be stopped alone: its share is all that there is.
        with anyio.fail_after(10):
            for _ in range(3):
                response = await send(client, "chat", weather_prompt())
                assert read("chat", response).error is None
    quick = stream_response("messages", *chunks)
    async with serving(Upstream(quick), rule("messages"), held_bytes=10_000) as client:
        for _ in range(30):
            response = await send(client, "chat", weather_prompt())
            assert read("chat", response).error is None


@pytest.mark.parametrize(("size", "has_failed"), [(49, False), (51, True)])
def test_stream_above_its_share_ends(size: int, has_failed: bool) -> None:
    memory = StreamMemory(100)
    memory.used, memory.streams = 101, 2
    assert (memory.failure_of(size) is not None) == has_failed
    memory.used = 100
    assert memory.failure_of(size) is None


def test_size_counts_text_and_media() -> None:
    assert size_of(OutputTextDelta(0, 0, "x" * 1000)) > 2000
    assert size_of(MediaDelta(0, 0, "image/png", "x" * 1000)) > 2000
