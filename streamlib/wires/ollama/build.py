"""A `Prompt` as a request to Ollama's native /api/chat.

    {"role":"user","content":"…","images":["<base64>"]}
    {"role":"assistant","content":"…","thinking":"…","tool_calls":[{"id":"…","function":{"name":"f","arguments":{…}}}]}
    {"role":"tool","tool_name":"f","tool_call_id":"…","content":"…"}

O1 content is one text; images are base64 and stand beside it   O4 settings of the model stand in `options`
O2 arguments are an object, in their own bytes                  O5 thinking is on, off, or one of three levels
O3 results follow the order of their calls: older servers       O6 no choice of tools, no URLs, no audio
   know them by nothing else
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib.errors import invalid_request
from streamlib.request.context import BuildContext
from streamlib.request.effort import level
from streamlib.request.history import OUTPUTS, IndexedItem
from streamlib.request.media import media_type
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuiltRequest
from streamlib.wires.arguments import as_object
from streamlib.wires.chat.build_parts import TEXTUAL, plain_text
from streamlib_parsers.items import (
    Audio,
    Compaction,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSpec,
)

OPTIONS: Final = {
    "max_output_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
"""Settings and their names in `options`. `num_ctx` and others: `extra={"options": {"num_ctx": 32768}}`."""
LEVELS: Final = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
ELSEWHERE: Final = (
    "tool_choice",
    "parallel_tools",
    "verbosity",
    "n",
    "metadata",
    "service_tier",
    "user_id",
)
"""Settings that other wires have and this one has not."""
SEPARATOR: Final = "\n\n"
ATTACHED: Final = "[attached to the message above]"
ROLES: Final = {"developer": "system"}


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body."""
    body: JsonObject = {"model": context.target.model}
    if prompt.tools:
        body["tools"] = [_tool(tool, at, context.report) for at, tool in enumerate(prompt.tools)]
    body["messages"] = _messages(prompt, items, context.report)
    body["stream"] = prompt.stream is not False
    body.update(_think(prompt, context))
    if prompt.output_schema is not None:
        body["format"] = prompt.output_schema
    if prompt.logprobs is not None:
        body.update(
            {"logprobs": True, **({"top_logprobs": prompt.logprobs} if prompt.logprobs else {})}
        )
    options = {
        name: value
        for field, name in OPTIONS.items()
        if (value := getattr(prompt, field)) is not None
    }
    if prompt.stop:
        options["stop"] = list(prompt.stop)
    if options:
        body["options"] = options
    _lacking(prompt, context.report)
    return BuiltRequest(body)


def _lacking(prompt: Prompt, report: Report) -> None:
    for name in ELSEWHERE:
        if getattr(prompt, name) is not None and not (
            name == "tool_choice" and prompt.tool_choice == "auto"
        ):
            report.dropped(f"/{name}", f"Ollama has no {name}")
    if isinstance(prompt.cache, CacheOptions) and prompt.cache.breakpoints:
        report.dropped("/cache/breakpoints", "Ollama caches by itself")


def _think(prompt: Prompt, context: BuildContext) -> JsonObject:
    """O5."""
    asked = prompt.thinking
    if asked is None:
        return {}
    for name in ("summary", "display"):
        if getattr(asked, name) is not None:
            context.report.dropped(f"/reasoning/{name}", f"Ollama has no {name} of thoughts")
    if asked.effort == "off":
        return {"think": False}
    wanted = level(asked)
    if wanted is None:
        return {"think": True}
    if asked.effort != LEVELS[wanted]:
        context.report.add(
            "changed", "/reasoning", f"Ollama knows low, medium and high: {LEVELS[wanted]}"
        )
    return {"think": LEVELS[wanted]}


def _tool(tool: ToolSpec, at: int, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    said = {"name": tool.name, **({"description": tool.description} if tool.description else {})}
    schema = (
        tool.schema
        if isinstance(tool.schema, dict) and tool.schema
        else {"type": "object", "properties": {}}
    )
    if tool.format is not None:
        report.add(
            "changed",
            f"/tools/{at}/format",
            "Ollama has no free-form tools: it takes one string, input",
        )
        schema = {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        }
    if tool.strict:
        report.dropped(f"/tools/{at}/strict", "Ollama has no strict tools")
    return {"type": "function", "function": {**said, "parameters": schema}}


# --- messages ---


def _messages(prompt: Prompt, items: list[IndexedItem], report: Report) -> list[JsonObject]:
    writer = Writer(report)
    if prompt.instructions:
        writer.sent.append({"role": "system", "content": prompt.instructions})
    for one in _in_call_order(items):
        TAKES[type(one.item)](writer, one)
    writer.flush()
    if all(message["role"] == "system" for message in writer.sent):
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    return writer.sent


def _in_call_order(items: list[IndexedItem]) -> list[IndexedItem]:
    """O3."""
    order = {
        one.item.call_id: n
        for n, one in enumerate(items)
        if isinstance(one.item, (FunctionCall, CustomToolCall))
    }
    out: list[IndexedItem] = []
    run: list[IndexedItem] = []
    for one in items:
        if isinstance(one.item, OUTPUTS):
            run.append(one)
            continue
        out += _sorted(run, order)
        run = []
        out.append(one)
    return out + _sorted(run, order)


def _sorted(run: list[IndexedItem], order: dict[str, int]) -> list[IndexedItem]:
    return sorted(
        run, key=lambda one: order.get(one.item.call_id, 0) if isinstance(one.item, OUTPUTS) else 0
    )


class Writer:
    """Gathers what one answer said into one message; everything else is a message of its own."""

    def __init__(self, report: Report) -> None:
        self.sent: list[JsonObject] = []
        self._report = report
        self._turn: JsonObject | None = None
        self._response: str | None = None
        self._names: dict[str, str] = {}
        self._images: list[str] = []

    def flush(self) -> None:
        """Writes what is gathered."""
        self._end_turn()
        if self._images:
            self.sent.append({"role": "user", "content": ATTACHED, "images": self._images})
            self._images = []

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            texts: JsonObject = {
                key: "".join(turn[key]) for key in ("content", "thinking") if key in turn
            }
            self.sent.append({**turn, **texts})

    def message(self, one: IndexedItem) -> None:
        """Text and images (O1)."""
        item: Any = one.item
        text, images = self._read(item.content, one)
        if item.role == "assistant":
            self._say(one, text, images)
            return
        self.flush()
        if text or images:
            said = {"images": images} if images else {}
            self.sent.append(
                {"role": ROLES.get(item.role, item.role), "content": text, **said, **_own(item)}
            )
        else:
            self._report.dropped(one.path, "a message without content")

    def _say(self, one: IndexedItem, text: str, images: list[str]) -> None:
        if text or images:
            self._gather(one, "content" if text else "")["content"] += [text] if text else []
        if images:
            self._report.add(
                "changed", one.path, "an answer's images stand in a user message after it"
            )
            self._images += images

    def _gather(self, one: IndexedItem, field: str) -> JsonObject:
        """The message being gathered: until its calls are answered everything belongs to it."""
        turn = self._turn
        same = one.item.response_id is not None and one.item.response_id == self._response
        goes_on = turn is not None and (
            same
            or "tool_calls" in turn
            or not (turn["content"] and field in ("content", "thinking"))
        )
        if turn is None or not goes_on:
            self.flush()
            turn = self._turn = {"role": "assistant", "content": []}
        elif (field != "tool_calls" and "tool_calls" in turn) or (
            field == "thinking" and turn["content"]
        ):
            self._report.add(
                "changed",
                one.path,
                "one text and one thought a message: the order within the answer is lost",
            )
        self._response = one.item.response_id
        return turn

    def think(self, one: IndexedItem) -> None:
        """A thought goes back beside the text it led to."""
        item: Any = one.item
        text = item.content or SEPARATOR.join(item.summary)
        if not text:
            self._report.dropped(one.path, "a thought without text")
            return
        self._gather(one, "thinking").setdefault("thinking", []).append(text)

    def call(self, one: IndexedItem) -> None:
        """O2."""
        item: Any = one.item
        native = _own(item)
        function = {
            "name": item.name,
            "arguments": as_object(item, one.path, self._report),
            **native.pop("function", {}),
        }
        self._call(one, {"id": item.call_id, "type": "function", **native, "function": function})

    def custom_call(self, one: IndexedItem) -> None:
        """Free-form text is one string."""
        item: Any = one.item
        self._report.add("changed", one.path, 'a free-form call, sent as {"input": …}')
        function = {"name": item.name, "arguments": {"input": item.input}}
        self._call(one, {"id": item.call_id, "type": "function", "function": function})

    def _call(self, one: IndexedItem, entry: JsonObject) -> None:
        self._names[entry["id"]] = entry["function"]["name"]
        self._gather(one, "tool_calls").setdefault("tool_calls", []).append(entry)

    def output(self, one: IndexedItem) -> None:
        """A result names its tool."""
        item: Any = one.item
        self._end_turn()
        text, images = (
            (item.output, []) if isinstance(item.output, str) else self._read(item.output, one)
        )
        if images:
            self._report.add(
                "changed", one.path, "images of a result stand in a user message after it"
            )
            self._images += images
        if item.is_error:
            self._report.add(
                "changed", f"{one.path}/is_error", "said in the text: Ollama has no is_error"
            )
            text = f"[error] {text}".strip()
        name = self._names.get(item.call_id, "")
        self.sent.append(
            {"role": "tool", "tool_name": name, "tool_call_id": item.call_id, "content": text}
        )

    def compaction(self, one: IndexedItem) -> None:
        """Its text, as the user's."""
        item: Any = one.item
        if item.content:
            self._report.add("changed", one.path, "Ollama has no compaction: sent as user text")
            self.flush()
            self.sent.append({"role": "user", "content": item.content})
        else:
            self._report.dropped(one.path, "a sealed compaction")

    def nothing(self, one: IndexedItem) -> None:
        """Kinds without a place."""
        self._report.dropped(one.path, f"Ollama has no {type(one.item).__name__}")

    def _read(self, parts: tuple[ContentPart, ...], one: IndexedItem) -> tuple[str, list[str]]:
        """The text and the images of some parts."""
        images = [part.data for part in parts if isinstance(part, Image) and part.data]
        texts = [text for part in parts if (text := self._text(part, one))]
        return (
            "" if isinstance(one.item, Message) and one.item.role == "assistant" else SEPARATOR
        ).join(texts), images

    def _text(self, part: ContentPart, one: IndexedItem) -> str:
        match part:
            case Text():
                return part.text
            case Refusal():
                return part.refusal
            case Document(data=str(data)) if (kind := media_type(part)).startswith(
                "text/"
            ) or kind in TEXTUAL:
                self._report.add("changed", one.path, "a document of text is sent as text")
                return f"[{part.name or kind}]\n{plain_text(data)}"
            case Image(data=str()):
                return ""
            case Audio(transcript=str(transcript)):
                self._report.dropped(one.path, "Ollama takes no audio: its transcript is sent")
                return transcript
            case _:
                self._report.dropped(
                    one.path,
                    f"Ollama takes no such {type(part).__name__.lower()}: images as bytes only (O6)",
                )
                return ""


def _own(item: Any) -> JsonObject:
    """Keys that this wire said of the item."""
    return dict(item.native or {})


TAKES: Final[dict[type, Callable[[Writer, IndexedItem], None]]] = {
    Message: Writer.message,
    Reasoning: Writer.think,
    FunctionCall: Writer.call,
    FunctionCallOutput: Writer.output,
    CustomToolCall: Writer.custom_call,
    CustomToolCallOutput: Writer.output,
    ServerToolCall: Writer.nothing,
    ServerToolResult: Writer.nothing,
    Compaction: Writer.compaction,
    Opaque: Writer.nothing,
}
