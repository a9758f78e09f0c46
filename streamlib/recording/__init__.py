"""Recordings of responses, with their chunk boundaries and times.

    async with Recorder() as recorder, Client(http=recorder) as client: ...  # over the network
    save(recorder.recordings[0], "response.jsonl")

    async with Client(http=Replay(load("response.jsonl")), …) as client: ...  # without a network

They are recorded from any client and replayed at any speed, with any chunk boundaries.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any, Final

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

_MODULES: Final = {
    "Recorder": "streamlib.recording.recorder",
    "Replay": "streamlib.recording.replay",
    "Split": "streamlib.recording.replay",
}
"""Name -> its module. Files are read without what sends requests."""

_LEAVING: Final = {
    "is_recording": ("files", "`load_all` raises `ValueError` for any other file"),
    "kept_headers": ("files", "a `Recorder` keeps them"),
    "parse": ("files", "`load_all` reads a file"),
    "pieces": ("replay", "`Replay(…, split=…)` splits a recording"),
    "random_pieces": ("replay", '`Replay(…, split="random")` splits a recording'),
}
"""Names of 0.1.0 that are no part of the public API any more -> their module, and what to use."""


def __getattr__(name: str) -> Any:
    if name in _LEAVING:
        module, instead = _LEAVING[name]
        message = f"streamlib.recording.{name} will go: {instead}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(f"streamlib.recording.{module}"), name)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
