"""What is known of the tokens of a history: what a provider counted up to one of its responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from msgspec import Struct

from streamlib_parsers.items import Reasoning, ResponseItem
from streamlib_parsers.response import Response
from streamlib_parsers.usage import Usage


class Anchor(Struct, frozen=True):
    """What a provider counted for the first items of a history.

    Attributes:
        count: how many items it is about: up to the end of a response.
        item: the last of them.
        tokens: input and output of that response.
    """

    count: int
    item: ResponseItem
    tokens: int

    @classmethod
    def of(cls, response: Response, items: Sequence[ResponseItem]) -> Self | None:
        """The anchor that a response is among the items of a history.

        Returns:
            None if the response has no usage, or its last item is not among the items.
        """
        usage = response.usage
        if usage is None or usage.input_tokens is None or not response.items:
            return None
        item = response.items[-1]
        for count in range(len(items), 0, -1):  # from the end: mostly it is among the last
            if items[count - 1] == item:
                return cls(count, item, usage.input_tokens + _sent_again(response.items, usage))
        return None


def _sent_again(items: Sequence[ResponseItem], usage: Usage) -> int:
    """The output tokens that are input of the next request: without reasoning that nobody has."""
    tokens = usage.output_tokens or 0
    if not any(isinstance(item, Reasoning) for item in items):
        tokens -= usage.reasoning_output_tokens or 0
    return max(tokens, 0)


class AnchoredItems(tuple[ResponseItem, ...]):
    """The items of a history whose tokens are known up to a response; `Prompt` makes it."""

    anchor: Anchor

    @classmethod
    def of(cls, items: Iterable[ResponseItem], anchor: Anchor) -> Self:
        """The items, with their anchor."""
        anchored = cls(items)
        anchored.anchor = anchor
        return anchored


def frozen_items(items: Iterable[ResponseItem]) -> tuple[ResponseItem, ...]:
    """The items as a tuple, which keeps the anchor of a `History`."""
    anchor = getattr(items, "anchor", None)
    if isinstance(anchor, Anchor):
        return AnchoredItems.of(items, anchor)
    return tuple(items)
