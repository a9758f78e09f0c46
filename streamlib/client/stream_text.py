"""The text of a stream without its events, and what keeps a response from being a text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, OutputTextDelta, ResponseEvent
from streamlib_parsers.items import Message, ResponseItem
from streamlib_parsers.stream_error import StreamError


class TextDeltas:
    """Async iterator over what `Response.text` joins: see `ResponseStream.text`.

    A class and not a generator: a generator that is left early stays suspended in its stream.
    """

    def __init__(
        self,
        events: AsyncIterator[ResponseEvent],
        item: Callable[[int], ResponseItem],
        response: Callable[[], Response],
    ) -> None:
        self._events = events
        self._item = item
        """The item of an index, as far as it was received."""
        self._response = response
        """The response so far, for the exception."""
        self._is_output: dict[int, bool] = {}
        """Item index to whether its text belongs to `Response.text`."""
        self._has_begun = False

    def __aiter__(self) -> TextDeltas:
        return self

    async def __anext__(self) -> str:
        if not self._has_begun:
            aiter(self._events)  # raises if the stream was read to its end
            self._has_begun = True
        while True:
            event = await anext(self._events)
            if isinstance(event, OutputTextDelta):
                if event.delta and self.belongs(event):
                    return event.delta
            elif isinstance(event, Failed):
                # With errors="event". A str cannot say that the text is not complete.
                raise StreamError(event.error, self._response())

    def belongs(self, event: OutputTextDelta) -> bool:
        """Whether a delta is of a message of the assistant that was asked, in the first choice."""
        if event.agent is not None:
            return False
        known = self._is_output.get(event.index)
        if known is None:
            item = self._item(event.index)
            known = isinstance(item, Message) and item.role == "assistant" and item.choice == 0
            self._is_output[event.index] = known
        return known


def text_error(response: Response) -> ErrorInfo | None:
    """Why the text of a response is not all of it; None if it is."""
    reason = response.stop_reason
    if response.error is not None:
        return response.error
    if reason == "refusal" or response.refusal:
        message = f"the model refused: {response.refusal}".removesuffix(": ")
        return ErrorInfo("content_filter", message, code="refusal")
    if reason == "content_filter":
        return ErrorInfo("content_filter", "a filter ended the response", code=reason)
    if reason == "length":
        # Not retryable: the same request ends there again.
        return ErrorInfo("truncated", "the response reached its token limit", code=reason)
    if response.unfinished:
        message = "the model called a tool or paused: use `respond`, which returns its items"
        return ErrorInfo("invalid_request", message, code=reason)
    return None
