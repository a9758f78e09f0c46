"""An agent of openai-agents: one tool, a conversation in a file.

    python agent_openai_agents.py WIRE ADDRESS HISTORY QUESTION

It runs in an environment of its own, without streamlib.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from agents import (  # type: ignore[import-not-found]
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from openai.types.shared import Reasoning


@function_tool  # type: ignore[untyped-decorator]
def run_command(command: str) -> str:
    """Runs a command of the shell."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return done.stdout or "done"


async def ask(wire: str, url: str, history: list[Any]) -> tuple[str, list[Any]]:
    """The agent's last text, and the conversation with it."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="dummy")
    settings = ModelSettings(reasoning=Reasoning(effort="medium"))
    model: Any
    if wire == "chat":
        model = OpenAIChatCompletionsModel("agent-model", openai_client=client)
    else:
        model = OpenAIResponsesModel("gpt-5.5", openai_client=client)
        settings = ModelSettings(
            reasoning=Reasoning(effort="medium"),
            store=False,
            response_include=["reasoning.encrypted_content"],
        )
    agent = Agent("agent", tools=[run_command], model=model, model_settings=settings)
    result = Runner.run_streamed(agent, history)
    async for _ in result.stream_events():
        pass
    return str(result.final_output), result.to_input_list()


def main(wire: str, url: str, file: Path, question: str) -> None:
    history: list[Any] = json.loads(file.read_text()) if file.exists() else []
    history.append({"role": "user", "content": question})
    text, history = asyncio.run(ask(wire, url, history))
    sys.stdout.write(f"{text}\n")
    file.write_text(json.dumps(history))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
