"""`stream.text` and `client.text`: the text alone, and exceptions where it is not all there is."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib.testing import strategies
from streamlib_parsers import Completed, OutputTextDelta, parser
from streamlib_parsers.stream_error import StreamError
from tests.support.client_streams import FRAMES, stream_over
from tests.support.clients import MemoryTransport, make_client, make_request
from tests.support.response_bodies import (
    CALL,
    CHAT,
    CREATED,
    DONE,
    HELLO,
    HELLO_TEXT,
    LAST,
    MESSAGE,
    OPENED,
    START,
    arguments,
    block,
    finish,
    frames_of,
    named,
    part,
    response_end,
    stop,
    text,
)
from tests.support.scripted_server import HANG, chunk, head, scripted

THOUGHT = named(
    "content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "secretly"}
)
REFUSED = CREATED + response_end(
    "completed",
    output=[
        {
            "type": "message",
            "role": "assistant",
            "id": "m",
            "content": [{"type": "refusal", "refusal": "I cannot."}],
        }
    ],
)


async def texts(stream: Any) -> list[str]:
    """What `stream.text()` delivers."""
    async with stream:
        return [text async for text in stream.text()]


# --- stream.text ---


async def test_stream_text_delivers_each_delta_as_it_arrives() -> None:
    assert await texts(stream_over(*FRAMES)) == ["Hello", " there"]


async def test_stream_text_leaves_out_reasoning_and_calls() -> None:
    frames = [START, block(0, "thinking", thinking=""), THOUGHT, stop()]
    frames += [block(1), text("Hi", 1), stop(1)]
    frames += [block(2, "tool_use", id="t", name="f", input={}), arguments("{}", 2), stop(2)]
    stream = stream_over(*frames, finish("tool_use"), LAST)
    assert await texts(stream) == ["Hi"]
    assert stream.response.reasoning == "secretly"


async def test_stream_text_leaves_out_refusals() -> None:
    stream = stream_over(REFUSED, wire="responses")
    assert await texts(stream) == []
    assert stream.response.refusal == "I cannot."


async def test_stream_text_is_that_of_the_first_choice() -> None:
    def choice(index: int, content: str) -> bytes:
        return part(choices=[{"index": index, "delta": {"content": content}}])

    ends = [{"index": index, "delta": {}, "finish_reason": "stop"} for index in (0, 1)]
    chunks = [choice(0, "a"), choice(1, "x"), choice(0, "b"), part(choices=ends), DONE]
    stream = stream_over(*chunks, wire="chat")
    assert "".join(await texts(stream)) == stream.response.text == "ab"


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_stream_text_raises_when_truncated(errors: Any) -> None:
    async with stream_over(HELLO, errors=errors) as stream:
        deltas = stream.text()
        assert [await anext(deltas), await anext(deltas)] == ["Hello", " there"]
        with pytest.raises(StreamError) as raised:
            await anext(deltas)
    assert raised.value.kind == "truncated"
    assert raised.value.response is not None
    assert raised.value.response.text == HELLO_TEXT


async def test_events_can_be_read_before_and_after_text() -> None:
    async with stream_over(*FRAMES) as stream:
        async for event in stream:
            if isinstance(event, OutputTextDelta):
                break
        assert await anext(stream.text()) == " there"
        rest = [event async for event in stream]
    assert isinstance(rest[-1], Completed)


async def test_stream_text_never_lets_the_response_run_ahead() -> None:
    given_so_far = ""
    async with stream_over(MESSAGE) as stream:
        async for text in stream.text():
            given_so_far += text
            assert stream.response.text == given_so_far
    assert given_so_far == HELLO_TEXT


async def test_break_of_a_text_loop_closes_the_socket() -> None:
    async with (
        scripted([head(), *[chunk(frame) for frame in frames_of(3)[:3]], HANG]) as server,
        make_client(server.url) as client,
    ):
        with anyio.fail_after(5):
            async with client.stream(make_request(server.url)) as stream:
                async for _ in stream.text():
                    break
            await server.quiet()
        assert server.open == 0
    assert stream.response.status == "cancelled"
    assert stream.response.text == "word 0 "


async def test_cancelled_text_loop_closes_the_socket() -> None:
    async with (
        scripted([head(), chunk(OPENED), HANG]) as server,
        make_client(server.url) as client,
    ):
        stream = client.stream(make_request(server.url))
        with anyio.fail_after(5):
            with anyio.move_on_after(0.05):
                async with stream:
                    async for _ in stream.text():
                        pass
            await server.quiet()
        assert server.open == 0
    assert stream.response.status == "cancelled"


@given(st.data())
def test_texts_join_to_the_text_of_the_response(data: st.DataObject) -> None:
    wire_api = data.draw(strategies.wires())
    body = data.draw(strategies.streams(wire_api))
    backend = data.draw(st.sampled_from(["asyncio", "trio"]))

    async def compare() -> None:
        stream = stream_over(body, wire=wire_api)
        seen = ""
        with suppress(StreamError):
            async with stream:
                async for text in stream.text():
                    seen += text
        text = stream.response.text
        if _is_in_order(wire_api, body):
            assert seen == text
        else:
            # Texts of items that overlap arrive as the provider sent them.
            assert sorted(seen) == sorted(text)

    anyio.run(compare, backend=backend)


def _is_in_order(wire_api: Any, body: bytes) -> bool:
    """Whether the text of each item and part is complete before the next one begins."""
    wire_parser = parser(wire_api)
    events = wire_parser.feed(body) + wire_parser.close()
    deltas = [event for event in events if isinstance(event, OutputTextDelta)]
    places = [(delta.index, delta.content_index) for delta in deltas]
    return places == sorted(places)


# --- client.text ---


async def client_text(*chunks: bytes, wire: Any = "messages", **options: Any) -> str:
    """`client.text` over a response from memory."""
    client = make_client("http://m", MemoryTransport(chunks))
    return await client.text(make_request("http://m", wire), **options)


async def test_client_text_returns_the_text() -> None:
    assert await client_text(MESSAGE) == HELLO_TEXT
    assert await client_text(CHAT, wire="chat") == HELLO_TEXT


@pytest.mark.parametrize(
    ("body", "wire", "kind", "code"),
    [
        (HELLO + stop() + finish("max_tokens") + LAST, "messages", "truncated", "length"),
        (HELLO + stop() + finish("refusal") + LAST, "messages", "content_filter", "refusal"),
        (REFUSED, "responses", "content_filter", "refusal"),
        (
            part({"content": "He"}) + part(finish_reason="content_filter") + DONE,
            "chat",
            "content_filter",
            "content_filter",
        ),
        (
            CALL + arguments("{}") + stop() + finish("tool_use") + LAST,
            "messages",
            "invalid_request",
            "tool_calls",
        ),
        (HELLO + stop() + finish("pause_turn") + LAST, "messages", "invalid_request", "pause"),
    ],
    ids=["length", "refusal", "refusal_part", "filter", "call", "pause"],
)
async def test_client_text_raises_if_it_is_not_all(
    body: bytes, wire: Any, kind: str, code: str
) -> None:
    with pytest.raises(StreamError) as raised:
        await client_text(body, wire=wire)
    assert (raised.value.kind, raised.value.code) == (kind, code)
    assert not raised.value.retryable
    assert raised.value.response is not None
    assert raised.value.response.items


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_client_text_raises_when_truncated(errors: Any) -> None:
    with pytest.raises(StreamError) as raised:
        await client_text(HELLO, errors=errors)
    assert raised.value.kind == "truncated"
    assert raised.value.response is not None
    assert raised.value.response.text == HELLO_TEXT
