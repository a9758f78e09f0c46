"""What the loopback provider keeps in memory, so that a request may name a response by its id."""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.errors import StreamError
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.prompt import Prompt
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import ResponseItem, WireApi

LONGEST_MEMORY: Final = 1_000
"""Responses that are kept; the oldest is forgotten first."""


class StoredResponses:
    """The newest responses: wires with `WireSpec.stored_history` continue them by their id."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[ResponseItem, ...]] = {}
        """Id of a response -> the conversation up to its end: its input, then its output."""

    def continued(self, wire_api: WireApi, prompt: Prompt) -> Prompt:
        """The prompt with the conversation that it continues.

        Raises:
            StreamError: `not_found`, of a response that is not kept.
        """
        extra = prompt.extra or {}
        for name in WIRE_SPECS[wire_api].stored_history[:1]:
            response_id = extra.get(name)
            if not response_id:
                continue
            before = self._items.get(str(response_id))
            if before is None:
                raise StreamError(_not_found(name, str(response_id)))
            return msgspec.structs.replace(prompt, input=(*before, *prompt.items))
        return prompt

    def keep(self, wire_api: WireApi, prompt: Prompt, response: Response) -> None:
        """Keeps a response, unless its request forbids that or it failed.

        Args:
            wire_api: the wire of the request.
            prompt: what `continued` returned for the request.
            response: with the id that the client gets.
        """
        is_wanted = (prompt.extra or {}).get("store") is not False
        if not is_wanted or not WIRE_SPECS[wire_api].stored_history:
            return
        if response.response_id is None or response.error is not None:
            return
        self._items.pop(response.response_id, None)
        self._items[response.response_id] = (*prompt.items, *response.items)
        if len(self._items) > LONGEST_MEMORY:
            del self._items[next(iter(self._items))]


def _not_found(name: str, response_id: str) -> ErrorInfo:
    """The error of an id that names no kept response (``previous_response_not_found``)."""
    message = f"Previous response with id {response_id[:80]!r} not found."
    code = f"{name.removesuffix('_id')}_not_found"
    detail = {"type": "invalid_request", "code": code, "message": message, "param": name}
    return ErrorInfo("not_found", message, code=code, detail=detail)
