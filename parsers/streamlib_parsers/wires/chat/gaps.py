"""Chat Completions: chunks that differ from the one before them in a single text.

    {"id":"c1",…,"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}
    {"id":"c1",…,"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}
    '----------------------- prefix ---------------------'    '------- suffix -------'

Only chunks of the usual shape are divided: known keys, all but a few of them null.

OpenAI and Mistral append padding of random length, so that sizes on the network reveal nothing:

    …"delta":{"content":"Hel"},"finish_reason":null}],"obfuscation":"x7QpA"}
                            '------------ between -----------------'     '-- suffix
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from streamlib_parsers.templates import (
    ENCODED_PROBE,
    PROBE,
    Gap,
    ReadGap,
    TextGap,
    around_string,
    decode_text,
    divided_at_mark,
)
from streamlib_parsers.wires.chat.chunks import Chunk, decode_chunk

__all__ = ["find_gap", "text_key_of"]

TEXT_KEYS: Final = ("content", "reasoning_content", "reasoning")
"""Keys of a delta whose text may differ, besides the arguments of a call."""

_PADDING: Final = re.compile(rb',"(?:obfuscation|p)":"([A-Za-z0-9]+)"}$')
_AFTER_PADDING: Final = b'"}'


def text_key_of(chunk: Chunk) -> str:
    """The key of the only text of a chunk; "" for a chunk with anything else in it."""
    if len(chunk.choices) != 1 or chunk.choices[0].finish_reason:
        return ""
    delta = chunk.choices[0].delta
    keys = [key for key in TEXT_KEYS if getattr(delta, key)]
    for call in delta.tool_calls or ():
        # A fragment with an id or a name is more than a text: it may start a call.
        is_text = call.function is not None and not (call.id or call.function.name)
        keys.append("arguments" if is_text else "")
    if len(keys) != 1:
        return ""
    return keys[0]


def find_gap(data: bytes, chunk: Chunk, key: str, append: Callable[[str], bool]) -> Gap | None:
    """The gap of a chunk; None if it cannot be divided.

    Args:
        data: The chunk.
        chunk: `data`, decoded; it is modified.
        key: Key of its only text.
        append: Receives the text of later chunks.
    """
    around = around_string(data, key)
    if around is None:
        return None
    prefix, suffix = around
    # The key may occur twice, or elsewhere in the chunk: with the probe in the gap the chunk must
    # decode to the same but for the text.
    delta = chunk.choices[0].delta
    if key == "arguments" and delta.tool_calls:
        setattr(delta.tool_calls[0].function, key, PROBE)
    else:
        setattr(delta, key, PROBE)
    if decode_chunk(prefix + ENCODED_PROBE + suffix) != chunk:
        return None
    padding = _PADDING.search(suffix)
    if padding is None:
        return TextGap(prefix, suffix, append)
    return _padded_gap(prefix, suffix[: padding.start(1)], append)


def _padded_gap(prefix: bytes, between: bytes, append: Callable[[str], bool]) -> Gap:
    """The gap from a text to the end of the padding.

    Args:
        prefix: Bytes before the text.
        between: Bytes between text and padding.
        append: Receives the text.
    """
    mark, behind_mark = divided_at_mark(between)

    def read(gap: bytes) -> bool:
        encoded_text, _, rest = gap.partition(mark)
        padding = rest.removeprefix(behind_mark)
        if len(rest) - len(padding) != len(behind_mark) or not padding.isalnum():
            return False
        return append(decode_text(encoded_text))

    return ReadGap(prefix, _AFTER_PADDING, read)
