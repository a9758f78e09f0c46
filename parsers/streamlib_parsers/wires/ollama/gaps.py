"""Ollama: lines that differ from the one before them in their time and their text alone.

    {"model":"m","created_at":"2026-11-23T07:01:02Z","message":{"content":"Hi"},"done":false}
    '-------- prefix ---------''------ time ------''------- middle ------''--''-- suffix ---'

Only the time of the last line is emitted. Servers that write no time, or the same in every line,
have a gap for the text alone.
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
from streamlib_parsers.wires.ollama.lines import ChatLine, LineMessage, decode

MESSAGE_KEYS: Final = ("content", "thinking", "reasoning_content")
LINE_KEYS: Final = ("response", "thinking")
"""Keys of a text in `message`, and in a line of /api/generate."""

TIME_CHARACTERS: Final = b"0123456789-:.TZ+"
"""Characters of a time. None of them ends a JSON string."""

_TIME: Final = re.compile(rb'"created_at"\s*:\s*"([0-9T:.Z+-]+)')
_PROBE_TIME: Final = b"2026"


def text_of(line: ChatLine) -> tuple[ChatLine | LineMessage, str] | None:
    """Returns the object with the only text of a line, and its key; None for a line with more.

    Args:
        line: A line, but not the last one.
    """
    if line.done or line.logprobs:
        return None
    message = line.message
    texts: list[tuple[ChatLine | LineMessage, str]] = []
    if message is not None:
        if message.tool_calls is not None or message.images is not None:
            return None
        texts += [(message, key) for key in MESSAGE_KEYS if getattr(message, key)]
    texts += [(line, key) for key in LINE_KEYS if getattr(line, key)]
    if len(texts) != 1:
        return None
    return texts[0]


def find_gap(data: bytes, line: ChatLine, append: Callable[[str], bool]) -> Gap | None:
    """Returns the gap of a line that was just read; None if it has more than one text.

    Args:
        data: The line.
        line: `data`, decoded; it is modified.
        append: Receives the text.
    """
    text = text_of(line)
    if text is None:
        return None
    holder, key = text
    around = around_string(data, key)
    if around is None:
        return None
    prefix, suffix = around
    setattr(holder, key, PROBE)
    # The key may occur elsewhere too: with the probe as its text, the line must be as expected.
    if decode(prefix + ENCODED_PROBE + suffix) != line:
        return None
    time = _TIME.search(prefix)
    if time is None:
        return TextGap(prefix, suffix, append)
    before_time, middle = prefix[: time.start(1)], prefix[time.end(1) :]
    probe = b"".join((before_time, _PROBE_TIME, middle, ENCODED_PROBE, suffix))
    if decode(probe) != line:
        return None
    return _timed_gap(before_time, middle, suffix, append)


def _timed_gap(prefix: bytes, middle: bytes, suffix: bytes, append: Callable[[str], bool]) -> Gap:
    """Returns the gap from a time to the end of a text."""
    mark, behind_mark = divided_at_mark(middle)

    def read(gap: bytes) -> bool:
        time, _, rest = gap.partition(mark)
        encoded_text = rest.removeprefix(behind_mark)
        is_divided = len(rest) - len(encoded_text) == len(behind_mark)
        if not is_divided or time.strip(TIME_CHARACTERS):
            return False
        return append(decode_text(encoded_text))

    return ReadGap(prefix, suffix, read)
