"""Scripted turns: the loopback provider's response to one request each.

    turns=["Hello", [Reasoning("…"), FunctionCall("", "weather")], ErrorInfo("overloaded", "busy")]

A turn is a text, an item or a list of both, an error, or a `Turn` with further settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib.wires.encoders import encode_all, error_body
from streamlib.wires.error_statuses import status_of_kind
from streamlib.wires.faults import Fault, check_fault
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import Failed, StopReason
from streamlib_parsers.items import (
    CallOutput,
    Item,
    Message,
    PendingCall,
    ResponseItem,
    WireApi,
    assistant,
)
from streamlib_parsers.protocol import parser
from streamlib_parsers.usage import Usage

TurnContent: TypeAlias = str | ResponseItem | Sequence[str | ResponseItem]
"""Output of a model; a str is the text of an assistant message."""

CALLS: Final[tuple[type, ...]] = get_args(PendingCall)
OUTPUTS: Final[tuple[type, ...]] = get_args(CallOutput)


class Turn(Struct, frozen=True):
    """One scripted response.

    Attributes:
        content: what the model emits: a text, an item, a list of both, or an `ErrorInfo`, which is
            sent as the HTTP error of the wire instead of a response.
        pace: seconds between chunks; None: the provider's value.
        fault: the fault of the response; None: the provider's value.
        at: chunks before the fault; None: the provider's value.
        chunk: bytes in a chunk; None: the provider's value, by default one event.
        stop_reason: None: `tool_calls` if the turn has a call that needs an output from the caller,
            else `stop`.
        usage: token counts; None: each word is a token.
        error: error event that ends the stream after the content.
        headers: HTTP response headers beside the usual ones.
    """

    content: TurnContent | ErrorInfo = ()
    pace: float | None = None
    fault: Fault | None = None
    at: int | None = None
    chunk: int | None = None
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    error: ErrorInfo | None = None
    headers: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        check_fault(self.fault, self.at or 0, None)
        if self.stop_reason is not None and self.stop_reason not in get_args(StopReason):
            known = ", ".join(get_args(StopReason))
            raise ValueError(f"stop_reason is one of {known}, not {self.stop_reason!r}")
        force_setattr(self, "content", _content(self.content))

    @property
    def items(self) -> tuple[ResponseItem, ...]:
        """The items that the model emits; none where the turn is an error."""
        if isinstance(self.content, ErrorInfo):
            return ()
        return tuple(self.content)  # type: ignore[arg-type]  # `__post_init__` made items of it

    @property
    def waits_for_outputs(self) -> bool:
        """Whether one of its calls needs an output from the caller."""
        return any(isinstance(item, CALLS) for item in self.items)


TurnLike: TypeAlias = TurnContent | ErrorInfo | Turn
"""Everything that a test may write as a turn."""


def as_turns(turns: Sequence[TurnLike]) -> tuple[Turn, ...]:
    """The turns of a script, each as a `Turn`.

    Raises:
        TypeError: a value is not a turn.
        ValueError: an item is not one that a model emits.
    """
    if isinstance(turns, (str, Item)):
        raise TypeError(f"turns is a list of turns, not {turns!r:.60}: write [{turns!r:.40}]")
    scripted: list[Turn] = []
    for number, turn in enumerate(turns):
        if isinstance(turn, Turn):
            scripted.append(turn)
            continue
        try:
            scripted.append(Turn(turn))
        except (TypeError, ValueError) as error:
            raise type(error)(f"turns[{number}]: {error}") from None
    return tuple(scripted)


def _content(content: Any) -> ErrorInfo | tuple[ResponseItem, ...]:
    """The content of a turn as an error or a tuple of items."""
    if isinstance(content, ErrorInfo):
        return content
    if isinstance(content, (str, Item)):
        content = (content,)
    if not isinstance(content, Sequence) or isinstance(content, (bytes, bytearray)):
        raise TypeError(_not_a_turn(content))
    items: list[ResponseItem] = []
    for entry in content:
        items.append(_emitted(entry))
    return tuple(items)


def _emitted(entry: Any) -> ResponseItem:
    """One entry of a turn as an item that a model emits."""
    if isinstance(entry, str):
        return assistant(entry)
    if not isinstance(entry, Item):
        raise TypeError(_not_a_turn(entry))
    is_prompt = isinstance(entry, Message) and entry.role != "assistant"
    if is_prompt or isinstance(entry, OUTPUTS):
        raise ValueError(f"a model does not emit {entry!r:.80}")
    item: Any = entry
    return item  # type: ignore[no-any-return]


def _not_a_turn(value: object) -> str:
    return (
        "a turn is a str, an item or a list of them, an ErrorInfo or a Turn, "
        f"not a {type(value).__name__}: {value!r:.60}"
    )


# --- errors ---

SERVICE_WORDS: Final[dict[ErrorKind, str]] = {
    "context_window_exceeded": "prompt is too long",
    "invalid_history": "roles must alternate",
    "content_filter": "blocked by the content filtering policy",
    "quota_exhausted": "insufficient quota",
    "rate_limited": "too many requests",
    "overloaded": "the service is at capacity",
    "authentication": "invalid api key",
    "not_found": "model not found",
    "request_too_large": "payload too large",
    "invalid_request": "unknown parameter",
}
"""Kind -> message of a service whose wire has no code for it: clients read the message."""

FAULTS: Final[dict[ErrorKind, Fault]] = {
    "connection": "disconnect",
    "truncated": "truncate",
    "malformed": "malformed",
    "stalled": "stall",
    "deadline": "stall",
}
"""Kinds that no service sends, because clients report a fault this way -> the fault."""


def http_error(wire_api: WireApi, error: ErrorInfo) -> ErrorInfo:
    """The error as a service of the wire sends it instead of a response, with its HTTP status.

    Raises:
        ValueError: no service of this wire sends an error of this kind.
    """
    status = error.status or status_of_kind(wire_api, error.kind)
    for message in _messages(error):
        served = msgspec.structs.replace(error, message=message, status=status)
        body = msgspec.json.encode(error_body(wire_api, served))
        if classify(status, body).kind == error.kind:
            return served
    raise ValueError(_cannot_send(wire_api, error))


def stream_error(wire_api: WireApi, error: ErrorInfo) -> ErrorInfo:
    """The error as a service of the wire sends it inside a stream.

    Raises:
        ValueError: no service of this wire sends an error of this kind.
    """
    for message in _messages(error):
        served = msgspec.structs.replace(error, message=message)
        parse = parser(wire_api)
        body = encode_all(wire_api, [Failed(served)], model="m")
        response = accumulate([*parse.feed(body), *parse.close()])
        if response.error is not None and response.error.kind == error.kind:
            return served
    raise ValueError(_cannot_send(wire_api, error))


def _messages(error: ErrorInfo) -> list[str]:
    """The message, and the message preceded by the words by which services name the kind."""
    messages = [error.message]
    if error.kind in SERVICE_WORDS:
        messages.append(f"{error.message} ({SERVICE_WORDS[error.kind]})".strip())
    return messages


def _cannot_send(wire_api: WireApi, error: ErrorInfo) -> str:
    message = f"a service of {wire_api} does not send an error of kind {error.kind!r}"
    if error.status is not None:
        message += f" with status {error.status}"
    if error.kind in FAULTS:
        message += f": write Turn(…, fault={FAULTS[error.kind]!r})"
    return message
