"""Stored items as the messages that a page shows: what it would hold had it been there.

    messages = to_ui_messages(history, tools=TOOLS)     # of `useChat({messages})`, or AG-UI's

The messages are made by the encoders of the stream, so that a page which reloads shows the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, cast

from streamlib.request.conversation import History
from streamlib.request.mistakes import check_word
from streamlib.web.agui.events import messages_of, part_of_content
from streamlib.web.message_encoder import frames_of, values_of
from streamlib.web.request_tools import OfferedTool, RequestTools
from streamlib.web.run_encoder import OUTPUTS
from streamlib.web.sealing import Seal
from streamlib.web.ui_parts import MEDIA_TYPES
from streamlib.web.ui_request import RequestProtocol
from streamlib.web.vercel.parts import message_of
from streamlib.wires.encoders import RunEncoder, encoder
from streamlib_parsers.items import (
    CallOutput,
    ContentPart,
    JsonObject,
    Message,
    Refusal,
    ResponseItem,
    Text,
)
from streamlib_parsers.response import Response


def to_ui_messages(
    items: Iterable[ResponseItem],
    protocol: RequestProtocol = "vercel",
    *,
    tools: Iterable[OfferedTool] = (),
    seal: Seal | None = None,
    prefix: str = "message-",
) -> list[JsonObject]:
    """The messages of a page for a stored conversation; instructions are left out.

    What follows a message of the user is one message of the assistant, a step for each response.
    A call of a marked tool (`streamlib.tools.needs_approval`) without an output asks its approval.

    Args:
        items: the conversation.
        protocol: `vercel` or `agui`.
        tools: as `parse_ui_request` takes them.
        seal: as there; without one, signatures stay on the server.
        prefix: begins the ids of the messages, which are numbered from 0 through the conversation:
            the same ids each time, while nothing before them changes.

    Raises:
        TypeError: the items hold what is none, or a tool is none.
        ValueError: there is no such protocol.
    """
    check_word("protocol", protocol, ("vercel", "agui"))
    items = History(items)
    offered = RequestTools(tools)
    options: JsonObject = {"page_tools": offered.names, "approval_tools": offered.approval_names}
    if protocol == "vercel":
        options["tools"] = offered.names
    messages: list[JsonObject] = []
    for number, turn in enumerate(_turns(items)):
        message_id = f"{prefix}{number}"
        if isinstance(turn, Message):
            messages.append(_user_message(turn, message_id, protocol))
            continue
        options["message_id"] = message_id
        encode = encoder(protocol, run=True, public=True, seal=seal, **options)
        frames = _frames(encode, turn)
        if protocol == "vercel":
            messages.append(message_of(frames, message_id))
        else:
            messages += messages_of(frames)
    return messages


def _turns(items: Iterable[ResponseItem]) -> list[Message | list[ResponseItem]]:
    """Messages of the user, and between them what the model and the tools made."""
    turns: list[Message | list[ResponseItem]] = []
    for item in items:
        if isinstance(item, Message) and item.role == "user":
            turns.append(item)
        elif not isinstance(item, Message) or item.role == "assistant":
            if not turns or isinstance(turns[-1], Message):
                turns.append([])
            turns[-1].append(item)  # type: ignore[union-attr]  # a list: see above
    return turns


def _frames(encode: RunEncoder, items: Sequence[ResponseItem]) -> Iterator[JsonObject]:
    """The stream of a run with these items, as JSON values."""
    for are_outputs, group in groupby(items, lambda item: isinstance(item, OUTPUTS)):
        if not are_outputs:
            response = Response(status="completed", items=tuple(group), stop_reason="stop")
            yield from frames_of(encode, response)
            continue
        for item in group:
            yield from values_of(encode.feed(cast(CallOutput, item)))
    yield from values_of(encode.close())


def _user_message(item: Message, message_id: str, protocol: RequestProtocol) -> JsonObject:
    message: JsonObject = {"id": message_id, "role": "user"}
    if protocol == "vercel":
        return {**message, "parts": [user_part(part) for part in item.content]}
    if len(item.content) == 1 and isinstance(item.content[0], Text):
        return {**message, "content": item.content[0].text}
    return {**message, "content": [part_of_content(part) for part in item.content]}


def user_part(part: ContentPart) -> JsonObject:
    """The part of a message of a page for a content part."""
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Refusal():
            return {"type": "text", "text": part.refusal}
        case _:
            media_type = part.media_type or MEDIA_TYPES[type(part)]
            url = part.url or f"data:{media_type};base64,{part.data or ''}"
            fields: dict[str, Any] = {"type": "file", "mediaType": media_type, "url": url}
            if part.name:
                fields["filename"] = part.name
            return fields
