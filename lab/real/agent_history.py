"""What a model reads of a conversation beside what its client sent, in order and content.

The gateway records both sides of each request (``--record``). Reasoning stands in neither list:
many clients do not send it, and the gateway adds it (`agent_model.Signatures` counts it).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from streamlib import Prompt, parse_request
from streamlib.recording import Recording, load_all
from streamlib_parsers.items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Text,
    WireApi,
)

SHOWN: Final = 200
"""Characters of a line in a fault."""


def fault_in_histories(folder: Path, client: WireApi, model: WireApi) -> str | None:
    """The first request whose history is another at the model than at the client, or None."""
    for file in sorted(folder.iterdir()):
        sides = [side for side in load_all(file) if side.request is not None]
        if len(sides) < 2:
            continue
        sent, received = history_in(sides[0], client), history_in(sides[-1], model)
        if [*map(without_space, sent)] != [*map(without_space, received)]:
            return f"the model reads another history: {difference(sent, received)}"
    return None


def history_in(side: Recording, wire: WireApi) -> list[str]:
    """What one side of a recorded request says."""
    assert side.request is not None
    path = urlsplit(side.url).path
    return history_lines(parse_request(wire, side.request.body, path=path))


def history_lines(prompt: Prompt) -> list[str]:
    """A line for each text, call and output of a conversation, in order.

    A call stands with its arguments, an output with the number of its call: ids may change on the
    way. Adjacent texts of one role are one, since a wire joins them and another does not.
    """
    lines: list[str] = []
    calls: list[str] = []
    for item in prompt.items:
        match item:
            case Message(role="user" | "assistant", content=content):
                texts = [part.text for part in content if isinstance(part, Text) and part.text]
                add_text(lines, item.role, "\n".join(texts))
            case FunctionCall(call_id, name):
                calls.append(call_id)
                arguments = msgspec.json.encode(item.parsed(), order="sorted").decode()
                lines.append(f"call {name} {arguments}")
            case CustomToolCall(call_id, name, text):
                calls.append(call_id)
                lines.append(f"call {name} {text}")
            case FunctionCallOutput(call_id, output) | CustomToolCallOutput(call_id, output):
                number = calls.index(call_id) if call_id in calls else -1
                line = f"output of {number}: {output_text(output)}"
                # Gemini CLI 0.61 sends each output twice when it goes on with a conversation.
                if line not in lines:
                    lines.append(line)
            case _:
                pass
    return lines


def add_text(lines: list[str], role: str, text: str) -> None:
    """Adds a text, to the line before it if that is of the same role."""
    if not text:
        return
    if lines and lines[-1].startswith(f"{role}: "):
        lines[-1] += f"\n{text}"
    else:
        lines.append(f"{role}: {text}")


def output_text(output: object) -> str:
    """What a tool returned; JSON in one form, since Gemini's outputs are objects."""
    if isinstance(output, tuple):
        output = "\n".join(part.text for part in output if isinstance(part, Text))
    text = str(output)
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted").decode()
    except msgspec.DecodeError:
        return text


def equal_characters(one: str, other: str) -> int:
    """How many characters two texts have alike at their beginning."""
    for count, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return count
    return min(len(one), len(other))


def without_space(line: str) -> str:
    """A line to compare: a wire that takes one string for a text joins its parts with a space."""
    return "".join(line.split())


def difference(sent: list[str], received: list[str]) -> str:
    """Where two histories part."""
    for number, (one, other) in enumerate(zip(sent, received, strict=False)):
        if without_space(one) != without_space(other):
            start = max(0, equal_characters(one, other) - SHOWN // 2)
            end = start + SHOWN
            return f"line {number} was {one[start:end]!r}, and is {other[start:end]!r}"
    longer = sent if len(sent) > len(received) else received
    line = longer[min(len(sent), len(received))]
    return f"{len(sent)} lines became {len(received)}: {line[:SHOWN]!r}"
