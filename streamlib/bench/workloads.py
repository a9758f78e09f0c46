"""The named workloads: an answer on a wire, and how it arrives. Each says what it must parse into; tests hold it to that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from streamlib.bench import answers, bodies
from streamlib.bench.answers import Answer
from streamlib_parsers.items import ToolSpec, WireApi
from streamlib_parsers.protocol import Parser, parser

KIB: Final = 1024
FAST: Final = 16 * KIB
"""A read of a fast network."""
EVENT: Final = 0
"""As chunking: a chunk for each event of the wire, as a model writes them."""


class Workload(NamedTuple):
    """An answer, the wire that carries it, the chunks it is measured in (bytes, or EVENT), and what the parser is told."""

    name: str
    about: str
    wire_api: WireApi
    answer: Callable[[int], Answer]
    written: Callable[[Answer], Iterator[bytes]]
    chunks: tuple[int, ...] = (EVENT, FAST)
    options: dict[str, Any] = {}  # noqa: RUF012  # never changed

    def events(self, scale: int = 1) -> list[bytes]:
        """The body, one chunk an event of the wire; `scale` times as much of the same."""
        return list(self.written(self.answer(scale)))

    def parser(self) -> Parser:
        """A parser that reads it."""
        return parser(self.wire_api, **self.options)


def chunked(events: list[bytes], size: int) -> list[bytes]:
    """The same bytes in chunks of `size`; the events themselves where it is EVENT."""
    if size == EVENT:
        return events
    body = b"".join(events)
    return [body[at : at + size] for at in range(0, len(body), size)]


def chunking(size: int) -> str:
    """A chunking in words."""
    return "an event" if size == EVENT else f"{size // KIB} KiB" if size >= KIB else f"{size} B"


_WIRES: Final = ("messages", "chat", "responses", "gemini", "converse", "invoke", "ollama")
_XAI: Final = {
    "dialects": ("xai",),
    "tools": (ToolSpec("f", schema={"type": "object", "properties": {"k": {"type": "string"}}}),),
}

WORKLOADS: Final[dict[str, Workload]] = {
    workload.name: workload
    for workload in (
        *(
            Workload(
                wire, "a thought, a text, three calls", wire, answers.usual, getattr(bodies, wire)
            )
            for wire in _WIRES
        ),
        Workload("chat-text", "2,000 words, nothing else", "chat", answers.text_alone, bodies.chat),
        Workload(
            "thinking-then-tools",
            "five thoughts, a call after each",
            "messages",
            answers.rounds,
            bodies.messages,
        ),
        Workload(
            "argument-drip",
            "100 KB of arguments in small pieces",
            "messages",
            answers.one_long_call,
            bodies.messages,
        ),
        Workload(
            "parallel-calls",
            "64 calls that grow by turns",
            "chat",
            answers.many_calls,
            bodies.chat_interleaved,
        ),
        Workload(
            "keep-alives",
            "a comment after every event",
            "messages",
            answers.usual,
            bodies.kept_alive,
        ),
        Workload(
            "huge-line",
            "a megabyte in one line",
            "messages",
            answers.one_piece,
            bodies.messages,
            (KIB, FAST),
        ),
        Workload(
            "xml-in-text",
            "calls written as XML in text",
            "chat",
            answers.calls_in_words,
            bodies.chat_with_xml,
            options=_XAI,
        ),
        Workload(
            "gemini-parts",
            "several parts a chunk, code, signatures",
            "gemini",
            answers.rounds,
            bodies.gemini_parts,
        ),
        Workload(
            "aws-frames", "frames padded at random", "converse", answers.rounds, bodies.aws_frames
        ),
        Workload(
            "tiny-chunks", "three bytes at a time", "messages", answers.short, bodies.messages, (3,)
        ),
    )
}
"""The first seven are the same answer on every wire: they are what the wires are compared by."""
