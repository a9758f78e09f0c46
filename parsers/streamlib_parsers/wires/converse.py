"""Bedrock ConverseStream: AWS event-stream frames, one union member each, content blocks by index.

What the wire promises (shapes of botocore 1.44; recordings of Claude, Nova and others):

    messageStart       {"role":"assistant"}
    contentBlockDelta  0  {"reasoningContent":{"text":"…"}}, then {"signature":"…"}    the first delta opens the block
    contentBlockStop   0                                                             -> OutputItemDone
    contentBlockStart  1  {"toolUse":{"toolUseId":"…","name":"…"}}                    -> OutputItemAdded(FunctionCall)
    contentBlockDelta  1  {"toolUse":{"input":"{\\"city\\":"}}                          -> FunctionCallArgumentsDelta
    contentBlockStop   1
    messageStop        {"stopReason":"tool_use"}                                     the answer is whole
    metadata           {"usage":{…},"metrics":{…}}                                   -> TokenCount, Completed

Only `toolUse`, `toolResult` and `image` blocks have a start. `p` is padding. Exceptions are frames of their own
(`exception:throttlingException`). The name of the event comes with the frame; recorded lines that wrap the payload in its name
(`{"messageStop":{…}}`) are read alike.

Held back: half an emoji, and `Completed`, until usage came or the input ended. Blobs that come in pieces (`redactedContent`,
images) are each base64 of their own: the finished item has them joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
from msgspec import Raw

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.bedrock import (
    BLOCKS,
    CALLS,
    FITS,
    GROWTH,
    JOINS,
    LAZY,
    NO_TEXT,
    PADDING,
    REFUSED,
    Begun,
    BlockDelta,
    Delta,
    ReasoningContent,
    ToolUseDelta,
    at_path,
    decode_delta,
    decode_members,
    decoded,
    failure_of,
    folded_results,
    index_of,
    is_text,
    json_or_text,
    media_type_of,
    members_of,
    no_answer,
    payload_of,
    string_at,
)
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.events import StopReason
from streamlib_parsers.framing.eventstream import EventStreamFraming as framing  # noqa: N813  # the name every wire gives its framing
from streamlib_parsers.items import (
    Image,
    ItemStatus,
    JsonObject,
    Opaque,
    ResponseItem,
    ServerToolResult,
)
from streamlib_parsers.json_text import decode_any
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage, count, overlay, total

__all__ = ["STOP_REASONS", "TRANSITIONS", "Machine", "State", "body_frames", "framing", "usage"]

STOP_REASONS: Final[dict[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}


class State(Enum):
    """Where a stream stands."""

    START = "before the first event"
    WITHIN = "inside the message"
    STOPPED = "after messageStop"


TRANSITIONS: Final[dict[State, dict[str, State]]] = {
    State.START: {
        "messageStart": State.WITHIN,
        "contentBlockStart": State.WITHIN,
        "contentBlockDelta": State.WITHIN,
        "contentBlockStop": State.WITHIN,
        "messageStop": State.STOPPED,
        "metadata": State.START,
    },
    State.WITHIN: {
        "contentBlockStart": State.WITHIN,
        "contentBlockDelta": State.WITHIN,
        "contentBlockStop": State.WITHIN,
        "messageStop": State.STOPPED,
        "metadata": State.WITHIN,
    },
    State.STOPPED: {"metadata": State.STOPPED},
}
"""The wire's law. A known event that its row does not name is passed through and not applied. `messageStart` may be missing."""


class StreamedBlock(NamedTuple):
    """An open block that grows by text: its item, the text of a delta that brings nothing else, and what is done with it."""

    item: OpenItem
    said: Callable[[Delta], str | None]
    grow: Callable[[OpenItem, str], None]


class Machine:
    """Reads the events of one stream."""

    def __init__(self, assembly: EventAssembler) -> None:
        self._assembly = assembly
        assembly.before_close = self._join_pieces
        self._state = State.START
        self._blocks: dict[int, OpenItem] = {}
        self._growing: dict[int, StreamedBlock] = {}
        self._begun: set[int] = set()
        self._declared: set[int] = set()
        self._inputs: dict[int, bytes] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._results: dict[int, list[list[JsonObject]]] = {}
        self._usage: dict[str, Any] = {}
        self._metadata_came = False
        self._usage_came = False
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None

    @property
    def complete(self) -> bool:
        """`messageStop` was seen."""
        return self._state is State.STOPPED

    def frame(self, event: str | None, data: bytes) -> None:
        """One event."""
        if event == "contentBlockDelta":  # the hot path: one comparison instead of the tables
            try:
                message = decode_delta(data)
            except REFUSED:
                self._read(event, data)
                return
            growing = self._growing.get(message.content_block_index)
            text = growing.said(message.delta) if growing is not None else None
            if growing is None or text is None:
                self._on_delta(message, data)
            else:
                growing.grow(growing.item, text)
        elif event in self.HANDLERS:
            self._read(event, data)
        elif event is not None and event.startswith(("exception:", "error:")):
            raise ParseFailure(failure_of(event, data))
        else:
            self._unwrap(event, data)

    def end(self) -> None:
        """Complete only if `messageStop` was seen."""
        if not self.complete:
            raise truncated("the stream ended before messageStop")
        if not self._metadata_came:
            self._assembly.note_inferred_end("no metadata came: usage may be missing")
        self._finish()

    def _finish(self) -> None:
        self._assembly.complete(
            STOP_REASONS.get(self._stop_reason or "", "other"),
            self._stop_reason,
            self._stop_sequence,
        )

    # --- which event ---

    def _read(self, name: str, data: bytes) -> None:
        """A known event; a payload that is wrapped in its own name is unwrapped once."""
        value, data = payload_of(self._assembly, data)
        if isinstance(value.get(name), dict):
            value, data = value[name], bytes(decode_members(data)[name])
        self._apply(name, value, data)

    def _apply(self, name: str, value: JsonObject, data: bytes) -> None:
        following = TRANSITIONS[self._state].get(name)
        if following is None:
            self._out_of_order(name, value)
            return
        self._state = following
        try:
            self.HANDLERS[name](self, value, data)
        except REFUSED as error:
            raise malformed(f"{name}: {error}", data) from None

    def _out_of_order(self, name: str, value: JsonObject) -> None:
        self._assembly.notice("out_of_order", f"{name} {self._state.value}")
        self._assembly.passthrough(name, value)

    def _unwrap(self, event: str | None, data: bytes) -> None:
        """`{"messageStop":{…}}`, as recorded lines and Nova's invoke payloads have it; else an event we do not know."""
        if event is not None and not isinstance(value := json_or_text(data), dict):
            self._assembly.passthrough(event, value)
            return
        value, data = payload_of(self._assembly, data)
        members = [
            name for name in value if name in self.HANDLERS and isinstance(value[name], dict)
        ]
        if not members:
            self._unknown(event, value)
            return
        self._envelope(value, *members)
        raw = decode_members(data)
        for name in members:
            self._apply(name, value[name], bytes(raw[name]))

    def _unknown(self, event: str | None, value: JsonObject) -> None:
        if event is None and (
            value.get("error") or any(name.endswith("Exception") for name in value)
        ):
            raise ParseFailure(classify(None, value))
        self._assembly.passthrough(event or next(iter(value), ""), value)

    # --- blocks begin ---

    def _on_start(self, value: JsonObject, data: bytes) -> None:
        index = index_of(value, data)
        if index in self._begun or index in self._declared:
            raise malformed(f"block {index} began twice", data)
        start = members_of(data, "start")
        known = next((name for name in start if name in BLOCKS), None)
        if known is not None:
            self._begin(index, BLOCKS[known](start.pop(known), decoded(start)), data)
        elif start:
            self._open(index, Opaque(next(iter(start)), decoded(start)))
        else:
            self._declared.add(index)

    def _begin(self, index: int, begun: Begun, data: bytes) -> None:
        item = begun.item
        if isinstance(item, CALLS) and not item.call_id:
            item = msgspec.structs.replace(item, call_id=self._assembly.new_call_id())
        block = self._open(index, item)
        if isinstance(item, CALLS) and not item.name:
            block.forced_incomplete = True
            self._assembly.notice("nameless_call", "a toolUse block without a name", block)
        self._inputs[index] = begun.arguments
        for name, value in begun.said:
            self._grow(index, name, value, data)

    def _open(self, index: int, item: ResponseItem) -> OpenItem:
        self._begun.add(index)
        self._declared.discard(index)
        block = self._blocks[index] = self._assembly.open(item)
        if is_text(item):
            block.part(0)
        for fits, said, verb in GROWTH:
            if fits(item):
                self._growing[index] = StreamedBlock(block, said, getattr(self._assembly, verb))
        return block

    # --- blocks grow ---

    def _on_delta(self, message: BlockDelta, data: bytes) -> None:
        if self._state is State.STOPPED:
            self._out_of_order("contentBlockDelta", decode_any(data))
            return
        self._state = State.WITHIN
        known = [
            (name, value)
            for name in self.DELTAS
            if (value := getattr(message.delta, name)) is not None
        ]
        for name, value in known:
            self._grow(message.content_block_index, name, value, data)
        if not known:
            self._unknown_delta(message.content_block_index, data)

    def _read_lenient_delta(self, value: JsonObject, data: bytes) -> None:
        """A delta in an unusual dress: repaired text, a float index."""
        delta = msgspec.convert(value.get("delta"), Delta)
        self._on_delta(BlockDelta(index_of(value, data), delta), data)

    def _grow(self, index: int, name: str, value: Any, data: bytes) -> None:
        block = self._blocks.get(index) or self._open_implicitly(index, name, value, data)
        if not FITS[name](block.item) or not self.DELTAS[name](self, block, value):
            self._spoil(block, data)

    def _open_implicitly(self, index: int, name: str, value: Any, data: bytes) -> OpenItem:
        """Text and reasoning have no start: their first delta opens the block."""
        if index in self._begun:
            raise malformed(f"a delta for block {index}, which has stopped", data)
        item = LAZY[name](value) if name in LAZY else None
        if item is None:
            raise malformed(f"a {name} delta for block {index}, which has no start", data)
        return self._open(index, item)

    def _unknown_delta(self, index: int, data: bytes) -> None:
        members = [
            name
            for name, value in (decode_any(data).get("delta") or {}).items()
            if value is not None
        ]
        block = self._blocks.get(index)
        if not members:
            return
        if block is not None:
            self._spoil(block, data)
        elif index in self._begun:
            raise malformed(f"a delta for block {index}, which has stopped", data)
        else:
            self._declared.add(index)
            self._assembly.passthrough("contentBlockDelta", decode_any(data))
            self._assembly.notice(
                "unknown_delta", f"{members[0]} on block {index}, which has no start"
            )

    def _spoil(self, block: OpenItem, data: bytes) -> None:
        value = decode_any(data)
        self._assembly.passthrough("contentBlockDelta", value)
        member = next(iter(value.get("delta") or value.get("start") or ()), "")
        self._assembly.mark_incomplete(block, f"{member} on {type(block.item).__name__}")

    def _text(self, block: OpenItem, text: str) -> bool:
        self._assembly.text(block, text)
        return True

    def _arguments(self, block: OpenItem, use: ToolUseDelta) -> bool:
        self._assembly.arguments(block, use.input or "")
        return True

    def _think(self, block: OpenItem, thought: ReasoningContent) -> bool:
        inner = thought.reasoning_text or NO_TEXT
        text = thought.text if thought.text is not None else inner.text
        signature = thought.signature if thought.signature is not None else inner.signature
        sealed = thought.redacted_content if thought.redacted_content is not None else thought.data
        self._assembly.reasoning(block, text or "")
        self._collect(block, "signature", signature)
        self._collect(block, "encrypted_content", sealed)
        return text is not None or signature is not None or sealed is not None

    def _cite(self, block: OpenItem, citation: JsonObject) -> bool:
        self._assembly.annotation(block, citation)
        return True

    def _result(self, block: OpenItem, pieces: list[JsonObject]) -> bool:
        self._results.setdefault(block.index, []).append(pieces)
        return True

    def _image(self, block: OpenItem, image: JsonObject) -> bool:
        source, media_type = image.get("source"), media_type_of(block.item)
        if isinstance(data := at_path(source, "bytes"), str):
            self._assembly.media(block, 0, media_type, data)
            self._collect(block, "image", data)
        elif isinstance(uri := at_path(source, "s3Location.uri"), str):
            block.fields["content"] = (Image(url=uri, media_type=media_type),)
        else:
            return False
        return True

    def _collect(self, block: OpenItem, field: str, piece: str | None) -> None:
        """Late fields; usually one piece, shown at once. Several are joined when the block ends."""
        if piece is None:
            return
        pieces = self._pieces.setdefault((block.index, field), [])
        pieces.append(piece)
        if len(pieces) == 1 and field != "image":
            block.fields[field] = piece

    # --- blocks end ---

    def _on_stop(self, value: JsonObject, data: bytes) -> None:
        index = index_of(value, data)
        if index in self._declared:
            self._declared.discard(index)
            self._begun.add(index)
        elif index not in self._blocks:
            raise malformed(f"the stop of block {index}, which is not open", data)
        else:
            self._close(index)

    def _close(self, index: int, status: ItemStatus = "completed") -> None:
        block = self._blocks.pop(index)
        self._growing.pop(index, None)
        given = self._inputs.pop(index, b"")
        if given and not block.arguments:
            self._assembly.arguments(block, given.decode("utf-8", "replace"))
        self._join(block)
        self._assembly.close(block, status)

    def _join(self, block: OpenItem) -> None:
        for field, join in JOINS.items():
            pieces = self._pieces.pop((block.index, field), [])
            if len(pieces) > 1:
                block.fields.update(join(pieces, block))
        results = self._results.pop(block.index, [])
        if results and isinstance(block.item, ServerToolResult):
            block.fields["output"] = [*block.item.output, *folded_results(results)]

    def _join_pieces(self) -> None:
        """A cut block keeps what came of it."""
        for block in self._blocks.values():
            self._join(block)

    def _close_unterminated(self) -> None:
        """Some gateways never say contentBlockStop. Where the answer ran into its limit, its last block may be cut."""
        status: ItemStatus = (
            "incomplete" if STOP_REASONS.get(self._stop_reason or "") == "length" else "completed"
        )
        for index, block in list(self._blocks.items()):
            self._assembly.notice("unclosed_block", f"block {index} had no contentBlockStop", block)
            self._close(index, status)

    # --- the envelope ---

    def _on_message_start(self, value: JsonObject, data: bytes) -> None:
        self._envelope(value, "role")

    def _on_message_stop(self, value: JsonObject, data: bytes) -> None:
        self._stop_reason = string_at(value, "stopReason") or None
        fields = value.get("additionalModelResponseFields")
        if isinstance(fields, dict):
            self._stop_sequence = next(
                (
                    word
                    for path in _STOP_SEQUENCES
                    if isinstance(word := at_path(fields, path), str)
                ),
                None,
            )
            details = at_path(fields, "usage.output_tokens_details")
            self._usage = overlay(self._usage, {"output_tokens_details": details})
        self._envelope(value, "stopReason")
        self._close_unterminated()
        if self._usage_came:
            self._finish()

    def _on_metadata(self, value: JsonObject, data: bytes) -> None:
        self._metadata_came = True
        given = value.get("usage")
        if isinstance(given, dict):
            self._usage_came = True
            self._usage = overlay(self._usage, given)
            self._assembly.usage(usage(self._usage))
        model = at_path(value, "trace.promptRouter.invokedModelId")
        self._assembly.identify(None, model if isinstance(model, str) else None)
        self._envelope(value, "usage")
        if self.complete and self._usage_came:
            self._finish()

    def _envelope(self, values: JsonObject, *known: str) -> None:
        self._assembly.metadata(
            {
                key: value
                for key, value in values.items()
                if key not in known and key != PADDING and value is not None
            }
        )

    HANDLERS: ClassVar[dict[str, Callable[..., None]]] = {
        "messageStart": _on_message_start,
        "contentBlockStart": _on_start,
        "contentBlockDelta": _read_lenient_delta,
        "contentBlockStop": _on_stop,
        "messageStop": _on_message_stop,
        "metadata": _on_metadata,
    }
    DELTAS: ClassVar[dict[str, Callable[..., bool]]] = {
        "text": _text,
        "tool_use": _arguments,
        "reasoning_content": _think,
        "tool_result": _result,
        "citation": _cite,
        "image": _image,
    }
    """Members of a delta, and how each is applied; False where nothing of it is known."""


_STOP_SEQUENCES: Final = ("stop_sequence", "delta.stop_sequence")
"""Where `additionalModelResponseFields` has it, by the two JSON pointers that Claude answers."""


def usage(raw: dict[str, Any]) -> Usage:
    """Bedrock counts cached input apart from `inputTokens`; the sum is what the model read.

    Both spellings of the cache counts stand in one object with equal values: the first that is there counts, they are never added.
    Thinking tokens are known only where the request asked for `/usage/output_tokens_details`.
    """
    read = count(raw, "cacheReadInputTokens", "cacheReadInputTokenCount")
    written = count(raw, "cacheWriteInputTokens", "cacheWriteInputTokenCount")
    fresh, details = count(raw, "inputTokens"), raw.get("cacheDetails")
    by_ttl = {
        ttl: _written_for(details, ttl) if isinstance(details, list) and details else None
        for ttl in ("5m", "1h")
    }
    return Usage(
        input_tokens=total(fresh, read, written) if fresh is not None else None,
        output_tokens=count(raw, "outputTokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        reasoning_output_tokens=count(
            raw, "output_tokens_details.thinking_tokens", "output_tokens_details.reasoning_tokens"
        ),
        cache_write_5m_input_tokens=by_ttl["5m"],
        cache_write_1h_input_tokens=by_ttl["1h"],
        raw=raw,
    )


def _written_for(details: list[Any], ttl: str) -> int:
    return sum(
        count(one, "inputTokens") or 0
        for one in details
        if isinstance(one, dict) and one.get("ttl") == ttl
    )


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A whole Converse body as the events of its stream: every block is whole in its start. An error body raises what it says."""
    encode = msgspec.json.encode
    try:
        answer = decode_members(body)
        if "output" not in answer:
            raise no_answer(answer, body)
        message = members_of(answer.pop("output"), "message")
        blocks = msgspec.json.decode(message.get("content", Raw(b"[]")), type=list[Raw])
    except REFUSED:
        raise malformed("the body is not a Converse response", body) from None
    stop = {
        key: answer.pop(key)
        for key in ("stopReason", "additionalModelResponseFields")
        if key in answer
    }
    yield "messageStart", encode({key: value for key, value in message.items() if key != "content"})
    for index, block in enumerate(blocks):
        yield "contentBlockStart", encode({"contentBlockIndex": index, "start": block})
        yield "contentBlockStop", encode({"contentBlockIndex": index})
    yield "messageStop", encode(stop)
    yield "metadata", encode(answer)
