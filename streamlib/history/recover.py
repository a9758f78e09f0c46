"""A history that a provider refuses, without the state that it cannot verify any more.

Signed and encrypted reasoning is bound to its provider, its model and, with some, to all that was
said before it. Where a conversation was edited, cut or moved, the provider refuses the request
(`invalid_history`), and would refuse every further one. `recover` takes that state out of a history
as a build for another origin does: what can be read becomes text, the rest leaves, each reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from streamlib.request.conversation import History
from streamlib.request.mistakes import check_items
from streamlib.request.origins import downgrade_item
from streamlib.request.report import Action, Change
from streamlib_parsers.items import (
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)

PROVIDER_RUN: Final = (ServerToolCall, ServerToolResult)
"""Calls of the provider's own tools: their results hold encrypted text."""


class RecoveredHistory(History):
    """A history without signed and encrypted state.

    Attributes:
        report: what was changed, as a `Change` for each item: `/input/3` is the item of that index
            in the history that `recover` was given. Empty: there was no such state.
    """

    report: list[Change]


def recover(history: Sequence[ResponseItem]) -> RecoveredHistory:
    """The history as every provider can verify it, for one that refused it as `invalid_history`.

    Readable reasoning becomes text, and unreadable reasoning leaves. Signatures of texts and calls
    leave; the texts, the calls and their outputs stay. Calls of tools that the provider ran become
    text. A compaction stays as it is: without it the conversation before it would be lost.

    Args:
        history: the items; not changed.

    Returns:
        The items to send, with a report. If it is empty, something else is wrong with the history.

    Raises:
        TypeError: the history holds what is no item, such as dicts of some wire.
    """
    items = list(history)  # of an iterator, nothing would be left after the check
    check_items(items)
    recovered = RecoveredHistory()
    recovered.report = []
    bound = {item.response_id for item in items if isinstance(item, Reasoning)}
    bound.discard(None)
    for index, item in enumerate(items):
        if not _has_state(item):
            if item.response_id in bound:
                # The provider's id of an item names the reasoning that belongs to it.
                item = replace(item, id=None)  # noqa: PLW2901
            recovered.append(item)
            continue
        _, _, bare = downgrade_item(item)
        action: Action = "dropped" if bare is None else "downgraded"
        change = Change(action, f"/input/{index}", _reason(item, bare), breaks_prefix=True)
        recovered.report.append(change)
        if bare is not None:
            recovered.append(bare)
    return recovered


def _reason(item: ResponseItem, bare: ResponseItem | None) -> str:
    if bare is None:
        return "reasoning that its provider alone can read, and may not verify any more"
    if isinstance(item, Reasoning):
        return "reasoning that its provider may not verify any more, sent as text"
    if isinstance(item, PROVIDER_RUN):
        return "a tool that its provider ran, sent as text: its state may not verify any more"
    return "its signature is left out: its provider may not verify it any more"


def _has_state(item: ResponseItem) -> bool:
    """Whether a provider verifies something of the item."""
    if isinstance(item, (Reasoning, *PROVIDER_RUN)):
        return True
    return bool(item.signature)
