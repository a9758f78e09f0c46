"""A deterministic answer to a prompt: the same request gives the same events, byte for byte.

The model thinks where it was asked to, calls the first tool it was offered (with arguments made of the tool's schema) and, once
the outputs are there, says what they were. Words count as tokens.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from streamlib.request.history import OUTPUTS
from streamlib.request.prompt import Prompt
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import ResponseEvent
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
"""The signature on every thought: opaque, and valid base64."""


def echo_response(prompt: Prompt, wire_api: WireApi = "messages") -> list[ResponseEvent]:
    """The events of the answer."""
    digest = hashlib.sha256(msgspec.json.encode(prompt)).hexdigest()[:16]
    assembly = EventAssembler(LIMITS, Origin(wire_api), lambda n: f"call_{digest[:8]}_{n}")
    read = sum(len(_words(text)) for text in _texts(prompt))
    assembly.identify(f"resp_{digest}", prompt.model or "loopback")
    assembly.usage(Usage(input_tokens=read, output_tokens=0))
    written = 0
    called = False
    for item in _items(prompt, assembly):
        written += _say(assembly, item)
        called |= isinstance(item, FunctionCall)
    assembly.usage(Usage(input_tokens=read, output_tokens=written))
    assembly.complete("tool_calls" if called else "stop")
    return assembly.take()


def _items(prompt: Prompt, assembly: EventAssembler) -> Iterator[ResponseItem]:
    last = prompt.items[-1] if prompt.items else None
    tool = _offered(prompt)
    if prompt.thinking is not None and prompt.thinking.effort != "off":
        yield Reasoning(
            f"They want an answer to {len(prompt.items)} items. I keep it short.",
            signature=SIGNATURE,
        )
    if tool is not None and not isinstance(last, OUTPUTS):
        yield Message("assistant", (Text(f"I will ask {tool.name}."),))
        yield FunctionCall(
            assembly.new_call_id(),
            tool.name,
            msgspec.json.encode(example(tool.schema or {})).decode(),
        )
    elif isinstance(last, OUTPUTS):
        output = (
            last.output
            if isinstance(last.output, str)
            else "".join(part.text for part in last.output if isinstance(part, Text))
        )
        yield Message("assistant", (Text(f"The tool says: {output}"),))
    else:
        yield Message("assistant", (Text(_echo(last)),))


def _offered(prompt: Prompt) -> ToolSpec | None:
    named = [
        tool
        for tool in prompt.tools
        if tool.native is None and prompt.tool_choice in (None, "auto", "required", tool.name)
    ]
    return named[0] if named else None


def _echo(item: ResponseItem | None) -> str:
    said = item.text if isinstance(item, Message) else ""
    return f"You said: {said}\n\nThis is the loopback provider: it repeats what it hears, over real HTTP and without a key."


def _say(assembly: EventAssembler, item: Any) -> int:
    """Streams one item in words; the number of them."""
    grown: dict[str, Any] = (
        {"arguments": ""}
        if isinstance(item, FunctionCall)
        else {"content": () if isinstance(item, Message) else ""}
    )
    opened = assembly.open(msgspec.structs.replace(item, **grown, signature=None))
    words = _words(item.arguments if isinstance(item, FunctionCall) else item.text)
    verbs: dict[type, Any] = {
        Message: assembly.text,
        Reasoning: assembly.reasoning,
        FunctionCall: assembly.arguments,
    }
    for word in words:
        verbs[type(item)](opened, word)
    opened.fields["signature"] = item.signature
    assembly.close(opened)
    return len(words)


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*$|\s*\S+", text)


def _texts(prompt: Prompt) -> Iterator[str]:
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


def example(schema: JsonObject) -> Any:
    """A value that a JSON schema takes: its default, first enum member, or the plainest value of its type."""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "array":
        return [example(schema.get("items") or {})]
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    return {
        name: example(child)
        for name, child in (schema.get("properties") or {}).items()
        if isinstance(child, dict)
    }
