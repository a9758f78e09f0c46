"""Rules of Chat Completions for the complete list of messages: the last step of `build_messages`.

Rules have the numbers of the table in `build_messages`.
"""

from __future__ import annotations

from typing import Final

from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.target import BuildContext, Target
from streamlib.wires.cache_marks import BREAKPOINT, marked, why_no_breakpoints
from streamlib.wires.chat.build_parts import text_part
from streamlib_parsers.items import JsonObject

SEPARATOR: Final = "\n\n"
"""Separates texts that are joined into one."""

SYSTEM_ROLES: Final = ("system", "developer")

MAX_CACHE_MARKERS: Final = 4
"""Cache markers that a request may have."""


OPENAI_LIFETIME: Final = "30m"
"""The only lifetime of OpenAI's breakpoints in Chat (Python SDK 3.54)."""


class ChatMessage:
    """One message, and the items it was made from."""

    __slots__ = ("body", "has_empty_text", "keeps_parts", "positions")

    def __init__(self, body: JsonObject, *positions: int) -> None:
        self.body = body
        """The wire's object; the rules below change it in place."""
        self.positions = list(positions)
        """Positions of its items in the prompt's input; none for what the builder added itself."""
        self.keeps_parts = False
        """Whether the texts of an assistant message stay apart."""
        self.has_empty_text = False
        """Whether the text of an assistant message beside calls was empty, and not null."""

    @property
    def role(self) -> str:
        """`user`, `assistant`, `tool`, `system` or `developer`."""
        return str(self.body["role"])


def system_first(messages: list[ChatMessage], context: BuildContext) -> list[ChatMessage]:
    """C5: one system message at the start, and none later, if the provider asks for it."""
    provider = context.target.provider
    if provider.chat.inner_system:
        return messages
    # `instructions` and the system messages of the history become one.
    leading: list[ChatMessage] = []
    for message in messages:
        if message.role not in SYSTEM_ROLES:
            break
        leading.append(message)
    result: list[ChatMessage] = []
    if leading:
        text = SEPARATOR.join(_text_of(message) for message in leading)
        joined = ChatMessage({**leading[0].body, "content": text})
        for message in leading:
            joined.positions += message.positions
        result.append(joined)
    for message in messages[len(leading) :]:
        if message.role in SYSTEM_ROLES:
            context.report.add(
                "changed",
                f"/input/{message.positions[0]}",
                f"{provider.name} takes system messages at the start only: user text",
            )
            text = f"<system>\n{_text_of(message)}\n</system>"
            message.body = {"role": "user", "content": [text_part(text)]}
        result.append(message)
    return result


def _text_of(message: ChatMessage) -> str:
    content = message.body["content"]
    if isinstance(content, str):
        return content
    return SEPARATOR.join(str(part.get("text", "")) for part in content)


def bridge_tool_to_user(messages: list[ChatMessage], context: BuildContext) -> list[ChatMessage]:
    """C9: an assistant message between tool and user, if the provider asks for it."""
    if context.target.provider.chat.tool_then_user:
        return messages
    result: list[ChatMessage] = []
    for message in messages:
        if result and result[-1].role == "tool" and message.role == "user":
            position = message.positions[0]
            context.report.add(
                "generated",
                f"/input/{position}",
                "an assistant message is added between tool and user",
            )
            bridge = {"role": "assistant", "content": [text_part("OK.")]}
            result.append(ChatMessage(bridge, position))
        result.append(message)
    return result


def join_same_roles(messages: list[ChatMessage], target: Target) -> list[ChatMessage]:
    """C8: joins neighbours of one role, if roles must alternate; parts stay in order."""
    if not target.provider.chat.alternate:
        return messages
    result: list[ChatMessage] = []
    for message in messages:
        if not result or not _can_join(result[-1], message):
            result.append(message)
            continue
        previous = result[-1]
        content = list(previous.body["content"])
        if message.role == "assistant":
            # An assistant message becomes one string: without this the texts would run together.
            content.append(text_part(SEPARATOR))
        content.extend(message.body["content"])
        previous.body = {**previous.body, **message.body, "content": content}
        previous.positions += message.positions
    return result


def _can_join(previous: ChatMessage, message: ChatMessage) -> bool:
    if previous.role != message.role or message.role not in ("user", "assistant"):
        return False
    return "tool_calls" not in previous.body


def end_with_user(messages: list[ChatMessage], context: BuildContext) -> None:
    """C10: marks an assistant message at the end as a prefill, or adds a user message after it."""
    target = context.target
    last = messages[-1]
    if last.role != "assistant":
        return
    shape = target.provider.chat
    if shape.prefill:
        # Mistral: `"prefix": true` makes the model continue the message.
        last.body[shape.prefill] = True
    elif shape.prefill is None or not target.traits.prefill:
        context.report.add(
            "generated",
            "/input",
            f"{target.model} wants a user message last: 'Continue.' added",
        )
        messages.append(ChatMessage({"role": "user", "content": [text_part("Continue.")]}))


def shape_content(messages: list[ChatMessage], target: Target) -> None:
    """Writes content as a string or as parts, whichever the provider takes."""  # rule C7
    shape = target.provider.chat
    for message in messages:
        is_assistant = message.role == "assistant"
        content = message.body.get("content")
        if isinstance(content, list):
            is_one_text = is_assistant and not message.keeps_parts
            content = _joined(content, shape.content, is_one_text=is_one_text)
        if isinstance(content, str) and content and shape.content == "parts":
            content = [text_part(content)]
        message.body["content"] = content
        can_lack_content = message.body.keys() & {"tool_calls", "refusal", "audio"}
        if content or not is_assistant or not can_lack_content:
            continue
        if shape.assistant_content == "omit":
            del message.body["content"]
        elif shape.assistant_content == "empty" or message.has_empty_text:
            message.body["content"] = ""
        else:
            message.body["content"] = None


def _joined(
    parts: list[JsonObject], content_form: str, *, is_one_text: bool
) -> str | list[JsonObject]:
    """The parts as one string where it may be one.

    The text of a response always was one string. A caller's parts stay apart unless the provider
    takes strings only.
    """
    # A part with further keys (`cache_control` of the caller) cannot be a string.
    if any(part.keys() != {"type", "text"} for part in parts):
        return parts
    if is_one_text:
        return "".join(part["text"] for part in parts)
    if content_form == "string" or (content_form == "auto" and len(parts) == 1):
        return SEPARATOR.join(part["text"] for part in parts)
    return parts


def mark_cache(messages: list[ChatMessage], prompt: Prompt, context: BuildContext) -> None:
    """Sets cache markers on the last part of the messages named by `CacheOptions.breakpoints`."""
    options = prompt.cache
    if not isinstance(options, CacheOptions):
        return
    provider, report = context.target.provider, context.report
    has_breakpoints = why_no_breakpoints(context.target) is None
    if options.ttl is not None and has_breakpoints and options.ttl != OPENAI_LIFETIME:
        report.add("changed", "/cache/ttl", f"Chat keeps prefixes {OPENAI_LIFETIME}")
    if options.lifetimes and has_breakpoints:
        report.dropped("/cache/lifetimes", f"Chat keeps prefixes {OPENAI_LIFETIME}")
    if not options.breakpoints:
        if options.ttl is not None and not has_breakpoints:
            report.dropped(
                "/cache/ttl", "Chat sets a lifetime on cache markers only, and there are none"
            )
        return
    if not provider.chat.cache_control and not has_breakpoints:
        report.dropped(
            "/cache/breakpoints",
            f"{provider.name} takes no cache markers: it caches by itself, or not at all",
        )
        return
    # The last markers cover the most tokens.
    for position in sorted(options.breakpoints)[-MAX_CACHE_MARKERS:]:
        message = _last_with_content(messages, position)
        if message is None:
            report.dropped(
                f"/cache/breakpoints/{position}", "the item has no content that can carry a marker"
            )
            continue
        content = message.body["content"]
        parts = [text_part(content)] if isinstance(content, str) else list(content)
        if has_breakpoints:
            parts[-1] = {**parts[-1], BREAKPOINT: {"mode": "explicit"}}
        else:
            parts[-1] = marked(parts[-1], options.lifetime(position))
        message.body["content"] = parts


def _last_with_content(messages: list[ChatMessage], position: int) -> ChatMessage | None:
    """The last message made from the item at `position`, if it has content."""
    for message in reversed(messages):
        if position in message.positions and message.body.get("content"):
            return message
    return None
