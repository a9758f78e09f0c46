"""The events that leave `EventTranslator`: numbered and bracketed like those of a parser."""

from __future__ import annotations

import pytest

from streamlib import (
    FunctionCall,
    Message,
    Notice,
    Opaque,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ResponseEvent,
    ResponseMetadata,
    accumulate,
)
from streamlib.gateway.state.restore import restore_history
from streamlib.gateway.state.translate import EventTranslator, ItemSequencer
from streamlib.testing.invariants import check
from streamlib.wires.encoders import encode_all
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import Origin, WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.usage import Usage
from tests.support.cases import each_case
from tests.support.gateways import CLIENTS, MODELS, weather_events


def translated(wire: WireApi, events: list[ResponseEvent]) -> list[ResponseEvent]:
    translator = EventTranslator(wire)
    translated_events: list[ResponseEvent] = []
    for event in events:
        translated_events += translator.feed(event)
    return translated_events


def hidden_and_signed() -> list[ResponseEvent]:
    """A hidden item, metadata, a signed call, and a text that is open beside both."""
    assembler = EventAssembler(LIMITS, Origin("responses"))
    assembler.identify("resp_1", "model-1")
    hidden = assembler.open(Opaque("local_shell_call", {"type": "local_shell_call"}))
    assembler.metadata({"service_tier": "default"})
    message = assembler.open(Message("assistant"))
    assembler.text(message, "Hello")
    assembler.notice("unknown_delta", "of the hidden item", hidden)
    assembler.notice("unknown_delta", "of the message", message)
    assembler.close(hidden)
    call = assembler.open(FunctionCall("call_0", "weather", signature="s"))
    assembler.arguments(call, "{}")
    assembler.text(message, " there")
    assembler.close(message)
    assembler.close(call)
    assembler.complete("tool_calls")
    return assembler.take()


@each_case("client", CLIENTS)
@each_case("model", MODELS)
def test_translated_events_keep_the_invariants(client: WireApi, model: WireApi) -> None:
    check(translated(client, weather_events(model)))


@pytest.mark.parametrize("client", CLIENTS)
def test_dropped_events_leave_no_gap_in_the_numbers(client: WireApi) -> None:
    events = translated(client, hidden_and_signed())
    check(events)
    assert not any(isinstance(event, ResponseMetadata) for event in events)
    details = [event.detail for event in events if isinstance(event, Notice)]
    assert details == ["of the message"]


def test_envelope_comes_before_its_call_and_after_a_hidden_item() -> None:
    events = translated("messages", hidden_and_signed())
    kinds = {}
    for event in events:
        if isinstance(event, OutputItemAdded):
            kinds[event.index] = type(event.item)
    assert kinds == {0: Message, 1: Reasoning, 2: Reasoning, 3: FunctionCall}
    done = [event.index for event in events if isinstance(event, OutputItemDone)]
    assert done == [1, 2, 0, 3]


def signed_end(text: str = "") -> list[ResponseEvent]:
    """A text, then the signed part with which Gemini ends a response."""
    assembler = EventAssembler(LIMITS, Origin("gemini"))
    assembler.identify("r", "m")
    message = assembler.open(Message("assistant"))
    assembler.text(message, "Hello")
    assembler.close(message)
    signed = assembler.open(Message("assistant"))
    if text:
        assembler.text(signed, text)
    signed.fields["signature"] = "c2ln"
    assembler.close(signed)
    assembler.complete("stop")
    return assembler.take()


@pytest.mark.parametrize("client", ["responses", "chat"])
def test_empty_signed_text_is_an_envelope_alone(client: WireApi) -> None:
    """B10: Codex and openai-agents take an empty message for the final answer: a blank one."""
    events = translated(client, signed_end())
    check(events)
    response = accumulate(events)
    assert [type(item) for item in response.items] == [Message, Reasoning]
    assert response.text == "Hello"
    restored = restore_history(response.items, {})
    assert [item.signature for item in restored] == [None, "c2ln"]


@pytest.mark.parametrize("text", ["", " there"])
def test_messages_response_ends_with_its_text(text: str) -> None:
    """Found by the agents: ``claude -p`` prints the last block, and an envelope is blank there."""
    translator = EventTranslator("messages")
    events: list[ResponseEvent] = []
    for event in signed_end(text):
        events += translator.feed(event)
    check(events)
    response = accumulate(events)
    assert {type(item) for item in response.items} == {Message}
    assert response.text == f"Hello{text}"
    assert [(change.action, change.path) for change in translator.report] == [("dropped", "/state")]


def test_usage_does_not_close_a_truncated_call_on_responses() -> None:
    """Found by the agents: Codex ran the call that a failed response of Chat had left open."""
    assembler = EventAssembler(LIMITS, Origin("chat"), lambda n: f"c{n}")
    assembler.identify("r1", "m")
    call = assembler.open(FunctionCall("c1", "f"))
    assembler.arguments(call, '{"a')
    assembler.usage(Usage(input_tokens=1, output_tokens=1))
    assembler.fail(ErrorInfo("overloaded", "no"))
    stream = encode_all("responses", translated("responses", assembler.take()))
    assert b"response.failed" in stream
    assert b"response.output_item.done" not in stream


@pytest.mark.parametrize("client", ["messages", "chat", "responses"])
def test_usage_of_a_failed_response_is_kept(client: WireApi) -> None:
    """What was used until then is paid for."""
    assembler = EventAssembler(LIMITS, Origin("converse"))
    assembler.identify("r1", "m")
    message = assembler.open(Message("assistant"))
    assembler.text(message, "Hel")
    assembler.usage(Usage(input_tokens=7, output_tokens=1))
    assembler.fail(ErrorInfo("overloaded", "no"))
    response = accumulate(translated(client, assembler.take()))
    assert response.usage is not None
    assert (response.status, response.usage.input_tokens) == ("failed", 7)


def test_state_of_a_text_comes_before_what_follows_it() -> None:
    """On Messages it waits: as the last block it would be shown, and be blank."""
    assembler = EventAssembler(LIMITS, Origin("gemini"))
    assembler.identify("r", "m")
    message = assembler.open(Message("assistant"))
    assembler.text(message, "Hello")
    message.fields["signature"] = "c2ln"
    assembler.close(message)
    call = assembler.open(FunctionCall("c1", "f"))
    assembler.arguments(call, "{}")
    assembler.close(call)
    assembler.complete("tool_calls")
    response = accumulate(translated("messages", assembler.take()))
    assert [type(item) for item in response.items] == [Message, Reasoning, FunctionCall]
    restored = restore_history(response.items, {})
    assert [item.signature for item in restored] == ["c2ln", None]


def test_state_without_a_place_is_reported() -> None:
    translator = EventTranslator("ollama")
    for event in signed_end(" there"):
        translator.feed(event)
    assert "/state" in [change.path for change in translator.report]


def test_items_that_overlap_come_one_after_the_other() -> None:
    """The second of three goes on where the first has ended, and the third waits for it."""
    items = {index: Message("assistant", (), id=f"m{index}") for index in range(3)}
    added = [OutputItemAdded(index, item) for index, item in items.items()]
    deltas = [OutputTextDelta(index, 0, "x") for index in items]
    done = [OutputItemDone(index, item) for index, item in items.items()]
    sequencer = ItemSequencer((Message,))
    released = [
        [event.index for event in sequencer.feed(event)]
        for event in (*added, *deltas, done[0], deltas[2], deltas[1], done[2], done[1])
    ]
    assert released == [[0], [], [], [0], [], [], [0, 1, 1], [], [1], [], [1, 2, 2, 2, 2]]


@pytest.mark.parametrize("client", ["responses", "chat"])
def test_signed_text_stays_a_message_beside_its_envelope(client: WireApi) -> None:
    response = accumulate(translated(client, signed_end(" there")))
    assert [type(item) for item in response.items] == [Message, Message, Reasoning]
    assert response.text == "Hello there"


def test_responses_client_gets_one_call_after_another() -> None:
    """LangChain joins the deltas of calls that overlap; OpenAI never sends such."""
    assembler = EventAssembler(LIMITS, Origin("chat"), lambda n: f"c{n}")
    assembler.identify("r1", "m")
    first = assembler.open(FunctionCall("c1", "f"))
    second = assembler.open(FunctionCall("c2", "g"))
    for call, text in ((second, '{"x":'), (first, '{"y":'), (second, "1}"), (first, "2}")):
        assembler.arguments(call, text)
    assembler.close(first)
    assembler.close(second)
    assembler.complete("tool_calls")
    events = translated("responses", assembler.take())
    check(events)
    assert [event.index for event in events if hasattr(event, "index")] == [0] * 4 + [1] * 4
    calls = accumulate(events).calls
    assert [call.parsed() for call in calls if isinstance(call, FunctionCall)] == [
        {"y": 2},
        {"x": 1},
    ]
