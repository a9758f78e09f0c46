"""What is answered between two responses of a run: calls to make, and calls that are broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from streamlib.request.history import answered_calls
from streamlib.tools.calls import CALLS, scrub_text
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import CallOutput, FunctionCall, Message, PendingCall, ResponseItem
from streamlib_parsers.stream_error import StreamError

BROKEN: Final = (
    "The arguments of this call are not complete JSON, so it was not run. "
    "Write the call again, with complete arguments."
)
"""What the model reads about a call whose arguments it broke."""

MAX_BROKEN: Final = 3
"""Responses in a row with such calls: a model that has not learned from three errors does not."""


class Round:
    """The calls that are answered before the next request, and their outputs.

    Attributes:
        calls: the calls to make.
        errors: outputs of calls whose arguments the model broke. Such a call is incomplete, though
            its response is complete; in the next request its arguments are wrapped as `_raw`, as
            builders wrap what is no JSON object.
        outputs: outputs so far, each by the index of its call: two calls may have the same id.
    """

    def __init__(self, calls: Sequence[PendingCall] = (), broken_before: int = 0) -> None:
        self.calls = calls
        self.errors: list[CallOutput] = []
        self.outputs: dict[int, CallOutput] = {}
        self._mended: dict[int, FunctionCall] = {}
        """Calls with broken arguments, as the next request has them, by their index."""
        self._broken = broken_before
        """How many responses in a row had such calls."""

    def after(self, response: Response) -> Round:
        """The round after a response; this one is the round before it."""
        following = Round(response.pending, self._broken)
        following._take_broken(response)
        return following

    def _take_broken(self, response: Response) -> None:
        broken = {each.index for each in response.notices if each.code == "invalid_arguments"}
        if response.status == "completed":
            for index, item in enumerate(response.items):
                if index in broken and isinstance(item, FunctionCall):
                    wrapped = msgspec.json.encode({"_raw": scrub_text(item.arguments)}).decode()
                    mended = replace(item, status="completed", arguments=wrapped)
                    self._mended[index] = mended
                    self.errors.append(mended.output(BROKEN, is_error=True))
        self._broken = self._broken + 1 if self._mended else 0

    def items(self, response: Response) -> list[ResponseItem]:
        """The items of the response, and the outputs in the order of their calls."""
        items = [self._mended.get(index, item) for index, item in enumerate(response.items)]
        outputs = [self.outputs[index] for index in sorted(self.outputs)]
        return [*items, *self.errors, *outputs]

    @property
    def pending(self) -> list[PendingCall]:
        """The calls that got no output."""
        return [call for index, call in enumerate(self.calls) if index not in self.outputs]

    def check(self, response: Response) -> None:
        """Raises:
        StreamError: the model breaks the arguments of its calls again and again.
        """
        if self._broken >= MAX_BROKEN:
            message = f"the model broke the arguments of its calls {MAX_BROKEN} times in a row"
            info = ErrorInfo("limit_exceeded", message, code="broken_arguments")
            raise StreamError(info, response)

    def next(self) -> Round:
        """An empty round, for the response to the next request."""
        return Round((), self._broken)


def unanswered_calls(items: Sequence[ResponseItem]) -> list[PendingCall]:
    """The calls at the end of a conversation that have no output, in order."""
    answered = set(answered_calls(items).values())
    waiting: list[PendingCall] = []
    for index, item in enumerate(items):
        if isinstance(item, Message) and item.role == "user":
            waiting.clear()  # the user went on without an answer to them
        elif isinstance(item, CALLS) and item.status == "completed" and index not in answered:
            waiting.append(item)
    return waiting
