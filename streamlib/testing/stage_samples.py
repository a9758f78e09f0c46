"""The responses that `check_stage` sends through a stage, and what it compares of them."""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import pairwise
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

import anyio.lowlevel
from msgspec.structs import replace

from streamlib.pipeline.endings import STOPPED
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    TEXT_DELTAS,
    AnnotationAdded,
    Failed,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    ResponseEvent,
)
from streamlib_parsers.items import CustomToolCall, FunctionCall, Message, Origin, Reasoning, Text
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.usage import Usage

TEXTS: Final = (
    (
        "Hello there, how are you? Call +49 170 1234567 or write to ann@example.com. END of it.\n\n"
        "- One list, 3.5 items long\n- Dr. Who's item\n\n```python\nprint('secret')\n```\n\nBye. 🙂"
    ),
    "A secret password: hunter2, and 漢字 as well; STOP here… or go on, e.g. to https://example.com.",
)
"""Words, sentences, lines, blocks, numbers, addresses and letters of several bytes."""
SPLITS: Final = (1, 3, 7, 1_000)
"""Characters in a delta; 1,000 are more than a text has."""


class Sample(NamedTuple):
    """One response, split in several ways.

    Attributes:
        name: for messages.
        variants: the same response each, with other deltas.
    """

    name: str
    variants: Sequence[list[ResponseEvent]]


def samples(texts: Sequence[str] = TEXTS) -> list[Sample]:
    """Responses of all kinds, each split in several ways.

    Args:
        texts: what the messages say.
    """
    made: list[Sample] = []
    for number, text in enumerate(texts):
        made.append(
            Sample(f"text {number}", [message_of(pieces_of(text, size)) for size in SPLITS])
        )
    made.append(Sample("nothing", [message_of([])]))
    made.append(Sample("parts", [_parts_of(texts[0], size) for size in SPLITS]))
    made.append(Sample("cut off", [_cut_off(texts[0], size) for size in SPLITS]))
    for ending in ("stop", "length", "failed"):
        variants = [_all_kinds(texts[0], size, ending) for size in SPLITS]
        made.append(Sample(f"all kinds, {ending}", variants))
    shuffled = random.Random(0)  # the same on every run
    text = texts[-1]
    offsets = sorted(shuffled.sample(range(1, len(text)), min(8, len(text) - 1)))
    fragments: list[str] = []
    for start, end in pairwise([0, *offsets, len(text)]):
        fragments.append(text[start:end])
    made.append(Sample("random split", [message_of(fragments), message_of([text])]))
    return made


def pieces_of(text: str, size: int) -> list[str]:
    """The text in fragments of so many characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def _assembler() -> EventAssembler:
    assembler = EventAssembler(LIMITS, Origin("chat"))
    assembler.identify("response", "model")
    return assembler


def message_of(fragments: Iterable[str]) -> list[ResponseEvent]:
    """A response that is one text."""
    assembler = _assembler()
    item = assembler.open(Message("assistant"))
    for fragment in fragments:
        assembler.text(item, fragment)
    assembler.close(item)
    assembler.complete("stop")
    return assembler.take()


def call_of(fragments: Iterable[str]) -> list[ResponseEvent]:
    """A response that is one call, whose arguments are a text without line feeds."""
    assembler = _assembler()
    item = assembler.open(FunctionCall("call_1", "look"))
    for fragment in ['{"text": "', *fragments, '"}']:
        assembler.arguments(item, fragment.replace("\n", " "))
    assembler.close(item)
    assembler.complete("tool_calls")
    return assembler.take()


def _parts_of(text: str, size: int) -> list[ResponseEvent]:
    """A message with two texts, the first of which ends within a word."""
    assembler = _assembler()
    item = assembler.open(Message("assistant"))
    half = len(text) // 2
    for part, content in enumerate((text[:half], text[half:])):
        for fragment in pieces_of(content, size):
            assembler.text(item, fragment, part)
    assembler.close(item)
    assembler.complete("stop")
    return assembler.take()


def _cut_off(text: str, size: int) -> list[ResponseEvent]:
    """A response that breaks off within a word of its message."""
    end = len(text) - 1
    while end > 1 and not text[end - 1 : end + 1].isalpha():
        end -= 1
    assembler = _assembler()
    item = assembler.open(Message("assistant"))
    for fragment in pieces_of(text[:end], size):
        assembler.text(item, fragment)
    assembler.fail(ErrorInfo("truncated", "the stream broke off", retryable=True))
    return assembler.take()


def without_deltas(text: str) -> list[ResponseEvent]:
    """A response that is one text, which the final item alone has."""
    events: list[ResponseEvent] = []
    for event in message_of([text]):
        each: ResponseEvent = event
        if isinstance(event, OutputTextDelta):
            each = Notice("text_replaced", index=event.index)
        events.append(replace(each, seq=len(events)))
    return events


def _all_kinds(text: str, size: int, ending: str) -> list[ResponseEvent]:
    """A response with items of several kinds, some open at once, and other events between them."""
    assembler = _assembler()
    reasoning = assembler.open(Reasoning(signature="signed"))
    for fragment in pieces_of(text, size):
        assembler.reasoning(reasoning, fragment)
    for fragment in pieces_of("In short: greet, then call.", size):
        assembler.summary(reasoning, fragment)
    assembler.close(reasoning)
    assembler.notice("first", "a notice")
    message = assembler.open(Message("assistant", native={"source": text}))
    other = assembler.open(Message("assistant", choice=1))
    assembler.passthrough("first", {"number": 1})
    for fragment in pieces_of(text, size):
        assembler.text(message, fragment, logprobs=[{"token": fragment, "logprob": -0.5}])
        assembler.text(other, fragment)
    assembler.passthrough("second", {"number": 2})
    assembler.notice("second", "another notice")
    assembler.annotation(message, {"type": "citation", "start_index": 0, "end_index": 5})
    assembler.close(message)
    assembler.metadata({"segment": text})
    for fragment in pieces_of("I cannot say more.", size):
        assembler.refusal(other, fragment, part=1)
    assembler.close(other)
    call = assembler.open(FunctionCall("call_1", "look"))
    for fragment in pieces_of('{"where": "here"}', size):
        assembler.arguments(call, fragment)
    assembler.close(call)
    assembler.usage(Usage(input_tokens=7, output_tokens=9))
    unfinished = assembler.open(FunctionCall("call_2", "look"))
    assembler.arguments(unfinished, '{"where": "he')
    if ending == "failed":
        assembler.fail(ErrorInfo("truncated", "the stream broke off", retryable=True))
    else:
        assembler.close(unfinished)
        assembler.complete("length" if ending == "length" else "tool_calls")
    return assembler.take()


class ListSource:
    """Events one by one; it knows whether it was closed."""

    def __init__(self, events: Sequence[Any]) -> None:
        self.is_closed = False
        self._events: Iterator[Any] = iter(events)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        await anyio.lowlevel.checkpoint()
        for event in self._events:
            return event
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Notes that it was closed."""
        self.is_closed = True


# --- what is compared ---


def comparable(events: Sequence[Any]) -> list[Any]:
    """What does not depend on the split: the other events in order, and each text as a emitted."""
    others: list[Any] = []
    texts: dict[tuple[str, int, int], str] = {}
    for event in events:
        if not isinstance(event, TEXT_DELTAS):
            others.append(event)
            continue
        part = getattr(event, "content_index", getattr(event, "summary_index", 0))
        key = (type(event).__name__, event.index, part)
        texts[key] = texts.get(key, "") + event.delta
    return others + sorted(item for item in texts.items() if item[1])


def first_difference(first: list[Any], other: list[Any]) -> str:
    """The first events that differ, for a message."""
    for left, right in zip(first, other, strict=False):
        if left != right:
            return f"{left!r} and {right!r}"[:300]
    return f"{len(first)} and {len(other)} events"


def numbers_of(events: Sequence[Any]) -> list[int]:
    """`seq` of the events."""
    return [event.seq for event in flattened(events) if hasattr(event, "seq")]


def flattened(events: Sequence[Any]) -> list[Any]:
    """The events, those of a window's lists too."""
    flat: list[Any] = []
    for event in events:
        if isinstance(event, list):
            flat += event
        else:
            flat.append(event)
    return flat


def is_stopped(events: Sequence[Any]) -> bool:
    """Whether a stage has ended the stream, and says so."""
    for event in events[-3:]:
        if isinstance(event, Notice) and event.code == STOPPED:
            return True
        if isinstance(event, Failed) and event.error.kind in ("cancelled", "stalled", "deadline"):
            return True
    return False


def without_open_together(events: Sequence[Any]) -> list[Any]:
    """The events, where a stage has ended items that grew at once without those.

    How far each had come then depends on the deltas of the others.
    """
    if not is_stopped(events):
        return list(events)
    statuses = statuses_in(events)
    incomplete = {index for index, status in statuses.items() if status == "incomplete"}
    if len(incomplete) < 2:
        return list(events)
    return [event for event in events if getattr(event, "index", None) not in incomplete]


def items_moved(events: Sequence[Any], emitted: Sequence[Any]) -> bool:
    """Whether items were left out or added, so that those behind them have other indexes."""
    counts: list[int] = []
    for each in (events, emitted):
        counts.append(sum([isinstance(event, OutputItemAdded) for event in each]))
    return counts[0] != counts[1] and not is_stopped(emitted)


def calls_in(events: Sequence[Any]) -> dict[str, str | None]:
    """Id of each finished call -> its status."""
    calls: dict[str, str | None] = {}
    for event in events:
        if isinstance(event, OutputItemDone) and isinstance(
            event.item, (FunctionCall, CustomToolCall)
        ):
            calls[event.item.call_id] = event.item.status
    return calls


def statuses_in(events: Sequence[Any]) -> dict[int, str | None]:
    """Index of each finished item -> its status."""
    statuses: dict[int, str | None] = {}
    for event in events:
        if isinstance(event, OutputItemDone):
            statuses[event.index] = event.item.status
    return statuses


def parts_in(events: Sequence[Any]) -> dict[tuple[int, int], tuple[str, str]]:
    """Each text of a message, by item and part -> its joined deltas, and what the item has."""
    deltas: dict[tuple[int, int], str] = {}
    for event in events:
        if isinstance(event, OutputTextDelta):
            key = (event.index, event.content_index)
            deltas[key] = deltas.get(key, "") + event.delta
    parts: dict[tuple[int, int], tuple[str, str]] = {}
    for event in events:
        if isinstance(event, OutputItemDone) and isinstance(event.item, Message):
            for number, part in enumerate(event.item.content):
                key = (event.index, number)
                parts[key] = (deltas.get(key, ""), getattr(part, "text", ""))
    return parts


def texts_in(events: Sequence[Any]) -> dict[int, str]:
    """Index of each finished item -> its text."""
    texts: dict[int, str] = {}
    for event in events:
        if isinstance(event, OutputItemDone):
            if isinstance(event.item, Message):
                texts[event.index] = event.item.text
            elif isinstance(event.item, Reasoning):
                texts[event.index] = event.item.content
    return texts


def citations_agree(events: Sequence[Any]) -> bool:
    """Whether each finished message has as many citations as there were events of them."""
    counts: dict[int, int] = {}
    for event in events:
        if isinstance(event, AnnotationAdded):
            counts[event.index] = counts.get(event.index, 0) + 1
        elif isinstance(event, OutputItemDone) and isinstance(event.item, Message):
            parts = [part for part in event.item.content if isinstance(part, Text)]
            if counts.get(event.index, 0) != sum([len(part.annotations) for part in parts]):
                return False
    return True


def mark(event: Any) -> str:
    """What is the same behind a stage that passes the event on; "" where that may be others."""
    if isinstance(event, TEXT_DELTAS):
        return ""
    if isinstance(event, (Notice, Passthrough)):
        return repr(replace(event, seq=0))
    if hasattr(event, "index"):
        return f"{type(event).__name__} {event.index}"
    return ""


# --- clocks and sizes ---


class HandClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def stands() -> float:
    """The time of a clock that stands."""
    return 0.0


def length_of(events: Sequence[Any]) -> int:
    """Characters in deltas."""
    return sum([len(event.delta) for event in events if isinstance(event, TEXT_DELTAS)])


SHARED: Final = (type, ModuleType, CodeType, BuiltinFunctionType, threading.Thread)
"""What belongs to no machine alone."""


def size_of(root: Any) -> int:
    """Bytes of everything that a machine refers to, but for classes, modules and global names."""
    seen: set[int] = set()
    waiting: list[Any] = [root]
    size = 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, SHARED):
            continue
        seen.add(id(value))
        size += sys.getsizeof(value)
        if isinstance(value, FunctionType):
            waiting += list(value.__closure__ or ())
            waiting += list(value.__defaults__ or ())
        elif hasattr(value, "__struct_fields__"):
            # Structs that hold no containers are not known to the garbage collector.
            waiting += [getattr(value, name) for name in value.__struct_fields__]
        else:
            waiting += gc.get_referents(value)
    return size
