"""`SyncClient`: the names of `Client` for code without an event loop."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, get_type_hints

import anyio
import msgspec
import pytest

import streamlib
from lab.sync import interrupts, storm
from streamlib.client import Client, StreamOptions
from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.client.sync import SyncOptions
from streamlib.client.sync.loop_thread import LoopThread
from streamlib.client.sync.stream import SyncStream
from streamlib.pipeline import Keep, coalesce, map_text
from streamlib.testing import MODEL, sync_loopback, sync_replay
from streamlib_parsers import Completed, Failed, OutputTextDelta
from tests.support.cases import each_case
from tests.support.clients import MemoryTransport, make_client, make_request
from tests.support.keys import UNUSUAL_KEY, printed
from tests.support.messages_frames import block, end, start, text_deltas
from tests.support.response_bodies import HELLO, MESSAGE, OPENED, START, text
from tests.support.scripted_server import HANG, chunk, complete_response, head
from tests.support.shared import ROOT
from tests.support.sync_clients import make_sync_client
from tests.support.sync_servers import closes, scripted_thread

URL: Final = "http://memory.example"
STALLED: Final = [head(), chunk(HELLO), HANG]


def memory_client(*chunks: Any, **options: Any) -> streamlib.SyncClient:
    """A client whose response comes from memory."""
    return make_sync_client(URL, MemoryTransport(list(chunks)), **options)


class CountingLock:
    """Counts how often it was held."""

    def __init__(self) -> None:
        self.held = 0

    def __enter__(self) -> None:
        self.held += 1

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("name", ["response", "cursor"])
def test_view_is_not_read_while_events_are_delivered(name: str) -> None:
    """Another thread may deliver: a view read meanwhile would be half of one event."""
    with memory_client(MESSAGE) as client, client.stream(make_request(URL)) as stream:
        list(stream)
        lock: Any = CountingLock()
        stream._stream.lock = lock
        getattr(stream, name)
        assert lock.held == 1


# --- the same as the asynchronous client ---


def test_names_and_options_are_those_of_the_client() -> None:
    assert set(get_type_hints(SyncOptions)) == set(
        inspect.signature(Client.__init__).parameters
    ) - {"self", "values", "unknown"}
    assert set(get_type_hints(StreamOptions)) == set(
        inspect.signature(Client.stream).parameters
    ) - {"self", "prompt", "model", "unknown"}
    asynchronous = {name for name in dir(Client) if not name.startswith("_")}
    assert {name for name in dir(streamlib.SyncClient) if not name.startswith("_")} == (
        # `connect`: a WebSocket has lanes, which run side by side in one event loop.
        asynchronous - {"aclose", "connect"} | {"close"}
    )
    own = {name for name in dir(ResponseStream) if not name.startswith("_")}
    assert {name for name in dir(streamlib.SyncStream) if not name.startswith("_")} == (
        own - {"aclose", "from_chunks"} | {"close", "retried", "json_items"}
    )


def test_events_batches_and_text_are_those_of_the_client() -> None:
    async def read() -> tuple[list[Any], list[Any]]:
        memory = MemoryTransport([OPENED, MESSAGE[len(OPENED) :]])
        async with make_client(URL, memory) as client:
            request = make_request(URL)
            async with client.stream(request) as stream:
                events = [event async for event in stream]
            async with client.stream(request) as stream:
                return events, [batch async for batch in stream.batches()]

    events, batches = anyio.run(read)
    with memory_client(OPENED, MESSAGE[len(OPENED) :]) as client:
        with client.stream(make_request(URL)) as stream:
            assert list(stream) == events
        with client.stream(make_request(URL)) as stream:
            assert list(stream.batches()) == batches
        with client.stream(make_request(URL)) as stream:
            assert "".join(stream.text()) == stream.response.text == "Hello there"
        assert client.respond(make_request(URL)).status == "completed"
        assert client.text(make_request(URL)) == "Hello there"


def test_a_loopback_and_a_replay_serve_without_a_loop() -> None:
    with sync_loopback() as client:
        assert client.text("Hello", MODEL).startswith("You said: Hello")
        with pytest.raises(streamlib.StreamError) as raised:
            list(client.models("nobody"))
        assert raised.value.info.kind == "invalid_request"
    with sync_replay(MESSAGE) as client:
        assert client.text("Hello", MODEL) == "Hello there"


def test_failures_are_raised_as_in_the_client() -> None:
    with memory_client(MESSAGE[: len(MESSAGE) // 2]) as client:
        with pytest.raises(streamlib.StreamError) as raised:
            client.respond(make_request(URL))
        assert raised.value.info.kind == "truncated"
        events: list[Any] = []
        with client.stream(make_request(URL), errors="event") as stream:
            events += stream
        assert isinstance(events[-1], Failed)
        with pytest.raises(streamlib.StreamError):
            client.text(make_request(URL), errors="event")
        with client.stream(make_request(URL), errors="event") as stream:
            texts = stream.text()
            with pytest.raises(streamlib.StreamError):
                list(texts)


def test_models_are_listed() -> None:
    with memory_client(b'{"data":[{"id":"m-1"}]}') as client:
        assert [model.id for model in client.models("faulty")] == ["m-1"]


def test_first_requests_of_two_threads_share_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = threading.Event()
    made: list[MemoryTransport] = []

    def slow(*_: object) -> MemoryTransport:
        began.set()
        time.sleep(0.05)
        made.append(MemoryTransport([b'{"data":[]}']))
        return made[-1]

    monkeypatch.setattr("streamlib.client.setup.transport_for", slow)
    with memory_client() as client:
        other = threading.Thread(target=lambda: client.models("faulty"))
        other.start()
        assert began.wait(5)
        client.stream(make_request(URL))
        other.join()
    assert len(made) == 1


def test_a_failed_request_is_sent_again() -> None:
    busy = complete_response(b"{}", "503 Busy", "application/json")
    with (
        scripted_thread(busy, complete_response(MESSAGE)) as server,
        make_sync_client(server.url, retry=RetryPolicy(base=0.001)) as client,
        client.stream(make_request(server.url)) as stream,
    ):
        assert isinstance(list(stream)[-1], Completed)
        assert [error.status for error in stream.retried] == [503]


# --- pipelines ---


def test_pipeline_enters_a_stream_unless_it_is_open() -> None:
    with memory_client(MESSAGE) as client:
        with client.stream(make_request(URL)).pipe(coalesce(0.0)) as piped:
            assert "".join(piped.text()) == "Hello there"
        with client.stream(make_request(URL)) as stream, stream.pipe(coalesce(0.0)) as piped:
            assert "".join(piped.text()) == "Hello there"


def test_pipeline_is_left_with_its_block() -> None:
    """Its calls end, though the client goes on."""
    started, ended = threading.Event(), threading.Event()

    async def hang(text: str) -> str:
        started.set()
        try:
            await anyio.sleep(30)
        finally:
            ended.set()
        return text

    with memory_client(MESSAGE) as client:
        with client.stream(make_request(URL)).pipe(map_text(hang)) as piped:
            next(piped)
            assert started.wait(5)
        assert ended.wait(5)


def test_stage_that_cannot_begin_fails_at_the_block() -> None:
    def fails_to_begin(clock: object) -> Any:
        raise LookupError("mine")

    with memory_client(MESSAGE) as client:
        stream = client.stream(make_request(URL))
        with pytest.raises(LookupError, match="mine"), stream.pipe(Keep(fails_to_begin, "x")):
            pass
        assert stream.response.status == "cancelled"


# --- what was delivered ---


def test_snapshot_holds_only_what_was_delivered() -> None:
    """One read brings many events; each is fed to the snapshot when the reader gets it."""
    deltas = [text(f"{n} ") for n in range(20)]
    with (
        memory_client(b"".join([OPENED, *deltas]), MESSAGE[len(OPENED) :]) as client,
        client.stream(make_request(URL)) as stream,
    ):
        seen = ""
        for event in stream:
            if isinstance(event, OutputTextDelta):
                seen += event.delta
            assert stream.snapshot.text == seen
            if seen == "0 1 2 ":
                break
    assert len(stream.rest()) > 17
    assert stream.response.text == "".join([f"{n} " for n in range(20)])
    assert stream.response.status == "cancelled"


def test_arguments_of_an_open_call_can_be_viewed() -> None:
    opened = b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use",'
    opened += b'"id":"t1","name":"f","input":{}}}\n\n'
    delta = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",'
    delta += b'"partial_json":"{\\"city\\":\\"Par"}}\n\n'
    with (
        memory_client(START + opened + delta) as client,
        client.stream(make_request(URL), errors="event") as stream,
    ):
        for event in stream:
            if isinstance(event, streamlib.FunctionCallArgumentsDelta):
                assert stream.partial(0) == {"city": "Par"}
                return
    pytest.fail("no delta came")


class City(msgspec.Struct):
    name: str
    people: int = 0


def test_typed_views_and_items_are_those_of_the_stream() -> None:
    """`partial(index, T)`, `json_items`, and `parsed` of the response."""
    body = '{"cities": [{"name": "Paris", "people": 2}, {"name": "Rome"}]}'
    names: list[str] = []
    with sync_loopback(turns=[body]) as client:
        with client.stream("Name cities", MODEL) as stream:
            for city in stream.json_items("/cities", City):
                assert stream.response.status == "incomplete"
                names.append(city.name)
        with client.stream("Name cities", MODEL) as stream:
            sizes: list[int] = []
            for event in stream:
                if isinstance(event, OutputTextDelta):
                    sizes.append(len(stream.partial(event.index).get("cities", [])))
            assert (sizes, sizes[0], sizes[-1]) == (sorted(sizes), 0, 2)
        with client.stream("Name cities", MODEL) as stream:
            items = stream.json_items("/cities", int)
            with pytest.raises(streamlib.InvalidOutput):
                list(items)
    assert names == ["Paris", "Rome"]
    cut = sync_loopback(turns=[body], chunk=40, fault="truncate", at=12)
    with cut as client, client.stream("Name cities", MODEL, errors="event") as stream:
        items = stream.json_items("/cities", City)
        with pytest.raises(streamlib.StreamError) as raised:
            list(items)
        assert raised.value.response is not None


def test_items_go_on_after_a_wrong_one_in_one_delta() -> None:
    body = '[{"name": "Paris"}, {"name": 1}, {"name": "Rome"}]'
    frames = [start(), block(0, {"type": "text", "text": ""}, *text_deltas(body)), end()]
    found: list[str] = []
    with memory_client(*frames) as client, client.stream(make_request(URL)) as stream:
        items = stream.json_items("", City)
        while True:
            try:
                found.append(next(items).name)
                assert stream.response.status == "incomplete"  # as soon as it is closed
            except streamlib.InvalidOutput as error:
                found.append(error.path)
            except StopIteration:
                break
    assert found == ["Paris", "/1/name", "Rome"]


# --- leaving, closing, abandoning ---


def test_leaving_early_closes_the_socket() -> None:
    with scripted_thread(STALLED) as server, make_sync_client(server.url) as client:
        with client.stream(make_request(server.url)) as stream:
            next(stream)
        assert closes(server)
        assert stream.response.status == "cancelled"


def test_another_thread_ends_a_waiting_reader() -> None:
    with scripted_thread(STALLED) as server, make_sync_client(server.url) as client:
        stream = client.stream(make_request(server.url))
        with stream:
            for _ in range(3):
                next(stream)
            threading.Timer(0.02, stream.close).start()
            with pytest.raises(streamlib.StreamError) as raised:
                list(stream)
        assert raised.value.info.kind == "cancelled"
        assert closes(server)


def test_closing_the_client_ends_its_streams_and_thread() -> None:
    with scripted_thread(STALLED) as server:
        client = make_sync_client(server.url)
        stream = client.stream(make_request(server.url))
        stream.__enter__()
        for _ in range(3):
            next(stream)
        threading.Timer(0.02, client.close).start()
        with pytest.raises(streamlib.StreamError):
            list(stream)
        client.close()
        assert closes(server)
        assert "streamlib" not in [thread.name for thread in threading.enumerate()]
        with pytest.raises(RuntimeError, match="the client is closed"):
            client.text("hi", "faulty:m")
        assert repr(client) == "<SyncClient closed>"


@pytest.mark.filterwarnings("ignore:a stream created")
def test_an_abandoned_stream_is_closed_and_reported() -> None:
    with scripted_thread(STALLED) as server, make_sync_client(server.url) as client:
        streams = [client.stream(make_request(server.url)).__enter__()]
        with pytest.warns(ResourceWarning, match=f"{__file__}.*use `with`"):
            streams.clear()
        assert closes(server)


def test_an_abandoned_client_ends_its_thread() -> None:
    before = threading.active_count()
    client = memory_client(MESSAGE)
    client.text(make_request(URL))
    assert threading.active_count() == before + 1
    del client
    until = time.monotonic() + 2
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.002)
    assert threading.active_count() == before


def test_a_stream_is_read_inside_its_block_once() -> None:
    with memory_client(MESSAGE) as client:
        stream = client.stream(make_request(URL))
        with pytest.raises(RuntimeError, match="use `with`"):
            next(stream)
        with stream:
            list(stream)
        with pytest.raises(RuntimeError, match="read once"):
            list(stream)
        with pytest.raises(RuntimeError, match="entered once"):
            stream.__enter__()


READERS: Final[dict[str, Callable[[SyncStream], Iterable[Any]]]] = {
    "events": lambda stream: stream,
    "batches": lambda stream: stream.batches(),
    "text": lambda stream: stream.text(),
    "json_items": lambda stream: stream.json_items("/cities", str),
}


@each_case("first", ["events", "batches", "text"])
@each_case("second", READERS)
def test_a_second_loop_is_an_error_however_it_reads(first: str, second: str) -> None:
    """It got nothing, as if the response were empty."""
    with memory_client(MESSAGE) as client, client.stream(make_request(URL)) as stream:
        made_before = [stream.batches(), stream.text()]
        assert list(READERS[first](stream))
        for reader in [*made_before, partial(READERS[second], stream)]:
            with pytest.raises(RuntimeError, match="read once"):
                list(reader() if callable(reader) else reader)
        assert stream.response.text == "Hello there"


def test_a_loop_that_was_left_may_be_followed_by_another() -> None:
    with memory_client(MESSAGE) as client, client.stream(make_request(URL)) as stream:
        for _ in stream:
            break
        assert "".join(stream.text()) == "Hello there"


def test_a_client_that_sends_nothing_starts_no_thread() -> None:
    before = threading.active_count()
    with memory_client(MESSAGE) as client:
        client.stream(make_request(URL))
        assert threading.active_count() == before


# --- threads, loops, processes ---


def test_few_streams_in_threads_leave_nothing_open() -> None:
    """The small form of `python -m lab.sync storm`."""
    result = storm.run_storm(streams=40, threads=8)
    left = [result[f"{what} left"] for what in ("sockets", "threads", "descriptors")]
    assert left == [0, 0, 0]
    assert sum(result["ways"].values()) == 40
    assert set(result["errors"]) <= {"cancelled", "truncated", "connection"}


async def test_works_where_an_event_loop_runs() -> None:
    """As in a notebook: the caller's thread waits, and its loop with it."""
    with memory_client(MESSAGE) as client:
        assert client.text(make_request(URL)) == "Hello there"
        with client.stream(make_request(URL)) as stream:
            assert "".join(stream.text()) == "Hello there"
    with sync_loopback(turns=["Hello there"]) as client:  # its limit of connections has a loop
        assert client.text("hi", MODEL) == "Hello there"


@pytest.mark.parametrize("anyio_backend", ["trio"], indirect=True)
async def test_transport_is_made_in_the_loop_without_the_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop takes the lock when it closes: a request and `close` waited for each other."""
    held: list[bool] = []
    call = LoopThread.call
    with sync_loopback() as client:
        lock = client._connections.lock

        def watched(loop: Any, function: Any, *args: Any) -> Any:
            held.append(lock.locked())
            return call(loop, function, *args)

        monkeypatch.setattr(LoopThread, "call", watched)
        client.stream("hi", MODEL)
    assert held
    assert not any(held)


EXIT: Final = """
import os, sys, warnings
warnings.simplefilter("ignore")
import streamlib

url = sys.argv[1]
before = streamlib.SyncClient(base_url=url, wire_api="messages")
client = streamlib.SyncClient(base_url=url, wire_api="messages")
stream = client.stream("hi", "loopback:m").__enter__()
next(stream)
child = os.fork()
if child == 0:
    try:
        list(stream)
    except RuntimeError as error:
        print(type(error).__name__, "forked from it" in str(error), flush=True)
    try:
        client.text("hi", "loopback:m")
    except RuntimeError as error:
        print(type(error).__name__, "forked from it" in str(error), flush=True)
    stream.close()
    client.close()
    with before.stream("hi", "loopback:m") as other:  # not used before the fork
        print(type(next(other)).__name__, flush=True)
    sys.exit(3)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
# The stream is abandoned here: in the middle of a response that stalls.
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_exit_and_fork_neither_hang_nor_share_sockets() -> None:
    with scripted_thread(STALLED) as server:
        result = subprocess.run(
            [sys.executable, "-c", EXIT, server.url],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'parsers'}"},
        )
        assert closes(server)
    assert result.stdout.split("\n")[:-1] == [
        "RuntimeError True",
        "RuntimeError True",
        "RateLimits",
        "child 3",
    ]
    assert (result.returncode, result.stderr) == (0, "")


# --- Ctrl-C ---


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("frozen_heap")
def test_an_interrupt_at_some_lines_closes_the_socket() -> None:
    """The small form of `python -m lab.sync interrupts`."""
    result = interrupts.by_line(8)
    assert result["interrupts"] >= 8
    assert result["sockets left open"] == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no alarm signal")
def test_an_interrupt_of_a_stalled_stream_closes_the_socket() -> None:
    result = interrupts.by_time(5)
    assert (result["interrupts"], result["sockets left open"]) == (5, 0)
    assert result["slowest close"] < 2


# --- hooks and keys ---

READER: ContextVar[str] = ContextVar("READER", default="nobody")


@pytest.mark.parametrize("in_batches", [False, True])
def test_hooks_see_everything_with_the_context_of_the_reader(in_batches: bool) -> None:
    seen: list[tuple[str, str]] = []
    threads: set[int] = set()

    def hook(value: Any) -> None:
        seen.append((type(value).__name__, READER.get()))

    async def hook_of_events(event: Any) -> None:
        hook(event)

    def hook_in_thread(event: Any) -> None:
        threads.add(threading.get_ident())
        hook(event)

    READER.set("me")
    for on_event in (hook_of_events, hook_in_thread):
        seen.clear()
        options: Any = {"on_request": hook, "on_response": hook, "on_event": on_event}
        with memory_client(MESSAGE, **options) as client:
            events: list[Any] = []
            with client.stream(make_request(URL)) as stream:
                if in_batches:
                    for batch in stream.batches():
                        events += batch
                else:
                    events += stream
        names = ["AttemptRequest", "AttemptResponse", *[type(event).__name__ for event in events]]
        assert seen == [(name, "me") for name in names]
        client.close()
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("in_batches", [False, True])
def test_hook_sees_a_failure_once(in_batches: bool) -> None:
    seen: list[Any] = []
    with memory_client(MESSAGE[: len(MESSAGE) // 2], on_event=seen.append) as client:
        stream = client.stream(make_request(URL))
        with pytest.raises(streamlib.StreamError), stream:
            list(stream.batches() if in_batches else stream)
    assert isinstance(seen[-1], Failed)
    assert [event.seq for event in seen] == list(range(len(seen)))


def fails(value: Any) -> None:
    """A hook that fails at the first text."""
    if type(value).__name__ not in {"RateLimits", "Created", "OutputItemAdded", "TokenCount"}:
        raise LookupError(type(value).__name__)


@pytest.mark.parametrize("name", ["on_request", "on_response", "on_event"])
def test_a_raising_hook_ends_the_stream(name: str) -> None:
    readers: list[Callable[[Any], object]] = [list, lambda stream: list(stream.batches())]
    for read in readers:
        options: Any = {name: fails}
        with scripted_thread(STALLED) as server, make_sync_client(server.url, **options) as client:
            with pytest.raises(LookupError), client.stream(make_request(server.url)) as stream:
                read(stream)
            assert closes(server)


@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration])
def test_a_hook_cannot_end_the_loop_silently(error: type[Exception]) -> None:
    def stops(event: Any) -> None:
        raise error

    with memory_client(MESSAGE, on_event=stops) as client:
        stream = client.stream(make_request(URL))
        with pytest.raises(RuntimeError, match="a hook raised"), stream:
            list(stream)


def test_a_hook_cannot_use_its_own_client() -> None:
    """It would wait for itself: a clear error in place of a deadlock."""
    clients: list[streamlib.SyncClient] = []

    def hook(request: Any) -> None:
        clients[0].text(make_request(URL))

    with memory_client(MESSAGE, on_request=hook) as client:
        clients.append(client)
        with pytest.raises(RuntimeError, match="own event loop"):
            client.respond(make_request(URL))
        clients.clear()


@each_case("method", ["stream", "respond", "text", "models", "fetch"])
@each_case("key", [UNUSUAL_KEY, UNUSUAL_KEY + "\x7f"])
def test_key_of_one_request_is_in_no_traceback(method: str, key: str) -> None:
    refusing = MemoryTransport([b"{}"], status=401)
    with make_sync_client(URL, refusing) as client:
        argument: Any = "faulty" if method == "models" else make_request(URL)
        with pytest.raises(streamlib.StreamError) as raised:
            list(getattr(client, method)(argument, api_key=key).__enter__())
    assert raised.value.info.kind == "authentication"
    assert UNUSUAL_KEY not in printed(raised.value, own=False)


def test_invalid_key_of_a_client_is_in_no_traceback() -> None:
    with pytest.raises(streamlib.StreamError) as raised:
        streamlib.SyncClient(api_key=UNUSUAL_KEY + "\x7f")
    assert UNUSUAL_KEY not in printed(raised.value, own=False)
    with memory_client(MESSAGE, api_key=UNUSUAL_KEY) as client:
        stream = client.stream(make_request(URL))
        for shown in (client, stream, stream.request, vars(client), client._connections):
            assert UNUSUAL_KEY not in f"{shown!r} {shown}"
