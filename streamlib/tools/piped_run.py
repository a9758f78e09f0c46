"""What a run of responses needs beside its loop: to be a source of `pipe`, and the right client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, Self, TypeVar

import anyio
from msgspec.structs import replace

from streamlib.client import Client
from streamlib.client.stream import ResponseStream
from streamlib.client.watch import RunWatch, Watcher
from streamlib.history.recover import recover
from streamlib.request.prompt import Prompt
from streamlib.request.report import Change
from streamlib.tools.calls import Toolbox
from streamlib.tools.rounds import Round
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import RunEvent
from streamlib_parsers.items import CallOutput
from streamlib_parsers.stream_error import StreamError

ClientT = TypeVar("ClientT")


class PipedRun:
    """Base of `AgentRun`: how it is iterated, piped, and ended within its block."""

    pipe: ClassVar = ResponseStream.pipe
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

    _send: Callable[[Prompt], ResponseStream]
    _prompt: Prompt
    _recovers: bool
    """Whether a history that is refused is sent once more, without provider state."""
    recovered: Sequence[Change] = ()
    """What was taken out of the history for that, by the indexes that its items had."""

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        return not hasattr(self, "_group")

    def __aiter__(self) -> Self:
        return self

    @property
    def response(self) -> Response:
        """The current response."""
        raise NotImplementedError

    async def __anext__(self) -> RunEvent:
        raise NotImplementedError

    async def aclose(self) -> None:
        """Closes the connection and cancels running calls; the block is still to be left."""
        self._state = "ended"
        if self._calls is not None:
            self._calls.cancel()
        await self._stream.aclose()

    async def __aexit__(self, *failure: object) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._watch.ended(self.response, *failure)
            self._group.cancel_scope.cancel()
            # Without the exception of the block, which the group would wrap in another one.
            await self._group.__aexit__(None, None, None)

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
            if not self._recover(error.info):
                raise
        else:
            if not self._recover(self._stream.response.error):
                self._ready.extend(events)
                return
        await self._stream.aclose()
        self._stream = self._send(self._prompt)
        await self._enter_stream()

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
            self._state = "answered"
            self._arrived.set()

    async def _enter_stream(self) -> None:
        self._watch.requested()
        with self._watch.current():
            await self._stream.__aenter__()

    def _take_output(self, output: CallOutput) -> None:
        self._watch.answered()
        self._deliver(output)

    def _deliver(self, output: CallOutput) -> None:
        self._round.outputs.append(output)
        self._ready.append(output)
        self._arrived.set()


def check_async(client: ClientT) -> ClientT:
    """The client; refuses a `SyncClient`, whose streams are read without `await`.

    Raises:
        TypeError: it says what to write.
    """
    if not hasattr(client, "aclose"):
        raise TypeError(
            f"agent() needs a `Client`, not a {type(client).__name__}: it is used with "
            "`async with`; without an event loop, call `run_calls` between two responses"
        )
    return client
