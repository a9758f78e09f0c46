"""Recordings of responses, with their chunk boundaries and times.

    async with Recorder() as recorder, Client(http=recorder) as client: ...  # over the network
    save(recorder.recordings[0], "response.jsonl")

    async with Client(http=Replay(load("response.jsonl")), …) as client: ...  # without a network

They are recorded from any client and replayed at any speed, with any chunk boundaries.
"""

from __future__ import annotations

from streamlib.recording.files import (
    KEPT_HEADERS,
    Chunk,
    RecordedRequest,
    Recording,
    append,
    dump,
    dump_events,
    from_body,
    is_recording,
    kept_headers,
    load,
    load_all,
    load_events,
    of_another_kind,
    parse,
    read,
    save,
)
from streamlib.recording.recorder import Recorder
from streamlib.recording.replay import Replay, Split, pieces, random_pieces

__all__ = [
    "KEPT_HEADERS",
    "Chunk",
    "RecordedRequest",
    "Recorder",
    "Recording",
    "Replay",
    "Split",
    "append",
    "dump",
    "dump_events",
    "from_body",
    "is_recording",
    "kept_headers",
    "load",
    "load_all",
    "load_events",
    "of_another_kind",
    "parse",
    "pieces",
    "random_pieces",
    "read",
    "save",
]
