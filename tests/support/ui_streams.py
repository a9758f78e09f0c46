"""Generated event lists for the UI encoders, and strict readers of their output without npm.

The readers apply the rules of `ai` and `@ag-ui/client`: nothing before its start, no id twice at
once, everything ended before the end. `tests/real/test_ui_readers.py` runs those two themselves.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from streamlib_parsers import (
    CustomToolCall,
    ErrorInfo,
    FunctionCall,
    Message,
    Opaque,
    Origin,
    Reasoning,
    ResponseEvent,
    ServerToolCall,
    ServerToolResult,
    Usage,
)
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import FinishedChoice, RateLimits, Window
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.open_items import OpenItem

CALL_IDS = st.sampled_from(["", "a", "b", "a-1", "call-0"])
TEXTS = st.sampled_from(["", " ", "word", "é\U0001f600", "\n\n", '"]}', "</think>"])
ARGUMENTS = st.sampled_from(['{"city": "Paris"}', "{}", "", '{"city": "Pa', "[1]", "print(1)"])


@st.composite
def legal_events(draw: st.DrawFn) -> list[ResponseEvent]:
    """Overlapping items of every kind and of several choices, some incomplete; either terminal."""
    assembly = EventAssembler(LIMITS, Origin("messages", "anthropic"))
    if draw(st.booleans()):
        assembly.rate_limits(RateLimits(requests=Window(10, 9), raw={"x": "y"}))
    if draw(st.booleans()):
        assembly.identify(draw(st.sampled_from(["resp_1", None])), "m")
    open_items: list[OpenItem] = []
    for _ in range(draw(st.integers(0, 14))):
        step = draw(st.sampled_from(["open", "append", "append", "close", "other"]))
        if step == "open":
            open_items.append(assembly.open(_item(draw)))
        elif step == "other":
            _emit_other(draw, assembly, open_items)
        elif open_items:
            position = draw(st.integers(0, len(open_items) - 1))
            _append(draw, assembly, open_items[position]) if step == "append" else _close(
                draw, assembly, open_items.pop(position)
            )
    _end(draw, assembly)
    return assembly.take()


def _item(draw: st.DrawFn) -> Any:
    choice, call_id = draw(st.sampled_from([0, 0, 0, 1])), draw(CALL_IDS)
    kinds = {
        "text": Message("assistant", choice=choice, signature=draw(st.sampled_from([None, "sig"]))),
        "earlier": Message("user", choice=choice),
        "thought": Reasoning(
            choice=choice, encrypted_content=draw(st.sampled_from([None, "sealed"]))
        ),
        "call": FunctionCall(
            call_id, "f", choice=choice, signature=draw(st.sampled_from([None, "sig"]))
        ),
        "custom": CustomToolCall(call_id, "g", choice=choice),
        "server": ServerToolCall(
            call_id, "h", choice=choice, native=draw(st.sampled_from([None, {"outputs": [1]}]))
        ),
        "result": ServerToolResult(call_id, "h", {"found": [1]}, choice=choice),
        "opaque": Opaque("new_kind", {"type": "new_kind"}, choice=choice),
    }
    return kinds[draw(st.sampled_from(sorted(kinds)))]


def _append(draw: st.DrawFn, assembly: EventAssembler, item: OpenItem) -> None:
    kind, part = type(item.item), draw(st.integers(0, 1))
    if kind is Message:
        match draw(st.sampled_from(["text", "text", "refusal", "image", "sound", "cited"])):
            case "text":
                assembly.text(item, draw(TEXTS), part)
            case "refusal":
                assembly.refusal(item, draw(TEXTS), 2)
            case "image":
                assembly.media(item, 3, "image/png", "aGk=")
            case "sound":
                assembly.media(item, 4, "audio/wav", "aGk=", "spoken")
            case _:
                citation = {"url": "https://example.org/", "title": "Example"}
                assembly.annotation(item, citation, part)
    elif kind is Reasoning:
        assembly.reasoning(item, draw(TEXTS)) if draw(st.booleans()) else assembly.summary(
            item, draw(TEXTS), part
        )
    elif kind in (FunctionCall, CustomToolCall, ServerToolCall):
        assembly.arguments(item, draw(ARGUMENTS))


def _close(draw: st.DrawFn, assembly: EventAssembler, item: OpenItem) -> None:
    item.free_text = isinstance(item.item, ServerToolCall)
    assembly.close(item, draw(st.sampled_from(["completed", "completed", "incomplete"])))


def _emit_other(draw: st.DrawFn, assembly: EventAssembler, open_items: list[OpenItem]) -> None:
    match draw(st.sampled_from(["usage", "metadata", "passthrough", "notice", "progress"])):
        case "usage":
            assembly.usage(Usage(input_tokens=draw(st.integers(0, 9)), output_tokens=1))
        case "metadata":
            assembly.metadata({"service_tier": draw(st.sampled_from(["a", "b"]))})
        case "passthrough":
            assembly.passthrough("new.event", {"x": None})
        case "notice":
            assembly.notice("repeated_item")
        case _:
            if open_items:
                assembly.progress(open_items[0], "searching")


def _end(draw: st.DrawFn, assembly: EventAssembler) -> None:
    kind = draw(
        st.sampled_from(
            ["stop", "tool_calls", "pause", "length", "truncated", "cancelled", "rate_limited"]
        )
    )
    if kind in ("truncated", "cancelled", "rate_limited"):
        assembly.fail(ErrorInfo(kind, "as the test has it"))
    else:
        assembly.complete(kind, choices=[FinishedChoice(0, kind), FinishedChoice(1, "stop")])


# --- readers ---


def payloads(body: bytes) -> list[Any]:
    """Returns the JSON of each server-sent event; `[DONE]` unchanged."""
    frames = body.decode().removesuffix("\n\n").split("\n\n") if body else []
    assert all(frame.startswith("data: ") for frame in frames), body
    return [frame[6:] if frame == "data: [DONE]" else json.loads(frame[6:]) for frame in frames]


def read_vercel(body: bytes) -> list[dict[str, Any]]:
    """Returns the parts of a UI message stream.

    Raises:
        AssertionError: The stream violates the protocol.
    """
    *parts, done = payloads(body)
    assert done == "[DONE]"
    open_texts: set[tuple[str, str]] = set()
    calls: dict[str, str] = {}
    for part in parts:
        kind, _, verb = part["type"].rpartition("-")
        if kind in ("text", "reasoning"):
            _bracket(open_texts, (kind, part["id"]), verb)
        elif part["type"].startswith("tool-"):
            _call_part(calls, part)
    names = [part["type"] for part in parts]
    last = names[-1]
    assert names.count("start") == 1
    assert sum(names.count(end) for end in ("finish", "error", "abort")) == 1
    assert last in ("finish", "error", "abort")
    assert last != "finish" or names[-2] == "finish-step"
    assert not open_texts
    assert set(calls.values()) <= {"available", "error", "output", "approval"}
    return parts


def open_calls(parts: list[dict[str, Any]]) -> set[str]:
    """Returns the ids of calls in a UI message stream that have neither an output nor an error."""
    calls: dict[str, str] = {}
    for part in parts:
        if part["type"].startswith("tool-"):
            _call_part(calls, part)
    return {call_id for call_id, state in calls.items() if state == "available"}


def _bracket(opened: set[Any], name: Any, verb: str) -> None:
    assert (name in opened) is (verb != "start"), (name, verb)
    if verb == "start":
        opened.add(name)
    elif verb == "end":
        opened.discard(name)


OUTPUT_PARTS = {
    "tool-output-available": "output",
    "tool-output-error": "output",
    "tool-output-denied": "output",
    "tool-approval-request": "approval",
}
"""Parts after the input of a call -> the state that they bring it to."""


def _call_part(calls: dict[str, str], part: dict[str, Any]) -> None:
    verb = part["type"].removeprefix("tool-input-")
    before = calls.get(part["toolCallId"])
    if part["type"] in OUTPUT_PARTS:
        assert before in ("available", "output", "error", "start", "delta", "approval"), part
        verb = OUTPUT_PARTS[part["type"]]
    else:
        assert (before is None) is (verb == "start"), part
        assert part["toolCallId"]
    calls[part["toolCallId"]] = verb


def read_agui(body: bytes) -> list[dict[str, Any]]:
    """Returns the events of a run.

    Raises:
        AssertionError: The run violates the protocol.
    """
    events = payloads(body)
    opened: set[tuple[str, str]] = set()
    for event in events:
        kind, _, verb = event["type"].rpartition("_")
        name = event.get("messageId") or event.get("toolCallId")
        if kind in ("TEXT_MESSAGE", "TOOL_CALL", "REASONING", "REASONING_MESSAGE") and verb in (
            "START",
            "CONTENT",
            "ARGS",
            "END",
        ):
            assert name
            _bracket(opened, (kind, name), {"START": "start", "END": "end"}.get(verb, "delta"))
        assert None not in event.values(), event
    names = [event["type"] for event in events]
    assert names[0] == "RUN_STARTED"
    assert names.count("RUN_STARTED") == 1
    assert [name for name in names if name in ("RUN_FINISHED", "RUN_ERROR")] == names[-1:]
    assert not opened
    ids = [
        event["messageId"]
        for event in events
        if event["type"] in ("TEXT_MESSAGE_START", "REASONING_START", "TOOL_CALL_RESULT")
    ]
    assert len(ids) == len(set(ids))
    return events
