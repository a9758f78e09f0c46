"""The types a user's checker sees. Never executed: mypy and basedpyright read it as they read an
application.

A name that a checker does not count as exported, or a return type that became `Any`, is an error
here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, assert_type

import streamlib
from streamlib import (
    Failed,
    FunctionCall,
    Message,
    OutputTextDelta,
    Prompt,
    Request,
    ResponseEvent,
    StreamError,
    build,
    parser,
)


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
