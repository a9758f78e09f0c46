"""The agents: how each is installed, and started at an address.

Each has a HOME of its own. `resumes` starts it a second time, with the conversation of the first.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from lab.real.counterparts import HERE, HOME
from streamlib_parsers.items import WireApi

QUESTION: Final = "Write the proof."
SECOND_QUESTION: Final = "What was it?"
MODEL: Final = "agent-model"
"""What agents ask for that take any name."""

NPM_PACKAGES: Final = (
    "@anthropic-ai/claude-code@2.1.197",
    "@openai/codex@0.169.0",
    "@google/gemini-cli@0.61.0",
    "@qwen-code/qwen-code@0.24.4",
    "opencode-ai@1.18.33",
    "ai@7.0.173",
    "@ai-sdk/anthropic@4.0.105",
    "@ai-sdk/openai@4.0.118",
    "@ai-sdk/google@4.0.121",
    "@ai-sdk/openai-compatible@3.0.92",
    "zod@4",
)
PIP_PACKAGES: Final = (
    "openai-agents==0.24.0",
    "pydantic-ai-slim[openai,anthropic,google]==2.68.0",
    "langgraph==1.2.24",
    "langchain-anthropic==1.7.10",
    "langchain-google-genai==4.4.3",
    "langchain-openai==1.7.4",
)

FOLDER: Final = [HOME / "agents"]
"""Where npm and pip put the agents; `--home` changes it."""

Started = tuple[list[str], dict[str, str]]
"""A command, and its environment."""


class Agent(NamedTuple):
    """One agent in one of its modes.

    wire: the wire that it asks on.
    start: (address, HOME, whether it resumes) -> how it is started.
    needs: what must be there, in the folder of the agents.
    """

    wire: WireApi
    start: Callable[[str, Path, bool], Started]
    needs: str


def program(name: str) -> Path:
    return FOLDER[0] / "node_modules" / ".bin" / name


def python() -> Path:
    """The interpreter of the agents on PyPI."""
    return FOLDER[0] / "python" / "bin" / "python"


def write_json(file: Path, value: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


# --- agents on npm ---


def claude(url: str, home: Path, resumes: bool) -> Started:
    question = ["-c", "-p", SECOND_QUESTION] if resumes else ["-p", QUESTION]
    command = [str(program("claude")), *question, "--model", "claude-sonnet-4-5"]
    command += ["--allowedTools", "Bash,Write,Edit,Read"]
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "MAX_THINKING_TOKENS": "2000",
    }
    return command, environment


def codex(url: str, home: Path, resumes: bool) -> Started:
    lines = [
        'model = "gpt-5.5"',
        'model_reasoning_effort = "medium"',
        'model_provider = "gateway"',
        "[model_providers.gateway]",
        'name = "gateway"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
        'env_key = "GATEWAY_KEY"',
    ]
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    options = ["--skip-git-repo-check", "--sandbox", "danger-full-access"]
    command = [str(program("codex")), "exec", *options]
    if resumes:
        return [*command, "resume", "--last", SECOND_QUESTION], {"GATEWAY_KEY": "dummy"}
    return [*command, QUESTION], {"GATEWAY_KEY": "dummy"}


def gemini(url: str, home: Path, resumes: bool) -> Started:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }
    write_json(home / ".gemini" / "settings.json", settings)
    command = [str(program("gemini")), "--yolo", "--skip-trust", "-m", "gemini-3-pro-preview"]
    if resumes:
        command += ["--resume", "latest"]
    command += ["-p", SECOND_QUESTION if resumes else QUESTION]
    environment = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "dummy"}
    return command, environment


def qwen(url: str, home: Path, resumes: bool) -> Started:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    write_json(home / ".qwen" / "settings.json", settings)
    command = [str(program("qwen")), "--yolo", "--auth-type", "openai", "-m", "qwen3-coder-plus"]
    if resumes:
        command += ["--continue"]
    command += ["-p", SECOND_QUESTION if resumes else QUESTION]
    environment = {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "dummy",
        "OPENAI_MODEL": "qwen3-coder-plus",
    }
    return command, environment


def opencode(package: str) -> Callable[[str, Path, bool], Started]:
    """opencode with one of the packages of the AI SDK, which it asks with."""

    def start(url: str, home: Path, resumes: bool) -> Started:
        base = f"{url}/v1beta" if package == "@ai-sdk/google" else f"{url}/v1"
        options: dict[str, Any] = {}
        if package == "@ai-sdk/anthropic":
            options = {"thinking": {"type": "enabled", "budgetTokens": 2000}}
        elif package == "@ai-sdk/openai":
            options = {"reasoningEffort": "medium", "include": ["reasoning.encrypted_content"]}
        model = {"name": MODEL, "reasoning": True, "tool_call": True, "options": options}
        provider = {
            "npm": package,
            "name": "gateway",
            "options": {"baseURL": base, "apiKey": "dummy"},
            "models": {MODEL: model},
        }
        settings = {
            "provider": {"gateway": provider},
            "model": f"gateway/{MODEL}",
            "small_model": f"gateway/{MODEL}",
            "permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"},
            "autoupdate": False,
            "share": "disabled",
        }
        write_json(home / ".config" / "opencode" / "opencode.json", settings)
        command = [str(program("opencode")), "run", "--model", f"gateway/{MODEL}"]
        if resumes:
            command += ["--continue"]
        environment = {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "XDG_CONFIG_HOME": str(home / ".config"),
        }
        return [*command, SECOND_QUESTION if resumes else QUESTION], environment

    return start


def ai_sdk(package: str) -> Callable[[str, Path, bool], Started]:
    """A program of the AI SDK with one of its providers."""

    def start(url: str, home: Path, resumes: bool) -> Started:
        # Node looks for packages beside the program.
        file = FOLDER[0] / "agent_ai_sdk.mjs"
        shutil.copyfile(HERE / "agent_ai_sdk.mjs", file)
        node = str(shutil.which("node"))
        question = SECOND_QUESTION if resumes else QUESTION
        return [node, str(file), package, url, str(home / "history.json"), question], {}

    return start


# --- agents on PyPI ---


def python_agent(library: str, wire: WireApi) -> Callable[[str, Path, bool], Started]:
    """A program of a library for agents, with one of its model classes."""

    def start(url: str, home: Path, resumes: bool) -> Started:
        file = str(HERE / f"agent_{library}.py")
        question = SECOND_QUESTION if resumes else QUESTION
        # Its folder has a module `agents` too.
        command = [str(python()), "-P", file, wire, url, str(home / "history.json"), question]
        environment = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "OPENAI_API_KEY": "dummy"}
        return command, environment

    return start


AGENTS: Final[dict[str, Agent]] = {
    "claude": Agent("messages", claude, "node_modules/.bin/claude"),
    "codex": Agent("responses", codex, "node_modules/.bin/codex"),
    "gemini": Agent("gemini", gemini, "node_modules/.bin/gemini"),
    "qwen": Agent("chat", qwen, "node_modules/.bin/qwen"),
    "opencode-anthropic": Agent(
        "messages", opencode("@ai-sdk/anthropic"), "node_modules/.bin/opencode"
    ),
    "opencode-openai": Agent("responses", opencode("@ai-sdk/openai"), "node_modules/.bin/opencode"),
    "opencode-chat": Agent(
        "chat", opencode("@ai-sdk/openai-compatible"), "node_modules/.bin/opencode"
    ),
    "openai-agents-chat": Agent("chat", python_agent("openai_agents", "chat"), "python/bin/python"),
    "openai-agents": Agent(
        "responses", python_agent("openai_agents", "responses"), "python/bin/python"
    ),
    "pydantic-ai-chat": Agent("chat", python_agent("pydantic_ai", "chat"), "python/bin/python"),
    "pydantic-ai-messages": Agent(
        "messages", python_agent("pydantic_ai", "messages"), "python/bin/python"
    ),
    "pydantic-ai-gemini": Agent(
        "gemini", python_agent("pydantic_ai", "gemini"), "python/bin/python"
    ),
    "langgraph-chat": Agent("chat", python_agent("langgraph", "chat"), "python/bin/python"),
    "langgraph-openai": Agent(
        "responses", python_agent("langgraph", "responses"), "python/bin/python"
    ),
    "langgraph-anthropic": Agent(
        "messages", python_agent("langgraph", "messages"), "python/bin/python"
    ),
    "langgraph-google": Agent("gemini", python_agent("langgraph", "gemini"), "python/bin/python"),
    "ai-sdk-anthropic": Agent("messages", ai_sdk("anthropic"), "node_modules/ai"),
    "ai-sdk-openai": Agent("responses", ai_sdk("openai"), "node_modules/ai"),
    "ai-sdk-google": Agent("gemini", ai_sdk("google"), "node_modules/ai"),
    "ai-sdk-chat": Agent("chat", ai_sdk("openai-compatible"), "node_modules/ai"),
}


def missing(name: str) -> bool:
    """Whether an agent could not be installed."""
    return not (FOLDER[0] / AGENTS[name].needs).exists()


def install() -> None:
    """Installs all from npm and PyPI; Claude Code's installer, which places its binary, is run
    separately."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise FileNotFoundError("there is no npm")
    home = FOLDER[0]
    home.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(home)]
    subprocess.run([*command, *NPM_PACKAGES], check=True)
    package = home / "node_modules" / "@anthropic-ai" / "claude-code"
    subprocess.run([node, "install.cjs"], cwd=package, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(home / "python")], check=True)
    pip = [str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PIP_PACKAGES], check=True)
