"""Anthropic Messages: a complete body as the events of an equivalent stream."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from streamlib_parsers.errors import malformed
from streamlib_parsers.json_text import DECODE_ERRORS, mark_surrogates


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """The events of a Message (or error) body; every block is complete in its start.

    Raises:
        ParseFailure: `malformed`, if the body is neither.
    """
    try:
        message = msgspec.json.decode(mark_surrogates(body) or body, type=dict[str, Raw])
        blocks = msgspec.json.decode(message.pop("content", Raw(b"null")), type=list[Raw] | None)
    except DECODE_ERRORS:
        raise malformed("the body is not a Message", body) from None
    # Gateways send errors with status 200 too.
    if message.get("type") == Raw(b'"error"'):
        return iter([("error", body)])
    if blocks is None:
        raise malformed("the body is not a Message", body)
    return _message_frames(message, blocks)


def _message_frames(message: dict[str, Raw], blocks: list[Raw]) -> Iterator[tuple[None, bytes]]:
    encode = msgspec.json.encode
    # In a stream the stop reason follows the content.
    stop = {key: message.pop(key) for key in ("stop_reason", "stop_sequence") if key in message}
    yield None, encode({"type": "message_start", "message": message})
    for index, block in enumerate(blocks):
        yield None, encode({"type": "content_block_start", "index": index, "content_block": block})
        yield None, encode({"type": "content_block_stop", "index": index})
    yield None, encode({"type": "message_delta", "delta": stop})
    yield None, encode({"type": "message_stop"})
