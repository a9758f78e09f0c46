"""Decodes a Chat Completions request into a `Prompt`: the inverse of `build`.

An assistant message is read by the state machine that reads responses, whichever provider's keys
its client writes, so that the items are those once received: reasoning, text, refusal, calls with
their arguments as text. Any other message is one item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.prompt import EFFORTS, CacheOptions, Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Origin,
    Output,
    ResponseItem,
    Text,
    ToolSpec,
)
from streamlib_parsers.protocol import parse_body

ORIGIN: Final = Origin("chat")

PLAIN: Final = (
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "verbosity",
    "metadata",
    "service_tier",
)
"""Settings whose wire name is their name in `Prompt`."""

READ: Final = frozenset(
    {
        *PLAIN,
        "model",
        "messages",
        "tools",
        "functions",
        "tool_choice",
        "function_call",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
        "random_seed",
        "logprobs",
        "top_logprobs",
        "response_format",
        "reasoning_effort",
        "reasoning",
        "thinking",
        "enable_thinking",
        "thinking_budget",
        "chat_template_kwargs",
        "prompt_cache_key",
        "user",
        "safety_identifier",
    }
)
"""Keys with a field in `Prompt`. Other keys, and what `Prompt` cannot express, go into `extra`."""

AUDIO_SUBTYPES: Final = {"mp3": "mpeg", "m4a": "mp4"}
"""`input_audio.format` -> subtype of the media type; other formats are their own subtype."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """Decodes a request.

    Args:
        body: The JSON body.
        headers: Not read: this wire keeps nothing there.
        path: Not read: the model stands in the body.

    Returns:
        The prompt.
    """
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    fields: JsonObject = {
        key: msgspec.json.decode(value) for key, value in raw.items() if key != "messages"
    }
    reader = _MessageReader()
    for message in msgspec.json.decode(raw["messages"], type=list[Raw]):
        reader.read(message)
    extra = {key: value for key, value in fields.items() if key not in READ}
    cache = None
    if reader.marked:
        cache = CacheOptions(reader.ttl, tuple(reader.marked))
    logprobs = None
    if fields.get("logprobs"):
        logprobs = fields.get("top_logprobs") or 0
    plain: JsonObject = {name: fields.get(name) for name in PLAIN}
    return Prompt(
        input=reader.items,
        instructions=reader.instructions,
        tools=_tools(fields),
        tool_choice=_choice(fields, extra),
        parallel_tools=fields.get("parallel_tool_calls"),
        reasoning=_reasoning(fields, extra),
        output_schema=_schema(fields, extra),
        max_output_tokens=fields.get("max_completion_tokens") or fields.get("max_tokens"),
        stop=_string_list(fields.get("stop")),
        # Mistral's name of the field is `random_seed`.
        seed=fields.get("seed") or fields.get("random_seed"),
        logprobs=logprobs,
        cache=cache,
        conversation_id=fields.get("prompt_cache_key"),
        user_id=fields.get("safety_identifier") or fields.get("user"),
        extra=extra or None,
        model=fields.get("model"),
        stream=bool(fields.get("stream")),
        **plain,
    )


# --- messages ---


class _MessageReader:
    """Converts messages to items, and matches results with calls."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        """The history so far; each message appends to it."""
        self.instructions: str | None = None
        """The text of the first message if its role is `system`."""
        self.marked: list[int] = []
        """Indexes of the items whose message carried a cache marker."""
        self.ttl: str | None = None
        """Of the last cache marker that named one."""
        self._pending: list[FunctionCall] = []
        """Calls of the last assistant message that have no result yet."""
        self._generated_ids = 0
        """How many call ids were generated: the number of the next one."""

    def read(self, raw: Raw) -> None:
        """Appends the items of one message."""
        message = msgspec.json.decode(raw, type=dict[str, Any])
        count = len(self.items)
        is_marked = self._take_markers(message)
        match message["role"]:
            case "user":
                content = _parts(message.get("content"))
                native = _rest(message, "role", "content")
                self.items.append(Message("user", content, origin=ORIGIN, native=native))
            case "assistant":
                self._assistant(raw)
            case "tool" | "function":
                self._tool(message)
            case "system" | "developer":
                self._system(message)
            case role:
                raise KeyError(role)
        if is_marked and len(self.items) > count:
            self.marked.append(len(self.items) - 1)

    def _take_markers(self, message: JsonObject) -> bool:
        """Removes the cache markers of a message and its parts; whether there were any."""
        content = message.get("content")
        holders = [message]
        if isinstance(content, list):
            holders += [part for part in content if isinstance(part, dict)]
        markers = [holder.pop("cache_control", None) for holder in holders]
        markers = [marker for marker in markers if isinstance(marker, dict)]
        ttls = [marker["ttl"] for marker in markers if marker.get("ttl")]
        if ttls:
            self.ttl = ttls[0]
        return bool(markers)

    def _system(self, message: JsonObject) -> None:
        text = _text(message.get("content"))
        is_first = not self.items and self.instructions is None
        if is_first and message["role"] == "system":
            self.instructions = text
        else:
            self.items.append(Message(message["role"], (Text(text),), origin=ORIGIN))

    def _assistant(self, raw: Raw) -> None:
        body = b'{"choices":[{"index":0,"message":%s}]}' % bytes(raw)
        response = accumulate(parse_body("chat", body, origin=ORIGIN, call_id=self._generate_id))
        if response.error is not None:
            raise ValueError(response.error.message)
        # A history is complete, even if the arguments of a call are not JSON.
        items = [
            msgspec.structs.replace(item, status="completed", response_id=None)
            for item in response.items
        ]
        self._pending = [item for item in items if isinstance(item, FunctionCall)]
        self.items += items

    def _generate_id(self, number: int) -> str:
        """The parser's hook. It counts within one message only, so its number is not used."""
        del number
        call_id = f"call_{self._generated_ids}"
        self._generated_ids += 1
        return call_id

    def _tool(self, message: JsonObject) -> None:
        """A result. One without an id (the older role `function`) is the first pending call's."""
        call_id = message.get("tool_call_id")
        for call in self._pending:
            if call_id in (None, "", call.call_id):
                self._pending.remove(call)
                call_id = call.call_id
                break
        content = message.get("content")
        output: Output
        if isinstance(content, list):
            output = _parts(content)
        else:
            output = _text(content)
        read = ["role", "tool_call_id", "content"]
        if message["role"] == "function":
            # There `name` is what names the call.
            read.append("name")
        native = _rest(message, *read)
        call_id = str(call_id or "")
        self.items.append(FunctionCallOutput(call_id, output, origin=ORIGIN, native=native))


def _rest(message: JsonObject, *read: str) -> JsonObject | None:
    """The keys that no typed field holds."""
    rest = {key: value for key, value in message.items() if key not in read and value is not None}
    return rest or None


def _text(content: Any) -> str:
    """Content as one text: a string, or the texts of its parts."""
    # None (no content) is skipped below, as blank parts are.
    parts: list[Any] = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        if isinstance(part, dict) and part:
            texts.append(part["text"])
        elif part:
            # Anything but a string raises in `join`, and the request is refused.
            text: Any = part
            texts.append(text)
    return "\n\n".join(texts)


# --- parts ---


def _parts(content: Any) -> tuple[ContentPart, ...]:
    if isinstance(content, str):
        content = [content] if content else []
    parts: list[ContentPart] = []
    for block in content or ():
        if isinstance(block, str):
            parts.append(Text(block))
        else:
            parts.append(_part(block))
    return tuple(parts)


def _part(block: JsonObject) -> ContentPart:
    """One part. A part of an unknown kind is its JSON as text, and goes back as received."""
    block = {key: value for key, value in block.items() if value is not None}
    part = _known_part(block)
    if part is not None:
        return part
    native = block if "type" in block else None
    return Text(msgspec.json.encode(block).decode(), native=native)


def _known_part(block: JsonObject) -> ContentPart | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image_url", "image_url": image}:
            return _image(image)
        case {"type": "file", "file": file}:
            return _file(file)
        case {"type": "input_audio", "input_audio": audio}:
            return _audio(audio)
        case _:
            return None


def _image(image: Any) -> Image:
    native = None
    if isinstance(image, str):
        url = image
    else:
        url = image.get("url")
        if image.get("detail"):
            native = {"detail": image["detail"]}
    media_type, data = _data_url(url)
    if data:
        return Image(data, media_type=media_type, native=native)
    return Image(url=url, media_type=media_type, native=native)


def _file(file: Any) -> Document:
    content, name, file_id = file.get("file_data"), file.get("filename"), file.get("file_id")
    media_type, data = _data_url(content)
    if data:
        return Document(data, None, file_id, media_type, name)
    # The builder writes a URL in the place of the bytes, which some providers take.
    if isinstance(content, str) and "://" in content[:16]:
        return Document(None, content, file_id, media_type, name)
    return Document(content, None, file_id, media_type, name)


def _audio(audio: Any) -> Audio:
    if isinstance(audio, str):
        return Audio(audio)
    audio_format = str(audio.get("format") or "wav")
    subtype = AUDIO_SUBTYPES.get(audio_format, audio_format)
    return Audio(audio["data"], media_type=f"audio/{subtype}")


def _data_url(url: Any) -> tuple[str | None, str | None]:
    """Media type and base64 text of a `data:` URL; (None, None) for anything else."""
    prefix, comma, data = str(url or "").partition(",")
    if not comma or not prefix.startswith("data:") or not prefix.endswith(";base64"):
        return None, None
    media_type = prefix.removeprefix("data:").removesuffix(";base64")
    return media_type or None, data


# --- settings ---


def _string_list(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return list(value or ())


def _tools(fields: JsonObject) -> list[ToolSpec]:
    tools: list[Any] = list(fields.get("tools") or ())
    # The older field holds functions without the object around them.
    for function in fields.get("functions") or ():
        tools.append({"type": "function", "function": function})
    return [_tool(tool) for tool in tools]


def _tool(tool: JsonObject) -> ToolSpec:
    kind = tool.get("type") or "function"
    body = tool.get(kind)
    if kind not in ("function", "custom") or not isinstance(body, dict):
        hosted = read_hosted("chat", tool)
        name = str(tool.get("name") or kind)
        if hosted is not None:
            name = hosted.name
        return ToolSpec(name, native=tool, native_wire="chat", provider_run=hosted)
    name, description = body["name"], body.get("description")
    if kind == "function":
        return ToolSpec(name, description, body.get("parameters"), body.get("strict"))
    tool_format = body.get("format") or {"type": "text"}
    grammar = tool_format.get("grammar")
    if isinstance(grammar, dict):
        # `ToolSpec` has the form of Responses, where the grammar stands one level higher.
        tool_format = {"type": "grammar", **grammar}
    return ToolSpec(name, description, format=tool_format)


def _choice(fields: JsonObject, extra: JsonObject) -> str | None:
    choice = fields.get("tool_choice") or fields.get("function_call")
    if choice == "any":
        # Mistral's value.
        return "required"
    if isinstance(choice, str):
        return choice
    if not choice:
        return None
    named = choice.get(choice.get("type"), choice)
    if "name" in named:
        return str(named["name"])
    extra["tool_choice"] = choice
    return None


def _schema(fields: JsonObject, extra: JsonObject) -> JsonObject | None:
    response_format = fields.get("response_format") or {}
    schema: JsonObject | None = (response_format.get("json_schema") or {}).get("schema")
    if response_format.get("type") == "json_object":
        return ANY_OBJECT
    if response_format and schema is None and response_format.get("type") != "text":
        extra["response_format"] = response_format
    return schema


def _reasoning(fields: JsonObject, extra: JsonObject) -> Literal["off"] | ReasoningOptions | None:
    """The request for thinking in every provider's form (`providers/shapes.py`).

    Keys inside these objects that have another meaning stay in `extra`.
    """
    reader = _FieldReader({key: fields[key] for key in READ if key in fields})
    # In order: DeepSeek and Z.ai, Qwen, OpenRouter and Together, templates of vLLM and SGLang.
    switches = [
        reader.take("thinking.type"),
        reader.take("enable_thinking"),
        reader.take("reasoning.enabled"),
        reader.take("chat_template_kwargs.enable_thinking"),
        reader.take("chat_template_kwargs.thinking"),
    ]
    wire_effort = reader.take("reasoning_effort") or reader.take("reasoning.effort")
    budget = (
        reader.take("thinking.budget_tokens")
        or reader.take("thinking_budget")
        or reader.take("reasoning.max_tokens")
    )
    extra.update(reader.rest("thinking", "reasoning", "chat_template_kwargs"))
    is_off = any(switch is False or switch == "disabled" for switch in switches)
    # An explicit "off" wins over a level beside it.
    if wire_effort == "none" or is_off:
        return "off"
    effort = None
    if wire_effort in EFFORTS:
        effort = wire_effort
    elif wire_effort:
        extra["reasoning_effort"] = wire_effort
    if effort or budget or any(switches):
        return ReasoningOptions(effort, budget)
    return None


class _FieldReader:
    """Takes values out of objects; what is left of an object stays in the request."""

    def __init__(self, values: JsonObject) -> None:
        self._values = values
        """The body's fields; an object loses each key that is taken."""

    def take(self, path: str) -> Any:
        """The value at a dotted path, removed from its object; None if there is none."""
        name, _, key = path.partition(".")
        value = self._values.get(name)
        if not key:
            return value
        if not isinstance(value, dict):
            return None
        # A copy: the caller's object is not ours to change.
        remaining = dict(value)
        taken = remaining.pop(key, None)
        self._values[name] = remaining
        return taken

    def rest(self, *names: str) -> JsonObject:
        """What was not taken of these objects; empty ones are left out."""
        return {name: self._values[name] for name in names if self._values.get(name)}
