"""Every byte of a stream as the place where its connection breaks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.resume.serving import BreakingProvider, open_client
from streamlib import Prompt
from streamlib_parsers.events import Created, Failed, OutputItemDone, ResponseEvent
from streamlib_parsers.items import WireApi
from tests.support.shared import SHARED, recordings, require

PROMPT = Prompt("Say something.", background=True)


@dataclass(frozen=True)
class Stream:
    """A background stream.

    Attributes:
        name: what it is called in the figures.
        wire_api: its wire.
        body: all of its bytes.
        first_connection: bytes of it that an earlier connection sent, before each cut.
    """

    name: str
    wire_api: WireApi
    body: bytes
    first_connection: int = 0


@dataclass
class Counts:
    """What was found."""

    cuts: int = 0
    reconnected: int = 0
    resumed_by_cursor: int = 0
    before_first_id: int = 0
    violations: list[str] = field(default_factory=list)


def derived_streams() -> Iterator[Stream]:
    """The background streams that were written from the documents.

    The second half of each is cut behind an earlier break.
    """
    folder = require(SHARED / "corpus-2")
    pairs: tuple[tuple[WireApi, str, str, str], ...] = (
        (
            "responses",
            "responses-resume",
            "derived__background.first-connection.sse",
            "derived__background.starting-after-6.sse",
        ),
        (
            "interactions",
            "interactions",
            "derived__resume.first-connection.sse",
            "derived__resume.second-connection.sse",
        ),
    )
    for wire_api, kind, first_name, second_name in pairs:
        first = (folder / kind / first_name).read_bytes()
        second = (folder / kind / second_name).read_bytes()
        yield Stream(first_name, wire_api, first + second)
        yield Stream(second_name, wire_api, first + second, len(first))
    cancelled = "derived__background.cancelled.sse"
    yield Stream(cancelled, "responses", (folder / "responses-resume" / cancelled).read_bytes())


def recorded_streams(count: int) -> list[Stream]:
    """The shortest recorded streams whose events all have numbers, background ones first."""
    found: list[tuple[bool, int, Stream]] = []
    for recording in recordings("openai-responses"):
        body = recording.body
        if body.count(b'"sequence_number"') == body.count(b"\nevent:") + 1:
            in_background = b'"background":true' in body
            stream = Stream(recording.path.name, "responses", body)
            found.append((not in_background, len(body), stream))
    found.sort(key=lambda row: row[:2])
    return [stream for *_, stream in found[:count]]


async def read(provider: BreakingProvider, stream: Stream, **options: Any) -> list[ResponseEvent]:
    """The events of a stream that goes on by itself."""
    async with (
        open_client(provider) as client,
        client.stream(
            PROMPT, "keeper:m", wire_api=stream.wire_api, errors="event", **options
        ) as reading,
    ):
        return [event async for event in reading]


async def check_cut(
    stream: Stream, cut: int, unbroken: list[ResponseEvent], counts: Counts
) -> None:
    """One cut: a stream that goes on by itself, and one that is taken up by its cursor."""
    counts.cuts += 1
    breaks = [cut]
    if stream.first_connection:
        breaks = [stream.first_connection, cut]
    provider = BreakingProvider([stream.body], breaks)
    events = await read(provider, stream, resume=True)
    posts = sum(method == "POST" for method, *_ in provider.sent)
    if posts != 1:
        counts.violations.append(f"{stream.name} at {cut}: {posts} responses were created")
    if not any(isinstance(event, Created) for event in events):
        counts.before_first_id += 1
        last = events[-1]
        if not isinstance(last, Failed) or len(provider.sent) != 1:
            counts.violations.append(f"{stream.name} at {cut}: no honest end before the first id")
        return
    counts.reconnected += len(provider.sent) > 1
    if events != unbroken or not _is_numbered(events):
        counts.violations.append(f"{stream.name} at {cut}: other events than unbroken")
    await _check_cursor(stream, cut, unbroken, counts)


async def _check_cursor(
    stream: Stream, cut: int, unbroken: list[ResponseEvent], counts: Counts
) -> None:
    provider = BreakingProvider([stream.body], [stream.first_connection or cut])
    async with open_client(provider) as client:
        reading = client.stream(PROMPT, "keeper:m", wire_api=stream.wire_api, errors="event")
        async with reading:
            before = [event async for event in reading]
            cursor = reading.cursor
        if cursor is None:
            counts.violations.append(f"{stream.name} at {cut}: no cursor behind the first id")
            return
        counts.resumed_by_cursor += 1
        async with client.resume(cursor, errors="event") as resumed:
            after = [event async for event in resumed]
    joined = [event for event in before if event.seq < after[0].seq] + after
    # The first stream closed its open items itself when it failed.
    ends = [event for event in before[: len(joined) - len(after)] if _closed_early(event)]
    if joined != unbroken or ends:
        counts.violations.append(f"{stream.name} at {cut}: other events behind the cursor")


def _closed_early(event: ResponseEvent) -> bool:
    return isinstance(event, Failed) or (
        isinstance(event, OutputItemDone) and event.item.status == "incomplete"
    )


def _is_numbered(events: list[ResponseEvent]) -> bool:
    return [event.seq for event in events] == list(range(len(events)))


def borders(stream: Stream) -> list[int]:
    """The cuts next to the end of an event, where an event lacks nothing or only its end."""
    start = stream.first_connection
    found: set[int] = set()
    for match in re.finditer(rb"\n\n", stream.body[start:]):
        found.update(range(match.start() - 1, match.end() + 2))
    return sorted(cut for cut in found if 0 <= cut <= len(stream.body) - start)


async def check_stream(stream: Stream, cuts: Iterable[int] | None, counts: Counts) -> None:
    """Every cut of a stream, or those given."""
    unbroken = await read(BreakingProvider([stream.body]), stream)
    size = len(stream.body) - stream.first_connection
    for cut in range(size + 1) if cuts is None else cuts:
        await check_cut(stream, cut, unbroken, counts)
