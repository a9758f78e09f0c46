"""Stages over event streams: small machines with `feed` and `close`, run over a list or a stream.

    async with (
        client.stream(prompt, model=…) as stream,
        pipe(stream, coalesce(1 / 60), only(OutputTextDelta)) as events,
    ):
        async for event in events: ...

Stages apply from left to right, and all of them together are one call. A stage never reorders
events, and none delays the first token. Where a stage may buffer events for a time (`coalesce`, or
a stage of yours that is not a `Simple`), one task in a group of the ``async with`` block reads
ahead, so that buffered events are emitted in time although no further event arrives; otherwise no
task is started.
"""

from __future__ import annotations

from streamlib.pipeline.chain import Chain, through
from streamlib.pipeline.stages import (
    SUPERSEDED,
    Clock,
    Coalesce,
    Measure,
    Only,
    PipelineStage,
    Simple,
    Until,
    aggregate,
    coalesce,
    ended,
    only,
    until,
)
from streamlib.pipeline.stream import Pipeline, pipe
from streamlib.pipeline.tee import READ_AHEAD, Branch, TeeReader, tee
from streamlib_parsers.events import DELTA_KEYS

__all__ = [
    "DELTA_KEYS",
    "READ_AHEAD",
    "SUPERSEDED",
    "Branch",
    "Chain",
    "Clock",
    "Coalesce",
    "Measure",
    "Only",
    "Pipeline",
    "PipelineStage",
    "Simple",
    "TeeReader",
    "Until",
    "aggregate",
    "coalesce",
    "ended",
    "only",
    "pipe",
    "tee",
    "through",
    "until",
]
