"""The structured output of a response, and the responses that have none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib_parsers import (
    CustomToolCall,
    ErrorInfo,
    FunctionCall,
    IncompleteOutput,
    InvalidOutput,
    Message,
    Refusal,
    Response,
    Text,
    assistant,
    user,
)
from streamlib_parsers.outputs import OUTPUT_TOOL
from tests.support.cases import each_case


class City(msgspec.Struct):
    name: str


OSLO = '{"name": "Oslo"}'
CALL = FunctionCall("c1", OUTPUT_TOOL, OSLO)


def completed(*items: Any, stop_reason: Any = "stop") -> Response:
    return Response(status="completed", items=items, stop_reason=stop_reason)


def test_parsed_reads_the_text() -> None:
    city: City = completed(assistant(OSLO)).parsed(City)
    assert city == City("Oslo")


def test_parsed_reads_the_arguments_of_the_output_tool() -> None:
    response = completed(assistant("Here it is:"), CALL, stop_reason="tool_calls")
    assert response.parsed(City) == City("Oslo")


def test_parsed_reads_text_over_several_messages() -> None:
    parts = Message(role="assistant", content=[Text(OSLO[:4]), Text(OSLO[4:])])
    assert completed(parts).parsed(City) == City("Oslo")
    assert completed(assistant(OSLO[:4]), assistant(OSLO[4:])).parsed(City) == City("Oslo")


def test_parsed_leaves_out_remarks_before_the_output() -> None:
    commentary = Message(role="assistant", content=[Text("{")], phase="commentary")
    assert completed(commentary, assistant(OSLO)).parsed(City) == City("Oslo")
    assert completed(assistant("I searched."), assistant(OSLO)).parsed(City) == City("Oslo")
    assert completed(user("x"), assistant(OSLO)).parsed(City) == City("Oslo")


@each_case(
    "reason, response",
    [
        ("length", Response(status="incomplete", items=(assistant(OSLO),), stop_reason="length")),
        ("content_filter", Response(status="incomplete", stop_reason="content_filter")),
        ("refusal", completed(assistant(OSLO), stop_reason="refusal")),
        ("refusal", completed(Message(role="assistant", content=[Refusal("I cannot")]))),
        ("pause", completed(assistant(OSLO), stop_reason="pause")),
        ("not_ended", Response(items=(assistant(OSLO),))),
        ("truncated", Response(status="failed", error=ErrorInfo("truncated", "cut"))),
        ("cancelled", Response(status="cancelled", error=ErrorInfo("cancelled", "closed"))),
        ("tool_calls", completed(FunctionCall("c", "f", "{}"), stop_reason="tool_calls")),
        ("tool_calls", completed(CustomToolCall("c", "f", ""), stop_reason="tool_calls")),
    ],
)
def test_parsed_of_an_incomplete_response_is_one_error(reason: str, response: Response) -> None:
    with pytest.raises(IncompleteOutput) as caught:
        response.parsed(City)
    assert caught.value.reason == reason
    assert caught.value.text == response.text


def test_parsed_of_a_response_without_output_is_invalid() -> None:
    with pytest.raises(InvalidOutput) as caught:
        completed().parsed(City)
    assert not isinstance(caught.value, IncompleteOutput)
