"""Bedrock InvokeModelWithResponseStream: frames around the stream of the model's own API.

The wire (recordings of nine families; shapes of botocore 1.44):

    chunk              {"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdGFydCIs…","p":"abc"}
      base64 of one complete JSON event, for example
        Claude         {"type":"message_start",…}            -> the Messages machine
        Titan          {"outputText":"Hi","completionReason":null,"inputTextTokenCount":7}
        Mistral        {"outputs":[{"text":"Hi","stop_reason":"stop"}],
                        "amazon-bedrock-invocationMetrics":{…}}
    exception:throttlingException  {"message":"Too many requests"}

The first payload shows the family, see `families.py`. A family that is not in the table is passed
through, payload by payload; then the clean end of the frames is the end of the response, with a
Notice.

Buffered: `Completed`, until the end of input (Nova's machine emits it after its metadata).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.bedrock import at_path, failure_of, json_or_text
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any
from streamlib_parsers.protocol import WireMachine as InnerMachine
from streamlib_parsers.protocol import wire
from streamlib_parsers.wires.invoke.families import BEDROCK, BY_NAME, METRICS, Family, family_of
from streamlib_parsers.wires.invoke.text_machine import TextMachine
from streamlib_parsers.wires.invoke.token_counts import usage

BEDROCK_KEY: Final = b'"' + BEDROCK.encode()
"""The first bytes of Bedrock's own keys in JSON. Most payloads lack them and are not decoded."""


class Chunk(Struct, gc=False):
    """Payload of a `chunk` frame; msgspec decodes the base64."""

    encoded: bytes = field(name="bytes")


_decode_chunk: Final = msgspec.json.Decoder(Chunk).decode


class FamilyReader(NamedTuple):
    """The family of a stream, and the machine that reads it."""

    family: Family
    machine: InnerMachine


class Machine:
    """Opens the frames and passes their payloads to the family's machine."""

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        # Set by the first payload of a known family.
        self._reader: FamilyReader | None = None
        # Whether a payload of an unknown family was passed through.
        self._has_unknown = False

    @property
    def complete(self) -> bool:
        """Whether the family's terminal event was seen; False for an unknown family."""
        return self._reader is not None and self._reader.machine.complete

    def frame(self, event: str | None, data: bytes) -> None:
        """Reads one frame, or its payload alone (recorded lines, complete bodies)."""
        if event == "chunk":
            self._read_payload(None, _chunk_bytes(data))
        elif event is None:
            self._read_payload(None, _unwrapped(data))
        elif event.startswith(("exception:", "error:")):
            raise ParseFailure(failure_of(event, data))
        else:
            self._read_named(event, data)

    def end(self) -> None:
        """Ends by the rule of the family; an unknown family ends where its frames end."""
        if self._reader is not None:
            family, machine = self._reader
            # Only if complete: `[DONE]` would otherwise complete a truncated stream.
            if machine.complete and family.closing:
                machine.frame(None, family.closing)
            # Nova's metadata and Chat's `[DONE]` have ended the response already.
            if not self._assembler.ended:
                machine.end()
        elif not self._has_unknown:
            raise truncated("the stream ended before its first payload")
        else:
            self._assembler.note_inferred_end("the family is unknown, and so is its terminal event")
            self._assembler.complete("other")

    def _read_named(self, event: str, data: bytes) -> None:
        """Reads a payload of `body_frames`, whose event names the family; others pass through."""
        name, _, inner_event = event.partition("/")
        family = BY_NAME.get(name)
        if family is None:
            self._assembler.passthrough(event, json_or_text(data))
            return
        if self._reader is None:
            self._reader = self._reader_of(family)
        self._read_payload(inner_event or None, data)

    def _read_payload(self, event: str | None, data: bytes) -> None:
        if BEDROCK_KEY in data:
            self._read_with_added_keys(event, data)
        elif data:
            self._read_family_payload(event, data)

    def _read_with_added_keys(self, event: str | None, data: bytes) -> None:
        value, _ = self._assembler.decode_object(data)
        added = {key: content for key, content in value.items() if key.startswith(BEDROCK)}
        self._assembler.metadata(added)
        # A payload with only Bedrock's keys is not for the family's machine.
        if len(added) < len(value):
            self._read_family_payload(event, data)
        metrics = added.get(METRICS)
        has_usage = self._assembler.last_usage is not None
        if isinstance(metrics, dict) and not has_usage and not self._assembler.ended:
            # Only for families without usage of their own, which is more precise.
            self._assembler.usage(usage(metrics))

    def _read_family_payload(self, event: str | None, data: bytes) -> None:
        if self._reader is None:
            value, _ = self._assembler.decode_object(data)
            family = family_of(value)
            if family is None:
                self._pass_unknown(value)
                return
            self._reader = self._reader_of(family)
        family, machine = self._reader
        machine.frame(event, family.adapt(data))

    def _reader_of(self, family: Family) -> FamilyReader:
        if family.wire is None:
            return FamilyReader(family, TextMachine(self._assembler, family))
        return FamilyReader(family, wire(family.wire).Machine(self._assembler))

    def _pass_unknown(self, value: JsonObject) -> None:
        if not self._has_unknown:
            self._has_unknown = True
            keys = ", ".join(sorted(value))[:200]
            self._assembler.notice("unknown_family", f"a payload with {keys}")
        self._assembler.passthrough("chunk", value)


def _chunk_bytes(data: bytes) -> bytes:
    try:
        return _decode_chunk(data).encoded
    except DECODE_ERRORS:
        raise malformed("a chunk without base64 bytes", data) from None


def _unwrapped(data: bytes) -> bytes:
    """The payload of a recorded line.

    The line is the payload, or the frame's payload `{"bytes":…}`, or that under its event's name.
    """
    if b'"bytes"' not in data:
        return data
    value = decode_any(data)
    if isinstance(value, dict):
        inner = value.get("chunk", value)
        if isinstance(at_path(inner, "bytes"), str):
            return _chunk_bytes(msgspec.json.encode(inner))
    return data
