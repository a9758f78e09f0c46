"""Request bodies that would keep a gateway busy, and an ordinary large one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.gateway.state.envelopes import seal
from streamlib_parsers.items import Message, Text, WireApi

SIZE: Final = 32 << 20
"""The largest body that is read."""

VALUES: Final = 490_000
"""Nearly the maximum number of values that is read."""


def filled(start: bytes, element: bytes, end: bytes) -> bytes:
    """Elements with commas between them: as many as the limits of size and values allow."""
    by_size = (SIZE - len(start) - len(end)) // (len(element) + 1)
    values = len(re.findall(rb"[][{}:,]", re.sub(rb'"[^"]*"', b"", element)))
    count = min(by_size, VALUES // (values + 1))
    return start + b",".join([element] * count) + end


def messages_of(*content: dict[str, Any], role: str = "user") -> bytes:
    """A Messages request with one turn."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": role, "content": content}]}
    return msgspec.json.encode(body)


START: Final = b'{"model":"m","max_tokens":9,"messages":['
ASSISTANT: Final = START + b'{"role":"assistant","content":['
TURN: Final = b'{"role":"user","content":"a"}'
CALL: Final = b'{"type":"tool_use","id":"a","name":"f","input":{}}'
RESULT: Final = b'{"type":"tool_result","tool_use_id":"a","content":"x"}'
TEXT: Final = b'{"type":"text","text":"a"}'
TOOL: Final = b'{"name":"f","input_schema":{"type":"object"}}'


def _spaced_text() -> bytes:
    """A text of blanks and letters beside an envelope, which is compared with it."""
    envelope = seal(Message("assistant", [Text("a a")]), 0)
    thinking = {"type": "thinking", "thinking": "", "signature": envelope}
    text = {"type": "text", "text": "a " * (15 << 20)}
    return messages_of(thinking, text, role="assistant")


def _envelopes() -> bytes:
    envelope = seal(Message("assistant", [Text("a")]), 0).encode()
    block = b'{"type":"redacted_thinking","data":"' + envelope + b'"}'
    return filled(ASSISTANT, block, b"]}]}")


MESSAGES: Final[dict[str, Callable[[], bytes]]] = {
    "brackets": lambda: (START + b"[],[]," * SIZE)[:SIZE],
    "quotes": lambda: (START + b'""' * SIZE)[:SIZE],
    "escapes": lambda: messages_of({"type": "text", "text": "\\" * (15 << 20)}),
    "quotes_in_text": lambda: messages_of({"type": "text", "text": '"' * (15 << 20)}),
    "unicode": lambda: messages_of({"type": "text", "text": "é" * (15 << 20)}),
    "spaced_text": _spaced_text,
    "number": lambda: START[:-1] + b"1" * (SIZE - 100) + b"}",
    "blanks": lambda: b" " * (SIZE - 2) + b"{}",
    "turns": lambda: filled(START, TURN, b"]}"),
    "assistant_turns": lambda: filled(START, TURN + b',{"role":"assistant","content":"b"}', b"]}"),
    "blocks": lambda: filled(ASSISTANT, TEXT, b"]}]}"),
    "calls": lambda: filled(ASSISTANT, CALL, b"]}]}"),
    "results": lambda: filled(START + b'{"role":"user","content":[', RESULT, b"]}]}"),
    "envelopes": _envelopes,
    "tools": lambda: filled(START + TURN + b'],"tools":[', TOOL, b"]}"),
    "keys": lambda: (
        START
        + TURN
        + b"],"
        + b",".join(b'"k%d":0' % number for number in range(VALUES // 2))
        + b"}"
    ),
    "schema": lambda: filled(
        START + TURN + b'],"tools":[{"name":"f","input_schema":{"enum":[', b"0", b"]}}]}"
    ),
    "one_message": lambda: messages_of({"type": "text", "text": "a" * (31 << 20)}),
}
"""Bodies of Messages requests by name."""

OTHERS: Final[dict[str, tuple[WireApi, Callable[[], bytes]]]] = {
    "chat_turns": ("chat", lambda: filled(b'{"model":"m","messages":[', TURN, b"]}")),
    "chat_calls": (
        "chat",
        lambda: filled(
            b'{"model":"m","messages":[{"role":"assistant","tool_calls":[',
            b'{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}',
            b"]}]}",
        ),
    ),
    "responses_items": (
        "responses",
        lambda: filled(
            b'{"model":"m","input":[',
            b'{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}',
            b"]}",
        ),
    ),
    "gemini_parts": (
        "gemini",
        lambda: filled(
            b'{"contents":[{"role":"model","parts":[',
            b'{"functionCall":{"name":"f","args":{}}}',
            b"]}]}",
        ),
    ),
}
"""Bodies of other wires by name."""


def ordinary(size: int = 5 << 20) -> bytes:
    """The history of an agent: reasoning, calls and the files that they read."""
    code = "def f(value):\n    return {'a': [value, \"b\"]}  # a comment, é\n" * 60
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Mend it."}]
    total = 0
    number = 0
    while total < size:
        number += 1
        call: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{number}", "name": "read"}
        call["input"] = {"path": f"src/{number}.py", "lines": [1, 200]}
        answer = {"type": "tool_result", "tool_use_id": call["id"], "content": code}
        thinking = {"type": "thinking", "thinking": "I read it. " * 20, "signature": "c2ln" * 50}
        text = {"type": "text", "text": "Reading the next file."}
        turns.append({"role": "assistant", "content": [thinking, text, call]})
        turns.append({"role": "user", "content": [answer]})
        total += len(code) + 700
    tool = {"name": "read", "input_schema": {"type": "object", "properties": {}}}
    body = {"model": "m", "max_tokens": 9, "stream": True, "tools": [tool], "messages": turns}
    return msgspec.json.encode(body)
