"""The parser of a response to a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import uuid4

from streamlib.client.attempt import AnyParser, Parse
from streamlib.request.build import Request
from streamlib_parsers.items import ToolSpec
from streamlib_parsers.limits import Limits
from streamlib_parsers.protocol import Parser, parser
from streamlib_parsers.resumable import Position, ResumableParser

ATTEMPT_DIGITS: Final = 16
"""Hexadecimal digits of a generated call id that name the attempt. Chat's ids have at most 40
characters."""


def response_parser(
    request: Request,
    tools: Sequence[ToolSpec],
    dialects: Sequence[str],
    limits: Limits,
    headers: Mapping[str, str] | None,
    received_at: datetime | None,
) -> Parser:
    """The parser of a response to `request`."""
    return parser(
        request.wire_api,
        tools=tools,
        dialects=dialects,
        headers=headers,
        received_at=received_at,
        origin=request.origin,
        limits=limits,
        call_id=_CallIds(),
        names=request.names,
        namespaces=request.namespaces,
    )


class _CallIds:
    """Ids for the calls of one attempt that have none.

    They differ in every attempt: the same request, sent twice, may become two turns of a
    conversation.
    """

    def __init__(self) -> None:
        self._attempt = ""
        """Made only if a call has no id."""

    def __call__(self, number: int) -> str:
        self._attempt = self._attempt or uuid4().hex[:ATTEMPT_DIGITS]
        return f"call_{self._attempt}_{number}"


def resumable_parsers(make: Parse, after: Position | None, limits: Limits) -> Parse:
    """A function that makes the parsers of a resumable stream.

    Args:
        make: makes the parsers within.
        after: events up to here were delivered before.
        limits: limits of what is read.
    """

    def make_resumable(
        headers: Mapping[str, str] | None, received_at: datetime | None
    ) -> AnyParser:
        made = make(headers, received_at)
        if isinstance(made, ResumableParser):
            return made
        return ResumableParser(made, after=after, limits=limits)

    return make_resumable
