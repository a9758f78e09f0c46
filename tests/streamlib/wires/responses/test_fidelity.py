"""What a Responses request holds beside the fields of `Prompt` is sent again (invariant 12, B3)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from streamlib import Prompt, build, parse_request
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case

HI: Final = {"role": "user", "content": "hi"}
SCHEMA: Final = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
FORMAT: Final = {"type": "json_schema", "name": "n", "description": "d", "schema": SCHEMA}
TOOL: Final = {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}
CUSTOM: Final = {"type": "custom", "name": "c", "format": {"type": "text"}}
LIFETIME: Final = {"mode": "explicit", "ttl": "12h"}


def rebuilt(body: dict[str, Any]) -> Any:
    prompt = parse_request("responses", msgspec.json.encode({"model": "gpt-5.6", **body}))
    request = build(prompt, "openai:gpt-5.6", wire_api="responses")
    assert request.report == []
    return msgspec.json.decode(request.body)


@each_case(
    "setting",
    [
        {"text": {"format": {**FORMAT, "strict": True}}},
        {"text": {"format": {**FORMAT, "strict": False}, "verbosity": "low"}},
        {"tool_choice": {"type": "file_search"}, "tools": [TOOL]},
        {"tool_choice": {"type": "custom", "name": "other"}, "tools": [TOOL]},
        {"tool_choice": {"type": "custom", "name": "c"}, "tools": [TOOL, CUSTOM]},
        {"tool_choice": {"type": "function", "name": "other"}, "tools": [TOOL]},
        {"include": ["reasoning.encrypted_content"], "store": True},
        {"user": "u", "safety_identifier": "s"},
        {"prompt": {"id": "p"}, "tools": []},  # each replaces that of the stored prompt
        {"prompt": {"id": "p"}, "instructions": ""},
        {"prompt_cache_options": {"ttl": "30m", "mode": "explicit"}},
        {"reasoning": {"effort": "low", "context": "auto"}},
        {"background": True, "store": True},
    ],
)
def test_setting_is_sent_again(setting: dict[str, Any]) -> None:
    body = rebuilt({"input": [HI], **setting})
    assert {key: body.get(key) for key in setting} == setting


@pytest.mark.parametrize("state", [{}, {"background": True}, {"previous_response_id": "resp_1"}])
def test_request_without_store_keeps_the_default(state: JsonObject) -> None:
    """The API stores by default, and refuses `background` with `store: false`."""
    assert "store" not in rebuilt({"input": [HI], **state})


def test_lifetime_of_a_breakpoint_stays_with_its_part() -> None:
    """B3: it became the lifetime of the whole request."""
    part = {"type": "input_text", "text": "a", "prompt_cache_breakpoint": LIFETIME}
    plain = {"type": "input_text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit"}}
    body = rebuilt(
        {
            "input": [{"role": "user", "content": [part]}, {"role": "user", "content": [plain]}],
            "prompt_cache_options": {"ttl": "30m"},
        }
    )
    assert [message["content"] for message in body["input"]] == [[part], [plain]]
    assert body["prompt_cache_options"] == {"ttl": "30m"}


def test_more_than_four_breakpoints_are_sent() -> None:
    """B3: the API looks for 80, and writes the last four."""
    part = {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}
    messages = [{"type": "message", "role": "user", "content": [part]} for _ in range(6)]
    assert rebuilt({"input": messages})["input"] == messages


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_image", "detail": "low", "image_url": "https://x/a.png", "file_id": "f"},
        {"type": "input_image", "detail": "low"},
        {"type": "input_file", "file_id": "f", "file_url": "https://x/a.pdf", "filename": "a"},
        {"type": "input_file", "file_url": "relative/a.pdf"},
        {"type": "input_file", "detail": "low"},
    ],
)
def test_part_with_any_sources_is_sent_again(part: dict[str, Any]) -> None:
    messages = [{"type": "message", "role": "user", "content": [part]}]
    assert rebuilt({"input": messages})["input"] == messages


@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call", "id": "ws_1", "status": "in_progress", "action": {"type": "x"}},
        {"type": "mcp_call", "id": "m", "status": "completed", "name": "n", "arguments": "{}"},
        {"type": "tool_search_call", "arguments": {"query": "a"}},
        {"type": "tool_search_output", "tools": []},
        {
            "type": "message",
            "role": "user",
            "phase": "commentary",
            "content": [{"type": "input_text", "text": "a"}],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "a",
                    "annotations": [],
                    "logprobs": [{"token": "a"}],
                }
            ],
        },
    ],
)
def test_item_is_sent_again(item: dict[str, Any]) -> None:
    assert rebuilt({"input": [HI, item]})["input"][1:] == [item]


def test_background_of_a_prompt_is_stored() -> None:
    built = build(Prompt("Hi", background=True), "openai:gpt-5")
    body = msgspec.json.decode(built.body)
    assert (body["background"], body["store"], body["stream"]) == (True, True, True)
    assert built.report == []
    chosen = build(Prompt("Hi", background=True, extra={"store": False}), "openai:gpt-5")
    assert msgspec.json.decode(chosen.body)["store"] is False
