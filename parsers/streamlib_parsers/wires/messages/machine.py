"""Anthropic Messages: named SSE events, content blocks by index.

The wire (Anthropic's streaming documentation; event and block types of its Python SDK 2.12):

    message_start           id, model, input usage
      content_block_start 0   {"type":"thinking"}          -> OutputItemAdded(Reasoning)
      content_block_delta 0   thinking_delta, signature_delta
      content_block_stop  0                                -> OutputItemDone
      content_block_start 1   {"type":"tool_use","id":…,"name":…,"input":{}}
      content_block_delta 1   input_json_delta             -> FunctionCallArgumentsDelta
      content_block_stop  1
    message_delta           stop_reason, cumulative usage
    message_stop            the response is complete       -> Completed, at end of input

`ping` comes anywhere; `error` ends the stream. Blocks are tracked by index: llama.cpp sends the
signature and stop of block 0 after block 1's deltas. Nothing is buffered but half a surrogate
pair; `Completed` waits for the end of input, because a second `message_start` of the same response
may follow `message_stop`: its blocks become further items, with a Notice. One with another id
begins another response, which is not read.

If no delta brings text, a call's arguments are the `input` of its start, in the provider's own
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import (
    Compaction,
    FunctionCall,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import (
    DECODE_ERRORS,
    decode_any,
    mark_surrogates,
    objects_at,
    string_at,
    string_or_none,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.stop_reasons import reconcile
from streamlib_parsers.usage import count, overlay, total
from streamlib_parsers.wires.messages.blocks import item_of
from streamlib_parsers.wires.messages.events import (
    DELTA_KINDS,
    KINDS,
    NAMES,
    CitationsDelta,
    CompactionDelta,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    Delta,
    ErrorEvent,
    Event,
    InputJsonDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    SignatureDelta,
    TextBearingDelta,
    TextDelta,
    ThinkingDelta,
    WireEvent,
    decode,
    decode_values,
)
from streamlib_parsers.wires.messages.token_counts import ESTIMATE, usage

STOP_REASONS: Final[dict[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",
}


class State(StrEnum):
    """State of the stream; a `str`, whose hash is read for each event."""

    START = "before the first message_start"
    WITHIN = "inside a message"
    STOPPED = "after message_stop"


TRANSITIONS: Final[dict[State, dict[str, State]]] = {
    State.START: {
        "message_start": State.WITHIN,
        "content_block_start": State.WITHIN,
        "ping": State.START,
        "error": State.STOPPED,
    },
    State.WITHIN: {
        "message_start": State.WITHIN,
        "content_block_start": State.WITHIN,
        "content_block_delta": State.WITHIN,
        "content_block_stop": State.WITHIN,
        "message_delta": State.WITHIN,
        "message_stop": State.STOPPED,
        "ping": State.WITHIN,
        "error": State.STOPPED,
    },
    State.STOPPED: {"message_start": State.WITHIN, "ping": State.STOPPED, "error": State.STOPPED},
}
"""State -> event -> next state. A known event without an entry is passed through, not applied."""

ACCEPTED_DELTAS: Final[dict[type[ResponseItem], tuple[type[Delta], ...]]] = {
    Message: (TextDelta, CitationsDelta, SignatureDelta),
    Reasoning: (ThinkingDelta, SignatureDelta),
    FunctionCall: (InputJsonDelta, SignatureDelta),
    ServerToolCall: (InputJsonDelta,),
    ServerToolResult: (),
    Compaction: (CompactionDelta, SignatureDelta),
    Opaque: (),
}
"""Item class -> the deltas that can be applied to it; any other one marks it incomplete."""

CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Block kinds whose `input` is the arguments of a call."""

MESSAGE_KEYS: Final = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
)
"""Keys of the message of a `message_start` that are read. Every other key is metadata."""

DELTA_KEYS: Final = frozenset({"type", "delta", "usage"})
STOP_KEYS: Final = frozenset({"type", "stop_reason", "stop_sequence"})
TYPE: Final = frozenset({"type"})
"""The same keys of a `message_delta`, of its `delta`, and of a `message_stop`."""

TextEmitter: TypeAlias = Callable[[EventAssembler, OpenItem, str], None]

NO_TEXT: Final[tuple[None, TextEmitter]] = (None, EventAssembler.text)
"""Of the items that take no text: the method is never called."""

TEXT_HANDLING: Final[dict[type, tuple[type[TextBearingDelta] | None, TextEmitter]]] = {
    Message: (TextDelta, EventAssembler.text),
    Reasoning: (ThinkingDelta, EventAssembler.reasoning),
    FunctionCall: (InputJsonDelta, EventAssembler.arguments),
    ServerToolCall: (InputJsonDelta, EventAssembler.arguments),
}
"""Item class -> the class of its text deltas, and the method that emits their text."""


class Block:
    """An open block: its item, the class of its text deltas, and the method that emits them."""

    __slots__ = ("emit_text", "item", "text_delta")

    def __init__(self, item: OpenItem) -> None:
        self.item = item
        self.text_delta, self.emit_text = TEXT_HANDLING.get(type(item.item), NO_TEXT)


class Machine:
    """Reads the events of one stream."""

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        # The row of TRANSITIONS in force; changes with every applied event.
        self._state = State.START
        # Open blocks by wire index; empty again after message_stop.
        self._blocks: dict[int, Block] = {}
        # Starts of open calls, by wire index, until their block stops: only then is it known that
        # no delta came, which would win over their `input`.
        self._starts: dict[int, msgspec.Raw] = {}
        # Indexes that were opened in this message: none may be opened twice, or its deltas could
        # belong to either block. Each opened an item, so `Limits.items` bounds it.
        self._seen: set[int] = set()
        # Ids of the provider-run calls whose results were received: code with a result waits for no
        # call of its own any more (`_call_waits`).
        self._results: set[str] = set()
        # The wire's usage object, merged over the stream: input is counted in message_start, output
        # in message_delta.
        self._usage: dict[str, Any] = {}
        # The last values that were not null; read at the end, as a later event may replace them.
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None

    @property
    def complete(self) -> bool:
        """Whether `message_stop` was the last event that counts."""
        return self._state is State.STOPPED

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one event.

        Text deltas of open blocks are nearly all of a stream and are applied here, without the
        transition table: no block is open where the table has no deltas.
        """
        try:
            message = decode(data)
        except DECODE_ERRORS:
            self._read_malformed(event, data)
            return
        if type(message) is ContentBlockDelta:
            block = self._blocks.get(message.index)
            # The comparison of classes below makes this type true. `isinstance` with the
            # union, which mypy would understand, costs 4 % of the time of a stream.
            delta: TextBearingDelta = message.delta  # type: ignore[assignment]
            if block is not None and type(delta) is block.text_delta and delta.text:
                block.emit_text(self._assembler, block.item, delta.text)
                return
        self._apply(message, data)

    def end(self) -> None:
        """Completes the response, if `message_stop` was seen."""
        if not self.complete:
            # A known stop reason shows the caller that only message_stop was lost.
            detail = None
            if self._stop_reason:
                detail = {"stop_reason": self._stop_reason}
            raise truncated("the stream ended before message_stop", detail)
        stop_reason = STOP_REASONS.get(self._stop_reason or "", "other")
        stop_reason = reconcile(
            self._assembler, stop_reason, self._stop_reason, call_waits=self._call_waits()
        )
        self._assembler.complete(stop_reason, self._stop_reason, self._stop_sequence)

    def _call_waits(self) -> bool:
        """Whether a complete call waits for its result.

        Code that the provider runs may call a tool (`caller.tool_id`): once the code has its
        result, the call must have had one too.
        """
        for call in self._assembler.complete_calls:
            caller = (call.native or {}).get("caller")
            if not isinstance(caller, dict) or string_at(caller, "tool_id") not in self._results:
                return True
        return False

    def _apply(self, message: WireEvent, data: bytes) -> None:
        name = NAMES[type(message)]
        row = TRANSITIONS[self._state]
        if name not in row:
            self._assembler.notice("out_of_order", f"{name} {self._state.value}")
            self._assembler.passthrough(name, decode_any(data))
            return
        if type(message) is MessageStart and self._state is not State.START:
            if self._is_other_response(message.message):
                self._assembler.notice(
                    "second_response", "a message_start of another id follows: not read"
                )
                self.end()
                return
            self._restart()
        self._state = row[name]
        HANDLERS[type(message)](self, message, data)

    # --- events that the decoder rejected ---

    def _read_malformed(self, event: str | None, data: bytes) -> None:
        # Gateways in front of several wires end this one with OpenAI's `[DONE]` too.
        if data.strip().lower() in (b"", b"[done]"):
            return
        value, data = self._assembler.decode_object(data)
        # Some gateways send the type in the SSE event line alone.
        kind = value.get("type") or event
        if not isinstance(kind, str | None):
            raise malformed("the type of an event is not a string", data)
        if kind in KINDS:
            self._apply_lenient(kind, value, data)
        elif kind is None and value.get("error"):
            raise ParseFailure(classify(None, value))
        elif kind is None or kind == "chunk":
            # Not an event of the wire: keys that a proxy adds, or a bare `chunk` of Bedrock.
            self._assembler.metadata(value)
        else:
            self._assembler.passthrough(str(kind), value)

    def _apply_lenient(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """Applies a known event that the strict decoder rejected.

        Its text was repaired, its index is a float, its type was in the event line only, or its
        delta is of an unknown kind.
        """
        index = value.get("index")
        has_integral_float = isinstance(index, float) and index.is_integer()
        if has_integral_float:
            value["index"] = int(value["index"])
        if has_integral_float or value.get("type") != kind:
            value["type"] = kind
            data = msgspec.json.encode(value)
        try:
            message = decode(data)
        except msgspec.ValidationError as error:
            if kind == "content_block_delta" and _has_unknown_delta(value):
                self._reject_unknown_delta(value)
                return
            raise malformed(f"{kind}: {error}", data) from None
        self._apply(message, data)

    def _reject_unknown_delta(self, value: dict[str, Any]) -> None:
        index = value.get("index")
        block = None
        if isinstance(index, int):
            block = self._blocks.get(index)
        if block is None:
            raise malformed(f"a delta for block {index}, which is not open")
        self._reject_delta(block.item, value)

    def _reject_delta(self, item: OpenItem, value: Any) -> None:
        self._assembler.passthrough("content_block_delta", value)
        delta_kind = value["delta"].get("type")
        self._assembler.mark_incomplete(item, f"{delta_kind} on {type(item.item).__name__}")

    # --- content blocks ---

    def _on_start(self, message: ContentBlockStart, data: bytes) -> None:
        index = message.index
        if index in self._seen:
            # Its deltas could not be distinguished from those of the first one.
            raise malformed(f"block {index} was started twice", data)
        block = _decode_block(message.content_block)
        if not isinstance(block, dict):
            raise malformed("content_block_start: a block is not an object", data)
        kind = string_at(block, "type")
        self._seen.add(index)
        item = self._open(item_of(kind, block))
        self._blocks[index] = Block(item)
        if kind in CALLS:
            self._starts[index] = message.content_block
        self._read_initial_content(item, kind, block)

    def _open(self, item: ResponseItem) -> OpenItem:
        """Opens an item; a call without an id gets one, a call without a name ends incomplete."""
        if type(item) is Message:  # most are: no call for each
            return self._assembler.open(item)
        if isinstance(item, ServerToolResult):
            self._results.add(item.call_id)
        if not isinstance(item, (FunctionCall, ServerToolCall)):
            return self._assembler.open(item)
        if not item.call_id:
            # Two calls without ids would share "", and so would their results.
            item = msgspec.structs.replace(item, call_id=self._assembler.new_call_id())
        opened = self._assembler.open(item)
        if not item.name:
            # A call that cannot be dispatched must never reach `Response.calls`.
            opened.forced_incomplete = True
            self._assembler.notice("nameless_call", "a call without a name", opened)
        return opened

    def _read_initial_content(self, item: OpenItem, kind: str, block: dict[str, Any]) -> None:
        """Reads what the start of a block already contains (complete bodies: all of it)."""
        assembler = self._assembler
        if kind == "text":
            if block.get("citations"):
                for citation in objects_at(block, "citations"):
                    assembler.annotation(item, citation)
            # A text block without any text is a message with one empty text.
            item.part(0)
            if block.get("text"):
                assembler.text(item, string_at(block, "text"))
        elif kind == "thinking":
            assembler.reasoning(item, string_at(block, "thinking"))
        elif kind == "fallback" and isinstance(block.get("to"), dict):
            # From here on another model continues the response.
            assembler.rename_model(string_or_none(block["to"], "model"))

    def _on_delta(self, message: ContentBlockDelta, data: bytes) -> None:
        block = self._blocks.get(message.index)
        if block is None and message.index in self._seen and type(message.delta) is CitationsDelta:
            # A citation that comes late changes no text: it is no reason to fail the response.
            self._assembler.notice(
                "out_of_order", f"citations_delta for block {message.index}, which has stopped"
            )
            self._assembler.passthrough("content_block_delta", decode_any(data))
            return
        if block is None:
            raise malformed(f"a delta for block {message.index}, which is not open", data)
        item, delta = block.item, message.delta
        # Never guess: text of a call's arguments in a message would be shown to a user.
        if type(delta) not in ACCEPTED_DELTAS[type(item.item)]:
            self._reject_delta(item, decode_any(data))
            return
        match delta:
            case SignatureDelta():
                item.fields["signature"] = delta.signature
            case CitationsDelta():
                self._assembler.annotation(item, delta.citation)
            case CompactionDelta():
                _set_compaction(item, delta)
            case _:
                # Text comes here only if `_apply_lenient` had to repair its event.
                block.emit_text(self._assembler, item, delta.text or "")
                if type(delta) is ThinkingDelta:
                    self._estimate_thinking(delta.estimated_tokens)

    def _on_stop(self, message: ContentBlockStop, data: bytes) -> None:
        block = self._blocks.pop(message.index, None)
        if block is None:
            # It changes no content: no reason to fail a response that is complete.
            self._assembler.notice(
                "out_of_order", f"the stop of block {message.index}, which is not open"
            )
            self._assembler.passthrough("content_block_stop", decode_any(data))
            return
        item = block.item
        start = self._starts.pop(message.index, None)
        # Deltas win: Anthropic's own starts have `"input":{}` before them.
        if start is not None and not item.arguments:
            # In the provider's own bytes.
            initial_input = bytes(_values_of(start).get("input", b""))
            if initial_input.strip() != b"null":
                self._assembler.arguments(item, initial_input.decode("utf-8", "replace"))
        self._assembler.close(item)

    # --- the envelope ---

    def _is_other_response(self, message: Any) -> bool:
        """Whether a `message_start` after `message_stop` has another id: two captures in one."""
        if not self.complete or not isinstance(message, dict):
            return False
        response_id = string_or_none(message, "id")
        known_id = self._assembler.response_id
        return bool(response_id and known_id) and response_id != known_id

    def _restart(self) -> None:
        """Reads a second `message_start`: block indexes begin again, items and usage continue."""
        self._assembler.notice(
            "second_message_start", "its blocks are further items of the same response"
        )
        self._blocks.clear()
        self._starts.clear()
        self._seen.clear()

    def _on_message_start(self, message: MessageStart, data: bytes) -> None:
        start = message.message
        if not isinstance(start, dict):
            raise malformed("message_start without a message", data)
        self._assembler.identify(string_or_none(start, "id"), string_or_none(start, "model"))
        self._read_stop(start)
        self._assembler.other_metadata(start, MESSAGE_KEYS)
        self._read_usage(start.get("usage"))
        if start.get("content"):
            # The wire has an empty list here; content comes in blocks only.
            self._assembler.passthrough("message_start.content", start["content"])

    def _on_message_delta(self, message: MessageDelta, data: bytes) -> None:
        value = decode_any(data)
        delta = value.get("delta")
        if isinstance(delta, dict):
            self._read_stop(delta)
            self._assembler.other_metadata(delta, STOP_KEYS)
        self._read_usage(value.get("usage"))
        self._assembler.other_metadata(value, DELTA_KEYS)

    def _on_message_stop(self, message: MessageStop, data: bytes) -> None:
        # Blocks that are still open take no more deltas; the assembler closes them incomplete.
        self._blocks.clear()
        self._assembler.other_metadata(decode_any(data), TYPE)

    def _on_ping(self, message: Ping, data: bytes) -> None:
        """It keeps the connection alive, and is no progress of the response."""

    def _on_error(self, message: ErrorEvent, data: bytes) -> None:
        raise ParseFailure(classify(None, decode_any(data)))

    def _read_stop(self, values: dict[str, Any]) -> None:
        # The last value that is not null wins: message_start has nulls, a second message_delta may.
        reason = values.get("stop_reason")
        if isinstance(reason, str):
            self._stop_reason = reason
        sequence = values.get("stop_sequence")
        if isinstance(sequence, str):
            self._stop_sequence = sequence

    def _estimate_thinking(self, tokens: Any) -> None:
        """Emits the estimate so far, the only sign of progress while thinking is omitted."""
        so_far = count(self._usage, ESTIMATE)
        estimate = total(so_far, count({ESTIMATE: tokens}, ESTIMATE))
        if estimate != so_far:
            self._usage = {**self._usage, ESTIMATE: estimate}
            self._assembler.usage(usage(self._usage))

    def _read_usage(self, raw: Any) -> None:
        if isinstance(raw, dict):
            # Counts are cumulative: the newest replaces, it is never added. It replaces every
            # estimate, too.
            counted = self._usage
            if ESTIMATE in counted:
                counted = {key: value for key, value in counted.items() if key != ESTIMATE}
            self._usage = overlay(counted, raw)
            self._assembler.usage(usage(self._usage))


_Event = TypeVar("_Event", bound=Event)

HANDLERS: Final[dict[type[Event], Callable[[Machine, Any, bytes], None]]] = {}
"""Handlers by class of the event; filled by `_register` alone, which checks that both agree."""


def _register(event: type[_Event], handler: Callable[[Machine, _Event, bytes], None]) -> None:
    HANDLERS[event] = handler


_register(ContentBlockDelta, Machine._on_delta)
_register(ContentBlockStart, Machine._on_start)
_register(ContentBlockStop, Machine._on_stop)
_register(MessageStart, Machine._on_message_start)
_register(MessageDelta, Machine._on_message_delta)
_register(MessageStop, Machine._on_message_stop)
_register(Ping, Machine._on_ping)
_register(ErrorEvent, Machine._on_error)


def _decode_block(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except DECODE_ERRORS:
        pass
    try:
        return decode_any(bytes(raw))
    except ParseFailure:
        values = _values_of(raw)
    # The arguments of a call are text, and may hold a number that Python has not.
    block = {key: decode_any(bytes(value)) for key, value in values.items() if key != "input"}
    if string_at(block, "type") not in CALLS and "input" in values:
        block["input"] = decode_any(bytes(values["input"]))
    return block


def _values_of(raw: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The keys of a block, with the provider's own bytes of each value."""
    try:
        return decode_values(raw)
    except DECODE_ERRORS:
        # The event was decoded without a look into the block: a key may be no UTF-8.
        block = bytes(raw)
    try:
        return decode_values(mark_surrogates(block) or block)
    except DECODE_ERRORS:
        raise malformed("content_block_start: not JSON", block) from None


def _has_unknown_delta(value: dict[str, Any]) -> bool:
    delta = value.get("delta")
    return isinstance(delta, dict) and string_at(delta, "type") not in DELTA_KINDS


def _set_compaction(item: OpenItem, delta: CompactionDelta) -> None:
    if delta.content is not None:
        item.fields["content"] = delta.content
    if delta.encrypted_content is not None:
        item.fields["encrypted_content"] = delta.encrypted_content
