"""Requests to every provider in tests: one conversation, with and without thinking and tools.

The snapshots of these requests are readable files. `python -m lab.provider_pages` writes them and
the tables of docs/providers.md; the tests only compare.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from streamlib import (
    FunctionCall,
    FunctionCallOutput,
    Origin,
    Prompt,
    Reasoning,
    Request,
    ResponseItem,
    ToolSpec,
    build,
    user,
)
from streamlib.providers import Provider, shipped
from tests.support.shared import ROOT

SNAPSHOTS: Final = ROOT / "tests" / "streamlib" / "snapshots" / "providers"

WIDTH: Final = 140

MODELS: Final[dict[str, str]] = {
    "anthropic": "claude-opus-5",
    "azure": "my-deployment",
    "bedrock": "anthropic.claude-opus-5-v1:0",
    "cerebras": "gpt-oss-120b",
    "copilot": "gpt-5-mini",
    "deepseek": "deepseek-v4-pro",
    "fireworks": "accounts/fireworks/models/kimi-k2p6",
    "github": "openai/gpt-5-mini",
    "google": "gemini-3.5-flash",
    "groq": "openai/gpt-oss-120b",
    "huggingface": "Qwen/Qwen3.5-9B:together",
    "kimi-coding": "k3",
    "minimax": "MiniMax-M3",
    "minimax-cn": "MiniMax-M2",
    "mistral": "mistral-small-latest",
    "moonshot": "kimi-k2.6",
    "moonshot-cn": "kimi-k3",
    "nous": "hermes-4-405b",
    "nvidia": "qwen/qwen3.5-9b",
    "ollama": "qwen3:8b",
    "openai": "gpt-5.6",
    "openai-codex": "gpt-5.4",
    "openrouter": "anthropic/claude-sonnet-4.6",
    "perplexity": "sonar-reasoning-pro",
    "qwen": "qwen3.5-plus",
    "qwen-portal": "qwen3-coder-plus",
    "stepfun": "step-3.7-flash",
    "vertex": "gemini-3.5-flash",
    "vertex-anthropic": "claude-opus-5",
    "xai": "grok-4.3",
    "xiaomi": "mimo-v2.5-pro",
    "zai": "glm-5.3",
}
"""Model names per provider, where the name matters; all others get `model`."""

URL_ENVIRONMENT: Final = {
    "AWS_REGION": "us-east-1",
    "GOOGLE_CLOUD_PROJECT": "project",
    "GOOGLE_CLOUD_LOCATION": "europe-west4",
}
"""Environment variables that URLs are made of."""

WEATHER: Final = ToolSpec(
    "get_weather",
    "The weather somewhere",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    strict=True,
)


def providers() -> list[Provider]:
    """All shipped providers, by name."""
    by_name = {provider.name: provider for provider in shipped().values()}
    return [by_name[name] for name in sorted(by_name)]


def build_request(
    provider: str, prompt: Prompt, *, wire: Any = None, model: str | None = None
) -> Request:
    """A request to a shipped provider; those without an address of their own get one."""
    base_url = None
    if not shipped()[provider].base_url:
        base_url = "https://example.test/v1"
    with patch.dict(os.environ, URL_ENVIRONMENT):
        return build(
            prompt,
            model or MODELS.get(provider, "model"),
            provider=provider,
            wire_api=wire,
            base_url=base_url,
        )


def history(provider: str, wire: Any, **reasoning: Any) -> list[ResponseItem]:
    """A question, reasoning and a call made by this provider, and the call's result.

    Args:
        provider: origin of the reasoning and the call.
        wire: theirs.
        reasoning: fields of the `Reasoning`.
    """
    origin = Origin(wire, provider)
    reasoning.setdefault("content", "It is about Paris.")
    return [
        user("What is the weather in Paris?"),
        Reasoning(**reasoning, origin=origin, response_id="r1"),
        FunctionCall("call_1", "get_weather", '{"city": "Paris"}', origin=origin, response_id="r1"),
        FunctionCallOutput("call_1", "18 degrees, clear"),
    ]


def prompts(provider: str, wire: Any) -> dict[str, Prompt]:
    """Thinking off and on, without and with tools."""
    settings: dict[str, Any] = {
        "instructions": "Be brief.",
        "temperature": 0.5,
        "max_output_tokens": 2000,
        "conversation_id": "talk-1",
    }
    plain = [user("Hello")]
    with_call = history(provider, wire)
    return {
        "thinking off": Prompt(plain, reasoning="off", **settings),
        "thinking on": Prompt(plain, reasoning="high", **settings),
        "thinking off, tools": Prompt(
            with_call, reasoning="off", tools=[WEATHER], tool_choice="auto", **settings
        ),
        "thinking on, tools": Prompt(
            with_call, reasoning="high", tools=[WEATHER], tool_choice="auto", **settings
        ),
    }


def snapshot(provider: Provider) -> dict[str, Any]:
    """What is compared: every case of the default wire, the largest one of the others."""
    model = MODELS.get(provider.name, "model")
    cases: dict[str, Any] = {"model": f"{provider.name}:{model}"}
    for wire in provider.wires:
        cases[wire] = {}
        for name, prompt in prompts(provider.name, wire).items():
            if wire == provider.wires[0] or name == "thinking on, tools":
                request = build_request(provider.name, prompt, wire=wire)
                cases[wire][name] = _comparable(request)
    return cases


def _comparable(request: Request) -> dict[str, Any]:
    report = [f"{change.action} {change.path}: {change.reason}" for change in request.report]
    return {
        "url": request.url,
        "headers": request.headers,
        "body": json.loads(request.body),
        "report": report,
    }


def path_of(provider: Provider) -> Path:
    """The file of a provider's snapshot."""
    return SNAPSHOTS / f"{provider.name}.json"


def formatted(value: Any) -> str:
    """JSON as the files contain it: what fits on a line is on one."""
    return _formatted(value, 0) + "\n"


def _formatted(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + depth <= WIDTH or not isinstance(value, (dict, list)):
        return line
    indent = "\n" + " " * (depth + 1)
    end = "\n" + " " * depth
    if isinstance(value, list):
        entries = [indent + _formatted(entry, depth + 1) for entry in value]
        return "[" + ",".join(entries) + end + "]"
    entries = []
    for key, entry in value.items():
        entries.append(f"{indent}{json.dumps(key)}: {_formatted(entry, depth + 1)}")
    return "{" + ",".join(entries) + end + "}"
