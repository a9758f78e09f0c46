"""What every item is made of: origin, content parts, the fields that all items have.

`items` holds the kinds of items, and is the module to import from.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from streamlib_parsers.errors import InvalidArguments, ParseFailure
from streamlib_parsers.json_text import decode_any, scrub

WireApi: TypeAlias = Literal[
    "messages",
    "responses",
    "chat",
    "gemini",
    "interactions",
    "converse",
    "invoke",
    "ollama",
    "cohere",
]
"""The wire APIs: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and its dialects,
Gemini generateContent, Gemini Interactions, Bedrock ConverseStream, Bedrock
InvokeModelWithResponseStream, Ollama /api/chat, Cohere /v2/chat."""

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
        if type(self.annotations) is not tuple:  # most are: no call for each text
            store_tuple(self, "annotations")


BASE64_STARTS: Final = (b"iVBORw0K", b"/9j/", b"R0lGOD", b"UklGR", b"JVBERi", b"SUQz", b"T2dnUw")
"""How the base64 text of PNG, JPEG, GIF, RIFF (WebP, WAV), PDF, MP3 and Ogg files begins."""


FileContent: TypeAlias = str | bytes | bytearray | memoryview
"""What `data` of a part is made from: base64 text, or bytes. Fields have one type, so the classes
below state it for type checkers in an ``__init__``; a Struct makes its own."""


class Media(Part, frozen=True):
    """Base of the parts with bytes.

    Attributes:
        data: base64 text, as the wires send it; exactly one of `data`, `url` and `file_id` is set.
            Bytes of a file are accepted, and stored as base64 text.
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
        # Annotated as text, but a caller may pass the bytes of a file.
        data: Any = self.data
        if data is None or isinstance(data, str):
            return
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data is bytes, or their base64 text, not {type(data).__name__}")
        content = bytes(data)
        if content.startswith(BASE64_STARTS):
            # Encoded twice, it would be sent without an error, and be unreadable as an image.
            raise TypeError("data is base64 text as bytes: pass it as text, `data.decode()`")
        force_setattr(self, "data", b2a_base64(content, newline=False).decode("ascii"))


class Image(Media, frozen=True):
    """An image.

    messages: image · responses: input_image · chat: image_url · gemini: inlineData, fileData ·
    converse: image · ollama: images.
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            data: FileContent | None = None,
            url: str | None = None,
            file_id: str | None = None,
            media_type: str | None = None,
            name: str | None = None,
            *,
            native: JsonObject | None = None,
        ) -> None: ...


class Document(Media, frozen=True):
    """A document.

    messages: document · responses: input_file · chat: file · gemini: inlineData, fileData ·
    converse: document. Documents of text (``text/plain``, ``text/markdown``) hold it
    base64-encoded in `data` like any other.
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            data: FileContent | None = None,
            url: str | None = None,
            file_id: str | None = None,
            media_type: str | None = None,
            name: str | None = None,
            *,
            native: JsonObject | None = None,
        ) -> None: ...


class Audio(Media, frozen=True):
    """Audio. chat: input_audio, audio · gemini: inlineData audio/*.

    Attributes:
        transcript: what is spoken in it. `name` holds the id of a Chat response's audio.
    """

    transcript: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            data: FileContent | None = None,
            url: str | None = None,
            file_id: str | None = None,
            media_type: str | None = None,
            name: str | None = None,
            transcript: str | None = None,
            *,
            native: JsonObject | None = None,
        ) -> None: ...


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


def store_tuple(struct: Struct, field: str) -> None:
    """Stores a sequence as a tuple, so that a frozen struct cannot be changed through it."""
    value: Any = getattr(struct, field)
    kind = type(value)
    if kind is tuple:
        return
    # A list first: decoded histories have one each, and the other question takes longest.
    if kind is list or not isinstance(value, (str, Mapping)):
        force_setattr(struct, field, tuple(value))
