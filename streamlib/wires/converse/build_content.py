"""Items as Converse content blocks: one member each, in their order.

Numbers such as B12 are the rows of the rule table in docs/wires/converse.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.media import media_type
from streamlib.request.origins import reasoning_as_text
from streamlib.wires.arguments import as_object
from streamlib.wires.bedrock import Family
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
)

FILLER: Final = "."
"""Text where the API wants some and nothing was said: blank text is refused."""
NO_OUTPUT: Final = "(no output)"
NAME_LENGTH: Final = 200

IMAGE_FORMATS: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
DOCUMENT_FORMATS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
AUDIO_FORMATS: Final = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/opus": "opus",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/webm": "webm",
}
MEDIA: Final[dict[type, tuple[str, dict[str, str]]]] = {
    Image: ("image", IMAGE_FORMATS),
    Document: ("document", DOCUMENT_FORMATS),
    Audio: ("audio", AUDIO_FORMATS),
}
"""Media parts: their member, and its `format` by media type."""
DOCUMENT_KEYS: Final = ("context", "citations")
"""Members of a document that no typed field holds."""
MEMBERS: Final = frozenset(
    {"json", "video", "audio", "document", "searchResult", "image", "toolAddition", "toolRemoval"}
)
"""Members that a part of a kind we do not know keeps whole in its `native`."""


class Block(NamedTuple):
    """One content block, the role it is said in, and the item it came from (-1: none)."""

    role: str
    body: JsonObject
    at: int

    @property
    def member(self) -> str:
        """What kind of block it is."""
        return next(iter(self.body), "")


@dataclass(frozen=True, slots=True)
class ConverseContext(BuildContext):
    """What every block is made with."""

    family: Family
    names: dict[str, int] = field(default_factory=dict)
    """How often each document name was used: a request may hold a name only once."""


Said: TypeAlias = Iterator[tuple[str, JsonObject]]


# --- one function an item kind: (role, block) ---


def _message(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    if item.role in ("system", "developer"):
        yield _system_inside(item.text, one, context)
    elif item.role == "assistant":
        yield from _assistant(one, context)
    else:
        blocks = [block for part in item.content if (block := _part(part, one, context))]
        yield from (("user", block) for block in blocks)
        if any("document" in block for block in blocks) and not any(
            block.get("text", "").strip() for block in blocks
        ):
            context.report.add(
                "generated", one.path, f"a document needs text beside it: {FILLER!r} added (B12)"
            )
            yield "user", {"text": FILLER}


def _system_inside(text: str, one: IndexedItem, context: ConverseContext) -> tuple[str, JsonObject]:
    if context.family.system_inside and context.target.traits.system_role:
        return "system", {"text": text}
    context.report.add(
        "changed", one.path, "the model takes no system message here: sent as user text (A17)"
    )
    return "user", {"text": f"<system>\n{text}\n</system>"}


def _assistant(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    for part in item.content:
        if isinstance(part, Text) and part.annotations:
            yield (
                "assistant",
                {
                    "citationsContent": {
                        "content": [{"text": part.text}],
                        "citations": list(part.annotations),
                    }
                },
            )
        elif isinstance(part, (Text, Refusal)):
            yield "assistant", {"text": part.text if isinstance(part, Text) else part.refusal}
        elif isinstance(part, Audio) and part.transcript:
            context.report.add("changed", one.path, "what the model spoke, sent as text (B13)")
            yield "assistant", {"text": part.transcript}
        else:
            context.report.dropped(
                one.path, "images, documents and audio stand in user turns only (B13)"
            )


def _reasoning(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    report, thoughts = context.report, context.family.thoughts
    replays = thoughts in ("signed", "any")
    sealed = item.encrypted_content if item.redacted or not item.content else None
    if sealed and replays:
        yield "assistant", {"reasoningContent": {"redactedContent": sealed}}
    elif (
        item.signature and item.status == "completed" and replays
    ) or context.target.provider.unsigned_thinking:
        signature = {"signature": item.signature} if item.signature else {}
        yield (
            "assistant",
            {"reasoningContent": {"reasoningText": {"text": item.content, **signature}}},
        )
    elif thoughts in ("signed", "text") and (text := reasoning_as_text(item)) is not None:
        report.add(
            "downgraded", one.path, "a thought that cannot go back as one, sent as text (B15)"
        )
        yield "assistant", {"text": text.text}
    else:
        report.dropped(one.path, f"{context.target.model} takes no earlier thoughts (B15)")


def _call(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    use = {
        "toolUseId": item.call_id,
        "name": item.name,
        "input": as_object(item, one.path, context.report),
    }
    yield "assistant", {"toolUse": {**use, **(item.native or {})}}


def _custom_call(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    context.report.add("changed", one.path, 'a free-form call, sent as {"input": …}')
    yield (
        "assistant",
        {"toolUse": {"toolUseId": item.call_id, "name": item.name, "input": {"input": item.input}}},
    )


def _server_call(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    use = {
        "toolUseId": item.call_id,
        "name": item.name,
        "input": as_object(item, one.path, context.report),
    }
    yield "assistant", {"toolUse": {**use, "type": "server_tool_use", **(item.native or {})}}


def _server_result(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    whole = {"text": item.output} if isinstance(item.output, str) else {"json": item.output}
    output = item.output if isinstance(item.output, list) and item.output else [whole]
    yield (
        "assistant",
        {"toolResult": {"toolUseId": item.call_id, "content": output, **(item.native or {})}},
    )


def _output(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    report = context.report
    parts = (Text(item.output),) if isinstance(item.output, str) else item.output
    made = [block for part in parts if (block := _part(part, one, context))]
    content = [block for block in made if not is_blank(block)]
    if not content:
        report.add("repaired", f"{one.path}/output", f"a result is never empty: {NO_OUTPUT!r} (B3)")
        content = [{"text": NO_OUTPUT}]
    result: JsonObject = {"toolUseId": item.call_id, "content": content}
    if item.is_error and context.family.status:
        result["status"] = "error"
    elif item.is_error:
        report.dropped(
            f"{one.path}/is_error", f"{context.target.model} takes no status of a result (B18)"
        )
    yield "user", {"toolResult": {**result, **(item.native or {})}}


def _compaction(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    if item.content:
        context.report.add("downgraded", one.path, "Converse has no compaction: sent as user text")
        yield "user", {"text": item.content}
    else:
        context.report.dropped(one.path, "Converse has no compaction, and this one cannot be read")


def _opaque(one: IndexedItem, context: ConverseContext) -> Said:
    item: Any = one.item
    yield (item.native or {}).get("role", "assistant"), item.payload


BLOCKS: Final[dict[type, Callable[[IndexedItem, ConverseContext], Said]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _call,
    CustomToolCall: _custom_call,
    FunctionCallOutput: _output,
    CustomToolCallOutput: _output,
    ServerToolCall: _server_call,
    ServerToolResult: _server_result,
    Compaction: _compaction,
    Opaque: _opaque,
}


def is_blank(block: JsonObject) -> bool:
    """Whether a block is text, and blank (B2)."""
    return block.keys() == {"text"} and not block["text"].strip()


# --- parts ---


def _part(part: ContentPart, one: IndexedItem, context: ConverseContext) -> JsonObject | None:
    native = part.native or {}
    if isinstance(part, Text) and len(native) == 1 and native.keys() <= MEMBERS:
        return native
    if isinstance(part, (Text, Refusal)):
        block: JsonObject | None = {"text": part.text if isinstance(part, Text) else part.refusal}
    elif isinstance(part, Audio) and not part.data and part.transcript:
        block = {"text": part.transcript}
    else:
        block = _media(part, one, context)
    return _guarded(block, native) if block and "guardContent" in native else block


def _guarded(block: JsonObject, native: JsonObject) -> JsonObject:
    """What a guardrail is to look at; `native` has the rest of it (`qualifiers`)."""
    inner = (
        {"text": {"text": block["text"], **native["guardContent"]}} if "text" in block else block
    )
    return {"guardContent": inner}


def _media(
    part: Image | Document | Audio, one: IndexedItem, context: ConverseContext
) -> JsonObject | None:
    member, formats = MEDIA[type(part)]
    kind = media_type(part).partition(";")[0].strip().lower()
    named = _format_of_name(part, formats)
    written, source = (
        (formats.get(kind) or named) if part.media_type else (named or formats.get(kind)),
        _source(part),
    )
    if written is None or source is None:
        reason = (
            f"Converse has no format for {kind}"
            if source
            else "Converse takes bytes or an S3 location, no URL and no file id"
        )
        context.report.dropped(one.path, f"{reason} (B13)")
        return None
    block: JsonObject = {"format": written, "source": source}
    if isinstance(part, Document):
        block["name"] = _name(part, one, context)
        block |= {
            key: part.native[key] for key in DOCUMENT_KEYS if part.native and key in part.native
        }
    return {member: block}


def _format_of_name(part: Image | Document | Audio, formats: dict[str, str]) -> str | None:
    """By the ending of the name; any other text is `txt`."""
    ending = (part.name or "").rpartition(".")[2].lower()
    if ending in formats.values():
        return ending
    return (
        "txt"
        if isinstance(part, Document) and (part.media_type or "").startswith("text/")
        else None
    )


def _source(part: Image | Document | Audio) -> JsonObject | None:
    if part.data:
        return {"bytes": part.data}
    if part.url and part.url.startswith("s3://"):
        return {
            "s3Location": {
                "uri": part.url,
                **{
                    key: value for key, value in (part.native or {}).items() if key == "bucketOwner"
                },
            }
        }
    return None


def _name(part: Document, one: IndexedItem, context: ConverseContext) -> str:
    """A name as the API takes it, unique in the request (B11); the same in every request of a growing conversation."""
    given = (part.name or "").strip()
    clean = re.sub(r"\s+", " ", re.sub(r"[^a-zA-Z0-9\s\-()\[\]]+", "-", given))[:NAME_LENGTH]
    name = _unique(
        given if clean == given and given else clean.strip(" -") or "document", context.names
    )
    if name != given:
        context.report.add(
            "renamed" if given else "generated", one.path, f"a document is named {name!r} (B11)"
        )
    return name


def _unique(name: str, taken: dict[str, int]) -> str:
    """The name, or the name with the next free number. taken: names -> the last number tried for them."""
    numbered = name
    while numbered in taken:
        taken[name] = taken.get(name, 1) + 1
        ending = f" ({taken[name]})"
        numbered = f"{name[: NAME_LENGTH - len(ending)]}{ending}"
    taken[numbered] = 1
    return numbered
