"""Readers without state: the floor, the six lines that people write, and httpx-sse."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from benchmarks.contestants import Contestant, Depth, OpenStream, local, peer
from benchmarks.floors import PAYLOADS, aws_payloads, floor, join_floor, sse_payloads
from benchmarks.joined import JOINED

DEPTHS: Final[tuple[Depth, ...]] = ("events", "response")

# --- six lines: the frames as dicts ---

_as_dict: Final = msgspec.json.Decoder().decode


def split_sse(chunks: Iterable[bytes]) -> Iterator[Any]:
    """The six lines that people write instead of a parser."""
    rest = b""
    for chunk in chunks:
        *frames, rest = (rest + chunk).split(b"\n\n")
        for frame in frames:
            if not frame.endswith(b"[DONE]"):
                yield _as_dict(frame[frame.index(b"data: ") + 6 :])


def _splitter(wire: str) -> Callable[[Iterable[bytes]], Iterator[Any]]:
    payloads = PAYLOADS[wire]
    if payloads is sse_payloads:
        return split_sse
    if wire == "invoke":
        return _split_invoke

    def split(chunks: Iterable[bytes]) -> Iterator[Any]:
        for payload in payloads(chunks):
            yield _as_dict(payload)

    return split


def _split_invoke(chunks: Iterable[bytes]) -> Iterator[Any]:
    for payload in aws_payloads(chunks):
        yield _as_dict(b64decode(_as_dict(payload)["bytes"]))


# --- httpx-sse ---


async def _httpx_sse(http: Any) -> OpenStream:
    from httpx_sse import EventSource

    response = await http.send(http.build_request("POST", "http://x"), stream=True)

    async def decoded() -> AsyncIterator[Any]:
        async for event in EventSource(response).aiter_sse():
            if event.data != "[DONE]":
                yield json.loads(event.data)

    return OpenStream(decoded())


def _framings() -> Iterator[Contestant]:
    for wire, payloads in PAYLOADS.items():
        for depth in DEPTHS:
            yield local("floor", "", wire, depth, floor(wire), join_floor)
            yield local("splitter", "", wire, depth, _splitter(wire), JOINED[wire])
            if payloads is sse_payloads:
                join = JOINED[wire]
                yield peer(
                    "httpx-sse + json",
                    "httpx-sse",
                    wire,
                    depth,
                    _httpx_sse,
                    lambda events, _, join=join: join(events),  # type: ignore[misc]
                    lambda: "httpx",
                )


FRAMINGS: Final = tuple(_framings())
"""For each wire: the floor, the six lines, and httpx-sse if its frames are server-sent events."""
