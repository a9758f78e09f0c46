"""A request's body as the list of parts that a prompt cache compares, in the provider's order.

    tools, then the system prompt, then the messages, part by part

Marks of caches are no part of the content: they are read beside it. Forms that mean the same are
one form: a text and a list of one text part; keys of a block in any order. The order of keys stays
where the model reads it: in a schema and in arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from streamlib.request.build import Request
from streamlib.request.token_count import estimated_value_tokens
from streamlib_parsers.items import JsonObject

Group: TypeAlias = Literal["tools", "system", "messages"]

MARKS: Final = ("cache_control", "prompt_cache_breakpoint")
"""Keys of an object with a mark: of Claude, and of OpenAI."""

POINT: Final = "cachePoint"
"""Key of a block that marks what stands before it (Converse)."""

ORDERED: Final = frozenset(
    {"input_schema", "inputSchema", "parameters", "schema", "input", "args", "arguments", "json"}
)
"""Keys whose values the model reads with their keys in the order of the request."""

TOOLS: Final = ("tools", "toolConfig.tools")
SYSTEM: Final = ("system", "instructions", "systemInstruction", "system_instruction")
TURNS: Final = ("messages", "input", "contents", "prompt")
"""Where bodies of all wires have each group; a body has one of them."""

CONTENT: Final = ("content", "parts")
"""Keys of a turn with a list of parts."""

BEFORE_CONTENT: Final = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
"""Keys of a turn that stand before its content, where it is rendered."""

REASONING: Final = ("thinking", "redacted_thinking", "reasoningContent")
"""Kinds of blocks that carry no mark."""


class PromptPart(NamedTuple):
    """One part of a request.

    Attributes:
        path: JSON pointer of it in the body.
        group: what it belongs to.
        role: of its message.
        content: its JSON, with the order of keys that the model reads.
        value: the same as a value: equal in any order of keys.
        mark: lifetime of the mark behind it, "" where that has none; None: no mark.
        tokens: estimated.
    """

    path: str
    group: Group
    role: str
    content: bytes
    value: Any
    mark: str | None
    tokens: float

    def equals(self, other: PromptPart) -> bool:
        """Whether a cache takes both for the same."""
        return (self.group, self.role, self.content) == (other.group, other.role, other.content)


class RequestParts(NamedTuple):
    """The parts of a request.

    Attributes:
        body: the complete body.
        parts: in the provider's order.
        automatic: lifetime of the mark that the provider is asked to set on the last part; None:
            it is not asked.
        image: path of the first image in a message; None: there is none.
        citations: path of the first document that is to be cited; None: none is.
        web_search: path of the provider's web search among the tools; None: it is off.
    """

    body: JsonObject
    parts: Sequence[PromptPart]
    automatic: str | None
    image: str | None
    citations: str | None
    web_search: str | None

    def count(self, *groups: Group) -> int:
        """How many parts these groups have."""
        return sum(part.group in groups for part in self.parts)

    def marks(self) -> list[tuple[int, str]]:
        """Index of each marked part and the lifetime of its mark, in order."""
        numbered = enumerate(self.parts)
        marks = [(index, part.mark) for index, part in numbered if part.mark is not None]
        if self.automatic is not None:
            last = self._last_markable()
            if last is not None and all(index != last for index, _ in marks):
                marks.append((last, self.automatic))
        return sorted(marks)

    def _last_markable(self) -> int | None:
        for index in range(len(self.parts) - 1, -1, -1):
            value = self.parts[index].value
            if not isinstance(value, dict) or value.get("type") not in REASONING:
                return index
        return None


def request_parts(request: Request, name: str) -> RequestParts:
    """The parts of a request.

    Args:
        request: with its body.
        name: of the argument, for the error.

    Raises:
        ValueError: the body is no JSON object, or nested too deeply.
    """
    reader = _Reader()
    try:
        body = msgspec.json.decode(request.body, type=dict[str, Any])
        reader.read(body)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ValueError(f"{name}: the body of the request is no JSON object: {error}") from None
    except RecursionError:
        raise ValueError(f"{name}: the body of the request is nested too deeply") from None
    return RequestParts(
        body,
        reader.parts,
        _lifetime(body.get(MARKS[0])),
        reader.image,
        reader.citations,
        reader.web_search,
    )


def value_at(body: object, pointer: str) -> object:
    """The value at a JSON pointer of object keys; None where there is none."""
    value = body
    for key in pointer.split("/")[1:]:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


class _Reader:
    """Collects the parts of a body."""

    def __init__(self) -> None:
        self.parts: list[PromptPart] = []
        self.image: str | None = None
        self.citations: str | None = None
        self.web_search: str | None = None

    def read(self, body: JsonObject) -> None:
        """Reads the groups in the provider's order."""
        for name in TOOLS:
            pointer = "/" + name.replace(".", "/")
            for path, tool in _elements(value_at(body, pointer), pointer):
                self._add_tool(tool, path)
        for name in SYSTEM:
            for path, block in _blocks(body.get(name), f"/{name}"):
                self._add(block, path, "system", "system")
        for name in TURNS:
            for path, turn in _elements(body.get(name), f"/{name}"):
                self._add_turn(turn, path)

    def _add_tool(self, tool: Any, path: str) -> None:
        kind = tool.get("type") if isinstance(tool, dict) else None
        is_claudes = isinstance(kind, str) and kind.startswith("web_search_20")
        if is_claudes:
            # Claude's own: it changes the system prompt, and is no part of the tools.
            self.web_search = path
        else:
            self._add(tool, path, "tools", "")

    def _add_turn(self, turn: Any, path: str) -> None:
        if not isinstance(turn, dict):
            self._add(turn, path, "messages", "user")
            return
        role = str(turn.get("role") or "")
        key = next((key for key in CONTENT if key in turn), None)
        if key is None or not role:
            self._add(turn, path, "messages", role)
            return
        group: Group = "system" if role in ("system", "developer") else "messages"
        if self.parts and self.parts[-1].group == "messages":
            group = "messages"
        rest = [name for name in turn if name not in (key, "role", "type", "id", *MARKS)]
        first = [name for name in rest if name in BEFORE_CONTENT]
        for name in first:
            self._add({name: turn[name]}, f"{path}/{name}", group, role)
        for inner, block in _blocks(turn[key], f"{path}/{key}"):
            self._add(block, inner, group, role)
        for name in rest:
            if name not in first and turn[name] not in (None, [], ""):
                self._add({name: turn[name]}, f"{path}/{name}", group, role)

    def _add(self, value: Any, path: str, group: Group, role: str) -> None:
        if isinstance(value, dict) and POINT in value:
            if self.parts:
                self.parts[-1] = self.parts[-1]._replace(mark=_lifetime(value[POINT]))
            return
        mark: str | None = None
        if isinstance(value, dict):
            for key in MARKS:
                mark = _lifetime(value.get(key)) if mark is None else mark
            if group == "messages":
                self._note(value, path)
        content = msgspec.json.encode(_without_marks(value), order="sorted")
        bare = msgspec.json.decode(content)
        tokens = estimated_value_tokens(bare)
        self.parts.append(PromptPart(path, group, role, content, bare, mark, tokens))

    def _note(self, block: JsonObject, path: str) -> None:
        kind = block.get("type")
        if self.image is None and (kind == "image" or "image" in block):
            self.image = path
        citations = block.get("citations")
        is_cited = isinstance(citations, dict) and citations.get("enabled") is True
        if is_cited and self.citations is None:
            self.citations = f"{path}/citations"
        inner = block.get("content")
        if kind == "tool_result" and isinstance(inner, list):
            for index, part in enumerate(inner):
                if isinstance(part, dict):
                    self._note(part, f"{path}/content/{index}")


def _lifetime(mark: Any) -> str | None:
    """The lifetime that a mark names, "" where it names none; None: it is no mark."""
    if not isinstance(mark, dict):
        return None
    ttl = mark.get("ttl")
    return ttl if isinstance(ttl, str) else ""


def _elements(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The elements of a list with their pointers; a text is one."""
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield f"{path}/{index}", element
    elif value not in (None, ""):
        yield path, {"role": "user", "content": value} if isinstance(value, str) else value


def _blocks(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The blocks of a content with their pointers, each as an object; a text is one block."""
    if isinstance(value, dict) and "parts" in value:  # wire: gemini
        value, path = value["parts"], f"{path}/parts"
    if isinstance(value, str):
        if value:
            yield path, {"type": "text", "text": value}
    elif isinstance(value, list):
        for index, element in enumerate(value):
            block = {"type": "text", "text": element} if isinstance(element, str) else element
            yield f"{path}/{index}", block
    elif value is not None:
        yield path, value


def _without_marks(value: Any) -> Any:
    """A copy without marks, to be written with sorted keys, but where the model reads their order.

    Blocks in the output of a call may have marks, too.
    """
    if isinstance(value, list):
        return [_without_marks(element) for element in value]
    if not isinstance(value, dict):
        return value
    bare: JsonObject = {}
    for key, inner in value.items():
        if key in ORDERED:
            bare[key] = Raw(msgspec.json.encode(inner))
        elif key not in MARKS:
            bare[key] = _without_marks(inner)
    if bare.get("type") in ("input_text", "output_text"):  # wire: responses
        bare["type"] = "text"
    return bare
