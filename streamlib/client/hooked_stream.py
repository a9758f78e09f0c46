"""A stream that shows each event to the caller's `on_event` before it delivers it.

A class of its own, so that a stream without the hook does not even look for it.
"""

from __future__ import annotations

from functools import partial

import anyio

from streamlib.client.hooks import OnEvent, call_hook
from streamlib.client.stream import ResponseStream
from streamlib.client.stream_config import StreamConfig
from streamlib.client.stream_state import ENDED
from streamlib_parsers.events import Failed, ResponseEvent


class HookedStream(ResponseStream):
    """A `ResponseStream` with a hook.

    Args:
        config: as of any stream.
        on_event: called with each event, in order, right before the event is delivered.
    """

    def __init__(self, config: StreamConfig, on_event: OnEvent) -> None:
        super().__init__(config)
        self._on_event = on_event

    async def __anext__(self) -> ResponseEvent:
        await show_next(self, self._on_event)
        return await super().__anext__()

    async def _next_batch(self) -> list[ResponseEvent]:
        await show_batch(self, self._on_event)
        return await super()._next_batch()


async def show_next(stream: ResponseStream, on_event: OnEvent) -> None:
    """Calls the hook with the event that is delivered next."""
    if not stream._pending:
        await stream._exclusive(stream._fill)
    await stream._exclusive(partial(_call_hook, stream, on_event, stream._pending[0]))


async def show_batch(stream: ResponseStream, on_event: OnEvent) -> None:
    """Calls the hook with each event of the batch that is delivered next."""
    if not stream._pending:
        await stream._exclusive(stream._fill)
    if type(stream._pending[0]) is Failed:
        return  # a failure alone is delivered by `__anext__`
    shown = 0
    # While a hook waits, a close in another task adds the end of the stream.
    while shown < len(stream._pending):
        event = stream._pending[shown]
        shown += 1
        if type(event) is Failed and stream._config.errors == "raise":
            break  # the next call raises it
        await stream._exclusive(partial(_call_hook, stream, on_event, event))


async def _call_hook(stream: ResponseStream, on_event: OnEvent, event: ResponseEvent) -> None:
    """Calls the hook; `aclose` in another task ends one that waits."""
    with anyio.CancelScope() as stream._pause:
        if stream._state in ENDED:
            stream._pause.cancel()  # closed: no hook is waited for any more
        await call_hook(on_event, event)
    stream._pause = None
