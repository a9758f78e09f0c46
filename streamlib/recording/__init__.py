"""Recordings of responses, with their chunk boundaries and times.

    async with Recorder() as recorder, Client(http=recorder) as client: ...  # over the network
    save(recorder.recordings[0], "response.jsonl")

    async with Client(http=Replay(load("response.jsonl")), …) as client: ...  # without a network

They are recorded from any client and replayed at any speed, with any chunk boundaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlib.lazy import lazy
from streamlib.recording.files import (
    Chunk,
    RecordedRequest,
    Recording,
    append,
    dump,
    dump_events,
    from_body,
    load,
    load_all,
    load_events,
    save,
)

if TYPE_CHECKING:
    from streamlib.recording.recorder import Recorder
    from streamlib.recording.replay import Replay, Split

__all__ = [
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
    "load",
    "load_all",
    "load_events",
    "save",
]

# Files are read without what sends requests.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "streamlib.recording.recorder": ("Recorder",),
        "streamlib.recording.replay": ("Replay", "Split"),
    },
)
