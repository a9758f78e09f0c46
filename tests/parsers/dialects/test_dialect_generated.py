"""Dialects on generated, hostile and very long text: equal for every split, linear, limited."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import (
    Failed,
    accumulate,
    parser,
)
from streamlib_parsers.dialects import DIALECTS
from streamlib_parsers.limits import Limits
from tests.support.dialect_calls import (
    DSML,
    TOOLS,
    function,
    invoke,
    kimi,
    xai,
)
from tests.support.dialect_forms import FORMS
from tests.support.dialect_streams import (
    chat_body,
    check_brackets,
    filtered,
    outcome,
    splits_of,
)
from tests.support.timing import cpu_seconds

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(max_size=12)
    | st.sampled_from(["</tool_call>", "<tool_call>", '"', "\\", "```", "{"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=4),
    st.sampled_from(["hermes", "kimi_k2", "mistral", "deepseek_v31"]),
    st.integers(1, 9),
)
def test_json_dialects_carry_any_arguments(
    arguments: dict[str, Any], dialect: str, size: int
) -> None:
    body = json.dumps(arguments, ensure_ascii=False)
    texts = {
        "hermes": f'<tool_call>\n{{"name": "g", "arguments": {body}}}\n</tool_call>',
        "kimi_k2": kimi("functions.g:0", body),
        "mistral": f"[TOOL_CALLS]g[ARGS]{body}",
        "deepseek_v31": f"<|tool_call_begin|>g<|tool_sep|>{body}<|tool_call_end|>",
    }
    text = texts[dialect]
    chunks = [text[index : index + size] for index in range(0, len(text), size)]
    assert outcome(filtered(["Hi ", *chunks, "\nbye"], [dialect]))[:3] == (
        "Hi \nbye",
        "",
        [("g", arguments)],
    )


@given(
    st.text(st.sampled_from('<>/&;="\n abxé_parmetinvok'), max_size=60),
    st.sampled_from(["xai", "anthropic", "qwen3_coder", "glm45", "deepseek_v32"]),
)
def test_tagged_dialects_carry_any_text(value: str, dialect: str) -> None:
    texts = {
        "xai": xai("f", k=value),
        "anthropic": invoke("", "f", k=f"\n{value}\n"),
        "qwen3_coder": function("f", k=value),
        "glm45": f"<tool_call>f<arg_key>k</arg_key><arg_value>{value}</arg_value></tool_call>",
        "deepseek_v32": (
            f'<{DSML}invoke name="f"><{DSML}parameter name="k">{value}</{DSML}parameter>'
            f"</{DSML}invoke>"
        ),
    }
    assert outcome(filtered([texts[dialect]], [dialect]))[2] == [("f", {"k": value})]


# --- hostile and random text ---

BITS = [
    *sorted(
        {
            bit
            for form in FORMS
            for bit in re.split(r'(?<=[>\]}])|(?=[<\[{])|(")|(\n)', form.text)
            if bit
        }
    ),
    *(
        "`",
        "```\n",
        "\n",
        " ",
        "x",
        "<think>",
        "</think>",
        "to=functions.f {}",
        "<",
        "那é",
        "\ncall\n",
    ),
]


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(BITS), max_size=40).map("".join),
    st.lists(st.sampled_from(sorted(DIALECTS)), min_size=1, max_size=4, unique=True)
    | st.just(sorted(DIALECTS)),
    st.sampled_from(["stop", "length", "tool_calls"]),
    st.integers(0, 2**32),
)
def test_any_text_yields_equal_events_for_every_split(
    text: str, dialects: list[str], stop_reason: str, seed: int
) -> None:
    events = filtered([text], dialects, stop_reason=stop_reason)
    check_brackets(events)
    unsplit = join_deltas(events)
    for chunks in splits_of(text, seed, count=3):
        assert join_deltas(filtered(chunks, dialects, stop_reason=stop_reason)) == unsplit
    response = accumulate(events)
    drops = any(name.startswith(("think", "harmony", "kimi", "cohere")) for name in dialects)
    assert response.calls or drops or response.text == text


def test_call_over_the_limit_is_text_with_a_notice() -> None:
    limits = Limits(held_bytes=2000)
    text = f"a {xai('f', k='x' * 3000)} b {xai('f', k='y')}"
    unsplit = filtered([text], ["xai"], limits=limits)
    output, _, calls, notices = outcome(unsplit)
    assert (output, calls) == (text.replace(xai("f", k="y"), ""), [("f", {"k": "y"})])
    assert notices == ["leaked_tool_call"]
    for chunks in splits_of(text):
        assert join_deltas(filtered(chunks, ["xai"], limits=limits)) == join_deltas(unsplit)


def test_streamed_call_over_the_limit_is_incomplete_and_text() -> None:
    text = f'<tool_call>{{"name": "f", "arguments": {{"k": "{"x" * 3000}"}}}}</tool_call>'
    events = filtered(
        [text[index : index + 7] for index in range(0, len(text), 7)],
        ["hermes"],
        limits=Limits(held_bytes=2000),
    )
    assert outcome(events)[:3] == (text, "", [])
    check_brackets(events)


@pytest.mark.parametrize(
    ("limits", "code"), [(Limits(items=3), "items"), (Limits(argument_bytes=10), "argument_bytes")]
)
def test_exceeded_limit_ends_the_stream_with_items_closed(limits: Limits, code: str) -> None:
    p = parser("chat", tools=TOOLS, dialects=["hermes"], limits=limits)
    body = chat_body(
        [
            {"content": "a "},
            *[
                {
                    "content": (
                        f'<tool_call>{{"name": "f", "arguments": {{"k": "{"v" * 20}"}}}}'
                        "</tool_call> b "
                    )
                }
            ]
            * 4,
        ]
    )
    events = [*p.feed(body), *p.close()]
    check_brackets(events)
    last = events[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.code, p.ended) == ("limit_exceeded", code, True)
    assert accumulate(events).calls == []
    assert p.feed(body) == []


@pytest.mark.timing
@pytest.mark.parametrize(
    ("chunk", "dialects"),
    [
        ('<xai:function_call name="f"><xai:parameter name="k">', ["xai"]),
        ("<tool_call>x", ["hermes", "qwen3_coder", "glm45"]),
        ('<tool_call>{"name":"f","arguments":{', ["hermes"]),
        ("<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0", ["kimi_k2"]),
        ("\n<think>\n<tool_call>", ["think", "hermes"]),
        ("<", sorted(DIALECTS)),
        ("{[`", sorted(DIALECTS)),
    ],
)
@pytest.mark.parametrize("size", [10, 1 << 20])
def test_openers_without_an_end_take_linear_time(
    chunk: str, dialects: list[str], size: int
) -> None:
    check_growth(lambda n: chunk * (n // len(chunk)), dialects, size, small=5_000)


def check_growth(make: Callable[[int], str], dialects: list[str], size: int, small: int) -> None:
    """Checks that ten times the text takes at most twelve times the time.

    Measured up to four times: a busy machine can only make it look worse.
    """
    texts = (make(small), make(10 * small))
    measured: list[float] = []
    for _ in range(4):
        times: list[float] = []
        for text in texts:
            filter_text = functools.partial(filter_in_chunks, text, dialects, size)
            times.append(cpu_seconds(filter_text, tries=2))
        measured.append(times[1] / times[0])
        if measured[-1] <= 12:
            return
    pytest.fail(f"ratios {measured}")


def filter_in_chunks(text: str, dialects: list[str], size: int) -> None:
    filtered((text[index : index + size] for index in range(0, len(text), size)), dialects)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "dialects"),
    [
        (
            lambda n: (
                f'<xai:function_call name="f"><xai:parameter name="k">{"abcdefghij" * (n // 10)}'
            ),
            ["xai"],
        ),
        (lambda n: xai("f", k="abc\n<a></b>" * (n // 11)), ["xai"]),
        (
            lambda n: f'<tool_call>{{"name":"f","arguments":{{"k":"{"abcdefgh" * (n // 8)}',
            ["hermes"],
        ),
        (lambda n: "<think>" + "abc <b>\nd" * (n // 10), ["think", "hermes"]),
    ],
    ids=["xai-open", "xai-closed", "hermes-open", "think-open"],
)
def test_buffered_tag_of_a_megabyte_takes_linear_time(
    make: Callable[[int], str], dialects: list[str]
) -> None:
    check_growth(make, dialects, 10, small=100_000)
