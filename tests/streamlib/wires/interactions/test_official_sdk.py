"""google-genai's Interactions: a client of our loopback provider, and a reader of our encoder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anyio.to_thread
import msgspec
import pytest

from streamlib import accumulate, encode_all, encode_body, parse_body
from streamlib.testing import Behaviour, running
from tests.support.invariants import events_of
from tests.support.loops import asyncio_alone
from tests.support.shared import BODIES, STREAMS, recordings

pytestmark = pytest.mark.filterwarnings("ignore")
REASON: Final = "the official SDK is the client here; it comes with the dev extra"
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
    },
}
CONFIG: Final = {"thinking_level": "low", "thinking_summaries": "auto"}


def ask(url: str, **fields: Any) -> Any:
    """One request of the SDK: the interaction, or all events of a stream."""
    genai: Any = pytest.importorskip("google.genai", reason=REASON)
    options = genai.types.HttpOptions(base_url=url)
    client = genai.Client(api_key="none", http_options=options)
    try:
        created = client.interactions.create(model="gemini-3.5-flash", **fields)
        return list(created) if fields.get("stream") else created
    finally:
        client.close()


async def in_thread(function: Callable[..., Any], **fields: Any) -> Any:
    """The SDK's client is synchronous, and the server runs on this loop."""
    return await anyio.to_thread.run_sync(partial(function, **fields))


@asyncio_alone
async def test_sdk_streams_calls_and_sends_them_back(anyio_backend: str) -> None:
    """Stateless: all steps with their signed thoughts go back as input, to the strict provider."""
    async with running(Behaviour(strict=True)) as url:
        common = {"tools": [TOOL], "generation_config": CONFIG, "store": False}
        events = await in_thread(ask, url=url, input="Weather?", stream=True, **common)
        kinds = [event.event_type for event in events]
        assert (kinds[0], kinds[-1]) == ("interaction.created", "interaction.completed")
        whole = await in_thread(ask, url=url, input="Weather?", **common)
        assert whole.status == events[-1].interaction.status == "requires_action"
        steps = [step.model_dump(mode="json", exclude_none=True) for step in whole.steps]
        (call,) = [step for step in steps if step["type"] == "function_call"]
        assert call["arguments"] == {"place": "text"}
        assert steps[0]["type"] == "thought"
        result = {"type": "function_result", "call_id": call["id"], "result": "sunny"}
        asked = {"type": "user_input", "content": [{"type": "text", "text": "Weather?"}]}
        answer = await in_thread(ask, url=url, input=[asked, *steps, result], **common)
        assert answer.output_text == "The tool says: sunny"
        assert answer.usage.total_output_tokens > 0


@asyncio_alone
async def test_sdk_raises_what_the_strict_provider_refuses(anyio_backend: str) -> None:
    async with running(Behaviour(strict=True)) as url:
        with pytest.raises(Exception, match=r"400.*Thinking level max"):
            await in_thread(ask, url=url, input="Hi", generation_config={"thinking_level": "max"})


@pytest.mark.parametrize(
    "folder", ["gemini-interactions", "anthropic-messages", "openai-responses", "openai-chat"]
)
def test_types_of_the_sdk_take_every_encoded_event(folder: str) -> None:
    """Validated strictly, although the SDK itself reads streams without validation."""
    name = "google.genai._gaos.types.interactions"
    types: Any = pytest.importorskip(name, reason=REASON)
    samples = recordings(folder, STREAMS)[::60] or recordings(folder, BODIES)
    if not samples:
        pytest.skip("shared test data is absent: no corpus")
    for recording in samples:
        wire: Any = recording.wire
        events = parse_body(wire, recording.body)
        if recording.path.suffix in STREAMS:
            events = events_of(wire, [recording.body])
        for event in sse_payloads(encode_all("interactions", events)):
            model = MODELS[event["event_type"]]
            getattr(types, model).model_validate(event)
        response = accumulate(events)
        if response.error is None:
            body = msgspec.json.decode(encode_body("interactions", response))
            types.Interaction.model_validate(body)


MODELS: Final = {
    "interaction.created": "InteractionCreatedEvent",
    "interaction.status_update": "InteractionStatusUpdate",
    "interaction.completed": "InteractionCompletedEvent",
    "step.start": "StepStart",
    "step.delta": "StepDelta",
    "step.stop": "StepStop",
    "error": "ErrorEvent",
}


def sse_payloads(body: bytes) -> list[Any]:
    """The JSON payloads of the events, without the terminator."""
    payloads: list[Any] = []
    for line in body.splitlines():
        data = line.removeprefix(b"data: ")
        if data not in (line, b"[DONE]"):
            payloads.append(msgspec.json.decode(data))
    return [payload for payload in payloads if payload.get("event_type") in MODELS]
