"""Compressed bodies are decoded in bounded steps."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from streamlib.transport import content_encoding
from streamlib.transport.content_encoding import DECODED_CHUNK_BYTES, decode_content
from streamlib_parsers.stream_error import StreamError
from tests.support.response_bodies import MESSAGE


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
}


@pytest.mark.parametrize("compressor", COMPRESSORS)
async def test_compressed_body_is_equal_for_every_chunk_size(compressor: str) -> None:
    compressed = COMPRESSORS[compressor](MESSAGE * 3)
    encoding = {"content-encoding": "gzip" if compressor in {"gzip", "two members"} else "deflate"}
    for size in (1, 7, 100, len(compressed)):
        chunks = [compressed[start : start + size] for start in range(0, len(compressed), size)]
        assert (
            b"".join([decoded async for decoded in decode_content(_chunks(*chunks), encoding)])
            == MESSAGE * 3
        )


async def test_no_step_decodes_more_than_its_limit() -> None:
    size = 20 * DECODED_CHUNK_BYTES + 5
    chunks = [
        len(decoded)
        async for decoded in decode_content(
            _chunks(gzip.compress(bytes(size))), {"content-encoding": "gzip"}
        )
    ]
    assert sum(chunks) == size
    assert max(chunks) == DECODED_CHUNK_BYTES <= 16 << 10


BOMBS: Final[dict[str, bytes]] = {
    "one member": gzip.compress(bytes(64 * DECODED_CHUNK_BYTES)),
    "empty members": gzip.compress(b"") * 20_000,
    "full chunk at the end": gzip.compress(bytes(512 * 1024)),
}


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
        decoded = decode_content(_chunks(BOMBS[bomb]), {"content-encoding": "gzip"})
        async for chunk in decoded:
            size += len(chunk)
        group.cancel_scope.cancel()
    assert size == len(gzip.decompress(BOMBS[bomb]))
    assert turns >= 15


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


async def test_truncated_compressed_body_raises() -> None:
    compressed = gzip.compress(MESSAGE)
    for end in range(1, len(compressed) - 1, 7):
        with pytest.raises((StreamError, zlib.error)):
            [
                decoded
                async for decoded in decode_content(
                    _chunks(compressed[:end]), {"content-encoding": "gzip"}
                )
            ]


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip", "br", "zstd", "gzip, identity, deflate", "x" * 500]
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
