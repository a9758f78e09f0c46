"""A log as the source of a web response, such as `streamlib.web.StreamResponse`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import ClassVar

from streamlib.durable.errors import LogError
from streamlib.durable.log import Log
from streamlib.durable.reader import LogReader
from streamlib.durable.records import is_terminal
from streamlib.pipeline.opening import pipe as pipe_method
from streamlib.pipeline.reading import Batches
from streamlib_parsers.accumulate import Accumulator, Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Event, RunEvent
from streamlib_parsers.stream_error import StreamError


class LogSource:
    """The events of a log as a stream to enter and leave; leaving it does not end what is written.

        StreamResponse(LogSource(log, log_id), log_encoder(meta))

    Args:
        log: the logs.
        log_id: id of an existing log.
    """

    def __init__(self, log: Log, log_id: str) -> None:
        self._log = log
        self._log_id = log_id
        self._reader: LogReader | None = None
        """The reader; None before it is entered."""
        self._accumulator = Accumulator()
        self._is_in_response = True
        """Whether the last event left a response open."""

    @property
    def response(self) -> Response:
        """The response so far; of a run the newest one."""
        return self._accumulator.response

    async def __aenter__(self) -> LogSource:
        self._reader = self._log.read(self._log_id)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._reader is not None:
            self._reader.close()

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        return self._reader is None

    pipe: ClassVar = pipe_method

    def batches(self) -> AsyncIterator[list[RunEvent]]:
        """The events as lists, one list for each record."""
        return Batches(self._next)

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        return self._events()

    async def _events(self) -> AsyncIterator[RunEvent]:
        async for batch in self.batches():
            for event in batch:
                yield event

    async def _next(self) -> list[RunEvent]:
        """The events of the next record.

        Raises:
            StreamError: the log cannot be read further.
            StopAsyncIteration: the log has ended.
        """
        if self._reader is None:
            raise RuntimeError("a source is used inside of `async with`")
        try:
            entries = await anext(self._reader.batches())
        except LogError as error:
            raise StreamError(_info(error)) from error
        events = [entry.event for entry in entries]
        for event in events:
            if not isinstance(event, Event):
                continue  # an output, between two responses of a run
            if not self._is_in_response:
                self._accumulator = Accumulator()
            self._accumulator.feed(event)
            self._is_in_response = not is_terminal(event)
        return events


def _info(error: LogError) -> ErrorInfo:
    """The error that a page receives if a log cannot be read further."""
    if error.kind == "gone":
        return ErrorInfo("not_found", str(error), code=error.kind)
    if error.kind in {"rewound", "unreadable"}:
        is_retryable = error.kind == "rewound"
        return ErrorInfo("truncated", str(error), retryable=is_retryable, code=error.kind)
    return ErrorInfo("server_error", str(error), retryable=True, status=503, code=error.kind)
