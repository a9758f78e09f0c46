"""The frames of a captured stream with their places, and what the wire calls them: the left half of a timeline.

The body is cut so that no piece ends more than one frame, and each piece goes to the wire's own framing and to the parser. Where a
frame began and ended is then known without either of them counting bytes.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from struct import unpack_from
from typing import Any, Final

from msgspec import Struct

from streamlib.cli.captures import Capture, body_events
from streamlib.cli.progress import Progress
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers import LIMITS, ResponseEvent, parser
from streamlib_parsers.errors import ParseFailure
from streamlib_parsers.framing import Frame
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import decode_any
from streamlib_parsers.protocol import wire

END: Final = "end of input"


class Step(Struct, frozen=True):
    """One frame of the wire, from byte `start` to byte `end`, and the events it brought. kind: the wire's word for it."""

    start: int
    end: int
    kind: str
    events: list[ResponseEvent]


def steps(capture: Capture) -> Iterator[Step]:
    """Every frame of a capture up to its terminal event; the end of input, where that is still to come."""
    body = capture.recording.body
    if capture.whole:
        yield Step(0, len(body), "whole body", body_events(capture))
        return
    framing, parse = (
        wire(capture.wire_api).framing(LIMITS),
        parser(capture.wire_api, **capture.options),
    )
    begun = 0
    with Progress(f"reading {capture.name}", len(body)) as progress:
        for start, end in _cuts(capture.wire_api, body):
            frames, events = framing.feed(body[start:end]), parse.feed(body[start:end])
            if frames or events:
                yield Step(begun, end, kinds(capture.wire_api, frames) or "(no frame)", events)
                begun = end
            if parse.ended:
                break
            progress.at(end)
    if not parse.ended:
        last = kinds(capture.wire_api, framing.close())
        yield Step(begun, len(body), f"{last}, {END}" if last else END, parse.close())


# --- where a frame may end ---

_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2,}")
_NEWLINE: Final = re.compile(rb"\r\n|\n|\r(?!\n)")
_BRACE: Final = re.compile(rb"\}")


def _cuts(wire_api: WireApi, body: bytes) -> Iterator[tuple[int, int]]:
    frames = WIRE_SPECS[wire_api].frames
    if frames == "aws":
        return _messages(body)
    if wire_api == "gemini" and body.lstrip()[:1] in (b"[", b"{"):
        return _after(_BRACE, body)
    return _after(_NEWLINE if frames == "ndjson" else _BLANK_LINE, body)


def _after(end: re.Pattern[bytes], body: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    for match in end.finditer(body):
        yield at, match.end()
        at = match.end()
    if at < len(body):
        yield at, len(body)


def _messages(body: bytes) -> Iterator[tuple[int, int]]:
    """Messages of an event stream say their own length first; one that lies takes the rest with it."""
    at = 0
    while at < len(body):
        size = unpack_from(">I", body, at)[0] if len(body) - at >= 4 else 0
        end = at + size if size >= 16 else len(body)
        yield at, min(end, len(body))
        at = end


# --- what the wire calls a frame ---


def kinds(wire_api: WireApi, frames: list[Frame]) -> str:
    """The names of frames that came together."""
    return ", ".join(_kind(wire_api, frame) for frame in frames)


def _kind(wire_api: WireApi, frame: Frame) -> str:
    if frame.data is None:
        return "stray line"
    if frame.event and wire_api != "invoke":
        return frame.event
    try:
        value = decode_any(frame.data)
        value = decode_any(b64decode(value["bytes"])) if wire_api == "invoke" else value
    except (ParseFailure, ValueError, LookupError, TypeError):
        return frame.data[:20].decode("utf-8", "replace").strip() or "(empty)"
    if isinstance(value, dict):
        return str(value["type"]) if isinstance(value.get("type"), str) else _untyped(value)
    return type(value).__name__


def _untyped(value: dict[str, Any]) -> str:
    """Wires without names: what a frame brings, by its keys."""
    found = [word for key, words in _WORDS.items() if value.get(key) for word in words(value[key])]
    return (
        " ".join(dict.fromkeys(found))
        or " ".join(key for key, inner in value.items() if isinstance(inner, (dict, list)))
        or "(nothing)"
    )


def _choices(choices: Any) -> Iterator[str]:
    """chat: choices[].delta, or .message."""
    for choice in _dicts(choices):
        yield from list(_filled(choice.get("delta") or choice.get("message"))) or (
            [] if choice.get("finish_reason") else ["role"]
        )
        if choice.get("finish_reason"):
            yield f"finish_reason {choice['finish_reason']}"


def _candidates(candidates: Any) -> Iterator[str]:
    """gemini: candidates[].content.parts[]."""
    for candidate in _dicts(candidates):
        content = candidate.get("content")
        for part in _dicts(content.get("parts") if isinstance(content, dict) else None):
            yield (
                "thought"
                if part.get("thought")
                else next((key for key in part if key != "thoughtSignature"), "part")
            )
        if candidate.get("finishReason"):
            yield f"finishReason {candidate['finishReason']}"


def _filled(message: Any) -> Iterator[str]:
    """ollama: message, chat: delta. The role comes with every frame and says nothing."""
    if isinstance(message, dict):
        yield from (key for key, inner in message.items() if inner and key != "role")


_WORDS: Final[dict[str, Callable[[Any], Iterator[str]]]] = {
    "error": lambda _: iter(("error",)),
    "choices": _choices,
    "candidates": _candidates,
    "promptFeedback": lambda _: iter(("promptFeedback",)),
    "message": _filled,
    "usage": lambda _: iter(("usage",)),
    "done": lambda _: iter(("done",)),
}
"""Keys that tell a frame apart, and the words they give."""


def _dicts(values: Any) -> list[dict[str, Any]]:
    return (
        [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
    )
