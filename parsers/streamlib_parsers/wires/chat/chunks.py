"""Chat Completions chunks of the usual shape, as structs.

The usual shape has known keys only, all but a few of them null; the decoder rejects any other
chunk, which `delta.py` then reads from a dict.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from streamlib_parsers.items import JsonObject


class Function(Struct, gc=False, forbid_unknown_fields=True):
    """delta.tool_calls[].function"""

    name: str | None = None
    # A JSON value instead of text is rejected here; `delta.py` keeps its bytes.
    arguments: str | None = None


class ToolCall(Struct, gc=False, forbid_unknown_fields=True):
    """delta.tool_calls[]"""

    index: int | None = None
    id: str | None = None
    # Other types are custom calls, or unknown.
    type: Literal["function", ""] | None = None
    function: Function | None = None


class Delta(Struct, gc=False, forbid_unknown_fields=True):
    """choices[].delta; `channel` only repeats which text the delta appends to"""

    content: str | None = None
    role: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[ToolCall] | None = None
    # Typed as None: a chunk that has one is not of the usual shape.
    refusal: None = None
    function_call: None = None
    channel: str | None = None


class Choice(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """choices[]"""

    index: int = 0
    delta: Delta
    # Keys that many servers send as null. With a value the chunk is read by `delta.py`.
    logprobs: None = None
    finish_reason: str | None = None
    matched_stop: None = None
    stop_reason: None = None
    token_ids: None = None
    # Metadata; see `REPORTED`.
    content_filter_results: Any = None
    native_finish_reason: Any = None


REPORTED: Final = ("content_filter_results", "native_finish_reason")
"""Keys of a choice that are metadata, and sent often."""


class Chunk(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """One event; `obfuscation` and `p` are padding"""

    id: str | None = None
    # Any other value, such as `error` (X26), is rejected here. Empty in Azure's first chunk (X8).
    object: Literal["chat.completion.chunk", ""] | None = None
    created: int | float | None = None  # an integer by the schema; some servers send fractions
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    choices: list[Choice]
    usage: JsonObject | None = None  # null in most chunks but the last
    obfuscation: str | None = None
    provider: str | None = None
    p: str | None = None


# Decoders are made once: making one costs more than decoding a chunk.
decode_chunk: Final = msgspec.json.Decoder(Chunk).decode
