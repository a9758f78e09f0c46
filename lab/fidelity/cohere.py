"""Requests of Cohere's v2 chat. Its SDK is not among the development dependencies: the types are
those of the parameters of `ClientV2.chat` in cohere 7.3.1; ``tests/real`` compares both.

Sources: SDK is ``cohere/types`` and ``cohere/v2/types``, DOCS docs.cohere.com/reference/chat, WIRE
docs/wires/cohere.md.
"""

from __future__ import annotations

from typing import Any, Final

from lab.fidelity.compare import Body, Equivalent, WireTable, drop_nulls
from lab.fidelity.shapes import Array, Choice, Field, Map, Scalar, Shape, Struct
from streamlib import Prompt, Request, build

TEXT: Final = Scalar(("text",))
SWITCH: Final = Scalar((True, False))
NUMBER: Final = Scalar((3,))
FRACTION: Final = Scalar((0.5,))
ANY: Final = Scalar(({"any": [1.0]},))
SCHEMA: Final = Scalar(({"type": "object", "properties": {"a": {"type": "string"}}},))


def struct(kind: str, required: tuple[str, ...] = (), /, **shapes: Shape) -> Struct:
    """A struct of the wire."""
    fields = {key: Field(shape, key in required) for key, shape in shapes.items()}
    return Struct(kind, lambda: fields)


def tagged(kind: str, /, **shapes: Shape) -> Struct:
    """A member of a union that is told apart by `type`; all of its fields are required."""
    return struct(f"{kind} content", ("type", *shapes), type=Scalar((kind,)), **shapes)


DOCUMENT: Final = struct("Document", ("data",), data=Map(ANY), id=TEXT)
TEXT_CONTENT: Final = tagged("text", text=TEXT)
IMAGE_URL: Final = struct(
    "ImageUrl",
    ("url",),
    url=Scalar(("https://example.com/a.png", "data:image/png;base64,iVBORw0KGgo=")),
    detail=Scalar(("auto", "low", "high")),
)
SOURCE: Final = Choice(
    (
        struct("ToolSource", ("type",), type=Scalar(("tool",)), id=TEXT, tool_output=Map(ANY)),
        struct("DocumentSource", ("type",), type=Scalar(("document",)), id=TEXT, document=Map(ANY)),
    )
)
CITATION: Final = struct(
    "Citation",
    ("start", "sources"),
    start=Scalar((0,)),
    end=Scalar((4,)),
    text=TEXT,
    sources=Array(SOURCE),
    content_index=Scalar((0,)),
    type=Scalar(("TEXT_CONTENT", "THINKING_CONTENT", "PLAN")),
)
CALL: Final = struct(
    "ToolCallV2",
    ("id", "type", "function"),
    id=TEXT,
    type=Scalar(("function",)),
    function=struct(
        "ToolCallV2Function", ("name", "arguments"), name=TEXT, arguments=Scalar(("{}",))
    ),
)
MESSAGES: Final = Choice(
    (
        struct(
            "UserChatMessageV2",
            ("role", "content"),
            role=Scalar(("user",)),
            content=Choice(
                (TEXT, Array(Choice((TEXT_CONTENT, tagged("image_url", image_url=IMAGE_URL)))))
            ),
        ),
        struct(
            "AssistantChatMessageV2",
            ("role",),
            role=Scalar(("assistant",)),
            tool_calls=Array(CALL),
            tool_plan=TEXT,
            content=Choice(
                (TEXT, Array(Choice((TEXT_CONTENT, tagged("thinking", thinking=TEXT)))))
            ),
            citations=Array(CITATION),
        ),
        struct(
            "SystemChatMessageV2",
            ("role", "content"),
            role=Scalar(("system",)),
            content=Choice((TEXT, Array(TEXT_CONTENT))),
        ),
        struct(
            "ToolChatMessageV2",
            ("role", "tool_call_id", "content"),
            role=Scalar(("tool",)),
            tool_call_id=TEXT,
            content=Choice(
                (TEXT, Array(Choice((TEXT_CONTENT, tagged("document", document=DOCUMENT)))))
            ),
        ),
    )
)
TOOL: Final = struct(
    "ToolV2",
    ("type",),
    type=Scalar(("function",)),
    function=struct(
        "ToolV2Function", ("name", "parameters"), name=TEXT, description=TEXT, parameters=SCHEMA
    ),
)
REQUEST: Final = struct(
    "ClientV2.chat",
    ("model", "messages"),
    model=Scalar(("any-model",)),
    messages=Array(MESSAGES),
    stream=SWITCH,
    tools=Array(TOOL),
    strict_tools=SWITCH,
    documents=Array(Choice((TEXT, DOCUMENT))),
    citation_options=struct(
        "CitationOptions", mode=Scalar(("ENABLED", "DISABLED", "FAST", "ACCURATE", "OFF"))
    ),
    response_format=Choice(
        (
            struct("TextResponseFormatV2", ("type",), type=Scalar(("text",))),
            struct(
                "JsonObjectResponseFormatV2",
                ("type",),
                type=Scalar(("json_object",)),
                json_schema=SCHEMA,
            ),
        )
    ),
    safety_mode=Scalar(("CONTEXTUAL", "STRICT", "OFF")),
    max_tokens=NUMBER,
    stop_sequences=Array(TEXT),
    temperature=FRACTION,
    seed=NUMBER,
    frequency_penalty=FRACTION,
    presence_penalty=FRACTION,
    k=NUMBER,
    p=FRACTION,
    logprobs=SWITCH,
    tool_choice=Scalar(("REQUIRED", "NONE")),
    thinking=struct(
        "Thinking", ("type",), type=Scalar(("enabled", "disabled")), token_budget=NUMBER
    ),
    priority=NUMBER,
)


def build_again(prompt: Prompt) -> Request:
    """A request to a server that takes everything."""
    return build(prompt, f"custom:{prompt.model}", wire_api="cohere", base_url="http://127.0.0.1")


# --- completing a drawn body ---


def complete(body: Body) -> None:
    """Gives messages a content, and calls and results each other."""
    if "tool_choice" in body and not body.get("tools"):
        function = {"name": "text", "parameters": {"type": "object"}}
        body["tools"] = [{"type": "function", "function": function}]
    for tool in body.get("tools", ()):
        tool.setdefault("function", {"name": "text", "parameters": {"type": "object"}})
    messages: list[Body] = [{"role": "user", "content": "hi"}]
    for number, message in enumerate(body["messages"]):
        if not message.get("content") and message["role"] != "tool":
            message["content"] = "text"
        messages += _completed(message, f"id_{number}")
    body["messages"] = messages


def _completed(message: Body, call_id: str) -> list[Body]:
    if message["role"] == "tool":
        message["tool_call_id"] = call_id
        return [{"role": "assistant", "tool_calls": [_call(call_id)]}, message]
    results: list[Body] = []
    for index, call in enumerate(message.get("tool_calls", ())):
        call["id"] = f"{call_id}_{index}"
        results.append({"role": "tool", "tool_call_id": call["id"], "content": "text"})
    return [message, *results]


def _call(call_id: str) -> Body:
    return {"id": call_id, "type": "function", "function": {"name": "text", "arguments": "{}"}}


# --- equivalent forms ---


def contents_as_lists(body: Body) -> None:
    """A text is a list of one content; a document or a result may be text, too."""
    for message in body["messages"]:
        content: Any = message.get("content")
        if isinstance(content, str) and content:
            message["content"] = [{"type": "text", "text": content}]
        elif content in ("", [{"type": "text", "text": ""}]):
            message["content"] = []
        if message.get("content") == [] and message["role"] == "assistant":
            del message["content"]


def drop_defaults(body: Body) -> None:
    """Drops fields with their default, and empty lists."""
    defaults: Body = {"stream": False, "logprobs": False, "strict_tools": False}
    for key, default in {**defaults, "tools": [], "stop_sequences": []}.items():
        if key in body and body[key] == default:
            del body[key]
    if not body.get("tools"):
        body.pop("strict_tools", None)
    for message in body["messages"]:
        for key in ("tool_calls", "citations", "tool_plan"):
            if message.get(key) in ([], ""):
                del message[key]


def place_citations(body: Body) -> None:
    """The index of the only content, and the order of citations, which their offsets give."""
    for message in body["messages"]:
        citations = message.get("citations", [])
        for citation in citations:
            if citation.get("content_index") == 0:
                del citation["content_index"]
        citations.sort(key=str)


EQUIVALENTS: Final = (
    Equivalent("null / absent", "SDK: every such field is Optional", drop_nulls),
    Equivalent("a text / a list of one text", "SDK, UserMessageV2Content", contents_as_lists),
    Equivalent(
        "stream, logprobs, strict_tools: false, and empty lists / absent",
        "DOCS: the defaults",
        drop_defaults,
    ),
    Equivalent(
        "citations by their content, with and without the index 0",
        "SDK, Citation.content_index is Optional; WIRE, Citations",
        place_citations,
    ),
)
ADDED: Final[dict[str, str]] = {
    r"/tools/\d+/function/parameters/(type|properties)": "DOCS: parameters are an object",
    r"/messages/\d+/citations/\d+/content_index": "SDK: Optional; responses of several contents "
    "have it",
}
REPORTED: Final = {
    "messages": ("/input", "/instructions", "/tools"),
    "tools": ("/tools/*",),
    "strict_tools": ("/tools",),
    "thinking": ("/reasoning", "/extra/thinking"),
    "logprobs": ("/logprobs",),
}
TABLE: Final = WireTable(
    wire_api="cohere",
    request=lambda: REQUEST,
    build=build_again,
    complete=complete,
    equivalents=EQUIVALENTS,
    added=ADDED,
    reported=REPORTED,
    turns="messages",
)
