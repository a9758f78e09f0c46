"""A span around one stream, of a client without telemetry."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache

import msgspec
from opentelemetry.trace import Tracer

from streamlib.client.otel.telemetry import StreamSpan, Telemetry
from streamlib.client.stream import ResponseStream
from streamlib.request.prompt import Prompt


@asynccontextmanager
async def traced(
    stream: ResponseStream, prompt: Prompt | None = None, tracer: Tracer | None = None
) -> AsyncGenerator[ResponseStream]:
    """``async with traced(client.stream(prompt, …)) as stream:`` reads the stream inside a span.

    The span is the current one within the block. A stream of a client with telemetry has it
    anyway, and gets no second one.

    Args:
        stream: not entered yet.
        prompt: what the stream was asked, where that was a `Request`; else the stream knows it.
        tracer: None: that of the global tracer provider.
    """
    watch = stream._config.watch
    if not isinstance(watch, StreamSpan):
        telemetry = _default()
        if tracer is not None:
            telemetry = copy.copy(telemetry)
            telemetry.tracer = tracer
        watch = telemetry.of_stream(stream.request, prompt or stream._config.prompt)
        stream._config = msgspec.structs.replace(stream._config, watch=watch)
    async with stream:
        with watch.current():
            yield stream


@cache
def _default() -> Telemetry:
    # Once: an SDK warns of instruments that are made twice.
    return Telemetry()
