"""Chat Completions chunks that differ from the one before in one text: only that is decoded.

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
from typing import Final, NamedTuple, TypeAlias

import msgspec

from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.chat.chunks import Chunk, decode_chunk

__all__ = [
    "Append",
    "LearnBackoff",
    "Template",
    "template",
    "text_key_of",
    "unpadded",
]

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
