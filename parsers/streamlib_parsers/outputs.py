"""The structured output of a response: which of its texts it is, and whether there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamlib_parsers.items import FunctionCall, Message, PendingCall, ResponseItem
from streamlib_parsers.json_text import is_json_bytes

OUTPUT_TOOL: Final = "structured_output"
"""Name of the tool that carries the output where a prompt has ``structured="tool"``."""


def output_call(items: Sequence[ResponseItem]) -> FunctionCall | None:
    """The call whose arguments are the output: the first of `OUTPUT_TOOL`."""
    for item in items:
        if is_output_call(item) and isinstance(item, FunctionCall):
            return item
    return None


def is_output_call(item: ResponseItem) -> bool:
    """Whether a call's arguments are the output: only the agent that was asked has one."""
    return isinstance(item, FunctionCall) and item.name == OUTPUT_TOOL and item.agent is None


def is_output_message(item: ResponseItem) -> bool:
    """Whether a message may hold the output.

    It is the assistant's, of the agent that was asked, and not a commentary.
    """
    if not isinstance(item, Message) or item.role != "assistant" or item.agent is not None:
        return False
    return item.phase != "commentary"


def output_text(items: Sequence[ResponseItem]) -> str:
    """The text that holds the structured output; the plain text of a response without any.

    It is the arguments of the call of `OUTPUT_TOOL`, else the text. Where several messages joined
    are not JSON (remarks between searches that the provider ran), it is the last message.
    """
    call = output_call(items)
    if call is not None:
        return call.arguments
    texts: list[str] = []
    for item in items:
        if isinstance(item, Message) and is_output_message(item) and item.text:
            texts.append(item.text)
    joined = "".join(texts)
    if len(texts) > 1 and not is_json_bytes(joined.encode("utf-8", "surrogatepass")):
        return texts[-1]
    return joined


def waits_for_calls(pending: Sequence[PendingCall]) -> bool:
    """Whether a response has calls to run before there is any output.

    The call of `OUTPUT_TOOL` does not count: it is the output.
    """
    for call in pending:
        if is_output_call(call):
            return False
    return bool(pending)
