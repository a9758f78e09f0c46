"""A long history made short enough: `fit` leaves out its oldest turns.

A turn is what the user said and all that follows, up to the next time the user speaks. Turns leave
whole and from the oldest; only where the newest ones alone are too long do responses inside them
leave, whose calls take their outputs along. So no call is without its output, and signed reasoning
stays beside the items that were signed with it.

Every cut changes the beginning of the request, which a prompt cache then has to read anew.
Therefore `fit` cuts rarely and deep: nothing below `tokens`, and then down to `to`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from streamlib.pipeline.numbers import check_count
from streamlib.request.built_in_text import call_as_text
from streamlib.request.conversation import History
from streamlib.request.history import ALL_CALLS, ALL_OUTPUTS, content_parts
from streamlib.request.mistakes import check_callable, check_items, check_kind
from streamlib.request.report import Action, Change
from streamlib.request.token_count import ItemCounter, counted_items
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

DEPTH: Final = 2
"""Without `to`, a history is cut to this part of `tokens`: it can double before the next cut."""

LEFT_OUT: Final = "an earlier turn: the history is longer than its limit"
LEFT_OUT_STEP: Final = "an earlier response of a turn that is itself longer than the limit"

Summary: TypeAlias = str | Callable[[list[ResponseItem]], str]
"""What stands for the turns that left: a text, or a function of their items that returns one."""

Indexes: TypeAlias = list[int]
"""Indexes of items in the history, ascending."""


class FittedHistory(History):
    """A history that fits.

    Attributes:
        report: what left or was replaced, as a `Change` for each item: `/input/3` is the item of
            that index in the history that `fit` was given.
        left: the items that left, oldest first.
        tokens: of what stayed, by the function that counted.
    """

    report: list[Change]
    left: list[ResponseItem]
    tokens: int

    @property
    def items(self) -> tuple[ResponseItem, ...]:
        """The items that stayed."""
        return tuple(self)


def fit(
    history: Sequence[ResponseItem],
    tokens: int,
    *,
    to: int | None = None,
    keep: int = 1,
    keep_images: int | None = None,
    summary: Summary | None = None,
    count: ItemCounter | None = None,
) -> FittedHistory:
    """The history, without its oldest turns if it has more tokens than it may have.

    System messages at its beginning stay, and so do the newest turns. What fits is unchanged.

    Args:
        history: the items, oldest first; not changed.
        tokens: the most that the items may have. Instructions in `Prompt.instructions`, tools and
            the response need room beside it.
        to: how many remain at most where something leaves; the default is half of `tokens`. If the
            part that must stay has more, that part alone remains.
        keep: how many of the newest turns stay. Of their responses, the oldest leave last of all,
            where even these turns alone are too long; the newest response always stays.
        keep_images: how many of the newest images stay once the history is too long; a line of text
            stands for each other. Tried before a turn leaves. None: images stay.
        summary: what stands in place of the turns that left, as a user message: a text, or a
            function of their items. It may be called again where its text is too long.
        count: counts the tokens of items. None: four characters are a token, an image is 1,600.
            `Client.count` tells at the end how right it was.

    Returns:
        What stayed, with a report of what left.

    Raises:
        ValueError: what must stay has more than `tokens`, or a call of the newest response waits
            for its output; a limit that cannot be meant; `count` returned a negative number.
        TypeError: the history holds what is no item; an argument is of the wrong kind; `count`
            returned no whole number, or `summary` no text.
    """
    items = list(history)  # of an iterator, nothing would be left after the check
    check_items(items)
    limit = _checked_limits(tokens, to, keep, keep_images)
    check_callable("count", count, "a function of items")
    if not isinstance(summary, str):
        check_callable("summary", summary, "a text, or a function of the items that left")
    fitted = FittedHistory(items)
    fitted.report, fitted.left = [], []
    fitted.tokens = counted_items(count, fitted)
    if fitted.tokens <= tokens:
        if isinstance(history, History):
            fitted.anchor = history.anchor
        return fitted
    _refuse_open_calls(items)
    shortened, report = without_old_images(items, keep_images)
    return _Cutter(shortened, report, keep, summary, count).fitted(tokens, limit)


class _Cutter:
    """Finds the first cut of a history that is deep enough."""

    def __init__(
        self,
        items: list[ResponseItem | None],
        report: list[Change],
        keep: int,
        summary: Summary | None,
        count: ItemCounter | None,
    ) -> None:
        self._items = items
        """The history, with None for what the images took along."""
        self._report = report
        self._summary = summary
        self._count = count
        self._cuts = _cuts(items, keep)
        """Indexes of what leaves with each cut beside the ones before, the first cut first."""

    def fitted(self, tokens: int, limit: int) -> FittedHistory:
        """The history after the first cut that leaves at most `limit`.

        Each cut leaves less, so the first is found by halving: `count` may be slow.
        """
        low, high = 0, len(self._cuts)
        while low < high:
            middle = (low + high) // 2
            if self._after(middle, is_final=False).tokens <= limit:
                high = middle
            else:
                low = middle + 1
        # A summary may be longer than what it stands for, and a function may count unevenly.
        fitted = self._after(low, is_final=True)
        while fitted.tokens > tokens and low < len(self._cuts):
            low += 1
            fitted = self._after(low, is_final=True)
        if fitted.tokens <= tokens:
            return fitted
        raise ValueError(
            f"the beginning and the newest turn have {fitted.tokens} tokens, more than {tokens}: "
            "they always stay. Raise the limit, or shorten an output in the newest turn"
        )

    def _after(self, number: int, *, is_final: bool) -> FittedHistory:
        """The history after so many cuts; `is_final`: with its report and the final summary."""
        gone: set[int] = set()
        for indexes in self._cuts[:number]:
            gone.update(indexes)
        stayed = FittedHistory()
        left: list[ResponseItem] = []
        behind_instructions = 0
        for index, item in enumerate(self._items):
            if item is None:
                continue
            if index in gone:
                left.append(item)
            else:
                stayed.append(item)
                if not left and _is_beginning(item):
                    behind_instructions = len(stayed)
        if left and self._summary is not None:
            text = self._summary_text(left, is_final=is_final)
            if text:
                stayed.insert(behind_instructions, user(text))
        stayed.tokens = counted_items(self._count, stayed)
        stayed.left = left
        stayed.report = list(self._report)
        if is_final:
            stayed.report += self._changes(number)
        return stayed

    def _changes(self, number: int) -> list[Change]:
        """What the cuts left out, item by item."""
        changes: list[Change] = []
        for position, indexes in enumerate(self._cuts[:number]):
            reason = LEFT_OUT
            if position >= self._cuts.turns:
                reason = LEFT_OUT_STEP
            for index in indexes:
                changes.append(Change("dropped", f"/input/{index}", reason, breaks_prefix=True))
        return changes

    def _summary_text(self, left: list[ResponseItem], *, is_final: bool) -> str:
        """The text for what left. A function is asked once the cut is known: it may be a model."""
        if isinstance(self._summary, str):
            return self._summary
        if self._summary is None or not is_final:
            return ""
        text = self._summary(list(left))
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"`summary` must return a text, not {text!r:.60}")
        return text


# --- what may leave, and in which order ---


class _CutList(list[Indexes]):
    """The cuts, and how many of them are whole turns: these come first."""

    turns: int = 0


def _cuts(items: Sequence[ResponseItem | None], keep: int) -> _CutList:
    """What leaves, cut by cut: turns from the oldest, then responses of the turns that stay."""
    reaches = _reaches(items)
    turns = _joined(_turns(items), reaches)
    newest = max(len(turns) - keep, 0)
    if len(turns) > 1 and not _begins_with_user(items, turns[0]):
        newest = max(newest, 1)  # no user began it: where something leaves, it does
    cuts = _CutList(turns[:newest])
    cuts.turns = len(cuts)
    steps: list[Indexes] = []
    for turn in turns[newest:]:
        # Of another turn, which no user began, what stays would begin with a call.
        if _begins_with_user(items, turn):
            steps += _joined(_steps(items, turn), reaches)
    cuts += steps[:-1]  # the newest response stays
    return cuts


def _turns(items: Sequence[ResponseItem | None]) -> list[Indexes]:
    """The turns of a history, without the system messages at its beginning."""
    turns: list[Indexes] = []
    is_beginning = True
    follows_user = False
    for index, item in enumerate(items):
        if item is None or (is_beginning and _is_beginning(item)):
            continue
        is_beginning = False
        if (_is_user(item) and not follows_user) or not turns:
            turns.append([])
        turns[-1].append(index)
        follows_user = _is_user(item)
    return turns


def _steps(items: Sequence[ResponseItem | None], turn: Indexes) -> list[Indexes]:
    """The responses in a turn, each with the outputs of its calls; messages to the model stay."""
    steps: list[Indexes] = []
    is_open = False
    """Whether the next item of a model belongs to the newest step."""
    for index in turn:
        item = items[index]
        if isinstance(item, ALL_OUTPUTS):
            is_open = False
            if steps:
                steps[-1].append(index)
        elif isinstance(item, Message) and item.role != "assistant":
            is_open = False
        else:
            if not is_open:
                steps.append([])
            steps[-1].append(index)
            is_open = True
    return steps


def _joined(groups: list[Indexes], reaches: list[int]) -> list[Indexes]:
    """The groups, those in one between which nothing may be cut."""
    joined: list[Indexes] = []
    reach = -1
    for group in groups:
        if group[0] <= reach:
            joined[-1] += group
        else:
            joined.append(list(group))
        for index in group:
            reach = max(reach, reaches[index])
    return joined


def _reaches(items: Sequence[ResponseItem | None]) -> list[int]:
    """For each item the index of the last one that must stay with it.

    That is the last item of its response, and the output of a call. Some providers use an id of a
    call again in each turn: an output is of the newest call that had this id.
    """
    reaches = list(range(len(items)))
    first_of: dict[str, int] = {}
    """Response -> its first item."""
    calls: dict[str, int] = {}
    """Id of a call -> the newest call with it."""
    for index, item in enumerate(items):
        if item is None:
            continue
        if item.response_id is not None:
            reaches[first_of.setdefault(item.response_id, index)] = index
        if isinstance(item, ALL_CALLS):
            calls[item.call_id] = index
        elif isinstance(item, ALL_OUTPUTS) and item.call_id in calls:
            call = calls[item.call_id]
            reaches[call] = max(reaches[call], index)
    return reaches


def _is_beginning(item: ResponseItem) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer")


def _begins_with_user(items: Sequence[ResponseItem | None], turn: Indexes) -> bool:
    first = items[turn[0]]
    return first is not None and _is_user(first)


def _is_user(item: ResponseItem) -> bool:
    return isinstance(item, Message) and item.role == "user"


# --- what cannot be meant ---


def _checked_limits(tokens: int, to: int | None, keep: int, keep_images: int | None) -> int:
    """How many tokens remain at most after a cut.

    Raises:
        TypeError: a limit that is no whole number.
        ValueError: a limit that cannot be meant.
    """
    check_count("tokens", tokens)
    check_count("keep", keep)
    check_kind("`to`", to, int, "a whole number")
    check_kind("keep_images", keep_images, int, "a whole number")
    limit = max(tokens // DEPTH, 1) if to is None else to
    if not 1 <= limit <= tokens:
        raise ValueError(f"`to` is from 1 to {tokens}, the limit, not {to}")
    if keep_images is not None and keep_images < 0:
        raise ValueError(f"keep_images is a number from 0, not {keep_images}")
    return limit


def _refuse_open_calls(history: Sequence[ResponseItem]) -> None:
    """Refuses a history that waits for an output: the next item would belong to what is cut here.

    Raises:
        ValueError: a call after the user's last message has no output.
    """
    answered: set[str] = set()
    for index in range(len(history) - 1, -1, -1):
        item = history[index]
        if _is_user(item):
            return
        if isinstance(item, ALL_OUTPUTS):
            answered.add(item.call_id)
        elif isinstance(item, ALL_CALLS) and item.call_id not in answered:
            raise ValueError(
                f"items[{index}]: the call {item.call_id!r} has no output yet: "
                "append the outputs before the history is cut"
            )


# --- old images as a line of text: for agents that look at screenshots ---

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
