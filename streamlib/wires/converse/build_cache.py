"""Cache points of a Converse request (B14 in the rule table of docs/wires/converse.md)."""

from __future__ import annotations

from operator import itemgetter
from typing import Final, NamedTuple

from streamlib.request.prompt import CacheOptions
from streamlib.request.report import Report
from streamlib.wires.bedrock import BedrockFamily
from streamlib.wires.cache_marks import lifetime
from streamlib.wires.converse.build_content import Block
from streamlib.wires.converse.build_turns import NO_ITEM, SystemText, Turn
from streamlib_parsers.items import JsonObject

MAX_BREAKPOINTS: Final = 4
"""Cache points that a request may hold."""
LIFETIMES: Final = frozenset({"5m", "1h"})
"""Values of `ttl`."""
NOT_CACHEABLE: Final = frozenset({"document", "video", "reasoningContent", "cachePoint"})
"""Members that no cache point may follow directly."""


class Cacheable(NamedTuple):
    """The lists that cache points are added to."""

    turns: list[Turn]
    system: list[SystemText]
    system_blocks: list[JsonObject]
    """The blocks of `system`: empty where the model takes no system prompt."""
    tools: list[JsonObject]


def add_cache_points(
    cache: str | CacheOptions, body: Cacheable, family: BedrockFamily, report: Report
) -> None:
    """Adds the cache points.

    `auto` marks the end of the tools, of the system prompt and of the last turn; breakpoints mark
    the end of their items.
    """
    if not family.caches:
        report.dropped("/cache", "the model caches nothing")
        return
    options = CacheOptions()
    if isinstance(cache, CacheOptions):
        options = cache
    if options.chooses_itself:
        _mark_ends(cache_point(options.ttl, "/cache/ttl", report), body, family, report)
        return
    if options.automatic is not None:
        report.dropped("/cache/automatic", "Bedrock does not choose by itself")
    _mark_items(options, body, report)


def _mark_ends(point: JsonObject, body: Cacheable, family: BedrockFamily, report: Report) -> None:
    if body.tools and "tools" in family.caches and "cachePoint" not in body.tools[-1]:
        body.tools.append(point)
    if body.system_blocks and "system" in family.caches:
        body.system_blocks.append(point)
    last = body.turns[-1]
    _mark(last, len(last.blocks), point, report)


def cache_point(ttl: str | None, path: str, report: Report) -> JsonObject:
    """A cache point.

    Args:
        path: JSON pointer of the lifetime.
    """
    point = {"type": "default"}
    if ttl in LIFETIMES:
        point["ttl"] = ttl
    elif ttl is not None:
        report.dropped(path, f"one of {', '.join(sorted(LIFETIMES))}")
    return {"cachePoint": point}


def _mark_items(options: CacheOptions, body: Cacheable, report: Report) -> None:
    """Adds a cache point after the last block of each item, and after the instructions."""
    allowed = MAX_BREAKPOINTS - sum("cachePoint" in tool for tool in body.tools)
    if options.instructions is not None:
        allowed -= 1
    requested = sorted(set(options.breakpoints))
    # the last ones cache the longest prefixes
    remaining = requested[max(0, len(requested) - allowed) :]
    for item_index in requested:
        if item_index not in remaining:
            reason = f"a request holds {MAX_BREAKPOINTS} cache points at most"
            report.dropped(f"/cache/breakpoints/{item_index}", reason)
    points: dict[int, JsonObject] = {}
    for index in remaining:
        points[index] = cache_point(options.lifetime(index), "/cache/ttl", report)
    marked = _mark_turns(points, body, report)
    if options.instructions is not None:
        points[NO_ITEM] = cache_point(
            lifetime(options.instructions, options), "/cache/instructions/ttl", report
        )
    marked |= _mark_system(points, body)
    for item_index in sorted(points.keys() - marked):
        path = f"/cache/breakpoints/{item_index}"
        if item_index == NO_ITEM:
            path = "/cache/instructions"
        report.dropped(path, "no block of such an item is sent")


def _mark_turns(points: dict[int, JsonObject], body: Cacheable, report: Report) -> set[int]:
    """Marks the turns; returns the items that were found there."""
    marked: set[int] = set()
    for turn in body.turns:
        ends: dict[int, int] = {}
        for count, block in enumerate(turn.blocks, 1):
            if block.item_index != NO_ITEM:
                ends[block.item_index] = count
        # from the end, so that an insertion does not move the remaining positions
        for index, end in sorted(ends.items(), key=itemgetter(1), reverse=True):
            if index in points:
                marked.add(index)
                _mark(turn, end, points[index], report)
    return marked


def _mark_system(points: dict[int, JsonObject], body: Cacheable) -> set[int]:
    """Marks the texts of the system prompt; returns the items that were found there."""
    marked: set[int] = set()
    if not body.system_blocks:
        return marked
    # from the end, as above; texts and blocks of the system prompt have the same indexes
    for position in reversed(range(len(body.system))):
        index = body.system[position].item_index
        if index in points:
            marked.add(index)
            body.system_blocks.insert(position + 1, points[index])
    return marked


def _mark(turn: Turn, end: int, point: JsonObject, report: Report) -> None:
    """Adds a cache point after the first `end` blocks, or at the last allowed position before."""
    while end > 0 and turn.blocks[end - 1].member in NOT_CACHEABLE:
        end -= 1
    if end > 0:
        turn.blocks.insert(end, Block(turn.role, point, -1))
    else:
        report.dropped("/cache", "no position in this turn takes a cache point")
