"""Calls that are nearly right: each is a call, or emitted as it was written; nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import FunctionCall, accumulate
from streamlib_parsers.dialects import LeakFilter
from tests.support.cases import each_case
from tests.support.dialect_calls import DSML, KIMI, invoke, kimi, tool
from tests.support.dialect_streams import check_brackets, filtered, outcome, splits_of

LONG = "a" * 9_000
ELEMENT = "]<]minimax[>["
GCML = "\uff5cGCML\uff5c"
HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'


def k3(attributes: str, value: str) -> str:
    """One call of Kimi K3."""
    argument = f"<|open|>argument {attributes}<|sep|>{value}<|close|>argument<|sep|>"
    return f'<|open|>call tool="f" index="1"<|sep|>{argument}<|close|>call<|sep|>'


IN_A_SECTION = {
    "kimi_k2": KIMI[0] + kimi("functions.f:0", "{}") + KIMI[1],
    "deepseek_v31": "<|tool_calls_begin|><|tool_call_begin|>f<|tool_sep|>{}<|tool_call_end|>"
    "<|tool_calls_end|>",
    "deepseek_v3": "<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>f\n```json\n{}\n"
    "```<|tool_call_end|><|tool_calls_end|>",
}
"""By dialect: a section with one call; {} are its arguments."""

GIVEN_BACK = [
    ("mistral", f"[TOOL_CALLS]{LONG}"),
    ("mistral", "[TOOL_CALLS]{}"),
    ("hermes", '<tool_call>{"name": "f", "arguments": "5"}</tool_call>'),
    ("hermes", f'<tool_call>{{"name": {LONG}}}</tool_call>'),
    ("hermes", '<tool_call>{"nonsense": 1}</tool_call>'),
    ("hermes", '<tool_call>{"unknown": 1, "name": "f"}</tool_call>'),
    ("hermes", '<tool_call>{"name" "f"}</tool_call>'),
    ("hermes", '<tool_call>{"name": "f", arguments: {"k": "v"}}</tool_call>'),
    ("hermes", '<tool_call>{"type": 1}\n{"name": "f"}</tool_call>'),
    ("hermes", '<tool_call>"name": "f"}</tool_call>'),
    ("anthropic", '<invoke name="f" junk></invoke>'),
    ("anthropic", '<invoke name="f">{"k": "v"} and'),
    ("anthropic", '<invoke\nname="f"></invoke>'),
    ("anthropic", '<invoke name="f" ="x"></invoke>'),
    ("anthropic", '<invoke name="f" a?="x"></invoke>'),
    ("hermes", '<tool_call>{name: "f"}</tool_call>'),
    ("gemma4", '<|tool_call>f{k:<|"|>v<|"|>}<tool_call|>'),
    ("gemma4", '<|tool_call>call:f <|"|>k<|"|>:1}<tool_call|>'),
    ("gemma4", '<|tool_call>call:f{k:<|"|>v}'),
    ("gemma4", '<|tool_call>call:f{<|"|>k:1}'),
    ("apertus", "<|tools_prefix|>[{5: {}}]<|tools_suffix|>"),
    ("apertus", "<|tools_prefix|>[{[]: {}}]<|tools_suffix|>"),
    ("minimax_m3", f"{ELEMENT}<tool_call>{ELEMENT}</tool_call>"),
    ("anthropic", "<function_calls></function_calls>"),
    ("kimi_k3", "<|open|>tools<|sep|><|close|>tools<|sep|>"),
    ("minimax_m2", '<invoke name="f"><parameter name="k">v</parameter></invoke>'),
    ("dots", '<invoke name="f"><parameter name="k">v</parameter></invoke>'),
    ("kimi_k2", '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"5"<|tool_call_end|>'),
    ("kimi_k2", "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>5<|tool_call_end|>"),
    (
        "kimi_k2",
        "<|tool_calls_section_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    ),
    ("kimi_k2", "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{} and"),
    ("glm45", "<tool_call>f<arg_key>k</arg_key>v</arg_value></tool_call>"),
    ("anthropic", '<invoke name="f"><invoke name="f"></invoke>'),
    ("qwen3_coder", "<tool_call><function=f>\n<function=f>\n</function></tool_call>"),
    ("harmony", 'to=multi_tool_use.parallel {"tool_uses": 5}'),
    ("harmony", 'to=multi_tool_use.parallel {"tool_uses": []}'),
    ("harmony", 'to=multi_tool_use.parallel {"tool_uses": [5]}'),
    (
        "harmony",
        'to=multi_tool_use.parallel {"tool_uses": [{"recipient_name": "f", "parameters": 5}]}',
    ),
    ("llama3_json", '{"name": "f", "parameters": {}} and more'),
    ("llama3_json", '{"answer": 1}'),
    ("minimax_m3", f"{ELEMENT}<tool_call>{ELEMENT}<invoke>{ELEMENT}</invoke>{ELEMENT}</tool_call>"),
    # A2: the end of the call was not read.
    ("xai", '<xai:function_call name="f"><xai:parameter name="k"></xai:parameter>'),
    ("pythonic", '[f(k="\\xZZ")]'),
    ("pythonic", '[f(k="\\ud800")]'),
    ("pythonic", "[f(k=nonsense)]"),
    ("pythonic", '[f[k="v"]]'),
    ("pythonic", '<|python_start|>[f{k="v"}]<|python_end|>'),
    ("gemma4", f"<|tool_call>call:f{{k:{'[' * 400}}}<tool_call|>"),
    ("gemma4", '<|tool_call>call:f{"":1}<tool_call|>'),
    ("anthropic", '<invoke name="f"><parameter>v</parameter></invoke>'),
    (
        "kimi_k3",
        (
            '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument '
            'type="string"<|sep|>a<|close|>argument<|sep|>'
        ),
    ),
]
"""(dialect, a text that is no call of it)"""

CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("pythonic", "[f(o={'a': 1,}, a=[1,])]", {"o": {"a": 1}, "a": [1]}),
    ("pythonic", '[f(k="\\x41\\u00e9")]', {"k": "Aé"}),
    (
        "glm45",
        (
            "<tool_call>f<arg_key>k</arg_key><arg_value>v\n<arg_key>n</arg_key><arg_value>"
            "1</arg_value></tool_call>"
        ),
        {"k": "v\n", "n": 1},  # A6: a token of the dialect ends the value
    ),
    (
        "deepseek_v3",
        '<|tool_call_begin|>function<|tool_sep|>f\n```json\n{"k": "v"}\n```\n<|tool_call_end|>',
        {"k": "v"},
    ),
    ("kimi_k3", k3('key="k"', "7"), {"k": "7"}),
    # The schema wins: `k` is a string, `n` an integer; `z` has none.
    ("kimi_k3", k3('key="k" type="integer"', "7"), {"k": "7"}),
    ("kimi_k3", k3('key="n" type="string"', "7"), {"n": 7}),
    ("kimi_k3", k3('key="z" type="integer"', "7"), {"z": 7}),
    ("kimi_k3", k3('key="z" type="string"', "7"), {"z": "7"}),
    ("anthropic", f"{invoke('', 'f', k='v')}</function_calls>", {"k": "v"}),
    (
        "minimax_m3",
        (
            f'{ELEMENT}<invoke name="f">{ELEMENT}<k>v{ELEMENT}</k>{ELEMENT}</invoke>{ELEMENT}'
            "</tool_call>"
        ),
        {"k": "v"},
    ),
    ("kimi_k3", k3('key="k"', "v") + "<|close|>tools<|sep|>", {"k": "v"}),
    (
        "mimo",
        "<tool_call><function=f><parameter=k>\nv\n</parameter></function></tool_call>",
        {"k": "\nv\n"},
    ),
    (
        "seed_oss",
        "<seed:tool_call><function=f><parameter=k>\nv\n</parameter></function></seed:tool_call>",
        {"k": "v"},
    ),
    (
        "dots",
        (
            '<dots_function_call><invoke name="f"><parameter name="k">\nv\n</parameter></invoke>'
            "</dots_function_call>"
        ),
        {"k": "v"},
    ),
    (
        "minimax_m2",
        (
            '<minimax:tool_call><invoke name="f"><parameter name="k">\nv\n</parameter></invoke>'
            "</minimax:tool_call>"
        ),
        {"k": "v"},
    ),
    ("minicpm5", '<function name="f"><param name="k">\nv\n</param></function>', {"k": "\nv\n"}),
    (
        "xai",
        (
            '<xai:function_call name="f"><xai:parameter name="k">\nv\n</xai:parameter>'
            "</xai:function_call>"
        ),
        {"k": "\nv\n"},
    ),
    (
        "mimo",
        "<tool_call><function=f><parameter=k>&#xZZ;&#65;&lt;</parameter></function></tool_call>",
        {"k": "&#xZZ;A<"},
    ),
]


@each_case("dialect, text", GIVEN_BACK)
def test_text_without_a_call_is_unchanged_for_every_split(dialect: str, text: str) -> None:
    for chunks in ([text], *splits_of(text, count=3)):
        events = filtered(chunks if len(text) < 1_000 else [text], [dialect])
        check_brackets(events)
        response = accumulate(events)
        assert (response.text, response.calls) == (text, [])


@each_case("dialect, text, arguments", CALLS)
def test_tolerated_variants_are_calls(dialect: str, text: str, arguments: dict[str, Any]) -> None:
    for chunks in ([text], list(text)):
        assert outcome(filtered(chunks, [dialect]))[::2] == ("", [("f", arguments)])


def test_call_inside_one_without_a_name_is_recovered() -> None:
    inner = f'{ELEMENT}<invoke name="f">{ELEMENT}</invoke>'
    assert outcome(filtered([f"{ELEMENT}<invoke>{inner}"], ["minimax_m3"]))[::2] == (
        f"{ELEMENT}<invoke>",
        [("f", {})],
    )


@pytest.mark.parametrize(
    ("dialect", "call", "behind"),
    [
        ("mistral", '[TOOL_CALLS][{"name": "f", "arguments": {"k": "v"}}', " and"),
        ("mistral", '[TOOL_CALLS][{"name": "f", "arguments": {"k": "v"}}', ", and"),
        ("apertus", '<|tools_prefix|>[{"f": {"k": "v"}}', "] and"),
        ("pythonic", '<|python_start|>[f(k="v")', "] and"),
    ],
)
def test_call_in_an_unclosed_list_counts_and_keeps_the_text(
    dialect: str, call: str, behind: str
) -> None:
    for chunks in ([call + behind], list(call + behind)):
        assert outcome(filtered(chunks, [dialect]))[::2] == (behind, [("f", {"k": "v"})])


def test_fence_on_the_line_after_a_call_is_code() -> None:
    code = f"\n```\n{HERMES}\n```\n"
    for chunks in ([HERMES + code + HERMES], list(HERMES + code + HERMES)):
        assert outcome(filtered(chunks, ["hermes"]))[::2] == (code, [("f", {"k": "v"})] * 2)


def test_bare_calls_are_separated_by_semicolons() -> None:
    text = '{"name": "f", "parameters": {"k": "v"}}; {"name": "g", "parameters": {}}'
    assert outcome(filtered([text], ["llama3_json"]))[2] == [("f", {"k": "v"}), ("g", {})]


def test_call_inside_an_unclosed_value_is_not_recovered() -> None:
    """A2: it may be part of a text about calls, which was cut off."""
    text = "<function=f>\n<parameter=k>\nv\n<function=g>\n</function>"
    for reason in ("stop", "length"):
        response = accumulate(filtered([text], ["qwen3_coder"], stop_reason=reason))
        assert (response.text, response.calls) == (text, [])
        assert [notice.code for notice in response.notices] == ["leaked_tool_call"]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (
            "deepseek_v32",
            (
                f'<{DSML}invoke name="f"><{DSML}parameter name="k" string="true">a'
                f'<{DSML}parameter name="n" string="false">1</{DSML}parameter></{DSML}invoke>'
            ),
        ),
        (
            "glm45",
            (
                "<tool_call>f<arg_key>k</arg_key><arg_value>a<arg_key>n</arg_key><arg_value>1"
                "</arg_value></tool_call>"
            ),
        ),
        (
            "kimi_k3",
            (
                '<|open|>call tool="f" index="1"<|sep|><|open|>argument key="k"<|sep|>a'
                '<|open|>argument key="n"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|>'
            ),
        ),
    ],
)
def test_private_token_ends_a_value_without_closing_tag(dialect: str, text: str) -> None:
    """A6: the value does not swallow the next parameter."""
    for chunks in ([text], list(text)):
        assert outcome(filtered(chunks, [dialect]))[::2] == ("", [("f", {"k": "a", "n": 1})])


PRIVATE = {
    "glm45": "<tool_call>f<arg_key>k</arg_key><arg_value>{}</arg_value></tool_call>",
    "glm47": "<tool_call>f<arg_key>k</arg_key><arg_value>{}</arg_value></tool_call>",
    "iquest_q1": "<iquest_tool_call>f<arg_key>k</arg_key><arg_value>{}</arg_value>"
    "</iquest_tool_call>",
    "hy_v3": "<tool_call>f<tool_sep><arg_key>k</arg_key><arg_value>{}</arg_value></tool_call>",
    "deepseek_v32": f'<{DSML}invoke name="f"><{DSML}parameter name="k" string="true">{{}}'
    f"</{DSML}parameter></{DSML}invoke>",
    "gigachat35": f'<{GCML}invoke name="f"><{GCML}parameter name="k">{{}}</{GCML}parameter>'
    f"</{GCML}invoke>",
}
"""By dialect whose tags are tokens: a call; {} is the value of its parameter."""
OPENERS = {
    "iquest_q1": "<iquest_tool_call>",
    "deepseek_v32": f"<{DSML}invoke",
    "gigachat35": f"<{GCML}invoke",
}
"""What begins a call, where it is not `<tool_call>`."""


@each_case("written", ["{0}", "a{0}b", "{0}f", "{0}\n{0}", 'a{0} name="g">', "x" * 200 + "{0}\nf"])
@each_case("dialect", PRIVATE)
def test_value_may_mention_what_begins_a_call(dialect: str, written: str) -> None:
    value = written.format(OPENERS.get(dialect, "<tool_call>"))
    text = PRIVATE[dialect].format(value)
    for chunks in ([text], list(text)):
        assert outcome(filtered(chunks, [dialect]))[::2] == ("", [("f", {"k": value})])


@each_case("closing", [True, False])
@each_case("dialect", PRIVATE)
def test_call_in_a_value_is_a_call_of_its_own(dialect: str, closing: bool) -> None:
    """The first call lost its end: it is text, and the second one is called."""
    whole = PRIVATE[dialect]
    before, after = whole.split("{}")
    lost = f"{before}a"
    if closing:
        end = after.index("</", 2)
        lost += after[:end]
    text = lost + whole.format("b")
    for chunks in ([text], list(text)):
        assert outcome(filtered(chunks, [dialect]))[::2] == (lost, [("f", {"k": "b"})])


@each_case("arguments", ['{"k": nonsense}', '{"k": "v"', '{"k": "v" "n"}'])
@each_case("dialect", ["kimi_k2", "deepseek_v31", "deepseek_v3"])
def test_malformed_call_in_a_section_is_one_incomplete_item(dialect: str, arguments: str) -> None:
    """A7: once as an item, once as text, one Notice."""
    text = IN_A_SECTION[dialect].format(arguments)
    for chunks in ([text], list(text)):
        events = filtered(chunks, [dialect])
        check_brackets(events)
        response = accumulate(events)
        calls = [item for item in response.items if isinstance(item, FunctionCall)]
        assert [call.status for call in calls] == ["incomplete"]
        assert response.text == text
        assert [notice.code for notice in response.notices] == ["leaked_tool_call"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [("v\n", "v\n"), ("\nv", "v"), ("\nv\n", "v"), ("\nv\n\n", "v\n"), ("\n", ""), ("", "")],
)
def test_newline_after_the_value_needs_one_before_it(value: str, expected: str) -> None:
    """A5: an edit tool must get the text that the model wrote; the template writes the first."""
    text = f"<function=f>\n<parameter=k>{value}</parameter>\n</function>"
    assert outcome(filtered([text], ["qwen3_coder"]))[2] == [("f", {"k": expected})]


@pytest.mark.parametrize(
    ("value", "expected"), [("v\n", "v\n"), ("\nv", "\nv"), ("\nv\n", "v"), ("\n", ""), ("", "")]
)
def test_newline_at_one_end_belongs_to_the_value(value: str, expected: str) -> None:
    """A5: where the template writes none."""
    assert outcome(filtered([invoke("", "f", k=value)], ["anthropic"]))[2] == [
        ("f", {"k": expected})
    ]


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [("float", "1.5", 1.5), ("int", "3", 3), ("str", "3", "3"), ("bool", "true", True)],
)
def test_types_named_as_in_python_are_read(declared: str, value: str, expected: object) -> None:
    """A10."""
    tools = [tool("f", k=declared)]
    text = f"<function=f>\n<parameter=k>\n{value}\n</parameter>\n</function>"
    assert outcome(filtered([text], ["qwen3_coder"], tools))[2] == [("f", {"k": expected})]


def test_leak_filter_buffers_nothing() -> None:
    assert LeakFilter().close() == []
