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

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from streamlib_parsers.errors import InvalidArguments, ParseFailure
from streamlib_parsers.hosted_tools import HostedName, HostedTool
from streamlib_parsers.json_text import decode_any, scrub

WireApi: TypeAlias = Literal[
    "messages", "responses", "chat", "gemini", "converse", "invoke", "ollama"
]
"""The wire APIs: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and its dialects,
Gemini generateContent, Bedrock ConverseStream, Bedrock InvokeModelWithResponseStream, Ollama
/api/chat."""

Role: TypeAlias = Literal["user", "assistant", "system", "developer"]
ItemStatus: TypeAlias = Literal["completed", "incomplete"]
JsonObject: TypeAlias = dict[str, Any]


def snake_case(name: str) -> str:
    """`FunctionCallOutput` gives ``function_call_output``: the `type` of a saved item, part or
    event."""
    parts: list[str] = []
    for index, character in enumerate(name):
        if character.isupper() and index:
            parts.append("_")
        parts.append(character.lower())
    return "".join(parts)


def tag(kind: type[Any]) -> str:
    """The `type` under which a Struct of a tagged union is written."""
    return str(kind.__struct_config__.tag)


class Origin(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Where an item was made. Signed and encrypted state goes back only to the origin that made it.

    Attributes:
        wire_api: the wire of the response.
        provider: the provider's name.
        endpoint: the base URL.
        model: the name that was requested; responses report names with dates and routes.
        account: the account of the request, where the provider has one.
    """

    wire_api: WireApi | None = None
    provider: str | None = None
    endpoint: str | None = None
    model: str | None = None
    account: str | None = None


class CacheMark(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """The prompt is cached up to here.

    messages: cache_control · converse: cachePoint.

    Attributes:
        ttl: how long, as the wire writes it ("5m", "1h"); None: the provider's default.
    """

    ttl: str | None = None


class ToolOptions(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """What some wires let a tool say beyond its signature. A wire that lacks one reports it.

    Attributes:
        defer_loading: the model sees the tool only once a search found it.
            messages, responses: defer_loading.
        eager_input_streaming: arguments are streamed before they are known to be valid.
            messages: eager_input_streaming.
        input_examples: arguments of example calls. messages: input_examples.
        allowed_callers: who may call it, as the wire writes it.
            messages, responses: allowed_callers.
        output_schema: JSON Schema of its output. responses: output_schema ·
            gemini: responseJsonSchema.
        native: further keys of the tool, as `native_wire` writes them.
        native_wire: the only wire that `native` is for; None: any.
    """

    defer_loading: bool | None = None
    eager_input_streaming: bool | None = None
    input_examples: Sequence[JsonObject] = ()
    allowed_callers: Sequence[str] = ()
    output_schema: JsonObject | None = None
    native: JsonObject | None = None
    native_wire: WireApi | None = None

    def __post_init__(self) -> None:
        _store_tuple(self, "input_examples")
        _store_tuple(self, "allowed_callers")


class ToolSpec(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A tool offered to the model.

    Attributes:
        name: the function's name.
        description: what it does, for the model.
        schema: JSON Schema of its arguments.
        strict: the arguments must follow the schema exactly.
        format: makes it a free-form tool (Responses and Chat `custom`): its grammar object, or
            `{"type": "text"}`.
        native: a hosted or versioned tool of one wire, as that wire's own object
            (`{"type": "computer_20250124", …}`): sent unchanged there, and to no other wire.
        native_wire: the wire that `native` is of; None: the one that has such a tool, or the one
            that the prompt is sent to. Set by `parse_request`.
        provider_run: a tool that the provider runs itself, in no wire's words: see `hosted`.
        tools: makes it a namespace of functions (Responses: namespace). Other wires get them one
            by one, under names with the namespace's before them.
        cache: caches the prompt up to this tool.
        options: what some wires let a tool say beyond the rest.
    """

    name: str
    description: str | None = None
    schema: JsonObject | None = None
    strict: bool | None = None
    format: JsonObject | None = None
    native: JsonObject | None = None
    native_wire: WireApi | None = None
    provider_run: HostedTool | None = None
    tools: Sequence[ToolSpec] = ()
    cache: CacheMark | None = None
    options: ToolOptions | None = None

    def __post_init__(self) -> None:
        _store_tuple(self, "tools")

    @classmethod
    def hosted(
        cls,
        name: HostedName,
        *,
        max_uses: int | None = None,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
        location: dict[str, str] | None = None,
        stores: Sequence[str] = (),
    ) -> ToolSpec:
        """A tool that the provider runs itself, for any wire.

        A target that lacks the tool, the limit or the location gets the request without it, and
        the report names that. A restriction to domains or stores that a target lacks is an error
        when the request is built.

        Args:
            name: `web_search`, `web_fetch`, `code_execution` or `file_search`.
            max_uses: how often it may be called in one response.
            allowed_domains: the only domains to search or fetch from.
            blocked_domains: domains never to search or fetch from.
            location: where the user is (``city``, ``region``, ``country``, ``timezone``).
            stores: the file stores to search.

        Raises:
            ValueError: there is no such tool, or no such key of a location.
        """
        tool = HostedTool(name, max_uses, allowed_domains, blocked_domains, location, stores)
        return cls(name, provider_run=tool)


class Part(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
    kw_only=True,
    tag_field="type",
    tag=snake_case,
):
    """Base of the content parts.

    Attributes:
        native: fields of the part that no typed field holds (`detail` of an image, `citations` of a
            document). A part of an unknown kind is a `Text` of its JSON, with the complete wire
            object in `native`.
    """

    native: JsonObject | None = None


class Text(Part, frozen=True):
    """A text.

    messages: text · responses: input_text, output_text · chat: text · gemini: text ·
    converse: text, citationsContent.

    Attributes:
        text: the text.
        annotations: citations as the wire's own objects (messages: citations · responses, chat:
            annotations · converse: citations).
    """

    text: str
    annotations: Sequence[JsonObject] = ()

    def __post_init__(self) -> None:
        _store_tuple(self, "annotations")


class Media(Part, frozen=True):
    """Base of the parts with bytes.

    Attributes:
        data: base64 text, as the wires send it; exactly one of `data`, `url` and `file_id` is set.
        url: where the bytes are.
        file_id: the provider's id of an uploaded file.
        media_type: such as ``image/png``.
        name: a file name.
    """

    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    media_type: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        # What a caller passes is not what the annotation says: bytes are the first mistake.
        data: Any = self.data
        if data is not None and not isinstance(data, str):
            raise TypeError(
                f"data is base64 text, not {type(data).__name__}: "
                "of bytes, `base64.b64encode(data).decode()`"
            )


class Image(Media, frozen=True):
    """An image.

    messages: image · responses: input_image · chat: image_url · gemini: inlineData, fileData ·
    converse: image · ollama: images.
    """


class Document(Media, frozen=True):
    """A document.

    messages: document · responses: input_file · chat: file · gemini: inlineData, fileData ·
    converse: document. Documents of text (``text/plain``, ``text/markdown``) hold it
    base64-encoded in `data` like any other.
    """


class Audio(Media, frozen=True):
    """Audio. chat: input_audio, audio · gemini: inlineData audio/*.

    Attributes:
        transcript: what is spoken in it. `name` holds the id of a Chat response's audio.
    """

    transcript: str | None = None


class Refusal(Part, frozen=True):
    """The text with which a model declines. responses: refusal part · chat: message.refusal."""

    refusal: str


ContentPart: TypeAlias = Text | Image | Document | Audio | Refusal


class Item(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
    kw_only=True,
    tag_field="type",
    tag=snake_case,
):
    """Fields of every item.

    Attributes:
        id: the wire's id of the item (responses: id); None where the wire has none.
        status: `incomplete` where the stream was truncated, or arguments are not complete JSON. An
            incomplete call is never callable.
        choice: which choice it belongs to (chat: choices[].index · gemini: candidates[].index).
        signature: messages: thinking.signature · gemini: thoughtSignature of the part ·
            converse: reasoningText.signature.
        response_id: id of the response it came in; set by `accumulate`.
        origin: where it was made.
        native: fields of the wire's object that no typed field holds.
    """

    id: str | None = None
    status: ItemStatus = "completed"
    choice: int = 0
    signature: str | None = None
    response_id: str | None = None
    origin: Origin | None = None
    native: JsonObject | None = None


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
        _store_tuple(self, "content")

    @property
    def text(self) -> str:
        """The text parts, joined without a separator."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


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
        _store_tuple(self, "summary")

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

    def output(self, output: Output, *, is_error: bool = False) -> FunctionCallOutput:
        """The output item of this call."""
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
        _store_tuple(self, "output")


class CustomToolCall(Item, frozen=True):
    """A call with free text instead of JSON. responses: custom_tool_call · chat:
    tool_calls[].custom."""

    call_id: str
    name: str
    input: str = ""
    namespace: str | None = None

    def output(self, output: Output, *, is_error: bool = False) -> CustomToolCallOutput:
        """The output item of this call."""
        return CustomToolCallOutput(self.call_id, output, is_error)


class CustomToolCallOutput(Item, frozen=True):
    """The output of a custom tool call. responses: custom_tool_call_output."""

    call_id: str
    output: Output = ""
    is_error: bool = False

    def __post_init__(self) -> None:
        _store_tuple(self, "output")


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


class Opaque(Item, frozen=True):
    """An item of a kind this version does not know, replayed unchanged to the same origin.

    Attributes:
        kind: the wire's name of the kind.
        payload: the wire's object.
    """

    kind: str
    payload: JsonObject


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
    | Opaque
)

Output: TypeAlias = str | Sequence[ContentPart]
"""Output of a tool: text, or content parts (text, images, documents)."""


def parse_arguments(arguments: str, name: str = "") -> JsonObject:
    """Argument text as a dict; `""` is `{}`.

    Raises:
        InvalidArguments: the text is malformed JSON, or not an object.
    """
    try:
        value = scrub(decode_any((arguments or "{}").encode("utf-8", "surrogatepass")))
    except ParseFailure as failure:
        raise InvalidArguments(
            f"arguments of {name!r} are {failure.info.message}", arguments
        ) from None
    if not isinstance(value, dict):
        raise InvalidArguments(
            f"arguments of {name!r} are {type(value).__name__}, not an object", arguments
        )
    return value


def user(text: str = "", *parts: ContentPart) -> Message:
    """A user message: `user("what is this?", Image(data=…, media_type="image/png"))`."""
    if not text:
        return Message("user", parts)
    return Message("user", (Text(text), *parts))


def with_origin(item: ResponseItem, origin: Origin) -> ResponseItem:
    """A copy of `item` with its origin set."""
    return replace(item, origin=origin)


def _store_tuple(struct: Struct, field: str) -> None:
    """Stores a sequence as a tuple, so that a frozen struct cannot be changed through it."""
    value: Any = getattr(struct, field)
    if type(value) is not tuple and not isinstance(value, (str, Mapping)):
        force_setattr(struct, field, tuple(value))
