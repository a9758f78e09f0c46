"""Stored items as the messages that a page shows: what it would hold had it been there.

    messages = to_ui_messages(history, tools=TOOLS)     # of `useChat({messages})`, or AG-UI's

The messages are made by the encoders of the stream, so that a page which reloads shows the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from streamlib.web.agui.body import messages_of
from streamlib.web.agui.events import part_of_content
from streamlib.web.message_encoder import values_of
from streamlib.web.request_tools import OfferedTool, RequestTools
from streamlib.web.run_encoder import OUTPUTS
from streamlib.web.sealing import Seal
from streamlib.web.ui_parts import MEDIA_TYPES
from streamlib.web.ui_request import RequestProtocol
from streamlib.web.vercel.body import message_of
from streamlib.wires.encoders import RunEncoder, encoder
from streamlib.wires.missing_deltas import events_of
from streamlib_parsers.items import ContentPart, JsonObject, Message, Refusal, ResponseItem, Text
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
    """
    offered = RequestTools(tools)
    options: JsonObject = {"page_tools": offered.names, "approval_tools": offered.approval_names}
    if protocol == "vercel":
        options["tools"] = offered.names
    messages: list[JsonObject] = []
    turn: list[ResponseItem] = []
    number = 0

    def end_turn() -> None:
        nonlocal number
        if not turn:
            return
        message_id = f"{prefix}{number}"
        encode = encoder(
            protocol, run=True, public=True, seal=seal, message_id=message_id, **options
        )
        frames = values_of(_encoded(encode, turn))
        if protocol == "vercel":
            messages.append(message_of(frames, message_id))
        else:
            messages.extend(messages_of(frames))
        number += 1
        turn.clear()

    for item in items:
        if not isinstance(item, Message) or item.role == "assistant":
            turn.append(item)
            continue
        end_turn()
        if item.role == "user":
            messages.append(_user_message(item, f"{prefix}{number}", protocol))
            number += 1
    end_turn()
    return messages


def _encoded(encode: RunEncoder, items: Sequence[ResponseItem]) -> bytes:
    """The stream of a run with these items."""
    out: list[bytes] = []
    made: list[ResponseItem] = []

    def end_response() -> None:
        if not made:
            return
        response = Response(status="completed", items=tuple(made), stop_reason="stop")
        for seq, event in enumerate(events_of(response)):
            # The ids of sources are made of it.
            out.append(encode.feed(msgspec.structs.replace(event, seq=seq)))
        made.clear()

    for item in items:
        if isinstance(item, OUTPUTS):
            end_response()
            out.append(encode.feed(item))
        else:
            made.append(item)
    end_response()
    out.append(encode.close())
    return b"".join(out)


def _user_message(item: Message, message_id: str, protocol: RequestProtocol) -> JsonObject:
    message: JsonObject = {"id": message_id, "role": "user"}
    if protocol == "vercel":
        return {**message, "parts": [_user_part(part) for part in item.content]}
    if len(item.content) == 1 and isinstance(item.content[0], Text):
        return {**message, "content": item.content[0].text}
    return {**message, "content": [part_of_content(part) for part in item.content]}


def _user_part(part: ContentPart) -> JsonObject:
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
