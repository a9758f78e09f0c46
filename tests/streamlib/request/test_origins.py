"""Origins: what another wire gets of a model's turns that a client sent."""

from __future__ import annotations

import msgspec

from streamlib import Origin, Prompt, accumulate, build, parse_body, parse_request, user


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


def test_fields_of_a_response_are_dropped_without_a_report() -> None:
    """They are the provider's own, and no option that anybody set."""
    content = [{"type": "output_text", "text": "y", "annotations": []}]
    message = {"type": "message", "id": "m", "role": "assistant", "content": content, "score": 1}
    body = {"id": "r", "object": "response", "status": "completed", "output": [message]}
    events = parse_body("responses", msgspec.json.encode(body), origin=Origin("responses"))
    items = accumulate(events).items
    assert items[0].native is not None
    assert build(Prompt([user("x"), *items, user("z")]), "anthropic:claude-opus-5").report == []
