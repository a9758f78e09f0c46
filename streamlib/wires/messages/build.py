"""A `Prompt` as an Anthropic Messages request.

Turns are runs of blocks of one role; each block keeps its position, so reasoning, text and calls
are replayed in the order they were received. Each rule that makes the API answer 400 is met by one
small function; what had to change is in the report. Blocks are made in `build_content.py`, settings
in `build_settings.py`. Numbers such as A1 or T8 are the rows of the rule table in
docs/wires/messages.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from streamlib.errors import invalid_request
from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuiltRequest
from streamlib.wires import claude
from streamlib.wires.claude_betas import required_betas
from streamlib.wires.messages import build_settings as settings
from streamlib.wires.messages.build_content import Block, is_blank, item_blocks
from streamlib_parsers.items import JsonObject, Message

MAX_BREAKPOINTS: Final = 4
"""Cache markers that a request may hold (A23)."""
VERSION_HEADER: Final = "anthropic-version"
VERSION: Final = "2023-06-01"
"""The API refuses a request without a version. Newer ones accept fewer fields."""
PROVIDER_RUN: Final = frozenset({"server_tool_use", "mcp_tool_use", "compaction"})
"""Types of blocks at which the provider may pause a turn; `*_tool_result` too."""


class Turn(NamedTuple):
    """A run of blocks of one role."""

    role: str
    blocks: list[Block]


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Returns the body, and the headers of version and betas."""
    instructions, items = _split_leading_system(prompt, items)
    blocks = _drop_final_reasoning(list(_blocks(items, context)), context.report)
    turns = _turns(blocks, context.report)
    max_tokens = settings.max_tokens(prompt, context)
    body: JsonObject = {"model": context.target.model, "max_tokens": max_tokens}
    if prompt.tools:
        body["tools"] = settings.tools(prompt, context.report)
    if instructions:
        body["system"] = [{"type": "text", "text": text} for text in instructions]
    # holds the position of the key; filled last, for settings may still change the turns
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
        unreasoned_tool_turn=_is_unreasoned_tool_turn(turns),
    )
    body.update(thinking_fields)  # `thinking`, and `max_tokens` where a budget raised it
    thinking: JsonObject | None = thinking_fields.get("thinking")
    output_config = settings.output_config(prompt, thinking, context)
    if output_config is not None:
        body["output_config"] = output_config
    body.update(settings.sampling(prompt, thinking, context))
    body.update(settings.renamed_settings(prompt))
    _fix_last_turn(turns, thinking, context)
    if prompt.cache is not None:
        _mark_cache(prompt.cache, turns, body)
    for turn in turns:
        content = [block.body for block in turn.blocks]
        body["messages"].append({"role": turn.role, "content": content})
    return BuiltRequest(body, _headers(merged(body, prompt.extra or {}), context))


# --- turns ---


def _split_leading_system(
    prompt: Prompt, items: list[IndexedItem]
) -> tuple[list[str], list[IndexedItem]]:
    """Texts of `system`, and the other items.

    System and developer messages before the first other item belong to `system`.
    """
    texts: list[str] = []
    if prompt.instructions:
        texts.append(prompt.instructions)
    count = 0
    for entry in items:
        item = entry.item
        if not isinstance(item, Message) or item.role not in ("system", "developer"):
            break
        # a request has one `system`; the order of its texts stays
        texts.append(item.text)
        count += 1
    # blank text is refused (A1)
    return [text for text in texts if text.strip()], items[count:]


def _blocks(items: list[IndexedItem], context: BuildContext) -> Iterator[Block]:
    """The blocks of all items, without those the API refuses anywhere."""
    unpaired = claude.unpaired_server_calls(items)
    for entry in items:
        if entry.position in unpaired:
            context.report.dropped(entry.path, "a server tool call without its result (A15)")
            continue
        for role, body in item_blocks(entry, context):
            if is_blank(body):
                context.report.dropped(entry.path, "blank text (A1)")
            else:
                yield Block(role, body, entry.position)


def _drop_final_reasoning(blocks: list[Block], report: Report) -> list[Block]:
    """No turn ends with reasoning (A14).

    One does if the call behind its reasoning was truncated, and therefore is not sent.
    """
    remaining: list[Block] = []
    dropped: list[Block] = []
    is_end = True
    for block in reversed(blocks):
        if block.role == "assistant" and block.is_reasoning and is_end:
            dropped.append(block)
            continue
        is_end = block.role != "assistant"
        remaining.append(block)
    for block in reversed(dropped):
        report.dropped(f"/input/{block.item_index}", "a turn does not end with reasoning (A14)")
    remaining.reverse()
    return remaining


def _turns(blocks: list[Block], report: Report) -> list[Turn]:
    """Runs of one role (A3)."""
    turns: list[Turn] = []
    for block in blocks:
        if not turns or turns[-1].role != block.role:
            turns.append(Turn(block.role, []))
        turns[-1].blocks.append(block)
    for turn in turns:
        if turn.role == "user":
            _put_results_first(turn, report)
    if not turns:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    return turns


def _put_results_first(turn: Turn, report: Report) -> None:
    """Tool results stand first in a user turn (A6)."""
    # a stable sort: results keep their order among themselves, other blocks too
    ordered = sorted(turn.blocks, key=lambda block: block.type != "tool_result")
    if ordered == turn.blocks:
        return
    report.add(
        "repaired",
        f"/input/{turn.blocks[0].item_index}",
        "tool results stand before other content (A6)",
        breaks_prefix=True,
    )
    turn.blocks[:] = ordered


def _is_unreasoned_tool_turn(turns: Sequence[Turn]) -> bool:
    """Whether the request continues a turn that called tools and began without reasoning (T8)."""
    if turns[-1].role != "user":
        return False
    for turn in reversed(turns):
        if turn.role == "assistant":
            calls_tools = any(block.type == "tool_use" for block in turn.blocks)
            return calls_tools and not turn.blocks[0].is_reasoning
    return False


# --- the last turn ---


def _fix_last_turn(turns: list[Turn], thinking: JsonObject | None, context: BuildContext) -> None:
    """Removes or adds what the API wants at the end of a request.

    It refuses blank ends, reasoning while thinking is off, and for some models a last turn of the
    assistant.
    """
    last = turns[-1]
    if last.role != "assistant":
        return
    if _is_thinking_off(thinking, context):
        _drop_reasoning(last, context.report)
    if last.blocks[-1].type == "text":
        _trim_end(last)
    if not context.target.traits.prefill and not _is_paused(last):
        context.report.add(
            "generated",
            "/input",
            f"{context.target.model} wants a user turn last: 'Continue.' added (A13)",
        )
        turns.append(Turn("user", [Block("user", {"type": "text", "text": "Continue."}, -1)]))


def _is_thinking_off(thinking: JsonObject | None, context: BuildContext) -> bool:
    if thinking is not None:
        return bool(thinking["type"] == "disabled")
    # not set: the model's default counts. A model without a known limit is one we do not know.
    traits = context.target.traits
    return not traits.thinking_default and bool(traits.max_output)


def _drop_reasoning(turn: Turn, report: Report) -> None:
    """With thinking off, the last assistant turn holds no reasoning (T8b)."""
    for block in turn.blocks:
        if block.is_reasoning:
            report.add(
                "dropped",
                f"/input/{block.item_index}",
                "thinking is off: no reasoning in the last assistant turn (T8b)",
                breaks_prefix=True,
            )
    turn.blocks[:] = [block for block in turn.blocks if not block.is_reasoning]


def _trim_end(turn: Turn) -> None:
    """A final assistant text does not end in blanks (A12)."""
    last = turn.blocks[-1]
    # a copy: the block may be an object of the caller's history
    turn.blocks[-1] = last._replace(body={**last.body, "text": last.body["text"].rstrip()})


def _is_paused(turn: Turn) -> bool:
    """Whether the provider paused the turn: it ends in a tool of its own, and goes on as it is."""
    block_type = turn.blocks[-1].type
    return block_type in PROVIDER_RUN or block_type.endswith("_tool_result")


# --- caching and betas ---


def _mark_cache(cache: str | CacheOptions, turns: list[Turn], body: JsonObject) -> None:
    """`auto` lets the API choose; breakpoints mark the last block of an item (A23)."""
    options = CacheOptions()
    if isinstance(cache, CacheOptions):
        options = cache
    marker = {"type": "ephemeral"}
    if options.ttl:
        marker["ttl"] = options.ttl
    if not options.breakpoints:
        body["cache_control"] = marker
        return
    # the last ones: they cache the longest prefixes
    marked_items = set(sorted(options.breakpoints)[-MAX_BREAKPOINTS:])
    for turn in turns:
        last_blocks: dict[int, int] = {}
        for index, block in enumerate(turn.blocks):
            # a marker on reasoning is refused
            if not block.is_reasoning:
                last_blocks[block.item_index] = index
        for item_index in marked_items & last_blocks.keys():
            index = last_blocks[item_index]
            block = turn.blocks[index]
            # a copy: the block may be an object of the caller's history
            turn.blocks[index] = block._replace(body={**block.body, "cache_control": marker})


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
