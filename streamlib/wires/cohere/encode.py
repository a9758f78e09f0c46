"""Encodes events as a stream of Cohere's v2 chat.

Each text of choice 0 becomes a content and each call a call; contents and calls are numbered apart.
A message of the phase `commentary` is the tool plan. A truncated item gets no end event. Buffered:
`Created`, until the next event; usage and metadata, which belong to `message-end`; free-form
calls, which become arguments once they are complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from streamlib.request.json_objects import without_keys, without_none
from streamlib.wires.cohere.build_messages import listed_citations, placed_citation
from streamlib.wires.cohere.encode_objects import (
    RESERVED,
    call_arguments,
    cohere_usage,
    error_body,
    finish_reason,
    has_place,
    is_plan,
    own_fields,
    report_losses,
    signature_fields,
)
from streamlib.wires.encoders import is_event_of_other_wire, sse
from streamlib.wires.event_encoder import EncodedFrame, FrameWriter, ResponseNames, WireEncoder
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    MediaDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseMetadata,
)
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
)
from streamlib_parsers.namespaces import flat_call_name

__all__ = ["Encoder", "body_of", "error_body"]


class _Open:
    """One open item."""

    __slots__ = ("call", "contents", "item")

    def __init__(self, item: ResponseItem) -> None:
        self.item = item
        self.contents: dict[int, int] = {}
        """Content part -> index of its content on the wire."""
        self.call: int | None = None
        """Index of the call on the wire."""


class Encoder(WireEncoder):
    """Encodes one stream."""

    wire_api = "cohere"
    no_such_event = "Cohere has no such event"
    reserved_keys = RESERVED
    id_prefix = ""  # Cohere's own ids have none
    end_mark = b"data: [DONE]\n\n"

    def __init__(self, *, write: FrameWriter = sse, **names: Unpack[ResponseNames]) -> None:
        super().__init__(write, **names)
        self._open: dict[int, _Open] = {}
        """Open items by their index."""
        self._contents = 0
        """Contents so far: the index of the next one."""
        self._calls = 0
        """Calls so far."""
        self._citations = 0
        """Citations so far."""
        self._last_plan: int | None = None
        """Index of the item whose tool plan was written last, until something else is."""
        if self._model is not None:
            self._report_model()

    # --- the envelope ---

    def _report_model(self) -> None:
        self._report.dropped("/model", "Cohere's responses name no model")

    def _on_created(self, event: Created) -> bytes:
        self._response_id = event.response_id or self._response_id
        if event.model is not None:
            self._report_model()
        return self._start()

    def _start(self) -> bytes:
        """`message-start`, once."""
        if self._started:
            return b""
        self._started = True
        message: JsonObject = {"role": "assistant", "content": [], "tool_plan": ""}
        message |= {"tool_calls": [], "citations": []}
        return self._event("message-start", {"id": self._response_id}, message)

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        self._envelope.update(self._own_metadata(event.values))
        return b""

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        out = self._start()
        item = event.item
        if not has_place(item, self._report):
            return out
        opened = self._open[event.index] = _Open(item)
        match item:
            case FunctionCall() | CustomToolCall():
                return out + self._start_call(opened, item)
            case Opaque():
                return out + self._start_content(opened, 0, {"type": item.kind, **item.payload})
            case _:
                # A content starts with its first text: redacted reasoning has none.
                return out

    def _start_call(self, opened: _Open, item: FunctionCall | CustomToolCall) -> bytes:
        self._last_plan = None
        opened.call = self._calls
        self._calls += 1
        # The name of a namespace's function is not known to other clients.
        function = {"name": flat_call_name(item), "arguments": ""}
        call = {"id": item.call_id, "type": "function", **own_fields(item), "function": function}
        return self._event("tool-call-start", {"index": opened.call}, {"tool_calls": call})

    def _start_content(self, opened: _Open, part: int, content: JsonObject) -> bytes:
        self._last_plan = None
        index = opened.contents[part] = self._contents
        self._contents += 1
        return self._event("content-start", {"index": index}, {"content": content})

    def _text(
        self, index: int, part: int, text: str, logprobs: Sequence[JsonObject] | None = None
    ) -> bytes:
        opened = self._open.get(index)
        if opened is None:
            return b""
        item = opened.item
        if isinstance(item, Message) and is_plan(item):
            return self._plan(index, text)
        key = "thinking" if isinstance(item, Reasoning) else "text"
        out = b""
        if part not in opened.contents:
            out = self._start_content(opened, part, {"type": key, key: "", **own_fields(item)})
        position = {"index": opened.contents[part]}
        own_logprobs = self._own_logprobs(logprobs)
        if not own_logprobs:
            return out + self._event("content-delta", position, {"content": {key: text}})
        # An event has the logprobs of one token: events for further tokens have no text.
        for token in own_logprobs:
            fields = {**position, "logprobs": token}
            out += self._event("content-delta", fields, {"content": {key: text}})
            text = ""
        return out

    def _own_logprobs(self, logprobs: Sequence[JsonObject] | None) -> list[JsonObject]:
        own = [token for token in logprobs or () if "token_ids" in token]
        if logprobs and not own:
            self._report.dropped("/logprobs", "logprobs of another wire")
        return own

    def _plan(self, index: int, text: str) -> bytes:
        if self._last_plan not in (None, index):
            self._report.dropped("/tool_plan", "Cohere has one tool plan: texts are joined")
        self._last_plan = index
        return self._event("tool-plan-delta", {}, {"tool_plan": text})

    def _on_text(self, event: OutputTextDelta) -> bytes:
        return self._text(event.index, event.content_index, event.delta, event.logprobs)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._report.dropped("/refusal", "a refusal is plain text in Cohere")
        return self._text(event.index, event.content_index, event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._text(event.index, 0, event.delta, event.logprobs)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        return self._text(event.index, 0, self._gaps.with_gap(event))

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        opened = self._open.get(event.index)
        if opened is None or not isinstance(opened.item, FunctionCall):
            return b""
        return self._arguments(opened, event.delta)

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        opened = self._open.get(event.index)
        if opened is None:
            return b""
        if "sources" not in event.annotation:
            self._report.dropped("/annotations", "a citation of another wire")
            return b""
        item, position, out = opened.item, None, b""
        if isinstance(item, Message) and not is_plan(item):
            if event.content_index not in opened.contents:
                # The citation may come before its text.
                content = {"type": "text", "text": "", **own_fields(item)}
                out = self._start_content(opened, event.content_index, content)
            position = opened.contents[event.content_index]
        return out + self._cite(event.annotation, position)

    def _cite(self, citation: JsonObject, position: int | None) -> bytes:
        index = {"index": self._citations}
        self._citations += 1
        placed = placed_citation(citation, position)
        start = self._event("citation-start", index, {"citations": placed})
        return start + self._write({"type": "citation-end", **index}, "citation-end")

    def _on_done(self, event: OutputItemDone) -> bytes:
        opened = self._open.pop(event.index, None)
        if opened is None:
            return b""
        item, out = event.item, b""
        report_losses(item, self._report)
        match item:
            case Reasoning():
                out += self._end_reasoning(opened, item)
            case Message() if not opened.contents and not is_plan(item):
                content = {"type": "text", "text": "", **own_fields(item)}
                out += self._start_content(opened, 0, content)
            case CustomToolCall() if item.status == "completed":
                out += self._arguments(opened, call_arguments(item, self._report))
            case _:
                pass
        if item.status != "completed":
            return out
        signature = signature_fields(item)
        for content_index in opened.contents.values():
            end = {"type": "content-end", "index": content_index, **signature}
            out += self._write(end, "content-end")
        if opened.call is not None:
            out += self._write({"type": "tool-call-end", "index": opened.call}, "tool-call-end")
        return out

    def _end_reasoning(self, opened: _Open, item: Reasoning) -> bytes:
        """Citations of reasoning, which no event has; a content for a lone signature."""
        out = b""
        if not opened.contents and signature_fields(item):
            out = self._start_content(opened, 0, {"type": "thinking", "thinking": ""})
        if 0 in opened.contents:
            for citation in listed_citations(own_fields(item).get("citations")):
                out += self._cite(citation, opened.contents[0])
        return out

    def _on_media(self, event: MediaDelta) -> bytes:
        self._report.dropped("/media", "Cohere's responses hold texts alone")
        return b""

    # --- the end ---

    def _on_passthrough(self, event: Passthrough) -> bytes:
        if is_event_of_other_wire("cohere", event.event):
            self._report.dropped("/passthrough", "events that only another wire knows")
            return b""
        return self._start() + self._write(event.data, event.event)

    def _on_completed(self, event: Completed) -> bytes:
        out = self._start()
        self._ended = True
        reason = finish_reason(
            event.stop_reason, event.native_stop_reason, event.stop_sequence, self._report
        )
        delta: JsonObject = {"finish_reason": reason}
        usage = cohere_usage(event.usage or self._usage, self._report)
        if usage is not None:
            delta["usage"] = usage
        return out + self._end(delta)

    def _on_failed(self, event: Failed) -> bytes:
        out = self._start()
        self._ended = True
        error = error_body(event.error)
        delta: JsonObject = {"finish_reason": "ERROR", "error": error.pop("message")}
        return out + self._end({**delta, **error})

    def _end(self, delta: JsonObject) -> bytes:
        fields = {"type": "message-end", **without_none(self._envelope), "delta": delta}
        return self._write(fields, "message-end")

    def _event(self, kind: str, fields: JsonObject, message: JsonObject) -> bytes:
        return self._write({"type": kind, **fields, "delta": {"message": message}}, kind)

    def _arguments(self, opened: _Open, text: str) -> bytes:
        call = {"function": {"arguments": text}}
        return self._event("tool-call-delta", {"index": opened.call}, {"tool_calls": call})


# --- bodies ---


def body_of(frames: Iterable[EncodedFrame]) -> JsonObject:
    """The chat response that clients accumulate from the events of a response."""
    body: JsonObject = {}
    message: JsonObject = {"content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    for name, value in frames:
        if name == "message-start":
            body["id"] = value["id"]
        elif name == "message-end":
            body |= {**without_keys(value, "type", "delta"), **value["delta"]}
        else:
            _add_event(message, name, value)
    filled = {key: field for key, field in message.items() if field}
    return {**body, "message": {"role": "assistant", **filled}}


def _add_event(message: JsonObject, name: str, value: JsonObject) -> None:
    delta = value.get("delta", {}).get("message", {})
    match name:
        case "content-start":
            message["content"].append(dict(delta["content"]))
        case "content-delta":
            _add_text(message["content"][value["index"]], delta["content"])
        case "content-end":
            message["content"][value["index"]] |= without_keys(value, "type", "index")
        case "tool-plan-delta":
            message["tool_plan"] += delta["tool_plan"]
        case "tool-call-start":
            call = delta["tool_calls"]
            message["tool_calls"].append({**call, "function": dict(call["function"])})
        case "tool-call-delta":
            function = message["tool_calls"][value["index"]]["function"]
            _add_text(function, delta["tool_calls"]["function"])
        case "citation-start":
            message["citations"].append(delta["citations"])
        case _:
            pass


def _add_text(texts: JsonObject, delta: JsonObject) -> None:
    for key, text in delta.items():
        texts[key] = texts.get(key, "") + text
