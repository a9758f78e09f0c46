"""A table of event classes and the encoder methods for them, checked by the type checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from streamlib_parsers.events import Event

EncoderT = TypeVar("EncoderT")
EventT = TypeVar("EventT", bound=Event)


class EventHandlers(Generic[EncoderT]):
    """Handlers of an encoder class by class of event.

    A `match` over the eighteen event classes would exceed the limits on branches and would test
    the rare classes one after another. `register` ties both types together instead: a handler
    registered for an event class that it does not take is a type error.
    """

    def __init__(self) -> None:
        # Filled by `register` at import. `Any`, since each handler takes another event class.
        self._by_class: dict[type[Event], Callable[[EncoderT, Any], bytes]] = {}
        # `dict.get` itself, since a method around it would add a call to each event.
        self.get = self._by_class.get

    def register(
        self, event_class: type[EventT], handler: Callable[[EncoderT, EventT], bytes]
    ) -> None:
        """Registers a handler for one class of event.

        Args:
            event_class: The class itself; subclasses are not looked up.
            handler: The unbound method, such as `Encoder._on_text`; returns the encoded bytes.
        """
        self._by_class[event_class] = handler

    def ignore(self, *event_classes: type[Event]) -> None:
        """Registers classes that need no bytes, so that nothing is reported for them.

        `RateLimits` belong to the response headers, and a parser of the encoded stream makes the
        `Notice` events itself.
        """
        for event_class in event_classes:
            self._by_class[event_class] = _no_bytes


def _no_bytes(encoder: object, event: Event) -> bytes:
    return b""
