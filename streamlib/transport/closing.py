"""Closing what may be closed only once, whatever is being cancelled meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Coroutine, Generator
from functools import partial
from typing import Any, Final

CLOSING_SECONDS: Final = 2.0
"""The longest that closing a connection may take."""

RUN_OUT_BYTES: Final = 1 << 20


async def exhaust(chunks: AsyncIterator[bytes]) -> None:
    """Pulls what an iterator still has, until it raises: the connection under it is closed, so it is little and comes at once."""
    with contextlib.suppress(Exception):
        size = 0
        while size < RUN_OUT_BYTES:
            size += len(await anext(chunks)) + 256
    close = getattr(chunks, "aclose", None)
    if close is not None:
        with contextlib.suppress(Exception):  # another task is reading it, and ends it with that
            await close()


class ShieldedAwait:
    """Awaits a coroutine. A cancellation that comes at a mere checkpoint, a wait for nothing, is kept until the coroutine is done.

    anyio's shields hold back anyio's and trio's cancellations; asyncio's own `Task.cancel` knows none, and would leave a lock's
    checkpoint with the socket behind it still open.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, None]:
        kept: BaseException | None = None
        step = partial(self._coroutine.send, None)
        while True:
            try:
                waiting = step()
            except StopIteration:
                break
            except BaseException:
                if kept is None:
                    raise
                break
            try:
                step = partial(self._coroutine.send, (yield waiting))
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001  # the loop's cancellation, given on or kept
                kept, known = (error, False) if waiting is None and kept is None else (kept, True)
                step = (
                    partial(self._coroutine.throw, error)
                    if known
                    else partial(self._coroutine.send, None)
                )
        if kept is not None:
            raise kept
