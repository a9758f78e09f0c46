"""Invariant 13: a call that was cut off is never callable, and no part of it comes twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import pytest

from streamlib_parsers import (
    Created,
    Failed,
    FunctionCall,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Response,
    Text,
    accumulate,
)
from streamlib_parsers.dialects import DIALECTS, DialectFilter, LeakFilter
from streamlib_parsers.dialects.definitions import resolve_dialects
from streamlib_parsers.dialects.scanner import OpenerTable
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent
from tests.support.dialect_calls import TOOLS, Form
from tests.support.dialect_forms import FORMS
from tests.support.dialect_streams import check_brackets, filtered
from tests.support.thorough import THOROUGH

STOP_REASONS = ("stop", "tool_calls", "length", "content_filter", "other")
ENDS = (*STOP_REASONS, None)
STOPPED_BY_MODEL = ("stop", "tool_calls")

END_TOKENS = {
    "xai": "</xai:function_call>",
    "anthropic": "invoke>",
    "hermes": "}",
    "qwen3_coder": "</function>",
    "seed_oss": "</function>",
    "mimo": "</function>",
    "glm45": "</tool_call>",
    "glm47": "</tool_call>",
    "hy_v3": "</tool_call",
    "iquest_q1": "</iquest_tool_call>",
    "ernie45": "}",
    "kimi_k2": "}",
    "kimi_k3": "<|close|>call<|sep|>",
    "deepseek_v3": "}",
    "deepseek_v31": "}",
    "minimax_m2": "</invoke>",
    "minimax_m3": "</invoke>",
    "llama3_json": "}",
    "pythonic": ")",
    "nemotron": "}",
    "mistral": "}",
    "harmony": "}",
    "granite": "}",
    "phi4_mini_json": "}",
    "internlm": "}",
    "hunyuan_a13b": "}",
    "jamba": "}",
    "apriel": "}",
    "longcat": "}",
    "cohere": "}",
    "dots": "</invoke>",
    "step3": "</steptml:invoke>",
    "minicpm5": "</function>",
    "gigachat3": "}",
    "gigachat35": "invoke>",
    "apertus": "}",
    "gemma4": "}",
    "functiongemma": "}",
}
"""What closes a call at the latest. Of a JSON dialect it is the JSON, at an ordinary stop."""


def ended_by_input(text: str, dialects: tuple[str, ...]) -> list[ResponseEvent]:
    """The events of a message whose stream was truncated behind `text`."""
    events: list[ResponseEvent] = [
        Created("r", "m", seq=0),
        OutputItemAdded(0, Message("assistant", status="incomplete"), seq=1),
        OutputTextDelta(0, 0, text, seq=2),
        OutputItemDone(0, Message("assistant", [Text(text)], status="incomplete"), seq=3),
        Failed(ErrorInfo("truncated", "the input ended"), seq=4),
    ]
    dialect_filter, leak_filter = DialectFilter(dialects, TOOLS), LeakFilter()
    return leak_filter.feed(dialect_filter.feed(events))


def prefixes(form: Form) -> Iterator[str]:
    for size in range(1, len(form.text) + 1):
        yield form.text[:size]


def check_prefix(form: Form, prefix: str, reason: str | None) -> None:
    """Checks invariant 13 for one prefix and one end; `None` is the end of the input."""
    if reason is None:
        events = ended_by_input(prefix, form.dialects)
    else:
        events = filtered([prefix], form.dialects, stop_reason=reason)
    check_brackets(events)
    response = accumulate(events)
    calls = [item for item in response.items if isinstance(item, FunctionCall)]
    callable_calls = [call for call in calls if call.status == "completed"]
    read = [(call.name, json.loads(call.arguments)) for call in callable_calls]
    assert read == form.calls[: len(read)]
    assert len(read) <= count_of_ends(form, prefix)
    cut = [call for call in calls if call.status == "incomplete" and not is_complete(form, call)]
    assert len(cut) <= 1
    assert all(call.arguments for call in calls)
    check_text(form, prefix, response, has_cut_call=bool(cut))
    check_notices(form, prefix, response, calls, reason)


FORM_END_TOKENS = {
    "deepseek_v32-empty": "/>",
    "dots-json": "}",
    "gemma4-parentheses": ")",
    "kimi_k2-no-arguments": "<|tool_call_end|>",
}
"""The same for a form that differs from the others of its dialect."""


def count_of_ends(form: Form, prefix: str) -> int:
    if form.name in FORM_END_TOKENS:
        return prefix.count(FORM_END_TOKENS[form.name])
    if form.name in ("harmony-parallel", "deepseek_v32-json", "pythonic-lfm2-json"):
        return len(form.calls)
    if form.dialects == ("deepseek_v32",):
        return prefix.count("invoke>") + prefix.count("invoke>".upper())
    return prefix.count(END_TOKENS[form.dialects[-1]])


def is_complete(form: Form, call: FunctionCall) -> bool:
    try:
        return (call.name, json.loads(call.arguments)) in form.calls
    except ValueError:
        return False


def check_text(form: Form, prefix: str, response: Response, *, has_cut_call: bool) -> None:
    """The text is output, and behind it the unfinished call once if it has no item."""
    text = response.reasoning + response.text
    output = form.reasoning + form.output
    if has_cut_call:
        assert output.startswith(text)
        return
    same = 0
    for character, expected in zip(text, output, strict=False):
        if character != expected:
            break
        same += 1
    # A shorter beginning that is equal leaves a longer tail, which ends with this one.
    assert prefix.endswith(text[same:])


@cache
def markers_of(dialects: tuple[str, ...]) -> tuple[str, ...]:
    """What begins a call in these dialects."""
    return tuple(OpenerTable(resolve_dialects(dialects)).markers)


def check_notices(
    form: Form, prefix: str, response: Response, calls: list[FunctionCall], reason: str | None
) -> None:
    """One Notice where a call was begun and is not callable, none where all are."""
    codes = [notice.code for notice in response.notices]
    assert len(codes) <= 1
    unfinished = [call for call in calls if call.status == "incomplete"]
    if reason is not None and unfinished:
        assert codes == ["leaked_tool_call"]
    around_text = ("harmony", "kimi_k3", "cohere")
    shows_opener = any(marker in response.text for marker in markers_of(form.dialects))
    if shows_opener and form.dialects[0] not in around_text:
        assert codes == ["leaked_tool_call"]
    if prefix == form.text and reason in STOPPED_BY_MODEL:
        assert codes == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_prefix_of_a_call_is_never_callable(form: Form) -> None:
    """A2, A7: every prefix, ended by stop reasons and by the end of the input.

    The thorough run ends each prefix in all six ways; the default run ends the complete call so,
    and a prefix in one of them: each way comes at every sixth length.
    """
    for prefix in prefixes(form):
        ends = ENDS
        if not THOROUGH and prefix != form.text:
            ends = ENDS[len(prefix) % 6 :: 6]
        for reason in ends:
            try:
                check_prefix(form, prefix, reason)
            except AssertionError as failure:
                raise AssertionError(f"{reason}: {prefix!r}: {failure}") from failure


def test_every_dialect_of_calls_has_a_form_here() -> None:
    covered = {name for form in FORMS for name in form.dialects}
    assert covered >= {name for name in DIALECTS if not name.startswith("think")}
