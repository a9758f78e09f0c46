"""Chat requests: reasoning in each provider's form, sent back and requested."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    Message,
    Opaque,
    Origin,
    Reasoning,
    ReasoningOptions,
    Text,
    user,
)
from streamlib.providers.models import Traits
from streamlib.providers.shapes import (
    EFFORT,
    ENABLE_THINKING,
    GOOGLE,
    REASONING_ENABLED,
    REASONING_OBJECT,
    TEMPLATE_ENABLE_THINKING,
    TEMPLATE_THINKING,
    THINKING_TYPE,
    ChatShape,
    Thinking,
)
from tests.support.cases import each_case
from tests.support.chat_builds import (
    CALL,
    OPENROUTER,
    OTHER,
    REASONING,
    TEXT,
    body,
    built,
    changes,
    sent,
)

# --- reasoning ---


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "reasoning_text"])
def test_c6_reasoning_is_sent_under_the_providers_key(key: str) -> None:
    assert sent(user("x"), REASONING, TEXT, user("y"), shape=ChatShape(reasoning_echo=(key,)))[
        1
    ] == {
        "role": "assistant",
        "content": "so",
        key: "hm",
    }


def test_c6_reasoning_is_sent_in_tags_or_parts() -> None:
    tags = sent(
        user("x"), REASONING, TEXT, user("y"), shape=ChatShape(reasoning_echo=("think_tags",))
    )[1]
    assert tags == {"role": "assistant", "content": "<think>\nhm\n</think>\n\nso"}
    signed = msgspec.structs.replace(REASONING, signature="Sig", native={"closed": True})
    parts = sent(
        user("x"), signed, TEXT, user("y"), shape=ChatShape(reasoning_echo=("thinking_parts",))
    )[1]
    assert parts["content"] == [
        {
            "type": "thinking",
            "thinking": [{"type": "text", "text": "hm"}],
            "signature": "Sig",
            "closed": True,
        },
        {"type": "text", "text": "so"},
    ]


def test_c6_reasoning_without_a_field_is_dropped_and_reported() -> None:
    request = built(user("x"), REASONING, TEXT, user("y"), shape=ChatShape())
    assert (body(request)["messages"][1], changes(request)) == (
        {"role": "assistant", "content": "so"},
        [("dropped", "/input/1")],
    )


def test_c6_reasoning_is_sent_only_beside_calls() -> None:
    shape = ChatShape(reasoning_echo=("reasoning_content",), echo_turns="calls")
    second = [msgspec.structs.replace(item, response_id="r2") for item in (REASONING, TEXT)]
    request = built(user("x"), REASONING, CALL, CALL.output("1"), *second, user("y"), shape=shape)
    messages = body(request)["messages"]
    assert (messages[1]["reasoning_content"], "reasoning_content" in messages[3]) == ("hm", False)
    assert changes(request) == [("dropped", "/input/4")]


def test_c6_required_reasoning_that_is_missing_is_filled_in() -> None:
    shape = ChatShape(reasoning_echo=("reasoning_content",), echo_turns="calls", echo_filler=" ")
    request = built(
        user("x"),
        CALL,
        CALL.output("1"),
        msgspec.structs.replace(TEXT, response_id="r2"),
        user("y"),
        shape=shape,
    )
    messages = body(request)["messages"]
    assert (messages[1]["reasoning_content"], "reasoning_content" in messages[3]) == (" ", False)
    assert changes(request) == [("generated", "/input/1")]


DETAILS = [
    {
        "type": "reasoning.text",
        "text": "hm",
        "signature": "Sig",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 1},
]


def test_c6_reasoning_details_are_replayed_complete_and_once() -> None:
    reasoning = msgspec.structs.replace(
        REASONING, native={"reasoning_details": DETAILS}, signature="Sig"
    )
    request = built(
        user("x"), reasoning, CALL, OTHER, CALL.output("1"), OTHER.output("2"), shape=OPENROUTER
    )
    message = body(request)["messages"][1]
    assert (message["reasoning_details"], "reasoning" in message, request.report) == (
        DETAILS,
        False,
        [],
    )


def test_c6_lists_of_several_items_are_one_list_in_order() -> None:
    reasoning = [
        msgspec.structs.replace(
            REASONING, native={"reasoning_details": [element]}, content=element.get("text", "")
        )
        for element in DETAILS
    ]
    assert (
        sent(user("x"), *reasoning, TEXT, user("y"), shape=OPENROUTER)[1]["reasoning_details"]
        == DETAILS
    )


def test_c6_encrypted_details_do_not_replace_the_text() -> None:
    reasoning = msgspec.structs.replace(REASONING, native={"reasoning_details": DETAILS[1:]})
    message = sent(user("x"), reasoning, TEXT, user("y"), shape=OPENROUTER)[1]
    assert (message["reasoning_details"], message["reasoning"]) == (DETAILS[1:], "hm")


def test_c6_details_without_their_text_get_it_back() -> None:
    details = [{**DETAILS[0], "text": ""}, DETAILS[1]]
    reasoning = msgspec.structs.replace(REASONING, native={"reasoning_details": details})
    assert (
        sent(user("x"), reasoning, TEXT, user("y"), shape=OPENROUTER)[1]["reasoning_details"]
        == DETAILS
    )


def test_c6_edited_reasoning_is_sent_as_edited() -> None:
    """A typed field wins."""
    reasoning = msgspec.structs.replace(
        REASONING, content="ah", native={"reasoning_details": DETAILS}
    )
    request = built(user("x"), reasoning, TEXT, user("y"), shape=OPENROUTER)
    message = body(request)["messages"][1]
    assert (message["reasoning"], "reasoning_details" in message, changes(request)) == (
        "ah",
        False,
        [("changed", "/input/1")],
    )


def test_c6_keys_of_copilot_and_litellm_are_replayed() -> None:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "Sig"}]
    reasoning = msgspec.structs.replace(
        REASONING, native={"thinking_blocks": blocks, "reasoning_opaque": "O"}
    )
    message = sent(user("x"), reasoning, TEXT, user("y"))[1]
    assert (
        message["thinking_blocks"],
        message["reasoning_opaque"],
        "reasoning_content" in message,
    ) == (blocks, "O", False)


@pytest.mark.parametrize(
    ("foreign", "content"),
    [
        (
            Reasoning("hm", signature="s", origin=Origin("messages"), response_id="r"),
            "<think>\nhm\n</think>\n\nso",
        ),
        (
            Reasoning(
                "hm",
                native={"reasoning_details": DETAILS},
                origin=Origin("chat", "elsewhere"),
                response_id="r",
            ),
            "<think>\nhm\n</think>\n\nso",
        ),
        (Reasoning(encrypted_content="gAAA", origin=Origin("responses"), response_id="r"), "so"),
        (
            Reasoning(summary=["a", "b"], encrypted_content="gAAA", origin=Origin("responses")),
            "<think>\na\n\nb\n</think>\n\nso",
        ),
        (Opaque("computer_call", {"type": "computer_call"}, origin=Origin("responses")), "so"),
    ],
)
def test_foreign_state_is_downgraded_and_reported(foreign: Any, content: str) -> None:
    message = Message(
        "assistant", [Text("so")], origin=foreign.origin, response_id=foreign.response_id
    )
    request = built(user("x"), foreign, message, user("y"))
    assert body(request)["messages"][1] == {"role": "assistant", "content": content}
    assert [path for _, path in changes(request)] == ["/input/1"]
    assert b"gAAA" not in request.body
    assert b"Sig" not in request.body


# --- requested reasoning ---


@each_case(
    "style, options, fields",
    [
        (EFFORT, "high", {"reasoning_effort": "high"}),
        (EFFORT, "off", {"reasoning_effort": "none"}),
        (EFFORT, 3000, {"reasoning_effort": "medium"}),
        (EFFORT, ReasoningOptions(), {}),
        (THINKING_TYPE, "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        (THINKING_TYPE, 3000, {"thinking": {"type": "enabled", "budget_tokens": 3000}}),
        (THINKING_TYPE, "off", {"thinking": {"type": "disabled"}}),
        (ENABLE_THINKING, "medium", {"enable_thinking": True, "thinking_budget": 10_000}),
        (ENABLE_THINKING, ReasoningOptions(), {"enable_thinking": True}),
        (ENABLE_THINKING, "off", {"enable_thinking": False}),
        (REASONING_OBJECT, "max", {"reasoning": {"effort": "xhigh"}}),
        (REASONING_OBJECT, 3000, {"reasoning": {"max_tokens": 3000}}),
        (REASONING_OBJECT, ReasoningOptions(), {"reasoning": {"enabled": True}}),
        (REASONING_OBJECT, "off", {"reasoning": {"enabled": False}}),
        (REASONING_ENABLED, "low", {"reasoning": {"enabled": True}, "reasoning_effort": "low"}),
        (
            TEMPLATE_ENABLE_THINKING,
            ReasoningOptions(),
            {"chat_template_kwargs": {"enable_thinking": True}},
        ),
        (TEMPLATE_THINKING, "off", {"chat_template_kwargs": {"thinking": False}}),
        (GOOGLE, 3000, {"extra_body": {"google": {"thinking_config": {"thinking_budget": 3000}}}}),
        (Thinking(on={"think": 1}), "low", {"think": 1}),
        (Thinking(on={"think": 1}), "off", {}),
        (None, "low", {}),
    ],
)
def test_thinking_is_requested_in_the_providers_form(
    style: Thinking | None, options: Any, fields: dict[str, Any]
) -> None:
    without = body(built(shape=ChatShape(thinking=style)))
    sent = body(built(shape=ChatShape(thinking=style), reasoning=options))
    assert {key: value for key, value in sent.items() if key not in without} == fields


@pytest.mark.parametrize(
    ("style", "options"),
    [
        (EFFORT, 3000),
        (ENABLE_THINKING, "low"),
        (REASONING_OBJECT, "max"),
        (Thinking(on={"think": 1}), "low"),
        (None, "low"),
    ],
)
def test_changed_thinking_is_reported(style: Thinking | None, options: Any) -> None:
    assert [
        path for _, path in changes(built(shape=ChatShape(thinking=style), reasoning=options))
    ] == ["/reasoning"]


def test_model_gets_a_level_it_takes() -> None:
    request = built(traits=Traits(efforts=("low", "high"), thinking_off=""), reasoning="max")
    assert (body(request)["reasoning_effort"], changes(request)) == (
        "high",
        [("changed", "/reasoning")],
    )
    always = built(traits=Traits(efforts=("low", "high"), thinking_off=""), reasoning="off")
    assert (body(always)["reasoning_effort"], changes(always)) == (
        "low",
        [("changed", "/reasoning")],
    )
    never = built(traits=Traits(thinking=()), reasoning="low")
    assert ("reasoning_effort" in body(never), changes(never)) == (
        False,
        [("dropped", "/reasoning")],
    )


def test_summary_and_display_are_dropped() -> None:
    assert changes(built(reasoning=ReasoningOptions("low", summary="auto", display="omitted"))) == [
        ("dropped", "/reasoning/summary"),
        ("dropped", "/reasoning/display"),
    ]
