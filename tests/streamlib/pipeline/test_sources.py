"""What can be piped, what a pipeline does with its source, and where a pipeline can go."""

from __future__ import annotations

import asyncio
import io
import operator
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import redirect_stdout
from types import ModuleType
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from streamlib import (
    CallOutput,
    Completed,
    ErrorInfo,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    FunctionCallOutput,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    StreamError,
    accumulate,
    agent,
    encoder,
    pipeline,
)
from streamlib.display.notebook import display
from streamlib.durable import open_log
from streamlib.durable.http import LogSource
from streamlib.pipeline import (
    Keep,
    Measure,
    aggregate,
    chain,
    coalesce,
    map_async,
    only,
    pipe,
    replace,
    smooth,
    tap,
    through,
    timeout,
    until,
)
from streamlib.recording import dump_events, load_events
from streamlib.testing import MODEL, echo_response, loopback, scripted, sync_loopback
from streamlib.testing.invariants import check, log
from streamlib.web import StreamResponse
from streamlib_parsers import parser
from tests.support.asgi_calls import AsgiCall
from tests.support.client_streams import FRAMES, stream_over
from tests.support.clients import MemoryTransport
from tests.support.events_source import EventsSource
from tests.support.response_bodies import MESSAGE
from tests.support.runs import SCENARIOS, three_steps
from tests.support.sync_clients import make_sync_client
from tests.support.ui_streams import read_vercel

EVENTS = echo_response(Prompt(input="hello there, how are you?", reasoning="low"))
TEXT = accumulate(EVENTS).text


async def same(event: ResponseEvent) -> ResponseEvent:
    return event


STAGES: list[list[Keep]] = [
    [],
    [tap(str)],
    [coalesce(0.0)],
    [smooth(lag=0.01)],
    [map_async(same)],
    [map_async(same), smooth(lag=0.01), timeout(gap=60), Measure(), coalesce(0.001)],
]
each_stages = pytest.mark.parametrize("stages", STAGES, ids=[str(len(s)) + str(s) for s in STAGES])


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


ADD = FunctionCall("", "add", '{"a": 1, "b": 2}')


# --- every kind of source ---


@each_stages
async def test_stream_of_a_client_is_piped(stages: list[Keep]) -> None:
    async with (
        loopback() as client,
        client.stream("Hello", model=MODEL) as stream,
        stream.pipe(*stages) as piped,
    ):
        events = [event async for event in piped]
    check(events)
    assert piped.response.text == stream.response.text
    assert accumulate(events) == piped.response == piped.snapshot


async def test_stream_that_was_not_entered_is_entered() -> None:
    async with loopback() as client:
        stream = client.stream("Hello", model=MODEL)
        async with stream.pipe(coalesce(0.0)) as piped:
            assert "".join([text async for text in piped.text()]) == piped.response.text
        assert stream.response.status == "completed"


@each_stages
def test_stream_of_a_sync_client_is_piped(stages: list[Keep]) -> None:
    """In the client's thread, so that timed and async stages work."""
    with (
        sync_loopback() as client,
        client.stream("Hello", model=MODEL) as stream,
        stream.pipe(*stages) as piped,
    ):
        events = list(piped)
    check(events)
    assert piped.response.text == stream.response.text
    assert accumulate(events) == piped.response


@each_stages
def test_sync_pipeline_reads_text_and_batches(stages: list[Keep]) -> None:
    with sync_loopback() as client:
        with client.stream("Hello", model=MODEL).pipe(*stages) as piped:
            assert "".join(piped.text()) == piped.response.text != ""
        with client.stream("Hello", model=MODEL).pipe(*stages) as piped:
            check([event for batch in piped.batches() for event in batch])


def test_sync_pipeline_refuses_its_text_when_read() -> None:
    with pipe(iter(EVENTS), tap(str)) as piped:
        list(piped)
        with pytest.raises(RuntimeError, match="read to its end"):
            piped.text()


@pytest.mark.parametrize("use", [operator.getitem, operator.contains])
def test_pipeline_with_a_loop_names_what_may_be_meant(use: Callable[[Any, int], object]) -> None:
    with pytest.raises(TypeError, match="not used with `for`, `in` or an index"):
        use(pipe(EventsSource(EVENTS), tap(str)), 3)


def test_sync_pipeline_may_be_left() -> None:
    with sync_loopback() as client:
        stream = client.stream("Hello", model=MODEL)
        with stream.pipe(tap(str)) as piped:
            next(piped)
        assert stream.response.status == "cancelled"
        with client.stream("Hello", model=MODEL).pipe(until(is_text), smooth()) as piped:
            assert isinstance(list(piped)[-1], Failed)


def test_sync_pipeline_raises_what_a_stage_raises() -> None:
    def fail(event: ResponseEvent) -> None:
        raise LookupError("mine")

    with sync_loopback() as client:
        stream = client.stream("Hello", model=MODEL)
        with stream.pipe(tap(fail)) as piped, pytest.raises(LookupError):
            list(piped)
        assert stream.response.status == "cancelled"


def test_sync_pipeline_shows_its_events_to_the_hook() -> None:
    seen: list[ResponseEvent] = []
    transport = MemoryTransport([MESSAGE])
    with (
        make_sync_client("http://faulty", transport, on_event=seen.append) as client,
        client.stream("Hello", model="faulty:m").pipe(coalesce(1)) as piped,
    ):
        list(piped)
    assert accumulate(seen).text == piped.response.text


def is_text(event: ResponseEvent) -> bool:
    return isinstance(event, OutputTextDelta)


@each_stages
async def test_run_is_piped(stages: list[Keep]) -> None:
    async with scripted([[ADD, ADD], "It is 3."]) as client:
        run = agent(client, "Add.", [add], model=MODEL)
        async with run.pipe(*stages) as piped:
            events = [event async for event in piped]
    ends = [type(event) for event in events if isinstance(event, (Completed, FunctionCallOutput))]
    assert ends == [Completed, FunctionCallOutput, FunctionCallOutput, Completed]
    assert piped.response.text == "It is 3."
    for response in responses(events):
        check(response)


async def test_run_that_a_stage_ends_is_closed() -> None:
    called = anyio.Event()
    cancelled = []

    async def hang(a: int) -> str:
        """Hangs."""
        called.set()
        try:
            await anyio.sleep(30)
        except BaseException:
            cancelled.append(a)
            raise
        return ""

    async with scripted([[FunctionCall("", "hang", '{"a": 1}')], "Done."]) as client:
        run = agent(client, "Hang.", [hang], model=MODEL)
        with anyio.fail_after(5):
            async with run, run.pipe(timeout(gap=0.05), coalesce(0.0)) as piped:
                first = await anext(piped)
                assert isinstance(first, ResponseEvent)
                async for event in piped:
                    if isinstance(event, Completed):
                        await called.wait()
                        await piped.aclose()
    assert cancelled == [1]


@pytest.mark.parametrize("name", SCENARIOS)
@each_stages
async def test_every_run_goes_through(name: str, stages: list[Keep]) -> None:
    """Numbers, items and the response begin again with each response; outputs are unchanged."""
    run = SCENARIOS[name]
    async with pipe(EventsSource(run), *stages) as piped:
        events = [event async for event in piped]
    assert [event for event in events if isinstance(event, CallOutput)] == [
        event for event in run if isinstance(event, CallOutput)
    ]
    for before, after in zip(responses(run), responses(events), strict=True):
        assert accumulate(after) == accumulate(before)
        assert [event.seq for event in after] == list(
            range(after[0].seq, after[0].seq + len(after))
        )
    assert piped.response == accumulate(responses(run)[-1])


def responses(run: Any) -> list[list[ResponseEvent]]:
    """The events of each response of a run."""
    found: list[list[ResponseEvent]] = [[]]
    for event in run:
        if isinstance(event, CallOutput):
            continue
        if found[-1] and isinstance(found[-1][-1], (Completed, Failed)):
            found.append([])
        found[-1].append(event)
    return found


def test_list_of_a_run_is_that_of_a_stream() -> None:
    run = three_steps()
    events = through(run, coalesce(1), tap(str))
    assert [type(one) for one in events if isinstance(one, CallOutput)] == [FunctionCallOutput] * 3
    with pipe(run, coalesce(float("inf"))) as piped:
        assert log(list(piped)) == log(events)


async def test_until_ends_a_run() -> None:
    source = EventsSource(three_steps())
    async with pipe(source, until(lambda event: isinstance(event, Completed))) as piped:
        events = [event async for event in piped]
    assert isinstance(events[-1], Completed)
    assert source.closed == 1


async def test_log_reader_is_piped() -> None:
    async with open_log("memory:", interval=0.001) as logs, loopback() as client:
        stream = client.stream("Hello", model=MODEL).pipe(coalesce(0.0))
        await logs.write("a", stream)
        async with logs.read("a").pipe(only(OutputTextDelta)) as deltas:
            text = "".join([delta.delta async for delta in deltas])
        assert text == stream.response.text == deltas.response.text != ""
        async with LogSource(logs, "a").pipe(aggregate()) as piped:
            events = [event async for event in piped]
    assert not any(isinstance(event, OutputTextDelta) for event in events)


async def test_generator_is_closed() -> None:
    closed = []

    async def generate() -> AsyncIterator[ResponseEvent]:
        try:
            for event in EVENTS:
                yield event
        finally:
            closed.append(True)

    for stages in STAGES:
        closed.clear()
        async with pipe(generate(), until(lambda event: event.seq == 3), *stages) as piped:
            async for _ in piped:
                pass
            assert closed == [True]


def test_iterable_is_piped_and_closed() -> None:
    closed = []

    def generate() -> Iterator[ResponseEvent]:
        try:
            yield from EVENTS
        finally:
            closed.append(True)

    with pipe(generate(), coalesce(0.0)) as piped:
        assert next(piped) == EVENTS[0]
    assert closed == [True]
    with pipe(EVENTS, coalesce(1000)) as piped:
        assert log(list(piped)) == log(through(EVENTS, coalesce(1)))
    with pipe(EVENTS) as piped:
        assert "".join(piped.text()) == TEXT == piped.response.text


async def test_pipelines_of_pipelines_are_one() -> None:
    async with pipe(EventsSource(EVENTS)).pipe(coalesce(0.0)).pipe(tap(str)) as piped:
        check([event async for event in piped])
    async with pipe(EventsSource(EVENTS), only(OutputTextDelta)) as inner, inner.pipe() as outer:
        assert "".join([text async for text in outer.text()]) == TEXT
    assert outer.response.status == "incomplete" or outer.response.text == TEXT


def test_sync_pipeline_of_a_selection_has_its_response() -> None:
    def texts(stream: Any) -> list[str]:
        return list(stream.text())

    reads: list[Callable[[Any], object]] = [list, texts]
    for read in reads:
        with (
            pipe(EVENTS, only(OutputTextDelta)) as first,
            first.pipe(tap(str)) as second,
            second.pipe(coalesce(0.0)) as third,
        ):
            read(third)
        assert third.response.text == second.response.text == TEXT
        assert third.item(1) == first.item(1)


async def test_pipeline_is_used_once() -> None:
    piped = pipe(EventsSource(EVENTS))
    with pytest.raises(RuntimeError, match="inside its"):
        await anext(piped)
    async with piped:
        pass
    with pytest.raises(RuntimeError, match="used once"):
        await piped.__aenter__()


# --- how it ends ---


async def test_wire_failure_raises_with_what_came_out() -> None:
    frames = FRAMES[:4]
    for stages in STAGES:
        stream = stream_over(*frames)
        seen: list[ResponseEvent] = []

        async def read(pipeline: Any, into: list[ResponseEvent]) -> None:
            async with pipeline as events:
                async for event in events:
                    into.append(event)

        with pytest.raises(StreamError, match="truncated") as caught:
            await read(stream.pipe(*stages), seen)
        response = caught.value.response
        assert response is not None
        assert response.text == accumulate(seen).text
        assert response.error == caught.value.info
        assert isinstance(seen[-1], OutputItemDone)
        assert seen[-1].item.status == "incomplete"


async def test_failure_that_is_raised_is_what_came_out() -> None:
    """Its message and its detail may repeat the text, as those of the event."""
    error = StreamError(ErrorInfo("server_error", "stopped at: secret", detail={"text": "secret"}))
    source = EventsSource(EVENTS[:3], then=error)
    piped = pipe(source, replace("secret", "[x]"))
    with pytest.raises(StreamError) as caught:
        async with piped:
            [event async for event in piped]
    assert caught.value.info == caught.value.args[0] == piped.response.error
    assert caught.value.message == "stopped at: [x]"
    assert caught.value.detail == {"text": "[x]"}


async def test_wire_failure_stays_an_event_where_it_is_one() -> None:
    async with stream_over(*FRAMES[:4], errors="event").pipe(coalesce(0.0)) as piped:
        events = [event async for event in piped]
    check(events)
    assert isinstance(events[-1], Failed)


async def test_wire_failure_behind_a_selection_raises_too() -> None:
    piped = stream_over(*FRAMES[:4]).pipe(only(OutputTextDelta, Failed), coalesce(100.0))
    seen: list[Any] = []

    async def read() -> None:
        async with piped as events:
            async for event in events:
                seen.append(event)

    with pytest.raises(StreamError, match="truncated"):
        await read()
    assert "".join(event.delta for event in seen) == piped.response.text == "Hello there"


async def test_run_that_fails_between_responses_keeps_its_last() -> None:
    async with scripted([[ADD]] * 3) as client:
        run = agent(client, "Add.", [add], model=MODEL, max_turns=1)

        async def read() -> None:
            async with run.pipe(coalesce(0.0)) as piped:
                async for _ in piped:
                    pass

        with pytest.raises(StreamError, match="max_turns") as caught:
            await read()
    assert caught.value.response is not None
    assert caught.value.response.status == "completed"


async def test_text_ends_where_until_ends_the_stream() -> None:
    async with pipe(EventsSource(EVENTS), until(is_text)) as piped:
        assert [text async for text in piped.text()] == ["You"]
    assert piped.response.status == "cancelled"


@each_stages
async def test_cancelled_reader_closes_the_source(stages: list[Keep]) -> None:
    source = EventsSource(EVENTS, stall=30)
    with anyio.fail_after(5):
        with anyio.move_on_after(0.05) as scope:
            async with pipe(source, *stages) as piped:
                async for _ in piped:
                    pass
    assert scope.cancelled_caught
    assert source.closed == 1


@pytest.mark.parametrize("stages", [(), (until(is_text),), (until(is_text), coalesce(0.0))])
async def test_source_is_closed_when_closing_is_cancelled(stages: tuple[Keep, ...]) -> None:
    for count in range(60):
        source = EventsSource(EVENTS[:8])

        async def use(source: EventsSource[ResponseEvent] = source) -> None:
            async with pipe(source, *stages) as piped:
                async for _ in piped:
                    pass

        async with anyio.create_task_group() as group:
            group.start_soon(use)
            for _ in range(count):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert source.closed or not source.sent, count


def test_source_is_closed_when_asyncio_cancels_its_task() -> None:
    async def use(source: EventsSource[ResponseEvent]) -> None:
        async with pipe(source) as piped:
            async for _ in piped:
                pass

    async def main() -> None:
        for count in range(40):
            source = EventsSource(EVENTS[:4])
            task = asyncio.create_task(use(source))
            for _ in range(count):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert source.closed or not source.sent, count

    asyncio.run(main())


async def test_wait_that_is_given_up_loses_nothing() -> None:
    """A task reads ahead, so the source does not notice."""
    async with pipe(EventsSource(EVENTS, pause=0.005), coalesce(0.0)) as piped:
        events: list[ResponseEvent] = []
        with anyio.fail_after(10):
            while not (events and isinstance(events[-1], Completed)):
                with anyio.move_on_after(0.003):
                    events.append(await anext(piped))
    assert accumulate(events) == accumulate(EVENTS)


async def test_piped_stream_may_be_closed_by_another_task() -> None:
    source = EventsSource(EVENTS, stall=30)
    with anyio.fail_after(5):
        async with pipe(source, coalesce(0.0)) as piped, anyio.create_task_group() as group:

            async def close() -> None:
                await anyio.sleep(0.05)
                await piped.aclose()

            group.start_soon(close)
            async for _ in piped:
                pass
    assert source.closed == 1


# --- where it goes ---


async def test_pipeline_is_sent_as_a_web_response() -> None:
    done: list[Any] = []
    screen = chain(coalesce(0.0), map_async(same))
    response = StreamResponse(stream_over(*FRAMES).pipe(screen), "vercel", on_done=done.append)
    call = await AsgiCall()(response)
    assert read_vercel(call.body)[-1]["finishReason"] == "stop"
    assert done[0].text == "Hello there"


async def test_piped_run_is_sent_as_a_web_response() -> None:
    async with scripted([[ADD], "It is 3."]) as client:
        run = agent(client, "Add.", [add], model=MODEL)
        call = await AsgiCall()(StreamResponse(run.pipe(coalesce(0.0)), "vercel"))
    parts = read_vercel(call.body)
    assert any(part["type"] == "tool-output-available" for part in parts)


async def test_pipeline_is_displayed() -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        await display(stream_over(*FRAMES).pipe(coalesce(0.0)))
    assert shown.getvalue().strip() == "Hello there"


def test_pipeline_is_dumped_and_encoded() -> None:
    with pipe(EVENTS, coalesce(1)) as piped:
        assert log(load_events(dump_events(piped))) == log(through(EVENTS, coalesce(1)))
    encode = encoder("messages")
    with pipe(EVENTS, coalesce(1)) as piped:
        body = b"".join([encode.feed(event) for event in piped]) + encode.close()
    parse = parser("messages")
    assert accumulate([*parse.feed(body), *parse.close()]).text == TEXT


async def test_partial_follows_what_comes_out() -> None:
    views: list[Any] = []
    async with (
        scripted([[FunctionCall("c", "f", '{"city": "Oslo"}')]]) as client,
        client.stream("x", model=MODEL).pipe(coalesce(0.0)) as piped,
    ):
        async for event in piped:
            if isinstance(event, FunctionCallArgumentsDelta):
                views.append(piped.partial(event.index))
    assert views[-1] == {"city": "Oslo"}


async def test_response_is_cancelled_where_the_reader_left() -> None:
    """It was incomplete without a reason; that of a stream is cancelled."""
    async with pipe(EventsSource(EVENTS), tap(str)) as piped:
        async for event in piped:
            if isinstance(event, OutputTextDelta):
                break
    assert piped.response.status == "cancelled"
    assert piped.response.text == "You"
    with pipe(EVENTS) as events:
        next(events)
    assert events.response.status == "cancelled"
    with pipe(EVENTS) as events:
        list(events)
    assert events.response.status == "completed"


def test_names_of_the_package_stay_what_they_are() -> None:
    """A module of the name of a function took its place once it was imported."""
    with pipe(EVENTS, coalesce(1)) as events:
        list(events)
    for name in pipeline.__all__:
        assert not isinstance(getattr(pipeline, name), ModuleType), name
