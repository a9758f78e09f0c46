"""Each wire's state machine gets any frames in any order.

Legal ones, wrong indexes, deltas of closed blocks, repeated ends.

After every frame the events so far are bracketed; at the end no item holds text of two indexes, and
none is out of order. Hypothesis picks random sequences and shrinks them; a deterministic test feeds
every frame after every other. tests/proof/test_machines.py is the long form: 20,000 seeded walks
that must make every transition.
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
from tests.support.thorough import THOROUGH

MARK: Final = re.compile(r"<(.*?)\|(\d+)>")

LEGAL_INDEX: Final = st.sampled_from(LEGAL[:2])
ANY_INDEX: Final = st.sampled_from(INDEXES)


class WireMachine(RuleBasedStateMachine):
    """One stream of one wire."""

    wire_api: ClassVar[WireApi]

    def __init__(self) -> None:
        super().__init__()
        self._parser = parser(self.wire_api)
        self._checker = InvariantChecker()
        self._accumulator = Accumulator()
        self._count = 0

    @rule(data=st.data())
    def next_frame(self, data: st.DataObject) -> None:
        """The next frame: any kind, mostly at a legal index, in one or two chunks."""
        name = data.draw(st.sampled_from(sorted(FRAME_GENERATORS[self.wire_api])))
        index = data.draw(st.one_of(LEGAL_INDEX, LEGAL_INDEX, LEGAL_INDEX, ANY_INDEX))
        self._count += 1
        generator = FRAME_GENERATORS[self.wire_api][name]
        position = "?"
        if generator(0, "") != generator(1, ""):  # some frames have no index
            position = position_of(index)
        mark = f"<{position}|{self._count}>"
        body = encode_payloads(self.wire_api, [generator(index, mark)])
        offset = data.draw(st.integers(0, len(body)))
        self._take(self._parser.feed(body[:offset]))
        self._take(self._parser.feed(body[offset:]))

    def _take(self, events: list[ResponseEvent]) -> None:
        self._checker.feed(events)
        for event in events:
            self._accumulator.feed(event)
        assert self._accumulator.response.items is not None

    def teardown(self) -> None:
        """The end of the input, wherever it comes."""
        self._take(self._parser.close())
        assert self._parser.close() == []
        assert self._parser.feed(b"data: {}\n\n") == []
        self._checker.close()
        for item in self._checker.done.values():
            check_joins(item)


def position_of(index: Any) -> str:
    """A legal index as text, "?" for all others."""
    if index in LEGAL and not isinstance(index, bool):
        return str(int(index))
    return "?"


def check_joins(item: ResponseItem) -> None:
    """Checks that an item holds text of one index only, in the order it was sent."""
    if isinstance(item, (Message, Reasoning)):
        text = item.text
    else:
        text = getattr(item, "arguments", "")
    marks = MARK.findall(text)
    assert len({position for position, _ in marks} - {"?"}) <= 1, marks
    if isinstance(item, Message):
        numbers = [int(number) for _, number in marks]
        assert numbers == sorted(numbers), marks


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_no_sequence_of_frames_breaks_a_wire(wire_api: WireApi) -> None:
    run_state_machine_as_test(
        type(f"{wire_api}Machine", (WireMachine,), {"wire_api": wire_api}),
        settings=settings(
            max_examples=40 if THOROUGH else 20,
            stateful_step_count=12,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_every_frame_may_follow_every_other(wire_api: WireApi) -> None:
    """In a fresh stream, beside an open item, after a closed one and after the end."""
    generators = FRAME_GENERATORS[wire_api]
    for first, second in itertools.product(generators.values(), repeat=2):
        wire_parser, checker = parser(wire_api), InvariantChecker()
        for generator in (first, second):
            checker.feed(wire_parser.feed(encode_payloads(wire_api, [generator(0, "text")])))
        checker.feed(wire_parser.close())
        checker.close()


def test_the_join_check_can_fail() -> None:
    with pytest.raises(AssertionError):
        check_joins(Message("assistant", [Text("<0|1><1|2>")]))
    with pytest.raises(AssertionError):
        check_joins(Message("assistant", [Text("<0|2><0|1>")]))
