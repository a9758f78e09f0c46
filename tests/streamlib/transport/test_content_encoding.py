"""Compressed bodies are decoded in bounded steps."""

from __future__ import annotations

import gzip
import importlib
import random
import sys
import time
import zlib
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.transport import content_encoding
from streamlib.transport.content_encoding import DECODED_CHUNK_BYTES, ZSTD, decode_content
from streamlib_parsers.stream_error import StreamError
from tests.support.clients import EVERY_TRANSPORT, make_client, make_request
from tests.support.response_bodies import HELLO_TEXT, MESSAGE
from tests.support.scripted_server import complete_response, scripted

brotli: Any = importlib.import_module("brotli")
zstd: Any = importlib.import_module(ZSTD)


async def _chunks(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk_ in chunks:
        yield chunk_


COMPRESSORS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate without a header": lambda body: zlib.compress(body, wbits=-15),
    "two members": lambda body: (
        gzip.compress(body[: len(body) // 2]) + gzip.compress(body[len(body) // 2 :])
    ),
    "br": brotli.compress,
    "zstd": zstd.compress,
    "two frames": lambda body: (
        zstd.compress(body[: len(body) // 2]) + zstd.compress(body[len(body) // 2 :])
    ),
}
ENCODINGS: Final = {"two members": "gzip", "deflate without a header": "deflate"} | {
    "two frames": "zstd"
}
"""Encoding of each of these that is not named like it."""


@pytest.mark.parametrize("compressor", COMPRESSORS)
async def test_compressed_body_is_equal_for_every_chunk_size(compressor: str) -> None:
    compressed = COMPRESSORS[compressor](MESSAGE * 3)
    encoding = {"content-encoding": ENCODINGS.get(compressor, compressor)}
    for size in (1, 7, 100, len(compressed)):
        chunks = [compressed[start : start + size] for start in range(0, len(compressed), size)]
        assert (
            b"".join([decoded async for decoded in decode_content(_chunks(*chunks), encoding)])
            == MESSAGE * 3
        )


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
async def test_no_step_decodes_more_than_its_limit(encoding: str) -> None:
    size = 20 * DECODED_CHUNK_BYTES + 5
    compressed = COMPRESSORS[encoding](bytes(size))
    chunks = [
        len(decoded)
        async for decoded in decode_content(_chunks(compressed), {"content-encoding": encoding})
    ]
    assert sum(chunks) == size
    assert max(chunks) == DECODED_CHUNK_BYTES <= 16 << 10


BOMBS: Final[dict[str, bytes]] = {
    "one member": gzip.compress(bytes(64 * DECODED_CHUNK_BYTES)),
    "empty members": gzip.compress(b"") * 20_000,
    "full chunk at the end": gzip.compress(bytes(512 * 1024)),
    "br": brotli.compress(bytes(64 * DECODED_CHUNK_BYTES)),
    "zstd": zstd.compress(bytes(64 * DECODED_CHUNK_BYTES)),
    "empty frames": zstd.compress(b"") * 20_000,
}
BOMB_SIZES: Final = {"one member": 64, "br": 64, "zstd": 64, "full chunk at the end": 32}
"""In chunks; the others decode to nothing."""
BOMB_ENCODINGS: Final = {"br": "br", "zstd": "zstd", "empty frames": "zstd"}
"""Those of the others: gzip."""


def encoding_of(bomb: str) -> dict[str, str]:
    """Its header."""
    return {"content-encoding": BOMB_ENCODINGS.get(bomb, "gzip")}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_other_tasks_run_between_the_steps_of_a_bomb(bomb: str) -> None:
    """Nothing is awaited for the many steps of a few bytes: without turns, no other task runs."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    size = 0
    async with anyio.create_task_group() as group:
        group.start_soon(count_turns)
        async for chunk in decode_content(_chunks(BOMBS[bomb]), encoding_of(bomb)):
            size += len(chunk)
        group.cancel_scope.cancel()
    assert size == BOMB_SIZES.get(bomb, 0) * DECODED_CHUNK_BYTES
    assert turns >= 15


@pytest.mark.parametrize("bomb", BOMBS)
async def test_no_step_of_a_bomb_blocks_the_loop_for_long(bomb: str) -> None:
    """The time of each step, without what other programs of this machine take of it."""
    steps: list[float] = []
    began = time.thread_time()

    async def note_turns() -> None:
        nonlocal began
        while True:
            began = time.thread_time()
            await anyio.lowlevel.checkpoint()
            steps.append(time.thread_time() - began)

    async with anyio.create_task_group() as group:
        group.start_soon(note_turns)
        async for _ in decode_content(_chunks(BOMBS[bomb]), encoding_of(bomb)):
            pass
        group.cancel_scope.cancel()
    assert max(steps) < 0.05


async def test_steps_do_not_copy_all_of_a_long_chunk() -> None:
    """As long a chunk as a transport may pass on: copied at each step, it would take minutes."""
    members = gzip.compress(b"") * 20_000
    body = b"".join(
        [part async for part in decode_content(_chunks(members), {"content-encoding": "gzip"})]
    )
    assert body == b""


async def test_steps_get_a_bounded_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step does not use is copied: a chunk is given to it in parts."""
    sizes: list[int] = []

    class Measured:
        def __init__(self, bits: int) -> None:
            self._inner = zlib.decompressobj(bits)

        def decompress(self, data: bytes, limit: int) -> bytes:
            sizes.append(len(data))
            return self._inner.decompress(data, limit)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    fake = SimpleNamespace(decompressobj=Measured, error=zlib.error)
    monkeypatch.setattr(content_encoding, "zlib", fake)
    body = random.Random(1).randbytes(100_000)
    headers = {"content-encoding": "gzip"}
    decoded = decode_content(_chunks(gzip.compress(body)), headers)
    assert b"".join([part async for part in decoded]) == body
    assert max(sizes) == 16 << 10


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
async def test_truncated_compressed_body_raises(encoding: str) -> None:
    compressed = COMPRESSORS[encoding](MESSAGE)
    for end in range(1, len(compressed) - 1, 7):
        with pytest.raises((StreamError, zlib.error)):
            [
                decoded
                async for decoded in decode_content(
                    _chunks(compressed[:end]), {"content-encoding": encoding}
                )
            ]


@EVERY_TRANSPORT
@pytest.mark.parametrize("encoding", ["br", "zstd"])
async def test_every_transport_decodes(encoding: str, http: str) -> None:
    packed = complete_response(COMPRESSORS[encoding](MESSAGE), content_encoding=encoding)
    broken = complete_response(b"\xff" * 99, content_encoding=encoding)
    async with (
        scripted(packed, broken) as server,
        make_client(server.url, http, retry=RetryPolicy(retries=0)) as client,
    ):
        assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        with pytest.raises(StreamError) as raised_:
            await client.respond(make_request(server.url))
    assert raised_.value.kind == "malformed"


WITHOUT: Final[dict[str, tuple[str, object]]] = {
    "br": ("brotli", None),
    "br, an older package": ("brotli", SimpleNamespace(Decompressor=object)),
    "zstd": (ZSTD, None),
}
"""Modules as they are where the extra is not installed."""


@pytest.mark.parametrize("case", WITHOUT)
def test_refusal_names_the_extra(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, found = WITHOUT[case]
    monkeypatch.setitem(sys.modules, module, found)
    encoding = case.partition(",")[0]
    with pytest.raises(StreamError, match=f"pip install 'streamlib.{encoding}.'") as raised_:
        decode_content(_chunks(), {"content-encoding": encoding})
    assert (raised_.value.kind, raised_.value.code) == ("malformed", "content_encoding")


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip", "br, zstd", "compress", "gzip, identity, deflate", "x" * 500]
)
def test_unsupported_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(StreamError) as raised_:
        decode_content(_chunks(), {"content-encoding": encoding})
    assert raised_.value.kind == "malformed"
    name = ", ".join(part for part in encoding.split(", ") if part != "identity")
    expected = f"content-encoding {name[:100]}: only identity was requested"
    assert raised_.value.message == expected


@pytest.mark.parametrize("encoding", ["", "identity", "Identity, identity", "GZIP"])
async def test_identity_encoding_returns_the_same_iterator(encoding: str) -> None:
    chunks = _chunks()
    assert (decode_content(chunks, {"content-encoding": encoding}) is chunks) is (
        encoding != "GZIP"
    )
    await chunks.aclose()  # type: ignore[attr-defined]
