"""The turns of a long history, written once: each request of a conversation repeats the last one.

    prefix                            rest
    user, call, output, assistant …   user, call, output, assistant, user
    JSON, kept from an earlier build  built now

A history is cut before a message of the user, so that all calls before it have their outputs. The
prefix counts only while it holds the very same items, and nothing else of the request has changed.
What of the request depends on both parts is not guessed: when a cut is chosen, what is behind it is
also built alone, and the cut is taken only where nothing but the turns differs. A part whose build
changes an item, and so reports it, is never cut.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from operator import is_
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from streamlib.request.history import ALL_CALLS, ALL_OUTPUTS, CALLS, OUTPUTS
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.request.target import Target, continues_stored_history
from streamlib_parsers.items import (
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.stream_error import StreamError

LONG: Final = 64
"""Items from which a history is cut: a shorter one is built in less than half a millisecond."""

REST: Final = 24
"""Items behind a cut from which the next cut is looked for."""

MOST: Final = 16
"""Histories whose prefixes are kept, the latest used."""

MOST_BYTES: Final = 32 << 20
"""Bytes of JSON that all prefixes may have."""

TURNS: Final = ("messages", "input", "contents")
"""Keys of a body that hold the turns; each wire has one of them."""

PLAIN: Final = (Message, Reasoning, ServerToolCall, ServerToolResult, *CALLS, *OUTPUTS)
"""Items of a prefix. Others may change what later items mean: a compaction, a search for tools."""


class Draft(Protocol):
    """What a request is written as."""

    body: JsonObject
    headers: dict[str, str]
    sent_names: dict[str, str]
    namespaces: dict[str, tuple[str, str]]

    @property
    def report(self) -> Report:
        """Every change that was made."""
        ...


D = TypeVar("D", bound=Draft)


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first items of a history, and their turns.

    Attributes:
        target: what the request was built for.
        settings: the prompt without its items.
        strict_origin: as in `build`.
        count: how many items they are.
        items: these items and the next two, the message of the user and its answer: others might
            join the turns at the cut.
        call_ids: the ids of the calls before the cut.
        turns: their turns as JSON, joined by commas.
        leading: turns of the rest that stand before them: the instructions.
        repeated: turns of the rest after those which are in `turns` already: 1 where the message of
            the user belongs to the turn of the outputs before it, else 0.
    """

    target: Target
    settings: Prompt
    strict_origin: bool
    count: int
    items: Sequence[ResponseItem]
    call_ids: frozenset[str]
    turns: bytes
    leading: int
    repeated: int


class KnownTurns:
    """The prefixes of the latest histories; one for the process."""

    def __init__(self) -> None:
        self._prefixes: OrderedDict[int, Prefix] = OrderedDict()
        """By the identity of the first item, which the prefix keeps alive."""
        self._lock = Lock()

    def draft(
        self, prompt: Prompt, target: Target, write: Callable[[Prompt], D], *, strict_origin: bool
    ) -> D:
        """The draft that `write` returns for the prompt, with the turns of the prefix as `Raw`."""
        if not _can_be_cut(prompt, target):
            return write(prompt)
        settings = replace(prompt, input=())
        empty = Prefix(target, settings, strict_origin, 0, (), frozenset(), b"", 0, 0)
        prefix = self._find(prompt, empty) or empty
        rest = prompt.items[prefix.count :]
        try:
            draft = write(replace(prompt, input=rest))
        except StreamError:
            return write(prompt)  # what is refused alone may be taken after the prefix
        turns = _turns(draft)
        if prefix.count and not (turns and _is_separate(draft, rest, prefix)):
            return write(prompt)
        if turns and (not prefix.count or len(rest) >= REST):
            self._extend(prefix, rest, draft, write)
        if turns and prefix.count:
            key, sent = turns
            own = sent[prefix.leading + prefix.repeated :]
            draft.body[key] = [*sent[: prefix.leading], Raw(prefix.turns), *own]
        return draft

    def _find(self, prompt: Prompt, wanted: Prefix) -> Prefix | None:
        with self._lock:
            prefix = self._prefixes.get(id(prompt.items[0]))
            if prefix is None:
                return None
            self._prefixes.move_to_end(id(prompt.items[0]))
        if (prefix.target, prefix.settings, prefix.strict_origin) != (
            wanted.target,
            wanted.settings,
            wanted.strict_origin,
        ):
            return None
        # Each is the same object: equal ones may be written otherwise (1 and 1.0).
        if len(prompt.items) >= len(prefix.items) and all(map(is_, prefix.items, prompt.items)):
            return prefix
        return None

    def _extend(
        self, prefix: Prefix, rest: Sequence[ResponseItem], draft: D, write: Callable[[Prompt], D]
    ) -> None:
        """Keeps the prefix up to the last cut in the rest, if there is one."""
        boundary = _last_cut(rest)
        if boundary == 0 or not _is_unchanged(draft):
            return
        try:
            behind = write(replace(prefix.settings, input=rest[boundary:]))
        except StreamError:
            return
        both, alone = _turns(draft), _turns(behind)
        if both is None or alone is None or not _differ_in_turns_alone(draft, behind):
            return
        overlap = _overlap(both[1], alone[1])
        if overlap is None or (prefix.count and overlap[0] != prefix.leading):
            return
        leading, repeated, same = overlap
        start = leading + prefix.repeated
        turns = msgspec.json.encode(both[1][start : len(both[1]) - same])[1:-1]
        extended = replace_fields(
            prefix,
            count=prefix.count + boundary,
            items=[*prefix.items[: prefix.count], *rest[: boundary + 2]],
            call_ids=prefix.call_ids.union(_call_ids(rest[:boundary], ALL_CALLS)),
            turns=b",".join(filter(None, (prefix.turns, turns))),
            leading=leading,
            repeated=repeated,
        )
        self._keep(extended)

    def _keep(self, prefix: Prefix) -> None:
        with self._lock:
            self._prefixes[id(prefix.items[0])] = prefix
            self._prefixes.move_to_end(id(prefix.items[0]))
            size = sum(len(prefix.turns) for prefix in self._prefixes.values())
            while self._prefixes and (len(self._prefixes) > MOST or size > MOST_BYTES):
                _, oldest = self._prefixes.popitem(last=False)
                size -= len(oldest.turns)


KNOWN_TURNS: Final = KnownTurns()


def _can_be_cut(prompt: Prompt, target: Target) -> bool:
    if isinstance(prompt.input, str) or len(prompt.input) < LONG:
        return False
    if continues_stored_history(prompt.extra, target.wire_api):
        return False
    # Breakpoints count items from the first one.
    return not (isinstance(prompt.cache, CacheOptions) and prompt.cache.breakpoints)


def _last_cut(items: Sequence[ResponseItem]) -> int:
    """The last message of the user that the model has answered; 0 if there is none."""
    latest = 0
    for index in range(len(items) - 2, 0, -1):
        if _is_of_user(items[index]) and not _is_of_user(items[index + 1]):
            latest = index
            break
    before = items[:latest]
    if not all(isinstance(item, PLAIN) for item in before):
        return 0
    if _call_ids(before, ALL_CALLS) != _call_ids(before, ALL_OUTPUTS):
        return 0
    return latest


def _is_of_user(item: ResponseItem) -> bool:
    return isinstance(item, Message) and item.role == "user"


def _call_ids(items: Sequence[ResponseItem], kinds: tuple[type, ...]) -> set[str]:
    call_ids: set[str] = set()
    for item in items:
        if isinstance(item, kinds):
            call_id: Any = getattr(item, "call_id", None)
            call_ids.add(call_id)
    return call_ids


def _is_separate(draft: Draft, rest: Sequence[ResponseItem], prefix: Prefix) -> bool:
    """Whether the build of the rest would be the same after the prefix."""
    calls = _call_ids(rest, ALL_CALLS)
    outputs = _call_ids(rest, ALL_OUTPUTS)
    is_own = outputs <= calls and calls.isdisjoint(prefix.call_ids)
    return is_own and _is_unchanged(draft)


def _is_unchanged(draft: Draft) -> bool:
    """Whether all items and names were sent as they are."""
    changes = draft.report.changes
    return not draft.sent_names and not any(c.path.startswith("/input") for c in changes)


def _turns(draft: Draft) -> tuple[str, list[JsonObject]] | None:
    for key in TURNS:
        turns = draft.body.get(key)
        if isinstance(turns, list):
            return key, turns
    return None


def _differ_in_turns_alone(draft: Draft, other: Draft) -> bool:
    first, second = dict(draft.body), dict(other.body)
    for key in TURNS:
        if isinstance(first.get(key), list):
            first[key] = second[key] = None
    return (
        list(first.items()) == list(second.items())
        and draft.headers == other.headers
        and draft.report.changes == other.report.changes
        and draft.sent_names == other.sent_names
        and draft.namespaces == other.namespaces
    )


def _overlap(
    turns: Sequence[JsonObject], alone: Sequence[JsonObject]
) -> tuple[int, int, int] | None:
    """How the turns of a history end with those of its last items, built alone.

    Returns:
        How many turns lead both, how many of the others differ in that more was before them (at
        most one), and how many are the same; None where they differ otherwise.
    """
    same = 0
    while same < min(len(turns), len(alone)) and turns[-1 - same] == alone[-1 - same]:
        same += 1
    for repeated in (0, 1):
        leading = len(alone) - same - repeated
        if same and leading >= 0 and turns[:leading] == alone[:leading]:
            return leading, repeated, same
    return None
