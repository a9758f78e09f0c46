"""The parser: a framing, a wire machine and an assembly, behind two words, `feed` and `close`.

    p = parser("messages")
    events = p.feed(chunk)          # any split of the bytes
    events += p.close()             # exactly one terminal event in all

A parser never raises on what a provider sends: the stream ends in `Failed`. It has no clock, does no I/O, and after its
terminal event it ignores the rest.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, get_args

from streamlib_parsers.assembler import EventAssembler, default_call_id
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import (
    ErrorInfo,
    ParseFailure,
    excerpt,
    limit_exceeded,
    malformed,
    truncated,
)
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.items import Origin, ToolSpec, WireApi
from streamlib_parsers.json_text import (
    SurrogateJoiner,
    decode_any,
    is_complete_frame,
    is_truncated_json,
    mark_surrogates,
)
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.rate_limits import read_rate_limits

if TYPE_CHECKING:
    from streamlib_parsers.dialects import Dialect

WIRE_APIS: Final[tuple[WireApi, ...]] = get_args(WireApi)


class Machine(Protocol):
    """What a wire file gives: frames in, verbs of the assembly out.

    complete: the wire said that the answer is whole; a client may stop reading soon after.
    """

    @property
    def complete(self) -> bool:
        """Read-only, so that a machine may work it out."""
        ...

    def frame(self, event: str | None, data: bytes) -> None:
        """One message of the stream. Raises `ParseFailure` to end it."""
        ...

    def end(self) -> None:
        """The input is over: completes the assembly, or raises `ParseFailure(truncated)`."""
        ...


class Wire(Protocol):
    """The module of a wire: `wires/<name>.py`."""

    Machine: Callable[[EventAssembler], Machine]
    framing: Callable[[Limits], Framing]
    body_frames: Callable[[bytes], Iterator[tuple[str | None, bytes]]]


class EventFilter(Protocol):
    """Rewrites events on their way out."""

    failure: ErrorInfo | None

    def feed(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events that go out for `events`."""
        ...


def wire(wire_api: str) -> Wire:
    """The module of a wire API, loaded at first use."""
    if wire_api not in WIRE_APIS:
        raise ValueError(f"unknown wire API {wire_api!r}: one of {', '.join(WIRE_APIS)}")
    return cast("Wire", importlib.import_module(f"streamlib_parsers.wires.{wire_api}"))


class Parser:
    """One stream of one wire API. Made by `parser(…)`."""

    def __init__(
        self,
        module: Wire,
        assembly: EventAssembler,
        limits: Limits,
        wire_api: WireApi,
        stages: Sequence[EventFilter] = (),
    ) -> None:
        self.wire_api: WireApi = wire_api
        """The wire it reads."""
        self._assembly = assembly
        self._staged = _FilterChain(stages, assembly) if stages else None
        self._drain = self._staged.take if self._staged else assembly.take
        self._machine = module.Machine(assembly)
        self._framing = module.framing(limits)
        self._module = module
        self._limits = limits
        self._remaining_bytes = limits.response_bytes
        self._framed = False
        self._stray: list[bytes] = []
        self._closed = False

    @property
    def complete(self) -> bool:
        """Whether the wire has said that the answer is whole (the terminal event may still wait for the end of input)."""
        return self._machine.complete

    @property
    def ended(self) -> bool:
        """Whether the terminal event was given."""
        return self._assembly.ended

    @property
    def unfiltered_events(self) -> list[ResponseEvent] | None:
        """The wire's own events of the last call, before a stage could hold them back; None where no stage stands between."""
        return self._staged.arrived if self._staged else None

    def feed(self, chunk: bytes) -> list[ResponseEvent]:
        """The events that `chunk` brings. Bytes after the terminal event are ignored."""
        assembly = self._assembly
        if not assembly.ended:
            try:
                self._take(chunk)
            except (ParseFailure, RecursionError) as failure:
                assembly.fail(_as_error_info(failure))
            except (TypeError, AttributeError):
                _check_bytes(chunk)
                raise
        return self._drain()

    def feed_event(self, data: bytes | str, event: str | None = None) -> list[ResponseEvent]:
        """One message that is framed already: a ServerSentEvent, a WebSocket message, a recorded JSON line."""
        assembly = self._assembly
        if not assembly.ended:
            try:
                payload = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
                self._count(len(payload))
                self._framed = True
                self._machine.frame(event, payload)
            except (ParseFailure, RecursionError) as failure:
                assembly.fail(_as_error_info(failure))
        return self._drain()

    def close(self) -> list[ResponseEvent]:
        """End of input. After it, exactly one terminal event was given in all; a second call gives nothing."""
        assembly = self._assembly
        if not (assembly.ended or self._closed):
            self._closed = True
            try:
                self._finish()
            except (ParseFailure, RecursionError) as failure:
                assembly.fail(_as_error_info(failure))
        return self._drain()

    # --- bytes ---

    def _take(self, chunk: bytes) -> None:
        self._remaining_bytes = room = self._remaining_bytes - len(chunk)
        assembly, framing, machine = self._assembly, self._framing, self._machine
        for frame in framing.feed(chunk if room >= 0 else chunk[:room]):
            if frame.stray:
                self._read_stray_lines(frame)
            data = frame.data
            if data is not None:
                self._framed = True
                machine.frame(frame.event, data)
                if assembly.ended:
                    return
        if framing.failure is not None:
            raise framing.failure
        if room < 0:
            raise self._full()

    def _count(self, size: int) -> None:
        self._remaining_bytes -= size
        if self._remaining_bytes < 0:
            raise self._full()

    def _full(self) -> ParseFailure:
        return limit_exceeded("response_bytes", self._limits.response_bytes)

    def _finish(self) -> None:
        framing = self._framing
        for frame in framing.close():
            if frame.stray:
                self._read_stray_lines(frame)
            if frame.data is not None:
                self._feed_final_frame(frame)
        if self._assembly.ended:
            return
        if framing.failure is not None:
            raise framing.failure
        if not self._framed:
            self._close_without_frames()
        if not self._assembly.ended:
            self._machine.end()

    def _feed_final_frame(self, frame: Frame) -> None:
        """The frame whose end was only missing its terminator."""
        data = frame.data or b""
        if not is_complete_frame(data):
            raise truncated("the stream ended inside a message", excerpt(data))
        self._framed = True
        self._machine.frame(frame.event, data)
        if not self._assembly.ended:
            self._assembly.note_inferred_end("the stream ended without closing its last message")

    # --- lines that belong to no frame ---

    def _read_stray_lines(self, frame: Frame) -> None:
        """Stray lines: an error written without its field name, a whole body where a stream was asked for, or a page of HTML."""
        error = _error_in(frame.stray)
        if error is not None:
            raise ParseFailure(classify(None, error))
        if self._framed:
            self._assembly.passthrough("stray", frame.stray.decode("utf-8", "replace"))
        else:
            self._stray.append(frame.stray)

    def _close_without_frames(self) -> None:
        stray = b"\n".join(self._stray)
        if stray and not any(field.startswith(stray) for field in SSE_FIELDS):
            self._feed_body(stray)
        elif self._framing.blank:
            raise malformed("the stream was empty", code="empty_stream")
        else:
            raise truncated("the stream ended before its first message")

    # --- a whole body ---

    def feed_body(
        self, body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> list[ResponseEvent]:
        """A whole, non-streaming body: the frames it stands for, or the error it is."""
        _check_bytes(body)
        assembly = self._assembly
        if not assembly.ended:
            try:
                self._count(len(body))
                if status is not None and status >= 400:
                    raise ParseFailure(classify(status, _decoded(body), headers))
                self._feed_body(body)
            except (ParseFailure, RecursionError) as failure:
                assembly.fail(_as_error_info(failure))
        return self._drain()

    def _feed_body(self, body: bytes) -> None:
        self._framed = True
        if (
            fixed := mark_surrogates(body)
        ) is not None:  # once, here: the frames made of it look whole to the machine
            self._assembly.surrogates, body = SurrogateJoiner(), fixed
        try:
            for event, data in self._module.body_frames(body):
                self._machine.frame(event, data)
        except ParseFailure as failure:
            if failure.info.kind != "malformed":
                raise
            error = _error_in(body)
            if error is not None:
                raise ParseFailure(classify(None, error)) from None
            raise (
                truncated("the body ends inside its JSON", excerpt(body))
                if is_truncated_json(body)
                else failure
            ) from None

    def abort(self, error: ErrorInfo) -> list[ResponseEvent]:
        """Ends the stream from outside (connection lost, deadline, cancelled): what came so far, then `Failed`."""
        self._assembly.fail(error)
        return self._drain()


def _check_bytes(data: object) -> None:
    """Said plainly: half of all HTTP libraries give text as well."""
    if not isinstance(data, bytes | bytearray):
        raise TypeError(f"a parser reads bytes, not {type(data).__name__}")


SSE_FIELDS: Final = (b"data", b"event", b"id", b"retry")
"""A stray that is the beginning of one is a stream that was cut in its first lines, not a body."""


class _FilterChain:
    """Takes the assembly's events through the stages. A stage that passed a ceiling ends the stream."""

    def __init__(self, stages: Sequence[EventFilter], assembly: EventAssembler) -> None:
        self.arrived: list[ResponseEvent] = []
        self._stages = stages
        self._assembly = assembly

    def take(self) -> list[ResponseEvent]:
        """The events that go out."""
        assembly = self._assembly
        events = self.arrived = assembly.take()
        for stage in self._stages:
            events = stage.feed(events)
            if stage.failure is not None and not assembly.ended:
                assembly.fail(stage.failure)
                events = [*events, *stage.feed(assembly.take())]
        return events


ERROR_KEYS: Final = frozenset({"error", "detail", "base_resp", "Message", "errors"})


def _error_in(text: bytes) -> Any:
    """The error that a text is, if it is one: JSON with an error key, bare, in a list, or behind `error:`; else None."""
    text = text.strip()
    named = text.startswith(b"error:")
    try:
        value = decode_any(text[6:] if named else text)
    except ParseFailure:
        return None
    inner = value[0] if isinstance(value, list) and value else value
    is_error = isinstance(inner, dict) and (
        named or any(inner.get(key) for key in ERROR_KEYS) or {"code", "message"} <= inner.keys()
    )
    return value if is_error else None


def parser(
    wire_api: WireApi,
    *,
    tools: Sequence[ToolSpec] = (),
    dialects: Sequence[str | Dialect] = (),
    headers: Mapping[str, str] | None = None,
    received_at: datetime | None = None,
    origin: Origin | None = None,
    limits: Limits = LIMITS,
    call_id: Callable[[int], str] | None = None,
    names: Mapping[str, str] | None = None,
) -> Parser:
    """A parser for one response of `wire_api`.

    tools: the tools offered (names gate dialects, schemas coerce their values). dialects: tool calls and thoughts written inside
    text, by name. headers: response headers, for rate limits and request ids; `received_at` (aware) makes their resets absolute.
    origin: stamped on every item. call_id: names the calls the wire left nameless. names: sent tool name -> your tool name.
    """
    module = wire(wire_api)
    assembly = EventAssembler(limits, origin or Origin(wire_api), call_id or default_call_id, names)
    if headers is not None:
        assembly.rate_limits(read_rate_limits(headers, received_at))
    stages: list[EventFilter] = []
    if dialects:
        stages.append(_dialect_filter(dialects, tools, assembly, names))
    if tools:
        stages.append(_leak_filter())
    return Parser(module, assembly, limits, wire_api, stages)


def _dialect_filter(
    dialects: Sequence[str | Dialect],
    tools: Sequence[ToolSpec],
    assembly: EventAssembler,
    names: Mapping[str, str] | None,
) -> EventFilter:
    from streamlib_parsers.dialects.filter import DialectFilter

    return DialectFilter(dialects, tools, assembly.limits, lambda _: assembly.new_call_id(), names)


def _leak_filter() -> EventFilter:
    from streamlib_parsers.dialects.leaked_calls import LeakFilter

    return LeakFilter()


def parse_body(
    wire_api: WireApi,
    body: bytes,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> list[ResponseEvent]:
    """The events of a whole, non-streaming body, through the same machine: Added, one delta a part, Done for each item.

    status: the HTTP status; from 400 on the body is an error. The other options are those of `parser`.
    """
    whole = parser(wire_api, headers=headers, **options)
    return [*whole.feed_body(body, status, headers), *whole.close()]


def _as_error_info(failure: ParseFailure | RecursionError) -> ErrorInfo:
    """A decoder or a walk over a value ran out of stack: no answer of a model is nested that deep."""
    return (
        failure.info
        if isinstance(failure, ParseFailure)
        else malformed("JSON nested too deep").info
    )


def _decoded(body: bytes) -> Any:
    try:
        return decode_any(body)
    except ParseFailure:
        return body.decode("utf-8", "replace")
