"""Clients for tests: they replay a recording, use a local provider, or follow a script."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Final, Unpack

import msgspec
from anyio.from_thread import start_blocking_portal

from streamlib.client import Client, ClientOptions
from streamlib.client.retry import NO_RETRY
from streamlib.client.sync import SyncClient
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.recording import Recording, Replay, Split, from_body, load_all
from streamlib.request.prompt import Prompt
from streamlib.request.report import Change
from streamlib.testing.provider.behaviour import Behaviour, ReceivedRequest
from streamlib.testing.provider.responses import scripted_response
from streamlib.testing.provider.server import running
from streamlib.testing.provider.turns import Turn, TurnLike, http_error
from streamlib.wires.encoders import encoder
from streamlib.wires.faults import Fault
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import WIRE_APIS

MODEL: Final = "loopback:test"
"""A model name that the clients of this module accept."""


CLIENT_OPTIONS: Final = ClientOptions.__required_keys__ | ClientOptions.__optional_keys__


class ScriptedClient(Client):
    """A client whose model sends the turns of a script: made by `scripted`.

    Attributes:
        requests: requests that the model received, in order; each has `prompt`, `json` and
            `headers`.
        report: changes for parts of a turn that the wire cannot carry; their paths begin with the
            number of the turn (`/turns/0/…`).
    """

    def __init__(
        self, requests: list[ReceivedRequest], report: Sequence[Change] = (), **options: Any
    ) -> None:
        """Connects a client to a provider that records its requests.

        Args:
            report: changes for what the wire cannot carry.
            report: what the wire cannot carry.
            options: arguments of `Client`.
        """
        super().__init__(**options)
        self.requests = requests
        self.report = tuple(report)


def replay(
    recording: Recording | bytes | str | PathLike[str],
    wire_api: WireApi | None = None,
    *,
    speed: float = 0.0,
    split: Split = "recorded",
    seed: int = 0,
    fault: Fault | None = None,
    at: int = 3,
    failing: int | None = None,
    folder: str | PathLike[str] = "",
    **client: Unpack[ClientOptions],
) -> AbstractAsyncContextManager[Client]:
    """A client that replays a recording, without a network.

    Args:
        recording: a recording, its file, or the bytes of a captured body. A file of several
            recordings is replayed in order, one for each request.
        wire_api: None: the recording's own wire, else `messages`.
        speed: factor of the recorded pace; 0 does not wait.
        split: how the body is split: "recorded", "whole", "random", or the bytes of a chunk.
        seed: seed of `split="random"`; each request is split differently.
        fault: kind of fault: "truncate", "disconnect", "malformed", "stall".
        at: events of the body before the fault, however it is split; a shorter body has the fault
            in its middle.
        failing: number of requests, counted from the first, that get the fault; None: all.
        folder: folder that a relative file name starts from.
        **client: options of `Client` but `http`.

    Raises:
        ValueError: the file is not a recording, or an option has a value that it cannot have.
        TypeError: a client has no such option, or `http` is among them.
        OSError: the file cannot be read.
    """
    recordings = _recordings_of(recording, folder)
    _check_wire(wire_api)
    transport = Replay(
        *recordings, speed=speed, split=split, seed=seed, fault=fault, at=at, failing=failing
    )
    _use(transport, client)
    wire_api = wire_api or recordings[0].wire_api or "messages"
    return Client(wire_api=wire_api, **client)  # pyright: ignore[reportArgumentType]


def _recordings_of(
    recording: Recording | bytes | str | PathLike[str], folder: str | PathLike[str] = ""
) -> list[Recording]:
    if isinstance(recording, bytes):
        return [from_body(recording)]
    if isinstance(recording, Recording):
        return [recording]
    return load_all(Path(folder, recording))


def _use(transport: Replay, client: ClientOptions) -> None:
    if "http" in client:
        raise TypeError("a replayed recording is the transport: there is no other one")
    client["http"] = transport


def loopback(
    wire_api: WireApi = "messages",
    *,
    recordings: Sequence[bytes] = (),
    turns: Sequence[TurnLike] = (),
    chunk: int | None = None,
    pace: float = 0.0,
    fault: Fault | None = None,
    at: int = 3,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    failing: int | None = None,
    strict: bool = False,
    client: ClientOptions | None = None,
) -> AbstractAsyncContextManager[Client]:
    """A client whose provider is a real HTTP server on 127.0.0.1.

    Args:
        wire_api: wire of the client and the server.
        recordings: bodies to send unchanged, one for each request, repeated from the first.
        turns: the model's output, one turn for each request, as in `scripted`, but repeated from
            the first; without turns and recordings a response echoes its request.
        chunk: bytes in an HTTP chunk; None: one event.
        pace: seconds between chunks.
        fault: kind of fault: "truncate", "disconnect", "malformed", "stall".
        at: chunks before the fault; a shorter body has the fault in its middle.
        status: HTTP status to send; from 400 on the body is an error of the wire, whose kind
            belongs to the status.
        headers: response headers beside the usual ones.
        failing: number of requests, counted from the first, that get the fault or the error; None:
            all.
        strict: refuse what the real service refuses, and sign what is sent.
        client: options of `Client`.

    Raises:
        ValueError: an option has a value that it cannot have.
        TypeError: an element is not a turn.
    """
    _check_wire(wire_api)
    options = client or {}
    _check_names(options)
    behaviour = Behaviour(
        recordings=recordings,
        turns=turns,
        chunk=chunk,
        pace=pace,
        fault=fault,
        at=at,
        status=status,
        headers=headers or {},
        failing=failing,
        strict=strict,
    )
    return _connected(behaviour, wire_api, options)


def scripted(
    turns: Sequence[TurnLike],
    *,
    wire_api: WireApi = "messages",
    chunk: int | None = None,
    pace: float = 0.0,
    strict: bool = False,
    headers: Mapping[str, str] | None = None,
    **client: Unpack[ClientOptions],
) -> AbstractAsyncContextManager[ScriptedClient]:
    """A client whose model sends the given turns, one for each request, over real HTTP.

        async with scripted([[FunctionCall("", "weather", "{}")], "It is sunny."]) as client:
            ...
        assert "18 degrees" in str(client.requests[1].prompt.items[-1])

    Each request takes one turn, and by default nothing is retried: `retry=` turns retries on, and
    each retry takes a turn of its own. A request after the last turn fails with `invalid_request`.

    Args:
        turns: each a text, an item, a list of both, an `ErrorInfo` (sent as the HTTP error of the
            wire), or a `Turn` with its own pace, fault, stop reason, usage. A call without an id
            gets a generated one.
        wire_api: wire of the client and the server.
        chunk: bytes in an HTTP chunk; None: one event.
        pace: seconds between chunks.
        strict: refuse what the real service refuses, and sign what is sent.
        headers: response headers beside the usual ones.
        **client: options of `Client`.

    Raises:
        ValueError: an item is not one that a model emits, or no service sends the error.
        TypeError: an element is not a turn.
    """
    _check_wire(wire_api)
    _check_names(client)
    behaviour = Behaviour(
        turns=turns,
        repeat_turns=False,
        chunk=chunk,
        pace=pace,
        strict=strict,
        headers=headers or {},
    )
    if not behaviour.script:
        raise ValueError("a script has at least one turn")
    report = _report(behaviour.script, wire_api)
    options: ClientOptions = {"retry": NO_RETRY, **client}
    return _connected(behaviour, wire_api, options, report)


@asynccontextmanager
async def _connected(
    behaviour: Behaviour,
    wire_api: WireApi,
    options: ClientOptions,
    report: Sequence[Change] = (),
) -> AsyncGenerator[ScriptedClient]:
    requests: list[ReceivedRequest] = []
    async with running(behaviour, on_request=requests.append) as url:
        base_url = url + WIRE_SPECS[wire_api].root_path
        async with ScriptedClient(
            requests, report, base_url=base_url, wire_api=wire_api, **options
        ) as client:
            yield client


def _check_wire(wire_api: WireApi | None) -> None:
    if wire_api is not None and wire_api not in WIRE_APIS:
        raise ValueError(f"no wire API {wire_api!r}; one of {', '.join(WIRE_APIS)}")


def _check_names(options: ClientOptions) -> None:
    """Refuses a misspelt option early: the client is made later, when its URL is known."""
    for name in options:
        if name not in CLIENT_OPTIONS:
            raise TypeError(f"a client has no option {name!r}")


ENVELOPE: Final = ("/response_id", "/usage")
"""Fields that the provider adds to a turn. They are not reported if the wire lacks them."""


def _report(turns: Sequence[Turn], wire_api: WireApi) -> list[Change]:
    """The changes for parts of a script that the wire cannot carry.

    Raises:
        ValueError: no service of the wire sends an error of the script.
    """
    changes: list[Change] = []
    for number, turn in enumerate(turns):
        try:
            if isinstance(turn.content, ErrorInfo):
                http_error(wire_api, turn.content)
                continue
            events = scripted_response(turn, Prompt(""), wire_api)
        except ValueError as error:
            raise ValueError(f"turns[{number}]: {error}") from None
        encode = encoder(wire_api, model=MODEL)
        for event in events:
            encode.feed(event)
        encode.close()
        for change in encode.report:
            if change.path not in ENVELOPE:
                path = f"/turns/{number}{change.path}"
                changes.append(msgspec.structs.replace(change, path=path))
    return changes


# --- for code without an event loop ---


def sync_replay(
    recording: Recording | bytes | str | PathLike[str],
    wire_api: WireApi | None = None,
    *,
    speed: float = 0.0,
    split: Split = "recorded",
    **client: Unpack[ClientOptions],
) -> SyncClient:
    """A client that replays a recording, like `replay`, for code without an event loop.

    Args:
        recording: a recording, its file, or the bytes of a captured body.
        wire_api: None: the recording's own wire, else `messages`.
        speed: factor of the recorded pace; 0 does not wait.
        split: how the body is split: "recorded", "whole", "random", or the bytes of a chunk.
        **client: options of `Client` but `http`.

    Raises:
        ValueError: the file is not a recording.
        TypeError: `http` is among the options.
        OSError: the file cannot be read.
    """
    recordings = _recordings_of(recording)
    _use(Replay(*recordings, speed=speed, split=split), client)
    wire_api = wire_api or recordings[0].wire_api or "messages"
    return SyncClient(wire_api=wire_api, **client)


@contextmanager
def sync_loopback(
    wire_api: WireApi = "messages", *, client: ClientOptions | None = None, **behaviour: Any
) -> Generator[SyncClient]:
    """A client of a real HTTP server, like `loopback`; the server runs in its own thread.

    Args:
        wire_api: wire of the client and the server.
        client: options of `Client`.
        behaviour: fields of `Behaviour`: turns, chunk, pace, fault, at, failing, status …
    """
    with (
        start_blocking_portal(name="loopback") as portal,
        portal.wrap_async_context_manager(running(Behaviour(**behaviour))) as url,
    ):
        base_url = url + WIRE_SPECS[wire_api].root_path
        options: ClientOptions = client or {}
        with SyncClient(base_url=base_url, wire_api=wire_api, **options) as configured:
            yield configured
