"""A Chat Completions request as a `Prompt`: the inverse of builders/chat.py.

An assistant message is read by the machine that reads answers, whatever dialect its client speaks, so that what comes back is what
was once received: thoughts, text, refusal and calls as items, arguments as text. Other messages are one item each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.prompt import EFFORTS, CacheOptions, Prompt, ReasoningOptions
from streamlib.wires.chat.build_parts import AUDIO_FORMATS
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
READ: Final = frozenset(
    {
        *PLAIN,
        *(
            "model",
            "messages",
            "tools",
            "functions",
            "tool_choice",
            "function_call",
            "parallel_tool_calls",
            "stream",
            "stream_options",
        ),
        *(
            "max_tokens",
            "max_completion_tokens",
            "stop",
            "seed",
            "random_seed",
            "logprobs",
            "top_logprobs",
            "response_format",
        ),
        *(
            "reasoning_effort",
            "reasoning",
            "thinking",
            "enable_thinking",
            "thinking_budget",
            "chat_template_kwargs",
        ),
        *("prompt_cache_key", "user", "safety_identifier"),
    }
)
"""Top-level keys with a place in `Prompt`; the others, and what is left of these, go into `extra`."""
SYSTEM: Final = ("system", "developer")


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt."""
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    asked: JsonObject = {
        key: msgspec.json.decode(value) for key, value in raw.items() if key != "messages"
    }
    reader = _Reader()
    for message in msgspec.json.decode(raw["messages"], type=list[Raw]):
        reader.read(message)
    left = {key: value for key, value in asked.items() if key not in READ}
    return Prompt(
        input=reader.items,
        instructions=reader.instructions,
        tools=_tools(asked),
        tool_choice=_choice(asked, left),
        parallel_tools=asked.get("parallel_tool_calls"),
        reasoning=_reasoning(asked, left),
        output_schema=_schema(asked, left),
        max_output_tokens=asked.get("max_completion_tokens") or asked.get("max_tokens"),
        stop=_listed(asked.get("stop")),
        seed=asked.get("seed") or asked.get("random_seed"),
        logprobs=(asked.get("top_logprobs") or 0) if asked.get("logprobs") else None,
        cache=CacheOptions(reader.ttl, tuple(reader.marked)) if reader.marked else None,
        conversation_id=asked.get("prompt_cache_key"),
        user_id=asked.get("safety_identifier") or asked.get("user"),
        extra=left or None,
        model=asked.get("model"),
        stream=bool(asked.get("stream")),
        **{name: asked.get(name) for name in PLAIN},
    )


# --- messages ---


class _Reader:
    """Messages into items; notes which of them carried a cache marker, and which calls wait for their answer."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        self.instructions: str | None = None
        self.marked: list[int] = []
        self.ttl: str | None = None
        self._waiting: list[FunctionCall] = []
        self._minted = 0

    def read(self, raw: Raw) -> None:
        message = msgspec.json.decode(raw, type=dict[str, Any])
        before, marked = len(self.items), self._mark(message)
        ROLES[message["role"]](self, message, raw)
        if marked and len(self.items) > before:
            self.marked.append(len(self.items) - 1)

    def _mark(self, message: JsonObject) -> bool:
        """Takes the markers out of the message and its parts."""
        content = message.get("content")
        holders = [
            message,
            *(
                part
                for part in (content if isinstance(content, list) else ())
                if isinstance(part, dict)
            ),
        ]
        markers = [
            marker
            for holder in holders
            if isinstance(marker := holder.pop("cache_control", None), dict)
        ]
        self.ttl = next((marker["ttl"] for marker in markers if marker.get("ttl")), self.ttl)
        return bool(markers)

    def _system(self, message: JsonObject, raw: Raw) -> None:
        text = _text(message.get("content"))
        if message["role"] == "system" and not self.items and self.instructions is None:
            self.instructions = text
        else:
            self.items.append(Message(message["role"], (Text(text),), origin=ORIGIN))

    def _user(self, message: JsonObject, raw: Raw) -> None:
        self.items.append(
            Message(
                "user",
                _parts(message.get("content")),
                origin=ORIGIN,
                native=_rest(message, "role", "content"),
            )
        )

    def _assistant(self, message: JsonObject, raw: Raw) -> None:
        """What an answer said is whole by now, even where its arguments are no JSON."""
        body = b'{"choices":[{"index":0,"message":%s}]}' % bytes(raw)
        response = accumulate(parse_body("chat", body, origin=ORIGIN, call_id=self._mint))
        if response.error is not None:
            raise ValueError(response.error.message)
        made = [
            msgspec.structs.replace(item, status="completed", response_id=None)
            for item in response.items
        ]
        self._waiting = [item for item in made if isinstance(item, FunctionCall)]
        self.items += made

    def _mint(self, n: int) -> str:
        self._minted += 1
        return f"call_{self._minted - 1}"

    def _tool(self, message: JsonObject, raw: Raw) -> None:
        """A result names its call; where it does not (and in the older `function` role) it answers the first one that waits."""
        call_id = message.get("tool_call_id")
        call = next((one for one in self._waiting if call_id in (None, "", one.call_id)), None)
        if call is not None:
            self._waiting.remove(call)
        content = message.get("content")
        output: Output = _parts(content) if isinstance(content, list) else _text(content)
        named = str(call_id or (call.call_id if call else ""))
        native = _rest(
            message,
            "role",
            "tool_call_id",
            "content",
            *(("name",) if message["role"] == "function" else ()),
        )
        self.items.append(FunctionCallOutput(named, output, origin=ORIGIN, native=native))


ROLES: Final[dict[str, Callable[[_Reader, JsonObject, Raw], None]]] = {
    "system": _Reader._system,
    "developer": _Reader._system,
    "user": _Reader._user,
    "assistant": _Reader._assistant,
    "tool": _Reader._tool,
    "function": _Reader._tool,
}


def _rest(block: JsonObject, *typed: str) -> JsonObject | None:
    return {
        key: value for key, value in block.items() if key not in typed and value is not None
    } or None


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    return "\n\n".join(part["text"] if isinstance(part, dict) else part for part in parts if part)


# --- parts ---


def _parts(content: Any) -> tuple[ContentPart, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(Text(part) if isinstance(part, str) else _part(part) for part in content or ())


def _part(block: JsonObject) -> ContentPart:
    """The part; one that this version does not know is its JSON, and goes back as it came."""
    block = {key: value for key, value in block.items() if value is not None}
    kind = str(block.get("type"))
    made = PARTS[kind](block[kind]) if kind in PARTS and kind in block else None
    if made is None:
        return Text(msgspec.json.encode(block).decode(), native=block if "type" in block else None)
    return made


def _text_part(text: Any) -> ContentPart | None:
    return Text(text) if isinstance(text, str) else None


def _image(given: Any) -> ContentPart | None:
    url, detail = (
        (given, None) if isinstance(given, str) else (given.get("url"), given.get("detail"))
    )
    media_type, data = _data_url(url)
    return Image(
        data,
        None if data else url,
        media_type=media_type,
        native={"detail": detail} if detail else None,
    )


def _file(given: Any) -> ContentPart | None:
    held, name = given.get("file_data"), given.get("filename")
    media_type, data = _data_url(held)
    is_url = isinstance(held, str) and not data and "://" in held[:16]
    return Document(
        None if is_url else data or held,
        held if is_url else None,
        given.get("file_id"),
        media_type,
        name,
    )


def _audio(given: Any) -> ContentPart | None:
    if isinstance(given, str):
        return Audio(given)
    kind = str(given.get("format") or "wav")
    subtype = next(
        (known for known, name in AUDIO_FORMATS.items() if name == kind and "-" not in known), kind
    )
    return Audio(given["data"], media_type=f"audio/{subtype if kind != 'wav' else kind}")


PARTS: Final[dict[str, Callable[[Any], ContentPart | None]]] = {
    "text": _text_part,
    "image_url": _image,
    "file": _file,
    "input_audio": _audio,
}


def _data_url(url: Any) -> tuple[str | None, str | None]:
    """Media type and base64 text of a `data:` URL; (None, None) of any other."""
    head, comma, data = str(url or "").partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return None, None
    return head[5:-7] or None, data


# --- settings ---


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _tools(asked: JsonObject) -> list[ToolSpec]:
    legacy = [
        {"type": "function", "function": function} for function in asked.get("functions") or ()
    ]
    return [_tool(tool) for tool in [*(asked.get("tools") or ()), *legacy]]


def _tool(tool: JsonObject) -> ToolSpec:
    kind = tool.get("type") or "function"
    body = tool.get(kind)
    if kind not in ("function", "custom") or not isinstance(body, dict):
        return ToolSpec(str(tool.get("name") or kind), native=tool)
    if kind == "function":
        return ToolSpec(
            body["name"], body.get("description"), body.get("parameters"), body.get("strict")
        )
    form = body.get("format") or {"type": "text"}
    grammar = form.get("grammar")
    return ToolSpec(
        body["name"],
        body.get("description"),
        format={"type": "grammar", **grammar} if isinstance(grammar, dict) else form,
    )


def _choice(asked: JsonObject, left: JsonObject) -> str | None:
    choice = asked.get("tool_choice") or asked.get("function_call")
    if isinstance(choice, str):
        return "required" if choice == "any" else choice
    if not choice:
        return None
    named = choice.get(choice.get("type"), choice)
    if "name" in named:
        return str(named["name"])
    left["tool_choice"] = choice
    return None


def _schema(asked: JsonObject, left: JsonObject) -> JsonObject | None:
    form = asked.get("response_format") or {}
    schema: JsonObject | None = (form.get("json_schema") or {}).get("schema")
    if form and schema is None and form.get("type") != "text":
        left["response_format"] = form
    return schema


def _reasoning(asked: JsonObject, left: JsonObject) -> Any:
    """Every provider's way of asking (`providers/shapes.py`); keys of theirs that say something else stay."""
    said = _FieldReader({key: asked[key] for key in READ if key in asked}, left)
    switches = [
        said.take("thinking.type"),
        said.take("enable_thinking"),
        said.take("reasoning.enabled"),
        said.take("chat_template_kwargs.enable_thinking"),
        said.take("chat_template_kwargs.thinking"),
    ]
    word = said.take("reasoning_effort") or said.take("reasoning.effort")
    budget = (
        said.take("thinking.budget_tokens")
        or said.take("thinking_budget")
        or said.take("reasoning.max_tokens")
    )
    said.leave("thinking", "reasoning", "chat_template_kwargs")
    if word == "none" or "disabled" in switches or any(switch is False for switch in switches):
        return "off"
    effort = word if word in EFFORTS else None
    if word and effort is None:
        left["reasoning_effort"] = word
    asked_for = effort or budget or any(switches)
    return ReasoningOptions(effort, budget) if asked_for else None


class _FieldReader:
    """Takes values out of objects; what is left of an object stays in the request."""

    def __init__(self, values: JsonObject, left: JsonObject) -> None:
        self._values = values
        self._left = left

    def take(self, path: str) -> Any:
        """The value at a path, taken away."""
        first, _, second = path.partition(".")
        value = self._values.get(first)
        if not second:
            return value
        if not isinstance(value, dict):
            return None
        self._values[first] = {key: one for key, one in value.items() if key != second}
        return value.get(second)

    def leave(self, *names: str) -> None:
        """What was not taken of these objects."""
        self._left.update({name: self._values[name] for name in names if self._values.get(name)})
