"""Random frames and bytes of a server: one end each, nothing is raised, nothing is repeated."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Final

import anyio
import msgspec

from streamlib import Completed, Failed
from tests.support.websocket_scripts import (
    EXPECT,
    Close,
    Drop,
    Raw,
    connected,
    response_frames,
    scripted_socket,
)

GOOD: Final = [msgspec.json.encode(frame) for frame in response_frames("r1", "Hello", " there")]
OPCODES: Final = (1, 1, 1, 2, 0, 9, 10, 8, 3)
"""Mostly text; also binary, continuation, ping, pong, close and one that is reserved."""


def _frame(payload: bytes, opcode: int = 1, *, final: bool = True) -> bytes:
    first = opcode | 0x80 if final else opcode
    if len(payload) < 126:
        return bytes([first, len(payload)]) + payload
    return bytes([first, 126]) + len(payload).to_bytes(2, "big") + payload


def _script(drawn: random.Random) -> list[Any]:
    script: list[Any] = [EXPECT]
    for _ in range(drawn.randint(1, 6)):
        kind = drawn.random()
        if kind < 0.3:
            script.append(Raw(drawn.randbytes(drawn.randint(1, 30))))
        elif kind < 0.6:
            changed = bytearray(drawn.choice(GOOD))
            for _ in range(drawn.randint(0, 3)):
                changed[drawn.randrange(len(changed))] = drawn.randrange(256)
            opcode = drawn.choice(OPCODES)
            script.append(Raw(_frame(bytes(changed), opcode, final=drawn.random() < 0.7)))
        else:
            script.append(Raw(_frame(drawn.choice(GOOD))))
    if drawn.random() < 0.5:
        script.append(Close(drawn.choice([1000, 1001, 1011])))
    return [*script, Drop()]


async def garbage(count: int, seed: int = 7) -> dict[str, int]:
    """How so many responses ended.

    Raises:
        AssertionError: a response had not exactly one end, or its request was repeated.
    """
    drawn = random.Random(seed)
    ends: Counter[str] = Counter()
    for _ in range(count):
        async with (
            scripted_socket(_script(drawn)) as server,
            connected(server.url) as connection,
            connection.stream("x", errors="event") as stream,
        ):
            with anyio.fail_after(5):
                events = [event async for event in stream]
        terminal = [event for event in events if isinstance(event, Completed | Failed)]
        assert len(terminal) == 1
        assert events[-1] is terminal[0]
        assert len(server.messages) == 1
        last = terminal[0]
        ends[last.error.kind if isinstance(last, Failed) else "completed"] += 1
    return dict(ends)
