"""Chat Completions: several choices, and streams that other libraries misread."""

from __future__ import annotations

import pytest

from streamlib_parsers import (
    Completed,
    FunctionCall,
)
from streamlib_parsers.wires.chat.calls import JsonDepth
from tests.support.chat_streams import (
    ARGS,
    FINISH,
    HI,
    STOP,
    TOTAL,
    Json,
    call,
    calls,
    choice,
    choices_chunk,
    events_of,
    items_of,
    response_of,
)

# --- items ---


# --- several choices ---


def test_each_choice_has_its_own_items_calls_and_reason() -> None:
    response = response_of(
        choices_chunk(choice(1, {"content": "B"}), choice(0, {"content": "A"})),
        choices_chunk(
            choice(0, {"content": "a"}, "stop"),
            choice(1, {"tool_calls": [call(0, "f", ARGS, "x")]}, "tool_calls"),
        ),
    )
    assert response.text == "Aa"
    assert [
        (choice.index, choice.stop_reason, len(choice.items)) for choice in response.choices
    ] == [
        (0, "stop", 1),
        (1, "tool_calls", 2),
    ]
    assert response.stop_reason == "stop"


def test_x29_choices_keep_the_numbers_of_the_wire() -> None:
    response = response_of(
        choices_chunk(choice(0, {"content": "A"}, "stop")),
        choices_chunk(choice(1, {"tool_calls": [call(0, "f", ARGS, "x")]}, "tool_calls")),
    )
    assert [item.choice for choice in response.choices for item in choice.items] == [0, 1]


def test_every_choice_must_have_finished() -> None:
    sent = [
        choices_chunk(choice(0, {"content": "A"}, "stop")),
        choices_chunk(choice(1, {"content": "B"})),
    ]
    assert response_of(*sent, done=None).error.kind == "truncated"  # type: ignore[union-attr]
    completed = events_of(*sent)[-1]
    assert isinstance(completed, Completed)
    assert [tuple(choice) for choice in completed.choices] == [
        (0, "stop", "stop"),
        (1, "other", None),
    ]


def test_metadata_of_another_choice_names_its_index() -> None:
    response = response_of(
        choices_chunk(
            choice(0, {"content": "A"}, "stop", seed=1), choice(1, {"content": "B"}, "stop", seed=2)
        )
    )
    assert response.metadata == {"seed": 1, "choices[1].seed": 2}


# --- streams that other libraries misread ---


def test_two_calls_in_one_chunk_without_an_index() -> None:
    assert len(items_of(calls(call(None, "f", "{}"), call(None, "g", "{}")), FINISH)) == 2


def test_another_id_at_one_index_is_another_call() -> None:
    items = items_of(calls(call(0, "f", "{}", "a")), calls(call(0, "f", "{}", "b")), FINISH)
    assert [item.call_id for item in items] == ["a", "b"]


def test_another_name_after_a_complete_call_is_another_call() -> None:
    items = items_of(
        calls(call(0, "f", '{"a":1}')),
        calls(call(0, "g", '{"b":2}')),
        calls(call(0, "g", '{"b":3}')),
        FINISH,
    )
    assert [(item.name, item.arguments) for item in items] == [
        ("f", '{"a":1}'),
        ("g", '{"b":2}'),
        ("g", '{"b":3}'),
    ]


def test_interleaved_fragments_of_two_calls_are_assigned() -> None:
    first = calls(call(0, "f", "", "a"), call(1, "g", "", "b"))
    items = items_of(
        first,
        *(calls(call(n % 2, None, text)) for n, text in enumerate(["{", "[", "}", "]"])),
        FINISH,
    )
    assert [item.arguments for item in items] == ["{}", "[]"]


def test_call_without_arguments_is_callable_and_stays_empty() -> None:
    (item,) = response_of(calls(call(0, "f", None, "a")), FINISH).calls
    assert isinstance(item, FunctionCall)
    assert (item.arguments, item.parsed()) == ("", {})


def test_truncated_arguments_are_not_taken_as_empty() -> None:
    response = response_of(calls(call(0, "f", '{"path": "/etc', "a")))
    assert response.calls == []
    assert (response.stop_reason, response.items[0].status) == ("other", "incomplete")


@pytest.mark.parametrize(
    "empty",
    [
        {"choices": None},
        {"choices": []},
        {"choices": [{"index": 0, "delta": None}]},
        {},
        {"usage": TOTAL},
    ],
)
def test_chunks_without_a_delta_are_empty(empty: Json) -> None:
    response = response_of(empty, HI, empty, STOP, empty)
    assert (response.text, response.stop_reason, response.notices) == ("Hi", "stop", ())


@pytest.mark.parametrize("text", ['{"a": "}\\"]"}', "[1, [2], {}]", '""', "{}", '{"\\\\": "{"}'])
def test_json_depth_finds_the_end_for_every_split(text: str) -> None:
    for index in range(len(text)):
        depth = JsonDepth()
        depth.feed(text[:index])
        assert not depth.is_complete
        depth.feed(text[index:])
        assert depth.is_complete
