"""What can be fuzzed, each as two functions: `read` (pieces of a body -> what was found in it) and `judge` (which of its laws broke).

target("chat")  target("sse")  target("hermes")         a wire, a framing, a dialect
target("package.module:make_parser")                    yours: whatever has `feed(bytes) -> list` and `close() -> list`
"""

from __future__ import annotations

import codecs
import importlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from streamlib.testing.dialect_calls import CALLS
from streamlib.testing.invariants import InvariantViolation, check, join_deltas, log
from streamlib.testing.mutations import TOKENS, fault, mutated, random_stream
from streamlib.testing.responses import WORDS, random_response
from streamlib.wires.encoders import encode_all, encode_body
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.dialects.definitions import DIALECTS
from streamlib_parsers.dialects.filter import DialectFilter
from streamlib_parsers.events import (
    Completed,
    Created,
    FinishedChoice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
)
from streamlib_parsers.framing import Framing
from streamlib_parsers.framing.eventstream import EventStreamFraming, encode_message
from streamlib_parsers.framing.json_array import JsonArrayFraming
from streamlib_parsers.framing.ndjson import NdjsonFraming
from streamlib_parsers.framing.sse import SSEFraming
from streamlib_parsers.framing.sse_or_json import SSEOrJsonFraming
from streamlib_parsers.items import Message, Text, ToolSpec, WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import WIRE_APIS, parse_body, parser


class FuzzTarget(NamedTuple):
    """One thing to be fuzzed.

    read: what is found in a body that comes in these pieces; it may raise nothing. judge: raises `LawBroken` for what may not be found.
    seed: a body to begin with. change: a body a little different.
    """

    name: str
    read: Callable[[Iterable[bytes]], list[Any]]
    oracle: Callable[[bytes, list[Any]], None]
    seed: Callable[[random.Random], bytes]
    change: Callable[[bytes, random.Random], bytes]


def find_target(name: str) -> FuzzTarget:
    """The target of this name; ValueError for none."""
    if name in TARGETS:
        return TARGETS[name]()
    if ":" in name:
        return _yours(name)
    raise ValueError(
        f"no target {name!r}: one of {', '.join(TARGETS)}, or module:callable for a parser of your own"
    )


def _changed_bytes(body: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 4)):
        body = fault(rng)(body)
    return body


def _nothing(_body: bytes, _found: list[Any]) -> None:
    pass


# --- wires ---


def _wire(wire_api: WireApi) -> FuzzTarget:
    def read(chunks: Iterable[bytes]) -> list[ResponseEvent]:
        one = parser(wire_api)
        return [*(event for chunk in chunks for event in one.feed(chunk)), *one.close()]

    def judge(body: bytes, events: list[ResponseEvent]) -> None:
        _judge_events(body, events)
        if body.lstrip()[:1] in (b"{", b"["):  # a whole body enters by another door
            _judge_events(body, parse_body(wire_api, body))

    def seed(rng: random.Random) -> bytes:
        if rng.random() < 0.4:
            return random_stream(wire_api, rng)
        said = random_response(rng, wire_api, failing=rng.random() < 0.2)
        return (
            encode_all(wire_api, said)
            if rng.random() < 0.8
            else encode_body(wire_api, accumulate(said))
        )

    return FuzzTarget(wire_api, read, judge, seed, partial(mutated, wire_api))


def _judge_events(_: bytes, events: list[ResponseEvent]) -> None:
    check(events)
    accumulate(events)


# --- framings ---


def _framing(name: str, make: Callable[[], Framing], pieces: Sequence[bytes]) -> FuzzTarget:
    def read(chunks: Iterable[bytes]) -> list[Any]:
        framing = make()
        found: list[Any] = [frame for chunk in chunks for frame in framing.feed(chunk)]
        found += framing.close()
        return [
            *found,
            ("failure", framing.failure.info.kind if framing.failure else None),
            ("blank", framing.blank),
        ]

    def seed(rng: random.Random) -> bytes:
        return b"".join(rng.choice(pieces) for _ in range(rng.randrange(12)))

    return FuzzTarget(name, read, _nothing, seed, _changed_bytes)


_SSE: Final = (
    b"data: {}\n\n",
    b'event: a\ndata: {"x": 1}\n\n',
    b": ping\n\n",
    b"data: 1\r\ndata: 2\r\n\r\n",
    b"id: 7\ndata\r\r",
    b"data: [DONE]\n\n",
)
_LINES: Final = (
    b'{"a": 1}\n',
    b'{"a": "\xc3\xa9"}\r\n',
    b"\n",
    b"[1, 2]\n",
    b'{"a": {"b": "\\n"}}',
    b"data: {}\n",
)
_ARRAYS: Final = (b"[", b'{"a": [1, "]"]}', b",\r\n", b"]", b'{"b": "\\"}"}', b" ", b"{}", b"null")
_FRAMES: Final = (
    encode_message({":event-type": "chunk", ":message-type": "event"}, b"{}"),
    encode_message(
        {":event-type": "messageStop", ":message-type": "event"}, b'{"stopReason": "end_turn"}'
    ),
    encode_message(
        {":exception-type": "throttlingException", ":message-type": "exception"},
        b'{"message": "no"}',
    ),
    encode_message({":message-type": "error", ":error-code": "500", ":error-message": "busy"}, b""),
)

# --- dialects ---

_SCHEMA: Final = {
    "type": "object",
    "properties": {"k": {"type": "string"}, "n": {"type": "integer"}, "a": {"type": "array"}},
}
TOOLS: Final = (ToolSpec("f", schema=_SCHEMA), ToolSpec("g"))
"""The tools that a fuzzed dialect may call."""


def _dialect(name: str) -> FuzzTarget:
    def read(chunks: Iterable[bytes]) -> list[ResponseEvent]:
        stage = DialectFilter([name], TOOLS, LIMITS)
        folded = join_deltas(
            event for said in _spoken(_texts(chunks)) for event in stage.feed([said])
        )
        return [_numbered(event, seq) for seq, event in enumerate(folded)]

    marks = _marks(name)

    def seed(rng: random.Random) -> bytes:
        if rng.random() < 0.5:
            return (
                rng.choice(WORDS) + CALLS.get(name, "") * rng.randint(1, 2) + rng.choice(WORDS)
            ).encode()
        return "".join(
            rng.choice(marks if rng.random() < 0.7 else WORDS) for _ in range(rng.randrange(14))
        ).encode()

    def change(body: bytes, rng: random.Random) -> bytes:
        where = rng.randrange(len(body) + 1)
        return (
            body[:where] + rng.choice(marks).encode() + body[where:]
            if rng.random() < 0.5
            else _changed_bytes(body, rng)
        )

    return FuzzTarget(name, read, _judge_text if _keeps_all(name) else _judge_events, seed, change)


def _texts(chunks: Iterable[bytes]) -> Iterator[str]:
    """The pieces of a body as pieces of text: a cut inside a character belongs to the next piece."""
    decode = codecs.getincrementaldecoder("utf-8")("replace")
    yield from (decode.decode(chunk) for chunk in chunks)
    yield decode.decode(b"", final=True)


def _spoken(pieces: Iterable[str]) -> Iterator[ResponseEvent]:
    """One message, said in these pieces."""
    text = ""
    yield Created("r", "m", seq=0)
    yield OutputItemAdded(0, Message("assistant", status="incomplete"), seq=1)
    for piece in pieces:
        text += piece
        if piece:
            yield OutputTextDelta(0, 0, piece, seq=2)
    yield OutputItemDone(0, Message("assistant", [Text(text)]), seq=3)
    yield Completed("r", "m", "stop", choices=(FinishedChoice(0, "stop"),), seq=4)


def _judge_text(body: bytes, events: list[ResponseEvent]) -> None:
    """Text in which nothing was found comes out as it went in; what was left out is named by a notice."""
    _judge_events(body, events)
    response = accumulate(events)
    named = any("left out" in notice.detail for notice in response.notices)
    if not (response.calls or response.reasoning or named) and response.text != body.decode(
        "utf-8", "replace"
    ):
        raise InvariantViolation("nothing dropped", f"{response.text[:80]!r} of {body[:80]!r}")


def _numbered(event: ResponseEvent, seq: int) -> ResponseEvent:
    """Folding leaves gaps in `seq`, so events are counted anew."""
    return msgspec.structs.replace(event, seq=seq)


def _keeps_all(name: str) -> bool:
    """Whether the dialect has no marks that are taken out without a trace."""
    return not name.startswith(("think", "harmony", "kimi", "cohere"))


def _marks(name: str) -> list[str]:
    """The texts that mean something to a dialect, and pieces of calls."""
    found = {opener for grammar in DIALECTS[name].grammars for opener in _strings(grammar)}
    return [
        *sorted(found),
        '{"name": "f", "arguments": {"k": "v"}}',
        "f",
        "g",
        "k",
        '"',
        ">",
        "=",
        '"f">',
        "\n",
        " ",
        "{}",
        "```",
        "`",
        "x < 3",
    ]


def _strings(value: Any) -> Iterator[str]:
    """Every text inside a grammar, which is data."""
    if isinstance(value, str):
        yield from [value] if value else []
    elif isinstance(value, (tuple, list)):
        yield from (text for inner in value for text in _strings(inner))
    elif hasattr(value, "__struct_fields__"):
        yield from (
            text for field in value.__struct_fields__ for text in _strings(getattr(value, field))
        )


# --- anybody's ---


def _yours(name: str) -> FuzzTarget:
    module, _, attribute = name.partition(":")
    make = importlib.import_module(module)
    for part in attribute.split("."):
        make = getattr(make, part)
    _check_made(name, make)

    def read(chunks: Iterable[bytes]) -> list[Any]:
        one: Any = make()  # type: ignore[operator]
        return [*(found for chunk in chunks for found in one.feed(chunk)), *one.close()]

    def seed(rng: random.Random) -> bytes:
        return b"".join(rng.choice((*TOKENS, *_SSE, *_LINES)) for _ in range(rng.randrange(10)))

    return FuzzTarget(name, read, _nothing, seed, _changed_bytes)


def _check_made(name: str, make: Any) -> None:
    """ValueError for what makes no parser: it is no finding."""
    try:
        one = make()
    except Exception as error:
        raise ValueError(f"{name} could not be made: {type(error).__name__}: {error}") from error
    if not (callable(getattr(one, "feed", None)) and callable(getattr(one, "close", None))):
        raise ValueError(  # noqa: TRY004  # a name that is none, as every other
            f"{name} gives a {type(one).__name__}: a parser has feed(bytes) -> list and close() -> list"
        )


TARGETS: Final[dict[str, Callable[[], FuzzTarget]]] = {
    **{name: partial(_wire, name) for name in WIRE_APIS},
    "sse": lambda: _framing("sse", SSEFraming, _SSE),
    "ndjson": lambda: _framing("ndjson", NdjsonFraming, _LINES),
    "eventstream": lambda: _framing("eventstream", EventStreamFraming, _FRAMES),
    "json_array": lambda: _framing("json_array", lambda: JsonArrayFraming(LIMITS), _ARRAYS),
    "sse_or_json": lambda: _framing(
        "sse_or_json", lambda: SSEOrJsonFraming(LIMITS), (*_SSE, *_ARRAYS)
    ),
    **{name: partial(_dialect, name) for name in DIALECTS},
}
"""Every target of ours by its name."""


def difference(whole: Sequence[Any], cut: Sequence[Any]) -> str | None:
    """Where two readings of one body part; None where they are the same."""
    one, other = log(whole), log(cut)
    if one == other:
        return None
    at = next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    shown = [str(lines[at])[:200] if at < len(lines) else "nothing" for lines in (one, other)]
    return f"in place {at}: whole {shown[0]}, cut {shown[1]}"
