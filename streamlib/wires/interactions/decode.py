"""Decodes a Gemini Interactions request into a `Prompt`: the inverse of `build`.

The state machine that reads responses also reads the model's steps, so that what a client sends
back is the item it once received, with its signature and the bytes of its arguments. An
agent's name is `Prompt.model`, and stays in `Prompt.extra` to tell it from a model's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.json_objects import without_none
from streamlib.request.prompt import Prompt
from streamlib.wires.interactions.settings import SETTINGS, read_tool
from streamlib.wires.model_turns import ModelTurns, body_fields
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    ContentPart,
    FunctionCallOutput,
    JsonObject,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    Text,
)
from streamlib_parsers.json_text import dumps
from streamlib_parsers.wires.interactions import item_of, output_of, part_of

ORIGIN: Final = Origin("interactions")

CONTENT_TYPES: Final = frozenset({"text", "image", "audio", "document", "video"})
"""Types of contents. `input` may be a list of these in place of one of steps."""

CALLER_STEPS: Final = frozenset({"user_input", "function_result"})
"""Types of steps that the caller sends; all others are the model's."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """Decodes a request.

    Args:
        body: the JSON body.
        headers: not read: this wire keeps nothing there.
        path: not read: the body names the model.

    Returns:
        The prompt.
    """
    del headers, path
    decoded, history = body_fields(body, "input", Raw(b"null"))
    fields: JsonObject = without_none(decoded)
    reader = _Reader()
    reader.read(history)
    model = fields.pop("model", None) or fields.get("agent")
    instructions = fields.pop("system_instruction", None)
    stream = fields.pop("stream", False)
    tools = [read_tool(tool) for tool in fields.pop("tools", ())]
    fields["generation_config"] = without_none(fields.get("generation_config", {}))
    return unchecked(Prompt)(
        input=reader.items,
        instructions=instructions or None,
        tools=tools,
        model=model and msgspec.convert(model, str),
        stream=stream,
        **SETTINGS.read(fields),
    )


class _Reader:
    """Converts the input to items."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        """The history so far."""
        self._turns = ModelTurns("interactions")
        self._names: dict[str, str] = {}
        """Call id -> name of the function: a result may repeat it."""

    def read(self, raw: Raw) -> None:
        """Reads `input`: a text, a content, or a list of contents or of steps."""
        value = msgspec.json.decode(raw)
        if value is None:
            return
        if isinstance(value, str):
            value = [{"type": "text", "text": value}]
            raw = Raw(msgspec.json.encode(value))
        elif isinstance(value, dict):
            value, raw = [value], Raw(b"[" + bytes(raw) + b"]")
        if value and all(element["type"] in CONTENT_TYPES for element in value):
            self._read_user_input({"type": "user_input", "content": value})
            return
        self._read_steps(value, msgspec.json.decode(raw, type=list[Raw]))

    def _read_steps(self, steps: list[JsonObject], raw_steps: list[Raw]) -> None:
        model_steps: list[Raw] = []
        for step, raw in zip(steps, raw_steps, strict=True):
            kind = step["type"]
            if kind not in CALLER_STEPS:
                model_steps.append(raw)
                continue
            self._read_model(model_steps)
            model_steps = []
            if kind == "user_input":
                self._read_user_input(step)
            else:
                self._read_result(step)
        self._read_model(model_steps)

    def _read_model(self, steps: list[Raw]) -> None:
        """Reads the model's steps by writing them as a response for the parser of responses."""
        if not steps:
            return
        body = msgspec.json.encode({"status": "completed", "steps": steps})
        items = self._turns.read(body)
        for item in items:
            if item.status == "incomplete" and hasattr(item, "call_id"):
                raise ValueError("a call without a name, or with arguments that are not an object")
        own_steps = (step for step in map(msgspec.json.decode, steps) if step["type"] == "thought")
        self.items += [_with_empty_summary(item, own_steps) for item in items]

    def _read_user_input(self, step: JsonObject) -> None:
        """One message; clients put results of functions among its contents, too."""
        native = {key: value for key, value in step.items() if key not in ("type", "content")}
        for are_results, contents in _runs(step.get("content") or []):
            if are_results:
                for content in contents:
                    self._read_result(content)
                continue
            parts = [_part(content) for content in contents]
            self.items.append(Message("user", parts, native=native or None, origin=ORIGIN))

    def _read_result(self, step: JsonObject) -> None:
        item = item_of("function_result", step)
        if not isinstance(item, FunctionCallOutput):
            raise TypeError("a function_result is the output of a function")
        output, note = output_of(step.get("result"))
        native = {**(item.native or {}), **(note or {})}
        name = step.get("name")
        if isinstance(name, str) and name:
            native["name"] = name
        self.items.append(
            msgspec.structs.replace(item, output=output, native=native or None, origin=ORIGIN)
        )


def _with_empty_summary(item: ResponseItem, own_steps: Iterator[JsonObject]) -> ResponseItem:
    """The item with the empty summary of its step, which is the next of `own_steps`, if it had one.

    A response may have an empty list before its first text; one of a request is kept.
    """
    if not isinstance(item, Reasoning):
        return item
    step = next(own_steps, {})
    if step.get("summary") != []:
        return item
    return msgspec.structs.replace(item, native={**(item.native or {}), "summary": {}})


def _runs(contents: list[Any] | str) -> Iterator[tuple[bool, list[JsonObject]]]:
    """Splits contents into runs: of results of functions (True) and of all others (False)."""
    if isinstance(contents, str):
        contents = [{"type": "text", "text": contents}]
    run: list[JsonObject] = []
    are_results = False
    for content in contents:
        is_result = content["type"] == "function_result"
        if run and is_result != are_results:
            yield are_results, run
            run = []
        are_results = is_result
        run.append(content)
    if run:
        yield are_results, run


def _part(content: JsonObject) -> ContentPart:
    part = part_of(content)
    if part is None:
        # An unknown kind of content: JSON text for other wires, as received for this one.
        return Text(dumps(content), native=content)
    return part
