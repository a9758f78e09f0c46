"""GenAI attributes: one table; unknown attributes stay unset."""

from __future__ import annotations

from streamlib import ErrorInfo, Prompt, Response, Timing, Usage, build
from streamlib.client.otel import request_attributes, span_attributes
from streamlib_parsers.accumulate import Choice


def test_usage_attributes_leave_unknown_counts_unset() -> None:
    usage = Usage(10, 5, 3, reasoning_output_tokens=2, input_modalities={"image": 4})
    assert usage.as_otel() == {
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "gen_ai.usage.image.input_tokens": 4,
    }
    assert Usage().as_otel() == {}


def test_span_attributes_of_a_completed_response() -> None:
    response = Response(
        "r",
        "m",
        "completed",
        choices=(Choice(0, (), "stop", "end_turn"),),
        timing=Timing(first_byte=0.25),
    )
    assert span_attributes(response) == {
        "gen_ai.response.id": "r",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ["end_turn"],
        "gen_ai.response.time_to_first_chunk": 0.25,
    }


def test_span_attributes_of_a_truncated_response() -> None:
    attributes = span_attributes(Response(status="failed", error=ErrorInfo("truncated", "cut")))
    assert attributes == {"gen_ai.response.finish_reasons": ["error"], "error.type": "truncated"}


def test_request_attributes_use_the_conventions_names() -> None:
    prompt = Prompt(input="x", temperature=0.5, reasoning="high", stop=["END"])
    attributes = request_attributes(prompt, build(prompt, "anthropic:claude-sonnet-4-5"))
    assert attributes["gen_ai.provider.name"] == "anthropic"
    assert attributes["gen_ai.request.temperature"] == 0.5
    assert attributes["gen_ai.request.reasoning.level"] == "high"
    assert attributes["gen_ai.request.stop_sequences"] == ["END"]
