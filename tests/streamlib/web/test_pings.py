"""Pings of `StreamResponse` and `iter_bytes` while a model is silent, in virtual time."""

from __future__ import annotations

import pytest

from streamlib.client.stream import ResponseStream
from streamlib.web import StreamResponse, iter_bytes
from tests.support.asgi_calls import AsgiCall
from tests.support.client_streams import FRAMES, stream_over
from tests.support.virtual_time import anyio_backend  # noqa: F401

SILENCES = (40.0, 20.0)
"""Seconds before the first event of the model, and in the middle of its text."""


def silent_model() -> ResponseStream:
    return stream_over(SILENCES[0], *FRAMES[:3], SILENCES[1], *FRAMES[3:])


@pytest.mark.parametrize("protocol", ["vercel", "agui", "jsonl"])
async def test_pings_come_every_fifteen_silent_seconds(protocol: str) -> None:
    """E5."""
    call = await AsgiCall()(StreamResponse(silent_model(), protocol))  # type: ignore[arg-type]
    pings: list[float] = []
    for message, sent_at in zip(call.messages, call.sent_at, strict=True):
        if message.get("body", b"").startswith((b": ", b"\n")):
            pings.append(sent_at - call.sent_at[0])
    # The response starts with the first ping, since the model has said nothing by then.
    assert pings == pytest.approx([0.0, 15.0, 40.0], abs=0.01)
    assert (call.status, call.is_complete) == (200, True)


async def test_pings_can_be_turned_off() -> None:
    call = await AsgiCall()(StreamResponse(silent_model(), "vercel", ping=None))
    assert b": " not in b"".join(line for line in call.body.splitlines() if line[:1] == b":")


async def test_a_stream_that_is_not_silent_gets_no_ping() -> None:
    busy: list[bytes | float] = []
    for frame in FRAMES:
        busy += [7.0, frame]
    call = await AsgiCall()(StreamResponse(stream_over(*busy), "vercel"))
    assert [line for line in call.body.splitlines() if line.startswith(b":")] == []


async def test_iterated_bytes_have_pings_too() -> None:
    async with iter_bytes(silent_model(), "vercel") as body:
        chunks = [chunk async for chunk in body]
    assert chunks[0] == chunks[1] == b": keep-alive\n\n"
    assert sum(chunk.startswith(b":") for chunk in chunks) == 3
    assert chunks[-1].endswith(b"data: [DONE]\n\n")
