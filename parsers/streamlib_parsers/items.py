"""The conversation: one `ResponseItem` for each thing that was said, thought, called or answered.

A history is a plain list of items in the order the wire gave them. One wire block is one item; builders regroup
adjacent items into the messages of the wire they write. Three rules hold for every kind:

* A typed field always wins. Editing `content` changes what is replayed.
* `native` is the rest: what the provider sent about this item and no typed field holds, never a copy of a typed field.
* `signature` and `encrypted_content` are opaque. They go back to the origin that made them, byte for byte, or not at all.

Each docstring names the wire fields a member comes from, as `wire: field`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from streamlib_parsers.errors import InvalidArguments, ParseFailure
from streamlib_parsers.json_text import decode_any, scrub

WireApi: TypeAlias = Literal[
    "messages", "responses", "chat", "gemini", "converse", "invoke", "ollama"
]
"""The wire APIs: Anthropic Messages; OpenAI Responses; OpenAI Chat Completions and its dialects; Gemini generateContent;
Bedrock ConverseStream; Bedrock InvokeModelWithResponseStream; Ollama /api/chat."""

Role: TypeAlias = Literal["user", "assistant", "system", "developer"]
ItemStatus: TypeAlias = Literal["completed", "incomplete"]
JsonObject: TypeAlias = dict[str, Any]


def snake_case(name: str) -> str:
    """`FunctionCallOutput` -> `function_call_output`: the `type` of a saved item, part or event."""
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def tag(kind: type[Any]) -> str:
    """The `type` under which a Struct of a tagged union is written."""
    return str(kind.__struct_config__.tag)


class Origin(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Where an item was made. Signed and encrypted state is only sent back to the origin that made it.

    `model` is the name that was asked for, not the one the response reports (those carry dates and routes).
    """

    wire_api: WireApi | None = None
    provider: str | None = None
    endpoint: str | None = None
    model: str | None = None
    account: str | None = None


class ToolSpec(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A tool offered to the model: `schema` is the JSON schema of its arguments.

    `native`: a hosted or versioned tool of one wire, given as that wire's own object (`{"type": "web_search_20250305", …}`)
    and sent as it stands. `format`: a free-form tool (Responses and Chat `custom`), its grammar object or `{"type": "text"}`.
    """

    name: str
    description: str | None = None
    schema: JsonObject | None = None
    strict: bool | None = None
    format: JsonObject | None = None
    native: JsonObject | None = None


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

    native: what the wire says about the part and no typed field holds (`detail` of an image, `citations` of a document). A part
    of a kind we do not know is a `Text` of its JSON, with the wire's own object, `type` and all, in `native`.
    """

    native: JsonObject | None = None


class Text(Part, frozen=True):
    """messages: text · responses: input_text, output_text · chat: text · gemini: text · converse: text, citationsContent.

    `annotations`: citations as the wire's own objects (messages: citations · responses, chat: annotations · converse: citations).
    """

    text: str
    annotations: Sequence[JsonObject] = ()

    def __post_init__(self) -> None:
        _store_tuple(self, "annotations")


class Media(Part, frozen=True):
    """Base of the parts that carry bytes: exactly one of `data` (base64 text, as the wires send it), `url` and `file_id`."""

    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    media_type: str | None = None
    name: str | None = None


class Image(Media, frozen=True):
    """messages: image · responses: input_image · chat: image_url · gemini: inlineData, fileData · converse: image · ollama: images."""


class Document(Media, frozen=True):
    """messages: document · responses: input_file · chat: file · gemini: inlineData, fileData · converse: document.

    `text/plain` and `text/markdown` documents carry their text base64-encoded in `data` like any other.
    """


class Audio(Media, frozen=True):
    """chat: input_audio, audio · gemini: inlineData audio/* · `name` holds the id under which Chat keeps an answer's audio."""

    transcript: str | None = None


class Refusal(Part, frozen=True):
    """responses: refusal part · chat: message.refusal. The model declined, in words."""

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
    """What every item has.

    id: the wire's id of the item (responses: id), None where the wire has none.
    status: `incomplete` where the stream was cut, or arguments are not whole JSON. An incomplete call is never callable.
    choice: chat: choices[].index · gemini: candidates[].index.
    signature: messages: thinking.signature · gemini: thoughtSignature of the part · converse: reasoningText.signature.
    response_id: id of the response it came in; set by `accumulate`.
    """

    id: str | None = None
    status: ItemStatus = "completed"
    choice: int = 0
    signature: str | None = None
    response_id: str | None = None
    origin: Origin | None = None
    native: JsonObject | None = None


class Message(Item, frozen=True):
    """messages: text block · responses: message item · chat: delta.content, refusal, audio · gemini: text, inlineData parts.

    phase: responses: `commentary` (progress) or `final_answer`; sent back unchanged.
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
    """messages: thinking, redacted_thinking · responses: reasoning · chat: reasoning_content and its kin · gemini: thought parts.

    summary: responses: summary[].text. encrypted_content: responses: encrypted_content · messages: redacted_thinking.data.
    redacted: the provider sealed the thought itself, nothing readable was sent.
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
    """messages: tool_use · responses: function_call · chat: tool_calls[] · gemini: functionCall · converse: toolUse.

    `arguments` is the text exactly as received; where the wire sends a JSON value, its own bytes (`1.0` and key order survive).
    """

    call_id: str
    name: str
    arguments: str = ""

    def parsed(self) -> JsonObject:
        """The arguments as a dict; `""` is `{}`. Raises `InvalidArguments` on anything that is not a JSON object."""
        return parse_arguments(self.arguments, self.name)

    def output(self, output: Output, *, is_error: bool = False) -> FunctionCallOutput:
        """The item that answers this call."""
        return FunctionCallOutput(self.call_id, output, is_error)


class FunctionCallOutput(Item, frozen=True):
    """messages: tool_result · responses: function_call_output · chat: role tool · gemini: functionResponse · converse: toolResult."""

    call_id: str
    output: Output = ""
    is_error: bool = False

    def __post_init__(self) -> None:
        _store_tuple(self, "output")


class CustomToolCall(Item, frozen=True):
    """A call with free text instead of JSON. responses: custom_tool_call · chat: tool_calls[].custom."""

    call_id: str
    name: str
    input: str = ""

    def output(self, output: Output, *, is_error: bool = False) -> CustomToolCallOutput:
        """The item that answers this call."""
        return CustomToolCallOutput(self.call_id, output, is_error)


class CustomToolCallOutput(Item, frozen=True):
    """responses: custom_tool_call_output."""

    call_id: str
    output: Output = ""
    is_error: bool = False

    def __post_init__(self) -> None:
        _store_tuple(self, "output")


class ServerToolCall(Item, frozen=True):
    """A tool the provider runs itself; never to be answered by the caller.

    messages: server_tool_use, mcp_tool_use · responses: web_search_call, mcp_call, … · gemini: executableCode, toolCall ·
    converse: toolUse with type server_tool_use. `native["type"]` is the wire's own kind.
    """

    call_id: str
    name: str
    arguments: str = ""

    def parsed(self) -> JsonObject:
        """The arguments as a dict, as in `FunctionCall.parsed`."""
        return parse_arguments(self.arguments, self.name)


class ServerToolResult(Item, frozen=True):
    """What a provider's own tool gave. messages: *_tool_result · gemini: codeExecutionResult, toolResponse · converse: toolResult.

    `output` is the wire's own JSON value; `native["type"]` its kind.
    """

    call_id: str
    name: str = ""
    output: Any = None


class Compaction(Item, frozen=True):
    """The provider's summary of what came before. messages: compaction · responses: compaction."""

    content: str | None = None
    encrypted_content: str | None = None


class Opaque(Item, frozen=True):
    """A kind this version does not know: kept whole, in order, and replayed to the same origin. `payload` is the wire's object."""

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
"""What a tool gave: text, or content parts (text, images, documents)."""


def parse_arguments(arguments: str, name: str = "") -> JsonObject:
    """Argument text -> dict. `""` is `{}`; raises `InvalidArguments` on broken JSON and on anything but an object."""
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
    """The usual user turn: `user("what is this?", Image(data=…, media_type="image/png"))`."""
    said = (Text(text),) if text else ()
    return Message("user", (*said, *parts))


def with_origin(item: ResponseItem, origin: Origin) -> ResponseItem:
    """A copy of `item` that says where it was made."""
    return replace(item, origin=origin)


def _store_tuple(struct: Struct, field: str) -> None:
    """Sequences are accepted, tuples are stored, so that frozen means frozen."""
    value: Any = getattr(struct, field)
    if type(value) is not tuple and not isinstance(value, (str, Mapping)):
        force_setattr(struct, field, tuple(value))
