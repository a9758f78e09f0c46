"""Background responses: cursors, `Client.resume`, `Client.cancel`, connecting again."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from lab.resume.cuts import (
    PROMPT,
    Counts,
    borders,
    check_stream,
    derived_streams,
    recorded_streams,
)
from lab.resume.serving import URL, BreakingProvider, open_client
from streamlib import Client, Cursor, Deadlines, Origin, Prompt, RetryPolicy, StreamError
from streamlib_parsers.events import Completed, Failed, RateLimits, ResponseEvent
from streamlib_parsers.items import WireApi
from tests.support.cases import each_case
from tests.support.clients import KEY, MemoryTransport
from tests.support.keys import UNUSUAL_KEY, printed
from tests.support.sync_clients import make_sync_client

RESUMABLE: tuple[WireApi, ...] = ("responses", "interactions")
ORIGIN = Origin("responses", "keeper", URL, "m")
CURSOR = Cursor(ORIGIN, "resp_1", 6)


async def read(client: Client, wire_api: WireApi, **options: Any) -> tuple[list[Any], Any]:
    """The events of a background stream, and the stream."""
    stream = client.stream(PROMPT, "keeper:m", wire_api=wire_api, errors="event", **options)
    async with stream:
        return [event async for event in stream], stream


async def body_of(wire_api: WireApi) -> bytes:
    """The bytes of the loopback's background stream."""
    provider = BreakingProvider()
    async with open_client(provider) as client:
        await read(client, wire_api)
    stored = next(iter(provider.loopback._background._stored.values()))
    return b"".join(stored.frames)


# --- cursors ---


def test_cursor_goes_through_text_and_json() -> None:
    google = Origin("interactions", "google", "https://x", "m")
    for cursor in (CURSOR, Cursor(google, "ä", "e"), Cursor(google, "v1_a")):
        assert Cursor.parse(str(cursor)) == cursor
        assert Cursor.parse(json.dumps(json.loads(str(cursor)))) == cursor
        assert str(cursor).isascii()
        assert "\n" not in str(cursor)


@each_case(
    "text",
    [
        "",
        "{}",
        "[1]",
        b"\xff",
        "[" * 5000,
        " " * 9000,
        str(CURSOR).replace("responses", "messages"),
        str(CURSOR).replace("responses", "nothing"),
        str(CURSOR).replace("6}", '"6"}'),
        str(CURSOR).replace("resp_1", ""),
    ],
)
def test_text_that_is_not_a_cursor_is_refused(text: str | bytes) -> None:
    with pytest.raises(StreamError) as caught:
        Cursor.parse(text)
    assert (caught.value.kind, caught.value.code) == ("invalid_request", "cursor")


@pytest.mark.parametrize("wire_api", RESUMABLE)
async def test_cursor_is_there_from_the_first_event_on(wire_api: WireApi) -> None:
    async with open_client(BreakingProvider()) as client:
        stream = client.stream(PROMPT, "keeper:m", wire_api=wire_api)
        assert stream.cursor is None
        async with stream:
            cursors = [stream.cursor async for _ in stream]
        assert cursors[-1] is not None
        assert cursors[-1].response_id == stream.response.response_id
        assert cursors[-1].origin.endpoint == URL
        assert KEY not in str(cursors[-1])
        known = [cursor.position for cursor in cursors if cursor is not None]
        assert len(set(known)) > len(known) // 3


@pytest.mark.parametrize("extra", [None, {"background": False}, {"metadata": {"background": "1"}}])
async def test_stream_that_is_not_in_the_background_has_none(extra: Any) -> None:
    async with open_client(BreakingProvider()) as client:
        async with client.stream(Prompt("Hi", extra=extra), "keeper:m") as stream:
            assert {stream.cursor async for _ in stream} == {None}
        assert stream.cursor is None


async def test_stream_of_another_wire_has_no_cursor() -> None:
    body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    async with Client(http=MemoryTransport([body]), base_url=URL, api_key=KEY) as client:
        options: Any = {"provider": "custom", "wire_api": "chat", "resume": True}
        async with client.stream(PROMPT, "m", **options) as stream:
            async for _ in stream:
                assert stream.cursor is None


# --- resume ---


@pytest.mark.parametrize("wire_api", RESUMABLE)
async def test_resumed_stream_yields_what_was_not_delivered(wire_api: WireApi) -> None:
    """Leave the stream behind each event, and take it up in another client."""
    expected, _ = await read(open_client(BreakingProvider()), wire_api)
    for count in range(1, len(expected), 6):
        provider = BreakingProvider()
        async with open_client(provider) as first:
            stream = first.stream(PROMPT, "keeper:m", wire_api=wire_api)
            async with stream:
                before = [await anext(stream) for _ in range(count)]
                cursor = stream.cursor
        assert cursor is not None
        assert stream.cursor == cursor  # what nobody read was not delivered
        async with open_client(provider) as second:
            resumed = second.resume(Cursor.parse(str(cursor)))
            async with resumed:
                after = [event async for event in resumed]
        # An event of a frame that was delivered in part comes again, with its number.
        assert after[0].seq <= count
        assert before[: after[0].seq] + after == expected
        assert resumed.response.items == _items(expected)
        assert isinstance(after[-1], Completed)


def _items(events: list[ResponseEvent]) -> Any:
    from streamlib import accumulate

    return accumulate(events).items


async def test_requests_are_those_of_the_documents() -> None:
    provider = BreakingProvider(breaks=[1500])
    async with open_client(provider) as client:
        _, stream = await read(client, "responses", resume=True)
        async with client.resume(stream.cursor, headers={"x-test": "1"}) as resumed:
            async for _ in resumed:
                pass
        await client.cancel(stream.cursor)
    response_id = stream.cursor.response_id
    sent = [(method, url.removeprefix(URL)) for method, url, _ in provider.sent]
    assert sent[0] == ("POST", "/responses")
    assert sent[1][0] == "GET"
    assert sent[1][1].startswith(f"/responses/{response_id}?stream=true&starting_after=")
    assert sent[2] == ("GET", f"/responses/{response_id}?stream=true")
    assert sent[3] == ("POST", f"/responses/{response_id}/cancel")
    assert [headers["x-api-key"] for _, _, headers in provider.sent] == [KEY] * 4
    assert provider.sent[2][2]["x-test"] == "1"


async def test_interactions_are_taken_up_by_their_event_id() -> None:
    provider = BreakingProvider(breaks=[1500])
    async with open_client(provider) as client:
        await read(client, "interactions", resume=True)
    assert "?stream=true&last_event_id=evt-" in provider.sent[1][1]


@pytest.mark.parametrize(
    "origin",
    [
        Origin("responses", "keeper", "https://evil.example/v1", "m"),
        Origin("responses", "keeper", URL.replace("https", "http"), "m"),
        Origin("responses", "keeper", f"{URL}/other", "m"),
        Origin("responses", "keeper", "https://user:pass@background.example/v1", "m"),
        Origin("responses", "openai", URL, "m"),
        Origin("responses", "keeper", None, "m"),
        Origin("messages", "anthropic", "https://api.anthropic.com", "m"),
    ],
)
async def test_cursor_of_another_origin_is_refused(origin: Origin) -> None:
    """It may come from a browser: it must not decide where a key is sent."""
    provider = BreakingProvider()
    cursor = Cursor(origin, "resp_1", 6)
    async with open_client(provider) as client:
        with pytest.raises(StreamError) as caught:
            client.resume(cursor, api_key=UNUSUAL_KEY)
        assert (caught.value.kind, caught.value.code) == ("invalid_request", "cursor")
        assert UNUSUAL_KEY not in printed(caught.value)
        with pytest.raises(StreamError):
            await client.cancel(cursor)
    assert provider.sent == []


async def test_provider_of_the_call_must_be_that_of_the_cursor() -> None:
    """Its keys are of another service, even where the base URL is the same."""
    async with open_client(BreakingProvider()) as client:
        with pytest.raises(StreamError, match="the cursor is of openai"):
            client.resume(Cursor(Origin("responses", "openai", URL), "r", 6), provider="keeper")


async def test_server_without_numbers_gives_no_cursor() -> None:
    """llama.cpp ignores `background`: its stream cannot be taken up."""
    body = (await body_of("responses")).replace(b'"sequence_number"', b'"other"')
    memory = MemoryTransport([body[:5000]])
    async with open_client(memory, resume=True) as client:
        events, stream = await read(client, "responses")
    assert stream.response.response_id is not None
    assert stream.cursor is None
    assert isinstance(events[-1], Failed)
    assert len(memory.sent) == 1


async def test_polled_response_is_created_once() -> None:
    """A JSON body that is cut may be of a response that runs already."""
    headers = {"content-type": "application/json"}
    memory = MemoryTransport([b'{"id":"resp_1","status":"que'], headers=headers)
    async with open_client(memory) as client:
        prompt = Prompt("Hi", background=True, stream=False)
        async with client.stream(prompt, "keeper:m", errors="event") as stream:
            events = [event async for event in stream]
    assert isinstance(events[-1], Failed)
    assert stream.cursor is None
    assert len(memory.sent) == 1


async def test_base_url_of_the_call_decides_with_the_cursor() -> None:
    """A stream at a base URL of its own: this client knows it, another needs it again."""
    provider = BreakingProvider()
    elsewhere = URL.replace("/v1", "")
    async with open_client(provider) as client:
        _, stream = await read(client, "responses", base_url=elsewhere, api_key=KEY)
        async with client.resume(stream.cursor, api_key=KEY) as resumed:
            assert isinstance([event async for event in resumed][-1], Completed)
    async with open_client(provider) as other:
        with pytest.raises(StreamError, match="give provider= and base_url="):
            other.resume(stream.cursor)
        async with other.resume(stream.cursor, base_url=elsewhere, api_key=KEY) as resumed:
            assert isinstance([event async for event in resumed][-1], Completed)


@pytest.mark.parametrize("response_id", [".", "..", "a/../b", "a?b#c", "ä b"])
async def test_response_id_stays_one_segment_of_the_path(response_id: str) -> None:
    provider = BreakingProvider()
    async with open_client(provider) as client:
        with pytest.raises(StreamError):
            await client.cancel(Cursor(ORIGIN, response_id, 6))
    for _, url, _ in provider.sent:
        path = url.removeprefix(f"{URL}/responses/")
        assert path.count("/") == 1
        assert "?" not in path
        assert "#" not in path


async def test_unknown_response_is_not_found() -> None:
    async with open_client(BreakingProvider()) as client:
        with pytest.raises(StreamError) as caught:
            async with client.resume(CURSOR) as stream:
                await anext(stream)
    assert caught.value.kind == "not_found"


async def test_rate_limits_of_the_new_connection_are_not_an_event() -> None:
    """They are of another request; the response has them."""
    body = await body_of("responses")
    headers = {
        "x-ratelimit-remaining-requests": "7",
        "x-request-id": KEY,
        "content-type": "text/event-stream",
    }
    memory = MemoryTransport([body], headers=headers)
    cursor = Cursor(ORIGIN, "resp_1", 3)
    async with open_client(memory) as client, client.resume(cursor) as stream:
        events = [event async for event in stream]
    assert not any(isinstance(event, RateLimits) for event in events)
    assert stream.rate_limits is not None
    assert stream.rate_limits.requests is not None
    assert stream.rate_limits.requests.remaining == 7
    assert KEY not in repr(stream.response)
    assert KEY not in repr(stream.rate_limits.raw)


async def test_tools_of_the_prompt_have_their_own_names() -> None:
    from streamlib import FunctionCall, OutputItemDone, ToolSpec
    from streamlib.testing import Behaviour, echo_response
    from streamlib.testing.provider.provider import Loopback

    prompt = Prompt("Hi", tools=[ToolSpec("a tool!", "…", {})], background=True)
    provider = BreakingProvider()
    provider.loopback = Loopback(Behaviour(), echo_response)
    async with open_client(provider) as client:
        async with client.stream(prompt, "keeper:m") as stream:
            await anext(stream)
            cursor = stream.cursor
        assert cursor is not None
        names: list[str] = []
        for given in (prompt, None):
            async with client.resume(cursor, given) as resumed:
                async for event in resumed:
                    if isinstance(event, OutputItemDone) and isinstance(event.item, FunctionCall):
                        names.append(event.item.name)
    assert names[0] == "a tool!"


# --- cancel ---


@pytest.mark.parametrize("wire_api", RESUMABLE)
async def test_cancelled_response_is_cancelled(wire_api: WireApi) -> None:
    provider = BreakingProvider(breaks=[900])
    async with open_client(provider) as client:
        _, stream = await read(client, wire_api)
        response = await client.cancel(stream.cursor)
        assert response.status == "cancelled"
        # Its stream ends where it was, without a last event: it is not taken for complete.
        async with client.resume(stream.cursor, errors="event") as resumed:
            events = [event async for event in resumed]
        assert isinstance(events[-1], Failed)


async def test_response_that_had_ended_stays_completed() -> None:
    async with open_client(BreakingProvider()) as client:
        _, stream = await read(client, "responses")
        assert (await client.cancel(stream.cursor)).status == "completed"


# --- connecting again ---


@pytest.mark.parametrize("wire_api", RESUMABLE)
async def test_nothing_connects_again_unasked(wire_api: WireApi) -> None:
    provider = BreakingProvider(breaks=[900])
    async with open_client(provider) as client:
        events, stream = await read(client, wire_api)
        assert isinstance(events[-1], Failed)
        assert events[-1].error.kind == "truncated"
    assert len(provider.sent) == 1
    assert stream.reconnected == ()


@pytest.mark.parametrize("error", [None, ConnectionResetError("lost")])
async def test_client_option_connects_again(error: Exception | None) -> None:
    provider = BreakingProvider(breaks=[5000, 40, 700, 10], error=error)
    async with open_client(provider, resume=True) as client:
        events, stream = await read(client, "responses")
        assert isinstance(events[-1], Completed)
    expected, _ = await read(open_client(BreakingProvider()), "responses")
    assert events == expected
    assert len(stream.reconnected) == 4
    assert {failure.retryable for failure in stream.reconnected} == {True}


async def test_stalled_connection_is_replaced() -> None:
    provider = BreakingProvider(breaks=[5000], stalls=True)
    async with open_client(provider, resume=True, deadlines=Deadlines(idle=0.03)) as client:
        events, stream = await read(client, "responses")
    assert isinstance(events[-1], Completed)
    assert {failure.kind for failure in stream.reconnected} == {"stalled"}


async def test_total_deadline_ends_the_stream() -> None:
    provider = BreakingProvider(breaks=[5000], stalls=True)
    async with open_client(provider, resume=True, deadlines=Deadlines(total=0.01)) as client:
        events, _ = await read(client, "responses")
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == "deadline"
    assert len(provider.sent) == 1


async def test_option_of_a_stream_wins_over_the_clients() -> None:
    provider = BreakingProvider(breaks=[900])
    async with open_client(provider, resume=True) as client:
        events, _ = await read(client, "responses", resume=False)
    assert isinstance(events[-1], Failed)
    assert len(provider.sent) == 1


async def test_policy_limits_connections_without_progress() -> None:
    provider = BreakingProvider(breaks=[900], is_silent=True)
    async with open_client(provider, resume=True, retry=RetryPolicy(3, base=0.0)) as client:
        events, _ = await read(client, "responses")
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == "truncated"
    assert len(provider.sent) == 4


async def test_resumed_stream_connects_again_too() -> None:
    provider = BreakingProvider(breaks=[900, 1200, 300])
    async with open_client(provider) as client:
        _, stream = await read(client, "responses")
        async with client.resume(stream.cursor, resume=True) as resumed:
            after = [event async for event in resumed]
        assert resumed.response.items == (await read(client, "responses"))[1].response.items
    assert isinstance(after[-1], Completed)
    assert len(resumed.reconnected) == 2


async def test_refused_connection_ends_the_stream_with_its_error() -> None:
    provider = BreakingProvider(breaks=[900])

    async def forget(*arguments: Any) -> Any:
        provider.loopback._background._stored.clear()
        return await original(*arguments)

    original, provider.send = provider.send, forget  # type: ignore[method-assign]
    async with open_client(provider, resume=True) as client:
        events, _ = await read(client, "responses")
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == "not_found"


async def test_background_response_is_created_once() -> None:
    """A break before the first id: the response may run already, and would be paid twice."""
    for cut in (0, 10, 100):
        provider = BreakingProvider(breaks=[cut])
        async with open_client(provider, resume=True) as client:
            events, stream = await read(client, "responses")
        assert len(provider.sent) == 1
        assert stream.cursor is None
        assert isinstance(events[-1], Failed)


async def test_stream_can_be_closed_while_it_waits_to_connect() -> None:
    provider = BreakingProvider(breaks=[900])
    slow = RetryPolicy(base=60.0, cap=60.0)
    async with open_client(provider, resume=True, retry=slow) as client:
        stream = client.stream(PROMPT, "keeper:m", errors="event")
        events: list[ResponseEvent] = []
        async with stream, anyio.create_task_group() as group:

            async def reader() -> None:
                events.extend([event async for event in stream])

            group.start_soon(reader)
            await anyio.wait_all_tasks_blocked()
            await stream.aclose()
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == "cancelled"
    assert len(provider.sent) == 1


def test_sync_client_resumes_and_cancels() -> None:
    provider = BreakingProvider(breaks=[900])
    options: Any = {"providers": open_client(provider)._providers}
    with make_sync_client(URL, provider, **options) as client:
        with client.stream(PROMPT, "keeper:m", wire_api="responses", errors="event") as stream:
            before = list(stream)
        assert stream.reconnected == ()
        cursor = stream.cursor
        assert cursor is not None
        with client.resume(cursor) as resumed:
            after = list(resumed)
        joined = before[: after[0].seq] + after
        assert isinstance(joined[-1], Completed)
        assert resumed.response.items == _items(joined)
        assert client.cancel(cursor).status == "completed"


# --- every byte: the small form of `python -m lab.resume` ---


async def test_events_are_equal_wherever_a_stream_breaks() -> None:
    counts = Counts()
    for stream in [*derived_streams(), *recorded_streams(2)]:
        size = len(stream.body) - stream.first_connection
        await check_stream(stream, {*range(0, size + 1, 797), *borders(stream)[:12]}, counts)
    assert counts.violations == []
    assert counts.reconnected > 10
    assert counts.resumed_by_cursor > 10
    assert counts.before_first_id > 2
