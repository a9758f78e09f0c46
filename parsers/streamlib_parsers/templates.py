"""Templates: events that differ from the one before them in a text alone are read without framing.

Nearly all events of a stream are like this, from the first byte to the last:

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hel"}}
    '---------------------------- prefix -------------------------------------------'   '---'
                                                                                        suffix

A `Template` is an event that was read, without what was in its gap. Another event with the same
prefix and suffix means the same but for its gap, since JSON has no context: only the gap is read.
That takes half the time of framing the event, decoding it and asking the machine what to do.

The machine says where the gap of an event is and what its value is for. What does not fit is left
to framing and machine, so that a template never changes what is emitted. It serves until the
machine reads an event: that one may have closed the item which the texts went to.

Buffered: the beginning of an event that fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeError)

MAX_PAYLOAD_BYTES: Final = 4096
"""Longest payload worth a template: the gain lies in what surrounds a short text."""

LEARN_BYTES: Final = 1024
"""Bytes at the start of a large chunk that are framed; a template is made of their last event."""

MIN_SERVED: Final = 4
"""A template that was used for fewer events cost more time than it saved."""

MAX_STRIKES: Final = 6

LF: Final = 0x0A
CR: Final = 0x0D

decode_text: Final = msgspec.json.Decoder(str).decode
_decode_texts: Final = msgspec.json.Decoder(list[str]).decode

# A line feed is no part of a JSON string. So a gap that is no complete string cannot run on into
# the next one, and as many strings as gaps means one each.
_BETWEEN_STRINGS: Final = b'"\n,\n"'

Apply: TypeAlias = Callable[[Any], bool]
"""Takes the value of a gap; False where it does not fit, and nothing was emitted."""

Fit: TypeAlias = tuple[bytes, bytes, int, int, Callable[[bytes], Any], Apply]
"""How a chunk that is one event is read: the bytes before and after its gap, how many they are,
the greatest length of the event, the decoder of the gap, and what takes its value. A tuple, because
unpacking one is cheaper than reading six attributes for each chunk."""


class Gap(Protocol):
    """Where the payloads of an item differ."""

    def template(self, prefix: bytes, suffix: bytes, limit: int) -> Template:
        """Returns the template of an event.

        Args:
            prefix: Its bytes before the payload.
            suffix: Those after it.
            limit: Longest event that may be read.
        """
        ...


class Template(Protocol):
    """The bytes of an event around a gap."""

    fit: Fit

    def take(self, chunk: bytes) -> int:
        """Reads the events at the start of `chunk` that fit; returns how many bytes they are."""
        ...


class TextGap(NamedTuple):
    """A payload without its text.

    Attributes:
        prefix: What is before the JSON string, without its quote.
        suffix: What is after it.
        append: Takes the text.
    """

    prefix: bytes
    suffix: bytes
    append: Callable[[str], bool]

    def template(self, prefix: bytes, suffix: bytes, limit: int) -> Template:
        """Returns the template of an event; see `Gap`."""
        return TextTemplate(prefix + self.prefix, self.suffix + suffix, limit, self.append)


class TextTemplate:
    """A `Template` whose gap is a JSON string."""

    def __init__(
        self, prefix: bytes, suffix: bytes, limit: int, append: Callable[[str], bool]
    ) -> None:
        self.fit: Fit = (prefix, suffix, len(prefix) + len(suffix), limit, decode_text, append)
        # As in `fit`, but with the quotes: in a large chunk, enough is compared that
        # nothing, no line end above all, is between them and the string.
        self._prefix = prefix + b'"'
        self._suffix = b'"' + suffix
        self._between = self._suffix + self._prefix
        self._append = append

    def take(self, chunk: bytes) -> int:
        """Reads the events at the start of `chunk` that fit; returns how many bytes they are."""
        start = len(self._prefix)
        end = chunk.rfind(self._suffix)
        if end < start or not chunk.startswith(self._prefix):
            return 0
        gaps = chunk[start:end].split(self._between)
        if LF in gaps[-1]:
            # The last gap reaches into events that do not fit, the last of which ends like one that
            # does.
            end -= len(gaps.pop()) + len(self._between)
            if not gaps:
                return 0
        try:
            texts = _decode_texts(b'["%b"]' % _BETWEEN_STRINGS.join(gaps))
        except DECODE_ERRORS:
            texts = []
        if len(texts) != len(gaps):
            return self._take_each(gaps)
        append = self._append
        for text in texts:
            append(text)
        return end + len(self._suffix)

    def _take_each(self, gaps: list[bytes]) -> int:
        """Reads the gaps up to the first that is not a string."""
        taken = 0
        for gap in gaps:
            try:
                text = decode_text(b'"%b"' % gap)
            except DECODE_ERRORS:
                break
            self._append(text)
            taken += len(gap) + len(self._between)
        return taken


class ReadGap(NamedTuple):
    """A payload without a part that the machine reads.

    Attributes:
        prefix: What is before it.
        suffix: What is after it.
        read: Reads it. Where it does not fit, it emits nothing, and returns False or raises one of
            `DECODE_ERRORS`.
    """

    prefix: bytes
    suffix: bytes
    read: Callable[[bytes], bool]

    def template(self, prefix: bytes, suffix: bytes, limit: int) -> Template:
        """Returns the template of an event; see `Gap`."""
        return ReadTemplate(prefix + self.prefix, self.suffix + suffix, limit, self.read)


class ReadTemplate:
    """A `Template` whose gap the machine reads."""

    def __init__(
        self, prefix: bytes, suffix: bytes, limit: int, read: Callable[[bytes], bool]
    ) -> None:
        # `read` does all the work: `bool` only passes on whether the event fitted.
        self.fit: Fit = (prefix, suffix, len(prefix) + len(suffix), limit, read, bool)
        self._read = read

    def take(self, chunk: bytes) -> int:
        """Reads the events at the start of `chunk` that fit; returns how many bytes they are."""
        prefix, suffix, around, *_ = self.fit
        end = chunk.rfind(suffix)
        if end < len(prefix) or not chunk.startswith(prefix):
            return 0
        read = self._read
        taken = 0
        for gap in chunk[len(prefix) : end].split(suffix + prefix):
            # The event goes on after a line end.
            if LF in gap or CR in gap:
                break
            try:
                is_read = read(gap)
            except DECODE_ERRORS:
                break
            if not is_read:
                break
            taken += len(gap) + around
        return taken


class LearnBackoff:
    """When to make the next template.

    Where events differ elsewhere too (padding, clocks), templates do not serve, and are made ever
    more rarely: exponential backoff in events.
    """

    def __init__(self) -> None:
        self._strikes = 0
        """Templates in a row that served too few events, at most `MAX_STRIKES`."""
        self._wait = 0
        """Events to read before the next template is made."""

    def missed(self, served: int) -> None:
        """A template did not fit the next event, after it had fitted `served` events."""
        if served >= MIN_SERVED:
            self._strikes = 0
        elif self._strikes < MAX_STRIKES:
            self._strikes += 1
        self._wait = 2**self._strikes - 1

    def ready(self) -> bool:
        """Whether to make a template of this event."""
        if self._wait > 0:
            self._wait -= 1
        return self._wait == 0


class EventFraming(Protocol):
    """What templates need of a framing."""

    at_event_start: bool
    """Whether nothing is buffered, so that the next byte begins an event."""

    def form_of(self, event: str | None) -> tuple[bytes, bytes] | None:
        """Returns the bytes before and after the payload of the usual events of this name."""
        ...

    def end_of_event(self, data: bytes, start: int) -> int:
        """Returns the offset behind the first event that ends behind `start`, or that of the end.

        Args:
            data: Bytes from the start of an event.
            start: Offset of the first byte to look at.
        """
        ...


FindGap: TypeAlias = Callable[[str | None, bytes], Gap | None]
"""The gap of an event that the machine has just read: name, payload. None: it is read in full."""


class TemplateReader:
    """Keeps the template of a stream, and reads the events that fit it."""

    def __init__(
        self,
        framing: EventFraming,
        find_gap: FindGap,
        event_count: Callable[[], int],
        event_bytes: int,
    ) -> None:
        """Starts without a template.

        Args:
            framing: Reads what does not fit.
            find_gap: Asked for the gap of an event that was framed.
            event_count: How many events were emitted.
            event_bytes: Longest event that may be read.
        """
        self._framing = framing
        self._find_gap = find_gap
        self._event_count = event_count
        self._event_bytes = event_bytes
        # None: no event was learned, or the machine has read another since.
        self._template: Template | None = None
        # The beginning of an event that fits, up to the end of the last chunk.
        self._buffered = b""
        # Decides whether an event is learned.
        self._backoff = LearnBackoff()
        # Event count when the template was made: shows how many events it served.
        self._learned_at = 0

    def fit(self) -> Fit | None:
        """Returns how the next chunk is read if it is one event that fits; None if it cannot be."""
        if self._template is None or self._buffered or not self._framing.at_event_start:
            return None
        return self._template.fit

    def take(self, chunk: bytes) -> bytes:
        """Reads the events at the start of `chunk` that fit; returns the rest, for the framing."""
        if self._buffered:
            chunk = self.take_buffered() + chunk
        template = self._template
        if template is None or not self._framing.at_event_start or len(chunk) > self._event_bytes:
            return chunk
        taken = template.take(chunk)
        rest = chunk[taken:]
        if taken and is_begun(template.fit, rest):
            self._buffered = rest
            return b""
        return rest

    def end_of_event(self, data: bytes, start: int) -> int:
        """Returns the offset behind the next event; see `EventFraming`."""
        return self._framing.end_of_event(data, start)

    def take_buffered(self) -> bytes:
        """Returns what is buffered, and forgets it."""
        buffered, self._buffered = self._buffered, b""
        return buffered

    def learn(self, event: str | None, data: bytes) -> None:
        """Learns from the last event that the machine has read."""
        if self._template is not None:
            self._template = None
            self._backoff.missed(self._event_count() - self._learned_at)
        if not self._backoff.ready() or len(data) > MAX_PAYLOAD_BYTES:
            return
        form = self._framing.form_of(event)
        if form is None:
            return
        gap = self._find_gap(event, data)
        if gap is not None:
            self._template = gap.template(*form, self._event_bytes)
            self._learned_at = self._event_count()


def is_begun(fit: Fit, rest: bytes) -> bool:
    """Tells whether `rest` is the beginning of an event that fits, without the end of a line."""
    prefix, *_ = fit
    if len(rest) < len(prefix):
        return prefix.startswith(rest)
    if not rest.startswith(prefix):
        return False
    gap = rest[len(prefix) :]
    return LF not in gap and CR not in gap


# --- where a text is ---

PROBE: Final = "another text, \u2603"
"""The text with which a gap is verified."""

ENCODED_PROBE: Final = msgspec.json.encode(PROBE)


def around_string(data: bytes, key: str) -> tuple[bytes, bytes] | None:
    """Returns what is before and after the string at `key`.

    The key may stand elsewhere too: whether the string is the text of the payload, the caller
    verifies by decoding it once with `ENCODED_PROBE` in place of the string.
    """
    match = _string_at(key).search(data)
    if match is None:
        return None
    return data[: match.start(1)], data[match.end(1) :]


@cache
def _string_at(key: str) -> re.Pattern[bytes]:
    return re.compile(rb'"%b"\s*:\s*("(?:[^"\\]|\\.)*")' % key.encode(), re.DOTALL)


def divided_at_mark(between: bytes) -> tuple[bytes, bytes]:
    """Divides what is after a string into its first bytes, and the rest.

    The string's end is found by the first bytes alone, since a search for all of them takes longer
    than decoding the string. They end in a quote without a backslash, as no string has within.
    """
    mark_end = between.index(b'"') + 1
    return between[:mark_end], between[mark_end:]
