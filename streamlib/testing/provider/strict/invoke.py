"""Rules of Bedrock's InvokeModel for Claude: those of Messages, with Bedrock's own fields.

Numbers are those of docs/wires/messages.md and docs/wires/invoke.md. Bodies of other families are
not checked.
"""

from __future__ import annotations

from typing import Final

from streamlib.testing.provider.strict.messages import (
    CONTENT_RULES,
    FIELDS,
    check_keys,
    check_required,
)
from streamlib.testing.provider.strict.messages_thinking import THINKING_RULES
from streamlib.testing.provider.strict.messages_tools import TOOL_RULES
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    all_blocks,
    check,
    object_of,
)
from streamlib_parsers.json_text import objects_in

BEDROCK_FIELDS: Final = (FIELDS - {"model", "stream"}) | {
    "anthropic_version",
    "anthropic_beta",
    "context_management",
}


def check_fields(request: StrictRequest) -> None:
    """The version is in the body, the model in the path (AWS docs, "Anthropic Claude Messages")."""
    check_required(request.body, ("anthropic_version", "max_tokens", "messages"))
    check_keys(request.body, BEDROCK_FIELDS)
    if not isinstance(request.body.get("anthropic_beta", []), list):
        raise Rejection("anthropic_beta: Input should be a valid list")


def check_first_role(request: StrictRequest) -> None:
    """The first turn is the user's.

    Anthropic's own API accepts other roles: anthropic-sdk-typescript#622.
    """  # rule A3
    if objects_in(request.body["messages"])[0]["role"] == "assistant":
        raise Rejection('messages: first message must use the "user" role')


def check_media_sources(request: StrictRequest) -> None:
    """Media are in the body: Bedrock accepts no URLs and no file ids."""  # rule A21
    for path, _, block in all_blocks(request):
        source = object_of(block.get("source"))
        if block["type"] in ("image", "document") and source.get("type") in ("url", "file"):
            raise Rejection(f"{path}.{block['type']}.source: URL sources are not supported")


CLAUDE_RULES: Final[tuple[Rule, ...]] = (
    check_fields,
    *CONTENT_RULES,
    check_first_role,
    check_media_sources,
    *TOOL_RULES,
    *THINKING_RULES,
)


def check_claude(request: StrictRequest) -> None:
    """The rules of Claude, applied if the model's name or the form of the body is Claude's."""
    is_claude = "claude" in request.model or "anthropic_version" in request.body
    if not is_claude:
        return
    check(CLAUDE_RULES, request)


RULES: Final[tuple[Rule, ...]] = (check_claude,)
