"""Promise 17 in its long form: seeded walks over the frames of each wire, legal and illegal.

tests/properties/test_wire_machines.py shrinks failures.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from streamlib.testing.frame_generators import FRAME_GENERATORS, INDEXES, LEGAL
from streamlib.testing.frames import encode_payloads
from streamlib.testing.invariants import InvariantChecker
from streamlib_parsers import Parser, WireApi, parser
from streamlib_parsers.protocol import WIRE_APIS
from tests.properties.test_wire_machines import check_joins, position_of
from tests.support.metrics import figure

pytestmark = [pytest.mark.slow]

INDEXED = {"messages", "responses", "chat", "gemini", "converse"}
"""Wires whose frames carry an index; on the others text of two indexes is rightly joined."""

SEQUENCES = 3_000
"""On each wire."""


def state_of(wire_parser: Parser, checker: InvariantChecker) -> str:
    """The state of a stream, as far as its legal frames depend on it."""
    if checker.ended:
        return "ended"
    if wire_parser.complete:
        return "complete"
    if checker.open:
        return "open"
    return "idle"


def walk(wire_api: WireApi, rng: random.Random) -> set[tuple[str, str]]:
    """Feeds up to twenty frames, mostly at legal indexes, each in two chunks.

    Returns (state, frame) for each frame that was fed.
    """
    wire_parser, checker = parser(wire_api), InvariantChecker()
    fed: set[tuple[str, str]] = set()
    for n in range(rng.randint(1, 20)):
        name = rng.choice(sorted(FRAME_GENERATORS[wire_api]))
        index: Any = rng.choice(LEGAL[:2] if rng.random() < 0.75 else INDEXES)
        fed.add((state_of(wire_parser, checker), name))
        mark = f"<{position_of(index)}|{n}>"
        body = encode_payloads(wire_api, [FRAME_GENERATORS[wire_api][name](index, mark)])
        offset = rng.randint(0, len(body))
        checker.feed(wire_parser.feed(body[:offset]))
        checker.feed(wire_parser.feed(body[offset:]))
    checker.feed(wire_parser.close())
    checker.close()
    if wire_api in INDEXED:
        for item in checker.done.values():
            check_joins(item)
    return fed


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_17_no_sequence_of_frames_breaks_a_wire(wire_api: WireApi) -> None:
    rng, seen = random.Random(17), set[tuple[str, str]]()
    for _ in range(SEQUENCES):
        seen |= walk(wire_api, rng)
    figure("sequences", SEQUENCES)
    states = {state for state, _ in seen}
    missed = {(state, name) for state in states for name in FRAME_GENERATORS[wire_api]} - seen
    figure("transitions", len(seen))
    figure("transitions never made", len(missed))
    assert states >= {"idle", "open", "ended"}
