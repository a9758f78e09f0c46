"""Logs over HTTP: who may read, the Durable Streams read side, server-sent events.

Time is virtual; the official clients read in `tests/real/test_durable_http.py`.
"""

from __future__ import annotations

import json
import random
from typing import Any

import anyio
import pytest

from streamlib.durable import open_log
from streamlib.durable.http import log_app
from streamlib.durable.hub import MAX_WAITING
from tests.support.asgi_calls import AsgiCall
from tests.support.cases import each_case
from tests.support.durable_engines import Connection, memory_engine
from tests.support.durable_http import (
    FOREVER,
    FRAMES,
    ROUTES,
    app_of,
    ask,
    controls,
    cursors,
    get,
    messages_in,
    sse,
    stream,
    written,
)
from tests.support.response_bodies import frames_of
from tests.support.virtual_time import anyio_backend  # noqa: F401  # a fixture

# --- who may ---


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
async def test_refusal_tells_not_whether_the_log_exists(answer: Any) -> None:
    async with written() as (log, _):
        app = app_of(log, allow=lambda scope, log_id: answer)
        for method, route in ROUTES:
            there = await ask(app, method, route.format("a"))
            missing = await ask(app, method, route.format("b"))
            assert there.status == 403
            assert (there.headers, there.body) == (missing.headers, missing.body)
        assert (await log.head("a")).state == "closed"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allow": True}, "allow is a function that decides about a request, not True"),
        ({"chat_log": "x"}, "chat_log is a function of the id of a chat, not 'x'"),
        ({"ping": 0}, "ping is more than 0 seconds, not 0"),
        ({"poll": "20"}, "poll is 0 or more seconds, not '20'"),
        ({"log_path": "log"}, "log_path begins with a slash and ends with none, unlike 'log'"),
        ({"chat_path": "/c/"}, "chat_path begins with a slash and ends with none, unlike '/c/'"),
    ],
)
def test_wrong_option_of_the_app_is_refused(options: dict[str, Any], message: str) -> None:
    """A path without its slash served nothing, and said 404."""
    given: dict[str, Any] = {"allow": lambda scope, log_id: True, **options}
    with pytest.raises((TypeError, ValueError)) as raised:
        log_app(open_log(), **given)
    assert str(raised.value) == message


async def test_allow_is_asked_once_before_the_engine() -> None:
    asked: list[tuple[str, str, str]] = []

    async def allow(scope: Any, log_id: str) -> bool:
        asked.append((scope["method"], scope["path"], log_id))
        return False

    connection = Connection(memory_engine())
    connection.cut = True
    async with open_log(connection) as log:
        for method, route in ROUTES:
            await ask(app_of(log, allow=allow), method, route.format("x y"))
    expected = [(method, route.format("x y").partition("?")[0], "x y") for method, route in ROUTES]
    assert asked == expected


async def test_exception_of_allow_lets_nobody_in() -> None:
    def allow(scope: Any, log_id: str) -> bool:
        raise PermissionError("no user")

    async with written() as (log, _):
        with pytest.raises(PermissionError):
            await get(app_of(log, allow=allow), "/log/a")


async def test_other_paths_and_methods_are_refused() -> None:
    async with written() as (_, app):
        for path in ("/", "/log", "/log/", "/log/a/b", "/log/a/events/x", "/api/chat/a", "/x"):
            assert (await get(app, path)).status == 404
        assert (await get(app, "/log/" + 201 * "x")).status == 404
        refused = await ask(app, "PUT", "/log/a")
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, DELETE")
        assert (await get(app, "/log/a/stop")).status == 405


# --- the read side of Durable Streams ---


async def test_log_is_read_from_each_offset() -> None:
    async with written() as (log, app):
        whole = await get(app, "/log/a")
        events = json.loads(whole.body)
        assert [events[0]["type"], events[-1]["type"]] == ["created", "completed"]
        assert whole.headers["stream-closed"] == "true"
        tail = whole.headers["stream-next-offset"]
        for index, cursor in enumerate(await cursors(log)):
            offset = "{:08d}-{:012d}".format(*map(int, cursor.split("-")))
            for place in (offset, cursor):
                page = await get(app, f"/log/a?offset={place}")
                assert json.loads(page.body) == events[index + 1 :]
                assert page.headers["stream-next-offset"] == tail
        assert tail == offset
        assert json.loads((await get(app, "/log/a?offset=-1")).body) == events
        now = await get(app, "/log/a?offset=now")
        assert (now.body, now.headers["stream-next-offset"]) == (b"[]", tail)


async def test_long_log_is_read_in_pages() -> None:
    steps: list[bytes | float] = []
    for frame in frames_of(150):
        steps += [frame, 0.1]
    async with written(*steps) as (log, app):
        events: list[Any] = []
        offset = "-1"
        pages = 0
        while True:
            page = await get(app, f"/log/a?offset={offset}")
            events += json.loads(page.body)
            offset = page.headers["stream-next-offset"]
            pages += 1
            if "stream-closed" in page.headers:
                break
            assert "stream-up-to-date" not in page.headers
        assert pages == 3
        assert len(events) == len(await cursors(log))


async def test_head_tells_where_the_end_is() -> None:
    async with written(*FRAMES[:4], FOREVER) as (log, app):
        head = await ask(app, "HEAD", "/log/a")
        page = await get(app, "/log/a")
        assert (head.status, head.body, head.headers["cache-control"]) == (200, b"", "no-store")
        assert head.headers["stream-next-offset"] == page.headers["stream-next-offset"]
        assert "stream-closed" not in head.headers
        assert (page.headers["stream-up-to-date"], "stream-closed" in page.headers) == (
            "true",
            False,
        )
        await log.stop("a")
        await cursors(log)
        assert (await ask(app, "HEAD", "/log/a")).headers["stream-closed"] == "true"


async def test_etag_changes_with_the_log_and_its_end() -> None:
    async with written(*FRAMES[:4], FOREVER) as (log, app):
        first = await get(app, "/log/a")
        tail = first.headers["stream-next-offset"]
        again = await get(app, "/log/a", if_none_match=f'"other", {first.headers["etag"]}')
        assert (again.status, again.body) == (304, b"")
        assert again.headers["stream-next-offset"] == tail
        assert (await get(app, "/log/a", if_none_match='"other"')).status == 200
        at_tail = await get(app, f"/log/a?offset={tail}")
        assert (at_tail.body, at_tail.headers["cache-control"]) == (b"[]", "no-store")
        await log.stop("a")
        await cursors(log)
        assert (await get(app, "/log/a", if_none_match=first.headers["etag"])).status == 200
        assert '"etag"' not in (await get(app, "/log/a?offset=now")).headers
        assert first.headers["cache-control"] == "private, no-cache"


@each_case(
    "query",
    [
        "offset=",
        "offset=x",
        "offset=1,2",
        "offset=1%202",
        "offset=-2-",
        "offset=1-2&offset=1-2",
        "offset=9999999999999999",
        "live=sse",
        "live=long-poll",
        "live=yes&offset=-1",
        "offset=-1&cursor=1&cursor=2",
    ],
)
async def test_wrong_parameters_are_refused(query: str) -> None:
    async with written() as (_, app):
        refused = await get(app, f"/log/a?{query}")
        assert (refused.status, refused.error["kind"]) == (400, "invalid_request")


async def test_long_poll_waits_for_what_comes_next() -> None:
    async with written(*FRAMES[:4], 10.0, FRAMES[4], FOREVER) as (_, app):
        page = await get(app, "/log/a?offset=-1&live=long-poll")
        began = anyio.current_time()
        offset = page.headers["stream-next-offset"]
        for place in (offset, "now"):
            following = await get(app, f"/log/a?offset={place}&live=long-poll")
            assert following.status == 200 if place == offset else 204
        assert json.loads((await get(app, f"/log/a?offset={offset}")).body)
        assert 8 < anyio.current_time() - began < 31


async def test_long_poll_ends_after_its_time_or_the_end() -> None:
    async with written(*FRAMES[:4], FOREVER) as (log, app):
        began = anyio.current_time()
        quiet = await get(app, "/log/a?offset=now&live=long-poll&cursor=7")
        assert (quiet.status, quiet.body, anyio.current_time() - began) == (204, b"", 20)
        assert quiet.headers["stream-up-to-date"] == "true"
        cursor = quiet.headers["stream-cursor"]
        later = await get(app, f"/log/a?offset=now&live=long-poll&cursor={cursor}")
        assert int(later.headers["stream-cursor"]) > int(cursor)
        await log.stop("a")
        await cursors(log)
        began = anyio.current_time()
        closed = await get(app, "/log/a?offset=now&live=long-poll")
        assert (closed.status, closed.headers["stream-closed"]) == (204, "true")
        assert anyio.current_time() == began


async def test_only_a_live_read_of_an_open_log_has_a_cursor() -> None:
    """It makes a cache ask again: what cannot change is asked for once."""
    async with written(*FRAMES[:4], FOREVER) as (_, app):
        assert "stream-cursor" in (await get(app, "/log/a?offset=-1&live=long-poll")).headers
        assert "stream-cursor" not in (await get(app, "/log/a?offset=-1")).headers
    async with written() as (_, app):
        page = await get(app, "/log/a?offset=-1&live=long-poll")
        assert (page.status, "stream-cursor" in page.headers) == (200, False)


async def test_sse_of_the_protocol_goes_on_with_the_log() -> None:
    async with written(*FRAMES[:4], 2.0, *FRAMES[4:], FOREVER) as (log, app):
        answers: list[bytes] = []

        async def read() -> None:
            answers.append((await get(app, "/log/a?offset=-1&live=sse")).body)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.sleep(10)
            await log.stop("a")
        assert len(controls(answers[0])) > 2
        assert messages_in(answers[0])[-1]["type"] in ("completed", "failed")


async def test_sse_of_the_protocol_names_each_offset() -> None:
    async with written(*FRAMES[:4], 2.0, *FRAMES[4:6], 70.0, *FRAMES[6:]) as (_, app):
        whole = json.loads((await get(app, "/log/a")).body)
        body = (await get(app, "/log/a?offset=-1&live=sse")).body
        assert messages_in(body) == whole
        assert controls(body)[-1].keys() == {"streamNextOffset", "upToDate", "streamClosed"}
        offset = controls(body)[-1]["streamNextOffset"]
        at_end = await get(app, f"/log/a?offset={offset}&live=sse")
        assert (messages_in(at_end.body), len(controls(at_end.body))) == ([], 1)


async def test_sse_of_the_protocol_ends_after_a_minute() -> None:
    async with written(*FRAMES[:4], FOREVER) as (_, app):
        began = anyio.current_time()
        response = await get(app, "/log/a?offset=-1&live=sse")
        assert (response.is_complete, anyio.current_time() - began) == (True, 60)
        assert response.body.count(b": ping") == 3
        (control,) = controls(response.body)
        assert control["upToDate"] is True
        assert control["streamCursor"].isdigit()


# --- server-sent events with Last-Event-ID ---


async def test_event_source_comes_back_anywhere() -> None:
    """Readers that leave anywhere, as often as they like, get each event once."""
    choose = random.Random(19)
    steps: list[bytes | float] = []
    for frame in frames_of(40):
        steps += [frame, choose.random() * 0.2]
    reads: list[list[dict[str, str]]] = []
    async with open_log(memory_engine()) as log:
        await log.create("a")
        app = app_of(log, ping=0.3)

        async def read() -> None:
            events: list[dict[str, str]] = []
            while True:
                fields = {"last_event_id": events[-1]["id"]} if events else {}
                leave_after = choose.randint(2, 9)
                response = await get(app, "/log/a/events", leave_after=leave_after, **fields)
                if response.status == 204:
                    break
                events += sse(response.body)
            reads.append(events)

        async with anyio.create_task_group() as group:
            group.start_soon(log.write, "a", stream(*steps))
            for _ in range(20):
                group.start_soon(read)
        ids = await cursors(log)
    assert [event["id"] for event in reads[0]] == ids
    assert len(reads) == 20
    assert all(events == reads[0] for events in reads)


async def test_event_source_gets_pings_and_then_204() -> None:
    async with written(*FRAMES[:4], 40.0, *FRAMES[4:]) as (log, app):
        ids = await cursors(log)
        response = await get(app, "/log/a/events")
        assert response.headers["content-type"] == "text/event-stream"
        events = sse(response.body)
        assert [event["id"] for event in events] == ids
        for after in (ids[3], "4"):
            # The header is newer than the URL, which a browser repeats.
            rest = await get(app, "/log/a/events?after=1-1", last_event_id=after)
            assert sse(rest.body) == events[4:]
        assert sse((await get(app, f"/log/a/events?after={ids[3]}")).body) == events[4:]
        assert (await get(app, "/log/a/events", last_event_id=ids[-1])).status == 204
        assert (await get(app, "/log/a/events", last_event_id="x")).status == 400
    async with written(*FRAMES[:4], FOREVER) as (_, app):
        # Three pings, then the browser leaves.
        body = (await get(app, "/log/a/events", leave_after=5)).body
        assert body.endswith(3 * b": ping\n\n")


async def test_reader_that_leaves_ends_no_response() -> None:
    async with written(*FRAMES[:4], FOREVER) as (log, app):
        for path in ("/log/a/events", "/log/a?offset=-1&live=sse", "/api/chat/a/stream"):
            response = await get(app, path, leave_after=3)
            assert not response.is_complete
        with anyio.fail_after(0.1):
            call = AsgiCall(method="GET", path="/log/a?offset=now&live=long-poll")
            call._left.set()
            await call(app)
        assert call.messages == []
        assert (await log.head("a")).state == "open"


async def test_stalled_reader_holds_a_bounded_number_of_records() -> None:
    steps: list[bytes | float] = []
    for frame in frames_of(400):
        steps += [frame, 0.1]
    async with open_log(memory_engine()) as log, anyio.create_task_group() as group:
        await log.create("a")
        app = app_of(log)
        stalled = anyio.Event()
        ended = anyio.Event()
        body: list[bytes] = []

        async def send(message: Any) -> None:
            body.append(message.get("body", b""))
            if len(body) == 3:
                await stalled.wait()

        async def read() -> None:
            call = AsgiCall(method="GET", path="/log/a/events")
            call._send = send  # type: ignore[method-assign]
            await call(app)
            ended.set()

        group.start_soon(read)
        group.start_soon(log.write, "a", stream(*steps))
        held = 0
        while (await log.head("a")).state != "closed":
            await anyio.sleep(1)
            for follower in log._hub._followers.get("a", ()):
                held = max(held, len(follower.records))
        assert MAX_WAITING / 2 < held <= MAX_WAITING
        stalled.set()
        await ended.wait()
        assert [event["id"] for event in sse(b"".join(body))] == await cursors(log)
