"""Cache marks of a Messages request (A23 in the rule table of docs/wires/messages.md)."""

from __future__ import annotations

from typing import Final

from streamlib.request.context import BuildContext
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.wires.cache_marks import MARK, lifetime, marked
from streamlib.wires.messages.build_content import Block
from streamlib.wires.messages.build_turns import INSTRUCTIONS, Turn
from streamlib_parsers.items import JsonObject

MAX_BREAKPOINTS: Final = 4
"""Cache marks that a request may hold."""


def add_marks(
    prompt: Prompt, system: list[Block], turns: list[Turn], body: JsonObject, context: BuildContext
) -> None:
    """Marks the blocks that `Prompt.cache` names; `auto` lets the API choose."""
    if prompt.cache is None:
        return
    options = CacheOptions()
    if isinstance(prompt.cache, CacheOptions):
        options = prompt.cache
    if options.chooses_itself:
        body.update(marked({}, options.ttl))
        return
    if options.automatic is not None:
        body.update(marked({}, lifetime(options.automatic, options)))
    if options.instructions is not None:
        _mark_instructions(lifetime(options.instructions, options), system, context)
    _mark_items(options, system, turns, body, context)


def _mark_instructions(ttl: str | None, system: list[Block], context: BuildContext) -> None:
    for index, block in enumerate(system):
        if block.item_index == INSTRUCTIONS:
            system[index] = block._replace(body=marked(block.body, ttl))
            return
    context.report.dropped("/cache/instructions", "there are no instructions to cache")


def _mark_items(
    options: CacheOptions,
    system: list[Block],
    turns: list[Turn],
    body: JsonObject,
    context: BuildContext,
) -> None:
    """Marks the last block of each item of `breakpoints`."""
    allowed = MAX_BREAKPOINTS - _count_marks(system, body)
    requested = sorted(set(options.breakpoints))
    # the last ones cache the longest prefixes
    remaining = requested[max(0, len(requested) - allowed) :]
    for item_index in requested:
        if item_index not in remaining:
            context.report.dropped(
                f"/cache/breakpoints/{item_index}",
                f"a request holds {MAX_BREAKPOINTS} cache marks at most",
            )
    last_blocks = _last_blocks(system, turns)
    for item_index in remaining:
        if item_index not in last_blocks:
            context.report.dropped(
                f"/cache/breakpoints/{item_index}", "no block of such an item is sent"
            )
            continue
        blocks, index = last_blocks[item_index]
        # a copy: the block may be an object of the caller's history
        body_marked = marked(blocks[index].body, options.lifetime(item_index))
        blocks[index] = blocks[index]._replace(body=body_marked)


def _count_marks(system: list[Block], body: JsonObject) -> int:
    """How many marks the request holds already."""
    holders = [block.body for block in system] + body.get("tools", [])
    return sum(MARK in holder for holder in [*holders, body])


def _last_blocks(system: list[Block], turns: list[Turn]) -> dict[int, tuple[list[Block], int]]:
    """Index of an item -> the list with its last block, and the position of that."""
    last_blocks: dict[int, tuple[list[Block], int]] = {}
    for blocks in [system, *(turn.blocks for turn in turns)]:
        for index, block in enumerate(blocks):
            # a mark on reasoning is refused, and a turn that has settings only has no block
            if block.body and not block.is_reasoning:
                last_blocks[block.item_index] = (blocks, index)
    return last_blocks
