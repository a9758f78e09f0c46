"""Encoders: events to the stream or the body of a wire API or a UI protocol, without I/O.

    encode = encoder("messages", model="m")
    for event in events:
        send(encode.feed(event))
    send(encode.close())
    encode.report                   # what this wire could not carry

State that the wire cannot carry is left out and reported, once for each kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Protocol, cast, overload

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.report import Change, Report
from streamlib.wires.event_encoder import EncodedFrame, EventEncoder
from streamlib.wires.missing_deltas import WithMissingDeltas, events_of
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent, RunEvent
from streamlib_parsers.items import JsonObject, ResponseItem, WireApi
from streamlib_parsers.protocol import WIRE_APIS

UI_PROTOCOLS: Final = {
    "vercel": ("streamlib.web.vercel.encode", "VercelEncoder"),
    "agui": ("streamlib.web.agui.encode", "AguiEncoder"),
    "jsonl": ("streamlib.web.jsonl", "JsonLinesEncoder"),
}
"""Name of an encoder for user interfaces -> its module and class; all others are wire APIs."""

SSE_COMMENT: Final = b": keep-alive\n\n"
"""A comment, which every reader of server-sent events ignores."""

UNFINISHED: Final = ErrorInfo("truncated", "the response had not ended")


class Encoder(Protocol):
    """Encodes the events of one response.

    media_type: the content type of the stream.
    report: the changes so far; each encoder collects them in a `Report`.
    """

    media_type: str

    @property
    def report(self) -> list[Change]:
        """What the wire could not carry, so far."""
        ...

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event; empty if it is buffered or cannot be encoded."""
        ...

    def close(self) -> bytes:
        """The end of the stream, on wires that have an end mark."""
        ...

    def ping(self) -> bytes:
        """Bytes that readers ignore, to send between events while the model is silent.

        Empty on wires without such bytes. A ping changes no state: any number may be sent.
        """
        ...


class RunEncoder(Encoder, Protocol):
    """Encodes the events of several responses, and the outputs between them, as one message."""

    def feed(self, event: RunEvent) -> bytes:
        """The bytes of one event, or of the output of a call."""
        ...


class Sealer(Protocol):
    """What encoders need of a `streamlib.web.Seal`, which draws random numbers."""

    def close(self, item: ResponseItem, /) -> str | None:
        """The state of an item as a text for the page; None for a kind that is not sealed."""
        ...


@overload
def encoder(
    wire_api: str,
    *,
    model: str | None = None,
    response_id: str | None = None,
    run: Literal[False] = False,
    **options: Any,
) -> Encoder: ...
@overload
def encoder(
    wire_api: str,
    *,
    model: str | None = None,
    response_id: str | None = None,
    run: Literal[True],
    **options: Any,
) -> RunEncoder: ...
@overload
def encoder(
    wire_api: str,
    *,
    model: str | None = None,
    response_id: str | None = None,
    run: bool,
    **options: Any,
) -> Encoder: ...
def encoder(
    wire_api: str,
    *,
    model: str | None = None,
    response_id: str | None = None,
    run: bool = False,
    **options: Any,
) -> Encoder:
    """An encoder for one response, or for a run of several.

    Args:
        wire_api: a wire API (`messages`, `chat` …) or a UI protocol (`vercel`, `agui`, `jsonl`).
        model: the model's name, used if the events bring none.
        response_id: the id of the response, used if the events bring none; random if not given,
            on wires whose responses need one. Ids of items are made from it.
        run: takes the events of several responses, and the outputs between them, as one message of
            a UI protocol: what `agent` yields. A response that waits for no output ends the
            message, otherwise `close` does.
        options: options of the wire's encoder, such as `created_at` of `chat`, or `message_id` of
            `vercel`.

    Raises:
        ValueError: there is no encoder of this name, or none for runs.
    """
    module = _module(wire_api)
    if not run:
        _, class_name = UI_PROTOCOLS.get(wire_api, ("", "Encoder"))
        encode = getattr(module, class_name)(model=model, response_id=response_id, **options)
        # JSON lines hold the complete item already.
        if wire_api == "jsonl":
            json_lines: Encoder = encode
            return json_lines
        return WithMissingDeltas(encode, _keep_alive(wire_api))
    if wire_api not in UI_PROTOCOLS:
        names = ", ".join(UI_PROTOCOLS)
        raise ValueError(f"{wire_api!r} has one response in a stream; runs: one of {names}")
    run_encoder: RunEncoder = module.run_encoder(model=model, response_id=response_id, **options)
    return run_encoder


def _keep_alive(wire_api: str) -> bytes:
    """What readers of a wire ignore."""
    if wire_api in UI_PROTOCOLS:
        return SSE_COMMENT
    gateway = WIRE_SPECS[wire_api].gateway  # type: ignore[index]
    if gateway is None:
        return b""
    return gateway.keep_alive


def encode_all(wire_api: str, events: Iterable[RunEvent], **options: Any) -> bytes:
    """The complete stream of the events; arguments as in `encoder`.

    Raises:
        TypeError: they are no list of events.
        ValueError: there is no encoder of this name.
    """
    if not isinstance(events, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"encode_all() takes a list of events, not a {type(events).__name__}: "
            "`encode_body` takes a Response"
        )
    # With `run=True` among the options, outputs may be between the events.
    encode = cast("RunEncoder", encoder(wire_api, **options))
    frames = [encode.feed(event) for event in events]
    frames.append(encode.close())
    return b"".join(frames)


def encode_body(
    wire_api: str,
    response: Response,
    *,
    model: str | None = None,
    response_id: str | None = None,
    report: list[Change] | None = None,
    created_at: int | None = None,
    clock: Callable[[], float] | None = None,
    settings: JsonObject | None = None,
    message_id: str | None = None,
) -> bytes:
    """A response as a non-streaming body of the wire.

    It is what the wire's clients accumulate from the stream of the response: body and stream have
    the same content, and report the same changes. But an incomplete call is left out of a body,
    where it would look callable.

    A response that has not ended is encoded as a failure (`truncated`), never as a short response.

    Args:
        wire_api: as in `encoder`.
        response: the response to encode.
        model: the model's name, used if the response has none.
        response_id: the id of the response, used if it has none; random if not given.
        report: receives what the wire could not carry.
        created_at: Unix seconds, for wires whose bodies have a time: an encoder has no clock.
        clock: returns the response's end in unix seconds, for a body that repeats `settings`.
        settings: the request's settings that the body repeats, from `request_settings`.
        message_id: the id of the page's message, for UI protocols; random if not given.

    Raises:
        TypeError: it is no response.
        ValueError: there is no encoder of this name.
    """
    if not isinstance(response, Response):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"encode_body() takes a Response, not a {type(response).__name__}: "
            "`accumulate(events)` makes one of events"
        )
    if response.status == "incomplete" and response.stop_reason is None:
        error = response.error or UNFINISHED
        response = msgspec.structs.replace(response, status="failed", error=error)
    module = _module(wire_api)
    if wire_api in UI_PROTOCOLS:
        ui_body: bytes = module.encode_body(response, model, message_id)
        return ui_body
    has_begun = response.response_id is not None or bool(response.items)
    if response.error is not None and not (module.Encoder.has_failed_bodies and has_begun):
        return msgspec.json.encode(module.error_body(response.error))
    options: dict[str, Any] = {"model": model, "response_id": response_id}
    gateway = WIRE_SPECS[wire_api].gateway  # type: ignore[index]
    if created_at is not None and gateway is not None and gateway.is_dated:
        options["created_at"] = created_at
    if settings is not None:
        options.update(settings=settings, clock=clock)
    changes = Report()
    frames: list[EncodedFrame] = []

    def collect(value: Any, name: str) -> bytes:
        frames.append(EncodedFrame(name, value))
        return b""

    encode: EventEncoder = module.Encoder(write=collect, **options)
    for event in events_of(response, changes):
        encode.feed(event)
    if report is not None:
        report += encode.report + changes.changes
    return msgspec.json.encode(module.body_of(frames))


def error_body(wire_api: str, error: ErrorInfo) -> Any:
    """The wire's error object as a JSON value: the body of an HTTP error."""
    return _module(wire_api).error_body(error)


def request_settings(
    wire_api: WireApi, body: bytes, *, is_stored: bool = False
) -> JsonObject | None:
    """The settings of a request that its response repeats, for `encoder`.

    Args:
        wire_api: the wire of the request.
        body: the body of the request.
        is_stored: whether the server keeps the response, unless the request forbids it.

    Returns:
        The settings; None on a wire whose responses repeat none.
    """
    gateway = WIRE_SPECS[wire_api].gateway
    if gateway is None or not gateway.repeats_settings:
        return None
    settings: JsonObject = _module(wire_api).request_settings(body, is_stored=is_stored)
    return settings


def echoed_metadata(wire_api: WireApi) -> tuple[str, ...]:
    """Metadata of a wire's responses that clients of another wire lose nothing with: it repeats the
    request, or says when the response was made."""
    gateway = WIRE_SPECS[wire_api].gateway
    if gateway is None or not gateway.repeats_settings:
        return ()
    names: tuple[str, ...] = _module(wire_api).ECHOED
    return names


def is_event_of_other_wire(wire_api: str, kind: str) -> bool:
    """Whether an unknown event of this name certainly belongs to a wire other than `wire_api`."""
    for other, spec in WIRE_SPECS.items():
        if other != wire_api and spec.event_prefixes and kind.startswith(spec.event_prefixes):
            return True
    return False


def sse(data: Any, event: str | None = None) -> bytes:
    """One server-sent event.

    Args:
        data: a JSON value, or bytes that are sent as they are. JSON kept in the provider's own
            bytes may contain line breaks: each of its lines becomes a `data` line.
        event: the event's name, if the wire names its events.
    """
    payload = data if isinstance(data, bytes) else msgspec.json.encode(data)
    if b"\n" in payload or b"\r" in payload:
        payload = b"\ndata: ".join(payload.splitlines())
    if event:
        return b"event: %s\ndata: %s\n\n" % (event.encode(), payload)
    return b"data: %s\n\n" % payload


def _module(wire_api: str) -> Any:
    """The module with `Encoder`, `error_body`, and `body_of` or `encode_body` (UI)."""
    name = f"streamlib.wires.{wire_api}.encode"
    if wire_api in UI_PROTOCOLS:
        name, _ = UI_PROTOCOLS[wire_api]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        names = ", ".join((*WIRE_APIS, *UI_PROTOCOLS))
        raise ValueError(f"no encoder for {wire_api!r}; one of {names}") from None


MISTRAL_AGENT: Final = "mistral-client-"
"""Beginning of ``mistral-client-python/3.7.0``."""


def encoder_options(wire_api: WireApi, user_agent: str) -> dict[str, Any]:
    """The options of `encoder` for a client.

    Mistral sends a call in one delta, so its SDK refuses a delta of a call without a name.
    """
    if wire_api == "chat" and user_agent.startswith(MISTRAL_AGENT):
        return {"names_in_deltas": True}
    return {}
