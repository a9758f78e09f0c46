"""Origins and the ladder: what becomes of signed, encrypted and provider-bound state on its way to another origin.

| state | same origin | other origin |
|---|---|---|
| thinking with text, signature, encrypted content | kept, byte for byte | plain text, in `<think>` tags |
| thinking without readable text (redacted, encrypted) | kept | dropped |
| summary of a thought | kept | plain text, as thinking |
| signature on a message or call | kept | dropped, the item stays |
| server tool call and result | kept | plain text |
| citations of a text | kept | dropped, the text stays |
| compaction with text | kept | plain text |
| compaction without text, opaque items | kept | dropped |
| item ids, `native` | kept where the wire wants them | dropped |

Nothing is dropped silently: each step down the ladder is a `Change` in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from streamlib.request.history import OUTPUTS, IndexedItem
from streamlib.request.report import Action, Report
from streamlib_parsers.items import (
    Compaction,
    ContentPart,
    JsonObject,
    Message,
    Opaque,
    Origin,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)


def same_origin(made: Origin | None, target: Origin, *, strict: bool = False) -> bool:
    """Same wire, and no field that both sides know differs; with `strict` what one side does not know differs too."""
    if made is None or made.wire_api != target.wire_api:
        return made is None and not strict
    known = (
        (getattr(made, field), getattr(target, field))
        for field in ("provider", "endpoint", "model", "account")
    )
    return all(
        mine == theirs or (not strict and (mine is None or theirs is None))
        for mine, theirs in known
    )


def downgrade(
    placed: list[IndexedItem], target: Origin, report: Report, *, strict: bool = False
) -> list[IndexedItem]:
    """The items as `target` may see them: those made elsewhere go down the ladder."""
    out: list[IndexedItem] = []
    for one in placed:
        if same_origin(one.item.origin, target, strict=strict):
            out.append(one)
            continue
        action, reason, item = _downgrade_item(one.item)
        if action:
            report.add(action, one.path, reason)
        if item is not None:
            out.append(IndexedItem(one.position, item))
    return out


def reasoning_as_text(item: Reasoning) -> Message | None:
    """A thought as plain assistant text, or None where nothing of it can be read."""
    text = item.content or "\n\n".join(item.summary)
    return (
        Message(
            "assistant",
            (Text(f"<think>\n{text}\n</think>"),),
            choice=item.choice,
            response_id=item.response_id,
        )
        if text
        else None
    )


ENCRYPTED_PREFIXES: Final = ("encrypted_", "signature", "thoughtSignature")
"""How the names of sealed members begin, in the results of providers' own tools."""

Downgrade = tuple[Action | None, str, ResponseItem | None]


def _downgrade_item(item: ResponseItem) -> Downgrade:
    step = DOWNGRADES.get(type(item))
    if step is not None:
        return step(item)
    bare: Any = msgspec.structs.replace(item, id=None, signature=None, native=None)
    if isinstance(bare, OUTPUTS) and not isinstance(bare.output, str):
        bare = msgspec.structs.replace(bare, output=_strip_native(bare.output))
    return (
        ("downgraded", "its signature belongs to another origin", bare)
        if item.signature
        else (None, "", bare)
    )


def _reasoning(item: Any) -> Downgrade:
    text = reasoning_as_text(item)
    if text is None:
        return "dropped", "sealed reasoning of another origin", None
    return "downgraded", "reasoning of another origin, sent as text", text


def _message(item: Any) -> Downgrade:
    cited = any(isinstance(part, Text) and part.annotations for part in item.content)
    bare = msgspec.structs.replace(
        item, content=_strip_native(item.content), id=None, signature=None, native=None
    )
    if cited or item.signature:
        return "downgraded", "citations and signature belong to another origin", bare
    return None, "", bare


def _strip_native(parts: Iterable[ContentPart]) -> tuple[ContentPart, ...]:
    """Parts without what only their own wire can read."""
    cited: JsonObject = {"annotations": ()}
    return tuple(
        msgspec.structs.replace(part, native=None, **(cited if isinstance(part, Text) else {}))
        for part in parts
    )


def _server_call(item: Any) -> Downgrade:
    text = f"[{item.name} {item.arguments}]"
    return (
        "downgraded",
        "a tool of another provider, sent as text",
        Message("assistant", (Text(text),), response_id=item.response_id),
    )


def _server_result(item: Any) -> Downgrade:
    text = (
        item.output
        if isinstance(item.output, str)
        else msgspec.json.encode(_without_encrypted(item.output)).decode()
    )
    said = f"[result of {item.name or 'a tool'}: {text}]"
    return (
        "downgraded",
        "a tool result of another provider, sent as text",
        Message("assistant", (Text(said),), response_id=item.response_id),
    )


def _without_encrypted(value: Any) -> Any:
    """The value without what only its provider can read: `encrypted_content` of a page that was found, and its kin."""
    if isinstance(value, dict):
        return {
            key: _without_encrypted(inner)
            for key, inner in value.items()
            if not str(key).startswith(ENCRYPTED_PREFIXES)
        }
    return [_without_encrypted(inner) for inner in value] if isinstance(value, list) else value


def _compaction(item: Any) -> Downgrade:
    if not item.content:
        return "dropped", "a sealed compaction of another origin", None
    return (
        "downgraded",
        "a compaction of another origin, sent as text",
        Message("user", (Text(item.content),)),
    )


def _opaque(item: Any) -> Downgrade:
    return "dropped", f"{item.kind} is known to its own provider only", None


DOWNGRADES: Final[dict[type, Callable[[Any], Downgrade]]] = {
    Reasoning: _reasoning,
    Message: _message,
    ServerToolCall: _server_call,
    ServerToolResult: _server_result,
    Compaction: _compaction,
    Opaque: _opaque,
}
"""The ladder, one rung a kind; kinds without one only lose their signature, id and native."""
