"""A history as the `messages` of a Chat Completions request.

Chat has one text, one thought and one list of calls a message, so what belongs to one answer is gathered (`Turn`) and written when
the answer is over; what stood after a call or between thoughts loses its place, in the report. The rules that make servers answer
400 are met by one small function each:

C1 every call is answered directly after its message      C6 a thought goes back where, and if, the provider takes it (`chat_echo`)
C2 arguments are a string, as received; "" is {}           C7 no message without content; null, "" or nothing beside calls
C3 a tool message is text: media follow in a user message  C8 user and assistant take turns, where that is asked for
C4 keys of the provider's own answers, where it takes them C9 a user message after a tool message, where that is allowed
C5 system messages at the start, where that is asked for   C10 a request that ends with an assistant message, where that is allowed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib.errors import invalid_request
from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.target import Target
from streamlib.wires.chat.build_echo import echo, filler
from streamlib.wires.chat.build_parts import text_part, wire_part
from streamlib_parsers.items import (
    Audio,
    Compaction,
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
    ServerToolCall,
    ServerToolResult,
    Text,
)

SIGNATURE: Final = "extra_content.google.thought_signature"
"""Where Gemini's compatible endpoint puts signatures, on calls and messages."""
SEPARATOR: Final = "\n\n"
ATTACHED: Final = "[see the next message]"
SYSTEM: Final = ("system", "developer")
ERROR: Final = "said in the text: Chat has no is_error"
UNORDERED: Final = (
    "Chat has one text and one thought a message: the order within the answer is lost"
)


class ChatMessage:
    """One message, the items it came from, and who says it."""

    __slots__ = ("at", "body")

    def __init__(self, body: JsonObject, *at: int) -> None:
        self.body = body
        self.at = list(at)

    @property
    def role(self) -> str:
        """user, assistant, tool, system or developer."""
        return str(self.body["role"])


def wire_messages(
    prompt: Prompt, items: list[IndexedItem], context: BuildContext
) -> list[JsonObject]:
    """The messages, every rule met."""
    conversation = Conversation(context)
    if prompt.instructions:
        conversation.sent.append(
            ChatMessage({"role": conversation.role("system"), "content": prompt.instructions})
        )
    for one in items:
        conversation.take(one)
    conversation.flush()
    sent = _at_the_start(conversation.sent, context)
    sent = _in_turns(_bridged(sent, context), context.target)
    if not any(one.role not in ("system", "developer") for one in sent):
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    _last(sent, context)
    _shaped(sent, context.target)
    _marked(sent, prompt, context)
    return [one.body for one in sent]


class Turn:
    """One assistant message while it is gathered."""

    def __init__(self, response_id: str | None) -> None:
        self.response_id = response_id
        self.at: list[int] = []
        self.parts: list[JsonObject] = []
        self.thoughts: list[IndexedItem] = []
        self.calls: list[JsonObject] = []
        self.keys: JsonObject = {}
        self.unordered = False

    def takes(self, one: IndexedItem) -> bool:
        """Whether the item belongs to this message: until its calls are answered everything does."""
        item = one.item
        if self.calls or (item.response_id is not None and item.response_id == self.response_id):
            return True
        goes_on = (
            not self.parts
            or isinstance(item, (FunctionCall, CustomToolCall))
            or (_is_thought(self.parts) and isinstance(item, Message))
        )
        return item.response_id == self.response_id and goes_on

    def said(self, one: IndexedItem) -> None:
        """Notes an item, and whether it came later than its place in the message."""
        self.at.append(one.position)
        after_text = bool(self.parts) and isinstance(one.item, Reasoning)
        self.unordered |= after_text or (
            bool(self.calls) and isinstance(one.item, (Message, Reasoning))
        )


def _is_thought(parts: list[JsonObject]) -> bool:
    """Whether what was said is a thought that came as text from another origin: it belongs to what follows."""
    text = str(parts[-1].get("text", ""))
    return text.startswith("<think>\n") and text.endswith("\n</think>")


class Conversation:
    """Takes the items in order and writes the messages."""

    def __init__(self, context: BuildContext) -> None:
        self.sent: list[ChatMessage] = []
        self._context = context
        self._shape = context.target.provider.chat
        self._turn: Turn | None = None
        self._media: list[JsonObject] = []
        self._media_at: list[int] = []
        self._calls = 0
        self._ids: dict[str, str] = {}

    def take(self, one: IndexedItem) -> None:
        """The next item."""
        TAKES[type(one.item)](self, one)

    def flush(self) -> None:
        """Writes what is gathered."""
        self._end_turn()
        if self._media:
            self.sent.append(ChatMessage({"role": "user", "content": self._media}, *self._media_at))
            self._media, self._media_at = [], []

    def role(self, role: str) -> str:
        """The role as this provider knows it."""
        knows = self._shape.developer_role and self._context.target.traits.developer_role
        known = role if role != "developer" or knows else "system"
        return self._context.target.provider.roles.get(known, known)

    # --- who is not the assistant ---

    def _message(self, one: IndexedItem) -> None:
        item: Any = one.item
        if item.role == "assistant":
            self._say(one)
            return
        self.flush()
        role = self.role(item.role)
        if role in ("system", "developer"):
            self.sent.append(ChatMessage({"role": role, "content": item.text}, one.position))
            return
        parts = [
            body
            for part in item.content
            if (body := wire_part(part, one, self._context.report)) is not None
        ]
        if parts:
            self.sent.append(
                ChatMessage({"role": role, "content": parts, **self._own(item)}, one.position)
            )
        else:
            self._context.report.dropped(one.path, "a message without content (C7)")

    def _output(self, one: IndexedItem) -> None:
        """C1, C3."""
        item: Any = one.item
        self._end_turn()
        content = item.output if isinstance(item.output, str) else self._output_parts(one)
        if item.is_error:
            self._context.report.add("changed", f"{one.path}/is_error", ERROR)
            content = (
                f"[error] {content}".strip()
                if isinstance(content, str)
                else [text_part("[error]"), *content]
            )
        call_id = self._ids.get(item.call_id, item.call_id)
        self.sent.append(
            ChatMessage(
                {"role": "tool", "tool_call_id": call_id, "content": content, **self._own(item)},
                one.position,
            )
        )

    def _output_parts(self, one: IndexedItem) -> str | list[JsonObject]:
        item: Any = one.item
        parts = [
            body
            for part in item.output
            if (body := wire_part(part, one, self._context.report)) is not None
        ]
        media = [part for part in parts if part["type"] != "text"]
        if media and self._shape.tool_parts:
            return parts
        if media:
            self._context.report.add(
                "changed",
                one.path,
                "a tool message is text: what is no text stands in the user message after it (C3)",
            )
            self._attach(f"the result of {self._ids.get(item.call_id, item.call_id)}", media, one)
        return "\n".join(part["text"] for part in parts if part["type"] == "text") or (
            ATTACHED if media else ""
        )

    def _attach(self, what: str, media: list[JsonObject], one: IndexedItem) -> None:
        self._media += [text_part(f"[attached to {what}]"), *media]
        self._media_at.append(one.position)

    def _compaction(self, one: IndexedItem) -> None:
        item: Any = one.item
        if item.content:
            self._context.report.add(
                "changed", one.path, "Chat has no compaction: sent as user text"
            )
            self.flush()
            self.sent.append(
                ChatMessage({"role": "user", "content": [text_part(item.content)]}, one.position)
            )
        else:
            self._context.report.dropped(one.path, "a sealed compaction")

    def _own(self, item: Any) -> JsonObject:
        """C4."""
        return {} if self._shape.bare_messages else item.native or {}

    # --- the assistant ---

    def _gather(self, one: IndexedItem) -> Turn:
        if self._turn is None or not self._turn.takes(one):
            self.flush()
            self._turn = Turn(one.item.response_id)
        self._turn.said(one)
        return self._turn

    def _say(self, one: IndexedItem) -> None:
        item: Any = one.item
        turn = self._gather(one)
        for part in item.content:
            SAYS[type(part)](self, part, turn, one)
        if not self._shape.bare_messages:
            rest = {key: value for key, value in (item.native or {}).items() if key != "audio"}
            turn.keys = merged(
                turn.keys, merged(rest, nested(SIGNATURE, item.signature) if item.signature else {})
            )

    def _say_text(self, part: Any, turn: Turn, one: IndexedItem) -> None:
        if part.text:
            turn.parts.append(
                text_part(
                    SEPARATOR + part.text if turn.parts and _is_thought(turn.parts) else part.text
                )
            )

    def _say_refusal(self, part: Any, turn: Turn, one: IndexedItem) -> None:
        if self._shape.bare_messages:
            self._context.report.add("changed", one.path, "a refusal, sent as text (C4)")
            turn.parts.append(text_part(part.refusal))
        else:
            turn.keys["refusal"] = turn.keys.get("refusal", "") + part.refusal

    def _say_audio(self, part: Any, turn: Turn, one: IndexedItem) -> None:
        """An answer's own audio is named by its id; any other is what is said in it."""
        if part.name and one.item.origin is not None and not self._shape.bare_messages:
            turn.keys["audio"] = {"id": part.name}
            return
        self._context.report.dropped(
            one.path,
            "Chat takes audio of an assistant by the id it had there: its transcript is sent",
        )
        if part.transcript:
            turn.parts.append(text_part(part.transcript))

    def _say_media(self, part: Any, turn: Turn, one: IndexedItem) -> None:
        body = wire_part(part, one, self._context.report)
        if body is not None:
            self._context.report.add(
                "changed",
                one.path,
                "an assistant message has no images or files: it stands in a user message after it",
            )
            self._attach("the answer above", [body], one)

    def _think(self, one: IndexedItem) -> None:
        self._gather(one).thoughts.append(one)

    def _call(self, one: IndexedItem) -> None:
        """C2, C4."""
        item: Any = one.item
        native: JsonObject = {} if self._shape.bare_messages else item.native or {}
        function = {
            "name": item.name,
            "arguments": item.arguments or "{}",
            **native.get("function", {}),
        }
        entry = {"id": self._call_id(one), "type": "function", **native, "function": function}
        if item.signature and not self._shape.bare_messages:
            entry = merged(entry, nested(SIGNATURE, item.signature))
        self._gather(one).calls.append(entry)

    def _custom_call(self, one: IndexedItem) -> None:
        item: Any = one.item
        if self._shape.custom_tools:
            entry = {
                "id": self._call_id(one),
                "type": "custom",
                "custom": {"name": item.name, "input": item.input},
            }
        else:
            self._context.report.add("changed", one.path, 'a free-form call, sent as {"input": …}')
            entry = function_call(self._call_id(one), item.name, item.input)
        self._gather(one).calls.append(entry)

    def _call_id(self, one: IndexedItem) -> str:
        """The id, in the form the model was trained on where it has one."""
        item: Any = one.item
        formed = (
            self._shape.call_id.format(name=item.name, n=self._calls)
            if self._shape.call_id
            else item.call_id
        )
        self._calls += 1
        self._ids[item.call_id] = formed
        if formed != item.call_id:
            self._context.report.add(
                "renamed",
                f"{one.path}/call_id",
                f"{self._context.target.provider.name} numbers its calls itself: {formed}",
            )
        return str(formed)

    def _opaque(self, one: IndexedItem) -> None:
        item: Any = one.item
        if self._shape.bare_messages or {"id", "index", "function"} & item.payload.keys():
            self._context.report.dropped(one.path, f"{item.kind} cannot be sent back")
        else:
            self._gather(one).parts.append(item.payload)

    def _server_tool(self, one: IndexedItem) -> None:
        self._context.report.dropped(
            one.path, "a tool that the provider ran has no place in a Chat request"
        )

    # --- the end of a message ---

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        echoed = echo(turn.thoughts, self._context, has_calls=bool(turn.calls))
        parts = [*echoed.parts, *([text_part(echoed.tags)] if echoed.tags else []), *turn.parts]
        body: JsonObject = {"role": "assistant", "content": parts, **turn.keys, **echoed.keys}
        if turn.calls:
            body["tool_calls"] = turn.calls
        if not (parts or body.keys() - {"role", "content"}):
            self._context.report.dropped(
                f"/input/{turn.at[0]}", "an assistant message without content (C7)"
            )
            return
        if turn.unordered:
            self._context.report.add("changed", f"/input/{turn.at[0]}", UNORDERED)
        body.update(filler(body, self._context, turn.at[0]))
        self.sent.append(ChatMessage(body, *turn.at))


def function_call(call_id: str, name: str, text: str) -> JsonObject:
    """A free-form call for those that only know functions."""
    said = msgspec.json.encode({"input": text.encode("utf-8", "replace").decode()})
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": said.decode()},
    }


TAKES: Final[dict[type, Callable[[Conversation, IndexedItem], None]]] = {
    Message: Conversation._message,
    Reasoning: Conversation._think,
    FunctionCall: Conversation._call,
    FunctionCallOutput: Conversation._output,
    CustomToolCall: Conversation._custom_call,
    CustomToolCallOutput: Conversation._output,
    ServerToolCall: Conversation._server_tool,
    ServerToolResult: Conversation._server_tool,
    Compaction: Conversation._compaction,
    Opaque: Conversation._opaque,
}
SAYS: Final[dict[type, Callable[[Conversation, Any, Turn, IndexedItem], None]]] = {
    Text: Conversation._say_text,
    Refusal: Conversation._say_refusal,
    Audio: Conversation._say_audio,
    Image: Conversation._say_media,
    Document: Conversation._say_media,
}


# --- rules about the whole ---


def _at_the_start(sent: list[ChatMessage], context: BuildContext) -> list[ChatMessage]:
    """C5: one system message, and none later."""
    if context.target.provider.chat.inner_system:
        return sent
    head = next((n for n, one in enumerate(sent) if one.role not in SYSTEM), len(sent))
    text = SEPARATOR.join(str(one.body["content"]) for one in sent[:head])
    out = (
        [
            ChatMessage(
                {**sent[0].body, "content": text}, *(at for one in sent[:head] for at in one.at)
            )
        ]
        if head
        else []
    )
    for one in sent[head:]:
        if one.role in SYSTEM:
            context.report.add(
                "changed",
                f"/input/{one.at[0]}",
                f"{context.target.provider.name} takes system messages at the start only: user text (C5)",
            )
            one.body = {
                "role": "user",
                "content": [text_part(f"<system>\n{one.body['content']}\n</system>")],
            }
        out.append(one)
    return out


def _bridged(sent: list[ChatMessage], context: BuildContext) -> list[ChatMessage]:
    """C9."""
    if context.target.provider.chat.tool_then_user:
        return sent
    out: list[ChatMessage] = []
    for one in sent:
        if out and out[-1].role == "tool" and one.role == "user":
            context.report.add(
                "generated",
                f"/input/{one.at[0]}",
                "an assistant message stands between tool and user (C9)",
            )
            out.append(ChatMessage({"role": "assistant", "content": [text_part("OK.")]}, one.at[0]))
        out.append(one)
    return out


def _in_turns(sent: list[ChatMessage], where: Target) -> list[ChatMessage]:
    """C8: neighbours of one role are joined; earlier parts stay as they were."""
    if not where.provider.chat.alternate:
        return sent
    out: list[ChatMessage] = []
    for one in sent:
        last = out[-1] if out else None
        if (
            last
            and last.role == one.role in ("user", "assistant")
            and "tool_calls" not in last.body
        ):
            between = [text_part(SEPARATOR)] if one.role == "assistant" else []
            last.body = {
                **last.body,
                **one.body,
                "content": [*last.body["content"], *between, *one.body["content"]],
            }
            last.at += one.at
        else:
            out.append(one)
    return out


def _last(sent: list[ChatMessage], context: BuildContext) -> None:
    """C10."""
    if sent[-1].role != "assistant":
        return
    if context.target.provider.chat.prefill:
        sent[-1].body[context.target.provider.chat.prefill] = True
    elif not context.target.traits.prefill:
        context.report.add(
            "generated",
            "/input",
            f"{context.target.model} wants a user message last: 'Continue.' added (C10)",
        )
        sent.append(ChatMessage({"role": "user", "content": [text_part("Continue.")]}))


def _shaped(sent: list[ChatMessage], where: Target) -> None:
    """Content as a string or as parts, whichever is taken; C7."""
    shape = where.provider.chat
    for one in sent:
        content = one.body.get("content")
        if isinstance(content, list):
            content = _joined(content, shape.content, is_answer=one.role == "assistant")
        if isinstance(content, str) and shape.content == "parts" and content:
            content = [text_part(content)]
        one.body["content"] = content
        if (
            not content
            and one.role == "assistant"
            and one.body.keys() & {"tool_calls", "refusal", "audio"}
        ):
            one.body["content"] = "" if shape.assistant_content == "empty" else None
            if shape.assistant_content == "omit":
                del one.body["content"]


def _joined(parts: list[JsonObject], form: str, *, is_answer: bool) -> str | list[JsonObject]:
    """Text as a string where it may be one: an answer's text is always one, a caller's parts stay apart."""
    plain = all(part.keys() == {"type", "text"} for part in parts)
    if plain and (is_answer or form == "string" or (len(parts) == 1 and form == "auto")):
        return ("" if is_answer else SEPARATOR).join(part["text"] for part in parts)
    return parts


def _marked(sent: list[ChatMessage], prompt: Prompt, context: BuildContext) -> None:
    """Cache markers on the last part of an item's message, at most four."""
    options = prompt.cache
    if not isinstance(options, CacheOptions) or not options.breakpoints:
        return
    if not context.target.provider.chat.cache_control:
        context.report.dropped(
            "/cache/breakpoints",
            f"{context.target.provider.name} takes no cache markers: it caches by itself, or not at all",
        )
        return
    marker = {"type": "ephemeral", **({"ttl": options.ttl} if options.ttl else {})}
    for at in sorted(options.breakpoints)[-4:]:
        found = next(
            (one for one in reversed(sent) if at in one.at and one.body.get("content")), None
        )
        if found is None:
            context.report.dropped(
                f"/cache/breakpoints/{at}", "the item has no content that can carry a marker"
            )
            continue
        content = found.body["content"]
        parts = [text_part(content)] if isinstance(content, str) else list(content)
        found.body["content"] = [*parts[:-1], {**parts[-1], "cache_control": marker}]
