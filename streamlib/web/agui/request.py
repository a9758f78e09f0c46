"""The request of an AG-UI client: ``RunAgentInput`` of AG-UI 1.0.

    {"threadId", "runId", "messages": [{"id", "role", "content", …}], "tools", "state", "context",
     "forwardedProps", "resume", "parentRunId"}

Wire source: the schema of the npm package ``@ag-ui/core``; ``binary`` parts are those of clients
before 1.0.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from streamlib.web.parsed_request import (
    DENIED,
    NOT_OFFERED,
    UNSIGNED,
    ParsedRequest,
    ToolApproval,
)
from streamlib.web.request_body import UIRequestError, read_struct
from streamlib.web.request_files import (
    PROVIDERS_FILE,
    FileKind,
    FileResult,
    file_from_data,
    file_from_url,
)
from streamlib.web.request_tools import tool_spec
from streamlib.web.sealing import is_sealed
from streamlib.web.ui_parts import TRUNCATED_CALL
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    Document,
    Image,
    JsonObject,
    Message,
    Output,
    Reasoning,
    ServerToolCall,
    Text,
)

INSTRUCTIONS: Final = ("system", "developer")
"""Roles of messages that no page may send."""

ROLES: Final = ("user", "assistant", "tool", "reasoning", "activity")

FILES: Final[dict[str, FileKind]] = {
    "image": Image,
    "audio": Audio,
    "video": Document,
    "document": Document,
}
"""Kinds of parts that have a source, and the class of each."""

NO_MESSAGE: Final = "only the page shows it"
NO_PART: Final = "a part of an unknown kind"
SAME_NAME: Final = "a tool of this name is offered already"


# Field names are the protocol's.
class _AguiBody(Struct):
    threadId: str  # noqa: N815
    runId: str  # noqa: N815
    messages: list[Any]
    parentRunId: str | None = None  # noqa: N815
    state: Any = None
    tools: list[Any] | None = None
    context: list[JsonObject] | None = None
    forwardedProps: Any = None  # noqa: N815
    resume: list[JsonObject] | None = None


class _Tool(Struct):
    name: str
    description: str | None = None
    parameters: Any = None


class _AnyMessage(Struct):
    role: str


class _UserMessage(Struct):
    content: str | list[Any]


class _Function(Struct):
    name: str
    arguments: str = ""


class _ToolCall(Struct):
    id: str
    function: _Function
    encryptedValue: str | None = None  # noqa: N815


class _AssistantMessage(Struct):
    content: str | None = None
    toolCalls: list[_ToolCall] | None = None  # noqa: N815
    encryptedValue: str | None = None  # noqa: N815
    subagentRunId: str | None = None  # noqa: N815


class _ToolMessage(Struct):
    toolCallId: str  # noqa: N815
    content: str | list[Any]
    error: str | None = None
    metadata: JsonObject | None = None


class _ReasoningMessage(Struct):
    content: str = ""
    encryptedValue: str | None = None  # noqa: N815
    subagentRunId: str | None = None  # noqa: N815


class _Source(Struct):
    type: str
    value: str
    mimeType: str | None = None  # noqa: N815


class _Part(Struct):
    type: str
    text: Any = None
    source: Any = None


class _Binary(Struct):
    mimeType: str | None = None  # noqa: N815
    data: str | None = None
    url: str | None = None
    filename: str | None = None


class _Resume(Struct):
    interruptId: str  # noqa: N815
    status: str
    payload: Any = None


class _AguiApproval(Struct):
    approved: bool = False
    reason: str | None = None


def parse_agui(body: JsonObject, parsed: ParsedRequest) -> None:
    """Reads a body.

    Raises:
        UIRequestError: the body is not such a request.
    """
    fields = read_struct(body, _AguiBody, "")
    limits = parsed.context.limits
    if len(fields.messages) > limits.messages:
        raise UIRequestError(f"more than {limits.messages} messages", too_large=True)
    if len(fields.tools or ()) > limits.tools:
        raise UIRequestError(f"more than {limits.tools} tools", too_large=True)
    parsed.chat_id = fields.threadId
    parsed.run_id = fields.runId
    parsed.parent_run_id = fields.parentRunId
    parsed.state = fields.state
    parsed.context_entries = fields.context or []
    parsed.resume = fields.resume or []
    if isinstance(fields.forwardedProps, dict):
        parsed.extra = fields.forwardedProps
    elif fields.forwardedProps is not None:
        parsed.dropped("/forwardedProps", "not a JSON object")
    for index, value in enumerate(fields.tools or ()):
        _read_tool(value, index, parsed)
    for index, value in enumerate(fields.messages):
        _read_message(value, f"/messages/{index}", parsed)
    for index, entry in enumerate(parsed.resume):
        _read_resume(entry, f"/resume/{index}", parsed)


def _read_resume(entry: JsonObject, path: str, parsed: ParsedRequest) -> None:
    """Reads what the user decided about a call, whose id the encoder's interrupt had."""
    resume = read_struct(entry, _Resume, path)
    call = parsed.waiting_call(resume.interruptId)
    if call is None:
        # The application made this interrupt itself.
        return
    approval = _AguiApproval()
    if resume.status == "resolved" and isinstance(resume.payload, dict):
        approval = read_struct(resume.payload, _AguiApproval, f"{path}/payload")
    decision = ToolApproval(
        id=resume.interruptId,
        call_id=call.call_id,
        name=call.name,
        approved=approval.approved,
        reason=approval.reason,
    )
    parsed.approvals.append(decision)
    if not decision.approved:
        text = decision.reason or DENIED
        output = parsed.output(call.call_id, text, is_error=True, path=path)
        if output is not None:
            parsed.add(output)


def _read_tool(value: Any, index: int, parsed: ParsedRequest) -> None:
    tool = read_struct(value, _Tool, f"/tools/{index}")
    if not tool.name:
        raise UIRequestError(f"/tools/{index}: a tool has a name")
    if parsed.context.offered.has_name(tool.name):
        # The server's own description wins.
        parsed.dropped(f"/tools/{index}", SAME_NAME)
        return
    spec = tool_spec(tool.name, tool.description, tool.parameters)
    parsed.context.offered.add(spec)
    parsed.tools.append(spec)


def _read_message(value: Any, path: str, parsed: ParsedRequest) -> None:
    role = read_struct(value, _AnyMessage, path).role
    match role:
        case "user":
            content = read_struct(value, _UserMessage, path).content
            parsed.add_user(_parts(content, path, parsed), path)
        case "assistant":
            _read_assistant(read_struct(value, _AssistantMessage, path), path, parsed)
        case "tool":
            _read_output(read_struct(value, _ToolMessage, path), path, parsed)
        case "reasoning":
            _read_reasoning(read_struct(value, _ReasoningMessage, path), path, parsed)
        case "activity":
            parsed.dropped(path, NO_MESSAGE)
        case _ if role in INSTRUCTIONS:
            raise UIRequestError(f"{path}: a page may not send instructions (role {role})")
        case _:
            raise UIRequestError(f"{path}/role is one of {', '.join(ROLES)}")


def _read_assistant(message: _AssistantMessage, path: str, parsed: ParsedRequest) -> None:
    state = message.encryptedValue
    if state is not None and _may_be_sealed(state, parsed):
        restored = parsed.sealed_message(state, message.content or "", f"{path}/encryptedValue")
        state = None
        if restored is not None:
            parsed.add(restored)
            message = replace(message, content=None)
    if message.content or state:
        item = Message(
            "assistant",
            (Text(message.content or ""),),
            signature=state,
            origin=parsed.context.origin,
            agent=message.subagentRunId,
        )
        parsed.add(item)
    for index, call in enumerate(message.toolCalls or ()):
        _read_call(call, message.subagentRunId, f"{path}/toolCalls/{index}", parsed)


def _read_call(call: _ToolCall, agent: str | None, path: str, parsed: ParsedRequest) -> None:
    name = call.function.name
    parsed.continued_calls.append(call.id)
    if not parsed.context.offered.offers(name):
        parsed.dropped(path, NOT_OFFERED)
        parsed.note_dropped_call(call.id)
        return
    item = parsed.context.offered.call(
        call.id, name, call.function.arguments, is_complete=True, provider_run=False
    )
    state = call.encryptedValue
    if state and _may_be_sealed(state, parsed):
        item = parsed.sealed_call(state, item, f"{path}/encryptedValue")
    elif state and not isinstance(item, ServerToolCall):
        item = replace(item, signature=state, origin=parsed.context.origin)
    parsed.add_call(replace(item, agent=agent))


def _read_output(message: _ToolMessage, path: str, parsed: ParsedRequest) -> None:
    if message.content == TRUNCATED_CALL:
        # The encoder marks a truncated call so: it waits for no output.
        parsed.mark_incomplete(message.toolCallId)
        return
    value: Output
    if isinstance(message.content, str):
        value = message.content or message.error or ""
    else:
        value = tuple(_parts(message.content, path, parsed))
    marked = (message.metadata or {}).get("is_error") is True
    is_error = message.error is not None or marked
    output = parsed.output(message.toolCallId, value, is_error=is_error, path=path)
    if output is not None:
        parsed.add(output)


def _read_reasoning(message: _ReasoningMessage, path: str, parsed: ParsedRequest) -> None:
    state = message.encryptedValue
    origin = parsed.context.origin
    if not state:
        parsed.dropped(path, UNSIGNED)
        return
    if _may_be_sealed(state, parsed):
        restored = parsed.unsealed(state, Reasoning, path)
        if restored is not None:
            parsed.add(restored)
        return
    if not message.content:
        item = Reasoning(encrypted_content=state, redacted=True, origin=origin)
    elif origin is not None and origin.wire_api == "responses":
        item = Reasoning(summary=(message.content,), encrypted_content=state, origin=origin)
    else:
        item = Reasoning(content=message.content, signature=state, origin=origin)
    parsed.add(replace(item, agent=message.subagentRunId))


def _may_be_sealed(state: str, parsed: ParsedRequest) -> bool:
    """Whether state is to be opened: with a seal, a provider's own is taken from nobody."""
    return parsed.context.seal is not None or is_sealed(state)


# --- parts ---


def _parts(content: str | list[Any], path: str, parsed: ParsedRequest) -> list[ContentPart]:
    """The parts of a message; what is left out is reported."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    parts: list[ContentPart] = []
    for index, value in enumerate(content):
        part_path = f"{path}/content/{index}"
        fields = read_struct(value, _Part, part_path)
        if fields.type == "text":
            if not isinstance(fields.text, str):
                raise UIRequestError(f"{part_path}/text is a text")
            parts.append(Text(fields.text))
            continue
        result = _file(fields, value, part_path, parsed)
        if result.part is None:
            parsed.dropped(part_path, result.reason)
        else:
            parts.append(result.part)
    return parts


def _file(fields: _Part, value: Any, path: str, parsed: ParsedRequest) -> FileResult:
    takes_urls = parsed.context.takes_urls
    if fields.type == "binary":
        binary = read_struct(value, _Binary, path)
        name = binary.filename
        if binary.data:
            return file_from_data(binary.data, binary.mimeType, name)
        if binary.url:
            return file_from_url(binary.url, binary.mimeType, name, takes_urls=takes_urls)
        return FileResult(None, PROVIDERS_FILE)
    kind = FILES.get(fields.type)
    if kind is None:
        return FileResult(None, NO_PART)
    source = read_struct(fields.source, _Source, f"{path}/source")
    match source.type:
        case "data":
            return file_from_data(source.value, source.mimeType, None, kind=kind)
        case "url":
            return file_from_url(
                source.value, source.mimeType, None, takes_urls=takes_urls, kind=kind
            )
        case "file":
            return FileResult(None, PROVIDERS_FILE)
        case _:
            raise UIRequestError(f"{path}/source/type is one of data, url, file")
