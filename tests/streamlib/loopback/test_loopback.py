"""The loopback provider: a real server whose answers follow from the request, and whose faults are real ones."""

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
from streamlib.loopback import Behaviour, echo_response, serve
from streamlib.loopback.responses import example
from streamlib.wires.routes import Route, route
from streamlib_parsers.protocol import WIRE_APIS

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


async def ask(url: str, prompt: Prompt = HELLO, wire_api: WireApi = "messages") -> httpx.Response:
    base = {"chat": "/v1", "responses": "/v1", "gemini": "/v1beta"}.get(wire_api, "")
    request = build(prompt, "echo", provider="loopback", wire_api=wire_api, base_url=url + base)
    async with httpx.AsyncClient() as client:
        return await client.post(request.url, content=request.body, headers=request.headers)


def read(reply: httpx.Response, wire_api: WireApi = "messages") -> Any:
    p = parser(wire_api, headers=reply.headers)
    return accumulate([*p.feed(reply.content), *p.close()])


def test_the_same_prompt_gives_the_same_events() -> None:
    assert echo_response(HELLO) == echo_response(HELLO)
    assert accumulate(echo_response(HELLO)).text.startswith("You said: hello there")


def test_it_thinks_where_asked_and_calls_the_tool_it_was_offered() -> None:
    response = accumulate(echo_response(Prompt(input="weather?", tools=[TOOL], reasoning="low")))
    assert [type(item) for item in response.items] == [Reasoning, Message, FunctionCall]
    assert response.calls[0].parsed() == {"city": "text", "days": 1}  # type: ignore[union-attr]
    assert (response.stop_reason, response.unfinished) == ("tool_calls", True)


def test_it_says_what_the_tool_gave() -> None:
    call = FunctionCall("c", "get_weather", "{}")
    assert (
        accumulate(
            echo_response(Prompt(input=[user("w"), call, call.output("18C")], tools=[TOOL]))
        ).text
        == "The tool says: 18C"
    )


def test_the_named_tool_is_the_one_it_calls_and_none_is_none() -> None:
    other = ToolSpec("other")
    assert (
        accumulate(echo_response(Prompt(input="x", tools=[TOOL, other], tool_choice="other")))
        .calls[0]
        .name
        == "other"
    )
    assert (
        accumulate(echo_response(Prompt(input="x", tools=[TOOL], tool_choice="none"))).calls == []
    )


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
def test_arguments_are_made_of_the_tools_schema(schema: Any, value: Any) -> None:
    assert example(schema) == value


@pytest.mark.parametrize("wire_api", WIRE_APIS)
@pytest.mark.parametrize("stream", [True, False])
async def test_every_wire_is_answered_as_stream_and_as_body(
    wire_api: WireApi, stream: bool
) -> None:
    if not stream and wire_api in ("gemini", "converse", "invoke"):
        return  # the path asks for a stream there; their bodies are asked for below
    prompt = Prompt(input="hello there", tools=[TOOL], reasoning="low", stream=stream)
    async with loopback() as url:
        reply = await ask(url, prompt, wire_api)
    assert reply.status_code == 200, reply.text
    response = read(reply, wire_api) if stream else accumulate(parse_body(wire_api, reply.content))
    assert response.status == "completed"
    assert response.text == "I will ask get_weather."
    assert [call.parsed() for call in response.calls] == [{"city": "text", "days": 1}]
    assert response.stop_reason == "tool_calls"


async def test_a_recording_is_sent_as_it_is_in_chunks() -> None:
    body = (
        b'data: {"type":"message_start","message":{"id":"r"}}\n\ndata: {"type":"message_stop"}\n\n'
    )
    async with loopback(Behaviour((body,), chunk=7)) as url:
        reply = await ask(url)
    assert reply.content == body


@pytest.mark.parametrize(("fault", "kind"), [("truncate", "truncated"), ("malformed", "malformed")])
async def test_faults_end_the_stream_as_named(fault: Any, kind: str) -> None:
    async with loopback(Behaviour(fault=fault, at=4)) as url:
        response = read(await ask(url))
    assert response.error.kind == kind


async def test_a_disconnect_is_a_real_one() -> None:
    async with loopback(Behaviour(fault="disconnect", at=4)) as url:
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await ask(url)


async def test_a_stall_lasts_until_the_client_goes() -> None:
    async with loopback(Behaviour(fault="stall", at=2)) as url:
        with anyio.move_on_after(0.3) as scope:
            await ask(url)
    assert scope.cancelled_caught


@pytest.mark.parametrize(
    "first", [{"fault": "truncate", "at": 4}, {"status": 529}], ids=["fault", "status"]
)
async def test_the_requests_behind_the_failing_ones_go_well(first: dict[str, Any]) -> None:
    async with loopback(Behaviour(failing=2, **first)) as url:
        replies = [await ask(url) for _ in range(4)]
    assert [
        reply.status_code == 200 and read(reply).status == "completed" for reply in replies
    ] == [False, False, True, True]


async def test_what_is_no_request_of_a_wire_does_not_count_as_a_failing_one() -> None:
    async with loopback(Behaviour(status=529, failing=1)) as url:
        async with httpx.AsyncClient() as client:
            assert [
                (await client.get(f"{url}/v1/models")).status_code,
                (await client.post(f"{url}/v1/messages", content=b"[]")).status_code,
            ] == [
                404,
                400,
            ]
        assert [(await ask(url)).status_code for _ in range(2)] == [529, 200]


@pytest.mark.parametrize(
    "first", [{"fault": "disconnect", "at": 0}, {"status": 529}], ids=["fault", "status"]
)
async def test_the_request_behind_a_failing_one_gets_the_recording_that_it_did_not(
    first: dict[str, Any],
) -> None:
    """Whatever the size of its chunk: what breaks off is a chunk of the size that was said."""
    recordings = tuple(b": %s\n\n" % (letter * 5_000) for letter in (b"a", b"b"))
    async with loopback(Behaviour(recordings, failing=1, **first)) as url:
        if "fault" in first:
            with pytest.raises(
                (httpx.ReadError, httpx.RemoteProtocolError), match=r"^(?!.*malformed)"
            ):
                await ask(url)
        else:
            reply = await ask(url)
            assert (reply.status_code, reply.json()["error"]["type"]) == (529, "overloaded_error")
        assert [(await ask(url)).content for _ in range(3)] == [
            recordings[0],
            recordings[1],
            recordings[0],
        ]


def test_fewer_requests_than_none_cannot_fail() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Behaviour(failing=-1)


async def test_a_body_that_is_no_request_is_answered_with_the_wires_own_error() -> None:
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
            assert (
                await client.post(
                    f"{url}/v1/messages", content=build(HELLO, "e", provider="loopback").body
                )
            ).status_code == 200


async def test_rate_limits_come_with_every_answer() -> None:
    async with loopback() as url:
        limits = read(await ask(url)).rate_limits
    assert (limits.requests.remaining, limits.request_id) == (999, "req_loopback")


@pytest.mark.parametrize(
    ("path", "found"),
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
def test_the_path_tells_the_wire(path: str, found: Route | None) -> None:
    assert route(path) == found


def test_an_answer_is_complete_on_its_own() -> None:
    assert isinstance(echo_response(HELLO)[-1], Completed)
