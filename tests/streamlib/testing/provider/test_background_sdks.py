"""The official SDKs as clients of the loopback's background responses."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
import pytest

from streamlib.testing import running
from tests.support.loops import asyncio_alone
from tests.support.sdks import openai

pytestmark = pytest.mark.filterwarnings("ignore")


def use_openai(url: str) -> None:
    """Streams, leaves, resumes, polls and cancels with OpenAI's SDK, which is synchronous."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as sdk:
        ask = {"model": "gpt-5", "input": "Hello", "background": True}
        stream = sdk.responses.create(**ask, stream=True)
        first = [next(stream) for _ in range(8)]
        stream.close()
        response_id = first[0].response.id
        last = first[-1].sequence_number
        rest = list(sdk.responses.retrieve(response_id, stream=True, starting_after=last))
        events = first + rest
        assert [event.sequence_number for event in events] == list(range(len(events)))
        text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        assert events[-1].response.output_text == text
        assert sdk.responses.retrieve(response_id).output_text == text
        # The SDK's own helper reads the stream from its start, and hides what came before.
        with sdk.responses.stream(response_id=response_id, starting_after=last) as helper:
            assert [event.sequence_number for event in helper] == [e.sequence_number for e in rest]
            assert helper.get_final_response().output_text == text
        assert sdk.responses.cancel(response_id).status == "completed"

        polled = sdk.responses.create(**{**ask, "input": "Poll"})
        assert (polled.status, polled.background, polled.output) == ("queued", True, [])
        assert sdk.responses.retrieve(polled.id).output_text.startswith("You said: Poll")

        stream = sdk.responses.create(**{**ask, "input": "Stop"}, stream=True)
        stopped = next(stream).response.id
        stream.close()
        sdk.responses.delete(stopped)
        with pytest.raises(openai.NotFoundError):
            sdk.responses.cancel(stopped)


def use_genai(url: str) -> None:
    """The same with google-genai."""
    reason = "the official SDK is the client here; it comes with the dev extra"
    genai: Any = pytest.importorskip("google.genai", reason=reason)
    client = genai.Client(api_key="none", http_options=genai.types.HttpOptions(base_url=url))
    try:
        sdk = client.interactions
        ask = {"model": "gemini-3.5-flash", "input": "Hello", "background": True, "store": True}
        whole = list(sdk.create(**ask, stream=True))
        created = whole[0].interaction.id
        position = whole[3].event_id
        rest = list(sdk.get(created, stream=True, last_event_id=position))
        assert [event.event_id for event in rest] == [event.event_id for event in whole[4:]]
        assert sdk.get(created).output_text == "".join(
            event.delta.text for event in whole if event.event_type == "step.delta"
        )
        assert sdk.cancel(created).status == "completed"
    finally:
        client.close()


@asyncio_alone
@pytest.mark.parametrize("use", [use_openai, use_genai])
async def test_sdk_uses_responses_in_the_background(anyio_backend: str, use: Any) -> None:
    async with running() as url:
        await anyio.to_thread.run_sync(use, url)
