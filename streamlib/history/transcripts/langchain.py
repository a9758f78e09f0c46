"""Messages of LangChain: `messages_to_dict`, `dumpd`, and the message objects themselves.

    {"type": "ai", "data": {"content": …, "tool_calls": […]}}
    {"lc": 1, "type": "constructor", "id": […, "AIMessage"], "kwargs": {"content": …}}

The content of a response is a text, or blocks: those of the provider, or LangChain's own. Blocks of
Messages and Responses are read by the decoders of these wires; `tool_calls` repeats the calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from streamlib.history.transcripts.draft import TranscriptDraft, decoded
from streamlib.history.transcripts.langchain_parts import content_part, content_parts
from streamlib.history.transcripts.source import JsonSource, list_at, mistake, object_at, text_at
from streamlib_parsers.items import (
    ContentPart,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    Role,
    Text,
    WireApi,
)

ROLES: Final[dict[str, Role]] = {"human": "user", "system": "system"}
"""Type of a message -> role, for messages that are one item."""

CHAT_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "developer",
}
"""Role of a `ChatMessage` -> role."""

ORIGINS: Final[dict[str, Origin]] = {
    "anthropic": Origin("messages", "anthropic"),
    "openai": Origin("responses", "openai"),
    "azure": Origin("responses", "azure"),
    "google_genai": Origin("gemini", "google"),
    "google_vertexai": Origin("gemini", "vertex"),
    "bedrock": Origin("converse", "bedrock"),
    "bedrock_converse": Origin("converse", "bedrock"),
}
"""``response_metadata.model_provider`` -> origin."""

FURTHER: Final = ("reasoning_content", "tool_calls", "function_call")
"""Keys of ``additional_kwargs`` that are read."""

REMOVE_ALL: Final = "__remove_all__"
"""The id of a ``RemoveMessage`` that removes everything before it."""

MESSAGES_BLOCKS: Final = frozenset(
    {
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "container_upload",
        "compaction",
    }
)
"""Blocks of Messages in responses; results of its own tools end in ``_tool_result``."""

RESPONSES_BLOCKS: Final = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "computer_call",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "shell_call",
        "local_shell_call",
        "apply_patch_call",
        "tool_search_call",
        "program",
        "program_output",
        "compaction_summary",
    }
)
"""Objects of Responses in responses."""

LEFTOVERS: Final = ("tool_call_chunk", "input_json_delta", "invalid_tool_call", "server_tool_call")
"""Blocks that repeat a call of `tool_calls`, or of a provider's block beside them."""


def read_langchain(source: JsonSource, draft: TranscriptDraft) -> None:
    """Reads messages."""
    read: dict[int, list[ResponseItem]] = {}
    numbers: dict[str, int] = {}
    """Id of a message -> its number."""
    for number, entry in enumerate(source.entries("messages")):
        kind, data = _message(entry.value, entry.path)
        message_id = text_at(data, "id", entry.path)
        if kind == "remove":
            _remove(read, numbers, message_id, entry.path, draft)
            continue
        if message_id and message_id in numbers:
            raise ValueError(f"{entry.path}/id is that of message {numbers[message_id]}")
        if message_id:
            numbers[message_id] = number
        read[number] = list(_items(kind, data, entry.path, draft, read))
    for items in read.values():
        draft.add(items)


def _message(value: JsonObject, path: str) -> tuple[str, JsonObject]:
    """Type and fields of a message in each of the three forms."""
    if "lc" in value:
        data = object_at(value.get("kwargs"), f"{path}/kwargs")
        names = value.get("id")
        name = str(names[-1]) if isinstance(names, list) and names else ""
        kind = text_at(data, "type", path) or name.removesuffix("Message").lower()
    elif isinstance(value.get("data"), dict):
        data, kind = value["data"], text_at(value, "type", path)
    else:
        data, kind = value, text_at(value, "type", path)
    # A chunk is written like the message that it is a part of.
    kind = kind.removesuffix("MessageChunk").lower()
    if kind not in ("human", "ai", "system", "tool", "function", "chat", "remove"):
        raise ValueError(f"{path}/type: no message of LangChain: {kind!r:.60}")
    return kind, data


def _remove(
    read: dict[int, list[ResponseItem]],
    numbers: dict[str, int],
    message_id: str,
    path: str,
    draft: TranscriptDraft,
) -> None:
    """Replays a removal, as ``add_messages`` of LangGraph does."""
    draft.report.dropped(path, "what it removes")
    if message_id == REMOVE_ALL:
        read.clear()
        numbers.clear()
    elif message_id in numbers:
        del read[numbers.pop(message_id)]


def _items(
    kind: str,
    data: JsonObject,
    path: str,
    draft: TranscriptDraft,
    read: dict[int, list[ResponseItem]],
) -> Iterator[ResponseItem]:
    content = data.get("content")
    match kind:
        case "ai":
            yield from _Response(data, path, draft).items()
        case "tool":
            is_error = data.get("status") == "error"
            yield FunctionCallOutput(
                text_at(data, "tool_call_id", path), _output(content, path), is_error
            )
        case "function":
            call_id = _newest_call(read, text_at(data, "name", path))
            yield FunctionCallOutput(call_id, _output(content, path))
        case _:
            if data.get("name"):
                draft.report.dropped(f"{path}/name", "no item has the name of who wrote it")
            role = ROLES.get(kind) or CHAT_ROLES.get(text_at(data, "role", path))
            if role is None:
                draft.report.add("changed", f"{path}/role", "a role that no provider knows: user")
            yield Message(role or "user", content_parts(content, path))


def _newest_call(read: dict[int, list[ResponseItem]], name: str) -> str:
    """The id of the call that a result of the older form answers: that of the message before."""
    for item in reversed(next(reversed(read.values()), [])):
        if isinstance(item, FunctionCall) and item.name == name:
            return item.call_id
    return f"call_{name}"


def _output(content: Any, path: str) -> str | tuple[ContentPart, ...]:
    if isinstance(content, str):
        return content
    return content_parts(content, path)


# --- responses ---


class _Response:
    """One message of a model."""

    def __init__(self, data: JsonObject, path: str, draft: TranscriptDraft) -> None:
        self._data = data
        self._path = path
        self._draft = draft
        metadata = data.get("response_metadata")
        provider = metadata.get("model_provider") if isinstance(metadata, dict) else None
        self._origin = ORIGINS.get(provider) if isinstance(provider, str) else None
        further = data.get("additional_kwargs")
        self._further: JsonObject = further if isinstance(further, dict) else {}
        for key, value in self._further.items():
            if value and key not in FURTHER:
                draft.report.dropped(
                    f"{path}/additional_kwargs/{key}", "no item has a field for it"
                )
        self._calls: dict[str, FunctionCall] = {}
        """The calls of `tool_calls`, by id, without those that a block has already."""
        for call in self._listed_calls():
            if call.call_id in self._calls:
                raise mistake(path, f"two calls have the id {call.call_id!r:.80}")
            self._calls[call.call_id] = call

    def items(self) -> Iterator[ResponseItem]:
        """The items of the message, in its order."""
        reasoning = self._further.get("reasoning_content")
        content = self._data.get("content")
        blocks: list[Any] = content if isinstance(content, list) else [content]
        if isinstance(reasoning, str) and reasoning:
            yield Reasoning(reasoning)
        for index, block in enumerate(blocks):
            path = f"{self._path}/content/{index}"
            if isinstance(block, str) or block is None:
                if block:
                    yield self._text(block)
                continue
            yield from self._block(object_at(block, path), path)
        yield from self._calls.values()

    def _text(self, text: str) -> Message:
        return Message("assistant", (Text(text),), origin=self._origin)

    def _listed_calls(self) -> Iterator[FunctionCall]:
        """Calls as LangChain has them, else as OpenAI's older clients had them."""
        path = self._path
        calls = list_at(self._data, "tool_calls", path)
        calls = calls + list_at(self._data, "invalid_tool_calls", path)
        for call in calls:
            yield _call(object_at(call, f"{path}/tool_calls"), path)
        if calls:
            return
        for call in list_at(self._further, "tool_calls", path):
            result = object_at(call, f"{path}/additional_kwargs/tool_calls")
            function = object_at(result.get("function"), f"{path}/additional_kwargs/tool_calls")
            yield _call({"id": result.get("id"), **function}, path)
        legacy = self._further.get("function_call")
        if isinstance(legacy, dict):
            yield _call({"id": f"call_{legacy.get('name')}", **legacy}, path)

    def _block(self, block: JsonObject, path: str) -> Iterator[ResponseItem]:
        if block.get("type") == "non_standard":
            block = object_at(block.get("value"), f"{path}/value")
        kind = text_at(block, "type", path)
        if kind == "text":
            yield from self._text_block(block, path)
        elif kind == "reasoning" and "reasoning" in block:
            signature = _extra(block, "signature")
            yield Reasoning(str(block["reasoning"]), signature=signature, origin=self._origin)
        elif kind in ("refusal", "reasoning") or kind in RESPONSES_BLOCKS:
            yield from self._of_wire("responses", block, path)
        elif kind in MESSAGES_BLOCKS or kind.endswith("_tool_result"):
            yield from self._of_wire("messages", block, path)
        elif kind == "tool_call":
            call = self._calls.pop(text_at(block, "id", path), None) or _call(block, path)
            yield replace(call, signature=_extra(block, "signature"), origin=self._origin)
        elif kind not in LEFTOVERS:
            part = content_part(block, path)
            yield Message("assistant", (part,), origin=self._origin)

    def _text_block(self, block: JsonObject, path: str) -> Iterator[ResponseItem]:
        """A text, with the citations of its provider, and of Responses with id and phase."""
        text = text_at(block, "text", path)
        annotations = block.get("annotations") or block.get("citations")
        listed = annotations if isinstance(annotations, list) else []
        part = Text(text, tuple(element for element in listed if isinstance(element, dict)))
        signature, phase = _extra(block, "signature"), block.get("phase")
        yield Message(
            "assistant",
            (part,),
            phase if isinstance(phase, str) else None,
            id=text_at(block, "id", path) or None,
            signature=signature,
            origin=self._origin,
        )

    def _of_wire(self, wire_api: WireApi, block: JsonObject, path: str) -> Iterator[ResponseItem]:
        """The item of a block that a wire's decoder reads."""
        block = {key: value for key, value in block.items() if key != "index"}
        if wire_api == "messages":
            block = {"role": "assistant", "content": [block]}
        elif block["type"] == "refusal":
            block = {"type": "message", "role": "assistant", "content": [block]}
        for item in decoded(wire_api, [(path, msgspec.json.encode(block))]).items:
            origin = self._origin
            if origin is None or origin.wire_api != wire_api:
                origin = item.origin
            call_id = getattr(item, "call_id", None)
            self._calls.pop(str(call_id), None)
            yield replace(item, origin=origin)


def _call(call: JsonObject, path: str) -> FunctionCall:
    arguments = call.get("args", call.get("arguments"))
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    return FunctionCall(text_at(call, "id", path), text_at(call, "name", path), arguments)


def _extra(block: JsonObject, key: str) -> str | None:
    """A text of a block's ``extras``, where LangChain keeps what only a provider knows."""
    extras = block.get("extras")
    result = extras.get(key) if isinstance(extras, dict) else None
    return result if isinstance(result, str) and result else None
