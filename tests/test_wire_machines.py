"""Each wire as a machine that is told anything in any order: right moves, wrong places, deltas of closed blocks, ends twice.

After every message the events so far keep the brackets; at the end no item holds words of two places, none are out of order, and every
move was tried in every state. The long form (`-m slow`) tries 20,000 sequences and demands every transition.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from streamlib.testing.frames import said
from streamlib.testing.laws import Watch
from streamlib.testing.moves import LEGAL, MOVES, PLACES
from streamlib_parsers import Accumulator, Message, Reasoning, ResponseEvent, ResponseItem, Text, WireApi, parser
from streamlib_parsers.protocol import WIRE_APIS

SEQUENCES: Final = 20_000
MARK: Final = re.compile(r"<(.*?)\|(\d+)>")

LEGALLY: Final = st.sampled_from(LEGAL[:2])
ANYWHERE: Final = st.sampled_from(PLACES)


class WireMachine(RuleBasedStateMachine):
    """One stream of one wire."""

    wire_api: ClassVar[WireApi]
    seen: ClassVar[Counter[tuple[str, str]]]
    sequences: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        type(self).sequences += 1
        self._parser = parser(self.wire_api)
        self._watch = Watch()
        self._accumulator = Accumulator()
        self._said = 0

    def _state(self) -> str:
        """Where the stream stands, as far as anybody outside can see."""
        if self._watch.ended:
            return "ended"
        if self._parser.complete:
            return "complete"
        if self._watch.open:
            return "open"
        return "idle" if self._watch.done else "fresh"

    @rule(data=st.data())
    def one_message(self, data: st.DataObject) -> None:
        """The next message: any move, mostly where it is allowed, in one or two pieces."""
        name = data.draw(st.sampled_from(sorted(MOVES[self.wire_api])))
        place = data.draw(st.one_of(LEGALLY, LEGALLY, LEGALLY, ANYWHERE))
        type(self).seen[self._state(), name] += 1
        self._said += 1
        move = MOVES[self.wire_api][name]
        word = f"<{_place(place) if move(0, '') != move(1, '') else '?'}|{self._said}>"  # some moves have no place
        body = said(self.wire_api, [move(place, word)])
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
    marks = MARK.findall(item.text if isinstance(item, (Message, Reasoning)) else getattr(item, "arguments", ""))
    assert len({place for place, _ in marks} - {"?"}) <= 1, marks
    if isinstance(item, Message):
        assert [int(n) for _, n in marks] == sorted(int(n) for _, n in marks), marks


def machine(wire: WireApi) -> type[WireMachine]:
    """A fresh class, with counts of its own."""
    return type(f"{wire}Machine", (WireMachine,), {"wire_api": wire, "seen": Counter(), "sequences": 0})


def run(made: type[WireMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        made,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_no_sequence_of_messages_breaks_a_wire(wire_api: WireApi) -> None:
    """Twenty sequences at least, and as many more as it takes to make every move."""
    made = machine(wire_api)
    for _ in range(10):
        run(made, examples=20, steps=12)
        if {name for _, name in made.seen} == set(MOVES[wire_api]):
            return
    pytest.fail(f"not made in {made.sequences} sequences: {set(MOVES[wire_api]) - {name for _, name in made.seen}}")


@pytest.mark.slow
@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_twenty_thousand_sequences_and_every_transition(wire_api: WireApi) -> None:
    made = machine(wire_api)
    run(made, examples=-(-SEQUENCES // len(WIRE_APIS)), steps=20)
    states = {state for state, _ in made.seen}
    missed = {(state, name) for state in states for name in MOVES[wire_api]} - made.seen.keys()
    sys.stdout.write(
        f"{wire_api}: {made.sequences:,} sequences, {made.seen.total():,} messages, {len(made.seen)} transitions, {sorted(states)}\n"
    )
    assert made.sequences >= SEQUENCES // len(WIRE_APIS)
    assert states >= {"fresh", "open", "ended"}
    assert not missed


def test_the_join_check_can_fail() -> None:
    with pytest.raises(AssertionError):
        check_joins(Message("assistant", [Text("<0|1><1|2>")]))
    with pytest.raises(AssertionError):
        check_joins(Message("assistant", [Text("<0|2><0|1>")]))
