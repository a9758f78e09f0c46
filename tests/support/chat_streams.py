"""Chunks of Chat Completions, written for tests, and what a parser made of them."""

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


def said(**delta: Any) -> Json:
    return chunk(delta)


def calls(*calls: Json) -> Json:
    return chunk({"tool_calls": list(calls)})


def call(
    index: Any = 0, name: Any = None, arguments: Any = None, call_id: Any = None, **values: Any
) -> Json:
    """One entry of tool_calls; what is None is left out."""
    function = {
        key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None
    }
    given = {"index": index, "id": call_id, "type": "function"}
    return {
        **{key: value for key, value in given.items() if value is not None},
        "function": function,
        **values,
    }


def used(**values: Any) -> Json:
    return {"id": "c1", "model": "m", "choices": [], "usage": values}


def sse(*chunks: Any, done: str | None = "[DONE]") -> bytes:
    payloads = [
        one if isinstance(one, str) else json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        for one in (*chunks, done)
        if one is not None
    ]
    return "".join(f"data: {payload}\n\n" for payload in payloads).encode()


def events_of(*chunks: Any, done: str | None = "[DONE]", **options: Any) -> list[ResponseEvent]:
    return wires.events_of("chat", sse(*chunks, done=done), **options)


def response_of(*chunks: Any, done: str | None = "[DONE]") -> Response:
    return accumulate(events_of(*chunks, done=done))


def items_of(*chunks: Any, done: str | None = "[DONE]") -> list[Any]:
    response = response_of(*chunks, done=done)
    assert response.error is None, response.error
    return [msgspec.structs.replace(item, origin=None, response_id=None) for item in response.items]


def codes(events: list[ResponseEvent]) -> list[str]:
    return [event.code for event in events if isinstance(event, Notice)]


STOP = chunk({}, "stop")
FINISH = chunk({}, "tool_calls")
HI = said(content="Hi")
TOTAL = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
MORE = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}


def choice(index: int, delta: Json, finish: str | None = None, **values: Any) -> Json:
    return {"index": index, "delta": delta, "finish_reason": finish, **values}


def many(*choices: Json) -> Json:
    return {"id": "c1", "model": "m", "choices": list(choices)}
