"""One stream of several starts: those after the first serve where it fails, or where it is late.

    starts = [lambda: client.stream(prompt, "a:x"), lambda: client.stream(prompt, "b:y")]
    async with fallback(starts) as events: ...             # the second where the first fails
    async with race(starts, after=0.8) as events: ...      # and where it is silent for 0.8 s

Only output of the model decides: `Created`, `RateLimits`, `Notice`, `ResponseMetadata`,
`TokenCount` and `OutputItemAdded` are buffered until the first delta or finished item. So the
reader gets one response, of one start. Each start is opened, read and closed in a task of its own
in the block, so that one which is late can be left whatever it waits for.
"""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import Any, Final, Self, TypeAlias

import anyio

from streamlib.pipeline.attempts import Attempts, Opening, StartFailure, is_output
from streamlib.pipeline.branches import Signal, TaskBlock, TeeReader, owned, read_lists
from streamlib.pipeline.event_stages import map_events
from streamlib.pipeline.machine import PipeOptions, Stage
from streamlib.pipeline.numbers import check_seconds
from streamlib.pipeline.reading import BatchSource
from streamlib.pipeline.statements import SyncOnly, check_async
from streamlib.pipeline.stream import Pipeline
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Created, Notice, ResponseEvent
from streamlib_parsers.stream_error import StreamError

Start: TypeAlias = Callable[
    [], AsyncIterable[ResponseEvent] | Awaitable[AsyncIterable[ResponseEvent]]
]
"""A function that returns a stream, which is entered and closed for it."""

LATE: Final = "race_lost"
"""Code of the notice that names the starts which another one was faster than."""


class StartedStream(Pipeline[ResponseEvent]):
    """The stream of one of several starts; a stream like any other.

    The block waits at its entry until a start has output or all have failed. If all have failed,
    the last failure ends the stream as it would have ended that of the start. `report` names each
    failure, also behind stages.
    """

    has_task = True

    def __init__(self, choice: _Choice, *stages: Stage) -> None:
        super().__init__(choice, stages, PipeOptions())


def fallback(
    starts: Sequence[Start],
    *,
    on: Callable[[ErrorInfo], bool] = lambda error: error.retryable,
    deadline: float | None = None,
) -> StartedStream:
    """The stream of the first start that has output.

    Nothing is waited for between two starts: a delay that a provider asks for (`Retry-After`) is in
    `report`, and in the error if all have failed.

    Args:
        starts: functions that return streams; each is called at most once.
        on: whether the next start is tried after a failure; by default if it is retryable.
        deadline: seconds until one must have output, counted from the entry of the block; then the
            stream fails with `deadline`.

    Raises:
        TypeError: `starts` is no list of functions.
        ValueError: there is no start, or the deadline is not positive.
    """
    return StartedStream(_Choice(starts, on, math.inf, deadline))


def race(starts: Sequence[Start], *, after: float = 0.8) -> StartedStream:
    """The stream of the start that has output first; a later one starts only where it is needed.

    The next one starts if there is no output `after` seconds since the last one started, and at
    once where one has failed. The others are closed before the first event is delivered. Behind
    `Created`, a `Notice` with the code ``race_lost`` names each of them, since providers may bill
    what they began.

    Args:
        starts: functions that return streams; each is called at most once.
        after: seconds.

    Raises:
        TypeError: `starts` is no list of functions.
        ValueError: there is no start, or `after` is negative.
    """
    check_seconds("after", after, may_be_zero=True)
    choice = _Choice(starts, lambda error: True, after, None)
    return StartedStream(choice, map_events(choice.with_notices))


class _Choice(TaskBlock, BatchSource[ResponseEvent]):
    """Starts one after another until one has output: the source of a `StartedStream`."""

    is_run = False

    def __init__(
        self,
        starts: Sequence[Start],
        on: Callable[[ErrorInfo], bool],
        after: float,
        deadline: float | None,
    ) -> None:
        super().__init__()
        if not starts:
            raise ValueError("a stream needs at least one start")
        sent: Any = starts
        if not (isinstance(sent, Sequence) and all(map(callable, sent))):
            raise TypeError("starts are a list of functions: [lambda: client.stream(…), …]")
        if deadline is not None:
            check_seconds("deadline", deadline)
        self.failures: list[StartFailure] = []
        self.is_new = True
        """Whether it was not entered yet."""
        self._after = after
        self._deadline = deadline
        self._left = deque(enumerate(starts))
        """Starts that were not called."""
        self._attempts: Attempts[_Runner] = Attempts(self._next_runner, on)
        self._runners: list[_Runner] = []
        """Those that were called, in order."""
        self._winner: _Runner | None = None
        self._notices: list[Notice] = []
        """What is said of the others, behind `Created`."""
        self._error: StreamError | None = None
        """The end of a stream that none of the starts has ended."""
        self._news = Signal()
        """A start has output, or its task has ended."""

    @property
    def report(self) -> tuple[StartFailure, ...]:
        """The starts that have failed, in the order of their failures."""
        return tuple(self.failures)

    # --- life cycle ---

    async def __aenter__(self) -> Self:
        self.is_new = False
        await self._begin_tasks()
        try:
            with anyio.move_on_after(self._deadline) as limit:
                await self._choose()
            if limit.cancelled_caught:
                message = f"no start had output within {self._deadline} seconds"
                self._error = StreamError(ErrorInfo("deadline", message, code="fallback"))
            await self._close_others()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def aclose(self) -> None:
        """Ends the stream while the block goes on."""
        if self._winner is not None:
            await self._winner.stop()

    # --- the choice ---

    async def _choose(self) -> None:
        """Returns when a start has output, or none is left to wait for."""
        async for runner in self._attempts:
            self._run(runner)
            while self._winner is None and self._attempts.failure is None:
                is_late = not await self._wait_for_news()
                # News and the end of the wait may come in one turn of the loop.
                has_news = self._note_ends()
                if not is_late or has_news:
                    continue
                late = await self._attempts.another()
                if late is not None:
                    self._run(late)
            if self._winner is not None:
                return
        # A failure that another start cannot mend: those that still run may have output.
        while self._winner is None and any(not runner.ended for runner in self._runners):
            await self._news.wait()
            self._note_ends()

    async def _next_runner(self) -> _Runner | None:
        if not self._left:
            return None
        number, start = self._left.popleft()
        return _Runner(number, start, self._news)

    def _run(self, runner: _Runner) -> None:
        self._runners.append(runner)
        self._group.start_soon(runner.run)

    async def _wait_for_news(self) -> bool:
        """False if there was none for so long that the next start begins."""
        if not self._left or self._after == math.inf:
            await self._news.wait()
            return True
        with anyio.move_on_after(self._after):
            await self._news.wait()
            return True
        return False

    def _note_ends(self) -> bool:
        """Takes the first runner that has output, counts those that have failed; False: neither."""
        has_news = False
        for runner in self._runners:
            if runner.crash is not None:
                raise runner.crash
            if runner.failure is not None and not runner.is_counted:
                runner.is_counted = True
                self.failures.append(StartFailure(runner.number, runner.failure))
                self._attempts.failed(runner.failure)
                has_news = True
            elif runner.has_output and self._winner is None:
                self._winner = runner
                has_news = True
        return has_news

    async def _close_others(self) -> None:
        """Ends every start but the one whose stream is delivered."""
        if self._winner is None and self._error is None and self.failures:
            # The last failure: the stream ends as that one did.
            last = self.failures[-1].number
            self._winner = next(runner for runner in self._runners if runner.number == last)
        for runner in self._runners:
            if runner is self._winner:
                continue
            if runner.failure is None:
                detail = f"start {runner.number} had no output yet: it was closed"
                self._notices.append(Notice(LATE, f"{detail}, and may be billed"))
            # All are cancelled before one is waited for: they close side by side.
            runner.scope.cancel()
        for runner in self._runners:
            if runner is not self._winner:
                await runner.stop()

    # --- reading ---

    async def _next_batch(self) -> list[ResponseEvent]:
        if self._error is not None:
            raise self._error
        if self._winner is None:
            raise StopAsyncIteration
        return await self._winner.branches[0]._next_batch()

    def with_notices(self, event: ResponseEvent) -> ResponseEvent | list[ResponseEvent]:
        """An event, with what is said of the other starts behind the first `Created`."""
        if not self._notices or not (isinstance(event, Created) or is_output(event)):
            return event
        events: list[ResponseEvent] = [event, *self._notices]
        if not isinstance(event, Created):
            events = [*self._notices, event]
        self._notices = []
        return events


class _Runner(TeeReader):
    """Opens one start, reads it and closes it, all in one task; its only branch has the events.

    Args:
        number: its position among the starts.
        start: the function.
        news: set when there is output, and when the task has ended.
    """

    def __init__(self, number: int, start: Start, news: Signal) -> None:
        super().__init__(None, 1)
        self.number = number
        self.failure: ErrorInfo | None = None
        """Why it has failed before it had output."""
        self.is_counted = False
        """The failure was reported."""
        self.crash: Exception | None = None
        """What is no failure of a stream."""
        self.has_output = False
        self._start = start
        self._news = news
        self._opening = Opening()

    async def run(self) -> None:
        """Reads the stream to its end."""
        try:
            await super().run()
        finally:
            if self.error is not None:
                self._note_error(self.error)
            self._news.set()

    async def _read(self) -> None:
        stream: Any = self._start()
        if isinstance(stream, SyncOnly):  # it has an `__await__`, which raises
            check_async("a start", stream)
        if inspect.isawaitable(stream) and not hasattr(stream, "__aiter__"):
            stream = await stream
        if getattr(stream, "is_run", False):
            raise TypeError("a run has several responses: a start returns the stream of one")
        if not hasattr(stream, "__aiter__"):
            raise TypeError(f"a start returned a {type(stream).__name__}, which is no stream")
        async with owned(stream) as entered:
            await read_lists(entered, self._look)
            self._decide()

    async def _look(self, events: list[ResponseEvent]) -> None:
        if not self._opening.is_decided:
            self._opening.look(events)
            if self._opening.is_decided:
                self._decide()
        await self._pass_on(events)

    def _decide(self) -> None:
        """It has output or has failed, or has ended without either, which is a response too."""
        self.failure = self._opening.failure
        self.has_output = self.failure is None
        self._news.set()

    def _note_error(self, error: Exception) -> None:
        # The server was not reached. After output it is the reader's, as of any other stream.
        if isinstance(error, (ConnectionError, TimeoutError)) and not self.has_output:
            info = ErrorInfo("connection", f"{type(error).__name__}: {error}", retryable=True)
            self.error = StreamError(info)
            self.error.__cause__ = error
        if not isinstance(self.error, StreamError):
            self.crash = error
        elif not self.has_output:
            self.failure = self.error.info
