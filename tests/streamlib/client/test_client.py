"""The client, end to end over real HTTP: what it sends, what comes back, and that everything is the same on both loops."""

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
from streamlib.loopback import Behaviour, serve
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
from tests.support.clients import LIBRARIES, Memory, asked, client, opened
from tests.support.response_bodies import (
    CALL,
    MESSAGE,
    SAID,
    WHOLE_BODY,
    arguments,
    calls,
    finish,
    part,
    sse,
    stop,
)
from tests.support.response_bodies import LAST as STOP
from tests.support.scripted_server import HANG, Wait, chunk, head, scripted, whole

MODEL: Final = "loopback:echo"
WEATHER: Final = ToolSpec(
    "get_weather",
    "The weather somewhere",
    {"type": "object", "properties": {"city": {"type": "string"}}},
)


# --- through the loopback provider ---


@pytest.mark.parametrize("http", [None, *LIBRARIES])
async def test_a_conversation_with_a_tool_goes_on_to_its_end(http: str | None) -> None:
    inner = opened(http) if http else None
    async with anyio.create_task_group() as group:
        url = await group.start(serve, Behaviour())
        async with Client(base_url=url, http=inner) as asking:
            history: list[Any] = [user("What is the weather?")]
            first = await asking.respond(
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
            second = await asking.respond(Prompt(history, tools=[WEATHER]), model=MODEL)
            assert second.text == "The tool says: text is sunny"
            assert not second.unfinished
        if inner is not None:
            await inner.aclose()
        group.cancel_scope.cancel()


async def test_a_prompt_may_be_a_text_a_history_or_a_request() -> None:
    async with anyio.create_task_group() as group:
        url = await group.start(serve, Behaviour())
        async with Client(base_url=url) as asking:
            request = build(Prompt("hi"), MODEL, base_url=url)
            said = {
                (await asking.respond(one, model=MODEL)).text
                for one in ("hi", Prompt("hi"), [user("hi")])
            }
            said.add((await asking.respond(request)).text)
            said.add((await asking.respond("hi", provider="loopback", model="echo")).text)
        group.cancel_scope.cancel()
    assert len(said) == 1


async def test_the_events_are_those_of_the_bytes_whatever_carries_them() -> None:
    logs: list[list[Any]] = []
    for http in LIBRARIES:
        for chunk_size in (None, 7):
            async with anyio.create_task_group() as group:
                url = await group.start(serve, Behaviour(chunk=chunk_size))
                async with opened(http) as inner, Client(base_url=url, http=inner) as asking:
                    async with asking.stream("hi", model=MODEL) as stream:
                        events = [event async for event in stream]
                    logs.append([(type(event), getattr(event, "delta", None)) for event in events])
                group.cancel_scope.cancel()
    assert all(log == logs[0] for log in logs)
    assert [kind for kind, _ in logs[0][:2]] == [RateLimits, Created]
    assert logs[0][-1][0] is Completed


async def test_what_is_known_before_the_first_event() -> None:
    async with (
        scripted([head(request_id="req_1", retry_after="3"), HANG]) as server,
        client(server.url) as asking,
    ):
        stream = asking.stream(asked(server.url))
        async with stream:
            assert stream.status == 200
            assert stream.headers["request-id"] == "req_1"
            assert stream.rate_limits is not None
            assert (stream.rate_limits.request_id, stream.rate_limits.retry_after) == ("req_1", 3.0)
            assert stream.request.url == f"{server.url}/messages"
            assert stream.response == Response(timing=stream.timing)


# --- what is sent ---


async def test_a_prompt_is_built_for_its_provider_and_sent_there() -> None:
    memory = Memory([MESSAGE])
    async with Client(http=memory, api_key="k-1", wire_api="messages") as asking:
        await asking.respond(
            Prompt("hi", instructions="Be brief."), model="anthropic:claude-opus-5"
        )
    ((method, url, headers, body, _),) = memory.sent
    assert (method, url) == ("POST", "https://api.anthropic.com/v1/messages")
    assert headers["x-api-key"] == "k-1"
    assert headers["anthropic-version"]
    assert headers["user-agent"].startswith("streamlib")
    assert json.loads(body)["model"] == "claude-opus-5"


async def test_base_url_and_wire_of_the_call_go_before_those_of_the_client() -> None:
    memory = Memory([MESSAGE])
    async with Client(http=memory, base_url="http://127.0.0.1:1", wire_api="chat") as asking:
        stream = asking.stream(
            "hi", model="custom:any", base_url="http://127.0.0.1:2", wire_api="messages"
        )
        assert (stream.request.url, stream.request.wire_api) == (
            "http://127.0.0.1:2/v1/messages",
            "messages",
        )


async def test_a_provider_of_ones_own_is_found_by_name() -> None:
    acme = Provider("acme", wires=("messages",), base_url="https://acme.example", auth="bearer")
    memory = Memory([MESSAGE])
    async with Client(http=memory, providers=[acme], api_key="k-1") as asking:
        response = await asking.respond("hi", model="acme:m-9")
    assert memory.sent[0][1] == "https://acme.example/v1/messages"
    assert memory.sent[0][2]["authorization"] == "Bearer k-1"
    assert response.items[0].origin is not None
    assert response.items[0].origin.provider == "acme"


@pytest.mark.parametrize(
    "model", ["a\nb", "a b", "", "nobody", "anthropc:x", "acme:m\r\nx-evil: 1"]
)
async def test_what_cannot_be_built_is_said_before_anything_is_sent(model: str) -> None:
    memory = Memory([MESSAGE])
    async with Client(http=memory) as asking:
        with pytest.raises(StreamError) as raised:
            asking.stream(
                "hi",
                model=model
                if ":" in model
                else f"loopback:{model}"
                if model != "nobody"
                else model,
            )
    assert (raised.value.kind, memory.sent) == ("invalid_request", [])


@pytest.mark.parametrize("value", ["x\r\nevil: 1", "x\ny", "\x00", "é", " x"], ids=repr)
async def test_no_value_can_add_a_header(value: str) -> None:
    evil = Provider(
        "evil",
        wires=("messages",),
        base_url="http://127.0.0.1:9",
        headers={"x-conversation": value},
    )
    memory = Memory([MESSAGE])
    async with Client(http=memory, providers=[evil]) as asking:
        with pytest.raises(StreamError) as raised:
            await asking.respond("hi", model="evil:m")
    assert (raised.value.kind, memory.sent) == ("invalid_request", [])


async def test_a_missing_key_is_told_while_iterating_and_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    memory = Memory([MESSAGE])
    async with (
        Client(http=memory) as asking,
        asking.stream("hi", model="anthropic:claude-opus-5") as stream,
    ):
        with pytest.raises(StreamError, match="ANTHROPIC_API_KEY"):
            await anext(stream)
    assert memory.sent == []
    assert stream.response.error is not None
    assert stream.response.error.kind == "authentication"


# --- what comes back ---


async def test_names_are_mapped_back_and_items_bear_their_origin() -> None:
    tool = ToolSpec("weather.get!", schema={"type": "object"})
    async with Client(http=Memory([MESSAGE]), base_url="http://127.0.0.1:1") as asking:
        request = asking.stream(Prompt("hi", tools=[tool]), model=MODEL).request
    (sent,) = request.names
    body = (
        CALL.replace(b"get_weather", sent.encode())
        + arguments("{}")
        + stop()
        + finish("tool_use")
        + STOP
    )
    async with Client(http=Memory([body]), base_url="http://127.0.0.1:1") as asking:
        response = await asking.respond(Prompt("hi", tools=[tool]), model=MODEL)
    assert [call.name for call in response.calls] == ["weather.get!"]
    assert response.items[0].origin == request.origin


async def test_calls_without_an_id_get_one_that_no_other_turn_has() -> None:
    body = (
        calls({"index": 0, "function": {"name": "f", "arguments": "{}"}})
        + part(finish_reason="tool_calls")
        + sse("[DONE]")
    )
    ids: list[str] = []
    async with client("http://m.example", Memory([body])) as asking:
        for content in (b"1", b"2", b"1"):
            response = await asking.respond(asked("http://m.example", "chat", content))
            ids += [call.call_id for call in response.calls]
    assert ids[0] == ids[2] != ids[1]


async def test_a_body_that_was_not_streamed_gives_the_same_response() -> None:
    for kind in ("application/json", "application/json; charset=utf-8", "text/plain", ""):
        async with client(
            "http://m.example",
            Memory([WHOLE_BODY[:9], WHOLE_BODY[9:]], headers={"content-type": kind}),
        ) as asking:
            response = await asking.respond(asked("http://m.example"))
        assert (response.text, response.stop_reason) == (SAID, "stop"), kind


async def test_a_stream_that_calls_itself_json_is_a_stream() -> None:
    headers = {"content-type": "application/json"}
    asking = client(
        "http://m.example", Memory([b"\n", b" \n", MESSAGE[:500], MESSAGE[500:]], headers=headers)
    )
    async with asking.stream(asked("http://m.example")) as stream:
        batches = [batch async for batch in stream.batches()]
    assert stream.response.text == SAID
    assert len(batches) > 1


async def test_a_body_of_json_is_bounded_too() -> None:
    headers = {"content-type": "application/json"}
    async with client(
        "http://m.example",
        Memory([b"{" + b" " * 9000] * 99, headers=headers),
        limits=Limits(response_bytes=50_000),
    ) as asking:
        with pytest.raises(StreamError) as raised:
            await asking.respond(asked("http://m.example"))
    assert raised.value.kind == "limit_exceeded"


@pytest.mark.parametrize(
    "location",
    ["http://[", "//x.example/a", "", "\x01", "https://user:pw@y.example/?key=1"],
    ids=repr,
)
async def test_a_redirect_to_anywhere_is_an_error_of_ours(location: str) -> None:
    async with client(
        "http://m.example", Memory([], status=302, headers={"location": location}), errors="event"
    ) as asking:
        response = await asking.respond(asked("http://m.example"))
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("invalid_request", "redirect")
    assert "pw" not in response.error.message
    assert "key=1" not in response.error.message


async def test_a_head_that_is_too_long_is_no_head() -> None:
    async with client(
        "http://m.example",
        Memory([MESSAGE], headers={f"x-{n}": "y" * 1000 for n in range(70)}),
        errors="event",
    ) as asking:
        response = await asking.respond(asked("http://m.example"))
    assert response.error is not None
    assert response.error.kind == "malformed"


async def test_errors_as_events_end_in_failed_and_raise_nothing() -> None:
    async with client("http://m.example", Memory([b"{}"], status=401), errors="event") as asking:
        async with asking.stream(asked("http://m.example")) as stream:
            events = [event async for event in stream]
        assert [type(event) for event in events] == [RateLimits, Failed]
        assert (await asking.respond(asked("http://m.example"))).status == "failed"
        with pytest.raises(StreamError):
            await asking.respond(asked("http://m.example"), errors="raise")


async def test_an_error_body_is_read_no_further_than_it_says_anything() -> None:
    """And its connection is closed; a short one is read whole and its connection kept."""
    endless = [head("500 x", "text/html"), *[chunk(b"<p>" + b"x" * 8000)] * 100, HANG]
    async with (
        scripted(endless) as server,
        client(server.url, retry=RetryPolicy(retries=0), errors="event") as asking,
    ):
        response = await asking.respond(asked(server.url))
        assert response.error is not None
        assert response.error.status == 500
        assert len(repr(response.error)) < 6000
        await server.quiet()
        assert server.open == 0


# --- many at once ---


@pytest.mark.parametrize("http", LIBRARIES)
async def test_one_client_serves_a_hundred_streams_at_once(http: str) -> None:
    answer = [
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
        scripted(answer) as server,
        opened(http) as inner,
        client(server.url, inner) as asking,
    ):

        async def one() -> None:
            texts.append((await asking.respond(asked(server.url))).text)

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(one)
    assert texts == [SAID] * 100


async def test_more_streams_than_connections_wait_their_turn() -> None:
    async with (
        scripted([Wait(0.005), *whole(MESSAGE)]) as server,
        client(server.url, connections=3) as asking,
    ):
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(asking.respond, asked(server.url))
        assert (server.connections, len(server.requests)) == (3, 20)


def test_the_options_that_can_be_passed_on_are_those_of_a_stream() -> None:
    parameters = inspect.signature(Client.stream).parameters.values()
    assert set(StreamOptions.__annotations__) == {
        one.name for one in parameters if one.kind is one.KEYWORD_ONLY
    }


async def test_a_closed_client_says_so() -> None:
    asking = Client()
    await asking.aclose()
    await asking.aclose()
    assert repr(asking) == "<Client closed>"
    with pytest.raises(RuntimeError, match="closed"):
        asking.stream("hi", model=MODEL)


async def test_a_client_that_closes_breaks_what_is_open() -> None:
    async with scripted([head(), chunk(MESSAGE[:400]), HANG]) as server:
        asking = client(server.url, errors="event", deadlines=Deadlines(idle=5))
        async with asking.stream(asked(server.url)) as stream, anyio.create_task_group() as group:
            await anext(stream)

            async def close() -> None:
                await anyio.sleep(0.02)
                await asking.aclose()

            group.start_soon(close)
            with anyio.fail_after(2):
                events = [event async for event in stream]
        assert isinstance(events[-1], Failed)
        await server.quiet()
        assert server.open == 0


# --- without HTTP of ours ---


async def test_bytes_from_anywhere_become_the_same_stream() -> None:
    """A file, aiohttp, botocore: whatever iterates."""

    async def lines() -> Any:
        for line in MESSAGE.splitlines(keepends=True):
            yield line

    async with streamlib.ResponseStream.from_chunks(lines(), parser("messages")) as stream:
        events = [event async for event in stream]
    assert accumulate(events).text == SAID
    with pytest.raises(LookupError):
        _ = stream.request
