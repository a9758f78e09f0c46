"""Builds an OpenAI Responses request from a `Prompt`.

Items map one to one (`build_input`); `settings` has the settings. Responses are not stored unless
`store` is set (in `extra` or by the provider's values), so encrypted reasoning is requested and
sent back instead. A decoded request without `store` is sent without it.
"""

from __future__ import annotations

from typing import Final

from streamlib.providers.wire_specs import OPENAI_BETA
from streamlib.request.headers import joined_lists
from streamlib.request.history import IndexedItem
from streamlib.request.prompt import Prompt
from streamlib.request.target import BuildContext, BuiltRequest, Target, continues_stored_history
from streamlib.wires.cache_marks import why_no_breakpoints
from streamlib.wires.responses.build_input import ResponsesContext, wire_input
from streamlib.wires.responses.build_input_rules import (
    drop_breakpoints,
    has_lifetimes,
    mark_cache,
)
from streamlib.wires.responses.build_tools import wire_tools
from streamlib.wires.responses.settings import (
    SETTINGS,
    fitted,
    has_own_include,
    is_stored,
    keeps_own_storage,
)
from streamlib.wires.settings import take
from streamlib_parsers.items import JsonObject
from streamlib_parsers.stream_error import invalid_request

STATE: Final = frozenset({"previous_response_id", "conversation", "prompt"})
"""Fields with which a request needs no input of its own."""


MULTI_AGENT_BETA: Final = "responses_multi_agent=v1"
"""Beta of a response of several agents (OpenAI's Python SDK 3.54, ``beta.responses``)."""

WITHOUT_BETAS: Final = ("azure",)
"""Providers that offer the same without a beta: Azure names its preview in the URL."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body.

    Args:
        prompt: the settings; its own input is not read.
        items: the repaired and downgraded history, with positions in the prompt's input.
        context: the target, and the report that is filled.

    Returns:
        The body, and the header with the betas that it needs.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is nothing to send, and no
            stored conversation is named.
    """
    target, report = context.target, context.report
    stored = is_stored(prompt, target)
    is_continued = continues_stored_history(prompt.extra, "responses")
    sent = wire_input(items, ResponsesContext(target, report, stored, is_continued))
    if not sent and not STATE.intersection(prompt.extra or {}):
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    # Instructions and tools are before the input: the body is a cache prefix.
    body: JsonObject = {"model": target.model}
    if prompt.instructions:
        body["instructions"] = prompt.instructions
    if prompt.tools:
        body["tools"] = wire_tools(prompt.tools, "/tools", report)
    why_not = why_no_breakpoints(target)
    if why_not is None:
        mark_cache(sent, prompt, report)
    else:
        drop_breakpoints(sent, prompt, report, why_not)
    # An empty list where items were given would say that there were none.
    if sent or not items:
        body["input"] = [sent_object.body for sent_object in sent]
    body["stream"] = prompt.stream is not False
    if not keeps_own_storage(prompt, target):
        body["store"] = stored
    body.update(SETTINGS.write(fitted(prompt, context), context))
    if has_lifetimes(sent):
        # Each breakpoint has its own.
        take(body, "prompt_cache_options.ttl")
    merged_extra: tuple[str, ...] = ()
    if has_own_include(prompt):
        merged_extra = ("include",)
    headers = _headers(prompt, target)
    # As the official SDKs do (Python 3.57), beside the header of the beta.
    query = "beta=true" if headers else ""
    return BuiltRequest(body, headers, merged_extra=merged_extra, query=query)


def _headers(prompt: Prompt, target: Target) -> dict[str, str]:
    """The betas that the caller names, then the one of several agents, in one header."""
    provider = target.provider
    if provider.name in WITHOUT_BETAS or not _has_agents(prompt, target):
        return {}
    betas = joined_lists(provider.headers.get(OPENAI_BETA, ""), MULTI_AGENT_BETA)
    return {OPENAI_BETA: ",".join(betas)}


def _has_agents(prompt: Prompt, target: Target) -> bool:
    """Whether the model may ask other agents (`multi_agent` of the body)."""
    for values in (prompt.extra or {}, target.provider.overrides, target.provider.defaults):
        if "multi_agent" in values:
            options = values["multi_agent"]
            return isinstance(options, dict) and options.get("enabled") is True
    return False
