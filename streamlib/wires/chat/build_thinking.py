"""How much the model may think, in the fields of one provider's Chat (`ChatShape.thinking`).

A level that the model does not take becomes the nearest one. A budget becomes a level if only
levels are taken, and the other way round. Every difference from the request is in the report.
"""

from __future__ import annotations

from streamlib.providers.shapes import Thinking
from streamlib.request.context import BuildContext
from streamlib.request.effort import BUDGETS, level, nearest
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import ReasoningOptions
from streamlib.request.target import Target
from streamlib_parsers.items import JsonObject


def thinking_fields(options: ReasoningOptions | None, context: BuildContext) -> JsonObject:
    """The body's fields for thinking, empty if nothing was requested or nothing can be sent."""
    target, report = context.target, context.report
    style = target.provider.chat.thinking
    if options is None:
        return {}
    if style is None:
        report.dropped("/reasoning", f"{target.provider.name} has no field for thinking")
        return {}
    if not target.traits.thinking:
        report.dropped("/reasoning", f"{target.model} cannot think")
        return {}
    for name in ("summary", "display"):
        if getattr(options, name) is not None:
            report.dropped(f"/reasoning/{name}", f"Chat has no {name} of reasoning")
    if options.effort == "off":
        return _off(style, context)
    return merged(style.on, _amount(options, style, context))


def thinks(options: ReasoningOptions | None, target: Target) -> bool:
    """Whether the model will think, as far as the request determines it."""
    if options is None:
        return target.traits.thinking_default
    return options.effort != "off"


def _off(style: Thinking, context: BuildContext) -> JsonObject:
    """Thinking off, or as little as the model can."""
    target = context.target
    if style.off is not None and target.traits.thinking_off:
        return style.off
    lowest = nearest("off", target.traits.efforts)
    if style.effort and lowest:
        context.report.add(
            "changed", "/reasoning", f"{target.model} always thinks: effort {lowest}"
        )
        return nested(style.effort, style.words.get(lowest, lowest))
    context.report.dropped("/reasoning", f"thinking cannot be switched off at {target.model}")
    return {}


def _amount(options: ReasoningOptions, style: Thinking, context: BuildContext) -> JsonObject:
    """A level or a number of tokens, whichever the provider takes."""
    name, report = context.target.provider.name, context.report
    if options.budget is not None and style.budget:
        return nested(style.budget, options.budget)
    requested = level(options)
    if requested is None:
        # Thinking without an amount: some providers have a switch for it.
        if not style.on and not style.plain:
            report.dropped("/reasoning", f"{name} wants a level")
        return style.plain
    if style.effort:
        return nested(style.effort, _effort(requested, options, style, context))
    if style.budget:
        tokens = BUDGETS[requested]
        report.add("changed", "/reasoning", f"{name} takes tokens, not levels: {tokens}")
        return nested(style.budget, tokens)
    report.add("changed", "/reasoning", f"{name} has no levels: thinking is switched on")
    return {}


def _effort(
    requested: str, options: ReasoningOptions, style: Thinking, context: BuildContext
) -> str:
    """The provider's name of the level; reported if it differs from what was requested."""
    allowed = context.target.traits.efforts
    effort = requested
    # A model without a list of levels takes whatever is sent.
    if allowed and requested not in allowed:
        effort = nearest(requested, allowed) or requested
    wire_effort = style.words.get(effort, effort)
    if options.effort != wire_effort:
        context.report.add("changed", "/reasoning", f"{context.target.model}: effort {wire_effort}")
    return wire_effort
