"""A `Prompt` as a Bedrock Converse request: `messages`, `system`, `inferenceConfig` and so on.

Turns are made in `build_turns.py`, their blocks in `build_content.py`, the rest in
`settings.py`, `build_tools.py` and `build_cache.py`. What differs between the models behind
this one API is a table in `streamlib/wires/bedrock.py`. Each rule that the API enforces with a
400 is met by one small function; every change is in the report. Numbers such as B1 are the rows of
the rule table in docs/wires/converse.md, T1, A13 and S1 those of docs/wires/messages.md.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.providers.names import Charset, fit_names
from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.history import CALLS, OUTPUTS, IndexedItem
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib.wires import claude
from streamlib.wires.bedrock import CLAUDE, family_of
from streamlib.wires.converse import build_tools, settings
from streamlib.wires.converse.build_cache import Cacheable, add_cache_points
from streamlib.wires.converse.build_parts import ConverseContext
from streamlib.wires.converse.build_turns import (
    fix_last_turn,
    split_leading_system,
    turns_of,
)
from streamlib_parsers.items import JsonObject

KEYS: Final = (
    "system",
    "inferenceConfig",
    "toolConfig",
    settings.MODEL_FIELDS,
    "outputConfig",
    "requestMetadata",
    "serviceTier",
    "additionalModelResponseFieldPaths",
)
"""Keys of the body behind the messages, in their order."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body, without the model: only the path names it."""
    target, report = context.target, context.report
    family = family_of(target)
    context = ConverseContext(target, report, family)
    if family is CLAUDE:
        items = _fit_ids_to_claude(items, report)
    system, items = split_leading_system(prompt, items)
    turns = turns_of(items, system, context)
    choice = build_tools.tool_choice(prompt, context)
    fields = settings.model_fields(
        prompt, choice, context, unreasoned_tool_turn=claude.is_unreasoned_tool_turn(turns)
    )
    raised_max_tokens = fields.pop("max_tokens", None)
    prompt = settings.fitted(prompt, raised_max_tokens, fields.get("thinking"), context)
    fix_last_turn(turns, fields.get("thinking"), context)
    tools = build_tools.tools(prompt, items, context)
    if family is CLAUDE and tools and not prompt.tools:
        # stubs describe the calls of the history; they are not to be called
        fields["tool_choice"] = {"type": "none"}
    system_blocks: list[JsonObject] = []
    if family.system:
        system_blocks = [{"text": text.text} for text in system]
    if prompt.cache is not None:
        cacheable = Cacheable(turns, system, system_blocks, tools)
        add_cache_points(prompt.cache, cacheable, family, report)

    messages: list[JsonObject] = []
    for turn in turns:
        content = [block.body for block in turn.blocks]
        messages.append({"role": turn.role, "content": content})
    optional = {
        **settings.SETTINGS.write(prompt, context),
        "system": system_blocks,
        "toolConfig": build_tools.tool_config(tools, choice, fields),
        settings.MODEL_FIELDS: fields,
        "additionalModelResponseFieldPaths": settings.response_field_paths(prompt, fields, context),
    }
    body: JsonObject = {"messages": messages}
    for key in KEYS:
        if optional.get(key):
            body[key] = optional[key]
    # Bedrock reads the betas from the body: `fields` has them.
    return BuiltRequest(body, headers_in_body=(ANTHROPIC_BETA,))


def _fit_ids_to_claude(items: list[IndexedItem], report: Report) -> list[IndexedItem]:
    """Renames call ids with `.` or `:`: Kimi makes them, Converse takes them, Claude not."""
    # rule B8
    call_ids: list[str] = []
    for entry in items:
        if isinstance(entry.item, CALLS + OUTPUTS):
            call_ids.append(entry.item.call_id)
    new_ids = fit_names(call_ids, Charset())
    fitted: list[IndexedItem] = []
    for entry in items:
        item = entry.item
        if isinstance(item, CALLS + OUTPUTS) and item.call_id in new_ids:
            report.add("renamed", f"{entry.path}/call_id", "Claude does not take this id")
            item = msgspec.structs.replace(item, call_id=new_ids[item.call_id])
        fitted.append(IndexedItem(entry.position, item))
    return fitted
