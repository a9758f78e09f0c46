"""Recordings of responses, with their chunk boundaries and times.

    async with Recorder() as recorder, Client(http=recorder) as client: ...  # over the network
    save(recorder.recordings[0], "response.jsonl")

    async with Client(http=Replay(load("response.jsonl")), …) as client: ...  # without a network

They are recorded from any client and replayed at any speed, with any chunk boundaries.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

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

if TYPE_CHECKING:
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

_MODULES: Final = {
    "Recorder": "streamlib.recording.recorder",
    "Replay": "streamlib.recording.replay",
    "Split": "streamlib.recording.replay",
    "pieces": "streamlib.recording.replay",
    "random_pieces": "streamlib.recording.replay",
}
"""Name -> its module. Files are read without what sends requests."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
