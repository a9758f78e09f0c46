"""Closing connections while the closing task may itself be cancelled."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Coroutine, Generator
from typing import Any, Final

CLOSING_SECONDS: Final = 2.0
"""Limit for closing a connection."""

EXHAUST_BYTES: Final = 1 << 20
"""Limit for `exhaust`: a connection that is closed has at most its buffers left."""

_SCOPE_MESSAGE: Final = "cancel scope"
"""Part of the message of a cancellation that comes from an anyio scope, on asyncio."""

_CHUNK_COST: Final = 256
"""Added to the size of each chunk, so that an endless iterator of empty chunks ends too."""


async def exhaust(chunks: AsyncIterator[bytes]) -> None:
    """Reads an iterator until it ends or raises, then closes it.

    The connection under it is closed already, so what is left is small and available at once.
    """
    with contextlib.suppress(Exception):
        size = 0
        while size < EXHAUST_BYTES:
            size += len(await anext(chunks)) + _CHUNK_COST
    close = getattr(chunks, "aclose", None)
    if close is not None:
        # It raises when another task is reading the iterator; that task ends the iterator then.
        with contextlib.suppress(Exception):
            await close()


class ShieldedAwait:
    """Awaits a coroutine that closes a connection, and postpones one cancellation until it is done.

    anyio's shields stop the cancellations of anyio and trio. asyncio's own `Task.cancel` ignores
    them: raised at a checkpoint that waits for nothing (of a lock, for example), it would leave the
    socket open. So the first cancellation that arrives at a checkpoint is raised after the
    coroutine's end. One that arrives during a wait for I/O is passed on, since that wait may not
    end by itself. One of an anyio scope is passed on too: the caller has a shield, so the scope is
    inside of it, and only the scope may catch its cancellation.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, None]:
        postponed: BaseException | None = None
        thrown: BaseException | None = None
        value: Any = None
        while True:
            try:
                awaited = self._step(value, thrown)
            except StopIteration:
                break
            except BaseException:
                if postponed is None:
                    raise
                break  # the cancellation is the older exception: it is raised below
            value = thrown = None
            try:
                value = yield awaited
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001  # whatever the event loop throws in
                # A checkpoint yields None; a wait for I/O yields a future or a trap.
                is_native = _SCOPE_MESSAGE not in str(error)
                if awaited is None and postponed is None and is_native:
                    postponed = error
                else:
                    thrown = error
        if postponed is not None:
            raise postponed

    def _step(self, value: Any, error: BaseException | None) -> Any:
        """Runs the coroutine to its next wait, with the result of the last wait."""
        if error is None:
            return self._coroutine.send(value)
        return self._coroutine.throw(error)
