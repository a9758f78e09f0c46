"""Targets that can be fuzzed: wires, framings, dialects, and parsers of your own.

A target is two functions: `read` turns the chunks of a body into a list of results, and `oracle`
raises where these results violate an invariant.

    find_target("chat")  find_target("sse")  find_target("hermes")
    find_target("dialect:cohere")
        # the dialect, if a wire has the same name
    find_target("package.module:make_parser")
        # your own, which `own_parsers` describes
    target_of(Parser)
        # the same without a name: a class or a function
"""

from __future__ import annotations

import codecs
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from streamlib.testing import own_parsers
from streamlib.testing.dialect_calls import CALLS
from streamlib.testing.invariants import InvariantViolation, check, join_deltas, log
from streamlib.testing.mutations import TOKENS, fault, mutated, random_stream
from streamlib.testing.responses import TEXTS, random_response
from streamlib.wires.encoders import encode_all, encode_body
from streamlib_parsers.accumulate import Response, accumulate
from streamlib_parsers.dialects.definitions import DIALECTS
from streamlib_parsers.dialects.filter import DialectFilter
from streamlib_parsers.dialects.grammars.channel_marks import Marks
from streamlib_parsers.dialects.grammars.reasoning_tags import ReasoningTags
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
from streamlib_parsers.items import FunctionCall, Message, Text, ToolSpec, WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import WIRE_APIS, parse_body, parser

RAISED: Final = "raised"
"""First word of the only result where a parser raised an error that it may raise."""

DIALECT_PREFIX: Final = "dialect:"
"""Prefix that selects a dialect if a wire has the same name."""


class FuzzTarget(NamedTuple):
    """One parser to fuzz.

    Attributes:
        name: name on the command line.
        read: parses a body that is fed in these chunks; it must not raise.
        oracle: raises `InvariantViolation` if the results are wrong for the body.
        seed: generates a body to begin with.
        change: returns a slightly changed body.
    """

    name: str
    read: Callable[[Iterable[bytes]], list[Any]]
    oracle: Callable[[bytes, list[Any]], None]
    seed: Callable[[random.Random], bytes]
    change: Callable[[bytes, random.Random], bytes]


def find_target(name: str, allowed: Sequence[str] = ()) -> FuzzTarget:
    """The target of this name, or for `module:callable` the caller's own parser.

    Args:
        name: name of a target, or `module:callable`.
        allowed: names of errors that the caller's own parser may raise, as `error_named` reads
            them.

    Raises:
        ValueError: no target has this name, or it may raise no error.
        ImportError, AttributeError: the module, the callable or an error does not exist.
    """
    if name in TARGETS:
        if allowed:
            raise ValueError(f"{name} may raise no error: only a parser of your own may")
        return TARGETS[name]()
    if ":" in name:
        errors = tuple(own_parsers.error_named(error) for error in allowed)
        return target_of(own_parsers.load(name), name, errors)
    raise ValueError(
        f"no target {name!r}: one of {', '.join(TARGETS)}, or module:callable for your own parser"
    )


def _change_bytes(body: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 4)):
        body = fault(rng)(body)
    return body


def _accept_all(_body: bytes, _results: list[Any]) -> None:
    """The oracle of a target whose only invariant is partition independence."""


# --- wires ---


def _wire(wire_api: WireApi) -> FuzzTarget:
    def read(chunks: Iterable[bytes]) -> list[ResponseEvent]:
        parse = parser(wire_api)
        events: list[ResponseEvent] = []
        for chunk in chunks:
            events += parse.feed(chunk)
        return events + parse.close()

    def oracle(body: bytes, events: list[ResponseEvent]) -> None:
        _check_events(body, events)
        # A complete body is parsed by another function.
        if body.lstrip()[:1] in (b"{", b"["):
            _check_events(body, parse_body(wire_api, body))

    def seed(rng: random.Random) -> bytes:
        # Two kinds of seeds: frames in any order, and responses that a server could send.
        if rng.random() < 0.4:
            return random_stream(wire_api, rng)
        events = random_response(rng, wire_api, failing=rng.random() < 0.2)
        if rng.random() < 0.8:
            return encode_all(wire_api, events)
        return encode_body(wire_api, accumulate(events))

    return FuzzTarget(wire_api, read, oracle, seed, partial(mutated, wire_api))


def _check_events(_body: bytes, events: list[ResponseEvent]) -> None:
    check(events)
    accumulate(events)


# --- framings ---


def _framing(name: str, make: Callable[[], Framing], tokens: Sequence[bytes]) -> FuzzTarget:
    def read(chunks: Iterable[bytes]) -> list[Any]:
        framing = make()
        results: list[Any] = []
        for chunk in chunks:
            results += framing.feed(chunk)
        results += framing.close()
        failure = None
        if framing.failure is not None:
            failure = framing.failure.info.kind
        return [*results, ("failure", failure), ("blank", framing.blank)]

    def seed(rng: random.Random) -> bytes:
        return b"".join(rng.choice(tokens) for _ in range(rng.randrange(12)))

    return FuzzTarget(name, read, _accept_all, seed, _change_bytes)


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
"""Tools that a fuzzed dialect may call."""

_CALL_TOKENS: Final = (
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
)
"""Parts of calls in all dialects, and texts that look like the start of a call."""


def _dialect(name: str, target_name: str) -> FuzzTarget:
    def read(chunks: Iterable[bytes]) -> list[ResponseEvent]:
        stage = DialectFilter([name], TOOLS, LIMITS)
        events: list[ResponseEvent] = []
        for event in _message_events(_decode(chunks)):
            events += stage.feed([event])
        return _renumbered(join_deltas(events))

    tokens = [*sorted(_opening_tokens(name)), *_CALL_TOKENS]

    def seed(rng: random.Random) -> bytes:
        if rng.random() < 0.5:
            before = rng.choice(TEXTS)
            calls = CALLS.get(name, "") * rng.randint(1, 2)
            return f"{before}{calls}{rng.choice(TEXTS)}".encode()
        fragments: list[str] = []
        for _ in range(rng.randrange(14)):
            if rng.random() < 0.7:
                fragments.append(rng.choice(tokens))
            else:
                fragments.append(rng.choice(TEXTS))
        return "".join(fragments).encode()

    def change(body: bytes, rng: random.Random) -> bytes:
        offset = rng.randrange(len(body) + 1)
        if rng.random() < 0.5:
            return body[:offset] + rng.choice(tokens).encode() + body[offset:]
        return _change_bytes(body, rng)

    oracle: Callable[[bytes, list[Any]], None] = _check_events
    if _keeps_all_text(name):
        oracle = partial(_check_text, _marks_of(name))
    return FuzzTarget(target_name, read, oracle, seed, change)


def _decode(chunks: Iterable[bytes]) -> Iterator[str]:
    """The text of the chunks; a character split between chunks belongs to the later one."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def _message_events(deltas: Iterable[str]) -> Iterator[ResponseEvent]:
    """The events of a response with one message, streamed in these deltas."""
    text = ""
    yield Created("r", "m", seq=0)
    yield OutputItemAdded(0, Message("assistant", status="incomplete"), seq=1)
    for delta in deltas:
        text += delta
        if delta:
            yield OutputTextDelta(0, 0, delta, seq=2)
    yield OutputItemDone(0, Message("assistant", [Text(text)]), seq=3)
    yield Completed("r", "m", "stop", choices=(FinishedChoice(0, "stop"),), seq=4)


def _marks_of(name: str) -> list[str]:
    """The control tokens that a dialect removes from text, the longest first."""
    marks: list[str] = []
    for grammar in DIALECTS[name].grammars:
        if isinstance(grammar, Marks):
            marks += grammar.marks
    return sorted(marks, key=len, reverse=True)


def _without_marks(text: str, marks: list[str]) -> str:
    """The text without the dialect's control tokens, including those in code blocks.

    Tokens are removed repeatedly, because removing one may join its neighbours to another. If
    tokens contain newlines, all newlines are removed: one that ends a line of code belongs to no
    token.
    """
    if not marks:
        return text
    if any("\n" in mark for mark in marks):
        # Before the tokens: without its newline, what is left may be a token itself.
        text = text.replace("\n", "")
        marks = [mark.replace("\n", "") for mark in marks]
    pattern = re.compile("|".join(map(re.escape, filter(None, marks))))
    while pattern.search(text):
        text = pattern.sub("", text)
    return text


def _check_text(marks: list[str], body: bytes, events: list[ResponseEvent]) -> None:
    """Text without a call is unchanged except for control tokens; a notice names omitted text."""
    _check_events(body, events)
    response = accumulate(events)
    if response.calls or response.reasoning:
        return
    if any("left out" in notice.detail for notice in response.notices):
        return
    original = _without_marks(body.decode("utf-8", "replace"), marks)
    # An unfinished call whose arguments were streamed stays an item, and its text is not
    # repeated; then the text before it must be the start of the body.
    unfinished = [item for item in response.items if isinstance(item, FunctionCall)]
    if unfinished:
        text = _without_marks(_text_before(response, unfinished[0]), marks)
        is_complete = original.startswith(text)
    else:
        is_complete = _without_marks(response.text, marks) == original
    if not is_complete:
        raise InvariantViolation("nothing dropped", f"{response.text[:80]!r} of {body[:80]!r}")


def _text_before(response: Response, call: FunctionCall) -> str:
    """The text of the messages before a call."""
    text = ""
    for item in response.items:
        if item is call:
            break
        if isinstance(item, Message):
            text += item.text
    return text


def _renumbered(events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
    """The events numbered from 0: joined deltas leave gaps in `seq`."""
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events)]


def _keeps_all_text(name: str) -> bool:
    """Whether the dialect removes no token without a notice."""
    if name.startswith(("think", "harmony", "kimi", "cohere")):
        return False
    return not any(isinstance(grammar, ReasoningTags) for grammar in DIALECTS[name].grammars)


def _opening_tokens(name: str) -> set[str]:
    """All texts in the grammars of a dialect: they open, separate and close its calls."""
    tokens: set[str] = set()
    for grammar in DIALECTS[name].grammars:
        tokens.update(_strings(grammar))
    return tokens


def _strings(value: Any) -> Iterator[str]:
    """Every text inside a grammar, which is a tree of structs and tuples."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, (tuple, list)):
        for element in value:
            yield from _strings(element)
    elif hasattr(value, "__struct_fields__"):
        for field in value.__struct_fields__:
            yield from _strings(getattr(value, field))


# --- a parser of the caller's ---


def target_of(
    parser: Callable[..., Any],
    name: str | None = None,
    allowed: tuple[type[Exception], ...] = (),
) -> FuzzTarget:
    """The target of any parser.

    Args:
        parser: a class or a function, as `own_parsers` describes them.
        name: name of the target; None: `module:name`.
        allowed: errors that it may raise for a body, if it does for every split.

    Raises:
        ValueError: it makes no parser: a usage error, not a finding.
    """
    name = name or own_parsers.name_of(parser)
    reader = own_parsers.reader_of(parser, name)

    def read(chunks: Iterable[bytes]) -> list[Any]:
        try:
            return [own_parsers.comparable(result) for result in reader(chunks)]
        except allowed as error:
            # How much came out before depends on the split, even of a parser without a defect.
            return [f"{RAISED} {type(error).__name__}"]

    def seed(rng: random.Random) -> bytes:
        tokens = (*TOKENS, *_SSE, *_LINES)
        return b"".join(rng.choice(tokens) for _ in range(rng.randrange(10)))

    return FuzzTarget(name, read, _accept_all, seed, _change_bytes)


def _all_targets() -> dict[str, Callable[[], FuzzTarget]]:
    targets: dict[str, Callable[[], FuzzTarget]] = {}
    for wire_api in WIRE_APIS:
        targets[wire_api] = partial(_wire, wire_api)
    framings: dict[str, tuple[Callable[[], Framing], Sequence[bytes]]] = {
        "sse": (SSEFraming, _SSE),
        "ndjson": (NdjsonFraming, _LINES),
        "eventstream": (EventStreamFraming, _FRAMES),
        "json_array": (partial(JsonArrayFraming, LIMITS), _ARRAYS),
        "sse_or_json": (partial(SSEOrJsonFraming, LIMITS), (*_SSE, *_ARRAYS)),
    }
    for name, (make, tokens) in framings.items():
        targets[name] = partial(_framing, name, make, tokens)
    for name in DIALECTS:
        target_name = name
        if name in targets:  # Cohere is a wire and a dialect
            target_name = f"{DIALECT_PREFIX}{name}"
        targets[target_name] = partial(_dialect, name, target_name)
    return targets


TARGETS: Final = _all_targets()
"""Name -> target, for all targets of the library."""


def difference(unsplit: Sequence[Any], split: Sequence[Any]) -> str | None:
    """The first difference between two readings of one body; None if they are equal."""
    expected, actual = log(unsplit), log(split)
    if expected == actual:
        return None
    index = 0
    for before, after in zip(expected, actual, strict=False):
        if before != after:
            break
        index += 1
    return f"result {index}: unsplit {_line_at(expected, index)}, split {_line_at(actual, index)}"


def _line_at(lines: Sequence[bytes | str], index: int) -> str:
    if index >= len(lines):
        return "nothing"
    line = lines[index]
    text = line.decode() if isinstance(line, bytes) else line
    return text[:200]
