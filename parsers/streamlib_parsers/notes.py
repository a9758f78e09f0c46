"""Notes of this library in `native`, among the keys that a server or a client wrote.

`native` is saved as JSON, so a note needs a key there, and what was received may have that key too:

    {"(beside)": {"x": 1}}          a note
    {"(beside)": [{"x": 1}, 5]}     the same note, and a received key of its name, whose value is 5

Whatever else is under the name of a note is no note, but a key of a caller.
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.item_base import JsonObject

BESIDE: Final = "(beside)"
"""What stands beside the member of a Converse block, where `native` holds what is in it."""

EMPTY: Final = "(empty)"
"""Keys of an assistant's message of Chat that were empty, on its first item: they say nothing to
another wire."""


def with_note(native: JsonObject | None, name: str, note: JsonObject) -> JsonObject | None:
    """`native` as it was received, with a note; an empty note is left out."""
    received = native or {}
    if name in received:
        return {**received, name: [note, received[name]]}
    if note:
        return {**received, name: note}
    return native


def split_note(native: JsonObject | None, name: str) -> tuple[JsonObject, JsonObject]:
    """`native` as it was received, and the note of that name; it is empty where there is none."""
    received = dict(native or {})
    match received.get(name):
        case dict(note):
            del received[name]
            return received, note
        case [dict(note), value]:
            received[name] = value
            return received, note
        case _:
            return received, {}
