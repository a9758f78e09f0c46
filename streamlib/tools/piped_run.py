"""What a run needs beside its loop: to be piped, counted and stopped, and the right client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, Literal, Self, TypeVar

import anyio
from msgspec.structs import replace

from streamlib.client import Client
from streamlib.client.options import StreamOptions
from streamlib.client.stream import ResponseStream
from streamlib.client.watch import RunWatch, Watcher
from streamlib.history.recover import recover
from streamlib.pipeline.branches import leave_group
from streamlib.pipeline.numbers import check_count
from streamlib.pipeline.opening import pipe as pipe_method
from streamlib.request.conversation import History
from streamlib.request.mistakes import check_kind, check_switches, refuse_unknown
from streamlib.request.prompt import Prompt
from streamlib.request.report import Change
from streamlib.tools.calls import Approve, Handlers, Toolbox
from streamlib.tools.rounds import Round
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, RunEvent
from streamlib_parsers.items import CallOutput
from streamlib_parsers.stream_error import StreamError
from streamlib_parsers.usage import Usage

ClientT = TypeVar("ClientT")


class AgentOptions(StreamOptions, total=False):
    """The keyword options of `agent`, for callers that pass them on: see `AgentRun`."""

    max_turns: int
    name: str | None
    recover: bool
    limit: int
    timeout: float | None
    handlers: Handlers | None
    approve: Approve | None


AGENT_NAMES: Final = tuple(AgentOptions.__annotations__)


class PipedRun:
    """Base of `AgentRun`: how it is iterated, piped, and ended within its block."""

    pipe: ClassVar = pipe_method
    """The events through stages: ``run.pipe(coalesce(1 / 30))``; see `streamlib.pipeline`."""
    is_run = True
    """Its events are those of several responses."""
    _stream: ResponseStream
    _state: Literal["response", "calls", "answered", "ended"]
    _calls: anyio.CancelScope | None = None
    """The scope of the running calls."""
    _group: anyio.abc.TaskGroup
    _toolbox: Toolbox
    _round: Round
    """The calls of the current response, or of the prompt's end."""
    _ready: deque[RunEvent]
    """Outputs to deliver, or events of a refusal."""
    _arrived: anyio.Event
    """Set when an output was added, or all are there."""
    _watch: RunWatch
    """The telemetry of the client, or nobody."""
    _is_stopped = False
    """Whether `stop` was called."""
    _spent: Usage | None = None
    """The usage of the responses before the current one."""
    _send: Callable[[Prompt], ResponseStream]
    _prompt: Prompt
    _recovers: bool
    """Whether a history that is refused is sent once more, without provider state."""
    recovered: Sequence[Change] = ()
    """What was taken out of the history for that, by the indexes that its items had."""

    @property
    def response(self) -> Response:
        """The current response, as far as it was delivered; after the end the last one."""
        return self._stream.response

    @property
    def history(self) -> History:
        """The conversation so far, at any time: a next request sends errors for missing outputs."""
        return History([*self._prompt.items, *self._round.items(self.response)])

    @property
    def usage(self) -> Usage | None:
        """The tokens of all responses so far, the current one included; None: nothing is known.

        A count that only some responses have is the sum of those; `Usage.raw` is empty in a sum.
        """
        usage = self.response.usage
        if usage is None or self._spent is None:
            return usage or self._spent
        return self._spent.plus(usage)

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        return not hasattr(self, "_group")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent:
        raise NotImplementedError

    def stop(self) -> None:
        """Ends the run where it is, without an exception; `history` can be sent as it is.

        No further call begins, and no further request is sent. Running calls are cancelled. A
        response that streams ends: its open items are closed as incomplete, then the loop gets
        `Failed`, kind `cancelled`, as an event, and ends. Before `async with`: nothing is sent.

        It may be called in the loop, in another task, and in a coroutine function that is a tool;
        in another thread, as that of a sync tool, by `anyio.from_thread.run_sync(run.stop)`.
        """
        self._is_stopped = True
        if self.is_new or self._group.cancel_scope.cancel_called:  # or it was left
            return
        if self._calls is not None:
            self._calls.cancel()
        self._group.start_soon(self._stream.aclose)

    async def aclose(self) -> None:
        """Closes the connection and cancels running calls; the block is still to be left."""
        self._state = "ended"
        if self._calls is not None:
            self._calls.cancel()
        await self._stream.aclose()

    async def __aexit__(
        self, kind: object = None, error: object = None, traceback: object = None
    ) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._watch.ended(self.response, kind, error, traceback)
            await leave_group(self._group, error)

    def _watched(self, client: Client, prompt: Prompt, name: str | None) -> RunWatch:
        """The client's telemetry of this run, and of the calls that it makes; or nobody's."""
        watcher: Watcher | None = getattr(client, "telemetry", None)
        if watcher is None:
            return RunWatch()
        watch = watcher.of_run(prompt, name, self._stream.request.model)
        self._toolbox.telemetry = watch
        return watch

    async def _enter(self) -> None:
        """Sends the request; one whose history is refused once more, without provider state."""
        try:
            await self._enter_stream()
            if self._stream.status is not None and self._stream.status < 400:
                return
            events = [event async for event in self._stream]  # raises, or has the error as event
        except StreamError as error:
            if self._is_stopped:
                self._end_stopped(error)
                return
            if not self._recover(error.info):
                raise
        else:
            if self._is_stopped or not self._recover(self._stream.response.error):
                self._ready.extend(events)
                return
        await self._stream.aclose()
        self._stream = self._send(self._prompt)
        if self._is_stopped:  # meanwhile: this one is not sent
            await self._stream.aclose()
        try:
            await self._enter_stream()
        except StreamError as error:
            self._end_stopped(error)

    def _recover(self, error: ErrorInfo | None) -> bool:
        """Takes the provider state out of the history; returns whether there was any."""
        if not self._recovers or error is None or error.kind != "invalid_history":
            return False
        history = recover(self._prompt.items)
        self.recovered = (*self.recovered, *history.report)
        self._prompt = replace(self._prompt, input=history)
        return bool(history.report)

    def _start_calls(self) -> None:
        """Runs the calls of the round while the run is iterated."""
        self._state = "calls"
        self._arrived = anyio.Event()
        self._group.start_soon(self._run_calls)

    async def _run_calls(self) -> None:
        with anyio.CancelScope() as self._calls:
            for output in self._round.errors:
                self._deliver(output)
            with self._watch.current():
                await self._toolbox.run(self._round.calls, self._take_output)
        if self._state == "calls":  # and not closed
            self._state = "answered"
        self._arrived.set()

    def _end_stopped(self, error: StreamError) -> None:
        """Ends a run that was stopped, with the events of the end instead of the exception.

        Raises:
            StreamError: it was not stopped.
        """
        if not self._is_stopped:
            raise error
        self._state = "ended"
        self._ready.extend(self._stream.rest() or [Failed(error.info)])

    async def _enter_stream(self) -> None:
        if not self._is_stopped:
            self._watch.requested()
        with self._watch.current():
            await self._stream.__aenter__()

    def _take_output(self, index: int, output: CallOutput) -> None:
        self._watch.answered()
        self._round.outputs[index] = output
        self._deliver(output)

    def _deliver(self, output: CallOutput) -> None:
        self._ready.append(output)
        self._arrived.set()


def check_run(
    *, max_turns: int, name: str | None, recover: bool, others: Mapping[str, object]
) -> None:
    """Checks the options of a run that are not those of its calls.

    Raises:
        TypeError: one is of the wrong kind, or is no option.
        ValueError: `max_turns` is less than 1.
    """
    check_count("max_turns", max_turns)
    check_kind("name", name, str, "a text")
    check_switches(recover=recover)
    refuse_unknown("agent()", others, AGENT_NAMES, Prompt.__struct_fields__)


def check_async(client: ClientT) -> ClientT:
    """The client; refuses a `SyncClient`, whose streams are read without `await`.

    Raises:
        TypeError: it says what to write.
    """
    if not hasattr(client, "aclose"):
        raise TypeError(
            f"an AgentRun needs a `Client`, not a {type(client).__name__}: it is used with "
            "`async with`; `agent(client, …)` makes a run for a `SyncClient` too"
        )
    return client
