"""Chat Completions chunks of the usual shape: decoded into structs, or only their one text decoded.

The usual shape has known keys only, all but a few of them null; the decoder rejects any other
chunk, which `delta.py` then reads.

Most chunks differ from the one before in a single text:

    {"id":"c1",…,"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}
    {"id":"c1",…,"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}
    '----------------------- prefix ---------------------'    '------- suffix -------'

A `Template` is a chunk that was read, as prefix, string and suffix. Another chunk with the same
prefix and suffix, and one complete JSON string between them, means the same but for that string,
since JSON has no context: only the string is decoded. That the gap is the text that was read is
verified, by decoding the template once with another text in it. Padding at the end is removed
before.

Buffered: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from streamlib_parsers.open_items import OpenItem

__all__ = [
    "Append",
    "Choice",
    "Chunk",
    "LearnBackoff",
    "Template",
    "ToolCall",
    "decode_chunk",
    "decode_text",
    "template",
    "text_key_of",
    "unpadded",
]


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
    """choices[].delta; `channel` only repeats which of the texts it is"""

    content: str | None = None
    role: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
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
    native_finish_reason: None = None
    matched_stop: None = None
    stop_reason: None = None
    token_ids: None = None


class Chunk(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """One event; `obfuscation` and `p` are padding"""

    id: str | None = None
    # `error` would be another: the chunk is an error then (X26). Empty in Azure's first chunk (X8).
    object: Literal["chat.completion.chunk", ""] | None = None
    created: int | float | None = None  # an integer by the schema; some servers send fractions
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    choices: list[Choice]
    usage: None = None  # null in all chunks but the last
    obfuscation: str | None = None
    provider: str | None = None
    p: str | None = None


# Decoders are made once: making one costs more than decoding a chunk.
decode_chunk: Final = msgspec.json.Decoder(Chunk).decode
decode_text: Final = msgspec.json.Decoder(str).decode

# --- templates ---

PROBE: Final = "another text, \u2603"
"""The text with which a new template is verified."""

TEXT_KEYS: Final = ("content", "reasoning_content", "reasoning")
"""Keys of a delta that a template may vary, besides the arguments of a call."""

MAX_TEMPLATE_BYTES: Final = 4096
"""Longest chunk worth a template: the gain lies in what surrounds a short text."""

PADDINGS: Final = frozenset({b',"obfuscation"', b',"p"'})

MIN_SERVED: Final = 4
"""A template that served fewer chunks was not worth the effort."""

MAX_STRIKES: Final = 6

_ENCODED_PROBE: Final = msgspec.json.encode(PROBE)
# A key and its string value. It may match elsewhere than in the delta: `template` verifies it.
_STRINGS: Final = {
    key: re.compile(rb'"%b"\s*:\s*("(?:[^"\\]|\\.)*")' % key.encode(), re.DOTALL)
    for key in (*TEXT_KEYS, "arguments")
}

Append: TypeAlias = Callable[[OpenItem, str], None]
"""Method of the assembler that appends a text to an open item."""


class Template(NamedTuple):
    """A chunk with a gap, and what to do with a text in the gap."""

    prefix: bytes
    suffix: bytes
    start: int
    """Offset of the gap."""
    stop: int
    """Negative offset of its end, from the end of the chunk."""
    append: Append
    item: OpenItem
    padded: bool
    """Padding must be removed from a chunk before it is compared."""


def unpadded(data: bytes) -> bytes:
    """A chunk without the padding of random length that OpenAI and Mistral append.

    They add it so that sizes on the network reveal nothing. Returns `data` itself if it has none.
    """
    # By bytes, not by decoding: this runs for every chunk that a template may fit.
    start = data.rfind(b',"')
    name, _, value = data[start:].partition(b':"')
    if name in PADDINGS and value.endswith(b'"}') and value[:-2].isalnum():
        return data[:start] + b"}"
    return data


def text_key_of(chunk: Chunk) -> str:
    """The key of the only text of a chunk; "" for a chunk with anything else in it."""
    if len(chunk.choices) != 1 or chunk.choices[0].finish_reason:
        return ""
    delta = chunk.choices[0].delta
    keys = [key for key in TEXT_KEYS if getattr(delta, key)]
    for call in delta.tool_calls or ():
        # A fragment with an id or a name is not only a text: it may start a call.
        is_text = call.function is not None and not (call.id or call.function.name)
        keys.append("arguments" if is_text else "")
    if len(keys) != 1:
        return ""
    return keys[0]


def template(
    data: bytes, chunk: Chunk, key: str, append: Append, item: OpenItem
) -> Template | None:
    """The template of a chunk; None if it cannot be divided.

    Args:
        data: The chunk.
        chunk: `data`, decoded; it is modified.
        key: Key of its only text.
        append: Receives the text of later chunks.
        item: Item that they belong to.
    """
    bare = unpadded(data)
    if len(bare) > MAX_TEMPLATE_BYTES:
        return None
    match = _STRINGS[key].search(bare)
    if match is None:
        return None
    prefix = bare[: match.start(1)]
    suffix = bare[match.end(1) :]

    # The key may occur twice, or elsewhere in the chunk: with the probe in the gap the chunk must
    # decode to the same but for the text.
    delta = chunk.choices[0].delta
    if key == "arguments" and delta.tool_calls:
        setattr(delta.tool_calls[0].function, key, PROBE)
    else:
        setattr(delta, key, PROBE)
    padded = bare is not data
    if padded:  # `chunk` was decoded with its padding
        chunk.obfuscation = chunk.p = None
    if decode_chunk(prefix + _ENCODED_PROBE + suffix) != chunk:
        return None
    return Template(prefix, suffix, len(prefix), -len(suffix), append, item, padded)


class LearnBackoff:
    """When to make the next template.

    Where chunks differ elsewhere too (padding, clocks), templates do not serve, and are made ever
    more rarely: exponential backoff in chunks.
    """

    def __init__(self) -> None:
        self._strikes = 0
        """Templates in a row that served too few chunks, at most `MAX_STRIKES`."""
        self._wait = 0
        """Chunks to read before the next template is made."""

    def missed(self, served: int) -> None:
        """A template did not fit the next chunk, after it had fitted `served` chunks."""
        if served >= MIN_SERVED:
            self._strikes = 0
        elif self._strikes < MAX_STRIKES:
            self._strikes += 1
        self._wait = 2**self._strikes - 1

    def ready(self) -> bool:
        """Whether to make a template of this chunk."""
        if self._wait > 0:
            self._wait -= 1
        return self._wait == 0
