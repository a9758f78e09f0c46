"""Tool calls written in text: every dialect, every split, and what must never become a call."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import (
    Completed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Text,
    ToolSpec,
    accumulate,
)
from streamlib_parsers.dialects import DIALECTS, DialectFilter
from tests.support.cases import Test, each_case
from tests.support.dialect_calls import (
    TOOLS,
    Form,
    function,
    kimi,
    xai,
)
from tests.support.dialect_forms import FORMS
from tests.support.dialect_streams import (
    calls_of,
    chat,
    filtered,
    outcome,
    splits_of,
)
from tests.support.thorough import some

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]


def each_form(*, whole_message: bool = True) -> Callable[[Test], Test]:
    """Once for every form.

    Args:
        whole_message: False leaves out those that must be the whole message, channels and marks.
    """
    alone = ("llama3_json-bare", "pythonic", "harmony-leak", "harmony-parallel")
    forms = [
        form
        for form in FORMS
        if whole_message
        or not (
            form.name in alone
            or form.reasoning
            or "final" in form.name
            or "response<" in form.text
            or "answer" in form.name
        )
    ]
    return each_case("form", forms, ids=lambda form: form.name)


# --- calls in text ---


@each_form()
def test_form_yields_its_text_reasoning_and_calls(form: Form) -> None:
    text, reasoning, calls, notices = outcome(filtered([form.text], form.dialects, form.tools))
    assert (text, reasoning, calls) == (form.output, form.reasoning, form.calls)
    assert notices == []


@each_form()
def test_form_yields_equal_events_for_every_split(form: Form) -> None:
    unsplit = join_deltas(filtered([form.text], form.dialects, form.tools))
    for index in range(len(form.text) + 1):
        assert (
            join_deltas(filtered([form.text[:index], form.text[index:]], form.dialects, form.tools))
            == unsplit
        ), index
    for chunks in splits_of(form.text):
        assert join_deltas(filtered(chunks, form.dialects, form.tools)) == unsplit, chunks


@each_form(whole_message=False)
def test_truncated_call_is_its_text_or_an_incomplete_item(form: Form) -> None:
    """A2: no text once an argument was emitted; tests/…/test_dialect_prefixes.py has the rest."""
    for index in some(range(len(form.text)), 3, form.name):
        response = accumulate(
            filtered([form.text[:index]], form.dialects, form.tools, stop_reason="length")
        )
        has_item = any(isinstance(item, FunctionCall) for item in response.items)
        assert has_item or response.text == form.text[:index], index


OPEN_VALUE = re.compile(
    r"<(?:\w+:)?param(?:eter)?[ =][^>]*>(?:(?!</(?:\w+:)?param(?:eter)?>).)*$", re.DOTALL
)
"""A text that ends inside the value of a tag: what follows, even a call, may belong to it."""


@each_form(whole_message=False)
def test_call_after_an_unclosed_one_is_recovered(form: Form) -> None:
    """A2: but not behind an unclosed value, which may be a text about calls."""
    for index in some(range(1, len(form.text)), 3, form.name):
        broken = form.text[:index]
        if "```" in broken:
            continue  # an open fence makes code of what follows
        calls = outcome(
            filtered([f"{broken}\n\nThen a real one:\n{form.text}"], form.dialects, form.tools)
        )[2]
        if calls[-len(form.calls) :] != form.calls:
            in_value = OPEN_VALUE.search(broken) or form.name == "xai-call-in-value"
            assert in_value or form.dialects == ("pythonic",), index
            assert len(calls) < len(form.calls), index


@each_case(
    "text",
    [
        "Write <tool_call> to call. The answer is 42.",
        "The tag <xai:function_call> and <function_calls>, <invoke>, <function=…> are tags.",
        (
            "<|tool_calls_section_begin|> begins a section, <|python_tag|> Python, [TOOL_CALLS] "
            'calls, functools a module, [f] {"a": 1}.'
        ),
        'Use <tool_call>{"name": "f"} … and so on.',
        "a <xai:func b < c",
        "<tool_call>f is called</tool_call>",
        '<invoke name="f"> opens a call.',
        "<",
        "<tool_call",
        "to=functions.",
    ],
)
def test_mention_of_a_tag_swallows_no_text(text: str) -> None:
    names = [name for name in DIALECTS if not name.startswith("think")]
    for chunks in ([text], list(text)):
        output, _, calls, _ = outcome(filtered(chunks, names))
        assert (output, calls) == (text, [])
        output, _, calls, _ = outcome(filtered([*chunks, "\n", HERMES, "\nEnd."], names))
        assert (output, calls) == (f"{text}\n\nEnd.", F) or text in ("<tool_call", "to=functions.")


def test_text_after_a_mention_is_not_buffered() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS)
    dialect_filter.feed([OutputItemAdded(0, Message("assistant"))])
    emitted = dialect_filter.feed([OutputTextDelta(0, 0, "Use <tool_call> to call a tool, like")])
    assert [event.delta for event in emitted if isinstance(event, OutputTextDelta)] == [
        "Use <tool_call> to call a tool, like"
    ]


def test_items_are_in_the_order_of_the_text() -> None:
    events = filtered([f"A{HERMES}B{HERMES}{HERMES}C"], ["hermes"])
    items = accumulate(events).items
    assert [type(item).__name__ for item in items] == [
        "Message",
        "FunctionCall",
        "Message",
        "FunctionCall",
        "FunctionCall",
        "Message",
    ]
    assert [event.index for event in events if isinstance(event, OutputItemAdded)] == list(range(6))
    assert [event.seq for event in events] == list(range(len(events)))
    assert len({item.call_id for item in items if isinstance(item, FunctionCall)}) == 3


def test_json_arguments_are_streamed() -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS)
    dialect_filter.feed([OutputItemAdded(0, Message("assistant"))])
    deltas = [
        dialect_filter.feed([OutputTextDelta(0, 0, chunk)])
        for chunk in ('<tool_call>{"name": "f", "argum', 'ents": {"k": "ab', "cd", 'ef"}', "}")
    ]
    assert [
        [event.delta for event in events if isinstance(event, FunctionCallArgumentsDelta)]
        for events in deltas
    ] == [
        [],
        ['{"k": "ab'],
        ["cd"],
        ['ef"}'],
        [],
    ]


def test_json_arguments_keep_the_text_of_the_model() -> None:
    arguments = '{"n" : 1.0,  "x":1e5, "s":"\\u00e9"}'
    call = accumulate(
        filtered([f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'], ["hermes"])
    ).calls[0]
    assert isinstance(call, FunctionCall)
    assert call.arguments == arguments


def test_control_characters_in_json_strings_are_escaped() -> None:
    raw = "".join(map(chr, range(0x21)))
    call = accumulate(
        filtered(
            [f'<tool_call>{{"name": "f", "arguments": {{"k": "{raw}"}}}}</tool_call>'], ["hermes"]
        )
    ).calls[0]
    assert isinstance(call, FunctionCall)
    assert call.arguments == json.dumps({"k": raw})


def test_call_of_a_tool_not_offered_is_text() -> None:
    inner = xai("f", k="v")
    text = f"a {xai('rm', k=inner)} b"
    output, _, calls, notices = outcome(filtered([text], ["xai"]))
    assert (output, calls, notices) == (text, [], ["leaked_tool_call"])


def test_without_tools_there_are_no_calls() -> None:
    assert outcome(filtered([HERMES], ["hermes"], tools=[]))[:3] == (HERMES, "", [])


def test_tool_sent_under_another_name_is_called_by_its_own() -> None:
    events = chat(
        [{"content": '<tool_call>{"name": "my_tool"}</tool_call>'}],
        tools=[ToolSpec("my.tool")],
        names={"my_tool": "my.tool"},
        dialects=["hermes"],
    )
    assert calls_of(accumulate(events)) == [("my.tool", {})]


@each_case(
    "text",
    [
        f"```xml\n{HERMES}\n```",
        f"~~~\n{HERMES}\n~~~\n",
        f"   ```\n```js\n{HERMES}",
        f"````\n```\n{HERMES}\n````",
        f"Write `{HERMES}` here.",
        f"Write ``{HERMES}`` here.",
        f"``` {HERMES}",
        f"An open `tick {HERMES}",
    ],
)
def test_calls_in_code_are_text(text: str) -> None:
    for chunks in ([text], list(text)):
        assert outcome(filtered(chunks, ["hermes", "qwen3_coder", "think"])) == (text, "", [], [])


@each_case(
    "before",
    [
        "```\ncode\n```\n",
        "a `tick` b ",
        "an open `tick\n",
        "    ```\n",
        "```x``` ",
        "~~~\n```\n~~~\n",
        "```\n``\n```\n",
        "`` ` `` ",
    ],
)
def test_call_after_code_is_a_call(before: str) -> None:
    for chunks in ([before + HERMES], list(before + HERMES)):
        assert outcome(filtered(chunks, ["hermes"]))[:3] == (before, "", F)


def test_call_ids_of_the_model_are_kept_and_made_unique() -> None:
    text = kimi("functions.f:3", "{}") + kimi("functions.f:3", "{}") + kimi("f:4", "{}")
    ids = [call.call_id for call in accumulate(filtered([text], ["kimi_k2"])).calls]
    assert ids == ["functions.f:3", "call_0", "f:4"]


def test_kimi_call_without_a_usable_name_is_left_out() -> None:
    calls = "".join(
        kimi(header, "{}") for header in ("functions.f.0", ":1", "functions.f:x", "functions.g:2")
    )
    text = f"a<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>b"
    assert outcome(filtered([text], ["kimi_k2"])) == (
        "ab",
        "",
        [("g", {})],
        ["leaked_tool_call"] * 3,
    )


def test_end_of_a_section_is_text_when_its_last_call_is() -> None:
    begin, end, nameless, other = (
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        kimi(":1", "{}"),
        kimi("rm:2", "{}"),
    )
    assert (
        outcome(filtered([f"a{begin}{other}{nameless}{end}b"], ["kimi_k2"]))[0]
        == f"a{begin}{other}b"
    )
    assert (
        outcome(filtered([f"a{begin}{nameless}{other}{end}b"], ["kimi_k2"]))[0] == f"a{other}{end}b"
    )


def test_repeated_parameter_keeps_the_last_with_a_notice() -> None:
    text = xai("f", n="1").replace(
        "</xai:function_call>", '<xai:parameter name="n">2</xai:parameter></xai:function_call>'
    )
    assert outcome(filtered([text], ["xai"])) == (
        "",
        "",
        [("f", {"n": 2})],
        ["duplicate_parameter"],
    )


def test_malformed_arguments_are_not_a_call() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"k": v}}</tool_call>'
    events = filtered([text], ["hermes"])
    assert outcome(events) == (text, "", [], ["leaked_tool_call"])
    assert [item.status for item in accumulate(events).items] == [
        "incomplete",
        "completed",
    ]  # the call that had begun, and its text


@pytest.mark.parametrize("role", ["user", "system", "developer"])
def test_only_messages_of_the_assistant_are_scanned(role: Any) -> None:
    dialect_filter = DialectFilter(["hermes"], TOOLS)
    message = Message(role, [Text(HERMES)])
    events = [
        OutputItemAdded(0, Message(role)),
        OutputTextDelta(0, 0, HERMES),
        OutputItemDone(0, message),
        Completed(stop_reason="stop"),
    ]
    response = accumulate(dialect_filter.feed(events))
    assert (response.calls, response.items, response.stop_reason) == ([], (message,), "stop")


# --- unusual calls ---


@each_case(
    "text, dialect, calls",
    [
        (kimi("functions.f:0", '"{\\"k\\": \\"v\\"}"'), "kimi_k2", F),
        (kimi("functions.g:0", '""'), "kimi_k2", [("g", {})]),
        (kimi("functions.f:0", "[1]"), "kimi_k2", []),
        (kimi("f", '{"k": "v"}'), "kimi_k2", F),
        (
            f"<tool_call>{function('f', k='v').replace('</function>', '')}</tool_call>",
            "qwen3_coder",
            F,
        ),
        ('<tool_call>{"name": 5, "arguments": {}}</tool_call>', "hermes", []),
        ('<tool_call>{"name": "g", "arguments": [1]}</tool_call>', "hermes", []),
        ('<tool_call>{"name": "g", "arguments": null}</tool_call>', "hermes", [("g", {})]),
        ('<tool_call>{"name": "g", "arguments": {}, "arguments": {}}</tool_call>', "hermes", []),
        ('<tool_call>{"name": "g", "arguments": {}} so</tool_call>', "hermes", []),
        (
            (
                '<tool_call>{"name": "f", "id": "x", "arguments": {"k": "v"}, "why": [1, {"a": "}'
                '"}], "n": -1.5}</tool_call>'
            ),
            "hermes",
            F,
        ),
        ('<tool_call>{"name" "f"}</tool_call>', "hermes", []),
        ("<tool_call>[]</tool_call>", "hermes", []),
        ("[f(k=v)]", "pythonic", []),
        ("[f('v')]", "pythonic", []),
        ("[f(k='v') g()]", "pythonic", []),
        ("[f(k='v')] and", "pythonic", []),
        ("<|python_start|>[f(k='v')] and<|python_end|>", "pythonic", F),
        (
            (
                '<|open|>call tool="f"<|sep|><|open|>argument key="k"<|sep|>v<|close|>'
                "argument<|sep|><|close|>call<|sep|>"
            ),
            "kimi_k3",
            F,
        ),
        (
            (
                '<|open|>call tool="f"<|sep|><|open|>argument<|sep|>v<|close|>argument<|sep|>'
                "<|close|>call<|sep|>"
            ),
            "kimi_k3",
            [],
        ),
        ('<|open|>call index="1"<|sep|><|close|>call<|sep|>', "kimi_k3", []),
        ("<|open|>tools<|sep|><|close|>tools<|sep|>", "kimi_k3", []),
        ('to=multi_tool_use.parallel {"tool_uses": []}', "harmony", []),
        (
            (
                'to=multi_tool_use.parallel {"tool_uses": [{"recipient_name": "functions.rm", '
                '"parameters": {}}]}'
            ),
            "harmony",
            [],
        ),
        ("<|channel|>commentary to=functions.f<|message|>{} x<|call|>", "harmony", []),
        ("<function_calls></function_calls>", "anthropic", []),
        ('<invoke name=f><parameter name="k">v</parameter></invoke>', "anthropic", F),
        ("<invoke name><parameter></invoke>", "anthropic", []),
        ('<invoke what="f"></invoke>', "anthropic", []),
    ],
)
def test_unusual_calls_are_calls_or_text(text: str, dialect: str, calls: list[Any]) -> None:
    for chunks in ([text], list(text)):
        output, _, recovered, _ = outcome(filtered(chunks, [dialect]))
        assert recovered == calls
        assert recovered or output == text


MARK = "]<]minimax[>["


@each_case(
    "inside, arguments",
    [
        (f"{MARK}<o>{MARK}<p>1{MARK}</p>text{MARK}</o>", {"o": {"p": "1", "$text": "text"}}),
        (f"{MARK}<a>{MARK}<x>1{MARK}</x>{MARK}</a>", {"a": ["1"]}),
        (f"{MARK}<n>1{MARK}</n>{MARK}<n>2{MARK}</n>", {"n": ["1", "2"]}),
        (f"{MARK}<k>a <b> c{MARK}</k>", {"k": "a <b> c"}),
        (f"{MARK}<k>a{MARK}</n>", None),
        (f"{MARK}k", None),
        (f"{MARK}k>1{MARK}</k>", None),
        (f"{MARK}<k>" * 60 + f"{MARK}</k>" * 60, None),
    ],
)
def test_nested_elements_are_objects_and_arrays(inside: str, arguments: Any) -> None:
    text = f'{MARK}<invoke name="f">{inside}{MARK}</invoke>'
    output, _, calls, _ = outcome(filtered([text], ["minimax_m3"]))
    assert calls == ([("f", arguments)] if arguments is not None else [])
    assert calls or output == text


@pytest.mark.parametrize(
    "between",
    ["<|end|>\n<|start|>assistant", "<|end|>\n\n", "<|start|>assistant", "", "<|return|> "],
)
def test_white_space_between_channels_is_not_text(between: str) -> None:
    text = (
        f"<|channel|>analysis<|message|>Hm.{between}<|channel|>commentary<|message|>I "
        f"look.{between}<|channel|>final<|message|>So."
    )
    for chunks in ([text], list(text)):
        assert outcome(filtered(chunks, ["harmony"]))[:2] == ("I look.So.", "Hm.")


def test_token_mentioned_in_a_channel_is_text() -> None:
    text = "<|channel|>final<|message|>Write `<|end|>` here.<|return|>"
    assert outcome(filtered([text], ["harmony"]))[0] == "Write `<|end|>` here."


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("<|tool_call>call:f{:1}<tool_call|>", "gemma4"),
        ("<|tool_call>call:f{n:1} and more<tool_call|>", "gemma4"),
        ("<|tools_prefix|>[{f: {}}]<|tools_suffix|>", "apertus"),
        ('<|tools_prefix|>[{"f" {}}]<|tools_suffix|>', "apertus"),
        ('<|tools_prefix|>[{"f": 1}]<|tools_suffix|>', "apertus"),
    ],
)
def test_malformed_call_is_emitted_as_written(text: str, dialect: str) -> None:
    output, _, calls, _ = outcome(filtered([text], [dialect]))
    assert (output, calls) == (text, [])


def test_only_xai_reads_json_for_tools_without_properties() -> None:
    tools = [ToolSpec("f", schema={"type": "object"})]
    xai, bare = (
        (
            '<xai:function_call name="f"><xai:parameter name="k">[1]</xai:parameter>'
            "</xai:function_call>"
        ),
        '<invoke name="f">%s</invoke>',
    )
    assert outcome(filtered([xai], ["xai"], tools))[2] == [("f", {"k": [1]})]
    assert outcome(filtered([bare % '<parameter name="k">[1]</parameter>'], ["anthropic"], tools))[
        2
    ] == [("f", {"k": "[1]"})]


def openers_of(dialect: str) -> set[str]:
    """The literals that begin anything in a dialect."""
    return {opener.marker for grammar in DIALECTS[dialect].grammars for opener in grammar.openers}


def test_random_forms_in_a_row_are_all_recovered() -> None:
    rng = random.Random(5)
    alone = [
        form
        for form in FORMS
        if not form.reasoning
        and form.name
        not in ("llama3_json-bare", "pythonic", "harmony-leak", "harmony-parallel", "llama3_json")
    ]
    closed = [
        form
        for form in alone
        if not form.name.endswith("no-end")
        and "harmony" not in form.name
        and "first" not in form.name
    ]
    tried = 0
    for _ in range(200):
        forms = rng.sample(closed, 3)
        dialects = list(dict.fromkeys(name for form in forms for name in form.dialects))
        if len({form.text.split(">")[0].strip() for form in forms}) < 3:
            continue  # two families with the same tag never meet in one model
        openers = [opener for name in dialects for opener in openers_of(name)]
        if len(openers) > len(set(openers)):
            continue  # nor do two dialects with the same token
        tried += 1
        text = " and\n".join(form.text for form in forms)
        output, _, calls, _ = outcome(filtered([text], dialects))
        expected = [call for form in forms for call in form.calls]
        assert len(calls) == len(expected), text
        assert output == " and\n".join(form.output for form in forms)
    assert tried > 50
