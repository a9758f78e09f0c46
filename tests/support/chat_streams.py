"""Builds Chat Completions chunks for tests, and parses them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from streamlib_parsers import Notice, Response, ResponseEvent, accumulate
from tests.support import wires

Json = dict[str, Any]

ARGS = '{"city": "Rome"}'


def chunk(delta: Any = None, finish: Any = None, /, **values: Any) -> Json:
    """A chunk with one choice; `values` are keys of the choice."""
    choice: Json = {
        "index": 0,
        "delta": {} if delta is None else delta,
        "finish_reason": finish,
        **values,
    }
    return {"id": "c1", "model": "m", "choices": [choice]}


def delta_chunk(**delta: Any) -> Json:
    """A chunk with one choice, which has this delta."""
    return chunk(delta)


def calls(*calls: Json) -> Json:
    """A chunk with these entries of tool_calls."""
    return chunk({"tool_calls": list(calls)})


def call(
    index: Any = 0, name: Any = None, arguments: Any = None, call_id: Any = None, **values: Any
) -> Json:
    """One entry of tool_calls; arguments that are None are left out."""
    entry: Json = {"index": index, "id": call_id, "type": "function"}
    function: Json = {"name": name, "arguments": arguments}
    return {**_without_none(entry), "function": _without_none(function), **values}


def _without_none(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}


def usage_chunk(**values: Any) -> Json:
    """A chunk without choices, with this usage."""
    return {"id": "c1", "model": "m", "choices": [], "usage": values}


def sse(*chunks: Any, done: str | None = "[DONE]") -> bytes:
    """Server-sent events of these chunks; a string is sent as it is."""
    body = ""
    for payload in (*chunks, done):
        if payload is None:
            continue
        if not isinstance(payload, str):
            payload = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))  # noqa: PLW2901
        body += f"data: {payload}\n\n"
    return body.encode()


def events_of(*chunks: Any, done: str | None = "[DONE]", **options: Any) -> list[ResponseEvent]:
    return wires.events_of("chat", sse(*chunks, done=done), **options)


def response_of(*chunks: Any, done: str | None = "[DONE]") -> Response:
    return accumulate(events_of(*chunks, done=done))


def items_of(*chunks: Any, done: str | None = "[DONE]") -> list[Any]:
    response = response_of(*chunks, done=done)
    assert response.error is None, response.error
    return [msgspec.structs.replace(item, origin=None, response_id=None) for item in response.items]


def notice_codes(events: list[ResponseEvent]) -> list[str]:
    return [event.code for event in events if isinstance(event, Notice)]


STOP = chunk({}, "stop")
FINISH = chunk({}, "tool_calls")
HI = delta_chunk(content="Hi")
TOTAL = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
MORE = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}


def choice(index: int, delta: Json, finish: str | None = None, **values: Any) -> Json:
    return {"index": index, "delta": delta, "finish_reason": finish, **values}


def choices_chunk(*choices: Json) -> Json:
    """A chunk with these choices."""
    return {"id": "c1", "model": "m", "choices": list(choices)}
