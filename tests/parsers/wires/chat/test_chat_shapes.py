"""Chat Completions: values of shapes that no specification has: kept, rejected or repaired."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import Audio, Failed, FunctionCall, Message, Passthrough, accumulate
from tests.support import wires
from tests.support.cases import each_case
from tests.support.chat_streams import (
    FINISH,
    STOP,
    call,
    calls,
    chunk,
    delta_chunk,
    events_of,
    items_of,
    sse,
)


def passed(*chunks: Any) -> list[tuple[str, Any]]:
    return [
        (event.event, event.data) for event in events_of(*chunks) if isinstance(event, Passthrough)
    ]


@each_case(
    "delta, expected",
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
def test_value_of_the_wrong_type_passes_through_in_order(
    delta: Any, expected: tuple[str, Any]
) -> None:
    assert expected in [
        (name.removeprefix("delta."), data) for name, data in passed(delta_chunk(**delta), STOP)
    ]


@pytest.mark.parametrize(
    "broken", [{"choices": 5}, {"choices": [5]}, {"choices": [{"delta": 5}]}, [1], "5"]
)
def test_invalid_chunk_ends_the_stream(broken: Any) -> None:
    last = events_of(delta_chunk(content="a"), broken)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "malformed"


def audio(*fragments: str) -> str | None:
    items = items_of(
        *(delta_chunk(audio={"id": "a", "data": fragment}) for fragment in fragments), STOP
    )
    (part,) = items[0].content
    assert isinstance(part, Audio)
    return part.data


def test_audio_of_padded_fragments_is_one_base64_text() -> None:
    assert audio("QQ==", "Qg==") == "QUI="
    assert audio("QUJD", "RA==") == "QUJDRA=="
    assert audio("Q?==", "Qg==") == "Q?==Qg=="


def test_audio_with_an_id_alone_emits_no_data() -> None:
    (item,) = items_of(delta_chunk(audio={"id": "a"}), delta_chunk(audio={"data": "QQ=="}), STOP)
    assert item.content == (Audio(data="QQ==", name="a"),)


def test_generated_id_avoids_the_ids_of_the_wire() -> None:
    items = items_of(
        calls(call(0, "f", "{}", "call_0"), call(1, "f", "{}", "x")),
        calls(call(2, "g", "{}")),
        FINISH,
    )
    assert [item.call_id for item in items] == ["call_0", "x", "call_1"]


def test_call_of_unknown_type_with_a_function_keeps_its_type() -> None:
    (item,) = items_of(calls(call(0, "f", "{}", "x", type="banana")), FINISH)
    assert isinstance(item, FunctionCall)
    assert (item.name, item.native) == ("f", {"type": "banana"})


def test_entry_with_an_id_alone_is_a_nameless_call() -> None:
    (item,) = items_of(
        {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "x"}]}}]},
        FINISH,
    )
    assert (item.call_id, item.name, item.status) == ("x", "", "incomplete")


def test_object_arguments_with_lone_surrogate_are_encoded_again() -> None:
    function = '{"name":"f","arguments":{"k":"\\ud83d"}}'
    entry = f'{{"index":0,"id":"x","function":{function}}}'
    body = f'{{"id":"c1","choices":[{{"delta":{{"tool_calls":[{entry}]}}}}]}}'
    (item,) = accumulate(wires.events_of("chat", sse(body, FINISH))).calls
    assert isinstance(item, FunctionCall)
    assert item.parsed() == {"k": "\ufffd"}


def test_object_arguments_keep_bytes_unless_chunk_is_malformed() -> None:
    def arguments(*entries: Any) -> list[str]:
        chunk = {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": list(entries)}}]}
        return [
            item.arguments
            for item in accumulate(events_of(chunk, FINISH)).calls
            if isinstance(item, FunctionCall)
        ]

    first, second = (call(n, "f", {"k": n}, f"c{n}") for n in (0, 1))
    assert arguments(first, second) == ['{"k":0}', '{"k":1}']
    assert arguments(3, first) == ['{"k":0}']


def test_object_arguments_after_emitted_text_are_ignored() -> None:
    (item,) = items_of(
        calls(call(0, "f", '{"a":', "x")),
        calls(call(0, None, "1}")),
        calls(call(0, None, {"k": 1})),
        FINISH,
    )
    assert item.arguments == '{"a":1}'


def test_signature_beside_reasoning_signs_the_reasoning() -> None:
    (item,) = items_of(delta_chunk(reasoning_content="hm", thought_signature="S"), STOP)
    assert (item.text, item.signature) == ("hm", "S")


def test_repeated_reasoning_of_litellm_is_kept_once() -> None:
    fields = {"provider_specific_fields": {"reasoning_content": "hm", "citation": 1}}
    events = events_of(delta_chunk(reasoning_content="hm", **fields), STOP)
    assert "hm" not in repr([event for event in events if isinstance(event, Passthrough)])
    assert "citation" in repr(events)


def test_long_chunks_are_read_without_a_template() -> None:
    texts = [letter * 5_000 for letter in "abcd"]
    (item,) = items_of(*(delta_chunk(content=text) for text in texts), STOP)
    assert isinstance(item, Message)
    assert item.text == "".join(texts)


def test_empty_chunk_emits_nothing() -> None:
    assert items_of(chunk({"content": "a"}), {}, STOP)[0].text == "a"
