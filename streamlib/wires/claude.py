"""What Claude takes and refuses on every wire that carries it: thinking, effort, its own tools.

Rules have the numbers of the rule table in docs/wires/messages.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol, TypeVar

from streamlib.providers.models import Traits
from streamlib.request.effort import BUDGETS, level, nearest
from streamlib.request.history import OUTPUTS, IndexedItem
from streamlib.request.prompt import Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.target import BuildContext, Target
from streamlib.wires.settings import without_settings
from streamlib_parsers.items import (
    JsonObject,
    Message,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)

MIN_BUDGET: Final = 1024
"""The smallest thinking budget the API takes, in tokens."""

THINKING_ON: Final = ("enabled", "adaptive")
"""Types of `thinking` with which the model thinks."""
OFF: Final = ("disabled", "between_tools")
"""Types of `thinking` with which the model does not think first."""
BINDING: Final = "block_binding"
"""The key of `thinking` for `Prompt.thinking_mismatch`."""
SAMPLING: Final = ("temperature", "top_p", "top_k")
MIN_THINKING_TOP_P: Final = 0.95
"""The smallest `top_p` that the API takes while the model thinks."""


def thinking(
    prompt: Prompt,
    context: BuildContext,
    *,
    max_tokens: int | None,
    forced_call: bool,
    unreasoned_tool_turn: bool,
) -> JsonObject:
    """`thinking` if the prompt sets it and the model takes it, else `{}`.

    `max_tokens` is returned beside it when a budget raised it.

    Args:
        max_tokens: the request's `max_tokens`; None if it has none.
        forced_call: whether the tool choice forces a call.
        unreasoned_tool_turn: whether it continues a tool turn that began without reasoning.
    """
    options = prompt.thinking
    if options is None:
        return {}
    target, report = context.target, context.report
    if not target.traits.thinking:
        report.dropped("/reasoning", f"{target.model} cannot think")
        return {}
    if options.effort == "off":
        return _off(options, context)
    if options.effort_only:
        return {}
    if _takes_adaptive(options, target):
        if forced_call and not target.traits.forced_while_adaptive:
            report.dropped("/reasoning", "the model does not think where a call is forced")
            return {}
        if options.effort is not None and options.budget is not None:
            report.dropped("/reasoning/budget", f"{target.model} takes a level, no tokens")
        return _adaptive(options, prompt.thinking_mismatch)
    fields = _budget(options, max_tokens, prompt.thinking_mismatch, context)
    if forced_call or unreasoned_tool_turn:
        report.dropped(
            "/reasoning",
            "thinking cannot be on with a forced tool choice, "
            "or in a tool turn that began without it",
        )
        return {}
    if options.budget is None:
        tokens = fields["thinking"]["budget_tokens"]
        reason = f"{target.model} takes tokens, not levels: {tokens}"
        report.add("changed", "/reasoning", reason)
    return fields


def report_unsent_mismatch(
    prompt: Prompt, thinking: JsonObject | None, context: BuildContext
) -> None:
    """Reports `Prompt.thinking_mismatch` where the request's `thinking` does not have it."""
    if prompt.thinking_mismatch is not None and BINDING not in (thinking or {}):
        reason = "it is a part of thinking that is switched on"
        context.report.dropped("/thinking_mismatch", reason)


def _off(options: ReasoningOptions, context: BuildContext) -> JsonObject:
    target = context.target
    form = target.traits.thinking_off
    if not form:
        context.report.dropped("/reasoning", f"{target.model} always thinks")
        return {}
    if options.off_form is not None and form == Traits().thinking_off:
        # nothing special is known of the model: the form that the caller names is sent
        form = options.off_form
    return {"thinking": {"type": form}}


def off(kind: str, budget: int | None, display: str | None) -> ReasoningOptions | Literal["off"]:
    """What a decoded `thinking` of a type of `OFF` is in `Prompt`."""
    if kind == "disabled" and budget is None and display is None:
        return "off"
    off_form = None if kind == "disabled" else kind
    return ReasoningOptions("off", budget, display=display, off_form=off_form)


def _takes_adaptive(options: ReasoningOptions, target: Target) -> bool:
    """Whether to send adaptive thinking. A budget stays a budget if the model takes budgets."""
    forms = target.traits.thinking
    if "adaptive" not in forms:
        return False
    return options.budget is None or "budget" not in forms


def _adaptive(options: ReasoningOptions, mismatch: str | None) -> JsonObject:
    return {"thinking": _with_options({"type": "adaptive"}, options, mismatch)}


def _with_options(
    fields: JsonObject, options: ReasoningOptions, mismatch: str | None
) -> JsonObject:
    if options.display:
        fields["display"] = options.display
    if mismatch:
        fields[BINDING] = {"prefix_mismatch_behavior": mismatch}
    return fields


def _budget(
    options: ReasoningOptions,
    max_tokens: int | None,
    mismatch: str | None,
    context: BuildContext,
) -> JsonObject:
    """Thinking with a budget, which must stay below `max_tokens`."""  # rule T1
    target, report = context.target, context.report
    # a budget of 0 counts as none; without a level, the one for `medium` is used
    requested = options.budget or BUDGETS[options.effort or "medium"]
    budget = max(MIN_BUDGET, requested)
    if options.budget is not None and budget != options.budget:
        report.add("changed", "/reasoning", f"a budget is at least {MIN_BUDGET} tokens")
    fields: JsonObject = {"type": "enabled", "budget_tokens": budget}
    fields = _with_options(fields, options, mismatch)
    if max_tokens is None or max_tokens > budget:
        return {"thinking": fields}
    report.add("changed", "/max_output_tokens", "raised above the thinking budget")
    limit = target.traits.max_output or budget + max_tokens
    # the text keeps its `max_tokens`, up to half of the model's limit
    text_tokens = min(max_tokens, limit // 2)
    fitted = min(budget, limit - text_tokens)
    if fitted != budget:
        report.add(
            "changed",
            "/reasoning",
            f"{target.model} writes {limit} tokens at most: {fitted} for thinking",
        )
    fields["budget_tokens"] = fitted
    return {"thinking": fields, "max_tokens": min(fitted + max_tokens, limit)}


def without_refused_while_thinking(
    prompt: Prompt, thinking: JsonObject | None, context: BuildContext
) -> Prompt:
    """The prompt without sampling parameters that the model refuses beside `thinking`.

    Args:
        thinking: the `thinking` that is sent.
    """  # rule S1
    if context.target.traits.sampling_while_thinking:
        return prompt
    if thinking is None or thinking.get("type") not in THINKING_ON:
        return prompt
    refused = ["top_k"]
    if prompt.temperature != 1:
        refused.append("temperature")
    if prompt.top_p is not None and not MIN_THINKING_TOP_P <= prompt.top_p <= 1:
        refused.append("top_p")
    reason = f"{context.target.model} takes none while it thinks"
    return without_settings(prompt, refused, reason, context.report)


def without_second_sampling(prompt: Prompt, context: BuildContext) -> Prompt:
    """Newer models take `temperature` or `top_p`, not both."""  # rule S1
    if context.target.traits.both_samplings or prompt.temperature is None or prompt.top_p is None:
        return prompt
    second = "top_p"
    # The default temperature changes nothing.
    if prompt.temperature == 1:
        second = "temperature"
    reason = f"{context.target.model} takes a temperature or a top_p, not both"
    return without_settings(prompt, (second,), reason, context.report)


def effort(prompt: Prompt, context: BuildContext, thinking: JsonObject | None) -> str | None:
    """The effort to send, at a level the model takes.

    Args:
        thinking: the `thinking` that is sent. Its adaptive form has an effort. A budget has one if
            the caller sets both; without thinking, `ReasoningOptions.effort_only` sends one.
    """
    options = prompt.thinking
    if options is None or not _sends_effort(options, thinking):
        return None
    requested = level(options)
    if requested is None:
        return None
    target = context.target
    allowed = target.traits.efforts
    if options.effort is not None and requested in allowed:
        return requested
    chosen = nearest(requested, allowed)
    context.report.add("changed", "/reasoning", f"{target.model}: effort {chosen or 'left out'}")
    return chosen


def _sends_effort(options: ReasoningOptions, thinking: JsonObject | None) -> bool:
    if thinking is None:
        return options.effort_only
    if thinking.get("type") == "enabled":
        return options.effort is not None and options.budget is not None
    return thinking.get("type") == "adaptive"


def unpaired_server_calls(entries: Sequence[IndexedItem]) -> set[int]:
    """Positions of server tool calls to drop, because their result is missing.

    Calls in the last assistant turn are kept, since that turn may still be running.
    """  # rule A15
    result_ids: set[str] = set()
    last_assistant = -1
    for index, entry in enumerate(entries):
        if isinstance(entry.item, ServerToolResult):
            result_ids.add(entry.item.call_id)
        if _is_assistant(entry.item):
            last_assistant = index
    # the last turn starts after the last item that is not the assistant's
    turn_start = last_assistant
    while turn_start >= 0 and _is_assistant(entries[turn_start].item):
        turn_start -= 1
    unpaired: set[int] = set()
    for entry in entries[: max(turn_start, 0)]:
        item = entry.item
        if isinstance(item, ServerToolCall) and item.call_id not in result_ids:
            unpaired.add(entry.position)
    return unpaired


class ContentBlock(Protocol):
    """The part of a wire's content block that decides where it may be in a turn."""

    @property
    def role(self) -> str:
        """The role of its turn."""
        ...

    @property
    def item_index(self) -> int:
        """The index of its item."""
        ...

    @property
    def is_reasoning(self) -> bool:
        """Whether it is reasoning."""
        ...

    @property
    def is_call(self) -> bool:
        """Whether it is a call that the caller answers."""
        ...

    @property
    def is_result(self) -> bool:
        """Whether it is the result of such a call."""
        ...


BlockT = TypeVar("BlockT", bound=ContentBlock)


class ContentTurn(Protocol[BlockT]):
    """A run of blocks of one role."""

    @property
    def role(self) -> str:
        """The role of all of them."""
        ...

    @property
    def blocks(self) -> list[BlockT]:
        """The blocks."""
        ...


def put_results_first(turns: Iterable[ContentTurn[BlockT]], report: Report) -> None:
    """Puts tool results first in the user's turns."""  # rules A6, B6
    for turn in turns:
        if turn.role != "user" or len(turn.blocks) == 1:
            continue
        # a stable sort: results keep their order among themselves, other blocks too
        ordered = sorted(turn.blocks, key=lambda block: not block.is_result)
        if ordered == turn.blocks:
            continue
        report.add(
            "repaired",
            f"/input/{turn.blocks[0].item_index}",
            "tool results are moved before other content",
            breaks_prefix=True,
        )
        turn.blocks[:] = ordered


def is_unreasoned_tool_turn(turns: Sequence[ContentTurn[BlockT]]) -> bool:
    """Whether the request continues a turn that called tools and began without reasoning."""
    # rule T8
    if turns[-1].role != "user":
        return False
    for turn in reversed(turns):
        if turn.role == "assistant":
            calls_tools = any(block.is_call for block in turn.blocks)
            return calls_tools and not turn.blocks[0].is_reasoning
    return False


def drop_final_reasoning(blocks: list[BlockT], report: Report) -> list[BlockT]:
    """Drops reasoning at the end of a turn.

    It ends a turn if the call after it was truncated, and therefore is not sent.
    """  # rule A14
    remaining: list[BlockT] = []
    dropped: list[BlockT] = []
    is_end = True
    for block in reversed(blocks):
        if block.role == "assistant" and block.is_reasoning and is_end:
            dropped.append(block)
            continue
        is_end = block.role != "assistant"
        remaining.append(block)
    for block in reversed(dropped):
        report.dropped(f"/input/{block.item_index}", "a turn does not end with reasoning")
    remaining.reverse()
    return remaining


def _is_assistant(item: ResponseItem) -> bool:
    """Whether an item is part of an assistant turn."""
    if isinstance(item, Message):
        return item.role == "assistant"
    return not isinstance(item, OUTPUTS)


def wants_user_turn(thinking: JsonObject | None, context: BuildContext) -> bool:
    """Whether a request that ends with a turn of the assistant needs a user turn, with a report.

    Some models go on with what the assistant began, but none while it thinks.
    """
    is_on = thinking is not None and thinking.get("type") in THINKING_ON
    if context.target.traits.prefill and not is_on:
        return False
    reason = f"{context.target.model} wants a user turn last: 'Continue.' added"
    context.report.add("generated", "/input", reason)
    return True


def is_thinking_off(thinking: JsonObject | None, context: BuildContext) -> bool:
    """Whether the model does not think: the request says so, or it is the model's default."""
    if thinking is not None:
        return bool(thinking.get("type") == "disabled")
    # A model without a known limit is unknown itself.
    traits = context.target.traits
    return not traits.thinking_default and bool(traits.max_output)


def drop_reasoning(blocks: list[BlockT], report: Report) -> None:
    """Drops reasoning from the last assistant turn if thinking is off (T8b)."""
    for block in blocks:
        if block.is_reasoning:
            report.add(
                "dropped",
                f"/input/{block.item_index}",
                "thinking is off: no reasoning in the last assistant turn",
                breaks_prefix=True,
            )
    blocks[:] = [block for block in blocks if not block.is_reasoning]
