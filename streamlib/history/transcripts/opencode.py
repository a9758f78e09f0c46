"""What ``opencode export`` writes: the session, and its messages with their parts.

Read only, and unverified: the types of its SDK and its own conversion to UI messages of the AI SDK,
which this one follows; no file of the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamlib.history.transcripts.draft import TranscriptDraft
from streamlib.history.transcripts.source import (
    JsonSource,
    SourceEntry,
    list_at,
    object_at,
    text_at,
)
from streamlib.history.transcripts.vercel import web_transcript
from streamlib_parsers.items import JsonObject

CLEARED: Final = "[Old tool result content cleared]"
"""What the model gets in place of an output that was cleared to save tokens."""

INTERRUPTED: Final = "[Tool execution was interrupted]"
COMPACTED: Final = "What did we do so far?"
"""What the model is asked where the conversation was compacted; a summary is its response."""
SUBTASK: Final = "The following tool was executed by the user"

SKIPPED: Final = ("step-finish", "snapshot", "patch", "agent", "retry")
"""Parts that the model never gets."""

NOT_SENT: Final = ("text/plain", "application/x-directory")
"""Media types of files whose content stands beside them as text."""


def read_opencode(source: JsonSource, draft: TranscriptDraft) -> None:
    """Reads an export."""
    value = object_at(source.value, "")
    session = text_at(object_at(value.get("info"), "/info"), "id", "/info")
    messages: list[_Message] = []
    ids: dict[str, str] = {}
    for entry in source.entries("messages"):
        message = _Message(entry, session)
        if message.id in ids:
            raise ValueError(f"{entry.path}/info/id is that of {ids[message.id]}")
        ids[message.id] = entry.path
        messages.append(message)
    shown: list[JsonObject] = []
    for message in _visible(messages, draft):
        ui_message = message.as_ui_message(draft)
        if any(part["type"] != "step-start" for part in ui_message["parts"]):
            shown.append(ui_message)
    draft.add(web_transcript().read_transcript(shown, draft.report))


def _visible(messages: Sequence[_Message], draft: TranscriptDraft) -> Sequence[_Message]:
    """The messages from the newest compaction on that was carried out, with the tail it kept."""
    summaries = {message.parent for message in messages if message.is_summary}
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not message.compaction or message.id not in summaries:
            continue
        tail = str(message.compaction.get("tail_start_id") or message.compaction.get("tailStartID"))
        tails = [number for number, earlier in enumerate(messages[:index]) if earlier.id == tail]
        start = tails[0] if tails else index
        if start:
            reason = f"a compaction hides the {start} messages before"
            draft.report.add("changed", message.path, reason)
        # The summary stands before the tail, which is newer than what it sums up.
        pair = [
            element
            for element in messages[index:]
            if element is message or element.answers(message)
        ]
        in_pair = {element.id for element in pair}
        later = [element for element in messages[index:] if element.id not in in_pair]
        return [*pair, *messages[start:index], *later]
    return messages


class _Message:
    """One message of an export."""

    def __init__(self, entry: SourceEntry, session: str) -> None:
        path = self.path = entry.path
        self.info = object_at(entry.value.get("info"), f"{path}/info")
        self.id = text_at(self.info, "id", f"{path}/info")
        self.role = text_at(self.info, "role", f"{path}/info")
        self.parent = text_at(self.info, "parentID", f"{path}/info")
        own = text_at(self.info, "sessionID", f"{path}/info", session)
        if own != session:
            raise ValueError(f"{path}: a second session, {own!r:.60}, in one file")
        if self.role not in ("user", "assistant"):
            raise ValueError(f"{path}/info/role is one of user, assistant")
        self.parts: list[tuple[str, JsonObject]] = []
        """Place and value of each part."""
        for index, part in enumerate(list_at(entry.value, "parts", path)):
            part_path = f"{path}/parts/{index}"
            self.parts.append((part_path, object_at(part, part_path)))

    @property
    def compaction(self) -> JsonObject | None:
        """The part that asks for a compaction."""
        for _, part in self.parts:
            if part.get("type") == "compaction":
                return part
        return None

    @property
    def is_summary(self) -> bool:
        """Whether it is the finished summary of a compaction."""
        return bool(self.info.get("summary")) and bool(self.info.get("finish"))

    def answers(self, message: _Message) -> bool:
        """Whether it is the summary that a compaction asked for."""
        return self.is_summary and self.parent == message.id

    def as_ui_message(self, draft: TranscriptDraft) -> JsonObject:
        """The UI message of the AI SDK."""
        parts: list[JsonObject] = []
        error = self.info.get("error")
        if error and not self._was_aborted(error):
            draft.report.dropped(self.path, "a response that failed is not sent again")
        else:
            for path, part in self.parts:
                result = self._part(part, path, draft)
                if result is not None:
                    parts.append(result)
        return {"id": self.id, "role": self.role, "parts": parts}

    def _was_aborted(self, error: Any) -> bool:
        """Whether the user stopped it, after something was written."""
        name = error.get("name") if isinstance(error, dict) else None
        kinds = {str(part.get("type")) for _, part in self.parts}
        return name == "MessageAbortedError" and bool(kinds - {"step-start", "reasoning"})

    def _part(self, part: JsonObject, path: str, draft: TranscriptDraft) -> JsonObject | None:
        kind = part.get("type")
        match kind:
            case "text" if part.get("ignored"):
                draft.report.dropped(path, "a text that the model does not get")
            case "text" | "reasoning":
                fields = {"type": kind, "text": text_at(part, "text", path)}
                return {**fields, **_metadata(part, "providerMetadata")}
            case "tool":
                return _tool(part, path, draft)
            case "file" if part.get("mime") not in NOT_SENT:
                fields = {"url": part.get("url"), "mediaType": part.get("mime")}
                return {"type": "file", **fields, "filename": part.get("filename")}
            case "step-start":
                return {"type": kind}
            case "compaction":
                return {"type": "text", "text": COMPACTED}
            case "subtask":
                return {"type": "text", "text": SUBTASK}
            case _ if kind != "file" and kind not in SKIPPED:
                draft.report.dropped(path, f"a part of the unknown type {kind!r:.60}")
            case _:
                pass
        return None


def _metadata(part: JsonObject, key: str) -> JsonObject:
    metadata = part.get("metadata")
    return {key: metadata} if isinstance(metadata, dict) and metadata else {}


def _tool(part: JsonObject, path: str, draft: TranscriptDraft) -> JsonObject:
    state = object_at(part.get("state"), f"{path}/state")
    status = state.get("status")
    name = text_at(part, "tool", path)
    fields: JsonObject = {"type": f"tool-{name}", "toolCallId": text_at(part, "callID", path)}
    fields |= {"input": state.get("input"), **_metadata(part, "callProviderMetadata")}
    if status == "completed":
        return {**fields, "state": "output-available", "output": _output(state, path, draft)}
    if status == "error":
        error = text_at(state, "error", f"{path}/state")
        return {**fields, "state": "output-error", "errorText": error}
    if status not in ("pending", "running"):
        raise ValueError(f"{path}/state/status is one of pending, running, completed, error")
    draft.report.add("generated", path, "the call was interrupted; it gets an error as its output")
    return {**fields, "state": "output-error", "errorText": INTERRUPTED}


def _output(state: JsonObject, path: str, draft: TranscriptDraft) -> Any:
    """The output of a call, with the files that the tool attached."""
    times = state.get("time")
    if isinstance(times, dict) and times.get("compacted"):
        draft.report.add("changed", path, "the model got a note in place of this old output")
        return CLEARED
    text = text_at(state, "output", f"{path}/state")
    parts: list[JsonObject] = [{"type": "text", "text": text}]
    for file in list_at(state, "attachments", f"{path}/state"):
        url = str(file.get("url")) if isinstance(file, dict) else ""
        header, comma, data = url.partition(",")
        if not comma or not header.startswith("data:"):
            draft.report.dropped(path, "an attachment without its content")
            continue
        media_type = str(file.get("mime") or header.removeprefix("data:").partition(";")[0])
        kind = "image" if media_type.startswith("image/") else "document"
        parts.append({"type": kind, "data": data, "media_type": media_type})
    return parts if len(parts) > 1 else text
