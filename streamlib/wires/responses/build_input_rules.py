"""Rules of Responses for the complete list of input objects: the last step of `build_input`.

R1 … are the rows of the rule table in docs/wires/responses.md.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from streamlib.request.history import OUTPUTS, IndexedItem
from streamlib.request.json_objects import without_keys
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.wires.cache_marks import BREAKPOINT
from streamlib_parsers.items import (
    BUILT_IN_OUTPUTS,
    JsonObject,
    Message,
    Opaque,
    ResponseItem,
    ToolSearchOutput,
)
from streamlib_parsers.wires.responses.items import TO_ANSWER

OUTPUT_KINDS: Final = frozenset(kind for _, kind in TO_ANSWER.values())
"""Kinds of objects by which the caller answers a call of the wire's own kind."""


class InputObject(NamedTuple):
    """One object of the input, and the item it was made from."""

    body: JsonObject
    entry: IndexedItem


def match_output_kinds(sent: list[InputObject]) -> None:
    """Gives each output the kind that its call requires, whatever its class is."""  # rule R6
    kinds: dict[str, str] = {}
    for n, (body, entry) in enumerate(sent):
        kind = body.get("type")
        if kind in ("function_call", "custom_tool_call"):
            kinds[body["call_id"]] = f"{kind}_output"
        elif kind in ("function_call_output", "custom_tool_call_output"):
            # An output of an asynchronous tool may name the tool in place of the call.
            call_kind = kinds.get(body.get("call_id", ""), kind)
            sent[n] = InputObject({**body, "type": call_kind}, entry)


def put_back(item: Opaque, entry: IndexedItem, sent: list[InputObject], report: Report) -> None:
    """Inserts a content part of an unknown kind into its message, the last object so far."""
    native = item.native or {}
    if sent:
        message = sent[-1].entry.item
        if isinstance(message, Message) and message.id == native.get("item_id"):
            sent[-1].body["content"].insert(native["content_index"], item.payload)
            return
    report.dropped(entry.path, f"{item.kind} belongs to a message that is not here")


def without_empty_messages(sent: list[InputObject], report: Report) -> list[InputObject]:
    """R7: leaves out messages without content."""
    result: list[InputObject] = []
    for sent_object in sent:
        body, entry = sent_object
        if isinstance(entry.item, Message) and not body["content"]:
            report.dropped_message(entry.path)
        else:
            result.append(sent_object)
    return result


def without_unpaired(
    sent: list[InputObject], report: Report, *, is_continued: bool
) -> list[InputObject]:
    """R6: leaves out calls of the wire's own kinds without output, and outputs without call.

    Args:
        is_continued: the server stores what was before: the call of an output may be there.
    """
    call_ids: set[Any] = set()
    output_ids: set[Any] = set()
    for body, _ in sent:
        if body.get("type") in TO_ANSWER:
            call_ids.update(_ids(body))
        if body.get("type") in OUTPUT_KINDS:
            output_ids.update(_ids(body))
    result: list[InputObject] = []
    for sent_object in sent:
        body, entry = sent_object
        kind = str(body.get("type"))
        is_orphan = _is_output(sent_object) and call_ids.isdisjoint(_ids(body))
        if is_orphan and not is_continued:
            report.dropped(entry.path, f"{kind} without its call")
        elif _needs_output(sent_object) and output_ids.isdisjoint(_ids(body)):
            report.dropped(entry.path, f"{kind} without an output")
        else:
            result.append(sent_object)
    return result


def _is_output(sent_object: InputObject) -> bool:
    """Whether it is the caller's output for a call of the wire's own kind."""
    body, entry = sent_object
    if isinstance(entry.item, ToolSearchOutput) and body["call_id"] is None:
        # It follows its call, which has no id either.
        return False
    is_callers = isinstance(entry.item, (Opaque, *BUILT_IN_OUTPUTS))
    return is_callers and body.get("type") in OUTPUT_KINDS


def _needs_output(sent_object: InputObject) -> bool:
    """Whether the caller must answer this call in the same request."""
    body, entry = sent_object
    if body.get("type") not in TO_ANSWER or not isinstance(entry.item, Opaque):
        return False
    if body["type"] == "mcp_approval_request":
        # An approval may wait.
        return False
    # A shell in the provider's own container is answered by the provider.
    environment = body.get("environment") or {}
    return bool(environment.get("type") != "container_reference")


def _ids(body: JsonObject) -> list[Any]:
    return [body[key] for key in ("call_id", "id", "approval_request_id") if body.get(key)]


def without_stray_reasoning(sent: list[InputObject], report: Report) -> list[InputObject]:
    """R3: leaves out reasoning that no item of its own response follows."""
    result: list[InputObject] = []
    # The item that follows, if it is from a response.
    following: ResponseItem | None = None
    for sent_object in reversed(sent):
        body, entry = sent_object
        item = entry.item
        if body.get("type") != "reasoning":
            following = item if _is_from_response(item) else None
        elif following is None or not _can_share_response(item, following):
            report.dropped(entry.path, "reasoning without the item it produced")
            continue
        result.append(sent_object)
    result.reverse()
    return result


def _can_share_response(item: ResponseItem, other: ResponseItem) -> bool:
    if item.response_id is None or other.response_id is None:
        return True
    return item.response_id == other.response_id


def _is_from_response(item: ResponseItem) -> bool:
    if isinstance(item, Message):
        return item.role == "assistant"
    if isinstance(item, Opaque):
        return item.kind not in OUTPUT_KINDS
    return not isinstance(item, OUTPUTS + BUILT_IN_OUTPUTS)


def mark_cache(sent: list[InputObject], prompt: Prompt, report: Report) -> None:
    """Sets cache breakpoints on the last parts of the items named by `CacheOptions.breakpoints`.

    They live as long as `prompt_cache_options` of the request says. All are sent: the API writes
    the last four, and looks for the others.
    """
    if not isinstance(prompt.cache, CacheOptions):
        return
    for position in sorted(prompt.cache.breakpoints):
        parts = _parts_of_item(sent, position)
        if parts:
            # A breakpoint that the part has already may have a lifetime of its own.
            parts[-1] = {BREAKPOINT: {"mode": "explicit"}, **parts[-1]}
        else:
            report.dropped(
                f"/cache/breakpoints/{position}", "the item has no part that can carry a breakpoint"
            )


def drop_breakpoints(sent: list[InputObject], prompt: Prompt, report: Report, reason: str) -> None:
    """Leaves out all breakpoints, for a target that is not known to have them."""
    if isinstance(prompt.cache, CacheOptions):
        for position in prompt.cache.breakpoints:
            report.dropped(f"/cache/breakpoints/{position}", reason)
    for body, entry in sent:
        parts = _input_parts(body)
        for number, part in enumerate(parts):
            if BREAKPOINT in part:
                parts[number] = without_keys(part, BREAKPOINT)
                report.dropped(f"{entry.path}/{BREAKPOINT}", reason)


def has_lifetimes(sent: list[InputObject]) -> bool:
    """Whether a breakpoint of the input has a lifetime of its own."""
    for body, _ in sent:
        for part in _input_parts(body):
            breakpoint_ = part.get(BREAKPOINT)
            if isinstance(breakpoint_, dict) and "ttl" in breakpoint_:
                return True
    return False


def _parts_of_item(sent: list[InputObject], position: int) -> list[JsonObject]:
    for body, entry in reversed(sent):
        parts = _input_parts(body)
        if entry.position == position and parts:
            return parts
    return []


def _input_parts(body: JsonObject) -> list[JsonObject]:
    """The parts that the caller sends: only those take a breakpoint."""
    is_caller_message = body.get("role", "assistant") != "assistant"
    parts = body.get("content") if is_caller_message else body.get("output")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return []
    return parts
