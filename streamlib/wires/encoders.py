"""Events -> somebody's stream or whole body: a pure encoder a wire (and UI protocol), so that the same parts make a gateway.

    e = encoder("messages", model="m")
    for event in events: send(e.feed(event))
    send(e.close())
    e.report                        # what this wire could not say

What a wire has no words for is left out and stands in `report`, once for each kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, Final, Protocol

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.report import Change, Report
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.protocol import WIRE_APIS


class Encoder(Protocol):
    """What every encoder has. `media_type` is the content type of its stream."""

    media_type: str
    report: list[Change]

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes that this event becomes; possibly none yet."""
        ...

    def close(self) -> bytes:
        """The end of the stream, where the wire has one."""
        ...


def encoder(
    wire_api: str, *, model: str | None = None, response_id: str | None = None, **options: Any
) -> Encoder:
    """An encoder for a wire (`messages`, `chat` …) or a UI protocol (`vercel`, `agui`, `jsonl`). `options` are that protocol's own.

    model, response_id: used where the events bring none.
    """
    return _module(wire_api).Encoder(model=model, response_id=response_id, **options)  # type: ignore[no-any-return]


def is_foreign_event(wire_api: str, kind: str) -> bool:
    """Whether an event of this kind, unknown where it was read, is surely another wire's than `wire_api`."""
    for other, spec in WIRE_SPECS.items():
        if other != wire_api and spec.event_prefixes and kind.startswith(spec.event_prefixes):
            return True
    return False


UNFINISHED: Final = ErrorInfo("truncated", "the response had not ended")


def encode_body(
    wire_api: str,
    response: Response,
    *,
    model: str | None = None,
    report: list[Change] | None = None,
) -> bytes:
    """A response as one whole, non-streaming body of the wire. One that has not ended is sent as the failure it is.

    report: what the wire could not say is added to it.
    """
    if response.status == "incomplete" and response.stop_reason is None:
        response = msgspec.structs.replace(
            response, status="failed", error=response.error or UNFINISHED
        )
    losses = Report()
    body: bytes = _module(wire_api).encode_body(
        response, model, *(() if wire_api in UI_PROTOCOLS else (losses,))
    )
    if report is not None:
        report += losses.changes
    return body


def error_body(wire_api: str, error: ErrorInfo) -> Any:
    """The wire's own error object for a failure, as a JSON value: the body of an HTTP error."""
    return _module(wire_api).error_body(error)


UI_PROTOCOLS: Final = ("vercel", "agui", "jsonl")
"""The encoders of UI protocols, beside those of the wires."""


def _module(wire_api: str) -> Any:
    try:
        return importlib.import_module(
            f"streamlib.ui.{wire_api}"
            if wire_api in UI_PROTOCOLS
            else f"streamlib.wires.{wire_api}.encode"
        )
    except ModuleNotFoundError:
        raise ValueError(
            f"no encoder for {wire_api!r}; one of {', '.join((*WIRE_APIS, *UI_PROTOCOLS))}"
        ) from None


def sse(data: Any, event: str | None = None) -> bytes:
    """One server-sent event. JSON kept in its own bytes may hold line breaks: each line of it is a `data` line."""
    payload = data if isinstance(data, bytes) else msgspec.json.encode(data)
    if b"\n" in payload or b"\r" in payload:
        payload = b"\ndata: ".join(payload.splitlines())
    return (
        (b"event: %s\ndata: %s\n\n" % (event.encode(), payload))
        if event
        else b"data: %s\n\n" % payload
    )


def encode_all(wire_api: str, events: Iterable[ResponseEvent], **options: Any) -> bytes:
    """A whole stream at once."""
    encode = encoder(wire_api, **options)
    return b"".join([*(encode.feed(event) for event in events), encode.close()])
