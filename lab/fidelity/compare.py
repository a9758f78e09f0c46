"""Compares the leaves of a request with those of the same request, decoded and built again.

A wire is described by a `WireTable`: where its types are, which forms of a body are equivalent,
which leaves the builder always adds, and which paths of the prompt a key of the body stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from lab.fidelity.shapes import Struct
from streamlib import Change, Prompt, Request, StreamError, WireApi, parse_request
from streamlib.request.report import Action
from streamlib_parsers.stream_error import ErrorInfo

Body: TypeAlias = dict[str, Any]
MISSING: Final = "(missing)"
OF_ITEMS: Final = ("/input", "/cache/breakpoints")
"""Paths of the prompt behind which the index of an item stands."""
INDEX: Final = re.compile(r"(?<=/)\d+(?=/|$)")


@dataclass(frozen=True)
class Equivalent:
    """Two forms of a body that mean the same.

    Attributes:
        name: the forms, in a few words.
        source: where the provider, or its SDK, says so.
        apply: turns one form into the other, in place.
    """

    name: str
    source: str
    apply: Callable[[Body], None]


@dataclass(frozen=True)
class WireTable:
    """What the comparison knows of one wire.

    Attributes:
        request: the SDK's type of a request.
        build: builds a prompt for the same wire, and for a model that takes everything.
        complete: makes a drawn body one that the provider would take: results for its calls, ends
            that are allowed. In place.
        equivalents: the equivalent forms.
        added: leaves that the builder always adds, as regular expressions of pointers -> source.
        reported: key of the body, or keys with slashes -> paths of the prompt whose changes name
            it. Behind those of `OF_ITEMS` stands the item of the same part; `*` is the same index.
        turns: the key that holds the turns.
        path: of the request, where it names the model.
        chained: complete requests that continue what the provider stores: outputs, without their
            calls.
    """

    wire_api: WireApi
    request: Callable[[], Struct]
    build: Callable[[Prompt], Request]
    complete: Callable[[Body], None]
    equivalents: Sequence[Equivalent]
    added: Mapping[str, str]
    reported: Mapping[str, tuple[str, ...]]
    turns: str
    path: str | None = None
    chained: Sequence[Body] = ()


@dataclass(frozen=True)
class Loss:
    """A leaf that differs.

    Attributes:
        pointer: of the leaf in the request.
        sent: its value, or `MISSING`.
        built: its value in the request that was built again, or `MISSING`.
    """

    pointer: str
    sent: Any
    built: Any

    @property
    def pattern(self) -> str:
        """The pointer without indexes."""
        return INDEX.sub("*", self.pointer)


@dataclass
class Outcome:
    """The comparison of one request.

    Attributes:
        leaves: how many leaves were compared.
        silent: differences that no report names.
        reported: differences that the report names, with its first reason.
        error: why the request was refused; nothing was compared then.
    """

    leaves: int = 0
    silent: list[Loss] = field(default_factory=list)
    reported: list[tuple[Loss, str]] = field(default_factory=list)
    error: ErrorInfo | None = None


def compare(table: WireTable, drawn: Body) -> Outcome:
    """Decodes a request and builds it again, and compares the leaves of both."""
    body = copied(drawn)
    if drawn not in table.chained:
        table.complete(body)
    try:
        request = table.build(_parse(table, body))
    except StreamError as error:
        return Outcome(error=error.info)
    canonical_body = canonical(table, body)
    built_body = canonical(table, msgspec.json.decode(request.body))
    built = leaves_of(built_body)
    # pointers are into the turns as they are compared
    body[table.turns] = canonical_body[table.turns]
    sent = leaves_of(canonical_body)
    outcome = _outcome(table, body, sent, built, request.report, {})
    # what stands behind a turn or a part that the report says was left out has moved up
    for of_turns in (False, True):
        if outcome.silent:
            removed = _removed_turns(table, body, request.report) if of_turns else {}
            removed |= _removed_parts(table, body, built_body, request.report, removed)
            aligned = _outcome(table, body, sent, built, request.report, removed)
            outcome = min(outcome, aligned, key=lambda found: len(found.silent))
    return outcome


def _outcome(
    table: WireTable,
    body: Body,
    sent: Body,
    built: Body,
    report: Sequence[Change],
    removed: Mapping[str, Change],
) -> Outcome:
    """The comparison, after some elements of lists were removed from what was sent."""
    outcome = Outcome(leaves=len(sent))
    aligned: Body = {}
    pointers: dict[str, str] = {}
    for pointer, value in sent.items():
        change, moved = _moved(pointer, removed)
        if change is not None:
            outcome.reported.append((Loss(pointer, value, MISSING), change.reason))
            continue
        aligned[moved] = value
        pointers[moved] = pointer
    for found in differences(table, aligned, built):
        loss = replace(found, pointer=pointers.get(found.pointer, found.pointer))
        named = _naming(table, body, loss, report)
        if named is None:
            outcome.silent.append(loss)
        else:
            outcome.reported.append((loss, named.reason))
    return outcome


def _moved(pointer: str, removed: Mapping[str, Change]) -> tuple[Change | None, str]:
    """The change that removed a leaf, and its pointer once the removed elements are gone."""
    if not removed:
        return None, pointer
    before, moved = "", ""
    for key in pointer.split("/")[1:]:
        here = f"{before}/{key}"
        if here in removed:
            return removed[here], ""
        if key.isdigit():
            gone = sum(f"{before}/{index}" in removed for index in range(int(key)))
            key = str(int(key) - gone)  # noqa: PLW2901
        before, moved = here, f"{moved}/{key}"
    return None, moved


def _dropped_items(report: Sequence[Change]) -> dict[int, Change]:
    """Index of an item -> the change that left it out, or a part of it."""
    dropped: dict[int, Change] = {}
    for change in report:
        matched = re.match(r"/input/(\d+)(/content|/output|$)", change.path)
        if matched is not None and change.action == "dropped":
            dropped[int(matched[1])] = change
    return dropped


def _removed_turns(table: WireTable, body: Body, report: Sequence[Change]) -> dict[str, Change]:
    """Pointers of turns whose items were left out, and what says so."""
    dropped = _dropped_items(report)
    turns = body[table.turns]
    removed: dict[str, Change] = {}
    if not dropped or not isinstance(turns, list):
        return removed
    for number in range(len(turns)):
        place = f"/{table.turns}/{number}"
        items = _items_at(table, body, place)
        if items and all(index in dropped for index in items):
            removed[place] = dropped[items[0]]
    return removed


def _removed_parts(
    table: WireTable,
    body: Body,
    built_body: Body,
    report: Sequence[Change],
    removed_turns: Mapping[str, Change],
) -> dict[str, Change]:
    """Pointers of parts of turns that were not built, of items with a part that was left out."""
    dropped = _dropped_items(report)
    turns = body[table.turns]
    removed: dict[str, Change] = {}
    if not dropped or not isinstance(turns, list):
        return removed
    places = [f"/{table.turns}/{number}" for number in range(len(turns))]
    kept = [place for place in places if place not in removed_turns]
    for turn_place, built_turn in zip(kept, built_body[table.turns], strict=False):
        turn = turns[places.index(turn_place)]
        for name, parts in turn.items():
            for index, part in enumerate(parts if isinstance(parts, list) else ()):
                place = f"{turn_place}/{name}/{index}"
                items = [item for item in _items_at(table, body, place) if item in dropped]
                if items and part not in (built_turn.get(name) or ()):
                    removed[place] = dropped[items[0]]
    return removed


def _parse(table: WireTable, body: Body) -> Prompt:
    return parse_request(table.wire_api, msgspec.json.encode(body), path=table.path)


def copied(body: Body) -> Body:
    """A copy of a JSON object; `copy.deepcopy` takes longer."""
    copy: Body = msgspec.json.decode(msgspec.json.encode(body))
    return copy


def canonical(table: WireTable, body: Body) -> Body:
    """A copy of the body in one of its equivalent forms."""
    result = copied(body)
    for equivalent in table.equivalents:
        equivalent.apply(result)
    return result


def differences(table: WireTable, sent: Body, built: Body) -> Iterator[Loss]:
    """Leaves that are missing, changed, or added though no row of the table says so."""
    for pointer, value in sent.items():
        other = built.get(pointer, MISSING)
        # True is 1 in Python, but not in JSON
        if other != value or isinstance(other, bool) != isinstance(value, bool):
            yield Loss(pointer, value, other)
    for pointer, value in built.items():
        if pointer not in sent and not _is_added(table, pointer):
            yield Loss(pointer, MISSING, value)


def _is_added(table: WireTable, pointer: str) -> bool:
    return any(re.fullmatch(pattern, pointer) for pattern in table.added)


def leaves_of(value: Any, pointer: str = "") -> Body:
    """JSON pointer -> value, of every scalar and every empty object or list."""
    found: Body = {}
    _add_leaves(found, value, pointer)
    return found


def _add_leaves(found: Body, value: Any, pointer: str) -> None:
    if isinstance(value, dict) and value:
        members = [(str(key).replace("~", "~0").replace("/", "~1"), value[key]) for key in value]
    elif isinstance(value, list) and value:
        members = [(str(index), entry) for index, entry in enumerate(value)]
    else:
        found[pointer] = value
        return
    for key, inner in members:
        _add_leaves(found, inner, f"{pointer}/{key}")


# --- reports ---


def _naming(table: WireTable, body: Body, loss: Loss, report: Sequence[Change]) -> Change | None:
    """The change that names a leaf, if any does: its action and its path are those of the loss."""
    paths = _paths_of(table, loss.pointer)
    for change in report:
        if not _can_be(loss, change.action):
            continue
        if any(_is_named(table, body, loss.pointer, path, change) for path in paths):
            return change
    return None


def _can_be(loss: Loss, action: Action) -> bool:
    """Whether a leaf can differ so after this action."""
    if action == "dropped":
        # of what is left out an empty list may remain; an element behind it moves up
        return loss.sent is not MISSING or loss.built in ("", [], {})
    if action == "renamed":
        return MISSING not in (loss.sent, loss.built)
    return True


def _paths_of(table: WireTable, pointer: str) -> tuple[str, ...]:
    """The paths of the prompt that a pointer into the body stands for: of its longest beginning."""
    key = pointer[1:]
    while key not in table.reported and "/" in key:
        key = key.rpartition("/")[0]
    return table.reported.get(key, (f"/extra/{key}",))


def _is_named(table: WireTable, body: Body, pointer: str, path: str, change: Change) -> bool:
    """Whether a change of the prompt is about a leaf of the body.

    Args:
        path: the path of the prompt that the key of the body stands for.
    """
    changed = change.path
    if path in OF_ITEMS:
        if changed == path and change.action == "generated":
            key, index, *_ = (*pointer.split("/")[1:], "0")
            return key == table.turns and index.isdigit() and int(index) >= len(body[key])
        # any other change of the whole input says nothing about a leaf
        matched = re.match(rf"{path}/(\d+)(?:/|$)", changed)
        items = _items_at(table, body, pointer)
        if change.action == "generated":
            # an output stands behind its call
            items = range(items.start - 1, items.stop)
        if matched is None or int(matched[1]) not in items:
            return False
        keys = PARTS.get(changed.rpartition("/")[2])
        return keys is None or bool(keys & set(pointer.split("/")))
    if path.endswith("/*"):
        index = pointer.split("/")[2]
        path = f"{path[:-1]}{index}"
    if change.action == "dropped" and path.startswith(f"{changed}/"):
        return True  # with a setting its options are lost
    if not (changed == path or changed.startswith(f"{path}/")):
        return False
    keys = PARTS.get(changed.rpartition("/")[2])
    return keys is None or bool(keys & set(pointer.split("/")))


PARTS: Final[dict[str, set[str]]] = {
    "call_id": {"id", "call_id", "tool_call_id", "tool_use_id", "toolUseId"},
    "arguments": {"arguments", "input", "args"},
    "is_error": {"is_error", "status", "response", "content", "output", "result"},
    "signature": {"signature", "thoughtSignature"},
    "output": {"output", "content", "result", "response"},
    "annotations": {"annotations", "citations"},
    "schema": {"parameters", "input_schema", "inputSchema", "parametersJsonSchema"},
    "description": {"description"},
    "name": {"name", "tool_name"},
    "cache": {"cache_control", "cachePoint"},
}
"""Part of an item or a tool that a change names -> the keys that hold it on the wires."""


def _items_at(table: WireTable, body: Body, pointer: str) -> range:
    """Indexes of the items that an element of the body becomes; before the turns, those of none.

    The element is a part of a turn (a block, a call), or the turn where it has no list of parts.
    """
    _, key, *rest = pointer.split("/")
    turns = body[table.turns]
    if key != table.turns or not isinstance(turns, list):
        return range(_item_count(table, body, []))
    if not rest or not rest[0].isdigit() or int(rest[0]) >= len(turns):
        return range(_item_count(table, body, turns))
    number = int(rest.pop(0))
    before, turn = turns[:number], turns[number]
    whole = range(_item_count(table, body, before), _item_count(table, body, [*before, turn]))
    # calls are the last items of their turn; so are its contents where it has neither
    is_last = rest[:1] == ["tool_calls"] or not (turn.get("tool_calls") or turn.get("tool_plan"))
    is_part = len(rest) > 1 and rest[0] in ("content", "parts", "tool_calls") and rest[1].isdigit()
    if not is_last or not is_part or not isinstance(turn.get(rest[0]), list):
        return whole
    part = int(rest[1])
    parts = turn[rest[0]]
    try:
        first = _item_count(table, body, [*before, {**turn, rest[0]: parts[:part]}])
        last = _item_count(table, body, [*before, {**turn, rest[0]: parts[: part + 1]}])
    except StreamError:
        return whole  # a turn without parts is none
    # a part joins the item of the one before it
    return range(min(first, last - 1), last)


def _item_count(table: WireTable, body: Body, turns: list[Any]) -> int:
    """How many items the beginning of a body becomes."""
    beginning = msgspec.json.encode({**body, table.turns: turns})
    return _items_of(table.wire_api, beginning, table.path)


@lru_cache(maxsize=64)  # each change of a report asks for the same beginnings
def _items_of(wire_api: WireApi, body: bytes, path: str | None) -> int:
    return len(parse_request(wire_api, body, path=path).items)


# --- forms that more than one wire has ---


def drop_nulls(body: Any) -> None:
    """A null says what an absent field says."""
    if isinstance(body, dict):
        for key in [key for key, value in body.items() if value is None]:
            del body[key]
        for value in body.values():
            drop_nulls(value)
    elif isinstance(body, list):
        for value in body:
            drop_nulls(value)


def objects_in(value: Any) -> Iterator[Body]:
    """Every object inside a value."""
    if isinstance(value, dict):
        yield value
        for inner in list(value.values()):
            yield from objects_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects_in(inner)
