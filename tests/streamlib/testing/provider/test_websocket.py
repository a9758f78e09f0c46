"""The loopback provider over WebSocket: OpenAI's SDK as its client, faults, refusals."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from streamlib import ErrorInfo, Failed, FunctionCall, StreamError
from streamlib.client.retry import RetryPolicy
from streamlib.testing import Behaviour, running
from tests.support.loops import asyncio_alone
from tests.support.sdks import openai
from tests.support.websocket_scripts import connected

NEVER = {"retry": RetryPolicy(retries=0)}


async def run_sdk(behaviour: Behaviour, *requests: dict[str, Any]) -> list[Any]:
    """The events of OpenAI's SDK up to the ends of so many responses."""
    pytest.importorskip("websockets", reason="OpenAI's SDK needs it; it comes with the dev extra")
    async with running(behaviour) as url:
        client = openai.AsyncOpenAI(api_key="sk-test", base_url=url + "/v1")
        events: list[Any] = []
        async with client.responses.connect() as connection:
            for request in requests:
                await connection.response.create(model="gpt-5", **request)
            ends = 0
            async for event in connection:
                events.append(event)
                ends += event.type in ("response.completed", "response.failed", "error")
                if ends == len(requests):
                    break
        await client.close()
        return events


@pytest.mark.anyio
@asyncio_alone
async def test_openai_sdk_is_served(anyio_backend: str) -> None:
    events = await run_sdk(
        Behaviour(turns=["Hello there", FunctionCall("c1", "lookup", '{"a":1}')]),
        {"input": "hi", "stream_id": "a"},
        {"input": "look", "stream_id": "a"},
    )
    assert {event.stream_id for event in events} == {"a"}
    ends = [event.response for event in events if event.type == "response.completed"]
    assert ends[0].output_text == "Hello there"
    assert ends[1].output[0].arguments == '{"a":1}'
    for event in events:
        if not hasattr(event, "response"):  # whose usage is checked where it is encoded
            type(event).model_validate(event.model_dump())


@pytest.mark.anyio
@asyncio_alone
async def test_openai_sdk_continues_and_steers(anyio_backend: str) -> None:
    pytest.importorskip("websockets", reason="OpenAI's SDK needs it; it comes with the dev extra")
    async with running() as url:
        client = openai.AsyncOpenAI(api_key="sk-test", base_url=url + "/v1")
        texts: list[str] = []
        kinds: list[str] = []
        async with client.responses.connect() as connection:
            await connection.response.create(model="gpt-5", input="one")
            async for event in connection:
                kinds.append(event.type)
                if event.type == "response.created" and not texts:
                    await connection.response.steer(
                        input="two", previous_response_id=event.response.id
                    )
                if event.type == "response.completed":
                    texts.append(event.response.output_text.splitlines()[0])
                    previous = event.response.id
                    if len(texts) == 2:
                        await connection.response.create(
                            model="gpt-5", input="three", previous_response_id=previous
                        )
                if len(texts) == 3:
                    break
        await client.close()
    assert texts == ["You said: one", "You said: two", "You said: three"]
    assert kinds.count("response.steer.accepted") == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "kind"),
    [("truncate", "truncated"), ("disconnect", "truncated"), ("malformed", "malformed")],
)
async def test_a_fault_ends_the_response(fault: Any, kind: str) -> None:
    async with (
        running(Behaviour(fault=fault)) as url,
        connected(url + "/v1", client=NEVER) as connection,
        connection.stream("x", errors="event") as stream,
    ):
        events = [event async for event in stream]
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == kind


@pytest.mark.anyio
async def test_errors_and_strict_rules_are_events() -> None:
    script = Behaviour(turns=[ErrorInfo("rate_limited", "slow down", retry_after=7.0), "Hello"])
    async with running(script) as url, connected(url + "/v1", client=NEVER) as connection:
        async with connection.stream("x", errors="event") as stream:
            events = [event async for event in stream]
        assert isinstance(events[-1], Failed)
        assert (events[-1].error.kind, events[-1].error.status) == ("rate_limited", 429)
        async with connection.stream("x") as stream:
            async for _ in stream:
                pass
        assert stream.response.text == "Hello"
    async with (
        running(Behaviour(strict=True)) as url,
        connected(url + "/v1", client=NEVER) as connection,
    ):
        async with connection.stream("x") as stream:
            async for _ in stream:
                pass
        assert stream.response.status == "completed"


@pytest.mark.anyio
async def test_body_that_is_not_a_request_is_refused() -> None:
    async with running() as url, connected(url + "/v1") as connection:
        socket = (await connection.usable_socket())._socket
        for message in (b"no JSON", b"[]", b'{"type":"response.inject"}'):
            await socket.send(message)
        await socket.send(json.dumps({"type": "response.create", "stream_id": "a b"}).encode())
        refusals: list[Any] = []
        with anyio.fail_after(5):
            while len(refusals) < 4:
                refusals += [json.loads(message) for message in socket.feed(await socket.read())]
    codes = [refusal["error"]["code"] for refusal in refusals]
    assert codes == ["invalid_event"] * 3 + ["invalid_stream_id"]


@pytest.mark.anyio
async def test_no_message_ends_the_provider() -> None:
    """A field of another type raised TypeError, which ended the block of `running`."""
    wrong: list[dict[str, Any]] = [
        {"type": "response.create", "previous_response_id": [1], "input": "x"},
        {"type": "response.create", "input": 5},
        {"type": "response.steer", "input": 5, "previous_response_id": "r"},
    ]
    async with running() as url, connected(url + "/v1") as connection:
        socket = (await connection.usable_socket())._socket
        for message in wrong:
            await socket.send(json.dumps(message).encode())
        await socket.send(b"[" * 5000)
        refusals: list[Any] = []
        with anyio.fail_after(5):
            while len(refusals) < 4:
                refusals += [json.loads(message) for message in socket.feed(await socket.read())]
    codes = [refusal["error"]["code"] for refusal in refusals]
    assert codes == ["invalid_type"] * 3 + ["invalid_event"]


@pytest.mark.anyio
async def test_response_that_has_ended_cannot_be_steered() -> None:
    async with running() as url, connected(url + "/v1") as connection:
        async with connection.stream("x") as stream:
            async for _ in stream:
                pass
        ended = stream.response.response_id or ""
        with pytest.raises(StreamError) as raised:
            await connection.steer(ended, "y")
    assert raised.value.code == "response_already_completed"


@pytest.mark.anyio
async def test_another_path_has_no_websocket() -> None:
    async with running() as url:
        with pytest.raises(StreamError) as raised:
            async with connected(url + "/v2"):
                pass
    assert (raised.value.kind, raised.value.status) == ("not_found", 404)
