"""LLM wire APIs in and out: one history builds the request for every wire API, and every response
becomes one typed stream of events.

    import streamlib

    p = streamlib.parser("messages")
    for chunk in chunks:
        for event in p.feed(chunk):
            ...
    response = streamlib.accumulate(events)

`__all__` is the public vocabulary. Every name is loaded at its first use, so that
``import streamlib`` takes less than a millisecond and loads no HTTP library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from msgspec import UNSET

    import streamlib_parsers
    from streamlib.client import Client
    from streamlib.client.credentials import AwsCredentials, Secret
    from streamlib.client.cursor import Cursor
    from streamlib.client.hooks import AttemptRequest, AttemptResponse
    from streamlib.client.interactions import (
        cancel_interaction,
        delete_interaction,
        get_interaction,
    )
    from streamlib.client.model_list import ModelInfo
    from streamlib.client.retry import RetryPolicy
    from streamlib.client.stream import ResponseStream
    from streamlib.client.sync import SyncClient, SyncStream
    from streamlib.client.websocket import Connection, LaneStream
    from streamlib.errors import StreamError
    from streamlib.providers import Provider, register
    from streamlib.providers.models import Traits
    from streamlib.request.build import Request, build
    from streamlib.request.conversation import History
    from streamlib.request.history import dump_history, keep_last_images, load_history
    from streamlib.request.prompt import CacheOptions, Prompt, ReasoningOptions
    from streamlib.request.report import Change
    from streamlib.structured.json_items import JsonItems
    from streamlib.structured.stream_items import json_items
    from streamlib.tools import AgentRun, agent, run_calls
    from streamlib.transport import HttpResponse, Transport
    from streamlib.transport.aiohttp import AiohttpTransport as AiohttpTransport
    from streamlib.transport.deadlines import Deadlines
    from streamlib.web.ui_request import UIRequest, parse_ui_request
    from streamlib.wires.decoders import parse_request
    from streamlib.wires.encoders import encode_all, encode_body, encoder

    # All of it is public here too: its list is `streamlib_parsers.__all__`.
    from streamlib_parsers import *  # noqa: F403
    from streamlib_parsers.build_kind import compiled

    # For type checkers, which read no table; `_public_names` for everybody else.
    __all__ = [
        "UNSET",
        "AgentRun",
        "AttemptRequest",
        "AttemptResponse",
        "AwsCredentials",
        "CacheOptions",
        "Change",
        "Client",
        "Connection",
        "Cursor",
        "Deadlines",
        "History",
        "HttpResponse",
        "JsonItems",
        "LaneStream",
        "ModelInfo",
        "Prompt",
        "Provider",
        "ReasoningOptions",
        "Request",
        "ResponseStream",
        "RetryPolicy",
        "Secret",
        "StreamError",
        "SyncClient",
        "SyncStream",
        "Traits",
        "Transport",
        "UIRequest",
        "agent",
        "build",
        "cancel_interaction",
        "compiled",
        "delete_interaction",
        "dump_history",
        "encode_all",
        "encode_body",
        "encoder",
        "get_interaction",
        "json_items",
        "keep_last_images",
        "load_history",
        "parse_request",
        "parse_ui_request",
        "register",
        "run_calls",
    ]
    __all__ += streamlib_parsers.__all__

__version__ = "0.2.0"

_LAZY: dict[str, str] = {  # name -> module that is imported at the first use of the name
    "Client": "streamlib.client",
    "Cursor": "streamlib.client.cursor",
    "ResponseStream": "streamlib.client.stream",
    "Deadlines": "streamlib.transport.deadlines",
    "RetryPolicy": "streamlib.client.retry",
    "Transport": "streamlib.transport",
    "HttpResponse": "streamlib.transport",
    "AiohttpTransport": "streamlib.transport.aiohttp",
    "Secret": "streamlib.client.credentials",
    "AwsCredentials": "streamlib.client.credentials",
    "AttemptRequest": "streamlib.client.hooks",
    "AttemptResponse": "streamlib.client.hooks",
    "Connection": "streamlib.client.websocket",
    "LaneStream": "streamlib.client.websocket",
    "SyncClient": "streamlib.client.sync",
    "SyncStream": "streamlib.client.sync",
    "ModelInfo": "streamlib.client.model_list",
    "cancel_interaction": "streamlib.client.interactions",
    "delete_interaction": "streamlib.client.interactions",
    "get_interaction": "streamlib.client.interactions",
    "Request": "streamlib.request.build",
    "build": "streamlib.request.build",
    "parse_request": "streamlib.wires.decoders",
    "encode_all": "streamlib.wires.encoders",
    "encode_body": "streamlib.wires.encoders",
    "encoder": "streamlib.wires.encoders",
    "StreamError": "streamlib.errors",
    "History": "streamlib.request.conversation",
    "dump_history": "streamlib.request.history",
    "keep_last_images": "streamlib.request.history",
    "load_history": "streamlib.request.history",
    "CacheOptions": "streamlib.request.prompt",
    "Prompt": "streamlib.request.prompt",
    "ReasoningOptions": "streamlib.request.prompt",
    "JsonItems": "streamlib.structured.json_items",
    "json_items": "streamlib.structured.stream_items",
    "UNSET": "msgspec",
    "Provider": "streamlib.providers",
    "register": "streamlib.providers",
    "Traits": "streamlib.providers.models",
    "Change": "streamlib.request.report",
    "AgentRun": "streamlib.tools",
    "agent": "streamlib.tools",
    "run_calls": "streamlib.tools",
    "UIRequest": "streamlib.web.ui_request",
    "parse_ui_request": "streamlib.web.ui_request",
    "compiled": "streamlib_parsers.build_kind",
}

_NOT_STARRED: Final = frozenset({"AiohttpTransport"})
"""Names left out of `__all__`: `from streamlib import *` must work without the extra `aiohttp`."""


def _public_names() -> list[str]:
    vocabulary: list[str] = importlib.import_module("streamlib_parsers").__all__
    return [*sorted(_LAZY.keys() - _NOT_STARRED), *vocabulary]


def __getattr__(name: str) -> Any:
    value: Any
    if name == "__all__":
        value = _public_names()
    elif name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
    elif not name.startswith("_") and name in _public_names():
        value = getattr(importlib.import_module("streamlib_parsers"), name)
    else:
        raise AttributeError(f"module 'streamlib' has no attribute {name!r}")
    globals()[name] = value  # the next use finds it without `__getattr__`
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_public_names()})
