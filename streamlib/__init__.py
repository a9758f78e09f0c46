"""LLM wire APIs in and out: one history builds the request for every wire API, and every response
becomes one typed stream of events.

    import streamlib

    p = streamlib.parser("messages")
    for chunk in chunks:
        for event in p.feed(chunk):
            ...
    response = streamlib.accumulate(events)

`__all__` is the public vocabulary: the names below, and those of `streamlib_parsers`. Every name is
loaded at its first use, so that ``import streamlib`` takes less than a millisecond and loads no
HTTP library. Further abilities are in rooms: `streamlib.testing`, `streamlib.web` and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlib.lazy import lazy

if TYPE_CHECKING:
    # For type checkers, which do not read the table. `as` makes a name public for them.
    from msgspec import UNSET as UNSET

    from streamlib.client import Client as Client
    from streamlib.client.credentials import AwsCredentials as AwsCredentials
    from streamlib.client.credentials import Secret as Secret
    from streamlib.client.cursor import Cursor as Cursor
    from streamlib.client.model_list import ModelInfo as ModelInfo
    from streamlib.client.retry import RetryPolicy as RetryPolicy
    from streamlib.client.stream import ResponseStream as ResponseStream
    from streamlib.client.sync import SyncClient as SyncClient
    from streamlib.client.sync import SyncStream as SyncStream
    from streamlib.providers import Provider as Provider
    from streamlib.providers import register as register
    from streamlib.providers.models import Traits as Traits
    from streamlib.request.build import Request as Request
    from streamlib.request.build import build as build
    from streamlib.request.conversation import History as History
    from streamlib.request.prompt import CacheOptions as CacheOptions
    from streamlib.request.prompt import Prompt as Prompt
    from streamlib.request.prompt import ReasoningOptions as ReasoningOptions
    from streamlib.request.report import Change as Change
    from streamlib.tools import AgentRun as AgentRun
    from streamlib.tools import agent as agent
    from streamlib.tools import run_calls as run_calls
    from streamlib.transport import HttpResponse as HttpResponse
    from streamlib.transport import Transport as Transport
    from streamlib.transport.aiohttp import AiohttpTransport as AiohttpTransport
    from streamlib.transport.deadlines import Deadlines as Deadlines
    from streamlib.wires.decoders import parse_request as parse_request
    from streamlib.wires.encoders import encode_all as encode_all
    from streamlib.wires.encoders import encode_body as encode_body
    from streamlib.wires.encoders import encoder as encoder

    # All of it is public here too: its list is `streamlib_parsers.__all__`.
    from streamlib_parsers import *  # noqa: F403
    from streamlib_parsers.stream_error import StreamError as StreamError

__version__ = "0.3.0"

__getattr__, __dir__ = lazy(
    __name__,
    {
        "msgspec": ("UNSET",),
        "streamlib.client": ("Client",),
        "streamlib.client.credentials": ("AwsCredentials", "Secret"),
        "streamlib.client.cursor": ("Cursor",),
        "streamlib.client.model_list": ("ModelInfo",),
        "streamlib.client.retry": ("RetryPolicy",),
        "streamlib.client.stream": ("ResponseStream",),
        "streamlib.client.sync": ("SyncClient", "SyncStream"),
        "streamlib_parsers.stream_error": ("StreamError",),
        "streamlib.providers": ("Provider", "register"),
        "streamlib.providers.models": ("Traits",),
        "streamlib.request.build": ("Request", "build"),
        "streamlib.request.conversation": ("History",),
        "streamlib.request.prompt": ("CacheOptions", "Prompt", "ReasoningOptions"),
        "streamlib.request.report": ("Change",),
        "streamlib.tools": ("AgentRun", "agent", "run_calls"),
        "streamlib.transport": ("HttpResponse", "Transport"),
        "streamlib.transport.aiohttp": ("AiohttpTransport",),
        "streamlib.transport.deadlines": ("Deadlines",),
        "streamlib.wires.decoders": ("parse_request",),
        "streamlib.wires.encoders": ("encode_all", "encode_body", "encoder"),
    },
    vocabulary="streamlib_parsers",
    unlisted=frozenset({"AiohttpTransport"}),  # it needs the extra `aiohttp`
)
