"""Converts items to Gemini parts: one function for each kind of item.

A part has one field with its data; whatever else belongs to it (`thoughtSignature`, `native`) goes
back on that same part. The parts are not grouped into turns yet: each carries the role that decides
this. Rules have the numbers of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from streamlib.request.history import (
    CALLS,
    Call,
    IndexedItem,
    orphan_as_text,
    reasoning_text,
    system_text,
)
from streamlib.request.media import media_type
from streamlib.request.origins import downgrade_item
from streamlib.request.target import BuildContext
from streamlib.wires.arguments import as_object
from streamlib.wires.gemini.build_media import RESULT_TYPES, fitted_media_field
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
    user,
)
from streamlib_parsers.json_text import is_json

PartRole: TypeAlias = Literal["model", "user", "result", "attachment"]
"""Who a part belongs to: the model, the user, the result of a call, or media beside a result."""

MediaPart: TypeAlias = Image | Document | Audio


class Part(NamedTuple):
    """One part of the request, before parts are grouped into turns."""

    role: PartRole
    body: JsonObject
    position: int
    """Position of its item in the prompt's input, for the report."""
    call_id: str | None = None
    """Id of the call that this part is, or whose result or media it has."""


@dataclass(frozen=True, slots=True)
class GeminiContext(BuildContext):
    """A build context with the calls of the history."""

    calls: dict[str, Call]
    """Call id -> call; a result repeats the name of its call."""


Parts: TypeAlias = Iterator[Part]

SIGNATURE: Final = "thoughtSignature"
"""Field of a part; an empty one, which a request may have, is in `native`."""

ATTRIBUTES: Final = frozenset(
    {
        "thought",
        SIGNATURE,
        "videoMetadata",
        "mediaResolution",
        "partMetadata",
        "mediaProcessing",
        "speechMetadata",
        "documentMetadata",
        "spreadsheetMetadata",
        "audioMetadata",
    }
)
"""Fields of a part that describe its data. A part with only these is refused."""  # rule G25

SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parts(items: list[IndexedItem], context: BuildContext) -> Parts:
    """Yields the parts of a history, in order."""
    calls: dict[str, Call] = {}
    for entry in items:
        if isinstance(entry.item, CALLS):
            calls[entry.item.call_id] = entry.item
    gemini = GeminiContext(context.target, context.report, calls)
    for entry in items:
        yield from _item_parts(entry, gemini)


def _item_parts(entry: IndexedItem, context: GeminiContext) -> Parts:
    match entry.item:
        case Message() as item:
            return _message(item, entry, context)
        case FunctionCall() as item:
            return _call(item, entry, context)
        case FunctionCallOutput() | CustomToolCallOutput() as item:
            return _output(item, entry, context)
        case Reasoning() as item:
            return _reasoning(item, entry, context)
        case CustomToolCall() as item:
            return _custom_call(item, entry, context)
        case ServerToolCall() | ServerToolResult() as item:
            return _part_of_server_tool(item, entry, context)
        case Compaction() as item:
            return _compaction(item, entry, context)
        case Opaque() as item:
            return _opaque(item, entry, context)
        case _ as item:
            raise TypeError(f"{type(item).__name__} must be converted to text first")


def part_object(
    kind: str, data: Any, native: JsonObject | None, signature: str | None
) -> JsonObject:
    """Writes a part.

    Args:
        kind: name of its data field (`text`, `functionCall`, …).
        data: value of that field.
        native: the item's other wire fields, in the shape of the part: what is under `kind`
            belongs in the data, the rest beside it.
        signature: the item's signature, sent as `thoughtSignature`.

    Returns:
        The part as a JSON object.
    """
    native = native or {}
    inner = native.get(kind)
    if isinstance(data, dict) and isinstance(inner, dict):
        data = {**data, **inner}
    body = {kind: data}
    # `type` is this library's own note, on items that can be of several kinds.
    body.update({key: value for key, value in native.items() if key not in {"type", kind}})
    if signature:
        body[SIGNATURE] = signature
    return body


# --- messages and reasoning ---


def _message(item: Message, entry: IndexedItem, context: GeminiContext) -> Parts:
    report = context.report
    if item.role in ("system", "developer"):
        report.add(
            "changed",
            entry.path,
            "Gemini takes no system message amid a conversation: sent as user text",
        )
        yield Part("user", {"text": f"<system>\n{system_text(item)}\n</system>"}, entry.position)
        return
    content = item.content
    if not content and item.signature:
        # A signature alone arrived on a part without text; it goes back on an empty text.
        content = (Text(""),)
    if not content:
        report.dropped_message(entry.path)
    role: PartRole = "model" if item.role == "assistant" else "user"
    last = len(content) - 1
    for index, part in enumerate(content):
        path = f"{entry.path}/content/{index}"
        field = _data_field(part, path, context)
        if field is None:
            continue
        # A signed part closes its item, so the signature is that of the last part.
        signature = item.signature if index == last else None
        native = dict(part.native or {})
        if last == 0:
            # With one part, the item's native fields were those of that part.
            native = {**(item.native or {}), **native}
        if field == ("text", "") and not signature and SIGNATURE not in native:
            report.dropped(path, "empty text")
            continue
        yield Part(role, part_object(*field, native, signature), entry.position)


def _data_field(part: ContentPart, path: str, context: GeminiContext) -> tuple[str, Any] | None:
    """The data field of a content part and its value, or None if nothing of it can be sent."""
    match part:
        case Text():
            if part.annotations:
                context.report.dropped(f"{path}/annotations", "Gemini takes no citations back")
            return "text", part.text
        case Refusal():
            return "text", part.refusal
        case Image() | Document() | Audio():
            return fitted_media_field(part, path, context)


def _reasoning(item: Reasoning, entry: IndexedItem, context: GeminiContext) -> Parts:
    text = reasoning_text(item)
    if not text and not item.signature and SIGNATURE not in (item.native or {}):
        context.report.dropped(entry.path, "reasoning without text or signature")
        return
    # `thought` is not a data field: it marks the text as reasoning.
    body = {"text": text, "thought": True}
    body.update(part_object("text", text, item.native, item.signature))
    yield Part("model", body, entry.position)


# --- calls and their results ---


def _call(item: FunctionCall, entry: IndexedItem, context: GeminiContext) -> Parts:
    """The provider's own id goes back; one that we generated does not."""  # rule G9
    data: JsonObject = {}
    if item.id:
        data["id"] = item.id
    data["name"] = item.name
    data["args"] = as_object(item, entry.path, context.report)
    body = part_object("functionCall", data, item.native, item.signature)
    yield Part("model", body, entry.position, item.call_id)


def _custom_call(item: CustomToolCall, entry: IndexedItem, context: GeminiContext) -> Parts:
    context.report.add("changed", entry.path, 'a free-form call, sent as {"input": …}')
    body = {"functionCall": {"name": item.name, "args": {"input": item.input}}}
    yield Part("model", body, entry.position, item.call_id)


def _output(
    item: FunctionCallOutput | CustomToolCallOutput, entry: IndexedItem, context: GeminiContext
) -> Parts:
    """One `functionResponse`, then the media that it cannot hold."""
    call = context.calls.get(item.call_id)
    if call is None and not (item.native or {}).get("functionResponse", {}).get("name"):
        # The call is in the cached content, but a result goes by the name of its function.
        reason = "an output without the name of its function, sent as user text"
        context.report.add("downgraded", entry.path, reason)
        yield from _message(orphan_as_text(item), entry, context)
        return
    if isinstance(item.output, str):
        content: tuple[ContentPart, ...] = (Text(item.output),)
    else:
        content = tuple(item.output)
    inside, beside = _split_media(content, context)
    native = dict(item.native or {})
    fragments = _result_fragments(inside, native, entry, context)
    response = _response(item, content)
    if fragments and response == {"output": ""}:
        # A result of media alone: an empty text beside it would read as an empty result.
        response = {}
    # This library's note about the form of `response` is not a wire field.
    native.pop("response", None)
    data: JsonObject = {}
    if isinstance(call, FunctionCall) and call.id:
        data["id"] = call.id
    if call is not None:
        data["name"] = call.name
    data["response"] = response
    body = part_object("functionResponse", data, native, item.signature)
    if fragments:
        body["functionResponse"]["parts"] = fragments
    yield Part("result", body, entry.position, item.call_id)
    for part in beside:
        field = fitted_media_field(part, entry.path, context)
        if field is None:
            continue
        context.report.add(
            "changed", entry.path, "what a result cannot hold follows it as a user turn"
        )
        body = part_object(*field, part.native, None)
        yield Part("attachment", body, entry.position, item.call_id)


def _split_media(
    content: tuple[ContentPart, ...], context: GeminiContext
) -> tuple[list[MediaPart], list[MediaPart]]:
    """The media that a result can hold, and those that must follow it."""  # rule G20
    inside: list[MediaPart] = []
    beside: list[MediaPart] = []
    for part in content:
        if not isinstance(part, (Image, Document, Audio)):
            continue
        if not (part.data or part.url or part.file_id):
            # Audio with a transcript alone is text of the result: see `_result_text`.
            continue
        if context.target.traits.rich_results and media_type(part) in RESULT_TYPES:
            inside.append(part)
        else:
            beside.append(part)
    return inside, beside


def _result_fragments(
    media: list[MediaPart], native: JsonObject, entry: IndexedItem, context: GeminiContext
) -> list[JsonObject]:
    """The value of `functionResponse.parts`: media, then parts of a kind that we do not know."""
    fragments: list[JsonObject] = []
    for part in media:
        field = fitted_media_field(part, entry.path, context)
        if field is not None:
            fragments.append(part_object(*field, part.native, None))
    fragments.extend((native.get("functionResponse") or {}).get("parts", ()))
    return fragments


def _response(
    item: FunctionCallOutput | CustomToolCallOutput, content: tuple[ContentPart, ...]
) -> Any:
    """The value of `functionResponse.response`: always an object.

    Text stays text under `output` or `error`, so no key in it is read as a reference. If the
    caller's request had another object there, the text is that object and goes back unchanged.
    """  # rules G22, G21
    texts = [_result_text(part) for part in content]
    text = "\n".join(filter(None, texts))
    if (item.native or {}).get("response") == "object" and _is_object(text):
        return Raw(text.encode("utf-8"))
    if item.is_error:
        return {"error": text}
    return {"output": text}


def _result_text(part: ContentPart) -> str:
    match part:
        case Text(text=text) | Refusal(refusal=text):
            return text
        case Audio(data=None, url=None, file_id=None, transcript=text):
            return text or ""
        case _:
            return ""


# --- the provider's own tools ---


def _part_of_server_tool(
    item: ServerToolCall | ServerToolResult, entry: IndexedItem, context: GeminiContext
) -> Parts:
    """The part of a tool that the provider ran; text, reported, where Gemini has no such tool."""
    # Decided by the part, not by the origin: a client may claim any origin for its item.
    body = server_part(item)
    if body is not None:
        yield Part("model", body, entry.position)
        return
    _, reason, downgraded = downgrade_item(item)
    context.report.add("downgraded", entry.path, reason)
    if isinstance(downgraded, Message):
        yield from _message(downgraded, entry, context)


def server_part(item: ServerToolCall | ServerToolResult) -> JsonObject | None:
    """The part of one of Gemini's own tools, or None if it is another's or incomplete."""
    kind: str = (item.native or {}).get("type") or ""
    if isinstance(item, ServerToolCall):
        data = _server_call_data(kind, item)
    else:
        data = _server_result_data(kind, item)
    if data is None:
        return None
    if item.id:
        data = {"id": item.id, **data}
    return part_object(kind, data, item.native, item.signature)


def _server_call_data(kind: str, item: ServerToolCall) -> JsonObject | None:
    if kind == "executableCode" and _is_object(item.arguments):
        # Raw values keep the provider's bytes.
        return msgspec.json.decode(item.arguments, type=dict[str, Raw])
    if kind == "toolCall" and not item.arguments:
        return {"toolType": item.name}
    if kind == "toolCall" and _is_object(item.arguments):
        return {"toolType": item.name, "args": Raw(item.arguments.encode("utf-8"))}
    return None


def _server_result_data(kind: str, item: ServerToolResult) -> JsonObject | None:
    if kind == "codeExecutionResult" and isinstance(item.output, dict):
        return item.output
    if kind == "toolResponse":
        return {"toolType": item.name, "response": item.output}
    return None


def _is_object(text: str) -> bool:
    """Whether a text can be sent as the JSON object it is: UTF-8 has no lone surrogates."""
    return text.lstrip().startswith("{") and is_json(text) and not SURROGATE.search(text)


# --- items without a part of their own ---


def _compaction(item: Compaction, entry: IndexedItem, context: GeminiContext) -> Parts:
    if not item.content:
        context.report.dropped(entry.path, "Gemini has no compactions, and this one holds no text")
        return
    context.report.add("downgraded", entry.path, "Gemini has no compactions: sent as user text")
    yield from _message(user(item.content), entry, context)


def _opaque(item: Opaque, entry: IndexedItem, context: GeminiContext) -> Parts:
    """An unknown part goes back as received.

    A part without data is refused, except one with a signature: the model wrote it, and it
    counts as an empty text.
    """  # rule G25
    fields = item.payload.keys()
    if fields <= ATTRIBUTES and "thoughtSignature" not in fields:
        context.report.dropped(entry.path, "a part without data")
        return
    is_user = (item.native or {}).get("role") == "user"
    yield Part("user" if is_user else "model", item.payload, entry.position)
