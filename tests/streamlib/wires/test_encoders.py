"""What no encoder may do, on every wire."""

from __future__ import annotations

import pytest

from streamlib import CustomToolCall, FunctionCall, Response
from streamlib.wires.encoders import encode_body
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import WIRE_APIS


@pytest.mark.parametrize(
    "call",
    [
        FunctionCall("c", "find_it", '{"a', status="incomplete"),
        CustomToolCall("c", "find_it", "x", status="incomplete"),
    ],
    ids=["function", "custom"],
)
@pytest.mark.parametrize("wire", WIRE_APIS)
def test_incomplete_call_is_never_in_a_body(
    wire: WireApi, call: FunctionCall | CustomToolCall
) -> None:
    response = Response("r", "m", "incomplete", (call,), stop_reason="length")
    assert b"find_it" not in encode_body(wire, response)
