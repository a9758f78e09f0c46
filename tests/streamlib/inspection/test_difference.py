"""Two responses, event by event: what is said counts, and neither ids nor the sizes of deltas."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlib.inspection import Difference, Inspection, compare, inspect
from streamlib.inspection import difference as difference_module
from streamlib.recording import Chunk, Recording
from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import SampleCall, SampleResponse, SampleText
from tests.support.cases import each_case
from tests.support.shared import ROOT
from tests.support.timing import cpu_seconds

RECORDINGS = ROOT / "tests" / "recordings"
FILES = sorted(path for path in RECORDINGS.glob("*/*") if path.suffix != ".md")
RIVERS = SampleText(["The Rhine ", "is a ", "river."])
CALL = SampleCall("call_1", "get_weather", ['{"city":', '"Paris"}'])


def inspection_of(*items: SampleText | SampleCall, at: float = 0.5) -> Inspection:
    response: SampleResponse = items
    body = b"".join(bodies.body("messages", response))
    half = len(body) // 2
    chunks = (Chunk(at, body[:half]), Chunk(2 * at, body[half:]))
    return inspect(Recording(200, {}, chunks), "messages", name=f"{at}.jsonl", splits=None)


def operations(difference: Difference) -> list[str]:
    return [f"{row.op} {row.type}" for row in difference.rows if row.op != "same"]


@each_case("path", FILES)
def test_response_equals_itself(path: Path) -> None:
    inspection = inspect(path.read_bytes(), path.parent.name, splits=None)  # type: ignore[arg-type]
    difference = compare(inspection, inspection)
    assert (difference.equal, difference.first) == (True, None)
    assert sum(row.a[1] for row in difference.rows if row.a) == len(inspection.events)


def test_sizes_of_deltas_are_no_difference() -> None:
    joined = SampleText(["The Rhine is a river."])
    ours, theirs = inspection_of(RIVERS), inspection_of(joined)
    assert len(ours.events) != len(theirs.events)
    difference = compare(ours, theirs)
    assert difference.equal
    text = next(row for row in difference.rows if row.type == "output_text_delta")
    assert text.a is not None
    assert text.b is not None
    assert (text.op, text.a[1], text.b[1]) == ("same", 3, 1)


def test_ids_alone_are_no_difference() -> None:
    ours = inspection_of(CALL)
    theirs = inspection_of(SampleCall("call_2", "get_weather", ['{"city":"Paris"}']))
    difference = compare(ours, theirs)
    assert difference.equal
    assert operations(difference) == ["ids output_item_added", "ids output_item_done"]
    assert difference.first is not None
    assert difference.first.text.endswith("item (ids, times or limits)")


def test_first_difference_names_the_character_and_both_times() -> None:
    ours = inspection_of(RIVERS, CALL, at=0.5)
    theirs = inspection_of(SampleText(["The Rhine is a stream."]), CALL, at=3.0)
    difference = compare(ours, theirs)
    assert not difference.equal
    assert difference.first is not None
    row = difference.rows[difference.first.row]
    assert (row.op, row.type, row.character) == ("changed", "output_text_delta", 15)
    assert (row.a_text, row.b_text) == ("The Rhine is a river.", "The Rhine is a stream.")
    assert (row.a_at, row.b_at) == (0.5, 3.0)
    assert "from character 15 on" in difference.first.text


def test_missing_item_is_only_on_one_side() -> None:
    ours, theirs = inspection_of(RIVERS, CALL), inspection_of(RIVERS)
    difference = compare(ours, theirs)
    missing = [row.type for row in difference.rows if row.op == "only_a"]
    assert missing == ["output_item_added", "function_call_arguments_delta", "output_item_done"]
    swapped = compare(theirs, ours)
    assert [row.type for row in swapped.rows if row.op == "only_b"] == missing


def test_inserted_item_moves_the_indexes_of_the_others() -> None:
    ours, theirs = inspection_of(RIVERS, CALL), inspection_of(CALL, RIVERS, CALL)
    difference = compare(ours, theirs)
    assert not difference.equal
    assert [row.type for row in difference.rows if row.op == "only_b"] == [
        "output_item_added",
        "function_call_arguments_delta",
        "output_item_done",
    ]
    assert {row.op for row in difference.rows} == {"same", "ids", "only_b"}
    moved = next(row for row in difference.rows if row.type == "output_text_delta")
    assert (moved.op, moved.fields) == ("ids", ("index",))


def test_deltas_of_two_items_are_two_texts() -> None:
    added = b'{"index":%d,"id":"c%d","type":"function","function":{"name":"f","arguments":""}}'
    delta = b'{"index":%d,"function":{"arguments":"%d"}}'
    calls = [added % (0, 0), added % (1, 1), delta % (0, 1), delta % (1, 2)]
    body = b"".join([b'data: {"choices":[{"delta":{"tool_calls":[%s]}}]}\n\n' % c for c in calls])
    inspection = inspect(body, "chat", splits=None)
    labels = [row.label for row in compare(inspection, inspection).rows]
    assert "function_call_arguments_delta 0 (1 characters)" in labels
    assert "function_call_arguments_delta 1 (1 characters)" in labels


@pytest.mark.parametrize("name", sorted(difference_module.ID_EVENTS))
def test_events_about_limits_are_no_difference(name: str) -> None:
    both = [inspection_of(RIVERS) for _ in range(2)]
    for number, inspection in enumerate(both):
        inspection.events[0] |= {"type": name, "value": number}
    difference = compare(*both)
    assert difference.equal
    assert (difference.rows[0].op, difference.rows[0].fields) == ("ids", ("value",))


def test_truncated_response_differs_at_its_end() -> None:
    whole = (RECORDINGS / "messages" / "aimock-tool.sse").read_bytes()
    difference = compare(inspect(whole, "messages"), inspect(whole[:760], "messages"))
    assert difference.first is not None
    row = difference.rows[difference.first.row]
    assert (row.type, row.character, row.a_at) == ("function_call_arguments_delta", 14, None)
    assert "only_b failed" in operations(difference)


@pytest.mark.parametrize("bodies_", [(b"", b""), (b"", b"data: x\n\n"), (b"[]", b"{}")])
def test_any_bytes_are_compared(bodies_: tuple[bytes, bytes]) -> None:
    ours, theirs = (inspect(body, "chat") for body in bodies_)
    assert compare(ours, theirs).equal is (ours.events == theirs.events)


@pytest.mark.timing
def test_many_different_items_are_compared_in_linear_time() -> None:
    def seconds(count: int) -> float:
        # Other items at the start and at the end, so that all between them must be aligned.
        ours = inspection_of(*([RIVERS, CALL] * count), RIVERS)
        theirs = inspection_of(CALL, *([RIVERS, CALL] * count))
        return cpu_seconds(lambda: compare(ours, theirs), tries=2)

    # Each item is three spans: both are above the limit.
    assert seconds(440) < 7 * seconds(110)
