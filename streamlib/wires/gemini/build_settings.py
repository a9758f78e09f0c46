"""A Gemini request beside its contents: tools, how they may be called, and generationConfig.

Rules have the numbers of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from streamlib.request.context import BuildContext
from streamlib.request.effort import BUDGETS, level, nearest
from streamlib.request.prompt import CacheOptions, Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.target import Target
from streamlib_parsers.items import JsonObject, ToolSpec

MODES: Final = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
"""Levels that the wire has words for."""
MOST_STOPS: Final = 5
DYNAMIC: Final = -1
"""A budget: as many tokens as the model thinks fit."""
CACHED: Final = {
    "systemInstruction": "/instructions",
    "tools": "/tools",
    "toolConfig": "/tool_choice",
}
"""What is part of cached content, and where it stands in the prompt."""

# --- tools ---


class Tools(NamedTuple):
    """`tools` as they are sent, and the names of the functions among them."""

    sent: list[JsonObject]
    functions: list[str]
    hosted: bool


def tools(prompt: Prompt, context: BuildContext) -> Tools:
    """Functions stand together context.target the first of them stood; hosted tools go as they are, context.target they may be mixed (G17)."""
    declarations: list[JsonObject] = []
    sent: list[JsonObject] = []
    own = any(tool.native is None or "functionDeclarations" in tool.native for tool in prompt.tools)
    hosted = False
    for at, tool in enumerate(prompt.tools):
        if tool.native is None:
            if not declarations:
                sent.append({"functionDeclarations": declarations})
            declarations.append(_declaration(tool, at, context.report))
        elif (
            "functionDeclarations" not in tool.native
            and own
            and not context.target.traits.mixed_tools
        ):
            context.report.dropped(
                f"/tools/{at}",
                f"{context.target.model} takes no hosted tool beside functions (G17)",
            )
        else:
            hosted |= "functionDeclarations" not in tool.native
            sent.append(tool.native)
    return Tools(
        sent,
        [one["name"] for tool in sent for one in tool.get("functionDeclarations") or ()],
        hosted,
    )


def _declaration(tool: ToolSpec, at: int, report: Report) -> JsonObject:
    body: JsonObject = {
        "name": tool.name,
        **({"description": tool.description} if tool.description else {}),
    }
    schema = tool.schema or {}
    if tool.strict:
        report.dropped(f"/tools/{at}/strict", "Gemini has no strict functions")
    if tool.format is not None:
        report.add(
            "changed",
            f"/tools/{at}/format",
            "Gemini has no free-form tools: it takes one string, input",
        )
        schema = {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        }
    if (
        schema.keys() <= BARE
        and not schema.get("properties")
        and not schema.get("additionalProperties")
    ):
        return body  # G13
    if schema.get("type") != "object":
        report.add("changed", f"/tools/{at}/schema", "parameters are of type object")
        schema = {**schema, "type": "object"}
    return {**body, "parametersJsonSchema": json_schema(schema, f"/tools/{at}/schema", report)}


def tool_config(
    prompt: Prompt,
    offered: Tools,
    replayed: bool,
    context: BuildContext,
) -> JsonObject:
    """replayed: a call of a hosted tool stands in the history."""
    config: JsonObject = {}
    choice = prompt.tool_choice
    if choice in MODES and (offered.functions or choice == "none") and offered.sent:
        config["functionCallingConfig"] = {"mode": MODES[choice]}
    elif choice in offered.functions:
        config["functionCallingConfig"] = {"mode": "ANY", "allowedFunctionNames": [choice]}
    elif choice not in (None, "auto", "none"):
        context.report.dropped("/tool_choice", "there is no such function to call (G15)")
    if prompt.parallel_tools is False:
        context.report.dropped(
            "/parallel_tools", "Gemini calls as many functions at once as it likes"
        )
    circulated = replayed or (offered.hosted and bool(offered.functions))
    if (
        circulated
        and "toolConfig.includeServerSideToolInvocations" not in context.target.provider.unsupported
    ):
        config["includeServerSideToolInvocations"] = True
    return config


# --- schemas ---

BARE: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "$schema"}
)
"""Keywords of a schema that says no more than that there are no arguments."""
UNKNOWN: Final = frozenset({"examples", "discriminator", "exclusiveMinimum", "exclusiveMaximum"})
FORMATS: Final = frozenset({"date-time", "date", "time"})
"""Formats of strings that are known."""
NAMED: Final = frozenset({"properties", "$defs", "definitions"})
NESTED: Final = frozenset(
    {"anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties", "not"}
)


def json_schema(node: Any, path: str, report: Report) -> Any:
    """The schema without what makes Gemini refuse it (G12); that moves into the description."""
    if isinstance(node, list):
        return [json_schema(child, f"{path}/{n}", report) for n, child in enumerate(node)]
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    texts = "string" in (kind if isinstance(kind, list) else [kind])
    moved = {
        key: value
        for key, value in node.items()
        if key in UNKNOWN or (key == "format" and texts and value not in FORMATS)
    }
    kept = {
        key: _child(key, value, path, report)
        for key, value in node.items()
        if key not in moved and key not in {"$schema", "const"}
    }
    if "const" in node:
        kept["enum"] = [node["const"]]
    if moved:
        report.add(
            "changed",
            path,
            f"not taken here, moved into the description: {', '.join(sorted(moved))} (G12)",
        )
        words = ", ".join(f"{key}: {value}" for key, value in moved.items())
        kept["description"] = (
            f"{kept['description']} ({words})" if kept.get("description") else f"({words})"
        )
    return kept


def _child(key: str, value: Any, path: str, report: Report) -> Any:
    if key in NAMED and isinstance(value, dict):
        return {
            name: json_schema(child, f"{path}/{key}/{name}", report)
            for name, child in value.items()
        }
    return json_schema(value, f"{path}/{key}", report) if key in NESTED else value


# --- generationConfig ---


def generation_config(prompt: Prompt, offered: Tools, context: BuildContext) -> JsonObject:
    """Everything about how the answer is made."""
    return {
        **_sampling(prompt, context),
        **_lengths(prompt, context),
        **_logprobs(prompt),
        **_thinking_config(prompt, context),
        **_output(prompt, offered, context),
    }


SAMPLING: Final = {"temperature": "temperature", "top_p": "topP", "top_k": "topK"}
PENALTIES: Final = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
PLAIN: Final = {"seed": "seed", "n": "candidateCount"}


def _sampling(prompt: Prompt, context: BuildContext) -> JsonObject:
    """G23: newer models have a mind of their own."""
    config: JsonObject = {}
    for table, taken in (
        (SAMPLING, context.target.traits.sampling),
        (PENALTIES, context.target.traits.penalties),
        (PLAIN, True),
    ):
        for name, word in table.items():
            value = getattr(prompt, name)
            if value is not None and taken:
                config[word] = value
            elif value is not None:
                context.report.dropped(f"/{name}", f"{context.target.model} does not take it (G23)")
    return config


def _lengths(prompt: Prompt, context: BuildContext) -> JsonObject:
    config: JsonObject = {}
    asked, ceiling = prompt.max_output_tokens, context.target.traits.max_output
    if asked is not None:
        config["maxOutputTokens"] = min(asked, ceiling or asked)
        if config["maxOutputTokens"] != asked:
            context.report.add(
                "changed", "/max_output_tokens", f"{context.target.model} gives at most {ceiling}"
            )
    stops = [text for text in prompt.stop if text]
    if len(stops) > MOST_STOPS:
        context.report.add("changed", "/stop", f"the first {MOST_STOPS} stop sequences (G24)")
    if stops:
        config["stopSequences"] = stops[:MOST_STOPS]
    return config


def _logprobs(prompt: Prompt) -> JsonObject:
    if prompt.logprobs is None:
        return {}
    return {"responseLogprobs": True, **({"logprobs": prompt.logprobs} if prompt.logprobs else {})}


def _output(prompt: Prompt, offered: Tools, context: BuildContext) -> JsonObject:
    if prompt.output_schema is None:
        return {}
    if offered.sent and not context.target.traits.typed_tools:
        context.report.dropped(
            "/output_schema", f"{context.target.model} takes no output schema beside tools (G18)"
        )
        return {}
    schema = json_schema(prompt.output_schema, "/output_schema", context.report)
    return {"responseMimeType": "application/json", "responseJsonSchema": schema}


# --- thinking: a budget or a level, never both (G10), and only in the form that the model takes (G11) ---


def _thinking_config(prompt: Prompt, context: BuildContext) -> JsonObject:
    asked = prompt.thinking
    if asked is None:
        return {}
    if not context.target.traits.thinking:
        context.report.dropped(
            "/reasoning", f"{context.target.model} takes no setting of thinking (G11)"
        )
        return {}
    if asked.effort == "off" or (asked.effort is None and asked.budget == 0):
        return {"thinkingConfig": _off(context)}
    shown = {} if asked.display == "omitted" else {"includeThoughts": True}
    config = {**shown, **_amount(asked, context)}
    return {"thinkingConfig": config} if config else {}


def _off(context: BuildContext) -> JsonObject:
    """As little as the model can."""
    takes_budget = "budget" in context.target.traits.thinking
    if takes_budget and context.target.traits.thinking_off:
        return {"thinkingBudget": 0}
    least: JsonObject = {"thinkingBudget": (context.target.traits.budgets or (0, 0))[0]}
    if not takes_budget:
        word = nearest("off", _levels(context.target))
        least = {"thinkingLevel": word.upper()} if word else {}
    context.report.add(
        "changed", "/reasoning", f"{context.target.model} always thinks: as little as it can (G11)"
    )
    return least


def _levels(where: Target) -> tuple[str, ...]:
    return tuple(word for word in where.traits.efforts if word in LEVELS)


def _amount(asked: ReasoningOptions, context: BuildContext) -> JsonObject:
    takes_budget, takes_level = (
        "budget" in context.target.traits.thinking,
        "level" in context.target.traits.thinking,
    )
    by_level = takes_level and (asked.effort is not None or not takes_budget)
    if asked.effort is not None and asked.budget is not None:
        context.report.dropped(
            "/reasoning/budget" if by_level else "/reasoning/effort",
            "a level or a budget, never both (G10)",
        )
    if asked.effort is None and asked.budget is None:
        return {}
    return _level(asked, context) if by_level else _budget(asked, context)


def _level(asked: ReasoningOptions, context: BuildContext) -> JsonObject:
    if asked.effort is None and asked.budget == DYNAMIC:
        return {}
    wanted = level(asked) or "high"
    word = nearest(wanted, _levels(context.target))
    if word != wanted or asked.effort is None:
        context.report.add(
            "changed", "/reasoning", f"{context.target.model}: level {word or 'left out'} (G11)"
        )
    return {"thinkingLevel": word.upper()} if word else {}


def _budget(asked: ReasoningOptions, context: BuildContext) -> JsonObject:
    tokens = asked.budget if asked.budget is not None else BUDGETS[asked.effort or "medium"]
    least, most = context.target.traits.budgets or (tokens, tokens)
    fitted = tokens if tokens == DYNAMIC else max(least, min(most, tokens))
    if asked.budget is not None and fitted != tokens:
        context.report.add(
            "changed",
            "/reasoning",
            f"{context.target.model} thinks with {least} to {most} tokens (G11)",
        )
    return {"thinkingBudget": fitted}


# --- the rest of the body ---


def plain(prompt: Prompt, context: BuildContext) -> JsonObject:
    """Settings that only need their name, and those that Gemini has none for."""
    body: JsonObject = {}
    if prompt.service_tier:
        body["serviceTier"] = prompt.service_tier
    if prompt.metadata and "labels" in context.target.provider.unsupported:
        context.report.dropped(
            "/metadata",
            f"{context.target.provider.name}: {context.target.provider.unsupported['labels']}",
        )
    elif prompt.metadata:
        body["labels"] = prompt.metadata
    if isinstance(prompt.cache, CacheOptions):
        context.report.dropped(
            "/cache", "Gemini caches by itself, or by another call (`cachedContent` in `extra`)"
        )
    for name in ("verbosity", "user_id"):
        if getattr(prompt, name) is not None:
            context.report.dropped(f"/{name}", f"Gemini has no {name}")
    return body


def without_cached(body: JsonObject, prompt: Prompt, report: Report) -> JsonObject:
    """G16: what is part of the cached content is not sent beside it."""
    if "cachedContent" not in (prompt.extra or {}):
        return body
    for field in CACHED.keys() & body.keys():
        report.dropped(CACHED[field], "it is part of the cached content (G16)")
    return {key: value for key, value in body.items() if key not in CACHED}
