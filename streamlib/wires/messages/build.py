"""A `Prompt` as an Anthropic Messages request.

Turns are runs of blocks of one role; each block keeps its position, so reasoning, text and calls
are replayed in the order they were received. Each rule that the API enforces with a 400 is met by
one small function; every change is in the report. Blocks are made in `build_content.py`, turns in
`build_turns.py`, settings in `settings.py`. Numbers such as
A1 or T8 are the rows of the rule table in docs/wires/messages.md.
"""

from __future__ import annotations

from typing import Final

from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib.wires import claude
from streamlib.wires.cache_marks import MARK, lifetime, marked
from streamlib.wires.claude_betas import required_betas
from streamlib.wires.messages import settings
from streamlib.wires.messages.build_content import Block
from streamlib.wires.messages.build_turns import (
    INSTRUCTIONS,
    Turn,
    all_blocks,
    fix_first_turn,
    fix_last_turn,
    group_turns,
    place_system,
    split_leading_system,
)
from streamlib.wires.messages.settings import SETTINGS
from streamlib_parsers.items import JsonObject

VERSION_HEADER: Final = "anthropic-version"
VERSION: Final = "2023-06-01"
"""The API refuses a request without a version. Newer versions accept fewer fields."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body, and the headers of version and betas."""
    system, items = split_leading_system(prompt, items, context.report)
    blocks = claude.drop_final_reasoning(list(all_blocks(items, context)), context.report)
    turns = group_turns(blocks, context.report)
    if any(turn.role == "system" for turn in turns):
        turns = place_system(turns, context.report)
    max_tokens = settings.max_tokens(prompt, context)
    body: JsonObject = {"model": context.target.model, "max_tokens": max_tokens}
    if prompt.tools:
        body["tools"] = settings.wire_tools(prompt, context.report)
    # empty lists keep the keys in order; they are filled last, since settings may change blocks
    if system:
        body["system"] = []
    body["messages"] = []
    body["stream"] = prompt.stream is not False
    choice = settings.tool_choice(prompt, context)
    if choice is not None:
        body["tool_choice"] = choice
    thinking_fields = claude.thinking(
        prompt,
        context,
        max_tokens=max_tokens,
        forced_call=settings.is_forced(choice),
        unreasoned_tool_turn=claude.is_unreasoned_tool_turn(turns),
    )
    body.update(thinking_fields)  # `thinking`, and `max_tokens` where a budget raised it
    thinking: JsonObject | None = thinking_fields.get("thinking")
    claude.report_unsent_mismatch(prompt, thinking, context)
    effort = claude.effort(prompt, context, thinking)
    if effort:
        body["output_config"] = {"effort": effort}
    body = merged(body, SETTINGS.write(settings.fitted(prompt, thinking, context), context))
    fix_first_turn(turns, context)
    fix_last_turn(turns, thinking, context)
    add_marks(prompt, system, turns, body, context)
    if system:
        body["system"] = [block.body for block in system]
    body["messages"] = [turn.body for turn in turns]
    return BuiltRequest(body, _headers(merged(body, prompt.extra or {}), context))


def _headers(body: JsonObject, context: BuildContext) -> dict[str, str]:
    """The version, where the provider does not set it, and the betas that the request needs."""
    provider = context.target.provider
    headers: dict[str, str] = {}
    # Vertex has the version in the body.
    if VERSION_HEADER not in provider.headers and "anthropic_version" not in provider.overrides:
        headers[VERSION_HEADER] = VERSION
    betas = required_betas(body, provider.headers.get(ANTHROPIC_BETA))
    if betas:
        headers[ANTHROPIC_BETA] = ",".join(betas)
    return headers


# --- cache marks ---  # rule A23

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
