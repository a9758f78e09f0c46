"""Rules of Anthropic's Messages API: fields, betas, turns, blocks and calls.

Numbers are those of docs/wires/messages.md. Fields, blocks and types of tools are those of the
official SDK (anthropic 2.12.0, ``types/message_create_params.py`` and ``types/beta``); messages
of errors are those that users reported, if any did (anthropics/claude-code and others).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    all_blocks,
    below,
    first_repeated,
    is_integer,
    missing_key,
    names,
    object_of,
    string,
    unknown_key,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

EXTRA: Final = "Extra inputs are not permitted"

FIELDS: Final = names(
    """
    model max_tokens messages system tools tool_choice thinking output_config stop_sequences stream
    temperature top_p top_k metadata service_tier speed inference_geo cache_control container
    diagnostics user_profile_id workspace_id
    """
)
"""Fields of a request that need no beta."""

FIELDS_OF_BETAS: Final[dict[str, tuple[str, ...]]] = {
    "billing_policy": ("user-profiles-billing",),
    "compaction": ("compact-2026-09-04",),
    "context_management": ("context-management", "compact-2026-01-12"),
    "fallback_credit_token": ("fallback-credit",),
    "fallbacks": ("server-side-fallback",),
    "mcp_servers": ("mcp-client",),
    "thread": ("message-threads",),
}
"""Field -> prefixes of the betas, one of which must be in ``anthropic-beta``.

Only the SDK's beta types have these fields; betas are those of ``types/anthropic_beta_param.py``.
"""

BLOCK_FIELDS: Final[dict[str, frozenset[str]]] = {
    "text": frozenset({"text", "citations"}),
    "image": frozenset({"source", "transformations"}),
    "document": frozenset({"source", "title", "context", "citations"}),
    "search_result": frozenset({"source", "title", "content", "citations"}),
    "thinking": frozenset({"thinking", "signature"}),
    "redacted_thinking": frozenset({"data"}),
    "tool_use": frozenset({"id", "name", "input", "caller", "toolset_name"}),
    "tool_result": frozenset({"tool_use_id", "content", "is_error", "toolset_name"}),
    "server_tool_use": frozenset({"id", "name", "input", "caller"}),
    "web_search_tool_result": frozenset({"tool_use_id", "content", "caller"}),
    "web_fetch_tool_result": frozenset({"tool_use_id", "content", "caller"}),
    "code_execution_tool_result": frozenset({"tool_use_id", "content"}),
    "bash_code_execution_tool_result": frozenset({"tool_use_id", "content"}),
    "text_editor_code_execution_tool_result": frozenset({"tool_use_id", "content"}),
    "tool_search_tool_result": frozenset({"tool_use_id", "content"}),
    "container_upload": frozenset({"file_id"}),
    "advisor_tool_result": frozenset({"tool_use_id", "content"}),
    "mcp_tool_use": frozenset({"id", "name", "input", "server_name"}),
    "mcp_tool_result": frozenset({"tool_use_id", "content", "is_error"}),
    "mcp_tool_listing": frozenset({"mcp_server_name", "tools"}),
    "compaction": frozenset({"content", "encrypted_content", "signature", "tool_changes"}),
    "fallback": frozenset({"from", "to", "trigger"}),
    "tool_addition": frozenset({"tool"}),
    "tool_removal": frozenset({"tool"}),
}
"""Type of a block -> its fields, without ``type`` and ``cache_control``."""

UNCACHED_BLOCKS: Final = frozenset(
    {"thinking", "redacted_thinking", "mcp_tool_listing", "fallback"}
)
"""Types of blocks that have no ``cache_control``."""

REQUIRED_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("source",),
    "thinking": ("signature", "thinking"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "input", "name"),
    "tool_result": ("tool_use_id",),
    "server_tool_use": ("id", "input", "name"),
}
"""Type of a block -> its required fields."""

BLOCKS_OF_BETAS: Final[dict[str, str]] = {
    "advisor_tool_result": "advisor-tool",
    "mcp_tool_use": "mcp-client",
    "mcp_tool_result": "mcp-client",
    "mcp_tool_listing": "mcp-client",
    "compaction": "compact",
    "fallback": "server-side-fallback",
    "tool_addition": "mid-conversation-tool-changes",
    "tool_removal": "mid-conversation-tool-changes",
}
"""Type of a block that only the SDK's beta types have -> prefix of its beta."""

ASSISTANT_BLOCKS: Final = frozenset(
    {"thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"}
)
USER_BLOCKS: Final = frozenset({"image", "tool_result", "search_result"})

SERVER_RESULTS: Final = frozenset(kind for kind in BLOCK_FIELDS if kind.endswith("_tool_result"))
"""Types of blocks with the result of a tool that the provider ran."""

CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
NEW_VERSION: Final = "2026-10-21"
"""From this ``anthropic-version`` on there are no sampling parameters."""

BETA_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*-\d{4}-\d{2}-\d{2}|[a-z-]+-\d{8}")


def blocks_of(turn: JsonObject) -> list[JsonObject]:
    """The blocks of a turn; none if its content is a text."""
    return objects_in(turn.get("content"))


def has_beta(request: StrictRequest, beginning: str) -> bool:
    """Whether the header or, on Bedrock, the body names a beta with this prefix."""
    betas = request.headers.get("anthropic-beta", "").split(",")
    in_body = request.body.get("anthropic_beta")
    if isinstance(in_body, list):
        betas = [*betas, *in_body]
    for beta in betas:
        if string(beta).strip().startswith(beginning):
            return True
    return False


def check_keys(values: JsonObject, known: Iterable[str], path: str = "") -> None:
    """No key of the object at a path is unknown."""
    unknown = unknown_key(values, known)
    if unknown is not None:
        raise Rejection(f"{below(path, unknown)}: {EXTRA}")


def check_required(values: JsonObject, required: Iterable[str], path: str = "") -> None:
    """The object at a path has all required keys."""
    missing = missing_key(values, required)
    if missing is not None:
        raise Rejection(f"{below(path, missing)}: Field required")


def check_version(request: StrictRequest) -> None:
    """The header ``anthropic-version`` is required (docs, "Versions")."""
    if "anthropic-version" not in request.headers:
        raise Rejection("anthropic-version: header is required")


def check_beta_names(request: StrictRequest) -> None:
    """Unknown betas are refused. Only the form of their names is checked."""  # rule S11
    for beta in request.headers.get("anthropic-beta", "").split(","):
        name = beta.strip()
        if name and not BETA_NAME.fullmatch(name):
            raise Rejection(f"Unexpected value(s) `{name}` for the `anthropic-beta` header")


def check_fields(request: StrictRequest) -> None:
    """Fields are complete and known (SDK: ``MessageCreateParams``; Aider-AI/aider#3367)."""
    check_required(request.body, ("max_tokens", "messages", "model"))
    check_known_fields(request)


def check_known_fields(request: StrictRequest) -> None:
    """Fields are known and not null, and beta fields have their header."""
    check_keys(request.body, FIELDS | FIELDS_OF_BETAS.keys())
    for field, betas in FIELDS_OF_BETAS.items():
        if field not in request.body:
            continue
        named = [beta for beta in betas if has_beta(request, beta)]
        if not named:
            raise Rejection(f"{field}: {EXTRA}")


def check_beta_values(request: StrictRequest) -> None:
    """Values that need a beta have its header: edits, task budgets, bound blocks (SDK)."""
    edits = objects_in(object_of(request.body.get("context_management")).get("edits"))
    for n, edit in enumerate(edits):
        beta = "context-management"
        if string(edit.get("type")).startswith("compact_"):
            beta = "compact-2026-01-12"
        if not has_beta(request, beta):
            raise Rejection(f"context_management.edits.{n}: {EXTRA}")
    if "task_budget" in object_of(request.body.get("output_config")):
        if not has_beta(request, "task-budgets"):
            raise Rejection(f"output_config.task_budget: {EXTRA}")
    thinking = object_of(request.body.get("thinking"))
    if "block_binding" in thinking and not has_beta(request, "thinking-binding-controls"):
        raise Rejection(f"thinking.{thinking.get('type')}.block_binding: {EXTRA}")


def check_max_tokens(request: StrictRequest) -> None:
    """``max_tokens`` is an integer, 0 or more; 0 only fills a cache (docs, "Messages")."""
    value = request.body.get("max_tokens")
    if not is_integer(value):
        raise Rejection("max_tokens: Input should be a valid integer")
    if value < 0:
        raise Rejection("max_tokens: Input should be greater than or equal to 0")


def check_stop_sequences(request: StrictRequest) -> None:
    """No stop sequence is only whitespace (docs, ``stop_sequences``)."""
    sequences = request.body.get("stop_sequences") or ()
    for sequence in sequences:
        if not string(sequence).strip():
            raise Rejection("stop_sequences: each stop sequence must contain non-whitespace")


def check_roles(request: StrictRequest) -> None:
    """There is a message, and roles are known (SDK: ``MessageParam``)."""
    messages = request.body.get("messages")
    if not isinstance(messages, list):
        raise Rejection("messages: Input should be a valid list")
    if not messages:
        raise Rejection("messages: at least one message is required")
    for n, turn in enumerate(messages):
        if not isinstance(turn, dict):
            raise Rejection(f"messages.{n}: Input should be a valid dictionary")
        check_keys(turn, ("role", "content", "clear_at", "output_config"), f"messages.{n}")
        if turn.get("role") not in ("user", "assistant", "system"):
            raise Rejection(f"messages.{n}.role: Input should be 'user' or 'assistant'")


def check_system_places(request: StrictRequest) -> None:
    """A system message follows a user turn, and ends the messages or precedes an assistant's.

    It may also follow a turn that ends in a server tool's result (pydantic-ai#5706, gproxy#209).
    """  # rule A17
    turns = objects_in(request.body.get("messages"))
    for n, turn in enumerate(turns):
        if turn["role"] != "system" or not turn.get("content"):
            continue
        before = [other for other in turns[:n] if other["role"] != "system"]
        after = [other for other in turns[n:] if other["role"] != "system"]
        if not before:
            raise Rejection(
                f"messages.{n}: use the top-level 'system' parameter for the initial system "
                "prompt; the directive-only form (content: [] with output_config) is accepted at "
                "any position"
            )
        kinds = [string(block.get("type")) for block in blocks_of(before[-1])]
        is_after_result = bool(kinds) and kinds[-1] in SERVER_RESULTS
        if before[-1]["role"] != "user" and not is_after_result:
            raise Rejection(f"messages.{n}: role 'system' must follow a user message")
        if after and after[0]["role"] != "assistant":
            raise Rejection(f"messages.{n}: role 'system' must precede an assistant message")


def check_content(request: StrictRequest) -> None:
    """Content is a text or a list of blocks; only a final assistant turn may be empty."""
    # rule A2
    turns = objects_in(request.body["messages"])
    for n, turn in enumerate(turns):
        content = turn.get("content")
        if not isinstance(content, (str, list)):
            raise Rejection(f"messages.{n}.content: Input should be a valid list")
        is_final_assistant = n == len(turns) - 1 and turn["role"] == "assistant"
        is_directive = turn["role"] == "system" and "output_config" in turn
        if not content and not is_final_assistant and not is_directive:
            raise Rejection(
                f"messages.{n}: all messages must have non-empty content except for the optional "
                "final assistant message"
            )
        if isinstance(content, str) and content and not content.strip():
            raise Rejection("messages: text content blocks must contain non-whitespace text")


def check_blocks(request: StrictRequest) -> None:
    """Blocks have known types and fields (anthropics/claude-code#4378, langchain#31208)."""
    for path, _, block in all_blocks(request):
        _check_block(request, path, block)
        if block["type"] == "tool_result":
            for n, inner in enumerate(objects_in(block.get("content"))):
                inner_path = f"{path}.tool_result.content.{n}"
                _check_block(request, inner_path, inner)


def _check_block(request: StrictRequest, path: str, block: JsonObject) -> None:
    kind = string(block.get("type"))
    if kind in ("tool_reference", "browser_state"):  # allowed inside results only
        return
    known = BLOCK_FIELDS.get(kind)
    beta = BLOCKS_OF_BETAS.get(kind)
    if known is None or (beta is not None and not has_beta(request, beta)):
        expected = ", ".join(f"'{name}'" for name in BLOCK_FIELDS)
        raise Rejection(
            f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {expected}"
        )
    allowed = known | {"type"}
    if kind not in UNCACHED_BLOCKS:
        allowed |= {"cache_control"}
    check_keys(block, allowed, f"{path}.{kind}")
    check_required(block, REQUIRED_FIELDS.get(kind, ()), f"{path}.{kind}")


def check_texts(request: StrictRequest) -> None:
    """No text is blank, in messages, results or the system prompt (A1; aliasrobotics/cai#182)."""
    texts = [block for _, _, block in all_blocks(request)]
    texts += objects_in(request.body.get("system"))
    for _, _, block in all_blocks(request):
        if block["type"] == "tool_result":
            texts += objects_in(block.get("content"))
    for block in texts:
        if block.get("type") != "text":
            continue
        if not block["text"]:
            raise Rejection("messages: text content blocks must be non-empty")
        if not string(block["text"]).strip():
            raise Rejection("messages: text content blocks must contain non-whitespace text")


def check_block_roles(request: StrictRequest) -> None:
    """Thinking and calls are in assistant turns, media and results in user turns (SDK docs)."""
    for path, turn, block in all_blocks(request):
        kind, role = block["type"], turn["role"]
        if kind in ASSISTANT_BLOCKS and role != "assistant":
            raise Rejection(f"{path}: `{kind}` blocks can only be in `assistant` messages")
        if kind in USER_BLOCKS and role != "user":
            raise Rejection(f"{path}: `{kind}` blocks can only be in `user` messages")


def check_media(request: StrictRequest) -> None:
    """Images are JPEG, PNG, GIF or WebP: as base64, URL or file id (docs, "Vision"; A19)."""
    for path, _, block in all_blocks(request):
        if block["type"] != "image":
            continue
        source = object_of(block["source"])
        if source.get("type") not in ("base64", "url", "file"):
            raise Rejection(f"{path}.image.source: Input tag found using 'type' is not known")
        media_type = source.get("media_type")
        allowed = ("image/jpeg", "image/png", "image/gif", "image/webp")
        if source["type"] == "base64" and media_type not in allowed:
            raise Rejection(
                f"{path}.image.source.base64.media_type: Input should be 'image/jpeg', "
                "'image/png', 'image/gif' or 'image/webp'"
            )


def check_call_ids(request: StrictRequest) -> None:
    """Ids of calls match a pattern and are unique (A8, A9; litellm ``factory.py``)."""
    ids: list[Any] = []
    for path, _, block in all_blocks(request):
        if block["type"] != "tool_use":
            continue
        ids.append(block["id"])
        if not CALL_ID.fullmatch(string(block["id"])):
            raise Rejection(f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not isinstance(block["input"], dict):
            raise Rejection(f"{path}.tool_use.input: Input should be a valid dictionary")
    if first_repeated(ids) is not None:
        raise Rejection("messages: `tool_use` ids must be unique")


def check_pairing(request: StrictRequest) -> None:
    """Each call has its result at the start of the next user turn (A4-A7).

    Sources: anthropics/claude-code#7929 and #13460; docs, "Handle tool calls".
    """
    turns = _joined_turns(request)
    called: list[Any] = []
    for n, (role, blocks) in enumerate([*turns, ("user", [])]):
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if role == "user":
            for tool_use_id in results:
                if tool_use_id not in called:
                    raise Rejection(
                        f"messages.{n}.content.0: unexpected `tool_use_id` found in `tool_result` "
                        f"blocks: {tool_use_id}. Each `tool_result` block must have a "
                        "corresponding `tool_use` block in the previous message."
                    )
        unanswered = [tool_use_id for tool_use_id in called if tool_use_id not in results]
        is_late = called and [block["type"] for block in blocks[: len(called)]] != (
            ["tool_result"] * len(called)
        )
        if unanswered or is_late:
            names = ", ".join(unanswered or called)
            raise Rejection(
                f"messages.{n - 1}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {names}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message."
            )
        if first_repeated(results) is not None:
            raise Rejection(
                f"messages.{n}.content: each tool_use must have a single result. Found multiple "
                "`tool_result` blocks"
            )
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]


def _joined_turns(request: StrictRequest) -> list[tuple[str, list[JsonObject]]]:
    """The turns as the service reads them: adjacent turns of one role are joined."""  # rule A3
    turns: list[tuple[str, list[JsonObject]]] = []
    for turn in objects_in(request.body["messages"]):
        if turn["role"] == "system":
            continue
        blocks = blocks_of(turn)
        if isinstance(turn["content"], str):
            blocks = [{"type": "text", "text": turn["content"]}]
        if turns and turns[-1][0] == turn["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((turn["role"], list(blocks)))
    return turns


def check_server_tools(request: StrictRequest) -> None:
    """A server tool's call and its result are in one turn, except in the last turn.

    Source: anthropics/claude-code#62577.
    """  # rule A15
    turns = _joined_turns(request)
    for n, (_, blocks) in enumerate(turns):
        called: set[str] = set()
        answered: set[str] = set()
        for block in blocks:
            kind = block["type"]
            if kind in ("server_tool_use", "mcp_tool_use"):
                called.add(block["id"])
            elif kind.endswith("_tool_result"):
                answered.add(string(block.get("tool_use_id")))
        if answered - called:
            raise Rejection(
                f"messages.{n}: unexpected `tool_use_id` found in server tool result blocks"
            )
        if called - answered and n < len(turns) - 1:
            raise Rejection(
                f"messages.{n}: `server_tool_use` ids were found without a corresponding "
                f"tool result block: {', '.join(sorted(called - answered))}"
            )


CONTENT_RULES: Final[tuple[Rule, ...]] = (
    check_beta_values,
    check_max_tokens,
    check_stop_sequences,
    check_roles,
    check_system_places,
    check_content,
    check_blocks,
    check_texts,
    check_block_roles,
    check_media,
    check_call_ids,
    check_pairing,
    check_server_tools,
)
"""Rules of this module that also apply to Claude on Bedrock (`invoke`)."""
