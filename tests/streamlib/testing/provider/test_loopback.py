"""The loopback provider: a real server with deterministic responses and real faults."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from streamlib import (
    Completed,
    FunctionCall,
    Message,
    Prompt,
    Reasoning,
    ToolSpec,
    WireApi,
    accumulate,
    build,
    parse_body,
    parser,
    user,
)
from streamlib.client.model_list import read_models
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.testing import Behaviour, echo_response, serve
from streamlib.testing.provider.provider import MODEL_LISTS
from streamlib.testing.provider.responses import example
from streamlib.wires.routes import Route, route
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case

TOOL = ToolSpec(
    "get_weather",
    "d",
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
)
HELLO = Prompt(input="hello there", stream=True)


@asynccontextmanager
async def loopback(behaviour: Behaviour | None = None) -> AsyncIterator[str]:
    async with anyio.create_task_group() as group:
        yield await group.start(serve, behaviour or Behaviour())
        group.cancel_scope.cancel()


async def send(url: str, prompt: Prompt = HELLO, wire_api: WireApi = "messages") -> httpx.Response:
    base_url = url + WIRE_SPECS[wire_api].root_path
    request = build(prompt, "echo", provider="loopback", wire_api=wire_api, base_url=base_url)
    async with httpx.AsyncClient() as client:
        return await client.post(request.url, content=request.body, headers=request.headers)


def read(reply: httpx.Response, wire_api: WireApi = "messages") -> Any:
    parse = parser(wire_api, headers=reply.headers)
    return accumulate([*parse.feed(reply.content), *parse.close()])


def test_echo_response_is_deterministic() -> None:
    assert echo_response(HELLO) == echo_response(HELLO)
    assert accumulate(echo_response(HELLO)).text.startswith("You said: hello there")


def test_echo_response_has_reasoning_and_calls_the_tool() -> None:
    response = accumulate(echo_response(Prompt(input="weather?", tools=[TOOL], reasoning="low")))
    assert [type(item) for item in response.items] == [Reasoning, Message, FunctionCall]
    assert response.calls[0].parsed() == {"city": "text", "days": 1}  # type: ignore[union-attr]
    assert (response.stop_reason, response.unfinished) == ("tool_calls", True)


def test_echo_response_repeats_the_tool_output() -> None:
    call = FunctionCall("c", "get_weather", "{}")
    prompt = Prompt(input=[user("w"), call, call.output("18C")], tools=[TOOL])
    assert accumulate(echo_response(prompt)).text == "The tool says: 18C"


def test_echo_response_follows_the_tool_choice() -> None:
    other = ToolSpec("other")
    named = Prompt(input="x", tools=[TOOL, other], tool_choice="other")
    assert accumulate(echo_response(named)).calls[0].name == "other"
    none = Prompt(input="x", tools=[TOOL], tool_choice="none")
    assert accumulate(echo_response(none)).calls == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {
                "type": "object",
                "properties": {"a": {"enum": ["x"]}, "b": {"type": ["integer", "null"]}},
            },
            {"a": "x", "b": 1},
        ),
        ({"type": "array", "items": {"type": "boolean"}}, [True]),
        ({"const": 3}, 3),
        ({"default": "d"}, "d"),
        ({}, {}),
    ],
)
def test_arguments_follow_the_schema_of_the_tool(schema: Any, value: Any) -> None:
    assert example(schema) == value


@pytest.mark.parametrize("wire_api", WIRE_APIS)
@pytest.mark.parametrize("stream", [True, False])
async def test_every_wire_is_served_as_stream_and_as_body(wire_api: WireApi, stream: bool) -> None:
    if not stream and wire_api in ("gemini", "converse", "invoke"):
        return  # the path of `build` streams there
    prompt = Prompt(input="hello there", tools=[TOOL], reasoning="low", stream=stream)
    async with loopback() as url:
        reply = await send(url, prompt, wire_api)
    assert reply.status_code == 200, reply.text
    if stream:
        response = read(reply, wire_api)
    else:
        response = accumulate(parse_body(wire_api, reply.content))
    assert response.status == "completed"
    assert response.text == "I will ask get_weather."
    assert [call.parsed() for call in response.calls] == [{"city": "text", "days": 1}]
    assert response.stop_reason == "tool_calls"


async def test_recording_is_sent_unchanged_in_chunks() -> None:
    body = (
        b'data: {"type":"message_start","message":{"id":"r"}}\n\ndata: {"type":"message_stop"}\n\n'
    )
    async with loopback(Behaviour((body,), chunk=7)) as url:
        reply = await send(url)
    assert reply.content == body


@pytest.mark.parametrize(("fault", "kind"), [("truncate", "truncated"), ("malformed", "malformed")])
async def test_fault_ends_the_stream_with_its_error_kind(fault: Any, kind: str) -> None:
    async with loopback(Behaviour(fault=fault, at=4)) as url:
        response = read(await send(url))
    assert response.error.kind == kind


async def test_disconnect_resets_the_connection() -> None:
    async with loopback(Behaviour(fault="disconnect", at=4)) as url:
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await send(url)


async def test_stall_lasts_until_the_client_disconnects() -> None:
    async with loopback(Behaviour(fault="stall", at=2)) as url:
        with anyio.move_on_after(0.3) as scope:
            await send(url)
    assert scope.cancelled_caught


@pytest.mark.parametrize(
    "first", [{"fault": "truncate", "at": 4}, {"status": 529}], ids=["fault", "status"]
)
async def test_requests_after_the_failing_ones_succeed(first: dict[str, Any]) -> None:
    async with loopback(Behaviour(failing=2, **first)) as url:
        replies = [await send(url) for _ in range(4)]
    succeeded = [
        reply.status_code == 200 and read(reply).status == "completed" for reply in replies
    ]
    assert succeeded == [False, False, True, True]


async def test_request_of_no_wire_does_not_count_as_failing() -> None:
    async with loopback(Behaviour(status=529, failing=1)) as url:
        async with httpx.AsyncClient() as client:
            unknown = await client.get(f"{url}/v1/files")
            invalid = await client.post(f"{url}/v1/messages", content=b"[]")
            assert (unknown.status_code, invalid.status_code) == (404, 400)
        assert [(await send(url)).status_code for _ in range(2)] == [529, 200]


@pytest.mark.parametrize(
    "first", [{"fault": "disconnect", "at": 0}, {"status": 529}], ids=["fault", "status"]
)
async def test_retry_gets_the_recording_of_the_failing_request(
    first: dict[str, Any],
) -> None:
    """With any chunk size: the reset is inside a chunk, so httpx must not call it malformed."""
    recordings = tuple(b": %s\n\n" % (letter * 5_000) for letter in (b"a", b"b"))
    async with loopback(Behaviour(recordings, failing=1, **first)) as url:
        if "fault" in first:
            with pytest.raises(
                (httpx.ReadError, httpx.RemoteProtocolError), match=r"^(?!.*malformed)"
            ):
                await send(url)
        else:
            reply = await send(url)
            assert (reply.status_code, reply.json()["error"]["type"]) == (529, "overloaded_error")
        bodies = [(await send(url)).content for _ in range(3)]
        assert bodies == [recordings[0], recordings[1], recordings[0]]


def test_negative_failing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Behaviour(failing=-1)


async def test_invalid_request_gets_an_error_of_the_wire() -> None:
    async with loopback() as url, httpx.AsyncClient() as client:
        reply = await client.post(f"{url}/v1/messages", content=b"[]")
        missing = await client.get(f"{url}/nowhere")
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")
    assert missing.status_code == 404


async def test_one_connection_serves_many_requests() -> None:
    async with (
        loopback() as url,
        httpx.AsyncClient(limits=httpx.Limits(max_connections=1)) as client,
    ):
        for _ in range(5):
            body = build(HELLO, "e", provider="loopback").body
            reply = await client.post(f"{url}/v1/messages", content=body)
            assert reply.status_code == 200


async def test_every_response_has_rate_limits() -> None:
    async with loopback() as url:
        limits = read(await send(url)).rate_limits
    assert (limits.requests.remaining, limits.request_id) == (999, "req_loopback")


@each_case(
    "path, expected",
    [
        ("/v1/messages", Route("messages")),
        ("/messages?beta=true", Route("messages")),
        ("/v1/chat/completions", Route("chat")),
        ("/v1/responses", Route("responses")),
        (
            "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
            Route("gemini", True, "gemini-x"),
        ),
        ("/v1/models/gemini-x:generateContent", Route("gemini", False, "gemini-x")),
        (
            "/model/us.anthropic.claude%3A0/converse-stream",
            Route("converse", True, "us.anthropic.claude:0"),
        ),
        ("/model/x/invoke", Route("invoke", False, "x")),
        ("/api/chat", Route("ollama")),
        ("/v1/embeddings", None),
        ("/model/a/b/converse", None),
    ],
)
def test_path_selects_the_wire(path: str, expected: Route | None) -> None:
    assert route(path) == expected


def test_echo_response_ends_with_completed() -> None:
    assert isinstance(echo_response(HELLO)[-1], Completed)


async def test_head_request_has_a_response_without_body() -> None:
    """Claude Code sends one first; it ended the server."""
    async with loopback() as url, httpx.AsyncClient() as client:
        for path, status in (("", 200), ("/v1/files", 404)):
            reply = await client.head(url + path)
            assert (reply.status_code, reply.content) == (status, b"")
        assert (await send(url)).status_code == 200


async def test_front_page_tells_how_to_try_it() -> None:
    async with loopback() as url, httpx.AsyncClient() as client:
        page = await client.get(f"{url}/")
        posted = await client.post(f"{url}/")
    assert (page.status_code, posted.status_code) == (200, 404)
    assert page.headers["content-type"] == "text/plain; charset=utf-8"
    assert f"  curl {url}/v1/chat/completions" in page.text
    assert all(name in page.text for name in WIRE_APIS)


@pytest.mark.parametrize("path", MODEL_LISTS)
async def test_model_list_has_one_model(path: str) -> None:
    async with loopback() as url, httpx.AsyncClient() as client:
        response = await client.get(f"{url}{path}?limit=1000")
    listed = read_models(response.content)
    assert isinstance(listed, list)
    assert [model.id for model in listed] == ["echo"]
