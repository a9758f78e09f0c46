"""What the two Bedrock wires share: the payloads of Converse, their pieces, and the failures that frames tell.

    {"contentBlockIndex":0,"delta":{"text":"Hi"},"p":"abcd"}                    one member a delta; `p` is padding
    :exception-type throttlingException  {"message":"Too many requests"}        a failure is a frame of its own

A value of type blob is base64 text. Where one comes in pieces, each piece is base64 of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.base64_text import joined_base64
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ParseFailure, malformed
from streamlib_parsers.items import (
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import SurrogateJoiner, decode_any, mark_surrogates
from streamlib_parsers.open_items import OpenItem

PADDING: Final = "p"
"""A member of random length in every payload, so that sizes on the network tell nothing."""

# --- payloads ---

HIGHEST_INDEX: Final = 1_000_000

Index: TypeAlias = Annotated[int, Meta(ge=0, le=HIGHEST_INDEX)]


class ReasoningText(Struct, gc=False):
    """`reasoningText` of a whole body."""

    text: str | None = None
    signature: str | None = None


class ReasoningContent(Struct, gc=False, rename="camel"):
    """Flat in a stream, nested in whole bodies; `data` is what some gateways call `redactedContent`."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None
    data: str | None = None
    reasoning_text: ReasoningText | None = None


class ToolUseDelta(Struct, gc=False):
    """A fragment of argument text."""

    input: str | None = None


class Delta(Struct, gc=False, rename="camel"):
    """One member, by the wire's promise."""

    text: str | None = None
    tool_use: ToolUseDelta | None = None
    reasoning_content: ReasoningContent | None = None
    tool_result: list[JsonObject] | None = None
    citation: JsonObject | None = None
    image: JsonObject | None = None


class CitationsContent(Struct, gc=False):
    """`citationsContent` of a whole body."""

    content: list[JsonObject] = []
    citations: list[JsonObject] = []


class BlockDelta(Struct, gc=False, rename="camel"):
    """Payload of `contentBlockDelta`."""

    content_block_index: Index
    delta: Delta


decode_delta: Final = msgspec.json.Decoder(BlockDelta).decode
decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
"""An object whose values stay the provider's own bytes."""
REFUSED: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What a decoder raises on foreign bytes."""


# --- blocks: from the start of a block to its item ---


class Begun(NamedTuple):
    """An item and what its start says already: `said` by members of a delta, `arguments` in the provider's own bytes."""

    item: ResponseItem
    said: Sequence[tuple[str, Any]] = ()
    arguments: bytes = b""


CALLS: Final = (FunctionCall, ServerToolCall)
NO_TEXT: Final = ReasoningText()


def is_sealed(thought: ReasoningContent) -> bool:
    """Whether nothing of the thought can be read."""
    readable = thought.text or (thought.reasoning_text or NO_TEXT).text
    return not readable and (thought.redacted_content or thought.data) is not None


def _text_block(raw: Raw, rest: JsonObject) -> Begun:
    return Begun(
        Message("assistant", native=rest or None), [("text", msgspec.json.decode(raw, type=str))]
    )


def _citations_block(raw: Raw, rest: JsonObject) -> Begun:
    cited = msgspec.json.decode(raw, type=CitationsContent)
    native = rest_of({**rest, **msgspec.json.decode(raw)}, "content", "citations")
    texts = [("text", string_at(piece, "text")) for piece in cited.content]
    return Begun(
        Message("assistant", native=native),
        [*texts, *(("citation", one) for one in cited.citations)],
    )


def _reasoning_block(raw: Raw, rest: JsonObject) -> Begun:
    thought = msgspec.json.decode(raw, type=ReasoningContent)
    native = rest_of(
        {**rest, **msgspec.json.decode(raw)}, *ReasoningContent.__struct_encode_fields__
    )
    item = Reasoning(redacted=is_sealed(thought), native=native)
    return Begun(item, [] if thought == ReasoningContent() else [("reasoning_content", thought)])


def _tool_use_block(raw: Raw, rest: JsonObject) -> Begun:
    members = decode_members(raw)
    given = bytes(members.pop("input", b""))
    use = {**rest, **decoded(members)}
    kind = string_at(use, "type")
    native = rest_of(use, "toolUseId", "name", *(("type",) if kind == "tool_use" else ()))
    make = ServerToolCall if kind == "server_tool_use" else FunctionCall
    item = make(call_id=string_at(use, "toolUseId"), name=string_at(use, "name"), native=native)
    return Begun(item, arguments=b"" if given == b"null" else given)


def _tool_result_block(raw: Raw, rest: JsonObject) -> Begun:
    result = {**rest, **msgspec.json.decode(raw, type=dict[str, Any])}
    content = result.get("content")
    item = ServerToolResult(
        call_id=string_at(result, "toolUseId"),
        name=string_at(result, "type").removesuffix("_result"),
        output=content if isinstance(content, list) else [],
        native=rest_of(result, "toolUseId", "content"),
    )
    return Begun(item)


def _image_block(raw: Raw, rest: JsonObject) -> Begun:
    image = msgspec.json.decode(raw, type=dict[str, Any])
    shown = Image(media_type=f"image/{string_at(image, 'format') or '*'}")
    item = Message(
        role="assistant",
        content=(shown,),
        native=rest_of({**rest, **image}, "format", "source", "error"),
    )
    return Begun(item, [("image", image)] if image.get("source") or image.get("error") else [])


BLOCKS: Final[dict[str, Callable[[Raw, JsonObject], Begun]]] = {
    "text": _text_block,
    "citationsContent": _citations_block,
    "reasoningContent": _reasoning_block,
    "toolUse": _tool_use_block,
    "toolResult": _tool_result_block,
    "image": _image_block,
}
"""Members of a start, and of a whole body's content, that have an item of their own. Every other one is an Opaque."""


# --- which delta goes with which item ---


def is_text(item: ResponseItem) -> bool:
    """A message that is no image."""
    return type(item) is Message and not item.content


def media_type_of(item: ResponseItem) -> str | None:
    """Of an image block, else None."""
    shown = item.content[0] if isinstance(item, Message) and item.content else None
    return shown.media_type if isinstance(shown, Image) else None


FITS: Final[dict[str, Callable[[ResponseItem], bool]]] = {
    "text": is_text,
    "tool_use": lambda item: isinstance(item, CALLS),
    "reasoning_content": lambda item: isinstance(item, Reasoning),
    "tool_result": lambda item: isinstance(item, ServerToolResult),
    "citation": is_text,
    "image": lambda item: media_type_of(item) is not None,
}
"""Members of a delta: the items they can be applied to."""


def _text_alone(delta: Delta) -> str | None:
    return delta.text if delta.citation is None else None


def _arguments_alone(delta: Delta) -> str | None:
    return delta.tool_use.input if delta.tool_use is not None else None


def _thought_alone(delta: Delta) -> str | None:
    thought = delta.reasoning_content
    if thought is None or thought.signature is not None or thought.reasoning_text is not None:
        return None
    return thought.text if thought.redacted_content is None and thought.data is None else None


GROWTH: Final[
    Sequence[tuple[Callable[[ResponseItem], bool], Callable[[Delta], str | None], str]]
] = (
    (FITS["text"], _text_alone, "text"),
    (FITS["tool_use"], _arguments_alone, "arguments"),
    (FITS["reasoning_content"], _thought_alone, "reasoning"),
)
"""Items that grow by text: the text of a delta that brings nothing else, and the verb of the assembly that says it."""

LAZY: Final[dict[str, Callable[[Any], ResponseItem]]] = {
    "text": lambda _: Message("assistant"),
    "citation": lambda _: Message("assistant"),
    "reasoning_content": lambda thought: Reasoning(redacted=is_sealed(thought)),
}
"""Deltas that open their block."""


# --- blobs and results in pieces ---


JOINS: Final[dict[str, Callable[[list[str], OpenItem], JsonObject]]] = {
    "signature": lambda pieces, _: {"signature": "".join(pieces)},
    "encrypted_content": lambda pieces, _: {"encrypted_content": joined_base64(pieces)},
    "image": lambda pieces, block: {
        "content": (Image(data=joined_base64(pieces), media_type=block.part(0).media_type),)
    },
}


def folded_results(frames: list[list[JsonObject]]) -> list[JsonObject]:
    """The content of a tool result from its deltas: text that goes on in the next frame is one text."""
    texts: list[list[str]] = []
    folded: list[JsonObject] = []
    for frame in frames:
        for place, piece in enumerate(frame):
            goes_on = place == 0 and folded and piece.keys() == folded[-1].keys() == {"text"}
            if not goes_on:
                folded.append(piece)
                texts.append([])
            texts[-1].append(string_at(piece, "text"))
    return [
        {"text": "".join(said)} if len(said) > 1 else piece
        for piece, said in zip(folded, texts, strict=True)
    ]


# --- reading JSON ---


def payload_of(assembly: EventAssembler, data: bytes) -> tuple[JsonObject, bytes]:
    """A payload as a dict, and its bytes, both with emoji halves marked. Raises `ParseFailure(malformed)` on anything but an object."""
    if (fixed := mark_surrogates(data)) is not None:
        assembly.surrogates = assembly.surrogates or SurrogateJoiner()
        data = fixed
    value = decode_any(data)
    if not isinstance(value, dict):
        raise malformed("an event is not a JSON object", data)
    return value, data


def json_or_text(data: bytes) -> Any:
    """The JSON value of a payload we do not know, or its text where it is none."""
    try:
        return decode_any(data)
    except ParseFailure:
        return data.decode("utf-8", "replace")


def string_at(block: dict[str, Any], key: str) -> str:
    """The text at `key`, "" for anything else."""
    value = block.get(key)
    return value if isinstance(value, str) else ""


def rest_of(block: dict[str, Any], *typed: str) -> JsonObject | None:
    """What no typed field holds."""
    return {key: value for key, value in block.items() if key not in typed} or None


def at_path(value: Any, path: str) -> Any:
    """What stands at a dotted path of a JSON value, or None; digits step into lists."""
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit():
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def index_of(value: JsonObject, data: bytes) -> int:
    """`contentBlockIndex`; a float with a whole value is taken for an integer."""
    index = value.get("contentBlockIndex")
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    if type(index) is not int or not 0 <= index <= HIGHEST_INDEX:
        raise malformed("an event without a valid contentBlockIndex", data)
    return index


def members_of(data: bytes | Raw, name: str) -> dict[str, Raw]:
    """The members of the object `name`, in the provider's own bytes, without nulls."""
    raw = decode_members(data).get(name, Raw(b"{}"))
    return {key: value for key, value in decode_members(raw).items() if bytes(value) != b"null"}


def decoded(members: dict[str, Raw]) -> JsonObject:
    """The members' values."""
    return {key: msgspec.json.decode(value) for key, value in members.items()}


# --- failures ---


def failure_of(event: str, data: bytes) -> ErrorInfo:
    """The failure that a frame of type `exception` or `error` tells: its name stands in the event, its words in the payload."""
    kind, _, name = event.partition(":")
    status = int(name) if kind == "error" and name.isdigit() and len(name) == 3 else None
    return classify(
        status, data, {":exception-type" if kind == "exception" else ":error-code": name}
    )


def no_answer(answer: Mapping[str, Any], body: bytes) -> ParseFailure:
    """A body that is no answer: AWS's own errors are `{"message":…}` and nothing else that could tell them."""
    said = isinstance(answer, dict) and answer.keys() & {"message", "Message"}
    return (
        ParseFailure(classify(None, body))
        if said
        else malformed("the body is not an answer of Bedrock", body)
    )
