"""Which dialects there are, which model gets which, and the documents that say so."""

from __future__ import annotations

import pytest

from streamlib.providers import shipped
from streamlib_parsers import accumulate, parser
from streamlib_parsers.dialects import DIALECTS, DIALECTS_BY_MODEL, Dialect, Opener, dialects_for
from streamlib_parsers.dialects.by_model import stands_in
from streamlib_parsers.dialects.grammars.json_calls import JsonCalls
from tests.support.cases import each_case
from tests.support.dialect_calls import (
    TOOLS,
)
from tests.support.dialect_streams import calls_of, chat
from tests.support.shared import ROOT

HERMES = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
F = [("f", {"k": "v"})]

# --- choosing ---


def test_unknown_dialect_error_names_similar_ones() -> None:
    with pytest.raises(ValueError, match="'herms': did you mean hermes"):
        parser("chat", dialects=["herms"])
    with pytest.raises(ValueError, match="unknown dialect 'zzzzzzzz': one of anthropic, "):
        parser("chat", dialects=["zzzzzzzz"])
    with pytest.raises(ValueError, match=r"'deepseek': did you mean (\w+ or ){2}\w+\?$"):
        parser("chat", dialects=["deepseek"])


def test_custom_dialect_works_beside_the_shipped_ones() -> None:
    mine = Dialect("mine", [JsonCalls([Opener("@call ")])])
    events = chat(
        [{"content": f'a @call {{"name": "g"}} {HERMES}'}], tools=TOOLS, dialects=[mine, "hermes"]
    )
    assert calls_of(accumulate(events)) == [("g", {}), *F]


ROWS = [
    ("stepfun-ai/Step-3.5-Flash", ("qwen3_coder", "step3", "think:open")),
    ("nvidia/Llama-3.1-Nemotron-Nano-8B", ("nemotron", "qwen3_coder", "hermes", "think")),
    ("stepfun-ai/Step-5", ("qwen3_coder", "think:open")),
    ("spark-2.5", ("glm47", "think")),
    ("inclusionAI/Ling-3-flash", ("glm47", "think")),
    ("inclusionAI/Ling-1T", ("hermes", "glm47", "think")),
    ("ServiceNow-AI/Apriel-Nemotron-15b", ("apriel", "think")),
    ("RekaAI/reka-flash-3", ("hermes", "qwen3_coder", "think")),
    ("x-ai/grok-code-fast-1", ("xai", "hermes")),
    ("claude-opus-5", ("anthropic",)),
    ("Qwen/Qwen3-Coder-480B-A35B", ("qwen3_coder", "hermes", "think")),
    ("qwen3-next-coder", ("qwen3_coder", "hermes", "think")),
    ("Qwen3.5-397B", ("qwen3_coder", "hermes", "think")),
    ("qwen-3.6-plus", ("qwen3_coder", "hermes", "think")),
    ("qwen3-235b-a22b-thinking-2507", ("hermes", "qwen3_coder", "think:open")),
    ("QwQ-32B", ("hermes", "qwen3_coder", "think:open")),
    ("Qwen/Qwen3-32B", ("hermes", "qwen3_coder", "think")),
    ("Hermes-4-Llama-3.1-405B", ("hermes", "qwen3_coder", "think")),
    ("nous-capybara", ("hermes", "qwen3_coder", "think")),
    ("tulu-3", ("hermes", "qwen3_coder", "think")),
    ("SmolLM3-3B", ("hermes", "qwen3_coder", "think")),
    ("zai-org/GLM-4.5-Air", ("glm45", "glm47", "think")),
    ("glm-4.6", ("glm45", "glm47", "think")),
    ("glm-4.7", ("glm47", "glm45", "think")),
    ("glm-5", ("glm47", "glm45", "think")),
    ("moonshotai/Kimi-K2-Instruct", ("kimi_k2", "hermes", "think")),
    ("kimi-k2.6", ("kimi_k2", "hermes", "think")),
    ("kimi-k2-thinking", ("kimi_k2", "hermes", "think:open")),
    ("kimi-k3", ("kimi_k3", "kimi_k2", "think:open")),
    ("deepseek-r1-0528", ("deepseek_v3", "deepseek_v31", "hermes", "think:open")),
    ("deepseek-v3-0324", ("deepseek_v3", "deepseek_v31", "think")),
    ("deepseek-v3.1", ("deepseek_v31", "deepseek_v3", "think")),
    ("deepseek/deepseek-chat-v3.1", ("deepseek_v31", "deepseek_v3", "think")),
    ("DeepSeek-V3.2-Exp", ("deepseek_v32", "deepseek_v31", "think")),
    ("deepseek-v4.1", ("deepseek_v32", "deepseek_v31", "think")),
    ("MiniMax-M2.5", ("minimax_m2", "think:open")),
    ("MiniMax-M3", ("minimax_m3", "minimax_m2", "think")),
    ("XiaomiMiMo/MiMo-V2", ("mimo", "qwen3_coder", "think")),
    ("ByteDance/Seed-OSS-36B", ("seed_oss", "qwen3_coder", "think")),
    ("meta-llama/Llama-4-Scout", ("llama3_json", "pythonic")),
    ("mistral-large", ("mistral", "think")),
    ("mistralai/Mixtral-8x7B", ("mistral", "think")),
    ("Devstral-2", ("mistral", "think")),
    ("Magistral-Small", ("mistral", "think")),
    ("codestral-2", ("mistral", "think")),
    ("Ministral-8B", ("mistral", "think")),
    ("openai/gpt-oss-120b", ("harmony",)),
    ("gpt-5.5", ("harmony",)),
    ("functiongemma-270m", ("functiongemma",)),
    ("gemma-4-27b", ("gemma4", "think")),
    ("granite-4", ("granite", "qwen3_coder", "think")),
    ("phi-4-mini", ("phi4_mini_json",)),
    ("internlm3", ("internlm", "think")),
    ("hunyuan-a13b", ("hunyuan_a13b", "hy_v3", "think")),
    ("tencent/Hy3-preview", ("hy_v3", "think")),
    ("tencent/Hy4", ("hy_v3", "think")),
    ("IQuest-Q1", ("iquest_q1", "think:open")),
    ("ERNIE-4.5-21B-A3B-Thinking", ("ernie45", "think")),
    ("jamba-1.6", ("jamba",)),
    ("longcat-flash", ("longcat", "think")),
    ("step-3", ("step3", "think:open")),
    ("stepfun-ai/Step3", ("step3", "think:open")),
    ("step-2-16k", ("step3", "think")),
    ("dots.llm2", ("dots", "think")),
    ("MiniCPM5-8B", ("minicpm5", "hermes", "think")),
    ("ai-sage/GigaChat3.5-Ultra", ("gigachat35", "gigachat3", "think:open")),
    ("ai-sage/GigaChat3-10B", ("gigachat3", "think")),
    ("swiss-ai/Apertus-70B", ("apertus", "think")),
    ("LFM2-8B", ("pythonic", "think")),
    ("olmo-3", ("pythonic", "think")),
    ("command-r-plus", ("cohere", "think")),
    ("command-a-reasoning-08-2025", ("cohere", "think:open")),
    ("command-a", ("cohere", "think")),
    ("cohere/other", ("cohere", "think")),
    (
        "something-else",
        (
            "hermes",
            "qwen3_coder",
            "glm45",
            "kimi_k2",
            "deepseek_v31",
            "deepseek_v32",
            "minimax_m2",
            "think:start",
        ),
    ),
]


@each_case("model, dialects", ROWS)
def test_model_gets_the_dialects_of_its_row(model: str, dialects: tuple[str, ...]) -> None:
    assert dialects_for(model) == dialects_for(model, parses_calls=False) == dialects


@each_case(
    "model", ["stepwise-7b", "my-footstep", "commander-1", "bandcamp/cohereless", "seedream"]
)
def test_name_inside_a_word_is_no_name(model: str) -> None:
    assert dialects_for(model) == dialects_for("something-else")


def test_wire_that_types_reasoning_has_no_tags_of_it() -> None:
    for model, dialects in ROWS:
        expected = tuple([name for name in dialects if not name.startswith("think")])
        assert dialects_for(model, types_reasoning=True) == expected
    own = [("step", ("think:open",))]
    assert dialects_for("step-3", types_reasoning=True, overrides=own) == ("think:open",)


def test_every_row_of_the_table_is_tested() -> None:
    reached = {
        next(part for part, _ in DIALECTS_BY_MODEL if stands_in(part, model.lower()))
        for model, _ in ROWS
    }
    assert reached == {part for part, _ in DIALECTS_BY_MODEL}
    assert {name for _, names in DIALECTS_BY_MODEL for name in names} <= set(DIALECTS)


PARSES_CALLS = {
    "anthropic",
    "azure",
    "bedrock",
    "cerebras",
    "cohere",
    "copilot",
    "deepseek",
    "github",
    "google",
    "groq",
    "kimi-coding",
    "loopback",
    "minimax",
    "minimax-cn",
    "mistral",
    "moonshot",
    "moonshot-cn",
    "openai",
    "openai-codex",
    "perplexity",
    "qwen",
    "qwen-portal",
    "stepfun",
    "vertex",
    "vertex-anthropic",
    "xiaomi",
    "zai",
}


@each_case("name", sorted(PARSES_CALLS))
def test_provider_that_parses_calls_gets_no_dialects(name: str) -> None:
    assert dialects_for("qwen3-32b", parses_calls=shipped()[name].parses_calls) == ()


def test_other_providers_do_not_parse_calls() -> None:
    parsing = {provider.name for provider in shipped().values() if provider.parses_calls}
    assert parsing == PARSES_CALLS


def test_overriding_rows_win() -> None:
    rows = [("Qwen", ("xai",)), ("gpt", ())]
    assert dialects_for("qwen3-32b", parses_calls=True, overrides=rows) == ("xai",)
    assert dialects_for("gpt-oss", overrides=rows) == ()
    assert dialects_for("kimi-k2", overrides=rows) == ("kimi_k2", "hermes", "think")


# --- the documents ---


def test_every_dialect_is_documented() -> None:
    text = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
    assert [name for name in DIALECTS if f"`{name}`" not in text] == []


def test_documented_table_equals_the_code() -> None:
    text = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
    rows: list[str] = []
    for substring, names in DIALECTS_BY_MODEL:
        model = f"`{substring}`" if substring else "every other"
        rows.append(f"| {model} | {' '.join(f'`{name}`' for name in names)} |")
    assert "\n".join(rows) in text


def test_dialect_names_equal_those_of_the_contract() -> None:
    promised = (
        "xai anthropic hermes qwen3_coder seed_oss glm45 glm47 kimi_k2 kimi_k3 deepseek_v3 "
        "deepseek_v31 deepseek_v32 minimax_m2"
    )
    assert {*promised.split(), "llama3_json", "pythonic", "mistral", "harmony", "think"} <= set(
        DIALECTS
    )
