"""Requests of OpenAI Chat Completions: types of the `openai` SDK.

Sources: SDK is the docstrings of `openai.types.chat`, DOCS developers.openai.com/api/docs/guides,
WIRE docs/wires/chat.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from lab.fidelity.compare import Body, Equivalent, WireTable, drop_nulls
from lab.fidelity.responses import CLOSED, PDF, PNG
from lab.fidelity.sdk_types import TypeReader
from lab.fidelity.shapes import Struct
from streamlib import Prompt, Request, build

VALUES: Final = {
    "model": ("any-model",),
    "file_data": (PDF,),
    "filename": ("a.pdf",),
    "url": ("https://example.com/a.png", PNG),
    "data": ("UklGRg==",),
    "arguments": ("{}",),
}


@cache
def request_type() -> Struct:
    """The type of a request."""
    params = pytest.importorskip("openai.types.chat.completion_create_params")
    return TypeReader(VALUES).struct(params.CompletionCreateParamsNonStreaming)


def build_again(prompt: Prompt) -> Request:
    """A request to OpenAI itself, and a model that takes everything."""
    return build(prompt, f"openai:{prompt.model}", wire_api="chat")


FUNCTION: Final = {"type": "function", "function": {"name": "text", "parameters": CLOSED}}


def complete(body: Body) -> None:
    """Gives calls their results and results their calls; choices their tools."""
    if {"tool_choice", "parallel_tool_calls", "function_call"} & body.keys():
        body.setdefault("tools", [FUNCTION])
    messages: list[Body] = [{"role": "user", "content": "hi"}]
    for number, message in enumerate(body["messages"]):
        if len(body["messages"]) > 1 and message["role"] == "assistant":
            # what is left out would shift the messages after it
            message.setdefault("content", "text")
        messages += _completed(message, f"id_{number}")
    body["messages"] = messages


def _completed(message: Body, call_id: str) -> list[Body]:
    results: list[Body] = []
    for index, call in enumerate(message.get("tool_calls") or ()):
        call["id"] = f"{call_id}_{index}"
        results.append({"role": "tool", "tool_call_id": call["id"], "content": "done"})
    if any("refusal" in part for part in message.get("content", ()) if isinstance(part, dict)):
        # one refusal in one form
        message.pop("refusal", None)
    if message.get("tool_calls"):
        # the older field of the same
        message.pop("function_call", None)
    if message.get("function_call"):
        results.append({"role": "function", "name": "text", "content": "done"})
    if message["role"] == "tool":
        message["tool_call_id"] = call_id
        function = {"name": "text", "arguments": "{}"}
        call = {"id": call_id, "type": "function", "function": function}
        return [{"role": "assistant", "tool_calls": [call]}, message]
    if message["role"] == "function":
        call = {"name": message["name"], "arguments": "{}"}
        return [{"role": "assistant", "function_call": call}, message]
    return [message, *results]


# --- equivalent forms ---


def modern_names(body: Body) -> None:
    """Functions as tools, and their calls and results by ids as the decoder generates them."""
    for function in body.pop("functions", ()):
        body.setdefault("tools", []).append({"type": "function", "function": function})
    choice = body.pop("function_call", None)
    if isinstance(choice, dict):
        choice = {"type": "function", "function": choice}
    if choice is not None:
        body.setdefault("tool_choice", choice)
    if "max_tokens" in body:
        body.setdefault("max_completion_tokens", body.pop("max_tokens"))
    if "user" in body:
        body.setdefault("safety_identifier", body.pop("user"))
    generated: list[str] = []
    for message in body["messages"]:
        if "function_call" in message:
            generated.append(f"call_{len(generated)}")
            call = {"type": "function", "function": message.pop("function_call")}
            message["tool_calls"] = [{"id": generated[-1], **call}]
        if message["role"] == "function":
            del message["name"]
            message |= {"role": "tool", "tool_call_id": generated[-1]}


def texts_as_strings(body: Body) -> None:
    """A list of one plain text as a string, a refusal as a key; `stop` as a list."""
    if isinstance(body.get("stop"), str):
        body["stop"] = [body["stop"]]
    for message in body["messages"]:
        match message.get("content"):
            case [{"type": "text", "text": str(text), **rest}] if not rest:
                message["content"] = text
            case []:
                message["content"] = ""
            case [{"type": "refusal", "refusal": str(refusal)}]:
                del message["content"]
                message["refusal"] = refusal
            case _:
                pass


def drop_defaults(body: Body) -> None:
    """Fields with the value that they have when they are absent."""
    for key, default in DEFAULTS.items():
        if body.get(key) == default:
            del body[key]
    json_schema = body.get("response_format", {}).get("json_schema", {})
    if json_schema.get("strict") is False:
        del json_schema["strict"]
    for tool in body.get("tools", ()):
        if tool.get("custom", {}).get("format") == {"type": "text"}:
            del tool["custom"]["format"]


DEFAULTS: Final[dict[str, Any]] = {
    "stop": [],
    "tools": [],
    "stream": False,
    "logprobs": False,
    "stream_options": {},
    "response_format": {"type": "text"},
}
EQUIVALENTS: Final = (
    Equivalent("null / absent", "SDK: every such field is Optional", drop_nulls),
    Equivalent(
        "functions, function_call, role function / tools, tool_choice, tool_calls, role tool; "
        "max_tokens / max_completion_tokens; user / safety_identifier",
        'SDK: each "is deprecated" or "is being replaced" by the other',
        modern_names,
    ),
    Equivalent(
        "a list of one text part, or of none / a string; a refusal part / refusal; one stop "
        "sequence / a list",
        "SDK: content is a string or a list of parts, stop a string or a list; refusal is the "
        "message that the part has too",
        texts_as_strings,
    ),
    Equivalent(
        "stream, logprobs, strict: false; format: text; empty stream_options, stop, tools / absent",
        "SDK, completion_create_params: the defaults; every key of stream_options is optional",
        drop_defaults,
    ),
)
ADDED: Final = {
    r"/tools/\d+/function/parameters(/type|/properties)?": (
        'SDK, FunctionDefinition: "omitting parameters defines an empty parameter list"'
    ),
    r"/tools/\d+/function/parameters/(additionalProperties|required)": (
        "DOCS, structured outputs: a strict schema is closed, all is required"
    ),
    r"/messages/\d+/content": "SDK: required unless there are calls",
    r"/messages/\d+/content/\d+/file/filename": "WIRE: bytes of a file do not go without a name",
}
REPORTED: Final = {
    "messages": ("/input", "/tools"),
    "tools": ("/tools/*",),
    "tool_choice": ("/tool_choice",),
    "parallel_tool_calls": ("/parallel_tools",),
    "response_format": ("/output_schema",),
    "reasoning_effort": ("/reasoning",),
    "max_completion_tokens": ("/max_output_tokens",),
    "stop": ("/stop",),
    "logprobs": ("/logprobs",),
    "top_logprobs": ("/logprobs",),
    "safety_identifier": ("/user_id",),
    "prompt_cache_key": ("/conversation_id",),
    **{
        name: (f"/{name}",)
        for name in (
            "temperature",
            "top_p",
            "presence_penalty",
            "frequency_penalty",
            "seed",
            "n",
            "verbosity",
            "metadata",
            "service_tier",
        )
    },
}
TABLE: Final = WireTable(
    wire_api="chat",
    request=request_type,
    build=build_again,
    complete=complete,
    equivalents=EQUIVALENTS,
    added=ADDED,
    reported=REPORTED,
    turns="messages",
)
