"""Promise 17 in its long form: seeded walks over the moves of each wire, legal and not. tests/properties/test_wire_machines.py shrinks what breaks."""

from __future__ import annotations

import random
from typing import Any

import pytest

from streamlib.testing.frame_generators import FRAME_GENERATORS, INDEXES, LEGAL
from streamlib.testing.frames import encode_payloads
from streamlib.testing.invariants import InvariantChecker
from streamlib_parsers import WireApi, parser
from streamlib_parsers.protocol import WIRE_APIS
from tests.properties.test_wire_machines import _place, check_joins
from tests.support.metrics import figure

pytestmark = [pytest.mark.slow]

PLACED = {"messages", "responses", "chat", "gemini", "converse"}
"""Wires whose messages say where they belong; elsewhere words of two places rightly join."""

SEQUENCES = 3_000
"""On each wire."""


def walk(wire_api: WireApi, rng: random.Random) -> set[tuple[str, str]]:
    """Up to twenty messages, mostly where they are allowed, each in two pieces; which move was made in which state."""
    parse, watch, seen = parser(wire_api), InvariantChecker(), set[tuple[str, str]]()
    for n in range(rng.randint(1, 20)):
        name = rng.choice(sorted(FRAME_GENERATORS[wire_api]))
        place: Any = rng.choice(LEGAL[:2] if rng.random() < 0.75 else INDEXES)
        seen.add(
            (
                "ended"
                if watch.ended
                else "complete"
                if parse.complete
                else "open"
                if watch.open
                else "idle",
                name,
            )
        )
        body = encode_payloads(
            wire_api, [FRAME_GENERATORS[wire_api][name](place, f"<{_place(place)}|{n}>")]
        )
        cut = rng.randint(0, len(body))
        watch.feed(parse.feed(body[:cut]))
        watch.feed(parse.feed(body[cut:]))
    watch.feed(parse.close())
    watch.close()
    for item in watch.done.values() if wire_api in PLACED else ():
        check_joins(item)
    return seen


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_17_no_sequence_of_messages_breaks_a_wire(wire_api: WireApi) -> None:
    rng, seen = random.Random(17), set[tuple[str, str]]()
    for _ in range(SEQUENCES):
        seen |= walk(wire_api, rng)
    figure("sequences", SEQUENCES)
    states = {state for state, _ in seen}
    missed = {(state, name) for state in states for name in FRAME_GENERATORS[wire_api]} - seen
    figure("transitions", len(seen))
    figure("transitions never made", len(missed))
    assert states >= {"idle", "open", "ended"}
