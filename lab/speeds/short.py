"""What a short response costs above a transport that costs nothing: `python -m lab.speeds.short`.

Microseconds, each the least of all rounds, which are too short for other processes to be in each:

    build    `Client.stream`: the prompt, its request, what will read the response
    open     key, deadlines, response headers, the parser's start
    read     all events and the end, of which the parser alone takes `parser`
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from typing import Final

import anyio

from streamlib import Client, HttpResponse, parser
from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import SampleText, seeded_deltas
from streamlib.transport.deadlines import Deadlines

CHUNKS: Final = bodies.body("messages", (SampleText(seeded_deltas("short", 12)),))
"""A response of Messages, an event a chunk."""

TIMES: Final = 20
"""Responses of one round."""

ROUNDS: Final = 300


class FreeResponse:
    """A response whose chunks are there already. Like a socket's, its reads have a timeout."""

    status = 200

    def __init__(self) -> None:
        self.headers = {"content-type": "text/event-stream; charset=utf-8"}
        self.chunks: AsyncIterator[bytes] = self
        self.read_timeout = self
        self._left = iter(CHUNKS)

    def __aiter__(self) -> FreeResponse:
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._left:
            return chunk
        raise StopAsyncIteration

    def start(self, seconds: float) -> None:
        """Begins a read, which ends at once."""

    async def aclose(self) -> None:
        """Nothing: there is no connection."""


class FreeTransport:
    """Answers each request at once."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        return FreeResponse()

    async def aclose(self) -> None:
        pass


async def respond(client: Client) -> list[float]:
    """Seconds of building, opening and reading one response."""
    began = time.perf_counter()
    stream = client.stream("Say hello.", "anthropic:claude-opus-5")
    built = time.perf_counter()
    async with stream:
        opened = time.perf_counter()
        async for _ in stream:
            pass
    return [built - began, opened - built, time.perf_counter() - opened]


def parse() -> float:
    """Seconds of the parser alone."""
    began = time.perf_counter()
    own_parser = parser("messages")
    for chunk in CHUNKS:
        own_parser.feed(chunk)
    own_parser.close()
    return time.perf_counter() - began


async def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """The parts and their sum, the response, in microseconds."""
    least = [float("inf")] * 4
    async with Client(http=FreeTransport(), api_key="a-key-of-nobody") as client:
        for _ in range(rounds):
            responses = [[*await respond(client), parse()] for _ in range(TIMES)]
            sums = [sum(column) for column in zip(*responses, strict=True)]
            least = [min(pair) for pair in zip(least, sums, strict=True)]
    parts = [round(seconds / TIMES * 1e6, 1) for seconds in least]
    named = dict(zip(("build", "open", "read", "parser"), parts, strict=True))
    return named | {"response": round(sum(parts[:3]), 1)}


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(anyio.run(measure))}\n")
