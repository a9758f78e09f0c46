"""Bedrock Converse: what each member of a block becomes, in streams and complete bodies."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from streamlib_parsers import (
    AnnotationAdded,
    Failed,
    FunctionCall,
    Image,
    MediaDelta,
    Message,
    Opaque,
    OutputItemAdded,
    Passthrough,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    Text,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.item_base import unchecked
from tests.support import wires
from tests.support.cases import each_case
from tests.support.converse_frames import (
    METADATA,
    START,
    TAIL,
    USAGE,
    Json,
    begin,
    call,
    codes,
    delta,
    end,
    event,
    events_of,
    items_of,
    stop,
    texts,
)

# --- blocks ---


def test_interleaved_blocks_are_tracked_by_index() -> None:
    mixed = (
        delta(0, text="a")
        + delta(1, reasoningContent={"text": "x"})
        + delta(0, text="b")
        + stop(1)
        + stop(0)
    )
    assert [item.text for item in items_of(mixed)] == ["ab", "x"]


@pytest.mark.parametrize(
    "shape",
    [{"text": "Hm", "signature": "c2ln"}, {"reasoningText": {"text": "Hm", "signature": "c2ln"}}],
)
def test_reasoning_may_be_flat_or_nested(shape: Json) -> None:
    expected = [Reasoning(content="Hm", signature="c2ln")]
    assert items_of(delta(0, reasoningContent=shape), stop(0)) == expected
    assert items_of(begin(0, reasoningContent=shape), stop(0)) == expected


def test_signature_without_reasoning_text_is_kept() -> None:
    assert items_of(delta(0, reasoningContent={"signature": "c2ln"}), stop(0)) == [
        Reasoning(signature="c2ln")
    ]


def test_signature_fragments_are_joined() -> None:
    fragments = [delta(0, reasoningContent={"signature": text}) for text in ("ab", "cd", "ef")]
    assert items_of(*fragments, stop(0)) == [Reasoning(signature="abcdef")]


@pytest.mark.parametrize("name", ["redactedContent", "data"])
def test_encrypted_reasoning_is_kept_unchanged(name: str) -> None:
    added = events_of(START, delta(0, reasoningContent={name: "c2VhbGVk"}), stop(0), TAIL)[1]
    assert isinstance(added, OutputItemAdded)
    assert isinstance(added.item, Reasoning)
    assert added.item.redacted
    assert items_of(delta(0, reasoningContent={name: "c2VhbGVk"}), stop(0)) == [
        Reasoning(encrypted_content="c2VhbGVk", redacted=True)
    ]


def test_encrypted_fragments_are_joined_as_bytes() -> None:
    fragments = [base64.b64encode(data).decode() for data in (b"a", b"bc", b"def")]
    (item,) = items_of(
        *(delta(0, reasoningContent={"redactedContent": data}) for data in fragments), stop(0)
    )
    assert base64.b64decode(item.encrypted_content, validate=True) == b"abcdef"


def test_encrypted_fragments_join_as_text_when_not_base64() -> None:
    (item,) = items_of(
        *(delta(0, reasoningContent={"redactedContent": text}) for text in ("é", "?")), stop(0)
    )
    assert item.encrypted_content == "é?"


@pytest.mark.parametrize("fragments", [(), ("",), ("{}",)])
def test_empty_arguments_are_an_empty_object(fragments: tuple[str, ...]) -> None:
    (item,) = items_of(call(0, *fragments))
    assert item.arguments == "".join(fragments)
    assert (item.status, item.parsed()) == ("completed", {})


def test_invalid_arguments_make_the_call_incomplete() -> None:
    (item,) = items_of(call(0, '{"city":"Par'))
    assert item.status == "incomplete"


def test_server_tool_call_is_never_callable() -> None:
    response = wires.response_of(
        "converse", START, call(0, '{"snippet":"1"}', type="server_tool_use"), TAIL
    )
    assert response.calls == []
    assert isinstance(response.items[0], ServerToolCall)
    assert response.items[0].native == {"type": "server_tool_use"}


def test_unknown_keys_of_a_call_are_native() -> None:
    assert items_of(call(0, type="tool_use"))[0].native is None
    assert items_of(call(0, type="other_use", extra=1))[0].native == {
        "type": "other_use",
        "extra": 1,
    }


def test_call_without_id_gets_a_generated_id() -> None:
    events = events_of(
        START, call(0, toolUseId=None), call(1, toolUseId=""), TAIL, call_id=lambda n: f"own_{n}"
    )
    assert [item.call_id for item in accumulate(events).calls] == ["own_0", "own_1"]


def test_nameless_call_is_never_callable() -> None:
    events = events_of(START, call(0, "{}", name=None), TAIL)
    assert accumulate(events).calls == []
    assert "nameless_call" in codes(events)


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "tool_use"])
def test_complete_call_makes_the_stop_reason_tool_calls(reason: str) -> None:
    """A20: an agent loop that goes by the stop reason must answer the call."""
    response = accumulate(events_of(START, call(0, "{}"), end(reason) + METADATA))
    assert (response.stop_reason, response.native_stop_reason) == ("tool_calls", reason)
    assert (response.unfinished, len(response.calls)) == (True, 1)


def test_announced_call_that_never_came_is_a_stop_with_a_notice() -> None:
    """A20: an agent loop would otherwise send the same request again."""
    events = events_of(START, texts(0, "Hi"), end("tool_use") + METADATA)
    response = accumulate(events)
    assert (response.stop_reason, response.native_stop_reason) == ("stop", "tool_use")
    assert (codes(events), response.unfinished) == (["no_tool_call"], False)


def test_tool_result_text_is_joined_across_deltas() -> None:
    deltas = [
        [{"text": "a"}],
        [{"text": "b"}, {"text": "c"}],
        [{"json": {"x": 1}}],
        [{"text": "d"}],
    ]
    start = begin(
        0,
        toolResult={"toolUseId": "t1", "type": "nova_code_interpreter_result", "status": "success"},
    )
    (item,) = items_of(start, *(delta(0, toolResult=content) for content in deltas), stop(0))
    assert item == ServerToolResult(
        "t1",
        "nova_code_interpreter",
        [{"text": "ab"}, {"text": "c"}, {"json": {"x": 1}}, {"text": "d"}],
        native={"type": "nova_code_interpreter_result", "status": "success"},
    )


def test_citation_may_accompany_its_text() -> None:
    events = events_of(START, delta(0, text="Ruby", citation={"title": "facts"}), TAIL)
    (item,) = accumulate(events).items
    assert isinstance(item, Message)
    assert item.content == (Text("Ruby", ({"title": "facts"},)),)


def test_citation_may_precede_its_text() -> None:
    citation = {
        "title": "facts",
        "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 73}},
    }
    events = events_of(START, delta(0, citation=citation), texts(0, "Ruby"), TAIL)
    assert AnnotationAdded(0, 0, citation) in events
    (item,) = accumulate(events).items
    assert isinstance(item, Message)
    assert item.content == (Text("Ruby", (citation,)),)


def test_image_fragments_are_joined() -> None:
    fragments = [base64.b64encode(data).decode() for data in (b"\x89", b"PNG")]
    blocks = [
        begin(0, image={"format": "png"}),
        *(delta(0, image={"source": {"bytes": data}}) for data in fragments),
        stop(0),
    ]
    events = events_of(START, *blocks, TAIL)
    assert [event.data for event in events if isinstance(event, MediaDelta)] == fragments
    assert items_of(*blocks)[0].content == (
        Image(data=base64.b64encode(b"\x89PNG").decode(), media_type="image/png"),
    )


def test_image_in_a_bucket_has_a_url() -> None:
    source = {"s3Location": {"uri": "s3://bucket/a.png", "bucketOwner": "1"}}
    (item,) = items_of(
        begin(0, image={"format": "jpeg"}), delta(0, image={"source": source}), stop(0)
    )
    native = {"bucketOwner": "1"}
    image = Image(url="s3://bucket/a.png", media_type="image/jpeg", native=native)
    assert item.content == (image,)


@pytest.mark.parametrize("image", [{}, {"source": {"bytes": "iVBO"}}])
def test_failed_image_is_incomplete_and_has_its_error(image: Json) -> None:
    failed = image | {"error": {"message": "no"}}
    events = events_of(
        START, begin(0, image={"format": "png"}), delta(0, image=failed), stop(0), TAIL
    )
    response = accumulate(events)
    [item] = response.items
    assert isinstance(item, Message)
    data = image.get("source", {}).get("bytes")
    native = {"error": {"message": "no"}}
    assert item.content == (unchecked(Image)(data=data, media_type="image/png", native=native),)
    assert item.status == "incomplete"
    assert [(notice.code, notice.detail) for notice in response.notices] == [("image_failed", "no")]
    assert not [event for event in events if isinstance(event, Passthrough)]


def test_first_delta_opens_the_block_after_an_empty_start() -> None:
    assert [item.text for item in items_of(begin(0), texts(0, "Hi"))] == ["Hi"]
    assert items_of(begin(0), stop(0)) == []


def test_null_members_are_ignored() -> None:
    assert items_of(
        begin(0, toolUse=None, text=None), delta(0, text="Hi", toolUse=None), stop(0)
    ) == [Message("assistant", (Text("Hi"),))]


# --- lines and bodies ---

MEMBERS = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("messageStop", {"stopReason": "end_turn"}),
    ("metadata", {"usage": USAGE}),
]


def test_recorded_lines_may_wrap_payload_in_its_name() -> None:
    framed = events_of(*(event(name, **payload) for name, payload in MEMBERS))
    assert (
        wires.events_of_lines(
            "converse", [json.dumps({name: payload}) for name, payload in MEMBERS]
        )
        == framed
    )
    p = parser("converse")
    named = [
        event
        for name, payload in MEMBERS
        for event in p.feed_event(json.dumps({name: payload}), name)
    ]
    assert [*named, *p.close()] == framed


def body(*content: Json, **values: Any) -> bytes:
    response = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "end_turn",
        "usage": USAGE,
        **values,
    }
    return json.dumps(response).encode()


def body_items(*content: Json) -> list[Any]:
    response = accumulate(parse_body("converse", body(*content)))
    assert response.error is None
    return [msgspec.structs.replace(item, origin=None) for item in response.items]


def test_body_emits_one_delta_per_part() -> None:
    events = parse_body(
        "converse", body({"text": "Hi"}, {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}})
    )
    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        *("Created", "OutputItemAdded", "OutputTextDelta", "OutputItemDone"),
        *(
            "OutputItemAdded",
            "FunctionCallArgumentsDelta",
            "OutputItemDone",
            "TokenCount",
            "Completed",
        ),
    ]


def test_body_keeps_the_bytes_of_arguments() -> None:
    raw_body = (
        b'{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"f",'
        b'"input":{"b": 1.0, "a":1e2}}}]}},"stopReason":"tool_use"}'
    )
    (call_item,) = accumulate(parse_body("converse", raw_body)).calls
    assert isinstance(call_item, FunctionCall)
    assert call_item.arguments == '{"b": 1.0, "a":1e2}'


def test_every_block_of_a_body_becomes_an_item() -> None:
    citation = {"title": "t", "sourceContent": [{"text": "s"}]}
    assert body_items(
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "c2Vh"}},
        {"reasoningContent": {}},
        {"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": [citation]}},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": None, "type": "server_tool_use"}},
        {
            "toolResult": {
                "toolUseId": "t",
                "content": [{"text": "a"}, {"text": "b"}],
                "status": "success",
                "type": "f_result",
            }
        },
        {"image": {"format": "webp", "source": {"bytes": "UklG"}}},
        {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}},
        {"text": "", "type": "text"},
    ) == [
        Reasoning(content="Hm", signature="c2ln"),
        Reasoning(encrypted_content="c2Vh", redacted=True),
        Reasoning(),
        Message("assistant", (Text("ab", (citation,)),)),
        ServerToolCall("t", "f", native={"type": "server_tool_use"}),
        ServerToolResult(
            "t",
            "f",
            [{"text": "a"}, {"text": "b"}],
            native={"status": "success", "type": "f_result"},
        ),
        Message("assistant", (Image(data="UklG", media_type="image/webp"),)),
        Opaque("audio", {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}}),
        Message("assistant", (Text(""),), native={"(beside)": {"type": "text"}}),
    ]


def test_body_without_stop_reason_or_usage_is_complete() -> None:
    response = accumulate(
        parse_body("converse", b'{"output":{"message":{"content":[{"text":"Hi"}]}}}')
    )
    assert (response.status, response.stop_reason, response.notices) == ("completed", "other", ())


def test_body_with_surrogates_has_valid_text() -> None:
    raw_body = (
        b'{"output":{"message":{"content":[{"text":"a\\ud83d"},{"text":"\\ude00b"}]}},'
        b'"stopReason":"end_turn"}'
    )
    assert accumulate(parse_body("converse", raw_body)).text == "a\ufffd\ufffdb"


@each_case(
    "raw_body, kind",
    [
        (b'{"message":"Too many requests, please wait"}', "rate_limited"),
        (b'{"message":"no"}', None),
        (b'{"Message":"no"}', None),
        (b"{}", "malformed"),
        (b"[]", "malformed"),
        (b"<html>", "malformed"),
        (b'{"output":3}', "malformed"),
        (b'{"output":{"message":{"content":3}}}', "malformed"),
    ],
)
def test_body_that_is_not_a_response_fails(raw_body: bytes, kind: str | None) -> None:
    last = parse_body("converse", raw_body)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind or (kind is None and last.error.message == "no")
