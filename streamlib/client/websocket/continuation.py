"""What need not be sent again: a request whose history continues the last response of its lane.

The connection keeps the last response of each lane in memory. A request with equal settings, whose
input is the input before, then the items of that response, then new ones, is sent as
`previous_response_id` and the new items alone.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.build import Request, build_for
from streamlib.request.prompt import Prompt
from streamlib.request.target import Target
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.stream_error import StreamError
from streamlib_parsers.wires.responses.lanes import input_objects, request_fields

_PREVIOUS, *_ = WIRE_SPECS["responses"].stored_history
"""`previous_response_id`."""


class LaneRequest(Struct, frozen=True):
    """A request as it was asked for, before what is known is left out.

    Attributes:
        prompt: its input is the history of the conversation.
        target: where it goes.
        request: all of it, as it would be sent over HTTP.
        items: the input as items.
    """

    prompt: Prompt
    target: Target
    request: Request
    items: tuple[ResponseItem, ...]


class Continuation(NamedTuple):
    """What to send in place of the whole input."""

    response_id: str
    new_input: bytes


def continuation(sent: LaneRequest, response: Response, wanted: LaneRequest) -> Continuation | None:
    """How a request continues a response; None if it has to be sent as it is.

    Args:
        sent: the request of the response.
        response: the last response of the lane.
        wanted: the next request.
    """
    if response.status != "completed" or response.response_id is None:
        return None
    extra = wanted.prompt.extra or {}
    if any(extra.get(name) for name in WIRE_SPECS["responses"].stored_history):
        return None  # the caller says what it continues
    known = (*sent.items, *response.items)
    new_items = wanted.items[len(known) :]
    if not new_items or wanted.items[: len(known)] != known:
        return None
    fields = request_fields(wanted.request.body)
    if _settings(fields) != _settings(request_fields(sent.request.body)):
        return None
    continued = msgspec.structs.replace(
        wanted.prompt, input=new_items, extra={**extra, _PREVIOUS: response.response_id}
    )
    try:
        request = build_for(continued, wanted.target)
    except StreamError:
        return None
    # Built without its history an item may lack what it needs: then all of it is sent.
    objects = input_objects(request_fields(request.body))
    if not objects or input_objects(fields)[-len(objects) :] != objects:
        return None
    return Continuation(response.response_id, b"[" + b",".join(objects) + b"]")


def _settings(fields: dict[str, Raw]) -> dict[str, bytes]:
    """The fields of a request beside its input."""
    return {name: bytes(value) for name, value in fields.items() if name != "input"}
