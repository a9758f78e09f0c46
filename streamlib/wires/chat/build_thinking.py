"""How much the model may think, in the words of one provider's Chat Completions (`ChatShape.thinking`).

A level that the model does not take becomes the nearest, a budget becomes a level where only levels are taken and the other way
round; whatever differs from what was asked is in the report.
"""

from __future__ import annotations

from streamlib.providers.shapes import Thinking
from streamlib.request.context import BuildContext
from streamlib.request.effort import BUDGETS, level, nearest
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import ReasoningOptions
from streamlib.request.target import Target
from streamlib_parsers.items import JsonObject


def thinking_fields(asked: ReasoningOptions | None, context: BuildContext) -> JsonObject:
    """The fields of the body; {} context.target nothing was asked for or nothing can be said."""
    style = context.target.provider.chat.thinking
    if asked is None:
        return {}
    if style is None or not context.target.traits.thinking:
        context.report.dropped(
            "/reasoning",
            f"{context.target.model} cannot think"
            if style
            else f"{context.target.provider.name} has no word for thinking",
        )
        return {}
    for name in ("summary", "display"):
        if getattr(asked, name) is not None:
            context.report.dropped(f"/reasoning/{name}", f"Chat has no {name} of thoughts")
    return (
        _off(style, context)
        if asked.effort == "off"
        else merged(style.on, _amount(asked, style, context))
    )


def thinks(asked: ReasoningOptions | None, where: Target) -> bool:
    """Whether the model will think, as far as the request says so."""
    return where.traits.thinking_default if asked is None else asked.effort != "off"


def _off(style: Thinking, context: BuildContext) -> JsonObject:
    if style.off is not None and context.target.traits.thinking_off:
        return style.off
    least = nearest("off", context.target.traits.efforts)
    if style.effort and least:
        context.report.add(
            "changed", "/reasoning", f"{context.target.model} always thinks: effort {least}"
        )
        return nested(style.effort, style.words.get(least, least))
    context.report.dropped(
        "/reasoning", f"thinking cannot be switched off at {context.target.model}"
    )
    return {}


def _amount(asked: ReasoningOptions, style: Thinking, context: BuildContext) -> JsonObject:
    """A level or a number of tokens, whichever the provider takes."""
    if asked.budget is not None and style.budget:
        return nested(style.budget, asked.budget)
    wanted = level(asked)
    if wanted is None:
        if not (style.on or style.plain):
            context.report.dropped("/reasoning", f"{context.target.provider.name} wants a level")
        return style.plain
    if style.effort:
        return nested(style.effort, _word(wanted, asked, style, context))
    if style.budget:
        context.report.add(
            "changed",
            "/reasoning",
            f"{context.target.provider.name} takes tokens, not levels: {BUDGETS[wanted]}",
        )
        return nested(style.budget, BUDGETS[wanted])
    context.report.add(
        "changed",
        "/reasoning",
        f"{context.target.provider.name} has no levels: thinking is switched on",
    )
    return {}


def _word(wanted: str, asked: ReasoningOptions, style: Thinking, context: BuildContext) -> str:
    taken = context.target.traits.efforts
    effort = wanted if wanted in taken or not taken else nearest(wanted, taken) or wanted
    word = style.words.get(effort, effort)
    if asked.effort != word:
        context.report.add("changed", "/reasoning", f"{context.target.model}: effort {word}")
    return word
