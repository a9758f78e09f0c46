"""The same bytes through another project's reader; every difference is listed with its reason.

SSE against httpx-sse (and, in tests/real, eventsource-parser), AWS frames against botocore,
accumulated responses against the official SDKs. A difference that no table lists fails, and so does
a row that no input shows any more.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib.testing.invariants import check
from streamlib.testing.responses import random_response
from streamlib.wires.encoders import encode_all
from streamlib_parsers import FunctionCall, Message, Response, accumulate
from streamlib_parsers.framing.eventstream import EventStreamFraming, encode_message
from streamlib_parsers.framing.sse import SSEFraming
from tests.support.cases import each_case
from tests.support.invariants import OURS, events_of, wire_of

# --- server-sent events: httpx-sse ---

Event = tuple[str, str, str]
"""(name, data, last id)"""


def ours(body: bytes) -> list[Event]:
    frames = SSEFraming().feed(body)
    return [
        (frame.event or "message", frame.data.decode("utf-8", "replace"), frame.id or "")
        for frame in frames
        if frame.data is not None
    ]


def httpx_sse(body: bytes) -> list[Event]:
    from httpx_sse import _decoders

    decoder = _decoders.SSEDecoder()
    lines = _decoders.SSELineDecoder()
    text = body.decode("utf-8", "replace")
    decoded = [decoder.decode(line) for line in [*lines.decode(text), *lines.flush()]]
    return [(event.event, event.data, event.id) for event in decoded if event is not None]


class Difference(NamedTuple):
    """One difference of the other reader."""

    reason: str
    body: bytes
    """An input that shows it."""
    may_occur: Callable[[bytes], bool]
    """Whether an input may show it."""


HTTPX_SSE: Final = (
    Difference(
        "a byte order mark is not removed: the first line is no field",
        b"\xef\xbb\xbfdata: x\n\n",
        lambda body: body.startswith(b"\xef\xbb\xbf"),
    ),
    Difference(
        "an event without data is emitted, with empty data",
        b"event: x\n\n",
        lambda body: b"event" in body or b"retry" in body,
    ),
    Difference(
        "after an id, every blank line emits an event",
        b"id: 7\ndata: x\n\n: ping\n\n",
        lambda body: b"id" in body,
    ),
    Difference(
        "a lone CR at the end of the input ends a line that may continue",
        b"data: x\n\r",
        lambda body: body.endswith(b"\r"),
    ),
)
"""Where httpx-sse 0.4.3 differs from the standard.

Our framing does not (tests/parsers/framing/test_sse.py compares it with an oracle).
"""

FRAGMENTS: Final = st.sampled_from(
    [
        *(
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b":",
            b" ",
            b"data: ",
            b"data",
            b"data:x",
            b"event: a\n",
            b"id: 7\n",
            b"retry: 5\n",
        ),
        *(
            b": ping\n\n",
            b"\xef\xbb\xbf",
            "é😀\u2028\x0b\x85".encode(),
            b"data: {}\n\n",
            b"event: b\ndata: 1\ndata: 2\r\n\r\n",
        ),
        *(b"\0", b"x: y\n"),
    ]
)


@given(st.lists(FRAGMENTS, max_size=12).map(b"".join))
def test_httpx_sse_reads_the_same_events_but_known_differences(body: bytes) -> None:
    if not any(difference.may_occur(body) for difference in HTTPX_SSE):
        assert httpx_sse(body) == ours(body)


@pytest.mark.parametrize("difference", HTTPX_SSE[:3], ids=lambda difference: difference.reason)
def test_a_known_difference_of_httpx_sse_is_still_there(difference: Difference) -> None:
    assert difference.may_occur(difference.body)
    assert httpx_sse(difference.body) != ours(difference.body)


@each_case(
    "path",
    [path for path in OURS if path.suffix == ".sse"],
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_httpx_sse_reads_our_recordings_as_we_do(path: Path) -> None:
    assert httpx_sse(path.read_bytes()) == ours(path.read_bytes())


# --- AWS frames: botocore ---


def botocore(body: bytes) -> tuple[list[bytes], str]:
    """The payloads it emits, and the name of the exception it raised."""
    from botocore.eventstream import EventStreamBuffer

    buffer = EventStreamBuffer()
    payloads: list[bytes] = []
    try:
        buffer.add_data(body)
        payloads.extend(message.payload for message in buffer)
    except Exception as error:  # noqa: BLE001  # its name is compared
        return payloads, type(error).__name__
    return payloads, ""


def frames_of(body: bytes) -> tuple[list[bytes], bool]:
    framing = EventStreamFraming()
    payloads = [message.payload for message in framing.messages(body)]
    framing.close()
    return payloads, framing.failure is not None


FRAMES: Final = tuple(
    encode_message({":event-type": "chunk", ":message-type": "event", **more}, payload)
    for more in ({}, {"n": "7"}, {"b": "é"})
    for payload in (b"", b"{}", b'{"bytes":"eA=="}')
)


@settings(max_examples=2 * settings.default.max_examples)
@given(
    st.lists(st.sampled_from(FRAMES), max_size=5).map(b"".join),
    st.integers(0, 1 << 16),
    st.integers(0, 7),
    st.booleans(),
)
def test_botocore_accepts_and_rejects_the_same_messages(
    body: bytes, position: int, bit: int, flip: bool
) -> None:
    """One flipped bit may be anywhere: a length, a checksum, a header, the payload.

    Known difference: botocore has no end of input, so that it does not notice a truncated message.
    """
    if flip and body:
        offset = position % len(body)
        body = body[:offset] + bytes([body[offset] ^ (1 << bit)]) + body[offset + 1 :]
    theirs, raised = botocore(body)
    payloads, failed = frames_of(body)
    assert payloads == theirs
    assert failed or not raised
    assert failed == (
        sum(16 + len(payload) for payload in payloads) + header_bytes(body, len(payloads))
        != len(body)
    )


def header_bytes(body: bytes, count: int) -> int:
    """The length of the header blocks of the first messages."""
    size = offset = 0
    for _ in range(count):
        size += int.from_bytes(body[offset + 4 : offset + 8])
        offset += int.from_bytes(body[offset : offset + 4])
    return size


@pytest.mark.parametrize(
    "path", [path for path in OURS if path.suffix == ".eventstream"], ids=lambda path: path.name
)
def test_botocore_reads_our_recordings_as_we_do(path: Path) -> None:
    assert frames_of(path.read_bytes()) == (botocore(path.read_bytes())[0], False)


# --- responses: the official SDKs' accumulators ---


def calls_of(response: Response) -> list[tuple[str, Any]]:
    return [(call.name, call.parsed()) for call in response.calls if isinstance(call, FunctionCall)]


def anthropic(body: bytes) -> tuple[str, list[tuple[str, Any]], str | None]:
    """Text, calls and stop reason as the Anthropic SDK accumulates them."""
    from anthropic._models import construct_type
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import RawMessageStreamEvent

    snapshot: Any = None
    inputs: Any = {}
    for frame in SSEFraming().feed(body):
        event: Any = construct_type(
            type_=RawMessageStreamEvent, value=json.loads(frame.data or b"null")
        )
        if event.type == "ping":
            continue
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=inputs)
    text = "".join(block.text for block in snapshot.content if block.type == "text")
    return (
        text,
        [(block.name, block.input) for block in snapshot.content if block.type == "tool_use"],
        snapshot.stop_reason,
    )


def openai_chat(body: bytes) -> tuple[str, list[tuple[str, Any]], str | None]:
    """Text, calls and finish reason as the OpenAI SDK accumulates them."""
    from openai._models import construct_type
    from openai._types import omit
    from openai.lib.streaming.chat._completions import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    state: Any = ChatCompletionStreamState(input_tools=omit, response_format=omit)
    for frame in SSEFraming().feed(body):
        if frame.data and frame.data != b"[DONE]":
            state.handle_chunk(
                construct_type(type_=ChatCompletionChunk, value=json.loads(frame.data))
            )
    choice = state.current_completion_snapshot.choices[0]
    calls = [
        (call.function.name, json.loads(call.function.arguments or "{}"))
        for call in choice.message.tool_calls or ()
    ]
    return choice.message.content or "", calls, choice.finish_reason


def openai_responses(body: bytes) -> tuple[str, list[tuple[str, Any]], str | None]:
    """Text, calls and status of the response in the last event, read with the SDK's types."""
    from openai._models import construct_type
    from openai.types.responses import Response as SdkResponse

    last = [
        json.loads(frame.data or b"null")
        for frame in SSEFraming().feed(body)
        if frame.data and frame.data != b"[DONE]"
    ][-1]
    response: Any = construct_type(type_=SdkResponse, value=last["response"])
    calls = [
        (item.name, json.loads(item.arguments or "{}"))
        for item in response.output
        if item.type == "function_call"
    ]
    return response.output_text, calls, response.status


def joined(text: str) -> str:
    """Known difference: the SDKs emit lone surrogates, which no terminal and no encoder accepts."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


SDKS: Final = {"messages": anthropic, "chat": openai_chat, "responses": openai_responses}


REJECTED: Final = {
    (
        "chat",
        "litellm-over-messages.sse",
    ): "openai cannot add lists whose entries have no index (LiteLLM's `thinking_blocks`)"
}
"""Recordings of real servers that the SDK of their wire raises on."""


def bodies(wire: Any) -> Iterator[tuple[str, bytes]]:
    """Our recordings of a wire, and responses written by our encoder."""
    yield from ((path.name, path.read_bytes()) for path in OURS if wire_of(path) == wire)
    rng = random.Random(9)
    yield from ((f"generated {n}", encode_all(wire, random_response(rng, wire))) for n in range(40))


@pytest.mark.parametrize("wire", SDKS)
def test_the_official_sdk_accumulates_the_same_response(wire: Any) -> None:
    compared = 0
    for name, body in bodies(wire):
        events = events_of(wire, [body])
        check(events)
        response = accumulate(events)
        if response.status != "completed":
            continue
        if (wire, name) in REJECTED:
            with pytest.raises(RuntimeError, match="index"):
                SDKS[wire](body)
            continue
        text, calls, reason = SDKS[wire](body)
        assert (joined(text), calls) == (
            "".join(item.text for item in response.items if isinstance(item, Message)),
            calls_of(response),
        ), name
        assert reason == response.native_stop_reason, name
        compared += 1
    assert compared > 30
