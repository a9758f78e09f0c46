"""An agent of pydantic-ai: one tool, a conversation in a file.

    python agent_pydantic_ai.py WIRE ADDRESS HISTORY QUESTION

It runs in an environment of its own, without streamlib.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, ModelMessagesTypeAdapter  # type: ignore[import-not-found]


def model_of(wire: str, url: str) -> tuple[Any, Any]:
    """The model of a wire, and its settings."""
    if wire == "messages":
        from pydantic_ai.models.anthropic import (  # type: ignore[import-not-found]
            AnthropicModel,
            AnthropicModelSettings,
        )
        from pydantic_ai.providers.anthropic import (  # type: ignore[import-not-found]
            AnthropicProvider,
        )

        provider = AnthropicProvider(base_url=url, api_key="dummy")
        thinking = {"type": "enabled", "budget_tokens": 2000}
        settings = AnthropicModelSettings(anthropic_thinking=thinking, max_tokens=8000)
        return AnthropicModel("claude-sonnet-4-5", provider=provider), settings
    if wire == "gemini":
        from pydantic_ai.models.google import (  # type: ignore[import-not-found]
            GoogleModel,
            GoogleModelSettings,
        )
        from pydantic_ai.providers.google import GoogleProvider  # type: ignore[import-not-found]

        provider = GoogleProvider(base_url=url, api_key="dummy")
        config = {"include_thoughts": True}
        settings = GoogleModelSettings(google_thinking_config=config)
        return GoogleModel("gemini-3-pro-preview", provider=provider), settings
    from pydantic_ai.models.openai import (  # type: ignore[import-not-found]
        OpenAIChatModel,
        OpenAIChatModelSettings,
    )
    from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]

    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="dummy")
    settings = OpenAIChatModelSettings(openai_reasoning_effort="medium")
    return OpenAIChatModel("agent-model", provider=provider), settings


async def ask(wire: str, url: str, saved: bytes | None, question: str) -> tuple[str, bytes]:
    """The agent's last text, and the conversation with it."""
    model, settings = model_of(wire, url)
    agent = Agent(model, model_settings=settings)

    @agent.tool_plain  # type: ignore[untyped-decorator]
    def run_command(command: str) -> str:
        """Runs a command of the shell."""
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        return done.stdout or "done"

    history = ModelMessagesTypeAdapter.validate_json(saved) if saved else None
    async with agent.run_stream(question, message_history=history) as result:
        text = str(await result.get_output())
    return text, result.all_messages_json()


def main(wire: str, url: str, file: Path, question: str) -> None:
    saved = file.read_bytes() if file.exists() else None
    text, saved = asyncio.run(ask(wire, url, saved, question))
    sys.stdout.write(f"{text}\n")
    file.write_bytes(saved)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
