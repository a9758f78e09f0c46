"""Chunks of Chat Completions as nearly all are: decoded into structs, or not even that.

The usual shape has known keys only, and null in all but a few: any other makes the decoder refuse, and `chat_delta` read it.

Most chunks differ from the one before in a single text:

    {"id":"c1",…,"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"usage":null}
    {"id":"c1",…,"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}],"usage":null}
    '------------------------ head ----------------------'   '---------------- tail --------------'

Where a chunk was read and found to be head, string, tail, another with the same head and tail and one whole JSON string between
them says the same but for that string, since JSON knows no context: a `Template` lets only the string be decoded. That the gap is
the right one is not believed but tried, with another text in it. Padding at the end is taken off before. Held back: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from streamlib_parsers.open_items import OpenItem

__all__ = [
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
    arguments: str | None = None


class ToolCall(Struct, gc=False, forbid_unknown_fields=True):
    """delta.tool_calls[]"""

    index: int | None = None
    id: str | None = None
    type: Literal["function", ""] | None = None
    function: Function | None = None


class Delta(Struct, gc=False, forbid_unknown_fields=True):
    """choices[].delta; `channel` only repeats which of the texts it is"""

    content: str | None = None
    role: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None
    refusal: None = None
    function_call: None = None
    channel: str | None = None


class Choice(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """choices[]"""

    index: int = 0
    delta: Delta
    logprobs: None = None
    finish_reason: str | None = None
    native_finish_reason: None = None
    matched_stop: None = None
    stop_reason: None = None
    token_ids: None = None


class Chunk(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """One event; `obfuscation` and `p` are padding"""

    id: str | None = None
    object: Literal["chat.completion.chunk", ""] | None = None
    created: float | None = None
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    choices: list[Choice]
    usage: None = None
    obfuscation: str | None = None
    provider: str | None = None
    p: str | None = None


decode_chunk: Final = msgspec.json.Decoder(Chunk).decode
decode_text: Final = msgspec.json.Decoder(str).decode

# --- templates ---

PROBE: Final = "another text, \u2603"
TEXTS: Final = ("content", "reasoning_content", "reasoning")
LONGEST: Final = 4096
"""Bytes of a chunk worth a template: the gain lies in what surrounds a short text."""
PADDINGS: Final = frozenset({b',"obfuscation"', b',"p"'})
FEW: Final = 4
MOST_STRIKES: Final = 6

_PROBE: Final = msgspec.json.encode(PROBE)
_STRINGS: Final = {
    key: re.compile(rb'"%b"\s*:\s*("(?:[^"\\]|\\.)*")' % key.encode(), re.DOTALL)
    for key in (*TEXTS, "arguments")
}


class Template(NamedTuple):
    """A chunk with a gap, at data[start:stop], and what is to be done with a text in it. `padded`: its padding is to be taken off first."""

    head: bytes
    tail: bytes
    start: int
    stop: int
    say: Callable[[OpenItem, str], None]
    item: OpenItem
    padded: bool


def unpadded(data: bytes) -> bytes:
    """A chunk without the padding of random length that OpenAI and Mistral put last, so that sizes on the network tell nothing."""
    at = data.rfind(b',"')
    name, _, value = data[at:].partition(b':"')
    return (
        data[:at] + b"}"
        if name in PADDINGS and value.endswith(b'"}') and value[:-2].isalnum()
        else data
    )


def text_key_of(chunk: Chunk) -> str:
    """The key of the text of a chunk that brings one text and nothing else, "" for any other chunk."""
    choice = chunk.choices[0] if len(chunk.choices) == 1 else None
    if choice is None or choice.finish_reason:
        return ""
    texts = [key for key in TEXTS if getattr(choice.delta, key)]
    calls = choice.delta.tool_calls or ()
    texts += [
        "arguments" if call.function and not (call.id or call.function.name) else ""
        for call in calls
    ]
    return texts[0] if len(texts) == 1 else ""


def template(
    data: bytes, chunk: Chunk, key: str, say: Callable[[OpenItem, str], None], item: OpenItem
) -> Template | None:
    """The template of `data`, whose only text stands under `key`; None where it cannot be cut. Spoils `chunk`, which is `data` decoded."""
    bare = unpadded(data)
    found = _STRINGS[key].search(bare) if len(bare) <= LONGEST else None
    if found is None:
        return None
    head, tail = bare[: found.start(1)], bare[found.end(1) :]
    delta, padded = chunk.choices[0].delta, bare is not data
    setattr(
        delta.tool_calls[0].function if key == "arguments" and delta.tool_calls else delta,
        key,
        PROBE,
    )
    if padded:
        chunk.obfuscation = chunk.p = None
    return (
        Template(head, tail, len(head), -len(tail), say, item, padded)
        if decode_chunk(head + _PROBE + tail) == chunk
        else None
    )


class LearnBackoff:
    """When to make the next template: where chunks differ elsewhere too (padding, clocks), hardly ever."""

    def __init__(self) -> None:
        self._strikes = 0
        self._wait = 0

    def missed(self, served: int) -> None:
        """A template did not fit the next chunk, after `served` that it did."""
        self._strikes = 0 if served >= FEW else min(self._strikes + 1, MOST_STRIKES)
        self._wait = 2**self._strikes - 1

    def ready(self) -> bool:
        """Whether this chunk is to be learned from."""
        self._wait = max(0, self._wait - 1)
        return not self._wait
