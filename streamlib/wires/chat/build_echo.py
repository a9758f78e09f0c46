"""Sends reasoning back to the Chat server that made it, in the forms of `ChatShape.reasoning_echo`.

    reasoning_content | reasoning | reasoning_text  the text, as a key of the assistant message
    reasoning_details | thinking_blocks             the server's own list, once per message
    reasoning_opaque                                Copilot's encrypted reasoning
    think_tags                                      <think>…</think> before the content
    thinking_parts                                  Mistral's parts of the content

A typed field wins: reasoning whose text was edited goes back as that text, without the list that
contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from streamlib.request.history import reasoning_text
from streamlib.request.report import Report
from streamlib.request.target import BuildContext
from streamlib.wires.chat.build_parts import text_part
from streamlib_parsers.items import JsonObject, Reasoning
from streamlib_parsers.wires.chat import REFERENCES_KEY
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    RECEIVED_KEY,
    TEXT_OF,
)

TEXT_KEYS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""Forms in which the text is a key of the message."""

TEXT_FORMS: Final = (*TEXT_KEYS, "think_tags", "thinking_parts")
"""Forms in which the text can be sent; the first that the provider lists is used."""


class IndexedReasoning(NamedTuple):
    """A reasoning item and its JSON pointer in the prompt."""

    item: Reasoning
    path: str


class Echo(NamedTuple):
    """The reasoning of one assistant message, in the form in which it is sent back."""

    keys: JsonObject
    """Keys of the message."""
    tags: str = ""
    """Text before the content."""
    parts: tuple[JsonObject, ...] = ()
    """Content parts before the others."""


class EchoSource(NamedTuple):
    """The parts of one reasoning item that can be sent back."""

    item: Reasoning
    path: str
    lists: dict[str, list[JsonObject]]
    """The server's own lists, by key of the message."""
    encrypted: Any
    """Copilot's encrypted reasoning, None if there is none."""
    unlisted_text: str
    """The item's text if none of the lists holds it, else empty."""


def echo(reasoning: list[IndexedReasoning], context: BuildContext, *, has_calls: bool) -> Echo:
    """Converts the reasoning of one assistant message.

    Args:
        reasoning: the reasoning items of the message, in order.
        context: the target and the report.
        has_calls: whether the message has calls; some providers take reasoning back only then.

    Returns:
        What goes into the message; what cannot go back is in the report.
    """
    provider, report = context.target.provider, context.report
    forms = provider.chat.reasoning_echo
    if not forms or (provider.chat.echo_turns == "calls" and not has_calls):
        reason = f"{provider.name} takes no reasoning back"
        if forms:
            reason += " but with calls"
        for _, path in reasoning:
            report.dropped(path, reason)
        return Echo({})
    text_form = _first_of(TEXT_FORMS, forms)
    sources = [_source(item, path, forms, report) for item, path in reasoning]
    for source in sources:
        has_text = bool(text_form and source.unlisted_text)
        if not (source.lists or source.encrypted or has_text):
            report.dropped(source.path, f"{provider.name} has no field for this reasoning")
    echoed = Echo({})
    # If the lists hold all the text, a second copy of it would be read as more reasoning.
    if text_form and any(source.unlisted_text for source in sources):
        items = [source.item for source in sources if reasoning_text(source.item)]
        if text_form in TEXT_KEYS:
            text_form = _received_key(items) or text_form
        echoed = _text_echo(text_form, items)
    return echoed._replace(keys={**echoed.keys, **_message_keys(sources)})


def _first_of(known: tuple[str, ...], forms: Iterable[str]) -> str | None:
    return next((form for form in forms if form in known), None)


def _source(item: Reasoning, path: str, forms: tuple[str, ...], report: Report) -> EchoSource:
    lists: dict[str, list[JsonObject]] = {}
    lists_hold_text = False
    for key in REASONING_DETAIL_KEYS:
        if key not in forms:
            continue
        elements = _detail_list(item, path, key, report)
        if not elements:
            continue
        lists[key] = elements
        if any(_holds_text(element) for element in elements):
            lists_hold_text = True
    encrypted = None
    if OPAQUE_REASONING_KEY in forms:
        encrypted = (item.native or {}).get(OPAQUE_REASONING_KEY)
    unlisted_text = "" if lists_hold_text else reasoning_text(item)
    return EchoSource(item, path, lists, encrypted, unlisted_text)


def _message_keys(sources: list[EchoSource]) -> JsonObject:
    """The lists of all items of a message are joined to one list per key."""
    keys: JsonObject = {}
    for source in sources:
        for key, elements in source.lists.items():
            keys.setdefault(key, []).extend(elements)
        if source.encrypted:
            keys[OPAQUE_REASONING_KEY] = source.encrypted
    return keys


def filler(body: JsonObject, context: BuildContext, position: int) -> JsonObject:
    """Empty reasoning for providers that require the key in a message that has none.

    Args:
        body: the assistant message written so far.
        context: the target and the report.
        position: index of the message's first item in the prompt's input.

    Returns:
        The key to add, or an empty object.
    """
    provider = context.target.provider
    shape = provider.chat
    key = _first_of(TEXT_KEYS, shape.reasoning_echo)
    if shape.echo_filler is None or key is None or key in body:
        return {}
    # Some providers require the key only beside calls.
    if shape.echo_turns == "calls" and "tool_calls" not in body:
        return {}
    context.report.add(
        "generated",
        f"/input/{position}",
        f"{provider.name} wants {key} here: empty reasoning",
    )
    return {key: shape.echo_filler}


def _received_key(items: list[Reasoning]) -> str | None:
    """The name by which the server sent the text: it reads that one, whatever others read."""
    for item in items:
        key = (item.native or {}).get(RECEIVED_KEY)
        if key in TEXT_KEYS:
            return str(key)
    return None


def _text_echo(form: str, items: list[Reasoning]) -> Echo:
    """The text of some items in one of `TEXT_FORMS`."""
    if form == "thinking_parts":
        return Echo({}, parts=tuple(_thinking_part(item) for item in items))
    text = "".join(reasoning_text(item) for item in items)
    if form == "think_tags":
        return Echo({}, f"<think>\n{text}\n</think>\n\n")
    return Echo({form: text})


def _thinking_part(item: Reasoning) -> JsonObject:
    """Mistral's content part, with the wire fields that the item had."""
    native = item.native or {}
    thinking = _with_references(reasoning_text(item), _references(native))
    part: JsonObject = {"type": "thinking", "thinking": thinking}
    if item.signature:
        part["signature"] = item.signature
    own_keys = (*REASONING_DETAIL_KEYS, OPAQUE_REASONING_KEY, REFERENCES_KEY, RECEIVED_KEY)
    part.update({key: value for key, value in native.items() if key not in own_keys})
    return part


def _references(native: JsonObject) -> list[JsonObject]:
    """The references that the parser stored, without values that only share their key."""
    references: list[JsonObject] = []
    listed = native.get(REFERENCES_KEY)
    if not isinstance(listed, (list, tuple)):
        return references
    for entry in listed:
        is_reference = isinstance(entry, dict) and isinstance(entry.get("reference"), dict)
        if is_reference and type(entry.get("position")) is int:
            references.append(entry)
    return references


def _with_references(text: str, references: Sequence[JsonObject]) -> list[JsonObject]:
    """The text as content parts, with Mistral's references at their positions."""
    parts: list[JsonObject] = []
    start = 0
    for entry in references:
        position = entry["position"]
        if position > start:
            parts.append(text_part(text[start:position]))
            start = position
        parts.append(entry["reference"])
    if text[start:] or not parts:
        parts.append(text_part(text[start:]))
    return parts


def _holds_text(element: JsonObject) -> bool:
    return str(element.get("type")) in TEXT_OF


def _detail_list(item: Reasoning, path: str, key: str, report: Report) -> list[JsonObject]:
    """The server's own list, if it still agrees with the item; else an empty list."""
    received = (item.native or {}).get(key) or ()
    elements = [element for element in received if isinstance(element, dict)]
    with_text = [element for element in elements if _holds_text(element)]
    if not with_text:
        return elements
    texts = [str(element.get(TEXT_OF[element["type"]]) or "") for element in with_text]
    list_text = "".join(texts)
    if list_text == reasoning_text(item):
        return elements
    if not list_text and len(with_text) == 1:
        # The stream sent the text in another key than the list, so only the item has it.
        empty = with_text[0]
        filled = {**empty, TEXT_OF[empty["type"]]: item.content}
        return [filled if element is empty else element for element in elements]
    # The list would contradict the edited text.
    report.add("changed", path, f"the reasoning was edited: it goes back without its {key}")
    return []
