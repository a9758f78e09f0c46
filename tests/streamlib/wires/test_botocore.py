"""AWS's own client against the loopback provider: requests decode, responses are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec
import pytest

from streamlib.testing import Behaviour, serve

botocore_session = pytest.importorskip(
    "botocore.session", reason="botocore is the client here; it comes with the dev extra"
)
from botocore.config import Config  # noqa: E402  # after it is known to be there
from botocore.exceptions import ClientError  # noqa: E402

SCHEMA: Final = {"type": "object", "properties": {"c": {"type": "string"}}}
REQUEST: Final = {
    "modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "messages": [
        {
            "role": "user",
            "content": [
                {"text": "Weather?"},
                {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
            ],
        }
    ],
    "toolConfig": {"tools": [{"toolSpec": {"name": "w", "inputSchema": {"json": SCHEMA}}}]},
    "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
}


@pytest.fixture
async def call_client() -> AsyncIterator[Callable[..., Any]]:
    """Calls a function of the client in a thread."""
    async with anyio.create_task_group() as group:
        url = await group.start(serve)
        client = botocore_session.get_session().create_client(
            "bedrock-runtime",
            region_name="eu-west-1",
            endpoint_url=url,
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"max_attempts": 0}),
        )
        yield lambda call: anyio.to_thread.run_sync(call, client)
        client.close()
        group.cancel_scope.cancel()


async def test_converse_and_converse_stream(call_client: Callable[..., Any]) -> None:
    response = await call_client(lambda client: client.converse(**REQUEST))
    events = await call_client(lambda client: list(client.converse_stream(**REQUEST)["stream"]))
    reasoning, text, call = response["output"]["message"]["content"]
    assert (call["toolUse"]["name"], call["toolUse"]["input"], response["stopReason"]) == (
        "w",
        {"c": "text"},
        "tool_use",
    )
    deltas = [
        event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event
    ]
    assert "".join(delta.get("text", "") for delta in deltas) == text["text"]
    assert (
        "".join(delta.get("reasoningContent", {}).get("text", "") for delta in deltas)
        == reasoning["reasoningContent"]["reasoningText"]["text"]
    )
    assert msgspec.json.decode(
        "".join(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta)
    ) == {"c": "text"}
    assert [next(iter(event)) for event in events][-2:] == ["messageStop", "metadata"]


async def test_a_complete_tool_loop(call_client: Callable[..., Any]) -> None:
    first = await call_client(lambda client: client.converse(**REQUEST))
    call = first["output"]["message"]["content"][-1]["toolUse"]
    result = {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": "18C"}]}}
    messages = [
        *REQUEST["messages"],
        first["output"]["message"],
        {"role": "user", "content": [result]},
    ]
    second = await call_client(lambda client: client.converse(**{**REQUEST, "messages": messages}))
    assert second["output"]["message"]["content"][-1] == {"text": "The tool says: 18C"}


async def test_invoke_with_response_stream(call_client: Callable[..., Any]) -> None:
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
    }

    def call(client: Any) -> list[Any]:
        response = client.invoke_model_with_response_stream(
            modelId=REQUEST["modelId"], body=msgspec.json.encode(body)
        )
        return [msgspec.json.decode(event["chunk"]["bytes"]) for event in response["body"]]

    events = await call_client(call)
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
    assert "You said: hi" in "".join(
        event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta"
    )


async def test_an_error_has_its_aws_code() -> None:
    async with anyio.create_task_group() as group:
        url = await group.start(serve, Behaviour(status=429))
        client = botocore_session.get_session().create_client(
            "bedrock-runtime",
            region_name="eu-west-1",
            endpoint_url=url,
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"max_attempts": 0}),
        )
        with pytest.raises(ClientError) as caught:
            await anyio.to_thread.run_sync(lambda: client.converse(**REQUEST))
        client.close()
        assert caught.value.response["Error"]["Code"] == "ThrottlingException"
        group.cancel_scope.cancel()
