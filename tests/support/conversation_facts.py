"""What two conversations must have in common: texts, calls, outputs, state and their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from streamlib.request.origins import opaque_state
from streamlib_parsers.items import (
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    tag,
)

Fact: TypeAlias = tuple[Any, ...]

OUTPUTS: Final = (FunctionCallOutput, CustomToolCallOutput)


def facts_of(items: Iterable[ResponseItem]) -> list[Fact]:
    """What a conversation says, in order. Texts of one role in a row are one: formats join them."""
    facts: list[Fact] = []
    for item in items:
        for fact in _facts(item):
            is_same = facts and fact[0] == "text" and facts[-1][:2] == fact[:2]
            if is_same:
                facts[-1] = (*fact[:2], facts[-1][2] + fact[2])
            else:
                facts.append(fact)
    return facts


def _facts(item: ResponseItem) -> list[Fact]:
    state = opaque_state(item)
    facts: list[Fact] = [("state", state)] if state else []
    match item:
        case Message():
            facts += [_part(part, item.role) for part in item.content]
        case Reasoning():
            text = item.content or "\n\n".join(item.summary)
            facts += [("reasoning", text)] if text else []
        case FunctionCall():
            facts.append(("call", item.call_id, item.name, _json(item.arguments)))
        case CustomToolCall():
            facts.append(("call", item.call_id, item.name, item.input))
        case _ if isinstance(item, OUTPUTS):
            facts.append(("output", item.call_id, _output(item.output)))
        case ServerToolCall() | ServerToolResult():
            facts.append((tag(type(item)), item.call_id, item.name))
        case _:
            facts.append((tag(type(item)),))
    return facts


def _part(part: ContentPart, role: str) -> Fact:
    if isinstance(part, Text):
        return ("text", role, part.text)
    if isinstance(part, Refusal):
        return ("text", role, part.refusal)
    return ("media", role, tag(type(part)), part.data or part.url or part.file_id)


def _output(output: Any) -> Any:
    """The parts of an output; texts in a row are one, as Chat joins them."""
    if isinstance(output, str):
        return [("text", "", output)]
    parts = [_part(part, "") for part in output]
    if all(part[0] == "text" for part in parts):
        return [("text", "", "".join(part[2] for part in parts))]
    return parts


def _json(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return arguments
