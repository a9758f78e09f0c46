"""A Bedrock Converse request as a `Prompt`: the inverse of `build.py`.

An assistant turn is read by the parser of responses, so that what a client sends back is the item
it once received: one block, one item, in order, with its signature and its arguments byte for byte.
The path names the model, and whether a stream is wanted. What no field of `Prompt` holds stays in
`extra`, which the builder merges into the body again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import EFFORTS, Prompt, ReasoningOptions
from streamlib.wires.cache_marks import cache_options
from streamlib.wires.claude_betas import take_betas
from streamlib.wires.converse.build_settings import MODEL_FIELDS
from streamlib.wires.converse.decode_parts import part_of
from streamlib.wires.routes import route
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.items import (
    CacheMark,
    ContentPart,
    FunctionCallOutput,
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
OBJECTS: Final = (
    "inferenceConfig",
    "toolConfig",
    "outputConfig",
    "serviceTier",
    MODEL_FIELDS,
)
"""Keys of the body whose values are objects with settings."""
EFFORT_PATHS: Final = (
    f"{MODEL_FIELDS}.output_config.effort",
    f"{MODEL_FIELDS}.reasoningConfig.maxReasoningEffort",
    f"{MODEL_FIELDS}.reasoning_effort",
    f"{MODEL_FIELDS}.reasoning.effort",
    "outputConfig.effort",
)
"""Where a level of thinking is, by family of models."""
EFFORT_NAMES: Final = {"none": "off"}
"""Levels with another name on the wire -> ours."""
TOOL_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
"""Form of `toolChoice` -> `Prompt.tool_choice`; `tool` has the name of one."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt of a request."""
    # raw: arguments of calls keep the bytes that the client sent
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    settings: JsonObject = {}
    for key, value in raw.items():
        if key != "messages":
            settings[key] = msgspec.json.decode(value)
    for key in OBJECTS:
        if key in settings:
            # null counts as an empty object; anything else is not a request
            settings[key] = msgspec.convert(settings[key] or {}, JsonObject)
    reader = _Reader()
    # each value that a field of `Prompt` holds is taken out of `settings`; the rest is `extra`
    instructions = reader.read_system(settings)
    for turn in msgspec.json.decode(raw["messages"], type=list[dict[str, Raw]]):
        reader.read_turn(turn)
    tools = reader.read_tools(pop_first(settings, "toolConfig.tools") or [])
    reasoning = _reasoning(settings)
    output_schema = _output_schema(settings)
    max_output_tokens = pop_first(settings, "inferenceConfig.maxTokens")
    temperature = pop_first(settings, "inferenceConfig.temperature")
    top_p = pop_first(settings, "inferenceConfig.topP")
    # Claude's, then Nova's
    top_k = pop_first(settings, f"{MODEL_FIELDS}.top_k", f"{MODEL_FIELDS}.inferenceConfig.topK")
    stop = pop_first(settings, "inferenceConfig.stopSequences") or ()
    metadata = pop_first(settings, "requestMetadata")
    service_tier = pop_first(settings, "serviceTier.type")
    tool_choice, parallel_tools = _tool_choice(settings)
    betas = take_betas(settings.get(MODEL_FIELDS) or {})
    if settings.get(MODEL_FIELDS) == {}:
        del settings[MODEL_FIELDS]
    model, stream = None, None
    matched = route(path)
    if matched is not None:
        model, stream = matched.model, matched.stream
    return Prompt(
        input=reader.items,
        instructions=instructions,
        tools=tools,
        tool_choice=tool_choice,
        parallel_tools=parallel_tools,
        reasoning=reasoning,
        output_schema=output_schema,
        max_output_tokens=max_output_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        stop=stop,
        cache=cache_options(reader.marked, reader.instructions_mark, None),
        metadata=metadata,
        service_tier=service_tier,
        model=model,
        stream=stream,
        extra=settings or None,
        headers=betas,
    )


def pop_first(body: JsonObject, *paths: str) -> Any:
    """Removes the first value at one of the dotted paths, and objects that are empty then.

    Returns:
        The value, or None where no path has one.
    """
    for path in paths:
        value = _pop(body, path)
        if value is not None:
            return value
    return None


def _pop(body: JsonObject, path: str) -> Any:
    key, dot, rest = path.partition(".")
    if not dot:
        return body.pop(key, None)
    inner = body.get(key)
    if not isinstance(inner, dict):
        return None
    value = _pop(inner, rest)
    if not inner:
        del body[key]
    return value


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

    def read_system(self, settings: JsonObject) -> str | None:
        """Returns the instructions; further texts become items.

        Blocks other than text have no item: they stay in `settings`.
        """
        blocks = settings.pop("system", None) or []
        instructions: str | None = None
        has_other_blocks = False
        for block in blocks:
            if not block.keys() <= {"text", "cachePoint"}:
                has_other_blocks = True
            text = block.get("text") or _guarded_text(block)
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
            settings["system"] = blocks
        return instructions

    def read_tools(self, tools: list[JsonObject]) -> list[ToolSpec]:
        """The tools; a cache point belongs to the tool before it."""
        specs: list[ToolSpec] = []
        for tool in tools:
            if "cachePoint" not in tool:
                specs.append(_tool(tool))
            elif specs:
                mark = _cache_mark(tool["cachePoint"])
                specs[-1] = msgspec.structs.replace(specs[-1], cache=mark)
        return specs

    def read_turn(self, turn: dict[str, Raw]) -> None:
        """Reads one message; each cache point ends a run of blocks."""
        role = msgspec.json.decode(turn["role"], type=str)
        blocks: list[Raw] = []
        for raw in msgspec.json.decode(turn["content"], type=list[Raw]):
            members = msgspec.json.decode(raw, type=dict[str, Raw])
            if "cachePoint" not in members:
                blocks.append(raw)
                continue
            self._read_blocks(role, blocks)
            blocks = []
            self._mark_last_item(msgspec.json.decode(members["cachePoint"]))
        self._read_blocks(role, blocks)

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


def _cache_mark(point: Any) -> CacheMark:
    return CacheMark((point or {}).get("ttl"))


def _guarded_text(block: JsonObject) -> str | None:
    """`guardContent.text.text`."""
    text: str | None = (block.get("guardContent") or {}).get("text", {}).get("text")
    return text


def _tool(tool: JsonObject) -> ToolSpec:
    if "toolSpec" in tool:
        spec = tool["toolSpec"]
        return ToolSpec(
            spec["name"],
            spec.get("description"),
            (spec.get("inputSchema") or {}).get("json"),
            spec.get("strict"),
        )
    if not tool:
        raise ValueError("an empty tool")
    kind, value = next(iter(tool.items()))
    hosted = read_hosted("converse", tool)
    if hosted is not None:
        return ToolSpec(hosted.name, native=tool, native_wire="converse", provider_run=hosted)
    if isinstance(value, dict):
        return ToolSpec(value["name"], native=tool, native_wire="converse")
    return ToolSpec(kind, native=tool, native_wire="converse")


def _assistant_items(blocks: list[Raw]) -> tuple[ResponseItem, ...]:
    body = msgspec.json.encode({"output": {"message": {"role": "assistant", "content": blocks}}})
    response = accumulate(parse_body("converse", body, origin=ORIGIN))
    if response.error is not None:
        raise ValueError(response.error.message)
    return response.items


def _user_items(role: Any, blocks: list[JsonObject]) -> Iterator[ResponseItem]:
    """Adjacent parts are one message; each other block is an item.

    Args:
        role: As on the wire; it is checked later, with the complete `Prompt`.
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
            yield _call_output(block["toolResult"])
        else:
            yield Opaque(next(iter(block)), block, origin=ORIGIN, native={"role": role})
    if parts:
        yield Message(role, tuple(parts), origin=ORIGIN)


def _call_output(result: JsonObject) -> FunctionCallOutput:
    native: JsonObject = {}
    for key, value in result.items():
        if key not in ("toolUseId", "content", "status"):
            native[key] = value
    return FunctionCallOutput(
        result["toolUseId"],
        _output(result["content"]),
        result.get("status") == "error",
        native=native or None,
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


# --- settings ---


def _tool_choice(settings: JsonObject) -> tuple[str | None, bool | None]:
    """`Prompt.tool_choice` and `.parallel_tools`, from Converse's or else Claude's own fields."""
    claude_choice = pop_first(settings, f"{MODEL_FIELDS}.tool_choice") or {}
    choice = pop_first(settings, "toolConfig.toolChoice")
    if choice:
        form, value = next(iter(choice.items()))
    else:
        # Converse has no `none` and no limit of one call: Claude takes them in its own field
        form, value = claude_choice.get("type"), claude_choice
    name: str | None = (value or {}).get("name")
    parallel_tools: bool | None = None
    if claude_choice.get("disable_parallel_tool_use"):
        parallel_tools = False
    if form is None:
        return None, parallel_tools
    if form == "tool":
        return name, parallel_tools
    return TOOL_CHOICES[form], parallel_tools


def _reasoning(settings: JsonObject) -> ReasoningOptions | Literal["off"] | None:
    value = _pop_effort(settings)
    # for Qwen `reasoning_config` is the level itself, for other models an object
    if isinstance((settings.get(MODEL_FIELDS) or {}).get("reasoning_config"), str):
        value = pop_first(settings, f"{MODEL_FIELDS}.reasoning_config")
    effort = EFFORT_NAMES.get(value, value)
    thinking = pop_first(settings, f"{MODEL_FIELDS}.thinking") or {}
    kind = thinking.get("type") or pop_first(settings, f"{MODEL_FIELDS}.reasoningConfig.type")
    if kind in ("disabled", "between_tools"):
        return "off"
    if not kind and not value:
        return None
    if effort not in EFFORTS:
        effort = None
    return ReasoningOptions(effort, thinking.get("budget_tokens"), display=thinking.get("display"))


def _pop_effort(settings: JsonObject) -> Any:
    """Removes the level of thinking; one that `Prompt` lacks stays in `settings`, for `extra`."""
    for path in EFFORT_PATHS:
        value = pop_first(settings, path)
        if value is None:
            continue
        if EFFORT_NAMES.get(value, value) in EFFORTS:
            return value
        restored = merged(settings, nested(path, value))
        settings.clear()
        settings.update(restored)
    return None


def _output_schema(settings: JsonObject) -> JsonObject | None:
    """The schema of the output, which is JSON text inside the JSON."""
    # `json_schema` is the only type
    pop_first(settings, "outputConfig.textFormat.type")
    text = pop_first(settings, "outputConfig.textFormat.structure.jsonSchema.schema")
    if text is None:
        return None
    return msgspec.json.decode(text, type=dict[str, Any])
