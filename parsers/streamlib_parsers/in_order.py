"""Values in the order of their numbers, of which snapshots are taken while they change."""

from __future__ import annotations

import bisect
from typing import Generic, TypeVar

V = TypeVar("V")


class InOrder(Generic[V]):
    """Values by their number: the items of a choice, the parts of an item.

    A snapshot may be taken after every event, and an event changes one value. So the owner puts
    only what changed, and `shown` copies one reference for each value.
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []
        """Numbers of the values, sorted."""
        self._values: list[V] = []
        """The values of `_numbers`."""
        self._shown: tuple[V, ...] | None = None
        """The values as a tuple; None once one of them changed."""

    def put(self, number: int, value: V) -> None:
        """Adds a value, or replaces the one of this number."""
        self._shown = None
        numbers = self._numbers
        if numbers and numbers[-1] == number:  # mostly it is the newest
            self._values[-1] = value
            return
        position = bisect.bisect_left(numbers, number)
        if position < len(numbers) and numbers[position] == number:
            self._values[position] = value
        else:
            numbers.insert(position, number)
            self._values.insert(position, value)

    def get(self, number: int) -> V:
        """The value of a number, which must be there."""
        numbers = self._numbers
        position = bisect.bisect_left(numbers, number)
        if position == len(numbers) or numbers[position] != number:
            raise KeyError(number)
        return self._values[position]

    def remove(self, number: int) -> bool:
        """Removes the value of a number, which must be there; returns whether it was the last."""
        position = bisect.bisect_left(self._numbers, number)
        del self._numbers[position], self._values[position]
        self._shown = None
        return not self._values

    def shown(self) -> tuple[V, ...]:
        """The values, for a snapshot: copied only where one changed since the last."""
        if self._shown is None:
            self._shown = tuple(self._values)
        return self._shown
