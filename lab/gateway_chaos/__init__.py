"""What clients receive of a gateway while everything around it fails.

A third of the requests to the model fail, each in another way. A client gets the whole response, or
it learns that it did not: by an HTTP status, by an error of its wire, or by a connection that
breaks off. What must never happen is a stream that ends as if it were complete, and is not.

    python -m lab.gateway_chaos        # kills a worker and the Redis server too; prints counts
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import anyio
import httpx
import msgspec

from streamlib import Prompt
from streamlib_parsers.items import WireApi
from tests.support.gateways import client_request, parse_stream
from tests.support.response_bodies import HELLO, LAST, OVERLOADED, finish, stop, text
from tests.support.scripted_server import END, FIN, RST, Script, Step, Wait, chunk, head

WIRES: Final[tuple[WireApi, ...]] = ("messages", "chat", "responses", "gemini")
WORDS: Final = 12
"""Of a response; the last one tells that it is whole."""
WHOLE: Final = "Hello there" + "".join(f" {number}" for number in range(WORDS)) + " the end"
ERROR_FRAMES: Final = (b"event: error", b'"error":{', b"response.failed")
"""What a wire's error in a stream looks like."""

COMPLETE: Final = "complete"
HTTP_ERROR: Final = "HTTP error"
WIRE_ERROR: Final = "error in the stream"
BROKEN: Final = "broken connection"
SILENT: Final = "SILENTLY CUT"


def words(count: int, pause: float) -> list[Step]:
    """The first words of a response, some milliseconds apart."""
    steps: list[Step] = [head(), chunk(HELLO)]
    for number in range(count):
        steps += [Wait(pause), chunk(text(f" {number}"))]
    return steps


def model(seed: int, pause: float) -> Callable[[bytes], Script]:
    """A model of which a third of the requests fail, in seven ways."""
    rng = random.Random(seed)
    whole = [*words(WORDS, pause), chunk(text(" the end") + stop() + finish() + LAST), END]
    refused = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    status = f"HTTP/1.1 529 Overloaded\r\ncontent-length: {len(refused)}\r\n"
    http_error = f"{status}content-type: application/json\r\n\r\n".encode() + refused

    def choose(request: bytes) -> Script:
        if rng.random() > 1 / 3:
            return whole
        part = words(rng.randrange(WORDS), pause)
        failures: list[Script] = [
            [http_error],
            [RST],
            [*part, RST],
            [*part, FIN],
            # A proxy before the model has lost its connection, and ends the response politely.
            [*part, END],
            [*part, chunk(OVERLOADED), END],
            [*part, chunk(b"data: {broken\n\n"), END],
        ]
        return rng.choice(failures)

    return choose


async def outcome(client: httpx.AsyncClient, url: str, wire: WireApi) -> str:
    """What becomes of one request for a stream."""
    request = client_request(wire, Prompt("Hello", max_output_tokens=50))
    path = request.url.removeprefix("http://127.0.0.1:8900")
    body = request.body
    if wire == "gemini":
        path = f"/v1beta{path}"
    else:
        body = msgspec.json.encode({**msgspec.json.decode(body), "stream": True})
    received = b""
    try:
        async with client.stream("POST", url + path, content=body) as response:
            async for data in response.aiter_bytes():
                received += data
    except httpx.TransportError:
        return BROKEN
    if response.status_code != 200:
        return HTTP_ERROR
    result = parse_stream(wire, received)
    if result.status == "completed":
        return COMPLETE if result.text == WHOLE else SILENT
    if any(frame in received.replace(b'"error": {', b'"error":{') for frame in ERROR_FRAMES):
        return WIRE_ERROR
    return SILENT


async def run_clients(
    url: str,
    clients: int,
    is_over: Callable[[Counter[str]], bool],
    headers: dict[str, str] | None = None,
) -> Counter[str]:
    """Clients of all wires ask again and again; returns how often each outcome was seen."""
    counts: Counter[str] = Counter()

    async def ask(wires: Sequence[WireApi]) -> None:
        async with httpx.AsyncClient(timeout=60, headers=headers) as client:
            number = 0
            while not is_over(counts):
                wire = wires[number % len(wires)]
                number += 1
                result = await outcome(client, url, wire)
                counts[result] += 1
                if result == BROKEN:
                    await anyio.sleep(0.05)

    async with anyio.create_task_group() as group:
        for number in range(clients):
            start = number % len(WIRES)
            group.start_soon(ask, [*WIRES[start:], *WIRES[:start]])
    return counts
