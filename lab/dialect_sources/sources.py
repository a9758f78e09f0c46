"""Where the form of each dialect and each row of the model table was read, and when.

`python -m lab.dialect_sources` compares the parsers named here with those that the newest vLLM
and SGLang register.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

VLLM: Final = "vLLM 0.33.0"
SGLANG: Final = "SGLang 0.5.23"
READ: Final = "2026-11-22"
"""When those two were read."""
EARLIER: Final = "2026-11-21"
"""When threads were read, through excerpts."""


class DialectSource(Struct, frozen=True):
    """Where something was read.

    Args:
        title: a server with its version, or what else shows the form.
        date: when it was read, as year-month-day.
        parsers: names of the server's parsers of calls.
        reasoning: names of the server's parsers of reasoning.
    """

    title: str
    date: str
    parsers: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()


Sources: TypeAlias = tuple[DialectSource, ...]


def _vllm(*parsers: str, reasoning: tuple[str, ...] = ()) -> DialectSource:
    return DialectSource(VLLM, READ, parsers, reasoning)


def _sglang(*parsers: str, reasoning: tuple[str, ...] = ()) -> DialectSource:
    return DialectSource(SGLANG, READ, parsers, reasoning)


_THINK: Final = (
    _vllm(
        reasoning=(
            "deepseek_r1",
            "deepseek_v3",
            "deepseek_v4",
            "deepseek_v41",
            "glm45",
            "glm47",
            "granite_thinking_parser",
            "holo2",
            "hunyuan_a13b",
            "kimi_k2",
            "kimi_k3",
            "ling3",
            "mimo",
            "minicpmv",
            "minimax_m2",
            "minimax_m2_append_think",
            "minimax_m3",
            "mistral",
            "nemotron_v3",
            "olmo3",
            "poolside_v1",
            "qwen3",
            "seed_oss",
            "step3",
            "step3p5",
            "step5",
            "cohere_command3",
            "cohere_command4",
        )
    ),
    _sglang(
        reasoning=(
            "apertus2509",
            "deepseek-r1",
            "deepseek-v3",
            "deepseek-v4",
            "deepseek-v41",
            "dots",
            "glm45",
            "ling3",
            "hunyuan",
            "kimi",
            "kimi_k2",
            "kimi_k3",
            "mimo",
            "poolside_v1",
            "qwen3",
            "qwen3-thinking",
            "minimax",
            "minimax-append-think",
            "minimax-m3",
            "nanbeige",
            "step3",
            "step3p5",
            "mistral",
            "nemotron_3",
            "granite_thinking_parser",
            "interns1",
            "cohere_command4",
            "gigachat35",
        )
    ),
)

DIALECT_SOURCES: Final[dict[str, Sources]] = {
    "xai": (DialectSource("threads of OpenCode about Grok: 2288, 2291, 37841", EARLIER),),
    "anthropic": (
        DialectSource("Anthropic's legacy tool use prompt", EARLIER),
        DialectSource("threads of Claude Code: 77061, 71952, 69529, 74518", EARLIER),
    ),
    "hermes": (
        _vllm("hermes", "qwen3_json", "granite4"),
        _sglang("hermes", "qwen", "qwen25", "trinity"),
    ),
    "qwen3_coder": (
        _vllm("qwen3_coder", "qwen3_xml", "step3p5", "step5"),
        _sglang("qwen3_coder", "step3p5", "nanbeige"),
    ),
    "seed_oss": (_vllm("seed_oss"),),
    "mimo": (_vllm("mimo"), _sglang("mimo")),
    "glm45": (_vllm("glm45"), _sglang("glm", "glm45")),
    "glm47": (
        _vllm("glm47", "ling3", "poolside_v1"),
        _sglang("glm47", "ling3", "spark25", "poolside_v1"),
    ),
    "kimi_k2": (_vllm("kimi_k2"), _sglang("kimi_k2")),
    "kimi_k3": (_vllm("kimi_k3"), _sglang("kimi_k3")),
    "deepseek_v3": (_vllm("deepseek_v3"), _sglang("deepseekv3")),
    "deepseek_v31": (_vllm("deepseek_v31"), _sglang("deepseekv31")),
    "deepseek_v32": (
        _vllm("deepseek_v32", "deepseek_v4", "deepseek_v41"),
        _sglang("deepseekv32", "deepseekv4", "deepseekv41"),
    ),
    "minimax_m2": (_vllm("minimax_m2"), _sglang("minimax-m2")),
    "minimax_m3": (_vllm("minimax_m3"), _sglang("minimax-m3")),
    "llama3_json": (
        _vllm("llama3_json", "llama4_json"),
        _sglang("llama3"),
        DialectSource("Meta's prompt format of Llama 3.1: custom tools", READ),
    ),
    "pythonic": (
        _vllm("pythonic", "llama4_pythonic", "olmo3", "lfm2"),
        _sglang("pythonic", "lfm2"),
    ),
    "mistral": (_vllm("mistral"), _sglang("mistral")),
    "nemotron": (DialectSource("tests of NVIDIA's Dynamo: nemotron_deci", READ),),
    "harmony": (
        _vllm("openai", reasoning=("openai_gptoss",)),
        _sglang("gpt-oss", reasoning=("gpt-oss",)),
    ),
    "granite": (_vllm("granite", "granite-20b-fc", reasoning=("granite",)),),
    "phi4_mini_json": (_vllm("phi4_mini_json"),),
    "internlm": (_vllm("internlm"), _sglang("interns1")),
    "hunyuan_a13b": (_vllm("hunyuan_a13b"),),
    "jamba": (_vllm("jamba"),),
    "hy_v3": (
        _vllm("hy_v3", "hy_v4", reasoning=("hy_v3", "hy_v4")),
        _sglang("hunyuan"),
    ),
    "iquest_q1": (_sglang("iquest_q1", reasoning=("iquest_q1",)),),
    "ernie45": (_vllm("ernie45", reasoning=("ernie45",)),),
    "apriel": (DialectSource("llama.cpp, its parser of Apriel 1.5", READ),),
    "longcat": (_vllm("longcat"),),
    "cohere": (
        _vllm("cohere_command3", "cohere_command4"),
        _sglang("cohere_command4"),
        DialectSource("the prompt of Command R+, in public repositories", READ),
    ),
    "dots": (_vllm("dots"), _sglang("dots")),
    "step3": (_vllm("step3"), _sglang("step3")),
    "minicpm5": (_vllm("minicpm5"), _sglang("minicpm5")),
    "gigachat3": (_vllm("gigachat3"), _sglang("gigachat3")),
    "gigachat35": (_sglang("gigachat35"),),
    "apertus": (_vllm("apertus"), _sglang("apertus2509")),
    "gemma4": (
        _vllm("gemma4", reasoning=("gemma4",)),
        _sglang("gemma4", reasoning=("gemma4",)),
    ),
    "functiongemma": (_vllm("functiongemma"),),
    "think": _THINK,
    "think:start": _THINK,
    "think:open": _THINK,
}
"""By the name of a dialect."""

_GUIDE: Final = DialectSource(f"{VLLM}, its guide to tool calling", READ)
_THREADS: Final = DialectSource("threads about the model in agents' repositories", EARLIER)
_VLLM_PARSER: Final = DialectSource(f"{VLLM}, the parser named like the model", READ)
_SGLANG_PARSER: Final = DialectSource(f"{SGLANG}, the parser named like the model", READ)
_FAMILY: Final = DialectSource("not read: the form of the models it was made of", READ)

MODEL_SOURCES: Final[dict[str, DialectSource]] = {
    "grok": _THREADS,
    "claude": _THREADS,
    "qwen3-coder": _GUIDE,
    "qwen3-next-coder": _FAMILY,
    "qwen3.": _VLLM_PARSER,
    "qwen-3.": _VLLM_PARSER,
    "thinking-2507": _SGLANG_PARSER,
    "qwq": _GUIDE,
    "minimax-m3": _VLLM_PARSER,
    "minimax-m2": _VLLM_PARSER,
    "gpt-oss": _GUIDE,
    "glm-4.5": _GUIDE,
    "glm-4.6": _GUIDE,
    "glm-": _GUIDE,
    "kimi-k3": _VLLM_PARSER,
    "kimi-k2-thinking": _VLLM_PARSER,
    "kimi": _GUIDE,
    "deepseek-r1": _GUIDE,
    "deepseek-v3.1": _GUIDE,
    "deepseek-chat-v3.1": _GUIDE,
    "deepseek-v3.2": _VLLM_PARSER,
    "deepseek-v4": _VLLM_PARSER,
    "deepseek": _GUIDE,
    "mimo": _GUIDE,
    "seed": _VLLM_PARSER,
    "qwen": _GUIDE,
    "hermes": _GUIDE,
    "nous": _GUIDE,
    "tulu": _FAMILY,
    "smollm": _FAMILY,
    "apriel": DialectSource("llama.cpp, its parser of Apriel 1.5", READ),
    "nemotron": _VLLM_PARSER,
    "llama": _GUIDE,
    "mistral": _GUIDE,
    "mixtral": _FAMILY,
    "devstral": _GUIDE,
    "magistral": _VLLM_PARSER,
    "codestral": _GUIDE,
    "ministral": _GUIDE,
    "gpt-": _THREADS,
    "functiongemma": _GUIDE,
    "gemma": _VLLM_PARSER,
    "granite": _GUIDE,
    "phi-4": _VLLM_PARSER,
    "internlm": _GUIDE,
    "hunyuan": _GUIDE,
    "hy3": _VLLM_PARSER,
    "hy4": _VLLM_PARSER,
    "iquest": _SGLANG_PARSER,
    "ernie": _VLLM_PARSER,
    "jamba": _GUIDE,
    "longcat": _GUIDE,
    "step-3.": _GUIDE,
    "step-5": _VLLM_PARSER,
    "step-3": _VLLM_PARSER,
    "step3": _VLLM_PARSER,
    "step": _VLLM_PARSER,
    "dots": _VLLM_PARSER,
    "minicpm": _VLLM_PARSER,
    "gigachat3.5": _SGLANG_PARSER,
    "gigachat": _GUIDE,
    "apertus": _GUIDE,
    "lfm": _VLLM_PARSER,
    "olmo": _GUIDE,
    "command-a-reasoning": _GUIDE,
    "command": DialectSource("the prompt of Command R+, in public repositories", READ),
    "cohere": _GUIDE,
    "spark": _SGLANG_PARSER,
    "ling-3": _VLLM_PARSER,
    "ling-": _FAMILY,
    "reka": DialectSource("its description, of its reasoning; its calls: not read", READ),
    "": DialectSource("the forms of the most used models", READ),
}
"""By the name of a row of `DIALECTS_BY_MODEL`."""
