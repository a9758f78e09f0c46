"""Requests of Anthropic Messages: types of the `anthropic` SDK, its beta ones included.

Sources: DOCS is platform.claude.com/docs, SDK the docstrings of `anthropic.types`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from lab.fidelity.compare import Body, Equivalent, WireTable, drop_nulls, objects_in
from lab.fidelity.sdk_types import BASE64, TypeReader
from lab.fidelity.shapes import Struct
from streamlib import Prompt, Request, build

VALUES: Final = {
    "model": ("any-model",),
    "max_tokens": (4096,),
    "budget_tokens": (2048,),
    "data": BASE64,
    "encrypted_content": BASE64,
    "url": ("https://example.com/a",),
    "stop_sequences": ("END", " "),
    "temperature": (0.5,),
    "BetaPlainTextSourceParam.data": ("plain text",),
    "PlainTextSourceParam.data": ("plain text",),
}
LEFT_OUT: Final = frozenset(
    {
        # headers, says the SDK's own `create`
        "betas",
        "user_profile_id",
        "workspace_id",
    }
)


@cache
def request_type() -> Struct:
    """The type of a request: the beta one has every field of the other."""
    params = pytest.importorskip("anthropic.types.beta.message_create_params")
    return TypeReader(VALUES, LEFT_OUT).struct(params.MessageCreateParamsBase)


def build_again(prompt: Prompt) -> Request:
    """A request to a server that takes everything."""
    return build(prompt, f"custom:{prompt.model}", wire_api="messages", base_url="http://127.0.0.1")


# --- completing a drawn body ---

BLANK: Final = {"type": "text", "text": ""}
"""A block that the API refuses, and with it a turn that has no other."""


def complete(body: Body) -> None:
    """Gives calls their results, results their calls, and choices their tools.

    No turn ends with reasoning, and system messages stand behind the user's.
    """
    if "tool_choice" in body:
        body.setdefault("tools", [{"name": "text", "input_schema": {"type": "object"}}])
    turns: list[Body] = []
    for number, turn in enumerate(body["messages"] or [{"role": "user", "content": "hi"}]):
        if turn["role"] == "system" and not turns:
            turns.append({"role": "user", "content": "hi"})
        if not turn.get("content") and not turn.get("output_config"):
            # SDK, system messages: one with neither content nor output_config fields is rejected
            turn["content"] = "text"
        if not isinstance(turn.get("content"), list):
            turns.append(turn)
            continue
        if turn["content"] in ([], [BLANK]):
            turn["content"].append({"type": "text", "text": "text"})
        turns += _completed_turn(turn, f"call{number}")
    body["messages"] = _around_system(turns)


def _around_system(turns: list[Body]) -> list[Body]:
    """The turns, with each system message after a user turn and before none of the user (A17)."""
    placed: list[Body] = []
    role = "user"
    has_system = False
    for turn in turns:
        if turn["role"] == "system":
            if role == "assistant":
                placed.append({"role": "user", "content": "hi"})
            has_system = True
        elif turn["role"] == "user" and has_system:
            placed.append({"role": "assistant", "content": "ok"})
        if turn["role"] != "system":
            has_system = False
        role = "user" if turn["role"] == "system" else turn["role"]
        placed.append(turn)
    return placed


def _completed_turn(turn: Body, call_id: str) -> list[Body]:
    blocks = turn["content"]
    called: list[str] = []
    answered: list[str] = []
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            block["id"] = f"{call_id}_{index}"
            # a call without a name is refused
            block["name"] = block["name"] or "text"
            called.append(block["id"])
        elif block["type"] == "tool_result":
            block["tool_use_id"] = f"{call_id}_{index}"
            answered.append(block["tool_use_id"])
        elif block["type"] in ("server_tool_use", "mcp_tool_use"):
            block["id"] = f"srv_{call_id}_{index}"
    if turn["role"] == "assistant" and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.append({"type": "text", "text": "end"})
    turns: list[Body] = [turn]
    if turn["role"] == "user" and answered:
        # results stand first (A6)
        blocks.sort(key=_is_no_result)
        turns.insert(0, {"role": "assistant", "content": [_call(name) for name in answered]})
    if turn["role"] == "assistant" and called:
        turns.append({"role": "user", "content": [_result(name) for name in called]})
    return turns


def _is_no_result(block: Body) -> bool:
    return bool(block["type"] != "tool_result")


def _call(call_id: str) -> Body:
    return {"type": "tool_use", "id": call_id, "name": "text", "input": {}}


def _result(call_id: str) -> Body:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "done"}


# --- equivalent forms ---


def _text_block(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content


def texts_as_blocks(body: Body) -> None:
    """`content` and `system` as lists of blocks."""
    if "system" in body:
        body["system"] = _text_block(body["system"])
    for turn in body["messages"]:
        if "content" in turn:
            turn["content"] = _text_block(turn["content"])
        for block in turn.get("content", ()):
            if block.get("type") == "tool_result" and "content" in block:
                block["content"] = _text_block(block["content"])


def join_turns(body: Body) -> None:
    """Adjacent turns of one role are one turn, unless they have other fields of their own."""
    turns: list[Body] = []
    for turn in body["messages"]:
        if not turns or _fields(turns[-1]) != _fields(turn):
            turns.append(turn)
        elif "content" in turn:
            turns[-1]["content"] = [*turns[-1].get("content", ()), *turn["content"]]
    body["messages"] = turns


def _fields(turn: Body) -> Body:
    return {key: value for key, value in turn.items() if key != "content"}


def drop_defaults(body: Body) -> None:
    """Fields with the value that they have when they are absent."""
    if body.get("stream") is False:
        del body["stream"]
    if body.get("tool_choice", {}).get("disable_parallel_tool_use") is False:
        del body["tool_choice"]["disable_parallel_tool_use"]
    for tool in body.get("tools", ()):
        if tool.get("type") == "custom":
            del tool["type"]
    for turn in body["messages"]:
        for block in turn.get("content", ()):
            if block.get("type") == "tool_result" and block.get("is_error") is False:
                del block["is_error"]


def drop_empty_texts(body: Body) -> None:
    """Texts and lists of tools and blocks that say nothing."""
    for tool in body.get("tools", ()):
        if tool.get("description") == "":
            del tool["description"]
    for block in objects_in([body.get("system"), body["messages"]]):
        if block.get("type") == "text" and block.get("citations") == []:
            del block["citations"]
        if block.get("type") == "tool_result" and block.get("content") in ([], ""):
            del block["content"]
        if block.get("type") == "compaction" and block.get("content") == "":
            # the API refuses an empty one: nothing is null
            del block["content"]


def drop_empty(body: Body) -> None:
    """Objects whose fields are all optional, and absent; lists without an element."""
    for key in ("stop_sequences", "tools", "system"):
        if body.get(key) in ([], ""):
            del body[key]
    drop_empty_texts(body)
    for values, key in [
        (body, "metadata"),
        (body, "output_config"),
        (body.get("thinking", {}), "block_binding"),
        *((turn, "output_config") for turn in body["messages"]),
    ]:
        if values.get(key) == {}:
            del values[key]


EQUIVALENTS: Final = (
    Equivalent("null / absent", "SDK: every such field is Optional", drop_nulls),
    Equivalent(
        "metadata: {}, output_config: {}, block_binding: {}, stop_sequences: [], tools: [], "
        "description, system, content of a tool_result, citations: none / absent",
        "SDK: null, absent or an empty object means every default (block_binding); "
        "an empty output_config is accepted beside content; an empty list or text names no text, "
        "tool, block or citation; tool_result.content and system are Optional",
        drop_empty,
    ),
    Equivalent(
        "a string / a list of one text block",
        "SDK, messages: each content may be a string or a list of blocks; system, tool_result too",
        texts_as_blocks,
    ),
    Equivalent(
        "adjacent turns of one role / one turn",
        "SDK, messages: consecutive turns of one role are combined",
        join_turns,
    ),
    Equivalent(
        "stream: false, tools[].type: custom, tool_result.is_error: false, "
        "tool_choice.disable_parallel_tool_use: false / absent",
        "DOCS, Messages API reference: the defaults",
        drop_defaults,
    ),
)
REPORTED: Final = {
    "messages": ("/input", "/cache/breakpoints", "/tools"),
    "system": ("/instructions", "/input", "/cache/breakpoints", "/cache/instructions"),
    "tools": ("/tools/*",),
    "tool_choice": ("/tool_choice",),
    "tool_choice/disable_parallel_tool_use": ("/parallel_tools",),
    "thinking": ("/reasoning",),
    "output_config/effort": ("/reasoning",),
    "output_config/format": ("/output_schema",),
    "max_tokens": ("/max_output_tokens",),
    "temperature": ("/temperature",),
    "top_p": ("/top_p",),
    "top_k": ("/top_k",),
    "stop_sequences": ("/stop",),
    "metadata/user_id": ("/user_id",),
    "service_tier": ("/service_tier",),
    "cache_control": ("/cache",),
}
CHAINED: Final[list[Body]] = [
    {
        "model": "any-model",
        "max_tokens": 1,
        "container": container,
        "messages": [{"role": "user", "content": [_result("toolu_1")]}],
    }
    for container in ("container_1", {"id": "container_1", "skills": []})
]
TABLE: Final = WireTable(
    wire_api="messages",
    request=request_type,
    build=build_again,
    complete=complete,
    equivalents=EQUIVALENTS,
    added={},
    reported=REPORTED,
    turns="messages",
    chained=CHAINED,
)
