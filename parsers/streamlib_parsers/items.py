"""The items of a conversation: messages, reasoning, calls, their outputs.

A history is a plain list of items in wire order. One wire block is one item; builders group
adjacent items into the messages of their wire. Three rules hold for every kind:

* A typed field always wins: editing `content` changes what is replayed.
* `native` holds the other fields that the provider sent, never a copy of a typed field.
* `signature` and `encrypted_content` are opaque: they go back to the origin that made them, byte
  for byte, or not at all.

Each docstring names the wire fields that a field comes from, as ``wire: field``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from streamlib_parsers.built_in_calls import (
    ApplyPatchCall,
    ApplyPatchCallOutput,
    ApprovalRequest,
    ApprovalResponse,
    ComputerCall,
    ComputerCallOutput,
    ShellCall,
    ShellCallOutput,
    ShellResult,
    repeated_keys,
)
from streamlib_parsers.item_base import (
    Audio,
    ContentPart,
    Document,
    Image,
    Item,
    ItemStatus,
    JsonObject,
    Media,
    Origin,
    Part,
    Refusal,
    Role,
    Text,
    WireApi,
    parse_arguments,
    snake_case,
    store_tuple,
    tag,
)
from streamlib_parsers.tool_specs import CacheMark, ToolOptions, ToolSpec
from streamlib_parsers.upward import upward

__all__ = [
    "BUILT_IN_CALLS",
    "BUILT_IN_OUTPUTS",
    "ApplyPatchCall",
    "ApplyPatchCallOutput",
    "ApprovalRequest",
    "ApprovalResponse",
    "Audio",
    "BuiltInCall",
    "BuiltInOutput",
    "CacheMark",
    "CallOutput",
    "Compaction",
    "ComputerCall",
    "ComputerCallOutput",
    "ContentPart",
    "CustomToolCall",
    "CustomToolCallOutput",
    "Document",
    "FunctionCall",
    "FunctionCallOutput",
    "Image",
    "Item",
    "ItemStatus",
    "JsonObject",
    "Media",
    "Message",
    "Opaque",
    "Origin",
    "Output",
    "Part",
    "PendingCall",
    "Reasoning",
    "Refusal",
    "ResponseItem",
    "Role",
    "ServerToolCall",
    "ServerToolResult",
    "ShellCall",
    "ShellCallOutput",
    "ShellResult",
    "Text",
    "ToolOptions",
    "ToolSearchCall",
    "ToolSearchOutput",
    "ToolSpec",
    "WireApi",
    "assistant",
    "parse_arguments",
    "snake_case",
    "tag",
    "user",
    "with_origin",
]


class Message(Item, frozen=True):
    """A message.

    messages: text block · responses: message item · chat: delta.content, refusal, audio ·
    gemini: text, inlineData parts.

    Attributes:
        role: who wrote it.
        content: its parts.
        phase: responses: ``commentary`` (progress) or ``final_answer``; sent back unchanged.
    """

    role: Role
    content: Sequence[ContentPart] = ()
    phase: str | None = None

    def __post_init__(self) -> None:
        if type(self.content) is not tuple:  # most are: no call for each message
            if isinstance(self.content, (str, bytes, Part)):
                raise TypeError(
                    f"content of a Message is a list of parts, not {self.content!r:.100}: "
                    "write `user(…)` or `assistant(…)`"
                )
            store_tuple(self, "content")

    @property
    def text(self) -> str:
        """The text parts, joined without a separator."""
        return "".join([part.text for part in self.content if isinstance(part, Text)])


class Reasoning(Item, frozen=True):
    """Reasoning.

    messages: thinking, redacted_thinking · responses: reasoning · chat: reasoning_content and its
    other names · gemini: thought parts.

    Attributes:
        content: the readable reasoning.
        summary: paragraphs (responses: summary[].text).
        encrypted_content: responses: encrypted_content · messages: redacted_thinking.data.
        redacted: the provider encrypted the reasoning; nothing readable was sent.
    """

    content: str = ""
    summary: Sequence[str] = ()
    encrypted_content: str | None = None
    redacted: bool = False

    def __post_init__(self) -> None:
        if type(self.summary) is not tuple:
            store_tuple(self, "summary")

    @property
    def text(self) -> str:
        """Summaries, then content, joined without a separator."""
        return "".join(self.summary) + self.content


class FunctionCall(Item, frozen=True):
    """A call of one of your functions.

    messages: tool_use · responses: function_call · chat: tool_calls[] · gemini: functionCall ·
    converse: toolUse.

    Attributes:
        call_id: the id that its output repeats; generated where the wire has none.
        name: the function's name.
        arguments: the text exactly as received; of a JSON value its own bytes (``1.0`` and the
            order of keys survive).
        namespace: the namespace of the function (responses: namespace).
    """

    call_id: str
    name: str
    arguments: str = ""
    namespace: str | None = None

    def parsed(self) -> JsonObject:
        """The arguments as a dict; `""` is `{}`.

        Raises:
            InvalidArguments: they are not a JSON object.
        """
        return parse_arguments(self.arguments, self.name)

    def output(self, output: Output | Any, *, is_error: bool = False) -> FunctionCallOutput:
        """The output item of this call.

        Args:
            output: a text or content parts; any other value is sent as JSON.
            is_error: whether the call failed.

        Raises:
            TypeError: it cannot be written as JSON.
        """
        return FunctionCallOutput(self.call_id, _as_output(output), is_error)

    def output_mcp(self, result: Any) -> FunctionCallOutput:
        """The output item of a call that a tool of an MCP server answered.

        Texts, images, audio and embedded files become content parts; where there are none, the
        structured content is sent as JSON.

        Args:
            result: a ``CallToolResult`` of the MCP SDK, or its JSON as a dict.

        Raises:
            TypeError: it is not the result of a tool.
        """
        output, is_error = upward("tools.mcp", "mcp_output")(result)
        return FunctionCallOutput(self.call_id, output, is_error)


class FunctionCallOutput(Item, frozen=True):
    """The output of a function call.

    messages: tool_result · responses: function_call_output · chat: role tool ·
    gemini: functionResponse · converse: toolResult.
    """

    call_id: str
    output: Output = ""
    is_error: bool = False

    def __post_init__(self) -> None:
        store_tuple(self, "output")


class CustomToolCall(Item, frozen=True):
    """A call with free text instead of JSON. responses: custom_tool_call · chat:
    tool_calls[].custom."""

    call_id: str
    name: str
    input: str = ""
    namespace: str | None = None

    def output(self, output: Output | Any, *, is_error: bool = False) -> CustomToolCallOutput:
        """The output item of this call, as of `FunctionCall.output`."""
        return CustomToolCallOutput(self.call_id, _as_output(output), is_error)


class CustomToolCallOutput(Item, frozen=True):
    """The output of a custom tool call. responses: custom_tool_call_output."""

    call_id: str
    output: Output = ""
    is_error: bool = False

    def __post_init__(self) -> None:
        store_tuple(self, "output")


class ServerToolCall(Item, frozen=True):
    """A call of a tool that the provider runs itself; the caller sends no output for it.

    messages: server_tool_use, mcp_tool_use · responses: web_search_call, mcp_call, … ·
    gemini: executableCode, toolCall · converse: toolUse with type server_tool_use.
    `native["type"]` is the wire's own kind.
    """

    call_id: str
    name: str
    arguments: str = ""

    def parsed(self) -> JsonObject:
        """The arguments as a dict, as in `FunctionCall.parsed`."""
        return parse_arguments(self.arguments, self.name)


class ServerToolResult(Item, frozen=True):
    """The result of a provider's own tool.

    messages: *_tool_result · gemini: codeExecutionResult, toolResponse · converse: toolResult.
    `output` is the wire's own JSON value; `native["type"]` its kind.
    """

    call_id: str
    name: str = ""
    output: Any = None


class Compaction(Item, frozen=True):
    """The provider's summary of earlier items. messages: compaction · responses: compaction."""

    content: str | None = None
    encrypted_content: str | None = None


class ToolSearchCall(Item, frozen=True):
    """A search for tools that the caller runs. responses: tool_search_call, execution client.

    Attributes:
        call_id: the id that its output repeats.
        arguments: what to search for: JSON, exactly as received.
    """

    call_id: str
    arguments: str = ""

    def parsed(self) -> JsonObject:
        """The arguments as a dict, as in `FunctionCall.parsed`."""
        return parse_arguments(self.arguments, "tool_search")

    def output(self, tools: Sequence[ToolSpec]) -> ToolSearchOutput:
        """The output item of this call: the tools that were found, which the model may call."""
        return ToolSearchOutput(self.call_id, tools, native=repeated_keys(self, "call_id"))


class ToolSearchOutput(Item, frozen=True):
    """The tools that a search found. responses: tool_search_output, execution client."""

    call_id: str
    tools: Sequence[ToolSpec] = ()

    def __post_init__(self) -> None:
        store_tuple(self, "tools")


class Opaque(Item, frozen=True):
    """An item of a kind that this version does not know, kept as the wire's own object.

    It stands in its place in the response and in the history, is saved with it, and goes back
    unchanged to the origin that made it; any other origin gets the request without it, and the
    report names it. An unknown *event* is `Passthrough`.

    Attributes:
        kind: the wire's name of the kind.
        payload: the wire's object.
    """

    kind: str
    payload: JsonObject

    @property
    def answers(self) -> str | None:
        """The id of the call that this item is the output of; None for any other item.

        Histories saved before `ComputerCall` and its like answer those calls by such items.
        """
        if not self.kind.endswith(("_output", "_response")):
            return None
        for key in ("call_id", "approval_request_id", "id"):
            if isinstance(self.payload.get(key), str):
                return str(self.payload[key])
        return None


BuiltInCall: TypeAlias = (
    ComputerCall | ShellCall | ApplyPatchCall | ApprovalRequest | ToolSearchCall
)
"""A call of a tool that the provider defines and the caller runs."""

BuiltInOutput: TypeAlias = (
    ComputerCallOutput
    | ShellCallOutput
    | ApplyPatchCallOutput
    | ApprovalResponse
    | ToolSearchOutput
)
"""What the caller sends back for a `BuiltInCall`."""

BUILT_IN_CALLS: Final = (ComputerCall, ShellCall, ApplyPatchCall, ApprovalRequest, ToolSearchCall)
BUILT_IN_OUTPUTS: Final = (
    ComputerCallOutput,
    ShellCallOutput,
    ApplyPatchCallOutput,
    ApprovalResponse,
    ToolSearchOutput,
)

CallOutput: TypeAlias = FunctionCallOutput | CustomToolCallOutput | BuiltInOutput
"""What the caller sends back for a `PendingCall`."""

PendingCall: TypeAlias = FunctionCall | CustomToolCall | BuiltInCall
"""A call that waits for an output that the caller sends."""

ResponseItem: TypeAlias = (
    Message
    | Reasoning
    | FunctionCall
    | FunctionCallOutput
    | CustomToolCall
    | CustomToolCallOutput
    | ServerToolCall
    | ServerToolResult
    | Compaction
    | BuiltInCall
    | BuiltInOutput
    | Opaque
)

Output: TypeAlias = str | Sequence[ContentPart]
"""Output of a tool: text, or content parts (text, images, documents)."""


def user(text: str | ContentPart = "", *parts: str | ContentPart) -> Message:
    """A user message: `user("what is this?", Image(data=…, media_type="image/png"))`.

    Texts and parts may be in any order.

    Raises:
        TypeError: something is neither a text nor a part.
    """
    return Message("user", _content("user", text, parts))


def assistant(text: str | ContentPart = "", *parts: str | ContentPart) -> Message:
    """An assistant message, for examples in a prompt: `assistant("Paris")`."""
    return Message("assistant", _content("assistant", text, parts))


def _content(maker: str, text: Any, parts: tuple[Any, ...]) -> tuple[ContentPart, ...]:
    """Texts and parts as the parts of a message; without its first text if that is empty."""
    if text != "":
        parts = (text, *parts)
    content: list[ContentPart] = []
    for part in parts:
        if isinstance(part, str):
            content.append(Text(part))
        elif isinstance(part, (Text, Image, Document, Audio, Refusal)):
            content.append(part)
        else:
            raise TypeError(
                f"{maker}() takes texts and parts, not {part!r:.100}: "
                f'write `{maker}("…", Image(…))`, or Document, Audio'
            )
    return tuple(content)


def _as_output(output: Any) -> Output:
    """What a program gives as the output of a call; JSON where it is no text and no parts."""
    if isinstance(output, str):
        return output
    if isinstance(output, (list, tuple)) and all(isinstance(part, Part) for part in output):
        return output
    converted: Output = upward("tools.calls", "as_content")(output)
    return converted


def with_origin(item: ResponseItem, origin: Origin) -> ResponseItem:
    """A copy of `item` with its origin set."""
    return replace(item, origin=origin)
