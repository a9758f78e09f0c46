"""A Gemini generateContent request as a `Prompt`: the inverse of builders/gemini.py.

A model's turn is read by the machine that reads answers, so that what a client sends back is the item it once received, signatures and
bytes of arguments included; text parts that stood beside each other run together, as they do in an answer. A result's `response` of the
form `{"output": "…"}` or `{"error": "…"}` is text; any other object is its own JSON text, marked in `native` so that it goes back as it
was. Names are read in camelCase and, as proto3's JSON has it, in snake_case. Not kept: what a declaration says of its result.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec import Raw

from streamlib.request.json_objects import camel_case
from streamlib.request.prompt import Prompt
from streamlib.wires.gemini.decode_settings import listed, settings
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.items import (
    ContentPart,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Opaque,
    Origin,
    ResponseItem,
    Text,
)
from streamlib_parsers.protocol import parse_body
from streamlib_parsers.wires.gemini.parts import (
    NULL,
    Object,
    as_object,
    as_objects,
    as_string,
    as_value,
    media_of,
    optional,
    present,
    rest,
)

ORIGIN: Final = Origin("gemini")
_PATH: Final = re.compile(r".*/models/([^/:]+):(generateContent|streamGenerateContent)")
MEMBERS: Final = (
    *("functionCall", "functionResponse", "inlineData", "fileData"),
    *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
)
"""Members of a part whose own names may be written in either case."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt."""
    del headers
    raw = present(camel_case(as_object(body)))
    contents = _objects(raw.pop("contents"))
    asked = {key: as_value(value) for key, value in raw.items()}
    system = _system(asked.pop("systemInstruction", None))
    reader = _Reader([Message("system", (Text(text),), origin=ORIGIN) for text in system[1:]])
    for content in contents:
        reader.turn(present(camel_case(content)))
    place = _PATH.fullmatch(path.partition("?")[0])
    model = unquote(place[1]) if place else str(asked.get("model") or "").removeprefix("models/")
    asked.pop("model", None)
    return msgspec.structs.replace(
        settings(asked),
        input=reader.items,
        instructions=system[0] if system else None,
        model=model or None,
        stream=place[2] == "streamGenerateContent" if place else None,
    )


def _system(content: Any) -> list[str]:
    return [
        msgspec.convert(part["text"], str)
        for part in listed((content or {}).get("parts"))
        if part.get("text")
    ]


class _Called(NamedTuple):
    """A call that has no result yet."""

    given: str | None
    name: str
    call_id: str


class _Reader:
    """Contents into items, each result with the call it answers."""

    def __init__(self, items: list[ResponseItem]) -> None:
        self.items = items
        self._minted = 0
        self._waiting: defaultdict[tuple[str, str], deque[_Called]] = defaultdict(deque)
        self._answered: set[str] = set()

    def turn(self, content: Object) -> None:
        role = optional(content, "role") or "user"
        parts = [_part(part) for part in _objects(content.get("parts", b"[]"))]
        self.items += self._model(parts) if role == "model" else self._user(parts)

    def _mint(self, n: int) -> str:
        del n  # the machine counts one turn
        self._minted += 1
        return f"call_{self._minted - 1}"

    # --- what the model said ---

    def _model(self, parts: list[Object]) -> tuple[ResponseItem, ...]:
        body = msgspec.json.encode({"candidates": [{"content": {"parts": parts}}]})
        response = accumulate(parse_body("gemini", body, origin=ORIGIN, call_id=self._mint))
        if response.error is not None:
            raise ValueError(response.error.message)
        for item in response.items:
            if isinstance(item, FunctionCall):
                called = _Called(item.id, item.name, item.call_id)
                self._waiting["name", item.name].append(called)
                self._waiting["id", item.id or ""].append(called)
        return response.items

    # --- what the user said ---

    def _user(self, parts: list[Object]) -> Iterator[ResponseItem]:
        """Adjacent parts are one message; each result is an item."""
        said: list[ContentPart] = []
        for part in parts:
            found = _content(part)
            if found is not None:
                said.append(found)
                continue
            if said:
                yield Message("user", said, origin=ORIGIN)
                said = []
            yield self._result(part) if "functionResponse" in part else _unknown(part)
        if said:
            yield Message("user", said, origin=ORIGIN)

    def _result(self, part: Object) -> FunctionCallOutput:
        inner = present(as_object(part["functionResponse"]))
        media = [(one, _content(one)) for one in map(_part, _objects(inner.get("parts", b"[]")))]
        text, is_error, native = _text_of(inner.get("response", NULL))
        left: JsonObject = rest(inner, "id", "name", "response", "parts") or {}
        left |= (
            {"parts": odd}
            if (odd := [_decoded(one) for one, found in media if found is None])
            else {}
        )
        native |= (rest(part, "functionResponse") or {}) | (
            {"functionResponse": left} if left else {}
        )
        held = [found for _, found in media if found is not None]
        return FunctionCallOutput(
            self._call_id(optional(inner, "id"), optional(inner, "name") or ""),
            [*([Text(text)] if text else []), *held] if held else text,
            is_error,
            native=native or None,
            origin=ORIGIN,
        )

    def _call_id(self, given: str | None, name: str) -> str:
        """Of the call with that id, else of the oldest one of that name that has no result."""
        for waiting in (
            self._waiting["id", given or ""] if given else deque[_Called](),
            self._waiting["name", name],
        ):
            while waiting:
                called = waiting.popleft()
                if called.call_id not in self._answered:
                    self._answered.add(called.call_id)
                    return called.call_id
        return given or self._mint(0)


def _objects(raw: Raw | bytes) -> list[Object]:
    return as_objects(raw) if bytes(raw).lstrip().startswith(b"[") else [as_object(raw)]


def _part(part: Object) -> Object:
    """The part with all names in camelCase, and without nulls."""
    part = present(camel_case(part))
    for key in MEMBERS:
        if key in part:
            inner = as_object(part[key])
            part[key] = (
                Raw(msgspec.json.encode(camel_case(inner)))
                if any("_" in name for name in inner)
                else part[key]
            )
    return part


def _content(part: Object) -> ContentPart | None:
    """A content part, or None where it is no such thing."""
    if "text" in part:
        return Text(as_string(part["text"]), native=rest(part, "text"))
    kind = next((key for key in ("inlineData", "fileData") if key in part), None)
    if kind is None:
        return None
    values = present(as_object(part[kind]))
    inner = rest(values, "mimeType", "data", "fileUri", "displayName")
    native = (rest(part, kind) or {}) | ({kind: inner} if inner else {})
    return msgspec.structs.replace(media_of(values), native=native or None)


def _unknown(part: Object) -> Opaque:
    payload = _decoded(part)
    return Opaque(next(iter(payload), "part"), payload, native={"role": "user"}, origin=ORIGIN)


def _decoded(part: Object) -> JsonObject:
    return {key: as_value(value) for key, value in part.items()}


def _text_of(response: Raw) -> tuple[str, bool, JsonObject]:
    """The text of a result, whether it is an error, and what `native` says of it."""
    value = as_value(response)
    if not value:
        return "", False, {}
    if isinstance(value, dict) and len(value) == 1:
        key, text = next(iter(value.items()))
        if key in ("output", "error") and isinstance(text, str):
            return text, key == "error", {}
    return (
        bytes(response).decode("utf-8"),
        False,
        {"response": "object"} if isinstance(value, dict) else {},
    )
