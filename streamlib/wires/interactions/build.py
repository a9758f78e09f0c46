"""Builds a Gemini Interactions request from a `Prompt`.

Items become steps one to one (`build_steps`); this file writes the settings. Interactions are not
stored unless `Prompt.extra` requests it, continues a stored one or runs in the background, so
signed reasoning is sent back instead. A decoded request without `store` is sent without it.
Numbers such as I3 are the rows of the rule table in docs/wires/interactions.md.
"""

from __future__ import annotations

from typing import Final

from streamlib.request.history import IndexedItem
from streamlib.request.prompt import Prompt
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib.wires.interactions.build_steps import leading_system, steps
from streamlib.wires.interactions.settings import MODEL_SETTINGS, SETTINGS, wire_tools
from streamlib.wires.settings import without_settings
from streamlib_parsers.items import JsonObject
from streamlib_parsers.stream_error import invalid_request

STATE: Final = frozenset({"previous_interaction_id", "continuation_token"})
"""Fields with which a request needs no input of its own."""

STORED: Final = frozenset({"previous_interaction_id", "background"})
"""Fields of requests whose interaction is stored unless `store` is false."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body.

    Args:
        prompt: the settings; its own input is not read.
        items: the repaired and downgraded history, with positions in the prompt's input.
        context: the target, and the report that is filled.

    Returns:
        The body, without headers of its own.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is nothing to send, and no
            stored interaction is continued.
    """
    extra = prompt.extra or {}
    system, items = leading_system(prompt, items, context.report)
    sent = steps(items, context)
    if not sent and not STATE & extra.keys():
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    is_agent = bool(extra.get("agent")) or context.target.traits.agent
    # The order of the keys is fixed: the body is a cache prefix.
    body: JsonObject = {"agent" if is_agent else "model": context.target.model}
    if system:
        body["system_instruction"] = system
    if prompt.tools:
        body["tools"] = wire_tools(prompt, context.report)
    if sent:
        body["input"] = sent
    body["stream"] = prompt.stream is not False
    # An agent keeps its state itself. A decoded request that leaves it to the server what it stores
    # may be continued next.
    if not is_agent and "store" not in extra and prompt.extra_wire != "interactions":
        body["store"] = bool(prompt.background) or any(extra.get(name) for name in STORED)
    if is_agent:
        reason = f"{context.target.model} is an agent, which takes no such setting"
        prompt = without_settings(prompt, MODEL_SETTINGS, reason, context.report)
    body.update(SETTINGS.write(prompt, context))
    return BuiltRequest(body, merged_extra=("agent",))
