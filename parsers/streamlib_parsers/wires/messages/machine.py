"""Anthropic Messages: named SSE events, content blocks by index.

What the wire promises (Anthropic's streaming documentation; event and block types of its Python SDK 2.12):

    message_start                  id, model, input usage
      content_block_start  0       {"type":"thinking"}           -> OutputItemAdded(Reasoning)
      content_block_delta  0       thinking_delta, signature_delta
      content_block_stop   0                                     -> OutputItemDone
      content_block_start  1       {"type":"tool_use","id":…,"name":…,"input":{}}
      content_block_delta  1       input_json_delta              -> FunctionCallArgumentsDelta
      content_block_stop   1
    message_delta                  stop_reason, cumulative usage
    message_stop                   the answer is whole           -> Completed, at end of input

`ping` comes anywhere; `error` ends the stream. Blocks are kept by index: llama.cpp sends the signature and stop of block 0 after
block 1's deltas. Nothing is held back but half an emoji; `Completed` waits for the end of input, because a second
`message_start` may follow `message_stop` (its blocks become further items of the same response, with a Notice).

Without a delta that brings text, a call's arguments are the `input` of its start, in the provider's own bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.events import StopReason
from streamlib_parsers.framing.sse import SSEFraming as framing  # noqa: N813  # the name every wire gives its framing
from streamlib_parsers.items import (
    Compaction,
    FunctionCall,
    Message,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    tag,
)
from streamlib_parsers.json_text import (
    SurrogateJoiner,
    decode_any,
    mark_surrogates,
    objects_at,
    string_or_none,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage, count, overlay, total
from streamlib_parsers.wires.messages.blocks import item_of, string_at
from streamlib_parsers.wires.messages.events import (
    CitationsDelta,
    CompactionDelta,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    ErrorEvent,
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
)

__all__ = ["STOP_REASONS", "TRANSITIONS", "Machine", "State", "body_frames", "framing", "usage"]

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


class State(Enum):
    """Where a stream stands."""

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
"""The wire's law. A known event that its row does not name is passed through and not applied."""


class Block(Struct, frozen=True, gc=False):
    """An open block: its item, the deltas it nearly always gets, and what is done with the text of one."""

    item: OpenItem
    growth: type[TextBearingDelta] | None
    grow: Callable[[OpenItem, str], None]


class Machine:
    """Reads the events of one stream."""

    def __init__(self, assembly: EventAssembler) -> None:
        self._assembly = assembly
        self._state = State.START
        self._blocks: dict[int, Block] = {}
        self._inputs: dict[int, bytes] = {}
        self._seen: set[int] = set()
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None

    @property
    def complete(self) -> bool:
        """`message_stop` was seen, and nothing began after it."""
        return self._state is State.STOPPED

    def frame(self, event: str | None, data: bytes) -> None:
        """One event. Deltas of open blocks are nearly all of a stream: they are applied here, everything else by the law."""
        try:
            message = decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._read_malformed(event, data)
            return
        if type(message) is ContentBlockDelta:
            block = self._blocks.get(message.index)
            delta: Any = message.delta
            if block is not None and type(delta) is block.growth:
                block.grow(block.item, delta.said or "")
                return
        self._apply(message, data)

    def end(self) -> None:
        """Complete only if `message_stop` was seen."""
        if not self.complete:
            raise truncated(
                "the stream ended before message_stop",
                {"stop_reason": self._stop_reason} if self._stop_reason else None,
            )
        stop_reason = STOP_REASONS.get(self._stop_reason or "", "other")
        self._assembly.complete(stop_reason, self._stop_reason, self._stop_sequence)

    def _apply(self, message: WireEvent, data: bytes) -> None:
        kind = type(message)
        name = tag(kind)
        row = TRANSITIONS[self._state]
        if name not in row:
            self._assembly.notice("out_of_order", f"{name} {self._state.value}")
            self._assembly.passthrough(name, decode_any(data))
            return
        if kind is MessageStart:
            self._restart()
        self._state = row[name]
        self.HANDLERS[kind](self, message, data)

    # --- what the decoder refused ---

    def _read_malformed(self, event: str | None, data: bytes) -> None:
        if data.strip().lower() in (b"", b"[done]"):
            return
        fixed = mark_surrogates(data)
        if fixed is not None:
            self._assembly.surrogates = self._assembly.surrogates or SurrogateJoiner()
        self._apply_any(event, fixed or data)

    def _apply_any(self, event: str | None, data: bytes) -> None:
        value = decode_any(data)
        if not isinstance(value, dict):
            raise malformed("an event is not a JSON object", data)
        kind = value.get("type") or event
        if not isinstance(kind, str | None):
            raise malformed("the type of an event is not a word", data)
        if kind in KINDS:
            self._apply_lenient(kind, value, data)
        elif kind is None and value.get("error"):
            raise ParseFailure(classify(None, value))
        elif kind is None or kind == "chunk":
            self._assembly.metadata(value)
        else:
            self._assembly.passthrough(str(kind), value)

    def _apply_lenient(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """A known kind in an unusual dress: repaired text, a float index, its type only in the event line, an unknown delta."""
        index = value.get("index")
        if value.get("type") != kind or (isinstance(index, float) and index.is_integer()):
            value = {
                **value,
                "type": kind,
                "index": int(index) if isinstance(index, float) else index,
            }
            data = msgspec.json.encode(value)
        try:
            message = decode(data)
        except msgspec.ValidationError as error:
            delta = value.get("delta")
            if (
                kind == "content_block_delta"
                and isinstance(delta, dict)
                and string_at(delta, "type") not in DELTA_KINDS
            ):
                self._unknown_delta(value)
                return
            raise malformed(f"{kind}: {error}", data) from None
        self._apply(message, data)

    def _unknown_delta(self, value: dict[str, Any]) -> None:
        index = value.get("index")
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None:
            raise malformed(f"a delta for block {index}, which is not open")
        self._reject_delta(block.item, value)

    def _reject_delta(self, block: OpenItem, value: Any) -> None:
        self._assembly.passthrough("content_block_delta", value)
        self._assembly.mark_incomplete(
            block, f"{value['delta'].get('type')} on {type(block.item).__name__}"
        )

    # --- one method an event ---

    def _restart(self) -> None:
        if self._state is State.START:
            return
        self._assembly.notice(
            "second_message_start", "its blocks are further items of the same response"
        )
        self._blocks.clear()
        self._inputs.clear()
        self._seen.clear()

    def _on_message_start(self, message: WireEvent, data: bytes) -> None:
        start = decode_any(data).get("message")
        if not isinstance(start, dict):
            raise malformed("message_start without a message", data)
        self._assembly.identify(string_or_none(start, "id"), string_or_none(start, "model"))
        self._stop(start)
        self._envelope(
            start, "id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"
        )
        self._count(start.get("usage"))
        if start.get("content"):
            self._assembly.passthrough("message_start.content", start["content"])

    def _on_start(self, message: ContentBlockStart, data: bytes) -> None:
        index, raw = message.index, message.content_block
        if index in self._seen:
            raise malformed(f"block {index} began twice", data)
        block = {key: decode_any(bytes(value)) for key, value in raw.items() if key != "input"}
        kind = string_at(block, "type")
        if kind not in CALLS and "input" in raw:
            block["input"] = decode_any(bytes(raw["input"]))
        self._seen.add(index)
        item = self._assembly.open(item_of(kind, block))
        growth, verb = TEXT_DELTAS.get(type(item.item), (None, "text"))
        self._blocks[index] = Block(item, growth, getattr(self._assembly, verb))
        if kind in CALLS:
            self._inputs[index] = bytes(raw.get("input", b""))
        self._begin(item, kind, block)

    def _begin(self, item: OpenItem, kind: str, block: dict[str, Any]) -> None:
        """Text that the start brings already, and the one kind that renames the model."""
        assembly = self._assembly
        if kind == "text":
            for citation in objects_at(block, "citations"):
                assembly.annotation(item, citation)
            item.part(0)
            assembly.text(item, string_at(block, "text"))
        elif kind == "thinking":
            assembly.reasoning(item, string_at(block, "thinking"))
        elif kind == "fallback" and isinstance(block.get("to"), dict):
            assembly.rename_model(string_or_none(block["to"], "model"))

    def _on_delta(self, message: ContentBlockDelta, data: bytes) -> None:
        block = self._blocks.get(message.index)
        if block is None:
            raise malformed(f"a delta for block {message.index}, which is not open", data)
        apply = DELTA_HANDLERS[type(block.item.item)].get(type(message.delta))
        if apply is None:
            self._reject_delta(block.item, decode_any(data))
        else:
            apply(self._assembly, block.item, message.delta)

    def _on_stop(self, message: ContentBlockStop, data: bytes) -> None:
        block = self._blocks.pop(message.index, None)
        if block is None:
            raise malformed(f"the stop of block {message.index}, which is not open", data)
        item, given = block.item, self._inputs.pop(message.index, b"")
        if not item.arguments and given and given.strip() != b"null":
            self._assembly.arguments(item, given.decode("utf-8", "replace"))
        self._assembly.close(item)

    def _on_message_delta(self, message: WireEvent, data: bytes) -> None:
        value = decode_any(data)
        delta = value.get("delta")
        if isinstance(delta, dict):
            self._stop(delta)
            self._envelope(delta, "type", "stop_reason", "stop_sequence")
        self._count(value.get("usage"))
        self._envelope(value, "type", "delta", "usage")

    def _on_message_stop(self, message: WireEvent, data: bytes) -> None:
        self._blocks.clear()
        self._envelope(decode_any(data), "type")

    def _on_ping(self, message: WireEvent, data: bytes) -> None:
        """Liveness, not progress."""

    def _on_error(self, message: WireEvent, data: bytes) -> None:
        raise ParseFailure(classify(None, decode_any(data)))

    # --- the envelope ---

    def _stop(self, values: dict[str, Any]) -> None:
        """The last reason that is not null wins."""
        reason, sequence = values.get("stop_reason"), values.get("stop_sequence")
        self._stop_reason = reason if isinstance(reason, str) else self._stop_reason
        self._stop_sequence = sequence if isinstance(sequence, str) else self._stop_sequence

    def _envelope(self, values: dict[str, Any], *known: str) -> None:
        self._assembly.metadata(
            {key: value for key, value in values.items() if key not in known and value is not None}
        )

    def _count(self, raw: Any) -> None:
        if isinstance(raw, dict):
            self._usage = overlay(self._usage, raw)
            self._assembly.usage(usage(self._usage))

    HANDLERS: ClassVar[dict[type, Callable[..., None]]] = {
        ContentBlockDelta: _on_delta,
        ContentBlockStart: _on_start,
        ContentBlockStop: _on_stop,
        MessageStart: _on_message_start,
        MessageDelta: _on_message_delta,
        MessageStop: _on_message_stop,
        Ping: _on_ping,
        ErrorEvent: _on_error,
    }


# --- deltas: which items they can be applied to, and how ---


def _grow(assembly: EventAssembler, item: OpenItem, delta: TextBearingDelta) -> None:
    getattr(assembly, TEXT_DELTAS[type(item.item)][1])(item, delta.said or "")


def _signature(assembly: EventAssembler, item: OpenItem, delta: SignatureDelta) -> None:
    item.fields["signature"] = delta.signature


def _citation(assembly: EventAssembler, item: OpenItem, delta: CitationsDelta) -> None:
    assembly.annotation(item, delta.citation)


def _compaction(assembly: EventAssembler, item: OpenItem, delta: CompactionDelta) -> None:
    given = {"content": delta.content, "encrypted_content": delta.encrypted_content}
    item.fields.update({key: value for key, value in given.items() if value is not None})


TEXT_DELTAS: Final[dict[type, tuple[type[TextBearingDelta], str]]] = {
    Message: (TextDelta, "text"),
    Reasoning: (ThinkingDelta, "reasoning"),
    FunctionCall: (InputJsonDelta, "arguments"),
    ServerToolCall: (InputJsonDelta, "arguments"),
}
"""Items that grow by text: the deltas that bring it, and the verb of the assembly that says it."""

DELTA_HANDLERS: Final[dict[type, dict[type, Callable[[EventAssembler, OpenItem, Any], None]]]] = {
    Message: {TextDelta: _grow, CitationsDelta: _citation, SignatureDelta: _signature},
    Reasoning: {ThinkingDelta: _grow, SignatureDelta: _signature},
    FunctionCall: {InputJsonDelta: _grow, SignatureDelta: _signature},
    ServerToolCall: {InputJsonDelta: _grow},
    ServerToolResult: {},
    Compaction: {CompactionDelta: _compaction, SignatureDelta: _signature},
    Opaque: {},
}
DELTAS: Final = (
    TextDelta,
    InputJsonDelta,
    ThinkingDelta,
    SignatureDelta,
    CitationsDelta,
    CompactionDelta,
)

KINDS: Final = frozenset(tag(kind) for kind in Machine.HANDLERS)
DELTA_KINDS: Final = frozenset(tag(kind) for kind in DELTAS)
CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def usage(raw: dict[str, Any]) -> Usage:
    """Anthropic counts cached input apart from `input_tokens`; the sum is what the model read. Output includes thinking."""
    written, read = count(raw, "cache_creation_input_tokens"), count(raw, "cache_read_input_tokens")
    fresh = count(raw, "input_tokens")
    hour, day = (
        count(raw, "cache_creation.ephemeral_1h_input_tokens"),
        count(raw, "cache_creation.ephemeral_24h_input_tokens"),
    )
    split = isinstance(raw.get("cache_creation"), dict) and written is not None
    hour = min(hour or 0, written or 0) if split else None
    return Usage(
        input_tokens=total(fresh, written, read) if fresh is not None else None,
        output_tokens=count(raw, "output_tokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        reasoning_output_tokens=count(raw, "output_tokens_details.thinking_tokens"),
        cache_write_5m_input_tokens=max(0, (written or 0) - (hour or 0) - (day or 0))
        if split
        else None,
        cache_write_1h_input_tokens=hour,
        cache_write_24h_input_tokens=day if split else None,
        raw=raw,
    )


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A whole Message (or error) body as the events of its stream: every block is whole in its start."""
    try:
        message = msgspec.json.decode(mark_surrogates(body) or body, type=dict[str, Raw])
        blocks = msgspec.json.decode(message.pop("content", Raw(b"null")), type=list[Raw] | None)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise malformed("the body is not a Message", body) from None
    if message.get("type") == Raw(b'"error"'):
        return iter([("error", body)])
    if blocks is None:
        raise malformed("the body is not a Message", body)
    return _frames_of(message, blocks)


def _frames_of(message: dict[str, Raw], blocks: list[Raw]) -> Iterator[tuple[None, bytes]]:
    encode = msgspec.json.encode
    stop = {key: message.pop(key) for key in ("stop_reason", "stop_sequence") if key in message}
    yield None, encode({"type": "message_start", "message": message})
    for index, block in enumerate(blocks):
        yield None, encode({"type": "content_block_start", "index": index, "content_block": block})
        yield None, encode({"type": "content_block_stop", "index": index})
    yield None, encode({"type": "message_delta", "delta": stop})
    yield None, encode({"type": "message_stop"})
