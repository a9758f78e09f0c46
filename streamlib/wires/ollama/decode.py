"""A request to Ollama's /api/chat as a `Prompt`: the inverse of builders/ollama.py.

An assistant message is read by the machine that reads answers. Results name their tool, not their call: each answers the first call
of that name that still waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.prompt import EFFORTS, Prompt, ReasoningOptions
from streamlib.wires.ollama.build import OPTIONS
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.items import (
    ContentPart,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Origin,
    ResponseItem,
    Text,
    ToolSpec,
)
from streamlib_parsers.protocol import parse_body
from streamlib_parsers.wires.ollama import IMAGE_TYPES

ORIGIN: Final = Origin("ollama")
READ: Final = frozenset(
    {
        "model",
        "messages",
        "tools",
        "stream",
        "think",
        "format",
        "logprobs",
        "top_logprobs",
        "options",
    }
)
"""Top-level keys with a place in `Prompt`; the others go into `extra`."""
FIELDS: Final = {name: field for field, name in OPTIONS.items()}


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt."""
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    asked: JsonObject = {
        key: msgspec.json.decode(value) for key, value in raw.items() if key != "messages"
    }
    reader = _Reader()
    for message in msgspec.json.decode(raw["messages"], type=list[Raw]):
        reader.read(message)
    options = {
        key: value for key, value in (asked.get("options") or {}).items() if value is not None
    }
    settings = {
        FIELDS[key]: options.pop(key)
        for key in FIELDS
        if key in options and not _is_endless(key, options[key])
    }
    return Prompt(
        input=reader.items,
        instructions=reader.instructions,
        tools=[_tool(tool) for tool in asked.get("tools") or ()],
        reasoning=_reasoning(asked.get("think")),
        output_schema=asked["format"] if isinstance(asked.get("format"), dict) else None,
        stop=_listed(options.pop("stop", None)),
        logprobs=(asked.get("top_logprobs") or 0) if asked.get("logprobs") else None,
        extra=_extra(asked, options) or None,
        model=asked.get("model"),
        stream=asked.get("stream") is not False,
        **settings,
    )


def _extra(asked: JsonObject, options: JsonObject) -> JsonObject:
    """What a prompt has no word for: `num_ctx` and its kin, `keep_alive`, the format `json`."""
    extra = {key: value for key, value in asked.items() if key not in READ and value is not None}
    form = asked.get("format")
    return {
        **extra,
        **({"options": options} if options else {}),
        **({"format": form} if form and isinstance(form, str) else {}),
    }


def _is_endless(key: str, value: Any) -> bool:
    """-1 and -2 tokens are Ollama's words for no ceiling."""
    return key == "num_predict" and isinstance(value, int) and value < 0


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _tool(tool: JsonObject) -> ToolSpec:
    function = tool.get("function")
    if not isinstance(function, dict):
        return ToolSpec(str(tool.get("name") or tool["type"]), native=tool)
    return ToolSpec(function["name"], function.get("description"), function.get("parameters"))


def _reasoning(think: Any) -> Any:
    if think is None:
        return None
    if isinstance(think, bool):
        return ReasoningOptions() if think else "off"
    return ReasoningOptions(think) if think in EFFORTS else None


# --- messages ---


class _Reader:
    """Messages into items; notes which calls wait for their answer."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        self.instructions: str | None = None
        self._waiting: list[FunctionCall] = []
        self._minted = 0

    def read(self, raw: Raw) -> None:
        message = msgspec.json.decode(raw, type=dict[str, Any])
        ROLES[message["role"]](self, message, raw)

    def _system(self, message: JsonObject, raw: Raw) -> None:
        if self.items or self.instructions is not None:
            self.items.append(Message("system", (Text(message["content"]),), origin=ORIGIN))
        else:
            self.instructions = str(message["content"])

    def _user(self, message: JsonObject, raw: Raw) -> None:
        self.items.append(Message("user", _parts(message), origin=ORIGIN))

    def _assistant(self, message: JsonObject, raw: Raw) -> None:
        """What an answer said is whole by now, even where its arguments are no JSON."""
        body = b'{"message":%s,"done":true}' % bytes(raw)
        response = accumulate(parse_body("ollama", body, origin=ORIGIN, call_id=self._mint))
        if response.error is not None:
            raise ValueError(response.error.message)
        made = [msgspec.structs.replace(item, status="completed") for item in response.items]
        self._waiting = [item for item in made if isinstance(item, FunctionCall)]
        self.items += made

    def _mint(self, n: int) -> str:
        self._minted += 1
        return f"call_{self._minted - 1}"

    def _tool(self, message: JsonObject, raw: Raw) -> None:
        call_id, name = message.get("tool_call_id"), message.get("tool_name") or message.get("name")
        fits = (
            call
            for call in self._waiting
            if (call.call_id == call_id if call_id else name in (None, call.name))
        )
        call = next(fits, None) or next(iter(self._waiting), None)
        if call is not None:
            self._waiting.remove(call)
        parts = _parts(message)
        output = (
            message.get("content") or "" if all(isinstance(part, Text) for part in parts) else parts
        )
        self.items.append(
            FunctionCallOutput(
                str(call_id or (call.call_id if call else "")), output, origin=ORIGIN
            )
        )


ROLES: Final[dict[str, Callable[[_Reader, JsonObject, Raw], None]]] = {
    "system": _Reader._system,
    "user": _Reader._user,
    "assistant": _Reader._assistant,
    "tool": _Reader._tool,
}


def _parts(message: JsonObject) -> tuple[ContentPart, ...]:
    said = (Text(message["content"]),) if message.get("content") else ()
    return (*said, *(_image(data) for data in message.get("images") or ()))


def _image(data: str) -> Image:
    kind = next((known for sign, known in IMAGE_TYPES.items() if data.startswith(sign)), None)
    return Image(data, media_type=kind)
