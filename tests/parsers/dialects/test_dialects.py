"""Tool calls written in text: every dialect, every cut, and what must never become a call."""

from __future__ import annotations

import gc
import json
import random
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Text,
    ToolSpec,
    accumulate,
    parser,
)
from streamlib_parsers.dialects import DIALECTS, DialectFilter
from streamlib_parsers.limits import Limits
from tests.support.dialect_streams import (
    DSML,
    FORMS,
    TOOLS,
    Form,
    calls_of,
    chat,
    chat_body,
    check_brackets,
    cuts_of,
    function,
    invoke,
    kimi,
    staged,
    told,
    tool,
    xai,
)
from tests.support.metrics import figure
from tests.support.shared import MISSING, WIRES, Recording, each_recording, each_vector, recordings

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]


def each_form(*, whole_message: bool = True) -> pytest.MarkDecorator:
    """Once for every form; with `whole_message=False` not for those that must be the whole message, nor for channels and marks."""
    alone = ("llama3_json-bare", "pythonic", "harmony-leak", "harmony-parallel")
    forms = [
        form
        for form in FORMS
        if whole_message
        or not (
            form.name in alone or form.thought or "final" in form.name or "response<" in form.text
        )
    ]
    return pytest.mark.parametrize("form", forms, ids=lambda form: form.name)


# --- what is found ---


@each_form()
def test_a_form_gives_its_text_its_thoughts_and_its_calls(form: Form) -> None:
    text, thought, calls, notices = told(staged([form.text], form.dialects, form.tools))
    assert (text, thought, calls) == (form.said, form.thought, form.calls)
    assert notices == []


@each_form()
def test_a_form_gives_the_same_events_for_every_cut(form: Form) -> None:
    whole = join_deltas(staged([form.text], form.dialects, form.tools))
    for at in range(len(form.text) + 1):
        assert (
            join_deltas(staged([form.text[:at], form.text[at:]], form.dialects, form.tools))
            == whole
        ), at
    for pieces in cuts_of(form.text):
        assert join_deltas(staged(pieces, form.dialects, form.tools)) == whole, pieces


@each_form(whole_message=False)
def test_a_call_that_was_cut_comes_back_as_the_text_it_was(form: Form) -> None:
    for at in range(len(form.text)):
        response = accumulate(
            staged([form.text[:at]], form.dialects, form.tools, stop_reason="length")
        )
        assert response.calls or response.text == form.text[:at], at


@each_form(whole_message=False)
def test_a_call_behind_one_that_was_never_closed_is_found(form: Form) -> None:
    for at in range(1, len(form.text)):
        broken = form.text[:at]
        if "```" in broken:
            continue  # an open fence makes code of what follows
        calls = told(
            staged([f"{broken}\n\nThen a real one:\n{form.text}"], form.dialects, form.tools)
        )[2]
        assert calls[-len(form.calls) :] == form.calls, at


@pytest.mark.parametrize(
    "text",
    [
        "Write <tool_call> to call. The answer is 42.",
        "The tag <xai:function_call> and <function_calls>, <invoke>, <function=…> are tags.",
        '<|tool_calls_section_begin|> begins a section, <|python_tag|> Python, [TOOL_CALLS] calls, functools a module, [f] {"a": 1}.',
        'Use <tool_call>{"name": "f"} … and so on.',
        "a <xai:func b < c",
        "<tool_call>f is called</tool_call>",
        '<invoke name="f"> opens a call.',
        "<",
        "<tool_call",
        "to=functions.",
    ],
)
def test_a_mention_swallows_nothing(text: str) -> None:
    names = [name for name in DIALECTS if not name.startswith("think")]
    for pieces in ([text], list(text)):
        said, _, calls, _ = told(staged(pieces, names))
        assert (said, calls) == (text, [])
        said, _, calls, _ = told(staged([*pieces, "\n", HERMES, "\nEnd."], names))
        assert (said, calls) == (f"{text}\n\nEnd.", F) or text in ("<tool_call", "to=functions.")


def test_prose_behind_a_mention_is_not_held_back() -> None:
    stage = DialectFilter(["hermes"], TOOLS)
    stage.feed([OutputItemAdded(0, Message("assistant"))])
    given_out = stage.feed([OutputTextDelta(0, 0, "Use <tool_call> to call a tool, like")])
    assert [event.delta for event in given_out if isinstance(event, OutputTextDelta)] == [
        "Use <tool_call> to call a tool, like"
    ]


def test_items_stand_in_the_order_of_the_text() -> None:
    events = staged([f"A{HERMES}B{HERMES}{HERMES}C"], ["hermes"])
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


def test_arguments_stream_where_the_dialect_is_json() -> None:
    stage = DialectFilter(["hermes"], TOOLS)
    stage.feed([OutputItemAdded(0, Message("assistant"))])
    deltas = [
        stage.feed([OutputTextDelta(0, 0, piece)])
        for piece in ('<tool_call>{"name": "f", "argum', 'ents": {"k": "ab', "cd", 'ef"}', "}")
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


def test_arguments_are_the_text_of_the_model() -> None:
    arguments = '{"n" : 1.0,  "x":1e5, "s":"\\u00e9"}'
    call = accumulate(
        staged([f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'], ["hermes"])
    ).calls[0]
    assert isinstance(call, FunctionCall)
    assert call.arguments == arguments


def test_control_characters_in_the_text_of_the_model_are_escaped_as_json_wants_it() -> None:
    raw = "".join(map(chr, range(0x21)))
    call = accumulate(
        staged(
            [f'<tool_call>{{"name": "f", "arguments": {{"k": "{raw}"}}}}</tool_call>'], ["hermes"]
        )
    ).calls[0]
    assert isinstance(call, FunctionCall)
    assert call.arguments == json.dumps({"k": raw})


def test_a_call_of_a_tool_that_was_not_offered_is_text_as_a_whole() -> None:
    inner = xai("f", k="v")
    text = f"a {xai('rm', k=inner)} b"
    said, _, calls, notices = told(staged([text], ["xai"]))
    assert (said, calls, notices) == (text, [], ["leaked_tool_call"])


def test_no_tools_no_calls() -> None:
    assert told(staged([HERMES], ["hermes"], tools=[]))[:3] == (HERMES, "", [])


def test_a_tool_sent_under_another_name_is_called_by_its_own() -> None:
    events = chat(
        [{"content": '<tool_call>{"name": "my_tool"}</tool_call>'}],
        tools=[ToolSpec("my.tool")],
        names={"my_tool": "my.tool"},
        dialects=["hermes"],
    )
    assert calls_of(accumulate(events)) == [("my.tool", {})]


@pytest.mark.parametrize(
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
def test_nothing_is_found_in_code(text: str) -> None:
    for pieces in ([text], list(text)):
        assert told(staged(pieces, ["hermes", "qwen3_coder", "think"])) == (text, "", [], [])


@pytest.mark.parametrize(
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
def test_what_follows_code_is_no_code(before: str) -> None:
    for pieces in ([before + HERMES], list(before + HERMES)):
        assert told(staged(pieces, ["hermes"]))[:3] == (before, "", F)


def test_a_model_keeps_the_ids_it_wrote_and_no_id_comes_twice() -> None:
    text = kimi("functions.f:3", "{}") + kimi("functions.f:3", "{}") + kimi("f:4", "{}")
    ids = [call.call_id for call in accumulate(staged([text], ["kimi_k2"])).calls]
    assert ids == ["functions.f:3", "call_0", "f:4"]


def test_a_kimi_call_without_a_usable_name_is_left_out_of_its_section() -> None:
    calls = "".join(
        kimi(header, "{}") for header in ("functions.f.0", ":1", "functions.f:x", "functions.g:2")
    )
    text = f"a<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>b"
    assert told(staged([text], ["kimi_k2"])) == ("ab", "", [("g", {})], ["leaked_tool_call"] * 3)


def test_the_end_of_a_section_goes_the_way_of_its_last_call() -> None:
    begin, end, nameless, other = (
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        kimi(":1", "{}"),
        kimi("rm:2", "{}"),
    )
    assert told(staged([f"a{begin}{other}{nameless}{end}b"], ["kimi_k2"]))[0] == f"a{begin}{other}b"
    assert told(staged([f"a{begin}{nameless}{other}{end}b"], ["kimi_k2"]))[0] == f"a{other}{end}b"


def test_the_last_of_two_equal_parameters_stands_with_a_notice() -> None:
    text = xai("f", n="1").replace(
        "</xai:function_call>", '<xai:parameter name="n">2</xai:parameter></xai:function_call>'
    )
    assert told(staged([text], ["xai"])) == ("", "", [("f", {"n": 2})], ["duplicate_parameter"])


def test_broken_arguments_are_no_call() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"k": v}}</tool_call>'
    events = staged([text], ["hermes"])
    assert told(events) == (text, "", [], ["leaked_tool_call"])
    assert [item.status for item in accumulate(events).items] == [
        "incomplete",
        "completed",
    ]  # the call that had begun, and its text


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
def test_any_json_arguments_come_through_json_dialects(
    arguments: dict[str, Any], dialect: str, size: int
) -> None:
    body = json.dumps(arguments, ensure_ascii=False)
    text = {
        "hermes": f'<tool_call>\n{{"name": "g", "arguments": {body}}}\n</tool_call>',
        "kimi_k2": kimi("functions.g:0", body),
        "mistral": f"[TOOL_CALLS]g[ARGS]{body}",
        "deepseek_v31": f"<|tool_call_begin|>g<|tool_sep|>{body}<|tool_call_end|>",
    }[dialect]
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert told(staged(["Hi ", *pieces, "\nbye"], [dialect]))[:3] == (
        "Hi \nbye",
        "",
        [("g", arguments)],
    )


@given(
    st.text(st.sampled_from('<>/&;="\n abxé_parmetinvok'), max_size=60),
    st.sampled_from(["xai", "anthropic", "qwen3_coder", "glm45", "deepseek_v32"]),
)
def test_any_text_comes_through_tagged_dialects(value: str, dialect: str) -> None:
    text = {
        "xai": xai("f", k=value),
        "anthropic": invoke("", "f", k=f"\n{value}\n"),
        "qwen3_coder": function("f", k=value),
        "glm45": f"<tool_call>f<arg_key>k</arg_key><arg_value>{value}</arg_value></tool_call>",
        "deepseek_v32": f'<{DSML}invoke name="f"><{DSML}parameter name="k">{value}</{DSML}parameter></{DSML}invoke>',
    }[dialect]
    assert told(staged([text], [dialect]))[2] == [("f", {"k": value})]


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
def test_any_text_gives_the_same_events_for_any_cut_and_loses_nothing(
    text: str, dialects: list[str], stop_reason: str, seed: int
) -> None:
    events = staged([text], dialects, stop_reason=stop_reason)
    check_brackets(events)
    whole = join_deltas(events)
    for pieces in cuts_of(text, seed, count=3):
        assert join_deltas(staged(pieces, dialects, stop_reason=stop_reason)) == whole
    response = accumulate(events)
    drops = any(name.startswith(("think", "harmony", "kimi", "cohere")) for name in dialects)
    assert response.calls or drops or response.text == text


def test_a_form_longer_than_the_ceiling_comes_back_with_a_notice_at_every_cut() -> None:
    limits = Limits(held_bytes=2000)
    text = f"a {xai('f', k='x' * 3000)} b {xai('f', k='y')}"
    whole = staged([text], ["xai"], limits=limits)
    said, _, calls, notices = told(whole)
    assert (said, calls) == (text.replace(xai("f", k="y"), ""), [("f", {"k": "y"})])
    assert notices == ["leaked_tool_call"] * 2
    for pieces in cuts_of(text):
        assert join_deltas(staged(pieces, ["xai"], limits=limits)) == join_deltas(whole)


def test_a_streamed_call_past_the_ceiling_ends_incomplete_and_its_text_comes_back() -> None:
    text = f'<tool_call>{{"name": "f", "arguments": {{"k": "{"x" * 3000}"}}}}</tool_call>'
    events = staged(
        [text[at : at + 7] for at in range(0, len(text), 7)],
        ["hermes"],
        limits=Limits(held_bytes=2000),
    )
    assert told(events)[:3] == (text, "", [])
    check_brackets(events)


@pytest.mark.parametrize(
    ("limits", "code"), [(Limits(items=3), "items"), (Limits(argument_bytes=10), "argument_bytes")]
)
def test_a_ceiling_ends_the_stream_with_everything_closed(limits: Limits, code: str) -> None:
    p = parser("chat", tools=TOOLS, dialects=["hermes"], limits=limits)
    body = chat_body(
        [
            {"content": "a "},
            *[
                {
                    "content": f'<tool_call>{{"name": "f", "arguments": {{"k": "{"v" * 20}"}}}}</tool_call> b '
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


@pytest.mark.parametrize(
    ("piece", "dialects"),
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
def test_openings_without_an_end_cost_linear_time(
    piece: str, dialects: list[str], size: int
) -> None:
    check_growth(lambda n: piece * (n // len(piece)), dialects, size, small=20_000)


def check_growth(make: Callable[[int], str], dialects: list[str], size: int, small: int) -> None:
    """Ten times the text takes at most twelve times the time. Measured up to four times: a busy machine can only make it look worse."""
    texts = (make(small), make(10 * small))
    measured: list[float] = []
    for _ in range(4):
        times = [cpu_time(lambda text=text: staged_pieces(text, dialects, size)) for text in texts]
        measured.append(times[1] / times[0])
        if measured[-1] <= 12:
            return
    pytest.fail(f"ratios {measured}")


def staged_pieces(text: str, dialects: list[str], size: int) -> None:
    staged((text[at : at + size] for at in range(0, len(text), size)), dialects)


def cpu_time(run: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(2):
        gc.collect()
        begun = time.process_time()
        run()
        times.append(time.process_time() - begun)
    return min(times)


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
def test_a_held_tag_of_a_megabyte_costs_linear_time(
    make: Callable[[int], str], dialects: list[str]
) -> None:
    check_growth(make, dialects, 10, small=100_000)


# --- recordings and vectors of others ---

FOLDER = "text-tool-dialects"
OF_RECORDING = {
    "deepseek32": "deepseek_v32",
    "glm47": "glm47",
    "kimi-k2": "kimi_k2",
    "minimax-m2": "minimax_m2",
    "minimax-m3": "minimax_m3",
}
OF_RECORDING |= {"qwen3xml": "qwen3_coder", "xai": "xai"}


def typed_tools(calls: Iterable[dict[str, Any]]) -> list[ToolSpec]:
    """Tools whose schemas say what the expected values are."""
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return [
        tool(call["name"], **{key: names[type(value)] for key, value in call["arguments"].items()})
        for call in calls
    ]


@each_recording(FOLDER, (".txt",))
def test_recorded_texts_give_their_calls_at_every_cut(recording: Recording) -> None:
    text, expected = recording.body.decode(), recording.expected
    dialect = next(
        name for start, name in OF_RECORDING.items() if recording.path.name.startswith(start)
    )
    tools = typed_tools(expected["tool_calls"])
    whole = staged([text], [dialect], tools)
    said, _, calls, _ = told(whole)
    assert (said, calls) == (
        expected["content"],
        [(call["name"], call["arguments"]) for call in expected["tool_calls"]],
    )
    for at in range(len(text) + 1):
        assert join_deltas(staged([text[:at], text[at:]], [dialect], tools)) == join_deltas(
            whole
        ), at
    for pieces in cuts_of(text, count=30):
        assert join_deltas(staged(pieces, [dialect], tools)) == join_deltas(whole), pieces


@pytest.mark.parametrize("folder", WIRES)
def test_recorded_answers_of_every_wire_are_the_same_with_all_dialects_on(folder: str) -> None:
    dialects = [name for name in DIALECTS if name != "think:open"]
    found = recordings(folder)
    if not found:
        pytest.skip(f"{MISSING}: recordings of {folder}")
    for recording in found:
        wire: Any = recording.wire
        plain, staged_one = (parser(wire), parser(wire, tools=TOOLS, dialects=dialects))
        body = recording.body
        before = accumulate([*plain.feed(body), *plain.close()])
        after = accumulate([*staged_one.feed(body), *staged_one.close()])
        if any(
            notice.code == "text_replaced" and notice not in before.notices
            for notice in after.notices
        ):
            assert "</think>" in before.text  # some servers lose the opening tag
            assert before.text.startswith(after.reasoning[:50])
        else:
            assert after == before, recording.path.name


MADE = {
    "opens-1e5": '<xai:function_call name="f">' * 100_000,
    "spaces-1e6": "<think>" + " " * 10**6,
}


@each_vector("tag_security_vectors")
def test_text_of_others_never_becomes_a_call(vector: dict[str, Any]) -> None:
    text = vector.get("text") or MADE[vector["id"]]
    names = vector.get("declared") or ["Read", "A", "B", "f"]
    typed = {spec.name: spec for spec in typed_tools(vector["calls"])}
    tools = [typed.get(name, ToolSpec(name)) for name in names]
    dialects = ["xai", "think"] if vector.get("quirk", True) else []
    deltas = deltas_of(vector["where"], text)
    begun = time.process_time()
    events = chat(deltas, tools=tools, dialects=dialects)
    took = time.process_time() - begun
    response = accumulate(events)
    calls = [call for call in response.calls if call.call_id != "native"]
    assert [
        {"name": call.name, "arguments": json.loads(call.arguments)}
        for call in calls
        if isinstance(call, FunctionCall)
    ] == vector["calls"]
    if vector["where"] == "assistant_delta":
        assert took < 3  # the vector says 1 s, on a machine of its own; growth is tested above
        assert vector["calls"] or response.text == text
    figure(f"{'recovered' if vector['calls'] else 'attack'}/{vector['id']}")


def deltas_of(where: str, text: str) -> list[dict[str, Any]]:
    """The text where the vector has it. What a user or a tool said is never in an answer: there the model only repeats nothing of it."""
    match where:
        case "assistant_delta":
            return [{"content": text[at : at + 50_000]} for at in range(0, len(text), 50_000)]
        case "reasoning_delta":
            return [{"reasoning_content": text}]
        case "tool_args_delta":
            return [
                {
                    "tool_calls": [
                        {"index": 0, "id": "native", "function": {"name": "A", "arguments": text}}
                    ]
                }
            ]
        case _:
            return [{"content": "ok"}]


@pytest.mark.parametrize("role", ["user", "system", "developer"])
def test_only_what_the_assistant_says_is_looked_at(role: Any) -> None:
    stage = DialectFilter(["hermes"], TOOLS)
    message = Message(role, [Text(HERMES)])
    events = [
        OutputItemAdded(0, Message(role)),
        OutputTextDelta(0, 0, HERMES),
        OutputItemDone(0, message),
        Completed(stop_reason="stop"),
    ]
    response = accumulate(stage.feed(events))
    assert (response.calls, response.items, response.stop_reason) == ([], (message,), "stop")


# --- odd calls ---


@pytest.mark.parametrize(
    ("text", "dialect", "calls"),
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
            '<tool_call>{"name": "f", "id": "x", "arguments": {"k": "v"}, "why": [1, {"a": "}"}], "n": -1.5}</tool_call>',
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
            '<|open|>call tool="f"<|sep|><|open|>argument key="k"<|sep|>v<|close|>argument<|sep|><|close|>call<|sep|>',
            "kimi_k3",
            F,
        ),
        (
            '<|open|>call tool="f"<|sep|><|open|>argument<|sep|>v<|close|>argument<|sep|><|close|>call<|sep|>',
            "kimi_k3",
            [],
        ),
        ('<|open|>call index="1"<|sep|><|close|>call<|sep|>', "kimi_k3", []),
        ("<|open|>tools<|sep|><|close|>tools<|sep|>", "kimi_k3", []),
        ('to=multi_tool_use.parallel {"tool_uses": []}', "harmony", []),
        (
            'to=multi_tool_use.parallel {"tool_uses": [{"recipient_name": "functions.rm", "parameters": {}}]}',
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
def test_odd_calls_are_calls_or_text(text: str, dialect: str, calls: list[Any]) -> None:
    for pieces in ([text], list(text)):
        said, _, found, _ = told(staged(pieces, [dialect]))
        assert found == calls
        assert found or said == text


MARK = "]<]minimax[>["


@pytest.mark.parametrize(
    ("inside", "arguments"),
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
def test_nested_elements(inside: str, arguments: Any) -> None:
    text = f'{MARK}<invoke name="f">{inside}{MARK}</invoke>'
    said, _, calls, _ = told(staged([text], ["minimax_m3"]))
    assert calls == ([("f", arguments)] if arguments is not None else [])
    assert calls or said == text


@pytest.mark.parametrize(
    "between",
    ["<|end|>\n<|start|>assistant", "<|end|>\n\n", "<|start|>assistant", "", "<|return|> "],
)
def test_white_space_between_channels_is_no_text_and_a_channel_may_begin_without_the_end_of_the_last(
    between: str,
) -> None:
    text = f"<|channel|>analysis<|message|>Hm.{between}<|channel|>commentary<|message|>I look.{between}<|channel|>final<|message|>So."
    for pieces in ([text], list(text)):
        assert told(staged(pieces, ["harmony"]))[:2] == ("I look.So.", "Hm.")


def test_a_token_that_is_spoken_of_in_a_channel_stays() -> None:
    text = "<|channel|>final<|message|>Write `<|end|>` here.<|return|>"
    assert told(staged([text], ["harmony"]))[0] == "Write `<|end|>` here."


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("<|tool_call>call:f{k:oops}<tool_call|>", "gemma4"),
        ("<|tool_call>call:f{:1}<tool_call|>", "gemma4"),
        ("<|tool_call>call:f{n:1 b:2}<tool_call|>", "gemma4"),
        ("<|tool_call>call:f{n:1} and more<tool_call|>", "gemma4"),
        ("<|tools_prefix|>[{f: {}}]<|tools_suffix|>", "apertus"),
        ('<|tools_prefix|>[{"f" {}}]<|tools_suffix|>', "apertus"),
        ('<|tools_prefix|>[{"f": 1}]<|tools_suffix|>', "apertus"),
    ],
)
def test_what_is_nearly_a_call_comes_back_as_it_was_written(text: str, dialect: str) -> None:
    said, _, calls, _ = told(staged([text], [dialect]))
    assert (said, calls) == (text, [])


def test_only_xai_reads_json_where_a_tool_was_offered_without_properties() -> None:
    tools = [ToolSpec("f", schema={"type": "object"})]
    xai, bare = (
        '<xai:function_call name="f"><xai:parameter name="k">[1]</xai:parameter></xai:function_call>',
        '<invoke name="f">%s</invoke>',
    )
    assert told(staged([xai], ["xai"], tools))[2] == [("f", {"k": [1]})]
    assert told(staged([bare % '<parameter name="k">[1]</parameter>'], ["anthropic"], tools))[
        2
    ] == [("f", {"k": "[1]"})]


def test_random_forms_in_a_row_are_all_found() -> None:
    rng = random.Random(5)
    alone = [
        form
        for form in FORMS
        if not form.thought
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
    for _ in range(150):
        forms = rng.sample(closed, 3)
        dialects = list(dict.fromkeys(name for form in forms for name in form.dialects))
        if len({form.text.split(">")[0].strip() for form in forms}) < 3:
            continue  # two families with the same tag never meet in one model
        text = " and\n".join(form.text for form in forms)
        said, _, calls, _ = told(staged([text], dialects))
        wanted = [call for form in forms for call in form.calls]
        assert len(calls) == len(wanted), text
        assert said == " and\n".join(form.said for form in forms)
