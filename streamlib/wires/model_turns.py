"""What a model said, as requests send it back: the wire's own parser of responses reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import msgspec
from msgspec import Raw

from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import FunctionCall, JsonObject, ResponseItem, WireApi
from streamlib_parsers.protocol import parse_body


class ModelTurns:
    """Reads the turns of the model in one request."""

    def __init__(self, wire_api: WireApi) -> None:
        self._wire_api: WireApi = wire_api
        self._calls = count()
        """Numbers of calls without an id: a parser's own begin anew with each turn."""
        self._messages = count(1)
        """Numbers of messages that follow another one of the model."""

    def read(self, body: bytes) -> tuple[ResponseItem, ...]:
        """The items of a turn that was written as a body of a response.

        Raises:
            ValueError: it is none.
        """
        return items_of(self.events(body))

    def events(self, body: bytes) -> list[ResponseEvent]:
        """The events of such a body."""
        return parse_body(self._wire_api, body, call_id=self.new_call_id)

    def new_call_id(self, _number: int = 0) -> str:
        """The id of a call that came without one."""
        return f"call_{next(self._calls)}"

    def apart(self, items: Iterable[ResponseItem]) -> list[ResponseItem]:
        """The items with an id that shows a builder that another message begins with them."""
        response_id = f"message_{next(self._messages)}"
        return [msgspec.structs.replace(item, response_id=response_id) for item in items]


class MessageReader:
    """What the readers of messages with roles keep while they read a request."""

    def __init__(self, wire_api: WireApi) -> None:
        self.items: list[ResponseItem] = []
        """The history so far; each message appends to it."""
        self.instructions: str | None = None
        """The text of the first message if its role is `system`."""
        self._pending: list[FunctionCall] = []
        """Calls of the last assistant message that have no result yet."""
        self._last_role = ""
        """Role of the message before the one that is read."""
        self._turns = ModelTurns(wire_api)


def items_of(events: Sequence[ResponseEvent]) -> tuple[ResponseItem, ...]:
    """The items of a response.

    Raises:
        ValueError: it failed.
    """
    response = accumulate(events)
    if response.error is not None:
        raise ValueError(response.error.message)
    return response.items


def body_fields(body: bytes, history: str, default: Raw | None = None) -> tuple[JsonObject, Raw]:
    """The fields of a request, and its history, whose calls keep the bytes that the client sent.

    Args:
        body: the body of the request.
        history: the key of the history.
        default: the history of a body without that key; None: there is no such body.

    Raises:
        KeyError: the body has no history.
    """
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    if default is not None:
        raw.setdefault(history, default)
    messages = raw.pop(history)
    return {key: msgspec.json.decode(value) for key, value in raw.items()}, messages
