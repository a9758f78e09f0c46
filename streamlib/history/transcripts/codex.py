"""Rollouts of Codex: a line for each item of Responses, and for what became of the thread.

Read only, and unverified: the types of `codex-rs` and invented samples, no file of the product.

    {"timestamp": …, "type": "session_meta" | "response_item" | "compacted" | "event_msg" | …,
     "payload": …}

`response_item` is what the model saw; `event_msg` repeats its texts for the screen. Early versions
wrote the items bare, without an envelope.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.history.transcripts.draft import TranscriptDraft, decoded
from streamlib.history.transcripts.source import (
    JsonSource,
    SourceEntry,
    list_at,
    mistake,
    object_at,
    text_at,
)
from streamlib_parsers.items import JsonObject

ABOUT_THE_SESSION: Final = frozenset(
    {"turn_context", "world_state", "token_usage_record", "state", "rollout_reference"}
)
"""Types of lines that hold settings and counts, which are no part of the conversation."""

NO_TURNS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
)
"""Beginnings of user messages that Codex writes itself: a rollback does not count them."""

NOT_SENT: Final = ("ghost_snapshot", "other")
"""Types of items that are never sent to the model."""


class _Rollout:
    """The history while the lines are replayed."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self.draft = draft
        self.history: list[tuple[str, bytes]] = []
        """Place and JSON of each item, as the next request would send them."""
        self._turns: list[int] = []
        """Indexes there of the messages in which the user spoke."""
        self._compacted = 0
        """How many items at the beginning are surely turns: those that a compaction left."""
        self.sessions: set[str] = set()
        """Ids of the thread, and of those it was forked from."""

    def take(self, entry: SourceEntry) -> None:
        """Replays a line."""
        kind = text_at(entry.value, "type", entry.path)
        if "payload" not in entry.value:
            self._bare(entry)
            return
        payload = object_at(entry.value["payload"], f"{entry.path}/payload")
        match kind:
            case "session_meta":
                self._session(payload, entry.path)
            case "response_item":
                self._item(payload, entry.path)
            case "compacted":
                self._compact(payload, entry.path)
            case "event_msg":
                if payload.get("type") == "thread_rolled_back":
                    self._roll_back(payload, entry.path)
            case "inter_agent_communication":
                self._mail(payload, entry.path)
            case _:
                if kind not in ABOUT_THE_SESSION:
                    reason = f"a line of the unknown type {kind!r:.60}"
                    self.draft.report.dropped(entry.path, reason)

    def _bare(self, entry: SourceEntry) -> None:
        """A line of an early version: an item, or the session's first line."""
        if "type" in entry.value and entry.value["type"] != "state":
            self._item(entry.value, entry.path)
        elif "instructions" in entry.value or "id" in entry.value:
            self._session(entry.value, entry.path)
        elif entry.value.get("record_type") != "state":
            raise mistake(entry.path, "neither an item nor a line of a rollout")

    def _session(self, meta: JsonObject, path: str) -> None:
        session = text_at(meta, "id", path)
        if self.sessions and session not in self.sessions:
            raise mistake(path, f"a second session, {session!r:.60}, in one file")
        # A fork repeats the first lines of the thread that it came from.
        self.sessions |= {session, text_at(meta, "forked_from_id", path)}
        instructions = meta.get("base_instructions") or meta.get("instructions")
        if isinstance(instructions, dict):
            instructions = instructions.get("text")
        if isinstance(instructions, str) and instructions and self.draft.instructions is None:
            self.draft.instructions = instructions

    def _item(self, item: JsonObject, path: str) -> None:
        kind = item.get("type")
        if not isinstance(kind, str):
            raise mistake(path, "an item without a type")
        if kind in NOT_SENT:
            self.draft.report.dropped(path, f"{kind} is not sent to the model")
            return
        known = {key: value for key, value in item.items() if value is not None}
        output = known.get("output")
        if isinstance(output, dict) and "content" in output:
            known["output"] = output["content"]  # of early versions, with `success` beside it
        if _is_turn(known):
            self._turns.append(len(self.history))
        self.history.append((path, msgspec.json.encode(known)))

    def _compact(self, payload: JsonObject, path: str) -> None:
        """A compaction: its history, else the user's messages and a summary, replace all before."""
        count = len(self.history)
        if payload.get("replacement_history") is not None:
            replacement = list_at(payload, "replacement_history", path)
            self.history, self._turns, self._compacted = [], [], 0
            for index, item in enumerate(replacement):
                item_path = f"{path}/replacement_history/{index}"
                self._item(object_at(item, item_path), item_path)
        else:
            # What an earlier compaction left are turns alone, and is not copied again.
            start = self._compacted
            self.history[start:] = [self.history[index] for index in self._turns[start:]]
            self._turns[start:] = range(start, len(self.history))
            self._compacted = len(self.history)
            summary = text_at(payload, "message", path)
            part = {"type": "input_text", "text": summary}
            self._item({"type": "message", "role": "user", "content": [part]}, path)
        self.draft.report.add("changed", path, f"a compaction replaces the {count} items before")

    def _roll_back(self, payload: JsonObject, path: str) -> None:
        number = payload.get("num_turns")
        if not isinstance(number, int) or number < 0:
            raise ValueError(f"{path}/payload/num_turns: not a number of turns")
        if not number or not self._turns:
            return
        number = min(number, len(self._turns))
        self.draft.report.dropped(path, f"{number} turns were rolled back")
        del self.history[self._turns[-number] :]
        del self._turns[-number:]
        self._compacted = min(self._compacted, len(self.history))

    def _mail(self, payload: JsonObject, path: str) -> None:
        """What another agent wrote, which the model gets as a message."""
        text = text_at(payload, "content", path)
        author = text_at(payload, "author", path, "another agent")
        part = {"type": "input_text", "text": text}
        self._item({"type": "message", "role": "user", "content": [part]}, path)
        self.draft.report.add("changed", path, f"what {author} wrote is a message of the user")


def _is_turn(item: JsonObject) -> bool:
    """Whether the user speaks in a message."""
    is_message = item.get("type") == "message" and item.get("role") == "user"
    return is_message and not _text(item).lstrip().startswith(NO_TURNS)


def _text(item: JsonObject) -> str:
    parts = item.get("content")
    if not isinstance(parts, list):
        return str(parts or "")
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def read_codex(source: JsonSource, draft: TranscriptDraft) -> None:
    """Reads a rollout."""
    rollout = _Rollout(draft)
    for entry in source.entries():
        rollout.take(entry)
    if not rollout.sessions and not rollout.history:
        raise ValueError("no line is of a rollout")
    _check_ids(rollout.history)
    draft.take_prompt(decoded("responses", rollout.history))


def _check_ids(history: list[tuple[str, bytes]]) -> None:
    """Refuses two items with one id, as the API does."""
    paths: dict[str, str] = {}
    for path, raw in history:
        item_id = msgspec.json.decode(raw).get("id")
        if not isinstance(item_id, str):
            continue
        if item_id in paths:
            raise mistake(path, f"the id {item_id!r:.80} is that of {paths[item_id]}")
        paths[item_id] = path
