"""One conversation, any LLM wire: a history builds the request for every wire API, and any response becomes one typed stream.

    import streamlib

    p = streamlib.parser("messages")
    for chunk in chunks:
        for event in p.feed(chunk):
            ...
    response = streamlib.accumulate(events)

The names below are the whole public vocabulary. Those that need HTTP are loaded at first use: `import streamlib` loads none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import streamlib_parsers
from streamlib_parsers import *  # noqa: F403  # the vocabulary is re-exported whole, its list is streamlib_parsers.__all__

if TYPE_CHECKING:
    from streamlib.auth import AwsCredentials, Secret
    from streamlib.catalogue import ModelInfo
    from streamlib.client import Client
    from streamlib.deadlines import Deadlines
    from streamlib.decoders import parse_request
    from streamlib.encoders import encode_body, encoder
    from streamlib.errors import StreamError
    from streamlib.history import dump_history, keep_last_images, load_history
    from streamlib.prompt import CacheOptions, Prompt, ReasoningOptions
    from streamlib.providers import Provider, register
    from streamlib.report import Change
    from streamlib.request import Request, build
    from streamlib.retry import RetryPolicy
    from streamlib.stream import ResponseStream
    from streamlib.transport import Answer, Transport

__version__ = "0.1.0"

_LAZY: dict[str, str] = {
    "Client": "streamlib.client",
    "ResponseStream": "streamlib.stream",
    "Deadlines": "streamlib.deadlines",
    "RetryPolicy": "streamlib.retry",
    "Transport": "streamlib.transport",
    "Answer": "streamlib.transport",
    "Secret": "streamlib.auth",
    "AwsCredentials": "streamlib.auth",
    "ModelInfo": "streamlib.catalogue",
    "Request": "streamlib.request",
    "build": "streamlib.request",
    "parse_request": "streamlib.decoders",
    "encode_body": "streamlib.encoders",
    "encoder": "streamlib.encoders",
    "StreamError": "streamlib.errors",
    "dump_history": "streamlib.history",
    "keep_last_images": "streamlib.history",
    "load_history": "streamlib.history",
    "CacheOptions": "streamlib.prompt",
    "Prompt": "streamlib.prompt",
    "ReasoningOptions": "streamlib.prompt",
    "Provider": "streamlib.providers",
    "register": "streamlib.providers",
    "Change": "streamlib.report",
}

__all__ = [
    "Answer",
    "AwsCredentials",
    "CacheOptions",
    "Change",
    "Client",
    "Deadlines",
    "ModelInfo",
    "Prompt",
    "Provider",
    "ReasoningOptions",
    "Request",
    "ResponseStream",
    "RetryPolicy",
    "Secret",
    "StreamError",
    "Transport",
    "build",
    "dump_history",
    "encode_body",
    "encoder",
    "keep_last_images",
    "load_history",
    "parse_request",
    "register",
]
__all__ += streamlib_parsers.__all__


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'streamlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
