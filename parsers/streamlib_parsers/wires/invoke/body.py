"""Bedrock InvokeModel: a complete body as the payloads of an equivalent stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlib_parsers.bedrock import body_failure
from streamlib_parsers.json_text import decode_any
from streamlib_parsers.protocol import wire
from streamlib_parsers.wires.invoke.families import family_of
from streamlib_parsers.wires.invoke.text_machine import BODY_EVENT


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """The payloads of a body of any family, named `<family>/<event of the family's machine>`.

    A payload of a stream in place of a body remains one, without a name: the stream ends behind it.

    Raises:
        ParseFailure: the error in an error body, or `malformed`.
    """
    payload = decode_any(body)
    family = family_of(payload)
    if family is None:
        raise body_failure(payload, body)
    if family.is_unfinished(payload):
        yield None, body
    elif family.wire is None:
        yield f"{family.name}/{BODY_EVENT}", body
    else:
        for event, data in wire(family.wire).body_frames(body):
            yield f"{family.name}/{event or ''}", data
