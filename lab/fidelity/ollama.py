"""Requests of Ollama's /api/chat. Its SDK is not among the development dependencies: the types are
those of `api.ChatRequest` in Ollama's server (api/types.go, v0.12).

Sources: API is docs/api.md of Ollama, GO api/types.go, WIRE docs/wires/ollama.md.
"""

from __future__ import annotations

from typing import Final

from lab.fidelity.compare import Body, Equivalent, WireTable, drop_nulls
from lab.fidelity.sdk_types import BASE64
from lab.fidelity.shapes import Array, Choice, Field, Scalar, Shape, Struct
from streamlib import Prompt, Request, build

TEXT: Final = Scalar(("text",))
SWITCH: Final = Scalar((True, False))
NUMBER: Final = Scalar((3,))
SCHEMA: Final = Scalar(({"type": "object", "properties": {"a": {"type": "string"}}},))
ANY: Final = Scalar(({"any": [1.0]},))


def struct(kind: str, required: tuple[str, ...] = (), /, **shapes: Shape) -> Struct:
    """A struct of the wire."""
    fields = {key: Field(shape, key in required) for key, shape in shapes.items()}
    return Struct(kind, lambda: fields)


CALL: Final = struct(
    "ToolCall",
    ("function",),
    id=TEXT,
    function=struct(
        "ToolCallFunction", ("name", "arguments"), index=NUMBER, name=TEXT, arguments=ANY
    ),
)
MESSAGE: Final = struct(
    "Message",
    ("role", "content"),
    role=Scalar(("user", "assistant", "system", "tool")),
    content=TEXT,
    thinking=TEXT,
    images=Array(Scalar(BASE64)),
    tool_calls=Array(CALL),
    tool_name=TEXT,
    tool_call_id=TEXT,
)
TOOL: Final = struct(
    "Tool",
    ("type", "function"),
    type=Scalar(("function",)),
    items=ANY,
    function=struct("ToolFunction", ("name",), name=TEXT, description=TEXT, parameters=SCHEMA),
)
NUMBERS: Final = (
    "numa num_ctx num_batch num_gpu main_gpu use_mmap num_thread num_keep seed num_predict top_k "
    "top_p min_p tfs_z typical_p repeat_last_n temperature repeat_penalty presence_penalty "
    "frequency_penalty mirostat mirostat_tau mirostat_eta penalize_newline draft_num_predict"
)
OPTIONS: Final = struct(
    "Options",
    stop=Choice((TEXT, Array(TEXT))),
    **dict.fromkeys(NUMBERS.split(), NUMBER),
)
REQUEST: Final = struct(
    "ChatRequest",
    ("model", "messages"),
    model=Scalar(("any-model",)),
    messages=Array(MESSAGE),
    stream=SWITCH,
    format=Choice((Scalar(("json", "")), SCHEMA)),
    keep_alive=Scalar(("5m", 0, -1)),
    tools=Array(TOOL),
    options=OPTIONS,
    think=Scalar((True, False, "low", "medium", "high", "max")),
    truncate=SWITCH,
    shift=SWITCH,
    logprobs=SWITCH,
    top_logprobs=NUMBER,
    _debug_render_only=SWITCH,
)


def build_again(prompt: Prompt) -> Request:
    """A request to Ollama."""
    return build(prompt, f"ollama:{prompt.model}", wire_api="ollama")


def complete(body: Body) -> None:
    """Gives calls their results, and results their calls."""
    messages: list[Body] = [{"role": "user", "content": "hi"}]
    for number, message in enumerate(body["messages"]):
        if message["role"] != "assistant":
            message.pop("tool_calls", None)
            message.pop("thinking", None)
        if message["role"] != "tool":
            message.pop("tool_name", None)
            message.pop("tool_call_id", None)
        messages += _completed(message, f"id_{number}")
    body["messages"] = messages


def _completed(message: Body, call_id: str) -> list[Body]:
    if message["role"] == "tool":
        name = message.setdefault("tool_name", "text")
        call: Body = {"function": {"name": name, "arguments": {}}}
        if "tool_call_id" in message:
            call["id"] = message["tool_call_id"] = call_id
        return [{"role": "assistant", "content": "", "tool_calls": [call]}, message]
    results: list[Body] = []
    for index, call in enumerate(message.get("tool_calls", ())):
        result = {"role": "tool", "tool_name": call["function"]["name"], "content": "text"}
        if "id" in call:
            call["id"] = result["tool_call_id"] = f"{call_id}_{index}"
        results.append(result)
    return [message, *results]


def drop_defaults(body: Body) -> None:
    """Drops fields with their default; one stop sequence is a list."""
    for key, default in (("format", ""), ("logprobs", False), ("stream", True), ("tools", [])):
        if key in body and body[key] == default:
            del body[key]
    for message in body["messages"]:
        for key, empty in (("images", []), ("tool_calls", []), ("thinking", "")):
            if message.get(key) == empty:
                del message[key]
    options = body.get("options", {})
    if not options:
        body.pop("options", None)
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]


def drop_positions(body: Body) -> None:
    """`function.index`: the call's place in the list, which it has anyway."""
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            call["function"].pop("index", None)


EQUIVALENTS: Final = (
    Equivalent("null / absent", "GO: omitempty of every such field", drop_nulls),
    Equivalent(
        "stream: true, logprobs: false, no format, tools, options, images, calls, thinking / "
        "absent; one stop sequence / list",
        "API: the defaults; GO, omitempty; Options.FromMap reads a list",
        drop_defaults,
    ),
    Equivalent("a call with and without its index", "GO: the position in the list", drop_positions),
)
ADDED: Final = {
    r"/messages/\d+/tool_calls/\d+/(id|type)": "GO: calls have an id and a type in responses",
    r"/messages/\d+/tool_call_id": "GO: a result names its call by it, or by tool_name",
    r"/tools/\d+/function/parameters/(type|properties)": "API: parameters are an object",
}
REPORTED: Final = {
    "messages": ("/input", "/instructions", "/tools"),
    "tools": ("/tools/*",),
    "think": ("/reasoning",),
}
TABLE: Final = WireTable(
    wire_api="ollama",
    request=lambda: REQUEST,
    build=build_again,
    complete=complete,
    equivalents=EQUIVALENTS,
    added=ADDED,
    reported=REPORTED,
    turns="messages",
)
