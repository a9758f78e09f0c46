"""What the providers are asked in tests: one conversation, with and without thinking and tools, as a readable file for each.

`python -m tests.provider_pages` writes the files and the tables of docs/providers.md anew; the tests only compare.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
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
"""A model of each, where the name matters; `model` stands for all others."""

PLACES: Final = {
    "AWS_REGION": "us-east-1",
    "GOOGLE_CLOUD_PROJECT": "project",
    "GOOGLE_CLOUD_LOCATION": "europe-west4",
}
"""The environment in which addresses are made."""

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
    """All that are shipped, by name."""
    return sorted({one.name: one for one in shipped().values()}.values(), key=lambda one: one.name)


@contextmanager
def placed() -> Iterator[None]:
    """The environment of the snapshots, and nothing else that could name a place."""
    with patch.dict(os.environ, PLACES):
        yield


def asked(provider: str, prompt: Prompt, *, wire: Any = None, model: str | None = None) -> Request:
    """A request to a shipped provider; those without an address of their own get one."""
    base_url = None if shipped()[provider].base_url else "https://example.test/v1"
    with placed():
        return build(
            prompt,
            model or MODELS.get(provider, "model"),
            provider=provider,
            wire_api=wire,
            base_url=base_url,
        )


def history(provider: str, wire: Any, **thought: Any) -> list[ResponseItem]:
    """A question, a thought and a call that this very provider made, and the result."""
    origin = Origin(wire, provider)
    return [
        user("What is the weather in Paris?"),
        Reasoning(**{"content": "It is about Paris.", **thought}, origin=origin, response_id="r1"),
        FunctionCall("call_1", "get_weather", '{"city": "Paris"}', origin=origin, response_id="r1"),
        FunctionCallOutput("call_1", "18 degrees, clear"),
    ]


def prompts(provider: str, wire: Any) -> dict[str, Prompt]:
    """Thinking off and on, without and with tools."""
    said: dict[str, Any] = {
        "instructions": "Be brief.",
        "temperature": 0.5,
        "max_output_tokens": 2000,
        "conversation_id": "talk-1",
    }
    plain = [user("Hello")]
    called = history(provider, wire)
    return {
        "thinking off": Prompt(plain, reasoning="off", **said),
        "thinking on": Prompt(plain, reasoning="high", **said),
        "thinking off, tools": Prompt(
            called, reasoning="off", tools=[WEATHER], tool_choice="auto", **said
        ),
        "thinking on, tools": Prompt(
            called, reasoning="high", tools=[WEATHER], tool_choice="auto", **said
        ),
    }


def snapshot(provider: Provider) -> dict[str, Any]:
    """All that is compared: every case of the default wire, the richest one of the others."""
    model = MODELS.get(provider.name, "model")
    cases: dict[str, Any] = {}
    for wire in provider.wires:
        made = prompts(provider.name, wire)
        names = list(made) if wire == provider.wires[0] else ["thinking on, tools"]
        cases[wire] = {name: _shown(asked(provider.name, made[name], wire=wire)) for name in names}
    return {"model": f"{provider.name}:{model}", **cases}


def _shown(request: Request) -> dict[str, Any]:
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


def written(value: Any) -> str:
    """JSON as the files hold it: what fits on a line stands on one."""
    return _written(value, 0) + "\n"


def _written(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + depth <= WIDTH or not isinstance(value, (dict, list)):
        return line
    inner = "\n" + " " * (depth + 1)
    if isinstance(value, list):
        return (
            "["
            + ",".join(inner + _written(one, depth + 1) for one in value)
            + "\n"
            + " " * depth
            + "]"
        )
    return (
        "{"
        + ",".join(
            f"{inner}{json.dumps(key)}: {_written(one, depth + 1)}" for key, one in value.items()
        )
        + "\n"
        + " " * depth
        + "}"
    )
