"""Sessions of Gemini CLI: a line for each message, and for what replaced or undid it.

Read only, and unverified: the types of the product and its reader, no file of the product.

    {"sessionId": …, "projectHash": …}      the session
    {"id": …, "type": "user" | "gemini" | "info" | …, "content": …, "toolCalls": […]}
    {"$rewindTo": id}                       drops that message and what follows; unknown: all
    {"$set": {"messages": […]}}             replaces all

A later line with the id of a message replaces it. Calls stand with their results.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib.history.transcripts.draft import TranscriptDraft, decoded
from streamlib.history.transcripts.source import JsonSource, list_at, mistake, object_at, text_at
from streamlib_parsers.items import JsonObject

NOT_SENT: Final = ("info", "error", "warning")
"""Types of messages that the model does not get."""

COMMANDS: Final = ("/", "?", "<session_context>", "<hook_context>")
"""Beginnings of what the user wrote to the program, or the program adds anew to each request."""


def read_gemini_cli(source: JsonSource, draft: TranscriptDraft) -> None:
    """Reads a session."""
    contents: list[tuple[str, bytes]] = []
    for path, message in _replayed(source, draft):
        for content in _contents(message, path, draft):
            contents.append((path, msgspec.json.encode(content)))
    draft.take_prompt(decoded("gemini", contents))


def _replayed(source: JsonSource, draft: TranscriptDraft) -> list[tuple[str, JsonObject]]:
    """The messages that the session still has, with their places."""
    messages: dict[str, tuple[str, JsonObject]] = {}
    session: str | None = None
    for entry in source.entries():
        value, path = entry.value, entry.path
        if "$rewindTo" in value:
            _rewind(messages, text_at(value, "$rewindTo", path), path, draft)
        elif isinstance(value.get("id"), str):
            messages[value["id"]] = (path, value)
        elif "$set" in value:
            changed = object_at(value["$set"], f"{path}/$set")
            if "messages" in changed:
                messages.clear()
                _put_all(messages, changed, f"{path}/$set")
        elif "sessionId" in value:
            result = text_at(value, "sessionId", path)
            if session not in (None, result):
                raise mistake(path, f"a second session, {result!r:.60}, in one file")
            session = result
            _put_all(messages, value, path)
        else:
            raise mistake(path, "neither a message nor a line about the session")
    return list(messages.values())


def _put_all(messages: dict[str, tuple[str, JsonObject]], value: JsonObject, path: str) -> None:
    for index, message in enumerate(list_at(value, "messages", path)):
        message_path = f"{path}/messages/{index}"
        result = object_at(message, message_path)
        messages[text_at(result, "id", message_path, message_path)] = (message_path, result)


def _rewind(
    messages: dict[str, tuple[str, JsonObject]], message_id: str, path: str, draft: TranscriptDraft
) -> None:
    count = len(messages)
    if message_id not in messages:
        messages.clear()
    while message_id in messages:
        messages.popitem()  # the newest
    if count > len(messages):
        draft.report.dropped(path, f"{count - len(messages)} messages were rewound")


# --- one message ---


def _contents(message: JsonObject, path: str, draft: TranscriptDraft) -> list[JsonObject]:
    """The contents of a request for one message: what was said, then the results of its calls."""
    kind = message.get("type")
    parts = _parts(message.get("content"), path)
    if kind in NOT_SENT:
        draft.report.dropped(path, f"a message of the type {kind} is not sent to the model")
        return []
    if kind == "user":
        text = "".join(str(part.get("text", "")) for part in parts).strip()
        has_media = any("text" not in part for part in parts)
        if text.startswith(COMMANDS) or not (text or has_media):
            draft.report.dropped(path, "a command, or context: it is not sent to the model")
            return []
        return [{"role": "user", "parts": parts}]
    if kind != "gemini":
        raise ValueError(f"{path}/type: no type of a message: {kind!r:.60}")
    calls = [object_at(call, path) for call in list_at(message, "toolCalls", path)]
    # The content may hold its reasoning, or its calls, already.
    if not any("functionCall" in part for part in parts):
        parts = [*parts, *map(_call, calls)]
    if not any(part.get("thought") for part in parts):
        summaries = [object_at(element, path) for element in list_at(message, "thoughts", path)]
        parts = [*map(_reasoning, summaries), *parts]
    contents: list[JsonObject] = []
    if parts:
        contents.append({"role": "model", "parts": parts})
    results: list[JsonObject] = []
    for call in calls:
        results += _results(call, path)
    if results:
        contents.append({"role": "user", "parts": results})
    return contents


def _parts(content: Any, path: str) -> list[JsonObject]:
    """Content as parts: a text, a part, or a list of both."""
    if content is None or content == "":
        return []
    listed = content if isinstance(content, list) else [content]
    parts: list[JsonObject] = []
    for part in listed:
        parts.append({"text": part} if isinstance(part, str) else object_at(part, path))
    return parts


def _reasoning(summary: JsonObject) -> JsonObject:
    text = str(summary.get("description") or "")
    if summary.get("subject"):
        text = f"**{summary['subject']}** {text}"
    return {"text": text, "thought": True}


def _call(call: JsonObject) -> JsonObject:
    fields = {"id": call.get("id"), "name": call.get("name"), "args": call.get("args") or {}}
    return {"functionCall": fields}


def _results(call: JsonObject, path: str) -> list[JsonObject]:
    result = call.get("result")
    if result is None:
        return []
    if isinstance(result, str):
        fields = {"id": call.get("id"), "name": call.get("name"), "response": {"output": result}}
        return [{"functionResponse": fields}]
    return _parts(result, path)
