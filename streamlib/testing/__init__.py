"""For your own tests: clients that replay, follow a script or meet faults, and a local provider.

    async with replay("response.jsonl", wire_api="messages") as client: ...
    async with scripted(["Hello", ErrorInfo("overloaded", "busy")], wire_api="chat") as client: ...
    async with loopback(fault="truncate") as client: ...

They are ordinary clients: `client.stream(prompt, model=MODEL)` is the code that you ship, without a
key or a network. docs/testing.md says more, and describes the pytest fixtures. For code without an
event loop there are `sync_replay` and `sync_loopback`.

`check_stage` checks a stage of `streamlib.pipeline`, your own too; `fuzz` searches for the bytes,
and the cut between them, on which a parser of anybody fails.

`serve` and `running` start the *loopback provider* alone: a real HTTP server on 127.0.0.1 that
speaks every wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlib.lazy import lazy

if TYPE_CHECKING:
    # For type checkers, which do not read the table. `as` makes a name public for them.
    from streamlib.client import ClientOptions as ClientOptions
    from streamlib.testing.clients import MODEL as MODEL
    from streamlib.testing.clients import ScriptedClient as ScriptedClient
    from streamlib.testing.clients import loopback as loopback
    from streamlib.testing.clients import replay as replay
    from streamlib.testing.clients import scripted as scripted
    from streamlib.testing.clients import sync_loopback as sync_loopback
    from streamlib.testing.clients import sync_replay as sync_replay
    from streamlib.testing.fuzzing import FuzzFinding as FuzzFinding
    from streamlib.testing.fuzzing import fuzz as fuzz
    from streamlib.testing.provider.behaviour import Behaviour as Behaviour
    from streamlib.testing.provider.behaviour import ReceivedRequest as ReceivedRequest
    from streamlib.testing.provider.responses import echo_response as echo_response
    from streamlib.testing.provider.server import running as running
    from streamlib.testing.provider.server import serve as serve
    from streamlib.testing.provider.turns import Turn as Turn
    from streamlib.testing.provider.turns import TurnContent as TurnContent
    from streamlib.testing.provider.turns import TurnLike as TurnLike
    from streamlib.testing.stage_checks import check_stage as check_stage
    from streamlib.wires.faults import Fault as Fault


__getattr__, __dir__ = lazy(
    __name__,
    {
        "streamlib.client": ("ClientOptions",),
        "streamlib.testing.clients": (
            "MODEL",
            "ScriptedClient",
            "loopback",
            "replay",
            "scripted",
            "sync_loopback",
            "sync_replay",
        ),
        "streamlib.testing.fuzzing": ("FuzzFinding", "fuzz"),
        "streamlib.testing.provider.behaviour": ("Behaviour", "ReceivedRequest"),
        "streamlib.testing.provider.responses": ("echo_response",),
        "streamlib.testing.provider.server": ("running", "serve"),
        "streamlib.testing.provider.turns": ("Turn", "TurnContent", "TurnLike"),
        "streamlib.testing.stage_checks": ("check_stage",),
        "streamlib.wires.faults": ("Fault",),
    },
)
