"""Where a secret can be read in what a stage lets out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

import anyio
import msgspec

from streamlib.durable import open_log
from streamlib.recording import dump_events
from streamlib.wires.encoders import UI_PROTOCOLS, encode_all, encode_body
from streamlib_parsers import parser
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.events import TEXT_DELTAS, ResponseEvent
from streamlib_parsers.protocol import WIRE_APIS

ENCODERS: Final = (*WIRE_APIS, *UI_PROTOCOLS)


def in_deltas(events: Iterable[ResponseEvent], secret: str) -> bool:
    """Whether a text whose deltas are joined holds the secret."""
    texts: dict[tuple[type, int], list[str]] = {}
    for event in events:
        if isinstance(event, TEXT_DELTAS):
            texts.setdefault((type(event), event.index), []).append(event.delta)
    return any(secret in "".join(fragments) for fragments in texts.values())


def quick_places(events: Sequence[ResponseEvent], secret: str) -> list[str]:
    """The places that are looked at for every split: deltas, response, recording."""
    found: list[str] = []
    if in_deltas(events, secret):
        found.append("deltas")
    if secret.encode() in msgspec.json.encode(accumulate(events)):
        found.append("response")
    if secret.encode() in dump_events(events):
        found.append("recording")
    return found


def written_places(events: Sequence[ResponseEvent], secret: str) -> list[str]:
    """What writes the secret, in one piece or in several: a log, encoders' streams and bodies."""
    found: list[str] = []
    if secret.encode() in anyio.run(_logged, events):
        found.append("log")
    response = accumulate(events)
    for name in ENCODERS:
        stream = encode_all(name, events, model="m")
        if secret.encode() in stream or secret in _joined(name, stream):
            found.append(name)
        if secret.encode() in encode_body(name, response, model="m"):
            found.append(f"{name} body")
    return found


async def _logged(events: Sequence[ResponseEvent]) -> bytes:
    """What is read from a log that the events were written to."""

    async def source() -> AsyncIterator[ResponseEvent]:
        for event in events:
            yield event

    async with open_log("memory:") as log:
        await log.create("leaks")
        await log.write("leaks", source())
        entries = [entry.event async for entry in log.read("leaks")]
    return msgspec.json.encode(entries)


def _joined(name: str, stream: bytes) -> str:
    """The texts of a stream as its readers join them."""
    if name in WIRE_APIS:
        read = parser(name)
        return msgspec.json.encode(accumulate(read.feed(stream) + read.close())).decode()
    texts: dict[tuple[str, str], list[str]] = {}
    for line in stream.decode().splitlines():
        data = line.removeprefix("data: ")
        if not data.startswith("{"):
            continue
        for key, value in json.loads(data).items():
            if isinstance(value, str):
                kind = json.loads(data)["type"]
                texts.setdefault((kind, key), []).append(value)
    return "\0".join(["".join(fragments) for fragments in texts.values()])
