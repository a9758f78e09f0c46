"""Where two requests begin to differ for a prompt cache, and what was done there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from streamlib.history.request_parts import Group, PromptPart, RequestParts, value_at
from streamlib.providers.cache_rules import CacheRule, Scope
from streamlib.request.build import Request
from streamlib.request.report import Change

ORDER: Final = ("tools", "system", "messages")
"""Groups of parts in the order in which a cache has them."""


BEFORE: Final[dict[Scope, tuple[Group, ...]]] = {
    "all": (),
    "system": ("tools",),
    "messages": ("tools", "system"),
}
"""Scope of a setting -> the groups of parts before what it is about."""


class CacheDifference(NamedTuple):
    """The first difference.

    Attributes:
        intact: how many parts of the earlier request the later one can still have read.
        path: JSON pointer of what differs.
        cause: in words.
        reason: in the provider's word.
    """

    intact: int
    path: str | None
    cause: str
    reason: str


def first_difference(
    before: Request,
    after: Request,
    earlier: RequestParts,
    later: RequestParts,
    rule: CacheRule,
    *,
    is_stored: bool,
) -> CacheDifference | None:
    """The first difference in the provider's order; None: the later request only goes on.

    Args:
        before: the earlier request.
        after: the later one.
        earlier: parts of `before`.
        later: parts of `after`.
        rule: of the model.
        is_stored: the provider stores the history of `after`: its messages are new ones.
    """
    differences = [*_separate_caches(before, after, later, rule), *_settings(earlier, later, rule)]
    of_parts = _parts(before, after, earlier, later, rule, is_stored=is_stored)
    if of_parts is not None:
        differences.append(of_parts)
    # The first of equal ones: a setting stands before the parts that it is about.
    return min(differences, key=lambda difference: difference.intact, default=None)


def _separate_caches(
    before: Request, after: Request, later: RequestParts, rule: CacheRule
) -> list[CacheDifference]:
    """Another model, account, server or conversation: their caches are apart."""
    differences: list[CacheDifference] = []
    first, second = before.origin, after.origin
    if before.model != after.model:
        cause = f"another model: {after.model}, and before {before.model}"
        path = "/model" if "model" in later.body else None  # else it is in the URL
        differences.append(CacheDifference(0, path, cause, "model_changed"))
    if _differ(first.account, second.account):
        differences.append(CacheDifference(0, None, "another account", "account_changed"))
    # The address of some names the model, too.
    if _differ(first.endpoint, second.endpoint) and before.model == after.model:
        cause = f"another server: {second.endpoint}, and before {first.endpoint}"
        differences.append(CacheDifference(0, None, cause, "endpoint_changed"))
    header = rule.route_header
    if header is not None and before.headers.get(header) != after.headers.get(header):
        cause = f"a setting that invalidates: the header {header}"
        differences.append(CacheDifference(0, None, cause, "prompt_cache_key_changed"))
    return differences


def _differ(first: str | None, second: str | None) -> bool:
    """Whether both are known and differ."""
    return first is not None and second is not None and first != second


def _settings(earlier: RequestParts, later: RequestParts, rule: CacheRule) -> list[CacheDifference]:
    differences: list[CacheDifference] = []
    for setting in rule.settings:
        if value_at(earlier.body, setting.path) != value_at(later.body, setting.path):
            name = setting.path[1:].replace("/", ".")
            cause = f"a setting that invalidates: {name}"
            intact = earlier.count(*BEFORE[setting.scope])
            differences.append(CacheDifference(intact, setting.path, cause, setting.reason))
    if not rule.toggles:
        return differences
    toggles: list[tuple[str, Scope, str, str | None, str | None]] = [
        ("web search", "system", rule.reasons[1], earlier.web_search, later.web_search),
        ("citations", "system", rule.reasons[1], earlier.citations, later.citations),
        ("images", "messages", "unavailable", earlier.image, later.image),
    ]
    for name, scope, reason, first, second in toggles:
        if (first is None) != (second is None):
            state = "off" if second is None else "on"
            cause = f"a setting that invalidates: {name} {state}"
            differences.append(
                CacheDifference(earlier.count(*BEFORE[scope]), second or first, cause, reason)
            )
    return differences


def _parts(
    before: Request,
    after: Request,
    earlier: RequestParts,
    later: RequestParts,
    rule: CacheRule,
    *,
    is_stored: bool,
) -> CacheDifference | None:
    first, second = earlier.parts, later.parts
    index = 0
    while index < min(len(first), len(second)) and first[index].equals(second[index]):
        index += 1
    if index == len(first):
        return None
    old = first[index]
    new = second[index] if index < len(second) else None
    if is_stored and old.group == "messages":
        return None
    group = old.group
    if new is not None and ORDER.index(new.group) < ORDER.index(group):
        group = new.group  # one was added behind the last of its group
    path = old.path if new is None or new.group != group else new.path
    tools_reason, system_reason, messages_reason = rule.reasons
    if group == "tools":
        cause = _tools_cause(earlier, later, index)
        return CacheDifference(index, path, _ours(before, after, "/tools") or cause, tools_reason)
    if group == "system":
        return CacheDifference(index, path, "system text", system_reason)
    cause = _messages_cause(first, second, index)
    if _is_compaction(new) and not _is_compaction(old):
        return CacheDifference(index, path, "a compaction", "context_compacted")
    ours = _ours(before, after, "/input", index)
    return CacheDifference(index, path, ours or cause, messages_reason)


def _tools_cause(earlier: RequestParts, later: RequestParts, index: int) -> str:
    old = [part for part in earlier.parts if part.group == "tools"]
    new = [part for part in later.parts if part.group == "tools"]
    if index < min(len(old), len(new)) and old[index].value == new[index].value:
        return "keys of a schema: the same ones in another order"
    before = {part.content for part in old}
    after = {part.content for part in new}
    if before == after and len(old) == len(new):
        return "tool order: the same tools in another order"
    if before < after:
        return "a tool was added"
    if after < before:
        return "a tool was removed"
    return "a tool changed: its description, schema or options"


def _messages_cause(first: Sequence[PromptPart], second: Sequence[PromptPart], index: int) -> str:
    if index == len(second):
        return "a removal: the later request ends earlier"
    old, new = first[index], second[index]
    if old.value == new.value and old.role == new.role:
        return "keys of an object: the same ones in another order"
    if any(part.equals(new) for part in first[index + 1 :]):
        return "a removal: parts before this one are gone"
    if any(part.equals(old) for part in second[index + 1 :]):
        return "an insertion: this part is new before earlier ones"
    return "an edit: this part is another one"


def _is_compaction(part: PromptPart | None) -> bool:
    if part is None or not isinstance(part.value, dict):
        return False
    return "compaction" in str(part.value.get("type"))


def _ours(before: Request, after: Request, group: str, limit: int | None = None) -> str | None:
    """Our own change of what both had, if the report of one of them alone names it."""
    for request, other, name in ((after, before, "later"), (before, after, "earlier")):
        known = set(other.report)
        for change in request.report:
            if not change.path.startswith(group) or change in known:
                continue
            if change.breaks_prefix or _is_within(change, limit):
                what = f"{change.action} {change.path} of the {name} request: {change.reason}"
                return f"our own downgrade: {what}"
    return None


def _is_within(change: Change, limit: int | None) -> bool:
    """Whether a change is about an item that the earlier request may have had."""
    number = change.path.split("/")[2:3]
    if limit is None or not number or not number[0].isdigit():
        return True
    return int(number[0]) <= limit
