"""Cohere v2 chat: a complete body as the events of an equivalent stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from streamlib_parsers.errors import malformed
from streamlib_parsers.json_text import decode_any, objects_at, string_or_none
from streamlib_parsers.wires.cohere.events import V1

_HANDLED = ("id", "message", "finish_reason", "usage", "logprobs")

_EVENT_KEYS = ("type", "index", "delta")
"""Keys of an event, which no key of a body may replace."""


def body_frames(body: bytes) -> Iterator[tuple[str | None, bytes]]:
    """The events of a response (or error) body; every content is complete in its start.

    Raises:
        ParseFailure: `malformed`, if the body is neither.
    """
    response = decode_any(body)
    if not isinstance(response, dict):
        raise malformed("the body is not a chat response", body)
    message = response.get("message")
    if isinstance(message, str):
        # An error has its text in `message`; gateways send errors with status 200 too.
        return iter([(None, body)])
    if "generation_id" in response and "text" in response:
        raise malformed(V1, body, "legacy_schema")
    if not isinstance(message, dict):
        raise malformed("the body is not a chat response", body)
    return _frames(response, message)


def _frames(
    response: dict[str, Any], message: dict[str, Any]
) -> Iterator[tuple[str | None, bytes]]:
    start = {key: value for key, value in message.items() if key not in _LISTS}
    yield _event("message-start", id=response.get("id"), delta={"message": start})
    contents = _contents(message)
    citations = _citations(message, contents)
    logprobs = objects_at(response, "logprobs")
    for index, content in enumerate(contents):
        yield _event("content-start", index=index, delta={"message": {"content": content}})
        if content.get("type") == "text":
            for token in logprobs:
                delta = {"message": {"content": {"text": ""}}}
                yield _event("content-delta", index=index, delta=delta, logprobs=token)
            logprobs = []
        yield from _citation_events(citations.get(index, ()))
        yield _event("content-end", index=index)
    plan = string_or_none(message, "tool_plan")
    if plan:
        yield _event("tool-plan-delta", delta={"message": {"tool_plan": plan}})
    yield from _citation_events(citations.get(_PLAN, ()))
    for index, call in enumerate(objects_at(message, "tool_calls")):
        yield _event("tool-call-start", index=index, delta={"message": {"tool_calls": call}})
        yield _event("tool-call-end", index=index)
    end = {key: response[key] for key in _EVENT_KEYS if key in response}
    end["finish_reason"] = response.get("finish_reason")
    end["usage"] = response.get("usage")
    rest = {key: value for key, value in response.items() if key not in _HANDLED + _EVENT_KEYS}
    yield _event("message-end", **rest, delta=end)


_LISTS = ("tool_plan", "tool_calls", "content", "citations")
"""Keys of a message that come as events of their own."""

_PLAN = -1
"""Content index of the plan, where citations are grouped by content."""


def _contents(message: dict[str, Any]) -> list[dict[str, Any]]:
    text = string_or_none(message, "content")
    if text is not None:
        return [{"type": "text", "text": text}]
    return objects_at(message, "content")


def _citations(
    message: dict[str, Any], contents: list[dict[str, Any]]
) -> dict[int, list[dict[str, Any]]]:
    """Citations by the index of their content; they must be read before the content ends."""
    grouped: dict[int, list[dict[str, Any]]] = {}
    for citation in objects_at(message, "citations"):
        grouped.setdefault(_content_of(citation, contents), []).append(citation)
    return grouped


def _content_of(citation: dict[str, Any], contents: list[dict[str, Any]]) -> int:
    if citation.get("type") == "PLAN":
        return _PLAN
    index = citation.get("content_index")
    if isinstance(index, int) and 0 <= index < len(contents):
        return index
    wanted = "text"
    if citation.get("type") == "THINKING_CONTENT":
        wanted = "thinking"
    for position, content in enumerate(contents):
        if content.get("type") == wanted:
            return position
    return _PLAN


def _citation_events(
    citations: list[dict[str, Any]] | tuple[()],
) -> Iterator[tuple[str | None, bytes]]:
    for citation in citations:
        yield _event("citation-start", delta={"message": {"citations": citation}})


def _event(kind: str, /, **values: Any) -> tuple[str | None, bytes]:
    return None, msgspec.json.encode({"type": kind, **values})
