"""Bodies that are no request of their wire are one kind of error, on every wire."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from streamlib import Prompt, StreamError, WireApi
from streamlib.wires.decoders import parse_request
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case

CLAUDE: Final = "/model/us.anthropic.claude-opus-4-6-v1/invoke-with-response-stream"

PATHS: Final[dict[str, tuple[str | None, ...]]] = {
    "converse": ("/model/us.anthropic.claude-opus-4-6/converse-stream",),
    "invoke": (
        CLAUDE,
        "/model/meta.llama3-8b-instruct-v1%3A0/invoke",
        "/model/us.amazon.nova-lite-v1%3A0/invoke",
        "",
    ),
}
"""Paths that name the model; requests of other wires need none."""

ANYWHERE: Final = (b"", b"[]", b"{", b"null", b"[" * 100_000, b"\xff")
"""No request of any wire."""

MALFORMED: Final[dict[str, tuple[bytes, ...]]] = {
    "chat": (
        b"{}",
        b'{"messages":[1]}',
        b'{"messages":[{"content":"x"}]}',
        b'{"messages":[{"role":"dog"}]}',
        b'{"messages":[{"role":"user","content":7}]}',
        b'{"messages":[{"role":["user"]}]}',
        b'{"messages":[],"tools":[7]}',
        b'{"messages":[],"tools":[{"function":{}}]}',
        b'{"messages":7}',
        b'{"messages":[],"max_tokens":"9"}',
        b'{"messages":[],"n":1.5}',
        b'{"messages":[],"temperature":"hot"}',
        b'{"messages":[],"tools":[{"function":{"name":7}}]}',
        b'{"messages":[],"user":7}',
        b'{"messages":[],"response_format":7}',
        b'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":7}]}]}',
        b'{"messages":[{"role":"user","content":[{"type":"text","text":[]}]}]}',
    ),
    "cohere": (b"{}", b'{"messages":[1]}', b'{"messages":7}'),
    "converse": (
        b"{}",
        b'{"messages":[1]}',
        b'{"messages":[{"role":"user"}]}',
        b'{"messages":[{"role":"user","content":[{}]}]}',
        b'{"messages":[{"role":"user","content":[{"toolResult":{}}]}]}',
        b'{"messages":[],"toolConfig":{"tools":[{}]}}',
        b'{"messages":[],"toolConfig":7}',
        b'{"messages":[],"system":[1]}',
        b'{"messages":[{"role":"assistant","content":[{"toolUse":1}]}]}',
    ),
    "gemini": (
        b"{}",
        b'{"contents":1}',
        b'{"contents":[1]}',
        b'{"contents":[{"parts":[1]}]}',
        b'{"contents":[{"parts":[{"text":1}]}]}',
        b'{"contents":[{"role":1,"parts":[]}]}',
        b'{"contents":[],"tools":[1]}',
        b'{"contents":[{"parts":[{"functionResponse":1}]}]}',
        b'{"contents":[],"generationConfig":{"thinkingConfig":1}}',
        b'{"contents":[{"role":"model","parts":[{"functionCall":{"name":1}}]}]}',
    ),
    "interactions": (
        b'{"input":5}',
        b'{"input":[5]}',
        b'{"input":[{"content":[]}]}',
        b'{"input":[{"type":"function_call","arguments":{}}]}',
        b'{"input":{"type":[]}}',
    ),
    "invoke": (
        b"{}",
        b'{"messages":[1]}',
        b'{"messages":[{"role":"dog","content":[{}]}]}',
        b'{"prompt":"hi"}',
    ),
    "messages": (b"{}", b'{"messages":[1]}', b'{"messages":[{"role":"user"}]}'),
    "ollama": (
        b"{}",
        b'{"messages":[1]}',
        b'{"messages":[{"content":"x"}]}',
        b'{"messages":[{"role":"dog"}]}',
        b'{"messages":7}',
        b'{"messages":[],"tools":[7]}',
        b'{"messages":[],"tools":[{"function":{}}]}',
        b'{"messages":[],"options":7}',
        b'{"messages":[{"role":"user","content":"x","images":[7]}]}',
        b'{"messages":[{"role":"assistant","content":7}]}',
        b'{"messages":[{"role":"tool","content":{"a":1}}]}',
        b'{"messages":[{"role":"tool","content":[{"type":"text","text":"x"}]}]}',
    ),
    "responses": (
        b'{"input":[1]}',
        b'{"input":[{"role":"user","content":[{}]}]}',
        b'{"input":[{"role":"user","content":[{"type":"input_text"}]}]}',
        b'{"input":[{"type":"function_call_output","call_id":"c"}]}',
        b'{"input":"x","tools":[{}]}',
        b'{"input":"x","tools":5}',
        b'{"input":"x","text":5}',
        b'{"input":"x","tool_choice":{}}',
        b'{"input":' + b"[" * 100_000,
    ),
}
"""Wire -> bodies that are no request of it: wrong types, and what is missing."""

CASES: Final = [
    (wire, body, path)
    for wire, bodies in MALFORMED.items()
    for body in (*ANYWHERE, *bodies)
    for path in PATHS.get(wire, (None,))
]


def shown(case: tuple[str, bytes, str | None]) -> str:
    wire, body, path = case
    return f"{wire} {body[:80]!r} {path}"


@each_case("wire, body, path", CASES, ids=shown)
def test_malformed_body_is_an_invalid_request(wire: str, body: bytes, path: str | None) -> None:
    with pytest.raises(StreamError) as caught:
        parse_request(wire, body, path=path)
    assert caught.value.kind == "invalid_request"


def test_malformed_bodies_are_those_of_every_wire() -> None:
    assert set(MALFORMED) == set(WIRE_APIS)


WRONG: Final[dict[str, tuple[tuple[str, bytes], ...]]] = {
    "messages": (
        ("tool_choice", b'{"messages":[],"max_tokens":1,"tool_choice":"auto"}'),
        ("thinking", b'{"messages":[],"max_tokens":1,"thinking":"on"}'),
        ("tools", b'{"messages":[],"max_tokens":1,"tools":["f"]}'),
        ("tools", b'{"messages":[],"max_tokens":1,"tools":5}'),
        ("messages", b'{"messages":[{"role":"user","content":5}],"max_tokens":1}'),
    ),
    "chat": (
        ("tools", b'{"messages":[],"tools":["f"]}'),
        ("tools", b'{"messages":[],"tools":7}'),
    ),
    "responses": (
        ("tools", b'{"input":"x","tools":["f"]}'),
        ("reasoning", b'{"input":"x","reasoning":"high"}'),
        ("text", b'{"input":"x","text":"json"}'),
    ),
    "invoke": (
        ("tool_choice", b'{"anthropic_version":"b","messages":[],"tool_choice":"auto"}'),
        ("tools", b'{"messages":[],"tool_choice":"auto","tools":["f"]}'),
    ),
    "gemini": (("generationConfig", b'{"contents":[],"generationConfig":"x"}'),),
    "interactions": (("input", b'{"input":5}'), ("tools", b'{"input":"x","tools":["f"]}')),
    "ollama": (("tools", b'{"messages":[],"tools":["f"]}'),),
    "cohere": (("tools", b'{"messages":[],"tools":["f"]}'),),
    "converse": (("toolConfig", b'{"messages":[],"toolConfig":"auto"}'),),
}
"""By wire: a key that has a value of the wrong type, and the body."""
PYTHON: Final = (
    "object has no",
    "indices must be",
    "not iterable",
    "not subscriptable",
    "argument",
)
"""Words of Python's own exceptions."""


@each_case(
    "wire, key, body",
    [(wire, key, body) for wire, cases in WRONG.items() for key, body in cases],
)
def test_value_of_a_wrong_type_names_its_key(wire: str, key: str, body: bytes) -> None:
    with pytest.raises(StreamError) as raised:
        parse_request(wire, body)  # type: ignore[arg-type]
    message = str(raised.value)
    assert raised.value.kind == "invalid_request"
    assert key in message
    assert not any(words in message for words in PYTHON)


SMALLEST: Final[dict[str, str]] = {
    **dict.fromkeys(("messages", "chat", "converse", "ollama", "cohere"), '"messages":[]'),
    **dict.fromkeys(("responses", "interactions"), '"input":"x"'),
    "invoke": '"anthropic_version":"b","messages":[]',
    "gemini": '"contents":[]',
}
"""What a body of each wire needs."""

OWN_KEYS: Final[list[tuple[WireApi, str, str]]] = [
    ("messages", "max_tokens", '"9"'),
    ("messages", "max_tokens", "1.5"),
    ("messages", "max_tokens", '{"a":1}'),
    ("messages", "stop_sequences", "5"),
    ("messages", "metadata.user_id", "5"),
    ("chat", "max_tokens", "true"),
    ("chat", "max_completion_tokens", "[1]"),
    ("chat", "safety_identifier", "5"),
    ("chat", "prompt_cache_key", "{}"),
    ("responses", "max_output_tokens", "1.5"),
    ("responses", "prompt_cache_key", "5"),
    ("responses", "text.verbosity", "5"),
    ("gemini", "generationConfig.maxOutputTokens", '"9"'),
    ("gemini", "generationConfig.topK", "1.5"),
    ("gemini", "generationConfig.candidateCount", "[]"),
    ("gemini", "generationConfig.stopSequences", "[5]"),
    ("gemini", "labels.a", "5"),
    ("interactions", "generation_config.max_output_tokens", '"9"'),
    ("interactions", "generation_config.stop_sequences", '""'),
    ("converse", "inferenceConfig.maxTokens", '"9"'),
    ("converse", "inferenceConfig.topP", "true"),
    ("converse", "requestMetadata.a", "5"),
    ("invoke", "max_tokens", '"9"'),
    ("ollama", "options.num_predict", '"9"'),
    ("ollama", "options.num_predict", "1.5"),
    ("cohere", "p", '"high"'),
    ("cohere", "k", "1.5"),
    ("cohere", "stop_sequences", "5"),
    ("messages", "messages[0]", "5"),
    ("cohere", "messages[0]", "5"),
]
"""A wire, a key of its own, and a value of the wrong type."""


@each_case("wire, key, value", OWN_KEYS)
def test_value_of_a_wrong_type_names_the_wires_own_key(wire: WireApi, key: str, value: str) -> None:
    """Clients do not know the fields of `Prompt`, such as `max_output_tokens`."""
    body = "{" + SMALLEST[wire] + "}"
    for part in reversed(key.split(".")):
        value = f'{{"{part}":{value}}}'
    if key == "messages[0]":
        body, value = "{}", '{"messages":[5]}'
    fields = json.loads(body) | json.loads(value)
    with pytest.raises(StreamError) as raised:
        parse_request(wire, json.dumps(fields).encode())
    reason = raised.value.message.partition(": ")[2]
    assert re.search(rf"(^|[ `]){re.escape(key)}([ `]|$)", reason)
    assert not re.search(rf"\b({'|'.join(Prompt.__struct_fields__)})\b", reason.replace(key, ""))


UNKNOWN_ROLE: Final = "'usr' is missing or unknown in"
NO_ROLE: Final = "'role' is missing or unknown in"
PLACES: Final[list[tuple[WireApi, Any, str]]] = [
    ("chat", {"role": "usr", "content": "x"}, f"{UNKNOWN_ROLE} messages[1].role"),
    ("chat", {"content": "x"}, f"{NO_ROLE} messages[1]"),
    ("chat", {"role": "user", "content": 3}, "messages[1] has a value of the wrong type"),
    (
        "messages",
        {"role": "usr", "content": "x"},
        "Invalid enum value 'usr' - at `messages[1].role`",
    ),
    ("messages", {"content": "x"}, f"{NO_ROLE} messages[1]"),
    ("responses", {"role": "usr", "content": "x"}, f"{UNKNOWN_ROLE} input[1].role"),
    ("responses", {"type": "message", "content": "x"}, f"{NO_ROLE} input[1]"),
    ("ollama", {"role": "usr", "content": "x"}, f"{UNKNOWN_ROLE} messages[1].role"),
    ("cohere", {"content": "x"}, f"{NO_ROLE} messages[1]"),
    ("converse", {"content": [{"text": "x"}]}, f"{NO_ROLE} messages[1]"),
]
"""A wire, its second message, and what is wrong with that."""


@each_case("wire, message, said", PLACES)
def test_refusal_names_the_place_of_a_message(wire: WireApi, message: Any, said: str) -> None:
    """Nothing said which of the messages it was; a role unknown to Responses was dropped."""
    first = {"role": "user", "content": "hi"}
    if wire == "converse":
        first = {"role": "user", "content": [{"text": "hi"}]}
    key = "input" if wire == "responses" else "messages"
    body = json.dumps({key: [first, message], "max_tokens": 1})
    with pytest.raises(StreamError) as raised:
        parse_request(wire, body.encode())
    assert raised.value.message == f"not a request of {wire}: {said}"


@pytest.mark.parametrize("key", ["max_tokens", "stop", "metadata", "tools", "role"])
@pytest.mark.parametrize("value", ["x" * 100_000, [["x" * 100_000]], {"x" * 100_000: 1}])
def test_reason_of_a_refusal_is_short(key: str, value: Any) -> None:
    """The gateway sends it back, and logs it."""
    message = {"role": "user", "content": "hi"}
    fields: dict[str, Any] = {"messages": [message], key: value}
    if key == "role":
        message[key] = value
    if key == "stop" and isinstance(value, str):
        fields[key] = [5, value]
    with pytest.raises(StreamError) as raised:
        parse_request("chat", json.dumps(fields).encode())
    assert len(raised.value.message) < 500
