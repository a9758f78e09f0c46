"""Decodes a Gemini generateContent request into a `Prompt`: the inverse of `build`.

The state machine that reads responses also reads model turns, so that what a client sends back is
the item it once received, with its signature and the bytes of its arguments; adjacent text parts
are joined, as they are in a response. A result's `response` of the form `{"output": "…"}` or
`{"error": "…"}` is text; any other object is its own JSON text, marked in `native` so that it goes
back unchanged. Names are read in camelCase and, as proto3's JSON allows, in snake_case.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec import Raw

from streamlib.request.history import with_turn_fields
from streamlib.request.json_objects import camel_case
from streamlib.request.prompt import Prompt
from streamlib.wires.gemini.settings import SETTINGS
from streamlib.wires.gemini.tools import known, listed, read_tools
from streamlib.wires.generated_ids import new_id
from streamlib.wires.model_turns import ModelTurns
from streamlib_parsers.item_base import unchecked
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

EMPTY_SIGNATURE: Final = Raw(b'""')
STAND_IN: Final = new_id("")
"""Stands for an empty `thoughtSignature` while the parser of responses reads a turn: it takes an
empty one for none, since a stream may have it on every part. No client can know this value."""

NESTED_NAMES: Final = (
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
"""Fields of a part whose value is an object, with names in camelCase or snake_case."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """Decodes a request.

    Args:
        body: the JSON body.
        headers: not read: this wire keeps nothing there.
        path: the request path, which names the model and whether to stream. Empty if unknown.

    Returns:
        The prompt.
    """
    del headers
    raw = present(camel_case(as_object(body)))
    contents = _objects(raw.pop("contents"))
    fields = {key: as_value(value) for key, value in raw.items()}
    model_field = str(fields.pop("model", None) or "").removeprefix("models/")
    system = camel_case(fields.pop("systemInstruction", None) or {})
    instructions, messages = _system(system)
    reader = _HistoryReader(messages)
    system.pop("parts", None)
    if system:
        # `role`, which the server does not read.
        fields["systemInstruction"] = system
    for content in contents:
        reader.read_turn(present(camel_case(content)))
    model, stream = model_field, None
    url_match = _PATH.fullmatch(path.partition("?")[0])
    if url_match:
        model = unquote(url_match[1])
        stream = url_match[2] == "streamGenerateContent"
    tools = read_tools(fields.pop("tools", None))
    for key in ("generationConfig", "toolConfig"):
        fields[key] = known(fields.get(key))
    return unchecked(Prompt)(
        input=reader.items,
        instructions=instructions,
        tools=tools,
        model=model or None,
        stream=stream,
        **SETTINGS.read(fields),
    )


def _system(content: JsonObject) -> tuple[str | None, list[Message]]:
    """`Prompt.instructions`, and the system messages after them: each part is one."""
    texts: list[Text] = []
    for part in listed(content.get("parts")):
        if not part.get("text"):
            continue
        further = {key: value for key, value in camel_case(part).items() if key != "text"}
        texts.append(Text(msgspec.convert(part["text"], str), native=further or None))
    instructions = None
    if texts and texts[0].native is None:
        instructions = texts.pop(0).text
    return instructions, [Message("system", (text,), origin=ORIGIN) for text in texts]


class _PendingCall(NamedTuple):
    """A call that has no result yet."""

    provider_id: str | None
    name: str
    call_id: str


class _HistoryReader:
    """Converts contents to items, and matches each result with the call it belongs to."""

    def __init__(self, items: Sequence[ResponseItem]) -> None:
        self.items: list[ResponseItem] = list(items)
        """The history so far; each turn appends to it."""
        self._turns = ModelTurns("gemini")
        self._pending: defaultdict[tuple[str, str], deque[_PendingCall]] = defaultdict(deque)
        """Calls in order under `("id", …)` and `("name", …)`. A call is under both, so that a
        result finds it in constant time: 9,000 calls of one name must not take quadratic time."""
        self._calls: dict[str, _PendingCall] = {}
        """Every call so far, by its call id."""
        self._matched: set[str] = set()
        """Call ids that have a result; they may still be in the other queue."""

    def read_turn(self, content: Object) -> None:
        """Appends the items of one element of `contents`."""
        role = optional(content, "role") or "user"
        parts = [_part(part) for part in _objects(content.get("parts", b"[]"))]
        items: Iterable[ResponseItem] = self._user_items(parts)
        if role == "model":
            # The parser of responses gives no item for empty texts, but they are a turn here.
            items = self._model_items(parts) or [_empty_message(parts)]
        elif not parts:
            items = [Message("user", origin=ORIGIN)]
        fields = rest(content, "role", "parts")
        self.items += [with_turn_fields(item, fields) for item in items]

    def _model_items(self, parts: list[Object]) -> list[ResponseItem]:
        # The turn in the shape of a response, so that the parser of responses reads it.
        for part in parts:
            if part.get("thoughtSignature") == EMPTY_SIGNATURE:
                part["thoughtSignature"] = Raw(msgspec.json.encode(STAND_IN))
        body = msgspec.json.encode({"candidates": [{"content": {"parts": parts}}]})
        items = [_with_empty_signature(item) for item in self._turns.read(body)]
        for item in items:
            if isinstance(item, FunctionCall):
                call = _PendingCall(item.id, item.name, item.call_id)
                self._calls[item.call_id] = call
                self._pending["name", item.name].append(call)
                self._pending["id", item.id or ""].append(call)
        return items

    def _user_items(self, parts: list[Object]) -> Iterator[ResponseItem]:
        """Adjacent content parts are one message; each result is an item."""
        content: list[ContentPart] = []
        for part in parts:
            content_part = _content_part(part)
            if content_part is not None:
                content.append(content_part)
                continue
            if content:
                yield Message("user", content, origin=ORIGIN)
                content = []
            if "functionResponse" in part:
                yield self._result(part)
            else:
                yield _unknown_part(part)
        if content:
            yield Message("user", content, origin=ORIGIN)

    def _result(self, part: Object) -> FunctionCallOutput:
        response = present(as_object(part["functionResponse"]))
        media: list[ContentPart] = []
        unknown: list[JsonObject] = []
        for fragment in map(_part, _objects(response.get("parts", b"[]"))):
            content_part = _content_part(fragment)
            if content_part is None:
                unknown.append(_decoded(fragment))
            else:
                media.append(content_part)
        text, is_error, native = _result_text(response.get("response", NULL))
        inner = rest(response, "id", "name", "response", "parts") or {}
        if unknown:
            inner["parts"] = unknown
        native.update(rest(part, "functionResponse") or {})
        if inner:
            native["functionResponse"] = inner
        output: str | list[ContentPart] = text
        if media:
            output = media
            if text:
                output = [Text(text), *media]
        call_id = self._call_id(optional(response, "id"), optional(response, "name") or "")
        named = self._differing_names(response, call_id)
        if named:
            native["functionResponse"] = {**named, **native.get("functionResponse", {})}
        return FunctionCallOutput(call_id, output, is_error, native=native or None, origin=ORIGIN)

    def _differing_names(self, response: Object, call_id: str) -> JsonObject:
        """Id and name of a result if they differ from its call's, which the builder writes."""
        # A call of a history that the provider stores has neither here.
        call = self._calls.get(call_id, _PendingCall(None, "", call_id))
        differing: JsonObject = {}
        for key, value in (("id", call.provider_id), ("name", call.name)):
            own = optional(response, key)
            if own and own != value:
                differing[key] = own
        return differing

    def _call_id(self, provider_id: str | None, name: str) -> str:
        """The call with that id, else the oldest call of that name without a result."""
        queues = [self._pending["name", name]]
        if provider_id:
            queues.insert(0, self._pending["id", provider_id])
        for queue in queues:
            while queue:
                call = queue.popleft()
                if call.call_id not in self._matched:
                    self._matched.add(call.call_id)
                    return call.call_id
        return provider_id or self._turns.new_call_id()


def _empty_message(parts: list[Object]) -> Message:
    """A model's turn of empty texts, or of nothing."""
    content = [part for part in map(_content_part, parts) if part is not None]
    return Message("assistant", content, origin=ORIGIN)


def _objects(raw: Raw | bytes) -> list[Object]:
    """A list of objects. One object alone is read as its only element, as Google's servers do."""
    if bytes(raw).lstrip().startswith(b"["):
        return as_objects(raw)
    return [as_object(raw)]


def _part(part: Object) -> Object:
    """The part with all names in camelCase, and without nulls."""
    part = present(camel_case(part))
    for key in NESTED_NAMES:
        if key not in part:
            continue
        inner = as_object(part[key])
        # Written again only where a name has to change: the bytes of arguments must survive.
        if any("_" in name for name in inner):
            part[key] = Raw(msgspec.json.encode(camel_case(inner)))
    return part


def _with_empty_signature(item: ResponseItem) -> ResponseItem:
    """The item with the empty signature of its part, where that part had one."""
    empty = {"thoughtSignature": ""}
    if item.signature == STAND_IN:
        native = {**(item.native or {}), **empty}
        return msgspec.structs.replace(item, signature=None, native=native)
    if isinstance(item, Opaque) and item.payload.get("thoughtSignature") == STAND_IN:
        return msgspec.structs.replace(item, payload={**item.payload, **empty})
    return item


def _content_part(part: Object) -> ContentPart | None:
    """The content part, or None if this is another kind of part."""
    if "text" in part:
        return Text(as_string(part["text"]), native=rest(part, "text"))
    if "inlineData" in part:
        kind = "inlineData"
    elif "fileData" in part:
        kind = "fileData"
    else:
        return None
    data = present(as_object(part[kind]))
    native = rest(part, kind) or {}
    inner = rest(data, "mimeType", "data", "fileUri", "displayName")
    if inner:
        native[kind] = inner
    return msgspec.structs.replace(media_of(data), native=native or None)


def _unknown_part(part: Object) -> Opaque:
    payload = _decoded(part)
    kind = next(iter(payload), "part")
    return Opaque(kind, payload, native={"role": "user"}, origin=ORIGIN)


def _decoded(part: Object) -> JsonObject:
    return {key: as_value(value) for key, value in part.items()}


def _result_text(response: Raw) -> tuple[str, bool, JsonObject]:
    """The text of a result, whether it is an error, and the item's `native`."""
    value = as_value(response)
    # Absent, null, {} and "" all mean no output.
    if not value:
        return "", False, {}
    if isinstance(value, dict) and len(value) == 1:
        key, text = next(iter(value.items()))
        if key in ("output", "error") and isinstance(text, str):
            return text, key == "error", {}
    native: JsonObject = {}
    if isinstance(value, dict):
        # Tells the builder that the text is the object itself, to be sent in these bytes.
        native["response"] = "object"
    return bytes(response).decode("utf-8"), False, native
