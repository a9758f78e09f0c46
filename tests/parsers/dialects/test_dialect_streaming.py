"""A9: long strings among arguments in XML form are emitted while they are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import FunctionCall, FunctionCallArgumentsDelta, accumulate
from streamlib_parsers.dialects import argument_writer
from tests.support.cases import each_case
from tests.support.dialect_calls import DSML, TOOLS, function, invoke, tool, xai
from tests.support.dialect_streams import check_brackets, filtered, outcome, splits_of


def pairs(name: str, **values: str) -> str:
    """GLM's form."""
    arguments = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"
        for key, value in values.items()
    )
    return f"<tool_call>{name}\n{arguments}</tool_call>"


def dsml(name: str, **values: str) -> str:
    """DeepSeek V3.2's form."""
    parameters = "".join(
        f'<{DSML}parameter name="{key}" string="{str(key != "n").lower()}">{value}'
        f"</{DSML}parameter>"
        for key, value in values.items()
    )
    return f'<{DSML}invoke name="{name}">{parameters}</{DSML}invoke>'


def k3(name: str, **values: str) -> str:
    """Kimi K3's form."""
    arguments = "".join(
        f'<|open|>argument key="{key}"<|sep|>{value}<|close|>argument<|sep|>'
        for key, value in values.items()
    )
    return f'<|open|>call tool="{name}" index="1"<|sep|>{arguments}<|close|>call<|sep|>'


def tags(opening: str, parameter: str) -> Callable[..., str]:
    """A form of tags with attributes."""

    def write(name: str, **values: str) -> str:
        parameters = "".join(
            f'<{parameter} name="{key}">{value}</{parameter}>' for key, value in values.items()
        )
        return f'<{opening} name="{name}">{parameters}</{opening}>'

    return write


def plain_invoke(name: str, **values: str) -> str:
    """Anthropic's form without a prefix."""
    return invoke("", name, **values)


def wrapped(wrapper: str) -> Callable[..., str]:
    """Anthropic's form in a wrapper."""

    def write(name: str, **values: str) -> str:
        return f"<{wrapper}>{plain_invoke(name, **values)}</{wrapper}>"

    return write


WRITERS: dict[str, Callable[..., str]] = {
    "qwen3_coder": function,
    "seed_oss": function,
    "mimo": function,
    "glm45": pairs,
    "xai": xai,
    "anthropic": plain_invoke,
    "deepseek_v32": dsml,
    "kimi_k3": k3,
    "minicpm5": tags("function", "param"),
    "step3": tags("steptml:invoke", "steptml:parameter"),
    "minimax_m2": wrapped("minimax:tool_call"),
    "dots": wrapped("dots_function_call"),
}
"""By dialect: writes a call."""
LONG = "x" * 150
DIALECTS = sorted(WRITERS)


@each_case("dialect", DIALECTS)
def test_long_string_is_emitted_while_it_is_written(dialect: str) -> None:
    text = WRITERS[dialect]("f", n="7", k=f"{LONG}{LONG}")
    part = text[: text.index(LONG) + 200]
    deltas = [
        event.delta
        for event in filtered(list(part), [dialect], stop_reason="length")
        if isinstance(event, FunctionCallArgumentsDelta)
    ]
    # MiMo's values keep the newlines of the tags.
    arguments = "".join(deltas).replace("\\n", "")
    assert arguments.startswith('{"n":')
    assert f',"k":"{LONG}' in arguments
    assert len(deltas) > 50


@each_case("dialect", DIALECTS)
def test_truncated_long_string_is_one_incomplete_item(dialect: str) -> None:
    """Invariant 13: no text of it, and one Notice."""
    text = WRITERS[dialect]("f", k=LONG, s=f"{LONG}-{LONG}")
    for size in range(text.index(LONG) + 110, len(text) - len(LONG), 31):
        response = accumulate(filtered([text[:size]], [dialect], stop_reason="length"))
        (call,) = response.items
        assert isinstance(call, FunctionCall)
        assert (call.status, response.text) == ("incomplete", "")
        assert [notice.code for notice in response.notices] == ["leaked_tool_call"]


@each_case("dialect", DIALECTS)
def test_short_string_of_a_truncated_call_stays_text(dialect: str) -> None:
    text = WRITERS[dialect]("f", k="x" * 20)
    part = text[: text.index("xxx") + 10]
    response = accumulate(filtered([part], [dialect], stop_reason="length"))
    assert (response.text, response.items[0].status) == (part, "completed")


@each_case("dialect", DIALECTS)
def test_streamed_values_are_equal_for_every_split(dialect: str) -> None:
    """Closing tags and calls inside values, and a type behind a string."""
    value = f"{LONG}&amp;<b>\n{LONG}&"
    text = f"A {WRITERS[dialect]('f', k=value, n='3', s='s' * 130)} B"
    events = filtered([text], [dialect])
    check_brackets(events)
    output, _, calls, notices = outcome(events)
    expected = value.replace("&amp;", "&") if dialect == "mimo" else value
    if dialect == "mimo":  # whose values keep their newlines
        expected, short = f"\n{expected}\n", "\n" + "s" * 130 + "\n"
    else:
        short = "s" * 130
    assert calls == [("f", {"k": expected, "n": 3, "s": short})]
    assert (output, notices) == ("A  B", [])
    for chunks in splits_of(text, count=4):
        assert join_deltas(filtered(chunks, [dialect])) == join_deltas(events)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("integer", "1" * 150),
        ("object", f'{{"a": "{LONG}"}}'),
        ({"type": ["string", "null"]}, LONG),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, f'["{LONG}"]'),
    ],
)
def test_value_of_another_type_is_not_streamed(declared: Any, value: str) -> None:
    text = f'<invoke name="h"><parameter name="p">{value}</parameter>'
    tools = [tool("h", p=declared)]
    events = filtered(list(text), ["anthropic"], tools, stop_reason="length")
    assert not any(isinstance(event, FunctionCallArgumentsDelta) for event in events)


def test_call_of_another_tool_is_not_streamed() -> None:
    text = invoke("", "unknown", k=LONG)
    response = accumulate(filtered(list(text), ["anthropic"]))
    assert (response.text, response.calls) == (text, [])


def test_repeated_parameter_of_a_streamed_call_wins() -> None:
    first, second = function("f", k=LONG), function("f", k="v")
    text = first.removesuffix("</function>") + second.removeprefix("<function=f>\n")
    for chunks in ([text], list(text)):
        events = filtered(chunks, ["qwen3_coder"])
        assert outcome(events)[2:] == ([("f", {"k": "v"})], ["duplicate_parameter"])


def test_call_after_a_streamed_one_without_end_is_recovered() -> None:
    """Of DeepSeek and GLM, whose tags are tokens that no value contains."""
    for dialect in ("glm45", "deepseek_v32"):
        write = WRITERS[dialect]
        broken = write("f", k=LONG)
        text = broken[: broken.index(LONG) + len(LONG)] + write("g")
        for chunks in ([text], list(text)):
            assert outcome(filtered(chunks, [dialect]))[2] == [("g", {})]


FRAGMENTS = ["x" * 99, "\n", "&", "&lt;", "&amp", ";", "&#65;", "<", "<b>", " ", "é", "😀"]
VALUES = st.lists(
    st.sampled_from([*FRAGMENTS, "]]>", "<![CDATA["]),
    max_size=8,
).map("".join)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=30)
@given(value=VALUES, size=st.integers(1, 120))
@example(value="\n" + "x" * 99 + "&", size=1)
@example(value="x" * 99 + "&lt;" + "x" * 99, size=1)
@example(value="x" * 99 + "\n\n", size=1)
@example(value=" " * 99 + "<![CDATA[" + "x" * 99 + "]]>", size=1)
def test_streamed_value_equals_the_one_read_at_once(dialect: str, value: str, size: int) -> None:
    text = WRITERS[dialect]("f", k=value, n="1")
    chunks = [text[index : index + size] for index in range(0, len(text), size)]
    streamed = outcome(filtered(chunks, [dialect], TOOLS))
    long, argument_writer.LONG = argument_writer.LONG, 1_000_000  # type: ignore[misc]
    try:
        at_once = outcome(filtered([text], [dialect], TOOLS))
    finally:
        argument_writer.LONG = long  # type: ignore[misc]
    assert streamed == at_once
    assert json.dumps(streamed[2])
