"""What a web response is made of: something to read events from, and an encoder of them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, get_args

from streamlib.asgi import UNBUFFERED
from streamlib.client.stream import ResponseStream
from streamlib.pipeline.numbers import check_seconds
from streamlib.request.mistakes import check_callable
from streamlib.web.http_errors import kept_text
from streamlib.web.public_errors import ErrorText
from streamlib.wires.encoders import encoder
from streamlib_parsers.accumulate import Response
from streamlib_parsers.events import RunEvent

UIProtocol: TypeAlias = Literal["vercel", "agui", "jsonl"]

OnDone: TypeAlias = Callable[[Response], Awaitable[object] | object]
"""Receives the response when it has ended, complete or not."""


class EventSource(Protocol):
    """A `ResponseStream`, or a run of several responses such as ``agent(…)``.

    It is entered by the response that sends it, in the task that serves the request, and closed
    there.
    """

    @property
    def response(self) -> Response:
        """The response so far; for a run, the newest one."""
        ...

    async def __aenter__(self) -> AsyncIterable[RunEvent]: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool | None: ...


class AnyEncoder(Protocol):
    """What `streamlib.encoder` returns, or your own encoder of the same form."""

    media_type: str

    def feed(self, event: Any, /) -> bytes:
        """The bytes of one event."""
        ...

    def close(self) -> bytes:
        """The end of the stream."""
        ...


def encoder_for(protocol: UIProtocol | AnyEncoder, source: EventSource) -> AnyEncoder:
    """`protocol` if it is an encoder, else a new encoder of that protocol.

    Raises:
        TypeError: it is neither a name nor an encoder.
        ValueError: there is no such protocol for a browser.
    """
    if not isinstance(protocol, str):
        if not hasattr(protocol, "media_type") or not callable(getattr(protocol, "feed", None)):
            raise TypeError(f"a protocol is a name or an encoder, not {protocol!r:.100}")
        return protocol
    match protocol:
        case "jsonl":
            return encoder("jsonl", public=True, error_text=kept_text)
        case "vercel" | "agui":
            # A call at the end of a single response is for the page to answer, so it may stay open.
            is_run = getattr(source, "is_run", not isinstance(source, ResponseStream))
            return encoder(protocol, run=is_run, public=True, error_text=kept_text)
    names = ", ".join(get_args(UIProtocol))
    raise ValueError(f"no protocol {protocol!r} for a browser; one of {names}, or an encoder")


def check_response(
    source: EventSource, ping: float | None, on_done: OnDone | None, error_text: ErrorText
) -> None:
    """Checks what a response is made of, before a request is served with it.

    Raises:
        TypeError: something is of the wrong kind.
        ValueError: `ping` is not more than 0.
    """
    if not hasattr(source, "__aenter__"):
        kind = type(source).__name__
        raise TypeError(f"a stream is `client.stream(…)`, `agent(…)` or their like, not a {kind}")
    if ping is not None:
        check_seconds("ping", ping)
    check_callable("on_done", on_done, "a function of a `Response`")
    check_callable("error_text", error_text, "a function of an `ErrorInfo`")


def stream_headers(encode: AnyEncoder) -> dict[str, str]:
    """The headers of a stream beside its content type."""
    headers = dict(UNBUFFERED)
    headers.update(getattr(encode, "headers", {}))
    return headers
