"""One candidate of a Gemini response: its parts become items; its calls are in `calls.py`.

Unsigned text and reasoning continue over parts and chunks; a part of another kind ends them. A part
with a `thoughtSignature`, or with a key beside its data, is an item of its own, and no text is ever
added to it:

    {"text":"I think","thought":true}  {"text":"."  ,"thought":true}   -> Reasoning "I think."
    {"text":"Hel"}  {"text":"lo"}                                      -> Message "Hello"
    {"text":"!","thoughtSignature":"…"}                                -> another Message, signed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import (
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.gemini.calls import Calls
from streamlib_parsers.wires.gemini.chunks import Part
from streamlib_parsers.wires.gemini.parts import (
    NULL,
    Object,
    arguments_of,
    as_object,
    as_string,
    as_value,
    is_true,
    media_of,
    optional,
    present,
    rest,
    state,
)


class Candidate:
    """One candidate while it is read."""

    __slots__ = (
        "_assembler",
        "_is_reasoning",
        "_text_item",
        "_unanswered",
        "calls",
        "index",
        "reason",
    )

    def __init__(self, assembler: EventAssembler, index: int) -> None:
        self._assembler = assembler
        self.index = index
        self.calls = Calls(assembler, index)
        self.reason: str | int | None = None
        """The last `finishReason`, by name or number; None until one is received."""
        self._text_item: OpenItem | None = None
        """The open message or reasoning that unsigned text is appended to, if any."""
        self._is_reasoning = False
        """Whether that item is reasoning."""
        self._unanswered: dict[str, None] = {}
        """Ids of provider-run calls that have no result yet, the oldest first."""

    # --- text ---

    def append(self, text: str, *, is_reasoning: bool) -> None:
        """Appends unsigned text to the open item of its kind; opens one if needed.

        Must not be called for empty text, which opens no item.
        """
        item = self._text_item
        if item is None or is_reasoning is not self._is_reasoning:
            item = self._open_text(is_reasoning=is_reasoning)
        if is_reasoning:
            self._assembler.reasoning(item, text)
        else:
            self._assembler.text(item, text)

    def _open_text(self, *, is_reasoning: bool) -> OpenItem:
        """Open an item for text."""
        self.close_text()
        if is_reasoning:
            item = self._assembler.open(Reasoning(choice=self.index))
        else:
            item = self._assembler.open(Message("assistant", choice=self.index))
        self._text_item = item
        self._is_reasoning = is_reasoning
        return item

    def close_text(self) -> None:
        """Close the open message or reasoning, if any."""
        if self._text_item is not None:
            self._assembler.close(self._text_item)
            self._text_item = None

    def _open(self, item: ResponseItem) -> OpenItem:
        """Open an item that ends the text before it."""
        self.close_text()
        return self._assembler.open(msgspec.structs.replace(item, choice=self.index))

    # --- parts: one method for each kind ---

    def read(self, part: Part) -> bool:
        """Reads a part that is text or a complete call; returns False for any other."""
        if part.executableCode or part.codeExecutionResult or part.toolCall or part.toolResponse:
            return False
        call, text = part.functionCall, part.text
        fields: dict[str, Any] = {}
        if part.thoughtSignature:
            fields["signature"] = part.thoughtSignature
        if call is None and text is not None:
            self._add_text(text, fields, is_reasoning=part.thought is True)
        elif call is None or text is not None or part.thought is not None:
            return False
        else:
            self.close_text()
            return self.calls.add(call, fields)
        return True

    def read_part(self, part: Object) -> None:
        """Read one part of any kind, without its nulls."""
        if "functionCall" in part:
            # A text beside it does not hide a call, whatever the order of the keys.
            self._read_call(part, "functionCall")
            return
        for kind in part:
            read = PARTS.get(kind)
            if read is not None:
                read(self, part, kind)
                return
        if part:
            self._read_unknown(part)

    def _read_text(self, part: Object, kind: str) -> None:
        fields = state(part, kind, "thought")
        self._add_text(as_string(part["text"]), fields, is_reasoning=is_true(part, "thought"))

    def _add_text(self, text: str, fields: dict[str, Any], *, is_reasoning: bool) -> None:
        if not fields:
            if text:
                self.append(text, is_reasoning=is_reasoning)
            return
        if is_reasoning:
            item = self._open(Reasoning(**fields))
            self._assembler.reasoning(item, text)
        else:
            item = self._open(Message("assistant", **fields))
            item.part(0)  # a signed empty text is a part too, which a replay must send
            self._assembler.text(item, text)
        self._assembler.close(item)

    def _read_call(self, part: Object, kind: str) -> None:
        self.close_text()
        self.calls.read(part)

    def _read_media(self, part: Object, kind: str) -> None:
        """Read bytes or the address of a file."""
        if is_true(part, "thought"):
            # An image made while reasoning must not be shown as output.
            self._read_unknown(part)
            return
        blob = present(as_object(part[kind]))
        media = media_of(blob)
        inner = rest(blob, "mimeType", "data", "fileUri", "displayName")
        fields = state(part, kind, "thought", inner=inner)
        if media.data:
            # The bytes are in the delta, not in the skeleton.
            item = self._open(Message("assistant", **fields))
            self._assembler.media(item, 0, media.media_type, media.data)
            item.fields["content"] = (media,)
        else:
            item = self._open(Message("assistant", (media,), **fields))
        self._assembler.close(item)

    def _read_code(self, part: Object, kind: str) -> None:
        code = present(as_object(part[kind]))
        # The values are raw: what the provider wrote is not encoded again.
        arguments = {key: value for key, value in code.items() if key != "id"}
        self._add_server_call(
            optional(code, "id"),
            "code_execution",
            msgspec.json.encode(arguments).decode("utf-8", "replace"),
            state(part, kind, kind_in_native=True),
        )

    def _read_tool_call(self, part: Object, kind: str) -> None:
        call = present(as_object(part[kind]))
        inner = rest(call, "id", "toolType", "args")
        self._add_server_call(
            optional(call, "id"),
            optional(call, "toolType") or "",
            arguments_of(call),
            state(part, kind, inner=inner, kind_in_native=True),
        )

    def _add_server_call(
        self, wire_id: str | None, name: str, arguments: str, fields: dict[str, Any]
    ) -> None:
        call_id = wire_id or self._assembler.new_call_id()
        self._unanswered[call_id] = None
        item = self._open(ServerToolCall(call_id, name, id=wire_id or None, **fields))
        self._assembler.arguments(item, arguments)
        self._assembler.close(item)

    def _read_code_result(self, part: Object, kind: str) -> None:
        result = present(as_object(part[kind]))
        self._add_server_result(
            optional(result, "id"),
            "code_execution",
            rest(result, "id") or {},
            state(part, kind, kind_in_native=True),
        )

    def _read_tool_response(self, part: Object, kind: str) -> None:
        result = present(as_object(part[kind]))
        inner = rest(result, "id", "toolType", "response")
        self._add_server_result(
            optional(result, "id"),
            optional(result, "toolType") or "",
            as_value(result.get("response", NULL)),
            state(part, kind, inner=inner, kind_in_native=True),
        )

    def _add_server_result(
        self, wire_id: str | None, name: str, output: Any, fields: dict[str, Any]
    ) -> None:
        call_id = wire_id
        if not call_id:
            # Models before Gemini 3 send no ids: the result is of the oldest call without one.
            call_id = next(iter(self._unanswered), None) or self._assembler.new_call_id()
        self._unanswered.pop(call_id, None)
        result = ServerToolResult(call_id, name, output, id=wire_id or None, **fields)
        self._assembler.close(self._open(result))

    def _read_unknown(self, part: Object) -> None:
        """Keep a part as it was received, its signature too."""
        payload = {key: as_value(value) for key, value in part.items()}
        kind = "thoughtSignature"
        for key in payload:
            if key not in {"thought", "thoughtSignature"}:
                kind = key
                break
        self._assembler.close(self._open(Opaque(kind, payload)))


PARTS: Final[dict[str, Callable[[Candidate, Object, str], None]]] = {
    "text": Candidate._read_text,
    "functionCall": Candidate._read_call,
    "inlineData": Candidate._read_media,
    "fileData": Candidate._read_media,
    "executableCode": Candidate._read_code,
    "codeExecutionResult": Candidate._read_code_result,
    "toolCall": Candidate._read_tool_call,
    "toolResponse": Candidate._read_tool_response,
}
"""Readers of the parts, by the key of their data. A part with none of them is an `Opaque`."""
