"""Old images of a history as a line of text: for agents that look at screenshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from streamlib.request.built_in_text import call_as_text
from streamlib.request.history import content_parts
from streamlib.request.report import Action, Change
from streamlib_parsers.items import (
    ComputerCall,
    ComputerCallOutput,
    ContentPart,
    Image,
    Message,
    Reasoning,
    ResponseItem,
    Text,
    user,
)

IMAGE_LEFT_OUT: Final = "[an earlier image was left out]"
SCREENSHOT_LEFT_OUT: Final = "[an earlier screenshot was left out]"
"""What stands for the output of a computer, whose wire takes nothing but an image there."""

REPLACED: Final = "an earlier image: a line of text stands for it"


def without_old_images(
    history: Sequence[ResponseItem], keep: int | None
) -> tuple[list[ResponseItem | None], list[Change]]:
    """The items with the newest `keep` images; None stands for an item that left.

    A screenshot leaves with the call that asked for it: both become text. Reasoning that was made
    for such a call leaves with it, because a provider takes the two together only.

    Returns:
        The items, by the indexes that they had, and a change for each that is another one now.
    """
    items: list[ResponseItem | None] = list(history)
    if keep is None:
        return items, []
    _replace_computer_calls(history, items, _replace_images(history, items, keep))
    changes: list[Change] = []
    for index, item in enumerate(history):
        if items[index] is not item:
            action: Action = "dropped" if items[index] is None else "changed"
            changes.append(Change(action, f"/input/{index}", REPLACED, breaks_prefix=True))
    return items, changes


def _replace_images(
    history: Sequence[ResponseItem], items: list[ResponseItem | None], keep: int
) -> set[str]:
    """Replaces all but the newest images; returns the ids of calls whose screenshot was one."""
    calls: set[str] = set()
    surplus = sum(_image_count(item) for item in history) - keep
    for index, item in enumerate(history):
        old = min(surplus, _image_count(item))
        if old <= 0:
            continue
        surplus -= old
        if isinstance(item, ComputerCallOutput):
            calls.add(item.call_id)
            items[index] = user(SCREENSHOT_LEFT_OUT)
        else:
            items[index] = _without_images(item, old)
    return calls


def _replace_computer_calls(
    history: Sequence[ResponseItem], items: list[ResponseItem | None], calls: set[str]
) -> None:
    """Replaces the calls whose output is a text now, and drops the reasoning before them."""
    responses: set[str | None] = set()
    for index, item in enumerate(history):
        if isinstance(item, ComputerCall) and item.call_id in calls:
            items[index] = call_as_text(item)
            responses.add(item.response_id)
    responses.discard(None)
    for index, item in enumerate(history):
        if isinstance(item, Reasoning) and item.response_id in responses:
            items[index] = None


def _image_count(item: ResponseItem) -> int:
    if isinstance(item, ComputerCallOutput):
        return 1
    return sum(isinstance(part, Image) for part in content_parts(item))


def _without_images(item: ResponseItem, count: int) -> ResponseItem:
    """The item with its first `count` images replaced by text."""
    parts: list[ContentPart] = []
    for part in content_parts(item):
        if isinstance(part, Image) and count > 0:
            count -= 1
            parts.append(Text(IMAGE_LEFT_OUT))
        else:
            parts.append(part)
    if isinstance(item, Message):
        return msgspec.structs.replace(item, content=tuple(parts))
    return msgspec.structs.replace(item, output=tuple(parts))
