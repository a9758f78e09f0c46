"""Builds the `messages` of a Chat Completions request from a history.

A Chat message has one text, one reasoning text and one list of calls, so the items of one response
are gathered (`AssistantMessage`) and written when the response is over. What was after a call or
between reasoning loses its position; the report says so. Each rule that servers enforce with a 400
is met by one small function:

C1 the result of every call directly after the message with the calls
C2 arguments are a string, as received; "" is {}
C3 a tool message is text: media follow in a user message
C4 keys of the provider's own responses, if it takes them
C5 system messages at the start, if the provider requires it
C6 reasoning goes back where, and if, the provider takes it (`build_echo`)
C7 no message without content; null, "" or nothing beside calls
C8 user and assistant alternate, if the provider requires it
C9 a user message after a tool message, if that is allowed
C10 a request that ends with an assistant message, if that is allowed

C5 and C8 to C10 concern the complete list: see `build_message_rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged, nested, without_keys
from streamlib.request.origins import same_origin
from streamlib.request.prompt import Prompt
from streamlib.request.target import BuildContext
from streamlib.wires.chat.build_echo import IndexedReasoning, echo, filler
from streamlib.wires.chat.build_message_rules import (
    SEPARATOR,
    ChatMessage,
    bridge_tool_to_user,
    end_with_user,
    join_same_roles,
    mark_cache,
    shape_content,
    system_first,
)
from streamlib.wires.chat.build_parts import is_list, text_part, wire_part
from streamlib_parsers.items import (
    Audio,
    Compaction,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.notes import EMPTY, split_note
from streamlib_parsers.stream_error import invalid_request
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    REASONING_KEYS,
)

SIGNATURE: Final = "extra_content.google.thought_signature"
"""Field of signatures at Gemini's compatible endpoint, on calls and messages."""

REASONING_FIELDS: Final = (*REASONING_KEYS, *REASONING_DETAIL_KEYS, OPAQUE_REASONING_KEY)
"""Every field of reasoning that some server has."""

ATTACHED: Final = "[see the next message]"
"""Text of a result that consists of media only."""

ERROR: Final = "stated in the text: Chat has no is_error"
UNORDERED: Final = (
    "a Chat message has one text and one reasoning: the order within the response is lost"
)


def wire_messages(
    prompt: Prompt, items: list[IndexedItem], context: BuildContext
) -> list[JsonObject]:
    """Builds the messages.

    Args:
        prompt: its instructions and cache options are read.
        items: the repaired and downgraded history.
        context: the target and the report.

    Returns:
        The wire's objects, with every rule met.

    Raises:
        StreamError: `invalid_request` if no message would be sent.
    """
    conversation = Conversation(context)
    if prompt.instructions:
        conversation.add_instructions(prompt.instructions)
    for entry in items:
        conversation.take(entry)
    conversation.flush()
    # The order matters: a bridge (C9) must be there before neighbours are joined (C8).
    messages = system_first(conversation.messages, context)
    messages = bridge_tool_to_user(messages, context)
    messages = join_same_roles(messages, context.target)
    if not messages:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    end_with_user(messages, context)
    shape_content(messages, context.target)
    mark_cache(messages, prompt, context)
    return [message.body for message in messages]


class AssistantMessage:
    """One assistant message while its items are gathered."""

    def __init__(self, response_id: str | None) -> None:
        self.response_id = response_id
        """Id of the response that the items are from, None if unknown."""
        self.positions: list[int] = []
        """Positions of the gathered items in the prompt's input."""
        self.parts: list[JsonObject] = []
        """Content parts so far."""
        self.reasoning: list[IndexedReasoning] = []
        """Reasoning so far; converted at the end, when it is known whether there are calls."""
        self.calls: list[JsonObject] = []
        """`tool_calls` so far. Once there is one, every item until its result belongs here."""
        self.keys: JsonObject = {}
        """Further keys of the message (`refusal`, `audio`, keys of the provider's own)."""
        self.keeps_parts = False
        """Whether the parts are from a request, where they were a list."""
        self.empty: JsonObject = {}
        """Keys of the message that were empty, and not null."""
        self.unordered = False
        """Whether an item had a position that this wire cannot express."""

    def accepts(self, item: ResponseItem) -> bool:
        """Whether the item belongs to this message."""
        if self.calls:
            # Nothing may be between calls and their results (C1).
            return True
        if item.response_id != self.response_id:
            return False
        if item.response_id is not None:
            return True
        # Responses are unknown: text ends a message, unless it is reasoning for what follows.
        if not self.parts or isinstance(item, (FunctionCall, CustomToolCall)):
            return True
        return isinstance(item, Message) and ends_with_reasoning(self.parts)

    def add(self, entry: IndexedItem) -> None:
        """Records an item, and whether its kind should have come earlier in the message."""
        self.positions.append(entry.position)
        item = entry.item
        # The wire's order is: reasoning, text, calls.
        if self.parts and isinstance(item, Reasoning):
            self.unordered = True
        if self.calls and isinstance(item, (Message, Reasoning)):
            self.unordered = True


def ends_with_reasoning(parts: list[JsonObject]) -> bool:
    """Whether the last part is reasoning of another origin, which was downgraded to text."""
    text = str(parts[-1].get("text", ""))
    return text.startswith("<think>\n") and text.endswith("\n</think>")


class Conversation:
    """Takes the items in order and writes the messages.

    Args:
        context: the target and the report.
        is_sent: whether a server reads them: it refuses what a list that is kept may have.
    """

    def __init__(self, context: BuildContext, *, is_sent: bool = True) -> None:
        self._is_sent = is_sent
        self.messages: list[ChatMessage] = []
        """The messages written so far."""
        self._context = context
        self._report = context.report
        self._shape = context.target.provider.chat
        self._assistant: AssistantMessage | None = None
        """The assistant message being gathered, None between them."""
        self._media: list[JsonObject] = []
        """Media that a tool or assistant message cannot hold; sent in the next user message."""
        self._media_positions: list[int] = []
        """Items that `_media` came from."""
        self._call_count = 0
        """Number of calls so far; it is part of ids that the provider forms itself."""
        self._wire_ids: dict[str, str] = {}
        """Call id of the history -> id that is sent with the call and its result."""

    def add_instructions(self, text: str) -> None:
        """Writes the prompt's instructions as the first message."""
        self.messages.append(ChatMessage({"role": self._role("system"), "content": text}))

    def take(self, entry: IndexedItem) -> None:
        """Converts the next item."""
        match entry.item:
            case Message() as item:
                self._message(item, entry)
            case FunctionCall() as item:
                self._call(item, entry)
            case FunctionCallOutput() | CustomToolCallOutput() as item:
                self._output(item, entry)
            case Reasoning() as item:
                self._gather(entry).reasoning.append(IndexedReasoning(item, entry.path))
            case CustomToolCall() as item:
                self._custom_call(item, entry)
            case ServerToolCall() | ServerToolResult():
                self._report.dropped(
                    entry.path, "a tool that the provider ran has no place in a Chat request"
                )
            case Compaction() as item:
                self._compaction(item, entry)
            case Opaque() as item:
                self._opaque(item, entry)
            case _ as item:
                raise TypeError(f"{type(item).__name__} must be converted to text first")

    def flush(self) -> None:
        """Writes what is gathered and buffered."""
        self._end_assistant()
        if self._media:
            message = ChatMessage({"role": "user", "content": self._media}, *self._media_positions)
            self.messages.append(message)
            self._media, self._media_positions = [], []

    # --- messages that are not the assistant's ---

    def _role(self, role: str) -> str:
        """The role as this provider knows it."""
        target = self._context.target
        has_developer = self._shape.developer_role and target.traits.developer_role
        if role == "developer" and not has_developer:
            role = "system"
        return target.provider.roles.get(role, role)

    def _message(self, item: Message, entry: IndexedItem) -> None:
        if item.role == "assistant":
            self._assistant_message(item, entry)
            return
        self.flush()
        parts = self._wire_parts(item.content, entry)
        if not parts:
            self._report.dropped_message(entry.path)
            return
        body = {"role": self._role(item.role), "content": parts, **self._caller_keys(item, entry)}
        self.messages.append(ChatMessage(body, entry.position))

    def _output(self, item: FunctionCallOutput | CustomToolCallOutput, entry: IndexedItem) -> None:
        """C1, C3: the result of a call."""
        # Not `flush`: media of earlier results wait until the last result is written.
        self._end_assistant()
        call_id = self._wire_ids.get(item.call_id, item.call_id)
        content: str | list[JsonObject]
        if isinstance(item.output, str):
            content = item.output
        else:
            content = self._output_content(item, item.output, call_id, entry)
        if item.is_error:
            self._report.add("changed", f"{entry.path}/is_error", ERROR)
            if isinstance(content, str):
                content = f"[error] {content}".strip()
            else:
                content = [text_part("[error]"), *content]
        body = {"role": "tool", "tool_call_id": call_id, "content": content}
        body.update(self._caller_keys(item, entry))
        self.messages.append(ChatMessage(body, entry.position))

    def _output_content(
        self,
        item: FunctionCallOutput | CustomToolCallOutput,
        output: Sequence[ContentPart],
        call_id: str,
        entry: IndexedItem,
    ) -> str | list[JsonObject]:
        parts = self._wire_parts(output, entry)
        media = [part for part in parts if part["type"] != "text"]
        if media and self._shape.tool_parts:
            return parts
        if not media and self._keeps_parts(item, output):
            return parts
        # Without media every server takes one string, so parts are only sent where they must be.
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        if not media:
            return text
        self._report.add(
            "changed",
            entry.path,
            "a tool message is text: other parts are sent in a user message after it",
        )
        self._attach(f"the result of {call_id}", media, entry)
        return text or ATTACHED

    def _attach(self, source: str, media: list[JsonObject], entry: IndexedItem) -> None:
        """Buffers media for the next user message, under a line that names their source."""
        self._media.append(text_part(f"[attached to {source}]"))
        self._media.extend(media)
        self._media_positions.append(entry.position)

    def _compaction(self, item: Compaction, entry: IndexedItem) -> None:
        if not item.content:
            self._report.dropped(entry.path, "an encrypted compaction")
            return
        self._report.add("changed", entry.path, "Chat has no compaction: sent as user text")
        self.flush()
        body = {"role": "user", "content": [text_part(item.content)]}
        self.messages.append(ChatMessage(body, entry.position))

    def _wire_parts(self, content: Sequence[ContentPart], entry: IndexedItem) -> list[JsonObject]:
        parts: list[JsonObject] = []
        for part in content:
            body = self._wire_part(part, entry)
            if body is not None:
                parts.append(body)
        return parts

    def _wire_part(self, part: ContentPart, entry: IndexedItem) -> JsonObject | None:
        return wire_part(part, entry, self._report, document_urls=self._shape.document_urls)

    def _keeps_parts(self, item: ResponseItem, parts: Sequence[ContentPart]) -> bool:
        """Whether texts stay separate: only those that Chat had as a list; others are joined."""
        is_from_chat = item.origin is not None and item.origin.wire_api == "chat"
        return is_from_chat and self._shape.content != "string" and is_list(parts)

    def _caller_keys(self, item: ResponseItem, entry: IndexedItem) -> JsonObject:
        """Further keys of a message that the caller wrote (`name`)."""
        keys = self._own_keys(item)
        if item.native and not keys:
            names = ", ".join(sorted(item.native))
            reason = f"{self._context.target.provider.name} takes no further keys: {names}"
            self._report.dropped(entry.path, reason)
        return keys

    def _own_keys(self, item: ResponseItem) -> JsonObject:
        """C4: the keys that the provider's own response had, if it takes them back."""
        if self._shape.bare_messages or item.native is None:
            return {}
        return item.native

    def _assistant_keys(self, item: ResponseItem, entry: IndexedItem) -> JsonObject:
        """Further keys of an assistant's message, or of a call in it, which is gathered.

        Those of a response are the provider's, and not missed where it takes none back: only those
        that a caller wrote are reported.
        """
        if item.origin is None or item.origin.provider is not None:
            return self._own_keys(item)
        native, empty = split_note(item.native, EMPTY)
        if self._assistant is not None:
            self._assistant.empty |= empty
        return self._caller_keys(replace(item, native=native or None), entry)

    # --- the assistant's messages ---

    def _gather(self, entry: IndexedItem) -> AssistantMessage:
        """The message that the item belongs to; begins a new one if needed."""
        if self._assistant is None or not self._assistant.accepts(entry.item):
            # Buffered media of a result must be sent before the next assistant message.
            self.flush()
            self._assistant = AssistantMessage(entry.item.response_id)
        self._assistant.add(entry)
        return self._assistant

    def _assistant_message(self, item: Message, entry: IndexedItem) -> None:
        assistant = self._gather(entry)
        is_text = all(isinstance(part, (Text, Refusal)) for part in item.content)
        if is_text and self._keeps_parts(item, item.content) and not self._shape.bare_messages:
            assistant.keeps_parts = True
            assistant.parts += self._wire_parts(item.content, entry)
        else:
            self._assistant_parts(item, assistant, entry)
        own_keys = self._assistant_keys(item, entry)
        if self._shape.bare_messages:
            return
        # The part's own `audio` key was written by `_audio`, in the form of a request.
        keys = {key: value for key, value in own_keys.items() if key != "audio"}
        if item.signature:
            keys = merged(keys, nested(SIGNATURE, item.signature))
        assistant.keys = merged(assistant.keys, keys)

    def _assistant_parts(
        self, item: Message, assistant: AssistantMessage, entry: IndexedItem
    ) -> None:
        for part in item.content:
            match part:
                case Text():
                    self._text(part, assistant)
                case Refusal():
                    self._refusal(part, assistant, entry)
                case Audio():
                    self._audio(part, assistant, entry)
                case Image() | Document():
                    self._media_part(part, entry)

    def _text(self, part: Text, assistant: AssistantMessage) -> None:
        text = part.text
        if not text:
            return
        if assistant.parts and ends_with_reasoning(assistant.parts):
            # The parts become one string: the text must not be beside `</think>`.
            text = SEPARATOR + text
        assistant.parts.append(text_part(text))

    def _refusal(self, part: Refusal, assistant: AssistantMessage, entry: IndexedItem) -> None:
        if self._shape.bare_messages:
            self._report.add("changed", entry.path, "a refusal, sent as text")
            assistant.parts.append(text_part(part.refusal))
            return
        if "refusal" in assistant.keys:
            self._report.add("changed", entry.path, "a Chat message has one refusal: joined")
        assistant.keys["refusal"] = assistant.keys.get("refusal", "") + part.refusal

    def _audio(self, part: Audio, assistant: AssistantMessage, entry: IndexedItem) -> None:
        """A response's own audio is named by its id; any other is sent as its transcript."""
        # Without an origin it is a caller's file, whose name is not such an id; another origin's
        # id is unknown here, and the provider refuses it.
        origin = entry.item.origin
        is_own = origin is not None and same_origin(origin, self._context.target.origin)
        if part.name and is_own and not self._shape.bare_messages:
            assistant.keys["audio"] = {"id": part.name}
            further = (entry.item.native or {}).get("audio") or {}
            assistant.keys["audio"] |= without_keys(further, "expires_at")  # of responses only
            return
        self._report.dropped(
            entry.path,
            "Chat takes audio of an assistant by the id it had there: its transcript is sent",
        )
        if part.transcript:
            assistant.parts.append(text_part(part.transcript))

    def _media_part(self, part: Image | Document, entry: IndexedItem) -> None:
        body = self._wire_part(part, entry)
        if body is None:
            return
        if body["type"] == "document_url":
            self._gather(entry).parts.append(body)
            return
        self._report.add(
            "changed",
            entry.path,
            "an assistant message has no images or files: sent in a user message after it",
        )
        self._attach("the answer above", [body], entry)

    def _call(self, item: FunctionCall, entry: IndexedItem) -> None:
        """C2, C4: a function call."""
        assistant = self._gather(entry)
        native = self._assistant_keys(item, entry)
        arguments = item.arguments
        if not arguments and self._is_sent:
            # Servers refuse "" although providers stream it for a call without arguments (C2).
            arguments = "{}"
        function = {"name": item.name, "arguments": arguments, **native.get("function", {})}
        call = {"id": self._wire_id(item, entry), "type": "function", **native}
        call["function"] = function
        if item.signature and not self._shape.bare_messages:
            call = merged(call, nested(SIGNATURE, item.signature))
        assistant.calls.append(call)

    def _custom_call(self, item: CustomToolCall, entry: IndexedItem) -> None:
        assistant = self._gather(entry)
        if self._shape.custom_tools:
            custom = {"name": item.name, "input": item.input}
            call = {"id": self._wire_id(item, entry), "type": "custom", "custom": custom}
            call = merged(call, self._assistant_keys(item, entry))
        else:
            self._report.add("changed", entry.path, 'a free-form call, sent as {"input": …}')
            call = free_form_as_function(self._wire_id(item, entry), item.name, item.input)
        assistant.calls.append(call)

    def _wire_id(self, item: FunctionCall | CustomToolCall, entry: IndexedItem) -> str:
        """The call's id, in the form that the model was trained on if it has one."""
        wire_id = item.call_id
        if self._shape.call_id:
            wire_id = self._shape.call_id.format(name=item.name, n=self._call_count)
        self._call_count += 1
        self._wire_ids[item.call_id] = wire_id
        if wire_id != item.call_id:
            self._report.add(
                "renamed",
                f"{entry.path}/call_id",
                f"{self._context.target.provider.name} numbers its calls itself: {wire_id}",
            )
        return wire_id

    def _opaque(self, item: Opaque, entry: IndexedItem) -> None:
        # An unknown kind of call (`id`, `index`, `function`) is not a content part.
        is_call = {"id", "index", "function"} & item.payload.keys()
        if self._shape.bare_messages or is_call:
            self._report.dropped(entry.path, f"{item.kind} cannot be sent back")
            return
        self._gather(entry).parts.append(item.payload)

    def _end_assistant(self) -> None:
        """Writes the assistant message that is being gathered."""
        assistant = self._assistant
        self._assistant = None
        if assistant is None:
            return
        echoed = echo(assistant.reasoning, self._context, has_calls=bool(assistant.calls))
        parts = list(echoed.parts)
        if echoed.tags:
            parts.append(text_part(echoed.tags))
        parts.extend(assistant.parts)
        body: JsonObject = {"role": "assistant", "content": parts}
        body.update(assistant.keys)
        body.update(echoed.keys)
        self._restore_empty(assistant, body)
        if assistant.calls:
            body["tool_calls"] = assistant.calls
        position = assistant.positions[0]
        if not parts and body.keys() <= {"role", "content", "name"}:
            self._report.dropped(f"/input/{position}", "an assistant message without content")
            return
        if assistant.unordered:
            self._report.add("changed", f"/input/{position}", UNORDERED)
        body.update(filler(body, self._context, position))
        message = ChatMessage(body, *assistant.positions)
        message.keeps_parts = assistant.keeps_parts
        message.has_empty_text = "content" in assistant.empty
        self.messages.append(message)

    def _restore_empty(self, assistant: AssistantMessage, body: JsonObject) -> None:
        """Writes the keys that were empty, where the provider takes them so."""
        taken = self._shape.reasoning_echo
        if not self._shape.bare_messages:
            taken += ("refusal",)
        path = f"/input/{assistant.positions[0]}"
        for key, value in assistant.empty.items():
            if key in taken:
                body.setdefault(key, value)
            elif key == "content" and value == []:
                self._report.add("changed", path, "content without a text is no list")
            elif key not in body and key not in REASONING_FIELDS:
                reason = f"{self._context.target.provider.name} takes no empty {key}"
                self._report.dropped(path, reason)


def free_form_as_function(call_id: str, name: str, text: str) -> JsonObject:
    """A free-form call for a provider that only knows functions."""
    # Lone surrogates cannot be encoded as JSON in UTF-8.
    arguments = msgspec.json.encode({"input": text.encode("utf-8", "replace").decode()})
    function = {"name": name, "arguments": arguments.decode()}
    return {"id": call_id, "type": "function", "function": function}
