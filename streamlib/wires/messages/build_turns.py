"""Turns of a Messages request: runs of blocks of one role, and what the API wants of them.

Numbers such as A6 are the rows of the rule table in docs/wires/messages.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from streamlib.request.history import IndexedItem, without_turn_fields
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuildContext
from streamlib.wires import claude
from streamlib.wires.messages.build_content import (
    Block,
    fields_of_turn,
    is_blank,
    item_blocks,
    system_blocks,
)
from streamlib_parsers.items import JsonObject, Message
from streamlib_parsers.stream_error import invalid_request

INSTRUCTIONS: Final = -1
"""Index of the block of `Prompt.instructions`, which is not an item."""
PROVIDER_RUN: Final = frozenset({"server_tool_use", "mcp_tool_use", "compaction"})
"""Types of blocks at which the provider may pause a turn; `*_tool_result` too."""


class Turn(NamedTuple):
    """A run of blocks of one role."""

    role: str
    blocks: list[Block]
    fields: JsonObject | None = None
    """Fields beside role and content (`clear_at` and `output_config` of a system message; keys that
    this version does not know)."""

    @property
    def body(self) -> JsonObject:
        """The message."""
        content = [block.body for block in self.blocks if block.body]
        fields = self.fields or {}
        if fields and not content:
            return {"role": self.role, **fields}
        return {"role": self.role, "content": content, **fields}


def split_leading_system(
    prompt: Prompt, items: list[IndexedItem], report: Report
) -> tuple[list[Block], list[IndexedItem]]:
    """Blocks of `system`, and the other items.

    System and developer messages before the first other item belong to `system`.
    """
    blocks: list[Block] = []
    if prompt.instructions:
        blocks.append(Block("system", {"type": "text", "text": prompt.instructions}, INSTRUCTIONS))
    count = 0
    for entry in items:
        item = entry.item
        if not isinstance(item, Message) or item.role not in ("system", "developer"):
            break
        # a request has one `system`; the order of its texts stays
        for body in system_blocks(item, entry.path, report):
            blocks.append(Block("system", body, entry.position))
        if item.native:
            report.dropped(entry.path, f"`system` has no {', '.join(sorted(item.native))}")
        count += 1
    remaining: list[Block] = []
    for block in blocks:
        if not is_blank(block.body):
            remaining.append(block)
        elif block.item_index == INSTRUCTIONS:
            report.dropped("/instructions", "blank text")
        else:
            report.dropped(f"/input/{block.item_index}", "blank text")
    return remaining, items[count:]


def all_blocks(items: list[IndexedItem], context: BuildContext) -> Iterator[Block]:
    """The blocks of all items, without those the API refuses anywhere."""
    unpaired = claude.unpaired_server_calls(items)
    for entry in items:
        if entry.position in unpaired:
            context.report.dropped(entry.path, "a server tool call without its result")
            continue
        fields = fields_of_turn(entry.item)
        for role, body in item_blocks(without_turn_fields(entry), context):
            if is_blank(body):
                context.report.dropped(entry.path, "blank text")
            else:
                yield Block(role, body, entry.position, fields)


def runs_of_one_role(blocks: Iterable[Block]) -> list[Turn]:
    """Groups blocks into runs of one role; messages with different fields stay separate."""
    # rule A3
    turns: list[Turn] = []
    for block in blocks:
        fields = block.turn_fields
        is_next = turns and turns[-1].role == block.role and turns[-1].fields == fields
        if not is_next:
            turns.append(Turn(block.role, [], fields))
        turns[-1].blocks.append(block)
    return turns


def group_turns(blocks: list[Block], report: Report) -> list[Turn]:
    """Groups blocks into turns as the API wants them; there must be one."""
    turns = runs_of_one_role(blocks)
    claude.put_results_first(turns, report)
    if not turns:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    return turns


def place_system(turns: list[Turn], report: Report) -> list[Turn]:
    """Leaves system messages where the API takes them; elsewhere they become user text.

    It takes one after a user turn, or after a turn that ends in a provider-run result, if no other
    user turn follows it directly. One without text may be anywhere.
    """  # rule A17
    blocks: list[Block] = []
    for n, turn in enumerate(turns):
        is_text = all(block.type == "text" for block in turn.blocks)
        if turn.role != "system" or not is_text or _takes_system(turns, n):
            blocks.extend(turn.blocks)
            continue
        for block in turn.blocks:
            # its neighbours are changed too: they become one turn
            report.add(
                "changed",
                "/input",
                "a system message must follow a user turn and precede one of the assistant: "
                f"/input/{block.item_index} is sent as user text",
                breaks_prefix=True,
            )
            text = f"<system>\n{block.body['text']}\n</system>"
            body = {**block.body, "text": text}
            blocks.append(block._replace(role="user", body=body, turn_fields=None))
    return group_turns(blocks, report)


def _takes_system(turns: list[Turn], n: int) -> bool:
    before = [turn for turn in turns[:n] if turn.role != "system"]
    after = [turn for turn in turns[n:] if turn.role != "system"]
    if not before or (after and after[0].role == "user"):
        return False
    return before[-1].role == "user" or before[-1].blocks[-1].type.endswith("_tool_result")


# --- the first and the last turn ---


def fix_first_turn(turns: list[Turn], context: BuildContext) -> None:
    """Puts a user turn first, which Bedrock requires and Anthropic's own API does not."""
    # rule A3
    if context.target.wire_api != "invoke" or turns[0].role == "user":
        return
    context.report.add("generated", "/input", "a conversation starts with a user turn: '.' added")
    turns.insert(0, Turn("user", [Block("user", {"type": "text", "text": "."}, -1)]))


def fix_last_turn(turns: list[Turn], thinking: JsonObject | None, context: BuildContext) -> None:
    """Removes or adds what the API wants at the end of a request.

    It refuses blank ends, reasoning while thinking is off, and a last turn of the assistant while
    thinking is on; some models always do.
    """
    last = turns[-1]
    if last.role != "assistant":
        return
    if claude.is_thinking_off(thinking, context):
        claude.drop_reasoning(last.blocks, context.report)
    if last.blocks[-1].type == "text":
        _trim_end(last)
    if not _is_paused(last) and claude.wants_user_turn(thinking, context):
        block = Block("user", {"type": "text", "text": "Continue."}, -1)
        turns.append(Turn("user", [block]))


def _trim_end(turn: Turn) -> None:
    """Removes blanks at the end of a final assistant text."""  # rule A12
    last = turn.blocks[-1]
    # a copy: the block may be an object of the caller's history
    turn.blocks[-1] = last._replace(body={**last.body, "text": last.body["text"].rstrip()})


def _is_paused(turn: Turn) -> bool:
    """Whether the provider paused the turn: it ends in a tool of its own, and goes on as it is."""
    block_type = turn.blocks[-1].type
    return block_type in PROVIDER_RUN or block_type.endswith("_tool_result")
