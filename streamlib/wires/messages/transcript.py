"""Items as a list of Messages turns to keep, not to send: nothing is repaired or moved.

`decode.py` reads it. What the API would refuse is mended by `build.py` when the items are sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from streamlib.request.history import OUTPUTS, IndexedItem, without_turn_fields
from streamlib.request.target import BuildContext
from streamlib.wires.messages.build_content import Block, fields_of_turn, item_blocks
from streamlib.wires.messages.build_turns import runs_of_one_role
from streamlib_parsers.items import JsonObject


def transcript_list(items: Iterable[IndexedItem], context: BuildContext) -> list[JsonObject]:
    """The turns, in the order of the items."""
    blocks: list[Block] = []
    for entry in items:
        item, fields = entry.item, fields_of_turn(entry.item)
        text = ""
        if isinstance(item, OUTPUTS) and isinstance(item.output, str):
            # A text stays a text, and a blank one is kept: only a request must have none.
            text = item.output
            entry = entry._replace(item=replace(item, output=""))  # noqa: PLW2901
        for role, body in item_blocks(without_turn_fields(entry), context):
            if text:
                body["content"] = text
            blocks.append(Block(role, body, entry.position, fields))
    return [turn.body for turn in runs_of_one_role(blocks)]
