"""Random interleavings of lanes: each lane's events must equal those of the lane alone."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from streamlib_parsers import parser
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.wires.responses.lanes import Lanes
from tests.support.websocket_scripts import response_frames

WORDS = ("plan", " build", " 1\u00e9", "\n", " \U0001f600", "", " risk ", "x" * 40)


def alone(frames: list[dict[str, Any]]) -> list[ResponseEvent]:
    """The events of one response whose messages are read by a parser of its own."""
    parse = parser("responses")
    events: list[ResponseEvent] = []
    for frame in frames:
        events.extend(parse.feed_event(msgspec.json.encode(frame)))
    return [*events, *parse.close()]


def differing_lanes(count: int, seed: int = 18) -> list[str]:
    """Interleaves random lanes so many times; returns what differed."""
    drawn = random.Random(seed)
    differing: list[str] = []
    for number in range(count):
        names: list[str | None] = [None, *"abcdefgh"]
        used = drawn.sample(names, drawn.randint(1, 8))
        frames: dict[str | None, list[list[dict[str, Any]]]] = {}
        for name in used:
            frames[name] = [
                response_frames(
                    f"resp_{name}_{turn}",
                    *drawn.choices(WORDS, k=drawn.randint(0, 6)),
                    lane=name,
                    end=drawn.choice(["completed", "completed", "incomplete"]),
                )
                for turn in range(drawn.randint(1, 3))
            ]
        found = _interleaved(drawn, frames)
        for name, responses in frames.items():
            expected = [alone(response) for response in responses]
            if found[name] != expected:
                differing.append(f"interleaving {number}, lane {name}")
    return differing


def _interleaved(
    drawn: random.Random, frames: dict[str | None, list[list[dict[str, Any]]]]
) -> dict[str | None, list[list[ResponseEvent]]]:
    """The events of each response, all of them received on one connection."""
    lanes = Lanes()
    turns = {name: [lanes.expect(name) for _ in responses] for name, responses in frames.items()}
    queues: dict[str | None, list[dict[str, Any]]] = {}
    for name, responses in frames.items():
        queues[name] = [frame for response in responses for frame in response]
    while queues:
        name = drawn.choice(list(queues))
        lanes.receive(msgspec.json.encode(queues[name].pop(0)))
        if not queues[name]:
            del queues[name]
    found: dict[str | None, list[list[ResponseEvent]]] = {}
    for name, expected in turns.items():
        found[name] = []
        for turn in expected:
            parse = parser("responses")
            events: list[ResponseEvent] = []
            while (message := turn.next_message()) is not None:
                events.extend(parse.feed_event(message))
            found[name].append([*events, *parse.close()])
    return found
