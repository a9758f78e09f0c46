"""The parser of a response to a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256

from streamlib.client.attempt import AnyParser, Parse
from streamlib.request.build import Request
from streamlib_parsers.items import ToolSpec
from streamlib_parsers.limits import Limits
from streamlib_parsers.protocol import Parser, parser
from streamlib_parsers.resumable import Position, ResumableParser


def response_parser(
    request: Request,
    tools: Sequence[ToolSpec],
    dialects: Sequence[str],
    limits: Limits,
    headers: Mapping[str, str] | None,
    received_at: datetime | None,
) -> Parser:
    """The parser of a response to `request`.

    Ids for calls without one are generated from the request's bytes, so that they are unique within
    a conversation: every further request of it is longer.
    """

    @cache
    def digest() -> str:
        # Computed only if a call has no id.
        return sha256(request.body).hexdigest()[:8]

    return parser(
        request.wire_api,
        tools=tools,
        dialects=dialects,
        headers=headers,
        received_at=received_at,
        origin=request.origin,
        limits=limits,
        call_id=lambda n: f"call_{digest()}_{n}",
        names=request.names,
        namespaces=request.namespaces,
    )


def resumable_parsers(make: Parse, after: Position | None, limits: Limits) -> Parse:
    """Returns a function that makes the parsers of a resumable stream.

    Args:
        make: Makes the parsers within.
        after: Events up to here were delivered before.
        limits: Limits of what is read.
    """

    def make_resumable(
        headers: Mapping[str, str] | None, received_at: datetime | None
    ) -> AnyParser:
        made = make(headers, received_at)
        if isinstance(made, ResumableParser):
            return made
        return ResumableParser(made, after=after, limits=limits)

    return make_resumable
