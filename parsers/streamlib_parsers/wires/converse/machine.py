"""Bedrock ConverseStream: AWS event-stream frames, one union member each, blocks by index.

The wire (shapes of botocore 1.44; recordings of Claude, Nova and others):

    messageStart         {"role":"assistant"}
    contentBlockDelta 0  {"reasoningContent":{"text":"…"}}   the first delta opens the block
    contentBlockDelta 0  {"reasoningContent":{"signature":"…"}}
    contentBlockStop  0                                      -> OutputItemDone
    contentBlockStart 1  {"toolUse":{"toolUseId":"…","name":"…"}}
                                                             -> OutputItemAdded(FunctionCall)
    contentBlockDelta 1  {"toolUse":{"input":"{\\"city\\":"}}  -> FunctionCallArgumentsDelta
    contentBlockStop  1
    messageStop          {"stopReason":"tool_use"}           the response is complete
    metadata             {"usage":{…},"metrics":{…}}         -> TokenCount, Completed

Only `toolUse`, `toolResult` and `image` blocks have a start. `p` is padding. Exceptions are
frames of their own (`exception:throttlingException`). The frame names its event; recorded lines
that wrap the payload in its name (`{"messageStop":{…}}`) are read in the same way.

Buffered: half a surrogate pair, and `Completed`, until usage or the end of input. Blobs that
arrive in fragments (`redactedContent`, images) are each base64 of their own: the finished item
has them joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.bedrock import at_path, failure_of, json_or_text
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, generation_failed, malformed, truncated
from streamlib_parsers.events import StopReason
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    Image,
    ItemStatus,
    JsonObject,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolResult,
)
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any, string_at
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.stop_reasons import reconcile
from streamlib_parsers.usage import overlay
from streamlib_parsers.wires.converse.blocks import (
    BLOCKS,
    CALLS,
    JOINS,
    OPENERS,
    BlockStart,
    arguments_only,
    image_of,
    is_text,
    joined_results,
    reasoning_only,
    text_only,
)
from streamlib_parsers.wires.converse.payloads import (
    PADDING,
    BlockDelta,
    Delta,
    decode_delta,
    decode_members,
    decode_values,
    index_of,
    members_of,
)
from streamlib_parsers.wires.converse.states import TRANSITIONS, State
from streamlib_parsers.wires.converse.token_counts import usage

STOP_REASONS: Final[dict[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
"""Any other reason is `other`, with a Notice."""

FAILURE_REASONS: Final = frozenset({"malformed_model_output", "malformed_tool_use"})
"""Stop reasons of a generation that failed: it must not end as `Completed`."""

STOP_SEQUENCE_PATHS: Final = ("stop_sequence", "delta.stop_sequence")
"""Paths of the stop sequence in `additionalModelResponseFields`, for Claude's two JSON pointers."""


class StreamedBlock(NamedTuple):
    """An open block of streamed text.

    read_text: the text of a delta that has nothing else. emit_text: the method that emits it.
    """

    item: OpenItem
    read_text: Callable[[Delta], str | None]
    emit_text: Callable[[OpenItem, str], None]


class Machine:
    """Reads the events of one stream."""

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        assembler.before_close = self._join_open_blocks
        # The row of TRANSITIONS in force; changes with every applied event.
        self._state = State.START
        # Open items by wire index; empty after messageStop.
        self._blocks: dict[int, OpenItem] = {}
        # The items of `_blocks` that take text, for the hot path.
        self._streamed: dict[int, StreamedBlock] = {}
        # Indexes whose block was opened, closed ones too: none may be opened twice, or its deltas
        # could belong to either block.
        self._opened: set[int] = set()
        # Indexes with an empty start, which open at their first delta or not at all: only a delta
        # shows the kind of the item.
        self._declared: set[int] = set()
        # Complete arguments of the starts of calls, until their block stops: only then is it known
        # that no delta came, which would win over them.
        self._inputs: dict[int, bytes] = {}
        # (item index, field) -> fragments, until their block stops: each is base64 of its own, and
        # joining them at every delta would copy a large blob again and again. See `JOINS`.
        self._fragments: dict[tuple[int, str], list[str]] = {}
        # Item index -> content of its `toolResult` deltas, until the block stops.
        self._results: dict[int, list[list[JsonObject]]] = {}
        # Item index -> `error` of a failed image, until its block stops, since data may still come.
        self._image_errors: dict[int, JsonObject] = {}
        # The wire's usage object, merged over the stream.
        self._usage: dict[str, Any] = {}
        # Whether a metadata event was seen, and one with usage.
        self._has_metadata = False
        self._has_usage = False
        # Set by messageStop, and reported with the usage, which the wire sends after it.
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None

    @property
    def complete(self) -> bool:
        """Whether `messageStop` was seen."""
        return self._state is State.STOPPED

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one event."""
        # Deltas are nearly all of a stream: one comparison instead of the tables.
        if event == "contentBlockDelta":
            try:
                message = decode_delta(data)
            except DECODE_ERRORS:
                self._read(event, data)
                return
            streamed = self._streamed.get(message.content_block_index)
            if streamed is not None:
                text = streamed.read_text(message.delta)
                if text is not None:
                    streamed.emit_text(streamed.item, text)
                    return
            self._on_delta(message, data)
        elif event in HANDLERS:
            self._read(event, data)
        elif event is not None and event.startswith(("exception:", "error:")):
            raise ParseFailure(failure_of(event, data))
        else:
            self._read_unnamed(event, data)

    def end(self) -> None:
        """Completes the response, if `messageStop` was seen."""
        if not self.complete:
            raise truncated("the stream ended before messageStop")
        if not self._has_metadata:
            # messageStop makes the response complete, but the wire's last event is missing.
            self._assembler.note_inferred_end("no metadata event: usage may be missing")
        self._finish()

    def _finish(self) -> None:
        reason = self._stop_reason
        if reason in FAILURE_REASONS:
            raise generation_failed(reason)
        if reason is not None and reason not in STOP_REASONS:
            self._assembler.notice("unknown_finish_reason", reason)
        stop_reason = STOP_REASONS.get(reason or "", "other")
        stop_reason = reconcile(
            self._assembler,
            stop_reason,
            reason,
            call_waits=bool(self._assembler.complete_calls),
        )
        self._assembler.complete(stop_reason, reason, self._stop_sequence)

    # --- which event ---

    def _read(self, name: str, data: bytes) -> None:
        """Reads a known event; a payload that is wrapped in its own name is unwrapped once."""
        value, data = self._assembler.decode_object(data)
        if isinstance(value.get(name), dict):
            value = value[name]
            data = bytes(decode_members(data)[name])
        self._apply(name, value, data)

    def _apply(self, name: str, value: JsonObject, data: bytes) -> None:
        next_state = TRANSITIONS[self._state].get(name)
        if next_state is None:
            self._pass_out_of_order(name, value)
            return
        self._state = next_state
        try:
            HANDLERS[name](self, value, data)
        except DECODE_ERRORS as error:
            raise malformed(f"{name}: {error}", data) from None

    def _pass_out_of_order(self, name: str, value: JsonObject) -> None:
        self._assembler.notice("out_of_order", f"{name} {self._state.value}")
        self._assembler.passthrough(name, value)

    def _read_unnamed(self, event: str | None, data: bytes) -> None:
        """Reads `{"messageStop":{…}}`, of recorded lines and of Nova's invoke payloads.

        Anything else is an unknown event.
        """
        if event is not None:
            payload = json_or_text(data)
            if not isinstance(payload, dict):
                self._assembler.passthrough(event, payload)
                return
        value, data = self._assembler.decode_object(data)
        names = [name for name in value if name in HANDLERS and isinstance(value[name], dict)]
        if not names:
            self._read_unknown(event, value)
            return
        self._assembler.other_metadata(value, {PADDING, *names})
        raw = decode_members(data)
        for name in names:
            self._apply(name, value[name], bytes(raw[name]))

    def _read_unknown(self, event: str | None, value: JsonObject) -> None:
        if event is not None:
            self._assembler.passthrough(event, value)
            return
        # A recorded line of an exception frame: `{"throttlingException":{"message":…}}`.
        if value.get("error") or any(name.endswith("Exception") for name in value):
            raise ParseFailure(classify(None, value))
        self._assembler.passthrough(next(iter(value), ""), value)

    # --- blocks open ---

    def _on_start(self, value: JsonObject, data: bytes) -> None:
        index = index_of(value, data)
        if index in self._opened or index in self._declared:
            raise malformed(f"block {index} was started twice", data)
        start = members_of(data, "start")
        for name in start:
            if name in BLOCKS:
                content = start.pop(name)
                self._open_started(index, BLOCKS[name](content, decode_values(start)), data)
                return
        if start:
            self._open(index, Opaque(next(iter(start)), decode_values(start)))
        else:
            self._declared.add(index)

    def _open_started(self, index: int, start: BlockStart, data: bytes) -> None:
        item = start.item
        if isinstance(item, CALLS) and not item.call_id:
            item = msgspec.structs.replace(item, call_id=self._assembler.new_call_id())
        block = self._open(index, item)
        if isinstance(item, CALLS) and not item.name:
            # A call that cannot be dispatched must never reach `Response.calls`.
            block.forced_incomplete = True
            self._assembler.notice("nameless_call", "a toolUse block without a name", block)
        self._inputs[index] = start.arguments
        for delta in start.content:
            self._apply_delta(index, delta, data)

    def _open(self, index: int, item: ResponseItem) -> OpenItem:
        self._opened.add(index)
        self._declared.discard(index)
        block = self._blocks[index] = self._assembler.open(item)
        if is_text(item):
            # A text block without any text is a message with one empty text.
            block.part(0)
            self._streamed[index] = StreamedBlock(block, text_only, self._assembler.text)
        elif isinstance(item, CALLS):
            self._streamed[index] = StreamedBlock(block, arguments_only, self._assembler.arguments)
        elif isinstance(item, Reasoning):
            self._streamed[index] = StreamedBlock(block, reasoning_only, self._assembler.reasoning)
        return block

    def _open_implicitly(self, index: int, member: str, delta: Delta, data: bytes) -> OpenItem:
        """Opens a block without a start by its first delta."""
        if index in self._opened:
            raise malformed(f"a delta for block {index}, which has stopped", data)
        opener = OPENERS.get(member)
        if opener is None:
            raise malformed(f"a {member} delta for block {index}, which has no start", data)
        return self._open(index, opener(delta))

    # --- deltas ---

    def _on_delta(self, message: BlockDelta, data: bytes) -> None:
        if self._state is State.STOPPED:
            self._pass_out_of_order("contentBlockDelta", decode_any(data))
            return
        self._state = State.WITHIN
        if message.delta == NO_DELTA:
            self._read_unknown_delta(message.content_block_index, data)
        else:
            self._apply_delta(message.content_block_index, message.delta, data)

    def _read_lenient_delta(self, value: JsonObject, data: bytes) -> None:
        """Reads a delta that the strict decoder rejected: repaired text, a float index."""
        delta = msgspec.convert(value.get("delta"), Delta)
        self._on_delta(BlockDelta(index_of(value, data), delta), data)

    def _apply_delta(self, index: int, delta: Delta, data: bytes) -> None:
        for member, apply in DELTAS.items():
            if getattr(delta, member) is None:
                continue
            block = self._blocks.get(index)
            if block is None:
                block = self._open_implicitly(index, member, delta, data)
            if not apply(self, block, delta):
                self._reject_delta(block, data)

    def _read_unknown_delta(self, index: int, data: bytes) -> None:
        # The decoder dropped what it does not know, so the members are read from the JSON.
        members = decode_any(data).get("delta") or {}
        names = [name for name, value in members.items() if value is not None]
        if not names:
            return
        block = self._blocks.get(index)
        if block is not None:
            self._reject_delta(block, data)
        elif index in self._opened:
            raise malformed(f"a delta for block {index}, which has stopped", data)
        else:
            # No item can be opened for it; the block's stop must still be accepted.
            self._declared.add(index)
            self._assembler.passthrough("contentBlockDelta", decode_any(data))
            self._assembler.notice(
                "unknown_delta", f"{names[0]} on block {index}, which has no start"
            )

    def _reject_delta(self, block: OpenItem, data: bytes) -> None:
        value = decode_any(data)
        self._assembler.passthrough("contentBlockDelta", value)
        # `start`: a complete body's block may contain what no delta can apply (a failed image).
        content = value.get("delta") or value.get("start") or {}
        member = next(iter(content), "")
        self._assembler.mark_incomplete(block, f"{member} on {type(block.item).__name__}")

    # --- one method per member of a delta; False if it cannot be applied to the block ---

    def _apply_text(self, block: OpenItem, delta: Delta) -> bool:
        if delta.text is None or not is_text(block.item):
            return False
        self._assembler.text(block, delta.text)
        return True

    def _apply_tool_use(self, block: OpenItem, delta: Delta) -> bool:
        if delta.tool_use is None or not isinstance(block.item, CALLS):
            return False
        self._assembler.arguments(block, delta.tool_use.input or "")
        return True

    def _apply_reasoning(self, block: OpenItem, delta: Delta) -> bool:
        content = delta.reasoning_content
        if content is None or not isinstance(block.item, Reasoning):
            return False
        text, signature, encrypted = (
            content.any_text(),
            content.any_signature(),
            content.encrypted(),
        )
        if text is not None:
            self._assembler.reasoning(block, text)
        if signature is not None:
            self._add_fragment(block, "signature", signature)
        if encrypted is not None:
            self._add_fragment(block, "encrypted_content", encrypted)
        return text is not None or signature is not None or encrypted is not None

    def _apply_tool_result(self, block: OpenItem, delta: Delta) -> bool:
        if delta.tool_result is None or not isinstance(block.item, ServerToolResult):
            return False
        self._results.setdefault(block.index, []).append(delta.tool_result)
        return True

    def _apply_citation(self, block: OpenItem, delta: Delta) -> bool:
        if delta.citation is None or not is_text(block.item):
            return False
        self._assembler.annotation(block, delta.citation)
        return True

    def _apply_image(self, block: OpenItem, delta: Delta) -> bool:
        image = image_of(block.item)
        if delta.image is None or image is None:
            return False
        error = delta.image.get("error")
        source = delta.image.get("source")
        if isinstance(error, dict):
            # The image failed, even if data was received.
            self._image_errors[block.index] = error
            block.forced_incomplete = True
            self._assembler.notice("image_failed", string_at(error, "message"), block)
            return source is None or self._apply_source(block, image, source)
        return self._apply_source(block, image, source)

    def _apply_source(self, block: OpenItem, image: Image, source: Any) -> bool:
        data = at_path(source, "bytes")
        if isinstance(data, str):
            self._assembler.media(block, 0, image.media_type, data)
            self._add_fragment(block, "image", data)
            return True
        uri = at_path(source, "s3Location.uri")
        if isinstance(uri, str):
            native = None
            owner = at_path(source, "s3Location.bucketOwner")
            if owner is not None:
                native = {"bucketOwner": owner}
            located = unchecked(Image)(url=uri, media_type=image.media_type, native=native)
            block.fields["content"] = (located,)
            return True
        return False

    def _add_fragment(self, block: OpenItem, field: str, fragment: str) -> None:
        """Adds to a field that is set late; `_join` joins several fragments."""
        fragments = self._fragments.setdefault((block.index, field), [])
        fragments.append(fragment)
        # Usually there is one fragment: snapshots show it at once. Images have their own part.
        if len(fragments) == 1 and field != "image":
            block.fields[field] = fragment

    # --- blocks close ---

    def _on_stop(self, value: JsonObject, data: bytes) -> None:
        index = index_of(value, data)
        if index in self._declared:
            self._declared.discard(index)
            self._opened.add(index)
        elif index not in self._blocks:
            # It changes no content: no reason to fail a response that is complete.
            self._assembler.notice("out_of_order", f"the stop of block {index}, which is not open")
            self._assembler.passthrough("contentBlockStop", value)
        else:
            self._close(index)

    def _close(self, index: int, status: ItemStatus = "completed") -> None:
        block = self._blocks.pop(index)
        self._streamed.pop(index, None)
        initial_input = self._inputs.pop(index, b"")
        if initial_input and not block.arguments:
            # A complete body: the arguments keep the provider's own bytes.
            self._assembler.arguments(block, initial_input.decode("utf-8", "replace"))
        self._join(block)
        self._assembler.close(block, status)

    def _join(self, block: OpenItem) -> None:
        for field, join in JOINS.items():
            fragments = self._fragments.pop((block.index, field), [])
            if len(fragments) > 1:
                block.fields.update(join(fragments, block))
        results = self._results.pop(block.index, [])
        if results and isinstance(block.item, ServerToolResult):
            block.fields["output"] = [*block.item.output, *joined_results(results)]
        error = self._image_errors.pop(block.index, None)
        if error is None:
            return
        image = image_of(block.snapshot("incomplete"))
        if image is not None:
            native = {**(image.native or {}), "error": error}
            block.fields["content"] = (msgspec.structs.replace(image, native=native),)

    def _join_open_blocks(self) -> None:
        """Joins the fragments of open blocks, before the assembler closes these as truncated."""
        for block in self._blocks.values():
            self._join(block)

    def _close_unterminated(self) -> None:
        """Closes the blocks of gateways that never send contentBlockStop."""
        status: ItemStatus = "completed"
        if STOP_REASONS.get(self._stop_reason or "") == "length":
            # The response ran into its limit, so its last block may be truncated.
            status = "incomplete"
        for index, block in list(self._blocks.items()):
            self._assembler.notice(
                "unclosed_block", f"block {index} had no contentBlockStop", block
            )
            self._close(index, status)

    # --- the envelope ---

    def _on_message_start(self, value: JsonObject, data: bytes) -> None:
        self._assembler.other_metadata(value, {PADDING, "role"})

    def _on_message_stop(self, value: JsonObject, data: bytes) -> None:
        self._stop_reason = string_at(value, "stopReason") or None
        fields = value.get("additionalModelResponseFields")
        if isinstance(fields, dict):
            self._stop_sequence = _first_stop_sequence(fields)
            details = at_path(fields, "usage.output_tokens_details")
            self._usage = overlay(self._usage, {"output_tokens_details": details})
        self._assembler.other_metadata(value, {PADDING, "stopReason"})
        self._close_unterminated()
        if self._has_usage:
            self._finish()

    def _on_metadata(self, value: JsonObject, data: bytes) -> None:
        self._has_metadata = True
        raw_usage = value.get("usage")
        if isinstance(raw_usage, dict):
            self._has_usage = True
            self._usage = overlay(self._usage, raw_usage)
            self._assembler.usage(usage(self._usage))
        model = at_path(value, "trace.promptRouter.invokedModelId")
        if isinstance(model, str):
            self._assembler.identify(None, model)
        self._assembler.other_metadata(value, {PADDING, "usage"})
        # Gateways send metadata before messageStop too, and several of them.
        if self.complete and self._has_usage:
            self._finish()


HANDLERS: Final[dict[str, Callable[[Machine, JsonObject, bytes], None]]] = {
    "messageStart": Machine._on_message_start,
    "contentBlockStart": Machine._on_start,
    "contentBlockDelta": Machine._read_lenient_delta,
    "contentBlockStop": Machine._on_stop,
    "messageStop": Machine._on_message_stop,
    "metadata": Machine._on_metadata,
}
"""Event -> its handler. Deltas arrive there only if the strict decoder rejected them."""

DELTAS: Final[dict[str, Callable[[Machine, OpenItem, Delta], bool]]] = {
    "text": Machine._apply_text,
    "tool_use": Machine._apply_tool_use,
    "reasoning_content": Machine._apply_reasoning,
    "tool_result": Machine._apply_tool_result,
    "citation": Machine._apply_citation,
    "image": Machine._apply_image,
}
"""Member of a delta -> the method that applies it, in the order they are applied."""

NO_DELTA: Final = Delta()
"""A delta without a known member."""


def _first_stop_sequence(fields: JsonObject) -> str | None:
    for path in STOP_SEQUENCE_PATHS:
        sequence = at_path(fields, path)
        if isinstance(sequence, str):
            return sequence
    return None
