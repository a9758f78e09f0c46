"""Finds the responses in a file of several streams, one after another or mixed."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import msgspec
from msgspec import Struct

from streamlib.inspection.file_parts import FilePart
from streamlib.inspection.wire_markers import likely_wire
from streamlib.wires.frame_offsets import frame_offsets
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import is_json_bytes

_FIRST_FRAMES: Final[dict[WireApi, tuple[bytes, ...]]] = {
    "messages": (b'"type":"message_start"', b'"type": "message_start"'),
    "responses": (b'"type":"response.created"', b'"type": "response.created"'),
    "interactions": (b'"event_type":"interaction.created"',),
    "cohere": (b'"type":"message-start"', b'"type": "message-start"'),
    "converse": (b":event-type\x07\x00\x0cmessageStart",),
}
"""Wire -> what only the first frame of a response has. In a text its quotes would be escaped."""


class _FrameHead(Struct):
    """Of a frame what tells one response from the next.

    Attributes:
        id: wire chat: the response's id.
        responseId: wire gemini: the same.
        done: wire ollama: whether it is the last frame.
    """

    id: str | None = None
    responseId: str | None = None  # noqa: N815
    done: bool = False


_read_head: Final = msgspec.json.Decoder(_FrameHead).decode


def starts_of_responses(wire_api: WireApi, body: bytes) -> list[int]:
    """Where the responses of a body begin, in bytes; the first begins at 0.

    Args:
        wire_api: the wire of all of them.
        body: the streams, one after another.
    """
    first_frames = _FIRST_FRAMES.get(wire_api)
    if first_frames is None:
        return _starts_by_ends(wire_api, body)
    starts: list[int] = []
    if sum(body.count(text) for text in first_frames) > 1:
        for start, end in frame_offsets(wire_api, body):
            for text in first_frames:
                offset = body.find(text, start, end)
                if offset >= 0:
                    starts.append(_line_of(body, start, offset))
    return [0, *starts[1:]]


def _line_of(body: bytes, start: int, offset: int) -> int:
    """Where a frame begins that has a text at an offset: what precedes it may be a frame that was
    cut, without a line end."""
    for field in (b"event:", b"data:"):
        line = body.rfind(field, start, offset)
        if line >= 0:
            return line
    return start


def _starts_by_ends(wire_api: WireApi, body: bytes) -> list[int]:
    """The same on wires whose first frame is like the others: another id, or a frame after the
    end."""
    if wire_api == "chat" and _has_one_id(body):
        return [0]
    starts = [0]
    current_id: str | None = None
    is_over = False
    for start, end in frame_offsets(wire_api, body):
        frame = body[start:end]
        head = _head_of(frame)
        if head is None:
            is_over = is_over or b"[DONE]" in frame[:40]
            continue
        frame_id = head.id or head.responseId
        is_other = current_id is not None and frame_id is not None and frame_id != current_id
        is_last = head.done or b'"finishReason"' in frame
        # Gemini repeats its finishReason, or sends the usage after it.
        is_further = wire_api != "gemini" or (not is_last and b'"parts"' in frame)
        if (is_over and is_further) or (is_other and _may_begin(wire_api, frame)):
            starts.append(start)
            current_id = None
            is_over = False
        current_id = current_id or frame_id
        is_over = is_over or (is_last and wire_api != "chat")
    return starts


def _has_one_id(body: bytes) -> bool:
    """Whether one id is in all frames, and one end: nothing then has to be decoded."""
    head = _head_of(body.partition(b"\n\n")[0])
    if head is None or not head.id or b"[DONE]" in body.rstrip()[:-8]:
        return False
    # The end has none, and an error may have none.
    return body.count(f'"{head.id}"'.encode()) >= body.count(b"\ndata:") - 1


def _head_of(frame: bytes) -> _FrameHead | None:
    data = frame.strip()
    if not data.startswith(b"{"):
        data = data.partition(b"data:")[2]
    try:
        return _read_head(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _may_begin(wire_api: WireApi, frame: bytes) -> bool:
    """Whether a frame with another id begins another response: some servers of Chat give each
    chunk an id of its own, and few repeat the role."""
    return wire_api != "chat" or b'"role"' in frame


def is_mixed(part: FilePart) -> bool:
    """Whether frames of several streams alternate in it, as in the log of a program that asks
    several things at once. Their ids tell: one comes again after another."""
    ids = [frame_id for frame_id, _ in _frames_with_ids(part)]
    seen: set[str] = set()
    previous: str | None = None
    for frame_id in ids:
        if frame_id is None or frame_id == previous:
            continue
        if frame_id in seen:
            return _each_begins(part)
        seen.add(frame_id)
        previous = frame_id
    return False


def _each_begins(part: FilePart) -> bool:
    """Whether the first frame of each id may begin a response: some servers of Chat give each
    chunk an id of its own."""
    seen: set[str] = set()
    for frame_id, frame in _frames_with_ids(part):
        if frame_id is None or frame_id in seen:
            continue
        if not _may_begin("chat", frame):
            return False
        seen.add(frame_id)
    return True


def open_mixed(part: FilePart) -> list[FilePart]:
    """Each of the streams, in the order in which they begin.

    A `[DONE]` has no id: it ends the first stream whose frames are over. Another frame without an
    id is one of the stream that sent the frame before it.
    """
    frames = _frames_with_ids(part)
    last_numbers = {frame_id: number for number, (frame_id, _) in enumerate(frames) if frame_id}
    over = sorted(last_numbers, key=last_numbers.__getitem__)
    streams: dict[str, list[bytes]] = {}
    current = ""
    for number, (frame_id, frame) in enumerate(frames):
        is_end = frame_id is None and b"[DONE]" in frame[:40]
        if is_end and over and last_numbers[over[0]] < number:
            streams[over.pop(0)].append(frame)
            continue
        current = frame_id or current or over[0]
        streams.setdefault(current, []).append(frame)
    return [part.holding(b"".join(stream)) for stream in streams.values()]


def _frames_with_ids(part: FilePart) -> list[tuple[str | None, bytes]]:
    """The frames of streams of Chat, each with the id of its response; none where all have one."""
    body = part.body
    wire_api = part.recording.wire_api or likely_wire(body)
    if wire_api != "chat" or is_json_bytes(body) or _has_one_id(body):
        return []
    frames: list[tuple[str | None, bytes]] = []
    for start, end in frame_offsets(wire_api, body):
        frame = body[start:end]
        head = _head_of(frame)
        frames.append((head.id or None if head is not None else None, frame))
    return frames


def has_several(part: FilePart) -> bool:
    """Whether there are several streams in it."""
    return len(_starts(part)) > 1


def open_several(part: FilePart) -> list[FilePart]:
    """Each of the streams."""
    body = part.body
    ends = [*_starts(part), len(body)]
    return [part.holding(body[start:end]) for start, end in pairwise(ends)]


def _starts(part: FilePart) -> list[int]:
    body = part.body
    wire_api = part.recording.wire_api or likely_wire(body)
    if wire_api is None or is_json_bytes(body):
        return [0]
    return starts_of_responses(wire_api, body)
