"""Ollama's native wire, line by line: increments, complete calls, one last line."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    Completed,
    Created,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Image,
    MediaDelta,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ReasoningContentDelta,
    ResponseEvent,
    ResponseMetadata,
    Text,
    TokenCount,
    Usage,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.wires.ollama import (
    IMAGE_TYPES,
    STOP_REASONS,
    TYPED_KEYS,
    USAGE_KEYS,
    usage,
)
from streamlib_parsers.wires.ollama.lines import ChatLine, LineMessage
from tests.support import wires
from tests.support.cases import each_case
from tests.support.partitions import byte_by_byte, every_single_split, partitions
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

Json = dict[str, Any]
DURATIONS = {
    "total_duration": 5645304708,
    "load_duration": 55095250,
    "prompt_eval_duration": 710671250,
    "eval_duration": 4466025455,
}


def line(*, done: bool = False, **message: Any) -> bytes:
    return raw_line(
        {
            "model": "qwen3:4b",
            "created_at": "t",
            "message": {"role": "assistant", "content": "", **message},
            "done": done,
        }
    )


def raw_line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def last(reason: str | None = "stop", **values: Any) -> bytes:
    message = {"role": "assistant", "content": ""}
    counts = {"prompt_eval_count": 307, "eval_count": 308}
    return raw_line(
        {
            "model": "qwen3:4b",
            "created_at": "u",
            "message": message,
            "done": True,
            "done_reason": reason,
            **counts,
            **DURATIONS,
            **values,
        }
    )


def call(name: str | None = "f", arguments: Any = None, **values: Any) -> Json:
    return {
        "function": {"name": name, "arguments": {} if arguments is None else arguments},
        **values,
    }


def events_of(*chunks: bytes, **options: Any) -> list[ResponseEvent]:
    return wires.events_of("ollama", *chunks, **options)


def items_of(*lines: bytes, end: bytes | None = None) -> list[Any]:
    response = wires.response_of("ollama", *lines, last() if end is None else end)
    assert response.error is None
    return [msgspec.structs.replace(item, origin=None) for item in response.items]


def codes(events: list[ResponseEvent]) -> list[str]:
    return [event.code for event in events if hasattr(event, "code")]


LAST = last()


def test_stream_becomes_events_in_order() -> None:
    sent = (
        line(thinking="Hm")
        + line(thinking=".")
        + line(content="Hel")
        + line(content="lo")
        + line(tool_calls=[call("f", {"x": 1})])
        + LAST
    )
    events = events_of(sent)
    origin = events[1].item.origin  # type: ignore[union-attr]
    counted = Usage(
        input_tokens=307, output_tokens=308, raw={"prompt_eval_count": 307, "eval_count": 308}
    )
    assert events == [
        Created(None, "qwen3:4b"),
        OutputItemAdded(0, Reasoning(status="incomplete", origin=origin)),
        ReasoningContentDelta(0, 0, "Hm"),
        ReasoningContentDelta(0, 0, "."),
        OutputItemDone(0, Reasoning(content="Hm.", origin=origin)),
        OutputItemAdded(1, Message("assistant", status="incomplete", origin=origin)),
        OutputTextDelta(1, 0, "Hel"),
        OutputTextDelta(1, 0, "lo"),
        OutputItemDone(1, Message("assistant", (Text("Hello"),), origin=origin)),
        OutputItemAdded(2, FunctionCall("call_0", "f", status="incomplete", origin=origin)),
        FunctionCallArgumentsDelta(2, '{"x": 1}'),
        ResponseMetadata({"created_at": "u", **DURATIONS}),
        TokenCount(counted),
        OutputItemDone(2, FunctionCall("call_0", "f", '{"x": 1}', origin=origin)),
        Completed(
            None,
            "qwen3:4b",
            "tool_calls",
            "stop",
            usage=counted,
            choices=((0, "tool_calls", "stop"),),  # type: ignore[arg-type]
        ),
    ]


def test_completed_is_emitted_at_once_and_ends_the_stream() -> None:
    p = parser("ollama")
    p.feed(line(content="Hi"))
    assert not p.complete
    assert isinstance(p.feed(LAST + line(content="more"))[-1], Completed)
    assert p.complete
    assert p.feed(line(content="more")) + p.close() == []


def test_last_line_may_lack_its_line_feed() -> None:
    events = events_of(line(content="Hi"), LAST.rstrip())
    assert isinstance(events[-1], Completed)
    assert codes(events) == []


# --- items ---


def test_change_of_kind_opens_another_item() -> None:
    sent = [line(thinking="a"), line(content="b"), line(thinking="c"), line(content="d")]
    assert [type(item).__name__ + item.text for item in items_of(*sent)] == [
        "Reasoninga",
        "Messageb",
        "Reasoningc",
        "Messaged",
    ]


def test_one_line_emits_reasoning_then_text_then_calls() -> None:
    items = items_of(line(tool_calls=[call("f")], content="b", thinking="a"))
    assert [type(item) for item in items] == [Reasoning, Message, FunctionCall]


def test_text_after_a_call_is_a_new_item() -> None:
    items = items_of(line(content="a"), line(tool_calls=[call("f")]), line(content="b"))
    assert [getattr(item, "text", "call") for item in items] == ["a", "call", "b"]


def test_calls_stay_open_to_the_end() -> None:
    events = events_of(
        line(tool_calls=[call("f")]), line(content="a"), line(tool_calls=[call("g")]), LAST
    )
    done = [event.index for event in events if isinstance(event, OutputItemDone)]
    assert done == [1, 0, 2]


def test_parallel_calls_with_equal_index_are_two_calls() -> None:
    same = [call("f", {"a": 1}, id="call_x"), call("g", {"b": 2}, id="call_y")]
    for each in same:
        each["function"]["index"] = 0
    items = items_of(line(tool_calls=same))
    assert [(item.call_id, item.name, item.arguments, item.native) for item in items] == [
        ("call_x", "f", '{"a": 1}', None),
        ("call_y", "g", '{"b": 2}', None),
    ]


def test_arguments_keep_their_own_bytes() -> None:
    sent = b'{"b": 1.0,"a":1e2, "u":"\\u00e9"}'
    function = b'{"name":"f","arguments":%s}' % sent
    chunk = b'{"message":{"tool_calls":[{"function":%s}]},"done":false}\n' % function
    assert items_of(chunk)[0].arguments == sent.decode()


@pytest.mark.parametrize(
    ("sent", "text"), [({}, "{}"), (None, "{}"), ('{"a": 1}', '{"a": 1}'), ("", "")]
)
def test_arguments_may_be_empty_or_text(sent: Any, text: str) -> None:
    (item,) = items_of(line(tool_calls=[call("f", sent)]))
    assert (item.arguments, item.status) == (text, "completed")


@pytest.mark.parametrize("function", [{"name": "f"}, {"name": "f", "arguments": None}])
def test_arguments_may_be_missing(function: Json) -> None:
    (item,) = items_of(line(tool_calls=[{"function": function}]))
    assert (item.arguments, item.parsed()) == ("", {})


def test_broken_argument_text_makes_the_call_incomplete() -> None:
    response = wires.response_of("ollama", line(tool_calls=[call("f", '{"a":')]), LAST)
    assert (response.calls, response.stop_reason) == ([], "stop")


def test_calls_without_an_id_use_the_call_id_option() -> None:
    events = events_of(
        line(tool_calls=[call("f"), call("g", id=""), call("h", id="own")]),
        LAST,
        call_id=lambda n: f"mine_{n}",
    )
    assert [each.call_id for each in accumulate(events).calls] == ["mine_0", "mine_1", "own"]


@pytest.mark.parametrize("name", [None, ""])
def test_nameless_call_is_never_callable(name: str | None) -> None:
    events = events_of(line(tool_calls=[call(name)]), LAST)
    assert accumulate(events).calls == []
    assert codes(events) == ["nameless_call"]


def test_unknown_keys_of_a_call_are_native() -> None:
    sent = call("f", type="function", novel=1)
    sent["function"] |= {"index": 0, "strict": True}
    assert items_of(line(tool_calls=[sent]))[0].native == {"novel": 1, "function": {"strict": True}}


@pytest.mark.parametrize(("beginning", "media_type"), [*IMAGE_TYPES.items(), ("AAAA", "image/*")])
def test_images_are_separate_messages(beginning: str, media_type: str) -> None:
    data = beginning.ljust(8, "A")
    events = events_of(line(content="a", images=[data]), line(content="b"), LAST)
    assert MediaDelta(1, 0, media_type, data) in events
    content = [item.content for item in accumulate(events).items if isinstance(item, Message)]
    assert content == [(Text("a"),), (Image(data=data, media_type=media_type),), (Text("b"),)]
    assert {item.status for item in accumulate(events).items} == {"completed"}


def test_logprobs_belong_to_the_text_of_their_line() -> None:
    probable = [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105]}]
    sent = raw_line({"message": {"content": "Hi"}, "logprobs": probable, "done": False})
    reasoning = raw_line({"message": {"thinking": "Hm"}, "logprobs": probable, "done": False})
    events = events_of(reasoning, sent, LAST)
    assert ReasoningContentDelta(0, 0, "Hm", probable) in events
    assert OutputTextDelta(1, 0, "Hi", probable) in events


def test_generate_lines_are_read_like_chat_lines() -> None:
    lines = [{"thinking": "Hm", "response": "", "done": False}, {"response": "Hi", "done": False}]
    end = raw_line(
        {"response": "", "done": True, "done_reason": "stop", "context": [1, 2], "eval_count": 2}
    )
    response = wires.response_of("ollama", *map(raw_line, lines), end)
    assert (response.reasoning, response.text, response.metadata) == (
        "Hm",
        "Hi",
        {"context": [1, 2]},
    )


def test_reasoning_content_is_read_as_reasoning() -> None:
    assert [item.text for item in items_of(line(reasoning_content="Hm"))] == ["Hm"]


# --- the end ---


@each_case(
    "reason, called, stop_reason",
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("length", False, "length"),
        ("length", True, "length"),
        ("load", False, "other"),
        ("unload", False, "other"),
        ("new_reason", True, "other"),
        (None, False, "other"),
        (None, True, "tool_calls"),
    ],
)
def test_stop_reason_depends_on_done_reason_and_calls(
    reason: str | None, called: bool, stop_reason: str
) -> None:
    sent = line(tool_calls=[call("f")]) if called else line(content="Hi")
    response = wires.response_of("ollama", sent, last(reason))
    assert (response.stop_reason, response.native_stop_reason) == (stop_reason, reason)


def test_missing_counts_are_unknown() -> None:
    assert usage({"eval_count": 5}) == Usage(output_tokens=5, raw={"eval_count": 5})
    events = events_of(raw_line({"message": {"content": "Hi"}, "done": True}))
    assert not any(isinstance(event, TokenCount) for event in events)


def test_other_keys_of_the_last_line_are_metadata() -> None:
    assert (
        wires.response_of("ollama", line(content="Hi"), last(remote_model="m")).metadata[
            "remote_model"
        ]
        == "m"
    )


@pytest.mark.parametrize(
    "sent", [line(), line(content="Hi"), line(content="Hi") * 2, line(tool_calls=[call("f")])]
)
def test_end_before_done_is_truncated(sent: bytes) -> None:
    assert wires.error_of("ollama", sent).kind == "truncated"


def test_every_prefix_is_truncated_without_callable_call() -> None:
    body = line(content="Hi") + line(tool_calls=[call("f", {"x": 1})]) + LAST
    for offset in range(1, len(body) - 1):
        response = wires.response_of("ollama", body[:offset])
        assert response.error is not None
        assert response.error.kind == "truncated"
        assert response.calls == []


def test_empty_body_is_malformed() -> None:
    assert wires.error_of("ollama", b"\n \n").kind == "malformed"


# --- errors and lines of another kind ---


@pytest.mark.parametrize("before", [b"", line(content="Hi")], ids=["first", "later"])
def test_error_line_fails_and_keeps_the_items_before_it(before: bytes) -> None:
    events = events_of(before, raw_line({"error": "model 'nope' not found"}))
    assert isinstance(events[-1], Failed)
    assert events[-1].error.message == "model 'nope' not found"
    assert accumulate(events).text == ("Hi" if before else "")


def test_error_may_be_an_object() -> None:
    assert (
        wires.error_of("ollama", raw_line({"error": {"message": "slow down", "code": 429}})).kind
        == "rate_limited"
    )


def test_line_of_another_kind_is_passed_through() -> None:
    events = events_of(raw_line({"status": "pulling manifest"}), line(content="Hi"), LAST)
    assert Passthrough("line", {"status": "pulling manifest"}) in events
    assert accumulate(events).text == "Hi"


@each_case(
    "sent",
    [
        b"[]\n",
        b"7\n",
        b"{nope}\n",
        b"<html>\n",
        b'{"message":7,"done":false}\n',
        b'{"message":{"content":7},"done":false}\n',
        b'{"message":{"tool_calls":[{"function":7}]},"done":false}\n',
        b'{"message":{"tool_calls":7},"done":false}\n',
        b'{"message":{},"done":"yes"}\n',
    ],
)
def test_foreign_lines_are_malformed(sent: bytes) -> None:
    assert wires.error_of("ollama", line(content="Hi"), sent, LAST).kind == "malformed"


@pytest.mark.parametrize("depth", [200, 480, 960, 5000])
def test_deep_nesting_fails_without_exception(depth: int) -> None:
    for inner in ("1", '"\\ud83d"'):
        nested = "[" * depth + inner + "]" * depth
        function = f'{{"name":"f","arguments":{{}},"x":{nested}}}'
        for sent in (
            f'{{"x":{nested}}}',
            f'{{"message":{{"tool_calls":[{{"function":{function}}}]}}}}',
        ):
            assert isinstance(events_of(sent.encode() + b"\n")[-1], Failed)


# --- text ---


def test_split_surrogate_pair_is_joined() -> None:
    sent = [
        b'{"message":{"content":"%s"},"done":false}\n' % half for half in (b"\\ud83d", b"\\ude00")
    ]
    assert [item.text for item in items_of(*sent)] == ["😀"]


def test_lone_surrogate_becomes_valid_text() -> None:
    assert [
        item.text for item in items_of(b'{"message":{"content":"a\\ud83d"},"done":false}\n')
    ] == ["a\ufffd"]


# --- bodies ---


def test_body_emits_one_delta_per_part() -> None:
    message = {
        "role": "assistant",
        "thinking": "Hm",
        "content": "Hi",
        "tool_calls": [call("f", {"x": 1.0})],
    }
    events = parse_body(
        "ollama",
        json.dumps(
            {"model": "m", "message": message, "done": True, "done_reason": "stop"}
        ).encode(),
    )
    assert [event.delta for event in events if hasattr(event, "delta")] == [
        "Hm",
        "Hi",
        '{"x": 1.0}',
    ]
    assert accumulate(events).stop_reason == "tool_calls"


@pytest.mark.parametrize("sent", [b"{}", b"[]", b"nope", b'{"choices":[]}'])
def test_body_of_another_wire_is_malformed(sent: bytes) -> None:
    end = parse_body("ollama", sent)[-1]
    assert isinstance(end, Failed)
    assert end.error.kind == "malformed"


def test_error_body_is_classified_by_its_message() -> None:
    end = parse_body("ollama", b'{"error":"model \'nope\' not found"}', status=404)[-1]
    assert isinstance(end, Failed)
    assert end.error.kind == "not_found"


def test_body_without_done_is_truncated() -> None:
    end = parse_body("ollama", b'{"message":{"content":"Hi"},"done":false}')[-1]
    assert isinstance(end, Failed)
    assert end.error.kind == "truncated"


# --- any partition ---

MIXED = (
    line(thinking="Hm")
    + line(content="Hel")
    + b"\r\n"
    + line(content="lo ☕")
    + line(tool_calls=[call("f", {"a": [1.0]}), call("g")])
    + raw_line({"status": "x"})
    + LAST
)


@given(partitions(MIXED))
def test_events_do_not_depend_on_partition(chunks: list[bytes]) -> None:
    assert events_of(*chunks) == events_of(MIXED)


def test_events_do_not_depend_on_any_single_split() -> None:
    expected = events_of(MIXED)
    assert events_of(*byte_by_byte(MIXED)) == expected
    assert all(events_of(*chunks) == expected for chunks in every_single_split(MIXED))


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    *ChatLine.__struct_fields__,
                    *LineMessage.__struct_fields__,
                    "function",
                    "name",
                    "arguments",
                    "id",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.lists(VALUE, max_size=6))
def test_random_lines_end_in_exactly_one_terminal_event(values: list[Any]) -> None:
    events = events_of(b"".join(map(raw_line, values)))
    assert [event for event in events if isinstance(event, (Completed, Failed))] == events[-1:]
    accumulate(events)


# --- the page ---


def test_page_agrees_with_the_code() -> None:
    lines = set(wires.documented("ollama", "Lines"))
    assert lines == TYPED_KEYS
    assert lines >= set(ChatLine.__struct_fields__) - {"error"} | set(USAGE_KEYS)
    assert set(wires.documented("ollama", "Messages")) == set(LineMessage.__struct_fields__)
    assert {
        reason: row[0][0] for reason, row in wires.documented("ollama", "Stop reasons").items()
    } == STOP_REASONS


# --- recordings ---


@each_recording("ollama-native", (*STREAMS, *BODIES))
def test_recordings_agree_with_expected_facts(recording: Recording) -> None:
    # One chat completion lies in this wire's folder.
    if b'"chat.completion"' in recording.body:
        return
    assert wires.disagreements(recording, STOP_REASONS) == []
