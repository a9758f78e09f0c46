"""Ollama /api/chat: one JSON object a line, every line an increment, the last one says so.

What the wire promises (Ollama's API documentation; recordings of 2024 to 2026):

    {"model":"qwen3:4b","message":{"role":"assistant","content":"","thinking":"Okay"},"done":false}   -> ReasoningContentDelta
    {"model":"qwen3:4b","message":{"role":"assistant","content":"Hi"},"done":false}                   -> OutputTextDelta
    {"model":"qwen3:4b","message":{…,"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]}}   -> FunctionCall, whole
    {"model":"qwen3:4b","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",
     "total_duration":…,"prompt_eval_count":234,"eval_count":517}                                     -> Completed, at once

There are no blocks: a change of kind closes the open item and begins another. Calls come whole, with an object for arguments (its own
bytes are kept), often without an id, and stay open to the end. `{"error":"…"}` may come at any time. The wire has no other sentinel
than `done`: input that ends before it was cut. /api/generate, whose lines have `response` in place of `message`, is read alike.

Nothing is held back but half an emoji.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.events import StopReason
from streamlib_parsers.framing.ndjson import NdjsonFraming as framing  # noqa: N813  # the name every wire gives its framing
from streamlib_parsers.items import FunctionCall, Image, JsonObject, Message, Reasoning
from streamlib_parsers.json_text import SurrogateJoiner, decode_any, mark_surrogates
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.usage import Usage, count

__all__ = [
    "IMAGE_TYPES",
    "STOP_REASONS",
    "USAGE_KEYS",
    "Machine",
    "body_frames",
    "framing",
    "usage",
]

STOP_REASONS: Final[dict[str, StopReason]] = {"stop": "stop", "length": "length"}
"""`stop`, and no reason, with calls is tool_calls; load, unload and every other word is other."""

USAGE_KEYS: Final = ("prompt_eval_count", "eval_count")

IMAGE_TYPES: Final = {
    "iVBOR": "image/png",
    "/9j/": "image/jpeg",
    "R0lG": "image/gif",
    "UklG": "image/webp",
}
"""How the base64 of an image begins; the wire does not say its type."""

# --- lines ---


class LineMessage(Struct, gc=False):
    """`message`. `reasoning_content` is what some servers of this API call `thinking`."""

    content: str | None = None
    thinking: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[dict[str, Raw]] | None = None
    images: list[str] | None = None


class ChatLine(Struct, gc=False):
    """One line. `response` and `thinking` stand here in /api/generate."""

    model: str | None = None
    message: LineMessage | None = None
    response: str | None = None
    thinking: str | None = None
    done: bool | None = None
    error: Any = None
    logprobs: list[JsonObject] | None = None


_decode: Final = msgspec.json.Decoder(ChatLine).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_REFUSED: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
_NOTHING: Final = LineMessage()
TYPED: Final = frozenset(
    {"model", "message", "response", "thinking", "done", "done_reason", "logprobs", *USAGE_KEYS}
)
"""Keys of the last line that have a place of their own; every other one is metadata."""


class Machine:
    """Reads the lines of one stream."""

    def __init__(self, assembly: EventAssembler) -> None:
        self._assembly = assembly
        self._open: OpenItem | None = None
        self._calls: list[OpenItem] = []

    @property
    def complete(self) -> bool:
        """`done` was true: the terminal event was given at once."""
        return self._assembly.ended

    def frame(self, event: str | None, data: bytes) -> None:
        """One line."""
        try:
            line = _decode(data)
        except _REFUSED:
            line, data = self._read_malformed(data)
        if line.error:
            raise ParseFailure(classify(None, decode_any(data)))
        if line.message is None and line.response is None and line.done is None:
            self._assembly.passthrough("line", decode_any(data))
            return
        self._assembly.identify(None, line.model)
        self._append_text(line, line.message or _NOTHING)
        if line.done:
            self._done(decode_any(data))

    def end(self) -> None:
        """`done` completes at once, so input that ends here was cut."""
        raise truncated("the stream ended before done")

    def _read_malformed(self, data: bytes) -> tuple[ChatLine, bytes]:
        """What the decoder refused: half an emoji, or no line of this wire."""
        fixed = mark_surrogates(data)
        if fixed is not None:
            self._assembly.surrogates = self._assembly.surrogates or SurrogateJoiner()
        data = fixed or data
        try:
            return _decode(data), data
        except _REFUSED as error:
            value = decode_any(data)
            if isinstance(value, dict) and value.get("error"):
                raise ParseFailure(classify(None, value)) from None
            raise malformed(f"not a line of /api/chat: {error}", data) from None

    # --- one line ---

    def _append_text(self, line: ChatLine, said: LineMessage) -> None:
        """In one line too, the thought comes before the text, the text before the calls."""
        thought = said.thinking or said.reasoning_content or line.thinking
        text = said.content or line.response
        if thought:
            self._assembly.reasoning(
                self._item(Reasoning), thought, logprobs=None if text else line.logprobs
            )
        if text:
            self._assembly.text(self._item(Message), text, logprobs=line.logprobs)
        for image in said.images or ():
            self._image(image)
        for call in said.tool_calls or ():
            self._call(call)

    def _item(self, kind: type[Message | Reasoning]) -> OpenItem:
        """The open item of that kind; a change of kind closes the one before."""
        if self._open is None or type(self._open.item) is not kind:
            self._close_open()
            self._open = self._assembly.open(
                Message("assistant") if kind is Message else Reasoning()
            )
        return self._open

    def _close_open(self) -> None:
        if self._open is not None:
            self._assembly.close(self._open)
            self._open = None

    def _image(self, data: str) -> None:
        """An image is a message of its own: the wire puts it beside the text, in no place of it."""
        self._close_open()
        media_type = next(
            (known for start, known in IMAGE_TYPES.items() if data.startswith(start)), "image/*"
        )
        item = self._assembly.open(Message("assistant", (Image(media_type=media_type),)))
        self._assembly.media(item, 0, media_type, data)
        self._assembly.close(item)

    def _call(self, call: dict[str, Raw]) -> None:
        function = _members(call.pop("function", Raw(b"{}")))
        arguments = _argument_text(bytes(function.pop("arguments", b"")))
        outer, inner = _values(call), _values(function)
        name, call_id = inner.pop("name", None), outer.pop("id", None)
        self._close_open()
        self._calls.append(
            self._begin_call(
                call_id or self._assembly.new_call_id(), name or "", _native(outer, inner)
            )
        )
        self._assembly.arguments(self._calls[-1], arguments)

    def _begin_call(self, call_id: Any, name: Any, native: JsonObject | None) -> OpenItem:
        item = self._assembly.open(FunctionCall(str(call_id), str(name), native=native))
        if not name:
            item.forced_incomplete = True
            self._assembly.notice("nameless_call", "a tool call without a name", item)
        return item

    # --- the end ---

    def _done(self, value: JsonObject) -> None:
        self._assembly.metadata(
            {key: one for key, one in value.items() if key not in TYPED and one is not None}
        )
        if any(count(value, key) is not None for key in USAGE_KEYS):
            self._assembly.usage(usage({key: value[key] for key in USAGE_KEYS if key in value}))
        self._close_open()
        called = [item for item in self._calls if self._assembly.close(item) == "completed"]
        reason = value["done_reason"] if isinstance(value.get("done_reason"), str) else None
        stop_reason = STOP_REASONS.get(reason or "", "other")
        self._assembly.complete(
            "tool_calls" if called and reason in ("stop", None) else stop_reason, reason
        )


def _members(raw: Raw) -> dict[str, Raw]:
    try:
        return _decode_members(raw)
    except _REFUSED:
        raise malformed("a tool call whose function is no object", bytes(raw)) from None


def _values(members: dict[str, Raw]) -> JsonObject:
    return {key: decode_any(bytes(value)) for key, value in members.items()}


def _argument_text(raw: bytes) -> str:
    """An object in its own bytes; a server that sends argument text sends a string."""
    if raw.startswith(b'"'):
        return str(decode_any(raw))
    return "" if raw == b"null" else raw.decode("utf-8", "replace")


def _native(call: JsonObject, function: JsonObject) -> JsonObject | None:
    """Unknown keys. `index` and `type` say nothing that order and kind do not."""
    rest = {key: value for key, value in call.items() if key not in ("index", "type")}
    inner = {key: value for key, value in function.items() if key != "index"}
    return rest | ({"function": inner} if inner else {}) or None


def usage(raw: dict[str, Any]) -> Usage:
    """The counts of the last line. Ollama tells neither cached input nor reasoning apart; a cached prompt may have no count at all."""
    return Usage(
        input_tokens=count(raw, "prompt_eval_count"),
        output_tokens=count(raw, "eval_count"),
        raw=raw,
    )


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A whole body is the one line of its stream."""
    value = decode_any(body)
    if not isinstance(value, dict) or not value.keys() & {"message", "response", "error"}:
        raise malformed("the body is not an answer of /api/chat", body)
    yield None, body
