"""Origins: what another wire gets of a model's turns that a client sent."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from streamlib import (
    Compaction,
    CustomToolCall,
    FunctionCall,
    Message,
    Origin,
    Prompt,
    Reasoning,
    ServerToolCall,
    Text,
    accumulate,
    build,
    parse_body,
    parse_request,
    user,
)
from streamlib.request.built_in_text import output_as_text
from streamlib_parsers.items import (
    ApplyPatchCallOutput,
    ApprovalResponse,
    BuiltInOutput,
    ResponseItem,
    WireApi,
)
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.timing import cpu_seconds


def test_lost_options_of_a_decoded_model_turn_are_reported() -> None:
    """Fields beside an assistant's text or call vanished towards other wires without a word."""
    function = {"name": "f", "arguments": "{}"}
    turn = {
        "role": "assistant",
        "content": "y",
        "annotations": [],
        "cache_hint": 1,
        "tool_calls": [{"id": "c", "type": "function", "function": function, "priority": 3}],
    }
    result = {"role": "tool", "tool_call_id": "c", "content": "z"}
    raw = {"model": "m", "messages": [{"role": "user", "content": "x"}, turn, result]}
    decoded = parse_request("chat", msgspec.json.encode(raw))
    report = build(decoded, "anthropic:claude-opus-5").report
    assert [(change.action, change.path, change.reason) for change in report] == [
        ("downgraded", "/input/1", "options of another wire are left out: cache_hint"),
        ("downgraded", "/input/2", "options of another wire are left out: priority"),
    ]
    own = build(decoded, "custom:m", wire_api="chat", base_url="http://x")
    assert (own.report, b"cache_hint" in own.body, b"priority" in own.body) == ([], True, True)


def test_empty_end_of_the_first_turn_is_left_out() -> None:
    """Gemini ends a turn with an empty text; here nothing is before the turn."""
    gemini = Origin("gemini")
    said = Message("assistant", (Text("Hi"),), origin=gemini)
    empty = Message("assistant", (Text(""),), origin=gemini)
    request = build(Prompt([said, empty, user("Go on.")]), "openai:gpt-5")
    assert [item["role"] for item in msgspec.json.decode(request.body)["input"]] == [
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (ApprovalResponse("a", approve=True), "[approved]"),
        (ApprovalResponse("a", approve=False, reason="no!"), "[not approved no!]"),
        (ApplyPatchCallOutput("c"), "[result of apply_patch: completed]"),
    ],
)
def test_built_in_output_is_text_of_the_user(output: BuiltInOutput, text: str) -> None:
    assert output_as_text(output) == user(text)


def test_fields_of_a_response_are_dropped_without_a_report() -> None:
    """They are the provider's own, and no option that anybody set."""
    content = [{"type": "output_text", "text": "y", "annotations": []}]
    message = {"type": "message", "id": "m", "role": "assistant", "content": content, "score": 1}
    body = {"id": "r", "object": "response", "status": "completed", "output": [message]}
    events = parse_body("responses", msgspec.json.encode(body), origin=Origin("responses"))
    items = accumulate(events).items
    assert items[0].native is not None
    assert build(Prompt([user("x"), *items, user("z")]), "anthropic:claude-opus-5").report == []


@pytest.mark.parametrize("wire", WIRE_APIS)
def test_signature_of_unknown_origin_is_sent_or_reported(wire: WireApi) -> None:
    """Without an origin an item matches every target, also one that has no place for it."""
    call = FunctionCall("c", "f", "{}", signature="SIG")
    free = CustomToolCall("d", "g", "x", signature="SIG")
    items: list[ResponseItem] = [
        Reasoning("Hm.", signature="SIG"),
        Reasoning("Hm.", encrypted_content="SIG"),
        Message("assistant", (Text("Hi"),), signature="SIG"),
        ServerToolCall("s", "web_search", "{}", signature="SIG"),
        Compaction("Before.", "SIG"),
        call,
        free,
    ]
    for item in items:
        history: list[ResponseItem] = [user("x"), item]
        if isinstance(item, (FunctionCall, CustomToolCall)):
            history.append(item.output("1"))
        prompt = Prompt([*history, user("y")])
        request = build(prompt, "custom:m", wire_api=wire, base_url="http://x")
        reported = [change for change in request.report if change.path.startswith("/input/1")]
        assert b"SIG" in request.body or reported, item


def build_seconds(count: int) -> float:
    """CPU seconds of a request with so many signed texts of unknown origin; the best of three."""
    seconds: list[float] = []
    for _ in range(3):
        history: list[ResponseItem] = []  # a new one: turns that are known cost less
        for number in range(count):
            signature = f"{number}" + "A" * 300
            history += [user("x" * 500), Message("assistant", (Text("y"),), signature=signature)]
        prompt = Prompt([*history, user("z")])
        seconds.append(cpu_seconds(partial(build, prompt, "google:gemini-2.5-pro")))
    return min(seconds)


@pytest.mark.timing
def test_signatures_are_looked_for_in_linear_time() -> None:
    """Each was searched for in the whole body: 1,000 of them took 0.4 s, and 8,000 took 21 s."""
    assert build_seconds(1000) < 8 * build_seconds(250)  # quadratic: 14


@pytest.mark.parametrize("wire", WIRE_APIS)
def test_signature_like_a_part_of_another_text_is_reported(wire: WireApi) -> None:
    history = [user("a SIGNAL"), Message("assistant", (Text("Hi"),), signature="SIG"), user("y")]
    request = build(Prompt(history), "custom:m", wire_api=wire, base_url="http://x")
    is_reported = any(change.path == "/input/1" for change in request.report)
    assert is_reported or b'"SIG"' in request.body
