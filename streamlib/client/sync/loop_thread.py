"""An event loop in a thread of its own, for callers that have none: anyio's blocking portal.

It starts at its first use and ends when it is told to, at the latest when the interpreter exits.
The thread is a daemon, so the interpreter does not wait for it before the exit handlers run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar, TypeVarTuple

import anyio
from anyio.from_thread import BlockingPortal

from streamlib.transport.closing import CLOSING_SECONDS

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

END_SECONDS: Final = CLOSING_SECONDS + 3.0
"""Maximum seconds to wait for connections to close: the exit must not hang."""

WAKE_SECONDS: Final[float | None] = 0.2 if os.name == "nt" else None
"""Seconds after which a thread that waits looks whether Ctrl-C was pressed. On Windows that wakes
no waiting thread; elsewhere it does, so that none has to look."""

CLOSED: Final = "the client is closed"


class LoopThread:
    """Runs coroutine functions for any thread but its own.

    A process that was forked has the object, and not its thread: each use raises there.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        """Guards start and end. Re-entrant: a finalizer may call while its thread is inside."""
        self._pid: int | None = None
        """The process that started the thread."""
        self._thread: threading.Thread | None = None
        self._portal: Future[BlockingPortal] | None = None
        """Set when the thread starts; has its result once the loop runs."""
        self._ended = False
        """Set by `end`."""

    @property
    def is_usable(self) -> bool:
        """Whether the loop runs, and this is neither its own thread nor a forked process."""
        is_running = self._portal is not None and not self._ended
        return is_running and not self._is_forked and not self.is_own_thread

    @property
    def _is_forked(self) -> bool:
        return self._pid is not None and self._pid != os.getpid()

    @property
    def is_own_thread(self) -> bool:
        """Whether this is the thread of the loop."""
        return self._thread is not None and self._thread.ident == threading.get_ident()

    def call(self, function: Callable[[*Arguments], Awaitable[T]], *args: *Arguments) -> T:
        """Runs a coroutine function in the loop, with the caller's context variables.

        An exception in the waiting thread, as Ctrl-C raises it, cancels the function and waits
        until it has closed its connection.

        Raises:
            RuntimeError: the loop was ended, the process was forked, or this is the loop's thread.
        """
        task = _Task(partial(function, *args))
        try:
            return result_of(self.start(task.run))
        except CancelledError:
            raise RuntimeError(CLOSED) from None
        except BaseException:
            self._cancel(task)
            raise

    def start(self, function: Callable[[], Awaitable[T]]) -> Future[T]:
        """Runs a coroutine function in the loop, in a task of its own, beside further calls.

        Raises:
            RuntimeError: as `call`.
        """
        if self._is_forked:
            raise RuntimeError(
                f"the client was opened in process {self._pid}, and its connections cannot be "
                "used in a process that was forked from it: create another client there"
            )
        if self._ended:
            raise RuntimeError(CLOSED)
        if self.is_own_thread:
            raise RuntimeError(
                "a hook or a key function runs in the client's own event loop, which would wait "
                "for itself: it cannot use the client"
            )
        # Before the lock: a process that is forked while it is held finds the mark.
        self._pid = os.getpid()
        with self._lock:
            if self._ended:
                raise RuntimeError(CLOSED)
            if self._portal is None:
                self._portal = Future()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._portal,), name="streamlib", daemon=True
                )
                self._thread.start()
            return self._portal.result().start_task_soon(function)

    def _cancel(self, task: _Task[Any]) -> None:
        """Ends a call that nobody waits for any more, wherever it is; nothing if it has ended."""
        task.is_cancelled = True
        if not task.has_started or task.has_ended.is_set():
            return
        with suppress(RuntimeError):  # the loop was ended meanwhile, which cancels it, too
            self.start(task.cancel)
            task.has_ended.wait(END_SECONDS)

    def end(self, last: Callable[[], Awaitable[None]]) -> None:
        """Runs a last coroutine function, cancels what still runs, and waits for the thread's end.

        A second call only waits. Does nothing in a forked process.
        """
        if self._is_forked:
            return
        closing: Future[None] | None = None
        with self._lock:
            if self._portal is not None and not self._ended:
                with suppress(RuntimeError):  # it died: a hook raised SystemExit in it
                    closing = self._portal.result().start_task_soon(last)
            self._ended = True
        if self._portal is not None and closing is not None:
            try:
                wait([closing], END_SECONDS)
            finally:
                portal = self._portal.result()
                with suppress(RuntimeError):
                    portal.start_task_soon(portal.stop, True)  # noqa: FBT003  # cancels the rest
        if self._thread is not None:
            self._thread.join(END_SECONDS)


def result_of(future: Future[T]) -> T:
    """The result of a future, once it is there; Ctrl-C ends the wait."""
    if WAKE_SECONDS is not None:
        while not future.done():
            wait([future], WAKE_SECONDS)
    return future.result()


class _Task(Generic[T]):
    """A call in the loop, which can be cancelled and then awaited."""

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self.is_cancelled = False
        """Set by the thread that called. Its loop does not begin the call afterwards."""
        self.has_ended = threading.Event()
        self._function = function
        self._scope: anyio.CancelScope | None = None
        """Set before `is_cancelled` is read: one of the two threads sees what the other set."""

    @property
    def has_started(self) -> bool:
        """Whether the loop may have begun the call."""
        return self._scope is not None

    async def run(self) -> T:
        """Runs the function; raises `CancelledError` of a future if cancelled."""
        try:
            with anyio.CancelScope() as self._scope:
                if not self.is_cancelled:
                    return await self._function()
            raise CancelledError
        finally:
            self.has_ended.set()

    async def cancel(self) -> None:
        """Cancels the function."""
        if self._scope is not None:
            self._scope.cancel()


def _run_loop(started: Future[BlockingPortal]) -> None:
    """The thread: runs calls until the portal is stopped."""

    async def serve() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    try:
        # asyncio, whatever the caller runs on: every transport works there.
        anyio.run(serve, backend="asyncio")
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)
