"""OpenAI Responses: unusual bytes, and the invariants on any partition and any order."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    Failed,
    FunctionCall,
    Notice,
    OutputTextDelta,
    ResponseEvent,
    accumulate,
)
from tests.support.partitions import byte_by_byte, every_single_split, partitions
from tests.support.responses_frames import (
    PLAIN,
    SYNTHETIC_STREAMS,
    UNUSUAL,
    added,
    body,
    body_of,
    check_invariants,
    completed,
    done,
    events_of,
    hosted,
    message,
    of,
    text,
)

# --- bytes ---


def test_surrogate_halves_are_joined_in_deltas_and_bodies() -> None:
    halves = text("Hi \ud83d") + text("\ude00!")
    events = events_of(
        added(message()),
        halves,
        done(message("Hi \U0001f600!")),
        completed(message("Hi \U0001f600!")),
    )
    assert "".join(event.delta for event in of(OutputTextDelta, events)) == "Hi \U0001f600!"
    assert not of(Notice, events)
    assert (
        accumulate(
            body_of(
                body(
                    output=[
                        message("a\ud83d"),
                        hosted("web_search_call", action={"query": "\ud83d"}),
                    ]
                )
            )
        ).text
        == "a\ufffd"
    )


def test_lone_surrogate_becomes_a_replacement_character() -> None:
    events = events_of(added(message()), text("a\ud83d"), done(message("a\ud83d")), completed())
    assert accumulate(events).text == "a\ufffd"
    assert not of(Notice, events)


@pytest.mark.parametrize("target", [b'"type": "web_search_call"', b'"query"', b'"it_0"', b"search"])
def test_invalid_utf8_is_replaced_anywhere(target: bytes) -> None:
    sent = done(hosted("web_search_call", action={"query": "search"}))
    broken = sent.replace(target, target[:-1] + b"\xff" + target[-1:])
    assert broken != sent
    msgspec.json.encode(events_of(broken, completed()))


def test_deep_nesting_fails_without_exception() -> None:
    for depth in (400, 900, 5_000):
        deep = b'{"x":' * depth + b'"\\ud83d"' + b"}" * depth
        events = events_of(
            b'data: {"type":"response.output_item.added","item":{"type":"t","x":'
            + deep
            + b"}}\n\n",
            text("\ud83d"),
        )
        assert isinstance(events[-1], Failed)


# --- invariants ---


def log(events: list[ResponseEvent]) -> list[bytes]:
    return [msgspec.json.encode(event) for event in events]


@pytest.mark.parametrize("name", SYNTHETIC_STREAMS)
def test_no_single_split_changes_the_events(name: str) -> None:
    expected = log(events_of(SYNTHETIC_STREAMS[name]))
    for chunks in [
        *every_single_split(SYNTHETIC_STREAMS[name], 300),
        byte_by_byte(SYNTHETIC_STREAMS[name]),
    ]:
        assert log(events_of(*chunks)) == expected


@pytest.mark.parametrize("name", SYNTHETIC_STREAMS)
@given(data=st.data())
def test_no_partition_changes_the_events(name: str, data: st.DataObject) -> None:
    sent = SYNTHETIC_STREAMS[name].replace(
        b"\n", data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    )
    assert log(events_of(*data.draw(partitions(sent)))) == log(events_of(sent))


@given(st.lists(st.sampled_from([*PLAIN, *UNUSUAL]), max_size=30), st.booleans())
def test_any_order_of_frames_closes_all_items_and_ends_once(
    frames: list[bytes], ends: bool
) -> None:
    events = events_of(*frames, PLAIN[-1] if ends else b"")
    check_invariants(events)
    if ends and not isinstance(events[-1], Failed):
        assert [
            call_.arguments for call_ in accumulate(events).calls if isinstance(call_, FunctionCall)
        ]


@given(st.permutations(PLAIN[:-1]), st.data())
def test_last_event_restores_lost_and_reordered_items(
    frames: list[bytes], data: st.DataObject
) -> None:
    remaining = data.draw(st.lists(st.sampled_from(frames), max_size=len(frames), unique=True))
    response = accumulate(events_of(*remaining, PLAIN[-1]))
    assert response.status == "completed"
    assert response.text == "Grüße"
    assert [c.arguments for c in response.calls if isinstance(c, FunctionCall)] == [
        '{"city":"Köln"}'
    ]
