"""Parallel calls in sessions of Claude Code: the lines that the walk to the root misses.

    a2 (call A) --- a3 (call B) --- r2 (result of B) --- a4 …      the branch
     \\--- r1 (result of A)                                        put back behind r2's response

Each result hangs on the line of its own call, so results fork the tree, and calls that were written
after the one whose result the conversation went on from are no ancestors of its end. Both stand
after the last line of their response, as Claude Code's own reader puts them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from streamlib.history.transcripts.source import SourceEntry, mistake, text_at
from streamlib_parsers.items import JsonObject

MESSAGES: Final = ("user", "assistant")


class Node:
    """A line of the tree."""

    def __init__(self, entry: SourceEntry, index: int) -> None:
        value, path = entry.value, entry.path
        self.value = value
        self.path = path
        self.index = index
        """Its number among the lines of the tree."""
        self.raw = entry.raw
        self.uuid = text_at(value, "uuid", path, path)
        self.parent = text_at(value, "parentUuid", path) or None
        self.type = text_at(value, "type", path)
        message = value.get("message")
        self.message: JsonObject = message if isinstance(message, dict) else {}
        self.is_side = bool(value.get("isSidechain") or value.get("teamName"))
        """Whether it belongs to a subagent or a team."""
        if self.type in MESSAGES and not self.message:
            raise mistake(f"{path}/message", "not a JSON object")

    @property
    def is_main(self) -> bool:
        """Whether it belongs to the conversation of the user, and is shown in it."""
        return not (self.is_side or self.value.get("isMeta"))

    @property
    def response_id(self) -> str | None:
        """The id of the response that an assistant's line is a block of."""
        result = self.message.get("id")
        if self.type == "assistant" and isinstance(result, str) and result:
            return result
        return None

    def ids(self, block_type: str, key: str) -> list[str]:
        """The ids in its content blocks of a type."""
        content = self.message.get("content")
        blocks = content if isinstance(content, list) else []
        ids: list[str] = []
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == block_type:
                if isinstance(block.get(key), str):
                    ids.append(block[key])
        return ids


def with_parallel_results(nodes: dict[str, Node], chain: list[Node]) -> list[Node]:
    """The chain with the calls and results of its responses that are beside it."""
    last_of: dict[str, Node] = {}
    """Id of a response -> its last line on the chain."""
    for node in chain:
        if node.response_id is not None:
            last_of[node.response_id] = node
    if not last_of:
        return chain
    lines = _Lines(nodes, chain)
    inserted: dict[str, list[Node]] = {}
    for response_id, last in last_of.items():
        result = lines.missing(response_id)
        if result:
            inserted[last.uuid] = result
    complete: list[Node] = []
    for node in chain:
        complete.append(node)
        complete += inserted.get(node.uuid, ())
    return complete


class _Lines:
    """Which lines belong to which response."""

    def __init__(self, nodes: dict[str, Node], chain: list[Node]) -> None:
        self._on_chain = {node.uuid for node in chain}
        self._blocks: defaultdict[str, list[Node]] = defaultdict(list)
        """Id of a response -> its lines."""
        self._results: defaultdict[str, list[Node]] = defaultdict(list)
        """Uuid of a line -> the results that may be of its call."""
        self._maker: dict[str, Node | None] = {}
        """Id of a call -> the line that has it; None where two responses do."""
        self._answered: set[str] = set()
        """Ids of the calls whose results are on the chain."""
        results: list[Node] = []
        # What was before a compaction is no longer sent.
        start = chain[0].index if chain[0].value.get("subtype") == "compact_boundary" else -1
        for node in nodes.values():
            if node.index < start and node.uuid not in self._on_chain:
                continue
            if node.response_id is not None:
                self._blocks[node.response_id].append(node)
                self._note_calls(node)
            elif node.type == "user" and node.parent and node.ids("tool_result", "tool_use_id"):
                results.append(node)
        for node in results:
            self._note_result(node, nodes)
        for node in chain:
            self._answered.update(node.ids("tool_result", "tool_use_id"))

    def _note_calls(self, node: Node) -> None:
        for call_id in node.ids("tool_use", "id"):
            maker = self._maker.get(call_id, node)
            is_same = maker is not None and maker.response_id == node.response_id
            self._maker[call_id] = node if is_same else None

    def _note_result(self, node: Node, nodes: dict[str, Node]) -> None:
        """Notes a result under its parent, the line that it names, and those of its calls."""
        self._results[node.parent or ""].append(node)
        named = nodes.get(str(node.value.get("sourceToolAssistantUUID")))
        makers = [self._maker.get(call_id) for call_id in node.ids("tool_result", "tool_use_id")]
        for line in (named, *makers):
            if line is not None and _same_writer(line, node):
                self._results[line.uuid].append(node)

    def missing(self, response_id: str) -> list[Node]:
        """Lines of a response, and results of its calls, that are not on the chain."""
        blocks = self._blocks[response_id]
        uuids = {node.uuid for node in blocks}
        recovered: dict[str, Node] = {}
        strays: dict[str, Node] = {}
        """Results whose parent is elsewhere: taken where their call has no other."""
        for block in blocks:
            for result in self._results[block.uuid]:
                if result.uuid in self._on_chain:
                    continue
                group = recovered if result.parent in uuids else strays
                group[result.uuid] = result
        answered = set[str]()
        for result in recovered.values():
            answered.update(result.ids("tool_result", "tool_use_id"))
        for result in sorted(strays.values(), key=lambda node: node.index):
            call_ids = result.ids("tool_result", "tool_use_id")
            waiting = [call_id for call_id in call_ids if not self._has(call_id, answered)]
            makers = [self._maker.get(call_id) for call_id in waiting]
            if any(maker is not None and maker.uuid in uuids for maker in makers):
                answered.update(call_ids)
                recovered[result.uuid] = result
        missing = [node for node in blocks if node.uuid not in self._on_chain]
        missing.sort(key=_time)
        return missing + sorted(recovered.values(), key=_time)

    def _has(self, call_id: str, answered: set[str]) -> bool:
        return call_id in answered or call_id in self._answered


def _same_writer(first: Node, second: Node) -> bool:
    is_side = bool(first.value.get("isSidechain")) == bool(second.value.get("isSidechain"))
    return is_side and first.value.get("agentId") == second.value.get("agentId")


def _time(node: Node) -> str:
    result = node.value.get("timestamp")
    return result if isinstance(result, str) else ""
