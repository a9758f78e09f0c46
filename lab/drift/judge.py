"""Judges what became of a member of a union: typed, passed through or lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from streamlib_parsers import Notice, Opaque, Passthrough, ResponseEvent, ResponseMetadata

Verdict: TypeAlias = Literal["typed", "kept", "passed through", "reported", "lost"]
"""Responses are typed, passed through or lost; requests are kept, reported or lost."""

RANKS: Final[tuple[Verdict, ...]] = get_args(Verdict)
"""The verdicts, the best first."""

MARK: Final = re.compile(r"1\d{5}")
"""What `Instances` writes into each of its values: a number of six digits, used once."""

PASSED_FIELDS: Final = ("native", "raw", "details")
"""Fields of typed items and events that hold a provider's own keys."""

PASSED_CLASSES: Final = (Opaque, Passthrough, ResponseMetadata)
"""Events and items that keep what no type knows."""


@dataclass(slots=True)
class Judgement:
    """What became of one member."""

    sdk: str
    """The SDK, or the wire of a request."""
    member: str
    instances: int = 0
    verdict: Verdict = "typed"
    lost: set[str] = field(default_factory=set)
    """Paths of the leaves that came out nowhere."""

    def add(self, verdict: Verdict, lost: Iterable[str]) -> None:
        """Adds one more instance; the worst verdict counts."""
        self.instances += 1
        self.lost.update(lost)
        self.verdict = max(self.verdict, verdict, key=RANKS.index)


def judge(
    instance: Any, events: list[ResponseEvent], ignored: set[str]
) -> tuple[Verdict, set[str]]:
    """Follows each leaf of an instance into the events.

    Args:
        instance: the member, as JSON values.
        events: all events of a response that holds it.
        ignored: names of fields that only say where something belongs.
    """
    typed, passed = _texts(events)
    verdict: Verdict = "typed"
    lost: set[str] = set()
    for path, mark in _marks(instance, "", ignored):
        if mark in typed:
            continue
        if mark in passed:
            verdict = "passed through"
        else:
            lost.add(path)
    if lost:
        verdict = "lost"
    return verdict, lost


def _marks(value: Any, path: str, ignored: set[str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, member in value.items():
            if key not in ignored:
                yield from _marks(member, f"{path}/{key}", ignored)
    elif isinstance(value, list):
        for member in value:
            yield from _marks(member, path, ignored)
    elif not isinstance(value, bool):
        for mark in MARK.findall(str(value)):
            yield path, mark


def _texts(events: list[ResponseEvent]) -> tuple[str, str]:
    """All values of typed fields, and all values that were only passed through, as text."""
    typed: list[str] = []
    passed: list[str] = []
    for event in events:
        # A notice says that something was met. It does not hold it.
        if not isinstance(event, Notice):
            _collect(event, typed, passed)
    return " ".join(typed), " ".join(passed)


def _collect(value: Any, typed: list[str], passed: list[str]) -> None:
    if isinstance(value, PASSED_CLASSES):
        passed.append(str(msgspec.to_builtins(value)))
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            member = getattr(value, name)
            if name in PASSED_FIELDS:
                passed.append(str(msgspec.to_builtins(member)))
            else:
                _collect(member, typed, passed)
    elif isinstance(value, dict):
        typed.append(str(msgspec.to_builtins(value)))
    elif isinstance(value, (list, tuple)):
        for member in value:
            _collect(member, typed, passed)
    elif value is not None:
        typed.append(str(value))
