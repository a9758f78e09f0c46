"""Gemini generateContent: ends, token counts, complete bodies, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib_parsers import (
    Completed,
    Failed,
    Passthrough,
    ResponseEvent,
    TokenCount,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.limits import Limits
from streamlib_parsers.wires.gemini import (
    BLOCK_NUMBERS,
    FAILURE_REASONS,
    FINISH_NUMBERS,
    FINISH_NUMBERS_VERTEX,
    STOP_REASONS,
    usage,
)
from streamlib_parsers.wires.gemini.machine import _END_OF_BODY
from tests.support.cases import each_case
from tests.support.gemini_streams import (
    BOOK,
    JsonObject,
    array,
    call,
    chunk,
    failure,
    items_of,
    notice_codes,
    partial_part,
    read,
    run,
    sse,
    text,
)

# --- ends ---


def test_every_known_finish_reason() -> None:
    for reason, stop_reason in STOP_REASONS.items():
        response = read(chunk(text("a"), finish=reason))
        assert (response.stop_reason, response.native_stop_reason) == (stop_reason, reason)


@pytest.mark.parametrize("form", ["sse", "array", "body"])
@pytest.mark.parametrize("finish", ["STOP", "MAX_TOKENS"])
def test_another_response_in_one_stream_is_not_read(form: str, finish: str) -> None:
    first = [chunk(text("a")), chunk(finish=finish), chunk(usageMetadata={"totalTokenCount": 1})]
    for other in (chunk(text("b")), chunk(text("b", thought=True), finish="STOP"), BOOK[0]):
        second = {**other, "responseId": "r2"}
        if form == "sse":
            events = run(sse(*first, second, second))
        elif form == "array":
            events = run(array(*first, second, second))
        else:
            events = parse_body("gemini", array(*first, second, second))
        response = accumulate(events)
        assert isinstance(events[-1], Completed)
        assert (response.response_id, response.text) == ("r1", "a")
        assert response.native_stop_reason == finish
        assert notice_codes(events) == ["second_response"]


def test_another_id_amid_a_response_continues_it() -> None:
    first = chunk(text("a"))
    response = read(first, {**chunk(text("b"), finish="STOP"), "responseId": "r2"})
    assert (response.text, response.response_id) == ("ab", "r1")


def test_continuation_is_not_an_end() -> None:
    token = {"candidates": [{"finishReason": "CONTINUATION", "continuationToken": "tok"}]}
    for stream in ([chunk(text("a")), token], [chunk(text("a"), finish="STOP"), token]):
        events = run(sse(*stream))
        assert failure(events) == "truncated"
        assert accumulate(events).metadata["continuationToken"] == "tok"
    assert read(chunk(text("a")), token, chunk(text("b"), finish="STOP")).status == "completed"


@pytest.mark.parametrize(
    ("mark", "names"),
    [
        ({}, FINISH_NUMBERS),
        ({"createTime": "2026"}, FINISH_NUMBERS_VERTEX),
        ({"createTime": [2026]}, FINISH_NUMBERS),  # no time, so no sign of Vertex
        ({"usageMetadata": {"trafficType": 1}}, FINISH_NUMBERS_VERTEX),
    ],
)
def test_integer_enums_become_their_names(mark: JsonObject, names: dict[int, str]) -> None:
    for number, name in names.items():
        if number:
            response = read(chunk(text("a"), finish=number), mark or {"responseId": "r"})
            if name in FAILURE_REASONS:
                assert response.error is not None
                assert response.error.code == name
                continue
            assert (response.native_stop_reason, response.stop_reason) == (
                name,
                STOP_REASONS.get(name, "other"),
            )
    assert read(chunk(text("a"), finish=99)).native_stop_reason == "99"


def test_integer_block_reasons_and_modalities_become_their_names() -> None:
    for number, name in BLOCK_NUMBERS.items():
        response = read({"promptFeedback": {"blockReason": number}})
        assert (response.stop_reason, response.native_stop_reason) == ("content_filter", name)
    details = [{"modality": number, "tokenCount": number} for number in range(1, 6)]
    assert usage({"promptTokensDetails": details}).input_modalities == {
        "text": 1,
        "image": 2,
        "video": 3,
        "audio": 4,
        "document": 5,
    }
    assert usage(
        {
            "promptTokensDetails": [
                {"modality": 4, "tokenCount": 2},
                {"modality": 77, "tokenCount": 1},
            ]
        }
    ).input_modalities == {
        "audio": 2,
        "77": 1,
    }


@pytest.mark.parametrize("unset", [0, "", None])
def test_unset_finish_reason_does_not_end_the_response(unset: Any) -> None:
    candidate = {
        "candidates": [{"content": {"parts": [text("a")]}, "finishReason": unset}],
        "promptFeedback": {"blockReason": unset},
    }
    assert failure(run(sse(candidate))) == "truncated"


def test_complete_is_true_before_the_end_of_input() -> None:
    stream = parser("gemini")
    stream.feed(sse(chunk(text("a"))))
    assert not stream.complete
    assert not any(isinstance(event, Completed) for event in stream.feed(sse(chunk(finish="STOP"))))
    assert (stream.complete, stream.ended) == (True, False)
    stream.feed(sse(chunk(text("b"))))
    assert isinstance(stream.close()[-1], Completed)


def test_done_of_a_gateway_is_ignored() -> None:
    events = run(sse(chunk(text("a"), finish="STOP")) + b"data: [DONE]\n\n")
    assert isinstance(events[-1], Completed)
    assert notice_codes(events) == []


# --- counts ---


@each_case(
    "raw, counts",
    [
        (
            {
                "promptTokenCount": 10,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 22,
            },
            (10, 12, None, 7),
        ),
        (
            {
                "promptTokenCount": 10,
                "candidatesTokenCount": 12,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 22,
            },
            (10, 12, None, 7),
        ),
        (
            {
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 3,
                "candidatesTokenCount": 5,
                "totalTokenCount": 18,
            },
            (13, 5, None, None),
        ),
        (
            {
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 3,
                "candidatesTokenCount": 12,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 25,
            },
            (13, 12, None, 7),
        ),
        (
            {"promptTokenCount": 10, "cachedContentTokenCount": 8, "candidatesTokenCount": 5},
            (10, 5, 8, None),
        ),
        ({"promptTokenCount": 10, "totalTokenCount": 10}, (10, None, None, None)),
        ({"promptTokenCount": 10, "thoughtsTokenCount": 7}, (10, 7, None, 7)),
        ({"trafficType": "ON_DEMAND"}, (None, None, None, None)),
        (
            {"promptTokenCount": "10", "candidatesTokenCount": 5.0, "thoughtsTokenCount": -1},
            (None, 5, None, None),
        ),
    ],
)
def test_usage_includes_reasoning_and_tool_input(
    raw: JsonObject, counts: tuple[int | None, ...]
) -> None:
    made = usage(raw)
    assert (
        made.input_tokens,
        made.output_tokens,
        made.cache_read_input_tokens,
        made.reasoning_output_tokens,
    ) == counts
    assert (made.cache_write_input_tokens, made.raw) == (None, raw)


def test_usage_by_modality() -> None:
    made = usage(
        {
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 5},
                {"modality": "IMAGE", "tokenCount": 258},
            ],
            "toolUsePromptTokensDetails": [{"modality": "TEXT", "tokenCount": 2}],
            "candidatesTokensDetails": [
                {"modality": "AUDIO", "tokenCount": 9},
                {"modality": "TEXT"},
                7,
            ],
            "cacheTokensDetails": {"modality": "TEXT"},
        }
    )
    assert usage(
        {"cacheTokensDetails": [{"modality": "VIDEO", "tokenCount": 3}]}
    ).cache_modalities == {"video": 3}
    assert (made.input_modalities, made.output_modalities, made.cache_modalities) == (
        {"text": 7, "image": 258},
        {"audio": 9},
        {},
    )


def counted(*reports: JsonObject) -> list[tuple[int | None, int | None]]:
    events = run(
        sse(*(chunk(text("a"), usageMetadata=report) for report in reports), chunk(finish="STOP"))
    )
    return [
        (event.usage.input_tokens, event.usage.output_tokens)
        for event in events
        if isinstance(event, TokenCount)
    ]


def test_usage_is_a_snapshot_emitted_on_change() -> None:
    first, second = (
        {"promptTokenCount": 4, "totalTokenCount": 4},
        {"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6},
    )
    assert counted(first, first, second, second, {}) == [(4, None), (4, 2)]


def test_usage_keeps_counts_missing_from_a_later_report() -> None:
    assert counted(
        {"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6},
        {"promptTokenCount": 4, "totalTokenCount": 4},
    ) == [(4, 2)]


def test_usage_drops_a_count_missing_from_a_grown_total() -> None:
    reports = [
        {
            "promptTokenCount": 9,
            "candidatesTokenCount": 21,
            "thoughtsTokenCount": 35,
            "totalTokenCount": 65,
        }
    ]
    reports += [{"promptTokenCount": 87, "thoughtsTokenCount": 78, "totalTokenCount": 165}]
    assert counted(*reports) == [(9, 56), (87, 78)]


@pytest.mark.parametrize("counts", [b"[]", b"7", b'"x"'])
def test_usage_of_another_shape_passes_through(counts: bytes) -> None:
    usual = (
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":'
        + counts
        + b"}\n\n"
    )
    events = run(
        usual + usual.replace(b'"text":"a"', b'"text":"b","x":1') + sse(chunk(finish="STOP"))
    )
    assert accumulate(events).text == "ab"
    assert [event.data for event in events if isinstance(event, Passthrough)] == [
        json.loads(counts)
    ] * 2
    assert isinstance(events[-1], Completed)


# --- complete bodies ---

RESPONSE = chunk(
    text("Hm", thought=True),
    text("Hi"),
    call("f", {"a": 1}, id="c"),
    finish="STOP",
    usageMetadata={"promptTokenCount": 3},
)


def test_body_emits_the_events_of_the_equal_stream() -> None:
    assert parse_body("gemini", json.dumps(RESPONSE).encode()) == run(sse(RESPONSE))
    assert parse_body("gemini", array(RESPONSE, chunk(text("!")))) == run(
        array(RESPONSE, chunk(text("!")))
    )


def test_sse_and_array_of_the_same_chunks_emit_equal_events() -> None:
    for chunks in (
        [*BOOK, chunk(finish="STOP")],
        [RESPONSE],
        [chunk(text("a")), chunk(text("b"), finish="STOP")],
    ):
        plain = (
            b"["
            + b",\n".join(json.dumps(item, ensure_ascii=False).encode() for item in chunks)
            + b"]"
        )
        assert run(plain) == run(sse(*chunks)) == run(sse(*chunks, end=b"\n\n"))


def test_body_is_complete_without_reason_but_not_continuation() -> None:
    def end(body: JsonObject) -> ResponseEvent:
        return parse_body("gemini", json.dumps(body).encode())[-1]

    completed = end(chunk(text("Hi")))
    assert isinstance(completed, Completed)
    assert (completed.stop_reason, completed.native_stop_reason) == ("other", None)
    failed = end(chunk(text("Hi"), finish="CONTINUATION"))
    assert isinstance(failed, Failed)
    assert failed.error.detail == {"finish_reasons": ["CONTINUATION"]}
    assert isinstance(parse_body("gemini", array(chunk(text("Hi"))))[-1], Failed)


def test_stream_cannot_send_the_end_of_body() -> None:
    stream = parser("gemini")
    stream.feed_event(json.dumps(chunk(text("Hi"))))
    assert _END_OF_BODY == "end of body"
    stream.feed_event(b"", event=" ".join(["end", "of", "body"]))  # equal, but not identical
    assert not stream.complete


@each_case(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"[1]",
        b"null",
        b'"x"',
        b'{"name":"cachedContents/x","usageMetadata":{}}',
        b"<html>",
    ],
)
def test_body_of_another_kind_is_malformed(body: bytes) -> None:
    assert failure(parse_body("gemini", body)) == "malformed"


@each_case(
    "payload",
    [
        b"null",
        b"1",
        b'"x"',
        b"[1]",
        b"{",
        b'{"candidates":{}}',
        b'{"candidates":[1]}',
        b'{"candidates":[{"content":[]}]}',
        b'{"candidates":[{"content":{"parts":{}}}]}',
        b'{"candidates":[{"content":{"parts":[{"text":1}]}}]}',
        b'{"candidates":[{"finishReason":[]}]}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":"f"}]}}]}',
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"candidates":[{"content":{"parts":[{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}}]}",
        b'{"promptFeedback":1}',
    ],
)
def test_malformed_chunk_keeps_the_partial_response(payload: bytes) -> None:
    events = run(sse(chunk(text("Hi"))) + b"data: " + payload + b"\n\n")
    assert failure(events) == "malformed"
    assert accumulate(events).text == "Hi"


def test_exceeded_limits_end_the_stream() -> None:
    assert (
        failure(
            run(
                sse(chunk(call("f", {"a": "x" * 100})), chunk(finish="STOP")),
                limits=Limits(argument_bytes=50),
            )
        )
        == "limit_exceeded"
    )
    assert (
        failure(run(sse(*[chunk({"hologram": 1})] * 5), limits=Limits(items=4))) == "limit_exceeded"
    )
    streamed = [
        chunk(call("f", willContinue=True)),
        *[chunk(partial_part("$.a", stringValue="x" * 20, willContinue=True))] * 5,
    ]
    assert failure(run(sse(*streamed), limits=Limits(argument_bytes=50))) == "limit_exceeded"


def test_tool_names_are_mapped_back_to_the_callers() -> None:
    (only,) = items_of(call("f_", {}), names={"f_": "f"})
    assert only.name == "f"
