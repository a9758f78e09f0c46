"""A Bedrock Converse request as a `Prompt`: the inverse of `build.py`.

An assistant turn is read by the parser of responses, so that what a client sends back is the item
it once received: one block, one item, in order, with its signature and its arguments byte for byte.
The path names the model, and whether a stream is wanted. What no field of `Prompt` holds stays in
`extra`, which the builder merges into the body again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.json_objects import rest_of, without_keys
from streamlib.request.prompt import Prompt
from streamlib.wires.cache_marks import cache_options
from streamlib.wires.claude_betas import take_betas
from streamlib.wires.converse.build_parts import (
    AUDIO_FORMATS,
    DOCUMENT_FORMATS,
    DOCUMENT_KEYS,
    IMAGE_FORMATS,
)
from streamlib.wires.converse.settings import MODEL_FIELDS, SETTINGS
from streamlib.wires.model_turns import body_fields, items_of
from streamlib.wires.routes import route
from streamlib.wires.settings import take
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    Audio,
    CacheMark,
    ContentPart,
    Document,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Opaque,
    Origin,
    Output,
    ResponseItem,
    Text,
    ToolOptions,
    ToolSpec,
)
from streamlib_parsers.notes import BESIDE, with_note
from streamlib_parsers.protocol import parse_body

ORIGIN: Final = Origin("converse")
OBJECTS: Final = (
    "inferenceConfig",
    "toolConfig",
    "outputConfig",
    "serviceTier",
    MODEL_FIELDS,
)
"""Keys of the body whose values are objects with settings."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt of a request."""
    fields, turns = body_fields(body, "messages")
    for key in OBJECTS:
        if fields.get(key) is None:
            fields.pop(key, None)
        elif not isinstance(fields[key], dict):
            raise TypeError(f"{key} is not an object")
    reader = _Reader()
    instructions = reader.read_system(fields)
    for turn in msgspec.json.decode(turns, type=list[dict[str, Raw]]):
        reader.read_turn(turn)
    tools = reader.read_tools(take(fields, "toolConfig.tools") or [])
    betas = take_betas(fields.get(MODEL_FIELDS) or {})
    model, stream = None, None
    matched = route(path)
    if matched is not None:
        model, stream = matched.model, matched.stream
    return unchecked(Prompt)(
        input=reader.items,
        instructions=instructions,
        tools=tools,
        cache=cache_options(reader.marked, reader.instructions_mark, None),
        model=model,
        stream=stream,
        headers=betas,
        **SETTINGS.read(fields),
    )


# --- turns ---


class _Reader:
    """Reads turns into items, and records after which items there is a cache point."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        """The history so far; each turn appends to it."""
        self.marked: dict[int, CacheMark] = {}
        """Index of an item -> the cache point after it."""
        self.instructions_mark: CacheMark | None = None
        """The cache point after the instructions."""

    def read_system(self, fields: JsonObject) -> str | None:
        """The instructions; further texts become items.

        Blocks other than text have no item: they stay in `fields`.
        """
        blocks = fields.pop("system", None) or []
        instructions: str | None = None
        has_other_blocks = False
        for block in blocks:
            if not block.keys() <= {"text", "cachePoint"}:
                has_other_blocks = True
            text = block.get("text") or _guarded_text(block)
            if "cachePoint" in block and not _is_plain_mark(block):
                has_other_blocks = True
            if "cachePoint" in block and self.items:
                self._mark_last_item(block["cachePoint"])
            elif "cachePoint" in block:
                self.instructions_mark = _cache_mark(block["cachePoint"])
            elif instructions is None:
                instructions = text
            elif text:
                self.items.append(Message("system", (Text(text),), origin=ORIGIN))
        if has_other_blocks:
            # the builder merges `extra` over its own `system`
            fields["system"] = blocks
        return instructions

    def read_tools(self, tools: list[JsonObject]) -> list[ToolSpec]:
        """The tools; a cache point belongs to the tool before it."""
        specs: list[ToolSpec] = []
        for tool in tools:
            if "cachePoint" in tool and not _is_plain_mark(tool):
                specs.append(ToolSpec("cachePoint", native=tool, native_wire="converse"))
            elif "cachePoint" not in tool:
                specs.append(_tool(tool))
            elif specs:
                mark = _cache_mark(tool["cachePoint"])
                specs[-1] = msgspec.structs.replace(specs[-1], cache=mark)
        return specs

    def read_turn(self, turn: dict[str, Raw]) -> None:
        """Reads one message; each cache point ends a run of blocks."""
        role: Any = msgspec.json.decode(turn["role"], type=str)
        blocks: list[Raw] = []
        for raw in msgspec.json.decode(turn["content"], type=list[Raw]):
            members = msgspec.json.decode(raw, type=dict[str, Raw])
            if "cachePoint" not in members:
                blocks.append(raw)
                continue
            if not _is_plain_mark(msgspec.json.decode(raw)):
                self._read_blocks(role, blocks)
                blocks = []
                block = msgspec.json.decode(raw)
                self.items.append(Opaque("cachePoint", block, origin=ORIGIN, native={"role": role}))
                continue
            self._read_blocks(role, blocks)
            blocks = []
            self._mark_last_item(msgspec.json.decode(members["cachePoint"]))
        self._read_blocks(role, blocks)
        if bytes(turn["content"]).strip() == b"[]":
            self.items.append(Message(role, origin=ORIGIN))

    def _mark_last_item(self, point: Any) -> None:
        if self.items:
            self.marked[len(self.items) - 1] = _cache_mark(point)

    def _read_blocks(self, role: str, blocks: list[Raw]) -> None:
        if not blocks:
            return
        if role == "assistant":
            self.items.extend(_assistant_items(blocks))
            return
        decoded = [msgspec.json.decode(raw, type=dict[str, Any]) for raw in blocks]
        self.items.extend(_user_items(role, decoded))


def _is_plain_mark(block: JsonObject) -> bool:
    """Whether a `CacheMark` holds all that a cache point says."""
    point = block["cachePoint"] or {}
    return len(block) == 1 and point.keys() <= {"type", "ttl"}


def _cache_mark(point: Any) -> CacheMark:
    return CacheMark((point or {}).get("ttl"))


def _guarded_text(block: JsonObject) -> str | None:
    """`guardContent.text.text`."""
    text: str | None = (block.get("guardContent") or {}).get("text", {}).get("text")
    return text


def _tool(tool: JsonObject) -> ToolSpec:
    if "toolSpec" in tool:
        return _function(tool, tool["toolSpec"])
    if not tool:
        raise ValueError("an empty tool")
    kind, value = next(iter(tool.items()))
    hosted = read_hosted("converse", tool)
    if hosted is not None:
        return ToolSpec(hosted.name, native=tool, native_wire="converse", provider_run=hosted)
    if isinstance(value, dict):
        return ToolSpec(value["name"], native=tool, native_wire="converse")
    return ToolSpec(kind, native=tool, native_wire="converse")


def _function(tool: JsonObject, spec: JsonObject) -> ToolSpec:
    schema = spec.get("inputSchema") or {}
    native = rest_of(tool, "toolSpec") or {}
    spec_rest = rest_of(spec, "name", "description", "inputSchema", "strict") or {}
    schema_rest = rest_of(schema, "json")
    if schema_rest:
        spec_rest["inputSchema"] = schema_rest
    if spec_rest:
        native["toolSpec"] = spec_rest
    options = ToolOptions(native=native, native_wire="converse") if native else None
    return ToolSpec(
        spec["name"],
        spec.get("description"),
        schema.get("json"),
        spec.get("strict"),
        options=options,
    )


def _assistant_items(blocks: list[Raw]) -> tuple[ResponseItem, ...]:
    body = msgspec.json.encode({"output": {"message": {"role": "assistant", "content": blocks}}})
    return items_of(parse_body("converse", body))


def _user_items(role: Any, blocks: list[JsonObject]) -> Iterator[ResponseItem]:
    """Adjacent parts are one message; each other block is an item.

    Args:
        role: as on the wire; it is checked later, with the complete `Prompt`.
    """
    parts: list[ContentPart] = []
    for block in blocks:
        part = part_of(block)
        if part is not None:
            parts.append(part)
            continue
        if parts:
            yield Message(role, tuple(parts), origin=ORIGIN)
            parts = []
        if "toolResult" in block:
            yield _call_output(block["toolResult"], without_keys(block, "toolResult"))
        else:
            yield Opaque(next(iter(block)), block, origin=ORIGIN, native={"role": role})
    if parts:
        yield Message(role, tuple(parts), origin=ORIGIN)


def _call_output(result: JsonObject, siblings: JsonObject) -> FunctionCallOutput:
    native = without_keys(result, "toolUseId", "content", "status")
    return FunctionCallOutput(
        result["toolUseId"],
        _output(result["content"]),
        result.get("status") == "error",
        native=with_note(native, BESIDE, siblings) or None,
        origin=ORIGIN,
    )


def _output(content: list[JsonObject]) -> Output:
    if len(content) == 1 and content[0].keys() == {"text"}:
        return str(content[0]["text"])
    parts: list[ContentPart] = []
    for block in content:
        part = part_of(block)
        if part is None:
            # a block without a part type: readable as JSON text, complete in `native`
            text = msgspec.json.encode(block.get("json", block)).decode("utf-8")
            part = Text(text, native=block)
        parts.append(part)
    return tuple(parts)


# --- content blocks as parts: the inverse of `build_parts.py` ---


class _Source(NamedTuple):
    """The source of a media block: `data` (base64) or `url` (an S3 location)."""

    data: str | None
    url: str | None
    media_type: str | None
    native: JsonObject | None


def part_of(block: JsonObject) -> ContentPart | None:
    """The part for a block, or None if there is no part type for it."""
    if not block:
        raise ValueError("an empty content block")
    if len(block) > 1:
        return None
    match next(iter(block)):
        case "text":
            return Text(msgspec.convert(block["text"], str))
        case "image" | "document" | "audio" as kind:
            return _media(kind, block[kind])
        case "guardContent":
            return _guard_content(block["guardContent"])
        case _:
            return None


MEDIA: Final[dict[str, tuple[Callable[..., Image | Audio | Document], str, dict[str, str]]]] = {
    "image": (Image, "image", IMAGE_FORMATS),
    "document": (Document, "application", DOCUMENT_FORMATS),
    "audio": (Audio, "audio", AUDIO_FORMATS),
}
"""Kind of a block -> its part, the usual left half of its media type, and its formats."""


def _media(kind: str, block: JsonObject) -> Image | Audio | Document | None:
    make, prefix, formats = MEDIA[kind]
    source = _source(block, kind, prefix, formats)
    if source is None:
        return None
    name = block.get("name") if kind == "document" else None
    return unchecked(make)(
        source.data, source.url, media_type=source.media_type, name=name, native=source.native
    )


def _guard_content(content: JsonObject) -> ContentPart | None:
    """A block that a guardrail examines: a text or an image, with its own keys in `native`."""
    if len(content) != 1:
        return None
    if "text" in content:
        native = {key: value for key, value in content["text"].items() if key != "text"}
        return Text(content["text"]["text"], native={"guardContent": native})
    if "image" not in content:
        return None
    image = _media("image", content["image"])
    if image is None:
        return None
    native = dict(image.native or {})
    native["guardContent"] = {}
    return msgspec.structs.replace(image, native=native)


def _source(block: JsonObject, member: str, kind: str, formats: dict[str, str]) -> _Source | None:
    """The source of a media block, or None where it is of an unknown kind.

    Args:
        member: the block's name.
        kind: left half of the media type where `formats` lacks the block's format.
        formats: media type -> `format`.
    """
    format_ = block.get("format")
    media_type = _media_type(format_, kind, formats)
    source = block["source"]
    native: JsonObject = {key: block[key] for key in (*DOCUMENT_KEYS, "error") if key in block}
    unknown = rest_of(block, "format", "source", "name", *native) or {}
    source_rest = rest_of(source, "bytes", "text", "s3Location") or {}
    if format_ and media_type and formats.get(media_type) != format_:
        # another name of a format, or one that has no media type: sent again as it is
        native["format"] = format_
    data = source.get("bytes")
    url: str | None = None
    if "s3Location" in source:
        location = source["s3Location"]
        url = location["uri"]
        if "bucketOwner" in location:
            native["bucketOwner"] = location["bucketOwner"]
        location_rest = rest_of(location, "uri", "bucketOwner")
        if location_rest:
            source_rest["s3Location"] = location_rest
    elif "text" in source:
        # parts hold base64
        data = msgspec.to_builtins(str(source["text"]).encode("utf-8"))
        native["source"] = "text"
        media_type = media_type or "text/plain"
    if data is None and url is None:
        return None
    if source_rest:
        unknown["source"] = source_rest
    if unknown:
        native[member] = unknown
    return _Source(data, url, media_type, native or None)


def _media_type(format_: str | None, kind: str, formats: dict[str, str]) -> str | None:
    for media_type, known in formats.items():
        if known == format_:
            return media_type
    if format_:
        return f"{kind}/{format_}"
    return None
