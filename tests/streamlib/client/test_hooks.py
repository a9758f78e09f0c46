"""Hooks of a client: what they see, what they may change, and what becomes of a stream they end."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

import streamlib
from streamlib.client import Client
from streamlib.client.credentials import AwsCredentials
from streamlib.client.hooked_stream import HookedStream
from streamlib.client.hooks import AttemptRequest, AttemptResponse
from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.providers import Provider
from streamlib_parsers import Completed, Failed, OutputTextDelta
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case
from tests.support.clients import KEY, MemoryTransport, make_client, make_request
from tests.support.keys import UNUSUAL_KEY, printed
from tests.support.response_bodies import HELLO, MESSAGE
from tests.support.scripted_server import HANG, chunk, complete_response, head, scripted

URL: Final = "http://memory.example"
BUSY: Final = complete_response(b"{}", "503 Busy", "application/json", x_echo=UNUSUAL_KEY)
READER: ContextVar[str] = ContextVar("READER", default="nobody")


class Seen:
    """What the three hooks saw, in order."""

    def __init__(self) -> None:
        self.requests: list[AttemptRequest] = []
        self.responses: list[AttemptResponse] = []
        self.events: list[Any] = []

    @property
    def options(self) -> dict[str, Any]:
        return {
            "on_request": self.requests.append,
            "on_response": self.responses.append,
            "on_event": self.events.append,
        }


async def read(client: Client, *, in_batches: bool = False, url: str = URL) -> list[Any]:
    """Every event of one response."""
    events: list[Any] = []
    async with client.stream(make_request(url)) as stream:
        if in_batches:
            async for batch in stream.batches():
                events += batch
        else:
            async for event in stream:
                events.append(event)
    return events


@pytest.mark.parametrize("in_batches", [False, True])
async def test_hooks_see_the_request_response_and_events(in_batches: bool) -> None:
    seen = Seen()
    memory = MemoryTransport([MESSAGE], headers={"x-id": "7"})
    async with make_client(URL, memory, **seen.options) as client:
        events = await read(client, in_batches=in_batches)
    [request] = seen.requests
    assert isinstance(request, streamlib.Request)
    assert (request.method, request.attempt, request.wire_api) == ("POST", 1, "messages")
    [response] = seen.responses
    assert response.request is request
    assert (response.status, response.headers["x-id"]) == (200, "7")
    assert seen.events == events
    assert isinstance(events[-1], Completed)


async def test_event_hook_runs_before_the_event_is_delivered() -> None:
    order: list[tuple[str, int]] = []
    memory = MemoryTransport([MESSAGE])
    hook: Any = lambda event: order.append(("hook", event.seq))  # noqa: E731
    async with (
        make_client(URL, memory, on_event=hook) as client,
        client.stream(make_request(URL)) as stream,
    ):
        async for event in stream:
            order.append(("reader", event.seq))
    assert order == [(who, n) for n in range(len(order) // 2) for who in ("hook", "reader")]


async def test_coroutine_hooks_are_awaited() -> None:
    seen: list[str] = []

    async def hook(value: Any) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(type(value).__name__)

    memory = MemoryTransport([MESSAGE])
    options: Any = {"on_request": hook, "on_response": hook, "on_event": hook}
    async with make_client(URL, memory, **options) as client:
        events = await read(client)
    names = [type(event).__name__ for event in events]
    assert seen == ["AttemptRequest", "AttemptResponse", *names]


async def test_request_hook_changes_headers_of_each_attempt() -> None:
    """Once for each attempt, each time from the headers of the request."""

    def hook(request: AttemptRequest) -> None:
        assert "x-trace" not in request.headers
        request.headers["X-Trace"] = f"attempt-{request.attempt}"
        del request.headers["user-agent"]

    async with (
        scripted(BUSY, complete_response(MESSAGE)) as server,
        make_client(server.url, on_request=hook, retry=RetryPolicy(base=0.001)) as client,
    ):
        await client.respond(make_request(server.url))
    assert len(server.requests) == 2
    for n, sent in enumerate(server.requests, 1):
        assert f"x-trace: attempt-{n}".encode() in sent.lower()
        assert b"streamlib" not in sent.lower()
        assert KEY.encode() in sent


async def test_changed_headers_are_part_of_an_aws_signature() -> None:
    signed: list[str] = []
    provider = Provider("signed", wires=("converse",), base_url=URL, auth="aws")
    credentials = AwsCredentials("AKIA-id", "secret-of-it", region="eu-west-1")  # type: ignore[arg-type]

    def hook(request: AttemptRequest) -> None:
        request.headers["x-trace"] = "7"

    for on_request in (None, hook):
        memory = MemoryTransport([b""])
        client = Client(
            http=memory, providers=(provider,), api_key=credentials, on_request=on_request
        )
        async with client:
            with pytest.raises(StreamError):
                await client.respond("hi", "signed:amazon.nova")
        signed.append(memory.sent[0][2]["authorization"])
    assert "x-trace" not in signed[0]
    assert "x-trace" in signed[1]
    assert "user-agent" not in signed[1]


@pytest.mark.parametrize(
    "name",
    ["Authorization", "x-api-key", "X-API-Key", "cookie", "x-amz-security-token", "host"],
)
async def test_request_hook_cannot_set_a_key(name: str) -> None:
    """A key belongs to `api_key=`: a header could go to any origin, or replace the key."""

    def hook(request: AttemptRequest) -> None:
        request.headers[name] = "forged"

    memory = MemoryTransport([MESSAGE])
    async with make_client(URL, memory, on_request=hook) as client:
        with pytest.raises(StreamError) as raised:
            await read(client)
    assert (raised.value.info.kind, raised.value.info.code) == ("invalid_request", "headers")
    assert memory.sent == []


@pytest.mark.parametrize("header", [(1, "x"), ("x-one", 1), ("x-none", None)])
async def test_header_that_is_not_text_is_refused_and_not_retried(header: Any) -> None:
    """It was a lost connection, which is tried again."""
    seen: list[int] = []

    def hook(request: AttemptRequest) -> None:
        seen.append(request.attempt)
        request.headers[header[0]] = header[1]

    memory = MemoryTransport([MESSAGE])
    async with make_client(URL, memory, on_request=hook) as client:
        with pytest.raises(StreamError) as raised:
            await read(client)
    assert (raised.value.info.kind, raised.value.info.code) == ("invalid_request", "headers")
    assert (seen, memory.sent) == ([1], [])


async def test_request_hook_cannot_add_a_line_or_drop_the_type() -> None:
    def injects(request: AttemptRequest) -> None:
        request.headers["x-a"] = "1\r\nx-b: 2"

    def drops(request: AttemptRequest) -> None:
        del request.headers["content-type"]

    for hook in (injects, drops):
        memory = MemoryTransport([MESSAGE])
        async with make_client(URL, memory, on_request=hook) as client:
            with pytest.raises(StreamError) as raised:
                await read(client)
        assert raised.value.info.code == "headers"
        assert memory.sent == []


@pytest.mark.parametrize("style", ["bearer", "x-api-key", "x-goog-api-key", "api-key"])
async def test_hooks_see_no_key(style: Any) -> None:
    """Neither the client's key, nor one that a provider has among its headers, nor an echo."""
    seen = Seen()
    own = {"x-proxy-token": UNUSUAL_KEY + "2", "x-tier": "gold"}
    provider = Provider("shy", wires=("messages",), base_url=URL, auth=style, headers=own)
    memory = MemoryTransport([MESSAGE], headers={"x-echo": f"Bearer {UNUSUAL_KEY}"})
    async with Client(
        http=memory, providers=(provider,), api_key=UNUSUAL_KEY, **seen.options
    ) as client:
        await client.respond("hi", "shy:m")
    for value in (*seen.requests, *seen.responses, *seen.events):
        assert UNUSUAL_KEY not in f"{value!r} {value}"
    assert seen.requests[0].headers["x-tier"] == "gold"
    sent = memory.sent[0][2]
    assert sent["x-proxy-token"] == UNUSUAL_KEY + "2"
    assert sum(UNUSUAL_KEY in value for value in sent.values()) == 2


async def read_through(stream: ResponseStream) -> None:
    """Reads a stream to its end."""
    async with stream:
        async for _ in stream:
            pass


class HookError(Exception):
    """What the hooks of these tests raise."""


@each_case("is_async", [False, True])
@each_case("in_batches", [False, True])
@each_case("name", ["on_request", "on_response", "on_event"])
async def test_a_raising_hook_ends_the_stream(name: str, in_batches: bool, is_async: bool) -> None:
    """With its own exception, also with errors="event"; the socket is closed."""

    def fails(value: Any) -> None:
        if not isinstance(value, OutputTextDelta) and name == "on_event":
            return
        raise HookError(name)

    async def fails_later(value: Any) -> None:
        await anyio.lowlevel.checkpoint()
        fails(value)

    options: Any = {name: fails_later if is_async else fails, "errors": "event"}
    async with (
        scripted([head(), chunk(HELLO), HANG]) as server,
        make_client(server.url, **options) as client,
    ):
        with pytest.raises(HookError):
            await read(client, in_batches=in_batches, url=server.url)
        await server.quiet()
        assert server.open == 0
        if name == "on_request":
            assert server.requests == []


async def test_response_of_a_stream_that_a_hook_ended_is_cancelled() -> None:
    def fails(event: Any) -> None:
        if isinstance(event, OutputTextDelta):
            raise HookError

    async with make_client(URL, MemoryTransport([MESSAGE]), on_event=fails) as client:
        stream = client.stream(make_request(URL))
        with pytest.raises(HookError):
            await read_through(stream)
    assert (stream.response.status, stream.response.text) == ("cancelled", "Hello there")
    assert any(isinstance(event, OutputTextDelta) for event in stream.rest())


@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration])
async def test_a_hook_cannot_end_the_loop_silently(error: type[Exception]) -> None:
    def stops(event: Any) -> None:
        if isinstance(event, OutputTextDelta):
            raise error

    async with make_client(URL, MemoryTransport([MESSAGE]), on_event=stops) as client:
        with pytest.raises(RuntimeError, match="a hook raised"):
            await read(client)


async def test_event_hook_sees_a_failure_before_it_is_raised() -> None:
    seen: list[Any] = []
    for in_batches in (False, True):
        memory = MemoryTransport([MESSAGE[: len(MESSAGE) // 2]])
        async with make_client(URL, memory, on_event=seen.append) as client:
            with pytest.raises(StreamError):
                await read(client, in_batches=in_batches)
        assert [type(event) for event in seen].count(Failed) == 1
        assert isinstance(seen[-1], Failed)
        assert [event.seq for event in seen] == list(range(len(seen)))
        seen.clear()


async def test_closing_elsewhere_ends_a_waiting_hook() -> None:
    async def waits(value: Any) -> None:
        await anyio.sleep(60)

    for name in ("on_request", "on_response", "on_event"):
        options: Any = {name: waits}
        async with make_client(URL, MemoryTransport([MESSAGE]), **options) as client:
            stream = client.stream(make_request(URL))
            kinds: list[str] = []

            async def reading(stream: ResponseStream = stream, kinds: list[str] = kinds) -> None:
                with pytest.raises(StreamError) as raised:
                    await read_through(stream)
                kinds.append(raised.value.kind)

            with anyio.fail_after(2):
                async with anyio.create_task_group() as group:
                    group.start_soon(reading)
                    await anyio.wait_all_tasks_blocked()
                    await stream.aclose()
            assert kinds == ["cancelled"]


async def test_hooks_see_the_context_of_the_reader() -> None:
    names: dict[str, list[str]] = {}

    def hook(value: Any) -> None:
        names.setdefault(READER.get(), []).append(type(value).__name__)

    memory = MemoryTransport([MESSAGE])
    options: Any = {"on_request": hook, "on_response": hook, "on_event": hook}
    async with make_client(URL, memory, **options) as client:

        async def reader(name: str) -> None:
            READER.set(name)
            await read(client)

        async with anyio.create_task_group() as group:
            for name in ("a", "b"):
                group.start_soon(reader, name)
    assert set(names) == {"a", "b"}
    assert names["a"] == names["b"]


async def test_hooks_of_attempts_run_for_requests_without_stream() -> None:
    seen = Seen()
    memory = MemoryTransport([b'{"data":[{"id":"m-1"}]}'])
    async with make_client(URL, memory, **seen.options) as client:
        assert [model.id for model in await client.models("faulty")] == ["m-1"]
    assert [request.method for request in seen.requests] == ["GET"]
    assert [response.status for response in seen.responses] == [200]
    assert seen.events == []


async def test_a_client_without_event_hook_has_plain_streams() -> None:
    """The loop that every event runs through is the same code as without hooks."""
    seen = Seen()
    async with make_client(URL, MemoryTransport([MESSAGE])) as client:
        assert type(client.stream(make_request(URL))) is ResponseStream
        assert client.stream(make_request(URL))._config.source.hooks is None
    async with make_client(URL, MemoryTransport([MESSAGE]), **seen.options) as client:
        assert type(client.stream(make_request(URL))) is HookedStream


@pytest.mark.parametrize("name", ["on_request", "on_response", "on_event"])
async def test_error_of_a_hook_holds_no_key(name: Any) -> None:
    def fails(value: Any) -> None:
        raise HookError

    memory = MemoryTransport([MESSAGE])
    async with make_client(URL, memory, api_key=UNUSUAL_KEY, **{name: fails}) as client:
        with pytest.raises(HookError) as raised:
            await read(client)
    assert UNUSUAL_KEY not in printed(raised.value, own=False)
