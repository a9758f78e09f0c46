"""Lists of messages of the wires Chat, Messages and Responses, as other libraries keep them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from streamlib.history.transcripts.draft import (
    LIST_KEYS,
    TranscriptDraft,
    decoded,
    turn_of,
)
from streamlib.history.transcripts.source import JsonSource
from streamlib.providers import Provider
from streamlib.providers.models import Traits
from streamlib.providers.shapes import ChatShape
from streamlib.request.history import OUTPUTS, IndexedItem, drop_incomplete, reasoning_text
from streamlib.request.origins import OTHER_PROVIDER, downgrade
from streamlib.request.report import Report
from streamlib.request.target import BuildContext, Target
from streamlib.wires.chat import transcript as chat
from streamlib.wires.messages import transcript as messages
from streamlib.wires.responses import transcript as responses
from streamlib_parsers.items import (
    JsonObject,
    Message,
    Origin,
    Reasoning,
    WireApi,
    user,
)

CONVERSATION: Final = frozenset({"messages", "input", "system", "instructions", "model", "stream"})
"""Keys of a body that are the conversation, or say where it went."""

INSTRUCTIONS: Final = ("system", "instructions")
"""Keys of a body that hold instructions."""

KEEPS_ALL: Final = Provider(
    "transcript",
    wires=("chat", "messages", "responses"),
    unsigned_thinking=True,
    chat=ChatShape(
        developer_role=True,
        tool_parts=True,
        custom_tools=True,
        reasoning_echo=(
            "reasoning_content",
            "reasoning_details",
            "thinking_blocks",
            "reasoning_opaque",
        ),
    ),
)
"""A provider that takes whatever the wires can hold: a transcript is not sent to it."""


class _ListWriter(Protocol):
    def transcript_list(
        self, items: Iterable[IndexedItem], context: BuildContext
    ) -> list[JsonObject]: ...


WRITERS: Final[dict[WireApi, _ListWriter]] = {
    "chat": chat,
    "messages": messages,
    "responses": responses,
}


def _read(wire_api: WireApi, source: JsonSource, draft: TranscriptDraft) -> None:
    key = LIST_KEYS[wire_api]
    beside: dict[str, Raw] = {}
    if isinstance(source.value, dict) and key in source.value:
        fields = msgspec.json.decode(source.raw, type=dict[str, Raw])
        beside = {name: fields[name] for name in INSTRUCTIONS if name in fields}
        for name in source.value:
            if name not in CONVERSATION:
                draft.report.dropped(f"/{name}", "a setting of a request, not of a conversation")
        if isinstance(source.value[key], str):  # Responses takes one text
            draft.items.append(user(source.value[key]))
            return
    elements: list[tuple[str, bytes]] = []
    for entry in source.entries(key):
        raw = entry.raw
        if wire_api == "messages" and entry.value.get("type") == "message":
            raw = msgspec.json.encode(turn_of(raw))
        elements.append((entry.path, raw))
    prompt = decoded(wire_api, elements, beside)
    if prompt.cache is not None:
        draft.report.dropped("/cache", "cache marks are settings of a request")
    draft.take_prompt(prompt)


read_chat: Final = partial(_read, "chat")
read_messages: Final = partial(_read, "messages")
read_responses: Final = partial(_read, "responses")


# --- writing ---


def wire_list(wire_api: WireApi, entries: list[IndexedItem], report: Report) -> list[JsonObject]:
    """The list of a wire."""
    entries = drop_incomplete(entries, report)
    entries = [_portable(entry, wire_api, report) for entry in entries]
    entries = downgrade(entries, Origin(wire_api), report)
    if wire_api == "messages":
        entries = [_with_known_role(entry, report) for entry in entries]
    else:
        entries = [_without_error(entry, report) for entry in entries]
    target = Target(KEEPS_ALL, "transcript", wire_api, "", Traits())
    listed = WRITERS[wire_api].transcript_list(entries, BuildContext(target, report))
    plain: list[JsonObject] = msgspec.json.decode(msgspec.json.encode(listed))
    return plain


def _portable(entry: IndexedItem, wire_api: WireApi, report: Report) -> IndexedItem:
    """Reasoning of another wire as reasoning of this one, without the state of its provider."""
    item = entry.item
    if not isinstance(item, Reasoning) or item.origin is None or item.origin.wire_api == wire_api:
        return entry
    if item.signature or item.encrypted_content:
        report.dropped(f"{entry.path}/signature", OTHER_PROVIDER)
    text = reasoning_text(item)
    bare = Reasoning(text, response_id=item.response_id, agent=item.agent, origin=Origin(wire_api))
    if not text:
        # Nothing that could be read: `downgrade` drops it, and says so.
        bare = replace(item, signature=None)
    return IndexedItem(entry.position, bare)


def _with_known_role(entry: IndexedItem, report: Report) -> IndexedItem:
    """A message of the developer as one of the system."""
    item = entry.item
    if not isinstance(item, Message) or item.role != "developer":
        return entry
    report.add("changed", f"{entry.path}/role", "Messages has the role system")
    return IndexedItem(entry.position, replace(item, role="system"))


def _without_error(entry: IndexedItem, report: Report) -> IndexedItem:
    """An output without its mark as an error, which the wire has no field for.

    A request would say it in the text, and then the text would be another one.
    """
    item: Any = entry.item
    if not isinstance(item, OUTPUTS) or not item.is_error:
        return entry
    report.dropped(f"{entry.path}/is_error", "the format has no field for it")
    return IndexedItem(entry.position, replace(item, is_error=False))


write_chat: Final = partial(wire_list, "chat")
write_messages: Final = partial(wire_list, "messages")
write_responses: Final = partial(wire_list, "responses")
