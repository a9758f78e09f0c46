"""`to_ui_messages`: what a page would hold had it been there, and what it sends back of it."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import FunctionCall, Image, Message, Reasoning, Text, user
from streamlib.tools import needs_approval
from streamlib.web import Seal, parse_ui_request, to_ui_messages
from streamlib_parsers import FunctionCallOutput
from tests.support.runs import call, said, three_steps
from tests.support.ui_pages import agui_page, vercel_page
from tests.support.ui_requests import agui_body, vercel_body
from tests.support.ui_round_trips import sent_items

each_protocol = pytest.mark.parametrize("protocol", ["vercel", "agui"])
PIXEL = "iVBORw0KGgo="


@needs_approval
def pay(amount: int) -> str:
    """Pays an amount."""
    return f"paid {amount}"


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


STORED: list[Any] = [
    Message("system", (Text("Be brief."),)),
    user("Hello"),
    said("Hi."),
    Message("user", (Text("Look:"), Image(data=PIXEL, media_type="image/png", name="a.png"))),
    Reasoning("hm", signature="sig"),
    call("a"),
    FunctionCallOutput("a", "sunny"),
    said("Sunny."),
    user("Pay."),
    FunctionCall("p", "pay", '{"amount": 3}'),
]


@each_protocol
def test_stored_items_come_back_from_the_page(protocol: Any) -> None:
    seal = Seal("a secret of the servers", "alice")
    tools: Any = [pay, weather]
    messages = to_ui_messages(STORED, protocol, tools=tools, seal=seal)
    body = vercel_body(*messages) if protocol == "vercel" else agui_body(*messages)
    asked = parse_ui_request(protocol, body, tools=tools, seal=seal)
    expected = [repr(item) for item in STORED[1:]]
    if protocol == "agui":  # its files have no name
        expected = [text.replace(", name='a.png'", "") for text in expected]
    found = [repr(item) for item in asked.history]
    # The client's arguments of a call are a JSON value.
    assert [text.replace(" ", "") for text in found] == [text.replace(" ", "") for text in expected]
    assert "Be brief" not in str(messages)
    assert len({message["id"] for message in messages}) == len(messages)


def test_messages_are_those_of_the_stream() -> None:
    encode = parse_ui_request("vercel", vercel_body(), tools=["weather"]).encoder(
        message_id="message-0"
    )
    stream = b"".join([encode.feed(event) for event in three_steps()]) + encode.close()
    shown = vercel_page(stream)
    items = sent_items(three_steps())
    [made] = to_ui_messages(items, tools=["weather"])
    for part in (*made["parts"], *shown["parts"]):
        part.pop("id", None)
    assert made["id"] == shown["id"]
    assert made["parts"] == shown["parts"]


def test_agui_messages_are_those_of_the_stream() -> None:
    encode = parse_ui_request("agui", agui_body(), tools=["weather"]).encoder(
        message_id="message-0", public=True
    )
    stream = b"".join([encode.feed(event) for event in three_steps()]) + encode.close()
    made = to_ui_messages(sent_items(three_steps()), "agui", tools=["weather"])
    shown = agui_page(stream)
    assert [message["id"] for message in made] == [message["id"] for message in shown]
    assert [message["role"] for message in made] == [message["role"] for message in shown]


def test_waiting_call_of_a_marked_tool_asks() -> None:
    tools: Any = [pay, weather]
    last = to_ui_messages(STORED, tools=tools)[-1]
    [part] = [part for part in last["parts"] if part["type"] == "tool-pay"]
    assert (part["state"], part["approval"]) == ("approval-requested", {"id": "p"})
    assert to_ui_messages(STORED, tools=tools) == to_ui_messages(STORED, tools=tools)


def test_files_and_sources_are_shown() -> None:
    cited = Text("Yes.", annotations=({"url": "https://a.example", "title": "A"},))
    messages = to_ui_messages([STORED[3], Message("assistant", (cited,))])
    assert messages[0]["parts"][1] == {
        "type": "file",
        "mediaType": "image/png",
        "url": f"data:image/png;base64,{PIXEL}",
        "filename": "a.png",
    }
    [source] = [part for part in messages[1]["parts"] if part["type"] == "source-url"]
    assert source["url"] == "https://a.example"


def test_what_is_no_item_or_protocol_is_refused() -> None:
    wrong: Any = "agui1"
    with pytest.raises(ValueError, match="protocol is one of vercel, agui, not 'agui1'"):
        to_ui_messages([user("Hi")], wrong)
    with pytest.raises(TypeError, match="a history holds items, not 'agui1'"):
        to_ui_messages(wrong)
