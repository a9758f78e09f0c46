"""Text stages over recordings: one text in deltas, items, response and bytes of every encoder."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from msgspec.structs import replace as with_fields

from streamlib import accumulate, encoder, parser
from streamlib.pipeline import (
    Keep,
    blocks,
    guard,
    limit,
    lines,
    map_text,
    pipe,
    replace,
    sentences,
    stop_at,
    through,
    words,
)
from streamlib.testing.invariants import check
from streamlib_parsers.events import (
    DELTA_KEYS,
    Notice,
    OutputItemDone,
    ResponseEvent,
)
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.shared import WIRES, Recording, recordings
from tests.support.thorough import some

ALL = ("text", "reasoning", "refusal", "arguments")
SCREENS = ("vercel", "agui", "jsonl")
CUTTERS = (words(), lines(), sentences(), blocks())


each_folder = pytest.mark.parametrize("folder", WIRES)


def recorded(recording: Recording) -> list[ResponseEvent]:
    wire: Any = recording.wire
    read = parser(wire)
    events: list[ResponseEvent] = [*read.feed(recording.body), *read.close()]
    return events


def split_again(events: Sequence[ResponseEvent], random: Random) -> list[ResponseEvent]:
    """The same texts in other deltas."""
    split: list[ResponseEvent] = []
    for event in events:
        if type(event) not in DELTA_KEYS:
            split.append(event)
            continue
        text: str = event.delta  # type: ignore[union-attr]
        if getattr(event, "logprobs", None):
            event = with_fields(event, logprobs=None)  # noqa: PLW2901  # those of the whole delta
        while text:
            size = random.randint(1, 6)
            split.append(with_fields(event, delta=text[:size]))
            text = text[size:]
    return [with_fields(event, seq=seq) for seq, event in enumerate(split)]


def texts_of_deltas(events: Iterable[ResponseEvent]) -> dict[Any, str]:
    texts: defaultdict[Any, str] = defaultdict(str)
    for event in events:
        keys = DELTA_KEYS.get(type(event))
        if keys is not None:
            name = (type(event), *[getattr(event, key) for key in keys])
            texts[name] += event.delta  # type: ignore[union-attr]
    return {name: text for name, text in texts.items() if text}


def texts_of_items(events: Iterable[ResponseEvent]) -> dict[int, str]:
    """The texts of each final item, joined."""
    texts: dict[int, str] = {}
    for event in events:
        if not isinstance(event, OutputItemDone):
            continue
        match event.item:
            case Message() | Reasoning():
                texts[event.index] = event.item.text
            case FunctionCall() | ServerToolCall():
                texts[event.index] = event.item.arguments
            case CustomToolCall():
                texts[event.index] = event.item.input
            case _:
                pass
    return texts


def was_replaced(events: Iterable[ResponseEvent]) -> bool:
    return any(isinstance(event, Notice) and event.code == "text_replaced" for event in events)


def encoded(name: str, events: Iterable[ResponseEvent]) -> bytes:
    encode = encoder(name, model="m", response_id="r")
    return b"".join([encode.feed(event) for event in events] + [encode.close()])


def read_back(wire: Any, body: bytes) -> str:
    read = parser(wire)
    response = accumulate([*read.feed(body), *read.close()])
    return (
        response.text
        + response.reasoning
        + "".join(getattr(call, "arguments", "") for call in response.calls)
    )


def strings_of(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_of(inner)


def shown(body: bytes) -> str:
    """Every string of what a screen is sent, and the deltas of each text joined."""
    joined: defaultdict[str, str] = defaultdict(str)
    found: list[str] = []
    for line in body.decode().splitlines():
        line = line.removeprefix("data:").strip()  # noqa: PLW2901
        if line[:1] != "{":
            continue
        value = json.loads(line)
        found += strings_of(value)
        kind = str(value.get("type"))
        for key in ("delta", "inputTextDelta"):
            if isinstance(value.get(key), str):
                name = [str(value.get(part)) for part in ("id", "messageId", "toolCallId", "index")]
                joined[kind + "/".join(name)] += value[key]
    return "\n".join([*found, *joined.values()])


def secret_of(texts: Sequence[str], random: Random) -> str | None:
    """A part of a text: nothing else has it."""
    long = [text for text in texts if len(text) > 24]
    if not long:
        return None
    text = random.choice(long)
    start = random.randrange(len(text) - 12)
    secret = text[start : start + 12]
    if '"' in secret or "\\" in secret or not secret.isprintable() or len(set(secret)) < 6:
        return None
    return secret


@each_folder
def test_cutting_changes_no_text_and_no_item(folder: str) -> None:
    for recording in recordings(folder):
        random = Random(recording.path.name)
        events = recorded(recording)
        for stage in some(CUTTERS, 2, recording.path.name):
            cut = through(split_again(events, random), stage)
            check(cut)
            assert texts_of_deltas(cut) == texts_of_deltas(events), recording.path
            assert accumulate(cut) == accumulate(events), recording.path


@each_folder
def test_replace_leaves_one_text_everywhere(folder: str) -> None:
    for recording in recordings(folder):
        check_replace(recorded(recording), recording.path.name)


def not_text(events: Sequence[ResponseEvent]) -> str:
    """What a model did not write as text: names of tools, and what the provider's tools found."""
    found: list[str] = []
    for item in accumulate(events).items:
        found.append(getattr(item, "name", ""))
        if isinstance(item, (ServerToolResult, Opaque)):
            found.append(msgspec.json.encode(item).decode())
    return "\n".join(found)


def check_replace(events: list[ResponseEvent], name: str) -> None:
    """Each recording goes through some of the encoders, all of them in the thorough run."""
    random = Random(name)
    before = texts_of_deltas(events)
    secret = secret_of(list(before.values()), random)
    if secret is None or secret in not_text(events):
        return
    stage = replace(re.escape(secret), "[x]", of=ALL)
    out = through(split_again(events, random), stage)
    check(out)
    after = texts_of_deltas(out)
    if not was_replaced(events):
        assert after == {name: text.replace(secret, "[x]") for name, text in before.items()}
    response = accumulate(out)
    assert texts_of_items(out).keys() == texts_of_items(events).keys()
    for item_text in texts_of_items(out).values():
        assert secret not in item_text
    for value in (response, *out):
        assert secret not in msgspec.json.encode(value).decode()
    for wire in some(WIRE_APIS, 3, name):
        body = encoded(wire, out)
        whole = read_back(wire, encoded(wire, events))
        if not was_replaced(events):
            assert read_back(wire, body) == whole.replace(secret, "[x]"), wire
        assert secret.encode() not in body, wire
    for screen in some(SCREENS, 3, name):
        assert secret not in shown(encoded(screen, out)), screen


# --- the same on both event loops, and where nothing waits ---


async def arrive(events: Iterable[ResponseEvent]) -> AsyncIterator[ResponseEvent]:
    for event in events:
        yield event


async def piped(events: Sequence[ResponseEvent], stage: Keep) -> list[ResponseEvent]:
    async with pipe(arrive(events), stage) as stream:
        return [event async for event in stream]


async def shout(text: str) -> str:
    await anyio.lowlevel.checkpoint()
    return text.upper()


async def is_short(text: str) -> bool:
    await anyio.lowlevel.checkpoint()
    return len(text) < 150


STAGES: dict[str, tuple[Keep, Keep | None]] = {
    "replace": (replace(r"\w+ed\b", "[x]", of=ALL), None),
    "map_text": (map_text(shout), map_text(str.upper)),
    "stop_at": (stop_at(re.compile(r"[.!?]\s+\w")), None),
    "limit": (limit(characters=40), None),
    "guard": (guard(is_short), guard(lambda text: len(text) < 150)),
}
"""A stage, and another one that gives the same."""


@pytest.mark.parametrize("name", STAGES)
@each_folder
def test_text_stages_give_the_same_everywhere(folder: str, name: str) -> None:
    stage, same = STAGES[name]
    for recording in some(recordings(folder)[::7], 2, name):
        random = Random(recording.path.name)
        events = split_again(recorded(recording), random)
        expected = anyio.run(piped, events, same or stage)
        check(expected)
        assert anyio.run(piped, events, stage) == expected, recording.path
        assert anyio.run(piped, events, stage, backend="trio") == expected, recording.path
        if not stage.is_async:
            assert through(events, stage) == expected, recording.path
        # Nothing depends on how the text was split.
        other = anyio.run(piped, split_again(events, random), stage)
        assert texts_of_deltas(other) == texts_of_deltas(expected), recording.path
        assert [item.status for item in accumulate(other).items] == [
            item.status for item in accumulate(expected).items
        ]
