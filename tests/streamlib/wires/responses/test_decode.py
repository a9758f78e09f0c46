"""Recorded Responses requests decode into prompts that build like requests again."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Audio,
    CacheOptions,
    Compaction,
    CustomToolCall,
    CustomToolCallOutput,
    Document,
    FunctionCall,
    FunctionCallOutput,
    HostedTool,
    Image,
    Message,
    Opaque,
    Origin,
    Prompt,
    Reasoning,
    ReasoningOptions,
    Refusal,
    ServerToolCall,
    StreamError,
    Text,
    ToolOptions,
    ToolSpec,
    build,
    parse_request,
)
from tests.support.cases import each_case
from tests.support.shared import BODIES, PAYLOADS, STREAMS, Recording, each_recording

HERE: Final = Origin("responses")


def read(**fields: Any) -> Prompt:
    return parse_request("responses", json.dumps({"model": "m", **fields}).encode())


def items(*given_items: Any) -> list[Any]:
    return list(read(input=list(given_items)).items)


def rebuilt(fields: dict[str, Any]) -> dict[str, Any]:
    prompt = parse_request("responses", json.dumps(fields).encode())
    request = build(prompt, prompt.model, provider="openai", base_url="http://x")
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


# --- recorded requests ---


@each_recording("openai-responses", [*STREAMS, *PAYLOADS, *BODIES])
def test_recorded_request_is_rebuilt_item_for_item(recording: Recording) -> None:
    request = recording.meta.get("request_json")
    if not isinstance(request, dict):
        return
    again = rebuilt(request)
    assert [comparable(item) for item in again["input"]] == [
        comparable(item) for item in spelled_out(request) if is_sent(item)
    ]


@each_recording("openai-responses", [*STREAMS, *PAYLOADS, *BODIES])
def test_recorded_request_keeps_its_settings(recording: Recording) -> None:
    request = recording.meta.get("request_json")
    if not isinstance(request, dict):
        return
    again = rebuilt(request)
    for key in request.keys() - CHANGED.keys():
        assert again.get(key) == request[key], key
    assert [tool.get("name") or tool["type"] for tool in again.get("tools", ())] == [
        tool.get("name") or tool["type"] for tool in request.get("tools") or ()
    ]
    form, original = ((fields.get("text") or {}).get("format") or {} for fields in (again, request))
    assert form.get("type", "text") == original.get("type", "text")


CHANGED: Final = {
    "input": "compared above",
    "tools": "strict is always said, a null description never; strict schemas are closed",
    "text": "a strict schema is closed and gets a name of its own",
    "include": "an empty list is left out",
    "instructions": "empty ones are left out",
    "user": "now safety_identifier",
    "reasoning": "an unknown level becomes the nearest (o4-mini refused `minimal`)",
}
"""Settings that may come back otherwise, and why."""


def spelled_out(request: dict[str, Any]) -> list[dict[str, Any]]:
    return (
        [{"role": "user", "content": request["input"]}]
        if isinstance(request["input"], str)
        else request["input"]
    )


def is_sent(item: dict[str, Any]) -> bool:
    """Whether reasoning has no encrypted content: only servers that store can read it again."""
    return item.get("type") != "reasoning" or bool(
        item.get("encrypted_content") or item.get("content")
    )


def comparable(item: dict[str, Any]) -> dict[str, Any]:
    """Without ids, status and nulls; contents in parts; what has a default with it."""
    kind = item.get("type") or "message"
    left_out = (
        {"id", "status"}
        if kind in {"message", "reasoning", "function_call", "function_call_output"}
        else {"status"}
    )
    bare = {
        "type": kind,
        **{key: value for key, value in item.items() if value is not None and key not in left_out},
    }
    if bare.get("call_id") == item.get("id"):
        bare.pop("call_id", None)
    if isinstance(bare.get("content"), str):
        bare["content"] = [
            {
                "type": "output_text" if item["role"] == "assistant" else "input_text",
                "text": bare["content"],
            }
        ]
    if kind == "message":
        bare["content"] = [comparable_part(part) for part in bare["content"]]
    return bare


def comparable_part(part: dict[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "output_text": {"annotations": []},
        "input_image": {"detail": "auto"},
    }
    return {
        **defaults.get(part["type"], {}),
        **{key: value for key, value in part.items() if key != "logprobs"},
    }


# --- items ---


def test_input_text_is_a_user_message() -> None:
    assert read(input="hi").items == (Message("user", [Text("hi")], origin=HERE),)
    assert read(previous_response_id="resp_1").items == ()


def test_messages_are_short_or_in_parts() -> None:
    short = {"role": "developer", "content": "be brief"}
    complete = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "hi"}],
    }
    assert items(short, complete) == [
        Message("developer", [Text("be brief")], origin=HERE),
        Message("user", [Text("hi")], origin=HERE),
    ]


def test_model_objects_become_the_items_once_received() -> None:
    cited = {
        "type": "url_citation",
        "url": "https://x",
        "title": "T",
        "start_index": 0,
        "end_index": 1,
    }
    blocks = [
        {"type": "output_text", "text": "so", "annotations": [cited], "logprobs": []},
        {"type": "refusal", "refusal": "no"},
    ]
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": blocks,
    }
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "f",
        "arguments": '{"a": 1.0}',
        "status": "completed",
    }
    patch = {"type": "custom_tool_call", "call_id": "p", "name": "patch", "input": "*** Begin"}
    assert items(message, reasoning, call, patch) == [
        Message(
            "assistant", [Text("so", [cited]), Refusal("no")], "commentary", id="msg_1", origin=HERE
        ),
        Reasoning(encrypted_content="gAAA", id="rs_1", origin=HERE),
        FunctionCall("c", "f", '{"a": 1.0}', origin=HERE),
        CustomToolCall("p", "patch", "*** Begin", origin=HERE),
    ]


def test_truncated_call_is_incomplete() -> None:
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "f",
        "arguments": '{"a',
        "status": "incomplete",
    }
    assert items(call)[0].status == "incomplete"


def test_arguments_that_are_json_keep_their_bytes() -> None:
    call = b'{"type":"web_search_call","id":"ws_1","action":{"query": "q",  "type":"search"}}'
    raw = b'{"model":"m","input":[%s]}' % call
    (search,) = parse_request("responses", raw).items
    assert isinstance(search, ServerToolCall)
    assert search.arguments == '{"query": "q",  "type":"search"}'


def test_outputs_are_text_or_parts() -> None:
    part = {"type": "input_image", "image_url": "https://x/y.png", "detail": "high"}
    text = {
        "type": "function_call_output",
        "call_id": "c",
        "output": "42",
        "status": "completed",
        "id": "fco_1",
    }
    parts = {"type": "custom_tool_call_output", "call_id": "p", "output": [part]}
    assert items(text, parts) == [
        FunctionCallOutput("c", "42", id="fco_1", origin=HERE),
        CustomToolCallOutput(
            "p", [Image(url="https://x/y.png", native={"detail": "high"})], origin=HERE
        ),
    ]


def test_unknown_objects_stay_complete() -> None:
    unnamed = {"type": "function_call_output", "call_id": None, "name": "f", "output": "x"}
    others = [
        {"type": "item_reference", "id": "msg_1"},
        {"type": "compaction_trigger"},
        {"type": "additional_tools", "tools": []},
        unnamed,
    ]
    assert items(*others) == [
        Opaque(block["type"], block, id=block.get("id"), origin=HERE) for block in others
    ]
    assert items({"type": "compaction", "encrypted_content": "g"}) == [
        Compaction(encrypted_content="g", origin=HERE)
    ]


@pytest.mark.parametrize(
    ("part", "read_as"),
    [
        (
            {"type": "input_image", "image_url": "data:image/png;base64,eA=="},
            Image(data="eA==", media_type="image/png"),
        ),
        ({"type": "input_image", "file_id": "file_1"}, Image(file_id="file_1")),
        (
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,eA==",
            },
            Document(data="eA==", media_type="application/pdf", name="a.pdf"),
        ),
        ({"type": "input_file", "file_data": "eA=="}, Document(data="eA==")),
        (
            {"type": "input_file", "file_url": "https://x", "filename": "a"},
            Document(url="https://x", name="a", native={"filename": "a"}),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "eA==", "format": "mp3"}},
            Audio(data="eA==", media_type="audio/mpeg"),
        ),
        (
            {"type": "input_video", "x": 1},
            Text('{"type":"input_video","x":1}', native={"type": "input_video", "x": 1}),
        ),
    ],
)
def test_parts_become_content_parts(part: dict[str, Any], read_as: Any) -> None:
    assert items({"role": "user", "content": [part]})[0].content == (read_as,)


PART = st.sampled_from(
    [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
        {"type": "input_image", "file_id": "file_1", "detail": "auto"},
        {"type": "input_file", "file_url": "https://x", "filename": "a"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0=",
        },
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
        {"type": "input_text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "input_video", "x": [1.0]},
    ]
)


@given(st.lists(PART, min_size=1, max_size=4))
def test_every_part_is_rebuilt_unchanged(parts: list[dict[str, Any]]) -> None:
    assert (
        rebuilt({"model": "m", "input": [{"role": "user", "content": parts}]})["input"][0][
            "content"
        ]
        == parts
    )


# --- settings ---


def test_every_setting_is_read() -> None:
    schema = {"type": "object", "properties": {}}
    deferred = {
        "type": "function",
        "name": "later",
        "parameters": schema,
        "strict": False,
        "defer_loading": True,
    }
    prompt = read(
        type="response.create",
        input="hi",
        instructions="be brief",
        tools=[
            {
                "type": "function",
                "name": "f",
                "description": "d",
                "parameters": schema,
                "strict": True,
            },
            {"type": "custom", "name": "patch"},
            {"type": "web_search", "search_context_size": "low"},
            {"type": "mcp", "server_label": "deep", "server_url": "https://x"},
            deferred,
        ],
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=False,
        reasoning={"effort": "none", "summary": "auto"},
        text={
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True},
        },
        include=["reasoning.encrypted_content", "message.output_text.logprobs"],
        max_output_tokens=9,
        temperature=0.5,
        top_p=0.9,
        metadata={"a": "b"},
        service_tier="flex",
        safety_identifier="u",
        prompt_cache_key="c",
        stream=True,
        truncation="auto",
        store=True,
    )
    assert msgspec.structs.replace(prompt, input=()) == Prompt(
        instructions="be brief",
        tools=[
            ToolSpec("f", "d", schema, strict=True),
            ToolSpec("patch", format={"type": "text"}),
            ToolSpec(
                "web_search",
                native={"type": "web_search", "search_context_size": "low"},
                native_wire="responses",
                provider_run=HostedTool("web_search"),
            ),
            ToolSpec(
                "deep",
                native={"type": "mcp", "server_label": "deep", "server_url": "https://x"},
                native_wire="responses",
            ),
            ToolSpec("later", None, schema, strict=False, options=ToolOptions(defer_loading=True)),
        ],
        tool_choice="f",
        parallel_tools=False,
        reasoning=ReasoningOptions(effort="off", summary="auto"),
        verbosity="low",
        output_schema=schema,
        max_output_tokens=9,
        temperature=0.5,
        top_p=0.9,
        logprobs=0,
        metadata={"a": "b"},
        service_tier="flex",
        user_id="u",
        conversation_id="c",
        extra={"truncation": "auto", "store": True, "text": {"format": {"name": "n"}}},
        extra_wire="responses",
        model="m",
        stream=True,
    )


@each_case(
    "fields",
    [
        {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}],
            }
        },
        {"tool_choice": {"type": "mcp", "server_label": "s", "name": "t"}},
        {"reasoning": {"effort": "low", "context": "all_turns"}},
        {"reasoning": {"effort": "ultra"}},
        {"text": {"format": {"type": "json_object"}}},
        {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "n",
                    "schema": {"type": "object"},
                    "strict": False,
                },
                "verbosity": "low",
            }
        },
        {"include": ["web_search_call.action.sources"]},
        {
            "prompt_cache_options": {
                "mode": "explicit",
                "ttl": "12h",
                "comparison_response_id": "resp_1",
            }
        },
        {"previous_response_id": "resp_1"},
    ],
)
def test_what_a_prompt_cannot_express_is_rebuilt_complete(fields: dict[str, Any]) -> None:
    again = rebuilt(
        {"model": "m", "input": "hi", "tools": [{"type": "function", "name": "f"}], **fields}
    )
    assert {key: again[key] for key in fields} == fields


@pytest.mark.parametrize(
    "choice",
    ["auto", "required", "none", {"type": "web_search"}, {"type": "custom", "name": "patch"}],
)
def test_tool_choice_is_rebuilt_unchanged(choice: Any) -> None:
    tools = [
        {"type": "web_search"},
        {"type": "custom", "name": "patch", "format": {"type": "text"}},
    ]
    assert (
        rebuilt({"model": "m", "input": "hi", "tools": tools, "tool_choice": choice})["tool_choice"]
        == choice
    )


def test_cache_breakpoints_are_those_of_their_items() -> None:
    marked = {
        "type": "input_text",
        "text": "b",
        "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"},
    }
    objects = [
        {"role": "user", "content": "a"},
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, marked]},
    ]
    assert read(input=objects).cache == CacheOptions("12h", [1])
    assert read(input="x", prompt_cache_options={"ttl": "30m"}).cache == CacheOptions("30m")
    assert read(input="x").cache is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "message", "user", "reasoning", "function_call", "x"]),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "role",
                    "content",
                    "input",
                    "summary",
                    "call_id",
                    "name",
                    "output",
                    "tools",
                    "text",
                    "format",
                    "reasoning",
                ]
            ),
            children,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_hostile_requests_give_a_prompt_or_an_own_error(body: Any) -> None:
    try:
        prompt = parse_request("responses", json.dumps(body).encode())
    except StreamError as error:
        # Either outcome is fine, an exception of another library is not.
        assert error.kind == "invalid_request"  # noqa: PT017
    else:
        assert isinstance(prompt, Prompt)


@each_case(
    "item",
    [
        {"type": {}, "call_id": "a"},
        {"type": [[]]},
        {"type": "function_call_output", "call_id": [1], "output": "x"},
        {"type": "shell_call", "call_id": {"a": 1}, "action": {"commands": ["ls"]}},
        {"type": "mcp_approval_response", "approval_request_id": [1], "approve": True},
        {"type": "shell_call_output", "call_id": "b", "output": [1]},
        {"type": "custom_tool_call_output", "call_id": "c", "output": [[]]},
        {"role": "user", "content": [{"type": "input_text", "prompt_cache_breakpoint": 1}]},
    ],
)
def test_hostile_item_is_built_or_refused_as_invalid(item: dict[str, Any]) -> None:
    """`TypeError` and `AttributeError` of the builder: a gateway answered 500."""
    call = {"type": "shell_call", "call_id": "b", "action": {"commands": ["ls"]}}
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "x"}
    request = {"model": "m", "input": [{"role": "user", "content": "hi"}, call, custom, item]}
    kind = ""
    try:
        prompt = parse_request("responses", msgspec.json.encode(request))
        build(prompt, "openai:gpt-6")
    except StreamError as error:
        kind = error.kind
    assert kind in ("", "invalid_request")
