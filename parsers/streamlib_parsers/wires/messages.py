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
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from streamlib_parsers.assembly import Assembly
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.events import StopReason
from streamlib_parsers.framing.sse import SSEFraming as framing  # noqa: N813  # the name every wire gives its framing
from streamlib_parsers.items import (
    Compaction,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    tag,
)
from streamlib_parsers.json_text import Halves, decode_any, objects_at, repaired, word_at
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage, count, overlay, total

__all__ = ["LAW", "STOP_REASONS", "At", "Machine", "body_frames", "framing", "usage"]

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


class At(Enum):
    """Where a stream stands."""

    START = "before the first message_start"
    WITHIN = "inside a message"
    STOPPED = "after message_stop"


LAW: Final[dict[At, dict[str, At]]] = {
    At.START: {"message_start": At.WITHIN, "content_block_start": At.WITHIN, "ping": At.START, "error": At.STOPPED},
    At.WITHIN: {
        "message_start": At.WITHIN,
        "content_block_start": At.WITHIN,
        "content_block_delta": At.WITHIN,
        "content_block_stop": At.WITHIN,
        "message_delta": At.WITHIN,
        "message_stop": At.STOPPED,
        "ping": At.WITHIN,
        "error": At.STOPPED,
    },
    At.STOPPED: {"message_start": At.WITHIN, "ping": At.STOPPED, "error": At.STOPPED},
}
"""The wire's law. A known event that its row does not name is passed through and not applied."""

# --- frames ---

Index: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]


class _Delta(Struct, gc=False, tag_field="type"):
    pass


class TextDelta(_Delta, tag="text_delta"):
    text: str | None = None


class InputJsonDelta(_Delta, tag="input_json_delta"):
    partial_json: str | None = None


class ThinkingDelta(_Delta, tag="thinking_delta"):
    thinking: str | None = None


class SignatureDelta(_Delta, tag="signature_delta"):
    signature: str | None = None


class CitationsDelta(_Delta, tag="citations_delta"):
    citation: dict[str, Any]


class CompactionDelta(_Delta, tag="compaction_delta"):
    content: str | None = None
    encrypted_content: str | None = None


Delta: TypeAlias = TextDelta | InputJsonDelta | ThinkingDelta | SignatureDelta | CitationsDelta | CompactionDelta


class _Event(Struct, gc=False, tag_field="type"):
    pass


class ContentBlockDelta(_Event, tag="content_block_delta"):
    index: Index
    delta: Delta


class ContentBlockStart(_Event, tag="content_block_start"):
    index: Index
    content_block: dict[str, Raw]


class ContentBlockStop(_Event, tag="content_block_stop"):
    index: Index


class MessageStart(_Event, tag="message_start"):
    pass


class MessageDelta(_Event, tag="message_delta"):
    pass


class MessageStop(_Event, tag="message_stop"):
    pass


class Ping(_Event, tag="ping"):
    pass


class ErrorEvent(_Event, tag="error"):
    pass


WireEvent: TypeAlias = (
    ContentBlockDelta | ContentBlockStart | ContentBlockStop | MessageStart | MessageDelta | MessageStop | Ping | ErrorEvent
)
_decode: Final = msgspec.json.Decoder(WireEvent).decode


# --- blocks: from the start of a block to its item ---


def _rest(block: dict[str, Any], *typed: str) -> JsonObject | None:
    """What no typed field holds."""
    return {key: value for key, value in block.items() if key not in typed} or None


def _text_block(block: dict[str, Any]) -> ResponseItem:
    return Message("assistant", native=_rest(block, "type", "text", "citations"))


def _thinking_block(block: dict[str, Any]) -> ResponseItem:
    return Reasoning(signature=_string(block, "signature") or None, native=_rest(block, "type", "thinking", "signature"))


def _redacted_block(block: dict[str, Any]) -> ResponseItem:
    return Reasoning(encrypted_content=_string(block, "data"), redacted=True, native=_rest(block, "type", "data"))


def _tool_use_block(block: dict[str, Any]) -> ResponseItem:
    return FunctionCall(_string(block, "id"), _string(block, "name"), native=_rest(block, "type", "id", "name", "input"))


def _server_tool_block(block: dict[str, Any]) -> ResponseItem:
    return ServerToolCall(_string(block, "id"), _string(block, "name"), native=_rest(block, "id", "name", "input"))


def _result_block(block: dict[str, Any]) -> ResponseItem:
    name = str(block["type"]).removesuffix("_tool_result")
    return ServerToolResult(_string(block, "tool_use_id"), name, block.get("content"), native=_rest(block, "tool_use_id", "content"))


def _compaction_block(block: dict[str, Any]) -> ResponseItem:
    return Compaction(
        word_at(block, "content"),
        word_at(block, "encrypted_content"),
        signature=word_at(block, "signature"),
        native=_rest(block, "type", "content", "encrypted_content", "signature"),
    )


def _string(block: dict[str, Any], key: str) -> str:
    return word_at(block, key) or ""


BLOCKS: Final[dict[str, Callable[[dict[str, Any]], ResponseItem]]] = {
    "text": _text_block,
    "thinking": _thinking_block,
    "redacted_thinking": _redacted_block,
    "tool_use": _tool_use_block,
    "server_tool_use": _server_tool_block,
    "mcp_tool_use": _server_tool_block,
    "compaction": _compaction_block,
}
"""Block kinds with an item of their own. `*_tool_result` is a ServerToolResult, every other kind an Opaque."""


def _item_of(kind: str, block: dict[str, Any]) -> ResponseItem:
    if kind.endswith("_tool_result"):
        return _result_block(block)
    begin = BLOCKS.get(kind)
    return begin(block) if begin else Opaque(kind, block)


class Machine:
    """Reads the events of one stream."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._at = At.START
        self._blocks: dict[int, OpenItem] = {}
        self._inputs: dict[int, bytes] = {}
        self._seen: set[int] = set()
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None

    @property
    def complete(self) -> bool:
        """`message_stop` was seen, and nothing began after it."""
        return self._at is At.STOPPED

    def frame(self, event: str | None, data: bytes) -> None:
        """One event. Deltas of open blocks are nearly all of a stream: they are applied here, everything else by the law."""
        try:
            message = _decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._odd(event, data)
            return
        if type(message) is not ContentBlockDelta or not self._applied(message):
            self._apply(message, data)

    def _applied(self, message: ContentBlockDelta) -> bool:
        """Applies a delta to its block, if that is open and takes it."""
        block = self._blocks.get(message.index)
        if block is None:
            return False
        apply = APPLY[type(block.item)].get(type(message.delta))
        if apply is None:
            return False
        apply(self._assembly, block, message.delta)
        return True

    def end(self) -> None:
        """Complete only if `message_stop` was seen."""
        if not self.complete:
            raise truncated("the stream ended before message_stop", {"stop_reason": self._stop_reason} if self._stop_reason else None)
        stop_reason = STOP_REASONS.get(self._stop_reason or "", "other")
        self._assembly.complete(stop_reason, self._stop_reason, self._stop_sequence)

    def _apply(self, message: WireEvent, data: bytes) -> None:
        kind = type(message)
        name = tag(kind)
        row = LAW[self._at]
        if name not in row:
            self._assembly.notice("out_of_order", f"{name} {self._at.value}")
            self._assembly.passthrough(name, decode_any(data))
            return
        if kind is MessageStart:
            self._restart()
        self._at = row[name]
        self.HANDLERS[kind](self, message, data)

    # --- what the decoder refused ---

    def _odd(self, event: str | None, data: bytes) -> None:
        if data.strip().lower() in (b"", b"[done]"):
            return
        fixed = repaired(data)
        if fixed is not None:
            self._assembly.halves = self._assembly.halves or Halves()
        self._apply_any(event, fixed or data)

    def _apply_any(self, event: str | None, data: bytes) -> None:
        value = decode_any(data)
        if not isinstance(value, dict):
            raise malformed("an event is not a JSON object", data)
        kind = value.get("type") or event
        if not isinstance(kind, str | None):
            raise malformed("the type of an event is not a word", data)
        if kind in KINDS:
            self._apply_loosely(kind, value, data)
        elif kind is None and value.get("error"):
            raise ParseFailure(classify(None, value))
        elif kind is None or kind == "chunk":
            self._assembly.metadata(value)
        else:
            self._assembly.passthrough(str(kind), value)

    def _apply_loosely(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        """A known kind in an unusual dress: repaired text, a float index, its type only in the event line, an unknown delta."""
        index = value.get("index")
        if value.get("type") != kind or (isinstance(index, float) and index.is_integer()):
            value = {**value, "type": kind, "index": int(index) if isinstance(index, float) else index}
            data = msgspec.json.encode(value)
        try:
            message = _decode(data)
        except msgspec.ValidationError as error:
            delta = value.get("delta")
            if kind == "content_block_delta" and isinstance(delta, dict) and _string(delta, "type") not in DELTA_KINDS:
                self._unknown_delta(value)
                return
            raise malformed(f"{kind}: {error}", data) from None
        self._apply(message, data)

    def _unknown_delta(self, value: dict[str, Any]) -> None:
        index = value.get("index")
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None:
            raise malformed(f"a delta for block {index}, which is not open")
        self._spoil(block, value)

    def _spoil(self, block: OpenItem, value: Any) -> None:
        self._assembly.passthrough("content_block_delta", value)
        self._assembly.spoil(block, f"{value['delta'].get('type')} on {type(block.item).__name__}")

    # --- one method an event ---

    def _restart(self) -> None:
        if self._at is At.START:
            return
        self._assembly.notice("second_message_start", "its blocks are further items of the same response")
        self._blocks.clear()
        self._inputs.clear()
        self._seen.clear()

    def _on_message_start(self, message: WireEvent, data: bytes) -> None:
        start = decode_any(data).get("message")
        if not isinstance(start, dict):
            raise malformed("message_start without a message", data)
        self._assembly.identify(word_at(start, "id"), word_at(start, "model"))
        self._stop(start)
        self._envelope(start, "id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage")
        self._count(start.get("usage"))
        if start.get("content"):
            self._assembly.passthrough("message_start.content", start["content"])

    def _on_start(self, message: ContentBlockStart, data: bytes) -> None:
        index, raw = message.index, message.content_block
        if index in self._seen:
            raise malformed(f"block {index} began twice", data)
        block = {key: decode_any(bytes(value)) for key, value in raw.items() if key != "input"}
        kind = _string(block, "type")
        if kind not in CALLS and "input" in raw:
            block["input"] = decode_any(bytes(raw["input"]))
        self._seen.add(index)
        item = self._blocks[index] = self._assembly.open(_item_of(kind, block))
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
            assembly.text(item, _string(block, "text"))
        elif kind == "thinking":
            assembly.reasoning(item, _string(block, "thinking"))
        elif kind == "fallback" and isinstance(block.get("to"), dict):
            assembly.rename_model(word_at(block["to"], "model"))

    def _on_delta(self, message: ContentBlockDelta, data: bytes) -> None:
        block = self._blocks.get(message.index)
        if block is None:
            raise malformed(f"a delta for block {message.index}, which is not open", data)
        if not self._applied(message):
            self._spoil(block, decode_any(data))

    def _on_stop(self, message: ContentBlockStop, data: bytes) -> None:
        block = self._blocks.pop(message.index, None)
        if block is None:
            raise malformed(f"the stop of block {message.index}, which is not open", data)
        given = self._inputs.pop(message.index, b"")
        if not block.arguments and given and given.strip() != b"null":
            self._assembly.arguments(block, given.decode("utf-8", "replace"))
        self._assembly.close(block)

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
        self._assembly.metadata({key: value for key, value in values.items() if key not in known and value is not None})

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


def _text(assembly: Assembly, block: OpenItem, delta: TextDelta) -> None:
    assembly.text(block, delta.text or "")


def _input_json(assembly: Assembly, block: OpenItem, delta: InputJsonDelta) -> None:
    assembly.arguments(block, delta.partial_json or "")


def _thinking(assembly: Assembly, block: OpenItem, delta: ThinkingDelta) -> None:
    assembly.reasoning(block, delta.thinking or "")


def _signature(assembly: Assembly, block: OpenItem, delta: SignatureDelta) -> None:
    block.fields["signature"] = delta.signature


def _citation(assembly: Assembly, block: OpenItem, delta: CitationsDelta) -> None:
    assembly.annotation(block, delta.citation)


def _compaction(assembly: Assembly, block: OpenItem, delta: CompactionDelta) -> None:
    given = {"content": delta.content, "encrypted_content": delta.encrypted_content}
    block.fields.update({key: value for key, value in given.items() if value is not None})


APPLY: Final[dict[type, dict[type, Callable[[Assembly, OpenItem, Any], None]]]] = {
    Message: {TextDelta: _text, CitationsDelta: _citation, SignatureDelta: _signature},
    Reasoning: {ThinkingDelta: _thinking, SignatureDelta: _signature},
    FunctionCall: {InputJsonDelta: _input_json, SignatureDelta: _signature},
    ServerToolCall: {InputJsonDelta: _input_json},
    ServerToolResult: {},
    Compaction: {CompactionDelta: _compaction, SignatureDelta: _signature},
    Opaque: {},
}
DELTAS: Final = (TextDelta, InputJsonDelta, ThinkingDelta, SignatureDelta, CitationsDelta, CompactionDelta)

KINDS: Final = frozenset(tag(kind) for kind in Machine.HANDLERS)
DELTA_KINDS: Final = frozenset(tag(kind) for kind in DELTAS)
CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def usage(raw: dict[str, Any]) -> Usage:
    """Anthropic counts cached input apart from `input_tokens`; the sum is what the model read. Output includes thinking."""
    written, read = count(raw, "cache_creation_input_tokens"), count(raw, "cache_read_input_tokens")
    fresh = count(raw, "input_tokens")
    hour, day = count(raw, "cache_creation.ephemeral_1h_input_tokens"), count(raw, "cache_creation.ephemeral_24h_input_tokens")
    split = isinstance(raw.get("cache_creation"), dict) and written is not None
    hour = min(hour or 0, written or 0) if split else None
    return Usage(
        input_tokens=total(fresh, written, read) if fresh is not None else None,
        output_tokens=count(raw, "output_tokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        reasoning_output_tokens=count(raw, "output_tokens_details.thinking_tokens"),
        cache_write_5m_input_tokens=max(0, (written or 0) - (hour or 0) - (day or 0)) if split else None,
        cache_write_1h_input_tokens=hour,
        cache_write_24h_input_tokens=day if split else None,
        raw=raw,
    )


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A whole Message (or error) body as the events of its stream: every block is whole in its start."""
    try:
        message = msgspec.json.decode(body, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        fixed = repaired(body)
        if fixed is None:
            raise malformed("the body is not a Message", body) from None
        message = msgspec.json.decode(fixed, type=dict[str, Raw])
    if message.get("type") == Raw(b'"error"'):
        yield "error", body
        return
    if "content" not in message:
        raise malformed("the body is not a Message", body)
    encode = msgspec.json.encode
    stop = {key: message.pop(key) for key in ("stop_reason", "stop_sequence") if key in message}
    blocks = msgspec.json.decode(message.pop("content"), type=list[Raw])
    yield None, encode({"type": "message_start", "message": message})
    for index, block in enumerate(blocks):
        yield None, encode({"type": "content_block_start", "index": index, "content_block": block})
        yield None, encode({"type": "content_block_stop", "index": index})
    yield None, encode({"type": "message_delta", "delta": stop})
    yield None, encode({"type": "message_stop"})
