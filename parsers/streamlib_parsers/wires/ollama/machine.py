"""Ollama /api/chat: one JSON object per line, each an increment, the last one marked `done`.

The wire (Ollama's API documentation; recordings of 2024 to 2026); every line also has `model`:

    {"message":{"role":"assistant","content":"","thinking":"Okay"},"done":false}
        -> ReasoningContentDelta
    {"message":{"role":"assistant","content":"Hi"},"done":false}
        -> OutputTextDelta
    {"message":{…,"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]}}
        -> a complete FunctionCall
    {"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",
     "total_duration":…,"prompt_eval_count":234,"eval_count":517}
        -> Completed, at once

There are no blocks: a change of kind closes the open item and opens another. Calls arrive complete,
with an object for arguments (its own bytes are kept), often without an id, and stay open to the
end. `{"error":"…"}` may come at any time. The wire has no end mark but `done`: input that ends
before it was truncated. /api/generate, whose lines have `response` in place of `message`, is
read the same way.

Nothing is buffered but half a surrogate pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Raw

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.events import StopReason
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import FunctionCall, Image, JsonObject, Message, Reasoning
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage, count
from streamlib_parsers.wires.ollama.lines import (
    NO_MESSAGE,
    ChatLine,
    LineMessage,
    decode,
    decode_members,
)

STOP_REASONS: Final[dict[str, StopReason]] = {"stop": "stop", "length": "length"}
"""Stop reasons by `done_reason`; load, unload and every other value is `other`.

A response with complete calls is `tool_calls` if `done_reason` is `stop` or missing."""

USAGE_KEYS: Final = ("prompt_eval_count", "eval_count")

IMAGE_TYPES: Final = {
    "iVBOR": "image/png",
    "/9j/": "image/jpeg",
    "R0lG": "image/gif",
    "UklG": "image/webp",
}
"""Media types by the start of the image's base64; the wire has no field for the type."""

TYPED_KEYS: Final = frozenset(
    {"model", "message", "response", "thinking", "done", "done_reason", "logprobs", *USAGE_KEYS}
)
"""Keys of the last line that have a typed field; every other one is metadata."""


def is_unknown(line: ChatLine) -> bool:
    """Whether a line without a message has nothing else by which lines of this wire are known."""
    return line.response is None and line.done is None


class Machine:
    """Reads the lines of one stream."""

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        # The message or reasoning that the next line may continue; calls are not among them.
        self._open: OpenItem | None = None
        # All calls of the response; they are closed by the last line: without it the response is
        # truncated, and none of its calls may be run.
        self._calls: list[OpenItem] = []

    @property
    def complete(self) -> bool:
        """Whether `done` was true: the terminal event was emitted at once."""
        return self._assembler.ended

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one line."""
        try:
            line = decode(data)
        except DECODE_ERRORS:
            line, data = self._read_malformed(data)
        message = line.message
        if message is None or line.error:
            message = self._read_without_message(line, data)
            if message is None:
                return
        if self._assembler.model is None:
            self._assembler.identify(None, line.model)
        # Reasoning, then text, then images and calls.
        reasoning = message.thinking or message.reasoning_content or line.thinking
        text = message.content or line.response
        if reasoning:
            # The logprobs of a line with both are those of its text.
            logprobs = None if text else line.logprobs
            self._assembler.reasoning(self._item(Reasoning), reasoning, 0, logprobs)
        if text:
            item = self._open
            # No call for a message that is open: this runs for nearly every line.
            if item is None or type(item.item) is not Message:
                item = self._item(Message)
            self._assembler.text(item, text, 0, line.logprobs)
        if message.images is not None or message.tool_calls is not None:
            self._add_complete(message)
        if line.done:
            self._complete(decode_any(data))

    def end(self) -> None:
        """Raises an error: `done` completes the response at once, so the input was truncated."""
        raise truncated("the stream ended before done")

    def _read_malformed(self, data: bytes) -> tuple[ChatLine, bytes]:
        """Reads what the decoder refused: half a surrogate pair, or no line of this wire."""
        data = self._assembler.mark_surrogates(data)
        try:
            return decode(data), data
        except DECODE_ERRORS as error:
            value = decode_any(data)
            if isinstance(value, dict) and value.get("error"):
                raise ParseFailure(classify(None, value)) from None
            raise malformed(f"not a line of /api/chat: {error}", data) from None

    # --- one line ---

    def _read_without_message(self, line: ChatLine, data: bytes) -> LineMessage | None:
        """Reads an error, or a line of /api/generate; None after a line of another kind."""
        if line.error:
            raise ParseFailure(classify(None, decode_any(data)))
        if is_unknown(line):
            self._assembler.passthrough("line", decode_any(data))
            return None
        return NO_MESSAGE

    def _add_complete(self, message: LineMessage) -> None:
        """Adds the images and the calls of a line."""
        for image in message.images or ():
            self._add_image(image)
        for call in message.tool_calls or ():
            self._add_call(call)

    def _item(self, kind: type[Message | Reasoning]) -> OpenItem:
        """The open item of that kind; a change of kind closes the one before."""
        item = self._open
        if item is None or type(item.item) is not kind:
            self._close_open()
            item = self._assembler.open(Message("assistant") if kind is Message else Reasoning())
            self._open = item
        return item

    def _close_open(self) -> None:
        if self._open is not None:
            self._assembler.close(self._open)
            self._open = None

    def _add_image(self, data: str) -> None:
        """Emits an image as a message of its own: the wire gives it no position in the text."""
        self._close_open()
        media_type = _image_type(data)
        item = self._assembler.open(
            Message("assistant", (unchecked(Image)(media_type=media_type),))
        )
        self._assembler.media(item, 0, media_type, data)
        self._assembler.close(item)

    def _add_call(self, call: dict[str, Raw]) -> None:
        function = _members(call.pop("function", Raw(b"{}")))
        arguments = _argument_text(bytes(function.pop("arguments", b"")))
        outer = _decode_values(call)
        inner = _decode_values(function)
        name = inner.pop("name", None)
        call_id = outer.pop("id", None)
        self._close_open()
        item = self._open_call(call_id, name, _untyped_keys(outer, inner))
        self._calls.append(item)
        self._assembler.arguments(item, arguments)

    def _open_call(self, call_id: Any, name: Any, native: JsonObject | None) -> OpenItem:
        call_id = call_id or self._assembler.new_call_id()
        item = self._assembler.open(FunctionCall(str(call_id), str(name or ""), native=native))
        if not name:
            item.forced_incomplete = True
            self._assembler.notice("nameless_call", "a tool call without a name", item)
        return item

    # --- the end ---

    def _complete(self, line: JsonObject) -> None:
        """Reads the last line: metadata, usage and stop reason (`done_reason`)."""
        self._assembler.other_metadata(line, TYPED_KEYS)
        self._emit_usage(line)
        self._close_open()
        has_complete_call = False
        for item in self._calls:
            if self._assembler.close(item) == "completed":
                has_complete_call = True
        reason = line.get("done_reason")
        if not isinstance(reason, str):
            reason = None
        stop_reason = STOP_REASONS.get(reason or "", "other")
        # Ollama ends a response with calls by `stop`, some servers by no reason at all.
        if has_complete_call and reason in ("stop", None):
            stop_reason = "tool_calls"
        self._assembler.complete(stop_reason, reason)

    def _emit_usage(self, line: JsonObject) -> None:
        # Either count may be missing: a cached prompt has no `prompt_eval_count`.
        if any(count(line, key) is not None for key in USAGE_KEYS):
            raw: JsonObject = {key: line[key] for key in USAGE_KEYS if key in line}
            self._assembler.usage(usage(raw))


def _image_type(data: str) -> str:
    """The media type of base64 text; `image/*` if its start is unknown."""
    for start, media_type in IMAGE_TYPES.items():
        if data.startswith(start):
            return media_type
    return "image/*"


def _members(raw: Raw) -> dict[str, Raw]:
    try:
        return decode_members(raw)
    except DECODE_ERRORS:
        raise malformed("a tool call whose function is not an object", bytes(raw)) from None


def _decode_values(members: dict[str, Raw]) -> JsonObject:
    return {key: decode_any(bytes(value)) for key, value in members.items()}


def _argument_text(raw: bytes) -> str:
    """An object in its own bytes; some servers send argument text, as a string."""
    if raw.startswith(b'"'):
        return str(decode_any(raw))
    if raw == b"null":
        return ""
    return raw.decode("utf-8", "replace")


def _untyped_keys(call: JsonObject, function: JsonObject) -> JsonObject | None:
    """The keys of a call that no field holds, in the call's shape, for `native`."""
    # `index` and `type` only repeat the order and the kind.
    native = {key: value for key, value in call.items() if key not in ("index", "type")}
    unknown = {key: value for key, value in function.items() if key != "index"}
    if unknown:
        native["function"] = unknown
    return native or None


def usage(raw: dict[str, Any]) -> Usage:
    """Reads the counts of the last line.

    Ollama reports neither cached input nor reasoning separately; a cached prompt may have no count
    at all.
    """
    return Usage(
        input_tokens=count(raw, "prompt_eval_count"),
        output_tokens=count(raw, "eval_count"),
        raw=raw,
    )


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """Yields a complete body as the one line of its stream."""
    value = decode_any(body)
    if not isinstance(value, dict) or not value.keys() & {"message", "response", "error"}:
        raise malformed("the body is not a response of /api/chat", body)
    yield None, body
