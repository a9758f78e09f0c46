"""The report of a build or an encoder: every change, with a JSON pointer into the prompt."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Action: TypeAlias = Literal["dropped", "downgraded", "renamed", "repaired", "generated", "changed"]


class Change(Struct, frozen=True, gc=False, omit_defaults=True):
    """One change.

    Attributes:
        action: what was done.
        path: JSON pointer into the prompt (`/input/3`, `/temperature`), or into the response.
        reason: why, in words for people.
        breaks_prefix: it rewrote something that an earlier request of the same conversation had
            sent, so prompt caches miss and reasoning bound to its conversation is refused.
    """

    action: Action
    path: str
    reason: str
    breaks_prefix: bool = False


class Report:
    """Collects the changes of one build or encoder, each once."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        """In the order in which they were made."""
        self._seen: set[Change] = set()
        """The same changes, to find a repeated one without a search."""
        self.tool_paths: list[str] = []
        """JSON pointers into the prompt of the tools that builders get; empty: they get its own."""

    def add(self, action: Action, path: str, reason: str, *, breaks_prefix: bool = False) -> None:
        """Adds a change; the same one twice counts once."""
        if self.tool_paths and path.startswith("/tools/"):
            path = self._tool_path(path)
        change = Change(action, path, reason, breaks_prefix)
        if change not in self._seen:
            self._seen.add(change)
            self.changes.append(change)

    def _tool_path(self, path: str) -> str:
        """The pointer into the prompt for a pointer into the tools that a builder got."""
        index, slash, rest = path.removeprefix("/tools/").partition("/")
        return self.tool_paths[int(index)] + slash + rest

    def dropped_message(self, path: str) -> None:
        """Adds that a message without content, which the wire refuses, was left out."""
        self.dropped(path, "a message without content")

    def dropped(self, path: str, reason: str) -> None:
        """Adds something that the target has no place for."""
        self.add("dropped", path, reason)
