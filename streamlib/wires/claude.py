"""What Claude takes and refuses on every wire that carries it (Messages, Converse): thinking, effort, tools of its own.

Rules have the numbers of the rule table in docs/wires/messages.md.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.request.context import BuildContext
from streamlib.request.effort import BUDGETS, level, nearest
from streamlib.request.history import OUTPUTS, IndexedItem
from streamlib.request.prompt import Prompt, ReasoningOptions
from streamlib.request.target import Target
from streamlib_parsers.items import JsonObject, Message, ServerToolCall, ServerToolResult

BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
"""Needed wherever `block_binding` is sent."""


def thinking(
    prompt: Prompt,
    context: BuildContext,
    *,
    max_tokens: int | None,
    forced: bool,
    unthought: bool,
) -> JsonObject:
    """`thinking`, context.target it was asked for and can be, and `max_tokens`, context.target a budget raised it.

    forced: the choice of a tool forces a call. unthought: the request goes on amid a tool turn that was begun without a thought.
    """
    asked = prompt.thinking
    if asked is None:
        return {}
    if not context.target.traits.thinking:
        context.report.dropped("/reasoning", f"{context.target.model} cannot think")
        return {}
    if asked.effort == "off":
        return _off(context)
    shape = (
        _adaptive(asked)
        if _is_adaptive(asked, context.target)
        else _budget(asked, max_tokens, context)
    )
    if shape["thinking"]["type"] == "enabled" and (forced or unthought):
        context.report.dropped(
            "/reasoning",
            "thinking cannot be on with a forced tool choice, or amid a tool turn begun without it (T6, T8)",
        )
        return {}
    if prompt.thinking_mismatch and shape["thinking"]["type"] == "adaptive":
        shape["thinking"]["block_binding"] = {"prefix_mismatch_behavior": prompt.thinking_mismatch}
    return shape


def _off(context: BuildContext) -> JsonObject:
    if not context.target.traits.thinking_off:
        context.report.dropped("/reasoning", f"{context.target.model} always thinks (T4)")
        return {}
    return {"thinking": {"type": context.target.traits.thinking_off}}


def _is_adaptive(asked: ReasoningOptions, where: Target) -> bool:
    forms = where.traits.thinking
    return "adaptive" in forms and (asked.budget is None or "budget" not in forms)


def _adaptive(asked: ReasoningOptions) -> JsonObject:
    return {
        "thinking": {"type": "adaptive", **({"display": asked.display} if asked.display else {})}
    }


def _budget(asked: ReasoningOptions, max_tokens: int | None, context: BuildContext) -> JsonObject:
    budget = max(1024, asked.budget or BUDGETS[asked.effort or "medium"])
    if asked.budget is not None and budget != asked.budget:
        context.report.add("changed", "/reasoning", "a budget is at least 1024 tokens (T1)")
    shape: JsonObject = {
        "type": "enabled",
        "budget_tokens": budget,
        **({"display": asked.display} if asked.display else {}),
    }
    if max_tokens is None or max_tokens > budget:
        return {"thinking": shape}
    context.report.add("changed", "/max_output_tokens", "raised above the thinking budget (T1)")
    ceiling = context.target.traits.max_output or budget + max_tokens
    fitted = min(
        budget, ceiling - min(max_tokens, ceiling // 2)
    )  # the text keeps its room, up to half of all there is
    if fitted != budget:
        context.report.add(
            "changed",
            "/reasoning",
            f"{context.target.model} writes {ceiling} tokens at most: {fitted} for thinking",
        )
    return {
        "thinking": {**shape, "budget_tokens": fitted},
        "max_tokens": min(fitted + max_tokens, ceiling),
    }


def effort(prompt: Prompt, context: BuildContext, shape: JsonObject | None) -> str | None:
    """The effort beside adaptive thinking, in a word the model takes. shape: the `thinking` that is sent."""
    asked = prompt.thinking
    if asked is None or (shape or {}).get("type") != "adaptive":
        return None
    wanted = level(asked)
    if wanted is None:
        return None
    allowed = context.target.traits.efforts
    if asked.effort is None or wanted not in allowed:
        chosen = nearest(wanted, allowed)
        context.report.add(
            "changed", "/reasoning", f"{context.target.model}: effort {chosen or 'left out'}"
        )
        return chosen
    return wanted


def unpaired_server_calls(items: list[IndexedItem]) -> set[int]:
    """Server tool calls whose result never came (A15), outside the last assistant turn (which may still be running)."""
    results = {one.item.call_id for one in items if isinstance(one.item, ServerToolResult)}
    said = [n for n, one in enumerate(items) if _is_assistant(one.item)]
    heard = [n for n, one in enumerate(items) if not _is_assistant(one.item)]
    last_turn = max((n for n in heard if said and n < said[-1]), default=-1)
    calls = ((n, one) for n, one in enumerate(items) if isinstance(one.item, ServerToolCall))
    return {one.position for n, one in calls if one.item.call_id not in results and n < last_turn}  # type: ignore[union-attr]


def _is_assistant(item: Any) -> bool:
    return not isinstance(item, OUTPUTS) and not (
        isinstance(item, Message) and item.role != "assistant"
    )
