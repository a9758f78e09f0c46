"""What every item is made of: origin, content parts, the fields that all items have.

`items` holds the kinds of items, and is the module to import from.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar

from msgspec import Struct, StructMeta
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


SIGNATURES: Final[dict[str, str]] = {
    "iVBORw": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi": "application/pdf",
    "SUQz": "audio/mpeg",
    "T2dnUw": "audio/ogg",
}
"""The first base64 characters of a format -> its media type. RIFF holds sound as well: see
`detected_type`."""

_BASE64_STARTS: Final = tuple(signature.encode() for signature in SIGNATURES)

_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/_=\s-]")
"""A character that neither alphabet of base64 has."""

_NAME_CHARACTERS: Final = 4096
"""Where such a character is looked for: no name of a file, or its address, is longer."""


def detected_type(data: str) -> str:
    """The media type that the first bytes of base64 text show; "" if they show none."""
    # RIFF holds sound as well as images: bytes 9 to 11 are "AVE" of WAVE, or "EBP" of WEBP.
    if data.startswith("UklGR") and data[12:16] == "QVZF":
        return "audio/wav"
    for signature, detected in SIGNATURES.items():
        if data.startswith(signature):
            return detected
    return ""


FileContent: TypeAlias = str | bytes | bytearray | memoryview
"""What `data` of a part is made from: base64 text, or bytes. Fields have one type, so the classes
below state it for type checkers in an ``__init__``; a Struct makes its own."""

P = ParamSpec("P")
M = TypeVar("M", bound=Struct)


class NamedFields(StructMeta):
    """Names the field that was meant where a program writes one that a Struct has not.

    `_meant` of the class has the names of other libraries; of other names the nearest field is
    named. msgspec's own error has only the name that was written.
    """

    if not TYPE_CHECKING:  # see `CheckedMeta`

        def __call__(cls, *positional: Any, **named: Any) -> Any:  # noqa: N805  # of classes
            """Makes a value, and names what was meant by an unknown field."""
            for name in named:
                if name not in cls.__struct_fields__:
                    raise TypeError(_unknown_field(cls, name))
            return super().__call__(*positional, **named)


def _unknown_field(kind: type[Struct], name: str) -> str:
    from difflib import get_close_matches  # for misspelt names alone

    elsewhere: dict[str, str] = getattr(kind, "_meant", {})
    fields = kind.__struct_fields__
    near = [elsewhere[name]] if name in elsewhere else get_close_matches(name, fields, 1)
    meant = f"{near[0]}=…" if near else f"one of {', '.join(fields)}"
    return f"{kind.__name__} has no option {name!r}: write {meant}"


class CheckedMeta(StructMeta):
    """Checks each part, or prompt, that a program makes by calling its class.

    A Struct has no ``__init__`` of its own, and its ``__post_init__`` also runs where a saved
    history is decoded: what was received once must load, however odd it is.
    """

    if not TYPE_CHECKING:  # whose result type would be that of each class

        def __call__(cls, *positional: Any, **named: Any) -> Any:  # noqa: N805  # of classes
            """Makes a part, and checks it."""
            part = super().__call__(*positional, **named)
            part._check()
            return part


def unchecked(kind: Callable[P, M]) -> Callable[P, M]:
    """The class of a part or a prompt, to make one of what a server or a client wrote.

    Nothing of that may be lost, so it is taken as it is: `unchecked(Image)(data=…)`.
    """
    return partial(StructMeta.__call__, kind)  # type: ignore[arg-type]  # each is a class


def restored(kind: type[M], fields: JsonObject) -> M:
    """A part or a prompt that was pickled or copied."""
    return unchecked(kind)(**fields)


class Media(Part, frozen=True, metaclass=CheckedMeta):
    """Base of the parts with bytes.

    Calling the class raises a ValueError where no provider could read the part: neither or several
    of `data`, `url` and `file_id`, or a text that is no base64 (the name of a file). An `Image`
    whose bytes are no PNG, JPEG, GIF or WebP needs a `media_type`.

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
        if content.startswith(_BASE64_STARTS):
            # Encoded twice, it would be sent without an error, and be unreadable as an image.
            raise TypeError("data is base64 text as bytes: pass it as text, `data.decode()`")
        force_setattr(self, "data", b2a_base64(content, newline=False).decode("ascii"))

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return restored, (type(self), fields)

    def _check(self) -> None:
        """Raises where a program made a part that no provider could read.

        Raises:
            ValueError: The message says what was probably meant.
        """
        kind = type(self).__name__
        for name in ("url", "file_id", "media_type", "name"):
            value: Any = getattr(self, name)
            if not isinstance(value, (str, NoneType)):
                raise TypeError(f"{kind}: {name} is a text, not {value!r:.100}")
        present = [name for name in ("data", "url", "file_id") if getattr(self, name)]
        if len(present) > 1:
            names = " and ".join(present)
            raise ValueError(f"{kind} has one of data=, url= and file_id=, not {names}")
        if not present and not self._may_be_empty():
            raise ValueError(f"{kind} has neither data= nor url= nor file_id=: give one of them")
        if self.data:
            _check_base64(kind, self.data)

    def _may_be_empty(self) -> bool:
        return False


def _check_base64(kind: str, data: str) -> None:
    """Raises where the text is the address or the name of a file."""
    beginning = data[:_NAME_CHARACTERS]
    if _NO_BASE64.search(beginning) is None:
        return
    if beginning.startswith("data:"):
        raise ValueError(f"{kind}: data= is the base64 text alone, what follows the comma")
    if beginning.startswith(("http://", "https://")):
        raise ValueError(f"{kind}: an address belongs in url=, not in data=")
    raise ValueError(
        f"{kind}: data= is bytes or their base64 text, not the name of a file or any other text: "
        f"{kind}(data=Path(…).read_bytes())"
    )


class Image(Media, frozen=True):
    """An image.

    messages: image · responses: input_image · chat: image_url · gemini: inlineData, fileData ·
    converse: image · ollama: images.
    """

    def _check(self) -> None:
        Media._check(self)
        # Without either it would be called a PNG. Sound and documents have formats without a mark.
        if self.data and not self.media_type and not detected_type(self.data).startswith("image/"):
            raise ValueError(
                "Image: the bytes are no PNG, JPEG, GIF or WebP picture: "
                "name their format with media_type="
            )

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

    def _may_be_empty(self) -> bool:
        return bool(self.name or self.transcript)  # Chat takes the id of an audio alone

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
        agent: name of the agent that made it; None for the one that was asked, the root (responses:
            agent.agent_name, other than ``/root``).
    """

    id: str | None = None
    status: ItemStatus = "completed"
    choice: int = 0
    signature: str | None = None
    response_id: str | None = None
    origin: Origin | None = None
    native: JsonObject | None = None
    agent: str | None = None


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
    if value is None:
        owner = type(struct).__name__
        raise TypeError(f'{field} of a {owner} is not None: write "" where there is none')
    if kind is list or not isinstance(value, (str, Mapping)):
        force_setattr(struct, field, tuple(value))
