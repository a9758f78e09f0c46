"""The parser of one response: framing, wire machine, assembler and filters behind one `feed`.

    p = parser("messages")
    events = p.feed(chunk)          # any split of the bytes
    events += p.close()             # exactly one terminal event in all

A parser never raises on what a provider sends: the stream ends in `Failed`. It has no clock and
does no I/O; input after the terminal event is ignored.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
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
from streamlib_parsers.filter_chain import EventFilter, FilterChain
from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.items import Message, Origin, Reasoning, ToolSpec, WireApi, tag
from streamlib_parsers.json_text import (
    decode_any,
    is_complete_frame,
    is_truncated_json,
)
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.namespaces import NamespaceFilter, Namespaces, flat_tools

if TYPE_CHECKING:
    from streamlib_parsers.dialects import Dialect

WIRE_APIS: Final[tuple[WireApi, ...]] = get_args(WireApi)


class WireMachine(Protocol):
    """The state machine of a wire: frames in, calls of the assembler's methods out."""

    @property
    def complete(self) -> bool:
        """Whether the wire reported a complete response; a client may stop reading soon after."""
        ...

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one frame.

        Raises:
            ParseFailure: the stream ends in `Failed`.
        """
        ...

    def end(self) -> None:
        """End of input: completes the response.

        Raises:
            ParseFailure: `truncated`, where the wire has not reported a complete response.
        """
        ...


class Wire(Protocol):
    """The module of a wire: `wires/<name>.py` or `wires/<name>/__init__.py`."""

    Machine: Callable[[EventAssembler], WireMachine]
    framing: Callable[[Limits], Framing]
    body_frames: Callable[[bytes], Iterator[tuple[str | None, bytes]]]


@cache
def wire(wire_api: str) -> Wire:
    """The module of a wire API, imported at first use.

    Raises:
        ValueError: no wire API has this name.
    """
    if wire_api not in WIRE_APIS:
        raise ValueError(f"unknown wire API {wire_api!r}: one of {', '.join(WIRE_APIS)}")
    return cast("Wire", importlib.import_module(f"streamlib_parsers.wires.{wire_api}"))


class Parser:
    """Parser of one response of one wire API. Made by `parser(...)`."""

    def __init__(
        self,
        module: Wire,
        assembler: EventAssembler,
        limits: Limits,
        wire_api: WireApi,
        filters: Sequence[EventFilter] = (),
    ) -> None:
        self.wire_api: WireApi = wire_api
        """The wire API it reads."""
        self._assembler = assembler
        self._filters: FilterChain | None = None
        self._drain = assembler.take
        """Returns the events since the last call: straight from the assembler where no filter
        is between."""
        if filters:
            self._filters = FilterChain(filters, assembler)
            self._drain = self._filters.take
        self._machine = module.Machine(assembler)
        self._framing = module.framing(limits)
        # Bound once: `feed` calls them for every chunk.
        self._single = self._framing.single
        self._read_frame = self._machine.frame
        self._module = module
        self._limits = limits
        self._remaining_bytes = limits.response_bytes
        """How many bytes of `response_bytes` are left; negative once the limit was exceeded."""
        self._framed = False
        """Whether a frame was read, or a complete body: stray lines after it are not a body."""
        self._stray: list[bytes] = []
        """Lines outside of any frame, until the first frame: a body may have been sent in place of
        a stream."""
        self._closed = False
        """Set by the first `close`."""

    @property
    def complete(self) -> bool:
        """Whether the wire reported a complete response.

        `Completed` may wait for the end of input.
        """
        return self._machine.complete

    @property
    def ended(self) -> bool:
        """Whether the terminal event was emitted."""
        return self._assembler.ended

    @property
    def unfiltered_events(self) -> list[ResponseEvent] | None:
        """The events of the last call before any filter could buffer them; None without filters."""
        if self._filters is None:
            return None
        return self._filters.unfiltered

    def feed(self, chunk: bytes) -> list[ResponseEvent]:
        """The events of `chunk`. Bytes after the terminal event are ignored.

        Raises:
            TypeError: `chunk` is not bytes.
        """
        assembler = self._assembler
        if not assembler.ended:
            if type(chunk) is not bytes:
                chunk = _as_bytes(chunk)
            self._remaining_bytes = remaining = self._remaining_bytes - len(chunk)
            # What fits into the limit is read before the limit ends the stream, so that its events
            # do not depend on the split.
            if remaining < 0:
                chunk = chunk[:remaining]
            try:
                payload = self._single(chunk)
                if payload is not None:
                    self._framed = True
                    event, data = payload  # passed as `*payload` they would be a tuple again
                    self._read_frame(event, data)
                elif chunk:
                    self._read_frames(chunk)
                if remaining < 0 and not assembler.ended:
                    raise self._too_many_bytes()
            except (ParseFailure, RecursionError) as failure:
                assembler.fail(_as_error_info(failure))
        return self._drain()

    def feed_event(self, data: bytes | str, event: str | None = None) -> list[ResponseEvent]:
        """The events of one framed message: an SSE event, a WebSocket message, a JSON line."""
        assembler = self._assembler
        if not assembler.ended:
            payload = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
            try:
                self._count(len(payload))
                self._framed = True
                self._machine.frame(event, payload)
            except (ParseFailure, RecursionError) as failure:
                assembler.fail(_as_error_info(failure))
        return self._drain()

    def close(self) -> list[ResponseEvent]:
        """End of input: after it, exactly one terminal event was emitted in all.

        A second call returns `[]`.
        """
        assembler = self._assembler
        if not (assembler.ended or self._closed):
            self._closed = True
            try:
                self._finish()
            except (ParseFailure, RecursionError) as failure:
                assembler.fail(_as_error_info(failure))
        return self._drain()

    # --- bytes ---

    def _read_frames(self, chunk: bytes) -> None:
        """Reads the frames of a chunk that is not a single one."""
        # Bound once: this loop runs for every frame.
        assembler, framing, read_frame = self._assembler, self._framing, self._read_frame
        for frame in framing.feed(chunk):
            if frame.stray:
                self._read_stray_lines(frame)
            data = frame.data
            if data is not None:
                self._framed = True
                read_frame(frame.event, data)
                if assembler.ended:
                    return
        if framing.failure is not None:
            raise framing.failure

    def _count(self, size: int) -> None:
        self._remaining_bytes -= size
        if self._remaining_bytes < 0:
            raise self._too_many_bytes()

    def _too_many_bytes(self) -> ParseFailure:
        return limit_exceeded("response_bytes", self._limits.response_bytes)

    def _finish(self) -> None:
        framing = self._framing
        for frame in framing.close():
            if frame.stray:
                self._read_stray_lines(frame)
            if frame.data is not None:
                self._feed_final_frame(frame)
        if self._assembler.ended:
            return
        if framing.failure is not None:
            raise framing.failure
        if not self._framed:
            self._close_without_frames()
        if not self._assembler.ended:
            self._machine.end()

    def _feed_final_frame(self, frame: Frame) -> None:
        """Reads the frame that lacks nothing but its terminator."""
        data = frame.data or b""
        if not is_complete_frame(data):
            raise truncated(f"the stream ended inside {self._innermost()}", excerpt(data))
        self._framed = True
        self._machine.frame(frame.event, data)
        if not self._assembler.ended:
            self._assembler.note_inferred_end("the stream ended without closing its last message")

    def _innermost(self) -> str:
        """What the frame at the end of input belongs to: the item that was opened last."""
        open_items = self._assembler.open_items
        if not open_items:
            return "a frame"
        item = open_items[-1].item
        if isinstance(item, Message):
            return "a message"
        if isinstance(item, Reasoning):
            return "reasoning"
        if tag(type(item)).endswith("_call"):
            return "a call"
        return "an item"

    # --- lines that belong to no frame ---

    def _read_stray_lines(self, frame: Frame) -> None:
        """Reads lines outside of any frame.

        A bare error object, a complete body in place of a stream, or a page of HTML.
        """
        error = _error_in(frame.stray)
        if error is not None:
            raise ParseFailure(classify(None, error))
        if self._framed:
            self._assembler.passthrough("stray", frame.stray.decode("utf-8", "replace"))
        else:
            self._stray.append(frame.stray)

    def _close_without_frames(self) -> None:
        """End of input without a frame: the stray lines are the body, or there is none."""
        stray = b"\n".join(self._stray)
        is_partial_field = any(field.startswith(stray) for field in SSE_FIELDS)
        if stray and not is_partial_field:
            self._feed_body(stray)
        elif self._framing.blank:
            raise malformed("the stream was empty", code="empty_stream")
        else:
            raise truncated("the stream ended before its first message")

    # --- a complete body ---

    def feed_body(
        self, body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> list[ResponseEvent]:
        """The events of a complete, non-streaming body.

        Args:
            body: the JSON of a response, or of an error.
            status: HTTP status; from 400 on the body is an error.
            headers: response headers, for the delay that an error asks for.

        Raises:
            TypeError: `body` is not bytes.
        """
        body = _as_bytes(body)
        assembler = self._assembler
        if not assembler.ended:
            try:
                self._count(len(body))
                if status is not None and status >= 400:
                    raise ParseFailure(classify(status, _decoded(body), headers))
                self._feed_body(body)
            except (ParseFailure, RecursionError) as failure:
                assembler.fail(_as_error_info(failure))
        return self._drain()

    def _feed_body(self, body: bytes) -> None:
        self._framed = True
        # Once, here: in the frames made of the body the machine finds no half emoji any more.
        body = self._assembler.mark_surrogates(body)
        try:
            for event, data in self._module.body_frames(body):
                self._machine.frame(event, data)
        except ParseFailure as failure:
            if failure.info.kind != "malformed":
                raise
            error = _error_in(body)
            if error is not None:
                raise ParseFailure(classify(None, error)) from None
            if is_truncated_json(body):
                raise truncated("the body ends inside its JSON", excerpt(body)) from None
            raise failure from None

    def abort(self, error: ErrorInfo) -> list[ResponseEvent]:
        """Ends the stream from outside (connection lost, deadline, cancelled) with `Failed`."""
        self._assembler.fail(error)
        return self._drain()


def _as_bytes(data: object) -> bytes:
    """Returns the bytes; raises a clear `TypeError` for text, which HTTP libraries can return."""
    if not isinstance(data, bytes | bytearray):
        raise TypeError(f"a parser reads bytes, not {type(data).__name__}: pass undecoded bytes")
    return bytes(data)


SSE_FIELDS: Final = (b"data", b"event", b"id", b"retry")
"""A stray line that begins one of these is a stream truncated in its first line, not a body."""


ERROR_KEYS: Final = frozenset({"error", "detail", "base_resp", "Message", "errors"})


def _error_in(text: bytes) -> Any:
    """The value of a text that is an error.

    JSON, bare, in a list, or after `error:`; else None.
    """
    text = text.strip()
    is_named = text.startswith(b"error:")
    try:
        value = decode_any(text.removeprefix(b"error:"))
    except ParseFailure:
        return None
    inner = value[0] if isinstance(value, list) and value else value
    if not isinstance(inner, dict):
        return None
    has_error_key = any(inner.get(key) for key in ERROR_KEYS)
    if is_named or has_error_key or {"code", "message"} <= inner.keys():
        return value
    return None


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
    namespaces: Namespaces | None = None,
) -> Parser:
    """A parser for one response of `wire_api`.

    Args:
        wire_api: the wire API of the response.
        tools: the tools offered; dialects match no others, and their schemas type the values.
        dialects: syntaxes of calls or reasoning written inside text, by name or as `Dialect`.
        headers: response headers, read for rate limits and the request id.
        received_at: aware time at which the headers arrived; makes relative resets absolute.
        origin: stamped on every item.
        limits: exceeding one ends the stream with `limit_exceeded`.
        call_id: generates the id of the n-th call (from 0) that came without one.
        names: sent tool name -> your tool name.
        namespaces: your tool name -> namespace and name there, of tools that were flattened.

    Raises:
        ValueError: unknown wire API or dialect.
    """
    module = wire(wire_api)
    if namespaces:
        tools = flat_tools(tools, namespaces)
    offered: Collection[str] = ()
    if tools or names:
        # The keys of `names` are the names as they were sent.
        offered = {tool.name for tool in tools} | set(names or ())
    assembler = EventAssembler(
        limits, origin or Origin(wire_api), call_id or default_call_id, names, offered
    )
    if headers is not None:
        # Imported at first use: without a response of HTTP there are no headers.
        from streamlib_parsers.rate_limits import read_rate_limits

        assembler.rate_limits(read_rate_limits(headers, received_at))
    filters: list[EventFilter] = []
    if dialects:
        filters.append(_dialect_filter(dialects, tools, assembler, names))
    if tools:
        filters.append(_leak_filter())
    if namespaces:
        filters.append(NamespaceFilter(namespaces))
    return Parser(module, assembler, limits, wire_api, filters)


def _dialect_filter(
    dialects: Sequence[str | Dialect],
    tools: Sequence[ToolSpec],
    assembler: EventAssembler,
    names: Mapping[str, str] | None,
) -> EventFilter:
    # Imported at first use: most parsers have no dialect, and the grammars take a third of the
    # package's import time.
    from streamlib_parsers.dialects.filter import DialectFilter

    # The filter draws its call ids from the wire's assembler, so that neither repeats an id of the
    # other.
    return DialectFilter(
        dialects, tools, assembler.limits, lambda _: assembler.new_call_id(), names
    )


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
    """The events of a complete, non-streaming body: per item Added, one delta a part, Done.

    Args:
        wire_api: the wire API of the response.
        body: the JSON of a response, or of an error.
        status: HTTP status; from 400 on the body is an error.
        headers: response headers.
        options: as for `parser`.
    """
    body_parser = parser(wire_api, headers=headers, **options)
    return [*body_parser.feed_body(body, status, headers), *body_parser.close()]


def _as_error_info(failure: ParseFailure | RecursionError) -> ErrorInfo:
    if isinstance(failure, ParseFailure):
        return failure.info
    # A decoder, or a walk over a value, ran out of stack: no model's response is nested that deep.
    return malformed("JSON nested too deep").info


def _decoded(body: bytes) -> Any:
    try:
        return decode_any(body)
    except ParseFailure:
        return body.decode("utf-8", "replace")
