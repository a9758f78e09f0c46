"""Bedrock InvokeModelWithResponseStream: frames around whatever the model's own API streams.

What the wire promises (recordings of nine families; shapes of botocore 1.44):

    chunk                          {"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdGFydCIs…","p":"abc"}     base64 of one whole JSON event
      Claude                       {"type":"message_start",…}                -> the Messages machine
      Titan                        {"outputText":"Hi","completionReason":null,"inputTextTokenCount":7}
      Mistral                      {"outputs":[{"text":"Hi","stop_reason":"stop"}],"amazon-bedrock-invocationMetrics":{…}}
    exception:throttlingException  {"message":"Too many requests"}

The first payload tells the family, by `FAMILIES`; nothing is guessed from the model's name. Families with an API of their own are read
by that wire's machine, the others by one small machine and a row of paths. A family that is not in the table is passed through, payload
by payload; then the clean end of the frames is the end of the answer, with a Notice.

Held back: `Completed`, until the end of input (Nova's machine says it after its metadata).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.bedrock import (
    DECODE_ERRORS,
    at_path,
    body_failure,
    failure_of,
    json_or_text,
    payload_of,
    without_keys,
)
from streamlib_parsers.errors import ParseFailure, malformed, truncated
from streamlib_parsers.events import StopReason
from streamlib_parsers.framing.eventstream import EventStreamFraming as framing  # noqa: N813  # the name every wire gives its framing
from streamlib_parsers.items import JsonObject, Message
from streamlib_parsers.json_text import decode_any
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.protocol import Machine as InnerMachine
from streamlib_parsers.protocol import wire
from streamlib_parsers.usage import Usage, count, overlay, total

__all__ = [
    "FAMILIES",
    "METRICS",
    "STOP_REASONS",
    "Family",
    "Machine",
    "body_frames",
    "framing",
    "usage",
]

STOP_REASONS: Final[dict[str, StopReason]] = {
    "FINISH": "stop",
    "COMPLETE": "stop",
    "stop": "stop",
    "stop_sequence": "stop",
    "endoftext": "stop",
    "LENGTH": "length",
    "length": "length",
    "MAX_TOKENS": "length",
    "max_tokens": "length",
    "CONTENT_FILTERED": "content_filter",
    "INTERVENED": "content_filter",
}
"""Words of the text families; the others have their wire's. `INTERVENED` is Bedrock's guardrail, where it spoke instead of the model."""

METRICS: Final = "amazon-bedrock-invocationMetrics"
GUARDRAIL: Final = "amazon-bedrock-guardrailAction"
BEDROCK: Final = "amazon-bedrock-"
"""How the keys begin that Bedrock adds to a model's own payload."""
BEDROCK_KEY: Final = b'"amazon-bedrock-'
BODY_EVENT: Final = "whole"
"""Tells a text family's machine that a payload is a whole body: it is the answer even where it gives no reason for its end."""


def _stop_reason_as_finish_reason(data: bytes) -> bytes:
    """Mistral Large speaks Chat Completions but for this key; Jamba has a number under it, which is no word."""
    if b'"stop_reason"' not in data:
        return data
    value = decode_any(data)
    for choice in value["choices"] if isinstance(at_path(value, "choices.0"), dict) else ():
        if (
            isinstance(choice, dict)
            and isinstance(choice.get("stop_reason"), str)
            and not choice.get("finish_reason")
        ):
            choice["finish_reason"] = choice.pop("stop_reason")
    return msgspec.json.encode(value)


def _unchanged(data: bytes) -> bytes:
    return data


class Family(NamedTuple):
    """One family of models. Places are dotted paths into a payload; the first that is there counts.

    marks: what the first payload has. wire: whose machine reads it, after `adapt`; None: text, by the paths below.
    closing: what that wire says at its end and Bedrock leaves out, because its frames end.
    stop: the reason; not null means that the answer is whole. finished: a flag that means it too.
    inside: an object whose members count as the payload's own. kinds: values of `event_type` whose text is read.
    spoken: further keys that are read or say nothing; every other one is metadata.
    """

    name: str
    marks: tuple[str, ...]
    wire: str | None = None
    adapt: Callable[[bytes], bytes] = _unchanged
    closing: bytes = b""
    text: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    finished: str = ""
    stop_sequence: str = ""
    inside: str = ""
    kinds: frozenset[str] = frozenset()
    ignored_keys: frozenset[str] = frozenset()


FAMILIES: Final = (
    Family(
        "claude-2",
        ("completion",),
        text=("completion",),
        stop=("stop_reason",),
        stop_sequence="stop",
        ignored_keys=frozenset({"type"}),
    ),
    Family("claude", ("type",), "messages"),
    Family(
        "nova",
        (
            "messageStart",
            "contentBlockStart",
            "contentBlockDelta",
            "messageStop",
            "metadata",
            "output",
        ),
        "converse",
    ),
    Family(
        "completions",
        ("choices.0.text",),
        text=("choices.0.text",),
        stop=("choices.0.stop_reason", "choices.0.finish_reason"),
    ),
    Family("chat", ("choices",), "chat", _stop_reason_as_finish_reason, b"[DONE]"),
    Family(
        "titan",
        ("outputText", "results"),
        text=("outputText", "results.0.outputText"),
        stop=("completionReason", "results.0.completionReason"),
        ignored_keys=frozenset({"index"}),
    ),
    Family("llama", ("generation",), text=("generation",), stop=("stop_reason",)),
    Family("mistral", ("outputs",), text=("outputs.0.text",), stop=("outputs.0.stop_reason",)),
    Family(
        "cohere",
        ("event_type", "is_finished", "generations", "generation_id", "chat_history"),
        text=("text", "generations.0.text"),
        stop=("finish_reason", "generations.0.finish_reason"),
        finished="is_finished",
        inside="response",
        kinds=frozenset({"text-generation", "stream-start", "stream-end"}),
        ignored_keys=frozenset({"event_type", "chat_history", "prompt"}),
    ),
)
"""In the order they are tried. `completions`: DeepSeek R1; `chat`: Jamba, Mistral Large, gpt-oss and whoever else speaks it."""

BY_NAME: Final = {family.name: family for family in FAMILIES}
"""`body_frames` names the family in the event, before a slash; what follows is for its machine."""

COUNTS: Final = frozenset(
    {
        "inputTextTokenCount",
        "totalOutputTextTokenCount",
        "prompt_token_count",
        "generation_token_count",
    }
)
"""Keys of the text families' own usage."""


def family_of(payload: JsonObject) -> Family | None:
    """The first family that `payload` has a mark of."""
    return next(
        (
            family
            for family in FAMILIES
            if any(at_path(payload, mark) is not None for mark in family.marks)
        ),
        None,
    )


class TextMachine:
    """Reads the payloads of a text family."""

    def __init__(self, assembly: EventAssembler, family: Family) -> None:
        self._assembly = assembly
        self._family = family
        self._item: OpenItem | None = None
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        self._finished = False
        self._blocked = False

    @property
    def complete(self) -> bool:
        """The family's terminal was seen, or the last payload says that a guardrail spoke instead of the model."""
        return self._finished or self._blocked

    def frame(self, event: str | None, data: bytes) -> None:
        """One payload."""
        family = self._family
        value, data = payload_of(self._assembly, data)
        if family.inside and isinstance(inner := value.get(family.inside), dict):
            value = {**(without_keys(inner, "text") or {}), **value}
        kind = value.get("event_type")
        if (
            family.kinds
            and kind is not None
            and not (isinstance(kind, str) and kind in family.kinds)
        ):
            self._assembly.passthrough(str(kind), value)
        else:
            self._append_text(value)
        self._count(value)
        self._stop(value, whole=event == BODY_EVENT)

    def end(self) -> None:
        """Complete only with the family's terminal."""
        if not self.complete:
            raise truncated(f"the stream ended before the terminal of {self._family.name}")
        if self._item is not None:
            self._assembly.close(self._item)
        native = self._stop_reason or ("INTERVENED" if self._blocked else None)
        self._assembly.complete(
            STOP_REASONS.get(native or "", "other"), native, self._stop_sequence
        )

    def _append_text(self, value: JsonObject) -> None:
        self._assembly.identify(_first(value, ("response_id",)), None)
        text = _first(value, self._family.text)
        if text:
            self._item = self._item or self._assembly.open(Message("assistant"))
            self._assembly.text(self._item, text)
        self._assembly.metadata(self._rest(value))

    def _rest(self, value: JsonObject) -> JsonObject:
        family = self._family
        read = {
            path.partition(".")[0]
            for path in (
                *family.text,
                *family.stop,
                family.finished,
                family.stop_sequence,
                family.inside,
            )
        }
        return {
            key: one
            for key, one in value.items()
            if one is not None and key not in read | family.ignored_keys | COUNTS
        }

    def _count(self, value: JsonObject) -> None:
        counted = {key: one for key, one in value.items() if key in COUNTS} | {
            "tokenCount": at_path(value, "results.0.tokenCount")
        }
        metrics = value.get(METRICS)
        self._usage = overlay(
            overlay(self._usage, metrics if isinstance(metrics, dict) else {}), counted
        )
        if self._usage:
            self._assembly.usage(usage(self._usage))

    def _stop(self, value: JsonObject, *, whole: bool) -> None:
        self._stop_reason = _first(value, self._family.stop) or self._stop_reason
        self._stop_sequence = _first(value, (self._family.stop_sequence,)) or self._stop_sequence
        self._finished |= (
            whole or self._stop_reason is not None or value.get(self._family.finished) is True
        )
        self._blocked = value.get(GUARDRAIL) == "INTERVENED"


def _first(value: JsonObject, paths: tuple[str, ...]) -> str | None:
    return next((found for path in paths if isinstance(found := at_path(value, path), str)), None)


class Chunk(Struct, gc=False):
    """Payload of a `chunk` frame; msgspec reads the base64."""

    encoded: bytes = field(name="bytes")


_decode_chunk: Final = msgspec.json.Decoder(Chunk).decode


class Reader(NamedTuple):
    """The family of a stream, and the machine that reads it."""

    family: Family
    machine: InnerMachine


class Machine:
    """Opens the frames and hands what is inside to the family's machine."""

    def __init__(self, assembly: EventAssembler) -> None:
        self._assembly = assembly
        self._reader: Reader | None = None
        self._unknown = False

    @property
    def complete(self) -> bool:
        """The family's terminal was seen; of an unknown family nobody knows it."""
        return self._reader is not None and self._reader.machine.complete

    def frame(self, event: str | None, data: bytes) -> None:
        """One frame; or its payload, opened already (recorded lines, whole bodies)."""
        if event == "chunk":
            self._payload(None, _opened(data))
        elif event is None:
            self._payload(None, _unwrapped(data))
        elif (family := BY_NAME.get(event.partition("/")[0])) is not None:
            self._reader = self._reader or self._reader_of(family)
            self._payload(event.partition("/")[2] or None, data)
        elif event.startswith(("exception:", "error:")):
            raise ParseFailure(failure_of(event, data))
        else:
            self._assembly.passthrough(event, json_or_text(data))

    def end(self) -> None:
        """By the family's own law; an unknown family ends where its frames end."""
        if self._reader is not None:
            family, machine = self._reader
            if machine.complete and family.closing:
                machine.frame(None, family.closing)
            if not self._assembly.ended:
                machine.end()
        elif not self._unknown:
            raise truncated("the stream ended before its first payload")
        else:
            self._assembly.note_inferred_end(
                "the family is unknown: whether the answer is whole cannot be said"
            )
            self._assembly.complete("other")

    def _payload(self, event: str | None, data: bytes) -> None:
        if not data:
            return
        metrics: Any = None
        if BEDROCK_KEY in data:
            value, _ = payload_of(self._assembly, data)
            added = {key: one for key, one in value.items() if key.startswith(BEDROCK)}
            self._assembly.metadata(added)
            metrics = added.get(METRICS)
            data = data if len(added) < len(value) else b""
        if data:
            self._read(event, data)
        if (
            isinstance(metrics, dict)
            and self._assembly.last_usage is None
            and not self._assembly.ended
        ):
            self._assembly.usage(usage(metrics))

    def _read(self, event: str | None, data: bytes) -> None:
        if self._reader is None:
            value, _ = payload_of(self._assembly, data)
            family = family_of(value)
            if family is None:
                self._pass(value)
                return
            self._reader = self._reader_of(family)
        family, machine = self._reader
        machine.frame(event, family.adapt(data))

    def _reader_of(self, family: Family) -> Reader:
        machine = (
            TextMachine(self._assembly, family)
            if family.wire is None
            else wire(family.wire).Machine(self._assembly)
        )
        return Reader(family, machine)

    def _pass(self, value: JsonObject) -> None:
        if not self._unknown:
            self._unknown = True
            self._assembly.notice(
                "unknown_family", f"a payload with {', '.join(sorted(value))[:200]}"
            )
        self._assembly.passthrough("chunk", value)


def _opened(data: bytes) -> bytes:
    try:
        return _decode_chunk(data).encoded
    except DECODE_ERRORS:
        raise malformed("a chunk without base64 bytes", data) from None


def _unwrapped(data: bytes) -> bytes:
    """A recorded line may be the payload itself, the frame's payload `{"bytes":…}`, or that under its event's name."""
    if b'"bytes"' not in data:
        return data
    value = decode_any(data)
    inner = value.get("chunk", value) if isinstance(value, dict) else None
    return _opened(msgspec.json.encode(inner)) if isinstance(at_path(inner, "bytes"), str) else data


def usage(raw: dict[str, Any]) -> Usage:
    """Of the text families: their own counts, else Bedrock's metrics, which count cached input apart as Converse does."""
    read, written = count(raw, "cacheReadInputTokenCount"), count(raw, "cacheWriteInputTokenCount")
    metered = count(raw, "inputTokenCount")
    own = count(raw, "inputTextTokenCount", "prompt_token_count")
    return Usage(
        input_tokens=own if own is not None or metered is None else total(metered, read, written),
        output_tokens=count(
            raw,
            "totalOutputTextTokenCount",
            "generation_token_count",
            "tokenCount",
            "outputTokenCount",
        ),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        raw=raw,
    )


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """A whole body of any family of the table, as the payloads of its stream. An error body raises what it says."""
    payload = decode_any(body)
    family = family_of(payload)
    if family is None:
        raise body_failure(payload, body)
    frames = [(BODY_EVENT, body)] if family.wire is None else wire(family.wire).body_frames(body)
    for event, data in frames:
        yield f"{family.name}/{event or ''}", data
