"""What both servers are asked: a client for each wire, one tool, and the conversation that makes a
small model use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamlib import (
    Client,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Reasoning,
    ResponseEvent,
    ResponseItem,
    ResponseStream,
    Text,
    ToolSpec,
    user,
)
from streamlib.client.retry import NO_RETRY

PATHS: Final = {
    "messages": "",
    "responses": "/v1",
    "chat": "/v1",
    "gemini": "/v1beta",
    "converse": "",
    "ollama": "",
}
"""Wire -> what its base URL has after the server's address."""

WEATHER: Final = ToolSpec(
    "get_weather",
    "Weather forecast for a city",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
)


def client(wire: Any, address: str, **options: Any) -> Client:
    """A client of a server that no provider file describes."""
    return Client(
        **{"base_url": address + PATHS[wire], "wire_api": wire, "retry": NO_RETRY, **options}
    )


async def every(stream: ResponseStream) -> list[ResponseEvent]:
    """All events of a stream."""
    async with stream:
        return [event async for event in stream]


def question(city: str, days: int) -> ResponseItem:
    """What the tool is for."""
    return user(f"What is the weather in {city} for {days} days?")


def example(city: str, days: int, *thought: str) -> Sequence[ResponseItem]:
    """A question, perhaps what was thought, the call, what it gave, the answer."""
    return (
        question(city, days),
        *(Reasoning(one) for one in thought),
        FunctionCall(f"call{city}", "get_weather", f'{{"city": "{city}", "days": {days}}}'),
        FunctionCallOutput(f"call{city}", "sunny"),
        Message("assistant", [Text("It will be sunny.")]),
    )


EXAMPLES: Final = (*example("Rome", 2), *example("Oslo", 5), *example("Cairo", 4))
"""Three of them: with fewer, SmolLM2-135M answers in prose."""
THOUGHTFUL: Final = tuple(
    item
    for city, days in (("Rome", 2), ("Oslo", 5), ("Cairo", 4))
    for item in example(city, days, f"I need the weather of {city}.")
)
"""The same, with a thought before each call."""
