"""The dialects by name: what each family of models writes, as data.

Names are those of vLLM's parsers where it has one. To add a dialect, add an entry;
docs/guides/add-a-dialect.md walks through it.
"""

# ruff: noqa: RUF001  # DeepSeek writes its tokens with a full-width bar
from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from streamlib_parsers.dialects.argument_writer import ValueRules
from streamlib_parsers.dialects.grammars.brace_calls import BraceCalls
from streamlib_parsers.dialects.grammars.channel_calls import ChannelCalls, LeakedChannel
from streamlib_parsers.dialects.grammars.channel_marks import Citations, Marks
from streamlib_parsers.dialects.grammars.element_calls import ElementCalls
from streamlib_parsers.dialects.grammars.json_calls import BareJson, JsonCalls
from streamlib_parsers.dialects.grammars.keyed_calls import KeyedCalls
from streamlib_parsers.dialects.grammars.named_calls import MistralCalls, NamedCalls
from streamlib_parsers.dialects.grammars.open_close_calls import OpenCloseCalls
from streamlib_parsers.dialects.grammars.pair_calls import PairCalls
from streamlib_parsers.dialects.grammars.python_calls import PythonCalls
from streamlib_parsers.dialects.grammars.reasoning_tags import ReasoningTags
from streamlib_parsers.dialects.grammars.tagged_calls import TaggedCalls
from streamlib_parsers.dialects.sink import Dialect, Opener, anywhere

PREFIXES: Final = ("", "antml:")
"""Both spellings of Anthropic's tags."""
DSML: Final = ("｜DSML｜", "｜DSML｜ ", "|DSML|", "｜｜DSML｜｜", "‖DSML‖")
"""DeepSeek's tag prefix, with a space in V4.1, and as it leaks from servers."""

REASONING_TAGS: Final = (
    ("<think>", "</think>"),
    ("<think>", "</thinking>"),
    ("<THINK>", "</THINK>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<REASONING_SCRATCHPAD>", "</REASONING_SCRATCHPAD>"),
    ("<think:opensource>", "</think:opensource>"),
    ("<mm:think>", "</mm:think>"),
    ("<seed:think>", "</seed:think>"),
    ("<ifm|think>", "</ifm|think>"),
    ("<ifm|think_fast>", "</ifm|think_fast>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
)
UNOPENED: Final = (
    "</think>",
    "</thinking>",
    "</think:opensource>",
    "</mm:think>",
    "</reasoning>",
    "</seed:think>",
    "</ifm|think>",
    "◁/think▷",
    "[/THINK]",
    "<|END_THINKING|>",
    "<|close|>think<|sep|>",
)
"""Closing tags that come without their opening tag where the chat template wrote that."""


def ascii_too(*marks: str) -> tuple[str, ...]:
    """DeepSeek's tokens, and the same with their special characters in ASCII, as servers write."""
    ascii_marks = [mark.replace("｜", "|").replace("▁", "_") for mark in marks]
    return (*marks, *ascii_marks)


def tags(prefixes: Iterable[str], name: str) -> tuple[str, ...]:
    """Opening tags up to their attributes."""
    return tuple(f"<{prefix}{name}" for prefix in prefixes)


def ends(prefixes: Iterable[str], name: str) -> tuple[str, ...]:
    """Closing tags."""
    return tuple(f"</{prefix}{name}>" for prefix in prefixes)


def pairs(prefixes: Iterable[str], *names: str) -> tuple[tuple[str, str], ...]:
    """Tags without attributes, opening and closing."""
    return tuple(
        (f"<{prefix}{name}>", f"</{prefix}{name}>") for prefix in prefixes for name in names
    )


def _deepseek(after_name: tuple[str, ...], separator: str = "", fence: str = "") -> NamedCalls:
    """V3 and V3.1 differ in what is between a call's token and its JSON."""
    return NamedCalls(
        sections=ascii_too("<｜tool▁calls▁begin｜>"),
        section_ends=ascii_too("<｜tool▁calls▁end｜>"),
        calls=ascii_too("<｜tool▁call▁begin｜>"),
        ends=ascii_too("<｜tool▁call▁end｜>"),
        after_name=after_name,
        separator=separator,
        fence=fence,
    )


def _invoke(wrappers: tuple[tuple[str, str], ...], prefixes: tuple[str, ...]) -> TaggedCalls:
    """`<invoke name="f"><parameter name="k">v</parameter></invoke>`, of most tagged dialects."""
    return TaggedCalls(
        wrappers,
        tags(prefixes, "invoke"),
        ends(prefixes, "invoke"),
        tags(prefixes, "parameter"),
        ends(prefixes, "parameter"),
    )


def _function(wrapper: str) -> TaggedCalls:
    """`<function=f><parameter=k>v</parameter></function>`."""
    return TaggedCalls(
        pairs(("",), wrapper),
        calls=("<function=",),
        call_ends=("</function>",),
        parameters=("<parameter=",),
        parameter_ends=("</parameter>",),
        equals=True,
        lenient=True,
        rules=ValueRules("leading"),
    )


def _hunyuan(suffix: str) -> PairCalls:
    """Hunyuan 3; the tokens of its open checkpoints have a suffix."""
    return PairCalls(
        f"<tool_call{suffix}>",
        f"</tool_call{suffix}>",
        (f"<arg_key{suffix}>", f"</arg_key{suffix}>"),
        (f"<arg_value{suffix}>", f"</arg_value{suffix}>"),
        wrappers=[(f"<tool_calls{suffix}>", f"</tool_calls{suffix}>")],
        separator=f"<tool_sep{suffix}>",
    )


XAI: Final = TaggedCalls(
    (),
    tags(("xai:",), "function_call"),
    ends(("xai:",), "function_call"),
    tags(("xai:",), "parameter"),
    ends(("xai:",), "parameter"),
    rules=ValueRules(entities="escaped"),
    json_without_schema=True,
)
GLM: Final = PairCalls(
    "<tool_call>", "</tool_call>", ("<arg_key>", "</arg_key>"), ("<arg_value>", "</arg_value>")
)
IQUEST: Final = replace(GLM, begin="<iquest_tool_call>", end="</iquest_tool_call>")
ERNIE_MARKS: Final = ("\n<response>\n", "<response>\n", "<response>", "\n</response>")
MINIMAX_M2: Final = replace(
    _invoke(pairs(("minimax:",), "tool_call"), ("",)), bare=False, rules=ValueRules("paired")
)
MINIMAX_M3: Final = ElementCalls("]<]minimax[>[")
KIMI_K2: Final = NamedCalls(
    sections=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    section_ends=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    calls=("<|tool_call_begin|>",),
    after_name=("<|tool_call_argument_begin|>",),
    ends=("<|tool_call_end|>",),
    numbered=True,
)
HERMES: Final = JsonCalls(anywhere("<tool_call>"), ("</tool_call>",))
ANTHROPIC: Final = replace(
    _invoke(pairs(PREFIXES, "function_calls"), PREFIXES),
    stray=("count", "court", "call"),
    rules=ValueRules("paired"),
)
LLAMA_FUNCTION: Final = TaggedCalls(
    (), ("<function=",), ("</function>",), ("<parameter=",), ("</parameter>",), equals=True
)
"""Llama 3.1 where the prompt defines tools of its own: `<function=f>{"k": "v"}</function>`."""
STEP3: Final = TaggedCalls(
    (
        ("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
        ("<|tool_calls_begin|>", "<|tool_calls_end|>"),
    ),
    tags(("steptml:",), "invoke"),
    ends(("steptml:",), "invoke"),
    tags(("steptml:",), "parameter"),
    ends(("steptml:",), "parameter"),
    between=(
        "<｜tool_call_begin｜>function<｜tool_sep｜>",
        "<｜tool_call_end｜>",
        "<|tool_call_begin|>function<|tool_sep|>",
        "<|tool_call_end|>",
    ),
)
MINICPM5: Final = TaggedCalls(
    (),
    ("<function ",),
    ("</function>",),
    ("<param ",),
    ("</param>",),
    rules=ValueRules(character_data=True),
)
DOTS: Final = replace(
    _invoke(pairs(("",), "dots_function_call"), ("",)), bare=False, rules=ValueRules("paired")
)
GCML: Final = replace(_invoke(pairs(("｜GCML｜",), "tool_calls"), ("｜GCML｜",)), private=True)
"""GigaChat 3.5 writes DeepSeek's form with its own name."""
K3_MARKS: Final = (
    "<|open|>response<|sep|>",
    "<|close|>response<|sep|>",
    "<|open|>message<|sep|>",
    "<|close|>message<|sep|>",
)
GEMMA_MARKS: Final = (
    "<|channel>thought<channel|>",
    "<channel|>",
    "<|tool_response>",
    "<turn|>",
)
"""Empty reasoning, a closing token that comes twice, and the beginning of what follows."""
GEMMA_REASONING: Final = ReasoningTags(
    (("<|channel>thought\n", "<channel|>"), ("<|channel>", "<channel|>")),
    ("<channel|>",),
    where="anywhere",
)
GRANITE_REASONING: Final = ReasoningTags(
    (
        ("Here is my thought process:", "Here is my response:"),
        ("Here is my thought process:", "Here's my response:"),
        ("Here's my thought process:", "Here is my response:"),
        ("Here's my thought process:", "Here's my response:"),
    ),
    where="start",
)
APRIEL_MARKS: Final = ("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]")
APRIEL_REASONING: Final = ReasoningTags(
    (("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),),
    ("[BEGIN FINAL RESPONSE]",),
    where="start",
)
"""Since 1.5 the chat template writes the heading."""
HUNYUAN_MARKS: Final = ("<answer>\n", "<answer>", "\n</answer>")
GIGACHAT_MARKS: Final = ("<|message_sep|>\n\n", "<|message_sep|>")
ACTION: Final = JsonCalls(
    (Opener("Action: ```json", "line"), Opener("Action:```json", "line")), ("```",)
)
"""Command R and R+."""
COHERE_MARKS: Final = (
    "<|START_TEXT|>",
    "<|END_TEXT|>",
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
)

_ALL: Final = (
    # Calls in Grok's reasoning count only where the wire reports that it stopped for calls.
    Dialect(
        "xai",
        [replace(XAI, rules=ValueRules(entities="escaped"), json_without_schema=True)],
        in_thoughts=False,
    ),
    Dialect("anthropic", [ANTHROPIC]),
    Dialect("hermes", [HERMES]),
    Dialect("qwen3_coder", [_function("tool_call")]),
    Dialect("seed_oss", [_function("seed:tool_call")]),
    Dialect("mimo", [replace(_function("tool_call"), rules=ValueRules(entities="always"))]),
    # Later GLM models write no line breaks, which the grammar does not need.
    Dialect("glm45", [GLM]),
    Dialect("glm47", [GLM]),
    Dialect("hy_v3", [_hunyuan(""), _hunyuan(":opensource")]),
    Dialect("iquest_q1", [IQUEST]),
    Dialect("ernie45", [HERMES, Marks(ERNIE_MARKS)]),
    Dialect("kimi_k2", [KIMI_K2]),
    Dialect("kimi_k3", [OpenCloseCalls(), Marks(K3_MARKS)]),
    Dialect(
        "deepseek_v3",
        [_deepseek(("\n```json\n", "\n```json", "\n```\n"), separator=">", fence="```")],
    ),
    Dialect("deepseek_v31", [_deepseek(ascii_too("<｜tool▁sep｜>"))]),
    Dialect(
        "deepseek_v32",
        [
            replace(
                _invoke(pairs(DSML, "function_calls", "tool_calls", "calls"), DSML), private=True
            )
        ],
    ),
    # Both syntaxes for both models, the own one first.
    Dialect("minimax_m2", [MINIMAX_M2, MINIMAX_M3]),
    Dialect("minimax_m3", [MINIMAX_M3, MINIMAX_M2]),
    Dialect(
        "llama3_json",
        [JsonCalls(anywhere("<|python_tag|>"), between=(";",)), BareJson(), LLAMA_FUNCTION],
    ),
    Dialect(
        "pythonic",
        [
            # A bare list, then the tags of Llama 4, LFM2 and Olmo 3.
            PythonCalls((Opener("[", "start"),)),
            PythonCalls(anywhere("<|python_start|>"), ("<|python_end|>",)),
            PythonCalls(anywhere("<|tool_call_start|>"), ("<|tool_call_end|>",)),
            PythonCalls(anywhere("<function_calls>"), ("</function_calls>",)),
        ],
    ),
    Dialect("mistral", [MistralCalls(), JsonCalls(anywhere("[TOOL_CALLS]"))]),
    # JSON in a list, of the older Nemotrons.
    Dialect("nemotron", [JsonCalls(anywhere("<TOOLCALL>"), ("</TOOLCALL>",))]),
    Dialect("harmony", [ChannelCalls(), LeakedChannel()]),
    Dialect(
        "granite",
        [
            JsonCalls(anywhere("<|tool_call|>")),
            HERMES,
            JsonCalls(anywhere("<function_call>"), ("</function_call>",)),
            GRANITE_REASONING,
        ],
    ),
    Dialect("phi4_mini_json", [JsonCalls((Opener("functools", "line"),), first="[")]),
    Dialect("internlm", [JsonCalls(anywhere("<|action_start|><|plugin|>"), ("<|action_end|>",))]),
    Dialect(
        "hunyuan_a13b",
        [JsonCalls(anywhere("<tool_calls>"), ("</tool_calls>",)), Marks(HUNYUAN_MARKS)],
    ),
    Dialect("jamba", [JsonCalls(anywhere("<tool_calls>"), ("</tool_calls>",))]),
    Dialect(
        "apriel",
        [
            JsonCalls(anywhere("<tool_calls>"), ("</tool_calls>",)),
            APRIEL_REASONING,
            Marks(APRIEL_MARKS),
        ],
    ),
    Dialect("longcat", [JsonCalls(anywhere("<longcat_tool_call>"), ("</longcat_tool_call>",))]),
    Dialect(
        "cohere",
        [
            JsonCalls(anywhere("<|START_ACTION|>"), ("<|END_ACTION|>",)),
            ACTION,
            Marks(COHERE_MARKS),
            Citations(),
        ],
    ),
    Dialect(
        "dots",
        [DOTS, JsonCalls(anywhere("<dots_function_call>"), ("</dots_function_call>",))],
    ),
    Dialect("step3", [STEP3]),
    Dialect("minicpm5", [MINICPM5]),
    Dialect(
        "gigachat3",
        [
            JsonCalls(anywhere("<|function_call|>", "function call<|role_sep|>")),
            Marks(GIGACHAT_MARKS),
        ],
    ),
    Dialect("gigachat35", [GCML, Marks(GIGACHAT_MARKS)]),
    Dialect("apertus", [KeyedCalls(anywhere("<|tools_prefix|>"), ("<|tools_suffix|>",))]),
    Dialect(
        "gemma4",
        [
            BraceCalls(
                anywhere("<|tool_call>"), ("<tool_call|>",), quote='<|"|>', turn_ends=GEMMA_MARKS
            ),
            GEMMA_REASONING,
            Marks(GEMMA_MARKS),
        ],
    ),
    Dialect(
        "functiongemma",
        [BraceCalls(anywhere("<start_function_call>"), ("<end_function_call>",), quote="<escape>")],
    ),
    Dialect("think", [ReasoningTags(REASONING_TAGS, UNOPENED)]),
    Dialect("think:start", [ReasoningTags(REASONING_TAGS, where="start")]),
    Dialect("think:open", [ReasoningTags(REASONING_TAGS, UNOPENED)], opens_inside=True),
)

DIALECTS: Final[dict[str, Dialect]] = {dialect.name: dialect for dialect in _ALL}
"""Every dialect by its name."""


def resolve_dialects(dialects: Sequence[str | Dialect]) -> tuple[Dialect, ...]:
    """The dialects by name or as given, in order.

    Raises:
        ValueError: no dialect has this name; the message names similar ones.
    """
    return tuple(
        dialect if isinstance(dialect, Dialect) else _by_name(dialect) for dialect in dialects
    )


def _by_name(name: str) -> Dialect:
    if name in DIALECTS:
        return DIALECTS[name]
    similar = difflib.get_close_matches(name, DIALECTS, n=3, cutoff=0.4)
    if similar:
        hint = f"did you mean {' or '.join(similar)}?"
    else:
        hint = f"one of {', '.join(sorted(DIALECTS))}"
    raise ValueError(f"unknown dialect {name!r}: {hint}")
