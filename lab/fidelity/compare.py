"""Compares the leaves of a request with those of the same request, decoded and built again.

A wire is described by a `WireTable`: where its types are, which forms of a body are equivalent,
which leaves the builder always adds, and which paths of the prompt a key of the body stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from lab.fidelity.shapes import Struct
from streamlib import Change, Prompt, Request, StreamError, WireApi, parse_request
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
        reported: key of the body -> paths of the prompt whose changes name it. Behind those of
            `OF_ITEMS` stands an item of the same turn; `*` is the same index.
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
    sent = leaves_of(canonical_body)
    # pointers are into the turns as they are compared
    body[table.turns] = canonical_body[table.turns]
    built = leaves_of(canonical(table, msgspec.json.decode(request.body)))
    outcome = Outcome(leaves=len(sent))
    for loss in differences(table, sent, built):
        change = _naming(table, body, loss, request.report)
        if change is None:
            outcome.silent.append(loss)
        else:
            outcome.reported.append((loss, change.reason))
    return outcome


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
    """The change that names a leaf, if any does."""
    key = loss.pointer.split("/")[1]
    paths = table.reported.get(key, (f"/extra/{key}",))
    for change in report:
        if any(_is_named(table, body, loss.pointer, path, change.path) for path in paths):
            return change
    return None


def _is_named(table: WireTable, body: Body, pointer: str, path: str, changed: str) -> bool:
    """Whether a change at the path `changed` of the prompt is about a leaf of the body.

    Args:
        path: the path of the prompt that the key of the body stands for.
    """
    if path in OF_ITEMS:
        # a change of the whole input says nothing about a leaf
        matched = re.match(rf"{path}/(\d+)(/|$)", changed)
        if matched is None:
            return False
        return int(matched[1]) in _items_of_turn(table, body, pointer)
    if path.endswith("/*"):
        index = pointer.split("/")[2]
        path = f"{path[:-1]}{index}"
    return changed == path or changed.startswith(f"{path}/")


def _items_of_turn(table: WireTable, body: Body, pointer: str) -> range:
    """Indexes of the items that a turn of the body becomes; before the turns, those of none."""
    _, key, index, *_ = (*pointer.split("/"), "0")
    turns = body[table.turns]
    first = 0
    last = _item_count(table, body, 0)
    if key == table.turns and isinstance(turns, list):
        first = _item_count(table, body, int(index))
        last = _item_count(table, body, int(index) + 1)
    return range(first, last)


def _item_count(table: WireTable, body: Body, turns: int) -> int:
    """How many items the beginning of a body becomes."""
    return len(_parse(table, {**body, table.turns: body[table.turns][:turns]}).items)


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
