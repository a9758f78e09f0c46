"""Where the peers live: their pins exclude each other, so those that can share an environment do,
and the rest have one of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

OURS: Final = ("anyio", "h11", "httpx", "msgspec", "trio")
"""What this harness and streamlib itself need."""


class Environment(NamedTuple):
    """What is installed, and which adapters run there."""

    packages: tuple[str, ...]
    adapters: tuple[str, ...]
    node_packages: tuple[str, ...] = ()
    """Installed by npm, beside the environment's own packages."""


ENVIRONMENTS: Final[dict[str, Environment]] = {
    "sdks": Environment(
        ("openai", "anthropic", "google-genai", "boto3", "httpx-sse", "starlette"),
        ("streamlib", "anthropic", "openai", "google_genai", "botocore", "httpx_sse"),
    ),
    "pydantic-ai": Environment(
        ("pydantic-ai-slim[openai,anthropic,google,bedrock]",), ("pydantic_ai",)
    ),
    # Two releases of litellm were malicious: https://github.com/BerriAI/litellm/issues/24512
    "litellm": Environment(("litellm!=1.82.7,!=1.82.8", "boto3", "mcp", "tenacity"), ("litellm",)),
    "vercel-ai": Environment(
        (),
        ("vercel_ai",),
        ("ai", "@ai-sdk/amazon-bedrock", "@ai-sdk/anthropic", "@ai-sdk/google", "@ai-sdk/openai"),
    ),
    "any-llm": Environment(("any-llm-sdk[anthropic,gemini,ollama]",), ("any_llm",)),
}


def python(home: Path, name: str) -> Path:
    """The interpreter of one."""
    return home / name / "bin" / "python"


def prepare(home: Path) -> None:
    """Makes those that are not there."""
    for name, environment in ENVIRONMENTS.items():
        if not python(home, name).exists():
            subprocess.run([sys.executable, "-m", "venv", str(home / name)], check=True)
        subprocess.run(
            [str(python(home, name)), "-m", "pip", "install", "-q", *environment.packages, *OURS],
            check=True,
        )
        if environment.node_packages:
            # By the tag: without it npm takes the newest version that promises to run on this Node.
            newest = [f"{name}@latest" for name in environment.node_packages]
            install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run([*install, "--prefix", str(home / name), *newest], check=True)
