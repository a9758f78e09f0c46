"""A `Prompt` as an OpenAI Responses request.

Items map one to one (`responses_input`, rules R1 to R8); this file writes the settings. Responses are not stored unless `store` is
asked for (`extra`, or the provider's own values), so what the model sealed is asked for and sent back instead. Numbers are the rows
of the rule table in docs/wires/responses.md:

S1 `strict` is always sent: one left out counts as true     S4 sampling only where the model does not think
S2 effort is a word the model takes                         S5 keys and identifiers have a ceiling; longer ones are hashed
S3 sealed thoughts are asked for only where it can think    S6 a choice of tools needs tools
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
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import strict_schema
from streamlib.request.target import BuiltRequest, Target
from streamlib.wires.responses.build_input import InputObject, ResponsesContext, wire_input
from streamlib_parsers.items import JsonObject, ToolSpec

CHOICES: Final = ("auto", "required", "none")
KEY_LENGTH: Final = 64
IDENTIFIER_LENGTH: Final = 128
LIFETIMES: Final = {"5m": "30m", "1h": "12h", "24h": "12h"}
"""Cache lifetimes of other wires, and the nearest here; the wire's own are 30m and 12h."""
ELSEWHERE: Final = ("top_k", "presence_penalty", "frequency_penalty", "seed", "thinking_mismatch")
"""Settings that other wires have and Responses has not."""
STATE: Final = frozenset({"previous_response_id", "conversation", "prompt"})
"""Fields with which a request needs no input of its own."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body."""
    stored = _stored(prompt, context.target)
    sent = wire_input(items, ResponsesContext(context.target, context.report, stored))
    if not sent and not STATE.intersection(prompt.extra or {}):
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    body: JsonObject = {"model": context.target.model}
    if prompt.instructions:
        body["instructions"] = prompt.instructions
    if prompt.tools:
        body["tools"] = [_tool(tool, at, context.report) for at, tool in enumerate(prompt.tools)]
    body["input"] = [one.body for one in _marked(sent, prompt, context.report)]
    body["stream"] = prompt.stream is not False
    body["store"] = stored
    body.update(_choice(prompt, context.report))
    body.update(_reasoning(prompt, context))
    body.update(_text(prompt, context.report))
    body.update(_sampling(prompt, context.target, body, context.report))
    body.update(_include(prompt, context.target, body))
    body.update(_cache(prompt, context.report))
    body.update(_plain(prompt, context.report))
    return BuiltRequest(body)


def _stored(prompt: Prompt, where: Target) -> bool:
    """Whether the server keeps the response: as asked, else as the provider has it, else no."""
    values = {
        "store": False,
        **where.provider.defaults,
        **(prompt.extra or {}),
        **where.provider.overrides,
    }
    return bool(values["store"])


# --- tools ---


def _tool(tool: ToolSpec, at: int, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    said = {"name": tool.name, **({"description": tool.description} if tool.description else {})}
    if tool.format is not None:
        return {"type": "custom", **said, "format": tool.format}
    schema = tool.schema or {"type": "object", "properties": {}}
    if schema.get("type") != "object":
        report.add("changed", f"/tools/{at}/schema", "parameters are of type object")
        schema = {**schema, "type": "object"}
    if tool.strict:
        schema = strict_schema(schema, "responses", f"/tools/{at}/schema", report)
    return {"type": "function", **said, "parameters": schema, "strict": bool(tool.strict)}


def _choice(prompt: Prompt, report: Report) -> JsonObject:
    """S6: only with tools."""
    body: JsonObject = {}
    if prompt.tool_choice is not None:
        body["tool_choice"] = _chosen(prompt)
    if prompt.parallel_tools is not None:
        body["parallel_tool_calls"] = prompt.parallel_tools
    if prompt.tools or not body:
        return body
    for name in ("tool_choice", "parallel_tools"):
        if getattr(prompt, name) is not None:
            report.dropped(f"/{name}", "there are no tools (S6)")
    return {}


def _chosen(prompt: Prompt) -> Any:
    """The word, or the tool in the flat form of its kind."""
    name = prompt.tool_choice
    if name in CHOICES:
        return name
    tool = next((tool for tool in prompt.tools if tool.name == name), None)
    native = (tool.native if tool else None) or {}
    if native.get("type", "function") not in ("function", "custom"):
        return {
            "type": native["type"],
            **({"server_label": native["server_label"]} if "server_label" in native else {}),
        }
    return {
        "type": native.get("type", "custom" if tool and tool.format is not None else "function"),
        "name": name,
    }


# --- thinking ---


def _reasoning(prompt: Prompt, context: BuildContext) -> JsonObject:
    asked = prompt.thinking
    if asked is None:
        return {}
    if not context.target.traits.thinking:
        context.report.dropped("/reasoning", f"{context.target.model} cannot think")
        return {}
    if asked.display is not None:
        context.report.dropped(
            "/reasoning/display", "Responses has no display: it shows summaries only"
        )
    effort = _effort(prompt, context)
    said = {"effort": effort, "summary": asked.summary}
    body = {key: value for key, value in said.items() if value is not None}
    return {"reasoning": body} if body else {}


def _effort(prompt: Prompt, context: BuildContext) -> str | None:
    """S2: a budget is a level here; a level the model does not take becomes the nearest."""
    asked = prompt.thinking
    wanted = level(asked) if asked else None
    if asked is None or wanted is None:
        return None
    if wanted == "off" and context.target.traits.thinking_off:
        return "none"
    effort = (
        wanted
        if wanted in context.target.traits.efforts
        else nearest(wanted, context.target.traits.efforts)
    )
    if asked.budget is not None or effort != wanted:
        words = f"effort {effort or 'left out'}"
        context.report.add(
            "changed",
            "/reasoning",
            f"{context.target.model}: {words} (S2)"
            if asked.effort
            else f"Responses takes no budget: {words} (S2)",
        )
    return effort


def _thinks(where: Target, body: JsonObject) -> bool:
    effort = body.get("reasoning", {}).get("effort")
    return effort != "none" if effort else where.traits.thinking_default


def _include(prompt: Prompt, where: Target, body: JsonObject) -> JsonObject:
    """S3: what the server does not keep must come back sealed."""
    sealed = where.traits.thinking and (not body["store"] or "reasoning" in body)
    wanted = ["reasoning.encrypted_content"] if sealed else []
    if prompt.logprobs is not None and not _rejects_sampling(where, body):
        wanted.append("message.output_text.logprobs")
    return {"include": wanted} if wanted else {}


# --- settings ---


def _text(prompt: Prompt, report: Report) -> JsonObject:
    text: JsonObject = {}
    if prompt.verbosity:
        text["verbosity"] = prompt.verbosity
    own = (prompt.extra or {}).get(
        "text"
    )  # a format in `extra` is the caller's, whole: ours is not mixed into it
    if prompt.output_schema is not None and not (isinstance(own, dict) and "format" in own):
        title = str(prompt.output_schema.get("title") or "output")
        name = fit_names([title], WIRE_SPECS["responses"].tool_names).get(title, title)
        schema = strict_schema(prompt.output_schema, "responses", "/output_schema", report)
        text["format"] = {"type": "json_schema", "name": name, "schema": schema, "strict": True}
    return {"text": text} if text else {}


def _rejects_sampling(where: Target, body: JsonObject) -> bool:
    return not where.traits.sampling and _thinks(where, body)


def _sampling(prompt: Prompt, where: Target, body: JsonObject, report: Report) -> JsonObject:
    """S4."""
    asked = {"temperature": prompt.temperature, "top_p": prompt.top_p, "logprobs": prompt.logprobs}
    given = {name: value for name, value in asked.items() if value is not None}
    if _rejects_sampling(where, body):
        for name in given:
            report.dropped(f"/{name}", f"{where.model} takes no {name} while it thinks (S4)")
        return {}
    alternatives = given.pop("logprobs", None)
    return {**given, **({"top_logprobs": alternatives} if alternatives else {})}


def _plain(prompt: Prompt, report: Report) -> JsonObject:
    """Settings that only need their name, and those that are not there."""
    for name in ELSEWHERE:
        if getattr(prompt, name) is not None:
            report.dropped(f"/{name}", f"Responses has no {name}")
    if prompt.stop:
        report.dropped("/stop", "Responses has no stop sequences")
    if prompt.n not in (None, 1):
        report.dropped("/n", "Responses gives one answer")
    body = {
        "max_output_tokens": prompt.max_output_tokens,
        "metadata": prompt.metadata,
        "service_tier": prompt.service_tier,
        "safety_identifier": _fitted(prompt.user_id, IDENTIFIER_LENGTH, "/user_id", report),
        "prompt_cache_key": _fitted(prompt.conversation_id, KEY_LENGTH, "/conversation_id", report),
    }
    return {name: value for name, value in body.items() if value is not None}


def _fitted(value: str | None, longest: int, path: str, report: Report) -> str | None:
    """S5: the value, or its SHA-256 in 64 hexadecimal digits."""
    if value is None or len(value) <= longest:
        return value
    report.add("changed", path, f"longer than {longest} characters: its hash is sent (S5)")
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


# --- caching ---


def _lifetime(options: CacheOptions, report: Report) -> JsonObject:
    ttl = LIFETIMES.get(options.ttl or "", options.ttl)
    if ttl != options.ttl:
        report.add("changed", "/cache/ttl", f"Responses keeps prefixes 30m or 12h: {ttl}")
    return {"ttl": ttl} if ttl else {}


def _cache(prompt: Prompt, report: Report) -> JsonObject:
    """`auto` is what the API does anyway, beside breakpoints too; only a lifetime needs a word."""
    lifetime = _lifetime(prompt.cache, report) if isinstance(prompt.cache, CacheOptions) else {}
    return {"prompt_cache_options": lifetime} if lifetime else {}


def _marked(sent: list[InputObject], prompt: Prompt, report: Report) -> list[InputObject]:
    """Breakpoints stand on the last part of an item, at most four of them; they live as long as the request's options say."""
    if not isinstance(prompt.cache, CacheOptions):
        return sent
    for at in sorted(prompt.cache.breakpoints)[-4:]:
        parts = next(
            (
                _parts(one.body)
                for one in reversed(sent)
                if one.one.position == at and _parts(one.body)
            ),
            None,
        )
        if parts:
            parts[-1] = {**parts[-1], "prompt_cache_breakpoint": {"mode": "explicit"}}
        else:
            report.dropped(
                f"/cache/breakpoints/{at}", "the item has no part that can carry a breakpoint"
            )
    return sent


def _parts(body: JsonObject) -> list[JsonObject]:
    """The parts of what the caller says: only those take a breakpoint."""
    parts = body.get("content" if body.get("role", "assistant") != "assistant" else "output")
    return parts if isinstance(parts, list) else []
