"""`EventEncoder`: what an encoder has no method for is reported, never lost silently."""

from __future__ import annotations

from typing import get_args

import pytest

from streamlib import encoder
from streamlib.request.report import Change
from streamlib.wires.event_encoder import METHODS, EventEncoder
from streamlib_parsers.events import (
    Completed,
    ItemProgress,
    Notice,
    OutputTextDelta,
    RateLimits,
    ResponseEvent,
)
from streamlib_parsers.items import FunctionCallOutput
from streamlib_parsers.protocol import WIRE_APIS


class _OnlyText(EventEncoder):
    no_such_event = "the wire has text only"

    def __init__(self) -> None:
        super().__init__(lambda value, name: b"")

    def _on_text(self, event: OutputTextDelta) -> bytes:
        return event.delta.encode()


def test_event_encoder_knows_every_class_of_event() -> None:
    assert set(METHODS) == set(get_args(ResponseEvent))


def test_event_encoder_reports_what_is_not_overridden() -> None:
    encode = _OnlyText()
    assert encode.feed(OutputTextDelta(0, 0, "Hi")) == b"Hi"
    assert encode.feed(Completed(stop_reason="stop")) == b""
    assert encode.report == [Change("dropped", "/Completed", "the wire has text only")]


@pytest.mark.parametrize("event", [RateLimits(), Notice("end_inferred"), ItemProgress(0, "x")])
def test_event_encoder_reports_no_event_without_bytes(event: ResponseEvent) -> None:
    encode = _OnlyText()
    assert encode.feed(event) == b""
    assert encode.report == []


@pytest.mark.parametrize("wire_api", WIRE_APIS)
def test_encoder_reports_an_object_that_is_no_event(wire_api: str) -> None:
    encode = encoder(wire_api)
    assert encode.feed(FunctionCallOutput("c", "1")) == b""  # type: ignore[arg-type]
    assert [change.path for change in encode.report] == ["/FunctionCallOutput"]
