"""Dialects: calls that are nearly right. Each is a call, or the text it was; nothing of it is lost."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import Notice, accumulate
from streamlib_parsers.dialects import LeakStage
from tests.dialect_streams import check_brackets, cuts_of, staged, told

LONG = "a" * 9_000
ELEMENT = "]<]minimax[>["

GIVEN_BACK = [
    ("mistral", f"[TOOL_CALLS]{LONG}"),
    ("mistral", "[TOOL_CALLS]{}"),
    ("hermes", '<tool_call>{"name": "f", "arguments": "5"}</tool_call>'),
    ("hermes", f'<tool_call>{{"name": {LONG}}}</tool_call>'),
    ("hermes", '<tool_call>{"nonsense": 1}</tool_call>'),
    ("llama3_json", '{"name": "f", "parameters": {}} and more'),
    ("llama3_json", '{"answer": 1}'),
    ("minimax_m3", f"{ELEMENT}<tool_call>{ELEMENT}<invoke>{ELEMENT}</invoke>{ELEMENT}</tool_call>"),
    ("pythonic", '[f(k="\\xZZ")]'),
    ("pythonic", '[f(k="\\ud800")]'),
    ("pythonic", "[f(k=nonsense)]"),
    ("gemma4", f"<|tool_call>call:f{{k:{'[' * 400}}}<tool_call|>"),
    ("gemma4", '<|tool_call>call:f{"":1}<tool_call|>'),
    ("anthropic", '<invoke name="f"><parameter>v</parameter></invoke>'),
    ("kimi_k3", '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument type="string"<|sep|>a<|close|>argument<|sep|>'),
]
"""(dialect, a text that is no call of it)"""

CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("pythonic", "[f(o={'a': 1,}, a=[1,])]", {"o": {"a": 1}, "a": [1]}),
    ("pythonic", '[f(k="\\x41\\u00e9")]', {"k": "Aé"}),
    ("mimo", "<tool_call><function=f><parameter=k>&#xZZ;&#65;&lt;</parameter></function></tool_call>", {"k": "&#xZZ;A<"}),
]


@pytest.mark.parametrize(("dialect", "text"), GIVEN_BACK, ids=lambda value: value[:40])
def test_what_is_no_call_is_the_text_it_was_at_any_cut(dialect: str, text: str) -> None:
    for pieces in ([text], *cuts_of(text, count=3)):
        events = staged(pieces if len(text) < 1_000 else [text], [dialect])
        check_brackets(events)
        response = accumulate(events)
        assert (response.text, response.calls) == (text, [])


@pytest.mark.parametrize(("dialect", "text", "arguments"), CALLS, ids=lambda value: str(value)[:40])
def test_what_is_nearly_a_call_is_one(dialect: str, text: str, arguments: dict[str, Any]) -> None:
    assert told(staged([text], [dialect]))[2] == [("f", arguments)]


def test_two_bare_calls_with_a_semicolon_between_are_two() -> None:
    text = '{"name": "f", "parameters": {"k": "v"}}; {"name": "g", "parameters": {}}'
    assert told(staged([text], ["llama3_json"]))[2] == [("f", {"k": "v"}), ("g", {})]


def test_a_call_inside_an_unclosed_one_is_found_and_the_outer_one_is_text() -> None:
    outer = "<function=f>\n<parameter=k>\nv\n"
    events = staged([outer + "<function=g>\n</function>"], ["qwen3_coder"])
    response = accumulate(events)
    assert [call.name for call in response.calls] in (["g"], ["f", "g"])  # type: ignore[union-attr]
    assert all(isinstance(notice, Notice) for notice in response.notices)


def test_the_stage_that_looks_for_leaks_holds_nothing_back() -> None:
    assert LeakStage().close() == []
