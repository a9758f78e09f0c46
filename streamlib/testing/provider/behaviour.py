"""Settings of the loopback provider, the requests that it received, and what it sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib.request.prompt import Prompt
from streamlib.testing.provider.turns import Turn, TurnLike, as_turns
from streamlib.wires.decoders import parse_request
from streamlib.wires.encoders import error_body
from streamlib.wires.faults import Fault, check_fault
from streamlib.wires.frame_offsets import frame_offsets
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi


class Behaviour(Struct, frozen=True):
    """How the server responds.

    Attributes:
        recordings: bodies to send unchanged, one for each request, repeated from the first; if
            there are none, the response is made from the request.
        chunk: bytes in an HTTP chunk; None: one event, in recordings too.
        pace: seconds between chunks.
        fault: the fault of each response; None: no fault.
        at: chunks of the body before the fault; a shorter body has the fault in its middle.
        status: HTTP status to send; from 400 on the body is an error of the wire, whose kind
            belongs to the status.
        headers: response headers to send beside the usual ones.
        failing: number of requests, counted from the first, that get the fault or the error; later
            ones succeed and start with the first recording or turn. None: all. Requests to paths
            of no wire do not count.
        strict: refuse what the real service refuses, with its error, and sign what is sent:
            `streamlib.testing.provider.strict`. Recordings are sent unchanged.
        turns: the output of the model, one turn for each request, repeated from the first: texts,
            lists of items, errors, `Turn`s. If there are none, a response echoes its request.
        repeat_turns: False: a request after the last turn is `invalid_request`.
    """

    recordings: Sequence[bytes] = ()
    chunk: int | None = None
    pace: float = 0.0
    fault: Fault | None = None
    at: int = 3
    status: int = 200
    headers: Mapping[str, str] = {}
    failing: int | None = None
    strict: bool = False
    turns: Sequence[TurnLike] = ()
    repeat_turns: bool = True

    def __post_init__(self) -> None:
        check_fault(self.fault, self.at, self.failing)
        if self.chunk is not None and self.chunk < 1:
            raise ValueError(f"chunk is the bytes in a chunk, 1 or more: not {self.chunk}")
        if not self.pace >= 0:  # nor NaN
            raise ValueError(f"pace is the seconds between chunks, 0 or more: not {self.pace}")
        force_setattr(self, "recordings", tuple(self.recordings))
        force_setattr(self, "turns", as_turns(self.turns))

    @property
    def script(self) -> tuple[Turn, ...]:
        """The turns, each as a `Turn`."""
        return tuple(self.turns)  # type: ignore[arg-type]  # converted by `__post_init__`


class ReceivedRequest(Struct, frozen=True):
    """A request that the provider received.

    Attributes:
        wire_api: the wire of its path.
        method: HTTP method.
        path: path and query.
        headers: names in lower case. Where the client has a key, it is here too.
        body: as received.
    """

    wire_api: WireApi
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body."""
        return msgspec.json.decode(self.body)

    @property
    def prompt(self) -> Prompt:
        """The body, parsed as a prompt.

        Raises:
            StreamError: the body is not a request of the wire.
        """
        return parse_request(self.wire_api, self.body, headers=self.headers, path=self.path)

    def __repr__(self) -> str:
        # Without headers, which may hold a key, and without the body, which is long.
        return f"<ReceivedRequest {self.method} {self.path}, {len(self.body)} bytes>"


RequestHook: TypeAlias = Callable[[ReceivedRequest], object]
"""Called with each request that is received."""

# --- what is sent ---


JSON: Final = "application/json"


class ServedResponse(NamedTuple):
    """One response: status, headers and body, and how it is sent."""

    status: int
    media_type: str
    chunks: Sequence[bytes]
    behaviour: Behaviour


def error_response(
    wire_api: WireApi, error: ErrorInfo, status: int, behaviour: Behaviour
) -> ServedResponse:
    """An HTTP error with a body of the wire."""
    body = msgspec.json.encode(error_body(wire_api, error))
    if error.retry_after is not None:
        headers = {"retry-after": f"{error.retry_after:g}", **behaviour.headers}
        behaviour = msgspec.structs.replace(behaviour, headers=headers)
    return ServedResponse(status, JSON, [body], behaviour)


def split_body(wire_api: WireApi, body: bytes, size: int | None) -> Sequence[bytes]:
    """The body in chunks of `size` bytes; None: one event a chunk."""
    offsets: Iterable[tuple[int, int]]
    if size is None:
        offsets = frame_offsets(wire_api, body)
    else:
        offsets = zip(range(0, len(body), size), range(size, len(body) + size, size), strict=True)
    return [body[start:end] for start, end in offsets]
