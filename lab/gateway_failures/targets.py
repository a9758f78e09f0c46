"""Targets that fail, in the seven ways of the table, and one that responds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import anyio

from streamlib import (
    Completed,
    Created,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
    Text,
)
from streamlib.gateway import RouteRule
from streamlib.wires.encoders import encoder
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from tests.support.gateways import ProviderResponse, Upstream, error_response, stream_response

TEXT: Final = "Good morning."
ENDLESS: Final = 1e6
"""Seconds of a silence that no client waits for."""


def _events() -> list[ResponseEvent]:
    return [
        Created("msg_1", "m"),
        OutputItemAdded(0, Message("assistant", (), status="incomplete")),
        OutputTextDelta(0, 0, "Good "),
        OutputTextDelta(0, 0, "morning."),
        OutputItemDone(0, Message("assistant", (Text(TEXT),))),
        Completed("msg_1", "m", "stop", "end_turn"),
    ]


def _chunks() -> list[bytes]:
    encode = encoder("messages", model="m", response_id="msg_1")
    return [*(encode.feed(event) for event in _events()), encode.close()]


class Failure(NamedTuple):
    """A way to fail.

    name: in the table.
    response: of the target; None: it refuses the connection.
    seconds: before its response headers.
    """

    name: str
    response: ProviderResponse | None
    seconds: float = 0


def _http(status: int, kind: ErrorKind, **headers: str) -> ProviderResponse:
    return error_response("messages", status, ErrorInfo(kind, "as the provider says"), **headers)


BEGINNING: Final = _chunks()[:1]
"""The start of a response, before any output."""

HALF: Final = _chunks()[:3]
"""The first half of the text, too."""

FAILURES: Final = (
    Failure("429, `retry-after: 37`", _http(429, "rate_limited", retry_after="37")),
    Failure("529", _http(529, "overloaded")),
    Failure("500", _http(500, "server_error")),
    Failure("connection refused", None),
    Failure("silent before its headers", stream_response("messages"), ENDLESS),
    Failure("silent after its headers", stream_response("messages", *BEGINNING, ENDLESS)),
    Failure("dies in mid-stream", stream_response("messages", *HALF)),
)

ONE: Final = RouteRule("*", "custom:one", wire_api="messages", base_url="http://target")
TWO: Final = RouteRule(
    "*", ("custom:one", "custom:two"), wire_api="messages", base_url="http://target"
)


class Failing(Upstream):
    """A provider of which the model `one` fails; any other responds."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(stream_response("messages", *_chunks()))
        self._failure = failure

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Any
    ) -> Any:
        """Responds to one request, as a transport does."""
        if b'"model":"one"' not in body:
            return await super().send(method, url, headers, body, deadlines)
        await anyio.sleep(self._failure.seconds)
        response = self._failure.response
        if response is None:
            raise ConnectionRefusedError("connection refused")
        return await Upstream(response).send(method, url, headers, body, deadlines)
