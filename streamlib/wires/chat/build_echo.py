"""Thoughts on their way back to the Chat server that made them: where they stand is `ChatShape.reasoning_echo`.

    reasoning_content | reasoning | reasoning_text    the text, as a key of the assistant message
    reasoning_details | thinking_blocks               the server's own list, once for each message, in order, unmodified
    reasoning_opaque                                  Copilot's sealed thought
    think_tags                                        <think>…</think> before the content
    thinking_parts                                    Mistral's parts of the content

A typed field wins: a thought whose text was edited goes back as that text, without the list that says otherwise.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.report import Report
from streamlib.wires.chat.build_parts import text_part
from streamlib_parsers.items import JsonObject
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    TEXT_OF,
)

KEYS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""Places of text that are a key of the message."""
PLACES: Final = (*KEYS, "think_tags", "thinking_parts")
"""Places of text."""


class Echo(NamedTuple):
    """What goes back: keys of the message, text before the content, parts before the content."""

    keys: JsonObject
    tags: str = ""
    parts: tuple[JsonObject, ...] = ()


class Thought(NamedTuple):
    """One thought and what of it can go back: the server's own lists, Copilot's seal, text that stands in none of the lists."""

    one: IndexedItem
    lists: dict[str, list[JsonObject]]
    seal: Any
    text: str


def echo(thoughts: list[IndexedItem], context: BuildContext, *, has_calls: bool) -> Echo:
    """What of these thoughts goes back beside one assistant message."""
    shape = context.target.provider.chat
    if not shape.reasoning_echo or (shape.echo_turns == "calls" and not has_calls):
        for one in thoughts:
            context.report.dropped(
                one.path,
                f"{context.target.provider.name} takes no thoughts back"
                + (" but with calls" if shape.reasoning_echo else ""),
            )
        return Echo({})
    place = next((name for name in shape.reasoning_echo if name in PLACES), None)
    read = [_read(one, shape.reasoning_echo, context.report) for one in thoughts]
    for thought in read:
        if not (thought.lists or thought.seal or (place and thought.text)):
            context.report.dropped(
                thought.one.path, f"{context.target.provider.name} has no place for this thought"
            )
    apart = any(thought.text for thought in read)
    said = (
        _placed(place, [thought for thought in read if _text(thought.one)])
        if place and apart
        else Echo({})
    )
    return said._replace(keys={**said.keys, **_keys(read)})


def _read(one: IndexedItem, places: tuple[str, ...], report: Report) -> Thought:
    item: Any = one.item
    found: dict[str, list[JsonObject]] = {
        key: elements
        for key in REASONING_DETAIL_KEYS
        if key in places and (elements := _list_of(one, key, report))
    }
    held = any(
        str(element.get("type")) in TEXT_OF for elements in found.values() for element in elements
    )
    seal = (item.native or {}).get(OPAQUE_REASONING_KEY) if OPAQUE_REASONING_KEY in places else None
    return Thought(one, found, seal, "" if held else _text(one))


def _keys(read: list[Thought]) -> JsonObject:
    """The lists of one message are one list."""
    keys: JsonObject = {}
    for thought in read:
        for key, elements in thought.lists.items():
            keys.setdefault(key, []).extend(elements)
        if thought.seal:
            keys[OPAQUE_REASONING_KEY] = thought.seal
    return keys


def filler(body: JsonObject, context: BuildContext, at: int) -> JsonObject:
    """What stands context.target a thought is required and there was none."""
    shape = context.target.provider.chat
    key = next((name for name in shape.reasoning_echo if name in KEYS), None)
    wanted = shape.echo_filler is not None and key is not None and key not in body
    if not wanted or (shape.echo_turns == "calls" and "tool_calls" not in body):
        return {}
    context.report.add(
        "generated",
        f"/input/{at}",
        f"{context.target.provider.name} wants {key} here: an empty thought",
    )
    return {str(key): shape.echo_filler}


def _placed(place: str, read: list[Thought]) -> Echo:
    text = "".join(_text(thought.one) for thought in read)
    if place == "think_tags":
        return Echo({}, f"<think>\n{text}\n</think>\n\n")
    if place == "thinking_parts":
        return Echo({}, parts=tuple(_part(thought.one) for thought in read))
    return Echo({place: text})


def _part(one: IndexedItem) -> JsonObject:
    item: Any = one.item
    native = {
        key: value
        for key, value in (item.native or {}).items()
        if key not in (*REASONING_DETAIL_KEYS, OPAQUE_REASONING_KEY)
    }
    signature = {"signature": item.signature} if item.signature else {}
    return {"type": "thinking", "thinking": [text_part(_text(one))], **signature, **native}


def _text(one: IndexedItem) -> str:
    item: Any = one.item
    return item.content or "\n\n".join(item.summary)


def _list_of(one: IndexedItem, key: str, report: Report) -> list[JsonObject]:
    """The server's own list, if it still says what the item says; its text stands only in the item where the stream had it apart."""
    item: Any = one.item
    elements = [
        element for element in (item.native or {}).get(key) or () if isinstance(element, dict)
    ]
    texts = [element for element in elements if str(element.get("type")) in TEXT_OF]
    told = "".join(str(element.get(TEXT_OF[element["type"]]) or "") for element in texts)
    if told == _text(one) or not texts:
        return elements
    if not told and len(texts) == 1:
        return [
            {**element, TEXT_OF[element["type"]]: item.content} if element is texts[0] else element
            for element in elements
        ]
    report.add("changed", one.path, f"the thought was edited: it goes back without its {key}")
    return []
