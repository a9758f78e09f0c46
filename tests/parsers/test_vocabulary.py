"""Items, usage and parser options: call outputs, parsed arguments, OpenTelemetry names, aborts."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import (
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    InvalidArguments,
    Origin,
    RateLimits,
    ServerToolCall,
    ToolSpec,
    Usage,
    accumulate,
    parser,
)
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.hosted_tools import HostedTool
from streamlib_parsers.items import (
    FunctionCallOutput,
    Image,
    Message,
    Reasoning,
    Text,
    user,
    with_origin,
)
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.tool_specs import ToolOptions

CHAT = b'data: {"id":"c","choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'


def test_call_output_makes_the_result_item() -> None:
    assert FunctionCall("c", "f").output("1", is_error=True).is_error
    assert CustomToolCall("c", "f").output([Text("1")]).output == (Text("1"),)


@pytest.mark.parametrize("arguments", ["[1]", "5", '{"a"', '"x"'])
def test_parsed_raises_for_arguments_that_are_not_an_object(arguments: str) -> None:
    with pytest.raises(InvalidArguments):
        FunctionCall("c", "f", arguments).parsed()


def test_empty_arguments_are_an_empty_object() -> None:
    assert FunctionCall("c", "f").parsed() == ServerToolCall("c", "f").parsed() == {}


def test_user_makes_a_message_of_text_and_parts() -> None:
    assert user("a").content == (Text("a"),)
    assert user().content == ()
    assert with_origin(user("a"), Origin("chat")).origin == Origin("chat")


def test_usage_as_otel_omits_unknown_counts() -> None:
    counts = Usage(input_tokens=3, output_tokens=2).as_otel()
    assert set(counts.values()) == {3, 2}


def test_unknown_wire_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="unknown wire API 'smoke'"):
        parser("smoke")  # type: ignore[arg-type]


def test_aborted_stream_keeps_the_partial_response() -> None:
    stream_parser = parser("chat")
    events = [*stream_parser.feed(CHAT), *stream_parser.abort(ErrorInfo("connection", "gone"))]
    assert accumulate(events).text == "Hi"
    assert isinstance(events[-1], Failed)
    assert stream_parser.abort(ErrorInfo("connection", "gone")) == []


def test_unfiltered_events_precede_the_dialects() -> None:
    body = b'data: {"choices":[{"delta":{"content":"<tool_call>"}}]}\n\n'
    stream_parser = parser("chat", dialects=["hermes"], tools=[ToolSpec("f")])
    assert stream_parser.feed(body)[1:] == []
    assert stream_parser.unfiltered_events
    assert parser("chat").unfiltered_events is None


def test_framed_messages_count_towards_response_bytes() -> None:
    stream_parser = parser("chat", limits=Limits(response_bytes=10))
    (last,) = stream_parser.feed_event('{"choices": []}')
    assert isinstance(last, Failed)
    assert last.error.code == "response_bytes"


def test_rate_limits_are_in_the_response() -> None:
    stream_parser = parser("chat", headers={"retry-after": "1"})
    response = accumulate([*stream_parser.feed(CHAT), *stream_parser.close()])
    assert isinstance(response.rate_limits, RateLimits)
    assert not response.unfinished


def test_split_emoji_are_joined_in_reasoning_and_refusals() -> None:
    body = b"".join(
        b'data: {"choices":[{"delta":{"%s":"%s"}}]}\n\n' % (key, half)
        for key in (b"reasoning_content", b"refusal")
        for half in (b"\\ud83d", b"\\ude00")
    )
    stream_parser = parser("chat")
    response = accumulate([*stream_parser.feed(body), *stream_parser.close()])
    assert (response.reasoning, response.refusal) == ("\U0001f600", "\U0001f600")


def test_finish_with_another_kind_keeps_the_final_item() -> None:
    assembly = EventAssembler(LIMITS, Origin("responses"))
    item = assembly.open(Message("assistant"))
    assembly.text(item, "a")
    assembly.finish_with(item, Reasoning("b"))
    assert item.item.text == "b"  # type: ignore[union-attr]


def test_lists_are_stored_as_tuples() -> None:
    """A frozen item could be changed through its list."""
    parts: list[Any] = [Text("a")]
    assert FunctionCallOutput("c", parts).output == tuple(parts)
    assert ToolOptions(allowed_callers=["direct"]).allowed_callers == ("direct",)


def test_bytes_of_a_file_are_stored_as_base64() -> None:
    content: Any = b"\x00\x01"
    assert Image(data=content, media_type="image/png").data == "AAE="


def test_output_of_none_is_refused_in_our_words() -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match=r'write "" where there is none'):
        FunctionCallOutput("c", nothing)


def test_misspelt_hosted_tool_is_corrected() -> None:
    misspelt: Any = "web_serch"
    with pytest.raises(ValueError, match="write 'web_search'"):
        HostedTool(misspelt)
    unknown: Any = "zzz"
    with pytest.raises(ValueError, match=r"not 'zzz'$"):
        HostedTool(unknown)
