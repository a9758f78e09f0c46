"""Signatures and encrypted state that a page keeps sealed: they come back whole, or not at all."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from streamlib.web import Seal, UIRequest, parse_ui_request
from streamlib.web.parsed_request import CHANGED, NOT_SEALED
from streamlib.web.sealing import PREFIX
from streamlib_parsers import FunctionCall, Message, OutputItemDone, Reasoning, ResponseItem, Text
from streamlib_parsers.items import Origin, with_origin
from tests.support.runs import response
from tests.support.ui_pages import agui_page, vercel_page
from tests.support.ui_requests import agui_body, vercel_body

KEY = "a secret of the servers, 32 bytes"
ORIGIN = Origin("messages", "anthropic", "https://internal.example", "claude", "account-7")
SIGNED: list[ResponseItem] = [
    Reasoning("I think.", id="rs_1", signature="sig-think", origin=ORIGIN),
    Reasoning(encrypted_content="secret", redacted=True, origin=ORIGIN),
    Message("assistant", (Text("Let me look."),), signature="sig-text", origin=ORIGIN),
    FunctionCall("c1", "weather", '{"city":"Paris"}', signature="sig-call", origin=ORIGIN),
]
SUMMARY = Reasoning(summary=("One.", "Two."), encrypted_content="gAAAA", id="rs_2", origin=ORIGIN)

each_protocol = pytest.mark.parametrize("protocol", ["vercel", "agui"])


def empty_request(protocol: Any, seal: Seal | None) -> UIRequest:
    body = vercel_body() if protocol == "vercel" else agui_body()
    return parse_ui_request(protocol, body, tools=["weather"], seal=seal)


def page_after(protocol: Any, items: list[ResponseItem], seal: Seal | None) -> tuple[bytes, Any]:
    """The stream, and what the page sends next."""
    encode = empty_request(protocol, seal).encoder()
    stream = b""
    for event in response(*items, stop="tool_calls"):
        if isinstance(event, OutputItemDone):
            event = replace(event, item=with_origin(event.item, ORIGIN))  # noqa: PLW2901
        stream += encode.feed(event)
    stream += encode.close()
    if protocol == "vercel":
        return stream, vercel_body(vercel_page(stream))
    return stream, agui_body(*agui_page(stream))


def asked(protocol: Any, body: Any, seal: Seal | None) -> UIRequest:
    return parse_ui_request(protocol, json.loads(json.dumps(body)), tools=["weather"], seal=seal)


@each_protocol
def test_items_come_back_through_a_seal(protocol: Any) -> None:
    seal = Seal(KEY, "alice")
    stream, body = page_after(protocol, [SUMMARY, *SIGNED], seal)
    found = asked(protocol, body, Seal(KEY, "alice"))
    said = replace(SIGNED[2], content=(Text("Let me look. "),))  # as it is streamed
    assert found.history == [SUMMARY, *SIGNED[:2], said, SIGNED[3]]
    assert found.report == ()
    # The page cannot read what it keeps.
    for secret in (b"sig-", b"gAAAA", b"internal.example", b"account-7"):
        assert secret not in stream
        decoded = [base64.b64decode(text + "==", altchars=b"-_") for text in sealed_texts(body)]
        assert not [raw for raw in decoded if secret in raw]


def sealed_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value.removeprefix(PREFIX)] if value.startswith(PREFIX) else []
    children = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)):
        return []
    return [text for child in children for text in sealed_texts(child)]


def changed(value: Any, change: Callable[[str], str]) -> Any:
    """The body with each sealed text changed."""
    if isinstance(value, str):
        return change(value) if value.startswith(PREFIX) else value
    if isinstance(value, dict):
        return {key: changed(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [changed(each, change) for each in value]
    return value


TAMPERED: dict[str, Callable[[str], str]] = {
    "a character": lambda text: text[:-9] + ("A" if text[-9] != "A" else "B") + text[-8:],
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: PREFIX,
    "no base64": lambda text: PREFIX + "%%%",
    "a forged one": lambda text: PREFIX + base64.b64encode(b"x" * 90).decode(),
}


def test_seal_opens_texts_of_eight_mebibytes_at_most() -> None:
    seal = Seal(KEY, "alice")
    for size, opens in ((6_000_000, True), (6_400_000, False)):
        item = Reasoning("x" * size)
        text = seal.close(item)
        assert text is not None
        assert (seal.open(text) == item) is opens


@each_protocol
@pytest.mark.parametrize("how", [*TAMPERED, "other user", "other key", "no seal"])
def test_foreign_state_is_refused_and_reported(protocol: Any, how: str) -> None:
    _, body = page_after(protocol, SIGNED, Seal(KEY, "alice"))
    seal: Seal | None = Seal(KEY, "alice")
    if how == "other user":
        seal = Seal(KEY, "mallory")
    elif how == "other key":
        seal = Seal("another secret of the servers", "alice")
    elif how == "no seal":
        seal = None
    else:
        body = changed(body, TAMPERED[how])
    found = asked(protocol, body, seal)
    assert not [item for item in found.history if isinstance(item, Reasoning)]
    assert not [item for item in found.history if item.signature]
    assert [type(item).__name__ for item in found.history] == ["Message", "FunctionCall"]
    assert [change.reason for change in found.report] == [NOT_SEALED] * 4


@each_protocol
def test_providers_own_state_is_refused_with_a_seal(protocol: Any) -> None:
    _, body = page_after(protocol, SIGNED, Seal(KEY, "alice"))
    body = changed(body, lambda text: "raw-signature")
    found = asked(protocol, body, Seal(KEY, "alice"))
    assert not [item for item in found.history if item.signature]
    assert found.report


def test_page_cannot_change_an_item_with_a_seal() -> None:
    seal = Seal(KEY, "alice")
    _, body = page_after("vercel", SIGNED, seal)
    body = copy.deepcopy(body)
    parts = body["messages"][-1]["parts"]
    by_kind = {part["type"]: part for part in parts}
    by_kind["reasoning"]["text"] = "I hate you."
    by_kind["text"]["text"] = "I said something else."
    by_kind["tool-weather"]["input"] = {"city": "Rome"}
    found = asked("vercel", body, seal)
    texts = [item.content for item in found.history if isinstance(item, Reasoning)]
    assert "I think." in texts
    [said] = [item for item in found.history if isinstance(item, Message)]
    assert (said.text, said.signature) == ("I said something else.", None)
    [made] = [item for item in found.history if isinstance(item, FunctionCall)]
    assert made.arguments == '{"city":"Paris"}'
    assert [change.reason for change in found.report] == [CHANGED, CHANGED]


def test_replaced_key_still_opens() -> None:
    _, body = page_after("vercel", SIGNED, Seal(KEY, "alice"))
    found = asked("vercel", body, Seal(["the new secret of the servers", KEY], "alice"))
    assert found.report == ()
    assert len(found.history) == len(SIGNED)


def test_state_stays_on_the_server_without_a_seal() -> None:
    stream, body = page_after("vercel", SIGNED, None)
    assert b"sealed" not in stream
    assert b"sig-" not in stream
    assert "providerMetadata" not in json.dumps(body)


@pytest.mark.parametrize("key", ["", "short", [], [KEY, "short"], None])
def test_short_key_is_a_value_error(key: Any) -> None:
    with pytest.raises(ValueError, match="key"):
        Seal(key, "alice")


def test_user_of_a_seal_is_a_text() -> None:
    user: Any = 17
    with pytest.raises(TypeError, match=r"the user of a seal is a text, not 17: write str\("):
        Seal(KEY, user)


def test_seal_shows_no_key() -> None:
    assert KEY not in repr(Seal(KEY, "alice"))
    assert KEY not in repr(empty_request("vercel", Seal(KEY, "alice")))
