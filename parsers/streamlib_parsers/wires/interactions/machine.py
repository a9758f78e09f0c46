"""Gemini Interactions: server-sent events, steps by index.

The wire (event, step and delta types of google-genai 3.4; docs/wires/interactions.md lists them):

    interaction.created         id, model
    interaction.status_update   status, continuation_token       -> ResponseMetadata
      step.start 0              {"type":"thought"}               -> OutputItemAdded
      step.delta 0              thought_summary, thought_signature
      step.stop  0                                               -> OutputItemDone
      step.start 1              {"type":"function_call","id":…,"name":…,"arguments":{}}
      step.delta 1              arguments_delta                  -> FunctionCallArgumentsDelta
      step.stop  1
    interaction.completed       status, usage                    -> Completed, at once
    [DONE]                      says nothing about success

`event_type` distinguishes the events. A thought with summaries gets an empty signature after each,
and the real one at its end: the last that is not empty counts. Arguments and result of a
provider-run tool are each complete in one delta. `event_id` is reported after the events of its
frame, so a stream that is resumed after it lacks none of them.

Buffered: half a surrogate pair; annotations of text that has not arrived yet. A resumed stream may
begin inside a step: the kind of the delta then shows the kind of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.items import (
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import (
    DECODE_ERRORS,
    decode_any,
    objects_at,
    string_or_none,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.stop_reasons import reconcile
from streamlib_parsers.wires.interactions.contents import Contents
from streamlib_parsers.wires.interactions.envelope import STOP_REASONS, UNFINISHED, Envelope
from streamlib_parsers.wires.interactions.events import (
    LEGACY,
    LEGACY_EVENTS,
    MEDIA_KINDS,
    ArgumentsDelta,
    TextDelta,
    decode_delta,
    decode_frequent,
    decode_position,
    decode_start,
)
from streamlib_parsers.wires.interactions.steps import item_of, output_of

_EMPTY_ARGUMENTS: Final = (b"", b"null")

_STEP_OF_DELTA: Final = {
    "text": "model_output",
    "text_annotation_delta": "model_output",
    **dict.fromkeys(MEDIA_KINDS, "model_output"),
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
}
"""Kind of delta -> the step that it is for. Any other delta has the name of its step."""


class Step:
    """One open step."""

    __slots__ = (
        "arguments",
        "contents",
        "emit_text",
        "image_count",
        "item",
        "kind",
        "paragraph",
        "summary",
        "text_delta",
    )

    def __init__(self, kind: str, item: OpenItem) -> None:
        self.kind = kind
        self.item = item
        self.text_delta: type[TextDelta | ArgumentsDelta] | None = None
        """The class of the deltas whose text `emit_text` takes; None if there are none."""
        self.emit_text: Callable[[OpenItem, str], None] | None = None
        self.contents: Contents | None = None
        """The contents of a message; None for other items."""
        self.arguments = b""
        """The arguments that the start had, until the step stops: only then is it known that no
        delta came, which would win over them."""
        self.paragraph = 0
        """Index of the paragraph of a thought's summary that is open."""
        self.summary: dict[str, JsonObject] = {}
        """Contents of a thought's summary that are not text, and keys beside a text, by their
        position in it."""
        self.image_count = 0
        """Number of contents in the summary that are not text."""


class Machine:
    """Reads the events of one stream."""

    def __init__(self, assembler: EventAssembler) -> None:
        self.complete = False
        """An event completed the interaction."""
        self.position: str | None = None
        """The last `event_id`, after which a stream can be resumed."""
        self._assembler = assembler
        self._envelope = Envelope(assembler)
        self._steps: dict[int, Step] = {}
        """The open steps by index."""
        self._seen: set[int] = set()
        """Indexes that were opened: none may be opened twice, or its deltas could belong to either
        step. The steps that only the last event has are those not in it."""
        self._created = False
        """Whether the interaction was announced."""
        assembler.before_close = self._finish_contents

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one event.

        Deltas of text and arguments are nearly all of a stream and are applied here.
        """
        # By the name in its `event:` line: to be refused by the decoder takes longer.
        if event in OTHER_EVENTS:
            self._read_any(event, data)
            return
        try:
            message = decode_frequent(data)
        except DECODE_ERRORS:
            self._read_any(event, data)
            return
        step = self._steps.get(message.index)
        delta = message.delta
        if step is None or type(delta) is not step.text_delta or not delta.text:
            self._read_any(event, data)
            return
        step.emit_text(step.item, delta.text)  # type: ignore[misc]  # set with `text_delta`
        if message.metadata is not None or message.event_id is not None:
            self._after(message.metadata, message.event_id)

    def end(self) -> None:
        """Raises an error: `interaction.completed` completes the response at once."""
        detail = None
        if self._envelope.status:
            detail = {"status": self._envelope.status}
        raise truncated("the stream ended before interaction.completed", detail)

    # --- all events ---

    def _read_any(self, event: str | None, data: bytes) -> None:
        # The end mark shows nothing: the response has ended before it, or is truncated.
        if data.strip()[:6].upper() == b"[DONE]":
            return
        value, data = self._assembler.decode_object(data)
        kind = value.get("event_type") or event
        if not isinstance(kind, str):
            kind = ""
        if kind in LEGACY_EVENTS:
            raise malformed(LEGACY, data, "legacy_schema")
        handler = EVENTS.get(kind)
        if handler is not None:
            handler(self, value, data)
        elif value.get("error"):
            self._on_error(value, data)
        else:
            self._assembler.passthrough(kind, value)
        if not self._assembler.ended:
            self._after(value.get("metadata"), value.get("event_id"))

    def _after(self, metadata: Any, event_id: Any) -> None:
        """Reads the keys that any event may have: `metadata` and `event_id`."""
        if isinstance(metadata, dict):
            # google-genai names it `total_usage`; servers send `usage`.
            self._envelope.read_usage(metadata.get("total_usage") or metadata.get("usage"))
            rest = {k: v for k, v in metadata.items() if k not in ("usage", "total_usage")}
            if rest:
                self._envelope.emit_metadata({"metadata": rest})
        if isinstance(event_id, str) and event_id:
            self._report_id(event_id)

    def _report_id(self, event_id: str) -> None:
        self.position = event_id
        self._envelope.emit_metadata({"event_id": event_id})

    def _on_created(self, value: dict[str, Any], data: bytes) -> None:
        interaction = value.get("interaction")
        if not isinstance(interaction, dict):
            raise malformed("interaction.created without an interaction", data)
        if self._created:
            # It starts another response, which must not be mixed with this one.
            self._assembler.notice("second_response", "a second interaction.created")
            self._assembler.passthrough("interaction.created", value)
            return
        self._created = True
        self._envelope.read(interaction)

    def _on_status(self, value: dict[str, Any], data: bytes) -> None:
        handled = ("event_type", "event_id", "metadata", "interaction_id")
        update = {key: inner for key, inner in value.items() if key not in handled}
        if isinstance(value.get("interaction_id"), str):
            update["id"] = value["interaction_id"]
        self._envelope.read(update)

    def _on_error(self, value: dict[str, Any], data: bytes) -> None:
        self._after(value.get("metadata"), value.get("event_id"))
        raise ParseFailure(classify(None, value))

    def _on_completed(self, value: dict[str, Any], data: bytes) -> None:
        interaction = value.get("interaction")
        if not isinstance(interaction, dict):
            raise malformed("interaction.completed without an interaction", data)
        self._add_missing_steps(interaction)
        self._envelope.read(interaction)
        event_id = value.get("event_id")
        self._after(value.get("metadata"), event_id)
        self._envelope.check_end(interaction)
        status = self._envelope.status
        if status in UNFINISHED or status is None:
            raise truncated("the interaction goes on: fetch it later", {"status": status})
        self.complete = True
        stop_reason = STOP_REASONS.get(status, "other")
        if stop_reason == "other":
            self._assembler.notice("unknown_finish_reason", status)
        # Before the reason is compared with the calls: open calls are not complete.
        self._assembler.close_open_items()
        stop_reason = reconcile(
            self._assembler,
            stop_reason,
            status,
            call_waits=bool(self._assembler.complete_calls),
        )
        self._assembler.complete(stop_reason, status)

    def _add_missing_steps(self, interaction: dict[str, Any]) -> None:
        """Reads the steps that only the last event has."""
        for index, step in enumerate(objects_at(interaction, "steps")):
            if index not in self._seen:
                encoded = msgspec.json.encode({"index": index, "step": step})
                self._on_start({}, encoded)
                self._on_stop({}, encoded)

    # --- steps ---

    def _on_start(self, value: dict[str, Any], data: bytes) -> None:
        try:
            start = decode_start(_with_integral_index(value, data))
        except msgspec.ValidationError as error:
            raise malformed(f"step.start: {error}", data) from None
        if start.index in self._seen:
            # Its deltas could not be distinguished from those of the first one.
            raise malformed(f"step {start.index} was started twice", data)
        arguments = bytes(start.step.get("arguments", b""))
        step = {key: decode_any(bytes(inner)) for key, inner in start.step.items()}
        kind = string_or_none(step, "type") or ""
        opened = self._open(start.index, kind, step)
        if isinstance(opened.item.item, (FunctionCall, ServerToolCall)):
            opened.arguments = arguments
        failure = step.get("error")
        if isinstance(failure, dict):
            self._envelope.step_error = failure
            self._envelope.emit_metadata({"error": failure})
        if opened.contents is not None:
            for content in objects_at(step, "content"):
                opened.contents.complete(content)
                opened.text_delta = None
        for content in objects_at(step, "summary"):
            if content.get("text") == "":
                # No delta says it: it is kept as a content of another kind is.
                self._keep_content(opened, content)
                continue
            self._add_summary(opened, content)
            opened.paragraph = len(opened.item.summary)

    def _open(self, index: int, kind: str, step: dict[str, Any]) -> Step:
        item = item_of(kind, step)
        if isinstance(item, (FunctionCall, ServerToolCall)) and not item.call_id:
            # Two calls without ids would share "", and so would their results.
            item = msgspec.structs.replace(item, call_id=self._assembler.new_call_id())
        opened = Step(kind, self._assembler.open(item))
        self._steps[index] = opened
        self._seen.add(index)
        if isinstance(item, Message):
            opened.contents = Contents(self._assembler, opened.item)
            opened.text_delta, opened.emit_text = TextDelta, self._assembler.text
        elif isinstance(item, FunctionCall):
            opened.text_delta, opened.emit_text = ArgumentsDelta, self._assembler.arguments
            if not item.name:
                # A call that cannot be dispatched must never reach `Response.calls`.
                opened.item.forced_incomplete = True
                self._assembler.notice("nameless_call", "a call without a name", opened.item)
        return opened

    def _on_stop(self, value: dict[str, Any], data: bytes) -> None:
        self._envelope.read_usage(value.get("usage"))
        if isinstance(value.get("step_usage"), dict):
            self._envelope.emit_metadata({"step_usage": value["step_usage"]})
        index = _index_of(value, data)
        step = self._steps.pop(index, None)
        if step is None:
            self._assembler.notice("out_of_order", f"the stop of step {index}, which is not open")
            self._assembler.passthrough("step.stop", decode_any(data))
            return
        # Deltas win: the start of a call has `"arguments":{}`.
        if not step.item.arguments and step.arguments.strip() not in _EMPTY_ARGUMENTS:
            self._assembler.arguments(step.item, step.arguments.decode("utf-8", "replace"))
        self._finish(step)
        self._assembler.close(step.item)

    def _finish_contents(self) -> None:
        """Called before the assembler closes the open items."""
        for step in self._steps.values():
            self._finish(step)
        self._steps.clear()

    def _finish(self, step: Step) -> None:
        if step.contents is not None:
            step.contents.finish()
        if step.summary:
            native = {**(step.item.item.native or {}), "summary": step.summary}
            step.item.fields["native"] = native

    # --- deltas ---

    def _on_delta(self, value: dict[str, Any], data: bytes) -> None:
        try:
            message = decode_delta(_with_integral_index(value, data))
        except msgspec.ValidationError as error:
            raise malformed(f"step.delta: {error}", data) from None
        delta = {key: decode_any(bytes(inner)) for key, inner in message.delta.items()}
        kind = string_or_none(delta, "type") or ""
        step = self._steps.get(message.index)
        if step is None and message.index not in self._seen:
            # A stream that was resumed inside a step.
            step = self._open(message.index, _STEP_OF_DELTA.get(kind, kind), {})
        if step is None and kind == "text_annotation_delta":
            # A citation that comes late changes no text: it is no reason to fail the response.
            self._assembler.notice("out_of_order", "an annotation of a step that has stopped")
            self._assembler.passthrough("step.delta", decode_any(data))
            return
        if step is None:
            raise malformed(f"a delta for step {message.index}, which is not open", data)
        if not self._apply(step, kind, delta, message.delta):
            # Never guess: text of a call's arguments in a message would be shown to a user.
            self._assembler.passthrough("step.delta", decode_any(data))
            name = type(step.item.item).__name__
            self._assembler.mark_incomplete(step.item, f"{kind} on {name}")

    def _apply(self, step: Step, kind: str, delta: dict[str, Any], raw: dict[str, Raw]) -> bool:
        """Applies a delta to its step; returns whether that was possible."""
        match step.item.item:
            case Message():
                return self._apply_content(step, kind, delta)
            case Reasoning() if kind == "thought_summary" and isinstance(
                delta.get("content"), dict
            ):
                self._add_summary(step, delta["content"])
                return True
            case Reasoning() if kind == "thought_signature":
                self._sign(step, delta)
                return True
            case FunctionCall() if kind == "arguments_delta":
                self._assembler.arguments(step.item, string_or_none(delta, "arguments") or "")
                return isinstance(delta.get("arguments"), str | None)
            case ServerToolCall() if kind == step.kind:
                return self._apply_call(step, delta, raw)
            case ServerToolResult() | FunctionCallOutput() if kind == step.kind:
                return self._apply_result(step, delta)
            case _:
                return False

    def _apply_content(self, step: Step, kind: str, delta: dict[str, Any]) -> bool:
        contents = step.contents
        if contents is None:
            return False
        if kind == "text" and isinstance(delta.get("text"), str | None):
            contents.text(delta.get("text") or "")
        elif kind == "text_annotation_delta":
            contents.annotations(objects_at(delta, "annotations"))
        elif kind in MEDIA_KINDS:
            contents.media(delta)
            # From here on `contents` must decide which part a text belongs to.
            step.text_delta = None
        else:
            return False
        return True

    def _add_summary(self, step: Step, content: dict[str, Any]) -> None:
        if content.get("type") == "text" and isinstance(content.get("text"), str):
            self._assembler.summary(step.item, content["text"], step.paragraph)
            beside = {key: value for key, value in content.items() if key not in ("type", "text")}
            if beside:
                step.summary[str(step.paragraph + step.image_count)] = beside
            return
        self._keep_content(step, content)

    def _keep_content(self, step: Step, content: dict[str, Any]) -> None:
        step.paragraph = len(step.item.summary)
        step.summary[str(step.paragraph + step.image_count)] = content
        step.image_count += 1

    def _sign(self, step: Step, delta: dict[str, Any]) -> None:
        signature = string_or_none(delta, "signature")
        if signature:
            step.item.fields["signature"] = signature
        else:
            # An empty signature is sent between two paragraphs.
            step.paragraph = len(step.item.summary)

    def _apply_call(self, step: Step, delta: dict[str, Any], raw: dict[str, Raw]) -> bool:
        arguments = bytes(raw.get("arguments", b"")).decode("utf-8", "replace")
        if arguments and step.item.arguments and arguments != "".join(step.item.arguments):
            return False
        if arguments and not step.item.arguments:
            self._assembler.arguments(step.item, arguments)
        self._update(step, delta, "id", "name", "arguments", "signature")
        return True

    def _apply_result(self, step: Step, delta: dict[str, Any]) -> bool:
        fields = step.item.fields
        result = delta.get("result")
        if isinstance(step.item.item, FunctionCallOutput):
            if "output" in fields:
                return False
            fields["output"], note = output_of(result)
            fields["is_error"] = delta.get("is_error") is True
            self._update(step, delta, "type", "call_id", "result", "is_error", "signature")
            fields["native"].update(note or {})
            return True
        received = fields.get("output", step.item.item.output)  # type: ignore[union-attr]
        if isinstance(received, list) and isinstance(result, list):
            result = received + result
        elif received and result is not None:
            return False
        fields["output"] = result
        self._update(step, delta, "call_id", "name", "result", "signature")
        return True

    def _update(self, step: Step, delta: dict[str, Any], *typed_keys: str) -> None:
        """Adds signature, name and further keys of a delta to its step."""
        signature = string_or_none(delta, "signature")
        if signature:
            step.item.fields["signature"] = signature
        name = string_or_none(delta, "name")
        if name and "name" in typed_keys:
            step.item.fields["name"] = name
        native = dict(step.item.fields.get("native", step.item.item.native) or {})
        native.update({k: v for k, v in delta.items() if k not in typed_keys and v is not None})
        step.item.fields["native"] = native


def _with_integral_index(value: dict[str, Any], data: bytes) -> bytes:
    """The event with an integer index: some servers write a float."""
    index = value.get("index")
    if isinstance(index, float) and index.is_integer():
        return msgspec.json.encode({**value, "index": int(index)})
    return data


def _index_of(value: dict[str, Any], data: bytes) -> int:
    try:
        return decode_position(_with_integral_index(value, data)).index
    except msgspec.ValidationError as error:
        raise malformed(f"step.stop: {error}", data) from None


EVENTS: Final[dict[str, Callable[[Machine, dict[str, Any], bytes], None]]] = {
    "interaction.created": Machine._on_created,
    "interaction.status_update": Machine._on_status,
    "interaction.completed": Machine._on_completed,
    "step.start": Machine._on_start,
    "step.delta": Machine._on_delta,
    "step.stop": Machine._on_stop,
    "error": Machine._on_error,
}
"""Event -> the method that reads it. Others are passed through."""

OTHER_EVENTS: Final = frozenset(EVENTS) - {"step.delta"}
