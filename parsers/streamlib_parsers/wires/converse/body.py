"""Bedrock Converse: a complete body as the events of an equivalent stream."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from streamlib_parsers.bedrock import body_failure
from streamlib_parsers.errors import malformed
from streamlib_parsers.json_text import DECODE_ERRORS, rest_of
from streamlib_parsers.wires.converse.payloads import decode_members, members_of

STOP_KEYS = ("stopReason", "additionalModelResponseFields")
"""Keys of a body that are in `messageStop` in a stream; the others are in `metadata`."""


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """The events of a Converse body; every block is complete in its start.

    Raises:
        ParseFailure: the error in an error body, or `malformed`.
    """
    encode = msgspec.json.encode
    try:
        response = decode_members(body)
        if "output" not in response:
            raise body_failure(response, body)
        message = members_of(response.pop("output"), "message")
        blocks = msgspec.json.decode(message.get("content", Raw(b"[]")), type=list[Raw])
    except DECODE_ERRORS:
        raise malformed("the body is not a Converse response", body) from None
    stop = {key: response.pop(key) for key in STOP_KEYS if key in response}
    yield "messageStart", encode(rest_of(message, "content") or {})
    for index, block in enumerate(blocks):
        yield "contentBlockStart", encode({"contentBlockIndex": index, "start": block})
        yield "contentBlockStop", encode({"contentBlockIndex": index})
    yield "messageStop", encode(stop)
    yield "metadata", encode(response)
