"""Readers without state: the six lines that people write, and httpx-sse.

The six lines read what a provider usually sends. On a body with comments or with other line ends
they fail, or read something else; such a stream is not timed for them.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from benchmarks.contestants import Contestant, local, peer
from benchmarks.joined import JOINED

SPLITTER: Final = "six lines"

# --- six lines: the frames as dicts ---

_as_dict: Final = msgspec.json.Decoder().decode


def _split_sse(chunks: Iterable[bytes]) -> Iterator[Any]:
    """The six lines that people write instead of a parser."""
    rest = b""
    for chunk in chunks:
        *frames, rest = (rest + chunk).split(b"\n\n")
        for frame in frames:
            if not frame.endswith(b"[DONE]"):
                yield _as_dict(frame[frame.index(b"data: ") + 6 :])


def _split_lines(chunks: Iterable[bytes]) -> Iterator[Any]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield _as_dict(line)


def _split_aws(chunks: Iterable[bytes]) -> Iterator[Any]:
    """The payloads of AWS messages; headers and checksums are skipped."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        start, size = 0, len(data)
        while size - start >= 12:
            end = start + int.from_bytes(data[start : start + 4], "big")
            if end > size:
                break
            headers = int.from_bytes(data[start + 4 : start + 8], "big")
            yield _as_dict(data[start + 12 + headers : end - 4])
            start = end
        rest = data[start:]


def _split_invoke(chunks: Iterable[bytes]) -> Iterator[Any]:
    for payload in _split_aws(chunks):
        yield _as_dict(b64decode(payload["bytes"]))


SPLITTERS: Final[dict[str, Callable[[Iterable[bytes]], Iterator[Any]]]] = {
    "messages": _split_sse,
    "responses": _split_sse,
    "chat": _split_sse,
    "gemini": _split_sse,
    "interactions": _split_sse,
    "converse": _split_aws,
    "invoke": _split_invoke,
    "ollama": _split_lines,
    "cohere": _split_sse,
}

# --- httpx-sse ---


async def _httpx_sse(http: Any) -> AsyncIterator[Any]:
    from httpx_sse import EventSource

    response = await http.send(http.build_request("POST", "http://x"), stream=True)

    async def decoded() -> AsyncIterator[Any]:
        async for event in EventSource(response).aiter_sse():
            if event.data != "[DONE]":
                yield json.loads(event.data)

    return decoded()


def _framings() -> Iterator[Contestant]:
    for wire, split in SPLITTERS.items():
        yield local(SPLITTER, "", wire, split, JOINED[wire])
        if split is _split_sse:
            outcome = JOINED[wire]
            yield peer("httpx-sse + json", "httpx-sse", wire, _same, _httpx_sse, outcome, _httpx)


def _same(http: Any) -> Any:
    return http


def _httpx() -> str:
    return "httpx"


FRAMINGS: Final = tuple(_framings())
"""For each wire: the six lines, and httpx-sse if its frames are server-sent events."""
