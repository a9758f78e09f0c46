"""Builds a Gemini generateContent request from a `Prompt`.

Items become parts (`build_parts`), and parts become turns: runs of one role, in which the results
of calls stand apart from what the user wrote. Each rule that the API enforces with a 400 is met by
one small function, here, in `tools` or in `settings`; every change this makes is in the report.
Numbers such as G3 are the rows of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from streamlib.request.history import IndexedItem, system_text, turn_fields, without_turn_fields
from streamlib.request.json_objects import merged, without
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib.wires.gemini.build_parts import Part, PartRole, parts
from streamlib.wires.gemini.settings import SETTINGS, own_schema, without_cached
from streamlib.wires.gemini.tools import tool_config, tools
from streamlib.wires.settings import without_settings
from streamlib_parsers.items import JsonObject, Message, Text
from streamlib_parsers.stream_error import invalid_request

NO_SIGNATURE: Final = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""Documented value for a missing signature: base64 of `skip_thought_signature_validator`."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body. The model is in the URL.

    Args:
        prompt: the settings; its own input is not read.
        items: the repaired and downgraded history, with positions in the prompt's input.
        context: the target, and the report that is filled.

    Returns:
        The body, without headers of its own.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is no content to send.
    """
    system, items = _leading_system(prompt, items)
    fields = {entry.position: turn_fields(entry.item) for entry in items}
    items = [without_turn_fields(entry) for entry in items]
    if system and items and all(map(_is_empty_message, items)):
        # The instructions alone say what to do, and a request has a turn.
        turns: list[JsonObject] = [{"role": "user", "parts": [{"text": ""}]}]
    else:
        turns = _turns(parts(items, context), fields, context)
    offered = tools(prompt, context)
    config = tool_config(
        prompt, offered, context, replays_hosted_call=_has_hosted_tool_parts(turns)
    )
    openapi_schema = own_schema(prompt)
    if offered.sent and not context.target.traits.typed_tools:
        reason = f"{context.target.model} takes no output schema beside tools"
        prompt = without_settings(prompt, ("output_schema",), reason, context.report)
    # The order of the keys is fixed: the body is a cache prefix.
    body: JsonObject = {}
    if system:
        body["systemInstruction"] = {"parts": system}
    if offered.sent:
        body["tools"] = offered.sent
    if config:
        body["toolConfig"] = config
    body["contents"] = turns
    body.update(SETTINGS.write(prompt, context))
    merged_extra: tuple[str, ...] = ()
    own_config = (prompt.extra or {}).get("generationConfig")
    if isinstance(own_config, dict) and openapi_schema is None:
        # The prompt's schema replaces the one that the decoded request had.
        if "responseSchema" in own_config:
            reason = "the prompt's output schema is another one"
            context.report.dropped("/extra/generationConfig/responseSchema", reason)
        config = merged(body.get("generationConfig", {}), without(own_config, "responseSchema"))
        merged_extra = ("generationConfig",)
        if config:
            body["generationConfig"] = config
    body = without_cached(body, prompt, context.report)
    return BuiltRequest(body, merged_extra=merged_extra)


def _is_empty_message(entry: IndexedItem) -> bool:
    """Whether an item is a user message that has nothing but an empty text."""
    item = entry.item
    return isinstance(item, Message) and item.role == "user" and item.content in ((), (Text(""),))


def _leading_system(
    prompt: Prompt, items: list[IndexedItem]
) -> tuple[list[JsonObject], list[IndexedItem]]:
    """Parts for `systemInstruction`, and the items after the leading system messages."""
    system: list[JsonObject] = []
    if prompt.instructions:
        system.append({"text": prompt.instructions})
    count = 0
    for entry in items:
        item = entry.item
        if not isinstance(item, Message) or item.role not in ("system", "developer"):
            break
        count += 1
        part: JsonObject = {"text": system_text(item)}
        if len(item.content) == 1:
            part.update(item.content[0].native or {})
        if part["text"]:
            system.append(part)
    return system, items[count:]


def _has_hosted_tool_parts(turns: list[JsonObject]) -> bool:
    for turn in turns:
        for part in turn["parts"]:
            if "toolCall" in part or "toolResponse" in part:
                return True
    return False


# --- turns ---


def _turns(
    history: Iterable[Part], fields: Mapping[int, JsonObject], context: BuildContext
) -> list[JsonObject]:
    """Runs of one role, with the results of calls in turns of their own.

    Args:
        fields: position of an item -> the fields of its turn beside role and parts.
    """  # rules G1, G4
    turns: list[JsonObject] = []
    unbroken = list(_without_interruptions(history, context.report))
    for role, run in groupby(_with_ordered_results(unbroken, context.report), _turn_role):
        group = list(run)
        if role == "model":
            _add_stand_in(group, context)
        wire_role = "model" if role == "model" else "user"
        turn: JsonObject = {"role": wire_role, "parts": [part.body for part in group]}
        for part in group:
            turn = {**fields.get(part.position, {}), **turn}
        turns.append(turn)
    if not turns:
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    if _begins_with_call(turns[0]):
        context.report.add(
            "generated", "/input", "a call follows a user turn: 'Continue.' added before it"
        )
        turns.insert(0, {"role": "user", "parts": [{"text": "Continue."}]})
    return turns


def _turn_role(part: Part) -> PartRole:
    """The run that a part belongs to: an attachment is in a user turn after the results."""
    return "user" if part.role == "attachment" else part.role


def _begins_with_call(turn: JsonObject) -> bool:
    return turn["role"] == "model" and any("functionCall" in part for part in turn["parts"])


def _without_interruptions(history: Iterable[Part], report: Report) -> Iterator[Part]:
    """Moves user parts out from between calls and their results.

    A compaction of another wire is there once it has become user text.
    """  # rule G2
    open_calls: set[str | None] = set()
    buffered: list[Part] = []
    for part in history:
        if part.role == "user" and open_calls:
            report.add(
                "repaired",
                f"/input/{part.position}",
                "moved after the results of the calls before it",
            )
            buffered.append(part)
            continue
        is_attachment = part.role == "attachment"
        if buffered and not open_calls and not is_attachment:
            yield from buffered
            buffered.clear()
        if part.call_id is not None and not is_attachment:
            # A call opens its id, and its result, with the same id, closes it.
            if part.role == "result":
                open_calls.discard(part.call_id)
            else:
                open_calls.add(part.call_id)
        yield part
    yield from buffered


def _with_ordered_results(history: list[Part], report: Report) -> Iterator[Part]:
    """Puts the results after a turn in the order of its calls, then their attachments."""
    # rule G3
    call_order: dict[str, int] = {}
    for index, part in enumerate(history):
        if part.role == "model" and part.call_id is not None:
            call_order[part.call_id] = index

    def order_of_call(part: Part) -> int:
        # The call of a result may be in the cached content: such a result is first.
        return call_order.get(part.call_id or "", -1)

    for are_results, run in groupby(history, _is_result_or_attachment):
        if not are_results:
            yield from run
            continue
        group = list(run)
        results = [part for part in group if part.role == "result"]
        ordered = sorted(results, key=order_of_call)
        if ordered != results:
            report.add(
                "repaired",
                f"/input/{results[0].position}",
                "results are put in the order of their calls",
            )
        yield from ordered
        attachments = [part for part in group if part.role == "attachment"]
        yield from sorted(attachments, key=order_of_call)


def _is_result_or_attachment(part: Part) -> bool:
    return part.role in ("result", "attachment")


def _add_stand_in(step: list[Part], context: BuildContext) -> None:
    """G5: the first call of a step has its signature, else `NO_SIGNATURE`.

    Every step gets it, not only the last: a value that disappeared with the next user message would
    change earlier turns, and so the cached prefix.
    """
    if not context.target.traits.signed_calls:
        return
    for index, part in enumerate(step):
        if "functionCall" not in part.body:
            continue
        if not part.body.get("thoughtSignature"):
            context.report.add(
                "generated",
                f"/input/{part.position}/signature",
                "no signature of this model: sent with the stand-in",
            )
            step[index] = part._replace(body={**part.body, "thoughtSignature": NO_SIGNATURE})
        return
