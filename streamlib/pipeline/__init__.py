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
    from streamlib.pipeline.attempts import StartFailure as StartFailure
    from streamlib.pipeline.branches import READ_AHEAD as READ_AHEAD
    from streamlib.pipeline.endings import OpenItems as OpenItems
    from streamlib.pipeline.event_stages import SUPERSEDED as SUPERSEDED
    from streamlib.pipeline.event_stages import aggregate as aggregate
    from streamlib.pipeline.event_stages import ended as ended
    from streamlib.pipeline.event_stages import filter_events as filter_events
    from streamlib.pipeline.event_stages import map_async as map_async
    from streamlib.pipeline.event_stages import map_events as map_events
    from streamlib.pipeline.event_stages import only as only
    from streamlib.pipeline.event_stages import tap as tap
    from streamlib.pipeline.event_stages import until as until
    from streamlib.pipeline.event_stages import window as window
    from streamlib.pipeline.event_stages import without as without
    from streamlib.pipeline.item_streams import ItemStream as ItemStream
    from streamlib.pipeline.item_streams import ItemStreams as ItemStreams
    from streamlib.pipeline.item_streams import SyncItemStream as SyncItemStream
    from streamlib.pipeline.item_streams import SyncItemStreams as SyncItemStreams
    from streamlib.pipeline.machine import Clock as Clock
    from streamlib.pipeline.machine import Machine as Machine
    from streamlib.pipeline.machine import PipeOptions as PipeOptions
    from streamlib.pipeline.measure import Measure as Measure
    from streamlib.pipeline.measure import MeasuredUse as MeasuredUse
    from streamlib.pipeline.opening import pipe as pipe
    from streamlib.pipeline.pacing import coalesce as coalesce
    from streamlib.pipeline.pacing import smooth as smooth
    from streamlib.pipeline.pacing import timeout as timeout
    from streamlib.pipeline.sharing import Merge as Merge
    from streamlib.pipeline.sharing import ReaderStream as ReaderStream
    from streamlib.pipeline.sharing import Share as Share
    from streamlib.pipeline.sharing import Tee as Tee
    from streamlib.pipeline.sharing import merge as merge
    from streamlib.pipeline.sharing import share as share
    from streamlib.pipeline.sharing import tee as tee
    from streamlib.pipeline.stages import Keep as Keep
    from streamlib.pipeline.stages import Narrow as Narrow
    from streamlib.pipeline.stages import chain as chain
    from streamlib.pipeline.stages import from_machine as from_machine
    from streamlib.pipeline.stages import through as through
    from streamlib.pipeline.starts import Start as Start
    from streamlib.pipeline.starts import StartedStream as StartedStream
    from streamlib.pipeline.starts import fallback as fallback
    from streamlib.pipeline.starts import race as race
    from streamlib.pipeline.stream import Pipeline as Pipeline
    from streamlib.pipeline.sync_stream import SyncPipeline as SyncPipeline
    from streamlib.pipeline.text_stages import blocks as blocks
    from streamlib.pipeline.text_stages import guard as guard
    from streamlib.pipeline.text_stages import limit as limit
    from streamlib.pipeline.text_stages import lines as lines
    from streamlib.pipeline.text_stages import map_text as map_text
    from streamlib.pipeline.text_stages import replace as replace
    from streamlib.pipeline.text_stages import sentences as sentences
    from streamlib.pipeline.text_stages import stop_at as stop_at
    from streamlib.pipeline.text_stages import words as words
    from streamlib_parsers.events import DELTA_KEYS as DELTA_KEYS

__getattr__, __dir__ = lazy(
    __name__,
    {
        "streamlib.pipeline.attempts": ("StartFailure",),
        "streamlib.pipeline.branches": ("READ_AHEAD",),
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
        "streamlib.pipeline.sharing": (
            "Merge",
            "ReaderStream",
            "Share",
            "Tee",
            "merge",
            "share",
            "tee",
        ),
        "streamlib.pipeline.stages": ("Keep", "Narrow", "chain", "from_machine", "through"),
        "streamlib.pipeline.starts": ("Start", "StartedStream", "fallback", "race"),
        "streamlib.pipeline.stream": ("Pipeline",),
        "streamlib.pipeline.sync_stream": ("SyncPipeline",),
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
    },
)
