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
    from streamlib.pipeline.attempts import StartFailure
    from streamlib.pipeline.branches import READ_AHEAD
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
    from streamlib.pipeline.item_streams import (
        ItemStream,
        ItemStreams,
        SyncItemStream,
        SyncItemStreams,
    )
    from streamlib.pipeline.machine import Clock, Machine, PipeOptions
    from streamlib.pipeline.measure import Measure, MeasuredUse
    from streamlib.pipeline.opening import pipe
    from streamlib.pipeline.pacing import coalesce, smooth, timeout
    from streamlib.pipeline.sharing import Merge, ReaderStream, Share, Tee, merge, share, tee
    from streamlib.pipeline.stages import Keep, Narrow, chain, from_machine, through
    from streamlib.pipeline.starts import Start, StartedStream, fallback, race
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
    "streamlib.pipeline.item_streams": (
        "ItemStream",
        "ItemStreams",
        "SyncItemStream",
        "SyncItemStreams",
    ),
    "streamlib.pipeline.machine": ("Clock", "Machine", "PipeOptions"),
    "streamlib.pipeline.measure": ("Measure", "MeasuredUse"),
    "streamlib.pipeline.opening": ("pipe",),
    "streamlib.pipeline.pacing": ("coalesce", "smooth", "timeout"),
    "streamlib.pipeline.stages": ("Keep", "Narrow", "chain", "from_machine", "through"),
    "streamlib.pipeline.stream": ("Pipeline",),
    "streamlib.pipeline.sync_stream": ("SyncPipeline",),
    "streamlib.pipeline.attempts": ("StartFailure",),
    "streamlib.pipeline.sharing": (
        "Merge",
        "ReaderStream",
        "Share",
        "Tee",
        "merge",
        "share",
        "tee",
    ),
    "streamlib.pipeline.starts": ("Start", "StartedStream", "fallback", "race"),
    "streamlib.pipeline.branches": ("READ_AHEAD",),
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
    "Clock",
    "ItemStream",
    "ItemStreams",
    "Keep",
    "Machine",
    "Measure",
    "MeasuredUse",
    "Merge",
    "Narrow",
    "OpenItems",
    "PipeOptions",
    "Pipeline",
    "ReaderStream",
    "Share",
    "Start",
    "StartFailure",
    "StartedStream",
    "SyncItemStream",
    "SyncItemStreams",
    "SyncPipeline",
    "Tee",
    "aggregate",
    "blocks",
    "chain",
    "coalesce",
    "ended",
    "fallback",
    "filter_events",
    "from_machine",
    "guard",
    "limit",
    "lines",
    "map_async",
    "map_events",
    "map_text",
    "merge",
    "only",
    "pipe",
    "race",
    "replace",
    "sentences",
    "share",
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
