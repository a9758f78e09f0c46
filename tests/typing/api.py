"""The types a user's checker sees. Never executed: mypy and basedpyright read it as they read an
application.

A name that a checker does not count as exported, or a return type that became `Any`, is an error
here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Unpack, assert_type

import streamlib
from streamlib import (
    CallOutput,
    Failed,
    FunctionCall,
    Image,
    Message,
    Notice,
    OutputTextDelta,
    Prompt,
    Request,
    ResponseEvent,
    RunEvent,
    StreamError,
    build,
    parser,
)
from streamlib.batch import Pace
from streamlib.client import ClientOptions
from streamlib.durable.http import LogSource
from streamlib.pipeline import (
    Keep,
    Measure,
    Narrow,
    Pipeline,
    SyncPipeline,
    chain,
    coalesce,
    map_events,
    only,
    pipe,
    smooth,
    tap,
    through,
    window,
)
from streamlib.testing import Turn, TurnLike, loopback, replay, scripted
from streamlib.tools import AgentOptions, Tool
from streamlib.tools.sync_run import SyncAgentRun


def parsing(body: bytes) -> None:
    p = parser("messages", headers={"request-id": "r"})
    assert_type(p, streamlib.Parser)
    assert_type(p.feed(body), list[ResponseEvent])
    assert_type(p.feed_event("{}", event="ping"), list[ResponseEvent])
    assert_type(p.close(), list[ResponseEvent])
    assert_type(streamlib.parse_body("chat", body), list[ResponseEvent])


def folding(events: list[ResponseEvent]) -> None:
    response = streamlib.accumulate(events)
    assert_type(response, streamlib.Response)
    assert_type(response.text, str)
    assert_type(response.items, tuple[streamlib.ResponseItem, ...])
    assert_type(streamlib.Accumulator().response, streamlib.Response)


def matching(event: ResponseEvent) -> str | None:
    match event:
        case OutputTextDelta():
            return assert_type(event.delta, str)
        case Failed():
            assert_type(event.error, streamlib.ErrorInfo)
            assert_type(event.error.retry_after, float | None)
            return None
        case _:
            return None


def calling(call: FunctionCall) -> None:
    assert_type(call.parsed(), dict[str, Any])
    assert_type(call.output("done"), streamlib.FunctionCallOutput)


def asking(history: Sequence[streamlib.ResponseItem]) -> None:
    assert_type(streamlib.user("hi"), Message)
    request = build(Prompt([*history, streamlib.user("and now?")]), "anthropic:claude-opus-5")
    assert_type(request, Request)
    assert_type(request.body, bytes)


def failing(error: StreamError) -> None:
    assert_type(error.info, streamlib.ErrorInfo)


async def streaming(client: streamlib.Client, chunks: AsyncIterator[bytes]) -> None:
    async with client.stream("hi", model="anthropic:claude-opus-5", errors="event") as stream:
        assert_type(stream, streamlib.ResponseStream)
        async for event in stream:
            assert_type(event, ResponseEvent)
        async for batch in stream.batches():
            assert_type(batch, list[ResponseEvent])
    assert_type(stream.response, streamlib.Response)
    assert_type(stream.timing, streamlib.Timing)
    assert_type(stream.rate_limits, streamlib.RateLimits | None)
    assert_type(stream.request, Request)
    assert_type(await client.respond(Prompt("hi"), model="openai:gpt-5"), streamlib.Response)
    assert_type(
        await client.respond("hi", "openai:gpt-5", wire_api="chat", dialects=(), errors="event"),
        streamlib.Response,
    )
    await client.respond("hi", "openai:gpt-5", wire="chat")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(
        streamlib.ResponseStream.from_chunks(chunks, parser("chat")), streamlib.ResponseStream
    )


def settings(transport: streamlib.Transport) -> streamlib.Client:
    deadlines = streamlib.Deadlines(idle=60, total=None)
    keys: dict[str, str | streamlib.Secret] = {
        "openai": "sk-…",
        "anthropic": streamlib.Secret("sk-…"),
    }
    return streamlib.Client(
        http=transport, api_key=keys, deadlines=deadlines, retry=streamlib.RetryPolicy(retries=3)
    )


async def texts(client: streamlib.Client) -> None:
    async with client.stream("hi", "anthropic:claude-opus-5") as stream:
        async for text in stream.text():
            assert_type(text, str)
    assert_type(await client.text("hi", "openai:gpt-5", wire_api="chat"), str)
    assert_type(stream.response.function_calls, tuple[FunctionCall, ...])
    for call in stream.response.function_calls:
        assert_type(call.parsed(), dict[str, Any])


async def conversing(client: streamlib.Client, path: Path) -> None:
    history = streamlib.History()
    response = await client.respond(history.user("hi", Image(data=b"\x89PNG")), "openai:gpt-5")
    assert_type(history.add(response), streamlib.History)
    history += response.items
    history += [streamlib.user("more"), streamlib.assistant("so")]
    history += [call.output("done") for call in response.calls]
    history.append(streamlib.user("again"))
    assert_type(history[-1], streamlib.ResponseItem)
    assert_type(streamlib.History.load(path), streamlib.History)
    await client.text(streamlib.Prompt(history), "openai:gpt-5")


def media() -> None:
    assert_type(Image(data=b"\x89PNG").data, str | None)
    streamlib.Document(b"%PDF", media_type="application/pdf")
    streamlib.Audio(data=bytearray(b"RIFF"), transcript="hello")
    Image(data=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def selecting(stream: streamlib.ResponseStream, events: list[ResponseEvent]) -> None:
    async with pipe(stream, only(OutputTextDelta)) as deltas:
        assert_type(deltas, Pipeline[OutputTextDelta])
        async for delta in deltas:
            assert_type(delta, OutputTextDelta)
        async for batch in deltas.batches():
            assert_type(batch, list[OutputTextDelta])
        async for text in deltas.text():
            assert_type(text, str)
    async with stream.pipe(coalesce(), only(OutputTextDelta, Failed)) as either:
        async for one in either:
            assert_type(one, OutputTextDelta | Failed)
    async with stream.pipe(only(OutputTextDelta), coalesce()) as joined:
        async for event in joined:
            assert_type(event, OutputTextDelta)
    assert_type(stream.pipe(coalesce(1 / 30), smooth(), tap(print)), Pipeline[ResponseEvent])
    assert_type(stream.pipe(tap(print), smooth(), coalesce(), only(Failed)), Pipeline[Failed])
    assert_type(stream.pipe(window(3)), Pipeline[list[ResponseEvent]])
    assert_type(stream.pipe(only(Failed)).pipe(tap(print)), Pipeline[Failed])
    assert_type(stream.pipe(tap(print)).pipe(only(Failed)), Pipeline[Failed])
    assert_type(through(events, only(OutputTextDelta)), list[OutputTextDelta])
    assert_type(through(events, coalesce(), only(Failed), tap(print)), list[Failed])
    kinds: list[type[ResponseEvent]] = [OutputTextDelta, Failed]
    assert_type(through(events, only(*kinds)), list[ResponseEvent])
    stream.pipe(print)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    stream.pipe(coalesce)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


def as_notice(event: ResponseEvent) -> Notice | None:
    if isinstance(event, Failed):
        return Notice(event.error.kind)
    return None


def composing(events: list[ResponseEvent]) -> None:
    assert_type(coalesce() | smooth(), Keep)
    assert_type(coalesce() | only(Failed), Narrow[Failed])
    assert_type(only(OutputTextDelta) | coalesce() | tap(print), Narrow[OutputTextDelta])
    assert_type(only(OutputTextDelta, Failed) | only(Failed), Narrow[Failed])
    assert_type(chain(coalesce(), smooth()), Keep)
    assert_type(chain(coalesce(), only(Failed), tap(print)), Narrow[Failed])
    assert_type(map_events(as_notice), Narrow[Notice])
    assert_type(through(events, map_events(as_notice)), list[Notice])
    coalesce() | print  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]


def in_a_thread(client: streamlib.SyncClient, events: list[ResponseEvent]) -> None:
    with client.stream("hi", "openai:gpt-5") as stream, stream.pipe(only(Failed)) as failures:
        assert_type(failures, SyncPipeline[Failed])
        for failed in failures:
            assert_type(failed, Failed)
    with pipe(events, coalesce(), errors="event") as piped:
        assert_type(piped, SyncPipeline[ResponseEvent])
        assert_type(piped.pipe(only(Failed)).pipe(coalesce()), SyncPipeline[Failed])


async def of_a_run(run: streamlib.AgentRun) -> None:
    measure = Measure()
    async with run.pipe(coalesce(), measure) as events:
        assert_type(events, Pipeline[RunEvent])
        assert_type(events.of(measure).first_token, float | None)
    async with run.pipe(only(OutputTextDelta)) as deltas:
        async for event in deltas:
            assert_type(event, OutputTextDelta | CallOutput)


async def of_a_log(source: LogSource) -> None:
    """The log of a run has outputs of calls, too."""
    assert_type(source.batches(), AsyncIterator[list[RunEvent]])
    async for event in source:
        assert_type(event, RunEvent)


async def testing() -> None:
    turns: list[TurnLike] = ["a", [FunctionCall("", "f")], streamlib.ErrorInfo("overloaded", "b")]
    async with scripted(turns, wire_api="chat", retry=streamlib.RetryPolicy()) as client:
        assert_type(client.requests[0].prompt, Prompt)
        assert_type(await client.text("x"), str)
    async with scripted(["a", Turn("b", fault="stall"), [streamlib.assistant("c")]]) as client:
        pass
    async with loopback(fault="truncate", client={"errors": "event"}) as other:
        assert_type(other, streamlib.Client)
    async with replay(b"", split="random", seed=3, errors="event") as other:
        assert_type(other, streamlib.Client)


async def misspelling() -> None:
    """Each of these is an error: mypy reports an ignore that ignores nothing."""
    loopback(fualt="stall")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    loopback(fault="stal")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    replay(b"", split="byte")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    replay(b"", spilt=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    scripted(["a"], pase=1.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def add(a: int, b: int = 2) -> int:
    return a + b


async def agents(client: streamlib.Client, prompt: Prompt) -> None:
    search = streamlib.ToolSpec.hosted("web_search")
    tools: list[Tool] = [add, (streamlib.ToolSpec("plus"), add), search]
    async with streamlib.agent(client, prompt, tools, model="openai:gpt-5", max_turns=3) as run:
        async for event in run:
            assert_type(event, streamlib.RunEvent)
    assert_type(run, streamlib.AgentRun)
    assert_type(run.history, streamlib.History)
    assert_type(run.response, streamlib.Response)
    assert_type(run.pending, list[streamlib.PendingCall])
    assert_type(run.usage, streamlib.Usage | None)
    run.stop()
    outputs = await streamlib.run_calls(run.response, [add], limit=4, timeout=30)
    assert_type(outputs, list[streamlib.CallOutput])
    assert_type(streamlib.ToolSpec.of(add), streamlib.ToolSpec)


def sync_agents(client: streamlib.SyncClient, **options: Unpack[AgentOptions]) -> None:
    with streamlib.agent(client, "Hi.", [add], "openai:gpt-5", max_turns=3, retry=None) as run:
        for event in run:
            assert_type(event, streamlib.RunEvent)
    assert_type(run, SyncAgentRun)
    assert_type(run.history, streamlib.History)
    assert_type(run.response, streamlib.Response)
    assert_type(run.pending, list[streamlib.PendingCall])
    assert_type(run.usage, streamlib.Usage | None)
    run.stop()
    assert_type(streamlib.agent(client, "Hi.", [add], **options), SyncAgentRun)
    streamlib.agent(client, "Hi.", turns=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


async def added_fields(client: streamlib.Client, blocking: streamlib.SyncClient) -> None:
    search = streamlib.ToolSpec.hosted("web_search")
    response = await client.respond("Hi.", "openai:gpt-5", temperature=0.2, tools=[add, search])
    assert_type(response, streamlib.Response)
    assert_type(await client.text("Hi.", "openai:gpt-5", instructions="Be brief."), str)
    assert_type(blocking.respond("Hi.", "openai:gpt-5", tools=[add]), streamlib.Response)
    assert_type(blocking.text("Hi.", "openai:gpt-5", instructions="Be brief."), str)


def paced(pace: Pace) -> None:
    options: ClientOptions = {"on_request": pace.on_request, "on_response": pace.on_response}
    # A TypedDict may have further keys, and pyright says so where none is taken.
    client = streamlib.Client(**options)  # pyright: ignore[reportArgumentType]
    assert_type(client, streamlib.Client)
    assert_type(streamlib.SyncClient(**options), streamlib.SyncClient)
