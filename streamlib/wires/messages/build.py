"""A `Prompt` as an Anthropic Messages request.

Turns are runs of blocks of one role; each block keeps its own place, so thinking, text and calls are replayed in the order
they were received. The rules that make the API answer 400 are met here, each by one small function; what had to change is in
the report. Numbers such as A1 or T8 are the rows of the rule table in docs/wires/messages.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from streamlib.errors import invalid_request
from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.media import media_type
from streamlib.request.origins import reasoning_as_text
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import strict_schema
from streamlib.request.target import BuiltRequest
from streamlib.wires.arguments import as_object
from streamlib.wires.claude import BINDING_BETA, effort, thinking, unpaired_server_calls
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
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSpec,
)

DEFAULT_MAX_TOKENS: Final = 32_000
VERSION_WITHOUT_SAMPLING: Final = "2026-10-21"
CITATION_RESPONSE_KEYS: Final = frozenset({"file_id"})
"""Keys of a citation that only responses have."""


class Block(NamedTuple):
    """One content block, the role it is said in, and the item it came from."""

    role: str
    body: JsonObject
    at: int


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body and the beta headers."""
    instructions, items = _leading_system(prompt, items)
    turns = _turns(_blocks(items, context), prompt, context.report)
    body: JsonObject = {"model": context.target.model, "max_tokens": _max_tokens(prompt, context)}
    if prompt.tools:
        body["tools"] = [_tool(tool, at, context.report) for at, tool in enumerate(prompt.tools)]
    if instructions:
        body["system"] = [{"type": "text", "text": text} for text in instructions]
    body["messages"] = turns
    body["stream"] = prompt.stream is not False
    body.update(_choice(prompt, context))
    body.update(_thinking(prompt, body, context))
    body.update(_output_config(prompt, context, body))
    body.update(_sampling(prompt, context))
    body.update(_plain(prompt))
    _last_turn(body, context)
    _cache(prompt, body)
    body["messages"] = [
        {"role": turn["role"], "content": [block.body for block in turn["content"]]}
        for turn in body["messages"]
    ]
    return BuiltRequest(body, _betas(prompt, body, context))


# --- turns ---


def _leading_system(
    prompt: Prompt, items: list[IndexedItem]
) -> tuple[list[str], list[IndexedItem]]:
    """System and developer messages before the first other item belong to `system`."""
    texts = [prompt.instructions] if prompt.instructions else []
    count = 0
    for one in items:
        if not (isinstance(one.item, Message) and one.item.role in ("system", "developer")):
            break
        texts.append(one.item.text)
        count += 1
    return [text for text in texts if text.strip()], items[count:]


def _blocks(items: list[IndexedItem], context: BuildContext) -> Iterator[Block]:
    unpaired = unpaired_server_calls(items)
    for one in items:
        if one.position in unpaired:
            context.report.dropped(one.path, "a server tool call without its result (A15)")
            continue
        for role, body in BLOCKS[type(one.item)](one, context):
            if body.get("type") == "text" and not body["text"].strip():
                context.report.dropped(one.path, "blank text (A1)")
                continue
            yield Block(role, body, one.position)


def _turns(blocks: Iterator[Block], prompt: Prompt, report: Report) -> list[JsonObject]:
    """Runs of one role (A3); tool results stand first in a user turn (A6)."""
    turns: list[JsonObject] = []
    for block in blocks:
        if not turns or turns[-1]["role"] != block.role:
            turns.append({"role": block.role, "content": []})
        turns[-1]["content"].append(block)
    for turn in turns:
        ordered = (
            sorted(turn["content"], key=lambda block: block.body["type"] != "tool_result")
            if turn["role"] == "user"
            else turn["content"]
        )
        if ordered != turn["content"]:
            report.add(
                "repaired",
                f"/input/{turn['content'][0].at}",
                "tool results stand before other content (A6)",
                breaks_prefix=True,
            )
        turn["content"] = ordered
    if not turns:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    return turns


# --- one function an item kind: (role, block) ---

Said = Iterator[tuple[str, JsonObject]]


def _message(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    role = item.role
    if role in ("system", "developer"):
        if context.target.traits.system_role:
            yield "system", {"type": "text", "text": item.text}
        else:
            context.report.add(
                "changed",
                one.path,
                "the model takes no system message here: sent as user text (A17)",
            )
            yield "user", {"type": "text", "text": f"<system>\n{item.text}\n</system>"}
        return
    for part in item.content:
        block = _part(part, one, context.report)
        if block is not None:
            yield role, {**block, **(item.native or {})} if len(item.content) == 1 else block


def _reasoning(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    if item.redacted or (item.encrypted_content and not item.content):
        yield (
            "assistant",
            {"type": "redacted_thinking", "data": item.encrypted_content, **(item.native or {})},
        )
    elif (
        item.signature and item.status == "completed"
    ) or context.target.provider.unsigned_thinking:
        yield (
            "assistant",
            {
                "type": "thinking",
                "thinking": item.content,
                "signature": item.signature or "",
                **(item.native or {}),
            },
        )
    elif (text := reasoning_as_text(item)) is not None:
        context.report.add(
            "downgraded", one.path, "a thought without its signature, sent as text (T10)"
        )
        yield "assistant", {"type": "text", "text": text.text}
    else:
        context.report.dropped(one.path, "a thought without text or signature (T10)")


def _call(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    block = {
        "type": "tool_use",
        "id": item.call_id,
        "name": item.name,
        "input": as_object(item, one.path, context.report),
    }
    yield "assistant", {**block, **(item.native or {})}


def _custom_call(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    context.report.add("changed", one.path, 'a free-form call, sent as {"input": …}')
    yield (
        "assistant",
        {"type": "tool_use", "id": item.call_id, "name": item.name, "input": {"input": item.input}},
    )


def _output(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    parts = (Text(item.output),) if isinstance(item.output, str) else item.output
    said = [
        part
        for part in (_part(part, one, context.report) for part in parts)
        if part and (part["type"] != "text" or part["text"].strip())
    ]
    block: JsonObject = {"type": "tool_result", "tool_use_id": item.call_id}
    if said:
        block["content"] = said
    if item.is_error:
        block["is_error"] = True
    yield "user", {**block, **(item.native or {})}


def _server_call(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    block = {
        "type": "server_tool_use",
        "id": item.call_id,
        "name": item.name,
        "input": as_object(item, one.path, context.report),
    }
    yield "assistant", {**block, **(item.native or {})}


def _server_result(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    yield (
        "assistant",
        {
            "type": f"{item.name}_tool_result",
            "tool_use_id": item.call_id,
            "content": item.output,
            **(item.native or {}),
        },
    )


def _compaction(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    fields = {
        "content": item.content or None,
        "encrypted_content": item.encrypted_content,
        "signature": item.signature,
    }
    yield (
        "assistant",
        {
            "type": "compaction",
            **{
                key: value for key, value in fields.items() if value is not None or key == "content"
            },
            **(item.native or {}),
        },
    )


def _opaque(one: IndexedItem, context: BuildContext) -> Said:
    item: Any = one.item
    block = (
        item.payload
        if isinstance(item.payload.get("type"), str)
        else {**item.payload, "type": item.kind}
    )
    yield (item.native or {}).get("role", "assistant"), block


BLOCKS: Final[dict[type, Callable[[IndexedItem, BuildContext], Said]]] = {
    Message: _message,
    Reasoning: _reasoning,
    FunctionCall: _call,
    CustomToolCall: _custom_call,
    FunctionCallOutput: _output,
    CustomToolCallOutput: _output,
    ServerToolCall: _server_call,
    ServerToolResult: _server_result,
    Compaction: _compaction,
    Opaque: _opaque,
}


# --- parts ---


def _part(part: ContentPart, one: IndexedItem, report: Report) -> JsonObject | None:
    native = part.native or {}
    if "type" in native:
        return native
    match part:
        case Text():
            citations = [
                {key: value for key, value in note.items() if key not in CITATION_RESPONSE_KEYS}
                for note in part.annotations
            ]
            return {
                "type": "text",
                "text": part.text,
                **({"citations": citations} if citations else {}),
                **native,
            }
        case Refusal():
            return {"type": "text", "text": part.refusal}
        case Image():
            return {"type": "image", "source": _source(part), **native}
        case Document():
            return {
                "type": "document",
                "source": _source(part),
                **({"title": part.name} if part.name else {}),
                **native,
            }
        case Audio():
            report.dropped(one.path, "Messages takes no audio")
            return {"type": "text", "text": part.transcript} if part.transcript else None


def _source(part: Image | Document) -> JsonObject:
    if part.file_id:
        return {"type": "file", "file_id": part.file_id}
    if part.url:
        return {"type": "url", "url": part.url}
    kind = media_type(part)
    if kind == "text/plain":
        return {"type": "text", "media_type": kind, "data": _plain_text(part.data or "")}
    return {"type": "base64", "media_type": kind, "data": part.data or ""}


def _plain_text(data: str) -> str:
    try:
        return msgspec.convert(data, bytes).decode("utf-8", "replace")
    except msgspec.ValidationError:
        return data


# --- settings ---


def _max_tokens(prompt: Prompt, context: BuildContext) -> int:
    ceiling = context.target.traits.max_output
    asked = prompt.max_output_tokens
    if asked is None:
        return min(DEFAULT_MAX_TOKENS, ceiling or DEFAULT_MAX_TOKENS)
    if ceiling and asked > ceiling:
        context.report.add(
            "changed", "/max_output_tokens", f"{context.target.model} gives at most {ceiling} (S2)"
        )
        return ceiling
    return asked


def _tool(tool: ToolSpec, at: int, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    body: JsonObject = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if tool.format is not None:
        report.add(
            "changed",
            f"/tools/{at}/format",
            "Messages has no free-form tools: it takes one string, input",
        )
        body["input_schema"] = {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        }
        return body
    body["input_schema"] = (
        tool.schema if isinstance(tool.schema, dict) else {"type": "object", "properties": {}}
    )
    if body["input_schema"].get("type") != "object":
        report.add("changed", f"/tools/{at}/schema", "an input schema is of type object (S5)")
        body["input_schema"] = {
            "type": "object",
            **{key: value for key, value in body["input_schema"].items() if key != "type"},
        }
    if tool.strict is not None:
        body["strict"] = tool.strict
    return body


def _choice(prompt: Prompt, context: BuildContext) -> JsonObject:
    if not prompt.tools:
        return {}
    kinds: dict[str | None, JsonObject] = {
        "auto": {"type": "auto"},
        "required": {"type": "any"},
        "none": {"type": "none"},
    }
    choice = kinds.get(prompt.tool_choice) or (
        {"type": "tool", "name": prompt.tool_choice} if prompt.tool_choice else None
    )
    if choice and choice["type"] in ("any", "tool") and not context.target.traits.forced_tools:
        context.report.add(
            "changed",
            "/tool_choice",
            f"{context.target.model} takes no forced tool choice: auto (T7)",
        )
        choice = {"type": "auto"}
    if prompt.parallel_tools is False and (choice or {}).get("type") != "none":
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return {"tool_choice": choice} if choice else {}


def _thinking(prompt: Prompt, body: JsonObject, context: BuildContext) -> JsonObject:
    forced = body.get("tool_choice", {}).get("type") in ("any", "tool")
    return thinking(
        prompt,
        context,
        max_tokens=body["max_tokens"],
        forced=forced,
        unthought=_loop_without_thinking(body),
    )


def _loop_without_thinking(body: JsonObject) -> bool:
    """Whether the last assistant turn called tools without having thought first."""
    last = next((turn for turn in reversed(body["messages"]) if turn["role"] == "assistant"), None)
    kinds = [block.body["type"] for block in last["content"]] if last else []
    return (
        "tool_use" in kinds
        and kinds[0] not in ("thinking", "redacted_thinking")
        and body["messages"][-1]["role"] == "user"
    )


def _output_config(prompt: Prompt, context: BuildContext, body: JsonObject) -> JsonObject:
    config: JsonObject = {}
    level = effort(prompt, context, body.get("thinking"))
    if level:
        config["effort"] = level
    if prompt.output_schema is not None:
        schema = strict_schema(prompt.output_schema, "messages", "/output_schema", context.report)
        config["format"] = {"type": "json_schema", "schema": schema}
    if prompt.verbosity:
        context.report.dropped("/verbosity", "Messages has no verbosity")
    return {"output_config": config} if config else {}


SAMPLING: Final = ("temperature", "top_p", "top_k")
ELSEWHERE: Final = ("presence_penalty", "frequency_penalty", "seed", "n", "logprobs")
"""Settings that other wires have and Messages has not."""


def _sampling(prompt: Prompt, context: BuildContext) -> JsonObject:
    for name in ELSEWHERE:
        if getattr(prompt, name) is not None:
            context.report.dropped(f"/{name}", f"Messages has no {name}")
    asked = {name: getattr(prompt, name) for name in SAMPLING if getattr(prompt, name) is not None}
    version = context.target.provider.headers.get("anthropic-version", "")
    if context.target.traits.sampling and version < VERSION_WITHOUT_SAMPLING:
        return asked
    for name in asked:
        context.report.dropped(
            f"/{name}", f"{context.target.model} takes no sampling parameters (S1)"
        )
    return {}


def _plain(prompt: Prompt) -> JsonObject:
    """Settings that only need their name."""
    body: JsonObject = {}
    if prompt.stop:
        body["stop_sequences"] = [text for text in prompt.stop if text.strip()]
    user_id = prompt.user_id or (prompt.metadata or {}).get("user_id")
    if user_id:
        body["metadata"] = {"user_id": user_id}
    if prompt.service_tier:
        body["service_tier"] = prompt.service_tier
    return body


# --- the last turn ---


def _last_turn(body: JsonObject, context: BuildContext) -> None:
    """What the API refuses at the end of a request: blank ends, thinking that is off, and prefills some models do not take."""
    turns = body["messages"]
    if turns[-1]["role"] != "assistant":
        return
    blocks = turns[-1]["content"]
    if body.get("thinking", {}).get("type") == "disabled" or (
        "thinking" not in body
        and not context.target.traits.thinking_default
        and context.target.traits.max_output
    ):
        _without_thinking(turns, context.report)
    elif blocks[-1].body["type"] in ("thinking", "redacted_thinking"):
        context.report.dropped(
            f"/input/{blocks[-1].at}", "a request does not end with a thought (A14)"
        )
        del blocks[-1]
    if not blocks:
        turns.pop()
    elif blocks[-1].body["type"] == "text":
        _trimmed(blocks)
    if (
        turns
        and turns[-1]["role"] == "assistant"
        and not context.target.traits.prefill
        and not _continues(turns[-1]["content"])
    ):
        context.report.add(
            "generated",
            "/input",
            f"{context.target.model} wants a user turn last: 'Continue.' added (A13)",
        )
        turns.append(
            {"role": "user", "content": [Block("user", {"type": "text", "text": "Continue."}, -1)]}
        )
    if not turns:
        raise invalid_request("nothing is left to send", "empty_input")


def _without_thinking(turns: list[JsonObject], report: Report) -> None:
    kept = [
        block
        for block in turns[-1]["content"]
        if block.body["type"] not in ("thinking", "redacted_thinking")
    ]
    for block in turns[-1]["content"]:
        if block not in kept:
            report.add(
                "dropped",
                f"/input/{block.at}",
                "thinking is off: no thought in the last assistant turn (T8b)",
                breaks_prefix=True,
            )
    turns[-1]["content"][:] = kept  # in place: the caller looks at what is left


def _trimmed(blocks: list[Block]) -> None:
    """A final assistant text does not end in blanks (A12)."""
    last = blocks[-1]
    blocks[-1] = last._replace(body={**last.body, "text": last.body["text"].rstrip()})


def _continues(blocks: list[Block]) -> bool:
    """Whether the turn is one the provider paused: it ends in a tool of its own."""
    kind = blocks[-1].body["type"]
    return kind in ("server_tool_use", "mcp_tool_use", "compaction") or kind.endswith(
        "_tool_result"
    )


# --- caching and betas ---


def _cache(prompt: Prompt, body: JsonObject) -> None:
    """`auto` lets the API choose; breakpoints mark the last block of an item, at most four (A23)."""
    if prompt.cache is None:
        return
    options = prompt.cache if isinstance(prompt.cache, CacheOptions) else CacheOptions()
    marker = {"type": "ephemeral", **({"ttl": options.ttl} if options.ttl else {})}
    if not options.breakpoints:
        body["cache_control"] = marker
        return
    wanted = set(sorted(options.breakpoints)[-4:])
    for turn in body["messages"]:
        last = {
            block.at: n
            for n, block in enumerate(turn["content"])
            if block.body["type"] not in ("thinking", "redacted_thinking")
        }
        for at in wanted & last.keys():
            block = turn["content"][last[at]]
            turn["content"][last[at]] = block._replace(body={**block.body, "cache_control": marker})


def _betas(prompt: Prompt, body: JsonObject, context: BuildContext) -> dict[str, str]:
    betas = [BINDING_BETA] if "block_binding" in body.get("thinking", {}) else []
    given = context.target.provider.headers.get("anthropic-beta")
    return {"anthropic-beta": ",".join([*([given] if given else []), *betas])} if betas else {}
