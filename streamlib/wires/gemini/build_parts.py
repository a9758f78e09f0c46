"""Items as Gemini parts: one function a kind of item, each part still apart and knowing what it is said as.

A part has one member with its data; what else belongs to it (`thoughtSignature`, `native`) goes back on that very part. Rules have the
numbers of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from streamlib.request.context import BuildContext
from streamlib.request.history import CALLS, Call, IndexedItem
from streamlib.request.media import media_type
from streamlib.request.origins import DOWNGRADES
from streamlib.wires.arguments import as_object
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

Said: TypeAlias = Literal["model", "user", "result", "attachment"]
"""What a part is said as: by the model, by the user, as the result of a call, as an image that belongs to one."""


class Part(NamedTuple):
    """One part. call_id: of a call, its result, and what is attached to that."""

    said: Said
    body: JsonObject
    at: int
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class GeminiContext(BuildContext):
    """What the functions below need beside their item."""

    calls: dict[str, Call]
    """By call id, for the names that results repeat."""

    def takes(self, field: str) -> bool:
        """Whether the provider takes a field that not every host of this wire knows."""
        return field not in self.target.provider.unsupported


Parts: TypeAlias = Iterator[Part]

RESULT_TYPES: Final = frozenset(
    {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
)
"""Media types that a result may hold (G20)."""
ATTRIBUTES: Final = frozenset(
    {
        *(
            "thought",
            "thoughtSignature",
            "videoMetadata",
            "mediaResolution",
            "partMetadata",
            "mediaProcessing",
        ),
        *("speechMetadata", "documentMetadata", "spreadsheetMetadata", "audioMetadata"),
    }
)
"""Members of a part that are no data."""
_ENDINGS: Final = {
    "image": "png jpg=jpeg jpeg gif webp heic heif",
    "application": "pdf json",
    "text": "txt=plain md=markdown html csv xml",
    "audio": "mp3=mpeg wav ogg flac aac",
    "video": "mp4 mov=quicktime webm mpeg",
}
URL_TYPES: Final = {
    word.partition("=")[0]: f"{kind}/{word.partition('=')[2] or word}"
    for kind, words in _ENDINGS.items()
    for word in words.split()
}
"""What the ending of an address says of a file."""
SURROGATE: Final = re.compile("[\ud800-\udfff]")
DATA_URL: Final = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def parts(items: list[IndexedItem], context: BuildContext) -> Parts:
    """The parts of a history, in order."""
    calls = {one.item.call_id: one.item for one in items if isinstance(one.item, CALLS)}
    gemini = GeminiContext(context.target, context.report, calls)
    for one in items:
        yield from KINDS[type(one.item)](one, gemini)


def whole_part(kind: str, data: Any, item: Any) -> JsonObject:
    """The part of an item: its data, all that came beside it, and its signature."""
    native: JsonObject = item.native or {}
    inner = native.get(kind)
    beside = {key: value for key, value in native.items() if key not in {"type", kind}}
    signed = {"thoughtSignature": item.signature} if item.signature else {}
    return {
        kind: {**data, **inner} if isinstance(inner, dict) and isinstance(data, dict) else data,
        **beside,
        **signed,
    }


# --- one function a kind of item ---


def _message(one: IndexedItem, context: GeminiContext) -> Parts:
    item: Any = one.item
    if item.role in ("system", "developer"):
        context.report.add(
            "changed",
            one.path,
            "Gemini takes no system message amid a conversation: sent as user text (G8)",
        )
        yield Part("user", {"text": f"<system>\n{item.text}\n</system>"}, one.position)
        return
    content = item.content or ((Text(""),) if item.signature else ())
    for n, part in enumerate(content):
        member = _member(part, f"{one.path}/content/{n}", context)
        signature = item.signature if n == len(content) - 1 else None
        if member is None:
            continue
        if member == ("text", "") and not signature:
            context.report.dropped(f"{one.path}/content/{n}", "empty text (G7)")
            continue
        native = {**((item.native or {}) if len(content) == 1 else {}), **(part.native or {})}
        holder = msgspec.structs.replace(item, native=native, signature=signature)
        yield Part(
            "model" if item.role == "assistant" else "user",
            whole_part(*member, holder),
            one.position,
        )


def _member(part: ContentPart, path: str, context: GeminiContext) -> tuple[str, Any] | None:
    """The data member of a content part and its value, or None where nothing of it can be said."""
    match part:
        case Text():
            if part.annotations:
                context.report.dropped(f"{path}/annotations", "Gemini takes no citations back")
            return "text", part.text
        case Refusal():
            return "text", part.refusal
        case _:
            return _medium(part, path, context)


def _medium(
    part: Image | Document | Audio, path: str, context: GeminiContext
) -> tuple[str, Any] | None:
    """As `medium`; of a part whose bytes are not here its transcript, where it has one."""
    if part.name and not context.takes("displayName"):
        context.report.dropped(
            f"{path}/name",
            f"{context.target.provider.name}: {context.target.provider.unsupported['displayName']}",
        )
        part = msgspec.structs.replace(part, name=None)
    found = medium(part)
    if found is None and isinstance(part, Audio) and part.transcript:
        context.report.add(
            "changed", path, "audio kept by another provider, sent as its transcript"
        )
        return "text", part.transcript
    if found is None:
        context.report.dropped(path, "a part without data (G7)")
    return found


def medium(part: Image | Document | Audio) -> tuple[str, JsonObject] | None:
    """The data member of a media part and its value, or None where its bytes are not here."""
    inline = DATA_URL.fullmatch(part.url or "")
    if inline:
        part = msgspec.structs.replace(
            part, data=inline[2], url=None, media_type=inline[1] or part.media_type
        )
    name = {"displayName": part.name} if part.name else {}
    address = part.url or part.file_id
    if part.data:
        return "inlineData", {"mimeType": media_type(part), "data": part.data, **name}
    if address:
        kind = part.media_type or _type_of(address)
        return "fileData", {**({"mimeType": kind} if kind else {}), "fileUri": address, **name}
    return None


def _type_of(url: str) -> str | None:
    """What the ending of an address says. Vertex wants to be told."""
    try:
        return URL_TYPES.get(urlsplit(url).path.rpartition(".")[2].lower())
    except ValueError:
        return None


def _reasoning(one: IndexedItem, context: GeminiContext) -> Parts:
    item: Any = one.item
    text = item.content or "\n\n".join(item.summary)
    if not text and not item.signature:
        context.report.dropped(one.path, "a thought without text or signature (G7)")
        return
    body = whole_part("text", text, item)
    yield Part("model", {"text": body.pop("text"), "thought": True, **body}, one.position)


def _call(one: IndexedItem, context: GeminiContext) -> Parts:
    """The provider's own id goes back; one that we generated does not (G9)."""
    item: Any = one.item
    given = {"id": item.id} if item.id else {}
    data = {**given, "name": item.name, "args": as_object(item, one.path, context.report)}
    yield Part("model", whole_part("functionCall", data, item), one.position, item.call_id)


def _custom_call(one: IndexedItem, context: GeminiContext) -> Parts:
    item: Any = one.item
    context.report.add("changed", one.path, 'a free-form call, sent as {"input": …}')
    yield Part(
        "model",
        {"functionCall": {"name": item.name, "args": {"input": item.input}}},
        one.position,
        item.call_id,
    )


def _output(one: IndexedItem, context: GeminiContext) -> Parts:
    """One `functionResponse`, and the media that it cannot hold."""
    item: Any = one.item
    said = (Text(item.output),) if isinstance(item.output, str) else item.output
    media = [
        part
        for part in said
        if isinstance(part, (Image, Document, Audio)) and (part.data or part.url or part.file_id)
    ]
    held = [
        part
        for part in media
        if context.target.traits.rich_results and media_type(part) in RESULT_TYPES
    ]
    call = context.calls[item.call_id]
    given = {"id": call.id} if isinstance(call, FunctionCall) and call.id else {}
    blobs = [{found[0]: found[1]} for part in held if (found := _medium(part, one.path, context))]
    blobs += ((item.native or {}).get("functionResponse") or {}).get("parts", ())
    response = _response(item, said)
    data: JsonObject = {
        **given,
        "name": call.name,
        "response": {} if blobs and response == {"output": ""} else response,
    }
    body = whole_part(
        "functionResponse",
        data,
        msgspec.structs.replace(item, native=_without(item.native, "response")),
    )
    body["functionResponse"].update({"parts": blobs} if blobs else {})
    yield Part("result", body, one.position, item.call_id)
    for part in media:
        if part not in held and (found := _medium(part, one.path, context)):
            context.report.add(
                "changed", one.path, "what a result cannot hold follows it as a user turn (G4, G20)"
            )
            yield Part("attachment", {found[0]: found[1]}, one.position, item.call_id)


def _response(item: FunctionCallOutput, said: tuple[ContentPart, ...]) -> Any:
    """An object, always (G22). Text stays text under `output` or `error`, so no key of it is read as a reference (G21).

    Where the caller's request had another object there, the text is that object, and goes back in its own bytes.
    """
    text = "\n".join(
        _words(part) for part in said if not isinstance(part, (Image, Document)) and _words(part)
    )
    if (item.native or {}).get("response") == "object" and _is_object(text):
        return Raw(text.encode("utf-8"))
    return {"error" if item.is_error else "output": text}


def _words(part: ContentPart) -> str:
    match part:
        case Text(text=text) | Refusal(refusal=text):
            return text
        case Audio(data=None, url=None, file_id=None, transcript=text):
            return text or ""
        case _:
            return ""


def _without(native: JsonObject | None, key: str) -> JsonObject | None:
    return {name: value for name, value in native.items() if name != key} if native else None


def _server(one: IndexedItem, context: GeminiContext) -> Parts:
    """A tool that is none of Gemini's goes down the ladder, whatever its origin says."""
    body = server_part(one.item)
    if body is not None:
        yield Part("model", body, one.position)
        return
    _, reason, item = DOWNGRADES[type(one.item)](one.item)
    context.report.add("downgraded", one.path, reason)
    if isinstance(item, Message):
        yield from _message(IndexedItem(one.position, item), context)


def server_part(item: Any) -> JsonObject | None:
    """The part of one of Gemini's own tools, or None where the item is no such thing, or not whole."""
    kind: str = (item.native or {}).get("type") or ""
    given = {"id": item.id} if item.id else {}
    data = SERVER_PARTS[kind](item) if kind in SERVER_PARTS else None
    return None if data is None else whole_part(kind, {**given, **data}, item)


def _code(item: Any) -> JsonObject | None:
    return (
        msgspec.json.decode(item.arguments, type=dict[str, Raw])
        if _is_object(item.arguments)
        else None
    )


def _tool_call(item: Any) -> JsonObject | None:
    if not item.arguments:
        return {"toolType": item.name}
    return (
        {"toolType": item.name, "args": Raw(item.arguments.encode("utf-8"))}
        if _is_object(item.arguments)
        else None
    )


def _code_result(item: Any) -> JsonObject | None:
    return item.output if isinstance(item.output, dict) else None


def _tool_response(item: Any) -> JsonObject:
    return {"toolType": item.name, "response": item.output}


SERVER_PARTS: Final[dict[str, Callable[[Any], JsonObject | None]]] = {
    "executableCode": _code,
    "codeExecutionResult": _code_result,
    "toolCall": _tool_call,
    "toolResponse": _tool_response,
}
"""The data of a hosted tool's part, by its member."""


def _is_object(text: str) -> bool:
    """Whether a text can be sent as the JSON object it is."""
    return text.lstrip().startswith("{") and is_json(text) and not SURROGATE.search(text)


def _compaction(one: IndexedItem, context: GeminiContext) -> Parts:
    item: Any = one.item
    if item.content:
        context.report.add("downgraded", one.path, "Gemini has no compactions: sent as user text")
        yield from _message(IndexedItem(one.position, user(item.content)), context)
    else:
        context.report.dropped(one.path, "Gemini has no compactions, and this one holds no text")


def _opaque(one: IndexedItem, context: GeminiContext) -> Parts:
    """A part as it came. One that only describes a part is refused (G25); a lone signature stands for an empty text."""
    item: Any = one.item
    if item.payload.keys() <= ATTRIBUTES and item.payload.keys() - {"thoughtSignature"}:
        context.report.dropped(one.path, "a part without data (G25)")
        return
    yield Part(
        "user" if (item.native or {}).get("role") == "user" else "model", item.payload, one.position
    )


KINDS: Final[dict[type, Callable[[IndexedItem, GeminiContext], Parts]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _call,
    CustomToolCall: _custom_call,
    FunctionCallOutput: _output,
    CustomToolCallOutput: _output,
    ServerToolCall: _server,
    ServerToolResult: _server,
    Compaction: _compaction,
    Opaque: _opaque,
}
