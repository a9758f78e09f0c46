"""Origins and downgrade: what happens to state that only one origin can read.

| state | same origin | other origin |
|---|---|---|
| reasoning with text, signature | kept, byte for byte | text, in `<think>` tags |
| reasoning without text (redacted, encrypted) | kept | dropped |
| summary of reasoning | kept | text, as reasoning |
| signature on a message or call | kept | dropped, the item stays |
| server tool call and result | kept | text |
| call of a built-in tool, its output | kept, by other models too | text, a screenshot as an image |
| citations of a text | kept | dropped, the text stays |
| compaction with text | kept | text |
| compaction without text, opaque items | kept | dropped |
| options of the caller's items and parts (`native`) | kept | dropped |
| options of a model's items in a decoded request | kept | dropped |
| the name of another agent than the one that was asked | kept | dropped, the item stays |
| ids, `native` of items of a response | kept where the wire wants them | dropped, not reported |

Nothing else is dropped silently: each downgrade is a `Change` in the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from streamlib.request.built_in_text import call_as_text, output_as_text
from streamlib.request.history import OUTPUTS, IndexedItem, reasoning_text
from streamlib.request.report import Action, Report
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    BUILT_IN_OUTPUTS,
    Compaction,
    ContentPart,
    Message,
    Opaque,
    Origin,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    WireApi,
)
from streamlib_parsers.notes import BESIDE, EMPTY, split_note

ENCRYPTED_PREFIXES: Final = ("encrypted_", "signature", "thoughtSignature")
"""Beginnings of field names that hold provider state in results of providers' own tools."""

BUILT_IN_WIRE: Final = "responses"
"""The wire that has the calls of built-in tools."""

AGENT_WIRE: Final = "responses"
"""The wire whose responses are of several agents."""

OTHER_PROVIDER: Final = "signed and encrypted state belongs to the provider that made it"

AS_TEXT: Final = "a call of a tool that the target lacks, and its output, are sent as text"

ItemT = TypeVar("ItemT", bound=ResponseItem)

Downgrade: TypeAlias = tuple[Action | None, str, ResponseItem | None]
"""What was done (None: nothing to report), why, and the item that is sent instead, if any."""


def same_origin(made: Origin | None, target: Origin, *, strict: bool = False) -> bool:
    """Whether state made at one origin can be sent to another.

    Args:
        made: where the item was made; None where nobody knows.
        target: where the request goes.
        strict: a field that only one side knows counts as different.
    """
    if made is None:
        return not strict
    if made.wire_api != target.wire_api:
        return False
    for name in ("provider", "endpoint", "model", "account"):
        before = getattr(made, name)
        now = getattr(target, name)
        if before == now:
            continue
        if strict or (before is not None and now is not None):
            return False
    return True


def is_own(item: ResponseItem, wire_api: WireApi) -> bool:
    """Whether an encoder of a wire may write the state of an item: it was made on that wire.

    An item of unknown origin belongs to no provider: written as the wire's own, its state would
    come back to a provider that refuses it. A request differs (`same_origin`): its caller vouches.
    """
    return item.origin is not None and item.origin.wire_api == wire_api


def name_of(origin: Origin | None, names: Mapping[str, Origin]) -> str | None:
    """The name that another library has for the provider that made an item; None if it has none."""
    for name, known in names.items():
        if origin is None or origin.wire_api != known.wire_api:
            continue
        if origin.provider in (None, known.provider):
            return name
    return None


def opaque_state(item: ResponseItem) -> str | None:
    """The signature or encrypted content of an item, if it has one."""
    if item.signature:
        return item.signature
    if isinstance(item, (Reasoning, Compaction)):
        return item.encrypted_content
    return None


def as_text(entry: IndexedItem, report: Report) -> IndexedItem | None:
    """What a format gets that has no place for an item at all: a message, or nothing, reported."""
    readable = downgrade([entry], Origin(), report, strict=True)
    if readable and isinstance(readable[0].item, Message):
        return readable[0]
    return None


def without_foreign_state(item: ItemT, wire_api: WireApi, report: Report) -> ItemT:
    """Returns an item as an encoder of a wire may write it: with state only if it is the wire's.

    Signatures and encrypted content that are left out are reported. Ids and `native` are not: they
    mean nothing elsewhere.
    """
    if is_own(item, wire_api):
        return item
    if item.signature:
        report.dropped("/signature", OTHER_PROVIDER)
    if isinstance(item, (Reasoning, Compaction)) and item.encrypted_content:
        report.dropped("/encrypted_content", OTHER_PROVIDER)
        item = msgspec.structs.replace(item, encrypted_content=None)
    return msgspec.structs.replace(item, id=None, signature=None, native=None)


def downgrade(
    entries: list[IndexedItem], target: Origin, report: Report, *, strict: bool = False
) -> list[IndexedItem]:
    """The items as `target` can read them: those of another origin are downgraded."""
    readable: list[IndexedItem] = []
    # Ids of the built-in calls that became text: so do their outputs.
    text_ids: set[str] = set()
    # Outputs that became text, until the outputs of functions beside them are through: these must
    # follow their calls directly.
    waiting: list[IndexedItem] = []
    for entry in _without_empty(entries, target, strict=strict):
        item = entry.item
        if not isinstance(item, OUTPUTS + BUILT_IN_OUTPUTS):
            readable += waiting
            waiting.clear()
        if isinstance(item, BUILT_IN_OUTPUTS):
            if item.call_id in text_ids or target.wire_api != BUILT_IN_WIRE:
                report.add("downgraded", entry.path, AS_TEXT)
                text = msgspec.structs.replace(output_as_text(item), agent=item.agent)
                waiting.append(_without_agent(IndexedItem(entry.position, text), report))
            else:
                readable.append(entry)
            continue
        if _is_readable(item, target, strict=strict):
            if target.wire_api != AGENT_WIRE:
                entry = _without_agent(entry, report)  # noqa: PLW2901
            readable.append(entry)
            continue
        if isinstance(item, BUILT_IN_CALLS):
            text_ids.add(item.call_id)
        action, reason, replacement = downgrade_item(item)
        if action is not None:
            report.add(action, entry.path, reason)
        if replacement is not None:
            replacement = msgspec.structs.replace(replacement, agent=item.agent)
            readable.append(_without_agent(IndexedItem(entry.position, replacement), report))
    return readable + waiting


def _without_empty(
    entries: list[IndexedItem], target: Origin, *, strict: bool
) -> list[IndexedItem]:
    """The items but those that say nothing to another origin, beside others of a turn."""
    remaining: list[IndexedItem] = []
    for index, entry in enumerate(entries):
        beside = entries[max(index - 1, 0) : index] + entries[index + 1 : index + 2]
        is_empty = _says_nothing(entry.item) and any(_is_of_model(other.item) for other in beside)
        if not is_empty or _is_readable(entry.item, target, strict=strict):
            remaining.append(entry)
    return remaining


def _says_nothing(item: ResponseItem) -> bool:
    """Whether an item beside others says what its absence says.

    Gemini ends a turn with an empty text, to which a client gives an empty signature.
    """
    if opaque_state(item) or any((item.native or {}).values()):
        return False
    if isinstance(item, Message):
        return item.role == "assistant" and item.content == (Text(""),)
    if isinstance(item, Reasoning):
        return reasoning_as_text(item) is None and not item.redacted
    return False


def _is_of_model(item: ResponseItem) -> bool:
    if isinstance(item, Message):
        return item.role == "assistant"
    return not isinstance(item, OUTPUTS + BUILT_IN_OUTPUTS)


def _without_agent(entry: IndexedItem, report: Report) -> IndexedItem:
    """An item as it goes to an origin that does not know the agent which made it."""
    agent = entry.item.agent
    if agent is None:
        return entry
    reason = f"made by {agent}: the target knows no such agent, and gets it without the name"
    report.add("downgraded", entry.path, reason)
    return IndexedItem(entry.position, msgspec.structs.replace(entry.item, agent=None))


def _is_readable(item: ResponseItem, target: Origin, *, strict: bool) -> bool:
    """Whether the target takes the item as it is."""
    if not isinstance(item, BUILT_IN_CALLS):
        return same_origin(item.origin, target, strict=strict)
    if target.wire_api != BUILT_IN_WIRE:
        return False
    made = item.origin
    if made is not None and not strict:
        # It holds no state of one model or account, but another provider may lack the tool.
        made = Origin(made.wire_api, made.provider)
    return same_origin(made, target, strict=strict)


def reasoning_as_text(item: Reasoning) -> Message | None:
    """Reasoning as plain assistant text, or None where nothing of it can be read."""
    text = reasoning_text(item)
    if not text:
        return None
    part = Text(f"<think>\n{text}\n</think>")
    return Message("assistant", (part,), choice=item.choice, response_id=item.response_id)


def downgrade_item(item: ResponseItem) -> Downgrade:
    """What another origin gets of an item, with the action and its reason for the report."""
    match item:
        case Message():
            return _message(item)
        case Reasoning():
            return _reasoning(item)
        case ServerToolCall():
            return _server_call(item)
        case ServerToolResult():
            return _server_result(item)
        case Compaction():
            return _compaction(item)
        case _ if isinstance(item, BUILT_IN_CALLS):
            return "downgraded", AS_TEXT, call_as_text(item)
        case Opaque():
            return "dropped", f"{item.kind} is known to its own provider only", None
        case _:
            return _bare(item)


def _bare(item: ResponseItem) -> Downgrade:
    """A call or its output, without what only its own wire can read."""
    bare = msgspec.structs.replace(item, id=None, signature=None, native=None)
    if isinstance(bare, OUTPUTS) and not isinstance(bare.output, str):
        bare = msgspec.structs.replace(bare, output=_strip_native(bare.output))
    reasons: list[str] = []
    if item.signature:
        reasons.append("its signature belongs to another origin")
    if isinstance(item, OUTPUTS):
        # the caller made it: what it had on its own wire is an option
        reasons += _lost_options(item, () if isinstance(item.output, str) else item.output)
    elif item.response_id is None:
        reasons += _lost_options(item, ())
    if reasons:
        return "downgraded", "; ".join(reasons), bare
    return None, "", bare


def _message(item: Message) -> Downgrade:
    content = _strip_native(item.content)
    bare = msgspec.structs.replace(item, content=content, id=None, signature=None, native=None)
    has_citations = any(isinstance(part, Text) and part.annotations for part in item.content)
    reasons: list[str] = []
    if has_citations or item.signature:
        reasons.append("citations and signature belong to another origin")
    # What a response had beside its text is not an option of a request. What a caller sends as the
    # turn of a model (a gateway's client) is.
    if item.role != "assistant" or item.response_id is None:
        reasons += _lost_options(item, item.content)
    if reasons:
        return "downgraded", "; ".join(reasons), bare
    return None, "", bare


def _lost_options(item: ResponseItem, parts: Iterable[ContentPart]) -> list[str]:
    """Why the options of an item and its parts are lost: one reason, or none."""
    names: set[str] = set()
    for native in (item.native, *[part.native for part in parts]):
        received, beside = split_note(native, BESIDE)
        received, empty = split_note(received, EMPTY)
        for name, value in {**received, **beside, **empty}.items():
            # Clients send back what they received: `annotations: []` says nothing.
            if value not in (None, "", [], {}):
                names.add(name)
    if not names:
        return []
    return [f"options of another wire are left out: {', '.join(sorted(names))}"]


def _reasoning(item: Reasoning) -> Downgrade:
    message = reasoning_as_text(item)
    if message is None and _says_nothing(item):
        return "dropped", "reasoning without text", None
    if message is None:
        return "dropped", "encrypted reasoning of another origin", None
    return "downgraded", "reasoning of another origin, sent as text", message


def _strip_native(parts: Iterable[ContentPart]) -> tuple[ContentPart, ...]:
    """Parts without what only their own wire can read."""
    stripped: list[ContentPart] = []
    for part in parts:
        if isinstance(part, Text):
            stripped.append(msgspec.structs.replace(part, native=None, annotations=()))
        else:
            stripped.append(msgspec.structs.replace(part, native=None))
    return tuple(stripped)


def _server_call(item: ServerToolCall) -> Downgrade:
    text = Text(f"[{item.name} {item.arguments}]")
    message = Message("assistant", (text,), response_id=item.response_id)
    return "downgraded", "a tool of another provider, sent as text", message


def _server_result(item: ServerToolResult) -> Downgrade:
    output = item.output
    if not isinstance(output, str):
        output = msgspec.json.encode(_without_encrypted(output)).decode()
    text = Text(f"[result of {item.name or 'a tool'}: {output}]")
    message = Message("assistant", (text,), response_id=item.response_id)
    return "downgraded", "a tool result of another provider, sent as text", message


def _without_encrypted(value: Any) -> Any:
    """A JSON value without fields that only its provider reads (`encrypted_content` of a page)."""
    if isinstance(value, dict):
        readable: dict[str, Any] = {}
        for key, inner in value.items():
            if not str(key).startswith(ENCRYPTED_PREFIXES):
                readable[key] = _without_encrypted(inner)
        return readable
    if isinstance(value, list):
        return [_without_encrypted(inner) for inner in value]
    return value


def _compaction(item: Compaction) -> Downgrade:
    if not item.content:
        return "dropped", "an encrypted compaction of another origin", None
    message = Message("user", (Text(item.content),))
    return "downgraded", "a compaction of another origin, sent as text", message
