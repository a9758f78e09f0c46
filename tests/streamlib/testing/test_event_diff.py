"""Differences of event lists, as the pytest plugin shows them."""

from __future__ import annotations

import time

from streamlib import (
    Completed,
    Created,
    FunctionCallOutput,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
    assistant,
)
from streamlib.testing.event_diff import are_event_lists, explain_difference, folded


def response(*words: str) -> list[ResponseEvent]:
    """A response with a delta for each word."""
    deltas: list[ResponseEvent] = [OutputTextDelta(0, 0, word, seq=5) for word in words]
    return [
        Created("r", "m"),
        OutputItemAdded(0, assistant("")),
        *deltas,
        OutputItemDone(0, assistant("".join(words))),
        Completed("r", "m", "stop"),
    ]


def test_difference_shows_the_first_event_and_its_field() -> None:
    words = [f"word{number} " for number in range(40)]
    left, right = response(*words), response(*words[:20], "other ", *words[21:])
    lines = explain_difference(left, right)
    assert lines[:2] == ["44 events == 44 events", "the first difference:"]
    assert lines[2].startswith("left  [2] 40 x OutputTextDelta(…")
    assert "word20" in lines[2]
    assert lines[3].startswith("right [2] 40 x OutputTextDelta(…")
    assert "other" in lines[3]
    character = "".join(words).index("word20")
    assert lines[4].startswith("      delta: …")
    assert lines[4].endswith(f"(character {character})")
    assert lines[5] == "around it:"
    assert max(len(line) for line in lines) < 110


def test_difference_of_a_missing_event_is_aligned() -> None:
    left, right = response("a"), response("a")
    del right[1]
    lines = explain_difference(left, right)
    assert lines[2].startswith("left  [1] OutputItemAdded(")
    assert lines[3].startswith("right [1] OutputTextDelta(")
    marked = [line for line in lines[5:] if not line.startswith("      ")]
    assert [line.split(" [")[0] for line in marked] == ["left "]


def test_difference_names_the_end_of_a_shorter_list() -> None:
    left = response("a")
    lines = explain_difference(left, left[:-1])
    assert lines[2].startswith("left  [4] Completed(")
    assert lines[3] == "right nothing more"


def test_difference_has_three_rows_on_each_side() -> None:
    left = [*response("a"), *response("b")] * 3
    right = list(left)
    right[15] = Created("other", "m")
    lines = explain_difference(left, right)
    context = lines[lines.index("around it:") + 1 :]
    assert [line.split("]")[0] for line in context] == [
        "      [12",
        "      [13",
        "      [14",
        "left  [15",
        "right [15",
        "      [16",
        "      [17",
        "      [18",
    ]
    assert len(explain_difference(left, right, context=None)) > 30


def test_a_different_split_of_deltas_is_named() -> None:
    lines = explain_difference(response("ab", "c"), response("a", "bc"))
    assert "where deltas are split" in lines[1]
    assert "'ab'" in lines[2]
    assert "'a'" in lines[3]


def test_deltas_of_other_items_are_not_folded() -> None:
    events: list[ResponseEvent] = [
        OutputTextDelta(0, 0, "a"),
        OutputTextDelta(0, 0, "b"),
        OutputTextDelta(1, 0, "c"),
        OutputTextDelta(1, 1, "d"),
        OutputTextDelta(1, 1, "e", logprobs=[{"token": "e"}]),
    ]
    assert [row.count for row in folded(events)] == [2, 1, 1, 1]


def test_equal_lists_have_no_difference() -> None:
    assert explain_difference(response("a"), response("a")) == []


def test_lists_of_events_are_recognised() -> None:
    output = FunctionCallOutput("c", "x")
    assert are_event_lists([*response("a"), output], [])
    for other in ([], [1], "text", [*response("a"), 1], {}):
        assert not are_event_lists(other, [])


def test_differences_of_long_lists_are_found_quickly() -> None:
    left = response(*["word "] * 20_000)
    right = response(*["word "] * 19_999)
    start = time.process_time()
    assert explain_difference(left, right)
    assert time.process_time() - start < 2
