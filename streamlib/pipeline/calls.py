"""The calls that a stage makes beside the stream: each in a task of the pipeline's block."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import anyio


class Call:
    """A call of a user's function, and what it returned.

    Args:
        function: sync or async.
        argument: what it is called with.
    """

    def __init__(self, function: Callable[[Any], Any], argument: Any) -> None:
        self.argument = argument
        self.result: Any = None
        self.has_ended = False
        self.error: Exception | None = None
        """What the function raised: raised again after the events before it."""
        self._function = function

    async def run(self) -> None:
        """Calls the function; what it raises is kept."""
        try:
            result = self._function(self.argument)
            if inspect.isawaitable(result):
                result = await result
            self.result = result
        except Exception as error:  # noqa: BLE001  # raised after the events before it
            self.error = error
        except anyio.get_cancelled_exc_class() as cancelled:
            if anyio.current_effective_deadline() == -math.inf:
                raise  # the pipeline is left
            # What the function waited for was cancelled, by somebody else: to the pipeline that is
            # a failure, or it would wait for this call forever.
            self.error = RuntimeError("a function of a stage was cancelled")
            self.error.__cause__ = cancelled
        self.has_ended = True
