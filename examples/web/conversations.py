"""Conversations, in the memory of this process.

A conversation is a list of entries, one for each event, and a history for the model. Every tab
reads the entries from the first one and follows what is appended, so a reload, a second tab and the
tab that asks all show the same. Nothing else of this example stores anything: to keep conversations
somewhere else, write these two classes anew.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec

from streamlib import History

MOST_CONVERSATIONS = 1_000
"""The oldest is forgotten then, of those that nobody reads and that no answer is written to."""


class Conversation:
    """One conversation: what was shown, and what the model knows of it."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        """JSON: the number `n` from 1 on, the seconds `at`, the `event`."""
        self.history = History()
        self.before: list[int] = []
        """The length of the history before each turn."""
        self.turn: anyio.CancelScope | None = None
        """Cancels the turn that runs; None between two turns."""
        self.readers = 0
        self._began = anyio.current_time()
        self._changed = anyio.Event()

    def now(self) -> float:
        """Return the seconds since the conversation began."""
        return round(anyio.current_time() - self._began, 3)

    def append(self, event: bytes | dict[str, Any]) -> None:
        """Append an event, as JSON or to be made JSON, and wake the readers."""
        line = event if isinstance(event, bytes) else msgspec.json.encode(event)
        entry = {"n": len(self.entries) + 1, "at": self.now(), "event": msgspec.Raw(line.strip())}
        self.entries.append(msgspec.json.encode(entry))
        self._changed.set()
        self._changed = anyio.Event()

    async def follow(self, after: int) -> AsyncIterator[list[bytes]]:
        """Yield the entries after number `after`, then each that comes; never ends."""
        while True:
            changed = self._changed
            entries = self.entries[after:]
            after += len(entries)
            if entries:
                yield entries
            else:
                await changed.wait()


class Conversations:
    """All conversations, by id."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, Conversation] = OrderedDict()

    def get(self, name: str) -> Conversation:
        """Return a conversation, a new one if there is none of this id."""
        conversation = self._all.setdefault(name, Conversation())
        self._all.move_to_end(name)
        if len(self._all) > MOST_CONVERSATIONS:
            self._forget_oldest(conversation)
        return conversation

    def _forget_oldest(self, asked_for: Conversation) -> None:
        for name, conversation in self._all.items():
            in_use = conversation.readers or conversation.turn is not None
            if not in_use and conversation is not asked_for:
                del self._all[name]
                return
