"""What a conversation loses on its way through a page, and whether a report names it.

items → encoder → page → `parse_ui_request` → items
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from streamlib import encoder
from streamlib.request.origins import opaque_state
from streamlib.request.report import Change
from streamlib.web import UIRequest, parse_ui_request
from streamlib.web.parsed_request import NO_CALL, NOT_OFFERED, SECOND_OUTPUT, UNSIGNED
from streamlib.web.request_files import NOT_BASE64
from streamlib.web.run_encoder import OUTPUTS
from streamlib.web.ui_parts import (
    files,
    inline_result,
    shown_output,
    source,
    why_hidden,
)
from streamlib_parsers import (
    ApprovalRequest,
    ApprovalResponse,
    CustomToolCall,
    FunctionCall,
    HostedTool,
    InvalidArguments,
    Message,
    OutputItemDone,
    Reasoning,
    ResponseEvent,
    ResponseItem,
    RunEvent,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSpec,
)
from streamlib_parsers.items import Audio, Refusal, parse_arguments
from streamlib_parsers.json_text import text_or_json

HOSTED: Final = HostedTool("web_search")
TOOLS: Final = (
    ToolSpec("f"),
    ToolSpec("weather"),
    ToolSpec("g", format={"type": "text"}),
    ToolSpec("h", provider_run=HOSTED),
    ToolSpec("web_search", provider_run=HOSTED),
)
"""The tools of generated runs, except ``delete``, which only a provider offers."""

EXPLANATIONS: Final[dict[str, tuple[str, ...]]] = {
    "text": (),
    "call": (),
    "cut call": (),
    "server call": (),
    "reasoning": (UNSIGNED,),
    "file": ("/files", "/media", NOT_BASE64),
    "signature": ("/signatures",),
    "source": ("/annotations", "only the page shows it"),
    "server result": ("/items/server_tool_result", NO_CALL, SECOND_OUTPUT),
    "output": ("/outputs", NO_CALL, SECOND_OUTPUT),
    "approval": (NOT_OFFERED,),
}
"""Kinds of what may be lost -> paths or reasons of which one has to be in a report."""


class Trip(NamedTuple):
    """A conversation after its way through a page."""

    asked: UIRequest
    report: Sequence[Change]
    """Report of the encoder."""


def sent_items(run: Iterable[RunEvent]) -> list[ResponseItem]:
    """The items of a run, outputs among them; nothing that comes after an end."""
    items: list[ResponseItem] = []
    for event in run:
        if isinstance(event, OutputItemDone):
            items.append(event.item)
        elif isinstance(event, OUTPUTS):
            items.append(event)
    return items


def units(items: Iterable[ResponseItem]) -> Counter[tuple[str, str]]:
    """What items consist of, as kind and content, so that the two ends can be compared."""
    counted: Counter[tuple[str, str]] = Counter()
    for item in items:
        counted.update(_units(item))
    return counted


def _units(item: ResponseItem) -> list[tuple[str, str]]:
    hidden = why_hidden(item)
    found: list[tuple[str, str]] = []
    if isinstance(item, OUTPUTS):
        found = _output_units(item)
    elif hidden is not None:
        found = [("hidden", hidden.path)]
    elif isinstance(item, Message):
        found = _message_units(item)
    elif isinstance(item, Reasoning):
        # Content and summary come to a page in the order of their deltas.
        words = sorted(" ".join([*item.summary, item.content]).split())
        found = [("reasoning", f"{words} {opaque_state(item)}")]
    elif isinstance(item, ApprovalRequest):
        found = [("approval", item.name)]
    elif isinstance(item, ServerToolResult):
        found = [("server result", _json(item.output))]
    elif isinstance(item, ServerToolCall):
        found = [("server call", f"{item.name} {_arguments(item)}")]
        result = inline_result(item)
        if result is not None:
            found.append(("server result", _json(result)))
    elif isinstance(item, (FunctionCall, CustomToolCall)):
        kind = "call" if item.status == "completed" else "cut call"
        found = [(kind, f"{item.name} {_arguments(item)}"), *_signature(item)]
    return found


def _message_text(item: Message) -> str:
    """What a page shows of a message: texts, refusals and transcripts."""
    texts: list[str] = []
    for part in item.content:
        match part:
            case Text():
                texts.append(part.text)
            case Refusal():
                texts.append(part.refusal)
            case Audio():
                texts.append(part.transcript or "")
            case _:
                pass
    return "".join(texts)


def _message_units(item: Message) -> list[tuple[str, str]]:
    found = _signature(item)
    text = _message_text(item)
    if text:
        # Parts of one message may stream at the same time: a page has them in that order.
        found.append(("text", "".join(sorted(text))))
    for file in files(item):
        found.append(("file", str(file and file.url)))
    for part in item.content:
        if isinstance(part, Text):
            found += [("source", "") for cited in part.annotations if source(cited)]
    return found


def _output_units(item: Any) -> list[tuple[str, str]]:
    if isinstance(item, ApprovalResponse):
        return [("approval", "response")]
    value, fault = shown_output(item)
    return [("output", f"{fault or _json(value)} {fault is not None}")]


def _signature(item: ResponseItem) -> list[tuple[str, str]]:
    return [("signature", item.signature)] if item.signature else []


def _arguments(item: FunctionCall | CustomToolCall | ServerToolCall) -> str:
    if isinstance(item, CustomToolCall):
        return item.input
    try:
        return _sorted_json(parse_arguments(item.arguments, item.name))
    except InvalidArguments:
        return item.arguments


def _json(value: Any) -> str:
    """A JSON value, or the text of one, in one form."""
    try:
        value = json.loads(text_or_json(value))
    except ValueError:
        return str(value)
    return _sorted_json(value)


def _sorted_json(value: Any) -> str:
    """A JSON value in one form, with JavaScript's numbers: 1.0 is 1 there."""
    return json.dumps(_numbers(value), sort_keys=True)


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_numbers(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def unnamed_losses(run: Sequence[RunEvent], trip: Trip) -> list[tuple[str, str]]:
    """Units that were lost on the way and that no report names."""
    named = {change.path for change in trip.report}
    named.update(change.reason for change in trip.asked.report)
    unnamed: list[tuple[str, str]] = []
    kept = units(trip.asked.history)
    for kind, content in units(sent_items(run)) - kept:
        # A second result of one call takes the place of the first.
        if kind == "server result" and (kind, content) in kept:
            continue
        explanations = (content,) if kind == "hidden" else (*EXPLANATIONS[kind], "/run")
        if named.isdisjoint(explanations):
            unnamed.append((kind, content))
    return unnamed


def encoded(protocol: str, run: Iterable[RunEvent]) -> tuple[bytes, Sequence[Change]]:
    """The stream of a run, and the encoder's report."""
    encode = encoder(protocol, run=True, **({"run_id": "r"} if protocol == "agui" else {}))
    body = b"".join(map(encode.feed, run)) + encode.close()
    return body, encode.report


def asked_with(protocol: Any, messages: list[dict[str, Any]]) -> UIRequest:
    """The request of a page that holds these messages."""
    body: dict[str, Any] = {"messages": messages}
    if protocol == "agui":
        body |= {"threadId": "t", "runId": "r2"}
    return parse_ui_request(protocol, body, tools=TOOLS)


def with_own_ids(events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
    """The events with ids of provider-run calls that no other call has: a provider's result of a
    caller's function is nothing that exists."""
    changed: list[ResponseEvent] = []
    for event in events:
        item = getattr(event, "item", None)
        if isinstance(item, (ServerToolCall, ServerToolResult)):
            # A call with its result inside has no second one either.
            prefix = "inline" if item.native else "s"
            item = replace(item, call_id=f"{prefix}-{item.call_id}")
            event = replace(event, item=item)  # noqa: PLW2901
        changed.append(event)
    return changed
