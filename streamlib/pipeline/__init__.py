"""Event streams as values that compose: stages over lists and streams, one stream for several.

    screen = chain(coalesce(1 / 30), without(TokenCount))                       # a value
    async with client.stream(prompt, model=…) as stream, stream.pipe(screen) as events:
        async for event in events: ...
    events.response                                                             # what came out

A *stage* is a value without state. Each use makes its own *machine* (`Machine`), which knows no
event loop. Stages apply from left to right, and all of them together are one call. What `pipe`
returns is a stream like any other, and what leaves it is a whole one: every item is closed, the
terminal event is the last, `seq` has no gaps; only selecting stages (`only`, `without`,
`filter_events`, `aggregate`, `window`) leave a selection, with the numbers of the originals. No
stage delays the first token unless its documentation says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlib.lazy import lazy

if TYPE_CHECKING:
    from streamlib.pipeline.branches import READ_AHEAD, Branch, TeeReader, tee
    from streamlib.pipeline.endings import OpenItems
    from streamlib.pipeline.event_stages import (
        SUPERSEDED,
        aggregate,
        ended,
        filter_events,
        map_async,
        map_events,
        only,
        tap,
        until,
        window,
        without,
    )
    from streamlib.pipeline.machine import Clock, Machine
    from streamlib.pipeline.measure import Measure, MeasuredUse
    from streamlib.pipeline.opening import PipeOptions, pipe
    from streamlib.pipeline.pacing import coalesce, smooth, timeout
    from streamlib.pipeline.stages import Keep, Narrow, chain, from_machine, through
    from streamlib.pipeline.stream import Pipeline
    from streamlib.pipeline.sync_stream import SyncPipeline
    from streamlib.pipeline.text_stages import (
        blocks,
        guard,
        limit,
        lines,
        map_text,
        replace,
        sentences,
        stop_at,
        words,
    )
    from streamlib_parsers.events import DELTA_KEYS

_MODULES = {
    "streamlib.pipeline.endings": ("OpenItems",),
    "streamlib.pipeline.event_stages": (
        "SUPERSEDED",
        "aggregate",
        "ended",
        "filter_events",
        "map_async",
        "map_events",
        "only",
        "tap",
        "until",
        "window",
        "without",
    ),
    "streamlib.pipeline.machine": ("Clock", "Machine"),
    "streamlib.pipeline.measure": ("Measure", "MeasuredUse"),
    "streamlib.pipeline.opening": ("PipeOptions", "pipe"),
    "streamlib.pipeline.pacing": ("coalesce", "smooth", "timeout"),
    "streamlib.pipeline.stages": ("Keep", "Narrow", "chain", "from_machine", "through"),
    "streamlib.pipeline.stream": ("Pipeline",),
    "streamlib.pipeline.sync_stream": ("SyncPipeline",),
    "streamlib.pipeline.branches": ("READ_AHEAD", "Branch", "TeeReader", "tee"),
    "streamlib.pipeline.text_stages": (
        "blocks",
        "guard",
        "limit",
        "lines",
        "map_text",
        "replace",
        "sentences",
        "stop_at",
        "words",
    ),
    "streamlib_parsers.events": ("DELTA_KEYS",),
}

__all__ = [
    "DELTA_KEYS",
    "READ_AHEAD",
    "SUPERSEDED",
    "Branch",
    "Clock",
    "Keep",
    "Machine",
    "Measure",
    "MeasuredUse",
    "Narrow",
    "OpenItems",
    "PipeOptions",
    "Pipeline",
    "SyncPipeline",
    "TeeReader",
    "aggregate",
    "blocks",
    "chain",
    "coalesce",
    "ended",
    "filter_events",
    "from_machine",
    "guard",
    "limit",
    "lines",
    "map_async",
    "map_events",
    "map_text",
    "only",
    "pipe",
    "replace",
    "sentences",
    "smooth",
    "stop_at",
    "tap",
    "tee",
    "through",
    "timeout",
    "until",
    "window",
    "without",
    "words",
]

__getattr__, __dir__ = lazy(__name__, _MODULES)
