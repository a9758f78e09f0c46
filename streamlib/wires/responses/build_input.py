"""A history as the `input` of an OpenAI Responses request: one item, one object, in the order it was said.

Each rule that makes the API answer 400 or 404 is one small function; R1 … are the rows of the rule table in docs/wires/responses.md:

R1 without `store` no ids of messages, thoughts and calls       R5 assistant text is output_text, all other text input_text
R2 a thought the server cannot read back is left out            R6 an answer of the wire's own kind needs its call, and a call its answer
R3 a thought stands directly before what it produced            R7 no null, no empty message, no status beyond the wire's words
R4 ids have their kind's prefix, at most 64 characters          R8 what was cut (hosted calls, thoughts, unknown items) is left out
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import msgspec

from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.media import data_url, media_type
from streamlib.request.origins import downgrade_item, reasoning_as_text
from streamlib.request.report import Report
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
    Output,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.wires.responses.items import HOSTED, RESULTS, TO_ANSWER
from streamlib_parsers.wires.responses.wire_items import wire_item

ID_PREFIXES: Final = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "custom_tool_call": "ctc_",
}
WITHOUT_ID: Final = frozenset(
    {
        *ID_PREFIXES,
        "function_call_output",
        "custom_tool_call_output",
        "compaction",
        "compaction_summary",
    }
)
"""Kinds whose id only stored responses know (R1). Hosted tools keep theirs: their types require one."""
WITH_STATUS: Final = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}
)
"""Kinds whose `status` is required."""
ANSWERS: Final = {answer: kind for kind, (_, answer) in TO_ANSWER.items()}
UNREAD: Final = "said in the text: Responses has no is_error"
EXTENSIONS: Final = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
}


class InputObject(NamedTuple):
    """One object of the input, and the item it came from."""

    body: JsonObject
    one: IndexedItem


@dataclass(frozen=True, slots=True)
class ResponsesContext(BuildContext):
    """What decides how an item is written."""

    stored: bool
    """The server keeps responses, so ids mean something to it."""


def wire_input(items: list[IndexedItem], context: ResponsesContext) -> list[InputObject]:
    """The input, every rule met."""
    sent: list[InputObject] = []
    for one in items:
        if isinstance(one.item, Opaque) and "content_index" in (one.item.native or {}):
            _put_back(one.item, one, sent, context.report)
        else:
            sent += [
                InputObject(_tidied(body, stored=context.stored), one)
                for body in ITEMS[type(one.item)](one, context)
            ]
    return _before_what_they_produced(
        _answered(_not_empty(sent, context.report), context.report), context.report
    )


# --- items ---

Bodies = Iterator[JsonObject]


def _message(one: IndexedItem, context: ResponsesContext) -> Bodies:
    item = cast(Message, one.item)
    if item.role == "assistant":
        yield _said(item, one, context.report)
        return
    role = context.target.provider.roles.get(item.role, item.role)
    parts = [_part(part, one, context.report) for part in item.content]
    yield {
        "type": "message",
        **(item.native or {}),
        "role": role,
        "content": [part for part in parts if part],
    }


def _said(item: Message, one: IndexedItem, report: Report) -> JsonObject:
    """What the model said: text and refusals only (R5); `phase` and native keys as they were."""
    kept = [spoken for part in item.content if (spoken := _spoken(part, one, report)) is not None]
    body = wire_item(msgspec.structs.replace(item, content=tuple(kept)))
    body["content"] = [
        _native_part(part) or {**made, **(part.native or {})}
        for part, made in zip(kept, body["content"], strict=True)
    ]
    return {**body, "status": item.status}


def _spoken(part: ContentPart, one: IndexedItem, report: Report) -> Text | Refusal | None:
    if isinstance(part, (Text, Refusal)):
        return part
    report.dropped(one.path, f"an answer's {type(part).__name__.lower()} cannot be sent back")
    return Text(part.transcript) if isinstance(part, Audio) and part.transcript else None


def _reasoning(one: IndexedItem, context: ResponsesContext) -> Bodies:
    """Kept where the server can read it: sealed, stored, or in plain words to the server that said them (R2)."""
    item = cast(Reasoning, one.item)
    readable = item.content and (
        item.origin is not None or context.target.provider.unsigned_thinking
    )
    if item.status == "incomplete":
        context.report.dropped(one.path, "the thought was cut (R8)")
    elif (
        item.encrypted_content or readable or (context.stored and _has_own_id(item.id, "reasoning"))
    ):
        yield wire_item(item)
    elif item.content and (text := reasoning_as_text(item)) is not None:
        context.report.add(
            "downgraded", one.path, "a thought without encrypted_content, sent as text (R2)"
        )
        yield wire_item(text)
    else:
        context.report.dropped(one.path, "a thought without encrypted_content (R2)")


def _call(one: IndexedItem, context: ResponsesContext) -> Bodies:
    """Arguments are a JSON string: as they are; where another wire left them out, an empty object."""
    item = cast(FunctionCall, one.item)
    is_own = item.origin is not None and item.origin.wire_api == "responses"
    yield {**wire_item(item), "arguments": item.arguments or ("" if is_own else "{}")}


def _custom_call(one: IndexedItem, context: ResponsesContext) -> Bodies:
    yield wire_item(cast(CustomToolCall, one.item))


def _output(one: IndexedItem, context: ResponsesContext) -> Bodies:
    item = cast("FunctionCallOutput | CustomToolCallOutput", one.item)
    kind = (
        "custom_tool_call_output"
        if isinstance(item, CustomToolCallOutput)
        else "function_call_output"
    )
    output = _output_value(item.output, one, context.report)
    if item.is_error:
        context.report.add("changed", f"{one.path}/is_error", UNREAD)
        output = (
            f"[error] {output}".strip()
            if isinstance(output, str)
            else [{"type": "input_text", "text": "[error]"}, *output]
        )
    yield {**(item.native or {}), "type": kind, "call_id": item.call_id, "output": output}


def _output_value(output: Output, one: IndexedItem, report: Report) -> str | list[JsonObject]:
    if isinstance(output, str):
        return output
    heard = [_without_audio(part, one, report) for part in output]
    return [body for part in heard if part is not None and (body := _part(part, one, report))] or ""


def _without_audio(part: ContentPart, one: IndexedItem, report: Report) -> ContentPart | None:
    if not isinstance(part, Audio):
        return part
    report.dropped(one.path, "the output of a call takes no audio")
    return Text(part.transcript) if part.transcript else None


def _server_item(one: IndexedItem, context: ResponsesContext) -> Bodies:
    """A tool of the provider's own: whole to the wire that made it, as text where no wire is known."""
    item = cast("ServerToolCall | ServerToolResult", one.item)
    kind = (item.native or {}).get("type")
    if kind not in (HOSTED if isinstance(item, ServerToolCall) else RESULTS):
        yield from _as_text(one, context)
    elif item.status == "incomplete":
        context.report.dropped(one.path, "the call was cut (R8)")
    else:
        body = wire_item(item)
        yield {**({"status": "completed"} if kind in WITH_STATUS else {}), **body}


def _compaction(one: IndexedItem, context: ResponsesContext) -> Bodies:
    item = cast(Compaction, one.item)
    if item.status == "incomplete":
        context.report.dropped(one.path, "the compaction was cut (R8)")
    elif item.encrypted_content:
        yield wire_item(item)
    else:
        yield from _as_text(one, context)


def _as_text(one: IndexedItem, context: ResponsesContext) -> Bodies:
    """One rung down the ladder, as if it were another origin's."""
    action, reason, lower = downgrade_item(one.item)
    if action:
        context.report.add(action, one.path, reason)
    if lower is not None:
        yield from ITEMS[type(lower)](IndexedItem(one.position, lower), context)


def _opaque(one: IndexedItem, context: ResponsesContext) -> Bodies:
    item = cast(Opaque, one.item)
    if item.status == "incomplete":
        context.report.dropped(one.path, f"{item.kind} was cut (R8)")
    else:
        yield {**({"type": item.kind} if item.kind else {}), **wire_item(item)}


ITEMS: Final[dict[type, Callable[[IndexedItem, ResponsesContext], Bodies]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _call,
    FunctionCallOutput: _output,
    CustomToolCall: _custom_call,
    CustomToolCallOutput: _output,
    ServerToolCall: _server_item,
    ServerToolResult: _server_item,
    Compaction: _compaction,
    Opaque: _opaque,
}


# --- rules ---


def _tidied(body: JsonObject, *, stored: bool) -> JsonObject:
    """Ids, status and nulls as the wire takes them (R1, R4, R7)."""
    kind = body.get("type")
    if kind not in WITHOUT_ID:
        return body
    tidy = {
        key: value
        for key, value in body.items()
        if value is not None and key not in ("id", "status")
    }
    if stored and _has_own_id(body.get("id"), kind):
        tidy["id"] = body["id"]
        tidy.update({"status": body["status"]} if kind == "message" else {})
    return tidy


def _has_own_id(item_id: str | None, kind: str) -> bool:
    return (
        item_id is not None and len(item_id) <= 64 and item_id.startswith(ID_PREFIXES.get(kind, ""))
    )


def _put_back(item: Opaque, one: IndexedItem, sent: list[InputObject], report: Report) -> None:
    """A content part of a kind we do not know goes back into its message."""
    native = item.native or {}
    if (
        sent
        and isinstance(sent[-1].one.item, Message)
        and sent[-1].one.item.id == native.get("item_id")
    ):
        sent[-1].body["content"].insert(native["content_index"], item.payload)
    else:
        report.dropped(one.path, f"{item.kind} belongs to a message that is not here")


def _not_empty(sent: list[InputObject], report: Report) -> list[InputObject]:
    kept: list[InputObject] = []
    for one in sent:
        if isinstance(one.one.item, Message) and not one.body["content"]:
            report.dropped(one.one.path, "a message without content (R7)")
        else:
            kept.append(one)
    return kept


def _answered(sent: list[InputObject], report: Report) -> list[InputObject]:
    """The wire's own calls and answers, in pairs (R6). An approval may wait; a shell of the provider's answers itself."""
    calls = {name for body, _ in sent if body.get("type") in TO_ANSWER for name in _names(body)}
    answers = {name for body, _ in sent if body.get("type") in ANSWERS for name in _names(body)}
    kept: list[InputObject] = []
    for one in sent:
        kind = str(one.body.get("type"))
        if (
            kind in ANSWERS
            and isinstance(one.one.item, Opaque)
            and not calls.intersection(_names(one.body))
        ):
            report.dropped(one.one.path, f"{kind} without its call (R6)")
        elif kind in TO_ANSWER and _waits(one) and not answers.intersection(_names(one.body)):
            report.dropped(one.one.path, f"{kind} without an answer (R6)")
        else:
            kept.append(one)
    return kept


def _waits(one: InputObject) -> bool:
    environment = one.body.get("environment") or {}
    return (
        isinstance(one.one.item, Opaque)
        and one.body["type"] != "mcp_approval_request"
        and environment.get("type") != "container_reference"
    )


def _names(body: JsonObject) -> Iterable[Any]:
    return [body[key] for key in ("call_id", "id", "approval_request_id") if body.get(key)]


def _before_what_they_produced(sent: list[InputObject], report: Report) -> list[InputObject]:
    """A thought is followed by an item of its own response (R3)."""
    kept: list[InputObject] = []
    after: ResponseItem | None = None
    for one in reversed(sent):
        item = one.one.item
        if one.body.get("type") != "reasoning":
            after = item if _is_produced(item) else None
        elif after is None or not _same_response(item, after):
            report.dropped(one.one.path, "a thought without the item it produced (R3)")
            continue
        kept.append(one)
    return kept[::-1]


def _same_response(one: ResponseItem, other: ResponseItem) -> bool:
    return (
        one.response_id is None or other.response_id is None or one.response_id == other.response_id
    )


def _is_produced(item: ResponseItem) -> bool:
    if isinstance(item, Message):
        return item.role == "assistant"
    return not isinstance(item, (FunctionCallOutput, CustomToolCallOutput)) and not (
        isinstance(item, Opaque) and item.kind in ANSWERS
    )


# --- parts ---


def _native_part(part: ContentPart) -> JsonObject | None:
    """A part of a kind we do not know, as the wire wrote it."""
    return part.native if "type" in (part.native or {}) else None


def _part(part: ContentPart, one: IndexedItem, report: Report) -> JsonObject | None:
    """A part of what the caller says."""
    return _native_part(part) or {**PARTS[type(part)](part), **(part.native or {})}


def _text(part: Any) -> JsonObject:
    return {"type": "input_text", "text": part.text}


def _refusal(part: Any) -> JsonObject:
    return {"type": "input_text", "text": part.refusal}


def _image(part: Any) -> JsonObject:
    place = {"file_id": part.file_id} if part.file_id else {"image_url": data_url(part)}
    return {"type": "input_image", **place, "detail": "auto"}


def _document(part: Any) -> JsonObject:
    """A name goes with bytes only, and bytes do not go without one."""
    if part.file_id:
        return {"type": "input_file", "file_id": part.file_id}
    if part.data is None:
        return {"type": "input_file", "file_url": part.url}
    name = part.name or f"document.{EXTENSIONS.get(media_type(part), 'pdf')}"
    return {"type": "input_file", "filename": name, "file_data": data_url(part)}


def _audio(part: Any) -> JsonObject:
    kind = "mp3" if media_type(part) in ("audio/mpeg", "audio/mp3") else "wav"
    return {"type": "input_audio", "input_audio": {"data": part.data or "", "format": kind}}


PARTS: Final[dict[type, Callable[[Any], JsonObject]]] = {
    Text: _text,
    Refusal: _refusal,
    Image: _image,
    Document: _document,
    Audio: _audio,
}
