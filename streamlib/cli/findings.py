"""What is wrong with a captured answer, in words: why it is not whole, where it was cut, and what is odd about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from streamlib.cli.captures import Capture, other_wire
from streamlib.cli.event_words import item_words, quoted
from streamlib.cli.frames import Step
from streamlib.cli.terminal import printable
from streamlib.cli.timeline import Clock
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers import (
    Completed,
    Failed,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
)
from streamlib_parsers.items import WireApi

WRITTEN: Final = ("arguments", "input", "text")
"""Fields that hold what a model wrote."""

STOPPED: Final = ("unread", "CancelledError", "Cancelled")
"""Ends of a recording that its own program made."""


def findings(capture: Capture, steps: list[Step]) -> list[str]:
    """What a person should know: whether the answer is whole, and if not why; then what is odd about it."""
    return [
        *_verdict(capture, steps),
        *_oddities(capture.wire_api, steps),
        *_unread(capture, steps),
        *_silence(capture),
    ]


def _verdict(capture: Capture, steps: list[Step]) -> Iterator[str]:
    for step in steps:
        for event in step.events:
            if isinstance(event, Completed):
                yield "the answer is whole"
            elif isinstance(event, Failed):
                hint = other_wire(capture)
                yield from [hint] if hint else []
                yield f"not whole, {event.error.kind}: {printable(event.error.message)}"
                yield from _place(capture, step, event.error.kind)
                yield from (
                    [f"never came: {WIRE_SPECS[capture.wire_api].completed_by}"]
                    if event.error.kind == "truncated" and len(steps) > 1
                    else []
                )
                yield from _open_items(steps)
                yield from _end_of_recording(capture)


def _place(capture: Capture, step: Step, kind: str) -> Iterator[str]:
    body = capture.recording.body
    if kind != "truncated" or capture.whole:
        yield f"at byte {step.start:,}: {excerpt(body[step.start : step.end])}"
    elif step.start < len(body):
        yield f"cut at byte {len(body):,}, inside the frame that began at byte {step.start:,}: {excerpt(body[step.start :])}"
    else:
        yield f"cut at byte {len(body):,}, behind a whole frame"


def _open_items(steps: list[Step]) -> Iterator[str]:
    """Items that the end found open."""
    for step in steps:
        for event in step.events:
            if isinstance(event, OutputItemDone) and event.item.status == "incomplete":
                written: str = next(
                    (
                        getattr(event.item, name)
                        for name in WRITTEN
                        if getattr(event.item, name, "")
                    ),
                    "",
                )
                yield f"item {event.index}, {item_words(event.item)}, was open: it stops after {quoted(written[-60:], 70)}"


def _end_of_recording(capture: Capture) -> Iterator[str]:
    end = capture.recording.end
    if end in STOPPED:
        yield "whoever recorded it stopped reading here"
    elif end is not None:
        yield f"the connection broke here ({printable(end)})"


def _oddities(wire_api: WireApi, steps: list[Step]) -> Iterator[str]:
    """What is odd, in the order in which it first came; what came often is one line."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for start, what, said in _odd(wire_api, steps):
        found[what, said].append(start)
    for (what, said), starts in found.items():
        often = (
            f" and {len(starts) - 1:,} more {'time' if len(starts) == 2 else 'times'}"
            if len(starts) > 1
            else ""
        )
        yield f"{what} at byte {starts[0]:,}{often}{said}"


def _odd(wire_api: WireApi, steps: list[Step]) -> Iterator[tuple[int, str, str]]:
    """Where, what, and what is said of it."""
    last = -1
    for step in steps:
        for event in step.events:
            if isinstance(event, Notice):
                yield step.start, printable(event.code), f": {printable(event.detail)}"
            elif isinstance(event, Passthrough):
                yield step.start, "unknown to this version,", f": {printable(event.event)}"
            elif isinstance(event, OutputItemAdded):
                last = event.index
            elif (
                isinstance(event, OutputItemDone)
                and event.index < last
                and WIRE_SPECS[wire_api].has_blocks
                and event.item.status == "completed"
            ):
                yield (
                    step.start,
                    f"late end: item {event.index} was closed",
                    f", after item {last} had begun",
                )


def _unread(capture: Capture, steps: list[Step]) -> Iterator[str]:
    """Bytes behind an end that the wire itself gave."""
    ended = next(
        (
            step.end
            for step in steps
            if any(isinstance(event, (Completed, Failed)) for event in step.events)
        ),
        None,
    )
    rest = capture.recording.body[ended:].strip() if ended is not None else b""
    if rest:
        yield f"not read, {len(rest):,} bytes after the end at byte {ended:,}: {excerpt(rest)}"


def _silence(capture: Capture) -> Iterator[str]:
    found = Clock(capture).longest_silence() if capture.ours else None
    if found is not None and found[0] >= 1:
        yield f"longest silence: {found[0]:.1f} s, before byte {found[1]:,}"


def excerpt(data: bytes, most: int = 80) -> str:
    """The first bytes of a frame, for a person."""
    text = " ".join(printable(data[: most * 4].decode("utf-8", "replace")).split())
    return text[:most] + "…" if len(text) > most else text or "(nothing)"
