"""Bodies that no client sends: one error for all of them, bounded work, items of the right types.

`pytest -m slow` tries more of them.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
import time
import tracemalloc
from typing import Any, Final

import msgspec
import pytest

from streamlib import History, StreamError, build, user
from streamlib.request.prompt import Prompt
from streamlib.web import UIRequest, UIRequestError, UIRequestLimits, parse_ui_request
from streamlib.web.vercel import request as vercel_request
from streamlib.web.vercel import signatures as vercel_signatures
from streamlib.web.vercel.request import STATES
from streamlib_parsers import Message, Reasoning
from tests.support.cases import each_case
from tests.support.ui_requests import (
    PNG,
    WEATHER,
    agui_body,
    agui_call,
    model_message,
    page_message,
    text,
    tool_part,
    vercel_body,
)

APPROVAL: Final = {"id": "p", "approved": True, "reason": "r"}
SIGNED: Final = {"google": {"thoughtSignature": "s"}}
VALID: Final[dict[str, dict[str, Any]]] = {
    "vercel": vercel_body(
        page_message(text("hi"), {"type": "file", "mediaType": "image/png", "url": PNG}),
        model_message(
            {"type": "step-start"},
            {
                "type": "reasoning",
                "text": "hm",
                "providerMetadata": {"google": {"thoughtSignature": "s"}},
            },
            text("x"),
            tool_part("output-available", output=[{"type": "image", "data": "aGk="}]),
            tool_part("approval-responded", "c2", approval=APPROVAL),
            tool_part("output-error", "c3", errorText="no", rawInput="{"),
            {"type": "steering-message", "id": "s", "parts": [text("stop")]},
        ),
    ),
    "agui": agui_body(
        {"id": "1", "role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"id": "2", "role": "assistant", "content": "x", "toolCalls": [agui_call()]},
        {"id": "3", "role": "tool", "toolCallId": "c1", "content": "sun", "error": "e"},
        {"id": "4", "role": "reasoning", "content": "hm", "encryptedValue": "s"},
        tools=[{"name": "f", "description": "d", "parameters": {"type": "object"}}],
    ),
}
NASTY: Final = (
    None,
    True,
    -1,
    1e308,
    1 << 70,
    "",
    "\ud800",
    "\x00",
    "system",
    "constructor",
    "__proto__",
    "x" * 1_000,
    [],
    [None],
    [[]],
    {},
    {"type": "text"},
    {"type": "tool-"},
    {"role": "user"},
)

each_protocol = pytest.mark.parametrize("protocol", VALID)


def attempt(protocol: Any, body: Any) -> UIRequest | None:
    """The request, whose items are then what they say they are; None where it was refused."""
    refused: UIRequestError | None = None
    try:
        asked = parse_ui_request(protocol, body, tools=[WEATHER])
    except UIRequestError as error:
        refused = error
    if refused is not None:
        assert refused.kind in ("invalid_request", "request_too_large")
        assert len(refused.message) < 300
        return None
    assert History.loads(History(asked.history).dumps()) == list(asked.history)
    assert msgspec.json.encode(asked.report)
    return asked


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container in a JSON value, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            places(value[key], found)
    return found


def try_wrong_values(protocol: str, values_each: int) -> tuple[int, int]:
    """Gives every field some of the wrong values; how many bodies were refused, and taken."""
    chance = random.Random(17)
    refused = taken = 0
    for position in range(len(places(copy.deepcopy(VALID[protocol]), []))):
        for value in chance.sample(NASTY, values_each):
            body = copy.deepcopy(VALID[protocol])
            holder, key = places(body, [])[position]
            holder[key] = value
            if attempt(protocol, body) is None:
                refused += 1
            else:
                taken += 1
    return refused, taken


@each_protocol
def test_every_field_with_a_wrong_value(protocol: str) -> None:
    assert min(try_wrong_values(protocol, 4)) > 40


@pytest.mark.slow
@each_protocol
def test_every_field_with_every_wrong_value(protocol: str) -> None:
    assert min(try_wrong_values(protocol, len(NASTY))) > 200


@each_protocol
def test_every_field_missing(protocol: str) -> None:
    for position in range(len(places(copy.deepcopy(VALID[protocol]), []))):
        body = copy.deepcopy(VALID[protocol])
        holder, key = places(body, [])[position]
        del holder[key]
        attempt(protocol, body)


@each_protocol
def test_broken_bytes(protocol: str) -> None:
    encoded = json.dumps(VALID[protocol]).encode()
    chance = random.Random(17)
    for _ in range(300):
        data = bytearray(encoded)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        attempt(protocol, bytes(data))
        attempt(protocol, encoded[: chance.randrange(len(encoded))])


KEYS: Final = ("role", "parts", "type", "text", "messages", "id", "state", "content", "toolCalls")


def any_json(chance: random.Random, depth: int) -> Any:
    """A JSON value of keys and values that are known, in places where they do not belong."""
    kind = chance.randrange(8)
    if kind < 3 and depth:
        return {
            chance.choice(KEYS): any_json(chance, depth - 1) for _ in range(chance.randrange(6))
        }
    if kind < 5 and depth:
        return [any_json(chance, depth - 1) for _ in range(chance.randrange(5))]
    return chance.choice((*NASTY, *KEYS, *STATES))


def try_any_json(protocol: str, count: int) -> None:
    chance = random.Random(17)
    for _ in range(count):
        body = copy.deepcopy(VALID[protocol])
        body["messages"] = [any_json(chance, 4) for _ in range(3)]
        if chance.randrange(2):
            for message in body["messages"]:
                if isinstance(message, dict):
                    message["role"] = chance.choice(["user", "assistant", "tool", "reasoning"])
        attempt(protocol, body)


@each_protocol
def test_any_json_is_a_request_or_the_error(protocol: str) -> None:
    try_any_json(protocol, 300)


@pytest.mark.slow
@each_protocol
def test_much_json_is_a_request_or_the_error(protocol: str) -> None:
    try_any_json(protocol, 100_000)


@each_case(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"messages":NaN}',
        b'{"messages":[],"n":' + b"9" * 10_000 + b"}",
        b'{"messages":[{"role":"user","parts":' + b"[" * 150 + b"]" * 150 + b"}]}",
        {"messages": [object()]},
        {"messages": [], 1: 2},
        {"messages": {1, 2}},
    ],
)
def test_value_that_is_not_a_json_object_is_refused(body: Any) -> None:
    for protocol in VALID:
        assert attempt(protocol, body) is None


def test_an_error_quotes_nothing_of_the_body() -> None:
    secret = "hunter2" * 3
    for body in (
        vercel_body({"role": secret, "parts": []}),
        vercel_body({"role": "user", "parts": [{"type": "text", "text": {"a": secret}}]}),
        vercel_body(page_message(), trigger=secret),
        vercel_body(model_message(tool_part(secret))),
        f'{{"messages": {secret}}}'.encode(),
    ):
        with pytest.raises(UIRequestError) as raised:
            parse_ui_request("vercel", body, tools=None)
        assert secret not in str(raised.value)


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ({"body_bytes": 100}, "body_bytes"),
        ({"values": 10}, "values"),
        ({"depth": 3}, "depth"),
        ({"messages": 1}, "messages"),
        ({"tools": 0}, "tools"),
    ],
)
def test_limits_are_named_by_the_error(limits: dict[str, int], name: str) -> None:
    bounds = UIRequestLimits(**limits)
    for body in (VALID["agui"], json.dumps(VALID["agui"]).encode()):
        with pytest.raises(UIRequestError, match=name) as raised:
            parse_ui_request("agui", body, limits=bounds)
        assert (raised.value.kind, raised.value.status) == ("request_too_large", 413)


@pytest.mark.parametrize(
    ("protocol", "limits"),
    [
        ("vercel", {"messages": 2}),
        ("agui", {"messages": 2}),
        ("agui", {"values": 20}),
        ("agui", {"depth": 4}),
    ],
)
def test_body_at_a_limit_is_taken(protocol: str, limits: dict[str, int]) -> None:
    messages = {
        "vercel": [page_message(text("a")), page_message(text("b"))],
        "agui": [{"id": "1", "role": "user", "content": "a"}] * 2,
    }
    body = {
        "vercel": vercel_body(*messages["vercel"]),
        "agui": agui_body(*messages["agui"], state={"a": [[1]]}),
    }[protocol]
    ((name, limit),) = limits.items()
    asked = parse_ui_request(protocol, body, limits=UIRequestLimits(**limits))
    assert len(asked.history) == 2
    with pytest.raises(UIRequestError, match=name) as raised:
        parse_ui_request(protocol, body, limits=UIRequestLimits(**{name: limit - 1}))
    assert raised.value.status == 413


def test_integer_of_more_than_64_bits_is_a_float() -> None:
    """As in JavaScript; encoders take 64 bits only."""
    edge = 1 << 63
    body = vercel_body(page_message(text("hi")), own=[edge - 1, -edge, edge, -edge - 1])
    own = parse_ui_request("vercel", body).extra["own"]
    assert [type(number) for number in own] == [int, int, float, float]


def test_text_that_javascript_split_is_joined() -> None:
    for written, words in ((rb"a\ud83d", "a\ufffd"), (rb"\ud83d\ude00", "\U0001f600")):
        part = b'{"type":"text","text":"' + written + b'"}'
        body = b'{"messages":[{"role":"user","parts":[' + part + b"]}]}"
        assert parse_ui_request("vercel", body).history == [user(words)]


def test_what_was_taken_can_be_sent() -> None:
    for protocol, valid in VALID.items():
        asked = attempt(protocol, valid)
        assert asked is not None
        for model in ("anthropic:claude-opus-5", "openai:gpt-5.5", "google:gemini-3-pro"):
            assert build(Prompt(asked.history, tools=[WEATHER, *asked.tools]), model).body


@pytest.mark.timing
def test_twice_the_messages_take_twice_the_time() -> None:
    def seconds(count: int) -> float:
        output = {
            "role": "tool",
            "toolCallId": "c1",
            "content": "the call was truncated and is not run",
        }
        call = {"role": "assistant", "content": "x", "toolCalls": [agui_call()]}
        body = agui_body(*[call, output] * count)
        best = 9.0
        for _ in range(3):
            started = time.perf_counter()
            parse_ui_request("agui", body, tools=["weather"])
            best = min(best, time.perf_counter() - started)
        return best

    assert seconds(1_600) / seconds(400) < 10


def test_parts_of_one_item_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One copy for each part took minutes for a body of 8 MB."""
    copies: list[object] = []

    def counting(struct: Any, **changes: Any) -> Any:
        copies.append(struct)
        return msgspec.structs.replace(struct, **changes)

    monkeypatch.setattr(vercel_request, "replace", counting)
    monkeypatch.setattr(vercel_signatures, "replace", counting)
    file = {"type": "file", "mediaType": "image/png", "url": PNG}
    signed = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "e"}}
    paragraph = {"type": "reasoning", "text": "hm", "providerMetadata": signed}
    body = vercel_body(model_message(*[paragraph] * 200, text("x"), *[file] * 200))
    reasoning, message = parse_ui_request("vercel", body).history
    assert isinstance(reasoning, Reasoning)
    assert isinstance(message, Message)
    assert (len(reasoning.summary), len(message.content)) == (200, 201)
    assert len(copies) == 2


@pytest.mark.parametrize(("texts", "is_refused"), [(100, False), (101, True)])
def test_body_has_two_texts_for_each_value_at_most(texts: int, is_refused: bool) -> None:
    """A key and a text. What is written twice is one value, and takes memory twice."""
    body = json.dumps(vercel_body(page_message(text("hi")))).encode().removesuffix(b"}")
    missing = texts - body.count(b'"') // 2
    body += b', "a": "b"' * (missing // 2) + b', "c": 1' * (missing % 2) + b"}"
    assert body.count(b'"') == 2 * texts
    limits = UIRequestLimits(values=50)
    if is_refused:
        with pytest.raises(UIRequestError, match="values"):
            parse_ui_request("vercel", body, limits=limits)
    else:
        parse_ui_request("vercel", body, limits=limits)


@pytest.mark.parametrize("filler", [b"[],", b"{},", b'"",', b"1,", b'{"":""},'])
def test_too_many_values_are_refused_before_they_are_made(filler: bytes) -> None:
    body = b'{"messages":[' + filler * 600_000 + b"0]}"
    tracemalloc.start()
    try:
        with pytest.raises(UIRequestError, match="values"):
            parse_ui_request("vercel", body, limits=UIRequestLimits(values=50_000))
        assert tracemalloc.get_traced_memory()[1] < 8 * len(body)
    finally:
        tracemalloc.stop()


def test_a_text_of_many_commas_is_one_value() -> None:
    words = ',"\\[{' * 100_000
    body = json.dumps(vercel_body(page_message(text(words)))).encode()
    asked = parse_ui_request("vercel", body, limits=UIRequestLimits(values=50_000))
    assert asked.history == [user(words)]


def test_a_body_as_text_may_have_half_a_character() -> None:
    body = json.dumps(vercel_body(page_message(text("a\ud83d"))), ensure_ascii=False)
    assert parse_ui_request("vercel", body).history == [user("a\ufffd")]


def test_other_arguments_are_the_programmers_mistake() -> None:
    with pytest.raises(TypeError, match="a body is bytes or a dict, not a int"):
        parse_ui_request("vercel", 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no requests of protocol 'jsonl'"):
        parse_ui_request("jsonl", b"{}")  # type: ignore[arg-type]
    assert issubclass(UIRequestError, StreamError)


@pytest.mark.parametrize("too_large", [False, True])
def test_error_of_a_request_survives_pickle(too_large: bool) -> None:
    error = UIRequestError("/messages", too_large=too_large)
    assert pickle.loads(pickle.dumps(error)).info == copy.copy(error).info == error.info
