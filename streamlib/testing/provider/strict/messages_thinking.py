"""Rules of Anthropic's Messages API for thinking: its forms, other settings, signatures.

Numbers are those of docs/wires/messages.md. What a model accepts is in
`streamlib.providers.models`; rules of a model apply only to names of Claude.
"""

from __future__ import annotations

from typing import Final

from streamlib.providers.models import traits
from streamlib.testing.provider.strict.ledger import Signed
from streamlib.testing.provider.strict.messages import NEW_VERSION, blocks_of, has_beta
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    all_blocks,
    check_claude_budget,
    is_claude,
    is_integer,
    object_of,
    string,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

SAMPLING: Final = ("temperature", "top_p", "top_k")
THINKING_BLOCKS: Final = ("thinking", "redacted_thinking")


def thinking_form(request: StrictRequest) -> str:
    """The form of thinking that the request enables; "" if it has none."""
    return string(object_of(request.body.get("thinking")).get("type"))


def check_thinking_form(request: StrictRequest) -> None:
    """The form of thinking is known, and the model accepts it (T2-T4; pydantic-ai's probes)."""
    form = thinking_form(request)
    if "thinking" not in request.body:
        return
    if form not in ("enabled", "adaptive", "disabled", "between_tools"):
        raise Rejection(
            f"thinking: Input tag '{form}' found using 'type' does not match any of the expected "
            "tags: 'adaptive', 'between_tools', 'disabled', 'enabled'"
        )
    if not is_claude(request):
        return
    accepted = traits(request.model)
    if form == "enabled" and "budget" not in accepted.thinking:
        raise Rejection(
            'thinking: "thinking.type.enabled" is not supported for this model. Use '
            '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )
    if form == "adaptive" and "adaptive" not in accepted.thinking:
        raise Rejection("thinking: adaptive thinking is not supported on this model")
    if form in ("disabled", "between_tools") and accepted.thinking and not accepted.thinking_off:
        raise Rejection(f'thinking: "thinking.type.{form}" is not supported for this model.')


def check_budget(request: StrictRequest) -> None:
    """The budget is 1024 tokens or more, and below ``max_tokens``.

    With interleaved thinking and tools it may be larger (docs, "Extended thinking").
    """  # rule T1
    thinking = object_of(request.body.get("thinking"))
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not is_integer(budget):
        raise Rejection("thinking.enabled.budget_tokens: Field required")
    is_interleaved = has_beta(request, "interleaved-thinking") and request.body.get("tools")
    check_claude_budget(thinking, None if is_interleaved else request.body["max_tokens"])


def check_output_limit(request: StrictRequest) -> None:
    """``max_tokens`` is not more than the model's maximum."""  # rule S2
    longest = traits(request.model).max_output
    requested = request.body["max_tokens"]
    if is_claude(request) and longest is not None and requested > longest:
        if has_beta(request, "output-"):
            return
        raise Rejection(
            f"max_tokens: {requested} > {longest}, which is the maximum allowed number of output "
            f"tokens for {request.model}"
        )


def check_effort(request: StrictRequest) -> None:
    """The model has the level of effort, and has it without thinking if that is off (T5, S4)."""
    effort = object_of(request.body.get("output_config")).get("effort")
    if effort is None or not is_claude(request):
        return
    accepted = traits(request.model)
    if effort not in accepted.efforts:
        raise Rejection(f"output_config.effort: '{effort}' is not supported on this model")
    if thinking_form(request) == "disabled" and accepted.off_efforts:
        if effort not in accepted.off_efforts:
            raise Rejection(
                f"output_config.effort: '{effort}' is not supported with thinking disabled"
            )


def check_sampling(request: StrictRequest) -> None:
    """Newer models and versions accept no sampling; some not both fields (S1; litellm#15097)."""
    for name in SAMPLING:
        if name not in request.body:
            continue
        if request.headers.get("anthropic-version", "") >= NEW_VERSION:
            raise Rejection(f"{name}: Extra inputs are not permitted")
        if is_claude(request) and not traits(request.model).sampling:
            raise Rejection(f"`{name}` is deprecated for this model.")
    is_pair = "temperature" in request.body and "top_p" in request.body
    if is_pair and is_claude(request) and not traits(request.model).both_samplings:
        raise Rejection(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only "
            "one."
        )
    temperature = request.body.get("temperature", 0)
    if not 0 <= temperature <= 1:
        raise Rejection("temperature: range: 0..1")


def check_sampling_beside_thinking(request: StrictRequest) -> None:
    """With thinking: temperature is 1, ``top_p`` at least 0.95, and no ``top_k`` (S1, B2).

    Source: docs, "Extended thinking", feature compatibility.
    """
    if thinking_form(request) not in ("enabled", "adaptive") or not is_claude(request):
        return
    if request.body.get("temperature", 1) != 1:
        raise Rejection("`temperature` may only be set to 1 when thinking is enabled.")
    if request.body.get("top_p", 1) < 0.95:
        raise Rejection("`top_p` must be greater than or equal to 0.95 when thinking.")
    if "top_k" in request.body:
        raise Rejection("`top_k` must be unset when thinking is enabled.")


def check_choice_beside_thinking(request: StrictRequest) -> None:
    """Thinking with a budget allows no forced call."""  # rule T6
    choice = object_of(request.body.get("tool_choice")).get("type")
    if thinking_form(request) == "enabled" and choice in ("any", "tool"):
        raise Rejection("Thinking may not be enabled when tool_choice forces tool use.")


def check_prefill(request: StrictRequest) -> None:
    """The final turn is an assistant's only if the model accepts that (A12, A13).

    A turn that the provider paused may be sent back. Sources: claude-code#52433, vercel/ai#12296.
    """
    last = objects_in(request.body["messages"])[-1]
    if last["role"] != "assistant":
        return
    blocks = blocks_of(last)
    kinds = [block["type"] for block in blocks]
    if "server_tool_use" in kinds or "mcp_tool_use" in kinds or kinds[-1:] == ["compaction"]:
        return
    if is_claude(request) and not traits(request.model).prefill:
        raise Rejection(
            "This model does not support assistant message prefill. The conversation must end with "
            "a user message."
        )
    text = string(last["content"])
    if kinds[-1:] == ["text"]:
        text = string(blocks[-1]["text"])
    if text != text.rstrip():
        raise Rejection("messages: final assistant content cannot end with trailing whitespace")


def check_final_thinking(request: StrictRequest) -> None:
    """No assistant turn ends with a thinking block (A14, B6)."""
    for n, turn in enumerate(objects_in(request.body["messages"])):
        blocks = blocks_of(turn)
        if turn["role"] == "assistant" and blocks and blocks[-1]["type"] in THINKING_BLOCKS:
            raise Rejection(
                f"messages.{n}: The final block in an assistant message cannot be `thinking`."
            )


def check_thinking_first(request: StrictRequest) -> None:
    """With a budget, a turn within a loop of calls begins with thinking (T8; opencode#3077)."""
    turns = objects_in(request.body["messages"])
    if thinking_form(request) != "enabled" or len(turns) < 2:
        return
    n = _last_assistant(turns)
    if n is None or not _is_result_turn(turns[-1]) or not _calls(turns[n]):
        return
    first = blocks_of(turns[n])[0]["type"]
    if first not in THINKING_BLOCKS:
        raise Rejection(
            f"messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{first}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


def check_thinking_off(request: StrictRequest) -> None:
    """If thinking is off, a final assistant turn contains none (T8b; forgecode#1853)."""
    last = objects_in(request.body["messages"])[-1]
    is_off = thinking_form(request) == "disabled"
    if not is_off or last["role"] != "assistant":
        return
    for block in blocks_of(last):
        if block["type"] in THINKING_BLOCKS:
            raise Rejection(
                "When thinking is disabled, an `assistant` message in the final position cannot "
                "contain `thinking`."
            )


def check_signatures(request: StrictRequest) -> None:
    """Each thinking block has the signature that was issued with its text."""  # rule T10
    for path, _, block in all_blocks(request):
        if block["type"] in THINKING_BLOCKS and _signed(request, block) is None:
            field = "signature"
            if block["type"] == "redacted_thinking":
                field = "data"
            raise Rejection(f"{path}: Invalid `{field}` in `{block['type']}` block")


def check_latest_blocks(request: StrictRequest) -> None:
    """The latest assistant turn has all thinking blocks of its response, in order.

    Source: anthropics/claude-code#63574.
    """  # rule T9
    turns = objects_in(request.body["messages"])
    n = _last_assistant(turns)
    if n is None:
        return
    records = []
    for block in blocks_of(turns[n]):
        if block["type"] in THINKING_BLOCKS:
            record = _signed(request, block)
            if record is not None:
                records.append(record)
    for response_id in dict.fromkeys(record.response_id for record in records):
        own = [record for record in records if record.response_id == response_id]
        if [record.index for record in own] != list(range(own[0].count)):
            raise Rejection(
                f"messages.{n}: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the "
                "original response."
            )


def _signed(request: StrictRequest, block: JsonObject) -> Signed | None:
    if block["type"] == "redacted_thinking":
        return request.ledger.read(request.wire_api, block["data"], "")
    return request.ledger.read(request.wire_api, block["signature"], string(block["thinking"]))


def _last_assistant(turns: list[JsonObject]) -> int | None:
    for n in reversed(range(len(turns))):
        if turns[n]["role"] == "assistant":
            return n
    return None


def _is_result_turn(turn: JsonObject) -> bool:
    return any(block["type"] == "tool_result" for block in blocks_of(turn))


def _calls(turn: JsonObject) -> bool:
    return any(block["type"] == "tool_use" for block in blocks_of(turn))


THINKING_RULES: Final[tuple[Rule, ...]] = (
    check_thinking_form,
    check_budget,
    check_output_limit,
    check_effort,
    check_sampling,
    check_sampling_beside_thinking,
    check_choice_beside_thinking,
    check_prefill,
    check_final_thinking,
    check_thinking_first,
    check_thinking_off,
    check_signatures,
    check_latest_blocks,
)
"""The rules of this module."""
