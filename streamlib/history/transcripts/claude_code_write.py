"""Writes a session of Claude Code: a line for each block, each the parent of the next.

A file that ``claude --resume`` reads has the name ``<sessionId>.jsonl``.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from typing import Final

import msgspec

from streamlib.history.transcripts.wire_lists import wire_list
from streamlib.request.history import IndexedItem, system_text
from streamlib.request.report import Report
from streamlib_parsers.items import JsonObject, Message, user

NAMESPACE: Final = uuid.UUID("6b0f5d0e-93a1-5d0c-8a1e-2f5a3d5c7e11")
"""Of the uuids here: the same conversation is written alike each time."""

STARTED: Final = "2026-01-01T00:00:00.000Z"
"""A time that no line depends on: items have none, and readers want one."""


def write_claude_code(entries: list[IndexedItem], report: Report) -> list[JsonObject]:
    """The lines of a session."""
    entries = [_without_system(entry, report) for entry in entries]
    turns = wire_list("messages", entries, report)
    session = uuid.uuid5(NAMESPACE, hashlib.sha256(msgspec.json.encode(turns)).hexdigest())
    lines: list[JsonObject] = []
    parent: str | None = None
    for number, turn in enumerate(turns):
        for message in _messages(turn, number):
            own = str(uuid.uuid5(session, str(len(lines))))
            lines.append(_entry(turn["role"], message, own, parent, str(session)))
            parent = own
    return lines


def _without_system(entry: IndexedItem, report: Report) -> IndexedItem:
    """A system message as one of the user, as models get it that have no such messages."""
    item = entry.item
    if not isinstance(item, Message) or item.role not in ("system", "developer"):
        return entry
    report.add("changed", entry.path, "a session has no system messages: as user text")
    return IndexedItem(entry.position, user(f"<system>\n{system_text(item)}\n</system>"))


def _messages(turn: JsonObject, number: int) -> Iterator[JsonObject]:
    """The messages of one turn: one for each block of the model, and for each result."""
    content = turn["content"]
    if turn["role"] == "assistant":
        for block in content:
            yield {
                "id": f"msg_{number:06}",
                "type": "message",
                "role": "assistant",
                "model": "unknown",
                "content": [block],
                "stop_reason": None,
            }
        return
    parts: list[JsonObject] = []
    for block in content:
        if block.get("type") != "tool_result":
            parts.append(block)
            continue
        if parts:
            yield {"role": "user", "content": parts}
            parts = []
        yield {"role": "user", "content": [block]}
    if parts:
        yield {"role": "user", "content": parts}


def _entry(
    role: str, message: JsonObject, own: str, parent: str | None, session: str
) -> JsonObject:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/",
        "sessionId": session,
        "version": "2.0.0",
        "type": role,
        "message": message,
        "uuid": own,
        "timestamp": STARTED,
    }
