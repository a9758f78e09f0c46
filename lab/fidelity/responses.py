"""Requests of OpenAI Responses: types of the `openai` SDK.

Sources: SDK is the docstrings of `openai.types.responses`, WIRE docs/wires/responses.md.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from lab.fidelity.compare import Body, Equivalent, WireTable, drop_nulls
from lab.fidelity.sdk_types import TypeReader
from lab.fidelity.shapes import Struct
from streamlib import Prompt, Request, build

PNG: Final = "data:image/png;base64,iVBORw0KGgo="
PDF: Final = "data:application/pdf;base64,JVBERi0="
CLOSED: Final = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
VALUES: Final = {
    "model": ("any-model",),
    "file_data": (PDF,),
    "file_url": ("https://example.com/a.pdf",),
    "filename": ("a.pdf",),
    "image_url": ("https://example.com/a.png", PNG),
    "url": ("https://example.com/a",),
    "ToolSearchCall.arguments": ({"query": "text"},),
    "arguments": ("{}",),
    "encrypted_content": ("gAAA",),
}
LEFT_OUT: Final = frozenset[str]()


@cache
def request_type() -> Struct:
    """The type of a request."""
    params = pytest.importorskip("openai.types.responses.response_create_params")
    return TypeReader(VALUES, LEFT_OUT).struct(params.ResponseCreateParamsNonStreaming)


def build_again(prompt: Prompt) -> Request:
    """A request to a server that takes everything."""
    return build(
        prompt, f"custom:{prompt.model}", wire_api="responses", base_url="http://127.0.0.1"
    )


# --- completing a drawn body ---

FUNCTION: Final = {"type": "function", "name": "text", "parameters": CLOSED, "strict": True}
DONE: Final = "done"
CALLS: Final[dict[str, Body]] = {
    "function_call": {"name": "text", "arguments": "{}"},
    "custom_tool_call": {"name": "text", "input": "text"},
    "shell_call": {"action": {"commands": ["ls"]}},
    "apply_patch_call": {
        "status": "completed",
        "operation": {"type": "delete_file", "path": "a"},
    },
    "computer_call": {"id": "cu_1", "status": "completed", "pending_safety_checks": []},
    "local_shell_call": {
        "id": "lsh_1",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    "tool_search_call": {"execution": "client", "arguments": {}},
}
"""Kinds of calls that the caller answers, with fields that such a call needs."""

OUTPUTS: Final[dict[str, Body]] = {
    "function_call": {"output": DONE},
    "custom_tool_call": {"output": DONE},
    "shell_call": {"output": []},
    "apply_patch_call": {"status": "completed", "output": DONE},
    "computer_call": {"output": {"type": "computer_screenshot", "image_url": PNG}},
    "local_shell_call": {"output": DONE},
    "tool_search_call": {"execution": "client", "tools": []},
}
"""Kinds of calls, with fields of their outputs."""


def complete(body: Body) -> None:
    """Gives calls their outputs, outputs their calls, reasoning what it produced."""
    body.setdefault("model", "any-model")
    if "tool_choice" in body or "parallel_tool_calls" in body:
        body.setdefault("tools", [dict(FUNCTION)])
    items = body.setdefault("input", "hi")
    if isinstance(items, str):
        return
    if len(items) > 1:
        # what is left out would shift the items after it
        for item in items:
            _make_sendable(item)
    completed: list[Body] = [{"role": "user", "content": "hi"}]
    for number, item in enumerate(items):
        completed += _completed(item, f"call_{number}")
    body["input"] = completed


def _make_sendable(item: Body) -> None:
    if item.get("status") == "incomplete":
        item["status"] = "completed"
    if item.get("type") == "reasoning":
        item["encrypted_content"] = "gAAA"


def _completed(item: Body, call_id: str) -> list[Body]:
    kind = str(item.get("type"))
    if kind == "reasoning":
        if not item.get("encrypted_content"):
            # it is left out, and what it produced would move up
            return [item]
        return [item, {"type": "message", "role": "assistant", "content": "end"}]
    if kind == "mcp_approval_request":
        answer = {"type": "mcp_approval_response", "approval_request_id": item["id"]}
        return [item, {**answer, "approve": True}]
    if kind == "mcp_approval_response":
        request = {"type": "mcp_approval_request", "name": "text", "arguments": "{}"}
        request |= {"id": item["approval_request_id"], "server_label": "text"}
        return [request, item]
    is_hosted = kind.startswith("tool_search") and item.get("execution") != "client"
    call_kind = _answered_kind(kind)
    if kind in CALLS and not is_hosted:
        item["call_id"] = call_id
        return [item, _output_of(kind, call_id)]
    if kind == "function_call_output" and item.get("name") and not item.get("call_id"):
        # of an asynchronous tool
        return [item]
    if call_kind in CALLS and not is_hosted:
        item[_id_field(kind)] = call_id
        return [{"type": call_kind, "call_id": call_id, **CALLS[call_kind]}, item]
    return [item]


def _answered_kind(kind: str) -> str:
    """The kind of the call that an output answers."""
    if kind == "tool_search_output":
        return "tool_search_call"
    return kind.removesuffix("_output")


def _id_field(kind: str) -> str:
    """An output of a local shell names its call in `id`."""
    if kind == "local_shell_call_output":
        return "id"
    return "call_id"


def _output_of(kind: str, call_id: str) -> Body:
    output_kind = f"{kind}_output"
    if kind == "tool_search_call":
        output_kind = "tool_search_output"
    return {"type": output_kind, _id_field(output_kind): call_id, **OUTPUTS[kind]}


# --- equivalent forms ---


def texts_as_parts(body: Body) -> None:
    """`input` and `content` as lists; a message has a type, output text its annotations."""
    if isinstance(body["input"], str):
        body["input"] = [{"role": "user", "content": body["input"]}]
    for item in body["input"]:
        if "role" in item:
            item.setdefault("type", "message")
        if isinstance(item.get("content"), str):
            kind = "output_text" if item["role"] == "assistant" else "input_text"
            item["content"] = [{"type": kind, "text": item["content"]}]


def drop_defaults(body: Body) -> None:
    """Fields with the value that they have when they are absent."""
    for key in ("text", "reasoning", "prompt_cache_options"):
        if body.get(key) == {}:
            del body[key]
    text = body.get("text", {})
    if text.get("format") == {"type": "text"}:
        del text["format"]
        if not text:
            del body["text"]
    # 0 alternatives: the chosen tokens alone
    defaults: Body = {"stream": False, "instructions": "", "include": [], "top_logprobs": 0}
    defaults["tools"] = []
    if body.get("prompt"):
        # what a stored prompt has is replaced by an empty one
        del defaults["tools"], defaults["instructions"]
    for key, default in defaults.items():
        if key in body and body[key] == default:
            del body[key]
    for tool in body.get("tools", ()):
        if tool.get("format") == {"type": "text"}:
            del tool["format"]


def include_as_set(body: Body) -> None:
    """The elements of `include` by name."""
    if "include" in body:
        body["include"] = dict.fromkeys(body["include"], True)


def rename_user(body: Body) -> None:
    """The older name of `safety_identifier`."""
    if "user" in body and "safety_identifier" not in body:
        body["safety_identifier"] = body.pop("user")


def drop_response_fields(body: Body) -> None:
    """Ids and status of items that the server does not keep."""
    for item in body["input"]:
        for key in ("id", "namespace"):
            if item.get(key) == "":
                del item[key]
        for part in item.get("content") or ():
            if isinstance(part, dict) and part.get("logprobs") == []:
                del part["logprobs"]
        if item.get("type") in WITHOUT_ID:
            item.pop("id", None)
            item.pop("status", None)


WITHOUT_ID: Final = (
    "message",
    "reasoning",
    "function_call",
    "custom_tool_call",
    "function_call_output",
    "custom_tool_call_output",
    "compaction",
)
EQUIVALENTS: Final = (
    Equivalent("null / absent", "SDK: every such field is Optional", drop_nulls),
    Equivalent(
        "a string / a list of one text part; a message with and without type",
        "SDK, EasyInputMessageParam: content is a string or a list, type is not required",
        texts_as_parts,
    ),
    Equivalent(
        "stream: false, top_logprobs: 0, text.format: text, tools[].format: text, and empty "
        "instructions, lists, objects / absent",
        "SDK, response_create_params, CustomToolParam: the defaults; every key is optional",
        drop_defaults,
    ),
    Equivalent(
        "the order of include",
        "SDK, response_create_params: each element requests one more output",
        include_as_set,
    ),
    Equivalent(
        "user / safety_identifier",
        'SDK, response_create_params: user "is being replaced by safety_identifier"',
        rename_user,
    ),
    Equivalent(
        "id and status of messages, reasoning, calls, outputs; an empty id, namespace or "
        "logprobs / absent",
        'SDK: "Populated when items are returned via API"; WIRE R1: unknown without `store`',
        drop_response_fields,
    ),
)
ADDED: Final = {
    r"/input/\d+/status": "SDK: most calls and outputs of built-in tools require one",
    "/include/reasoning.encrypted_content": "WIRE S3: what is not stored comes back encrypted",
    "/include/message.output_text.logprobs": "SDK: top_logprobs sets only how many there are",
    r"/tools/\d+/strict": "WIRE S1: a missing one counts as true",
    r"/tools/\d+/parameters/additionalProperties": "WIRE S1: a strict schema is closed",
    r"/input/\d+/output/\d+/detail": "SDK, ResponseInputImageParam: required, auto",
    r"/input/\d+/content/\d+/annotations": "SDK, ResponseOutputTextParam: required",
    r"/input/\d+/(content|output)/\d+/filename": "WIRE: bytes of a file do not go without a name",
}
REPORTED: Final = {
    "input": ("/input", "/cache/breakpoints", "/tools"),
    "max_output_tokens": ("/max_output_tokens",),
    "instructions": ("/instructions",),
    "tools": ("/tools/*",),
    "tool_choice": ("/tool_choice",),
    "parallel_tool_calls": ("/parallel_tools",),
    "reasoning": ("/reasoning",),
    "text/format": ("/output_schema",),
    "text/verbosity": ("/verbosity",),
    "temperature": ("/temperature",),
    "top_p": ("/top_p",),
    "top_logprobs": ("/logprobs",),
    "safety_identifier": ("/user_id",),
    "prompt_cache_key": ("/conversation_id",),
    "prompt_cache_options": ("/cache",),
}
STATES: Final[tuple[Body, ...]] = (
    {"previous_response_id": "resp_1"},
    {"conversation": "conv_1"},
    {"conversation": {"id": "conv_1"}},
)
"""Fields that continue what the server stores."""
APPROVAL: Final = {
    "type": "mcp_approval_response",
    "approval_request_id": "mcpr_1",
    "approve": True,
}
CHAINED: Final = [
    {"model": "any-model", **state, "input": [output]}
    for state in STATES
    for output in (APPROVAL, *(_output_of(kind, "call_1") for kind in OUTPUTS))
]
TABLE: Final = WireTable(
    wire_api="responses",
    request=request_type,
    build=build_again,
    complete=complete,
    equivalents=EQUIVALENTS,
    added=ADDED,
    reported=REPORTED,
    turns="input",
    chained=CHAINED,
)
