"""Responses over WebSocket as a caller uses them: lanes, continuation, retries, the end."""

from __future__ import annotations

import gc
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from streamlib import (
    Completed,
    Created,
    ErrorInfo,
    Failed,
    FunctionCall,
    Prompt,
    RateLimits,
    ShellCall,
    ShellResult,
    StreamError,
    ToolSpec,
    user,
)
from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.client.websocket import LaneStream, lane_socket
from streamlib.providers.websocket import WebSocketSettings
from streamlib.testing import Behaviour, ReceivedRequest, Turn, running
from streamlib.transport.deadlines import Deadlines
from tests.support.websocket_scripts import (
    EXPECT,
    FOREVER,
    Close,
    Drop,
    connected,
    error_frame,
    response_frames,
    scripted_socket,
)

pytestmark = pytest.mark.anyio

LOOKUP = ToolSpec("lookup", "d", {"type": "object", "properties": {}})


async def read(stream: LaneStream) -> list[Any]:
    async with stream:
        return [event async for event in stream]


def inputs(received: list[ReceivedRequest]) -> list[tuple[str | None, int]]:
    """(previous_response_id, elements of the input) of each request."""
    return [
        (request.json.get("previous_response_id"), len(request.json["input"]))
        for request in received
    ]


async def test_events_equal_those_over_http() -> None:
    behaviour = Behaviour(turns=["Hello there"])
    async with running(behaviour) as url, Client() as client:
        http = client.stream("hi", "loopback:m", wire_api="responses", base_url=url + "/v1")
        async with http:
            expected = [event async for event in http if not isinstance(event, RateLimits)]
        async with client.connect("loopback:m", base_url=url + "/v1") as connection:
            found = await read(connection.stream("hi"))
    found = [event for event in found if not isinstance(event, RateLimits)]
    assert [type(event) for event in found] == [type(event) for event in expected]
    assert found[1:-1] == expected[1:-1]
    assert isinstance(found[-1], Completed)


async def test_lanes_run_side_by_side() -> None:
    async with running(Behaviour(turns=["one two three"])) as url, connected(url + "/v1") as both:
        async with both.stream("a", lane="a") as first, both.stream("b", lane="b") as second:
            async for _ in first:
                await anext(second, None)
            async for _ in second:
                pass
        assert (first.response.text, second.response.text) == ("one two three", "one two three")
        assert first.lane == "a"


async def test_many_readers_share_one_socket() -> None:
    done: list[str] = []
    async with running() as url, connected(url + "/v1") as connection:

        async def talk(name: str) -> None:
            for number in range(2):
                stream = connection.stream(f"{name} {number}", lane=name)
                await read(stream)
                done.append(stream.response.text)

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(talk, f"lane{number}")
    assert len(done) == 16
    assert all("You said: lane" in text for text in done)


async def test_only_what_is_new_is_sent() -> None:
    received: list[ReceivedRequest] = []
    turns = [FunctionCall("c1", "lookup", "{}"), "It is 42.", "Bye"]
    async with (
        running(Behaviour(turns=turns), on_request=received.append) as url,
        connected(url + "/v1") as connection,
    ):
        history = [user("look it up")]
        for _ in range(3):
            stream = connection.stream(Prompt(history, tools=[LOOKUP]))
            await read(stream)
            history.extend(stream.response.items)
            for call in stream.response.calls:
                history.append(call.output("42"))
            if not stream.response.calls:
                history.append(user("thanks"))
    assert [count for _, count in inputs(received)] == [1, 1, 1]
    assert [previous is None for previous, _ in inputs(received)] == [True, False, False]
    assert received[1].json["input"][0]["type"] == "function_call_output"
    assert stream.continued == received[2].json["previous_response_id"]


@pytest.mark.parametrize("change", ["history", "settings", "lane"])
async def test_another_history_is_sent_in_full(change: str) -> None:
    received: list[ReceivedRequest] = []
    async with (
        running(on_request=received.append) as url,
        connected(url + "/v1") as connection,
    ):
        first = connection.stream([user("one")])
        await read(first)
        history = [user("one"), *first.response.items, user("two")]
        prompt = Prompt(history)
        lane = None
        if change == "history":
            prompt = Prompt([user("another"), *history[1:]])
        elif change == "settings":
            prompt = Prompt(history, temperature=0.5)
        else:
            lane = "other"
        await read(connection.stream(prompt, lane))
    assert inputs(received)[1] == (None, 3)


async def test_input_that_differs_from_its_history_is_sent_in_full() -> None:
    """A call id that comes twice is renamed, which a request without the history cannot know."""
    received: list[ReceivedRequest] = []
    turns = [FunctionCall("c1", "lookup", "{}"), FunctionCall("c1", "lookup", "{}"), "Done"]
    async with (
        running(Behaviour(turns=turns), on_request=received.append) as url,
        connected(url + "/v1") as connection,
    ):
        history = [user("look it up twice")]
        for _ in turns:
            stream = connection.stream(Prompt(history, tools=[LOOKUP]))
            await read(stream)
            history.extend(stream.response.items)
            history.extend(call.output("42") for call in stream.response.calls)
    assert [count for _, count in inputs(received)] == [1, 1, 5]
    ids = [item["call_id"] for item in received[2].json["input"][1:]]
    assert ids[0] == ids[1] != ids[2] == ids[3]


async def test_an_incomplete_response_is_not_continued() -> None:
    script = [EXPECT, *response_frames("r1", "Half", end="incomplete"), EXPECT]
    script += response_frames("r2", "Two")
    async with scripted_socket(script) as server, connected(server.url) as connection:
        first = connection.stream([user("one")])
        await read(first)
        await read(connection.stream([user("one"), *first.response.items, user("go on")]))
    assert "previous_response_id" not in server.messages[1]
    assert len(server.messages[1]["input"]) == 3


async def test_outputs_of_built_in_calls_are_never_lost() -> None:
    """Built alone such an output may be left out, since it needs its call: then all is sent."""
    call = ShellCall(call_id="call_1", action={"commands": ["ls"]}, id="sh_1")
    received: list[ReceivedRequest] = []
    async with (
        running(Behaviour(turns=[call, "Done"]), on_request=received.append) as url,
        connected(url + "/v1") as connection,
    ):
        first = connection.stream([user("list")])
        await read(first)
        output = first.response.pending[0].output([ShellResult("a.txt", "", 0)])
        await read(connection.stream([user("list"), *first.response.items, output]))
    kinds = [item["type"] for item in received[1].json["input"]]
    assert kinds[-1] == "shell_call_output"


async def test_unknown_previous_response_is_sent_in_full_once() -> None:
    script = [
        EXPECT,
        *response_frames("r1", "One"),
        EXPECT,
        error_frame("previous_response_not_found"),
        EXPECT,
        *response_frames("r2", "Two"),
    ]
    async with (
        scripted_socket(script) as server,
        connected(server.url, client={"retry": RetryPolicy(retries=0)}) as connection,
    ):
        first = connection.stream([user("one")])
        await read(first)
        second = connection.stream([user("one"), *first.response.items, user("two")])
        events = await read(second)
    assert [len(message["input"]) for message in server.messages] == [1, 1, 3]
    assert "previous_response_id" not in server.messages[2]
    assert second.response.text == "Two"
    assert [type(event) for event in events].count(Created) == 1
    assert second.continued is None


async def test_a_lost_response_is_truncated_and_not_repeated() -> None:
    for frames in range(6):
        script = [EXPECT, *response_frames("r1", "Ha", "lf")[:frames], Drop()]
        async with scripted_socket(script) as server, connected(server.url) as connection:
            stream = connection.stream("x", errors="event")
            events = await read(stream)
            terminal = [event for event in events if isinstance(event, Completed | Failed)]
            assert len(terminal) == 1
            assert isinstance(terminal[0], Failed)
            assert terminal[0].error.kind == "truncated"
            assert len(server.messages) == 1
            assert stream.response.calls == []


async def test_a_request_after_a_lost_socket_opens_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lane_socket, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(lane_socket, "LOOK_SECONDS", 0.05)
    first = [EXPECT, *response_frames("r1", "One"), Close(1001, "restart")]
    second = [EXPECT, *response_frames("r2", "Two")]
    async with scripted_socket(first, second) as server, connected(server.url) as connection:
        one = connection.stream([user("one")])
        await read(one)
        two = connection.stream([user("one"), *one.response.items, user("two")])
        await read(two)
    assert two.response.text == "Two"
    assert [len(message["input"]) for message in server.messages] == [1, 3]
    assert len(server.handshakes) == 2


async def test_a_request_on_a_full_connection_is_retried() -> None:
    first = [EXPECT, error_frame("websocket_connection_limit_reached"), FOREVER]
    second = [EXPECT, *response_frames("r1", "Here")]
    policy = RetryPolicy(retries=1, base=0.0)
    async with (
        scripted_socket(first, second) as server,
        connected(server.url, client={"retry": policy}) as connection,
    ):
        stream = connection.stream("x")
        await read(stream)
    assert stream.response.text == "Here"
    assert len(server.handshakes) == 2
    assert [error.code for error in stream.retried] == ["websocket_connection_limit_reached"]


class Insists(RetryPolicy, frozen=True):
    """A policy of the user's own, with a field and a rule that `RetryPolicy` lacks."""

    times: int = 1

    def wait(
        self,
        failure: ErrorInfo,
        attempt: int,
        elapsed: float,
        random: float,
        total: float | None = None,
    ) -> float | None:
        return 0.0 if attempt < self.times else None


async def test_a_policy_of_your_own_decides_about_lanes() -> None:
    first = [EXPECT, error_frame("websocket_connection_limit_reached"), FOREVER]
    async with (
        scripted_socket(first, [EXPECT, *response_frames("r1", "Here")]) as server,
        connected(server.url, client={"retry": Insists(retries=0)}) as connection,
    ):
        stream = connection.stream("x")
        await read(stream)
    assert stream.response.text == "Here"


async def test_a_lane_is_not_sent_again_beyond_the_policys_time() -> None:
    script = [EXPECT, error_frame("websocket_connection_limit_reached"), FOREVER]
    async with (
        scripted_socket(script) as server,
        connected(server.url, client={"retry": RetryPolicy(within=0.0)}) as connection,
    ):
        stream = connection.stream("x")
        with pytest.raises(StreamError) as raised:
            await read(stream)
    assert raised.value.info.code == "websocket_connection_limit_reached"
    assert stream.retried == ()


async def test_an_old_connection_gets_no_new_request() -> None:
    settings = WebSocketSettings(seconds=0.0)
    script = [EXPECT, *response_frames("r1", "One")]
    async with (
        scripted_socket(script) as server,
        connected(server.url, settings=settings) as connection,
    ):
        await read(connection.stream("a"))
        await read(connection.stream("b"))
    assert len(server.handshakes) >= 2


async def test_requests_wait_while_too_many_run() -> None:
    settings = WebSocketSettings(lanes=4, in_flight=1)
    script = [
        EXPECT,
        *response_frames("r1", "One", lane="a"),
        EXPECT,
        *response_frames("r2", "Two", lane="b"),
    ]
    async with (
        scripted_socket(script) as server,
        connected(server.url, settings=settings) as connection,
        anyio.create_task_group() as group,
    ):
        group.start_soon(read, connection.stream("a", lane="a"))
        await anyio.lowlevel.checkpoint()
        group.start_soon(read, connection.stream("b", lane="b"))
    assert [message["stream_id"] for message in server.messages] == ["a", "b"]


async def test_lanes_have_names_and_a_limit() -> None:
    settings = WebSocketSettings(lanes=1, in_flight=4)
    script = [EXPECT, *response_frames("r1", "One", lane="a")]
    async with (
        scripted_socket(script) as server,
        connected(server.url, settings=settings) as connection,
    ):
        for name in ("", "a b", "é", "x" * 257):
            with pytest.raises(StreamError, match="name of a lane"):
                connection.stream("x", lane=name)
        await read(connection.stream("x", lane="a"))
        with pytest.raises(StreamError, match="at most 1 lanes"):
            connection.stream("x", lane="b")


async def test_closing_a_stream_early_leaves_the_other_lanes() -> None:
    script = [
        EXPECT,
        *response_frames("r1", "One", lane="a")[:2],
        EXPECT,
        *response_frames("r1", "One", lane="a")[2:],
        *response_frames("r2", "Two", lane="a"),
    ]
    async with scripted_socket(script) as server, connected(server.url) as connection:
        async with connection.stream("x", lane="a") as left:
            await anext(left)
        following = connection.stream("y", lane="a")
        await read(following)
    assert left.response.status == "cancelled"
    assert following.response.text == "Two"


async def test_one_response_at_a_time_does_not_wait_for_one_left() -> None:
    """xAI refuses a request while another response runs, and nothing ends that but a close."""
    first = [EXPECT, *response_frames("r1", "One")[:2], EXPECT]
    second = [EXPECT, *response_frames("r2", "Two")]
    async with (
        scripted_socket(first, second) as server,
        connected(server.url, settings=WebSocketSettings()) as connection,
    ):
        async with connection.stream("x") as left:
            await anext(left)
        following = connection.stream("y")
        await read(following)
    assert following.response.text == "Two"
    assert (len(server.messages), len(server.handshakes)) == (2, 2)


async def test_lanes_are_counted_anew_on_another_socket() -> None:
    settings = WebSocketSettings(lanes=1, in_flight=4)
    first = [EXPECT, *response_frames("r1", "One", lane="a")[:2], Drop()]
    second = [EXPECT, *response_frames("r2", "Two", lane="b")]
    second += [EXPECT, *response_frames("r3", "Three", lane="b")]
    async with (
        scripted_socket(first, second) as server,
        connected(server.url, settings=settings) as connection,
    ):
        await read(connection.stream("x", lane="a", errors="event"))
        for text in ("Two", "Three"):
            stream = connection.stream("y", lane="b")
            await read(stream)
            assert stream.response.text == text


async def test_a_cancelled_reader_passes_the_reading_on() -> None:
    script = [EXPECT, EXPECT, *response_frames("r2", "Two", lane="b"), FOREVER]
    async with (
        scripted_socket(script) as server,
        connected(server.url) as connection,
        anyio.create_task_group() as group,
    ):
        first, second = connection.stream("a", lane="a"), connection.stream("b", lane="b")
        scope = anyio.CancelScope()

        async def blocked() -> None:
            with scope:
                await read(first)

        group.start_soon(blocked)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(read, second)
        with anyio.move_on_after(0.01):
            await anyio.wait_all_tasks_blocked()
        scope.cancel()
    assert second.response.text == "Two"
    assert first.response.status == "cancelled"


async def test_another_task_may_close_a_stream() -> None:
    async with scripted_socket([EXPECT, FOREVER]) as server, connected(server.url) as connection:
        stream = connection.stream("x", errors="event")
        async with anyio.create_task_group() as group:
            group.start_soon(read, stream)
            await anyio.wait_all_tasks_blocked()
            await stream.aclose()
    assert stream.response.status == "cancelled"


async def test_a_silent_server_is_stalled_only_on_its_lane() -> None:
    deadlines = Deadlines(idle=0.03, first_event=0.03)
    script = [EXPECT, response_frames("r1", lane="a")[0], EXPECT]
    async with (
        scripted_socket(script) as server,
        connected(server.url, client={"deadlines": deadlines}) as connection,
    ):
        stream = connection.stream("x", lane="a", errors="event")
        events = await read(stream)
        assert isinstance(events[-1], Failed)
        assert events[-1].error.kind == "stalled"
        assert len(server.messages) == 1


async def test_closing_the_connection_ends_its_streams() -> None:
    async with scripted_socket([EXPECT, FOREVER]) as server, Client(api_key="k" * 20) as client:
        connection = client.connect("loopback:m", base_url=server.url)
        async with connection, connection.stream("x", errors="event") as stream:
            await connection.aclose()
            events = [event async for event in stream]
        assert isinstance(events[-1], Failed)
        assert events[-1].error.kind == "cancelled"
        with pytest.raises(RuntimeError, match="closed"):
            connection.stream("y")
    del connection, stream
    gc.collect()


async def test_a_steered_response_continues_in_its_successor() -> None:
    received: list[ReceivedRequest] = []
    async with (
        running(Behaviour(turns=["Long", "Short", "More"]), on_request=received.append) as url,
        connected(url + "/v1") as connection,
    ):
        history = [user("draft")]
        async with connection.stream(history, lane="a") as stream:
            async for event in stream:
                if isinstance(event, Created):
                    await stream.steer("keep it short")
        following = stream.successor()
        await read(following)
        assert (stream.response.text, following.response.text) == ("Long", "Short")
        whole = [*history, *stream.response.items, user("keep it short")]
        last = connection.stream([*whole, *following.response.items, user("more")], lane="a")
        await read(last)
    assert inputs(received)[-1] == (following.response.response_id, 1)


async def test_steering_waits_for_outputs_of_calls() -> None:
    received: list[ReceivedRequest] = []
    turns = [FunctionCall("c1", "lookup", "{}"), "42."]
    async with (
        running(Behaviour(turns=turns), on_request=received.append) as url,
        connected(url + "/v1") as connection,
    ):
        history = [user("look it up")]
        async with connection.stream(Prompt(history, tools=[LOOKUP])) as stream:
            async for event in stream:
                if isinstance(event, Created):
                    await stream.steer("be brief")
        with pytest.raises(StreamError) as raised:
            await read(stream.successor())
        assert raised.value.code == "waiting_for_required_input"
        history.extend(stream.response.items)
        history.extend(call.output("42") for call in stream.response.calls)
        answer = connection.stream(Prompt(history, tools=[LOOKUP]))
        await read(answer)
    assert answer.response.text == "42."
    assert answer.continued == stream.response.response_id


async def test_steering_that_is_impossible_is_refused() -> None:
    async with running() as url, connected(url + "/v1") as connection:
        stream = connection.stream("x")
        with pytest.raises(StreamError, match="a running response"):
            await stream.steer("y")
        await read(stream)
        with pytest.raises(StreamError, match="a running response"):
            await stream.steer("y")
        with pytest.raises(StreamError, match="not steered"):
            stream.successor()
        with pytest.raises(StreamError) as raised:
            await connection.steer("resp_unknown", "y")
        assert raised.value.code == "response_not_found"
        with pytest.raises(StreamError, match="only user messages"):
            await connection.steer("resp_unknown", stream.response.items)


async def test_steering_without_a_reply_is_stalled() -> None:
    deadlines = Deadlines(idle=0.03)
    script = [EXPECT, response_frames("r1", "One")[0], EXPECT, FOREVER]
    async with (
        scripted_socket(script) as server,
        connected(server.url, client={"deadlines": deadlines}) as connection,
        connection.stream("x", errors="event") as stream,
    ):
        while not isinstance(await anext(stream), Created):
            pass
        with pytest.raises(StreamError) as raised:
            await stream.steer("y")
    assert raised.value.kind == "stalled"


@pytest.mark.usefixtures("frozen_heap")
async def test_a_hook_that_raises_leaves_no_socket(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(response: Any) -> None:
        raise LookupError("no")

    async with scripted_socket([EXPECT]) as server:
        with pytest.raises(LookupError):
            async with connected(server.url, client={"on_response": refuse}):
                pass
        await anyio.wait_all_tasks_blocked()
        gc.collect()  # an open transport would warn, and fail the run
    assert len(server.handshakes) == 1


async def test_a_refused_handshake_has_its_reason() -> None:
    refusals = {
        b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n": ("authentication", None),
        b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n": (
            "invalid_request",
            "no_websocket",
        ),
        b"HTTP/1.1 302 Found\r\nlocation: https://evil.example/\r\ncontent-length: 0\r\n\r\n": (
            "invalid_request",
            "no_websocket",
        ),
        b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\n\r\n": ("malformed", "handshake"),
        b"hello\r\n\r\n": ("malformed", "handshake"),
    }
    for answer, (kind, code) in refusals.items():
        async with scripted_socket(status=answer) as server:
            with pytest.raises(StreamError) as raised:
                async with connected(server.url):
                    pass
            assert (raised.value.kind, raised.value.code) == (kind, code), answer


async def test_a_provider_without_websocket_is_refused() -> None:
    async with Client(api_key="k" * 20) as client:
        with pytest.raises(StreamError) as raised:
            client.connect("openrouter:m")
    assert raised.value.code in ("no_websocket", "wire_api")


async def test_a_request_in_the_background_is_refused() -> None:
    async with scripted_socket([FOREVER]) as server, connected(server.url) as connection:
        for prompt in (Prompt("x", extra={"background": True}), Prompt("x", background=True)):
            with pytest.raises(StreamError, match="background"):
                connection.stream(prompt)


async def test_hooks_see_the_handshake_and_every_event() -> None:
    seen: list[Any] = []
    hooks = {
        "on_request": lambda request: request.headers.update({"x-trace": "1"}),
        "on_response": lambda response: seen.append(response.status),
        "on_event": lambda event: seen.append(type(event)),
    }
    script = [EXPECT, *response_frames("r1", "One")]
    async with scripted_socket(script) as server, connected(server.url, client=hooks) as connection:
        await read(connection.stream("x"))
    assert server.handshakes[0]["x-trace"] == "1"
    assert seen[0] == 101
    assert seen[-1] is Completed


async def test_codex_sends_its_own_version_of_the_protocol() -> None:
    script = [EXPECT, *response_frames("r1", "One")]
    async with (
        scripted_socket(script) as server,
        connected(server.url, provider="openai-codex", account="acct_1") as connection,
    ):
        await read(connection.stream("x"))
        with pytest.raises(StreamError, match="has no lanes"):
            connection.stream("x", lane="a")
    headers = server.handshakes[0]
    assert headers["openai-beta"] == "responses_websockets=2026-02-06"
    assert headers["chatgpt-account-id"] == "acct_1"
    assert "stream" not in server.messages[0]
    assert server.messages[0]["store"] is False


async def test_scripted_turns_are_served_over_websocket() -> None:
    behaviour = Behaviour(turns=[Turn("x", headers={"x-a": "b"})])
    async with running(behaviour) as url, connected(url + "/v1") as connection:
        stream = connection.stream("x")
        await read(stream)
    assert stream.response.text == "x"
