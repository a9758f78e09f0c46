"""The frames of a captured stream with their offsets and the wire's names for them.

The body is split so that no chunk ends more than one frame. Each chunk is fed to the wire's own
framing and to the parser. So the offsets of frames are known, although neither counts bytes.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from streamlib.inspection.capture import Capture, Report, body_events, end_of_input, no_report
from streamlib.wires.frame_offsets import frame_offsets
from streamlib_parsers.errors import ParseFailure
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.framing import Frame
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import decode_any, objects_in
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import parser, wire

COMPLETE_BODY: Final = "complete body"
NO_FRAME: Final = "(no frame)"
END_OF_INPUT: Final = "end of input"


class Step(Struct, frozen=True):
    """One frame and what the parser emitted for it.

    Attributes:
        start: offset of its first byte.
        end: offset after its last byte.
        kind: name of the frame on the wire.
        events: events that the parser emitted for it.
        is_read: whether it was parsed: frames after the terminal event are not.
    """

    start: int
    end: int
    kind: str
    events: list[ResponseEvent]
    is_read: bool = True


def steps(capture: Capture, report: Report = no_report) -> Iterator[Step]:
    """Yields every frame, also those after the one with the terminal event, which are not read.

    If the terminal event is emitted only at the end of input, that end is the last step.

    Args:
        capture: the captured response.
        report: called with the number of bytes parsed so far.
    """
    body = capture.recording.body
    if capture.is_complete_body:
        yield Step(0, len(body), COMPLETE_BODY, body_events(capture))
        return
    wire_api = capture.wire_api
    framing = wire(wire_api).framing(LIMITS)
    parse = parser(wire_api, **capture.options)
    frame_start = 0
    for start, end in frame_offsets(wire_api, body):
        frames = framing.feed(body[start:end])
        if parse.ended:
            # What follows a bad frame may be nearly all of the response: it is shown.
            yield Step(start, end, frame_names(wire_api, frames) or NO_FRAME, [], is_read=False)
            report(end)
            continue
        events = parse.feed(body[start:end])
        if frames or events:
            # The parser may fail on bytes that are not a complete frame.
            kind = frame_names(wire_api, frames) or NO_FRAME
            yield Step(frame_start, end, kind, events)
            frame_start = end
        if parse.ended and not body[end:].strip():
            return
        report(end)
    if parse.ended:
        return
    kind = END_OF_INPUT
    last = frame_names(wire_api, framing.close())
    if last:
        kind = f"{last}, {END_OF_INPUT}"
    yield Step(frame_start, len(body), kind, end_of_input(capture, parse))


# --- what the wire calls a frame ---


def frame_names(wire_api: WireApi, frames: list[Frame]) -> str:
    """The names of the frames that one chunk completed."""
    return ", ".join(_frame_name(wire_api, frame) for frame in frames)


def _frame_name(wire_api: WireApi, frame: Frame) -> str:
    if frame.data is None:
        return "stray line"
    # Every frame of invoke is named `chunk`: the useful name is in the inner frame.
    if frame.event and wire_api != "invoke":
        return frame.event
    try:
        value = decode_any(frame.data)
        if wire_api == "invoke":
            value = decode_any(b64decode(value["bytes"]))
    except (ParseFailure, ValueError, LookupError, TypeError):
        # Not JSON (`[DONE]`), or an invoke message without `bytes`, for example an exception.
        return frame.data[:20].decode("utf-8", "replace").strip() or "(empty)"
    if not isinstance(value, dict):
        return type(value).__name__
    if isinstance(value.get("type"), str):
        return str(value["type"])
    return _name_by_keys(value)


def _name_by_keys(value: dict[str, Any]) -> str:
    """A name for a frame of a wire without names, made from its keys."""
    names: list[str] = []
    if value.get("error"):
        names.append("error")
    if value.get("choices"):
        names += _choice_names(value["choices"])
    if value.get("candidates"):
        names += _candidate_names(value["candidates"])
    if value.get("promptFeedback"):
        names.append("promptFeedback")
    if value.get("message"):
        names += _message_names(value["message"])
    if value.get("usage"):
        names.append("usage")
    if value.get("done"):
        names.append("done")
    # Each name once, in order of first occurrence.
    return " ".join(dict.fromkeys(names)) or _container_keys(value)


def _container_keys(value: dict[str, Any]) -> str:
    """The keys of objects and lists, for a frame without a known key."""
    keys = [key for key, inner in value.items() if isinstance(inner, (dict, list))]
    return " ".join(keys) or "(nothing)"


def _choice_names(choices: Any) -> list[str]:
    """Wire chat: `choices[].delta`, `choices[].message`, `choices[].finish_reason`."""
    names: list[str] = []
    for choice in objects_in(choices):
        finish_reason = choice.get("finish_reason")
        fields = _message_names(choice.get("delta") or choice.get("message"))
        names += fields
        if finish_reason:
            names.append(f"finish_reason {finish_reason}")
        elif not fields:
            names.append("role")
    return names


def _candidate_names(candidates: Any) -> list[str]:
    """Wire gemini: `candidates[].content.parts[]`, `candidates[].finishReason`."""
    names: list[str] = []
    for candidate in objects_in(candidates):
        content = candidate.get("content")
        if isinstance(content, dict):
            names += [_part_name(part) for part in objects_in(content.get("parts"))]
        if candidate.get("finishReason"):
            names.append(f"finishReason {candidate['finishReason']}")
    return names


def _part_name(part: dict[str, Any]) -> str:
    if part.get("thought"):
        return "thought"
    for key in part:
        # A signature stands beside the field that names the kind of the part.
        if key != "thoughtSignature":
            return key
    return "part"


def _message_names(message: Any) -> list[str]:
    """Wire ollama: `message`; wire chat: `delta`. Every frame has a role, so it names nothing."""
    if not isinstance(message, dict):
        return []
    return [key for key, inner in message.items() if inner and key != "role"]
