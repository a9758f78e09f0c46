"""Chat: values in shapes that no specification has, each kept, refused or mended, never lost and never a foreign exception."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import Audio, Failed, FunctionCall, Message, Passthrough, accumulate
from tests.support import wires
from tests.support.chat_streams import (
    FINISH,
    STOP,
    call,
    calls,
    chunk,
    events_of,
    items_of,
    said,
    sse,
)


def passed(*chunks: Any) -> list[tuple[str, Any]]:
    return [
        (event.event, event.data) for event in events_of(*chunks) if isinstance(event, Passthrough)
    ]


@pytest.mark.parametrize(
    ("delta", "kept"),
    [
        ({"content": [5]}, ("content", 5)),
        ({"content": [{"type": "thinking", "thinking": [7]}]}, ("content.thinking", 7)),
        ({"images": [{"image_url": {"url": 5}}]}, ("images", {"image_url": {"url": 5}})),
        ({"executed_tools": ["x"]}, ("executed_tools", "x")),
        ({"tool_calls": {"a": 1}}, ("tool_calls", {"a": 1})),
        ({"tool_calls": [3]}, ("tool_calls", 3)),
        ({"audio": "x"}, ("audio", "x")),
        ({"annotations": [1]}, ("annotations", 1)),
    ],
)
def test_a_value_of_the_wrong_kind_is_passed_through_in_its_place(
    delta: Any, kept: tuple[str, Any]
) -> None:
    assert kept in [
        (name.removeprefix("delta."), data) for name, data in passed(said(**delta), STOP)
    ]


@pytest.mark.parametrize(
    "broken", [{"choices": 5}, {"choices": [5]}, {"choices": [{"delta": 5}]}, [1], "5"]
)
def test_a_chunk_that_is_none_ends_the_stream(broken: Any) -> None:
    last = events_of(said(content="a"), broken)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "malformed"


def audio(*pieces: str) -> str | None:
    items = items_of(*(said(audio={"id": "a", "data": piece}) for piece in pieces), STOP)
    (part,) = items[0].content
    assert isinstance(part, Audio)
    return part.data


def test_audio_in_pieces_that_are_each_base64_of_their_own_is_one_base64() -> None:
    assert audio("QQ==", "Qg==") == "QUI="
    assert audio("QUJD", "RA==") == "QUJDRA=="
    assert audio("Q?==", "Qg==") == "Q?==Qg=="


def test_audio_that_has_only_its_id_so_far_says_nothing_yet() -> None:
    (item,) = items_of(said(audio={"id": "a"}), said(audio={"data": "QQ=="}), STOP)
    assert item.content == (Audio(data="QQ==", name="a"),)


def test_an_id_of_ours_is_none_that_the_wire_has_used() -> None:
    items = items_of(
        calls(call(0, "f", "{}", "call_0"), call(1, "f", "{}", "x")),
        calls(call(2, "g", "{}")),
        FINISH,
    )
    assert [item.call_id for item in items] == ["call_0", "x", "call_1"]


def test_a_call_of_an_unknown_type_with_a_function_keeps_its_type() -> None:
    (item,) = items_of(calls(call(0, "f", "{}", "x", type="banana")), FINISH)
    assert isinstance(item, FunctionCall)
    assert (item.name, item.native) == ("f", {"type": "banana"})


def test_an_entry_with_an_id_alone_is_a_call_that_never_got_a_name() -> None:
    (item,) = items_of(
        {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "x"}]}}]},
        FINISH,
    )
    assert (item.call_id, item.name, item.status) == ("x", "", "incomplete")


def test_arguments_as_an_object_with_half_an_emoji_are_written_anew() -> None:
    body = '{"id":"c1","choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":{"k":"\\ud83d"}}}]}}]}'
    (made,) = accumulate(wires.events_of("chat", sse(body, FINISH))).calls
    assert isinstance(made, FunctionCall)
    assert made.parsed() == {"k": "\ufffd"}


def test_arguments_as_objects_keep_their_bytes_where_the_chunk_can_be_searched_and_are_written_anew_where_it_cannot() -> (
    None
):
    def arguments(*entries: Any) -> list[str]:
        chunk = {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": list(entries)}}]}
        return [
            made.arguments
            for made in accumulate(events_of(chunk, FINISH)).calls
            if isinstance(made, FunctionCall)
        ]

    one, two = (call(n, "f", {"k": n}, f"c{n}") for n in (0, 1))
    assert arguments(one, two) == ['{"k":0}', '{"k":1}']
    assert arguments(3, one) == ['{"k":0}']


def test_an_object_behind_text_that_was_given_out_is_not_added_to_it() -> None:
    (item,) = items_of(
        calls(call(0, "f", '{"a":', "x")),
        calls(call(0, None, "1}")),
        calls(call(0, None, {"k": 1})),
        FINISH,
    )
    assert item.arguments == '{"a":1}'


def test_a_signature_beside_a_thought_signs_the_thought() -> None:
    (item,) = items_of(said(reasoning_content="hm", thought_signature="S"), STOP)
    assert (item.text, item.signature) == ("hm", "S")


def test_what_litellm_says_twice_is_kept_once() -> None:
    fields = {"provider_specific_fields": {"reasoning_content": "hm", "citation": 1}}
    said_twice = events_of(said(reasoning_content="hm", **fields), STOP)
    assert "hm" not in repr([event for event in said_twice if isinstance(event, Passthrough)])
    assert "citation" in repr(said_twice)


def test_long_chunks_are_read_like_short_ones() -> None:
    words = [letter * 5_000 for letter in "abcd"]
    (item,) = items_of(*(said(content=word) for word in words), STOP)
    assert isinstance(item, Message)
    assert item.text == "".join(words)


def test_an_empty_chunk_says_nothing() -> None:
    assert items_of(chunk({"content": "a"}), {}, STOP)[0].text == "a"
