"""google-genai's client of Interactions: at the gateway, at the loopback provider, and as a reader
of what our encoder writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anyio.to_thread
import pytest

from streamlib import FunctionCall, Reasoning, Response, accumulate, encode_all
from streamlib.gateway import gateway
from streamlib.testing import Behaviour, running
from streamlib_parsers.items import WireApi
from tests.support.asgi_servers import serving_app
from tests.support.invariants import events_of
from tests.support.loops import asyncio_alone
from tests.support.served_gateways import loopback_gateway
from tests.support.shared import STREAMS, recordings

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

MODELS: Final[tuple[WireApi, ...]] = (
    "messages",
    "chat",
    "responses",
    "gemini",
    "interactions",
    "converse",
    "ollama",
)
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
    },
}
QUESTION: Final = {"type": "user_input", "content": [{"type": "text", "text": "Weather?"}]}


def ask(url: str, **fields: Any) -> Any:
    """One request of the SDK: the interaction, or all events of a stream."""
    genai: Any = pytest.importorskip("google.genai")
    client = genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=url))
    try:
        created = client.interactions.create(model="gemini-3.5-flash", **fields)
        return list(created) if fields.get("stream") else created
    finally:
        client.close()


async def in_thread(function: Callable[..., Any], *arguments: Any, **fields: Any) -> Any:
    """The SDK's client is synchronous, and the server runs on this loop."""
    return await anyio.to_thread.run_sync(partial(function, *arguments, **fields))


def read(events: list[Any]) -> tuple[str, str, list[Any]]:
    """Text, summaries and calls (name, argument text) as the SDK has read them."""
    text = thoughts = ""
    calls: dict[int, list[str]] = {}
    for event in events:
        if event.event_type == "step.start" and event.step.type == "function_call":
            calls[event.index] = [event.step.name, ""]
        if event.event_type != "step.delta":
            continue
        delta = event.delta
        if delta.type == "text":
            text += delta.text
        elif delta.type == "thought_summary":
            thoughts += delta.content.text
        elif delta.type == "arguments_delta":
            calls[event.index][1] += delta.arguments
    return text, thoughts, list(calls.values())


def ours(response: Response) -> tuple[str, str, list[Any]]:
    calls: list[Any] = []
    thoughts = ""
    for item in response.items:
        if isinstance(item, FunctionCall) and item.status == "completed":
            calls.append([item.name, item.arguments])
        elif isinstance(item, Reasoning):
            thoughts += "".join(item.summary) + item.content
    return response.text, thoughts, calls


async def check_conversation(url: str) -> None:
    """A streamed and a whole turn with a call, then its result with the steps before."""
    common = {"tools": [TOOL], "generation_config": {"thinking_level": "low"}, "store": False}
    events = await in_thread(ask, url, input="Weather?", stream=True, **common)
    assert events[-1].event_type == "interaction.completed"
    assert read(events)[2] == [["weather", '{"place":"text"}']]
    whole = await in_thread(ask, url, input="Weather?", **common)
    steps = [step.model_dump(mode="json", exclude_none=True) for step in whole.steps]
    [call] = [step for step in steps if step["type"] == "function_call"]
    result = {"type": "function_result", "call_id": call["id"], "result": "sunny"}
    last = await in_thread(ask, url, input=[QUESTION, *steps, result], **common)
    assert last.output_text == "The tool says: sunny"


@asyncio_alone
@pytest.mark.parametrize("wire", MODELS)
async def test_sdk_talks_to_a_model_of_any_wire(wire: WireApi, anyio_backend: str) -> None:
    async with (
        loopback_gateway(wire, "claude-opus-4-5") as made,
        serving_app(gateway(made)) as served,
    ):
        await check_conversation(served.url)


@asyncio_alone
async def test_sdk_continues_an_interaction_that_is_kept(anyio_backend: str) -> None:
    async with running() as url:
        await check_conversation(url)
        first = await in_thread(ask, url, input="one two three")
        follow = {"input": "four", "previous_interaction_id": first.id}
        second = await in_thread(ask, url, **follow)
        assert second.output_text.startswith("You said: four")
        assert second.usage.total_input_tokens > first.usage.total_input_tokens
        with pytest.raises(Exception, match="not found"):
            await in_thread(ask, url, input="four", previous_interaction_id="none")


@asyncio_alone
@pytest.mark.parametrize(
    "folder", ["anthropic-messages", "openai-responses", "openai-chat", "gemini-generatecontent"]
)
async def test_sdk_reads_what_our_encoder_writes(folder: str, anyio_backend: str) -> None:
    """Recordings of other wires, encoded as Interactions and read over HTTP."""
    samples = recordings(folder, STREAMS)[::100]
    if not samples:
        pytest.skip("shared test data is absent: no corpus")
    bodies: list[bytes] = []
    expected: list[tuple[str, str, list[Any]]] = []
    for recording in samples:
        wire: Any = recording.wire
        body = encode_all("interactions", events_of(wire, [recording.body]))
        response = accumulate(events_of("interactions", [body]))
        if response.error is None:
            bodies.append(body)
            expected.append(ours(response))
    assert any(text for text, _, _ in expected)
    async with running(Behaviour(recordings=bodies)) as url:
        for wanted in expected:
            assert read(await in_thread(ask, url, input="x", stream=True)) == wanted
