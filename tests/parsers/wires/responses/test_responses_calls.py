"""OpenAI Responses: calls and the envelope (metadata, usage, rate limits).

A case number in a docstring is that of the project's list of cases that broke other libraries.
"""

from __future__ import annotations

import pytest

from streamlib_parsers import (
    Completed,
    Created,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Limits,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    RateLimits,
    ResponseMetadata,
    Usage,
    accumulate,
)
from streamlib_parsers.wires.responses import usage
from tests.support.responses_frames import (
    Json,
    added,
    arguments,
    call,
    completed,
    created,
    done,
    events_of,
    failure,
    frame,
    message,
    of,
    response_of,
)

# --- calls ---


def test_two_calls_keep_their_own_arguments() -> None:
    """Case 1."""
    first, second = (
        call(item_id="a", call_id="c1", name="f"),
        call(item_id="b", call_id="c2", name="g"),
    )
    stream = [added(message()), done(message("x")), added(first, 1), added(second, 2)]
    stream += [arguments('{"a":', 1), arguments('{"b":', 2), arguments("1}", 1), arguments("2}", 2)]
    stream += [
        done({**first, "arguments": '{"a":1}'}, 1),
        done({**second, "arguments": '{"b":2}'}, 2),
        completed(),
    ]
    events = events_of(*stream)
    assert [(event.index, event.delta) for event in of(FunctionCallArgumentsDelta, events)] == [
        (1, '{"a":'),
        (2, '{"b":'),
        (1, "1}"),
        (2, "2}"),
    ]
    assert [(c.name, c.arguments) for c in accumulate(events).calls] == [
        ("f", '{"a":1}'),
        ("g", '{"b":2}'),
    ]  # type: ignore[union-attr]


def test_calls_with_equal_index_are_distinguished_by_id() -> None:
    """Case 1: a bridge sends index 0 with every call; its ids are right."""
    first, second = (
        call(item_id="a", call_id="c1", name="f"),
        call(item_id="b", call_id="c2", name="g"),
    )
    stream = [
        added(first),
        added(second),
        arguments('{"a":1}', item_id="a"),
        arguments('{"b":2}', item_id="b"),
    ]
    stream += [
        done({**first, "arguments": '{"a":1}'}),
        done({**second, "arguments": '{"b":2}'}),
        completed(),
    ]
    events = events_of(*stream)
    assert [(event.index, event.delta) for event in of(FunctionCallArgumentsDelta, events)] == [
        (0, '{"a":1}'),
        (1, '{"b":2}'),
    ]
    assert [c.call_id for c in accumulate(events).calls] == ["c1", "c2"]


def test_call_without_arguments_keeps_empty_text() -> None:
    """Case 6."""
    (only,) = response_of(added(call()), done(call()), completed()).calls
    assert isinstance(only, FunctionCall)
    assert (only.arguments, only.parsed()) == ("", {})


def test_call_with_truncated_arguments_is_never_callable() -> None:
    """Case 10."""
    truncated = call('{"city":"Par', status="incomplete")
    stream = [
        added(call()),
        arguments('{"city":"Par'),
        done(truncated),
        completed(truncated, kind="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    ]
    response = response_of(*stream)
    assert (response.calls, response.stop_reason, response.items[0].status) == (
        [],
        "length",
        "incomplete",
    )
    claimed = response_of(
        added(call()), arguments('{"city":"Par'), done(call('{"city":"Par')), completed()
    )
    assert (claimed.calls, [notice.code for notice in claimed.notices]) == (
        [],
        ["invalid_arguments"],
    )


def test_call_truncated_before_done_is_incomplete() -> None:
    response = response_of(created(), added(call()), arguments('{"a":1}'))
    assert (response.status, response.calls, response.items[0].status) == (
        "failed",
        [],
        "incomplete",
    )


def test_call_named_only_in_done_opens_there() -> None:
    events = events_of(
        created(), added(call(name="")), arguments("{}"), done(call("{}")), completed()
    )
    assert [type(event) for event in events] == [
        *(
            Created,
            Passthrough,
            OutputItemAdded,
            FunctionCallArgumentsDelta,
            OutputItemDone,
            Completed,
        ),
    ]
    assert of(OutputItemAdded, events)[0].item.name == "f"


def test_arguments_of_an_unnamed_call_reach_no_other_call() -> None:
    unnamed = frame("response.output_item.added", item=call(name="", item_id="b"))
    other = frame("response.function_call_arguments.delta", item_id="b", delta='{"b":1}')
    events = events_of(frame("response.output_item.added", item=call(item_id="a")), unnamed, other)
    assert not of(FunctionCallArgumentsDelta, events)


def test_nameless_call_is_incomplete_with_a_notice() -> None:
    events = events_of(done(call("{}", name="")), completed())
    assert [event.code for event in of(Notice, events)] == ["nameless_call"]
    assert accumulate(events).calls == []
    assert accumulate(events).stop_reason == "stop"


def test_call_without_an_id_gets_one_stable_id() -> None:
    sent = call("{}", call_id="")
    events = events_of(added(sent), done(sent), completed(), call_id=lambda n: f"mine_{n}")
    assert [
        event.item.call_id for event in [*of(OutputItemAdded, events), *of(OutputItemDone, events)]
    ] == ["mine_0", "mine_0"]


def test_mapped_tool_names_become_the_callers_again() -> None:
    events = events_of(
        added(call(name="srv__f")),
        done(call("{}", name="srv__f")),
        completed(),
        names={"srv__f": "srv.f"},
    )
    assert [c.name for c in accumulate(events).calls] == ["srv.f"]


def test_arguments_of_a_call_are_limited() -> None:
    events = events_of(
        added(call()), *[arguments("x" * 50) for _ in range(5)], limits=Limits(argument_bytes=120)
    )
    assert (failure(events).kind, failure(events).code) == ("limit_exceeded", "argument_bytes")


# --- the envelope ---


def test_metadata_is_emitted_only_when_filled_and_changed() -> None:
    echo = {
        "service_tier": "auto",
        "tools": [],
        "instructions": None,
        "temperature": 0,
        "store": False,
        "metadata": {},
    }
    tier = {**echo, "service_tier": "default", "incomplete_details": None}
    events = events_of(
        created(**echo), frame("response.in_progress", response=echo), completed(**tier)
    )
    assert [event.values for event in of(ResponseMetadata, events)] == [
        {"service_tier": "auto", "temperature": 0, "store": False},
        {"service_tier": "default"},
    ]


def test_metadata_key_that_becomes_empty_is_emitted_once() -> None:
    events = events_of(
        created(user="u"),
        frame("response.in_progress", response={"user": None}),
        completed(user=None),
    )
    assert [event.values for event in of(ResponseMetadata, events)] == [
        {"user": "u"},
        {"user": None},
    ]


@pytest.mark.parametrize(
    ("sent", "values"),
    [
        ({"metadata": {"turn": 1}}, {"turn": 1}),
        ({"headers": {"a": "b"}}, {"headers": {"a": "b"}}),
        ({"metadata": 1, "headers": {"a": "b"}}, {"headers": {"a": "b"}}),
    ],
)
def test_metadata_event_may_lack_metadata_or_headers(sent: Json, values: Json) -> None:
    events = events_of(created(), frame("response.metadata", **sent), completed())
    assert [event.values for event in of(ResponseMetadata, events)] == [values]


def test_usage_is_already_inclusive() -> None:
    raw = {
        "input_tokens": 328,
        "input_tokens_details": {
            "cached_tokens": 256,
            "cache_write_tokens": 8,
            "text_tokens": 320,
            "image_tokens": 8,
        },
        "output_tokens": 52,
        "output_tokens_details": {"reasoning_tokens": 20, "text_tokens": 52},
        "total_tokens": 380,
    }
    assert usage(raw) == Usage(
        328,
        52,
        256,
        8,
        20,
        input_modalities={"text": 320, "image": 8},
        output_modalities={"text": 52},
        raw=raw,
    )


@pytest.mark.parametrize("raw", [None, {}, {"input_tokens_details": None, "output_tokens": "many"}])
def test_missing_usage_is_none(raw: Json | None) -> None:
    counts = response_of(completed(usage=raw)).usage
    assert counts is None or (
        counts.input_tokens,
        counts.output_tokens,
        counts.reasoning_output_tokens,
    ) == (None, None, None)


def test_rate_limits_are_read_in_band() -> None:
    sent = frame(
        "codex.rate_limits", rate_limits={"primary": {"used_percent": 12.5, "reset_at": 1800000000}}
    )
    (limits,) = of(RateLimits, events_of(sent, completed()))
    assert limits.windows["codex-primary"].remaining == 87.5
