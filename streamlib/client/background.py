"""Responses that the provider stores: requests for one by its id.

A response is stored where the request says so, or because it runs in the background.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from streamlib.client.cursor import Cursor, resume_spec
from streamlib.client.origins import origin_of
from streamlib.providers import Provider
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.build import Request
from streamlib.request.endpoints import resolve_target, url_below
from streamlib.request.target import Target
from streamlib_parsers.accumulate import Response, accumulate
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed
from streamlib_parsers.protocol import parse_body
from streamlib_parsers.resumable import Position
from streamlib_parsers.stream_error import StreamError, invalid_request


def is_background(request: Request) -> bool:
    """Whether a request asks for a response that runs in the background."""
    spec = WIRE_SPECS[request.wire_api].resume
    # Looked for as bytes first: bodies are long, and few have it.
    if spec is None or f'"{spec.field}"'.encode() not in request.body:
        return False
    try:
        body: Any = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return isinstance(body, dict) and body.get(spec.field) is True


def stored_url(url: str, response_id: str, action: str = "", **query: str) -> str:
    """The URL of a stored response.

    Args:
        url: where responses of this kind are requested.
        response_id: the provider's id.
        action: what to do with it: "cancel"; "": nothing.
        query: parameters to add.
    """
    # Percent-encoded: an id stays one segment of the path.
    end = f"/{quote(response_id, safe='')}"
    if action:
        end = f"{end}/{action}"
    url = url_below(url, end)
    if query:
        mark = "&" if "?" in url else "?"
        url = f"{url}{mark}{urlencode(query)}"
    return url


def stored_request(creating: Request, response_id: str, method: str, url: str) -> Request:
    """A request for a stored response.

    Args:
        creating: the request for a response at the same place.
        response_id: the provider's id.
        method: HTTP method.
        url: URL of the stored response.

    Raises:
        StreamError: `invalid_request`; there is no id, or it would name another path.
    """
    if response_id in ("", ".", ".."):
        raise invalid_request("a response that is not stored has no id", "response_id")
    headers = {
        name: value
        for name, value in creating.headers.items()
        if name.lower() not in ("content-type", "content-length")
    }
    return msgspec.structs.replace(
        creating, method=method, url=url, headers=headers, body=b"", report=[]
    )


def stream_request(creating: Request, response_id: str, position: Position | None) -> Request:
    """The request for the stream of a background response.

    Args:
        creating: the request for a response at the same place.
        response_id: the provider's id.
        position: the stream begins after it; None: from its start.
    """
    query = {"stream": "true"}
    spec = WIRE_SPECS[creating.wire_api].resume
    if spec is not None and position is not None:
        query[spec.after] = str(position)
    url = stored_url(creating.url, response_id, **query)
    return stored_request(creating, response_id, "GET", url)


def cancel_request(creating: Request, response_id: str) -> Request:
    """The request that cancels a background response."""
    url = stored_url(creating.url, response_id, "cancel")
    return stored_request(creating, response_id, "POST", url)


def target_of(
    cursor: Cursor, service: Provider, base_url: str | None, used_endpoints: Collection[str]
) -> Target:
    """The target that stores the response of a cursor.

    A cursor never leads to an endpoint that the client does not use itself.

    Args:
        cursor: the cursor, which may come from anywhere.
        service: the provider that it names, or the caller's choice.
        base_url: the base URL of the call, else the client's, else None.
        used_endpoints: base URLs of background responses that the client itself requested.

    Raises:
        StreamError: `invalid_request`, code `cursor`: the cursor is of another origin, or of a wire
            that cannot be resumed.
    """
    resume_spec(cursor)
    made_at = cursor.origin
    if base_url is None and made_at.endpoint in used_endpoints:
        base_url = made_at.endpoint
    model = made_at.model or "unknown"
    target = resolve_target(service, model, made_at.wire_api, base_url, None, made_at.account)
    here = target.origin
    if here.provider != made_at.provider or _endpoint(here.endpoint) != _endpoint(made_at.endpoint):
        raise invalid_request(
            f"the cursor is of {made_at.provider!s:.80} at {made_at.endpoint!s:.200}, and the "
            f"request would go to {here.provider} at {here.endpoint}: no key is sent to the origin "
            "of a cursor that is not the client's; give provider= and base_url= if it is yours",
            "cursor",
        )
    return target


def _endpoint(url: str | None) -> str:
    """A base URL in a form that can be compared."""
    try:
        origin = origin_of(url or "")
    except StreamError:
        return ""
    path = urlsplit(url or "").path.rstrip("/")
    return f"{origin}{path}"


def creating_request(target: Target, built: Request | None = None) -> Request:
    """The request that a stored response answers, as far as it is known.

    Args:
        target: where it was sent.
        built: the request itself, for the names of its tools.
    """
    headers = dict(target.provider.headers)
    account_header = target.provider.account_header
    if account_header and target.account:
        headers[account_header] = target.account
    request = Request(
        "POST", target.url, headers, b"", [], target.wire_api, target.model, target.origin
    )
    if built is None:
        return request
    return msgspec.structs.replace(
        request, body=built.body, names=built.names, namespaces=built.namespaces
    )


def response_in(body: bytes, request: Request) -> Response:
    """The response in a body, which may be of one that still runs, or that was cancelled."""
    events = parse_body(request.wire_api, body, origin=request.origin, names=request.names)
    last = events[-1]
    if isinstance(last, Failed):
        detail = last.error.detail
        # As the end of a stream it would be truncated; here its status was asked for.
        if last.error.kind == "truncated" and detail == {"status": "cancelled"}:
            error = ErrorInfo("cancelled", "the response was cancelled", code="cancelled")
            events[-1] = Failed(error, seq=last.seq)
    return accumulate(events)
