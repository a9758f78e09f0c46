"""What the streams of a gateway hold together, and which end where that is too much."""

from __future__ import annotations

import anyio
import pytest

from streamlib.gateway.targets.memory import StreamMemory, size_of
from streamlib_parsers.events import MediaDelta, OutputTextDelta
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
from tests.support.response_bodies import HELLO, text


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


async def test_stream_gives_back_what_it_held() -> None:
    chunks = weather_chunks("messages")
    slow = stream_response("messages", *chunks[:-1], 0.3, chunks[-1])
    async with serving(Upstream(slow), rule("messages"), held_bytes=3000) as client:
        # Each is too small to be stopped alone: its share is all that there is.
        with anyio.fail_after(10):
            for _ in range(3):
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
