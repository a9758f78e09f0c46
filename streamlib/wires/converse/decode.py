"""A Bedrock Converse request as a `Prompt`: the inverse of builders/converse.py.

An assistant turn is read by the machine that reads answers, so that what a client sends back is the item it once received: one block,
one item, in order, with its signature and its own bytes of arguments. The path names the model, and whether a stream is wanted. What has
no place in a `Prompt` stays in `extra`, where the builder lays it over the body again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.prompt import EFFORTS, CacheOptions, Prompt, ReasoningOptions
from streamlib.wires.converse.build import EXTRA
from streamlib.wires.converse.build_content import (
    AUDIO_FORMATS,
    DOCUMENT_FORMATS,
    DOCUMENT_KEYS,
    IMAGE_FORMATS,
)
from streamlib.wires.routes import route
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.items import (
    Audio,
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
    ToolSpec,
)
from streamlib_parsers.protocol import parse_body

ORIGIN: Final = Origin("converse")
OBJECTS: Final = frozenset({"inferenceConfig", "toolConfig", "outputConfig", "serviceTier", EXTRA})
"""Keys whose values are looked into."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt."""
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    asked: JsonObject = {
        key: msgspec.json.decode(value) for key, value in raw.items() if key != "messages"
    }
    for key in OBJECTS & asked.keys():
        asked[key] = msgspec.convert(asked[key] or {}, JsonObject)
    reader = Reader()
    instructions = reader.system(asked)
    for turn in msgspec.json.decode(raw["messages"], type=list[dict[str, Raw]]):
        reader.turn(turn)
    found = route(path)
    return Prompt(
        input=reader.items,
        instructions=instructions,
        tools=reader.tools(taken(asked, "toolConfig.tools") or []),
        reasoning=_reasoning(asked),
        output_schema=_schema(asked),
        max_output_tokens=taken(asked, "inferenceConfig.maxTokens"),
        temperature=taken(asked, "inferenceConfig.temperature"),
        top_p=taken(asked, "inferenceConfig.topP"),
        top_k=taken(asked, f"{EXTRA}.top_k", f"{EXTRA}.inferenceConfig.topK"),
        stop=taken(asked, "inferenceConfig.stopSequences") or (),
        cache=reader.cache,
        metadata=taken(asked, "requestMetadata"),
        service_tier=taken(asked, "serviceTier.type"),
        model=found.model if found else None,
        stream=found.stream if found else None,
        **_choice(asked),
        extra=asked or None,
    )


def taken(asked: JsonObject, *paths: str) -> Any:
    """The first value at one of the dotted paths, taken out; objects that are empty then go with it."""
    for path in paths:
        head, dot, rest = path.partition(".")
        inner = asked.get(head)
        value = (
            taken(inner, rest)
            if dot and isinstance(inner, dict)
            else None
            if dot
            else asked.pop(head, None)
        )
        if dot and inner == {}:
            del asked[head]
        if value is not None:
            return value
    return None


# --- turns ---


class Reader:
    """Turns into items; notes behind which of them a cache point stood. origin: what items of the model are stamped with."""

    def __init__(self, origin: Origin = ORIGIN) -> None:
        self.items: list[ResponseItem] = []
        self._origin = origin
        self._marked: list[int] = []
        self._points = 0
        self._ttl: str | None = None

    @property
    def cache(self) -> Any:
        """What the cache points say: those behind items; for others `auto` is the nearest."""
        if self._marked:
            return CacheOptions(self._ttl, tuple(self._marked))
        if not self._points:
            return None
        return CacheOptions(self._ttl) if self._ttl else "auto"

    def system(self, asked: JsonObject) -> str | None:
        """The instructions; further texts are items. Anything but text stays in `extra`, too."""
        blocks = asked.pop("system", None) or []
        instructions: str | None = None
        for block in blocks:
            text = block.get("text") or (block.get("guardContent") or {}).get("text", {}).get(
                "text"
            )
            if "cachePoint" in block:
                self._mark(block["cachePoint"])
            elif instructions is None:
                instructions = text
            elif text:
                self.items.append(Message("system", (Text(text),)))
        if any(not block.keys() <= {"text", "cachePoint"} for block in blocks):
            asked["system"] = blocks
        return instructions

    def tools(self, tools: list[JsonObject]) -> list[ToolSpec]:
        """The tools; cache points among them are noted."""
        made: list[ToolSpec] = []
        for tool in tools:
            if "cachePoint" in tool:
                self._mark(tool["cachePoint"], behind=False)
            elif "toolSpec" in tool:
                spec = tool["toolSpec"]
                made.append(
                    ToolSpec(
                        spec["name"],
                        spec.get("description"),
                        (spec.get("inputSchema") or {}).get("json"),
                        spec.get("strict"),
                    )
                )
            else:
                kind, named = next(iter(tool.items()), ("", None))
                if not kind:
                    raise ValueError("an empty tool")
                made.append(
                    ToolSpec(named["name"] if isinstance(named, dict) else kind, native=tool)
                )
        return made

    def turn(self, turn: dict[str, Raw]) -> None:
        """One message."""
        role = msgspec.json.decode(turn["role"], type=str)
        run: list[Raw] = []
        for raw in msgspec.json.decode(turn["content"], type=list[Raw]):
            members = msgspec.json.decode(raw, type=dict[str, Raw])
            if "cachePoint" in members:
                self._read(role, run)
                self._mark(msgspec.json.decode(members["cachePoint"]))
                run = []
            else:
                run.append(raw)
        self._read(role, run)

    def _mark(self, point: Any, *, behind: bool = True) -> None:
        self._points += 1
        self._ttl = (point or {}).get("ttl") or self._ttl
        if behind and self.items:
            self._marked.append(len(self.items) - 1)

    def _read(self, role: str, blocks: list[Raw]) -> None:
        if role == "assistant":
            self.items += self._assistant(blocks) if blocks else ()
        else:
            self.items += self._heard(
                role, [msgspec.json.decode(raw, type=dict[str, Any]) for raw in blocks]
            )

    def _assistant(self, blocks: list[Raw]) -> tuple[ResponseItem, ...]:
        body = msgspec.json.encode(
            {"output": {"message": {"role": "assistant", "content": blocks}}}
        )
        response = accumulate(parse_body("converse", body, origin=self._origin))
        if response.error is not None:
            raise ValueError(response.error.message)
        return response.items

    def _heard(self, role: Any, blocks: list[JsonObject]) -> Iterator[ResponseItem]:
        """Adjacent parts are one message; each tool result is an item."""
        parts: list[ContentPart] = []
        for block in blocks:
            part = _part(block)
            if part is not None:
                parts.append(part)
                continue
            if parts:
                yield Message(role, tuple(parts))
                parts = []
            yield self._other(block, role)
        if parts:
            yield Message(role, tuple(parts))

    def _other(self, block: JsonObject, role: str) -> ResponseItem:
        if "toolResult" not in block:
            return Opaque(next(iter(block)), block, origin=self._origin, native={"role": role})
        result = block["toolResult"]
        native = {
            key: value
            for key, value in result.items()
            if key not in ("toolUseId", "content", "status")
        }
        return FunctionCallOutput(
            result["toolUseId"],
            _output(result["content"]),
            result.get("status") == "error",
            native=native or None,
        )


def _output(content: list[JsonObject]) -> Output:
    if len(content) == 1 and content[0].keys() == {"text"}:
        return str(content[0]["text"])
    return tuple(
        _part(one) or Text(msgspec.json.encode(one.get("json", one)).decode("utf-8"), native=one)
        for one in content
    )


# --- parts ---


def _part(block: JsonObject) -> ContentPart | None:
    if not block:
        raise ValueError("an empty content block")
    read = PARTS.get(next(iter(block)))
    return read(block) if read and len(block) == 1 else None


def _text(block: JsonObject) -> ContentPart:
    return Text(msgspec.convert(block["text"], str))


def _image(block: JsonObject) -> ContentPart | None:
    image = block["image"]
    return _sourced(Image, image, _typed("image", image, IMAGE_FORMATS), None)


def _audio(block: JsonObject) -> ContentPart | None:
    audio = block["audio"]
    return _sourced(Audio, audio, _typed("audio", audio, AUDIO_FORMATS), None)


def _document(block: JsonObject) -> ContentPart | None:
    document = block["document"]
    return _sourced(
        Document, document, _typed("application", document, DOCUMENT_FORMATS), document.get("name")
    )


def _typed(kind: str, block: JsonObject, formats: dict[str, str]) -> str | None:
    written = block.get("format")
    named = next((media_type for media_type, one in formats.items() if one == written), None)
    return named or (f"{kind}/{written}" if written else None)


def _sourced(
    make: Any, block: JsonObject, media_type: str | None, name: str | None
) -> ContentPart | None:
    """A part of bytes, of an S3 location, or of text; a source we do not know is none."""
    source, native = block["source"], {key: block[key] for key in DOCUMENT_KEYS if key in block}
    data, url = source.get("bytes"), None
    if "s3Location" in source:
        url, native = (
            source["s3Location"]["uri"],
            {**native, **{key: one for key, one in source["s3Location"].items() if key != "uri"}},
        )
    elif "text" in source:
        data = msgspec.to_builtins(str(source["text"]).encode("utf-8"))
        media_type = media_type or "text/plain"
    if data is None and url is None:
        return None
    return make(data=data, url=url, media_type=media_type, name=name, native=native or None)  # type: ignore[no-any-return]


def _guarded(block: JsonObject) -> ContentPart | None:
    """What a guardrail is to look at."""
    inner = block["guardContent"]
    if "text" in inner:
        return Text(
            inner["text"]["text"],
            native={
                "guardContent": {key: one for key, one in inner["text"].items() if key != "text"}
            },
        )
    image = _image(inner) if "image" in inner else None
    return (
        msgspec.structs.replace(image, native={**(image.native or {}), "guardContent": {}})
        if image
        else None
    )


PARTS: Final[dict[str, Callable[[JsonObject], ContentPart | None]]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "document": _document,
    "guardContent": _guarded,
}


# --- settings ---


def _choice(asked: JsonObject) -> JsonObject:
    """`tool_choice` and `parallel_tools`, from `toolChoice` or from what goes to Claude past it."""
    own = taken(asked, f"{EXTRA}.tool_choice") or {}
    given = taken(asked, "toolConfig.toolChoice")
    form, said = next(iter(given.items())) if given else (own.get("type"), own)
    words: dict[str | None, str | None] = {
        None: None,
        "auto": "auto",
        "any": "required",
        "none": "none",
        "tool": (said or {}).get("name"),
    }
    return {
        "tool_choice": words[form],
        "parallel_tools": False if own.get("disable_parallel_tool_use") else None,
    }


EFFORT_PATHS: Final = (
    f"{EXTRA}.output_config.effort",
    f"{EXTRA}.reasoningConfig.maxReasoningEffort",
    f"{EXTRA}.reasoning_effort",
    f"{EXTRA}.reasoning.effort",
    "outputConfig.effort",
)
"""Where a level of thinking stands, by family of models."""


def _reasoning(asked: JsonObject) -> Any:
    word = taken(asked, *EFFORT_PATHS)
    if isinstance((asked.get(EXTRA) or {}).get("reasoning_config"), str):
        word = taken(asked, f"{EXTRA}.reasoning_config")
    effort = {"none": "off"}.get(word, word)
    thinking = taken(asked, f"{EXTRA}.thinking") or {}
    kind = thinking.get("type") or taken(asked, f"{EXTRA}.reasoningConfig.type")
    if kind in ("disabled", "between_tools"):
        return "off"
    if not kind and not word:
        return None
    return ReasoningOptions(
        effort if effort in EFFORTS else None,
        thinking.get("budget_tokens"),
        display=thinking.get("display"),
    )


def _schema(asked: JsonObject) -> JsonObject | None:
    taken(asked, "outputConfig.textFormat.type")
    text = taken(asked, "outputConfig.textFormat.structure.jsonSchema.schema")
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


__all__ = ["Reader", "decode", "taken"]
