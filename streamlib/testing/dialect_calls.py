"""A call of `f` with the argument `k` in each dialect: seeds for the fuzzer."""

# ruff: noqa: RUF001  # DeepSeek writes its tokens with a full-width bar
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_JSON: Final = '{"name": "f", "arguments": {"k": "v", "n": 1}}'
_VALUE: Final = '{"k": "v", "n": 1}'
_FUNCTION: Final = "<function=f>\n<parameter=k>\nv\n</parameter>\n</function>"
_INVOKE: Final = '<invoke name="f">\n<parameter name="k">v</parameter>\n</invoke>'
_PAIRS: Final = "<arg_key>k</arg_key><arg_value>v</arg_value>"
_DSML: Final = "｜DSML｜"
_M3: Final = "]<]minimax[>["

CALLS: Final[Mapping[str, str]] = {
    "xai": (
        '<xai:function_call name="f"><xai:parameter name="k">v</xai:parameter></xai:function_call>'
    ),
    "anthropic": f"<function_calls>\n{_INVOKE}\n</function_calls>",
    "nemotron": f"<TOOLCALL>[{_JSON}]</TOOLCALL>",
    "hermes": f"<tool_call>\n{_JSON}\n</tool_call>",
    "qwen3_coder": f"<tool_call>\n{_FUNCTION}\n</tool_call>",
    "seed_oss": f"<seed:tool_call>\n{_FUNCTION}\n</seed:tool_call>",
    "mimo": "<tool_call><function=f><parameter=k>a &lt;b&gt;</parameter></function></tool_call>",
    "glm45": f"<tool_call>f\n{_PAIRS}\n</tool_call>",
    "glm47": f"<tool_call>f{_PAIRS}</tool_call>",
    "hy_v3": (
        "<tool_calls><tool_call>f<tool_sep><arg_key>k</arg_key><arg_value>v</arg_value>"
        "</tool_call></tool_calls>"
    ),
    "iquest_q1": f"<iquest_tool_call>f{_PAIRS}</iquest_tool_call>",
    "ernie45": f"<tool_call>\n{_JSON}\n</tool_call>",
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        f"{_VALUE}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "kimi_k3": (
        '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>'
        '<|open|>argument key="k" type="string"<|sep|>a<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>"
    ),
    "deepseek_v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
        f"{_VALUE}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "deepseek_v31": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"
        f"{_VALUE}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "deepseek_v32": (
        f'<{_DSML}function_calls><{_DSML}invoke name="f">'
        f'<{_DSML}parameter name="k" string="true">1</{_DSML}parameter>'
        f"</{_DSML}invoke></{_DSML}function_calls>"
    ),
    "minimax_m2": f"<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>",
    "minimax_m3": (
        f'{_M3}<tool_call>{_M3}<invoke name="f">{_M3}<n>1{_M3}</n>{_M3}</invoke>{_M3}</tool_call>'
    ),
    "llama3_json": '<|python_tag|>{"name": "f", "parameters": {"k": "v"}}',
    "pythonic": '<|python_start|>[f(k="v", n=-1, a=[1, "2"]), g()]<|python_end|>',
    "mistral": f"[TOOL_CALLS] [{_JSON}]",
    "harmony": f"<|channel|>commentary to=functions.f <|constrain|>json<|message|>{_VALUE}<|call|>",
    "granite": f"<|tool_call|>[{_JSON}]",
    "phi4_mini_json": f"functools[{_JSON}]",
    "internlm": '<|action_start|><|plugin|>{"name": "f", "parameters": {"k": "v"}}<|action_end|>',
    "hunyuan_a13b": f"<tool_calls>[{_JSON}]</tool_calls>",
    "jamba": f"<tool_calls>[{_JSON}]</tool_calls>",
    "apriel": f"<tool_calls>[{_JSON}]</tool_calls>",
    "longcat": f"<longcat_tool_call>{_JSON}</longcat_tool_call>",
    "cohere": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"k": "v"}}]'
        "<|END_ACTION|>"
    ),
    "apertus": '<|tools_prefix|>[{"f": {"k": "v"}}, {"g": {}}]<|tools_suffix|>',
    "dots": f"<dots_function_call>\n{_INVOKE}\n</dots_function_call>",
    "gemma4": '<|tool_call>call:f{k:<|"|>v<|"|>,n:-1}<tool_call|>',
    "functiongemma": "<start_function_call>call:f{k:<escape>v<escape>}<end_function_call>",
    "step3": (
        "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
        '<steptml:invoke name="f"><steptml:parameter name="k">v</steptml:parameter>'
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>"
    ),
    "minicpm5": '<function name="f"><param name="k">v</param></function>',
    "gigachat35": (
        '<｜GCML｜tool_calls><｜GCML｜invoke name="f"><｜GCML｜parameter name="k" string="true">v'
        "</｜GCML｜parameter></｜GCML｜invoke></｜GCML｜tool_calls>"
    ),
    "gigachat3": f"<|function_call|>{_JSON}",
    "think": "<think>Hm.</think>",
    "think:start": "<think>Hm.</think>",
    "think:open": "Hm.</think>",
}
"""Dialect -> a call; for the dialects of reasoning tags, a reasoning text."""
