"""What a browser may see of a run: each field of each event and item, with a decision and a reason.

A field is sent if a page draws it, or needs it to know where to draw. Fields that name the server,
its account or its provider are not sent, nor those that only a provider reads: signatures,
encrypted state, its own objects.
A test compares `FIELDS` with the classes, so that a new field is decided on before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from streamlib.request.report import Report
from streamlib.web.public_errors import ErrorText, public_text
from streamlib.web.ui_parts import RESULT_KEYS
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Event,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseMetadata,
    TokenCount,
    Window,
)
from streamlib_parsers.items import (
    ApplyPatchCall,
    ApplyPatchCallOutput,
    ApprovalRequest,
    ApprovalResponse,
    Audio,
    Compaction,
    ComputerCall,
    ComputerCallOutput,
    CustomToolCall,
    CustomToolCallOutput,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Item,
    JsonObject,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    ShellCall,
    ShellCallOutput,
    ShellResult,
    Text,
    ToolSearchCall,
    ToolSearchOutput,
    ToolSpec,
    snake_case,
)
from streamlib_parsers.usage import Usage

StructT = TypeVar("StructT", bound=Struct)

SECRET_KEYS: Final = ("signature", "thought_signature", "thoughtSignature")
"""Keys of a provider's objects with values that only it reads, beside encrypted ones."""


class Decision(NamedTuple):
    """What a browser sees of a field.

    Attributes:
        reason: the reason, for the report.
        replace: returns the value to send; None if the value is sent unchanged.
        is_inner: whether the value is one or several structs, whose own fields have decisions.
    """

    reason: str
    replace: Callable[[Any], Any] | None = None
    is_inner: bool = False


def _dropped(reason: str, empty: Any = None) -> Decision:
    def replace(_: Any) -> Any:
        return empty

    return Decision(reason, replace)


def _without_secrets(value: Any) -> Any:
    """A provider's JSON value without encrypted state and signatures, at any depth."""
    match value:
        case dict():
            return {key: _without_secrets(of) for key, of in value.items() if not _is_secret(key)}
        case list():
            return [_without_secrets(element) for element in value]
        case tuple():
            return tuple([_without_secrets(element) for element in value])
        case _:
            return value


def _is_secret(key: str) -> bool:
    return key.startswith("encrypted") or key in SECRET_KEYS


def _shown_native(native: JsonObject | None) -> JsonObject | None:
    """The kind of a hosted call on the wire, and its result where the call holds it."""
    if native is None:
        return None
    shown = {key: native[key] for key in ("type", *RESULT_KEYS) if key in native}
    return _without_secrets(shown) or None


def _tool_name(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    return tuple([ToolSpec(tool.name) for tool in tools])


POSITION: Final = Decision("says which part, item or choice it belongs to, and in which order")
AGENT: Final = Decision("says who speaks, where several agents do")
TEXT: Final = Decision("what the model or a tool wrote, and a page draws")
STATE: Final = Decision("says how far it is, or how it ended")
COUNT: Final = Decision("numbers, for a page that shows what is used and what is left")
CALL: Final = Decision("what is called, with which input; ties an output to it")
FILE: Final = Decision("a file that a page shows, or its address")
SUPPORT: Final = Decision("a word to quote to support: it opens nothing without the key")
INNER: Final = Decision("decided on by its own fields", is_inner=True)
SOURCE: Final = Decision("a source to show, without its encrypted part", _without_secrets)
NATIVE: Final = _dropped("the provider's own fields: what they hold, nobody has looked at")
SIGNATURE: Final = _dropped("only its provider reads it; the server has it in the history")
ENCRYPTED: Final = _dropped("only its provider reads it; the server has it in the history")

FIELDS: Final[dict[type[Struct], dict[str, Decision]]] = {
    # --- events ---
    Event: {"seq": POSITION, "agent": AGENT},
    RateLimits: {
        "requests": COUNT,
        "tokens": COUNT,
        "input_tokens": COUNT,
        "output_tokens": COUNT,
        "windows": COUNT,
        "retry_after": COUNT,
        "request_id": SUPPORT,
        "raw": _dropped("headers, among them the account's", {}),
    },
    Window: {"limit": COUNT, "remaining": COUNT, "reset_at": COUNT, "reset_after": COUNT},
    Created: {"response_id": SUPPORT, "model": STATE},
    OutputItemAdded: {"index": POSITION, "item": INNER},
    OutputItemDone: {"index": POSITION, "item": INNER},
    OutputTextDelta: {
        "index": POSITION,
        "content_index": POSITION,
        "delta": TEXT,
        "logprobs": TEXT,
    },
    ReasoningContentDelta: {
        "index": POSITION,
        "content_index": POSITION,
        "delta": TEXT,
        "logprobs": TEXT,
    },
    ReasoningSummaryDelta: {"index": POSITION, "summary_index": POSITION, "delta": TEXT},
    FunctionCallArgumentsDelta: {"index": POSITION, "delta": CALL},
    RefusalDelta: {"index": POSITION, "content_index": POSITION, "delta": TEXT, "logprobs": TEXT},
    MediaDelta: {
        "index": POSITION,
        "content_index": POSITION,
        "media_type": FILE,
        "data": FILE,
        "transcript": TEXT,
    },
    AnnotationAdded: {"index": POSITION, "content_index": POSITION, "annotation": SOURCE},
    ItemProgress: {"index": POSITION, "status": STATE},
    TokenCount: {"usage": INNER},
    ResponseMetadata: {"values": _dropped("the provider's envelope: fingerprints, tiers, …", {})},
    Passthrough: {
        "event": STATE,
        "data": _dropped("an event of unknown kind: what it holds, nobody has looked at"),
    },
    Notice: {
        "code": STATE,
        "detail": _dropped("may quote what the provider sent", ""),
        "index": POSITION,
    },
    Completed: {
        "response_id": SUPPORT,
        "model": STATE,
        "stop_reason": STATE,
        "native_stop_reason": STATE,
        "stop_sequence": STATE,
        "usage": INNER,
        "choices": STATE,
    },
    Failed: {"error": INNER},
    Usage: {
        "input_tokens": COUNT,
        "output_tokens": COUNT,
        "cache_read_input_tokens": COUNT,
        "cache_write_input_tokens": COUNT,
        "reasoning_output_tokens": COUNT,
        "cache_write_5m_input_tokens": COUNT,
        "cache_write_1h_input_tokens": COUNT,
        "cache_write_24h_input_tokens": COUNT,
        "input_modalities": COUNT,
        "output_modalities": COUNT,
        "cache_modalities": COUNT,
        "raw": _dropped("the provider's own object: tiers, prices, regions", {}),
    },
    ErrorInfo: {
        "kind": STATE,
        # Replaced by a sentence about the kind: see `PublicView`.
        "message": Decision("the provider's text may name an account or an address"),
        "retryable": STATE,
        "retry_after": COUNT,
        "status": _dropped("of the server's request: a 401 says that its key is wrong"),
        "code": _dropped("the provider's word"),
        "detail": _dropped("the provider's own object"),
    },
    # --- items ---
    Item: {
        "id": SUPPORT,
        "status": STATE,
        "choice": POSITION,
        "signature": SIGNATURE,
        "response_id": SUPPORT,
        "origin": _dropped("endpoint and account of the server"),
        "native": NATIVE,
        "agent": AGENT,
    },
    # Only messages of the assistant keep their content: see `PublicView`.
    Message: {"role": POSITION, "content": INNER, "phase": POSITION},
    Reasoning: {
        "content": TEXT,
        "summary": TEXT,
        "encrypted_content": ENCRYPTED,
        "redacted": STATE,
    },
    FunctionCall: {"call_id": CALL, "name": CALL, "arguments": CALL, "namespace": CALL},
    FunctionCallOutput: {"call_id": CALL, "output": INNER, "is_error": STATE},
    CustomToolCall: {"call_id": CALL, "name": CALL, "input": CALL, "namespace": CALL},
    CustomToolCallOutput: {"call_id": CALL, "output": INNER, "is_error": STATE},
    ServerToolCall: {
        "call_id": CALL,
        "name": CALL,
        "arguments": CALL,
        "native": Decision("kind and result of a hosted call are in it", _shown_native),
    },
    ServerToolResult: {"call_id": CALL, "name": CALL, "output": SOURCE},
    Compaction: {
        "content": _dropped("a summary of everything before, instructions included"),
        "encrypted_content": ENCRYPTED,
    },
    ComputerCall: {"call_id": CALL, "actions": CALL, "pending_safety_checks": CALL},
    ComputerCallOutput: {"call_id": CALL, "image": INNER, "acknowledged": CALL},
    ShellCall: {"call_id": CALL, "action": CALL},
    ShellCallOutput: {"call_id": CALL, "results": INNER},
    ShellResult: {"stdout": TEXT, "stderr": TEXT, "exit_code": STATE, "native": NATIVE},
    ApplyPatchCall: {"call_id": CALL, "operation": CALL},
    ApplyPatchCallOutput: {"call_id": CALL, "output": TEXT, "failed": STATE},
    ApprovalRequest: {"call_id": CALL, "server_label": CALL, "name": CALL, "arguments": CALL},
    ApprovalResponse: {"call_id": CALL, "approve": STATE, "reason": TEXT},
    ToolSearchCall: {"call_id": CALL, "arguments": CALL},
    ToolSearchOutput: {
        "call_id": CALL,
        "tools": Decision("names only: descriptions and schemas are the prompt's", _tool_name),
    },
    Opaque: {
        "kind": STATE,
        "payload": _dropped("an item of unknown kind: what it holds, nobody has looked at", {}),
    },
    # --- parts ---
    Part: {"native": NATIVE},
    Text: {"text": TEXT, "annotations": SOURCE},
    Refusal: {"refusal": TEXT},
    Media: {"data": FILE, "url": FILE, "file_id": SUPPORT, "media_type": FILE, "name": FILE},
    Image: {},
    Document: {},
    Audio: {"transcript": TEXT},
}
"""Class -> its own fields -> decision; decisions of its bases apply too. Of a `ToolSpec` only the
name is sent."""


def decisions(kind: type[Struct]) -> dict[str, Decision]:
    """The decision on each field of a class."""
    own: dict[str, Decision] = {}
    for base in reversed(kind.__mro__):
        own.update(FIELDS.get(base, {}))
    return own


class PublicView:
    """Events and items without what a browser must not see.

    Args:
        report: receives what was left out, once for each field.
        error_text: returns the message for a failure; by default a sentence about its kind.
    """

    def __init__(self, report: Report, error_text: ErrorText | None = None) -> None:
        self._report = report
        self._error_text = error_text or public_text

    def of(self, struct: StructT) -> StructT:
        """A struct without what a browser must not see; the same one if nothing changes."""
        kind = type(struct)
        changed_fields = _CHANGED_FIELDS.get(kind)
        if changed_fields is None:
            changed_fields = _changed_fields(kind)
        # Most events are deltas, which are sent as they are.
        if not changed_fields:
            return struct
        changes: dict[str, Any] = {}
        for name, decision in changed_fields:
            value = getattr(struct, name)
            if decision.is_inner:
                public = self._inner(value)
            elif decision.replace is not None and value:
                public = decision.replace(value)
                if public != value:
                    self._report.dropped(f"/{_name(kind)}/{name}", decision.reason)
            else:
                continue
            if public is not value:
                changes[name] = public
        changes.update(self._by_value(struct))
        if not changes:
            return struct
        return msgspec.structs.replace(struct, **changes)

    def _inner(self, value: Any) -> Any:
        if isinstance(value, Struct):
            return self.of(value)
        if isinstance(value, tuple):
            return tuple([self._inner(element) for element in value])
        return value

    def _by_value(self, struct: Struct) -> dict[str, Any]:
        """The changes that depend on another field."""
        if isinstance(struct, ErrorInfo):
            return {"message": self._error_text(struct)}
        if isinstance(struct, Message) and struct.role != "assistant" and struct.content:
            self._report.dropped("/message/content", "a compaction returned an earlier turn")
            return {"content": ()}
        return {}


_CHANGED_FIELDS: Final[dict[type[Struct], list[tuple[str, Decision]]]] = {}
"""The fields of a class that are not kept as they are; filled at the first use."""


def _changed_fields(kind: type[Struct]) -> list[tuple[str, Decision]]:
    own: list[tuple[str, Decision]] = []
    for name, decision in decisions(kind).items():
        if decision.is_inner or decision.replace is not None:
            own.append((name, decision))
    _CHANGED_FIELDS[kind] = own
    return own


def _name(kind: type[Struct]) -> str:
    return snake_case(kind.__name__)
