"""Chat Completions: ends of a stream, errors with status 200, usage, complete bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCall,
    Limits,
    OutputTextDelta,
    Passthrough,
    ResponseEvent,
    TokenCount,
    Usage,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.wires.chat import STOP_REASONS, contradictions, usage
from streamlib_parsers.wires.chat.machine import FAILURE_REASONS
from tests.support import wires
from tests.support.cases import each_case
from tests.support.chat_streams import (
    ARGS,
    FINISH,
    HI,
    MORE,
    STOP,
    TOTAL,
    Json,
    call,
    calls,
    choice,
    choices_chunk,
    chunk,
    delta_chunk,
    events_of,
    items_of,
    notice_codes,
    response_of,
    sse,
    usage_chunk,
)

# --- the end ---


@each_case("finish_reason, stop_reason", STOP_REASONS.items())
def test_x12_every_known_finish_reason(finish_reason: str, stop_reason: str) -> None:
    native = finish_reason.upper()
    # Without a call the reason would be repaired.
    content = HI
    if stop_reason == "tool_calls":
        content = calls(call(0, "f", ARGS, "x"))
    response = response_of(content, chunk({}, native))
    assert (response.stop_reason, response.native_stop_reason) == (stop_reason, native)


@pytest.mark.parametrize("finish_reason", ["weird", 7])
def test_x12_unknown_finish_reason_is_other_with_a_notice(finish_reason: Any) -> None:
    events = events_of(HI, chunk({}, finish_reason))
    assert (accumulate(events).stop_reason, accumulate(events).native_stop_reason) == (
        "other",
        str(finish_reason),
    )
    assert notice_codes(events) == ["unknown_finish_reason"]


def test_completed_waits_for_done_and_is_last() -> None:
    p = parser("chat")
    assert not p.complete
    events = p.feed(sse(HI, STOP, done=None))
    assert p.complete
    assert not p.ended
    events += p.feed(sse(usage_chunk(**TOTAL)))
    assert isinstance(events[-1], Completed)
    assert events[-1].usage == Usage(input_tokens=5, output_tokens=2, raw=TOTAL)
    assert p.feed(sse(HI)) + p.close() == []


@pytest.mark.parametrize(
    "sent",
    [[], [delta_chunk(role="assistant", content="")], [usage_chunk(**TOTAL)]],
    ids=["nothing", "a role", "usage"],
)
def test_done_before_any_content_is_truncated(sent: list[Json]) -> None:
    assert response_of(*sent).error.kind == "truncated"  # type: ignore[union-attr]


def test_done_is_truncated_when_body_event_has_no_choice() -> None:
    """`chat.completion` is the name that `body_frames` uses; a server may send it too."""
    stream = b"event: chat.completion\n" + sse({"id": "c1", "choices": []})
    assert accumulate(wires.events_of("chat", stream)).error.kind == "truncated"  # type: ignore[union-attr]


def test_done_inside_content_is_text() -> None:
    assert response_of(delta_chunk(content="[DONE]"), STOP).text == "[DONE]"


def test_truncated_call_is_never_callable_at_any_end() -> None:
    for end in ([STOP], [FINISH], [chunk({}, "length")], []):
        response = response_of(calls(call(0, "f", '{"a": "b', "x")), *end)
        assert response.calls == []
        assert response.items[0].status == "incomplete"


# --- errors with status 200 ---

ERRORS: list[tuple[Any, str]] = [
    (
        {
            "error": {
                "message": "slow down",
                "type": "rate_limit_error",
                "code": "rate_limit_exceeded",
            }
        },
        "rate_limited",
    ),
    (
        {
            "error": {"code": 502, "message": "upstream"},
            "choices": [choice(0, {"content": ""}, "error")],
            "provider": "P",
        },
        "server_error",
    ),
    (
        {"error": {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400}},
        "invalid_request",
    ),
    (
        {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400},
        "invalid_request",
    ),
    ({"error": {"message": "no", "type": "server_error"}, "status_code": 500}, "server_error"),
    ({"choices": [], "x_groq": {"error": "over capacity"}}, "overloaded"),
    ({"code": "invalid-argument", "error": "Incorrect API key provided"}, "authentication"),
    ({"detail": "insufficient credits"}, "quota_exhausted"),
    ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, "quota_exhausted"),
    ({"error": {"code": "1305", "message": "busy"}}, "rate_limited"),
    ({"error": "model_not_found: x"}, "not_found"),
    ([{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}], "invalid_request"),
    ({"message": "Too many requests"}, "rate_limited"),
    ({"success": False, "data": None, "message": "insufficient credits"}, "quota_exhausted"),
    (
        choices_chunk(
            choice(0, {}, "error") | {"error": {"code": 429, "message": "rate limited upstream"}}
        ),
        "rate_limited",
    ),
    (
        {
            "error": {
                "message": "The request exceeds the available context size",
                "type": "exceed_context_size_error",
                "n_ctx": 64,
            }
        },
        "context_window_exceeded",
    ),
]


@each_case("before", [[], [HI]])
@each_case("sent, kind", ERRORS)
def test_error_in_the_stream_fails_it_first_or_later(
    before: list[Json], sent: Any, kind: str
) -> None:
    events = events_of(*before, sent)
    assert isinstance(events[-1], Failed)
    assert "".join(event.delta for event in events if isinstance(event, OutputTextDelta)) == (
        "Hi" if before else ""
    )
    assert events[-1].error.kind == kind


def test_error_chunk_of_openrouter_is_rate_limited() -> None:
    sent = {
        "id": "c1",
        "provider": "P",
        "error": {"code": 429, "message": "x"},
        "choices": [choice(0, {"content": ""}, "error")],
    }
    for before in ([], [HI]):
        events = events_of(*before, sent)
        assert isinstance(events[-1], Failed)
        assert (events[-1].error.kind, events[-1].error.status, events[-1].error.retryable) == (
            "rate_limited",
            429,
            True,
        )


def test_retry_after_is_read_from_an_error_in_the_stream() -> None:
    error = {"error": {"code": 429, "message": "x", "metadata": {"headers": {"retry-after": "7"}}}}
    assert response_of(HI, error).error.retry_after == 7.0  # type: ignore[union-attr]


def test_event_named_error_fails_with_any_data() -> None:
    error_body = {
        "message": "m",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": "{}",
    }
    error = wires.error_of(
        "chat", sse(HI, done=None) + b"event: error\n" + sse({"error": error_body}, done=None)
    )
    assert (error.kind, error.code, error.detail["failed_generation"]) == (
        "invalid_request",
        "tool_use_failed",
        "{}",
    )
    assert (
        wires.error_of(
            "chat", sse(HI, done=None) + b"event: error\ndata: upstream connect error\n\n"
        ).kind
        == "server_error"
    )


def test_usage_beside_an_error_is_counted() -> None:
    events = events_of(HI, {"error": {"message": "x"}, "usage": TOTAL})
    assert any(isinstance(event, TokenCount) for event in events)


@each_case(
    "payload",
    [
        "1",
        "null",
        "[]",
        '"a"',
        "{",
        "Internal Server Error",
        '{"a":' + "[" * 100_000,
        '{"a":' + "9" * 5000 + "}",
    ],
)
def test_payload_that_is_not_a_chunk_is_malformed(payload: str) -> None:
    assert response_of(HI, payload).error.kind == "malformed"  # type: ignore[union-attr]


@pytest.mark.parametrize("index", [-1, "0", True, 1.5, 2**53 + 1, [], {}])
def test_value_that_is_not_an_index_is_malformed(index: Any) -> None:
    assert (
        response_of(HI, choices_chunk({"index": index, "delta": {"content": "a"}})).error.kind
        == "malformed"
    )  # type: ignore[union-attr]
    assert response_of(HI, calls(call(index, "f", "{}", "x"))).error.kind == "malformed"  # type: ignore[union-attr]


def test_named_events_pass_through_except_pings() -> None:
    named = b'event: ping\ndata: {}\n\nevent: stats\ndata: {"k": 1}\n\n'
    events = wires.events_of(
        "chat", sse(HI, {"type": "ping"}, {"type": "new", "k": 2}, done=None) + named + sse(STOP)
    )
    assert [(event.event, event.data) for event in events if isinstance(event, Passthrough)] == [
        ("new", {"type": "new", "k": 2}),
        ("stats", {"k": 1}),
    ]
    assert isinstance(events[-1], Completed)


def test_exceeded_limits_end_the_stream() -> None:
    limits = Limits(items=4, argument_bytes=8)
    over = {
        "argument_bytes": [calls(call(0, "f", "{", "x")), calls(call(0, None, "a" * 8))],
        "items": [calls(*(call(n, "f", "{}", f"x{n}") for n in range(5)))],
    }
    over["buffered arguments"] = [calls(call(0, None, "a" * 9))]
    over["nameless calls"] = [calls(*(call(n, None, "{}") for n in range(5)))]
    over["choices"] = [choices_chunk(*(choice(n, {}) for n in range(5)))]
    for name, sent in over.items():
        events = events_of(*sent, limits=limits)
        assert isinstance(events[-1], Failed), name
        assert events[-1].error.kind == "limit_exceeded", name


@pytest.mark.parametrize(
    "sent",
    [[call(0, None, '"' + "a" * 6 + '"')], [call(0, "f", "{", "x"), call(0, None, " " * 6 + "}")]],
    ids=["buffered", "emitted"],
)
def test_exactly_reached_limits_do_not_end_the_stream(sent: list[Json]) -> None:
    events = events_of(
        *(calls(entry) for entry in sent), FINISH, limits=Limits(items=1, argument_bytes=8)
    )
    assert isinstance(events[-1], Completed)


# --- usage ---


@each_case(
    "raw, expected",
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(input_tokens=3, output_tokens=4)),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(input_tokens=3, output_tokens=4)),
        ({"prompt_tokens_details": {"cached_tokens": 2}}, Usage(cache_read_input_tokens=2)),
        ({"prompt_token_details": {"cached_tokens": 2}}, Usage(cache_read_input_tokens=2)),
        ({"prompt_cache_hit_tokens": 2}, Usage(cache_read_input_tokens=2)),
        ({"cached_tokens": 2}, Usage(cache_read_input_tokens=2)),
        ({"num_cached_tokens": 2}, Usage(cache_read_input_tokens=2)),
        (
            {"cache_read_input_tokens": 2, "prompt_tokens_details": None},
            Usage(cache_read_input_tokens=2),
        ),
        ({"prompt_tokens_details": {"cache_write_tokens": 2}}, Usage(cache_write_input_tokens=2)),
        (
            {"prompt_tokens_details": {"cache_creation_input_tokens": 2}},
            Usage(cache_write_input_tokens=2),
        ),
        (
            {"cache_creation": {"ephemeral_1h_input_tokens": 2}},
            Usage(cache_write_1h_input_tokens=2),
        ),
        ({"reasoning_tokens": 2}, Usage(reasoning_output_tokens=2)),
        (
            {"prompt_tokens_details": {"text_tokens": 1, "audio_tokens": 2}},
            Usage(input_modalities={"text": 1, "audio": 2}),
        ),
        ({"completion_tokens_details": {"image_tokens": 2}}, Usage(output_modalities={"image": 2})),
    ],
)
def test_usage_is_read_under_every_name(raw: Json, expected: Usage) -> None:
    assert usage(raw).same_numbers(expected)


def test_usage_adds_reasoning_only_for_xai() -> None:
    reasoning_apart = {
        "prompt_tokens": 30,
        "completion_tokens": 5,
        "total_tokens": 45,
        "completion_tokens_details": {"reasoning_tokens": 10},
    }
    assert usage(reasoning_apart).output_tokens == 15
    assert usage({**reasoning_apart, "total_tokens": 35}).output_tokens == 5


@pytest.mark.parametrize(
    "raw",
    [
        {
            "prompt_tokens": 3,
            "completion_tokens": 5,
            "total_tokens": 8,
            "completion_tokens_details": {"reasoning_tokens": 9},
        },
        {"prompt_tokens": 3, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
        {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 99},
    ],
)
def test_contradicting_usage_is_reported_with_a_notice(raw: Json) -> None:
    assert len(list(contradictions(usage(raw)))) == 1
    assert not [
        *contradictions(usage({"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}))
    ]
    assert not [
        *contradictions(usage({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}))
    ]
    events = events_of(HI, {**STOP, "usage": raw})
    assert notice_codes(events) == ["inconsistent_usage"]
    assert accumulate(events).usage.output_tokens == 5  # type: ignore[union-attr]


def test_running_usage_is_replaced_and_emitted_on_change() -> None:
    events = events_of(
        {**HI, "usage": TOTAL}, {**HI, "usage": TOTAL}, {**STOP, "usage": MORE}, usage_chunk(**MORE)
    )
    assert [event.usage.output_tokens for event in events if isinstance(event, TokenCount)] == [
        2,
        9,
    ]


# --- complete bodies ---

MESSAGE = {
    "role": "assistant",
    "content": "Hi",
    "reasoning_content": "a",
    "refusal": None,
    "annotations": [],
    "tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": ARGS}}],
}
BODY = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}],
}


def body_events(body: Any, **options: Any) -> list[ResponseEvent]:
    return parse_body("chat", json.dumps(body).encode(), **options)


def test_body_emits_each_item_with_one_delta() -> None:
    events = body_events({**BODY, "usage": TOTAL})
    assert [type(event).__name__ for event in events] == [
        *(
            "Created",
            "OutputItemAdded",
            "ReasoningContentDelta",
            "OutputItemDone",
            "OutputItemAdded",
            "OutputTextDelta",
            "OutputItemDone",
        ),
        *(
            "OutputItemAdded",
            "FunctionCallArgumentsDelta",
            "TokenCount",
            "OutputItemDone",
            "Completed",
        ),
    ]
    assert [
        item.arguments for item in accumulate(events).items if isinstance(item, FunctionCall)
    ] == [ARGS]


def test_body_is_complete_without_reason_and_text() -> None:
    response = accumulate(
        body_events(
            {
                "id": "c1",
                "model": "m",
                "choices": [{"message": {"role": "assistant", "content": ""}}],
            }
        )
    )
    assert (response.status, response.stop_reason, response.items) == ("completed", "other", ())


@pytest.mark.parametrize(
    "chunk",
    [
        {"object": "chat.completion.chunk", "choices": [{"message": {"content": "Hel"}}]},
        {"choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}]},
        {"data": {"choices": [{"delta": {"content": "Hel"}}]}, "success": True},
    ],
)
def test_chunk_in_place_of_a_body_is_truncated(chunk: Any) -> None:
    response = accumulate(body_events(chunk))
    assert response.error is not None
    assert (response.error.kind, response.text) == ("truncated", "Hel")


def test_filtered_choice_of_a_body_needs_no_message() -> None:
    """A14: Azure leaves the message out; the verdict is metadata."""
    verdict = {"hate": {"filtered": True, "severity": "high"}}
    filtered = {"index": 0, "finish_reason": "content_filter", "content_filter_results": verdict}
    for sent in (filtered, {**filtered, "message": None}):
        response = accumulate(body_events({"id": "c1", "model": "m", "choices": [sent]}))
        assert (response.error, response.stop_reason, response.items) == (
            None,
            "content_filter",
            (),
        )
        assert response.metadata["content_filter_results"] == verdict


def test_body_message_outranks_an_empty_delta() -> None:
    body = {
        "choices": [
            {
                "message": {"content": "Hi"},
                "delta": {"role": "assistant", "content": ""},
                "finish_reason": "stop",
            }
        ]
    }
    assert accumulate(body_events(body)).text == "Hi"


def test_x25_x27_body_is_read_where_a_stream_was_requested() -> None:
    indented = b"\n\n" + json.dumps(BODY, indent=2).encode()
    assert wires.response_of("chat", indented).text == "Hi"
    assert (
        wires.response_of("chat", json.dumps({"data": BODY, "success": True}).encode()).text == "Hi"
    )
    assert (
        wires.error_of("chat", b'{"code":"x","error":"Incorrect API key provided"}').kind
        == "authentication"
    )


@each_case(
    "body",
    [
        {},
        [],
        1,
        {"choices": []},
        {"choices": None},
        {"choices": [1]},
        {"choices": [{"text": "a"}]},
        {"choices": [{"text": "a", "finish_reason": "stop"}]},
        {"id": "x"},
    ],
)
def test_body_that_is_not_a_completion_is_malformed(body: Any) -> None:
    last = body_events(body)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "malformed"


def test_error_body_is_classified_with_its_status() -> None:
    last = body_events({"error": {"message": "no", "code": "x"}}, status=401)[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.status) == ("authentication", 401)


def test_arguments_as_json_value_keep_the_providers_bytes() -> None:
    arguments = '{"b": 1.0,"a":1e2, "u":"\\u00e9"}'
    entry = f'{{"id":"x","function":{{"name":"f","arguments":{arguments}}}}}'
    messages = {
        "calls": f'{{"tool_calls":[{entry}]}}',
        "older": f'{{"function_call":{{"name":"f","arguments":{arguments}}}}}',
    }
    bodies = {
        name: f'{{"choices":[{{"message":{{}}}},{{"index":1,"message":{message}}}]}}'
        for name, message in messages.items()
    }
    bodies["wrapped"] = f'{{"data":{bodies["calls"]},"success":true}}'
    for name, body in bodies.items():
        response = accumulate(parse_body("chat", body.encode()))
        assert [
            item.arguments for item in response.choices[-1].items if isinstance(item, FunctionCall)
        ] == [arguments], name
    (item,) = items_of(f'{{"choices":[{{"delta":{{"tool_calls":[{entry}]}}}}]}}', FINISH)
    assert item.arguments == arguments


@each_case("reason", sorted(FAILURE_REASONS))
@each_case("done", ["[DONE]", None])
def test_failed_generation_fails_without_calls(reason: str, done: str | None) -> None:
    """A1: it completed with `other`, and its calls were callable."""
    body = sse(
        delta_chunk(content="Hi"),
        calls(call(0, "f", ARGS, "c")),
        chunk({}, reason.upper()),
        done=done,
    )
    response = accumulate(wires.events_of("chat", body))
    assert response.status == "failed"
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("generation_failed", reason.upper())
    assert response.error.retryable
    assert (response.text, response.calls) == ("Hi", [])
    assert response.items[-1].status == "incomplete"
    assert response.notices == ()


def test_done_without_a_finish_reason_is_an_inferred_end() -> None:
    """A18: it completed without a notice."""
    events = events_of(delta_chunk(content="Hi"))
    response = accumulate(events)
    assert (response.status, response.stop_reason) == ("completed", "other")
    assert notice_codes(events) == ["end_inferred"]
