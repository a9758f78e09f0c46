"""The named workloads: a sample response on a wire, and the chunks in which it is received.

Each declares the results of parsing it; tests/streamlib/testing/bench checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from streamlib.testing.bench import bodies, responses
from streamlib.testing.bench.responses import SampleResponse
from streamlib_parsers.items import ToolSpec, WireApi
from streamlib_parsers.protocol import WIRE_APIS, Parser, parser

KIB: Final = 1024
FAST: Final = 16 * KIB
"""Bytes that one read returns on a fast network."""
EVENT: Final = 0
"""Chunk size that means one chunk for each event of the wire, as models write them."""


class Workload(NamedTuple):
    """A sample response on a wire.

    Attributes:
        name: name on the command line.
        about: description in one line.
        wire_api: the wire that carries it.
        response: makes the sample response for a scale: n times as much of the same.
        encode: encodes it as events of the wire.
        chunks: chunk sizes to measure, in bytes, or `EVENT`.
        options: arguments of `parser`.
    """

    name: str
    about: str
    wire_api: WireApi
    response: Callable[[int], SampleResponse]
    encode: Callable[[SampleResponse], list[bytes]]
    chunks: tuple[int, ...] = (EVENT, FAST)
    options: dict[str, Any] = {}  # noqa: RUF012  # never changed

    def events(self, scale: int = 1) -> list[bytes]:
        """The body, one chunk for each event of the wire; `scale` times as much of the same."""
        return self.encode(self.response(scale))

    def parser(self) -> Parser:
        """A parser that reads it."""
        return parser(self.wire_api, **self.options)


def chunked(events: list[bytes], size: int) -> list[bytes]:
    """The same bytes in chunks of `size` bytes; for `EVENT` the events themselves."""
    if size == EVENT:
        return events
    body = b"".join(events)
    return [body[start : start + size] for start in range(0, len(body), size)]


def chunking(size: int) -> str:
    """A chunk size as text."""
    if size == EVENT:
        return "an event"
    if size >= KIB:
        return f"{size // KIB} KiB"
    return f"{size} B"


_XAI: Final = {
    "dialects": ("xai",),
    "tools": (ToolSpec("f", schema={"type": "object", "properties": {"k": {"type": "string"}}}),),
}


def _on(wire_api: WireApi) -> Callable[[SampleResponse], list[bytes]]:
    """What encodes a sample response on a wire."""
    return partial(bodies.body, wire_api)


_WORKLOADS: Final = (
    *[
        Workload(wire, "reasoning, a text, three calls", wire, responses.usual, _on(wire))
        for wire in WIRE_APIS
    ],
    Workload("chat-text", "2,000 words, nothing else", "chat", responses.text_alone, _on("chat")),
    Workload(
        "thinking-then-tools",
        "reasoning five times, a call after each",
        "messages",
        responses.rounds,
        _on("messages"),
    ),
    Workload(
        "argument-drip",
        "100 KB of arguments in small deltas",
        "messages",
        responses.one_long_call,
        _on("messages"),
    ),
    Workload(
        "parallel-calls",
        "64 calls whose deltas alternate",
        "chat",
        responses.many_calls,
        bodies.chat_interleaved,
    ),
    Workload(
        "keep-alives",
        "a comment after every event",
        "messages",
        responses.usual,
        bodies.with_keep_alives,
    ),
    Workload(
        "huge-line",
        "a megabyte in one line",
        "messages",
        responses.one_long_delta,
        _on("messages"),
        (KIB, FAST),
    ),
    Workload(
        "xml-in-text",
        "calls written as XML in text",
        "chat",
        responses.calls_in_text,
        bodies.chat_with_xml,
        options=_XAI,
    ),
    Workload(
        "gemini-parts",
        "several parts a chunk, code, signatures",
        "gemini",
        responses.rounds,
        bodies.gemini_parts,
    ),
    Workload(
        "aws-frames", "frames with random padding", "converse", responses.rounds, bodies.aws_frames
    ),
    Workload(
        "tiny-chunks", "three bytes at a time", "messages", responses.short, _on("messages"), (3,)
    ),
)

WORKLOADS: Final = {workload.name: workload for workload in _WORKLOADS}
"""Workloads by name. The first nine are the same response on every wire, to compare wires."""
