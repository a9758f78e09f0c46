"""Hooks: functions of the caller that see each attempt's request and response, and each event.

    Client(on_request=add_trace_header, on_response=log_status, on_event=count_tokens)

Each is an ordinary function or a coroutine function, and runs in the task that reads the stream: it
sees the context variables of that task. One that raises ends the stream with its exception.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from streamlib.request.build import Request
from streamlib.request.headers import checked_headers, is_key_header, is_transport_header
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.stream_error import invalid_request

Seen = TypeVar("Seen")


class AttemptRequest(Request, frozen=True, kw_only=True):
    """The request of one attempt, as `on_request` sees it: without its key.

    `headers` holds what is sent, names in lower case, except authentication. A hook may change it
    in place. The key is added afterwards; a header that would be a key is refused.

    Attributes:
        attempt: 1 for the first attempt, 2 for its first retry.
    """

    attempt: int = 1


class AttemptResponse(Struct, frozen=True, kw_only=True):
    """The start of one attempt's response, as `on_response` sees it; failures have one too.

    Attributes:
        request: what `on_request` received, the same object.
        status: HTTP status.
        headers: response headers, names in lower case, keys masked.
    """

    request: AttemptRequest
    status: int
    headers: Mapping[str, str]


OnRequest: TypeAlias = Callable[[AttemptRequest], Awaitable[None] | None]
OnResponse: TypeAlias = Callable[[AttemptResponse], Awaitable[None] | None]
OnEvent: TypeAlias = Callable[[ResponseEvent], Awaitable[None] | None]


class AttemptHooks(Struct, frozen=True):
    """The hooks of a client that run once for each attempt."""

    on_request: OnRequest | None = None
    on_response: OnResponse | None = None


async def call_hook(hook: Callable[[Seen], Awaitable[None] | None], seen: Seen) -> None:
    """Calls a hook and awaits what it returns.

    Raises:
        Exception: whatever the hook raises.
    """
    try:
        result = hook(seen)
        if inspect.isawaitable(result):
            await result
    except (StopIteration, StopAsyncIteration) as error:
        # Either would end the reader's loop as if the response were complete.
        raise RuntimeError(f"a hook raised {type(error).__name__}") from error


def attempt_request(request: Request, headers: Mapping[str, str], attempt: int) -> AttemptRequest:
    """What a hook sees of a request.

    Args:
        request: the request of the stream.
        headers: all headers but authentication.
        attempt: number of the attempt, from 1.
    """
    fields = msgspec.structs.asdict(request)
    fields["headers"] = {
        name: value for name, value in headers.items() if not is_key_header(name, value)
    }
    return AttemptRequest(**fields, attempt=attempt)


def changed_headers(before: Mapping[str, str], seen: Mapping[str, str]) -> dict[str, str]:
    """The headers to send after a hook ran.

    Args:
        before: all headers but authentication; a provider of the user's own may have put a key
            among them, which no hook sees and which stays.
        seen: the headers that the hook saw, as it left them.

    Raises:
        StreamError: `invalid_request`, code `headers`; the hook set a key, or a header that
            belongs to the connection or the body, or one that HTTP cannot carry.
    """
    changed: dict[str, str] = {}
    for name, value in seen.items():
        if name not in before or before[name] != value:
            changed[name] = value
    try:
        headers = checked_headers(changed)
    except TypeError as error:
        # A TypeError of the transport would count as a lost connection, and be tried again.
        raise invalid_request(f"headers: {error}", "headers") from None
    for name, value in before.items():
        if name in headers:
            continue
        if name not in seen and is_transport_header(name):
            raise invalid_request(f"headers: {name} is set by the library", "headers")
        if name in seen or is_key_header(name, value):
            headers[name] = value
    return headers
