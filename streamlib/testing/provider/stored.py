"""Responses that the loopback provider stores, so that a request may continue one by its id."""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.prompt import Prompt
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import ResponseItem, WireApi
from streamlib_parsers.stream_error import StreamError

LONGEST_MEMORY: Final = 1_000
"""Limit of stored responses; above it the oldest is deleted."""


class StoredResponses:
    """The newest responses, for wires whose requests may name one (`WireSpec.stored_history`)."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[ResponseItem, ...]] = {}
        """Response id -> the items of its conversation: its input, then its output."""

    def continued(self, wire_api: WireApi, prompt: Prompt) -> Prompt:
        """The prompt, preceded by the conversation that it continues.

        Raises:
            StreamError: `not_found`: no response with this id is stored.
        """
        extra = prompt.extra or {}
        for name in _names_of_responses(wire_api):
            response_id = extra.get(name)
            if not response_id:
                continue
            before = self._items.get(str(response_id))
            if before is None:
                raise StreamError(_not_found(name, str(response_id)))
            return msgspec.structs.replace(prompt, input=(*before, *prompt.items))
        return prompt

    def keep(self, wire_api: WireApi, prompt: Prompt, response: Response) -> None:
        """Stores a response, unless its request forbids that or the response failed.

        Args:
            wire_api: the wire of the request.
            prompt: what `continued` returned for the request.
            response: the complete response, with the id that the client receives.
        """
        is_wanted = (prompt.extra or {}).get("store") is not False
        if not is_wanted or not _names_of_responses(wire_api):
            return
        if response.response_id is None or response.error is not None:
            return
        self._items.pop(response.response_id, None)
        self._items[response.response_id] = (*prompt.items, *response.items)
        if len(self._items) > LONGEST_MEMORY:
            del self._items[next(iter(self._items))]


def _names_of_responses(wire_api: WireApi) -> list[str]:
    """Fields that name a response: others name a container or a cache, which is no response."""
    names = WIRE_SPECS[wire_api].stored_history
    return [name for name in names if name.startswith("previous_")]


def _not_found(name: str, response_id: str) -> ErrorInfo:
    """The error for an id of no stored response (``previous_response_not_found``)."""
    message = f"Previous response with id {response_id[:80]!r} not found."
    code = f"{name.removesuffix('_id')}_not_found"
    detail = {"type": "invalid_request_error", "code": code, "message": message, "param": name}
    return ErrorInfo("not_found", message, code=code, detail=detail)
