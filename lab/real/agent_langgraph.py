"""An agent of LangGraph: one tool, a conversation in a file.

    python agent_langgraph.py WIRE ADDRESS HISTORY QUESTION

It runs in an environment of its own, without streamlib.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import (  # type: ignore[import-not-found]
    HumanMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.tools import tool  # type: ignore[import-not-found]
from langgraph.prebuilt import create_react_agent  # type: ignore[import-not-found]


@tool  # type: ignore[untyped-decorator]
def run_command(command: str) -> str:
    """Runs a command of the shell."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return done.stdout or "done"


def model_of(wire: str, url: str) -> Any:
    """The chat model of a wire."""
    if wire == "messages":
        from langchain_anthropic import ChatAnthropic  # type: ignore[import-not-found]

        thinking = {"type": "enabled", "budget_tokens": 2000}
        return ChatAnthropic(
            model="claude-sonnet-4-5",
            base_url=url,
            api_key="dummy",
            thinking=thinking,
            max_tokens=8000,
        )
    if wire == "gemini":
        from langchain_google_genai import (  # type: ignore[import-not-found]
            ChatGoogleGenerativeAI,
        )

        return ChatGoogleGenerativeAI(
            model="gemini-3-pro-preview",
            base_url=url,
            api_key="dummy",
            include_thoughts=True,
        )
    from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]

    if wire == "chat":
        return ChatOpenAI(
            model="agent-model",
            base_url=f"{url}/v1",
            api_key="dummy",
            reasoning_effort="medium",
            use_responses_api=False,
        )
    return ChatOpenAI(
        model="gpt-5.5",
        base_url=f"{url}/v1",
        api_key="dummy",
        use_responses_api=True,
        store=False,
        reasoning={"effort": "medium", "summary": "auto"},
        include=["reasoning.encrypted_content"],
    )


async def ask(wire: str, url: str, history: list[Any]) -> list[Any]:
    """The conversation with the agent's turns."""
    agent = create_react_agent(model_of(wire, url), [run_command])
    state: dict[str, Any] = {}
    # Its streams are the client's: "messages" makes the model stream.
    async for mode, value in agent.astream(
        {"messages": history}, stream_mode=["messages", "values"]
    ):
        if mode == "values":
            state = value
    messages: list[Any] = state["messages"]
    return messages


def main(wire: str, url: str, file: Path, question: str) -> None:
    saved = json.loads(file.read_text()) if file.exists() else []
    history = [*messages_from_dict(saved), HumanMessage(question)]
    messages = asyncio.run(ask(wire, url, history))
    sys.stdout.write(f"{messages[-1].text}\n")
    file.write_text(json.dumps(messages_to_dict(messages)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
