"""`pipe`: what opens a pipeline, over any source. Streams have it as their method."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack, overload

from streamlib_parsers.events import ResponseEvent, RunEvent
from streamlib_parsers.items import CallOutput

if TYPE_CHECKING:
    from streamlib.pipeline.machine import PipeOptions
    from streamlib.pipeline.stages import AnyStage, Narrow, Same
    from streamlib.pipeline.stream import Pipeline
    from streamlib.pipeline.sync_stream import SyncPipeline

E = TypeVar("E")

Events: TypeAlias = AsyncIterable[ResponseEvent]
"""The stream of a response."""
Run: TypeAlias = AsyncIterable[RunEvent]
"""The events of a run."""
SyncEvents: TypeAlias = Iterable[ResponseEvent]
"""A response to iterate in a thread."""


# Only the last `Narrow` decides the type of the events: one overload for each number of stages
# before it.
@overload
def pipe(source: Pipeline[E], /, *stages: Same, **options: Unpack[PipeOptions]) -> Pipeline[E]: ...
@overload
def pipe(
    source: Events, /, *stages: Same, **options: Unpack[PipeOptions]
) -> Pipeline[ResponseEvent]: ...
@overload
def pipe(
    source: Events, last: Narrow[E], /, *same: Same, **options: Unpack[PipeOptions]
) -> Pipeline[E]: ...
@overload
def pipe(
    source: Events, s1: AnyStage, last: Narrow[E], /, *same: Same, **options: Unpack[PipeOptions]
) -> Pipeline[E]: ...
@overload
def pipe(
    source: Events,
    s1: AnyStage,
    s2: AnyStage,
    last: Narrow[E],
    /,
    *same: Same,
    **options: Unpack[PipeOptions],
) -> Pipeline[E]: ...
@overload
def pipe(
    source: Events,
    s1: AnyStage,
    s2: AnyStage,
    s3: AnyStage,
    last: Narrow[E],
    /,
    *same: Same,
    **options: Unpack[PipeOptions],
) -> Pipeline[E]: ...
@overload
def pipe(
    source: Run, last: Narrow[E], /, *same: Same, **options: Unpack[PipeOptions]
) -> Pipeline[E | CallOutput]: ...
@overload
def pipe(
    source: Run, s1: AnyStage, last: Narrow[E], /, *same: Same, **options: Unpack[PipeOptions]
) -> Pipeline[E | CallOutput]: ...
@overload
def pipe(source: Run, /, *stages: Same, **options: Unpack[PipeOptions]) -> Pipeline[RunEvent]: ...
@overload
def pipe(
    source: SyncPipeline[E], /, *stages: Same, **options: Unpack[PipeOptions]
) -> SyncPipeline[E]: ...
@overload
def pipe(
    source: SyncEvents, /, *stages: Same, **options: Unpack[PipeOptions]
) -> SyncPipeline[ResponseEvent]: ...
@overload
def pipe(
    source: SyncEvents, last: Narrow[E], /, *same: Same, **options: Unpack[PipeOptions]
) -> SyncPipeline[E]: ...
@overload
def pipe(
    source: SyncEvents,
    s1: AnyStage,
    last: Narrow[E],
    /,
    *same: Same,
    **options: Unpack[PipeOptions],
) -> SyncPipeline[E]: ...
@overload
def pipe(
    source: SyncEvents,
    s1: AnyStage,
    s2: AnyStage,
    last: Narrow[E],
    /,
    *same: Same,
    **options: Unpack[PipeOptions],
) -> SyncPipeline[E]: ...
@overload
def pipe(
    source: SyncEvents,
    s1: AnyStage,
    s2: AnyStage,
    s3: AnyStage,
    last: Narrow[E],
    /,
    *same: Same,
    **options: Unpack[PipeOptions],
) -> SyncPipeline[E]: ...
@overload
def pipe(
    source: Iterable[RunEvent], /, *stages: Same, **options: Unpack[PipeOptions]
) -> SyncPipeline[RunEvent]: ...
def pipe(source: Any, /, *stages: Any, **options: Unpack[PipeOptions]) -> Any:
    """A stream through stages, from left to right; it is a stream again.

        async with client.stream(prompt, model) as stream, pipe(stream, coalesce(1 / 30)) as events:
            async for event in events: ...

    ``stream.pipe(…)`` is the same. The pipeline owns its source from its entry: it is closed when
    a stage ends the stream, when an exception leaves a stage, and when the block ends. A stream
    that was not entered is entered.

    Args:
        source: an async iterable of events, or of a run's; or an iterable, then with `with`. The
            stream of a `SyncClient` may have stages of every kind; any other iterable none that
            awaits something, and time passes there only with its events.
        *stages: what this package makes; an object with the methods of a `Machine` serves once.
        **options: see `PipeOptions`.

    Raises:
        TypeError: the source cannot be iterated, or one of the stages is none.
        ValueError: a stage follows `window`.
    """
    # Imported here: every stream has this method, and few are piped.
    from streamlib.pipeline.stages import as_stages

    parts = as_stages(stages)
    extended = getattr(source, "extended", None)
    if extended is not None and source.is_new:
        return extended(parts, options)
    if hasattr(source, "__aiter__"):
        from streamlib.pipeline.stream import Pipeline

        return Pipeline(source, parts, options)
    from streamlib.pipeline.sync_stream import IterableDriver, SyncPipeline

    make = getattr(source, "_pipe_driver", None)  # of a client with a thread of its own
    if make is None and not isinstance(source, Iterable):
        raise TypeError(
            f"a {type(source).__name__} is no stream: neither `for` nor `async for` reads it"
        )
    return SyncPipeline(make or partial(IterableDriver, source), parts, options)
