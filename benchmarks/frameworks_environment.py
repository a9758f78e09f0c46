"""An environment for pydantic-ai, litellm and any-llm, with the SDKs that they require.

They cannot be installed beside the newest SDKs, which all other benchmarks use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
HOME: Final = ROOT / ".real" / "frameworks"
# Two releases of litellm were malicious: https://github.com/BerriAI/litellm/issues/24512
PACKAGES: Final = (
    "pydantic-ai-slim[openai,anthropic]",
    "litellm!=1.82.7,!=1.82.8",
    "any-llm-sdk[anthropic]",
    "httpx2",
    "msgspec",
    "anyio",
    "h11",
)


def python() -> Path | None:
    """The interpreter of the environment, installed if needed; None if that is impossible."""
    found = HOME / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not found.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
            install = [str(found), "-m", "pip", "install", "-q", *PACKAGES]
            subprocess.run(install, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
    return found
