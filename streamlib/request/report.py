"""What a builder changed: every drop, demotion, rename, repair and generated value, with a JSON pointer into the prompt."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Action: TypeAlias = Literal["dropped", "downgraded", "renamed", "repaired", "generated", "changed"]


class Change(Struct, frozen=True, gc=False, omit_defaults=True):
    """One change. `path` is a JSON pointer into the prompt (`/input/3`, `/temperature`).

    breaks_prefix: it rewrote something an earlier request of the same conversation had sent, so caches and bound thinking miss.
    """

    action: Action
    path: str
    reason: str
    breaks_prefix: bool = False


class Report:
    """Collects the changes of one build, one entry for each item and reason."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._noted: set[Change] = set()

    def add(self, action: Action, path: str, reason: str, *, breaks_prefix: bool = False) -> None:
        """Notes a change; the same one twice counts once."""
        change = Change(action, path, reason, breaks_prefix)
        if change not in self._noted:
            self._noted.add(change)
            self.changes.append(change)

    def dropped(self, path: str, reason: str) -> None:
        """Something asked for that the request does not say."""
        self.add("dropped", path, reason)
