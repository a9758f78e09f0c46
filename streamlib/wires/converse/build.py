"""A `Prompt` as a Bedrock Converse request: `{"messages": […], "system": […], "inferenceConfig": {…}, "toolConfig": {…}, …}`.

Turns are runs of blocks of one role, in the order the items have; the blocks themselves are made by converse_content.py. What differs
between the models behind this one API stands in bedrock.py as a table. The rules that make the API answer 400 are met here, each by one
small function; what had to change is in the report. Numbers such as B1 are the rows of the rule table in docs/wires/converse.md, T1, A13
and S1 those of docs/wires/messages.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from streamlib.errors import invalid_request
from streamlib.providers.names import Charset, fit_names
from streamlib.request.context import BuildContext
from streamlib.request.effort import level, nearest
from streamlib.request.history import CALLS, OUTPUTS, IndexedItem
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import strict_schema
from streamlib.request.target import BuiltRequest, Target
from streamlib.wires.bedrock import ANY, CLAUDE, Choice, Family, family
from streamlib.wires.claude import BINDING_BETA, effort, thinking, unpaired_server_calls
from streamlib.wires.converse.build_content import BLOCKS, FILLER, Block, ConverseContext, is_blank
from streamlib_parsers.items import JsonObject, Message, ServerToolCall, ToolSpec

EXTRA: Final = "additionalModelRequestFields"
"""What Converse passes on to the model as it is."""
TIERS: Final = {
    "priority": "priority",
    "default": "default",
    "flex": "flex",
    "reserved": "reserved",
    "standard_only": "default",
}
METADATA: Final = re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{1,256}")
METADATA_PAIRS: Final = 16
BREAKPOINTS: Final = 4
LIFETIMES: Final = frozenset({"5m", "1h"})
ELSEWHERE: Final = (
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "n",
    "logprobs",
    "verbosity",
    "user_id",
)
"""Settings that other wires have and Converse has not."""
STOP_PATHS: Final = ["/stop_sequence", "/delta/stop_sequence"]
"""Where Claude says which stop sequence it met: in a whole answer, in a stream."""
THOUGHT_PATH: Final = "/usage/output_tokens_details"


class Turn(NamedTuple):
    """A run of blocks of one role."""

    role: str
    blocks: list[Block]


class System(NamedTuple):
    """One text of the system prompt and the item it came from (-1: the instructions)."""

    text: str
    at: int


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body. The model's name stands in the path alone."""
    kind = family_of(context.target)
    items = _fit_ids(items, kind, context.report)
    system, items = _leading_system(prompt, items)
    turns = _turns(
        _blocks(
            items,
            ConverseContext(context.target, context.report, kind),
            _unheard_system(system, kind, context.report),
        ),
        kind,
        context.report,
    )
    choice = _choice(prompt, context.target, kind, context.report)
    fields = _model_fields(prompt, turns, choice, context.target, kind, context.report)
    config = _inference(prompt, fields.pop("max_tokens", None), context)
    _last_turn(turns, fields, context)
    tools = _tools(prompt, items, kind, context.report)
    if kind is CLAUDE and tools and not prompt.tools:
        fields["tool_choice"] = {"type": "none"}  # the stubs are there to be read, not to be called
    texts: list[JsonObject] = [{"text": one.text} for one in system] if kind.system else []
    _cache(prompt, _Cacheable(turns, system, texts, tools), kind, context.report)
    body: JsonObject = {
        "messages": [
            {"role": turn.role, "content": [block.body for block in turn.blocks]} for turn in turns
        ]
    }
    named = {
        "system": texts,
        "inferenceConfig": config,
        "toolConfig": _tool_config(tools, choice, fields),
        EXTRA: fields,
    }
    body.update({name: value for name, value in named.items() if value})
    body.update(_output_config(prompt, kind, context.report))
    body.update(_plain(prompt, fields, kind, context.report))
    return BuiltRequest(body)


def family_of(where: Target) -> Family:
    """By the model's name. Where that tells nothing, traits with Claude's forms of thinking (`Client(models=…)`) say that it is Claude."""
    found, forms = family(where.model), where.traits.thinking
    return CLAUDE if found is ANY and forms and "level" not in forms else found


def _fit_ids(items: list[IndexedItem], kind: Family, report: Report) -> list[IndexedItem]:
    """Converse takes `.` and `:` in ids, and Kimi makes such; Claude behind it does not (B8)."""
    ids = (
        [one.item.call_id for one in items if isinstance(one.item, (*CALLS, *OUTPUTS))]
        if kind is CLAUDE
        else []
    )
    changed = fit_names(ids, Charset())
    out: list[IndexedItem] = []
    for one in items:
        item = one.item
        if isinstance(item, (*CALLS, *OUTPUTS)) and item.call_id in changed:
            report.add("renamed", f"{one.path}/call_id", "Claude does not take this id (B8)")
            item = msgspec.structs.replace(item, call_id=changed[item.call_id])
        out.append(IndexedItem(one.position, item))
    return out


# --- turns ---


def _leading_system(
    prompt: Prompt, items: list[IndexedItem]
) -> tuple[list[System], list[IndexedItem]]:
    """System and developer messages before the first other item belong to `system`."""
    texts = [System(prompt.instructions, -1)] if prompt.instructions else []
    count = 0
    for one in items:
        if not (isinstance(one.item, Message) and one.item.role in ("system", "developer")):
            break
        texts.append(System(one.item.text, one.position))
        count += 1
    return [one for one in texts if one.text.strip()], items[count:]


def _unheard_system(system: list[System], kind: Family, report: Report) -> list[Block]:
    """The system prompt of a model that takes none: what the user says first (B21)."""
    if kind.system or not system:
        return []
    report.add(
        "changed", "/instructions", "the model takes no system prompt: sent as user text (B21)"
    )
    return [Block("user", {"text": one.text}, one.at) for one in system]


def _blocks(
    items: list[IndexedItem], context: ConverseContext, first: list[Block]
) -> Iterator[Block]:
    yield from first
    unpaired = unpaired_server_calls(items)
    for one in items:
        if one.position in unpaired:
            context.report.dropped(one.path, "a server tool call without its result (A15)")
            continue
        for role, body in BLOCKS[type(one.item)](one, context):
            if is_blank(body):
                context.report.dropped(one.path, "blank text (B2)")
            else:
                yield Block(role, body, one.position)


def _turns(blocks: Iterator[Block], kind: Family, report: Report) -> list[Turn]:
    """Runs of one role (B5), tool results first in theirs (B6), a user turn first of all (B4)."""
    turns: list[Turn] = []
    for block in blocks:
        if not turns or turns[-1].role != block.role:
            turns.append(Turn(block.role, []))
        turns[-1].blocks.append(block)
    if not turns:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    for turn in turns:
        _results_first(turn, report)
    if turns[0].role != "user":
        report.add(
            "generated", "/input", f"a conversation starts with a user turn: {FILLER!r} added (B4)"
        )
        turns.insert(0, Turn("user", [Block("user", {"text": FILLER}, -1)]))
    return turns if kind.mixed else [part for turn in turns for part in _unmixed(turn, report)]


def _results_first(turn: Turn, report: Report) -> None:
    if turn.role != "user":
        return
    ordered = sorted(turn.blocks, key=lambda block: block.member != "toolResult")
    if ordered != turn.blocks:
        report.add(
            "repaired",
            f"/input/{turn.blocks[0].at}",
            "tool results stand before other content (B6)",
            breaks_prefix=True,
        )
        turn.blocks[:] = ordered


def _unmixed(turn: Turn, report: Report) -> list[Turn]:
    """Tool results in a turn of their own, with a word of the assistant's behind them (B7)."""
    results = [block for block in turn.blocks if block.member == "toolResult"]
    others = turn.blocks[len(results) :]
    if turn.role != "user" or not results or not others:
        return [turn]
    report.add(
        "generated",
        f"/input/{others[0].at}",
        f"tool results stand in a turn of their own: {FILLER!r} of the assistant added (B7)",
    )
    return [
        Turn("user", results),
        Turn("assistant", [Block("assistant", {"text": FILLER}, -1)]),
        Turn("user", others),
    ]


# --- the last turn ---


def _last_turn(turns: list[Turn], fields: JsonObject, context: BuildContext) -> None:
    """What is refused at the end of a request: blank ends, thoughts, and prefills that some models do not take."""
    if turns[-1].role != "assistant":
        return
    blocks = turns[-1].blocks
    off = fields.get("thinking", {}).get("type") == "disabled"
    if off or (
        "thinking" not in fields
        and context.target.traits.max_output
        and not context.target.traits.thinking_default
    ):
        _without_thoughts(blocks, context.report)
    while blocks and blocks[-1].member == "reasoningContent":
        context.report.dropped(
            f"/input/{blocks.pop().at}", "a request does not end with a thought (A14)"
        )
    if not blocks:
        turns.pop()
    elif blocks[-1].member == "text":
        last = blocks[-1]
        blocks[-1] = last._replace(body={"text": last.body["text"].rstrip()})
    if (
        turns[-1].role == "assistant"
        and not context.target.traits.prefill
        and not _continues(blocks[-1])
    ):
        context.report.add(
            "generated",
            "/input",
            f"{context.target.model} wants a user turn last: 'Continue.' added (A13)",
        )
        turns.append(Turn("user", [Block("user", {"text": "Continue."}, -1)]))


def _without_thoughts(blocks: list[Block], report: Report) -> None:
    for block in blocks:
        if block.member == "reasoningContent":
            report.add(
                "dropped",
                f"/input/{block.at}",
                "thinking is off: no thought in the last assistant turn (T8b)",
                breaks_prefix=True,
            )
    blocks[:] = [block for block in blocks if block.member != "reasoningContent"]


def _continues(block: Block) -> bool:
    """Whether the turn is one the provider paused: it ends in a tool of its own."""
    return (
        block.member == "toolResult"
        or block.body.get("toolUse", {}).get("type") == "server_tool_use"
    )


# --- tools ---


def _tools(
    prompt: Prompt, items: list[IndexedItem], kind: Family, report: Report
) -> list[JsonObject]:
    """The tools that Converse knows of; those that Claude brings go to `_model_fields`. Calls in the history need them all (B1)."""
    tools = [
        made for at, tool in enumerate(prompt.tools) if (made := _tool(tool, at, kind, report))
    ]
    calls = {
        one.item.name: one.item for one in items if isinstance(one.item, (*CALLS, ServerToolCall))
    }
    if tools or not calls:
        return tools
    report.add(
        "generated",
        "/tools",
        "calls in the history need their tools: stubs for those that are not given (B1)",
    )
    return [_stub(name, server=isinstance(call, ServerToolCall)) for name, call in calls.items()]


def _stub(name: str, *, server: bool) -> JsonObject:
    if server:
        return {"systemTool": {"name": name}}
    return {
        "toolSpec": {"name": name, "inputSchema": {"json": {"type": "object", "properties": {}}}}
    }


def _tool(tool: ToolSpec, at: int, kind: Family, report: Report) -> JsonObject | None:
    if tool.native is not None:
        if tool.native.keys() & {"toolSpec", "systemTool"}:
            return tool.native
        if kind is not CLAUDE:
            report.dropped(f"/tools/{at}", "a hosted tool of another wire")
        return None
    schema: JsonObject = (
        tool.schema if isinstance(tool.schema, dict) else {"type": "object", "properties": {}}
    )
    if tool.format is not None:
        report.add(
            "changed",
            f"/tools/{at}/format",
            "Converse has no free-form tools: it takes one string, input",
        )
        schema = {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        }
    elif schema.get("type") != "object":
        report.add("changed", f"/tools/{at}/schema", "an input schema is of type object (B10)")
        schema = {
            "type": "object",
            **{key: value for key, value in schema.items() if key != "type"},
        }
    said = {"description": tool.description} if tool.description else {}
    strict = {"strict": tool.strict} if tool.strict is not None else {}
    return {"toolSpec": {"name": tool.name, **said, "inputSchema": {"json": schema}, **strict}}


FALLBACKS: Final[dict[Choice, tuple[Choice, ...]]] = {
    "tool": ("any", "auto"),
    "any": ("auto",),
    "auto": (),
}


def _choice(prompt: Prompt, where: Target, kind: Family, report: Report) -> JsonObject:
    """`toolChoice` in the nearest form the model takes (B17, T7); `{"none": {}}` is ours, for there is no such word (B16)."""
    asked = prompt.tool_choice
    if not prompt.tools or asked is None:
        return {}
    if asked == "none":
        return {"none": {}}
    words: dict[str, Choice] = {"auto": "auto", "required": "any"}
    wanted = words.get(asked, "tool")
    allowed = (
        kind.choices
        if where.traits.forced_tools
        else tuple(one for one in kind.choices if one == "auto")
    )
    found = next((one for one in (wanted, *FALLBACKS[wanted]) if one in allowed), None)
    if found != wanted:
        report.add(
            "changed",
            "/tool_choice",
            f"{where.model} takes no such choice: {found or 'left out'} (B17)",
        )
    return {found: {"name": asked} if found == "tool" else {}} if found else {}


def _tool_config(tools: list[JsonObject], choice: JsonObject, fields: JsonObject) -> JsonObject:
    if not tools:
        return {}
    said = (
        choice if choice.keys() <= {"auto", "any", "tool"} and "tool_choice" not in fields else {}
    )
    return {"tools": tools, **({"toolChoice": said} if said else {})}


# --- what goes to the model itself ---


def _model_fields(
    prompt: Prompt,
    turns: list[Turn],
    choice: JsonObject,
    where: Target,
    kind: Family,
    report: Report,
) -> JsonObject:
    """`additionalModelRequestFields`: only keys this very family knows, for others are refused (B22)."""
    fields: JsonObject = {}
    if prompt.top_k is not None and kind.top_k and where.traits.sampling:
        fields = nested(kind.top_k, prompt.top_k)
    elif prompt.top_k is not None:
        report.dropped("/top_k", f"{where.model} takes no top_k (B22)")
    if kind is CLAUDE:
        return merged(
            fields,
            {
                **_claude_tools(prompt, choice),
                **_claude_thinking(prompt, turns, choice, BuildContext(where, report)),
            },
        )
    if choice.keys() == {"none"}:
        report.dropped(
            "/tool_choice", "Converse has no word for none: the model may still call (B16)"
        )
    if prompt.parallel_tools is not None:
        report.dropped("/parallel_tools", "Converse cannot say how many calls may come at once")
    return merged(fields, _level(prompt, where, kind, report))


def _claude_tools(prompt: Prompt, choice: JsonObject) -> JsonObject:
    """What Converse has no words for: Claude's own tools, `none`, and one call at a time."""
    own = [
        tool.native
        for tool in prompt.tools
        if tool.native is not None and not tool.native.keys() & {"toolSpec", "systemTool"}
    ]
    form = next(iter(choice), "auto")
    fields: JsonObject = {"tools": own} if own else {}
    if form == "none":
        fields["tool_choice"] = {"type": "none"}
    elif prompt.parallel_tools is False and prompt.tools:
        fields["tool_choice"] = {
            "type": form,
            **choice.get(form, {}),
            "disable_parallel_tool_use": True,
        }
    return fields


def _claude_thinking(
    prompt: Prompt, turns: list[Turn], choice: JsonObject, context: BuildContext
) -> JsonObject:
    forced, unthought = bool(choice.keys() & {"any", "tool"}), _loop_without_thinking(turns)
    fields = thinking(
        prompt,
        context,
        max_tokens=prompt.max_output_tokens,
        forced_call=forced,
        unreasoned_tool_turn=unthought,
    )
    word = effort(prompt, context, fields.get("thinking"))
    if word:
        fields["output_config"] = {"effort": word}
    given = context.target.provider.headers.get("anthropic-beta", "").split(",")
    betas = [beta.strip() for beta in given if beta.strip()] + (
        [BINDING_BETA] if "block_binding" in fields.get("thinking", {}) else []
    )
    return {**fields, **({"anthropic_beta": betas} if betas else {})}


def _loop_without_thinking(turns: list[Turn]) -> bool:
    """Whether the last assistant turn called tools without having thought first (T8)."""
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    members = [block.member for block in last.blocks] if last else []
    return "toolUse" in members and members[0] != "reasoningContent" and turns[-1].role == "user"


def _level(prompt: Prompt, where: Target, kind: Family, report: Report) -> JsonObject:
    """Thinking of models that take a level."""
    asked = prompt.thinking
    if asked is None:
        return {}
    wanted = level(asked) or "medium"
    if wanted == "off" and kind.unthink:
        return dict(kind.unthink)
    if not kind.effort or wanted == "off":
        report.dropped(
            "/reasoning", f"{where.model}: thinking cannot be asked for or switched off here (B22)"
        )
        return {}
    word = nearest(wanted, kind.efforts)
    if word != asked.effort:
        report.add("changed", "/reasoning", f"{where.model}: effort {word}")
    return merged(dict(kind.think), nested(kind.effort, word))


# --- settings ---


def _inference(prompt: Prompt, raised: int | None, context: BuildContext) -> JsonObject:
    """`inferenceConfig`. raised: `maxTokens` context.target a thinking budget raised it."""
    for name in ELSEWHERE:
        if getattr(prompt, name) is not None:
            context.report.dropped(f"/{name}", f"Converse has no {name}")
    config: JsonObject = {}
    most = raised or prompt.max_output_tokens
    ceiling = context.target.traits.max_output
    if most is not None and ceiling and most > ceiling:
        context.report.add(
            "changed", "/max_output_tokens", f"{context.target.model} gives at most {ceiling} (S2)"
        )
        most = ceiling
    if most is not None:
        config["maxTokens"] = most
    for name, wire in (("temperature", "temperature"), ("top_p", "topP")):
        config.update(_sampling(name, wire, getattr(prompt, name), context))
    if stop := [text for text in prompt.stop if text.strip()]:
        config["stopSequences"] = stop
    return config


def _sampling(name: str, wire: str, value: float | None, context: BuildContext) -> JsonObject:
    if value is None:
        return {}
    if not context.target.traits.sampling:
        context.report.dropped(
            f"/{name}", f"{context.target.model} takes no sampling parameters (S1)"
        )
        return {}
    if not 0 <= value <= 1:
        context.report.add("changed", f"/{name}", "between 0 and 1 (B23)")
    return {wire: min(1.0, max(0.0, value)) if not 0 <= value <= 1 else value}


def _output_config(prompt: Prompt, kind: Family, report: Report) -> JsonObject:
    """The schema is a JSON text inside the JSON."""
    if prompt.output_schema is None:
        return {}
    schema = (
        strict_schema(prompt.output_schema, "messages", "/output_schema", report)
        if kind is CLAUDE
        else prompt.output_schema
    )
    definition = {"schema": msgspec.json.encode(schema).decode("utf-8")}
    return {
        "outputConfig": {
            "textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}
        }
    }


def _plain(prompt: Prompt, fields: JsonObject, kind: Family, report: Report) -> JsonObject:
    body: JsonObject = {}
    if metadata := _metadata(prompt.metadata or {}, report):
        body["requestMetadata"] = metadata
    if prompt.service_tier in TIERS:
        body["serviceTier"] = {"type": TIERS[prompt.service_tier]}
    elif prompt.service_tier:
        report.dropped("/service_tier", f"one of {', '.join(TIERS)}")
    paths = (
        [*(STOP_PATHS if prompt.stop else []), *([THOUGHT_PATH] if "thinking" in fields else [])]
        if kind is CLAUDE
        else []
    )
    return {**body, "additionalModelResponseFieldPaths": paths} if paths else body


def _metadata(given: dict[str, str], report: Report) -> dict[str, str]:
    fits = {
        key: value
        for key, value in given.items()
        if METADATA.fullmatch(key) and (not value or METADATA.fullmatch(value))
    }
    kept = dict(list(fits.items())[:METADATA_PAIRS])
    for key in given.keys() - kept.keys():
        report.dropped(
            f"/metadata/{key}", f"at most {METADATA_PAIRS} pairs of at most 256 plain characters"
        )
    return kept


# --- caching ---


class _Cacheable(NamedTuple):
    """Where cache points can stand."""

    turns: list[Turn]
    system: list[System]
    texts: list[JsonObject]
    tools: list[JsonObject]


def _cache(prompt: Prompt, places: _Cacheable, kind: Family, report: Report) -> None:
    """`auto` marks the end of the tools, of the system prompt and of the last turn; breakpoints the end of their items (B14)."""
    if prompt.cache is None:
        return
    if not kind.caches:
        report.dropped("/cache", "the model caches nothing (B14)")
        return
    options = prompt.cache if isinstance(prompt.cache, CacheOptions) else CacheOptions()
    if options.ttl and options.ttl not in LIFETIMES:
        report.dropped("/cache/ttl", f"one of {', '.join(sorted(LIFETIMES))}")
    point = {
        "cachePoint": {
            "type": "default",
            **({"ttl": options.ttl} if options.ttl in LIFETIMES else {}),
        }
    }
    if options.breakpoints:
        _mark_items(set(sorted(options.breakpoints)[-BREAKPOINTS:]), point, places, report)
        return
    for place, found in (("tools", places.tools), ("system", places.texts)):
        if found and place in kind.caches:
            found.append(point)
    _mark(places.turns[-1], len(places.turns[-1].blocks), point, report)


def _mark_items(wanted: set[int], point: JsonObject, places: _Cacheable, report: Report) -> None:
    for turn in places.turns:
        last = {block.at: n + 1 for n, block in enumerate(turn.blocks)}
        for behind in sorted((last[at] for at in wanted & last.keys()), reverse=True):
            _mark(turn, behind, point, report)
    marked = (
        [n + 1 for n, one in enumerate(places.system) if one.at in wanted] if places.texts else []
    )
    for behind in reversed(marked):
        places.texts.insert(behind, point)


NOT_BEFORE: Final = frozenset({"document", "video", "reasoningContent", "cachePoint"})
"""Members directly behind which no cache point may stand."""


def _mark(turn: Turn, behind: int, point: JsonObject, report: Report) -> None:
    """A cache point behind that many blocks, or as near before that as one may stand."""
    while behind and turn.blocks[behind - 1].member in NOT_BEFORE:
        behind -= 1
    if behind:
        turn.blocks.insert(behind, Block(turn.role, point, -1))
    else:
        report.dropped("/cache", "there is no place for a cache point in this turn (B14)")


__all__ = ["build", "family_of"]
