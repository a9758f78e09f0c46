"""Builds an OpenAI Responses request from a `Prompt`.

Items map one to one (`build_input`, rules R1 to R8); this file writes the settings. Responses are
not stored unless `store` is set (in `extra` or by the provider's values), so encrypted reasoning
is requested and sent back instead. Numbers are the rows of the rule table in
docs/wires/responses.md:

S1 `strict` is always sent: the API takes a missing one as true (`build_tools`)
S2 effort is a value that the model takes
S3 encrypted reasoning is requested only from models that think
S4 sampling only where the model does not think
S5 keys and identifiers have a maximum length; longer ones are hashed
S6 a tool choice needs tools
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from streamlib.errors import invalid_request
from streamlib.providers.names import fit_names
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.context import BuildContext
from streamlib.request.effort import level, nearest
from streamlib.request.history import IndexedItem
from streamlib.request.prompt import CacheOptions, Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT, strict_schema
from streamlib.request.target import BuiltRequest, Target
from streamlib.wires.responses.build_input import ResponsesContext, wire_input
from streamlib.wires.responses.build_input_rules import has_lifetimes, mark_cache
from streamlib.wires.responses.build_tools import wire_tools
from streamlib_parsers.items import JsonObject

CHOICES: Final = ("auto", "required", "none")
"""Tool choices that name no tool."""

KEY_LENGTH: Final = 64
"""Characters that `prompt_cache_key` may have."""

IDENTIFIER_LENGTH: Final = 128
"""Characters that `safety_identifier` may have."""

LIFETIMES: Final = {"5m": "30m", "1h": "12h", "24h": "12h"}
"""Cache lifetimes of other wires, and the nearest here; the wire's own are 30m and 12h."""

UNSUPPORTED: Final = ("top_k", "presence_penalty", "frequency_penalty", "seed", "thinking_mismatch")
"""Settings of `Prompt` that this wire lacks."""

ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"

STATE: Final = frozenset({"previous_response_id", "conversation", "prompt"})
"""Fields with which a request needs no input of its own."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body.

    Args:
        prompt: The settings; its own input is not read.
        items: The repaired and downgraded history, with positions in the prompt's input.
        context: The target, and the report that is filled.

    Returns:
        The body, without headers of its own.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is nothing to send, and no
            stored conversation is named.
    """
    target, report = context.target, context.report
    stored = _is_stored(prompt, target)
    sent = wire_input(items, ResponsesContext(target, report, stored))
    if not sent and not STATE.intersection(prompt.extra or {}):
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    # Instructions and tools are before the input: the body is a cache prefix.
    body: JsonObject = {"model": target.model}
    if prompt.instructions:
        body["instructions"] = prompt.instructions
    if prompt.tools:
        body["tools"] = wire_tools(prompt.tools, "/tools", report)
    mark_cache(sent, prompt, report)
    body["input"] = [sent_object.body for sent_object in sent]
    body["stream"] = prompt.stream is not False
    body["store"] = stored
    body.update(_choice_fields(prompt, report))
    reasoning = _reasoning(prompt, context)
    if reasoning:
        body["reasoning"] = reasoning
    text = _text(prompt, report)
    if text:
        body["text"] = text
    # These two depend on `reasoning` of the body.
    body.update(_sampling(prompt, target, body, report))
    merged_extra: tuple[str, ...] = ()
    include = _include(prompt, target, body)
    # The `include` of a decoded request replaces ours; a caller's own `extra` is sent as it is.
    if prompt.extra_wire is not None and "include" in (prompt.extra or {}):
        include = _decoded_include(prompt, context)
        merged_extra = ("include",)
    if include:
        body["include"] = include
    if not has_lifetimes(sent):
        body.update(_cache_options(prompt, report))
    body.update(_plain(prompt, report))
    return BuiltRequest(body, merged_extra=merged_extra)


def _is_stored(prompt: Prompt, target: Target) -> bool:
    """Whether the server keeps the response: by the request, else by the provider, else not."""
    provider = target.provider
    extra = prompt.extra or {}
    for values in (provider.overrides, extra, provider.defaults):
        if "store" in values:
            return bool(values["store"])
    # A response in the background is stored, or refused.
    return bool(prompt.background or extra.get("background"))


# --- tools ---


def _choice_fields(prompt: Prompt, report: Report) -> JsonObject:
    """S6: `tool_choice` and `parallel_tool_calls`."""
    if not prompt.tools:
        for name in ("tool_choice", "parallel_tools"):
            if getattr(prompt, name) is not None:
                report.dropped(f"/{name}", "there are no tools (S6)")
        return {}
    body: JsonObject = {}
    if prompt.tool_choice is not None:
        body["tool_choice"] = _choice(prompt, prompt.tool_choice)
    if prompt.parallel_tools is not None:
        body["parallel_tool_calls"] = prompt.parallel_tools
    return body


def _choice(prompt: Prompt, name: str) -> Any:
    """The choice, or the tool in the flat form of its kind."""
    if name in CHOICES:
        return name
    tool = next((tool for tool in prompt.tools if tool.name == name), None)
    if tool is None:
        return {"type": "function", "name": name}
    native = tool.native or {}
    kind = native.get("type")
    if kind is None:
        kind = "function" if tool.format is None else "custom"
    if kind in ("function", "custom"):
        return {"type": kind, "name": name}
    choice = {"type": kind}
    # An MCP server is named by its label.
    if "server_label" in native:
        choice["server_label"] = native["server_label"]
    return choice


# --- thinking ---


def _reasoning(prompt: Prompt, context: BuildContext) -> JsonObject:
    """`reasoning`, empty if nothing is to be sent."""
    options = prompt.thinking
    if options is None:
        return {}
    if not context.target.traits.thinking:
        context.report.dropped("/reasoning", f"{context.target.model} cannot think")
        return {}
    if options.display is not None:
        context.report.dropped(
            "/reasoning/display", "Responses has no display: it shows summaries only"
        )
    body: JsonObject = {}
    effort = _effort(options, context)
    if effort is not None:
        body["effort"] = effort
    if options.summary is not None:
        body["summary"] = options.summary
    return body


def _effort(options: ReasoningOptions, context: BuildContext) -> str | None:
    """S2: a budget becomes a level; a level that the model does not take becomes the nearest."""
    target = context.target
    requested = level(options)
    if requested is None:
        return None
    # A model that cannot be switched off gets its lowest level instead.
    if requested == "off" and target.traits.thinking_off:
        return "none"
    effort: str | None = requested
    if requested not in target.traits.efforts:
        effort = nearest(requested, target.traits.efforts)
    if options.budget is not None or effort != requested:
        sent = f"effort {effort or 'left out'}"
        cause = target.model if options.effort else "Responses takes no budget"
        context.report.add("changed", "/reasoning", f"{cause}: {sent} (S2)")
    return effort


def _thinks(target: Target, body: JsonObject) -> bool:
    effort = body.get("reasoning", {}).get("effort")
    if effort:
        return bool(effort != "none")
    return target.traits.thinking_default


def _include(prompt: Prompt, target: Target, body: JsonObject) -> list[str]:
    """S3: requests the encrypted form of reasoning that the server does not store."""
    include: list[str] = []
    if target.traits.thinking and (not body["store"] or "reasoning" in body):
        include.append(ENCRYPTED_REASONING)
    if prompt.logprobs is not None and not _rejects_sampling(target, body):
        include.append("message.output_text.logprobs")
    return include


def _decoded_include(prompt: Prompt, context: BuildContext) -> list[str]:
    """The elements that a decoded request included, as far as the model takes them."""
    include: list[str] = []
    for element in (prompt.extra or {})["include"] or ():
        if element == ENCRYPTED_REASONING and not context.target.traits.thinking:
            reason = f"{context.target.model} has no reasoning to encrypt (S3)"
            context.report.dropped("/extra/include", reason)
        else:
            include.append(element)
    return include


# --- settings ---


def _text(prompt: Prompt, report: Report) -> JsonObject:
    """`text`: verbosity and the output format, empty if nothing is to be sent."""
    text: JsonObject = {}
    if prompt.verbosity:
        text["verbosity"] = prompt.verbosity
    # A format in `extra` that has a type is complete: ours must not be mixed into it. Without one
    # it holds the name and the description.
    own = (prompt.extra or {}).get("text")
    own_format = own.get("format") if isinstance(own, dict) else None
    has_own_format = isinstance(own_format, dict) and "type" in own_format
    if prompt.schema == ANY_OBJECT and not has_own_format:
        text["format"] = {"type": "json_object"}
    elif prompt.schema is not None and not has_own_format:
        # The API requires a name, in the characters of a tool's name.
        title = str(prompt.schema.get("title") or "output")
        name = fit_names([title], WIRE_SPECS["responses"].tool_names).get(title, title)
        schema = strict_schema(prompt.schema, "responses", "/output_schema", report)
        text["format"] = {"type": "json_schema", "name": name, "schema": schema, "strict": True}
    return text


def _rejects_sampling(target: Target, body: JsonObject) -> bool:
    return not target.traits.sampling and _thinks(target, body)


def _sampling(prompt: Prompt, target: Target, body: JsonObject, report: Report) -> JsonObject:
    """S4: the sampling parameters."""
    if _rejects_sampling(target, body):
        for name in ("temperature", "top_p", "logprobs"):
            if getattr(prompt, name) is not None:
                report.dropped(f"/{name}", f"{target.model} takes no {name} while it thinks (S4)")
        return {}
    fields: JsonObject = {}
    if prompt.temperature is not None:
        fields["temperature"] = prompt.temperature
    if prompt.top_p is not None:
        fields["top_p"] = prompt.top_p
    if prompt.logprobs:
        fields["top_logprobs"] = prompt.logprobs
    return fields


def _plain(prompt: Prompt, report: Report) -> JsonObject:
    """Settings that only need their wire name; those that Responses lacks are reported."""
    for name in UNSUPPORTED:
        if getattr(prompt, name) is not None:
            report.dropped(f"/{name}", f"Responses has no {name}")
    if prompt.stop:
        report.dropped("/stop", "Responses has no stop sequences")
    if prompt.n not in (None, 1):
        report.dropped("/n", "Responses generates one response")
    user_id = _fitted(prompt.user_id, IDENTIFIER_LENGTH, "/user_id", report)
    cache_key = _fitted(prompt.conversation_id, KEY_LENGTH, "/conversation_id", report)
    body = {
        "max_output_tokens": prompt.max_output_tokens,
        "metadata": prompt.metadata,
        "service_tier": prompt.service_tier,
        "safety_identifier": user_id,
        "prompt_cache_key": cache_key,
        "background": prompt.background,
    }
    return {name: value for name, value in body.items() if value is not None}


def _fitted(value: str | None, max_length: int, path: str, report: Report) -> str | None:
    """S5: the value, or its SHA-256 in 64 hexadecimal digits."""
    if value is None or len(value) <= max_length:
        return value
    report.add("changed", path, f"longer than {max_length} characters: its hash is sent (S5)")
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


# --- caching ---


def _cache_options(prompt: Prompt, report: Report) -> JsonObject:
    """Only a lifetime needs a field: the API caches by itself, with breakpoints or without."""
    if not isinstance(prompt.cache, CacheOptions):
        return {}
    requested = prompt.cache.ttl
    ttl = LIFETIMES.get(requested or "", requested)
    if ttl != requested:
        report.add("changed", "/cache/ttl", f"Responses keeps prefixes 30m or 12h: {ttl}")
    if not ttl:
        return {}
    return {"prompt_cache_options": {"ttl": ttl}}
