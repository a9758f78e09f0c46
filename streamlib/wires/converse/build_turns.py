"""Turns of a Converse request: runs of blocks of one role, in the order of the items.

Numbers such as B5 are the rows of the rule table in docs/wires/converse.md; A13 to A15 and T8 are
those of docs/wires/messages.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from streamlib.request.history import IndexedItem, system_text
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.wires import claude
from streamlib.wires.claude import drop_final_reasoning, unpaired_server_calls
from streamlib.wires.converse.build_content import FILLER, Block, is_blank, item_blocks
from streamlib.wires.converse.build_parts import ConverseContext
from streamlib_parsers.items import JsonObject, Message
from streamlib_parsers.stream_error import invalid_request

NO_ITEM: Final = -1
"""`item_index` of a block that no item is behind."""


class Turn(NamedTuple):
    """A run of blocks of one role."""

    role: str
    blocks: list[Block]


class SystemText(NamedTuple):
    """One text of the system prompt, and the index of its item (-1: the instructions)."""

    text: str
    item_index: int


# --- the system prompt ---


def split_leading_system(
    prompt: Prompt, items: list[IndexedItem]
) -> tuple[list[SystemText], list[IndexedItem]]:
    """Texts of `system`, and the other items.

    System and developer messages before the first other item belong to `system`.
    """
    texts: list[SystemText] = []
    if prompt.instructions:
        texts.append(SystemText(prompt.instructions, NO_ITEM))
    count = 0
    for entry in items:
        item = entry.item
        if not isinstance(item, Message) or item.role not in ("system", "developer"):
            break
        texts.append(SystemText(system_text(item), entry.position))
        count += 1
    # blank text is refused (B2)
    return [text for text in texts if text.text.strip()], items[count:]


def _system_as_user_text(system: list[SystemText], report: Report) -> Iterator[Block]:
    """The system prompt as the first user text, for a model that takes none."""  # rule B21
    if system:
        report.add(
            "changed", "/instructions", "the model takes no system prompt: sent as user text"
        )
    for text in system:
        yield Block("user", {"text": text.text}, text.item_index)


# --- turns ---


def turns_of(
    items: list[IndexedItem], system: list[SystemText], context: ConverseContext
) -> list[Turn]:
    """The turns: each of one role, tool results first in theirs, a user turn first.

    Args:
        system: the system prompt, which is user text for some models.
    """  # rules B5, B6, B4, B21
    report = context.report
    turns: list[Turn] = []
    if not context.family.system:
        _append_blocks(turns, _system_as_user_text(system, report))
    _append_blocks(turns, drop_final_reasoning(list(_blocks(items, context)), report))
    if not turns:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    claude.put_results_first(turns, report)
    if turns[0].role != "user":
        report.add(
            "generated", "/input", f"a conversation starts with a user turn: {FILLER!r} added"
        )
        turns.insert(0, _filler_turn("user"))
    if context.family.mixed_turns:
        return turns
    separated: list[Turn] = []
    for turn in turns:
        separated.extend(_separate_results(turn, report))
    return separated


def _append_blocks(turns: list[Turn], blocks: Iterable[Block]) -> None:
    for block in blocks:
        if not turns or turns[-1].role != block.role:
            turns.append(Turn(block.role, []))
        turns[-1].blocks.append(block)


def _blocks(items: list[IndexedItem], context: ConverseContext) -> Iterator[Block]:
    """The blocks of all items, without those the API refuses anywhere."""
    unpaired = unpaired_server_calls(items)
    for entry in items:
        if entry.position in unpaired:
            context.report.dropped(entry.path, "a server tool call without its result")
            continue
        for role, body in item_blocks(entry, context):
            if is_blank(body):
                context.report.dropped(entry.path, "blank text")
            else:
                yield Block(role, body, entry.position)


def _separate_results(turn: Turn, report: Report) -> list[Turn]:
    """Puts tool results into a turn of their own, followed by an assistant filler."""  # rule B7
    if turn.role != "user":
        return [turn]
    results = [block for block in turn.blocks if block.is_result]
    others = turn.blocks[len(results) :]  # results are first
    if not results or not others:
        return [turn]
    report.add(
        "generated",
        f"/input/{others[0].item_index}",
        f"tool results get a turn of their own: {FILLER!r} of the assistant added",
    )
    return [Turn("user", results), _filler_turn("assistant"), Turn("user", others)]


def _filler_turn(role: str, text: str = FILLER) -> Turn:
    return Turn(role, [Block(role, {"text": text}, NO_ITEM)])


# --- the last turn ---


def fix_last_turn(turns: list[Turn], thinking: JsonObject | None, context: ConverseContext) -> None:
    """Removes or adds what the API wants at the end of a request.

    It refuses blank ends, reasoning while thinking is off, and a last turn of the assistant while
    thinking is on; some models always do.
    """
    last = turns[-1]
    if last.role != "assistant":
        return
    report = context.report
    if claude.is_thinking_off(thinking, context):
        claude.drop_reasoning(last.blocks, report)
    if last.blocks[-1].member == "text":
        _trim_end(last)
    if not _is_paused(last) and claude.wants_user_turn(thinking, context):
        turns.append(_filler_turn("user", "Continue."))


def _trim_end(turn: Turn) -> None:
    """Removes blanks at the end of a final assistant text."""  # rule B20
    last = turn.blocks[-1]
    # a copy: the block may be an object of the caller's history
    turn.blocks[-1] = last._replace(body={"text": last.body["text"].rstrip()})


def _is_paused(turn: Turn) -> bool:
    """Whether the provider paused the turn: it ends in a tool of its own, and goes on as it is."""
    last = turn.blocks[-1]
    if last.member == "toolUse":
        return bool(last.body["toolUse"].get("type") == "server_tool_use")
    return last.member == "toolResult"
