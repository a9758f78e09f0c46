"""Each wire as a machine that is told anything in any order: right moves, wrong places, deltas of closed blocks, ends twice.

After every message the events so far keep the brackets; at the end no item holds words of two places and none are out of order. Chance
picks the sequences that hypothesis tries and shrinks, so that every move is made after every other is a test of its own, without chance.
tests/proof/test_machines.py is the long form: 20,000 seeded walks that must make every transition.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from streamlib.testing.frame_generators import FRAME_GENERATORS, INDEXES, LEGAL
from streamlib.testing.frames import encode_payloads
from streamlib.testing.invariants import InvariantChecker
from streamlib_parsers import (
    Accumulator,
    Message,
    Reasoning,
    ResponseEvent,
    ResponseItem,
    Text,
    WireApi,
    parser,
)
from streamlib_parsers.protocol import WIRE_APIS

MARK: Final = re.compile(r"<(.*?)\|(\d+)>")

LEGALLY: Final = st.sampled_from(LEGAL[:2])
ANYWHERE: Final = st.sampled_from(INDEXES)


class WireMachine(RuleBasedStateMachine):
    """One stream of one wire."""

    wire_api: ClassVar[WireApi]

    def __init__(self) -> None:
        super().__init__()
        self._parser = parser(self.wire_api)
        self._watch = InvariantChecker()
        self._accumulator = Accumulator()
        self._said = 0

    @rule(data=st.data())
    def one_message(self, data: st.DataObject) -> None:
        """The next message: any move, mostly where it is allowed, in one or two pieces."""
        name = data.draw(st.sampled_from(sorted(FRAME_GENERATORS[self.wire_api])))
        place = data.draw(st.one_of(LEGALLY, LEGALLY, LEGALLY, ANYWHERE))
        self._said += 1
        move = FRAME_GENERATORS[self.wire_api][name]
        word = f"<{_place(place) if move(0, '') != move(1, '') else '?'}|{self._said}>"  # some moves have no place
        body = encode_payloads(self.wire_api, [move(place, word)])
        cut = data.draw(st.integers(0, len(body)))
        self._take(self._parser.feed(body[:cut]))
        self._take(self._parser.feed(body[cut:]))

    def _take(self, events: list[ResponseEvent]) -> None:
        self._watch.feed(events)
        for event in events:
            self._accumulator.feed(event)
        assert self._accumulator.response.items is not None

    def teardown(self) -> None:
        """The end of the input, wherever it comes."""
        self._take(self._parser.close())
        assert self._parser.close() == []
        assert self._parser.feed(b"data: {}\n\n") == []
        self._watch.close()
        for item in self._watch.done.values():
            check_joins(item)


def _place(place: Any) -> str:
    """Which of the allowed places it is, "?" for all others."""
    return str(int(place)) if place in LEGAL and not isinstance(place, bool) else "?"


def check_joins(item: ResponseItem) -> None:
    """Words of one place only, in the order in which they were said."""
    marks = MARK.findall(
        item.text if isinstance(item, (Message, Reasoning)) else getattr(item, "arguments", "")
    )
    assert len({place for place, _ in marks} - {"?"}) <= 1, marks
    if isinstance(item, Message):
        assert [int(n) for _, n in marks] == sorted(int(n) for _, n in marks), marks


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_no_sequence_of_messages_breaks_a_wire(wire_api: WireApi) -> None:
    run_state_machine_as_test(
        type(f"{wire_api}Machine", (WireMachine,), {"wire_api": wire_api}),
        settings=settings(
            max_examples=40,
            stateful_step_count=12,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_every_move_may_follow_every_other(wire_api: WireApi) -> None:
    """So each is made in a fresh stream, beside an open item, after a closed one and after the end."""
    moves = FRAME_GENERATORS[wire_api]
    for first, second in itertools.product(moves.values(), repeat=2):
        parse, watch = parser(wire_api), InvariantChecker()
        for move in (first, second):
            watch.feed(parse.feed(encode_payloads(wire_api, [move(0, "word")])))
        watch.feed(parse.close())
        watch.close()


def test_the_join_check_can_fail() -> None:
    with pytest.raises(AssertionError):
        check_joins(Message("assistant", [Text("<0|1><1|2>")]))
    with pytest.raises(AssertionError):
        check_joins(Message("assistant", [Text("<0|2><0|1>")]))
