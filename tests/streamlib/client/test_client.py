"""The client, end to end over real HTTP: requests and responses, equal on both event loops."""

from __future__ import annotations

import inspect
import json
from typing import Any, Final

import anyio
import pytest

import streamlib
from streamlib import (
    Client,
    Deadlines,
    Prompt,
    Provider,
    Response,
    StreamError,
    ToolSpec,
    build,
    user,
)
from streamlib.client import StreamOptions
from streamlib.client.retry import RetryPolicy
from streamlib.testing import Behaviour, serve
from streamlib_parsers import (
    Completed,
    Created,
    Failed,
    FunctionCall,
    Limits,
    RateLimits,
    accumulate,
    parser,
)
from streamlib_parsers.items import WireApi
from tests.support.clients import (
    KEY,
    LIBRARIES,
    MemoryTransport,
    make_client,
    make_request,
    open_http,
)
from tests.support.response_bodies import (
    CALL,
    COMPLETE_BODY,
    HELLO_TEXT,
    MESSAGE,
    arguments,
    calls,
    finish,
    part,
    sse,
    stop,
)
from tests.support.response_bodies import LAST as STOP
from tests.support.scripted_server import HANG, Wait, chunk, complete_response, head, scripted

MODEL: Final = "loopback:echo"
WEATHER: Final = ToolSpec(
    "get_weather",
    "The weather somewhere",
    {"type": "object", "properties": {"city": {"type": "string"}}},
)


# --- through the loopback provider ---


@pytest.mark.parametrize("http", [None, *LIBRARIES])
async def test_conversation_with_a_tool_completes(http: str | None) -> None:
    inner = open_http(http) if http else None
    async with anyio.create_task_group() as group:
        url = await group.start(serve, Behaviour())
        async with Client(base_url=url, http=inner) as client:
            history: list[Any] = [user("What is the weather?")]
            first = await client.respond(
                Prompt(history, tools=[WEATHER], reasoning="high"), model=MODEL
            )
            assert first.stop_reason == "tool_calls"
            assert first.reasoning
            history += first.items
            history += [
                call.output(f"{call.parsed()['city']} is sunny")
                for call in first.calls
                if isinstance(call, FunctionCall)
            ]
            second = await client.respond(Prompt(history, tools=[WEATHER]), model=MODEL)
            assert second.text == "The tool says: text is sunny"
            assert not second.unfinished
        if inner is not None:
            await inner.aclose()
        group.cancel_scope.cancel()


async def test_prompt_may_be_text_history_or_request() -> None:
    async with anyio.create_task_group() as group:
        url = await group.start(serve, Behaviour())
        async with Client(base_url=url) as client:
            request = build(Prompt("hi"), MODEL, base_url=url)
            texts = {
                (await client.respond(prompt, model=MODEL)).text
                for prompt in ("hi", Prompt("hi"), [user("hi")])
            }
            texts.add((await client.respond(request)).text)
            texts.add((await client.respond("hi", provider="loopback", model="echo")).text)
        group.cancel_scope.cancel()
    assert len(texts) == 1


async def test_events_are_equal_for_each_library_and_chunk_size() -> None:
    logs: list[list[Any]] = []
    for http in LIBRARIES:
        for chunk_size in (None, 7):
            async with anyio.create_task_group() as group:
                url = await group.start(serve, Behaviour(chunk=chunk_size))
                async with open_http(http) as inner, Client(base_url=url, http=inner) as client:
                    async with client.stream("hi", model=MODEL) as stream:
                        events = [event async for event in stream]
                    logs.append([(type(event), getattr(event, "delta", None)) for event in events])
                group.cancel_scope.cancel()
    assert all(log == logs[0] for log in logs)
    assert [kind for kind, _ in logs[0][:2]] == [RateLimits, Created]
    assert logs[0][-1][0] is Completed


async def test_headers_are_known_before_the_first_event() -> None:
    async with (
        scripted([head(request_id="req_1", retry_after="3"), HANG]) as server,
        make_client(server.url) as client,
    ):
        stream = client.stream(make_request(server.url))
        async with stream:
            assert stream.status == 200
            assert stream.headers["request-id"] == "req_1"
            assert stream.rate_limits is not None
            assert (stream.rate_limits.request_id, stream.rate_limits.retry_after) == ("req_1", 3.0)
            assert stream.request.url == f"{server.url}/messages"
            assert stream.response == Response(timing=stream.timing)


# --- the request ---


async def test_prompt_is_built_for_and_sent_to_its_provider() -> None:
    memory = MemoryTransport([MESSAGE])
    async with Client(http=memory, api_key="k-1", wire_api="messages") as client:
        await client.respond(
            Prompt("hi", instructions="Be brief."), model="anthropic:claude-opus-5"
        )
    ((method, url, headers, body, _),) = memory.sent
    assert (method, url) == ("POST", "https://api.anthropic.com/v1/messages")
    assert headers["x-api-key"] == "k-1"
    assert headers["anthropic-version"]
    assert headers["user-agent"].startswith("streamlib")
    assert json.loads(body)["model"] == "claude-opus-5"


async def test_options_of_a_call_override_those_of_the_client() -> None:
    memory = MemoryTransport([MESSAGE])
    async with Client(http=memory, base_url="http://127.0.0.1:1", wire_api="chat") as client:
        stream = client.stream(
            "hi", model="custom:any", base_url="http://127.0.0.1:2", wire_api="messages"
        )
        assert (stream.request.url, stream.request.wire_api) == (
            "http://127.0.0.1:2/v1/messages",
            "messages",
        )


async def test_custom_provider_is_found_by_name() -> None:
    acme = Provider("acme", wires=("messages",), base_url="https://acme.example", auth="bearer")
    memory = MemoryTransport([MESSAGE])
    async with Client(http=memory, providers=[acme], api_key="k-1") as client:
        response = await client.respond("hi", model="acme:m-9")
    assert memory.sent[0][1] == "https://acme.example/v1/messages"
    assert memory.sent[0][2]["authorization"] == "Bearer k-1"
    assert response.items[0].origin is not None
    assert response.items[0].origin.provider == "acme"


@pytest.mark.parametrize(
    "model", ["a\nb", "a b", "", "nobody", "anthropc:x", "acme:m\r\nx-evil: 1"]
)
async def test_invalid_request_raises_before_anything_is_sent(model: str) -> None:
    memory = MemoryTransport([MESSAGE])
    if ":" not in model and model != "nobody":
        model = f"loopback:{model}"
    async with Client(http=memory) as client:
        with pytest.raises(StreamError) as raised:
            client.stream("hi", model=model)
    assert (raised.value.kind, memory.sent) == ("invalid_request", [])


@pytest.mark.parametrize("value", ["x\r\nevil: 1", "x\ny", "\x00", "é", " x"], ids=repr)
async def test_provider_header_value_cannot_add_a_header(value: str) -> None:
    evil = Provider(
        "evil",
        wires=("messages",),
        base_url="http://127.0.0.1:9",
        headers={"x-conversation": value},
    )
    memory = MemoryTransport([MESSAGE])
    async with Client(http=memory, providers=[evil]) as client:
        with pytest.raises(StreamError) as raised:
            await client.respond("hi", model="evil:m")
    assert (raised.value.kind, memory.sent) == ("invalid_request", [])


async def test_missing_key_raises_while_iterating(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    memory = MemoryTransport([MESSAGE])
    async with (
        Client(http=memory) as client,
        client.stream("hi", model="anthropic:claude-opus-5") as stream,
    ):
        with pytest.raises(StreamError, match="ANTHROPIC_API_KEY"):
            await anext(stream)
    assert memory.sent == []
    assert stream.response.error is not None
    assert stream.response.error.kind == "authentication"


# --- the response ---


async def test_tool_names_are_restored_and_items_have_an_origin() -> None:
    tool = ToolSpec("weather.get!", schema={"type": "object"})
    async with Client(http=MemoryTransport([MESSAGE]), base_url="http://127.0.0.1:1") as client:
        request = client.stream(Prompt("hi", tools=[tool]), model=MODEL).request
    (sent,) = request.names
    body = (
        CALL.replace(b"get_weather", sent.encode())
        + arguments("{}")
        + stop()
        + finish("tool_use")
        + STOP
    )
    async with Client(http=MemoryTransport([body]), base_url="http://127.0.0.1:1") as client:
        response = await client.respond(Prompt("hi", tools=[tool]), model=MODEL)
    assert [call.name for call in response.calls] == ["weather.get!"]
    assert response.items[0].origin == request.origin


async def test_generated_call_ids_differ_in_every_attempt() -> None:
    body = (
        calls({"index": 0, "function": {"name": "f", "arguments": "{}"}})
        + part(finish_reason="tool_calls")
        + sse("[DONE]")
    )
    ids: list[str] = []
    async with make_client("http://m.example", MemoryTransport([body])) as client:
        for content in (b"1", b"2", b"1"):
            response = await client.respond(make_request("http://m.example", "chat", content))
            ids += [call.call_id for call in response.calls]
    assert len(set(ids)) == 3


async def test_unstreamed_body_gives_the_same_response() -> None:
    for kind in ("application/json", "application/json; charset=utf-8", "text/plain", ""):
        async with make_client(
            "http://m.example",
            MemoryTransport([COMPLETE_BODY[:9], COMPLETE_BODY[9:]], headers={"content-type": kind}),
        ) as client:
            response = await client.respond(make_request("http://m.example"))
        assert (response.text, response.stop_reason) == (HELLO_TEXT, "stop"), kind


async def test_stream_labelled_as_json_is_streamed() -> None:
    headers = {"content-type": "application/json"}
    client = make_client(
        "http://m.example",
        MemoryTransport([b"\n", b" \n", MESSAGE[:500], MESSAGE[500:]], headers=headers),
    )
    async with client.stream(make_request("http://m.example")) as stream:
        batches = [batch async for batch in stream.batches()]
    assert stream.response.text == HELLO_TEXT
    assert len(batches) > 1


async def test_json_body_is_limited() -> None:
    headers = {"content-type": "application/json"}
    async with make_client(
        "http://m.example",
        MemoryTransport([b"{" + b" " * 9000] * 99, headers=headers),
        limits=Limits(response_bytes=50_000),
    ) as client:
        with pytest.raises(StreamError) as raised:
            await client.respond(make_request("http://m.example"))
    assert raised.value.kind == "limit_exceeded"


@pytest.mark.parametrize(
    "location",
    ["http://[", "//x.example/a", "", "\x01", "https://user:pw@y.example/?key=1"],
    ids=repr,
)
async def test_redirect_is_an_invalid_request(location: str) -> None:
    async with make_client(
        "http://m.example",
        MemoryTransport([], status=302, headers={"location": location}),
        errors="event",
    ) as client:
        response = await client.respond(make_request("http://m.example"))
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("invalid_request", "redirect")
    assert "pw" not in response.error.message
    assert "key=1" not in response.error.message


async def test_headers_over_their_limit_are_malformed() -> None:
    async with make_client(
        "http://m.example",
        MemoryTransport([MESSAGE], headers={f"x-{n}": "y" * 1000 for n in range(70)}),
        errors="event",
    ) as client:
        response = await client.respond(make_request("http://m.example"))
    assert response.error is not None
    assert response.error.kind == "malformed"


@pytest.mark.parametrize(
    ("media_type", "explanation"),
    [
        ("text/html; charset=utf-8", " (content-type: text/html; charset=utf-8)"),
        ("text/event-stream", ""),
        ("", ""),
    ],
)
async def test_malformed_stream_names_an_unusual_type(media_type: str, explanation: str) -> None:
    garbage = MemoryTransport([b"data: {<html>\n\n"], headers={"content-type": media_type})
    async with make_client("http://m.example", garbage, errors="event") as client:
        response = await client.respond(make_request("http://m.example"))
    assert response.error is not None
    assert response.error.kind == "malformed"
    assert ("(content-type" in response.error.message) is bool(explanation)
    assert explanation in response.error.message


async def test_errors_as_events_raise_nothing() -> None:
    async with make_client(
        "http://m.example", MemoryTransport([b"{}"], status=401), errors="event"
    ) as client:
        async with client.stream(make_request("http://m.example")) as stream:
            events = [event async for event in stream]
        assert [type(event) for event in events] == [RateLimits, Failed]
        assert (await client.respond(make_request("http://m.example"))).status == "failed"
        with pytest.raises(StreamError):
            await client.respond(make_request("http://m.example"), errors="raise")


async def test_error_body_is_limited_and_its_connection_closed() -> None:
    """A short one is read to its end, and its connection is kept."""
    endless = [head("500 x", "text/html"), *[chunk(b"<p>" + b"x" * 8000)] * 100, HANG]
    async with (
        scripted(endless) as server,
        make_client(server.url, retry=RetryPolicy(retries=0), errors="event") as client,
    ):
        response = await client.respond(make_request(server.url))
        assert response.error is not None
        assert response.error.status == 500
        assert len(repr(response.error)) < 6000
        await server.quiet()
        assert server.open == 0


# --- many at once ---


@pytest.mark.parametrize("http", LIBRARIES)
async def test_client_serves_a_hundred_streams_at_once(http: str) -> None:
    script = [
        head(),
        *(
            step
            for frame in MESSAGE.split(b"\n\n")
            if frame
            for step in (chunk(frame + b"\n\n"), Wait(0.001))
        ),
        b"0\r\n\r\n",
    ]
    texts: list[str] = []
    async with (
        scripted(script) as server,
        open_http(http) as inner,
        make_client(server.url, inner) as client,
    ):

        async def respond() -> None:
            texts.append((await client.respond(make_request(server.url))).text)

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(respond)
    assert texts == [HELLO_TEXT] * 100


async def test_streams_wait_when_connections_are_used_up() -> None:
    async with (
        scripted([Wait(0.005), *complete_response(MESSAGE)]) as server,
        make_client(server.url, connections=3) as client,
    ):
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(client.respond, make_request(server.url))
        assert (server.connections, len(server.requests)) == (3, 20)


def test_stream_options_are_the_keywords_of_stream() -> None:
    parameters = inspect.signature(Client.stream).parameters.values()
    assert set(StreamOptions.__annotations__) == {
        parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
    }


async def test_closed_client_raises() -> None:
    client = Client()
    await client.aclose()
    await client.aclose()
    assert repr(client) == "<Client closed>"
    with pytest.raises(RuntimeError, match="closed"):
        client.stream("hi", model=MODEL)


async def test_closing_the_client_ends_open_streams() -> None:
    async with scripted([head(), chunk(MESSAGE[:400]), HANG]) as server:
        client = make_client(server.url, errors="event", deadlines=Deadlines(idle=5))
        async with (
            client.stream(make_request(server.url)) as stream,
            anyio.create_task_group() as group,
        ):
            await anext(stream)

            async def close() -> None:
                await anyio.sleep(0.02)
                await client.aclose()

            group.start_soon(close)
            with anyio.fail_after(2):
                events = [event async for event in stream]
        assert isinstance(events[-1], Failed)
        await server.quiet()
        assert server.open == 0


# --- without our HTTP ---


async def test_from_chunks_gives_the_same_events() -> None:
    """A file, aiohttp, botocore: whatever iterates."""

    async def lines() -> Any:
        for line in MESSAGE.splitlines(keepends=True):
            yield line

    async with streamlib.ResponseStream.from_chunks(lines(), parser("messages")) as stream:
        events = [event async for event in stream]
    assert accumulate(events).text == HELLO_TEXT
    with pytest.raises(LookupError):
        _ = stream.request


@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize(
    "backends", [("asyncio", "asyncio"), ("asyncio", "trio"), ("trio", "asyncio")]
)
def test_client_of_another_event_loop_raises_a_clear_error(
    http: str, backends: tuple[str, str]
) -> None:
    """C10: raw internals of the HTTP library before, in about half of the calls."""
    first, second = backends
    client = make_client("http://127.0.0.1", open_http(http))

    async def served() -> None:
        async with scripted(complete_response(MESSAGE, connection="close")) as server:
            for _ in range(2):
                response = await client.respond(make_request(server.url), api_key=KEY)
                assert response.status == "completed"

    async def refused() -> None:
        async with scripted(complete_response(MESSAGE, connection="close")) as server:
            for _ in range(2):
                with pytest.raises(StreamError, match="create one Client in each") as raised:
                    await client.respond(make_request(server.url), api_key=KEY)
                assert (raised.value.kind, raised.value.info.code) == (
                    "invalid_request",
                    "event_loop",
                )

    anyio.run(served, backend=first)
    anyio.run(refused, backend=second)


@pytest.mark.parametrize("wire", ["converse", "invoke"])
async def test_betas_of_a_built_bedrock_request_are_refused(wire: WireApi) -> None:
    """They stand in its body: as a header they were sent, and had no effect."""
    model = "bedrock:anthropic.claude-opus-4-6-v1"
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    betas = {"anthropic-beta": "context-1m-2025-08-07"}
    async with Client(http=MemoryTransport([MESSAGE])) as client:
        request = build(Prompt("hi"), model, wire_api=wire, base_url=url)
        with pytest.raises(StreamError) as raised:
            client.stream(request, headers=betas)
        info = raised.value.info
        assert (info.kind, info.code) == ("invalid_request", "headers")
        stream = client.stream("hi", model, wire_api=wire, base_url=url, headers=betas)
        assert b"context-1m-2025-08-07" in stream.request.body
        assert "anthropic-beta" not in stream.request.headers
