"""What a client tells its telemetry: of each stream, each run of an agent and each call of a tool.

The client knows these protocols alone; `streamlib.client.otel` implements them, and is loaded only
where somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

from streamlib.request.build import Request
from streamlib.request.prompt import Prompt
from streamlib_parsers.accumulate import Response
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import CallOutput, PendingCall

NOTHING: Final = nullcontext()
"""A block of nothing: it may be entered by many at once."""


class HasResponse(Protocol):
    """A stream, as far as a watch looks at it."""

    @property
    def response(self) -> Response:
        """The response so far."""
        ...


class StreamWatch:
    """What is told of one stream; this one listens to nothing. None of them raises."""

    def opening(self) -> AbstractContextManager[object]:
        """The stream is entered; what is sent meanwhile belongs to it."""
        return NOTHING

    def received(self, events: Sequence[ResponseEvent], now: float) -> None:
        """Events of one read were received, at a time of the client's clock."""

    def ended(self, stream: HasResponse) -> None:
        """The stream is closed; a second call says nothing new."""


NOBODY: Final = StreamWatch()
"""Where there is no telemetry."""


class CallWatcher(Protocol):
    """What is told of calls of tools."""

    def of_call(
        self, call: PendingCall, description: str | None
    ) -> AbstractContextManager[list[CallOutput]]:
        """Watches a call while it runs; what it gave is put into the list."""
        ...


class RunWatch:
    """What is told of a run of several responses; this one listens to nothing."""

    def entered(self) -> None:
        """The run is entered."""

    def current(self) -> AbstractContextManager[object]:
        """What happens within belongs to the run."""
        return NOTHING

    def requested(self) -> None:
        """A request of the run is sent."""

    def responded(self, response: Response) -> None:
        """A response of the run has ended."""

    def of_call(
        self, call: PendingCall, description: str | None
    ) -> AbstractContextManager[list[CallOutput]]:
        """See `CallWatcher`."""
        del call, description
        return nullcontext([])

    def answered(self) -> None:
        """A call of the run has its output."""

    def ended(self, response: Response, *failure: object) -> None:
        """The run was left, by an exception or without; a second call says nothing new."""


class Watcher(CallWatcher, Protocol):
    """What a client has for telemetry: `streamlib.client.otel.Telemetry`."""

    def of_stream(self, request: Request, prompt: Prompt | None) -> StreamWatch:
        """Watches a stream: what it sends, and what that was built from."""
        ...

    def of_run(self, prompt: Prompt, name: str | None, model: str) -> RunWatch:
        """Watches a run of an agent: its first prompt, its name, its model."""
        ...
