"""The request of `useChat`: UI messages of the AI SDK's versions 6 and 7.

    {"id": chat, "messages": [{"id", "role", "parts": [{"type", …}]}], "trigger", "messageId", …}

A step of an assistant message is one response of a model: its calls come first and their outputs
after it, as providers want them.

Wire source: ``UIMessage`` and ``UIMessagePart`` of the npm package ``ai``, and the body that its
``HttpChatTransport`` sends.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from streamlib.request.origins import opaque_state
from streamlib.web.parsed_request import (
    DENIED,
    NOT_OFFERED,
    UNSIGNED,
    ParsedRequest,
    ToolApproval,
)
from streamlib.web.request_body import UIRequestError, read_struct
from streamlib.web.request_files import PROVIDERS_FILE, file_from_url
from streamlib.web.request_outputs import output_value, parts_of_text
from streamlib.web.request_tools import UICall, UIOutput
from streamlib.web.ui_parts import TRUNCATED_CALL
from streamlib.web.vercel.parts import OWN_METADATA, named_agent, sealed_state
from streamlib.web.vercel.signatures import (
    SignedPart,
    merged_reasoning,
    signed_reasoning,
    signed_state,
)
from streamlib_parsers.items import (
    ContentPart,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)

TRIGGERS: Final = ("submit-message", "regenerate-message", "resume-stream")

STATES: Final = (
    "input-streaming",
    "input-available",
    "approval-requested",
    "approval-responded",
    "output-available",
    "output-error",
    "output-denied",
)
"""States of a tool part, in the order in which it may go through them."""

NO_PART: Final = "only the page shows it"
"""Why sources, data parts and unknown parts are left out of a history."""


# Field names are the protocol's.
class _VercelBody(Struct):
    messages: list[Any] | None = None
    message: Any = None
    id: str | None = None
    trigger: str | None = None
    messageId: str | None = None  # noqa: N815


class _UIMessage(Struct):
    role: str
    parts: list[Any]
    id: str = ""


class _AnyPart(Struct):
    type: str


class _TextPart(Struct):
    text: str
    citations: list[Any] | None = None
    providerMetadata: JsonObject | None = None  # noqa: N815


class _FilePart(Struct):
    url: str
    mediaType: str | None = None  # noqa: N815
    filename: str | None = None
    providerReference: JsonObject | None = None  # noqa: N815


class _SteeringPart(Struct):
    parts: list[Any]


class _VercelApproval(Struct):
    id: str
    approved: bool | None = None
    reason: str | None = None


class _ToolPart(Struct):
    toolCallId: str  # noqa: N815
    state: str
    toolName: str | None = None  # noqa: N815
    input: Any = None
    rawInput: Any = None  # noqa: N815
    output: Any = None
    errorText: str | None = None  # noqa: N815
    preliminary: bool | None = None
    providerExecuted: bool | None = None  # noqa: N815
    callProviderMetadata: JsonObject | None = None  # noqa: N815
    approval: _VercelApproval | None = None


BODY_KEYS: Final = ("messages", "message", "id", "trigger", "messageId")
"""Keys of a body that are read here; the others are the application's."""


def parse_vercel(body: JsonObject, parsed: ParsedRequest) -> None:
    """Reads a body.

    Raises:
        UIRequestError: the body is not such a request.
    """
    fields = read_struct(body, _VercelBody, "")
    messages = fields.messages
    if messages is None:
        # Pages that keep history on the server send the last message alone.
        if fields.message is None:
            raise UIRequestError("the body has no messages")
        messages = [fields.message]
    if len(messages) > parsed.context.limits.messages:
        limit = parsed.context.limits.messages
        raise UIRequestError(f"more than {limit} messages", too_large=True)
    trigger = fields.trigger or TRIGGERS[0]
    if trigger not in TRIGGERS:
        raise UIRequestError(f"trigger is one of {', '.join(TRIGGERS)}")
    parsed.chat_id = fields.id
    parsed.message_id = fields.messageId
    parsed.trigger = trigger
    parsed.extra = {key: value for key, value in body.items() if key not in BODY_KEYS}
    for index, value in enumerate(messages):
        _read_message(value, index, parsed)


def _read_message(value: Any, index: int, parsed: ParsedRequest) -> None:
    path = f"/messages/{index}"
    message = read_struct(value, _UIMessage, path)
    parsed.continues = None
    parsed.continued_calls = []
    match message.role:
        case "user":
            parsed.add_user(_user_parts(message.parts, path, parsed), path)
        case "assistant":
            parsed.continues = message.id or None
            steps = _Steps(parsed)
            for position, part in enumerate(message.parts):
                steps.read(part, f"{path}/parts/{position}")
            steps.end_step()
        case "system" if parsed.context.is_transcript:
            parts = _user_parts(message.parts, path, parsed)
            parsed.add(Message("system", tuple(parts)))
        case "system":
            raise UIRequestError(f"{path}: a page may not send instructions (role system)")
        case _:
            raise UIRequestError(f"{path}/role is one of user, assistant")


def _user_parts(values: list[Any], path: str, parsed: ParsedRequest) -> list[ContentPart]:
    """The parts of a message of the user."""
    parts: list[ContentPart] = []
    for position, value in enumerate(values):
        part_path = f"{path}/parts/{position}"
        kind = read_struct(value, _AnyPart, part_path).type
        if kind == "text":
            text = read_struct(value, _TextPart, part_path).text
            if text:
                parts.append(Text(text))
        elif kind == "file":
            file = _file(value, part_path, parsed)
            if file is not None:
                parts.append(file)
        elif kind != "step-start":
            parsed.dropped(part_path, NO_PART)
    return parts


def _file(value: Any, path: str, parsed: ParsedRequest) -> ContentPart | None:
    fields = read_struct(value, _FilePart, path)
    if fields.providerReference:
        parsed.dropped(path, PROVIDERS_FILE)
        return None
    result = file_from_url(
        fields.url, fields.mediaType, fields.filename, takes_urls=parsed.context.takes_urls
    )
    if result.part is None:
        parsed.dropped(path, result.reason)
    return result.part


def _decision(approval: _VercelApproval, call_id: str, name: str) -> ToolApproval:
    return ToolApproval(
        id=approval.id,
        call_id=call_id,
        name=name,
        approved=approval.approved is True,
        reason=approval.reason,
    )


class _Steps:
    """The parts of an assistant message, one step after the other."""

    def __init__(self, parsed: ParsedRequest) -> None:
        self._parsed = parsed
        self._items: list[ResponseItem] = []
        """Items of the step so far."""
        self._outputs: list[UIOutput] = []
        """Outputs of the step's calls, which follow all of its items."""
        self._files: dict[int, list[ContentPart]] = {}
        """Files that follow a message, by its position in the step. Joined at the step's end, as
        the next ones are: joining thousands one at a time would take minutes."""
        self._paragraphs: dict[int, list[Reasoning]] = {}
        """Further parts of one item of reasoning, by its position in the step."""
        self._paths: dict[str | None, str] = {}
        """Id of reasoning that a further part may still sign -> its JSON pointer in the body."""

    def end_step(self) -> None:
        """Ends a step: the outputs of its calls follow."""
        for position, item in enumerate(self._items):
            joined = self._joined(item, position)
            is_unsigned = isinstance(joined, Reasoning) and not opaque_state(joined)
            if is_unsigned and not self._parsed.context.is_transcript:
                self._parsed.dropped(self._paths[joined.id], UNSIGNED)
            else:
                self._parsed.add(joined)
        for output in self._outputs:
            self._parsed.add(output)
        self._items.clear()
        self._outputs.clear()
        self._files.clear()
        self._paragraphs.clear()
        self._paths.clear()

    def _joined(self, item: ResponseItem, position: int) -> ResponseItem:
        """The item at a position, joined with the parts that belong to it."""
        files = self._files.get(position)
        if files is not None and isinstance(item, Message):
            return replace(item, content=(*item.content, *files))
        paragraphs = self._paragraphs.get(position)
        if paragraphs is not None and isinstance(item, Reasoning):
            return merged_reasoning([item, *paragraphs])
        return item

    def read(self, value: Any, path: str) -> None:
        """Reads one part."""
        kind = read_struct(value, _AnyPart, path).type
        match kind:
            case "step-start":
                self.end_step()
            case "text":
                self._read_text(read_struct(value, _TextPart, path), path)
            case "reasoning":
                self._read_reasoning(read_struct(value, _TextPart, path), path)
            case "file":
                self._read_file(_file(value, path, self._parsed))
            case "steering-message":
                parts = read_struct(value, _SteeringPart, path).parts
                self.end_step()
                self._parsed.add_user(_user_parts(parts, path, self._parsed), path)
            case "dynamic-tool":
                part = read_struct(value, _ToolPart, path)
                if not part.toolName:
                    raise UIRequestError(f"{path}: a dynamic-tool has a toolName")
                self._read_tool(part, part.toolName, path)
            case _ if kind.startswith("tool-"):
                part = read_struct(value, _ToolPart, path)
                self._read_tool(part, kind.removeprefix("tool-"), path)
            case _:
                self._parsed.dropped(path, NO_PART)

    def _read_text(self, part: _TextPart, path: str) -> None:
        if part.citations:
            self._parsed.dropped(f"{path}/citations", NO_PART)
        sealed_text = sealed_state(part.providerMetadata)
        if sealed_text is not None:
            restored = self._parsed.sealed_message(
                sealed_text, part.text, f"{path}/providerMetadata"
            )
            if restored is not None:
                self._items.append(restored)
                return
        signed = self._signed(part.providerMetadata, path)
        if part.text or signed.signature:
            content = (Text(part.text),)
            agent = named_agent(part.providerMetadata)
            item = Message(
                "assistant",
                content,
                signature=signed.signature,
                origin=signed.origin,
                agent=agent,
            )
            self._items.append(item)

    def _signed(self, metadata: JsonObject | None, path: str) -> SignedPart:
        """The signature in a provider's metadata; any other metadata is reported."""
        signed = signed_state(metadata)
        others = [key for key in metadata or () if key != OWN_METADATA]
        if others and signed.signature is None:
            self._parsed.dropped(f"{path}/providerMetadata", NO_PART)
        return signed

    def _read_reasoning(self, part: _TextPart, path: str) -> None:
        sealed_text = sealed_state(part.providerMetadata)
        if sealed_text is not None:
            # The text is the sealed one: a signature is valid for no other.
            restored = self._parsed.unsealed(sealed_text, Reasoning, path)
            if restored is not None:
                self._items.append(restored)
            return
        item = signed_reasoning(part.text, part.providerMetadata)
        if item is None and self._parsed.context.is_transcript:
            self._signed(part.providerMetadata, path)  # reports state of a provider without a name
            item = Reasoning(part.text)
        if item is None:
            self._parsed.dropped(path, UNSIGNED)
            return
        agent = named_agent(part.providerMetadata)
        if agent is not None:
            item = replace(item, agent=agent)
        self._paths[item.id] = path
        last = self._items[-1] if self._items else None
        if isinstance(last, Reasoning) and item.id is not None and last.id == item.id:
            self._paragraphs.setdefault(len(self._items) - 1, []).append(item)
        else:
            self._items.append(item)

    def _read_file(self, part: ContentPart | None) -> None:
        """Adds a file to the message before it, as encoders write both."""
        if part is None:
            return
        last = self._items[-1] if self._items else None
        if isinstance(last, Message):
            self._files.setdefault(len(self._items) - 1, []).append(part)
        else:
            self._items.append(Message("assistant", (part,)))

    # --- calls ---

    def _read_tool(self, part: _ToolPart, name: str, path: str) -> None:
        parsed = self._parsed
        if part.state not in STATES:
            raise UIRequestError(f"{path}/state is one of {', '.join(STATES)}")
        if not part.toolCallId or not name:
            raise UIRequestError(f"{path}: a call has a toolCallId and a name")
        parsed.continued_calls.append(part.toolCallId)
        if part.approval is not None and part.state == "approval-responded":
            # For every tool: the server may have asked for an approval of one that a provider runs.
            parsed.approvals.append(_decision(part.approval, part.toolCallId, name))
        if not parsed.context.offered.offers(name):
            parsed.dropped(path, NOT_OFFERED)
            return
        is_complete = part.state != "input-streaming"
        if part.state == "output-error" and part.errorText == TRUNCATED_CALL:
            is_complete = False
        value = part.input
        if value is None:
            value = part.rawInput
        call = parsed.context.offered.call(
            part.toolCallId,
            name,
            value,
            is_complete=is_complete,
            provider_run=bool(part.providerExecuted),
        )
        if isinstance(call, FunctionCall) and self._has_text_input(part):
            call = CustomToolCall(call.call_id, name, call.arguments, status=call.status)
        call = self._signed_call(call, part, path)
        parsed.note_call(call)
        self._items.append(call)
        if is_complete:
            self._read_output(part, call, path)

    def _has_text_input(self, part: _ToolPart) -> bool:
        """Whether the input of a call in a transcript is text, as only free-form calls have it."""
        return self._parsed.context.is_transcript and isinstance(part.input, str)

    def _signed_call(self, call: UICall, part: _ToolPart, path: str) -> UICall:
        if isinstance(call, ServerToolCall) or not part.callProviderMetadata:
            return call
        sealed_text = sealed_state(part.callProviderMetadata)
        if sealed_text is not None:
            return self._parsed.sealed_call(sealed_text, call, f"{path}/callProviderMetadata")
        signed = self._signed(part.callProviderMetadata, path)
        agent = named_agent(part.callProviderMetadata)
        return replace(call, signature=signed.signature, origin=signed.origin, agent=agent)

    def _read_output(self, part: _ToolPart, call: UICall, path: str) -> None:
        approval = part.approval
        denied = part.state == "output-denied"
        if approval is not None and part.state == "approval-responded":
            denied = approval.approved is False
        if denied:
            reason = DENIED
            if approval is not None and approval.reason:
                reason = approval.reason
            self._add_output(call, reason, is_error=True, path=path)
        elif part.state == "output-error":
            fault: Any = part.errorText or ""
            if self._parsed.context.is_transcript:
                fault = output_value(parts_of_text(fault), f"{path}/errorText", self._parsed)
            self._add_output(call, fault, is_error=True, path=path)
        elif part.state == "output-available" and part.preliminary:
            self._parsed.dropped(f"{path}/output", "a preliminary output")
        elif part.state == "output-available":
            value = part.output
            # A provider's own result stays JSON.
            if not isinstance(call, ServerToolCall):
                value = output_value(value, f"{path}/output", self._parsed)
            self._add_output(call, value, is_error=False, path=path)

    def _add_output(self, call: UICall, value: Any, *, is_error: bool, path: str) -> None:
        output = self._parsed.output(call.call_id, value, is_error=is_error, path=path)
        if output is None:
            return
        if isinstance(output, ServerToolResult) and self._parsed.context.is_transcript:
            # The provider ran it at once: what follows may refer to the result.
            self._items.append(output)
        else:
            self._outputs.append(output)
