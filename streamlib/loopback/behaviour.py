"""How the loopback provider responds, and what it received."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib.loopback.turns import Turn, TurnLike, as_turns
from streamlib.request.prompt import Prompt
from streamlib.wires.decoders import parse_request
from streamlib.wires.faults import Fault, check_fault
from streamlib_parsers.items import WireApi


class Behaviour(Struct, frozen=True):
    """How the server responds.

    Attributes:
        recordings: bodies to send unchanged, one a request, in order and then from the start;
            without any, the response is made from the request.
        chunk: bytes in an HTTP chunk; None: one event, of recordings too.
        pace: seconds between chunks.
        fault: what goes wrong.
        at: chunks of the body before it goes wrong; a shorter body has the fault in its middle.
        status: sent instead of 200; from 400 on with an error of the wire, whose kind is that of
            the status.
        headers: sent beside the usual ones.
        failing: number of requests, from the first on, that get the fault or the error; later ones
            succeed, with the recordings and turns from the first on. None: all. Requests that no
            wire has do not count.
        strict: refuse what the real service refuses, with its error, and sign what is given out:
            `streamlib.loopback.strict`. Recordings are sent as they are.
        turns: what the model says, one turn a request, in order and then from the start: texts,
            lists of items, errors, `Turn`s. Without any, the response is an echo of the request.
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
        return tuple(self.turns)  # type: ignore[arg-type]  # `__post_init__` made them of it


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
        """The body as the prompt that it stands for.

        Raises:
            StreamError: the body is not a request of the wire.
        """
        return parse_request(self.wire_api, self.body, headers=self.headers, path=self.path)

    def __repr__(self) -> str:
        # Headers may hold a key, and a body is long.
        return f"<ReceivedRequest {self.method} {self.path}, {len(self.body)} bytes>"


RequestHook: TypeAlias = Callable[[ReceivedRequest], object]
"""Called with each request."""
