"""What whole families of models write: tokens that mean nothing, headings, fences and wrappers.

Each text is what a server passes on unparsed; the dialects are those of the model's row.
"""

# ruff: noqa: RUF001  # GigaChat 3.5 writes its tokens with a full-width bar
from __future__ import annotations

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import Message, Text, accumulate
from streamlib_parsers.dialects import dialects_for
from tests.support.cases import each_case
from tests.support.dialect_calls import F1, Call
from tests.support.dialect_streams import check_brackets, filtered, outcome, splits_of

Q = '<|"|>'
"""Gemma 4's token at both ends of a string."""
GEMMA = "gemma-4-27b"
JSON_CALL = '{"name": "f", "arguments": {"k": "v"}}'
FUNCTION = "<tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>"
PAIRS = "<tool_call>f\n<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>"

GCML = """<｜GCML｜tool_calls>
<｜GCML｜invoke name="f">
<｜GCML｜parameter name="k" string="true">v</｜GCML｜parameter>
</｜GCML｜invoke>
</｜GCML｜tool_calls>"""


def gemma(arguments: str, end: str = "<tool_call|>") -> str:
    """A call of `f` by Gemma 4."""
    return f"<|tool_call>call:f{{{arguments}}}{end}"


CASES: list[tuple[str, str, str, str, list[Call]]] = [
    # A8: tokens of Gemma 4 that carry no text.
    (GEMMA, "<|channel>thought<channel|>Hi", "Hi", "", []),
    (GEMMA, "<|channel>thought\n<channel|>Hi", "Hi", "", []),
    (GEMMA, "<|channel>thought\nHm.<channel|>Hi", "Hi", "Hm.", []),
    (GEMMA, "<|channel>thousand reasons<channel|>Hi", "Hi", "thousand reasons", []),
    (GEMMA, "Hi.<|channel>thought\nHm.<channel|><channel|>Bye", "Hi.Bye", "Hm.", []),
    (GEMMA, "Hm.<channel|>Hi", "Hi", "Hm.", []),
    (GEMMA, "Hi<turn|>", "Hi", "", []),
    (GEMMA, gemma(f"k:{Q}v{Q}") + "<tool_call|>", "", "", F1),
    (GEMMA, gemma(f"k:{Q}v{Q}") + "<|tool_response>", "", "", F1),
    (GEMMA, gemma(f"k:{Q}v{Q}") + "<turn|>", "", "", F1),
    # A8: another token in place of the closing one.
    (GEMMA, gemma(f"k:{Q}v{Q}", "<|tool_response>"), "", "", F1),
    (GEMMA, gemma(f"k:{Q}v{Q}", "<turn|>"), "", "", F1),
    # A8: values without quotes, and types.
    (GEMMA, gemma("k:Oslo"), "", "", [("f", {"k": "Oslo"})]),
    (GEMMA, gemma("k:New York,n:3"), "", "", [("f", {"k": "New York", "n": 3})]),
    (GEMMA, gemma("k:a.b/c-d:e"), "", "", [("f", {"k": "a.b/c-d:e"})]),
    (GEMMA, gemma("k:42,s:true"), "", "", [("f", {"k": "42", "s": "true"})]),
    (GEMMA, gemma("k:"), "", "", [("f", {"k": ""})]),
    (GEMMA, gemma(f"n:{Q}42{Q},a:{Q}[1]{Q}"), "", "", [("f", {"n": 42, "a": [1]})]),
    (GEMMA, gemma(f"a:[x y,{Q}z{Q},1],z:1.5"), "", "", [("f", {"a": ["x y", "z", 1], "z": 1.5})]),
    (GEMMA, gemma(f"o:{{k:7,{Q}s{Q}:b c}}"), "", "", [("f", {"o": {"k": 7, "s": "b c"}})]),
    # A8: as checkpoints misspell it.
    (GEMMA, f"<|tool_call>:f{{k:{Q}v{Q}}}<tool_call|>", "", "", F1),
    (GEMMA, f"<|tool_call>call:f(k:{Q}v{Q})<tool_call|>", "", "", F1),
    # A10: headings of Granite 3.
    (
        "granite-3.2-8b",
        "Here is my thought process:\nHm.\n\nHere is my response:\n\nYes.",
        "Yes.",
        "Hm.\n",
        [],
    ),
    ("granite-3.3-2b", "Here's my thought process:Hm.Here's my response:Yes.", "Yes.", "Hm.", []),
    ("granite-4.2", f"<think>\nHm.\n</think>\n{FUNCTION}", "", "Hm.", F1),
    # A10: Apriel.
    ("Apriel-1.5-15b", f"<tool_calls>[{JSON_CALL}]</tool_calls>", "", "", F1),
    (
        "Apriel-1.5-15b",
        f"<thinking>Hm.</thinking><tool_calls>[{JSON_CALL}]</tool_calls>",
        "",
        "Hm.",
        F1,
    ),
    (
        "Apriel-1.5-15b",
        "Hm.\n[BEGIN FINAL RESPONSE]\nYes.\n[END FINAL RESPONSE]",
        "Yes.\n",
        "Hm.",
        [],
    ),
    (
        "Apriel-Nemotron-15b",
        "Here are my reasoning steps:\nHm.\n[BEGIN FINAL RESPONSE]\nYes.",
        "Yes.",
        "Hm.",
        [],
    ),
    # A10: Command R+.
    (
        "command-r-plus",
        'Action: ```json\n[\n  {\n    "tool_name": "f",\n    "parameters": {"k": "v"}\n  }\n]```',
        "",
        "",
        F1,
    ),
    (
        "command-r-plus",
        'Plan.\nAction:```json\n[{"tool_name": "f", "parameters": {"k": "v"}}]\n```',
        "Plan.\n",
        "",
        F1,
    ),
    ("command-r", "The <co: 0,1>tall</co: 0,1> one", "The tall one", "", []),
    (
        "command-a-03",
        "<|START_RESPONSE|>The <co>tall</co: 0:[1,2]> one<|END_RESPONSE|>",
        "The tall one",
        "",
        [],
    ),
    # A10: arguments inside arguments.
    (
        "qwen2.5",
        '<tool_call>{"name":"f","arguments":{"arguments":{"k":"v"}}}</tool_call>',
        "",
        "",
        F1,
    ),
    (
        "qwen2.5",
        '<tool_call>{"name":"f","arguments":{ "input" : {"k":"v"} }}</tool_call>',
        "",
        "",
        F1,
    ),
    ("qwen2.5", '<tool_call>{"arguments":{"input":{"k":"v"}},"name":"f"}</tool_call>', "", "", F1),
    (
        "qwen2.5",
        '<tool_call>{"name":"f","arguments":{"input":{"k":"v"},"n":1}}</tool_call>',
        "",
        "",
        [("f", {"input": {"k": "v"}, "n": 1})],
    ),
    (
        "qwen2.5",
        '<tool_call>{"name":"g","arguments":{"input":{"k":"v"}}}</tool_call>',
        "",
        "",
        [("g", {"input": {"k": "v"}})],
    ),
    # A10: quotes inside quotes.
    (
        "LFM2-8B",
        '<|tool_call_start|>[f(k="say "hi" now", n=1)]<|tool_call_end|>',
        "",
        "",
        [("f", {"k": 'say "hi" now', "n": 1})],
    ),
    (
        "LFM2-8B",
        "<|tool_call_start|>[f(k=\"it's 'so'\")]<|tool_call_end|>",
        "",
        "",
        [("f", {"k": "it's 'so'"})],
    ),
    # A10: distilled models write the form of the model they were made of.
    (
        "DeepSeek-R1-Distill-Qwen-32B",
        f"Hm.\n</think>\n\n<tool_call>\n{JSON_CALL}\n</tool_call>",
        "",
        "Hm.",
        F1,
    ),
    ("dots.llm2", f"<dots_function_call>\n{JSON_CALL}\n</dots_function_call>", "", "", F1),
    ("dots.llm2", "<think>\nHm.\n</think>\n\nYes.", "Yes.", "Hm.", []),
    # A4: marks around the answer.
    ("hunyuan-a13b", "<think>\nHm.\n</think>\n<answer>\nYes.\n</answer>", "Yes.", "Hm.", []),
    ("hunyuan-a13b", "<answer>\nYes.\n</answer>", "Yes.", "", []),
    (
        "hunyuan-a13b",
        f"<think>\nHm.\n</think>\n<answer>\n<tool_calls>[{JSON_CALL}]</tool_calls>\n</answer>",
        "",
        "Hm.",
        F1,
    ),
    ("ERNIE-4.5-21B", "Hm.\n</think>\n\n\n<response>\nYes.\n</response>", "Yes.", "Hm.", []),
    ("Hy3-preview", "<think:opensource>Hm.</think:opensource>Yes.", "Yes.", "Hm.", []),
    ("GigaChat3-10B", "Yes.<|message_sep|>", "Yes.", "", []),
    (
        "GigaChat3-10B",
        f"Yes.<|message_sep|>\n\nfunction call<|role_sep|>\n{JSON_CALL}",
        "Yes.",
        "",
        F1,
    ),
    ("GigaChat3-10B", f"Yes.<|function_call|>{JSON_CALL}<|message_sep|>", "Yes.", "", F1),
    (
        "GigaChat3.5-Ultra",
        f"Hm.</think>\n\n{GCML}",
        "",
        "Hm.",
        F1,
    ),
    # A4: character data.
    (
        "MiniCPM5",
        '<function name="f"><param name="k"><![CDATA[a<b]]></param></function>',
        "",
        "",
        [("f", {"k": "a<b"})],
    ),
    (
        "MiniCPM5",
        '<function name="f"><param name="k">\n<![CDATA[a</param>\nb]]>\n</param></function>',
        "",
        "",
        [("f", {"k": "a</param>\nb"})],
    ),
    # A4: rows, as the parsers of their servers read them.
    ("step-3.5-flash", f"Hm.\n</think>\n{FUNCTION}", "", "Hm.", F1),
    ("step-5", f"Hm.\n</think>\n{FUNCTION}", "", "Hm.", F1),
    ("NVIDIA-Nemotron-3-Super", f"Hm.\n</think>\n{FUNCTION}", "", "Hm.", F1),
    ("nemotron-nano-9b-v2", f"<TOOLCALL>[{JSON_CALL}]</TOOLCALL>", "", "", F1),
    ("Spark-2.5", f"Hm.\n</think>\n{PAIRS}", "", "Hm.", F1),
    ("Ling-3.0-flash", f"Hm.\n</think>\n{PAIRS}", "", "Hm.", F1),
    ("reka-flash-3.1", "Hm.\n</reasoning>\nYes.", "Yes.", "Hm.", []),
]
"""(model, text, output text, reasoning, calls)"""


@each_case("model, text, output, reasoning, calls", CASES)
def test_family_is_read_as_its_server_reads_it(
    model: str, text: str, output: str, reasoning: str, calls: list[Call]
) -> None:
    """A4, A8, A10: the same for every split."""
    dialects = dialects_for(model)
    events = filtered([text], dialects)
    check_brackets(events)
    assert outcome(events)[:3] == (output, reasoning, calls)
    for chunks in splits_of(text, count=4):
        assert join_deltas(filtered(chunks, dialects)) == join_deltas(events)


def test_citation_is_an_annotation_of_its_text() -> None:
    """A10: where it stands in its message, and what is cited."""
    text = "The <co: 0,1>tall</co: 0,1> and <co>old</co: 2:[1]> one, <co: x>no</co: x>."
    for chunks in ([text], list(text)):
        response = accumulate(filtered(chunks, ["cohere"]))
        message = response.items[0]
        assert isinstance(message, Message)
        assert response.text == "The tall and old one, <co: x>no</co: x>."
        (part,) = message.content
        assert isinstance(part, Text)
        assert list(part.annotations) == [
            {"type": "citation", "start": 4, "end": 8, "sources": "0,1"},
            {"type": "citation", "start": 13, "end": 16, "sources": "2:[1]"},
        ]


def test_citation_after_a_call_counts_from_its_own_message() -> None:
    """A10."""
    call = '<|START_ACTION|>[{"tool_name":"f","parameters":{}}]<|END_ACTION|>'
    response = accumulate(filtered([f"Hm. {call}The <co: 0>tall</co: 0> one"], ["cohere"]))
    message = response.items[-1]
    assert isinstance(message, Message)
    (part,) = message.content
    assert isinstance(part, Text)
    assert [(note["start"], note["end"]) for note in part.annotations] == [(4, 8)]
