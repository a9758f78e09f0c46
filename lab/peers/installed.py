"""How many packages an installation of each library brings, itself among them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

from lab.peers.environments import ENVIRONMENTS, python
from tests.support.shared import ROOT

REQUIREMENTS: Final = {
    "streamlib": str(ROOT),
    "openai": "openai",
    "anthropic": "anthropic",
    "google-genai": "google-genai",
    "litellm": "litellm!=1.82.7,!=1.82.8",
    "pydantic-ai-slim": "pydantic-ai-slim[openai,anthropic,google,bedrock]",
    "any-llm-sdk": "any-llm-sdk[anthropic,gemini,ollama]",
}
"""Distribution -> what is installed for the cases that it is asked."""


def count_packages(home: Path) -> dict[str, int]:
    """Distribution -> packages, as pip or npm resolve them.

    Args:
        home: where the environments are.
    """
    pip = [str(python(home, "sdks")), "-m", "pip", "install", "--quiet", "--dry-run"]
    counts: dict[str, int] = {}
    for name, requirement in REQUIREMENTS.items():
        command = [*pip, "--ignore-installed", "--report", "-", requirement]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        counts[name] = len(json.loads(found.stdout)["install"])
    for name, environment in ENVIRONMENTS.items():
        if environment.node_packages:
            lock = (home / name / "package-lock.json").read_text(encoding="utf-8")
            counts["ai"] = len([path for path in json.loads(lock)["packages"] if path])
    return counts
