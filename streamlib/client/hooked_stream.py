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
        config: As of any stream.
        on_event: Called with each event, in order, right before the event is delivered.
    """

    def __init__(self, config: StreamConfig, on_event: OnEvent) -> None:
        super().__init__(config)
        self._on_event = on_event

    async def __anext__(self) -> ResponseEvent:
        if not self._pending:
            await self._exclusive(self._fill)
        await self._exclusive(partial(self._call_hook, self._pending[0]))
        return await super().__anext__()

    async def _next_batch(self) -> list[ResponseEvent]:
        if not self._pending:
            await self._exclusive(self._fill)
        if type(self._pending[0]) is not Failed:  # a failure alone is delivered by `__anext__`
            shown = 0
            # While a hook waits, a close in another task adds the end of the stream.
            while shown < len(self._pending):
                event = self._pending[shown]
                shown += 1
                if type(event) is Failed and self._config.errors == "raise":
                    break  # the next call raises it
                await self._exclusive(partial(self._call_hook, event))
        return await super()._next_batch()

    async def _call_hook(self, event: ResponseEvent) -> None:
        """Calls the hook; `aclose` in another task ends one that waits."""
        with anyio.CancelScope() as self._pause:
            if self._state in ENDED:
                self._pause.cancel()  # closed: no hook is waited for any more
            await call_hook(self._on_event, event)
        self._pause = None
