"""Readers over sockets: HTTP libraries alone, this library over each of them, the SDKs.

A reader is opened for a number of streams. Each stream then reads the response of a URL, and
reports its first event.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import anyio
import anyio.abc

import streamlib
from benchmarks.sdks import CHAT_REQUEST, MESSAGES_REQUEST
from streamlib_parsers import parser

OnOpen = Callable[[], object]
"""Called with the first event."""

Read = Callable[[str, OnOpen], Awaitable[str | None]]
"""Reads the response of a URL; returns its text, or None if it was not parsed."""

OpenClient = Callable[[int], AbstractAsyncContextManager[Read]]
"""Opens a client for this many concurrent streams."""


class Reader(NamedTuple):
    """A client to measure.

    Attributes:
        wire: wire that it reads.
        open_client: opens the client.
        distributions: distributions that it needs.
        loops: event loops that it runs on.
    """

    wire: str
    open_client: OpenClient
    distributions: tuple[str, ...] = ()
    loops: tuple[str, ...] = ("asyncio", "uvloop", "trio")


ASYNCIO: Final = ("asyncio", "uvloop")

# --- the HTTP libraries alone ---


def _drained(library: str) -> OpenClient:
    @asynccontextmanager
    async def open_client(streams: int) -> AsyncIterator[Read]:
        http: Any = importlib.import_module(library)
        limits = http.Limits(max_connections=streams + 1)
        async with http.AsyncClient(limits=limits, timeout=http.Timeout(600)) as client:

            async def read(url: str, on_open: OnOpen) -> None:
                async with client.stream("POST", url, content=b"{}") as response:
                    chunks = response.aiter_raw()
                    await anext(chunks)
                    on_open()
                    async for _ in chunks:
                        pass

            yield read

    return open_client


@asynccontextmanager
async def _aiohttp_drained(streams: int) -> AsyncIterator[Read]:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def read(url: str, on_open: OnOpen) -> None:
            async with session.post(url, data=b"{}") as response:
                await response.content.readany()
                on_open()
                async for _ in response.content.iter_any():
                    pass

        yield read


# --- this library ---


def _ours(library: str) -> OpenClient:
    @asynccontextmanager
    async def open_client(streams: int) -> AsyncIterator[Read]:
        async with streamlib.Client(http=library, connections=streams + 1) as client:

            async def read(url: str, on_open: OnOpen) -> str:
                async with client.stream(
                    "x", model="custom:m", wire_api="messages", base_url=url, dialects=()
                ) as stream:
                    await anext(stream)
                    on_open()
                    async for _ in stream:
                        pass
                return stream.response.text

            yield read

    return open_client


# --- no HTTP library at all: lower bounds, without pool, TLS, proxies, deadlines ---


async def _connect(url: str) -> anyio.abc.SocketStream:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    socket = await anyio.connect_tcp(address.hostname, address.port)
    await socket.send(f"POST {address.path} HTTP/1.1\r\ncontent-length: 0\r\n\r\n".encode())
    return socket


class _Body:
    """Parts of a response that httptools parsed."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        """Parts of the body since the last read."""
        self.is_complete = False

    def on_body(self, data: bytes) -> None:
        """Called by httptools with each part of the body."""
        self.chunks.append(data)

    def on_message_complete(self) -> None:
        """Called by httptools at the end of the body."""
        self.is_complete = True


@asynccontextmanager
async def _own_client(streams: int) -> AsyncIterator[Read]:
    """An HTTP parser in C over anyio's sockets, and our parser: the minimum that a client of our
    own would cost."""
    import httptools

    async def read(url: str, on_open: OnOpen) -> str:
        parse, accumulator = parser("messages"), streamlib.Accumulator()
        body = _Body()
        http = httptools.HttpResponseParser(body)
        has_opened = False
        async with await _connect(url) as socket:
            while not body.is_complete:
                http.feed_data(await socket.receive())
                for event in parse.feed(b"".join(body.chunks)):
                    accumulator.feed(event)
                if body.chunks and not has_opened:
                    has_opened = True
                    on_open()
                body.chunks.clear()
        for event in parse.close():
            accumulator.feed(event)
        return accumulator.response.text

    yield read


# --- the SDKs ---


@asynccontextmanager
async def _anthropic(streams: int) -> AsyncIterator[Read]:
    import anthropic

    async def read(url: str, on_open: OnOpen) -> str:
        client = shared.with_options(base_url=url)
        stream = await client.messages.create(**MESSAGES_REQUEST, stream=True)
        texts: list[str] = []
        await anext(stream)
        on_open()
        async for event in stream:
            if event.type == "content_block_delta":
                texts.append(event.delta.text)
        return "".join(texts)

    async with anthropic.AsyncAnthropic(api_key="none", max_retries=0) as shared:
        yield read


@asynccontextmanager
async def _openai(streams: int) -> AsyncIterator[Read]:
    import openai

    async def read(url: str, on_open: OnOpen) -> str:
        client = shared.with_options(base_url=url)
        stream = await client.chat.completions.create(**CHAT_REQUEST, stream=True)
        texts: list[str] = []
        await anext(stream)
        on_open()
        async for chunk in stream:
            if chunk.choices:
                texts.append(chunk.choices[0].delta.content or "")
        return "".join(texts)

    async with openai.AsyncOpenAI(api_key="none", max_retries=0) as shared:
        yield read


READERS: Final = {
    "httptools + parser": Reader("messages", _own_client, ("httptools",)),
    "aiohttp, drained": Reader("messages", _aiohttp_drained, ("aiohttp",), ASYNCIO),
    "streamlib, aiohttp": Reader("messages", _ours("aiohttp"), ("aiohttp",), ASYNCIO),
    "httpx, drained": Reader("messages", _drained("httpx"), ("httpx",)),
    "streamlib, httpx": Reader("messages", _ours("httpx"), ("httpx",)),
    "httpx2, drained": Reader("messages", _drained("httpx2"), ("httpx2",)),
    "streamlib, httpx2": Reader("messages", _ours("httpx2"), ("httpx2",)),
    "anthropic": Reader("messages", _anthropic, ("anthropic", "httpx2"), ASYNCIO),
    "openai": Reader("chat", _openai, ("openai", "httpx2"), ASYNCIO),
}
"""Name -> reader. `drained` reads the bytes and discards them."""
