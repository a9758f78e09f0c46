"""Cohere v2 chat: server-sent events; contents, tool plan and calls of one message.

The wire (event types of cohere 7.3; docs/wires/cohere.md lists them):

    message-start      id
      content-start 0      {"type":"thinking","thinking":""}    -> OutputItemAdded(Reasoning)
      content-delta 0      {"thinking":"…"}
      content-end   0                                           -> OutputItemDone
      content-start 1      {"type":"text","text":""}
      content-delta 1      {"text":"…"}                         -> OutputTextDelta
      citation-start 0     start, end, text, sources            -> AnnotationAdded
      tool-plan-delta      {"tool_plan":"…"}                    -> a Message, `commentary`
      tool-call-start 0    id, function.name                    -> OutputItemAdded(FunctionCall)
      tool-call-delta 0    function.arguments
      tool-call-end   0
    message-end        finish_reason, usage                     -> Completed, at once
    [DONE]             says nothing about success

A key that holds a list in a message holds a single object in an event. `index` counts contents,
calls and citations separately. vLLM serves the same wire without `event:` lines.

A citation may come after the end of its content, so an item that ended is closed with the next
event that is not a citation. Nothing else is buffered but half a surrogate pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import (
    ErrorInfo,
    ParseFailure,
    generation_failed,
    malformed,
    truncated,
)
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import (
    FunctionCall,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
)
from streamlib_parsers.json_text import DECODE_ERRORS, dumps, rest_of, string_or_none
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.stop_reasons import reconcile
from streamlib_parsers.wires.cohere.citations import add_citation, content_index
from streamlib_parsers.wires.cohere.events import (
    V1,
    ContentDelta,
    ToolCallDelta,
    ToolPlanDelta,
    decode_frequent,
)
from streamlib_parsers.wires.cohere.token_counts import usage

STOP_REASONS: Final[dict[str, StopReason]] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_calls",
    "MAX_TOKENS": "length",
    "ERROR_TOXIC": "content_filter",  # of v1, in whose enumeration v2 has its roots
}

FAILURES: Final = frozenset({"ERROR", "TIMEOUT", "ERROR_LIMIT"})
"""Finish reasons of a generation that failed."""

MAX_INDEX: Final = 1_000_000
"""A greater index is malformed. No list is padded up to an index."""

_MESSAGE_LISTS: Final = ("content", "tool_plan", "tool_calls", "citations")


class Machine:
    """Reads the events of one stream."""

    def __init__(self, assembler: EventAssembler) -> None:
        self.complete = False
        """`message-end` completed the response."""
        self._assembler = assembler
        self._contents: dict[int, OpenItem] = {}
        """The open contents by index; their items are messages, reasoning or opaque."""
        self._calls: dict[int, OpenItem] = {}
        """The open calls by index."""
        self._seen: set[tuple[str, int]] = set()
        """Contents and calls that were started: none may be started twice, or its deltas could
        belong to either."""
        self._ended: tuple[int, OpenItem] | None = None
        """A content that ended, with its index, until the next event that is not a citation: its
        citations may follow its end, and a closed item takes none."""
        self._plan: OpenItem | None = None
        """The tool plan, while its text arrives. The wire has no event for its end."""
        self._started = False
        """Whether `message-start` was read."""
        assembler.before_close = self._close_ended

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one event.

        Deltas are nearly all of a stream and are applied here.
        """
        try:
            message = decode_frequent(data)
        except DECODE_ERRORS:
            self._read_any(event, data)
            return
        if type(message) is ContentDelta:
            item = self._contents.get(message.index)
            content = message.delta.message.content
            if item is not None and message.logprobs is None:
                if content.text and content.thinking is None and type(item.item) is Message:
                    self._assembler.text(item, content.text)
                    return
                if content.thinking and content.text is None and type(item.item) is Reasoning:
                    self._assembler.reasoning(item, content.thinking)
                    return
        elif type(message) is ToolCallDelta:
            item = self._calls.get(message.index)
            if item is not None:
                self._assembler.arguments(item, message.delta.message.tool_calls.function.arguments)
                return
        elif type(message) is ToolPlanDelta and self._plan is not None:
            self._assembler.text(self._plan, message.delta.message.tool_plan)
            return
        self._read_any(event, data)

    def end(self) -> None:
        """Raises an error: `message-end` completes the response at once, so it was truncated."""
        raise truncated("the stream ended before message-end")

    # --- all events ---

    def _read_any(self, event: str | None, data: bytes) -> None:
        # The end mark shows nothing: the response has ended before it, or is truncated.
        if data.strip()[:6].upper() == b"[DONE]":
            return
        value, data = self._assembler.decode_object(data)
        kind = value.get("type") or event
        handler = EVENTS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            if kind not in CITATION_EVENTS:
                self._close_ended()
            handler(self, value, data)
        elif isinstance(value.get("event_type"), str):
            raise malformed(V1, data, "legacy_schema")
        elif value.get("error") or (kind is None and isinstance(value.get("message"), str)):
            raise ParseFailure(classify(None, value))
        else:
            self._assembler.passthrough(str(kind or ""), value)

    def _on_message_start(self, value: dict[str, Any], data: bytes) -> None:
        if self._started:
            # It starts another response, which must not be mixed with this one.
            self._assembler.notice("second_response", "a second message-start")
            self._assembler.passthrough("message-start", value)
            return
        self._started = True
        self._assembler.identify(string_or_none(value, "id"), None)
        message = _message_of(value)
        self._assembler.other_metadata(message, {"role", *_MESSAGE_LISTS})
        early = {key: message[key] for key in _MESSAGE_LISTS if message.get(key)}
        if early:
            # The wire has empty lists here: content comes in events of its own.
            self._assembler.passthrough("message-start.message", early)

    def _on_message_end(self, value: dict[str, Any], data: bytes) -> None:
        delta = _object(value, "delta")
        self._close_plan()
        self._assembler.identify(string_or_none(value, "id"), None)
        raw_usage = delta.get("usage")
        if isinstance(raw_usage, dict) and raw_usage:
            self._assembler.usage(usage(raw_usage))
        self._assembler.other_metadata(value, {"type", "id", "index", "delta"})
        self._assembler.other_metadata(delta, {"finish_reason", "usage", "error", "error_type"})
        reason = string_or_none(delta, "finish_reason")
        if delta.get("error") or reason in FAILURES:
            raise _failure(reason, delta)
        self.complete = True
        stop_reason = STOP_REASONS.get(reason or "", "other")
        if stop_reason == "other" and reason is not None:
            self._assembler.notice("unknown_finish_reason", reason)
        # Before the reason is compared with the calls: open calls are not complete.
        self._assembler.close_open_items()
        call_waits = bool(self._assembler.complete_calls)
        stop_reason = reconcile(self._assembler, stop_reason, reason, call_waits=call_waits)
        self._assembler.complete(stop_reason, reason)

    # --- contents ---

    def _on_content_start(self, value: dict[str, Any], data: bytes) -> None:
        self._close_plan()
        index = self._new_index("content", value, data)
        content = _message_of(value).get("content")
        if not isinstance(content, dict):
            raise malformed("content-start without a content", data)
        item = self._assembler.open(_content_item(content))
        self._contents[index] = item
        if isinstance(item.item, Message):
            # A text without any characters is a part too.
            item.part(0)
            self._assembler.text(item, string_or_none(content, "text") or "")
        elif isinstance(item.item, Reasoning):
            self._assembler.reasoning(item, string_or_none(content, "thinking") or "")

    def _on_content_delta(self, value: dict[str, Any], data: bytes) -> None:
        index = _index(value, data)
        content = _object(_message_of(value), "content")
        item = self._contents.get(index)
        if item is None and ("content", index) in self._seen:
            self._out_of_order("content-delta", value)
            return
        text, thinking = string_or_none(content, "text"), string_or_none(content, "thinking")
        if item is None and (text is None) != (thinking is None):
            # A start was lost: the key shows the kind of the content.
            item = self._assembler.open(_content_item({"type": _kind_of(content)}))
            self._seen.add(("content", index))
            self._contents[index] = item
        if item is None:
            raise malformed(f"a delta for content {index}, which is not open", data)
        logprobs = None
        if isinstance(value.get("logprobs"), dict):
            logprobs = [value["logprobs"]]
        if isinstance(item.item, Message) and text is not None and thinking is None:
            self._assembler.text(item, text, logprobs=logprobs)
        elif isinstance(item.item, Reasoning) and thinking is not None and text is None:
            self._assembler.reasoning(item, thinking, logprobs=logprobs)
        else:
            # Not guessed: reasoning in a message would be shown to a user.
            self._assembler.passthrough("content-delta", value)
            self._assembler.mark_incomplete(item, f"{', '.join(content)} in {index}")

    def _on_content_end(self, value: dict[str, Any], data: bytes) -> None:
        index = _index(value, data)
        item = self._contents.pop(index, None)
        if item is None:
            self._out_of_order("content-end", value)
            return
        signature = string_or_none(value, "signature")
        if signature:
            # Cohere itself has no signatures; gateways in front of other providers send them.
            item.fields["signature"] = signature
        self._ended = index, item

    def _close_ended(self) -> None:
        """Closes the content that ended: no citation of it can follow any more."""
        if self._ended is not None:
            (_, item), self._ended = self._ended, None
            self._assembler.close(item)

    # --- the tool plan ---

    def _on_tool_plan(self, value: dict[str, Any], data: bytes) -> None:
        plan = string_or_none(_message_of(value), "tool_plan")
        if plan is None:
            self._assembler.passthrough("tool-plan-delta", value)
            return
        if self._plan is None:
            item = Message("assistant", phase="commentary", native={"type": "tool_plan"})
            self._plan = self._assembler.open(item)
        self._assembler.text(self._plan, plan)

    def _close_plan(self) -> None:
        if self._plan is not None:
            self._assembler.close(self._plan)
            self._plan = None

    # --- calls ---

    def _on_call_start(self, value: dict[str, Any], data: bytes) -> None:
        self._close_plan()
        index = self._new_index("call", value, data)
        call = _message_of(value).get("tool_calls")
        if not isinstance(call, dict):
            raise malformed("tool-call-start without a call", data)
        function = _object(call, "function")
        native = {
            key: inner for key, inner in call.items() if key not in ("id", "type", "function")
        }
        if call.get("type") not in (None, "function"):
            native["type"] = call["type"]
        function_rest = rest_of(function, "name", "arguments")
        if function_rest:
            native["function"] = function_rest
        call_id = string_or_none(call, "id") or self._assembler.new_call_id()
        name = string_or_none(function, "name") or ""
        item = self._assembler.open(FunctionCall(call_id, name, native=native or None))
        self._calls[index] = item
        if not name:
            # A call that cannot be dispatched must never reach `Response.calls`.
            item.forced_incomplete = True
            self._assembler.notice("nameless_call", "a call without a name", item)
        self._assembler.arguments(item, _arguments(function))

    def _on_call_delta(self, value: dict[str, Any], data: bytes) -> None:
        item = self._calls.get(_index(value, data))
        if item is None:
            self._out_of_order("tool-call-delta", value)
            return
        function = _object(_object(_message_of(value), "tool_calls"), "function")
        arguments = _arguments(function)
        if not arguments and function.get("arguments") != "":
            self._assembler.passthrough("tool-call-delta", value)
            self._assembler.mark_incomplete(item, "a delta without arguments")
            return
        self._assembler.arguments(item, arguments)

    def _on_call_end(self, value: dict[str, Any], data: bytes) -> None:
        item = self._calls.pop(_index(value, data), None)
        if item is None:
            self._out_of_order("tool-call-end", value)
            return
        self._assembler.close(item)

    # --- citations ---

    def _on_citation(self, value: dict[str, Any], data: bytes) -> None:
        citation = _message_of(value).get("citations")
        item = None
        if isinstance(citation, dict):
            item = self._cited_item(citation)
        if item is None or not isinstance(citation, dict):
            # A citation that comes late changes no text: it is no reason to fail the response.
            self._out_of_order("citation-start", value)
            return
        add_citation(self._assembler, item, citation)

    def _cited_item(self, citation: dict[str, Any]) -> OpenItem | None:
        if citation.get("type") == "PLAN":
            return self._plan
        kind: type[ResponseItem] = Message
        if citation.get("type") == "THINKING_CONTENT":
            kind = Reasoning
        candidates = dict(self._contents)
        if self._ended is not None:
            candidates[self._ended[0]] = self._ended[1]
        index = content_index(citation)
        if index is not None:
            return candidates.get(index)
        for item in reversed(list(candidates.values())):
            if isinstance(item.item, kind):
                return item
        return None

    def _on_citation_end(self, value: dict[str, Any], data: bytes) -> None:
        """Emits nothing: the event has only an index, and the start had the complete citation."""

    # --- indexes and order ---

    def _new_index(self, kind: str, value: dict[str, Any], data: bytes) -> int:
        index = _index(value, data)
        if (kind, index) in self._seen:
            # Its deltas could not be distinguished from those of the first one.
            raise malformed(f"{kind} {index} was started twice", data)
        self._seen.add((kind, index))
        return index

    def _out_of_order(self, kind: str, value: dict[str, Any]) -> None:
        self._assembler.notice("out_of_order", f"{kind} for something that is not open")
        self._assembler.passthrough(kind, value)


def _content_item(content: dict[str, Any]) -> ResponseItem:
    kind = _kind_of(content)
    if kind == "text":
        return Message("assistant", native=rest_of(content, "type", "text"))
    if kind == "thinking":
        native = rest_of(content, "type", "thinking", "signature")
        return Reasoning(signature=string_or_none(content, "signature"), native=native)
    return Opaque(kind, content)


def _kind_of(content: dict[str, Any]) -> str:
    """The type of a content, which its fragments do not have."""
    kind = string_or_none(content, "type")
    if kind is not None:
        return kind
    if isinstance(content.get("thinking"), str):
        return "thinking"
    if isinstance(content.get("text"), str):
        return "text"
    return ""


def _arguments(function: dict[str, Any]) -> str:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, dict):
        return dumps(arguments)
    return ""


def _object(values: dict[str, Any], key: str) -> dict[str, Any]:
    value = values.get(key)
    if isinstance(value, dict):
        return value
    return {}


def _message_of(value: dict[str, Any]) -> dict[str, Any]:
    return _object(_object(value, "delta"), "message")


def _index(value: dict[str, Any], data: bytes) -> int:
    index = value.get("index")
    if isinstance(index, float) and index.is_integer():
        # Some servers write indexes as floats.
        index = int(index)
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= MAX_INDEX:
        raise malformed(f"{value.get('type')}: {index!r:.80} is not an index", data)
    return index


def _failure(reason: str | None, delta: dict[str, Any]) -> ParseFailure:
    """`message-end` of a generation that failed; its `error` is a text."""
    error = delta.get("error")
    if not error:
        return generation_failed(reason or "ERROR")
    error_type = string_or_none(delta, "error_type")
    info = classify(None, {"message": error, "error_type": error_type})
    if error_type is not None or info.kind != "server_error":
        # The text is more precise than the reason: too many tokens, a rate limit.
        return ParseFailure(info)
    return ParseFailure(
        ErrorInfo(
            "generation_failed", info.message, retryable=True, code=reason, detail=info.detail
        )
    )


EVENTS: Final[dict[str, Callable[[Machine, dict[str, Any], bytes], None]]] = {
    "message-start": Machine._on_message_start,
    "content-start": Machine._on_content_start,
    "content-delta": Machine._on_content_delta,
    "content-end": Machine._on_content_end,
    "tool-plan-delta": Machine._on_tool_plan,
    "tool-call-start": Machine._on_call_start,
    "tool-call-delta": Machine._on_call_delta,
    "tool-call-end": Machine._on_call_end,
    "citation-start": Machine._on_citation,
    "citation-end": Machine._on_citation_end,
    "message-end": Machine._on_message_end,
}
"""Event -> the method that reads it. Others (`debug`) are passed through."""

CITATION_EVENTS: Final = frozenset({"citation-start", "citation-end"})
"""Events that may follow the end of their content."""
