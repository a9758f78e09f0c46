"""Sessions of Claude Code: lines that form a tree, of which one branch is the conversation.

    {"type": "user" | "assistant" | "system" | …, "uuid": …, "parentUuid": …, "message": {…}}

The newest leaf is the end of the conversation, and `parentUuid` leads to its beginning. A response
is one line for each content block, which share ``message.id``; the results of parallel calls hang
on the lines of their calls, so that the walk misses all but one branch of them. A compaction begins
a new tree; what it preserved is linked behind its summary.

Source: the reader of Anthropic's claude-agent-sdk for Python (`_internal/sessions.py`, 0.2.187),
and for what a compaction preserved, which that one does not link, the one of its npm package.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from streamlib.history.transcripts.draft import TranscriptDraft, decoded, turn_of
from streamlib.history.transcripts.parallel_results import MESSAGES, Node, with_parallel_results
from streamlib.history.transcripts.source import JsonSource, mistake, text_at
from streamlib_parsers.items import JsonObject

LINKED: Final = ("user", "assistant", "progress", "system", "attachment")
"""Types of lines that form the tree; all others are about the session (titles, snapshots …)."""


def read_claude_code(source: JsonSource, draft: TranscriptDraft) -> None:
    """Reads a session."""
    nodes = _nodes(source)
    _check_session(nodes)
    _link_preserved(nodes)
    if any(node.parent for node in nodes.values()):
        chain = _chain(nodes)
        chain = with_parallel_results(nodes, chain)
    else:
        # Exports and tools of others write no links: the lines are in their order.
        chain = [node for node in nodes.values() if not node.is_side]
    _report_left_out(nodes, chain, draft)
    shown = [node for node in chain if node.type in MESSAGES and node.is_main]
    _take(shown, draft)


def _nodes(source: JsonSource) -> dict[str, Node]:
    """The lines of the tree by their uuid."""
    nodes: dict[str, Node] = {}
    for entry in source.entries("loglines"):
        kind = entry.value.get("type")
        if not isinstance(kind, str):
            raise mistake(entry.path, "a line without a type")
        if kind not in LINKED:
            continue
        node = Node(entry, len(nodes))
        if node.uuid in nodes:
            first = nodes[node.uuid].path
            raise ValueError(f"{entry.path}: the uuid {node.uuid!r:.80} is that of {first}")
        nodes[node.uuid] = node
    messages = [node for node in nodes.values() if node.type in MESSAGES]
    if not messages:
        raise ValueError("no line is a message")
    if all(node.is_side for node in messages):
        # The file of a subagent has its conversation alone.
        for node in nodes.values():
            node.is_side = False
    return nodes


def _check_session(nodes: dict[str, Node]) -> None:
    """Refuses a second session, unless it goes on with the first: a resumed one may."""
    first: str | None = None
    for node in nodes.values():
        session = text_at(node.value, "sessionId", node.path) or None
        if session is None or node.is_side:
            continue
        first = first or session
        if session == first:
            continue
        if node.parent not in nodes:
            raise mistake(node.path, f"a second session, {session!r:.80}, in one file")
        first = session


# --- the tree ---


def _link_preserved(nodes: dict[str, Node]) -> None:
    """Links the messages that compactions preserved behind their summaries."""
    segments: list[JsonObject] = []
    links: list[tuple[Any, list[str]]] = []
    """Anchor and messages of each compaction."""
    for node in nodes.values():
        metadata = node.value.get("compactMetadata")
        if not isinstance(metadata, dict):
            continue
        messages, segment = metadata.get("preservedMessages"), metadata.get("preservedSegment")
        if isinstance(messages, dict) and isinstance(messages.get("uuids"), list):
            uuids = [uuid for uuid in map(str, messages["uuids"]) if uuid in nodes]
            links.append((messages.get("anchorUuid"), uuids))
        elif isinstance(segment, dict):
            segments.append(segment)
    for segment in segments[-1:]:  # the product, too, links the newest alone
        uuids = _segment(nodes, segment.get("headUuid"), segment.get("tailUuid"))
        links.append((segment.get("anchorUuid"), uuids))
    if links:
        _link(nodes, links)


def _link(nodes: dict[str, Node], links: list[tuple[Any, list[str]]]) -> None:
    """Makes a chain of each anchor, its messages, and what followed the anchor."""
    below: defaultdict[str | None, _Children] = defaultdict(_Children)
    siblings = {node.uuid: below[node.parent] for node in nodes.values()}
    for anchor, uuids in links:
        if isinstance(anchor, str) and anchor in nodes and uuids:
            followers = below.pop(anchor, None)
            for parent, uuid in pairwise([anchor, *uuids]):
                siblings[uuid] = below[parent]
            if followers is not None:
                followers.moved = below[uuids[-1]]
    parents = {children: parent for parent, children in below.items()}
    for node in nodes.values():
        node.parent = parents[siblings[node.uuid].now()]


class _Children:
    """The lines below a line, all of which links move at once: there may be many of both."""

    def __init__(self) -> None:
        self.moved: _Children | None = None
        """Those below another line, of which they are a part now."""

    def now(self) -> _Children:
        """Those of which they are a part in the end."""
        way: list[_Children] = []
        last = self
        while last.moved is not None:
            way.append(last)
            last = last.moved
        for passed in way:
            passed.moved = last
        return last


def _segment(nodes: dict[str, Node], head: Any, tail: Any) -> list[str]:
    """The uuids from a head to a tail below it; none where they are not linked."""
    uuids: list[str] = []
    current = nodes.get(tail) if isinstance(tail, str) else None
    seen: set[str] = set()
    while current is not None and current.uuid not in seen:
        seen.add(current.uuid)
        uuids.append(current.uuid)
        if current.uuid == head:
            return uuids[::-1]
        current = nodes.get(current.parent or "")
    return []


def _chain(nodes: dict[str, Node]) -> list[Node]:
    """The branch of the newest leaf, from its root on."""
    parents = {node.parent for node in nodes.values()}
    leaves: list[Node] = []
    known: dict[str, Node | None] = {}
    """Uuid of a line -> the nearest message on its way to the root."""
    for node in nodes.values():
        if node.uuid in parents:
            continue
        leaf = _nearest_message(nodes, node, known)
        if leaf is not None:
            leaves.append(leaf)
    candidates = [leaf for leaf in leaves if leaf.is_main] or leaves
    if not candidates:
        return []  # the links form circles alone
    newest = max(candidates, key=lambda leaf: leaf.index)
    chain = list(_way_to_root(nodes, newest))
    chain.reverse()
    return chain


def _nearest_message(
    nodes: dict[str, Node], node: Node, known: dict[str, Node | None]
) -> Node | None:
    passed: list[str] = []
    result: Node | None = None
    for current in _way_to_root(nodes, node):
        if current.uuid in known:
            result = known[current.uuid]
            break
        passed.append(current.uuid)
        if current.type in MESSAGES:
            result = current
            break
    known.update(dict.fromkeys(passed, result))
    return result


def _way_to_root(nodes: dict[str, Node], node: Node) -> Iterator[Node]:
    seen: set[str] = set()
    current: Node | None = node
    while current is not None and current.uuid not in seen:
        seen.add(current.uuid)
        yield current
        current = nodes.get(current.parent or "")


def _report_left_out(nodes: dict[str, Node], chain: list[Node], draft: TranscriptDraft) -> None:
    """Reports runs of lines that the conversation does not have, and why."""
    on_chain = {node.uuid for node in chain}
    boundary = 0
    for node in chain:
        if node.value.get("subtype") == "compact_boundary":
            boundary = node.index
    last: str | None = None
    for node in nodes.values():
        if node.type not in (*MESSAGES, "attachment"):
            continue
        reason = _why_left_out(node, on_chain, boundary)
        if reason is not None and reason != last:
            draft.report.dropped(node.path, reason)
        last = reason


def _why_left_out(node: Node, on_chain: set[str], boundary: int) -> str | None:
    """Why the conversation does not have a line; None if it does."""
    if node.type == "attachment":
        return "an attachment that the program writes anew for each request"
    if node.is_side:
        return "a subagent's or a team's own conversation"
    if node.value.get("isMeta"):
        return "a note of the program, which its reader hides"
    if node.uuid in on_chain:
        return None
    if node.index < boundary:
        return "a compaction replaced it"
    return "a branch that the conversation left"


# --- the messages ---


def _take(nodes: list[Node], draft: TranscriptDraft) -> None:
    """Reads the messages; lines of one response are one message."""
    start = 0
    for index in range(1, len(nodes) + 1):
        is_same = index < len(nodes) and nodes[start].response_id is not None
        if is_same and nodes[index].response_id == nodes[start].response_id:
            continue
        group = nodes[start:index]
        start = index
        message = msgspec.json.decode(group[0].raw, type=dict[str, Raw])["message"]
        if len(group) > 1:
            message = Raw(_joined(group))
        path = f"{group[0].path}/message"
        turn = turn_of(bytes(message), group[0].type)
        if "content" not in turn:
            raise mistake(path, "no content")
        prompt = decoded("messages", [(path, msgspec.json.encode(turn))])
        response_id = group[0].response_id
        items = prompt.items
        if response_id is not None:
            items = tuple([replace(item, response_id=response_id) for item in items])
        draft.add(items)


def _joined(group: list[Node]) -> bytes:
    """The message of lines that have a block each."""
    blocks: list[Raw] = []
    for node in group:
        message = msgspec.json.decode(node.raw, type=dict[str, Raw])["message"]
        content = msgspec.json.decode(message, type=dict[str, Raw]).get("content", Raw(b"[]"))
        if bytes(content).lstrip().startswith(b'"'):
            text = {"type": "text", "text": msgspec.json.decode(content)}
            blocks.append(Raw(msgspec.json.encode(text)))
        else:
            blocks += msgspec.json.decode(content, type=list[Raw])
    return msgspec.json.encode({"role": "assistant", "content": blocks})
