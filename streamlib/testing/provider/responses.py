"""A deterministic response to a prompt: equal requests give equal events, byte for byte.

It contains reasoning if the request enables it, then a call of the first tool that may be called
(arguments are made from the tool's schema; "3 calls" in the last message makes three). After the
outputs of calls it is a text that repeats the last output. Each word counts as a token.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from streamlib.request.history import OUTPUTS
from streamlib.request.prompt import Prompt
from streamlib.testing.provider.turns import CALLS, Turn, stream_error
from streamlib_parsers.assembler import EventAssembler, text_changes
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.item_text import STREAMED_FIELDS
from streamlib_parsers.items import (
    FunctionCall,
    JsonObject,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    Text,
    ToolSpec,
    WireApi,
)
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.usage import Usage

SIGNATURE: Final = "bG9vcGJhY2stc2lnbmF0dXJl"
"""The signature of all reasoning: an opaque text in valid base64."""

REQUESTED_CALLS: Final = re.compile(r"\b([2-9]) calls\b")
"""Pattern of a message that asks for parallel calls."""


def echo_response(prompt: Prompt, wire_api: WireApi = "messages") -> list[ResponseEvent]:
    """The events of the response to a prompt.

    Args:
        prompt: the request to echo.
        wire_api: the wire of the items' origin.
    """
    items = tuple(_items(prompt, _assembler(prompt, wire_api)))
    return scripted_response(Turn(items), prompt, wire_api)


def scripted_response(turn: Turn, prompt: Prompt, wire_api: WireApi) -> list[ResponseEvent]:
    """The events of a scripted response.

    Args:
        turn: the items to send; a call without an id gets a generated one.
        prompt: the request; the model's name and the ids are taken from it.
        wire_api: the wire of the items' origin.
    """
    assembler = _assembler(prompt, wire_api)
    input_tokens = _input_tokens(prompt)
    assembler.usage(Usage(input_tokens=input_tokens, output_tokens=0))
    output_tokens = 0
    for item in turn.items:
        output_tokens += _stream(assembler, _with_call_id(item, assembler))
    assembler.usage(turn.usage or Usage(input_tokens=input_tokens, output_tokens=output_tokens))
    if turn.error is not None:
        assembler.fail(stream_error(wire_api, turn.error))
    elif turn.stop_reason is not None:
        assembler.complete(turn.stop_reason)
    else:
        assembler.complete("tool_calls" if turn.waits_for_outputs else "stop")
    return assembler.take()


def _with_call_id(item: ResponseItem, assembler: EventAssembler) -> ResponseItem:
    """The item; a call without an id gets a generated one."""
    if isinstance(item, CALLS) and not getattr(item, "call_id", "id"):
        return msgspec.structs.replace(item, call_id=assembler.new_call_id())
    return item


def _assembler(prompt: Prompt, wire_api: WireApi) -> EventAssembler:
    """An assembler whose ids depend on the prompt alone."""
    digest = hashlib.sha256(msgspec.json.encode(prompt)).hexdigest()[:16]
    assembler = EventAssembler(LIMITS, Origin(wire_api), lambda n: f"call_{digest[:8]}_{n}")
    assembler.identify(f"resp_{digest}", prompt.model or "loopback")
    return assembler


def _input_tokens(prompt: Prompt) -> int:
    return sum(len(_tokens(text)) for text in _prompt_texts(prompt))


def _items(prompt: Prompt, assembler: EventAssembler) -> Iterator[ResponseItem]:
    last: ResponseItem | None = None
    if prompt.items:
        last = prompt.items[-1]
    tool = _callable_tool(prompt)
    if prompt.thinking is not None and prompt.thinking.effort != "off":
        yield Reasoning(
            f"They want an answer to {len(prompt.items)} items. I keep it short.",
            signature=SIGNATURE,
        )
    if isinstance(last, OUTPUTS):
        yield Message("assistant", (Text(f"The tool says: {_output_text(last.output)}"),))
    elif tool is not None:
        yield Message("assistant", (Text(f"I will ask {tool.name}."),))
        arguments = msgspec.json.encode(example(tool.schema or {})).decode()
        for _ in range(_requested_calls(last)):
            yield FunctionCall(assembler.new_call_id(), tool.name, arguments)
    elif isinstance(prompt.output_schema, dict) and prompt.output_schema:
        value = example(prompt.output_schema)
        yield Message("assistant", (Text(msgspec.json.encode(value).decode()),))
    else:
        yield Message("assistant", (Text(_echo(last)),))


def _callable_tool(prompt: Prompt) -> ToolSpec | None:
    """The first tool that `tool_choice` allows; tools that the provider runs are skipped."""
    for tool in prompt.tools:
        allowed = prompt.tool_choice in (None, "auto", "required", tool.name)
        if tool.native is None and allowed:
            return tool
    return None


def _requested_calls(item: ResponseItem | None) -> int:
    """Number of parallel calls that the last message asks for ("make 3 calls"); else 1."""
    match = None
    if isinstance(item, Message):
        match = REQUESTED_CALLS.search(item.text)
    if match is None:
        return 1
    return int(match[1])


def _output_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "".join(part.text for part in output if isinstance(part, Text))


def _echo(item: ResponseItem | None) -> str:
    text = ""
    if isinstance(item, Message):
        text = item.text
    return (
        f"You said: {text}\n\nThis is the loopback provider: "
        "it repeats what it hears, over real HTTP and without a key."
    )


def _stream(assembler: EventAssembler, item: ResponseItem) -> int:
    """Streams one item, a delta for each token; returns the number of tokens."""
    skeleton = _skeleton(item)
    opened = assembler.open(skeleton)
    count = 0
    for emit, _, text, part in text_changes(skeleton, item):
        tokens = _tokens(text)
        count += len(tokens)
        for token in tokens:
            emit(assembler, opened, token, part)
    assembler.finish_with(opened, item)
    return count


def _skeleton(item: ResponseItem) -> ResponseItem:
    """The item before its first delta."""
    empty: dict[str, Any] = {}
    for name in STREAMED_FIELDS.get(type(item), ()):
        empty[name] = type(getattr(item, name))()
    return msgspec.structs.replace(item, signature=None, **empty)


def _tokens(text: str) -> list[str]:
    """The words of a text with the whitespace around them; joined they are the text."""
    return re.findall(r"\s*\S+\s*$|\s*\S+", text)


def _prompt_texts(prompt: Prompt) -> Iterator[str]:
    yield prompt.instructions or ""
    for item in prompt.items:
        if isinstance(item, (Message, Reasoning)):
            yield item.text
        elif isinstance(item, FunctionCall):
            yield item.arguments


EXAMPLES: Final[dict[str, Any]] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
}
"""JSON Schema type -> a value of it, for scalar types."""


def example(schema: JsonObject) -> Any:
    """A value that a JSON schema allows: its default, first enum value, or one of its type."""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        kind = kind[0]
    if kind == "array":
        return [example(schema.get("items") or {})]
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    values: JsonObject = {}
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(child, dict):  # the schemas `true` and `false` have no example
            values[name] = example(child)
    return values
