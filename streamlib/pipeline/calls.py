"""The calls that a stage makes beside the stream: each in a task of the pipeline's block.

    events ─▶ slots, in order: event, calls ─▶ let out, when its calls have ended

A few calls run at once; what stands behind an event waits with it.
"""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import anyio

from streamlib.pipeline.machine import PlainMachine
from streamlib_parsers.events import ResponseEvent


class Call:
    """A call of a user's function, and what it returned.

    Args:
        function: sync or async.
        argument: what it is called with.
        check: what is kept of what it returned; it raises where that is wrong.
    """

    def __init__(
        self, function: Callable[[Any], Any], argument: Any, check: Callable[[Any], Any]
    ) -> None:
        self.argument = argument
        self.result: Any = None
        self.error: BaseException | None = None
        """What the function raised: raised again after the events before it."""
        self._function = function
        self._check = check

    async def run(self) -> None:
        """Calls the function; what it raises is kept."""
        try:
            result = self._function(self.argument)
            if inspect.isawaitable(result):
                result = await result
            self.result = self._check(result)
        except Exception as error:  # noqa: BLE001  # raised after the events before it
            self.error = error
        except anyio.get_cancelled_exc_class() as cancelled:
            if anyio.current_effective_deadline() == -math.inf:
                raise  # the pipeline is left
            # What the function waited for was cancelled, by somebody else: to the pipeline that is
            # a failure, or it would wait for this call forever.
            self.error = RuntimeError("a function of a stage was cancelled")
            self.error.__cause__ = cancelled
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001  # else a group of tasks would wrap it
            self.error = error


class CallSlot:
    """An event, and the calls that it waits for; None: not yet known which."""

    def __init__(self, event: ResponseEvent) -> None:
        self.event = event
        self.calls: list[Call] | None = None
        self.left = 0
        """Calls that have not ended. Counted: an item without deltas may have thousands."""


class SlotMachine(PlainMachine):
    """Base of the machines of stages that await a function.

    Args:
        function: sync or async.
        at_once: calls that may run at once.
    """

    def __init__(self, function: Callable[[Any], Any], at_once: int) -> None:
        super().__init__()
        self.slots: deque[CallSlot] = deque()
        """Events that have not left."""
        self._function = function
        self._at_once = at_once
        self._to_start: deque[tuple[CallSlot, Call]] = deque()
        self._running = 0
        """Calls that have begun and not ended."""
        self._waiting_slots = 0
        """Slots with calls."""

    @property
    def waiting(self) -> bool:
        """Whether calls have not ended."""
        return bool(self.slots)

    @property
    def full(self) -> bool:
        """Whether as many events wait as calls may run at once."""
        return self._waiting_slots >= self._at_once

    def due(self) -> float | None:
        """0 when the first event need not wait any longer, or another call may begin."""
        if self.slots and not self.slots[0].left:
            return 0.0
        if self._to_start and self._running < self._at_once:
            return 0.0
        return None

    def expire(self) -> list[ResponseEvent]:
        """The events that need not wait any longer."""
        events: list[ResponseEvent] = []
        while self.slots and not self.done:
            slot = self.slots[0]
            calls = slot.calls
            if calls is None:
                calls = self._call(slot, self.arguments_later(slot.event))
            if slot.left:
                break
            errors = [call.error for call in calls if call.error is not None]
            if errors and events:
                break  # raised at the next call, after the events before it
            self.slots.popleft()
            self._waiting_slots -= bool(calls)
            if errors:
                self.drop()
                if errors[0] is self.interruption:
                    self.interruption = None
                raise errors[0]
            events += self.finished(slot.event, calls)
        return events

    def calls(self) -> list[Callable[[], Awaitable[None]]]:
        """The calls to start now."""
        started: list[Callable[[], Awaitable[None]]] = []
        while self._to_start and self._running < self._at_once:
            started.append(partial(self._run, *self._to_start.popleft()))
            self._running += 1
        return started

    # --- for each of them ---

    def arguments(self, event: ResponseEvent) -> list[Any] | None:
        """What the function is called with for an event; None: `arguments_later` tells it."""
        raise NotImplementedError

    def arguments_later(self, event: ResponseEvent) -> list[Any]:
        """The same where it depends on the events before it, which all have left."""
        del event
        return []

    def checked(self, result: Any) -> Any:
        """What the function returned, or a TypeError."""
        return result

    def finished(self, event: ResponseEvent, calls: list[Call]) -> list[ResponseEvent]:
        """What is let out for an event whose calls have ended."""
        raise NotImplementedError

    # --- slots ---

    def take(self, events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
        """Puts events in slots; what need not wait."""
        for event in events:
            slot = CallSlot(event)
            self.slots.append(slot)
            arguments = self.arguments(event)
            if arguments is not None:
                self._call(slot, arguments)
        return self.expire()

    def drop(self) -> None:
        """Drops what has not left, and the calls that have not begun."""
        self.slots.clear()
        self._to_start.clear()

    def _call(self, slot: CallSlot, arguments: Iterable[Any]) -> list[Call]:
        """The calls of a slot; they begin when there is room."""
        slot.calls = [Call(self._function, argument, self.checked) for argument in arguments]
        slot.left = len(slot.calls)
        self._to_start += [(slot, call) for call in slot.calls]
        self._waiting_slots += bool(slot.calls)
        return slot.calls

    async def _run(self, slot: CallSlot, call: Call) -> None:
        await call.run()
        slot.left -= 1
        self._running -= 1
        if call.error is not None and not isinstance(call.error, Exception):
            # The reader may leave before this event's turn: the end of the block raises it then.
            self.interruption = call.error
